"""Curves on logarithmic axes: one colour a method, printed dashed, meant dotted, mended solid.

A point of value zero has no place on such an axis: it is drawn at the lower edge, in a triangle
that points down, and its value says 0. Bars are one standard error to each side; one that would
reach zero ends at a tenth of its value.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reproduction.labels import METHODS, READINGS, method_name
from reproduction.measured import Reading, reading_of
from reproduction.results import Row
from silograph.page.charts import COLOURS, Key, Panel, altair, number, power_of_ten

__all__ = [
    "DASHES",
    "Mark",
    "Point",
    "Series",
    "by",
    "curve_panel",
    "error_points",
    "legend",
    "reading_along",
    "series_of",
    "spoken",
]

_FORMS: Final = (*READINGS, "limit")
DASHES: Final = {"printed": (6, 4), "meant": (2, 2), "mended": (1, 0), "limit": (1, 0)}
#: Methods that have no colour of their own.
_HUES: Final[Mapping[str, str]] = {"central": "other"}
_SHAPES: Final = ("circle", "square", "triangle-up", "cross", "diamond", "triangle-right")


@dataclass(frozen=True)
class Series:
    """One curve: its name and how it is drawn."""

    name: str
    colour: str
    dash: tuple[int, int] = (1, 0)
    shape: str = "circle"

    @property
    def fill(self) -> str:
        """Points of dashed curves are hollow."""
        return self.colour if self.dash == (1, 0) else COLOURS["paper"]


@dataclass(frozen=True)
class Point:
    """One value of a curve, with its standard error where it has one, and more for its tooltip."""

    series: str
    x: float
    value: float
    error: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Mark:
    """A number that the paper prints, marked where it belongs."""

    x: float
    value: float
    label: str


def series_of(rows: Iterable[Row], along: str) -> dict[tuple[str, str, Reading], Series]:
    """The curves in these rows, in the order of methods and forms.

    A name has what tells its curve from the others, and no more; what lies along the axis is not
    in it.
    """
    keys = {(row["method"], row["form"], reading_along(row, along)) for row in rows}
    order = list(METHODS)
    found = {}
    for method, form in sorted(
        {key[:2] for key in keys}, key=lambda key: (order.index(key[0]), _FORMS.index(key[1]))
    ):
        own = sorted(key[2] for key in keys if key[:2] == (method, form))
        for index, reading in enumerate(own):
            words = str(_telling(reading, own))
            name = method_name(method, form) + (f" ({words})" if words else "")
            found[method, form, reading] = Series(
                name,
                COLOURS[_HUES.get(method, str(method))],
                DASHES[form],
                _SHAPES[index % len(_SHAPES)],
            )
    return found


def _telling(reading: Reading, others: Sequence[Reading]) -> Reading:
    """A reading without what is the same in all others."""
    same = {
        key: nothing
        for key, nothing in (("delta", 0.0), ("collusion", 0))
        if len({getattr(other, key) for other in others}) == 1
    }
    return Reading(**reading._asdict() | same)


def reading_along(row: Row, along: str) -> Reading:
    """The reading of a row, but for what lies along the axis."""
    reading = reading_of(row)
    return reading._replace(collusion=0) if along == "collusion" else reading


def error_points(
    rows: Iterable[Row],
    along: str,
    measure: str,
    named: Mapping[tuple[str, str, Reading], Series],
) -> list[Point]:
    """Errors of rows as points of their curves."""
    return [
        Point(
            named[row["method"], row["form"], reading_along(row, along)].name,
            float(row[along]),
            float(row[measure]),
            float(row[f"{measure}_spread"]) / math.sqrt(len(row["values"])),
        )
        for row in rows
    ]


def legend(series: Iterable[Series], *, marks: bool = False) -> list[Key]:
    """The legend of a figure, for the page."""
    keys = [
        Key(
            one.name,
            one.colour,
            "" if one.dash == (1, 0) else " ".join(map(str, one.dash)),
            shape=one.shape,
            fill=one.fill,
        )
        for one in series
    ]
    if marks:
        keys.append(Key("printed in the paper's text", COLOURS["printed-point"], mark="point"))
    return keys


def curve_panel(
    title: str,
    description: str,
    points: Sequence[Point],
    series: Sequence[Series],
    *,
    x_title: str,
    y_title: str,
    marks: Sequence[Mark] = (),
    x_log: int | None = None,
    most: float = math.inf,
    height: int = 280,
) -> Panel:
    """One panel. ``x_log`` is the base of a logarithmic x axis; curves above ``most`` leave it."""
    shown = [point for point in points if math.isfinite(point.value) and point.value >= 0]
    positive = [p.value for p in shown if p.value > 0] + [mark.value for mark in marks]
    bottom, top = _decades([min(value, most) for value in positive], most)
    library = altair()
    here = {point.series for point in shown}
    drawn = [one for one in series if one.name in here]
    x = library.X(
        "x:Q",
        title=x_title,
        scale=_x_scale(library, shown, marks, x_log),
        axis=library.Axis(
            values=sorted({p.x for p in shown} | {m.x for m in marks}),
            grid=False,
            format="~s" if x_log == 10 else "~g",
        ),
    )
    y = library.Y(
        "y:Q",
        title=y_title,
        scale=library.Scale(type="log", domain=[10.0**bottom, 10.0**top], nice=False),
        axis=library.Axis(
            values=[10.0**power for power in _ticks(bottom, top)],
            labelExpr=_power_labels(bottom, top),
        ),
    )
    base = library.Chart(library.NamedData(name="points")).encode(
        x=x, y=y, color=_scale(library.Color, "series:N", drawn, "colour")
    )
    layers = [
        base.transform_filter("isValid(datum.low)")
        .mark_rule(opacity=0.4, strokeWidth=1.5, clip=True)
        .encode(y=library.Y("low:Q"), y2="high:Q"),
        base.mark_line(clip=True).encode(
            strokeDash=_scale(library.StrokeDash, "series:N", drawn, "dash")
        ),
        base.mark_point(size=45, strokeWidth=1.5, opacity=1, clip=True).encode(
            fill=_scale(library.Fill, "series:N", drawn, "fill"),
            shape=_scale(library.Shape, "series:N", drawn, "shape"),
            tooltip=[
                library.Tooltip("series:N", title="curve"),
                library.Tooltip("x:Q", title=x_title, format="~g"),
                library.Tooltip("shown:N", title=y_title),
                library.Tooltip("error:N", title="standard error"),
                library.Tooltip("note:N", title="note"),
            ],
        ),
    ]
    if any(point.value == 0 for point in shown):
        layers.append(
            base.transform_filter("datum.zero").mark_point(
                shape="triangle-down", filled=False, size=140
            )
        )
    data: dict[str, list[dict[str, Any]]] = {
        "points": [_row(point, 10.0**bottom) for point in shown]
    }
    if marks:
        layers.append(_mark_layer(library, x, y))
        data["marks"] = _mark_rows(marks)
        title = f"{title} (◆ {', '.join(mark.label for mark in marks)})"
    return Panel(title, description, library.layer(*layers), height, data)


def _mark_rows(marks: Sequence[Mark]) -> list[dict[str, Any]]:
    return [{"x": m.x, "y": m.value, "label": m.label, "shown": number(m.value)} for m in marks]


def _mark_layer(library: Any, x: Any, y: Any) -> Any:
    """Diamonds without words: those are in the panel's title, where no curve runs through them."""
    return (
        library.Chart(library.NamedData(name="marks"))
        .mark_point(
            shape="diamond", filled=True, size=110, opacity=1, color=COLOURS["printed-point"]
        )
        .encode(
            x=x,
            y=y,
            tooltip=[
                library.Tooltip("label:N", title="the paper"),
                library.Tooltip("shown:N", title=" "),
            ],
        )
    )


