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
from silograph.page import html
from silograph.page.answer import Budget, Count, Facts, Observer, Page, facts_of
from silograph.page.charts import Figure, altair, draw, scripts
from silograph.page.figures import degree_figure, error_figure, vector_figure
from silograph.page.html import Child, Markup, asset, element, section

__all__ = [
    "download",
    "lay_out",
    "ready",
    "result_page",
    "save_page",
    "spent_part",
    "to_csv",
    "to_json",
]


# --- What a reader can save from a result's page --------------------------------------------------


def download(label: str, name: str, kind: str, content: str) -> Markup:
    """A link that saves a file which is in the page itself; it needs no script."""
    data = base64.b64encode(content.encode("utf-8", "replace")).decode()
    return element("a", label, href=f"data:{kind};base64,{data}", download=name, class_="button")


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
    parts: dict[str, tuple[str, Child]] = {
        "answer": ("Answers" if len(facts.answers) > 1 else "Answer", _answer(facts, vector)),
        "spent": ("What was spent", spent_part(facts)),
        "observers": ("Who could learn what", _observers(facts)),
        "degrees": ("Degrees", _degrees(facts, degrees)),
        "errors": ("Error and ε", _errors(facts, errors)),
        "method": ("Method", _method(facts)),
        "limits": ("Not protected", _limits(facts)),
        "run": ("Run and data", _run(facts)),
    }
    drawn = [figure for figure in (vector, degrees, errors) if figure is not None]
    return html.page(
        facts.title,
        [section(anchor, name, inside) for anchor, (name, inside) in parts.items()],
        subtitle=facts.lead,
        contents={anchor: name for anchor, (name, _) in parts.items()},
        scripts=scripts(drawn),
        footer=f"Made by Silograph {__version__}. The page is whole: it fetches nothing.",
        styles=asset("result.css"),
    )


def ready() -> None:
    """Refuse where pages cannot be made here: to be asked before a run is paid for."""
    altair()


