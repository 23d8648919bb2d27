"""Seeded graphs for examples and experiments."""

import math
from operator import index

from silograph._core import clustered_power_law as grow
from silograph.errors import ArgumentError
from silograph.graph.report import LoadReport
from silograph.graph.seeds import seed_bytes
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse

_MOST_EDGES = 2**31


def clustered_power_law(
    n: int = 1000, edges_per_node: int = 8, closure: float = 0.6, seed: int = 0
) -> Silo:
    """A graph with a power-law degree distribution and many triangles.

    Growth with preferential attachment and triad formation. It begins with ``edges_per_node``
    nodes and no edges; every later node brings ``edges_per_node`` edges, so that there are
    (n − edges_per_node) · edges_per_node in all. After the first, each of its edges closes a
    triangle with probability ``closure``, where one is left to close. The same seed gives the
    same graph.

    Reference: P. Holme and B. J. Kim, Growing scale-free networks with tunable clustering,
    Physical Review E 65, 026107 (2002).

    >>> graph = clustered_power_law(n=100, edges_per_node=4)
    >>> graph
    <Silo 'clustered power law': 384 edges over 100 nodes>
    """
    nodes, each = _count("n", n), _count("edges_per_node", edges_per_node)
    if nodes <= each:
        raise ArgumentError(f"edges_per_node is {each}; it must be less than n, which is {nodes}")
    if nodes * each > _MOST_EDGES:
        raise ArgumentError(f"{nodes:,} · {each:,} edges are too many; at most 2^31 are made")
    try:
        share = float(closure)
    except (TypeError, ValueError):
        share = math.nan
    if isinstance(closure, (bool, str)) or not 0 <= share <= 1:
        raise ArgumentError(f"closure is {closure!r}; it must be a number from 0 to 1")
    words = grow(nodes, each, share, seed_bytes("clustered power law", seed))
    report = LoadReport(source="generated", format="holme-kim", rows=len(words), edges=len(words))
    return Silo._of(NodeUniverse.range(nodes), words, report, "clustered power law")


def _count(name: str, value: int) -> int:
    try:
        count = index(value)
    except TypeError:
        count = 0
    if isinstance(value, bool) or count < 1:
        raise ArgumentError(f"{name} is {value!r}; it must be an integer from 1 up")
    return count
