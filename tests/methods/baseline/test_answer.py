"""Reports: draws, agreement with exact sums, error bars against the spread, loss of accuracy."""

import hashlib
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from silograph import (
    Channel,
    Estimate,
    NodeUniverse,
    Release,
    Silo,
    clustered_power_law,
    dataset,
    split,
    union,
)
from silograph.errors import ArgumentError, UniverseError
from silograph.graph.bits import BitRows
from silograph.methods.baseline.answer import Reports
from silograph.methods.baseline.counts import ReportCounts, kstars
from silograph.methods.baseline.noise import BaselineNoise
from tests import limits

GRAPH = clustered_power_law(200, edges_per_node=8, closure=0.7, seed=3)
SILOS = split(GRAPH, 3, rate=0.5, overlap=0.3, seed=1)
TRUTH = BitRows.from_pairs(200, union(SILOS).pairs)
SMALL = split(clustered_power_law(30, edges_per_node=4, seed=2), 4, seed=1)
DRAWS = 200


def draw(silos: tuple[Silo, ...], epsilon: float, seed: int) -> Reports:
    return Reports.draw(silos, BaselineNoise.choose(epsilon, len(silos)).channel, seed)


def matrix_of(reports: Reports) -> np.ndarray:
    table = [Fraction(j) for j in range(reports.counts.silos + 1)]
    return reports.counts.take(table, slice(0, reports.n)).astype(int)


class TestDraw:
    def test_golden(self) -> None:
        """A fixed seed gives fixed counts, on every machine."""
        counts = matrix_of(draw(SMALL, 4.0, seed=7)).astype(np.uint8)
        digest = hashlib.sha256(counts.tobytes()).hexdigest()
        assert digest == "16aa7fc57a8b50ae6f77fedfcc3c0581d7e33d07c219b4b420e7e5ef506e3e64"
        assert (matrix_of(draw(SMALL, 4.0, seed=7)) == counts).all()
        assert (matrix_of(draw(SMALL, 4.0, seed=8)) != counts).any()

    @pytest.mark.parametrize("channel", [Channel("3/4", "1/4"), Channel("2/3", "1/5")], ids=str)
    def test_counts_follow_the_law_of_independent_reports(self, channel: Channel) -> None:
        """By number of holders; one stream for all silos would give 0 and m ones only."""
        silos = split(clustered_power_law(300, 10, seed=4), 3, rate=0.7, overlap=0.6, seed=2)
        rows = np.array([BitRows.from_pairs(300, s.pairs).bits(slice(0, 300)) for s in silos])
        holders = rows.sum(axis=0)[np.triu_indices(300, 1)]
        found = np.zeros((4, 4))
        for seed in range(20):
            ones = matrix_of(Reports.draw(silos, channel, seed))[np.triu_indices(300, 1)]
            np.add.at(found, (holders, ones), 1)
        for h in range(4):
            held = stats.binom(h, float(channel.p11)).pmf(np.arange(4))
            others = stats.binom(3 - h, float(channel.p01)).pmf(np.arange(4))
            expected = np.convolve(held, others)[:4] * found[h].sum()
            assert expected.min() > 20
            chi = ((found[h] - expected) ** 2 / expected).sum()
            assert chi <= limits.chi_square(3)[1], h

    def test_silos_of_different_nodes_are_refused(self) -> None:
        other = Silo.from_pairs(NodeUniverse.range(31), np.empty((0, 2), dtype=np.uint32))
        with pytest.raises(UniverseError, match="different node lists"):
            Reports.draw([SMALL[0], other], Channel("3/4", "1/4"), 1)
        with pytest.raises(ArgumentError, match="silos"):
            Reports.draw(SMALL[:1], Channel("3/4", "1/4"), 1)
        with pytest.raises(ArgumentError, match="silos"):
            Reports.draw([], Channel("3/4", "1/4"), 1)


class TestCounts:
    def test_blocks_make_no_difference(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = draw(SMALL, 8.0, seed=1)
        expected = [whole.triangles(), whole.four_cycles(), whole.kstars(2), whole.clustering()]
        seen = matrix_of(whole), whole.union
        for module in ("counts", "walks"):
            monkeypatch.setattr(f"silograph.methods.baseline.{module}.BLOCK_ROWS", 7)
        parts = draw(SMALL, 8.0, seed=1)
        assert (matrix_of(parts) == seen[0]).all()
        assert parts.union == seen[1]
        answers = [parts.triangles(), parts.four_cycles(), parts.kstars(2), parts.clustering()]
        for answer, known in zip(answers, expected, strict=True):
            assert answer.value == pytest.approx(known.value, rel=1e-9)
            assert answer.stderr == pytest.approx(known.stderr, rel=1e-9)

    def test_bad_counts(self) -> None:
        with pytest.raises(ArgumentError, match="symmetric"):
            ReportCounts(np.array([[0, 1], [0, 0]], dtype=np.uint8), 2)
        with pytest.raises(ArgumentError, match="symmetric"):
            ReportCounts(np.zeros((2, 3), dtype=np.uint8), 2)
        with pytest.raises(ArgumentError, match="from 0 to 2"):
            ReportCounts(np.array([[0, 3], [3, 0]], dtype=np.uint8), 2)
        empty = [BitRows.from_pairs(n, np.empty((0, 2), dtype=np.uint32)) for n in (3, 4)]
        with pytest.raises(ArgumentError, match="same nodes"):
            ReportCounts.of(empty)
        two, noise = Reports.draw(SMALL[:2], Channel("3/4", "1/4"), 1), BaselineNoise.choose(1, 3)
        with pytest.raises(ArgumentError, match="3 silos, but 2"):
            Reports(two.counts, noise, "", two.provenance)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 12.0])
