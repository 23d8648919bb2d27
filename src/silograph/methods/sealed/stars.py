"""k-stars from noisy integer degrees, without bias, for any k ≥ 1."""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from silograph.dp.laplace import NoiseLaw
from silograph.estimators.stars import newton_differences, square_root

__all__ = [
    "effective_nodes",
    "kstars_above",
    "kstars_floor",
    "kstars_value",
    "kstars_variance",
    "kstars_variance_estimate",
]


def kstars_value(noisy: Iterable[int], law: NoiseLaw, k: int) -> Fraction:
    """Σ Q_k over all nodes, the unbiased number of k-stars.

    Model
        y = d + z, where z is the difference of two negative binomial variables of shape κ (see
        :mod:`silograph.dp.laplace`). Its factorial moments have the generating function
        E[(1+u)^z] = (1 − λu²/(1+u))^−κ, λ = p/(1−p)². Hence (1+u)^y·(1 − λu²/(1+u))^κ has the mean
        (1+u)^d, and its coefficient of u^k, the polynomial
        Q_k(y) = Σ_j C(κ,j)·(−λ)^j·C(y−j, k−2j), has the mean C(d,k).
    Bias
        Only from λ, which is known to within 2^−320: less than k·2^−300 of the sum of the absolute
        terms, if λ is at most 2^16.
    Variance
        The noises of different nodes are independent, so variances add. C(d,k)² =
        Σ_j w_j·C(d,k+j) with w_j = (k+j)!/((k−j)!·j!²) has the unbiased estimate
        Σ_j w_j·Q_{k+j}(y). Subtracting it from Q_k(y)² gives an unbiased estimate of the variance.
    Cost
        Big-integer arithmetic for each distinct noisy degree.

    >>> law = NoiseLaw(Fraction(2), shares=1, parties=1)
    >>> kstars_value([3], law, 2) == 3 - law.variance / 2
    True
    """
    return _total(Counter(noisy), _coefficients(law, k), k)


def kstars_variance(truth: Iterable[int], law: NoiseLaw, k: int) -> Fraction:
    """The variance of :func:`kstars_value` over the noise, for known degrees.

    One node's variance is a polynomial in its degree, of degree 2k at most: it is expanded in
    C(d, j), and integers are summed first.
    """
    counts = Counter(truth)
    differences = newton_differences([_variance_at(d, law, k) for d in range(2 * k + 1)])
    return sum(
        (
            difference * sum(n * math.comb(d, j) for d, n in counts.items())
            for j, difference in enumerate(differences)
        ),
        Fraction(0),
    )


def kstars_variance_estimate(noisy: Iterable[int], law: NoiseLaw, k: int) -> Fraction:
    """The unbiased estimate of :func:`kstars_variance` from the noisy degrees."""
    counts, coefficients = Counter(noisy), _coefficients(law, 2 * k)
    units, den = _over_one(coefficients)
    squares = sum(n * _units_at(y, units, k) ** 2 for y, n in counts.items())
    return Fraction(squares, den**2) - sum(
        _pairs_of_stars(k, j) * _total(counts, coefficients, k + j) for j in range(k + 1)
    )


def kstars_floor(nodes: int, law: NoiseLaw, k: int) -> Fraction:
    """The smallest variance that this number of nodes can have.

    C(k−1−d, k) = ±C(d, k) and the noise is symmetric, so the variance is a polynomial in the
    distance of d from (k−1)/2, and grows with it.
    """
    return nodes * _variance_at((k - 1) // 2, law, k)


def kstars_above(noisy: Iterable[int], law: NoiseLaw, k: int, nodes: int) -> float:
    """How far the number of k-stars can be above its estimate, at a level of 95 %.

    A hub that looks small by chance has a small standard error too. So the distance of each node is
    taken to the stars that it would have at the upper limit of its degree, and the distances of
    independent nodes add up as their squares do.

    Reference: G. Y. Zou, A. Donner, Statistics in Medicine 27 (2008).

    >>> law = NoiseLaw(Fraction(2), shares=1, parties=1)
    >>> law.margin(), round(kstars_above([3], law, 2, 100), 2)
    (6, 36.0)
    """
    (units, den), margin, total = _over_one(_coefficients(law, k)), law.margin(), 0
    for y, count in Counter(noisy).items():
        top = min(max(y, 0) + margin, nodes - 1)
        distance = math.comb(top, k) * den - max(_units_at(y, units, k), 0)
        total += count * max(distance, 0) ** 2
    return square_root(Fraction(total, den**2))


def effective_nodes(noisy: Iterable[int], k: int) -> float:
    """How many equal noises would have tails as light as the noise of the stars has.

    The number is (Σw²)²/Σw⁴, where w = C(d, k−1) is the weight of a node's noise.
    """
    counts = Counter(max(y, k) for y in noisy)
    largest = math.comb(max(counts), k - 1)
    weights = {y: float(Fraction(math.comb(y, k - 1), largest)) for y in counts}
    second, fourth = (sum(n * weights[y] ** e for y, n in counts.items()) for e in (2, 4))
    return max(1.0, round(second**2 / fourth, 6))


def _coefficients(law: NoiseLaw, k: int) -> list[Fraction]:
    """C(κ,j)·(−λ)^j for j up to k/2."""
    return _powers(law.shape, law.spread, k // 2)


def _powers(kappa: Fraction, spread: Fraction, top: int) -> list[Fraction]:
    """The coefficients of (1 − λx)^κ."""
    found = [Fraction(1)]
    for j in range(top):
        found.append(-found[-1] * spread * (kappa - j) / (j + 1))
    return found


def _total(counts: Counter[int], coefficients: list[Fraction], k: int) -> Fraction:
    """Σ Q_k: integers are summed first, then one fraction is added for each j."""
    return sum(
        (
            coefficients[j] * sum(n * _binomial(y - j, k - 2 * j) for y, n in counts.items())
            for j in range(k // 2 + 1)
        ),
        Fraction(0),
    )


def _over_one(coefficients: list[Fraction]) -> tuple[list[int], int]:
    """The coefficients as integers over one denominator: fractions are reduced at every step."""
    den = math.lcm(*(c.denominator for c in coefficients))
    return [int(c * den) for c in coefficients], den


def _units_at(y: int, units: list[int], k: int) -> int:
    """Q_k(y), from the integers of :func:`_over_one`."""
    return sum(units[j] * _binomial(y - j, k - 2 * j) for j in range(k // 2 + 1))


def _variance_at(d: int, law: NoiseLaw, k: int) -> Fraction:
    """E[Q_k(d+z)²] − C(d,k)², expanded in the polynomials C(z,l), whose means are known."""
    units, den = _over_one(_coefficients(law, k))
    squares = [Fraction(_units_at(d + z, units, k) ** 2) for z in range(2 * k + 1)]
    differences = [each / den**2 for each in newton_differences(squares)]
    means = _powers(-law.shape, law.spread, k)
    mean = sum(
        (
            difference * means[j] * _binomial(-j, order - 2 * j)
            for order, difference in enumerate(differences)
            for j in range(order // 2 + 1)
        ),
        Fraction(0),
    )
    return mean - math.comb(d, k) ** 2


def _pairs_of_stars(k: int, j: int) -> int:
    """In how many ways two sets of size k have a given union of size k+j."""
    return math.factorial(k + j) // (math.factorial(k - j) * math.factorial(j) ** 2)


def _binomial(x: int, k: int) -> int:
    """C(x,k), also for negative x."""
    return math.comb(x, k) if x >= 0 else (-1) ** k * math.comb(k - x - 1, k)
