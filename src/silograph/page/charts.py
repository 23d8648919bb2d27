"""Figures of a page: described by Vega-Altair, drawn by Vega in the reader's browser.

Vega's script is embedded once a page (vl-convert carries it), nothing is fetched. Colours in a
chart are the page's own, by name (:data:`COLOURS`): a figure turns dark, and prints light, with the
page. Each panel can be saved as SVG and PNG, with title and legend, in light colours; each figure
carries its numbers as a table, and as CSV and JSON to save.

>>> chart = altair().Chart(inline([{"x": 1, "y": 2}])).mark_point().encode(x="x:Q", y="y:Q")
>>> shown = Figure("f", "Title", "What is seen.", [Panel("P", "A point.", chart)], {"x": "x"}, [])
>>> specifications([shown])["f"]["panels"][0]["description"]
'A point.'
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from silograph.extras import library

__all__ = [
    "COLOURS",
    "Figure",
    "Key",
    "Panel",
    "altair",
    "inline",
    "number",
    "power_of_ten",
    "specifications",
    "vega",
]

#: One colour a method, everywhere; and what else a chart may paint with.
COLOURS: Final = {
    name: f"var(--{name.replace('+', 'plus')})"
    for name in (
        "baseline", "feat", "feat+", "sealed", "curator", "other",
        "ink", "quiet", "line", "grid", "paper", "accent", "printed-point",
    )
}  # fmt: skip

_RAISED: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
#: What the bundle hands to the page's own script.
_GLOBALS: Final = "window.vegaEmbed = vegaEmbed;"
_FONT: Final = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif"
_CONFIG: Final = {
    "background": "transparent",
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": COLOURS["quiet"],
        "titleColor": COLOURS["quiet"],
        "gridColor": COLOURS["grid"],
        "domainColor": COLOURS["line"],
        "tickColor": COLOURS["line"],
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelPadding": 5,
        "labelOverlap": True,
    },
    "legend": {
        "labelColor": COLOURS["ink"],
        "titleColor": COLOURS["quiet"],
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "orient": "bottom",
        "columns": 3,
        "symbolStrokeWidth": 2,
        "symbolSize": 130,
        "symbolOpacity": 1,
    },
    "title": {"color": COLOURS["ink"], "fontSize": 14, "anchor": "start"},
    "line": {"strokeWidth": 2},
    "text": {"color": COLOURS["ink"], "fontSize": 11},
}


@dataclass(frozen=True)
class Panel:
    """One chart: its name, what it shows in a sentence (for those who do not see it), and the
    chart itself, an Altair chart of one view or of layers, without width.

    A chart has its rows in it (:func:`inline`), or names them (Altair's ``NamedData``) and they
    are in ``data``: Altair copies a chart many times.
    """

    title: str
    description: str
    chart: Any
    height: int = 260
    data: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Key:
    """One line of a legend. ``dash`` is a stroke pattern; ``mark`` is "line", "bar" or "point".

    ``shape`` is the shape of points, by Vega's names; ``fill`` their inside, where it differs.
    """

    label: str
    colour: str
    dash: str = ""
    mark: str = "line"
    shape: str = ""
    fill: str = ""


@dataclass(frozen=True)
class Figure:
    """Panels that belong together, and the numbers in them.

    ``anchor`` is the figure's address in the page and the start of the names of its files.
    ``columns`` maps keys of ``rows`` to what they are called in the table.
    """

    anchor: str
    title: str
    caption: str
    panels: Sequence[Panel]
    columns: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]
    legend: Sequence[Key] = ()

    @property
    def cells(self) -> list[list[str]]:
        """The rows as the table shows them."""
        return [[number(row.get(key)) for key in self.columns] for row in self.rows]

    @property
    def numeric(self) -> list[int]:
        """Which columns hold numbers, by the first row."""
        first = [self.rows[0].get(key) for key in self.columns] if self.rows else []
        return [i for i, value in enumerate(first) if _is_number(value)]


def altair() -> Any:
    """Altair, where it and the script that draws are installed."""
    library("vl_convert", "pages")
    return library("altair", "pages")


def inline(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as the data of a chart."""
    return altair().InlineData(values=[_plain(row) for row in rows])


def specifications(figures: Iterable[Figure]) -> dict[str, Any]:
    """What the page's script draws and saves, by the anchors of the figures."""
    return {
        figure.anchor: {
            "columns": list(figure.columns),
            "rows": [_plain(row) for row in figure.rows],
            "panels": [_specification(figure, panel) for panel in figure.panels],
        }
        for figure in figures
    }


@cache
def vega() -> str:
    """The script that draws, as vl-convert carries it."""
    return str(library("vl_convert", "pages").javascript_bundle(_GLOBALS))


def number(value: Any) -> str:
    """A number as people read it: counts in full, others with four digits and powers of ten.

    >>> number(1234567), number(4986.43), number(0.0123456), number(3.456e11), number(-2e-7)
    ('1,234,567', '4,986', '0.01235', '3.456 × 10¹¹', '−2 × 10⁻⁷')
    >>> number(None), number("text")
    ('–', 'text')
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) and abs(value) < 10**12:
        return f"{value:,}".replace("-", "−")
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        text = f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:,.4g}"
        return text.replace("-", "−")
    digits, _, power = f"{value:.3e}".partition("e")
    digits = digits.rstrip("0").rstrip(".")
    return f"{digits} × {power_of_ten(int(power))}".replace("-", "−")


def power_of_ten(power: int) -> str:
    """
    >>> power_of_ten(-12)
    '10⁻¹²'
    """
    return f"10{str(power).translate(_RAISED)}"


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON can say it: what is no number is nothing."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }


def _specification(figure: Figure, panel: Panel) -> dict[str, Any]:
    title = panel.title if len(figure.panels) == 1 else f"{figure.title}: {panel.title}"
    chart = panel.chart.properties(
        width="container", height=panel.height, title=title, description=panel.description
    )
    # Altair checks what it is given as a chart is built; the whole once more takes seconds.
    made: dict[str, Any] = chart.to_dict(validate=False)
    if panel.data:
        own = {name: [_plain(row) for row in rows] for name, rows in panel.data.items()}
        made["datasets"] = made.get("datasets", {}) | own
    made["config"] = _CONFIG
    made["autosize"] = {"type": "fit-x", "contains": "padding"}
    return made


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
