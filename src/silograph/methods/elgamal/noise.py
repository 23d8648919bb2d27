"""The noise of the ElGamal unions, and the loss of each variant against each view.

``printed`` (Algorithm 3, lines 5–15)
    Every silo flips its own bit with its own coin, and the results are OR-ed: a pair with k holders
    shows 0 with probability p^k(1−p)^(m−k). The true loss is m·ε, not ε. This variant exists for
    the reproduction, and its release is calibrated as the paper prints it.
``replace`` (the paper's prose)
    Silo 1 encrypts RR of its bits; a later holder overwrites with Enc(RR(1)). Exactly one RR
    reaches the output: the loss is ε against the coordinator alone. Silo 1 knows the noise on
    zeros, and co-holders know their own overwrites, so the loss against silos is unbounded.
``blinded``
    Every silo flips the encrypted exact union with its own coin b. Flips compose,
    1−2p = (1−2b)^h, so the coordinator with t silos faces the flips of the other h = m−t.

Neighbouring, for all variants: one edge is added or removed in every silo that holds it (for a view
with colluding silos: in the honest ones).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

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

__all__ = ["ElgamalNoise", "Variant"]

Variant = Literal["printed", "replace", "blinded"]


@dataclass(frozen=True)
class ElgamalNoise:
    """The coin of one ElGamal union: p of randomized response, or b of every silo's flip.

    >>> ElgamalNoise.choose("blinded", 3.0, silos=4, collusion=1).epsilon(honest=3) <= 3.0
    True
    """

    variant: Variant
    coin: Fraction
    silos: int
    collusion: int

    @classmethod
    def choose(cls, variant: Variant, epsilon: float, silos: int, collusion: int) -> "ElgamalNoise":
        """The smallest noise that the variant's claim allows."""
        epsilon = check_epsilon(epsilon)
        check_parties(silos, collusion)
        if variant not in ("printed", "replace", "blinded"):
            raise ArgumentError(f"variant is {variant!r}; it must be printed, replace or blinded")
        if variant != "blinded":
            if collusion:
                raise ArgumentError(f"{variant} holds against no silo: it needs collusion=0")
            return cls(variant, Channel.symmetric(epsilon).p01, silos, collusion)
        return cls(variant, _least_flip(epsilon, silos - collusion), silos, collusion)

    def flipped(self, honest: int) -> Fraction:
        """``blinded``: the probability that the coins of this many silos together flip a bit."""
        return (1 - (1 - 2 * self.coin) ** honest) / 2

    def epsilon(self, honest: int) -> float:
        """The certified loss against the coordinator with all but this many silos."""
        if self.variant == "blinded":
            p = self.flipped(honest)
            return log_upper((1 - p) / p)
        if honest < self.silos:
            return math.inf
        p = self.coin
        ratio = (1 - p) / p
        return log_upper(ratio**self.silos if self.variant == "printed" else ratio)

    @property
    def channel(self) -> Channel:
        """The channel that calibrates the release; for ``printed``, as the paper prints it."""
        p = self.flipped(self.silos) if self.variant == "blinded" else self.coin
        return Channel(1 - p, p)

    @property
    def views(self) -> tuple[View, ...]:
        """The privacy loss against each view, claimed or not."""
        return union_views(self.silos, self.collusion, self.epsilon)


def _least_flip(epsilon: float, honest: int) -> Fraction:
    """The smallest b = k/2^64 with (1−p)/p ≤ e^ε for 1−2p = (1−2b)^h."""

    def fits(b: Fraction) -> bool:
        p = (1 - (1 - 2 * b) ** honest) / 2
        return ratio_within((1 - p) / p, epsilon)

    flip = least_share(fits, Fraction(1, 2))
    if flip is None:
        raise ArgumentError(f"epsilon {epsilon:g} is too small: the answer would be all noise")
    return flip
