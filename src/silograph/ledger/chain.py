"""One chain of hashes over everything that a ledger records.

That is: spends, limits, restorations, and when it was frozen and thawed.

Every entry has a serial number and a digest: the SHA-256 of the previous entry's digest and of its
own content. Changing a value, removing a row or inserting one breaks the chain, and a ledger with a
broken chain is not opened.

The chain alone does not detect everything. Anyone who can write the file can compute a new chain,
and removing entries at the end leaves a valid chain. A :class:`Witness` detects both: it is a
serial and a digest that somebody noted elsewhere. A party's state store keeps a witness, every
backup and export contains one, and :func:`check_witness` refuses a ledger without that entry.

The hashed text is a JSON list, so a chain can be checked with other tools::

    ["silograph/ledger/v2", previous digest, serial, "spend", number, lineage, run, phase, delta,
     view, method, time, [[level, epsilon or null], …]]
"""

import hashlib
import json
import math
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from silograph.errors import ArgumentError, LedgerError, RollbackError
from silograph.ledger.entries import Freeze, Limit, Spend

__all__ = [
    "TABLES",
    "Witness",
    "add_freeze",
    "add_limit",
    "add_restore",
    "add_spend",
    "append",
    "check_witness",
    "end",
    "head",
    "numbered",
    "verify",
]


# --- The chain ------------------------------------------------------------------------------------

#: The serial and the digest of the last entry.
End = tuple[int, str]
#: A value that both SQLite and JSON can hold.
Plain = str | int | float | None | list["Plain"]

_TEXT = re.compile(r"([0-9a-f-]{36}):(0|[1-9][0-9]{0,17}):([0-9a-f]{64})")
_COLUMNS = {
    "spend": "SELECT number, lineage, run, phase, delta, view, method, time FROM spends",
    "limit": "SELECT number, lineage, epsilon, delta, collusion, time FROM limits",
    "restore": "SELECT number, base, seen, seen_digest, statement, time FROM restores",
    "freeze": "SELECT number, frozen, reason, time FROM freezes",
}
#: The table of each kind of entry.
TABLES = {"spend": "spends", "limit": "limits", "restore": "restores", "freeze": "freezes"}
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True)
class Witness:
    """What somebody has seen of a ledger: its identity, and one entry's serial and digest.

    The digest covers all entries up to that one.

    >>> seen = Witness("8d7f5a9e-3f3c-4a52-8a0d-3f0b8a4a1f11", 3, "00" * 32)
    >>> Witness.parse(str(seen)) == seen
    True
    """

    identity: str
    serial: int
    digest: str

    def __str__(self) -> str:
        return f"{self.identity}:{self.serial}:{self.digest}"

    @classmethod
    def parse(cls, text: str) -> "Witness":
        """Read a witness from its text, as ``str(witness)`` writes it."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ArgumentError(f"{text[:120]!r} is not a witness: identity:serial:digest")
        return cls(found[1], int(found[2]), found[3])


def _start(connection: sqlite3.Connection) -> str:
    identity, created = connection.execute("SELECT identity, created FROM ledger").fetchone()
    return _hash(["silograph/ledger/v2", identity, created])


def _hash(content: list[Plain]) -> str:
    return hashlib.sha256(_encode(content).encode()).hexdigest()


def _linked(before: str, serial: int, kind: str, content: list[Plain]) -> str:
    return _hash(["silograph/ledger/v2", before, serial, kind, *content])


def head(connection: sqlite3.Connection) -> Witness:
    """Return the witness of the last entry."""
    (identity,) = connection.execute("SELECT identity FROM ledger").fetchone()
    return Witness(identity, *end(connection))


def end(connection: sqlite3.Connection) -> End:
    """Return the last entry's serial and digest."""
    row: End | None = connection.execute(
        "SELECT serial, digest FROM chain ORDER BY serial DESC LIMIT 1"
    ).fetchone()
    return row or (0, _start(connection))


def numbered(connection: sqlite3.Connection, path: Path, kind: str) -> int:
    """Return the next number of a kind of entry; refuse a table that has lost its last rows."""
    table = TABLES[kind]
    row: tuple[int, int] = connection.execute(
        "SELECT ifnull((SELECT number FROM chain WHERE kind = ? ORDER BY serial DESC LIMIT 1), 0),"  # noqa: S608
        f" ifnull((SELECT max(number) FROM {table}), 0)",
        (kind,),
    ).fetchone()
    last, found = row
    if found != last:
        raise LedgerError(_broken(path, f"it had {last} {table}, and now has {found}"))
    return last + 1


def append(
    connection: sqlite3.Connection,
    last: End,
    kind: str,
    content: list[Plain],
    *,
    serial: int | None = None,
) -> End:
    """Add an entry to the chain, before its row is written; return the new end of the chain.

    ``content`` begins with the entry's number. ``last`` is the end of the chain so far. ``serial``
    is the next serial by default; a restoration passes a larger one to skip lost entries.
    """
    serial = serial or last[0] + 1
    digest = _linked(last[1], serial, kind, content)
    connection.execute("INSERT INTO chain VALUES (?, ?, ?, ?)", (serial, kind, content[0], digest))
    return serial, digest


