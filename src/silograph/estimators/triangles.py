"""The estimators of triangles, of triangles at each node, and of the clustering coefficient.

Model
    Σ over triples of the product of a(y) over the three pairs (the paper's Proposition 2, for any
    channel). Only the numbers of noisy triangles, wedges and edges are needed.
Bias
    None, exactly. The clustering coefficient is a ratio of two unbiased counts, so it is only
    consistent.
Variance
    Σ_pairs v(e)·c(e)² + Σ_wedges v·v·x(third) + Σ_triples v·v·v, where c is the number of common
    neighbours. The first sum is estimated by Σ v̂·ĉ², which counts the second sum twice and the
    third three times. Both have unbiased estimates, so the excess is subtracted.
Interval
    For the clustering coefficient, Fieller's: a ratio R is in it if 3·T̂ − R·Ŝ2 is within 1.96 of
    its own standard errors. It is cut to [0, 1].
Cost
    Value: popcounts at the noisy edges. Standard error: popcounts at all pairs (a sample of rows
    on large graphs).
Reference
    J. Imola, T. Murakami, K. Chaudhuri, Locally differentially private analysis of graph
    statistics, USENIX Security 2021 (the empirical estimation that Proposition 2 builds on).
"""

import math
from fractions import Fraction

import numpy as np

from silograph.dp.channel import Channel, Weights
from silograph.estimators.degrees import edges_value
from silograph.estimators.estimate import FloatArray
from silograph.estimators.few_wrong import ratio_jumps, wrong_bits
from silograph.estimators.pair_sums import ExactSums, GraphSums
from silograph.estimators.ratio import RatioAnswer
from silograph.estimators.stars import kstars_floor, kstars_value

__all__ = [
    "Corners",
    "clustering_ends",
    "clustering_noise",
    "clustering_stderr",
    "clustering_value",
    "counts_of",
    "node_triangle_stderrs",
    "node_triangle_values",
    "node_triangle_variance_estimates",
    "perfect",
    "ratio_variance_estimate",
    "triangles_even",
    "triangles_noise",
    "triangles_stderr",
    "triangles_value",
    "triangles_variance",
    "triangles_variance_estimate",
    "triple_part",
    "wedge_part",
]


def triangles_value(noisy: GraphSums, channel: Channel) -> Fraction:
    """T̂ = α³t3 + α²β·t2 + αβ²·t1 + β³t0, where t_j is the number of triples with j noisy edges."""
    graph, a, b = noisy.graph, channel.alpha, channel.beta
    t3 = graph.triangles
    t2 = graph.wedges - 3 * t3
    t1 = graph.edges * (graph.n - 2) - 2 * t2 - 3 * t3
    t0 = math.comb(graph.n, 3) - t1 - t2 - t3
    return a**3 * t3 + a**2 * b * t2 + a * b**2 * t1 + b**3 * t0


def triangles_variance(truth: GraphSums, channel: Channel) -> Fraction:
    """The variance of :func:`triangles_value` over the noise, for a known graph."""
    graph = truth.graph
    counts = Fraction(graph.edges), Fraction(graph.wedges), Fraction(graph.triangles)
    return triangles_noise(channel.weights, graph.n, *truth.exact, *counts)


def triangles_noise(
    w: Weights,
    n: int,
    pairs: ExactSums,
    joined: ExactSums,
    edges: Fraction,
    wedges: Fraction,
    triangles: Fraction,
) -> Fraction:
    """The same variance from the sums of a graph, whether exact or estimated."""
    first = _squares(pairs, joined, perfect(w), Fraction(1), Fraction(0), Fraction(0))
    counts = edges, wedges, triangles
    return first + wedge_part(w, n, *counts) + triple_part(w, n, *counts)


def clustering_noise(
    w: Weights,
    n: int,
    pairs: ExactSums,
    joined: ExactSums,
    edges: Fraction,
    wedges: Fraction,
    triangles: Fraction,
) -> Fraction:
    """The variance of the linear part of :func:`clustering_value`, for a known graph."""
    ratio, counts = 3 * triangles / wedges, (edges, wedges, triangles)
    first = _squares(pairs, joined, perfect(w), Fraction(3), -ratio, Fraction(0))
    second, third = _ratio_parts(w, n, ratio, *counts)
    return (first + second + third) / wedges**2


def triangles_variance_estimate(noisy: GraphSums, channel: Channel) -> Fraction:
    """The unbiased estimate of :func:`triangles_variance` from the noisy graph."""
    w, n = channel.weights, noisy.graph.n
    counts = counts_of(noisy, channel)
    first = _squares(*noisy.sampled, w, w.gamma**2, w.beta * w.gamma, w.beta**2 * (n - 2))
    return first - wedge_part(w, n, *counts) - 2 * triple_part(w, n, *counts)


