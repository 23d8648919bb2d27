"""The page of a result."""

import base64
import csv
import io
import json
import math
import os
from pathlib import Path
from typing import Any

from silograph import __version__, whole_files
from silograph.dp.loss import shown_loss
from silograph.errors import ReportError
from silograph.estimators.estimate import number
from silograph.ledger.book import Ledger
from silograph.page.answer import Budget, Count, Facts, Observer, Page, facts_of
from silograph.page.charts import altair
from silograph.page.figures import degree_figure, error_figure, vector_figure
from silograph.page.html import environment, page

__all__ = ["lay_out", "ready", "result_page", "save_page", "to_csv", "to_json"]


# --- What a reader can save from a result's page --------------------------------------------------


def _rows(facts: Facts) -> list[dict[str, Any]]:
    found = [
        {
            "answer": count.name,
            "place": "",
            "value": count.value,
            "standard error": count.stderr,
            "from": count.low,
            "to": count.high,
        }
        for count in (*facts.answers, *facts.more)
    ]
    vector = facts.vector
    if vector is not None:
        numbers = (vector.values, vector.stderrs, vector.lows, vector.highs)
        found += [
            {
                "answer": vector.name,
                "place": place,
                "value": value,
                "standard error": stderr,
                "from": low,
                "to": high,
            }
            for place, value, stderr, low, high in zip(
                vector.places, *(each.tolist() for each in numbers), strict=True
            )
        ]
    return found


