"""Intervals where the noise leaves nearly all bits right.

Model
    A wrong bit moves a count by a jump, such as the common neighbours of its ends for triangles. If
    only a few bits are wrong, the law of the count has a few points, and a normal interval misses
    some of them.
Interval
    Normal limits and half a jump more on both sides, as continuity corrections have it; normal ones
    alone where even one wrong bit is rarer than what an interval may miss. Jumps differ: a hub's
    edge moves 2-stars by hundreds, others by a few. The one that counts is that of a law of equal
    jumps, with the same variance Σ v·c² and fourth cumulant Σ v·c⁴. The ends of counts go out to
    whole numbers.
Cost
    Nothing where many bits are wrong; products of small matrices otherwise.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph.dp.channel import Channel
from silograph.estimators.degrees import edges_stderr
from silograph.estimators.estimate import FloatArray
from silograph.graph.bits import BitRows

__all__ = [
    "Jumps",
    "WrongBits",
    "between_jumps",
    "cycle_jumps",
    "node_wrong_bits",
    "ratio_jumps",
    "star_jumps",
    "triangle_jumps",
    "wrong_bits",
]

#: How much a count changes with each pair, from the matrix of a graph's bits.
Jumps = Callable[[FloatArray], FloatArray]

# With so many wrong bits the law is normal enough: half of one is 5 % of a 95 % interval.
_NORMAL = 26.0
# With more wrong bits than this, or on larger graphs, jumps are not looked at: at every ε up to 8
# the edges of a hub or of a dense core are then wrong often, or lost in the noise of all others.
_MANY, _LARGE = 2000, 1024
# Numbers that are this near to a whole one are that one.
_SAME = 1e-6


@dataclass(frozen=True)
class WrongBits:
    """How many bits are wrong in the mean."""

    bits: float
    #: The same of the law of equal jumps that stands for a count's own; of an array, at each place.
    equal: float | FloatArray = math.inf

    @property
    def few(self) -> bool:
        """Whether 95 % intervals can be wider than normal ones."""
        least = min(self.bits, float(np.min(self.equal, initial=math.inf)))
        return 0 < least < _NORMAL

    def stretch(self, level: float = 0.95) -> Any:
        """By how much an interval is wider than a normal one."""
        every = (np.asarray(many, dtype=np.float64) for many in (self.bits, self.equal))
        found: FloatArray = np.maximum(*(_stretch(many, level) for many in every))
        return found if found.ndim else float(found)

    def limits(self, value: Any, down: Any, up: Any, level: float) -> tuple[Any, Any]:
        """The interval of a count, from its standard errors downwards and upwards."""
        z = NormalDist().inv_cdf((1 + level) / 2) * self.stretch(level)
        return self.whole(value - z * down, value + z * up)

    def whole(self, low: Any, high: Any) -> tuple[Any, Any]:
        """The ends of a count's interval: whole numbers, where few bits are wrong."""
        if not self.few:
            return low, high
        low, high = np.floor(low + _SAME), np.ceil(high - _SAME)
        return (low, high) if np.ndim(low) else (float(low), float(high))


def _stretch(many: FloatArray, level: float) -> FloatArray:
    z = NormalDist().inv_cdf((1 + level) / 2)
    half = 0.5 / (z * np.sqrt(np.maximum(many, 1e-300)))
    found: FloatArray = np.where((many > 1 - level) & (many < _NORMAL), 1 + half, 1.0)
    return found


def wrong_bits(
    noisy: BitRows, channel: Channel, stderr: float = 0.0, jumps: Jumps | None = None
) -> WrongBits:
    """The wrong bits of a count with this standard error and these jumps."""
    bits = (edges_stderr(noisy, channel) / float(channel.weights.gamma)) ** 2
    if jumps is None or not stderr or not _looked_at(noisy, bits):
        return WrongBits(bits)
    matrix = _matrix(noisy)
    relative = jumps(matrix) * (_unit(channel) / stderr)  # so that large counts do not overflow
    fourth = float(np.vdot(_spread(matrix, channel), _fourth_powers(relative))) / 2
    return WrongBits(bits, 1 / fourth if fourth else math.inf)


