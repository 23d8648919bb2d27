"""The release: a published noisy graph with its channel, its queries and its file format.

A release is paid for once. Every query on it is post-processing and costs no further privacy,
however many queries are asked and by whom.
"""

import hashlib
import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.dp.channel import Channel, limbs
from silograph.dp.loss import PUBLISHED, View, shown_loss
from silograph.errors import ArgumentError, CalibrationWarning, UniverseError
from silograph.estimators import cycles, degrees, release_file, stars, triangles
from silograph.estimators.comparison import Comparison, compare
from silograph.estimators.covariance import (
    PairWeights,
    Stars,
    Triangles,
    linear_variance,
    release_covariance,
)
from silograph.estimators.display import described
from silograph.estimators.estimate import (
    NO_ANSWER,
    Estimate,
    FloatArray,
    Origin,
    Provenance,
    definitions,
    views_table,
)
from silograph.estimators.few_wrong import (
    Jumps,
    cycle_jumps,
    node_wrong_bits,
    star_jumps,
    triangle_jumps,
    wrong_bits,
)
from silograph.estimators.histogram import PairBlur, histogram
from silograph.estimators.inversion import degree_limits
from silograph.estimators.pair_sums import GraphSums
from silograph.estimators.questions import FurtherQuestions
from silograph.estimators.ratio import RATIO_NOTE, said_share
from silograph.estimators.release_file import Statement
from silograph.extras import library
from silograph.graph.bits import BitRows, triangle_bytes
from silograph.graph.convert import adjacency
from silograph.graph.samples import seed_bytes
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

__all__ = [
    "PaidFor",
    "Provenance",
    "Release",
    "to_edges",
    "to_networkx",
    "to_scipy",
]


# --- Exports of the raw noisy graph, each with a warning ------------------------------------------


def to_edges(graph: BitRows, universe: NodeUniverse | None) -> np.ndarray[Any, Any]:
    """A (k, 2) array of ids, or of positions if there is no universe."""
    _warn()
    return _edges(graph, universe)


def to_networkx(graph: BitRows, universe: NodeUniverse | None) -> "networkx.Graph[Any]":
    """An undirected graph whose nodes are ids, or positions if there is no universe."""
    made: networkx.Graph[Any] = library("networkx", "networkx graphs").Graph()
    _warn()
    made.add_nodes_from(range(graph.n) if universe is None else universe.ids)
    made.add_edges_from(_edges(graph, universe).tolist())
    return made


def to_scipy(graph: BitRows) -> "scipy.sparse.csr_array":
    """A symmetric n × n matrix of zeros and ones in the order of the universe."""
    library("scipy.sparse", "sparse matrices")  # fail before anything is exported
    _warn()
    made: scipy.sparse.csr_array = adjacency(graph.pairs(), graph.n)
    return made


def _edges(graph: BitRows, universe: NodeUniverse | None) -> np.ndarray[Any, Any]:
    pairs = graph.pairs()
    return pairs if universe is None else np.asarray(universe.ids)[pairs]


def _warn() -> None:
    warnings.warn(
        "this is the raw noisy graph: most of its edges may be noise, and statistics of it are "
        "not calibrated; the release's own queries are",
        CalibrationWarning,
        stacklevel=4,
    )


# --- The release ----------------------------------------------------------------------------------

NOISE_NOTE = f"{NO_ANSWER}: the noise is as large as the count; a larger ε would help"


