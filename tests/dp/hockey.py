"""The exact divergence between the sealed answers of two neighbouring graphs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from silograph.dp.laplace import NoiseLaw
from silograph.methods.sealed.noise import Answer, SealedNoise

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """One edge more: degrees of its ends and of all others without it, and what it adds."""

    ends: tuple[int, int]
    others: tuple[int, ...]
    added: int

    @property
    def nodes(self) -> int:
        return 2 + len(self.others)


@dataclass(frozen=True)
class Divergence:
    """The largest P(S) − e^ε·P′(S) over sets S of outcomes, in both directions, and P′(Bad)."""

    with_edge: float
    without: float
    bad: float


def divergence(
    noise: SealedNoise, answer: Answer, change: Change, epsilon: float, reach: int
) -> Divergence:
    """All noisy degrees from −reach to reach around the truth, and the count given them.

    What is left out is beyond reach: it adds less than its own probability.
    """
    law = noise.law("degrees")
    one = law.probabilities(reach + 1)
    z = np.arange(-reach, reach + 1)
    without = one[1:-1]
    shifted = one[:-2]  # P(y = d + z) where the truth is d + 1
    highest, chance = largest(change.others, law, reach)
    y_u, y_v = (z + d for d in change.ends)
    top = np.maximum.outer(np.maximum.outer(y_u, y_v), highest)
    slack = noise.slacks[answer]
    bounds = np.clip(top + slack, 1, noise.nodes - 2)
    p0, p1 = np.multiply.outer(without, without), np.multiply.outer(shifted, shifted)
    found = [0.0, 0.0, 0.0]
    for bound in np.unique(bounds):
        # The chance that the others make it this bound, for each pair of ends.
        share = ((bounds == bound) * chance).sum(axis=2)
        total, change_by = noise.law(answer, int(bound)), change.added
        wide = int(40 * float(total.scale)) + change_by
        t = total.probabilities(wide + change_by)
        here, there = t[change_by:-change_by], t[: len(t) - 2 * change_by]
        # Ends with the same weights are counted once.
        pairs, inverse = np.unique(np.stack([p0, p1]).reshape(2, -1), axis=1, return_inverse=True)
        weight = np.bincount(inverse, share.ravel(), minlength=pairs.shape[1])
        kept = weight > 0
        for a, b, w in zip(*pairs[:, kept], weight[kept], strict=True):
            found[0] += w * float(np.maximum(b * there - np.exp(epsilon) * a * here, 0).sum())
            found[1] += w * float(np.maximum(a * here - np.exp(epsilon) * b * there, 0).sum())
        if noise.sensitivity(answer, int(bound)) < change_by:
            found[2] += float((share * p0).sum())
    return Divergence(*found)


def largest(
    degrees: tuple[int, ...], law: NoiseLaw, reach: int
) -> tuple[NDArray[np.int64], Floats]:
    """The law of the largest of independent noisy degrees."""
    low, high = min(degrees) - reach, max(degrees) + reach
    values = np.arange(low, high + 1)
    below = np.ones(len(values))
    for degree in degrees:
        one = law.probabilities(2 * (high - low))
        start = len(one) // 2 + low - degree
        below *= np.minimum(np.cumsum(one)[start : start + len(values)], 1)
    return values, np.diff(below, prepend=0.0)
