"""Limits of degrees, and of the edges of small graphs, by inverting exact tests.

A node of degree d shows Bin(d, p11) + Bin(n−1−d, p01) noisy ones. At a large epsilon few bits are
wrong, so this law is far from normal: it has few points and a long tail on one side. The interval
of a node with c noisy ones consists of every degree that c does not speak against: under it neither
c or fewer ones nor c or more ones are rarer than half of what the level leaves. Such an interval
holds the true degree with at least the stated probability, for every degree, node and channel.

The law is stochastically increasing in d, so both ends are found by bisection, at once for all
distinct c.

Reference
    C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits illustrated in the case
    of the binomial, Biometrika 26 (1934).
"""

import numpy as np
from numpy.typing import NDArray

from silograph.dp.channel import Channel
from silograph.estimators.estimate import FloatArray
from silograph.graph.bits import BitRows

__all__ = ["count_limits", "degree_limits"]

#: Beyond this many standard deviations (and this many points) a binomial law has no mass to speak
#: of: less than 1e-14.
_DEVIATIONS, _POINTS = 8.0, 32
#: The number of distinct noisy degrees that are handled at once.
_BLOCK = 256
#: Sums of probabilities are right to this; limits err on the wide side.
_ROUNDING = 1e-10

_Counts = NDArray[np.int64]


def degree_limits(noisy: BitRows, channel: Channel, level: float = 0.95) -> tuple[_Counts, _Counts]:
    """The lower and upper limits of every node's degree.

    >>> path = BitRows.from_pairs(3, np.array([[0, 1], [1, 2]], dtype=np.uint32))
    >>> low, high = degree_limits(path, Channel(1, 0))
    >>> low.tolist(), high.tolist()
    ([1, 2, 1], [1, 2, 1])
    """
    return count_limits(noisy.degrees, noisy.n - 1, channel, level)


def count_limits(
    ones: _Counts, pairs: int, channel: Channel, level: float = 0.95
) -> tuple[_Counts, _Counts]:
    """The limits of the number of edges among so many pairs, for some numbers of noisy ones.

    >>> low, high = count_limits(np.array([0, 5]), 10, Channel("3/4", "1/4"))
    >>> low.tolist(), high.tolist()
    ([0, 0], [0, 10])
    """
    seen, places = np.unique(ones, return_inverse=True)
    law, rare = _Law(pairs, channel), (1 - level) / 2
    blocks = [seen[start : start + _BLOCK] for start in range(0, len(seen), _BLOCK)]
    low = [law.first_below(block - 1, 1 - rare + _ROUNDING) for block in blocks]
    high = [law.first_below(block, rare - _ROUNDING) - 1 for block in blocks]
    # A count that speaks against every degree speaks least against the first or the last one.
    ends = (np.clip(np.concatenate(each), 0, law.pairs)[places] for each in (low, high))
    return next(ends), next(ends)


class _Law:
    """The law of the noisy ones among a node's pairs, for many degrees at once."""

    def __init__(self, pairs: int, channel: Channel) -> None:
        self.pairs = pairs
        self._p11, self._p01 = float(channel.p11), float(channel.p01)
        self._log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, pairs + 1)))])

    def first_below(self, most: _Counts, limit: float) -> _Counts:
        """The least degree at which P(at most so many ones) is below the limit; one more than there
        are pairs if there is none. The probability falls with the degree."""
        low, high = np.zeros_like(most), np.full_like(most, self.pairs + 1)
        while (low < high).any():
            middle = (low + high) // 2
            below = self.at_most(np.minimum(middle, self.pairs), most) < limit
            high, low = np.where(below, middle, high), np.where(below, low, middle + 1)
            low = np.minimum(low, high)
        return low

    def at_most(self, degrees: _Counts, most: _Counts) -> FloatArray:
        """P(at most so many ones), for each of some degrees."""
        lost, missing = self._binomial(degrees, 1 - self._p11)
        shown, false = self._binomial(self.pairs - degrees, self._p01)
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
