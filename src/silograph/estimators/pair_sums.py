"""The sums over pairs that the estimators of triangles, 4-cycles and clustering need.

For a pair u < v of the noisy graph let c be the number of common neighbours, y the pair's own
bit, and s = d(u) + d(v) − 2y. The unbiased estimate of the *true* number of common neighbours is
linear in them (with a(y) = β + γy):

    ĉ = γ²c + βγs + β²(n−2)

So sums of ĉ and of its square follow from the sums of 1, c, s, c², cs and s².
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from silograph.estimators.estimate import FloatArray
from silograph.graph.bits import BitRows

__all__ = ["ExactSums", "GraphSums", "PairSums", "RowSample"]

ExactSums: TypeAlias = "PairSums[Fraction]"
S = TypeVar("S", Fraction, FloatArray)

# Above this many nodes, standard errors (but never values) are computed from a sample of rows.
_ALL_ROWS = 8192
_SAMPLED_ROWS = 4096


@dataclass(frozen=True)
class PairSums(Generic[S]):
    """Sums of 1, c, s, c², cs and s² over a set of pairs: exact fractions, or arrays of floats."""

    one: S
    c: S
    s: S
    cc: S
    cs: S
    ss: S

    # The arithmetic is the same for fractions and for arrays, which have no common type.
    def linear(self, p: Any, q: Any, r: Any) -> S:
        """Σ (p·c + q·s + r)."""
        total: Any = p * self.c + q * self.s + r * self.one
        return total  # type: ignore[no-any-return]

    def square(self, p: Any, q: Any, r: Any) -> S:
        """Σ (p·c + q·s + r)²."""
        squares: Any = p * p * self.cc + q * q * self.ss + r * r * self.one
        mixed: Any = p * q * self.cs + p * r * self.c + q * r * self.s
        return squares + 2 * mixed  # type: ignore[no-any-return]


@dataclass(frozen=True)
class RowSample:
    """Some rows of a matrix and, for each, the number of rows that it represents."""

    rows: NDArray[np.uint32]
    weights: NDArray[np.float64]

    @classmethod
    def by_size(cls, sizes: NDArray[np.float64] | NDArray[np.int64], count: int) -> "RowSample":
        """All rows if there are few; otherwise the largest ones, and every k-th of the others.

        A few rows dominate sums of squares, so they are always included. A systematic sample of a
        sorted list is stratified, and needs no randomness.
        """
        n = len(sizes)
        if n <= count:
            return cls(np.arange(n, dtype=np.uint32), np.ones(n))
        order = np.argsort(-sizes, kind="stable").astype(np.uint32)
        certain, rest = order[: count // 2], order[count // 2 :]
        drawn = count - len(certain)
        middles = ((np.arange(drawn) + 0.5) * len(rest) / drawn).astype(np.int64)
        weights = np.concatenate([np.ones(len(certain)), np.full(drawn, len(rest) / drawn)])
        return cls(np.concatenate([certain, rest[middles]]), weights)


class GraphSums:
    """The sums of one graph, computed on first use and kept.

    >>> from silograph.graph.bits import BitRows
    >>> path = BitRows.from_pairs(3, np.array([[0, 1], [1, 2]], dtype=np.uint32))
    >>> pairs, joined = GraphSums(path).exact
    >>> int(pairs.c), int(joined.one)
    (1, 2)
    """

    def __init__(self, graph: BitRows) -> None:
        self.graph = graph

    @cached_property
    def moments(self) -> NDArray[np.uint64]:
        """The row moments of every node (see :meth:`BitRows.moments`)."""
        return self.graph.moments()

    @cached_property
    def exact(self) -> tuple[ExactSums, ExactSums]:
        """Sums over all pairs, and over the pairs with y = 1."""
        everyone = RowSample.by_size(self.graph.degrees, self.graph.n)
        return self._sums(everyone, self.moments)

    @cached_property
    def sampled(self) -> tuple[ExactSums, ExactSums]:
        """The same sums for standard errors; on large graphs from a sample of rows."""
        if self.graph.n <= _ALL_ROWS or "exact" in self.__dict__:
            return self.exact
        sample = self.rows(_SAMPLED_ROWS)
        return self._sums(sample, self.graph.moments(sample.rows))

    @cached_property
    def linear_sums(self) -> tuple[ExactSums, ExactSums]:
        """Sums of 1, c and s alone, over all pairs and over those with y = 1; always exact."""
        graph, n, m, zero = self.graph, self.graph.n, self.graph.edges, Fraction(0)
        d2 = _total(graph.degrees**2)
        pairs = Fraction(n * (n - 1), 2), Fraction(graph.wedges), Fraction(2 * m * (n - 2))
        joined = Fraction(m), Fraction(3 * graph.triangles), d2 - 2 * m
        return PairSums(*pairs, zero, zero, zero), PairSums(*joined, zero, zero, zero)

    def rows(self, sampled: int) -> RowSample:
        """The rows that standard errors are computed from: all, or so many on large graphs."""
        few = self.graph.n <= _ALL_ROWS
        return RowSample.by_size(self.graph.degrees, self.graph.n if few else sampled)

    def row_squares(
        self,
        p: float,
        q: float,
        r: float | FloatArray,
        on: float,
        off: float,
        more: float | FloatArray = 0.0,
    ) -> FloatArray:
        """For each node, the sum over the others of (p·c + q·s + r)², times ``on`` if y = 1 and
        ``off`` if y = 0. If y = 1, ``more`` is added to r."""
        degrees = self.graph.degrees.astype(np.float64)
        c, cc, cd, yc, ycc, ycd, yd, ydd = self.moments.T.astype(np.float64)
        # s = d(u) + d(v) − 2y. For a neighbour it is d(v) + k with k = d(u) − 2 …
        k = degrees - 2
        ys, yss, ycs = yd + k * degrees, ydd + 2 * k * yd + k**2 * degrees, ycd + k * yc
        joined = PairSums(degrees, yc, ys, ycc, ycs, yss)
        # … and for the others, which are neither neighbours nor u itself, d(v) + d(u).
        count = self.graph.n - 1 - degrees
        zc, zcc, zcd = c - yc, cc - ycc, cd - ycd
        zd = degrees.sum() - degrees - yd
        zdd = (degrees**2).sum() - degrees**2 - ydd
        zs, zss = zd + count * degrees, zdd + 2 * degrees * zd + count * degrees**2
        others = PairSums(count, zc, zs, zcc, zcd + degrees * zc, zss)
        total: FloatArray = on * joined.square(p, q, r + more) + off * others.square(p, q, r)
        return total

    def _sums(self, sample: RowSample, moments: NDArray[np.uint64]) -> tuple[ExactSums, ExactSums]:
        graph, n, m = self.graph, self.graph.n, self.graph.edges
        degrees = graph.degrees
        d2, d3 = _total(degrees**2), _total(degrees**3)
        # Σ d(u)·d(v) over the edges; Σ s² over the edges follows from it.
        dd = round(graph.edge_products(degrees.astype(np.float64)))
        own = degrees[sample.rows]
        c, cc, cd, yc, ycc, ycd = (moments[:, i].astype(np.int64) for i in range(6))
        weights = None if len(sample.rows) == n else sample.weights
        first, second = self.linear_sums
        # The kernel sums over ordered pairs, hence the halves.
        pairs = replace(
            first,
            cc=_total(cc, weights) / 2,
            cs=_total(own * c + cd - 2 * yc, weights) / 2,
            ss=(n - 6) * d2 + 4 * m * m + 4 * m,
        )
        joined = replace(
            second,
            cc=_total(ycc, weights) / 2,
            cs=_total((own - 2) * yc + ycd, weights) / 2,
            ss=d3 + 2 * dd - 4 * d2 + 4 * m,
        )
        return pairs, joined


def _total(column: NDArray[np.int64], weights: NDArray[np.float64] | None = None) -> Fraction:
    """A sum; without weights it is exact, since 64 bits could overflow on large, dense graphs."""
    if weights is None:
        return Fraction(sum(map(int, column)))
    return Fraction(float(weights @ column))
