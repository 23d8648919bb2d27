"""One chain of hashes over all that a ledger records: spends, limits and restorations.

What: every entry has a serial and the SHA-256 of the entry before it and of its own content. A
changed value, a row that is gone and a row that was slipped in all break the chain, and a ledger
whose chain is broken is not opened.

Guarantee and its limit: who can write the file can write a new chain, and entries that are cut off
at the end leave a chain that is whole. Both show against a :class:`Witness`: a serial and a digest
that somebody noted elsewhere. A party's state store keeps one, every backup and export holds one,
and :func:`check_witness` refuses a ledger that does not contain it.

The hashed text is a JSON list, so that anyone can check a chain with other tools::

    ["silograph/ledger/v2", digest before, serial, "spend", number, lineage, run, phase, delta,
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
from silograph.ledger.entries import Limit, Spend

__all__ = [
    "TABLES",
    "Witness",
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

#: A serial and a digest.
End = tuple[int, str]
#: A plain value of SQLite and JSON.
Plain = str | int | float | None | list["Plain"]

_TEXT = re.compile(r"([0-9a-f-]{36}):(0|[1-9][0-9]{0,17}):([0-9a-f]{64})")
_COLUMNS = {
    "spend": "SELECT number, lineage, run, phase, delta, view, method, time FROM spends",
    "limit": "SELECT number, lineage, epsilon, delta, collusion, time FROM limits",
    "restore": "SELECT number, base, seen, seen_digest, statement, time FROM restores",
}
#: The table of each kind of entry.
TABLES = {"spend": "spends", "limit": "limits", "restore": "restores"}
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True)
class Witness:
    """What somebody has seen of a ledger: which one, how far, and the chain up to there.

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
        """From the text that :meth:`__str__` makes."""
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
    """Where the ledger stands."""
    (identity,) = connection.execute("SELECT identity FROM ledger").fetchone()
    return Witness(identity, *end(connection))


def end(connection: sqlite3.Connection) -> End:
    """The last entry's serial and digest."""
    row: End | None = connection.execute(
        "SELECT serial, digest FROM chain ORDER BY serial DESC LIMIT 1"
    ).fetchone()
    return row or (0, _start(connection))


def numbered(connection: sqlite3.Connection, path: Path, kind: str) -> int:
    """The number of the next entry of a kind; refuses a table that has lost its last rows."""
    table = TABLES[kind]
    row: tuple[int, int] = connection.execute(
        "SELECT ifnull((SELECT number FROM chain WHERE kind = ? ORDER BY serial DESC LIMIT 1), 0),"  # noqa: S608
        f" ifnull((SELECT max(number) FROM {table}), 0)",
        (kind,),
    ).fetchone()
    last, found = row
    if found != last:
        raise LedgerError(_broken(path, f"it had {last} {table}, and has {found}"))
    return last + 1


def append(
    connection: sqlite3.Connection,
    last: End,
    kind: str,
    content: list[Plain],
    *,
    serial: int | None = None,
) -> End:
    """Chain an entry whose ``content`` begins with its number, before its row is written.

    ``last`` is where the chain ended, and what is returned where it ends now. ``serial`` is the
    next one, unless a restoration steps over those that are lost.
    """
    serial = serial or last[0] + 1
    digest = _linked(last[1], serial, kind, content)
    connection.execute("INSERT INTO chain VALUES (?, ?, ?, ?)", (serial, kind, content[0], digest))
    return serial, digest


def verify(connection: sqlite3.Connection, path: Path) -> Witness:
    """Follow the whole chain; where it ends, or :class:`LedgerError` at the first break."""
    rows = {kind: _contents(connection, kind) for kind in _COLUMNS}
    before, serial = _start(connection), 0
    (identity,) = connection.execute("SELECT identity FROM ledger").fetchone()
    for found, kind, number, digest in connection.execute(
        "SELECT serial, kind, number, digest FROM chain ORDER BY serial"
    ):
        content = next(rows.get(kind, iter(())), None)
        stepped = found == serial + 1 or (kind == "restore" and found > serial)
        if content is None or content[0] != number or not stepped:
            raise LedgerError(_broken(path, f"entry {serial + 1} is not there"))
        if _linked(before, found, kind, content) != digest:
            raise LedgerError(_broken(path, f"entry {found} was changed"))
        before, serial = digest, found
    if any(next(left, None) is not None for left in rows.values()):
        raise LedgerError(_broken(path, "there are rows that no entry is for"))
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
    """Refuse a ledger in which what was seen is not.

    A restoration accounts for the entries that were lost between its backup and the last one that
    was seen before it; witnesses of those are taken.
    """
    row = connection.execute("SELECT digest FROM chain WHERE serial = ?", (seen.serial,)).fetchone()
    if row is not None and row[0] == seen.digest:
        return  # a digest covers all before it, the ledger's identity first
    now = head(connection)
    if now.identity != seen.identity:
        raise RollbackError(
            f"{path}: another ledger ({now.identity}) than the one that was used ({seen.identity})"
        )
    if seen.serial == 0:
        return  # a ledger of this identity, with nothing in it
    for last, digest in connection.execute(
        "SELECT seen, seen_digest FROM restores WHERE base < ?1 AND seen >= ?1", (seen.serial,)
    ):
        if last > seen.serial or digest == seen.digest:
            return
    if seen.serial > now.serial:
        raise RollbackError(
            f"{path}: the ledger ends at entry {now.serial}, and entry {seen.serial} was seen: it "
            "is an old copy. Restore it with 'silograph ledger restore', which counts what is lost"
        )
    raise RollbackError(
        f"{path}: entry {seen.serial} is not the one that was seen: the ledger has another past"
    )


def _broken(path: Path, what: str) -> str:
    return (
        f"{path}: the ledger is damaged: {what}. Restore it from a backup; a new one would forget "
        "what was spent"
    )


# --- Adding entries to a ledger's tables and to its chain, in a transaction of the caller's -------


def add_spend(
    connection: sqlite3.Connection, path: Path, spend: Spend, last: End | None = None
) -> tuple[int, End]:
    """Its number, and where the chain ends now. ``last`` is where it ended, if that is known."""
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
    """The limit is in force from here on."""
    number = numbered(connection, path, "limit")
    row = (number, limit.lineage, limit.epsilon, limit.delta, limit.collusion, limit.time)
    append(connection, end(connection), "limit", list(row))
    connection.execute("INSERT INTO limits VALUES (?, ?, ?, ?, ?, ?)", row)


def add_restore(
    connection: sqlite3.Connection, path: Path, seen: Witness | None, statement: str, time: str
) -> int:
    """A restoration, after the entry ``seen`` of the ledger that is lost; its number."""
    number = numbered(connection, path, "restore")
    before = end(connection)
    base = before[0]
    last, digest = (seen.serial, seen.digest) if seen else (None, None)
    row = (number, base, last, digest, statement, time)
    serial = max(base, last or 0) + 1
    append(connection, before, "restore", list(row), serial=serial)
    connection.execute("INSERT INTO restores VALUES (?, ?, ?, ?, ?, ?)", row)
    return number
