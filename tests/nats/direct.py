"""A tiny method whose members write to each other, for tests of those who carry messages.

Every member greets every other member. Then every silo and helper deals numbers to all members, in
several slots; a slot's numbers add up to the number of its edges. Members report the sums of each
slot to the coordinator, who tells each of them, one by one, that it has heard. It protects nothing.
"""

import hashlib
import struct
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from silograph.errors import OrderError
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.messages.entropy import Entropy
from silograph.messages.envelope import Binding, Envelope, Outgoing, open_envelope, seal
from silograph.messages.identity import COORDINATOR, Identity, Roster
from silograph.messages.machine import CoordinatorSession, SiloSession
from silograph.methods.method import Outcome, SettledStudy
from silograph.methods.study import Study, places_of
from silograph.nats import coordinator as coordinators
from silograph.nats import silo as services

SLOTS = 6
#: How many slots a member may be ahead of the slowest sender.
AHEAD = 2
_NUMBERS = struct.Struct("<qQ")


@dataclass(frozen=True)
class Answer:
    value: int

    def to_dict(self) -> dict[str, Any]:
        return {"query": "edges", "value": self.value}


class SettledDirect(SettledStudy):
    """A study of this method, in the place of that of protocol committee."""

    protocol = "committee"
    views = ()

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.losses = dict.fromkeys(range(len(study.silos)), study.epsilon)

    def silo(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy, silo: Silo
    ) -> SiloSession:
        return DirectParty(self.study, roster, place, identity, entropy, len(silo))

    def helper(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy
    ) -> SiloSession:
        return DirectParty(self.study, roster, place, identity, entropy, 0)

    def coordinator(
        self, roster: Roster, identity: Identity, entropy: Entropy
    ) -> CoordinatorSession[Any]:
        return DirectCoordinator(self.study, roster, identity)

    def outcome(self, result: Any, universe: NodeUniverse) -> Outcome:
        return Outcome(None, Answer(result))  # type: ignore[arg-type]


def install() -> None:
    """Let this process settle every study by this method."""
    services.plan_study = SettledDirect  # type: ignore[assignment]
    coordinators.plan_study = coordinators.settle_study = SettledDirect  # type: ignore[assignment]


def _binding(study: Study, roster: Roster) -> Binding:
    return Binding(study.id, hashlib.sha256(b"direct" + study.digest).digest(), roster)


class DirectParty(SiloSession):
    """A silo or a helper."""

    def __init__(
        self,
        study: Study,
        roster: Roster,
        place: int,
        identity: Identity,
        entropy: Entropy,
        value: int,
    ) -> None:
        self.study = study
        self._binding = _binding(study, roster)
        self.bindings = (self._binding,)
        self._members = places_of(study.members, roster)
        self._member = place in self._members
        self._all = tuple(roster.places)
        self.place, self._identity, self._entropy, self._value = place, identity, entropy, value
        self._paid = False
        self._made = 0
        self._greeted: set[int] = set()
        self._parts: dict[int, dict[int, int]] = {slot: {} for slot in range(SLOTS)}
        self._sums = 0
        self._heard = 0

    def _to(self, place: int, name: str, slot: int, payload: bytes) -> Outgoing:
        message = Envelope(name, self.place, place, slot, payload)
        return Outgoing(place, seal(self._binding, self._identity, message))

    @property
    def sources(self) -> tuple[int, ...]:
        others = (place for place in self._all if place != self.place)
        return (COORDINATOR, *others) if self._member else (COORDINATOR,)

    def wants(self, place: int) -> bool:
        if place == COORDINATOR or place not in self._members or place in self._greeted:
            came = sum(place in parts for parts in self._parts.values())
            return place == COORDINATOR or came < self._sums + AHEAD
        return True

    def start(self) -> list[Outgoing]:
        if not self._member:
            return []
        return [self._to(m, "hi", 0, b"") for m in self._members if m != self.place]

    @property
    def ready(self) -> bool:
        waits = set(self._members) - self._greeted - {self.place} if self._member else set()
        return not self._paid and not waits

    def authorise(self) -> list[Outgoing]:
        if not self.ready:
            raise OrderError("not yet", round="authorise")
        self._paid = True
        return []

    @property
    def room(self) -> bool:
        return self._paid and self._made < SLOTS

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        slot, self._made = self._made, self._made + 1
        coin = int.from_bytes(self._entropy.bytes(8), "little")  # other bytes would be noticed
        payload = _NUMBERS.pack(self._value, coin)
        made = [self._to(m, "part", slot, payload) for m in self._members if m != self.place]
        if self._member:
            self._parts[slot][self.place] = self._value
            made += self._added()
        return made

    def receive(self, raw: bytes) -> list[Outgoing]:
        message = open_envelope(self._binding, raw, receiver=self.place)
        if message.round == "hi":
            self._greeted.add(message.sender)
        elif message.round == "part":
            value, _ = _NUMBERS.unpack(message.payload)
            if message.sender in self._parts[message.sequence]:
                raise OrderError("came twice", round="part")
            self._parts[message.sequence][message.sender] = value
        elif message.round == "heard":
            self._heard += 1
        else:
            raise OrderError("there is no such message", round=message.round)
        return self._added()

    def _added(self) -> list[Outgoing]:
        """The sums of slots that are complete, in order."""
        made = []
        while self._sums < self._made and len(self._parts[self._sums]) == len(self._all):
            total = sum(self._parts[self._sums].values())
            made.append(self._to(COORDINATOR, "sum", self._sums, _NUMBERS.pack(total, 0)))
            self._sums += 1
        return made

    @property
    def phase(self) -> str:
        return f"{self._made}-{self._sums}-{self._heard}"

    @property
    def done(self) -> bool:
        return self._made == SLOTS and (not self._member or self._heard == SLOTS)


class DirectCoordinator(CoordinatorSession[int]):
    """The coordinator."""

    def __init__(self, study: Study, roster: Roster, identity: Identity) -> None:
        self._binding = _binding(study, roster)
        self.bindings = (self._binding,)
        self._members = places_of(study.members, roster)
        self._identity = identity
        self._sums: dict[int, dict[int, int]] = {slot: {} for slot in range(SLOTS)}

    def receive(self, raw: bytes) -> list[Outgoing]:
        message = open_envelope(self._binding, raw, receiver=COORDINATOR)
        if message.round != "sum" or message.sender not in self._members:
            raise OrderError("there is no such message", round=message.round)
        value, _ = _NUMBERS.unpack(message.payload)
        sums = self._sums[message.sequence]
        sums[message.sender] = value
        if len(sums) < len(self._members):
            return []
        assert len(set(sums.values())) == 1
        return [
            Outgoing(place, seal(self._binding, self._identity,
                                 Envelope("heard", COORDINATOR, place, message.sequence, b"")))
            for place in self._members
        ]  # fmt: skip

    @property
    def phase(self) -> str:
        return "adding"

    @property
    def done(self) -> bool:
        return all(len(sums) == len(self._members) for sums in self._sums.values())

    @property
    def progress(self) -> tuple[int, int]:
        return sum(map(len, self._sums.values())), SLOTS * len(self._members)

    def result(self) -> int:
        (value,) = {value for sums in self._sums.values() for value in sums.values()}
        return value
