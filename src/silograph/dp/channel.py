"""The pair channel, which describes the noise of a release completely.

What
    For each pair a release shows y = 1 with probability p11 if the union holds the pair, and with
    probability p01 if it does not, independently over pairs.
Neighbouring
    One edge is added or removed in every silo that holds it: one union bit changes.
Guarantee
    The loss against anyone who sees only y is at most ``epsilon``, the larger of ln(p11/p01) and
    ln((1−p01)/(1−p11)). It is computed from the exact probabilities that the samplers use, and
    rounded up.
Reference
    S. L. Warner, Randomized response, JASA 60 (1965).
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

from silograph.dp.loss import check_epsilon, least_share, log_upper, ratio_within, shown_loss
from silograph.errors import ChannelError

__all__ = ["Channel", "Weights", "limbs"]


# --- Exact fractions in the form that the Rust samplers take --------------------------------------


def limbs(p: Fraction) -> tuple[bytes, bytes]:
    """Numerator and denominator in little-endian 64-bit limbs.

    >>> limbs(Fraction(1, 3)) == (b"\\1" + bytes(7), b"\\3" + bytes(7))
    True
    """
    width = -(-p.denominator.bit_length() // 64) * 8
    return p.numerator.to_bytes(width, "little"), p.denominator.to_bytes(width, "little")


# --- The channel ----------------------------------------------------------------------------------

# The limit of the samplers (crates/core/src/dp/bernoulli.rs).
_LARGEST_DENOMINATOR = 2**16000
# The smallest p11 − p01. Below it a pair's weight is more than 10^30, and a product of eight
# weights, as in the error of 4-cycles, comes near the end of a float's range.
_LEAST_G = Fraction(1, 2**100)


@dataclass(frozen=True)
class Weights:
    """The weights that make noisy bits unbiased: a(y) = beta + gamma·y, so that E[a(y)] = x.

    ``v0`` and ``v1`` are the variances of a(y) on non-edges and on edges; the variance of any
    pair is v0 + delta·x.
    """

    alpha: Fraction
    beta: Fraction
    v0: Fraction
    v1: Fraction

    @property
    def gamma(self) -> Fraction:
        return self.alpha - self.beta

    @property
    def delta(self) -> Fraction:
        return self.v1 - self.v0

    def spread(self, y: int) -> Fraction:
        """The unbiased estimate of a pair's variance from its own noisy bit: v0 + delta·a(y)."""
        return self.v0 + self.delta * (self.alpha if y else self.beta)


@dataclass(frozen=True, init=False, repr=False)
class Channel:
    """The probabilities of a noisy one, given a true one (p11) and a true zero (p01).

    Parameters
    ----------
    p11
        The probability that an edge is shown.
    p01
        The probability that a non-edge is shown; less than p11.

    Notes
    -----
    Numbers are kept as exact fractions. A float stands for its exact value; a string such as
    ``"20/21"`` or ``"0.05"`` for the number that is written.

    Examples
    --------
    >>> channel = Channel("20/21", "1/21")
    >>> channel
    Channel(p11=0.952381, p01=0.047619, epsilon=2.99574)
    >>> channel.alpha, channel.beta
    (Fraction(20, 19), Fraction(-1, 19))
    """

    p11: Fraction
    p01: Fraction

    def __init__(
        self, p11: Fraction | Decimal | float | str, p01: Fraction | Decimal | float | str
    ) -> None:
        object.__setattr__(self, "p11", _probability("p11", p11))
        object.__setattr__(self, "p01", _probability("p01", p01))
        if self.p01 >= self.p11:
            raise ChannelError(
                f"p01 = {float(self.p01):.6g} must be less than p11 = {float(self.p11):.6g}: "
                "otherwise a noisy one says nothing about a true one"
            )
        if self.g < _LEAST_G:
            raise ChannelError(
                "p11 − p01 is less than 2^-100: nothing but noise would come through"
            )

    @classmethod
    def symmetric(cls, epsilon: float) -> "Channel":
        """Randomized response: p01 = 1 − p11 = 1/(1+e^ε), rounded **up** to k/2^64.

        The certified epsilon is therefore at most the requested one.

        Parameters
        ----------
        epsilon
            The largest allowed loss.

        Returns
        -------
        Channel
            The channel.

        Raises
        ------
        ChannelError
            If epsilon is too small.

        Examples
        --------
        >>> Channel.symmetric(3.0)
        Channel(p11=0.952574, p01=0.0474259, epsilon=3)
        """
        epsilon = check_epsilon(epsilon)
        p = least_share(lambda p: ratio_within((1 - p) / p, epsilon), Fraction(1, 2))
        if p is None:
            raise ChannelError(f"epsilon {epsilon:g} is too small: the answer would be all noise")
        return cls(1 - p, p)

    @property
    def g(self) -> Fraction:
        """p11 − p01, the share of the truth that remains."""
        return self.p11 - self.p01

    @property
    def alpha(self) -> Fraction:
        """a(1) = (1 − p01)/g, the weight of a noisy one."""
        return (1 - self.p01) / self.g

    @property
    def beta(self) -> Fraction:
        """a(0) = −p01/g, the weight of a noisy zero."""
        return -self.p01 / self.g

    @cached_property
    def weights(self) -> Weights:
        """alpha, beta and the variances v0 = p01(1−p01)/g², v1 = p11(1−p11)/g²."""
        v0, v1 = (p * (1 - p) / self.g**2 for p in (self.p01, self.p11))
        return Weights(self.alpha, self.beta, v0, v1)

    @cached_property
    def epsilon(self) -> float:
        """The certified loss against anyone who sees only y; inf if a bit is certain."""
        if self.p01 == 0 or self.p11 == 1:
            return float("inf")
        return log_upper(max(self.p11 / self.p01, (1 - self.p01) / (1 - self.p11)))

    def __repr__(self) -> str:
        return (
            f"Channel(p11={float(self.p11):.6g}, p01={float(self.p01):.6g}, "
            f"epsilon={shown_loss(self.epsilon)})"
        )


def _probability(name: str, given: Fraction | Decimal | float | str) -> Fraction:
    try:
        value = Fraction(given)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise ChannelError(f"{name} must be a number from 0 to 1, not {given!r}") from None
    if not 0 <= value <= 1:
        raise ChannelError(f"{name} must be a number from 0 to 1, not {given!r}")
    if value.denominator > _LARGEST_DENOMINATOR:
        raise ChannelError(f"{name} needs a denominator of more than 16,000 bits: round it first")
    return value
