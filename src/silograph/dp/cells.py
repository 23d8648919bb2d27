"""Weights of folded cells, and how much one bucket can change a weighted count of triangles.

What
    Folded nodes make a symmetric matrix S of cells (see :mod:`silograph.graph.fold`): H hubs, which
    are rows of their own, then r groups. With one sub-bucket a cell is −1, 0 or 1. Edges that share
    a bucket count once, and edges of different signs cancel; on average a cell shows an edge with a
    probability of e^(−c/2), c being the number of other edges that its two rows have there. So
    cells are multiplied by public weights, which follow from noisy **loads**: the number of
    occupied buckets that each row shares with groups. The count is V = Σ_{a<b<c} M_ab·M_bc·M_ca
    with M = w∘S, w integers from 0 to ``most``.
Neighbouring
    One bucket is occupied or not.
Guarantee
    A bucket changes one S_ab by one, and V by w_ab·|Σ_c M_ac·M_cb| ≤ w_ab·Σ_c w_ac·w_cb, since
    |S| ≤ 1. :attr:`CellWeights.change` is at least the largest of these numbers, for **any** loads:
    there is nothing that may fail, and no delta. The bucket also changes at most two loads by one.
How the weights are found
    A row with a load U in r cells of two buckets has g = 1/(1 − U/2r) = e^(D/2r), if its D edges
    fell into these cells at random. A cell of two groups weighs g_a·g_b/ḡ, with ḡ at the mean load:
    the two rows meet in one cell only. A cell of a hub weighs g of the hub, since nobody shares the
    hub's row, and a cell of two hubs weighs 1. (That edges within a group are dropped, and that an
    edge is no company to itself, cancels but for terms of 1/r².) Loads are drawn towards their mean
    by the share of their spread that is noise, so that noise does not make the largest weight.
    All of them are multiplied by one number, ``scale``, so that the largest is ``most``. Rounding
    goes up or down by a fixed sequence, so that it is right on average for many cells.
Everyone computes the same
    Only integers are added, multiplied, divided and rounded down: no floats, no library functions.
    :attr:`CellWeights.digest` is compared by the members before the weights are used.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from silograph.errors import ArgumentError

__all__ = ["CellRule", "CellWeights"]

#: The fractional bits of loads and of the factors of rows, and of weights before rounding.
_FINE = 20
_PLACES = 32
#: Two odd numbers: the sequence by which weights are rounded up or down.
_STEP_A, _STEP_B = 0x9E3779B1, 0x85EBCA77
_LABEL = b"silograph/cells/v1"


@dataclass(frozen=True)
class CellRule:
    """How weights follow from noisy loads; public, and signed by all parties.

    >>> weights = CellRule(groups=3, hubs=0, most=4, spread=0).weights([1, 1, 1])
    >>> weights.row(0), weights.change
    (array([3, 3], dtype=uint64), 63)
    """

    groups: int
    hubs: int
    #: The largest weight.
    most: int
    #: The variance of the noise of a load.
    spread: int

    def __post_init__(self) -> None:
        if self.groups < 2 or self.hubs < 0 or self.rows < 3:
            raise ArgumentError("triangles of folded nodes need two groups, and three rows")
        if not 2 <= self.most < 1 << _PLACES - _FINE or self.spread < 0:
            raise ArgumentError("no such weights")

    @property
    def rows(self) -> int:
        """Hubs and groups together."""
        return self.hubs + self.groups

    @property
    def most_change(self) -> int:
        """The largest change for any loads."""
        return (self.rows - 2) * self.most**3

    def fields(self) -> tuple[object, ...]:
        """Everything, for the digest of the parameters."""
        return _LABEL.decode(), self.groups, self.hubs, self.most, self.spread

    def weights(self, loads: Sequence[int] | NDArray[np.int64]) -> "CellWeights":
        """The weights for these noisy loads: hubs first, then groups."""
        noisy = [int(load) for load in loads]
        if len(noisy) != self.rows:
            raise ArgumentError(f"there are {self.rows} rows, but {len(noisy)} loads")
        calm = self._calm(noisy[: self.hubs]) + self._calm(noisy[self.hubs :])
        both = 2 * self.groups << _FINE
        factors = [(both << _FINE) // (both - load) for load in calm]
        mean = (both << _FINE) // (both - sum(calm[self.hubs :]) // self.groups)
        return CellWeights.of(self, factors, mean)

    def _calm(self, loads: list[int]) -> list[int]:
        """Loads drawn towards their mean, in units of 2^−_FINE, from 0 to three quarters full."""
        if not loads:
            return []
        n, total = len(loads), sum(loads)
        spread = n * sum(load * load for load in loads) - total * total  # n² times the variance
        kept = max(spread - self.spread * n * n, 0)
        share = (kept << _FINE) // spread if spread else 0
        full = 3 * self.groups << _FINE - 1
        return [
            min(max(((total << _FINE) + share * (n * load - total)) // n, 0), full)
            for load in loads
        ]


@dataclass(frozen=True, eq=False)
class CellWeights:
    """The weights of all cells; every party has the same."""

    rule: CellRule
    #: For a hub the weight of its cells with groups. For a group a number whose product with that
    #: of another group is the weight of their cell. All weights are in units of 2^−_PLACES.
    numbers: tuple[int, ...]
    #: The weight of a cell of two hubs.
    one: int

    @classmethod
    def of(cls, rule: CellRule, factors: list[int], mean: int) -> "CellWeights":
        """From the factors of rows, in units of 2^−_FINE, and the factor at the mean load."""
        hubs, groups = factors[: rule.hubs], factors[rule.hubs :]
        first, second = sorted(groups)[-1:-3:-1]
        unit = 1 << _FINE
        # A weight is below its number plus one: rounding goes up or down.
        top = max(Fraction(first * second, mean * unit), Fraction(max(hubs, default=unit), unit))
        scale = Fraction((rule.most - 1) << _PLACES) / top
        one = int(scale)
        root = math.isqrt((one << 3 * _FINE) // mean)  # of scale/mean, in units of 2^−_FINE
        numbers = (*(one * g >> _FINE for g in hubs), *(root * g >> 2 * _FINE for g in groups))
        return cls(rule, numbers, one)

    @property
    def scale(self) -> float:
        """The weight of an edge that has no company."""
        return math.ldexp(self.one, -_PLACES)

    def exact(self, a: int) -> NDArray[np.uint64]:
        """The weights of row a right of the diagonal before rounding, in units of 2^−_PLACES."""
        hubs, numbers = self.rule.hubs, self._numbers
        if a >= hubs:
            own: NDArray[np.uint64] = numbers[a] * numbers[a + 1 :]
            return own
        row = np.full(self.rule.rows - 1 - a, numbers[a], dtype=np.uint64)
        row[: hubs - 1 - a] = self.one
        return row

    def row(self, a: int) -> NDArray[np.uint64]:
        """The weights of row a right of the diagonal."""
        others = np.arange(a + 1, self.rule.rows, dtype=np.uint64)
        below = (np.uint64(_STEP_A * a % (1 << _PLACES)) + np.uint64(_STEP_B) * others) % np.uint64(
            1 << _PLACES
        )
        return (self.exact(a) + below) >> np.uint64(_PLACES)

    @cached_property
    def _numbers(self) -> NDArray[np.uint64]:
        return np.array(self.numbers, dtype=np.uint64)

    @cached_property
    def change(self) -> int:
        """By how much one bucket can change the count, at most.

        Every weight is at most x + 1, where x is its exact number. Sums of (x_ac+1)·(x_cb+1) over
        rows c are sums of the numbers of rows and of their squares, and they grow with the numbers
        of a and b: the two largest are enough. So are, for the rows other than a and b, the
        largest of all but as many.
        """
        unit, rule = 1 << _PLACES, self.rule
        hubs = [Fraction(x, unit) + 1 for x in sorted(self.numbers[: rule.hubs])]
        groups = sorted(self.numbers[rule.hubs :])
        first, second, others = groups[-1], groups[-2], groups[2:]
        over_groups = (
            Fraction(first * second * sum(x * x for x in others), unit * unit)
            + Fraction((first + second) * sum(others), unit)
            + len(others)
        )
        found = [(Fraction(first * second, unit) + 1) * (over_groups + sum(h * h for h in hubs))]
        one = Fraction(self.one, unit) + 1
        if hubs:
            over_groups = hubs[-1] * (Fraction(first * sum(groups[1:]), unit) + rule.groups - 1)
            found.append(hubs[-1] * (over_groups + one * sum(hubs[1:])))
        if rule.hubs > 1:
            found.append(one * (rule.groups * hubs[-1] * hubs[-2] + (rule.hubs - 2) * one * one))
        return max(1, min(math.floor(max(found)), rule.most_change))

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the rule and of all numbers: members compare it before they count."""
        fields = (*self.rule.fields(), self.one, *self.numbers)
        return hashlib.sha256(",".join(map(str, fields)).encode()).digest()
