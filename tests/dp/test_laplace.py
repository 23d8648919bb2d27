"""The laws of integer noise, against sums of their own definitions."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from silograph.dp import laplace
from silograph.dp.laplace import NoiseLaw, round_up, scale_for
from silograph.errors import ArgumentError


def negative_binomial(scale: Fraction, shape: Fraction, size: int) -> list[Decimal]:
    """P(k) from 0 to size, in the precision of the context."""
    p = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
    kappa = Decimal(shape.numerator) / Decimal(shape.denominator)
    law = [(1 - p) ** kappa]
    for k in range(1, size + 1):
        law.append(law[-1] * p * (k - 1 + kappa) / k)
    return law


def difference(scale: Fraction, shape: Fraction, size: int, top: int) -> list[Decimal]:
    """P(z) of the difference, z from 0 to top."""
    one = negative_binomial(scale, shape, size)
    return [sum(a * b for a, b in zip(one, one[z:], strict=False)) for z in range(top + 1)]


class TestScale:
    @pytest.mark.slow
    def test_the_least_that_the_samplers_take(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Against all fractions with parts up to 40."""
        monkeypatch.setattr(laplace, "_LARGEST_PART", 40)
        every = sorted({Fraction(a, b) for a in range(1, 41) for b in range(1, 41)})
        for num in range(1, 60):
            for den in range(1, 70, 3):
                wanted = Fraction(num, den)
                if Fraction(1, 40) < wanted <= 40:
                    least = min(x for x in every if x >= wanted)
                    assert scale_for(1, 1 / wanted) == least, wanted

    @pytest.mark.parametrize("epsilon", [1e-9, 0.001, 0.1, 1 / 3, 1.0, math.pi, 40.0, 1e-12])
    @pytest.mark.parametrize("sensitivity", [1, 2, 4037, 1_000_003])
    def test_never_more_than_epsilon(self, sensitivity: int, epsilon: float) -> None:
        if sensitivity / epsilon > 2**50:
            with pytest.raises(ArgumentError, match="too small"):
                scale_for(sensitivity, epsilon)
            return
        scale = scale_for(sensitivity, epsilon)
        assert sensitivity / scale <= Fraction(epsilon)
        assert round_up(sensitivity / scale) <= epsilon
        assert max(scale.numerator, scale.denominator) <= 2**62
        # Rounded by less than a float shows.
        assert scale * Fraction(epsilon) / sensitivity < 1 + Fraction(1, 2**53)

    @pytest.mark.parametrize(("sensitivity", "epsilon"), [(0, 1.0), (1, 0.0), (1, -1.0)])
    def test_nonsense(self, sensitivity: int, epsilon: float) -> None:
        with pytest.raises(ArgumentError, match="positive"):
            scale_for(sensitivity, epsilon)

    def test_up_means_up(self) -> None:
        third = Fraction(1, 3)
        assert Fraction(round_up(third)) > third > Fraction(math.nextafter(round_up(third), 0))
        assert round_up(Fraction(1, 4)) == 0.25


