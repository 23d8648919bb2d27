"""The numbers that a sealed run on folded nodes opened, and what follows from them.

Model
    Opened are the number of all occupied buckets, noisy **loads** (the occupied buckets that each
    row shares with groups) and, for triangles, the weighted triangles of the cells, whose weights
    follow from the noisy loads (:mod:`silograph.dp.cells`). A row whose D edges fall into r groups
    at random occupies U = 2r·(1 − e^(−D/2r)) of its 2r buckets, so D = −2r·ln(1 − U/2r).
Edges
    All occupied buckets, and for each row what its cells hold beyond them; edges within a group
    were dropped, so that those between groups are divided by 1 − 1/r. An edge has company in its
    cell from both of its rows: from its own row at random, and from the row at its other end as
    much as the mean end of an edge has beyond the mean row, Σd²/Σd. Σd² follows from the spread of
    the loads, of which noise leaves a part unknown: the interval allows for it, and for **one hub**
    that noise hides. A row that is full, or nearly, holds many more edges than buckets. With many
    groups no row is.
Triangles
    T̂ = V/scale³, less the expected number of triangles that edges in company add: a node that is
    joined to both ends of an edge and shares the group of their common neighbour disturbs two cells
    at once. An edge with c common neighbours in groups has c²/4r of these. And more what weights
    leave out. A node of degree d makes its own row fuller by d, of which only the share that is not
    taken for noise is in the weights; and nodes that share a group hide half of the edges to their
    common neighbours from its load, d·d′/2r if neighbours have the degree d′. Common neighbours
    are as uneven as degrees, and corners of triangles have the degree Σd³/Σd², as far as the third
    moment of the loads shows beyond doubt that this is more than Σd²/Σd.
Error
    The noise is known exactly. The error of the fold would have to be read from the cells, which
    nobody has seen. It depends on where the triangles are: two nodes that share a group close all
    paths of length 3 between them. So the answer allows for the worst that the opened numbers
    allow, **one dense core**. T triangles fit into a clique of (6T)^(1/3) nodes, which alone makes
    a standard error of T·√(18/r). But k nodes of degree k show in the loads: Σd³ is at least k⁴
    and, if the number of nodes is known, Σ(d − mean)² at least k·(k − mean)². Triangles that do
    not fit into the largest such core are taken to be in communities, whose nodes have the degrees
    of the ends of edges. Without triangles (two sides, and edges between them) paths are those of
    a random graph with the same Σd².

    The error grows with the number itself. So the upper end of the interval is the number of which
    the one that was found is just within reach. Hubs, which share their rows with nobody, make all
    of this smaller.
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
from silograph.estimators.folded_release import FoldedFace
from silograph.graph.fold import BucketCounts, Folding, Layout
from silograph.graph.samples import seed_bytes
from silograph.graph.silo import Silo
from silograph.methods.sealed.answer import drawn_noise
from silograph.methods.sealed.noise import Answer, SealedNoise

__all__ = ["FOLDED_ANSWERS", "FOLD_NOTE", "FULL_NOTE", "SealedFoldedRelease"]

#: The queries that a run on folded nodes answers, and what it opens for each.
FOLDED_ANSWERS: dict[str, tuple[Answer, ...]] = {
    "edges": ("edges", "degrees"),
    "triangles": ("edges", "degrees", "triangles"),
}
FOLD_NOTE = (
    "from folded nodes: the noise is known exactly, the error of folding is the largest that the "
    "loads of groups allow; hubs and more groups make it smaller"
)
FULL_NOTE = "no usable answer: nearly all buckets are occupied, and more groups are needed"
CROWDED_NOTE = "no usable answer: too many edges share a bucket, and more groups are needed"
CORE_NOTE = (
    "no usable answer: all triangles may be in one dense core, of which so few groups show too "
    "little; hubs or more groups are needed"
)
#: Beyond this share of occupied buckets the weights of cells do not grow any more; and edges are
#: counted too low.
_FULL_ROWS, _CROWDED_ROWS = 0.75, 0.4
#: The largest share of a row's buckets that is taken to be occupied.
_FULL = 0.95
#: By how many of their standard errors the moments of loads may be too low when they limit a core.
#: Its size grows with their third and fourth roots: more would change little.
_ROOM = 0.5
#: By how many standard errors the spread of loads may differ from what was found.
_LEAN = 2.0
#: The most edges of a bucket that are told from whether it is occupied.
_MOST_EACH = 20.0
#: Equations are solved in so many steps, or have no solution.
_STEPS = 100


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

    @classmethod
    def draw(
        cls, graph: Silo, layout: Layout, hubs: tuple[str, ...], noise: SealedNoise, seed: int
    ) -> "SealedFoldedRelease":
        """Fold a known graph and count in its cells. **For experiments only.**

        This needs the true graph in one place and is as predictable as its seed, so it protects
        nobody's edges. What is opened has the distribution of a run.

        Parameters
        ----------
        graph
            The true graph.
        layout
            The numbers of groups and hubs.
        hubs
            The identifiers of the hubs.
        noise
            The noise, and the answers that are opened.
        seed
            The seed of the hash and of all noise.

        Returns
        -------
        SealedFoldedRelease
            The simulated release.

        Examples
        --------
        >>> from silograph.graph.universe import NodeUniverse
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> noise = SealedNoise.choose_folded(50.0, 9, 0, 4, 1, ["edges", "degrees"])
        >>> SealedFoldedRelease.draw(graph, Layout(9), (), noise, seed=1).noisy_buckets
        3
        """
        folding = Folding.of(seed_bytes("sealed/fold", seed), layout, hubs)
        counts = BucketCounts(layout, folding.fold(graph.nodes, graph.pairs).tobytes())
        plus, minus = (x.astype(np.float64) for x in counts.rows(0, layout.rows))
        loads = (plus + minus)[:, layout.hubs :].sum(axis=1).astype(np.int64)
        loads += drawn_noise(noise, "degrees", None, layout.rows, seed)
        buckets = counts.ones + int(drawn_noise(noise, "edges", None, 1, seed)[0])
        triangles = None
        if noise.cells is not None:
            weights = noise.cells.weights(loads)
            cells = plus - minus
            for a in range(layout.rows - 1):
                cells[a, a + 1 :] *= weights.row(a)
                cells[a + 1 :, a] = cells[a, a + 1 :]
            count = round(float(((cells @ cells) * cells).sum()) / 6)
            drawn = drawn_noise(noise, "triangles", weights.change, 1, seed)
            triangles = count + int(drawn[0])
        made = Provenance("sealed", "clear", noise.silos, noise.collusion)
        nodes = graph.universe
        return cls(noise, layout, len(nodes), nodes.digest, made, loads, buckets, triangles)

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
        loads, value = self._model, self._edges
        if self._occupied > _CROWDED_ROWS or loads.overflows or math.isinf(loads.edges_more):
            return self._estimate("edges", value, math.inf, note=CROWDED_NOTE)
        # The less even the loads are without their noise, the more edges they hide.
        even, uneven = (self._rows(lean).edges(self.noisy_buckets) for lean in (-_LEAN, _LEAN))
        law, fold = self.noise.law("edges"), math.sqrt(loads.edge_noise + loads.edge_error)
        stderr = math.hypot(law.stderr, fold)
        # Laplace noise has longer tails than the sum of all else.
        margin = max(math.hypot(float(law.margin()), Z95 * fold), Z95 * stderr)
        low = value - math.hypot(margin, max(value - even, 0.0))
        high = value + math.hypot(margin, max(uneven - value, 0.0)) + loads.edges_more
        stderr = math.hypot(stderr, (uneven - even) / (2 * _LEAN))
        return self._estimate("edges", value, stderr, note=FOLD_NOTE, ends=(low, high))

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
        if self._occupied > _FULL_ROWS:
            return self._estimate("triangles", math.nan, math.inf, note=FULL_NOTE)
        fold = _Triangles(self._model, self._edges)
        unit = fold.grown / scale
        found, noise = self.noisy_triangles * unit, law.stderr * unit

        def margin(count: float) -> float:
            """How far from this number a found one may be."""
            hashed = math.sqrt(fold.variance(count))
            # Laplace noise has longer tails than the fold's part, which is nearly normal.
            long = math.hypot(float(law.margin()) * unit, Z95 * hashed)
            return max(long, Z95 * math.hypot(noise, hashed))

        value = _fixed_point(lambda count: found - fold.met(count), found)
        high = _fixed_point(lambda count: found - fold.met(count) + margin(count), value)
        if not math.isfinite(high):
            return self._estimate("triangles", found, math.inf, note=CORE_NOTE)
        stderr = math.hypot(noise, math.sqrt(fold.variance(value)))
        ends = value - margin(value), high
        return self._estimate("triangles", value, stderr, note=FOLD_NOTE, ends=ends)

    @property
    def _occupied(self) -> float:
        """The share of occupied buckets: between groups, or of all, which has less noise."""
        return max(self._model.occupied, self.noisy_buckets / self.layout.buckets)

    @property
    def _edges(self) -> float:
        return self._model.edges(float(self.noisy_buckets))

    @cached_property
    def _model(self) -> "_Rows":
        return self._rows()

    def _rows(self, lean: float = 0.0) -> "_Rows":
        return _Rows(self.layout, self.noisy_loads, self.noise.law("degrees"), self.nodes, lean)

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


@dataclass(frozen=True)
class _Degrees:
    """Σd, Σd² and Σd³ over the nodes in groups, d being a node's edges to such nodes.

    The edges of a group are those of nodes that fell into it by chance. So their numbers have the
    variance Σd²/r and the third central moment Σd³/r.
    """

    first: float
    second: float
    third: float
    #: The standard errors of the last two.
    second_error: float
    third_error: float

    @classmethod
    def of(
        cls, seen: FloatArray, width: int, slopes: FloatArray, noise: float, lean: float
    ) -> "_Degrees":
        """From the loads of all groups, each of so many cells, with noise of this variance.

        ``slopes`` say by how much a row's hidden edges grow with its load. Σd² is taken to be so
        many of its standard errors (``lean``) above what was found.
        """
        buckets = 2 * width
        loads = -buckets * np.log1p(-np.minimum(seen / buckets, _FULL))
        noise *= float(np.mean((1 + slopes) ** 2))
        beyond = loads - loads.mean()
        squares = beyond**2
        cubes = beyond**3 - 3 * squares.mean() * beyond
        first = max(float(loads.sum()), 1.0)
        second_error, third_error = (math.sqrt(len(x) * float(x.var())) for x in (squares, cubes))
        second = max(float((squares - noise).sum()) + lean * second_error, first)
        # Noise is symmetric, but the logarithm bends it. (A Laplace variable's square varies by
        # five times its mean's square.)
        bent = 1.5 * (4 * second * noise + 5 * len(loads) * noise**2) / buckets
        third = max(float(cubes.sum()) - bent, second**2 / first)
        return cls(first, second, third, second_error, third_error)

    @property
    def of_ends(self) -> float:
        """The mean degree of an edge's end."""
        return self.second / self.first

    @property
    def of_corners(self) -> float:
        """The mean degree of a triangle's corner, if nodes have triangles by their squared degrees;
        as far as that differs from an edge's end beyond doubt."""
        return max((self.third - self.third_error) / self.second, self.of_ends)

    def largest_core(self, nodes: int) -> float:
        """The size of the largest clique that the loads allow, among so many nodes if not 0."""
        size: float = (self.third + _ROOM * self.third_error) ** 0.25
        if nodes:
            mean = self.first / nodes
            beyond = self.second + _ROOM * self.second_error - mean * self.first
            size = min(size, mean + max(beyond, 0.0) ** (1 / 3))
        return size


