"""Predicted errors against simulated folds, and choices against what was measured before."""

import math
from pathlib import Path

import numpy as np
import pytest

from silograph.dp.channel import Channel
from silograph.errors import ArgumentError
from silograph.estimators.estimate import FloatArray
from silograph.estimators.fold_reference import FoldShape, shape_of
from silograph.estimators.reference import reference_of
from silograph.graph.fold import Layout
from silograph.graph.samples import clustered_power_law, dataset
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.methods.fold.expected import _Cells, _Fold, choose_fold, predicted_error
from silograph.methods.prediction import union_channel


@pytest.fixture(scope="module")
def graph() -> Silo:
    return clustered_power_law(800, 10, 0.7, seed=2)


@pytest.fixture(scope="module")
def shape(graph: Silo) -> FoldShape:
    return shape_of(graph)


def estimates(
    graph: Silo, hubs: int, groups: int, sub: int, channel: Channel, draws: int
) -> FloatArray:
    """Triangles of simulated folds, with weights from the true loads."""
    rng = np.random.default_rng(9)
    n, r = len(graph.universe), hubs + groups
    pairs = graph.pairs.astype(np.int64)
    top = np.argsort(-np.bincount(pairs.ravel(), minlength=n), kind="stable")[:hubs]
    p11, p01 = float(channel.p11), float(channel.p01)
    order = min(sub, 2)
    found = np.zeros(draws)
    for draw in range(draws):
        group, sign = rng.integers(hubs, r, n), rng.integers(0, 2, n)
        group[top], sign[top] = np.arange(hubs), 0
        a, b = np.sort(group[pairs], axis=1).T
        bits = np.zeros((2, sub, r, r), dtype=bool)
        alone, kept = b < hubs, a != b
        minus = (sign[pairs[:, 0]] != sign[pairs[:, 1]]).astype(int)
        which = np.where(alone, 0, rng.integers(0, sub, len(a)))
        bits[minus[kept], which[kept], a[kept], b[kept]] = True
        y = rng.random(bits.shape) < np.where(bits, p11, p01)
        z = (y - p01) / (p11 - p01)
        first = z.sum(axis=1)
        cell = first
        if order == 2:
            cell = first + (first**2 - (z**2).sum(axis=1)) / 2 / (sub - 1)
        mixed, both = alone < (a < hubs), kept & (a >= hubs)
        mean = sum(np.bincount(x, minlength=r) for x in (a[mixed], a[both], b[both])) / groups
        company = mean[:, None] + mean[None, :] - mean[hubs:].sum() / groups
        company[:hubs] = mean[:hubs, None]
        q = 1 - np.exp(-company / 2 / sub)
        m = (cell[0] - cell[1]) / (1 - q**order)
        m[hubs:, hubs:] /= 1 - 1 / groups
        m[:hubs, :hubs] = z[0, 0, :hubs, :hubs]
        m = np.triu(m, 1)
        m += m.T
        found[draw] = ((m @ m) * m).sum() / 6
    return found


@pytest.mark.parametrize(
    ("hubs", "groups", "sub", "epsilon"),
    [(0, 200, 1, 3.0), (50, 150, 1, 1.0), (100, 100, 2, 3.0), (200, 80, 1, 2.0)],
)
def test_triangles_of_simulated_folds(
    graph: Silo, shape: FoldShape, hubs: int, groups: int, sub: int, epsilon: float
) -> None:
    channel = Channel.symmetric(epsilon)
    drawn = estimates(graph, hubs, groups, sub, channel, 150)
    predicted = predicted_error(
        "triangles", shape, shape.known_hubs(hubs), np.array([groups]), sub, channel.weights
    )
    assert predicted.sd[0] == pytest.approx(drawn.std(ddof=1), rel=0.25)
    off = abs(drawn.mean() - shape.triangles) - 4 * drawn.std() / math.sqrt(len(drawn))
    assert off < predicted.bias[0]


@pytest.mark.parametrize(("hubs", "groups"), [(0, 400), (200, 400), (400, 400), (400, 200)])
def test_noise_without_edges_is_counted_triple_by_triple(hubs: int, groups: int) -> None:
    """Two sub-buckets: without load, the weights of cells have no noise of their own."""
    empty = shape_of(Silo.from_pairs(NodeUniverse.range(1000), [[0, 1]]))
    weights = Channel.symmetric(1.0).weights
    found = predicted_error(
        "triangles", empty, empty.known_hubs(hubs), np.array([groups]), 2, weights
    )
    v = float(weights.v0)
    cell = 2 * (2 * v + v * v)  # two signs; two buckets each, and their product
    expected = (
        math.comb(groups, 3) * cell**3
        + math.comb(groups, 2) * hubs * cell**3
        + math.comb(hubs, 2) * groups * cell**2 * v
        + math.comb(hubs, 3) * v**3
    )
    assert found.parts["third"][0] == pytest.approx(expected, rel=0.04)


