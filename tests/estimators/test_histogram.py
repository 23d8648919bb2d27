"""The degree histogram: laws against enumeration, fits against certificates, intervals that cover.

Intervals are asked of graphs on which a fit that stops early is wrong without saying so: a graph
with hubs whose many nodes of small degree are hidden by the noise, and a graph of collaborations
in which nobody is alone.
"""

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from silograph import Channel, NodeUniverse, Release, Silo, clustered_power_law
from silograph.dp.laplace import NoiseLaw
from silograph.estimators.histogram import OwnBlur, PairBlur, Tables, histogram
from silograph.estimators.mixture import fit
from silograph.methods.masked.noise import MaskedNoise
from silograph.methods.sealed.answer import SealedRelease
from silograph.methods.sealed.noise import SealedNoise
from tests import limits

LEAST = 0.92
HUBS = clustered_power_law(500, 4, seed=2)
#: Bins in which a fit of a hundred steps puts a third of the nodes that are there.
NARROW = [0, 4, 8, 500]


def collaborations(n: int, papers: int, seed: int) -> Silo:
    """Papers of two to six authors, some of whom write much more than others."""
    draw = np.random.default_rng(seed)
    often = 1 / np.arange(1, n + 1) ** 0.6
    found = {(u, u + 1) for u in range(0, n, 2)}  # everyone has a neighbour
    for _ in range(papers):
        authors = draw.choice(n, int(draw.integers(2, 7)), replace=False, p=often / often.sum())
        found |= set(itertools.combinations(sorted(int(a) for a in authors), 2))
    edges = sorted({(min(e), max(e)) for e in found})
    return Silo.from_edges(NodeUniverse.range(n), np.array(edges))


AUTHORS = collaborations(5000, 1500, seed=1)


def held(
    draw: Callable[[int], Release | SealedRelease], truth: Silo, bins: list[int] | None, draws: int
) -> list[tuple[int, int]]:
    """Of each bin, in how many draws the interval holds the truth; bins that are chosen by the
    answer are counted together."""
    inside: list[NDArray[np.bool_]] = []
    for seed in range(draws):
        answer = draw(seed).degree_histogram(bins)
        there = np.histogram(truth.degrees(), answer.parameters["bins"])[0]
        low, high = answer.interval
        assert answer.value.sum() == pytest.approx(len(truth.universe))
        assert ((low <= answer.value + 1e-6) & (answer.value <= high + 1e-6)).all()
        inside.append((low <= there) & (there <= high))
    if bins is None:
        return [(sum(bool(one.all()) for one in inside), draws)]
    return [(int(column.sum()), draws) for column in np.array(inside).T]


def sealed(graph: Silo, epsilon: float) -> Callable[[int], SealedRelease]:
    noise = SealedNoise.choose(epsilon, len(graph.universe), 4, 1, ["degrees"])
    return lambda seed: SealedRelease.draw(graph, noise, seed)


class TestLaws:
    @pytest.mark.parametrize(
        "channel", [Channel("3/4", "1/4"), Channel("1/2", "1/10"), Channel(1, "1/3"), Channel(1, 0)]
    )
    def test_pairs(self, channel: Channel) -> None:
        n, blur = 30, PairBlur(30, channel)
        degrees = np.array([0, 1, 13, 29])
        found = blur.tables(degrees).at_most(np.arange(-1, n))
        for column, d in enumerate(degrees.tolist()):
            edges = stats.binom(d, float(channel.p11)).pmf(range(d + 1))
            others = stats.binom(n - 1 - d, float(channel.p01)).pmf(range(n - d))
            due = np.concatenate([[0.0], np.cumsum(np.convolve(edges, others))])
            assert found[:, column] == pytest.approx(due, abs=1e-12)
            assert blur.mean(degrees * 1.0)[column] == pytest.approx((1 - due[1:]).sum())

    def test_own_noise(self) -> None:
        law = NoiseLaw(Fraction(3, 2), 3, 4)
        blur, around = OwnBlur(50, law), np.arange(-10, 21)
        found = blur.tables(np.array([5])).at_most(around)[:, 0]
        due = np.cumsum(law.probabilities(200))[200 + around - 5]
        assert found == pytest.approx(due, abs=1e-12)
        assert blur.noise(3.0) == pytest.approx(law.stderr)

    def test_shared_pairs_add_what_they_add(self) -> None:
        """The sum of all noisy degrees is twice that of all pairs: its variance is doubled."""
        n, blur = 40, PairBlur(40, Channel("3/4", "1/4"))
        many = np.zeros(n)
        many[0] = n
        shared = blur.shared(np.arange(n) * 1.0, many, np.ones(n))
        own = n * float(blur.sd(np.zeros(1))[0]) ** 2
        assert shared == pytest.approx(own * n / (n - 1))


