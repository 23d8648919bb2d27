"""What the consoles of all parties show alike: the trail, the roster, the party's health.

A desk has the party's store open, as a command has, and reads it anew for every page. It keeps
nothing between pages, so that it can be ended at any time without harm.
"""

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from silograph.console.access import Person
from silograph.errors import SilographError, TrailError, TransportError
from silograph.methods.study import Study, read_proposal
from silograph.nats.link import Link
from silograph.nats.preflight import Check
from silograph.party import certificates
from silograph.party.approval import Vote, check_votes, votes_of
from silograph.party.config import PartyConfig
from silograph.party.keys import key_text
from silograph.party.opened import open_store
from silograph.party.roster import digest_text, read_roster
from silograph.party.store import Run
from silograph.party.trail import Trail

__all__ = ["MOST_PAST", "Desk", "Phase", "asked", "folded_words", "moment", "phases", "shown_vote"]

#: So many studies that have ended are shown.
MOST_PAST = 200
#: The most entries of a trail that a page shows.
_ENTRIES = 200
#: A service that wrote its status longer ago than this is not running.
_LONGEST_SILENCE = 60.0
#: How long a preflight tries to reach the broker.
_REACH_SECONDS = 5.0


def moment(seconds: float) -> str:
    """A time as pages show it.

    >>> moment(0)
    '1970-01-01 00:00 UTC'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


@dataclass(frozen=True)
class Phase:
    """A stretch of a study; the rest is empty while it lasts."""

    who: str
    name: str
    began: str
    ended: str
    took: str


def phases(moments: Iterable[tuple[float, str, str]], end: float | None) -> list[Phase]:
    """The phases that begin at these moments, by whose they are; all are over at ``end``.

    What begins at the end or after it is no phase.

    >>> [(p.name, p.took) for p in phases([(0.0, "", "keys"), (90.0, "", "counts")], 90.5)]
    [('keys', '1:30'), ('counts', '0:00.5')]
    """
    of: dict[str, list[tuple[float, str]]] = {}
    for began, who, name in moments:
        if end is None or began < end:
            of.setdefault(who, []).append((began, name))
    made = []
    for who, found in of.items():
        before: float | None = None
        for (began, name), to in zip(found, [*(b for b, _ in found[1:]), end], strict=True):
            ended = ("", "") if to is None else (_clock(to, began), _took(to - began))
            made.append(Phase(who, name, _clock(began, before), *ended))
            before = began
    return made


def _clock(seconds: float, after: float | None) -> str:
    """A time with its date, unless the time that stands before it has the same."""
    shown, before = (
        "" if s is None else datetime.fromtimestamp(s, UTC).strftime("%Y-%m-%d %H:%M:%S")
        for s in (seconds, after)
    )
    return shown[11:] if shown[:10] == before[:10] else shown


def _took(seconds: float) -> str:
    """How long something took, as a clock shows it; tenths where it was short."""
    tenths = max(round(10 * seconds), 0)
    minutes, rest = divmod(tenths, 600)
    if tenths >= 600:
        hours, minutes = divmod(minutes, 60)
        start = f"{hours}:{minutes:02}" if hours else f"{minutes}"
        return f"{start}:{rest // 10:02}"
    return f"0:{rest // 10:02}" + (f".{rest % 10}" if rest % 10 else "")


#: What begins with an event of a trail: at a party that decides, and ends with its last one.
_BEGINS = {
    "study.proposed": "waits for a decision",
    "study.decided": "prepares; nothing is spent yet",
    "budget.spent": "counts",
}


class Desk(ABC):
    """A party's files, open for a console."""

    #: The pages of this kind of party: their paths and names.
    pages: dict[str, str]

    def __init__(self, config: PartyConfig, clock: Callable[[], float] = time.time) -> None:
        self.config = config
        self.clock = clock
        self.store = open_store(config)
        self.trail = Trail(self.store, clock)

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    # -- what changes ------------------------------------------------------------------------

    def version(self) -> str:
        """A text that changes whenever a page would show something else."""
        runs = [(r.run, r.decision, r.spent, r.phase, r.state, r.code) for r in self.store.runs()]
        return repr((runs, self.store.entries(), self.alive(), self._version()))

    @abstractmethod
    def _version(self) -> str:
        """The same, of what only this kind of party shows."""

    @abstractmethod
    def alive(self) -> str:
        """Whether the party's service is at work, in words; empty if it is."""

    def _status(self) -> str:
        """Whether a silo's or a helper's service has told of itself lately; empty if it has."""
        try:
            found = json.loads((self.config.state / "status.json").read_bytes())
            age, connected = self.clock() - found["time"], bool(found["connected"])
        except (OSError, ValueError, KeyError, TypeError):
            return "The service has not been started here: silograph silo run."
        if age > _LONGEST_SILENCE:
            return f"The service was last heard of at {moment(found['time'])}."
        return "" if connected else "The service runs and does not reach the broker."

    # -- studies -----------------------------------------------------------------------------

    def studies(self) -> list[tuple[Study, Run]]:
        """All studies that this version can read, newest first."""
        rows = reversed(self.store.runs())
        return [(study, row) for row in rows if (study := read_proposal(row.proposal))]

    def votes(self) -> list[Vote]:
        """What people said about studies."""
        return votes_of(self.trail)

    def may_sign(self, person: Person) -> str:
        """Why a person cannot decide here; empty if the person can."""
        if not self.config.approvers:
            return (
                "This party's configuration enrols no approvers ([[approvers]]), so nobody can "
                "decide here: a decision on this page is always signed by a person."
            )
        if not person.key:
            return "Your token names no key, so you can look and not decide."
        try:
            public = person.public
        except SilographError as error:
            return f"Your key cannot be read: {error}"
        if public not in {member.public for member in self.config.approvers}:
            return "Your key is not that of an approver whom the configuration enrols."
        return ""

    # -- the trail ---------------------------------------------------------------------------

    def entries(self, run: str = "", most: int = _ENTRIES) -> list[dict[str, Any]]:
        """The last entries of the trail, newest first, of one run or of all."""
        found = (e for e in self.trail.entries() if not run or e.get("run") == run)
        return [_entry(e) for e in reversed(deque(found, most))]

    def verify(self) -> Check:
        """Follow the whole chain, and check every signature, as ``silograph trail verify`` does."""
        try:
            head = self.trail.verify()
            strangers = check_votes(self.trail, self.config.approvers)
            signed = sum(vote.signed for vote in votes_of(self.trail))
        except TrailError as error:
            return Check("trail", "failed", str(error))
        words = (
            f"All {head.number:,} entries follow each other, and all {signed:,} signatures hold. "
            f"Note this mark elsewhere: {head}"
        )
        others = sorted({vote.by for vote in strangers})
        if others:
            words += f". Not enrolled now: {', '.join(others)}"
        return Check("trail", "ok", words)

    def milestones(self, run: str) -> tuple[list[tuple[float, str, str]], float | None]:
        """When the parts of a study began here, as the trail tells it, and when it ended."""
        found, end = [], None
        for entry in self.trail.entries():
            if entry.get("run") == run:
                when = datetime.fromisoformat(entry["time"]).timestamp()
                if entry["event"] in _BEGINS:
                    found.append((when, "", _BEGINS[entry["event"]]))
                end = when if entry["event"] == "run.ended" else end
        return found, end

    # -- the roster --------------------------------------------------------------------------

    def roster(self) -> dict[str, Any]:
        """The parties, and who has signed."""
        found = read_roster(self.config.roster)
        parties = [("coordinator", found.roster.coordinator), *found.parties]
        return {
            "serial": found.serial,
            "digest": digest_text(found.digest),
            "parties": [
                {
                    "role": role,
                    "name": member.name,
                    "organisation": member.organisation,
                    "key": key_text(member.public),
                    "signed": member.name in found.signatures,
                    "own": member.name == self.config.name,
                }
                for role, member in parties
            ],
            "revoked": [(r.name, str(r.date), r.reason, key_text(r.key)) for r in found.revoked],
        }

    # -- health ------------------------------------------------------------------------------

    def preflight(self) -> list[Check]:
        """Look at everything that a study needs of this party."""
        return [
            self.service_check(),
            self._broker(),
            *self._certificate(),
            _tried("roster", self._roster_check),
            self.verify(),
        ]

    def service_check(self) -> Check:
        """Whether the service runs and reaches the broker."""
        unwell = self.alive()
        if unwell:
            return Check("service", "failed", unwell)
        return Check("service", "ok", "It is running and reaches the broker.")

    def _broker(self) -> Check:
        async def reach() -> float:
            began = time.perf_counter()
            link = await Link.connect(self.config.broker, self.config.name, _REACH_SECONDS)
            await link.close()
            return time.perf_counter() - began

        try:
            taken = asyncio.run(reach())
        except TransportError as error:
            return Check("broker", "failed", str(error))
        return Check("broker", "ok", f"{', '.join(self.config.broker.urls)}: {taken:.2f} s")

    def _certificate(self) -> list[Check]:
        tls = self.config.broker.tls
        if tls is None:
            return []

        def look() -> str:
            expires = certificates.show_certificate(tls.cert).expires.timestamp()
            if expires < self.clock():
                raise TransportError(f"it expired at {moment(expires)}")
            return f"It is valid until {moment(expires)}."

        return [_tried("certificate", look)]

    def _roster_check(self) -> str:
        found = read_roster(self.config.roster)
        found.check_complete()
        known = self.store.roster()
        if known is not None:
            found.check_replaces(*known)
        return f"Signed by all {len(found.members)} parties; serial {found.serial}."


