"""Sealed counts on folded nodes: to the last unit, what they cost, and what follows from them."""

import math
from collections import Counter
from dataclasses import replace
from itertools import combinations, product
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import silograph
from silograph.dp.cells import CellRule, CellWeights
from silograph.dp.digits import DigitLaw
from silograph.errors import ArgumentError, LedgerWarning
from silograph.graph.fold import Fold, Layout
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.messages.identity import COORDINATOR
from silograph.methods.committee.rounds import State
from silograph.methods.sealed import party, rounds
from silograph.methods.sealed.folded import SealedFoldedRelease
from silograph.methods.sealed.method import sealed_parameters
from silograph.methods.sealed.noise import Coins, Output, SealedNoise, Weighted
from silograph.methods.sealed.rounds import SealedParameters
from silograph.methods.study import folded_index
from tests.dp.hockey import probabilities
from tests.methods.committee.run import FIVE, FOUR, Committee, at_random, random_committee
from tests.methods.sealed.run import SealedRun, bound_of

Matrix = npt.NDArray[np.int64]


# --- Runs of tiny rows ----------------------------------------------------------------------------


def places(layout: Layout) -> list[tuple[int, int, int]]:
    """The rows and the sign of every bucket, in their order, written again."""
    hubs, rows = range(layout.hubs), range(layout.hubs, layout.rows)
    alone = [(a, b, 1) for a, b in combinations(hubs, 2)]
    cells = [*product(hubs, rows), *combinations(rows, 2)]
    return alone + [(a, b, sign) for a, b in cells for sign in (1, -1)]


def table(weights: CellWeights) -> Matrix:
    n = weights.rule.rows
    found = np.zeros((n, n), dtype=np.int64)
    for a in range(n - 1):
        found[a, a + 1 :] = found[a + 1 :, a] = weights.row(a)
    return found