class PaidFor(ABC):
    """The common face of all releases: what was paid for them, and how their answers say so."""

    channel: Channel
    universe_digest: str
    provenance: Provenance
    views: tuple[View, ...]
    #: The certified epsilon against the coordinator with t silos, for t = 0 … m−1.
    losses: Mapping[int, float]

    @property
    @abstractmethod
    def origin(self) -> Origin:
        """What every answer states about its origin."""

    @property
    def epsilon(self) -> float:
        """The certified epsilon against the worst of the claimed views."""
        return max(view.epsilon for view in self.views if view.claimed)

    @property
    def delta(self) -> float:
        """The delta against the worst of the claimed views."""
        return max(view.delta for view in self.views if view.claimed)

    def _estimate(self, query: str, value: Any, stderr: float, **more: Any) -> Estimate[float]:
        return Estimate(query, float(value), stderr, **self._cost(), **more)

    def _clustering(
        self,
        value: float,
        stderr: float,
        found: Callable[[float], tuple[float, float] | None],
        note: str,
    ) -> Estimate[float]:
        """A share, cut to what is possible; without ends the noise leaves everything possible."""
        value, said = said_share(value, found(0.95), note, found)
        return self._estimate("clustering", value, stderr, **said)

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

    def compare(self, other: "PaidFor") -> Comparison:
        """Whether the graph behind this release and that behind another differ.

        Parameters
        ----------
        other
            A later release, of the same silos or of others.

        Returns
        -------
        Comparison
            The change of every count that both answer, with its interval and a verdict.
        """
        return compare(self, other)

    def _statement(self) -> Statement:
        return Statement(
            self.channel, self.universe_digest, self.provenance, self.views, self.losses
        )


