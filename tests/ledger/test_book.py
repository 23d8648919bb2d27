"""Limits to the last bit, entries that are paid once, totals that never round down."""

import itertools
import json
import math
import pickle
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from silograph.errors import (
    ArgumentError,
    BudgetError,
    FrozenError,
    LedgerError,
    LedgerWarning,
)
from silograph.ledger import chain
from silograph.ledger.book import Amount, Ledger, NoLedger, Records, Spend
from silograph.ledger.entries import from_units, loss_at, request, round_down, round_up, to_units
from silograph.methods.baseline.noise import BaselineNoise
from silograph.methods.featplus.method import settle_featplus

FINITE = st.floats(min_value=0, allow_nan=False, allow_infinity=False)


def ticking() -> datetime:
    return datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=timezone(timedelta(hours=2)))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "silo.ledger", clock=ticking) as opened:
        yield opened


def pay(
    ledger: Ledger | NoLedger,
    run: str,
    losses: Mapping[int, float],
    delta: float = 0.0,
    *,
    lineage: str = "claims",
    phase: str = "release",
    view: str = "coordinator + t silos",
    method: str = "feat/masked",
    unbounded: bool = False,
    new_lineage: bool = False,
) -> Spend:
    return ledger.spend(
        lineage, run, phase, losses, delta, view=view, method=method, unbounded=unbounded,
        new_lineage=new_lineage,
    )  # fmt: skip


