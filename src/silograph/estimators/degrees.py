"""The estimators of the number of edges, of degrees, and of the degree histogram."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from silograph.dp.channel import Channel, Weights
from silograph.errors import ArgumentError
from silograph.estimators.estimate import FloatArray
from silograph.graph.bits import BitRows

__all__ = [
    "check_bins",
    "degree_grid",
    "degree_histogram",
    "degree_stderrs",
    "degree_values",
    "edges_noise",
    "edges_stderr",
    "edges_value",
    "edges_variance",
    "sharpen",
]


# --- Edges and degrees ----------------------------------------------------------------------------
#
# Model: â = Σ a(y) over the pairs concerned. A degree has n − 1 of them, not n (the paper's
# Propositions 1 and 3 count a self-pair).
# Bias: none. Variance: v1 per edge, v0 per non-edge. Cost: one pass over the bits.


def edges_value(noisy: BitRows, channel: Channel) -> Fraction:
    """Σ a(y) over all pairs."""
    ones, pairs = noisy.edges, noisy.n * (noisy.n - 1) // 2
    return channel.alpha * ones + channel.beta * (pairs - ones)


def edges_variance(truth: BitRows, channel: Channel) -> Fraction:
    """The variance of :func:`edges_value` over the noise, for a known graph."""
    return edges_noise(channel.weights, truth.n, Fraction(truth.edges))


def edges_stderr(noisy: BitRows, channel: Channel) -> float:
    """The standard error, using the estimated number of edges in the variance."""
    pairs = noisy.n * (noisy.n - 1) // 2
    edges = min(max(edges_value(noisy, channel), Fraction(0)), Fraction(pairs))
    return math.sqrt(edges_noise(channel.weights, noisy.n, edges))


def edges_noise(w: Weights, n: int, edges: Fraction) -> Fraction:
    """The variance of the estimated number of edges, from the true number."""
    return w.v0 * (n * (n - 1) // 2) + w.delta * edges


def degree_values(noisy: BitRows, channel: Channel) -> FloatArray:
    """Σ a(y) over the n − 1 pairs of each node."""
    w = channel.weights
    return float(w.gamma) * noisy.degrees.astype(np.float64) + float(w.beta * (noisy.n - 1))


def degree_stderrs(noisy: BitRows, channel: Channel) -> FloatArray:
    """The standard error of each degree, using the estimated degree in the variance."""
    w = channel.weights
    likely = np.clip(degree_values(noisy, channel), 0, noisy.n - 1)
    return np.sqrt(float(w.v0 * (noisy.n - 1)) + float(w.delta) * likely)


# --- The degree histogram, by deconvolution of noisy degrees --------------------------------------
_STEPS = 100
# The finest grid of degrees; wider ranges are fitted on every second, third … degree.
_LARGEST_GRID = 1500
# The number of columns that are transformed at once.
_BLOCK = 64


def check_bins(bins: Sequence[int] | None, n: int) -> list[int]:
    """Check bin edges b0 < b1 < … that cover 0 … n−1; by default 0, 1, 2, 4, 8, …, n."""
    if bins is None:
        powers = [2**i for i in range(max(n - 1, 1).bit_length()) if 2**i < n]
        return [0, *powers, n]
    edges = [int(b) for b in bins]
    if len(edges) < 2 or any(a >= b for a, b in itertools.pairwise(edges)):
        raise ArgumentError(
            "bins must be at least two ascending integers: b0, b1, … for [b0, b1) …"
        )
    if edges != [float(b) for b in bins]:
        raise ArgumentError("bins must be integers")
    if edges[0] > 0 or edges[-1] < n:
        raise ArgumentError(f"bins must cover the degrees 0 to {n - 1}: start at 0, end at {n}")
    return edges


def degree_histogram(
    noisy: BitRows, channel: Channel, bins: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """The number of nodes in each bin, and the standard errors.

    Model
        On a release a node of true degree d has Bin(d, p11) + Bin(n−1−d, p01) noisy edges; in a
        sealed run its degree carries integer noise. The histogram of noisy degrees is the true
        histogram, blurred by that known law. Inverting the blur exactly is possible but useless,
        since the noise grows without limit. So the true histogram is fitted by maximum likelihood
        with the EM algorithm (Richardson–Lucy), stopped early, which keeps it smooth.
    Bias
        Consistent, not unbiased. If the noise is wider than a bin, neighbouring bins blend.
    Variance
        The delta method through every EM step: the gradient of each bin with respect to the noisy
        histogram, and the multinomial covariance of that histogram given the fitted degrees. It
        covers the noise, not the smoothing.
    Cost
        O(D²) per step for D distinct degrees, at most n.
    References
        W. H. Richardson, J. Opt. Soc. Am. 62 (1972); L. B. Lucy, Astron. J. 79 (1974).
    """
    seen = np.bincount(noisy.degrees, minlength=1).astype(np.float64)
    observed = np.flatnonzero(seen)
    degrees = _grid(noisy, channel)
    return sharpen(seen[observed], degrees, _blur(degrees, observed, noisy.n, channel), bins)


def sharpen(
    counts: FloatArray, degrees: FloatArray, blur: FloatArray, bins: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """The number of nodes in each bin, and the standard errors, from a known blur.

    ``counts`` says how many nodes showed each noisy degree (the rows of the blur). The columns of
    the blur are the possible true degrees.
    """
    steps = [np.full(len(degrees), counts.sum() / len(degrees))]
    for _ in range(_STEPS):
        fitted = steps[-1]
        steps.append(fitted * (blur.T @ (counts / np.maximum(blur @ fitted, 1e-300))))
    inside = np.array(
        [(degrees >= a) & (degrees < b) for a, b in itertools.pairwise(bins)], dtype=float
    )
    gradient = _gradient(steps, blur, counts, inside)
    # Var(Σ G·counts) given the degrees: Σ_d h(d)·(Σ_c K(c|d)·G(c)² − (Σ_c K(c|d)·G(c))²).
    spread = gradient**2 @ blur - (gradient @ blur) ** 2
    return inside @ steps[-1], np.sqrt(np.maximum(spread @ steps[-1], 0))


def degree_grid(top: int) -> FloatArray:
    """The degrees from 0 to ``top`` that a fit uses: all, or every second, third …"""
    return np.arange(0, top + 1, max(1, math.ceil((top + 1) / _LARGEST_GRID)), dtype=np.float64)


def _grid(noisy: BitRows, channel: Channel) -> FloatArray:
    """The degrees that the fit uses: from 0 to a safe distance above the largest estimate."""
    n = noisy.n
    largest = float(degree_values(noisy, channel).max(initial=0))
    noise = math.sqrt(float(max(channel.weights.v0, channel.weights.v1)) * n)
    top = min(n - 1, max(0, math.ceil(largest + noise)))
    return degree_grid(top)


def _blur(degrees: FloatArray, observed: NDArray[np.int64], n: int, channel: Channel) -> FloatArray:
    """P(noisy degree | degree), with a row per observed noisy degree and a column per degree.

    The law of Bin(d, p11) + Bin(n−1−d, p01) is the inverse Fourier transform of the product of
    the characteristic functions. This is exact, since the law has at most n points.
    """
    p11, p01 = float(channel.p11), float(channel.p01)
    circle = np.exp(-2j * np.pi * np.arange(n) / n)[:, None]
    on, off = 1 - p11 + p11 * circle, 1 - p01 + p01 * circle
    columns = []
    for start in range(0, len(degrees), _BLOCK):
        d = degrees[None, start : start + _BLOCK]
        law = np.fft.ifft(on**d * off ** (n - 1 - d), axis=0).real
        columns.append(np.maximum(law[observed], 0))
    return np.concatenate(columns, axis=1)


def _gradient(
    steps: list[FloatArray], blur: FloatArray, counts: FloatArray, inside: FloatArray
) -> FloatArray:
    """d(bin)/d(counts), computed backwards through the EM steps."""
    back, gradient = inside, np.zeros((len(inside), len(counts)))
    for fitted in reversed(steps[:-1]):
        shown = np.maximum(blur @ fitted, 1e-300)
        pulled = (back * fitted) @ blur.T
        gradient += pulled / shown
        back = back * (blur.T @ (counts / shown)) - (pulled * (counts / shown**2)) @ blur
    return gradient
