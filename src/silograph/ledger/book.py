"""A silo's durable record of the privacy budget that it has spent.

Spend first, release after: :meth:`Ledger.spend` returns when its entry is on the disk. A crash may
waste budget, and never overspends it.

The budget belongs to a *lineage*, a name that the silo gives its dataset. (A digest of the data
would start anew with every changed edge.) An epsilon is stored for every collusion level, because
views do not add up across runs; a limit counts at one level. What is stored at level t is the
largest loss of any coalition of at most t silos. Losses compose by addition: epsilons
add, and deltas add. A ledger bounds an edge's whole loss only if every run uses all silos; with
runs over some of them the ledgers of the edge's holders add.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> with Ledger(folder.name + "/silo.ledger") as ledger:
...     limit = ledger.set_limit("claims", epsilon=3.0, collusion=1)
...     spend = ledger.spend("claims", "run-1", "release", {0: 1.0, 1: 1.25},
...                          view="coordinator", method="feat/masked")
...     ledger.remaining("claims").epsilon
1.75
>>> folder.cleanup()
"""

import os
import sqlite3
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from silograph import whole_files
from silograph.errors import LedgerError, LedgerWarning
from silograph.ledger import chain, entries, file
from silograph.ledger import file as reading
from silograph.ledger.backup import back_up, restore_backup
from silograph.ledger.chain import Witness
from silograph.ledger.entries import (
    ANYONE,
    Amount,
    Limit,
    Spend,
    check_collusion,
    check_delta,
    check_loss,
    check_name,
    request,
    timestamp,
)

__all__ = ["Amount", "Ledger", "Limit", "NoLedger", "Session", "Spend", "Witness"]


# --- Transactions on a ledger's file, from any thread, and on both sides of a fork ----------------


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
                file.create(path, new)
            _sessions.add(self)
            self._connection = file.connect(path, whole=True)
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
        with self._lock, file.explained(self.path):
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


# --- The ledger -----------------------------------------------------------------------------------


def utc_now() -> datetime:
    """The clock of a real ledger."""
    return datetime.now(UTC)


