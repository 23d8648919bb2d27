"""The estimator of k-stars, for any k ≥ 1.

A k-star is a centre and k of its neighbours (a 1-star is an edge and one of its ends).

Model
    Σ over nodes u of e_k(a(u,·)), the elementary symmetric polynomial of the row of unbiased
    bits. With c ones and z = n−1−c zeros in a noisy row, e_k = Σ_j C(c,j)·C(z,k−j)·α^j·β^(k−j).
Bias
    None, exactly. The paper's C(d̃,k) of the unbiased degree d̃ is biased, since it is convex.
Variance
    Σ_u R(d_u) + 2·Σ_{u<v} v(uv)·P(u∖v)·P(v∖u), where R(d) is the variance of e_k of a row with d
    edges, and P(u∖v) = C(d_u − x_uv, k−1) counts what the pair would add at u. Both parts have
    unbiased estimates from the noisy graph: a polynomial Σ_l Δ^l·C(d,l) of a degree has the
    estimate Σ_l Δ^l·e_l, and the rows of u and v share only the pair itself.
Interval
    C(d,k) is convex in d. A hub that looks small by chance therefore has a small count *and* a
    small standard error, and the more so the larger k is: a normal interval ends too early above
    (never below). From k = 3 on the upper end is at least as far away as the upper limits of the
    degrees say: their distances h(u) − e_k(u) are added up as correlated errors, in which two rows
    share one of their n − 1 pairs. For one hub this is the exact limit of its degree; for many
    equal nodes it is wider than needed. Both ends are cut to what is possible.
Cost
    One pass over the bits, and big-integer arithmetic per distinct noisy degree.
Reference
    G. Y. Zou, A. Donner, Construction of confidence limits about effect measures: a general
    approach, Statistics in Medicine 27 (2008): limits of a sum from limits of its parts.
"""

import itertools
import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from silograph.dp.channel import Channel, Weights
from silograph.estimators.inversion import degree_limits
from silograph.graph.bits import BitRows

__all__ = [
    "RowStars",
    "binomial_sums",
    "far_above",
    "kstars_edges_covariance",
    "kstars_ends",
    "kstars_even",
    "kstars_floor",
    "kstars_noise",
    "kstars_stderr",
    "kstars_value",
    "kstars_variance",
    "kstars_variance_estimate",
    "newton_differences",
    "square_root",
]


class RowStars:
    """e_k of a row of so many noisy bits, as a polynomial in its number c of ones.

    Since a(y) = β + γy, a set of k bits counts β^(k−j)·γ^j for every j ones in it that are chosen:
    e_k = Σ_j C(c,j)·C(bits−j,k−j)·γ^j·β^(k−j). So a sum over rows needs nothing but the sums of
    C(c,j). Everything is an integer over one denominator: fractions would be reduced at every step.

    >>> from silograph.dp.channel import Channel
    >>> [str(RowStars(Channel(1, 0).weights, 7, k).at(3)) for k in range(4)]
    ['1', '3', '3', '1']
    """

    def __init__(self, w: Weights, bits: int, k: int) -> None:
        den = math.lcm(w.alpha.denominator, w.beta.denominator)
        beta, gamma = int(w.beta * den), int(w.gamma * den)
        #: What e_k is a multiple of.
        self.unit = Fraction(1, den**k)
        self._parts = [
            math.comb(bits - j, k - j) * gamma**j * beta ** (k - j) for j in range(min(k, bits) + 1)
        ]

    def units(self, ones: int) -> int:
        """e_k of a row with so many ones, in units."""
        return sum(math.comb(ones, j) * part for j, part in enumerate(self._parts))

    def at(self, ones: int) -> Fraction:
        """e_k of a row with so many ones."""
        return self.units(ones) * self.unit

    def total(self, sums: Sequence[int]) -> Fraction:
        """The sum of e_k over rows, from their :func:`binomial_sums`."""
        units: int = sum(map(operator.mul, self._parts, sums))
        return units * self.unit


