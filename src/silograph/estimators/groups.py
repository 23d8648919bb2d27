"""The estimators of questions about public groups of nodes.

Groups are a public partition of the nodes: a country, a branch, a kind of account. Every pair then
has a *type*, the groups of its two ends, and what is asked depends on the numbers of edges of each
type alone; only triangles need more.

Model
    Edges between two groups: Σ a(y) over the pairs of their type. Degrees of a group: twice the
    edges inside, and once those to other groups. Triangles inside a group: those of the release on
    its nodes alone; between groups: all others. Assortativity and modularity are ratios of two
    quadratic forms in the numbers of edges; each form is estimated by its multilinear extension,
    Σ h·a(y_e)·a(y_f) over pairs of pairs, where a pair with itself counts once (x² = x).
Bias
    None, exactly, but for the two ratios, which are consistent.
Variance
    Linear ones: v1 per edge, v0 per non-edge, times the square of the weight. Quadratic forms:
    Σ v(e)·∂(e)² + Σ_{e<f} h²·v(e)·v(f), where ∂(e) is what the form gains by the edge e. The first
    sum is estimated by Σ v̂·∂̂², which counts the second one twice more than it should, so the
    second one, which has an unbiased estimate, is subtracted.
Interval
    Few pairs have a law far from normal, so the intervals of edges are those of exact tests
    (:mod:`silograph.estimators.inversion`) where the noise is small. Ratios have Fieller's, cut to
    what is possible.
Cost
    One pass over the noisy edges; triangles between groups: popcounts at all pairs, or at a sample
    of rows on large graphs.
References
    M. E. J. Newman, Mixing patterns in networks, Phys. Rev. E 67 (2003); M. E. J. Newman and M.
    Girvan, Finding and evaluating community structure in networks, Phys. Rev. E 69 (2004).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from silograph.dp.channel import Channel, Weights
from silograph.errors import ArgumentError, UniverseError
from silograph.estimators.estimate import FloatArray, Places
from silograph.estimators.few_wrong import (
    WrongBits,
    between_jumps,
    triangle_jumps,
    wrong_bits,
)
from silograph.estimators.inversion import count_limits
from silograph.estimators.pair_sums import GraphSums
from silograph.estimators.ratio import RatioAnswer
from silograph.estimators.triangles import (
    counts_of,
    perfect,
    triangles_stderr,
    triangles_value,
    triple_part,
    wedge_part,
)
from silograph.graph.bits import BitRows
from silograph.graph.universe import NodeUniverse

__all__ = [
    "ASSORTATIVITY",
    "MODULARITY",
    "Form",
    "GroupCounts",
    "Groups",
    "Ratio",
    "triangles_by_group",
]

#: The most groups: a mixing matrix has half their square of numbers.
MOST_GROUPS = 1000
#: On large graphs, the rows from which the standard error of triangles between groups is computed.
_SAMPLED_ROWS = 1024


# --- Groups of nodes ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Groups:
    """A public partition of the nodes: the names of the groups, and the place of each node's."""

    names: tuple[str, ...]
    labels: NDArray[np.uint32]

    @classmethod
    def of(
        cls,
        given: Mapping[Any, Any],
        universe: NodeUniverse,
        rest: str | None = None,
    ) -> "Groups":
        """The groups of a table from node id to group.

        Every node needs a group, unless ``rest`` names one for all that the table leaves out.

        >>> found = Groups.of({"a": "x", "b": "y", "c": "x"}, NodeUniverse(list("abc")))
        >>> found.names, found.labels.tolist()
        (('x', 'y'), [0, 1, 0])
        """
        if not isinstance(given, Mapping):
            raise ArgumentError("groups must be a dict from node id to group")
        chosen: list[str | None] = [rest] * len(universe)
        for id_, group in given.items():
            chosen[universe.index(id_)] = str(group)
        without = [place for place, group in enumerate(chosen) if group is None]
        if without:
            some = ", ".join(map(universe.id, without[:3])) + (", …" if len(without) > 3 else "")
            raise UniverseError(
                f"{len(without):,} of {len(chosen):,} nodes have no group ({some}); name one for "
                "the rest"
            )
        names = sorted({group for group in chosen if group is not None}, key=_order)
        if len(names) > MOST_GROUPS:
            raise ArgumentError(f"{len(names):,} groups; at most {MOST_GROUPS:,} are possible")
        place = {name: i for i, name in enumerate(names)}
        labels = [place[group] for group in chosen if group is not None]
        return cls(tuple(names), np.array(labels, dtype=np.uint32))

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The number of nodes of each group."""
        return np.bincount(self.labels, minlength=len(self.names))

    @cached_property
    def types(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The groups of both ends of each type of pairs."""
        return np.triu_indices(len(self.names))

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """The number of pairs of each type."""
        rows, columns = self.types
        product = self.sizes[rows] * self.sizes[columns]
        found: NDArray[np.int64] = np.where(
            rows == columns, (product - self.sizes[rows]) // 2, product
        )
        return found

    def matrix(self, found: FloatArray) -> FloatArray:
        """Numbers of each type as a symmetric matrix."""
        whole = np.zeros((len(self.names), len(self.names)))
        whole[self.types] = whole[self.types[::-1]] = found
        return whole

    @property
    def places(self) -> Places:
        """What the entries of such a matrix stand for."""
        rows, columns = self.types
        named = {
            "group": [self.names[g] for g in rows],
            "with": [self.names[h] for h in columns],
            "pairs": self.pairs.tolist(),
        }
        return Places("pair of groups", named, self.types)

    def members(self, place: int) -> NDArray[np.uint32]:
        """The nodes of one group."""
        return np.flatnonzero(self.labels == place).astype(np.uint32)


