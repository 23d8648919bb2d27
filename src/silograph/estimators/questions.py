"""Further questions of a release: groups of nodes, subsets of nodes, and clustering at each node.

They are methods of :class:`~silograph.estimators.release.Release`, and as free as all others.
Groups and subsets are public: whoever asks knows them, and they must not depend on edges.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from silograph.dp.channel import Channel
from silograph.errors import ArgumentError, UniverseError
from silograph.estimators.covariance import GroupTriangles, PairWeights
from silograph.estimators.degree_correlation import degree_correlation
from silograph.estimators.estimate import NO_ANSWER, Estimate, FloatArray, Places
from silograph.estimators.few_wrong import node_wrong_bits, wrong_bits
from silograph.estimators.groups import (
    ASSORTATIVITY,
    MODULARITY,
    GroupCounts,
    Groups,
    Ratio,
    triangles_by_group,
)
from silograph.estimators.local_clustering import local_clustering
from silograph.estimators.pair_sums import GraphSums
from silograph.estimators.ratio import RatioAnswer
from silograph.graph.bits import BitRows
from silograph.graph.universe import NodeUniverse

__all__ = ["GROUP_QUERIES", "RELEASE_QUERIES", "FurtherQuestions"]

#: The questions that need groups, and those that a release answers beside the queries of a study.
GROUP_QUERIES = ("mixing", "degrees_by", "triangles_by", "assortativity", "modularity")
RELEASE_QUERIES = (*GROUP_QUERIES, "local_clustering", "degree_correlation")

_RATIO_NOTE = "a ratio of two unbiased estimates: consistent, not unbiased"
_NO_RATIO_NOTE = f"{NO_ANSWER}: the noise leaves every value possible; a larger ε would help"
_LOCAL_NOTE = (
    "ratios of unbiased counts: consistent, not unbiased; an interval from 0 to 1 says nothing"
)


class FurtherQuestions(ABC):
    """Questions about groups and subsets of nodes, and about each node's neighbours."""

    graph: BitRows
    channel: Channel
    universe: NodeUniverse | None

    @property
    @abstractmethod
    def sums(self) -> GraphSums:
        """The sums over pairs that several queries share."""

    @abstractmethod
    def _cost(self) -> dict[str, Any]:
        """What every answer states about cost and origin."""

    # -- groups ----------------------------------------------------------------------------

    def mixing(
        self, groups: Mapping[Any, Any] | Groups, *, rest: str | None = None
    ) -> "Estimate[FloatArray]":
        """The number of edges within each group of nodes and between each two: a mixing matrix.

        Parameters
        ----------
        groups
            The group of every node: a dict from id to group. It must be public.
        rest
            A group for all nodes that the dict leaves out.

        Returns
        -------
        Estimate
            The unbiased numbers, as a symmetric matrix; ``at("a", "b")`` gives one of them.

        Examples
        --------
        >>> from silograph import Release, Silo
        >>> silo = Silo.from_edges(NodeUniverse(list("abcd")), [("a", "b"), ("b", "c")])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> found = release.mixing({"a": "x", "b": "x", "c": "y", "d": "y"})
        >>> found.value.tolist()
        [[1.0, 1.0], [1.0, 0.0]]
        """
        chosen = self.groups(groups, rest)
        counts, w = GroupCounts(self.graph, chosen), self.channel.weights
        matrix = chosen.matrix

        def limits(level: float) -> tuple[FloatArray, FloatArray]:
            low, high = counts.edge_limits(self.channel, level)
            return matrix(low), matrix(high)

        def form(entry: int) -> PairWeights:
            only = np.zeros((counts.count, counts.count))
            g, h = int(counts.rows[entry]), int(counts.columns[entry])
            only[g, h] = only[h, g] = 1.0
            return PairWeights(chosen.labels, only)

        return Estimate(
            "mixing",
            matrix(counts.edges(w)),
            matrix(counts.edge_stderrs(w)),
            ends=limits(0.95),
            limits=limits,
            places=chosen.places,
            form=form,
            **self._cost(),
        )

    def degrees_by(
        self, groups: Mapping[Any, Any] | Groups, *, rest: str | None = None
    ) -> "Estimate[FloatArray]":
        """The mean degree of the nodes of each group.

        Parameters
        ----------
        groups
            The group of every node; see :meth:`mixing`.
        rest
            A group for all nodes that the dict leaves out.

        Returns
        -------
        Estimate
            The unbiased means.

        Examples
        --------
        >>> from silograph import Release, Silo
        >>> silo = Silo.from_edges(NodeUniverse(list("abcd")), [("a", "b"), ("b", "c")])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.degrees_by({"a": "x", "b": "x", "c": "y", "d": "y"}).value.tolist()
        [1.5, 0.5]
        """
        chosen = self.groups(groups, rest)
        counts, sizes = GroupCounts(self.graph, chosen), chosen.sizes
        sums, stderrs = counts.degree_sums(self.channel.weights)

        def limits(level: float) -> tuple[FloatArray, FloatArray]:
            low, high = counts.degree_limits(self.channel, level)
            return low / sizes, high / sizes

        def form(entry: int) -> PairWeights:
            # A pair has as many ends in the group as the two groups of its ends say.
            one = np.zeros(counts.count)
            one[entry] = 1 / sizes[entry]
            return PairWeights(chosen.labels, one[:, None] + one)

        return Estimate(
            "degrees_by",
            sums / sizes,
            stderrs / sizes,
            ends=limits(0.95),
            limits=limits,
            places=Places("group", {"group": chosen.names, "nodes": sizes.tolist()}),
            form=form,
            **self._cost(),
        )

    def triangles_by(
        self, groups: Mapping[Any, Any] | Groups, *, rest: str | None = None
    ) -> "Estimate[FloatArray]":
        """The number of triangles inside each group of nodes, and of all others.

        Parameters
        ----------
        groups
            The group of every node; see :meth:`mixing`.
        rest
            A group for all nodes that the dict leaves out.

        Returns
        -------
        Estimate
            The unbiased counts: one for each group, and last the triangles whose corners are not
            all in one group.

        Examples
        --------
        >>> from silograph import Release, Silo
        >>> edges = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("b", "d")]
        >>> silo = Silo.from_edges(NodeUniverse(list("abcd")), edges)
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.triangles_by({"a": "x", "b": "x", "c": "x", "d": "y"}).value.tolist()
        [1.0, 0.0, 1.0]
        """
        chosen = self.groups(groups, rest)
        value, stderr, wrong = triangles_by_group(self.sums, self.channel, chosen)

        def limits(level: float) -> tuple[FloatArray, FloatArray]:
            ends = [
                each.limits(count, error, error, level)
                for each, count, error in zip(wrong, value, stderr, strict=True)
            ]
            low, high = np.array(ends).T
            return low, high

        columns = {
            "group": [*chosen.names, "between groups"],
            "nodes": [*chosen.sizes.tolist(), self.graph.n],
        }
        places, form = Places("group", columns), partial(GroupTriangles, chosen.labels.tobytes())
        more = self._cost()
        if any(each.few for each in wrong):
            more |= {"ends": limits(0.95), "limits": limits}
        return Estimate("triangles_by", value, stderr, places=places, form=form, **more)

    def assortativity(
        self, groups: Mapping[Any, Any] | Groups, *, rest: str | None = None
    ) -> Estimate[float]:
        """Whether edges prefer nodes of one group: Newman's assortativity by a public attribute.

        It is 1 if all edges are inside groups, and 0 if they fall by chance.

        Parameters
        ----------
        groups
            The group of every node; see :meth:`mixing`.
        rest
            A group for all nodes that the dict leaves out.

        Returns
        -------
        Estimate
            The coefficient, cut to [−1, 1]; consistent but not unbiased.

        Examples
        --------
        >>> from silograph import Release, Silo
        >>> silo = Silo.from_edges(NodeUniverse(list("abcd")), [("a", "b"), ("c", "d")])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.assortativity({"a": "x", "b": "x", "c": "y", "d": "y"}).value
        1.0
        """
        return self._group_ratio("assortativity", ASSORTATIVITY, groups, rest)

    def modularity(
        self, groups: Mapping[Any, Any] | Groups, *, rest: str | None = None
    ) -> Estimate[float]:
        """The modularity of a public partition: the share of edges inside groups, less what it
        would be by chance.

        Parameters
        ----------
        groups
            The group of every node; see :meth:`mixing`.
        rest
            A group for all nodes that the dict leaves out.

        Returns
        -------
        Estimate
            The modularity, cut to [−1/2, 1]; consistent but not unbiased.

        Examples
        --------
        >>> from silograph import Release, Silo
        >>> silo = Silo.from_edges(NodeUniverse(list("abcd")), [("a", "b"), ("c", "d")])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.modularity({"a": "x", "b": "x", "c": "y", "d": "y"}).value
        0.5
        """
        return self._group_ratio("modularity", MODULARITY, groups, rest)

    def groups(self, given: Mapping[Any, Any] | Groups, rest: str | None = None) -> Groups:
        """The groups of a table from node id to group, checked against the node list.

        Parameters
        ----------
        given
            The group of every node.
        rest
            A group for all nodes that the table leaves out.

        Returns
        -------
        Groups
            The groups.

        Raises
        ------
        UniverseError
            If a node has no group, or the release has no node list.
        """
        if isinstance(given, Groups):
            if len(given.labels) != self.graph.n:
                raise ArgumentError("these groups are of another node list")
            return given
        return Groups.of(given, self._node_list(), rest)

    # -- subsets ---------------------------------------------------------------------------

    def subset(self, nodes: Iterable[Any]) -> Self:
        """The release of some nodes alone; it answers every question about the edges among them.

        Parameters
        ----------
        nodes
            The ids of the nodes. They must be public.

        Returns
        -------
        Release
            The release on these nodes, in the order of the node list.

        Examples
        --------
        >>> from silograph import Release, Silo
        >>> silo = Silo.from_edges(NodeUniverse(list("abcd")), [("a", "b"), ("c", "d")])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.subset(["a", "b", "c"]).edges().value
        1.0
        """
        universe = self._node_list()
        if isinstance(nodes, str | bytes | Mapping):
            raise ArgumentError("a subset is a list of node ids")
        places = np.unique(np.array([universe.index(node) for node in nodes], dtype=np.uint32))
        ids = universe.ids
        part = NodeUniverse(
            [ids[place] for place in places], strip=universe.strip, case=universe.case
        )
        made: Self = replace(
            self.whole,  # type: ignore[type-var]
            graph=self.graph.induced(places),
            universe_digest=part.digest,
            universe=part,
            part_of=(self.whole, self.nodes[places]),
        )
        return made

    @property
    @abstractmethod
    def whole(self) -> Self:
        """The release that this one is a part of, or itself."""

    @property
    @abstractmethod
    def nodes(self) -> NDArray[np.uint32]:
        """Where the nodes are in the whole release."""

    # -- neighbours ------------------------------------------------------------------------

    def local_clustering(self) -> "Estimate[FloatArray]":
        """The clustering coefficient of every node: the share of its pairs of neighbours that are
        joined.

        Returns
        -------
        Estimate
            The coefficients, cut to [0, 1]; ``at(id)`` gives that of one node. They are consistent
            but not unbiased. An interval from 0 to 1 says nothing, as of nodes with few edges.

        Examples
        --------
        >>> from silograph import Release, Silo
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2], [0, 3]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.local_clustering().value.round(3).tolist()
        [0.333, 1.0, 1.0, nan]
        """
        found = local_clustering(self.sums, self.channel)
        # The errors of t̂ − R·ŵ; there is none where nothing is divided by.
        errors = np.array([each.stderr * each.bottom if each.bottom > 0 else 0.0 for each in found])
        ratios = np.clip(np.nan_to_num([each.value for each in found]), 0.0, 1.0)
        wrong = node_wrong_bits(self.graph, self.channel, errors, ratios)

        def limits(level: float) -> tuple[FloatArray, FloatArray]:
            by = np.broadcast_to(wrong.stretch(level), len(found)).tolist()
            wide = (each.stretched(more) for each, more in zip(found, by, strict=True))
            ends = np.array([each.ends(0.0, 1.0, level) or (0.0, 1.0) for each in wide])
            low, high = ends.reshape(-1, 2).T
            return low, high

        return Estimate(
            "local_clustering",
            np.clip([each.value for each in found], 0.0, 1.0),
            np.array([each.stderr for each in found]),
            ends=limits(0.95),
            limits=limits,
            note=_LOCAL_NOTE,
            **self._cost(),
        )

    def degree_correlation(self) -> Estimate[float]:
        """The correlation of the degrees at the two ends of an edge (degree assortativity).

        Returns
        -------
        Estimate
            The correlation, cut to [−1, 1]; consistent but not unbiased.

        Examples
        --------
        >>> from silograph import Release, Silo
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [2, 3]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> round(release.degree_correlation().value, 3)
        -0.5
        """
        return self._ratio(
            "degree_correlation", degree_correlation(self.sums, self.channel), -1.0, 1.0
        )

    # -- what they share -------------------------------------------------------------------

    def _node_list(self) -> NodeUniverse:
        if self.universe is None:
            raise UniverseError(
                "a release file does not hold the node list; add it with with_universe() (--nodes)"
            )
        return self.universe

    def _group_ratio(
        self, query: str, ratio: Ratio, groups: Mapping[Any, Any] | Groups, rest: str | None
    ) -> Estimate[float]:
        counts = GroupCounts(self.graph, self.groups(groups, rest))
        found = counts.ratio(ratio, self.channel.weights)
        return self._ratio(query, found, ratio.least, ratio.most)

    def _ratio(self, query: str, found: RatioAnswer, least: float, most: float) -> Estimate[float]:
        """A ratio with Fieller's interval, both cut to what is possible."""
        wrong = wrong_bits(self.graph, self.channel)

        def limits(level: float) -> tuple[float, float]:
            wide = found.stretched(wrong.stretch(level))
            return wide.ends(least, most, level) or (least, most)

        value, note = found.value, _RATIO_NOTE
        if limits(0.95) == (least, most):
            note = _NO_RATIO_NOTE
        if not math.isnan(value) and not least <= value <= most:
            note += f"; the noise gave {value:.4g}, which is cut to what is possible"
            value = min(max(value, least), most)
        ends = limits(0.95)
        more = self._cost()
        return Estimate(query, value, found.stderr, ends=ends, limits=limits, note=note, **more)
