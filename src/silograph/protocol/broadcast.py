"""Showing all silos the same bytes, as two state machines.

Rounds
    ``shown``  the coordinator shows the content, chunk by chunk, to all silos
    ``seen``   each silo signs a digest of all that it was shown
    ``seens``  the coordinator relays all of them; a silo goes on only if all are on one digest

Why
    What a silo reports next is protected for **every** content, as long as all silos have the same
    (see ``privacy.featplus``). So nothing need be believed of the content itself: a coordinator may
    show a release that nobody made, and learns no more from the answers than their epsilon. But
    with two different owner maps two silos would answer for one edge, and its loss would double;
    that is what the signatures rule out.

In both machines a message that is refused changes nothing. The content is public to the parties:
nothing of a silo's own is in it, and the machines need no authority to spend.
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from silograph.crypto.identity import Identity
from silograph.errors import (
    ArgumentError,
    BindingError,
    OrderError,
    PayloadError,
    ViewsDifferError,
)
from silograph.protocol.envelope import EVERYONE, Binding, Envelope, open_envelope, seal
from silograph.protocol.handshake import Collection, Outgoing, bind, open_bundle
from silograph.protocol.roster import COORDINATOR, Roster
from silograph.protocol.wire import pack

__all__ = ["BroadcastCoordinator", "BroadcastParameters", "BroadcastSilo", "State"]

#: Bytes in a chunk.
CHUNK_BYTES = 1 << 20
_LARGEST = 1 << 40


@dataclass(frozen=True)
class BroadcastParameters:
    """What all parties of a run must agree on."""

    silos: int
    #: The length of the content in bytes.
    length: int
    #: What the content is about: the digest of the node universe and of the run's plan.
    subject: bytes
    chunk_bytes: int = CHUNK_BYTES

    def __post_init__(self) -> None:
        if self.silos < 2 or not 1 <= self.length <= _LARGEST or self.chunk_bytes < 1:
            raise ArgumentError("there must be two silos, and something to show them")

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.length // self.chunk_bytes)

    def chunk_size(self, chunk: int) -> int:
        """The number of bytes in a chunk."""
        return min(self.chunk_bytes, self.length - chunk * self.chunk_bytes)

    @property
    def digest(self) -> bytes:
        """SHA-256 of every parameter."""
        numbers = (self.silos, self.length, self.chunk_bytes)
        fields = [str(number).encode() for number in numbers]
        return hashlib.sha256(pack(b"silograph/broadcast/v1", *fields, self.subject)).digest()


class State(StrEnum):
    """Where a machine is."""

    NEW = "new"
    SHOWN = "waiting for content"
    SEENS = "waiting for signatures"
    AGREED = "agreed"


#: Every step that a silo can take; anything else is refused and changes nothing.
SILO_STEPS: dict[tuple[State, str], State] = {
    (State.SHOWN, "shown"): State.SHOWN,
    (State.SHOWN, "all shown"): State.SEENS,
    (State.SEENS, "seens"): State.AGREED,
}
# The steps of a silo that a message can bring about; the others it takes by itself.
_TO_SILOS = ("shown", "seens")
#: Every step of the coordinator.
COORDINATOR_STEPS: dict[tuple[State, str], State] = {
    (State.NEW, "show"): State.SEENS,
    (State.SEENS, "seen"): State.SEENS,
    (State.SEENS, "all seens"): State.AGREED,
}


class BroadcastSilo:
    """A silo that is shown something."""

    def __init__(
        self,
        parameters: BroadcastParameters,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
    ) -> None:
        self._binding = bind(parameters, roster, run, place, identity)
        self._parameters = parameters
        self._place = place
        self._identity = identity
        self._chunks: list[bytes] = []
        self._view = b""
        self.state = State.SHOWN

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a chunk, or the bundle of all silos' signatures."""
        envelope = open_envelope(self._binding, raw, receiver=self._place)
        name = self._binding.roster.member(envelope.sender).name
        if envelope.sender != COORDINATOR:
            what = "silos speak through the coordinator"
            raise OrderError(what, silo=name, round=envelope.round)
        if envelope.round not in _TO_SILOS or (self.state, envelope.round) not in SILO_STEPS:
            what = f"not while in state {self.state.value!r}"
            raise OrderError(what, silo=name, round=envelope.round)
        if envelope.round == "shown":
            return self._look(envelope, name)
        seen = open_bundle(self._binding, envelope, "seen", receiver=self._place, length=32)
        for place, view in enumerate(seen):
            if view != self._view:
                other = self._binding.roster.silos[place].name
                raise ViewsDifferError("was shown something else", silo=other, round="seen")
        self.state = SILO_STEPS[self.state, "seens"]
        return []

    def _look(self, envelope: Envelope, name: str) -> list[Outgoing]:
        number = len(self._chunks)
        if envelope.sequence != number:
            what = f"chunk {number} was due, not {envelope.sequence}"
            raise OrderError(what, silo=name, round="shown")
        if len(envelope.payload) != self._parameters.chunk_size(number):
            raise PayloadError(f"chunk {number} has a wrong length", silo=name, round="shown")
        if number + 1 < self._parameters.chunks:
            self._chunks.append(envelope.payload)
            return []
        view = _view(self._binding, [*self._chunks, envelope.payload])
        answer = Envelope("seen", self._place, EVERYONE, 0, view)
        sent = seal(self._binding, self._identity, answer)
        self._chunks.append(envelope.payload)
        self._view, self.state = view, SILO_STEPS[self.state, "all shown"]
        return [Outgoing(COORDINATOR, sent)]

    def content(self) -> bytes:
        """What was shown; only when all silos have signed for the same."""
        if self.state is not State.AGREED:
            raise OrderError(f"not while in state {self.state.value!r}", round="content")
        return b"".join(self._chunks)

    def view(self) -> bytes:
        """The digest that all silos signed; what follows is bound to it."""
        if self.state is not State.AGREED:
            raise OrderError(f"not while in state {self.state.value!r}", round="content")
        return self._view

    def __repr__(self) -> str:
        return f"BroadcastSilo(place={self._place}, state={self.state.value!r})"


