"""Central mechanisms for counting triangles and 2-stars under edge differential privacy.

A curator whom everybody trusts holds the whole graph, so that the noise may depend on it. These
mechanisms are the strongest competitors of ``sealed``, which knows no more of the graph than noisy
degrees. Every error below is a formula of the graph, and nothing is drawn for it. Those that the
reproduction shows can also be drawn, in the clear. Where a mechanism divides its budget, the
division that is best for this very graph is taken. (A real curator has to guess it, so that the
errors are slightly too small, in the competitors' favour.) **For experiments only.**

Notation
    One edge uv changes the triangles by c_uv, the number of common neighbours of u and v, and the
    2-stars by d_u + d_v, both counted without uv. The *local sensitivity* LS is the largest such
    change over all pairs. LS(t), the local sensitivity at distance t, is the largest LS of any
    graph that differs in at most t edges. ``Reach`` holds LS(0), LS(1), ….
Triangles [1, 2]
    LS(t) = max over pairs of min(c_uv + ⌊(t + min(t, b_uv))/2⌋, n−2). b_uv is the number of nodes
    adjacent to exactly one of u and v: a new edge turns each into a common neighbour, and any
    further common neighbour needs two edges. Only pairs that no other pair exceeds in both c and b
    matter (``front``).
2-stars [2]
    LS(t) = min(t + max over pairs of (d_u + d_v without uv), 2(n−2)): an edge other than uv changes
    one of the two degrees, or none.
Smooth bound [1]
    S(β) = max over t of e^(−βt)·LS(t). It is at least LS, and S(G) ≤ e^β·S(G′) for neighbours.

References
    [1] Nissim, Raskhodnikova, Smith: Smooth Sensitivity and Sampling in Private Data Analysis, STOC
        2007.
    [2] Karwa, Raskhodnikova, Smith, Yaroslavtsev: Private Analysis of Graph Structure, VLDB 2011.
    [3] Zhang, Cormode, Procopiuc, Srivastava, Xiao: Private Release of Graph Statistics using
        Ladder Functions, SIGMOD 2015.
    [4] Bun, Steinke: Average-Case Averages: Private Algorithms for Smooth Sensitivity and Mean
        Estimation, NeurIPS 2019.
    [5] Hladík, Tětek: Smooth Sensitivity Revisited: Towards Optimality, FORC 2025.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from silograph.errors import ExperimentError

__all__ = [
    "MECHANISMS",
    "Mechanism",
    "Reach",
    "best",
    "floor",
    "front",
    "ladder_rungs",
    "mechanism",
    "triangles_reach",
    "two_stars_reach",
]

#: The most entries of the squared matrix at a time: some 500 MB with all that is made of them.
_BLOCK = 8_000_000
#: Added to the number of common neighbours of a pair that is an edge; more than any such number.
_EDGE = 1 << 40


# --- The local sensitivity at every distance ------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Reach:
    """LS(0), LS(1), …; the last value holds for all larger distances, and for all graphs.

    >>> reach = Reach(np.array([1, 2, 3]))
    >>> reach.local, reach.most, round(reach.smooth(0.1), 3)
    (1, 3, 2.456)
    """

    values: NDArray[np.int64]

    @property
    def local(self) -> int:
        """The local sensitivity LS."""
        return int(self.values[0])

    @property
    def most(self) -> int:
        """The global sensitivity."""
        return int(self.values[-1])

    def smooth(self, beta: float) -> float:
        """The smooth bound S(β)."""
        return float((self.values * np.exp(-beta * np.arange(len(self.values)))).max())

    @cached_property
    def smooth_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values of β from 10^−5 to 2, each 2 % above the last, and S of each."""
        betas = np.geomspace(1e-5, 2, 617)
        return betas, np.array([self.smooth(beta) for beta in betas.tolist()])


