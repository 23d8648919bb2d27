"""What a graph may be like of which little is known: ranges of its main numbers.

What
    Errors are predicted from a graph's edges, 2-stars, triangles and 4-cycles. Where some of them
    are not known, each has a range: its likely value, and two ends between which it lies in most
    graphs of people, papers, mails and the like. A noisy estimate narrows the range.
From n and m alone
    2-stars lie between those of degrees that are all alike, 2m²/n, and those of hubs, m^1.5.
    Triangles lie between half of what chance closes among such degrees, (W/m)³/6 with W 2-stars,
    and a clustering coefficient of 0.7. 4-cycles are within a factor of 3 of (W/m)⁴/8 + 4T²/m, what
    chance closes and what comes with T triangles. (Facebook, Wiki-Vote, ca-HepPh, email-Enron and
    generated power laws lie within; a star, a grid or a bipartite graph does not.) The likely value
    is the geometric mean of the ends.
From a noisy estimate
    The range is read as a normal law of the logarithm, the ends as its 2.5 % and 97.5 % points, and
    the estimate as the number plus normal noise of its standard error. What follows is the law
    given the estimate: its median and the same points. Much noise leaves the range as it was,
    little noise makes it the estimate's own interval, and nothing leaves what is possible.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

__all__ = ["OPEN", "Level", "Numbers", "Plausible", "Range", "levels"]

_Z = 1.959963984540054
_GRID = 801
#: A clustering coefficient that few graphs exceed.
_CLUSTERED = 0.7
#: How far 4-cycles may be from what 2-stars and triangles suggest, as a factor.
_CYCLES = 3.0
#: Edges per node, where nothing is known of them.
_EDGES = (2.0, 8.0, 32.0)
#: What may be open, in the order in which one follows from the other.
OPEN = ("edges", "wedges", "triangles", "four_cycles")


@dataclass(frozen=True)
class Range:
    """A number that is not known exactly: its likely value, and two ends.

    >>> Range(1.0, 10.0, 1000.0).at(-1), Range(1.0, 10.0, 1000.0).at(0.5)
    (1.0, 100.0)
    """

    low: float
    likely: float
    high: float

    @classmethod
    def between(cls, low: float, high: float) -> "Range":
        """A range whose likely value is the geometric mean of its ends."""
        low = max(min(low, high), 1e-9)
        return cls(low, math.sqrt(low * high), high) if high > low else cls.exactly(low)

    @classmethod
    def exactly(cls, value: float) -> "Range":
        """A number that is known."""
        return cls(value, value, value)

    def at(self, level: float) -> float:
        """The value at a level from −1, the low end, to 1, the high one."""
        end = self.high if level > 0 else self.low
        if not level or end == self.likely:
            return self.likely
        return float(self.likely * (end / self.likely) ** abs(level))

    def given(self, estimate: float, stderr: float, most: float) -> "Range":
        """The range after an estimate with a normal error; nothing is above ``most``.

        >>> Range(100.0, 1000.0, 10000.0).given(-4e4, 1e5, 1e6).likely < 1000  # all noise
        True
        >>> found = Range(100.0, 1000.0, 10000.0).given(5000.0, 10.0, 1e6)
        >>> [round(x) for x in (found.low, found.likely, found.high)]
        [4980, 5000, 5020]
        """
        middle, spread = math.log(self.likely), self._spread
        top = math.log(max(most, self.likely))
        if stderr <= 0:
            return self.exactly(max(min(estimate, most), 1e-9))
        # A grid over all that the law holds possible, and a fine one around the estimate.
        ends = (middle - 5 * spread, min(middle + 5 * spread, top))
        grid = [np.linspace(*ends, _GRID)]
        near = estimate + stderr * np.linspace(-6, 6, _GRID)
        grid.append(np.log(near[(near > 1e-9) & (near <= math.exp(top))]))
        x = np.unique(np.concatenate(grid))
        belief = -(((x - middle) / spread) ** 2) / 2 - ((np.exp(x) - estimate) / stderr) ** 2 / 2
        mass = np.exp(belief - belief.max()) * np.gradient(x)
        below = (np.cumsum(mass) - mass / 2) / mass.sum()
        low, likely, high = np.exp(np.interp([0.025, 0.5, 0.975], below, x)).tolist()
        return Range(low, likely, high)

    @property
    def _spread(self) -> float:
        """The standard deviation of the logarithm."""
        return max(math.log(self.high / self.low) / (2 * _Z), 1e-9)


#: What is known of a number: its value, or an estimate with its standard error.
Known = Mapping[str, float | tuple[float, float]]
#: For every number that is open, where in its range it is taken.
Level = Mapping[str, float]


@dataclass(frozen=True)
class Numbers:
    """The main numbers of a graph that may be."""

    edges: float
    wedges: float
    triangles: float
    four_cycles: float


@dataclass(frozen=True)
class Plausible:
    """The ranges of a graph's numbers, each given those before it.

    Examples
    --------
    >>> found = Plausible(4039, {"edges": 88234.0})
    >>> found.open
    ('wedges', 'triangles', 'four_cycles')
    >>> low, high = (found.numbers({"triangles": x}).triangles for x in (-1, 1))
    >>> low < 1612010 < high
    True
    """

    nodes: int
    known: Known

    @property
    def open(self) -> tuple[str, ...]:
        """What is not known exactly."""
        return tuple(name for name in OPEN if not isinstance(self.known.get(name), float))

    def numbers(self, level: Level) -> Numbers:
        """All numbers, each at its level or at its likely value."""
        n = self.nodes
        pairs = n * (n - 1) / 2
        every = Range(*(min(max(x * n, 1.0), pairs / 2) for x in _EDGES))
        if isinstance(self.known.get("edges"), tuple):  # an estimate: any order of magnitude
            every = Range.between(1.0, pairs)
        m = self._range("edges", every, pairs).at(level.get("edges", 0.0))
        even = max(2 * m * m / n, 1.0)
        hubs = min(max(m**1.5, 2 * even), m * (m + 1) / 2, n * pairs)
        w = self._range("wedges", Range.between(even, hubs), n * pairs).at(level.get("wedges", 0.0))
        most = min(_CLUSTERED * w / 3, m**1.5 * math.sqrt(2) / 3)
        chance = (w / m) ** 3 / 6
        few = Range.between(min(chance / 2, most / 8), most)
        t = self._range("triangles", few, n * pairs / 3).at(level.get("triangles", 0.0))
        likely = max((w / m) ** 4 / 8 + 4 * t * t / m, 1e-9)
        cycles = Range(likely / _CYCLES, likely, likely * _CYCLES)
        most_cycles = min(m * m, pairs * n * n / 4)
        c = self._range("four_cycles", cycles, most_cycles).at(level.get("four_cycles", 0.0))
        return Numbers(m, w, t, c)

    def _range(self, name: str, prior: Range, most: float) -> Range:
        known = self.known.get(name)
        if known is None:
            return prior
        return prior.given(*known, most) if isinstance(known, tuple) else Range.exactly(known)


def levels(names: tuple[str, ...]) -> Iterator[dict[str, float]]:
    """Where a range is tried: each number at its ends, and all of them part of the way.

    Not all at their ends at once, since that is rarer than any one of them; and 4-cycles alone,
    since they follow from the others in the main.

    >>> [len(list(levels(OPEN[first:]))) for first in range(4)]
    [16, 10, 6, 2]
    """
    for name in names:
        for end in (-1.0, 1.0):
            yield {name: end}
    joint = [name for name in names if name != "four_cycles"]
    if joint and len(names) > 1:
        part = 1 / math.sqrt(len(joint))
        for signs in itertools.product((-part, part), repeat=len(joint)):
            yield dict(zip(joint, signs, strict=True))
