"""The degree histogram: how many nodes have a degree in each bin, with intervals that cover.

Model
    A node of degree d shows a noisy degree whose law is known. The histogram of noisy degrees is
    the true histogram, blurred by that law. Bins that are narrow beside the noise cannot be told
    apart: many histograms fit equally well. No estimator can help that, so the answer is the
    interval of all numbers of nodes that the noisy degrees do not speak against.
Interval
    For a number t of nodes in a bin, the most likely histogram with t nodes there is fitted (see
    :mod:`silograph.estimators.mixture`). The interval consists of every t for which its likelihood
    is not much lower than that of the best histogram. The likelihood takes the degrees of nodes for
    draws from the histogram, and nodes for independent. In truth degrees are fixed, which makes
    less noise, and on a release two nodes share a pair, which makes more, but less than twice as
    much. So the distance is measured in real standard errors: those of the statistic that tells
    the two fits apart.
    Besides, the count cannot be more than the number of nodes that can be in the bin at all, nor
    less than the number of those that cannot be elsewhere, by limits that hold for all nodes
    together. They decide where there is little noise, and where a bin is far from all nodes.
Value
    The most likely number, moved within its interval so that all bins together have n nodes.
Cost
    Degrees and noisy degrees are fitted on a grid that is fine near the ends of the bin: some 50 to
    200 of each, whatever n is. A bin takes about a hundredth of a second to a tenth.
References
    B. W. Rust, W. R. Burrus, Mathematical Programming and the Numerical Solution of Linear
    Equations (1972): intervals from all solutions that fit. P. Stark, Inference in
    infinite-dimensional inverse problems, J. Geophys. Res. 97 (1992).
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from silograph.dp.channel import Channel
from silograph.dp.laplace import NoiseLaw
from silograph.errors import ArgumentError
from silograph.estimators.estimate import NO_ANSWER, Z95, FloatArray, number
from silograph.estimators.mixture import Fit, fit

__all__ = ["Blur", "Histogram", "OwnBlur", "PairBlur", "Tables", "check_bins", "histogram"]

Integers = NDArray[np.int64]

# How far apart, in standard errors, a number of nodes and the noisy degrees may be. It is more than
# 1.96, since standard errors are computed from fits.
_APART = 2.24
# The probability that the limits of some node are wrong, below and above.
_RARE = 2.5e-4
# Grids: the fraction of the noise in a first step, and the growth of steps with the distance.
_CELL, _GROWTH = 1 / 6, 0.1
# Noise of more standard deviations than this is not resolved any more.
_REACH = 9.0
# The logarithm of what is too small to matter.
_TINY = -45.0
# The ends of an interval are found to this share of its width, or to this share of a node.
_FINE, _NODE = 0.01, 0.2
# Default bins are widened until their intervals are at most this share of all nodes.
_USEFUL = 0.25


# --- How noise blurs degrees ----------------------------------------------------------------------


class Tables(NamedTuple):
    """The law of the noisy degree for each of some degrees."""

    #: For each degree, the noisy degree below which there is nothing.
    starts: Integers
    #: A column for each degree: the probability of fewer than so many above the start.
    below: FloatArray

    def of(self, chosen: slice | NDArray[np.bool_]) -> "Tables":
        """The laws for some of the degrees."""
        return Tables(self.starts[chosen], self.below[:, chosen])

    def at_most(self, values: Integers) -> FloatArray:
        """P(noisy degree ≤ value): a row for each value, a column for each degree."""
        places = np.clip(values[:, None] - self.starts + 1, 0, len(self.below) - 1)
        return np.take_along_axis(self.below, places, axis=0)


class Blur(ABC):
    """The law of a node's noisy degree, given its degree; it grows with the degree."""

    #: The number of nodes, and by how much the mean noisy degree grows with the degree.
    n: int
    slope: float

    @abstractmethod
    def mean(self, degrees: FloatArray) -> FloatArray:
        """The mean noisy degree."""

    @abstractmethod
    def sd(self, degrees: FloatArray) -> FloatArray:
        """The standard deviation of the noisy degree."""

    @abstractmethod
    def tables(self, degrees: Integers) -> Tables:
        """The laws of noisy degrees."""

    def shared(self, degrees: FloatArray, many: FloatArray, slopes: FloatArray) -> float:
        """The variance, at most, of a sum of statistics of all nodes that is due to noise which
        nodes share. ``slopes`` is how a statistic's mean grows with the mean noisy degree."""
        return 0.0

    def noise(self, degree: float) -> float:
        """The standard deviation of the noise in units of degrees."""
        return float(self.sd(np.array([degree], dtype=np.float64))[0]) / self.slope


