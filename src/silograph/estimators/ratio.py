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
from statistics import NormalDist

__all__ = ["fieller"]


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
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    # (top − r·bottom)² ≤ z²·Var(top − r·bottom), as square·r² − 2·middle·r + last ≤ 0.
    square = bottom**2 - z2 * bottom_variance
    middle = top * bottom - z2 * covariance
    last = top**2 - z2 * top_variance
    if square <= 0:
        return None
    half = math.sqrt(max(middle**2 - square * last, 0.0))
    return (middle - half) / square, (middle + half) / square
