"""Sums under pairwise masks as two state machines, and the masked union, which is one of them.

Rounds
    ``key``      each silo publishes a fresh X25519 run key, signed by its identity
    ``keys``     the coordinator relays all of them
    ``confirm``  each silo signs a digest of roster, parameters and all run keys
    ``confirms`` the coordinator relays all of them; a silo continues only if all digests agree
    ``chunk``    each silo uploads its masked contributions, chunk by chunk

:class:`MaskingSilo` and :class:`SummingCoordinator` have all rounds; what is contributed and how it
is summed is left to the machines that are made of them.

Two rules hold in both machines. A refused message changes nothing. Nothing that depends on a silo's
edges leaves the silo before :meth:`MaskingSilo.authorise` is called, after the ledger was charged.
"""

import hashlib
from abc import abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from silograph import _core
from silograph.dp.channel import limbs
from silograph.errors import ArgumentError, OrderError, PayloadError
from silograph.messages.entropy import Entropy
from silograph.messages.envelope import EVERYONE, Envelope, Outgoing, seal
from silograph.messages.identity import COORDINATOR, Identity, Roster, pack
from silograph.messages.machine import CoordinatorSession, Machine
from silograph.messages.rounds import Bits, Chunked, Collection, UploadingSilo, Uploads, open_bundle
from silograph.messages.secrecy import check_own_key, check_views, pairs_of, view_digest, weak_key

__all__ = [
    "MaskedCoordinator",
    "MaskedParameters",
    "MaskedSilo",
    "MaskingSilo",
    "State",
    "Sum",
    "SummingCoordinator",
    "chunk_pairs",
    "packed_bytes",
]

# --- Sums under masks -----------------------------------------------------------------------------


class State(StrEnum):
    """The states of a machine."""

    NEW = "new"
    KEYS = "waiting for keys"
    CONFIRMS = "waiting for confirmations"
    AGREED = "agreed, not yet authorised"
    CHUNKS = "chunks"
    DONE = "done"


#: All steps that a silo can take; anything else is refused and changes nothing.
SILO_STEPS: dict[tuple[State, str], State] = {
    (State.NEW, "start"): State.KEYS,
    (State.KEYS, "keys"): State.CONFIRMS,
    (State.CONFIRMS, "confirms"): State.AGREED,
    (State.AGREED, "authorise"): State.CHUNKS,
    (State.CHUNKS, "chunk"): State.CHUNKS,
}
#: All steps of the coordinator.
COORDINATOR_STEPS: dict[tuple[State, str], State] = {
    (State.KEYS, "key"): State.KEYS,
    (State.KEYS, "all keys"): State.CONFIRMS,
    (State.CONFIRMS, "confirm"): State.CONFIRMS,
    (State.CONFIRMS, "all confirms"): State.CHUNKS,
    (State.CHUNKS, "chunk"): State.CHUNKS,
    (State.CHUNKS, "all chunks"): State.DONE,
}


