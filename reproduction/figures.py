"""The figures and tables of the reproduction."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from reproduction.curves import (
    DASHES,
    Mark,
    Point,
    Series,
    by,
    curve_panel,
    error_points,
    legend,
    series_of,
    spoken,
)
from reproduction.labels import AXES, METHODS, READINGS, graph_name, method_name, seconds
from reproduction.printed_numbers import NUMBERS, PrintedNumber
from reproduction.results import Results, Row
from reproduction.rules import distances
from silograph.page.charts import COLOURS, Figure, Panel, number

__all__ = [
    "EXTRAS",
    "SIZES",
    "TABLE",
    "all_figures",
    "curve_lines",
    "curves_figure",
    "panels_of",
    "varying",
]


# --- Libraries of elliptic curves: the paper's Table 2 beside what was measured -------------------

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


# --- The figures of the reproduction: the paper's, redrawn from rows, and what goes beyond it -----

_COLUMNS: Final = {
    "graph": "graph",
    "query": "query",
    "method": "method",
    "form": "form",
    "variant": "variant",
    "epsilon": "ε",
    "delta": "δ",
    "rho": "ρ",
    "sigma": "σ",
    "silos": "silos",
    "collusion": "t",
    "truth": "truth",
    "mse": "MSE",
    "mse_spread": "MSE, spread",
    "mre": "MRE",
    "mre_spread": "MRE, spread",
    "repetitions": "repetitions",
}
#: An answer that is so many times the truth away says nothing; how much worse, the data say.
_MOST: Final = {"mre": 1e6}
_MEASURES: Final = {"mse": "mean squared error", "mre": "mean relative error"}
#: Experiments beyond the paper: what is asked in each.
EXTRAS: Final = {
    "silos": ("The number of silos", "What more silos cost."),
    "collusion": (
        "Colluding silos",
        "What it costs to hold against t silos that pool what they know with the coordinator.",
    ),
    "communities": (
        "Silos that are communities",
        "Silos whose edges belong together, as those of branches or regions do.",
    ),
    "graphs": ("Two more graphs", "The same comparison where the paper did not look."),
    "small-epsilon": ("Small ε", "Budgets as they are used in practice."),
}


def all_figures(found: Mapping[str, Results]) -> dict[str, list[Figure]]:
    """The figures of every experiment that was run; beside ``epsilon``, how near sealed comes."""
    made: dict[str, list[Figure]] = {}
    makers: dict[str, Callable[[Results], list[Figure]]] = {
        "epsilon": _epsilon,
        "rho": _parameter,
        "sigma": _parameter,
        "time": _time,
        "curves": _libraries,
    }
    for name, results in found.items():
        if results.rows:
            made[name] = makers.get(name, _extra)(results)
    return made


def varying(results: Results) -> str:
    """The parameter that rows lie along: the one that the experiment names, else that with most
    values.
    """
    named = results.parameters.get("varies")
    if named in AXES:
        return str(named)
    counts = {key: len({row[key] for row in results.rows}) for key in AXES}
    return max(counts, key=lambda key: counts[key])


def panels_of(rows: Iterable[Row], along: str) -> list[tuple[str, str, list[Row]]]:
    """Rows by query, graph and, where it varies beside the axis, the number of silos.

    Each with the query and the name of its panel.
    """
    rows = list(rows)
    keys = ["query", "graph"]
    if along != "silos" and len({row["silos"] for row in rows}) > 1:
        keys.append("silos")
    return [
        (query, ", ".join([graph_name(graph), *(f"{m} silos" for m in silos)]), own)
        for (query, graph, *silos), own in sorted(by(rows, *keys).items())
    ]


def _epsilon(results: Results) -> list[Figure]:
    figures = []
    paper = {("2-stars", "mse"): 4, ("2-stars", "mre"): 5, ("triangles", "mse"): 6}
    for query in ("2-stars", "triangles"):
        rows = [row for row in results.rows if row["query"] == query]
        if not rows:
            continue
        for measure in _MEASURES:
            caption = (
                f"The paper's Figure {paper.get((query, measure), 7)}. The {_MEASURES[measure]} "
                "against ε; bars are one standard error."
            )
            figures.append(
                _errors(
                    f"epsilon-{query}-{measure}",
                    f"{query.capitalize()}: {measure.upper()} against ε",
                    caption,
                    rows,
                    measure,
                    "epsilon",
                    [number for number in NUMBERS if number.experiment == "epsilon"],
                )
            )
    near = distances(results)
    return [*figures, _distance(near)] if near else figures


def _parameter(results: Results) -> list[Figure]:
    name = results.experiment
    first = {"rho": 8, "sigma": 10}[name]
    return [
        _errors(
            f"{name}-{measure}",
            f"{measure.upper()} against {AXES[name]}",
            f"The paper's Figure {first + offset}. The {_MEASURES[measure]} with ε = "
            f"{_only(results.rows, 'epsilon')}; bars are one standard error.",
            results.rows,
            measure,
            name,
            [number for number in NUMBERS if number.experiment == name],
        )
        for offset, measure in enumerate(_MEASURES)
    ]


def _extra(results: Results) -> list[Figure]:
    title, caption = EXTRAS.get(results.experiment, (results.experiment, ""))
    along = varying(results)
    return [
        _errors(
            results.experiment,
            f"{title}: MRE against {AXES[along]}",
            f"{caption} {_MEASURES['mre'].capitalize()}; bars are one standard error.",
            results.rows,
            "mre",
            along,
            (),
            x_log=2 if along == "silos" else None,
        )
    ]


def _errors(
    anchor: str,
    title: str,
    caption: str,
    rows: Sequence[Row],
    measure: str,
    along: str,
    printed: Sequence[PrintedNumber],
    x_log: int | None = None,
) -> Figure:
    """Errors along a parameter, a panel for each graph and query."""
    rows = [row for row in rows if row[along] is not None]
    named = series_of(rows, along)
    series = list(named.values())
    several = len({row["query"] for row in rows}) > 1
    panels, marked = [], False
    for query, name, own in panels_of(rows, along):
        marks = [
            Mark(one.at, one.value, f"{METHODS[one.method]} {number(one.value)}")
            for one in printed
            if (one.query, one.measure) == (query, measure) and one.graph in (own[0]["graph"], None)
        ]
        marked = marked or bool(marks)
        points = error_points(own, along, measure, named)
        where = f"{query}, {name}" if several else name
        panels.append(
            curve_panel(
                where[0].upper() + where[1:],
                f"{title}, {query} on {name}. {spoken(points, AXES[along])}",
                sorted(points, key=lambda point: (point.series, point.x)),
                series,
                x_title=AXES[along],
                y_title=measure.upper(),
                marks=marks,
                x_log=x_log,
                most=_MOST.get(measure, math.inf),
            )
        )
    most = _MOST.get(measure, math.inf)
    if any(row[measure] > most for row in rows):
        caption += f" Curves above {most:,.0f} leave the panel."
    data = [
        {key: row[key] for key in _COLUMNS if key != "repetitions"}
        | {"repetitions": len(row["values"])}
        for row in rows
    ]
    return Figure(anchor, title, caption, panels, _COLUMNS, data, legend(series, marks=marked))


def _only(rows: Sequence[Row], key: str) -> str:
    return ", ".join(f"{value:g}" for value in sorted({row[key] for row in rows}))


def _distance(rows: Sequence[Mapping[str, Any]]) -> Figure:
    panels = []
    pairs = sorted({(row["query"], row["graph"]) for row in rows})
    shapes = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-right")
    series = {
        pair: Series(
            f"{pair[0]}, {graph_name(pair[1])}",
            COLOURS["sealed" if index % 2 == 0 else "other"],
            (1, 0) if index < 2 else (6, 4),
            shapes[index % len(shapes)],
        )
        for index, pair in enumerate(pairs)
    }
    for key, title in (
        ("feat_over_sealed", "FEAT's MSE over sealed's"),
        ("sealed_over_own", "sealed's MSE over its own mechanism's in one trusted hand"),
        ("sealed_over_central", "sealed's MSE over the best central mechanism's"),
    ):
        points = [
            Point(series[row["query"], row["graph"]].name, row["epsilon"], row[key])
            for row in rows
            if row[key] is not None
        ]
        panels.append(
            curve_panel(
                title[0].upper() + title[1:],
                f"{title}. {spoken(points, 'ε')}",
                points,
                list(series.values()),
                x_title="ε",
                y_title="ratio",
            )
        )
    columns = {
        "graph": "graph",
        "query": "query",
        "epsilon": "ε",
        "delta": "δ",
        "collusion": "t",
        "feat_over_sealed": "FEAT over sealed",
        "sealed_over_own": "sealed over its mechanism in one hand",
        "sealed_over_central": "sealed over the best central mechanism",
        "central": "which is",
    }
    data = [{key: row[key] for key in columns} for row in rows]
    return Figure(
        "sealed-distance",
        "Sealed beside FEAT, beside one trusted hand, and beside the best that a curator can do",
        "Not in the paper. Ratios of mean squared errors, all as mended: how much is gained on one "
        "noisy release; what it costs that nobody holds the graph; and what a curator gains who "
        "may look at the whole graph and not at noisy degrees alone. Each point is a ratio of two "
        "means over few repetitions: it is the trend that counts.",
        panels,
        columns,
        data,
        legend(series.values()),
    )


def _libraries(results: Results) -> list[Figure]:
    return [curves_figure(results)]


def _time(results: Results) -> list[Figure]:
    named = {}
    order = list(METHODS)
    for method, form, union in sorted(
        {(row["method"], row["form"], row["union"]) for row in results.rows},
        key=lambda key: (order.index(key[0]), list(READINGS).index(key[1]), key[2]),
    ):
        shape = "circle" if form == "mended" else "square"
        named[method, form, union] = Series(
            f"{method_name(method, form)} ({union})",
            COLOURS[method],
            DASHES[form],
            shape,
        )
    panels = []
    for (query, graph), rows in sorted(by(results.rows, "query", "graph").items(), key=str):
        points = [
            Point(
                named[row["method"], row["form"], row["union"]].name,
                row["rho"],
                row["seconds"],
                row["spread"],
                f"scaled up from {row['measured_pairs']:,} of {row['pairs']:,} pairs"
                if row["scaled"]
                else str(row.get("note") or "measured on all pairs"),
            )
            for row in rows
        ]
        where = f"{graph_name(graph)}" + (f", {query}" if query else "")
        panels.append(
            curve_panel(
                where[0].upper() + where[1:],
                f"Seconds against ρ, {where}. {spoken(points, 'ρ')}",
                sorted(points, key=lambda point: (point.series, point.x)),
                list(named.values()),
                x_title="ρ",
                y_title="seconds",
            )
        )
    columns = {key: key.replace("_", " ") for key in results.rows[0] if key != "experiment"}
    scaled = any(row["scaled"] for row in results.rows)
    caption = "The paper's Figure 12. Work of all parties on this machine; bars are the spread." + (
        " Some times were measured on part of the pairs and scaled up: their notes say so."
        if scaled
        else ""
    )
    return [
        Figure(
            "time",
            "Running time against ρ",
            caption,
            panels,
            columns,
            results.rows,
            legend(named.values()),
        )
    ]
