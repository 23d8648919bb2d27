"""Files that a command will write: looked at before anything is spent."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from silograph.errors import ArgumentError

__all__ = ["check_output"]


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
