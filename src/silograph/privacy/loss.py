"""Privacy loss as a float that is never too small.

Every epsilon that the program prints goes through :func:`log_upper`: the logarithm of an exact
ratio of probabilities, rounded **up**.
"""

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from silograph.errors import ArgumentError

__all__ = ["check_epsilon", "log_upper", "ratio_within"]

# Sixty digits: some forty more than a float shows, so rounding up twice costs nothing visible.
_CONTEXT = Context(prec=60, rounding=ROUND_CEILING)


def check_epsilon(epsilon: float) -> float:
    """Refuse an epsilon that is not a positive, finite number."""
    value = float(epsilon)
    if not (math.isfinite(value) and value > 0):
        raise ArgumentError(f"epsilon must be a positive, finite number, not {epsilon!r}")
    return value


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


def ratio_within(ratio: Fraction, epsilon: float) -> bool:
    """Whether ln(ratio) ≤ epsilon for certain (epsilon taken as the exact value of the float)."""
    return log_upper(ratio) <= epsilon
