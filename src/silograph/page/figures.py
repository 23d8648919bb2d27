"""Figures of a result's page: degrees, errors against epsilon, the largest of many answers."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from silograph.dp.loss import shown_loss
from silograph.page.answer import Count, Facts, Vector
from silograph.page.charts import COLOURS, Figure, Key, Panel, altair, inline

__all__ = ["degree_figure", "error_figure", "vector_figure"]

#: Places of a vector that are drawn; all of them are in what can be saved.
_DRAWN = 20
_HUES = ("feat", "baseline", "sealed", "feat+", "other", "curator")
_DASHES = ("", "7 3", "2 3", "10 3 2 3", "5 5", "1 2")


def degree_figure(facts: Facts) -> Figure | None:
    """How many nodes have which degree."""
    if not facts.degrees:
        return None
    library = altair()
    rows: list[dict[str, Any]] = [
        {
            "degree": each.label,
            "nodes": round(each.value, 2),
            "error": each.stderr,
            "low": each.low,
            "high": each.high,
        }
        for each in facts.degrees
    ]
    base = library.Chart(inline(rows)).encode(
        x=library.X(
            "degree:N",
            sort=[row["degree"] for row in rows],
            title="degree",
            axis=library.Axis(labelAngle=0, grid=False),
            scale=library.Scale(paddingInner=0.2),
        ),
        tooltip=[
            library.Tooltip("degree:N", title="degree"),
            library.Tooltip("nodes:Q", title="nodes", format=",.1f"),
            library.Tooltip("low:Q", title="95 % from", format=",.1f"),
            library.Tooltip("high:Q", title="95 % to", format=",.1f"),
        ],
    )
    bars = base.mark_bar(color=COLOURS["feat"], cornerRadiusEnd=3).encode(
        y=library.Y("nodes:Q", title="nodes")
    )
    spread = base.mark_rule(color=COLOURS["ink"], strokeWidth=1.5).encode(y="low:Q", y2="high:Q")
    most = max(facts.degrees, key=lambda each: each.value)
    told = (
        f"Bars: nodes of each degree. The most, about {most.value:,.0f}, have degree {most.label}."
    )
    return Figure(
        "degree-distribution",
        "Noisy degree distribution",
        "How many nodes have a degree in each range, fitted to what the noise lets through. Lines "
        "are 95 % intervals of the noise; smoothing can shift nodes between neighbouring bars.",
        [Panel("Nodes by degree", told, library.layer(bars, spread), height=300)],
        {
            "degree": "degree",
            "nodes": "nodes",
            "error": "standard error",
            "low": "95 % from",
            "high": "95 % to",
        },
        rows,
        [
            Key("estimated nodes", COLOURS["feat"], mark="bar"),
            Key("95 % interval", COLOURS["ink"]),
        ],
    )


def error_figure(facts: Facts) -> Figure | None:
    """How the error would move with epsilon."""
    counts = [each for each in facts.answers if each.curve is not None]
    if facts.vector is not None and facts.vector.curve is not None:
        return _errors(facts, [(facts.vector, 1.0)], "standard error of a typical answer")
    if len(counts) == 1:
        return _errors(facts, [(counts[0], 1.0)], "standard error")
    clear = [(each, abs(each.value) / 100) for each in counts if abs(each.value) > 2 * each.stderr]
    return _errors(facts, clear, "standard error, % of the answer") if clear else None


def _errors(
    facts: Facts, answers: Sequence[tuple[Count | Vector, float]], measure: str
) -> Figure | None:
    library = altair()
    rows: list[dict[str, Any]] = []
    for answer, unit in answers:
        if answer.curve is None:
            continue
        points = [*((e, s, "predicted") for e, s in answer.curve.points)]
        points.append((*answer.curve.own, "this run"))
        rows += [
            {
                "answer": answer.name,
                "epsilon": epsilon,
                "error": error / unit,
                "standard": error,
                "kind": kind,
            }
            for epsilon, error, kind in points
        ]
    names = [answer.name for answer, _ in answers]
    hues = [COLOURS[_HUES[i % len(_HUES)]] for i in range(len(names))]
    dashes = [_DASHES[i % len(_DASHES)] for i in range(len(names))]
    strokes = [[int(part) for part in dash.split()] or [1, 0] for dash in dashes]
    scale = library.Scale(domain=names, range=hues)
    base = library.Chart(inline(rows)).encode(
        x=library.X(
            "epsilon:Q",
            title="ε, the privacy budget (log scale)",
            scale=library.Scale(type="log", nice=False),
            axis=library.Axis(grid=False, values=_ticks(rows), format="~g"),
        ),
        y=library.Y(
            "error:Q",
            title=f"{measure} (log scale)",
            scale=library.Scale(type="log", nice=True),
            axis=library.Axis(format=",~g" if "%" in measure else "~s", **_lines(rows)),
        ),
        color=library.Color("answer:N", scale=scale, title=None),
        strokeDash=library.StrokeDash(
            "answer:N", scale=library.Scale(domain=names, range=strokes), title=None
        ),
        tooltip=[
            library.Tooltip("answer:N", title="answer"),
            library.Tooltip("kind:N", title="error"),
            library.Tooltip("epsilon:Q", title="ε", format=".4g"),
            library.Tooltip("error:Q", title=measure, format=",.4g"),
            library.Tooltip("standard:Q", title="± (standard error)", format=",.4g"),
        ],
    )
    predicted = base.transform_filter("datum.kind == 'predicted'")
    lines = predicted.mark_line()
    hover = predicted.mark_point(size=160, opacity=0, filled=True)
    own = base.transform_filter("datum.kind == 'this run'").mark_point(
        size=110, filled=True, shape="diamond", opacity=1, strokeDash=[1, 0]
    )
    spent = (
        library.Chart(inline([{"epsilon": facts.epsilon}]))
        .mark_rule(color=COLOURS["quiet"], strokeDash=[3, 3])
        .encode(x="epsilon:Q")
    )
    near = f"At ε = {shown_loss(facts.epsilon)} the error is that of this run; it falls as ε grows."
    told = f"Lines of the predicted error of {', '.join(names)} against epsilon. {near}"
    keys = [Key(n, h, d) for n, h, d in zip(names, hues, dashes, strict=True)]
    return Figure(
        "error-by-epsilon",
        "How the error would move with ε",
        f"Lines are predictions for the same method; the mark at ε = {shown_loss(facts.epsilon)} "
        f"is this run's own error. A smaller ε protects more and blurs more. Predictions are for "
        f"{facts.reference}.",
        [
            Panel(
                f"{measure[0].upper()}{measure[1:]}", told, library.layer(spent, lines, hover, own)
            )
        ],
        {"answer": "answer", "epsilon": "ε", "standard": "standard error", "kind": "kind"},
        rows,
        [*keys, Key("this run", COLOURS["ink"], mark="point")],
    )


def _lines(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Lines at powers of ten alone, where there are some: more of them would hide the curves."""
    low, high = (math.log10(bound(row["error"] for row in rows)) for bound in (min, max))
    powers = range(math.floor(low), math.ceil(high) + 1)
    return {"values": [10.0**power for power in powers]} if high - low > 1 else {"tickCount": 6}


