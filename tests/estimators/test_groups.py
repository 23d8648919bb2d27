"""Tier 0 for groups of nodes: every noisy graph, exact means and variances; and the numbers of
NetworkX where there is no noise."""

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from silograph import Channel, NodeUniverse, Release, clustered_power_law
from silograph.errors import ArgumentError, UniverseError
from silograph.estimators.groups import (
    ASSORTATIVITY,
    MODULARITY,
    GroupCounts,
    Groups,
    between_variance_estimate,
    triangles_by_group,
)
from silograph.estimators.inversion import count_limits
from silograph.estimators.pair_sums import GraphSums
from tests import limits
from tests.estimators.tiny import CHANNELS, all_graphs, graph, law

Array = np.ndarray[Any, np.dtype[np.float64]]
FORMS = [(1, 0, 1), (0, 1, 0), (0, 1, 1), (2, 3, -1)]
ASYMMETRIC = [CHANNELS[1], CHANNELS[2]]


def groups(*labels: int) -> Groups:
    names = tuple("abcd"[: max(labels) + 1])
    return Groups(names, np.array(labels, dtype=np.uint32))


PARTITIONS = [groups(0, 0, 1, 1), groups(0, 0, 0, 1), groups(0, 1, 2, 1)]


def moments(n: int, channel: Channel, values: Any) -> tuple[Array, Array]:
    """The mean and the variance of a value, for every true graph."""
    p, found = law(n, channel), np.array(values, dtype=np.float64)
    mean = p @ found
    return mean, p @ found**2 - mean**2


def counted(n: int, partition: Groups) -> list[GroupCounts]:
    return [GroupCounts(graph(n, bits).graph, partition) for bits in all_graphs(n)]


@pytest.mark.parametrize("channel", ASYMMETRIC, ids=str)
@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda p: str(p.labels))
def test_edges_and_degrees_by_group(partition: Groups, channel: Channel) -> None:
    counts, w = counted(4, partition), channel.weights
    mean, spread = moments(4, channel, [each.edges(w) for each in counts])
    assert mean == pytest.approx(np.array([each.ones for each in counts]), abs=1e-9)
    exact = np.array([each.noise(w, each.ones.astype(float)) for each in counts])
    assert spread == pytest.approx(exact, abs=1e-9)
    mean, spread = moments(4, channel, [each.degree_sums(w)[0] for each in counts])
    for bits, each in enumerate(counts):
        degrees = graph(4, bits).graph.degrees
        sums = np.bincount(partition.labels, degrees, each.count)
        assert mean[bits] == pytest.approx(sums, abs=1e-9)
        noise = sum(
            exact[bits][t] * ((each.rows[t] == g) * 1.0 + (each.columns[t] == g)) ** 2
            for t in range(len(each.pairs))
            for g in [np.arange(each.count)]
        )
        assert spread[bits] == pytest.approx(noise, abs=1e-9)


@pytest.mark.parametrize("channel", ASYMMETRIC, ids=str)
@pytest.mark.parametrize(
    ("n", "partition"),
    [
        (4, PARTITIONS[0]),
        (4, PARTITIONS[2]),
        pytest.param(5, groups(0, 0, 1, 1, 1), marks=pytest.mark.whole),
    ],
    ids=["2+2", "1+2+1", "2+3"],
)
def test_quadratic_forms(n: int, partition: Groups, channel: Channel) -> None:
    """The form, its variance and the estimate of its variance: all without bias."""
    counts, w = counted(n, partition), channel.weights
    for form in FORMS:
        mean, spread = moments(n, channel, [each.form_value(form, w) for each in counts])
        estimated, _ = moments(n, channel, [each.form_variance(form, w) for each in counts])
        p, q, r = form
        truth = []
        for each in counts:
            whole, inside = each.ones.sum(), each.ones[each.inside].sum()
            sums = each.by_group(each.ones.astype(float))
            truth.append(p * whole * inside + q * whole**2 - r * (sums @ sums) / 4)
        assert mean == pytest.approx(np.array(truth), abs=1e-7)
        exact = np.array([each.form_noise(form, w) for each in counts])
        assert spread == pytest.approx(exact, rel=1e-7, abs=1e-7)
        assert estimated == pytest.approx(exact, rel=1e-7, abs=1e-7)
        assert counts[0].form_floor(form, w) == pytest.approx(exact[0], rel=1e-9)


@pytest.mark.parametrize("channel", ASYMMETRIC, ids=str)
@pytest.mark.parametrize("partition", PARTITIONS[:2], ids=lambda p: str(p.labels))
def test_triangles_by_group(partition: Groups, channel: Channel) -> None:
    members = [partition.members(place) for place in range(len(partition.names))]
    values, variances = [], []
    for bits in all_graphs(4):
        noisy = graph(4, bits)
        values.append(triangles_by_group(noisy, channel, partition)[0])
        parts = [GraphSums(noisy.graph.induced(nodes)) for nodes in members]
        variances.append(between_variance_estimate(noisy, channel, members, parts))
    mean, spread = moments(4, channel, values)
    for bits in all_graphs(4):
        whole = graph(4, bits).graph
        inside = [whole.induced(nodes).triangles for nodes in members]
        assert mean[bits] == pytest.approx([*inside, whole.triangles - sum(inside)], abs=1e-8)
    estimated, _ = moments(4, channel, variances)
    assert estimated == pytest.approx(spread[:, -1], rel=1e-8, abs=1e-8)


