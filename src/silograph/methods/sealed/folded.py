"""The numbers that a sealed run on folded nodes opened, and what follows from them.

Model
    Opened are the number of all occupied buckets, noisy **loads** (the occupied buckets that each
    row shares with groups) and, for triangles, the weighted triangles of the cells, whose weights
    follow from the noisy loads (:mod:`silograph.dp.cells`). A row whose D edges fall into r groups
    at random occupies U = 2r·(1 − e^(−D/2r)) of its 2r buckets, so D = −2r·ln(1 − U/2r).
Triangles
    T̂ = V/scale³, less the expected number of triangles that edges in company add: a node that is
    joined to both ends of an edge and shares the group of their common neighbour disturbs two cells
    at once. An edge with c common neighbours in groups, give or take √c, has c²/4r of these. And
    more what weights from calm loads leave out: a node of degree d makes its own row fuller by d,
    of which only the share that is not taken for noise is in the weights. The nodes of triangles
    are taken to have the degrees of the ends of edges, Σd²/Σd.
Edges
    All occupied buckets, and for each row what its cells hold beyond them; edges within a group
    were dropped, so that those between groups are divided by 1 − 1/r.
Error
    The noise is known exactly. The error of the fold itself would have to be read from the cells,
    which nobody has seen. It is a **model**: every edge has 3T/E common neighbours, and so has
    every other pair that has any; paths of length 3 are those of communities, and those of a random
    graph with the same Σd², which follows from the spread of the loads. On graphs that are far more
    uneven than that the error is larger than stated; hubs of their own are what helps. Answers say
    so. A planner that knows a similar graph can predict the error better.
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
    Provenance,
)
from silograph.estimators.folded_loads import over_groups
from silograph.estimators.folded_release import FoldedFace
from silograph.graph.fold import Layout
from silograph.methods.sealed.noise import Answer, SealedNoise

__all__ = ["FOLDED_ANSWERS", "FOLD_NOTE", "FULL_NOTE", "SealedFoldedRelease"]

#: The queries that a run on folded nodes answers, and what it opens for each.
FOLDED_ANSWERS: dict[str, tuple[Answer, ...]] = {
    "edges": ("edges", "degrees"),
    "triangles": ("edges", "degrees", "triangles"),
}
FOLD_NOTE = (
    "from folded nodes: the noise is known exactly, the error of folding is that of a model, in "
    "which all edges have about the same number of common neighbours"
)
_OfLoad = Callable[[FloatArray], FloatArray]
FULL_NOTE = "no usable answer: nearly all buckets are occupied, and more groups are needed"
CROWDED_NOTE = "no usable answer: too many edges share a bucket, and more groups are needed"
#: Beyond this share of occupied buckets the weights of cells do not grow any more; and edges are
#: counted too low.
_FULL_ROWS, _CROWDED_ROWS = 0.75, 0.4
#: The largest share of a row's buckets that is taken to be occupied.
_FULL = 0.95


@dataclass(frozen=True, eq=False)
class SealedFoldedRelease(FoldedFace):
    """Noisy loads and counts of folded cells, and the privacy loss against each view.

    Queries are methods that return an :class:`Estimate`. They cost no further privacy.
    """

    TITLE = "sealed answers on folded nodes"
    noise: SealedNoise
    layout: Layout
    nodes: int
    universe_digest: str
    provenance: Provenance
    #: The number of occupied buckets that each row shares with groups: hubs first, then groups.
    noisy_loads: NDArray[np.int64] = field(repr=False)
    #: The number of occupied buckets.
    noisy_buckets: int
    #: The weighted triangles; None if they were not counted.
    noisy_triangles: int | None = None

    def __post_init__(self) -> None:
        if len(self.noisy_loads) != self.layout.rows or self.layout.rows != self.noise.nodes:
            raise ArgumentError(f"there must be one load for each of {self.layout.rows} rows")
        counted = self.noisy_triangles is not None
        if set(self.noise.answers) != {"edges", "degrees", *(["triangles"] * counted)}:
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
        """
        loads = self._model
        if self._occupied > _CROWDED_ROWS:
            return self._estimate("edges", self._edges, math.inf, note=CROWDED_NOTE)
        noise = self.noise.law("edges").stderr ** 2 + loads.edge_noise
        return self._estimate(
            "edges", self._edges, math.sqrt(noise + loads.edge_error), note=FOLD_NOTE
        )

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
        if self._occupied > _FULL_ROWS:
            return self._estimate("triangles", math.nan, math.inf, note=FULL_NOTE)
        extra, variance = self._model.triangle_error(found, self._edges)
        stderr = math.hypot(law.stderr / scale, math.sqrt(variance))
        # Laplace noise has longer tails than the model's part, which is nearly normal.
        margin = math.hypot(float(law.margin()) / scale, Z95 * math.sqrt(variance))
        return self._estimate(
            "triangles", found - extra, stderr, note=FOLD_NOTE, margin=max(margin, Z95 * stderr)
        )

    @property
    def _occupied(self) -> float:
        """The share of occupied buckets: between groups, or of all, which has less noise."""
        return max(self._model.occupied, self.noisy_buckets / self.layout.buckets)

    @property
    def _edges(self) -> float:
        return self._model.edges(float(self.noisy_buckets))

    @cached_property
    def _model(self) -> "_Rows":
        return _Rows(self.layout, self.noisy_loads, self.noise.law("degrees"))

    # -- display ---------------------------------------------------------------------------

    @property
    def _opened(self) -> list[str]:
        names = {"edges": "occupied buckets", "degrees": "loads of rows"}
        return [names.get(answer, answer) for answer in self.noise.answers]

    def _about(self) -> dict[str, str]:
        made = self.provenance
        return {
            **self._about_nodes(),
            "opened": ", ".join(self._opened),
            "silos": f"{made.silos}, of which {made.collusion} may pool with the coordinator",
            "noise": "committee noise",
            "cost": f"ε = {shown_loss(self.epsilon)}, δ = {shown_loss(self.delta)}, paid",
        }


