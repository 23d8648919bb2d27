"""Tier 0 of the intervals of ``gradient``: every release, and the law of the reports' noise."""

import math

import numpy as np
import pytest

from silograph import NodeUniverse, Provenance, Release, Silo
from silograph.dp.laplace import NoiseLaw
from silograph.methods.featplus.answer import combine, local_report
from silograph.methods.featplus.method import settle_featplus
from silograph.methods.featplus.rounds import Shared
from tests.estimators.tiny import graph, naive, outcomes, pairs_of

SILOS, NODES = 2, 4
#: A report that is so much larger moves both ends, and none of them is cut.
_FAR = 10**9


def coverage(query: str, truth: int, epsilon: float) -> float:
    """The probability that the interval holds the truth, if both silos hold every edge."""
    plan = settle_featplus(
        query, None, "gradient", "paper", epsilon, SILOS, 1, "masked", NODES, bound=2.0
    )
    edges = [pair for k, pair in enumerate(pairs_of(NODES)) if truth >> k & 1]
    silo = Silo.from_edges(NodeUniverse.range(NODES), np.array(edges).reshape(-1, 2))
    due = naive(query, graph(NODES, truth))
    # The noise is many thousands of units wide: a coarser grid has the same law.
    noise = NoiseLaw(plan.noise.local_scale, 1, SILOS)
    coarse = int(noise.stderr // 2048)
    reach = math.ceil(10 * noise.stderr / coarse)
    law = NoiseLaw(plan.noise.local_scale / coarse, 1, SILOS).probabilities(reach)
    below = np.concatenate([[0.0], np.cumsum(law)])
    covered = 0.0
    for noisy, p in outcomes(NODES, truth, plan.union.channel):
        release = Release(
            graph(NODES, noisy).graph,
            plan.union.channel,
            "",
            Provenance("feat+", "clear", SILOS, 1),
            plan.union.views,
            plan.union.losses,
        )
        shared = Shared(release.graph, np.zeros(NODES, dtype=np.uint8), float(plan.bound or 1))
        unit = float(plan.unit(shared.bound))
        exact = [local_report(plan, shared, silo, place) for place in range(SILOS)]
        found = combine(plan, release, shared, [exact[0] + round(_FAR / unit), exact[1]])
        # Noise of so many steps of the grid leaves the truth inside.
        least, most = (found.value - end for end in found.interval[::-1])
        error = found.value - _FAR - due
        first = math.ceil((least - error) / unit / coarse) + reach
        last = math.floor((most - error) / unit / coarse) + reach
        first, last = (min(max(at, 0), len(law) - 1) for at in (first, last))
        covered += float(p) * float(below[last + 1] - below[first])
    return covered


@pytest.mark.parametrize("truth", [0b111111, 0b111110, 0])
@pytest.mark.parametrize(("query", "epsilon"), [("edges", 1.0), ("edges", 8.0), ("triangles", 8.0)])
def test_intervals_hold_the_truth(query: str, epsilon: float, truth: int) -> None:
    """The noise of few reports has longer tails than a normal one, and an interval that is cut to
    what is possible says too little about the error of the release."""
    assert coverage(query, truth, epsilon) >= 0.9495
