"""The SQLite file of a ledger: how it is created, opened, checked and read.

Durability depends on three settings of every connection: a write-ahead log (a file that SQLite
writes first, called "the log" below), ``synchronous=FULL`` (a commit returns when the log is on the
disk), and a busy timeout. Spends, losses, limits, restorations and freezes are append-only.
Triggers refuse to change or remove a row, and to add one that is not in the chain
(:mod:`~silograph.ledger.chain`).
"""

import math
import os
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from silograph import whole_files
from silograph.errors import BudgetError, FrozenError, LedgerError
from silograph.ledger import chain
from silograph.ledger.entries import (
    Amount,
    Freeze,
    Limit,
    Spend,
    from_units,
    loss_at,
    round_down,
    round_up,
    to_units,
)
from silograph.whole_files import sync_path

__all__ = [
    "APPLICATION_ID",
    "BACKUP_ID",
    "BUSY_SECONDS",
    "DEFAULT_COLLUSION",
    "SETTINGS",
    "Total",
    "Totals",
    "check_budget",
    "check_thawed",
    "connect",
    "create",
    "explained",
    "find_spend",
    "freeze_in_force",
    "freezes",
    "is_new",
    "level_in_force",
    "limit_history",
    "limit_in_force",
    "lineages",
    "spends",
    "sync",
]


# --- The file -------------------------------------------------------------------------------------

#: "SILO", in the header of every ledger file.
APPLICATION_ID = 0x53494C4F
#: "SILB", in the header of every backup. Nothing can be spent on a backup.
BACKUP_ID = 0x53494C42
#: How long a process waits for other processes before it gives up.
BUSY_SECONDS = 60.0

#: The answer that every connection must give to ``PRAGMA name``.
SETTINGS: dict[str, str | int] = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL
    "foreign_keys": 1,
    "busy_timeout": int(1000 * BUSY_SECONDS),
}

# SQLite stores values of any type in any column; the checks enforce the type.
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
-- One row per collusion level; a null epsilon is a loss without a bound.
CREATE TABLE losses (
    spend INTEGER NOT NULL REFERENCES spends,
    collusion INTEGER NOT NULL CHECK (typeof(collusion) = 'integer' AND collusion >= 0),
    epsilon REAL CHECK (
        epsilon IS NULL OR typeof(epsilon) = 'real' AND epsilon >= 0 AND epsilon < 9e999
    ),
    PRIMARY KEY (spend, collusion)
) WITHOUT ROWID;
-- All limits that were ever set; the last one of a lineage is in force.
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
# Version 2 added the chain, and restorations, which may skip lost serials.
_RESTORES = """
CREATE TABLE restores (
    number INTEGER PRIMARY KEY,
    base INTEGER NOT NULL CHECK (typeof(base) = 'integer' AND base >= 0),
    seen INTEGER CHECK (seen IS NULL OR typeof(seen) = 'integer' AND seen >= 0),
    seen_digest TEXT CHECK ((seen IS NULL) = (seen_digest IS NULL)),
    statement TEXT NOT NULL CHECK (statement IN ('complete', 'counted')),
    time TEXT NOT NULL CHECK (typeof(time) = 'text')
);
"""
# Version 3 added freezes, which are a new kind of entry in the chain.
_CHAIN = """
CREATE TABLE freezes (
    number INTEGER PRIMARY KEY,
    frozen INTEGER NOT NULL CHECK (frozen IN (0, 1)),
    reason TEXT NOT NULL CHECK (typeof(reason) = 'text'),
    time TEXT NOT NULL CHECK (typeof(time) = 'text')
);
CREATE TABLE chain (
    serial INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('spend', 'limit', 'restore', 'freeze')),
    number INTEGER NOT NULL CHECK (typeof(number) = 'integer'),
    digest TEXT NOT NULL CHECK (typeof(digest) = 'text' AND length(digest) = 64)
);
"""
_KEPT = ("ledger", "spends", "losses", "limits", "restores", "freezes", "chain")


