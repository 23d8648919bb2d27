"""The estimator of the correlation of degrees at the two ends of an edge.

Model
    With M edges, S1 = Σ d², S3 = Σ d³ and P = Σ d_u·d_v over the edges, the correlation is
    (M·P − S1²/4)/(M·S3/2 − S1²/4). The four sums have unbiased estimates: they are sums over stars,
    and over edges together with one more edge at each end. What a product of two of them is too
    large by is their covariance; all that is needed here have unbiased estimates, too.
Bias
    None of the two parts; of the ratio, consistent, not unbiased.
Variance
    That of the linear part: Σ v̂·∂̂², where ∂̂ is what the part gains by a pair. It counts noise that
    meets noise two or three times, so it errs on the wide side where there is little but noise.
Interval
    Fieller's, cut to [−1, 1].
Cost
    A few passes over the noisy edges.
Reference
    M. E. J. Newman, Assortative mixing in networks, Phys. Rev. Lett. 89 (2002).
"""

from dataclasses import dataclass

import numpy as np

from silograph.dp.channel import Channel
from silograph.estimators.degrees import degree_values, edges_value
from silograph.estimators.estimate import FloatArray
from silograph.estimators.local_clustering import node_wedge_values
from silograph.estimators.pair_sums import GraphSums
from silograph.estimators.ratio import RatioAnswer
from silograph.estimators.stars import (
    kstars_edges_covariance,
    kstars_value,
    kstars_variance_estimate,
)

__all__ = ["degree_correlation"]


@dataclass(frozen=True)
class _Slope:
    """A sum of edges, 2-stars, 3-stars and joined pairs of stars, with a weight for each."""

    edges: float = 0.0
    two_stars: float = 0.0
    three_stars: float = 0.0
    joined: float = 0.0

    def less(self, times: float, other: "_Slope") -> "_Slope":
        mine, theirs = vars(self), vars(other)
        return _Slope(**{name: mine[name] - times * theirs[name] for name in mine})


def degree_correlation(noisy: GraphSums, channel: Channel) -> RatioAnswer:
    """Both parts of the correlation, with their variances and covariance."""
    graph, pairs = noisy.graph, _Pairs(noisy, channel)
    edges = float(edges_value(graph, channel))
    twos, threes = (float(kstars_value(graph, channel, k)) if k < graph.n else 0.0 for k in (2, 3))
    joined = pairs.joined()
    # Σ d² = 2·S2 + 2·M, Σ d³ = 6·S3 + 6·S2 + 2·M, Σ d_u·d_v = joined + 2·S2 + M.
    squares, cubes, products = (
        2 * twos + 2 * edges,
        6 * threes + 6 * twos + 2 * edges,
        joined + 2 * twos + edges,
    )
    of_squares = _Slope(2, 2)
    of_cubes = _Slope(2, 6, 6)
    of_products = _Slope(1, 2, 0, 1)
    first = float(kstars_variance_estimate(graph, channel, 2)) if graph.n > 2 else 0.0
    both = float(kstars_edges_covariance(graph, channel, 2)) if graph.n > 2 else 0.0
    excess = 4 * first + 8 * both + 4 * pairs.total(_Slope(1), _Slope(1))
    middle = (squares**2 - excess) / 4
    top = edges * products - pairs.total(_Slope(1), of_products) - middle
    bottom = (edges * cubes - pairs.total(_Slope(1), of_cubes)) / 2 - middle
    # How both parts move with each of the sums.
    rise = _Slope(products).less(-edges, of_products).less(squares / 2, of_squares)
    run = _Slope(cubes / 2).less(-edges / 2, of_cubes).less(squares / 2, of_squares)
    parts = ((rise, rise), (run, run), (rise, run))
    return RatioAnswer(top, bottom, *(pairs.total(*each, positive=True) for each in parts))


class _Pairs:
    """Sums over pairs of what depends on the pair's noisy bit and on its two ends."""

    def __init__(self, noisy: GraphSums, channel: Channel) -> None:
        graph, self.w, n = noisy.graph, channel.weights, noisy.graph.n
        alpha, beta, gamma = (float(x) for x in (self.w.alpha, self.w.beta, self.w.gamma))
        ones, degrees = graph.degrees.astype(np.float64), degree_values(graph, channel)
        twos = node_wedge_values(noisy, channel)
        # Σ_w a(uw)·d̂(w) without the pair uw itself: the edges that are one step from u.
        shown = gamma * graph.neighbour_degrees + beta * (n - 1) * ones
        steps = gamma * shown + beta * (degrees.sum() - degrees)
        steps = steps - alpha**2 * ones - beta**2 * (n - 1 - ones)
        sums = graph.neighbour_sums(np.column_stack([degrees, twos, steps, degrees**2]))
        near = (ones, *sums.T)
        #: For a noisy zero and a noisy one: what is at a node without the pair (1, degree, 2-stars,
        #: steps, squared degree), and the sums of the same over its neighbours.
        self.sides = []
        for a in (beta, alpha):
            at = (np.ones(n), degrees, twos, steps, degrees**2)
            self.sides.append((_without(at, a), _without(near, a)))

    def joined(self) -> float:
        """The unbiased number of edges with one more edge at each end, Σ (d_u − 1)·(d_v − 1)."""
        weights = float(self.w.beta), float(self.w.alpha)
        return sum(
            weight * self._inner(y, at[1], at[1], near[1])
            for y, (weight, (at, near)) in enumerate(zip(weights, self.sides, strict=True))
        )

    def total(self, one: _Slope, other: _Slope, *, positive: bool = False) -> float:
        """Σ v̂·∂̂·∂̂′ over pairs. The unbiased v̂ of a pair can be negative, and is 0 then if
        ``positive`` says so."""
        found = 0.0
        for y, (at, near) in enumerate(self.sides):
            (left, _), (right, right_near) = (
                (_side(each, at), _side(each, near)) for each in (one, other)
            )
            b, c, degrees = one.joined, other.joined, at[1]
            # (A_u + A_v + b·d_u·d_v)·(A′_u + A′_v + c·d_u·d_v), as products of one side each.
            total = 2 * self._inner(y, left * right, at[0], near[0])
            total += 2 * self._inner(y, left, right, right_near)
            total += 2 * self._inner(y, (c * left + b * right) * degrees, degrees, near[1])
            total += b * c * self._inner(y, at[4], at[4], near[4])
            spread = float(self.w.spread(y))
            found += (max(spread, 0.0) if positive else spread) * total
        return found

    @staticmethod
    def _inner(y: int, f: FloatArray, g: FloatArray, near: FloatArray) -> float:
        """Σ (f(u)·g(v) + f(v)·g(u))/2 over the pairs with this noisy bit, from the sums of g over
        the neighbours of each node."""
        ones = float(f @ near) / 2
        return ones if y else float(f.sum() * g.sum() - f @ g) / 2 - ones


def _without(at: tuple[FloatArray, ...], a: float) -> tuple[FloatArray, ...]:
    """One, degree, 2-stars, steps and squared degree without a pair of weight a."""
    one, degrees, twos, steps, squares = at
    less = degrees - a * one
    return one, less, twos - a * less, steps - a * less, squares - 2 * a * degrees + a**2 * one


def _side(slope: _Slope, at: tuple[FloatArray, ...]) -> FloatArray:
    """What one end adds to the gain by a pair."""
    one, degrees, twos, steps, _ = at
    found: FloatArray = slope.edges / 2 * one + slope.two_stars * degrees
    return found + slope.three_stars * twos + slope.joined * steps
