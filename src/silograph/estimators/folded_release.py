"""The folded release: a noisy union of buckets, its channel, its queries and its file.

It is paid for once, like a :class:`~silograph.estimators.release.Release`, and its size depends on
the number of groups, not of nodes. Its answers are about the whole graph: there are none for single
nodes. They are not exactly unbiased, since edges that fall into one bucket count once. The expected
loss is estimated from the release and added back; what is left of it is far below the standard
error where the planner offers to fold.
"""

import math
import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from silograph.dp.channel import Channel
from silograph.dp.laplace import round_up
from silograph.dp.loss import View, shown_loss, worst_losses
from silograph.errors import ArgumentError, ReleaseError
from silograph.estimators import release_file
from silograph.estimators.display import NO_ANSWER, described
from silograph.estimators.estimate import Estimate, Origin, Provenance, definitions, views_table
from silograph.estimators.folded import FoldedSum, FoldedSums
from silograph.estimators.ratio import share
from silograph.estimators.release import PaidFor
from silograph.graph.fold import BucketCounts, Layout

__all__ = ["FOLDED_QUERIES", "FOLD_NOTE", "FoldedFace", "FoldedRelease"]

#: The queries that a folded release answers.
FOLDED_QUERIES = ("edges", "kstars", "triangles", "four_cycles", "clustering")
FOLD_NOTE = "from folded nodes: not exactly unbiased, as edges can share a bucket"
_MOST_NODES = 1 << 32
#: Edges that share a bucket, in the mean, up to which intervals of folded counts were seen to hold;
#: from a little more on, edges are counted too low. And what is advised instead.
_CROWDED, _ADVISED = 0.5, 0.25


class FoldedFace(PaidFor):
    """The common face of what is made of folded nodes: a release, or sealed counts."""

    TITLE: ClassVar[str]
    layout: Layout
    #: The number of nodes; 0 if the universe is open.
    nodes: int

    @property
    def origin(self) -> Origin:
        """What every answer states about its origin."""
        stated = (self.provenance, self.views, self.losses, self.nodes, self.universe_digest)
        return Origin(*stated, release=self)

    @abstractmethod
    def _about(self) -> dict[str, str]:
        """Names and values of what is known of it."""

    def _about_nodes(self, found: str = "") -> dict[str, str]:
        """The nodes, and how they were folded; ``found`` says how hubs were found."""
        shape = self.layout
        nodes = f"{self.nodes:,}, list" if self.nodes else "any, by the normal form"
        return {
            "nodes": f"{nodes} {self.universe_digest[:16]}…",
            "folded": f"into {shape.groups:,} groups and {shape.hubs:,} hubs{found}; "
            f"{shape.buckets:,} buckets",
        }

    def _repr_html_(self) -> str:
        """Show it in notebooks."""
        return definitions(self.TITLE, self._about(), views_table(self.views))

    def __str__(self) -> str:
        return described(self.TITLE, self._about(), self.views)


