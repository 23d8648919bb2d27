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
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from silograph.dp.channel import Channel, Weights
from silograph.estimators.inversion import degree_limits
from silograph.graph.bits import BitRows

__all__ = [
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
    "symmetric_polynomials",
]


def symmetric_polynomials(weights: Weights, ones: int, zeros: int, top: int) -> list[Fraction]:
    """e_0 … e_top of a row with these numbers of noisy ones and zeros.

    >>> from silograph.dp.channel import Channel
    >>> [str(e) for e in symmetric_polynomials(Channel(1, 0).weights, 3, 4, 3)]
    ['1', '3', '3', '1']
    """
    # Use integers over the common denominator: fractions would be reduced at every step.
    den = math.lcm(weights.alpha.denominator, weights.beta.denominator)
    one, zero = int(weights.alpha * den), int(weights.beta * den)
    from_ones = [math.comb(ones, j) * one**j for j in range(top + 1)]
    from_zeros = [math.comb(zeros, j) * zero**j for j in range(top + 1)]
    return [
        Fraction(sum(from_ones[j] * from_zeros[k - j] for j in range(k + 1)), den**k)
        for k in range(top + 1)
    ]


def kstars_value(noisy: BitRows, channel: Channel, k: int) -> Fraction:
    """Σ_u e_k of the unbiased bits of row u."""
    return sum(
        (
            count * symmetric_polynomials(channel.weights, c, noisy.n - 1 - c, k)[k]
            for c, count in _distinct(noisy).items()
        ),
        Fraction(0),
    )


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
    rows = Fraction(0)
    apart, joined = {}, {}
    for c, count in _distinct(noisy).items():
        zeros = n - 1 - c
        polynomials = symmetric_polynomials(w, c, zeros, len(newton) - 1)
        rows += count * sum(a * b for a, b in zip(newton, polynomials, strict=True))
        # What a pair would add at its end, from the row without the pair itself.
        apart[c] = symmetric_polynomials(w, c, zeros - 1, k - 1)[k - 1] if zeros else Fraction(0)
        joined[c] = symmetric_polynomials(w, c - 1, zeros, k - 1)[k - 1] if c else Fraction(0)
    # Divide by the largest value, so that a large k cannot overflow a float.
    scale = max(abs(p) for p in (*apart.values(), *joined.values())) or Fraction(1)
    f0 = np.array([float(apart[c] / scale) for c in noisy.degrees.tolist()])
    f1 = np.array([float(joined[c] / scale) for c in noisy.degrees.tolist()])
    edges = noisy.edge_products(f1)
    others = (f0.sum() ** 2 - f0 @ f0) / 2 - noisy.edge_products(f0)
    shared = 2 * (float(w.spread(1)) * edges + float(w.spread(0)) * float(others))
    return rows + Fraction(shared) * scale**2


def kstars_edges_covariance(noisy: BitRows, channel: Channel, k: int) -> Fraction:
    """The unbiased estimate of the covariance of the numbers of k-stars and of edges:
    Σ v(uv)·[C(d_u, k−1) + C(d_v, k−1)] over pairs, without the pair itself."""
    w, total = channel.weights, Fraction(0)
    for ones, count in _distinct(noisy).items():
        zeros = noisy.n - 1 - ones
        if ones:
            more = symmetric_polynomials(w, ones - 1, zeros, k - 1)[k - 1]
            total += count * ones * w.spread(1) * more
        if zeros:
            more = symmetric_polynomials(w, ones, zeros - 1, k - 1)[k - 1]
            total += count * zeros * w.spread(0) * more
    return total


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


def far_above(distances: Sequence[Fraction]) -> float:
    """How far a sum over all nodes can be above its estimate, from how far the part of each node
    can. Two nodes share one of their n − 1 pairs."""
    scale = max(distances, default=Fraction(0)) or Fraction(1)
    each = np.array([float(distance / scale) for distance in distances])
    own, together = float(each @ each), float(each.sum()) ** 2
    return float(scale) * math.sqrt(own + (together - own) / max(len(each) - 1, 1))


def kstars_ends(
    noisy: BitRows,
    channel: Channel,
    k: int,
    value: float,
    stderr: float,
    upwards: float,
    level: float = 0.95,
) -> tuple[float, float]:
    """The interval of the number of k-stars, from its value and its standard errors downwards and
    upwards."""
    n, most = noisy.n, noisy.n * math.comb(noisy.n - 1, k)
    _, limits = degree_limits(noisy, channel, level)
    z = NormalDist().inv_cdf((1 + level) / 2)
    distances = [Fraction(0)] * n
    for c, top in set(zip(noisy.degrees.tolist(), limits.tolist(), strict=True)):
        here = symmetric_polynomials(channel.weights, c, n - 1 - c, k)[k]
        distances[c] = max(math.comb(top, k) - max(here, Fraction(0)), Fraction(0))
    above = far_above([distances[c] for c in noisy.degrees.tolist()])
    low, high = value - z * stderr, value + max(z * upwards, above)
    return min(max(low, 0.0), float(most)), min(max(high, 0.0), float(most))


def _distinct(graph: BitRows) -> Counter[int]:
    """How many nodes have each degree."""
    return Counter(graph.degrees.tolist())


@lru_cache(maxsize=4096)
def _row_variance(n: int, d: int, k: int, w: Weights) -> Fraction:
    """The variance of e_k of a row with d edges: each set of i edges and j other pairs counts with
    the square of the number of stars that they would complete."""
    others = n - 1 - d
    return sum(
        (
            math.comb(d, i) * math.comb(others, j) * w.v1**i * w.v0**j
            * math.comb(d - i, k - i - j) ** 2
            for i in range(min(k, d) + 1)
            for j in range(min(k - i, others) + 1)
            if i + j
        ),
        Fraction(0),
    )  # fmt: skip


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
