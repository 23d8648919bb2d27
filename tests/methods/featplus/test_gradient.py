"""Tier 0 of the local answers ``gradient``: every release, every pair, in exact fractions."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from silograph.dp.channel import Channel
from silograph.errors import ArgumentError
from silograph.estimators.gradient import gradient
from silograph.estimators.release import Release
from silograph.graph.bits import BitRows
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.methods.featplus.answer import (
    default_bound,
    gradient_report,
    gradient_terms,
    node_owners,
    owned_nodes,
    owned_pairs,
)
from silograph.methods.featplus.noise import STEPS, gradient_sensitivity, largest_change
from tests.estimators.federations import GRADIENT, naive_gradient
from tests.estimators.tiny import CHANNELS, all_graphs, graph, outcomes, pairs_of
from tests.sampled import sampled

FOUR = np.array(pairs_of(4), dtype=np.uint32)
FIVE = np.array(pairs_of(5), dtype=np.uint32)


def clip(x: Fraction, bound: Fraction) -> Fraction:
    return max(-bound, min(bound, x))


@pytest.mark.parametrize("channel", CHANNELS, ids=str)
@pytest.mark.parametrize(("query", "k"), GRADIENT)
def test_gradients_are_those_of_the_motifs(query: str, k: int | None, channel: Channel) -> None:
    for noisy in all_graphs(4):
        found = gradient(query, graph(4, noisy).graph, channel, FOUR, k)
        exact = [naive_gradient(query, k, channel, 4, noisy, pair) for pair in pairs_of(4)]
        assert found == pytest.approx([float(x) for x in exact], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("query", "k"), [*GRADIENT, ("kstars", 4)])
def test_gradients_on_five_nodes(query: str, k: int | None) -> None:
    channel = CHANNELS[1]
    for noisy in range(0, 1 << 10, 37):
        found = gradient(query, graph(5, noisy).graph, channel, FIVE, k)
        exact = [naive_gradient(query, k, channel, 5, noisy, pair) for pair in pairs_of(5)]
        assert found == pytest.approx([float(x) for x in exact], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("query", "k"), [*GRADIENT, ("kstars", 4)])
def test_a_gradient_does_not_look_at_its_own_bit(query: str, k: int | None) -> None:
    """Not even in the last digit: otherwise rounding could."""
    channel = CHANNELS[4]
    for noisy, bit in itertools.product(range(0, 1 << 10, 29), range(10)):
        one, other = (
            gradient(query, graph(5, y).graph, channel, FIVE[bit : bit + 1], k)
            for y in (noisy | 1 << bit, noisy & ~(1 << bit))
        )
        assert one.tolist() == other.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("channel", sampled(CHANNELS, 1, 2), ids=str)
@pytest.mark.parametrize(("query", "k"), GRADIENT)
def test_every_term_has_the_mean_zero(query: str, k: int | None, channel: Channel) -> None:
    """For every union and every edge of it: so all sums have, whoever holds and owns what. In exact
    fractions for the formula, and to half a unit for the integers that are reported; with a bound
    that cuts nearly all, some, and none."""
    for bound in (Fraction(1, 8), Fraction(2), Fraction(1000)):
        unit = gradient_sensitivity(channel, float(bound)) / STEPS
        units = [
            gradient_terms(query, graph(4, y).graph, channel, FOUR, float(bound), k).tolist()
            for y in all_graphs(4)
        ]
        for y, terms in enumerate(units):
            for i, pair in enumerate(pairs_of(4)):
                slope = clip(naive_gradient(query, k, channel, 4, y, pair), bound)
                exact = (1 - (channel.alpha if y >> i & 1 else channel.beta)) * slope
                assert abs(terms[i] * unit - exact) <= unit * Fraction(51, 100)
                assert abs(terms[i]) <= STEPS
        for truth in range(1, 64, 7):
            law = list(outcomes(4, truth, channel))
            for i, pair in enumerate(pairs_of(4)):
                if truth >> i & 1:
                    mean = sum(p * units[y][i] for y, p in law)
                    assert abs(mean) <= Fraction(51, 100)
                    exact = sum(
                        p
                        * (1 - (channel.alpha if y >> i & 1 else channel.beta))
                        * clip(naive_gradient(query, k, channel, 4, y, pair), bound)
                        for y, p in law
                    )
                    assert exact == 0


def bias(rule: Callable[[list[Fraction], int], Fraction], channel: Channel) -> Fraction:
    """The mean of all reports for triangles on K4, with a bound that a rule makes of the absolute
    gradients and the place of the pair."""
    total = Fraction(0)
    for y, p in outcomes(4, 63, channel):
        slopes = [naive_gradient("triangles", None, channel, 4, y, pair) for pair in pairs_of(4)]
        for i, slope in enumerate(slopes):
            kappa = rule([abs(x) for x in slopes], i)
            a = channel.alpha if y >> i & 1 else channel.beta
            total += p * (1 - a) * clip(slope, kappa)
    return total


def test_a_bound_from_the_whole_release_is_biased() -> None:
    """The median gradient of a release knows of every bit: with it K4 loses 1.5 triangles. A bound
    that looks at all but the pair's own bit, and one that looks at none, lose nothing."""
    channel = Channel("3/4", "1/4")
    assert round(float(bias(lambda slopes, _: sorted(slopes)[3], channel)), 2) == -1.52
    assert bias(lambda slopes, i: slopes[i] / 2, channel) == 0
    degrees = [[1, 2, 0, 3], [2, 1, 3, 0]]
    ours = Fraction(default_bound("triangles", degrees, Fraction(2), channel, 4))
    assert bias(lambda _slopes, _i: ours, channel) == 0


