"""The numbers that a sealed run on folded nodes opened, and what follows from them.

Model
    Opened are noisy **loads** (the occupied buckets that each row shares with groups), and either
    the number of all occupied buckets or the weighted triangles of the cells, whose weights follow
    from the noisy loads (:mod:`silograph.dp.cells`). A row with D edges into r groups occupies
    Σ_b 2·(1 − e^(−x_b/2)) buckets, where x_b is its number of edges to group b, taken as
    proportional to the loads of both rows. D is found from the load by iteration.
Triangles
    T̂ = V/scale³, less the expected number of triangles that edges in company add: a node that is
    joined to both ends of an edge and shares the group of their common neighbour disturbs two cells
    at once. With c common neighbours an edge has C(c,2)/2r of these.
Edges
    All occupied buckets, and for each row what its cells hold beyond them; edges within a group
    were dropped, so that those between groups are divided by 1 − 1/r.
Error
    The noise is known exactly. The error of the fold itself would have to be read from the cells,
    which nobody has seen. It is a **model**: every edge has 3T/E common neighbours, and so has
    every other pair that has any; nodes and edges fall into cells as they would at random. On
    graphs that are far more uneven than that the error is larger than stated; hubs of their own are
    what helps. Answers say so.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from silograph.dp.cells import CellWeights
from silograph.dp.laplace import NoiseLaw
from silograph.dp.loss import View, shown_loss
from silograph.errors import ArgumentError
from silograph.estimators.estimate import (
    Z95,
    Estimate,
    FloatArray,
    Origin,
    Provenance,
    definitions,
    views_table,
)
from silograph.estimators.folded_loads import over_groups
from silograph.estimators.release import PaidFor
from silograph.graph.fold import Layout
from silograph.methods.sealed.noise import Answer, SealedNoise

__all__ = ["FOLDED_ANSWERS", "FOLD_NOTE", "SealedFoldedRelease"]

#: The queries that a run on folded nodes answers, and what it opens for each.
FOLDED_ANSWERS: dict[str, tuple[Answer, ...]] = {
    "edges": ("edges", "degrees"),
    "triangles": ("degrees", "triangles"),
}
FOLD_NOTE = (
    "from folded nodes: the noise is known exactly, the error of folding is that of a model, in "
    "which all edges have about the same number of common neighbours"
)
_OfLoad = Callable[[FloatArray], FloatArray]
#: Rounds in which loads and numbers of edges are brought into agreement.
_ROUNDS = 60


@dataclass(frozen=True, eq=False)
class SealedFoldedRelease(PaidFor):
    """Noisy loads and counts of folded cells, and the privacy loss against each view.

    Queries are methods that return an :class:`Estimate`. They cost no further privacy.
    """

    noise: SealedNoise
    layout: Layout
    #: The number of nodes; 0 if the universe is open.
    nodes: int
    universe_digest: str
    provenance: Provenance
    #: The number of occupied buckets that each row shares with groups: hubs first, then groups.
    noisy_loads: NDArray[np.int64] = field(repr=False)
    #: The number of occupied buckets, and the weighted triangles; None if they were not opened.
    noisy_buckets: int | None = None
    noisy_triangles: int | None = None

    def __post_init__(self) -> None:
        if len(self.noisy_loads) != self.layout.rows or self.layout.rows != self.noise.nodes:
            raise ArgumentError(f"there must be one load for each of {self.layout.rows} rows")
        opened = {"edges": self.noisy_buckets, "triangles": self.noisy_triangles}
        found = {"degrees"} | {name for name, value in opened.items() if value is not None}
        if found != set(self.noise.answers):
            raise ArgumentError(f"the noise is for {', '.join(self.noise.answers)}")

    @property
    def views(self) -> tuple[View, ...]:  # type: ignore[override]
        """The privacy loss against each view of the run."""
        return self.noise.views

    @property
    def losses(self) -> Mapping[int, float]:  # type: ignore[override]
        """The certified epsilon against the coordinator with t silos, for t = 0 … m−1."""
        return self.noise.losses

    @cached_property
    def origin(self) -> Origin:
        """What every answer states about its origin."""
        return Origin(self.provenance, self.views, self.losses, self.nodes, self.universe_digest)

    @cached_property
    def weights(self) -> CellWeights:
        """The weights of cells, as every member has computed them."""
        if self.noise.cells is None:
            raise ArgumentError("this run has counted no triangles: it had no weights")
        return self.noise.cells.weights(self.noisy_loads)

    # -- queries ---------------------------------------------------------------------------

    def edges(self) -> Estimate[float]:
        """The number of edges.

        Returns
        -------
        Estimate
            The count.

        Raises
        ------
        ArgumentError
            If the run opened loads alone, and edges between hubs are not among them.
        """
        loads, law = self._model, self.noise.law("degrees")
        seen, noise = self.noisy_buckets, 0.0
        if seen is not None:
            noise = self.noise.law("edges").stderr ** 2
        elif self.layout.hubs:
            raise ArgumentError("this run does not answer edges: it opened no number of them")
        # Without that number, loads count for themselves and for what is behind them.
        slopes = loads.slopes + (seen is None)
        noise += law.stderr**2 * float(slopes[loads.o] / 2 @ slopes[loads.o] / 2)
        noise += law.stderr**2 * float(slopes[: loads.hubs] @ slopes[: loads.hubs])
        value = loads.edges(float(self.noisy_loads.sum()) / 2 if seen is None else float(seen))
        return self._estimate("edges", value, math.sqrt(noise + loads.edge_error), note=FOLD_NOTE)

    def triangles(self) -> Estimate[float]:
        """The number of triangles.

        Returns
        -------
        Estimate
            The count.

        Raises
        ------
        ArgumentError
            If the run did not open triangles.
        """
        if self.noisy_triangles is None:
            raise ArgumentError(
                f"this run does not answer triangles: it opened only {', '.join(self._opened)}"
            )
        scale = self.weights.scale**3
        law = self.noise.law("triangles", self.weights.change)
        found = self.noisy_triangles / scale
        extra, variance = self._model.triangle_error(found)
        stderr = math.hypot(law.stderr / scale, math.sqrt(variance))
        # Laplace noise has longer tails than the model's part, which is nearly normal.
        margin = math.hypot(float(law.margin()) / scale, Z95 * math.sqrt(variance))
        return self._estimate(
            "triangles", found - extra, stderr, note=FOLD_NOTE, margin=max(margin, Z95 * stderr)
        )

    @cached_property
    def _model(self) -> "_Rows":
        return _Rows(self.layout, self.noisy_loads, self.noise.law("degrees"))

    # -- display ---------------------------------------------------------------------------

    @property
    def _opened(self) -> list[str]:
        names = {"edges": "occupied buckets", "degrees": "loads of rows"}
        return [names.get(answer, answer) for answer in self.noise.answers]

    def _about(self) -> dict[str, str]:
        made, shape = self.provenance, self.layout
        nodes = f"{self.nodes:,}, list" if self.nodes else "any, by the normal form"
        return {
            "nodes": f"{nodes} {self.universe_digest[:16]}…",
            "folded": f"into {shape.groups:,} groups and {shape.hubs:,} hubs; "
            f"{shape.buckets:,} buckets",
            "opened": ", ".join(self._opened),
            "silos": f"{made.silos}, of which {made.collusion} may pool with the coordinator",
            "noise": "committee noise",
            "cost": f"ε = {shown_loss(self.epsilon)}, δ = {shown_loss(self.delta)}, paid",
        }

    def _repr_html_(self) -> str:
        """Show the release in notebooks."""
        return definitions("sealed answers on folded nodes", self._about(), views_table(self.views))

    def __str__(self) -> str:
        lines = [f"  {name:7} {text}" for name, text in self._about().items()]
        return "\n".join(
            ["sealed answers on folded nodes", *lines, *(f"  {view}" for view in self.views)]
        )


class _Rows:
    """What noisy loads say about the rows of a fold, with one sub-bucket for each sign."""

    def __init__(self, layout: Layout, noisy: NDArray[np.int64], law: NoiseLaw) -> None:
        self.hubs, self.groups = layout.hubs, layout.groups
        self.o = slice(layout.hubs, layout.rows)
        self._noise = law.stderr**2
        self.seen: FloatArray = noisy.astype(np.float64)
        load = self.seen
        for _ in range(_ROUNDS):
            calm = self._shrunk(load)
            rest = self._summed(calm, _rest)
            load = self.seen + rest
        #: Each row's number of edges into groups, those of rows with noise drawn to their mean, and
        #: how many of them are not seen.
        self.load, self.calm, self.unseen = load, calm, rest
        #: By how much that number changes with a load that is seen.
        slope = self._summed(calm, _full) / layout.groups
        self.slopes: FloatArray = slope / np.maximum(1 - slope, 0.1)
        self.inside = float(load[self.o].sum()) / 2

    def _shrunk(self, load: FloatArray) -> FloatArray:
        """Loads drawn towards their mean, by the share of their spread that is noise."""
        calm = load.copy()
        for part in (slice(0, self.hubs), self.o):
            if len(calm[part]) > 1:
                mean, spread = float(calm[part].mean()), float(calm[part].var())
                calm[part] = mean + (calm[part] - mean) * max(
                    0.0, 1 - self._noise / max(spread, 1e-9)
                )
        # No row has more edges than fill its cells seven times: beyond that nothing is known.
        return np.clip(calm, 0.0, 14.0 * self.groups)

    def _summed(self, calm: FloatArray, function: _OfLoad) -> FloatArray:
        """The sum of a function over the cells of each row with groups."""
        ends = calm[self.o] / max(float(calm[self.o].sum()), 1.0)
        sums = over_groups(function, calm, ends)
        sums[self.o] -= function(calm[self.o] * ends)
        return sums

    # -- edges -----------------------------------------------------------------------------

    def edges(self, buckets: float) -> float:
        """The number of edges, if so many buckets are occupied."""
        unseen = float(self.unseen[self.o].sum()) / 2 + float(self.unseen[: self.hubs].sum())
        return buckets + unseen + self.inside / (self.groups - 1)

    @cached_property
    def edge_error(self) -> float:
        """The variance of the number of edges that folding causes."""
        excess = self._summed(self.calm, _excess)
        fuzz = float(excess[self.o].sum()) / 2 + float(excess[: self.hubs].sum())
        # Half of what another model of the cells would change: that all cells of a row are equal.
        flat = self.groups * _rest(self.calm / self.groups)
        doubt = (self.unseen - flat) / 2
        model = float(doubt[self.o].sum()) / 2 + float(doubt[: self.hubs].sum())
        return fuzz + max(self.inside, 0.0) / self.groups + model**2

    # -- triangles -------------------------------------------------------------------------

    def triangle_error(self, found: float) -> tuple[float, float]:
        """The triangles that company adds, and the variance that folding causes.

        A cell varies by V. What varies is V times the squared numbers of common neighbours of its
        nodes; products of three cells without any edge in common; and, over the hashes, the squared
        numbers of paths of length 3 between nodes that fall into one group.
        """
        r, calm = self.groups, self.calm
        triangles = max(found, 0.0)
        edges = max(self.edges(float(self.seen[self.o].sum()) / 2), 1.0)
        edges += max(float(self.seen[: self.hubs].sum()), 0.0)
        common = 3 * triangles / edges
        mean = float(calm[self.o].mean())
        cell = _variance(np.array([mean / r]))[0]
        beside = _variance(calm[: self.hubs] / r)
        third = (r * cell) ** 3 / 6 + r**2 * cell * float(beside @ beside) / 2
        # Σd² of the nodes in groups: how unequal the loads of groups are.
        spread = (
            float(self.load[self.o].var()) - self._noise / (1 - float(np.mean(self.slopes))) ** 2
        )
        squares = max(r * spread, 2 * self.inside, 1.0)
        walks = squares / max(2 * self.inside, 1.0)
        pairs = squares / 2 * common
        paths = self.inside * common * walks**3
        extra = edges * max(common * (common - 1), 0.0) / 2 / (2 * r)
        return extra, third + cell * pairs + paths / r + (extra / 2) ** 2


def _full(load: FloatArray) -> FloatArray:
    """The share of two buckets that is occupied at a load of their cell."""
    share: FloatArray = -np.expm1(-load / 2)
    return share


def _rest(load: FloatArray) -> FloatArray:
    """How many edges of a cell are behind others in its two buckets."""
    left: FloatArray = load - 2 * _full(load)
    return left


def _excess(load: FloatArray) -> FloatArray:
    """The variance of that number about its mean: of k − 1 for each bucket with k ≥ 1 edges."""
    q, each = _full(load), load / 2
    variance: FloatArray = 2 * (each + q * (1 - q) - 2 * each * (1 - q))
    return variance


def _variance(load: FloatArray) -> FloatArray:
    """The variance of a weighted cell at a load."""
    q = _full(load)
    variance: FloatArray = 2 * q / (1 - q)
    return variance
