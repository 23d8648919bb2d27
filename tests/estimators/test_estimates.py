"""Estimates beyond the exact tests: sampling of rows, clustering, histograms, printing."""

from pathlib import Path

import numpy as np
import pytest

from silograph import Channel, Estimate, Release, clustered_power_law, dataset
from silograph.estimators import cycles, pair_sums
from silograph.estimators.pair_sums import GraphSums, RowSample
from silograph.graph.bits import BitRows

GRAPH = clustered_power_law(400, edges_per_node=8, closure=0.7, seed=3)
CHANNELS = [Channel.symmetric(2.0), Channel("20/21", "0.0627"), Channel("2/3", "1/4")]


def test_a_row_sample_stands_for_all_rows() -> None:
    sizes = np.arange(1000)[::-1]
    sample = RowSample.by_size(sizes, 100)
    assert len(sample.rows) == len(set(sample.rows.tolist())) == 100
    assert sample.weights.sum() == pytest.approx(1000)
    assert set(range(50)) <= set(sample.rows.tolist())
    assert sample.weights @ sizes[sample.rows] == pytest.approx(sizes.sum(), rel=0.01)


@pytest.mark.parametrize("channel", CHANNELS, ids=str)
def test_sampled_standard_errors_are_near_the_full_ones(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = Release.draw(GRAPH, channel, seed=1)
    full = release.triangles().stderr, release.clustering().stderr, release.four_cycles().stderr
    monkeypatch.setattr(pair_sums, "_ALL_ROWS", 0)
    monkeypatch.setattr(pair_sums, "_SAMPLED_ROWS", 200)
    monkeypatch.setattr(cycles, "_SAMPLED_ROWS", 100)
    again = Release.draw(GRAPH, channel, seed=1)
    part = again.triangles().stderr, again.clustering().stderr, again.four_cycles().stderr
    assert part == pytest.approx(full, rel=0.1)
    assert again.triangles().value == release.triangles().value


@pytest.mark.parametrize(
    "channel",
    [pytest.param(each, marks=pytest.mark.whole) for each in CHANNELS],
    ids=str,
)
def test_standard_errors_match_the_spread_of_draws(channel: Channel) -> None:
    """Also on channels that are not symmetric, and for the queries without an exact test."""
    graph = clustered_power_law(240, edges_per_node=8, closure=0.7, seed=3)
    draws = [Release.draw(graph, channel, seed) for seed in range(150)]
    for ask in (Release.triangles, Release.clustering, Release.four_cycles, Release.edges):
        answers = [ask(release) for release in draws]
        spread = np.std([answer.value for answer in answers])
        typical = np.sqrt(np.mean([answer.stderr**2 for answer in answers]))
        # 150 normal draws: their standard deviation is within 30 % but for 1e-7 of the time.
        assert 0.7 < spread / typical < 1.3, ask.__name__
    triangles = np.array([r.node_triangles().value for r in draws])
    stderrs = np.array([r.node_triangles().stderr for r in draws])
    ratio = triangles.std(axis=0) / np.sqrt((stderrs**2).mean(axis=0))
    assert 0.95 < ratio.mean() < 1.05
    degrees = np.array([r.degrees().value for r in draws])
    ratio = degrees.std(axis=0) / np.array([r.degrees().stderr for r in draws]).mean(axis=0)
    assert 0.95 < ratio.mean() < 1.05


def test_four_cycle_variance_is_right_on_asymmetric_channels() -> None:
    channel = Channel("2/3", "1/4")
    truth = GraphSums(BitRows.from_pairs(400, GRAPH.pairs))
    expected = float(cycles.four_cycles_variance(truth, channel))
    draws = [Release.draw(GRAPH, channel, seed) for seed in range(40)]
    found = [float(cycles.four_cycles_variance_estimate(r.sums, channel)) for r in draws]
    assert np.mean(found) == pytest.approx(expected, rel=0.05)


class TestHistogram:
    @pytest.mark.slow
    def test_it_beats_the_naive_one(self, data_folder: Path) -> None:
        graph = dataset("facebook", folder=data_folder)
        release = Release.draw(graph, Channel.symmetric(3.0), seed=4)
        answer = release.degree_histogram()
        bins = answer.parameters["bins"]
        truth = np.histogram(graph.degrees(), bins)[0]
        naive = np.histogram(np.clip(release.degrees().value, 0, release.n - 1), bins)[0]
        assert answer.value.sum() == pytest.approx(release.n)
        assert np.abs(answer.value - truth).sum() < np.abs(naive - truth).sum() / 2
        low, high = answer.interval
        assert ((low <= truth) & (truth <= high)).all()


def test_printing() -> None:
    print_as = str(Estimate("clustering", 0.51234567, 0.004, epsilon=1.5, delta=1e-9, note="x"))
    assert print_as.splitlines() == [
        "clustering = 0.5123 ± 0.004",
        "  95 % interval  0.5045 … 0.5202",
        "  method feat, ε = 1.5, δ = 1e-9",
        "  note: x",
    ]
    assert "1.000000e+20" in str(Estimate("kstars", 1e20, 1.0, epsilon=1))
    assert "inf" in str(Estimate("clustering", 1.0, float("inf"), epsilon=1))
