"""Test the testers: they pass what is right and reject what is a little wrong."""

import numpy as np
from scipy import stats

from tests import limits


def test_binomial_limits_are_exact() -> None:
    low, high = limits.binomial(200, 0.95)
    law = stats.binom(200, 0.95)
    assert law.cdf(low - 1) <= limits.FALSE_ALARM / 2 < law.cdf(low)
    assert law.sf(high) <= limits.FALSE_ALARM / 2
    assert not low <= 150 <= high
    wider = limits.binomial(200, 0.95, variables=50)
    assert wider[0] < low
    assert law.cdf(wider[0] - 1) + law.sf(wider[1]) <= limits.FALSE_ALARM / 50


def test_chi_square_limits_reject_a_wrong_variance() -> None:
    low, high = limits.chi_square(200)
    draws = np.random.default_rng(1).normal(size=200)
    assert low <= float(draws @ draws) <= high
    assert float((draws * 1.5) @ (draws * 1.5)) > high
    assert float((draws * 0.7) @ (draws * 0.7)) < low


def test_the_least_coverage_is_exact() -> None:
    least = limits.least_coverage(380, 400)
    assert 0.90 < least < 0.95
    assert abs(stats.binom(400, least).sf(379) - 1e-3) < 1e-9
    assert limits.least_coverage(0, 400) == 0
