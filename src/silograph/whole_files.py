"""Small files that are written completely or not at all, and read with limits.

A new file is made under another name, synced, and linked into place. A process that dies leaves
either nothing or the complete file, and an existing file is never overwritten. A file that replaces
another one takes its name in one step.
"""

import os
import shutil
import stat
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from silograph.errors import DeploymentError, SilographError

__all__ = [
    "ANSWER",
    "CONFIG",
    "IDENTITY",
    "INVITATION",
    "LEDGER",
    "LEDGER_BACKUP",
    "ROSTER",
    "SIGNATURE",
    "STORE",
    "WELCOME",
    "Format",
    "create",
    "folder_whole",
    "parse_toml",
    "quoted",
    "read",
    "replace",
    "sync_path",
    "written_whole",
]


# --- One file, written beside its place and renamed: a reader sees the old file or the new one ----


@contextmanager
def written_whole(path: str | PathLike[str]) -> Iterator[Path]:
    """A file to write to. It gets its name at the end, or is removed if an error occurs."""
    target = Path(path)
    # Use a new folder, so that the caller creates the file with the mode that the umask allows.
    # Temporary files are private, and the umask cannot be read without changing it for all threads.
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as beside:
        partial = Path(beside) / target.name
        yield partial
        sync_path(partial)
        partial.replace(target)
    sync_path(target.parent)  # the new name must survive a crash too


@contextmanager
def folder_whole(target: Path, error: type[SilographError]) -> Iterator[Path]:
    """A new folder of mode 0700 to fill. It gets its name at the end; an error leaves nothing."""
    made: Path | None = None
    try:
        made = Path(tempfile.mkdtemp(prefix=".silograph-", dir=target.parent))
        yield made
        made.rename(target)  # over an empty folder at most
        sync_path(target.parent)
    except OSError as problem:
        raise error(f"{target}: cannot be made: {_reason(problem)}") from None
    except SilographError as problem:  # its text may name files that will be gone
        raise error(str(problem).replace(str(made), str(target))) from None
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)


def sync_path(path: Path) -> None:
    """Sync a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- Small files ----------------------------------------------------------------------------------

PRIVATE = 0o600


def create(path: Path, content: bytes, error: type[SilographError], *, mode: int = PRIVATE) -> None:
    """Write a new file with exactly this ``mode``; refuse if the name exists already."""
    _write(path, content, error, mode, new=True)


def replace(
    path: Path, content: bytes, error: type[SilographError], *, mode: int = PRIVATE
) -> None:
    """Write a file, replacing one of the same name."""
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
    """Read a regular file of at most ``limit`` bytes.

    With ``private``, the file must be accessible only to its owner, and its owner must be this user
    (or root, who may read everything anyway). The checks are made on the open file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would block
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise error(f"{path}: not a file")
            if private and found.st_mode & 0o077:
                raise error(
                    f"{path}: others can read or write it (mode {stat.S_IMODE(found.st_mode):04o})."
                    " Assume that they know it and make a new one; or, if it was never exposed, "
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
    """Parse TOML; an error names the place but shows nothing of the content."""
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise error(f"{path}: not a text in UTF-8") from None
    except tomllib.TOMLDecodeError as problem:
        place = str(problem).rpartition("(at ")[2].rstrip(")")
        raise error(f"{path}: not TOML, at {place}") from None
    except (ValueError, RecursionError):  # endless numbers or brackets
        raise error(f"{path}: not TOML") from None


def quoted(text: str) -> str:
    """A printable text as a quoted string, for TOML and for a broker's configuration.

    >>> quoted('say "hi"')
    '"say \\\\"hi\\\\""'
    """
    if not text.isprintable():
        raise DeploymentError("only printable text is written to files")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# --- Versions of the files of a deployment --------------------------------------------------------
#
# Parties may run different releases of Silograph for a while, and files outlive programs. So each
# file states its kind and version. A reader accepts the versions that it knows, refuses all others
# in the same words, and never guesses. (Messages carry their version in the signed text; a message
# of another version is refused like a forged one.)


@dataclass(frozen=True)
class Format:
    """A kind of file: what it is called, the version that is written, and all that are read.

    >>> Format("recipe", 3, reads=(2, 3)).check(4, "cake.txt", SilographError)
    Traceback (most recent call last):
      ...
    silograph.errors.SilographError: cake.txt: recipe of version 4; this Silograph reads versions \
2 and 3. It was written by a newer one: update Silograph here, or ask for a file of version 3
    """

    name: str
    current: int
    reads: tuple[int, ...] = ()

    def check(self, found: object, where: object, error: type[SilographError]) -> int:
        """The version, if it can be read; otherwise raise ``error``."""
        known = self.reads or (self.current,)
        if isinstance(found, int) and not isinstance(found, bool) and found in known:
            return found
        if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found < 1 << 31:
            raise error(f"{where}: {self.name} without a version; it is foreign or damaged")
        plural = "s" if len(known) > 1 else ""
        reads = f"this Silograph reads version{plural} {' and '.join(map(str, known))}"
        advice = (
            "It was written by a newer one: update Silograph here, or ask for a file of version "
            f"{self.current}"
            if found > self.current
            else "It was written by an older one: use that one to bring it up to date"
        )
        raise error(f"{where}: {self.name} of version {found}; {reads}. {advice}")


IDENTITY = Format("identity file", 1)
ROSTER = Format("roster", 2)
LEDGER = Format("ledger", 3, reads=(2, 3))
LEDGER_BACKUP = Format("ledger backup", 3, reads=(2, 3))
STORE = Format("state store", 4, reads=(3, 4))
CONFIG = Format("configuration", 1)
INVITATION = Format("invitation", 1)
ANSWER = Format("answer", 1)
WELCOME = Format("welcome", 1)
SIGNATURE = Format("signature", 1)
