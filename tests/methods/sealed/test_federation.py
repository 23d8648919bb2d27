"""Sealed answers through the federation: real runs of the protocol, noise and all."""

import math
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from silograph import Federation, Ledger, NodeUniverse, Silo, clustered_power_law, errors, split
from silograph.graph.bits import BitRows
from silograph.methods.sealed.method import TRUST_NOTE
from silograph.methods.sealed.noise import NOISE_DELTA
from silograph.methods.sealed.party import SealedParty

pytestmark = [
    pytest.mark.filterwarnings("ignore::silograph.errors.LedgerWarning"),
    pytest.mark.slow,
]

NODES = 60
GRAPH = clustered_power_law(NODES, 6, seed=2)
TRUTH = BitRows.from_pairs(NODES, GRAPH.pairs)
WEDGES = int((TRUTH.degrees * (TRUTH.degrees - 1)).sum()) // 2


@pytest.fixture
def fed() -> Federation:
    return Federation.simulate(split(GRAPH, 4))


EXPECTED = {
    ("edges", None): TRUTH.edges,
    ("kstars", 1): 2 * TRUTH.edges,
    ("kstars", 2): WEDGES,
    ("kstars", 3): sum(math.comb(d, 3) for d in TRUTH.degrees.tolist()),
    ("triangles", None): TRUTH.triangles,
    ("clustering", None): 3 * TRUTH.triangles / WEDGES,
}
#: What may be asked for: a delta and a kind of noise.
KINDS: dict[str, dict[str, object]] = {
    "nothing": {},
    "no delta": {"delta": 0.0},
    "a delta": {"delta": 1e-9},
    "shares": {"noise": "shares"},
    "committee": {"noise": "committee"},
    "committee with a delta": {"noise": "committee", "delta": 1e-6},
}


class TestAnswers:
    @pytest.mark.parametrize(("query", "k"), EXPECTED)
    @pytest.mark.parametrize("kind", KINDS)
    def test_they_are_near_the_truth(
        self, fed: Federation, query: str, k: int | None, kind: str
    ) -> None:
        """At ε = 40 the noise is far below the counts; it is still there."""
        asked = KINDS[kind]
        answer = fed.count(query, "sealed", epsilon=40.0, k=k, **asked)  # type: ignore[arg-type]
        assert answer.method == "sealed"
        assert TRUST_NOTE in answer.note
        # Laplace tails: 40 standard errors are passed once in 1e20 runs.
        assert abs(answer.value - EXPECTED[query, k]) <= 40 * answer.stderr
        assert answer.stderr <= 0.3 * EXPECTED[query, k]
        assert answer.epsilon <= 40.0
        if asked.get("delta") == 0.0 or asked.get("noise") == "shares":
            assert answer.delta == 0.0
        elif "delta" not in asked:
            assert answer.delta == NOISE_DELTA
        else:
            assert answer.delta in (NOISE_DELTA, asked["delta"])

    def test_degrees_and_their_histogram(self, fed: Federation) -> None:
        degrees = fed.count("degrees", "sealed", epsilon=40.0)
        assert float(np.abs(degrees.value - TRUTH.degrees).max()) <= 40 * degrees.stderr[0]
        histogram = fed.count("degree_histogram", "sealed", epsilon=40.0)
        assert histogram.value.sum() == pytest.approx(NODES)

    def test_a_delta_makes_triangles_sharper(self, fed: Federation) -> None:
        """The bound by degrees is far below n − 2."""
        sparse = Federation.simulate(split(clustered_power_law(300, 3, seed=4), 4))
        plain = sparse.count("triangles", "sealed", epsilon=20.0)
        bounded = sparse.count("triangles", "sealed", epsilon=20.0, delta=1e-6)
        assert plain.delta == NOISE_DELTA
        assert bounded.delta == 1e-6
        assert bounded.stderr < plain.stderr

    @pytest.mark.parametrize("silos", [2, 3, 5, 7])
    def test_any_number_of_silos(self, silos: int) -> None:
        """With fewer than four, simulated helpers complete the committee, and a warning says so."""
        fed = Federation.simulate(split(GRAPH, silos, rate=1.2 / silos))
        if silos < 4:
            with pytest.warns(errors.PrivacyWarning, match="simulated helper"):
                answer = fed.count("triangles", "sealed", epsilon=40.0)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("error", errors.PrivacyWarning)
                answer = fed.count("triangles", "sealed", epsilon=40.0)
        assert abs(answer.value - TRUTH.triangles) <= 40 * answer.stderr