class TestFits:
    def test_certificate(self) -> None:
        """The gap holds for every other histogram with these totals, and is reached."""
        draw = np.random.default_rng(1)
        laws = OwnBlur(40, NoiseLaw(Fraction(4), 1, 1)).tables(np.arange(40))
        cells = np.diff(laws.at_most(np.arange(-60, 100)), axis=0)
        seen = draw.multinomial(300, cells @ draw.dirichlet(np.full(40, 0.2))).astype(float)
        inside = np.arange(40) < 7
        for parts in ([(np.ones(40, bool), 300.0)], [(inside, 80.0), (~inside, 220.0)]):
            found = fit(cells[seen > 0], seen[seen > 0], parts, gap=1e-4)
            assert found.gap <= 1e-4
            for kinds, total in parts:
                assert found.many[kinds].sum() == pytest.approx(total)
            for _ in range(50):
                other = draw.dirichlet(np.full(40, 0.3))
                for kinds, total in parts:
                    other[kinds] *= total / other[kinds].sum()
                near = 0.98 * found.many + 0.02 * other
                for many in (other, near):
                    value = float(seen[seen > 0] @ np.log(cells[seen > 0] @ many))
                    assert value <= found.log_likelihood + found.gap

    def test_an_empty_part(self) -> None:
        laws = np.array([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9]])
        inside = np.array([True, False, False])
        found = fit(laws, np.array([60.0, 40.0]), [(inside, 0.0), (~inside, 100.0)])
        assert found.many[0] == 0
        assert found.many.sum() == pytest.approx(100.0)


