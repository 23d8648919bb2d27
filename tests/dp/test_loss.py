"""What is printed of a loss is never below it, on any road."""

import itertools
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import silograph
from silograph.dp.channel import Channel
from silograph.dp.loss import View, check_delta, check_epsilon, shown_loss, worst_losses
from silograph.errors import ArgumentError
from silograph.estimators.estimate import Estimate
from silograph.methods.baseline.noise import BaselineNoise
from silograph.methods.elgamal.noise import ElgamalNoise
from silograph.methods.masked.noise import MaskedNoise
from silograph.methods.sealed.noise import SealedNoise


def printed(text: str) -> float:
    """The epsilon in a text."""
    found = re.search(r"(?:ε = |epsilon=)([0-9.e-]+|∞)", text)
    assert found is not None, text
    return math.inf if found[1] == "∞" else float(found[1])


def views() -> list[View]:
    found: list[View] = []
    cases = itertools.product((2, 3, 4, 8), (0.1, 0.3, 0.7, 1.0, 1.5, 2.0, 3.0, 4.5), (0, 1, 2))
    for silos, epsilon, t in cases:
        if t >= silos:
            continue
        found += MaskedNoise.choose(epsilon, silos, t).views
        found += BaselineNoise.choose(epsilon, silos, t).views
        if t < 2:
            found += SealedNoise.choose(epsilon, 50, silos, t, ["triangles"]).views
        if t:
            found += ElgamalNoise.choose("blinded", epsilon, silos, t).views
    return found


@pytest.mark.whole
def test_no_view_is_printed_below_its_loss() -> None:
    tried = views()
    assert len(tried) > 500
    # To the nearest, many would be.
    assert sum(float(f"{view.epsilon:.6g}") < view.epsilon for view in tried) > 50
    for view in tried:
        assert printed(str(view)) >= view.epsilon
        if math.isfinite(view.epsilon) and view.epsilon:
            assert printed(str(Estimate("edges", 1.0, 1.0, view.epsilon))) >= view.epsilon
            channel = Channel.symmetric(min(view.epsilon, 50.0))
            assert printed(repr(channel)) >= channel.epsilon


@given(st.floats(min_value=0, allow_nan=False))
def test_up_for_what_is_spent_and_down_for_what_is_left(value: float) -> None:
    up, down = shown_loss(value), shown_loss(value, left=True)
    if math.isinf(value):
        assert up == down == "∞"
        return
    assert float(down) <= value <= float(up)
    assert float(up) <= value * (1 + 1e-5) or value < 1e-300


def test_nothing_else_formats_an_epsilon() -> None:
    """In the whole package, but for messages that repeat what a caller wrote."""
    allowed = ("is too small", "protects nobody", "a split of epsilon")
    pattern = re.compile(r"\{[^{}]*(?:epsilon|\.delta|loss)[^{}]*:[.,0-9]*[gfe]\}")
    folder = Path(silograph.__file__).parent
    found = [
        f"{path.name}: {line.strip()}"
        for path in folder.rglob("*.py")
        for line in path.read_text().splitlines()
        if pattern.search(line) and not any(words in line for words in allowed)
    ]
    assert found == []


@pytest.mark.parametrize("value", ["3", True, None, 1j, [1.0], b"3"])
def test_what_is_no_number(value: object) -> None:
    for check in (check_epsilon, check_delta):
        with pytest.raises(ArgumentError, match="must be a number"):
            check(value)


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, 10**400, 50.5, 1e-7])
def test_what_is_no_epsilon(value: float) -> None:
    with pytest.raises(ArgumentError, match="epsilon"):
        check_epsilon(value)


def test_the_worst_of_smaller_coalitions() -> None:
    assert worst_losses({2: 0.5, 0: 1.0, 1: 0.25}) == {0: 1.0, 1: 1.0, 2: 1.0}
    assert worst_losses({0: 1.0, 1: math.inf, 2: 2.0})[2] == math.inf
    assert worst_losses({}) == {}