class _Rows:
    """What noisy loads say about the rows of a fold, with one sub-bucket for each sign.

    The loads' spread is taken to be so many of its standard errors (``lean``) above what was found.
    """

    def __init__(
        self, layout: Layout, noisy: NDArray[np.int64], law: NoiseLaw, nodes: int, lean: float
    ) -> None:
        self.hubs, self.groups = layout.hubs, layout.groups
        self.o = slice(layout.hubs, layout.rows)
        self._noise, self._reach = float(law.variance), float(law.margin())
        self.seen: FloatArray = noisy.astype(np.float64)
        is_hub = np.arange(layout.rows) < layout.hubs
        #: A row's number of cells with groups; the last ones have none with themselves.
        self._width = np.where(is_hub, self.groups, self.groups - 1)
        #: Which share of a load's distance from the mean the weights of cells keep.
        self.kept = self._kept(self.seen[self.o])
        calm = self._shrunk(self.seen, lean)
        full = calm / (2 * self._width)
        #: By how much a row's hidden edges change with the load that is seen.
        self.slopes: FloatArray = full / (1 - full)
        #: The share of buckets between groups that is occupied.
        self.occupied = float(full[self.o].mean())
        #: Whether a hub's row may be so full that it does not tell how many edges the hub has.
        noisy_share = 2 * law.stderr / (2 * self.groups)
        self.overflows = bool((full[: self.hubs] + noisy_share > _FULL).any())
        self.degrees = _Degrees.of(
            self.seen[self.o], self.groups - 1, self.slopes[self.o], self._noise, lean
        )
        self._nodes = nodes
        #: The largest clique of nodes in groups that the loads allow.
        self.core = self.degrees.largest_core(max(nodes - layout.hubs, 0))
        # An edge is no company to itself, at either end. Nobody shares the row of a hub: only the
        # hub's own edges meet there.
        beyond = np.where(is_hub, -1.0, self._of_ends(calm[self.o]) - 2)
        #: Each row's number of edges into groups, with noise drawn to the mean, and how many of
        #: them are behind others.
        self.calm: FloatArray = calm
        for _ in range(_STEPS):
            self.calm = calm + self.calm * _behind((self.calm + beyond) / self._width)
        self.unseen: FloatArray = self.calm - calm
        #: The number of edges between groups.
        self.inside = float((self.seen + self.unseen)[self.o].sum()) / 2

    def _of_ends(self, calm: FloatArray) -> float:
        """The mean degree of an edge's end. Calm loads are as uneven as loads without noise, of
        which the logarithm would make more."""
        buckets = 2 * (self.groups - 1)
        edges = -buckets * np.log1p(-calm / buckets)
        return max(1.0, len(edges) * float(edges.var()) / max(float(edges.sum()), 1.0))

    def _kept(self, loads: FloatArray, lean: float = 0.0) -> float:
        """The share of the loads' spread that is not noise."""
        squares = (loads - loads.mean()) ** 2
        spread = float(squares.mean()) + lean * math.sqrt(float(squares.var()) / len(squares))
        return max(0.0, 1 - self._noise / max(spread, 1e-9))

    def _shrunk(self, load: FloatArray, lean: float) -> FloatArray:
        """Loads drawn towards their mean, so that their spread is what it is without noise."""
        calm = load.copy()
        for part in (slice(0, self.hubs), self.o):
            if len(calm[part]) > 1:
                mean = float(calm[part].mean())
                calm[part] = mean + (calm[part] - mean) * math.sqrt(self._kept(calm[part], lean))
        # If nearly all buckets are occupied, nothing is known.
        return np.clip(calm, 0.0, _FULL * 2 * self._width)

    # -- edges -----------------------------------------------------------------------------

    def edges(self, buckets: float) -> float:
        """The number of edges, if so many buckets are occupied."""
        return buckets + self._counted(self.unseen) + self.inside / (self.groups - 1)

    def _counted(self, rows: FloatArray) -> float:
        """The sum of something over all edges, from its sums over rows."""
        return float(rows[self.o].sum()) / 2 + float(rows[: self.hubs].sum())

    @property
    def edge_noise(self) -> float:
        """The variance that the noise of loads causes: in each row, and in Σd²/4r."""
        own, hubs = self.slopes[self.o] / 2, self.slopes[: self.hubs]
        noise = self._noise
        grown = noise * float(np.mean((1 + self.slopes[self.o]) ** 2))
        return noise * float(own @ own + hubs @ hubs) + 5 * grown**2 / (16 * self.groups)

    @cached_property
    def edge_error(self) -> float:
        """The variance of the number of edges that folding causes.

        Two nodes of a group hide an edge at each of their common neighbours, if they have the same
        sign. The squared numbers of common neighbours of nodes in groups are at most Σd³/2 in
        communities, and y²·(x + y)²/2 in a core of y nodes in groups and x hubs.
        """
        fuzz = self._counted(self._width * _excess(self.calm / self._width))
        # Hubs of a core have y edges into groups, or more.
        hubs = np.arange(self.hubs + 1)
        own = np.minimum(np.append(np.inf, -np.sort(-self.calm[: self.hubs])), self.core)
        pairs = float((own * (own + hubs)).max()) ** 2
        pairs += self.degrees.second * self.degrees.of_ends
        return fuzz + (max(self.inside, 0.0) + pairs / 4) / self.groups

    @property
    def edges_more(self) -> float:
        """How many more edges the fullest row of a group may hide than its calm load says.

        Calm loads are right for many rows, but take the one row of a large hub for noise as well.
        It may be as full as its noise allows; if it is full, with as many edges as a node can have,
        which nobody knows if anyone may be a node.
        """
        row = self.hubs + int(np.argmax(self.seen[self.o]))
        buckets = 2 * (self.groups - 1)
        load = float(self.seen[row]) + self._reach
        most = -buckets * math.log1p(-load / buckets) if load < _FULL * buckets else math.inf
        hidden = min(most, self._nodes - 1 if self._nodes else math.inf) - min(load, buckets)
        return max(0.0, hidden - float(self.unseen[row]))