class TestAnswers:
    def test_without_noise_they_are_exact(self) -> None:
        bins = [0, 5, 6, 20, 500]
        answer = Release.draw(HUBS, Channel(1, 0), 1).degree_histogram(bins)
        due = np.histogram(HUBS.degrees(), bins)[0].tolist()
        assert answer.value.tolist() == due
        assert [end.tolist() for end in answer.interval] == [due, due]

    def test_little_noise_gives_narrow_intervals(self) -> None:
        answer = Release.draw(HUBS, Channel.symmetric(8.0), 1).degree_histogram()
        low, high = answer.interval
        assert answer.parameters["bins"] == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 500]
        assert (high - low).max() <= 20

    def test_default_bins_are_those_that_can_be_told_apart(self) -> None:
        wide = Release.draw(HUBS, Channel.symmetric(1.0), 1).degree_histogram()
        low, high = wide.interval
        assert (high - low).max() <= 125
        assert wide.parameters["bins"][:2] == [0, 32]
        assert "noise moves each degree by about 21.43" in wide.note
        nothing = Release.draw(HUBS, Channel.symmetric(0.01), 1).degree_histogram()
        assert nothing.parameters["bins"] == [0, 500]
        assert nothing.value.tolist() == [500]

    def test_narrow_bins_say_so(self) -> None:
        release = Release.draw(HUBS, Channel.symmetric(1.0), 1)
        assert "3 of 4 bins are too narrow" in release.degree_histogram([0, 2, 5, 64, 500]).note
        assert release.degree_histogram([0, 6, 500]).note.startswith("no usable answer")

    def test_it_is_shown_with_intervals(self) -> None:
        answer = Release.draw(HUBS, Channel(1, 0), 1).degree_histogram([0, 5, 6, 100, 500])
        there = np.histogram(HUBS.degrees(), [0, 5, 6, 100])[0].tolist()
        rows = [line.split()[:5] for line in str(answer).splitlines()[2:5]]
        shown = zip(["0–4", "5", "6–99"], there, strict=True)
        numbers = [(row[0], *(float(each) for each in row[1:])) for row in rows]
        assert numbers == [(name, n, 0.0, n, n) for name, n in shown]
        assert "6–99" in answer._repr_html_()

    def test_tiny_graphs(self) -> None:
        for n in (1, 2, 3):
            silo = Silo.from_edges(NodeUniverse.range(n), np.empty((0, 2), dtype=np.int64))
            for channel in (Channel.symmetric(1.0), Channel("9/10", 0)):
                found = Release.draw(silo, channel, 1).degree_histogram([0, 1, n + 1])
                low, high = found.interval
                assert found.value.sum() == pytest.approx(n)
                assert low[0] <= n <= high[0]

    @pytest.mark.filterwarnings("error")
    def test_noise_that_hides_everything(self) -> None:
        """At a millionth, means of noisy degrees look equal."""
        n, channel = 4, MaskedNoise.choose(1e-6, 3, 2).channel
        found = histogram(np.array([1, 2, 2, 3]), PairBlur(n, channel), [0, 1, n])
        assert found.low.tolist() == [0, 0]
        assert found.high.tolist() == [n, n]

    def test_values_stay_within_their_intervals(self) -> None:
        """Also of noise that is too rare to be true."""
        law = NoiseLaw(Fraction(1, 2), 1, 1)
        found = histogram(np.array([-9, -6, -3]), OwnBlur(3, law), [0, 1, 2, 3])
        assert (found.low <= found.value).all()
        assert (found.value <= found.high).all()

    def test_grids_do_not_grow_with_n(self) -> None:
        """The sizes of fits, and so the time, are about those of a small graph."""
        sizes: list[int] = []

        class Counting(PairBlur):
            def tables(self, degrees: NDArray[np.int64]) -> Tables:
                sizes.append(len(degrees))
                return super().tables(degrees)

        noisy = np.random.default_rng(1).binomial(40_000, 0.27, size=40_000)
        histogram(noisy, Counting(40_000, Channel.symmetric(1.0)), [0, 512, 40_000])
        assert len(sizes) == 2
        assert max(sizes) < 300


class TestCoverage:
    def test_narrow_bins_of_a_release(self) -> None:
        """A fit of a hundred steps holds the second bin in none of 40 draws."""
        channel = Channel.symmetric(1.0)
        for found in held(lambda s: Release.draw(HUBS, channel, s), HUBS, NARROW, 20):
            assert limits.least_coverage(*found) >= 0.65

    def test_collaborations(self) -> None:
        """Nobody is alone. A fit of a hundred steps says that hundreds are."""
        for covered, draws in held(sealed(AUTHORS, 1.0), AUTHORS, [0, 1, 5000], 15):
            assert limits.least_coverage(covered, draws) >= 0.4

    @pytest.mark.whole
    @pytest.mark.parametrize("bins", [NARROW, None, [0, 32, 64, 128, 500]])
    def test_hubs(self, bins: list[int] | None) -> None:
        channel = Channel.symmetric(1.0)
        for found in held(lambda s: Release.draw(HUBS, channel, s), HUBS, bins, 400):
            assert limits.least_coverage(*found) >= LEAST

    @pytest.mark.whole
    @pytest.mark.parametrize("bins", [[0, 1, 2, 4, 5000], [0, 8, 16, 5000]])
    def test_many_collaborations(self, bins: list[int]) -> None:
        for found in held(sealed(AUTHORS, 1.0), AUTHORS, bins, 400):
            assert limits.least_coverage(*found) >= LEAST

    @pytest.mark.whole
    def test_a_dense_graph_on_an_asymmetric_channel(self) -> None:
        draw, n = np.random.default_rng(2), 200
        edges = np.argwhere(np.triu(draw.random((n, n)) < 0.5, 1))
        graph = Silo.from_edges(NodeUniverse.range(n), edges)
        channel = MaskedNoise.choose(2.0, silos=6, collusion=5).channel
        for found in held(
            lambda s: Release.draw(graph, channel, s), graph, [0, 90, 100, 110, 200], 400
        ):
            assert limits.least_coverage(*found) >= LEAST
