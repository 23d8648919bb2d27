"""What each observer sees of one pair or of one number, as exact laws.

The laws are written from the descriptions of the protocols, silo by silo, and not from the formulas
that the product uses to certify losses. If the two disagree, one of them is wrong.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from silograph.dp.loss import log_upper

__all__ = [
    "Law",
    "Weights",
    "blinded",
    "committee",
    "digits",
    "holder_sets",
    "laplace_loss",
    "loss",
    "loss_at",
    "masked",
    "parts_loss",
    "printed",
    "replaced",
    "reports",
    "together",
    "worst_loss",
]

#: The outcomes of a view with their probabilities.
Law = Mapping[Any, Fraction]
Holders = tuple[bool, ...]
#: The outcomes of a view with their probabilities, in units that all of them share.
Weights = Mapping[Any, int]


def holder_sets(silos: int) -> Iterator[Holders]:
    """Every set of silos that may hold a pair, starting with the empty one."""
    return itertools.product((False, True), repeat=silos)


def loss(first: Law, second: Law) -> float:
    """The largest absolute log-ratio of any outcome, rounded up; inf if only one law has it."""
    worst = Fraction(1)
    for outcome in first.keys() | second.keys():
        p, q = first.get(outcome, Fraction(0)), second.get(outcome, Fraction(0))
        if p == q:
            continue
        if p == 0 or q == 0:
            return math.inf
        worst = max(worst, p / q, q / p)
    return log_upper(worst)


def worst_loss(law: Callable[[Holders], Law], silos: int) -> float:
    """The worst loss of any holder set, compared with no holder."""
    nobody, *others = (law(holders) for holders in holder_sets(silos))
    return max(loss(other, nobody) for other in others)


def masked(q: int, b: Fraction, holders: Holders) -> Law:
    """The sum in Z_q of the contributions of these (honest) silos."""
    law = {0: Fraction(1)}
    for holds in holders:
        uniform = Fraction(1) if holds else b
        own = dict.fromkeys(range(q), uniform / q)
        own[0] += 1 - uniform
        total: dict[int, Fraction] = {}
        for (s, p), (x, r) in itertools.product(law.items(), own.items()):
            total[(s + x) % q] = total.get((s + x) % q, Fraction(0)) + p * r
        law = total
    return law


def committee(numerator: int, places: int, holders: Holders, *, pooled: bool = False) -> Law:
    """The opened bit: the union, flipped if a uniform number of so many places is below a constant.

    Two members that pool what they hold have the union itself.
    """
    bit = int(any(holders))
    if pooled:
        return {bit: Fraction(1)}
    below = sum(drawn < numerator for drawn in range(2**places))
    flip = Fraction(below, 2**places)
    return {bit: 1 - flip, 1 - bit: flip}


def _response(bit: bool, p: Fraction) -> dict[int, Fraction]:
    return {int(bit): 1 - p, int(not bit): p}


def printed(p: Fraction, holders: Holders) -> Law:
    """Algorithm 3, lines 5–15: RR of silo 1's bit; each later silo sets 1 if its RR is 1."""
    law = _response(holders[0], p)
    for holds in holders[1:]:
        coin = _response(holds, p)
        law = {1: law[1] + law[0] * coin[1], 0: law[0] * coin[0]}
    return law


def replaced(p: Fraction, holders: Holders, *, silo_one: bool = False) -> Law:
    """Silo 1 shows RR of its bit; a later holder overwrites it with RR(1).

    The coordinator sees the result; silo 1 also knows its own draw.
    """
    joint: dict[tuple[int, int], Fraction] = {
        (drawn, drawn): r for drawn, r in _response(holders[0], p).items()
    }
    for holds in holders[1:]:
        if holds:
            fresh: dict[tuple[int, int], Fraction] = {}
            for ((drawn, _), r), (y, s) in itertools.product(
                joint.items(), _response(True, p).items()
            ):
                fresh[drawn, y] = fresh.get((drawn, y), Fraction(0)) + r * s
            joint = fresh
    if silo_one:
        return joint
    law: dict[int, Fraction] = {0: Fraction(0), 1: Fraction(0)}
    for (_, y), r in joint.items():
        law[y] += r
    return law


def reports(p: Fraction, holders: Holders) -> Law:
    """The baseline: all reports of these (honest) silos."""
    law: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
    for holds in holders:
        answers = _response(holds, p)
        law = {(*seen, y): r * s for seen, r in law.items() for y, s in answers.items()}
    return law


