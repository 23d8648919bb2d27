"""Integer noise: discrete Laplace variables, whole or in shares, and their privacy loss.

What
    Each of m parties adds a **share**: the difference of two independent Pólya variables (negative
    binomial, shape 1/h, p = e^(−1/scale)). Shapes add: k shares together are the difference of two
    negative binomial variables of shape k/h, and h of them are one discrete Laplace variable,
    P(z) ∝ e^(−|z|/scale). With h = 1 every party adds a whole one.
Guarantee
    Against anyone who knows all shares but k, a number that changes by ``shift`` has a loss of
    sup_z ln P(z)/P(z+shift), where P has shape κ = k/h.

    κ ≥ 1: exactly shift/scale. The noise is the sum of a discrete Laplace variable and an
    independent variable. Adding the latter is post-processing, so the loss is at most shift/scale;
    and P(z)/P(z+1) tends to e^(1/scale) for large z.

    κ < 1: exactly ln P(0)/P(shift), which is more. Proof: a negative binomial law of shape κ < 1
    is a mixture of geometric sequences (its k-th coefficient is the k-th moment of a Beta(κ, 1−κ)
    variable). So P(z) = Σ_j nb(j)·nb(j+z), as a function of z ≥ 0, is such a mixture too. It
    decreases and is log-convex, so P(z)/P(z+shift) is largest at z = 0 among z ≥ 0; for
    −shift < z < 0 it is P(|z|)/P(shift−|z|) ≤ P(0)/P(shift); below that it is less than 1.
How the loss is bounded
    The values of P are Fourier coefficients of (1 − 2p·cos θ + p²)^−κ, so ρ_s = P(s)/P(s−1)
    satisfies ρ_s = (s−1+κ)/((p+1/p)·s − (s+1−κ)·ρ_{s+1}), which grows with ρ_{s+1} and falls with
    p+1/p. The recursion starts at a large s with the lower bound p·(s−1+κ)/s
    (nb(j+s)/nb(j+s−1) = p·(j+s−1+κ)/(j+s) is smallest at j = 0) and is rounded down at every step.
    So it gives lower bounds of all ρ. P(0)/P(shift) is the product of their reciprocals. The
    recursion takes a bounded number of steps. If the shift is larger, ρ_s ≥ p·(s−1+κ)/s is used for
    the rest, whose product is a ratio of gamma functions with Kershaw's bounds
    (x + κ/2)^(1−κ) < Γ(x+1)/Γ(x+κ) < (x − ½ + √(κ+¼))^(1−κ).
Reference
    A. Ghosh, T. Roughgarden, M. Sundararajan, Universally utility-maximizing privacy mechanisms
    (2009), for the discrete Laplace law; S. Goryczka, L. Xiong (2017), for its shares; D. Kershaw,
    Some extensions of W. Gautschi's inequalities for the gamma function (1983).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.dp.loss import log_upper
from silograph.errors import ArgumentError

__all__ = ["NoiseLaw", "Share", "round_up", "scale_for"]

# The limits of the samplers (crates/core/src/dp/laplace.rs and polya.rs).
_LARGEST_PART = 2**62
_LARGEST_SCALE = 2**50
_MOST_SHARES = 64
# The fractional bits of the recursion for ρ, and how far out it starts.
_BITS = 128
_REACH = 24
_MOST_STEPS = 40_000
# The longest table of a law, and the longest table whose tails are summed.
_MOST_VALUES = 30_000_000
_MOST_SUMMED = 150_000
# The number of fractional bits of λ.
_SPREAD_BITS = 320
_PRECISE = Context(prec=180)


def scale_for(sensitivity: int, epsilon: Fraction | float) -> Fraction:
    """The smallest scale that costs at most epsilon and that the samplers accept.

    It is sensitivity/ε if numerator and denominator are at most 2^62; otherwise the smallest such
    fraction above it.

    >>> scale_for(2, 0.5)
    Fraction(4, 1)
    >>> scale_for(1, Fraction(1, 3) / 2**70)
    Traceback (most recent call last):
    silograph.errors.ArgumentError: epsilon 2.8e-22 is too small: the answer would be all noise
    """
    epsilon = Fraction(epsilon)
    if sensitivity < 1 or epsilon <= 0:
        raise ArgumentError("noise needs a positive sensitivity and a positive epsilon")
    wanted = sensitivity / epsilon
    if wanted > _LARGEST_SCALE:
        raise ArgumentError(
            f"epsilon {float(epsilon):.2g} is too small: the answer would be all noise"
        )
    return _least_above(wanted)


def round_up(exact: Fraction) -> float:
    """The smallest float that is not less than the exact value.

    >>> round_up(Fraction(1, 3)) > 1 / 3 >= Fraction(1, 3) - Fraction(1, 2**54)
    True
    """
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)


def _least_above(wanted: Fraction) -> Fraction:
    """The smallest fraction ≥ wanted with parts up to 2^62, found in the Stern–Brocot tree.

    Every fraction between two neighbours a/b < c/d of the tree has parts of at least a+c and b+d.
    If these are too large, c/d is the answer.
    """
    a, b, c, d = 0, 1, 1, 0
    while above := c - wanted * d:
        # Mediants below wanted replace a/b, the others c/d; take many equal steps at once.
        right = min(math.ceil((wanted * b - a) / above) - 1, _room(a, b, c, d))
        a, b = a + right * c, b + right * d
        left = min(math.floor(above / (wanted * b - a)), _room(c, d, a, b))
        c, d = c + left * a, d + left * b
        if not (right or left):
            break
    return Fraction(c, d)


def _room(a: int, b: int, c: int, d: int) -> int:
    """How often c/d can be added to a/b."""
    rooms = [(_LARGEST_PART - x) // y for x, y in ((a, c), (b, d)) if y]
    return max(min(rooms), 0)


@dataclass(frozen=True)
class Share:
    """What one party draws: one of ``shares`` shares of a discrete Laplace variable of this scale.

    These are plain integers, which do not know what they cost: what the parties of a run sign.

    >>> Share(32, 1, 3).draw(4, bytes(32)).shape
    (4,)
    """

    numerator: int
    denominator: int
    shares: int

    def __post_init__(self) -> None:
        if not all(1 <= part <= _LARGEST_PART for part in (self.numerator, self.denominator)):
            raise ArgumentError("a noise's scale is a ratio of integers from 1 to 2^62")
        if self.numerator > self.denominator * _LARGEST_SCALE:
            raise ArgumentError("a noise's scale is at most 2^50")
        if not 1 <= self.shares <= _MOST_SHARES:
            raise ArgumentError(f"a noise has 1 to {_MOST_SHARES} shares")

    def draw(self, count: int, seed: bytes) -> NDArray[np.int64]:
        """One party's shares of so many independent noises."""
        return _core.polya_difference(count, self.numerator, self.denominator, self.shares, seed)


