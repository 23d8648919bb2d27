"""Tier 0 of the limits of degrees from all reports: every outcome, for every number of holders."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from silograph import Channel
from silograph.methods.baseline.answer import Reports
from silograph.methods.baseline.counts import ReportCounts, ReportWeights
from silograph.methods.baseline.limits import _by_moments, _exact, report_law, report_limits
from silograph.methods.baseline.noise import BaselineNoise
from tests.methods.baseline.test_answer_exact import ones_law, reports_of

Profile = tuple[int, ...]


def channel_of(epsilon: float, silos: int) -> Channel:
    return BaselineNoise.choose(epsilon, silos).channel


def profiles(laws: list[list[Fraction]]) -> dict[Profile, Fraction]:
    """How many of some pairs have 0 … m ones: every outcome with its probability."""
    found = {(0,) * len(laws[0]): Fraction(1)}
    for law in laws:
        more: dict[Profile, Fraction] = {}
        for profile, p in found.items():
            for ones, q in enumerate(law):
                key = tuple(c + (j == ones) for j, c in enumerate(profile))
                more[key] = more.get(key, Fraction(0)) + p * q
        found = more
    return found


def coverage(channel: Channel, silos: int, holders: tuple[int, ...]) -> Fraction:
    """The probability that the interval of a node holds its degree."""
    found = profiles([ones_law(channel, silos, h) for h in holders])
    weights = tuple(map(float, ReportWeights(channel, silos).weights))
    low, high = report_limits(np.array(list(found)), weights, channel)
    degree = sum(h > 0 for h in holders)
    inside = (low <= degree) & (degree <= high)
    return sum((p for p, held in zip(found.values(), inside, strict=True) if held), Fraction(0))


def spreads(pairs: int, silos: int) -> Iterator[tuple[int, ...]]:
    return itertools.combinations_with_replacement(range(silos + 1), pairs)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0, 12.0, 16.0])
@pytest.mark.parametrize(("silos", "pairs"), [(2, 6), (3, 5), (4, 4)])
def test_intervals_hold_every_degree(silos: int, pairs: int, epsilon: float) -> None:
    """However many silos hold each edge."""
    channel = channel_of(epsilon, silos)
    assert min(coverage(channel, silos, h) for h in spreads(pairs, silos)) >= 0.95


def test_a_dense_node_whose_edges_all_hold() -> None:
    """Eight edges and one other pair: with standard errors .62 of the intervals held the degree."""
    assert coverage(channel_of(8.0, 4), 4, (4,) * 8 + (0,)) >= 0.95


def test_degrees_and_edges_have_these_limits() -> None:
    channel = channel_of(8.0, 2)
    reports = reports_of((2, 2, 1, 0, 1, 2), channel, 2)
    weights = tuple(map(float, reports.weights.weights))
    for answer, rows in (
        (reports.degrees(), reports.counts.profiles),
        (reports.edges(), reports.counts.totals[None, :]),
    ):
        for level in (0.95, 0.8):
            expected = report_limits(rows, weights, channel, level)
            assert np.array_equal(np.array(answer.interval_at(level)).reshape(2, -1), expected)
        assert np.array_equal(answer.interval, answer.interval_at(0.95))


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_both_laws_agree_where_they_meet(epsilon: float) -> None:
    """Of 32 pairs the exact quantiles are about those from three moments."""
    channel, pairs = channel_of(epsilon, 4), 32
    weights = np.array([float(w) for w in ReportWeights(channel, 4).weights])
    laws = np.array([report_law(channel, 4, h) for h in (0, 1, 4)])
    exact, moments = (made(pairs, weights, laws, 0.025) for made in (_exact, _by_moments))
    step = math.sqrt(max(((weights - (laws @ weights)[:, None]) ** 2 * laws).sum(axis=1))) / 64
    sd = math.sqrt(pairs) * 64 * step
    unit, half = np.abs(weights).max(), np.ptp(weights) / 2
    ends = ((exact.least, moments.least, half), (exact.greatest, moments.greatest, -half))
    for one, other, back in ends:
        apart = one * step + pairs * weights.min() - (unit * other + back)
        assert np.abs(apart).max() < 0.1 * sd


@pytest.mark.parametrize("silos", [2, 3])
@pytest.mark.parametrize("pairs", [33, 60])
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0, 5.0, 8.0])
def test_intervals_of_more_pairs_hold(silos: int, pairs: int, epsilon: float) -> None:
    """The law of all profiles, of every silo's epsilon: few ones are wrong, or many."""
    channel = channel_of(silos * epsilon, silos)
    weights = tuple(map(float, ReportWeights(channel, silos).weights))
    size = (pairs + 1,) * silos
    every = np.indices(size).reshape(silos, -1)
    every = np.concatenate([[pairs - every.sum(axis=0)], every])
    low, high = report_limits(np.maximum(every, 0).T, weights, channel)
    for edges, holders in itertools.product((0, 2, pairs // 3, pairs - 3, pairs), (1, silos)):
        law = np.zeros(size)
        law[(0,) * silos] = 1.0
        for pair in range(pairs):
            grown = np.zeros(size)
            for ones, p in enumerate(report_law(channel, silos, holders * (pair < edges))):
                moved = np.roll(law, 1, axis=ones - 1) if ones else law
                grown += p * moved
            law = grown
        inside = (low <= edges) & (edges <= high)
        assert law.reshape(-1)[inside].sum() > 0.94


def test_noise_beyond_floats_leaves_everything_open() -> None:
    channel, weights = channel_of(0.01, 32), ReportWeights(channel_of(0.01, 32), 32)
    rows = np.random.default_rng(1).multinomial(4999, report_law(channel, 32, 0), size=20)
    low, high = report_limits(rows, tuple(map(float, weights.weights)), channel)
    assert (high - low).min() == 4999


def test_large_graphs_have_normal_limits_of_edges() -> None:
    n = 520
    reports = Reports(
        ReportCounts(np.zeros((n, n), dtype=np.uint8), 2),
        BaselineNoise.choose(1.0, 2),
        "",
        reports_of((0,) * 6, channel_of(1.0, 2), 2).provenance,
    )
    assert reports.edges().ends is None