def blinded(b: Fraction, holders: Holders) -> Law:
    """The union bit of these (honest) silos, after each of them has flipped it with its coin."""
    bit = int(any(holders))
    law = {bit: Fraction(1), 1 - bit: Fraction(0)}
    for _ in holders:
        law = {y: law[y] * (1 - b) + law[1 - y] * b for y in (0, 1)}
    return law


# --- Numbers that are opened with integer noise ---------------------------------------------------


def digits(numerators: Sequence[int], places: int, at: int = 0) -> dict[int, int]:
    """A number ``at`` with noise by digits, in units of 2^(−2·places·digits).

    Every digit of both variables is tossed on its own: numerators[j] of 2^places cases are ones.
    """
    one = {0: 1}
    for j, numerator in enumerate(numerators):
        tossed: dict[int, int] = {}
        for value, weight in one.items():
            tossed[value + 2**j] = weight * numerator
            tossed[value] = weight * (2**places - numerator)
        one = tossed
    law: dict[int, int] = {}
    for (plus, p), (minus, q) in itertools.product(one.items(), repeat=2):
        law[at + plus - minus] = law.get(at + plus - minus, 0) + p * q
    return law


def together(first: Weights, second: Weights) -> dict[Any, int]:
    """Two independent numbers at once."""
    return {(x, y): p * q for (x, p), (y, q) in itertools.product(first.items(), second.items())}


def loss_at(first: Weights, second: Weights, delta: Fraction) -> float:
    """The least epsilon with P(S) ≤ e^ε·P′(S) + delta for every set S, both ways, rounded up.

    It is the largest ln (P(S) − delta)/P′(S), and the S for which it is largest has the outcomes
    with the largest ratios. The order of those that are all but equal is left to floats; that the
    result is no less than the truth is checked with integers.
    """
    worst = Fraction(1)
    for p, q in ((first, second), (second, first)):
        found = _largest_ratio(p, q, delta)
        if found is None:
            return math.inf
        worst = max(worst, found)
    return log_upper(worst)


def _largest_ratio(first: Weights, second: Weights, delta: Fraction) -> Fraction | None:
    pairs = [(p, second.get(outcome, 0)) for outcome, p in first.items()]
    pairs.sort(key=lambda pair: pair[0] / pair[1] if pair[1] else math.inf, reverse=True)
    spare = delta * sum(first.values())
    above, below, best = 0, 0, (1, 1)
    for p, q in pairs:
        above, below = above + p * spare.denominator, below + q * spare.denominator
        gain = above - spare.numerator
        if below == 0 and gain > 0:
            return None
        if below and gain * best[1] > best[0] * below:
            best = gain, below
    # A little more than what was found; no set S passes it, or the order was wrong.
    x = Fraction(*best) * (1 + Fraction(1, 2**60))
    excess = sum(max(p * x.denominator - q * x.numerator, 0) for p, q in pairs)
    if excess > spare * x.denominator:
        raise ArithmeticError("the order of outcomes was wrong")
    return x


def laplace_loss(scale: Fraction, shift: int) -> Fraction:
    """The loss of a number with discrete Laplace noise, P(z) ∝ e^(−|z|/scale), that changes.

    |z + shift| − |z| is linear between 0 and −shift, so its extremes are there.
    """
    return max(abs(abs(z + shift) - abs(z)) for z in (-2 * shift, -shift, 0, shift)) / scale


def parts_loss(scale: Fraction, honest: int, shares: int) -> float:
    """The loss of a number that changes by one, under so many Pólya differences of shape 1/shares.

    The law of a part comes from its generating function, ((1 − p)/(1 − pt))^(1/shares), and parts
    are added by convolution, in floats: the result is lowered by more than those may be off.
    """
    p = math.exp(-1 / scale)
    size = math.ceil(24 * scale) + 40
    one = np.empty(size)
    one[0] = (1 - p) ** (1 / shares)
    for k in range(1, size):
        one[k] = one[k - 1] * p * (k - 1 + 1 / shares) / k
    part = np.convolve(one, one[::-1])
    law: npt.NDArray[np.float64] = part
    for _ in range(honest - 1):
        law = np.convolve(law, part)
    middle = len(law) // 2
    near = law[middle : middle + math.ceil(8 * scale) + 2]  # what is cut off matters further out
    return float(np.max(np.log(near[:-1] / near[1:]))) * (1 - 1e-6)