def node_wrong_bits(
    noisy: BitRows, channel: Channel, stderrs: FloatArray, ratios: FloatArray | None = None
) -> WrongBits:
    """The wrong bits of the triangles at every node, or of them less so many times the pairs of its
    neighbours."""
    bits = (edges_stderr(noisy, channel) / float(channel.weights.gamma)) ** 2
    if not bits or not _looked_at(noisy, bits):
        return WrongBits(math.inf)
    known = np.where(stderrs > 0, stderrs, math.inf)
    matrix, unit = _matrix(noisy), _unit(channel) / known
    spread, degrees, common = _spread(matrix, channel), matrix.sum(axis=1), matrix @ matrix
    less = 0.0 if ratios is None else ratios[:, None] * (degrees[:, None] - matrix)
    # A pair at the node completes triangles with common neighbours; one of two neighbours is one.
    fourth = np.einsum("uv,uv->u", spread, _fourth_powers(unit[:, None] * (common - less)))
    joined = (matrix * common).sum(axis=1) / 2
    on, off = _spreads(channel)
    fourth += (on * joined + off * (degrees * (degrees - 1) / 2 - joined)) * unit**4
    return WrongBits(math.inf, np.where(fourth > 0, 1 / np.maximum(fourth, 1e-300), math.inf))


def _looked_at(noisy: BitRows, bits: float) -> bool:
    return bits < _MANY and noisy.n <= _LARGE


def _matrix(noisy: BitRows) -> FloatArray:
    return noisy.bits(slice(None)).astype(np.float64)


def _unit(channel: Channel) -> float:
    """What a wrong bit does to the unbiased number of edges."""
    return float(channel.weights.gamma)


def _spreads(channel: Channel) -> tuple[float, float]:
    """The variances of the noisy bits of edges and of other pairs."""
    p11, p01 = float(channel.p11), float(channel.p01)
    return p11 * (1 - p11), p01 * (1 - p01)


def _spread(matrix: FloatArray, channel: Channel) -> FloatArray:
    on, off = _spreads(channel)
    found: FloatArray = off + (on - off) * matrix
    np.fill_diagonal(found, 0.0)
    return found


def _fourth_powers(values: FloatArray) -> FloatArray:
    squares: FloatArray = np.square(values)
    return np.square(squares, out=squares)


# --- Jumps ----------------------------------------------------------------------------------------


def star_jumps(k: int) -> Jumps:
    """A pair completes stars with k − 1 of the other edges at either end."""

    def jumps(bits: FloatArray) -> FloatArray:
        # What is at a node without the pair, for a zero and for a one.
        degrees = bits.sum(axis=1).astype(np.int64).tolist()
        without, beside = (
            np.array([float(math.comb(max(d - y, 0), k - 1)) for d in degrees]) for y in (0, 1)
        )
        zero, one = without[:, None] + without, beside[:, None] + beside
        found: FloatArray = np.where(bits > 0, one, zero)
        return found

    return jumps


def triangle_jumps(bits: FloatArray) -> FloatArray:
    """A pair completes triangles with the common neighbours of its ends."""
    return bits @ bits


def between_jumps(members: Sequence[NDArray[np.uint32]]) -> Jumps:
    """The same, where triangles inside one of these groups do not count."""

    def jumps(bits: FloatArray) -> FloatArray:
        found = bits @ bits
        for nodes in members:
            inside = np.ix_(nodes, nodes)
            found[inside] -= bits[inside] @ bits[inside]
        return found

    return jumps


def cycle_jumps(bits: FloatArray) -> FloatArray:
    """A pair completes 4-cycles with the paths of three steps between its ends."""
    degrees = bits.sum(axis=1)
    found: FloatArray = bits @ bits @ bits - bits * (degrees[:, None] + degrees - 1)
    return found


def ratio_jumps(ratio: float) -> Jumps:
    """Three times the triangles less so many times the 2-stars."""
    return lambda bits: 3 * triangle_jumps(bits) - ratio * star_jumps(2)(bits)
