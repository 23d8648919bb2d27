"""Transactions on a ledger's file, from any thread, and on both sides of a fork."""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from silograph.errors import LedgerError
from silograph.runtime import ledger_file

__all__ = ["Session"]


class Session:
    """One connection of this process to one file, and the lock that its threads take in turn.

    ``new`` is the time that goes into a file which has to be made, or None to refuse that.
    """

    def __init__(self, path: Path, new: str | None) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._pid = os.getpid()
        self._closed = False
        with _sessions_lock:  # no fork while a file is being made
            if new is not None and not path.exists():
                ledger_file.create(path, new)
            _sessions.add(self)
            self._connection = ledger_file.connect(path, whole=True)
        self._inode = self._inode_now()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other writer can come between, from its first read on.

        It ends with the log on the disk.
        """
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one moment of the file."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, ledger_file.explained(self.path):
            connection = self._connected()
            connection.execute(begin)
            try:
                if self._inode_now() != self._inode:
                    raise LedgerError(
                        f"{self.path}: another file was put in the ledger's place; open it again"
                    )
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file. A closed session stays closed."""
        with self._lock:
            self._closed = True
            self._disconnect()

    def _connected(self) -> sqlite3.Connection:
        if self._closed:
            raise LedgerError(f"{self.path}: the ledger is closed")
        if self._connection is None:
            self._connection = ledger_file.connect(self.path)
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


# A connection must never cross a fork: a child that inherits one believes that it holds the
# parent's locks, and the log can be deleted under it, spends and all. So every connection is closed
# before a fork; parent and child connect again when they need to.
_sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()
_sessions_lock = threading.RLock()
_paused: list[Session] = []


def _before_fork() -> None:
    _sessions_lock.acquire()
    for session in list(_sessions):
        session._lock.acquire()
        _paused.append(session)
        session._disconnect()


def _after_fork() -> None:
    while _paused:
        _paused.pop()._lock.release()
    _sessions_lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
