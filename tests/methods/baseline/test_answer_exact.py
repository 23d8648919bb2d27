"""Tier 0 for all reports: every outcome of every pair, for every number of holders of each.

A query's value is kept for each of the (m+1)^6 ways in which the six pairs of four nodes can have
0 … m ones. The law of a pair's ones depends on its number of holders alone; applied along each of
the six axes it gives the mean for all (m+1)^6 federations at once. The channels here have integer
weights, so that sums of floats are exact; nothing below is approximate unless it says so.
"""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from silograph.dp.channel import Channel
from silograph.estimators.estimate import Provenance
from silograph.graph.bits import BitRows
from silograph.methods.baseline.answer import RAW_NOTE, Reports
from silograph.methods.baseline.counts import ReportCounts, ReportWeights, kstars
from silograph.methods.baseline.noise import BaselineNoise
from tests.estimators.tiny import graph, naive, pairs_of
from tests.sampled import sampled

#: ((b+1)/G, b/G) has the integer weights α = G − b and β = −b: symmetric, and both ways not.
CHANNELS = [Channel("2/3", "1/3"), Channel("3/4", "1/2"), Channel("1/2", "1/4")]
CASES = [
    *((channel, 2) for channel in CHANNELS),
    *sampled((channel, 3) for channel in (CHANNELS[0], CHANNELS[2])),
]
PAIRS = pairs_of(4)

Table = np.ndarray[Any, np.dtype[np.object_]]


def reports_of(ones: tuple[int, ...], channel: Channel, silos: int, n: int = 4) -> Reports:
    matrix = np.zeros((n, n), dtype=np.uint8)
    for (u, v), j in zip(pairs_of(n), ones, strict=True):
        matrix[u, v] = matrix[v, u] = j
    counts = ReportCounts(matrix, silos)
    return Reports(counts, BaselineNoise(channel, silos), "", Provenance("baseline", "", silos))


@cache
def all_reports(channel: Channel, silos: int) -> dict[tuple[int, ...], Reports]:
    grid = itertools.product(range(silos + 1), repeat=len(PAIRS))
    return {ones: reports_of(ones, channel, silos) for ones in grid}


def ones_law(channel: Channel, silos: int, holders: int) -> list[Fraction]:
    """The law of the number of ones, from every outcome of every report."""
    law = [Fraction(0)] * (silos + 1)
    for outcome in itertools.product((0, 1), repeat=silos):
        p = Fraction(1)
        for i, y in enumerate(outcome):
            shown = channel.p11 if i < holders else channel.p01
            p *= shown if y else 1 - shown
        law[sum(outcome)] += p
    assert sum(law) == 1
    return law


def table(channel: Channel, silos: int, value: Callable[[Reports], float | Fraction]) -> Table:
    found = np.empty((silos + 1,) * len(PAIRS), dtype=object)
    for ones, reports in all_reports(channel, silos).items():
        found[ones] = Fraction(value(reports))
    return found


def means(values: Table, channel: Channel, silos: int) -> Table:
    """For each number of holders of each pair, the mean over the noise."""
    laws = np.array([ones_law(channel, silos, h) for h in range(silos + 1)], dtype=object)
    for axis in range(values.ndim):
        values = np.moveaxis(np.tensordot(laws, values, axes=(1, axis)), 0, axis)
    return values


def truths(silos: int, value: Callable[[int], Any]) -> Table:
    """For each number of holders of each pair, the true value on the union (a graph in bits)."""
    found = np.empty((silos + 1,) * len(PAIRS), dtype=object)
    for holders in np.ndindex(found.shape):
        found[holders] = value(sum(1 << i for i, h in enumerate(holders) if h))
    return found


QUERIES: dict[str, tuple[Callable[[Reports], float | Fraction], Callable[[int], int]]] = {
    "edges": (lambda r: r.edges().value, lambda bits: naive("edges", graph(4, bits))),
    "triangles": (
        lambda r: r.walks.triangles,
        lambda bits: naive("triangles", graph(4, bits)),
    ),
    "4-cycles": (
        lambda r: r.walks.four_cycles,
        lambda bits: naive("four_cycles", graph(4, bits)),
    ),
    "degree": (lambda r: r.degrees().value[2], lambda bits: int(graph(4, bits).graph.degrees[2])),
} | {
    f"{k}-stars": (
        lambda r, k=k: r.kstars(k).value,
        lambda bits, k=k: naive("kstars", graph(4, bits), k),
    )
    for k in (1, 2, 3)
}

