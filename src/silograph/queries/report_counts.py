"""How many of all silos' reports are ones, pair by pair, and what such a count weighs.

Model
    m silos report each pair through one channel, independently. Of a pair's reports only the
    number j of ones matters. The product of 1 − a(y) over the reports has the mean
    Π (1 − x_i) = 1 − x, so w_j = 1 − (1−α)^j·(1−β)^(m−j) is unbiased for the union bit x,
    whatever the number of holders. (The union of the reports alone cannot be calibrated: its law
    depends on how many silos hold the pair.)
Variance
    With h holders E[(1−w)²] = v1^h·(1+v0)^(m−h), so Var(w) = v1^h·(1+v0)^(m−h) − [h = 0]. As x is
    a bit, x² = x, and w² − w is an unbiased estimate of that variance, again whatever h is.
Memory
    n² bytes for the counts (16 MB at n = 4,039), three times that while they are made; sums go
    over blocks of rows at 8 bytes an entry.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from silograph.errors import ArgumentError
from silograph.graph.bitrows import BitRows
from silograph.privacy.channel import Channel
from silograph.queries.estimate import FloatArray

__all__ = ["BLOCK_ROWS", "ReportCounts", "ReportWeights"]

#: Rows that are unpacked to floats at once.
BLOCK_ROWS = 1024
# What the diagonal holds: no pair of at most 64 silos has so many ones.
_NO_PAIR = 255


@dataclass(frozen=True)
class ReportWeights:
    """The weight w_j of a pair with j ones among m reports, and its variance.

    >>> [str(w) for w in ReportWeights(Channel("3/4", "1/4"), 2).weights]
    ['-5/4', '7/4', '3/4']
    """

    channel: Channel
    silos: int

    @cached_property
    def weights(self) -> tuple[Fraction, ...]:
        """w_0 … w_m."""
        one, zero = 1 - self.channel.alpha, 1 - self.channel.beta
        return tuple(1 - one**j * zero ** (self.silos - j) for j in range(self.silos + 1))

    @cached_property
    def spreads(self) -> tuple[Fraction, ...]:
        """s_j = w_j² − w_j, the unbiased estimate of the variance of a pair with j ones."""
        return tuple(w * w - w for w in self.weights)

    def variance(self, holders: int) -> Fraction:
        """The variance of the weight of a pair that so many silos hold."""
        v = self.channel.weights
        square = v.v1**holders * (1 + v.v0) ** (self.silos - holders)
        return square if holders else square - 1

    @cached_property
    def variances(self) -> tuple[Fraction, ...]:
        """The variances for 0, 1 … m holders."""
        return tuple(self.variance(h) for h in range(self.silos + 1))


class ReportCounts:
    """For each pair of n nodes the number of ones among m reports.

    >>> one = BitRows.from_pairs(3, np.array([[0, 1], [1, 2]], dtype=np.uint32))
    >>> two = BitRows.from_pairs(3, np.array([[0, 1]], dtype=np.uint32))
    >>> counts = ReportCounts.of([one, two])
    >>> counts.totals.tolist(), counts.union.edges
    ([1, 1, 1], 2)
    """

    def __init__(self, matrix: NDArray[np.uint8], silos: int) -> None:
        """From a symmetric matrix; its diagonal is ignored."""
        n = len(matrix)
        if matrix.shape != (n, n) or not np.array_equal(matrix, matrix.T):
            raise ArgumentError("counts must be a symmetric matrix")
        matrix = np.array(matrix, dtype=np.uint8)
        np.fill_diagonal(matrix, 0)
        if int(matrix.max(initial=0)) > silos:
            raise ArgumentError(f"counts of {silos} reports must be from 0 to {silos}")
        np.fill_diagonal(matrix, _NO_PAIR)
        matrix.flags.writeable = False
        self._matrix = matrix
        self.silos = silos

    @classmethod
    def of(cls, reports: Sequence[BitRows]) -> "ReportCounts":
        """From the noisy graphs of all silos."""
        sizes = {report.n for report in reports}
        if len(sizes) != 1:
            raise ArgumentError(
                f"reports must be of the same nodes; these have {sorted(sizes)} nodes"
            )
        n = sizes.pop()
        matrix = np.zeros((n, n), dtype=np.uint8)
        for report in reports:
            for start in range(0, n, BLOCK_ROWS):
                block = slice(start, start + BLOCK_ROWS)
                matrix[block] += report.bits(block)
        return cls(matrix, len(reports))

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self._matrix)

    @cached_property
    def profiles(self) -> NDArray[np.int64]:
        """For each node how many of its n − 1 pairs have 0, 1 … m ones."""
        classes = range(self.silos + 1)
        return np.stack([np.count_nonzero(self._matrix == j, axis=1) for j in classes], axis=1)

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """How many pairs have 0, 1 … m ones."""
        totals: NDArray[np.int64] = self.profiles.sum(axis=0) // 2
        return totals

    @cached_property
    def union(self) -> BitRows:
        """The union of all reports: an edge wherever anyone reported one."""
        found = []
        for start in range(0, self.n, BLOCK_ROWS):
            above = np.triu(self._matrix[start : start + BLOCK_ROWS] > 0, start + 1)
            found.append(np.argwhere(above).astype(np.uint32))
            found[-1][:, 0] += start
        pairs = np.concatenate(found) if found else np.empty((0, 2), dtype=np.uint32)
        return BitRows.from_pairs(self.n, pairs)

    def take(
        self,
        table: Sequence[Fraction] | FloatArray,
        rows: slice | NDArray[np.uint32],
        columns: slice = slice(None),
    ) -> FloatArray:
        """The chosen rows (and columns of them), each count j replaced by table[j], with zeros on
        the diagonal."""
        values = np.zeros(256)
        values[: self.silos + 1] = [float(x) for x in table]
        return values[self._matrix[rows, columns]]

    def class_product(self, ones: int, f: FloatArray) -> float:
        """Σ f(u)·f(v) over the pairs with so many ones."""
        total = 0.0
        for start in range(0, self.n, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            total += float(f[block] @ ((self._matrix[block] == ones) @ f))
        return total / 2
