"""Folded releases: equal to a plain reference, exact over all hashes of tiny graphs, and with error
bars that hold on a graph of some size."""

# ruff: noqa: N806 - Matrices have capital letters in the reference, as in the formulas.

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.optimize import brentq

from silograph.dp.channel import Channel
from silograph.errors import ArgumentError
from silograph.estimators import folded
from silograph.estimators.estimate import FloatArray
from silograph.estimators.folded import FoldedSum, FoldedSums
from silograph.estimators.folded_loads import (
    CellModel,
    CellShape,
    Loads,
    Strip,
    by_ones,
    series,
    spread,
)
from silograph.graph.fold import BucketCounts, Folding, Layout
from silograph.graph.universe import NodeUniverse
from tests.estimators.folding import (
    DenseCounts,
    Ints,
    all_hashes,
    communities,
    fold,
    random_fold,
    truth,
)
from tests.sampled import sampled

QUIET = Channel(1, 0)
CHANNELS = [QUIET, Channel.symmetric(1.0), Channel("20/21", "1/15")]
NAMES = ["edges", "squares", "two_stars", "triangles", "four_cycles", "clustering"]


def zero_diagonal(matrix: FloatArray) -> FloatArray:
    return matrix * (1 - np.eye(len(matrix)))


# --- 1. A plain reference -------------------------------------------------------------------------