def _row(point: Point, floor: float) -> dict[str, Any]:
    error = point.error if point.error and point.value > 0 else None
    return {
        "series": point.series,
        "x": point.x,
        "y": max(point.value, floor),
        "zero": point.value == 0,
        "low": None if error is None else max(point.value - error, point.value / 10, floor),
        "high": None if error is None else point.value + error,
        "shown": number(point.value),
        "error": "–" if point.error is None else number(point.error),
        "note": point.note or "–",
    }


def _decades(values: Sequence[float], most: float) -> tuple[int, int]:
    """The powers of ten around these values, at least one decade apart and not above ``most``."""
    if not values:
        return 0, 1
    bottom = math.floor(math.log10(min(values)) - 0.05)
    top = math.ceil(min(math.log10(max(values)) + 0.05, math.log10(most)))
    return bottom, max(top, bottom + 1)


def _ticks(bottom: int, top: int) -> list[int]:
    step = max(1, math.ceil((top - bottom) / 7))
    return list(range(bottom, top + 1, step))


def _power_labels(bottom: int, top: int) -> str:
    """An expression of Vega that writes a power of ten as people do."""
    listed = ",".join(f"'{power_of_ten(power)}'" for power in range(bottom, top + 1))
    return f"[{listed}][round(log(datum.value)/LN10)-({bottom})]"


def _x_scale(library: Any, points: Sequence[Point], marks: Sequence[Mark], base: int | None) -> Any:
    values = [p.x for p in points] + [m.x for m in marks]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if base and low > 0:
        edge = (high / low) ** 0.04 if high > low else 2.0
        return library.Scale(type="log", base=base, domain=[low / edge, high * edge], nice=False)
    edge = (high - low) * 0.04 or 0.5
    return library.Scale(domain=[low - edge, high + edge], nice=False)


def _scale(kind: Any, field: str, series: Sequence[Series], attribute: str) -> Any:
    values: Sequence[Any] = [getattr(one, attribute) for one in series]
    if attribute == "dash":
        values = [list(dash) for dash in values]
    return kind(
        field,
        title=None,
        scale=altair().Scale(domain=[one.name for one in series], range=list(values)),
    )


def by(rows: Iterable[Row], *keys: str) -> Mapping[tuple[Any, ...], list[Row]]:
    """Rows by some of their values, in the order in which they come."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def spoken(points: Sequence[Point], axis: str) -> str:
    """The curves in one place, for those who do not see them."""
    places = sorted({point.x for point in points})
    if not places:
        return "No values."
    at = places[len(places) // 2]
    values = ", ".join(f"{point.series} {number(point.value)}" for point in points if point.x == at)
    return f"At {axis} = {at:g}: {values}."
