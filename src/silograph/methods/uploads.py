"""What sessions of chunked uploads share: a silo's chunks, and how many of them have come."""

from collections.abc import Container

from silograph.graph.pairbits import PairBits
from silograph.graph.silo import Silo
from silograph.methods.sessions import SiloSession
from silograph.protocol.chunks import Chunked
from silograph.protocol.handshake import Outgoing
from silograph.protocol.masked import MaskedSilo
from silograph.protocol.reports import ReportSilo

__all__ = ["Bits", "UploadingSilo", "Uploads"]

#: Chunks that a silo may be ahead of the slowest one before the coordinator lets it wait.
_LEAD = 4


class Bits:
    """A silo's edges, one bit a pair, in a union's chunks."""

    def __init__(self, silo: Silo, parameters: Chunked) -> None:
        self._held = PairBits(silo)
        self._parameters = parameters

    def __call__(self, chunk: int) -> bytes:
        size = self._parameters.chunk_size(chunk)
        return self._held.chunk(chunk * self._parameters.chunk_pairs, size)


class Uploads:
    """How many chunks of each silo have come."""

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


class UploadingSilo(SiloSession):
    """A silo whose part, once it is authorised, is one message a chunk."""

    _round: str
    _machine: MaskedSilo | ReportSilo

    def __init__(self, silo: Silo, parameters: Chunked) -> None:
        self._bits = Bits(silo, parameters)
        self._chunks = parameters.chunks
        self._made = 0

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """The silo's part, chunk by chunk."""
        number = self._made
        chunk = []
        if (self._round, number) not in sent:
            chunk.append(self._machine.chunk(number, self._bits(number)))
        self._made += 1
        return chunk

    @property
    def ahead(self) -> bool:
        """Nothing is said to a silo any more that uploads."""
        return True

    @property
    def done(self) -> bool:
        """Whether every chunk was made."""
        return self._made == self._chunks
