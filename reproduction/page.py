"""The page of the reproduction."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproduction.figures import EXTRAS, all_figures, curve_lines
from reproduction.labels import READINGS, graph_name, listed, seeds_of
from reproduction.results import EXPERIMENTS, Results
from reproduction.verdicts import Word, counted, judge
from silograph.page.charts import number
from silograph.page.html import page

__all__ = ["TITLE", "Erratum", "errata", "reproduction_page"]


# --------------------------------------------------------------------------------------------------
# What does not hold in the paper, as data: with the tests that show it and the figures that do.


@dataclass(frozen=True)
class Erratum:
    """One point: where it stands, what is printed, what is wrong with it, what we do instead."""

    number: int
    where: str
    printed: str
    wrong: str
    instead: str
    tests: tuple[str, ...]
    figure: str = ""


def errata() -> list[Erratum]:
    """All of them, by number."""
    entries = tomllib.loads((Path(__file__).parent / "errata.toml").read_text())["erratum"]
    return [Erratum(**entry | {"tests": tuple(entry["tests"])}) for entry in entries]


# --------------------------------------------------------------------------------------------------
# The page of the reproduction: verdicts first, then every figure, the errata, and how it was made.
#
# What was not run is said to be missing, in its place. Results of a quick run are marked as such at
# the top: they show that everything works, and nothing about the paper.

TITLE = "Federated graph analytics, reproduced"
_TEMPLATES = Path(__file__).parent / "templates"
_BADGES = {
    Word.HOLDS: "good",
    Word.SOME: "half",
    Word.FAILS: "bad",
    Word.NOT_MEASURED: "",
}


def reproduction_page(found: Mapping[str, Results]) -> str:
    """The whole page, from the results of as many experiments as there are."""
    by_experiment = all_figures(found)
    verdicts = judge(found)
    drawn = [figure for own in by_experiment.values() for figure in own]
    graphs = {name: graph for results in found.values() for name, graph in results.graphs.items()}
    return page(
        "reproduction.html",
        drawn,
        _TEMPLATES,
        title=TITLE,
        found=found,
        quick=[name for name, results in found.items() if results.quick],
        verdicts=verdicts,
        counted=counted(verdicts),
        badges=_BADGES,
        by_experiment=by_experiment,
        anchors={figure.anchor for figure in drawn},
        titles={name: title for name, (title, _) in EXTRAS.items()},
        left_out={name: _left_out(results) for name, results in found.items() if results.left_out},
        curves=_curves(found.get("curves")),
        errata=errata(),
        runs=[
            (name, "quick" if results.quick else "full", len(results.rows), seeds_of(results))
            for name, results in found.items()
        ],
        made=_made(found),
        graphs=[
            (graph_name(name), *(number(graph.get(key)) for key in ("nodes", "edges", "source")))
            for name, graph in sorted(graphs.items())
        ],
        missing=[name for name in EXPERIMENTS if name not in found],
        number=number,
        readings=READINGS,
    )


def _left_out(results: Results) -> dict[str, Any]:
    """The combinations that were not run, as a table."""
    keys = [key for key in results.left_out[0] if key != "experiment"]
    rows = [[number(row.get(key)) for key in keys] for row in results.left_out]
    return {"headers": keys, "rows": rows}


def _curves(results: Results | None) -> dict[str, Any] | None:
    """Libraries and their seconds, as a table."""
    if results is None or not results.rows:
        return None
    sizes, lines = curve_lines(results)
    return {"headers": ["library", *(f"{size:,}" for size in sizes)], "rows": lines}


def _made(found: Mapping[str, Results]) -> dict[str, list[str]]:
    """Software and machines, each with the experiments that were run on them."""
    made: dict[str, list[str]] = {}
    for name, results in found.items():
        by = f"{listed(results.software)}; {listed(results.machine)}"
        made.setdefault(by, []).append(name)
    return made