class TestSeal:
    def test_one_run_answers_all_that_it_opened(self, fed: Federation) -> None:
        sealed = fed.seal(40.0, ["degrees", "two_stars", "triangles"], delta=1e-6)
        assert abs(sealed.kstars(3).value - EXPECTED["kstars", 3]) <= 40 * sealed.kstars(3).stderr
        assert abs(sealed.clustering().value - EXPECTED["clustering", None]) < 0.3
        assert abs(sealed.edges().value - TRUTH.edges) <= 40 * sealed.edges().stderr
        assert sealed.delta == 1e-6
        only = fed.seal(40.0, ["triangles"])
        with pytest.raises(errors.ArgumentError, match="opened only triangles"):
            only.degrees()

    @pytest.mark.parametrize("rule", ["largest", "second"])
    def test_the_rule_of_the_bound(self, fed: Federation, rule: str) -> None:
        sealed = fed.seal(40.0, ["triangles"], delta=1e-6, rule=rule)  # type: ignore[arg-type]
        assert sealed.noise.rule == rule
        assert sealed.noise.answers == ("degrees", "triangles")
        assert abs(sealed.triangles().value - TRUTH.triangles) <= 40 * sealed.triangles().stderr

    def test_largest_is_the_usual_rule(self, fed: Federation) -> None:
        assert fed.seal(40.0, ["triangles"], delta=1e-6).noise.rule == "largest"
        assert fed.seal(40.0, ["triangles"]).noise.rule is None
        assert fed.seal(40.0, ["degrees"], delta=1e-6).noise.rule is None

    @pytest.mark.parametrize("noise", ["committee", "shares"])
    def test_kinds_of_noise(self, fed: Federation, noise: str) -> None:
        sealed = fed.seal(2.0, ["edges", "triangles"], noise=noise)  # type: ignore[arg-type]
        assert sealed.noise.kind == noise
        assert sealed.delta == (NOISE_DELTA if noise == "committee" else 0.0)
        assert fed.seal(2.0, ["edges"], delta=0.0).noise.kind == "shares"

    def test_shares_of_epsilon(self, fed: Federation) -> None:
        sealed = fed.seal(
            4.0, ["degrees", "two_stars", "triangles"], degree_share=0.25, triangle_share=0.75
        )
        budgets = {name: float(share) for name, share in sealed.noise.budgets.items()}
        assert budgets == pytest.approx({"degrees": 1.0, "two_stars": 0.75, "triangles": 2.25})
        assert sealed.epsilon <= 4.0


