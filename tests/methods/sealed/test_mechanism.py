"""Noisy degrees, the bound that follows, and a count: (ε, δ) of the whole by enumeration.

The coins are those that a committee tosses: their laws are finite, and nothing is left out. The
graphs are those where a bound is as tight as it can be: two hubs with all neighbours in common,
two hubs with neighbours of their own, a star, a clique.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from silograph.dp.digits import DigitLaw
from silograph.methods.sealed.noise import Answer, Bounded, Coins, Rule, SealedNoise
from tests.dp.hockey import Change, Coarse, Divergence, divergence, probabilities
from tests.sampled import sampled

#: Floats lose less than this.
EPS = 1e-11
RULES: tuple[Rule, ...] = ("largest", "second")
COUNTS: tuple[Answer, ...] = ("two_stars", "triangles")


def change(nodes: int, edges: set[tuple[int, int]], u: int, v: int, answer: Answer) -> Change:
    """What the edge uv adds to a graph."""
    near = {w: {a + b - w for a, b in edges if w in (a, b)} for w in range(nodes)}
    d = [len(near[w]) for w in range(nodes)]
    others = tuple(sorted(d[w] for w in range(nodes) if w not in (u, v)))
    added = len(near[u] & near[v]) if answer == "triangles" else d[u] + d[v]
    return Change((d[u], d[v]), others, added)


def common(hubs: int, leaves: int) -> set[tuple[int, int]]:
    """K_{2,c} for two hubs: nodes 0 and 1, which are not joined."""
    return {(h, hubs + x) for h in range(hubs) for x in range(leaves)}


STAR = {(0, x) for x in range(2, 6)}
HUBS = {(0, 2), (0, 3), (1, 4), (1, 5)}
CLIQUE = {pair for pair in itertools.combinations(range(5), 2) if pair != (0, 1)}
GRAPHS = {
    "K_{2,3}": (5, common(2, 3)),
    "K_{2,4}": (6, common(2, 4)),
    "clique": (5, CLIQUE),
    "star": (6, STAR),
    "two hubs": (6, HUBS),
    "path": (4, {(0, 2), (2, 3), (1, 3)}),
}


def choose(nodes: int, answer: Answer, rule: Rule, **more: Any) -> SealedNoise:
    options = {"epsilon": 12.0, "delta": 0.01, "degree_share": 0.25} | more
    return SealedNoise.choose(
        nodes=nodes, silos=4, collusion=1, answers=[answer], rule=rule, **options
    )


def measure(noise: SealedNoise, answer: Answer, case: Change) -> Divergence:
    """At the claimed ε, with the coins that are drawn."""
    coins, bounded = noise.drawn("degrees"), noise.drawn(answer)
    assert isinstance(coins, Coins)
    assert isinstance(bounded, Bounded)
    return divergence(coins, bounded, case, noise.epsilon(1))


class TestClaim:
    @pytest.mark.parametrize("name", GRAPHS)
    @pytest.mark.parametrize("rule", RULES)
    @pytest.mark.parametrize("answer", COUNTS)
    @pytest.mark.parametrize(
        ("epsilon", "share", "delta"),
        sampled([(12.0, 0.25, 0.01), (24.0, 0.1, 0.05), (6.0, 0.5, 1e-4)], 0),
    )
    def test_every_tight_graph(
        self, name: str, rule: Rule, answer: Answer, epsilon: float, share: float, delta: float
    ) -> None:
        nodes, edges = GRAPHS[name]
        case = change(nodes, edges, 0, 1, answer)
        noise = choose(nodes, answer, rule, epsilon=epsilon, delta=delta, degree_share=share)
        found = measure(noise, answer, case)
        assert found.worst <= noise.delta + EPS
        assert found.bad <= noise.parts_of_delta["bounds"] + EPS

    @pytest.mark.parametrize("rule", RULES)
    @pytest.mark.parametrize("answer", COUNTS)
    @pytest.mark.parametrize("nodes", [3, 4])
    def test_all_small_graphs(self, nodes: int, answer: Answer, rule: Rule) -> None:
        noise = choose(nodes, answer, rule)
        pairs = list(itertools.combinations(range(nodes), 2))
        cases = set()
        for held in itertools.product((False, True), repeat=len(pairs)):
            edges = {pair for pair, x in zip(pairs, held, strict=True) if x}
            cases |= {change(nodes, edges, *pair, answer) for pair in set(pairs) - edges}
        for case in cases:
            if case.added:
                assert measure(noise, answer, case).worst <= noise.delta + EPS

    def test_the_claim_is_tight(self) -> None:
        """More than half of δ is needed where ε of the count is large: K_{2,4} and ``largest``."""
        delta = float(DigitLaw.choose(1, 2.0).tail(2) ** 2) * 1.001
        noise = choose(6, "triangles", "largest", epsilon=34.0, degree_share=4 / 34, delta=delta)
        assert noise.margins == {"triangles": 1}
        found = measure(noise, "triangles", change(6, common(2, 4), 0, 1, "triangles"))
        assert delta / 2 < found.worst <= delta


class TestCoarse:
    """Coins of few places and few digits: now δ_d and δ_noise are seen as well, and E counts."""

    @pytest.mark.parametrize("rule", ["largest", "second", "sum"])
    @pytest.mark.parametrize("places", [3, 6, 12])
    @pytest.mark.parametrize(("digits", "scale"), [(2, "1"), (3, "3/2"), (3, "4")])
    def test_all_parts_add_up(self, rule: Any, places: int, digits: int, scale: str) -> None:
        degrees = coarse(Fraction(scale), digits, places)
        answer: Answer = "two_stars" if rule == "sum" else "triangles"
        for name, (nodes, edges) in GRAPHS.items():
            case = change(nodes, edges, 0, 1, answer)
            if not case.added:
                continue
            cap = (nodes - 2) * (2 if rule == "sum" else 1)
            laws = {b: coarse(Fraction(b, 3), 5, places) for b in range(1, cap + 1)}
            epsilon = 2 * degrees.cost(1) + max(laws[b].cost(b) for b in laws)
            noise = 2 * degrees.delta(1) + max(laws[b].delta(b) for b in laws)
            for margin in (0, 1, 2, 4):
                bounded = Bounded("committee", rule, margin, cap, 3, 1)
                fails = {
                    "largest": degrees.tail(margin + 1) ** 2,
                    "second": 2 * degrees.tail(margin + 1),
                    "sum": degrees.tail(margin + 1, summed=2),
                }[rule]
                coins = {b: as_coins(law) for b, law in laws.items()}
                drawn = Coarse(bounded, coins.__getitem__)
                found = divergence(as_coins(degrees), drawn, case, float(epsilon))
                assert found.bad <= fails + EPS, name
                assert found.worst <= fails + noise + EPS, name

    def test_the_degrees_alone(self) -> None:
        """Two degrees change at once: δ of one would not be enough."""
        for law in (coarse(Fraction(2), 3, 20), coarse(Fraction(1), 2, 4)):
            one = probabilities(as_coins(law))
            here, there = np.append(one, 0.0), np.insert(one, 0, 0.0)
            p, q = np.outer(here, here), np.outer(there, there)
            factor = math.exp(2 * law.cost(1))
            for a, b in ((p, q), (q, p)):
                found = float(np.maximum(a - factor * b, 0).sum())
                assert found <= 2 * law.delta(1) + EPS
        law = coarse(Fraction(2), 3, 20)
        one = probabilities(as_coins(law))
        here, there = np.append(one, 0.0), np.insert(one, 0, 0.0)
        gap = np.outer(here, here) - math.exp(2 * law.cost(1)) * np.outer(there, there)
        assert float(np.maximum(gap, 0).sum()) > law.delta(1)


def coarse(scale: Fraction, digits: int, places: int) -> DigitLaw:
    whole = 1 << places
    odds = [math.exp(-(2**j) / scale) for j in range(digits)]
    coins = (min(max(round(whole * x / (1 + x)), 1), whole - 1) for x in odds)
    return DigitLaw(scale, tuple(coins), places)


def as_coins(law: DigitLaw) -> Coins:
    return Coins(law.numerators, law.places)


class TestPlanted:
    """What would be wrong is seen."""

    def test_a_star_and_the_second_largest(self) -> None:
        """The false rule for 2-stars: an edge at the centre of a star changes them by its degree,
        and the second-largest noisy degree does not know it."""
        nodes = 14
        case = change(nodes, {(0, x) for x in range(2, nodes)}, 0, 1, "two_stars")
        assert case.added == 12
        noise = choose(nodes, "two_stars", "second")
        law = noise.digits("degrees")
        budget = noise.budgets["two_stars"]
        ratio = budget.numerator, budget.denominator
        cap = 2 * (nodes - 2)
        # Margins that would be enough for triangles, and for twice the second-largest.
        margin = law.least_reach(0.01 / 2)
        for times in (1, 2):
            false = Twice(Bounded("committee", "second", margin, cap, *ratio), times)
            found = divergence(noise.digits("degrees"), false, case, noise.epsilon(1))
            assert found.worst > 20 * noise.delta
            assert found.bad > 20 * noise.delta
        assert measure(noise, "two_stars", case).worst <= noise.delta

    @pytest.mark.parametrize(
        ("answer", "rule", "name"),
        [
            ("triangles", "largest", "K_{2,4}"),
            ("triangles", "second", "K_{2,4}"),
            ("two_stars", "largest", "two hubs"),
        ],
    )
    def test_a_margin_less_by_one(self, answer: Answer, rule: Rule, name: str) -> None:
        nodes, edges = GRAPHS[name]
        case = change(nodes, edges, 0, 1, answer)
        tail = DigitLaw.choose(1, 2.0).tail
        delta = {"triangles": {"largest": tail(2) ** 2, "second": 2 * tail(2)}[rule],
                 "two_stars": tail(2, summed=2)}[answer] * 1.001  # fmt: skip
        noise = choose(nodes, answer, rule, epsilon=34.0, degree_share=4 / 34, delta=delta)
        assert noise.margins == {answer: 1}
        assert measure(noise, answer, case).worst <= delta + EPS
        less = replace(noise, margins={answer: 0})
        found = measure(less, answer, case)
        assert found.worst > 2 * delta
        assert found.bad > 2 * delta

    def test_two_stars_with_the_margin_of_one_noise(self) -> None:
        """Two noises can be low together: the tail of one would give too small a margin."""
        least = 4
        law = DigitLaw.choose(1, 1.0)
        delta = law.tail(least, summed=2) * 1.001
        leaves = {(0, x) for x in range(2, 8)} | {(1, x) for x in range(8, 14)}
        case = change(14, leaves, 0, 1, "two_stars")
        more: dict[str, Any] = {"epsilon": 44.0, "degree_share": Fraction(2, 44), "delta": delta}
        noise = choose(14, "two_stars", "largest", **more)
        assert noise.margins == {"two_stars": least - 1}
        assert measure(noise, "two_stars", case).worst <= delta + EPS
        one = replace(noise, margins={"two_stars": law.least_reach(delta)})
        assert one.margins["two_stars"] < least - 1
        assert measure(one, "two_stars", case).worst > 1.5 * delta

    def test_the_largest_with_the_margin_of_both_ends_for_the_second(self) -> None:
        """F² is for ``largest`` alone: with ``second`` one end is enough to fail."""
        nodes, edges = GRAPHS["K_{2,4}"]
        case = change(nodes, edges, 0, 1, "triangles")
        noise = choose(nodes, "triangles", "largest", epsilon=34.0, degree_share=4 / 34, delta=3e-4)
        wrong = replace(noise, rule="second")
        assert measure(noise, "triangles", case).worst <= 3e-4
        assert measure(wrong, "triangles", case).worst > 10 * 3e-4

    def test_a_count_with_the_noise_of_a_smaller_bound(self) -> None:
        nodes, edges = GRAPHS["K_{2,4}"]
        case = change(nodes, edges, 0, 1, "triangles")
        noise = choose(nodes, "triangles", "largest")
        bounded = noise.drawn("triangles")
        assert isinstance(bounded, Bounded)
        less = Coarse(bounded, lambda b: bounded.at(max(b - 1, 1)))
        found = divergence(noise.digits("degrees"), less, case, noise.epsilon(1))
        assert found.worst > noise.delta

    def test_one_degree_with_the_budget_of_two(self) -> None:
        nodes, edges = GRAPHS["K_{2,4}"]
        case = change(nodes, edges, 0, 1, "triangles")
        noise = choose(nodes, "triangles", "largest", degree_share=0.5, epsilon=4.0, delta=1e-3)
        narrow = DigitLaw.choose(1, noise.budgets["degrees"])
        bounded = noise.drawn("triangles")
        assert isinstance(bounded, Bounded)
        found = divergence(narrow, bounded, case, noise.epsilon(1))
        assert found.worst > 1e-3
        assert measure(noise, "triangles", case).worst <= 1e-3


class Twice:
    """A false rule: so many times the second-largest, and the margin."""

    def __init__(self, bounded: Bounded, times: int) -> None:
        self.bounded, self.times = bounded, times

    def bound(self, degrees: np.ndarray) -> int:
        second = int(np.sort(degrees)[-2])
        return max(1, min(self.bounded.cap, self.times * second + self.bounded.margin))

    def at(self, bound: int) -> Coins:
        return self.bounded.at(bound)
