"""The noise of the sealed method: scales, bounds, and the loss of the answers against each view.

What
    The union is never opened. For each answer the silos open its sum with all their noise, which is
    integer noise of :mod:`silograph.dp.laplace`. The noise is either ``shared``, in shares of shape
    1/h, h = m − t, or a whole discrete Laplace variable of ``each`` silo. Let d be the degrees
    without an edge uv. The edge changes the number of edges by 1, the degrees by 1 at two nodes,
    the 2-stars by d_u + d_v ≤ 2(n−2), and the triangles by the number of common neighbours of u and
    v, at most min(d_u, d_v) ≤ n−2.
Neighbouring
    One edge is added or removed in every silo that holds it (for a view with colluding silos: in
    the honest ones).
Guarantee, δ = 0
    The scale of each answer is its sensitivity divided by its share of ε, and losses add. To anyone
    who knows the noise of t′ silos, the remaining noise has shape (m−t′)/h. The loss is ε for
    t′ ≤ t, and larger for larger t′ (``losses``).
Guarantee, δ > 0
    The noisy degrees y are opened first. The bound B = max(y) + s, from 1 to n−2, then gives
    triangles the scale B/ε_T and 2-stars the scale 2B/ε_S. All answers together are (ε, δ)-DP.
    Proof:

    Let G′ be G without the edge uv, let d be the degrees in G′, and let ``Bad`` be the set of y
    with B below the change c of the triangles. For every other y the answers given y have a loss of
    at most ε_T, and y itself has a loss of ε_d. So P(S) ≤ e^ε·P′(S) + P(Bad) for every set S of
    outcomes, and the same holds with G and G′ exchanged. Since c ≤ min(d_u, d_v), Bad requires
    d_u + z_u + s < d_u and the same for v: two independent noises of −s−1 or less, F(−s−1)² ≤ δ (in
    G, where both degrees are larger by one, even −s−2). For 2-stars c = d_u + d_v, and
    2·max(y_u, y_v) ≥ y_u + y_v, so Bad requires z_u + z_v < −2s. If B is n−2, Bad is empty.

    Colluding silos know their own part z^C of every noise. Given z^C they face a mechanism with
    some δ(z^C), and P(S) ≤ e^ε·P′(S) + E δ(z^C) also for sets S that depend on z^C, since z^C does
    not depend on the graph. E δ(z^C) is the probability of Bad over all noise. Therefore F is, for
    every view, the law of the **total** noise of one degree, while ε comes from the honest part
    only. Since this is an average over the colluders' noise, they must draw it as the protocol
    says.
Preconditions
    Silos follow the protocol. The coordinator deals honestly and colludes with no silo: together
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
#: The number of steps for bounding the losses against all coalitions larger than the claimed ones.
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
    #: The share of epsilon of each answer, in the order in which they are opened.
    budgets: dict[Answer, Fraction]
    delta: float
    #: The margin s of each count, if delta > 0.
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
        """The smallest noise with ε(m − t) ≤ epsilon.

        ``degree_share`` is the share of epsilon that goes to the degrees (or edges) if counts are
        asked for as well. Counts share the rest, and delta, equally. With a delta the degrees are
        always opened.
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
        """What is opened, in the order of opening."""
        return tuple(self.budgets)

    @property
    def shares(self) -> int:
        """The number of silos whose noises sum to one discrete Laplace variable."""
        return self.silos - self.collusion if self.kind == "shared" else 1

    def sensitivity(self, answer: Answer, bound: int | None = None) -> int:
        """By how much an edge can change one entry of an answer.

        ``bound`` limits the smaller of the degrees of the edge's ends, without the edge itself (for
        2-stars: the mean of these degrees).
        """
        if answer not in _COUNTS:
            return 1
        most = self.nodes - 2 if bound is None else bound
        return most if answer == "triangles" else 2 * most

    def bound(self, answer: Answer, degrees: NDArray[np.int64]) -> int | None:
        """The bound B that determines the scale of a count; None if delta is 0.

        It is the largest noisy degree plus s, limited to the range from 1 to n−2.
        """
        if answer not in self.slacks:
            return None
        if len(degrees) != self.nodes:
            raise ArgumentError(f"there are {self.nodes} nodes, but {len(degrees)} degrees")
        return min(max(int(degrees.max()) + self.slacks[answer], 1), self.nodes - 2)

    def scale(self, answer: Answer, bound: int | None = None) -> Fraction:
        """The scale of the noise of one answer; a count with delta needs its bound."""
        if answer not in self.budgets:
            raise ArgumentError(f"{answer} is not among the answers: {', '.join(self.answers)}")
        if (bound is None) != (answer not in self.slacks):
            raise ArgumentError(
                f"counts with delta need a bound, and nothing else takes one: {answer}"
            )
        if bound is not None and not 1 <= bound <= self.nodes - 2:
            raise ArgumentError(f"a bound is from 1 to {self.nodes - 2}, not {bound}")
        return scale_for(self._total(answer, bound), self.budgets[answer])

    def law(self, answer: Answer, bound: int | None = None) -> NoiseLaw:
        """The law of the total noise of one answer (for the degrees: of one degree)."""
        return NoiseLaw(self.scale(answer, bound), self.shares, self.silos)

    def epsilon(self, honest: int) -> float:
        """The certified loss against anyone who sees the answers and knows all noise except that of
        this many honest silos."""
        losses = (self._loss(answer, honest) for answer in self.answers)
        return round_up(sum(losses, Fraction(0)))

    @cached_property
    def losses(self) -> dict[int, float]:
        """The certified epsilon against t silos that see the answers, for t = 0 … m−1.

        Delta is the same for all of them.
        """
        return {t: self.epsilon(self.silos - t) for t in range(self.silos)}

    @property
    def views(self) -> tuple[View, ...]:
        """The privacy loss against each view, claimed or not.

        The coordinator dealt the randomness: together with one silo it sees everything.
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
        """The L1 sensitivity; an edge changes two degrees."""
        return self.sensitivity(answer, bound) * (2 if answer == "degrees" else 1)

    def _loss(self, answer: Answer, honest: int) -> Fraction:
        budget = self.budgets[answer]
        if answer in self.slacks:
            # Use the largest possible B: with fewer than h honest silos the loss grows with B.
            law = NoiseLaw(self._total(answer, None) / budget, self.shares, self.silos)
        else:
            law = self.law(answer)
        # All levels and answers share a bounded amount of work, since judging a study triggers it.
        steps = _MOST_STEPS // (max(self.shares - 1, 1) * len(self.answers))
        one = Fraction(law.loss(honest, self.sensitivity(answer), steps))
        if honest >= self.shares:
            one = self.sensitivity(answer) / law.scale
        return one * (2 if answer == "degrees" else 1)

    def _slack(self, answer: Answer, delta: float) -> int:
        law = self.law("degrees")
        if answer == "triangles":
            # The square of a number below the root is below delta.
            return law.least_reach(math.nextafter(math.sqrt(delta), 0))
        return -(-law.summed(2).least_reach(delta) // 2)


def _check(nodes: int, answers: Sequence[Answer], delta: float, kind: Kind) -> None:
    if kind not in get_args(Kind):
        raise ArgumentError(f"noise is {kind!r}; it must be shared or each")
    unknown = [answer for answer in answers if answer not in get_args(Answer)]
    if unknown or not answers or len(set(answers)) != len(answers):
        raise ArgumentError(
            f"answers must be from {', '.join(get_args(Answer))}, each once, not {list(answers)!r}"
        )
    counts = any(answer in _COUNTS for answer in answers)
    if nodes < (3 if counts else 2):
        raise ArgumentError(f"{nodes} nodes are too few")
    check_delta(delta)
    if delta and not counts:
        raise ArgumentError("delta is for two_stars and triangles: leave it 0")
    if "edges" in answers and ("degrees" in answers or delta):
        raise ArgumentError("the number of edges follows from the degrees: leave it out")


# --- The published outputs, and the noise that each silo adds to them -----------------------------
#
# These classes hold plain integers. They do not know which scale corresponds to which ε.
#: The factor by which an answer and its noise are multiplied inside the shares.
FACTORS = {"edges": 1, "degrees": 1, "two_stars": 2, "triangles": 6}


@dataclass(frozen=True)
class Noise:
    """The noise that each silo adds to an answer: integers of a given law, drawn exactly.

    Kind ``shared`` is a Pólya difference, of which ``shares`` sum to one discrete Laplace variable
    of this scale. Kind ``each`` is a whole discrete Laplace variable.
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
        """Draw one silo's part."""
        scale = self.numerator, self.denominator
        if self.kind == "each":
            return _core.discrete_laplace(count, *scale, seed)
        return _core.polya_difference(count, *scale, self.shares, seed)

    def fields(self) -> tuple[object, ...]:
        """The fields that are covered by the digest of the parameters."""
        return self.kind, self.numerator, self.denominator, self.shares


