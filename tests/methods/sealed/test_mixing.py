"""Edges by a public partition: what the committee counts, what it costs, and what is refused."""

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from silograph import Federation, NodeUniverse, Silo, clustered_power_law, split, union
from silograph.dp.digits import DIGIT_DELTA
from silograph.errors import ArgumentError, StudyError
from silograph.estimators.groups import Groups
from silograph.methods.catalogue import plan_study
from silograph.methods.sealed.answer import SealedRelease
from silograph.methods.sealed.method import TRUST_NOTE, group_options
from silograph.methods.sealed.noise import Coins, SealedNoise
from silograph.methods.sealed.rounds import MOST_GROUPS
from silograph.methods.study import Study, StudyMember
from tests.dp.hockey import probabilities
from tests.methods.committee.run import COMMITTEES, FOUR, at_random
from tests.methods.sealed.run import (
    COINS,
    PARTS,
    SealedRun,
    mixing,
    parameters,
    plain,
    random_holdings,
)
from tests.methods.sealed.test_machines import has_answered, in_pieces

pytestmark = pytest.mark.filterwarnings("ignore::silograph.errors.LedgerWarning")

#: Three groups of nine nodes, of 4, 4 and 1 nodes.
NINE = bytes([0, 1, 0, 1, 2, 1, 0, 1, 0])


class TestCounting:
    @pytest.mark.parametrize("noise", [COINS, PARTS], ids=["coins", "parts"])
    @pytest.mark.parametrize("name", COMMITTEES)
    def test_every_committee(self, name: str, noise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        in_pieces(monkeypatch, 4, 512)
        committee = COMMITTEES[name]
        held = random_holdings(at_random(name), committee.silos, 13)
        labels = NINE + NINE[:4]
        given = parameters(committee, 13, plain(("mixing",), noise), labels=labels, groups=3)
        assert given.chunks == 2
        assert len(given.noise_chunks) == 2
        assert has_answered(SealedRun(committee, held, given=given).go())

    @pytest.mark.parametrize("groups", [1, 2, 7, MOST_GROUPS])
    def test_any_number_of_groups(self, groups: int) -> None:
        labels = bytes(node * node % groups for node in range(9))
        given = parameters(FOUR, 9, plain(("mixing",)), labels=labels, groups=groups)
        run = SealedRun(FOUR, [11, 1 << 30, 7, 0], given=given).go()
        assert has_answered(run)
        assert len(run.answers["mixing"]) == groups * (groups + 1) // 2

    def test_an_edge_that_all_hold_counts_once(self) -> None:
        given = parameters(FOUR, 9, plain(("mixing",)), labels=NINE, groups=3)
        run = SealedRun(FOUR, [1 << 5] * 4, given=given).go()
        assert has_answered(run)
        assert sum(mixing(given, run.union)) == 1


class TestCost:
    @pytest.mark.parametrize("nodes", [2, 3, 4])
    def test_an_edge_changes_one_number_by_one(self, nodes: int) -> None:
        """In every graph, for every partition: what the noise of each number is made for."""
        pairs = nodes * (nodes - 1) // 2
        groups = min(nodes, 6 - nodes)
        for labels in itertools.product(range(groups), repeat=nodes):
            given = parameters(FOUR, nodes, plain(("mixing",)), labels=bytes(labels), groups=groups)
            for union_, pair in itertools.product(range(2**pairs), range(pairs)):
                before, after = mixing(given, union_ & ~(1 << pair)), mixing(given, 1 << pair)
                both = mixing(given, union_ | 1 << pair)
                assert [b + a for b, a in zip(before, after, strict=True)] == both
                assert sum(after) == 1

    @pytest.mark.parametrize("epsilon", [0.05, 0.7, 1.0, 3.0])
    def test_epsilon_of_what_is_drawn(self, epsilon: float) -> None:
        """All numbers together, of which one changes: exactly, from the coins themselves."""
        noise = SealedNoise.choose(epsilon, 50, 4, 1, ["mixing"])
        assert noise.drawn("mixing") == SealedNoise.choose(epsilon, 50, 4, 1, ["edges"]).drawn(
            "edges"
        )
        coins = noise.drawn("mixing")
        assert isinstance(coins, Coins)
        assert noise.epsilon(1) <= epsilon
        law = noise.digits("mixing")
        assert law.delta(1) <= DIGIT_DELTA
        assert law.cost(1) <= epsilon
        if epsilon < 1:
            return
        one = probabilities(coins)  # of the number that changes; the others cancel
        here, there = np.append(one, 0.0), np.insert(one, 0, 0.0)
        for p, q in ((here, there), (there, here)):
            excess = np.maximum(p - np.exp(noise.epsilon(1)) * q, 0).sum()
            assert excess <= noise.delta + 1e-15
            assert np.maximum(p - np.exp(0.99 * noise.epsilon(1)) * q, 0).sum() > 1e-6

    def test_shares(self) -> None:
        noise = SealedNoise.choose(1.0, 50, 4, 1, ["mixing"], kind="shares")
        assert (noise.scale("mixing"), noise.delta) == (1, 0.0)


class TestParameters:
    def test_the_digest_covers_the_groups(self) -> None:
        base = parameters(FOUR, 9, plain(("mixing",)), labels=NINE, groups=3)
        others = [
            replace(base, groups=4),
            replace(base, labels=NINE[::-1][:-1] + b"\x01"),
            parameters(FOUR, 9, plain(("edges",))),
        ]
        assert len({given.digest for given in (base, *others)}) == 4

    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            ({"labels": b"", "groups": 0}, "need groups"),
            ({"labels": NINE[:-1]}, "one group for each node"),
            ({"groups": 2}, "one group for each node"),
            ({"groups": MOST_GROUPS + 1}, "1 to 64 groups"),
            ({"groups": 0}, "1 to 64 groups"),
            ({"outputs": plain(("edges",))}, "nothing else takes them"),
        ],
    )
    def test_what_is_refused(self, changes: dict[str, Any], why: str) -> None:
        given: dict[str, Any] = {"outputs": plain(("mixing",)), "labels": NINE, "groups": 3}
        with pytest.raises(ArgumentError, match=why):
            parameters(FOUR, 9, **(given | changes))


