"""The noise of a hub search: losses by enumeration, for every holder set and every coalition.

The laws come from the definition of the Pólya law, in 50 digits, and share nothing with the code
that certifies.
"""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from silograph.dp.laplace import NoiseLaw, Share
from silograph.errors import ArgumentError
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.methods.hubs.noise import HubNoise
from tests import limits
from tests.dp.test_laplace import negative_binomial

#: The farthest sum that is looked at, and how far single shares go.
REACH, FAR = 14, 400


def convolved(one: list[Decimal], other: list[Decimal]) -> list[Decimal]:
    return [sum(one[i] * other[k - i] for i in range(k + 1)) for k in range(len(one))]


def law_of_shares(scale: Fraction, shares: int, drawn: int) -> list[Decimal]:
    """P(z), z from 0 to 2·REACH, of the sum of so many shares, from the law of one.

    A sum of differences is the difference of two sums; each is convolved share by share.
    """
    one = negative_binomial(scale, Fraction(1, shares), FAR)
    total = one
    for _ in range(drawn - 1):
        total = convolved(total, one)
    return [sum(a * b for a, b in zip(total, total[z:], strict=False)) for z in range(2 * REACH)]


def degree_sums(nodes: int, silos: list[set[tuple[int, int]]]) -> np.ndarray:
    """The sum of the degrees in each silo, by the class that a deployment uses."""
    universe = NodeUniverse.range(nodes)
    made = [Silo.from_edges(universe, np.array(sorted(held)).reshape(-1, 2)) for held in silos]
    return sum((silo.degrees() for silo in made), np.zeros(nodes, np.int64))


class TestExact:
    """Tier 0: neighbouring federations, all that the coordinator and a coalition see."""

    @pytest.mark.parametrize(("silos", "collusion"), [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)])
    def test_every_coalition_and_every_holder_set(self, silos: int, collusion: int) -> None:
        """The worst ratio over all sums is at most e^loss, and for some holder set all of it."""
        nodes, edge = 3, (0, 2)
        noise = HubNoise.choose(2.5, silos, collusion)
        rest = [{(0, 1)}, {(0, 1), (1, 2)}, set()][:silos]
        with localcontext(prec=50):
            for known in range(silos):
                honest = silos - known
                law = law_of_shares(noise.scale, noise.shares, honest)
                worst = Decimal(1)
                for holders in itertools.product((False, True), repeat=honest):
                    # Colluding silos take off what is theirs: the honest ones remain.
                    before = degree_sums(nodes, rest[:honest])
                    with_edge = [
                        held | ({edge} if holds else set())
                        for held, holds in zip(rest[:honest], holders, strict=True)
                    ]
                    shift = degree_sums(nodes, with_edge) - before
                    assert np.abs(shift).sum() <= 2 * honest
                    # Noise of different nodes is independent: worst ratios multiply.
                    ratio = Decimal(1)
                    for change in shift.tolist():
                        ratio *= max(
                            max(law[abs(z)] / law[abs(z - change)],
                                law[abs(z - change)] / law[abs(z)])
                            for z in range(-REACH, REACH + 1)
                        )  # fmt: skip
                    worst = max(worst, ratio)
                claimed = Decimal(noise.losses[known])
                assert worst.ln() <= claimed + Decimal("1e-25")
                # Exact below a whole noise; otherwise the bound is reached in the tail.
                least = Decimal("0.999999999999") if honest < noise.shares else Decimal("0.7")
                assert worst.ln() >= claimed * least

    @pytest.mark.parametrize("known", [0, 1])
    def test_all_sums_of_two_nodes_together(self, known: int) -> None:
        """Nothing but sums: the joint law over both ends, outcome by outcome."""
        noise = HubNoise.choose(1.0, 3, 1)
        honest = 3 - known
        with localcontext(prec=50):
            law = law_of_shares(noise.scale, noise.shares, honest)
            both = range(-REACH + 4, REACH - 3)
            worst = max(
                law[abs(x)] * law[abs(y)] / (law[abs(x - k)] * law[abs(y - k)])
                for x, y in itertools.product(both, both)
                for k in range(-honest, honest + 1)
            )
            assert worst.ln() <= Decimal(noise.losses[known]) <= Decimal(1)


class TestChoice:
    @pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.25, 1 / 3, 3.0, math.pi, 50.0])
    @pytest.mark.parametrize(("silos", "collusion"), [(2, 0), (2, 1), (4, 1), (7, 6), (64, 63)])
    def test_never_more_than_was_asked_for(
        self, epsilon: float, silos: int, collusion: int
    ) -> None:
        noise = HubNoise.choose(epsilon, silos, collusion)
        assert noise.scale * Fraction(epsilon) >= 2 * silos
        assert max(noise.losses[t] for t in range(collusion + 1)) <= epsilon
        assert noise.losses[0] > epsilon * (1 - 1e-15)
        assert all(view.epsilon <= epsilon for view in noise.views if view.claimed)
        assert set(noise.losses) == set(range(silos))

    def test_losses_at_four_silos(self) -> None:
        noise = HubNoise.choose(0.25, 4, 1)
        assert noise.scale == 32
        assert [noise.losses[t] for t in (0, 1)] == [0.25, 0.1875]
        # Two honest silos have two thirds of a noise, one has a third: more than epsilon.
        assert 0.25 < noise.losses[2] < noise.losses[3] < 5
        assert noise.losses[2] == 2 * NoiseLaw(Fraction(32), 3, 4).loss(2, 2)
        assert noise.losses[3] == 2 * NoiseLaw(Fraction(32), 3, 4).loss(1, 1)

    def test_without_collusion_a_silo_that_sees_the_sums_is_not_claimed(self) -> None:
        noise = HubNoise.choose(1.0, 3, 0)
        assert [view.claimed for view in noise.views] == [True, False]
        assert noise.views[1].epsilon == noise.losses[1] > 1.0

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ((0.0, 3, 1), "positive"), ((51.0, 3, 1), "protects nobody"), ((1.0, 1, 0), "2 to 64"),
            ((1.0, 3, 3), "collusion must be"),
        ],
    )  # fmt: skip
    def test_nonsense(self, given: tuple[float, int, int], message: str) -> None:
        with pytest.raises(ArgumentError, match=message):
            HubNoise.choose(*given)


class TestShares:
    def test_all_shares_together_follow_the_law(self) -> None:
        """Chi-square of the sum of every silo's draws."""
        noise, count = HubNoise.choose(4.0, 3, 1), 60_000
        total = sum(noise.share.draw(count, bytes([seed] * 32)) for seed in range(3))
        reach = 9
        law = noise.law.probabilities(reach)
        inside = np.abs(total) <= reach
        counts = np.append(np.bincount(total[inside] + reach, minlength=2 * reach + 1),
                           (~inside).sum())  # fmt: skip
        expected = np.append(law, 1 - law.sum()) * count
        low, high = limits.chi_square(len(expected) - 1)
        assert low <= stats.chisquare(counts, expected).statistic <= high

    @pytest.mark.parametrize(
        ("given", "message"),
        [((0, 1, 1), "ratio"), ((1, 2**63, 1), "ratio"), ((2**51, 1, 1), "2\\^50"),
         ((1, 1, 0), "shares"), ((1, 1, 65), "shares")],
    )  # fmt: skip
    def test_limits(self, given: tuple[int, int, int], message: str) -> None:
        with pytest.raises(ArgumentError, match=message):
            Share(*given)
