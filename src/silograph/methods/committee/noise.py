"""The noise of the committee's union: one coin per pair that nobody knows, and what it costs.

What
    The committee XORs a coin onto every union bit before it is opened. The coin is one with
    probability p = k/2^places, exactly. So the release is symmetric randomized response on the
    union, whatever the number of silos: the optimum for one bit at a given epsilon.
Neighbouring
    One edge is added or removed in every silo that holds it (for a view with colluding parties: in
    the honest ones).
Guarantee
    Anyone who sees what is opened sees y = x XOR coin, so the loss is ln((1−p)/p), for every holder
    set. The coordinator together with one member sees no more than that, even if both cheat. Two
    members that pool what they hold have the bits of every silo: their loss is infinite. If the
    coordinator is a member, the promise is against any one party.
Preconditions
    k is rounded up, so that the loss is certified. Of the four members, at most one is dishonest.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import count

from silograph.dp.channel import Channel
from silograph.dp.loss import View, check_epsilon, check_parties, log_upper, ratio_within
from silograph.errors import ArgumentError

__all__ = ["CommitteeNoise"]

#: How far the variance may be above the optimum: the standard deviation is within 1 %. Every
#: further place costs a gate, and 1.5 bits that each member sends for a pair.
_SLACK = Fraction(102, 100)
_EXACT = Context(prec=80)


@dataclass(frozen=True)
class CommitteeNoise:
    """The coin of one committee union.

    >>> noise = CommitteeNoise.choose(1.0, silos=4, collusion=1)
    >>> noise.numerator, noise.places
    (69, 8)
    >>> noise.epsilon(1) <= 1.0, noise.epsilon(2)
    (True, inf)
    """

    numerator: int
    places: int
    silos: int
    collusion: int
    #: Whether the coordinator is one of the four members.
    inside: bool = False

    @classmethod
    def choose(
        cls, epsilon: float, silos: int, collusion: int, *, inside: bool = False
    ) -> "CommitteeNoise":
        """The coin with the fewest places whose standard deviation is within 1 % of the optimum."""
        epsilon = check_epsilon(epsilon)
        check_parties(silos, collusion)
        if collusion > 1:
            raise ArgumentError(
                "two members of a committee see every edge together: collusion is at most 1; "
                "protocol masked holds against more"
            )
        if inside and collusion:
            raise ArgumentError(
                "a committee with the coordinator in it holds against any one party: collusion is 0"
            )
        return cls(*_coin(epsilon), silos, collusion, inside)

    @property
    def flip(self) -> Fraction:
        """The probability of the coin."""
        return Fraction(self.numerator, 2**self.places)

    @property
    def channel(self) -> Channel:
        """p11 = 1−p, p01 = p."""
        return Channel(1 - self.flip, self.flip)

    def epsilon(self, together: int) -> float:
        """The certified loss against the coordinator with this many other parties."""
        if together > (0 if self.inside else 1):
            return math.inf
        return log_upper((1 - self.flip) / self.flip)

    @property
    def losses(self) -> dict[int, float]:
        """The loss against the coordinator with t silos, for t = 0 … m−1."""
        return {t: self.epsilon(t) for t in range(self.silos)}

    @property
    def views(self) -> tuple[View, ...]:
        """The privacy loss against each view, claimed or not."""
        loss = self.epsilon(0)
        one = self.epsilon(1)
        return (
            View("coordinator", loss),
            View("coordinator + 1 member", one, claimed=not self.inside),
            View("1 member + release", loss),
            View("2 members", math.inf, claimed=False),
        )


@lru_cache(maxsize=64)
def _coin(epsilon: float) -> tuple[int, int]:
    """The numerator and the places of the coin."""
    optimum = 1 / (1 + _EXACT.exp(Decimal(epsilon)))
    best = _variance(Fraction(optimum))
    for places in count(1):
        numerator = math.ceil(Fraction(optimum) * 2**places)
        # The optimum was rounded: one step decides whether the loss is certainly small enough.
        while not ratio_within(Fraction(2**places - numerator, numerator), epsilon):
            numerator += 1
        share = Fraction(numerator, 2**places)
        if 2 * share < 1 and _variance(share) <= _SLACK * best:
            return numerator, places
    raise AssertionError  # pragma: no cover - count has no end


def _variance(p: Fraction) -> Fraction:
    """p(1−p)/(1−2p)²."""
    return p * (1 - p) / (1 - 2 * p) ** 2