def verify(connection: sqlite3.Connection, path: Path) -> Witness:
    """Check the whole chain and return its end; raise :class:`LedgerError` at the first break."""
    rows = {kind: _contents(connection, kind) for kind in _COLUMNS}
    before, serial = _start(connection), 0
    (identity,) = connection.execute("SELECT identity FROM ledger").fetchone()
    for found, kind, number, digest in connection.execute(
        "SELECT serial, kind, number, digest FROM chain ORDER BY serial"
    ):
        content = next(rows.get(kind, iter(())), None)
        stepped = found == serial + 1 or (kind == "restore" and found > serial)
        if content is None or content[0] != number or not stepped:
            raise LedgerError(_broken(path, f"entry {serial + 1} is missing"))
        if _linked(before, found, kind, content) != digest:
            raise LedgerError(_broken(path, f"entry {found} was changed"))
        before, serial = digest, found
    if any(next(left, None) is not None for left in rows.values()):
        raise LedgerError(_broken(path, "it has rows that are not in its chain"))
    return Witness(identity, serial, before)


def _contents(connection: sqlite3.Connection, kind: str) -> Iterator[list[Plain]]:
    if kind != "spend":
        for row in connection.execute(f"{_COLUMNS[kind]} ORDER BY number"):
            yield list(row)
        return
    losses = connection.execute("SELECT spend, collusion, epsilon FROM losses ORDER BY 1, 2")
    ahead = next(losses, None)
    for row in connection.execute(f"{_COLUMNS[kind]} ORDER BY number"):
        own: list[Plain] = []
        while ahead is not None and ahead[0] == row[0]:
            own.append([ahead[1], ahead[2]])
            ahead = next(losses, None)
        yield [*row, own]


def check_witness(connection: sqlite3.Connection, path: Path, seen: Witness) -> None:
    """Refuse a ledger that does not contain the entry that was seen.

    A restoration accounts for the entries between its backup and the last entry that was seen of
    the lost ledger. Witnesses of those entries are accepted.
    """
    row = connection.execute("SELECT digest FROM chain WHERE serial = ?", (seen.serial,)).fetchone()
    if row is not None and row[0] == seen.digest:
        return  # a digest covers everything before it, including the ledger's identity
    now = head(connection)
    if now.identity != seen.identity:
        raise RollbackError(
            f"{path}: this is another ledger ({now.identity}), not the one that was used "
            f"({seen.identity})"
        )
    if seen.serial == 0:
        return  # the ledger was empty when it was seen
    for last, digest in connection.execute(
        "SELECT seen, seen_digest FROM restores WHERE base < ?1 AND seen >= ?1", (seen.serial,)
    ):
        if last > seen.serial or digest == seen.digest:
            return
    if seen.serial > now.serial:
        raise RollbackError(
            f"{path}: the ledger is an old copy: it ends at entry {now.serial}, and entry "
            f"{seen.serial} was seen. Restore it with 'silograph ledger restore --config FILE', "
            "which counts what is lost"
        )
    raise RollbackError(
        f"{path}: entry {seen.serial} is not the one that was seen: the ledger has another "
        "history. If a backup was put in its place, restore it with 'silograph ledger restore "
        "--config FILE'"
    )


def _broken(path: Path, what: str) -> str:
    return (
        f"{path}: the ledger is damaged: {what}. Restore it from a backup; a new one would forget "
        "what was spent"
    )


# --- Adding entries to the tables and to the chain, inside the caller's transaction ---------------


def add_spend(
    connection: sqlite3.Connection, path: Path, spend: Spend, last: End | None = None
) -> tuple[int, End]:
    """Add a spend; return its number and the new end of the chain.

    ``last`` is the end of the chain so far, if the caller knows it.
    """
    number = numbered(connection, path, "spend")
    row = (number, spend.lineage, spend.run, spend.phase, spend.delta, spend.view, spend.method,
           spend.time)  # fmt: skip
    losses = [(t, None if math.isinf(loss) else loss) for t, loss in spend.losses.items()]
    last = last or end(connection)
    now = append(connection, last, "spend", [*row, [list(loss) for loss in losses]])
    connection.execute("INSERT INTO spends VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.executemany(
        "INSERT INTO losses VALUES (?, ?, ?)", [(number, *loss) for loss in losses]
    )
    return number, now


def add_limit(connection: sqlite3.Connection, path: Path, limit: Limit) -> None:
    """Add a limit, which is in force from now on."""
    number = numbered(connection, path, "limit")
    row = (number, limit.lineage, limit.epsilon, limit.delta, limit.collusion, limit.time)
    append(connection, end(connection), "limit", list(row))
    connection.execute("INSERT INTO limits VALUES (?, ?, ?, ?, ?, ?)", row)


def add_freeze(connection: sqlite3.Connection, path: Path, freeze: Freeze) -> int:
    """Add that the ledger is frozen, or thawed, from now on; return the entry's number."""
    number = numbered(connection, path, "freeze")
    row = (number, int(freeze.frozen), freeze.reason, freeze.time)
    append(connection, end(connection), "freeze", list(row))
    connection.execute("INSERT INTO freezes VALUES (?, ?, ?, ?)", row)
    return number


def add_restore(
    connection: sqlite3.Connection, path: Path, seen: Witness | None, statement: str, time: str
) -> int:
    """Add a restoration and return its number. ``seen`` is the last known entry that was lost."""
    number = numbered(connection, path, "restore")
    before = end(connection)
    base = before[0]
    last, digest = (seen.serial, seen.digest) if seen else (None, None)
    row = (number, base, last, digest, statement, time)
    serial = max(base, last or 0) + 1
    append(connection, before, "restore", list(row), serial=serial)
    connection.execute("INSERT INTO restores VALUES (?, ?, ?, ?, ?, ?)", row)
    return number
