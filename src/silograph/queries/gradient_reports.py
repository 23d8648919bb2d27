"""A silo's local answer, form ``gradient``: what its own edges take off the release's error."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from silograph.errors import ArgumentError
from silograph.graph.bitrows import BitRows
from silograph.privacy.channel import Channel
from silograph.privacy.featplus import STEPS, largest_change
from silograph.queries.gradient import Pairs, gradient

__all__ = ["default_bound", "gradient_report", "gradient_terms"]


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