def _tried(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, "ok", look())
    except SilographError as error:
        return Check(name, "failed", str(error))


#: Events of a trail in words.
_EVENTS = {
    "study.proposed": "proposed",
    "study.vote": "a person's word",
    "study.decided": "decided",
    "budget.spent": "budget spent",
    "house.left": "sent",
    "run.ended": "ended",
}
#: Fields of an entry that stand elsewhere on the page, or that only programs compare.
_APART = frozenset(
    {"number", "time", "event", "chain", "run", "by", "signature", "signer", "study", "party",
     "moment", "head", "why"}
)  # fmt: skip


def _plain(value: object) -> object:
    """A value of an entry; a time without what nobody reads."""
    text = str(value)
    return f"{text[:16].replace('T', ' ')} UTC" if text.endswith(".000+00:00") else value


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry as a page shows it: its own columns, and the rest as names and values."""
    return {
        "number": entry["number"],
        "time": str(entry["time"])[:19].replace("T", " "),
        "event": _EVENTS.get(entry["event"], entry["event"]),
        "run": str(entry.get("run", "")),
        "by": str(entry.get("by", "")).replace(",", ", "),
        "signed": "signature" in entry,
        "why": str(entry.get("why", "")),
        "rest": {k: _plain(v) for k, v in entry.items() if k not in _APART},
    }


def asked(study: Study) -> str:
    """What a study asks for."""
    if study.method == "hubs":
        return "search for hubs"
    return f"{study.k}-stars" if study.k else study.query.replace("_", " ")


def folded_words(study: Study) -> str:
    """How a study folds its nodes; empty if it does not."""
    if not study.index.folded:
        return ""
    shape = study.index.layout
    hubs = f"; {shape.hubs:,} hubs of a list have one of their own" if shape.hubs else ""
    sub = f"; {shape.sub} buckets for each sign" if shape.sub > 1 else ""
    return f"into {shape.groups:,} groups{hubs}{sub}"


def shown_vote(vote: Vote) -> dict[str, Any]:
    """A vote as a page shows it."""
    return {
        "by": vote.by,
        "decision": vote.decision,
        "reason": vote.reason,
        "time": f"{vote.time[:16].replace('T', ' ')} UTC",
        "signed": vote.signed,
        "key": f"ed25519:{vote.key[:16]}…" if vote.key else "",
    }