def save_page(
    path: str | os.PathLike[str],
    answer: Page,
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


def _answer(facts: Facts, vector: Figure | None) -> list[Markup | None]:
    found: list[Markup | None] = []
    if facts.vector is not None:
        found.append(element("p", facts.vector.meaning))
        if facts.vector.note:
            found.append(element("p", _sentence(facts.vector.note), class_="quiet"))
        if vector is None:
            found.append(
                element("p", "The figure is ", element("a", "below", href="#degrees"), ".")
            )
        else:
            found.append(draw(vector))
    elif len(facts.answers) == 1:
        found.append(element("div", _card(facts.answers[0]), class_="card hero"))
    else:
        found.append(_cards(facts.answers))
    found.append(
        element(
            "p",
            "Of 100 such intervals about 95 hold the true value. The noise is new in every run and "
            "is the same for everyone who looks; asking again of the same run changes nothing.",
            class_="quiet",
        )
    )
    if facts.below_zero:
        found.append(
            element(
                "p",
                "An answer or an interval here reaches below zero, where no count can be. It is "
                "left as it is: noise goes both ways, and cutting it at zero would make answers "
                "too large on average.",
                class_="note",
            )
        )
    if facts.more:
        found += [
            element("h3", "From the same run, at no further cost"),
            _cards(facts.more),
        ]
    if facts.left_out:
        found.append(element("p", facts.left_out, class_="quiet"))
    return found


def _cards(counts: tuple[Count, ...]) -> Markup:
    return element(
        "ul", [element("li", _card(count), class_="card") for count in counts], class_="answers"
    )


def _card(count: Count) -> list[Markup | None]:
    if not math.isfinite(count.value):
        why = "What it is divided by does not stand out from the noise."
        value: list[Markup | None] = [
            element("p", "not defined", class_="value"),
            element("p", why),
        ]
    elif not math.isfinite(count.stderr):
        value = [element("p", _shown(count.value), class_="value")]
    else:
        spread = element("small", f" ±\u00a0{_shown(count.stderr)}")
        value = [
            element("p", _shown(count.value), spread, class_="value"),
            *_track(count),
            element(
                "p",
                element("span", "95 % interval ", class_="quiet"),
                element("strong", f"{_shown(count.low)} … {_shown(count.high)}"),
                class_="between",
            ),
            element("p", f"± one standard error{_relative(count)}", class_="quiet small"),
        ]
    return [
        element("h3", count.name),
        *value,
        element("p", count.meaning, class_="quiet small") if count.meaning else None,
        element("p", _sentence(count.note), class_="quiet small") if count.note else None,
    ]


def _relative(count: Count) -> str:
    if not math.isfinite(count.relative):
        return ""
    if count.relative > 10:
        return ": many times the answer"
    percent = 100 * count.relative
    return f": {percent:,.0f} %" if percent >= 100 else f": {percent:.2g} %"


def _track(count: Count) -> list[Markup]:
    """The interval on a line that starts at zero, so that one sees how wide it is."""
    left, right = min(0.0, count.low), max(0.0, count.high)
    width = (right - left) * 1.04 or 1.0

    def at(value: float) -> str:
        return f"{100 * (value - left) / width:.2f}%"

    told = f"On a line from {_shown(left)}: interval from {_shown(count.low)} to "
    zero = element("u", style=f"left:{at(0.0)}") if left < 0 else None
    line = element(
        "div",
        element("i", style=f"left:{at(count.low)};width:{at(left + count.high - count.low)}"),
        zero,
        element("b", style=f"left:{at(count.value)}"),
        class_="track",
        role="img",
        aria_label=f"{told}{_shown(count.high)}.",
    )
    sides = [element("span", _shown(end)) for end in (left, right)]
    return [line, element("div", sides, class_="ends", aria_hidden="true")]


def _observers(facts: Facts) -> list[Markup]:
    if not facts.observers:
        return [element("p", "The answer does not say which run it comes from.", class_="note")]
    return [
        element(
            "p",
            "Each line is someone who may be looking, and the most that they can learn of an edge "
            "that they do not hold themselves. The bar shows how sure they can become of an edge "
            "that they thought as likely as not: empty is no wiser, full is certain.",
        ),
        element("ul", [_observer(each) for each in facts.observers], class_="observers"),
    ]


def _observer(each: Observer) -> Markup:
    share = 1.0 if math.isinf(each.epsilon) else math.tanh(each.epsilon / 2)
    kind = "good" if each.claimed else "bad" if math.isinf(each.epsilon) else "half"
    claim = "promised" if each.claimed else "no promise"
    return element(
        "li",
        element("strong", each.who),
        element("p", each.learns),
        element(
            "div",
            element(
                "div",
                element("strong", f"ε = {shown_loss(each.epsilon)}"),
                element("span", claim, class_=f"badge {kind}"),
                class_="claim",
            ),
            element(
                "span",
                element("i", style=f"width:{100 * share:.2f}%"),
                class_=f"meter {kind}",
                aria_hidden="true",
            ),
            element("span", f"δ = {shown_loss(each.delta)}", class_="quiet small")
            if each.delta
            else None,
            class_="loss",
        ),
    )


def _degrees(facts: Facts, figure: Figure | None) -> list[Markup]:
    if figure is None:
        return [element("p", facts.no_degrees, class_="note")]
    if all(each.low >= 0 for each in facts.degrees):
        return [draw(figure)]
    below = (
        "Some intervals reach below zero, where no number of nodes can be: noise goes both ways."
    )
    return [draw(figure), element("p", below, class_="note")]


def _errors(facts: Facts, figure: Figure | None) -> Markup:
    if figure is None:
        why = (
            "No answer stands out from its own noise; a larger ε, or another method, is needed."
            if facts.reference
            else "For this answer there is no formula that predicts its error at another ε."
        )
        return element("p", why, class_="note")
    return draw(figure)


def _method(facts: Facts) -> list[Markup | None]:
    told = [(element("dt", each.name), element("dd", each.text)) for each in facts.method]
    rows = [part for pair in told for part in pair]
    return [
        element("dl", rows, class_="told") if rows else None,
        element("h3", "What it assumes") if facts.assumptions else None,
        _points(facts.assumptions) if facts.assumptions else None,
    ]


def _limits(facts: Facts) -> list[Markup]:
    return [
        element("p", "A promise is worth what it leaves out. This one does not cover:"),
        _points(facts.limits),
    ]


def _points(lines: tuple[str, ...]) -> Markup:
    return element("ul", [element("li", line) for line in lines], class_="points")


def _run(facts: Facts) -> list[Markup]:
    rows = [
        part
        for name, value in facts.run.items()
        for part in (element("dt", name), element("dd", _fact(name, value)))
    ]
    return [
        element("dl", rows),
        element(
            "p",
            download(
                "Everything (JSON)", "silograph-result.json", "application/json", to_json(facts)
            ),
            download("Answers (CSV)", "silograph-answers.csv", "text/csv", to_csv(facts)),
            class_="downloads",
        ),
    ]


def _fact(name: str, value: str) -> str | Markup:
    return element("code", value) if name in ("run", "digest of the node list") else value


def _shown(value: float) -> str:
    return number(value).replace("-", "−")


def _sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:]}" + ("" if note.endswith(".") else ".")
