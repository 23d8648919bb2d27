"""The estimators of folded releases: edges, squared degrees, 2-stars, triangles, 4-cycles and
clustering from the cells of a graph whose nodes were hashed into groups.

Model
    M is the symmetric matrix of cells: the signed number of edges between two groups, by the series
    of :mod:`silograph.estimators.folded_loads`, made unbiased by its weights. G = M∘M. The signs of
    nodes cancel wherever a product of cells is not a copy of the motif, so sums of products over
    distinct groups are estimates of counts. Degrees come from the loads of rows, without signs.

    ========== =====================================================================================
    edges      Σ loads; edges inside a group were dropped, so ordinary ones are divided by 1 − 1/r_o
    Σd²        hubs: D². Ordinary rows: (Σ(D² − fuzz) − (ΣD)²/r_o)/(1 − 1/r_o), where edges between
               ordinary groups count 1/(1 − 2/r_o) in D
    2-stars    Σd²/2 − edges
    triangles  tr(M³)/6; where K = 1, less what collisions in two cells at once add
    4-cycles   ⅛ Σ_{a≠c} ((M²)_ac² − (G²)_ac)
    clustering 3·triangles/2-stars
    ========== =====================================================================================
Bias
    With exact cells: none for edges and Σd²; a factor 1 − 1/(r_o−1)² for triangles without a hub
    and for 4-cycles with one hub, and 1 − O(1/r_o²) for 4-cycles without one. Collisions: what the
    weights leave, about a percent where cells hold up to half an edge.
Variance
    From the release alone. Each has a part of the hash (which groups and signs the nodes got), a
    part of single cells (channel and collisions), and a part of pairs of nodes that share a group.
Cost
    In products of r×r matrices for r rows: one for edges and degrees, half a product more for
    triangles, two and a half more for 4-cycles. Two matrices of 4 bytes a cell are kept, and a
    third one while 4-cycles are counted. All else is done in tiles.
Reference
    N. Alon, Y. Matias, M. Szegedy, The space complexity of approximating the frequency moments,
    JCSS 58 (1999), for sums of random signs.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from silograph.dp.channel import Channel
from silograph.estimators.estimate import FloatArray
from silograph.estimators.folded_loads import CellShape, Loads, RowSums, Strip, by_ones
from silograph.estimators.ratio import fieller

__all__ = ["FoldedCounts", "FoldedRatio", "FoldedSum", "FoldedSums"]

#: Overflows are found at the end, by :meth:`FoldedSum.of`.
_overflowing = np.errstate(over="ignore", invalid="ignore")
#: Rows and columns of a tile. Its products are large enough for BLAS, its other work fits a cache.
_TILE = 512

Cells = NDArray[np.float32]


class FoldedCounts(Protocol):
    """The readings of a folded release."""

    @property
    def groups(self) -> int:
        """The number of ordinary groups."""

    @property
    def hubs(self) -> int:
        """The number of hubs, which are the first rows."""

    @property
    def sub(self) -> int:
        """K, the number of sub-buckets for each sign of a cell."""

    def rows(self, start: int, stop: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """How many plus and how many minus buckets read one, in each cell of some rows.

        Two arrays of stop − start rows and hubs + groups columns, zero on the diagonal. The one
        bucket of two hubs counts as a plus bucket.
        """


@dataclass(frozen=True)
class FoldedSum:
    """An estimate and its variance. ``parts`` says what the variance is made of."""

    value: float
    variance: float
    parts: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, value: float, **parts: float) -> "FoldedSum":
        """A part that an estimate leaves below zero counts as zero.

        If noise has passed what single precision holds, nothing is known of the sum.
        """
        if not all(map(math.isfinite, (value, *parts.values()))):
            return cls(0.0, math.inf)
        kept = {name: max(part, 0.0) for name, part in parts.items()}
        return cls(value, sum(kept.values()), kept)

    @property
    def stderr(self) -> float:
        return float(np.sqrt(self.variance))


@dataclass(frozen=True)
class FoldedRatio:
    """The clustering coefficient: three times ``top`` over ``bottom``.

    Noise and collisions change the plus and the minus buckets of a cell alike; triangles take their
    difference and 2-stars their sum. So the two estimates are taken as uncorrelated.
    """

    top: FoldedSum
    bottom: FoldedSum

    @property
    def value(self) -> float:
        """NaN if the noise leaves no 2-stars."""
        return 3 * self.top.value / self.bottom.value if self.bottom.value > 0 else float("nan")

    @property
    def variance(self) -> float:
        """The variance by the delta method."""
        if self.bottom.value <= 0:
            return float("inf")
        spread = 9 * self.top.variance + self.value**2 * self.bottom.variance
        return spread / self.bottom.value**2

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Fieller's interval; None if the number of 2-stars cannot be told from zero."""
        top, bottom = self.top, self.bottom
        return fieller(3 * top.value, 9 * top.variance, bottom.value, bottom.variance, 0.0, level)


