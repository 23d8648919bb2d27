"""The shape of a graph: what the error of a folded release depends on.

What
    A folded release (see :mod:`silograph.methods.fold.expected`) gives the nodes of highest degree,
    the hubs, a group each, and hashes the others, the ordinary nodes, into shared groups. Its error
    is a sum over pairs of nodes, and it matters which of the two are hubs. So a shape sorts nodes
    by degree into bands, and holds one sum for each pair of bands. A node of band i is a hub with
    some probability, the same for the whole band, and every sum over hubs or ordinary nodes
    follows, for known hubs and for hubs that noisy degrees have picked.
How
    Degrees and edges are counted exactly. Sums over pairs need a node's walks of length 2 and 3.
    They are made for all nodes of the small bands on top, and for a systematic sample of the
    others, each node in proportion to its expected part of the sum. Nothing is drawn: the same
    graph gives the same shape. A thousand rows give P within a few percent.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph._core import sparse_triangles
from silograph.errors import ArgumentError
from silograph.estimators.estimate import FloatArray
from silograph.graph.samples import clustered_power_law
from silograph.graph.silo import Silo

__all__ = ["FoldShape", "shape_of", "stand_ins"]

Integers = NDArray[np.int64]

#: Where the bands begin. Those of the top are narrow, since few nodes there matter most.
_BOUNDS = (0, 1, 2, 4, 8, 16, 30, 50, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000,
           5000, 7000, 10000, 14000, 20000)  # fmt: skip
#: How many rows of a band are made, and about how many steps of walks all of them may take.
_FEWEST, _ROWS = 8, 64
_STEPS = 1_500_000_000


#: The sums of a shape that grow with the number of copies.
_SUMS = (
    "triangles",
    "joined",
    "edge_squares",
    "open_squares",
    "path_squares",
    "twos",
    "threes",
)


@dataclass(frozen=True, eq=False)
class FoldShape:
    """Sums over the bands of a graph whose nodes are sorted by degree, largest first.

    Matrices have a row and a column for each band, and are symmetric. An entry is the sum over the
    *ordered* pairs of different nodes, the first of the row's band, the second of the column's.

    Examples
    --------
    >>> from silograph.graph.samples import clustered_power_law
    >>> shape = shape_of(clustered_power_law(500, 4, seed=1))
    >>> int(shape.edges), shape.bounds.tolist()[:4], int(shape.sizes.sum())
    (1984, [0, 1, 2, 4], 500)
    """

    nodes: int
    #: The degrees, in descending order.
    degrees: Integers
    triangles: float
    #: Where the bands begin, and after the last of them the number of nodes.
    bounds: Integers
    #: Edges between bands (those inside a band count twice: pairs are ordered).
    joined: FloatArray
    #: Squared numbers of common neighbours, of pairs that are edges and of the others.
    edge_squares: FloatArray
    open_squares: FloatArray
    #: Squared numbers of paths of length 3.
    path_squares: FloatArray
    #: For each band i, and each threshold band k: the sum over ordered edges that begin in band i
    #: of C(c, 2) and C(c, 3), c the number of common neighbours from band k down.
    twos: FloatArray
    threes: FloatArray
    #: Where the shape comes from, in words.
    source: str

    @property
    def sizes(self) -> Integers:
        """The number of nodes in each band."""
        return np.diff(self.bounds)

    @property
    def edges(self) -> float:
        """The number of edges."""
        return float(self.joined.sum()) / 2

    @cached_property
    def squares(self) -> float:
        """The sum of the squared degrees."""
        return float((self.degrees.astype(float) ** 2).sum())

    @property
    def two_stars(self) -> float:
        """The number of 2-stars."""
        return self.squares / 2 - self.edges

    @cached_property
    def band_squares(self) -> FloatArray:
        """The sum of the squared degrees in each band."""
        sums: FloatArray = np.add.reduceat(self.degrees.astype(float) ** 2, self.bounds[:-1])
        return sums

    @cached_property
    def _histogram(self) -> tuple[Integers, Integers]:
        values, counts = np.unique(self.degrees, return_counts=True)
        return values, counts.astype(np.int64)

    def count(self, query: str) -> float:
        """The answer to a query on this graph."""
        match query:
            case "edges":
                return self.edges
            case "kstars":
                return self.two_stars
            case "triangles":
                return self.triangles
            case "clustering":
                return 3 * self.triangles / self.two_stars if self.two_stars else math.nan
        raise ArgumentError(f"the error of a folded release cannot be predicted for {query}")

    def copied(self, copies: int) -> "FoldShape":
        """The shape of so many copies of the graph, side by side."""
        if copies == 1:
            return self
        return replace(
            self,
            nodes=self.nodes * copies,
            degrees=np.repeat(self.degrees, copies),
            bounds=self.bounds * copies,
            **{name: getattr(self, name) * copies for name in _SUMS},
        )

    def resembling(
        self, degrees: Integers, triangles: float, edge_squares: float, common_squares: float
    ) -> "FoldShape":
        """The same shape with other degrees, triangles and squared numbers of common neighbours.

        Nodes keep their ranks. Common neighbours and paths of two nodes grow as both of their
        degrees do, and all by one factor, so that the sums are as given; a path of length 3 goes on
        from one of length 2 by as many ways as an edge's end has further neighbours. What collides
        in company grows with the triangles of an edge. This is only a rough approximation.

        Parameters
        ----------
        degrees
            The degrees, in any order; each stands for as many nodes as it takes.
        triangles
            The number of triangles.
        edge_squares
            The sum over the edges of the squared number of common neighbours of their ends.
        common_squares
            The same sum over all pairs.

        Returns
        -------
        FoldShape
            The shape.
        """
        places = (np.arange(self.nodes) + 0.5) * len(degrees) / self.nodes
        ranked = np.sort(degrees)[::-1][places.astype(np.int64)].astype(np.int64)
        sums, old = (np.add.reduceat(d, self.bounds[:-1]) for d in (ranked, self.degrees))
        taller = sums / np.maximum(old, 1)
        product = np.outer(taller, taller)
        # No pair has more common neighbours than the smaller of its degrees.
        each: FloatArray = sums / self.sizes
        most: FloatArray = np.minimum.outer(each, each) ** 2 * np.outer(self.sizes, self.sizes)
        open_squares = max(common_squares - edge_squares, 1.0)
        wider = open_squares * 2 / max(float((self.open_squares * product**2).sum()), 1.0)
        further, before = (
            float((d.astype(float) ** 2).sum()) / max(float(d.sum()), 1.0)
            for d in (ranked, self.degrees)
        )
        joined = _joined(self.joined * product, sums.astype(float), self.sizes)
        many = joined.sum() / max(float(self.joined.sum()), 1.0)
        more = triangles / max(self.triangles, 1.0) / many
        rows = (taller * more**2)[:, None]
        return replace(
            self,
            degrees=ranked,
            triangles=triangles,
            joined=joined,
            edge_squares=_scaled(self.edge_squares * product**2, 2 * edge_squares, most),
            open_squares=_scaled(self.open_squares * product**2, 2 * open_squares, most),
            path_squares=self.path_squares * product**2 * wider * (further / before) ** 2,
            twos=self.twos * rows,
            threes=self.threes * rows * more,
        )

    def known_hubs(self, hubs: int) -> FloatArray:
        """The share of each band that is among the ``hubs`` nodes of highest degree."""
        share: FloatArray = np.clip((hubs - self.bounds[:-1]) / self.sizes, 0.0, 1.0)
        return share

    def found_hubs(self, hubs: int, scale: float) -> FloatArray:
        """The expected share of each band among the ``hubs`` largest *noisy* degrees.

        Noise is Laplace of this scale. A node is a hub if its noisy degree is above a threshold
        that on average so many degrees exceed.
        """
        if not hubs:
            return np.zeros(len(self.sizes))
        values, counts = self._histogram

        def above(threshold: float) -> FloatArray:
            z = (threshold - values) / scale
            tail = np.exp(-np.abs(z)) / 2
            p: FloatArray = np.where(z > 0, tail, 1 - tail)
            return p

        reach = scale * (math.log(max(self.nodes, 2)) + 5)
        low, high = float(values[0]) - reach, float(values[-1]) + reach
        for _ in range(60):
            middle = (low + high) / 2
            many = float(counts @ above(middle)) > hubs
            low, high = (middle, high) if many else (low, middle)
        each = above(high)[np.searchsorted(values, self.degrees)]
        share: FloatArray = np.add.reduceat(each, self.bounds[:-1]) / self.sizes
        return share


# --- From a few numbers ---------------------------------------------------------------------------

#: How often sums are fitted to their limits and totals in turn.
_TURNS = 30


def _joined(edges: FloatArray, degrees: FloatArray, sizes: Integers) -> FloatArray:
    """Edges between bands in about these proportions, with the given sums of degrees.

    Between two bands there are no more edges than pairs.
    """
    most = np.outer(sizes, sizes) - np.diag(sizes)
    for _ in range(_TURNS):
        factors = np.sqrt(degrees / np.maximum(edges.sum(axis=1), 1e-9))
        edges = np.minimum(edges * np.outer(factors, factors), most)
    return edges


def _scaled(sums: FloatArray, total: float, most: FloatArray) -> FloatArray:
    """Sums in these proportions that have a total, as far as none exceeds what it can be."""
    for _ in range(_TURNS):
        sums = np.minimum(sums * (total / max(float(sums.sum()), 1e-9)), most)
    return sums


#: The number of nodes of the generated graph, and how many of its edges close triangles.
_STAND_IN = 2048
_CLOSURES = (0.9, 0.3)
#: Edges per node.
_DENSITIES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 28, 34, 40, 48, 64, 96, 128, 192, 256)


def stand_ins(nodes: int, edges: float) -> tuple[FoldShape, ...]:
    """Shapes that a graph of this size may have: clustered power laws, with more and less closure.

    A large graph is taken for many copies of a small one with about as many edges per node: the
    nearest of a few densities, so that similar guesses share their shapes.
    """
    most = min(nodes, _STAND_IN)
    near = min(_DENSITIES, key=lambda each: abs(math.log(each * nodes / max(edges, 1.0))))
    each = max(1, min(near, most // 4))
    copies = max(1, round(nodes / most))
    return tuple(_stand_in(most, each, closure).copied(copies) for closure in _CLOSURES)


@lru_cache(maxsize=32)
def _stand_in(nodes: int, each: int, closure: float) -> FoldShape:
    return shape_of(clustered_power_law(nodes, each, closure, seed=1))


# --- From a graph ---------------------------------------------------------------------------------


def shape_of(graph: Silo) -> FoldShape:
    """The shape of a **public** graph; that of the silos' own edges would be a bare release.

    It takes time in proportion to the edges, and to a bounded number of steps on walks.
    """
    n = len(graph.universe)
    if n < 3:
        raise ArgumentError(f"a graph of {n} nodes is too small to plan with; it needs 3")
    near = _Neighbours(n, graph.pairs)
    bounds = np.array([b for b in _BOUNDS if b <= n // 2] + [n], dtype=np.int64)
    bands = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    words = f"a public graph of {n:,} nodes and {len(graph.pairs):,} edges"
    return _Sums(near, bounds, bands).shape(float(sparse_triangles(n, graph.pairs)), words)


class _Neighbours:
    """The neighbours of every node; nodes are numbered by degree, largest first."""

    def __init__(self, n: int, pairs: NDArray[np.uint32]) -> None:
        degrees = np.bincount(pairs.ravel(), minlength=n)
        order = np.argsort(-degrees, kind="stable")
        rank = np.empty(n, dtype=np.uint64)
        rank[order] = np.arange(n, dtype=np.uint64)
        first, second = rank[pairs[:, 0]], rank[pairs[:, 1]]
        shift = np.uint64(32)
        keys = np.sort(np.concatenate([first << shift | second, second << shift | first]))
        self.n = n
        self.degrees: Integers = degrees[order].astype(np.int64)
        self.starts: Integers = np.concatenate([[0], np.cumsum(self.degrees)])
        self.ends: NDArray[np.int32] = (keys & np.uint64(2**32 - 1)).astype(np.int32)

    def of(self, node: int) -> NDArray[np.int32]:
        """The neighbours of one node, ascending."""
        return self.ends[self.starts[node] : self.starts[node + 1]]

    def of_all(self, nodes: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """The neighbours of the first node, of the second, and so on."""
        many = self.degrees[nodes]
        skipped = self.starts[nodes] - np.cumsum(many) + many
        return self.ends[np.repeat(skipped, many) + np.arange(int(many.sum()))]

    def summed(self, values: FloatArray) -> FloatArray:
        """For every node the sum of its neighbours' values."""
        total = np.concatenate([[0.0], np.cumsum(values[self.ends])])
        sums: FloatArray = total[self.starts[1:]] - total[self.starts[:-1]]
        return sums


