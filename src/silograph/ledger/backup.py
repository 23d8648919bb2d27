"""Back up a ledger, and restore one from a backup, without giving any budget back.

A backup holds a ledger as it was at one moment. If it were used as a ledger, everything spent since
would be forgotten, and that budget could be spent twice. A backup therefore has a different mark in
its header and cannot be opened as a ledger. :func:`restore_backup` turns it into one, and requires
a statement about what was spent after the backup. Budget that is not known to be unspent counts as
spent. What a party's own records show (:class:`Records`) is counted whatever the statement says,
and a statement that contradicts them is refused.

A restoration is an entry of the chain. Its serial follows the last serial that was seen of the lost
ledger, so serials never repeat. A witness of a lost entry is accepted if, and only if, the
restoration accounted for that entry.
"""

import math
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from silograph.errors import ArgumentError, LedgerError, RollbackError
from silograph.ledger import chain, file
from silograph.ledger.chain import Witness
from silograph.ledger.entries import (
    ANYONE,
    Amount,
    Freeze,
    Spend,
    check_delta,
    check_loss,
    check_name,
    from_units,
    loss_at,
    round_up,
    to_units,
)
from silograph.whole_files import sync_path

__all__ = [
    "LOST",
    "Records",
    "add_lost",
    "amount_lost",
    "back_up",
    "prune",
    "restore_backup",
    "restores",
]

#: The phase under which a ledger counts what may have been spent and is not known.
LOST = "lost entries"
#: An epsilon and a delta.
Pair = tuple[float, float]


@dataclass(frozen=True)
class Records:
    """What a party has recorded of its ledger outside it."""

    #: Every spend that it knows of.
    spends: tuple[Spend, ...] = ()
    #: The serial of the last entry that froze the ledger; 0 if none did.
    frozen: int = 0


def back_up(connection: sqlite3.Connection, target: Path) -> Witness:
    """Copy the ledger to a new file of mode 0600; return the witness of its last entry."""
    stood = chain.head(connection)  # this read fixes the moment that the transaction sees
    with _new(target) as name:
        with closing(sqlite3.connect(name, isolation_level=None)) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            found = chain.verify(copy, target)
            copy.execute(f"PRAGMA application_id = {file.BACKUP_ID}")
        if found != stood:
            raise LedgerError(f"{target}: the copy differs from the ledger; try again")
    return stood


def restore_backup(
    source: Path,
    target: Path,
    complete: bool,
    lost: Mapping[str, float | Pair],
    seen: Witness | None,
    time: str,
    records: Records,
) -> None:
    """Make a ledger from a backup or from a copy of a ledger's file; see :meth:`Ledger.restore`."""
    amounts = {check_name("a lineage", name): amount_lost(value) for name, value in lost.items()}
    if complete and amounts:
        raise ArgumentError("give complete, or the lost amounts, but not both")
    if Path(f"{target}-wal").exists():
        raise LedgerError(
            f"{target}-wal: this is a log of the lost ledger; move it elsewhere and keep it"
        )
    with _new(target) as name:
        _copy(source, name)
        with (
            file.explained(source),
            closing(_opened(name, source)) as ledger,
            _writing(ledger),
        ):
            _add_statement(ledger, source, complete, amounts, seen, time, records)


def _add_statement(
    ledger: sqlite3.Connection,
    source: Path,
    complete: bool,
    amounts: Mapping[str, Pair],
    seen: Witness | None,
    time: str,
    records: Records,
) -> None:
    stood = chain.head(ledger)
    missing = [
        spend
        for spend in records.spends
        if file.find_spend(ledger, spend.lineage, spend.run, spend.phase) is None
    ]
    more = _beyond(ledger, missing, amounts)
    if seen is not None:
        if seen.identity != stood.identity:
            raise RollbackError(
                f"{source}: this is a backup of another ledger, not of the one that was seen"
            )
        if seen.serial <= stood.serial:
            chain.check_witness(ledger, source, seen)
        elif complete and seen.serial - stood.serial > len(missing):
            known = f", of which the audit trail shows {len(missing)}" if records.spends else ""
            raise RollbackError(
                f"{source}: the backup is not complete: it ends at entry {stood.serial}, and entry "
                f"{seen.serial} was seen{known}. Say what may have been spent since"
            )
    said = "complete" if complete and not missing else "counted"
    number = chain.add_restore(ledger, source, seen, said, time)
    for spend in missing:
        chain.add_spend(ledger, source, spend)
    if records.frozen > stood.serial:
        reason = "it was frozen after the backup that it was restored from"
        chain.add_freeze(ledger, source, Freeze(True, reason, time))
    if complete:
        return
    for lineage in sorted({*file.lineages(ledger), *more}):
        epsilon, delta = more.get(lineage, (math.inf, 1.0))
        add_lost(ledger, source, lineage, f"restore-{number}", (epsilon, delta), time)


