"""The noise of feat+: a release, a partition of the nodes, local answers, and their losses.

What
    Three steps share epsilon. At ε1 the union is released. At ε2 every silo sends its degree at
    every node with discrete Laplace noise, and each node gets one owner from them. At ε3 each silo
    sends one number with discrete Laplace noise, computed from its own edges and the release.
Neighbouring
    One edge is added or removed in every silo that holds it (for a view with colluding silos: in
    the honest ones).
Guarantee
    Against the coordinator with t silos the loss is at most

        ε_union(t) + 2·(m−t)/b2 + D/b3,

    where b2 and b3 are the scales of the two noises and D is the joint sensitivity of all reports.
    *Partition*: an edge with k honest holders changes two degrees by one in each of them, 2k in L1,
    and k ≤ m−t. With b2 = 2m/ε2 that is k·ε2/m. (The paper's Algorithm 4 prints b2 = m/ε2, which
    costs 2·ε2.) *Reports*: for **every** release and **every** owner map an edge changes the
    reports of all honest silos together by at most Δ (below). So it does not matter where the
    release came from or what was shown, provided that all silos see the same. The steps are
    composed in order, each for fixed outcomes of those before it, so the losses add.
Joint sensitivity
    Let d = max(|1−α|, |1−β|) and ω = max(1, |α|, |β|). ``paper``, triangles: a triple belongs only
    to the owner of its smallest node; an edge lies in n−2 triples, in each of which one weight
    moves between 1 and a(y) and two others are at most ω: Δ = d·ω²·(n−2). ``paper``, k-stars: a
    star belongs to the owner of its centre; an edge lies in C(n−2,k−1) stars at each of its two
    ends: Δ = 2·d·C(n−2,k−1)·ω^(k−1). ``gradient``: a pair belongs to the owner of its smaller node,
    who adds (1−a)·h with |h| ≤ κ if it holds the pair; h depends only on the release: Δ = d·κ.
Rounding
    Reports are integers in units of Δ/2^30. Each ``gradient`` term is rounded separately, and is at
    most 2^30 before and after. A ``paper`` report is rounded as a whole, which can change the
    difference of two reports by at most one unit per silo: D = 2^30 + m.
Preconditions
    Silos follow the protocol and draw their noise independently. Scales are rounded **up**.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from silograph.dp.channel import Channel
from silograph.dp.laplace import round_up, scale_for
from silograph.dp.loss import (
    LARGEST_EPSILON,
    PUBLISHED,
    View,
    check_epsilon,
    check_parties,
    float_below,
)
from silograph.errors import ArgumentError

__all__ = [
    "STEPS",
    "FeatPlusNoise",
    "Local",
    "Split",
    "gradient_sensitivity",
    "largest_change",
    "paper_sensitivity",
]

#: The number of units in the joint sensitivity of all reports.
STEPS = 2**30
#: The shares of the release, the partition and the local answers in the paper's experiments.
PAPER_SHARES = (Fraction(45, 100), Fraction(10, 100), Fraction(45, 100))

Local = Literal["gradient", "paper"]


@dataclass(frozen=True)
class Split:
    """How epsilon is split: ε1 for the release, ε2 for the partition, ε3 for the local answers.

    The parts are exact, and their sum is epsilon. A partition is needed only for local answers. So
    ε2 and ε3 are both positive, or both 0 (all of epsilon goes to the release, as in ``feat``).

    >>> split = Split.of("paper", 2.0)
    >>> [str(e) for e in (split.release, split.partition, split.local)]
    ['9/10', '1/5', '9/10']
    >>> Split.of((1, 0, 0), 2.0).answers_locally
    False
    """

    release: Fraction
    partition: Fraction
    local: Fraction

    def __post_init__(self) -> None:
        if self.release <= 0 or min(self.partition, self.local) < 0:
            raise ArgumentError("the release needs a part of a split, and no part is negative")
        if (self.partition > 0) != (self.local > 0):
            raise ArgumentError(
                "a split must give to both the partition and the local answers, or to neither"
            )

    @classmethod
    def of(cls, given: "Split | str | tuple[float, float, float]", epsilon: float) -> "Split":
        """``"paper"``, or three numbers that add up to 1 or to epsilon; scaled to be exact."""
        whole = Fraction(check_epsilon(epsilon))
        shares: tuple[Fraction, ...]
        if isinstance(given, Split):
            shares = (given.release, given.partition, given.local)
        elif isinstance(given, str):
            if given != "paper":
                raise ArgumentError(f"split is {given!r}; it must be paper, auto or three numbers")
            shares = PAPER_SHARES
        else:
            shares = _three(given)
        total = sum(shares, Fraction(0))
        if all(abs(total / due - 1) > Fraction(1, 10**9) for due in (Fraction(1), whole)):
            raise ArgumentError(
                f"a split of epsilon {epsilon:g} adds up to it, or to 1; this one to "
                f"{float(total):g}"
            )
        return cls(*(whole * share / total for share in shares))

    @property
    def answers_locally(self) -> bool:
        """Whether there is a partition, and a local answer from each silo."""
        return self.local > 0

    @property
    def release_epsilon(self) -> float:
        """ε1 as a float, rounded down."""
        return float_below(self.release)


def _three(given: object) -> tuple[Fraction, ...]:
    try:
        # Read a float as the decimal number that it was written as.
        shares = tuple(Fraction(repr(float(x))) for x in given)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        shares = ()
    if len(shares) != 3 or max(shares) > LARGEST_EPSILON:
        raise ArgumentError(f"split is {given!r}; it must be paper, auto or three numbers")
    return shares


@dataclass(frozen=True)
class FeatPlusNoise:
    """The two Laplace noises of one run, and the loss of the whole run.

    >>> noise = FeatPlusNoise(Split.of("paper", 3.0), silos=4, collusion=1, local="gradient")
    >>> noise.partition_scale, noise.partition_loss(honest=1), noise.local_loss
    (Fraction(80, 3), Fraction(3, 40), Fraction(27, 20))
    """

    split: Split
    silos: int
    collusion: int
    local: Local
    #: Whether the partition's noise is as Algorithm 4 prints it, which costs twice its ε2.
    printed: bool = False

    def __post_init__(self) -> None:
        check_parties(self.silos, self.collusion)
        if self.local not in ("gradient", "paper"):
            raise ArgumentError(f"local is {self.local!r}; it must be gradient or paper")

    @cached_property
    def partition_scale(self) -> Fraction:
        """The scale of a degree's noise: 2m/ε2, rounded up."""
        return scale_for((1 if self.printed else 2) * self.silos, self.split.partition)

    @property
    def local_steps(self) -> int:
        """The joint sensitivity of all reports, in units."""
        return STEPS if self.local == "gradient" else STEPS + self.silos

    @cached_property
    def local_scale(self) -> Fraction:
        """The scale of a report's noise, in units: D/ε3, rounded up."""
        return scale_for(self.local_steps, self.split.local)

    def partition_loss(self, honest: int) -> Fraction:
        """The loss that the degrees cause for an edge with this many honest holders."""
        return 2 * honest / self.partition_scale if self.split.answers_locally else Fraction(0)

    @property
    def local_loss(self) -> Fraction:
        """The loss that the reports cause for an edge, whoever holds it."""
        return self.local_steps / self.local_scale if self.split.answers_locally else Fraction(0)

    def losses(self, union: Mapping[int, float]) -> dict[int, float]:
        """The certified loss against the coordinator with t silos, for every t in ``union``."""
        rest = {t: self.partition_loss(self.silos - t) + self.local_loss for t in union}
        return {
            t: math.inf if math.isinf(loss) else round_up(Fraction(loss) + rest[t])
            for t, loss in union.items()
        }

    def views(self, losses: Mapping[int, float], *, drawn: bool) -> tuple[View, ...]:
        """The privacy loss against each view.

        If the release was drawn in the clear, only the published result is listed.
        """
        if drawn:
            return (View(PUBLISHED, losses[0]),)
        found = [View("coordinator", losses[0])]
        t = self.collusion
        if t:
            group = f"{t} silo{'s' if t > 1 else ''}"
            # Anyone who sees only what the coordinator shows or publishes learns less than it does.
            names = (f"coordinator + {group}", f"{group} + release")
            found += [View(name, losses[t]) for name in names]
        return tuple(found)


def largest_change(channel: Channel) -> Fraction:
    """d = max(|1−α|, |1−β|): the change of a pair's weight when its holder replaces it by 1."""
    return max(abs(1 - channel.alpha), abs(1 - channel.beta))


def paper_sensitivity(query: str, k: int | None, channel: Channel, n: int) -> Fraction:
    """Δ of the ``paper`` form; see the module's description.

    >>> paper_sensitivity("triangles", None, Channel("3/4", "1/4"), 5)
    Fraction(81, 8)
    """
    omega = max(Fraction(1), abs(channel.alpha), abs(channel.beta))
    if query == "triangles" and n > 2:
        return largest_change(channel) * omega**2 * (n - 2)
    if query == "kstars" and k is not None:
        stars = math.comb(n - 2, k - 1)
        return 2 * largest_change(channel) * stars * omega ** (k - 1)
    raise ArgumentError(f"local='paper' does not answer {query} of {n} nodes")


def gradient_sensitivity(channel: Channel, bound: float) -> Fraction:
    """Δ of the ``gradient`` form with clipping at ``bound``; see the module's description."""
    return largest_change(channel) * Fraction(bound)
