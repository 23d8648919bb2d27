"""A party's audit trail: who proposed and decided, what was spent, which messages were sent.

What
    A table of the state store. An entry has a number, a time, an event, its content (JSON with
    listed fields, see :mod:`~silograph.party.log`) and a chain value: the SHA-256 of the previous
    chain value and of the entry.
Guarantee
    An entry is on the disk before the call returns. It is written in the same transaction as the
    change of the store that it describes. Entries are never changed or removed: triggers refuse
    this, and :meth:`Trail.verify` finds an entry that was changed, moved or removed nevertheless.
    Entries that were cut off at the end are found by comparing with a :class:`Mark` that was noted
    earlier. Anyone who can write the file can write a whole new chain, so note the mark where the
    operator of the machine cannot change it. Several processes may add to one trail.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from silograph.errors import TrailError
from silograph.messages.identity import pack
from silograph.party.log import plain_fields
from silograph.party.store import Store

__all__ = ["NOTHING", "Mark", "Trail"]

#: The chain value before the first entry.
NOTHING = "0" * 64


@dataclass(frozen=True)
class Mark:
    """A position in a trail: an entry's number and its chain value."""

    number: int
    chain: str

    def __str__(self) -> str:
        return f"{self.number}:{self.chain}"


def _chained(before: Mark, *entry: bytes) -> Mark:
    number = before.number + 1
    parts = (before.chain.encode(), str(number).encode(), *entry)
    return Mark(number, hashlib.sha256(pack(b"silograph/trail/v1", *parts)).hexdigest())


class Trail:
    """The audit trail of a store.

    The trail and the store always agree, even after a service was killed. A spend is in the ledger
    first; a service that starts again adds spends that are missing here. The messages that were
    sent are recorded when a run ends, as totals by kind. The cost of a run is recorded before, by
    :meth:`spent`.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    @property
    def path(self) -> Path:
        """The file that the trail is in."""
        return self._store.path

    @property
    def party(self) -> str:
        """The party whose trail it is."""
        return self._store.party

    # -- writing -----------------------------------------------------------------------------

    def proposed(
        self,
        run: bytes,
        coordinator: str,
        study: bytes,
        *,
        query: str | None = None,
        method: str | None = None,
        protocol: str | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        collusion: int | None = None,
        deadline: datetime | None = None,
    ) -> Mark:
        """Record a proposal, with the terms that a policy checks."""
        return self._add(
            "study.proposed", run=run, coordinator=coordinator, study=study, query=query,
            method=method, protocol=protocol, epsilon=epsilon, delta=delta, collusion=collusion,
            deadline=deadline,
        )  # fmt: skip

    def decided(self, run: bytes, by: str, code: str, error: BaseException | None = None) -> Mark:
        """Record that a study was accepted or refused, by ``policy`` or by the named operator."""
        return self._add("study.decided", run=run, by=by, code=code, error=error)

    def voted(
        self,
        run: bytes,
        study: bytes,
        party: str,
        by: str,
        code: str,
        why: str | None = None,
        moment: str | None = None,
        signer: str | None = None,
        signature: str | None = None,
    ) -> Mark:
        """Record what a person said about a study; see :mod:`~silograph.party.approval`."""
        return self._add(
            "study.vote", run=run, study=study, party=party, by=by, code=code, why=why,
            moment=moment, signer=signer, signature=signature,
        )  # fmt: skip

    def spent(
        self,
        run: bytes,
        lineage: str,
        epsilon: float,
        delta: float,
        collusion: int,
        serial: int,
        head: bytes,
    ) -> Mark:
        """Record the cost of a run, and the ledger's last serial and digest after that spend."""
        return self._add(
            "budget.spent", run=run, lineage=lineage, epsilon=epsilon, delta=delta,
            collusion=collusion, serial=serial, head=head,
        )  # fmt: skip

    def frozen(self, run: bytes, serial: int, head: bytes, error: BaseException) -> Mark:
        """Record that the ledger was frozen in a run, and its last serial and digest then."""
        return self._add("ledger.frozen", run=run, serial=serial, head=head, error=error)

    def left(self, run: bytes, kind: str, messages: int, size: int) -> Mark:
        """Record what was sent in a run: messages of one kind, and their bytes."""
        return self._add("house.left", run=run, kind=kind, messages=messages, bytes=size)

    def ended(self, run: bytes, state: str, error: BaseException | None = None) -> Mark:
        """Record how the run ended for this party."""
        return self._add("run.ended", run=run, state=state, error=error)

    def _add(self, event: str, **fields: object) -> Mark:
        content = json.dumps(plain_fields(fields), separators=(",", ":"), allow_nan=False)
        now = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")
        entry = (now, event, content)
        with self._store.together() as connection:
            last = connection.execute(
                "SELECT number, chain FROM trail ORDER BY number DESC LIMIT 1"
            ).fetchone()
            before = Mark(0, NOTHING) if last is None else Mark(last[0], str(last[1]))
            mark = _chained(before, *(part.encode() for part in entry))
            connection.execute(
                "INSERT INTO trail (number, time, event, content, chain) VALUES (?, ?, ?, ?, ?)",
                (mark.number, *entry, mark.chain),
            )
        return mark

    # -- reading -----------------------------------------------------------------------------

    def entries(self) -> Iterator[dict[str, Any]]:
        """Every entry, oldest first, each checked against the one before it.

        The first entry that does not fit raises a :class:`TrailError` that names it.
        """
        with self._store.together() as connection:
            # As bytes: the chain is computed over bytes, and a damaged entry may not be text.
            rows = connection.execute(
                "SELECT number, CAST(time AS BLOB), CAST(event AS BLOB), CAST(content AS BLOB), "
                "CAST(chain AS BLOB) FROM trail ORDER BY number"
            ).fetchall()
        last = Mark(0, NOTHING)
        for number, now, event, content, chain in rows:
            where = f"{self._store.path}: entry {number}"
            if number != last.number + 1:
                raise TrailError(
                    f"{where} after entry {last.number}: entries were removed or moved"
                )
            parts = [bytes(part or b"") for part in (now, event, content)]
            last = _chained(last, *parts)
            if last.chain.encode() != chain:
                raise TrailError(f"{where}: the entry, or one before it, was changed")
            yield {"number": number, **_read(*parts, where=where), "chain": last.chain}

    def verify(self, known: Mark | None = None) -> Mark:
        """Check the whole trail and return its last mark; ``known`` must be in it, if given."""
        head, seen = Mark(0, NOTHING), known in (None, Mark(0, NOTHING))
        for entry in self.entries():
            head = Mark(entry["number"], entry["chain"])
            seen = seen or head == known
        if known is not None and not seen:
            raise TrailError(
                f"{self._store.path}: entry {known.number} with chain {known.chain[:16]}… is not "
                "in it: entries were cut off, or it is another trail"
            )
        return head


def _read(now: bytes, event: bytes, content: bytes, *, where: str) -> dict[str, Any]:
    try:
        return {"time": now.decode(), "event": event.decode(), **json.loads(content)}
    except (ValueError, TypeError, RecursionError):
        raise TrailError(f"{where}: not an entry of a trail") from None
