"""A member's part of a run, whoever the member is: from seeds to openings; and a party's seat.

Everything follows from the messages that have come: a member that has all it needs for a step
takes it. Messages may come in any order, and before they can be used; each comes once. Nothing that
came is used before it was compared with what another member says about it.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from silograph import _core
from silograph.errors import MismatchError, OrderError, PayloadError, ProtocolError
from silograph.messages.entropy import Entropy
from silograph.messages.envelope import Binding, Envelope, Outgoing
from silograph.messages.identity import COORDINATOR, Identity, Roster, pack
from silograph.messages.machine import Machine
from silograph.messages.rounds import Bits
from silograph.messages.secrecy import TAG_BYTES, Lock, pairs_of, weak_key
from silograph.methods.committee.rounds import (
    MEMBERS,
    SECRET_ROUNDS,
    VIEW,
    WINDOW,
    CommitteeParameters,
    Seating,
    State,
)

__all__ = ["Lines", "Part", "ReleasePart", "Seat", "Send", "outside_seeds", "outside_sent"]

_OF_CHUNKS = ("input", "check", "joint")

#: Sends a payload, encrypted: (round, receiver, sequence, payload).
Send = Callable[[str, int, int, bytes], None]


class Lines:
    """The encrypted lines between one party and all others, a key for each direction."""

    def __init__(
        self, binding: Binding, secret: _core.RunSecret, keys: Mapping[int, bytes], own: int
    ) -> None:
        self._binding = binding
        self._locks: dict[tuple[int, int], Lock] = {}
        for pair in pairs_of(binding, keys, own):
            try:
                shared = secret.agree(pair.key, pair.context)
            except ValueError:
                raise weak_key(binding, pair.place) from None
            for sender, receiver in ((own, pair.place), (pair.place, own)):
                # A key for each direction: a fourth party's key would show it what it can unmask.
                key = shared.derive(b"silograph/committee/key/v1", str(sender).encode())
                self._locks[sender, receiver] = Lock(key, binding, SECRET_ROUNDS)

    def close(self, message: Envelope) -> Envelope:
        """Encrypt a message of ours."""
        return self._locks[message.sender, message.receiver].close(message)

    def open(self, message: Envelope, own: int) -> bytes:
        """Decrypt a message to us, sent to no one else."""
        if message.receiver != own:
            name = self._binding.roster.member(message.sender).name
            raise PayloadError("it is not for us alone", silo=name, round=message.round)
        return self._locks[message.sender, own].open(message)


def outside_seeds(secret: _core.RunSecret, vector: int) -> list[bytes | None]:
    """The seeds of a silo outside the committee, by component; the one that travels has none."""
    return [
        None
        if component == vector
        else secret.derive(b"silograph/committee/outside/v1", str(component).encode())
        for component in range(MEMBERS)
    ]


def outside_sent(seeds: list[bytes | None], member: int) -> bytes:
    """The seeds that a silo outside the committee sends to a member: all but its own component."""
    return b"".join(
        seed for component, seed in enumerate(seeds) if seed is not None and component != member
    )


def _name(message: Envelope) -> tuple[str, int, int]:
    return message.round, message.sequence, message.sender


@dataclass
class _Chunk:
    """A chunk on its way."""

    #: A :class:`_core.CommitteeChunk`, or something that has inputs and layers as well.
    core: Any
    #: Whether the inputs have been compared.
    begun: bool = False
    #: The hashes of the inputs that were sent, by the receiver's place.
    digests: dict[int, bytes] = field(default_factory=dict, repr=False)
    #: The layer that is evaluated; −1 once the chunk was opened.
    layer: int = 0


class Part(ABC):
    """One member in one run. ``bits`` are its own, if it is a silo.

    A chunk has inputs, which two members compare, and then layers. What it computes, and what
    becomes of it, is up to a subclass.
    """

    def __init__(
        self,
        parameters: Seating,
        binding: Binding,
        secret: _core.RunSecret,
        place: int,
        view: bytes,
        send: Send,
        bits: Bits | None,
    ) -> None:
        number = parameters.number(place)
        assert number is not None  # noqa: S101 - only members have a part
        self._seating: Seating = parameters
        self._binding, self._place = binding, place
        self._number, self._view, self._send, self._bits = number, view, send, bits
        self._own = secret.derive(b"silograph/committee/seed/v1", b"")
        self._others = [(n, p) for n, p in enumerate(parameters.members) if n != number]
        #: Messages that came and have not been used: by round, sequence and sender's place.
        self._came: dict[tuple[str, int], dict[int, bytes]] = {}
        self._seeds: _core.CommitteeSeeds | None = None
        self._outside: list[_core.CommitteeSeeds | None] = []
        self._digests: dict[int, bytes] = {}
        self._matched = self._authorised = self._confirmed = False
        #: The names of all messages that came for a chunk, until it is done.
        self._seen: dict[int, set[tuple[str, int, int]]] = {}
        self._chunks: dict[int, _Chunk] = {}
        self._done = 0
        self._begun = 0
        self._inputs = dict.fromkeys(parameters.outside, 0)

    # --- what a subclass does -----------------------------------------------------------------

    @abstractmethod
    def _new_core(self, number: int) -> Any:
        """A chunk without inputs."""

    @abstractmethod
    def _share(self, number: int, core: Any) -> bytes | None:
        """Share our own input of a chunk, if we have one; return the vector that travels."""

    @abstractmethod
    def _begin(self, number: int, core: Any) -> None:
        """The inputs of a chunk were compared: begin with its layers."""

    @abstractmethod
    def _finish(self, number: int, core: Any) -> None:
        """All layers of a chunk are done."""

    def _allowed(self) -> int:
        """How many chunks may be begun now."""
        return self._seating.items

    def _next(self) -> bool:
        """Do what follows from finished chunks; return whether more chunks may begin."""
        return False

    @property
    def room(self) -> bool:
        """Whether there is work that takes long, and waits for :meth:`work`."""
        return False

    def work(self) -> None:
        """Do a piece of the work that takes long; a member may have none."""
        raise OrderError("there is no work to do", round="make")

    # --- what may come ------------------------------------------------------------------------

    def check(self, message: Envelope) -> None:
        """Refuse a message that its sender has no reason to send to us, or that came before."""
        name, number = message.round, self._chunk_of(message)
        if not self._due(message):
            raise self._refuse(OrderError, "there is no such message from it to us", message)
        if number >= self._seating.items:
            raise self._refuse(OrderError, f"there is no chunk {number}", message)
        # No honest member is this far ahead. A silo outside the committee may be, so its messages
        # are not read before they are wanted; what it has signed may come by another way, though.
        ahead = self._inputs.get(message.sender, number) if name == "input" else number
        if ahead >= self._done + 2 * WINDOW:
            raise self._refuse(OrderError, f"chunk {number} is too far ahead", message)
        seen = self._seen.get(number, set())
        if (number < self._done and name in _OF_CHUNKS) or _name(message) in seen:
            raise self._refuse(OrderError, "came twice", message)
        if name == "joint" and not self._layer_due(message, number):
            raise self._refuse(OrderError, f"chunk {number} has no such layer yet", message)
        if len(message.payload) != self._size(message) + TAG_BYTES:
            raise self._refuse(PayloadError, "it has the wrong size", message)

    def _due(self, message: Envelope) -> bool:
        """Whether the sender has such messages for us."""
        given, sender = self._seating, message.sender
        member = given.number(sender)
        if sender == self._place:
            return False
        match message.round:
            case "seed":
                drawn = sender in given.outside if member is None else self._draws_for_us(member)
                return drawn and message.sequence == 0
            case "input":
                return given.travels(message.sequence, sender) not in (None, self._number)
            case "match":
                return member is not None and message.sequence == 0
        return member is not None

    def _layer_due(self, message: Envelope, number: int) -> bool:
        """Whether a chunk has such a layer. Nobody sends one before it has heard our ``check``."""
        if number not in self._chunks:
            return False
        layers: int = self._chunks[number].core.layers
        return message.sequence % self._seating.stride < layers

    def _chunk_of(self, message: Envelope) -> int:
        """The chunk that a message is about; seeds come before the first one."""
        if message.round not in _OF_CHUNKS:
            return -1
        return message.sequence // (self._seating.stride if message.round == "joint" else 1)

    def _size(self, message: Envelope) -> int:
        """The size of a message's content."""
        given, member = self._seating, self._seating.number(message.sender)
        match message.round:
            case "seed" if member is None:
                return 32 * (MEMBERS - 2 + (given.vector(message.sender) == self._number))
            case "input":
                return given.input_bytes(message.sequence)
            case "joint":
                number, layer = divmod(message.sequence, given.stride)
                return int(self._chunks[number].core.size(layer, member))
        return 32

    def _drawn(self, member: int) -> int:
        """The component whose seed a member draws."""
        return (member + MEMBERS - 1) % MEMBERS

    def _draws_for_us(self, member: int) -> bool:
        return self._drawn(member) != self._number

    def wants(self, place: int) -> bool:
        """Whether to take the next message of a party; a silo outside may not run ahead."""
        return self._inputs.get(place, 0) < self._done + 2 * WINDOW

    # --- steps --------------------------------------------------------------------------------

    def take(self, message: Envelope, content: bytes) -> None:
        """Keep a checked message."""
        self._came.setdefault((message.round, message.sequence), {})[message.sender] = content
        self._seen.setdefault(self._chunk_of(message), set()).add(_name(message))
        if message.round == "input" and message.sender in self._inputs:
            self._inputs[message.sender] += 1

    def confirm(self) -> None:
        """All parties have confirmed the same keys: send the seed that this member draws."""
        self._confirmed = True
        missing = self._drawn(self._number)
        for number, place in self._others:
            if number != missing:
                self._send("seed", place, 0, self._own)

    def authorise(self) -> None:
        """Everything is paid for."""
        self._authorised = True

    @property
    def matched(self) -> bool:
        """Whether all seeds are here and the members agree about them."""
        return self._matched

    @property
    def complete(self) -> bool:
        """Whether everything is done."""
        return self._done == self._seating.items

    def advance(self) -> None:
        """Take all steps that can be taken with what has come."""
        if not self._confirmed:
            return
        if self._seeds is None:
            self._collect_seeds()
        if self._seeds is not None and not self._matched:
            self._compare_seeds()
        while self._authorised and self._matched:
            self._open_window()
            more = self._next()
            for number in sorted(self._chunks):
                self._advance_chunk(number, self._chunks[number])
            self._chunks = {n: chunk for n, chunk in self._chunks.items() if chunk.layer >= 0}
            before = self._done
            while self._done < self._begun and self._done not in self._chunks:
                self._seen.pop(self._done, None)
                self._done += 1
            if self._done == before and not more:
                return

    def _collect_seeds(self) -> None:
        given, came = self._seating, self._came.get(("seed", 0), {})
        drawers = [(n, p) for n, p in self._others if self._draws_for_us(n)]
        if any(place not in came for _, place in drawers):
            return
        if any(silo not in came for silo in given.outside):
            return
        seeds: list[bytes | None] = [None] * MEMBERS
        seeds[self._drawn(self._number)] = self._own
        for number, place in drawers:
            seeds[self._drawn(number)] = came[place]
        outside: list[list[bytes | None] | None] = []
        for silo in range(given.silos):
            if given.number(silo) is not None:
                outside.append(None)
                continue
            vector, parts, found = given.vector(silo), came[silo], []
            for component in range(MEMBERS):
                has = component not in (vector, self._number)
                found.append(parts[:32] if has else None)
                parts = parts[32:] if has else parts
            outside.append(found)
        del self._came["seed", 0]
        for number, place in self._others:
            self._digests[place] = self._seeds_digest(number, seeds, outside)
            self._send("match", place, 0, self._digests[place])
        self._seeds = _core.CommitteeSeeds(seeds, self._view)
        self._outside = [
            None if found is None else _core.CommitteeSeeds(found, self._view) for found in outside
        ]

    def _seeds_digest(
        self,
        other: int,
        seeds: list[bytes | None],
        outside: list[list[bytes | None] | None],
    ) -> bytes:
        """The hash of all seeds that this member and another hold."""
        fields = [str(number).encode() for number in sorted((self._number, other))]
        for held in (seeds, *outside):
            for component, seed in enumerate(held or ()):
                if seed is not None and component != other:
                    fields.append(seed)
        return hashlib.sha256(pack(b"silograph/committee/seeds/v1", self._view, *fields)).digest()

    def _compare_seeds(self) -> None:
        came = self._came.get(("match", 0), {})
        if len(came) < len(self._others):
            return
        for place, digest in came.items():
            if digest != self._digests[place]:
                raise self._mismatch("match", place, self._place, "seeds")
        del self._came["match", 0]
        self._matched = True

    def _open_window(self) -> None:
        """Start the chunks that may be worked on now, with our own input."""
        while self._begun < min(self._done + WINDOW, self._allowed()):
            number = self._begun
            core = self._new_core(number)
            self._begun += 1
            self._chunks[number] = _Chunk(core)
            vector = self._share(number, core)
            if vector is None:
                continue
            for other, place in self._others:
                if other != self._seating.travels(number, self._place):
                    self._send("input", place, number, vector)

    def _advance_chunk(self, number: int, chunk: _Chunk) -> None:
        for place, vector in self._came.pop(("input", number), {}).items():
            chunk.core.take(self._seating.owner(number, place), vector)
        if not chunk.digests:
            if not chunk.core.complete():
                return
            for other, place in self._others:
                chunk.digests[place] = chunk.core.inputs_digest(other)
                self._send("check", place, number, chunk.digests[place])
        if not chunk.begun:
            if not self._all_came("check", number):
                return
            came = self._came.pop(("check", number))
            for place, digest in chunk.digests.items():
                if came[place] != digest:
                    raise self._mismatch("check", place, self._place, "inputs")
            self._begin(number, chunk.core)
            chunk.begun = True
            self._speak(number, chunk)
        first = number * self._seating.stride
        while chunk.layer >= 0 and self._all_came("joint", first + chunk.layer):
            came = self._came.pop(("joint", first + chunk.layer))
            self._hear(chunk, came)
            chunk.layer += 1
            self._speak(number, chunk)

    def _speak(self, number: int, chunk: _Chunk) -> None:
        """Send our messages of the next layer, or finish the chunk after the last one."""
        if chunk.layer < chunk.core.layers:
            sent = chunk.core.speak(self._ready_seeds)
            sequence = number * self._seating.stride + chunk.layer
            for other, place in self._others:
                self._send("joint", place, sequence, sent[other])
        else:
            self._finish(number, chunk.core)
            chunk.layer = -1

    def _hear(self, chunk: _Chunk, came: dict[int, bytes]) -> None:
        parts = [came.get(place, b"") for place in self._seating.members]
        with self._comparing("joint", "products"):
            chunk.core.hear(parts)

    def _all_came(self, name: str, sequence: int) -> bool:
        return len(self._came.get((name, sequence), {})) == len(self._others)

    @property
    def _ready_seeds(self) -> _core.CommitteeSeeds:
        assert self._seeds is not None  # noqa: S101 - chunks come after seeds
        return self._seeds

    # --- errors -------------------------------------------------------------------------------

    @contextmanager
    def _comparing(self, name: str, what: str) -> Iterator[None]:
        """Say who disagrees, if the core finds that two members do not say the same."""
        try:
            yield
        except _core.MismatchError as error:
            sender, hasher = (self._seating.members[number] for number in error.args)
            raise self._mismatch(name, sender, hasher, what) from None

    def _refuse(self, kind: type[ProtocolError], what: str, message: Envelope) -> ProtocolError:
        name = self._binding.roster.member(message.sender).name
        return kind(what, silo=name, round=message.round)

    def _mismatch(self, name: str, first: int, second: int, what: str) -> MismatchError:
        one, other = (self._binding.roster.member(place).name for place in (first, second))
        if second == self._place:
            return MismatchError(f"holds other {what} than we do", silo=one, round=name)
        return MismatchError(f"{other} does not confirm its {what}", silo=one, round=name)


