"""The file of a ledger: made whole or not at all, refused unless it is exactly one.

Durability rests on three settings of every connection: write-ahead log, ``synchronous=FULL``
(a commit returns when its log is on the disk) and a busy timeout. Spends, losses, limits and
restorations are append-only; triggers refuse to change or remove one, and to add one that is not
in the chain (:mod:`~silograph.runtime.ledger_chain`). A file of version 1, which had no chain, is
given one when it is opened; a program that only knows version 1 can then no longer write to it.
"""

import os
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from silograph.errors import LedgerError
from silograph.graph.whole_file import sync_path
from silograph.runtime import ledger_chain, versions

__all__ = [
    "APPLICATION_ID",
    "BACKUP_ID",
    "BUSY_SECONDS",
    "SETTINGS",
    "connect",
    "create",
    "explained",
    "sync",
]

#: "SILO", in the header of every ledger file.
APPLICATION_ID = 0x53494C4F
#: "SILB", in that of a backup: it is no ledger, and nothing is spent on it.
BACKUP_ID = 0x53494C42
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
# What version 2 adds: the chain, and the restorations that may step over lost serials.
_CHAIN = """
CREATE TABLE restores (
    number INTEGER PRIMARY KEY,
    base INTEGER NOT NULL CHECK (typeof(base) = 'integer' AND base >= 0),
    seen INTEGER CHECK (seen IS NULL OR typeof(seen) = 'integer' AND seen >= 0),
    seen_digest TEXT CHECK ((seen IS NULL) = (seen_digest IS NULL)),
    statement TEXT NOT NULL CHECK (statement IN ('complete', 'counted')),
    time TEXT NOT NULL CHECK (typeof(time) = 'text')
);
CREATE TABLE chain (
    serial INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('spend', 'limit', 'restore')),
    number INTEGER NOT NULL CHECK (typeof(number) = 'integer'),
    digest TEXT NOT NULL CHECK (typeof(digest) = 'text' AND length(digest) = 64)
);
"""
_KEPT = ("ledger", "spends", "losses", "limits")
_KEPT_SINCE_2 = ("restores", "chain")


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
            triggers = "; ".join([*_guards(*_KEPT, *_KEPT_SINCE_2), *_links()])
            new.executescript(f"BEGIN; {_TABLES} {_CHAIN} {triggers}; COMMIT;")
            new.execute(
                "INSERT INTO ledger VALUES (?, ?, ?)",
                (versions.LEDGER.current, str(uuid.uuid4()), time),
            )
        os.link(name, path)
        sync_path(path.parent)
    except FileExistsError:
        pass
    except OSError as error:
        raise LedgerError(f"{path}: cannot create the ledger: {error.strerror}") from None
    finally:
        for suffix in ("", "-wal", "-shm"):
            Path(name + suffix).unlink(missing_ok=True)


def _guards(*tables: str) -> list[str]:
    return [_guard(table, change) for table in tables for change in ("UPDATE", "DELETE")]


def _guard(table: str, change: str) -> str:
    return (
        f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'a ledger is only added to'); END"
    )


def _links() -> list[str]:
    """An entry's row is added right after its link of the chain, or not at all."""
    return [
        f"CREATE TRIGGER {table}_chained AFTER INSERT ON {table} WHEN NOT EXISTS "  # noqa: S608
        "(SELECT 1 FROM chain WHERE serial = (SELECT max(serial) FROM chain) "
        f"AND kind = '{kind}' AND number = NEW.number) "
        "BEGIN SELECT RAISE(ABORT, 'an entry that is not chained: use Silograph to write'); END"
        for kind, table in ledger_chain.TABLES.items()
    ]


def sync(path: Path) -> None:
    """Put all that is visible in the ledger at ``path`` on the disk.

    A writer that dies between writing the log and syncing it leaves an entry that others can see
    and a power cut can take. What has left the log is synced; so sync the log. (No locks are held
    on the log, so closing it here drops none.)
    """
    try:
        sync_path(Path(f"{path}-wal"))
        sync_path(path.parent)
    except FileNotFoundError:
        pass  # no log: all of it is in the file
    except OSError as error:
        raise LedgerError(f"{path}: cannot sync the ledger: {error.strerror}") from None


def connect(path: Path, whole: bool = False) -> sqlite3.Connection:
    """A connection with all :data:`SETTINGS`, to a file that is a ledger of this version.

    ``whole`` also reads the file from end to end, for damage and along its chain. A file that is
    refused is left as it was. (Nothing but SQLite may open and close the file in a process that
    uses it: closing any descriptor of a file drops the process's locks on it.)
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
            old = _check_kind(connection, path) == 1
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            for name, expected in SETTINGS.items():
                (found,) = connection.execute(f"PRAGMA {name}").fetchone()
                if found != expected:
                    raise LedgerError(f"{path}: {name} is {found!r}, and must be {expected!r}")
            if whole or old:
                (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
                if verdict != "ok" or connection.execute("PRAGMA foreign_key_check").fetchone():
                    raise LedgerError(_damaged(path))
            if old:
                _bring_up_to_date(connection)
            if whole:
                with _transaction(connection, "BEGIN"):  # one moment of it
                    ledger_chain.verify(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _bring_up_to_date(connection: sqlite3.Connection) -> None:
    """From version 1 to 2, at once or not at all; of several that race the first does it."""
    with _transaction(connection, "BEGIN IMMEDIATE"):
        (version,) = connection.execute("SELECT version FROM ledger").fetchone()
        if version != 1:
            return
        for statement in _CHAIN.split(";"):
            connection.execute(statement)
        ledger_chain.rebuild(connection)
        connection.execute("DROP TRIGGER IF EXISTS ledger_no_update")
        connection.execute("UPDATE ledger SET version = 2")
        for trigger in (_guard("ledger", "UPDATE"), *_guards(*_KEPT_SINCE_2), *_links()):
            connection.execute(trigger)


def _check_kind(connection: sqlite3.Connection, path: Path) -> int:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application == BACKUP_ID:
        raise LedgerError(
            f"{path}: a ledger's backup, and no ledger: use 'silograph ledger restore', which "
            "counts what was spent since"
        )
    if application != APPLICATION_ID:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        what = "another program's database" if pages else "empty"
        raise LedgerError(f"{path}: not a Silograph ledger: the file is {what}")
    table = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'ledger'"
    ).fetchone()
    found = connection.execute("SELECT version FROM ledger").fetchall() if table else []
    if len(found) != 1:
        raise LedgerError(_damaged(path))
    return versions.LEDGER.check(found[0][0], path, LedgerError)


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
