"""What each observer sees of one pair, as exact laws, for every set of holders.

The laws are written from the descriptions of the protocols, silo by silo, and not from the formulas
that the product uses to certify losses. If the two disagree, one of them is wrong.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from silograph.dp.loss import log_upper

__all__ = [
    "Law",
    "blinded",
    "committee",
    "holder_sets",
    "loss",
    "masked",
    "printed",
    "replaced",
    "reports",
    "worst_loss",
]

#: The outcomes of a view with their probabilities.
Law = Mapping[Any, Fraction]
Holders = tuple[bool, ...]


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
