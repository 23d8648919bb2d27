"""Silograph: statistics of a graph that no one holds, under edge differential privacy.

>>> import warnings
>>> import silograph as sg
>>> silos = sg.split(sg.clustered_power_law(200, seed=1), 4)
>>> with warnings.catch_warnings():
...     warnings.simplefilter("ignore")  # no ledger: this is only an example
...     answer = sg.Federation.simulate(silos).count("triangles", epsilon=3.0)
>>> answer.query, answer.epsilon <= 3.0
('triangles', True)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from silograph import errors
from silograph._core import __version__

if TYPE_CHECKING:
    from silograph import report
    from silograph.graph import (
        LoadReport,
        NodeUniverse,
        Silo,
        UniverseComparison,
        clustered_power_law,
        dataset,
        read_graph,
        split,
        union,
    )
    from silograph.methods.planner import Plan, plan
    from silograph.privacy.channel import Channel
    from silograph.privacy.views import View
    from silograph.queries.estimate import Estimate
    from silograph.queries.outline import Outline
    from silograph.queries.release import Provenance, Release
    from silograph.queries.reports import Reports
    from silograph.queries.sealed import SealedRelease
    from silograph.runtime.federation import Federation
    from silograph.runtime.ledger import Ledger

__all__ = [
    "Channel",
    "Estimate",
    "Federation",
    "Ledger",
    "LoadReport",
    "NodeUniverse",
    "Outline",
    "Plan",
    "Provenance",
    "Release",
    "Reports",
    "SealedRelease",
    "Silo",
    "UniverseComparison",
    "View",
    "__version__",
    "clustered_power_law",
    "dataset",
    "errors",
    "plan",
    "read_graph",
    "report",
    "split",
    "union",
]

#: Where the names above live. They are loaded when they are first asked for, so that who imports
#: the package for one of them does not wait for all.
_HOMES = {
    "Channel": "privacy.channel",
    "Estimate": "queries.estimate",
    "Federation": "runtime.federation",
    "Ledger": "runtime.ledger",
    "LoadReport": "graph",
    "NodeUniverse": "graph",
    "Outline": "queries.outline",
    "Plan": "methods.planner",
    "Provenance": "queries.release",
    "Release": "queries.release",
    "Reports": "queries.reports",
    "SealedRelease": "queries.sealed",
    "Silo": "graph",
    "UniverseComparison": "graph",
    "View": "privacy.views",
    "clustered_power_law": "graph",
    "dataset": "graph",
    "plan": "methods.planner",
    "read_graph": "graph",
    "split": "graph",
    "union": "graph",
}


def __getattr__(name: str) -> object:
    if name == "report":
        return import_module("silograph.report")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