# --- Sums over cells ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Walks:
    """Sums over pairs of rows a ≠ b and the walks of two steps between them.

    ``square`` is M² without its diagonal, ``length`` its diagonal. ``pairs`` is M²∘M² − G²: the
    pairs of different walks.
    """

    square: Cells
    length: FloatArray
    #: Σ_b M_ab·(M²)_ab for each row: six times the triangles. The triangles of three and of two
    #: ordinary groups.
    closed: FloatArray
    of_three: float
    of_two: float
    #: Row sums of G, G², and of G∘G²; the diagonal of G².
    squares: RowSums
    own: RowSums
    own_closed: RowSums
    own_length: FloatArray
    #: Σ G³ over ordinary cells.
    cubes: float
    #: Row sums of ``pairs``, their form with the degrees of ordinary rows, and Σ variance·pairs.
    pairs: RowSums
    pairs_by_degree: float
    pairs_by_variance: float
    #: Row sums of the channel's part of the variance of cells.
    noise: RowSums
    #: Σ (load − company)·pairs by ordinary middles, and of its squares; only where K = 1.
    met: float
    met_squares: float
    #: The number of 4-cycles.
    cycles: float


@dataclass(frozen=True, eq=False)
class _Degrees:
    """Degrees of rows, and the sums of fuzz that their squares need."""

    degree: FloatArray
    #: Degrees, of ordinary rows as deviations from their mean: half the slope of Σd² in a row.
    lean: FloatArray
    fuzz: RowSums
    #: Σ fuzz·lean·lean over cells.
    fuzz_by_lean: float
    #: Σd², and the part of it at ordinary nodes.
    squares: float
    ordinary: float


