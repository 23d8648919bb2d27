"""The noise of the sealed method: sensitivities by all small graphs, budgets, bounds, margins.

The (ε, δ) of the whole mechanism is enumerated in ``test_mechanism.py``.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from silograph.dp.digits import DIGIT_DELTA, DigitLaw
from silograph.dp.laplace import NoiseLaw
from silograph.errors import ArgumentError
from silograph.estimators.reference import guess, reference_of
from silograph.graph.samples import clustered_power_law
from silograph.methods.prediction import Question
from silograph.methods.sealed.expected import expected_bound, expected_top_two
from silograph.methods.sealed.method import choose_noise, expected_error, kind_of
from silograph.methods.sealed.noise import (
    HONEST,
    NOISE_DELTA,
    PARTS,
    Answer,
    Bounded,
    Coins,
    Output,
    Parts,
    Rule,
    SealedNoise,
)

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
            assert choose(0.5, nodes, key, kind="shares").scale(key) == 2 * value
            assert choose(0.5, nodes, key).scale(key) == 2 * value * (1 + Fraction(1, 2**20))

    @pytest.mark.parametrize("nodes", [3, 4, 5])
    def test_by_degrees(self, nodes: int) -> None:
        """Triangles change by at most the smaller degree, 2-stars by the sum of both."""
        for graph, u, v in added(nodes):
            d, by = graph.sum(axis=0), change(graph, u, v)
            assert by["triangles"] <= min(d[u], d[v])
            assert by["two_stars"] == d[u] + d[v]


class TestChoice:
    def test_parts_of_epsilon(self) -> None:
        share = {"degree_share": Fraction(1, 4), "kind": "shares"}
        noise = choose(1.0, 50, "degrees", "triangles", **share)
        assert noise.budgets == {"degrees": Fraction(1, 4), "triangles": Fraction(3, 4)}
        assert noise.scale("degrees") == 8
        assert noise.scale("triangles") == 64
        assert choose(1.0, 50, "edges", kind="shares").scale("edges") == 1
        noise = choose(
            1.0, 50, "triangles", "two_stars", delta=0.01, rule="second", triangle_share=0.75
        )
        assert noise.answers == ("degrees", "two_stars", "triangles")
        assert noise.budgets["triangles"] == 3 * noise.budgets["two_stars"]
        assert sum(noise.budgets.values()) == 1
        alone = choose(1.0, 50, "triangles", triangle_share=0.25)
        assert alone.budgets == {"triangles": Fraction(1)}

    @pytest.mark.parametrize("epsilon", [0.001, 0.1, 1 / 3, 1.0, 3.0, math.pi])
    @pytest.mark.parametrize(
        ("kind", "rule"),
        [("committee", None), ("committee", "largest"), ("committee", "second"), ("shares", None)],
    )
    def test_never_more_than_was_asked_for(
        self, epsilon: float, kind: str, rule: Rule | None
    ) -> None:
        noise = choose(
            epsilon, 200, "degrees", *COUNTS, silos=5, delta=1e-6, kind=kind, rule=rule,
            triangle_share=0.3,
        )  # fmt: skip
        assert noise.epsilon(0) == noise.epsilon(1) <= epsilon
        assert noise.epsilon(1) > epsilon * (1 - 2e-6)
        assert math.isinf(noise.epsilon(2))
        for answer in noise.answers:
            times = 2 if answer == "degrees" else 1
            most = noise.sensitivity(answer)
            bounds = [1, 2, 7, most // 2, most] if answer in noise.margins else [None]
            for bound in bounds:
                shift = noise.sensitivity(answer, bound)
                if kind == "committee":
                    law = noise.digits(answer, bound)
                    assert times * law.cost(shift) <= noise.budgets[answer]
                    assert law.delta(shift) <= DIGIT_DELTA
                    assert law.ideal == noise.law(answer, bound)
                else:
                    assert times * shift / noise.scale(answer) <= noise.budgets[answer]
                    assert noise.law(answer) == NoiseLaw(noise.scale(answer), 3, 4)

    def test_one_known_part_leaves_a_whole_noise(self) -> None:
        """Certified with three honest parts; with two of them it would cost more."""
        noise = choose(2.0, 12, "triangles", kind="shares")
        law = noise.law("triangles")
        assert law.loss(HONEST, 10) == noise.epsilon(1) == 2.0
        assert law.loss(HONEST - 1, 10) > 2.5
        assert law.parties == PARTS

    def test_losses(self) -> None:
        noise = choose(1.0, 40, "triangles", silos=4)
        assert list(noise.losses) == [0, 1, 2, 3]
        assert noise.losses[0] == noise.losses[1] <= 1.0
        assert math.isinf(noise.losses[2])
        assert math.isinf(noise.losses[3])
        inside = choose(1.0, 40, "triangles", silos=4, collusion=0, inside=True)
        assert inside.losses[0] <= 1.0
        assert math.isinf(inside.losses[1])
        assert choose(1.0, 40, "triangles", silos=20).losses[1] == noise.losses[1]

    def test_views(self) -> None:
        noise = choose(1.0, 100, "triangles", silos=4, delta=1e-6, rule="largest")
        assert [(v.name, v.claimed, v.delta) for v in noise.views] == [
            ("coordinator", True, 1e-6),
            ("coordinator + 1 member", True, 1e-6),
            ("1 member + answers", True, 1e-6),
            ("2 members", False, 0.0),
        ]
        assert math.isinf(noise.views[3].epsilon)
        inside = choose(1.0, 100, "triangles", collusion=0, inside=True)
        assert [(v.claimed, math.isinf(v.epsilon)) for v in inside.views] == [
            (True, False), (False, True), (True, False), (False, True)
        ]  # fmt: skip

    def test_delta_is_what_it_is_made_of(self) -> None:
        for rule, delta in ((None, 1e-6), ("largest", 1e-6), ("second", 1e-12), ("largest", 1e-17)):
            noise = choose(1.0, 100, *COUNTS, delta=delta, rule=rule)
            assert noise.delta == (delta if rule else NOISE_DELTA)
            parts = noise.parts_of_delta
            assert sum(map(Fraction, parts.values())) <= Fraction(noise.delta)
            assert parts["counts"] == 2 * DIGIT_DELTA
            assert (parts["bounds"] > 0) == (parts["degrees"] > 0) == (rule is not None)
            if rule:
                assert parts["degrees"] == 2 * noise.digits("degrees").delta(1)
                assert parts["bounds"] > 0.1 * delta
        shares = choose(1.0, 100, *COUNTS, kind="shares", delta=1e-6)
        assert shares.delta == sum(shares.parts_of_delta.values()) == 0.0
        everything = choose(1.0, 100, "degrees", *COUNTS)
        assert sum(map(Fraction, everything.parts_of_delta.values())) <= NOISE_DELTA

    def test_the_same_at_another_epsilon(self) -> None:
        noise = choose(1.0, 50, *COUNTS, delta=1e-6, rule="second", degree_share=0.25,
                       triangle_share=0.75)  # fmt: skip
        assert noise.at(1.0) == noise
        assert noise.at(2.0).budgets == {a: 2 * b for a, b in noise.budgets.items()}
        for one in (
            choose(1.0, 50, "edges"),
            choose(1.0, 50, *COUNTS, kind="shares"),
            choose(1.0, 50, "degrees", "triangles"),
            choose(1.0, 50, "triangles"),
        ):
            assert one.at(1.0) == one  # fmt: skip

    @pytest.mark.parametrize(
        ("answers", "more", "message"),
        [
            ([], {}, "answers must be from"),
            (["stars"], {}, "answers must be from"),
            (["degrees", "degrees"], {}, "each once"),
            (["edges", "degrees"], {}, "follows from the degrees"),
            (["edges", "triangles"], {"delta": 0.1, "rule": "second"}, "follows from the degrees"),
            (["degrees"], {"delta": 0.1, "rule": "largest"}, "a rule bounds"),
            (["triangles"], {"delta": 1.0}, "delta must be"),
            (["triangles"], {"delta": math.nan}, "delta must be"),
            (["triangles"], {"delta": 0.0}, "committee noise needs a delta"),
            (["triangles"], {"delta": 2.0**-61}, "committee noise needs a delta"),
            (["triangles"], {"rule": "largest"}, "a bound needs a delta"),
            (["triangles"], {"rule": "third", "delta": 0.1}, "largest or second"),
            (["triangles"], {"kind": "each"}, "committee or shares"),
            (
                ["triangles"],
                {"kind": "shares", "rule": "largest", "delta": 0.1},
                "lowers the bound",
            ),
            (["degrees", "triangles"], {"degree_share": 1}, "degree_share"),
            (["triangles"], {"triangle_share": 0}, "triangle_share"),
            (["triangles"], {"nodes": 2}, "too few"),
            (["triangles"], {"collusion": 2}, "collusion is at most 1"),
            (["triangles"], {"inside": True}, "collusion is 0"),
        ],
    )
    def test_nonsense(self, answers: list[Answer], more: dict[str, Any], message: str) -> None:
        options = {"nodes": 10, "silos": 3, "collusion": 1} | more
        with pytest.raises(ArgumentError, match=message):
            SealedNoise.choose(1.0, answers=answers, **options)


class TestBounds:
    def test_where_they_belong(self) -> None:
        noise = choose(1.0, 10, "triangles", delta=0.01, rule="largest")
        wrong: list[tuple[Answer, int | None]] = [
            ("triangles", None), ("degrees", 3), ("triangles", 9), ("triangles", 0), ("edges", None)
        ]  # fmt: skip
        for answer, bound in wrong:
            with pytest.raises(ArgumentError):
                noise.scale(answer, bound)
        assert choose(1.0, 1000, "triangles").bound("triangles", np.zeros(1000, np.int64)) is None
        with pytest.raises(ArgumentError, match="10 nodes"):
            noise.bound("triangles", np.zeros(9, np.int64))

    @pytest.mark.parametrize("rule", ["largest", "second"])
    def test_by_rule(self, rule: Rule) -> None:
        noise = choose(1.0, 1000, *COUNTS, delta=0.01, rule=rule)
        for largest, second in ((-5000, -5001), (30, 7), (90, 90), (900, 400), (5000, 4000)):
            degrees = np.full(1000, -6000)
            degrees[[7, 600]] = second, largest
            triangles = {"largest": largest, "second": second}[rule] + noise.margins["triangles"]
            stars = largest + second + noise.margins["two_stars"]
            assert noise.bound("triangles", degrees) == min(max(triangles, 1), 998)
            assert noise.bound("two_stars", degrees) == min(max(stars, 1), 1996)
            for answer in COUNTS:
                drawn = noise.drawn(answer)
                assert isinstance(drawn, Bounded)
                assert drawn.bound(degrees) == noise.bound(answer, degrees)
                law = noise.digits(answer, drawn.bound(degrees))
                assert drawn.at(drawn.bound(degrees)) == Coins(law.numerators, law.places)

    @pytest.mark.parametrize("delta", [0.3, 0.05, 1e-3, 1e-9, 1e-15])
    @pytest.mark.parametrize("rule", ["largest", "second"])
    def test_the_least_margin(self, delta: float, rule: Rule) -> None:
        noise = choose(2.0, 500, *COUNTS, silos=5, delta=delta, rule=rule)
        law = noise.digits("degrees")
        assert law == DigitLaw.choose(1, noise.budgets["degrees"] / 2)
        each = (delta - 2 * law.delta(1) - 2 * DIGIT_DELTA) / 2

        def fails(s: int) -> float:
            return law.tail(s + 1) ** 2 if rule == "largest" else 2 * law.tail(s + 1)

        s = noise.margins["triangles"]
        assert fails(s) <= each
        assert s == 0 or fails(s - 1) > each * (1 - 1e-9)
        s = noise.margins["two_stars"]
        assert law.tail(s + 1, summed=2) <= each
        assert s == 0 or law.tail(s, summed=2) > each * (1 - 1e-9)

    def test_as_the_design_says(self) -> None:
        """Facebook at epsilon 1, δ 10^−9, t = 1: about 0.12 % of 1,612,010 triangles."""
        noise = choose(1.0, 4039, "triangles", silos=4, delta=1e-9, rule="largest")
        bound = 1060 + noise.margins["triangles"]
        assert noise.law("triangles", bound).stderr / 1_612_010 < 0.00125


class TestDrawn:
    def test_what_the_protocol_gets(self) -> None:
        noise = choose(1.0, 60, "degrees", "triangles")
        for answer in noise.answers:
            coins, law = noise.drawn(answer), noise.digits(answer)
            assert coins == Coins(law.numerators, law.places)
            assert coins.reach == law.reach
        shares = choose(1.0, 60, "degrees", "triangles", kind="shares").drawn("triangles")
        assert shares == Parts(580, 9)
        with pytest.raises(ArgumentError, match="no digits"):
            choose(1.0, 60, "degrees", kind="shares").digits("degrees")

    def test_fields_hold_everything(self) -> None:
        coins, parts = Coins((3, 2), 3), Parts(5, 2)
        given = [
            ("largest", 3, 10, 1, 2), ("second", 3, 10, 1, 2), ("largest", 4, 10, 1, 2),
            ("largest", 3, 9, 1, 2), ("largest", 3, 10, 2, 2), ("largest", 3, 10, 1, 3),
        ]  # fmt: skip
        every = [
            coins, Coins((2, 3), 3), Coins((3, 2), 4), Coins((3, 2, 2), 3),
            parts, Parts(5, 3), Parts(4, 2),
            *(Bounded("committee", *one) for one in given),  # type: ignore[arg-type]
        ]  # fmt: skip
        fields: list[tuple[object, ...]] = [one.fields() for one in every]  # type: ignore[attr-defined]
        assert len(set(fields)) == len(every)
        assert all(isinstance(x, (str, int)) for one in fields for x in one)

    def test_parts(self) -> None:
        parts = Parts(20, 3)
        drawn = sum(parts.draw(20_000, bytes([member]) * 32) for member in range(PARTS))
        law = NoiseLaw(Fraction(20, 3), 3, 4)
        assert np.var(drawn) == pytest.approx(float(law.variance), rel=0.1)
        assert law.tail(parts.reach + 1) <= 2.0**-65 < law.tail(parts.reach * 7 // 8)
        assert np.abs(drawn).max() <= parts.reach

    @pytest.mark.parametrize(
        "make",
        [
            lambda: Coins((), 3),
            lambda: Coins((8,), 3),
            lambda: Coins((0,), 3),
            lambda: Coins((1,), 257),
            lambda: Coins((1,) * 63, 4),
            lambda: Parts(0, 1),
            lambda: Parts(1 << 63, 1 << 60),
            lambda: Parts(1 << 52, 1),
            lambda: Bounded("shares", "largest", 3, 10, 1, 2),
            lambda: Bounded("committee", "both", 3, 10, 1, 2),  # type: ignore[arg-type]
            lambda: Bounded("committee", "largest", -1, 10, 1, 2),
            lambda: Bounded("committee", "largest", 3, 0, 1, 2),
            lambda: Bounded("committee", "largest", 3, 10, 1, 2).at(11),
            lambda: Bounded("committee", "largest", 3, 10, 1, 2).at(0),
            lambda: Bounded("committee", "largest", 3, 10, 1, 2).bound(np.array([1])),
            lambda: Output("stars", Parts(1, 1)),  # type: ignore[arg-type]
            lambda: Output("two_stars", Bounded("committee", "second", 3, 10, 1, 2)),
            lambda: Output("triangles", Bounded("committee", "sum", 3, 10, 1, 2)),
            lambda: Output("degrees", Bounded("committee", "largest", 3, 10, 1, 2)),
        ],
    )
    def test_no_such_noise(self, make: Any) -> None:
        with pytest.raises(ArgumentError):
            make()


class TestExpected:
    @pytest.mark.parametrize("scale", [0.5, 5.0, 60.0, 3000.0])
    def test_the_largest_two_of_many(self, scale: float) -> None:
        degrees = clustered_power_law(800, seed=1).degrees()
        random, p = np.random.default_rng(1), math.exp(-1 / scale)
        shape = (1500, len(degrees))
        noise = random.geometric(1 - p, shape) - random.geometric(1 - p, shape)
        noisy = np.sort(degrees + noise, axis=1)
        for found, drawn in zip(
            expected_top_two(degrees, scale), (noisy[:, -1], noisy[:, -2]), strict=True
        ):
            error = 5 * drawn.std() / math.sqrt(len(drawn))
            assert found == pytest.approx(drawn.mean(), abs=error + 0.02 * scale)

    @pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
    @pytest.mark.parametrize("rule", ["largest", "second"])
    def test_bounds_of_runs(self, epsilon: float, rule: Rule) -> None:
        """The error that is predicted is within a few percent of that of many runs."""
        graph = clustered_power_law(1000, 12, seed=2)
        reference = reference_of(graph, cycles=False)
        noise = choose(epsilon, 1000, *COUNTS, delta=1e-6, rule=rule)
        p = math.exp(-1 / noise.scale("degrees"))
        random = np.random.default_rng(1)
        for answer in COUNTS:
            drawn = [
                noise.bound(
                    answer,
                    graph.degrees() + random.geometric(1 - p, 1000) - random.geometric(1 - p, 1000),
                )
                for _ in range(300)
            ]
            mean = math.sqrt(np.mean([float(b or 0) ** 2 for b in drawn]))
            assert expected_bound(reference, noise, answer) == pytest.approx(mean, rel=0.03)
        free = choose(epsilon, 1000, "triangles")
        assert expected_bound(reference, free, "triangles") is None

    def test_one_node_and_no_noise(self) -> None:
        assert expected_top_two(np.array([5, 9]), 0.01) == pytest.approx((9, 5), abs=0.01)
        assert expected_top_two(np.zeros(4, np.int64), 0.01) == pytest.approx((0, 0), abs=0.01)


class TestChosen:
    """What the planner takes."""

    REFERENCE = guess(4039, 88_234, triangles=1_612_010, top_degree=1045)

    def ask(self, query: str, delta: float | None, epsilon: float = 1.0, **more: Any) -> Any:
        return choose_noise(self.REFERENCE, Question(query, epsilon, 4, 1, delta=delta, **more))

    def test_delta_says_which_kind(self) -> None:
        for delta, kind in ((None, "committee"), (0.0, "shares"), (2.0**-61, "shares"),
                            (NOISE_DELTA, "committee"), (1e-9, "committee")):  # fmt: skip
            assert kind_of(delta) == kind
            noise = self.ask("triangles", delta).noise
            assert noise.kind == kind
            assert (noise.rule is not None) == (delta == 1e-9)
            assert noise.delta == {"committee": NOISE_DELTA, "shares": 0.0}[kind] or delta == 1e-9
        forced = choose_noise(self.REFERENCE, Question("triangles", 1.0, 4, 1), "shares").noise
        assert forced.kind == "shares"
        inside = choose_noise(self.REFERENCE, Question("triangles", 1.0, 4, 0), inside=True).noise
        assert inside.inside

    def test_a_bound_only_where_it_helps(self) -> None:
        assert self.ask("triangles", 1e-9).error < self.ask("triangles", None).error / 2
        # Of few nodes every one may be the neighbour of every other: the margin costs more.
        small = guess(20, 100)
        noise = choose_noise(small, Question("triangles", 0.5, 4, 1, delta=1e-9)).noise
        assert noise.rule is None
        assert noise.delta == NOISE_DELTA

    def test_a_single_hub_is_bounded_by_the_second(self) -> None:
        degrees = np.full(3000, 20)
        degrees[0] = 2500

        star = replace(self.REFERENCE, nodes=3000, degrees=degrees)
        noise = choose_noise(star, Question("triangles", 2.0, 4, 1, delta=1e-9)).noise
        assert noise.rule == "second"

    def test_two_counts_share_as_is_best(self) -> None:
        asked = Question("clustering", 1.0, 4, 1, delta=1e-9)
        chosen = self.ask("clustering", 1e-9)
        noise = chosen.noise
        assert noise.answers == ("degrees", "two_stars", "triangles")
        whole = 1 - noise.budgets["degrees"]
        for share in (0.3, 0.5, 0.6, 0.8, 0.9):
            other = choose(
                1.0, 4039, *COUNTS, silos=4, delta=1e-9, rule=noise.rule,
                degree_share=noise.budgets["degrees"], triangle_share=share,
            )  # fmt: skip
            assert expected_error(self.REFERENCE, asked, other) >= chosen.error * (1 - 1e-4)
        assert 0.5 < noise.budgets["triangles"] / whole < 0.9

    def test_no_delta_is_spent_on_nothing(self) -> None:
        for query, more in (("edges", {}), ("degrees", {}), ("kstars", {"k": 3})):
            assert self.ask(query, 1e-9, **more).noise.delta == NOISE_DELTA
