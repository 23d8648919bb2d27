"""A silo's edges as one bit a pair, all of them laid out before the first is asked for.

Who watches the network sees when a silo sends a chunk, so the time to make one must not depend on
how many edges fall into it. All that is done for each edge is therefore done once, before a run's
first message; a chunk is then a copy of as many bytes as it has, whatever they are.
"""

import os
import tempfile
import weakref

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.errors import ArgumentError, GraphError
from silograph.graph.bitrows import triangle_bytes
from silograph.graph.silo import Silo

__all__ = ["PairBits", "memory_of"]

#: The most bytes that are held in memory (of 92,682 nodes); more go to a file without a name.
_IN_MEMORY = 1 << 29


#: Bits that somebody holds, by the identity of their edges and the number of nodes.
_ALIVE: "weakref.WeakValueDictionary[tuple[int, int], PairBits]" = weakref.WeakValueDictionary()


class PairBits:
    """Whether a silo holds each pair, in pair order k = u·n − u(u+1)/2 + (v−u−1).

    >>> from silograph.graph.universe import NodeUniverse
    >>> silo = Silo.from_edges(NodeUniverse.range(4), np.array([[0, 1], [2, 3]]))
    >>> PairBits(silo).chunk(0, 6)[0] == 0b100001
    True
    """

    @classmethod
    def of(cls, silo: Silo) -> "PairBits":
        """The same for everyone who asks, while anyone holds on to it."""
        key = (id(silo.pairs), len(silo.universe))
        known = _ALIVE.get(key)
        if known is None or known._held() is not silo.pairs:
            known = _ALIVE[key] = cls(silo)
        return known

    def __init__(self, silo: Silo) -> None:
        self._held = weakref.ref(silo.pairs)
        n = len(silo.universe)
        self._pairs = n * (n - 1) // 2
        #: The number of edges at every node, counted here for the same reason.
        self.degrees = silo.degrees()
        self._words = _room(triangle_bytes(n))
        _core.write_triangle(n, silo.pairs, self._words)

    def chunk(self, start: int, count: int) -> bytes:
        """The bits of ``count`` pairs from ``start`` on, padded with zeros to 64-bit words.

        A chunk is of whole words, but for the last one, which may end with the last pair.
        """
        end = start + count
        whole = start % 64 == 0 and (end % 64 == 0 or end == self._pairs)
        if not (whole and 0 <= start <= end <= self._pairs):
            raise ArgumentError(f"{start}, {count}: a chunk is of whole 64-bit words of pairs")
        words = self._words[start // 64 : -(-end // 64)]
        return words.astype("<u8", copy=False).tobytes()


def memory_of(nodes: int) -> int:
    """The bytes of memory that the bits of so many nodes take; a file takes the rest."""
    return min(triangle_bytes(nodes), _IN_MEMORY)


def _room(size: int) -> NDArray[np.uint64]:
    """So many bytes, with no pages that are only promised yet."""
    try:
        if size <= _IN_MEMORY:
            return np.empty(size // 8, dtype=np.uint64)
        with tempfile.TemporaryFile() as file:
            # Also that a full disk is an error here, and does not end the process later.
            os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, dtype=np.uint64, mode="r+", shape=(size // 8,))
    except (OSError, MemoryError) as error:
        place = "memory" if size <= _IN_MEMORY else tempfile.gettempdir()
        what = f"one bit a pair needs {size:,} bytes in {place}"
        raise GraphError(f"{what}: {getattr(error, 'strerror', None) or 'it is full'}") from None