def _ticks(rows: Sequence[dict[str, Any]]) -> list[float]:
    usual = (0.05, 0.1, 0.2, 0.5, 1, 2, 3, 5, 10, 20)
    low, high = (bound(row["epsilon"] for row in rows) for bound in (min, max))
    return [tick for tick in usual if low <= tick <= high]


def vector_figure(vector: Vector) -> Figure | None:
    """The largest of many answers; those of groups in their own order."""
    if vector.query == "degree_histogram" or not vector.values.size:
        return None  # the degree distribution is a figure of its own
    library = altair()
    ranked = vector.each == "node"
    order = np.argsort(-vector.values if ranked else np.arange(len(vector.values)), kind="stable")
    order = order[:_DRAWN]
    rows: list[dict[str, Any]] = [
        {
            "node": vector.places[i],
            "value": float(vector.values[i]),
            "error": float(vector.stderrs[i]),
            "low": float(vector.lows[i]),
            "high": float(vector.highs[i]),
        }
        for i in order.tolist()
    ]
    what = vector.name.lower()
    base = library.Chart(inline(rows)).encode(
        y=library.Y(
            "node:N",
            sort=[row["node"] for row in rows],
            title=None,
            axis=library.Axis(labelLimit=140, grid=False),
        ),
        tooltip=[
            library.Tooltip("node:N", title=vector.each),
            library.Tooltip("value:Q", title=what, format=",.2f"),
            library.Tooltip("low:Q", title="95 % from", format=",.2f"),
            library.Tooltip("high:Q", title="95 % to", format=",.2f"),
        ],
    )
    spread = base.mark_rule(color=COLOURS["feat"], strokeWidth=4, opacity=0.35).encode(
        x=library.X("low:Q", title=what, scale=library.Scale(zero=not ranked)), x2="high:Q"
    )
    dots = base.mark_point(color=COLOURS["feat"], filled=True, size=60, opacity=1).encode(
        x="value:Q"
    )
    warning = (
        " The largest of many noisy numbers are likelier to be too large than too small: do not "
        "read a ranking from them alone."
    )
    title = f"The largest {what}" if vector.query == "degrees" else "The largest answers"
    size = vector.values.size
    first, of, rest = vector.each.partition(" of ")
    which = "largest" if ranked else "first"
    return Figure(
        "largest",
        title if ranked else vector.name,
        f"Dots are estimates and lines 95 % intervals.{warning if ranked else ''}",
        [
            Panel(
                f"{len(rows)} of {size:,} {first}s{of}{rest}",
                f"The {len(rows)} {which} estimates with their intervals.",
                library.layer(spread, dots),
                height=max(120, 22 * len(rows)),
            )
        ],
        {
            "node": vector.each,
            "value": what,
            "error": "standard error",
            "low": "from",
            "high": "to",
        },
        rows,
    )
