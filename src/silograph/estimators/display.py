"""How answers are shown: numbers, small tables for notebooks, and what entries stand for."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph.dp.loss import View, shown_loss

__all__ = [
    "NO_ANSWER",
    "Places",
    "definitions",
    "described",
    "number",
    "table",
    "views_table",
]

#: The start of the note of an answer that is all noise.
NO_ANSWER = "no usable answer"


# --- How numbers are shown, and small HTML tables for notebooks -----------------------------------
#
# The HTML has no scripts and sets no colours, so it suits light and dark pages. All text in it is
# escaped.
_LINE = "border:0;border-bottom:1px solid rgba(128,128,128,.35)"
_CELL = f"{_LINE};padding:.25em .75em .25em 0;vertical-align:top;background:transparent"
_TABLE = "border-collapse:collapse;border:0;margin:.4em 0;max-width:60em;color:inherit"
_CAPTION = (
    "caption-side:top;text-align:left;padding:0 0 .3em;color:inherit;font-weight:600;"
    "white-space:nowrap"
)


def number(x: float) -> str:
    """Format a number: counts get separators, ratios and tiny errors keep digits.

    >>> number(1612010.4), number(0.51961)
    ('1,612,010', '0.5196')
    """
    if not math.isfinite(x):
        return str(x)
    if abs(x) >= 1e15:
        return f"{x:.6e}"
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.4g}"


def definitions(caption: str, rows: Mapping[str, str], more: str = "") -> str:
    """A table of names and values, with ``more`` HTML below it."""
    body = "".join(
        f'<tr><th scope="row" style="{_CELL};text-align:left;font-weight:400;opacity:.75">'
        f'{escape(name)}</th><td style="{_CELL};text-align:left">{escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f"<div>{_whole(caption, body)}{more}</div>"


def described(title: str, rows: Mapping[str, str], views: Iterable[View]) -> str:
    """The same in a terminal: names and values, and the loss against each view."""
    width = max(map(len, rows)) + 1
    lines = [f"  {name:{width}} {text}" for name, text in rows.items()]
    return "\n".join([title, *lines, *(f"  {view}" for view in views)])


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()
) -> str:
    """A table with a header row; the columns in ``right`` hold numbers."""
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
    """A table of the privacy loss against each view."""
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


# --- What the entries of an answer stand for


@dataclass(frozen=True, eq=False)
class Places:
    """What the entries of an array-valued answer stand for."""

    #: One entry, as it is called: "node", "bin", "group".
    each: str
    #: The columns of a table of all entries: names, and a value for each entry.
    columns: Mapping[str, Sequence[Any]]
    #: Where the entries are in the array, if it is not a list of them.
    entries: tuple[NDArray[np.intp], ...] | None = None
