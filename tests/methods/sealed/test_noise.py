"""The noise of the sealed method: sensitivities by all small graphs, (ε, δ) by enumeration."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from silograph.dp.laplace import NoiseLaw
from silograph.errors import ArgumentError
from silograph.methods.sealed.noise import Answer, SealedNoise
from tests.dp.hockey import Change, divergence

COUNTS: tuple[Answer, ...] = ("two_stars", "triangles")


def added(nodes: int) -> Iterator[tuple[np.ndarray, int, int]]:
    """Every graph, as a matrix, and every edge that it lacks."""
    pairs = list(itertools.combinations(range(nodes), 2))
    for held in itertools.product((0, 1), repeat=len(pairs)):
        graph = np.zeros((nodes, nodes), dtype=np.int64)
        for (u, v), x in zip(pairs, held, strict=True):
            graph[u, v] = graph[v, u] = x
        for (u, v), x in zip(pairs, held, strict=True):
            if not x:
                yield graph, u, v


def statistics(graph: np.ndarray) -> dict[Answer, Any]:
    d = graph.sum(axis=0)
    return {
        "edges": d.sum() // 2,
        "degrees": d,
        "two_stars": (d * (d - 1) // 2).sum(),
        "triangles": np.trace(graph @ graph @ graph) // 6,
    }


def change(graph: np.ndarray, u: int, v: int) -> dict[Answer, int]:
    more = graph.copy()
    more[u, v] = more[v, u] = 1
    before, after = statistics(graph), statistics(more)
    return {key: int(np.abs(after[key] - before[key]).sum()) for key in before}


def choose(epsilon: float, nodes: int, *answers: Answer, **more: Any) -> SealedNoise:
    options = {"silos": 3, "collusion": 1} | more
    return SealedNoise.choose(epsilon, nodes, answers=answers, **options)


class TestSensitivity:
    @pytest.mark.parametrize("nodes", [3, 4, 5])
    def test_pure(self, nodes: int) -> None:
        """The L1 change over all graphs is what scales are made for, and no less."""
        worst = dict.fromkeys(("edges", "degrees", *COUNTS), 0)
        for case in added(nodes):
            for key, value in change(*case).items():
                worst[key] = max(worst[key], value)
        for key, value in worst.items():
            assert choose(0.5, nodes, key).scale(key) == 2 * value

    @pytest.mark.parametrize("nodes", [3, 4, 5])
    def test_by_degrees(self, nodes: int) -> None:
        """Triangles change by at most the smaller degree, 2-stars by the sum of both."""
        for graph, u, v in added(nodes):
            d, by = graph.sum(axis=0), change(graph, u, v)
            assert by["triangles"] <= min(d[u], d[v])
            assert by["two_stars"] == d[u] + d[v]


class TestChoice:
    def test_parts_of_epsilon(self) -> None:
        noise = choose(1.0, 50, "degrees", "triangles", degree_share=Fraction(1, 4))
        assert noise.budgets == {"degrees": Fraction(1, 4), "triangles": Fraction(3, 4)}
        assert noise.scale("degrees") == 8
        assert noise.scale("triangles") == 64
        assert choose(1.0, 50, "edges").scale("edges") == 1
        noise = choose(1.0, 50, "triangles", "two_stars", "degrees", delta=0.01)
        assert noise.answers == ("degrees", "two_stars", "triangles")
        assert sum(noise.budgets.values()) == 1

    @pytest.mark.parametrize("epsilon", [0.001, 0.1, 1 / 3, 1.0, 3.0, math.pi])
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    @pytest.mark.parametrize("kind", ["shared", "each"])
    def test_never_more_than_was_asked_for(self, epsilon: float, delta: float, kind: str) -> None:
        noise = choose(epsilon, 200, "degrees", *COUNTS, silos=5, delta=delta, kind=kind)
        assert noise.epsilon(5) <= noise.epsilon(4) <= epsilon
        assert noise.epsilon(4) > epsilon * (1 - 1e-12)
        assert (noise.epsilon(3) > epsilon) == (kind == "shared")
        for answer in COUNTS:
            bounds = range(1, 199) if delta else [None]
            assert all(
                noise.sensitivity(answer, b) / noise.scale(answer, b) <= noise.budgets[answer]
                for b in bounds
            )

    def test_losses_count_what_colluders_know(self) -> None:
        """Against direct sums: two degrees by one, triangles by the most."""
        noise = choose(2.0, 12, "degrees", "triangles", silos=4, degree_share=Fraction(1, 2))
        for t in range(4):
            shape = Fraction(4 - t, 3)

            def ratio(scale: Fraction, shift: int, shape: Fraction = shape) -> float:
                law = NoiseLaw(scale, shape.denominator, shape.numerator)
                one = law.probabilities(60)
                return float(np.log(one[:-shift] / one[shift:])[40:70].max())

            exact = 2 * ratio(Fraction(2), 1) + ratio(Fraction(10), 10)
            assert noise.losses[t] == pytest.approx(max(exact, 2.0), rel=1e-6)

    def test_losses_with_delta_hold_for_every_bound(self) -> None:
        noise = choose(2.0, 40, "triangles", silos=4, collusion=0, delta=0.01)
        for t in (1, 2, 3):
            degrees = 2 * noise.law("degrees").loss(4 - t, 1)
            each = [degrees + noise.law("triangles", b).loss(4 - t, b) for b in range(1, 39)]
            assert max(each) <= noise.losses[t] * (1 + 1e-14)
            assert noise.losses[t] == pytest.approx(max(each), rel=1e-9)

    def test_views(self) -> None:
        noise = choose(1.0, 100, "triangles", silos=4, collusion=2, delta=1e-6)
        assert [(v.name, v.claimed, v.delta) for v in noise.views] == [
            ("coordinator", True, 1e-6),
            ("2 silos + answers", True, 1e-6),
            ("coordinator + 1 silo", False, 0.0),
        ]
        assert noise.views[1].epsilon == 1.0
        alone = choose(1.0, 100, "triangles", silos=4, collusion=0)
        assert alone.views[1].name == "1 silo + answers"
        assert not alone.views[1].claimed
        assert alone.views[1].epsilon > 1.2
        assert choose(1.0, 100, "triangles", collusion=0, kind="each").views[1].claimed
        assert math.isinf(noise.views[2].epsilon)

    @pytest.mark.parametrize(
        ("answers", "more", "message"),
        [
            ([], {}, "answers must be from"),
            (["stars"], {}, "answers must be from"),
            (["degrees", "degrees"], {}, "each once"),
            (["edges", "degrees"], {}, "follows from the degrees"),
            (["edges", "triangles"], {"delta": 0.1}, "follows from the degrees"),
            (["degrees"], {"delta": 0.1}, "delta is for"),
            (["triangles"], {"delta": 1.0}, "delta must be"),
            (["triangles"], {"delta": math.nan}, "delta must be"),
            (["triangles"], {"kind": "none"}, "shared or each"),
            (["degrees", "triangles"], {"degree_share": 1}, "degree_share"),
            (["triangles"], {"nodes": 2}, "too few"),
        ],
    )
    def test_nonsense(self, answers: list[Answer], more: dict[str, Any], message: str) -> None:
        options = {"nodes": 10, "silos": 3, "collusion": 1} | more
        with pytest.raises(ArgumentError, match=message):
            SealedNoise.choose(1.0, answers=answers, **options)

    def test_bounds_where_they_belong(self) -> None:
        noise = choose(1.0, 10, "triangles", delta=0.01)
        for answer, bound in (
            ("triangles", None),
            ("degrees", 3),
            ("triangles", 9),
            ("edges", None),
        ):
            with pytest.raises(ArgumentError):
                noise.scale(answer, bound)
        s = noise.slacks["triangles"]
        wide = choose(1.0, 1000, "triangles", delta=0.01)
        assert wide.slacks["triangles"] == s
        for top, bound in ((-5000, 1), (30, 30 + s), (5000, 998)):
            degrees = np.full(1000, -6000)
            degrees[7] = top
            assert wide.bound("triangles", degrees) == bound
        assert choose(1.0, 1000, "triangles").bound("triangles", np.zeros(1000, np.int64)) is None
        with pytest.raises(ArgumentError, match="1000 nodes"):
            wide.bound("triangles", np.zeros(999, np.int64))


class TestSlack:
    @pytest.mark.parametrize("delta", [0.3, 0.05, 1e-3, 1e-9])
    @pytest.mark.parametrize("kind", ["shared", "each"])
    def test_the_least_for_the_total_noise(self, delta: float, kind: str) -> None:
        noise = choose(2.0, 500, *COUNTS, silos=5, collusion=2, delta=delta, kind=kind)
        shares = 3 if kind == "shared" else 1
        law = NoiseLaw(Fraction(10), shares, 5)
        below = lambda s: float(law.tail(s + 1))  # noqa: E731
        s = noise.slacks["triangles"]
        assert below(s) ** 2 <= delta / 2
        assert s == 0 or below(s - 1) ** 2 > delta / 2 * (1 - 1e-9)
        s = noise.slacks["two_stars"]
        both = lambda s: law.summed(2).tail(2 * s + 1)  # noqa: E731
        assert both(s) <= delta / 2
        assert s == 0 or both(s - 1) > delta / 2

    def test_as_the_design_says(self) -> None:
        """Facebook at epsilon 1, δ 10^−9, t = 0: about 0.14 % of 1,612,010 triangles."""
        noise = choose(1.0, 4039, "triangles", silos=4, collusion=0, delta=1e-9)
        bound = 1045 + noise.slacks["triangles"]
        assert noise.law("triangles", bound).stderr / 1_612_010 < 0.0014


def claim(noise: SealedNoise) -> float:
    return float(sum(noise.budgets.values()))


class TestDelta:
    """The joint law of all noisy degrees and the noisy count, on neighbouring graphs."""

    @pytest.mark.parametrize("answer", COUNTS)
    @pytest.mark.parametrize(("epsilon", "share"), [(4.0, 0.5), (6.0, 0.1)])
    @pytest.mark.parametrize("nodes", [3, 4])
    def test_all_small_graphs(
        self, nodes: int, answer: Answer, epsilon: float, share: float
    ) -> None:
        noise = choose(epsilon, nodes, answer, delta=0.05, degree_share=share)
        cases = set()
        for graph, u, v in added(nodes):
            d = graph.sum(axis=0)
            others = tuple(sorted(int(x) for w, x in enumerate(d) if w not in (u, v)))
            by = change(graph, u, v)[answer]
            if by:
                cases.add(Change((int(d[u]), int(d[v])), others, by))
        for case in cases:
            found = divergence(noise, answer, case, claim(noise), reach=16)
            assert max(found.with_edge, found.without) <= 0.05
            assert found.bad <= 0.05

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("epsilon", "share", "delta"), [(4.0, 0.5, 0.05), (2.0, 0.5, 0.01), (6.0, 0.1, 0.01)]
    )
    def test_two_hubs_with_all_neighbours_in_common(
        self, epsilon: float, share: float, delta: float
    ) -> None:
        """The worst graph for triangles: what an edge adds is the degree of both of its ends."""
        common = 12
        noise = choose(epsilon, common + 2, "triangles", delta=delta, degree_share=share)
        case = Change((common, common), (2,) * common, common)
        found = divergence(noise, "triangles", case, claim(noise), reach=40)
        assert max(found.with_edge, found.without) <= delta
        assert found.bad <= delta

    def test_two_hubs_of_their_own(self) -> None:
        """The worst graph for 2-stars: two nodes of one degree, neighbours of degree one."""
        noise = choose(4.0, 26, "two_stars", delta=0.02, degree_share=0.25)
        case = Change((12, 12), (1,) * 24, 24)
        found = divergence(noise, "two_stars", case, claim(noise), reach=40)
        assert max(found.with_edge, found.without) <= 0.02
        assert found.bad <= 0.02

    def test_bad_is_as_likely_as_it_may_be(self) -> None:
        """With s − 1 the bound fails more often than δ. (The divergence itself stays some two
        orders below δ: a bound that is a little too low costs a little more than ε_T.)"""
        noise = choose(4.0, 22, "triangles", delta=0.05, degree_share=0.5)
        case = Change((20, 20), (2,) * 20, 20)
        s = noise.slacks["triangles"]
        less = replace(noise, slacks={"triangles": s - 1})
        assert divergence(noise, "triangles", case, 4.0, reach=30).bad <= 0.05
        assert divergence(less, "triangles", case, 4.0, reach=30).bad > 0.05

    def test_a_slack_far_too_small_breaks_the_claim(self) -> None:
        """The enumeration can see a broken claim."""
        noise = choose(6.0, 14, "triangles", delta=0.01, degree_share=0.1)
        case = Change((12, 12), (2,) * 12, 12)
        broken = replace(noise, slacks={"triangles": -3})
        found = divergence(broken, "triangles", case, claim(noise), reach=40)
        assert max(found.with_edge, found.without) > 0.01

    def test_against_a_silo_that_knows_its_noise(self) -> None:
        """Given the colluder's noise on both ends, and on average over it.

        One of two silos colludes: its noise and the other's are whole discrete Laplace variables.
        All others' degrees are too low to matter, and the count is the honest one's noise.
        """
        common, epsilon, delta, reach = 9, 4.0, 0.05, 11
        noise = choose(epsilon, 30, "triangles", silos=2, delta=delta, degree_share=0.5)
        s = noise.slacks["triangles"]
        one = NoiseLaw(noise.scale("degrees"), 1, 1).probabilities(reach + 1)
        own, z = one[1:-1], np.arange(-reach, reach + 1)
        p0, p1 = own, one[:-2]
        average, worst = 0.0, 0.0
        shifts = list(itertools.product(range(len(z)), repeat=2))
        tables = {}
        for bound in range(1, common + 2 * reach + s + 1):
            law = NoiseLaw(noise.scale("triangles", min(bound, 28)), 1, 1)
            t = law.probabilities(int(30 * float(law.scale)) + 2 * common)
            tables[bound] = t[common:-common], t[: len(t) - 2 * common]
        levels: dict[tuple[int, float, float], float] = {}
        for i, j in shifts:
            # y − own noise is what the colluder sees of the honest part.
            top = np.maximum.outer(z + z[i], z + z[j]) + common
            bounds = np.clip(top + s, 1, 28)
            a, b = np.multiply.outer(p0, p0), np.multiply.outer(p1, p1)
            total = 0.0
            for at in np.argwhere(bounds < common):
                x, y = tuple(at)
                key = (int(bounds[x, y]), float(a[x, y]), float(b[x, y]))
                if key not in levels:
                    here, there = tables[key[0]]
                    gap = key[1] * here - math.exp(epsilon) * key[2] * there
                    back = key[2] * there - math.exp(epsilon) * key[1] * here
                    levels[key] = max(
                        float(np.maximum(gap, 0).sum()), float(np.maximum(back, 0).sum())
                    )
                total += levels[key]
            average += float(own[i] * own[j]) * total
            worst = max(worst, total)
        assert average <= delta
        # For some of its own noise it learns more than δ allows; that is why it is an average.
        assert worst > delta