@pytest.mark.parametrize("channel", CHANNELS[:3], ids=str)
@pytest.mark.parametrize(("query", "k"), GRADIENT)
@pytest.mark.parametrize("silos", sampled([2, 3], 0))
def test_joint_sensitivity_of_all_silos(
    query: str, k: int | None, channel: Channel, silos: int
) -> None:
    """Every release, every owner map, every holder set of the edge: together the reports change by
    2^30 units at most, and somewhere by a quarter of that."""
    rest = [[0, 1, 4], [2, 3], [0, 5]]  # what the silos hold besides
    holders = [h for r in range(1, silos + 1) for h in itertools.combinations(range(silos), r)]
    releases = [graph(4, noisy).graph for noisy in all_graphs(4)]
    terms = np.array([gradient_terms(query, y, channel, FOUR, 1.5, k) for y in releases])
    index = {pair: i for i, pair in enumerate(pairs_of(4))}
    nearest = 0
    for owners in itertools.product(range(silos), repeat=4):
        for bit in range(6):
            changes = []
            for place in range(silos):
                without = [b for b in rest[place] if b != bit]
                reports = []
                for held in (sorted([*without, bit]), without):
                    pairs = owned_pairs(np.array(owners, dtype=np.uint8), place, FOUR[held])
                    counted = [index[int(u), int(v)] for u, v in pairs]
                    reports.append(terms[:, counted].sum(axis=1))
                changes.append(np.abs(reports[0] - reports[1]))
            for having in holders:
                joint = np.sum([changes[place] for place in having], axis=0)
                assert joint.max() <= STEPS
                nearest = max(nearest, int(joint.max()))
    assert nearest >= STEPS / 4


def test_reports_are_sums_of_terms() -> None:
    channel, release = CHANNELS[1], graph(4, 0b101101).graph
    for query, k in GRADIENT:
        terms = gradient_terms(query, release, channel, FOUR[1:], 1.0, k)
        assert gradient_report(query, release, channel, FOUR[1:], 1.0, k) == terms.sum()
        assert gradient_report(query, release, channel, FOUR[:0], 1.0, k) == 0


