"""Draw the same graph's release many times, and compare the errors with the variance formulas."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from silograph.cli.demo import QUERIES
from silograph.dp.channel import Channel
from silograph.estimators.estimate import Estimate, FloatArray
from silograph.estimators.pair_sums import GraphSums
from silograph.estimators.release import Release
from silograph.graph.bits import BitRows
from silograph.graph.silo import Silo

__all__ = ["Redraws", "redraw"]


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
    truth = GraphSums(BitRows.from_pairs(len(graph.universe), graph.pairs))
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
