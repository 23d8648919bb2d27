"""The noise of the masked union: how (q, b) is chosen, and the loss against each view.

What
    For each pair a silo contributes a uniform element of Z_q if it holds the pair. Otherwise it
    contributes a uniform element with probability b, and 0 with probability 1 − b. The sum S over
    all silos is uniform if any silo contributed a uniform element; y = [S ≠ 0].
Neighbouring
    One edge is added or removed in every silo that holds it (for a view with colluding silos: in
    the honest ones).
Guarantee
    Anyone who sees the sum of h honest silos sees 0 with probability 1/q if any of them holds the
    pair, and with probability 1 − B if none does, B = (1−1/q)(1−(1−b)^h). All other elements are
    equally likely. The loss is at most ε(h) = ln max((1−1/q)/B, (1−B)·q), for every holder set. The
    coordinator with t silos knows the sum of the other h = m−t silos; t silos that see the
    published y know no more than that.
Preconditions
    Silos follow the protocol. b is rounded **up** to k/2^64 and sampled exactly.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from silograph.dp.channel import Channel
from silograph.dp.loss import (
    View,
    check_epsilon,
    check_parties,
    least_share,
    log_upper,
    ratio_within,
    union_views,
)
from silograph.errors import ArgumentError

__all__ = ["MaskedNoise"]


_LARGEST_Q = 1 << 16


@dataclass(frozen=True)
class MaskedNoise:
    """The parameters of one masked union.

    >>> noise = MaskedNoise.choose(3.0, silos=4, collusion=0)
    >>> noise.q, round(float(noise.channel.p01), 4)
    (21, 0.0474)
    >>> noise.epsilon(honest=4) <= 3.0 < noise.epsilon(honest=3)
    True
    """

    q: int
    b: Fraction
    silos: int
    collusion: int

    @classmethod
    def choose(cls, epsilon: float, silos: int, collusion: int) -> "MaskedNoise":
        """The (q, b) with the smallest variance on non-edges, subject to ε(m − t) ≤ epsilon."""
        epsilon = check_epsilon(epsilon)
        check_parties(silos, collusion)
        honest, growth = silos - collusion, math.exp(min(epsilon, 700.0))
        # Below e^ε a larger q always helps; far above it zeros become too rare. The best q is near.
        around = min(int(growth), _LARGEST_Q)
        last = min(2 * around + 8, _LARGEST_Q)
        candidates = {
            *range(2, min(64, last) + 1),
            *range(max(2, around - 4), min(last, around + 64) + 1),
        }
        best = min(candidates, key=lambda q: _variance(q, _least_coin(q, growth, honest), silos))
        fits = lambda b: ratio_within(_worst_ratio(best, b, honest), epsilon)  # noqa: E731
        b = least_share(fits, Fraction(1))
        if b is None:
            raise ArgumentError(f"epsilon {epsilon:g} is too small: the answer would be all noise")
        return cls(best, b, silos, collusion)

    @property
    def channel(self) -> Channel:
        """p11 = 1−1/q, p01 = (1−1/q)(1−(1−b)^m)."""
        shown = 1 - Fraction(1, self.q)
        return Channel(shown, shown * (1 - (1 - self.b) ** self.silos))

    def epsilon(self, honest: int) -> float:
        """The certified loss against anyone who knows the sum of this many honest contributions."""
        return log_upper(_worst_ratio(self.q, self.b, honest))

    @property
    def views(self) -> tuple[View, ...]:
        """The privacy loss against each view, claimed or not.

        With t = 0 a silo that sees the release learns more than ε allows. This view is listed, but
        not claimed.
        """
        return union_views(self.silos, self.collusion, self.epsilon)


def _worst_ratio(q: int, b: Fraction, honest: int) -> Fraction:
    chosen = 1 - (1 - b) ** honest
    shown = (1 - Fraction(1, q)) * chosen
    return max(1 / chosen, (1 - shown) * q)


def _least_coin(q: int, growth: float, honest: int) -> float:
    """The smallest b, as a float, with 1−(1−b)^h ≥ e^−ε and ≥ (1−e^ε/q)/(1−1/q)."""
    chosen = max(1 / growth, (1 - growth / q) / (1 - 1 / q))
    return -math.expm1(math.log1p(-chosen) / honest) if chosen < 1 else 1.0


def _variance(q: int, b: float, silos: int) -> float:
    """v0 = p01(1−p01)/g²."""
    shown = 1 - 1 / q
    p01 = shown * -math.expm1(silos * math.log1p(-b)) if b < 1 else shown
    gap = shown - p01
    return p01 * (1 - p01) / gap**2 if gap > 0 else math.inf
