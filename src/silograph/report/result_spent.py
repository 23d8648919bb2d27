"""The part of a result's page about what was spent and what is left."""

import math

from silograph.privacy.loss import shown_loss
from silograph.report.answer import Facts
from silograph.report.budget import Budget
from silograph.report.html import Markup, element

__all__ = ["spent_part"]


def spent_part(facts: Facts) -> list[Markup | None]:
    """The cost of the run, and where it leaves the ledger."""
    rows = {"ε of this run": shown_loss(facts.epsilon)}
    if facts.delta:
        rows["δ of this run"] = shown_loss(facts.delta)
    found: list[Markup | None] = [
        element(
            "p",
            "This is the most that the run costs any edge, against everyone to whom a promise is "
            "made below. It is paid once; every further question on the same run is free.",
        )
    ]
    budget = facts.budget
    if budget is None:
        note = (
            "No ledger was given with this page, so it cannot say what remains. Each silo's own "
            "ledger can: silograph ledger."
        )
        return [*found, _tiles(rows), element("p", note, class_="note")]
    rows[f"spent on {budget.lineage}"] = shown_loss(budget.spent.epsilon)
    if budget.limit is not None and budget.left is not None:
        rows["limit"] = shown_loss(budget.limit.epsilon, left=True)
        rows["left"] = shown_loss(max(budget.left.epsilon, 0.0), left=True)
    return [*found, _tiles(rows), *_bar(budget), element("p", _remaining(budget))]


def _tiles(rows: dict[str, str]) -> Markup:
    tiles = [element("div", element("dt", k), element("dd", v)) for k, v in rows.items()]
    return element("dl", tiles, class_="figures")


def _bar(budget: Budget) -> list[Markup]:
    if budget.limit is None or budget.left is None or not math.isfinite(budget.spent.epsilon):
        return []
    whole = max(budget.limit.epsilon, budget.spent.epsilon)
    if whole <= 0:
        return []
    run = min(budget.run.epsilon, budget.spent.epsilon) if budget.run is not None else 0.0
    shares = {
        "before": ("other runs", (budget.spent.epsilon - run) / whole),
        "this": ("this run", run / whole),
        "rest": ("left", max(whole - budget.spent.epsilon, 0.0) / whole),
    }
    bar = element(
        "div",
        [
            element("i", class_=kind, style=f"width:{100 * s:.3f}%")
            for kind, (_, s) in shares.items()
        ],
        class_="budget",
        role="img",
        aria_label=", ".join(f"{name} {100 * s:.0f} %" for name, s in shares.values()),
    )
    keys = [
        element("li", element("span", class_=f"swatch {kind}"), element("span", name))
        for kind, (name, _) in shares.items()
    ]
    return [bar, element("ul", keys, class_="legend")]


def _remaining(budget: Budget) -> str:
    runs = f"{budget.spends:,} spend{'' if budget.spends == 1 else 's'}"
    level = f"counted against {_silos(budget.spent.collusion)} together with the coordinator"
    found = f"The ledger has {runs} on lineage {budget.lineage}, {level}."
    if budget.run is None:
        found += " This run is not among them."
    if budget.limit is None or budget.left is None:
        return f"{found} No limit is set, so nothing says when to stop."
    if budget.spent.delta or budget.limit.delta:
        found += (
            f" Of δ {shown_loss(budget.spent.delta)} is spent and "
            f"{shown_loss(max(budget.left.delta, 0.0), left=True)} left."
        )
    if budget.again is None:
        return found
    if budget.again == 0:
        return f"{found} What is left does not pay for the same run again."
    times = "once" if budget.again == 1 else f"{budget.again:,} times"
    return f"{found} What is left pays for the same run {times} more."


def _silos(count: int) -> str:
    return f"{count} silo{'' if count == 1 else 's'}"
