"""A silo's edges as one bit a pair, chunk by chunk, so that memory does not grow with n²."""

import numpy as np

from silograph.graph.silo import Silo

__all__ = ["PairBits"]


class PairBits:
    """Whether a silo holds each pair, in pair order k = u·n − u(u+1)/2 + (v−u−1).

    >>> from silograph.graph.universe import NodeUniverse
    >>> silo = Silo.from_edges(NodeUniverse.range(4), np.array([[0, 1], [2, 3]]))
    >>> PairBits(silo).chunk(0, 6)[0] == 0b100001
    True
    """

    def __init__(self, silo: Silo) -> None:
        n = len(silo.universe)
        u, v = silo.pairs.T.astype(np.int64)
        #: Ascending, since the pairs are.
        self._indices = u * n - u * (u + 1) // 2 + (v - u - 1)

    def chunk(self, start: int, count: int) -> bytes:
        """The bits of ``count`` pairs from ``start`` on, padded with zeros to 64-bit words."""
        first, last = np.searchsorted(self._indices, (start, start + count))
        bits = np.zeros(-(-count // 64) * 64, dtype=np.uint8)
        bits[self._indices[first:last] - start] = 1
        return np.packbits(bits, bitorder="little").tobytes()
