"""Fieller's interval covers as it promises, also where the delta method does not."""

import numpy as np
import pytest

from silograph.estimators.ratio import fieller


def test_it_is_the_delta_interval_where_errors_are_small() -> None:
    found = fieller(30.0, 0.01, 100.0, 0.04, 0.005)
    assert found is not None
    spread = (0.01 - 2 * 0.3 * 0.005 + 0.09 * 0.04) ** 0.5 / 100
    assert found == pytest.approx((0.3 - 1.96 * spread, 0.3 + 1.96 * spread), rel=1e-4)


def test_no_interval_where_the_bottom_may_be_zero() -> None:
    assert fieller(30.0, 9.0, 1.9, 1.0) is None
    assert fieller(30.0, 9.0, 2.0, 1.0) is not None
    assert fieller(30.0, 9.0, float("nan"), 1.0) is None


@pytest.mark.parametrize("covariance", [-3.0, 0.0, 3.0])
def test_it_covers(covariance: float) -> None:
    """A bottom of four standard errors: 100,000 draws, within five standard errors of 90 %."""
    rng, draws = np.random.default_rng(5), 100_000
    law = [[4.0, covariance], [covariance, 6.25]]
    covered = 0
    for top, bottom in rng.multivariate_normal([3.0, 10.0], law, draws).tolist():
        found = fieller(top, 4.0, bottom, 6.25, covariance, level=0.9)
        if found is None:  # Then every ratio is believed, or all but those of an interval.
            z2 = 1.6448536269514722**2
            gap = (top - 0.3 * bottom) ** 2 - z2 * (4.0 - 0.6 * covariance + 0.09 * 6.25)
            covered += gap <= 0
        else:
            covered += found[0] <= 0.3 <= found[1]
    assert covered / draws == pytest.approx(0.9, abs=0.005)
