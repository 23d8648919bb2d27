"""k-stars from noisy integer degrees, without bias, for any k ≥ 1.

Model
    y = d + z, z the difference of two negative binomial variables of shape κ (see
    :mod:`silograph.privacy.laplace`). Its factorial moments have the generating function
    E[(1+u)^z] = (1 − λu²/(1+u))^−κ, λ = p/(1−p)². Hence (1+u)^y·(1 − λu²/(1+u))^κ has the mean
    (1+u)^d, and its coefficient of u^k, the polynomial
    Q_k(y) = Σ_j C(κ,j)·(−λ)^j·C(y−j, k−2j), has the mean C(d,k).
Bias
    That of λ alone, which is known to within 2^−320: less than k·2^−300 of the sum of the absolute
    terms, where λ is at most 2^16.
Variance
    Noises of different nodes are independent, so variances add. C(d,k)² = Σ_j w_j·C(d,k+j) with
    w_j = (k+j)!/((k−j)!·j!²) has the unbiased estimate Σ_j w_j·Q_{k+j}(y), and Q_k(y)² less that is
    one of the variance.
Cost
    Big-integer arithmetic for each distinct noisy degree.
"""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from silograph.privacy.laplace import NoiseLaw
from silograph.queries.stars import newton_differences

__all__ = [
    "effective_nodes",
    "kstars_floor",
    "kstars_value",
    "kstars_variance",
    "kstars_variance_estimate",
]


def kstars_value(noisy: Iterable[int], law: NoiseLaw, k: int) -> Fraction:
    """Σ Q_k over all nodes.

    >>> law = NoiseLaw(Fraction(2), shares=1, parties=1)
    >>> kstars_value([3], law, 2) == 3 - law.variance / 2
    True
    """
    return _total(Counter(noisy), _coefficients(law, k), k)


def kstars_variance(truth: Iterable[int], law: NoiseLaw, k: int) -> Fraction:
    """The variance of :func:`kstars_value` over the noise, for known degrees."""
    return sum((n * _variance_at(d, law, k) for d, n in Counter(truth).items()), Fraction(0))


def kstars_variance_estimate(noisy: Iterable[int], law: NoiseLaw, k: int) -> Fraction:
    """The unbiased estimate of :func:`kstars_variance` from the noisy degrees."""
    counts, coefficients = Counter(noisy), _coefficients(law, 2 * k)
    squares = sum((n * _at(y, coefficients, k) ** 2 for y, n in counts.items()), Fraction(0))
    return squares - sum(
        _pairs_of_stars(k, j) * _total(counts, coefficients, k + j) for j in range(k + 1)
    )


def kstars_floor(nodes: int, law: NoiseLaw, k: int) -> Fraction:
    """The least variance that so many nodes can have.

    C(k−1−d, k) = ±C(d, k) and the noise is symmetric, so the variance is a polynomial in the
    distance of d from (k−1)/2, and grows with it.
    """
    return nodes * _variance_at((k - 1) // 2, law, k)


def effective_nodes(noisy: Iterable[int], k: int) -> int:
    """How many equal noises would have tails as light as those of the stars: (Σw²)²/Σw⁴, w how
    much the noise of a node weighs, C(d, k−1)."""
    counts = Counter(max(y, k) for y in noisy)
    largest = math.comb(max(counts), k - 1)
    weights = {y: float(Fraction(math.comb(y, k - 1), largest)) for y in counts}
    second, fourth = (sum(n * weights[y] ** e for y, n in counts.items()) for e in (2, 4))
    return max(1, int(second**2 / fourth))


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
    """Σ Q_k: integers first, one fraction for each j."""
    return sum(
        (
            coefficients[j] * sum(n * _binomial(y - j, k - 2 * j) for y, n in counts.items())
            for j in range(k // 2 + 1)
        ),
        Fraction(0),
    )


def _at(y: int, coefficients: list[Fraction], k: int) -> Fraction:
    return _total(Counter([y]), coefficients, k)


def _variance_at(d: int, law: NoiseLaw, k: int) -> Fraction:
    """E[Q_k(d+z)²] − C(d,k)²: in the polynomials C(z,l), whose means are known."""
    coefficients = _coefficients(law, k)
    differences = newton_differences([_at(d + z, coefficients, k) ** 2 for z in range(2 * k + 1)])
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
    """How often two sets of k have a given union of k+j."""
    return math.factorial(k + j) // (math.factorial(k - j) * math.factorial(j) ** 2)


def _binomial(x: int, k: int) -> int:
    """C(x,k), also for negative x."""
    return math.comb(x, k) if x >= 0 else (-1) ** k * math.comb(k - x - 1, k)