class FoldedRun(SealedRun):
    """A run whose silos hold buckets."""

    def true(self, output: Output, noisy_degrees: list[int] | None) -> list[int]:
        layout = self.parameters.layout
        assert layout is not None
        cells = np.zeros((layout.rows, layout.rows), dtype=np.int64)
        loads = [0] * layout.rows
        for k, (a, b, sign) in enumerate(places(layout)):
            held = self.union >> k & 1
            cells[a, b] += sign * held
            cells[b, a] += sign * held
            for row, other in ((a, b), (b, a)):
                loads[row] += held * (other >= layout.hubs)
        match output.name:
            case "edges":
                return [self.union.bit_count()]
            case "degrees":
                return loads
        assert isinstance(output.noise, Weighted)
        assert noisy_degrees is not None
        m = table(output.noise.cells.weights(noisy_degrees)) * cells
        return [int(np.trace(m @ m @ m)) // 6]


def parameters(committee: Committee, layout: Layout, **changes: Any) -> SealedParameters:
    answers = changes.pop("answers", ["edges", "degrees", "triangles"])
    noise = SealedNoise.choose_folded(
        changes.pop("epsilon", 20.0), layout.groups, layout.hubs, committee.silos,
        int(COORDINATOR not in committee.members), answers, degree_share=0.3,
        inside=COORDINATOR in committee.members,
    )  # fmt: skip
    made = sealed_parameters(noise, committee.members, b"nodes", layout)
    return replace(made, **({"chunk_pairs": 64} | changes))


def held_at_random(rng: Random, silos: int, buckets: int) -> list[int]:
    return [rng.getrandbits(buckets) & rng.getrandbits(buckets) for _ in range(silos)]


def has_answered(run: FoldedRun) -> bool:
    assert run.errors == []
    assert all(machine.state is State.DONE for machine in run.parties.values())
    assert run.answers == run.expected
    return True


class TestCounts:
    @pytest.mark.parametrize(
        "seeds", [range(12), pytest.param(range(12, 60), marks=pytest.mark.whole)], ids=str
    )
    def test_random_folds(self, seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every answer is the truth with this run's noise and weights, to the last unit."""
        seen = Counter[object]()
        for seed in seeds:
            rng = at_random(f"folded {seed}")
            band = rng.choice([2, 5, 512])
            for module in (rounds, party):
                monkeypatch.setattr(module, "ROWS", band)
            committee = random_committee(rng)
            layout = Layout(rng.choice([3, 4, 6, 9]), rng.choice([1, 2, 5, 0]))
            given = parameters(committee, layout)
            held = held_at_random(rng, committee.silos, layout.buckets)
            order = rng if rng.random() < 0.5 else None
            run = FoldedRun(committee, held, given=given, seed=seed, order=order).go()
            assert has_answered(run), seed
            seen.update([f"{min(layout.hubs, 2)} hubs", committee.silos])
            seen["chunks"] += given.chunks > 1
            seen["bands"] += given.bands > 1
            seen["counted"] += run.true(given.outputs[-1], run.answers["degrees"]) != [0]
        assert all(seen[what] > 1 for what in ("0 hubs", "1 hubs", "2 hubs", "chunks", "bands"))
        assert seen["counted"] > 5

    def test_odd_chunks_split_cells(self) -> None:
        """Three hubs have three buckets: every later cell begins at an odd one."""
        layout = Layout(8, 3)
        given = parameters(FIVE, layout, epsilon=1.0)
        assert given.chunks > 1
        run = FoldedRun(FIVE, held_at_random(at_random("odd"), 5, layout.buckets), given=given).go()
        assert has_answered(run)

    def test_without_triangles_nothing_is_told(self) -> None:
        layout = Layout(4, 1)
        given = parameters(FOUR, layout, answers=["edges", "degrees"])
        run = FoldedRun(FOUR, [5, 6, 7, 8], given=given).go()
        assert has_answered(run)
        assert run.rounds & {"open", "sum", "tell"} == {"open"}

    def test_members_with_other_weights_do_not_finish(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The weights differ, but not the bound: hashes that carry their digest do not match."""
        usual = party.SealedPart._weigh

        def other(self: Any, weights: CellWeights) -> None:
            numbers = tuple(reversed(weights.numbers))
            usual(self, replace(weights, numbers=numbers) if self._number == 2 else weights)

        monkeypatch.setattr(party.SealedPart, "_weigh", other)
        layout = Layout(5)
        run = FoldedRun(FOUR, [123456, 99, 7, 1 << 19], given=parameters(FOUR, layout)).go()
        assert run.errors
        assert run.coordinator.state is not State.DONE
        assert "sum" not in run.rounds


class TestParameters:
    def test_everything_is_signed(self) -> None:
        layout = Layout(5, 2)
        made = parameters(FOUR, layout)
        last = made.outputs[-1].noise
        assert isinstance(last, Weighted)
        cells = replace(last.cells, spread=last.cells.spread + 1)
        outputs = (*made.outputs[:-1], Output("triangles", replace(last, cells=cells)))
        assert replace(made, outputs=outputs).digest != made.digest
        other = parameters(FOUR, layout, answers=["edges", "degrees"])
        moved = Layout(6, 1)
        assert replace(other, layout=moved).digest != other.digest

    def test_refused(self) -> None:
        made = parameters(FOUR, Layout(5, 2))
        for wrong in (
            {"layout": None},
            {"layout": Layout(6, 1)},
            {"layout": Layout(5, 2, sub=2)},
            {"outputs": (*made.outputs[:-1], Output("triangles", Coins((1,), 1)))},
            {"outputs": made.outputs[2:]},
            {"outputs": made.outputs[:1] + made.outputs[2:]},
        ):
            with pytest.raises(ArgumentError):
                replace(made, **wrong)
        last = made.outputs[-1].noise
        assert isinstance(last, Weighted)
        with pytest.raises(ArgumentError, match="must not end below"):
            replace(last, cap=last.cap - 1)

    def test_numbers_are_wide_enough(self) -> None:
        """All cells of one sign, the largest weights, and the largest noise."""
        for groups, hubs in ((5, 0), (4096, 0), (2000, 1000), (19_999, 0)):
            noise = SealedNoise.choose_folded(
                0.5, groups, hubs, 4, 1, ["edges", "degrees", "triangles"]
            )
            given = sealed_parameters(noise, FOUR.members, b"nodes", Layout(groups, hubs))
            law = given.outputs[-1].noise
            assert isinstance(law, Weighted)
            rows, most = groups + hubs, law.cells.most
            largest = rows * (rows - 1) * (rows - 2) * most**3 + 6 * law.reach
            assert largest < 2 ** (8 * given.width - 1)


# --- What it costs --------------------------------------------------------------------------------


class TestCost:
    def test_the_parts_add_up(self) -> None:
        noise = SealedNoise.choose_folded(1.0, 50, 5, 4, 1, ["edges", "degrees", "triangles"])
        assert sum(noise.budgets.values()) == 1
        assert noise.epsilon(1) <= 1
        assert noise.epsilon(0) > 0.999
        assert noise.parts_of_delta["bounds"] == 0
        assert sum(noise.parts_of_delta.values()) <= noise.delta
        assert noise.at(0.5).epsilon(1) <= 0.5
        assert noise.at(1.0) == noise

    def test_both_phases_together(self) -> None:
        """Loads of three rows, weights, and the count: exact (ε, δ), over all noisy loads.

        Two buckets are occupied, and the third makes a triangle, or cancels it.
        """
        epsilon, most = 3.0, 2
        degrees = DigitLaw.choose(1, 0.5)
        law = np.array(probabilities(Coins(degrees.numerators, degrees.places)))
        # Few digits: what is cut off is counted as failed.
        reach, whole = 8, len(law) // 2
        one = law[whole - reach : whole + reach + 1]
        cut = 2 * (1 - one.sum() ** 2)
        rule = CellRule(3, 0, most, 4)
        noise = Weighted("committee", "weights", 0, rule.most_change, 2, 1, rule)
        worst = 0.0
        laws: dict[int, npt.NDArray[np.float64]] = {}
        moved = 0
        base = np.array([1, 1, 2])
        for y in product(range(-reach, reach + 2), repeat=2):
            loads = base + np.array([y[0], y[1], 3])
            weights = rule.weights(loads)
            w = table(weights)
            change = int(w[0, 1] * w[1, 2] * w[0, 2])
            moved += change > 0
            drawn = noise.at(noise.bound(loads))
            p = laws.setdefault(weights.change, np.array(probabilities(drawn)))
            with_edge = _at(one, y[0] - 1) * _at(one, y[1] - 1)
            without = _at(one, y[0]) * _at(one, y[1])
            here = np.concatenate([np.zeros(change), p])
            there = np.concatenate([p, np.zeros(change)])
            for a, b in ((with_edge * here, without * there), (without * there, with_edge * here)):
                worst += float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) / 2
        assert moved > 100
        assert worst <= cut + 1e-9
        assert cut < 0.2

    def test_less_noise_would_be_seen(self) -> None:
        """The bound of the weights is what the noise needs: half of it is not enough."""
        rule = CellRule(3, 0, 64, 0)
        weights = rule.weights([3, 3, 3])
        w = table(weights)
        change = int(w[0, 1] * w[1, 2] * w[0, 2])
        # Three rows have one triangle, and the bound counts all rows: a third of it is enough.
        assert weights.change < 5 * change
        law = DigitLaw.choose(change // 2, 1.0)
        assert law.epsilon(change) > 1.5


def _at(law: npt.NDArray[np.float64], z: int) -> float:
    at = z + len(law) // 2
    return float(law[at]) if 0 <= at < len(law) else 0.0


# --- Answers --------------------------------------------------------------------------------------


def communities(count: int, size: int, chance: float, others: int, seed: int) -> Silo:
    """Groups of nodes that are joined by chance, and a few edges between them."""
    rng = np.random.default_rng(seed)
    inside = np.array(list(combinations(range(size), 2)))
    edges = [inside[rng.random(len(inside)) < chance] + size * at for at in range(count)]
    far = rng.integers(0, count * size, (others, 2))
    every = np.sort(np.concatenate([*edges, far[far[:, 0] != far[:, 1]]]), axis=1)
    return Silo.from_edges(NodeUniverse.range(count * size), np.unique(every, axis=0))


def simulated(graph: Silo, layout: Layout, noise: SealedNoise, seed: int) -> SealedFoldedRelease:
    """What a run would open, with the largest degrees as hubs."""
    hubs = tuple(str(node) for node in np.argsort(-graph.degrees())[: layout.hubs])
    return SealedFoldedRelease.draw(graph, layout, hubs, noise, seed)


def dense_core(nodes: int, far: int, size: int, chance: float, seed: int) -> Silo:
    """A few nodes that are joined by chance, in a sparse graph."""
    rng = np.random.default_rng(seed)
    inside = np.array(list(combinations(range(size), 2)))
    ends = rng.integers(0, nodes, (far, 2))
    every = np.concatenate(
        [inside[rng.random(len(inside)) < chance], ends[ends[:, 0] != ends[:, 1]]]
    )
    return Silo.from_edges(NodeUniverse.range(nodes), np.unique(np.sort(every, axis=1), axis=0))


class TestAnswers:
    @pytest.mark.parametrize("hubs", [0, 60])
    def test_communities(self, hubs: int) -> None:
        """The mean is right within its error, and intervals cover."""
        graph, layout = communities(200, 20, 0.4, 3000, 1), Layout(500, hubs)
        noise = SealedNoise.choose_folded(
            4.0, layout.groups, hubs, 4, 1, ["edges", "degrees", "triangles"]
        )
        # The error of triangles allows for a core, which so small a graph could hide.
        for query, true, most in (
            ("triangles", graph.triangles(), 5.0),
            ("edges", len(graph), 2.5),
        ):
            found = [getattr(simulated(graph, layout, noise, seed), query)() for seed in range(12)]
            values = np.array([answer.value for answer in found])
            errors = np.array([answer.stderr for answer in found])
            typical = float(np.sqrt((errors**2).mean()))
            assert abs(values.mean() - true) < 4 * typical / math.sqrt(12), query
            assert 0.5 < typical / values.std(ddof=1) < most, query
            assert sum(abs(values - true) < 2 * errors) >= 9, query

    @pytest.mark.parametrize(("epsilon", "near"), [(0.5, 0.1), (1.0, 0.04)])
    def test_loads_under_much_noise(self, epsilon: float, near: float) -> None:
        """Weights from loads that are half noise are too small: the answer allows for it."""
        graph, layout = communities(100, 24, 0.8, 2000, 1), Layout(400)
        noise = SealedNoise.choose_folded(
            epsilon, layout.groups, 0, 4, 1, ["edges", "degrees", "triangles"]
        )
        found = [simulated(graph, layout, noise, seed).triangles() for seed in range(20)]
        true, values = graph.triangles(), np.array([answer.value for answer in found])
        assert abs(values.mean() - true) < near * true
        assert sum(low <= true <= high for low, high in (one.interval for one in found)) >= 18

    @pytest.mark.parametrize(("hubs", "epsilon"), [(0, 1.0), (0, 3.0), (40, 3.0)])
    def test_dense_core(self, hubs: int, epsilon: float) -> None:
        """Triangles in one core are the worst for a fold: intervals allow for it.

        Of 100 intervals that cover 95 %, fewer than 85 hold the truth in one of 27,000 cases.
        """
        graph, layout = dense_core(5000, 20_000, 100, 0.9, 1), Layout(500, hubs)
        noise = SealedNoise.choose_folded(
            epsilon, layout.groups, hubs, 4, 1, ["edges", "degrees", "triangles"]
        )
        drawn = [simulated(graph, layout, noise, seed) for seed in range(100)]
        for query, true, wide in (
            ("triangles", graph.triangles(), 0.6),
            ("edges", len(graph), 0.05),
        ):
            found = [getattr(release, query)() for release in drawn]
            ends = np.array([answer.interval for answer in found])
            assert sum((ends[:, 0] <= true) & (true <= ends[:, 1])) >= 85, query
            assert np.median(ends[:, 1] - ends[:, 0]) / 2 < wide * true, query
            values = np.array([answer.value for answer in found])
            assert abs(values.mean() - true) < 0.6 * values.std(), query

    def test_one_hub(self) -> None:
        """The one row of a star is full, and no more than noise beside all others.

        Of 400 intervals that cover 95 %, fewer than 365 hold the truth in one of 5,000 cases.
        """
        graph = Silo.from_edges(NodeUniverse.range(200), [(0, leaf) for leaf in range(1, 200)])
        noise = SealedNoise.choose_folded(2.0, 28, 0, 3, 0, ["edges", "degrees", "triangles"])
        drawn = [simulated(graph, Layout(28), noise, seed) for seed in range(400)]
        ends = np.array([release.edges().interval for release in drawn])
        assert sum((ends[:, 0] <= 199) & (ends[:, 1] >= 199)) >= 365
        # If anyone may be a node, there is no limit to what a full row hides.
        full = max(drawn, key=lambda release: int(release.noisy_loads.max()))
        assert math.isinf(replace(full, nodes=0).edges().stderr)

    def test_rows_that_are_mostly_noise(self) -> None:
        """The spread of loads is small beside their noise, which the logarithm must not bend."""
        graph = silograph.clustered_power_law(20_000, 4, seed=2)
        noise = SealedNoise.choose_folded(0.1, 566, 0, 4, 1, ["edges", "degrees", "triangles"])
        found = [simulated(graph, Layout(566), noise, seed).edges() for seed in range(20)]
        true, values = len(graph), np.array([answer.value for answer in found])
        assert abs(values.mean() - true) < 0.05 * true
        assert sum(low <= true <= high for low, high in (one.interval for one in found)) >= 16

    def test_no_hub(self) -> None:
        """Where no row can be full, there is little to allow for."""
        graph = communities(200, 20, 0.4, 3000, 1)
        noise = SealedNoise.choose_folded(1.0, 500, 0, 4, 1, ["edges", "degrees", "triangles"])
        release = simulated(graph, Layout(500), noise, 1)
        assert release._model.edges_more < 0.3 * release.edges().stderr

    def test_core_limits(self) -> None:
        """Degrees follow from loads, and limit the size of a clique."""
        graph, layout = dense_core(5000, 20_000, 100, 1.0, 1), Layout(1000)
        noise = SealedNoise.choose_folded(20.0, 1000, 0, 4, 1, ["edges", "degrees"])
        model = simulated(graph, layout, noise, 1)._model
        d = graph.degrees().astype(float)
        for power, found in ((1, model.degrees.first), (2, model.degrees.second)):
            assert found == pytest.approx((d**power).sum(), rel=0.15)
        assert model.degrees.third == pytest.approx((d**3).sum(), rel=0.3)
        assert 100 < model.core < 130
        even = simulated(communities(250, 20, 0.4, 100, 1), layout, noise, 1)
        assert even._model.core < 60
        assert even._model.core < replace(even, nodes=0)._model.core

    def test_no_interval(self) -> None:
        """A star makes loads so uneven that any core could hide in so few groups."""
        core = dense_core(300, 60, 12, 1.0, 1)
        star = [(0, leaf) for leaf in range(12, 300)]
        graph = Silo.from_edges(core.universe, [*core.pairs.tolist(), *star])
        noise = SealedNoise.choose_folded(20.0, 60, 0, 4, 1, ["edges", "degrees", "triangles"])
        answer = simulated(graph, Layout(60), noise, 1).triangles()
        assert math.isinf(answer.stderr)
        assert answer.note.startswith("no usable answer: all triangles may be in one dense core")

    def test_too_few_groups(self) -> None:
        graph, layout = communities(60, 20, 0.5, 500, 6), Layout(25)
        answers: list[Any] = ["edges", "degrees", "triangles"]
        noise = SealedNoise.choose_folded(4.0, 25, 0, 4, 1, answers)
        release = simulated(graph, layout, noise, 1)
        assert math.isnan(release.triangles().value)
        for answer in (release.triangles(), release.edges()):
            assert math.isinf(answer.stderr)
            assert answer.note.startswith("no usable answer: ")
            assert "more groups" in answer.note

    def test_what_was_not_opened(self) -> None:
        graph = communities(10, 10, 0.5, 10, 3)
        noise = SealedNoise.choose_folded(4.0, 30, 0, 4, 1, ["edges", "degrees"])
        release = simulated(graph, Layout(30), noise, 1)
        with pytest.raises(ArgumentError, match="does not answer triangles"):
            release.triangles()
        with pytest.raises(ArgumentError, match="one load"):
            replace(release, noisy_loads=release.noisy_loads[1:])
        with pytest.raises(ArgumentError, match="the noise is for"):
            replace(release, noisy_triangles=3)
        assert "occupied buckets, loads of rows" in str(release)
        assert "30 groups" in release._repr_html_()


@pytest.mark.slow
class TestFederation:
    def test_both_queries(self) -> None:
        graph = communities(60, 20, 0.5, 500, 4)
        with pytest.warns(LedgerWarning):
            federation = silograph.Federation.simulate(silograph.split(graph, 4))
            hubs = tuple(str(node) for node in np.argsort(-graph.degrees())[:20])
            for query, true in (("triangles", graph.triangles()), ("edges", len(graph))):
                for fold in (Fold(400), Fold(300, hubs=hubs)):
                    index = folded_index(fold, federation.universe)
                    outcome = federation._ask("sealed", query, 4.0, 1, index=index)
                    answer = outcome.answer
                    assert answer is not None
                    assert isinstance(outcome.source, SealedFoldedRelease)
                    assert abs(answer.value - true) < 5 * answer.stderr
                    assert answer.epsilon <= 4.0
                    assert answer.delta == 2.0**-60
                    assert "at most one is dishonest" in answer.note

    def test_refused(self) -> None:
        federation = silograph.Federation.simulate(
            silograph.split(communities(5, 10, 0.5, 10, 5), 4)
        )
        index = folded_index(Fold(20), federation.universe)
        twice = folded_index(Fold(20, sub=2), federation.universe)
        for query, given, options, what in (
            ("four_cycles", index, {}, "edges and triangles"),
            ("triangles", twice, {}, "one sub-bucket"),
            ("triangles", index, {"rule": "largest"}, "no use for option"),
            ("triangles", index, {"noise": "shares"}, "committee noise"),
            ("triangles", index, {"answers": "triangles"}, "is answered by"),
            ("release", index, {"answers": "two_stars,degrees"}, "loads of rows"),
        ):
            with pytest.raises(ArgumentError, match=what):
                federation._ask("sealed", query, 4.0, 1, index=given, options=options)


def test_bounds_are_those_of_the_weights() -> None:
    rule = CellRule(4, 1, 32, 3)
    law = Weighted("committee", "weights", 0, rule.most_change, 1, 1, rule)
    loads = [4, 1, 2, 3, 0]
    assert bound_of(law, loads) == rule.weights(loads).change
