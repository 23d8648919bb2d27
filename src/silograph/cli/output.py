"""Output of commands: JSON, notes, and checks of files before they are written."""

import json
import math
import os
import shutil
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import typer

from silograph import whole_files
from silograph.errors import ArgumentError, SilographError, SilographWarning

__all__ = ["check_output", "echo", "echo_json", "fitted", "note", "noted", "write_text"]


# --- JSON for programs; nothing else goes to the standard output then -----------------------------


def echo_json(value: Any) -> None:
    """Print plain values as one line of JSON. Infinities and NaN become null.

    >>> echo_json({"epsilon": 3.0, "bound": float("inf"), "query": "2 × ε"})
    {"epsilon": 3.0, "bound": null, "query": "2 × ε"}
    """
    typer.echo(json.dumps(_finite(value), ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


# --- Words for people: whole lines for programs, folded to the width of a terminal ---------------


def fitted(text: str, stream: TextIO) -> str:
    """Fold long lines at words if ``stream`` is a terminal; programs get every line whole."""
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(_folded(line, width) for line in text.split("\n"))


def _folded(line: str, width: int) -> str:
    """
    >>> print(_folded("  ledger own.ledger: nothing is left", 24))
      ledger own.ledger:
        nothing is left
    """
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    # A digest that fits no line is not made better by a line of its own.
    if len(line) <= width or max(map(len, line.split())) + len(indent) > width:
        return line
    kept = line.replace(" = ", "\u00a0=\u00a0")
    found = textwrap.fill(
        kept, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return found.replace("\u00a0", " ")


def echo(text: object, *, err: bool = False) -> None:
    """Print a text."""
    typer.echo(fitted(str(text), sys.stderr if err else sys.stdout), err=err)


# --- Notes: one each, on the standard error -------------------------------------------------------


def note(text: str) -> None:
    """Print a note. Programs read the standard output only; people read both."""
    echo(f"note: {' '.join(text.split())}", err=True)


@contextmanager
def noted() -> Iterator[None]:
    """Inside this context, print each warning of Silograph once, as a note."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", SilographWarning)
        before, said = warnings.showwarning, set()

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, SilographWarning):
                before(message, category, filename, lineno, file, line)
            elif str(message) not in said:
                said.add(str(message))
                note(str(message))

        warnings.showwarning = show
        yield


# --- Output files, checked before anything is spent -----------------------------------------------


def check_output(path: Path, inputs: Iterable[Path], *, force: bool, size: int = 0) -> None:
    """Refuse a path where a file of ``size`` bytes cannot or must not be written.

    A run's budget stays spent even if its answer cannot be saved, so this is checked first.
    """
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise ArgumentError(f"{path}: is an input of this command and is not overwritten")
    if path.is_dir():
        raise ArgumentError(f"{path}: is a folder; a file name is needed")
    if path.exists() and not path.is_file():
        raise ArgumentError(f"{path}: is not a regular file")
    if path.exists() and not force:
        raise ArgumentError(f"{path}: is there already; choose another name, or give --force")
    if not path.parent.is_dir():
        raise ArgumentError(f"{path}: there is no folder {path.parent}; make it first")
    try:
        with tempfile.TemporaryFile(dir=path.parent, prefix=".silograph-") as trial:
            if size:
                os.posix_fallocate(trial.fileno(), 0, size)
    except OSError as error:
        raise ArgumentError(
            f"{path}: cannot be written: {error.strerror}; nothing was spent"
        ) from None


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    whole_files.replace(path, text.encode("utf-8", "replace"), SilographError, mode=0o644)
