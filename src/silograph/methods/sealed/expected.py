"""The bound that noisy degrees will probably give, before any noise is drawn.

What
    Bounds are made of the largest and the second-largest of n noisy degrees d_i + z_i. Noise lifts
    the largest of many: it is not the largest degree plus a standard deviation. With F the law of
    one noise, P(largest ≤ x) = Π_i F(x − d_i), and the second-largest is at most x if the largest
    is, or one alone is above: Π_i F(x − d_i)·(1 + Σ_i (1 − F)/F at x − d_i).
How
    Means are sums of P(> x) over a grid of a few hundred values, from far below the second-largest
    degree to far above the largest. Equal degrees are taken together, and, if the noise is wide,
    similar ones. That is accurate to about one percent of the noise's scale, and takes
    milliseconds.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from silograph.estimators.reference import Reference
from silograph.methods.sealed.noise import Answer, SealedNoise

__all__ = ["expected_bound", "expected_top_two"]

# How many values of x are looked at, and how far below the second-largest degree they begin.
_GRID = 400
_BELOW = 12


def expected_bound(reference: Reference, noise: SealedNoise, answer: Answer) -> int | None:
    """The bound of a count on a graph like the reference; None if it has none.

    It is the bound at the mean of the largest and of the second-largest noisy degree.
    """
    if answer not in noise.margins:
        return None
    largest, second = _top_two(reference, float(noise.scale("degrees")))
    tops = np.full(noise.nodes, min(math.floor(second), 0), dtype=np.int64)
    tops[:2] = math.ceil(largest), math.ceil(second)
    return noise.bound(answer, tops)


@lru_cache(maxsize=256)
def _top_two(reference: Reference, scale: float) -> tuple[float, float]:
    return expected_top_two(reference.degrees, scale)


def expected_top_two(degrees: NDArray[np.int64], scale: float) -> tuple[float, float]:
    """The means of the largest and second-largest of these degrees with discrete Laplace noise.

    >>> largest, second = expected_top_two(np.array([100, 3, 2]), 0.1)
    >>> round(largest), round(second)
    (100, 3)
    """
    second, top = (float(d) for d in np.partition(degrees, -2)[-2:])
    first = math.floor(second - _BELOW * scale) - 1
    last = math.ceil(top + (math.log(len(degrees)) + _BELOW) * scale) + 1
    step = max(1, math.ceil((last - first) / _GRID))
    x = first + np.arange(0, last - first, step) + (step - 1) / 2
    values, counts = _grouped(degrees, first - (math.log(len(degrees)) + _BELOW) * scale, scale)
    above, within = _logs(x[:, None] - values[None, :], scale)
    both = within @ counts
    none = np.exp(both)
    one = np.exp(both[:, None] + above - within) @ counts
    means = (first + step * float(np.sum(1 - p)) for p in (none, np.minimum(none + one, 1.0)))
    largest, next_one = means
    return largest, next_one


def _grouped(
    degrees: NDArray[np.int64], least: float, scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Degrees from ``least`` up, and how many nodes have them; similar ones as their mean."""
    width = max(1, int(scale / 8))
    kept = degrees[degrees >= least]
    _, inverse, counts = np.unique(kept // width, return_inverse=True, return_counts=True)
    sums = np.bincount(inverse, kept.astype(np.float64))
    return sums / counts, counts.astype(np.float64)


def _logs(k: NDArray[np.float64], scale: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """ln P(z > k) and ln P(z ≤ k) of the discrete Laplace law.

    Each is −|…|/scale − ln(1+p) on its own side, and one less the other on the other.
    """
    fixed = math.log1p(math.exp(-1 / scale))
    up, down = -(k + 1) / scale - fixed, k / scale - fixed
    right = k >= 0
    small = np.where(right, up, down)
    rest = np.log1p(-np.exp(small))
    return np.where(right, small, rest), np.where(right, rest, small)
