"""The file of a ledger: made whole or not at all, refused unless it is exactly one.

Durability rests on three settings of every connection: write-ahead log, ``synchronous=FULL``
(a commit returns when its log is on the disk) and a busy timeout. Spends, losses and limits are
append-only; triggers refuse to change or remove one.
"""

import os
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from silograph.errors import LedgerError

__all__ = [
    "APPLICATION_ID",
    "BUSY_SECONDS",
    "SETTINGS",
    "VERSION",
    "connect",
    "create",
    "explained",
]

#: "SILO", in the header of every ledger file.
APPLICATION_ID = 0x53494C4F
VERSION = 1
#: How long a process waits for its turn before it gives up.
BUSY_SECONDS = 60.0

#: What every connection must answer to ``PRAGMA name``.
SETTINGS: dict[str, str | int] = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL
    "foreign_keys": 1,
    "busy_timeout": int(1000 * BUSY_SECONDS),
}

# SQLite stores any kind of value in any column; the checks keep to one kind.
_TABLES = """
CREATE TABLE ledger (
    version INTEGER NOT NULL,
    identity TEXT NOT NULL,
    created TEXT NOT NULL
);
CREATE TABLE spends (
    number INTEGER PRIMARY KEY,
    lineage TEXT NOT NULL CHECK (typeof(lineage) = 'text'),
    run TEXT NOT NULL CHECK (typeof(run) = 'text'),
    phase TEXT NOT NULL CHECK (typeof(phase) = 'text'),
    delta REAL NOT NULL CHECK (typeof(delta) = 'real' AND delta BETWEEN 0 AND 1),
    view TEXT NOT NULL CHECK (typeof(view) = 'text'),
    method TEXT NOT NULL CHECK (typeof(method) = 'text'),
    time TEXT NOT NULL CHECK (typeof(time) = 'text'),
    UNIQUE (lineage, run, phase)
);
-- One row a collusion level; a null epsilon is a loss without a bound.
CREATE TABLE losses (
    spend INTEGER NOT NULL REFERENCES spends,
    collusion INTEGER NOT NULL CHECK (typeof(collusion) = 'integer' AND collusion >= 0),
    epsilon REAL CHECK (
        epsilon IS NULL OR typeof(epsilon) = 'real' AND epsilon >= 0 AND epsilon < 9e999
    ),
    PRIMARY KEY (spend, collusion)
) WITHOUT ROWID;
-- The history of limits; the last one of a lineage is in force.
CREATE TABLE limits (
    number INTEGER PRIMARY KEY,
    lineage TEXT NOT NULL CHECK (typeof(lineage) = 'text'),
    epsilon REAL NOT NULL CHECK (
        typeof(epsilon) = 'real' AND epsilon >= 0 AND epsilon < 9e999
    ),
    delta REAL NOT NULL CHECK (typeof(delta) = 'real' AND delta BETWEEN 0 AND 1),
    collusion INTEGER NOT NULL CHECK (typeof(collusion) = 'integer' AND collusion >= 0),
    time TEXT NOT NULL CHECK (typeof(time) = 'text')
);
CREATE INDEX limits_of_lineage ON limits (lineage);
"""
_KEPT = ("ledger", "spends", "losses", "limits")


def create(path: Path, time: str) -> None:
    """Make a new ledger of mode 0600 at ``path``, unless something is there already.

    It is made under another name and linked in place when it is complete: a process that dies
    here leaves no half of a ledger, and of several that race one wins and the others open its file.
    """
    if Path(f"{path}-wal").exists() and not path.exists():
        raise LedgerError(
            f"{path}: the ledger is gone, and {path.name}-wal is left of it. Restore it from a "
            "backup; a new one would forget what was spent"
        )
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".ledger-")  # mode 0600
    except OSError as error:
        raise LedgerError(f"{path}: cannot create the ledger: {error.strerror}") from None
    try:
        os.close(descriptor)
        with explained(path), closing(sqlite3.connect(name, isolation_level=None)) as new:
            new.execute("PRAGMA journal_mode = WAL")
            new.execute("PRAGMA synchronous = FULL")
            new.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            new.executescript(f"BEGIN; {_TABLES} {_guards()} COMMIT;")
            new.execute("INSERT INTO ledger VALUES (?, ?, ?)", (VERSION, str(uuid.uuid4()), time))
        os.link(name, path)
        _sync(path.parent)
    except FileExistsError:
        pass
    except OSError as error:
        raise LedgerError(f"{path}: cannot create the ledger: {error.strerror}") from None
    finally:
        for suffix in ("", "-wal", "-shm"):
            Path(name + suffix).unlink(missing_ok=True)