class TestLoss:
    @pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(9)])
    @pytest.mark.parametrize("shares", [2, 3, 4, 7])
    def test_few_honest_silos(self, scale: Fraction, shares: int) -> None:
        """Against the supremum over all z, in 60 digits."""
        with localcontext(prec=60):
            for honest in range(1, shares):
                top = 24
                law = difference(scale, Fraction(honest, shares), int(70 * scale) + 60, top)
                for shift in (1, 2, 5):
                    worst = max(
                        law[abs(z)] / law[abs(z + shift)] for z in range(-top, top - shift + 1)
                    )
                    exact = worst.ln()
                    found = Decimal(NoiseLaw(scale, shares, shares).loss(honest, shift))
                    assert worst == law[0] / law[shift]
                    # A bound, and no more than a last place or two above.
                    assert exact - Decimal("1e-40") <= found <= exact * (1 + Decimal("1e-15"))

    @pytest.mark.parametrize("shape", [Fraction(1), Fraction(4, 3), Fraction(2), Fraction(5)])
    def test_enough_honest_silos(self, shape: Fraction) -> None:
        """For shapes from 1 on the ratio tends to shift/scale from below."""
        scale, shift = Fraction(3, 2), 2
        law = NoiseLaw(scale, shape.denominator, shape.numerator)
        assert law.loss(shape.numerator, shift) == round_up(shift / scale)
        with localcontext(prec=60):
            exact = difference(scale, shape, 300, 60)
            ratios = [(exact[z] / exact[z + shift]).ln() for z in range(58)]
            bound = Decimal(shift * 2) / 3
            assert max(ratios) <= bound + Decimal("1e-40")
            assert max(ratios) > bound * Decimal("0.9")

    def test_larger_numbers_at_the_same_rate_cost_more(self) -> None:
        """What the certificate for every bound B relies on."""
        for honest in (1, 2, 3):
            for rate in (Fraction(1, 10), Fraction(1), Fraction(4)):
                found = [NoiseLaw(s / rate, 4, 4).loss(honest, s) for s in (1, 2, 3, 10, 50, 400)]
                assert found == sorted(found)
                assert len(set(found)) == len(found)

    def test_more_noise_costs_less_and_more_honest_silos_too(self) -> None:
        losses = [NoiseLaw(Fraction(s), 4, 4).loss(2, 3) for s in (1, 2, 5, 50)]
        assert losses == sorted(losses, reverse=True)
        losses = [NoiseLaw(Fraction(5), 4, 4).loss(k, 3) for k in (1, 2, 3, 4)]
        assert losses == sorted(losses, reverse=True)

    def test_very_small_scales(self) -> None:
        """P(0)/P(1) is 1/(κ²·p) for tiny p, far below what fixed point of 128 bits shows."""
        law = NoiseLaw(Fraction(1, 200), 2, 2)
        assert law.loss(1, 1) == pytest.approx(200 + math.log(2), rel=1e-12)
        assert law.loss(1, 3) > 600

    def test_nonsense(self) -> None:
        law = NoiseLaw(Fraction(2), 3, 4)
        for honest, shift in ((0, 1), (5, 1), (3, -1)):
            with pytest.raises(ArgumentError):
                law.loss(honest, shift)
        assert law.loss(2, 0) == 0.0
        with pytest.raises(ArgumentError, match="positive"):
            NoiseLaw(Fraction(0), 1, 1)


