"""Backups of a ledger, and ledgers made of backups, without giving budget back.

A backup is a ledger as it was. Used as it is, it would forget what was spent since, and that budget
would be spent twice. So a backup is not a ledger: it has another mark in its header, and
:func:`restore` makes a ledger of it only together with a statement about what came after. What is
not known to be unspent counts as spent.

The chain goes on over a restoration: it is an entry of its own, with the serial after the last one
that was seen of the lost ledger. So serials never repeat, and a witness of the lost entries is
taken if, and only if, the restoration accounted for it.
"""

import math
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from silograph.errors import ArgumentError, LedgerError, RollbackError
from silograph.ledger import chain, file
from silograph.ledger.chain import Witness
from silograph.ledger.entries import ANYONE, Spend, check_delta, check_loss, check_name
from silograph.whole_files import sync_path

__all__ = ["back_up", "restore_backup"]


def back_up(connection: sqlite3.Connection, target: Path) -> Witness:
    """Copy the ledger of a transaction to a new file of mode 0600; where it stood."""
    stood = chain.head(connection)  # from here on the transaction sees one moment
    with _new(target) as name:
        with closing(sqlite3.connect(name, isolation_level=None)) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            found = chain.verify(copy, target)
            copy.execute(f"PRAGMA application_id = {file.BACKUP_ID}")
        if found != stood:
            raise LedgerError(f"{target}: what was written is not what was read; try again")
    return stood


def restore_backup(
    source: Path,
    target: Path,
    complete: bool,
    lost: Mapping[str, float | tuple[float, float]],
    seen: Witness | None,
    time: str,
) -> None:
    """Make a ledger of a backup (or of a copy of a ledger's file); see :meth:`Ledger.restore`."""
    amounts = {check_name("a lineage", name): _amount(value) for name, value in lost.items()}
    if complete and amounts:
        raise ArgumentError("either nothing was spent since the backup, or something: not both")
    if Path(f"{target}-wal").exists():
        raise LedgerError(f"{target}-wal: a log of the lost ledger; move it away, and keep it")
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
            raise RollbackError(f"{source}: a backup of another ledger than the one that was seen")
        if seen.serial <= stood.serial:
            chain.check_witness(ledger, source, seen)
        elif complete:
            raise RollbackError(
                f"{source}: the backup ends at entry {stood.serial}, and entry {seen.serial} was "
                "seen: it is not complete. Say what may have been spent since"
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
    """The file, and its log where it is a plain copy that still has one."""
    try:
        shutil.copyfile(source, name)
        log = Path(f"{source}-wal")
        if log.exists():
            shutil.copyfile(log, f"{name}-wal")
    except OSError as error:
        raise LedgerError(f"{source}: cannot read the backup: {error.strerror}") from None


def _opened(name: str, source: Path) -> sqlite3.Connection:
    """A connection to the copy, as a ledger; errors name the backup."""
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
    yield  # after an error the connection is closed, and its file removed
    connection.execute("COMMIT")


@contextmanager
def _new(target: Path) -> Iterator[str]:
    """A name to fill with a database, which becomes ``target`` when all went well."""
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".ledger-")  # mode 0600
        os.close(descriptor)
    except OSError as error:
        raise LedgerError(f"{target}: cannot be written: {error.strerror}") from None
    try:
        with file.explained(target):
            yield name
        if Path(f"{name}-wal").exists():  # SQLite empties and removes it when it closes the file
            raise LedgerError(f"{target}: cannot be written: the log could not be closed")
        sync_path(Path(name))
        os.link(name, target)
        sync_path(target.parent)
    except FileExistsError:
        raise LedgerError(
            f"{target}: something is there already, and is never overwritten; move it away, and "
            "keep it"
        ) from None
    except OSError as error:
        raise LedgerError(f"{target}: cannot be written: {error.strerror}") from None
    finally:
        for suffix in ("", "-wal", "-shm"):
            Path(name + suffix).unlink(missing_ok=True)
