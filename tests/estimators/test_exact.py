"""Tier 0: enumerate every noisy graph; means and variances are equal to the truth, not near it."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import pytest

from silograph.dp.channel import Channel
from silograph.estimators.cycles import (
    four_cycles_value,
    four_cycles_variance,
    four_cycles_variance_estimate,
)
from silograph.estimators.degrees import degree_values, edges_value, edges_variance
from silograph.estimators.pair_sums import GraphSums
from silograph.estimators.stars import kstars_value, kstars_variance, kstars_variance_estimate
from silograph.estimators.triangles import (
    node_triangle_values,
    node_triangle_variance_estimates,
    triangles_value,
    triangles_variance,
    triangles_variance_estimate,
)
from tests.estimators.tiny import CHANNELS, all_graphs, graph, mean_and_variance, naive, outcomes
from tests.sampled import sampled

QUERIES: dict[tuple[str, int], tuple[Callable[..., Fraction], Callable[..., Fraction]]] = {
    ("edges", 0): (
        lambda t, c: edges_value(t.graph, c),
        lambda t, c: edges_variance(t.graph, c),
    ),
    ("triangles", 0): (triangles_value, triangles_variance),
    ("four_cycles", 0): (four_cycles_value, four_cycles_variance),
} | {
    ("kstars", k): (
        lambda t, c, k=k: kstars_value(t.graph, c, k),
        lambda t, c, k=k: kstars_variance(t.graph, c, k),
    )
    for k in (1, 2, 3)
}

#: Five-node graphs with something of everything: empty, a star, a path, the cycle, the bull, the
#: house, K4 with a tail, K5 less an edge, K5.
FIVE = [
    0,
    0b0000001111,
    0b1001010001,
    0b1001011001,
    0b0010110011,
    0b1101011001,
    0b0010111111,
    0b1111111110,
    0b1111111111,
]


@pytest.mark.slow
@pytest.mark.parametrize("channel", CHANNELS, ids=str)
@pytest.mark.parametrize("query", QUERIES, ids=lambda q: f"{q[0]}{q[1] or ''}")
def test_every_graph_of_four_nodes(query: tuple[str, int], channel: Channel) -> None:
    value, variance = QUERIES[query]
    answers = [value(graph(4, noisy), channel) for noisy in all_graphs(4)]
    for truth in all_graphs(4):
        mean, spread = mean_and_variance(4, truth, channel, answers.__getitem__)
        assert mean == naive(query[0], graph(4, truth), query[1])
        assert spread == variance(graph(4, truth), channel)


@pytest.mark.slow
@pytest.mark.parametrize("channel", CHANNELS[:2], ids=str)
@pytest.mark.parametrize("query", [*QUERIES, ("kstars", 4)], ids=lambda q: f"{q[0]}{q[1] or ''}")
def test_graphs_of_five_nodes(query: tuple[str, int], channel: Channel) -> None:
    value, variance = QUERIES.get(query) or (
        lambda t, c: kstars_value(t.graph, c, 4),
        lambda t, c: kstars_variance(t.graph, c, 4),
    )
    answers = [value(graph(5, noisy), channel) for noisy in all_graphs(5)]
    for truth in FIVE:
        mean, spread = mean_and_variance(5, truth, channel, answers.__getitem__)
        assert mean == naive(query[0], graph(5, truth), query[1])
        assert spread == variance(graph(5, truth), channel)


def mean_of(values: list[float], n: int, truth: int, channel: Channel) -> float:
    terms = [float(p) * values[noisy] for noisy, p in outcomes(n, truth, channel)]
    return math.fsum(terms)


@pytest.mark.parametrize("channel", CHANNELS, ids=str)
def test_variance_estimates_are_unbiased(channel: Channel) -> None:
    estimates: dict[str, tuple[Callable[..., Fraction], Callable[..., Fraction]]] = {
        "triangles": (triangles_variance_estimate, triangles_variance),
        "2-stars": (
            lambda t, c: kstars_variance_estimate(t.graph, c, 2),
            lambda t, c: kstars_variance(t.graph, c, 2),
        ),
        "3-stars": (
            lambda t, c: kstars_variance_estimate(t.graph, c, 3),
            lambda t, c: kstars_variance(t.graph, c, 3),
        ),
        "four_cycles": (four_cycles_variance_estimate, four_cycles_variance),
    }
    for name, (estimate, variance) in estimates.items():
        values = [float(estimate(graph(4, noisy), channel)) for noisy in all_graphs(4)]
        for truth in all_graphs(4):
            expected = float(variance(graph(4, truth), channel))
            assert mean_of(values, 4, truth, channel) == pytest.approx(expected, rel=1e-9), name


@pytest.mark.slow
@pytest.mark.parametrize("channel", CHANNELS[:2], ids=str)
def test_the_estimated_variance_of_four_cycles_on_five_nodes(channel: Channel) -> None:
    """Two nodes of five can share three others, which is all that the estimate distinguishes."""
    values = [float(four_cycles_variance_estimate(graph(5, n), channel)) for n in all_graphs(5)]
    for truth in FIVE:
        expected = float(four_cycles_variance(graph(5, truth), channel))
        assert mean_of(values, 5, truth, channel) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("channel", sampled(CHANNELS, 1, 2), ids=str)
def test_values_per_node(channel: Channel) -> None:
    """Degrees and triangles at each node: unbiased, and so are the estimates of their variance."""
    degrees = [degree_values(graph(4, noisy).graph, channel) for noisy in all_graphs(4)]
    corners = [node_triangle_values(graph(4, noisy), channel) for noisy in all_graphs(4)]
    spreads = [node_triangle_variance_estimates(graph(4, n), channel) for n in all_graphs(4)]
    for truth in all_graphs(4):
        at = triangles_at(graph(4, truth))
        for u in range(4):
            column = [float(x[u]) for x in degrees]
            expected = float(graph(4, truth).graph.degrees[u])
            assert mean_of(column, 4, truth, channel) == pytest.approx(expected, abs=1e-9)
            column = [float(x[u]) for x in corners]
            mean = mean_of(column, 4, truth, channel)
            assert mean == pytest.approx(at[u], abs=1e-8)
            variance = mean_of([x * x for x in column], 4, truth, channel) - mean**2
            column = [float(x[u]) for x in spreads]
            assert mean_of(column, 4, truth, channel) == pytest.approx(variance, rel=1e-6)


def triangles_at(sums: GraphSums) -> list[int]:
    edges = {tuple(pair) for pair in sums.graph.pairs().tolist()}
    n = sums.graph.n
    triples = [
        t for t in itertools.combinations(range(n), 3) if set(itertools.combinations(t, 2)) <= edges
    ]
    return [sum(u in t for t in triples) for u in range(n)]
