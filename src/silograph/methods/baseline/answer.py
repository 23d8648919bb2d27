"""The baseline's answers: the reports of all silos, and queries on them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.dp.channel import Channel, Weights, limbs
from silograph.dp.loss import View, shown_loss
from silograph.errors import ArgumentError, UniverseError
from silograph.estimators.cycles import four_cycles_even
from silograph.estimators.estimate import (
    Z95,
    Estimate,
    FloatArray,
    Origin,
    Provenance,
    definitions,
    uneven,
    views_table,
)
from silograph.estimators.ratio import said_share
from silograph.estimators.stars import kstars_even, square_root
from silograph.estimators.triangles import triangles_even
from silograph.graph.bits import BitRows
from silograph.graph.samples import seed_bytes
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.methods.baseline.counts import (
    ReportCounts,
    ReportWeights,
    kstars,
    kstars_above,
    kstars_floor,
    kstars_value,
)
from silograph.methods.baseline.limits import MANY_PAIRS, report_limits
from silograph.methods.baseline.noise import BaselineNoise
from silograph.methods.baseline.walks import ReportWalks

__all__ = ["RAW_NOTE", "Reports"]

#: The note of every raw answer.
RAW_NOTE = "raw count on the union of the noisy reports, as printed: biased, without an error bar"


@dataclass(frozen=True, eq=False)
class Reports:
    """The reports of all silos under the baseline, and queries on them.

    For each pair the object holds how many of the m reports are ones, and the noise of the reports.
    Queries have two forms. The calibrated form (the default) is unbiased for any number of holders
    of each edge. The raw form (``raw=True``) counts on the union of the reports, as the paper's
    Algorithm 1 prints it. The union gathers the noise of all silos, so raw counts are far too large
    and have no standard error.

    Standard errors are roots of unbiased estimates of the variance (for 4-cycles very slightly too
    large), but never smaller than on a graph without edges. They are conservative if most pairs are
    edges and edges carry less noise than other pairs.

    Examples
    --------
    >>> graph = Silo.from_edges(NodeUniverse.range(4), np.array([[0, 1], [1, 2], [0, 2]]))
    >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
    >>> reports.triangles().value, reports.edges().value
    (1.0, 3.0)
    """

    counts: ReportCounts
    noise: BaselineNoise
    universe_digest: str
    provenance: Provenance
    #: The node list, if it is available.
    universe: NodeUniverse | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.counts.silos != self.noise.silos:
            raise ArgumentError(
                f"the noise is of {self.noise.silos} silos, but {self.counts.silos} reported"
            )

    @classmethod
    def draw(cls, silos: Sequence[Silo], channel: Channel, seed: int) -> "Reports":
        """Pass every silo's edges through a channel. **For experiments only.**

        This needs all edges in one place and is as predictable as its seed, so it protects nobody's
        edges. The draws are exact for every rational channel, and each silo has its own stream. The
        channel of the baseline at ε is that of ``BaselineNoise.choose(ε, m)``.

        Parameters
        ----------
        silos
            The silos, all over the same node list.
        channel
            The channel of every report.
        seed
            The seed of all draws.

        Returns
        -------
        Reports
            The simulated reports.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> Reports.draw([graph, graph], Channel(1, 0), seed=1).n
        4
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
        """The privacy loss against each view of the run."""
        return self.noise.views

    @property
    def epsilon(self) -> float:
        """The certified epsilon against the worst of the views, which is the coordinator."""
        return max(view.epsilon for view in self.views)

    @property
    def union(self) -> BitRows:
        """The union of all reports, the paper's noisy global graph."""
        return self.counts.union

    @cached_property
    def weights(self) -> ReportWeights:
        """The weight of a pair with j ones, and its variance."""
        return ReportWeights(self.noise.channel, self.noise.silos)

    @cached_property
    def walks(self) -> ReportWalks:
        """The sums over walks that several queries share."""
        return ReportWalks(self.counts, self.weights)

    @property
    def origin(self) -> Origin:
        """What every answer states about its origin."""
        m = self.noise.silos
        losses = {t: self.noise.epsilon(m - t) for t in range(m)}
        stated = (self.provenance, self.views, losses, self.n, self.universe_digest)
        return Origin(*stated, release=self, universe=self.universe)

    # -- queries ---------------------------------------------------------------------------

    def edges(self, *, raw: bool = False) -> Estimate[float]:
        """The number of edges.

        Parameters
        ----------
        raw
            Count on the union of the noisy reports instead.

        Returns
        -------
        Estimate
            The count; unbiased unless raw.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
        >>> reports.edges().value
        3.0
        """
        if raw:
            return self._raw("edges", self.union.edges)
        totals = self.counts.totals.tolist()
        value, variance = (
            sum((c * x for c, x in zip(totals, table, strict=True)), Fraction(0))
            for table in (self.weights.weights, self.weights.spreads)
        )
        pairs, possible = sum(totals), self.weights.variances
        variance = min(max(variance, pairs * min(possible)), pairs * max(possible))
        more: dict[str, Any] = {}
        if pairs <= MANY_PAIRS:

            def limits(level: float) -> tuple[float, float]:
                low, high = self._limits(self.counts.totals[None, :], level)
                return float(low[0]), float(high[0])

            more = {"ends": limits(0.95), "limits": limits}
        return self._estimate("edges", value, square_root(variance), **more)

    def degrees(self, *, raw: bool = False) -> "Estimate[FloatArray]":
        """The degree of every node, in the order of the universe.

        Parameters
        ----------
        raw
            Count on the union of the noisy reports instead.

        Returns
        -------
        Estimate
            The degrees; unbiased unless raw. Their intervals are of whole numbers, and hold however
            few reports are wrong.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
        >>> reports.degrees().value.tolist()
        [2.0, 2.0, 2.0, 0.0]
        """
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
        limits = partial(self._limits, profiles)
        ends = limits(0.95)
        return Estimate("degrees", value, stderr, ends=ends, limits=limits, **self._cost())

    def kstars(self, k: int, *, raw: bool = False) -> Estimate[float]:
        """The number of k-stars, Σ C(d, k).

        Parameters
        ----------
        k
            The number of leaves, at least 1.
        raw
            Count on the union of the noisy reports instead.

        Returns
        -------
        Estimate
            The count; unbiased unless raw.

        Raises
        ------
        ArgumentError
            If k is out of range.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
        >>> reports.kstars(2).value
        3.0
        """
        if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 1 <= k < self.n:
            raise ArgumentError(f"k must be an integer from 1 to {self.n - 1}, not {k!r}")
        k = int(k)
        more: dict[str, Any] = {"parameters": {"k": k}}
        try:
            if raw:
                stars = sum(math.comb(d, k) for d in self.union.degrees.tolist())
                return self._raw("kstars", stars, **more)
            value, variance = kstars(self.counts, self.weights, k)
            stderr = square_root(max(variance, kstars_floor(self.n, self.weights, k)))
            up = self._upwards(stderr, kstars_even(self.n, self._even, k, self._density))
            more |= uneven(float(value), stderr, stderr, up)
            if k > 2:
                more |= {"ends": self._stars_ends(k, float(value), stderr, up)}
            return self._estimate("kstars", value, stderr, **more)
        except OverflowError:
            raise ArgumentError(f"k = {k}: the number of stars exceeds a float's range") from None

    def triangles(self, *, raw: bool = False) -> Estimate[float]:
        """The number of triangles.

        Parameters
        ----------
        raw
            Count on the union of the noisy reports instead.

        Returns
        -------
        Estimate
            The count; unbiased unless raw.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
        >>> reports.triangles().value, reports.triangles(raw=True).value
        (1.0, 1.0)
        """
        if raw:
            return self._raw("triangles", self.union.triangles)
        value, stderr = self.walks.triangles, self.walks.triangles_stderr()
        up = self._upwards(stderr, triangles_even(self.n, self._even, self._density))
        return self._estimate("triangles", value, stderr, **uneven(value, stderr, stderr, up))

    def four_cycles(self, *, raw: bool = False) -> Estimate[float]:
        """The number of 4-cycles.

        Parameters
        ----------
        raw
            Count on the union of the noisy reports instead.

        Returns
        -------
        Estimate
            The count; unbiased unless raw.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
        >>> reports.four_cycles().value
        0.0
        """
        if raw:
            return self._raw("four_cycles", self.union.four_cycles)
        value, stderr = self.walks.four_cycles, self.walks.four_cycles_stderr()
        up = self._upwards(stderr, four_cycles_even(self.n, self._even, self._density))
        return self._estimate("four_cycles", value, stderr, **uneven(value, stderr, stderr, up))

    def clustering(self, *, raw: bool = False) -> Estimate[float]:
        """The global clustering coefficient, 3·triangles/2-stars.

        It is useful only if the error of the 2-stars is small compared to their number.

        Parameters
        ----------
        raw
            Count on the union of the noisy reports instead.

        Returns
        -------
        Estimate
            The coefficient, cut to [0, 1]; consistent but not unbiased, and neither if raw. Its
            interval is [0, 1] if the noise leaves everything possible.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> reports = Reports.draw([graph, graph], Channel(1, 0), seed=1)
        >>> reports.clustering().value
        1.0
        """
        if raw:
            wedges = self.union.wedges
            ratio = 3 * self.union.triangles / wedges if wedges else math.nan
            return self._raw("clustering", ratio)
        value, stderr = self.walks.clustering(self._wedges)
        floor = kstars_floor(self.n, self.weights, 2)
        value, said = said_share(value, self.walks.clustering_ends(self._wedges, float(floor)))
        return self._estimate("clustering", value, stderr, **said)

    def _limits(self, profiles: NDArray[np.int64], level: float) -> tuple[FloatArray, FloatArray]:
        weights = tuple(float(w) for w in self.weights.weights)
        return report_limits(profiles, weights, self.noise.channel, level)

    @cached_property
    def _density(self) -> float:
        """The upper 95 % limit of the share of pairs that are edges."""
        pairs = math.comb(self.n, 2)
        return min(max(self.edges().interval[1] / pairs, 0.0), 1.0) if pairs else 0.0

    @property
    def _even(self) -> Weights:
        """Pairs whose variances are those of no holder, and of the holders with the most noise."""
        nobody, *others = self.weights.variances
        return Weights(Fraction(1), Fraction(0), nobody, max(others))

    def _upwards(self, stderr: float, even: float) -> float:
        """A standard error upwards: at least that of an evenly spread graph, as on a release."""
        return max(stderr, math.sqrt(even))

    def _stars_ends(self, k: int, value: float, stderr: float, up: float) -> tuple[float, float]:
        """The interval of k-stars, which reaches further up than down and is possible."""
        _, highest = self.degrees().interval
        tops = highest.astype(np.int64).tolist()
        above = max(Z95 * up, kstars_above(self.counts, self.weights, k, tops))
        most = float(self.n * math.comb(self.n - 1, k))
        low, high = (min(max(end, 0.0), most) for end in (value - Z95 * stderr, value + above))
        return low, high

    @cached_property
    def _wedges(self) -> float:
        return float(kstars_value(self.counts, self.weights, 2)) if self.n > 2 else 0.0

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
        """Show the reports in notebooks."""
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
