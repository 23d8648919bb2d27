"""What a run took from a ledger, and what is left."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

import silograph as sg
from silograph.errors import ArgumentError
from silograph.page.answer import budget_of, facts_of
from tests.page.answers import federation


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sg.Ledger]:
    with sg.Ledger(tmp_path / "silo.ledger") as ledger:
        yield ledger


def spend(ledger: sg.Ledger, run: str, lineage: str = "claims", delta: float = 0.0) -> None:
    losses = {0: 1.0, 1: 1.25}
    ledger.spend(lineage, run, "release", losses, delta, view="coordinator", method="feat")


def test_of_a_run_that_the_ledger_records(ledger: sg.Ledger) -> None:
    ledger.set_limit("claims", epsilon=10.0)
    release = federation(20, ledger).collect(3.0, "masked")
    federation(20, ledger)._ledger.spend(
        "claims", "other", "release", {1: 2.0}, view="x", method="feat"
    )
    ledger.set_limit("another", 10.0)
    spend(ledger, "elsewhere", "another")
    found = facts_of(release, ledger=ledger).budget
    assert found is not None
    assert (found.lineage, found.spends) == ("claims", 2)
    assert found.spent.epsilon == 5.0
    assert found.left is not None
    assert found.left.epsilon == 5.0
    assert found.run is not None
    assert found.run.epsilon == 3.0
    assert found.again == 1


def test_of_a_run_that_it_does_not_record(ledger: sg.Ledger) -> None:
    spend(ledger, "a")
    found = budget_of(ledger, "claims", "b")
    assert (found.run, found.again, found.limit, found.left) == (None, None, None, None)
    assert found.spent.epsilon == 1.25
    assert budget_of(ledger, None, "").run is None


def test_how_often_it_can_be_paid_again(ledger: sg.Ledger) -> None:
    spend(ledger, "a", delta=1e-9)
    ledger.set_limit("claims", 5.0, delta=1e-6)
    assert budget_of(ledger, None, "a").again == 3
    ledger.set_limit("claims", 4.999, delta=1e-6)
    assert budget_of(ledger, None, "a").again == 2
    ledger.set_limit("claims", 100.0, delta=2e-9)
    assert budget_of(ledger, None, "a").again == 1
    ledger.set_limit("claims", 1.5, delta=1e-6)
    assert budget_of(ledger, None, "a").again == 0
    ledger.set_limit("claims", 4.0, delta=1e-6, collusion=0)
    assert budget_of(ledger, None, "a").again == 3


def test_a_loss_without_a_bound(ledger: sg.Ledger) -> None:
    losses = {0: 1.0, 1: math.inf}
    ledger.spend("c", "a", "release", losses, view="x", method="feat", unbounded=True)
    ledger.set_limit("c", 9.0, collusion=0)
    assert budget_of(ledger, "c", "a").again == 8
    with pytest.warns(sg.errors.LedgerWarning):
        ledger.set_limit("c", 9.0, collusion=1)
    assert budget_of(ledger, "c", "a").again == 0


def test_a_lineage_that_is_in_doubt(ledger: sg.Ledger) -> None:
    with pytest.raises(ArgumentError, match=r"say which lineage of the ledger.*it has none"):
        budget_of(ledger, None, "a")
    spend(ledger, "a")
    spend(ledger, "b", "payments")
    with pytest.raises(ArgumentError, match="it has 'claims', 'payments'"):
        budget_of(ledger, None, "c")
    with pytest.raises(ArgumentError, match="no lineage 'x'; it has 'claims', 'payments'"):
        budget_of(ledger, "x", "a")
    assert budget_of(ledger, None, "b").lineage == "payments"
    assert budget_of(ledger, "claims", "b").run is None