@dataclass(frozen=True)
class BoundedNoise:
    """Noise of scale factor·bound/(numerator/denominator), known once the degrees are opened.

    bound = min(cap, largest noisy degree + margin), and at least 1. A scale whose numerator or
    denominator would be too large is rounded up.
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
            raise ArgumentError("factor, cap and ratio must be positive, the margin at least 0")
        self.at(self.cap)

    def at(self, largest: int) -> Noise:
        """The noise that follows from the largest noisy degree."""
        bound = max(1, min(self.cap, largest + self.margin))
        scale = scale_for(self.factor * bound, Fraction(self.numerator, self.denominator))
        return Noise(self.kind, scale.numerator, scale.denominator, self.shares)

    def fields(self) -> tuple[object, ...]:
        """The fields that are covered by the digest of the parameters."""
        given = (self.factor, self.cap, self.margin, self.numerator, self.denominator, self.shares)
        return ("bounded", self.kind, *given)


def _check_kind(kind: str, shares: int) -> None:
    if kind not in ("shared", "each") or shares < 1 or (kind == "each" and shares != 1):
        raise ArgumentError("noise must be 'shared' by at least one silo, or 'each'")


@dataclass(frozen=True)
class Output:
    """One answer, and the noise that it is published with."""

    name: Literal["edges", "degrees", "two_stars", "triangles"]
    noise: Noise | BoundedNoise

    def __post_init__(self) -> None:
        if self.name not in FACTORS:
            raise ArgumentError(f"unknown output {self.name!r}; choose from {', '.join(FACTORS)}")
