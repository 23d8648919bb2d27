"""The graphs of benchmarks: public ones, and made ones of any size in dense communities."""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from silograph import NodeUniverse, Silo, dataset

__all__ = ["communities", "community_pairs", "public_graph"]

#: Where public graphs may lie beside the repository.
BESIDE = Path(__file__).parents[2] / "shared" / "data"


def public_graph(name: str) -> Silo:
    """A public graph, from SILOGRAPH_DATA, from beside the repository, or fetched."""
    folder = os.environ.get("SILOGRAPH_DATA") or (BESIDE if BESIDE.is_dir() else None)
    return dataset(name, folder=folder)


def community_pairs(
    nodes: int, size: int, inside: float, between: float, seed: int
) -> NDArray[np.uint32]:
    """Edges of a graph of communities of about the same size.

    Two nodes of a community are joined with the probability ``inside``; ``between`` is the number
    of edges that each node begins to any other, on average. About nodes·(size·inside/2 + between)
    edges come out, and nodes·(size·inside³·size/6) triangles.
    """
    rng = np.random.default_rng(seed)
    left, right = np.triu_indices(size, 1)
    starts = np.arange(0, nodes - size + 1, size)
    parts = []
    # Communities are drawn some thousands at a time: a coin for each of their pairs.
    for some in np.array_split(starts, max(1, len(starts) // 4000)):
        which, pair = np.nonzero(rng.random((len(some), len(left)), dtype=np.float32) < inside)
        parts.append(np.stack([some[which] + left[pair], some[which] + right[pair]], axis=1))
    ends = rng.integers(0, nodes, size=(round(nodes * between), 2))
    parts.append(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1))
    found = np.concatenate(parts)
    key = np.unique(found[:, 0] * nodes + found[:, 1])
    return np.stack([key // nodes, key % nodes], axis=1).astype(np.uint32)


def communities(
    nodes: int, size: int = 24, inside: float = 0.79, between: float = 0.9, seed: int = 1
) -> Silo:
    """The same, as a graph over the nodes 0, 1, …"""
    pairs = community_pairs(nodes, size, inside, between, seed)
    return Silo.from_pairs(NodeUniverse.range(nodes), pairs, name="communities")
