"""The noise of the baseline: every silo reports for itself, with its share of the budget.

What
    The paper's Algorithm 1: for each pair, each of the m silos reports its own bit through
    randomized response at ε/m. The coordinator receives all m reports.
Neighbouring
    One edge is added or removed in every silo that holds it (for a view with colluding silos: in
    the honest ones).
Guarantee
    Let r = max(p11/p01, (1−p01)/(1−p11)) be the worst ratio of one report. Reports are
    independent, so an edge with k honest holders costs exactly k·ln r, and at most h·ln r against
    anyone who sees the reports of h honest silos. The coordinator sees all of them, h = m. If t
    silos collude with it, only m − t reports are new to them, and the loss is (m−t)/m of the whole.
    ``epsilon`` is computed from the exact power r^h, rounded up.
What it does not hide
    The holders of an edge. Telling two holder sets A and B of the same edge apart costs up to
    |A △ B|·ln r. The guarantee above compares each holder set with no holder at all. The reports do
    show, up to this loss, who holds an edge: many ones indicate many holders.
Preconditions
    Silos follow the protocol and draw their noise independently. The probability of a flip is
    rounded **up** to k/2^64 and sampled exactly.
"""

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
)
from silograph.errors import ArgumentError, ChannelError

__all__ = ["BaselineNoise"]


@dataclass(frozen=True)
class BaselineNoise:
    """The channel of one report, and the privacy loss of m such reports.

    >>> noise = BaselineNoise.choose(3.0, silos=4, collusion=1)
    >>> noise.channel
    Channel(p11=0.679179, p01=0.320821, epsilon=0.75)
    >>> for view in noise.views: print(view)
    coordinator: ε = 3
    coordinator + 1 silo: ε = 2.25
    1 silo + reports: ε = 2.25
    """

    channel: Channel
    silos: int
    collusion: int = 0

    def __post_init__(self) -> None:
        check_parties(self.silos, self.collusion)

    @classmethod
    def choose(cls, epsilon: float, silos: int, collusion: int = 0) -> "BaselineNoise":
        """Randomized response at ε/m: the smallest flip probability k/2^64 for which m reports
        together cost at most epsilon.

        The noise does not depend on t, since colluding silos learn nothing from their own reports.
        """
        epsilon = check_epsilon(epsilon)
        check_parties(silos, collusion)
        fits = lambda p: ratio_within(((1 - p) / p) ** silos, epsilon)  # noqa: E731
        p = least_share(fits, Fraction(1, 2))
        if p is None:
            raise ChannelError(f"epsilon {epsilon:g} is too small: the answer would be all noise")
        channel = Channel(1 - p, p)
        return cls(channel, silos, collusion)

    def epsilon(self, honest: int) -> float:
        """The certified loss against anyone who sees the reports of this many honest silos.

        Any of these silos may hold the edge. The loss is infinite if a reported bit is certain.
        """
        if not 1 <= honest <= self.silos:
            raise ArgumentError(f"honest must be from 1 to {self.silos}, not {honest!r}")
        p11, p01 = self.channel.p11, self.channel.p01
        if p01 == 0 or p11 == 1:
            return float("inf")
        return log_upper(max(p11 / p01, (1 - p01) / (1 - p11)) ** honest)

    @property
    def views(self) -> tuple[View, ...]:
        """The privacy loss against each view."""
        found = [View("coordinator", self.epsilon(self.silos))]
        t = self.collusion
        if t:
            group = f"{t} silo{'s' if t > 1 else ''}"
            epsilon = self.epsilon(self.silos - t)
            found += [View(f"coordinator + {group}", epsilon), View(f"{group} + reports", epsilon)]
        return tuple(found)
