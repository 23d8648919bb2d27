"""What the tables of a ledger say, within a transaction that the caller has begun."""

import math
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from silograph.errors import BudgetError, LedgerError
from silograph.runtime.ledger_entries import (
    Amount,
    Limit,
    Spend,
    from_units,
    loss_at,
    round_down,
    round_up,
    to_units,
)

__all__ = [
    "DEFAULT_COLLUSION",
    "Total",
    "Totals",
    "check_budget",
    "find_spend",
    "is_new",
    "level_in_force",
    "limit_history",
    "limit_in_force",
    "lineages",
    "restores",
    "spends",
]

#: The level at which a lineage without a limit is shown.
DEFAULT_COLLUSION = 1


@dataclass(frozen=True)
class Total:
    """What was spent, exactly, in units. ``epsilon`` is None where some loss has no bound."""

    epsilon: int | None
    delta: int
    collusion: int

    def amount(self) -> Amount:
        """As floats that are not too small."""
        epsilon = math.inf if self.epsilon is None else round_up(from_units(self.epsilon))
        return Amount(epsilon, round_up(from_units(self.delta)), self.collusion)

    def left(self, limit: Limit) -> Amount:
        """What a limit leaves, as floats that are not too large."""
        epsilon = 0 if self.epsilon is None else max(to_units(limit.epsilon) - self.epsilon, 0)
        delta = max(to_units(limit.delta) - self.delta, 0)
        return Amount(
            round_down(from_units(epsilon)), round_down(from_units(delta)), limit.collusion
        )

    def passes(self, limit: Limit) -> bool:
        """Whether this is more than the limit."""
        return (
            self.epsilon is None
            or self.epsilon > to_units(limit.epsilon)
            or self.delta > to_units(limit.delta)
        )

    def plus(self, epsilon: float | None, delta: float) -> "Total":
        """This and one more loss; None, or infinity, is one without a bound."""
        if self.epsilon is None or epsilon is None or math.isinf(epsilon):
            added = None
        else:
            added = self.epsilon + to_units(epsilon)
        return Total(added, self.delta + to_units(delta), self.collusion)


class Totals:
    """Totals by lineage and level, which read only what was added since they last looked.

    That is sound because a ledger is only added to, in the order of its numbers. A ledger that
    has lost entries in the meantime is refused.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[tuple[str, int], tuple[int, Total]] = {}

    def at(self, connection: sqlite3.Connection, lineage: str, collusion: int) -> Total:
        """All that was spent on a lineage, at one level.

        Each spend counts as :func:`~silograph.runtime.ledger_entries.loss_at` says: by its largest
        loss up to the smallest level that it recorded at or above the wanted one; without such a
        level it counts as unbounded.
        """
        start = (0, Total(0, 0, collusion))
        seen, spent = self._known.get((lineage, collusion), start)
        (last,) = connection.execute("SELECT ifnull(max(number), 0) FROM spends").fetchone()
        if last < seen:
            raise LedgerError(
                f"{self._path}: the ledger has lost entries: it had {seen}, and has {last}. "
                "Restore it from a backup; nothing was spent"
            )
        for delta, epsilon in connection.execute(
            # The plus keeps to the order of numbers, rather than to all spends of the lineage.
            # No epsilon is one without a bound, and so is no level at all.
            "SELECT delta, (SELECT CASE WHEN count(*) = count(epsilon) THEN max(epsilon) END"
            " FROM losses WHERE spend = number AND collusion <="
            " (SELECT min(collusion) FROM losses WHERE spend = number AND collusion >= ?))"
            " FROM spends WHERE number > ? AND +lineage = ?",
            (collusion, seen, lineage),
        ):
            spent = spent.plus(epsilon, delta)
        self._known[lineage, collusion] = (last, spent)
        return spent


def level_in_force(limit: Limit | None) -> int:
    """The level that a limit counts, or else the one at which a lineage is shown."""
    return DEFAULT_COLLUSION if limit is None else limit.collusion


def check_budget(asked: Spend, spent: Total, limit: Limit) -> None:
    """Refuse a spend that, with what was spent at the limit's level, would pass the limit."""
    level, epsilon = loss_at(asked.losses, limit.collusion)
    if not spent.plus(epsilon, asked.delta).passes(limit):
        return
    left = spent.left(limit)
    wanted = Amount(epsilon, asked.delta, limit.collusion)
    if math.isinf(epsilon) and limit.collusion > max(asked.losses):
        note = " (no loss was given for that level or a higher one)"
    else:
        note = "" if level == limit.collusion else f" (counted from t = {level})"
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


def is_new(connection: sqlite3.Connection, lineage: str) -> bool:
    """Whether the ledger has limits, and neither a limit nor a spend of this lineage."""
    (found,) = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM limits)"
        " AND NOT EXISTS (SELECT 1 FROM limits WHERE lineage = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM spends WHERE lineage = ?1)",
        (lineage,),
    ).fetchone()
    return bool(found)


def restores(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Every restoration from a backup, oldest first, as plain values."""
    names = ("number", "base", "seen", "seen_digest", "statement", "time")
    found = connection.execute(f"SELECT {', '.join(names)} FROM restores ORDER BY number")  # noqa: S608
    return [dict(zip(names, row, strict=True)) for row in found]