class BroadcastCoordinator:
    """The coordinator: shows, and relays the signatures."""

    def __init__(
        self, parameters: BroadcastParameters, roster: Roster, run: bytes, identity: Identity
    ) -> None:
        self._binding = bind(parameters, roster, run, COORDINATOR, identity)
        self._parameters = parameters
        self._identity = identity
        self._collection = Collection(self._binding)
        self._view = b""
        self.state = State.NEW

    def show(self, content: bytes) -> list[Outgoing]:
        """The content in chunks, for all silos."""
        if (self.state, "show") not in COORDINATOR_STEPS:
            raise OrderError(f"not while in state {self.state.value!r}", round="shown")
        if len(content) != self._parameters.length:
            raise PayloadError(f"{self._parameters.length} bytes were due", round="shown")
        size = self._parameters.chunk_bytes
        chunks = [content[start : start + size] for start in range(0, len(content), size)]
        sent = []
        for number, chunk in enumerate(chunks):
            envelope = Envelope("shown", COORDINATOR, EVERYONE, number, chunk)
            sent.append(Outgoing(EVERYONE, seal(self._binding, self._identity, envelope)))
        self._view = _view(self._binding, chunks)
        self.state = COORDINATOR_STEPS[self.state, "show"]
        return sent

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a silo's signature; when all are there, they go out."""
        envelope = open_envelope(self._binding, raw, receiver=COORDINATOR)
        if envelope.sender == COORDINATOR:
            raise BindingError("the coordinator does not write to itself", round=envelope.round)
        name = self._binding.roster.silos[envelope.sender].name
        if envelope.round != "seen" or (self.state, "seen") not in COORDINATOR_STEPS:
            what = f"not while in state {self.state.value!r}"
            raise OrderError(what, silo=name, round=envelope.round)
        if envelope.payload != self._view:
            raise ViewsDifferError("saw something else than was shown", silo=name, round="seen")
        bundle = self._collection.take(envelope, raw, self._identity)
        if bundle:
            self.state = COORDINATOR_STEPS[self.state, "all seens"]
        return bundle

    def view(self) -> bytes:
        """The digest that all silos signed."""
        if self.state is not State.AGREED:
            raise OrderError(f"not while in state {self.state.value!r}", round="view")
        return self._view

    def __repr__(self) -> str:
        return f"BroadcastCoordinator(state={self.state.value!r})"


def _view(binding: Binding, chunks: list[bytes]) -> bytes:
    """The digest of run, parameters, parties and content."""
    seen = hashlib.sha256(
        pack(b"silograph/broadcast/view/v1", binding.run, binding.parameters, binding.roster.digest)
    )
    for chunk in chunks:
        seen.update(chunk)
    return seen.digest()
