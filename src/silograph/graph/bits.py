"""A graph as bits: rows of bits for counting, and one bit per pair for protocols."""

import math
import mmap
import os
import tempfile
import weakref
from collections.abc import Callable
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.errors import ArgumentError, GraphError
from silograph.graph.silo import Silo

__all__ = [
    "BitRows",
    "PairBits",
    "bits_in_chunks",
    "chunk_of",
    "in_memory",
    "memory_of",
    "simd_levels",
    "triangle_bytes",
]


# --- A graph as padded rows of bits, and exact counts on it (the kernels are in Rust) -------------
#
# A graph has two layouts. *Rows*: an (n, words) array of 64-bit words; row u has bit v set if u and
# v are joined. The kernels use it. *Triangle*: bytes with one bit per pair, in pair order
# k = u·n − u(u+1)/2 + (v−u−1). Protocols and files use it.


def simd_levels() -> tuple[str, ...]:
    """The instruction sets that this CPU can run the kernels with, slowest first."""
    return tuple(_core.simd_levels())


def triangle_bytes(n: int) -> int:
    """The size of a triangle of n nodes in bytes, padded to 64-bit words."""
    return -(-(n * (n - 1) // 2) // 64) * 8


class BitRows:
    """An immutable graph of n nodes as bit rows.

    >>> triangle = BitRows.from_pairs(4, np.array([[0, 1], [0, 2], [1, 2]], dtype=np.uint32))
    >>> triangle.n, triangle.edges, triangle.triangles, triangle.degrees.tolist()
    (4, 3, 1, [2, 2, 2, 0])
    """

    def __init__(self, words: NDArray[np.uint64]) -> None:
        words.flags.writeable = False
        self.words = words

    @classmethod
    def from_pairs(cls, n: int, pairs: NDArray[np.uint32]) -> Self:
        """Make the graph from an array of pairs u < v < n."""
        return cls(_core.rows_from_pairs(n, np.ascontiguousarray(pairs, dtype=np.uint32)))

    @classmethod
    def from_triangle(cls, n: int, triangle: bytes) -> Self:
        """Make the graph from one bit per pair; see :meth:`to_triangle`."""
        return cls(_core.rows_from_triangle(n, triangle))

    def to_triangle(self) -> bytes:
        """One bit per pair, in pair order, padded with zeros to 64-bit words."""
        return _core.triangle_of_rows(self.words)

    def pairs(self) -> NDArray[np.uint32]:
        """The edges as pairs u < v, in ascending order."""
        return _core.pairs_of_rows(self.words)

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.words)

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """The number of neighbours of every node."""
        return _core.row_degrees(self.words).astype(np.int64)

    @cached_property
    def neighbour_degrees(self) -> NDArray[np.int64]:
        """The sum of the degrees of every node's neighbours."""
        degrees = self.degrees.astype(np.float64)[:, None]  # sums are below 2^53, so exact
        return self.neighbour_sums(degrees)[:, 0].astype(np.int64)

    def neighbour_sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum over every node's neighbours of each column of values."""
        blocks = (slice(start, start + 1024) for start in range(0, self.n, 1024))
        sums = [self.bits(block).astype(np.float64) @ values for block in blocks]
        return np.concatenate([*sums, np.empty((0, values.shape[1]))])

    @cached_property
    def edges(self) -> int:
        """The number of edges."""
        return int(self.degrees.sum()) // 2

    @cached_property
    def wedges(self) -> int:
        """The number of 2-stars, Σ d(d−1)/2."""
        return int((self.degrees * (self.degrees - 1)).sum()) // 2

    @cached_property
    def triangles(self) -> int:
        """The number of triangles.

        In a dense graph they are counted on its complement: triples with one or two of the three
        edges have two nodes at which exactly one of the two pairs is an edge.
        """
        pairs = self.n * (self.n - 1) // 2
        if 2 * self.edges <= pairs:
            return _core.count_triangles(self.words)
        mixed = int((self.degrees * (self.n - 1 - self.degrees)).sum()) // 2
        return math.comb(self.n, 3) - mixed - _core.count_triangles(self.complement.words)

    @property
    def complement(self) -> "BitRows":
        """The graph of the pairs that are not joined in this one."""
        nodes = np.arange(self.n, dtype=np.uint64)
        everyone = np.zeros(self.words.shape[1], dtype=np.uint64)
        np.bitwise_or.at(everyone, nodes >> np.uint64(6), np.uint64(1) << (nodes & np.uint64(63)))
        words = ~self.words & everyone
        own = (nodes.astype(np.intp), (nodes >> np.uint64(6)).astype(np.intp))
        words[own] &= ~(np.uint64(1) << (nodes & np.uint64(63)))
        return BitRows(words)

    @cached_property
    def four_cliques(self) -> int:
        """The number of complete subgraphs on four nodes."""
        return _core.count_four_cliques(self.words)

    @cached_property
    def four_cycles(self) -> int:
        """The number of 4-cycles: Σ c(c−1)/2 over pairs with c common neighbours, halved."""
        found = self.moments()
        return sum(int(c2) - int(c) for c, c2 in found[:, :2]) // 8

    def moments(self, picked: NDArray[np.uint32] | None = None) -> NDArray[np.uint64]:
        """Eight sums over the other nodes v of each picked node u; of every node, if none are.

        With c the number of common neighbours of u and v, and d the degree of v: Σc, Σc², Σcd
        over all v ≠ u; Σc, Σc², Σcd, Σd, Σd² over the neighbours v of u.
        """
        if picked is None:
            return _core.all_row_moments(self.words)
        return _core.row_moments(self.words, np.ascontiguousarray(picked, dtype=np.uint32))

    def common_neighbours(self, picked: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """How many neighbours each picked node shares with every node (0 with itself)."""
        return _core.common_neighbours(self.words, np.ascontiguousarray(picked, dtype=np.uint32))

    def bits(self, rows: slice | NDArray[np.uint32]) -> NDArray[np.uint8]:
        """The chosen rows as an array of zeros and ones."""
        block = np.ascontiguousarray(self.words[rows], dtype="<u8").view(np.uint8)
        return np.unpackbits(block, axis=1, count=self.n, bitorder="little")

    def at(self, pairs: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The bits of the given pairs."""
        u, v = pairs[:, 0].astype(np.intp), pairs[:, 1].astype(np.uint64)
        words = self.words[u, (v >> np.uint64(6)).astype(np.intp)]
        return ((words >> (v & np.uint64(63))) & np.uint64(1)).astype(np.int64)

    def edge_products(self, f: NDArray[np.float64]) -> float:
        """Σ f(u)·f(v) over the edges."""
        return _core.edge_products(self.words, np.ascontiguousarray(f, dtype=np.float64))

    def group_degrees(self, group: NDArray[np.uint32], groups: int) -> NDArray[np.uint32]:
        """How many neighbours of every node are in each group, from the group of every node."""
        return _core.group_degrees(self.words, np.ascontiguousarray(group, np.uint32), groups)

    def induced(self, picked: NDArray[np.uint32]) -> "BitRows":
        """The graph on the picked nodes alone, in their order."""
        return BitRows(_core.induced_rows(self.words, np.ascontiguousarray(picked, np.uint32)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BitRows) and np.array_equal(self.words, other.words)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"BitRows(n={self.n}, edges={self.edges})"


# --- A silo's edges as one bit per pair, prepared before a run ------------------------------------
#
# Anyone who watches the network sees when a silo sends a chunk. So the time to make a chunk must
# not depend on the number of edges in it. All work per edge is therefore done once, before a run's
# first message. After that, making a chunk is a copy of a fixed number of bytes.
#: The most bytes held in memory (enough for 92,682 nodes); larger bits go to an unnamed file.
_IN_MEMORY = 1 << 29


#: The bits that are in use, by the identity of their edges and the number of nodes.
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
        """The bits of a silo; all callers share one object while any of them uses it."""
        key = (id(silo.pairs), len(silo.universe))
        known = _ALIVE.get(key)
        if known is None or known._held() is not silo.pairs:
            known = _ALIVE[key] = cls(silo)
        return known

    def __init__(self, silo: Silo) -> None:
        self._held = weakref.ref(silo.pairs)
        n = len(silo.universe)
        self.pairs = n * (n - 1) // 2
        #: The number of edges at every node, counted here for the same reason.
        self.degrees = silo.degrees()
        self._words, self._file = _room(triangle_bytes(n))
        _core.write_triangle(n, silo.pairs, self._words)
        self._let_go()

    def chunk(self, start: int, count: int) -> bytes:
        """The bits of ``count`` pairs from ``start`` on, padded with zeros to 64-bit words.

        A chunk consists of whole words; only the last one may end at the last pair.
        """
        found = chunk_of(self._words, self.pairs, start, count)
        self._let_go()
        return found

    def _let_go(self) -> None:
        """Take no memory for what is in a file: it stays in the cache while the system likes."""
        if self._file is not None:
            self._file.madvise(mmap.MADV_DONTNEED)


def chunk_of(words: NDArray[np.uint64], bits: int, start: int, count: int) -> bytes:
    """``count`` of all ``bits`` from ``start`` on, padded with zeros to 64-bit words."""
    end = start + count
    whole = start % 64 == 0 and (end % 64 == 0 or end == bits)
    if not (whole and 0 <= start <= end <= bits):
        raise ArgumentError(f"{start}, {count}: a chunk must consist of whole 64-bit words")
    return words[start // 64 : -(-end // 64)].astype("<u8", copy=False).tobytes()


def bits_in_chunks(silo: Silo, chunk_pairs: int) -> Callable[[bytes, int], bytes]:
    """One bit per pair, in chunks of so many pairs: from the number of a chunk to its bits.

    The first argument, what the parties of a run signed, plays no part.
    """
    held = PairBits.of(silo)
    return lambda _view, chunk: held.chunk(
        chunk * chunk_pairs, min(chunk_pairs, held.pairs - chunk * chunk_pairs)
    )


def in_memory(nodes: int) -> bool:
    """Whether the bits of this many nodes are held in memory."""
    return triangle_bytes(nodes) <= _IN_MEMORY


def memory_of(nodes: int) -> int:
    """The memory that the bits of this many nodes take, in bytes; larger bits are in a file."""
    return min(triangle_bytes(nodes), _IN_MEMORY)


def _room(size: int) -> tuple[NDArray[np.uint64], mmap.mmap | None]:
    """Space of this many bytes, whose pages are all allocated, and the file that has it, if any."""
    try:
        if size <= _IN_MEMORY:
            return np.empty(size // 8, dtype=np.uint64), None
        with tempfile.TemporaryFile() as file:
            # Allocate now, so that a full disk is an error here and does not end the process later.
            os.posix_fallocate(file.fileno(), 0, size)
            space = mmap.mmap(file.fileno(), size)
        return np.frombuffer(space, dtype=np.uint64), space
    except (OSError, MemoryError) as error:
        place = "memory" if size <= _IN_MEMORY else tempfile.gettempdir()
        what = f"one bit per pair needs {size:,} bytes in {place}"
        raise GraphError(f"{what}: {getattr(error, 'strerror', None) or 'it is full'}") from None
