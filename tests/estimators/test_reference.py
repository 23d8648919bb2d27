"""Outlines: exact where a graph is known, and near where little is."""

import math

import numpy as np
import pytest

from silograph import Release, clustered_power_law, errors
from silograph.dp.channel import Channel
from silograph.estimators.cycles import four_cycles_variance
from silograph.estimators.degrees import edges_variance
from silograph.estimators.pair_sums import GraphSums
from silograph.estimators.reference import Reference, guess, reference_of, reference_of_release
from silograph.estimators.stars import kstars_variance
from silograph.estimators.triangles import triangles_variance
from silograph.graph.bits import BitRows

CHANNELS = [Channel.symmetric(2.0), Channel("20/21", "1/15"), Channel("2/3", "1/4")]
#: A query, its k, and how far a guess from all the numbers may be from the truth.
QUERIES = [("edges", None), ("kstars", 2), ("kstars", 3), ("triangles", None)]


@pytest.fixture(scope="module")
def known() -> BitRows:
    graph = clustered_power_law(300, 6, seed=3)
    return BitRows.from_pairs(300, graph.pairs)


@pytest.mark.parametrize("channel", CHANNELS)
def test_of_a_known_graph_the_noise_is_exact(known: BitRows, channel: Channel) -> None:
    reference, truth, w = reference_of(known), GraphSums(known), channel.weights
    expected = {
        ("edges", None): edges_variance(known, channel),
        ("kstars", 1): kstars_variance(known, channel, 1),
        ("kstars", 2): kstars_variance(known, channel, 2),
        ("kstars", 3): kstars_variance(known, channel, 3),
        ("triangles", None): triangles_variance(truth, channel),
        ("four_cycles", None): four_cycles_variance(truth, channel),
    }
    for (query, k), variance in expected.items():
        assert reference.noise(query, w, k) == pytest.approx(math.sqrt(variance), rel=1e-9)


def test_counts_of_a_known_graph(known: BitRows) -> None:
    reference = reference_of(known)
    assert reference.count("edges") == known.edges
    assert reference.count("degrees") == pytest.approx(2 * known.edges / 300)
    assert reference.count("kstars", 3) == sum(math.comb(d, 3) for d in known.degrees.tolist())
    assert reference.count("triangles") == known.triangles
    assert reference.count("four_cycles") == known.four_cycles
    assert reference.count("clustering") == pytest.approx(3 * known.triangles / known.wedges)


def test_gradients_count_what_an_edge_adds(known: BitRows) -> None:
    """Σ over the edges of what each is part of counts a motif once for each of its edges."""
    reference = reference_of(known)
    total = {
        query: float(reference.sample.weights @ reference.gradients(query, k))
        for query, k in [("edges", None), ("kstars", 3), ("triangles", None), ("four_cycles", None)]
    }
    assert total["edges"] == known.edges
    assert total["kstars"] == pytest.approx(3 * reference.count("kstars", 3))
    assert total["triangles"] == pytest.approx(3 * known.triangles)
    assert total["four_cycles"] == pytest.approx(4 * known.four_cycles)


@pytest.mark.whole
def test_the_ratio_has_the_error_that_draws_show(known: BitRows) -> None:
    channel = Channel.symmetric(4.0)
    graph = clustered_power_law(300, 6, seed=3)
    values = [Release.draw(graph, channel, seed).clustering().value for seed in range(400)]
    predicted = reference_of(known).noise("clustering", channel.weights)
    assert predicted == pytest.approx(float(np.std(values)), rel=0.15)


def near(reference: Reference, known: BitRows, factor: float) -> None:
    """Within a factor, both the answers and their errors."""
    exact, w = reference_of(known), Channel.symmetric(2.0).weights
    for query, k in QUERIES:
        for found, right in (
            (reference.count(query, k), exact.count(query, k)),
            (reference.noise(query, w, k), exact.noise(query, w, k)),
        ):
            assert 1 / factor <= found / right <= factor, (query, k, found, right)


@pytest.mark.whole
def test_a_guess_from_the_main_numbers_is_near(facebook: BitRows) -> None:
    known = facebook
    reference = guess(
        known.n, known.edges, wedges=known.wedges, triangles=known.triangles, top_degree=1045
    )
    near(reference, known, 1.3)
    assert reference.top_degree == 1045


def test_a_release_suggests_the_outline(known: BitRows) -> None:
    graph = clustered_power_law(300, 6, seed=3)
    near(reference_of_release(Release.draw(graph, Channel.symmetric(5.0), 1)), known, 1.25)


def test_a_release_that_is_all_noise_still_gives_an_outline() -> None:
    graph = clustered_power_law(60, 2, seed=1)
    for seed in range(10):
        reference = reference_of_release(Release.draw(graph, Channel("51/100", "49/100"), seed))
        assert reference.noise("triangles", Channel.symmetric(1.0).weights) > 0


@pytest.mark.parametrize("nodes", [3, 4, 7, 50, 100_000])
def test_a_guess_from_the_nodes_alone(nodes: int) -> None:
    reference, w = guess(nodes, cycles=False), Channel.symmetric(1.0).weights
    assert "8 edges per node" in reference.source
    assert reference.top_degree < nodes
    for query, k in [*QUERIES, ("degrees", None)]:
        assert reference.count(query, k) >= 0
        assert reference.noise(query, w, k) > 0


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"nodes": 2}, "nodes"),
        ({"nodes": True}, "nodes"),
        ({"nodes": 10, "edges": 46}, "edges"),
        ({"nodes": 10, "edges": -1}, "edges"),
        ({"nodes": 10, "edges": math.nan}, "edges"),
        ({"nodes": 10, "triangles": 121}, "triangles"),
        ({"nodes": 10, "top_degree": 10}, "top_degree"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, float], named: str) -> None:
    with pytest.raises(errors.ArgumentError, match=named):
        guess(**given)  # type: ignore[arg-type]
