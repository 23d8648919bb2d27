"""Noise that is drawn digit by digit: the difference of two geometric variables made of coins.

What
    z = G − G′ with G and G′ independent and of one law. G = Σ_j 2^j·b_j, j < K, where the digits
    b_j are independent coins that are one with probability n_j/2^places, exactly. A geometric
    variable has such digits: P(g) ∝ e^(−g/scale) = Π_j e^(−b_j·2^j/scale), so that digit j has the
    odds e^(−2^j/scale), whatever the other digits. So z is a discrete Laplace variable but for two
    things, which are counted: G ends at 2^K − 1, and the odds of digit j, n_j/(2^places − n_j),
    are rounded. A committee can toss coins that nobody knows, and nobody then knows z.
Guarantee
    Let e_j = ln odds_j + 2^j/scale be the rounding of digit j, and E = Σ|e_j|. For a number that
    changes by at most Δ, every ε ≥ Δ/scale + E, and every set S of outcomes,
    P(S) ≤ e^ε·P′(S) + P(G ≥ 2^K − Δ), in both directions.

    Proof: let the number be f in one world and f + c in the other, 0 < c ≤ Δ. An outcome
    f + c + g − g′ of the second world is in the first f + (g+c) − g′: pair (g, g′) with
    (g+c, g′). This maps no two pairs to one, and it can be done unless g ≥ 2^K − c, whose
    probability is at most P(G ≥ 2^K − Δ). Where it can be done, ln P(g)/P(g+c) =
    c/scale + Σ_j (b_j(g) − b_j(g+c))·e_j ≤ Δ/scale + E, since ln P(g) = −g/scale + Σ_j b_j(g)·e_j
    plus a constant. Summing over the pairs of S gives the claim. In the other direction pair
    (g, g′) with (g, g′+c), and G′ has the law of G.
Two degrees at once
    Pair both noises in this way: the losses add, and so do the probabilities that it cannot be
    done. So two numbers that both change cost 2ε and 2δ.
How far z is from a discrete Laplace variable
    Against the untruncated, unrounded law, P(g) is larger by at most e^E/(1 − p^(2^K)),
    p = e^(−1/scale): a digit with e_j > 0 makes the numerator larger by at most e^(e_j), and one
    with e_j < 0 makes the sum over all g, 1/Π(1+odds_j), smaller by at most e^|e_j|. So for z the
    factor is at most e^(2E)/(1 − p^(2^K))², and the total variation at most that less one
    (``distance``). z is symmetric: its mean is exactly zero.
Tails
    P(z ≥ x) is computed exactly. Let A_j(t) be the probability that the lowest j digits of G less
    those of G′ are at least t. Only values t that leave the remainder of x modulo 2^j occur, and
    A_j is 0 or 1 unless −2^j < t < 2^j. So there are two values to keep for each j, and for the
    sum of two such noises four.
"""

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import count, product

from silograph.dp.laplace import NoiseLaw, round_up, scale_for
from silograph.errors import ArgumentError

__all__ = ["DIGIT_DELTA", "MOST_DIGITS", "MOST_PLACES", "DigitLaw"]

#: The delta of one number, if nothing else is asked for.
DIGIT_DELTA = 2.0**-64
#: Noise stays below 2^62 and a coin takes at most as many places as this.
MOST_DIGITS = 62
MOST_PLACES = 256
# By how much a scale is above the least one: this is the room for rounding the coins. It makes the
# noise larger by one part in a million.
_ROOM = 1 + Fraction(1, 2**20)
# One hundred digits. Powers are made by squaring: after j < 62 squarings the relative error is
# below 2^j·(2 + 1/scale)·10^−98, and the scale is at least 2^−10: far below 10^−60, which is added
# to every rounding.
_PRECISE = Context(prec=100, Emax=MAX_EMAX, Emin=MIN_EMIN)
_SMALLEST = Fraction(1, 1024)
_ERROR = Fraction(1, 10**60)
_FINE = 320


