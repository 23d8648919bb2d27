"""Small files that are written whole or not at all, and read with their limits in mind.

A new file is made under another name, synced, and linked into place: a process that dies leaves
either nothing or all of it, and a file that is there is never overwritten. One that replaces
another takes its name in one step.
"""

import os
import stat
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from silograph.errors import DeploymentError, SilographError
from silograph.graph.whole_file import sync_path

__all__ = ["create", "parse_toml", "quoted", "read", "replace"]

PRIVATE = 0o600


def create(path: Path, content: bytes, error: type[SilographError], *, mode: int = PRIVATE) -> None:
    """Write a new file, with ``mode`` whatever the umask; refuse where something is already."""
    _write(path, content, error, mode, new=True)


def replace(
    path: Path, content: bytes, error: type[SilographError], *, mode: int = PRIVATE
) -> None:
    """Write a file in the place of the one that may be there."""
    _write(path, content, error, mode, new=False)


def _write(
    path: Path, content: bytes, error: type[SilographError], mode: int, *, new: bool
) -> None:
    name = None
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".silograph-")  # mode 0600
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        if new:
            os.link(name, path)
        else:
            os.replace(name, path)
            name = None
        sync_path(path.parent)
    except FileExistsError:
        raise error(f"{path}: something is there already, and is never overwritten") from None
    except (OSError, ValueError) as problem:
        raise error(f"{path}: cannot be written: {_reason(problem)}") from None
    finally:
        if name is not None:
            Path(name).unlink(missing_ok=True)


def read(path: Path, limit: int, error: type[SilographError], *, private: bool = False) -> bytes:
    """All of a regular file of at most ``limit`` bytes.

    With ``private``, only one that nobody but its owner may touch, and whose owner is this user
    (or root, who may read everything anyway). What is checked is what is read: the open file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would wait
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise error(f"{path}: not a file")
            if private and found.st_mode & 0o077:
                raise error(
                    f"{path}: others can read or write it (mode {stat.S_IMODE(found.st_mode):04o})."
                    " Take it as known to them: make a new one; or, if it was never exposed, "
                    "chmod 600"
                )
            if private and found.st_uid not in (os.geteuid(), 0):
                raise error(f"{path}: it belongs to another user")
            content = file.read(limit + 1)
    except (OSError, ValueError) as problem:
        raise error(f"{path}: cannot be read: {_reason(problem)}") from None
    if len(content) > limit:
        raise error(f"{path}: larger than {limit:,} bytes")
    return content


def _reason(problem: OSError | ValueError) -> str:
    return getattr(problem, "strerror", None) or str(problem)


def parse_toml(path: Path, content: bytes, error: type[SilographError]) -> dict[str, Any]:
    """TOML, or one error. Its text names the place and nothing of the content."""
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise error(f"{path}: not a text in UTF-8") from None
    except tomllib.TOMLDecodeError as problem:
        place = str(problem).rpartition("(at ")[2].rstrip(")")
        raise error(f"{path}: not TOML, at {place}") from None
    except (ValueError, RecursionError):  # numbers without end, brackets without end
        raise error(f"{path}: not TOML") from None


def quoted(text: str) -> str:
    """A printable text as a string of TOML, and of a broker's configuration.

    >>> quoted('say "hi"')
    '"say \\\\"hi\\\\""'
    """
    if not text.isprintable():
        raise DeploymentError("only printable text is written to files")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
