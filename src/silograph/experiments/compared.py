"""feat and feat+ beside each other on one federation, over many runs drawn in the clear.

The releases are drawn from their channels and all noise from seeds: the same distributions as the
real protocols', no messages, thousands of runs. **For experiments only.**
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from silograph import _core
from silograph.crypto.limbs import limbs
from silograph.graph.bitrows import BitRows
from silograph.graph.silo import Silo, union
from silograph.methods.featplus import (
    FeatPlusPlan,
    Shared,
    combine,
    local_report,
    plan_featplus,
    share,
)
from silograph.queries.estimate import Estimate, FloatArray
from silograph.queries.release import Provenance, Release

__all__ = ["METHODS", "Compared", "Method", "compare", "draw_featplus"]


@dataclass(frozen=True)
class Method:
    """A form of feat+ with its split of epsilon; (1, 0, 0) is feat."""

    name: str
    local: str
    split: str | tuple[float, float, float]


#: feat, and feat+ as in the paper's experiments: its own form of answers, and ours.
METHODS = (
    Method("feat", "gradient", (1, 0, 0)),
    Method("feat+ paper", "paper", "paper"),
    Method("feat+ gradient", "gradient", "paper"),
)


@dataclass(frozen=True)
class Compared:
    """The answers of one method at one epsilon."""

    method: str
    epsilon: float
    truth: float
    values: FloatArray
    stderrs: FloatArray

    @property
    def relative_error(self) -> float:
        """The root mean square error over the truth."""
        return float(np.sqrt(np.mean((self.values - self.truth) ** 2)) / abs(self.truth))

    @property
    def covered(self) -> float:
        """The share of 95 % intervals that hold the truth."""
        return float(np.mean(np.abs(self.values - self.truth) <= 1.959963984540054 * self.stderrs))


def compare(
    silos: Sequence[Silo],
    query: str,
    k: int | None,
    epsilons: Iterable[float],
    seeds: Sequence[int],
    methods: Sequence[Method] = METHODS,
    collusion: int = 1,
) -> list[Compared]:
    """Every method at every epsilon, once for each seed."""
    n, whole = len(silos[0].universe), union(silos)
    truth = _truth(BitRows.from_pairs(n, whole.pairs), query, k)
    found = []
    for epsilon in epsilons:
        for method in methods:
            plan = plan_featplus(
                query, k, method.local, method.split, epsilon, len(silos), collusion, "clear", n
            )
            answers = [draw_featplus(plan, silos, whole, seed) for seed in seeds]
            values = np.array([answer.value for answer in answers])
            stderrs = np.array([answer.stderr for answer in answers])
            found.append(Compared(method.name, epsilon, truth, values, stderrs))
    return found


def draw_featplus(
    plan: FeatPlusPlan, silos: Sequence[Silo], whole: Silo, seed: int
) -> Estimate[float]:
    """One run of a plan, as predictable as its seed; ``whole`` is the union of the silos."""
    channel, m = plan.union.channel, len(silos)
    rows = _core.draw_rows(
        plan.n, whole.pairs, limbs(channel.p11), limbs(channel.p01), _seed("release", seed)
    )
    provenance = Provenance("feat+", "clear", m, plan.union.collusion)
    digest = whole.universe.digest
    release = Release(BitRows(rows), channel, digest, provenance, plan.union.views)
    if not plan.answers_locally:
        return combine(plan, release, None, ())
    scale = plan.noise.partition_scale
    noise = _core.discrete_laplace(
        m * plan.n, scale.numerator, scale.denominator, _seed("degrees", seed)
    )
    degrees = np.array([silo.degrees() for silo in silos]) + noise.reshape(m, plan.n)
    shared: Shared = share(plan, release.graph, degrees)
    scale = plan.noise.local_scale
    noise = _core.discrete_laplace(m, scale.numerator, scale.denominator, _seed("reports", seed))
    reports = [
        local_report(plan, shared, silo, place) + int(noise[place])
        for place, silo in enumerate(silos)
    ]
    return combine(plan, release, shared, reports)


def _seed(what: str, seed: int) -> bytes:
    return hashlib.sha256(f"silograph experiment {what} {seed}".encode()).digest()


def _truth(graph: BitRows, query: str, k: int | None) -> float:
    if query == "kstars":
        return float(sum(math.comb(d, k or 0) for d in graph.degrees.tolist()))
    return float(getattr(graph, query))
