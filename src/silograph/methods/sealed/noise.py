"""The noise of the sealed method: scales, bounds, and the loss of the answers against each view.

What
    The union is never opened. A committee of four counts in it, and opens each number with integer
    noise. Kind ``committee``: noise by digits (:mod:`silograph.dp.digits`), tossed with coins that
    nobody knows. Kind ``shares``: each of the four members adds a Pólya difference of shape 1/3
    (:mod:`silograph.dp.laplace`), and three of them make one discrete Laplace variable.

    Let d be the degrees without an edge uv. The edge changes the number of edges by 1, the degrees
    by 1 at two nodes, the numbers of edges between groups of a public partition (``mixing``) by 1
    for the groups of u and v alone, the 2-stars by d_u + d_v ≤ 2(n−2), and the triangles by the
    number of common neighbours of u and v, at most min(d_u, d_v) ≤ n−2.
Neighbouring
    One edge is added or removed in every silo that holds it (for a view with colluding parties: in
    the honest ones).
Guarantee without a bound
    Each answer has a share of ε, and its noise is made for its sensitivity: ε adds up, and so do
    the δ of noise by digits, at most 2^−64 for a number (for the degrees twice, since two of them
    change). That is less than ``NOISE_DELTA`` in all. Noise in shares costs no δ.
Guarantee with a bound
    The noisy degrees y = d + z are opened first, and give every count a bound B on its change,
    which takes the place of its sensitivity. All answers together are (ε, δ)-DP with
    δ = δ_B + δ_d + δ_noise: that a bound may fail, and the δ of the noise of two degrees and of
    the counts.

    Proof: let P and P′ be the laws of everything that is opened, with the edge uv and without, in
    either order. Let ``Bad`` be the set of y for which some bound is below the change of its count.
    For every other y the counts given y are (ε_c, δ_noise)-DP. So for a set S of outcomes and its
    part S_y, P(S_y|y) ≤ min(1, e^ε_c·P′(S_y|y)) + δ_noise, unless y is in Bad. The first term is a
    function of y from 0 to 1, and the degrees are (ε_d, δ_d)-DP: its mean under P is at most e^ε_d
    times its mean under P′, plus δ_d. So P(S) ≤ e^(ε_d+ε_c)·P′(S) + δ_noise + δ_d + P(Bad).

    P(Bad), where F is the law of the noise of one degree **that is drawn**, and c the change:

    - *Triangles*, ``largest``: B is the largest noisy degree + s. As c ≤ min(d_u, d_v), Bad
      requires d_u + z_u + s < d_u and the same for v: two independent noises of −s−1 or less, and
      P(Bad) ≤ F(−s−1)².
    - *Triangles*, ``second``: B is the second-largest + s. At most one node is above the
      second-largest, so Bad requires z_u ≤ −s−1 or z_v ≤ −s−1: P(Bad) ≤ 2F(−s−1).
    - *2-stars*, ``sum``: B is the largest + the second-largest + s, which is at least
      y_u + y_v + s, and c = d_u + d_v. Bad requires z_u + z_v ≤ −s−1.

    In the world with the edge the degrees of u and v are larger by one: Bad is rarer. Bounds end at
    the sensitivity itself, where Bad is empty. (For 2-stars the second-largest alone would be
    wrong: an edge at the centre of a star changes them by its degree, and all others are small.)
Guarantee on folded nodes
    The bits of the union are buckets, and what is counted are rows of cells: hubs and groups. A
    bucket changes the number of occupied buckets by 1, and the *loads* of at most two rows by 1, so
    these are edges and degrees of rows. The noisy loads are opened first, and give the cells public
    weights; the noise of the weighted triangles is made for
    :attr:`~silograph.dp.cells.CellWeights.change`, which bounds their change for any weights. No
    bound can fail: δ is that of the noise alone, below ``NOISE_DELTA``.
Against whom
    The coordinator and any one member, together and malicious, and any number of silos outside the
    committee. Nobody knows or changes a coin, and everybody checks the opened degrees before the
    counts, so that F is the law of a degree's noise whatever they do. Of noise in shares one part
    is known, or drawn as its member likes; the other three are a discrete Laplace variable, to
    which a known number is added. But a member that draws −1000 for a degree lowers the bound by
    1000: **a bound needs committee noise**, and shares with one are refused. Two members that
    pool see every edge. If the coordinator is a member, the promise is against any one party.
Preconditions
    Of the four members at most one is dishonest. Scales and every δ are rounded **up**.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from silograph.dp.cells import CellRule
from silograph.dp.digits import DIGIT_DELTA, MOST_DIGITS, MOST_PLACES, DigitLaw
from silograph.dp.laplace import NoiseLaw, Share, round_up, scale_for
from silograph.dp.loss import View, check_delta, check_epsilon, check_parties, float_below
from silograph.errors import ArgumentError

__all__ = [
    "FACTORS",
    "HONEST",
    "NOISE_DELTA",
    "PARTS",
    "Answer",
    "Bounded",
    "Coins",
    "Kind",
    "Output",
    "Parts",
    "Rule",
    "SealedNoise",
    "Weighted",
]

Answer = Literal["edges", "degrees", "mixing", "two_stars", "triangles"]
Kind = Literal["committee", "shares"]
#: Which noisy degree bounds the triangles.
Rule = Literal["largest", "second"]

#: The factor by which an answer and its noise are multiplied inside the shares.
FACTORS = {"edges": 1, "degrees": 1, "mixing": 1, "two_stars": 2, "triangles": 6}
#: The delta of all committee noise of a run, if no bound is used: more than four numbers need.
NOISE_DELTA = 2.0**-60
#: Noise in shares: the members that draw a part, and how many of them make one whole noise.
PARTS = 4
HONEST = 3

#: The largest weight of a folded cell, and the least that is precise enough. It is as large as
#: numbers of 64 bits allow.
_MOST_WEIGHT = 256
_LEAST_WEIGHT = 8
_LARGEST = 1 << 63

#: Answers whose sensitivity grows with the degrees.
_COUNTS: tuple[Answer, ...] = ("two_stars", "triangles")


# --- The published outputs, and the noise that is added to them -----------------------------------
#
# These classes hold plain integers. They do not know which noise corresponds to which ε, and their
# fields are what the members of a run sign.


@dataclass(frozen=True)
class Coins:
    """Noise by digits: G − G′, where digit j of both is one in numerators[j] of 2^places cases.

    >>> Coins((3, 1), places=3).reach
    3
    """

    #: The lowest digit first.
    numerators: tuple[int, ...]
    places: int

    def __post_init__(self) -> None:
        if not 1 <= self.places <= MOST_PLACES:
            raise ArgumentError(f"a coin has 1 to {MOST_PLACES} places")
        if not 1 <= len(self.numerators) <= MOST_DIGITS:
            raise ArgumentError(f"noise has 1 to {MOST_DIGITS} digits")
        if not all(1 <= n < 1 << self.places for n in self.numerators):
            raise ArgumentError(f"a coin's numerator is from 1 to 2^{self.places} − 1")

    @property
    def reach(self) -> int:
        """The largest absolute value of the noise."""
        return (1 << len(self.numerators)) - 1

    def fields(self) -> tuple[object, ...]:
        """Everything, for the digest of the parameters."""
        return "coins", self.places, len(self.numerators), *self.numerators


@dataclass(frozen=True)
class Parts(Share):
    """Noise in shares: every member draws a Pólya difference of shape 1/3 of this scale.

    >>> Parts(2, 1).reach
    100
    """

    shares: int = HONEST

    @property
    def reach(self) -> int:
        """A number that the sum of all parts exceeds with a probability of at most 2^−64."""
        return _reach(Fraction(self.numerator, self.denominator))

    def fields(self) -> tuple[object, ...]:
        """Everything, for the digest of the parameters."""
        return "parts", self.numerator, self.denominator, PARTS, self.shares


@lru_cache(maxsize=256)
def _reach(scale: Fraction) -> int:
    return NoiseLaw(scale, HONEST, PARTS).far_reach(DIGIT_DELTA / 2)


@dataclass(frozen=True)
class Bounded:
    """Noise for a change of at most ``bound``, which is known once the degrees are opened.

    numerator/denominator is what the count may cost.

    >>> noise = Bounded("committee", "second", margin=4, cap=98, numerator=1, denominator=2)
    >>> noise.bound(np.array([50, 3, 20, 7]))
    24
    """

    kind: Kind
    #: What is added to the margin: the largest noisy degree, the second-largest, or their sum. Or
    #: what takes the place of all that: the weights of cells.
    rule: Literal["largest", "second", "sum", "weights"]
    margin: int
    cap: int
    numerator: int
    denominator: int

    def __post_init__(self) -> None:
        if self.kind != "committee":
            raise ArgumentError(_NO_BOUND)
        if (self.rule == "weights") != isinstance(self, Weighted):
            raise ArgumentError("only weights of cells bound a weighted count")
        if self.rule not in ("largest", "second", "sum", "weights"):
            raise ArgumentError("a bound's rule must be largest, second or sum")
        if min(self.cap, self.numerator, self.denominator) < 1 or self.margin < 0:
            raise ArgumentError("cap and ratio must be positive, the margin at least 0")
        self.at(self.cap)

    def bound(self, degrees: NDArray[np.int64]) -> int:
        """The bound that follows from the noisy degrees."""
        return _bound(self.rule, self.margin, self.cap, degrees)

    def at(self, bound: int) -> Coins:
        """The noise for a bound."""
        if not 1 <= bound <= self.cap:
            raise ArgumentError(f"a bound is from 1 to {self.cap}, not {bound}")
        return _coins(DigitLaw.choose(bound, Fraction(self.numerator, self.denominator)))

    @property
    def reach(self) -> int:
        """The largest absolute value of the noise, for the largest bound."""
        return self.at(self.cap).reach

    def fields(self) -> tuple[object, ...]:
        """Everything, for the digest of the parameters; and the coins of the largest bound."""
        given = (self.margin, self.cap, self.numerator, self.denominator)
        return ("bounded", self.kind, self.rule, *given, *self.at(self.cap).fields())


@dataclass(frozen=True)
class Weighted(Bounded):
    """Noise for the weighted triangles of folded cells, whose weights follow from noisy loads.

    >>> rule = CellRule(groups=4, hubs=0, most=16, spread=0)
    >>> noise = Weighted("committee", "weights", 0, rule.most_change, 1, 2, rule)
    >>> noise.bound(np.array([2, 3, 2, 1])) <= noise.cap
    True
    """

    cells: CellRule

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cap < self.cells.most_change:
            raise ArgumentError("a bound must not end below what a bucket can change")

    def bound(self, degrees: NDArray[np.int64]) -> int:
        """The largest change with the weights that follow from the noisy loads."""
        return self.cells.weights(degrees).change

    @property
    def largest(self) -> int:
        """More than six times any weighted count."""
        return self.cells.rows**3 * self.cells.most**3

    def fields(self) -> tuple[object, ...]:
        """Everything, for the digest of the parameters."""
        return (*super().fields(), *self.cells.fields())


def _bound(rule: str, margin: int, cap: int, degrees: NDArray[np.int64]) -> int:
    if len(degrees) < 2:
        raise ArgumentError("a bound needs the degrees of two nodes")
    second, largest = (int(y) for y in np.partition(degrees, -2)[-2:])
    found = {"largest": largest, "second": second, "sum": largest + second}[rule]
    return max(1, min(cap, found + margin))


def _coins(law: DigitLaw) -> Coins:
    return Coins(law.numerators, law.places)


_NO_BOUND = (
    "counts are bounded by noisy degrees only with committee noise: of noise in shares a member "
    "could draw a part that lowers the bound"
)
#: The rules that hold for each count.
_RULES = {"two_stars": ("sum",), "triangles": ("largest", "second", "weights")}


@dataclass(frozen=True)
class Output:
    """One answer, and the noise that it is published with."""

    name: Answer
    noise: Coins | Parts | Bounded

    def __post_init__(self) -> None:
        if self.name not in FACTORS:
            raise ArgumentError(f"unknown output {self.name!r}; choose from {', '.join(FACTORS)}")
        if isinstance(self.noise, Bounded) and self.noise.rule not in _RULES.get(self.name, ()):
            raise ArgumentError(f"rule {self.noise.rule} does not bound {self.name}")


# --- Scales, bounds and costs ---------------------------------------------------------------------


@dataclass(frozen=True)
class SealedNoise:
    """The noise of one sealed run.

    >>> noise = SealedNoise.choose(1.0, 4039, 4, 1, ["triangles"], delta=1e-9, rule="largest")
    >>> noise.answers, noise.margins
    (('degrees', 'triangles'), {'triangles': 193})
    >>> for view in noise.views: print(view)
    coordinator: ε = 1, δ = 1e-9
    coordinator + 1 member: ε = 1, δ = 1e-9
    1 member + answers: ε = 1, δ = 1e-9
    2 members: ε = ∞ (not claimed)
    """

    nodes: int
    silos: int
    collusion: int
    kind: Kind
    #: The share of epsilon of each answer, in the order in which they are opened.
    budgets: dict[Answer, Fraction]
    #: The delta of all of it; 0 for shares.
    delta: float
    #: What bounds the triangles, if noisy degrees bound the counts.
    rule: Rule | None = None
    #: The margin s of each count, if there is a rule.
    margins: dict[Answer, int] = field(default_factory=dict)
    #: Whether the coordinator is one of the four members.
    inside: bool = False
    #: How the cells of folded nodes are weighted; ``nodes`` are then rows. None for pairs, and for
    #: folded nodes if no triangles are counted.
    cells: CellRule | None = None

    @classmethod
    def choose_folded(
        cls,
        epsilon: float,
        groups: int,
        hubs: int,
        silos: int,
        collusion: int,
        answers: Sequence[Answer],
        *,
        degree_share: Fraction | float = Fraction(1, 10),
        inside: bool = False,
    ) -> "SealedNoise":
        """The smallest noise for rows of folded nodes that costs at most epsilon.

        All of them open edges and degrees, which are occupied buckets and the loads of rows.
        ``degree_share`` is the loads' share of epsilon. The edges' is a fifth of it beside
        triangles, which get the rest; without triangles the edges get it.

        >>> opened = ("edges", "degrees", "triangles")
        >>> noise = SealedNoise.choose_folded(1.0, 4096, 0, 4, 1, opened)
        >>> noise.cells.most, noise.delta == NOISE_DELTA
        (256, True)
        """
        whole, rows = Fraction(check_epsilon(epsilon)), groups + hubs
        _check_committee(silos, collusion, inside=inside)
        _check(rows, [a for a in answers if a != "edges"], NOISE_DELTA, "committee", None)
        if set(answers) - {"triangles"} != {"edges", "degrees"}:
            raise ArgumentError(
                "folded nodes open edges and degrees (the loads of rows), with or without triangles"
            )
        loads = whole * _share("degree_share", degree_share)
        budgets: dict[Answer, Fraction] = {"edges": whole - loads, "degrees": loads}
        if "triangles" in answers:
            few = min(loads / 5, (whole - loads) / 2)
            budgets |= {"edges": few, "triangles": whole - loads - few}
        noise = cls(rows, silos, collusion, "committee", budgets, NOISE_DELTA, inside=inside)
        if "triangles" not in budgets:
            return noise
        spread = round(noise.law("degrees").variance)
        most = _most_weight(rows, budgets["triangles"])
        return replace(noise, margins={"triangles": 0}, cells=CellRule(groups, hubs, most, spread))

    @classmethod
    def choose(
        cls,
        epsilon: float,
        nodes: int,
        silos: int,
        collusion: int,
        answers: Sequence[Answer],
        *,
        delta: float = NOISE_DELTA,
        degree_share: Fraction | float = Fraction(1, 10),
        triangle_share: Fraction | float = Fraction(1, 2),
        kind: Kind = "committee",
        rule: Rule | None = None,
        inside: bool = False,
    ) -> "SealedNoise":
        """The smallest noise that costs at most epsilon and delta.

        ``degree_share`` is the share of epsilon that goes to the degrees (or edges) if counts are
        asked for as well, and ``triangle_share`` the triangles' share of what then remains for two
        counts. With a ``rule`` the degrees are always opened, and bound the counts.
        """
        whole = Fraction(check_epsilon(epsilon))
        _check_committee(silos, collusion, inside=inside)
        _check(nodes, answers, delta, kind, rule)
        first, second = (
            _share("degree_share", degree_share),
            _share("triangle_share", triangle_share),
        )
        counts = [answer for answer in _COUNTS if answer in answers]
        budgets: dict[Answer, Fraction] = {}
        if "edges" in answers:
            budgets["edges"] = whole
        elif "mixing" in answers:
            budgets["mixing"] = whole
        elif "degrees" in answers or rule:
            budgets["degrees"] = whole
        if counts:
            budgets = dict.fromkeys(budgets, whole * first)
            rest = whole - sum(budgets.values())
            shares = (1 - second, second) if len(counts) == 2 else (Fraction(1),)
            budgets |= {answer: rest * x for answer, x in zip(counts, shares, strict=True)}
        claimed = NOISE_DELTA if kind == "committee" else 0.0
        noise = cls(nodes, silos, collusion, kind, budgets, claimed, inside=inside)
        if rule is None:
            return noise
        each = (Fraction(delta) - _noise_delta(noise)) / len(counts)
        rules = {answer: rule if answer == "triangles" else "sum" for answer in counts}
        margins = {answer: noise._margin(rules[answer], each) for answer in counts}
        return replace(noise, delta=float(delta), rule=rule, margins=margins)

    def at(self, epsilon: float) -> "SealedNoise":
        """The same answers by the same rule at another epsilon, with the same shares of it."""
        if self.cells is not None:
            share = self.budgets["degrees"] / sum(self.budgets.values())
            return SealedNoise.choose_folded(
                epsilon, self.cells.groups, self.cells.hubs, self.silos, self.collusion,
                self.answers, degree_share=share, inside=self.inside,
            )  # fmt: skip
        first, *counts = self.answers
        whole, given = sum(self.budgets.values()), self.budgets[first]
        if first in _COUNTS:
            given, counts = Fraction(0), list(self.answers)
        shares: dict[str, Fraction] = {}
        if counts and given:
            shares["degree_share"] = given / whole
        if len(counts) == 2:
            shares["triangle_share"] = self.budgets["triangles"] / (whole - given)
        return SealedNoise.choose(
            epsilon, self.nodes, self.silos, self.collusion, self.answers,
            delta=max(self.delta, NOISE_DELTA), kind=self.kind, rule=self.rule,
            inside=self.inside, **shares,
        )  # fmt: skip

    @property
    def answers(self) -> tuple[Answer, ...]:
        """What is opened, in the order of opening."""
        return tuple(self.budgets)

    # -- bounds ------------------------------------------------------------------------------

    def sensitivity(self, answer: Answer, bound: int | None = None) -> int:
        """By how much an edge can change one entry of an answer; a bound takes its place."""
        if answer not in _COUNTS:
            return 1
        if bound is not None:
            return bound
        if self.cells is not None:
            return self.cells.most_change
        return (self.nodes - 2) * (2 if answer == "two_stars" else 1)

    def bound(self, answer: Answer, degrees: NDArray[np.int64]) -> int | None:
        """The bound of a count that follows from the noisy degrees; None if it has none."""
        if answer not in self.margins:
            return None
        if len(degrees) != self.nodes:
            raise ArgumentError(f"there are {self.nodes} nodes, but {len(degrees)} degrees")
        if self.cells is not None:
            return self.cells.weights(degrees).change
        return _bound(self._rule(answer), self.margins[answer], self.sensitivity(answer), degrees)

    def drawn(self, answer: Answer) -> Coins | Parts | Bounded:
        """The noise of an answer as the protocol draws it."""
        if answer in self.margins:
            return self._bounded(answer)
        if self.kind == "committee":
            return _coins(self.digits(answer))
        scale = self.scale(answer)
        return Parts(scale.numerator, scale.denominator)

    def _bounded(self, answer: Answer) -> Bounded:
        budget, cap, margin = self.budgets[answer], self.sensitivity(answer), self.margins[answer]
        ratio = budget.numerator, budget.denominator
        if self.cells is not None:
            return Weighted(self.kind, "weights", margin, cap, *ratio, self.cells)
        return Bounded(self.kind, self._rule(answer), margin, cap, *ratio)

    def _rule(self, answer: Answer) -> Literal["largest", "second", "sum"]:
        return self.rule if answer == "triangles" and self.rule else "sum"

    def _margin(self, rule: str, delta: Fraction) -> int:
        """The least margin with which a bound fails with a probability of at most delta."""
        return _margin(self.digits("degrees"), rule, float_below(delta))

    # -- laws --------------------------------------------------------------------------------

    def scale(self, answer: Answer, bound: int | None = None) -> Fraction:
        """The scale of the noise of one answer; a bounded count needs its bound."""
        if self.kind == "committee":
            return DigitLaw.scale_of(*self._asked(answer, bound))
        return scale_for(*self._asked(answer, bound))

    def digits(self, answer: Answer, bound: int | None = None) -> DigitLaw:
        """The law of committee noise, digit by digit, exactly as it is drawn."""
        if self.kind != "committee":
            raise ArgumentError("noise in shares has no digits")
        return DigitLaw.choose(*self._asked(answer, bound))

    def law(self, answer: Answer, bound: int | None = None) -> NoiseLaw:
        """The law of the total noise of one answer (for the degrees: of one degree).

        Noise by digits is within :attr:`DigitLaw.distance` of it, less than 10^−4.
        """
        parts = (1, 1) if self.kind == "committee" else (HONEST, PARTS)
        return NoiseLaw(self.scale(answer, bound), *parts)

    def _asked(self, answer: Answer, bound: int | None) -> tuple[int, Fraction]:
        """The change of one number, and what it may cost: two degrees share their budget."""
        if answer not in self.budgets:
            raise ArgumentError(f"{answer} is not among the answers: {', '.join(self.answers)}")
        if (bound is None) != (answer not in self.margins):
            raise ArgumentError(
                f"bounded counts need a bound, and nothing else takes one: {answer}"
            )
        if bound is not None and not 1 <= bound <= self.sensitivity(answer):
            raise ArgumentError(f"a bound is from 1 to {self.sensitivity(answer)}, not {bound}")
        budget = self.budgets[answer] / (2 if answer == "degrees" else 1)
        return self.sensitivity(answer, bound), budget

    # -- losses ------------------------------------------------------------------------------

    def epsilon(self, together: int) -> float:
        """The certified loss against the coordinator with this many other parties."""
        if together > (0 if self.inside else 1):
            return math.inf
        return self._cost

    @cached_property
    def _cost(self) -> float:
        return round_up(sum((self._loss(answer) for answer in self.answers), Fraction(0)))

    def _loss(self, answer: Answer) -> Fraction:
        """What an answer costs, from the law that is drawn; a bounded count at every bound."""
        if answer in self.margins:
            return self.budgets[answer]
        shift, _ = self._asked(answer, None)
        if self.kind == "committee":
            one = self.digits(answer).cost(shift)
        else:
            # Three parts are unknown, and make one discrete Laplace variable.
            one = shift / self.scale(answer)
        return one * (2 if answer == "degrees" else 1)

    @property
    def losses(self) -> dict[int, float]:
        """The certified epsilon against the coordinator with t silos, for t = 0 … m−1.

        Delta is the same for all of them.
        """
        return {t: self.epsilon(t) for t in range(self.silos)}

    @property
    def views(self) -> tuple[View, ...]:
        """The privacy loss against each view, claimed or not."""
        loss, one = self.epsilon(0), self.epsilon(1)
        claimed = not self.inside
        return (
            View("coordinator", loss, self.delta),
            View("coordinator + 1 member", one, self.delta if claimed else 0.0, claimed=claimed),
            View("1 member + answers", loss, self.delta),
            View("2 members", math.inf, claimed=False),
        )

    @property
    def parts_of_delta(self) -> dict[str, float]:
        """What delta is made of: ``bounds`` that fail, the ``degrees`` and the ``counts``.

        Each is rounded up; together they are at most :attr:`delta`.
        """
        if self.kind == "shares":
            return {"bounds": 0.0, "degrees": 0.0, "counts": 0.0}
        noise = {answer: _delta_of(self, answer) for answer in self.answers}
        counts = sum((d for answer, d in noise.items() if answer in _COUNTS), Fraction(0))
        return {
            "bounds": round_up(sum((self._fails(a) for a in self.margins), Fraction(0))),
            "degrees": round_up(sum(noise.values(), Fraction(0)) - counts),
            "counts": round_up(counts),
        }

    def _fails(self, answer: Answer) -> Fraction:
        """An upper bound of the probability that the bound of a count fails."""
        if self.cells is not None:
            return Fraction(0)
        law, least = self.digits("degrees"), self.margins[answer] + 1
        if answer == "two_stars":
            return Fraction(law.tail(least, summed=2))
        one = Fraction(law.tail(least))
        return one * one if self.rule == "largest" else 2 * one


@lru_cache(maxsize=1024)
def _margin(law: DigitLaw, rule: str, delta: float) -> int:
    if rule == "sum":
        return law.least_reach(delta, summed=2)
    if rule == "second":
        return law.least_reach(delta / 2)
    # The square of a number below the root is below delta.
    return law.least_reach(math.nextafter(math.sqrt(delta), 0))


def _most_weight(rows: int, budget: Fraction) -> int:
    """The largest weight with which a count and its noise fit into 64 bits with their sign."""
    most = _MOST_WEIGHT
    while most >= _LEAST_WEIGHT:
        reach = DigitLaw.choose((rows - 2) * most**3, budget).reach
        if (rows * most) ** 3 + FACTORS["triangles"] * reach < _LARGEST:
            return most
        most //= 2
    raise ArgumentError(f"the triangles of {rows:,} rows and their noise do not fit into 64 bits")


def _noise_delta(noise: SealedNoise) -> Fraction:
    """The delta of all noise, at every bound."""
    return sum((_delta_of(noise, answer) for answer in noise.answers), Fraction(0))


def _delta_of(noise: SealedNoise, answer: Answer) -> Fraction:
    """The delta of the noise of one answer; that of a count is at most ``DIGIT_DELTA``."""
    if answer in _COUNTS:
        return Fraction(DIGIT_DELTA)
    one = Fraction(noise.digits(answer).delta(1))
    return 2 * one if answer == "degrees" else one


def _check_committee(silos: int, collusion: int, *, inside: bool) -> None:
    check_parties(silos, collusion)
    if collusion > 1:
        raise ArgumentError(
            "two members of a committee see every edge together: collusion is at most 1"
        )
    if inside and collusion:
        raise ArgumentError(
            "a committee with the coordinator in it holds against any one party: collusion is 0"
        )


def _share(name: str, value: Fraction | float) -> Fraction:
    if not 0 < value < 1:
        raise ArgumentError(f"{name} must be between 0 and 1, not {value!r}")
    return Fraction(value)


def _check(
    nodes: int, answers: Sequence[Answer], delta: float, kind: Kind, rule: Rule | None
) -> None:
    if kind not in get_args(Kind):
        raise ArgumentError(f"noise is {kind!r}; it must be committee or shares")
    if rule is not None and rule not in get_args(Rule):
        raise ArgumentError(f"rule is {rule!r}; it must be largest or second")
    unknown = [answer for answer in answers if answer not in get_args(Answer)]
    if unknown or not answers or len(set(answers)) != len(answers):
        raise ArgumentError(
            f"answers must be from {', '.join(get_args(Answer))}, each once, not {list(answers)!r}"
        )
    counts = any(answer in _COUNTS for answer in answers)
    if nodes < (3 if counts else 2):
        raise ArgumentError(f"{nodes} nodes are too few")
    check_delta(delta)
    if kind == "committee" and delta < NOISE_DELTA:
        raise ArgumentError(
            f"committee noise needs a delta of at least {NOISE_DELTA:.1e}, not {delta!r}; noise in "
            "shares needs none"
        )
    if rule and kind == "shares":
        raise ArgumentError(_NO_BOUND)
    if rule and not counts:
        raise ArgumentError("a rule bounds two_stars and triangles: leave it out")
    if rule and not delta > NOISE_DELTA:
        raise ArgumentError(f"a bound needs a delta above {NOISE_DELTA:.1e}, not {delta!r}")
    if "mixing" in answers and (len(answers) > 1 or rule):
        raise ArgumentError("edges by groups are opened alone: all edges follow from them")
    if "edges" in answers and ("degrees" in answers or rule):
        raise ArgumentError("the number of edges follows from the degrees: leave it out")
