"""Sums, differences and ratios of estimates: right errors, or an error that says why not."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from silograph import (
    Channel,
    Estimate,
    Federation,
    NodeUniverse,
    Provenance,
    Release,
    SealedRelease,
    Silo,
    clustered_power_law,
    split,
)
from silograph.errors import ArgumentError, SilographError
from silograph.estimators.compose import covariance
from silograph.methods.sealed.noise import SealedNoise
from tests import limits
from tests.estimators.tiny import CHANNELS, all_graphs, law, release

GRAPH = clustered_power_law(60, seed=1)
CHANNEL = Channel.symmetric(2.0)
ONE, TWO = (Release.draw(GRAPH, CHANNEL, seed=seed) for seed in (1, 2))
HALVES = {node: "a" if node < 30 else "b" for node in range(60)}
FOUR = {"0": "a", "1": "a", "2": "a", "3": "b"}

Asked = Callable[[Release], Estimate[float]]
#: Pairs of questions whose covariance is known.
KNOWN: dict[str, tuple[Asked, Asked]] = {
    "edges, 1-stars": (Release.edges, lambda r: r.kstars(1)),
    "edges, 2-stars": (Release.edges, lambda r: r.kstars(2)),
    "3-stars, edges": (lambda r: r.kstars(3), Release.edges),
    "edges, triangles": (Release.edges, Release.triangles),
    "triangles, 2-stars": (Release.triangles, lambda r: r.kstars(2)),
    "edges, edges of a group": (Release.edges, lambda r: r.mixing(FOUR).at("a", "a")),
    "groups": (lambda r: r.mixing(FOUR).at("a", "b"), lambda r: r.degrees_by(FOUR).at("b")),
    "degrees": (lambda r: r.degrees().at(0), lambda r: r.degrees().at(1)),
    "subset, edges": (lambda r: r.subset([0, 1, 2]).edges(), Release.edges),
    "subset, degree": (lambda r: r.subset([0, 1, 2]).degrees().at(1), lambda r: r.degrees().at(0)),
    "within a subset": (
        lambda r: r.subset([1, 2, 3]).edges(),
        lambda r: r.subset([1, 2, 3]).triangles(),
    ),
    "apart": (lambda r: r.subset([0, 1]).edges(), lambda r: r.subset([1, 2, 3]).triangles()),
}


@pytest.mark.parametrize("name", KNOWN)
def test_covariances_are_exact(name: str) -> None:
    """Tier 0: over all noisy graphs the estimated covariance is the true one on average."""
    channel, (ask, other) = CHANNELS[1], KNOWN[name]
    releases = [release(4, bits, channel) for bits in all_graphs(4)]
    answers = [(ask(each), other(each)) for each in releases]
    p = law(4, channel)
    left, right = (np.array([float(pair[i]) for pair in answers]) for i in (0, 1))
    truth = p @ (left * right) - (p @ left) * (p @ right)
    found = p @ np.array([covariance(*pair) for pair in answers])
    assert found == pytest.approx(truth, rel=1e-8, abs=1e-8)


def test_sums_over_independent_releases() -> None:
    one, two = ONE.edges(), TWO.edges()
    for found, value in ((one + two, 1.0), (one - two, -1.0)):
        assert found.value == pytest.approx(one.value + value * two.value)
        assert found.stderr == pytest.approx(math.hypot(one.stderr, two.stderr))
        low, high = found.interval  # the limits of few nodes are exact, and so a little wider
        assert high - low == pytest.approx(2 * 1.959964 * found.stderr, rel=0.02)
        assert high - low >= 2 * 1.959964 * found.stderr
    assert (one - two).epsilon == one.epsilon + two.epsilon
    assert float(one) == one.value
    assert str(one - two).startswith("edges − edges = ")


def test_what_is_the_same_cancels_exactly() -> None:
    again = Release.draw(GRAPH, CHANNEL, seed=1)
    for ask in (Release.edges, Release.triangles, Release.clustering, lambda r: r.kstars(4)):
        found = ask(ONE) - ask(again)
        assert (found.value, found.stderr, found.interval) == (0.0, 0.0, (0.0, 0.0))
        assert found.epsilon == ONE.epsilon
    twice = ONE.edges() + again.edges()
    assert twice.stderr == pytest.approx(2 * ONE.edges().stderr)
    sixfold = 3 * (ONE.edges() + again.edges()) - ONE.edges() * 5
    assert sixfold.stderr == pytest.approx(ONE.edges().stderr)
    assert sixfold.value == pytest.approx(ONE.edges().value)


def test_equal_numbers_are_not_the_same_answer() -> None:
    """Of two subsets, or two partitions whose groups have the same names: they vary apart."""
    alike = 0
    for seed in range(60):
        drawn = Release.draw(GRAPH, Channel.symmetric(1.0), seed=seed)
        some, others = (drawn.subset(range(at, at + 8)).edges() for at in (0, 20))
        apart = math.hypot(some.stderr, others.stderr)
        alike += some.value == others.value
        assert (some - others).stderr == pytest.approx(apart, rel=0.05)
        first, second = (
            drawn.mixing({node: "x" if at <= node < at + 8 else "y" for node in range(60)})
            for at in (0, 20)
        )
        between = first.at("x", "x") - second.at("x", "x")
        assert between.stderr == pytest.approx(apart, rel=0.05)
        with pytest.raises(SilographError, match="not known"):
            first - second
    assert alike > 2
    three = [{node: "x" if at <= node < at + 3 else "y" for node in range(60)} for at in (0, 20)]
    for seed in range(20):
        drawn = Release.draw(GRAPH, CHANNEL, seed=seed)
        with pytest.raises(SilographError, match="not known"):
            drawn.triangles_by(three[0]).at("x") - drawn.triangles_by(three[1]).at("x")
    again = drawn.triangles_by(three[0]).at("x") - drawn.triangles_by(three[0]).at("x")
    assert again.stderr == 0


@pytest.mark.parametrize("edges", ["none", "all"])
@pytest.mark.parametrize("channel", [Channel(0.99, 0.3), Channel(0.6, 0.01)], ids=str)
def test_differences_of_nearly_the_same(edges: str, channel: Channel) -> None:
    """A graph less all but one of its nodes: what is left is the noise of the node's pairs."""
    universe = NodeUniverse.range(40)
    pairs = itertools.combinations(range(40), 2)
    graph = Silo.from_edges(universe, list(pairs) if edges == "all" else [])
    w = channel.weights
    each = float(w.v0) + (float(w.delta) if edges == "all" else 0.0)
    for seed in range(30):
        drawn = Release.draw(graph, channel, seed=seed)
        less = drawn.edges() - drawn.subset(range(1, 40)).edges()
        assert less.value == pytest.approx(float(drawn.degrees().at(0)), abs=1e-9)
        assert 0.7 * math.sqrt(39 * each) < less.stderr < 2.5 * math.sqrt(39 * each)
        low, high = less.interval
        assert high - low >= 2 * 1.9599 * less.stderr
    left = drawn.edges() - drawn.mixing(dict.fromkeys(range(40), "all")).at("all", "all")
    assert left.stderr == 0


