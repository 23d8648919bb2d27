"""Folded runs within one process: every protocol, hubs that are named or found, and ledgers."""

import math
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import silograph as sg
from silograph import Fold, FoldedRelease, NodeUniverse, Silo
from silograph.dp.loss import worst_losses
from silograph.errors import ArgumentError, BudgetError, PrivacyWarning, UniverseError
from silograph.graph.fold import Folding
from silograph.graph.samples import union
from silograph.methods.committee.noise import CommitteeNoise
from silograph.methods.hubs.noise import HubNoise
from silograph.methods.masked.noise import MaskedNoise
from tests.support.parties import SeededEntropy

GRAPH = sg.clustered_power_law(80, edges_per_node=5, seed=1)
SILOS = sg.split(GRAPH, 4, seed=1)
#: Hardly two edges in one bucket, and hardly any noise: a wrong answer shows.
WIDE, EXACT = Fold(400, hubs=["0", "1"]), 20.0


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sg.Ledger]:
    with sg.Ledger(tmp_path / "ledger") as made:
        yield made


@pytest.fixture
def fed(ledger: sg.Ledger) -> sg.Federation:
    return sg.Federation(SILOS, ledger, "simulation", SeededEntropy(1))


def differing(left: Any, right: Any) -> int:
    return int(np.bitwise_count(left ^ right).sum())


@pytest.mark.parametrize("protocol", ["masked", "committee", "clear"])
class TestProtocols:
    def test_a_release(self, protocol: str, fed: sg.Federation, ledger: sg.Ledger) -> None:
        release = fed.collect(EXACT, protocol, fold=WIDE)
        assert isinstance(release, FoldedRelease)
        assert (release.hubs, release.nodes, release.hub_epsilon) == (("0", "1"), 80, 0.0)
        assert release.layout == WIDE.layout
        assert release.universe_digest == GRAPH.universe.digest
        truth = len(union(SILOS))
        assert abs(release.edges().value - truth) < 0.1 * truth
        assert 0 < release.counts.ones <= truth
        (spend,) = ledger.rows()
        assert spend.losses == worst_losses(release.losses)
        assert spend.method == f"feat {protocol}"
        assert release.epsilon <= EXACT
        assert spend.run == release.provenance.run

    def test_counts_of_hubs_are_exact(self, protocol: str, fed: sg.Federation) -> None:
        """The cell of two hubs is one pair of nodes."""
        pairs = {(int(u), int(v)) for u, v in union(SILOS).pairs}
        names = [str(node) for node in range(12)]
        plus, minus = fed.collect(EXACT, protocol, fold=Fold(400, names)).counts.rows(0, 12)
        wrong = [
            (u, v) for u in range(12) for v in range(u + 1, 12) if plus[u, v] != ((u, v) in pairs)
        ]
        assert len(wrong) <= 2  # an occupied bucket is lost once in 65,536 times
        assert not minus[:, :12].any()

    def test_it_is_the_folding_of_the_union(self, protocol: str, fed: sg.Federation) -> None:
        """Every bucket of the release is one that the union of the silos occupies."""
        keys: list[bytes] = []
        real = Folding.of.__func__  # type: ignore[attr-defined]

        def heard(cls: type[Folding], view: bytes, *rest: Any) -> Folding:
            keys.append(view)
            return real(cls, view, *rest)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Folding, "of", classmethod(heard))
            first = fed.collect(40.0, protocol, fold=WIDE)
            assert len(set(keys)) == 1  # all silos use the same view
            again = fed.collect(40.0, protocol, fold=WIDE)
            assert len(set(keys)) == 2  # and every run another
        assert first.counts.bits != again.counts.bits
        whole = union(SILOS)
        for release, view in zip((first, again), dict.fromkeys(keys), strict=True):
            folding = Folding.of(view, WIDE.layout, ("0", "1"))
            due = folding.fold(whole.universe, whole.pairs)
            # An occupied bucket is lost once in 65,536 times.
            assert differing(np.frombuffer(release.counts.bits, np.uint64), due) <= 3

    def test_an_open_universe(self, protocol: str, ledger: sg.Ledger) -> None:
        """Silos that know only their own ids find the same union."""
        whole = union(SILOS)
        names = np.array([f"id {node}" for node in range(80)])
        parts = [Silo.from_edges(NodeUniverse.open(), names[part.pairs]) for part in SILOS]
        fed = sg.Federation.simulate(parts, ledger)
        release = fed.collect(EXACT, protocol, fold=Fold(400, ["id 0"], sub=2))
        assert (release.nodes, release.hubs) == (0, ("id 0",))
        assert abs(release.edges().value - len(whole)) < 0.1 * len(whole)
        assert "any, by the normal form" in str(release)
        assert fed.count("edges", epsilon=EXACT, protocol=protocol, fold=Fold(400)).value > 0


