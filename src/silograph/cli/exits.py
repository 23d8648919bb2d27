"""Turn errors into exit codes and messages of one line. Exit codes are chosen only here."""

import errno
import os
import re

import typer

from silograph.errors import (
    AbortedError,
    BudgetError,
    CryptoError,
    DeadlineError,
    FrozenError,
    GraphError,
    ProtocolError,
    SilographError,
    TransportError,
)

__all__ = [
    "ABORTED",
    "FAULT",
    "FINE",
    "HELP",
    "LATER",
    "MISBEHAVED",
    "NO",
    "REFUSED",
    "WRONG",
    "explain",
]

FINE, NO, WRONG, REFUSED, MISBEHAVED, ABORTED, FAULT, LATER = 0, 1, 2, 3, 4, 5, 70, 75

HELP = """Exit codes:

- 0 success
- 1 the answer is no: lists differ, a certificate has expired, a service is down
- 2 wrong arguments, files or file contents; nothing was spent, or the message says so
- 3 refused: the privacy budget does not allow it
- 4 another party broke the protocol
- 5 a run was aborted, for example by Ctrl-C or because the broker was not reached
- 70 a bug in Silograph
- 75 not now: a disk is full; try again when there is room
"""

#: The first match counts.
_CODES: tuple[tuple[type[SilographError], int], ...] = (
    (BudgetError, REFUSED),
    (FrozenError, REFUSED),
    (ProtocolError, MISBEHAVED),
    (CryptoError, MISBEHAVED),
    (AbortedError, ABORTED),
    (DeadlineError, ABORTED),
    (TransportError, ABORTED),
    (SilographError, WRONG),
)
#: Errors of the system and of SQLite that end when there is room again.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_FULL = "SQLITE_FULL"
#: Arguments of the library, as error messages name them, and the options that correspond to them.
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
#: Typer's error for wrong usage, whichever library defines it.
_Usage: type[Exception] = typer.BadParameter.__mro__[1]


def explain(error: BaseException) -> tuple[int, str]:
    """Return the exit code of an error, and one line that says what is wrong.

    >>> explain(BudgetError("nothing is left"))
    (3, 'nothing is left')
    >>> explain(FileNotFoundError(2, "No such file or directory", "a.csv"))
    (2, 'a.csv: No such file or directory')
    """
    code, text = _explain(error)
    return LATER if _no_room(error) else code, _one_line(text)


def _no_room(error: BaseException) -> bool:
    """Whether a full disk is behind an error: it, or what it was raised for."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, OSError) and found.errno in _NO_ROOM:
            return True
        if getattr(found, "sqlite_errorname", "") == _FULL:
            return True
        found = found.__cause__ or found.__context__
    return False


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
                "there is not enough memory; a run with n nodes needs several times n²/8 bytes. "
                "Use a machine with more memory or a smaller node list"
            )
        case UnicodeDecodeError():
            text = "a file is not UTF-8 text; save it as UTF-8"
        case OSError():
            code, text = _system(error)
        case _:
            code = FAULT
            text = (
                f"this is a bug in Silograph: {type(error).__name__}: {error} "
                "(silograph --debug shows where; please report it)"
            )
    return code, text


def _as_options(text: str) -> str:
    """Replace arguments of the library by the options of the command line.

    >>> _as_options("id ' a' begins or ends with white space; pass strip=True to remove it")
    "id ' a' begins or ends with white space; pass --strip to remove it"
    """
    for said, option in _SPELLED.items():
        text = re.sub(said, option, text)
    return text


def _system(error: OSError) -> tuple[int, str]:
    if error.errno == errno.EPIPE:
        return ABORTED, "the program that reads the output has ended"
    reason = error.strerror or str(error)
    if error.errno == errno.ENOSPC:
        reason = f"{reason}; the file was not kept"
    where = next((name for name in (error.filename, error.filename2) if name is not None), None)
    return WRONG, reason if where is None else f"{os.fsdecode(os.fspath(where))}: {reason}"


def _usage(error: Exception) -> str:
    """Return Typer's message together with the command that it is about."""
    said = getattr(error, "format_message", error.__str__)().strip().rstrip(".")
    context = getattr(error, "ctx", None)
    if context is None:
        return said
    path = context.command_path
    words = path.partition(" ")[2]
    said = f"{said[:1].lower()}{said[1:]}".replace(". Did you mean", " (did you mean")
    said = f"{said.removesuffix('?')}?)" if said.endswith("?") else said
    return f"{words}: {said}; see {path} --help" if words else f"{said}; see {path} --help"


def _one_line(text: str) -> str:
    """Remove line breaks and control characters."""
    line = "; ".join(part.strip().rstrip(";") for part in text.splitlines() if part.strip())
    return "".join(c if c.isprintable() else "�" for c in line)