def test_what_has_cancelled_needs_no_covariance() -> None:
    cycles = ONE.four_cycles()
    found = (ONE.kstars(3) - ONE.kstars(3)) + cycles
    assert found.stderr == cycles.stderr
    assert found.interval_at(0.9) == pytest.approx(cycles.interval_at(0.9))


def test_one_release_is_not_two() -> None:
    """Errors of one release go together: those of a part and the whole do not add up."""
    part, whole = ONE.mixing(HALVES).at("a", "a"), ONE.edges()
    rest = whole - part
    parts = [ONE.mixing(HALVES).at(*pair) for pair in (("a", "b"), ("b", "b"))]
    assert rest.value == pytest.approx(parts[0].value + parts[1].value)
    apart = math.hypot(parts[0].stderr, parts[1].stderr)
    assert rest.stderr == pytest.approx(apart, rel=0.01)
    assert rest.stderr < math.hypot(part.stderr, whole.stderr)
    assert rest.epsilon == ONE.epsilon


def test_multiples_and_numbers() -> None:
    stars = ONE.kstars(3)
    low, high = stars.interval
    for found, ends in (
        (2 * stars, (2 * low, 2 * high)),
        (-stars, (-high, -low)),
        (stars + 5, (low + 5, high + 5)),
        (5 - stars, (5 - high, 5 - low)),
        (stars / 4, (low / 4, high / 4)),
        (np.float64(2) * stars, (2 * low, 2 * high)),
    ):
        assert isinstance(found, Estimate)
        assert found.interval == pytest.approx(ends)
        assert found.interval_at(0.95) == pytest.approx(ends)
    assert (stars / 4).stderr == pytest.approx(stars.stderr / 4)
    assert (2 * ONE.degrees()).value == pytest.approx(2 * ONE.degrees().value)


