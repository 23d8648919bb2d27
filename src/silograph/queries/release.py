"""The release: a published noisy graph with its channel.

A release is paid for once. Every query on it is post-processing and costs no more privacy,
however many are asked and by whomever.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from silograph import _core
from silograph.crypto.limbs import limbs
from silograph.errors import ArgumentError, UniverseError
from silograph.graph.bitrows import BitRows
from silograph.graph.seeds import seed_bytes
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.privacy.channel import Channel
from silograph.privacy.loss import shown_loss
from silograph.privacy.views import PUBLISHED, View
from silograph.queries import cycles, degrees, export, histogram, release_file, stars, triangles
from silograph.queries.display import definitions, views_table
from silograph.queries.estimate import Estimate, FloatArray
from silograph.queries.origin import Origin, Provenance
from silograph.queries.tally import Tally

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

__all__ = ["CURVE_NOTE", "RATIO_NOTE", "Provenance", "Release"]

RATIO_NOTE = "a ratio of two unbiased counts: consistent, not unbiased"
CURVE_NOTE = "maximum likelihood, smoothed by early stopping: consistent, not unbiased"


@dataclass(frozen=True, eq=False)
class Release:
    """A noisy graph, its channel, and who learns how much from it.

    >>> import numpy as np
    >>> silo = Silo.from_edges(NodeUniverse.range(4), np.array([[0, 1], [1, 2], [0, 2]]))
    >>> release = Release.draw(silo, Channel(1, 0), seed=1)
    >>> release.triangles().value, release.edges().value
    (1.0, 3.0)
    """

    graph: BitRows
    channel: Channel
    universe_digest: str
    provenance: Provenance
    views: tuple[View, ...]
    #: The certified epsilon against the coordinator with t silos, for t = 0 … m−1.
    losses: Mapping[int, float]
    #: The node list, where it is at hand; a file carries its digest only.
    universe: NodeUniverse | None = field(default=None, repr=False)

    @classmethod
    def draw(cls, graph: Silo, channel: Channel, seed: int) -> "Release":
        """Pass a known graph through the channel. **For experiments only.**

        It needs the true graph in one place and is as predictable as its seed; nobody's edges are
        protected by it. The draw is exact for every rational channel.
        """
        rows = _core.draw_rows(
            len(graph.universe),
            graph.pairs,
            limbs(channel.p11),
            limbs(channel.p01),
            seed_bytes("draw", seed),
        )
        return cls(
            BitRows(rows),
            channel,
            graph.universe.digest,
            Provenance(method="feat", protocol="clear", silos=1),
            (View(PUBLISHED, channel.epsilon),),
            {0: channel.epsilon},
            graph.universe,
        )

    @property
    def n(self) -> int:
        """The number of nodes."""
        return self.graph.n

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
        return Origin(self.provenance, self.views, self.losses, self.n, self.universe_digest)

    # -- queries ---------------------------------------------------------------------------

    def edges(self) -> Estimate[float]:
        """The number of edges. Unbiased."""
        value = degrees.edges_value(self.graph, self.channel)
        return self._estimate("edges", value, degrees.edges_stderr(self.graph, self.channel))

    def degrees(self) -> "Estimate[FloatArray]":
        """The degree of every node, in the order of the universe. Unbiased."""
        value = degrees.degree_values(self.graph, self.channel)
        return self._array("degrees", value, degrees.degree_stderrs(self.graph, self.channel))

    def degree_histogram(self, bins: "list[int] | None" = None) -> "Estimate[FloatArray]":
        """How many nodes have a degree in each bin [b0, b1), [b1, b2), …

        Default bins are 0, 1, 2, 4, 8, … up to n. A deconvolution: consistent, not unbiased.
        """
        edges = histogram.check_bins(bins, self.n)
        value, stderr = histogram.degree_histogram(self.graph, self.channel, edges)
        return self._array(
            "degree_histogram", value, stderr, note=CURVE_NOTE, parameters={"bins": edges}
        )

    def kstars(self, k: int) -> Estimate[float]:
        """The number of k-stars, Σ C(d, k), for any k ≥ 1. Unbiased."""
        self.check_k(k, self.n)
        try:
            value = float(stars.kstars_value(self.graph, self.channel, k))
            stderr = stars.kstars_stderr(self.graph, self.channel, k)
        except OverflowError:
            raise ArgumentError(f"k = {k}: the number of stars exceeds a float's range") from None
        return self._estimate("kstars", value, stderr, parameters={"k": k})

    def triangles(self) -> Estimate[float]:
        """The number of triangles. Unbiased."""
        value = triangles.triangles_value(self.tally, self.channel)
        return self._estimate(
            "triangles", value, triangles.triangles_stderr(self.tally, self.channel)
        )

    def node_triangles(self) -> "Estimate[FloatArray]":
        """The number of triangles at every node, in the order of the universe. Unbiased."""
        value = triangles.node_triangle_values(self.tally, self.channel)
        stderr = triangles.node_triangle_stderrs(self.tally, self.channel)
        return self._array("node_triangles", value, stderr)

    def four_cycles(self) -> Estimate[float]:
        """The number of 4-cycles. Unbiased."""
        value = cycles.four_cycles_value(self.tally, self.channel)
        return self._estimate(
            "four_cycles", value, cycles.four_cycles_stderr(self.tally, self.channel)
        )

    def clustering(self) -> Estimate[float]:
        """The global clustering coefficient, 3·triangles/2-stars: consistent, not unbiased."""
        value = triangles.clustering_value(self.tally, self.channel)
        stderr = triangles.clustering_stderr(self.tally, self.channel)
        return self._estimate("clustering", value, stderr, note=RATIO_NOTE)

    @cached_property
    def tally(self) -> Tally:
        """The sums over pairs that several queries share."""
        return Tally(self.graph)

    # -- files and other tools ---------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to one file; an existing file is replaced whole or not at all."""
        release_file.write(
            path,
            self.graph,
            self.channel,
            self.universe_digest,
            self.provenance,
            self.views,
            self.losses,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], universe: NodeUniverse | None = None) -> "Release":
        """Read a release. With a universe, check that it is the one the release is about."""
        found = release_file.read(path)
        release = cls(
            found.graph,
            found.channel,
            found.universe_digest,
            found.provenance,
            found.views,
            found.losses,
        )
        return release if universe is None else release.with_universe(universe)

    def with_universe(self, universe: NodeUniverse) -> "Release":
        """The same release with its node list at hand, so that exports carry ids."""
        if universe.digest != self.universe_digest:
            raise UniverseError(
                f"this release is about another node list: its digest is "
                f"{self.universe_digest[:16]}…, not {universe.digest[:16]}…"
            )
        return replace(self, universe=universe)

    def to_networkx(self) -> "networkx.Graph[Any]":
        """The raw noisy graph (with a warning: statistics of it are not calibrated)."""
        return export.to_networkx(self.graph, self.universe)

    def to_scipy(self) -> "scipy.sparse.csr_array":
        """The raw noisy adjacency matrix (with a warning, as above)."""
        return export.to_scipy(self.graph)

    def to_edges(self) -> "np.ndarray[Any, Any]":
        """The raw noisy edges as a (k, 2) array of ids, or of positions where the universe is not
        at hand (with a warning, as above)."""
        return export.to_edges(self.graph, self.universe)

    def _estimate(self, query: str, value: Any, stderr: float, **more: Any) -> Estimate[float]:
        return Estimate(query, float(value), stderr, **self._cost(), **more)

    def _array(
        self, query: str, value: FloatArray, stderr: FloatArray, **more: Any
    ) -> Estimate[FloatArray]:
        return Estimate(query, value, stderr, **self._cost(), **more)

    def _cost(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "method": self.provenance.method,
            "origin": self.origin,
        }

    @staticmethod
    def check_k(k: int, n: int) -> None:
        """Refuse a k for which there are no k-stars among n nodes."""
        if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
            raise ArgumentError(f"k must be an integer of at least 1, not {k!r}")
        if k >= n:
            raise ArgumentError(f"k = {k}: a star with {k} leaves needs more than {n} nodes")

    @staticmethod
    def check_leaves(query: str, k: int | None, n: int) -> None:
        """Refuse a question about n nodes whose k is missing, out of place or too large."""
        if (k is None) != (query != "kstars"):
            raise ArgumentError("kstars needs k, and nothing else takes it")
        if k is not None:
            Release.check_k(k, n)

    def _repr_html_(self) -> str:
        """For notebooks."""
        made = self.provenance
        rows = {
            "nodes": f"{self.n:,}, list {self.universe_digest[:16]}…",
            "silos": f"{made.silos}, of which {made.collusion} may collude with the coordinator",
            "protocol": made.protocol,
            "noise": f"an edge shows with probability {float(self.channel.p11):.4g}, "
            f"any other pair with {float(self.channel.p01):.4g}",
            "cost": f"ε = {shown_loss(self.epsilon)}, paid; every question on it is free",
        }
        return definitions(f"release of {self.n:,} nodes", rows, views_table(self.views))

    def __str__(self) -> str:
        silos = self.provenance.silos
        lines = [
            f"release of {self.n:,} nodes, universe {self.universe_digest[:16]}…",
            f"  {self.channel}",
            f"  protocol {self.provenance.protocol}, {silos} silo{'s' * (silos != 1)}",
            *(f"  {view}" for view in self.views),
        ]
        return "\n".join(lines)