@dataclass(frozen=True)
class DigitLaw:
    """The law of one noise of a committee.

    >>> law = DigitLaw.choose(1, 0.5)
    >>> law.reach, law.places, round(float(law.scale), 4)
    (127, 66, 2.0)
    >>> law.epsilon(1) <= 0.5, law.delta(1) <= 2**-64
    (True, True)
    """

    scale: Fraction
    #: Of every digit, the lowest first: how often of 2^places it is one.
    numerators: tuple[int, ...]
    places: int

    def __post_init__(self) -> None:
        if not 1 <= self.places <= MOST_PLACES:
            raise ArgumentError(f"a coin has 1 to {MOST_PLACES} places, not {self.places}")
        if not 1 <= len(self.numerators) <= MOST_DIGITS:
            raise ArgumentError(f"noise has 1 to {MOST_DIGITS} digits, not {len(self.numerators)}")
        if not all(1 <= n < 1 << self.places for n in self.numerators):
            raise ArgumentError(f"a coin's numerator is from 1 to 2^{self.places} − 1")
        if not _SMALLEST <= self.scale <= 2**MOST_DIGITS:
            raise ArgumentError("the scale of noise by digits is out of range")

    @classmethod
    def choose(
        cls, shift: int, epsilon: Fraction | float, delta: float = DIGIT_DELTA
    ) -> "DigitLaw":
        """The smallest noise for a number that changes by ``shift``: shift/scale + E ≤ epsilon.

        It has the fewest digits with P(G ≥ 2^K − shift) ≤ delta. All digits have the same room for
        rounding, and each the fewest places that keep it: lower digits end in zeros, and a
        comparison with such a number is shorter.
        """
        if not 0 < delta < 1:
            raise ArgumentError(f"noise by digits needs a delta between 0 and 1, not {delta!r}")
        return _choose(int(shift), Fraction(epsilon), float(delta))

    @staticmethod
    @lru_cache(maxsize=4096)
    def scale_of(shift: int, epsilon: Fraction | float) -> Fraction:
        """The scale that :meth:`choose` takes, without its coins."""
        return scale_for(shift, Fraction(epsilon) / _ROOM)

    # -- privacy -----------------------------------------------------------------------------

    @property
    def reach(self) -> int:
        """The largest absolute value that the noise can have."""
        return (1 << len(self.numerators)) - 1

    @cached_property
    def rounding(self) -> Fraction:
        """An upper bound of E = Σ|e_j|."""
        whole, total = 1 << self.places, Fraction(0)
        for n, power in zip(
            self.numerators, _powers(self.scale, len(self.numerators)), strict=True
        ):
            odds = _PRECISE.divide(Decimal(n), Decimal(whole - n))
            near = _PRECISE.multiply(odds, power)
            # |ln r| ≤ max(r, 1/r) − 1, which is all but exact near one.
            most = max(near, _PRECISE.divide(Decimal(1), near))
            off = _PRECISE.subtract(most, Decimal(1))
            if off > Decimal("0.001"):
                off = _PRECISE.ln(most)
            total += Fraction(off) + _ERROR
        return total

    def cost(self, shift: int) -> Fraction:
        """The loss of a number that changes by at most ``shift``, as an exact upper bound."""
        return shift / self.scale + self.rounding

    def epsilon(self, shift: int) -> float:
        """:meth:`cost`, rounded up."""
        return round_up(self.cost(shift))

    def delta(self, shift: int) -> float:
        """P(G ≥ 2^K − shift), rounded up: the delta of a number that changes by at most this."""
        return _up(self._above(self.reach + 1 - shift), self.places * len(self.numerators))

    def _above(self, least: int) -> int:
        """P(G ≥ least), in units of 2^(−places·K)."""
        if least <= 0:
            return 1 << self.places * len(self.numerators)
        if least > self.reach:
            return 0
        found, whole = 1, 1 << self.places
        for j, n in enumerate(self.numerators):
            if least >> j & 1:
                found *= n
            else:  # a one here decides, a zero leaves it to the lower digits
                found = (n << self.places * j) + (whole - n) * found
        return found

    # -- tails -------------------------------------------------------------------------------

    def tail(self, x: int, summed: int = 1) -> float:
        """P(z ≥ x), which is P(z ≤ −x), rounded up; or of the sum of so many independent ones."""
        most = summed * self.reach
        if x <= -most:
            return 1.0
        if x > most:
            return 0.0
        found = {0: 1}
        bits = 2 * summed * self.places
        for j, n in enumerate(self.numerators):
            chances = _differences(n, self.places, summed)
            one, size = 1 << bits * j, 1 << j
            rest = x % (2 * size)
            found = {
                t: sum(
                    chance * _known(found, t - value * size, size, summed, one)
                    for value, chance in chances
                )
                for t in (rest + 2 * size * i for i in range(-summed, summed))
            }
        size = self.reach + 1
        chance = _known(found, x, size, summed, 1 << bits * len(self.numerators))
        return _up(chance, bits * len(self.numerators))

    def least_reach(self, chance: float, summed: int = 1) -> int:
        """The smallest s ≥ 0 for which P(z ≤ −s−1) ≤ chance is certain, also for sums.

        A large scale needs no such precision: it may be too large by a part in 4096 of the scale.
        """
        if not chance > 0:
            raise ArgumentError("the chance must be positive")
        guess, grain = self._guess(chance, summed), max(int(self.scale) >> 12, 1)
        step, low, high = grain, guess, guess + grain
        while low > 0 and self.tail(low, summed) <= chance:
            low, high, step = max(low - step, 0), low, 2 * step
        step = grain
        while self.tail(high, summed) > chance:
            low, high, step = high, high + step, 2 * step
        # tail(low) is above the chance (or low is 0, and s+1 is at least 1), tail(high) is not.
        while high - low > grain:
            middle = (low + high) // 2
            low, high = (low, middle) if self.tail(middle, summed) <= chance else (middle, high)
        return high - 1

    def _guess(self, chance: float, summed: int) -> int:
        """Where the tail of the ideal law is about ``chance``."""
        rate, most = float(1 / self.scale), summed * self.reach
        p, gap = math.exp(-rate), -math.expm1(-rate)
        wanted = math.log(chance)

        def tail(x: int) -> float:
            if summed == 1:
                return -rate * x - math.log1p(p)
            even = (1 + p * p) / (gap * (1 + p))
            return -rate * x - 2 * math.log1p(p) + math.log(gap * (x + even) + p)

        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if tail(middle) <= wanted else (middle, high)
        return low

    # -- answers -----------------------------------------------------------------------------

    @property
    def ideal(self) -> NoiseLaw:
        """The discrete Laplace law of this scale, for standard errors and intervals.

        It differs from the law that is drawn by ``distance``.
        """
        return NoiseLaw(self.scale, 1, 1)

    @property
    def distance(self) -> float:
        """An upper bound of the total variation between the noise and the ideal law."""
        last = math.exp(-(self.reach + 1) * float(1 / self.scale))
        if last >= 1:
            return 1.0
        # Floats lose far less than the margin that is added.
        logs = 2 * float(self.rounding) - 2 * math.log1p(-last)
        return min(math.expm1(logs) * (1 + 2.0**-40), 1.0)

    def exact(self) -> dict[int, Fraction]:
        """P(z) for every z, by enumeration: for few digits."""
        one = {0: Fraction(1)}
        for j, n in enumerate(self.numerators):
            q = Fraction(n, 1 << self.places)
            one = {g + (b << j): p * (q if b else 1 - q) for g, p in one.items() for b in (0, 1)}
        found: dict[int, Fraction] = {}
        for (g, p), (h, q) in product(one.items(), repeat=2):
            found[g - h] = found.get(g - h, Fraction(0)) + p * q
        return dict(sorted(found.items()))


