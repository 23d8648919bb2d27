"""Tier 0 of the local answers ``paper``: every own graph, every release, every owner."""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from silograph.dp.channel import Channel
from silograph.errors import ArgumentError
from silograph.estimators.release import Release
from silograph.graph.bits import BitRows
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.methods.featplus.answer import local_triples, local_value
from silograph.methods.featplus.noise import STEPS, paper_sensitivity
from tests.estimators.federations import PAPER, motifs, naive_local
from tests.estimators.tiny import CHANNELS, all_graphs, graph, outcomes, pairs_of
from tests.sampled import sampled

NODES = range(4)


@cache
def answers(query: str, k: int | None, channel: Channel) -> dict[tuple[int, int], list[Fraction]]:
    """What the product says: by own graph and release, the answer for each node."""
    nodes = [np.array([u], dtype=np.uint32) for u in NODES]
    return {
        (held, noisy): [
            local_value(query, graph(4, held).graph, graph(4, noisy).graph, channel, u, k)
            for u in nodes
        ]
        for held in all_graphs(4)
        for noisy in all_graphs(4)
    }


@pytest.mark.slow
@pytest.mark.parametrize(("query", "k"), sampled(PAPER, 0))
def test_answers_are_products_of_weights(query: str, k: int | None) -> None:
    channel = CHANNELS[1]
    for (held, noisy), found in answers(query, k, channel).items():
        if (held + noisy) % 5 == 0:
            expected = [naive_local(query, k, channel, 4, held, noisy, u) for u in NODES]
            assert found == expected, (held, noisy)


@pytest.mark.slow
@pytest.mark.parametrize(
    "channel", [pytest.param(CHANNELS[1], marks=pytest.mark.whole), CHANNELS[2]], ids=str
)
@pytest.mark.parametrize(("query", "k"), sampled(PAPER, 0))
def test_unbiased_for_every_holder_set_and_every_owner(
    query: str, k: int | None, channel: Channel
) -> None:
    """For every union, every part of it that an owner may hold, and every node: the mean over all
    releases is the truth. Sums over nodes are then right for every owner map of any m silos."""
    table = answers(query, k, channel)
    # Over one denominator, so that the sums are of integers.
    den = math.lcm(*(x.denominator for found in table.values() for x in found))
    whole = np.array(
        [[[int(x * den) for x in table[h, y]] for y in all_graphs(4)] for h in all_graphs(4)],
        dtype=object,
    )
    for truth in all_graphs(4):
        law = [p for _, p in outcomes(4, truth, channel)]
        common = math.lcm(*(p.denominator for p in law))
        weights = np.array([int(p * common) for p in law], dtype=object)
        held = [h for h in all_graphs(4) if not h & ~truth]
        means = np.einsum("y,hyu->hu", weights, whole[held])
        exact = [
            sum(
                all(truth >> pairs_of(4).index(p) & 1 for p in pairs)
                for owner, pairs in motifs(query, k, 4)
                if owner == u
            )
            for u in NODES
        ]
        assert (means == np.array(exact, dtype=object) * den * common).all(), truth


