"""Privacy loss, always rounded up, and the views that it is stated against.

Every epsilon that the program computes goes through :func:`log_upper`: the logarithm of an exact
ratio of probabilities, rounded **up**. Every epsilon that it prints goes through
:func:`shown_loss`, which rounds up too. A loss belongs to a coalition. A smaller coalition can see
more than a larger one, since its members' own parts need not be hidden from themselves. So the
promise against *at most* t silos is :func:`worst_losses`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from numbers import Real

from silograph.errors import ArgumentError

__all__ = [
    "LARGEST_EPSILON",
    "PUBLISHED",
    "SMALLEST_EPSILON",
    "STEP",
    "View",
    "check_delta",
    "check_epsilon",
    "check_number",
    "check_parties",
    "float_below",
    "least_share",
    "log_upper",
    "ratio_within",
    "shown_loss",
    "union_views",
    "worst_losses",
]


# --- Loss -----------------------------------------------------------------------------------------

#: e^50 is more than 10^21: an answer at such a loss hides nothing.
LARGEST_EPSILON = 50.0
#: At a millionth any answer is all noise; below that, the noise becomes expensive to describe.
SMALLEST_EPSILON = 1e-6

#: Probabilities of noise are multiples of 1/STEP.
STEP = 2**64

# Sixty digits are some forty more than a float has, so rounding up twice has no visible effect.
_CONTEXT = Context(prec=60, rounding=ROUND_CEILING)


def check_epsilon(epsilon: object) -> float:
    """Refuse an epsilon that is not a number, protects nobody, or leaves nothing but noise.

    >>> check_epsilon("3")
    Traceback (most recent call last):
    silograph.errors.ArgumentError: epsilon must be a number, not '3'
    """
    value = check_number("epsilon", epsilon)
    if not (math.isfinite(value) and value > 0):
        raise ArgumentError(f"epsilon must be a positive, finite number, not {epsilon!r}")
    if value > LARGEST_EPSILON:
        raise ArgumentError(
            f"epsilon {value:g} protects nobody: the answer would be the exact truth; choose "
            f"at most {LARGEST_EPSILON:g} (0.1 to 5 is usual)"
        )
    if value < SMALLEST_EPSILON:
        raise ArgumentError(f"epsilon {value:g} is too small: the answer would be all noise")
    return value


def check_delta(delta: object) -> float:
    """Refuse a delta that is not a probability below 1."""
    value = check_number("delta", delta)
    if not 0 <= value < 1:
        raise ArgumentError(f"delta must be at least 0 and less than 1, not {delta!r}")
    return value


def check_number(name: str, value: object) -> float:
    """Refuse a value that is not a number; a number too large for a float becomes infinite."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ArgumentError(f"{name} must be a number, not {value!r}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def shown_loss(value: float, *, left: bool = False) -> str:
    """A privacy loss with six digits, rounded up; the rest of a budget (``left``) is rounded down.

    >>> [shown_loss(x) for x in (2.99999999999, 1.2345671, math.inf, 1e-9)]
    ['3', '1.23457', '∞', '1e-9']
    >>> shown_loss(1.2345671, left=True)
    '1.23456'
    """
    if math.isinf(value):
        return "∞"
    context = Context(prec=6, rounding=ROUND_FLOOR if left else ROUND_CEILING)
    shown = context.create_decimal(Decimal(repr(float(value)))).normalize()
    return f"{shown:f}" if -5 < shown.adjusted() < 6 else f"{shown:e}"


def worst_losses(losses: Mapping[int, float]) -> dict[int, float]:
    """From the losses against exactly t silos, the losses against at most t: a running maximum.

    >>> worst_losses({0: 1.0, 1: 0.5, 2: 1.25})
    {0: 1.0, 1: 1.0, 2: 1.25}
    """
    found: dict[int, float] = {}
    worst = 0.0
    for t in sorted(losses):
        worst = found[t] = max(worst, losses[t])
    return found


