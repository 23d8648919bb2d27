"""What commands print and write: JSON, notes, and files that are checked beforehand."""

import json
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import typer

from silograph.errors import ArgumentError, SilographWarning

__all__ = ["check_output", "echo_json", "note", "noted"]


# --- JSON for programs, on the standard output and nothing else there -----------------------------


def echo_json(value: Any) -> None:
    """Print plain values as one line; numbers that JSON does not know are null.

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


# --- Warnings of the library as notes of one line each, on the standard error ---------------------


def note(text: str) -> None:
    """Say something beside the answer. Programs read the standard output, people both."""
    sys.stderr.write(f"note: {' '.join(text.split())}\n")


@contextmanager
def noted() -> Iterator[None]:
    """Inside, every warning of Silograph is a note, said once; those of others are as before."""
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


# --- Files that a command will write: looked at before anything is spent --------------------------


def check_output(path: Path, inputs: Iterable[Path], *, force: bool, size: int = 0) -> None:
    """Refuse a place where a file of ``size`` bytes cannot be written, or must not be.

    What a run has cost stays spent even if its answer cannot be kept, so this comes first.
    """
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise ArgumentError(f"{path}: is read by this command, and is not written over")
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
