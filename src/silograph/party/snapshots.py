"""Snapshots: the edges that a silo's open runs are carried out with.

What
    A run goes on with the edges that the silo held when it accepted the run, even if the service
    restarts with a changed edge file. So every message that is made again has the same bytes. The
    store records the digest of the edges with the run, and a file ``DIGEST.npy`` of mode 0600 in
    the folder ``snapshots`` of the state holds the pairs. Runs with the same edges share a file.
    If the universe is open, the ids of the silo's nodes follow in the same file, one a line.
Guarantee
    A file is written whole and synced before its digest is recorded. It is compared with its digest
    when it is read; a file that is missing or damaged raises an error.
    Errors do not show the digest: whoever knows it can check a guess of the edges.
Why it is written when a service starts
    The time of writing depends on the number of edges. So it must not lie between two messages.
"""

import hashlib
import io
from collections.abc import Collection
from pathlib import Path

import numpy as np

from silograph import whole_files
from silograph.errors import SilographError, StoreError
from silograph.graph.silo import Silo, restored
from silograph.messages.identity import pack

__all__ = ["Snapshots"]

_SUFFIX = ".npy"


class Snapshots:
    """The snapshots of one silo, and the edges that its service has loaded."""

    def __init__(self, folder: Path, silo: Silo) -> None:
        """Write the snapshot of ``silo``, unless it is there already."""
        self._folder = folder
        self._silo = silo
        #: The digest of the edges that are loaded.
        self.digest = _digest(silo)
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder}: cannot be made: {error.strerror}") from None
        try:
            self._read(self.digest)
        except StoreError:
            try:
                whole_files.replace(self._path(self.digest), _content(silo), StoreError)
            except StoreError as error:
                raise StoreError(str(error).replace(self.digest, "…")) from None

    def silo(self, digest: str) -> Silo:
        """The edges with this digest: those that are loaded, or those of a snapshot."""
        return self._silo if digest == self.digest else self._read(digest)

    def drop_except(self, wanted: Collection[str]) -> None:
        """Remove all snapshots but those with a digest in ``wanted``, and what a kill left."""
        try:
            for path in self._folder.iterdir():
                if path.suffix != _SUFFIX or path.stem not in wanted:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{self._folder}: cannot be cleared: {error.strerror}") from None

    def _path(self, digest: str) -> Path:
        return self._folder / f"{digest}{_SUFFIX}"

    def _read(self, digest: str) -> Silo:
        path = self._path(digest)
        try:
            found = self._silo_of(io.BytesIO(path.read_bytes()))
            whole = _digest(found) == digest
        except OSError as error:
            what = f"the edges that the run began with cannot be read: {error.strerror}"
            raise StoreError(f"{self._folder}: {what}") from None
        except (ValueError, TypeError, EOFError, MemoryError, SilographError):
            whole = False
        if not whole:
            raise StoreError(
                f"{self._folder}: the edges that the run began with are damaged, or the node list "
                "has changed"
            )
        return found

    def _silo_of(self, content: io.BytesIO) -> Silo:
        universe, name = self._silo.universe, self._silo.name
        pairs = np.load(content, allow_pickle=False)
        if universe.is_open:
            return restored(universe, content.read().decode().split("\n")[:-1], pairs, name)
        return Silo.from_pairs(universe, pairs, name=name)


def _content(silo: Silo) -> bytes:
    content = io.BytesIO()
    np.save(content, silo.pairs)
    if silo.universe.is_open:
        content.writelines(f"{id_}\n".encode() for id_ in silo.nodes)
    return content.getvalue()


def _digest(silo: Silo) -> str:
    """The digest of the nodes and the pairs; the nodes are the universe's, unless it is open."""
    pairs = np.ascontiguousarray(silo.pairs, dtype="<u4").tobytes()
    parts = [b"silograph/snapshot/v1", silo.universe.digest.encode(), pairs]
    if silo.universe.is_open:
        parts.append(silo.nodes.digest.encode())
    return hashlib.sha256(pack(*parts)).hexdigest()
