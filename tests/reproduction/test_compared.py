"""feat+ as printed beside ours, the comparison of methods, and silos that are communities."""

import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import silograph as sg
from reproduction.compared import METHODS, compare
from reproduction.federations import communities, community_split
from reproduction.printed import (
    meant_release,
    printed_featplus,
    printed_local_kstars,
    printed_local_triangles,
    release_epsilon,
)
from silograph.dp.channel import Channel
from silograph.errors import ArgumentError
from silograph.methods.featplus.answer import local_kstars, local_triangles
from tests.estimators.tiny import graph, outcomes

GRAPH = sg.clustered_power_law(150, edges_per_node=6, seed=3)
SILOS = sg.split(GRAPH, 4, seed=2)
EVERYONE = np.arange(4, dtype=np.uint32)


def mean(truth: int, held: int, channel: Channel, local: object) -> Fraction:
    """Of one silo's answer, over all releases, where it owns all nodes."""
    total = Fraction(0)
    for noisy, p in outcomes(4, truth, channel):
        total += p * local(graph(4, held).graph, graph(4, noisy).graph)  # type: ignore[operator]
    return total


def test_printed_triangles_are_biased_and_ours_are_not() -> None:
    """K4, of which a silo that owns every node holds two edges, three, or all."""
    channel = Channel("4/5", "1/5")
    for held in (0b000011, 0b001011, 0b111111):
        ours = mean(63, held, channel, lambda h, y: local_triangles(h, y, channel, EVERYONE))
        assert ours == 4
        printed = mean(
            63, held, channel, lambda h, y: printed_local_triangles(h, y, EVERYONE, channel.p01)
        )
        assert abs(printed - 4) > Fraction(1, 2)
    # Without own edges only Proposition 4 is at work, and that one is right.
    printed = mean(
        63, 0, channel, lambda h, y: printed_local_triangles(h, y, EVERYONE, channel.p01)
    )
    assert printed == 4


def test_printed_stars_are_biased_and_ours_are_not() -> None:
    channel = Channel("4/5", "1/5")
    ours = mean(63, 0b11, channel, lambda h, y: local_kstars(h, y, channel, EVERYONE, 2))
    assert ours == 12
    for per_node in (False, True):
        printed = mean(
            63,
            0b11,
            channel,
            lambda h, y, per_node=per_node: printed_local_kstars(
                h, y, EVERYONE, channel.p01, 2, per_node=per_node
            ),
        )
        assert abs(printed - 12) > 1
    # One binomial of everybody's degrees, even where nothing is noisy: C(12, 2), not 4·C(3, 2).
    whole = graph(4, 63).graph
    assert printed_local_kstars(whole, whole, EVERYONE, Fraction(0), 2) == 66
    assert printed_local_kstars(whole, whole, EVERYONE, Fraction(0), 2, per_node=True) == 12


def test_printed_runs_as_a_whole() -> None:
    noisy = meant_release(sg.union(SILOS), release_epsilon(3.0), 1)
    for query, k in (("triangles", None), ("kstars", 2)):
        one = printed_featplus(SILOS, noisy, query, k, 3.0, seed=1)
        assert math.isfinite(one)
        assert printed_featplus(SILOS, noisy, query, k, 3.0, seed=1) == one
        assert printed_featplus(SILOS, noisy, query, k, 3.0, seed=2) != one
    for query, k in (("edges", None), ("kstars", None), ("triangles", 2)):
        with pytest.raises(ArgumentError, match="the paper prints"):
            printed_featplus(SILOS, noisy, query, k, 3.0, seed=1)


def test_methods_compared() -> None:
    for query, k in (("triangles", None), ("kstars", 2)):
        found = compare(SILOS, query, k, (6.0,), range(8))
        assert [one.method for one in found] == [method.name for method in METHODS]
        for one in found:
            assert one.values.shape == (8,)
            assert one.relative_error < 3
            assert 0.5 < one.ratio < 2
        again = compare(SILOS, query, k, (6.0,), range(8))
        assert [one.values.tolist() for one in again] == [one.values.tolist() for one in found]


class TestCommunities:
    def test_cliques_are_found(self) -> None:
        cliques = nx.connected_caveman_graph(6, 8)
        graph = sg.Silo.from_networkx(sg.NodeUniverse(range(48)), cliques)
        labels = communities(graph, seed=3)
        assert 3 <= len(set(labels.tolist())) <= 6
        assert all(len(set(labels[i : i + 7].tolist())) <= 2 for i in range(0, 48, 8))

    def test_silos_that_are_communities(self) -> None:
        silos = community_split(GRAPH, 3, seed=1)
        assert sum(len(silo) for silo in silos) == len(GRAPH)
        assert sg.union(silos) == GRAPH
        # A node's edges to larger nodes are all in one silo.
        at = [set(silo.pairs[:, 0].tolist()) for silo in silos]
        assert not (at[0] & at[1])
        assert not (at[0] & at[2])
        assert not (at[1] & at[2])
        again = community_split(GRAPH, 3, seed=1)
        assert list(again) == list(silos)

    def test_overlap(self) -> None:
        silos = community_split(GRAPH, 3, overlap=0.5, seed=1)
        assert sg.union(silos) == GRAPH
        assert 1.4 < sum(len(silo) for silo in silos) / len(GRAPH) < 1.6

    def test_arguments(self) -> None:
        with pytest.raises(ArgumentError, match="2 to 64"):
            community_split(GRAPH, 1)
        with pytest.raises(ArgumentError, match="overlap"):
            community_split(GRAPH, 3, overlap=1.5)
