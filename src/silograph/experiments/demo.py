"""The demonstration: a seeded graph, four overlapping silos, every query, beside the truth."""

from collections.abc import Iterator
from dataclasses import dataclass

from silograph.experiments.redraw import QUERIES
from silograph.graph.bitrows import BitRows
from silograph.graph.generate import clustered_power_law
from silograph.graph.silo import Silo, union
from silograph.graph.split import split
from silograph.privacy.channel import Channel
from silograph.queries.estimate import Estimate
from silograph.queries.release import Release

__all__ = ["DemoRow", "demo_rows", "demo_silos"]

NODES, SILOS, SEED = 1000, 4, 1


@dataclass(frozen=True)
class DemoRow:
    """One query: what is true, and what the method answers."""

    query: str
    truth: float
    answer: Estimate[float]

    @property
    def error(self) -> float:
        """The relative error of the answer."""
        return abs(self.answer.value - self.truth) / self.truth


def demo_silos() -> tuple[Silo, ...]:
    """A clustered power-law graph of 1,000 nodes; a fifth of its edges are in two silos."""
    graph = clustered_power_law(NODES, edges_per_node=8, closure=0.6, seed=SEED)
    return split(graph, SILOS, rate=0.3, overlap=0.2, seed=SEED)


def demo_rows(silos: tuple[Silo, ...], epsilon: float) -> Iterator[DemoRow]:
    """Draw one release of the union from randomized response, and ask it everything."""
    whole = union(silos)
    release = Release.draw(whole, Channel.symmetric(epsilon), seed=SEED)
    graph = BitRows.from_pairs(NODES, whole.pairs)
    for query, target in QUERIES.items():
        yield DemoRow(query, target.truth(graph), target.ask(release))
    yield DemoRow("clustering", 3 * graph.triangles / graph.wedges, release.clustering())