def test_rows_are_unevenly_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashed again and again: the product of the variances of three cells, by that of mean rows."""
    ends = np.arange(1, 1501)
    stars = [np.stack([np.full(400, 0), ends[:400]], 1), np.stack([ends[:-1], ends[1:]], 1)]
    graph = Silo.from_pairs(NodeUniverse.range(1501), np.concatenate(stars))
    weights, groups = Channel.symmetric(1.0).weights, 150
    shape = shape_of(graph)

    def third() -> float:
        rows = np.array([float(groups)])
        found = predicted_error("triangles", shape, shape.known_hubs(0), rows, 1, weights)
        return float(found.parts["third"][0])

    cells, degrees = _Cells(1, float(weights.v0), float(weights.v1)), graph.degrees()
    rng, drawn = np.random.default_rng(4), []
    for _ in range(100):
        full = np.bincount(rng.integers(0, groups, len(degrees)), degrees, groups) / groups
        variance = cells.variance(np.add.outer(full, full) - full.mean())[1]
        np.fill_diagonal(variance, 0)
        drawn.append(np.trace(variance @ variance @ variance))
    mean = cells.variance(np.array(degrees.sum() / groups**2))[1]
    expected = np.mean(drawn) / mean**3 / math.perm(groups, 3)
    uneven = third()
    monkeypatch.setattr(_Fold, "_uneven", lambda *_: np.ones(1))
    assert expected > 2
    assert uneven / third() == pytest.approx(expected, rel=0.1)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("facebook", {1.0: (6.4, 3.7)}),
        ("wiki-Vote", {1.0: (15, 8.4)}),
        ("ca-HepPh", {1.0: (4.5, 2.8)}),
        ("email-Enron", {1.0: (20, 9.8), 2.0: (2.7, 2.0), 3.0: (1.0, 0.85)}),
    ],
)
def test_errors_with_known_hubs_as_searched_by_simulation(
    data_folder: Path, name: str, known: dict[float, tuple[float, float]]
) -> None:
    """In percent of all triangles, masked and committee: the best folds that simulations found."""
    shape = shape_of(dataset(name, folder=data_folder))
    for epsilon, expected in known.items():
        for protocol, percent in zip(("masked", "committee"), expected, strict=True):
            found = choose_fold("triangles", shape, epsilon, 4, 1, protocol, hubs_known=True)
            assert found is not None
            assert 100 * found.sd / shape.triangles == pytest.approx(percent, rel=0.25)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "hubs", "groups", "sub", "epsilon", "percent"),
    [
        ("facebook", 500, 500, 2, 3.0, 1.6),
        ("wiki-Vote", 1000, 200, 1, 1.0, 16.6),
        ("ca-HepPh", 600, 600, 1, 2.0, 0.8),
        ("email-Enron", 300, 700, 1, 1.0, 21),
        ("email-Enron", 1500, 800, 1, 2.0, 2.65),
        ("wiki-Vote", 2000, 155, 1, 2.0, 1.80),
        ("ca-HepPh", 1500, 540, 1, 2.0, 0.68),
    ],
)
def test_errors_that_were_seen_in_simulations(
    data_folder: Path, name: str, hubs: int, groups: int, sub: int, epsilon: float, percent: float
) -> None:
    shape = shape_of(dataset(name, folder=data_folder))
    weights = union_channel("masked", epsilon, 4, 1).weights
    share = shape.known_hubs(hubs)
    found = predicted_error("triangles", shape, share, np.array([groups]), sub, weights)
    assert 100 * found.sd[0] / shape.triangles == pytest.approx(percent, rel=0.25)


def test_buckets_are_counted_one_by_one() -> None:
    for hubs, groups, sub in ((0, 5, 1), (4, 3, 2), (2, 6, 3)):
        cells = [(a, b) for b in range(hubs + groups) for a in range(b)]
        assert Layout(groups, hubs, sub).buckets == sum(
            1 if b < hubs else 2 * sub for _, b in cells
        )


def test_a_choice_is_within_its_limits(shape: FoldShape) -> None:
    free = choose_fold("triangles", shape, 2.0, 4, 1, "masked", hubs_known=True)
    bound = choose_fold(
        "triangles", shape, 2.0, 4, 1, "masked", hubs_known=True, buckets_at_most=60_000
    )
    searched = choose_fold("triangles", shape, 2.0, 4, 1, "masked")
    assert free is not None
    assert bound is not None
    assert searched is not None
    assert bound.buckets == Layout(bound.groups, bound.hubs, bound.sub).buckets <= 60_000
    assert free.sd <= bound.sd
    assert free.sd <= searched.sd
    assert free.hub_epsilon == 0 <= searched.hub_epsilon < 2
    for choice in (free, bound, searched):
        assert choice.bias < choice.sd / 3
        assert 0 < choice.bytes_per_silo < 3 * choice.buckets


@pytest.mark.parametrize("query", ["edges", "kstars", "triangles"])
def test_rows_of_hubs_are_not_too_full(query: str) -> None:
    """Eight nodes know most others. Folds were chosen in which such a row has more edges than
    buckets; 2-stars were then off by 67 times the error that was predicted."""
    nodes, many = 800, 8
    edges = [(u, v) for u in range(many) for v in range(u + 1, nodes) if (u + v) % 3]
    shape = shape_of(Silo.from_edges(NodeUniverse.range(nodes), edges))
    for epsilon in (1.0, 3.0):
        found = choose_fold(query, shape, epsilon, 4, 1, "committee", hubs_known=True)
        if found is not None and found.hubs >= many:
            into_groups = 2 / 3 * (nodes - found.hubs)
            assert into_groups / found.groups <= 0.55 * found.sub


@pytest.mark.parametrize("query", ["edges", "kstars"])
def test_rows_of_groups_with_a_hub_are_not_too_full(query: str) -> None:
    """Without hubs of their own, eight nodes with 530 edges fell into 139 groups: every cell of
    their rows had four edges, and 2-stars were off by 14 times the error that was predicted."""
    nodes, many = 800, 8
    edges = [(u, v) for u in range(many) for v in range(u + 1, nodes) if (u + v) % 3]
    shape = shape_of(Silo.from_edges(NodeUniverse.range(nodes), edges))
    for protocol in ("committee", "masked"):
        found = choose_fold(query, shape, 0.5, 4, 1, protocol)
        if found is not None and found.hubs < many:
            assert 2 / 3 * nodes / found.groups <= found.sub


def test_no_fold_is_chosen_whose_weights_are_mostly_noise() -> None:
    """Where they are, a few draws are off by hundreds of predicted errors."""
    pairs = np.stack(np.triu_indices(300, 1), axis=1)
    dense = pairs[np.random.default_rng(1).random(len(pairs)) < 0.3]
    shape = shape_of(Silo.from_pairs(NodeUniverse.range(300), dense))
    weights = union_channel("masked", 0.5, 4, 1).weights
    loose = predicted_error("triangles", shape, shape.known_hubs(0), np.array([274.0]), 1, weights)
    assert loose.bias[0] == np.inf
    found = choose_fold("triangles", shape, 0.5, 4, 1, "masked")
    assert found is None or math.isfinite(found.bias)


@pytest.mark.parametrize("query", ["edges", "kstars", "clustering"])
def test_other_queries_have_choices_whose_error_falls_with_epsilon(
    shape: FoldShape, query: str
) -> None:
    errors = []
    for epsilon in (0.5, 1.0, 2.0):
        found = choose_fold(query, shape, epsilon, 4, 1, "committee", hubs_known=True)
        errors.append(found.sd if found else math.inf)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < math.inf


def test_an_unknown_query_is_refused(shape: FoldShape) -> None:
    weights = Channel.symmetric(1.0).weights
    with pytest.raises(ArgumentError, match="not predicted for degrees"):
        predicted_error("degrees", shape, shape.known_hubs(0), np.array([100]), 1, weights)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
@pytest.mark.parametrize(
    ("query", "k", "near"), [("edges", None, 0.04), ("kstars", 2, 0.04), ("triangles", None, 0.15)]
)
def test_where_every_node_is_a_hub_it_is_a_release_of_pairs(
    epsilon: float, query: str, k: int | None, near: float
) -> None:
    """Whose error is known exactly."""
    graph = clustered_power_law(400, 8, seed=1)
    shape, reference = shape_of(graph), reference_of(graph)
    weights = union_channel("committee", epsilon, 4, 1).weights
    hubs = shape.known_hubs(400)
    found = predicted_error(query, shape, hubs, np.array([3.0]), 1, weights)
    assert float(found.sd[0]) == pytest.approx(reference.noise(query, weights, k), rel=near)