@pytest.mark.slow
@pytest.mark.parametrize(
    "channel", [CHANNELS[1], pytest.param(CHANNELS[2], marks=pytest.mark.whole)], ids=str
)
@pytest.mark.parametrize(("query", "k"), PAPER)
def test_joint_sensitivity_of_all_silos(query: str, k: int | None, channel: Channel) -> None:
    """All releases, all owner maps of two and of three silos, all holder sets of the edge, and all
    that the holders may hold besides. The worst case of each silo is found by itself: silos that
    do not hold the edge do not change, so that the worst is where all hold it."""
    table = answers(query, k, channel)
    den = math.lcm(*(x.denominator for found in table.values() for x in found))
    delta = paper_sensitivity(query, k, channel, 4)
    per_node = np.array(
        [[[int(x * den) for x in table[h, y]] for y in all_graphs(4)] for h in all_graphs(4)]
    )
    subsets = np.array(list(itertools.product((0, 1), repeat=4)))
    exact = per_node @ subsets.T  # by own graph, release, and the set of nodes that are owned
    steps = np.vectorize(lambda x: round(Fraction(int(x), den) / delta * STEPS), otypes=[int])(
        exact
    )
    nearest = Fraction(0)
    for bit in range(6):
        holds = np.array([h for h in all_graphs(4) if h >> bit & 1])
        change = np.abs(exact[holds] - exact[holds & ~(1 << bit)]).max(axis=0)
        moved = np.abs(steps[holds] - steps[holds & ~(1 << bit)]).max(axis=0)
        for m in (2, 3):
            for owners in itertools.product(range(m), repeat=4):
                places = [int("".join(str(int(o == i)) for o in owners), 2) for i in range(m)]
                joint = Fraction(int(change[:, places].sum(axis=1).max()), den)
                assert joint <= delta
                nearest = max(nearest, joint / delta)
                assert moved[:, places].sum(axis=1).max() <= STEPS + m
    # No smaller bound would do: some release, owners and holders reach it.
    assert nearest == 1


def test_smallest_nodes_and_kinds() -> None:
    """The kernel's kinds of triples, on a graph large enough for whole registers."""
    rng = np.random.default_rng(5)
    n = 140
    upper = np.triu(rng.random((n, n)), 1)
    held_pairs = np.argwhere((upper > 0) & (upper < 0.1)).astype(np.uint32)
    noisy_pairs = np.argwhere(np.triu(rng.random((n, n)) < 0.4, 1)).astype(np.uint32)
    held, noisy = BitRows.from_pairs(n, held_pairs), BitRows.from_pairs(n, noisy_pairs)
    owned = np.flatnonzero(rng.random(n) < 0.3).astype(np.uint32)
    kind = held.bits(slice(0, n)).astype(int)
    kind = np.where(kind == 1, 2, noisy.bits(slice(0, n)).astype(int))
    expected = np.zeros((4, 4), dtype=int)
    for u in owned:
        for v in range(int(u) + 1, n):
            for w in range(v + 1, n):
                kinds = [kind[u, v], kind[u, w], kind[v, w]]
                expected[kinds.count(2), kinds.count(1)] += 1
    assert local_triples(held, noisy, owned) == expected.tolist()


def test_nothing_held_is_the_release_itself(facebook: BitRows) -> None:
    """Without edges of their own all owners together say what the release says."""
    n = facebook.n
    silo = Silo.from_edges(NodeUniverse.range(n), facebook.pairs())
    release = Release.draw(silo, Channel.symmetric(1.0), 3)
    everyone = np.arange(n, dtype=np.uint32)
    nothing = BitRows.from_pairs(n, np.empty((0, 2), dtype=np.uint32))
    for query, k in (("triangles", None), ("kstars", 2)):
        options = {} if k is None else {"k": k}
        parts = [
            local_value(query, nothing, release.graph, release.channel, nodes, k)
            for nodes in (everyone[::3], everyone[1::3], everyone[2::3])
        ]
        assert float(sum(parts)) == getattr(release, query)(**options).value
        # Where nothing is noisy, an owner's own edges add nothing to what the release says.
        knows = local_value(query, facebook, facebook, Channel(1, 0), everyone, k)
        assert knows == (facebook.triangles if k is None else facebook.wedges)


def test_other_queries_have_no_such_answer() -> None:
    none = graph(4, 0).graph
    with pytest.raises(ArgumentError, match="local='paper' does not answer edges"):
        local_value("edges", none, none, CHANNELS[0], np.array([0], dtype=np.uint32))
    with pytest.raises(ArgumentError, match="local='paper' does not answer edges of 4"):
        paper_sensitivity("edges", None, CHANNELS[0], 4)
    with pytest.raises(ArgumentError, match="triangles of 2 nodes"):
        paper_sensitivity("triangles", None, CHANNELS[0], 2)
