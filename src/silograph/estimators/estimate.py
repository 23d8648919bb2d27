"""Estimates: answers with standard errors, how they are shown, and where they come from."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from silograph.dp.loss import View, shown_loss

__all__ = [
    "NO_ANSWER",
    "Z95",
    "Estimate",
    "FloatArray",
    "Origin",
    "Provenance",
    "definitions",
    "number",
    "table",
    "uneven",
    "views_table",
]


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


# --- Where an answer comes from -------------------------------------------------------------------


@dataclass(frozen=True)
class Provenance:
    """The method, protocol, parties and run that a release comes from.

    Examples
    --------
    >>> made = Provenance("feat", "masked", silos=4, collusion=1)
    >>> made.method, made.silos
    ('feat', 4)
    """

    method: str
    protocol: str
    #: The number of silos, and how many of them may collude with the coordinator.
    silos: int
    collusion: int = 0
    #: The id of the run that made it; empty for a simulated draw.
    run: str = ""


@dataclass(frozen=True, eq=False)
class Origin:
    """The run behind an answer, as far as it is known."""

    provenance: Provenance
    #: The privacy loss of the whole run, not of this answer alone, against each view.
    views: tuple[View, ...]
    #: The certified epsilon against t silos together with the coordinator (in a sealed run:
    #: without it), for t = 0 … m−1.
    losses: Mapping[int, float]
    nodes: int
    universe_digest: str
    #: The release that was paid for, if available; it answers further queries at no cost.
    release: object = field(default=None, repr=False)


# --- Estimates ------------------------------------------------------------------------------------

FloatArray = NDArray[np.float64]
V = TypeVar("V", float, FloatArray)

#: The 97.5 % quantile of the normal law.
Z95 = 1.959963984540054
#: The start of the note of an answer that is all noise.
NO_ANSWER = "no usable answer"
#: What each entry of an array-valued answer stands for.
_PLACES = {"degrees": "node", "node_triangles": "node", "degree_histogram": "bin"}


def uneven(value: float, stderr: float, down: float, up: float) -> dict[str, Any]:
    """The ends of an interval by errors downwards and upwards, if one is above the standard error.

    >>> uneven(10.0, 1.0, 1.0, 1.0), uneven(10.0, 1.0, 1.0, 2.0)["ends"][0] < 9
    ({}, True)
    """
    return {"ends": (value - Z95 * down, value + Z95 * up)} if max(down, up) > stderr else {}


@dataclass(frozen=True, eq=False)
class Estimate(Generic[V]):
    """A value, its standard error, and its privacy cost.

    ``value`` and ``stderr`` are floats, or arrays for queries with one answer per node or bin.
    ``epsilon`` and ``delta`` are the privacy loss of the release behind the answer. Further queries
    to the same release cost nothing more.

    Examples
    --------
    >>> print(Estimate("triangles", 1612010.4, 6100.0, epsilon=3.0))
    triangles = 1,612,010 ± 6,100
      95 % interval  1,600,055 … 1,623,966
      method feat, ε = 3
    """

    query: str
    value: V
    stderr: V
    epsilon: float
    delta: float = 0.0
    method: str = "feat"
    #: What a reader must know to use the answer well; empty if there is nothing to say.
    note: str = ""
    #: The query's own parameters, such as k or the edges of bins.
    parameters: dict[str, Any] = field(default_factory=dict)
    #: Half the width of the 95 % interval, if the noise is known not to be normal.
    margin: V | None = None
    #: The ends of the 95 % interval, if it is not symmetric about the value.
    ends: tuple[V, V] | None = None
    #: The run that the answer comes from; None if unknown.
    origin: Origin | None = field(default=None, repr=False)

    @property
    def interval(self) -> tuple[V, V]:
        """The 95 % confidence interval.

        It is ``ends`` if they are given, value ± ``margin`` if there is a margin, and value ± 1.96
        standard errors otherwise. The last two are not truncated at zero. The ends of degrees, of
        the edges of small graphs and of k-stars (k ≥ 3) are within the possible range, so the
        unbiased value can be outside of them.

        Returns
        -------
        tuple
            The lower and the upper end.

        Examples
        --------
        >>> Estimate("edges", 100.0, 10.0, epsilon=1.0, margin=25.0).interval
        (75.0, 125.0)
        """
        if self.ends is not None:
            return self.ends
        margin = Z95 * self.stderr if self.margin is None else self.margin
        return self.value - margin, self.value + margin

    @property
    def name(self) -> str:
        """The query with its parameters, as it is shown."""
        shown = {k: v for k, v in self.parameters.items() if isinstance(v, int | float | str)}
        inner = ", ".join(f"{k}={v}" for k, v in shown.items())
        return f"{self.query}({inner})" if inner else self.query

    def to_dict(self) -> dict[str, Any]:
        """The estimate as plain numbers and lists, ready for JSON.

        Returns
        -------
        dict
            The value, its standard error, its interval and its cost.

        Examples
        --------
        >>> found = Estimate("edges", 100.0, 10.0, epsilon=1.0).to_dict()
        >>> found["value"], found["stderr"]
        (100.0, 10.0)
        """
        low, high = self.interval
        return {
            "query": self.query,
            "parameters": {k: _plain(v) for k, v in self.parameters.items()},
            "value": _plain(self.value),
            "stderr": _plain(self.stderr),
            "interval": [_plain(low), _plain(high)],
            "epsilon": self.epsilon,
            "delta": self.delta,
            "method": self.method,
            "note": self.note,
        }

    def __str__(self) -> str:
        cost = f"  method {self.method}, ε = {shown_loss(self.epsilon)}"
        if self.delta:
            cost += f", δ = {shown_loss(self.delta)}"
        lines: list[str]
        if isinstance(self.value, np.ndarray) and "bins" in self.parameters:
            lines = [f"{self.name}, with 95 % intervals"]
            lines += [f"  {name}: {shown}" for name, shown in self._bins().items()]
        elif isinstance(self.value, np.ndarray):
            lines = _array_lines(self.name, self.value, np.asarray(self.stderr))
        else:
            low, high = (float(end) for end in self.interval)
            lines = [
                f"{self.name} = {number(float(self.value))} ± {number(float(self.stderr))}",
                f"  95 % interval  {number(low)} … {number(high)}",
            ]
        return "\n".join([*lines, cost, *([f"  note: {self.note}"] if self.note else [])])

    def _repr_html_(self) -> str:
        """Show the estimate in notebooks."""
        rows: dict[str, str] = {}
        if isinstance(self.value, np.ndarray):
            rows["answers"] = f"{self.value.size:,}, one per {_PLACES.get(self.query, 'place')}"
            if "bins" in self.parameters:
                rows |= self._bins()
            else:
                rows["the first"] = _shown(self.value, np.asarray(self.stderr))
        else:
            low, high = (number(float(end)) for end in self.interval)
            rows["answer"] = f"{number(float(self.value))} ± {number(float(self.stderr))}"
            rows["95 % interval"] = f"{low} … {high}"
        delta = f", δ = {shown_loss(self.delta)}" if self.delta else ""
        rows["cost"] = f"ε = {shown_loss(self.epsilon)}{delta}, once for every question on this run"
        rows["method"] = self.method
        if self.note:
            rows["note"] = self.note
        return definitions(self.name, rows)

    def _bins(self) -> dict[str, str]:
        """The bins by name, with their counts and intervals; empty ones at the end are left out."""
        found, edges = {}, self.parameters["bins"]
        lows, highs = (np.asarray(end) for end in self.interval)
        last = int(np.flatnonzero(highs > 0).max(initial=0))
        for i, (value, low, high) in enumerate(
            zip(np.asarray(self.value), lows, highs, strict=True)
        ):
            if i <= last:
                first, end = edges[i], edges[i + 1] - 1
                name = f"degree {first:,}" if first == end else f"degrees {first:,} to {end:,}"
                found[name] = f"{number(round(value))} ({number(low)} … {number(high)})"
        return found


def _array_lines(name: str, value: FloatArray, stderr: FloatArray) -> list[str]:
    more = f", … ({value.size:,} values)" if value.size > 4 else ""
    return [f"{name} = [{_shown(value, stderr)}{more}]"]


def _shown(value: FloatArray, stderr: FloatArray) -> str:
    pairs = zip(value[:4], stderr, strict=False)
    return ", ".join(f"{number(v)} ± {number(s)}" for v, s in pairs)


def _plain(x: Any) -> Any:
    return x.tolist() if isinstance(x, np.ndarray | np.generic) else x
