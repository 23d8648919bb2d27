"""A silo's local answer, form ``gradient``: what its own edges take off the release's error.

Model
    An estimate f of a release is a polynomial in the weights a(y), of degree one in each. A silo
    that holds pair e knows that its weight should be 1; it reports Σ (1 − a_e)·clip(∂f/∂a_e, ±κ)
    over its own, owned edges, which is what f is short of there, to first order.
Bias
    None: ∂f/∂a_e does not contain a_e, so the term has the mean (1 − E[a_e])·E[…] = 0 on an edge,
    **as long as κ does not look at y_e**. A κ taken from the whole release does, and is biased (by
    −1.5 triangles on K4); one from n, the channel and the noisy degrees does not.
Variance
    Less than that of f by the first-order part of the pairs that were reported, wherever κ does not
    cut; a product of j reported pairs weighs (j−1)² instead of 1, which is seen only where the
    noise of a pair is larger than 1 (ε below about 1). More by the Laplace noise of each report.
Rounding
    Terms are in units of Δ/2^30, Δ = max(|1−α|,|1−β|)·κ: each is rounded by itself, is at most 2^30
    before and after, and is off by half a unit at most.
Cost
    A popcount of two rows per pair; 4-cycles: some popcounts a pair and n a distinct smaller node.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.errors import ArgumentError
from silograph.graph.bitrows import BitRows
from silograph.privacy.channel import Channel
from silograph.privacy.featplus import STEPS, largest_change
from silograph.queries.estimate import FloatArray
from silograph.queries.stars import symmetric_polynomials

__all__ = ["GRADIENTS", "default_bound", "gradient", "gradient_report", "gradient_terms"]

Pairs = NDArray[np.uint32]
# What stands for a ratio beyond a float's range; it will be clipped to 1.
_HUGE = 1e300


def gradient_report(
    query: str, noisy: BitRows, channel: Channel, pairs: Pairs, bound: float, k: int | None = None
) -> int:
    """The local answer of a silo that holds and owns these pairs, in units of Δ/2^30."""
    return int(gradient_terms(query, noisy, channel, pairs, bound, k).sum())


def gradient_terms(
    query: str, noisy: BitRows, channel: Channel, pairs: Pairs, bound: float, k: int | None = None
) -> NDArray[np.int64]:
    """(1 − a)·clip(∂f/∂a, ±bound) of each pair, in units of Δ/2^30, rounded."""
    slopes = np.clip(gradient(query, noisy, channel, pairs, k, scale=bound), -1.0, 1.0)
    largest = largest_change(channel)
    changes = np.array([float((1 - a) / largest) for a in (channel.beta, channel.alpha)])
    return np.rint(changes[noisy.at(pairs)] * slopes * STEPS).astype(np.int64)


def gradient(
    query: str,
    noisy: BitRows,
    channel: Channel,
    pairs: Pairs,
    k: int | None = None,
    *,
    scale: float = 1.0,
) -> FloatArray:
    """∂f/∂a of each pair u < v on the release, divided by ``scale``.

    It does not depend on the pair's own bit, not even in its last digit.
    """
    if query not in GRADIENTS or (k is None) != (query != "kstars"):
        raise ArgumentError(f"there is no local answer 'gradient' to {query}")
    found = GRADIENTS[query](noisy, channel, np.ascontiguousarray(pairs), k or 0)
    with np.errstate(over="ignore"):  # of a tiny scale; infinite is large enough
        return found / scale


def edges_gradient(noisy: BitRows, channel: Channel, pairs: Pairs, _k: int) -> FloatArray:
    """1: every pair counts once."""
    return np.ones(len(pairs))


def kstars_gradient(noisy: BitRows, channel: Channel, pairs: Pairs, k: int) -> FloatArray:
    """e_(k−1) of the row of u without v, and of the row of v without u."""
    ones = noisy.degrees[pairs] - noisy.at(pairs)[:, None]
    distinct, places = np.unique(ones, return_inverse=True)
    values = [
        _number(symmetric_polynomials(channel.weights, c, noisy.n - 2 - c, k - 1)[k - 1])
        for c in distinct.tolist()
    ]
    found: FloatArray = np.array(values)[places.reshape(ones.shape)].sum(axis=1)
    return found


def triangles_gradient(noisy: BitRows, channel: Channel, pairs: Pairs, _k: int) -> FloatArray:
    """ĉ = γ²c + βγs + β²(n−2): the unbiased number of common neighbours (see ``tally``)."""
    w, n = channel.weights, noisy.n
    c = _core.common_of_pairs(noisy.words, pairs).astype(np.float64)
    s = (noisy.degrees[pairs].sum(axis=1) - 2 * noisy.at(pairs)).astype(np.float64)
    found: FloatArray = float(w.gamma**2) * c + float(w.beta * w.gamma) * s
    return found + float(w.beta**2 * (n - 2))


def four_cycles_gradient(noisy: BitRows, channel: Channel, pairs: Pairs, _k: int) -> FloatArray:
    """The unbiased number of paths u – w – x – v of length 3, Σ a(uw)·a(wx)·a(xv).

    With a = β + γy the sum is a polynomial in four counts of the release: the noisy edges that can
    be one, two or three of the path's pairs.
    """
    w, n, edges = channel.weights, noisy.n, noisy.edges
    y, d = noisy.at(pairs), noisy.degrees[pairs]
    reach = noisy.neighbour_degrees[pairs]
    c = _core.common_of_pairs(noisy.words, pairs).astype(np.int64)
    du, dv = d[:, 0] - y, d[:, 1] - y  # without the pair itself
    one = (du + dv) * (n - 3) + 2 * (edges - du - dv - y)
    # uw and wx, where x is neither u nor v; the same from v; uw and xv.
    two = reach[:, 0] - y * d[:, 1] - du - c
    two += reach[:, 1] - y * d[:, 0] - dv - c
    two += du * dv - c
    three = _core.walks_of_pairs(noisy.words, pairs).astype(np.int64) - y * dv
    b, g = w.beta, w.gamma
    total: FloatArray = float(g**3) * three + float(b * g**2) * two + float(b**2 * g) * one
    return total + float(b**3 * (n - 2) * (n - 3))


#: ∂f/∂a for each query: of a release, its channel, pairs u < v, and k for k-stars.
GRADIENTS: dict[str, Callable[[BitRows, Channel, Pairs, int], FloatArray]] = {
    "edges": edges_gradient,
    "kstars": kstars_gradient,
    "triangles": triangles_gradient,
    "four_cycles": four_cycles_gradient,
}


def default_bound(
    query: str,
    degrees: Sequence[Sequence[int]] | NDArray[np.int64],
    scale: Fraction,
    channel: Channel,
    n: int,
    k: int | None = None,
) -> float:
    """A clipping bound κ from what is public before the local answers and looks at no y.

    ``degrees`` are all silos' noisy degrees, ``scale`` that of their noise. κ is the gradient at an
    edge between two nodes of the degree D that a neighbour has on average, Σd²/Σd, and some
    standard deviations of what the release's noise adds to it. Any κ is unbiased: a smaller one
    takes less off the release's error, a larger one needs more noise.
    """
    typical = _neighbour_degree(degrees, scale, n)
    v0 = float(channel.weights.v0)
    match query:
        case "edges":
            return 1.0
        case "triangles":
            # Half of the neighbours in common; pairs of noise, and noise beside an edge.
            return typical / 2 + 2 * math.sqrt(v0**2 * n + 2 * v0 * typical)
        case "four_cycles":
            noise = v0**3 * n**2 + 3 * v0**2 * n * typical + 3 * v0 * typical**3 / 2
            return typical**2 / 2 + 2 * math.sqrt(noise)
        case "kstars" if k is not None:
            # The stars at both ends, had they a standard deviation of noise more in their degree.
            d = max(typical + math.sqrt(v0 * n), k - 1.0)
            try:
                return 2 * math.exp(math.lgamma(d + 1) - math.lgamma(k) - math.lgamma(d - k + 2))
            except OverflowError:
                raise ArgumentError(f"k = {k}: the number of stars is beyond a float") from None
    raise ArgumentError(f"there is no local answer 'gradient' to {query}")


def _neighbour_degree(
    degrees: Sequence[Sequence[int]] | NDArray[np.int64], scale: Fraction, n: int
) -> float:
    """Σd²/Σd of the true degrees, as far as the noise lets it be seen; from 1 to n − 1.

    Silos that hold the same edge both count it, which makes the result a little too large.
    """
    # Any number may come from a silo; these are beyond all that a float's sums could bear.
    table = np.array(degrees, dtype=object).clip(-(2**50), 2**50).astype(np.float64)
    totals, noise = table.sum(axis=0), 2 * float(scale) ** 2 * len(table)
    squares, first = float(totals @ totals) - n * noise, float(totals.sum())
    found = squares / first if first > 0 else 1.0
    return min(max(found, 1.0), float(n - 1))


def _number(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return _HUGE if x > 0 else -_HUGE
