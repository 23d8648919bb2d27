"""feat and feat+ beside each other on one federation, over many runs drawn in the clear.

The releases are drawn from their channels and all noise from seeds: the same distributions as the
real protocols', no messages, thousands of runs. **For experiments only.**
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from silograph import _core
from silograph.dp.channel import limbs
from silograph.estimators.cycles import four_cycles_value
from silograph.estimators.degrees import edges_value
from silograph.estimators.estimate import Estimate, FloatArray, Provenance
from silograph.estimators.reference import Reference, reference_of
from silograph.estimators.release import Release
from silograph.estimators.stars import kstars_value
from silograph.estimators.triangles import triangles_value
from silograph.graph.bits import BitRows
from silograph.graph.samples import union
from silograph.graph.silo import Silo
from silograph.methods.featplus.answer import combine, local_report, share
from silograph.methods.featplus.method import choose_split, settle_featplus
from silograph.methods.featplus.noise import Split
from silograph.methods.featplus.rounds import FeatPlusTerms, Shared
from silograph.methods.prediction import Question, feat_error, gradient_error, paper_error

__all__ = [
    "LOCAL",
    "METHODS",
    "VALUES",
    "Compared",
    "Method",
    "compare",
    "draw_featplus",
    "draw_value",
]


@dataclass(frozen=True)
class Method:
    """A form of feat+ with its split of epsilon; (1, 0, 0) is feat, ``"local"`` the best one that
    has local answers, whether or not they pay."""

    name: str
    local: str
    split: Split | str | tuple[float, float, float]


#: feat, feat+ as in the paper's experiments, and feat+ as the planner would have it.
METHODS = (
    Method("feat", "gradient", (1, 0, 0)),
    Method("feat+ paper", "paper", "paper"),
    Method("feat+ gradient", "gradient", "auto"),
)


#: The best local answers, even where the planner would have none.
LOCAL = Method("feat+ gradient, local", "gradient", "local")


@dataclass(frozen=True)
class Compared:
    """The answers of one method at one epsilon."""

    method: str
    epsilon: float
    truth: float
    #: The error that the planner predicts.
    predicted: float
    #: Whether the plan has local answers at all.
    local: bool
    values: FloatArray

    @property
    def ratio(self) -> float:
        """The error that was seen over the predicted one."""
        return self.relative_error * abs(self.truth) / self.predicted

    @property
    def relative_error(self) -> float:
        """The root mean square error over the truth."""
        return float(np.sqrt(np.mean((self.values - self.truth) ** 2)) / abs(self.truth))


def compare(
    silos: Sequence[Silo],
    query: str,
    k: int | None,
    epsilons: Iterable[float],
    seeds: Sequence[int],
    methods: Sequence[Method] = METHODS,
    collusion: int = 1,
    owned: float | None = None,
) -> list[Compared]:
    """Every method at every epsilon, once for each seed; ``owned`` is what the planner is told."""
    n, m, whole = len(silos[0].universe), len(silos), union(silos)
    reference = reference_of(whole, cycles=query == "four_cycles")
    found = []
    for epsilon in epsilons:
        for method in methods:
            asked = Question(query, epsilon, m, collusion, k, owned=owned)
            split, bound = method.split, None
            if split == "local":
                chosen = choose_split(reference, asked, "clear", method.local, None, math.inf)
                split, bound = chosen.split, chosen.bound
            plan = settle_featplus(
                query, k, method.local, split, epsilon, m, collusion, "clear", n, bound,
                reference=reference, owned=owned,
            )  # fmt: skip
            found.append(
                Compared(
                    method.name,
                    epsilon,
                    reference.count(query, k),
                    _predicted(reference, asked, plan),
                    plan.answers_locally,
                    np.array([draw_value(plan, silos, whole, seed) for seed in seeds]),
                )
            )
    return found


def _predicted(reference: Reference, asked: Question, plan: FeatPlusTerms) -> float:
    split = plan.noise.split
    if not split.answers_locally:
        return feat_error(reference, asked, "clear")
    if plan.local == "paper":
        return paper_error(reference, asked, "clear", split)
    if plan.bound is None:
        return math.nan
    return gradient_error(reference, asked, "clear", split, plan.bound)


def draw_value(plan: FeatPlusTerms, silos: Sequence[Silo], whole: Silo, seed: int) -> float:
    """The value of one run, without its standard error, which costs more than the value."""
    release, shared, reports = _draw(plan, silos, whole, seed)
    total = 0.0 if shared is None else float(plan.unit(shared.bound) * sum(reports))
    if plan.local == "paper" and shared is not None:
        return total
    return VALUES[plan.query](release, plan.k) + total


#: The value of each query on a release, without its standard error.
VALUES: dict[str, Callable[[Release, int | None], float]] = {
    "edges": lambda release, _: float(edges_value(release.graph, release.channel)),
    "kstars": lambda release, k: float(kstars_value(release.graph, release.channel, k or 1)),
    "triangles": lambda release, _: float(triangles_value(release.sums, release.channel)),
    "four_cycles": lambda release, _: float(four_cycles_value(release.sums, release.channel)),
}


def draw_featplus(
    plan: FeatPlusTerms, silos: Sequence[Silo], whole: Silo, seed: int
) -> Estimate[float]:
    """One run of a plan, as predictable as its seed; ``whole`` is the union of the silos."""
    return combine(plan, *_draw(plan, silos, whole, seed))


def _draw(
    plan: FeatPlusTerms, silos: Sequence[Silo], whole: Silo, seed: int
) -> tuple[Release, Shared | None, list[int]]:
    channel, m = plan.union.channel, len(silos)
    rows = _core.draw_rows(
        plan.n, whole.pairs, limbs(channel.p11), limbs(channel.p01), _seed("release", seed)
    )
    provenance = Provenance("feat+", "clear", m, plan.union.collusion)
    digest = whole.universe.digest
    union = plan.union
    release = Release(BitRows(rows), channel, digest, provenance, union.views, union.losses)
    if not plan.answers_locally:
        return release, None, []
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
    return release, shared, reports


def _seed(what: str, seed: int) -> bytes:
    return hashlib.sha256(f"silograph experiment {what} {seed}".encode()).digest()
