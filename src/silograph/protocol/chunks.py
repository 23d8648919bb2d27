"""Pairs in chunks: how every union cuts its work, so that messages do not grow with it."""

from silograph.errors import ArgumentError

__all__ = ["Chunked"]


class Chunked:
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
