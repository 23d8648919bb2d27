"""Committee unions of tiny parties, message by message, with hooks for everything in transit."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import pytest

from silograph.errors import OrderError, ProtocolError
from silograph.messages.envelope import EVERYONE, Binding, Envelope, Outgoing, peek, seal
from silograph.messages.identity import COORDINATOR, Identity, Member, Roster, unpack
from silograph.methods.committee.coordinator import CommitteeCoordinator, Host
from silograph.methods.committee.party import CommitteeParty
from silograph.methods.committee.rounds import SECRET_ROUNDS, CommitteeParameters, State
from tests.support.parties import SeededEntropy, identities, roster_of

RUN = bytes(range(16))
LAST = 99  # the seed of the coordinator's entropy, after those of the parties


@dataclass(frozen=True)
class Committee:
    """Who takes part: silos, helpers, and the places of the four members in their order."""

    silos: int
    helpers: int
    members: tuple[int, ...]

    @property
    def parties(self) -> int:
        return self.silos + self.helpers


#: The committees of the tests, by name.
COMMITTEES = {
    "four silos": Committee(4, 0, (0, 1, 2, 3)),
    "four silos in another order": Committee(4, 0, (2, 0, 3, 1)),
    "three silos and a helper": Committee(3, 1, (0, 1, 2, 3)),
    "two silos and two helpers": Committee(2, 2, (3, 0, 2, 1)),
    "a silo outside, two helpers": Committee(3, 2, (0, 3, 1, 4)),
    "five silos": Committee(5, 0, (0, 1, 2, 3)),
    "seven silos": Committee(7, 0, (6, 1, 4, 2)),
    "the coordinator inside": Committee(3, 0, (0, COORDINATOR, 1, 2)),
    "the coordinator and a silo outside": Committee(4, 1, (COORDINATOR, 3, 4, 0)),
}
FOUR = COMMITTEES["four silos"]
FIVE = COMMITTEES["five silos"]


#: Round, sequence, sender, receiver.
Name = tuple[str, int, int, int]


class Message(NamedTuple):
    """One message on its way to one receiver."""

    sender: int
    receiver: int
    raw: bytes

    @property
    def envelope(self) -> Envelope:
        return peek(self.raw)

    @property
    def name(self) -> Name:
        envelope = self.envelope
        return envelope.round, envelope.sequence, self.sender, self.receiver


#: What becomes of a message in transit: the bytes that are delivered for it, one after the other.
Change = Callable[[Message], Iterable[bytes]]


#: What can be done next: ``deliver``, ``authorise`` or ``make``, the party, a position in a queue.
Act = tuple[str, int, int]


class Order(Protocol):
    """Chooses what is done next."""

    def choice(self, acts: list[Act], /) -> Act: ...


class Slowly:
    """One party hears something only where nothing else can be done."""

    def __init__(self, place: int, look: Callable[[], None]) -> None:
        self._place, self._look = place, look

    def choice(self, acts: list[Act], /) -> Act:
        self._look()
        return next((act for act in acts if act[1] != self._place), acts[0])


def at_random(seed: object) -> Random:
    """An order that follows from a seed; also numbers for tests."""
    return Random(str(seed))  # noqa: S311 - nothing here is secret


def random_committee(rng: Random) -> Committee:
    """Two to seven silos; the members are any four of silos, helpers and the coordinator."""
    silos = rng.randint(2, 7)
    least = max(0, 3 - silos)
    helpers = rng.randint(least, min(3, 4))
    pool = [*range(silos), COORDINATOR]
    if silos + helpers == 3:
        chosen = pool
    else:
        chosen = rng.sample(pool if rng.random() < 0.3 else pool[:-1], min(4 - helpers, silos))
    members = [*chosen, *range(silos, silos + helpers)][: max(4, helpers)]
    while len(members) < 4:
        members.append(COORDINATOR)
    rng.shuffle(members)
    return Committee(silos, helpers, tuple(members))


def parameters(committee: Committee, pairs: int = 64, **changes: object) -> CommitteeParameters:
    given: dict[str, object] = {
        "numerator": 3,
        "places": 3,
        "silos": committee.silos,
        "members": committee.members,
        "pairs": pairs,
        "subject": b"nodes",
        "chunk_pairs": 64,
    }
    return CommitteeParameters(**(given | changes))  # type: ignore[arg-type]


def keys_of(committee: Committee) -> tuple[dict[int, Identity], Roster]:
    """The identities of all parties by place, and their roster."""
    keys = identities(committee.silos)
    helpers = [Identity(bytes([200 + i] * 32)) for i in range(committee.helpers)]
    base = roster_of(keys)
    members = (Member(f"helper {i + 1}", key.public) for i, key in enumerate(helpers))
    roster = Roster(base.coordinator, base.silos, tuple(members))
    places = dict(enumerate((*keys[:-1], *helpers)))
    return places | {COORDINATOR: keys[-1]}, roster


class CommitteeRun:
    """All parties of one run. ``held`` are the pairs of each silo, as the bits of one number.

    Runs of other protocols with a committee have other machines and other parameters of ``size``.
    """

    PARTY: ClassVar[type[CommitteeParty]] = CommitteeParty
    HOST: ClassVar[type[Host[Any]]] = CommitteeCoordinator

    def __init__(
        self,
        committee: Committee = FOUR,
        held: Iterable[int] = (),
        size: int = 64,
        *,
        given: Any = None,
        seed: int = 1,
        run: bytes = RUN,
        order: Order | None = None,
        change: Change | None = None,
    ) -> None:
        self.committee = committee
        self.parameters = given or self.usual(committee, size)
        self.held = [*held] or [0] * committee.silos
        self.keys, self.roster = keys_of(committee)
        self.run, self.seed = run, seed
        self.binding = Binding(run, self.parameters.digest, self.roster)
        self.parties = {place: self.party(place) for place in self.roster.places}
        self.coordinator = self.new_coordinator()
        self._order, self._change = order, change
        self._waiting: deque[Message] = deque()
        #: Who may not be authorised, and who has been.
        self.unpaid: set[int] = set()
        #: Everything that was sent, as its sender made it.
        self.sent: list[Message] = []
        #: What was refused: the receiver, what had been sent so far, and the error.
        self.errors: list[tuple[int, int, ProtocolError]] = []

    def usual(self, committee: Committee, size: int) -> Any:
        """The parameters of a run for which none are given."""
        return parameters(committee, size)

    def secret(self, place: int) -> bytes:
        """The run secret of a party."""
        return self._entropy(place).bytes(32)

    def _entropy(self, place: int) -> SeededEntropy:
        return SeededEntropy(100 * self.seed + (LAST if place == COORDINATOR else place))

    def party(self, place: int) -> CommitteeParty:
        """A silo or a helper as it is before a run."""
        bits = None if place >= self.committee.silos else lambda _, chunk: self.bits(place, chunk)
        key = self.keys[place]
        head = (self.parameters, self.roster, self.run, place, key)
        return self.PARTY(*head, self._entropy(place), bits)

    def new_coordinator(self) -> Host[Any]:
        head = (self.parameters, self.roster, self.run, self.keys[COORDINATOR])
        return self.HOST(*head, self._entropy(COORDINATOR))

    def bits(self, place: int, chunk: int) -> bytes:
        """One chunk's bits of a silo."""
        start, size = chunk * self.parameters.chunk_pairs, self.parameters.chunk_size(chunk)
        value: int = self.held[place] >> start & (1 << size) - 1
        return value.to_bytes(self.parameters.bit_bytes(chunk), "little")

    def machine(self, place: int) -> CommitteeParty | Host[Any]:
        return self.coordinator if place == COORDINATOR else self.parties[place]

    def name(self, place: int) -> str:
        return self.roster.member(place).name

    # --- the way ------------------------------------------------------------------------------

    def go(self) -> Self:
        """Until there is nothing left to do."""
        for place, party in self.parties.items():
            self._send(place, party.start())
        while self._act():
            pass
        return self

    def _act(self) -> bool:
        """Deliver one message, authorise one party or make one chunk."""
        acts = self._acts()
        if not acts:
            return False
        kind, place, position = acts[0] if self._order is None else self._order.choice(acts)
        if kind == "deliver":
            message = self._waiting[position]
            del self._waiting[position]
            self.deliver(message)
        elif kind == "authorise":
            self._try(place, self.parties[place].authorise)
        else:
            self._try(place, self.machine(place).make)
        return True

    def _acts(self) -> list[Act]:
        """What could be done next: the first message of each sender to each receiver, and so on.

        Without an order of its own a run authorises at once, and then delivers what is oldest.
        """
        acts = [
            ("authorise", place, 0)
            for place, party in self.parties.items()
            if party.ready and place not in self.unpaid
        ]
        lines = set()
        for position, message in enumerate(self._waiting):
            line = (message.sender, message.receiver)
            if line not in lines and self.machine(message.receiver).wants(message.sender):
                acts.append(("deliver", message.receiver, position))
                if self._order is None:
                    return acts
            lines.add(line)
        everyone = (*self.parties, COORDINATOR)
        return acts + [("make", place, 0) for place in everyone if self.machine(place).room]

    def deliver(self, message: Message) -> None:
        """Hand over one message; an error is kept."""
        machine = self.machine(message.receiver)
        self._try(message.receiver, lambda: machine.receive(message.raw))

    def _try(self, place: int, act: Callable[[], list[Outgoing]]) -> None:
        try:
            answers = act()
        except ProtocolError as error:
            self.errors.append((place, len(self.sent), error))
        else:
            self._send(place, answers)

    def _send(self, sender: int, answers: Iterable[Outgoing]) -> None:
        for answer in answers:
            everyone = answer.to == EVERYONE
            for receiver in self.roster.places if everyone else (answer.to,):
                message = Message(sender, receiver, answer.raw)
                self.sent.append(message)
                changed = [message.raw] if self._change is None else self._change(message)
                self._waiting.extend(message._replace(raw=raw) for raw in changed)

    # --- what a party could say instead -------------------------------------------------------

    def content(self, message: Message) -> bytes:
        """What a message says, as its author knows it."""
        if message.envelope.round not in SECRET_ROUNDS:
            return message.envelope.payload
        lines = self.machine(message.sender)._lines
        assert lines is not None
        return lines._locks[message.sender, message.receiver].open(message.envelope)

    def say(self, message: Message, content: bytes | None = None, **header: object) -> Message:
        """Another message by the same author: encrypted and signed as it should be."""
        payload = self.content(message) if content is None else content
        envelope = replace(message.envelope.saying(payload), **header)
        lines = self.machine(envelope.sender)._lines
        if envelope.round in SECRET_ROUNDS:
            assert lines is not None
            receiver = message.receiver if envelope.receiver == EVERYONE else envelope.receiver
            envelope = lines._locks[envelope.sender, receiver].close(envelope)
        raw = seal(self.binding, self.keys[envelope.sender], envelope)
        return Message(envelope.sender, message.receiver, raw)

    def bundle(self, message: Message) -> list[bytes]:
        """The messages that the coordinator relays in one."""
        count = len(self.parties) + (message.envelope.round == "keys")
        return unpack(message.envelope.payload, count)

    # --- what came of it ----------------------------------------------------------------------

    @property
    def rounds(self) -> set[str]:
        """The rounds in which something was sent."""
        return {message.envelope.round for message in self.sent}

    def result(self) -> Any:
        """Y as the bits of one number."""
        return int.from_bytes(bytes(self.coordinator.result()), "little")

    @property
    def union(self) -> int:
        """What the silos hold together."""
        total = 0
        for held in self.held:
            total |= held
        return total