def test_floats_agree_with_exact_sums(epsilon: float) -> None:
    """At ε = 1 weights are in the hundreds and of both signs; rounding must stay far below the
    noise."""
    reports = draw(SMALL, epsilon, seed=3)
    n, ones, weights = reports.n, matrix_of(reports), reports.weights.weights

    def w(u: int, v: int) -> Fraction:
        return weights[ones[u, v]]

    triples = itertools.combinations(range(n), 3)
    triangles = sum((w(a, b) * w(b, c) * w(a, c) for a, b, c in triples), Fraction(0))
    cycles = Fraction(0)
    for a, b in itertools.combinations(range(n), 2):
        paths = [w(a, v) * w(v, b) for v in range(n) if v not in (a, b)]
        cycles += sum(paths) ** 2 - sum(p * p for p in paths)
    for answer, exact in ((reports.triangles(), triangles), (reports.four_cycles(), cycles / 4)):
        assert abs(answer.value - exact) <= 1e-12 * answer.stderr
    for u in range(n):
        degree = sum(w(u, v) for v in range(n) if v != u)
        assert reports.degrees().value[u] == pytest.approx(float(degree), rel=1e-9, abs=1e-9)
    rows = [[w(u, v) for v in range(n) if v != u] for u in range(n)]
    for k in (1, 2, 5, 12):
        assert kstars(reports.counts, reports.weights, k)[0] == sum(e(row, k) for row in rows)


def e(row: list[Fraction], k: int) -> Fraction:
    """The elementary symmetric polynomial, one factor at a time."""
    product = [Fraction(1)] + [Fraction(0)] * k
    for x in row:
        product = [p + (x * product[i - 1] if i else 0) for i, p in enumerate(product)]
    return product[k]


def test_two_ways_to_the_error_of_two_stars() -> None:
    """Exact integers per row, and products of matrices."""
    for epsilon in (1.0, 6.0, 20.0):
        reports = draw(SILOS, epsilon, seed=2)
        exact = kstars(reports.counts, reports.weights, 2)[1]
        assert reports.walks.triple_variance(0.0, 1.0) == pytest.approx(float(exact), rel=1e-6)


ASK: dict[str, tuple[Callable[[Reports], Estimate[float]], float]] = {
    "edges": (Reports.edges, TRUTH.edges),
    "2-stars": (lambda r: r.kstars(2), TRUTH.wedges),
    "triangles": (Reports.triangles, TRUTH.triangles),
    "4-cycles": (Reports.four_cycles, TRUTH.four_cycles),
    "clustering": (Reports.clustering, 3 * TRUTH.triangles / TRUTH.wedges),
}


@pytest.mark.whole
def test_error_bars_match_the_spread() -> None:
    """On a clustered graph in three overlapping silos, ε = 12; the same draws for every query."""
    draws = [draw(SILOS, 12.0, seed) for seed in range(DRAWS)]
    for query, (ask, truth) in ASK.items():
        answers = [ask(reports) for reports in draws]
        squares = sum((a.value - truth) ** 2 for a in answers)
        low, high = limits.chi_square(DRAWS)
        assert low <= squares / np.mean([a.stderr**2 for a in answers]) <= high, query
        low, high = limits.binomial(DRAWS, 0.95)
        assert low <= sum(a.interval[0] <= truth <= a.interval[1] for a in answers) <= high, query


@pytest.mark.slow
def test_error_bars_under_heavy_noise() -> None:
    """At ε = 3 nearly all of the error comes from pairs that nobody holds."""
    draws = [draw(SILOS, 3.0, seed) for seed in range(DRAWS)]
    low, high = limits.chi_square(DRAWS)
    answers = [r.edges() for r in draws]
    squares = sum((a.value - TRUTH.edges) ** 2 for a in answers)
    assert low <= squares / np.mean([a.stderr**2 for a in answers]) <= high
    values = np.array([r.degrees().value for r in draws])
    spread = ((values - TRUTH.degrees) ** 2).sum(axis=0)
    ratio = spread / np.array([r.degrees().stderr ** 2 for r in draws]).mean(axis=0)
    assert low <= ratio.min() <= ratio.max() <= high