def _powers(scale: Fraction, digits: int) -> list[Decimal]:
    """e^(2^j/scale) for j < digits, to some eighty places."""
    rate = _PRECISE.divide(Decimal(scale.denominator), Decimal(scale.numerator))
    found = [_PRECISE.exp(rate)]
    for _ in range(digits - 1):
        found.append(_PRECISE.multiply(found[-1], found[-1]))
    return found


@lru_cache(maxsize=4096)
def _choose(shift: int, epsilon: Fraction, delta: float) -> DigitLaw:
    scale = DigitLaw.scale_of(shift, epsilon)
    room = epsilon - shift / scale
    for digits in count(_fewest(shift, scale, delta)):
        if digits > MOST_DIGITS:
            raise ArgumentError(f"noise for a change of {shift:,} has too many digits")
        law = DigitLaw(scale, *_coins(scale, digits, room))
        if law.delta(shift) <= delta:
            break
    if law.cost(shift) > epsilon:  # pragma: no cover - the room is shared out below
        raise ArgumentError(f"the coins of {digits} digits are rounded too far")
    return law


def _fewest(shift: int, scale: Fraction, delta: float) -> int:
    """The fewest digits that may be enough: P(G ≥ 2^K − shift) of the ideal law is not above
    delta, or so little that rounding can decide."""
    rate = float(1 / scale)
    digits = shift.bit_length()
    while digits < MOST_DIGITS:
        end = math.ldexp(rate, digits)
        logs = shift * rate - end + math.log(-math.expm1(-shift * rate))
        if logs - math.log(-math.expm1(-end)) <= math.log(delta) + 0.001:
            break
        digits += 1
    return digits


