"""The noise of the sealed method: scales, bounds, and what the answers cost against whom.

What
    The union is never opened. Silos open the sum of each answer and of all their noise, which is
    integer noise of :mod:`silograph.dp.laplace`: ``shared`` noise in shares of shape 1/h,
    h = m − t, or ``each`` silo's own whole discrete Laplace. An edge changes the number of edges by
    1, the degrees by 1 at two nodes, the 2-stars by d_u + d_v ≤ 2(n−2), and the triangles by the
    common neighbours of its ends, at most min(d_u, d_v) ≤ n−2, with d the degrees without it.
Neighbouring
    One edge is added or removed in every silo that holds it (for a view with colluding silos: in
    the honest ones).
Guarantee, δ = 0
    Answers have scales of their sensitivity over their part of ε, and losses add. Who knows the
    noise of t′ silos faces noise of shape (m−t′)/h: ε for t′ ≤ t, more for more (``losses``).
Guarantee, δ > 0
    The noisy degrees y are opened first. The bound B = max(y) + s, from 1 to n−2, then gives
    triangles the scale B/ε_T and 2-stars 2B/ε_S. All answers together are (ε, δ)-DP. Proof:

    Let G′ lack the edge uv of G, with degrees d in G′, and let ``Bad`` be the y with B below the
    change c of the triangles. For every other y the answers given y have a loss of at most ε_T, and
    y itself one of ε_d; so P(S) ≤ e^ε·P′(S) + P(Bad) for every set S of outcomes, and the same with
    G and G′ exchanged. Since c ≤ min(d_u, d_v), Bad needs d_u + z_u + s < d_u and the same for v:
    two independent noises of −s−1 or less, F(−s−1)² ≤ δ (in G, where both degrees are larger by
    one, even −s−2). For 2-stars c = d_u + d_v, and 2·max(y_u, y_v) ≥ y_u + y_v, so Bad needs
    z_u + z_v < −2s. Where B is n−2 there is no Bad.

    Colluding silos know their own part z^C of every noise, so what they face is, given z^C, a
    mechanism with some δ(z^C), and P(S) ≤ e^ε·P′(S) + E δ(z^C) for sets S that depend on z^C as
    well, for z^C does not depend on the graph. E δ(z^C) is the probability of Bad over all noise: F
    is the law of the **total** noise of one degree, for every view, and ε that of the honest part
    alone. It is an average over the colluders' noise: they must draw it as they should.
Preconditions
    Silos follow the protocol; the coordinator deals honestly and colludes with no silo: together
    with one it sees every edge. Scales are rounded **up** and sampled exactly.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from silograph import _core
from silograph.dp.laplace import NoiseLaw, round_up, scale_for
from silograph.dp.loss import View, check_delta, check_epsilon, check_parties
from silograph.errors import ArgumentError

__all__ = ["FACTORS", "Answer", "BoundedNoise", "Kind", "Noise", "Output", "SealedNoise"]


# --- Scales, bounds and costs ---------------------------------------------------------------------

Answer = Literal["edges", "degrees", "two_stars", "triangles"]
Kind = Literal["shared", "each"]

#: Answers whose sensitivity grows with the degrees.
_COUNTS: tuple[Answer, ...] = ("two_stars", "triangles")
#: Steps of the bounds for all coalitions that are larger than what is claimed.
_MOST_STEPS = 12_000


@dataclass(frozen=True)
class SealedNoise:
    """The noise of one sealed run.

    >>> noise = SealedNoise.choose(1.0, 4039, 4, 1, ["degrees", "triangles"], delta=1e-9)
    >>> noise.scale("degrees"), noise.slacks
    (Fraction(20, 1), {'triangles': 208})
    >>> for view in noise.views: print(view)
    coordinator: ε = 1, δ = 1e-9
    1 silo + answers: ε = 1, δ = 1e-9
    coordinator + 1 silo: ε = ∞ (not claimed)
    """

    nodes: int
    silos: int
    collusion: int
    kind: Kind
    #: The part of epsilon of each answer, in the order in which they are opened.
    budgets: dict[Answer, Fraction]
    delta: float
    #: s of each count, where delta > 0.
    slacks: dict[Answer, int]

    @classmethod
    def choose(
        cls,
        epsilon: float,
        nodes: int,
        silos: int,
        collusion: int,
        answers: Sequence[Answer],
        *,
        delta: float = 0.0,
        degree_share: Fraction | float = Fraction(1, 10),
        kind: Kind = "shared",
    ) -> "SealedNoise":
        """The least noise with ε(m − t) ≤ epsilon.

        ``degree_share`` is the part of epsilon that goes to the degrees (or edges) where counts are
        asked for as well; counts share the rest, and delta, equally. With delta the degrees are
        opened in any case.
        """
        whole = Fraction(check_epsilon(epsilon))
        check_parties(silos, collusion)
        _check(nodes, answers, delta, kind)
        share = Fraction(degree_share)
        if not 0 < share < 1:
            raise ArgumentError(f"degree_share must be between 0 and 1, not {degree_share!r}")
        counts = [answer for answer in _COUNTS if answer in answers]
        budgets: dict[Answer, Fraction] = {}
        if "edges" in answers:
            budgets["edges"] = whole
        elif "degrees" in answers or delta:
            budgets["degrees"] = whole
        if counts:
            budgets = dict.fromkeys(budgets, whole * share)
            rest = (whole - sum(budgets.values())) / len(counts)
            budgets |= dict.fromkeys(counts, rest)
        noise = cls(nodes, silos, collusion, kind, budgets, float(delta), {})
        if not delta:
            return noise
        slacks = {answer: noise._slack(answer, delta / len(counts)) for answer in counts}
        return replace(noise, slacks=slacks)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """What is opened, in this order."""
        return tuple(self.budgets)

    @property
    def shares(self) -> int:
        """How many silos' noises make one discrete Laplace variable."""
        return self.silos - self.collusion if self.kind == "shared" else 1

    def sensitivity(self, answer: Answer, bound: int | None = None) -> int:
        """How much an edge can change an answer in one place, where the smaller of the degrees of
        its ends without it (for 2-stars: their mean) is at most ``bound``."""
        if answer not in _COUNTS:
            return 1
        most = self.nodes - 2 if bound is None else bound
        return most if answer == "triangles" else 2 * most

    def bound(self, answer: Answer, degrees: NDArray[np.int64]) -> int | None:
        """B, which the scale of a count follows from: the largest noisy degree and s, from 1 to
        n−2. None where delta is 0."""
        if answer not in self.slacks:
            return None
        if len(degrees) != self.nodes:
            raise ArgumentError(f"there are {self.nodes} nodes, but {len(degrees)} degrees")
        return min(max(int(degrees.max()) + self.slacks[answer], 1), self.nodes - 2)

    def scale(self, answer: Answer, bound: int | None = None) -> Fraction:
        """The scale of the noise of one answer; of a count with delta, given its bound."""
        if answer not in self.budgets:
            raise ArgumentError(f"{answer} is not among the answers: {', '.join(self.answers)}")
        if (bound is None) != (answer not in self.slacks):
            raise ArgumentError(
                f"a bound is for counts with delta alone, and they need one: {answer}"
            )
        if bound is not None and not 1 <= bound <= self.nodes - 2:
            raise ArgumentError(f"a bound is from 1 to {self.nodes - 2}, not {bound}")
        return scale_for(self._total(answer, bound), self.budgets[answer])

    def law(self, answer: Answer, bound: int | None = None) -> NoiseLaw:
        """The law of the total noise of one answer (of the degrees: of one degree)."""
        return NoiseLaw(self.scale(answer, bound), self.shares, self.silos)

    def epsilon(self, honest: int) -> float:
        """The certified loss of one who sees the answers and knows all noise but that of so many
        silos."""
        losses = (self._loss(answer, honest) for answer in self.answers)
        return round_up(sum(losses, Fraction(0)))

    @cached_property
    def losses(self) -> dict[int, float]:
        """The certified epsilon against t silos that see the answers, for t = 0 … m−1. All with
        the same delta."""
        return {t: self.epsilon(self.silos - t) for t in range(self.silos)}

    @property
    def views(self) -> tuple[View, ...]:
        """Who learns how much, claimed or not.

        The coordinator dealt the randomness: with one silo on its side there is nothing hidden.
        """
        claim = self.epsilon(self.silos - self.collusion)
        group = max(self.collusion, 1)
        silos = self.epsilon(self.silos - group)
        named = f"{group} silo{'s' if group > 1 else ''} + answers"
        return (
            View("coordinator", self.epsilon(self.silos), self.delta),
            View(named, silos, self.delta, claimed=silos <= claim),
            View("coordinator + 1 silo", math.inf, claimed=False),
        )

    def _total(self, answer: Answer, bound: int | None) -> int:
        """The L1 sensitivity: an edge changes two degrees."""
        return self.sensitivity(answer, bound) * (2 if answer == "degrees" else 1)

    def _loss(self, answer: Answer, honest: int) -> Fraction:
        budget = self.budgets[answer]
        if answer in self.slacks:
            # Whatever B is: the loss grows with it where fewer than h are honest.
            law = NoiseLaw(self._total(answer, None) / budget, self.shares, self.silos)
        else:
            law = self.law(answer)
        # All levels and answers share a bounded amount of work: whoever judges a study pays for it.
        steps = _MOST_STEPS // (max(self.shares - 1, 1) * len(self.answers))
        one = Fraction(law.loss(honest, self.sensitivity(answer), steps))
        if honest >= self.shares:
            one = self.sensitivity(answer) / law.scale
        return one * (2 if answer == "degrees" else 1)

    def _slack(self, answer: Answer, delta: float) -> int:
        law = self.law("degrees")
        if answer == "triangles":
            # The square of what is below the root is below delta.
            return law.least_reach(math.nextafter(math.sqrt(delta), 0))
        return -(-law.summed(2).least_reach(delta) // 2)


def _check(nodes: int, answers: Sequence[Answer], delta: float, kind: Kind) -> None:
    if kind not in get_args(Kind):
        raise ArgumentError(f"noise is {kind!r}; it is shared or each")
    unknown = [answer for answer in answers if answer not in get_args(Answer)]
    if unknown or not answers or len(set(answers)) != len(answers):
        raise ArgumentError(
            f"answers are some of {', '.join(get_args(Answer))}, each once, not {list(answers)!r}"
        )
    counts = any(answer in _COUNTS for answer in answers)
    if nodes < (3 if counts else 2):
        raise ArgumentError(f"{nodes} nodes are too few")
    check_delta(delta)
    if delta and not counts:
        raise ArgumentError("delta is for two_stars and triangles: leave it 0")
    if "edges" in answers and ("degrees" in answers or delta):
        raise ArgumentError("the number of edges follows from the degrees: leave it out")


# --- What the sealed protocol publishes, and the noise that each silo adds to it ------------------
#
# Plain integers: which scale makes which ε is not known here.

#: What an answer is multiplied by inside the shares; its noise is too.
FACTORS = {"edges": 1, "degrees": 1, "two_stars": 2, "triangles": 6}


@dataclass(frozen=True)
class Noise:
    """What each silo adds to an answer: integers of a given law, drawn exactly.

    ``shared``: a Pólya difference, of which ``shares`` sum to one discrete Laplace of this scale;
    ``each``: a whole discrete Laplace.
    """

    kind: Literal["shared", "each"]
    numerator: int
    denominator: int
    shares: int = 1

    def __post_init__(self) -> None:
        _check_kind(self.kind, self.shares)
        if not (1 <= self.numerator <= 1 << 62 and 1 <= self.denominator <= 1 << 62):
            raise ArgumentError("a noise's scale is a ratio of integers from 1 to 2^62")
        if self.numerator > self.denominator << 50:
            raise ArgumentError("a noise's scale is at most 2^50")

    def draw(self, count: int, seed: bytes) -> npt.NDArray[np.int64]:
        """One silo's part."""
        scale = self.numerator, self.denominator
        if self.kind == "each":
            return _core.discrete_laplace(count, *scale, seed)
        return _core.polya_difference(count, *scale, self.shares, seed)

    def fields(self) -> tuple[object, ...]:
        """What the digest of the parameters covers."""
        return self.kind, self.numerator, self.denominator, self.shares


@dataclass(frozen=True)
class BoundedNoise:
    """Noise of scale factor·bound/(numerator/denominator), known when the degrees are.

    bound = min(cap, largest noisy degree + margin), and at least 1. A scale whose parts would not
    fit is rounded up.
    """

    kind: Literal["shared", "each"]
    factor: int
    cap: int
    margin: int
    numerator: int
    denominator: int
    shares: int = 1

    def __post_init__(self) -> None:
        _check_kind(self.kind, self.shares)
        if min(self.factor, self.cap, self.numerator, self.denominator) < 1 or self.margin < 0:
            raise ArgumentError("factor, cap and the ratio must be positive, the margin not less")
        self.at(self.cap)

    def at(self, largest: int) -> Noise:
        """The noise, from the largest noisy degree."""
        bound = max(1, min(self.cap, largest + self.margin))
        scale = scale_for(self.factor * bound, Fraction(self.numerator, self.denominator))
        return Noise(self.kind, scale.numerator, scale.denominator, self.shares)

    def fields(self) -> tuple[object, ...]:
        """What the digest of the parameters covers."""
        given = (self.factor, self.cap, self.margin, self.numerator, self.denominator, self.shares)
        return ("bounded", self.kind, *given)


def _check_kind(kind: str, shares: int) -> None:
    if kind not in ("shared", "each") or shares < 1 or (kind == "each" and shares != 1):
        raise ArgumentError("noise is 'shared' among one silo or more, or of 'each'")


@dataclass(frozen=True)
class Output:
    """One answer, and the noise that it is published with."""

    name: Literal["edges", "degrees", "two_stars", "triangles"]
    noise: Noise | BoundedNoise

    def __post_init__(self) -> None:
        if self.name not in FACTORS:
            raise ArgumentError(f"unknown output {self.name!r}; choose from {', '.join(FACTORS)}")
