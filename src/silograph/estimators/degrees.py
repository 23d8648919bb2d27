"""The estimators of the number of edges and of degrees."""

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from silograph.dp.channel import Channel, Weights
from silograph.estimators.estimate import FloatArray
from silograph.estimators.inversion import exact_limits
from silograph.graph.bits import BitRows

__all__ = [
    "EXACT",
    "degree_stderrs",
    "degree_values",
    "edges_limits",
    "edges_noise",
    "edges_stderr",
    "edges_value",
    "edges_variance",
    "highest_density",
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


# --- Edges of small graphs: exact limits, and what other queries take from them -------------------
#
# The count of noisy ones has a few points where few bits are wrong, so its law is not normal. On
# graphs of more nodes than this it is, at every ε that hides anything.
EXACT = 512


def edges_limits(noisy: BitRows, channel: Channel, level: float = 0.95) -> tuple[float, float]:
    """The interval of the number of edges: exact for small graphs, normal for others."""
    pairs = noisy.n * (noisy.n - 1) // 2
    if noisy.n <= EXACT:
        return _exact_limits(noisy.edges, pairs, channel, level)
    z = NormalDist().inv_cdf((1 + level) / 2)
    value, margin = float(edges_value(noisy, channel)), z * edges_stderr(noisy, channel)
    return value - margin, value + margin


@lru_cache(maxsize=64)
def _exact_limits(ones: int, pairs: int, channel: Channel, level: float) -> tuple[float, float]:
    low, high = exact_limits(np.array([ones]), np.array([pairs]), channel, level)
    return float(low[0]), float(high[0])


def highest_density(noisy: BitRows, channel: Channel) -> float:
    """The upper 95 % limit of the share of pairs that are edges."""
    pairs = noisy.n * (noisy.n - 1) // 2
    return min(max(edges_limits(noisy, channel)[1] / pairs, 0.0), 1.0) if pairs else 0.0