SPREADS: dict[str, Callable[[Reports], float | Fraction]] = {
    "triangles": lambda r: r.walks.triple_variance(1.0, 0.0),
    "4-cycles": lambda r: r.walks.four_cycles_variance(),
} | {
    f"{k}-stars": lambda r, k=k: kstars(r.counts, r.weights, k)[1]  # type: ignore[misc]
    for k in (1, 2, 3)
}


def variances(name: str, channel: Channel, silos: int) -> Table:
    values = table(channel, silos, QUERIES[name][0])
    return means(values**2, channel, silos) - means(values, channel, silos) ** 2


#: All queries with two silos, and a few of them with three.
_FEW = [(query, *case) for query in QUERIES for case in CASES[:3]]
_FEW += [(query, CHANNELS[0], 3) for query in ("edges", "triangles")]
_MORE = [(query, CHANNELS[0], 3) for query in QUERIES if query not in ("edges", "triangles")]
_MORE += [(query, CHANNELS[2], 3) for query in QUERIES]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "channel", "silos"),
    [*_FEW, *(pytest.param(*each, marks=pytest.mark.whole) for each in _MORE)],
    ids=str,
)
def test_unbiased_for_every_number_of_holders(query: str, channel: Channel, silos: int) -> None:
    value, truth = QUERIES[query]
    found = means(table(channel, silos, value), channel, silos)
    assert (found == truths(silos, cache(truth))).all()


@pytest.mark.slow
@pytest.mark.parametrize(("channel", "silos"), CASES, ids=str)
def test_the_variance_of_edges(channel: Channel, silos: int) -> None:
    """The sum over pairs of the variance given the number of holders."""
    given = ReportWeights(channel, silos).variances
    expected = truths(silos, lambda _: 0)
    for holders in np.ndindex(expected.shape):
        expected[holders] = sum(given[h] for h in holders)
    assert (variances("edges", channel, silos) == expected).all()


@pytest.mark.parametrize(("channel", "silos"), CASES, ids=str)
def test_weights_of_one_pair(channel: Channel, silos: int) -> None:
    """Mean, variance, and the estimate of the variance, given each number of holders."""
    weights = ReportWeights(channel, silos)
    for holders in range(silos + 1):
        law = ones_law(channel, silos, holders)
        mean = sum(p * w for p, w in zip(law, weights.weights, strict=True))
        square = sum(p * w * w for p, w in zip(law, weights.weights, strict=True))
        spread = sum(p * s for p, s in zip(law, weights.spreads, strict=True))
        assert mean == min(holders, 1)
        assert square - mean**2 == weights.variance(holders) == spread


@pytest.mark.slow
@pytest.mark.parametrize(
    ("channel", "silos"),
    [*CASES[:3], pytest.param(CHANNELS[0], 3, marks=pytest.mark.whole), CASES[4]],
    ids=str,
)
@pytest.mark.parametrize("query", SPREADS)
def test_variance_estimates_are_unbiased(query: str, channel: Channel, silos: int) -> None:
    found = means(table(channel, silos, SPREADS[query]), channel, silos)
    expected = variances(query, channel, silos)
    if query == "4-cycles":
        # Too large by what the diagonals of true 4-cycles carry above the least variance.
        given = ReportWeights(channel, silos).variances
        least = min(given) ** 2
        for holders in np.ndindex(expected.shape):
            excess = sum(
                given[holders[PAIRS.index(a)]] * given[holders[PAIRS.index(b)]] - least
                for a, b in (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2)))
                if all(holders[PAIRS.index(p)] for p in PAIRS if p not in (a, b))
            )
            assert excess >= 0
            expected[holders] += 2 * excess
    assert (found == expected).all()


