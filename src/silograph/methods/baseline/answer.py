"""The baseline's answers, computed from the reports of all silos.

The module holds the weights of report counts, the estimators of k-stars, triangles, clustering and
4-cycles, and :class:`Reports`, which answers the queries.
"""

import math
import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.dp.channel import Channel, Weights, limbs
from silograph.dp.loss import View, shown_loss
from silograph.errors import ArgumentError, UniverseError
from silograph.estimators.cycles import four_cycles_even
from silograph.estimators.estimate import (
    Z95,
    Estimate,
    FloatArray,
    Origin,
    Provenance,
    definitions,
    uneven,
    views_table,
)
from silograph.estimators.pair_sums import RowSample
from silograph.estimators.ratio import fieller, said_share, share
from silograph.estimators.stars import far_above, kstars_even, square_root
from silograph.estimators.triangles import triangles_even
from silograph.graph.bits import BitRows
from silograph.graph.samples import seed_bytes
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.methods.baseline.limits import MANY_PAIRS, report_limits
from silograph.methods.baseline.noise import BaselineNoise

__all__ = [
    "BLOCK_ROWS",
    "RAW_NOTE",
    "ReportCounts",
    "ReportWalks",
    "ReportWeights",
    "Reports",
    "kstars",
    "kstars_above",
    "kstars_floor",
]


# --- Counts of ones among the reports of each pair, and their weights -----------------------------
#: Rows that are unpacked to floats at once.
BLOCK_ROWS = 1024
# The value on the diagonal. A pair never has that many ones, since there are at most 64 silos.
_NO_PAIR = 255


@dataclass(frozen=True)
class ReportWeights:
    """The weight w_j of a pair with j ones among m reports, and its variance.

    Model
        m silos report each pair through one channel, independently. Only the number j of ones
        among a pair's reports matters. The product of 1 − a(y) over the reports has the mean
        Π (1 − x_i) = 1 − x. Hence w_j = 1 − (1−α)^j·(1−β)^(m−j) is unbiased for the union bit x,
        for any number of holders. (The union of the reports alone cannot be calibrated: its
        distribution depends on how many silos hold the pair.)
    Variance
        With h holders E[(1−w)²] = v1^h·(1+v0)^(m−h), so Var(w) = v1^h·(1+v0)^(m−h) − [h = 0].
        Since x is a bit, x² = x, and w² − w is an unbiased estimate of this variance, again for
        any h.

    >>> [str(w) for w in ReportWeights(Channel("3/4", "1/4"), 2).weights]
    ['-5/4', '7/4', '3/4']
    """

    channel: Channel
    silos: int

    @cached_property
    def weights(self) -> tuple[Fraction, ...]:
        """w_0 … w_m."""
        one, zero = 1 - self.channel.alpha, 1 - self.channel.beta
        return tuple(1 - one**j * zero ** (self.silos - j) for j in range(self.silos + 1))

    @cached_property
    def spreads(self) -> tuple[Fraction, ...]:
        """s_j = w_j² − w_j, the unbiased estimate of the variance at a pair with j ones."""
        return tuple(w * w - w for w in self.weights)

    def variance(self, holders: int) -> Fraction:
        """The variance of the weight of a pair with this number of holders."""
        v = self.channel.weights
        square = v.v1**holders * (1 + v.v0) ** (self.silos - holders)
        return square if holders else square - 1

    @cached_property
    def variances(self) -> tuple[Fraction, ...]:
        """The variances for 0, 1 … m holders."""
        return tuple(self.variance(h) for h in range(self.silos + 1))