def _beyond(
    ledger: sqlite3.Connection, missing: list[Spend], amounts: Mapping[str, Pair]
) -> dict[str, Pair]:
    """Return what each stated amount counts beyond the spends that are known to be missing.

    An amount below what those spends cost is refused.
    """
    found = {}
    for lineage, (epsilon, delta) in amounts.items():
        level = file.level_in_force(file.limit_in_force(ledger, lineage))
        shown = file.Total(0, 0, level)
        for spend in missing:
            if spend.lineage == lineage:
                shown = shown.plus(loss_at(spend.losses, level)[1], spend.delta)
        least = shown.amount()
        if shown.epsilon is None or epsilon < least.epsilon or delta < least.delta:
            raise ArgumentError(
                f"lineage {lineage!r}: {Amount(epsilon, delta, level)} is said to be lost, but the "
                f"audit trail shows {least} at t = {level}, spent after the backup; say at least "
                "that much"
            )
        left = (to_units(epsilon) - shown.epsilon, to_units(delta) - shown.delta)
        rest = [round_up(from_units(max(units, 0))) for units in left]
        found[lineage] = (rest[0], rest[1])
    return found


def add_lost(
    ledger: sqlite3.Connection, path: Path, lineage: str, run: str, lost: Pair, time: str
) -> None:
    """Count an amount that may have been spent, against coalitions of any size."""
    epsilon, delta = lost
    method = run.partition("-")[0]
    spend = Spend(0, lineage, run, LOST, {ANYONE: epsilon}, delta, "anyone", method, time)
    chain.add_spend(ledger, path, spend)


def amount_lost(value: float | Pair) -> Pair:
    """Check an amount that may have been spent: an epsilon, or an epsilon and a delta."""
    epsilon, delta = value if isinstance(value, tuple) else (value, 0.0)
    return check_loss("a lost epsilon", epsilon), check_delta(delta)


def _copy(source: Path, name: str) -> None:
    """Copy the file. A plain copy of a ledger may still have a log; copy that too."""
    try:
        shutil.copyfile(source, name)
        log = Path(f"{source}-wal")
        if log.exists():
            shutil.copyfile(log, f"{name}-wal")
    except OSError as error:
        raise LedgerError(f"{source}: cannot read the backup: {error.strerror}") from None


def _opened(name: str, source: Path) -> sqlite3.Connection:
    """Mark the copy as a ledger and connect to it. Errors name the backup instead of the copy."""
    with closing(sqlite3.connect(name, isolation_level=None)) as copy:
        (kind,) = copy.execute("PRAGMA application_id").fetchone()
        if kind == file.BACKUP_ID:
            copy.execute(f"PRAGMA application_id = {file.APPLICATION_ID}")
    try:
        return file.connect(Path(name), whole=True)
    except LedgerError as error:
        raise LedgerError(str(error).replace(name, str(source))) from None


@contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    yield  # no rollback: after an error the caller closes the connection and removes the file
    connection.execute("COMMIT")


@contextmanager
def _new(target: Path) -> Iterator[str]:
    """Yield the name of a temporary file. If nothing fails, it becomes ``target``."""
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".ledger-")  # mode 0600
        os.close(descriptor)
    except OSError as error:
        raise LedgerError(f"{target}: cannot be written: {error.strerror}") from None
    try:
        with file.explained(target):
            yield name
        if Path(f"{name}-wal").exists():  # SQLite removes its log when it closes the file
            raise LedgerError(f"{target}: cannot be written: the log could not be closed")
        sync_path(Path(name))
        os.link(name, target)
        sync_path(target.parent)
    except FileExistsError:
        raise LedgerError(
            f"{target}: a file is already there and is never overwritten; move it elsewhere and "
            "keep it"
        ) from None
    except OSError as error:
        raise LedgerError(f"{target}: cannot be written: {error.strerror}") from None
    finally:
        for suffix in ("", "-wal", "-shm"):
            Path(name + suffix).unlink(missing_ok=True)


def prune(folder: Path, keep: int) -> list[Path]:
    """Remove all but the newest ``keep`` backups in a folder; return those that were removed.

    The newest are those with the most entries, and of these the youngest files. Only backups are
    looked at, and the folder must hold those of one ledger: nobody could say which of two ledgers'
    backups is the older one.
    """
    found: list[tuple[int, int, Path]] = []
    owners: set[str] = set()
    for path in sorted(folder.iterdir()):
        stood = _backup_head(path) if path.is_file() and not path.is_symlink() else None
        if stood is not None:
            owners.add(stood.identity)
            found.append((stood.serial, path.stat().st_mtime_ns, path))
    if len(owners) > 1:
        raise LedgerError(
            f"{folder}: there are backups of {len(owners)} ledgers; keep each ledger's in a folder "
            "of its own. Nothing was removed"
        )
    removed = [path for *_, path in sorted(found)[:-keep]]
    for path in removed:
        path.unlink()
    return removed


def _backup_head(path: Path) -> Witness | None:
    """Return the last entry of a backup, or None if the file is none, or cannot be read."""
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as backup:
            (kind,) = backup.execute("PRAGMA application_id").fetchone()
            return chain.head(backup) if kind == file.BACKUP_ID else None
    except sqlite3.Error:
        return None


def restores(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return every restoration from a backup as plain values, oldest first."""
    names = ("number", "base", "seen", "seen_digest", "statement", "time")
    found = connection.execute(f"SELECT {', '.join(names)} FROM restores ORDER BY number")  # noqa: S608
    return [dict(zip(names, row, strict=True)) for row in found]