def reference(counts: DenseCounts, channel: Channel) -> dict[str, tuple[float, float]]:
    """Every estimate and its variance, by whole matrices of floats as the formulas read."""
    hubs, n_o, sub = counts.hubs, counts.groups, counts.sub
    size, order, load_order = hubs + n_o, min(sub, 2), min(2 * sub, 3)
    v0, v1 = float(channel.weights.v0), float(channel.weights.v1)
    ordinary = np.arange(size) >= hubs
    oo, hh = np.outer(ordinary, ordinary), np.outer(~ordinary, ~ordinary)
    o, h = np.nonzero(ordinary)[0], np.nonzero(~ordinary)[0]

    def noise(q: FloatArray) -> FloatArray:
        return v0 * (1 - q) + v1 * q

    def table(buckets: int, terms: int) -> FloatArray:
        return np.array([float(x) for x in by_ones(buckets, terms, channel)])

    signed, both, single = table(sub, order), table(2 * sub, load_order), table(1, 1)
    one = zero_diagonal(single[np.minimum(counts.plus, 1)])
    M = np.where(hh, one, signed[counts.plus] - signed[counts.minus])
    U = np.where(hh, one, zero_diagonal(both[counts.plus + counts.minus]))

    # Loads.
    def rest(x: FloatArray) -> FloatArray:
        q = 1 - np.exp(-x / 2 / sub)
        return np.asarray(x - 2 * sub * sum(q**j / j for j in range(1, load_order + 1)))

    seen = U[:, o].sum(axis=1)
    load, width = seen, n_o - ordinary.astype(float)

    def left_out(rows: FloatArray, calm: FloatArray) -> list[FloatArray]:
        cells = zero_diagonal(rest(np.outer(rows, calm) / max(calm[o].sum(), 1)))
        return [cells[:, o].sum(axis=1), width * rest(rows / width)]

    for _ in range(6):
        calm, kept = load.copy(), np.ones(size)
        for part in (h, o):
            if len(part) > 1:
                mean = calm[part].mean()
                q = np.array(1 - np.exp(-max(mean, 0) / n_o / 2 / sub))
                error = n_o * float(spread(2 * sub, load_order, q, noise(q)))
                beyond, base = calm[part] - mean, max(mean, 0)
                squares, cubes = (beyond**2).mean(), (beyond**3).mean()
                wanted = 3 * base * (squares - error) + cubes
                powers = Polynomial([-wanted, 0, 3 * base * squares, cubes])
                kept[part] = brentq(powers, 0, 1, xtol=1e-14) if wanted > 0 else 0
                calm[part] = mean + beyond * kept[part]
        calm = np.maximum(calm, 0)
        models = left_out(calm, calm)
        load = seen + sum(models) / 2
    doubt = (models[0] - models[1]) / 2
    more = (sum(left_out(calm + 1, calm)) - sum(models)) / 2
    gain = 1 / (1 - np.minimum(kept * more, 0.5))
    gain_of_all = 1 / (1 - min(more @ calm / max(calm.sum(), 1), 0.95))
    inside = load[o].sum() / 2

    # Weights and variances of cells.
    mu = (load - 1) / width
    X = np.add.outer(mu, mu) - 2 * inside / n_o**2
    X[np.ix_(h, o)], X[np.ix_(o, h)] = mu[h][:, None], mu[h][None, :]
    X = zero_diagonal(np.maximum(np.where(hh, 0, X), 0))
    q = np.minimum(1 - np.exp(-X / 2 / sub), 0.99)
    apart = 1 / (1 - 1 / n_o)
    W = np.where(oo, apart, 1) / (1 - q**order)
    V = zero_diagonal(np.where(hh, v0, 2 * W**2 * spread(sub, order, q, q * (1 - q) + noise(q))))
    N = zero_diagonal(np.where(hh, v0, 2 * W**2 * spread(sub, order, q, noise(q))))
    M = M * W
    G = M**2

    # Triangles.
    S, GG, SO, GGO = M @ M, G @ G, M[:, o] @ M[o], G[:, o] @ G[o]
    X2, XO = zero_diagonal(S**2 - GG), zero_diagonal(SO**2 - GGO)
    t = np.trace(M @ S) / 6
    if order == 1:
        t -= ((U - X) * XO).sum() / 4 / (2 * n_o * sub**2)
        t -= np.trace(np.linalg.matrix_power(M[np.ix_(o, o)], 3)) / 6 * (1 - np.exp(-3 / n_o))
        t -= (
            np.trace(M[np.ix_(o, o)] @ M[np.ix_(o, h)] @ M[np.ix_(h, o)])
            / 2
            * (1 - np.exp(-1 / n_o))
        )
    d1, d2, cube = np.diag(S), np.diag(GG), np.diag(M @ S)
    N3 = zero_diagonal(M @ S - M * (np.add.outer(d1, d1) - G))
    R3 = zero_diagonal(G @ GG - G * (np.add.outer(d2, d2) - G**2))
    pairs = ((N3**2 - R3) * oo).sum() / 2 - ((N @ X2) * oo).sum()
    var_t = [np.trace(G @ GG) / 6 - t, (V * X2).sum() / 2, pairs / n_o]
    if order == 1:
        var_t.append(2 * (((U - X) * XO) ** 2).sum() / (8 * n_o) ** 2)

    # 4-cycles.
    c4 = ((X2 + XO * (apart - 1)) * np.where(oo, apart, 1)).sum() / 8
    N4 = S @ S - d1[:, None] * S - S * d1 - M @ np.diag(d1) @ M - M * np.add.outer(cube, cube)
    N4, R4 = zero_diagonal(N4), zero_diagonal(GG @ GG)
    var_c = [(GG**2).sum() / 8 - c4, (V * (N3**2 - R3)).sum() / 2]
    var_c += [(((N4**2 - R4) * oo).sum() / 2 - ((N @ (N3**2 - R3)) * oo).sum()) / n_o]

    # Edges and degrees.
    y = np.outer(np.maximum(load, 0), np.maximum(load, 0)) / max(load[o].sum(), 1)
    y[np.ix_(h, o)] = np.maximum(load[h], 0)[:, None] / n_o
    y[np.ix_(o, h)] = y[np.ix_(h, o)].T
    q = 1 - np.exp(-y / 2 / sub)
    fuzz = np.maximum(spread(2 * sub, load_order, q, q * (1 - q) + noise(q)) - y, 0)
    fuzz = zero_diagonal(np.where(hh, v0, fuzz))
    e = inside * apart + load[h].sum() + U[np.ix_(h, h)].sum() / 2
    both_kept = 1 - 2 / n_o
    degree = np.where(ordinary, load / both_kept, load) + U[:, h].sum(axis=1)
    ends = np.maximum(load[o], 0)
    degree[o] += (load[h] - seen[h]).sum() * ends / max(ends.sum(), 1)
    grown = np.where(ordinary[None, :], gain[:, None] ** 2, 1) * fuzz
    scaled = np.where(oo, grown / both_kept**2, grown)
    square = degree**2 - scaled.sum(axis=1)
    total = degree[o].sum() ** 2 - scaled[np.ix_(o, h)].sum() - 2 * scaled[np.ix_(o, o)].sum()
    at_ordinary = (square[o].sum() - total / n_o - 2 * inside * (1 / both_kept - 1)) * apart
    f2 = square[h].sum() + at_ordinary
    lean = np.where(ordinary, (degree - degree[o].mean()) * apart, degree)
    tie = 1 / n_o / (2 * sub - 1) ** 2

    def variance(squares: float, edges: float) -> list[float]:
        slope = 2 * squares * np.add.outer(lean, lean) + edges
        doubted = 2 * squares * (lean * doubt).sum()
        doubted += edges * (doubt[o].sum() / 2 + doubt[h].sum())
        tied = 2 * squares * np.add.outer(degree, degree) + squares * f2 / max(e, 1) + edges
        return [
            gain_of_all**2 * (slope**2 * fuzz).sum() / 2
            + 2 * squares**2 * gain_of_all**4 * (fuzz.sum(axis=1) ** 2).sum(),
            2 * squares**2 * at_ordinary**2 / n_o + edges**2 * max(inside, 0) / n_o,
            doubted**2,
            (X2 * oo * tied**2).sum() / 2 * tie,
        ]

    def summed(parts: list[float]) -> float:
        return float(sum(max(part, 0) for part in parts))

    stars, var_s = f2 / 2 - e, summed(variance(0.5, -1))
    ratio = 3 * t / stars
    return {
        "edges": (e, summed(variance(0, 1))),
        "squares": (f2, summed(variance(1, 0))),
        "two_stars": (stars, var_s),
        "triangles": (t, summed(var_t)),
        "four_cycles": (c4, summed(var_c)),
        "clustering": (ratio, ratio**2 * (summed(var_t) / t**2 + var_s / stars**2)),
    }


