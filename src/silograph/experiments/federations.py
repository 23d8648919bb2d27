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
from silograph.experiments.communities import community_split
from silograph.graph.bitrows import BitRows
from silograph.graph.datasets import REGISTRY, dataset
from silograph.graph.generate import clustered_power_law
from silograph.graph.silo import Silo, union
from silograph.graph.split import split
from silograph.queries.outline import Outline
from silograph.queries.outline_sources import outline_of

__all__ = ["GENERATED", "GRAPHS", "SPLITS", "Dealt", "Federation", "Graph", "federation"]

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
    def outline(self) -> Outline:
        """What planners are told: a public graph like this one, here this one itself."""
        return outline_of(self.whole, cycles=False)

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