class TestSpend:
    def test_an_entry_holds_everything(self, ledger: Ledger) -> None:
        spend = pay(ledger, "r1", {2: 1.5, 0: 1, 1: 1.25}, 1e-9)
        expected = Spend(
            number=1,
            lineage="claims",
            run="r1",
            phase="release",
            losses={0: 1.0, 1: 1.25, 2: 1.5},
            delta=1e-9,
            view="coordinator + t silos",
            method="feat/masked",
            time="2031-05-06T05:08:09.123+00:00",
        )
        assert spend == expected
        assert ledger.rows() == [expected]
        assert list(spend.losses) == [0, 1, 2]
        assert not spend.repeated

    def test_an_entry_cannot_be_changed(self, ledger: Ledger) -> None:
        spend = pay(ledger, "r1", {0: 1.0})
        with pytest.raises(TypeError):
            spend.losses[0] = 0.0  # type: ignore[index]

    def test_without_a_limit_everything_is_recorded(self, ledger: Ledger) -> None:
        pay(ledger, "r1", {0: 1e300, 1: 1e308})
        pay(ledger, "r2", {0: 1e300, 1: 1e308})
        pay(ledger, "r3", {0: 1.0, 1: math.inf}, unbounded=True)
        assert ledger.remaining("claims") is None
        assert ledger.spent("claims", 0).epsilon >= 2e300
        assert ledger.spent("claims", 1).epsilon == math.inf
        assert len(ledger.rows("claims")) == 3

    def test_lineages_are_apart(self, ledger: Ledger) -> None:
        ledger.set_limit("claims", 1.0)
        ledger.set_limit("loans", 2.0)
        pay(ledger, "r1", {1: 1.0})
        pay(ledger, "r1", {1: 2.0}, lineage="loans")
        for lineage in ("claims", "loans"):
            with pytest.raises(BudgetError):
                pay(ledger, "r2", {1: 5e-324}, lineage=lineage)
        assert ledger.lineages() == ["claims", "loans"]
        assert [row.lineage for row in ledger.rows("loans")] == ["loans"]
        assert [row.number for row in ledger.rows()] == [1, 2]

    @pytest.mark.parametrize(
        "losses",
        [
            {0: math.nan},
            {0: -1e-300},
            {0: math.inf},
            {0: -math.inf},
            {0: 1.0, 1: math.nan},
            {},
            {-1: 1.0},
            {True: 1.0},
            {0.0: 1.0},
            {"0": 1.0},
            {0: "1"},
            {0: True},
            {0: None},
            {0: Fraction(1, 3)},
            {0: 2**53 + 1},
            pytest.param({0: 10**400}, id="huge"),
            [1.0],
            None,
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("recorded", [True, False])
    def test_wrong_losses(
        self, ledger: Ledger, losses: Mapping[int, float], recorded: bool
    ) -> None:
        with pytest.raises(ArgumentError):
            pay(ledger if recorded else NoLedger(), "r1", losses)
        assert ledger.rows() == []

    @pytest.mark.parametrize("losses", [{0: math.nan}, {0: -1.0}, {0: -math.inf}], ids=repr)
    def test_unbounded_allows_infinity_alone(
        self, ledger: Ledger, losses: Mapping[int, float]
    ) -> None:
        with pytest.raises(ArgumentError):
            pay(ledger, "r1", losses, unbounded=True)

    @pytest.mark.parametrize("delta", [math.nan, -0.1, 1.1, math.inf, True, "0"], ids=repr)
    def test_wrong_deltas(self, ledger: Ledger, delta: float) -> None:
        with pytest.raises(ArgumentError, match="delta"):
            pay(ledger, "r1", {0: 1.0}, delta)
        with pytest.raises(ArgumentError, match="delta"):
            ledger.set_limit("claims", 1.0, delta)

    @pytest.mark.parametrize(
        "name", ["", " claims", "claims\n", "a\tb", "a\0b", "e\u0301", "\ud800", "x" * 201, 7, None]
    )
    def test_names_that_could_be_taken_for_others(self, ledger: Ledger, name: str) -> None:
        for field in ("lineage", "phase", "view", "method"):
            with pytest.raises(ArgumentError):
                pay(ledger, "r1", {0: 1.0}, **{field: name})  # type: ignore[arg-type]
        with pytest.raises(ArgumentError):
            pay(ledger, name, {0: 1.0})
        with pytest.raises(ArgumentError):
            ledger.set_limit(name, 1.0)
        assert ledger.export()["lineages"] == []

    def test_a_clock_needs_a_zone(self, tmp_path: Path) -> None:
        with pytest.raises(ArgumentError, match="zone"):
            Ledger(tmp_path / "x", clock=lambda: datetime(2031, 1, 1))
        assert list(tmp_path.iterdir()) == []

    def test_the_real_clock_is_utc(self, tmp_path: Path) -> None:
        before = datetime.now(UTC) - timedelta(seconds=1)
        with Ledger(tmp_path / "x") as ledger:
            time = datetime.fromisoformat(pay(ledger, "r1", {0: 1.0}).time)
        assert before <= time <= datetime.now(UTC)
        assert time.utcoffset() == timedelta(0)


class TestLimits:
    @pytest.mark.parametrize("limit", [0.3, 1.0, 3.0, 1e-300, 5e-324, 1e300])
    def test_to_the_last_bit(self, ledger: Ledger, limit: float) -> None:
        ledger.set_limit("claims", limit)
        with pytest.raises(BudgetError):
            pay(ledger, "above", {1: math.nextafter(limit, math.inf)})
        assert ledger.rows() == []
        pay(ledger, "all", {1: limit})
        with pytest.raises(BudgetError):
            pay(ledger, "least", {1: 5e-324})
        pay(ledger, "nothing", {1: 0.0})
        assert ledger.remaining("claims") == Amount(0.0, 0.0, 1)

    def test_ten_tenths_are_more_than_one(self, ledger: Ledger) -> None:
        """0.1 is a little more than a tenth. Summed in floats, ten of them would fit."""
        assert sum([0.1] * 10) < 1 < 10 * Fraction(0.1)
        ledger.set_limit("claims", 1.0)
        for i in range(9):
            pay(ledger, f"r{i}", {1: 0.1})
        with pytest.raises(BudgetError):
            pay(ledger, "r9", {1: 0.1})
        left = ledger.remaining("claims")
        assert left is not None
        assert left.epsilon < 0.1
        pay(ledger, "rest", {1: left.epsilon})

    def test_small_on_large(self, ledger: Ledger) -> None:
        """A float sum would not move."""
        ledger.set_limit("claims", 1.0)
        pay(ledger, "r0", {1: 1.0 - 2**-53})
        for i in range(3):
            pay(ledger, f"s{i}", {1: 2**-55})
        pay(ledger, "last", {1: 2**-55})
        with pytest.raises(BudgetError):
            pay(ledger, "past", {1: 2**-80})

    def test_what_a_refusal_says(self, ledger: Ledger) -> None:
        ledger.set_limit("claims", 3.0, 1e-6, collusion=2)
        pay(ledger, "r1", {0: 1.0, 1: 1.5, 2: 2.5, 3: 9.0}, 1e-7)
        with pytest.raises(BudgetError) as caught:
            pay(ledger, "r2", {0: 0.25, 2: 0.75}, 1e-8)
        error = caught.value
        assert (error.lineage, error.collusion) == ("claims", 2)
        assert error.asked == (0.75, 1e-8)
        assert error.left == (0.5, round_down(Fraction(1e-6) - Fraction(1e-7)))
        for part in (
            "'claims'",
            "run r2",
            "ε = 0.75",
            "t = 2",
            "ε = 0.5,",
            "ε = 3,",
            "nothing was",
        ):
            assert part in str(error)
        again = pickle.loads(pickle.dumps(error))  # noqa: S301
        assert (str(again), again.asked, again.left) == (str(error), error.asked, error.left)
        assert len(ledger.rows()) == 1

    def test_delta_has_its_own_limit(self, ledger: Ledger) -> None:
        ledger.set_limit("claims", 10.0)
        with pytest.raises(BudgetError, match=r"δ.*: ask with delta 0"):
            pay(ledger, "r1", {1: 1.0}, 1e-300)
        with pytest.raises(BudgetError, match=r"nothing was spent$"):
            pay(ledger, "r1", {1: 11.0}, 1e-300)
        ledger.set_limit("claims", 10.0, 1e-6)
        pay(ledger, "r1", {1: 1.0}, 1e-6)
        with pytest.raises(BudgetError):
            pay(ledger, "r2", {1: 1.0}, 5e-324)
        pay(ledger, "r2", {1: 1.0})
        assert ledger.spent("claims") == Amount(2.0, 1e-6, 1)
        assert ledger.remaining("claims") == Amount(8.0, 0.0, 1)

    def test_counts_at_its_own_level(self, ledger: Ledger) -> None:
        ledger.set_limit("claims", 1.0, collusion=0)
        pay(ledger, "r1", {0: 1.0, 1: 50.0})
        assert ledger.spent("claims") == Amount(1.0, 0.0, 0)
        assert ledger.spent("claims", 1) == Amount(50.0, 0.0, 1)
        with pytest.raises(BudgetError):
            pay(ledger, "r2", {0: 1e-9, 1: 0.0})

    def test_the_next_higher_level_stands_in(self, ledger: Ledger) -> None:
        ledger.set_limit("claims", 1.0, collusion=1)
        with pytest.raises(BudgetError, match="counted from t = 2"):
            pay(ledger, "r1", {0: 0.1, 2: 1.5, 3: 0.2})
        pay(ledger, "r2", {0: 0.1, 2: 0.75, 3: 9.0})
        assert ledger.spent("claims").epsilon == 0.75
        with pytest.raises(BudgetError, match="no loss was given") as caught:
            pay(ledger, "r3", {0: 0.1})
        assert caught.value.asked[0] == math.inf
        assert len(ledger.rows()) == 1

    def test_unbounded_is_refused_where_it_counts(self, ledger: Ledger) -> None:
        ledger.set_limit("claims", 1e300, collusion=1)
        with pytest.raises(BudgetError, match="unbounded"):
            pay(ledger, "r1", {0: 1.0, 1: math.inf}, unbounded=True)
        assert ledger.rows() == []
        ledger.set_limit("claims", 3.0, collusion=0)
        pay(ledger, "r1", {0: 1.0, 1: math.inf}, unbounded=True)
        assert ledger.rows()[0].losses == {0: 1.0, 1: math.inf}
        with pytest.warns(LedgerWarning, match="unbounded"):
            ledger.set_limit("claims", 3.0, collusion=1)
        with pytest.raises(BudgetError):
            pay(ledger, "r2", {0: 0.0, 1: 0.0})

    def test_a_level_that_was_never_recorded_counts_as_unbounded(self, ledger: Ledger) -> None:
        pay(ledger, "r1", {0: 1.0, 1: 1.0})
        with pytest.warns(LedgerWarning, match="nothing more can be spent"):
            ledger.set_limit("claims", 100.0, collusion=2)
        assert ledger.spent("claims").epsilon == math.inf
        assert ledger.remaining("claims") == Amount(0.0, 0.0, 2)
        with pytest.raises(BudgetError):
            pay(ledger, "r2", {2: 0.0})

    def test_history(self, ledger: Ledger) -> None:
        assert ledger.limit("claims") is None
        first = ledger.set_limit("claims", 2.0)
        assert ledger.set_limit("claims", 2.0) == first
        other = ledger.set_limit("loans", 1.0, 1e-9, collusion=0)
        pay(ledger, "r1", {1: 1.5})
        with pytest.warns(LedgerWarning, match=r"ε = 1 is below .* ε = 1\.5; nothing more"):
            lowered = ledger.set_limit("claims", 1.0)
        assert ledger.remaining("claims") == Amount(0.0, 0.0, 1)
        with pytest.raises(BudgetError) as caught:
            pay(ledger, "r2", {1: 1e-9})
        assert caught.value.left == (0.0, 0.0)
        raised = ledger.set_limit("claims", 4.0)
        pay(ledger, "r2", {1: 2.5})
        assert ledger.limits() == [first, other, lowered, raised]
        assert ledger.limits("claims") == [first, lowered, raised]
        assert ledger.limit("claims") == raised
        assert first.time == "2031-05-06T05:08:09.123+00:00"

    def test_exactly_what_is_spent_is_no_surprise(self, ledger: Ledger) -> None:
        pay(ledger, "r1", {1: 1.5})
        ledger.set_limit("claims", 1.5)

    @pytest.mark.parametrize("epsilon", [math.nan, -1.0, math.inf, "1", None], ids=repr)
    def test_wrong_limits(self, ledger: Ledger, epsilon: float) -> None:
        with pytest.raises(ArgumentError):
            ledger.set_limit("claims", epsilon)
        with pytest.raises(ArgumentError):
            ledger.set_limit("claims", 1.0, collusion=-1)
        assert ledger.limits() == []


class TestLowerLimits:
    """As a service sets them: what is in force is never loosened."""

    def test_each_part(self, ledger: Ledger) -> None:
        def set_(epsilon: float, delta: float, collusion: int) -> tuple[float, float, int]:
            made = ledger.set_limit("claims", epsilon, delta, collusion, only_lower=True)
            return made.epsilon, made.delta, made.collusion

        assert set_(5.0, 1e-6, 1) == (5.0, 1e-6, 1)
        assert set_(9.0, 1e-3, 0) == (5.0, 1e-6, 1)
        assert len(ledger.limits()) == 1  # nothing was written
        assert set_(9.0, 0.0, 2) == (5.0, 0.0, 2)
        assert set_(2.0, 1e-6, 1) == (2.0, 0.0, 2)
        ledger.set_limit("claims", 7.0, 1e-6)  # by hand
        assert set_(8.0, 1e-6, 1) == (7.0, 1e-6, 1)

    def test_both_hold(self, ledger: Ledger) -> None:
        """Losses at the higher level bound those at the lower one."""
        ledger.set_limit("claims", 5.0, collusion=2)
        ledger.set_limit("claims", 3.0, collusion=1, only_lower=True)
        with pytest.raises(BudgetError):
            pay(ledger, "r1", {0: 1.0, 1: 1.0, 2: 3.5})
        pay(ledger, "r2", {0: 1.0, 1: 1.0, 2: 3.0})


class TestFrozen:
    def test_nothing_is_spent(self, ledger: Ledger) -> None:
        ledger.set_limit("claims", 5.0)
        pay(ledger, "r1", {1: 1.0})
        assert ledger.frozen() is None
        freeze = ledger.freeze("two machines")
        assert ledger.freeze("again") == freeze == ledger.frozen()
        for run in ("r1", "r2"):  # even what was paid for before
            with pytest.raises(FrozenError, match="frozen since 2031-05-06T05:08:09: two machines"):
                pay(ledger, run, {1: 1.0})
        with pytest.raises(FrozenError):
            ledger.check_thawed()
        assert "FROZEN: nothing can be spent" in str(ledger)
        with Ledger(ledger.path) as other, pytest.raises(FrozenError):
            pay(other, "r2", {1: 1.0})
        assert ledger.verify().serial == 3

    def test_thawed(self, ledger: Ledger) -> None:
        ledger.set_limit("claims", 5.0)
        with pytest.raises(LedgerError, match="is not frozen"):
            ledger.thaw("why not")
        ledger.freeze("two machines")
        for reason in ("", " ", "\x1b[2J"):
            with pytest.raises(ArgumentError, match="a reason"):
                ledger.thaw(reason)
        with pytest.raises(ArgumentError, match="no lineage 'clams'"):
            ledger.thaw("the clone is off", {"clams": 1.0})
        assert ledger.frozen() is not None
        ledger.thaw("the clone is off", {"claims": (1.5, 0.0)})
        assert ledger.frozen() is None
        assert ledger.spent("claims").epsilon == 1.5
        pay(ledger, "r1", {1: 1.0})
        reasons = [entry["reason"] for entry in ledger.export()["freezes"]]
        assert reasons == ["two machines", "the clone is off"]
        assert "FROZEN" not in str(ledger)

    @pytest.mark.parametrize("column", ["frozen = 0", "reason = 'none'", "time = ''"])
    def test_is_in_the_chain(self, ledger: Ledger, column: str) -> None:
        ledger.freeze("two machines")
        ledger.close()
        with closing(sqlite3.connect(ledger.path, isolation_level=None)) as raw:
            raw.execute("DROP TRIGGER freezes_no_update")
            raw.execute(f"UPDATE freezes SET {column}")  # noqa: S608
        with pytest.raises(LedgerError, match="entry 1 was changed"):
            Ledger(ledger.path)

    def test_a_backup_is_frozen_too(self, ledger: Ledger, tmp_path: Path) -> None:
        ledger.freeze("two machines")
        ledger.backup(tmp_path / "b")
        with Ledger.restore(tmp_path / "b", tmp_path / "new", complete=True) as made:
            assert made.frozen() is not None

    def test_frozen_after_the_backup(self, ledger: Ledger, tmp_path: Path) -> None:
        stood = ledger.backup(tmp_path / "b")
        ledger.freeze("two machines")
        for frozen in (0, ledger.witness().serial):
            records = Records((), frozen)
            assert frozen in (0, stood.serial + 1)
            with Ledger.restore(tmp_path / "b", tmp_path / f"{frozen}", records=records) as made:
                assert (made.frozen() is not None) == bool(frozen)


class TestRepetition:
    def test_the_same_is_paid_once(self, ledger: Ledger) -> None:
        ledger.set_limit("claims", 1.0)
        first = pay(ledger, "r1", {0: 0.5, 1: 1.0})
        again = pay(ledger, "r1", {1: 1.0, 0: 0.5})
        assert again == first
        assert again.repeated
        assert ledger.rows() == [first]
        with pytest.warns(LedgerWarning):
            ledger.set_limit("claims", 0.5)
        assert pay(ledger, "r1", {0: 0.5, 1: 1.0}) == first

    @pytest.mark.parametrize(
        "changed",
        [
            {"losses": {0: 0.5, 1: math.nextafter(1.0, 2.0)}},
            {"losses": {0: 0.5, 1: math.nextafter(1.0, 0.0)}},
            {"losses": {0: 0.5}},
            {"losses": {0: 0.5, 1: 1.0, 2: 1.0}},
            {"losses": {0: 0.5, 1: math.inf}, "unbounded": True},
            {"delta": 1e-300},
            {"view": "1 silo"},
            {"method": "feat/elgamal"},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("limited", [True, False])
    def test_anything_else_under_the_same_key_is_refused(
        self, ledger: Ledger, changed: dict[str, object], limited: bool
    ) -> None:
        if limited:
            ledger.set_limit("claims", 100.0, 0.5, collusion=0)
        first = pay(ledger, "r1", {0: 0.5, 1: 1.0})
        arguments = {"losses": {0: 0.5, 1: 1.0}, **changed}
        with pytest.raises(LedgerError, match="already paid for with other numbers") as caught:
            pay(ledger, "r1", **arguments)  # type: ignore[arg-type]
        assert not isinstance(caught.value, BudgetError)
        assert ledger.rows() == [first]

    def test_phases_and_runs_are_paid_each(self, ledger: Ledger) -> None:
        for run, phase in itertools.product(("r1", "r2"), ("degrees", "release")):
            pay(ledger, run, {1: 0.5}, phase=phase)
        assert ledger.spent("claims").epsilon == 2.0


class TestCoalitions:
    """A larger coalition does not always see more: what counts is the worst up to the level."""

    def test_two_runs_of_baseline_are_one_too_many(self, ledger: Ledger) -> None:
        noise = BaselineNoise.choose(1.0, silos=2, collusion=1)
        losses = {t: noise.epsilon(2 - t) for t in range(2)}
        assert losses[1] < losses[0] == pytest.approx(1.0)
        ledger.set_limit("claims", epsilon=1.0, collusion=1)
        pay(ledger, "r1", losses)
        assert ledger.spent("claims").epsilon == losses[0]
        with pytest.raises(BudgetError):
            pay(ledger, "r2", losses)

    def test_featplus_with_most_of_it_for_the_partition(self, ledger: Ledger) -> None:
        plan = settle_featplus(
            "triangles", None, "gradient", (0.05, 0.9, 0.05), 1.0, 2, 1, "masked", 60
        )
        assert plan.losses[1] < 0.6
        assert plan.losses[0] > 0.9
        spend = pay(ledger, "r1", plan.losses)
        assert spend.losses[1] == plan.losses[0]
        assert ledger.spent("claims", 1).epsilon == plan.losses[0]

    def test_rows_of_old_ledgers_count_in_the_same_way(self, ledger: Ledger) -> None:
        """They hold what fell with t, and their chain is over what they hold."""
        old = request(
            "claims", "r1", "release", {0: 1.0, 1: 1.0, 3: 1.0}, 0.0, "v", "baseline", True, "t"
        )
        object.__setattr__(old, "losses", {0: 1.0, 1: 0.5, 3: 0.25})
        with ledger._transactions.writing() as connection:
            chain.add_spend(connection, ledger.path, old)
        ledger.verify()
        with Ledger(ledger.path) as again:
            for level in (0, 1, 2, 3):
                assert again.spent("claims", level).epsilon == 1.0
            assert again.spent("claims", 4).epsilon == math.inf
            assert dict(again.rows()[0].losses) == {0: 1.0, 1: 1.0, 3: 1.0}
            # The same payment again is the same, though it is written as it should be now.
            known = again.spend(
                "claims", "r1", "release", {0: 1.0, 1: 0.5, 3: 0.25}, view="v", method="baseline"
            )
            assert known.repeated

    @given(st.lists(FINITE | st.just(math.inf), min_size=1, max_size=5), st.integers(0, 6))
    @settings(max_examples=40)
    def test_totals_and_single_losses_agree(self, losses: list[float], level: int) -> None:
        with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder, "x")) as ledger:
            pay(ledger, "r1", dict(enumerate(losses)), unbounded=True)
            worst = max(losses[: level + 1]) if level < len(losses) else math.inf
            assert ledger.spent("claims", level).epsilon == worst
            assert loss_at(dict(enumerate(losses)), level)[1] == worst


class TestNewLineages:
    def test_a_slip_escapes_no_limit(self, ledger: Ledger) -> None:
        ledger.set_limit("pay", epsilon=1.0)
        for lineage in ("pya", "simulation"):
            with pytest.raises(LedgerError, match="--new-lineage"):
                pay(ledger, "r1", {0: 1.0, 1: 1.0}, lineage=lineage)
        assert ledger.rows() == []
        assert ledger.is_new("simulation")
        assert not ledger.is_new("pay")
        pay(ledger, "r1", {0: 1.0, 1: 1.0}, lineage="other", new_lineage=True)
        pay(ledger, "r2", {0: 1.0, 1: 1.0}, lineage="other")  # known by now
        assert not ledger.is_new("other")

    def test_a_ledger_without_limits_takes_any(self, ledger: Ledger) -> None:
        pay(ledger, "r1", {0: 1.0}, lineage="any")
        pay(ledger, "r1", {0: 1.0}, lineage="another")
        assert not ledger.is_new("third")


class TestExact:
    @given(st.lists(FINITE, max_size=20))
    def test_sum(self, values: list[float]) -> None:
        total = from_units(sum(map(to_units, values)))
        assert total == sum(map(Fraction, values), Fraction(0))

    @given(st.fractions(), st.integers(-1080, 1030))
    def test_rounding(self, value: Fraction, power: int) -> None:
        value *= Fraction(2) ** power
        up, down = round_up(value), round_down(value)
        assert up == math.inf or Fraction(up) >= value
        assert down == -math.inf or Fraction(down) <= value
        below, above = math.nextafter(up, -math.inf), math.nextafter(down, math.inf)
        assert below == -math.inf or Fraction(below) < value
        assert above == math.inf or Fraction(above) > value

    @settings(max_examples=40, deadline=None)
    @given(
        st.floats(1e-3, 10.0),
        st.lists(st.floats(0, 0.5) | st.floats(0, 1e-12) | st.just(0.1), max_size=30),
    )
    def test_the_limit_is_never_passed_nor_left_unused(
        self, limit: float, losses: list[float]
    ) -> None:
        """Against a model in fractions: the same are accepted, and the same is shown."""
        with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder, "x")) as ledger:
            ledger.set_limit("claims", limit)
            spent = Fraction(0)
            for i, loss in enumerate(losses):
                fits = spent + Fraction(loss) <= Fraction(limit)
                try:
                    pay(ledger, f"r{i}", {0: loss / 2, 1: loss})
                    accepted = True
                    spent += Fraction(loss)
                except BudgetError:
                    accepted = False
                assert accepted == fits
            assert spent <= Fraction(limit)
            assert ledger.spent("claims").epsilon == round_up(spent)
            left = ledger.remaining("claims")
            assert left is not None
            assert left.epsilon == round_down(Fraction(limit) - spent)
            pay(ledger, "rest", {1: left.epsilon})
            assert ledger.spent("claims").epsilon <= limit

    @given(st.lists(FINITE | st.just(math.inf), min_size=1, max_size=6))
    @settings(max_examples=30, deadline=None)
    def test_losses_come_back_as_they_went(self, losses: list[float]) -> None:
        with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder, "x")) as ledger:
            spend = pay(ledger, "r1", dict(enumerate(losses)), unbounded=True)
            worst = dict(enumerate(itertools.accumulate(losses, max)))
            assert ledger.rows()[0].losses == spend.losses == worst