@dataclass(frozen=True, eq=False)
class FoldedRelease(FoldedFace):
    """A noisy union of buckets, and the privacy loss against each view.

    Queries are methods that return an :class:`Estimate`. They cost no further privacy.
    """

    TITLE = "folded release"
    counts: BucketCounts
    #: The identifiers that have a row of their own.
    hubs: tuple[str, ...]
    #: The normal form of identifiers.
    form: str
    nodes: int
    channel: Channel
    universe_digest: str
    provenance: Provenance
    views: tuple[View, ...]
    losses: Mapping[int, float]
    #: The part of the loss that finding the hubs took; 0 if they were known.
    hub_epsilon: float = 0.0

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """The shape of the index."""
        return self.counts.layout

    @cached_property
    def sums(self) -> FoldedSums:
        """The sums over cells that several queries share."""
        return FoldedSums(self.counts, self.channel)

    # -- queries ---------------------------------------------------------------------------

    def edges(self) -> Estimate[float]:
        """The number of edges.

        Returns
        -------
        Estimate
            The count.
        """
        return self._folded("edges", self.sums.edges)

    def kstars(self, k: int) -> Estimate[float]:
        """The number of k-stars, Σ C(d, k), for k = 1 and 2.

        Parameters
        ----------
        k
            The number of leaves.

        Returns
        -------
        Estimate
            The count.

        Raises
        ------
        ArgumentError
            If k is neither 1 nor 2.
        """
        self.check_query("kstars", k)
        if k == 2:
            return self._folded("kstars", self.sums.two_stars, k=int(k))
        edges = self.sums.edges  # each is a star at both of its ends
        return self._folded("kstars", FoldedSum(2 * edges.value, 4 * edges.variance), k=int(k))

    def triangles(self) -> Estimate[float]:
        """The number of triangles.

        Returns
        -------
        Estimate
            The count.
        """
        return self._folded("triangles", self.sums.triangles)

    def four_cycles(self) -> Estimate[float]:
        """The number of 4-cycles.

        Returns
        -------
        Estimate
            The count.
        """
        return self._folded("four_cycles", self.sums.four_cycles)

    def clustering(self) -> Estimate[float]:
        """The global clustering coefficient, 3·triangles/2-stars.

        Returns
        -------
        Estimate
            The coefficient.
        """
        found = self.sums.clustering
        if self._crowded:
            return self._clustering(found.value, math.inf, lambda _: (0.0, 1.0), self._crowded)
        return self._clustering(
            found.value,
            float(found.variance) ** 0.5,
            lambda level: share(found.interval(level)),
            FOLD_NOTE,
        )

    def _folded(self, query: str, found: FoldedSum, **parameters: int) -> Estimate[float]:
        stderr = math.inf if self._crowded else found.stderr
        said = {"note": self._crowded or FOLD_NOTE, "parameters": dict(parameters)}
        return self._estimate(query, found.value, stderr, **said)

    @cached_property
    def _crowded(self) -> str:
        """What is wrong if too many edges share a bucket; else empty."""
        load = self.sums.load
        if load <= _CROWDED:
            return ""
        return (
            f"{NO_ANSWER}: {load:.1f} edges share a bucket on average, and counts are wrong; "
            f"fold into {self.sums.enough(_ADVISED):,} groups at least"
        )

    def ask(self, query: str, k: int | None = None) -> Estimate[float]:
        """The answer to a query by its name.

        Parameters
        ----------
        query
            One of :data:`FOLDED_QUERIES`.
        k
            The number of leaves, for ``"kstars"`` only.

        Returns
        -------
        Estimate
            The answer.
        """
        if query == "release":
            raise ArgumentError("this is the release; ask it for a count")
        self.check_query(query, k)
        found: Estimate[float] = getattr(self, query)(*(() if k is None else (k,)))
        return self.at_its_cost(found)

    def at_its_cost(self, answer: Estimate[float]) -> Estimate[float]:
        """An answer from these buckets, with what this release cost and a reference to it."""
        return replace(answer, **self._cost())

    @staticmethod
    def check_query(query: str, k: int | None) -> None:
        """Refuse queries that folded nodes cannot answer."""
        if query not in (*FOLDED_QUERIES, "release"):
            raise ArgumentError(
                f"folded nodes do not answer {query}; they answer {', '.join(FOLDED_QUERIES)}"
            )
        if (k is None) != (query != "kstars"):
            raise ArgumentError("kstars needs k, and nothing else takes it")
        if k is not None and k not in (1, 2):
            raise ArgumentError(f"folded nodes answer k-stars for k = 1 and 2, not {k}")

    # -- cost and files --------------------------------------------------------------------

    def with_search(self, views: tuple[View, ...], losses: Mapping[int, float]) -> "FoldedRelease":
        """The same release after a search for its hubs; the losses of both add up.

        A larger coalition can lose less than a smaller one. What is stated of a coalition holds for
        those within it, too, so every view adds at least what the search costs against any number
        of colluding silos up to the claim. A view that the search does not name adds the worst.
        """
        own, search = worst_losses(self.losses), worst_losses(losses)
        claimed = [view.epsilon for view in views if view.claimed]
        cost = max(*claimed, search[self.provenance.collusion])
        spent = {view.name: [view] for view in views}

        def raised(view: View) -> View:
            more = spent.get(view.name, views)
            return replace(
                view,
                epsilon=_sum(view.epsilon, max(cost, *(each.epsilon for each in more))),
                delta=min(_sum(view.delta, max(each.delta for each in views)), 1.0),
            )

        return replace(
            self,
            views=tuple(map(raised, self.views)),
            losses={t: _sum(loss, search[t]) for t, loss in own.items()},
            hub_epsilon=cost,
        )

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
        """
        own = {
            "groups": self.layout.groups,
            "hubs": list(self.hubs),
            "sub": self.layout.sub,
            "form": self.form,
            "nodes": self.nodes,
            "hub_epsilon": release_file.plain(self.hub_epsilon),
        }
        release_file.write(path, release_file.FOLDED, own, self._statement(), self.counts.bits)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "FoldedRelease":
        """Read a folded release from a file.

        Parameters
        ----------
        path
            The file to read.

        Returns
        -------
        FoldedRelease
            The release.

        Raises
        ------
        ReleaseError
            If the file is not a valid folded release.
        """
        (layout, hubs, form, nodes, search), stated, bits = release_file.read(
            path, release_file.FOLDED, _own
        )
        if layout.buckets % 64 and int.from_bytes(bits[-8:], "little") >> layout.buckets % 64:
            raise ReleaseError(f"{path}: the release is damaged: bits after the last bucket")
        if search > max(view.epsilon for view in stated.views if view.claimed):
            raise ReleaseError(f"{path}: the release is refused: finding hubs cost more than all")
        return cls(
            BucketCounts(layout, bits),
            hubs,
            form,
            nodes,
            stated.channel,
            stated.universe_digest,
            stated.provenance,
            stated.views,
            stated.losses,
            search,
        )

    # -- display ---------------------------------------------------------------------------

    def _about(self) -> dict[str, str]:
        made = self.provenance
        found = f", found with ε = {shown_loss(self.hub_epsilon)}" if self.hub_epsilon else ""
        return {
            **self._about_nodes(found),
            "silos": f"{made.silos}, of which {made.collusion} may collude with the coordinator",
            "protocol": made.protocol,
            "noise": f"an occupied bucket shows with p = {float(self.channel.p11):.4g}, any other "
            f"with p = {float(self.channel.p01):.4g}",
            "cost": f"ε = {shown_loss(self.epsilon)}, paid; every question on it is free",
        }

    def __repr__(self) -> str:
        shape = self.layout
        return (
            f"FoldedRelease(groups={shape.groups:,}, hubs={shape.hubs:,}, sub={shape.sub}, "
            f"{self.provenance.protocol}, ε = {shown_loss(self.epsilon)})"
        )


def _sum(*losses: float) -> float:
    """A sum of losses, never rounded down."""
    if any(map(math.isinf, losses)):
        return math.inf
    return round_up(sum(map(Fraction, losses), Fraction(0)))


_Own = tuple[Layout, tuple[str, ...], str, int, float]


def _own(header: release_file.Fields) -> tuple[_Own, int]:
    hubs = header.texts("hubs")
    try:
        layout = Layout(header.whole("groups", 2), len(hubs), header.whole("sub", 1))
    except ArgumentError as error:
        raise ReleaseError(f"the release is refused: {error}") from None
    own = (
        layout,
        hubs,
        header.text("form"),
        header.whole("nodes", 0, _MOST_NODES),
        header.loss("hub_epsilon"),
    )
    return own, -(-layout.buckets // 64) * 8