@pytest.mark.parametrize("tile", [7, 512])
@pytest.mark.parametrize("channel", CHANNELS, ids=str)
@pytest.mark.parametrize("fold_of", [(0, 24, 1), (1, 30, 2), (6, 25, 1), (9, 40, 3)], ids=str)
def test_it_is_the_plain_reference(
    fold_of: tuple[int, int, int], channel: Channel, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folded, "_TILE", tile)
    hubs, groups, sub = fold_of
    rng = np.random.default_rng(17)
    edges = communities(300, 12, 0.4, rng)
    counts = random_fold(300, edges, np.arange(hubs), groups, sub, rng).through(channel, rng)
    sums, plain = FoldedSums(counts, channel), reference(counts, channel)
    for name in NAMES:
        found = getattr(sums, name)
        if not (name == "clustering" and np.isnan(found.value)):
            assert (found.value, found.variance) == pytest.approx(plain[name], rel=1e-5), name


def test_what_it_is_made_of() -> None:
    rng = np.random.default_rng(3)
    counts = random_fold(200, communities(200, 10, 0.5, rng), np.arange(2), 120, 1, rng)
    rows: list[int] = []
    sums = FoldedSums(counts, QUIET, advance=rows.append)
    for found in (sums.edges, sums.squares, sums.two_stars, sums.triangles, sums.four_cycles):
        assert found.variance == pytest.approx(sum(found.parts.values()))
        assert found.stderr == found.variance**0.5
    assert sum(rows) == 5 * 122
    interval = sums.clustering.interval()
    assert interval is not None
    assert interval[0] < sums.clustering.value < interval[1]


