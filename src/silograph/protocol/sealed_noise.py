"""What the sealed protocol publishes, and the noise that each silo adds to it.

Plain integers: which scale makes which ε is not known here.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from silograph import _core
from silograph.errors import ArgumentError
from silograph.privacy.laplace import scale_for

__all__ = ["FACTORS", "BoundedNoise", "Noise", "Output"]

#: What an answer is multiplied by inside the shares; its noise is too.
FACTORS = {"edges": 1, "degrees": 1, "two_stars": 2, "triangles": 6}


@dataclass(frozen=True)
class Noise:
    """What each silo adds to an answer: integers of a given law, drawn exactly.

    ``shared``: a Pólya difference, of which ``shares`` sum to one discrete Laplace of this scale;
    ``each``: a whole discrete Laplace.
    """

    kind: Literal["shared", "each"]
    numerator: int
    denominator: int
    shares: int = 1

    def __post_init__(self) -> None:
        _check_kind(self.kind, self.shares)
        if not (1 <= self.numerator <= 1 << 62 and 1 <= self.denominator <= 1 << 62):
            raise ArgumentError("a noise's scale is a ratio of integers from 1 to 2^62")
        if self.numerator > self.denominator << 50:
            raise ArgumentError("a noise's scale is at most 2^50")

    def draw(self, count: int, seed: bytes) -> npt.NDArray[np.int64]:
        """One silo's part."""
        scale = self.numerator, self.denominator
        if self.kind == "each":
            return _core.discrete_laplace(count, *scale, seed)
        return _core.polya_difference(count, *scale, self.shares, seed)

    def fields(self) -> tuple[object, ...]:
        """What the digest of the parameters covers."""
        return self.kind, self.numerator, self.denominator, self.shares


@dataclass(frozen=True)
class BoundedNoise:
    """Noise of scale factor·bound/(numerator/denominator), known when the degrees are.

    bound = min(cap, largest noisy degree + margin), and at least 1. A scale whose parts would not
    fit is rounded up.
    """

    kind: Literal["shared", "each"]
    factor: int
    cap: int
    margin: int
    numerator: int
    denominator: int
    shares: int = 1

    def __post_init__(self) -> None:
        _check_kind(self.kind, self.shares)
        if min(self.factor, self.cap, self.numerator, self.denominator) < 1 or self.margin < 0:
            raise ArgumentError("factor, cap and the ratio must be positive, the margin not less")
        self.at(self.cap)

    def at(self, largest: int) -> Noise:
        """The noise, from the largest noisy degree."""
        bound = max(1, min(self.cap, largest + self.margin))
        scale = scale_for(self.factor * bound, Fraction(self.numerator, self.denominator))
        return Noise(self.kind, scale.numerator, scale.denominator, self.shares)

    def fields(self) -> tuple[object, ...]:
        """What the digest of the parameters covers."""
        given = (self.factor, self.cap, self.margin, self.numerator, self.denominator, self.shares)
        return ("bounded", self.kind, *given)


def _check_kind(kind: str, shares: int) -> None:
    if kind not in ("shared", "each") or shares < 1 or (kind == "each" and shares != 1):
        raise ArgumentError("noise is 'shared' among one silo or more, or of 'each'")


@dataclass(frozen=True)
class Output:
    """One answer, and the noise that it is published with."""

    name: Literal["edges", "degrees", "two_stars", "triangles"]
    noise: Noise | BoundedNoise

    def __post_init__(self) -> None:
        if self.name not in FACTORS:
            raise ArgumentError(f"unknown output {self.name!r}; choose from {', '.join(FACTORS)}")
