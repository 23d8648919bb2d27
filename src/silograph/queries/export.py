"""The raw noisy graph for other tools, with a warning each time it leaves."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from silograph.errors import CalibrationWarning
from silograph.extras import library
from silograph.graph.bitrows import BitRows
from silograph.graph.export import adjacency
from silograph.graph.universe import NodeUniverse

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

__all__ = ["to_edges", "to_networkx", "to_scipy"]


def to_edges(graph: BitRows, universe: NodeUniverse | None) -> np.ndarray[Any, Any]:
    """A (k, 2) array of ids, or of positions without a universe."""
    _warn()
    return _edges(graph, universe)


def to_networkx(graph: BitRows, universe: NodeUniverse | None) -> "networkx.Graph[Any]":
    """An undirected graph whose nodes are ids, or positions without a universe."""
    made: networkx.Graph[Any] = library("networkx", "networkx graphs").Graph()
    _warn()
    made.add_nodes_from(range(graph.n) if universe is None else universe.ids)
    made.add_edges_from(_edges(graph, universe).tolist())
    return made


def to_scipy(graph: BitRows) -> "scipy.sparse.csr_array":
    """A symmetric n × n matrix of zeros and ones in the order of the universe."""
    library("scipy.sparse", "sparse matrices")  # where it is absent, nothing leaves
    _warn()
    made: scipy.sparse.csr_array = adjacency(graph.pairs(), graph.n)
    return made


def _edges(graph: BitRows, universe: NodeUniverse | None) -> np.ndarray[Any, Any]:
    pairs = graph.pairs()
    return pairs if universe is None else np.asarray(universe.ids)[pairs]


def _warn() -> None:
    warnings.warn(
        "this is the raw noisy graph: most of its edges may be noise, and statistics of it are "
        "not calibrated; the release's own queries are",
        CalibrationWarning,
        stacklevel=4,
    )