def test_sampled_error_bars_are_near_the_full_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    for epsilon in (6.0, 12.0, 30.0):
        reports = draw(SILOS, epsilon, seed=1)
        walks = reports.walks
        full = walks.triangles_stderr(), walks.four_cycles_stderr()
        with monkeypatch.context() as patch:
            patch.setattr("silograph.methods.baseline.walks._SAMPLED_ROWS", 100)
            assert (walks.triangles_stderr(), walks.four_cycles_stderr()) == pytest.approx(
                full, rel=0.15
            )


class TestQueries:
    def test_perfect_reports_give_the_truth(self) -> None:
        reports = Reports.draw(SILOS, Channel(1, 0), seed=1)
        assert reports.epsilon == math.inf
        for ask, truth in ASK.values():
            assert ask(reports).value == pytest.approx(truth, rel=1e-12)
            assert ask(reports).stderr == 0
        for query in ("edges", "triangles", "four_cycles", "clustering"):
            raw, ours = getattr(reports, query)(raw=True), getattr(reports, query)()
            assert raw.value == pytest.approx(ours.value)
        assert (reports.degrees().value == TRUTH.degrees).all()
        assert reports.union == TRUTH

    def test_answers_say_what_they_cost(self) -> None:
        reports = draw(SILOS, 3.0, seed=1)
        answer = reports.kstars(3)
        assert (answer.query, answer.parameters, answer.method) == ("kstars", {"k": 3}, "baseline")
        assert 2.99 < answer.epsilon <= 3.0
        assert answer.epsilon == reports.epsilon == reports.views[0].epsilon
        assert reports.clustering().note.startswith("no usable answer")
        assert reports.clustering().interval == (0.0, 1.0)
        assert "not unbiased" in draw(SILOS, 30.0, seed=1).clustering().note
        assert "3 reports of 200 nodes" in str(reports)

    @pytest.mark.parametrize("k", [0, -1, 200, 1.5, True, None])
    def test_bad_k(self, k: object) -> None:
        with pytest.raises(ArgumentError, match="k"):
            draw(SILOS, 3.0, seed=1).kstars(k)  # type: ignore[arg-type]

    def test_large_stars(self) -> None:
        reports = draw(SMALL, 8.0, seed=1)
        for k in (15, 29):
            assert np.isfinite([reports.kstars(k).value, reports.kstars(k).stderr]).all()

    @pytest.mark.parametrize("nodes", [2, 3])
    def test_no_cycles_without_four_nodes(self, nodes: int) -> None:
        """Sums that cancel leave rounding errors, which much noise makes large."""
        pair = Silo.from_edges(NodeUniverse.range(nodes), [(0, 1)])
        for epsilon in (1e-6, 0.01, 1.0):
            for seed in range(3):
                answer = draw((pair,) * 4, epsilon, seed).four_cycles()
                assert (answer.value, answer.stderr) == (0, 0)

    def test_clustering_always_has_an_interval(self) -> None:
        """On a star every ratio is possible in many draws: an interval by the error alone is not a
        number then, or does not hold 0."""
        star = Silo.from_edges(NodeUniverse.range(40), [(0, leaf) for leaf in range(1, 40)])
        answers = [draw([star] * 3, 3.0, seed).clustering() for seed in range(15)]
        for answer in answers:
            low, high = answer.interval
            assert 0 <= low <= high <= 1
        assert sum(answer.interval[0] == 0 for answer in answers) >= 13

    def test_clustering_of_nothing(self) -> None:
        empty = Silo.from_pairs(NodeUniverse.range(5), np.empty((0, 2), dtype=np.uint32))
        reports = Reports.draw([empty, empty], Channel(1, 0), seed=1)
        assert math.isnan(reports.clustering().value)
        assert math.isinf(reports.clustering().stderr)
        assert math.isnan(reports.clustering(raw=True).value)


@pytest.mark.whole
def test_facebook(data_folder: Path) -> None:
    """At ε = 3 and four silos: the raw counts are wrong by orders of magnitude, the calibrated ones
    are within their error bars, and the error bars dwarf those of one noise on the union."""
    graph = dataset("facebook", folder=data_folder)
    reports = draw(split(graph, 4), 3.0, seed=1)
    feat = Release.draw(graph, Channel.symmetric(3.0), seed=1)
    degrees = graph.degrees()
    truths = {
        "edges": len(graph),
        "triangles": graph.triangles(),
        "kstars": int((degrees * (degrees - 1)).sum()) // 2,
    }
    for query, truth in truths.items():
        more = (2,) if query == "kstars" else ()
        ours, raw = (getattr(reports, query)(*more, raw=r) for r in (False, True))
        better = getattr(feat, query)(*more)
        assert abs(ours.value - truth) < 6.5 * ours.stderr
        assert raw.value > 50 * truth
        assert ours.stderr > 20 * better.stderr
    # Σ over the triples alone: √(C(n,3)·Var(w)³), some 24 times the triangles that there are.
    assert 20 < reports.triangles().stderr / truths["triangles"] < 30
    assert feat.triangles().stderr / truths["triangles"] < 0.005
