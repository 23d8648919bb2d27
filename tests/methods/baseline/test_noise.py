"""Tier 0 for the baseline's noise: every holder set and every coalition, in fractions."""

import itertools
import math
from fractions import Fraction

import pytest

from silograph.dp.channel import Channel
from silograph.dp.loss import log_upper
from silograph.errors import ArgumentError
from silograph.methods.baseline.noise import BaselineNoise

EPSILONS = [0.5, 1.0, 2.0, 3.0, 6.0]
Holders = tuple[bool, ...]


def report_law(channel: Channel, holders: Holders) -> list[Fraction]:
    """The joint law of all reports, one entry for each of the 2^m outcomes."""
    law = [Fraction(1)]
    for holds in holders:
        p = channel.p11 if holds else channel.p01
        law = [q * share for q in law for share in (1 - p, p)]
    assert sum(law) == 1
    return law


def loss(channel: Channel, one: Holders, other: Holders) -> float:
    """Both ratios, every outcome."""
    laws = zip(report_law(channel, one), report_law(channel, other), strict=True)
    return log_upper(max(max(x / y, y / x) for x, y in laws))


def holder_sets(count: int) -> list[Holders]:
    return list(itertools.product((False, True), repeat=count))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("silos", [2, 3, 4, 5])
def test_every_coalition_and_every_holder_set(epsilon: float, silos: int) -> None:
    """The colluders know their own bits and coins: what they learn from is the other reports. The
    edge is taken from every honest holder; colluders may hold it or not."""
    noise = BaselineNoise.choose(epsilon, silos)
    assert noise.channel.p01.denominator <= 2**64
    assert noise.channel.p11 == 1 - noise.channel.p01
    worst = dict.fromkeys(range(silos), 0.0)
    for colluding in holder_sets(silos)[:-1]:
        honest = [i for i in range(silos) if not colluding[i]]
        nobody = (False,) * len(honest)
        for holders in holder_sets(silos):
            seen = tuple(holders[i] for i in honest)
            cost = loss(noise.channel, seen, nobody)
            assert cost <= log_upper(Fraction(noise.channel.p11, noise.channel.p01) ** sum(seen))
            t = silos - len(honest)
            worst[t] = max(worst[t], cost)
    assert worst[0] <= epsilon
    assert worst[0] >= 0.98 * epsilon
    for t, cost in worst.items():
        assert cost == noise.epsilon(silos - t)
        share = (silos - t) / silos * epsilon
        assert 0.98 * share <= cost <= math.nextafter(share, math.inf)
        for view in BaselineNoise.choose(epsilon, silos, t).views[1:]:
            assert view.epsilon == cost


@pytest.mark.parametrize("silos", [2, 3, 4, 5])
def test_one_step_less_noise_would_cost_too_much(silos: int) -> None:
    step = Fraction(1, 2**64)
    for epsilon in (*EPSILONS, 0.1, 0.7, 11.3):
        channel = BaselineNoise.choose(epsilon, silos).channel
        less = Channel(channel.p11 + step, channel.p01 - step)
        assert BaselineNoise(channel, silos).epsilon(silos) <= epsilon
        assert BaselineNoise(less, silos).epsilon(silos) > epsilon
        assert loss(less, (True,) * silos, (False,) * silos) > epsilon


@pytest.mark.parametrize("channel", [Channel("2/3", "1/4"), Channel("20/21", "1/15")], ids=str)
@pytest.mark.parametrize("silos", [2, 3, 4])
def test_channels_that_are_not_symmetric(channel: Channel, silos: int) -> None:
    nobody = (False,) * silos
    worst = max(loss(channel, holders, nobody) for holders in holder_sets(silos))
    assert BaselineNoise(channel, silos).epsilon(silos) == worst


@pytest.mark.slow
@pytest.mark.parametrize("silos", [2, 3, 4, 5])
def test_holder_sets_with_the_same_union_can_be_told_apart(silos: int) -> None:
    """The union is 1 for all of them, and yet no two laws are equal: the holder set leaks."""
    channel = BaselineNoise.choose(3.0, silos).channel
    holding = [h for h in holder_sets(silos) if any(h)]
    for one, other in itertools.combinations(holding, 2):
        assert report_law(channel, one) != report_law(channel, other)
        differing = sum(a != b for a, b in zip(one, other, strict=True))
        assert loss(channel, one, other) == log_upper((channel.p11 / channel.p01) ** differing)
    alone, rest = (True,) + (False,) * (silos - 1), (False,) + (True,) * (silos - 1)
    assert loss(channel, alone, rest) >= 0.98 * 3.0


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 30.0, 50.0])
@pytest.mark.parametrize("silos", [2, 64])
def test_extreme_parameters(epsilon: float, silos: int) -> None:
    noise = BaselineNoise.choose(epsilon, silos, silos - 1)
    assert noise.epsilon(silos) <= epsilon
    assert 0 < noise.channel.p01 < noise.channel.p11


def test_views() -> None:
    assert [v.name for v in BaselineNoise.choose(1.0, 3).views] == ["coordinator"]
    names = [v.name for v in BaselineNoise.choose(1.0, 3, 2).views]
    assert names == ["coordinator", "coordinator + 2 silos", "2 silos + reports"]
    assert BaselineNoise(Channel(1, 0), 3).epsilon(1) == math.inf


@pytest.mark.parametrize(
    ("silos", "collusion"), [(1, 0), (65, 0), (4, 4), (4, -1), (4.0, 1), (True, 0), (4, None)]
)
def test_bad_parties(silos: int, collusion: int) -> None:
    with pytest.raises(ArgumentError):
        BaselineNoise.choose(1.0, silos, collusion)
    with pytest.raises(ArgumentError):
        BaselineNoise(Channel("3/4", "1/4"), silos, collusion)


def test_bad_numbers() -> None:
    with pytest.raises(ArgumentError, match="epsilon"):
        BaselineNoise.choose(-1.0, 2)
    with pytest.raises(ArgumentError, match="too small"):
        BaselineNoise.choose(1e-7, 64)
    with pytest.raises(ArgumentError, match="protects nobody"):
        BaselineNoise.choose(50.1, 64)
    for honest in (0, 5):
        with pytest.raises(ArgumentError, match="honest"):
            BaselineNoise.choose(1.0, 4).epsilon(honest)
