"""The channel: exact probabilities, and an epsilon that is never too small."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.dp.channel import Channel
from silograph.dp.loss import View, log_upper
from silograph.errors import ArgumentError, ChannelError

EPSILONS = [1e-6, 0.01, 0.1, 0.5, 1, 2, 3, 6, 10, 20, 40, 44]


def loss(channel: Channel) -> Fraction:
    """The worst ratio of the probabilities of an outcome, by enumerating both outcomes."""
    ones, zeros = (channel.p11, channel.p01), (1 - channel.p11, 1 - channel.p01)
    return max(a / b for pair in (ones, zeros) for a, b in (pair, pair[::-1]))


def exp_at_least(epsilon: float, ratio: Fraction) -> bool:
    """Whether e^ε ≥ ratio, in a hundred digits."""
    import decimal

    with decimal.localcontext(decimal.Context(prec=100)):
        quotient = Decimal(ratio.numerator) / Decimal(ratio.denominator)
        return Decimal(epsilon).exp() * (1 + Decimal("1e-95")) >= quotient


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_symmetric_never_costs_more_and_wastes_nothing(epsilon: float) -> None:
    channel = Channel.symmetric(epsilon)
    assert channel.p11 + channel.p01 == 1
    assert channel.p01.denominator <= 2**64
    assert exp_at_least(epsilon, loss(channel))
    # One step of 2^-64 less noise would cost more than was asked for.
    if epsilon < 44:
        step = Fraction(1, 2**64)
        assert not exp_at_least(epsilon, (channel.p11 + step) / (channel.p01 - step))
        assert channel.epsilon <= epsilon


@given(
    st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(10**6 - 1, 10**6)),
    st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(10**6 - 1, 10**6)),
)
def test_epsilon_bounds_the_enumerated_loss(p: Fraction, q: Fraction) -> None:
    if p == q:
        return
    channel = Channel(max(p, q), min(p, q))
    assert exp_at_least(channel.epsilon, loss(channel))
    assert channel.epsilon == pytest.approx(math.log(loss(channel)), rel=1e-12, abs=1e-15)


@given(st.fractions(min_value=Fraction(1, 2**70), max_value=2**70))
def test_log_upper_is_an_upper_bound_and_tight(ratio: Fraction) -> None:
    bound = log_upper(ratio)
    assert exp_at_least(bound, ratio)
    if ratio != 1:
        lower = math.nextafter(math.nextafter(bound, -math.inf), -math.inf)
        assert not exp_at_least(lower, ratio)


def test_weights_make_unbiased_bits() -> None:
    channel = Channel("20/21", "0.0627")
    w = channel.weights
    for x, p, v in ((1, channel.p11, w.v1), (0, channel.p01, w.v0)):
        mean = p * w.alpha + (1 - p) * w.beta
        assert mean == x
        assert p * w.alpha**2 + (1 - p) * w.beta**2 - mean**2 == v == w.v0 + w.delta * x
        assert p * w.spread(1) + (1 - p) * w.spread(0) == v
    assert w.gamma == 1 / channel.g


def test_perfect_channel() -> None:
    channel = Channel(1, 0)
    assert channel.epsilon == math.inf
    assert (channel.alpha, channel.beta) == (1, 0)
    assert channel.weights.v0 == channel.weights.v1 == 0


@pytest.mark.parametrize(
    ("p11", "p01"),
    [
        (0.5, 0.5),
        (0.1, 0.9),
        (1.1, 0),
        (0.5, -0.1),
        ("x", 0),
        (math.nan, 0),
        (math.inf, 0),
        (None, 0),
    ],
)
def test_nonsense_is_refused(p11: float, p01: float) -> None:
    with pytest.raises(ChannelError):
        Channel(p11, p01)


def test_too_fine_a_fraction_is_refused() -> None:
    with pytest.raises(ChannelError, match="16,000 bits"):
        Channel(Fraction(2**16001 - 1, 2**16001), 0)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf])
def test_symmetric_refuses_a_bad_epsilon(epsilon: float) -> None:
    with pytest.raises(ArgumentError, match="positive, finite"):
        Channel.symmetric(epsilon)


def test_symmetric_refuses_what_would_be_all_noise() -> None:
    with pytest.raises(ArgumentError, match="all noise"):
        Channel.symmetric(1e-20)


def test_views_check_themselves() -> None:
    assert str(View("coordinator", 3.0)) == "coordinator: ε = 3"
    assert str(View("1 silo", 1.0, 1e-9)) == "1 silo: ε = 1, δ = 1e-9"
    for name, epsilon, delta in (("", 1, 0), ("x", -1, 0), ("x", math.nan, 0), ("x", 1, 2)):
        with pytest.raises(ArgumentError):
            View(name, epsilon, delta)
