"""Silos that are communities: most edges of a node are in one silo. For experiments.

A split by coin deals the edges of every node to all silos alike, so that no silo can vouch for
much of any node. Where silos are regions, schools or companies it is not so; this makes such a
federation out of a public graph.
"""

import numpy as np
from numpy.typing import NDArray

from silograph.errors import ArgumentError
from silograph.graph.silo import Silo

__all__ = ["communities", "community_split"]


def communities(graph: Silo, seed: int = 0, rounds: int = 30) -> NDArray[np.int64]:
    """A label for every node, by label propagation.

    In each round the nodes, in random order, take the label that most of their neighbours have (of
    several such a random one); it ends when nothing changes.

    >>> from silograph.graph.universe import NodeUniverse
    >>> two = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (2, 3)]
    >>> labels = communities(Silo.from_edges(NodeUniverse.range(6), two), seed=1)
    >>> len(set(labels[:3].tolist())), len(set(labels[3:].tolist()))
    (1, 1)
    """
    n = len(graph.universe)
    ends = np.concatenate([graph.pairs, graph.pairs[:, ::-1]]).astype(np.int64)
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    starts = np.searchsorted(ends[:, 0], np.arange(n + 1))
    draw, labels = np.random.default_rng(seed), np.arange(n)
    for _ in range(rounds):
        changed = False
        for u in draw.permutation(n).tolist():
            around = labels[ends[starts[u] : starts[u + 1], 1]]
            if not len(around):
                continue
            names, counts = np.unique(around, return_counts=True)
            best = names[counts == counts.max()]
            if labels[u] not in best:
                labels[u], changed = draw.choice(best), True
        if not changed:
            break
    return labels


def community_split(
    graph: Silo, silos: int, overlap: float = 0.0, seed: int = 0
) -> tuple[Silo, ...]:
    """Deal an edge to the silo of its smaller node's community, and a share of all edges to one
    more silo, at random.

    Communities are dealt to silos, the largest first, each to the one with the fewest edges.
    """
    if not 2 <= silos <= 64:
        raise ArgumentError(f"there must be 2 to 64 silos, not {silos}")
    if not 0 <= overlap <= 1:
        raise ArgumentError(f"overlap is {overlap!r}; it must be a number from 0 to 1")
    home = communities(graph, seed)[graph.pairs[:, 0]]
    names, edges = np.unique(home, return_counts=True)
    loads, place = np.zeros(silos, dtype=np.int64), {}
    for i in np.argsort(-edges, kind="stable").tolist():
        place[int(names[i])] = int(loads.argmin())
        loads[loads.argmin()] += edges[i]
    first = np.array([place[name] for name in home.tolist()], dtype=np.int64)
    draw = np.random.default_rng(seed + 1)
    shared = draw.random(len(first)) < overlap
    second = (first + draw.integers(1, silos, len(first))) % silos
    ids = np.array(graph.universe.ids)
    return tuple(
        Silo.from_edges(
            graph.universe,
            ids[graph.pairs[(first == i) | (shared & (second == i))]],
            name=f"silo {i + 1}",
        )
        for i in range(silos)
    )
