"""Limits of degrees, and of numbers of edges among few pairs, by inverting exact tests.

A node of degree d shows Bin(d, p11) + Bin(n−1−d, p01) noisy ones. At a large epsilon few bits are
wrong, so this law is far from normal: it has few points and a long tail on one side. The interval
of a node with c noisy ones consists of every degree that c does not speak against: under it neither
c or fewer ones nor c or more ones are rarer than half of what the level leaves. Such an interval
holds the true degree with at least the stated probability, for every degree, node and channel.

The same holds for any set of pairs in the place of a node's. The law is stochastically increasing
in d, so both ends are found by bisection, at once for all distinct c. For large sets with much
noise the law is normal, and so are the limits.

Reference
    C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits illustrated in the case
    of the binomial, Biometrika 26 (1934).
"""

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from silograph.dp.channel import Channel
from silograph.estimators.estimate import FloatArray
from silograph.graph.bits import BitRows

__all__ = ["count_limits", "degree_limits", "exact_limits"]

#: Beyond this many standard deviations (and this many points) a binomial law has no mass to speak
#: of: less than 1e-14.
_DEVIATIONS, _POINTS = 8.0, 32
#: The number of distinct noisy degrees that are handled at once.
_BLOCK = 256
#: How many ones the limits of a skewed law are away from those of a normal one, in most cases.
_NEAR_ENDS = 2.0
#: Sums of probabilities are right to this; limits err on the wide side.
_ROUNDING = 1e-10

#: Sets of more pairs than this, or with more noise in their number of ones than this variance, have
#: normal limits.
_MANY_PAIRS, _MUCH_NOISE = 1 << 20, 900.0

_Counts = NDArray[np.int64]


def degree_limits(noisy: BitRows, channel: Channel, level: float = 0.95) -> tuple[_Counts, _Counts]:
    """The lower and upper limits of every node's degree.

    >>> path = BitRows.from_pairs(3, np.array([[0, 1], [1, 2]], dtype=np.uint32))
    >>> low, high = degree_limits(path, Channel(1, 0))
    >>> low.tolist(), high.tolist()
    ([1, 2, 1], [1, 2, 1])
    """
    seen, places = np.unique(noisy.degrees, return_inverse=True)
    known = _known_limits(noisy.n - 1, channel, level)
    new = np.array([c for c in seen.tolist() if c not in known], dtype=np.int64)
    ends = exact_limits(new, np.full_like(new, noisy.n - 1), channel, level)
    known.update(zip(new.tolist(), zip(*(end.tolist() for end in ends), strict=True), strict=True))
    low, high = np.array([known[c] for c in seen.tolist()]).reshape(-1, 2).T
    return low[places], high[places]


@lru_cache(maxsize=16)
def _known_limits(pairs: int, channel: Channel, level: float) -> dict[int, tuple[int, int]]:
    """The limits so far, by the number of ones: several questions about a release need the same."""
    return {}


def count_limits(
    ones: _Counts, pairs: _Counts, channel: Channel, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """The limits of the numbers of edges in sets of pairs, from their numbers of noisy ones.

    >>> low, high = count_limits(np.array([2, 0]), np.array([3, 1]), Channel(1, 0))
    >>> low.tolist(), high.tolist()
    ([2.0, 0.0], [2.0, 0.0])
    """
    w = channel.weights
    edges = np.clip(float(w.gamma) * ones + float(w.beta) * pairs, 0, pairs)
    variance = float(w.v0) * pairs + float(w.delta) * edges
    reach = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(variance)
    low, high = edges - reach, edges + reach
    few = (pairs <= _MANY_PAIRS) & (variance * float(channel.g) ** 2 <= _MUCH_NOISE)
    low[few], high[few] = exact_limits(ones[few], pairs[few], channel, level)
    return np.clip(low, 0, pairs), np.clip(high, 0, pairs)


def exact_limits(
    ones: _Counts, pairs: _Counts, channel: Channel, level: float
) -> tuple[_Counts, _Counts]:
    """Limits by inversion, for each number of ones among so many pairs."""
    law, rare = _Law(int(pairs.max(initial=0)), channel), (1 - level) / 2
    ends: tuple[list[_Counts], list[_Counts]] = [], []
    for start in range(0, len(ones), _BLOCK):
        seen, size = ones[start : start + _BLOCK], pairs[start : start + _BLOCK]
        # A count that speaks against every degree speaks least against the first or the last one.
        low = law.first_below(seen - 1, size, 1 - rare + _ROUNDING)
        high = law.first_below(seen, size, rare - _ROUNDING) - 1
        ends[0].append(np.clip(low, 0, size))
        ends[1].append(np.clip(high, 0, size))
    nothing = np.empty(0, dtype=np.int64)
    return np.concatenate([*ends[0], nothing]), np.concatenate([*ends[1], nothing])


@lru_cache(maxsize=4)
def _log_factorials(most: int) -> FloatArray:
    """The logarithms of 0! … most!"""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])


