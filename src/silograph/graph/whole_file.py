"""One file, written beside its place and renamed: a reader sees the old file or the new one."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

__all__ = ["sync_path", "written_whole"]


@contextmanager
def written_whole(path: str | PathLike[str]) -> Iterator[Path]:
    """A file to write to; it takes its name at the end, if all went well, and else is gone."""
    target = Path(path)
    # A folder of its own, so that whoever writes makes the file, as the umask allows: the mode of
    # a temporary file is private, and nobody can ask for the umask without changing it for all.
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as beside:
        partial = Path(beside) / target.name
        yield partial
        sync_path(partial)
        partial.replace(target)
    sync_path(target.parent)  # the new name must outlive a crash too


def sync_path(path: Path) -> None:
    """Put a file, or the names in a folder, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