GRAPH = clustered_power_law(40, seed=3)
GROUPS = {id_: "abc"[int(id_) % 3] for id_ in GRAPH.universe}
PARTED = Groups.of(GROUPS, GRAPH.universe)


def study(**changes: Any) -> Study:
    names = ("a", "b", "c", "d")
    given: dict[str, Any] = {
        "run": "00" * 16, "query": "mixing", "method": "sealed", "protocol": "committee",
        "epsilon": 1.0, "delta": 2.0**-60, "collusion": 1, "universe": GRAPH.universe.digest,
        "nodes": 40, "roster": "11" * 32, "coordinator": "hub", "silos": names, "deadline": 0,
        "members": tuple(StudyMember(name, "silo") for name in names),
        "options": group_options(PARTED),
    }  # fmt: skip
    return Study(**(given | changes))


class TestStudy:
    def test_it_carries_the_groups(self) -> None:
        asked = study()
        assert Study.decode(asked.encode()) == asked
        other = study(options=group_options(Groups(("a", "b", "d"), PARTED.labels)))
        assert other.digest != asked.digest
        assert plan_study(asked).losses == plan_study(study(query="edges", options={})).losses

    def test_the_largest(self) -> None:
        """As many nodes as can be sealed, in as many groups as there may be."""
        labels = np.arange(1 << 18, dtype=np.uint32) % MOST_GROUPS
        options = group_options(Groups(tuple(map(str, range(MOST_GROUPS))), labels))
        asked = study(nodes=1 << 18, options=options)
        assert len(asked.encode()) < 1 << 19
        assert len(plan_study(asked)._groups.labels) == 1 << 18  # type: ignore[attr-defined]
        with pytest.raises(ArgumentError, match="65 groups"):
            group_options(Groups(tuple(map(str, range(65))), labels))

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({}, "needs the group of every node"),
            ({"group_names": None}, "needs the group of every node"),
            ({"groups": "0" * 39}, "a letter of a group for every node"),
            ({"groups": "0" * 41}, "a letter of a group for every node"),
            ({"groups": "3" * 40}, "a letter of a group for every node"),
            ({"groups": "é" * 40}, "a letter of a group for every node"),
            ({"groups": 7}, "a letter of a group for every node"),
            ({"group_names": "[]"}, "0 groups"),
            ({"group_names": json.dumps([*map(str, range(65))], separators=(",", ":"))}, "65"),
            ({"group_names": '["a","a","b"]'}, "different names"),
            ({"group_names": '["a", "b", "c"]'}, "different names"),
            ({"group_names": '["a","b",3]'}, "different names"),
            ({"group_names": '["a","b","\\u0007"]'}, "different names"),
            ({"group_names": '{"a":1}'}, "different names"),
            ({"group_names": "[" * 3000}, "different names"),
            ({"answers": "edges"}, "mixing is answered by mixing"),
        ],
    )
    def test_what_a_silo_refuses(self, options: dict[str, Any], why: str) -> None:
        given = {**group_options(PARTED), **options} if options else {}
        asked = {name: value for name, value in given.items() if value is not None}
        with pytest.raises(StudyError, match=why):
            plan_study(study(options=asked))

    def test_groups_that_nobody_asks_for(self) -> None:
        for changes, why in (
            ({"query": "edges"}, "nothing else takes groups"),
            ({"query": "release", "options": {"answers": "mixing"}}, "query mixing alone"),
            ({"method": "feat", "options": {}, "delta": 0.0}, "counted by method sealed"),
        ):
            with pytest.raises(StudyError, match=why):
                plan_study(study(**changes))


