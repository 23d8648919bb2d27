"""A silo's durable record of the privacy budget that it has spent.

A loss is recorded before anything is released: :meth:`Ledger.spend` returns when its entry is on
the disk. A crash may waste budget, but it never overspends it.

The budget belongs to a *lineage*, the name that the silo gives its dataset. (A digest of the data
would change with every edge, and each change would start a new budget.) One epsilon is stored for
every *collusion level* t: the largest loss against any coalition of at most t silos. All levels are
stored because the view with the largest loss can differ from run to run. A limit counts at one
level. Losses add up: epsilons add, and deltas add. A ledger bounds the total loss of an edge only
if every run uses all silos. If some runs use only some of the silos, the total loss is bounded by
the sum over the ledgers of all silos that hold the edge.

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
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from silograph import whole_files
from silograph.errors import ArgumentError, LedgerError, LedgerWarning
from silograph.ledger import chain, entries, file
from silograph.ledger.backup import (
    Records,
    add_lost,
    amount_lost,
    back_up,
    prune,
    restore_backup,
    restores,
)
from silograph.ledger.chain import Witness
from silograph.ledger.entries import (
    ANYONE,
    Amount,
    Freeze,
    Limit,
    Spend,
    check_collusion,
    check_delta,
    check_loss,
    check_name,
    request,
    timestamp,
)
from silograph.ledger.transactions import Transactions

__all__ = ["Amount", "Freeze", "Ledger", "Limit", "NoLedger", "Records", "Spend", "Witness"]


def utc_now() -> datetime:
    """Return the current time; the default clock of a ledger."""
    return datetime.now(UTC)


class Ledger:
    """A ledger: one SQLite file, open for reading and spending.

    Several processes, and several threads with the same object, may use a ledger at once. A spend
    is one exclusive transaction that reads what was spent, checks the limit and writes. A ledger
    may be carried through ``os.fork`` and :mod:`multiprocessing`; parent and child then use
    separate connections. Nothing is written to a file that no longer contains what this object has
    seen of it. A ledger is a context manager that closes its file.

    Every method raises :class:`~silograph.errors.LedgerError` if the ledger is closed or if its
    file is damaged, missing, replaced or busy.

    Parameters
    ----------
    path : str or path-like
        The file of the ledger.
    create : bool
        If True, a missing file is created as an empty ledger. If False, it is refused.
    clock : callable
        Returns the current time, with a time zone.

    Attributes
    ----------
    path : pathlib.Path
        The absolute path of the file.
    identity : str
        A random name of this ledger (a UUID), which never changes.
    created : str
        The time of creation, in UTC.

    Raises
    ------
    LedgerError
        If the file is not a ledger, is damaged, or cannot be opened or created.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
    ...     limit = ledger.set_limit("claims", epsilon=3.0)
    ...     print(ledger.remaining("claims"))
    ε = 3
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
        self._totals = file.Totals(self.path)  # only used in transactions, by one thread
        self._transactions = Transactions(self.path, timestamp(clock()) if create else None)
        with self._transactions.reading() as connection:
            row = connection.execute("SELECT identity, created FROM ledger").fetchone()
            self._seen = chain.head(connection)
        self.identity: str = row[0]
        self.created: str = row[1]

    def set_limit(
        self,
        lineage: str,
        epsilon: float,
        delta: float = 0.0,
        collusion: int = 1,
        *,
        only_lower: bool = False,
    ) -> Limit:
        """Set the most that may be spent on a lineage.

        Every change is kept in the ledger. Setting the limit that is already in force writes
        nothing. A limit below the amount already spent is allowed: a
        :class:`~silograph.errors.LedgerWarning` says so, and nothing more can be spent.

        Parameters
        ----------
        lineage : str
            The name of the dataset.
        epsilon : float
            The most epsilon, in total.
        delta : float
            The most delta, in total.
        collusion : int
            The collusion level at which losses are counted.
        only_lower : bool
            If True, the limit that is already in force is never loosened: the lower epsilon, the
            lower delta and the higher level hold.

        Returns
        -------
        Limit
            The limit in force.

        Raises
        ------
        ArgumentError
            If an argument is not valid.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     limit = ledger.set_limit("claims", epsilon=3.0, delta=1e-6)
        ...     print(limit.amount())
        ε = 3, δ = 1e-6
        """
        limit = Limit(
            check_name("a lineage", lineage),
            check_loss("a limit's epsilon", epsilon),
            check_delta(delta),
            check_collusion(collusion),
            timestamp(self._clock()),
        )
        with self._transactions.writing() as connection:
            self._past(connection)
            current = file.limit_in_force(connection, lineage)
            if only_lower and current is not None:
                limit = limit.tightened(current)
            if current is not None and replace(current, time=limit.time) == limit:
                limit = current
            else:
                chain.add_limit(connection, self.path, limit)
            total = self._totals.at(connection, lineage, limit.collusion)
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
        """Record a loss. Call this before anything that the loss pays for is released.

        When this method returns, the entry is on the disk. Recording the same spend again, as a
        restarted party does, costs nothing and returns the first entry.

        Parameters
        ----------
        lineage : str
            The name of the dataset.
        run : str
            The id of the run.
        phase : str
            The phase of the run that is paid for.
        losses : mapping from int to float
            An epsilon for each collusion level t = 0 … m−1, with m silos. The largest one up to
            each level is recorded. If the limit's level is missing, the next higher level counts.
        delta : float
            The delta of this phase.
        view : str
            Who may be looking; recorded as given.
        method : str
            The method that is paid for; recorded as given.
        unbounded : bool
            Whether an epsilon may be ``math.inf``.
        new_lineage : bool
            Allow a lineage that is not in this ledger although the ledger has limits. Without this
            check, a misspelt lineage would escape every limit.

        Returns
        -------
        Spend
            The entry. Its ``repeated`` is True if it was already there.

        Raises
        ------
        BudgetError
            If the limit of the lineage would be exceeded. Nothing is written.
        LedgerError
            If this phase of this run is already recorded with other values, or if the lineage is
            unknown (see ``new_lineage``). Nothing is written.
        FrozenError
            If the ledger is frozen, even if the spend was recorded before. Nothing is written.
        ArgumentError
            If an argument is not valid.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     spend = ledger.spend("claims", "run-1", "release", {0: 1.0, 1: 1.25},
        ...                          view="coordinator", method="feat/masked")
        ...     print(spend.number, spend)
        1 feat/masked, ε at t = 0: 1.0, t = 1: 1.25, view coordinator
        """
        asked = request(
            lineage, run, phase, losses, delta, view, method, unbounded, timestamp(self._clock())
        )
        with self._transactions.writing() as connection:
            last = self._past(connection)
            file.check_thawed(connection, self.path)
            known = file.find_spend(connection, lineage, run, phase)
            if known is not None:
                if not known.same_as(asked):
                    raise LedgerError(
                        f"{self.path}: this phase was already paid for with other numbers. "
                        f"Recorded: {known}. Asked: {asked}. A new release "
                        "needs a new run id"
                    )
                # The process that wrote the entry may have died before it was on the disk.
                file.sync(self.path)
                return replace(known, repeated=True)
            if not new_lineage and file.is_new(connection, lineage):
                raise LedgerError(
                    f"{self.path}: lineage {lineage!r} is not in this ledger, which has limits for "
                    f"{', '.join(map(repr, file.lineages(connection)))}; if the dataset is "
                    "new, say so (--new-lineage, new_lineage=True). Nothing was spent"
                )
            limit = file.limit_in_force(connection, lineage)
            if limit is not None:
                spent = self._totals.at(connection, lineage, limit.collusion)
                file.check_budget(asked, spent, limit)
            number, end = chain.add_spend(connection, self.path, asked, last)
        self._seen = Witness(self.identity, *end)  # now that it is on the disk
        return replace(asked, number=number)

    def _past(self, connection: sqlite3.Connection) -> chain.End:
        """Return the end of the chain; refuse a file that has lost what was seen of it here."""
        last = chain.end(connection)
        if last != (self._seen.serial, self._seen.digest):  # another process changed the file
            chain.check_witness(connection, self.path, self._seen)
        return last

    def limit(self, lineage: str) -> Limit | None:
        """Return the limit in force for a lineage.

        Parameters
        ----------
        lineage : str
            The name of the dataset.

        Returns
        -------
        Limit or None
            The limit that was set last, or None if there is none.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     print(ledger.limit("claims"))
        None
        """
        with self._transactions.reading() as connection:
            return file.limit_in_force(connection, lineage)

    def limits(self, lineage: str | None = None) -> list[Limit]:
        """Return every limit that was ever set, oldest first.

        Parameters
        ----------
        lineage : str, optional
            Only the limits of this lineage.

        Returns
        -------
        list of Limit
            The limits.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     for epsilon in (3.0, 5.0):
        ...         limit = ledger.set_limit("claims", epsilon)
        ...     [limit.epsilon for limit in ledger.limits("claims")]
        [3.0, 5.0]
        """
        with self._transactions.reading() as connection:
            return file.limit_history(connection, lineage)

    def spent(self, lineage: str, collusion: int | None = None) -> Amount:
        """Return the total spent on a lineage, rounded up.

        Parameters
        ----------
        lineage : str
            The name of the dataset.
        collusion : int, optional
            The collusion level. The default is the limit's level, or 1 without a limit.

        Returns
        -------
        Amount
            The total. Its ``epsilon`` is infinite if a spend has no bound at this level, or
            recorded no loss at this level or a higher one.

        Raises
        ------
        ArgumentError
            If ``collusion`` is not an integer of at least 0.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     for run in ("run-1", "run-2"):
        ...         spend = ledger.spend("claims", run, "release", {0: 1.0, 1: 1.25},
        ...                              view="coordinator", method="feat/masked")
        ...     print(ledger.spent("claims"))
        ε = 2.5
        """
        level = None if collusion is None else check_collusion(collusion)
        with self._transactions.reading() as connection:
            if level is None:
                level = file.level_in_force(file.limit_in_force(connection, lineage))
            return self._totals.at(connection, lineage, level).amount()

    def remaining(self, lineage: str) -> Amount | None:
        """Return what is left of a lineage's limit, rounded down.

        Parameters
        ----------
        lineage : str
            The name of the dataset.

        Returns
        -------
        Amount or None
            What is left at the limit's collusion level, or None if there is no limit.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     limit = ledger.set_limit("claims", epsilon=3.0)
        ...     spend = ledger.spend("claims", "run-1", "release", {0: 1.0, 1: 1.25},
        ...                          view="coordinator", method="feat/masked")
        ...     print(ledger.remaining("claims"))
        ε = 1.75
        """
        with self._transactions.reading() as connection:
            limit = file.limit_in_force(connection, lineage)
            if limit is None:
                return None
            return self._totals.at(connection, lineage, limit.collusion).left(limit)

    def rows(self, lineage: str | None = None) -> list[Spend]:
        """Return every spend, oldest first.

        Parameters
        ----------
        lineage : str, optional
            Only the spends of this lineage.

        Returns
        -------
        list of Spend
            The spends.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     spend = ledger.spend("claims", "run-1", "release", {0: 1.0, 1: 1.25},
        ...                          view="coordinator", method="feat/masked")
        ...     [(row.number, row.run) for row in ledger.rows()]
        [(1, 'run-1')]
        """
        with self._transactions.reading() as connection:
            return file.spends(connection, lineage)

    def is_new(self, lineage: str) -> bool:
        """Return whether :meth:`spend` would refuse this lineage as unknown.

        Parameters
        ----------
        lineage : str
            The name of the dataset.

        Returns
        -------
        bool
            True if the ledger has limits, but no limit and no spend for this lineage.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     limit = ledger.set_limit("claims", epsilon=3.0)
        ...     ledger.is_new("claims"), ledger.is_new("clams")
        (False, True)
        """
        with self._transactions.reading() as connection:
            return file.is_new(connection, lineage)

    def lineages(self) -> list[str]:
        """Return every lineage that has a spend or a limit.

        Returns
        -------
        list of str
            The names of the lineages, sorted.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     for lineage in ("payments", "claims"):
        ...         limit = ledger.set_limit(lineage, epsilon=3.0)
        ...     ledger.lineages()
        ['claims', 'payments']
        """
        with self._transactions.reading() as connection:
            return file.lineages(connection)

    def witness(self) -> Witness:
        """Return the witness of the last entry.

        A witness that is kept elsewhere shows later whether entries were removed or replaced; see
        :meth:`check_not_older_than`.

        Returns
        -------
        Witness
            The ledger's identity, and the last entry's serial and digest.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     limit = ledger.set_limit("claims", epsilon=3.0)
        ...     ledger.witness().serial
        1
        """
        with self._transactions.reading() as connection:
            return chain.head(connection)

    def check_not_older_than(self, seen: Witness) -> None:
        """Check that the ledger still contains an entry that was seen earlier.

        Parameters
        ----------
        seen : Witness
            A witness of this ledger that was noted earlier.

        Raises
        ------
        RollbackError
            If the ledger does not contain that entry: it is an old copy, another ledger, or one
            with another history.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     seen = ledger.witness()
        ...     limit = ledger.set_limit("claims", epsilon=3.0)
        ...     ledger.check_not_older_than(seen)
        """
        with self._transactions.reading() as connection:
            chain.check_witness(connection, self.path, seen)

    def verify(self) -> Witness:
        """Check the whole chain of entries again. Opening the ledger has checked it once.

        Returns
        -------
        Witness
            The witness of the last entry.

        Raises
        ------
        LedgerError
            If an entry was changed, removed or inserted.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     ledger.verify() == ledger.witness()
        True
        """
        with self._transactions.reading() as connection:
            return chain.verify(connection, self.path)

    def freeze(self, reason: str) -> Freeze:
        """Stop all spending until :meth:`thaw`. The entry is on the disk when this returns.

        Parameters
        ----------
        reason : str
            Why; recorded as given.

        Returns
        -------
        Freeze
            The entry, or the one by which the ledger was frozen already.

        Raises
        ------
        ArgumentError
            If the reason is empty, too long or not printable.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     freeze = ledger.freeze("two machines have this identity")
        ...     ledger.frozen() == freeze
        True
        """
        freeze = Freeze(True, check_name("a reason", reason), timestamp(self._clock()))
        with self._transactions.writing() as connection:
            self._past(connection)
            current = file.freeze_in_force(connection)
            if current is not None:
                return current
            chain.add_freeze(connection, self.path, freeze)
            stood = chain.head(connection)
        self._seen = stood
        return freeze

    def thaw(
        self, reason: str, lost: Mapping[str, float | tuple[float, float]] | None = None
    ) -> Freeze:
        """Allow spending again on a frozen ledger.

        Parameters
        ----------
        reason : str
            What was found out; recorded as given.
        lost : mapping, optional
            For each lineage, the epsilon, or the epsilon and the delta, that may have been spent
            and is not in this ledger, such as by a clone of the machine. It is recorded as spent.

        Returns
        -------
        Freeze
            The entry.

        Raises
        ------
        LedgerError
            If the ledger is not frozen.
        ArgumentError
            If the reason or an amount is not valid, or a lineage is not in the ledger.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     limit = ledger.set_limit("claims", epsilon=3.0)
        ...     freeze = ledger.freeze("two machines have this identity")
        ...     thawed = ledger.thaw("the clone is off; it spent at most 1", {"claims": 1.0})
        ...     print(ledger.remaining("claims"))
        ε = 2
        """
        thawed = Freeze(False, check_name("a reason", reason), timestamp(self._clock()))
        amounts = {lineage: amount_lost(value) for lineage, value in (lost or {}).items()}
        with self._transactions.writing() as connection:
            self._past(connection)
            if file.freeze_in_force(connection) is None:
                raise LedgerError(f"{self.path}: the ledger is not frozen")
            unknown = sorted(amounts.keys() - set(file.lineages(connection)))
            if unknown:
                raise ArgumentError(f"{self.path}: there is no lineage {unknown[0]!r}")
            number = chain.add_freeze(connection, self.path, thawed)
            for lineage, amount in amounts.items():
                add_lost(connection, self.path, lineage, f"thaw-{number}", amount, thawed.time)
            stood = chain.head(connection)
        self._seen = stood
        return thawed

    def frozen(self) -> Freeze | None:
        """Return why and since when the ledger is frozen.

        Returns
        -------
        Freeze or None
            The entry that froze it, or None if it is not frozen.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     print(ledger.frozen())
        None
        """
        with self._transactions.reading() as connection:
            return file.freeze_in_force(connection)

    def check_thawed(self) -> None:
        """Check that the ledger is not frozen.

        Raises
        ------
        FrozenError
            If it is; the message says since when and why.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     ledger.check_thawed()
        """
        with self._transactions.reading() as connection:
            file.check_thawed(connection, self.path)

    def backup(self, path: str | os.PathLike[str], keep: int | None = None) -> Witness:
        """Copy the ledger, as it is at one moment, to a new file.

        The copy is read back and synced to the disk. It is not a ledger, and nothing can be spent
        on it; :meth:`restore` makes a ledger from it.

        Parameters
        ----------
        path : str or path-like
            The file to create.
        keep : int, optional
            Remove all but the newest so many backups in the same folder, when the new one is there.

        Returns
        -------
        Witness
            The witness of the last entry in the copy.

        Raises
        ------
        LedgerError
            If the file already exists or cannot be written, or if ``keep`` is given and the folder
            holds backups of another ledger.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     ledger.backup(f"{folder}/silo.backup") == ledger.witness()
        True
        """
        if keep is not None and keep < 1:
            raise ArgumentError(f"at least one backup is kept, not {keep}")
        with self._transactions.reading() as connection:
            stood = back_up(connection, Path(path))
        if keep is not None:
            prune(Path(path).parent, keep)
        return stood

    @classmethod
    def restore(
        cls,
        backup: str | os.PathLike[str],
        path: str | os.PathLike[str],
        *,
        complete: bool = False,
        lost: Mapping[str, float | tuple[float, float]] | None = None,
        seen: Witness | None = None,
        records: Records | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> "Ledger":
        """Make a ledger from a backup, without giving any budget back.

        The backup does not show what was spent after it was made. The caller must state it: with
        ``complete``, nothing was spent; otherwise ``lost`` gives the most that may have been spent
        on each lineage, and this is recorded as spent. Spends that a party's own records show are
        recorded again, each as it was; ``complete`` then states that there were no others, and
        ``lost`` includes them.

        Parameters
        ----------
        backup : str or path-like
            The backup, or a copy of a ledger's file.
        path : str or path-like
            The ledger to create.
        complete : bool
            State that nothing was spent after the backup.
        lost : mapping, optional
            For each lineage, the epsilon, or the epsilon and the delta, that may have been spent
            after the backup. A lineage that is not named counts as spent without a bound, and
            nothing more can be spent on it.
        seen : Witness, optional
            The last witness of the lost ledger that is known, such as the one in a party's state
            store. The restored ledger accounts for it, so :meth:`check_not_older_than` accepts it.
        records : Records, optional
            What a party has recorded of the lost ledger elsewhere, such as in its audit trail.
        clock : callable
            Returns the current time, with a time zone.

        Returns
        -------
        Ledger
            The restored ledger, open.

        Raises
        ------
        LedgerError
            If the backup cannot be read, or a file already exists at ``path``.
        RollbackError
            If ``seen`` belongs to another ledger, or shows more entries than the backup and the
            records although ``complete`` is given.
        ArgumentError
            If both ``complete`` and ``lost`` are given, or an amount is not valid, or is below what
            the records show.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> folder = TemporaryDirectory()
        >>> with Ledger(f"{folder.name}/silo.ledger") as ledger:
        ...     limit = ledger.set_limit("claims", epsilon=3.0)
        ...     witness = ledger.backup(f"{folder.name}/silo.backup")
        >>> lost = {"claims": 1.0}
        >>> with Ledger.restore(
        ...     f"{folder.name}/silo.backup", f"{folder.name}/new.ledger", lost=lost
        ... ) as restored:
        ...     print(restored.remaining("claims"))
        ε = 2
        >>> folder.cleanup()
        """
        restore_backup(
            Path(backup), Path(path), complete, lost or {}, seen, timestamp(clock()),
            records or Records(),
        )  # fmt: skip
        return cls(path, create=False, clock=clock)

    def settings(self) -> dict[str, str | int]:
        """Return the SQLite settings of the connection that durability depends on.

        Returns
        -------
        dict
            The value of each pragma, by name.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     ledger.settings()["journal_mode"]
        'wal'
        """
        with self._transactions.reading() as connection:
            return {
                name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in file.SETTINGS
            }

    def export(self) -> dict[str, Any]:
        """Return the whole ledger, as it is at one moment, as plain values for JSON.

        Returns
        -------
        dict
            The format, identity, time of creation and witness; the totals of every lineage; and
            every limit, spend and restoration, and when it was frozen and thawed.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     limit = ledger.set_limit("claims", epsilon=3.0)
        ...     ledger.export()["lineages"][0]["remaining"]
        {'epsilon': 3.0, 'delta': 0.0, 'collusion': 1}
        """
        with self._transactions.reading() as connection:
            rows = file.spends(connection, None)
            lineages = []
            for lineage in file.lineages(connection):
                limit = file.limit_in_force(connection, lineage)
                own = [row for row in rows if row.lineage == lineage]
                levels = sorted({t for row in own for t in row.losses} - {ANYONE})
                total = self._totals.at(connection, lineage, file.level_in_force(limit))
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
                "limits": [limit.to_dict() for limit in file.limit_history(connection, None)],
                "spends": [row.to_dict() for row in rows],
                "restores": restores(connection),
                "freezes": [freeze.to_dict() for freeze in file.freezes(connection)],
            }

    def summary(self) -> str:
        """Return a table with one line per lineage, at most 80 columns wide.

        Returns
        -------
        str
            The table.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/silo.ledger") as ledger:
        ...     print(ledger.summary())
        ledger silo.ledger: 0 spends, 0 lineages
        """
        return entries.render(self.path.name, self.export())

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    def close(self) -> None:
        """Close the file. A closed ledger cannot be used again; closing it twice is allowed.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ledger = Ledger(f"{folder}/silo.ledger")
        ...     ledger.close()
        """
        self._transactions.close()

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
    """Takes the place of a ledger in a local run without one. It records nothing, and warns once.

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
        """Check the arguments as :meth:`Ledger.spend` does, but record nothing."""
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
        """Do nothing: there is no file to close."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