def binomial_sums(rows: Counter[int], top: int) -> list[int]:
    """The sums of C(c,0) … C(c,top) over rows, of which so many have each number c of ones."""
    return [sum(count * math.comb(ones, j) for ones, count in rows.items()) for j in range(top + 1)]


def kstars_value(noisy: BitRows, channel: Channel, k: int) -> Fraction:
    """Σ_u e_k of the unbiased bits of row u."""
    sums = binomial_sums(_distinct(noisy), k)
    return RowStars(channel.weights, noisy.n - 1, k).total(sums)


def kstars_variance(truth: BitRows, channel: Channel, k: int) -> Fraction:
    """The variance of :func:`kstars_value` over the noise, for a known graph."""
    apart = [math.comb(int(d), k - 1) for d in truth.degrees]
    joined = [math.comb(int(d) - 1, k - 1) if d else 0 for d in truth.degrees]
    pairs = truth.pairs().tolist()
    on_edges = (
        sum(joined[u] * joined[v] for u, v in pairs),
        sum(apart[u] * apart[v] for u, v in pairs),
    )
    return kstars_noise(channel.weights, truth.n, _distinct(truth), k, *on_edges)


def kstars_noise(
    w: Weights, n: int, degrees: Counter[int], k: int, joined: float, apart: float
) -> Fraction:
    """The same variance from the number of nodes of each degree, and the sums
    Σ C(d(u)−1,k−1)·C(d(v)−1,k−1) and Σ C(d(u),k−1)·C(d(v),k−1) over the edges."""
    rows = sum((count * _row_variance(n, d, k, w) for d, count in degrees.items()), Fraction(0))
    added = {d: math.comb(d, k - 1) for d in degrees}
    total = sum(count * added[d] for d, count in degrees.items())
    squares = sum(count * added[d] ** 2 for d, count in degrees.items())
    others = Fraction(total**2 - squares, 2) - Fraction(apart)
    shared: Fraction = w.v1 * Fraction(joined) + w.v0 * others
    return rows + 2 * shared


def kstars_variance_estimate(noisy: BitRows, channel: Channel, k: int) -> Fraction:
    """The unbiased estimate of :func:`kstars_variance` from the noisy graph."""
    n, w = noisy.n, channel.weights
    newton = newton_differences([_row_variance(n, d, k, w) for d in range(min(2 * k, n))])
    sums = binomial_sums(_distinct(noisy), len(newton) - 1)
    own = sum(
        (each * RowStars(w, n - 1, order).total(sums) for order, each in enumerate(newton)),
        Fraction(0),
    )
    # What a pair would add at its end, from the row without the pair itself.
    added = RowStars(w, n - 2, k - 1)
    seen, places = np.unique(noisy.degrees, return_inverse=True)
    apart = [added.units(c) if c < n - 1 else 0 for c in seen.tolist()]
    joined = [added.units(c - 1) if c else 0 for c in seen.tolist()]
    # Divide by the largest value, so that a large k cannot overflow a float.
    scale = max(map(abs, (*apart, *joined))) or 1
    f0, f1 = (np.array([p / scale for p in found])[places] for found in (apart, joined))
    edges = noisy.edge_products(f1)
    others = (f0.sum() ** 2 - f0 @ f0) / 2 - noisy.edge_products(f0)
    shared = 2 * (float(w.spread(1)) * edges + float(w.spread(0)) * float(others))
    return own + Fraction(shared) * (scale * added.unit) ** 2


def kstars_edges_covariance(noisy: BitRows, channel: Channel, k: int) -> Fraction:
    """The unbiased estimate of the covariance of the numbers of k-stars and of edges:
    Σ v(uv)·[C(d_u, k−1) + C(d_v, k−1)] over pairs, without the pair itself."""
    w, rows, most = channel.weights, _distinct(noisy), noisy.n - 1
    added = RowStars(w, most - 1, k - 1)
    on_ones = sum(count * c * added.units(c - 1) for c, count in rows.items() if c)
    on_zeros = sum(count * (most - c) * added.units(c) for c, count in rows.items() if c < most)
    return (on_ones * w.spread(1) + on_zeros * w.spread(0)) * added.unit


