"""Tier 0 for the masked union's noise: every holder set and every coalition, in fractions."""

import itertools
import math
from fractions import Fraction

import pytest

from silograph.dp.channel import Channel
from silograph.dp.loss import log_upper
from silograph.errors import ArgumentError, ChannelError
from silograph.methods.masked.noise import MaskedNoise

EPSILONS = [0.5, 1.0, 2.0, 3.0]


def sum_law(q: int, b: Fraction, holding: tuple[bool, ...]) -> list[Fraction]:
    """The law of the sum of contributions in Z_q, by convolution of what each silo draws."""
    law = [Fraction(1)] + [Fraction(0)] * (q - 1)
    for holds in holding:
        uniform = Fraction(1) if holds else b
        own = [uniform / q + (0 if holds or x else 1 - b) for x in range(q)]
        law = [sum((law[x] * own[(s - x) % q] for x in range(q)), Fraction(0)) for s in range(q)]
    return law


def worst_loss(q: int, b: Fraction, honest: int) -> float:
    """Over every holder set among the honest silos, against nobody: both ratios, every outcome."""
    nobody = sum_law(q, b, (False,) * honest)
    laws = [sum_law(q, b, h) for h in itertools.product((False, True), repeat=honest) if any(h)]
    # Which of the silos hold it makes no difference at all.
    assert all(law == laws[0] for law in laws)
    ratios = [max(x / y, y / x) for x, y in zip(laws[0], nobody, strict=True)]
    return log_upper(max(ratios))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("silos", "collusion"), [(m, t) for m in (2, 3, 4, 5) for t in range(m)])
def test_every_view_is_within_epsilon_and_wastes_little(
    epsilon: float, silos: int, collusion: int
) -> None:
    noise = MaskedNoise.choose(epsilon, silos, collusion)
    assert noise.b.denominator <= 2**64
    for colluding in range(collusion + 1):
        loss = worst_loss(noise.q, noise.b, silos - colluding)
        assert loss <= epsilon
        assert loss == noise.epsilon(silos - colluding)
    assert loss >= 0.98 * epsilon
    assert all(view.epsilon <= epsilon for view in noise.views if view.claimed)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_step_less_noise_would_cost_too_much(epsilon: float) -> None:
    noise = MaskedNoise.choose(epsilon, 4, 1)
    assert worst_loss(noise.q, noise.b - Fraction(1, 2**64), 3) > epsilon


@pytest.mark.parametrize(
    ("epsilon", "collusion", "q", "p01"),
    [(1.0, 0, 3, 0.2453), (3.0, 0, 21, 0.0474), (3.0, 1, 21, 0.0627)],
)
def test_known_choices(epsilon: float, collusion: int, q: int, p01: float) -> None:
    noise = MaskedNoise.choose(epsilon, 4, collusion)
    assert noise.q == q
    assert float(noise.channel.p01) == pytest.approx(p01, abs=5e-5)


def test_the_channel_is_that_of_the_sum() -> None:
    noise = MaskedNoise.choose(2.0, 4, 1)
    silent = sum_law(noise.q, noise.b, (False,) * 4)
    held = sum_law(noise.q, noise.b, (True, False, False, False))
    assert noise.channel == Channel(1 - held[0], 1 - silent[0])


def test_symmetric_response_is_nearly_reached() -> None:
    """At ε = 3 and t = 0 the variance is that of randomized response on the union to 0.1 %."""
    ours = MaskedNoise.choose(3.0, 4, 0).channel.weights
    assert float(ours.v0 / Channel.symmetric(3.0).weights.v0) == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize(("epsilon", "factor"), [(3.0, 1.35), (1.0, 1.76)])
def test_what_a_colluder_costs(epsilon: float, factor: float) -> None:
    """Variance over that of randomized response on the union, with t = 1 of four silos."""
    ours = MaskedNoise.choose(epsilon, 4, 1).channel.weights.v0
    assert float(ours / Channel.symmetric(epsilon).weights.v0) == pytest.approx(factor, abs=0.01)


def test_without_colluders_a_silo_that_sees_the_release_knows_more() -> None:
    noise = MaskedNoise.choose(1.0, 4, 0)
    beyond = noise.views[-1]
    assert not beyond.claimed
    assert beyond.epsilon == pytest.approx(1.23, abs=0.005)
    assert beyond.epsilon == worst_loss(noise.q, noise.b, 3)
    assert all(view.claimed for view in MaskedNoise.choose(1.0, 4, 1).views)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.69, 5.0, 8.0, 12.0, 30.0, 50.0])
@pytest.mark.parametrize(("silos", "collusion"), [(2, 0), (2, 1), (4, 1), (64, 0), (64, 63)])
def test_extreme_parameters(epsilon: float, silos: int, collusion: int) -> None:
    noise = MaskedNoise.choose(epsilon, silos, collusion)
    assert noise.epsilon(silos - collusion) <= epsilon
    assert 2 <= noise.q <= 65536
    assert 0 < noise.b < 1
    if (silos, collusion) == (64, 63) and epsilon < 0.5:
        with pytest.raises(ChannelError, match="nothing but noise"):
            _ = noise.channel  # weights of such a release are beyond all that a float can sum
    else:
        assert noise.channel.p01 < noise.channel.p11


def test_the_choice_of_q_is_the_best_of_all() -> None:
    for epsilon in (0.3, 0.7, 1.0, 2.0, 3.0, 4.5):
        chosen = MaskedNoise.choose(epsilon, 4, 1)
        for q in range(2, int(4 * math.exp(epsilon)) + 10):
            chosen_variance = float(chosen.channel.weights.v0)
            growth = math.exp(epsilon)
            share = max(1 / growth, (1 - growth / q) / (1 - 1 / q))
            b = Fraction(-math.expm1(math.log1p(-share) / 3))
            try:
                other = MaskedNoise(q, b, 4, 1).channel.weights.v0
            except ValueError:
                continue
            assert chosen_variance <= float(other) * (1 + 1e-9), (epsilon, q)


@pytest.mark.parametrize(
    ("silos", "collusion"), [(1, 0), (65, 0), (4, 4), (4, -1), (4.0, 1), (True, 0), (4, None)]
)
def test_bad_parties(silos: int, collusion: int) -> None:
    with pytest.raises(ArgumentError):
        MaskedNoise.choose(1.0, silos, collusion)