def flipped(content: bytes, byte: int, bit: int = 0) -> bytes:
    """The same bytes but for one bit."""
    changed = bytearray(content)
    changed[byte] ^= 1 << bit
    return bytes(changed)


class Unchanged:
    """Runs in which bad messages come beside the good ones; in the end nothing has changed."""

    def __init__(self, make: Callable[..., CommitteeRun]) -> None:
        self._make = make
        self.honest = make().go()

    def beside(
        self, bad: Callable[[Any, Message], list[bytes]], *, first: bool = True
    ) -> list[tuple[str, ProtocolError]]:
        """The errors, each with the name of the sender of the message that was refused."""
        refused: list[tuple[str, ProtocolError]] = []

        def change(message: Message) -> list[bytes]:
            wrong = bad(run, message)
            expected.extend([message.sender] * len(wrong))
            return [*wrong, message.raw] if first else [message.raw, *wrong]

        expected: list[int] = []
        run = self._make(change=change)
        run.go()
        assert len(run.errors) == len(expected) > 0
        assert set(run.sent) == set(self.honest.sent)
        assert run.result() == self.honest.result()
        assert all(party.state is State.DONE for party in run.parties.values())
        for _, _, error in run.errors:
            refused.append((str(error.silo), error))
        assert sorted(run.name(place) for place in expected) == sorted(n for n, _ in refused)
        return refused


def refuse(
    run: CommitteeRun,
    name: Name,
    size: int,
    error: type[ProtocolError] = OrderError,
    match: str | None = None,
) -> None:
    """That a message with this name and this size, all right otherwise, changes nothing."""
    kind, sequence, sender, receiver = name
    machine = run.machine(receiver)
    envelope = Envelope(kind, sender, receiver, sequence, bytes(size))
    lines = run.machine(sender)._lines
    if kind in SECRET_ROUNDS and sender != receiver:
        assert lines is not None
        envelope = lines.close(envelope)
    raw = seal(run.binding, run.keys[sender], envelope)
    part, state = machine._part, machine.state
    kept = None if part is None else (dict(part._came), dict(part._seen), part._begun)
    with pytest.raises(error, match=match) as caught:
        machine.receive(raw)
    assert caught.value.silo == run.name(sender)
    assert caught.value.round == kind
    assert machine.state is state
    assert kept == (None if part is None else (part._came, part._seen, part._begun))
