"""What the tables of a ledger say, within a transaction that the caller has begun."""

import math
import sqlite3
from dataclasses import dataclass
from fractions import Fraction

from silograph.errors import BudgetError
from silograph.runtime.ledger_entries import (
    Amount,
    Limit,
    Spend,
    exact_sum,
    loss_at,
    round_down,
    round_up,
)

__all__ = [
    "DEFAULT_COLLUSION",
    "Total",
    "check_budget",
    "find_spend",
    "limit_history",
    "limit_in_force",
    "lineages",
    "spends",
    "total",
]

#: The level at which a lineage without a limit is shown.
DEFAULT_COLLUSION = 1
_ZERO = Fraction(0)


@dataclass(frozen=True)
class Total:
    """What was spent, exactly. ``epsilon`` is None where some loss has no bound."""

    epsilon: Fraction | None
    delta: Fraction
    collusion: int

    def amount(self) -> Amount:
        """As floats that are not too small."""
        epsilon = math.inf if self.epsilon is None else round_up(self.epsilon)
        return Amount(epsilon, round_up(self.delta), self.collusion)

    def left(self, limit: Limit) -> Amount:
        """What a limit leaves, as floats that are not too large."""
        spent = self.epsilon
        epsilon = 0.0 if spent is None else round_down(max(Fraction(limit.epsilon) - spent, _ZERO))
        delta = round_down(max(Fraction(limit.delta) - self.delta, _ZERO))
        return Amount(epsilon, delta, limit.collusion)

    def passes(self, limit: Limit) -> bool:
        """Whether this is more than the limit. (A fraction and a float compare exactly.)"""
        return self.epsilon is None or self.epsilon > limit.epsilon or self.delta > limit.delta

    def plus(self, epsilon: float, delta: float) -> "Total":
        """This and one more loss."""
        bounded = self.epsilon is not None and math.isfinite(epsilon)
        added = (self.epsilon or _ZERO) + Fraction(epsilon) if bounded else None
        return Total(added, self.delta + Fraction(delta), self.collusion)


def total(connection: sqlite3.Connection, lineage: str, collusion: int | None = None) -> Total:
    """All that was spent on a lineage, at a level (by default the one that its limit counts).

    Each spend counts at the smallest level that it recorded at or above the wanted one, like
    :func:`~silograph.runtime.ledger_entries.loss_at`; without any it counts as unbounded.
    """
    if collusion is None:
        limit = limit_in_force(connection, lineage)
        collusion = DEFAULT_COLLUSION if limit is None else limit.collusion
    found = connection.execute(
        "SELECT delta, (SELECT epsilon FROM losses WHERE spend = number AND collusion >= ?"
        " ORDER BY collusion LIMIT 1) FROM spends WHERE lineage = ?",
        (collusion, lineage),
    ).fetchall()
    epsilons = [epsilon for _, epsilon in found if epsilon is not None]
    return Total(
        exact_sum(epsilons) if len(epsilons) == len(found) else None,
        exact_sum(delta for delta, _ in found),
        collusion,
    )


def check_budget(connection: sqlite3.Connection, asked: Spend, limit: Limit) -> None:
    """Refuse a spend that would pass the limit."""
    level, epsilon = loss_at(asked.losses, limit.collusion)
    spent = total(connection, asked.lineage, limit.collusion)
    if not spent.plus(epsilon, asked.delta).passes(limit):
        return
    left = spent.left(limit)
    wanted = Amount(epsilon, asked.delta, limit.collusion)
    if math.isfinite(epsilon):
        note = "" if level == limit.collusion else f" (counted from t = {level})"
    elif limit.collusion > max(asked.losses):
        note = " (no loss was given for that level or a higher one)"
    else:
        note = ""
    raise BudgetError(
        f"lineage {asked.lineage!r}: run {asked.run!r}, {asked.phase}, asks for {wanted} at "
        f"collusion t = {limit.collusion}{note}, and {left} is left of {limit.amount()}; "
        "nothing was spent",
        asked.lineage,
        limit.collusion,
        (epsilon, asked.delta),
        (left.epsilon, left.delta),
    )


def limit_in_force(connection: sqlite3.Connection, lineage: str) -> Limit | None:
    """The last limit that was set."""
    row = connection.execute(
        "SELECT lineage, epsilon, delta, collusion, time FROM limits"
        " WHERE lineage = ? ORDER BY number DESC LIMIT 1",
        (lineage,),
    ).fetchone()
    return None if row is None else Limit(*row)


def limit_history(connection: sqlite3.Connection, lineage: str | None) -> list[Limit]:
    """Every limit that was set (for one lineage), oldest first."""
    found = connection.execute(
        "SELECT lineage, epsilon, delta, collusion, time FROM limits"
        " WHERE ?1 IS NULL OR lineage = ?1 ORDER BY number",
        (lineage,),
    )
    return [Limit(*row) for row in found]


def spends(connection: sqlite3.Connection, lineage: str | None) -> list[Spend]:
    """Every spend (of one lineage), oldest first."""
    losses: dict[int, dict[int, float]] = {}
    for spend, collusion, epsilon in connection.execute("SELECT * FROM losses"):
        losses.setdefault(spend, {})[collusion] = math.inf if epsilon is None else epsilon
    found = connection.execute(
        "SELECT number, lineage, run, phase, delta, view, method, time FROM spends"
        " WHERE ?1 IS NULL OR lineage = ?1 ORDER BY number",
        (lineage,),
    )
    return [_spend(row, losses.get(row[0], {})) for row in found]


def find_spend(connection: sqlite3.Connection, lineage: str, run: str, phase: str) -> Spend | None:
    """The spend of one phase of one run, if it was made."""
    row = connection.execute(
        "SELECT number, lineage, run, phase, delta, view, method, time FROM spends"
        " WHERE lineage = ? AND run = ? AND phase = ?",
        (lineage, run, phase),
    ).fetchone()
    if row is None:
        return None
    losses = connection.execute("SELECT collusion, epsilon FROM losses WHERE spend = ?", row[:1])
    return _spend(row, {t: math.inf if epsilon is None else epsilon for t, epsilon in losses})


def _spend(row: tuple[int, str, str, str, float, str, str, str], losses: dict[int, float]) -> Spend:
    number, lineage, run, phase, delta, view, method, time = row
    return Spend(number, lineage, run, phase, losses, delta, view, method, time)


def lineages(connection: sqlite3.Connection) -> list[str]:
    """Every lineage with a spend or a limit, by name."""
    found = connection.execute(
        "SELECT lineage FROM spends UNION SELECT lineage FROM limits ORDER BY lineage"
    )
    return [lineage for (lineage,) in found]
