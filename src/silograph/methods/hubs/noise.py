"""The noise of a hub search: its scale, and the loss of the degree sums against each view.

What
    For every node each silo contributes its own degree plus a **share** of the noise: a Pólya
    difference of shape 1/h (:mod:`silograph.dp.laplace`), where h = m − t. Only the sum over all m
    silos is opened. Any h shares are one discrete Laplace variable of scale 2m/ε; all m shares are
    m/h of one.
Neighbouring
    One edge is added or removed in every silo that holds it (for a view with colluding silos: in
    the honest ones).
Guarantee
    An edge uv with k honest holders changes two of the sums, those of u and v, by k each. The noise
    of different nodes is independent, so its loss is twice the loss of one number that changes by
    k. Colluding silos know their own degrees and shares, so they and the coordinator know the sums
    of the other m − t′ silos, whose shares have shape (m−t′)/h; and k is at most m − t′. The loss
    of a number grows with its change, so k = m − t′ is the worst.

    t′ ≤ t: the shape is at least 1, and the loss is 2(m−t′)/scale ≤ ε, exactly: the noise is a
    discrete Laplace variable plus something independent of it.

    t′ > t: the shape is below 1, and the loss is 2·ln P(0)/P(m−t′), where P is the law of the sum
    of m − t′ shares. It is finite, and rounded up (of many silos at a small ε, by more than the
    last place); it is listed and charged, but not claimed.

    Whatever is read from the sums, such as the identifiers of the largest, costs nothing more.
    δ is 0. Sums modulo 2^64 are a function of the sums.
Holders
    An edge counts once for each holder. Telling k holders from k′ is a change by |k − k′|, which
    costs no more than telling the edge from none; which silos they are is not in the sums.
Preconditions
    Silos follow the protocol and draw their shares independently. The scale is rounded **up** to a
    fraction that the sampler draws exactly.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from silograph.dp.laplace import NoiseLaw, Share, scale_for
from silograph.dp.loss import View, check_epsilon, check_parties, union_views

__all__ = ["ENDS", "HubNoise"]

#: An edge has two ends, and changes the degrees of both.
ENDS = 2
# The work for the losses of all coalitions together: parties judge a study before they run it.
_STEPS = 120_000


@dataclass(frozen=True)
class HubNoise:
    """The noise of one hub search.

    >>> noise = HubNoise.choose(0.25, silos=4, collusion=1)
    >>> noise.scale, noise.law.shape
    (Fraction(32, 1), Fraction(4, 3))
    >>> for view in noise.views: print(view)
    coordinator: ε = 0.25
    coordinator + 1 silo: ε = 0.1875
    1 silo + release: ε = 0.1875
    """

    scale: Fraction
    silos: int
    collusion: int

    def __post_init__(self) -> None:
        check_parties(self.silos, self.collusion)

    @classmethod
    def choose(cls, epsilon: float, silos: int, collusion: int) -> "HubNoise":
        """The least noise that costs at most epsilon: the coordinator's own view is the worst."""
        epsilon = check_epsilon(epsilon)
        check_parties(silos, collusion)
        return cls(scale_for(ENDS * silos, epsilon), silos, collusion)

    @property
    def shares(self) -> int:
        """How many shares make one whole noise: as many as there are honest silos at least."""
        return self.silos - self.collusion

    @property
    def share(self) -> Share:
        """What every silo draws."""
        return Share(self.scale.numerator, self.scale.denominator, self.shares)

    @cached_property
    def law(self) -> NoiseLaw:
        """The law of the noise of one sum: the shares of all silos together."""
        return NoiseLaw(self.scale, self.shares, self.silos)

    def epsilon(self, honest: int) -> float:
        """The certified loss against anyone who knows the sums of this many honest silos.

        Any of these silos may hold the edge. Twice a float is exact.
        """
        return ENDS * self.law.loss(honest, honest, _STEPS // self.silos)

    @cached_property
    def losses(self) -> dict[int, float]:
        """The certified epsilon against the coordinator with t silos, for t = 0 … m−1."""
        return {t: self.epsilon(self.silos - t) for t in range(self.silos)}

    @property
    def views(self) -> tuple[View, ...]:
        """The privacy loss against each view, claimed or not."""
        return union_views(self.silos, self.collusion, self.epsilon)
