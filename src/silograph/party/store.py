"""A party's durable state: its decisions, its run secrets, the messages it sent and processed.

What
    One SQLite file of mode 0600 (write-ahead log, ``synchronous=FULL``). For every run it holds the
    signed proposal, the decision, the run's secret, the digest of the edges that it is carried out
    with (see :mod:`~silograph.party.snapshots`), every outgoing message, the digest of every
    incoming message that was processed ("taken"), and how the run ended. The bytes of an outgoing
    message are kept until the broker has it, its digest for ever. Of a message that a restarted
    session makes again by itself, such as a chunk, only the digest is kept. The audit trail
    (:mod:`~silograph.party.trail`) is a table of this file, to which rows are only ever added.
Guarantee
    A run id is used once. A run's secret is on the disk before any randomness is derived from it,
    and is wiped when the run ends. An outgoing message is stored ("frozen") before it is sent;
    after that, a message with the same name and other bytes is refused. An incoming message is
    recorded before its answer is sent; after that, a different message with the same name is
    refused. So a party that restarts and processes the same messages again sends nothing that
    differs from what it sent before.
Damage
    Every row has a *mark*, a digest of its other columns; the trail has its chain. A row is
    compared with its mark whenever it is read, and before it is changed, so that a flipped bit
    stops the run, or the service, and never becomes a wrong message. A mark does not stop anyone
    who can write the file.
"""

import hashlib
import sqlite3
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from silograph import whole_files
from silograph.errors import StoreError

__all__ = ["COLUMNS", "TABLES", "Frozen", "Name", "Run", "Store", "Taken"]


# --- What a state store holds: its tables, and rows of them as values -----------------------------

TABLES = """
CREATE TABLE store (version INTEGER NOT NULL, identity TEXT NOT NULL, party TEXT NOT NULL,
    roster_serial INTEGER NOT NULL DEFAULT 0, roster_digest BLOB,
    witness TEXT NOT NULL DEFAULT '',
    mark BLOB NOT NULL DEFAULT x'');
CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    proposal BLOB NOT NULL,
    decision TEXT NOT NULL CHECK (decision IN ('', 'accepted', 'refused', 'abort')),
    decided_by TEXT NOT NULL DEFAULT '',
    secret BLOB,
    spent INTEGER NOT NULL DEFAULT 0,
    phase TEXT NOT NULL DEFAULT '',
    data TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL DEFAULT 'open'
        CHECK (state IN ('open', 'done', 'aborted', 'refused')),
    code TEXT NOT NULL DEFAULT '',
    mark BLOB NOT NULL DEFAULT x''
);
CREATE INDEX open_runs ON runs (number) WHERE state = 'open';
CREATE TABLE outgoing (
    number INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    receiver INTEGER NOT NULL,
    round TEXT NOT NULL,
    slot TEXT NOT NULL,
    digest BLOB NOT NULL,
    size INTEGER NOT NULL,
    raw BLOB,
    mark BLOB NOT NULL DEFAULT x'',
    UNIQUE (run, receiver, round, slot)
);
CREATE TABLE incoming (
    number INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    sender INTEGER NOT NULL,
    round TEXT NOT NULL,
    slot TEXT NOT NULL,
    digest BLOB NOT NULL,
    mark BLOB NOT NULL DEFAULT x'',
    UNIQUE (run, sender, round, slot)
);
CREATE TABLE trail (
    number INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    event TEXT NOT NULL,
    content TEXT NOT NULL,
    chain TEXT NOT NULL
);
CREATE TRIGGER trail_no_update BEFORE UPDATE ON trail
    BEGIN SELECT RAISE(ABORT, 'a trail is only added to'); END;
CREATE TRIGGER trail_no_delete BEFORE DELETE ON trail
    BEGIN SELECT RAISE(ABORT, 'a trail is only added to'); END;
CREATE TRIGGER trail_in_order BEFORE INSERT ON trail
    WHEN NEW.number IS NOT (SELECT ifnull(max(number), 0) + 1 FROM trail)
    BEGIN SELECT RAISE(ABORT, 'a trail is added to at its end'); END;
"""