def to_csv(facts: Facts) -> str:
    """Every answer, one a line."""
    out = io.StringIO()
    rows = _rows(facts)
    writer = csv.DictWriter(out, ["answer", "place", "value", "standard error", "from", "to"])
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def to_json(facts: Facts) -> str:
    """Everything that the page says in numbers."""
    budget = facts.budget
    whole = {
        "title": facts.title,
        "epsilon": facts.epsilon,
        "delta": facts.delta,
        "answers": _rows(facts),
        "observers": [
            {"who": o.who, "epsilon": o.epsilon, "delta": o.delta, "promised": o.claimed}
            for o in facts.observers
        ],
        "degrees": [
            {"from": d.first, "to": d.last, "nodes": d.value, "low": d.low, "high": d.high}
            for d in facts.degrees
        ],
        "errors": [
            {"answer": each.name, "points": each.curve.points, "own": each.curve.own}
            for each in (*facts.answers, facts.vector)
            if each is not None and each.curve is not None
        ],
        "ledger": None
        if budget is None
        else {
            "lineage": budget.lineage,
            "spent": budget.spent.to_dict(),
            "limit": None if budget.limit is None else budget.limit.to_dict(),
            "left": None if budget.left is None else budget.left.to_dict(),
        },
        "run": facts.run,
        "assumptions": facts.assumptions,
        "not protected": facts.limits,
    }
    return json.dumps(_finite(whole), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """As JSON can say it: an infinite loss is the word, what is no number is nothing."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "unbounded" if value == math.inf else None
    return value


# --- The part of a result's page about what was spent and what is left ----------------------------


def _losses(facts: Facts) -> dict[str, str]:
    """The cost of the run, and where it leaves the ledger."""
    found = {"ε of this run": shown_loss(facts.epsilon)}
    if facts.delta:
        found["δ of this run"] = shown_loss(facts.delta)
    budget = facts.budget
    if budget is not None:
        found[f"spent on {budget.lineage}"] = shown_loss(budget.spent.epsilon)
        if budget.limit is not None and budget.left is not None:
            found["limit"] = shown_loss(budget.limit.epsilon, left=True)
            found["left"] = shown_loss(max(budget.left.epsilon, 0.0), left=True)
    return found


def _shares(budget: Budget) -> list[dict[str, Any]]:
    """The parts of the bar; none where there is no limit, or no number, to show them against."""
    if budget.limit is None or budget.left is None or not math.isfinite(budget.spent.epsilon):
        return []
    whole = max(budget.limit.epsilon, budget.spent.epsilon)
    if whole <= 0:
        return []
    run = min(budget.run.epsilon, budget.spent.epsilon) if budget.run is not None else 0.0
    parts = (
        ("before", "other runs", budget.spent.epsilon - run),
        ("this", "this run", run),
        ("rest", "left", max(whole - budget.spent.epsilon, 0.0)),
    )
    return [{"kind": k, "name": n, "percent": 100 * (part / whole)} for k, n, part in parts]


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


# --- The page of a result: the answer, what it cost, who could learn what, and how sure it is -----

_READABLE = 0o644


def result_page(
    answer: Page,
    *,
    ledger: Ledger | None = None,
    lineage: str | None = None,
    title: str | None = None,
) -> str:
    """One self-contained HTML page about an answer.

    ``answer`` is an :class:`~silograph.Estimate` (then the page is about that question), or a
    :class:`~silograph.Release`, :class:`~silograph.SealedRelease` or
    :class:`~silograph.Reports` (then about every question that it answers). With a ``ledger`` it
    says what remains; ``lineage`` is one of the ledger's, and can be left out where that leaves no
    doubt.

    The page holds what was paid for and nothing else: it can be shown to whoever may see the
    answer, but with a ledger it also shows that silo's budget. The same input gives the same page.
    """
    return lay_out(facts_of(answer, ledger=ledger, lineage=lineage, title=title))


def lay_out(facts: Facts) -> str:
    """The page that says these facts."""
    vector = None if facts.vector is None else vector_figure(facts.vector)
    degrees, errors = degree_figure(facts), error_figure(facts)
    budget = facts.budget
    return page(
        "result.html",
        [figure for figure in (vector, degrees, errors) if figure is not None],
        facts=facts,
        title=facts.title,
        vector=vector,
        degrees=degrees,
        errors=errors,
        answers=[_card(count) for count in facts.answers],
        sharpness=_sharpness(facts),
        hiding=_hiding(facts),
        more=[_card(count) for count in facts.more],
        losses=_losses(facts),
        shares=[] if budget is None else _shares(budget),
        remaining="" if budget is None else _remaining(budget),
        observers=[shown_observer(each) for each in facts.observers],
        json=_encoded(to_json(facts)),
        csv=_encoded(to_csv(facts)),
        version=__version__,
        shown=_shown,
        sentence=_sentence,
    )


def ready() -> None:
    """Refuse where pages cannot be made here: to be asked before a run is paid for."""
    altair()
    environment()


def save_page(
    answer: Page,
    path: str | os.PathLike[str],
    *,
    ledger: Ledger | None = None,
    lineage: str | None = None,
    title: str | None = None,
) -> None:
    """Write the page to a file, in the place of one that may be there; whole or not at all."""
    made = result_page(answer, ledger=ledger, lineage=lineage, title=title)
    # A lone surrogate in a title cannot be written.
    content = made.encode("utf-8", "replace")
    whole_files.replace(Path(path), content, ReportError, mode=_READABLE)


def _card(count: Count) -> dict[str, Any]:
    """A count, with its interval on a line that starts at zero where it has one."""
    line = None
    if math.isfinite(count.stderr):
        # An unbiased value can be outside an interval that is cut to what is possible.
        left, right = min(0.0, count.low, count.value), max(0.0, count.high, count.value)
        width = (right - left) * 1.04 or 1.0
        spots = {
            "low": count.low - left,
            "width": count.high - count.low,
            "zero": -left,
            "value": count.value - left,
        }
        at = {name: f"{100 * spot / width:.2f}%" for name, spot in spots.items()}
        line = {"left": left, "right": right} | at
    defined = math.isfinite(count.value)
    return {"count": count, "defined": defined, "line": line, "relative": _relative(count)}


#: Relative errors up to which an answer deserves a word, and its colour.
_SHARP = ((0.05, "sharp", "good"), (0.2, "fair", "good"), (0.5, "rough", "half"))
#: The same for the ε of a promise.
_HIDDEN = ((1.0, "strongly", "good"), (3.0, "fairly well", "half"), (5.0, "weakly", "bad"))


def _sharpness(facts: Facts) -> dict[str, Any] | None:
    """How sharp the one answer is, as a place on a scale from 0.1 % to 100 % and a word."""
    if len(facts.answers) != 1 or not math.isfinite(facts.answers[0].relative):
        return None
    error = facts.answers[0].relative
    found = next(((word, kind) for most, word, kind in _SHARP if error <= most), None)
    word, kind = found or ("no use", "bad")
    place = min(max(math.log10(max(error, 1e-3)) / 3 + 1, 0.0), 1.0)
    return {
        "word": word,
        "kind": kind,
        "left": f"{100 * place:.1f}%",
        "error": _relative(facts.answers[0]),
    }


def _hiding(facts: Facts) -> dict[str, Any] | None:
    """What an onlooker can know of an edge at most, before and after, and a word for it."""
    promised = [each.epsilon for each in facts.observers if each.claimed]
    if not promised:
        return None
    epsilon = max(promised)
    found = next(((word, kind) for most, word, kind in _HIDDEN if epsilon <= most), None)
    word, kind = found or ("hardly", "bad")
    after = 100.0 if math.isinf(epsilon) else 100 / (1 + math.exp(-epsilon))
    return {"word": word, "kind": kind, "after": f"{after:.3g}"}


def _relative(count: Count) -> str:
    if not math.isfinite(count.relative):
        return ""
    if count.relative > 10:
        return ": many times the answer"
    percent = 100 * count.relative
    return f": {percent:,.0f} %" if percent >= 100 else f": {percent:.2g} %"


def shown_observer(each: Observer) -> dict[str, Any]:
    """An observer as pages show it; ``share`` is how sure it can become, in percent."""
    share = 1.0 if math.isinf(each.epsilon) else math.tanh(each.epsilon / 2)
    return {
        "who": each.who,
        "learns": each.learns,
        "claimed": each.claimed,
        "kind": "good" if each.claimed else "bad" if math.isinf(each.epsilon) else "half",
        "epsilon": shown_loss(each.epsilon),
        "delta": shown_loss(each.delta) if each.delta else "",
        "share": f"{100 * share:.2f}",
        # However small the promise: a bar that is nearly full is no good news.
        "level": "good" if share < 0.5 else "half" if share < 0.9 else "bad",
    }


def _encoded(content: str) -> str:
    return base64.b64encode(content.encode("utf-8", "replace")).decode()


def _shown(value: float) -> str:
    return number(value).replace("-", "−")


def _sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:]}" + ("" if note.endswith(".") else ".")