class ReportCounts:
    """For each pair of n nodes, the number of ones among m reports.

    The counts take n² bytes of memory (16 MB at n = 4,039). Sums are computed over blocks of rows,
    with 8 bytes per entry.

    >>> one = BitRows.from_pairs(3, np.array([[0, 1], [1, 2]], dtype=np.uint32))
    >>> two = BitRows.from_pairs(3, np.array([[0, 1]], dtype=np.uint32))
    >>> counts = ReportCounts.of([one, two])
    >>> counts.totals.tolist(), counts.union.edges
    ([1, 1, 1], 2)
    """

    def __init__(self, matrix: NDArray[np.uint8], silos: int) -> None:
        """Take the counts from a symmetric matrix; its diagonal is ignored."""
        n = len(matrix)
        if matrix.shape != (n, n) or not np.array_equal(matrix, matrix.T):
            raise ArgumentError("counts must be a symmetric matrix")
        matrix = np.array(matrix, dtype=np.uint8)
        np.fill_diagonal(matrix, 0)
        if int(matrix.max(initial=0)) > silos:
            raise ArgumentError(f"counts of {silos} reports must be from 0 to {silos}")
        self._keep(matrix, silos)

    def _keep(self, matrix: NDArray[np.uint8], silos: int) -> None:
        np.fill_diagonal(matrix, _NO_PAIR)
        matrix.flags.writeable = False
        self._matrix = matrix
        self.silos = silos

    @classmethod
    def of(cls, reports: Sequence[BitRows]) -> "ReportCounts":
        """Count the ones in the noisy graphs of all silos."""
        sizes = {report.n for report in reports}
        if len(sizes) != 1:
            raise ArgumentError(
                f"reports must be of the same nodes; these have {sorted(sizes)} nodes"
            )
        n = sizes.pop()
        matrix = np.zeros((n, n), dtype=np.uint8)
        for report in reports:
            for start in range(0, n, BLOCK_ROWS):
                block = slice(start, start + BLOCK_ROWS)
                matrix[block] += report.bits(block)
        # Rows of bits are symmetric, so that nothing is left to check, and nobody else has these.
        made = cls.__new__(cls)
        made._keep(matrix, len(reports))
        return made

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self._matrix)

    @cached_property
    def profiles(self) -> NDArray[np.int64]:
        """For each node, how many of its n − 1 pairs have 0, 1 … m ones."""
        classes = range(self.silos + 1)
        return np.stack([np.count_nonzero(self._matrix == j, axis=1) for j in classes], axis=1)

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """How many pairs have 0, 1 … m ones."""
        totals: NDArray[np.int64] = self.profiles.sum(axis=0) // 2
        return totals

    @cached_property
    def union(self) -> BitRows:
        """The union of all reports: an edge wherever any silo reported one."""
        found = []
        for start in range(0, self.n, BLOCK_ROWS):
            above = np.triu(self._matrix[start : start + BLOCK_ROWS] > 0, start + 1)
            found.append(np.argwhere(above).astype(np.uint32))
            found[-1][:, 0] += start
        pairs = np.concatenate(found) if found else np.empty((0, 2), dtype=np.uint32)
        return BitRows.from_pairs(self.n, pairs)

    def take(
        self,
        table: Sequence[Fraction] | FloatArray,
        rows: slice | NDArray[np.uint32],
        columns: slice = slice(None),
    ) -> FloatArray:
        """The chosen rows and columns, with each count j replaced by table[j].

        The diagonal is zero.
        """
        values = np.zeros(256)
        values[: self.silos + 1] = [float(x) for x in table]
        return values[self._matrix[rows, columns]]

    def class_product(self, ones: int, f: FloatArray) -> float:
        """Σ f(u)·f(v) over the pairs with this number of ones."""
        total = 0.0
        for start in range(0, self.n, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            total += float(f[block] @ ((self._matrix[block] == ones) @ f))
        return total / 2


# --- k-stars from all reports, for any k ≥ 1 ------------------------------------------------------
Row = tuple[int, ...]


def kstars(counts: ReportCounts, weights: ReportWeights, k: int) -> tuple[Fraction, Fraction]:
    """The unbiased number of k-stars and the unbiased estimate of its variance.

    Model
        Σ over nodes u of e_k(w(u,·)), the elementary symmetric polynomial of the row of unbiased
        weights. It is the coefficient of z^k in Π_j (1 + w_j·z)^(c_j), where c_j pairs of the row
        have j ones.
    Bias
        None, exactly, for every number of holders.
    Variance
        Rows u and v share only the pair itself, so the variance is Σ_u Var(e_k(u)) +
        2·Σ_{u<v} Var(w)·P(u∖v)·P(v∖u), where P(u∖v) counts what the pair would add at u. The
        estimate is unbiased: a row has e_k² − Σ_l C(l,k)·C(k,l−k)·e_l, since C(d,k)² =
        Σ_l C(l,k)·C(k,l−k)·C(d,l); a pair has (w²−w)·e_(k−1)(u∖v)·e_(k−1)(v∖u).
    Cost
        Big integers per distinct row, about m·k² products of k·m·64 bits each. (Floats are not
        enough: the terms are far larger than their sum.) At k = 2 and m = 4 a row takes a tenth of
        a millisecond.
    """
    rows: list[Row] = [tuple(row) for row in counts.profiles.tolist()]
    polynomials = _Polynomials(weights, 2 * k)
    square = [math.comb(j, k) * math.comb(k, j - k) for j in range(k, 2 * k + 1)]
    den = polynomials.den
    value = own = 0
    without: dict[Row, list[int]] = {}
    for row, many in Counter(rows).items():
        e = polynomials.of(row)
        value += many * e[k]
        mean = sum(b * e[k + i] * den ** (k - i) for i, b in enumerate(square))
        own += many * (e[k] ** 2 - mean)
        without[row] = polynomials.without_one(e, k - 1)
    # Divide by a power of two near the largest value, so that a large k cannot overflow a float.
    largest = max((abs(p) for found in without.values() for p in found), default=0)
    scale = 1 << largest.bit_length()
    small = {row: [p / scale for p in found] for row, found in without.items()}
    f = np.array([small[row] for row in rows]).reshape(counts.n, -1)
    shared = sum(float(s) * counts.class_product(j, f[:, j]) for j, s in enumerate(weights.spreads))
    rest = 2 * Fraction(shared) * Fraction(scale, den ** (k - 1)) ** 2
    return Fraction(value, den**k), Fraction(own, den ** (2 * k)) + rest


def kstars_value(counts: ReportCounts, weights: ReportWeights, k: int) -> Fraction:
    """The number alone."""
    polynomials, rows = _Polynomials(weights, k), Counter(map(tuple, counts.profiles.tolist()))
    value = sum(many * polynomials.of(row)[k] for row, many in rows.items())
    return Fraction(value, polynomials.den**k)


def kstars_above(
    counts: ReportCounts, weights: ReportWeights, k: int, tops: Sequence[int]
) -> float:
    """How far the number of k-stars can be above its estimate, from upper limits of degrees.

    A hub that looks small by chance has a small standard error too.
    """
    polynomials = _Polynomials(weights, k)
    unit, known = polynomials.den**k, dict[Row, int]()
    distances = []
    for row, top in zip(map(tuple, counts.profiles.tolist()), tops, strict=True):
        if row not in known:
            known[row] = max(polynomials.of(row)[k], 0)
        distances.append(max(math.comb(top, k) * unit - known[row], 0))
    return far_above(distances, Fraction(1, unit))


def kstars_floor(n: int, weights: ReportWeights, k: int) -> Fraction:
    """The variance on a graph without edges."""
    nobody = weights.variance(0)
    rows = n * math.comb(n - 1, k) * nobody**k
    return rows + nobody * n * (n - 1) if k == 1 else rows


class _Polynomials:
    """Elementary symmetric polynomials of rows, as integers: e_i is the i-th entry over den^i."""

    def __init__(self, weights: ReportWeights, top: int) -> None:
        self.den = math.lcm(*(w.denominator for w in weights.weights))
        self.integers = [int(w * self.den) for w in weights.weights]
        #: First powers, second powers and so on, with the signs of Newton's identities.
        self.powers = [[(-1) ** i * w ** (i + 1) for w in self.integers] for i in range(top)]

    def of(self, row: Row) -> list[int]:
        """e_0 … e_top of a row in which row[j] pairs have j ones."""
        # i·e_i = e_(i−1)·p_1 − e_(i−2)·p_2 + …, where p_j is the sum of the j-th powers.
        sums = [sum(map(operator.mul, row, powers)) for powers in self.powers]
        found = [1]
        for i in range(1, len(sums) + 1):
            found.append(sum(map(operator.mul, reversed(found), sums)) // i)
        return found

    def without_one(self, e: list[int], k: int) -> list[int]:
        """e_k of the row without one of its pairs, for each class that the pair may be in."""
        found = []
        for w in self.integers:
            less = 1
            for i in range(1, k + 1):
                less = e[i] - w * less
            found.append(less)
        return found


# --- Triangles, the clustering coefficient and 4-cycles from all reports --------------------------
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


# --- The reports of all silos, and queries --------------------------------------------------------
#: The note of every raw answer.
RAW_NOTE = "raw count on the union of the noisy reports, as printed: biased, without an error bar"


@dataclass(frozen=True, eq=False)
class Reports:
    """The reports of all silos under the baseline, and queries on them.

    For each pair the object holds how many of the m reports are ones, and the noise of the reports.
    Queries have two forms. The calibrated form (the default) is unbiased for any number of holders
    of each edge. The raw form (``raw=True``) counts on the union of the reports, as the paper's
    Algorithm 1 prints it. The union gathers the noise of all silos, so raw counts are far too large
    and have no standard error.

    Standard errors are roots of unbiased estimates of the variance (for 4-cycles very slightly too
    large), but never smaller than on a graph without edges. They are conservative if most pairs are
    edges and edges carry less noise than other pairs.

    Examples
    --------
    >>> graph = Silo.from_edges(NodeUniverse.range(4), np.array([[0, 1], [1, 2], [0, 2]]))
    >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
    >>> reports.triangles().value, reports.edges().value
    (1.0, 3.0)
    """

    counts: ReportCounts
    noise: BaselineNoise
    universe_digest: str
    provenance: Provenance
    #: The node list, if it is available.
    universe: NodeUniverse | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.counts.silos != self.noise.silos:
            raise ArgumentError(
                f"the noise is of {self.noise.silos} silos, but {self.counts.silos} reported"
            )

    @classmethod
    def draw(cls, silos: Sequence[Silo], channel: Channel, seed: int) -> "Reports":
        """Pass every silo's edges through a channel. **For experiments only.**

        This needs all edges in one place and is as predictable as its seed, so it protects nobody's
        edges. The draws are exact for every rational channel, and each silo has its own stream. The
        channel of the baseline at ε is that of ``BaselineNoise.choose(ε, m)``.

        Parameters
        ----------
        silos
            The silos, all over the same node list.
        channel
            The channel of every report.
        seed
            The seed of all draws.

        Returns
        -------
        Reports
            The simulated reports.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> Reports.draw([graph, graph], Channel(1, 0), seed=1).n
        4
        """
        noise = BaselineNoise(channel, len(silos))
        universe = silos[0].universe
        for silo in silos[1:]:
            if silo.universe.digest != universe.digest:
                raise UniverseError("the silos have different node lists")
        p11, p01 = limbs(channel.p11), limbs(channel.p01)
        drawn = (
            _core.draw_rows(
                len(universe), silo.pairs, p11, p01, seed_bytes(f"report/{number}", seed)
            )
            for number, silo in enumerate(silos)
        )
        return cls(
            ReportCounts.of([BitRows(rows) for rows in drawn]),
            noise,
            universe.digest,
            Provenance(method="baseline", protocol="clear", silos=len(silos)),
            universe,
        )

    @property
    def n(self) -> int:
        """The number of nodes."""
        return self.counts.n

    @property
    def views(self) -> tuple[View, ...]:
        """The privacy loss against each view of the run."""
        return self.noise.views

    @property
    def epsilon(self) -> float:
        """The certified epsilon against the worst of the views, which is the coordinator."""
        return max(view.epsilon for view in self.views)

    @property
    def union(self) -> BitRows:
        """The union of all reports, the paper's noisy global graph."""
        return self.counts.union

    @cached_property
    def weights(self) -> ReportWeights:
        """The weight of a pair with j ones, and its variance."""
        return ReportWeights(self.noise.channel, self.noise.silos)

    @cached_property
    def walks(self) -> ReportWalks:
        """The sums over walks that several queries share."""
        return ReportWalks(self.counts, self.weights)

    @property
    def origin(self) -> Origin:
        """What every answer states about its origin."""
        m = self.noise.silos
        losses = {t: self.noise.epsilon(m - t) for t in range(m)}
        stated = (self.provenance, self.views, losses, self.n, self.universe_digest)
        return Origin(*stated, release=self, universe=self.universe)

    # -- queries ---------------------------------------------------------------------------

    def edges(self, *, raw: bool = False) -> Estimate[float]:
        """The number of edges.

        Parameters
        ----------
        raw
            Count on the union of the noisy reports instead.

        Returns
        -------
        Estimate
            The count; unbiased unless raw.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
        >>> reports.edges().value
        3.0
        """
        if raw:
            return self._raw("edges", self.union.edges)
        totals = self.counts.totals.tolist()
        value, variance = (
            sum((c * x for c, x in zip(totals, table, strict=True)), Fraction(0))
            for table in (self.weights.weights, self.weights.spreads)
        )
        pairs, possible = sum(totals), self.weights.variances
        variance = min(max(variance, pairs * min(possible)), pairs * max(possible))
        more: dict[str, Any] = {}
        if pairs <= MANY_PAIRS:

            def limits(level: float) -> tuple[float, float]:
                low, high = self._limits(self.counts.totals[None, :], level)
                return float(low[0]), float(high[0])

            more = {"ends": limits(0.95), "limits": limits}
        return self._estimate("edges", value, square_root(variance), **more)

    def degrees(self, *, raw: bool = False) -> "Estimate[FloatArray]":
        """The degree of every node, in the order of the universe.

        Parameters
        ----------
        raw
            Count on the union of the noisy reports instead.

        Returns
        -------
        Estimate
            The degrees; unbiased unless raw. Their intervals are of whole numbers, and hold however
            few reports are wrong.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
        >>> reports.degrees().value.tolist()
        [2.0, 2.0, 2.0, 0.0]
        """
        if raw:
            value = self.union.degrees.astype(np.float64)
            nothing = np.full(self.n, math.nan)
            return Estimate("degrees", value, nothing, **self._cost(), note=RAW_NOTE)
        profiles = self.counts.profiles
        value, variance = (
            profiles @ np.array([float(x) for x in table])
            for table in (self.weights.weights, self.weights.spreads)
        )
        possible = [float((self.n - 1) * v) for v in self.weights.variances]
        stderr = np.sqrt(np.clip(variance, min(possible), max(possible)))
        limits = partial(self._limits, profiles)
        ends = limits(0.95)
        return Estimate("degrees", value, stderr, ends=ends, limits=limits, **self._cost())

    def kstars(self, k: int, *, raw: bool = False) -> Estimate[float]:
        """The number of k-stars, Σ C(d, k).

        Parameters
        ----------
        k
            The number of leaves, at least 1.
        raw
            Count on the union of the noisy reports instead.

        Returns
        -------
        Estimate
            The count; unbiased unless raw.

        Raises
        ------
        ArgumentError
            If k is out of range.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
        >>> reports.kstars(2).value
        3.0
        """
        if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 1 <= k < self.n:
            raise ArgumentError(f"k must be an integer from 1 to {self.n - 1}, not {k!r}")
        k = int(k)
        more: dict[str, Any] = {"parameters": {"k": k}}
        try:
            if raw:
                stars = sum(math.comb(d, k) for d in self.union.degrees.tolist())
                return self._raw("kstars", stars, **more)
            value, variance = kstars(self.counts, self.weights, k)
            stderr = square_root(max(variance, kstars_floor(self.n, self.weights, k)))
            up = self._upwards(stderr, kstars_even(self.n, self._even, k, self._density))
            more |= uneven(float(value), stderr, stderr, up)
            if k > 2:
                more |= {"ends": self._stars_ends(k, float(value), stderr, up)}
            return self._estimate("kstars", value, stderr, **more)
        except OverflowError:
            raise ArgumentError(f"k = {k}: the number of stars exceeds a float's range") from None

    def triangles(self, *, raw: bool = False) -> Estimate[float]:
        """The number of triangles.

        Parameters
        ----------
        raw
            Count on the union of the noisy reports instead.

        Returns
        -------
        Estimate
            The count; unbiased unless raw.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
        >>> reports.triangles().value, reports.triangles(raw=True).value
        (1.0, 1.0)
        """
        if raw:
            return self._raw("triangles", self.union.triangles)
        value, stderr = self.walks.triangles, self.walks.triangles_stderr()
        up = self._upwards(stderr, triangles_even(self.n, self._even, self._density))
        return self._estimate("triangles", value, stderr, **uneven(value, stderr, stderr, up))

    def four_cycles(self, *, raw: bool = False) -> Estimate[float]:
        """The number of 4-cycles.

        Parameters
        ----------
        raw
            Count on the union of the noisy reports instead.

        Returns
        -------
        Estimate
            The count; unbiased unless raw.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
        >>> reports.four_cycles().value
        0.0
        """
        if raw:
            return self._raw("four_cycles", self.union.four_cycles)
        value, stderr = self.walks.four_cycles, self.walks.four_cycles_stderr()
        up = self._upwards(stderr, four_cycles_even(self.n, self._even, self._density))
        return self._estimate("four_cycles", value, stderr, **uneven(value, stderr, stderr, up))

    def clustering(self, *, raw: bool = False) -> Estimate[float]:
        """The global clustering coefficient, 3·triangles/2-stars.

        It is useful only if the error of the 2-stars is small compared to their number.

        Parameters
        ----------
        raw
            Count on the union of the noisy reports instead.

        Returns
        -------
        Estimate
            The coefficient, cut to [0, 1]; consistent but not unbiased, and neither if raw. Its
            interval is [0, 1] if the noise leaves everything possible.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
        >>> reports.clustering().value
        1.0
        """
        if raw:
            wedges = self.union.wedges
            ratio = 3 * self.union.triangles / wedges if wedges else math.nan
            return self._raw("clustering", ratio)
        value, stderr = self.walks.clustering(self._wedges)
        floor = kstars_floor(self.n, self.weights, 2)
        value, said = said_share(value, self.walks.clustering_ends(self._wedges, float(floor)))
        return self._estimate("clustering", value, stderr, **said)

    def _limits(self, profiles: NDArray[np.int64], level: float) -> tuple[FloatArray, FloatArray]:
        weights = tuple(float(w) for w in self.weights.weights)
        return report_limits(profiles, weights, self.noise.channel, level)

    @cached_property
    def _density(self) -> float:
        """The upper 95 % limit of the share of pairs that are edges."""
        pairs = math.comb(self.n, 2)
        return min(max(self.edges().interval[1] / pairs, 0.0), 1.0) if pairs else 0.0

    @property
    def _even(self) -> Weights:
        """Pairs whose variances are those of no holder, and of the holders with the most noise."""
        nobody, *others = self.weights.variances
        return Weights(Fraction(1), Fraction(0), nobody, max(others))

    def _upwards(self, stderr: float, even: float) -> float:
        """A standard error upwards: at least that of an evenly spread graph, as on a release."""
        return max(stderr, math.sqrt(even))

    def _stars_ends(self, k: int, value: float, stderr: float, up: float) -> tuple[float, float]:
        """The interval of k-stars, which reaches further up than down and is possible."""
        _, highest = self.degrees().interval
        tops = highest.astype(np.int64).tolist()
        above = max(Z95 * up, kstars_above(self.counts, self.weights, k, tops))
        most = float(self.n * math.comb(self.n - 1, k))
        low, high = (min(max(end, 0.0), most) for end in (value - Z95 * stderr, value + above))
        return low, high

    @cached_property
    def _wedges(self) -> float:
        return float(kstars_value(self.counts, self.weights, 2)) if self.n > 2 else 0.0

    def _estimate(self, query: str, value: Any, stderr: float, **more: Any) -> Estimate[float]:
        return Estimate(query, float(value), stderr, **self._cost(), **more)

    def _raw(self, query: str, value: float, **more: Any) -> Estimate[float]:
        return self._estimate(query, value, math.nan, note=RAW_NOTE, **more)

    def _cost(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "method": self.provenance.method,
            "origin": self.origin,
        }

    def _repr_html_(self) -> str:
        """Show the reports in notebooks."""
        rows = {
            "nodes": f"{self.n:,}, list {self.universe_digest[:16]}…",
            "silos": f"{self.noise.silos}, each with a noisy report of its own",
            "cost": f"ε = {shown_loss(self.epsilon)}, paid; every question on them is free",
        }
        caption = f"{self.noise.silos} reports of {self.n:,} nodes"
        return definitions(caption, rows, views_table(self.views))

    def __str__(self) -> str:
        lines = [
            f"{self.noise.silos} reports of {self.n:,} nodes, "
            f"universe {self.universe_digest[:16]}…",
            f"  each through {self.noise.channel}",
            *(f"  {view}" for view in self.views),
        ]
        return "\n".join(lines)
