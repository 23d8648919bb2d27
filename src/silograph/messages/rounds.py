"""Two kinds of rounds: every silo speaks to all parties, or every silo uploads chunks of pairs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Sequence
from enum import StrEnum
from typing import ClassVar

from silograph.errors import ArgumentError, OrderError, PayloadError
from silograph.messages.envelope import EVERYONE, Binding, Envelope, Outgoing, open_envelope, seal
from silograph.messages.identity import COORDINATOR, Identity, Roster, pack, unpack
from silograph.messages.machine import Machine, SiloSession

__all__ = ["Bits", "Chunked", "Collection", "UploadingSilo", "Uploads", "open_bundle"]


# --- Rounds in which every silo speaks to all -----------------------------------------------------
#
# Such a round consists of two messages: each silo sends its own to the coordinator, which relays
# all of them in one bundle, exactly as they were signed.


class Collection:
    """The coordinator's side of such a round: it takes one message of each silo, then bundles.

    ``after`` are further parties that speak, such as helpers.
    """

    def __init__(self, binding: Binding, after: Sequence[int] = ()) -> None:
        self._binding = binding
        self._places = (*range(len(binding.roster.silos)), *after)
        self._collected: dict[int, bytes] = {}

    def take(
        self, envelope: Envelope, raw: bytes, identity: Identity, *own: bytes
    ) -> list[Outgoing]:
        """Keep a checked message. The last one returns the bundle of all, followed by ``own``."""
        name = self._binding.roster.member(envelope.sender).name
        if envelope.sequence != 0:
            raise PayloadError("its sequence is not 0", silo=name, round=envelope.round)
        if envelope.sender in self._collected:
            raise OrderError("came twice", silo=name, round=envelope.round)
        self._collected[envelope.sender] = raw
        if len(self._collected) < len(self._places):
            return []
        bundle = pack(*(self._collected[place] for place in self._places), *own)
        relayed = Envelope(f"{envelope.round}s", COORDINATOR, EVERYONE, 0, bundle)
        self._collected = {}
        return [Outgoing(EVERYONE, seal(self._binding, identity, relayed))]


def open_bundle(
    binding: Binding,
    bundle: Envelope,
    expected: str,
    *,
    receiver: int,
    length: int,
    after: Sequence[int] = (),
) -> list[bytes]:
    """The silo's side: the payloads of all silos, each checked as if it had come by itself.

    ``after`` are the parties whose messages follow those of the silos.
    """
    payloads, places = [], (*range(len(binding.roster.silos)), *after)
    for place, raw in zip(places, unpack(bundle.payload, len(places)), strict=True):
        inner = open_envelope(binding, raw, receiver=receiver)
        name = binding.roster.member(inner.sender).name
        if (inner.round, inner.sender, inner.sequence) != (expected, place, 0):
            what = f"{expected} of {_party(place)} was due"
            raise OrderError(what, silo=name, round=inner.round)
        if len(inner.payload) != length:
            raise PayloadError(f"{length} bytes were due", silo=name, round=inner.round)
        payloads.append(inner.payload)
    return payloads


def _party(place: int) -> str:
    return "the coordinator" if place == COORDINATOR else f"silo {place}"


# --- Pairs in chunks: all unions split their pairs, so that messages have a bounded size ----------

#: How many chunks a silo may be ahead of the slowest one before the coordinator lets it wait.
_LEAD = 4
#: How many chunks of a silo may come before one that they were sent behind. Fewer are on their way
#: to the broker at once.
_BEFORE_TURN = 16

#: Returns a silo's edges in a chunk, one bit per pair: from what all parties of the run signed,
#: and the number of the chunk.
Bits = Callable[[bytes, int], bytes]


class Chunked(ABC):
    """The common part of all unions' parameters."""

    silos: int
    pairs: int
    chunk_pairs: int

    def check_chunks(self) -> None:
        """Refuse invalid numbers of silos, of pairs, and of pairs in a chunk."""
        if self.silos < 2 or self.pairs < 1 or self.chunk_pairs < 64 or self.chunk_pairs % 64:
            raise ArgumentError("there must be two silos, a pair, and chunks of whole 64-bit words")

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return -(-self.pairs // self.chunk_pairs)

    def chunk_size(self, chunk: int) -> int:
        """The number of pairs in a chunk."""
        return min(self.chunk_pairs, self.pairs - chunk * self.chunk_pairs)

    @property
    @abstractmethod
    def digest(self) -> bytes:
        """SHA-256 of every parameter."""

    def bit_bytes(self, chunk: int) -> int:
        """The size of what a silo has of a chunk: one bit per pair, padded to 64-bit words."""
        return -(-self.chunk_size(chunk) // 64) * 8


class Uploads:
    """How many chunks the coordinator has received from each silo."""

    def __init__(self, parameters: Chunked) -> None:
        self._parameters = parameters
        self._taken = [0] * parameters.silos

    def take(self, place: int) -> None:
        """Count one more chunk of the silo at ``place``."""
        self._taken[place] += 1

    def wants(self, place: int) -> bool:
        """Whether this silo is not too far ahead; incomplete chunks take memory."""
        return self._taken[place] < min(self._taken) + _LEAD

    def in_turn(self, place: int, number: int) -> bool:
        """Whether a chunk comes about when it should.

        A silo that sends in another order would have every chunk begun at once, in memory.
        """
        return number < self._taken[place] + _BEFORE_TURN

    @property
    def whole(self) -> bool:
        """Whether all chunks of all silos have arrived."""
        return min(self._taken) == self._parameters.chunks

    @property
    def progress(self) -> tuple[int, int]:
        """The number of pairs received from all silos, and the number of all pairs."""
        pairs = self._parameters.pairs
        return min(min(self._taken) * self._parameters.chunk_pairs, pairs), pairs


class UploadingSilo(Machine, SiloSession):
    """A silo that sends one message per chunk once it is authorised."""

    #: The round of its chunks.
    ROUND: ClassVar[str]

    def __init__(
        self,
        parameters: Chunked,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        bits: Bits,
        state: StrEnum,
    ) -> None:
        super().__init__(parameters, roster, run, place, identity, state)
        self._parameters = parameters
        self._bits = bits
        #: What all parties agreed on. A machine that exchanges keys sets it once more.
        self._view = parameters.digest
        self._made = 0

    @abstractmethod
    def chunk(self, number: int, bits: bytes) -> Outgoing:
        """The message of one chunk, from one bit per pair; a repeated call returns equal bytes."""

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """The message of the next chunk."""
        number, made = self._made, []
        if (self.ROUND, number) not in sent:
            made.append(self.chunk(number, self._bits(self._view, number)))
        self._made += 1
        return made

    def _check_chunk(self, number: int, bits: bytes) -> None:
        if not 0 <= number < self._parameters.chunks:
            raise OrderError(f"there is no chunk {number}", round=self.ROUND)
        due = self._parameters.bit_bytes(number)
        if len(bits) != due:
            raise PayloadError(f"{due} bytes were due, not {len(bits)}", round=self.ROUND)

    @property
    def room(self) -> bool:
        """Whether chunks are still to be made."""
        return (self.state, self.ROUND) in self.STEPS and not self.done

    @property
    def ahead(self) -> bool:
        """Always true while uploading: the silo receives no more messages."""
        return True

    @property
    def phase(self) -> str:
        """The state, or ``done`` once every chunk was made."""
        return "done" if self.done else str(self.state)

    @property
    def done(self) -> bool:
        """Whether every chunk was made."""
        return self._made == self._parameters.chunks
