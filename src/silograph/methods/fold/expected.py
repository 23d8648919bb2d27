"""The error of a folded release, before anything is spent, and the fold that makes it smallest.

What
    Each of H hubs has a group of its own; ordinary nodes share ``groups`` groups. A cell (a pair of
    groups) has ``sub`` buckets for each sign, but one if both are hubs. The estimate of a cell has
    a variance V of three kinds, for two ordinary groups, a hub and an ordinary group, two hubs: the
    channel's noise, and edges that fell into the same cell. Triangles have the variance

        P/r + Σ V·c² + third:

    P/r, ordinary nodes that fell into one group close a path of length 3 between them (P is the sum
    over pairs of the squared number of such paths, r the number of groups); V·c², the noise of a
    cell that c paths of length 2 close; third, triangles of two or three noises or strays.
Bias
    Edges that collide are lost, and cells are weighted for that by their expected load. What
    remains is bounded in :func:`predicted_error`. A fold is chosen only where the bound is below a
    third of the standard deviation, and loads are below :data:`LARGEST_LOAD`, those of hubs'
    rows, too: they can be full where cells of groups are nearly empty. So can the rows of groups
    that a node of high degree fell into; and where the weights of triangles are mostly noise, the
    few largest decide, and no variance says how wrong they are.
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from silograph.dp.channel import Weights
from silograph.errors import ArgumentError, ChannelError
from silograph.estimators.estimate import FloatArray
from silograph.estimators.fold_reference import FoldShape
from silograph.estimators.folded_loads import factors_of, spread
from silograph.graph.fold import Layout
from silograph.methods.cost import union_cost
from silograph.methods.prediction import Question, union_channel
from silograph.methods.union import settle_union

__all__ = [
    "FOLDED",
    "LARGEST_LOAD",
    "MOST_CHOSEN",
    "FoldChoice",
    "FoldError",
    "choose_fold",
    "error_of",
    "predicted_error",
]

#: The queries whose folded errors are predicted. Of k-stars those with k = 2.
FOLDED = ("edges", "kstars", "triangles", "clustering")
#: The largest mean number of edges in an ordinary cell, and in the cell of an edge, for each
#: sub-bucket.
LARGEST_LOAD = 0.5
#: The largest mean number of edges beside an edge between two groups, for each sub-bucket, if the
#: other edges of its own ends are counted; and the most noise in the logarithm of a weight.
_CROWDED, _LOOSE = 1.0, 0.1
#: Exponents end here: at larger loads of a bucket nothing can be read from it.
_FULL = 20.0
#: The most buckets of a fold that is chosen.
MOST_CHOSEN = 100_000_000
#: A load that changes little, for slopes.
_SMALL = 1e-4
#: The bias may be this share of the standard deviation.
_BIAS_SHARE = 1 / 3

#: What is searched: hubs, sub-buckets, groups (in steps of 12 %), and the share of ε for hubs.
_HUBS = (0, 30, 50, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 7000, 10000, 14000,
         20000)  # fmt: skip
_SUBS = (1, 2, 3, 4)
_LEAST_GROUPS, _STEP = 50, 1.12
_SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)


# --- The variance of one cell ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Cells:
    """Cells with ``sub`` buckets for each sign, on a channel with variances v0 and v1."""

    sub: int
    v0: float
    v1: float

    @property
    def order(self) -> int:
        """How many edges in one sub-bucket the estimate can tell apart."""
        return min(self.sub, 2)

    def full(self, load: FloatArray) -> FloatArray:
        """The share of buckets that are occupied if a cell has so many edges; never all."""
        share: FloatArray = 1 - np.exp(-np.minimum(load / (2 * self.sub), _FULL))
        return share

    def noise(self, q: FloatArray) -> FloatArray:
        return self.v0 + (self.v1 - self.v0) * q

    def variance(self, load: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The variance of a signed cell: from noise alone, and with the edges that it has."""
        q = self.full(load)
        weight = 2 / (1 - q**self.order) ** 2
        noise = self.noise(q)
        alone, all_ = (
            weight * spread(self.sub, self.order, q, w) for w in (noise, q * (1 - q) + noise)
        )
        return alone, all_

    def on_edge(self, load: FloatArray) -> FloatArray:
        """What the variance changes by if one bucket is known to be occupied."""
        q = self.full(load)
        factors = factors_of(self.sub, self.order).items()
        slope = sum(c * math.comb(self.sub - 1, j - 1) * q ** (j - 1) for j, c in factors)
        change: FloatArray = (
            (self.v1 - self.noise(q) - q * (1 - q)) * slope**2 / (1 - q**self.order) ** 2
        )
        return change

    def unsigned(self, load: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The variance of an estimated load: from noise alone, and beyond that of the load."""
        q = self.full(load)
        both, order = 2 * self.sub, min(2 * self.sub, 3)
        noise = self.noise(q)
        alone = spread(both, order, q, noise)
        return alone, np.maximum(spread(both, order, q, q * (1 - q) + noise) - load, 0)

    def steepness(self, load: FloatArray) -> FloatArray:
        """The relative change of a cell's weight with its load."""
        q = self.full(load)
        j = self.order
        rate: FloatArray = j * q ** (j - 1) * (1 - q) / (1 - q**j) / (2 * self.sub)
        return rate


# --- The error of one fold ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FoldError:
    """The predicted error, one value for each number of groups."""

    groups: FloatArray
    sd: FloatArray
    #: An upper bound of the bias, and the mean number of edges in an ordinary cell.
    bias: FloatArray
    load: FloatArray
    #: The mean number of edges in the cell of an edge, whether of groups or of a hub.
    met: FloatArray
    #: The same for an edge between two groups, with the other edges of its own ends.
    beside: FloatArray
    #: What the variance consists of.
    parts: dict[str, FloatArray]


def predicted_error(
    query: str, shape: FoldShape, hubs: FloatArray, groups: FloatArray, sub: int, weights: Weights
) -> FoldError:
    """The error of a query on a folded release of a graph of this shape.

    Parameters
    ----------
    query
        One of :data:`FOLDED`.
    shape
        The shape of the graph.
    hubs
        The share of each band that are hubs; see :meth:`FoldShape.known_hubs`.
    groups
        Numbers of groups for ordinary nodes, from 3 up.
    sub
        The number of sub-buckets for each sign of a cell.
    weights
        The weights of the release's channel.

    Returns
    -------
    FoldError
        The standard deviation, a bound of the bias, and the parts of the variance.
    """
    fold = _Fold(shape, hubs, np.asarray(groups, dtype=float), sub, weights)
    match query:
        case "triangles":
            parts, bias = fold.triangles()
        case "edges":
            parts, bias = fold.edges()
        case "kstars":
            parts, bias = fold.two_stars()
        case "clustering":
            parts, bias = fold.clustering()
        case _:
            raise ArgumentError(f"the error of a folded release is not predicted for {query}")
    sd = np.sqrt(np.sum(list(parts.values()), axis=0))
    return FoldError(fold.r, sd, bias, fold.load, fold.met, fold.beside, parts)


class _Fold:
    """A shape, divided into hubs and ordinary nodes; arrays have an axis for groups in front."""

    def __init__(
        self, shape: FoldShape, hubs: FloatArray, groups: FloatArray, sub: int, weights: Weights
    ) -> None:
        self.shape, self.r = shape, groups
        self.cells = _Cells(sub, float(weights.v0), float(weights.v1))
        self.hub, self.own = hubs, 1 - hubs
        self.many = hubs * shape.sizes
        self.h = float(self.many.sum())
        #: Edges of one node of each band to ordinary nodes.
        self.out = shape.joined @ self.own / shape.sizes
        self.inside = float(self.own @ shape.joined @ self.own) / 2
        self.among = float(self.hub @ shape.joined @ self.hub) / 2
        self.load = 2 * self.inside / groups**2
        self.apart = 1 / (1 - 1 / groups)
        #: The load of a hub's cells, by band.
        self.hub_load = self.out / groups[:, None]
        beside = self.many * self.out
        edges = max(self.inside + float(beside.sum()), 1e-9)
        self.met: FloatArray = (self.inside * self.load + self.hub_load @ beside) / edges
        ends = float(self.own @ shape.joined @ (self.own * self.out))
        self.beside = self.load + ends / max(self.inside, 1e-9) / groups

    def _hub_mean(self, values: FloatArray) -> FloatArray:
        mean: FloatArray = values @ self.many / max(self.h, 1e-9)
        return mean

    def triangles(self) -> tuple[dict[str, FloatArray], FloatArray]:
        shape, cells, own, hub, r, h = self.shape, self.cells, self.own, self.hub, self.r, self.h
        sketch = float(own @ shape.path_squares @ own) / 2 / r
        # The noise of cells that are closed by paths of length 2.
        ends = self.out[:, None] + self.out[None, :]
        loads = ends / r[:, None, None] + self.load[:, None, None]
        apart = self.apart[:, None, None]
        squares = shape.edge_squares + shape.open_squares
        both = np.outer(own, own)
        oo = cells.variance(loads)[1] * squares + cells.on_edge(loads) * shape.edge_squares
        two_rows = self._uneven(2)
        first = (oo * apart**2 * both).sum(axis=(1, 2)) / 2 * two_rows
        noise, all_ = cells.variance(self.hub_load)
        change = cells.on_edge(self.hub_load)
        first += ((all_ * (squares @ own) + change * (shape.edge_squares @ own)) * hub).sum(axis=1)
        v0, v1 = cells.v0, cells.v1
        pairs = v0 * shape.open_squares + v1 * shape.edge_squares
        first += float(hub @ pairs @ hub) / 2
        # Two or three noises, or strays. Two edges that meet at a hub are a path: counted above.
        all_o = cells.variance(self.load)[1] * self.apart**2
        b, y = self._hub_mean(noise), self._hub_mean(all_ - noise)
        # Both cells of one hub are as full as each other.
        bb, by = self._hub_mean(noise**2), self._hub_mean(noise * (all_ - noise))
        z = self.among / max(h * h / 2, 1e-9) * (1 + v1 - v0)
        # Weights are powers of noisy loads. A triangle's weight has the loads of its groups in the
        # exponent, with these multiples of one load's variance, and noise is weighted twice.
        loose = np.exp(2 * self._wobble())
        third = (
            self._uneven(3) * (loose * r * all_o) ** 3 / 6
            + two_rows * loose**1.5 * r**2 * h / 2 * all_o * (bb + 2 * by)
            + loose**0.5 * h * h * r / 2 * ((b + y) ** 2 * v0 + b * b * z)
            + h**3 / 6 * (v0**3 + 3 * v0**2 * z)
        )
        parts = {"sketch": sketch, "noise": first, "third": third}
        return parts, self._triangle_bias()

    def _uneven(self, rows: int) -> FloatArray:
        """The mean product of the variances of all cells between so many ordinary rows, by that of
        rows of mean load.

        A row is as full as the nodes that fell into it, and the variance of a cell grows faster
        than its load. A node is in one of the rows, where it fills a cell with each other row.
        """
        variance, cells = self.cells.variance, rows - 1
        at, mean = self.load[:, None], variance(self.load)[1][:, None]
        slope = (variance(at + _SMALL)[1] / mean - 1) / _SMALL
        factor = np.minimum(variance(at + self.hub_load)[1] / mean, math.exp(_FULL)) ** cells
        chance = rows / self.r[:, None]
        beyond = np.log1p(chance * (factor - 1)) - chance * cells * slope * self.hub_load
        total = (np.maximum(beyond, 0) * self.own * self.shape.sizes).sum(axis=1)
        uneven: FloatArray = np.exp(np.minimum(total, _FULL))
        return uneven

    def _wobble(self) -> FloatArray:
        """The variance of the logarithm of a triangle's weight that one row's noisy load causes."""
        cells = self.cells
        row = cells.unsigned(self.load)[0] / self.r  # the variance of the row's load, over r²
        wobble: FloatArray = np.minimum((2 * cells.steepness(self.load)) ** 2 * row, _FULL)
        return wobble

    def _triangle_bias(self) -> FloatArray:
        """Weights from noisy loads are too large on average; and collisions come in company.

        A node that is joined to both ends of an edge, in the third node's group, collides twice at
        once. Estimates of order 1 allow for one such node by a correction, of which a half or more
        is doubted here; two of them are left, for both orders.
        """
        r, k, wobble = self.r, self.cells.sub, self._wobble()
        lifted = np.where(wobble > _LOOSE, np.inf, np.expm1(1.5 * wobble) * self.shape.triangles)
        steps = np.diff(self.own, prepend=0.0).clip(min=0.0)
        twos, threes = (float((m @ steps).sum()) / 2 for m in (self.shape.twos, self.shape.threes))
        bias: FloatArray = lifted + threes / (r * k) ** 2
        if self.cells.order == 1:
            bias = bias + twos / (2 * r) * np.minimum(0.5 + self.load, 1)
        return bias

    def _loads(self) -> tuple[FloatArray, FloatArray]:
        """The excess variance of an ordinary cell's load, and of a hub's cells by band."""
        return self.cells.unsigned(self.load)[1], self.cells.unsigned(self.hub_load)[1]

    def _tie(self) -> FloatArray:
        """Collisions of edges that share a node are not independent."""
        squares = self.shape.edge_squares + self.shape.open_squares
        tie: FloatArray = (
            float(self.own @ squares @ self.own) / 2 / (self.r * (2 * self.cells.sub - 1) ** 2)
        )
        return tie

    def edges(self) -> tuple[dict[str, FloatArray], FloatArray]:
        r, h = self.r, self.h
        oo, ho = self._loads()
        noise = oo * r * r / 2 + r * (ho @ self.many) + self.cells.v0 * h * h / 2
        parts = {"sketch": self.inside / r + self._tie(), "noise": noise}
        return parts, self._doubt(np.ones_like(self.out))

    def _doubt(self, factors: FloatArray) -> FloatArray:
        """Half the distance between two models of what the series of a cell leaves out.

        One spreads a row's edges evenly over the groups, the other in proportion to their loads. An
        ordinary node is alone with its edges in a group as long as there are few nodes above it.
        """
        shape, k, order = self.shape, self.cells.sub, min(2 * self.cells.sub, 3)

        def rest(load: FloatArray) -> FloatArray:
            q = self.cells.full(load)
            known: FloatArray = 2 * k * np.sum([q**j / j for j in range(1, order + 1)], axis=0)
            return load - known

        ordinary = self.own * shape.sizes
        alone = (np.cumsum(ordinary) <= self.r[:, None] / 2) * ordinary
        total = max(2 * self.inside, 1.0)
        product = rest(self.out[:, None] * self.out[None, :] / total)
        even = self.r[:, None] * rest(self.hub_load)
        uneven = np.einsum("ij,rj->ri", product, alone)
        rows = (alone / 2 + self.many) * factors
        left: FloatArray = (np.abs(uneven - even) * rows).sum(axis=1) / 2
        return left

    def two_stars(self) -> tuple[dict[str, FloatArray], FloatArray]:
        r, shape = self.r, self.shape
        oo, ho = self._loads()
        degrees = np.add.reduceat(shape.degrees, shape.bounds[:-1]) / shape.sizes
        own_squares = float(self.own @ shape.band_squares)
        hub_squares = float(self.hub @ shape.band_squares)
        v0, h = self.cells.v0, self.h
        # A cell enters the square of both its rows. Hashed degrees have mean 0 about their groups'.
        sums = float(self.many @ degrees) ** 2
        linear = (
            own_squares * r * oo
            + r * (ho @ (self.many * degrees**2))
            + own_squares * (ho @ self.many)
            + v0 * (h * hub_squares + sums)
        )
        own_rows, hub_rows = r * oo + ho @ self.many, r[:, None] * ho + v0 * h
        square = (r * own_rows**2 + hub_rows**2 @ self.many) / 2
        parts = {"sketch": own_squares**2 / 2 / r, "noise": linear, "third": square}
        return parts, self._doubt(degrees)

    def clustering(self) -> tuple[dict[str, FloatArray], FloatArray]:
        stars, triangles = self.shape.two_stars, self.shape.triangles
        ratio = 3 * triangles / stars
        above, below = self.triangles(), self.two_stars()
        parts = {name: part * (3 / stars) ** 2 for name, part in above[0].items()}
        parts["two-stars"] = (ratio / stars) ** 2 * np.sum(list(below[0].values()), axis=0)
        return parts, above[1] * 3 / stars + below[1] * ratio / stars


# --- The choice -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FoldChoice:
    """A fold, and what is expected of it."""

    groups: int
    hubs: int
    sub: int
    #: The part of epsilon that the search for hubs costs; 0 if they are known or there are none.
    hub_epsilon: float
    sd: float
    bias: float
    buckets: int
    bytes_per_silo: int


def choose_fold(
    query: str,
    shape: FoldShape,
    epsilon: float,
    silos: int,
    collusion: int,
    protocol: str,
    *,
    hubs_known: bool = False,
    buckets_at_most: int = MOST_CHOSEN,
) -> FoldChoice | None:
    """The fold with the smallest error; None if none has little enough bias.

    Parameters
    ----------
    query
        One of :data:`FOLDED`.
    shape
        The shape of a graph like the one to be measured.
    epsilon
        The privacy budget, for hubs and release together.
    silos
        The number of silos.
    collusion
        The number of silos that may pool what they see with the coordinator.
    protocol
        The protocol of the union: ``"masked"`` or ``"committee"``.
    hubs_known
        Whether a public list names the nodes of highest degree. Otherwise a part of epsilon is
        spent on noisy degrees.
    buckets_at_most
        The largest number of buckets.

    Returns
    -------
    FoldChoice or None
        The choice.
    """
    most = min(shape.nodes, math.isqrt(buckets_at_most) + 1)
    steps = int(math.log(max(most / _LEAST_GROUPS, 1)) / math.log(_STEP)) + 1
    grid = np.unique((_LEAST_GROUPS * _STEP ** np.arange(steps)).round())

    def tried(hubs: int, share: float, sub: int) -> FoldChoice | None:
        spent, found_hubs = _found(shape, epsilon, silos, hubs, 0.0 if hubs_known else share)
        try:
            channel = union_channel(protocol, epsilon - spent, silos, collusion)
        except ChannelError:  # what is left of epsilon is too little
            return None
        buckets = grid * (grid - 1) * sub + 2 * sub * hubs * grid + hubs * (hubs - 1) / 2
        fits = grid[buckets <= buckets_at_most]
        if not len(fits):
            return None
        found = predicted_error(query, shape, found_hubs, fits, sub, channel.weights)
        sd = np.where(
            (found.bias < found.sd * _BIAS_SHARE)
            & (np.maximum(found.load, found.met) <= LARGEST_LOAD * sub)
            & (found.beside <= _CROWDED * sub),
            found.sd,
            np.inf,
        )
        at = int(np.argmin(sd))
        if not math.isfinite(sd[at]):
            return None
        size = Layout(int(fits[at]), hubs, sub).buckets
        error, bias = float(sd[at]), float(found.bias[at])
        return FoldChoice(int(fits[at]), hubs, sub, spent, error, bias, size, 0)

    def best(choices: Iterable[tuple[int, float, int]]) -> FoldChoice | None:
        made = [choice for each in choices if (choice := tried(*each)) is not None]
        return min(made, key=lambda choice: choice.sd, default=None)

    # First how many hubs, at a middling price; then the price and the number of sub-buckets.
    counts = [hubs for hubs in _HUBS if hubs <= shape.nodes // 2]
    chosen = best(itertools.product(counts, _SHARES[3:4], _SUBS[:2]))
    if chosen is None:
        chosen = best(itertools.product(counts, _SHARES[1::2], _SUBS))
    else:
        at = counts.index(chosen.hubs)
        shares = _SHARES[:1] if hubs_known else _SHARES
        chosen = best(itertools.product(counts[max(at - 1, 0) : at + 2], shares, _SUBS))
    if chosen is None:
        return None
    union = settle_union(protocol, epsilon - chosen.hub_epsilon, silos, collusion)
    layout = Layout(chosen.groups, chosen.hubs, chosen.sub)
    return replace(chosen, bytes_per_silo=union_cost(union, shape.nodes, layout).sent)


def _found(
    shape: FoldShape, epsilon: float, silos: int, hubs: int, share: float
) -> tuple[float, FloatArray]:
    """What finding so many hubs costs, and which share of each band is found; 0 if known."""
    if not hubs or not share:
        return 0.0, shape.known_hubs(hubs)
    # An edge has two ends and up to as many holders as there are silos.
    return share * epsilon, shape.found_hubs(hubs, 2 * silos / (share * epsilon))


def error_of(question: Question, shape: FoldShape, chosen: FoldChoice, protocol: str) -> float:
    """The standard deviation of a chosen fold on a graph of another shape."""
    share = chosen.hub_epsilon / question.epsilon
    spent, hubs = _found(shape, question.epsilon, question.silos, chosen.hubs, share)
    channel = union_channel(protocol, question.epsilon - spent, question.silos, question.collusion)
    groups = np.array([float(chosen.groups)])
    found = predicted_error(question.query, shape, hubs, groups, chosen.sub, channel.weights)
    return float(found.sd[0])
