"""Figures that the console draws itself: what is spent of a budget, and how it came to that.

They are SVG within the page, without scripts and without styles of their own: the console's style
sheet gives them the page's colours, in light and dark. Each says in words what it shows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from silograph.dp.loss import shown_loss
from silograph.ledger.book import Ledger
from silograph.ledger.entries import loss_at
from silograph.page.answer import Budget, budget_of

__all__ = ["Bar", "Course", "Lineage", "bar_of", "lineages"]

_WIDTH, _HEIGHT = 640.0, 220.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 12.0, 14.0, 34.0


# --- One bar: spent, this study, left -------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One part of a bar, from ``start`` and so ``wide``, in percent."""

    kind: str
    name: str
    amount: str
    start: float
    wide: float


@dataclass(frozen=True)
class Bar:
    """What is spent of a limit, what a study would take, and what is then left."""

    parts: tuple[Part, ...]
    words: str


def bar_of(spent: float, price: float, limit: float) -> Bar | None:
    """The bar of a budget; None where there is no limit, or a loss without a bound."""
    if not all(map(math.isfinite, (spent, price, limit))) or limit <= 0:
        return None
    whole, left = max(limit, spent + price), max(limit - spent - price, 0.0)
    kinds = (
        ("before", "spent", shown_loss(spent), spent),
        ("this", "this study", shown_loss(price), price),
        ("rest", "left after it" if price else "left", shown_loss(left, left=True), left),
    )
    parts, start = [], 0.0
    for kind, name, amount, size in kinds:
        if size or kind != "this":
            wide = 100 * size / whole
            parts.append(Part(kind, name, amount, round(start, 3), round(wide, 3)))
            start += wide
    words = ", ".join(f"{part.name} {part.amount}" for part in parts)
    return Bar(tuple(parts), f"Of a limit of ε = {shown_loss(limit, left=True)}: {words}.")


# --- The course of a budget -----------------------------------------------------------------------


@dataclass(frozen=True)
class Tick:
    """A place on an axis and what is written there."""

    place: float
    text: str


@dataclass(frozen=True)
class Dot:
    """One spend: where it is drawn, and what it was."""

    x: float
    y: float
    words: str


@dataclass(frozen=True)
class Course:
    """Steps of what was spent, under the line of the limit."""

    line: str
    area: str
    dots: tuple[Dot, ...]
    limit: float | None
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    words: str
    width: float = _WIDTH
    height: float = _HEIGHT
    left: float = _LEFT
    base: float = _HEIGHT - _BOTTOM
    end: float = _WIDTH - _RIGHT


@dataclass(frozen=True)
class Lineage:
    """One lineage of a ledger, in figures and in words for somebody who must decide."""

    name: str
    budget: Budget
    bar: Bar | None
    course: Course | None
    words: str
    spends: tuple[tuple[str, str, str, str], ...]


def lineages(ledger: Ledger, now: float) -> list[Lineage]:
    """Every lineage of a ledger."""
    return [_lineage(ledger, name, now) for name in ledger.lineages()]


def _lineage(ledger: Ledger, name: str, now: float) -> Lineage:
    rows = ledger.rows(name)
    budget = budget_of(ledger, name, rows[-1].run if rows else "")
    level = budget.spent.collusion
    spends = [(_seconds(row.time), loss_at(row.losses, level)[1], row) for row in rows]
    limit = None if budget.limit is None else budget.limit.epsilon
    bar = None if limit is None else bar_of(budget.spent.epsilon, 0.0, limit)
    course = _course([(moment, loss) for moment, loss, _ in spends], limit, now)
    listed = tuple(
        (row.time[:16].replace("T", " "), row.run, row.method, shown_loss(loss))
        for _, loss, row in reversed(spends)
    )
    return Lineage(name, budget, bar, course, _words(budget), listed)


def _words(budget: Budget) -> str:
    """What a manager wants to know: how much is gone, and what the rest is good for."""
    studies = f"{budget.spends:,} stud{'y' if budget.spends == 1 else 'ies'}"
    if budget.limit is None or budget.left is None:
        return f"{studies} so far; no limit is set, so nothing says when to stop."
    left = shown_loss(max(budget.left.epsilon, 0.0), left=True)
    of = shown_loss(budget.limit.epsilon, left=True)
    if not budget.spends:
        return f"Nothing is spent yet. The limit is ε = {of}."
    found = f"{studies} took ε = {shown_loss(budget.spent.epsilon)} of {of}; {left} is left."
    if budget.again is None:
        return found
    if budget.again == 0:
        return f"{found} That does not pay for another study like the last one."
    times = "one more study" if budget.again == 1 else f"{budget.again:,} more studies"
    return f"{found} That pays for {times} like the last one; then the data must rest for good."


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).astimezone(UTC).timestamp()


def _course(
    spends: Sequence[tuple[float, float]], limit: float | None, now: float
) -> Course | None:
    finite = [(moment, loss) for moment, loss in spends if math.isfinite(loss)]
    if not finite or len(finite) != len(spends):
        return None
    first, total = finite[0][0], sum(loss for _, loss in finite)
    span = max(now - first, 60.0)
    top = _round_top(max(total, limit or 0.0))

    def across(moment: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * (moment - first) / span, 2)

    def up(amount: float) -> float:
        return round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * amount / top, 2)

    spent, path, dots = 0.0, f"M{across(first)} {up(0)}", []
    for moment, loss in finite:
        spent += loss
        path += f"H{across(moment)}V{up(spent)}"
        when = _when(moment)
        said = f"{when}: ε = {shown_loss(loss)}, together {shown_loss(spent)}"
        dots.append(Dot(across(moment), up(spent), said))
    path += f"H{across(first + span)}"
    ticks = tuple(Tick(across(first + span * part), _day(first + span * part, span))
                  for part in (0.0, 0.5, 1.0))  # fmt: skip
    heights = tuple(Tick(up(top * part / 4), f"{top * part / 4:g}") for part in range(5))
    steps = "one step" if len(dots) == 1 else f"{len(dots)} steps"
    words = f"From {_when(first)} to {_when(now)}: {steps} up to ε = {shown_loss(spent)}"
    words += (
        f", under a limit of {shown_loss(limit, left=True)}." if limit else ", without a limit."
    )
    area = f"{path}V{up(0)}Z"
    return Course(
        path, area, tuple(dots), None if limit is None else up(limit), ticks, heights, words
    )


def _round_top(most: float) -> float:
    """A round number a little above the largest that is drawn.

    >>> [_round_top(x) for x in (7.0, 10.0, 37.0)]
    [8.0, 12.0, 40.0]
    """
    size = 10.0 ** math.floor(math.log10(max(most, 1e-9)))
    return next(
        size * step for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 12) if size * step > most * 1.04
    )


def _when(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M")


def _day(moment: float, span: float) -> str:
    form = "%H:%M:%S" if span < 600 else "%H:%M" if span < 86_400 else "%Y-%m-%d"
    return datetime.fromtimestamp(moment, UTC).strftime(form)
