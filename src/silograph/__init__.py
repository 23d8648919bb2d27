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
from importlib.metadata import version
from typing import TYPE_CHECKING

from silograph import errors
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

if TYPE_CHECKING:
    from silograph import report

__version__ = version("silograph")

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

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """``silograph.report``, when it is first asked for: most programs make no pages."""
        if name == "report":
            return import_module("silograph.report")
        raise AttributeError(f"module 'silograph' has no attribute {name!r}")
