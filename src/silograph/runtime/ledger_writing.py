"""Adding entries to a ledger's tables and to its chain, in a transaction of the caller's."""

import math
import sqlite3
from pathlib import Path

from silograph.runtime import ledger_chain
from silograph.runtime.ledger_chain import End, Witness
from silograph.runtime.ledger_entries import Limit, Spend

__all__ = ["add_limit", "add_restore", "add_spend"]


def add_spend(
    connection: sqlite3.Connection, path: Path, spend: Spend, last: End | None = None
) -> tuple[int, End]:
    """Its number, and where the chain ends now. ``last`` is where it ended, if that is known."""
    number = ledger_chain.numbered(connection, path, "spend")
    row = (number, spend.lineage, spend.run, spend.phase, spend.delta, spend.view, spend.method,
           spend.time)  # fmt: skip
    losses = [(t, None if math.isinf(loss) else loss) for t, loss in spend.losses.items()]
    last = last or ledger_chain.end(connection)
    end = ledger_chain.append(connection, last, "spend", [*row, [list(loss) for loss in losses]])
    connection.execute("INSERT INTO spends VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.executemany(
        "INSERT INTO losses VALUES (?, ?, ?)", [(number, *loss) for loss in losses]
    )
    return number, end


def add_limit(connection: sqlite3.Connection, path: Path, limit: Limit) -> None:
    """The limit is in force from here on."""
    number = ledger_chain.numbered(connection, path, "limit")
    row = (number, limit.lineage, limit.epsilon, limit.delta, limit.collusion, limit.time)
    ledger_chain.append(connection, ledger_chain.end(connection), "limit", list(row))
    connection.execute("INSERT INTO limits VALUES (?, ?, ?, ?, ?, ?)", row)


def add_restore(
    connection: sqlite3.Connection, path: Path, seen: Witness | None, statement: str, time: str
) -> int:
    """A restoration, after the entry ``seen`` of the ledger that is lost; its number."""
    number = ledger_chain.numbered(connection, path, "restore")
    end = ledger_chain.end(connection)
    base = end[0]
    last, digest = (seen.serial, seen.digest) if seen else (None, None)
    row = (number, base, last, digest, statement, time)
    serial = max(base, last or 0) + 1
    ledger_chain.append(connection, end, "restore", list(row), serial=serial)
    connection.execute("INSERT INTO restores VALUES (?, ?, ?, ?, ?, ?)", row)
    return number
