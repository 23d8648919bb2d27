"""Gradients of a release's estimates, from which silos compute local answers.

Model
    An estimate f on a release is a polynomial in the weights a(y), of degree one in each. A silo
    that holds pair e knows that its weight should be 1. It reports Σ (1 − a_e)·clip(∂f/∂a_e, ±κ)
    over those of its edges that it owns. To first order, this is the error of f at these edges.
Bias
    None: ∂f/∂a_e does not contain a_e, so the term has the mean (1 − E[a_e])·E[…] = 0 on an edge,
    **as long as κ does not depend on y_e**. A κ computed from the whole release does, and is biased
    (by −1.5 triangles on K4); a κ computed from n, the channel and the noisy degrees does not.
Variance
    Smaller than that of f by the first-order part of the reported pairs, wherever κ does not clip.
    A product of j reported pairs weighs (j−1)² instead of 1, which matters only if the noise of a
    pair is larger than 1 (ε below about 1). Each report adds its Laplace noise.
Rounding
    Terms are in units of Δ/2^30, Δ = max(|1−α|,|1−β|)·κ. Each term is rounded separately, is at
    most 2^30 before and after, and changes by at most half a unit.
Cost
    A popcount of two rows per pair. For 4-cycles: some popcounts per pair, and n per distinct
    smaller node.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.dp.channel import Channel
from silograph.errors import ArgumentError
from silograph.estimators.estimate import FloatArray
from silograph.estimators.stars import RowStars
from silograph.graph.bits import BitRows

__all__ = ["GRADIENTS", "gradient"]


Pairs = NDArray[np.uint32]
# Replaces a ratio beyond a float's range; it will be clipped to 1.
_HUGE = 1e300


def gradient(
    query: str,
    noisy: BitRows,
    channel: Channel,
    pairs: Pairs,
    k: int | None = None,
    *,
    scale: float = 1.0,
) -> FloatArray:
    """∂f/∂a at each pair u < v on the release, divided by ``scale``.

    The result does not depend on the pair's own bit, not even in its last digit.
    """
    if query not in GRADIENTS or (k is None) != (query != "kstars"):
        raise ArgumentError(f"local='gradient' does not answer {query}")
    found = GRADIENTS[query](noisy, channel, np.ascontiguousarray(pairs), k or 0)
    with np.errstate(over="ignore"):  # a tiny scale gives infinity, which is large enough
        return found / scale


def edges_gradient(noisy: BitRows, channel: Channel, pairs: Pairs, _k: int) -> FloatArray:
    """1, since every pair counts once."""
    return np.ones(len(pairs))


def kstars_gradient(noisy: BitRows, channel: Channel, pairs: Pairs, k: int) -> FloatArray:
    """e_(k−1) of the row of u without v, and of the row of v without u."""
    ones = noisy.degrees[pairs] - noisy.at(pairs)[:, None]
    distinct, places = np.unique(ones, return_inverse=True)
    row = RowStars(channel.weights, noisy.n - 2, k - 1)
    values = [_number(row.at(c)) for c in distinct.tolist()]
    found: FloatArray = np.array(values)[places.reshape(ones.shape)].sum(axis=1)
    return found


def triangles_gradient(noisy: BitRows, channel: Channel, pairs: Pairs, _k: int) -> FloatArray:
    """ĉ = γ²c + βγs + β²(n−2): the unbiased number of common neighbours (see ``pair_sums``)."""
    w, n = channel.weights, noisy.n
    c = _core.common_of_pairs(noisy.words, pairs).astype(np.float64)
    s = (noisy.degrees[pairs].sum(axis=1) - 2 * noisy.at(pairs)).astype(np.float64)
    found: FloatArray = float(w.gamma**2) * c + float(w.beta * w.gamma) * s
    return found + float(w.beta**2 * (n - 2))


def four_cycles_gradient(noisy: BitRows, channel: Channel, pairs: Pairs, _k: int) -> FloatArray:
    """The unbiased number of paths u – w – x – v of length 3, Σ a(uw)·a(wx)·a(xv).

    With a = β + γy the sum is a polynomial in four counts on the release: the noisy edges that can
    be one, two or three of the path's pairs.
    """
    w, n, edges = channel.weights, noisy.n, noisy.edges
    y, d = noisy.at(pairs), noisy.degrees[pairs]
    reach = noisy.neighbour_degrees[pairs]
    c = _core.common_of_pairs(noisy.words, pairs).astype(np.int64)
    du, dv = d[:, 0] - y, d[:, 1] - y  # without the pair itself
    one = (du + dv) * (n - 3) + 2 * (edges - du - dv - y)
    # uw and wx, where x is neither u nor v; the same starting from v; and uw with xv.
    two = reach[:, 0] - y * d[:, 1] - du - c
    two += reach[:, 1] - y * d[:, 0] - dv - c
    two += du * dv - c
    three = _core.walks_of_pairs(noisy.words, pairs).astype(np.int64) - y * dv
    b, g = w.beta, w.gamma
    total: FloatArray = float(g**3) * three + float(b * g**2) * two + float(b**2 * g) * one
    return total + float(b**3 * (n - 2) * (n - 3))


#: ∂f/∂a for each query, from a release, its channel, pairs u < v, and k for k-stars.
GRADIENTS: dict[str, Callable[[BitRows, Channel, Pairs, int], FloatArray]] = {
    "edges": edges_gradient,
    "kstars": kstars_gradient,
    "triangles": triangles_gradient,
    "four_cycles": four_cycles_gradient,
}


def _number(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return _HUGE if x > 0 else -_HUGE
