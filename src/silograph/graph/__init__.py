"""Graphs: the public node universe, the edges of a silo, and where both come from."""

from silograph.graph.comparison import UniverseComparison
from silograph.graph.datasets import dataset
from silograph.graph.files import read_graph
from silograph.graph.generate import clustered_power_law
from silograph.graph.report import LoadReport
from silograph.graph.silo import Silo, union
from silograph.graph.split import split
from silograph.graph.universe import NodeUniverse

__all__ = [
    "LoadReport",
    "NodeUniverse",
    "Silo",
    "UniverseComparison",
    "clustered_power_law",
    "dataset",
    "read_graph",
    "split",
    "union",
]