def _guards() -> str:
    return " ".join(
        f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'a ledger is only added to'); END;"
        for table in _KEPT
        for change in ("UPDATE", "DELETE")
    )


def sync(path: Path) -> None:
    """Put all that is visible in the ledger at ``path`` on the disk.

    A writer that dies between writing the log and syncing it leaves an entry that others can see
    and a power cut can take. What has left the log is synced; so sync the log. (No locks are held
    on the log, so closing it here drops none.)
    """
    try:
        _sync(Path(f"{path}-wal"))
        _sync(path.parent)
    except FileNotFoundError:
        pass  # no log: all of it is in the file
    except OSError as error:
        raise LedgerError(f"{path}: cannot sync the ledger: {error.strerror}") from None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def connect(path: Path, whole: bool = False) -> sqlite3.Connection:
    """A connection with all :data:`SETTINGS`, to a file that is a ledger of this version.

    ``whole`` also reads the file from end to end for damage. A file that is refused is left as it
    was. (Nothing but SQLite may open and close the file in a process that uses it: closing any
    descriptor of a file drops the process's locks on it.)
    """
    with explained(path):
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,  # the ledger holds a lock around every use
        )
        try:
            _check_kind(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            for name, expected in SETTINGS.items():
                (found,) = connection.execute(f"PRAGMA {name}").fetchone()
                if found != expected:
                    raise LedgerError(f"{path}: {name} is {found!r}, and must be {expected!r}")
            if whole:
                (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
                if verdict != "ok" or connection.execute("PRAGMA foreign_key_check").fetchone():
                    raise LedgerError(_damaged(path))
        except BaseException:
            connection.close()
            raise
    return connection


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        what = "another program's database" if pages else "empty"
        raise LedgerError(f"{path}: not a Silograph ledger: the file is {what}")
    found = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'ledger'"
    ).fetchone()
    versions = connection.execute("SELECT version FROM ledger").fetchall() if found else []
    if len(versions) != 1:
        raise LedgerError(_damaged(path))
    if versions[0][0] != VERSION:
        raise LedgerError(
            f"{path}: ledger format {versions[0][0]}; this version of Silograph reads format "
            f"{VERSION}"
        )


def _damaged(path: Path) -> str:
    return (
        f"{path}: the ledger is damaged or truncated. Restore it from a backup; a new one would "
        "forget what was spent"
    )


_REASONS = {
    "SQLITE_NOTADB": "not a Silograph ledger: the file is no database",
    "SQLITE_BUSY": f"other processes have kept the ledger busy for {BUSY_SECONDS:g} s",
    "SQLITE_CANTOPEN": "cannot open the ledger: it, or its folder, is absent or may not be written",
    "SQLITE_READONLY": "cannot write the ledger: it, or its folder, is read-only",
    "SQLITE_FULL": "cannot write the ledger: the disk is full",
    "SQLITE_IOERR": "cannot read or write the ledger: the disk reports an error",
}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn every error of SQLite into one :class:`LedgerError` that names the file."""
    try:
        yield
    except UnicodeDecodeError:
        raise LedgerError(_damaged(path)) from None
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_CORRUPT"):
            raise LedgerError(_damaged(path)) from None
        for start, reason in _REASONS.items():
            if name.startswith(start):
                raise LedgerError(f"{path}: {reason}") from None
        raise LedgerError(f"{path}: the ledger cannot be used: {error}") from None
