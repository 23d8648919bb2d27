"""Privacy loss as a float that is never too small.

Every epsilon that the program prints goes through :func:`log_upper`: the logarithm of an exact
ratio of probabilities, rounded **up**.
"""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from silograph.errors import ArgumentError

__all__ = [
    "STEP",
    "check_epsilon",
    "float_below",
    "least_share",
    "log_upper",
    "ratio_within",
]

#: Probabilities of noise are multiples of 1/STEP.
STEP = 2**64

# Sixty digits: some forty more than a float shows, so rounding up twice costs nothing visible.
_CONTEXT = Context(prec=60, rounding=ROUND_CEILING)


def check_epsilon(epsilon: float) -> float:
    """Refuse an epsilon that is not a positive, finite number."""
    value = float(epsilon)
    if not (math.isfinite(value) and value > 0):
        raise ArgumentError(f"epsilon must be a positive, finite number, not {epsilon!r}")
    return value


def float_below(x: Fraction) -> float:
    """The largest float that is at most x.

    >>> float_below(Fraction(1, 10)), 0.1
    (0.09999999999999999, 0.1)
    """
    value = float(x)
    return value if Fraction(value) <= x else math.nextafter(value, -math.inf)


def log_upper(ratio: Fraction) -> float:
    """The least float that is certainly at least ln(ratio).

    >>> log_upper(Fraction(1))
    0.0
    >>> log_upper(Fraction(3)) >= math.log(3)
    True
    """
    if ratio == 1:
        return 0.0
    quotient = _CONTEXT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    # ln is correctly rounded to nearest whatever the context says; one step up makes it a bound.
    bound = _CONTEXT.next_plus(_CONTEXT.ln(quotient))
    value = float(bound)
    return value if Decimal(value) >= bound else math.nextafter(value, math.inf)


def least_share(fits: Callable[[Fraction], bool], most: Fraction) -> Fraction | None:
    """The least k/2^64 below ``most`` that fits, where everything larger fits as well.

    Noise is rounded **up** this way: what is drawn never costs more than what was asked for.
    None where nothing fits.

    >>> third = least_share(lambda p: 3 * p >= 1, Fraction(1))
    >>> 0 < third - Fraction(1, 3) < Fraction(1, STEP)
    True
    """
    low, high = 0, int(most * STEP)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(Fraction(middle, STEP)) else (middle, high)
    return Fraction(high, STEP) if high < most * STEP else None


def ratio_within(ratio: Fraction, epsilon: float) -> bool:
    """Whether ln(ratio) ≤ epsilon for certain (epsilon taken as the exact value of the float)."""
    return log_upper(ratio) <= epsilon
