"""The loads of a folded release: how full its cells are, and what to expect of each of them.

A folded release has H hubs, which are groups of their own, and r_o ordinary groups of nodes. An
edge between two groups occupies one bucket of their cell: one of K for its sign. Several edges may
share a bucket, which then still reads one. This module knows what that does.

Model
    *Series.* z = (y − p01)/g is an unbiased bit of a bucket. Σ_j K/(j·C(K,j))·e_j(z) over K buckets
    is the start of −K·ln(1 − p), the number of edges that K buckets hold if a share p is occupied.
    The first J terms are exactly unbiased for up to J edges in a cell.
    *Loads.* The load of a row is its number of edges into ordinary groups: the series over all 2K
    buckets of each cell, plus the rest of the series at the loads that the rows suggest. There
    noise is shrunk away first, because a power of a noisy load is too large on average.
    *Company.* An edge shares its cell with other edges of its two groups. Their expected number
    decides how much of the edge is seen, and the variance of the cell.
Bias
    What the series leaves out depends on how a row's edges lie in its cells. Between large groups
    they lie in proportion to the other rows' loads, at a node of many neighbours equally. The
    middle of both models is taken, and the distance to either reported as ``doubt``.
Cost
    Loads: one reading of all cells. The model of a tile of cells: one exponential for each cell.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from silograph.dp.channel import Channel
from silograph.errors import ArgumentError
from silograph.estimators.estimate import FloatArray

__all__ = [
    "CellModel",
    "CellShape",
    "Loads",
    "RowSums",
    "Strip",
    "by_ones",
    "factors_of",
    "over_groups",
    "series",
    "spread",
]

#: Rounds in which loads and the rest of the series are brought into agreement.
_ROUNDS = 6
#: The degree of the polynomial that stands for a sum of exponentials over all ordinary groups.
#: With 200 edges in the fullest cell its error is still below 1e-11 of the largest row.
_DEGREE = 64
#: The most that a further edge in a row adds to what the series is said to leave out.
_STEEPEST = 0.5
#: The same of all rows together; more makes no difference in so few rounds.
_STEEPEST_OF_ALL = 0.95
#: The largest share of occupied buckets that weights make up for. A fuller cell says nothing.
_FULLEST = 0.99


# --- The shape of a folded release ----------------------------------------------------------------


@dataclass(frozen=True)
class Strip:
    """Adjacent rows of the matrix of cells: hubs only, or ordinary groups only."""

    at: slice
    ordinary: bool


@dataclass(frozen=True)
class CellShape:
    """The numbers of hubs, of ordinary groups, and of sub-buckets for each sign of a cell."""

    hubs: int
    groups: int
    sub: int

    def __post_init__(self) -> None:
        if self.hubs < 0 or self.groups < 3 or not 1 <= self.sub <= 100:
            raise ArgumentError(
                "a folded release has at least 3 groups and 1 to 100 sub-buckets, not "
                f"{self.groups} groups and {self.sub} sub-buckets with {self.hubs} hubs"
            )

    @property
    def size(self) -> int:
        """The number of rows: hubs first, then ordinary groups."""
        return self.hubs + self.groups

    @property
    def ordinary(self) -> slice:
        return slice(self.hubs, self.size)

    @property
    def order(self) -> int:
        """J, the terms of the series for each sign of a cell."""
        return min(self.sub, 2)

    @property
    def load_order(self) -> int:
        """The terms of the series for all buckets of a cell."""
        return min(2 * self.sub, 3)

    @property
    def apart(self) -> float:
        """The share of pairs of ordinary nodes that fall into different groups."""
        return 1 - 1 / self.groups

    @property
    def in_squares(self) -> float:
        """What an edge between ordinary groups counts in the squares of rows, less their mean.

        Less than one: it is dropped if its ends meet, and else its other end is in another row for
        sure, which is less like chance.
        """
        return 1 - 2 / self.groups

    def strips(self, width: int) -> list[Strip]:
        """All rows, in strips of at most ``width``."""
        ends = [(0, self.hubs, False), (self.hubs, self.size, True)]
        return [
            Strip(slice(start, min(start + width, last)), ordinary)
            for first, last, ordinary in ends
            for start in range(first, last, width)
        ]

    def upper(self, width: int) -> Iterator[tuple[Strip, list[Strip]]]:
        """Each strip, with the strips from it on: the upper half of a symmetric matrix."""
        strips = self.strips(width)
        return ((rows, strips[i:]) for i, rows in enumerate(strips))

    def tiles(self, width: int) -> Iterator[tuple[Strip, Strip]]:
        """The tiles of the upper half, one by one."""
        return ((rows, cols) for rows, others in self.upper(width) for cols in others)


class RowSums:
    """Row sums of a symmetric matrix whose tiles come one by one: over hubs, and over ordinary
    columns."""

    def __init__(self, size: int) -> None:
        self.hubs: FloatArray = np.zeros(size)
        self.ordinary: FloatArray = np.zeros(size)

    def add(self, tile: FloatArray, rows: Strip, cols: Strip) -> None:
        self._over(cols)[rows.at] += tile.sum(axis=1)
        if rows is not cols:
            self._over(rows)[cols.at] += tile.sum(axis=0)

    @property
    def all(self) -> FloatArray:
        return self.hubs + self.ordinary

    def _over(self, columns: Strip) -> FloatArray:
        return self.ordinary if columns.ordinary else self.hubs


# --- The series -----------------------------------------------------------------------------------


def series(buckets: int, order: int) -> dict[int, Fraction]:
    """The factors of e_1, …, e_order in the number of edges that some buckets hold.

    >>> series(2, 2)
    {1: Fraction(1, 1), 2: Fraction(1, 1)}
    """
    return {j: Fraction(buckets, j * comb(buckets, j)) for j in range(1, order + 1)}


@cache
def factors_of(buckets: int, order: int) -> dict[int, float]:
    """The series in floats, made once: a plan asks for it ten thousand times."""
    return {j: float(factor) for j, factor in series(buckets, order).items()}


def by_ones(buckets: int, order: int, channel: Channel) -> list[Fraction]:
    """The estimated number of edges, for each number of buckets that read one.

    Unbiased through the channel, and over the hashes of up to ``order`` edges.
    """
    alpha, beta = channel.alpha, channel.beta

    def symmetric(ones: int, j: int) -> Fraction:
        """e_j of the unbiased bits."""
        zeros = buckets - ones
        terms = (
            comb(ones, i) * comb(zeros, j - i) * alpha**i * beta ** (j - i) for i in range(j + 1)
        )
        return sum(terms, Fraction(0))

    factors = series(buckets, order).items()
    return [
        sum((factor * symmetric(ones, j) for j, factor in factors), Fraction(0))
        for ones in range(buckets + 1)
    ]


def spread(buckets: int, order: int, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """The variance of the series, if the bits are independent with this mean and variance."""
    factors = factors_of(buckets, order)
    total, power = np.zeros_like(mean), np.ones_like(mean)
    for i in range(1, order + 1):
        # i of the bits are at their deviations, the others at their means.
        inner = np.zeros_like(mean)
        for j in range(order, i - 1, -1):
            inner = inner * mean + factors[j] * comb(buckets - i, j - i)
        power = power * variance
        total += comb(buckets, i) * power * inner**2
    return total


def _rest(load: FloatArray, buckets: int, order: int) -> FloatArray:
    """What the first terms of the series leave out at a load."""
    occupied = _occupied(load, buckets)
    terms = np.zeros_like(load)
    for j in range(order, 0, -1):
        terms = (terms + 1 / j) * occupied
    return load - buckets * terms


def _occupied(load: FloatArray, buckets: int) -> FloatArray:
    """The expected share of occupied buckets."""
    share: FloatArray = -np.expm1(-load / buckets)
    return share


# --- Loads ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CellModel:
    """What to expect of the cells of a tile."""

    #: The expected number of other edges in the cell of an edge.
    company: FloatArray
    #: The factor that makes the signed number of edges of a cell unbiased.
    weight: FloatArray
    #: The variance of a weighted cell, and the part of it that the channel causes.
    variance: FloatArray
    noise: FloatArray


class Loads:
    """The loads of all rows, and the models that follow from them.

    Parameters
    ----------
    shape
        The numbers of hubs, groups and sub-buckets.
    channel
        The channel of the buckets.
    seen
        The sums of the series over all buckets of a row's cells.
    """

    def __init__(self, shape: CellShape, channel: Channel, seen: RowSums) -> None:
        self.shape = shape
        self._v0 = float(channel.weights.v0)
        self._delta = float(channel.weights.delta)
        o, groups = shape.ordinary, shape.groups
        # A row's number of cells with ordinary groups.
        width = np.where(np.arange(shape.size) < shape.hubs, groups, groups - 1)

        load = seen.ordinary
        for _ in range(_ROUNDS):
            calm, kept = self._shrunk(load)
            proportional, equal = self._left_out(calm, calm, width)
            load = seen.ordinary + (proportional + equal) / 2
        more = sum(self._left_out(calm, calm + 1, width)) / 2 - (proportional + equal) / 2

        #: Each row's number of edges into ordinary groups; and with noise drawn to the mean.
        self.load: FloatArray = load
        self.calm: FloatArray = calm
        #: What one edge more in a row that is seen adds to its load: noise grows as much.
        self.gain: FloatArray = 1 / (1 - np.minimum(kept * more, _STEEPEST))
        #: The same of one edge more in all rows together, by their loads. What the series leaves
        #: out is convex: loads that noise has raised are no farther from the truth than this says.
        steep = float(more @ calm) / max(float(calm.sum()), 1.0)
        self.gain_of_all = 1 / (1 - min(steep, _STEEPEST_OF_ALL))
        #: How far either model of what the series leaves out is from the middle.
        self.doubt: FloatArray = (proportional - equal) / 2
        #: The number of edges between ordinary groups.
        self.inside = float(load[o].sum()) / 2
        #: Edges to hubs in each ordinary row. What the series leaves out of the hubs' rows goes to
        #: ordinary rows by their loads, as far as these are positive.
        unseen = float((load - seen.ordinary)[: shape.hubs].sum())
        ends = np.maximum(load[o], 0.0)
        share = ends / max(float(ends.sum()), 1.0)
        self.from_hubs: FloatArray = seen.hubs[o] + unseen * share
        #: Twice the number of edges between hubs, by hub.
        self.between_hubs: FloatArray = seen.hubs[: shape.hubs]

        self._company = (load - 1) / width
        self._background = 2 * self.inside / groups**2

    def model(self, rows: Strip, cols: Strip) -> CellModel:
        """What to expect of the cells of a tile."""
        sub, order = self.shape.sub, self.shape.order
        a, b = self._company[rows.at, None], self._company[None, cols.at]
        if not (rows.ordinary or cols.ordinary):
            # One bucket for one pair of nodes: nothing can collide.
            zero = np.zeros(np.broadcast_shapes(a.shape, b.shape))
            noise = _off_diagonal(zero + self._v0, rows, cols)
            return CellModel(zero, zero + 1, noise, noise)
        if rows.ordinary and cols.ordinary:
            company = a + b - self._background
        else:
            # A hub is alone in its row: only the hub's own edges meet in a cell.
            company = np.broadcast_to(
                b if rows.ordinary else a, np.broadcast_shapes(a.shape, b.shape)
            )
        company = _off_diagonal(np.maximum(company, 0.0), rows, cols)
        q = np.minimum(_occupied(company, 2 * sub), _FULLEST)
        weight = 1 / (1 - q**order)
        if rows.ordinary and cols.ordinary:
            weight /= self.shape.apart
        noise = self._channel_noise(q)
        scale = 2 * weight**2
        return CellModel(
            company,
            weight,
            _off_diagonal(scale * spread(sub, order, q, q * (1 - q) + noise), rows, cols),
            _off_diagonal(scale * spread(sub, order, q, noise), rows, cols),
        )

    def fuzz(self, rows: Strip, cols: Strip) -> FloatArray:
        """The variance of the estimated number of edges in each cell of a tile, given that number.

        The number itself varies like a Poisson variable under the model, which is no error.
        """
        if not (rows.ordinary or cols.ordinary):
            return _off_diagonal(np.full(_size(rows, cols), self._v0), rows, cols)
        load, groups = np.maximum(self.load, 0.0), self.shape.groups
        if rows.ordinary and cols.ordinary:
            total = max(float(self.load[self.shape.ordinary].sum()), 1.0)
            cell = load[rows.at, None] * load[None, cols.at] / total
        elif rows.ordinary:  # the neighbours of a hub are hashed evenly, whatever a group holds
            cell = np.broadcast_to(load[None, cols.at] / groups, _size(rows, cols))
        else:
            cell = np.broadcast_to(load[rows.at, None] / groups, _size(rows, cols))
        q = _occupied(cell, 2 * self.shape.sub)
        variance = q * (1 - q) + self._channel_noise(q)
        whole = spread(2 * self.shape.sub, self.shape.load_order, q, variance)
        return _off_diagonal(np.maximum(whole - cell, 0.0), rows, cols)

    def _channel_noise(self, occupied: FloatArray) -> FloatArray:
        """The channel's variance of an unbiased bit, for a share of occupied buckets."""
        return self._v0 + self._delta * occupied

    def _shrunk(self, load: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Loads drawn towards their mean, until their cubes are as large as without noise; and how
        much of its distance from the mean each has kept.

        What the series leaves out grows with the third power of a load. Drawn by the share of their
        spread that is noise, loads would be the best guesses row by row, but their cubes too small.
        """
        shape, calm, kept = self.shape, load.copy(), np.ones_like(load)
        for part in (slice(0, shape.hubs), shape.ordinary):
            if len(calm[part]) < 2:
                continue
            mean = max(float(calm[part].mean()), 0.0)
            q = _occupied(np.array([mean / shape.groups]), 2 * shape.sub)
            cell = spread(2 * shape.sub, shape.load_order, q, self._channel_noise(q))
            noise = shape.groups * float(cell[0])
            beyond = calm[part] - calm[part].mean()
            kept[part] = _kept(mean, beyond, noise)
            calm[part] += (kept[part] - 1) * beyond
        return np.maximum(calm, 0.0), kept

    def _left_out(
        self, calm: FloatArray, rows: FloatArray, width: NDArray[np.int64]
    ) -> tuple[FloatArray, FloatArray]:
        """What the series leaves out of rows with these loads, by both models."""
        shape = self.shape
        equal = width * _rest(rows / width, 2 * shape.sub, shape.load_order)
        return self._proportional(calm, rows), equal

    def _proportional(self, calm: FloatArray, rows: FloatArray) -> FloatArray:
        """What the series leaves out of each row, if its edges lie as the loads of other rows."""
        shape, buckets, order = self.shape, 2 * self.shape.sub, self.shape.load_order
        ends = calm[shape.ordinary]
        ends = ends / max(float(ends.sum()), 1.0)

        rest = over_groups(lambda load: _rest(load, buckets, order), rows, ends)
        rest[shape.ordinary] -= _rest(rows[shape.ordinary] * ends, buckets, order)
        return rest


def over_groups(
    function: Callable[[FloatArray], FloatArray], rows: FloatArray, ends: FloatArray
) -> FloatArray:
    """For each row, the sum over all groups of a function of the loads of its cells.

    A row's cells have its load times ``ends``. The sum is a smooth function of the row's load
    alone, so a few loads tell it for all rows.
    """

    def row(load: FloatArray) -> FloatArray:
        sums: FloatArray = function(load[:, None] * ends[None, :]).sum(axis=1)
        return sums

    most = max(float(rows.max()), 1.0)
    found: FloatArray = Chebyshev.interpolate(row, _DEGREE, domain=[0.0, most])(rows)
    return found


def _kept(mean: float, beyond: FloatArray, noise: float) -> float:
    """The k from 0 to 1 with which Σ (mean + k·beyond)³ has the mean that it has without noise."""
    squares, cubes = float((beyond**2).mean()), float((beyond**3).mean())
    # Noise of this variance adds to the squares, and nothing to the cubes about the mean.
    wanted = 3 * mean * (squares - noise) + cubes
    low, high = 0.0, 1.0
    for _ in range(40):
        k = (low + high) / 2
        low, high = (k, high) if k * k * (3 * mean * squares + k * cubes) < wanted else (low, k)
    return low


def _size(rows: Strip, cols: Strip) -> tuple[int, int]:
    return rows.at.stop - rows.at.start, cols.at.stop - cols.at.start


def _off_diagonal(tile: FloatArray, rows: Strip, cols: Strip) -> FloatArray:
    """The tile, with zeros where a group would meet itself."""
    if rows is cols:
        np.fill_diagonal(tile, 0.0)
    return tile
