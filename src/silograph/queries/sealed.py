"""What a sealed run opened, and everything that follows from it.

The union itself was never opened: there is no noisy graph, only noisy numbers. All that is asked
of them is post-processing and costs no more privacy. Intervals are quantiles of the known law of
the noise, which has longer tails than the normal law.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.errors import ArgumentError
from silograph.graph.seeds import seed_bytes
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.privacy.laplace import NoiseLaw
from silograph.privacy.loss import shown_loss
from silograph.privacy.sealed import Answer, SealedNoise
from silograph.privacy.views import View
from silograph.queries.display import definitions, views_table
from silograph.queries.estimate import Z95, Estimate, FloatArray
from silograph.queries.histogram import check_bins, degree_grid, sharpen
from silograph.queries.origin import Origin, Provenance
from silograph.queries.release import CURVE_NOTE, RATIO_NOTE, Release
from silograph.queries.sealed_stars import (
    effective_nodes,
    kstars_floor,
    kstars_value,
    kstars_variance_estimate,
)
from silograph.queries.stars import square_root

__all__ = ["SealedRelease"]

# So many equal noises together are normal for every practical purpose.
_MANY = 1000


@dataclass(frozen=True, eq=False)
class SealedRelease:
    """The opened numbers, their noise, and queries.

    >>> graph = Silo.from_edges(NodeUniverse.range(4), np.array([[0, 1], [1, 2], [0, 2]]))
    >>> noise = SealedNoise.choose(50.0, 4, 2, 1, ["degrees", "triangles"])
    >>> release = SealedRelease.draw(graph, noise, seed=1)
    >>> release.triangles().value, release.edges().value
    (1.0, 2.5)
    """

    noise: SealedNoise
    universe_digest: str
    provenance: Provenance
    #: Degrees in the order of the universe, and counts; None where a run did not open them.
    noisy_degrees: NDArray[np.int64] | None = field(default=None, repr=False)
    noisy_edges: int | None = None
    noisy_two_stars: int | None = None
    noisy_triangles: int | None = None
    #: The node list, where it is at hand.
    universe: NodeUniverse | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        opened: dict[Answer, Any] = {
            "edges": self.noisy_edges,
            "degrees": self.noisy_degrees,
            "two_stars": self.noisy_two_stars,
            "triangles": self.noisy_triangles,
        }
        found = {answer for answer, value in opened.items() if value is not None}
        if found != set(self.noise.answers):
            raise ArgumentError(
                f"the noise is for {', '.join(self.noise.answers)}, "
                f"but {', '.join(sorted(found)) or 'nothing'} was opened"
            )
        if self.noisy_degrees is not None and len(self.noisy_degrees) != self.n:
            raise ArgumentError(f"there are {self.n} nodes, but {len(self.noisy_degrees)} degrees")

    @classmethod
    def draw(cls, graph: Silo, noise: SealedNoise, seed: int) -> "SealedRelease":
        """Add the noise of all silos to the statistics of a known graph. **For experiments only.**

        It needs the true graph in one place and is as predictable as its seed; nobody's edges are
        protected by it. The noise is that of a run, exactly.
        """
        truth = graph.degrees()
        opened: dict[str, Any] = {}
        for answer in noise.answers:
            bound = None
            if answer in noise.slacks:
                bound = noise.bound(answer, opened["noisy_degrees"])
            match answer:
                case "edges":
                    exact = np.array([len(graph)])
                case "degrees":
                    exact = truth
                case "two_stars":
                    exact = np.array([int((truth * (truth - 1) // 2).sum())])
                case "triangles":
                    exact = np.array([graph.triangles()])
            drawn = exact + _noise(noise, answer, bound, len(exact), seed)
            opened[f"noisy_{answer}"] = drawn if answer == "degrees" else int(drawn[0])
        provenance = Provenance("sealed", "clear", noise.silos, noise.collusion)
        return cls(noise, graph.universe.digest, provenance, universe=graph.universe, **opened)

    @property
    def n(self) -> int:
        """The number of nodes."""
        return self.noise.nodes

    @property
    def views(self) -> tuple[View, ...]:
        """Who learns how much."""
        return self.noise.views

    @property
    def epsilon(self) -> float:
        """The certified epsilon against the worst of the claimed views."""
        return max(view.epsilon for view in self.views if view.claimed)

    @property
    def delta(self) -> float:
        """The delta against the worst of the claimed views."""
        return max(view.delta for view in self.views if view.claimed)

    @cached_property
    def origin(self) -> Origin:
        """What every answer says of where it comes from."""
        losses = self.noise.losses
        return Origin(self.provenance, self.views, losses, self.n, self.universe_digest)

    # -- queries ---------------------------------------------------------------------------

    def edges(self) -> Estimate[float]:
        """The number of edges. Unbiased."""
        if self.noisy_edges is not None:
            return self._count("edges", self.noisy_edges, self.noise.law("edges"))
        noisy, law = self._degrees("edges")
        total = law.summed(self.n)
        return self._estimate(
            "edges", int(noisy.sum()) / 2, total.stderr / 2, margin=total.margin() / 2
        )

    def degrees(self) -> "Estimate[FloatArray]":
        """The degree of every node, in the order of the universe. Unbiased."""
        noisy, law = self._degrees("degrees")
        stderr, margin = np.full(self.n, law.stderr), np.full(self.n, float(law.margin()))
        value = noisy.astype(np.float64)
        return Estimate("degrees", value, stderr, **self._cost(), margin=margin)

    def degree_histogram(self, bins: Sequence[int] | None = None) -> "Estimate[FloatArray]":
        """How many nodes have a degree in each bin [b0, b1), [b1, b2), …

        Default bins are 0, 1, 2, 4, 8, … up to n. A deconvolution: consistent, not unbiased.
        """
        edges = check_bins(bins, self.n)
        noisy, law = self._degrees("degree_histogram")
        observed, counts = np.unique(noisy, return_counts=True)
        top = min(self.n - 1, max(0, math.ceil(int(observed[-1]) + law.stderr)))
        grid = degree_grid(top)
        apart = np.abs(observed[:, None] - grid[None, :].astype(np.int64))
        reach = int(apart.max())
        # What is less likely than the table shows is still possible.
        blur = np.maximum(law.probabilities(reach)[reach:], 1e-18)[apart]
        value, stderr = sharpen(counts.astype(np.float64), grid, blur, edges)
        more: dict[str, Any] = {"note": CURVE_NOTE, "parameters": {"bins": edges}}
        return Estimate("degree_histogram", value, stderr, **self._cost(), **more)

    def kstars(self, k: int) -> Estimate[float]:
        """The number of k-stars, Σ C(d, k), for any k ≥ 1. Unbiased.

        2-stars as they were opened, where they were; otherwise from the noisy degrees.
        """
        Release.check_k(k, self.n)
        k, more = int(k), {"parameters": {"k": int(k)}}
        if k == 2 and self.noisy_two_stars is not None:
            return self._count("kstars", self.noisy_two_stars, self._law("two_stars"), **more)
        noisy, law = self._degrees(f"{k}-stars")
        values = noisy.tolist()
        try:
            value = float(kstars_value(values, law, k))
            variance = kstars_variance_estimate(values, law, k)
            stderr = square_root(max(variance, kstars_floor(self.n, law, k)))
        except OverflowError:
            raise ArgumentError(f"k = {k}: the number of stars exceeds a float's range") from None
        factor = _factor(law.summed(min(effective_nodes(values, k), _MANY)))
        return self._estimate("kstars", value, stderr, margin=factor * stderr, **more)

    def triangles(self) -> Estimate[float]:
        """The number of triangles. Unbiased."""
        if self.noisy_triangles is None:
            self._not_opened("triangles")
        return self._count("triangles", self.noisy_triangles, self._law("triangles"))

    def clustering(self) -> Estimate[float]:
        """The global clustering coefficient, 3·triangles/2-stars: consistent, not unbiased.

        The noise of the triangles is independent of that of the 2-stars but for its scale, so that
        the two are not correlated.
        """
        triangles, stars = self.triangles(), self.kstars(2)
        if stars.value <= 0:
            return self._estimate("clustering", math.nan, math.inf, note=RATIO_NOTE)
        ratio = 3 * triangles.value / stars.value
        stderr = math.hypot(3 * triangles.stderr, ratio * stars.stderr) / stars.value
        factor = _factor(self._law("triangles"))
        if stars.margin is not None and stars.stderr > 0:
            factor = max(factor, stars.margin / stars.stderr)
        return self._estimate("clustering", ratio, stderr, note=RATIO_NOTE, margin=factor * stderr)

    def _law(self, answer: Answer) -> NoiseLaw:
        bound = None
        if self.noisy_degrees is not None:
            bound = self.noise.bound(answer, self.noisy_degrees)
        return self.noise.law(answer, bound)

    def _degrees(self, query: str) -> tuple[NDArray[np.int64], NoiseLaw]:
        if self.noisy_degrees is None:
            self._not_opened(query)
        return self.noisy_degrees, self.noise.law("degrees")

    def _not_opened(self, query: str) -> NoReturn:
        raise ArgumentError(
            f"this run does not answer {query}: it opened {', '.join(self.noise.answers)} alone"
        )

    def _count(self, query: str, value: int, law: NoiseLaw, **more: Any) -> Estimate[float]:
        return self._estimate(query, value, law.stderr, margin=float(law.margin()), **more)

    def _estimate(self, query: str, value: float, stderr: float, **more: Any) -> Estimate[float]:
        return Estimate(query, float(value), stderr, **self._cost(), **more)

    def _cost(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "method": self.provenance.method,
            "origin": self.origin,
        }

    def _repr_html_(self) -> str:
        """For notebooks."""
        made = self.provenance
        delta = f", δ = {shown_loss(self.delta)}" if self.delta else ""
        rows = {
            "nodes": f"{self.n:,}, list {self.universe_digest[:16]}…",
            "opened": ", ".join(self.noise.answers).replace("_", "-"),
            "silos": f"{made.silos}, of which {made.collusion} may pool what they see",
            "noise": f"{self.noise.kind}",
            "cost": f"ε = {shown_loss(self.epsilon)}{delta}, paid; every question on it is free",
        }
        caption = f"sealed answers on {self.n:,} nodes"
        return definitions(caption, rows, views_table(self.views))

    def __str__(self) -> str:
        lines = [
            f"sealed answers on {self.n:,} nodes, universe {self.universe_digest[:16]}…",
            f"  {', '.join(self.noise.answers)}; {self.noise.kind} noise, {self.noise.silos} silos",
            *(f"  {view}" for view in self.views),
        ]
        return "\n".join(lines)


def _factor(law: NoiseLaw) -> float:
    """Half of a 95 % interval in standard errors: 1.96 at least."""
    return max(Z95, law.margin() / law.stderr) if law.stderr > 0 else Z95


def _noise(
    noise: SealedNoise, answer: Answer, bound: int | None, count: int, seed: int
) -> NDArray[np.int64]:
    """The sum of all silos' noise."""
    scale = noise.scale(answer, bound)
    total = np.zeros(count, dtype=np.int64)
    for silo in range(noise.silos):
        total += _core.polya_difference(
            count,
            scale.numerator,
            scale.denominator,
            noise.shares,
            seed_bytes(f"sealed/{answer}/{silo}", seed),
        )
    return total
