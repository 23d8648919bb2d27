"""The federations of the experiments: a graph by name, dealt to silos, with the truth about it.

A federation is a function of what is written in an experiment's parameters. Worker processes keep
those that they made: many tasks ask for the same one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from silograph.errors import ArgumentError
from silograph.estimators.reference import Reference, reference_of
from silograph.graph.bits import BitRows
from silograph.graph.samples import REGISTRY, clustered_power_law, dataset, split, union
from silograph.graph.silo import Silo

__all__ = [
    "GENERATED",
    "GRAPHS",
    "SPLITS",
    "Dealt",
    "Federation",
    "Graph",
    "communities",
    "community_split",
    "federation",
]


# --- Silos that are communities: most edges of a node are in one silo. For experiments ------------
#
# A split by coin deals the edges of every node to all silos alike, so that no silo can vouch for
# much of any node. Where silos are regions, schools or companies it is not so; this makes such a
# federation out of a public graph.


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


# --- Graphs and silos -----------------------------------------------------------------------------

#: The graph that needs no file.
GENERATED = "generated"
GRAPHS = (*REGISTRY, GENERATED)
SPLITS = ("random", "communities")


@dataclass(frozen=True)
class Graph:
    """A graph by name; nodes, edges a node and seed are those of the generated one."""

    name: str
    nodes: int = 0
    edges_per_node: int = 0
    seed: int = 0

    def load(self) -> Silo:
        """All its edges, or one error that says what is missing and how to get it."""
        if self.name != GENERATED:
            return dataset(self.name)
        return clustered_power_law(self.nodes, self.edges_per_node, seed=self.seed)

    def edges(self) -> int:
        """How many edges it has."""
        return len(_loaded(self))

    @property
    def source(self) -> str:
        """Where it comes from, in words."""
        if self.name != GENERATED:
            return f"SNAP, {REGISTRY[self.name].file}"
        return (
            f"generated: clustered power law, {self.nodes} nodes, {self.edges_per_node} edges a "
            f"node, seed {self.seed}"
        )


@dataclass(frozen=True)
class Dealt:
    """How a graph is dealt to silos."""

    graph: Graph
    split: str
    silos: int
    rate: float
    overlap: float
    seed: int


class Federation:
    """Silos, their union, and the true counts on it."""

    def __init__(self, silos: tuple[Silo, ...]) -> None:
        self.silos = silos
        self.whole = union(silos)

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.whole.universe)

    @cached_property
    def reference(self) -> Reference:
        """What planners are told: a public graph like this one, here this one itself."""
        return reference_of(self.whole, cycles=False)

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """The degrees in the union."""
        return self.whole.degrees().astype(np.int64)

    @cached_property
    def holders(self) -> NDArray[np.int64]:
        """How many silos hold each pair of the union, in its order."""
        n = self.n
        every = np.concatenate([silo.pairs for silo in self.silos]).astype(np.int64)
        keys, counts = np.unique(every[:, 0] * n + every[:, 1], return_counts=True)
        pairs = self.whole.pairs.astype(np.int64)
        found: NDArray[np.int64] = counts[np.searchsorted(keys, pairs[:, 0] * n + pairs[:, 1])]
        return found

    @cached_property
    def _truths(self) -> Mapping[str, int]:
        rows = BitRows.from_pairs(self.n, self.whole.pairs)
        return {"2-stars": rows.wedges, "triangles": rows.triangles}

    def truth(self, query: str) -> int:
        """The exact count on the union of the silos."""
        return self._truths[query]


@lru_cache(maxsize=16)
def federation(dealt: Dealt) -> Federation:
    """The federation, made once in a process."""
    graph = _loaded(dealt.graph)
    if dealt.split == "communities":
        return Federation(community_split(graph, dealt.silos, dealt.overlap, dealt.seed))
    if dealt.split != "random":
        raise ArgumentError(f"a split is one of {', '.join(SPLITS)}, not {dealt.split!r}")
    return Federation(split(graph, dealt.silos, dealt.rate, dealt.overlap, dealt.seed))


@lru_cache(maxsize=4)
def _loaded(graph: Graph) -> Silo:
    return graph.load()
