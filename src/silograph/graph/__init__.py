"""Graphs: the public node universe, the edges of a silo, and the sources of both."""

from silograph.graph.partitioned import PartedSilo
from silograph.graph.reading import LoadReport
from silograph.graph.samples import clustered_power_law, dataset, read_graph, split, union
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse, UniverseComparison
from silograph.graph.window import Window

__all__ = [
    "LoadReport",
    "NodeUniverse",
    "PartedSilo",
    "Silo",
    "UniverseComparison",
    "Window",
    "clustered_power_law",
    "dataset",
    "read_graph",
    "split",
    "union",
]