def test_a_release_without_edges_has_no_clustering() -> None:
    empty = np.zeros((30, 30), dtype=np.uint8)
    sums = FoldedSums(DenseCounts(2, 28, 1, empty, empty), QUIET)
    assert sums.edges.value == sums.triangles.value == 0
    assert np.isnan(sums.clustering.value)
    assert sums.clustering.variance == np.inf
    assert sums.clustering.interval() is None


def counted_under(epsilon: float, sub: int) -> list[FoldedSum]:
    """All counts of a graph of communities, under noise that hides it."""
    rng, channel = np.random.default_rng(8), Channel.symmetric(epsilon)
    edges = communities(200, 10, 0.5, rng)
    counts = random_fold(200, edges, np.arange(4), 40, sub, rng).through(channel, rng)
    sums = FoldedSums(counts, channel)
    return [sums.edges, sums.two_stars, sums.triangles, sums.four_cycles]


@pytest.mark.parametrize("sub", [1, 2])
@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_all_noise_is_still_a_number(epsilon: float, sub: int) -> None:
    for found in counted_under(epsilon, sub):
        assert np.isfinite(found.value)
        assert np.isfinite(found.variance)
        assert found.variance > 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sub", [1, 2, 64])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-4, 1e-2])
def test_noise_beyond_single_precision_is_no_number(epsilon: float, sub: int) -> None:
    for found in counted_under(epsilon, sub):
        assert np.isfinite(found.value)
        assert found.variance > 0


@pytest.mark.parametrize("sub", [1, 2])
@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_all_noise_says_that_it_is_noise(epsilon: float, sub: int) -> None:
    """Corrections for collisions are noise, too. They must not look like edges or triangles."""
    rng, channel = np.random.default_rng(5), Channel.symmetric(epsilon)
    edges = communities(200, 10, 0.5, rng)
    known = truth(200, edges)
    for _ in range(6):
        counts = random_fold(200, edges, np.arange(4), 150, sub, rng).through(channel, rng)
        sums = FoldedSums(counts, channel)
        for name in ("edges", "two_stars", "triangles", "four_cycles"):
            found = getattr(sums, name)
            assert abs(found.value - known[name]) < 4 * found.stderr, name


@pytest.mark.parametrize("shape", [(0, 2, 1), (-1, 5, 1), (0, 5, 0), (0, 5, 101)])
def test_refused_shapes(shape: tuple[int, int, int]) -> None:
    with pytest.raises(ArgumentError, match="at least 3 groups"):
        CellShape(*shape)


# --- 2. Exact: the series -------------------------------------------------------------------------

NOISY = [Channel("3/4", "1/4"), Channel("20/21", "1/15"), Channel("2/3", "1/4")]


def exact_series(bits: tuple[int, ...], order: int) -> Fraction:
    ones = sum(bits)
    return sum((c * comb(ones, j) for j, c in series(len(bits), order).items()), Fraction(0))


def test_a_star_with_its_centre_as_hub_knows_its_error() -> None:
    """No noise at all: edges of the hub collide, and groups hold nothing else to tell it by."""
    layout, nodes = Layout(250, 1), NodeUniverse.range(100)
    pairs = np.array([[0, i] for i in range(1, 100)], dtype=np.uint32)
    drawn = []
    for key in range(40):
        words = Folding.of(bytes([key]), layout, ("0",)).fold(nodes, pairs)
        sums = FoldedSums(BucketCounts(layout, words.tobytes()), Channel(1, 0))
        drawn.append((sums.two_stars.value, sums.two_stars.variance))
    values, variances = np.array(drawn).T
    assert values.mean() == pytest.approx(4851, abs=4 * values.std() / 40**0.5)
    assert variances.mean() ** 0.5 == pytest.approx(values.std(), rel=0.35)


