"""What the integer samplers draw, against the laws that they claim.

The trees of all that they can draw are walked in the core's own tests; here are their laws by
chi-square, with a false alarm once in a billion runs, and lists that a seed gives for ever.
"""

import threading
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from silograph import _core
from tests import limits
from tests.support.parties import SeededEntropy

DRAWS = 120_000
GOLDEN_LAPLACE = [4, 3, 3, -1, 1, 0, 10, -1, 5, -1, -4, 1]
GOLDEN_SHARES = [2, 40, -3, 15, -47, 1, 22, 7, 0, 4, 33, 1]
SCALES = [(1, 3), (3, 4), (2, 1), (41, 2), (1000, 1)]


def seed(number: int) -> bytes:
    return SeededEntropy(number).bytes(32)


def laplace_law(num: int, den: int, reach: int) -> NDArray[np.float64]:
    """P(z), z from −reach to reach."""
    z = np.abs(np.arange(-reach, reach + 1))
    return np.tanh(den / num / 2) * np.exp(-z * (den / num))


def polya_law(num: int, den: int, shape: float, reach: int) -> NDArray[np.float64]:
    """P(k), k from 0 to reach, of the negative binomial law."""
    k = np.arange(1, reach + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log((k - 1 + shape) / k) - den / num)])
    return np.exp(logs + shape * np.log(-np.expm1(-den / num)))


def difference_law(num: int, den: int, shape: float, reach: int) -> NDArray[np.float64]:
    one = polya_law(num, den, shape, reach)
    size = 4 * reach
    both = np.fft.irfft(np.abs(np.fft.rfft(one, size)) ** 2, size)
    return np.maximum(np.concatenate([both[-reach:], both[: reach + 1]]), 0)