class Ledger:
    """One SQLite file, open for reading and spending.

    Several processes, and several threads on one object, may use a file at once: a spend is one
    immediate transaction, which reads what was spent, checks the limit and writes. A ledger may
    be carried through ``os.fork`` and :mod:`multiprocessing`; parent and child each go on with a
    connection of their own. Nothing is written to a file that no longer holds what this object
    has seen of it.

    ``create=False`` refuses a file that is absent instead of starting an empty ledger there.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        try:
            self.path = Path(path).resolve()
        except (ValueError, OSError, RuntimeError) as error:
            raise LedgerError(f"{os.fspath(path)!r} cannot be a ledger's path: {error}") from None
        self._clock = clock
        self._totals = reading.Totals(self.path)  # used in transactions: by one thread at a time
        self._session = Session(self.path, timestamp(clock()) if create else None)
        with self._session.reading() as connection:
            row = connection.execute("SELECT identity, created FROM ledger").fetchone()
            self._seen = chain.head(connection)
        self.identity: str = row[0]
        self.created: str = row[1]

    def set_limit(
        self, lineage: str, epsilon: float, delta: float = 0.0, collusion: int = 1
    ) -> Limit:
        """Set the most that may be spent on ``lineage``, counted at level ``collusion``.

        Every change is kept; setting what is already set writes nothing. A limit below what is
        spent is allowed: nothing more can be spent then, and a :class:`LedgerWarning` says so.
        """
        limit = Limit(
            check_name("a lineage", lineage),
            check_loss("a limit's epsilon", epsilon),
            check_delta(delta),
            check_collusion(collusion),
            timestamp(self._clock()),
        )
        with self._session.writing() as connection:
            self._past(connection)
            current = reading.limit_in_force(connection, lineage)
            if current is not None and replace(current, time=limit.time) == limit:
                limit = current
            else:
                chain.add_limit(connection, self.path, limit)
            total = self._totals.at(connection, lineage, collusion)
            stood = chain.head(connection)
        self._seen = stood
        if total.passes(limit):
            warnings.warn(
                f"lineage {lineage!r}: the limit {limit.amount()} is below what is already spent, "
                f"{total.amount()}; nothing more can be spent",
                LedgerWarning,
                stacklevel=2,
            )
        return limit

    def spend(
        self,
        lineage: str,
        run: str,
        phase: str,
        losses: Mapping[int, float],
        delta: float = 0.0,
        *,
        view: str,
        method: str,
        unbounded: bool = False,
        new_lineage: bool = False,
    ) -> Spend:
        """Record a loss, before anything of it is released; on return it is on the disk.

        ``losses`` has an epsilon for each collusion level t = 0 … m−1, of which the largest up to
        each level is recorded; ``math.inf`` is taken only with ``unbounded=True``. The same spend
        again (a restarted party) costs nothing and returns the first entry; the same lineage, run
        and phase with anything else is refused.

        Raises :class:`BudgetError`, and writes nothing, if the limit of the lineage would be
        passed. A ledger that has limits refuses a lineage that it does not know, unless
        ``new_lineage`` says that it is new: a slip of the pen would escape every limit. Where
        ``losses`` has no entry at the limit's level, the next higher one counts.
        """
        asked = request(
            lineage, run, phase, losses, delta, view, method, unbounded, timestamp(self._clock())
        )
        with self._session.writing() as connection:
            last = self._past(connection)
            known = reading.find_spend(connection, lineage, run, phase)
            if known is not None:
                if not known.same_as(asked):
                    raise LedgerError(
                        f"{self.path}: this phase was already paid for with other numbers. "
                        f"Recorded: {known}. Asked: {asked}. A new release "
                        "needs a new run id"
                    )
                # Its writer may have died before it was on the disk.
                file.sync(self.path)
                return replace(known, repeated=True)
            if not new_lineage and reading.is_new(connection, lineage):
                raise LedgerError(
                    f"{self.path}: lineage {lineage!r} is not in this ledger, which has limits for "
                    f"{', '.join(map(repr, reading.lineages(connection)))}; if the dataset is "
                    "new, say so (--new-lineage, new_lineage=True). Nothing was spent"
                )
            limit = reading.limit_in_force(connection, lineage)
            if limit is not None:
                spent = self._totals.at(connection, lineage, limit.collusion)
                reading.check_budget(asked, spent, limit)
            number, end = chain.add_spend(connection, self.path, asked, last)
        self._seen = Witness(self.identity, *end)  # now that it is on the disk
        return replace(asked, number=number)

    def _past(self, connection: sqlite3.Connection) -> chain.End:
        """Where the ledger ends; refuses one that no longer holds what was seen of it here."""
        last = chain.end(connection)
        if last != (self._seen.serial, self._seen.digest):  # others have written, or worse
            chain.check_witness(connection, self.path, self._seen)
        return last

    def limit(self, lineage: str) -> Limit | None:
        """The limit in force, or None."""
        with self._session.reading() as connection:
            return reading.limit_in_force(connection, lineage)

    def limits(self, lineage: str | None = None) -> list[Limit]:
        """Every limit that was ever set, oldest first."""
        with self._session.reading() as connection:
            return reading.limit_history(connection, lineage)

    def spent(self, lineage: str, collusion: int | None = None) -> Amount:
        """What was spent, rounded up, at ``collusion`` (by default the limit's level, or else 1).

        ``epsilon`` is infinite where a spend has no bound at that level or recorded none.
        """
        level = None if collusion is None else check_collusion(collusion)
        with self._session.reading() as connection:
            if level is None:
                level = reading.level_in_force(reading.limit_in_force(connection, lineage))
            return self._totals.at(connection, lineage, level).amount()

    def remaining(self, lineage: str) -> Amount | None:
        """What is left, rounded down, at the limit's level; None if there is no limit."""
        with self._session.reading() as connection:
            limit = reading.limit_in_force(connection, lineage)
            if limit is None:
                return None
            return self._totals.at(connection, lineage, limit.collusion).left(limit)

    def rows(self, lineage: str | None = None) -> list[Spend]:
        """Every spend (of one lineage), oldest first."""
        with self._session.reading() as connection:
            return reading.spends(connection, lineage)

    def is_new(self, lineage: str) -> bool:
        """Whether the ledger has limits, and has never heard of this lineage."""
        with self._session.reading() as connection:
            return reading.is_new(connection, lineage)

    def lineages(self) -> list[str]:
        """Every lineage with a spend or a limit, by name."""
        with self._session.reading() as connection:
            return reading.lineages(connection)

    def witness(self) -> Witness:
        """Where the ledger stands: kept elsewhere, it shows later that nothing was taken back."""
        with self._session.reading() as connection:
            return chain.head(connection)

    def check_not_older_than(self, seen: Witness) -> None:
        """Raise :class:`RollbackError` unless what was seen of the ledger is still in it."""
        with self._session.reading() as connection:
            chain.check_witness(connection, self.path, seen)

    def verify(self) -> Witness:
        """Follow the whole chain again (opening the file did); where it ends."""
        with self._session.reading() as connection:
            return chain.verify(connection, self.path)

    def backup(self, path: str | os.PathLike[str]) -> Witness:
        """Copy the ledger, as it is at one moment, to a new file; where it stood then.

        The copy is read back, is on the disk, and is no ledger: nothing can be spent on it.
        """
        with self._session.reading() as connection:
            return back_up(connection, Path(path))

    @classmethod
    def restore(
        cls,
        backup: str | os.PathLike[str],
        path: str | os.PathLike[str],
        *,
        complete: bool = False,
        lost: Mapping[str, float | tuple[float, float]] | None = None,
        seen: Witness | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> "Ledger":
        """Make a ledger of a backup, where there is none, without giving budget back.

        What was spent since the backup is lost, and nobody can tell how much by looking at it. So
        one says it: with ``complete`` that nothing was spent since; or ``lost`` holds the epsilon
        (or the epsilon and the delta) that may have been spent on each lineage, which is recorded
        as spent. A lineage that it does not name counts as spent without a bound, and nothing
        more can be spent on it.

        ``seen`` is the last that anyone saw of the lost ledger, such as the witness in a party's
        state store. ``complete`` is refused if it is later than the backup; otherwise the
        restored ledger accounts for it, and :meth:`check_not_older_than` takes it.
        """
        restore_backup(Path(backup), Path(path), complete, lost or {}, seen, timestamp(clock()))
        return cls(path, create=False, clock=clock)

    def settings(self) -> dict[str, str | int]:
        """What the connection in use answers to the pragmas that durability rests on."""
        with self._session.reading() as connection:
            return {
                name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in file.SETTINGS
            }

    def export(self) -> dict[str, Any]:
        """The whole ledger as plain values for JSON, all from one moment."""
        with self._session.reading() as connection:
            rows = reading.spends(connection, None)
            lineages = []
            for lineage in reading.lineages(connection):
                limit = reading.limit_in_force(connection, lineage)
                own = [row for row in rows if row.lineage == lineage]
                levels = sorted({t for row in own for t in row.losses} - {ANYONE})
                total = self._totals.at(connection, lineage, reading.level_in_force(limit))
                lineages.append(
                    {
                        "lineage": lineage,
                        "spends": len(own),
                        "limit": None if limit is None else limit.to_dict(),
                        "spent": total.amount().to_dict(),
                        "spent_by_collusion": [
                            self._totals.at(connection, lineage, t).amount().to_dict()
                            for t in levels
                        ],
                        "remaining": None if limit is None else total.left(limit).to_dict(),
                    }
                )
            return {
                "format": whole_files.LEDGER.current,
                "identity": self.identity,
                "created": self.created,
                "witness": str(chain.head(connection)),
                "lineages": lineages,
                "limits": [limit.to_dict() for limit in reading.limit_history(connection, None)],
                "spends": [row.to_dict() for row in rows],
                "restores": reading.restores(connection),
            }

    def summary(self) -> str:
        """A table of at most 80 columns, one lineage a line."""
        return entries.render(self.path.name, self.export())

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    def close(self) -> None:
        """Close the file. A closed ledger stays closed."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class NoLedger:
    """Stands where a ledger would, for a local run without one; says once that it records nothing.

    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     none = NoLedger()
    ...     for run in "12":
    ...         spend = none.spend("toy", run, "release", {0: 1.0}, view="any", method="feat")
    >>> len(said)
    1
    """

    def __init__(self) -> None:
        self._said = False

    def spend(
        self,
        lineage: str,
        run: str,
        phase: str,
        losses: Mapping[int, float],
        delta: float = 0.0,
        *,
        view: str,
        method: str,
        unbounded: bool = False,
        new_lineage: bool = False,
    ) -> Spend:
        """Check the same arguments as :meth:`Ledger.spend`; record and limit nothing."""
        asked = request(
            lineage, run, phase, losses, delta, view, method, unbounded, timestamp(utc_now())
        )
        if not self._said:
            self._said = True
            warnings.warn(
                "this run is recorded nowhere: without a ledger nobody adds up what is spent on "
                "the data, and no limit holds",
                LedgerWarning,
                stacklevel=2,
            )
        return asked

    def close(self) -> None:
        """Nothing to close."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
