"""From errors to exit codes and one line each; nowhere else are codes chosen."""

import errno
import os
import re

import typer

from silograph.errors import (
    AbortedError,
    BudgetError,
    CryptoError,
    DeadlineError,
    GraphError,
    ProtocolError,
    SilographError,
    TransportError,
)

__all__ = ["ABORTED", "FAULT", "FINE", "HELP", "MISBEHAVED", "NO", "REFUSED", "WRONG", "explain"]

FINE, NO, WRONG, REFUSED, MISBEHAVED, ABORTED, FAULT = 0, 1, 2, 3, 4, 5, 70

HELP = """Exit codes:

- 0 fine
- 1 the answer is no: lists differ, a certificate has expired, a service is down
- 2 wrong use: arguments, files or what is in them; nothing was spent, or it says so
- 3 the budget refuses
- 4 a peer misbehaved
- 5 a run was aborted, also by Ctrl-C or because the broker cannot be reached
- 70 a fault of Silograph itself
"""

#: The first that fits counts.
_CODES: tuple[tuple[type[SilographError], int], ...] = (
    (BudgetError, REFUSED),
    (ProtocolError, MISBEHAVED),
    (CryptoError, MISBEHAVED),
    (AbortedError, ABORTED),
    (DeadlineError, ABORTED),
    (TransportError, ABORTED),
    (SilographError, WRONG),
)
#: Arguments of the library, as errors about files name them, and the options that stand for them.
_SPELLED = {
    r"\bstrip=True": "--strip",
    r"\bheader=True": "--header",
    r"\bheader=False": "--no-header",
    r"\bcolumns= ?": "--columns ",
    r"\bcolumn= ?": "--node-column ",
    r"\bcase='(lower|upper)'": r"--case \1",
    r"\bformat='(\w+)'": r"--format \1",
    r"\bformat=$": "--format",
}
#: Typer's name for wrong use, whichever library it takes it from.
_Usage: type[Exception] = typer.BadParameter.__mro__[1]


def explain(error: BaseException) -> tuple[int, str]:
    """The exit code of an error, and the one line that says what is wrong.

    >>> explain(BudgetError("nothing is left"))
    (3, 'nothing is left')
    >>> explain(FileNotFoundError(2, "No such file or directory", "a.csv"))
    (2, 'a.csv: No such file or directory')
    """
    code, text = _explain(error)
    return code, _one_line(text)


def _explain(error: BaseException) -> tuple[int, str]:
    code, text = WRONG, ""
    match error:
        case SilographError():
            code = next(code for kind, code in _CODES if isinstance(error, kind))
            text = _as_options(str(error)) if isinstance(error, GraphError) else str(error)
        case _Usage():
            text = _usage(error)
        case KeyboardInterrupt():
            code, text = ABORTED, "interrupted"
        case typer.Abort():
            code, text = NO, "not confirmed; nothing was changed"
        case MemoryError():
            text = (
                "there is not enough memory; a run needs several times n²/8 bytes for n nodes: "
                "take a machine with more, or a smaller node list"
            )
        case UnicodeDecodeError():
            text = "a file is not a text in UTF-8; save it as UTF-8"
        case OSError():
            code, text = _system(error)
        case _:
            code = FAULT
            text = (
                f"a fault in Silograph itself, {type(error).__name__}: {error} "
                "(silograph --debug shows where; please report it)"
            )
    return code, text


def _as_options(text: str) -> str:
    """What the library asks to pass, as it is written here.

    >>> _as_options("id ' a' begins or ends with white space; pass strip=True to remove it")
    "id ' a' begins or ends with white space; pass --strip to remove it"
    """
    for said, option in _SPELLED.items():
        text = re.sub(said, option, text)
    return text


def _system(error: OSError) -> tuple[int, str]:
    if error.errno == errno.EPIPE:
        return ABORTED, "nobody reads the output any more"
    reason = error.strerror or str(error)
    if error.errno == errno.ENOSPC:
        reason = f"{reason}; nothing of the file was kept"
    where = next((name for name in (error.filename, error.filename2) if name is not None), None)
    return WRONG, reason if where is None else f"{os.fsdecode(os.fspath(where))}: {reason}"


def _usage(error: Exception) -> str:
    """What Typer says, with the command that it says it of."""
    said = getattr(error, "format_message", error.__str__)().strip().rstrip(".")
    context = getattr(error, "ctx", None)
    if context is None:
        return said
    path = context.command_path
    words = path.partition(" ")[2]
    said = f"{said[:1].lower()}{said[1:]}"
    return f"{words}: {said}; see {path} --help" if words else f"{said}; see {path} --help"


def _one_line(text: str) -> str:
    """No line breaks, and nothing that a terminal would obey."""
    line = "; ".join(part.strip().rstrip(";") for part in text.splitlines() if part.strip())
    return "".join(c if c.isprintable() else "�" for c in line)