def test_limits_hold_every_number_of_edges() -> None:
    """Exactly: for every number of edges among a few pairs, with at least 95 %."""
    for channel in (*ASYMMETRIC, Channel(1, "1/4")):
        for pairs in (1, 3, 12):
            seen = np.arange(pairs + 1)
            low, high = count_limits(seen, np.full_like(seen, pairs), channel)
            for edges in range(pairs + 1):
                shown = stats.binom(edges, float(channel.p11)).pmf(range(edges + 1))
                false = stats.binom(pairs - edges, float(channel.p01)).pmf(range(pairs - edges + 1))
                inside = (low <= edges) & (edges <= high)
                assert np.convolve(shown, false) @ inside >= 0.95


def test_limits_of_many_pairs_are_normal() -> None:
    channel = Channel.symmetric(1.0)
    low, high = count_limits(np.array([300_000]), np.array([1_000_000]), channel, 0.9)
    middle = (low[0] + high[0]) / 2
    assert middle == pytest.approx(float(channel.weights.gamma) * 3e5 + float(channel.beta) * 1e6)
    exact = 1.6449 * math.sqrt(float(channel.weights.v0) * 1e6)
    assert (high[0] - low[0]) / 2 == pytest.approx(exact, rel=1e-3)


def test_the_numbers_of_networkx() -> None:
    graph = clustered_power_law(80, 4, seed=1)
    release = Release.draw(graph, Channel(1, 0), seed=1)
    table = {node: node % 3 if node < 60 else 5 for node in range(80)}
    known = nx.Graph()
    known.add_nodes_from(range(80))
    known.add_edges_from(graph.pairs.tolist())
    nx.set_node_attributes(known, table, "group")
    parts = [{u for u in table if table[u] == g} for g in sorted(set(table.values()))]
    mixing = nx.attribute_mixing_matrix(known, "group", normalized=False)
    found = release.mixing(table).value
    assert found + np.diag(np.diag(found)) == pytest.approx(mixing)
    assort = nx.attribute_assortativity_coefficient(known, "group")
    assert release.assortativity(table).value == pytest.approx(assort)
    assert release.modularity(table).value == pytest.approx(nx.community.modularity(known, parts))
    inside = [sum(nx.triangles(known.subgraph(part)).values()) // 3 for part in parts]
    between = sum(nx.triangles(known).values()) // 3 - sum(inside)
    assert release.triangles_by(table).value.tolist() == [*inside, between]
    means = [sum(known.degree(u) for u in part) / len(part) for part in parts]
    assert release.degrees_by(table).value == pytest.approx(means)
    assert release.mixing(table).at("5", "0").value == found[0, 3]


@pytest.mark.whole
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_intervals_hold_the_truth(epsilon: float) -> None:
    graph = clustered_power_law(100, 4, seed=2)
    table = {node: "early" if node < 20 else "late" for node in range(100)}
    exact = Release.draw(graph, Channel(1, 0), seed=1)
    channel = Channel.symmetric(epsilon)
    draws = [Release.draw(graph, channel, seed) for seed in range(300)]
    asked = (
        Release.mixing,
        Release.degrees_by,
        Release.triangles_by,
        Release.assortativity,
        Release.modularity,
    )
    for ask in asked:
        truth = ask(exact, table).value
        ends = [ask(each, table).interval for each in draws]
        kept = np.array([(low <= truth) & (truth <= high) for low, high in ends])
        for column in kept.reshape(len(draws), -1).T:
            assert limits.least_coverage(int(column.sum()), len(draws)) >= 0.86, ask.__name__


def test_groups_that_are_refused() -> None:
    universe = NodeUniverse(list("abcd"))
    with pytest.raises(UniverseError, match="2 of 4 nodes have no group \\(c, d\\)"):
        Groups.of({"a": 1, "b": 2}, universe)
    with pytest.raises(UniverseError, match="'x' is not in the universe"):
        Groups.of({"x": 1}, universe, rest="other")
    with pytest.raises(ArgumentError, match="a dict"):
        Groups.of([1, 2], universe)  # type: ignore[arg-type]
    found = Groups.of({"a": 10, "b": 9}, universe, rest="other")
    assert found.names == ("9", "10", "other")
    many = NodeUniverse.range(1001)
    with pytest.raises(ArgumentError, match="1,001 groups"):
        Groups.of({node: node for node in range(1001)}, many)


def test_ratios_say_when_they_say_nothing() -> None:
    counts = GroupCounts(graph(4, 0).graph, groups(0, 0, 1, 1))
    for ratio in (ASSORTATIVITY, MODULARITY):
        assert counts.ratio(ratio, Channel("11/20", "9/20").weights).ends(-1.0, 1.0) is None