def create(path: Path, time: str) -> None:
    """Make a new ledger of mode 0600 at ``path``, unless something is there already.

    The file is made under a temporary name and linked into place when it is complete. A process
    that dies here leaves no partial ledger. If several processes create the same ledger at once,
    one of them succeeds and the others open its file.
    """
    if Path(f"{path}-wal").exists() and not path.exists():
        raise LedgerError(
            f"{path}: the ledger is gone, but its log {path.name}-wal is still there. Restore the "
            "ledger from a backup; a new one would forget what was spent"
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
            triggers = "; ".join([*_guards(*_KEPT), *_links()])
            new.executescript(f"BEGIN; {_TABLES} {_RESTORES} {_CHAIN} {triggers}; COMMIT;")
            new.execute(
                "INSERT INTO ledger VALUES (?, ?, ?)",
                (whole_files.LEDGER.current, str(uuid.uuid4()), time),
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
    """Return triggers that allow an entry's row only directly after its link in the chain."""
    return [
        f"CREATE TRIGGER {table}_chained AFTER INSERT ON {table} WHEN NOT EXISTS "  # noqa: S608
        "(SELECT 1 FROM chain WHERE serial = (SELECT max(serial) FROM chain) "
        f"AND kind = '{kind}' AND number = NEW.number) "
        "BEGIN SELECT RAISE(ABORT, 'an entry that is not chained: use Silograph to write'); END"
        for kind, table in chain.TABLES.items()
    ]


def sync(path: Path) -> None:
    """Make sure that everything visible in the ledger at ``path`` is on the disk.

    A writer that dies after writing the log and before syncing it leaves an entry that other
    processes see, but that a power cut can remove. SQLite syncs what it moves from the log to the
    main file, so it is enough to sync the log. SQLite holds no locks on the log, so opening and
    closing it here drops none.
    """
    try:
        sync_path(Path(f"{path}-wal"))
        sync_path(path.parent)
    except FileNotFoundError:
        pass  # without a log, everything is in the main file
    except OSError as error:
        raise LedgerError(f"{path}: cannot sync the ledger: {error.strerror}") from None


def connect(path: Path, whole: bool = False) -> sqlite3.Connection:
    """Connect to a ledger of this version, with all :data:`SETTINGS`.

    ``whole`` also reads the whole file, to check it for damage and to check its chain. A file that
    is refused is not changed. Only SQLite may open and close the file in a process that uses it,
    because closing any descriptor of a file drops the process's locks on it.
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
            version = _check_kind(connection, path)
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
                old = version < whole_files.LEDGER.current
                with _transaction(connection, "BEGIN IMMEDIATE" if old else "BEGIN"):
                    if old:
                        _bring_up_to_date(connection)
                    chain.verify(connection, path)
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
    """Make a ledger of version 2 one of version 3, inside the caller's transaction.

    No entry and no digest is changed, so every witness still fits.
    """
    (version,) = connection.execute("SELECT version FROM ledger").fetchone()
    if version != 2:  # another process was faster
        return
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    for (name,) in triggers.fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("ALTER TABLE chain RENAME TO old_chain")
    for statement in _CHAIN.split(";\n"):
        connection.execute(statement)
    connection.execute("INSERT INTO chain SELECT * FROM old_chain")
    connection.execute("DROP TABLE old_chain")
    connection.execute("UPDATE ledger SET version = 3")
    for statement in (*_guards(*_KEPT), *_links()):
        connection.execute(statement)


def _check_kind(connection: sqlite3.Connection, path: Path) -> int:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application == BACKUP_ID:
        raise LedgerError(
            f"{path}: this is a ledger's backup, not a ledger. Use 'silograph ledger restore', "
            "which counts what was spent since"
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
    return whole_files.LEDGER.check(found[0][0], path, LedgerError)


def _damaged(path: Path) -> str:
    return (
        f"{path}: the ledger is damaged or truncated. Restore it from a backup; a new one would "
        "forget what was spent"
    )


_REASONS = {
    "SQLITE_NOTADB": "not a Silograph ledger: the file is not a database",
    "SQLITE_BUSY": f"other processes have kept the ledger busy for {BUSY_SECONDS:g} s",
    "SQLITE_CANTOPEN": "cannot open the ledger: it, or its folder, is absent or may not be written",
    "SQLITE_READONLY": "cannot write the ledger: it, or its folder, is read-only",
    "SQLITE_FULL": "cannot write the ledger: the disk is full",
    "SQLITE_IOERR": "cannot read or write the ledger: the disk reports an error",
}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn every SQLite error into a :class:`LedgerError` that names the file."""
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


# --- Reading the tables, inside the caller's transaction ------------------------------------------

#: The collusion level at which a lineage without a limit is shown.
DEFAULT_COLLUSION = 1


@dataclass(frozen=True)
class Total:
    """The exact amount spent, in units. ``epsilon`` is None if some loss has no bound."""

    epsilon: int | None
    delta: int
    collusion: int

    def amount(self) -> Amount:
        """Return the amount spent as floats, rounded up."""
        epsilon = math.inf if self.epsilon is None else round_up(from_units(self.epsilon))
        return Amount(epsilon, round_up(from_units(self.delta)), self.collusion)

    def left(self, limit: Limit) -> Amount:
        """Return what is left of a limit as floats, rounded down."""
        epsilon = 0 if self.epsilon is None else max(to_units(limit.epsilon) - self.epsilon, 0)
        delta = max(to_units(limit.delta) - self.delta, 0)
        return Amount(
            round_down(from_units(epsilon)), round_down(from_units(delta)), limit.collusion
        )

    def passes(self, limit: Limit) -> bool:
        """Return whether this is more than the limit."""
        return (
            self.epsilon is None
            or self.epsilon > to_units(limit.epsilon)
            or self.delta > to_units(limit.delta)
        )

    def plus(self, epsilon: float | None, delta: float) -> "Total":
        """Return the sum of this and one more loss. None and infinity mean "without a bound"."""
        if self.epsilon is None or epsilon is None or math.isinf(epsilon):
            added = None
        else:
            added = self.epsilon + to_units(epsilon)
        return Total(added, self.delta + to_units(delta), self.collusion)


class Totals:
    """Totals by lineage and collusion level. Each call reads only the spends added since the last.

    This is correct because a ledger only grows, in the order of its entries' numbers. A ledger that
    has lost entries in the meantime is refused.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[tuple[str, int], tuple[int, Total]] = {}

    def at(self, connection: sqlite3.Connection, lineage: str, collusion: int) -> Total:
        """Return the total spent on a lineage at one collusion level.

        Each spend counts with the loss that :func:`~silograph.ledger.entries.loss_at` gives.
        """
        start = (0, Total(0, 0, collusion))
        seen, spent = self._known.get((lineage, collusion), start)
        (last,) = connection.execute("SELECT ifnull(max(number), 0) FROM spends").fetchone()
        if last < seen:
            raise LedgerError(
                f"{self._path}: the ledger has lost entries: it had {seen}, and now has {last}. "
                "Restore it from a backup; nothing was spent"
            )
        for delta, epsilon in connection.execute(
            # "+lineage" makes SQLite search by number instead of by lineage.
            # The inner query gives null, which means no bound, if an epsilon is null or if no level
            # is high enough.
            "SELECT delta, (SELECT CASE WHEN count(*) = count(epsilon) THEN max(epsilon) END"
            " FROM losses WHERE spend = number AND collusion <="
            " (SELECT min(collusion) FROM losses WHERE spend = number AND collusion >= ?))"
            " FROM spends WHERE number > ? AND +lineage = ?",
            (collusion, seen, lineage),
        ):
            spent = spent.plus(epsilon, delta)
        self._known[lineage, collusion] = (last, spent)
        return spent


def level_in_force(limit: Limit | None) -> int:
    """Return the collusion level of a limit, or the default level if there is no limit."""
    return DEFAULT_COLLUSION if limit is None else limit.collusion


def check_budget(asked: Spend, spent: Total, limit: Limit) -> None:
    """Refuse a spend that would bring the total at the limit's level above the limit."""
    level, epsilon = loss_at(asked.losses, limit.collusion)
    if not spent.plus(epsilon, asked.delta).passes(limit):
        return
    left = spent.left(limit)
    wanted = Amount(epsilon, asked.delta, limit.collusion)
    if math.isinf(epsilon) and limit.collusion > max(asked.losses):
        note = " (no loss was given for that level or a higher one)"
    else:
        note = "" if level == limit.collusion else f" (counted from t = {level})"
    fits = asked.delta > 0 and not spent.plus(epsilon, 0.0).passes(limit)
    advice = "; without delta it would fit: ask with delta 0" if fits else ""
    raise BudgetError(
        f"the budget of lineage {asked.lineage!r} does not allow it: the {asked.phase} of run "
        f"{asked.run} costs {wanted} at t = {limit.collusion}{note}, and {left.text(left=True)} "
        f"is left of {limit.amount()}; "
        f"nothing was spent{advice}",
        asked.lineage,
        limit.collusion,
        (epsilon, asked.delta),
        (left.epsilon, left.delta),
    )


def limit_in_force(connection: sqlite3.Connection, lineage: str) -> Limit | None:
    """Return the last limit that was set, or None."""
    row = connection.execute(
        "SELECT lineage, epsilon, delta, collusion, time FROM limits"
        " WHERE lineage = ? ORDER BY number DESC LIMIT 1",
        (lineage,),
    ).fetchone()
    return None if row is None else Limit(*row)


def limit_history(connection: sqlite3.Connection, lineage: str | None) -> list[Limit]:
    """Return every limit that was set, for one lineage or for all, oldest first."""
    found = connection.execute(
        "SELECT lineage, epsilon, delta, collusion, time FROM limits"
        " WHERE ?1 IS NULL OR lineage = ?1 ORDER BY number",
        (lineage,),
    )
    return [Limit(*row) for row in found]


def freezes(connection: sqlite3.Connection) -> list[Freeze]:
    """Return every time that the ledger was frozen or thawed, oldest first."""
    found = connection.execute("SELECT frozen, reason, time FROM freezes ORDER BY number")
    return [Freeze(bool(frozen), reason, time) for frozen, reason, time in found]


def freeze_in_force(connection: sqlite3.Connection) -> Freeze | None:
    """Return why and since when the ledger is frozen, or None if it is not."""
    row = connection.execute(
        "SELECT frozen, reason, time FROM freezes ORDER BY number DESC LIMIT 1"
    ).fetchone()
    return Freeze(True, *row[1:]) if row is not None and row[0] else None


def check_thawed(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a ledger that is frozen."""
    freeze = freeze_in_force(connection)
    if freeze is not None:
        raise FrozenError(
            f"{path}: the ledger is frozen since {freeze.time[:19]}: {freeze.reason}. Nothing can "
            "be spent until its operator has found out why: 'silograph ledger thaw'"
        )


def spends(connection: sqlite3.Connection, lineage: str | None) -> list[Spend]:
    """Return every spend, of one lineage or of all, oldest first."""
    losses: dict[int, dict[int, float]] = {}
    for spend, collusion, epsilon in connection.execute("SELECT * FROM losses"):
        losses.setdefault(spend, {})[collusion] = math.inf if epsilon is None else epsilon
    found = connection.execute(
        "SELECT number, lineage, run, phase, delta, view, method, time FROM spends"
        " WHERE ?1 IS NULL OR lineage = ?1 ORDER BY number",
        (lineage,),
    )
    return [_spend(row, losses.get(row[0], {})) for row in found]


def find_spend(connection: sqlite3.Connection, lineage: str, run: str, phase: str) -> Spend | None:
    """Return the spend of one phase of one run, or None."""
    row = connection.execute(
        "SELECT number, lineage, run, phase, delta, view, method, time FROM spends"
        " WHERE lineage = ? AND run = ? AND phase = ?",
        (lineage, run, phase),
    ).fetchone()
    if row is None:
        return None
    losses = connection.execute("SELECT collusion, epsilon FROM losses WHERE spend = ?", row[:1])
    return _spend(row, {t: math.inf if epsilon is None else epsilon for t, epsilon in losses})


def _spend(row: tuple[int, str, str, str, float, str, str, str], losses: dict[int, float]) -> Spend:
    number, lineage, run, phase, delta, view, method, time = row
    return Spend(number, lineage, run, phase, losses, delta, view, method, time)


def lineages(connection: sqlite3.Connection) -> list[str]:
    """Return every lineage that has a spend or a limit, sorted by name."""
    found = connection.execute(
        "SELECT lineage FROM spends UNION SELECT lineage FROM limits ORDER BY lineage"
    )
    return [lineage for (lineage,) in found]


def is_new(connection: sqlite3.Connection, lineage: str) -> bool:
    """Return whether the ledger has limits, but no limit and no spend for this lineage."""
    (found,) = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM limits)"
        " AND NOT EXISTS (SELECT 1 FROM limits WHERE lineage = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM spends WHERE lineage = ?1)",
        (lineage,),
    ).fetchone()
    return bool(found)
