"""Transactions on a ledger's file, from any thread, and on both sides of a fork."""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from silograph.errors import LedgerError
from silograph.ledger import file

__all__ = ["Transactions"]


class Transactions:
    """The transactions of this process on one file: one connection, used by one thread at a time.

    A missing file is created if ``new`` is given; ``new`` is then its time of creation.
    """

    def __init__(self, path: Path, new: str | None) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._pid = os.getpid()
        self._closed = False
        with _instances_lock:  # no fork while a file is being created
            if new is not None and not path.exists():
                file.create(path, new)
            _instances.add(self)
            self._connection = file.connect(path, whole=True)
        self._inode = self._inode_now()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction that excludes all other writers. At its end it is on the disk."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction that sees the file as it is at one moment."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, file.explained(self.path):
            connection = self._connected()
            connection.execute(begin)
            try:
                if self._inode_now() != self._inode:
                    raise LedgerError(
                        f"{self.path}: the ledger's file was replaced by another; open it again"
                    )
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file. It cannot be used again through this object."""
        with self._lock:
            self._closed = True
            self._disconnect()

    def _connected(self) -> sqlite3.Connection:
        if self._closed:
            raise LedgerError(f"{self.path}: the ledger is closed")
        if self._connection is None:
            self._connection = file.connect(self.path)
            self._pid = os.getpid()
        if self._pid != os.getpid():
            raise LedgerError(
                f"{self.path}: this process is a fork that Python was not told of, and has no "
                "locks on the ledger; use os.fork or multiprocessing"
            )
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _inode_now(self) -> tuple[int, int]:
        try:
            found = self.path.stat()
        except OSError as error:
            raise LedgerError(f"{self.path}: the ledger is gone: {error.strerror}") from None
        return found.st_dev, found.st_ino


# A connection must never be carried through a fork: the child would wrongly believe that it holds
# the parent's locks, and the log with its recorded spends could be deleted. Therefore every
# connection is closed before a fork; parent and child connect again when they need to.
_instances: "weakref.WeakSet[Transactions]" = weakref.WeakSet()
_instances_lock = threading.RLock()
_paused: list[Transactions] = []


def _before_fork() -> None:
    _instances_lock.acquire()
    for instance in list(_instances):
        instance._lock.acquire()
        _paused.append(instance)
        instance._disconnect()


def _after_fork() -> None:
    while _paused:
        _paused.pop()._lock.release()
    _instances_lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