class TestAnswers:
    @pytest.mark.parametrize("delta", [None, 0.0])
    def test_a_federation(self, delta: float | None) -> None:
        silos = split(GRAPH, 4)
        answer = Federation.simulate(silos).count(
            "mixing", "sealed", epsilon=40.0, delta=delta, groups=GROUPS
        )
        true = union(silos).pairs
        assert TRUST_NOTE in answer.note
        assert (answer.value == answer.value.T).all()
        for one, other in itertools.combinations_with_replacement("abc", 2):
            ends = {"abc".index(one), "abc".index(other)}
            kept = [set(PARTED.labels[[u, v]].tolist()) == ends for u, v in true]
            assert abs(float(answer.at(one, other)) - sum(kept)) <= 2

    def test_noise_and_what_follows(self) -> None:
        """Means and variances of simulated releases; all edges are the sum of all types."""
        noise = SealedNoise.choose(1.0, 40, 4, 1, ["mixing"])
        drawn = [SealedRelease.draw(GRAPH, noise, seed, PARTED) for seed in range(400)]
        values = np.array([release.noisy_mixing for release in drawn])
        law = noise.law("mixing")
        labels = np.sort(PARTED.labels[GRAPH.pairs], axis=1).tolist()
        true = [labels.count([g, h]) for g in range(3) for h in range(g, 3)]
        # Six standard errors of a mean, and of a variance with Laplace tails.
        assert np.abs(values.mean(axis=0) - true).max() < 6 * law.stderr / 20
        assert np.abs(values.var(axis=0) / law.variance - 1).max() < 6 * np.sqrt(5 / 400)
        edges = drawn[0].edges()
        assert edges.value == values[0].sum()
        assert edges.stderr == pytest.approx(law.stderr * np.sqrt(6))
        # The noises of two types are independent, and all edges hold each of them.
        found, one = drawn[0].mixing(), law.stderr
        assert (found.at("a", "a") + found.at("a", "b")).stderr == pytest.approx(one * np.sqrt(2))
        assert (edges - found.at("b", "c")).stderr == pytest.approx(one * np.sqrt(5))
        every = [found.at(g, h) for g, h in itertools.combinations_with_replacement("abc", 2)]
        left = edges - sum(every[1:], start=every[0])
        assert (left.value, left.stderr) == (0, pytest.approx(0, abs=1e-6))
        low, high = (found.at("a", "a") / edges).interval
        assert low < true[0] / sum(true) < high
        with pytest.raises(ArgumentError, match="does not answer triangles"):
            drawn[0].triangles()
        with pytest.raises(ArgumentError, match="need groups"):
            SealedRelease.draw(GRAPH, noise, 1)

    def test_what_is_refused(self) -> None:
        fed = Federation.simulate(split(GRAPH, 4))
        for given, why in (
            ({"query": "mixing", "method": "sealed"}, "groups are for mixing"),
            ({"query": "edges", "method": "sealed", "groups": GROUPS}, "groups are for mixing"),
            ({"query": "mixing", "groups": GROUPS}, "counted by method sealed"),
            ({"query": "mixing", "method": "feat", "groups": GROUPS}, "counted by method sealed"),
        ):
            with pytest.raises(ArgumentError, match=why):
                fed.count(epsilon=1.0, **given)  # type: ignore[arg-type]
        wide = NodeUniverse.range(70)
        fed = Federation.simulate([Silo.from_edges(wide, [(0, 1)]) for _ in range(4)])
        with pytest.raises(ArgumentError, match="70 groups; sealed counts edges between at most"):
            fed.count("mixing", "sealed", epsilon=1.0, groups={n: n for n in range(70)})