@dataclass(frozen=True, eq=False)
class Release(PaidFor, FurtherQuestions):
    """A noisy graph, its channel, and the privacy loss against each view.

    Queries are methods that return an :class:`Estimate`. They cost no further privacy.

    Examples
    --------
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
    #: The node list, if it is available; a file holds only its digest.
    universe: NodeUniverse | None = field(default=None, repr=False)
    #: The release that this one is a part of, and where its nodes are in it; None if it is whole.
    part_of: "tuple[Release, NDArray[np.uint32]] | None" = field(default=None, repr=False)

    @classmethod
    def draw(cls, graph: Silo, channel: Channel, seed: int) -> "Release":
        """Pass a known graph through a channel. **For experiments only.**

        This needs the true graph in one place and is as predictable as its seed, so it protects
        nobody's edges. The draw is exact for every rational channel.

        Parameters
        ----------
        graph
            The true graph.
        channel
            The channel.
        seed
            The seed of the draw.

        Returns
        -------
        Release
            The simulated release.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(3), [[0, 1]])
        >>> Release.draw(silo, Channel(1, 0), seed=1).n
        3
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
    def origin(self) -> Origin:
        """What every answer states about its origin."""
        stated = (self.provenance, self.views, self.losses, self.n, self.universe_digest)
        return Origin(*stated, release=self, universe=self.universe)

    @property
    def whole(self) -> "Release":
        """The release that this one is a part of, or itself."""
        return self if self.part_of is None else self.part_of[0]

    @cached_property
    def fingerprint(self) -> str:
        """What tells a draw, which has no run, from other draws: a digest of its noisy bits."""
        seen = hashlib.sha256(f"{self.channel.p11} {self.channel.p01} {self.n}".encode())
        seen.update(self.graph.words.data)
        return seen.hexdigest()

    @property
    def nodes(self) -> NDArray[np.uint32]:
        """Where the nodes are in the whole release."""
        return np.arange(self.n, dtype=np.uint32) if self.part_of is None else self.part_of[1]

    def covariance(self, one: Estimate[Any], other: Estimate[Any]) -> float:
        """How the errors of two answers of this release go together.

        Parameters
        ----------
        one, other
            The answers.

        Returns
        -------
        float
            The unbiased estimate of their covariance.

        Raises
        ------
        SilographError
            If it is not known.
        """
        return release_covariance(one, other)

    def variance(self, terms: Sequence[tuple[float, Estimate[Any]]]) -> float:
        """The variance of a weighted sum of answers of this release that are sums over pairs.

        Parameters
        ----------
        terms
            The weights and the answers: edges, degrees, or edges of groups.

        Returns
        -------
        float
            The estimated variance.
        """
        return linear_variance(terms)

    # -- queries ---------------------------------------------------------------------------

    def edges(self) -> Estimate[float]:
        """The number of edges.

        Returns
        -------
        Estimate
            The unbiased count.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.edges().value
        3.0
        """
        value = degrees.edges_value(self.graph, self.channel)
        stderr = degrees.edges_stderr(self.graph, self.channel)
        more: dict[str, Any] = {"form": PairWeights.all_pairs(self.n)}
        if self.n <= degrees.EXACT:
            limits = partial(degrees.edges_limits, self.graph, self.channel)
            more |= {"ends": limits(), "limits": limits}
            more["wrong"] = wrong_bits(self.graph, self.channel)
        return self._estimate("edges", value, stderr, **more)

    def degrees(self) -> "Estimate[FloatArray]":
        """The degree of every node, in the order of the universe.

        Returns
        -------
        Estimate
            The unbiased degrees, with intervals that hold each true degree with a probability of at
            least 95 %, however few bits are wrong.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.degrees().value.tolist()
        [2.0, 2.0, 2.0, 0.0]
        """
        value = degrees.degree_values(self.graph, self.channel)
        stderr = degrees.degree_stderrs(self.graph, self.channel)

        def limits(level: float) -> tuple[FloatArray, FloatArray]:
            low, high = degree_limits(self.graph, self.channel, level)
            return low.astype(np.float64), high.astype(np.float64)

        form = partial(PairWeights.of_node, self.n)
        return self._array("degrees", value, stderr, ends=limits(0.95), limits=limits, form=form)

    def degree_histogram(self, bins: "list[int] | None" = None) -> "Estimate[FloatArray]":
        """How many nodes have a degree in each bin [b0, b1), [b1, b2), …

        Parameters
        ----------
        bins
            The edges of the bins. By default 0, 1, 2, 4, 8, … up to n, joined until the noise can
            tell them apart.

        Returns
        -------
        Estimate
            The most likely histogram, with intervals of whole nodes. The interval of a bin that is
            narrow beside the noise is wide.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.degree_histogram([0, 1, 4]).value.tolist()
        [1.0, 3.0]
        """
        found = histogram(self.graph.degrees, PairBlur(self.n, self.channel), bins)
        return self._array("degree_histogram", found.value, found.stderr, **found.said)

    def kstars(self, k: int) -> Estimate[float]:
        """The number of k-stars, Σ C(d, k).

        Parameters
        ----------
        k
            The number of leaves, at least 1.

        Returns
        -------
        Estimate
            The unbiased count. From k = 3 on, and on small dense graphs, the interval reaches
            further up than down, since the noise does.

        Raises
        ------
        ArgumentError
            If k is out of range.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> Release.draw(silo, Channel(1, 0), seed=1).kstars(2).value
        3.0
        """
        self.check_k(k, self.n)
        try:
            value = float(stars.kstars_value(self.graph, self.channel, k))
            stderr = stars.kstars_stderr(self.graph, self.channel, k)
            even = stars.kstars_even(self.n, self.channel.weights, k, self._density)
            both = PairWeights.all_pairs(self.n).times(2.0)  # an edge is a star at both ends
            more: dict[str, Any] = {"parameters": {"k": k}, "form": both if k == 1 else Stars(k)}
            more |= self._ends(value, stderr, even, star_jumps(k), always=k > 2)
            if k > 2:
                given = (self.graph, self.channel, k, value, more["limits"])
                limits = partial(stars.kstars_ends, *given)
                ends = limits(0.95)
                more |= {"ends": ends, "limits": limits}
                more["note"] = NOISE_NOTE if stderr >= min(value, ends[1]) else ""
        except OverflowError:
            raise ArgumentError(f"k = {k}: the number of stars exceeds a float's range") from None
        return self._estimate("kstars", value, stderr, **more)

    def triangles(self) -> Estimate[float]:
        """The number of triangles.

        Returns
        -------
        Estimate
            The unbiased count.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.triangles().value
        1.0
        """
        value = float(triangles.triangles_value(self.sums, self.channel))
        stderr = triangles.triangles_stderr(self.sums, self.channel)
        even = triangles.triangles_even(self.n, self.channel.weights, self._density)
        more = self._ends(value, stderr, even, triangle_jumps)
        return self._estimate("triangles", value, stderr, form=Triangles(), **more)

    def node_triangles(self) -> "Estimate[FloatArray]":
        """The number of triangles at every node, in the order of the universe.

        Returns
        -------
        Estimate
            The unbiased counts.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.node_triangles().value.tolist()
        [1.0, 1.0, 1.0, 0.0]
        """
        value = triangles.node_triangle_values(self.sums, self.channel)
        stderr = triangles.node_triangle_stderrs(self.sums, self.channel)
        wrong = node_wrong_bits(self.graph, self.channel, stderr)
        limits = partial(wrong.limits, value, stderr, stderr)
        more: dict[str, Any] = {"ends": limits(0.95), "limits": limits} if wrong.few else {}
        return self._array("node_triangles", value, stderr, **more)

    def four_cycles(self) -> Estimate[float]:
        """The number of 4-cycles.

        Returns
        -------
        Estimate
            The unbiased count. On small dense graphs the interval reaches further up than down,
            since the noise does.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.four_cycles().value
        0.0
        """
        value = float(cycles.four_cycles_value(self.sums, self.channel))
        stderr = cycles.four_cycles_stderr(self.sums, self.channel)
        even = cycles.four_cycles_even(self.n, self.channel.weights, self._density)
        more = self._ends(value, stderr, even, cycle_jumps)
        return self._estimate("four_cycles", value, stderr, **more)

    def clustering(self) -> Estimate[float]:
        """The global clustering coefficient, 3·triangles/2-stars.

        Returns
        -------
        Estimate
            The coefficient, cut to [0, 1]; consistent but not unbiased. Its interval is [0, 1] if
            the release says nothing about it.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.clustering().value
        1.0
        """
        value = triangles.clustering_value(self.sums, self.channel)
        stderr = triangles.clustering_stderr(self.sums, self.channel)
        ends = partial(triangles.clustering_ends, self.sums, self.channel)
        return self._clustering(value, stderr, ends, RATIO_NOTE)

    @cached_property
    def _density(self) -> float:
        return degrees.highest_density(self.graph, self.channel)

    def _ends(
        self, value: float, stderr: float, even: float, jumps: Jumps, *, always: bool = False
    ) -> dict[str, Any]:
        """The ends of an interval, if it is not the normal one or if they are ``always`` wanted.

        A dense graph that looks thin by chance has a small standard error too. So upwards the error
        is at least that of a graph whose edges are spread evenly, with as many edges as there can
        be (``even`` is its variance). Of all graphs with so many edges it has about the smallest.
        Where few bits are wrong, both are stretched.
        """
        wrong = wrong_bits(self.graph, self.channel, stderr, jumps)
        up = max(stderr, math.sqrt(even))
        limits = partial(wrong.limits, value, stderr, up)
        if up == stderr and not wrong.few and not always:
            return {}
        return {"ends": limits(0.95), "limits": limits, "wrong": wrong}

    @cached_property
    def sums(self) -> GraphSums:
        """The sums over pairs that several queries share."""
        return GraphSums(self.graph)

    # -- files and other tools ---------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a file; an existing file is replaced completely or not at all.

        Parameters
        ----------
        path
            The file to write.

        Raises
        ------
        ReleaseError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "my.release"
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> Release.draw(silo, Channel("3/4", "1/4"), seed=1).save(path)
        >>> Release.load(path, silo.universe).n
        4
        """
        own, payload = {"n": self.n}, self.graph.to_triangle()
        release_file.write(path, release_file.PAIRS, own, self._statement(), payload)

    @classmethod
    def load(cls, path: str | os.PathLike[str], universe: NodeUniverse | None = None) -> "Release":
        """Read a release from a file.

        Parameters
        ----------
        path
            The file to read.
        universe
            The node list; if it is given, it must be the one that the release was made with.

        Returns
        -------
        Release
            The release.

        Raises
        ------
        ReleaseError
            If the file is not a valid release.
        UniverseError
            If the release was made with another node list.
        """

        def own(header: release_file.Fields) -> tuple[int, int]:
            n = header.whole("n", 1)
            return n, triangle_bytes(n)

        n, stated, payload = release_file.read(path, release_file.PAIRS, own)
        graph = BitRows.from_triangle(n, payload)
        release = cls(
            graph,
            stated.channel,
            stated.universe_digest,
            stated.provenance,
            stated.views,
            stated.losses,
        )
        return release if universe is None else release.with_universe(universe)

    def with_universe(self, universe: NodeUniverse) -> "Release":
        """The same release with its node list, so that exports carry ids.

        Parameters
        ----------
        universe
            The node list that the release was made with.

        Returns
        -------
        Release
            The release with its node list.

        Raises
        ------
        UniverseError
            If the release was made with another node list.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.with_universe(NodeUniverse.range(4)).n
        4
        """
        if universe.digest != self.universe_digest:
            raise UniverseError(
                f"this release is about another node list: its digest is "
                f"{self.universe_digest[:16]}…, not {universe.digest[:16]}…"
            )
        return replace(self, universe=universe)

    def to_networkx(self) -> "networkx.Graph[Any]":
        """The raw noisy graph, with a warning that its statistics are not calibrated.

        Returns
        -------
        networkx.Graph
            A graph whose nodes are ids, or positions if the node list is not available.
        """
        return to_networkx(self.graph, self.universe)

    def to_scipy(self) -> "scipy.sparse.csr_array":
        """The raw noisy adjacency matrix, with the same warning.

        Returns
        -------
        scipy.sparse.csr_array
            A symmetric matrix in the order of the universe.
        """
        return to_scipy(self.graph)

    def to_edges(self) -> "np.ndarray[Any, Any]":
        """The raw noisy edges, with the same warning.

        Returns
        -------
        numpy.ndarray
            A (k, 2) array of ids, or of positions if the node list is not available.
        """
        return to_edges(self.graph, self.universe)

    @staticmethod
    def check_k(k: int, n: int) -> None:
        """Refuse a k for which there are no k-stars among n nodes."""
        if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
            raise ArgumentError(f"k must be an integer of at least 1, not {k!r}")
        if k >= n:
            raise ArgumentError(f"k = {k}: a star with {k} leaves needs more than {n} nodes")

    @staticmethod
    def check_leaves(query: str, k: int | None, n: int) -> None:
        """Refuse a k that is missing, too large, or given for a query that does not take it."""
        if (k is None) != (query != "kstars"):
            raise ArgumentError("kstars needs k, and nothing else takes it")
        if k is not None:
            Release.check_k(k, n)

    def _about(self) -> dict[str, str]:
        """Names and values of what is known of it."""
        made = self.provenance
        return {
            "nodes": f"{self.n:,}, list {self.universe_digest[:16]}…",
            "silos": f"{made.silos}, of which {made.collusion} may collude with the coordinator",
            "protocol": made.protocol,
            "noise": f"an edge shows with p = {float(self.channel.p11):.4g}, any other pair with "
            f"p = {float(self.channel.p01):.4g}",
            "cost": f"ε = {shown_loss(self.epsilon)}, paid; every question on it is free",
        }

    def _repr_html_(self) -> str:
        """Show the release in notebooks."""
        return definitions("release", self._about(), views_table(self.views))

    def __str__(self) -> str:
        return described("release", self._about(), self.views)