def triangles_reach(nodes: int, pairs: NDArray[np.integer[Any]]) -> Reach:
    """How the local sensitivity of triangles grows with the distance.

    >>> triangles_reach(5, np.array([[0, 1], [0, 2], [1, 3], [2, 3]])).values.tolist()
    [2, 2, 3]
    """
    steps = np.arange(2 * nodes)
    values = np.zeros(len(steps), dtype=np.int64)
    for common, one in front(nodes, pairs).tolist():
        np.maximum(values, common + (steps + np.minimum(steps, one)) // 2, out=values)
    return _capped(values, nodes - 2)


def two_stars_reach(nodes: int, pairs: NDArray[np.integer[Any]]) -> Reach:
    """How the local sensitivity of 2-stars grows with the distance.

    >>> two_stars_reach(4, np.array([[0, 1], [0, 2], [1, 3]])).values.tolist()
    [3, 4]
    """
    matrix = _matrix(nodes, pairs)
    degrees = np.diff(matrix.indptr).astype(np.int64)
    # A pair of neighbours loses two, so that a pair with a smaller end than this cannot be best.
    tops = np.flatnonzero(degrees >= np.sort(degrees)[-2] - 2)
    joined = matrix[tops][:, tops].toarray()
    sums = degrees[tops][:, None] + degrees[tops][None, :] - 2 * joined
    np.fill_diagonal(sums, 0)
    return _capped(int(sums.max()) + np.arange(2 * nodes), 2 * (nodes - 2))


def front(nodes: int, pairs: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Rows (c, b) of all pairs of nodes that no other pair exceeds in both: b grows as c falls.

    The squared matrix is computed exactly, some rows at a time, those of large degrees first.

    >>> front(4, np.array([[0, 1], [1, 2], [2, 3]])).tolist()
    [[1, 1], [0, 2]]
    """
    matrix = _matrix(nodes, pairs)
    degrees = np.diff(matrix.indptr).astype(np.int64)
    order = np.argsort(-degrees, kind="stable")
    #: The largest b of each c.
    largest = np.full(nodes, -1, dtype=np.int64)
    for rows in _blocks(order, np.minimum(matrix @ degrees, nodes)):
        block = (matrix[rows] @ matrix + _EDGE * matrix[rows]).tocsr()
        for place, u in enumerate(rows.tolist()):
            # Of the nodes that are neither u's neighbours nor theirs, the one of largest degree. A
            # pair of u and a node further down the order has at most 2·d_u.
            if 2 * degrees[u] <= largest[0]:
                break
            apart = np.ones(nodes, dtype=np.bool_)
            apart[block.indices[block.indptr[place] : block.indptr[place + 1]]] = False
            apart[u] = False
            found = order[apart[order]][:1]
            largest[0] = max(largest[0], *(degrees[u] + degrees[found]).tolist(), -1)
        u = np.repeat(rows, np.diff(block.indptr))
        others = u != block.indices
        joined, common = np.divmod(block.data[others], _EDGE)
        u, v = u[others], block.indices[others]
        np.maximum.at(largest, common, degrees[u] + degrees[v] - 2 * common - 2 * joined)
    # From the largest c down, a pair stays if its b exceeds all b before it.
    fallen = largest[::-1]
    before = np.maximum.accumulate(np.concatenate(([-1], fallen[:-1])))
    places = np.flatnonzero(fallen > before)
    return np.stack((nodes - 1 - places, fallen[places]), axis=1)


def _matrix(nodes: int, pairs: NDArray[np.integer[Any]]) -> scipy.sparse.csr_array:
    u, v = pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
    ends = np.concatenate((u, v)), np.concatenate((v, u))
    ones = np.ones(2 * len(pairs), dtype=np.int64)
    return scipy.sparse.coo_array((ones, ends), shape=(nodes, nodes)).tocsr()


def _blocks(order: NDArray[np.int64], sizes: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Cut an order of rows so that the sizes of each part sum to little more than a block."""
    parts = np.cumsum(sizes[order]) // _BLOCK
    yield from np.split(order, np.flatnonzero(np.diff(parts)) + 1)


def _capped(values: NDArray[np.int64], most: int) -> Reach:
    """Values up to the first that is the largest possible one."""
    return Reach(np.minimum(values[: int(np.argmax(values >= most)) + 1], most))


# --- Mechanisms: each a root of a mean squared error ----------------------------------------------

#: From LS(·), ε and δ to the root of the mean squared error.
Error = Callable[[Reach, float, float], float]
#: From LS(·), ε, δ, a number and a source of randomness to so many errors.
Draw = Callable[[Reach, float, float, int, np.random.Generator], NDArray[np.float64]]


def laplace(reach: Reach, epsilon: float, _delta: float) -> float:
    """Laplace noise by the global sensitivity, which every graph has: no curator is needed."""
    return math.sqrt(2) * reach.most / epsilon


def noisy_bound(reach: Reach, epsilon: float, delta: float) -> float:
    """A noisy upper bound of LS first, then Laplace noise by it.

    One edge changes LS by at most 1. B = LS + z + s costs ε1, z a discrete Laplace variable of
    scale 1/ε1 and s the least integer with P(z < −s) ≤ δ. The count with noise of scale B/ε2 costs
    ε2 unless B is below the change of the count, hence below LS: (ε1+ε2, δ)-DP. B is kept within 1
    and the global sensitivity. The mean squared error is 2·E[B²]/ε2².
    """
    return math.sqrt(_bound_budget(reach, epsilon, delta)[1])


def draw_noisy_bound(
    reach: Reach, epsilon: float, delta: float, count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """So many errors of :func:`noisy_bound`."""
    first, _ = _bound_budget(reach, epsilon, delta)
    # The difference of two geometric variables is a discrete Laplace variable.
    z = rng.geometric(-math.expm1(-first), count) - rng.geometric(-math.expm1(-first), count)
    bounds = np.clip(reach.local + _margin(first, delta) + z, 1, reach.most)
    found: NDArray[np.float64] = rng.laplace(0.0, bounds / (epsilon - first))
    return found


@lru_cache(maxsize=256)
def _bound_budget(reach: Reach, epsilon: float, delta: float) -> tuple[float, float]:
    """The part ε1 of the budget that is best spent on the bound, and the mean squared error."""

    def squared(first: float) -> float:
        ratio = math.exp(-first)
        noises = np.arange(-math.ceil(80 / first), math.ceil(80 / first) + 1)
        chances = ratio ** np.abs(noises) * (1 - ratio) / (1 + ratio)
        margin = _margin(first, delta)
        bounds = np.clip(reach.local + margin + noises, 1, reach.most).astype(np.float64)
        return 2 * float(chances @ bounds**2) / (epsilon - first) ** 2

    tried = (
        (first, squared(first)) for first in (epsilon * np.geomspace(0.002, 0.7, 150)).tolist()
    )
    return min(tried, key=lambda one: one[1])


def _margin(first: float, delta: float) -> int:
    """The least s with P(z < −s) ≤ δ, where P(z ≤ −k) = e^(−ε1·k) / (1 + e^(−ε1))."""
    return math.ceil(-math.log(delta * (1 + math.exp(-first))) / first) - 1


def smooth_laplace_published(reach: Reach, epsilon: float, delta: float) -> float:
    """[1]: Laplace noise of scale 2·S(β)/ε with β = ε/(2·ln(2/δ))."""
    return math.sqrt(8) * reach.smooth(epsilon / (2 * math.log(2 / delta))) / epsilon


def smooth_laplace(reach: Reach, epsilon: float, delta: float) -> float:
    """The same with ε divided at will: ε_S for the shift of the count, the rest for S.

    Let b = S/ε_S and b′ = S′/ε_S be the scales for neighbours, and z = |y − T|/b of an answer y,
    which has an exponential law. If b′ ≥ b, the loss ln(b′/b) + |y − T′|/b′ − |y − T|/b is at most
    β + ε_S. If b′ = b·e^(−g), 0 < g ≤ β, it is at most −g + ε_S + z·(e^g − 1), and above ε with
    probability at most exp(−(ε − ε_S + β)/(e^β − 1)), the value for g = β. This is δ for
    ε − ε_S = (e^β − 1)·ln(1/δ) − β, which is more than β if δ ≤ e^−2.
    """
    return math.sqrt(2) * _smooth_scale(reach, epsilon, delta)


def draw_smooth_laplace(
    reach: Reach, epsilon: float, delta: float, count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """So many errors of :func:`smooth_laplace`."""
    return rng.laplace(0.0, _smooth_scale(reach, epsilon, delta), count)


@lru_cache(maxsize=256)
def _smooth_scale(reach: Reach, epsilon: float, delta: float) -> float:
    """S(β)/ε_S at the best β."""
    betas, bounds = reach.smooth_bounds
    rest = epsilon - (np.expm1(betas) * math.log(1 / delta) - betas)
    return float((bounds[rest > 0] / rest[rest > 0]).min())


def smooth_quartic_published(reach: Reach, epsilon: float, _delta: float) -> float:
    """[1]: noise of density ∝ 1/(1+z⁴), times S(β)/α, with α = β = ε/(2(γ+1)), γ = 4.

    The variance of that density is 1.
    """
    return reach.smooth(epsilon / 10) / (epsilon / 10)


def smooth_student(reach: Reach, epsilon: float, _delta: float) -> float:
    """[4]: Student's t with k degrees of freedom, times S(β)/α.

    The logarithm of its density has a slope of at most (k+1)/(2√k), so a shift by α costs as many
    times α. Scaling by e^g changes it by at most k·|g|. Hence ε = α·(k+1)/(2√k) + k·β. The variance
    is k/(k−2).
    """
    betas, bounds = reach.smooth_bounds
    found = math.inf
    for freedom in np.arange(2.25, 12, 0.25).tolist():
        alpha = (epsilon - freedom * betas) * 2 * math.sqrt(freedom) / (freedom + 1)
        scale = float((bounds[alpha > 0] / alpha[alpha > 0]).min())
        found = min(found, scale * math.sqrt(freedom / (freedom - 2)))
    return found


def smooth_power(reach: Reach, epsilon: float, _delta: float) -> float:
    """After [5]: noise of density (a−1)/2·(1+|z|)^(−a), times S(β)/κ; nearly Laplace for small β.

    The constants are not those of [5], but follow from this proof.

    Let s = S/κ and s′ = s·e^g be the scales for neighbours, whose counts differ by at most S and
    S′. At a distance of y·s from the count the loss is at most
    (1−a)·g + a·ln((e^g + y + κ·min(1, e^g))/(1 + y)). It is monotone in y. At y = 0 it is
    g + a·ln(1 + κ·e^(−g)) for g ≥ 0, convex in g and so at most its values at 0 and β, and
    a·ln(1+κ) + g for g ≤ 0. For y → ∞ it is (a−1)·β at most. With a = 1 + ε/β, κ is the largest for
    which a·ln(1+κ) and β + a·ln(1 + κ·e^(−β)) are at most ε. The variance is 2/((a−2)(a−3)).
    """
    betas, bounds = reach.smooth_bounds
    kept = betas < epsilon / 2.01
    betas, bounds = betas[kept], bounds[kept]
    power, kappa = power_law(betas, epsilon)
    return float((bounds / kappa * np.sqrt(2 / ((power - 2) * (power - 3)))).min())


def power_law(
    beta: NDArray[np.float64], epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The exponent a and the factor κ of ``smooth_power``."""
    power = 1 + epsilon / beta
    kappa = np.minimum(np.expm1(epsilon / power), np.expm1((epsilon - beta) / power) * np.exp(beta))
    return power, kappa


def ladder(reach: Reach, epsilon: float, _delta: float) -> float:
    """[3]: the ladder mechanism, its mean squared error summed over its rungs."""
    widths, weights = ladder_rungs(reach, epsilon)
    ends = np.cumsum(widths).astype(np.float64)
    starts = ends - widths
    # The squares from start + 1 to end.
    squares = (ends * (ends + 1) * (2 * ends + 1) - starts * (starts + 1) * (2 * starts + 1)) / 6
    return math.sqrt(2 * float((weights * squares).sum()) / (1 + 2 * float(weights @ widths)))


def ladder_rungs(reach: Reach, epsilon: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Widths and weights of the rungs 1, 2, … on either side of the count.

    [3], Algorithm 1: the count itself has weight 1. Rung t, on both sides, is the next LS(t−1)
    integers outward, each of weight e^(−εt/2). LS(t) of triangles is a ladder function: it is at
    least LS, and LS′(t) ≤ LS(t+1) for neighbours. So an integer's rung changes by at most 1, and
    this is an exponential mechanism. Rungs of a weight below e^−100 are left out.
    """
    rungs = np.arange(1, math.ceil(200 / epsilon) + 1)
    return reach.values[np.minimum(rungs, len(reach.values)) - 1], np.exp(-epsilon / 2 * rungs)


def draw_ladder(
    reach: Reach, epsilon: float, _delta: float, count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """So many errors of :func:`ladder`: a rung in proportion to its weight, then a step of it."""
    widths, weights = ladder_rungs(reach, epsilon)
    masses = np.concatenate(([1.0], 2 * weights * widths))
    rungs = rng.choice(len(masses), count, p=masses / masses.sum())
    wide = np.concatenate(([1], widths))[rungs]
    start = np.concatenate(([0], np.cumsum(widths) - widths))[rungs]
    steps = np.where(rungs == 0, 0, start + rng.integers(1, wide + 1))
    return np.where(rng.random(count) < 0.5, -steps, steps).astype(np.float64)


@dataclass(frozen=True)
class Mechanism:
    """A mechanism, what it is called, whether it needs a δ above 0, and how it is drawn."""

    name: str
    error: Error
    needs_delta: bool
    draw: Draw | None = None

    def drawn(
        self, reach: Reach, epsilon: float, delta: float, count: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """So many errors."""
        if self.draw is None:
            raise ExperimentError(f"{self.name} is not drawn: its error is a formula alone")
        if self.needs_delta and not delta:
            raise ExperimentError(f"{self.name} needs a delta above 0")
        return self.draw(reach, epsilon, delta, count, rng)


MECHANISMS = (
    Mechanism("Laplace by n", laplace, False),
    Mechanism("ladder", ladder, False, draw_ladder),
    Mechanism("1/(1+z⁴)", smooth_quartic_published, False),
    Mechanism("Student", smooth_student, False),
    Mechanism("PolyPlace", smooth_power, False),
    Mechanism("smooth", smooth_laplace_published, True),
    Mechanism("smooth, split", smooth_laplace, True, draw_smooth_laplace),
    Mechanism("noisy bound", noisy_bound, True, draw_noisy_bound),
)


def mechanism(name: str) -> Mechanism:
    """A mechanism by its name.

    >>> mechanism("ladder").needs_delta
    False
    """
    (found,) = (one for one in MECHANISMS if one.name == name)
    return found


def best(reach: Reach, epsilon: float, delta: float) -> tuple[str, float]:
    """The mechanism of the smallest error at this ε and δ, and that error."""
    able = [one for one in MECHANISMS if delta or not one.needs_delta]
    return min(((one.name, one.error(reach, epsilon, delta)) for one in able), key=lambda x: x[1])


def floor(reach: Reach, epsilon: float) -> float:
    """Laplace noise by LS itself: not private, and what all of these come near to."""
    return math.sqrt(2) * reach.local / epsilon
