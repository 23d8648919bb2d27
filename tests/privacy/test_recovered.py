"""The loss against every coalition, told by the channel of a release alone."""

import math
from fractions import Fraction

import pytest

from silograph.methods.union import plan_union
from silograph.privacy.channel import Channel
from silograph.privacy.recovered import union_losses


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 9.0])
@pytest.mark.parametrize(
    ("protocol", "silos", "collusion"),
    [
        ("masked", 2, 1),
        ("masked", 5, 0),
        ("masked", 64, 3),
        ("elgamal/blinded", 4, 2),
        ("elgamal/blinded", 31, 1),
        ("elgamal/replace", 3, 0),
        ("elgamal/printed", 5, 0),
    ],
)
def test_what_was_planned_is_recovered_exactly(
    protocol: str, silos: int, collusion: int, epsilon: float
) -> None:
    plan = plan_union(protocol, epsilon, silos, collusion)
    found = union_losses(protocol, plan.channel, silos)
    assert found == plan.losses
    assert found[0] == plan.views[0].epsilon


def test_the_paper_s_protocols_hold_against_no_silo() -> None:
    plan = plan_union("elgamal/replace", 1.0, 3, 0)
    assert list(union_losses("elgamal/replace", plan.channel, 3).values())[1:] == [math.inf] * 2


@pytest.mark.parametrize(
    ("protocol", "channel", "silos"),
    [
        ("clear", Channel("3/4", "1/4"), 4),  # no union was made
        ("masked", Channel("3/4", "1/4"), 4),  # 1 − p01/p11 = 2/3 is no fourth power
        ("masked", Channel("3/5", "1/5"), 1),  # 1/(1 − p11) is no integer, and one silo no union
        ("masked", Channel(1, 0), 4),  # no noise at all
        ("elgamal/replace", Channel(1, 0), 3),
        ("elgamal/printed", Channel(1, 0), 3),
        ("elgamal/blinded", Channel("3/4", "1/8"), 2),  # not symmetric
        ("elgamal/blinded", Channel("3/4", "1/4"), 2),  # 1 − 2·p01 = 1/2 is no square
        ("masked", Channel("3/4", "1/4"), 10**12),  # a file may say anything
        ("masked", Channel("3/4", "1/4"), "4"),
        ("masked", Channel("3/4", "1/4"), True),
    ],
)
def test_a_channel_that_no_union_has_tells_nothing(
    protocol: str, channel: Channel, silos: int
) -> None:
    assert union_losses(protocol, channel, silos) == {}


def test_roots_are_exact() -> None:
    b = Fraction(12345678901234567, 2**64)
    channel = Channel(Fraction(20, 21), Fraction(20, 21) * (1 - (1 - b) ** 7))
    near = Channel(channel.p11, channel.p01 + Fraction(1, 2**500))
    assert len(union_losses("masked", channel, 7)) == 7
    assert union_losses("masked", near, 7) == {}
