"""The baseline as mended, drawn in the clear: 2-stars and triangles from the reports of all silos.

Weights of triangles are rounded to so few binary digits that every sum of a matrix product is exact
in float64: the result does not depend on the order in which a machine adds. What is rounded off is
less than 2^−18 of the largest weight, far below the noise. 2-stars are exact fractions.
**For experiments only.**
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from silograph import _core
from silograph.crypto.limbs import limbs
from silograph.experiments.federations import Federation
from silograph.graph.bitrows import BitRows
from silograph.graph.seeds import seed_bytes
from silograph.privacy.channel import Channel
from silograph.queries.report_counts import ReportCounts, ReportWeights
from silograph.queries.report_walks import ReportWalks

__all__ = ["RoundedWeights", "draw_reports", "triangles", "two_stars"]


@dataclass(frozen=True)
class RoundedWeights(ReportWeights):
    """Weights of few binary digits, so that products of rows of n of them are exact.

    >>> rounded = RoundedWeights(Channel("3/4", "1/4"), 2, nodes=1000)
    >>> float(rounded.weights[0]), rounded.digits
    (-1.25, 21)
    """

    nodes: int = 0

    @property
    def digits(self) -> int:
        """n·2^(2·digits) is at most 2^53."""
        return (53 - (self.nodes - 1).bit_length()) // 2

    @cached_property
    def weights(self) -> tuple[Fraction, ...]:
        """w_0 … w_m, to the nearest multiple of a power of two."""
        exact = ReportWeights(self.channel, self.silos).weights
        largest = max(abs(w) for w in exact)
        # The least e with |w| ≤ 2^e; what remains of a weight has that many digits.
        exponent = math.frexp(float(largest))[1] - self.digits
        unit = Fraction(2) ** exponent
        return tuple(round(w / unit) * unit for w in exact)


def draw_reports(federation: Federation, channel: Channel, seed: int) -> ReportCounts:
    """The reports of all silos, each through the channel, as predictable as their seed."""
    p11, p01 = limbs(channel.p11), limbs(channel.p01)
    return ReportCounts.of(
        [
            BitRows(_core.draw_rows(federation.n, silo.pairs, p11, p01, seed_bytes(label, seed)))
            for label, silo in zip(_labels(federation.silos), federation.silos, strict=True)
        ]
    )


def _labels(silos: Sequence[object]) -> list[str]:
    return [f"report of silo {place}" for place in range(1, len(silos) + 1)]


def two_stars(counts: ReportCounts, weights: ReportWeights) -> Fraction:
    """Σ over nodes of ((Σw)² − Σw²)/2 over their pairs, exactly."""
    den = math.lcm(*(w.denominator for w in weights.weights))
    ones = [int(w * den) for w in weights.weights]
    squares = [w * w for w in ones]
    total = 0
    for row, many in Counter(map(tuple, counts.profiles.tolist())).items():
        degree = sum(c * w for c, w in zip(row, ones, strict=True))
        total += many * (degree**2 - sum(c * s for c, s in zip(row, squares, strict=True)))
    return Fraction(total, 2 * den**2)


def triangles(counts: ReportCounts, channel: Channel) -> float:
    """tr(W³)/6 of the rounded weights."""
    return ReportWalks(counts, RoundedWeights(channel, counts.silos, counts.n)).triangles
