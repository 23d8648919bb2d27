"""Fieller's interval: its ends, and that there is none where the lower number may be zero."""

import math

import numpy as np
import pytest

from silograph.estimators.ratio import fieller
from tests import limits


def test_its_ends_are_where_the_difference_is_at_its_limit() -> None:
    top, a, bottom, b, c = 5.0, 2.0, 10.0, 3.0, 1.5
    found = fieller(top, a, bottom, b, c)
    assert found is not None
    assert found[0] < top / bottom < found[1]
    for end in found:
        spread = math.sqrt(a - 2 * end * c + end**2 * b)
        assert abs(top - end * bottom) == pytest.approx(1.959964 * spread)
    wider = fieller(top, a, bottom, b, c, level=0.999)
    assert wider is not None
    assert wider[0] < found[0] < found[1] < wider[1]


def test_there_is_none_where_the_lower_number_may_be_zero() -> None:
    assert fieller(5.0, 1.0, 1.9, 1.0, 0.0) is None
    assert fieller(5.0, 1.0, 2.0, 1.0, 0.0) is not None
    assert fieller(5.0, 1.0, 0.0, 0.0, 0.0) is None
    assert fieller(5e300, 1.0, 2e300, 1.0, 0.0) is not None


def test_it_covers_where_the_lower_number_is_noisy() -> None:
    """Correlated, and three standard deviations from zero; no interval counts as one that holds."""
    draws, truth = 4000, 0.5
    noise = np.random.default_rng(1).multivariate_normal([1.5, 3.0], [[1, 0.5], [0.5, 1]], draws)
    found = [fieller(t, 1.0, b, 1.0, 0.5) for t, b in noise.tolist()]
    held = sum(ends is None or ends[0] <= truth <= ends[1] for ends in found)
    assert limits.least_coverage(held, draws) >= 0.93