@dataclass(frozen=True)
class NoiseLaw:
    """The law of the sum of ``parties`` shares, ``shares`` of which make one discrete Laplace.

    >>> law = NoiseLaw(Fraction(2), shares=3, parties=4)
    >>> law.loss(honest=3, shift=1), round(law.loss(honest=2, shift=1), 4)
    (0.5, 0.8563)
    >>> round(law.stderr, 4)
    3.2322
    """

    scale: Fraction
    shares: int
    parties: int

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.shares < 1 or self.parties < 1:
            raise ArgumentError("noise needs a positive scale, shares and parties")

    @property
    def shape(self) -> Fraction:
        """parties/shares: the noise in units of whole discrete Laplace variables."""
        return Fraction(self.parties, self.shares)

    def summed(self, count: int) -> "NoiseLaw":
        """The law of the sum of this many independent noises."""
        return NoiseLaw(self.scale, self.shares, self.parties * count)

    # -- privacy -----------------------------------------------------------------------------

    def loss(self, honest: int, shift: int, steps: int = _MOST_STEPS) -> float:
        """The certified loss of a number that changes by ``shift``, if the shares of ``honest``
        parties are unknown. ``steps`` bounds the work; fewer steps give a less tight bound.

        The loss grows with the shift, and falls as the scale grows. At equal shift/scale it grows
        with the shift: P(0)/P(s) = e^(s/scale)/E[e^−v] where v has the density
        [sinh(v/2s)·sinh((v/2 + s/scale)/s)]^−κ, up to a constant; since sinh(x/s)/sinh(x/s′) grows
        with x for s < s′, a larger s makes v larger.
        """
        if not 1 <= honest <= self.parties:
            raise ArgumentError(f"honest must be from 1 to {self.parties}, not {honest!r}")
        if shift < 0:
            raise ArgumentError(f"a shift is at least 0, not {shift!r}")
        if shift == 0:
            return 0.0
        if honest >= self.shares:
            return round_up(shift / self.scale)
        shape, near = Fraction(honest, self.shares), min(shift, steps)
        found = log_upper(1 / _product_of_ratios(self.scale, shape, near, steps))
        return found if near == shift else found + self._far_loss(shape, near, shift)

    def _far_loss(self, shape: Fraction, near: int, shift: int) -> float:
        """What the ratios from ``near`` to ``shift`` add to a loss, by Kershaw's bounds.

        The result is raised by far more than floats may lose by rounding.
        """
        kappa = float(shape)
        rest = (1 - kappa) * math.log((shift - 0.5 + math.sqrt(kappa + 0.25)) / (near + kappa / 2))
        return (float((shift - near) / self.scale) + rest) * (1 + 2.0**-40) + 2.0**-40

    def tail(self, x: int) -> float:
        """A certified upper bound of P(noise ≥ x), which equals P(noise ≤ −x).

        It is Σ_j nb(j)·P(second ≥ j+x), whose terms are all positive. The truncated rest is bounded
        by a geometric series, and the result is raised by more than all rounding errors together.
        If the law is too wide for that, or x too far out, the less tight Chernoff bound is used.
        """
        if x <= 0:
            return 1.0
        far = self._chernoff(x)
        if self._width > _MOST_SUMMED:
            return far
        table = self._table
        reach = len(table.law) // 2
        if x > reach:
            return far
        found = float(table.law[:reach] @ table.above[x : x + reach]) + float(table.above[reach])
        return min(found * table.rounding, far)

    def _chernoff(self, x: int) -> float:
        """E e^(θz)·e^(−θx), which is a bound for every θ between 0 and 1/scale.

        E e^(θz) = ((1−p)²/((1−p·e^θ)(1−p·e^−θ)))^κ; the best θ is near 1/scale − κ/x.
        """
        shape, rate = float(self.shape), float(1 / self.scale)
        theta = max(rate - shape / x, rate / 2)
        parts = (
            -theta * x,
            2 * shape * math.log(-math.expm1(-rate)),
            -shape * math.log(-math.expm1(theta - rate)),
            -shape * math.log(-math.expm1(-theta - rate)),
        )
        # Rounding may change each part a little: raise the sum by far more than that.
        return math.exp(min(sum(parts) + sum(map(abs, parts)) * 2.0**-40, 0.0))

    @property
    def _width(self) -> int:
        """Twice the number of values whose probability is above about e^−60."""
        shape, rate = float(self.shape), float(1 / self.scale)
        return 2 * math.ceil((shape + 12 * math.sqrt(shape) + 60) / rate) + 200

    @cached_property
    def _table(self) -> "_Table":
        """The table of the law, up to a probability of about e^−60."""
        shape, rate, size = float(self.shape), float(1 / self.scale), self._width
        law = _negative_binomial(shape, rate, size)
        ratio = math.exp(-rate) * max(1.0, (size + shape) / (size + 1))
        beyond = float(law[-1]) * ratio / (1 - ratio)
        # Sums of n positive terms lose at most n·2^−53; for logarithms see `_negative_binomial`.
        logs = abs(shape - 1) * (2 + math.log(size)) * (size + 16)
        logs += 4 * (shape * abs(math.log(-math.expm1(-rate))) + size * rate + 16)
        rounding = math.exp((2 * logs + 4 * size) * 2.0**-52)
        return _Table(law, np.cumsum(law[::-1])[::-1] + beyond, rounding)

    def least_reach(self, chance: float) -> int:
        """The smallest s ≥ 0 for which P(noise ≤ −s−1) ≤ chance is certain."""
        return _least(self.tail, chance)

    def far_reach(self, chance: float) -> int:
        """The same by the Chernoff bound alone: quick for every law, and a little larger."""
        return _least(self._chernoff, chance)

    # -- answers -----------------------------------------------------------------------------

    @cached_property
    def spread(self) -> Fraction:
        """λ = p/(1−p)², half the variance of one discrete Laplace variable, to within 2^−320."""
        p = _PRECISE.exp(
            -_PRECISE.divide(Decimal(self.scale.denominator), Decimal(self.scale.numerator))
        )
        exact = Fraction(p) / (1 - Fraction(p)) ** 2
        return Fraction(round(exact * 2**_SPREAD_BITS), 2**_SPREAD_BITS)

    @property
    def variance(self) -> Fraction:
        """2·κ·p/(1−p)²."""
        return 2 * self.shape * self.spread

    @property
    def stderr(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.variance)

    def probabilities(self, reach: int) -> NDArray[np.float64]:
        """P(z) for z from −reach to reach, accurate to about 10^−15.

        It is the Fourier transform of the characteristic function ((1−p)²/(1−2p·cos θ+p²))^κ, on a
        circle so long that values beyond it are negligible.
        """
        # Beyond 1,400 only P(0) remains, to within 10^−300.
        rate, shape = min(float(1 / self.scale), 1400.0), float(self.shape)
        wide = reach + math.ceil(40 / rate + 12 * self.stderr) + 64
        if wide > _MOST_VALUES:
            raise ArgumentError("the noise is too wide for a table of its law")
        size = 1 << (2 * wide).bit_length()
        # 1 + sin²(θ/2)/sinh²(rate/2), computed without cancellation.
        bend = np.sin(np.pi * np.arange(size // 2 + 1) / size) / math.sinh(rate / 2)
        law = np.fft.irfft(np.exp(-shape * np.log1p(bend**2)), size)
        both: NDArray[np.float64] = np.concatenate([law[reach:0:-1], law[: reach + 1]])
        return np.maximum(both, 0)

    def margin(self, coverage: float = 0.95) -> int:
        """The smallest q with P(|noise| ≤ q) ≥ coverage.

        For a noise wider than some thousands the law on a coarser grid is used, and q is too large
        by at most one part in two thousand.
        """
        return _margin(self, coverage)


@lru_cache(maxsize=64)
def _margin(noise: NoiseLaw, coverage: float) -> int:
    grid = max(1, int(noise.stderr // 4096))
    law = NoiseLaw(noise.scale / grid, noise.shares, noise.parties) if grid > 1 else noise
    one = law.probabilities(math.ceil(16 * law.stderr) + 8)
    middle = len(one) // 2
    within = 2 * np.cumsum(one[middle:]) - one[middle]
    found = int(np.argmax(within >= coverage))
    return (found + 1) * grid if grid > 1 else found


def _least(tail: Callable[[int], float], chance: float) -> int:
    """The smallest s ≥ 0 with tail(s+1) ≤ chance."""
    if not chance > 0:
        raise ArgumentError("the chance must be positive")
    low, high = 0, 1
    while tail(high) > chance:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tail(middle) <= chance else (middle, high)
    return high - 1


class _Table(NamedTuple):
    """P(k) and P(≥ k) of the negative binomial law, and a bound of the rounding errors.

    P(≥ k) includes a bound of what is beyond the table. The last field says by how much rounding
    may have made sums of their products too small.
    """

    law: NDArray[np.float64]
    above: NDArray[np.float64]
    rounding: float


def _negative_binomial(shape: float, rate: float, size: int) -> NDArray[np.float64]:
    """P(k), for k from 0 to size, of the negative binomial law with p = e^−rate.

    The logarithm is a sum of ``size`` terms of one sign and two more terms. The sum loses at most
    size·2^−52 times its value, which is at most |shape − 1|·(1 + ln size). The other two terms lose
    only their last digits.
    """
    k = np.arange(1, size + 1, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log1p((shape - 1) / k)) - rate * k])
    law: NDArray[np.float64] = np.exp(logs + shape * math.log(-math.expm1(-rate)))
    return law


@lru_cache(maxsize=256)
def _product_of_ratios(scale: Fraction, shape: Fraction, shift: int, steps: int) -> Fraction:
    """A lower bound of P(shift)/P(0) for a shape below 1, in fixed point, rounded down.

    The recursion takes ``steps`` steps, or as many as the shift if that is less.
    """
    # Use enough bits for p itself, however small it is.
    bits = _BITS + math.ceil(2 / scale)
    one = 1 << bits
    rate = _PRECISE.divide(Decimal(scale.denominator), Decimal(scale.numerator))
    p = Fraction(_PRECISE.exp(-rate))
    # Round p + 1/p up and p down, by far more than their errors in the 180th place.
    both = math.ceil((p + 1 / p) * one) + 1
    far = min(shift + math.ceil(_REACH * scale), max(shift + 1, steps))
    num, den = shape.numerator, shape.denominator
    ratio = math.floor(p * (far - 1 + shape) / far * one) - 1
    product, places = 1, 0
    for s in range(far - 1, 0, -1):
        below = both * s * den - ((s + 1) * den - num) * ratio
        ratio = (((s - 1) * den + num) << 2 * bits) // below
        if s <= shift:
            excess = max(product.bit_length() - _BITS, 0)
            product = (product >> excess) * ratio
            places += bits - excess
    return Fraction(product, 1 << places) if places > 0 else Fraction(product << -places)
