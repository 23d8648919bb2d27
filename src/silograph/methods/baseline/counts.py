"""How many silos reported each pair: the counts, their unbiased weights, and k-stars from them."""

import math
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from silograph.dp.channel import Channel
from silograph.errors import ArgumentError
from silograph.estimators.estimate import FloatArray
from silograph.estimators.stars import far_above
from silograph.graph.bits import BitRows

__all__ = [
    "BLOCK_ROWS",
    "ReportCounts",
    "ReportWeights",
    "kstars",
    "kstars_above",
    "kstars_floor",
    "kstars_value",
]

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
        found = np.empty((self.n, self.silos + 1), dtype=np.int64)
        for start in range(0, self.n, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            for ones in range(self.silos + 1):
                found[block, ones] = np.count_nonzero(self._matrix[block] == ones, axis=1)
        return found

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
