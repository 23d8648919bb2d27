"""The estimator of 4-cycles.

Model
    The sum over 4-cycles of the product of a(y) over the four pairs. A 4-cycle is a pair of
    opposite corners with two common neighbours, so Ĉ4 = ¼·Σ_{u<v} (ĉ² − q̂), where ĉ sums
    a(uw)·a(wv) over w and q̂ sums its square.
Bias
    None, exactly.
Variance
    The sum, over sets of one to four pairs, of the product of their variances and the square of the
    number of 4-cycles that they would complete. For one pair this number is the number of paths of
    length 3 between its ends. The noisy graph's own estimate of that sum, on all rows or a sample,
    counts sets of j pairs j times. The excess is a sum of motifs, so it has an unbiased estimate,
    which is subtracted. One of the motifs is the complete graph on four nodes. It is counted up to
    a thousand nodes and left out above, where it is below 1/n² of the whole; without it the
    variance is too large, never too small.
Cost
    Popcounts at all pairs; for the standard error, one product of some rows with the matrix, and
    on asymmetric channels the noisy graph's complete subgraphs on four nodes.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from silograph.dp.channel import Channel, Weights
from silograph.estimators.degrees import degree_values, edges_value
from silograph.estimators.estimate import FloatArray
from silograph.estimators.pair_sums import ExactSums, GraphSums, RowSample
from silograph.estimators.stars import kstars_value
from silograph.estimators.triangles import triangles_value
from silograph.graph.bits import BitRows

__all__ = [
    "CycleSums",
    "four_cycles_even",
    "four_cycles_noise",
    "four_cycles_stderr",
    "four_cycles_value",
    "four_cycles_variance",
    "four_cycles_variance_estimate",
]

# The number of rows for the standard error, and the number of rows that are unpacked at once.
_SAMPLED_ROWS = 256
_BLOCK_ROWS = 512
# Up to this many nodes the noisy graph's complete subgraphs on four nodes are counted.
_CLIQUES_COUNTED = 1024


def four_cycles_value(noisy: GraphSums, channel: Channel) -> Fraction:
    """¼·Σ_{u<v} (ĉ² − q̂)."""
    pairs, _ = noisy.exact
    return _two_paths(pairs, channel, noisy.graph.n) / 4


@dataclass(frozen=True)
class CycleSums:
    """The sums that the variance of 4-cycles needs besides the sums over pairs."""

    #: Σ over pairs of the squared number of paths of length 3 between their ends, over the edges
    #: and over all other pairs.
    on_edges: Fraction
    elsewhere: Fraction
    #: Σ c²s and Σ c³ over pairs.
    c2s: Fraction
    c3: Fraction
    #: The number of paths of three edges, and of complete subgraphs on four nodes.
    paths: Fraction
    cliques: Fraction

    @classmethod
    def of(cls, graph: BitRows) -> "CycleSums":
        """Compute the exact sums by dense linear algebra on n × n matrices, in blocks."""
        perfect = Weights(Fraction(1), Fraction(0), Fraction(0), Fraction(0))
        everyone = RowSample.by_size(graph.degrees, graph.n)
        on_edges, elsewhere = _path_squares(graph, perfect, everyone)
        paths = round(graph.edge_products((graph.degrees - 1).astype(np.float64)))
        c2s, c3 = _cubic_sums(graph)
        return cls(
            Fraction(_integer(on_edges)),
            Fraction(_integer(elsewhere)),
            Fraction(c2s),
            Fraction(c3),
            Fraction(paths - 3 * graph.triangles),
            Fraction(graph.four_cliques),
        )


def four_cycles_variance(truth: GraphSums, channel: Channel) -> Fraction:
    """The variance of :func:`four_cycles_value` over the noise, for a known graph."""
    graph = truth.graph
    counts = Fraction(graph.edges), Fraction(graph.wedges)
    return four_cycles_noise(channel.weights, graph.n, *truth.exact, *counts, CycleSums.of(graph))


def four_cycles_noise(
    w: Weights,
    n: int,
    pairs: ExactSums,
    joined: ExactSums,
    edges: Fraction,
    wedges: Fraction,
    sums: CycleSums,
) -> Fraction:
    """The same variance from the sums of a graph, whether exact or estimated."""
    first = w.v1 * sums.on_edges + w.v0 * sums.elsewhere
    cycles, paths = (pairs.cc - pairs.c) / 4, sums.paths
    apart = edges * (edges - 1) / 2 - wedges
    # Two pairs that meet at v: squares of the common neighbours of their other ends, without v.
    second = w.v0**2 * (n - 2) * pairs.cc + w.v0 * w.delta * sums.c2s + w.delta**2 * sums.c3
    second += w.v1**2 * (pairs.c - 2 * pairs.cc)
    chords = (joined.cc - joined.c) / 2
    second += _pairs_apart(w, apart, paths, cycles, chords, sums.cliques)
    partial = _partial_cycles(n, edges, wedges, apart, paths, cycles)
    return first + second + _three_pairs(w, partial) + _four_pairs(w, partial)


def four_cycles_variance_estimate(noisy: GraphSums, channel: Channel) -> Fraction:
    """The unbiased estimate of :func:`four_cycles_variance` from the noisy graph."""
    graph, w, n = noisy.graph, channel.weights, noisy.graph.n
    if n < 4:  # nothing would be left but rounding errors
        return Fraction(0)
    # Nodes with many common neighbours have many paths.
    gamma, beta = float(w.gamma), float(w.beta)
    sizes = noisy.row_squares(gamma**2, beta * gamma, beta**2 * (n - 2), 1.0, 1.0)
    sample = RowSample.by_size(sizes, _SAMPLED_ROWS)
    on_ones, on_zeros = _path_squares(graph, w, sample)
    first = w.spread(1) * Fraction(on_ones) + w.spread(0) * Fraction(on_zeros)
    edges, wedges = edges_value(graph, channel), kstars_value(graph, channel, 2)
    cycles = four_cycles_value(noisy, channel)
    squares = w.alpha**2 * graph.edges + w.beta**2 * (n * (n - 1) // 2 - graph.edges)
    apart = (edges**2 - squares) / 2 - wedges
    paths = _paths_value(noisy, channel)
    partial = _partial_cycles(n, edges, wedges, apart, paths, cycles)
    second = _pairs_apart(w, apart, paths, cycles, *_chords_and_cliques(noisy, channel))
    if w.delta:
        second += Fraction(_meeting_pairs(graph, w, sample))
    else:  # the same sum; with one variance everywhere no sample is needed
        second += w.v0**2 * ((n - 4) * (wedges + 4 * cycles) + wedges)
    return first - second - 2 * _three_pairs(w, partial) - 3 * _four_pairs(w, partial)


def four_cycles_stderr(noisy: GraphSums, channel: Channel) -> float:
    """The root of the estimated variance, but at least that of a graph without edges."""
    floor = 3 * channel.weights.v0**4 * math.comb(noisy.graph.n, 4)
    return math.sqrt(max(four_cycles_variance_estimate(noisy, channel), floor))


def four_cycles_even(n: int, w: Weights, p: float) -> float:
    """The variance, but for lesser terms, on a graph in which each pair is an edge with the
    probability p: the parts in which one to four pairs vary."""
    v, quads = float(w.v0) + float(w.delta) * p, math.comb(n, 4)
    one = math.comb(n, 2) * ((n - 2) * (n - 3) * p**3) ** 2
    two = 3 * math.comb(n, 3) * ((n - 3) * p**2) ** 2 + 3 * quads * (2 * p**2) ** 2
    return v * one + v**2 * two + v**3 * 12 * quads * p + v**4 * 3 * quads


def _pairs_apart(
    w: Weights,
    apart: Fraction,
    paths: Fraction,
    cycles: Fraction,
    chords: Fraction,
    cliques: Fraction,
) -> Fraction:
    """The part in which two disjoint pairs vary: they complete a cycle with two edges, or two
    cycles at once with all four of the other pairs. ``chords`` counts 4-cycles with a chord."""
    once = 2 * w.v0**2 * apart + w.v0 * w.delta * paths + 2 * w.delta**2 * cycles
    return once + 2 * (w.v0**2 * cycles + w.v0 * w.delta * chords + 3 * w.delta**2 * cliques)


def _partial_cycles(
    n: int, edges: Fraction, wedges: Fraction, apart: Fraction, paths: Fraction, cycles: Fraction
) -> list[Fraction]:
    """How often exactly j edges of the graph lie on a 4-cycle of the complete graph, j = 0 … 4."""
    return [
        Fraction(3 * math.comb(n, 4)),
        edges * (n - 2) * (n - 3),
        wedges * (n - 3) + 2 * apart,
        paths,
        cycles,
    ]


def _three_pairs(w: Weights, partial: list[Fraction]) -> Fraction:
    """The part in which three pairs vary and the fourth is any one of the j + 1 edges."""
    terms = (w.v0 ** (3 - j) * w.delta**j * (j + 1) * partial[j + 1] for j in range(4))
    return sum(terms, Fraction(0))


def _four_pairs(w: Weights, partial: list[Fraction]) -> Fraction:
    """The part in which all four pairs vary."""
    return sum((w.v0 ** (4 - j) * w.delta**j * partial[j] for j in range(5)), Fraction(0))


def _paths_value(noisy: GraphSums, channel: Channel) -> Fraction:
    """The unbiased number of paths of three edges: Σ a(uv)·(d̂u − a)·(d̂v − a) − 3·T̂."""
    graph = noisy.graph
    alpha, beta = float(channel.alpha), float(channel.beta)
    degrees = degree_values(graph, channel)
    ones, zeros = degrees - alpha, degrees - beta
    others = (zeros.sum() ** 2 - zeros @ zeros) / 2 - graph.edge_products(zeros)
    total = alpha * graph.edge_products(ones) + beta * others
    return Fraction(float(total)) - 3 * triangles_value(noisy, channel)


def _two_paths(sums: ExactSums, channel: Channel, n: int) -> Fraction:
    """Σ (ĉ² − q̂) over a set of pairs: the ordered choices of two different paths of length 2."""
    a, b = channel.alpha, channel.beta
    gamma, gamma2 = a - b, a**2 - b**2
    squares = sums.square(gamma**2, b * gamma, b**2 * (n - 2))
    return squares - sums.linear(gamma2**2, b**2 * gamma2, b**4 * (n - 2))


def _chords_and_cliques(noisy: GraphSums, channel: Channel) -> tuple[Fraction, Fraction]:
    """The unbiased numbers of 4-cycles with a chord and of complete subgraphs on four nodes.

    They are needed, and counted, only if v0 and v1 differ.
    """
    graph, n, w = noisy.graph, noisy.graph.n, channel.weights
    if not w.delta or n < 4:
        return Fraction(0), Fraction(0)
    pairs, joined = noisy.exact
    beta, gamma = w.beta, w.gamma
    everywhere, edges_only = (_two_paths(sums, channel, n) for sums in (pairs, joined))
    chords = (beta * everywhere + gamma * edges_only) / 2
    if n > _CLIQUES_COUNTED:
        return chords, Fraction(0)
    # Four nodes have weight Π (β + γy) over six pairs: the noisy graph's subgraphs by their edges.
    degrees, closed = graph.degrees, noisy.moments[:, 3].astype(np.int64) // 2
    edges, wedges, triangles = graph.edges, graph.wedges, graph.triangles
    stars = sum(math.comb(d, 3) for d in degrees.tolist())
    paths = round(graph.edge_products((degrees - 1).astype(np.float64))) - 3 * triangles
    tailed = int((closed * (degrees - 2)).sum())
    found = [
        Fraction(math.comb(n, 4)),
        Fraction(edges * math.comb(n - 2, 2)),
        Fraction(wedges * (n - 3) + math.comb(edges, 2) - wedges),
        Fraction(triangles * (n - 3) + stars + paths),
        (pairs.cc - pairs.c) / 4 + tailed,
        (joined.cc - joined.c) / 2,
        Fraction(graph.four_cliques),
    ]
    terms = (beta ** (6 - j) * gamma**j * count for j, count in enumerate(found))
    return chords, sum(terms, Fraction(0))


def _meeting_pairs(graph: BitRows, w: Weights, sample: RowSample) -> float:
    """The unbiased part in which two pairs vary that meet: Σ v(uz)·v(zw)·(common neighbours of u
    and w without z)².

    For a pair {u, w} the product of two variances and the product of two weights depend on z only
    through its two bits. So the sum over different z of one variance and one or two weights follows
    from sums over all z.
    """
    n, total = graph.n, 0.0
    # Of a path u-z-w with two, one or no noisy edges.
    weights = np.array([float(x) for x in (w.alpha**2, w.alpha * w.beta, w.beta**2)])
    on, off = w.spread(1), w.spread(0)
    spreads = np.array([float(x) for x in (on**2, on * off, off**2)])
    for start in range(0, len(sample.rows), _BLOCK_ROWS):
        rows = sample.rows[start : start + _BLOCK_ROWS]
        both = graph.common_neighbours(rows).astype(np.float64)
        bits = graph.bits(rows).astype(np.float64)
        degrees = graph.degrees.astype(np.float64)
        one = degrees[rows, None] + degrees[None, :] - 2 * bits - 2 * both
        paths = np.stack([both, one, n - 2 - one - both])
        v, p, pp, vp, vpp = (
            np.tensordot(spreads**i * weights**j, paths, 1)
            for i, j in ((1, 0), (0, 1), (0, 2), (1, 1), (1, 2))
        )
        squares = v * (p + p**2 - pp) - vp * (1 + 2 * p) + 2 * vpp
        squares[np.arange(len(rows)), rows] = 0
        total += float(sample.weights[start : start + _BLOCK_ROWS] @ squares.sum(axis=1)) / 2
    return total


def _path_squares(graph: BitRows, w: Weights, sample: RowSample) -> tuple[float, float]:
    """Σ over pairs of the squared (unbiased) number of paths of length 3 between their ends.

    The two sums are over the noisy ones and over the noisy zeros. With A the matrix of a(y),
    paths(u,v) = (A³)(u,v) − a(uv)·(r(u) + r(v) − a(uv)²), where r(u) is the sum of the squares of
    row u. The subtracted terms are walks that turn back.
    """
    on_ones = on_zeros = 0.0
    for start in range(0, len(sample.rows), _BLOCK_ROWS):
        rows = sample.rows[start : start + _BLOCK_ROWS]
        weights = sample.weights[start : start + _BLOCK_ROWS]
        bits, paths = _paths_from(graph, w, rows)
        squares = paths**2
        squares[np.arange(len(rows)), rows] = 0
        on_ones += float(weights @ (squares * bits).sum(axis=1)) / 2
        on_zeros += float(weights @ (squares * (1 - bits)).sum(axis=1)) / 2
    return on_ones, on_zeros


def _paths_from(
    graph: BitRows, w: Weights, rows: NDArray[np.uint32]
) -> tuple[FloatArray, FloatArray]:
    """The noisy bits of some rows, and the unbiased numbers of paths of length 3 from them."""
    n, degrees = graph.n, graph.degrees.astype(np.float64)
    alpha, beta, gamma = float(w.alpha), float(w.beta), float(w.gamma)
    bits = graph.bits(rows).astype(np.float64)
    turns = alpha**2 * degrees + beta**2 * (n - 1 - degrees)
    s = degrees[rows, None] + degrees[None, :] - 2 * bits
    two = gamma**2 * graph.common_neighbours(rows) + beta * gamma * s + beta**2 * (n - 2)
    two[np.arange(len(rows)), rows] = turns[rows]
    three = beta * (two.sum(axis=1, keepdims=True) - two)
    for start in range(0, n, _BLOCK_ROWS):
        block = graph.bits(slice(start, start + _BLOCK_ROWS)).astype(np.float64)
        three += gamma * (two[:, start : start + _BLOCK_ROWS] @ block)
    a = beta + gamma * bits
    return bits, three - a * (turns[rows, None] + turns[None, :] - a**2)


def _cubic_sums(graph: BitRows) -> tuple[int, int]:
    """Σ c²s and Σ c³ over pairs."""
    c2s = c3 = 0
    for start in range(0, graph.n, _BLOCK_ROWS):
        rows = np.arange(start, min(start + _BLOCK_ROWS, graph.n), dtype=np.uint32)
        c = graph.common_neighbours(rows).astype(np.int64)
        s = (
            graph.degrees[rows, None]
            + graph.degrees[None, :]
            - 2 * graph.bits(rows).astype(np.int64)
        )
        c2s += int((c * c * s).sum())
        c3 += int((c * c * c).sum())
    return c2s // 2, c3 // 2


def _integer(x: float) -> int:
    """Convert a float that holds a sum of squares of integers (exact below 2^53)."""
    return round(x)
