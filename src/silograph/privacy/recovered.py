"""The noise of a union, recovered from the channel of its release.

What
    A release carries its channel and not the parameters of its protocol. They follow from it
    exactly: of a masked union q = 1/(1 − p11) and (1−b)^m = 1 − p01/p11, of a blinded one
    (1−2b)^m = 1 − 2·p01, with b a multiple of 2^-64. So the loss against any number of silos can
    be told of a release years later, by anyone who has its file.
"""

from fractions import Fraction

from silograph.errors import ArgumentError
from silograph.privacy.channel import Channel
from silograph.privacy.elgamal import ElgamalNoise
from silograph.privacy.masked import MaskedNoise, check_parties

__all__ = ["union_losses"]


def union_losses(protocol: str, channel: Channel, silos: int) -> dict[int, float]:
    """The certified epsilon against the coordinator with t silos, for t = 0 … m−1.

    Empty where there was no union (a draw), or where no union has this channel.

    >>> noise = MaskedNoise.choose(3.0, silos=4, collusion=1)
    >>> found = union_losses("masked", noise.channel, 4)
    >>> found == {t: noise.epsilon(4 - t) for t in range(4)}
    True
    """
    try:
        check_parties(silos, 0)  # a release file may say anything of where it comes from
    except ArgumentError:
        return {}
    noise = _noise(protocol, channel, silos)
    return {} if noise is None else {t: noise.epsilon(silos - t) for t in range(silos)}


def _noise(protocol: str, channel: Channel, silos: int) -> MaskedNoise | ElgamalNoise | None:
    p11, p01 = channel.p11, channel.p01
    match protocol:
        case "masked" if 0 < p11 < 1 and (1 / (1 - p11)).denominator == 1:
            left = _root(1 - p01 / p11, silos)
            return None if left is None else MaskedNoise(int(1 / (1 - p11)), 1 - left, silos, 0)
        case "elgamal/blinded" if p11 == 1 - p01:
            left = _root(1 - 2 * p01, silos)
            return None if left is None else ElgamalNoise("blinded", (1 - left) / 2, silos, 0)
        case "elgamal/replace" if 0 < p01 == 1 - p11:
            return ElgamalNoise("replace", p01, silos, 0)
        case "elgamal/printed" if 0 < p01 == 1 - p11:
            return ElgamalNoise("printed", p01, silos, 0)
    return None


def _root(value: Fraction, power: int) -> Fraction | None:
    """The exact root of a fraction between 0 and 1, or None where there is none."""
    if not 0 < value < 1:
        return None
    above, below = (_whole_root(part, power) for part in value.as_integer_ratio())
    return None if above is None or below is None else Fraction(above, below)


def _whole_root(value: int, power: int) -> int | None:
    low, high = 0, 1 << (value.bit_length() // power + 1)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if middle**power < value else (low, middle)
    return low if low**power == value else None
