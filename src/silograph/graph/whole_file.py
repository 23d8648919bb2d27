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
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        # A temporary file is private; this one is as the umask allows.
        mask = os.umask(0)
        os.umask(mask)
        partial.chmod(0o666 & ~mask)
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name must outlive a crash too
    finally:
        os.close(folder)
