"""Silograph: statistics of a graph that no one holds, under edge differential privacy.

>>> import silograph as sg
>>> graph = sg.clustered_power_law(200, seed=1)
>>> release = sg.Release.draw(graph, sg.Channel.symmetric(3.0), seed=1)
>>> answer = release.triangles()
>>> low, high = answer.interval
>>> low < graph.triangles() < high
True
"""

from importlib.metadata import version

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
from silograph.privacy.channel import Channel
from silograph.privacy.views import View
from silograph.queries.estimate import Estimate
from silograph.queries.release import Provenance, Release

__version__ = version("silograph")

__all__ = [
    "Channel",
    "Estimate",
    "LoadReport",
    "NodeUniverse",
    "Provenance",
    "Release",
    "Silo",
    "UniverseComparison",
    "View",
    "__version__",
    "clustered_power_law",
    "dataset",
    "errors",
    "read_graph",
    "split",
    "union",
]