def _order(name: str) -> tuple[bool, int, str]:
    """Whole numbers by value, before everything else."""
    whole = name.isascii() and name.isdecimal()
    return not whole, int(name) if whole else 0, name


# --- Edges by type --------------------------------------------------------------------------------


class Form(NamedTuple):
    """The quadratic form p·M·W + q·M² − r·Σ_g d_g²/4 of all edges M, those inside groups W, and the
    sums d_g of degrees."""

    p: int
    q: int
    r: int

    def plus(self, times: float, other: "Form") -> tuple[float, float, float]:
        """This form and so many of another."""
        p, q, r = (a + times * b for a, b in zip(self, other, strict=True))
        return p, q, r


class Ratio(NamedTuple):
    """A ratio of two forms, and the least and the largest value that it can have."""

    top: Form
    bottom: Form
    least: float
    most: float


#: W/M − Σ (d_g/2M)², and the same over what it would be if all edges were inside groups.
MODULARITY = Ratio(Form(1, 0, 1), Form(0, 1, 0), -0.5, 1.0)
ASSORTATIVITY = Ratio(Form(1, 0, 1), Form(0, 1, 1), -1.0, 1.0)


class GroupCounts:
    """The pairs of each type g ≤ h, and the noisy ones among them.

    >>> path = BitRows.from_pairs(3, np.array([[0, 1], [1, 2]], dtype=np.uint32))
    >>> groups = Groups(("x", "y"), np.array([0, 0, 1], dtype=np.uint32))
    >>> found = GroupCounts(path, groups)
    >>> found.pairs.tolist(), found.ones.tolist()
    ([1, 2, 0], [1, 1, 0])
    """

    def __init__(self, graph: BitRows, groups: Groups) -> None:
        self.groups = groups
        self.count = count = len(groups.names)
        self.rows, self.columns = groups.types
        self.inside = self.rows == self.columns
        self.pairs = groups.pairs
        ends = np.zeros((count, count), dtype=np.int64)
        if count:
            by_node = graph.group_degrees(groups.labels, count)
            order = np.argsort(groups.labels, kind="stable")
            starts = np.searchsorted(groups.labels[order], np.arange(count))
            ends = np.add.reduceat(by_node[order], starts, axis=0, dtype=np.int64)
        self.ones = np.where(
            self.inside, ends.diagonal()[self.rows] // 2, ends[self.rows, self.columns]
        )

    # -- edges ---------------------------------------------------------------------------------

    def edges(self, w: Weights) -> FloatArray:
        """Unbiased numbers of edges, by type."""
        return float(w.gamma) * self.ones + float(w.beta) * self.pairs

    def noise(self, w: Weights, edges: FloatArray) -> FloatArray:
        """The variances of :meth:`edges`, from true or estimated numbers of edges."""
        return float(w.v0) * self.pairs + float(w.delta) * edges

    def edge_stderrs(self, w: Weights) -> FloatArray:
        """The standard errors, using the estimated numbers of edges in the variances."""
        likely = np.clip(self.edges(w), 0, self.pairs)
        return np.sqrt(self.noise(w, likely))

    def edge_limits(self, channel: Channel, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """The limits of the numbers of edges of each type."""
        return count_limits(self.ones, self.pairs, channel, level)

    # -- sums of degrees -----------------------------------------------------------------------

    def by_group(self, found: FloatArray) -> FloatArray:
        """For each group, the sum over all types of a number times the ends that it has there."""
        total: FloatArray = sum(
            (
                np.bincount(at, found, self.count).astype(np.float64)
                for at in (self.rows, self.columns)
            ),
            np.zeros(self.count),
        )
        return total

    def _by_squares(self, found: FloatArray) -> FloatArray:
        """The same with the squares of the numbers of ends: pairs inside a group have two there."""
        return self.by_group(np.where(self.inside, 2.0, 1.0) * found)

    def degree_sums(self, w: Weights) -> tuple[FloatArray, FloatArray]:
        """The sum of the degrees of each group's nodes, and the standard errors."""
        variance = self._by_squares(self.edge_stderrs(w) ** 2)
        return self.by_group(self.edges(w)), np.sqrt(variance)

    def degree_limits(self, channel: Channel, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """The limits of the sums of degrees, from those of edges, whose errors are independent.

        The distances to the limits are added as errors are. Limits of edges are cut to what is
        possible, so a distance counts as at least the normal one.
        """
        w = channel.weights
        edges, (low, high) = self.edges(w), self.edge_limits(channel, level)
        normal = NormalDist().inv_cdf((1 + level) / 2) * self.edge_stderrs(w)
        below, above = np.maximum(edges - low, normal), np.maximum(high - edges, normal)
        total = self.by_group(edges)
        return (
            total - np.sqrt(self._by_squares(below**2)),
            total + np.sqrt(self._by_squares(above**2)),
        )

    # -- quadratic forms -----------------------------------------------------------------------

    def form_value(self, form: tuple[float, float, float], w: Weights) -> float:
        """The unbiased estimate of a quadratic form."""
        p, q, r = form
        edges, own = self.edges(w), self._own(form)
        whole, inside = edges.sum(), edges[self.inside].sum()
        sums = self.by_group(edges)
        squares = float(w.alpha) ** 2 * self.ones + float(w.beta) ** 2 * (self.pairs - self.ones)
        total = p * whole * inside + q * whole**2 - r * (sums @ sums) / 4
        return float(total + own @ (edges - squares) / 2)

    def form_noise(self, form: tuple[float, float, float], w: Weights) -> float:
        """The variance of :meth:`form_value` over the noise, where this is the true graph."""
        first, second = self._parts(form, perfect(w))
        return first + second

    def form_variance(self, form: tuple[float, float, float], w: Weights) -> float:
        """The unbiased estimate of :meth:`form_noise` from the noisy graph."""
        first, second = self._parts(form, w)
        return first - second

    def form_floor(self, form: tuple[float, float, float], w: Weights) -> float:
        """The variance of :meth:`form_value` on a graph without edges."""
        own = self._own(form)
        v0, pairs = float(w.v0), self.pairs.astype(np.float64)
        first = v0 * (pairs @ (own / 2) ** 2)
        return float(first + self._twofold(form, v0 * pairs, v0**2 * pairs))

    def ratio(self, ratio: Ratio, w: Weights) -> RatioAnswer:
        """Estimates of both forms of a ratio, with their variances and covariance."""
        # The variance of top − R·bottom is a square in R, so three ratios give all its parts.
        at = [self.form_variance(ratio.top.plus(-times, ratio.bottom), w) for times in (-1, 0, 1)]
        top = max(at[1], self.form_floor(ratio.top, w))
        bottom = max((at[0] + at[2]) / 2 - at[1], self.form_floor(ratio.bottom, w))
        limit = math.sqrt(top * bottom)
        return RatioAnswer(
            self.form_value(ratio.top, w),
            self.form_value(ratio.bottom, w),
            top,
            bottom,
            min(max((at[0] - at[2]) / 4, -limit), limit),
        )

    def _own(self, form: tuple[float, float, float]) -> FloatArray:
        """The second derivative of a form by two pairs of the same type."""
        p, q, r = form
        # A type has two ends in one group, or one in each of two: the squares add up to 4 or 2.
        found: FloatArray = 2 * p * self.inside + 2 * q - r * np.where(self.inside, 2.0, 1.0)
        return found

    def _parts(self, form: tuple[float, float, float], w: Weights) -> tuple[float, float]:
        """Σ v·∂² over pairs, and Σ h²·v·v over pairs of pairs."""
        p, q, r = form
        edges, own = self.edges(w), self._own(form)
        slopes = p * (edges[self.inside].sum() + self.inside * edges.sum()) + 2 * q * edges.sum()
        sums = self.by_group(edges)
        slopes = slopes - r * (sums[self.rows] + sums[self.columns]) / 2
        zeros, on, off = self.pairs - self.ones, float(w.spread(1)), float(w.spread(0))
        # What the form gains by a pair, counted without the pair itself.
        with_one = slopes + (0.5 - float(w.alpha)) * own
        with_zero = slopes + (0.5 - float(w.beta)) * own
        first = on * (self.ones @ with_one**2) + off * (zeros @ with_zero**2)
        spread, squares = on * self.ones + off * zeros, on**2 * self.ones + off**2 * zeros
        return float(first), self._twofold(form, spread, squares)

    def _twofold(
        self, form: tuple[float, float, float], spread: FloatArray, squares: FloatArray
    ) -> float:
        """Σ h²·v·v over pairs of pairs, from the sums of v and of v² by type."""
        p, q, r = form
        # h = u + u′ − r/2·Σ_g n_g·n′_g with u = p·[inside] + q and the numbers n_g of ends.
        u = p * self.inside + q
        once, ends = float(u @ spread), self.by_group(spread)
        total = 2 * float(u**2 @ spread) * float(spread.sum()) + 2 * once**2
        total -= 2 * r * float(self.by_group(u * spread) @ ends)
        # Σ over all types of n_g·n_h: each type counts at its own two groups, …
        squares_between = 2 * float(spread[~self.inside] @ spread[~self.inside])
        # … and at g = h with the squares of its ends.
        squares_inside = self._by_squares(spread)
        total += r**2 / 4 * (squares_between + float(squares_inside @ squares_inside))
        return (total - float(self._own(form) ** 2 @ squares)) / 2


# --- Triangles inside and between groups ----------------------------------------------------------


def triangles_by_group(
    noisy: GraphSums, channel: Channel, groups: Groups
) -> tuple[FloatArray, FloatArray, list[WrongBits]]:
    """The triangles inside each group, then those between groups; their standard errors; and the
    wrong bits of each."""
    members = [groups.members(place) for place in range(len(groups.names))]
    parts = [GraphSums(noisy.graph.induced(nodes)) for nodes in members]
    inside = [triangles_value(part, channel) for part in parts]
    stderrs = [triangles_stderr(part, channel) for part in parts]
    between = triangles_value(noisy, channel) - sum(inside)
    triples = math.comb(noisy.graph.n, 3) - sum(math.comb(len(nodes), 3) for nodes in members)
    floor = float(channel.weights.v0) ** 3 * triples
    variance = max(between_variance_estimate(noisy, channel, members, parts), floor)
    stderrs.append(math.sqrt(variance) if triples else 0.0)
    jumps = [*(triangle_jumps for _ in parts), between_jumps(members)]
    wrong = [
        wrong_bits(part.graph, channel, stderr, each)
        for part, stderr, each in zip((*parts, noisy), stderrs, jumps, strict=True)
    ]
    return np.array([*map(float, inside), float(between)]), np.array(stderrs), wrong


def between_variance_estimate(
    noisy: GraphSums,
    channel: Channel,
    members: Iterable[NDArray[np.uint32]],
    parts: Iterable[GraphSums],
) -> float:
    """The unbiased estimate of the variance of the number of triangles between groups.

    It is that of all triangles (see :mod:`silograph.estimators.triangles`), where only corners
    outside of their group count as common neighbours of two nodes of one group.
    """
    w, n = channel.weights, noisy.graph.n
    first = 0.0
    second = wedge_part(w, n, *counts_of(noisy, channel))
    third = triple_part(w, n, *counts_of(noisy, channel))
    sample = noisy.rows(_SAMPLED_ROWS)
    weights = np.zeros(n)
    weights[sample.rows] = sample.weights
    for nodes, part in zip(members, parts, strict=True):
        own = counts_of(part, channel)
        second -= wedge_part(w, len(nodes), *own)
        third -= triple_part(w, len(nodes), *own)
        picked = np.flatnonzero(weights[nodes]).astype(np.uint32)
        for start in range(0, len(picked), 256):
            some = picked[start : start + 256]
            rows = nodes[some]
            common = _true_common(noisy.graph, rows, w)
            common[:, nodes] -= _true_common(part.graph, some, w)
            common[np.arange(len(rows)), rows] = 0.0
            spread = np.where(noisy.graph.bits(rows), float(w.spread(1)), float(w.spread(0)))
            first += float(weights[rows] @ (spread * common**2).sum(axis=1)) / 2
    return first - float(second + 2 * third)


def _true_common(graph: BitRows, rows: NDArray[np.uint32], w: Weights) -> FloatArray:
    """Unbiased numbers of the common neighbours of some nodes with every node."""
    beta, gamma = float(w.beta), float(w.gamma)
    degrees = graph.degrees.astype(np.float64)
    ends = degrees[rows][:, None] + degrees - 2.0 * graph.bits(rows)
    common = graph.common_neighbours(rows).astype(np.float64)
    return gamma**2 * common + beta * gamma * ends + beta**2 * (graph.n - 2)
