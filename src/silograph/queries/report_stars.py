"""k-stars from all reports, for any k ≥ 1.

Model
    Σ over nodes u of e_k(w(u,·)), the elementary symmetric polynomial of the row of unbiased
    weights: the coefficient of z^k in Π_j (1 + w_j·z)^(c_j), with c_j pairs of j ones in the row.
Bias
    None, exactly, for every number of holders.
Variance
    Rows u and v share only the pair itself, so it is Σ_u Var(e_k(u)) + 2·Σ_{u<v} Var(w)·P(u∖v)·
    P(v∖u), where P(u∖v) counts what the pair would add at u. The estimate is unbiased: a row has
    e_k² − Σ_l C(l,k)·C(k,l−k)·e_l, since C(d,k)² = Σ_l C(l,k)·C(k,l−k)·C(d,l); a pair has
    (w²−w)·e_(k−1)(u∖v)·e_(k−1)(v∖u).
Cost
    Big integers per distinct row (the terms are far larger than their sum, so floats would not
    do): of the order of m·k² products of k·m·64 bits each. A tenth of a millisecond a row at
    k = 2, m = 4.
"""

import math
from collections import Counter
from fractions import Fraction

import numpy as np

from silograph.queries.report_counts import ReportCounts, ReportWeights

__all__ = ["kstars", "kstars_floor"]

Row = tuple[int, ...]


def kstars(counts: ReportCounts, weights: ReportWeights, k: int) -> tuple[Fraction, Fraction]:
    """The unbiased number of k-stars and the unbiased estimate of its variance."""
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
    # Divided by a power of two of their size, so that large k cannot overflow a float.
    largest = max((abs(p) for found in without.values() for p in found), default=0)
    scale = 1 << largest.bit_length()
    small = {row: [p / scale for p in found] for row, found in without.items()}
    f = np.array([small[row] for row in rows]).reshape(counts.n, -1)
    shared = sum(float(s) * counts.class_product(j, f[:, j]) for j, s in enumerate(weights.spreads))
    rest = 2 * Fraction(shared) * Fraction(scale, den ** (k - 1)) ** 2
    return Fraction(value, den**k), Fraction(own, den ** (2 * k)) + rest


def kstars_floor(n: int, weights: ReportWeights, k: int) -> Fraction:
    """The variance on a graph without edges."""
    nobody = weights.variance(0)
    rows = n * math.comb(n - 1, k) * nobody**k
    return rows + nobody * n * (n - 1) if k == 1 else rows


class _Polynomials:
    """Elementary symmetric polynomials of rows, as integers: e_i is the i-th over den^i."""

    def __init__(self, weights: ReportWeights, top: int) -> None:
        self.den = math.lcm(*(w.denominator for w in weights.weights))
        self.integers = [int(w * self.den) for w in weights.weights]
        self.powers = [[w**i for i in range(top + 1)] for w in self.integers]
        self.top = top

    def of(self, row: Row) -> list[int]:
        """e_0 … e_top of a row with row[j] pairs of j ones."""
        product = [1] + [0] * self.top
        for count, powers in zip(row, self.powers, strict=True):
            factor = [math.comb(count, i) * power for i, power in enumerate(powers)]
            reach = min(count, self.top) + 1
            product = [
                sum(factor[i] * product[k - i] for i in range(min(reach, k + 1)))
                for k in range(self.top + 1)
            ]
        return product

    def without_one(self, e: list[int], k: int) -> list[int]:
        """e_k of the row less one pair, for each class that the pair may be of."""
        found = []
        for w in self.integers:
            less = 1
            for i in range(1, k + 1):
                less = e[i] - w * less
            found.append(less)
        return found