class ReleasePart(Part):
    """A member of a union whose noisy bits are opened, chunk by chunk."""

    def __init__(self, parameters: CommitteeParameters, *more: Any) -> None:
        super().__init__(parameters, *more)
        self._parameters = parameters

    def _new_core(self, number: int) -> _core.CommitteeChunk:
        given = self._parameters
        return _core.CommitteeChunk(
            given.circuit, self._number, self._view, number, given.chunk_size(number)
        )

    def _share(self, number: int, core: _core.CommitteeChunk) -> bytes | None:
        if self._bits is None:
            return None
        return core.share(self._ready_seeds, self._place, self._bits(self._view, number))

    def _begin(self, number: int, core: _core.CommitteeChunk) -> None:
        core.begin(self._ready_seeds, self._outside)

    def _finish(self, number: int, core: _core.CommitteeChunk) -> None:
        self._send("open", COORDINATOR, number, core.open())


class Seat(Machine):
    """A party of a run with a committee: its lines to all others; its part, if it is a member."""

    #: The label of the digest that all parties sign.
    VIEW: ClassVar[bytes] = VIEW
    #: Makes the part of a member.
    PART: ClassVar[Callable[..., Part]] = ReleasePart

    def __init__(
        self,
        parameters: Seating,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
        state: State,
    ) -> None:
        super().__init__(parameters, roster, run, place, identity, state)
        parameters.check(roster)
        self._seating = parameters
        # There is one secret per run. The run key and all seeds of this party are derived from it,
        # so a message that is made again has exactly the same bytes.
        self._secret = _core.RunSecret(entropy.bytes(32))
        self._view = b""
        self._lines: Lines | None = None
        self._part: Part | None = None
        self._sending: list[Outgoing] = []

    def wants(self, place: int) -> bool:
        """Whether a party may go on; a silo outside the committee may not run far ahead of it."""
        return self._part is None or self._part.wants(place)

    def _sit(self, bits: Bits | None) -> Part:
        """Take our seat in the committee, when all keys are known."""
        given, binding, secret = self._seating, self._binding, self._secret
        self._part = type(self).PART(
            given, binding, secret, self._place, self._view, self._send, bits
        )
        return self._part

    def _take(self, message: Envelope) -> list[Outgoing]:
        """Take a message to a member."""
        if self._part is None:
            raise self._refuse(OrderError, "we are not a member of the committee", message)
        self._part.check(message)
        self._part.take(message, self._content(message))
        return self._advance()

    def _content(self, message: Envelope) -> bytes:
        """What a message to us says."""
        assert self._lines is not None  # noqa: S101 - guaranteed by the table of steps
        return self._lines.open(message, self._place)

    def _work(self) -> list[Outgoing]:
        """Do the next piece of a member's long work."""
        assert self._part is not None  # noqa: S101 - called for members alone
        self._part.work()
        return self._advance()

    def _advance(self) -> list[Outgoing]:
        """Take all steps that can be taken. If two parties do not say the same, the run is over."""
        assert self._part is not None  # noqa: S101 - called for members alone
        try:
            self._part.advance()
        except MismatchError:
            self._sending = []
            self.state = State.ENDED
            raise
        return self._sent()

    def _send(self, name: str, receiver: int, sequence: int, content: bytes) -> None:
        assert self._lines is not None  # noqa: S101 - guaranteed by the table of steps
        message = Envelope(name, self._place, receiver, sequence, content)
        closed = self._lines.close(message)
        raw = self._seal(name, receiver, closed.payload, sequence)
        self._sending.append(Outgoing(receiver, raw))

    def _sent(self) -> list[Outgoing]:
        sent, self._sending = self._sending, []
        return sent