class TestReading:
    def test_export_is_plain(self, ledger: Ledger) -> None:
        ledger.set_limit("claims", 3.0, 1e-6)
        pay(ledger, "r1", {0: 1.0, 1: 1.5}, 1e-7)
        pay(ledger, "r1", {0: 1.0, 1: math.inf}, unbounded=True, lineage="loans", new_lineage=True)
        found = json.loads(json.dumps(ledger.export(), allow_nan=False))
        assert found["format"] == 3
        assert found["identity"] == ledger.identity
        claims, loans = found["lineages"]
        assert claims["lineage"] == "claims"
        assert claims["spent"] == {"epsilon": 1.5, "delta": 1e-7, "collusion": 1}
        assert [level["epsilon"] for level in claims["spent_by_collusion"]] == [1.0, 1.5]
        assert claims["remaining"]["epsilon"] == 1.5
        assert claims["limit"]["epsilon"] == 3.0
        assert (loans["limit"], loans["remaining"]) == (None, None)
        assert loans["spent"]["epsilon"] == "unbounded"
        assert found["spends"][1]["losses"] == {"0": 1.0, "1": "unbounded"}
        assert found["spends"][0] == ledger.rows()[0].to_dict()
        assert found["limits"] == [ledger.limits()[0].to_dict()]

    def test_summary(self, ledger: Ledger) -> None:
        assert str(ledger) == "ledger silo.ledger: 0 spends, 0 lineages"
        ledger.set_limit("claims", 3.0, 1e-6)
        for i in range(3):
            pay(ledger, f"r{i}", {1: 0.1}, 1e-7)
        pay(ledger, "r1", {0: 1.0}, lineage="loans", new_lineage=True)
        assert ledger.summary() == str(ledger)
        assert str(ledger).splitlines() == [
            "ledger silo.ledger: 4 spends, 2 lineages",
            "lineage                         t        limit        spent         left  spends",
            "claims                          1          3.0     0.300001      2.69999       3",
            "  delta                               0.000001         3e-7         7e-7",
            "loans                           1         none    unbounded                    1",
        ]

    def test_summary_stays_within_80_columns(self, tmp_path: Path) -> None:
        with Ledger(tmp_path / ("long" * 40)) as ledger:
            for lineage in ("x" * 200, "病院" * 30, "a"):
                ledger.set_limit(lineage, 1.2345678901234567e-300, 1.2345678901234567e-300)
                pay(ledger, "r1", {3: 1.1e-301}, lineage=lineage)
            lines = str(ledger).splitlines()
        assert len(lines) == 8
        assert max(map(cell_len, lines)) <= 80

    def test_an_unknown_lineage_has_spent_nothing(self, ledger: Ledger) -> None:
        assert ledger.spent("other") == Amount(0.0, 0.0, 1)
        assert ledger.remaining("other") is None
        assert ledger.rows("other") == []
        assert ledger.limits("other") == []
        assert ledger.lineages() == []
        with pytest.raises(ArgumentError):
            ledger.spent("other", -1)

    def test_two_objects_see_each_other(self, ledger: Ledger) -> None:
        """Totals are kept between looks; what others add comes in, at every level."""
        with Ledger(ledger.path) as other:
            for i in range(4):
                for own, writer in enumerate((ledger, other)):
                    pay(writer, f"r{own}-{i}", {0: 0.25, 1: 0.5})
                    pay(writer, f"r{own}-{i}", {0: 1.0}, lineage="loans")
                    for reader in (ledger, other):
                        paid = 2 * i + own + 1
                        assert reader.spent("claims", 0).epsilon == 0.25 * paid
                        assert reader.spent("claims", 1).epsilon == 0.5 * paid
                        assert reader.spent("loans", 0).epsilon == paid
            other.set_limit("claims", 4.0)
            with pytest.raises(BudgetError):
                pay(ledger, "more", {1: 0.5})

    def test_a_refused_spend_leaves_no_trace(self, ledger: Ledger) -> None:
        ledger.set_limit("claims", 1.0)
        for i in range(3):
            with pytest.raises(BudgetError):
                pay(ledger, f"r{i}", {1: 1.5})
            assert ledger.remaining("claims") == Amount(1.0, 0.0, 1)
        pay(ledger, "fits", {1: 1.0})

    def test_closed(self, tmp_path: Path) -> None:
        with Ledger(tmp_path / "x") as ledger:
            pass
        ledger.close()
        with pytest.raises(LedgerError, match="closed"):
            pay(ledger, "r1", {1: 1.0})
        with pytest.raises(LedgerError, match="closed"):
            ledger.rows()


class TestNoLedger:
    def test_says_so_once(self) -> None:
        with NoLedger() as none:
            with pytest.warns(LedgerWarning, match="this run is recorded nowhere") as said:
                spend = pay(none, "r1", {0: 1.0, 1: 1.5}, 1e-9)
            assert Path(said[0].filename).name == "test_book.py"
            assert (spend.number, spend.losses, spend.delta) == (0, {0: 1.0, 1: 1.5}, 1e-9)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                pay(none, "r2", {0: 1.0, 1: math.inf}, unbounded=True)