class MaskingSilo(UploadingSilo):
    """A silo in one run that sums contributions under masks.

    ``bits(chunk)`` returns what the silo itself has of a chunk.
    """

    STEPS = SILO_STEPS
    TAKES = ("keys", "confirms")
    ROUND = "chunk"
    #: The label of the digest that silos confirm.
    VIEW: ClassVar[bytes]

    def __init__(
        self,
        parameters: Chunked,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        masker: _core.WordMasker,
        bits: Bits,
    ) -> None:
        super().__init__(parameters, roster, run, place, identity, bits, State.NEW)
        self._masker = masker
        self._masks: _core.SharedMasks | None = None
        self._sent: dict[int, bytes] = {}

    @abstractmethod
    def _contribution(self, masks: _core.SharedMasks, number: int, bits: bytes) -> bytes:
        """The masked contributions of a chunk, the same ones whenever they are asked for."""

    def start(self) -> list[Outgoing]:
        """Publish the run key."""
        state = self._step("start")
        raw = self._seal("key", EVERYONE, self._masker.public())
        self.state = state
        return [Outgoing(COORDINATOR, raw)]

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a bundle that the coordinator relays."""
        bundle = self._opened(raw)
        state = self._step(bundle.round)
        if bundle.round == "keys":
            masks, view = self._agree(self._bundled(bundle, "key"))
            sent = self._seal("confirm", EVERYONE, view)
            self._masks, self._view, self.state = masks, view, state
            return [Outgoing(COORDINATOR, sent)]
        check_views(self._binding, self._bundled(bundle, "confirm"), self._view)
        self.state = state
        return []

    @property
    def ready(self) -> bool:
        """Whether all silos confirmed the same keys."""
        return self.state is State.AGREED

    def authorise(self) -> list[Outgoing]:
        """Record that the run's whole cost is in the ledger; chunks are made only after this."""
        self.state = self._step("authorise")
        return []

    def chunk(self, number: int, bits: bytes) -> Outgoing:
        """The masked contributions of one chunk, from what the silo has of it.

        A repeated call returns the same bytes. A call with other bits is refused, since two vectors
        under one mask would show where they differ.
        """
        state = self._step("chunk")
        self._check_chunk(number, bits)
        assert self._masks is not None  # noqa: S101 - guaranteed by the table of steps
        vector = self._contribution(self._masks, number, bits)
        message = Envelope("chunk", self._place, COORDINATOR, number, vector)
        seen = message.digest
        if self._sent.setdefault(number, seen) != seen:
            raise OrderError(f"chunk {number} was sent with other bits before", round="chunk")
        raw = seal(self._binding, self._identity, message)
        self.state = state
        return Outgoing(COORDINATOR, raw)

    def _agree(self, keys: list[bytes]) -> tuple[_core.SharedMasks, bytes]:
        """The masks shared with every other silo, and the digest of all keys that we were sent."""
        check_own_key(self._binding, keys[self._place], self._masker.public(), self._place)
        pairs = pairs_of(self._binding, dict(enumerate(keys)), self._place)
        try:
            masks = self._masker.agree([(pair.key, pair.context, pair.first) for pair in pairs])
        except ValueError as error:
            raise weak_key(self._binding, pairs[error.args[0]].place) from None
        return masks, view_digest(self.VIEW, self._binding, keys)

    def _bundled(self, bundle: Envelope, expected: str) -> list[bytes]:
        return open_bundle(self._binding, bundle, expected, receiver=self._place, length=32)


class Sum(Protocol):
    """The running sum of one chunk."""

    def add(self, content: bytes, start: int) -> None:
        """Add one silo's vector, the end of a message; a wrong one is a ValueError."""


T = TypeVar("T")
SumT = TypeVar("SumT", bound=Sum)


class SummingCoordinator(Machine, CoordinatorSession[T], Generic[SumT, T]):
    """The coordinator in one run: it relays keys, sums contributions, and learns only the sums."""

    STEPS = COORDINATOR_STEPS
    TAKES = ("key", "confirm", "chunk")

    def __init__(self, parameters: Chunked, roster: Roster, run: bytes, identity: Identity) -> None:
        super().__init__(parameters, roster, run, COORDINATOR, identity, State.KEYS)
        self._parameters = parameters
        self._collection = Collection(self._binding)
        self._sums: dict[int, tuple[SumT, set[int]]] = {}
        self._summed: set[int] = set()
        self._uploads = Uploads(parameters)

    @abstractmethod
    def _nothing(self, size: int) -> SumT:
        """The sum of a chunk of this size before anything was added to it."""

    @abstractmethod
    def _keep(self, number: int, total: SumT) -> None:
        """Keep the result of a chunk, from the sum over all silos."""

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a silo's message."""
        envelope = self._opened(raw)
        if envelope.round == "chunk":
            self._add(envelope)
            return []
        if len(envelope.payload) != 32:
            raise self._refuse(PayloadError, "32 bytes were due", envelope)
        bundle = self._collection.take(envelope, raw, self._identity)
        if bundle:
            self.state = self._step(f"all {envelope.round}s")
        return bundle

    def _add(self, envelope: Envelope) -> None:
        number = envelope.sequence
        if number >= self._parameters.chunks:
            raise self._refuse(OrderError, f"there is no chunk {number}", envelope)
        if number in self._summed:
            raise self._refuse(OrderError, f"chunk {number} came twice", envelope)
        if not self._uploads.in_turn(envelope.sender, number):
            raise self._refuse(OrderError, f"chunk {number} came long before its turn", envelope)
        size = self._parameters.chunk_size(number)
        total, seen = self._sums.get(number) or (self._nothing(size), set())
        if envelope.sender in seen:
            raise self._refuse(OrderError, f"chunk {number} came twice", envelope)
        try:
            total.add(envelope.content, envelope.start)
        except ValueError as error:
            raise self._refuse(PayloadError, f"chunk {number}: {error}", envelope) from None
        seen.add(envelope.sender)
        self._uploads.take(envelope.sender)
        self._sums[number] = total, seen
        if len(seen) == self._parameters.silos:
            self._keep(number, total)
            self._summed.add(number)
            del self._sums[number]
        if len(self._summed) == self._parameters.chunks:
            self.state = self._step("all chunks")

    @property
    def quick(self) -> bool:
        """Always true: to add a chunk takes as long as to read it."""
        return True

    def wants(self, place: int) -> bool:
        """Whether this silo is not too far ahead of the slowest one."""
        return self._uploads.wants(place)

    @property
    def progress(self) -> tuple[int, int]:
        """How much of the chunks all silos have sent, and how much there is."""
        return self._uploads.progress

    def missing(self) -> dict[int, list[int]]:
        """The incomplete chunks, each with the silos that have not yet sent it."""
        silos = range(self._parameters.silos)
        return {n: [i for i in silos if i not in seen] for n, (_, seen) in self._sums.items()}


