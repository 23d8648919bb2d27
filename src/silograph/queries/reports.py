"""The baseline's answer: the reports of all silos, each a noisy graph of its own.

Queries come in two forms. Calibrated (the default): unbiased from all m reports, whatever the
number of holders of each edge. Raw (``raw=True``): counts of the union of the reports, as the
paper's Algorithm 1 prints them; the union gathers the noise of all silos, so they are far too
large, and they carry no error bar.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from silograph import _core
from silograph.crypto.limbs import limbs
from silograph.errors import ArgumentError, UniverseError
from silograph.graph.bitrows import BitRows
from silograph.graph.seeds import seed_bytes
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.privacy.baseline import BaselineNoise
from silograph.privacy.channel import Channel
from silograph.privacy.loss import shown_loss
from silograph.privacy.views import View
from silograph.queries.display import definitions, views_table
from silograph.queries.estimate import Estimate, FloatArray
from silograph.queries.origin import Origin, Provenance
from silograph.queries.report_counts import ReportCounts, ReportWeights
from silograph.queries.report_stars import kstars, kstars_floor
from silograph.queries.report_walks import ReportWalks
from silograph.queries.stars import square_root

__all__ = ["RAW_NOTE", "Reports"]

#: What every raw answer says of itself.
RAW_NOTE = "raw count on the union of the noisy reports, as printed: biased, without an error bar"
_RATIO_NOTE = "a ratio of two unbiased counts: consistent, not unbiased"


@dataclass(frozen=True, eq=False)
class Reports:
    """For each pair how many of the m reports are ones, the noise that they carry, and queries.

    Standard errors are roots of unbiased estimates of the variance (for 4-cycles very slightly too
    large), but never less than what a graph without edges would have: conservative where edges
    carry less noise than other pairs and are most of them.

    >>> graph = Silo.from_edges(NodeUniverse.range(4), np.array([[0, 1], [1, 2], [0, 2]]))
    >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
    >>> reports.triangles().value, reports.edges().value
    (1.0, 3.0)
    """

    counts: ReportCounts
    noise: BaselineNoise
    universe_digest: str
    provenance: Provenance
    #: The node list, where it is at hand.
    universe: NodeUniverse | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.counts.silos != self.noise.silos:
            raise ArgumentError(
                f"the noise is of {self.noise.silos} silos, but {self.counts.silos} reported"
            )

    @classmethod
    def draw(cls, silos: Sequence[Silo], channel: Channel, seed: int) -> "Reports":
        """Pass every silo's edges through the channel. **For experiments only.**

        It needs all edges in one place and is as predictable as its seed; nobody's edges are
        protected by it. The draws are exact for every rational channel, and each silo has a
        stream of its own. The channel of the baseline at ε is ``BaselineNoise.choose(ε, m)``'s.
        """
        noise = BaselineNoise(channel, len(silos))
        universe = silos[0].universe
        for silo in silos[1:]:
            if silo.universe.digest != universe.digest:
                raise UniverseError("the silos have different node lists")
        p11, p01 = limbs(channel.p11), limbs(channel.p01)
        drawn = (
            _core.draw_rows(
                len(universe), silo.pairs, p11, p01, seed_bytes(f"report/{number}", seed)
            )
            for number, silo in enumerate(silos)
        )
        return cls(
            ReportCounts.of([BitRows(rows) for rows in drawn]),
            noise,
            universe.digest,
            Provenance(method="baseline", protocol="clear", silos=len(silos)),
            universe,
        )

    @property
    def n(self) -> int:
        """The number of nodes."""
        return self.counts.n

    @property
    def views(self) -> tuple[View, ...]:
        """Who learns how much."""
        return self.noise.views

    @property
    def epsilon(self) -> float:
        """The certified epsilon against the worst of the views, the coordinator."""
        return max(view.epsilon for view in self.views)

    @property
    def union(self) -> BitRows:
        """The union of all reports, the paper's noisy global graph."""
        return self.counts.union

    @cached_property
    def weights(self) -> ReportWeights:
        """What a pair with j ones weighs, and the variance of it."""
        return ReportWeights(self.noise.channel, self.noise.silos)

    @cached_property
    def walks(self) -> ReportWalks:
        """The sums over walks that several queries share."""
        return ReportWalks(self.counts, self.weights)

    @cached_property
    def origin(self) -> Origin:
        """What every answer says of where it comes from."""
        m = self.noise.silos
        losses = {t: self.noise.epsilon(m - t) for t in range(m)}
        return Origin(self.provenance, self.views, losses, self.n, self.universe_digest)

    # -- queries ---------------------------------------------------------------------------

    def edges(self, *, raw: bool = False) -> Estimate[float]:
        """The number of edges. Unbiased (not so if raw)."""
        if raw:
            return self._raw("edges", self.union.edges)
        totals = self.counts.totals.tolist()
        value, variance = (
            sum((c * x for c, x in zip(totals, table, strict=True)), Fraction(0))
            for table in (self.weights.weights, self.weights.spreads)
        )
        pairs, possible = sum(totals), self.weights.variances
        variance = min(max(variance, pairs * min(possible)), pairs * max(possible))
        return self._estimate("edges", value, square_root(variance))

    def degrees(self, *, raw: bool = False) -> "Estimate[FloatArray]":
        """The degree of every node, in the order of the universe. Unbiased (not so if raw)."""
        if raw:
            value = self.union.degrees.astype(np.float64)
            nothing = np.full(self.n, math.nan)
            return Estimate("degrees", value, nothing, **self._cost(), note=RAW_NOTE)
        profiles = self.counts.profiles
        value, variance = (
            profiles @ np.array([float(x) for x in table])
            for table in (self.weights.weights, self.weights.spreads)
        )
        possible = [float((self.n - 1) * v) for v in self.weights.variances]
        stderr = np.sqrt(np.clip(variance, min(possible), max(possible)))
        return Estimate("degrees", value, stderr, **self._cost())

    def kstars(self, k: int, *, raw: bool = False) -> Estimate[float]:
        """The number of k-stars, Σ C(d, k), for any k ≥ 1. Unbiased (not so if raw)."""
        if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 1 <= k < self.n:
            raise ArgumentError(f"k must be an integer from 1 to {self.n - 1}, not {k!r}")
        k, more = int(k), {"parameters": {"k": int(k)}}
        try:
            if raw:
                stars = sum(math.comb(d, k) for d in self.union.degrees.tolist())
                return self._raw("kstars", stars, **more)
            value, variance = kstars(self.counts, self.weights, k)
            stderr = square_root(max(variance, kstars_floor(self.n, self.weights, k)))
            return self._estimate("kstars", value, stderr, **more)
        except OverflowError:
            raise ArgumentError(f"k = {k}: the number of stars exceeds a float's range") from None

    def triangles(self, *, raw: bool = False) -> Estimate[float]:
        """The number of triangles. Unbiased (not so if raw)."""
        if raw:
            return self._raw("triangles", self.union.triangles)
        return self._estimate("triangles", self.walks.triangles, self.walks.triangles_stderr())

    def four_cycles(self, *, raw: bool = False) -> Estimate[float]:
        """The number of 4-cycles. Unbiased (not so if raw)."""
        if raw:
            return self._raw("four_cycles", self.union.four_cycles)
        stderr = self.walks.four_cycles_stderr()
        return self._estimate("four_cycles", self.walks.four_cycles, stderr)

    def clustering(self, *, raw: bool = False) -> Estimate[float]:
        """The global clustering coefficient, 3·triangles/2-stars: consistent, not unbiased (and
        neither if raw). Of use only where the error of the 2-stars is small beside them."""
        if raw:
            wedges = self.union.wedges
            ratio = 3 * self.union.triangles / wedges if wedges else math.nan
            return self._raw("clustering", ratio)
        value, stderr = self.walks.clustering(self._wedges)
        return self._estimate("clustering", value, stderr, note=_RATIO_NOTE)

    @cached_property
    def _wedges(self) -> float:
        return float(kstars(self.counts, self.weights, 2)[0]) if self.n > 2 else 0.0

    def _estimate(self, query: str, value: Any, stderr: float, **more: Any) -> Estimate[float]:
        return Estimate(query, float(value), stderr, **self._cost(), **more)

    def _raw(self, query: str, value: float, **more: Any) -> Estimate[float]:
        return self._estimate(query, value, math.nan, note=RAW_NOTE, **more)

    def _cost(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "method": self.provenance.method,
            "origin": self.origin,
        }

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = {
            "nodes": f"{self.n:,}, list {self.universe_digest[:16]}…",
            "silos": f"{self.noise.silos}, each with a noisy report of its own",
            "cost": f"ε = {shown_loss(self.epsilon)}, paid; every question on them is free",
        }
        caption = f"{self.noise.silos} reports of {self.n:,} nodes"
        return definitions(caption, rows, views_table(self.views))

    def __str__(self) -> str:
        lines = [
            f"{self.noise.silos} reports of {self.n:,} nodes, "
            f"universe {self.universe_digest[:16]}…",
            f"  each through {self.noise.channel}",
            *(f"  {view}" for view in self.views),
        ]
        return "\n".join(lines)