def test_ratios() -> None:
    found = ONE.triangles() / ONE.edges()
    assert found.value == pytest.approx(ONE.triangles().value / ONE.edges().value)
    # As a ratio of independent answers it would be wider: more edges come with more triangles.
    assert found.stderr < (ONE.triangles() / TWO.edges()).stderr
    low, high = found.interval_at(0.99)
    assert low < found.interval[0] < found.value < found.interval[1] < high
    assert (found - 1).interval == pytest.approx([end - 1 for end in found.interval])
    noise = Release.draw(GRAPH, Channel.symmetric(0.1), seed=1)
    useless = ONE.edges() / noise.triangles()
    assert useless.interval == (-math.inf, math.inf)
    assert "no usable answer" in useless.note
    assert (1000 / ONE.edges()).value == pytest.approx(1000 / ONE.edges().value)


@pytest.mark.whole
def test_ratios_and_differences_hold_the_truth() -> None:
    """Also of counts whose own intervals are far from normal."""
    channel = Channel.symmetric(1.0)
    exact = Release.draw(GRAPH, Channel(1, 0), seed=1)
    asked: dict[str, Callable[[Release, Release], Estimate[float]]] = {
        "ratio": lambda r, _: r.kstars(2) / r.edges(),
        "part": lambda r, _: r.mixing(HALVES).at("a", "a") / r.edges(),
        "clustering": lambda r, s: r.clustering() - s.clustering(),
        "stars": lambda r, s: r.kstars(4) - s.kstars(4),
        "twice": lambda r, _: r.edges() * 2 + r.kstars(2),
    }
    draws = [Release.draw(GRAPH, channel, seed) for seed in range(300)]
    for name, ask in asked.items():
        truth = float(ask(exact, exact))
        ends = [ask(*pair).interval for pair in zip(draws[::2], draws[1::2], strict=True)]
        kept = sum(low - 1e-9 <= truth <= high + 1e-9 for low, high in ends)
        assert limits.least_coverage(kept, len(ends)) >= 0.85, name


def test_pairs_that_nobody_has_worked_out() -> None:
    with pytest.raises(SilographError, match="edges and four_cycles rest on one run"):
        ONE.four_cycles() - ONE.edges()
    with pytest.raises(SilographError, match="take them from two runs"):
        ONE.clustering() + ONE.edges()
    with pytest.raises(SilographError, match="are answers of one run"):
        ONE.kstars(3) + ONE.triangles()
    with pytest.raises(SilographError, match="rest on one run"):
        ONE.triangles() / ONE.edges() - ONE.edges()
    with pytest.raises(SilographError, match="rest on one run"):
        ONE.degrees() + ONE.node_triangles()
    assert (ONE.four_cycles() - TWO.edges()).stderr > 0
    assert (ONE.triangles() / ONE.edges() - TWO.edges()).stderr > 0


def test_answers_without_an_origin_are_refused() -> None:
    unknown = Estimate("edges", 5.0, 1.0, epsilon=1.0)
    with pytest.raises(SilographError, match="does not say which run"):
        unknown - ONE.edges()
    assert (unknown - unknown).stderr == 0
    assert (2 * unknown).stderr == 2


def test_runs_are_told_apart_by_their_names() -> None:
    """The same run read twice is the same, another run with the same bits is not."""
    runs = [
        replace(ONE, provenance=Provenance("feat", "masked", 4, 1, run=name * 32))
        for name in ("a", "a", "b")
    ]
    assert (runs[0].edges() - runs[1].edges()).stderr == 0
    other = runs[0].edges() - runs[2].edges()
    assert other.stderr == pytest.approx(math.sqrt(2) * ONE.edges().stderr)