class TestLedger:
    @pytest.fixture
    def ledger(self, tmp_path: Path) -> Iterator[Ledger]:
        with Ledger(tmp_path / "ledger.db") as ledger:
            yield ledger

    @pytest.mark.parametrize(
        ("given", "delta"),
        [({"delta": 1e-6}, 1e-6), ({}, NOISE_DELTA), ({"delta": 0.0}, 0.0),
         ({"noise": "shares"}, 0.0)],
    )  # fmt: skip
    def test_the_whole_cost_is_recorded(
        self, ledger: Ledger, given: dict[str, object], delta: float
    ) -> None:
        fed = Federation.simulate(split(GRAPH, 4), ledger, lineage="sealed")
        answer = fed.seal(1.0, ["triangles"], **given).triangles()  # type: ignore[arg-type]
        (spent,) = ledger.rows("sealed")
        assert spent.delta == answer.delta == delta
        assert spent.losses[0] == spent.losses[1] == answer.epsilon <= 1.0
        # Two members see every edge together.
        assert spent.losses[2] == spent.losses[3] == math.inf
        assert spent.view == "coordinator + t members"

    def test_it_is_charged_before_anything_leaves_a_silo(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And stays charged, if the run fails afterwards."""
        rows = []

        def fail(self: SealedParty) -> None:
            rows.append(len(ledger.rows("sealed")))
            raise RuntimeError("no light")

        monkeypatch.setattr(SealedParty, "authorise", fail)
        fed = Federation.simulate(split(GRAPH, 4), ledger, lineage="sealed")
        with pytest.raises(RuntimeError, match="no light"):
            fed.count("edges", "sealed", epsilon=1.0)
        assert rows == [1]
        assert len(ledger.rows("sealed")) == 1

    def test_a_refused_budget_opens_nothing(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ledger.set_limit("sealed", 0.5, collusion=1)
        authorised: list[SealedParty] = []
        monkeypatch.setattr(SealedParty, "authorise", authorised.append)
        fed = Federation.simulate(split(GRAPH, 4), ledger, lineage="sealed")
        with pytest.raises(errors.BudgetError):
            fed.count("edges", "sealed", epsilon=1.0)
        assert not ledger.rows("sealed")
        assert not authorised


class TestRefused:
    def test_too_many_nodes_for_triangles(self) -> None:
        universe = NodeUniverse.range(20_001)
        empty = np.empty((0, 2), dtype=np.int64)
        fed = Federation.simulate([Silo.from_edges(universe, empty) for _ in range(4)])
        with pytest.raises(errors.ArgumentError, match=r"at most 20,000 nodes.*GB of memory"):
            fed.count("triangles", "sealed", epsilon=1.0)

    @pytest.mark.parametrize(
        ("given", "named"),
        [
            ({"query": "four_cycles"}, "sealed answers"),
            ({"query": "node_triangles"}, "sealed answers"),
            ({"delta": 1.0}, "delta"),
            ({"delta": -1e-9}, "delta"),
            ({"delta": math.nan}, "delta"),
            ({"noise": "loud"}, "noise"),
            ({"noise": "shared"}, "noise"),
            ({"collusion": 2}, "two members"),
            ({"collusion": 4}, "collusion"),
            ({"epsilon": 1e-20}, "epsilon"),
            ({"query": "degree_histogram", "epsilon": 1e-6}, "too small for a histogram"),
            ({"method": "feat", "delta": 1e-9}, "no use for delta"),
            ({"method": "feat", "noise": "shares"}, "no use for noise"),
        ],
    )
    def test_counts(self, fed: Federation, given: dict[str, object], named: str) -> None:
        asked: dict[str, object] = {"query": "triangles", "method": "sealed", "epsilon": 1.0}
        with pytest.raises(errors.ArgumentError, match=named):
            fed.count(**(asked | given))  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("given", "named"),
        [
            ({"answers": []}, "answer"),
            ({"answers": "triangles"}, "answers must be a list"),
            ({"answers": ["squares"]}, "answers"),
            ({"answers": ["edges", "degrees"]}, "leave it out"),
            ({"answers": ["edges"], "degree_share": 0.5}, "degree_share needs counts"),
            ({"answers": ["triangles"], "triangle_share": 0.5}, "triangle_share needs both"),
            ({"answers": ["degrees", "triangles"], "degree_share": 1.0}, "from 0.0001 to 0.9999"),
            ({"answers": ["edges"], "rule": "largest", "delta": 1e-6}, "leave it out"),
            ({"answers": ["triangles"], "rule": "third", "delta": 1e-6}, "rule"),
            ({"answers": ["triangles"], "rule": "largest"}, "delta"),
            ({"answers": ["triangles"], "noise": "shares", "delta": 1e-6}, "shares"),
            ({"answers": ["triangles"], "noise": "committee", "delta": 0.0}, "delta of at least"),
            ({"answers": ["triangles"], "collusion": 2}, "two members"),
        ],
    )
    def test_seals(self, fed: Federation, given: dict[str, object], named: str) -> None:
        """Options that are not used are errors, too."""
        with pytest.raises((errors.ArgumentError, errors.StudyError), match=named):
            fed.seal(1.0, **given)  # type: ignore[arg-type]
