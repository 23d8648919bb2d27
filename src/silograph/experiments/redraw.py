"""Draw the same graph's release many times, and compare the errors with the variance formulas."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from silograph.graph.bitrows import BitRows
from silograph.graph.silo import Silo
from silograph.privacy.channel import Channel
from silograph.queries.cycles import four_cycles_variance
from silograph.queries.degrees import edges_variance
from silograph.queries.estimate import Estimate, FloatArray
from silograph.queries.release import Release
from silograph.queries.stars import kstars_variance
from silograph.queries.tally import Tally
from silograph.queries.triangles import triangles_variance

__all__ = ["QUERIES", "Redraws", "Target", "redraw"]


@dataclass(frozen=True)
class Target:
    """A query: how to ask it, its true answer, and the variance that its answers should have."""

    ask: Callable[[Release], Estimate[float]]
    truth: Callable[[BitRows], int]
    variance: Callable[[Tally, Channel], float]


def _kstars(k: int) -> Target:
    return Target(
        lambda release: release.kstars(k),
        lambda graph: sum(math.comb(d, k) for d in graph.degrees.tolist()),
        lambda truth, channel: float(kstars_variance(truth.graph, channel, k)),
    )


QUERIES: dict[str, Target] = {
    "edges": Target(
        Release.edges,
        lambda graph: graph.edges,
        lambda truth, channel: float(edges_variance(truth.graph, channel)),
    ),
    "2-stars": _kstars(2),
    "3-stars": _kstars(3),
    "triangles": Target(
        Release.triangles,
        lambda graph: graph.triangles,
        lambda truth, channel: float(triangles_variance(truth, channel)),
    ),
    "4-cycles": Target(
        Release.four_cycles,
        lambda graph: graph.four_cycles,
        lambda truth, channel: float(four_cycles_variance(truth, channel)),
    ),
}


@dataclass(frozen=True)
class Redraws:
    """The answers to one query over many draws."""

    query: str
    truth: int
    #: The variance that the formula gives for the true graph.
    variance: float
    values: FloatArray
    stderrs: FloatArray

    @property
    def mean_square_error(self) -> float:
        return float(np.mean((self.values - self.truth) ** 2))

    @property
    def ratio(self) -> float:
        """Mean square error over the formula's variance; 1 in the limit."""
        return self.mean_square_error / self.variance

    @property
    def covered(self) -> int:
        """How many 95 % intervals hold the truth."""
        return int(np.sum(np.abs(self.values - self.truth) <= 1.959963984540054 * self.stderrs))


def redraw(
    graph: Silo, channel: Channel, seeds: Iterable[int], queries: Iterable[str] = tuple(QUERIES)
) -> dict[str, Redraws]:
    """Ask each query of one release per seed."""
    truth = Tally(BitRows.from_pairs(len(graph.universe), graph.pairs))
    targets = {name: QUERIES[name] for name in queries}
    answers: dict[str, list[Estimate[float]]] = {name: [] for name in targets}
    for seed in seeds:
        release = Release.draw(graph, channel, seed)
        for name, target in targets.items():
            answers[name].append(target.ask(release))
    return {
        name: Redraws(
            name,
            target.truth(truth.graph),
            target.variance(truth, channel),
            np.array([answer.value for answer in answers[name]]),
            np.array([answer.stderr for answer in answers[name]]),
        )
        for name, target in targets.items()
    }