class TestHubs:
    @pytest.mark.parametrize("protocol", ["masked", "committee", "clear"])
    def test_they_are_found_with_a_part(
        self, protocol: str, fed: sg.Federation, ledger: sg.Ledger
    ) -> None:
        release = fed.collect(EXACT, protocol, fold=Fold(400, hubs=3, hub_share=0.4))
        degrees = np.asarray(sum(part.degrees() for part in SILOS))
        best = set(np.argsort(-degrees)[:6].astype(str))
        assert set(release.hubs) <= best
        assert len(release.hubs) == 3
        search, spend = ledger.rows()
        assert (search.method, spend.method) == ("hubs masked", f"feat {protocol}")
        assert search.losses == worst_losses(HubNoise.choose(EXACT * 0.4, 4, 1).losses)
        both = {t: search.losses[t] + spend.losses[t] for t in range(4)}
        assert release.losses == pytest.approx(both)
        assert all(release.losses[t] >= both[t] for t in both)
        assert release.hub_epsilon == pytest.approx(EXACT * 0.4)
        assert release.epsilon <= EXACT
        assert Fraction(search.losses[1]) + Fraction(spend.losses[1]) <= Fraction(EXACT)

    @pytest.mark.parametrize("share", [0.1, 0.2, 0.3, 1 / 3, 0.7, 0.9])
    def test_a_budget_is_enough_for_both(self, share: float, ledger: sg.Ledger) -> None:
        """Neither part is rounded up: the whole limit can be spent."""
        for number, epsilon in enumerate((0.9, 1.1, 3.3)):
            ledger.set_limit(f"l{number}", epsilon, collusion=1)
            fed = sg.Federation.simulate(SILOS, ledger, lineage=f"l{number}")
            release = fed.collect(epsilon, "masked", fold=Fold(20, 2, hub_share=share))
            assert release.epsilon <= epsilon
            assert len(ledger.rows(f"l{number}")) == 2

    @pytest.mark.parametrize(
        ("arguments", "fold", "words"),
        [
            ({"protocol": "elgamal"}, Fold(20, 3), "counts on pairs"),
            ({"protocol": "magic"}, Fold(20, 3), "magic"),
            ({"protocol": "masked", "channel": sg.Channel(1, 0)}, Fold(20, 3), "'clear' only"),
            ({"protocol": "committee", "collusion": 2}, Fold(20, 3), "at most 1"),
            ({"collusion": 9}, Fold(20, 3), "collusion"),
            ({}, Fold(20, 20_001), "at most 20,000"),
            ({"epsilon": 1e-6}, Fold(20, 3), "epsilon"),
            ({"epsilon": math.nan}, Fold(20, 3), "epsilon"),
            ({}, Fold(20, ["nobody"]), "'nobody' is not in the universe"),
            ({}, Fold(20, ["x" * 300]), "is not in the universe"),
        ],
    )
    def test_nothing_is_spent_on_what_is_refused(
        self, arguments: dict[str, Any], fold: Fold, words: str, fed: sg.Federation,
        ledger: sg.Ledger,
    ) -> None:  # fmt: skip
        with pytest.raises(ArgumentError, match=words):
            fed.collect(**({"epsilon": 1.0} | arguments), fold=fold)
        assert ledger.rows() == []

    def test_a_search_is_not_paid_for_if_the_rest_is_too_dear(
        self, fed: sg.Federation, ledger: sg.Ledger
    ) -> None:
        ledger.set_limit("simulation", 1.0, collusion=1)
        with pytest.raises(BudgetError, match="finding hubs and the release cost"):
            fed.collect(2.0, fold=Fold(20, 3))
        assert ledger.rows() == []
        fed.collect(1.0, fold=Fold(20, 3))
        assert len(ledger.rows()) == 2

    def test_nodes_that_no_study_can_name(self, ledger: sg.Ledger) -> None:
        """They are left out, since their search is paid for."""
        names = ["x" * 300, "a\u00a0b", *(f"n{i}" for i in range(78))]
        universe = NodeUniverse(names)
        parts = [Silo.from_pairs(universe, part.pairs) for part in SILOS]
        release = sg.Federation.simulate(parts, ledger).collect(EXACT, fold=Fold(40, 80))
        assert set(release.hubs) == set(names[2:])

    def test_fewer_nodes_than_hubs(self, fed: sg.Federation) -> None:
        assert len(fed.collect(2.0, fold=Fold(20, 500)).hubs) == 80

    def test_no_search_without_a_list(self, ledger: sg.Ledger) -> None:
        parts = [Silo.from_edges(NodeUniverse.open(), [("a", "b"), ("b", "c")]) for _ in range(4)]
        fed = sg.Federation.simulate(parts, ledger)
        with pytest.raises(ArgumentError, match="an open universe has none; name them"):
            fed.collect(1.0, fold=Fold(20, 3))
        with pytest.raises((ArgumentError, UniverseError), match="no list of nodes"):
            fed.find_hubs(1.0)
        with pytest.raises((ArgumentError, UniverseError), match="no list of nodes"):
            fed.collect(1.0)
        with pytest.raises((ArgumentError, UniverseError), match="no list of nodes"):
            fed.count("edges", epsilon=1.0)
        assert ledger.rows() == []


