"""Back up a ledger, and restore one from a backup, without giving any budget back.

A backup holds a ledger as it was at one moment. If it were used as a ledger, everything spent since
would be forgotten, and that budget could be spent twice. A backup therefore has a different mark in
its header and cannot be opened as a ledger. :func:`restore_backup` turns it into one, and requires
a statement about what was spent after the backup. Budget that is not known to be unspent counts as
spent.

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
from pathlib import Path
from typing import Any

from silograph.errors import ArgumentError, LedgerError, RollbackError
from silograph.ledger import chain, file
from silograph.ledger.chain import Witness
from silograph.ledger.entries import ANYONE, Spend, check_delta, check_loss, check_name
from silograph.whole_files import sync_path

__all__ = ["back_up", "restore_backup", "restores"]


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
    lost: Mapping[str, float | tuple[float, float]],
    seen: Witness | None,
    time: str,
) -> None:
    """Make a ledger from a backup or from a copy of a ledger's file; see :meth:`Ledger.restore`."""
    amounts = {check_name("a lineage", name): _amount(value) for name, value in lost.items()}
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
            _add_statement(ledger, source, complete, amounts, seen, time)


def _add_statement(
    ledger: sqlite3.Connection,
    source: Path,
    complete: bool,
    amounts: Mapping[str, tuple[float, float]],
    seen: Witness | None,
    time: str,
) -> None:
    stood = chain.head(ledger)
    if seen is not None:
        if seen.identity != stood.identity:
            raise RollbackError(
                f"{source}: this is a backup of another ledger, not of the one that was seen"
            )
        if seen.serial <= stood.serial:
            chain.check_witness(ledger, source, seen)
        elif complete:
            raise RollbackError(
                f"{source}: the backup is not complete: it ends at entry {stood.serial}, and entry "
                f"{seen.serial} was seen. Say what may have been spent since"
            )
    said = "complete" if complete else "counted"
    number = chain.add_restore(ledger, source, seen, said, time)
    if complete:
        return
    for lineage in sorted({*file.lineages(ledger), *amounts}):
        epsilon, delta = amounts.get(lineage, (math.inf, 1.0))
        spend = Spend(
            0, lineage, f"restore-{number}", "lost entries", {ANYONE: epsilon}, delta,
            "anyone", "restore", time,
        )  # fmt: skip
        chain.add_spend(ledger, source, spend)


def _amount(value: float | tuple[float, float]) -> tuple[float, float]:
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


def restores(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return every restoration from a backup as plain values, oldest first."""
    names = ("number", "base", "seen", "seen_digest", "statement", "time")
    found = connection.execute(f"SELECT {', '.join(names)} FROM restores ORDER BY number")  # noqa: S608
    return [dict(zip(names, row, strict=True)) for row in found]