class PairBlur(Blur):
    """A release: a node of degree d shows Bin(d, p11) + Bin(n−1−d, p01) noisy edges.

    >>> blur = PairBlur(5, Channel("3/4", "1/4"))
    >>> blur.tables(np.array([0])).at_most(np.array([0, 4])).round(4).tolist()
    [[0.3164], [1.0]]
    """

    def __init__(self, n: int, channel: Channel) -> None:
        self.n, self.slope = n, float(channel.g)
        self._p11, self._p01 = float(channel.p11), float(channel.p01)
        self._v1, self._v0 = (p * (1 - p) for p in (self._p11, self._p01))

    def mean(self, degrees: FloatArray) -> FloatArray:
        return (self.n - 1) * self._p01 + self.slope * degrees

    def sd(self, degrees: FloatArray) -> FloatArray:
        return np.sqrt(self._v0 * (self.n - 1 - degrees) + self._v1 * degrees)

    def tables(self, degrees: Integers) -> Tables:
        """The Fourier transforms of the product of the characteristic functions, on a circle that
        is long enough for the noise; it begins at a place of its own for each degree."""
        widest = math.sqrt(max(self._v0, self._v1) * (self.n - 1))
        size = 1 << int(2 * (_REACH * widest + 20)).bit_length()
        angles = 2 * np.pi * np.arange(size // 2 + 1) / size
        on, off = (1 - p + p * np.exp(-1j * angles) for p in (self._p11, self._p01))
        edges, others = degrees.astype(np.float64), (self.n - 1 - degrees).astype(np.float64)
        logs = (np.log(np.maximum(np.abs(part), 1e-300)) for part in (on, off))
        sizes = np.outer(next(logs), edges) + np.outer(next(logs), others)
        starts = np.floor(self.mean(edges) - size / 2).astype(np.int64)
        # Only slow waves are of any size, if there is much noise.
        slow = np.flatnonzero(sizes.max(axis=1) > _TINY)
        turns = np.outer(np.angle(on[slow]), edges) + np.outer(np.angle(off[slow]), others)
        turns += np.outer(angles[slow], starts)
        waves = np.zeros((size // 2 + 1, len(degrees)), dtype=np.complex128)
        waves[slow] = np.exp(sizes[slow] + 1j * turns)
        law = np.fft.irfft(waves, size, axis=0)
        below = np.minimum(np.cumsum(np.maximum(law, 0), axis=0), 1.0)
        return Tables(starts, np.concatenate([np.zeros((1, len(degrees))), below]))

    def shared(self, degrees: FloatArray, many: FloatArray, slopes: FloatArray) -> float:
        """Σ over pairs of twice the pair's variance and the slopes at its ends.

        All pairs are taken for non-edges. What edges change is at most a sum of squares of slopes.
        """
        total = float(many @ slopes)
        return self._v0 * total**2 + abs(self._v1 - self._v0) * float(many * degrees @ slopes**2)


class OwnBlur(Blur):
    """Each node's degree has integer noise of its own.

    >>> from fractions import Fraction
    >>> blur = OwnBlur(5, NoiseLaw(Fraction(2), 1, 1))
    >>> blur.tables(np.array([3])).at_most(np.array([2, 3])).round(4).tolist()
    [[0.3775], [0.6225]]
    """

    slope = 1.0

    def __init__(self, n: int, law: NoiseLaw) -> None:
        self.n, self._stderr = n, law.stderr
        self._reach = math.ceil(3 * _REACH * law.stderr) + 8
        below = np.minimum(np.cumsum(law.probabilities(self._reach)), 1.0)
        self._below = np.concatenate([[0.0], below, [1.0]])

    def mean(self, degrees: FloatArray) -> FloatArray:
        return degrees

    def sd(self, degrees: FloatArray) -> FloatArray:
        return np.full(len(degrees), self._stderr)

    def tables(self, degrees: Integers) -> Tables:
        shape = len(self._below), len(degrees)
        return Tables(degrees - self._reach, np.broadcast_to(self._below[:, None], shape))


# --- The number of nodes in one bin ---------------------------------------------------------------


class Ends(NamedTuple):
    """The most likely number of nodes in a bin, and its 95 % interval."""

    value: float
    low: float
    high: float


class Noisy(NamedTuple):
    """The noisy degrees that were seen, in order, and how many nodes showed each."""

    seen: Integers
    counts: Integers


class _Count:
    """The number of nodes whose degree is in [first, after)."""

    def __init__(self, noisy: Noisy, blur: Blur, first: int, after: int) -> None:
        self._blur, self._n = blur, int(noisy.counts.sum())
        cuts = [cut for cut in (first, after) if 0 < cut < blur.n]
        degrees = _grid(cuts, blur, self._n)
        tables = blur.tables(degrees)
        least, most = noisy.seen[:1], noisy.seen[-1:]
        rare = _RARE / max(self._n, 1)
        possible = tables.at_most(most)[0] > rare
        possible &= 1 - tables.at_most(least - 1)[0] > rare
        inside = (degrees >= first) & (degrees < after)
        self.sure, self.most = _limits(noisy, tables, inside, rare)
        self._degrees, self._inside = degrees[possible], inside[possible]
        bounds = _cells(cuts, blur)
        below = tables.of(possible).at_most(bounds)
        ends = np.zeros((1, len(self._degrees))), np.ones((1, len(self._degrees)))
        cells = np.diff(np.concatenate([ends[0], below, ends[1]]), axis=0)
        shown = np.bincount(
            np.searchsorted(bounds, noisy.seen), noisy.counts, minlength=len(bounds) + 1
        )
        #: The probability of every cell for each degree; it is never quite zero.
        self._laws = np.maximum(cells, 1e-30)
        self._seen = shown.astype(np.float64)

    def ends(self) -> Ends:
        """The most likely number and its interval, in whole nodes."""
        if self.sure >= self.most or self._inside.all() or not self._inside.any():
            return Ends(self.most, min(self.sure, self.most), self.most)
        self._best = self._fit(None)
        value = float(self._best.many[self._inside].sum())
        value = min(max(value, self.sure), self.most)
        low, high = (self._end(value, float(end)) for end in (self.sure, self.most))
        return Ends(value, math.floor(low + 1e-6), math.ceil(high - 1e-6))

    def _end(self, value: float, end: float) -> float:
        """The end of the interval between the value and a limit."""
        far = self._apart(end) if abs(end - value) > _NODE else 0.0
        if far <= _APART:
            return end
        near, inner, outer = 0.0, value, end
        while abs(outer - inner) > max(_NODE, _FINE * abs(outer - value)):
            # Distances grow about evenly. Take the place where they would reach the limit, but
            # come nearer from both sides.
            share = min(max((_APART - near) / (far - near), 0.1), 0.9)
            t = inner + share * (outer - inner)
            apart = self._apart(t)
            if apart <= _APART:
                inner, near = t, apart
            else:
                outer, far = t, apart
        return outer

    def _apart(self, t: float) -> float:
        """How many standard errors the noisy degrees are from histograms with t nodes here."""
        found = self._fit(t)
        lost = 2 * (self._best.log_likelihood - found.log_likelihood - found.gap)
        return math.sqrt(max(lost, 0.0) / max(self._real(found), 1e-9))

    def _fit(self, t: float | None) -> Fit:
        everything = np.ones(len(self._degrees), dtype=np.bool_)
        parts = [(everything, float(self._n))]
        if t is not None:
            parts = [(self._inside, t), (~self._inside, self._n - t)]
        return fit(self._laws[self._seen > 0], self._seen[self._seen > 0], parts)

    def _real(self, other: Fit) -> float:
        """The variance of the statistic that tells a fit from the best one, as a share of what the
        likelihood takes it for."""
        one, two = self._laws @ self._best.many, self._laws @ other.many
        many, weights = (self._best.many + other.many) / 2, 2 * (two - one) / (one + two)
        means, squares = weights @ self._laws, weights**2 @ self._laws
        taken = float(many @ squares) - float(many @ means) ** 2 / self._n
        own = float(many @ np.maximum(squares - means**2, 0))
        degrees = self._degrees.astype(np.float64)
        slopes = np.gradient(means, degrees) / self._blur.slope  # of small slopes means look equal
        # Noise that two nodes share is at most as large as their own.
        shared = min(self._blur.shared(degrees, many, slopes), own)
        return (own + shared) / max(taken, 1e-300)


def _grid(cuts: Sequence[int], blur: Blur, nodes: int) -> Integers:
    """Degrees that stand for all: near the cuts they are as close as the fit of so many nodes can
    see, and every bin has its first and its last."""
    found = {0, blur.n - 1}
    for cut in cuts:
        # Two neighbours in place of a degree between them add (step/2)² to its variance.
        step = blur.noise(cut) * min(0.25, 2 * (0.2 / nodes) ** 0.25)
        for offset in _offsets(step, blur.n):
            found |= {cut + offset, cut - 1 - offset}
    return np.array(sorted(d for d in found if 0 <= d < blur.n), dtype=np.int64)


def _cells(cuts: Sequence[int], blur: Blur) -> Integers:
    """The last noisy degrees of cells, which are narrow near the cuts."""
    found = set()
    for cut in cuts:
        at = np.array([cut - 0.5])
        middle, sd = math.floor(float(blur.mean(at)[0])), float(blur.sd(at)[0])
        for offset in _offsets(_CELL * sd, _REACH * sd + 16):
            found |= {middle + offset, middle - 1 - offset}
    return np.array(sorted(found), dtype=np.int64)


def _offsets(step: float, reach: float) -> list[int]:
    """0, then numbers up to the reach whose distances grow."""
    found = [0]
    while found[-1] < reach:
        found.append(found[-1] + max(1, int(step), int(_GROWTH * found[-1])))
    return found


def _limits(
    noisy: Noisy, tables: Tables, inside: NDArray[np.bool_], rare: float
) -> tuple[int, int]:
    """How many nodes must be in the bin, and how many can be, if no noise is rarer than this.

    Laws grow with the degree. So a node can have some degree above the bin if it can have the first
    one above it, and so on.
    """
    here = np.flatnonzero(inside)
    first, last = int(here[0]), int(here[-1])
    nowhere = np.zeros(len(noisy.seen), dtype=np.bool_)

    def at_least(at: int) -> NDArray[np.bool_]:
        law = tables.of(slice(at, at + 1))
        return law.at_most(noisy.seen)[:, 0] > rare if at < len(inside) else nowhere

    def at_most(at: int) -> NDArray[np.bool_]:
        law = tables.of(slice(at, at + 1))
        return 1 - law.at_most(noisy.seen - 1)[:, 0] > rare if at >= 0 else nowhere

    elsewhere = at_least(last + 1) | at_most(first - 1)
    within = at_least(first) & at_most(last)
    return int(noisy.counts @ ~elsewhere), int(noisy.counts @ within)


# --- The histogram --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Histogram:
    """The number of nodes in each bin, and 95 % intervals."""

    bins: list[int]
    value: FloatArray
    low: FloatArray
    high: FloatArray
    #: The standard deviation of the noise of a small degree.
    noise: float

    @property
    def stderr(self) -> FloatArray:
        """The standard errors of normal intervals of the same widths."""
        return (self.high - self.low) / (2 * Z95)

    @property
    def note(self) -> str:
        """What the noise lets one see."""
        nodes = float(self.value.sum())
        wide = self.high - self.low > _USEFUL * nodes
        said = f"noise moves each degree by about {number(self.noise)}"
        if not wide.any():
            return f"{said}; intervals hold for every graph"
        if wide.all():
            said = f"{NO_ANSWER}: {said}, which these bins are too narrow for"
            return f"{said}; wider bins or a larger ε would help"
        some = f"{wide.sum()} of {len(wide)} bins are"
        return f"{said}; {some} too narrow for that, and their intervals are wide"

    @property
    def said(self) -> dict[str, Any]:
        """What an estimate says besides values and standard errors."""
        ends = self.low, self.high
        return {"note": self.note, "parameters": {"bins": self.bins}, "ends": ends}


def histogram(noisy_degrees: Integers, blur: Blur, bins: Sequence[int] | None) -> Histogram:
    """How many nodes have a degree in each bin.

    Without bins, 0, 1, 2, 4, 8 … are joined until the intervals are narrow enough to be of use.
    """
    seen, counts = np.unique(noisy_degrees, return_counts=True)
    noisy = Noisy(seen.astype(np.int64), counts.astype(np.int64))
    edges = check_bins(bins, blur.n)
    if bins is None:
        edges, found = _joined(noisy, blur, edges)
    else:
        found = [_ends(noisy, blur, a, b) for a, b in itertools.pairwise(edges)]
    value, low, high = (np.array(column, dtype=np.float64) for column in zip(*found, strict=True))
    noise = blur.noise(0.0)
    return Histogram(edges, _adding_up(value, low, high, len(noisy_degrees)), low, high, noise)


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


def _joined(noisy: Noisy, blur: Blur, edges: list[int]) -> tuple[list[int], list[Ends]]:
    """Neighbouring bins joined, from the first on, until each interval is narrow enough."""
    kept, found = [edges[0]], list[Ends]()
    useful = _USEFUL * float(noisy.counts.sum())
    for edge in edges[1:]:
        ends = _ends(noisy, blur, kept[-1], edge)
        if ends.high - ends.low <= useful:
            kept.append(edge)
            found.append(ends)
    while kept[-1] != edges[-1]:  # what is left at the end is joined to the last bins
        ends = _ends(noisy, blur, kept[-1], edges[-1])
        if ends.high - ends.low <= useful or len(kept) == 1:
            kept.append(edges[-1])
            found.append(ends)
        else:
            kept.pop()
            found.pop()
    return kept, found


def _ends(noisy: Noisy, blur: Blur, first: int, after: int) -> Ends:
    nodes = float(noisy.counts.sum())
    if first <= 0 and after >= blur.n:
        return Ends(nodes, nodes, nodes)
    if first >= blur.n or after <= 0:
        return Ends(0.0, 0.0, 0.0)
    return _Count(noisy, blur, first, after).ends()


def _adding_up(value: FloatArray, low: FloatArray, high: FloatArray, nodes: int) -> FloatArray:
    """The values, moved within their intervals to have this sum, as far as these allow it."""
    value = np.clip(value, low, high)
    missing = nodes - float(value.sum())
    room = high - value if missing > 0 else value - low
    total = float(room.sum())
    return value + room * min(max(missing / total, -1.0), 1.0) if total > 0 else value