class _Sums:
    """The sums of a shape, collected row by row."""

    def __init__(self, near: _Neighbours, bounds: Integers, bands: Integers) -> None:
        self.near, self.bounds, self.bands = near, bounds, bands
        count = len(bounds) - 1
        self.edge_squares, self.open_squares, self.path_squares, self.twos, self.threes = (
            np.zeros((count, count)) for _ in range(5)
        )

    def shape(self, triangles: float, source: str) -> FoldShape:
        """All sums; rows that are sampled stand for the rest of their band."""
        near, count = self.near, len(self.bounds) - 1
        walks2 = near.summed(near.degrees.astype(float))
        walks3 = near.summed(walks2)
        each = self._rows_a_band(walks2)
        trust = np.ones(count)
        for band, (start, stop) in enumerate(pairwise(self.bounds.tolist())):
            if stop - start <= each:
                rows, weights = np.arange(start, stop), np.ones(stop - start)
            else:
                rows, weights = _systematic(start, walks3[start:stop], each)
                trust[band] = each / (stop - start)
            for row, weight in zip(rows.tolist(), weights.tolist(), strict=True):
                self._add(band, row, weight)
        # An entry is known from both of its bands, and better from the one that was read in full.
        share = trust[:, None] / (trust[:, None] + trust[None, :])
        edge_squares, open_squares, path_squares = (
            share * matrix + share.T * matrix.T
            for matrix in (self.edge_squares, self.open_squares, self.path_squares)
        )
        firsts = np.repeat(self.bands, near.degrees)
        joined = np.bincount(firsts * count + self.bands[near.ends], minlength=count * count)
        return FoldShape(
            near.n, near.degrees, triangles, self.bounds,
            joined.reshape(count, count).astype(float), edge_squares, open_squares, path_squares,
            self.twos, self.threes, source,
        )  # fmt: skip

    def _rows_a_band(self, walks2: FloatArray) -> int:
        """So many that all rows together take no more steps than allowed."""
        steps = np.minimum(self.near.summed(walks2), 2.0 * len(self.near.ends))
        mean = float(steps @ walks2) / max(float(walks2.sum()), 1.0)  # rows favour large nodes
        count = len(self.bounds) - 1
        return int(np.clip(_STEPS / max(mean * count, 1.0), _FEWEST, _ROWS))

    def _add(self, band: int, node: int, weight: float) -> None:
        """One row of walks from a node, times a weight."""
        near, bands, count = self.near, self.bands, len(self.bounds) - 1
        first = near.of(node)
        if not len(first):
            return
        second = near.of_all(first)
        common = np.bincount(second, minlength=near.n)
        at = np.flatnonzero(common)
        if 4 * int(near.degrees[at].sum()) > len(near.ends):  # so many that it is best to take all
            walks = near.summed(common.astype(float))
        else:
            many = np.repeat(common[at].astype(float), near.degrees[at])
            walks = np.bincount(near.of_all(at), many, near.n).astype(float)
        # Walks of length 3 that turn back are no paths.
        walks[first] -= near.degrees[node] + near.degrees[first] - 1
        walks[node] = 0
        self.path_squares[band] += weight * np.bincount(bands, weights=walks**2, minlength=count)
        common[node] = 0
        squares = common.astype(float) ** 2
        closed = np.bincount(bands[first], weights=squares[first], minlength=count)
        self.edge_squares[band] += weight * closed
        total = np.bincount(bands[at], weights=squares[at], minlength=count)
        self.open_squares[band] += weight * (total - closed)
        # Common neighbours along each edge of the node, by the band of the neighbour.
        place = np.full(near.n, -1)
        place[first] = np.arange(len(first))
        ends, middles = place[second], np.repeat(bands[first], near.degrees[first])
        inside = ends >= 0
        table = np.bincount(ends[inside] * count + middles[inside], minlength=len(first) * count)
        down = table.reshape(-1, count)[:, ::-1].cumsum(axis=1)[:, ::-1].astype(float)
        pairs = down * (down - 1) / 2
        self.twos[band] += weight * pairs.sum(axis=0)
        self.threes[band] += weight * (pairs * (down - 2) / 3).sum(axis=0)


def _systematic(start: int, sizes: FloatArray, many: int) -> tuple[Integers, FloatArray]:
    """So many places, each in proportion to its size, and what each stands for."""
    order = np.argsort(sizes, kind="stable")
    total = np.cumsum(sizes[order])
    if not total[-1]:
        return np.arange(0), np.zeros(0)
    marks = (np.arange(many) + 0.5) * total[-1] / many
    picked = order[np.searchsorted(total, marks)]
    return start + picked, total[-1] / many / sizes[picked]