def triangles_stderr(noisy: GraphSums, channel: Channel) -> float:
    """The root of the estimated variance, but at least that of a graph without edges."""
    floor = channel.weights.v0**3 * math.comb(noisy.graph.n, 3)
    return math.sqrt(max(triangles_variance_estimate(noisy, channel), floor))


def clustering_value(noisy: GraphSums, channel: Channel) -> float:
    """3·T̂/Ŝ2; NaN if the noise leaves no 2-stars."""
    wedges = kstars_value(noisy.graph, channel, 2)
    return float(3 * triangles_value(noisy, channel) / wedges) if wedges > 0 else math.nan


def clustering_stderr(noisy: GraphSums, channel: Channel) -> float:
    """The standard error of the linear part of the ratio R: that of 3·T̂ − R·Ŝ2, over Ŝ2."""
    _, wedges, triangles = counts_of(noisy, channel)
    if wedges <= 0:
        return math.inf
    variance = ratio_variance_estimate(noisy, channel, 3 * triangles / wedges)
    return math.sqrt(max(variance, _ratio_floor(noisy, channel))) / float(wedges)


def clustering_ends(
    noisy: GraphSums, channel: Channel, level: float = 0.95
) -> tuple[float, float] | None:
    """Fieller's interval of the ratio, cut to [0, 1]; None if the release does not say anything."""
    _, wedges, triangles = counts_of(noisy, channel)
    # The variance of 3·T̂ − R·Ŝ2 is a square in R, so three ratios give all its parts.
    at = [ratio_variance_estimate(noisy, channel, Fraction(r)) for r in (-1, 0, 1)]
    floors = _ratio_floor(noisy, channel), kstars_floor(noisy.graph.n, channel.weights, 2)
    top, bottom = max(at[1], floors[0]), max((at[0] + at[2]) / 2 - at[1], floors[1])
    limit = math.sqrt(top * bottom)
    covariance = min(max(float(at[0] - at[2]) / 4, -limit), limit)
    if wedges <= 0:
        return None
    found = RatioAnswer(float(3 * triangles), float(wedges), float(top), float(bottom), covariance)
    ratio = min(max(found.value, 0.0), 1.0)
    wrong = wrong_bits(noisy.graph, channel, found.stderr * found.bottom, ratio_jumps(ratio))
    return found.stretched(wrong.stretch(level)).ends(0.0, 1.0, level)


def triangles_even(n: int, w: Weights, p: float) -> float:
    """The variance of triangles on a graph in which each pair is an edge with the probability p:
    the parts in which one to three pairs vary."""
    v, triples = float(w.v0) + float(w.delta) * p, math.comb(n, 3)
    return v * math.comb(n, 2) * ((n - 2) * p**2) ** 2 + v**2 * 3 * triples * p + v**3 * triples


def node_triangle_values(noisy: GraphSums, channel: Channel) -> FloatArray:
    """The number of triangles at each node: Σ_{v<w} a(uv)·a(uw)·a(vw)."""
    w = channel.weights
    alpha, beta = float(w.alpha), float(w.beta)
    return Corners(noisy).total((alpha**2, alpha * beta, beta**2), (beta, alpha))


def node_triangle_variance_estimates(
    noisy: GraphSums, channel: Channel, ratio: float | FloatArray = 0.0
) -> FloatArray:
    """Unbiased estimates of the variances of :func:`node_triangle_values`, or of the same less so
    many times the unbiased number of 2-stars at the node."""
    w, corners, n = channel.weights, Corners(noisy), noisy.graph.n
    alpha, beta, gamma = float(w.alpha), float(w.beta), float(w.gamma)
    on, off = float(w.spread(1)), float(w.spread(0))
    # A pair at u completes triangles with the common neighbours, and 2-stars with u's other edges.
    rest = gamma * noisy.graph.degrees + beta * (n - 2)
    shift: FloatArray = beta**2 * (n - 2) - ratio * rest.astype(np.float64)
    first = noisy.row_squares(gamma**2, beta * gamma, shift, on, off, more=ratio * gamma)
    first += corners.total((alpha**4, alpha**2 * beta**2, beta**4), (off, on))
    # Two of the three pairs vary, and the third must be an edge: the one opposite u (which a 2-star
    # does not need), or one at u.
    opposite = (beta * (1 - 2 * ratio) + ratio**2, alpha * (1 - 2 * ratio) + ratio**2)
    second = corners.total((on * on, on * off, off * off), opposite)
    second += corners.total((2 * on * alpha, on * beta + off * alpha, 2 * off * beta), (off, on))
    third = corners.total((on * on, on * off, off * off), (off, on))
    return first - second - 2 * third


def node_triangle_stderrs(noisy: GraphSums, channel: Channel) -> FloatArray:
    """The roots of the estimated variances, but at least those of a graph without edges."""
    floor = float(channel.weights.v0) ** 3 * math.comb(noisy.graph.n - 1, 2)
    return np.sqrt(np.maximum(node_triangle_variance_estimates(noisy, channel), floor))


