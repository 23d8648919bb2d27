"""The interval of a ratio of two noisy numbers.

A ratio of two normal variables is far from normal where the noise of the lower one is not small: it
has no mean, and its standard error says little. Fieller's interval needs no such thing. A ratio R
is in it if top − R·bottom, whose mean is zero for the true ratio, is within z of its own standard
errors. Where the lower number cannot be told from zero, every ratio, or every ratio but for an
inner piece, is possible: then there is no interval.

Reference
    E. C. Fieller, Some problems in interval estimation, J. R. Stat. Soc. B 16 (1954).
"""

import math
from statistics import NormalDist

__all__ = ["fieller"]


def fieller(
    top: float,
    top_variance: float,
    bottom: float,
    bottom_variance: float,
    covariance: float,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Fieller's interval of top/bottom, or None where it is not bounded.

    >>> fieller(6.0, 0.0, 3.0, 0.0, 0.0)
    (2.0, 2.0)
    >>> fieller(6.0, 1.0, 1.0, 1.0, 0.0) is None
    True
    """
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    # The ratios with square·R² − 2·middle·R + constant ≤ 0. Numbers are in units of the lower one,
    # so that large counts do not overflow.
    if bottom == 0:
        return None
    ratio, unit = top / bottom, z2 / bottom / bottom
    square = 1 - unit * bottom_variance
    if square <= 0:
        return None
    middle = ratio - unit * covariance
    constant = ratio**2 - unit * top_variance
    # Never negative but for rounding, since the ratio itself is always possible.
    root = math.sqrt(max(middle**2 - square * constant, 0.0))
    return (middle - root) / square, (middle + root) / square
