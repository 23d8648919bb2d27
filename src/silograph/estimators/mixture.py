"""Mixtures of known laws, fitted by maximum likelihood with a certificate.

Model
    Nodes of kind d show cell i with the known probability P(i | d), and c_i nodes showed it. The
    numbers h_d ≥ 0 of nodes of each kind maximise Σ c_i·ln Σ_d P(i | d)·h_d, where the total of
    each of one or more parts of the kinds is given. The problem is convex. It is ill-conditioned
    where laws are alike, so that simple iterations (EM) stop long before the maximum.
Method
    A primal-dual interior-point method: Newton steps towards h_d·z_d = μ, where z_d is by how much
    kind d falls short of the best kind of its part, and μ falls to zero.
Certificate
    The likelihood is concave, so its maximum is at most Σ_parts total·max_d D_d − Σ c above any h
    with these totals, with the slopes D_d = Σ_i P(i | d)·c_i/m_i, m = P·h.
Cost
    About 15 steps. Each solves a linear system with as many unknowns as there are kinds.
References
    J. Kiefer, J. Wolfowitz, Ann. Math. Statist. 27 (1956); R. Koenker, I. Mizera, Convex
    optimization, shape constraints, compound decisions, and empirical Bayes rules, JASA 109 (2014).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from silograph.estimators.estimate import FloatArray

__all__ = ["Fit", "Part", "fit"]

#: Which kinds are in a part, and how many nodes are of these kinds together.
Part = tuple[NDArray[np.bool_], float]

_MOST_STEPS = 100
# How much closer to its goal a step tries to come, and how near to zero it may go.
_NEARER, _NEAR_ZERO = 0.1, 0.95


@dataclass(frozen=True, eq=False)
class Fit:
    """The most likely numbers of nodes of each kind."""

    many: FloatArray
    #: Σ c·ln m, and by how much the maximum is above it at most.
    log_likelihood: float
    gap: float


def fit(laws: FloatArray, seen: FloatArray, parts: Sequence[Part], gap: float = 0.01) -> Fit:
    """Fit the numbers of nodes of each kind.

    ``laws`` has a row for each cell that was seen and a column for each kind. Every kind is in one
    part. The fit ends when the maximum is at most ``gap`` higher.

    >>> laws = np.array([[0.8, 0.3], [0.2, 0.7]])
    >>> found = fit(laws, np.array([55.0, 45.0]), [(np.array([True, True]), 100.0)], gap=1e-6)
    >>> found.many.round(2).tolist(), found.gap <= 1e-6
    ([50.0, 50.0], True)
    """
    used = np.logical_or.reduce([kinds for kinds, total in parts if total > 0])
    totals = np.array([total for _, total in parts if total > 0])
    belongs = np.array([kinds[used] for kinds, total in parts if total > 0], dtype=np.float64)
    inner, log_likelihood, above = _inner_fit(laws[:, used], seen, belongs, totals, gap)
    many = np.zeros(laws.shape[1])
    many[used] = inner
    return Fit(many, log_likelihood, above)


def _inner_fit(
    laws: FloatArray, seen: FloatArray, belongs: FloatArray, totals: FloatArray, gap: float
) -> tuple[FloatArray, float, float]:
    """The fit if no total is zero."""
    members, nodes, roots = belongs > 0, seen.sum(), np.sqrt(seen)
    many = (totals / belongs.sum(axis=1)) @ belongs
    shown = laws @ many
    slopes = (seen / shown) @ laws
    best = np.array([slopes[kinds].max() for kinds in members])
    prices = 1.05 * best
    short = prices @ belongs - slopes
    # What is wanted is the first column of each system; the others say what a part's price changes.
    sides = np.column_stack([slopes, belongs.T])
    for _ in range(_MOST_STEPS):
        if float(totals @ best - nodes) <= gap:
            break
        goal = _NEARER * float(many @ short) / len(many)
        weighted = laws * (roots / shown)[:, None]
        matrix = weighted.T @ weighted
        ratio, rest = short / many, goal / many
        matrix.flat[:: len(many) + 1] += ratio
        sides[:, 0] = slopes - prices @ belongs + rest
        solved = np.linalg.solve(matrix, sides)
        missing = totals - belongs @ many
        dear = np.linalg.solve(belongs @ solved[:, 1:], belongs @ solved[:, 0] - missing)
        change = solved[:, 0] - solved[:, 1:] @ dear
        shorter = rest - short - ratio * change
        length = min(_room(many, change), _room(short, shorter))
        many = many + length * change
        prices, short = prices + length * dear, short + length * shorter
        shown = laws @ many
        slopes = (seen / shown) @ laws
        best = np.array([slopes[kinds].max() for kinds in members])
    return many, float(seen @ np.log(shown)), float(totals @ best - nodes)


def _room(values: FloatArray, changes: FloatArray) -> float:
    """The length of a step, at most 1, that leaves all values positive."""
    far = np.divide(values, -changes, out=np.full_like(values, np.inf), where=changes < 0)
    return min(1.0, _NEAR_ZERO * float(far.min()))
