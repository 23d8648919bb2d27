"""The masked union as two state machines: a silo's and the coordinator's.

Rounds
    ``key``      each silo publishes a fresh X25519 run key, signed by its identity
    ``keys``     the coordinator relays all of them
    ``confirm``  each silo signs a digest of roster, parameters and all run keys
    ``confirms`` the coordinator relays all of them; a silo goes on only if all are on one digest
    ``chunk``    each silo uploads its masked contributions, chunk by chunk

Two rules hold in both machines: a message that is refused changes nothing, and nothing that depends
on a silo's bits leaves it before :meth:`MaskedSilo.authorise` has been called (the ledger's entry).
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from silograph import _core
from silograph.crypto.identity import Identity
from silograph.crypto.limbs import limbs
from silograph.errors import (
    ArgumentError,
    BindingError,
    OrderError,
    PayloadError,
    ProtocolError,
)
from silograph.protocol.agreement import (
    check_own_key,
    check_views,
    pairs_of,
    view_digest,
    weak_key,
)
from silograph.protocol.chunks import Chunked
from silograph.protocol.entropy import Entropy
from silograph.protocol.envelope import EVERYONE, Envelope, open_envelope, seal
from silograph.protocol.handshake import Collection, Outgoing, bind, check_round, open_bundle
from silograph.protocol.roster import COORDINATOR, Roster
from silograph.protocol.wire import pack

__all__ = [
    "CHUNK_PAIRS",
    "MaskedCoordinator",
    "MaskedParameters",
    "MaskedSilo",
    "Outgoing",
    "State",
    "packed_bytes",
]

#: Pairs in a chunk.
CHUNK_PAIRS = 1 << 20
#: How masks are drawn and how elements travel.
_STREAM = b"aes-256-ctr, 16-bit words rejection-sampled, blocks of 1024 words"
_PACKING = b"base-q digits in 32-bit words, lowest first"


def packed_bytes(q: int, pairs: int) -> int:
    """Bytes of one element of Z_q a pair, as many base-q digits in a 32-bit word as fit.

    >>> packed_bytes(21, 7_000_000)
    4000000
    """
    digits = max(count for count in range(1, 33) if q**count <= 1 << 32)
    return -(-pairs // digits) * 4


@dataclass(frozen=True)
class MaskedParameters(Chunked):
    """What all parties of a run must agree on, and sign."""

    q: int
    b: Fraction
    silos: int
    pairs: int
    #: What the pairs are about: the digest of the node universe.
    subject: bytes
    chunk_pairs: int = CHUNK_PAIRS

    def __post_init__(self) -> None:
        if not 2 <= self.q <= 1 << 16 or not 0 <= self.b <= 1:
            raise ArgumentError("q must be from 2 to 65536 and b from 0 to 1")
        self.check_chunks()

    @property
    def digest(self) -> bytes:
        """SHA-256 of every parameter."""
        numbers = (self.q, self.silos, self.pairs, self.chunk_pairs)
        fields = [str(number).encode() for number in numbers]
        fields += [str(self.b).encode(), self.subject, _STREAM, _PACKING]
        return hashlib.sha256(pack(b"silograph/masked/v2", *fields)).digest()


class State(StrEnum):
    """Where a machine is."""

    NEW = "new"
    KEYS = "waiting for keys"
    CONFIRMS = "waiting for confirmations"
    AGREED = "agreed, not yet authorised"
    CHUNKS = "chunks"
    DONE = "done"


#: Every step that a silo can take; anything else is refused and changes nothing.
SILO_STEPS: dict[tuple[State, str], State] = {
    (State.NEW, "start"): State.KEYS,
    (State.KEYS, "keys"): State.CONFIRMS,
    (State.CONFIRMS, "confirms"): State.AGREED,
    (State.AGREED, "authorise"): State.CHUNKS,
    (State.CHUNKS, "chunk"): State.CHUNKS,
}
#: Every step of the coordinator.
COORDINATOR_STEPS: dict[tuple[State, str], State] = {
    (State.KEYS, "key"): State.KEYS,
    (State.KEYS, "all keys"): State.CONFIRMS,
    (State.CONFIRMS, "confirm"): State.CONFIRMS,
    (State.CONFIRMS, "all confirms"): State.CHUNKS,
    (State.CHUNKS, "chunk"): State.CHUNKS,
    (State.CHUNKS, "all chunks"): State.DONE,
}


class MaskedSilo:
    """A silo in one run of the masked union."""

    def __init__(
        self,
        parameters: MaskedParameters,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
    ) -> None:
        self._binding = bind(parameters, roster, run, place, identity)
        self._parameters = parameters
        self._place = place
        self._identity = identity
        # One secret a run: the run key and every chunk come from it, so that a chunk can only be
        # made again byte for byte.
        self._masker = _core.Masker(entropy.bytes(32), parameters.q, limbs(parameters.b))
        self._masks: _core.SharedMasks | None = None
        self._view = b""
        self._sent: dict[int, bytes] = {}
        self.state = State.NEW

    def start(self) -> list[Outgoing]:
        """Publish the run key."""
        state = self._step("start")
        raw = self._seal("key", EVERYONE, self._masker.public())
        self.state = state
        return [Outgoing(COORDINATOR, raw)]

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a bundle that the coordinator relays."""
        bundle = open_envelope(self._binding, raw, receiver=self._place)
        if bundle.sender != COORDINATOR:
            raise self._refuse(OrderError, "silos speak through the coordinator", bundle)
        check_round(self._binding, bundle, ("keys", "confirms"))
        state = self._step(bundle.round)
        if bundle.round == "keys":
            masks, view = self._agree(self._bundled(bundle, "key"))
            sent = self._seal("confirm", EVERYONE, view)
            self._masks, self._view, self.state = masks, view, state
            return [Outgoing(COORDINATOR, sent)]
        check_views(self._binding, self._bundled(bundle, "confirm"), self._view)
        self.state = state
        return []

    def authorise(self) -> None:
        """Say that the run's whole cost is in the ledger; only then are chunks made."""
        self.state = self._step("authorise")

    def chunk(self, number: int, bits: bytes) -> Outgoing:
        """The masked contributions of one chunk, from one bit a pair.

        Made again it is the same, byte for byte; with other bits it is refused, since two vectors
        under one mask would show where they differ.
        """
        state = self._step("chunk")
        if not 0 <= number < self._parameters.chunks:
            raise OrderError(f"there is no chunk {number}", round="chunk")
        size = self._parameters.chunk_size(number)
        if len(bits) != -(-size // 64) * 8:
            raise PayloadError("there is not one bit a pair", round="chunk")
        assert self._masks is not None  # noqa: S101 - the table has no other way here
        vector = self._masker.contribute(self._masks, number, bits, size)
        seen = hashlib.sha256(vector).digest()
        if self._sent.setdefault(number, seen) != seen:
            raise OrderError(f"chunk {number} was sent with other bits before", round="chunk")
        envelope = Envelope("chunk", self._place, COORDINATOR, number, vector)
        raw = seal(self._binding, self._identity, envelope, digest=seen)
        self.state = state
        return Outgoing(COORDINATOR, raw)

    def _agree(self, keys: list[bytes]) -> tuple[_core.SharedMasks, bytes]:
        """Masks with every other silo, and the digest of all that was shown to us."""
        check_own_key(self._binding, keys[self._place], self._masker.public(), self._place)
        pairs = pairs_of(self._binding, dict(enumerate(keys)), self._place)
        try:
            masks = self._masker.agree([(pair.key, pair.context, pair.first) for pair in pairs])
        except ValueError as error:
            raise weak_key(self._binding, pairs[error.args[0]].place) from None
        return masks, view_digest(b"silograph/masked/view/v2", self._binding, keys)

    def _bundled(self, bundle: Envelope, expected: str) -> list[bytes]:
        return open_bundle(self._binding, bundle, expected, receiver=self._place, length=32)

    def _step(self, event: str) -> State:
        try:
            return SILO_STEPS[self.state, event]
        except KeyError:
            raise OrderError(f"not while in state {self.state.value!r}", round=event) from None

    def _seal(self, name: str, receiver: int, payload: bytes) -> bytes:
        envelope = Envelope(name, self._place, receiver, 0, payload)
        return seal(self._binding, self._identity, envelope)

    def _refuse(self, kind: type[ProtocolError], what: str, envelope: Envelope) -> ProtocolError:
        name = self._binding.roster.member(envelope.sender).name
        return kind(what, silo=name, round=envelope.round)

    def __repr__(self) -> str:
        return f"MaskedSilo(place={self._place}, state={self.state.value!r})"


class MaskedCoordinator:
    """The coordinator in one run: relays, sums, and learns the sums alone."""

    def __init__(
        self, parameters: MaskedParameters, roster: Roster, run: bytes, identity: Identity
    ) -> None:
        self._binding = bind(parameters, roster, run, COORDINATOR, identity)
        self._parameters = parameters
        self._identity = identity
        self._collection = Collection(self._binding)
        self._sums: dict[int, tuple[_core.MaskedSum, set[int]]] = {}
        self._opened: dict[int, bytes] = {}
        self.state = State.KEYS

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a silo's message."""
        envelope = open_envelope(self._binding, raw, receiver=COORDINATOR)
        if envelope.sender == COORDINATOR:
            raise BindingError("the coordinator does not write to itself", round=envelope.round)
        check_round(self._binding, envelope, ("key", "confirm", "chunk"))
        name = self._binding.roster.silos[envelope.sender].name
        if (self.state, envelope.round) not in COORDINATOR_STEPS:
            raise OrderError(
                f"not while in state {self.state.value!r}", silo=name, round=envelope.round
            )
        if envelope.round == "chunk":
            self._add(envelope, name)
            return []
        if len(envelope.payload) != 32:
            raise PayloadError("32 bytes were due", silo=name, round=envelope.round)
        bundle = self._collection.take(envelope, raw, self._identity)
        if bundle:
            self.state = COORDINATOR_STEPS[self.state, f"all {envelope.round}s"]
        return bundle

    def _add(self, envelope: Envelope, name: str) -> None:
        number = envelope.sequence
        if number >= self._parameters.chunks:
            raise OrderError(f"there is no chunk {number}", silo=name, round="chunk")
        if number in self._opened:
            raise OrderError(f"chunk {number} came twice", silo=name, round="chunk")
        size = self._parameters.chunk_size(number)
        total, seen = self._sums.get(number) or (_core.MaskedSum(self._parameters.q, size), set())
        if envelope.sender in seen:
            raise OrderError(f"chunk {number} came twice", silo=name, round="chunk")
        try:
            total.add(envelope.payload)
        except ValueError as error:
            raise PayloadError(f"chunk {number}: {error}", silo=name, round="chunk") from None
        seen.add(envelope.sender)
        self._sums[number] = total, seen
        if len(seen) == self._parameters.silos:
            self._opened[number] = total.open()
            del self._sums[number]
        if len(self._opened) == self._parameters.chunks:
            self.state = COORDINATOR_STEPS[self.state, "all chunks"]

    def missing(self) -> dict[int, list[int]]:
        """The chunks that are begun and not complete, with the silos that are still to come."""
        silos = range(self._parameters.silos)
        return {n: [i for i in silos if i not in seen] for n, (_, seen) in self._sums.items()}

    def result(self) -> bytes:
        """Y, one bit a pair; only when all chunks are there."""
        if self.state is not State.DONE:
            raise OrderError(f"not while in state {self.state.value!r}", round="result")
        return b"".join(self._opened[number] for number in range(self._parameters.chunks))

    def __repr__(self) -> str:
        return f"MaskedCoordinator(state={self.state.value!r})"