@pytest.mark.parametrize("channel", NOISY, ids=str)
@pytest.mark.parametrize("buckets", [1, 2, 3, 4])
def test_the_series_is_unbiased_through_the_channel(buckets: int, channel: Channel) -> None:
    given = {(1, 1): channel.p11, (0, 1): channel.p01}
    given |= {(x, 0): 1 - given[x, 1] for x in (0, 1)}
    for order in range(1, min(buckets, 3) + 1):
        table = by_ones(buckets, order, channel)
        for bits in itertools.product((0, 1), repeat=buckets):
            mean = Fraction(0)
            for read in itertools.product((0, 1), repeat=buckets):
                chance = Fraction(1)
                for x, y in zip(bits, read, strict=True):
                    chance *= given[x, y]
                mean += chance * table[sum(read)]
            assert mean == exact_series(bits, order)


@pytest.mark.parametrize("buckets", [1, 2, 3, 4, 6])
def test_the_series_counts_as_many_edges_as_it_has_terms(buckets: int) -> None:
    for order in range(1, min(buckets, 3) + 1):
        for edges in range(order + 2):
            hashes = list(itertools.product(range(buckets), repeat=edges))
            seen = [
                exact_series(tuple(int(b in used) for b in range(buckets)), order)
                for used in hashes
            ]
            mean = sum(seen, Fraction(0)) / len(hashes)
            assert (mean == edges) == (edges <= order)


@pytest.mark.parametrize("buckets", [1, 2, 3, 4])
def test_the_spread_of_the_series(buckets: int) -> None:
    """Independent buckets, each occupied with the same chance: the variance by enumeration."""
    q = 0.3
    for order in range(1, min(buckets, 3) + 1):
        first = second = 0.0
        for bits in itertools.product((0, 1), repeat=buckets):
            chance = q ** sum(bits) * (1 - q) ** (buckets - sum(bits))
            value = float(exact_series(bits, order))
            first, second = first + chance * value, second + chance * value**2
        found = spread(buckets, order, np.array([q]), np.array([q * (1 - q)]))
        assert float(found[0]) == pytest.approx(second - first**2)


# --- 2. Exact: the signed sums --------------------------------------------------------------------


class ExactLoads(Loads):
    """The loads of cells whose numbers of edges are known."""

    def __init__(self, shape: CellShape, plain: Ints) -> None:
        hubs, o = slice(0, shape.hubs), shape.ordinary
        self.shape = shape
        self.load = plain[:, o].sum(axis=1).astype(float)
        self.doubt, self.gain = np.zeros(shape.size), np.ones(shape.size)
        self.gain_of_all = 1.0
        self.inside = float(self.load[o].sum()) / 2
        self.from_hubs = plain[o, hubs].sum(axis=1).astype(float)
        self.between_hubs = plain[hubs, hubs].sum(axis=1).astype(float)

    def model(self, rows: Strip, cols: Strip) -> CellModel:
        zero = self.fuzz(rows, cols)
        return CellModel(zero, zero + 1, zero, zero)

    def fuzz(self, rows: Strip, cols: Strip) -> FloatArray:
        return np.zeros((rows.at.stop - rows.at.start, cols.at.stop - cols.at.start))


def exact_sums(edges: Ints, group: Ints, sign: Ints, hubs: int, groups: int) -> FoldedSums:
    """The estimators on the signed sums themselves, as if no bucket could be shared."""
    bucket = np.zeros(len(edges), dtype=np.int64)
    counts, linear, plain = fold(edges, group, sign, bucket, hubs, groups, 2)
    sums = FoldedSums(counts, QUIET)
    cells = linear.astype(np.float32)
    cells[hubs:, hubs:] /= np.float32(sums.shape.apart)
    sums.__dict__["_read"] = cells, ExactLoads(sums.shape, plain)
    return sums


