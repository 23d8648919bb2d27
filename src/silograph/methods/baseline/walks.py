"""Triangles, the clustering coefficient and 4-cycles from the reports of all silos."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from silograph.estimators.estimate import FloatArray
from silograph.estimators.pair_sums import RowSample
from silograph.estimators.ratio import fieller, share
from silograph.methods.baseline.counts import BLOCK_ROWS, ReportCounts, ReportWeights

__all__ = ["ReportWalks"]

# The number of rows from which standard errors are computed.
_SAMPLED_ROWS = 512
# The rows in a block of triples. Smaller blocks bring the work nearer to a sixth of a product.
_TRIPLE_ROWS = 512


@dataclass(frozen=True)
class _Rows:
    """Some rows of W and S, and the number of matrix rows that each of them represents."""

    rows: NDArray[np.uint32]
    stands: FloatArray
    w: FloatArray
    s: FloatArray

    def total(self, terms: FloatArray) -> float:
        """The sum over all rows of the matrix, without the entries on the diagonal."""
        own = terms[np.arange(len(self.rows)), self.rows]
        return float(self.stands @ (terms.sum(axis=1) - own))


class ReportWalks:
    """Sums over walks on the matrix of weights, computed on first use and kept.

    Model
        W is the symmetric matrix of pair weights, with zeros on the diagonal. The sum, over the
        copies of a motif, of the product of its weights is unbiased. Triangles: tr(W³)/6. 4-cycles:
        with C = W² and q = (W∘W)², ¼·Σ_{u<v} (C² − q). Clustering: 3·T̂/Ŝ2, only consistent.
    Variance
        For a sum F over motifs let Q_i = Σ over sets A of i pairs of Π_A s·(∂F/∂A)², s = w²−w. Its
        mean counts every set of j pairs C(j,i) times, so that Q1 − Q2 + Q3 − … is an unbiased
        estimate of the variance, for every number of holders. One part of 4-cycles (both diagonals
        of a cycle vary) cannot be computed with matrix products. It is subtracted with the
        smallest variance that a pair can have, which makes the estimate very slightly too large. On
        large graphs standard errors, but never values, come from a sample of rows.
    Cost
        Values: a sixth of a product of n × n matrices in float64 for triangles, half of one for
        4-cycles. The rounding error is about 1e-15 of the sum of the terms' sizes, far below the
        noise. Standard errors: two products of the sampled rows with the matrix, six for 4-cycles.
    Memory
        A few blocks of 1,024 rows (8 KB·n each) besides the counts.
    """

    def __init__(self, counts: ReportCounts, weights: ReportWeights) -> None:
        self.counts = counts
        self.weights = weights

    @cached_property
    def triangles(self) -> float:
        """T̂ = tr(W³)/6, from blocks of nodes I ≤ J ≤ K; other orders give the same values."""
        n, w, take = self.counts.n, self.weights.weights, self.counts.take
        terms = []
        for last in range(0, n, _TRIPLE_ROWS):
            third = slice(last, last + _TRIPLE_ROWS)
            for start in range(0, last + 1, _TRIPLE_ROWS):
                first, between = slice(start, start + _TRIPLE_ROWS), slice(start, third.stop)
                left, right = take(w, first, between), take(w, third, between)
                closing = left[:, last - start :]
                size = right.shape[1] - right.shape[0]
                if start == last:
                    terms.append(float((left @ right.T * closing).sum()))
                    continue
                ends = left[:, :_TRIPLE_ROWS] @ right[:, :_TRIPLE_ROWS].T
                ends += closing @ right[:, size:].T
                terms.append(3 * float((ends * closing).sum()))
                if size > _TRIPLE_ROWS:
                    inner = left[:, _TRIPLE_ROWS:size] @ right[:, _TRIPLE_ROWS:size].T
                    terms.append(6 * float((inner * closing).sum()))
        return math.fsum(terms) / 6

    @property
    def four_cycles(self) -> float:
        """Ĉ4 = ¼·Σ_{u<v} (C² − q)."""
        if self.counts.n < 4:  # nothing would be left but rounding errors
            return 0.0
        squares = self._row_sums([w**2 for w in self.weights.weights])
        fourths = self._row_sums([w**4 for w in self.weights.weights])
        # Σ of q over u ≠ v: walks u-v-w with squared weights, without those that turn back.
        turns = float(squares @ squares - fourths.sum())
        return (self._closed - turns) / 8

    def triple_variance(self, triangles: float, wedges: float) -> float:
        """The unbiased estimate of the variance of triangles·T̂ + wedges·Ŝ2."""
        degrees = self._row_sums(self.weights.weights)
        one = two = three = 0.0
        for part in self._sampled:
            ww, ss = self._times([(part.w, self.weights.weights), (part.s, self.weights.spreads)])
            meeting = degrees[part.rows, None] + degrees[None, :] - 2 * part.w
            one += part.total(part.s * (triangles * ww + wedges * meeting) ** 2) / 2
            two += part.total(ss * (triangles * part.w + wedges) ** 2) / 2
            three += triangles**2 * part.total(part.s * ss) / 6
        return one - two + three

    def triangles_stderr(self) -> float:
        """The root of the estimated variance, but at least that of a graph without edges."""
        floor = self._nobody**3 * math.comb(self.counts.n, 3)
        return math.sqrt(max(self.triple_variance(1.0, 0.0), floor))

    def clustering(self, wedges: float) -> tuple[float, float]:
        """3·T̂/Ŝ2 and its standard error, from the linear part of the ratio.

        The ratio is NaN if the noise leaves no 2-stars.
        """
        if wedges <= 0:
            return math.nan, math.inf
        ratio = 3 * self.triangles / wedges
        floor = 9 * self._nobody**3 * math.comb(self.counts.n, 3)
        variance = max(self.triple_variance(3.0, -ratio), floor)
        return ratio, math.sqrt(variance) / wedges

    def clustering_ends(self, wedges: float, floor: float) -> tuple[float, float] | None:
        """Fieller's interval, cut to [0, 1]; None if everything is possible. ``floor`` is the least
        variance of the 2-stars."""
        if wedges <= 0:
            return None
        # The variance of 3·T̂ − R·Ŝ2 is a square in R, so three ratios give all its parts.
        at = [self.triple_variance(3.0, r) for r in (1.0, 0.0, -1.0)]
        top = max(at[1], 9 * self._nobody**3 * math.comb(self.counts.n, 3))
        bottom = max((at[0] + at[2]) / 2 - at[1], floor)
        limit = math.sqrt(top * bottom)
        covariance = min(max((at[0] - at[2]) / 4, -limit), limit)
        return share(fieller(3 * self.triangles, top, wedges, bottom, covariance))

    def four_cycles_variance(self) -> float:
        """An estimate of the variance of :attr:`four_cycles`; see *Variance* above."""
        if self.counts.n < 4:
            return 0.0
        w, s = self.weights.weights, self.weights.spreads
        b = [x * y for x, y in zip(w, s, strict=True)]
        # Two squared steps over the same pair: the weight of walks that turn back.
        d = [x * x * y for x, y in zip(w, s, strict=True)]
        ss4 = [y * y for y in s]
        turn_d, turn_s = self._row_sums(d), self._row_sums(ss4)
        squares = self._row_sums([x * x for x in w])
        adjacent = apart = one = three = four = 0.0
        for part in self._sampled:
            rows = part.rows
            own_b, own_d, own_s = (self.counts.take(x, rows) for x in (b, d, ss4))
            ww, ss, ws, sw, bb = self._times(
                [(part.w, w), (part.s, s), (part.w, s), (part.s, w), (own_b, b)]
            )
            (www,) = self._times([(ww, w)])
            paths = www - part.w * (squares[rows, None] + squares[None, :] - part.w**2)
            one += part.total(part.s * paths**2) / 2
            # W∘W = S + W.
            w2s, sw2 = ss + ws, ss + sw
            back = own_d * (turn_d[None, :] - own_d)
            adjacent += part.total(ww**2 * ss - 2 * ww * bb + back) / 2
            apart += part.total(sw2 * w2s - back) / 4
            three += part.total(w2s * ss - own_d * (turn_s[None, :] - own_s)) / 2
            four += part.total(ss**2 - own_s * (turn_s[None, :] - own_s)) / 8
        diagonals = 2 * float(min(self.weights.variances)) ** 2 * self.four_cycles
        return one - (adjacent + apart + diagonals) + three - four

    def four_cycles_stderr(self) -> float:
        """The root of the estimated variance, but at least that of a graph without edges."""
        floor = 3 * self._nobody**4 * math.comb(self.counts.n, 4)
        return math.sqrt(max(self.four_cycles_variance(), floor))

    @property
    def _nobody(self) -> float:
        return float(self.weights.variance(0))

    def _row_sums(self, table: Sequence[Fraction]) -> FloatArray:
        """For each node, the sum of a function of the counts of its pairs."""
        sums: FloatArray = self.counts.profiles @ np.array([float(x) for x in table])
        return sums

    @cached_property
    def _closed(self) -> float:
        """Σ_{u≠v} C², from the blocks of C = W² on and above the diagonal."""
        n, w = self.counts.n, self.weights.weights
        squares = []
        for start in range(0, n, BLOCK_ROWS):
            left = self.counts.take(w, slice(start, start + BLOCK_ROWS))
            for other in range(start, n, BLOCK_ROWS):
                product = left @ self.counts.take(w, slice(other, other + BLOCK_ROWS)).T
                squares.append((1 if other == start else 2) * float((product**2).sum()))
                if other == start:
                    squares.append(-float((np.diagonal(product) ** 2).sum()))
        return math.fsum(squares)

    @property
    def _sampled(self) -> Iterator[_Rows]:
        """All rows, or a sample of them, in blocks."""
        degrees = self._row_sums(self.weights.weights)
        sample = RowSample.by_size(degrees, _SAMPLED_ROWS)
        for start in range(0, len(sample.rows), BLOCK_ROWS):
            rows = sample.rows[start : start + BLOCK_ROWS]
            stands = sample.weights[start : start + BLOCK_ROWS]
            w = self.counts.take(self.weights.weights, rows)
            yield _Rows(rows, stands, w, self.counts.take(self.weights.spreads, rows))

    def _times(self, factors: Sequence[tuple[FloatArray, Sequence[Fraction]]]) -> list[FloatArray]:
        """Each array of rows times the whole matrix of a function of the counts."""
        found = [np.zeros_like(left) for left, _ in factors]
        for start in range(0, self.counts.n, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            for i, (left, table) in enumerate(factors):
                found[i] += left[:, block] @ self.counts.take(table, block)
        return found