def test_the_variance_of_clusterings_linear_part() -> None:
    """3·T̂ − R·Ŝ2 for a fixed R."""
    channel, silos = CHANNELS[2], 2
    values = table(channel, silos, lambda r: 3 * r.walks.triangles - r.kstars(2).value / 2)
    found = table(channel, silos, lambda r: r.walks.triple_variance(3.0, -0.5))
    spread = means(values**2, channel, silos) - means(values, channel, silos) ** 2
    assert (means(found, channel, silos) == spread).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("channel", "silos"),
    [*CASES[:3], pytest.param(CHANNELS[0], 3, marks=pytest.mark.whole), CASES[4]],
    ids=str,
)
def test_the_raw_form_is_biased(channel: Channel, silos: int) -> None:
    """As printed: on every federation with fewer edges than pairs the union has too many, and by
    how many depends on the number of holders."""
    found = means(table(channel, silos, lambda r: r.edges(raw=True).value), channel, silos)
    seen = [1 - (1 - channel.p11) ** h * (1 - channel.p01) ** (silos - h) for h in range(silos + 1)]
    for holders in np.ndindex(found.shape):
        assert found[holders] == sum(seen[h] for h in holders)
    nobody, wrong = (0,) * len(PAIRS), found != truths(silos, lambda bits: bits.bit_count())
    assert found[nobody] == len(PAIRS) * (1 - (1 - channel.p01) ** silos)
    assert wrong.mean() > 0.95
    for ask in (Reports.triangles, Reports.four_cycles):
        raw = table(channel, silos, lambda r, ask=ask: ask(r, raw=True).value)  # type: ignore[misc]
        assert means(raw, channel, silos)[nobody] > 0
    stars = table(channel, silos, lambda r: r.kstars(2, raw=True).value)
    assert means(stars, channel, silos)[nobody] > 0


def test_raw_answers_are_the_unions_own_and_say_so() -> None:
    channel = CHANNELS[0]
    for ones in ((0, 1, 2, 3, 0, 1), (1, 1, 1, 1, 1, 1), (3, 0, 0, 0, 0, 2)):
        reports = reports_of(ones, channel, 3)
        union = graph(4, sum(1 << i for i, j in enumerate(ones) if j))
        assert reports.union == union.graph
        assert reports.edges(raw=True).value == naive("edges", union)
        assert reports.triangles(raw=True).value == naive("triangles", union)
        assert reports.four_cycles(raw=True).value == naive("four_cycles", union)
        assert reports.kstars(2, raw=True).value == naive("kstars", union, 2)
        assert reports.degrees(raw=True).value.tolist() == union.graph.degrees.tolist()
        answers = [
            reports.edges(raw=True),
            reports.kstars(2, raw=True),
            reports.clustering(raw=True),
        ]
        for answer in answers:
            assert answer.note == RAW_NOTE
            assert math.isnan(answer.stderr)
        assert "biased" in str(reports.triangles(raw=True))
        assert "biased" not in reports.triangles().note


@pytest.mark.parametrize("silos", [1, 2, 3, 4, 7])
def test_counts_are_those_of_all_reports(silos: int) -> None:
    """On five nodes, against sums over sets."""
    n, shown = 5, pairs_of(5)
    chosen = [[p for i, p in enumerate(shown) if (i * (s + 2) + s) % 3 == 0] for s in range(silos)]
    rows = [BitRows.from_pairs(n, np.array(c, dtype=np.uint32).reshape(-1, 2)) for c in chosen]
    counts = ReportCounts.of(rows)
    ones = [sum(p in c for c in chosen) for p in shown]
    matrix = counts.take([Fraction(j) for j in range(silos + 1)], slice(0, n))
    assert [matrix[p] for p in shown] == ones
    assert (matrix == matrix.T).all()
    assert (np.diag(matrix) == 0).all()
    assert counts.totals.tolist() == [ones.count(j) for j in range(silos + 1)]
    assert (counts.profiles.sum(axis=1) == n - 1).all()
    assert counts.union.pairs().tolist() == [list(p) for p, j in zip(shown, ones, strict=True) if j]
