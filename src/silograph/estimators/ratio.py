"""Intervals for the ratio of two estimates.

Model
    Two estimates with normal errors, their variances and their covariance. A ratio r is believed
    if the data do not contradict top − r·bottom = 0.
Bias
    The interval needs no bias correction: it never divides one estimate by the other.
Cost
    A quadratic equation.
Reference
    E. C. Fieller, Some problems in interval estimation, JRSS B 16 (1954).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from silograph.estimators.display import NO_ANSWER

__all__ = ["RATIO_NOTE", "RatioAnswer", "cut", "fieller", "said_share", "share"]

RATIO_NOTE = "a ratio of two unbiased counts: consistent, not unbiased"
NO_RATIO_NOTE = f"{NO_ANSWER}: the noise leaves every ratio possible; a larger ε would help"


def fieller(
    top: float,
    top_variance: float,
    bottom: float,
    bottom_variance: float,
    covariance: float = 0.0,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """The interval of the ratios that two estimates do not contradict.

    Parameters
    ----------
    top, bottom
        The estimates of the numerator and of the denominator.
    top_variance, bottom_variance, covariance
        The variances of the estimates, and their covariance.
    level
        The share of intervals that cover the true ratio.

    Returns
    -------
    tuple or None
        The ends of the interval. None if the denominator cannot be told from zero at this level:
        then no bounded interval holds its promise.

    Examples
    --------
    >>> low, high = fieller(30.0, 9.0, 100.0, 16.0)
    >>> round(low, 3), round(high, 3)
    (0.238, 0.365)
    >>> fieller(30.0, 9.0, 100.0, 3000.0) is None
    True
    """
    if not all(map(math.isfinite, (top, top_variance, bottom, bottom_variance, covariance))):
        return None
    if bottom == 0:
        return None
    # (ratio − r)² ≤ z²·Var(top − r·bottom)/bottom², as square·r² − 2·middle·r + last ≤ 0. In units
    # of the denominator, so that large counts do not overflow.
    ratio, unit = top / bottom, NormalDist().inv_cdf((1 + level) / 2) ** 2 / bottom / bottom
    square = 1 - unit * bottom_variance
    if square <= 0:
        return None
    middle = ratio - unit * covariance
    last = ratio**2 - unit * top_variance
    half = math.sqrt(max(middle**2 - square * last, 0.0))
    return (middle - half) / square, (middle + half) / square


def share(found: tuple[float, float] | None) -> tuple[float, float] | None:
    """The part of an interval that a share from 0 to 1 can be in; None if that is all of it.

    >>> share((-0.2, 0.3)), share((1.1, 1.3)), share((-2.0, 3.0)), share(None)
    ((0.0, 0.3), (0.9, 1.0), None, None)
    """
    return cut(found, 0.0, 1.0)


def cut(found: tuple[float, float] | None, least: float, most: float) -> tuple[float, float] | None:
    """The part of an interval between two numbers; None if that is all there is between them.

    >>> cut((-2.0, 0.5), -1.0, 1.0), cut((-2.0, 3.0), -1.0, 1.0)
    ((-1.0, 0.5), None)
    """
    if found is None:
        return None
    low, high = found
    # An interval that is wholly outside is kept from shrinking to a point at the end.
    half = (high - low) / 2
    low, high = min(low, most - half), max(high, least + half)
    ends = max(low, least), min(high, most)
    return None if ends == (least, most) else ends


@dataclass(frozen=True)
class RatioAnswer:
    """The parts of a ratio: unbiased estimates, variances and their covariance."""

    top: float
    bottom: float
    top_variance: float
    bottom_variance: float
    covariance: float

    @property
    def value(self) -> float:
        """The ratio; NaN if the noise leaves nothing to divide by."""
        return self.top / self.bottom if self.bottom > 0 else math.nan

    @property
    def stderr(self) -> float:
        """The standard error of its linear part."""
        if self.bottom <= 0:
            return math.inf
        ratio = self.value
        variance = self.top_variance + ratio**2 * self.bottom_variance
        return math.sqrt(max(variance - 2 * ratio * self.covariance, 0.0)) / self.bottom

    def stretched(self, by: float) -> "RatioAnswer":
        """The same with errors that are larger by this factor."""
        spreads = (self.top_variance, self.bottom_variance, self.covariance)
        return RatioAnswer(self.top, self.bottom, *(by**2 * spread for spread in spreads))

    def ends(self, least: float, most: float, level: float = 0.95) -> tuple[float, float] | None:
        """Fieller's interval, cut to what is possible; None if that is all of it."""
        if self.bottom <= 0:
            return None
        found = fieller(
            self.top, self.top_variance, self.bottom, self.bottom_variance, self.covariance, level
        )
        return cut(found, least, most)


def said_share(
    value: float,
    ends: tuple[float, float] | None,
    note: str = RATIO_NOTE,
    limits: Callable[[float], tuple[float, float] | None] | None = None,
) -> tuple[float, dict[str, Any]]:
    """A share as it is answered: cut to what is possible, with its note and its interval.

    Without ends the noise leaves everything possible. ``limits`` gives the ends at other levels.

    >>> said_share(1.25, (0.5, 1.0), "")
    (1.0, {'note': '; the noise gave 1.25, which is cut to what is possible', 'ends': (0.5, 1.0)})
    """
    if ends is None:
        note = NO_RATIO_NOTE
    if not 0 <= value <= 1 and not math.isnan(value):
        note += f"; the noise gave {value:.4g}, which is cut to what is possible"
        value = min(max(value, 0.0), 1.0)
    said: dict[str, Any] = {"note": note, "ends": ends or (0.0, 1.0)}
    if limits is not None:
        said["limits"] = lambda level: limits(level) or (0.0, 1.0)
    return value, said
