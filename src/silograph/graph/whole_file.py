"""One file, written beside its place and renamed: a reader sees the old file or the new one."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

__all__ = ["written_whole"]


@contextmanager
def written_whole(path: str | PathLike[str]) -> Iterator[Path]:
    """A file to write to; it takes its name at the end, if all went well, and else is gone."""
    target = Path(path)
    # A folder of its own, so that whoever writes makes the file, as the umask allows: the mode of
    # a temporary file is private, and nobody can ask for the umask without changing it for all.
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as beside:
        partial = Path(beside) / target.name
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name must outlive a crash too
    finally:
        os.close(folder)
