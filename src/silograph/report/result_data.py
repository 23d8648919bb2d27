"""What a reader can save from a result's page."""

import base64
import csv
import io
import json
import math
from typing import Any

from silograph.report.answer import Facts
from silograph.report.html import Markup, element

__all__ = ["download", "to_csv", "to_json"]


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
