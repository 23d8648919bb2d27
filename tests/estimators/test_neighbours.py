"""Clustering at each node and the correlation of degrees: tier 0, and intervals that hold."""

import itertools

import networkx as nx
import numpy as np
import pytest

from silograph import Channel, Release, clustered_power_law
from silograph.estimators.degree_correlation import _Pairs, _Slope, degree_correlation
from silograph.estimators.local_clustering import node_wedge_values
from silograph.estimators.pair_sums import GraphSums
from silograph.estimators.triangles import node_triangle_values, node_triangle_variance_estimates
from tests import limits
from tests.estimators.tiny import CHANNELS, all_graphs, graph, law

ASYMMETRIC = [CHANNELS[1], CHANNELS[2]]


@pytest.mark.parametrize("channel", ASYMMETRIC, ids=str)
def test_triangles_less_some_stars_at_a_node(channel: Channel) -> None:
    """The variance of t̂ − R·ŵ has an unbiased estimate for every R, which Fieller needs."""
    p = law(4, channel)
    noisy = [graph(4, bits) for bits in all_graphs(4)]
    wedges = np.array([node_wedge_values(each, channel) for each in noisy])
    exact = np.array([each.graph.degrees * (each.graph.degrees - 1) // 2 for each in noisy])
    assert p @ wedges == pytest.approx(exact, abs=1e-9)
    triangles = np.array([node_triangle_values(each, channel) for each in noisy])
    for ratio in (-1.0, 0.3, 1.0):
        value = triangles - ratio * wedges
        spread = p @ value**2 - (p @ value) ** 2
        found = [node_triangle_variance_estimates(each, channel, ratio) for each in noisy]
        assert p @ np.array(found) == pytest.approx(spread, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("channel", ASYMMETRIC, ids=str)
def test_both_parts_of_the_correlation_are_unbiased(channel: Channel) -> None:
    noisy = [graph(4, bits) for bits in all_graphs(4)]
    found = [degree_correlation(each, channel) for each in noisy]
    truth = [degree_correlation(each, Channel(1, 0)) for each in noisy]
    p = law(4, channel)
    for part in ("top", "bottom"):
        mean = p @ np.array([getattr(each, part) for each in found])
        assert mean == pytest.approx(np.array([getattr(each, part) for each in truth]), abs=1e-7)


def test_the_sums_over_pairs_of_the_correlation() -> None:
    """Against a loop over all pairs, each taken out of the graph."""
    noisy = graph(5, 0b0010111011)
    channel = ASYMMETRIC[0]
    w, n = channel.weights, 5
    y = noisy.graph.bits(slice(None)).astype(int)
    a = np.where(y == 1, float(w.alpha), float(w.beta))
    np.fill_diagonal(a, 0.0)
    slope = _Slope(1.0, -2.0, 0.5, 3.0)
    total = 0.0
    for u, v in itertools.combinations(range(n), 2):
        gains = []
        for x in (0.0, 1.0):
            trial = a.copy()
            trial[u, v] = trial[v, u] = x
            gains.append(value(trial, slope))
        total += float(w.spread(int(y[u, v]))) * (gains[1] - gains[0]) ** 2
    assert _Pairs(noisy, channel).total(slope, slope) == pytest.approx(total)


def value(a: np.ndarray, slope: _Slope) -> float:
    """Edges, 2-stars, 3-stars and joined pairs of stars of weighted pairs."""
    n = len(a)
    rows = [[a[u, v] for v in range(n) if v != u] for u in range(n)]
    stars = [
        sum(np.prod(some) for row in rows for some in itertools.combinations(row, k))
        for k in (2, 3)
    ]
    joined = sum(
        a[u, v] * a[u, w] * a[v, x]
        for u, v in itertools.combinations(range(n), 2)
        for w in range(n)
        for x in range(n)
        if not {w, x} & {u, v}
    )
    edges = a.sum() / 2
    weights = (slope.edges, slope.two_stars, slope.three_stars, slope.joined)
    return float(np.dot(weights, [edges, *stars, joined]))


def test_the_numbers_of_networkx() -> None:
    silo = clustered_power_law(80, 4, seed=1)
    release = Release.draw(silo, Channel(1, 0), seed=1)
    known = nx.Graph(silo.pairs.tolist())
    found = release.degree_correlation().value
    assert found == pytest.approx(nx.degree_assortativity_coefficient(known))
    local = nx.clustering(known)
    answers = release.local_clustering()
    for node, coefficient in local.items():
        if known.degree(node) > 1:
            assert answers.at(node).value == pytest.approx(coefficient, abs=1e-9)


@pytest.mark.whole
def test_intervals_hold_the_truth() -> None:
    """At ε = 2 the hubs of a small graph can be seen through the noise, the others not."""
    silo = clustered_power_law(100, 4, seed=2)
    exact = Release.draw(silo, Channel(1, 0), seed=1)
    draws = [Release.draw(silo, Channel.symmetric(2.0), seed) for seed in range(150)]
    truth = exact.degree_correlation().value
    ends = [each.degree_correlation().interval for each in draws]
    kept = sum(low <= truth <= high for low, high in ends)
    assert limits.least_coverage(kept, len(ends)) >= 0.84
    local = exact.local_clustering().value
    defined = ~np.isnan(local)
    found = [each.local_clustering().interval for each in draws]
    held = np.array([((low <= local) & (local <= high))[defined] for low, high in found])
    assert limits.least_coverage(int(held.sum() / 10), held.size // 10) >= 0.9
    hub = int(np.argmax(silo.degrees()))
    assert limits.least_coverage(int(held[:, hub].sum()), len(draws)) >= 0.84
    assert np.mean([high[hub] - low[hub] < 0.9 for low, high in found]) > 0.8


def test_sums_of_neighbours() -> None:
    rows = GraphSums(graph(5, 0b0010111011).graph).graph
    values = np.arange(10.0).reshape(5, 2)
    assert rows.neighbour_sums(values) == pytest.approx(rows.bits(slice(None)) @ values)
