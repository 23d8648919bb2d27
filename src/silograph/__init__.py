"""Silograph: statistics of a graph held by several silos, under edge differential privacy.

No party sees the whole graph. Each silo holds some of its edges; together the silos answer queries
about the union of their edges, with noise.

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
    from silograph.dp.channel import Channel
    from silograph.dp.loss import View
    from silograph.estimators.estimate import Estimate, Provenance
    from silograph.estimators.folded_release import FoldedRelease
    from silograph.estimators.reference import Reference
    from silograph.estimators.release import Release
    from silograph.graph import (
        LoadReport,
        NodeUniverse,
        PartedSilo,
        Silo,
        UniverseComparison,
        Window,
        clustered_power_law,
        dataset,
        read_graph,
        split,
        union,
    )
    from silograph.graph.attributes import read_groups
    from silograph.graph.fold import Fold
    from silograph.ledger.book import Ledger
    from silograph.local.federation import Federation
    from silograph.methods.baseline.answer import Reports
    from silograph.methods.hubs.answer import HubSearch
    from silograph.methods.planner import Plan, plan
    from silograph.methods.sealed.answer import SealedRelease
    from silograph.page.result import result_page, save_page

__all__ = [
    "Channel",
    "Estimate",
    "Federation",
    "Fold",
    "FoldedRelease",
    "HubSearch",
    "Ledger",
    "LoadReport",
    "NodeUniverse",
    "PartedSilo",
    "Plan",
    "Provenance",
    "Reference",
    "Release",
    "Reports",
    "SealedRelease",
    "Silo",
    "UniverseComparison",
    "View",
    "Window",
    "__version__",
    "clustered_power_law",
    "dataset",
    "errors",
    "plan",
    "read_graph",
    "read_groups",
    "result_page",
    "save_page",
    "split",
    "union",
]

#: The modules of the names above. A name is loaded on first use, so that importing the package for
#: one of them does not load all.
_HOMES = {
    "Channel": "dp.channel",
    "Estimate": "estimators.estimate",
    "Federation": "local.federation",
    "Fold": "graph.fold",
    "FoldedRelease": "estimators.folded_release",
    "HubSearch": "methods.hubs.answer",
    "Ledger": "ledger.book",
    "LoadReport": "graph",
    "NodeUniverse": "graph",
    "PartedSilo": "graph",
    "Reference": "estimators.reference",
    "Plan": "methods.planner",
    "Provenance": "estimators.estimate",
    "Release": "estimators.release",
    "Reports": "methods.baseline.answer",
    "SealedRelease": "methods.sealed.answer",
    "Silo": "graph",
    "UniverseComparison": "graph",
    "View": "dp.loss",
    "Window": "graph",
    "clustered_power_law": "graph",
    "dataset": "graph",
    "plan": "methods.planner",
    "read_graph": "graph",
    "read_groups": "graph.attributes",
    "result_page": "page.result",
    "save_page": "page.result",
    "split": "graph",
    "union": "graph",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
