"""Rows of results, as rules and figures ask for them: readings, cases, orders and trends.

A *case* is a setting in which methods are compared: graph, query, ε, ρ, σ, silos. A *reading* is
one way in which a method was run in all of them: its variant, its δ and its collusion t.

Errors are compared in orders of magnitude (log10). Every mean of repetitions has a standard error,
spread/√repetitions; in orders that is its relative size over ln 10.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from reproduction.results import Results, Row
from silograph.dp.loss import shown_loss

__all__ = [
    "CASE",
    "CLEAR",
    "Case",
    "Orders",
    "Reading",
    "case_of",
    "cases",
    "in_orders",
    "pick",
    "reading_of",
    "readings",
    "trend",
]


class Case(NamedTuple):
    """Where methods are compared. What a setting does not have is None."""

    graph: str
    query: str
    epsilon: float
    rho: float | None
    sigma: float | None
    silos: int


CASE = Case._fields
#: Deviation over mean of a normal variable's square, and of its size.
_NORMAL = {"mse": math.sqrt(2), "mre": math.sqrt(math.pi / 2 - 1)}
#: So many standard errors are beyond chance, also where dozens of cases are looked at.
CLEAR = 3.0


class Reading(NamedTuple):
    """One way in which a method was run."""

    variant: str
    delta: float
    collusion: int

    def __str__(self) -> str:
        parts = [self.variant] if self.variant else []
        if self.delta:
            parts.append(f"δ = {shown_loss(self.delta)}")
        if self.collusion:
            parts.append(f"t = {self.collusion}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Orders:
    """A number in orders of magnitude, with its standard error."""

    value: float
    error: float

    def below(self, limit: float) -> bool:
        """Whether it is less than the limit by more than three standard errors."""
        return self.value + CLEAR * self.error < limit

    def above(self, limit: float) -> bool:
        """Whether it is more than the limit by more than three standard errors."""
        return self.value - CLEAR * self.error > limit

    def __sub__(self, other: "Orders") -> "Orders":
        if math.isinf(self.value) and self.value == other.value:
            return Orders(0.0, 0.0)  # two errors of exactly nothing
        return Orders(self.value - other.value, math.hypot(self.error, other.error))


def case_of(row: Row) -> Case:
    return Case(*(row[key] for key in CASE))


def reading_of(row: Row) -> Reading:
    return Reading(row["variant"], row["delta"], row["collusion"])


def pick(results: Results | None, **wanted: Any) -> list[Row]:
    """The rows that have these values; none where the experiment was not run."""
    if results is None:
        return []
    return [row for row in results.rows if all(row[key] == v for key, v in wanted.items())]


def readings(rows: Iterable[Row]) -> dict[Reading, dict[Case, Row]]:
    """Rows of one method, by reading; of several collusion levels the least.

    The paper's comparisons are against a coordinator alone, so that is where its claims are judged.
    """
    rows = list(rows)
    least = min((row["collusion"] for row in rows), default=0)
    found: dict[Reading, dict[Case, Row]] = defaultdict(dict)
    for row in rows:
        if row["collusion"] == least:
            found[reading_of(row)][case_of(row)] = row
    return dict(found)


def cases(first: Mapping[Case, Row], second: Mapping[Case, Row]) -> list[Case]:
    """The cases in which both were run, in order."""
    both = first.keys() & second.keys()
    return sorted(both, key=lambda case: [(value is not None, value) for value in case])


def in_orders(row: Row, measure: str) -> Orders:
    """An error, ``mse`` or ``mre``, of one row. One of exactly zero is minus infinity.

    A single repetition shows no spread: it is taken to be that of a normal error.
    """
    mean, repetitions = row[measure], len(row["values"])
    if mean <= 0:
        return Orders(-math.inf, 0.0)
    relative = row[f"{measure}_spread"] / mean if repetitions > 1 else _NORMAL[measure]
    return Orders(math.log10(mean), relative / math.sqrt(repetitions) / math.log(10))


def trend(points: Sequence[tuple[float, Orders]]) -> Orders | None:
    """How far a straight line through the points rises from the first to the last of them.

    Least squares, each point as good as the others. The error of the rise comes from the errors of
    all points together: one point's own is itself uncertain, and smallest where its mean happens
    to be small. None for fewer than three points, or where a point has no logarithm.
    """
    if len(points) < 3 or not all(math.isfinite(orders.value) for _, orders in points):
        return None
    xs = [x for x, _ in points]
    middle = sum(xs) / len(xs)
    square = sum((x - middle) ** 2 for x in xs)
    if not square:
        return None
    weights = [(x - middle) / square * (max(xs) - min(xs)) for x in xs]
    rise = sum(w * orders.value for w, (_, orders) in zip(weights, points, strict=True))
    typical = math.hypot(*(orders.error for _, orders in points)) / math.sqrt(len(points))
    return Orders(rise, typical * math.hypot(*weights))