class TestCount:
    @pytest.mark.parametrize("method", ["auto", "feat"])
    def test_it_answers(self, method: str, fed: sg.Federation) -> None:
        answer = fed.count("edges", method, epsilon=EXACT, fold=WIDE)
        assert abs(answer.value - len(union(SILOS))) < 0.1 * len(union(SILOS))
        assert (answer.method, answer.epsilon <= EXACT) == ("feat", True)
        assert answer.origin is not None
        assert isinstance(answer.origin.release, FoldedRelease)
        found = fed.count("edges", method, epsilon=EXACT, fold=Fold(400, 2, hub_share=0.5))
        assert found.origin is not None
        assert isinstance(found.origin.release, FoldedRelease)
        assert found.epsilon == found.origin.release.epsilon > EXACT * 0.9
        assert found.value == found.origin.release.ask("edges").value
        stars = fed.count("kstars", method, epsilon=EXACT, k=2, fold=WIDE, protocol="masked")
        assert stars.name == "kstars(k=2)"

    @pytest.mark.parametrize(
        ("query", "arguments", "words"),
        [
            ("degrees", {}, "do not answer degrees"),
            ("kstars", {"k": 3}, "k = 1 and 2"),
            ("kstars", {}, "needs k"),
            ("edges", {"method": "baseline"}, "baseline has no use for fold"),
            ("edges", {"method": "feat+"}, "has no use for fold"),
            ("edges", {"method": "sealed", "protocol": "committee"}, "no use for protocol"),
            ("edges", {"like": GRAPH}, "no use for like"),
            ("edges", {"trust": ["silos"]}, "no use for trust"),
            ("edges", {"delta": 1e-9}, "no use for delta"),
            ("edges", {"fold": 100}, "fold must be a Fold, not 100"),
            ("edges", {"protocol": "elgamal"}, "counts on pairs"),
        ],
    )
    def test_bad_arguments(
        self, query: str, arguments: dict[str, Any], words: str, fed: sg.Federation,
        ledger: sg.Ledger,
    ) -> None:  # fmt: skip
        with pytest.raises(ArgumentError, match=words):
            fed.count(query, **{"epsilon": 1.0, "fold": WIDE, **arguments})
        assert ledger.rows() == []


class TestCosts:
    def test_as_for_pairs(self, fed: sg.Federation) -> None:
        """Folding changes what a bit stands for, not what it costs."""
        masked = fed.collect(2.0, "masked", fold=WIDE)
        assert masked.channel == MaskedNoise.choose(2.0, 4, 1).channel
        assert masked.views == MaskedNoise.choose(2.0, 4, 1).views
        committee = fed.collect(2.0, fold=WIDE)
        assert committee.channel == CommitteeNoise.choose(2.0, 4, 1).channel
        drawn = fed.collect(2.0, "clear", channel=sg.Channel("3/4", "1/4"), fold=WIDE)
        assert drawn.channel == sg.Channel("3/4", "1/4")

    def test_helpers_complete_a_committee(self) -> None:
        fed = sg.Federation.simulate(SILOS[:2])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sg.errors.LedgerWarning)
            with pytest.warns(PrivacyWarning, match="2 simulated helpers"):
                release = fed.collect(2.0, "committee", fold=WIDE)
        assert release.provenance.protocol == "committee"