def perfect(w: Weights) -> Weights:
    """The weights of a channel that shows the truth but has the noise of another."""
    return Weights(Fraction(1), Fraction(0), w.v0, w.v1)


def counts_of(noisy: GraphSums, channel: Channel) -> tuple[Fraction, Fraction, Fraction]:
    """Unbiased numbers of edges, 2-stars and triangles."""
    graph = noisy.graph
    edges, wedges = edges_value(graph, channel), kstars_value(graph, channel, 2)
    return edges, wedges, triangles_value(noisy, channel)


def _squares(
    pairs: ExactSums, joined: ExactSums, w: Weights, p: Fraction, q: Fraction, r: Fraction
) -> Fraction:
    """Σ over pairs of (v0 + delta·a(y))·(p·c + q·s + r)²."""
    everywhere, edges = pairs.square(p, q, r), joined.square(p, q, r)
    return w.spread(0) * (everywhere - edges) + w.spread(1) * edges


def wedge_part(
    w: Weights, n: int, edges: Fraction, wedges: Fraction, triangles: Fraction
) -> Fraction:
    """Σ v(uv)·v(vw)·x(uw) over paths u-v-w, from counts of the true graph."""
    return w.v0**2 * (n - 2) * edges + 2 * w.v0 * w.delta * wedges + 3 * w.delta**2 * triangles


def triple_part(
    w: Weights, n: int, edges: Fraction, wedges: Fraction, triangles: Fraction
) -> Fraction:
    """Σ v(uv)·v(uw)·v(vw) over triples, from counts of the true graph."""
    v0, delta = w.v0, w.delta
    none, one = v0**3 * math.comb(n, 3), v0**2 * delta * (n - 2) * edges
    return none + one + v0 * delta**2 * wedges + delta**3 * triangles


def ratio_variance_estimate(noisy: GraphSums, channel: Channel, ratio: Fraction) -> Fraction:
    """The unbiased estimate of the variance of 3·T̂ − R·Ŝ2, for a given ratio."""
    w, n = channel.weights, noisy.graph.n
    # 3·ĉ − R·ŝ, where ŝ = γs + 2β(n−2) is the unbiased number of edges that meet the pair.
    first = _squares(
        *noisy.sampled,
        w,
        3 * w.gamma**2,
        3 * w.beta * w.gamma - ratio * w.gamma,
        3 * w.beta**2 * (n - 2) - 2 * ratio * w.beta * (n - 2),
    )
    second, third = _ratio_parts(w, n, ratio, *counts_of(noisy, channel))
    return first - second - 2 * third


def _ratio_floor(noisy: GraphSums, channel: Channel) -> Fraction:
    """The variance of 3·T̂ on a graph without edges."""
    return 9 * channel.weights.v0**3 * math.comb(noisy.graph.n, 3)


def _ratio_parts(
    w: Weights, n: int, ratio: Fraction, edges: Fraction, wedges: Fraction, triangles: Fraction
) -> tuple[Fraction, Fraction]:
    """The parts of the variance of 3·T̂ − R·Ŝ2 in which two or three pairs vary: Σ v·v·(3x − R)²
    over paths, and nine times Σ v·v·v over triples."""
    slots = 3 * w.v0**2 * math.comb(n, 3) + 2 * w.v0 * w.delta * (n - 2) * edges
    second = (9 - 6 * ratio) * wedge_part(w, n, edges, wedges, triangles)
    second += ratio**2 * (slots + w.delta**2 * wedges)
    return second, 9 * triple_part(w, n, edges, wedges, triangles)


class Corners:
    """For each node u, the triples {u, v, w}, by how many of uv and uw are noisy edges, and whether
    vw is one."""

    def __init__(self, noisy: GraphSums) -> None:
        graph, moments = noisy.graph, noisy.moments
        d = graph.degrees
        z = graph.n - 1 - d
        closed = moments[:, 3].astype(np.int64) // 2
        # Edges from a neighbour of u to a non-neighbour, and between non-neighbours.
        half = moments[:, 6].astype(np.int64) - d - 2 * closed
        outside = graph.edges - d - closed - half
        self.joined = tuple(x.astype(np.float64) for x in (closed, half, outside))
        counts = (d * (d - 1) // 2, d * z, z * (z - 1) // 2)
        self.counts = tuple(x.astype(np.float64) for x in counts)

    def total(
        self,
        at_u: tuple[float, float, float],
        opposite: tuple[float | FloatArray, float | FloatArray],
    ) -> FloatArray:
        """Σ over triples of a weight for the pairs at u (two, one or none noisy) times a weight for
        the opposite pair (noisy zero or noisy one)."""
        zero, one = opposite
        parts = zip(at_u, self.counts, self.joined, strict=True)
        sums = [at * (zero * (count - joined) + one * joined) for at, count, joined in parts]
        return sums[0] + sums[1] + sums[2]
