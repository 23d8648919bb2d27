"""Intervals where the noise leaves nearly all bits right.

Model
    A wrong bit moves a count by a jump, such as the common neighbours of its ends for triangles. If
    only a few bits are wrong, the law of the count has a few points, and a normal interval misses
    some of them.
Interval
    Normal limits and half a jump more on both sides, as continuity corrections have it. Jumps
    differ: a hub's edge moves 2-stars by hundreds, others by a few. The one that counts is that of
    an equal law with equal jumps, of the same variance Σ v·c² and fourth cumulant Σ v·c⁴. Its
    square is their ratio. The number of edges, whose jumps are equal, has exact limits.
Cost
    Nothing where many bits are wrong; products of small matrices otherwise.
"""

import math
from collections.abc import Callable

import numpy as np

from silograph.dp.channel import Channel
from silograph.estimators.degrees import edges_limits, edges_stderr, edges_value
from silograph.estimators.estimate import Z95, FloatArray
from silograph.graph.bits import BitRows

__all__ = ["Jumps", "cycle_jumps", "star_jumps", "stretch", "triangle_jumps"]

#: How much a count changes with each pair, from the matrix of a graph's bits.
Jumps = Callable[[FloatArray], FloatArray]

# Where limits are wider than normal ones by less than this factor, the law is normal enough.
_NORMAL = 1.05
# With more wrong bits than this, or on larger graphs, no jump is rare enough to matter: even a
# hub's edges are wrong often.
_MANY, _LARGE = 400, 1024


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


def cycle_jumps(bits: FloatArray) -> FloatArray:
    """A pair completes 4-cycles with the paths of three steps between its ends."""
    degrees = bits.sum(axis=1)
    found: FloatArray = bits @ bits @ bits - bits * (degrees[:, None] + degrees - 1)
    return found


def stretch(
    noisy: BitRows, channel: Channel, stderr: float = 0.0, jumps: Jumps | None = None
) -> float:
    """By how much a 95 % interval is wider than a normal one, for a count with these jumps.

    Without jumps it is that of the number of edges, which is a guess for all other answers.
    """
    value, normal = float(edges_value(noisy, channel)), Z95 * edges_stderr(noisy, channel)
    if not normal:
        return 1.0
    one = float(channel.weights.gamma)  # what a wrong bit does to the number of edges
    exact = max(abs(end - value) for end in edges_limits(noisy, channel))
    found = max(exact, normal + one / 2) / normal
    wrong = (normal / Z95 / one) ** 2
    if jumps is not None and stderr and wrong < _MANY and noisy.n <= _LARGE:
        bits = noisy.bits(np.arange(noisy.n, dtype=np.uint32)).astype(np.float64)
        p11, p01 = float(channel.p11), float(channel.p01)
        spread = np.where(bits > 0, p11 * (1 - p11), p01 * (1 - p01)) * (1 - np.eye(noisy.n))
        # In units of the standard error, so that large counts do not overflow.
        fourth = float((spread * (one * jumps(bits) / stderr) ** 4).sum()) / 2
        found = max(found, 1 + math.sqrt(fourth) / 2 / Z95)
    return found if found > _NORMAL else 1.0
