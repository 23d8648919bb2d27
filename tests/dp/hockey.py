"""The divergence between the sealed answers of two neighbouring graphs, by enumeration.

Noise by digits has finitely many values: every noisy degree of both ends, every pair of a largest
and second-largest noisy degree among the others, and every noisy count. Only noisy degrees that are
less likely than 10^−14 are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from silograph.dp.digits import DigitLaw
from silograph.methods.sealed.noise import Coins

Floats = NDArray[np.float64]


class Rule(Protocol):
    """What gives a bound: :class:`~silograph.methods.sealed.noise.Bounded`, or a broken one."""

    def bound(self, degrees: NDArray[np.int64]) -> int: ...

    def at(self, bound: int) -> Coins: ...


@dataclass(frozen=True)
class Change:
    """One edge more: degrees of its ends and of all others without it, and what it adds."""

    ends: tuple[int, int]
    others: tuple[int, ...]
    added: int

    @property
    def nodes(self) -> int:
        return 2 + len(self.others)


@dataclass(frozen=True)
class Divergence:
    """The largest P(S) − e^ε·P′(S) over sets S of outcomes, in both directions, and P′(Bad)."""

    with_edge: float
    without: float
    bad: float

    @property
    def worst(self) -> float:
        return max(self.with_edge, self.without)


@lru_cache(maxsize=512)
def probabilities(coins: Coins | DigitLaw) -> Floats:
    """P(z) for z from −reach to reach, from the coins themselves."""
    one = np.ones(1)
    for n in coins.numerators:
        q = n / 2**coins.places
        one = np.concatenate([(1 - q) * one, q * one])
    return np.convolve(one, one[::-1])


def divergence(degrees: Coins | DigitLaw, rule: Rule, change: Change, epsilon: float) -> Divergence:
    """Noisy degrees, the bound that follows from them, and a count with noise for this bound."""
    shift, factor = change.added, np.exp(epsilon)
    a, b, weights = _bounds(degrees, rule, change)
    found = np.zeros(3)
    for bound, weight in weights.items():
        law = probabilities(rule.at(bound))
        here = np.concatenate([law, np.zeros(shift)])
        there = np.concatenate([np.zeros(shift), law])
        # Ends with the same probabilities are counted once.
        pairs, inverse = np.unique(np.stack([a, b]), axis=1, return_inverse=True)
        often = np.bincount(inverse.ravel(), weight)
        without, with_edge = (
            np.multiply.outer(p, x) for p, x in zip(pairs, (here, there), strict=True)
        )
        found[0] += often @ np.maximum(with_edge - factor * without, 0).sum(axis=1)
        found[1] += often @ np.maximum(without - factor * with_edge, 0).sum(axis=1)
        found[2] += weight @ a if bound < shift else 0.0
    return Divergence(*found.tolist())


def _bounds(
    degrees: Coins | DigitLaw, rule: Rule, change: Change
) -> tuple[Floats, Floats, dict[int, Floats]]:
    """P(y_u, y_v) without the edge and with it; and, for every bound and every (y_u, y_v), how
    often the others' degrees make it this bound."""
    z, one = _trimmed(degrees)
    z, here, there = np.append(z, z[-1] + 1), np.append(one, 0.0), np.insert(one, 0, 0.0)
    y_u, y_v = (grid.ravel() for grid in np.meshgrid(z + change.ends[0], z + change.ends[1]))
    a, b = (np.multiply.outer(p, p).ravel() for p in (here, there))
    high, low = np.maximum(y_u, y_v), np.minimum(y_u, y_v)
    others = top_two(change.others, degrees)
    least = int(low.min())
    most = max(int(high.max()), *(largest for largest, _ in others))
    values = range(least, most + 1)
    table = np.array([[rule.bound(np.array([x, y])) for x in values] for y in values])
    weights = np.zeros((int(table.max()) + 1, len(a)))
    every = np.arange(len(a))
    for (largest, second), chance in others.items():
        tops = np.maximum(high, largest)
        nexts = np.maximum(np.minimum(high, largest), np.maximum(low, second))
        weights[table[tops - least, nexts - least], every] += chance
    return a, b, {bound: w for bound, w in enumerate(weights) if w.any()}


def _trimmed(coins: Coins | DigitLaw) -> tuple[NDArray[np.int64], Floats]:
    """The values of a noise whose probability is not all but zero, and their probabilities."""
    one = probabilities(coins)
    kept = np.flatnonzero(one > 1e-14)
    return kept - coins.reach, one[kept]


@lru_cache(maxsize=64)
def top_two(degrees: tuple[int, ...], coins: Coins | DigitLaw) -> dict[tuple[int, int], float]:
    """The joint law of the largest and second-largest noisy degree; −10^6 where there is none."""
    noise = list(zip(*(x.tolist() for x in _trimmed(coins)), strict=True))
    found = {(-(10**6), -(10**6)): 1.0}
    for degree in degrees:
        more: dict[tuple[int, int], float] = {}
        for pair, chance in found.items():
            for z, p in noise:
                second, largest = sorted((*pair, degree + z))[-2:]
                more[largest, second] = more.get((largest, second), 0.0) + chance * p
        found = {pair: chance for pair, chance in more.items() if chance > 1e-14}
    return found


@dataclass(frozen=True)
class Coarse:
    """A rule with coins of its own choice, for laws whose every δ is visible."""

    rule: Rule
    coins: Callable[[int], Coins]

    def bound(self, degrees: NDArray[np.int64]) -> int:
        return self.rule.bound(degrees)

    def at(self, bound: int) -> Coins:
        return self.coins(bound)