def by_hubs(nodes: int, edges: Ints, hubs: int) -> tuple[list[int], list[int]]:
    """The numbers of triangles and of 4-cycles, by how many hubs they visit."""
    joined = {frozenset(edge) for edge in edges.tolist()}
    triangles, cycles = [0] * 5, [0] * 5
    for triple in itertools.combinations(range(nodes), 3):
        if all(frozenset(pair) in joined for pair in itertools.combinations(triple, 2)):
            triangles[sum(node < hubs for node in triple)] += 1
    for four in itertools.combinations(range(nodes), 4):
        a, rest = four[0], four[1:]
        for b, c, d in itertools.permutations(rest):
            if b < d and all(frozenset(p) in joined for p in ((a, b), (b, c), (c, d), (d, a))):
                cycles[sum(node < hubs for node in four)] += 1
    return triangles, cycles


COMPLETE = list(itertools.combinations(range(4), 2))
#: K5 without an edge, and the house with a chord.
TINY = [
    [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 3), (2, 4)],
    [(0, 1), (1, 2), (2, 3), (0, 3), (0, 4), (1, 4), (1, 3)],
]


def check_mean_over_all_hashes(edges: Ints, hubs: int, groups: int) -> None:
    """The mean is the truth times known factors.

    Edges and squared degrees: exactly the truth. A motif is seen if its ordinary nodes fall into
    different groups: with chance (1 − 1/r) for two, (1 − 1/r)(1 − 2/r) for three, and so on. The
    estimators divide by 1 − 1/r for each pair of them. For triangles of three ordinary nodes, and
    for 4-cycles with three of them, 1 − 1/(r−1)² is left; all but those of four are exact else.
    """
    nodes = 5
    degree = np.bincount(edges.ravel(), minlength=nodes)
    r = Fraction(groups)
    three = 1 - 1 / (r - 1) ** 2
    four = (1 - 2 / r) * (1 - 3 / r) / (1 - 1 / r) ** 5
    triangles, cycles = by_hubs(nodes, edges, hubs)
    expected = {
        "edges": Fraction(len(edges)),
        "squares": Fraction(int((degree**2).sum())),
        "triangles": three * triangles[0] + sum(triangles[1:]),
        "four_cycles": four * cycles[0] + three * cycles[1] + sum(cycles[2:]),
    }
    mean = dict.fromkeys(expected, Fraction(0))
    for group, sign, chance in all_hashes(nodes, hubs, groups):
        sums = exact_sums(edges, group, sign, hubs, groups)
        values = {"edges": sums.edges.value, "squares": sums.squares.value}
        # The values alone: variances cost more, and are not in question here.
        values["triangles"] = float(sums._walks.closed.sum()) / 6
        values["four_cycles"] = sums._walks.cycles
        for name, value in values.items():
            mean[name] += chance * Fraction(value)
    for name, wanted in expected.items():
        # With 3 and 5 groups 1/(1 − 1/r) is a binary fraction, so that only squares are rounded.
        assert abs(mean[name] - wanted) < Fraction(1, 10**9), name


@pytest.mark.slow
@pytest.mark.parametrize("groups", [3, 5])
@pytest.mark.parametrize("hubs", [0, 1, 2])
@pytest.mark.parametrize("graph", sampled(range(2), 1))
def test_signed_sums_over_all_hashes(graph: int, hubs: int, groups: int) -> None:
    check_mean_over_all_hashes(np.array(TINY[graph]), hubs, groups)


