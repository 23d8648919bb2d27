"""The audit passes what is right, and fails on mechanisms that are a little wrong."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from silograph.audit import counts, laws, report, trials
from silograph.dp.digits import DigitLaw
from silograph.dp.laplace import NoiseLaw
from silograph.methods import union
from silograph.methods.elgamal.noise import ElgamalNoise
from silograph.methods.featplus.noise import FeatPlusNoise
from silograph.methods.masked.noise import MaskedNoise
from silograph.methods.sealed.noise import Answer, Bounded, Coins, SealedNoise
from tests.support.parties import SeededEntropy

MASKED = [case for case in report.DEFAULT_CASES if case[0] == "masked"]


@pytest.fixture(scope="module")
def lines() -> list[report.AuditLine]:
    return list(report.audit(SeededEntropy(1), effort=0.05))


@pytest.mark.slow
def test_everything_holds_and_is_tight(lines: list[report.AuditLine]) -> None:
    assert len(lines) == 67
    for line in lines:
        assert line.holds, line
        # Three of four parts are known to be one whole noise; all four hide a little more. And a
        # bound is for the worst graph, not for the one that is enumerated.
        more = line.protocol.endswith("shares") and line.view.name == "coordinator"
        if more or line.protocol.endswith("rule"):
            assert line.exact == line.view.epsilon or 0.6 < line.exact / line.view.epsilon < 1
        elif line.protocol.startswith("sealed"):
            assert line.exact == pytest.approx(line.view.epsilon, rel=2e-6)
        else:
            assert line.exact == line.view.epsilon
        if line.protocol in ("masked", "committee") and line.exact < math.inf:
            assert line.seen > 0.85 * line.exact
        if line.protocol.startswith(("sealed edges", "feat+")) and line.exact < math.inf:
            assert line.seen > (0.3 if more else 0.5) * line.exact


def test_known_losses(lines: list[report.AuditLine]) -> None:
    by_view = {(x.protocol, x.epsilon, x.silos, x.collusion, x.view.name): x for x in lines}
    assert by_view["elgamal/printed", 1.0, 4, 0, "coordinator"].exact == pytest.approx(4.0)
    assert by_view["elgamal/replace", 1.0, 4, 0, "1 silo + release"].exact == math.inf
    assert by_view["committee", 1.0, 4, 1, "2 members"].exact == math.inf
    assert by_view["committee", 1.0, 4, 1, "coordinator + 1 member"].exact <= 1.0
    assert by_view["masked", 1.0, 4, 0, "1 silo + release"].exact == pytest.approx(1.23, abs=0.01)


def test_json(lines: list[report.AuditLine]) -> None:
    plain = json.loads(json.dumps([line.to_dict() for line in lines], allow_nan=False))
    assert any(line["certified"] is None for line in plain)


@pytest.mark.parametrize("silos", [2, 3, 4])
def test_holder_sets_with_the_same_union_look_alike(silos: int) -> None:
    noise = MaskedNoise.choose(1.0, silos, 0)
    held = [laws.masked(noise.q, noise.b, h) for h in laws.holder_sets(silos) if any(h)]
    assert all(law == held[0] for law in held)
    assert all(sum(law.values()) == 1 for law in held)
    shown = [laws.printed(Fraction(1, 4), h) for h in laws.holder_sets(silos) if any(h)]
    assert any(law != shown[0] for law in shown)


class TestTesters:
    def test_the_bound_is_below_the_truth_and_near_it(self) -> None:
        """Exact binomial counts at their means: the bound must not pass the true loss."""
        trials_each, p, q = 1 << 20, 0.6, 0.2
        bound = trials.lower_bound((round(p * trials_each), round(q * trials_each)), trials_each)
        truth = math.log(p / q)
        assert 0.97 * truth < bound < truth

    def test_chernoff_is_no_tighter_than_clopper_pearson(self) -> None:
        for hits in (1, 10, 500, 999, 1000):
            exact = stats.beta.ppf(2.5e-10, hits, 1000 - hits + 1)
            assert trials._beta_lower(hits, 1000, 2.5e-10) <= exact * (1 + 1e-9)

    def test_a_loss_at_a_delta(self) -> None:
        """Randomized response of one bit, and the same with a chance to tell the truth."""
        plain, told = {0: 3, 1: 1}, {0: 1, 1: 3}
        assert laws.loss_at(plain, told, Fraction(0)) == pytest.approx(math.log(3))
        # P(0) − delta is three eighths, against one quarter.
        assert laws.loss_at(plain, told, Fraction(3, 8)) == pytest.approx(math.log(3 / 2))
        sure, other = {"x": 1, 0: 9}, {"y": 1, 0: 9}
        assert laws.loss_at(sure, other, Fraction(1, 11)) == math.inf
        assert laws.loss_at(sure, other, Fraction(1, 10)) < 1e-15

    @pytest.mark.parametrize("shift", [1, 2])
    def test_digits_are_the_law_that_the_product_certifies(self, shift: int) -> None:
        law = DigitLaw.choose(shift, 1.5, 1e-4)
        found = laws.digits(law.numerators, law.places)
        whole = sum(found.values())
        assert {z: Fraction(w, whole) for z, w in sorted(found.items())} == law.exact()
        moved = laws.digits(law.numerators, law.places, shift)
        assert laws.loss_at(moved, found, Fraction(law.delta(shift))) <= law.epsilon(shift)

    @pytest.mark.parametrize(("honest", "loss"), [(3, 0.5), (2, 0.8563)])
    def test_parts(self, honest: int, loss: float) -> None:
        assert laws.parts_loss(Fraction(2), honest, 3) == pytest.approx(loss, abs=1e-4)
        assert laws.parts_loss(Fraction(2), honest, 3) <= NoiseLaw(Fraction(2), 3, 4).loss(
            honest, 1
        )

    def test_opened_numbers_have_the_law_of_their_digits(self) -> None:
        noise = SealedNoise.choose(2.0, 10, 4, 1, ["edges"]).drawn("edges")
        assert isinstance(noise, Coins)
        opened = trials.sealed_opened(noise, np.full(20_000, 7), 0, SeededEntropy(1))
        law = laws.digits(noise.numerators, noise.places, 7)
        whole = sum(law.values())
        values = range(3, 12)
        seen = [int((opened == value).sum()) for value in values]
        expected = [20_000 * law[value] / whole for value in values]
        rest = [20_000 - sum(seen)], [20_000 - sum(expected)]
        assert stats.chisquare(seen + rest[0], expected + rest[1]).pvalue > 1e-6

    def test_nothing_seen_is_nothing_claimed(self) -> None:
        assert trials.lower_bound((0, 0), 1000) == 0
        assert trials.lower_bound((500, 500), 1000) == 0


class TestPlantedBugs:
    """Each of these would be a privacy bug; the audit must not let it pass."""

    def audited(self, monkeypatch: pytest.MonkeyPatch, case: tuple[str, float, int, int]) -> bool:
        del monkeypatch
        return all(line.holds for line in report.audit(SeededEntropy(1), (case,), effort=0.25))

    @pytest.mark.parametrize("case", MASKED, ids=str)
    def test_b_two_percent_too_small(
        self, monkeypatch: pytest.MonkeyPatch, case: tuple[str, float, int, int]
    ) -> None:
        choose = MaskedNoise.choose

        def wrong(*arguments: object) -> MaskedNoise:
            noise = choose(*arguments)  # type: ignore[arg-type]
            return replace(noise, b=noise.b * Fraction(98, 100))

        monkeypatch.setattr(union.MaskedNoise, "choose", wrong)
        assert not self.audited(monkeypatch, case)

    def test_one_silos_noise_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The certificate counts on every honest silo's coins; runs without one show it."""
        zeros = trials.masked_zeros

        def quiet(noise: MaskedNoise, holders: object, colluding: int, *rest: object) -> int:
            return zeros(noise, holders, colluding + 1, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(trials, "masked_zeros", quiet)
        assert not self.audited(monkeypatch, ("masked", 1.0, 4, 0))

    def test_a_certificate_for_too_many_honest_silos(self, monkeypatch: pytest.MonkeyPatch) -> None:
        epsilon = MaskedNoise.epsilon
        monkeypatch.setattr(MaskedNoise, "epsilon", lambda self, honest: epsilon(self, honest + 1))
        assert not self.audited(monkeypatch, ("masked", 1.0, 4, 1))

    def test_a_digit_that_is_one_too_seldom(self, monkeypatch: pytest.MonkeyPatch) -> None:
        drawn = SealedNoise.drawn

        def wrong(self: SealedNoise, answer: Answer) -> Coins:
            coins = drawn(self, answer)
            assert isinstance(coins, Coins)
            first, *rest = coins.numerators
            return replace(coins, numerators=(first * 98 // 100, *rest))

        monkeypatch.setattr(SealedNoise, "drawn", wrong)
        assert not self.audited(monkeypatch, ("sealed edges", 1.0, 4, 1))

    def test_degrees_with_the_noise_of_one_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        drawn = SealedNoise.drawn

        def wrong(self: SealedNoise, answer: Answer) -> object:
            edges = SealedNoise.choose(2.0, 16, 4, 1, ["edges"])
            return drawn(edges, "edges") if answer == "degrees" else drawn(self, answer)

        monkeypatch.setattr(SealedNoise, "drawn", wrong)
        assert not self.audited(monkeypatch, ("sealed degrees", 2.0, 4, 1))

    def test_four_parts_that_are_one_noise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A member that subtracts its own part finds too little noise."""
        monkeypatch.setattr(counts, "HONEST", 4)
        assert not self.audited(monkeypatch, ("sealed edges in shares", 1.0, 4, 1))

    def test_a_margin_that_is_too_small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The bound fails too often, and the triangles show it."""
        bounded = SealedNoise._bounded

        def wrong(self: SealedNoise, answer: Answer) -> Bounded:
            return replace(bounded(self, answer), margin=-4)

        monkeypatch.setattr(Bounded, "__post_init__", lambda _: None)
        monkeypatch.setattr(SealedNoise, "_bounded", wrong)
        assert not self.audited(monkeypatch, ("sealed triangles by rule", 6.0, 4, 1))

    def test_a_partition_as_it_is_printed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        scale = FeatPlusNoise.partition_scale.func
        half = property(lambda self: scale(self) / 2)
        loss = FeatPlusNoise.partition_loss
        monkeypatch.setattr(
            FeatPlusNoise, "partition_loss", lambda self, honest: loss(self, honest) / 2
        )
        monkeypatch.setattr(FeatPlusNoise, "partition_scale", half)
        assert not self.audited(monkeypatch, ("feat+", 3.0, 4, 1))

    @pytest.mark.slow
    def test_flips_for_m_instead_of_h_silos(self, monkeypatch: pytest.MonkeyPatch) -> None:
        choose = ElgamalNoise.choose

        def wrong(variant: str, epsilon: float, silos: int, _: int) -> ElgamalNoise:
            return replace(choose(variant, epsilon, silos, 0), collusion=1)  # type: ignore[arg-type]

        monkeypatch.setattr(union.ElgamalNoise, "choose", wrong)
        assert not self.audited(monkeypatch, ("elgamal/blinded", 1.0, 4, 1))

    def test_printed_sold_as_epsilon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ElgamalNoise, "epsilon", lambda *_: 1.0)
        assert not self.audited(monkeypatch, ("elgamal/printed", 1.0, 4, 0))
