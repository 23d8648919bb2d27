"""Draws of every method: against exact laws by enumeration, against formulas, and golden."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from reproduction.central import triangles_reach
from reproduction.draws import (
    CENTRAL,
    LABELS,
    QUERIES,
    Asked,
    RoundedWeights,
    curator_of,
    draw,
    draw_own_coins,
    draw_reports,
    drawn_bounds,
    hidden_errors,
    series_of,
    shows_one,
    triangles,
    two_stars,
    unable,
)
from reproduction.federations import Dealt, Federation, Graph
from reproduction.printed import kstars, proposition_2
from silograph.audit import laws
from silograph.dp.channel import Channel
from silograph.estimators.pair_sums import GraphSums
from silograph.estimators.stars import kstars_variance
from silograph.estimators.triangles import triangles_variance
from silograph.graph.bits import BitRows
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.methods.baseline import walks
from silograph.methods.baseline.counts import ReportCounts, ReportWeights
from silograph.methods.baseline.counts import kstars as report_kstars
from silograph.methods.baseline.noise import BaselineNoise
from silograph.methods.baseline.walks import ReportWalks
from silograph.methods.prediction import Question
from silograph.methods.sealed.method import choose_noise
from silograph.methods.union import settle_union

#: A triangle with a tail; its pairs have 1, 1, 2 and 3 holders.
NODES = 4
EDGES = [[(0, 1), (1, 2)], [(0, 2), (2, 3)], [(0, 2), (2, 3)], [(2, 3)]]
PAIRS = list(combinations(range(NODES), 2))
HOLDERS = {pair: sum(pair in own for own in EDGES) for pair in PAIRS}
DRAWS = 3000


def tiny() -> Federation:
    universe = NodeUniverse.range(NODES)
    return Federation(tuple(Silo.from_edges(universe, own) for own in EDGES))


def graph(bits: tuple[int, ...]) -> BitRows:
    pairs = [pair for pair, bit in zip(PAIRS, bits, strict=True) if bit]
    return BitRows.from_pairs(NODES, np.array(pairs, dtype=np.uint32).reshape(-1, 2))


def near(values: list[float], mean: float, variance: float) -> None:
    """Six and a half standard errors of the mean, and a variance that is not absurd."""
    assert abs(np.mean(values) - mean) < 6.5 * math.sqrt(variance / len(values))
    assert 0.75 < np.var(values) / variance < 1.35


class TestOwnCoins:
    @pytest.mark.parametrize("p", [Fraction(1, 4), Fraction(2, 7)])
    def test_the_law_is_that_of_the_audit(self, p: Fraction) -> None:
        for silos in (2, 3, 4):
            for holders in laws.holder_sets(silos):
                assert laws.printed(p, holders)[1] == shows_one(p, sum(holders), silos)

    def test_every_pair_is_drawn_from_it(self) -> None:
        made, p = tiny(), Fraction(1, 5)
        ones = np.zeros(len(PAIRS))
        at = np.array(PAIRS, dtype=np.uint32)
        for seed in range(DRAWS):
            ones += draw_own_coins(made, p, seed).at(at)
        for seen, pair in zip(ones, PAIRS, strict=True):
            chance = float(shows_one(p, HOLDERS[pair], len(EDGES)))
            assert abs(seen - DRAWS * chance) < 6.5 * math.sqrt(DRAWS * chance * (1 - chance)), pair

    @pytest.mark.whole
    def test_estimators_on_it_against_the_enumerated_law(self) -> None:
        """As printed they are biased, and by exactly as much as the law says."""
        made, p = tiny(), Fraction(1, 5)
        ask: dict[str, Callable[[BitRows], Fraction]] = {
            "2-stars": lambda g: kstars(g.degrees.tolist(), NODES, p, 2),
            "triangles": lambda g: proposition_2(*triples(g), (1 - p) / p),
        }
        drawn = [draw_own_coins(made, p, seed) for seed in range(DRAWS)]
        for query, estimate in ask.items():
            mean = square = Fraction(0)
            for bits in product((0, 1), repeat=len(PAIRS)):
                chance = Fraction(1)
                for bit, pair in zip(bits, PAIRS, strict=True):
                    one = shows_one(p, HOLDERS[pair], len(EDGES))
                    chance *= one if bit else 1 - one
                value = estimate(graph(bits))
                mean, square = mean + chance * value, square + chance * value**2
            assert abs(float(mean) - made.truth(query)) > 0.5
            near([float(estimate(g)) for g in drawn], float(mean), float(square - mean**2))


def triples(g: BitRows) -> tuple[int, int, int, int]:
    counts = [0, 0, 0, 0]
    edges = {tuple(pair) for pair in g.pairs().tolist()}
    for three in combinations(range(NODES), 3):
        counts[sum(pair in edges for pair in combinations(three, 2))] += 1
    return counts[0], counts[1], counts[2], counts[3]


class TestAllReports:
    def test_mean_and_variance_against_the_enumerated_law(self) -> None:
        made, silos = tiny(), len(EDGES)
        channel = Channel("9/10", "1/10")
        weights = [float(w) for w in ReportWeights(channel, silos).weights]
        laws_of = [count_law(channel, HOLDERS[pair], silos) for pair in PAIRS]
        counts = np.array(list(product(range(silos + 1), repeat=len(PAIRS))))
        chances = np.prod([np.array(law)[counts[:, i]] for i, law in enumerate(laws_of)], axis=0)
        w = np.array(weights)[counts]
        place = {pair: i for i, pair in enumerate(PAIRS)}
        sums = {
            "2-stars": sum(
                w[:, place[tuple(sorted((u, a)))]] * w[:, place[tuple(sorted((u, b)))]]
                for u in range(NODES)
                for a, b in combinations([v for v in range(NODES) if v != u], 2)
            ),
            "triangles": sum(
                np.prod([w[:, place[pair]] for pair in combinations(three, 2)], axis=0)
                for three in combinations(range(NODES), 3)
            ),
        }
        drawn = [draw_reports(made, channel, seed) for seed in range(DRAWS)]
        exact = ReportWeights(channel, silos)
        answers = {
            "2-stars": [float(two_stars(counts, exact)) for counts in drawn],
            "triangles": [triangles(counts, channel) for counts in drawn],
        }
        for query, values in sums.items():
            mean = float(chances @ values)
            assert mean == pytest.approx(made.truth(query), abs=1e-9)
            near(answers[query], mean, float(chances @ values**2) - mean**2)

    def test_two_stars_are_those_of_the_product(self) -> None:
        asked = generated(30)
        weights = ReportWeights(BaselineNoise.choose(2.0, 4).channel, 4)
        counts = draw_reports(asked.federation, weights.channel, 3)
        assert two_stars(counts, weights) == report_kstars(counts, weights, 2)[0]

    @pytest.mark.parametrize(("epsilon", "silos"), [(6.0, 2), (3.0, 4), (3.0, 32), (0.1, 4)])
    def test_rounded_weights_make_products_exact(self, epsilon: float, silos: int) -> None:
        n, channel = 300, BaselineNoise.choose(epsilon, silos).channel
        rounded, exact = RoundedWeights(channel, silos, n), ReportWeights(channel, silos)
        largest = max(abs(w) for w in exact.weights)
        unit = Fraction(1, 1)
        while largest / unit >= 2**rounded.digits:
            unit *= 2
        while largest / unit < 2 ** (rounded.digits - 1):
            unit /= 2
        for w, v in zip(rounded.weights, exact.weights, strict=True):
            assert abs(w - v) <= largest / 2**rounded.digits
            assert (w / unit).denominator == 1
            assert float(w) == w
        assert n * (largest / unit + 1) ** 2 <= 2**53
        matrix = np.random.default_rng(1).integers(0, silos + 1, (n, n), dtype=np.uint8)
        counts = ReportCounts(np.triu(matrix, 1) + np.triu(matrix, 1).T, silos)
        whole = np.array([[int(x / unit) for x in rounded.weights]], dtype=np.int64)[0]
        integers = counts.take(whole.astype(np.float64), slice(None)).astype(np.int64)
        square = integers @ integers
        total = sum(int(a) * int(b) for a, b in zip(square.ravel(), integers.ravel(), strict=True))
        found = ReportWalks(counts, rounded).triangles
        assert found == pytest.approx(float(Fraction(total, 6) * unit**3), rel=1e-12)

    @pytest.mark.parametrize("rows", [1, 2, 3, 5, 11])
    def test_blocks_of_triples(self, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
        n, silos = 11, 3
        matrix = np.random.default_rng(rows).integers(0, silos + 1, (n, n), dtype=np.uint8)
        counts = ReportCounts(np.triu(matrix, 1) + np.triu(matrix, 1).T, silos)
        weights = ReportWeights(Channel("3/4", "1/4"), silos)
        w = counts.take(weights.weights, slice(None))
        expected = sum(w[a, b] * w[b, c] * w[a, c] for a, b, c in combinations(range(n), 3))
        monkeypatch.setattr(walks, "_TRIPLE_ROWS", rows)
        assert ReportWalks(counts, weights).triangles == pytest.approx(expected, rel=1e-12)


def count_law(channel: Channel, holders: int, silos: int) -> list[float]:
    """How likely 0, 1 … m ones are among the reports of a pair."""
    law = [1.0]
    for place in range(silos):
        p = float(channel.p11 if place < holders else channel.p01)
        law = [
            (law[j] * (1 - p) if j < len(law) else 0) + (law[j - 1] * p if j else 0)
            for j in range(len(law) + 1)
        ]
    return law


def generated(nodes: int, epsilon: float = 3.0, collusion: int = 1) -> Asked:
    dealt = Dealt(Graph("generated", nodes, 3, 1), "random", 4, 0.3, 0.2, 1)
    return Asked(dealt, epsilon, 1e-9, collusion)


class TestMended:
    def test_feat_has_the_variance_of_the_formula(self) -> None:
        asked = generated(24)
        made = asked.federation
        channel = settle_union("clear", asked.epsilon, 4, 1).channel
        rows = BitRows.from_pairs(made.n, made.whole.pairs)
        variances = {
            "2-stars": kstars_variance(rows, channel, 2),
            "triangles": triangles_variance(GraphSums(rows), channel),
        }
        answers = [draw("feat mended", asked, list(QUERIES), seed) for seed in range(1500)]
        (series,) = series_of("feat mended", "triangles")
        for query, variance in variances.items():
            near([one[series, query] for one in answers], made.truth(query), float(variance))

    def test_feat_pays_for_collusion(self) -> None:
        """More colluding silos, more noise; the mean stays where it is."""
        (series,) = series_of("feat mended", "triangles")
        seen = []
        for t in (0, 3):
            asked = generated(24, collusion=t)
            answers = [draw("feat mended", asked, ["triangles"], seed) for seed in range(400)]
            seen.append(np.var([one[series, "triangles"] for one in answers]))
        assert seen[1] > 3 * seen[0]

    def test_sealed_and_curator_have_the_law_of_their_noise(self) -> None:
        """Pure ε, where the scale is fixed: Δ/ε for the curator, and shares for three of four."""
        asked = Asked(generated(24).dealt, 1.0, 0.0, 1)
        made = asked.federation
        for label, shape in (("curator", 1.0), ("sealed", 4 / 3)):
            (series,) = series_of(label, "triangles")
            values = [
                draw(label, asked, ["triangles"], seed)[series, "triangles"] for seed in range(2000)
            ]
            scale = made.n - 2
            q = math.exp(-1 / scale)
            near(values, made.truth("triangles"), shape * 2 * q / (1 - q) ** 2)

    def test_sealed_with_a_bound_is_the_curator(self) -> None:
        """Committee noise is whole: the bound is that of the drawn degrees, and so is the scale."""
        asked = generated(24)
        noise = choose_noise(
            asked.federation.reference, Question("triangles", 40.0, 4, 1, None, 1e-3)
        ).noise
        assert noise.rule
        degrees, runs = asked.federation.degrees, 3000
        bounds = drawn_bounds(degrees, noise, "triangles", runs, 1)
        errors = hidden_errors(degrees, noise, "triangles", runs, 1)
        expected = float(np.mean([float(noise.law("triangles", int(b)).variance) for b in bounds]))
        near(errors.tolist(), 0.0, expected)
        again = hidden_errors(degrees, curator_of(noise), "triangles", runs, 1, alone=True)
        assert np.array_equal(errors, again)

    def test_featplus_answers_in_both_forms(self) -> None:
        asked, stars = generated(24), series_of("feat+ mended", "2-stars")
        assert [series.variant for series in stars] == ["paper", "auto"]
        answers = draw("feat+ mended", asked, ["2-stars"], 1)
        assert set(answers) == {(series, "2-stars") for series in stars}
        assert series_of("feat+ meant", "triangles") == series_of("feat+ meant", "2-stars")[:1]

    @pytest.mark.whole
    def test_as_meant_is_one_response_on_the_union(self) -> None:
        """Triangles have the mean and variance of one channel; Σ C(d̃, 2) is biased as erratum 6.

        To the letter of Algorithm 3, an OR of four silos' coins, the same estimators are far off.
        """
        asked = generated(24)
        made, p = asked.federation, Channel.symmetric(asked.epsilon).p01
        (meant,), (printed,) = (series_of(f"feat {x}", "2-stars") for x in ("meant", "printed"))
        answers = [draw("feat meant", asked, list(QUERIES), seed) for seed in range(600)]
        reference, weights = made.reference, Channel.symmetric(asked.epsilon).weights
        noise = reference.noise("triangles", weights)
        near([one[meant, "triangles"] for one in answers], made.truth("triangles"), noise**2)
        stars = np.mean([one[meant, "2-stars"] for one in answers])
        # Each degree is too small by p/(1−2p), and its variance v·(n−1) is not taken off.
        shift, v = float(p / (1 - 2 * p)), float(p * (1 - p) / (1 - 2 * p) ** 2)
        bias = sum((x * x - x) / 2 for x in made.degrees - shift) - made.truth("2-stars")
        bias += made.n * (made.n - 1) * v / 2
        spread = np.std([one[meant, "2-stars"] for one in answers]) / math.sqrt(len(answers))
        assert abs(stars - made.truth("2-stars") - bias) < 6 * spread
        letter = [draw("feat printed", asked, ["triangles"], seed) for seed in range(50)]
        off = abs(np.mean([one[printed, "triangles"] for one in letter]) - made.truth("triangles"))
        assert off > 3 * noise

    def test_central_mechanisms_have_the_errors_of_their_formulas(self) -> None:
        """Each draw adds the noise of its mechanism to the true count; only the ladder has no δ."""
        asked = generated(24)
        made = asked.federation
        reach = triangles_reach(made.n, made.whole.pairs)
        series = series_of("central", "triangles")
        assert [one.variant for one in series] == list(CENTRAL)
        assert [one.uses_delta for one in series] == [True, True, False]
        drawn = [draw("central", asked, ["triangles"], seed) for seed in range(1000)]
        for one, mechanism in zip(series, CENTRAL.values(), strict=True):
            seen = [answer[one, "triangles"] for answer in drawn]
            squares = (np.array(seen) - made.truth("triangles")) ** 2
            expected = mechanism.error(reach, asked.epsilon, asked.delta) ** 2
            assert abs(squares.mean() - expected) < 6 * squares.std() / math.sqrt(len(seen))


def test_what_cannot_be_asked() -> None:
    assert "collusion of at least 1" in unable("feat+ mended", "2-stars", 10, 4, 0)
    assert "at most 3 of 4" in unable("feat mended", "2-stars", 10, 4, 4)
    assert "20,000 nodes" in unable("sealed", "triangles", 36_692, 4, 1)
    assert unable("sealed", "2-stars", 36_692, 4, 1) == ""
    assert "at most 1" in unable("sealed", "2-stars", 10, 4, 2)
    assert unable("curator", "triangles", 36_692, 4, 1) == ""
    assert unable("curator", "triangles", 10, 4, 2) == ""
    assert unable("feat+ printed", "2-stars", 10, 4, 0) == ""


#: One draw of each method on a generated graph of 24 nodes at ε = 3, seed 7.
GOLDEN: dict[str, list[float]] = {
    "baseline printed": [4106.0, 1122.0],
    "baseline mended": [6175.192149120073, -2279.9760041734044],
    "feat printed": [865.9651765773818, 112.84534636580716],
    "feat mended": [312.02566561889034, 36.96070447568788],
    "feat meant": [307.0469608629853, 34.394710384885514],
    "feat+ printed": [46949.65984356369, 469.9694825074386],
    "feat+ meant": [9755.022119986366, 12.496125552311128, -137.08704187257447],
    "feat+ mended": [469.0993451425266, 322.7853681419775, 200.41589856053128, 25.08819723443833],
    "sealed": [327.0, 30.0],
    "curator": [327.0, 30.0],
    "central": [
        332.59511697658075, 314.6127478624829, 338.0, 23.943146303009797, 38.2636299332337, 36.0,
    ],
}  # fmt: skip


@pytest.mark.parametrize("label", LABELS)
def test_golden(label: str) -> None:
    found = list(draw(label, generated(24), list(QUERIES), 7).values())
    assert found == GOLDEN[label]