class _Law:
    """The law of the noisy ones among some pairs, for many numbers of edges at once."""

    def __init__(self, most_pairs: int, channel: Channel) -> None:
        self._p11, self._p01 = float(channel.p11), float(channel.p01)
        self._log_factorials = _log_factorials(most_pairs)

    def first_below(self, most: _Counts, pairs: _Counts, limit: float) -> _Counts:
        """The least degree at which P(at most so many ones) is below the limit; one more than there
        are pairs if there is none. The probability falls with the degree."""
        # The end of a normal law is at most a few ones away. Where it is not, look everywhere.
        guess, room = self._normal_end(most, pairs, limit)
        low, high = np.clip(guess - room, 0, pairs), np.clip(guess + room, 0, pairs)
        low = np.where(self.at_most(low, pairs, most) < limit, 0, low)
        high = np.where(self.at_most(high, pairs, most) < limit, high, pairs + 1)
        while (low < high).any():
            middle = (low + high) // 2
            below = self.at_most(np.minimum(middle, pairs), pairs, most) < limit
            high, low = np.where(below, middle, high), np.where(below, low, middle + 1)
            low = np.minimum(low, high)
        return low

    def _normal_end(self, most: _Counts, pairs: _Counts, limit: float) -> tuple[_Counts, int]:
        """About where :meth:`first_below` finds its degree, and how far from it that may be."""
        slope, z = self._p11 - self._p01, NormalDist().inv_cdf(min(max(limit, 1e-15), 1 - 1e-15))
        middle = np.clip((most + 0.5 - self._p01 * pairs) / slope, 0, pairs)
        guess = middle
        for _ in range(2):
            guess = np.clip(guess, 0, pairs)
            variance = guess * self._p11 * (1 - self._p11)
            variance += (pairs - guess) * self._p01 * (1 - self._p01)
            guess = middle - z * np.sqrt(variance) / slope
        return guess.astype(np.int64), math.ceil(_NEAR_ENDS / slope)

    def at_most(self, degrees: _Counts, pairs: _Counts, most: _Counts) -> FloatArray:
        """P(at most so many ones), for each of some degrees."""
        lost, missing = self._binomial(degrees, 1 - self._p11)
        shown, false = self._binomial(pairs - degrees, self._p01)
        share = np.minimum(np.cumsum(false, axis=1), 1.0)
        # With l edges missing, at most so many of the others may show.
        allowed = (most - degrees)[:, None] + lost - shown[:, :1]
        inside = np.take_along_axis(share, np.clip(allowed, 0, share.shape[1] - 1), axis=1)
        total: FloatArray = (missing * np.where(allowed < 0, 0.0, inside)).sum(axis=1)
        return total

    def _binomial(self, trials: _Counts, p: float) -> tuple[_Counts, FloatArray]:
        """Where each binomial law has its mass, and the mass: a row for each number of trials."""
        mean, spread = trials * p, np.sqrt(trials * p * (1 - p))
        reach = int(_DEVIATIONS * spread.max(initial=0.0)) + _POINTS
        starts = np.maximum(mean.astype(np.int64) - reach, 0)
        points = starts[:, None] + np.arange(2 * reach + 1)
        real = points <= trials[:, None]
        k, n = np.where(real, points, 0), trials[:, None]
        logs = self._log_factorials
        # A logarithm of 0 would be infinite; this is small enough.
        on, off = np.log(max(p, 1e-300)), np.log(max(1 - p, 1e-300))
        mass = np.exp(logs[n] - logs[k] - logs[n - k] + k * on + (n - k) * off)
        return points, np.where(real, mass, 0.0)