@pytest.mark.parametrize("factor", ["apart", "in_squares"])
def test_a_missing_factor_is_seen(factor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: nothing is divided by 1 − 1/r; squares of degrees take edges as independent."""
    monkeypatch.setattr(CellShape, factor, 1.0)
    with pytest.raises(AssertionError, match="edges" if factor == "apart" else "squares"):
        check_mean_over_all_hashes(np.array(TINY[0]), 1, 3)


# --- 2. Over all hashes, with buckets that are shared ---------------------------------------------


def mean_of_shared(edges: Ints, hubs: int, groups: int) -> float:
    """The mean over all hashes of the number of triangles, released without noise and K = 1."""
    nodes, mean = int(edges.max()) + 1, 0.0
    bucket = np.zeros(len(edges), dtype=np.int64)
    for group, sign, chance in all_hashes(nodes, hubs, groups):
        counts = fold(edges, group, sign, bucket, hubs, groups, 1)[0]
        mean += float(chance) * FoldedSums(counts, QUIET).triangles.value
    return mean


@pytest.mark.slow
@pytest.mark.parametrize(
    ("graph", "hubs"),
    [(COMPLETE, 0), pytest.param(TINY[0], 1, marks=pytest.mark.whole)],
    ids=["K4", "hub"],
)
def test_weights_make_up_for_shared_buckets(
    graph: list[tuple[int, int]], hubs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing exact is known here: the weights are a model of first order in 1/r. With 40 groups
    its mean is within a percent of the signed sums', where shared buckets take seven percent."""
    edges, groups = np.array(graph), 40
    three = 1 - 1 / (groups - 1) ** 2
    triangles = by_hubs(5, edges, hubs)[0]
    signed = three * triangles[0] + sum(triangles[1:])
    assert mean_of_shared(edges, hubs, groups) == pytest.approx(signed, rel=0.01)
    weighted = Loads.model

    def alone(self: Loads, rows: Strip, cols: Strip) -> CellModel:
        """Planted: the model of cells that edges never share."""
        found = weighted(self, rows, cols)
        inner = rows.ordinary and cols.ordinary
        weight = np.full_like(found.weight, 1 / self.shape.apart if inner else 1)
        return CellModel(found.company, weight, found.variance, found.noise)

    monkeypatch.setattr(Loads, "model", alone)
    assert mean_of_shared(edges, hubs, groups) < 0.95 * signed


# --- 3. Statistical -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hubs", "groups", "sub", "channel"),
    [
        (30, 250, 1, QUIET),
        pytest.param(30, 250, 1, Channel.symmetric(1.5), marks=pytest.mark.whole),
        pytest.param(0, 300, 2, Channel.symmetric(3.0), marks=pytest.mark.whole),
    ],
    ids=["quiet", "noisy", "no hubs"],
)
def test_error_bars_hold(hubs: int, groups: int, sub: int, channel: Channel) -> None:
    """Forty draws of hash and noise. A standard deviation is then known to 11 %, and 95 % coverage
    to 3.4 %: the bounds are three of these away. Cells are fuller here than a plan would make them,
    so three percent of bias are allowed beside chance."""
    nodes, draws, rng = 3000, 40, np.random.default_rng(29)
    edges = communities(nodes, 15, 0.4, rng)
    true = truth(nodes, edges)
    drawn: dict[str, list[tuple[float, float]]] = {name: [] for name in NAMES}
    believed = 0
    for _ in range(draws):
        counts = random_fold(nodes, edges, np.arange(hubs), groups, sub, rng)
        sums = FoldedSums(counts.through(channel, rng), channel)
        for name in NAMES:
            found = getattr(sums, name)
            drawn[name].append((found.value, found.variance))
        interval = sums.clustering.interval()
        believed += interval is not None and interval[0] <= true["clustering"] <= interval[1]
    assert believed >= 0.85 * draws
    for name in NAMES:
        values, variances = np.array(drawn[name]).T
        seen, own = values.std(ddof=1), variances.mean() ** 0.5
        assert abs(values.mean() - true[name]) < 4 * seen / draws**0.5 + 0.03 * true[name], name
        # An error bar may be wide, never narrow.
        assert 0.5 * own < seen < 1.33 * own, name
        covered = abs(values - true[name]) < 1.96 * variances**0.5
        assert covered.mean() >= 0.85, name
