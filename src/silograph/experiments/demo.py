"""The demonstration: a seeded graph, four overlapping silos, every query, beside the truth."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from silograph.experiments.redraw import QUERIES
from silograph.graph.bitrows import BitRows
from silograph.graph.generate import clustered_power_law
from silograph.graph.silo import Silo, union
from silograph.graph.split import split
from silograph.queries.estimate import Estimate
from silograph.queries.release import Release
from silograph.runtime.federation import Federation
from silograph.runtime.ledger import Ledger

__all__ = ["DemoRow", "demo_release", "demo_rows", "demo_silos"]

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


def demo_release(silos: tuple[Silo, ...], epsilon: float) -> tuple[Release, str]:
    """A release by the real masked protocol, and what the silos' ledger says of it."""
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger") as ledger:
        ledger.set_limit("demo", epsilon)
        release = Federation.simulate(silos, ledger, lineage="demo").collect(epsilon)
        spent, left = ledger.spent("demo"), ledger.remaining("demo")
        return release, f"ledger: spent {spent}; left {left}"


def demo_rows(silos: tuple[Silo, ...], release: Release) -> Iterator[DemoRow]:
    """Ask the one release everything."""
    graph = BitRows.from_pairs(NODES, union(silos).pairs)
    for query, target in QUERIES.items():
        yield DemoRow(query, target.truth(graph), target.ask(release))
    yield DemoRow("clustering", 3 * graph.triangles / graph.wedges, release.clustering())
