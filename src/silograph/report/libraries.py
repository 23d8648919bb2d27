"""Libraries of elliptic curves: the paper's Table 2 beside what was measured."""

from collections.abc import Sequence
from typing import Final

from silograph.experiments.results import Results
from silograph.report.charts import COLOURS, Figure, Panel, number
from silograph.report.curves import Point, Series, curve_panel, legend, spoken
from silograph.report.words import seconds

__all__ = ["SIZES", "TABLE", "curve_lines", "curves_figure"]

#: Table 2, in seconds, at 10, 10², … 10⁶ elements (as its labels must be read).
TABLE = {
    "libsodium": (0.0056, 0.059, 0.558, 5.26, 53.14, 528.10),
    "openssl": (0.0098, 0.060, 0.549, 5.49, 53.76, 539.52),
    "mcl": (0.0541, 0.504, 4.983, 49.84, 498.84, 4986.43),
}
SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
_LIBRARIES: Final = {
    "libsodium": ("libsodium", COLOURS["other"], "square"),
    "openssl": ("OpenSSL", COLOURS["ink"], "triangle-up"),
    "mcl": ("MCL", COLOURS["quiet"], "diamond"),
    "silograph": ("Silograph", COLOURS["accent"], "circle"),
}


def curves_figure(results: Results) -> Figure:
    """Table 2 and ours, as curves."""
    series, points = [], []
    for library, (name, colour, shape) in _LIBRARIES.items():
        own = sorted(
            (row for row in results.rows if row["library"] == library),
            key=lambda row: float(row["elements"]),
        )
        if own:
            series.append(Series(f"{name}, here", colour, (1, 0), shape))
            points += [
                Point(
                    f"{name}, here",
                    row["elements"],
                    row["seconds"],
                    None,
                    "scaled up from fewer elements" if row["scaled"] else str(row["operation"]),
                )
                for row in own
            ]
        if library in TABLE:
            series.append(Series(f"{name}, in the paper", colour, (6, 4), shape))
            points += [
                Point(f"{name}, in the paper", size, took, None, "Table 2, as printed")
                for size, took in zip(SIZES, TABLE[library], strict=True)
            ]
    panel: Panel = curve_panel(
        "Seconds against elements",
        f"Seconds against elements. {spoken(points, 'elements')}",
        points,
        series,
        x_title="elements",
        y_title="seconds",
        x_log=10,
        height=340,
    )
    columns = {key: key.replace("_", " ") for key in results.rows[0] if key != "experiment"}
    return Figure(
        "curves",
        "Libraries of elliptic curves",
        "The paper's Table 2, its columns read as 10 … 10⁶ elements (erratum 14), beside the "
        "same work on this machine.",
        [panel],
        columns,
        results.rows,
        legend(series),
    )


def curve_lines(results: Results) -> tuple[Sequence[int], list[list[str]]]:
    """Sizes, and a line for each library, in the paper and here; scaled times are in brackets."""
    sizes = sorted({*SIZES, *(row["elements"] for row in results.rows)})
    lines = []
    for library in dict.fromkeys([*TABLE, *(row["library"] for row in results.rows)]):
        if library in TABLE:
            printed = dict(zip(SIZES, TABLE[library], strict=True))
            lines.append([f"{library}, in the paper", *(number(printed.get(n)) for n in sizes)])
        own = {row["elements"]: row for row in results.rows if row["library"] == library}
        if own:
            version = next(iter(own.values()))["version"]
            lines.append([f"{library} {version}, here", *(seconds(own.get(n)) for n in sizes)])
    return sizes, lines