def float_below(x: Fraction) -> float:
    """The largest float that is at most x.

    >>> float_below(Fraction(1, 10)), 0.1
    (0.09999999999999999, 0.1)
    """
    value = float(x)
    return value if Fraction(value) <= x else math.nextafter(value, -math.inf)


def log_upper(ratio: Fraction) -> float:
    """The smallest float that is certainly at least ln(ratio).

    >>> log_upper(Fraction(1))
    0.0
    >>> log_upper(Fraction(3)) >= math.log(3)
    True
    """
    if ratio == 1:
        return 0.0
    quotient = _CONTEXT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    # ln rounds to nearest in every context; one step up makes the result an upper bound.
    bound = _CONTEXT.next_plus(_CONTEXT.ln(quotient))
    value = float(bound)
    return value if Decimal(value) >= bound else math.nextafter(value, math.inf)


def least_share(fits: Callable[[Fraction], bool], most: Fraction) -> Fraction | None:
    """The smallest k/2^64 below ``most`` that fits, if everything larger fits as well.

    Noise is rounded **up** this way: the noise that is drawn never costs more than was requested.
    Returns None if nothing fits.

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
    """Whether ln(ratio) ≤ epsilon for certain; epsilon is the exact value of the float."""
    return log_upper(ratio) <= epsilon


# --- Views: the possible observers, and the loss against each of them -----------------------------
#
# An epsilon is meaningless without a view. The same release can be epsilon-private against its
# coordinator and not private at all against a silo that knows part of the noise.

#: The view of anyone who sees only the published release.
PUBLISHED = "published"


@dataclass(frozen=True)
class View:
    """An observer, and the certified (epsilon, delta) against this observer.

    ``name`` is ``"published"``, ``"coordinator"``, ``"coordinator + 2 silos"``, ``"1 silo"`` …

    Examples
    --------
    >>> print(View("coordinator", 1.5))
    coordinator: ε = 1.5
    >>> print(View("1 silo", 4.0, claimed=False))
    1 silo: ε = 4 (not claimed)
    """

    name: str
    epsilon: float
    delta: float = 0.0
    #: False if the protocol does not claim to limit this observer to the requested epsilon. The
    #: view is shown nevertheless, so that nobody assumes a promise.
    claimed: bool = True

    def __post_init__(self) -> None:
        if not self.name:
            raise ArgumentError("a view needs a name")
        if math.isnan(self.epsilon) or self.epsilon < 0:
            raise ArgumentError(f"view {self.name!r}: epsilon must be at least 0")
        if not 0 <= self.delta <= 1:
            raise ArgumentError(f"view {self.name!r}: delta must be from 0 to 1")

    def __str__(self) -> str:
        delta = f", δ = {shown_loss(self.delta)}" if self.delta else ""
        beyond = "" if self.claimed else " (not claimed)"
        return f"{self.name}: ε = {shown_loss(self.epsilon)}{delta}{beyond}"


def check_parties(silos: int, collusion: int) -> None:
    """Refuse impossible numbers of silos and colluders."""
    for name, value in (("silos", silos), ("collusion", collusion)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise ArgumentError(f"{name} must be an integer, not {value!r}")
    if not 2 <= silos <= 64:
        raise ArgumentError(f"there must be 2 to 64 silos, not {silos}")
    if not 0 <= collusion < silos:
        raise ArgumentError(f"collusion must be from 0 to {silos - 1} for {silos} silos")


def union_views(silos: int, collusion: int, epsilon: Callable[[int], float]) -> tuple[View, ...]:
    """The views of a union protocol whose loss depends on the number of honest silos."""
    found = [View("coordinator", epsilon(silos))]
    if collusion:
        group = f"{collusion} silo{'s' if collusion > 1 else ''}"
        loss = epsilon(silos - collusion)
        found += [View(f"coordinator + {group}", loss), View(f"{group} + release", loss)]
    else:
        found.append(View("1 silo + release", epsilon(silos - 1), claimed=False))
    return tuple(found)