class _Triangles:
    """What a fold does to the number of triangles, on a graph with these loads and edges."""

    def __init__(self, rows: _Rows, edges: float) -> None:
        self._r, self._hubs, self._edges = rows.groups, rows.hubs, max(edges, 1.0)
        self._degrees, self._core = rows.degrees, rows.core
        calm, inside = rows.calm[: rows.hubs], max(rows.inside, 1.0)
        beside = max(float(calm.sum()), 0.0)
        between = max(self._edges - inside - beside, 0.0)
        # Ends of edges that are nodes in groups, and Σd² of these nodes and of all.
        ends = min((2 * inside + beside) / (2 * self._edges), 1.0)
        own = rows.degrees.second * ((2 * inside + beside) / (2 * inside)) ** 2
        squares = own + float(calm @ calm) * (1 + 2 * between / max(beside, 1.0)) ** 2
        #: The share of dense parts that is in groups, by squared degrees; and the share of wedges
        #: whose ends are: by their number, and by their degrees.
        self._own = own / squares
        share = math.sqrt(ends * self._own)
        self._inside = share**2

        cell = float(_variance(np.array([2 * inside / self._r**2]))[0])
        hub_cells = _variance(calm / self._r)
        hub_cell = float(hub_cells @ calm) / max(beside, 1.0)
        #: The variance of a weighted cell that a wedge closes, and the number of wedges.
        self._cell = share**2 * cell + 2 * share * (1 - share) * hub_cell
        self._wedges = squares / 2
        #: Products of three cells that have no edge in common.
        self._strays = (self._r * cell) ** 3 / 6
        self._strays += self._r**2 * cell * float(hub_cells @ hub_cells) / 2
        #: The squared numbers of paths of length 3, in a random graph.
        self._random = self._own**2 * (squares / (2 * self._edges)) ** 6 / 2
        #: The share of a corner's degree that calm weights leave out; and how many times too small
        #: the weights of a triangle are.
        self._left_out = 1 - rows.kept
        self._small = self._hidden(rows.degrees.of_corners, rows.degrees.of_ends)
        self.grown = math.exp(min(self._small, 1.0))

    def _largest(self, count: float) -> tuple[float, float]:
        """The largest core of so many triangles: its nodes, and those of them in groups."""
        size: float = (6 * count) ** (1 / 3)
        own = min(self._core, self._own * size)
        return min(size, own + self._hubs), own

    def met(self, count: float) -> float:
        """How many triangles edges in company add to so many."""
        common, degrees = 3 * max(count, 0.0) / self._edges * self._own, self._degrees
        uneven = degrees.of_corners / degrees.of_ends
        return self._edges * common**2 * uneven / (4 * self._r)

    def _hidden(self, degree: float, beyond: float) -> float:
        """The logarithm of what weights leave out of a triangle, if its corners have this degree
        and their neighbours the degree ``beyond``."""
        corner = degree * (self._left_out + beyond / (2 * self._r)) / self._r
        return 3 * self._inside * corner

    def _more(self, count: float, degree: float, beyond: float) -> float:
        """How many of so many triangles are hidden, with such corners, beyond what is allowed."""
        return count * math.expm1(min(self._hidden(degree, beyond) - self._small, 1.0))

    def variance(self, count: float) -> float:
        """The variance that folding causes, if there are so many triangles.

        A weighted cell varies by V. So the count varies by V times the squared numbers of common
        neighbours of pairs that share the cell; by products of three cells that have no edge in
        common; and, over the hashes, by the squared numbers of paths of length 3 between nodes
        that fall into one group. A core would also shift the count otherwise: what it hides is
        known, and of what it adds, which is most in a clique, a half more or less.
        """
        count = max(count, 0.0)
        size, own = self._largest(count)
        rest, degrees = count - size**3 / 6, self._degrees
        pairs = self._wedges * 3 * count / self._edges + size**4 / 2
        paths = own**2 * size**4 / 2 + 3 * rest * self._inside * degrees.of_ends**3
        more_met = own**2 * size**2 / (8 * self._r) + self.met(rest) - self.met(count)
        steeper = degrees.of_corners * (1 + degrees.second_error / degrees.second)
        dense = max(own, steeper)
        hidden = self._more(count - rest, dense, dense)
        hidden += self._more(rest, steeper, degrees.of_ends)
        return (
            pairs * self._cell
            + self._strays
            + max(paths, self._random) / self._r
            + (more_met / 2 - hidden) ** 2
            + (more_met / 2) ** 2
        )


def _fixed_point(function: Callable[[float], float], start: float) -> float:
    """The x with function(x) = x; infinite if there is none near."""
    at = start
    for _ in range(_STEPS):
        last, at = at, function(at)
        if abs(at - last) <= 1e-9 * abs(at):
            return at
    return math.inf


def _behind(company: FloatArray) -> FloatArray:
    """The share of edges that are behind others, if an edge has so many others in its cell."""
    each = np.maximum(company, 1e-9) / 2
    share: FloatArray = 1 + np.expm1(-each) / each
    return share


def _occupied(load: FloatArray) -> FloatArray:
    """The share of two buckets that is occupied at a load of their cell."""
    share: FloatArray = -np.expm1(-load / 2)
    return share


def _excess(load: FloatArray) -> FloatArray:
    """The variance of a cell's number of edges, if it is told from its occupied buckets."""
    each = np.minimum(load / 2, _MOST_EACH)
    variance: FloatArray = 2 * (np.expm1(each) - each)
    return variance


def _variance(load: FloatArray) -> FloatArray:
    """The variance of a weighted cell at a load."""
    q = _occupied(load)
    variance: FloatArray = 2 * q / (1 - q)
    return variance