def test_huge_gradients_are_clipped(facebook: BitRows) -> None:
    """A gradient beyond a float's range counts as the bound, with its sign."""
    channel = Channel("3/4", "1/4")
    pairs = facebook.pairs()[:6]
    for bound in (5e-324, 1.0, 1e290):
        terms = gradient_terms("kstars", facebook, channel, pairs, bound, 400)
        most = STEPS * abs(1 - channel.alpha) / largest_change(channel)
        assert np.abs(terms).max() == round(most)


class TestBound:
    CHANNEL = Channel.symmetric(1.0)

    def test_it_is_what_the_gradients_are_like(self, facebook: BitRows) -> None:
        """Between the median and the largest gradient of the graph's edges."""
        silo = Silo.from_edges(NodeUniverse.range(facebook.n), facebook.pairs())
        release = Release.draw(silo, self.CHANNEL, 1).graph
        degrees = [facebook.degrees.tolist(), [0] * facebook.n]
        for query, k in (("triangles", None), ("kstars", 2), ("kstars", 3), ("four_cycles", None)):
            slopes = np.abs(gradient(query, release, self.CHANNEL, facebook.pairs()[::20], k))
            bound = default_bound(query, degrees, Fraction(1), self.CHANNEL, facebook.n, k)
            assert np.median(slopes) < bound < slopes.max(), query

    def test_it_depends_on_public_numbers_alone(self) -> None:
        assert default_bound("edges", [[1, 1], [0, 0]], Fraction(1), self.CHANNEL, 2) == 1.0
        # Whatever a silo sends, there is a bound.
        for wild in (10**60, -(10**60)):
            for query, k in GRADIENT[1:]:
                bound = default_bound(query, [[wild] * 9, [0] * 9], Fraction(5), self.CHANNEL, 9, k)
                assert 0 < bound < math.inf
        with pytest.raises(ArgumentError, match="local='gradient' does not answer clustering"):
            default_bound("clustering", [[1] * 9] * 2, Fraction(5), self.CHANNEL, 9)
        with pytest.raises(ArgumentError, match="exceeds a float"):
            default_bound("kstars", [[9000] * 9999] * 2, Fraction(5), self.CHANNEL, 9999, 3000)

    def test_unknown_queries(self) -> None:
        release = graph(4, 7).graph
        for query, k in (("clustering", None), ("kstars", None), ("edges", 2)):
            with pytest.raises(ArgumentError, match="local='gradient' does not answer"):
                gradient(query, release, self.CHANNEL, FOUR, k)


class TestOwners:
    def test_each_node_has_one_owner_the_first_of_equals(self) -> None:
        for degrees in itertools.product(range(3), repeat=3):
            (owner,) = node_owners([[d] for d in degrees])
            assert owner == degrees.index(max(degrees))
            assert [len(owned_nodes(np.array([owner]), i)) for i in range(3)].count(1) == 1

    def test_nodes_that_nobody_has_are_owned(self) -> None:
        assert node_owners(np.array([[-3, 0], [-2, 0]])).tolist() == [1, 0]

    def test_wild_numbers_of_one_silo_spoil_no_others(self) -> None:
        assert node_owners([[2**200, 1, 5], [3, 2**63, -(2**70)]]).tolist() == [0, 1, 0]

    def test_a_pair_belongs_to_its_smaller_node(self) -> None:
        owners = node_owners([[1, 0, 0, 1], [0, 1, 1, 0]])
        assert owned_pairs(owners, 0, FOUR).tolist() == [[0, 1], [0, 2], [0, 3]]
        assert owned_pairs(owners, 1, FOUR).tolist() == [[1, 2], [1, 3], [2, 3]]

    def test_tables_that_are_none(self) -> None:
        for wrong in ([], [1, 2], np.zeros((65, 3), dtype=np.int64)):
            with pytest.raises(ArgumentError, match="one noisy degree"):
                node_owners(wrong)  # type: ignore[arg-type]
