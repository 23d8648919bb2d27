"""Tier 0 for the committee's coin: what it costs, in fractions, and the law of what is drawn."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from silograph import _core
from silograph.dp.loss import log_upper
from silograph.errors import ArgumentError
from silograph.methods.committee.noise import CommitteeNoise
from tests.methods.committee.oracle import Oracle
from tests.methods.committee.run import COMMITTEES, CommitteeRun, parameters

Numbers = npt.NDArray[np.int64]
EPSILONS = [
    1e-6, 3e-5, 1e-3, 0.01, 0.1, 0.25, 0.5, math.log(3), 1.0, 1.5, 2.0, math.log(7), 3.0, 4.5, 5.5,
    7.3, 10.0, 20.0, 33.3, 50.0,
]  # fmt: skip


def exponential(epsilon: float) -> tuple[Fraction, Fraction]:
    """Bounds of e^epsilon: its series, and the series with what is left of it."""
    x, term, total, number = Fraction(epsilon), Fraction(1), Fraction(1), 0
    while number < 2 * x or term * 2**200 > 1:
        number += 1
        term *= x / number
        # Fractions would grow without end: these are rounded down, and far smaller than the rest.
        term = Fraction(math.floor(term * 2**400), 2**400)
        total += term
    return total, total + 4 * term + Fraction(number, 2**399)


def variance(p: Fraction) -> Fraction:
    return p * (1 - p) / (1 - 2 * p) ** 2


class TestCost:
    @pytest.mark.parametrize("epsilon", EPSILONS)
    def test_the_loss_is_certified_and_one_step_less_is_too_much(self, epsilon: float) -> None:
        low, high = exponential(epsilon)
        assert high - low < low / 2**150
        noise = CommitteeNoise.choose(epsilon, 4, 1)
        k, whole = noise.numerator, 2**noise.places
        assert Fraction(whole - k, k) <= low
        assert k == 1 or Fraction(whole - k + 1, k - 1) > high
        assert noise.epsilon(0) <= epsilon
        # The claim is the loss itself, rounded up.
        claimed = exponential(noise.epsilon(0))
        below = exponential(math.nextafter(math.nextafter(noise.epsilon(0), 0), 0))
        assert below[0] < Fraction(whole - k, k) <= claimed[1]

    @pytest.mark.parametrize("epsilon", EPSILONS)
    def test_the_coin_has_the_fewest_places(self, epsilon: float) -> None:
        """Against every coin with fewer places, where there are not too many of them."""
        low, high = exponential(epsilon)
        noise = CommitteeNoise.choose(epsilon, 4, 1)
        best = (variance(1 / (1 + high)), variance(1 / (1 + low)))
        assert variance(noise.flip) <= Fraction(102, 100) * max(best)
        assert noise.numerator % 2 == 1
        assert 0 < 2 * noise.numerator < 2**noise.places
        for places in range(1, noise.places):
            # The variance grows with k, so the least k that is certified is the best one.
            least = next(
                k for k in range(max(math.ceil(2**places / (1 + high)) - 1, 1), 2**places + 1)
                if Fraction(2**places - k, k) <= low
            )  # fmt: skip
            assert 2 * least >= 2**places or variance(Fraction(least, 2**places)) > Fraction(
                102, 100
            ) * min(best)

    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0, 4.5])
    def test_against_all_coins(self, epsilon: float) -> None:
        """Every k of every number of places, one by one."""
        low, _ = exponential(epsilon)
        limit = Fraction(102, 100) * variance(1 / (1 + low))
        noise = CommitteeNoise.choose(epsilon, 4, 1)
        good = [
            (places, k)
            for places in range(1, noise.places + 1)
            for k in range(1, 2 ** (places - 1))
            if Fraction(2**places - k, k) <= low and variance(Fraction(k, 2**places)) <= limit
        ]
        assert (noise.places, noise.numerator) == min(good)

    def test_losses_and_views(self) -> None:
        for silos in (2, 4, 7):
            noise = CommitteeNoise.choose(1.0, silos, 1)
            loss = log_upper((1 - noise.flip) / noise.flip)
            assert noise.losses == {t: loss if t < 2 else math.inf for t in range(silos)}
            assert noise.epsilon(2) == math.inf
            assert {(v.name, v.epsilon, v.claimed) for v in noise.views} == {
                ("coordinator", loss, True),
                ("coordinator + 1 member", loss, True),
                ("1 member + release", loss, True),
                ("2 members", math.inf, False),
            }
            assert all(view.delta == 0 for view in noise.views)

    def test_with_the_coordinator_inside(self) -> None:
        """It holds against any one party: the coordinator with a member is two members."""
        noise = CommitteeNoise.choose(1.0, 4, 0, inside=True)
        loss = log_upper((1 - noise.flip) / noise.flip)
        assert noise.losses == {t: math.inf if t else loss for t in range(4)}
        assert {(v.name, v.epsilon, v.claimed) for v in noise.views} == {
            ("coordinator", loss, True),
            ("coordinator + 1 member", math.inf, False),
            ("1 member + release", loss, True),
            ("2 members", math.inf, False),
        }
        with pytest.raises(ArgumentError, match="collusion is 0"):
            CommitteeNoise.choose(1.0, 4, 1, inside=True)

    def test_what_cannot_be_asked_for(self) -> None:
        for collusion in (2, 3):
            with pytest.raises(ArgumentError, match="at most 1"):
                CommitteeNoise.choose(1.0, 4, collusion)
        for epsilon in (0, -1, math.inf, math.nan, 51, 1e-7):
            with pytest.raises(ArgumentError):
                CommitteeNoise.choose(epsilon, 4, 1)

    def test_the_coin_does_not_depend_on_the_parties(self) -> None:
        coins = {
            (noise.numerator, noise.places)
            for noise in (
                CommitteeNoise.choose(2.0, 2, 0),
                CommitteeNoise.choose(2.0, 7, 1),
                CommitteeNoise.choose(2.0, 7, 0, inside=True),
            )
        }
        assert len(coins) == 1

    def test_the_channel(self) -> None:
        noise = CommitteeNoise.choose(1.0, 4, 1)
        p = Fraction(noise.numerator, 2**noise.places)
        assert (noise.flip, noise.channel.p01, noise.channel.p11) == (p, p, 1 - p)


class TestCoin:
    """The circuit: P(coin = 1) = k/2^places, exactly."""

    @staticmethod
    def compare(digits: list[int], bits: Numbers) -> Numbers:
        """The gates, one by one: x AND y with the negations that the core makes."""
        less = 1 - bits[0]
        for place in range(1, len(digits)):
            bit = bits[place]
            less = 1 - bit * (1 - less) if digits[place] else (1 - bit) * less
        return less

    @pytest.mark.parametrize("places", range(1, 7))
    def test_every_value_of_the_bits(self, places: int) -> None:
        values = np.arange(2**places)
        bits = values >> np.arange(places)[:, None] & 1
        for k in range(1, 2**places, 2):
            digits = [k >> place & 1 for place in range(places)]
            assert (self.compare(digits, bits) == (values < k)).all()
            assert self.compare(digits, bits).sum() == k

    @pytest.mark.parametrize("places", range(1, 6))
    def test_every_value_of_all_four_components(self, places: int) -> None:
        """With any one component unknown, and the others whatever they are."""
        every = np.arange(2 ** (4 * places))
        parts = [every >> places * c & 2**places - 1 for c in range(4)]
        drawn = parts[0] ^ parts[1] ^ parts[2] ^ parts[3]
        bits = drawn >> np.arange(places)[:, None] & 1
        for k in range(1, 2**places, 2):
            digits = [k >> place & 1 for place in range(places)]
            coin = self.compare(digits, bits).reshape((2**places,) * 4)
            assert all((coin.sum(axis=c) == k).all() for c in range(4))

    @pytest.mark.parametrize("places", range(1, 7))
    def test_the_machines_evaluate_it(self, places: int) -> None:
        """For every k: where a pair's bits have a value, its coin is what the circuit says.

        Every value occurs, so the machines' coin is one for exactly k of 2^places values.
        """
        for k in range(1, 2**places, 2):
            given = parameters(COMMITTEES["two silos and two helpers"], 1024, chunk_pairs=1024,
                               numerator=k, places=places)  # fmt: skip
            run = CommitteeRun(COMMITTEES["two silos and two helpers"], given=given).go()
            drawn = Oracle(run).drawn(0)
            coin = np.array([run.result() >> pair & 1 for pair in range(1024)])
            ones = {int(value) for value in drawn[coin == 1]}
            zeros = {int(value) for value in drawn[coin == 0]}
            assert ones == set(range(k))
            assert zeros == set(range(k, 2**places))

    def test_releases_follow_the_certified_channel(self) -> None:
        """Exactly: over all values of the drawn bits, for every set of holders."""
        for epsilon in (0.5, 1.0, 3.0):
            noise = CommitteeNoise.choose(epsilon, 3, 1)
            values = np.arange(2**noise.places)
            bits = values >> np.arange(noise.places)[:, None] & 1
            digits = [noise.numerator >> place & 1 for place in range(noise.places)]
            coin = self.compare(digits, bits)
            for holders in product((0, 1), repeat=3):
                shown = Fraction(int((max(holders) ^ coin).sum()), 2**noise.places)
                assert shown == (noise.channel.p11 if any(holders) else noise.channel.p01)

    def test_a_coin_that_is_not_odd_is_refused(self) -> None:
        for k, places in ((2, 2), (0, 1), (4, 2), (8, 3), (1, 0), (1, 129)):
            with pytest.raises(ArgumentError):
                parameters(COMMITTEES["four silos"], numerator=k, places=places)
        with pytest.raises(ValueError, match="not odd"):
            _core.CommitteeCircuit([0, 1], [False, True])