# --- The masked union -----------------------------------------------------------------------------

#: Packed words in a chunk: its message has a megabyte, whatever the modulus. Smaller messages take
#: the broker and both ends longer in all, larger ones fill more memory and no cache.
_CHUNK_WORDS = 1 << 18
#: How masks are drawn and how elements are encoded.
_STREAM = b"aes-256-ctr, 16-bit words rejection-sampled, blocks of 1024 words"
_PACKING = b"base-q digits in 32-bit words, lowest first"


def _digits(q: int) -> int:
    """How many base-q digits fit in a 32-bit word."""
    return max(count for count in range(1, 33) if q**count <= 1 << 32)


def packed_bytes(q: int, pairs: int) -> int:
    """The size of one element of Z_q per pair, with as many base-q digits as fit in 32-bit words.

    >>> packed_bytes(21, 7_000_000)
    4000000
    """
    return -(-pairs // _digits(q)) * 4


def chunk_pairs(q: int) -> int:
    """The number of pairs in a chunk.

    >>> packed_bytes(21, chunk_pairs(21)) == packed_bytes(3, chunk_pairs(3)) == 2**20
    True
    """
    return _digits(q) * _CHUNK_WORDS


@dataclass(frozen=True)
class MaskedParameters(Chunked):
    """What all parties of a run must agree on, and sign."""

    q: int
    b: Fraction
    silos: int
    pairs: int
    #: The digest of the node universe that the pairs belong to.
    subject: bytes
    chunk_pairs: int

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


class MaskedSilo(MaskingSilo):
    """A silo in one run of the masked union. ``bits(view, chunk)`` is one bit per pair."""

    VIEW = b"silograph/masked/view/v2"
    _masker: _core.Masker

    def __init__(
        self,
        parameters: MaskedParameters,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
        bits: Bits,
    ) -> None:
        # There is one secret per run. The run key and all chunks are derived from it, so a chunk
        # that is made again has exactly the same bytes.
        masker = _core.Masker(entropy.bytes(32), parameters.q, limbs(parameters.b))
        super().__init__(parameters, roster, run, place, identity, masker, bits)

    def _contribution(self, masks: _core.SharedMasks, number: int, bits: bytes) -> bytes:
        size = self._parameters.chunk_size(number)
        return self._masker.contribute(masks, number, bits, size)


class MaskedCoordinator(SummingCoordinator[_core.MaskedSum, _core.OpenBits]):
    """The coordinator in one run of the masked union. Its result is Y, one bit per pair."""

    _parameters: MaskedParameters

    def __init__(self, parameters: MaskedParameters, *more: Any) -> None:
        super().__init__(parameters, *more)
        self._bits = _core.OpenBits(parameters.pairs)

    def _nothing(self, size: int) -> _core.MaskedSum:
        return _core.MaskedSum(self._parameters.q, size)

    def _keep(self, number: int, total: _core.MaskedSum) -> None:
        self._bits.write(number * self._parameters.chunk_pairs, total.open())

    def result(self) -> _core.OpenBits:
        """Y, one bit per pair; only available when all chunks are complete."""
        self._require(State.DONE, "result")
        return self._bits