def _coins(scale: Fraction, digits: int, room: Fraction) -> tuple[tuple[int, ...], int]:
    """The numerators and their places: each e_j within its share of the room."""
    most = float(room / digits) * 0.999
    found: list[tuple[int, int]] = []
    for power in _powers(scale, digits):
        fine = int(_PRECISE.divide(Decimal(1 << _FINE), _PRECISE.add(power, Decimal(1))))
        # e_j is the error of the probability q, divided by q·(1−q).
        slope = Fraction(fine * ((1 << _FINE) - fine), 1 << 2 * _FINE)
        if not slope:
            raise ArgumentError(_TOO_FINE)
        needed = math.ceil(-math.log2(2 * most) - math.log2(slope))
        for places in range(max(needed - 6, 1), MOST_PLACES + 1):
            n = (fine + (1 << _FINE - places - 1)) >> _FINE - places
            off = Fraction(abs((n << _FINE - places) - fine), 1 << _FINE)
            if 0 < n < 1 << places and off <= slope * Fraction(most):
                break
        else:
            raise ArgumentError(_TOO_FINE)
        found.append((n, places))
    longest = max(places for _, places in found)
    return tuple(n << longest - places for n, places in found), longest


_TOO_FINE = (
    f"the noise would need coins of more than {MOST_PLACES} places: epsilon is too large, or delta "
    "too small"
)


def _differences(numerator: int, places: int, summed: int) -> list[tuple[int, int]]:
    """The law of one digit's Σ b − Σ b′ over so many pairs, in units of 2^(−2·summed·places)."""
    one, zero = numerator, (1 << places) - numerator
    each = [math.comb(summed, k) * one**k * zero ** (summed - k) for k in range(summed + 1)]
    return [
        (
            value,
            sum(each[k] * each[k - value] for k in range(summed + 1) if 0 <= k - value <= summed),
        )
        for value in range(-summed, summed + 1)
    ]


def _known(found: dict[int, int], t: int, size: int, summed: int, one: int) -> int:
    """P(the lower digits' difference ≥ t), where they differ by less than summed·size."""
    if t <= -summed * (size - 1):
        return one
    return found[t] if t <= summed * (size - 1) else 0


def _up(numerator: int, bits: int) -> float:
    """numerator/2^bits, rounded up to a float."""
    spare = max(numerator.bit_length() - 53, 0)
    head = -(-numerator >> spare)
    shown = math.ldexp(head, spare - bits)
    return max(shown, math.ulp(0.0)) if numerator else 0.0