class TestTail:
    @pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(41, 2)])
    @pytest.mark.parametrize("parties", [3, 4, 6, 12])
    def test_a_bound_and_hardly_more(self, scale: Fraction, parties: int) -> None:
        law = NoiseLaw(scale, 3, parties)
        with localcontext(prec=50):
            size = int(scale * (60 + 4 * parties)) + 80
            one = negative_binomial(scale, law.shape, size)
            above = [Decimal(0)]
            for x in reversed(one):
                above.append(above[-1] + x)
            above.reverse()
            for x in (1, 2, 5, 20, 60):
                exact = sum(a * b for a, b in zip(one, above[x:], strict=False))
                found = Decimal(law.tail(x))
                assert exact - Decimal("1e-18") <= found <= exact * (1 + Decimal("1e-8"))

    @pytest.mark.parametrize("scale", [Fraction(2), Fraction(20), Fraction(1000)])
    def test_one_discrete_laplace(self, scale: Fraction) -> None:
        rate = float(1 / scale)
        for x in (1, 3, int(20 * scale)):
            exact = math.exp(-x * rate) / (1 + math.exp(-rate))
            assert exact <= NoiseLaw(scale, 1, 1).tail(x) <= exact * (1 + 1e-6)
        assert NoiseLaw(scale, 1, 1).tail(0) == 1.0

    def test_a_law_that_is_too_wide_is_not_summed(self) -> None:
        """Its table would take as long as the noise is wide, and whoever asks chooses the noise."""
        for scale in (10_000, 10**9):
            law = NoiseLaw(Fraction(scale), 3, 4)
            assert law.tail(5 * scale) == law._chernoff(5 * scale)

    def test_the_least_reach_is_the_least(self) -> None:
        law = NoiseLaw(Fraction(20), 3, 4)
        for chance in (0.9, 0.3, 1e-3, 3e-5, 1e-12):
            s = law.least_reach(chance)
            assert law.tail(s + 1) <= chance
            assert s == 0 or law.tail(s) > chance

    @pytest.mark.parametrize("scale", [Fraction(2), Fraction(20), Fraction(10**4), Fraction(10**9)])
    @pytest.mark.parametrize("parties", [1, 3, 4])
    def test_chernoff_is_a_bound_and_not_far_off(self, scale: Fraction, parties: int) -> None:
        """Where the law is wide, or x far out: of one Laplace variable the tail is known."""
        law, one = NoiseLaw(scale, 1, parties), NoiseLaw(scale, 1, 1)
        rate = float(1 / scale)
        for x in (1, int(scale), int(30 * scale), int(300 * scale)):
            exact = math.exp(-x * rate) / (1 + math.exp(-rate))
            assert exact <= one._chernoff(x) <= 1
            assert law._chernoff(x) >= one._chernoff(x) * (1 - 1e-12) or x <= scale
            assert law.tail(x) <= law._chernoff(x)
            if x > 5 * scale:
                assert one._chernoff(x) <= exact * math.e * (x * rate + 1)

    def test_beyond_the_table(self) -> None:
        law = NoiseLaw(Fraction(2), 3, 4)
        assert law.tail(10**4) < 1e-300
        reach = law.least_reach(1e-300)
        assert law.tail(reach + 1) <= 1e-300 < law.tail(reach)
        with pytest.raises(ArgumentError, match="chance must be positive"):
            law.least_reach(0.0)

    def test_fewer_steps_give_a_bound_that_is_less_tight(self) -> None:
        cases = [
            (Fraction(1, 2), 7),
            (Fraction(5), 40),
            (Fraction(300), 300),
            (Fraction(4000), 4000),
        ]
        for scale, shift in cases:
            law = NoiseLaw(scale, 4, 4)
            for honest in (1, 2, 3):
                tight = law.loss(honest, shift, 400_000)
                steps = (1, 2, shift - 1, shift, shift + 1, 10_000)
                found = [law.loss(honest, shift, count) for count in steps]
                assert all(tight <= loss for loss in found)
                assert found[-1] <= tight + 0.01


class TestLaw:
    @pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(25, 2)])
    @pytest.mark.parametrize("parties", [1, 2, 3, 5])
    def test_probabilities_and_variance(self, scale: Fraction, parties: int) -> None:
        law = NoiseLaw(scale, 3, parties)
        reach = int(60 * scale) + 30
        found = law.probabilities(reach)
        with localcontext(prec=30):
            exact = difference(scale, law.shape, 2 * reach, 12)
        middle = found[reach : reach + 13]
        assert middle == pytest.approx([float(x) for x in exact], abs=1e-14)
        assert found == pytest.approx(found[::-1], abs=1e-15)
        z = np.arange(-reach, reach + 1)
        assert float(found @ z**2) == pytest.approx(float(law.variance), rel=1e-9)
        assert law.stderr == pytest.approx(math.sqrt(law.variance))

    def test_sums(self) -> None:
        law = NoiseLaw(Fraction(2), 3, 4)
        one = law.probabilities(200)
        assert law.summed(2).probabilities(100) == pytest.approx(
            np.convolve(one, one)[300:501], abs=1e-14
        )

    def test_spread_to_320_bits(self) -> None:
        with localcontext(prec=150):
            p = (Decimal(-2) / 5).exp()
            exact = Fraction(p / (1 - p) ** 2)
        assert abs(NoiseLaw(Fraction(5, 2), 1, 1).spread - exact) <= Fraction(1, 2**320)

    @pytest.mark.parametrize("scale", [Fraction(1, 9), Fraction(2), Fraction(300)])
    def test_margins(self, scale: Fraction) -> None:
        law = NoiseLaw(scale, 3, 4)
        q = law.margin()
        beyond = lambda x: 2 * law.tail(x + 1)  # noqa: E731
        assert beyond(q) <= 0.05 * (1 + 1e-9)
        assert q == 0 or beyond(q - 1) > 0.05

    def test_wide_margins_are_a_little_wider(self) -> None:
        law = NoiseLaw(Fraction(10**6), 1, 1)
        exact = 10**6 * math.log(20)
        assert exact <= law.margin() <= exact * (1 + 1 / 1000)
