"""The shared view: showing all silos the same bytes, as two state machines.

Rounds
    ``shown``  the coordinator shows the content, chunk by chunk, to all silos
    ``seen``   each silo signs a digest of everything that it was shown
    ``seens``  the coordinator relays all of them; a silo continues only if all digests agree

Why
    A silo's next report is protected for **every** content, as long as all silos have the same
    content (see :mod:`silograph.methods.featplus.noise`). So the content itself need not be
    trusted: a coordinator may show an invented release, and still learns no more from the answers
    than their epsilon allows. But with two different owner maps, two silos would answer for one
    edge, and its loss would double. The signatures rule this out.

In both machines a refused message changes nothing. The content is public to the parties and holds
nothing of a silo's own data, so the machines need no authorisation to spend.
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from silograph.errors import (
    ArgumentError,
    OrderError,
    PayloadError,
    ViewsDifferError,
)
from silograph.messages.envelope import EVERYONE, Binding, Envelope, Outgoing
from silograph.messages.identity import COORDINATOR, Identity, Roster, pack
from silograph.messages.machine import Machine
from silograph.messages.rounds import Collection, open_bundle

__all__ = ["SharedViewCoordinator", "SharedViewParameters", "SharedViewSilo", "State"]

#: The number of bytes in a chunk.
CHUNK_BYTES = 1 << 20
_LARGEST = 1 << 40


@dataclass(frozen=True)
class SharedViewParameters:
    """What all parties of a run must agree on."""

    silos: int
    #: The length of the content in bytes.
    length: int
    #: The digest of the node universe and of the run's plan.
    subject: bytes
    chunk_bytes: int = CHUNK_BYTES

    def __post_init__(self) -> None:
        if self.silos < 2 or not 1 <= self.length <= _LARGEST or self.chunk_bytes < 1:
            raise ArgumentError("there must be two silos, and something to show them")

    @property
    def chunks(self) -> int:
        """The number of chunks."""
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
    """The states of a machine."""

    NEW = "new"
    SHOWN = "waiting for content"
    SEENS = "waiting for signatures"
    AGREED = "agreed"


#: All steps that a silo can take; anything else is refused and changes nothing.
SILO_STEPS: dict[tuple[State, str], State] = {
    (State.SHOWN, "shown"): State.SHOWN,
    (State.SHOWN, "all shown"): State.SEENS,
    (State.SEENS, "seens"): State.AGREED,
}
#: All steps of the coordinator.
COORDINATOR_STEPS: dict[tuple[State, str], State] = {
    (State.NEW, "show"): State.SEENS,
    (State.SEENS, "seen"): State.SEENS,
    (State.SEENS, "all seens"): State.AGREED,
}


class SharedViewSilo(Machine):
    """A silo that is shown the content."""

    STEPS = SILO_STEPS
    TAKES = ("shown", "seens")

    def __init__(
        self,
        parameters: SharedViewParameters,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
    ) -> None:
        super().__init__(parameters, roster, run, place, identity, State.SHOWN)
        self._parameters = parameters
        self._chunks: list[bytes] = []
        self._view = b""

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a chunk, or the bundle of all silos' signatures."""
        envelope = self._opened(raw)
        if envelope.round == "shown":
            return self._look(envelope)
        seen = open_bundle(self._binding, envelope, "seen", receiver=self._place, length=32)
        for place, view in enumerate(seen):
            if view != self._view:
                other = self._binding.roster.silos[place].name
                raise ViewsDifferError("was shown something else", silo=other, round="seen")
        self.state = self._step("seens")
        return []

    def _look(self, envelope: Envelope) -> list[Outgoing]:
        number = len(self._chunks)
        if envelope.sequence != number:
            what = f"chunk {number} was due, not {envelope.sequence}"
            raise self._refuse(OrderError, what, envelope)
        if len(envelope.payload) != self._parameters.chunk_size(number):
            raise self._refuse(PayloadError, f"chunk {number} has a wrong length", envelope)
        if number + 1 < self._parameters.chunks:
            self._chunks.append(envelope.payload)
            return []
        view = _view(self._binding, [*self._chunks, envelope.payload])
        sent = self._seal("seen", EVERYONE, view)
        self._chunks.append(envelope.payload)
        self._view, self.state = view, self._step("all shown")
        return [Outgoing(COORDINATOR, sent)]

    def content(self) -> bytes:
        """What was shown; only available when all silos have signed for the same."""
        self._require(State.AGREED, "content")
        return b"".join(self._chunks)

    def view(self) -> bytes:
        """The digest that all silos signed; later messages are bound to it."""
        self._require(State.AGREED, "content")
        return self._view


class SharedViewCoordinator(Machine):
    """The coordinator, which shows the content and relays the signatures."""

    STEPS = COORDINATOR_STEPS
    TAKES = ("seen",)

    def __init__(
        self, parameters: SharedViewParameters, roster: Roster, run: bytes, identity: Identity
    ) -> None:
        super().__init__(parameters, roster, run, COORDINATOR, identity, State.NEW)
        self._parameters = parameters
        self._collection = Collection(self._binding)
        self._view = b""

    def show(self, content: bytes) -> list[Outgoing]:
        """The content as messages to all silos, chunk by chunk."""
        state = self._step("show")
        if len(content) != self._parameters.length:
            raise PayloadError(f"{self._parameters.length} bytes were due", round="shown")
        size = self._parameters.chunk_bytes
        chunks = [content[start : start + size] for start in range(0, len(content), size)]
        sent = []
        for number, chunk in enumerate(chunks):
            sent.append(Outgoing(EVERYONE, self._seal("shown", EVERYONE, chunk, number)))
        self._view = _view(self._binding, chunks)
        self.state = state
        return sent

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a silo's signature; once all have arrived, send them to all silos."""
        envelope = self._opened(raw)
        if envelope.payload != self._view:
            raise self._refuse(ViewsDifferError, "saw something other than was shown", envelope)
        bundle = self._collection.take(envelope, raw, self._identity)
        if bundle:
            self.state = self._step("all seens")
        return bundle

    def view(self) -> bytes:
        """The digest that all silos signed."""
        self._require(State.AGREED, "view")
        return self._view


def _view(binding: Binding, chunks: list[bytes]) -> bytes:
    """The digest of run, parameters, parties and content."""
    seen = hashlib.sha256(
        pack(b"silograph/broadcast/view/v1", binding.run, binding.parameters, binding.roster.digest)
    )
    for chunk in chunks:
        seen.update(chunk)
    return seen.digest()
