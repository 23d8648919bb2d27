"""Small answers of every kind, from seeds."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import silograph as sg
from silograph.errors import SilographWarning
from silograph.page.answer import Facts, facts_of
from tests.support.parties import SeededEntropy

NASTY = "</script><img src=x onerror=alert(1)>\"'&"


def federation(nodes: int = 60, ledger: sg.Ledger | None = None) -> sg.Federation:
    graph = sg.clustered_power_law(nodes, seed=1)
    return sg.Federation(sg.split(graph, 4), ledger, "claims", SeededEntropy(1))


def _count(query: str, method: str = "feat", **options: Any) -> Callable[[], Any]:
    return lambda: federation().count(query, method, **options)


def _without_a_list() -> sg.Federation:
    graph = sg.clustered_power_law(60, seed=1)
    silos = [
        sg.Silo.from_edges(sg.NodeUniverse.open(), part.pairs.astype(str))
        for part in sg.split(graph, 4)
    ]
    return sg.Federation(silos, None, "claims", SeededEntropy(1))


KINDS: dict[str, Callable[[], Any]] = {
    "release": lambda: federation().collect(3.0, "masked"),
    "open": lambda: federation().collect(3.0, "masked", 0),
    "committee": lambda: federation().collect(3.0),
    "clear": lambda: federation().collect(3.0, "clear"),
    "printed": lambda: federation(12).collect(1.0, "elgamal/printed", 0),
    "replace": lambda: federation(12).collect(1.0, "elgamal/replace", 0),
    "drawn": lambda: sg.Release.draw(
        sg.clustered_power_law(60, seed=1), sg.Channel.symmetric(2.0), 1
    ),
    "sealed": lambda: federation().seal(1.0),
    "sealed triangles": lambda: federation().seal(1.0, ["triangles"]),
    "sealed shares": lambda: federation(30).seal(1.0, ["triangles"], delta=0),
    "sealed delta": lambda: federation(30).seal(2.0, delta=1e-9),
    "reports": lambda: federation().reports(3.0, 1),
    "triangles": _count("triangles", epsilon=3.0),
    "two stars": _count("kstars", epsilon=3.0, k=2),
    "degrees": _count("degrees", epsilon=3.0),
    "histogram": _count("degree_histogram", epsilon=3.0),
    "sealed count": _count("triangles", "sealed", epsilon=1.0),
    "raw": _count("triangles", "baseline", epsilon=1.0, raw=True),
    "feat+": _count(
        "triangles", "feat+", epsilon=3.0, protocol="masked", local="paper", split="paper"
    ),
    "feat+ gradient": _count("edges", "feat+", epsilon=3.0),
    "folded": lambda: federation().collect(8.0, fold=sg.Fold(60, hubs=3)),
    "folded open": lambda: _without_a_list().collect(8.0, "masked", fold=sg.Fold(60, ["0"])),
    "folded count": _count("triangles", epsilon=8.0, fold=sg.Fold(60)),
    "bare": lambda: sg.Estimate("triangles", 5.0, 1.0, 3.0),
}


@cache
def answer(kind: str) -> Any:
    """One answer of each kind that a page can be made of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SilographWarning)  # no ledger, and collusion 0
        return KINDS[kind]()


@cache
def facts(kind: str) -> Facts:
    """What is said of it, without a ledger."""
    return facts_of(answer(kind))