def kstars_stderr(noisy: BitRows, channel: Channel, k: int) -> float:
    """The root of the estimated variance, but at least that of a graph without edges."""
    empty = kstars_floor(noisy.n, channel.weights, k)
    return square_root(max(kstars_variance_estimate(noisy, channel, k), empty))


def kstars_floor(n: int, w: Weights, k: int) -> Fraction:
    """The variance of the number of k-stars on a graph without edges."""
    return n * _row_variance(n, 0, k, w) + (w.v0 * n * (n - 1) if k == 1 else 0)


def kstars_even(n: int, w: Weights, k: int, p: float) -> float:
    """The variance on a graph in which every node has the share p of all neighbours."""
    degree = math.ceil(p * (n - 1))
    edges = n * degree / 2
    joined = edges * math.comb(max(degree - 1, 0), k - 1) ** 2
    apart = edges * math.comb(degree, k - 1) ** 2
    return float(kstars_noise(w, n, Counter({degree: n}), k, joined, apart))


def far_above(distances: Sequence[int], unit: Fraction) -> float:
    """How far a sum over all nodes can be above its estimate, from how far the part of each node
    can, in units. Two nodes share one of their n − 1 pairs."""
    scale = max(distances, default=0) or 1
    each = np.array([distance / scale for distance in distances])
    own, together = float(each @ each), float(each.sum()) ** 2
    return float(scale * unit) * math.sqrt(own + (together - own) / max(len(each) - 1, 1))


def kstars_ends(
    noisy: BitRows,
    channel: Channel,
    k: int,
    value: float,
    limits: Callable[[float], tuple[float, float]],
    level: float = 0.95,
) -> tuple[float, float]:
    """The interval of the number of k-stars, from its value and the limits by its standard error:
    it reaches as far up as the degrees can."""
    n, most = noisy.n, noisy.n * math.comb(noisy.n - 1, k)
    _, highest = degree_limits(noisy, channel, level)
    row = RowStars(channel.weights, n - 1, k)
    distances = {
        c: max(math.comb(top, k) * row.unit.denominator - max(row.units(c), 0), 0)
        for c, top in set(zip(noisy.degrees.tolist(), highest.tolist(), strict=True))
    }
    above = far_above([distances[c] for c in noisy.degrees.tolist()], row.unit)
    low, high = limits(level)
    high = max(high, value + above)
    return min(max(low, 0.0), float(most)), min(max(high, 0.0), float(most))


def _distinct(graph: BitRows) -> Counter[int]:
    """How many nodes have each degree."""
    return Counter(graph.degrees.tolist())


@lru_cache(maxsize=4096)
def _row_variance(n: int, d: int, k: int, w: Weights) -> Fraction:
    """The variance of e_k of a row with d edges: each set of i edges and j other pairs counts with
    the square of the number of stars that they would complete."""
    others = n - 1 - d
    den = math.lcm(w.v0.denominator, w.v1.denominator)
    v0, v1 = int(w.v0 * den), int(w.v1 * den)
    total = sum(
        math.comb(d, i) * math.comb(others, j) * v1**i * v0**j * den ** (k - i - j)
        * math.comb(d - i, k - i - j) ** 2
        for i in range(min(k, d) + 1)
        for j in range(min(k - i, others) + 1)
        if i + j
    )  # fmt: skip
    return Fraction(total, den**k)


def newton_differences(values: list[Fraction]) -> list[Fraction]:
    """The differences Δ^l at 0: values[d] = Σ_l Δ^l·C(d,l)."""
    differences, row = [], values
    while row:
        differences.append(row[0])
        row = [b - a for a, b in itertools.pairwise(row)]
    return differences


def square_root(x: Fraction) -> float:
    """The square root, also of fractions far beyond a float's range."""
    shift = max(0, (x.numerator.bit_length() - x.denominator.bit_length()) // 2 - 100)
    return math.ldexp(math.sqrt(x / 4**shift), shift)
