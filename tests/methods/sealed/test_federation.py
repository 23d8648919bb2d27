"""Sealed answers through the federation: real runs of the protocol, noise and all."""

import math
from pathlib import Path

import numpy as np
import pytest

from silograph import Federation, Ledger, NodeUniverse, Silo, clustered_power_law, errors, split
from silograph.graph.bits import BitRows
from silograph.methods.sealed.method import TRUST_NOTE

pytestmark = pytest.mark.filterwarnings("ignore::silograph.errors.LedgerWarning")

GRAPH = clustered_power_law(120, 6, seed=2)
TRUTH = BitRows.from_pairs(120, GRAPH.pairs)
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


@pytest.mark.parametrize(("query", "k"), EXPECTED)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("noise", ["shared", "each"])
def test_answers_are_near_the_truth(
    fed: Federation, query: str, k: int | None, delta: float, noise: str
) -> None:
    """At ε = 40 the noise is far below the counts; it is still there."""
    answer = fed.count(query, "sealed", epsilon=40.0, delta=delta, k=k, noise=noise)  # type: ignore[arg-type]
    assert answer.method == "sealed"
    assert TRUST_NOTE in answer.note
    # Laplace tails: 40 standard errors are passed once in 1e20 runs.
    assert abs(answer.value - EXPECTED[query, k]) <= 40 * answer.stderr
    assert answer.stderr <= 0.2 * EXPECTED[query, k]
    assert answer.epsilon <= 40.0
    assert answer.delta <= delta


def test_degrees_and_their_histogram(fed: Federation) -> None:
    degrees = fed.count("degrees", "sealed", epsilon=40.0)
    assert float(np.abs(degrees.value - TRUTH.degrees).max()) <= 40 * degrees.stderr[0]
    histogram = fed.count("degree_histogram", "sealed", epsilon=40.0)
    assert histogram.value.sum() == pytest.approx(120)


def test_one_run_answers_all_that_it_opened(fed: Federation) -> None:
    sealed = fed.seal(40.0, ["degrees", "two_stars", "triangles"], delta=1e-6)
    assert abs(sealed.kstars(3).value - EXPECTED["kstars", 3]) <= 40 * sealed.kstars(3).stderr
    assert abs(sealed.clustering().value - EXPECTED["clustering", None]) < 0.2
    assert abs(sealed.edges().value - TRUTH.edges) <= 40 * sealed.edges().stderr
    only = fed.seal(40.0, ["triangles"])
    with pytest.raises(errors.ArgumentError, match="opened only triangles"):
        only.degrees()


def test_the_whole_cost_is_in_the_ledger(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        fed = Federation.simulate(split(GRAPH, 4), ledger, lineage="sealed")
        answer = fed.seal(1.0, ["triangles"], delta=1e-6).triangles()
        (spent,) = ledger.rows("sealed")
        assert spent.delta == answer.delta == 1e-6
        assert spent.losses[1] == answer.epsilon <= 1.0
        assert spent.losses[0] <= spent.losses[1] < spent.losses[2] < spent.losses[3]
        assert spent.view == "t silos + answers"


def test_a_refused_budget_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.set_limit("sealed", 0.5, collusion=1)
        fed = Federation.simulate(split(GRAPH, 4), ledger, lineage="sealed")
        with pytest.raises(errors.BudgetError):
            fed.count("edges", "sealed", epsilon=1.0)
        assert not ledger.rows("sealed")


def test_without_collusion_a_silo_that_sees_the_answers_learns_more(fed: Federation) -> None:
    with pytest.warns(errors.PrivacyWarning, match="1 silo"):
        fed.count("edges", "sealed", epsilon=1.0, collusion=0)


def test_too_many_nodes_for_triangles_are_refused_with_what_it_would_take() -> None:
    universe = NodeUniverse.range(20_001)
    empty = np.empty((0, 2), dtype=np.int64)
    fed = Federation.simulate([Silo.from_edges(universe, empty) for _ in range(2)])
    with pytest.raises(errors.ArgumentError, match=r"at most 20,000 nodes.*GB of memory"):
        fed.count("triangles", "sealed", epsilon=1.0)


def test_auto_seals_only_where_the_dealer_is_trusted(fed: Federation) -> None:
    trusted = fed.count("triangles", "auto", epsilon=1.0, delta=1e-6, trust=["dealer"])
    assert trusted.method == "sealed"
    assert fed.count("triangles", "auto", epsilon=1.0, delta=1e-6).method != "sealed"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"query": "four_cycles"}, "sealed answers"),
        ({"query": "node_triangles"}, "sealed answers"),
        ({"delta": 1.0}, "delta"),
        ({"delta": -1e-9}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"noise": "loud"}, "noise"),
        ({"collusion": 4}, "collusion"),
        ({"epsilon": 1e-20}, "epsilon"),
        ({"method": "feat", "delta": 1e-9}, "no use for delta"),
    ],
)
def test_bad_requests_get_one_clear_error(
    fed: Federation, given: dict[str, object], named: str
) -> None:
    asked: dict[str, object] = {"query": "triangles", "method": "sealed", "epsilon": 1.0, **given}
    with pytest.raises(errors.ArgumentError, match=named):
        fed.count(**asked)  # type: ignore[arg-type]
