"""Orders, trends and readings, against numbers worked out by hand."""

import math
from typing import Any

import pytest

from reproduction.measured import Orders, Reading, in_orders, readings, trend


def row(**other: Any) -> dict[str, Any]:
    plain = {
        "graph": "facebook", "query": "triangles", "epsilon": 3.0, "rho": 0.3, "sigma": 0.2,
        "silos": 4, "variant": "", "delta": 0.0, "collusion": 0, "values": [1.0] * 4,
        "mse": 100.0, "mse_spread": 20.0,
    }  # fmt: skip
    return plain | other


def test_an_error_in_orders_with_its_standard_error() -> None:
    orders = in_orders(row(), "mse")
    assert orders.value == pytest.approx(2)
    assert orders.error == pytest.approx(20 / 2 / 100 / math.log(10))
    assert in_orders(row(mse=0.0), "mse").value == -math.inf
    alone = in_orders(row(values=[1.0], mse_spread=0.0), "mse")  # which shows no spread
    assert alone.error == pytest.approx(math.sqrt(2) / math.log(10))


def test_clearly_above_and_below() -> None:
    assert Orders(1.0, 0.1).above(0.69)
    assert not Orders(1.0, 0.1).above(0.71)
    assert Orders(1.0, 0.1).below(1.31)
    assert not Orders(1.0, 0.1).below(1.29)


def test_differences() -> None:
    difference = Orders(3.0, 0.3) - Orders(1.0, 0.4)
    assert (difference.value, difference.error) == pytest.approx((2.0, 0.5))
    nothing = Orders(-math.inf, 0.0)
    assert (nothing - nothing).value == 0
    assert (Orders(1.0, 0.1) - nothing).value == math.inf


def test_a_trend_is_the_rise_of_the_straight_line() -> None:
    rise = trend([(x, Orders(2 * x + 1, 0.1)) for x in (0.0, 1.0, 2.0, 3.0)])
    assert rise is not None
    assert rise.value == pytest.approx(6)
    assert rise.error == pytest.approx(0.1 * 3 / math.sqrt(5))  # σ/√Σ(x−x̄)², over 3 units
    assert trend([(0.0, Orders(1, 0)), (1.0, Orders(2, 0))]) is None
    assert trend([(1.0, Orders(1, 0))] * 3) is None
    assert trend([(x, Orders(-math.inf, 0)) for x in (0.0, 1.0, 2.0)]) is None


def test_readings_take_the_least_collusion() -> None:
    rows = [row(collusion=1), row(collusion=2), row(collusion=1, variant="auto")]
    assert set(readings(rows)) == {Reading("", 0.0, 1), Reading("auto", 0.0, 1)}
    assert readings([]) == {}