class FoldedSums:
    """What a folded release says about its graph; each number is computed once, when asked for.

    Parameters
    ----------
    counts
        The readings of the release.
    channel
        The channel of its buckets.
    advance
        Called with a number of rows whenever those have been worked through. Loads take one pass
        over all rows; edges and degrees one more; triangles a third; 4-cycles a further two.
    """

    @_overflowing
    def __init__(
        self,
        counts: FoldedCounts,
        channel: Channel,
        advance: Callable[[int], None] | None = None,
    ) -> None:
        self.shape = CellShape(counts.hubs, counts.groups, counts.sub)
        self._counts, self._channel = counts, channel
        self._advance = advance or (lambda rows: None)
        shape = self.shape
        #: The estimates for each number of ones: of one sign, of both, and of a single bucket.
        self._signed, self._both, self._single = (
            np.array(by_ones(buckets, order, channel), dtype=np.float32)
            for buckets, order in (
                (shape.sub, shape.order),
                (2 * shape.sub, shape.load_order),
                (1, 1),
            )
        )

    # --- What is asked for ---

    @cached_property
    @_overflowing
    def edges(self) -> FoldedSum:
        """The number of edges."""
        loads, hubs = self.loads, self.shape.hubs
        value = loads.inside / self.shape.apart + float(loads.load[:hubs].sum())
        value += float(loads.between_hubs.sum()) / 2
        return FoldedSum.of(value, **self._degree_parts(0.0, 1.0, value))

    @cached_property
    @_overflowing
    def squares(self) -> FoldedSum:
        """The sum of squared degrees."""
        return FoldedSum.of(self._degrees.squares, **self._degree_parts(1.0, 0.0, self.edges.value))

    @cached_property
    @_overflowing
    def two_stars(self) -> FoldedSum:
        """The number of pairs of edges that meet in a node."""
        edges = self.edges.value
        return FoldedSum.of(
            self._degrees.squares / 2 - edges, **self._degree_parts(0.5, -1.0, edges)
        )

    @cached_property
    @_overflowing
    def triangles(self) -> FoldedSum:
        """The number of triangles."""
        walks, groups = self._walks, self.shape.groups
        value = float(walks.closed.sum()) / 6
        if self.shape.sub == 1:
            # A node that shares the group of a triangle's corner and is joined to both others
            # hides two cells at once.
            value -= walks.met / (8 * groups)
            # The weights expect a triangle's own edges in each other's cells, where they cannot be:
            # 2/r_o of an edge too many in each cell of three ordinary groups, 1/r_o in both cells
            # of one hub.
            value += walks.of_three * math.expm1(-3 / groups)
            value += walks.of_two * math.expm1(-1 / groups)
        # Noise makes a cell's square too large wherever two walks share their first or last step.
        hidden = float(walks.noise.ordinary @ walks.pairs.ordinary)
        return FoldedSum.of(
            value,
            signs=float(walks.own_closed.all.sum()) / 6 - value,
            cells=walks.pairs_by_variance / 2,
            groups=(self._three_steps / 2 - hidden) / groups,
            # Each pair of groups is in these sums twice. Under much noise they are all noise.
            met=2 * walks.met_squares / (8 * groups) ** 2,
        )

    @cached_property
    @_overflowing
    def four_cycles(self) -> FoldedSum:
        """The number of cycles of four nodes."""
        value = self._walks.cycles
        return FoldedSum.of(value, **self._cycle_parts(value))

    @cached_property
    def clustering(self) -> FoldedRatio:
        """The share of 2-stars that are closed by a third edge."""
        return FoldedRatio(self.triangles, self.two_stars)

    # --- Cells and loads ---

    @cached_property
    def _read(self) -> tuple[Cells, Loads]:
        """The weighted matrix of cells, and the loads."""
        shape, seen = self.shape, RowSums(self.shape.size)
        cells = np.empty((shape.size, shape.size), dtype=np.float32)
        for rows in shape.strips(_TILE):
            plus, minus = self._counts.rows(rows.at.start, rows.at.stop)
            cells[rows.at] = self._signed[plus] - self._signed[minus]
            if not rows.ordinary:
                cells[rows.at, : shape.hubs] = self._single[plus[:, : shape.hubs]]
                _clear_diagonal(cells[rows.at], rows)
            loads = self._cell_loads(rows, plus, minus)
            seen.hubs[rows.at] = loads[:, : shape.hubs].sum(axis=1, dtype=np.float64)
            seen.ordinary[rows.at] = loads[:, shape.ordinary].sum(axis=1, dtype=np.float64)
            self._advance(rows.at.stop - rows.at.start)
        found = Loads(shape, self._channel, seen)
        for rows, cols in shape.tiles(_TILE):
            tile = cells[rows.at, cols.at]
            tile *= found.model(rows, cols).weight
            if rows is not cols:
                cells[cols.at, rows.at] = tile.T
        return cells, found

    @property
    def loads(self) -> Loads:
        """How full the rows are."""
        return self._read[1]

    def _cell_loads(self, rows: Strip, plus: NDArray[np.uint8], minus: NDArray[np.uint8]) -> Cells:
        """The number of edges in each cell of some rows, whatever their signs."""
        loads: Cells = self._both[plus + minus]
        if not rows.ordinary:
            loads[:, : self.shape.hubs] = self._single[plus[:, : self.shape.hubs]]
        _clear_diagonal(loads, rows)
        return loads

    @property
    def load(self) -> float:
        """Edges in the bucket of an edge, in the mean: rows of hubs can be full where those of
        groups are nearly empty."""
        inside, beside = self._meetings
        return inside / (self.shape.groups * (self.shape.groups - 1)) + beside / self.shape.groups

    def enough(self, load: float) -> int:
        """So many groups that there would be at most this load."""
        inside, beside = self._meetings
        # inside/x² + beside/x = load, with one group less than there are.
        return math.ceil((beside + math.sqrt(beside**2 + 4 * inside * load)) / (2 * load)) + 1

    @property
    def _meetings(self) -> tuple[float, float]:
        """The load between groups, times the square of their number; and that of hubs' rows."""
        loads, sub = self.loads, self.shape.sub
        inside, hubs = max(loads.inside, 0.0), np.maximum(loads.calm[: self.shape.hubs], 0.0)
        buckets = sub * max(inside + float(hubs.sum()), 1.0)
        return inside**2 / buckets, float(hubs @ hubs) / 2 / buckets

    # --- Edges and degrees ---

    @cached_property
    def _degrees(self) -> _Degrees:
        shape, loads = self.shape, self.loads
        o, hubs, groups, apart = shape.ordinary, slice(0, shape.hubs), shape.groups, shape.apart
        share = shape.in_squares
        degree = loads.load.copy()
        degree[hubs] += loads.between_hubs
        degree[o] = loads.from_hubs + degree[o] / share
        lean = degree.copy()
        lean[o] = (degree[o] - degree[o].mean()) / apart

        fuzz, by_lean = RowSums(shape.size), 0.0
        for rows, cols in shape.tiles(_TILE):
            tile = loads.fuzz(rows, cols)
            fuzz.add(tile, rows, cols)
            by_lean += _times(rows, cols) * float(lean[rows.at] @ tile @ lean[cols.at])

        # A square of a noisy number is too large by the noise's variance. In the total, an edge
        # between ordinary groups occurs twice.
        grown = fuzz.ordinary * loads.gain**2
        from_hubs, between = fuzz.hubs[o], grown[o] / share**2
        squares = float((degree[o] ** 2 - from_hubs - between).sum())
        total = float(degree[o].sum()) ** 2 - float((from_hubs + 2 * between).sum())
        ordinary = (squares - total / groups) / apart
        ordinary -= 2 * loads.inside / apart * (1 / share - 1)
        at_hubs = float((degree[hubs] ** 2 - fuzz.hubs[hubs] - grown[hubs]).sum())
        return _Degrees(degree, lean, fuzz, by_lean, at_hubs + ordinary, ordinary)

    def _degree_parts(self, squares: float, edges: float, count: float) -> dict[str, float]:
        """The variance of squares·Σd² + edges·|E|, where |E| is about ``count``."""
        found, walks, loads = self._degrees, self._walks, self.loads
        o, hubs, groups = self.shape.ordinary, slice(0, self.shape.hubs), self.shape.groups
        fuzz, lean, degree = found.fuzz.all, found.lean, found.degree[o]
        doubted_edges = float(loads.doubt[o].sum()) / 2 + float(loads.doubt[hubs].sum())
        doubted = 2 * squares * float(lean @ loads.doubt) + edges * doubted_edges
        # Two nodes of a group with common neighbours collide at each of them.
        at_once = edges + squares * found.squares / max(count, 1.0)
        ties = _form(walks.pairs.ordinary[o], walks.pairs_by_degree, degree, 2 * squares, at_once)
        grown = loads.gain_of_all**2
        return {
            "cells": grown * _form(fuzz, found.fuzz_by_lean, lean, 2 * squares, edges) / 2
            + 2 * (squares * grown) ** 2 * float((fuzz**2).sum()),
            "groups": 2 * squares**2 * found.ordinary**2 / groups
            + edges**2 * max(loads.inside, 0.0) / groups,
            "ties": ties / 2 / groups / (2 * self.shape.sub - 1) ** 2,
            "model": doubted**2,
        }

    # --- Triangles ---

    @cached_property
    def _walks(self) -> _Walks:
        """One pass over pairs of rows, with the products M·M and G·G."""
        shape, (cells, loads) = self.shape, self._read
        size, hubs, o, apart = shape.size, slice(0, shape.hubs), shape.ordinary, shape.apart
        degree = self._degrees.degree
        square = np.empty_like(cells)
        closed, noise, pairs, squares, own, own_closed = (RowSums(size) for _ in range(6))
        length, own_length = np.empty(size), np.empty(size)
        of_three = of_two = cubes = by_degree = by_variance = met = met_squares = cycles = 0.0
        for rows, others in shape.upper(_TILE):
            left = cells[rows.at]
            left_squares = left * left
            length[rows.at] = left_squares.sum(axis=1, dtype=np.float64)
            own_length[rows.at] = (left_squares * left_squares).sum(axis=1, dtype=np.float64)
            if shape.sub == 1:
                counts = self._counts.rows(rows.at.start, rows.at.stop)
                edge_loads = self._cell_loads(rows, *counts)
            for cols in others:
                right = cells[cols.at]
                right_squares = right * right
                # By the kind of the middle group: walks, and walks that return on themselves.
                middle = (left[:, o] @ right[:, o].T).astype(np.float64)
                twice = (left_squares[:, o] @ right_squares[:, o].T).astype(np.float64)
                walks = middle + left[:, hubs] @ right[:, hubs].T
                same = twice + left_squares[:, hubs] @ right_squares[:, hubs].T
                ordinary_pairs, all_pairs = middle**2 - twice, walks**2 - same
                if rows is cols:
                    for tile in (walks, ordinary_pairs, all_pairs):
                        np.fill_diagonal(tile, 0.0)
                square[rows.at, cols.at] = walks
                square[cols.at, rows.at] = walks.T

                times, inner = _times(rows, cols), rows.ordinary and cols.ordinary
                cell = left[:, cols.at].astype(np.float64)
                cell_square = cell**2
                model = loads.model(rows, cols)
                closed.add(walks * cell, rows, cols)
                squares.add(cell_square, rows, cols)
                own.add(same, rows, cols)
                own_closed.add(same * cell_square, rows, cols)
                pairs.add(all_pairs, rows, cols)
                noise.add(model.noise, rows, cols)
                by_variance += times * float((model.variance * all_pairs).sum())
                if inner:
                    of_three += times * float((middle * cell).sum()) / 6
                    of_two += times * float(((walks - middle) * cell).sum()) / 2
                    cubes += times * float((cell_square * cell_square**2).sum())
                    by_degree += times * float(degree[rows.at] @ all_pairs @ degree[cols.at])
                if shape.sub == 1:
                    each = (edge_loads[:, cols.at] - model.company) * ordinary_pairs
                    met += times * float(each.sum())
                    met_squares += times * float((each**2).sum())
                # Opposite corners that are ordinary must have fallen apart, like adjacent ones.
                opposite = float(all_pairs.sum()) + (1 / apart - 1) * float(ordinary_pairs.sum())
                cycles += times * opposite / (apart if inner else 1.0) / 8
            self._advance(rows.at.stop - rows.at.start)
        return _Walks(
            square,
            length,
            closed.all,
            of_three,
            of_two,
            squares,
            own,
            own_closed,
            own_length,
            cubes,
            pairs,
            by_degree,
            by_variance,
            noise,
            met,
            met_squares,
            cycles,
        )

    @cached_property
    def _three_steps(self) -> float:
        """Σ over ordinary a ≠ b of (walks of three different steps)², less each walk's own."""
        shape, walks = self.shape, self._walks
        o, squares = shape.ordinary, 0.0
        for rows, others in shape.upper(_TILE):
            for cols in others:
                if rows.ordinary and cols.ordinary:
                    squares += _times(rows, cols) * float((self._paths(rows, cols) ** 2).sum())
            self._advance(rows.at.stop - rows.at.start)
        # Sums over whole rows need no product of matrices.
        steps = walks.squares.ordinary
        own = float(steps @ walks.own.ordinary) - float(walks.own_closed.all[o].sum())
        own -= 2 * float(walks.own_length[o] @ steps[o]) - walks.cubes
        return squares - own

    def _paths(self, rows: Strip, cols: Strip) -> FloatArray:
        """Walks of three steps between the rows of a tile that do not visit a row twice."""
        cells, walks = self._read[0], self._walks
        cell = cells[rows.at, cols.at].astype(np.float64)
        paths = (walks.square[rows.at] @ cells[cols.at].T).astype(np.float64)
        # ``square`` has no diagonal, so that the step back to the first row is not in it.
        paths -= cell * (walks.length[None, cols.at] - cell**2)
        if rows is cols:
            np.fill_diagonal(paths, 0.0)
        return paths

    # --- 4-cycles ---

    def _cycle_parts(self, value: float) -> dict[str, float]:
        """The variance of the number of 4-cycles: two more passes."""
        shape, (cells, loads), walks = self.shape, self._read, self._walks
        own_square, repeated = np.empty_like(cells), RowSums(shape.size)
        for rows, others in shape.upper(_TILE):
            left = cells[rows.at] ** 2
            for cols in others:
                tile = left @ (cells[cols.at] ** 2).T
                own_square[rows.at, cols.at] = tile
                own_square[cols.at, rows.at] = tile.T
                repeated.add(tile.astype(np.float64) ** 2, rows, cols)
            self._advance(rows.at.stop - rows.at.start)
        pairs, by_variance, squares = RowSums(shape.size), 0.0, 0.0
        for rows, others in shape.upper(_TILE):
            for cols in others:
                # Pairs of different walks of three steps.
                cell_square = cells[rows.at, cols.at].astype(np.float64) ** 2
                own = (own_square[rows.at] @ (cells[cols.at] ** 2).T).astype(np.float64)
                ends = walks.own_length[rows.at, None] + walks.own_length[None, cols.at]
                tile = self._paths(rows, cols) ** 2 - own + cell_square * (ends - cell_square**2)
                if rows is cols:
                    np.fill_diagonal(tile, 0.0)
                pairs.add(tile, rows, cols)
                variance = loads.model(rows, cols).variance
                by_variance += _times(rows, cols) * float((variance * tile).sum())
                if rows.ordinary and cols.ordinary:
                    long = self._long_paths(rows, cols)
                    squares += _times(rows, cols) * float((long**2).sum())
            self._advance(rows.at.stop - rows.at.start)
        own_rows = walks.own.ordinary
        own_walks = float(own_rows @ own_rows) - float(repeated.all[shape.ordinary].sum())
        hidden = float(walks.noise.ordinary @ pairs.ordinary)
        return {
            "signs": float(repeated.all.sum()) / 8 - value,
            "cells": by_variance / 2,
            "groups": ((squares - own_walks) / 2 - hidden) / shape.groups,
        }

    def _long_paths(self, rows: Strip, cols: Strip) -> FloatArray:
        """Walks of four steps between the rows of a tile, less those that return on their way."""
        cells, walks = self._read[0], self._walks
        long = (walks.square[rows.at] @ walks.square[cols.at].T).astype(np.float64)
        long -= (cells[rows.at] * walks.length.astype(np.float32)) @ cells[cols.at].T
        long -= cells[rows.at, cols.at] * (
            walks.closed[rows.at, None] + walks.closed[None, cols.at]
        )
        if rows is cols:
            np.fill_diagonal(long, 0.0)
        return long


def _times(rows: Strip, cols: Strip) -> int:
    """How often a tile of the upper half occurs in the whole matrix."""
    return 1 if rows is cols else 2


def _clear_diagonal(block: Cells, rows: Strip) -> None:
    """Zeros where a row of the block meets itself."""
    at = np.arange(rows.at.start, rows.at.stop)
    block[at - rows.at.start, at] = 0.0


def _form(
    row_sums: FloatArray, form: float, values: FloatArray, slope: float, constant: float
) -> float:
    """Σ_ab A_ab·(slope·(x_a + x_b) + constant)² from the row sums of A and from Σ A_ab·x_a·x_b."""
    first, second = float(row_sums @ values), float(row_sums @ values**2)
    total = 2 * slope**2 * (second + form) + 4 * slope * constant * first
    return total + constant**2 * float(row_sums.sum())
