"""How numbers are shown, and small HTML for notebooks.

The HTML has no script and no colour of its own, so that it suits light and dark pages alike; every
text in it is escaped.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from silograph.privacy.loss import shown_loss
from silograph.privacy.views import View

__all__ = ["definitions", "number", "table", "views_table"]

_LINE = "border:0;border-bottom:1px solid rgba(128,128,128,.35)"
_CELL = f"{_LINE};padding:.25em .75em .25em 0;vertical-align:top;background:transparent"
_TABLE = "border-collapse:collapse;border:0;margin:.4em 0;max-width:60em;color:inherit"
_CAPTION = (
    "caption-side:top;text-align:left;padding:0 0 .3em;color:inherit;font-weight:600;"
    "white-space:nowrap"
)


def number(x: float) -> str:
    """Counts get separators, ratios and tiny errors keep digits.

    >>> number(1612010.4), number(0.51961)
    ('1,612,010', '0.5196')
    """
    if not math.isfinite(x):
        return str(x)
    if abs(x) >= 1e15:
        return f"{x:.6e}"
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.4g}"


def definitions(caption: str, rows: Mapping[str, str], more: str = "") -> str:
    """A table of names and what they are, with ``more`` HTML below it."""
    body = "".join(
        f'<tr><th scope="row" style="{_CELL};text-align:left;font-weight:400;opacity:.75">'
        f'{escape(name)}</th><td style="{_CELL};text-align:left">{escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f"<div>{_whole(caption, body)}{more}</div>"


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()
) -> str:
    """A table with a head; the columns ``right`` hold numbers."""
    sides = [
        "right;white-space:nowrap" if column in right else "left" for column in range(len(head))
    ]
    heads = "".join(
        f'<th scope="col" style="{_CELL};text-align:{side};font-weight:400;opacity:.75">'
        f"{escape(text)}</th>"
        for text, side in zip(head, sides, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{_CELL};text-align:{side}">{escape(text)}</td>'
            for text, side in zip(row, sides, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return _whole(caption, f"<tr>{heads}</tr>{body}")


def views_table(views: Iterable[View]) -> str:
    """Who learns how much."""
    rows = [
        (
            view.name,
            f"ε = {shown_loss(view.epsilon)}"
            + (f", δ = {shown_loss(view.delta)}" if view.delta else ""),
            "" if view.claimed else "not claimed",
        )
        for view in views
    ]
    return table("who learns how much of an edge", ("view", "at most", ""), rows)


def _whole(caption: str, body: str) -> str:
    above = f'<caption style="{_CAPTION}">{escape(caption)}</caption>' if caption else ""
    return f'<table style="{_TABLE}">{above}<tbody>{body}</tbody></table>'
