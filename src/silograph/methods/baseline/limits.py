"""Limits of degrees, and of numbers of edges, from the reports of all silos, by inverting tests.

Model
    Among some pairs c_j have j ones in their m reports. The sum Σ c_j·w_j of their weights (see
    :class:`~silograph.methods.baseline.counts.ReportWeights`) has the number d of edges as its
    mean. Its law depends on how many silos hold each edge, which nobody knows.
Interval
    Every d that the sum does not speak against: neither so small a sum nor so large a one is rarer
    than half of what the level leaves, if some of the d edges have one holder and all others m.
    Nothing was found that is less likely than all of these at once (the tests enumerate up to six
    pairs, for every number of holders of each).
    A standard error from the reports would not do. Where few pairs are no edges, it is small just
    when the sum is too large by chance: then only .62 of all intervals hold the truth.
Law
    Of few pairs it is exact: weights are rounded to a fine grid, and the test is about the sum of
    the rounded ones. Of more pairs its quantiles follow from its first three moments, and reach
    half a step further: the sum moves in steps, of which a few may be all there are.
Cost
    A table of quantiles for every d, which all nodes share, and a search in it.
References
    C. J. Clopper, E. S. Pearson, Biometrika 26 (1934), for the inversion; E. A. Cornish, R. A.
    Fisher, Moments and cumulants in the specification of distributions, Rev. Inst. Int. Stat. 5
    (1938), for the quantiles.
"""

import math
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from silograph.dp.channel import Channel
from silograph.estimators.estimate import FloatArray

__all__ = ["MANY_PAIRS", "report_law", "report_limits"]

#: Sets of more pairs have normal limits, and no table.
MANY_PAIRS = 1 << 17
# Sets of at most so many pairs have exact laws.
_FEW_PAIRS = 32
# Grid points in a standard deviation of one pair, and standard deviations that a law is kept for.
_FINE, _REACH = 64, 12.0
# Sums of probabilities are right to this; limits err on the wide side.
_ROUNDING = 1e-9
# Numbers of ones that are expected at fewer pairs than this make no step.
_NEVER = 1e-3
# The rarest sums that a level can leave out.
_RAREST = 1e-15


class _Table(NamedTuple):
    """What a pair with j ones adds to the sum, and the least and the greatest sum that each number
    of edges makes likely."""

    scores: FloatArray
    least: FloatArray
    greatest: FloatArray


def report_limits(
    profiles: NDArray[np.int64],
    weights: tuple[float, ...],
    channel: Channel,
    level: float = 0.95,
) -> tuple[FloatArray, FloatArray]:
    """The limits of the number of edges in sets of pairs of equal size, a row of counts c_j each.

    >>> low, high = report_limits(np.array([[1, 0, 2], [3, 0, 0]]), (0.0, 1.0, 1.0), Channel(1, 0))
    >>> low.tolist(), high.tolist()
    ([2.0, 0.0], [2.0, 0.0])
    """
    pairs = int(profiles[0].sum()) if len(profiles) else 0
    table = _table(pairs, weights, channel, level)
    sums = profiles @ table.scores
    # The quantiles grow with d, but for rounding.
    least = np.minimum.accumulate(table.least[::-1])[::-1]
    greatest = np.maximum.accumulate(table.greatest)
    low = np.searchsorted(greatest, sums, side="left")
    high = np.searchsorted(least, sums, side="right") - 1
    # A sum that speaks against every d speaks least against those next to it.
    low, high = np.clip(np.minimum(low, high), 0, pairs), np.clip(np.maximum(low, high), 0, pairs)
    return low.astype(np.float64), high.astype(np.float64)


def report_law(channel: Channel, silos: int, holders: int) -> FloatArray:
    """The law of the number of ones among the reports of a pair."""
    law = np.ones(1)
    for silo in range(silos):
        p = float(channel.p11 if silo < holders else channel.p01)
        law = np.convolve(law, [1 - p, p])
    return law


@lru_cache(maxsize=16)
def _table(pairs: int, weights: tuple[float, ...], channel: Channel, level: float) -> _Table:
    silos = len(weights) - 1
    laws = np.array([report_law(channel, silos, holders) for holders in (0, 1, silos)])
    found = _exact if pairs <= _FEW_PAIRS else _by_moments
    return found(pairs, np.array(weights), laws, max((1 - level) / 2, _RAREST))


def _by_moments(pairs: int, weights: FloatArray, laws: FloatArray, rare: float) -> _Table:
    """Quantiles from the mean, the variance and the skewness; ``laws`` are those of a pair that
    nobody, one silo or every silo holds."""
    # In units of the largest weight, whose cube may be too large for a float.
    unit = float(np.abs(weights).max())
    scores = weights / unit
    second, third = (((scores - (laws @ scores)[:, None]) ** e * laws).sum(axis=1) for e in (2, 3))
    half = float(np.ptp(scores[(pairs * laws > _NEVER).any(axis=0)])) / 2
    d, z = np.arange(pairs + 1, dtype=np.float64), -NormalDist().inv_cdf(rare)
    ends = []
    for two, three in zip(second[1:], third[1:], strict=True):
        variance = (pairs - d) * second[0] + d * two
        skewed = ((pairs - d) * third[0] + d * three) / np.maximum(variance, 1e-300)
        middle, reach = d / unit + skewed * (z**2 - 1) / 6, z * np.sqrt(variance) + half
        ends.append((middle - reach, middle + reach))
    least, greatest = zip(*ends, strict=True)
    return _Table(scores, np.min(least, axis=0), np.max(greatest, axis=0))


def _exact(pairs: int, weights: FloatArray, laws: FloatArray, rare: float) -> _Table:
    """Quantiles from the law of the sum of rounded weights, which is a Fourier transform."""
    means = laws @ weights
    largest = math.sqrt(max(((weights - means[:, None]) ** 2 * laws).sum(axis=1)))
    # Without noise every step is fine enough.
    step = largest / _FINE if largest > 0 else 1 / _FINE
    scores = np.rint((weights - weights.min()) / step)
    reach = min(_REACH * _FINE * math.sqrt(pairs), pairs * float(scores.max()))
    size = 1 << int(2 * reach + 2).bit_length()
    angles = 2 * np.pi * np.arange(size // 2 + 1) / size
    waves = laws @ np.exp(-1j * np.outer(scores, angles))

    def powers(wave: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """The transforms of the sums over 0, 1 … pairs."""
        found = np.ones((pairs + 1, len(wave)), dtype=np.complex128)
        found[1:] = wave
        return np.multiply.accumulate(found, axis=0)

    nobody, one, everybody = map(powers, waves)
    middles = laws @ scores
    least, greatest = np.empty(pairs + 1), np.empty(pairs + 1)
    for d in range(pairs + 1):
        # A row for each number of edges with one holder. The circle begins half a turn before the
        # mean, which rounding alone makes depend on the row.
        found = np.fft.irfft(nobody[pairs - d] * one[: d + 1] * everybody[d::-1], size, axis=1)
        start = int((pairs - d) * middles[0] + d * middles[1:].mean()) - size // 2
        law = np.roll(np.maximum(found, 0), -start, axis=1)
        first, last = (
            (np.cumsum(each, axis=1) > rare - _ROUNDING).argmax(axis=1)
            for each in (law, law[:, ::-1])
        )
        least[d], greatest[d] = start + first.min(), start + size - 1 - last.min()
    return _Table(scores, least, greatest)