@dataclass(frozen=True)
class Name:
    """The name of a message within a run: the other party's place, the round and the slot."""

    party: int
    round: str
    slot: int


@dataclass(frozen=True)
class Frozen:
    """An outgoing message; ``raw`` is None if the broker already has it.

    A message with a ``stamp``, a digest that is known without hashing all its bytes, is not kept:
    after a restart the session makes it again, and the stamps are compared then.
    """

    name: Name
    raw: bytes | None = field(repr=False)
    stamp: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Taken:
    """An incoming message that was processed, and its digest."""

    name: Name
    digest: bytes


@dataclass(frozen=True)
class Run:
    """A run as stored. Its secret is left out of the representation."""

    run: str
    proposal: bytes = field(repr=False)
    decision: str
    decided_by: str
    secret: bytes | None = field(repr=False)
    spent: bool
    phase: str
    #: The digest of the edges that the run was accepted with; empty for parties without edges.
    data: str
    state: str
    code: str

    @property
    def open(self) -> bool:
        """Whether the run has not ended."""
        return self.state == "open"


#: The columns of each table that its marks cover, in the order in which they are hashed. The bytes
#: of an outgoing message are covered by its digest, and whether they are there by `_sent_mark`.
COLUMNS = {
    "store": "version, identity, party, roster_serial, roster_digest, witness",
    "runs": "number, run, proposal, decision, decided_by, secret, spent, phase, data, state, code",
    "outgoing": "number, run, receiver, round, slot, digest, size",
    "incoming": "number, run, sender, round, slot, digest",
}


def _mark(*values: object) -> bytes:
    """The mark of a row: the start of a SHA-256 over its values, as Python writes them in ASCII."""
    return hashlib.sha256(ascii(values).encode()).digest()[:_MARK_BYTES]


def _sent_mark(mark: bytes) -> bytes:
    """The mark of an outgoing message after the broker has it, from the mark before.

    It is made from the old mark, not from the row, so that it is wrong if the row was.
    """
    return _mark("sent", mark)


# --- The store ------------------------------------------------------------------------------------

_APPLICATION_ID = 0x53494C53  # "SILS"
_MARK_BYTES = 16
_BUSY_SECONDS = 30.0
#: Records of incoming messages that had no answer are written in batches of this size.
_NOTES = 64
#: What stands for the bytes of a message that is made again after a restart. No message is empty.
_AGAIN = b""
#: What becomes of outgoing messages that the broker has.
_SENT = "UPDATE outgoing SET raw = NULL, mark = sent_mark(mark)"


