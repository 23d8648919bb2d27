"""The command ``silograph``."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

__all__ = ["main", "run"]

#: The exit code that Typer uses after Ctrl-C.
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``silograph`` with ``arguments`` and return the exit code. An error prints one line."""
    # Imported here, so that `import silograph` does not load the command line.
    from silograph.cli.app import app  # noqa: PLC0415

    return run(app, "silograph", arguments)


def run(app: Callable[..., Any], name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a Typer application called ``name``; return the exit code. An error prints one line."""
    from silograph.cli.exits import ABORTED, FINE, WRONG, explain  # noqa: PLC0415
    from silograph.cli.output import fitted  # noqa: PLC0415

    words, debug = _without_debug(list(sys.argv[1:] if arguments is None else arguments))
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):  # a terminal without ε must not end a command
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        found = app(words, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            return WRONG  # Typer has already printed the help
        if debug:
            raise
        code, line = explain(_cause(error))
    except KeyboardInterrupt as error:
        code, line = explain(error)
    except SystemExit as error:
        # Typer exits like this when the reader of the output has gone away.
        code, line = (ABORTED, "") if error.code == 1 else (int(error.code or 0), "")
    else:
        if found != _INTERRUPTED:
            return found if isinstance(found, int) else FINE
        code, line = explain(KeyboardInterrupt())
    _drop_output()
    if line:
        with suppress(OSError):
            sys.stderr.write(f"{fitted(f'{name}: {line}', sys.stderr)}\n")
            sys.stderr.flush()
    return code


def _without_debug(words: list[str]) -> tuple[list[str], bool]:
    """Remove ``--debug``, which may stand anywhere before a bare ``--``; say if it was there."""
    end = words.index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word != "--debug"]
    return [*kept, *words[end:]], len(kept) != end


def _cause(error: Exception) -> BaseException:
    """Find the interrupt that older versions of Typer report as an unconfirmed question."""
    below = error.__cause__ or error.__context__
    hidden = type(error).__name__ == "Abort" and isinstance(below, KeyboardInterrupt)
    return below if hidden and below else error


def _drop_output() -> None:
    """Discard output that cannot be written. Python would try again at exit and complain."""
    with suppress(OSError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