def fits(drawn: NDArray[np.int64], law: NDArray[np.float64]) -> bool:
    """Chi-square over cells of at least 50 expected draws; what is beyond the law is one cell."""
    reach = len(law) // 2
    seen = np.bincount(np.clip(drawn, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)
    beyond = max(1 - float(law.sum()), 0) / 2
    expected = len(drawn) * np.concatenate([[beyond], law, [beyond]])
    # Cells are joined from the left until each has enough.
    cuts, filled = [0], 0.0
    for place, x in enumerate(expected):
        filled += x
        if filled >= 50:
            cuts.append(place + 1)
            filled = 0.0
    cuts = cuts[:-1]
    cells, means = np.add.reduceat(seen, cuts), np.add.reduceat(expected, cuts)
    _, high = limits.chi_square(len(cuts) - 1)
    return float(((cells - means) ** 2 / means).sum()) <= high


class TestLaws:
    @pytest.mark.parametrize(("num", "den"), SCALES)
    def test_discrete_laplace(self, num: int, den: int) -> None:
        reach = 40 * max(1, num // den)
        drawn = _core.discrete_laplace(DRAWS, num, den, seed(1))
        assert fits(drawn, laplace_law(num, den, reach))

    @pytest.mark.parametrize("shares", [1, 2, 3, 4, 7, 64])
    @pytest.mark.parametrize(("num", "den"), SCALES)
    def test_shares(self, num: int, den: int, shares: int) -> None:
        reach = 40 * max(1, num // den)
        drawn = _core.polya_difference(DRAWS, num, den, shares, seed(2))
        assert fits(drawn, difference_law(num, den, 1 / shares, reach))

    @pytest.mark.slow
    @pytest.mark.parametrize("shares", [1, 2, 3, 4, 7])
    @pytest.mark.parametrize(("num", "den"), SCALES)
    def test_all_shares_together_are_one_discrete_laplace(
        self, num: int, den: int, shares: int
    ) -> None:
        reach = 40 * max(1, num // den)
        drawn = [
            _core.polya_difference(DRAWS, num, den, shares, seed(10 + i)) for i in range(shares)
        ]
        assert fits(np.sum(drawn, axis=0), laplace_law(num, den, reach))

    def test_large_scales(self) -> None:
        """Scale 10^7: values in cells of a million."""
        num, cell = 10_000_000, 1_000_000
        drawn = _core.discrete_laplace(DRAWS, num, 1, seed(3)) // cell
        edges = np.arange(-200, 202) * float(cell)
        below = np.where(edges <= 0, np.exp(edges / num) / 2, 1 - np.exp(-edges / num) / 2)
        assert fits(drawn, np.diff(below)[:-1])
        shares = [_core.polya_difference(DRAWS, num, 1, 4, seed(20 + i)) for i in range(4)]
        assert fits(np.sum(shares, axis=0) // cell, np.diff(below)[:-1])

    def test_wide_fractions(self) -> None:
        """Numerators near 2^62: a scale of nearly 3/2."""
        num, den = 2**62 - 1, (2**63 - 1) // 3
        law = laplace_law(num, den, 60)
        assert fits(_core.discrete_laplace(DRAWS, num, den, seed(4)), law)
        shares = [_core.polya_difference(DRAWS, num, den, 3, seed(30 + i)) for i in range(3)]
        assert fits(np.sum(shares, axis=0), law)


class TestTester:
    """The tester rejects what is a little wrong."""

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda z: z + (np.arange(len(z)) % 20 == 0),  # one in twenty is moved
            lambda z: np.where((z == 0) & (np.arange(len(z)) % 8 == 0), 1, z),  # −0 as 1
            np.abs,
        ],
    )
    def test_spoilt_draws(self, spoil: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> None:
        drawn = _core.discrete_laplace(DRAWS, 2, 1, seed(5))
        assert fits(drawn, laplace_law(2, 1, 80))
        assert not fits(spoil(drawn), laplace_law(2, 1, 80))

    def test_wrong_scales_and_shares(self) -> None:
        assert not fits(_core.discrete_laplace(DRAWS, 21, 10, seed(5)), laplace_law(2, 1, 80))
        drawn = _core.polya_difference(DRAWS, 2, 1, 3, seed(5))
        assert not fits(drawn, difference_law(2, 1, 1 / 4, 80))
        three = [_core.polya_difference(DRAWS, 2, 1, 4, seed(i)) for i in range(3)]
        assert not fits(np.sum(three, axis=0), laplace_law(2, 1, 80))


class TestSeeds:
    def test_golden_values(self) -> None:
        assert _core.discrete_laplace(12, 5, 2, seed(1)).tolist() == GOLDEN_LAPLACE
        assert _core.polya_difference(12, 100, 1, 3, seed(1)).tolist() == GOLDEN_SHARES

    def test_equal_on_every_thread(self) -> None:
        found: list[list[int]] = []
        draw = lambda: found.append(  # noqa: E731
            _core.polya_difference(5000, 20, 1, 4, seed(6)).tolist()
        )
        threads = [threading.Thread(target=draw) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        draw()
        assert all(values == found[0] for values in found)

    def test_other_seeds_give_other_values(self) -> None:
        one, two = (_core.discrete_laplace(1000, 20, 1, seed(i)) for i in (7, 8))
        assert (one == two).mean() < 0.2


class TestRefusals:
    @pytest.mark.parametrize(
        ("num", "den"), [(0, 1), (1, 0), (2**62 + 1, 2**62), (1, 2**62 + 1), (2**50 + 1, 1)]
    )
    def test_scales(self, num: int, den: int) -> None:
        with pytest.raises(ValueError, match="scale"):
            _core.discrete_laplace(1, num, den, bytes(32))
        with pytest.raises(ValueError, match="scale"):
            _core.polya_difference(1, num, den, 2, bytes(32))

    @pytest.mark.parametrize("shares", [0, 65])
    def test_shares(self, shares: int) -> None:
        with pytest.raises(ValueError, match="64 shares"):
            _core.polya_difference(1, 1, 1, shares, bytes(32))

    def test_nothing_asked(self) -> None:
        assert _core.discrete_laplace(0, 1, 1, bytes(32)).size == 0
