"""What a run took from a ledger, and what is left there."""

import math
from dataclasses import dataclass
from fractions import Fraction

from silograph.errors import ArgumentError
from silograph.runtime.ledger import Amount, Ledger, Spend
from silograph.runtime.ledger_entries import loss_at, round_up

__all__ = ["Budget", "budget_of"]


@dataclass(frozen=True)
class Budget:
    """One lineage of a ledger, at the level of collusion that its limit counts at."""

    lineage: str
    spends: int
    spent: Amount
    #: None where nobody set a limit.
    limit: Amount | None
    left: Amount | None
    #: What this run cost at that level, where the ledger records it.
    run: Amount | None
    #: How often the same run could be paid for from what is left; None where that is not known.
    again: int | None


def budget_of(ledger: Ledger, lineage: str | None, run: str) -> Budget:
    """The budget behind a run; the lineage can be left out where the ledger leaves no doubt."""
    rows = ledger.rows()
    name = _lineage(ledger, lineage, [row for row in rows if run and row.run == run])
    own = [row for row in rows if row.lineage == name]
    limit, left = ledger.limit(name), ledger.remaining(name)
    spent = ledger.spent(name)
    cost = _cost([row for row in own if run and row.run == run], spent.collusion)
    return Budget(
        name,
        len(own),
        spent,
        None if limit is None else limit.amount(),
        left,
        cost,
        None if left is None or cost is None else _again(left, cost),
    )


def _lineage(ledger: Ledger, given: str | None, found: list[Spend]) -> str:
    known = ledger.lineages()
    if given is not None:
        if given not in known:
            has = ", ".join(map(repr, known)) or "none"
            raise ArgumentError(f"this ledger has no lineage {given!r}; it has {has}")
        return given
    names = {row.lineage for row in found} or set(known)
    if len(names) != 1:
        has = ", ".join(map(repr, sorted(names))) or "none"
        raise ArgumentError(f"say which lineage of the ledger the answer is about; it has {has}")
    return names.pop()


def _cost(rows: list[Spend], level: int) -> Amount | None:
    if not rows:
        return None
    losses = [loss_at(row.losses, level)[1] for row in rows]
    finite = all(map(math.isfinite, losses))
    epsilon = round_up(sum(map(Fraction, losses), Fraction(0))) if finite else math.inf
    return Amount(epsilon, round_up(sum((Fraction(row.delta) for row in rows), Fraction(0))), level)


def _again(left: Amount, cost: Amount) -> int | None:
    """Whole repetitions; a loss without a bound can never be paid again under a limit."""
    if math.isinf(cost.epsilon):
        return 0
    times = [
        math.floor(Fraction(have) / Fraction(each))
        for have, each in ((left.epsilon, cost.epsilon), (left.delta, cost.delta))
        if each > 0
    ]
    return max(min(times), 0) if times else None
