"""The command ``silograph``."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

__all__ = ["main", "run"]

#: What Typer makes of Ctrl-C.
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``silograph`` on ``arguments``; the exit code. An error is one line."""
    # Imported here, so that `import silograph` does not load a command line.
    from silograph.cli.app import app  # noqa: PLC0415

    return run(app, "silograph", arguments)


def run(app: Callable[..., Any], name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a Typer application called ``name``; the exit code. An error is one line."""
    from silograph.cli.exits import ABORTED, FINE, WRONG, explain  # noqa: PLC0415

    words, debug = _without_debug(list(sys.argv[1:] if arguments is None else arguments))
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):  # an ε must not end a command
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        found = app(words, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            return WRONG  # making the error has printed the help
        if debug:
            raise
        code, line = explain(_cause(error))
    except KeyboardInterrupt as error:
        code, line = explain(error)
    except SystemExit as error:
        # Typer's own way out where nobody reads the output.
        code, line = (ABORTED, "") if error.code == 1 else (int(error.code or 0), "")
    else:
        if found != _INTERRUPTED:
            return found if isinstance(found, int) else FINE
        code, line = explain(KeyboardInterrupt())
    _drop_output()
    if line:
        with suppress(OSError):
            sys.stderr.write(f"{name}: {line}\n")
            sys.stderr.flush()
    return code


def _without_debug(words: list[str]) -> tuple[list[str], bool]:
    """``--debug`` may stand anywhere before a bare ``--``."""
    end = words.index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word != "--debug"]
    return [*kept, *words[end:]], len(kept) != end


def _cause(error: Exception) -> BaseException:
    """Older versions of Typer make an interrupt look like a question that was not confirmed."""
    below = error.__cause__ or error.__context__
    hidden = type(error).__name__ == "Abort" and isinstance(below, KeyboardInterrupt)
    return below if hidden and below else error


def _drop_output() -> None:
    """Lose what could not be written: Python would try again when it ends, and complain."""
    with suppress(OSError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