class Store:
    """The open store of one party. Several threads and processes may use it at the same time.

    If ``party`` is None, the file must exist and may belong to any party.
    """

    def __init__(self, path: Path, party: str | None) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._notes: list[tuple[str, Taken]] = []
        self._wiped = False  # whether this transaction wiped a secret
        with self._explained():
            if not path.exists():
                if party is None:
                    raise StoreError(f"{path}: there is no state store")
                path.touch(mode=0o600)
            elif path.stat().st_mode & 0o077:
                raise StoreError(f"{path}: others can read it; a store holds run secrets")
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection.create_function("sent_mark", 1, _sent_mark, deterministic=True)
            self._check_kind()  # first, so that another program's file is not changed
            # FAST overwrites deleted content on pages that are written anyway. This covers a run's
            # secret, but not the bytes of sent messages, which fill whole pages.
            for setting in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = FAST"):
                self._connection.execute(f"PRAGMA {setting}")
            self._open(party)

    def _check_kind(self) -> bool:
        """Whether the file has any tables; raises if they are not those of a store."""
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        if tables and application != _APPLICATION_ID:
            raise StoreError(f"{self.path}: not a Silograph state store")
        return bool(tables)

    def _open(self, party: str | None) -> None:
        with self.together() as connection:
            if not self._check_kind():
                if party is None:
                    raise StoreError(f"{self.path}: not a Silograph state store")
                for statement in TABLES.split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                row = (whole_files.STORE.current, uuid.uuid4().hex, party)
                connection.execute(
                    "INSERT INTO store (version, identity, party) VALUES (?, ?, ?)", row
                )
                self._mark_rows(connection, "store")
            found = connection.execute("SELECT version, identity, party FROM store").fetchall()
            if len(found) != 1:
                raise self._damaged("it has no party")
            version = whole_files.STORE.check(found[0][0], self.path, StoreError)
            if party not in (None, found[0][2]):
                raise StoreError(f"{self.path}: this is the store of {found[0][2]}, not of {party}")
            if version < whole_files.STORE.current:
                self._bring_up_to_date(connection)
            self._own(connection)
        self.identity: str = found[0][1]
        self.party: str = found[0][2]

    def _bring_up_to_date(self, connection: sqlite3.Connection) -> None:
        """Give the rows of a store of version 3 their marks."""
        for table in COLUMNS:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN mark BLOB NOT NULL DEFAULT x''")
        connection.execute("UPDATE store SET version = ?", (whole_files.STORE.current,))
        for table in COLUMNS:
            self._mark_rows(connection, table)
        connection.execute("UPDATE outgoing SET mark = sent_mark(mark) WHERE raw IS NULL")

    # -- marks -----------------------------------------------------------------------------

    def verify(self) -> None:
        """Check the file, what it says of the party, and all runs.

        The rows of messages are checked when a run reads them: damage there ends the run alone.
        """
        with self._reading() as connection:
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok":
                raise self._damaged("SQLite finds a fault in the file")
        self.runs()

    def _damaged(self, what: str) -> StoreError:
        return StoreError(
            f"{self.path}: the state store is damaged: {what}. Nothing is sent from it; see 'A "
            "damaged state store' in the operators' manual"
        )

    def _check(self, table: str, row: tuple[Any, ...], what: str, sent: bool = False) -> None:
        """Compare a row, which ends with its mark, with that mark."""
        mark = _mark(*row[:-1])
        if row[-1] != (_sent_mark(mark) if sent else mark):
            raise self._damaged(f"{what} was changed in table {table}")

    def _mark_rows(
        self, connection: sqlite3.Connection, table: str, where: str = "", *values: object
    ) -> None:
        """Mark rows that were just written or, if they were there before, checked and changed."""
        query = f"SELECT rowid, {COLUMNS[table]} FROM {table} {where}"  # noqa: S608 - fixed texts
        marks = [(_mark(*row[1:]), row[0]) for row in connection.execute(query, values)]
        update = f"UPDATE {table} SET mark = ? WHERE rowid = ?"  # noqa: S608
        connection.executemany(update, marks)

    def _own(self, connection: sqlite3.Connection) -> tuple[int, bytes, str]:
        """The roster's serial and digest, and the ledger's witness."""
        query = f"SELECT {COLUMNS['store']}, mark FROM store"  # noqa: S608
        row = connection.execute(query).fetchone()
        self._check("store", row, "what it says of the party")
        return row[3], row[4], row[5]

    def _set_own(self, connection: sqlite3.Connection, what: str, *values: object) -> None:
        self._own(connection)
        connection.execute(f"UPDATE store SET {what}", values)  # noqa: S608 - the texts are here
        self._mark_rows(connection, "store")

    def _read_run(self, row: tuple[Any, ...]) -> Run:
        self._check("runs", row, f"run {str(row[1])[:12]}")
        _, run, proposal, decision, by, secret, spent, phase, data, state, code, _ = row
        return Run(run, proposal, decision, by, secret, bool(spent), phase, data, state, code)

    # -- runs ------------------------------------------------------------------------------

    def add(self, run: str, proposal: bytes) -> bool:
        """Store a new run with its proposal; False if the same proposal is already stored.

        Another proposal with a known run id is refused.
        """
        with self.together() as connection:
            known = self._run(connection, run)
            if known is None:
                connection.execute(
                    "INSERT INTO runs (run, proposal, decision) VALUES (?, ?, '')", (run, proposal)
                )
                self._mark_rows(connection, "runs", "WHERE run = ?", run)
                return True
        if known.proposal != proposal:
            raise StoreError(f"run {run} is known with another study: a run id is used once")
        return False

    def accept(self, run: str, by: str, secret: bytes, data: str = "") -> None:
        """Record that a run was accepted, with its secret. A second acceptance is refused.

        ``data`` is the digest of the edges that it is carried out with.
        """
        what = "decision = 'accepted', decided_by = ?, secret = ?, data = ?"
        if not self._change(run, what, by, secret, data, only="secret IS NULL AND state = 'open'"):
            raise StoreError(f"{self.path}: run {run} cannot be accepted: it has a secret")

    def decide(self, run: str, decision: str, by: str) -> None:
        """Record an operator's decision, on which the service will act."""
        self._change(run, "decision = ?, decided_by = ?", decision, by)

    def mark_spent(self, run: str, witness: str) -> bool:
        """Record that the ledger has the run's cost, and the ledger's witness; False if known."""
        with self.together():
            self.set_witness(witness)
            return self._change(run, "spent = 1", only="spent = 0")

    def mark_phase(self, run: str, phase: str) -> None:
        """Record the phase that the run is in."""
        self._change(run, "phase = ?", phase)

    def end(self, run: str, state: str, code: str = "", last: Sequence[Frozen] = ()) -> None:
        """End a run: freeze its last messages, wipe its secret, drop the bytes of all others."""
        with self.together() as connection:
            connection.execute(f"{_SENT} WHERE run = ? AND raw IS NOT NULL", (run,))
            for message in last:
                self._freeze_one(connection, run, message)
            self._change(run, "secret = NULL, state = ?, code = ?", state, code)
            self._wiped = True

    def run(self, run: str) -> Run | None:
        """A run by its id, or None if it is unknown."""
        with self._reading() as connection:
            return self._run(connection, run)

    def runs(self, *, ended: bool = True) -> list[Run]:
        """All runs, oldest first; with ``ended=False`` only those that are open."""
        which = "" if ended else " WHERE state = 'open'"
        query = f"SELECT {COLUMNS['runs']}, mark FROM runs{which} ORDER BY number"  # noqa: S608
        with self._reading() as connection:
            return [self._read_run(row) for row in connection.execute(query)]

    def proposed(self) -> int:
        """The bytes of all stored proposals."""
        with self._reading() as connection:
            query = "SELECT coalesce(sum(length(proposal)), 0) FROM runs"
            found: int = connection.execute(query).fetchone()[0]
        return found

    def forget(self, runs: Iterable[str]) -> None:
        """Remove runs that have ended and cost nothing. What the trail tells of them stays."""
        with self.together() as connection:
            for run in runs:
                done = connection.execute(
                    "DELETE FROM runs WHERE run = ? AND state != 'open' AND spent = 0", (run,)
                )
                if done.rowcount:
                    for table in ("outgoing", "incoming"):
                        connection.execute(f"DELETE FROM {table} WHERE run = ?", (run,))  # noqa: S608

    def _run(self, connection: sqlite3.Connection, run: str) -> Run | None:
        query = f"SELECT {COLUMNS['runs']}, mark FROM runs WHERE run = ?"  # noqa: S608
        found = connection.execute(query, (run,)).fetchone()
        return None if found is None else self._read_run(found)

    def _change(self, run: str, what: str, *values: object, only: str = "1") -> bool:
        """Change a run's row; False if the condition ``only`` does not hold."""
        with self.together() as connection:
            if self._run(connection, run) is None:  # a damaged row is refused, not marked anew
                raise StoreError(f"{self.path}: run {run} is not known")
            query = f"UPDATE runs SET {what} WHERE run = ? AND {only}"  # noqa: S608
            done = connection.execute(query, (*values, run))
            self._mark_rows(connection, "runs", "WHERE run = ?", run)
            return done.rowcount == 1

    # -- messages --------------------------------------------------------------------------

    def step(
        self,
        run: str,
        taken: Taken | None,
        outgoing: Sequence[Frozen],
        acked: Iterable[Name] = (),
    ) -> list[Frozen]:
        """Record an incoming message and its answers together; returns the answers to send.

        An answer that was frozen before is refused if its bytes differ. It is returned without
        bytes if the broker already has it. ``acked`` names messages that the broker has confirmed
        since the last call.
        """
        if taken is not None:
            with self._lock:
                self._notes.append((run, taken))
            if not outgoing and len(self._notes) < _NOTES:
                return []
        with self.together() as connection:
            _release(connection, run, acked)
            return [self._freeze_one(connection, run, message) for message in outgoing]

    def _freeze_one(self, connection: sqlite3.Connection, run: str, message: Frozen) -> Frozen:
        name, raw = message.name, message.raw or b""
        key = (run, name.party, name.round, str(name.slot))
        digest = message.stamp or hashlib.sha256(raw).digest()
        known = connection.execute(
            f"SELECT raw IS NULL, {COLUMNS['outgoing']}, mark FROM outgoing"  # noqa: S608
            " WHERE run = ? AND receiver = ? AND round = ? AND slot = ?",
            key,
        ).fetchone()
        if known is None:
            row = (_next(connection, "outgoing"), *key, digest, len(raw))
            kept = _AGAIN if message.stamp else raw
            connection.execute(
                "INSERT INTO outgoing VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, kept, _mark(*row))
            )
            return message
        sent, row = bool(known[0]), known[1:]
        self._check("outgoing", row, f"a message of run {run[:12]}", sent)
        if row[5] != digest:
            raise StoreError(
                f"run {run}: a message of round {name.round!r} was frozen with other bytes; it is "
                "never made anew"
            )
        return Frozen(name, None) if sent else message

    def acked(self, run: str, names: Iterable[Name]) -> None:
        """Drop the bytes of messages that the broker has confirmed."""
        with self.together() as connection:
            _release(connection, run, names)

    def pending(self, run: str) -> list[Frozen]:
        """Frozen messages that the broker may not have yet, in the order of freezing.

        Those of which only digests are kept are not among them: the session makes them again.
        """
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT raw, {COLUMNS['outgoing']}, mark FROM outgoing"  # noqa: S608
                " WHERE run = ? AND raw IS NOT NULL AND raw != ? ORDER BY number",
                (run, _AGAIN),
            ).fetchall()
        found = []
        for raw, *row in rows:
            self._check("outgoing", tuple(row), f"a message of run {run[:12]}")
            _, _, place, name, slot, digest, _, _ = row
            if not isinstance(raw, bytes) or hashlib.sha256(raw).digest() != digest:
                raise self._damaged(f"a message of run {run[:12]} was changed in table outgoing")
            found.append(Frozen(Name(place, name, int(slot)), raw))
        return found

    def sent(self, run: str) -> set[tuple[str, int]]:
        """(round, slot) of every message that was frozen and need not be made again."""
        with self._reading() as connection:
            query = f"SELECT raw IS NULL, raw = ?, {COLUMNS['outgoing']}, mark FROM outgoing"  # noqa: S608
            found: set[tuple[str, int]] = set()
            again: set[tuple[str, int]] = set()
            for sent, unkept, *row in connection.execute(f"{query} WHERE run = ?", (_AGAIN, run)):
                self._check("outgoing", tuple(row), f"a message of run {run[:12]}", bool(sent))
                (again if unkept else found).add((row[3], int(row[4])))
            return found - again

    def receivers(self, run: str) -> set[int]:
        """The places of those to whom messages of a run were addressed."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT DISTINCT receiver FROM outgoing WHERE run = ?", (run,)
            )
            return {place for (place,) in rows}

    def left(self, run: str) -> list[tuple[str, int, int]]:
        """What was sent in a run: round, number of messages, bytes."""
        with self._reading() as connection:
            return connection.execute(
                "SELECT round, count(*), sum(size) FROM outgoing WHERE run = ?"
                " GROUP BY round ORDER BY min(number)",
                (run,),
            ).fetchall()

    def taken(self, run: str) -> dict[Name, bytes]:
        """The digests of all incoming messages that were processed, in that order."""
        with self._reading() as connection:
            query = (
                f"SELECT {COLUMNS['incoming']}, mark FROM incoming WHERE run = ? ORDER BY number"  # noqa: S608
            )
            found = {}
            for row in connection.execute(query, (run,)):
                self._check("incoming", row, f"a message of run {run[:12]}")
                _, _, place, name, slot, digest, _ = row
                found[Name(place, name, int(slot))] = digest
            return found

    # -- what was in force ------------------------------------------------------------------

    def roster(self) -> tuple[int, bytes] | None:
        """Serial and digest of the last roster that was in force here; None if there was none."""
        with self._reading() as connection:
            serial, digest, _ = self._own(connection)
        return (serial, digest) if serial else None

    def witness(self) -> str:
        """The ledger's witness (its last entry) when it was last seen; empty if it never was."""
        with self._reading() as connection:
            return self._own(connection)[2]

    def set_witness(self, witness: str) -> None:
        """Record the ledger's witness."""
        with self.together() as connection:
            self._set_own(connection, "witness = ?", witness)

    def set_roster(self, serial: int, digest: bytes) -> None:
        """Record the roster that is in force."""
        with self.together() as connection:
            self._set_own(connection, "roster_serial = ?, roster_digest = ?", serial, digest)

    # -- the file --------------------------------------------------------------------------

    @contextmanager
    def together(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all writes of the block are on the disk at its end, or none of them.

        A nested block is part of the outer one. The block must not await anything.
        """
        with self._lock, self._explained():
            if self._connection.in_transaction:
                yield self._connection
                return
            self._wiped = False
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                for run, note in self._notes:
                    _note(self._connection, run, note)
                self._connection.execute("COMMIT")
                self._notes.clear()
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            if self._wiped:
                # A wiped secret remains in the write-ahead log until the checkpoint. A process that
                # is reading may prevent the checkpoint; then it happens when the next run ends.
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._explained():
            yield self._connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError:  # SQLite quotes what it cannot read
            raise self._damaged("it has a text that is none") from None
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "") or type(error).__name__
            full = ", the disk is full" if name == "SQLITE_FULL" else ""
            raise StoreError(f"{self.path}: the store cannot be used: {name}{full}") from None
        except OSError as error:
            raise StoreError(f"{self.path}: the store cannot be used: {error.strerror}") from None

    def entries(self) -> int:
        """The number of entries of the trail."""
        with self._reading() as connection:
            found: int = connection.execute("SELECT ifnull(max(number), 0) FROM trail").fetchone()[
                0
            ]
        return found

    def settings(self) -> dict[str, str | int]:
        """The values of the pragmas on which durability and wiping depend."""
        with self._reading() as connection:
            names = ("journal_mode", "synchronous", "secure_delete")
            return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names}

    def close(self) -> None:
        """Write the records that are still in memory, and close the file."""
        with self._lock, self._explained():
            if self._notes:
                with self.together():
                    pass
            self._connection.close()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"


def _note(connection: sqlite3.Connection, run: str, taken: Taken) -> None:
    name = taken.name
    number = _next(connection, "incoming")
    row = (number, run, name.party, name.round, str(name.slot), taken.digest)
    connection.execute(
        "INSERT OR IGNORE INTO incoming VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, _mark(*row))
    )


def _next(connection: sqlite3.Connection, table: str) -> int:
    query = f"SELECT ifnull(max(number), 0) + 1 FROM {table}"  # noqa: S608 - a fixed text
    number: int = connection.execute(query).fetchone()[0]
    return number


def _release(connection: sqlite3.Connection, run: str, names: Iterable[Name]) -> None:
    where = "WHERE run = ? AND receiver = ? AND round = ? AND slot = ? AND raw IS NOT NULL"
    connection.executemany(
        f"{_SENT} {where}",
        [(run, name.party, name.round, str(name.slot)) for name in names],
    )