@pytest.mark.filterwarnings("ignore::silograph.errors.SilographWarning")
def test_feat_plus_shares_a_run_with_its_release() -> None:
    """Its answer is mended by the silos: the errors of the release are not those of the answer."""
    parties = Federation.simulate(split(GRAPH, 3))
    mended = parties.count("triangles", "feat+", epsilon=3.0)
    assert mended.origin is not None
    assert isinstance(mended.origin.release, Release)
    with pytest.raises(SilographError, match="rest on one run"):
        mended - mended.origin.release.edges()
    assert (mended - mended).stderr == 0


def test_wrong_operands() -> None:
    edges = ONE.edges()
    with pytest.raises(ArgumentError, match="multiplied by numbers"):
        edges * TWO.edges()
    with pytest.raises(ArgumentError, match="divided by 0"):
        edges / 0
    with pytest.raises(TypeError, match="not with str"):
        edges + "1"
    with pytest.raises(TypeError, match="60 answers"):
        float(ONE.degrees())
    with pytest.raises(ArgumentError, match="choose them with at"):
        ONE.degrees() / TWO.degrees()
    with pytest.raises(ArgumentError, match="same number of answers"):
        ONE.degrees() + TWO.edges()


def test_arrays_are_added_entry_by_entry() -> None:
    found = ONE.degrees() - TWO.degrees()
    assert found.value == pytest.approx(ONE.degrees().value - TWO.degrees().value)
    assert found.table().columns["node"] == list(GRAPH.universe.ids)
    low, high = found.interval
    assert (low < found.value).all()
    assert (found.value < high).all()
    assert ((ONE.degrees() - ONE.degrees()).stderr == 0).all()
    other = Release.draw(clustered_power_law(60, seed=1), CHANNEL, seed=1)
    renamed = replace(other, universe=None)
    with pytest.raises(ArgumentError, match="different nodes"):
        TWO.degrees() - renamed.degrees()


class TestIntervalAt:
    def test_normal(self) -> None:
        answer = Estimate("edges", 10.0, 2.0, epsilon=1.0)
        assert answer.interval_at(0.95) == pytest.approx(answer.interval)
        assert answer.interval_at(0.5) == pytest.approx((10 - 1.349, 10 + 1.349), abs=1e-3)

    @pytest.mark.parametrize(
        "ask",
        [
            Release.edges,
            Release.triangles,
            Release.clustering,
            lambda r: r.kstars(4),
            lambda r: r.modularity(HALVES),
            lambda r: r.degrees().at(0),
            lambda r: r.mixing(HALVES).at("a", "b"),
            lambda r: r.edges() - TWO.kstars(3),
        ],
    )
    def test_wider_at_higher_levels(self, ask: Callable[[Release], Estimate[Any]]) -> None:
        answer = ask(ONE)
        ends = [answer.interval_at(level) for level in (0.5, 0.95, 0.999)]
        assert ends[1] == pytest.approx(answer.interval)
        assert ends[2][0] <= ends[1][0] <= ends[0][0]
        assert ends[0][1] <= ends[1][1] <= ends[2][1]
        assert ends[0][1] < ends[2][1] or ends[2][0] < ends[0][0]

    def test_sealed_noise_is_not_normal(self) -> None:
        noise = SealedNoise.choose(1.0, 60, 4, 1, ["triangles"], delta=1e-9, rule="largest")
        answer = SealedRelease.draw(GRAPH, noise, seed=1).triangles()
        low, high = answer.interval_at(0.999)
        # Laplace: ln 1000/ln 20 times as far as at 95 %; a normal law would have 1.68.
        assert answer.margin is not None
        assert (high - low) / 2 / answer.margin == pytest.approx(math.log(1000, 20), rel=0.02)

    def test_where_it_is_not_known(self) -> None:
        answer = Estimate("edges", 10.0, 2.0, epsilon=1.0, margin=9.0)
        assert answer.interval_at(0.95) == (1.0, 19.0)
        with pytest.raises(ArgumentError, match="only its 95 % interval is known"):
            answer.interval_at(0.99)
        with pytest.raises(ArgumentError, match="between 0 and 1"):
            answer.interval_at(95)
