"""Pairs in chunks: how every union cuts its work, so that messages do not grow with it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container
from enum import StrEnum
from typing import ClassVar

from silograph.crypto.identity import Identity
from silograph.errors import ArgumentError, OrderError, PayloadError
from silograph.protocol.envelope import Outgoing
from silograph.protocol.machine import Machine, SiloSession
from silograph.protocol.roster import Roster

__all__ = ["Bits", "Chunked", "UploadingSilo", "Uploads"]

#: Chunks that a silo may be ahead of the slowest one before the coordinator lets it wait.
_LEAD = 4

#: A silo's edges, one bit a pair, by the number of a chunk.
Bits = Callable[[int], bytes]


class Chunked(ABC):
    """What the parameters of every union have in common."""

    silos: int
    pairs: int
    chunk_pairs: int

    def check_chunks(self) -> None:
        """Refuse numbers of silos, pairs and pairs in a chunk that make no run."""
        if self.silos < 2 or self.pairs < 1 or self.chunk_pairs < 64 or self.chunk_pairs % 64:
            raise ArgumentError("there must be two silos, a pair, and chunks of whole 64-bit words")

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.pairs // self.chunk_pairs)

    def chunk_size(self, chunk: int) -> int:
        """The number of pairs in a chunk."""
        return min(self.chunk_pairs, self.pairs - chunk * self.chunk_pairs)

    @property
    @abstractmethod
    def digest(self) -> bytes:
        """SHA-256 of every parameter."""

    def bit_bytes(self, chunk: int) -> int:
        """The length of one bit a pair of a chunk, in whole 64-bit words."""
        return -(-self.chunk_size(chunk) // 64) * 8


class Uploads:
    """How many chunks of each silo have come to the coordinator."""

    def __init__(self, parameters: Chunked) -> None:
        self._parameters = parameters
        self._taken = [0] * parameters.silos

    def take(self, place: int) -> None:
        """One more of this silo."""
        self._taken[place] += 1

    def wants(self, place: int) -> bool:
        """Whether this silo is not too far ahead: sums of half-come chunks cost memory."""
        return self._taken[place] < min(self._taken) + _LEAD

    @property
    def whole(self) -> bool:
        """Whether all have come."""
        return min(self._taken) == self._parameters.chunks

    @property
    def progress(self) -> tuple[int, int]:
        """Pairs of chunks that have come from all silos."""
        pairs = self._parameters.pairs
        return min(min(self._taken) * self._parameters.chunk_pairs, pairs), pairs


class UploadingSilo(Machine, SiloSession):
    """A silo whose part, once it is authorised, is one message a chunk."""

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
        self._made = 0

    @abstractmethod
    def chunk(self, number: int, bits: bytes) -> Outgoing:
        """The silo's part of one chunk, from one bit a pair; made again only byte for byte."""

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """The silo's part, chunk by chunk."""
        number, made = self._made, []
        if (self.ROUND, number) not in sent:
            made.append(self.chunk(number, self._bits(number)))
        self._made += 1
        return made

    def _check_chunk(self, number: int, bits: bytes) -> None:
        if not 0 <= number < self._parameters.chunks:
            raise OrderError(f"there is no chunk {number}", round=self.ROUND)
        if len(bits) != self._parameters.bit_bytes(number):
            raise PayloadError("there is not one bit a pair", round=self.ROUND)

    @property
    def room(self) -> bool:
        """Whether chunks are still to be made."""
        return (self.state, self.ROUND) in self.STEPS and not self.done

    @property
    def ahead(self) -> bool:
        """Nothing is said to a silo any more that uploads."""
        return True

    @property
    def phase(self) -> str:
        """The state, until every chunk was made."""
        return "done" if self.done else str(self.state)

    @property
    def done(self) -> bool:
        """Whether every chunk was made."""
        return self._made == self._parameters.chunks