class _Rows:
    """What noisy loads say about the rows of a fold, with one sub-bucket for each sign."""

    def __init__(self, layout: Layout, noisy: NDArray[np.int64], law: NoiseLaw) -> None:
        self.hubs, self.groups = layout.hubs, layout.groups
        self.o = slice(layout.hubs, layout.rows)
        self._noise = law.stderr**2
        self.seen: FloatArray = noisy.astype(np.float64)
        #: A row's number of cells with groups; the last ones have none with themselves.
        self._width = np.where(np.arange(layout.rows) < layout.hubs, self.groups, self.groups - 1)
        #: Which share of a load's distance from the mean the weights of cells keep.
        self.kept = self._kept(self.seen[self.o])
        calm = self._shrunk(self.seen)
        full = calm / (2 * self._width)
        #: Each row's number of edges into groups, with noise drawn to the mean, and how many of
        #: them are behind others; and by how much that changes with the load that is seen.
        self.calm: FloatArray = -2 * self._width * np.log1p(-full)
        self.unseen: FloatArray = self.calm - calm
        self.slopes: FloatArray = full / (1 - full)
        self.load: FloatArray = self.seen + self.unseen
        self.inside = float(self.load[self.o].sum()) / 2
        #: The share of buckets between groups that is occupied.
        self.occupied = float(full[self.o].mean())

    def _kept(self, loads: FloatArray) -> float:
        """The share of the loads' spread that is not noise."""
        return max(0.0, 1 - self._noise / max(float(loads.var()), 1e-9))

    def _shrunk(self, load: FloatArray) -> FloatArray:
        """Loads drawn towards their mean, so that their spread is what it is without noise."""
        calm = load.copy()
        for part in (slice(0, self.hubs), self.o):
            if len(calm[part]) > 1:
                mean = float(calm[part].mean())
                calm[part] = mean + (calm[part] - mean) * math.sqrt(self._kept(calm[part]))
        # If nearly all buckets are occupied, nothing is known.
        return np.clip(calm, 0.0, _FULL * 2 * self._width)

    def _summed(self, function: _OfLoad) -> FloatArray:
        """For each row, the sum of a function over its cells, with loads as of their rows."""
        own = self.calm[self.o]
        ends = own / max(float(own.sum()), 1.0)
        sums = over_groups(function, self.calm, ends)
        sums[self.o] -= function(own * ends)
        return sums

    # -- edges -----------------------------------------------------------------------------

    def edges(self, buckets: float) -> float:
        """The number of edges, if so many buckets are occupied."""
        return buckets + self._counted(self.unseen) + self._doubt + self.inside / (self.groups - 1)

    def _counted(self, rows: FloatArray) -> float:
        """The sum of something over all edges, from its sums over rows."""
        return float(rows[self.o].sum()) / 2 + float(rows[: self.hubs].sum())

    @cached_property
    def _doubt(self) -> float:
        """Half of what another model would change: that a cell's load is as those of both its rows.

        Some graphs are like the one, some like the other: the truth is taken to be between them.
        """
        return self._counted(self._summed(_rest) - self.unseen) / 2

    @property
    def edge_noise(self) -> float:
        """The variance that the noise of loads causes."""
        own, hubs = self.slopes[self.o] / 2, self.slopes[: self.hubs]
        return self._noise * float(own @ own + hubs @ hubs)

    @cached_property
    def edge_error(self) -> float:
        """The variance of the number of edges that folding causes."""
        fuzz = self._counted(self._summed(_excess))
        return fuzz + max(self.inside, 0.0) / self.groups + self._doubt**2

    # -- triangles -------------------------------------------------------------------------

    def triangle_error(self, found: float, edges: float) -> tuple[float, float]:
        """The triangles that are too many, and the variance that folding causes.

        A weighted cell varies by V. So the count varies by V times the squared numbers of common
        neighbours of pairs that share the cell; by products of three cells that have no edge in
        common; and, over the hashes, by the squared numbers of paths of length 3 between nodes
        that fall into one group.
        """
        r, hubs, calm = self.groups, self.hubs, self.calm
        edges = max(edges, 1.0)
        common = 3 * max(found, 0.0) / edges
        inside, beside = max(self.inside, 1.0), max(float(calm[:hubs].sum()), 0.0)
        between = max(edges - inside - beside, 0.0)
        # Ends of edges that are nodes in groups, and Σd² of these nodes and of hubs.
        ends = min((2 * inside + beside) / (2 * edges), 1.0)
        own = self._own_squares * ((2 * inside + beside) / (2 * inside)) ** 2
        alone = float(calm[:hubs] @ calm[:hubs]) * (1 + 2 * between / max(beside, 1.0)) ** 2
        walks, own_walks = (own + alone) / (2 * edges), self._own_squares / (2 * inside)
        # The share of wedges whose ends are in groups: by their number, and by their degrees.
        share = math.sqrt(ends * own / (own + alone))
        pairs = (own + alone) / 2 * common

        cell = float(_variance(np.array([2 * inside / r**2]))[0])
        rows = _variance(calm[:hubs] / r)
        row = float(rows @ calm[:hubs]) / max(beside, 1.0)
        closed = pairs * (share**2 * cell + 2 * share * (1 - share) * row)
        third = (r * cell) ** 3 / 6 + r**2 * cell * float(rows @ rows) / 2
        paths = inside * common * own_walks**3 + own**2 * walks**4 / (8 * edges**2)
        extra = edges * (common * own / (own + alone)) ** 2 / (4 * r)
        # Three cells of a triangle have two ends each; only those between groups have such weights.
        low = 3 * inside / edges * (1 - self.kept) / (2 * inside * r)
        lost, most_lost = (
            max(found, 0.0) * math.expm1(min(low * squares, 1.0))
            for squares in (self._own_squares, self._most_squares)
        )
        return extra - lost, closed + third + paths / r + extra**2 + most_lost**2

    @cached_property
    def _own_squares(self) -> float:
        """Σd² of nodes in groups, counting their edges to such nodes: how unequal loads are."""
        spread = float(self.load[self.o].var()) - self._own_noise
        return max(self.groups * spread, 2 * self.inside, 1.0)

    @property
    def _most_squares(self) -> float:
        """The same and a standard error more, which is that of the noise: a Laplace variable's
        square varies by five times its mean's square."""
        return self._own_squares + self._own_noise * math.sqrt(5 * self.groups)

    @property
    def _own_noise(self) -> float:
        """The variance of the noise of a group's load."""
        return self._noise * float(np.mean((1 + self.slopes[self.o]) ** 2))


def _occupied(load: FloatArray) -> FloatArray:
    """The share of two buckets that is occupied at a load of their cell."""
    share: FloatArray = -np.expm1(-load / 2)
    return share


def _rest(load: FloatArray) -> FloatArray:
    """How many edges of a cell are behind others in its two buckets."""
    left: FloatArray = load - 2 * _occupied(load)
    return left


def _excess(load: FloatArray) -> FloatArray:
    """The variance of that number about its mean: of k − 1 for each bucket with k ≥ 1 edges."""
    q, each = _occupied(load), load / 2
    variance: FloatArray = 2 * (each + q * (1 - q) - 2 * each * (1 - q))
    return variance


def _variance(load: FloatArray) -> FloatArray:
    """The variance of a weighted cell at a load."""
    q = _occupied(load)
    variance: FloatArray = 2 * q / (1 - q)
    return variance
