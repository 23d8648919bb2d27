"""What feat+ costs: splits, scales, and losses at every level of collusion."""

import itertools
import math
from fractions import Fraction

import pytest

from silograph.dp.channel import Channel
from silograph.errors import ArgumentError
from silograph.methods.featplus.noise import (
    STEPS,
    FeatPlusNoise,
    Split,
    gradient_sensitivity,
    largest_change,
    paper_sensitivity,
)
from silograph.methods.union import settle_union

EPSILONS = (0.1, 0.7, 1.0, 3.0, 6.0)


def noise(epsilon: float = 3.0, m: int = 4, t: int = 1, **more: object) -> FeatPlusNoise:
    split = Split.of("paper", epsilon)
    return FeatPlusNoise(split, m, t, more.pop("local", "gradient"), **more)  # type: ignore[arg-type]


class TestSplit:
    @pytest.mark.parametrize("epsilon", EPSILONS)
    @pytest.mark.parametrize("given", ["paper", (0.5, 0.2, 0.3), (1, 0, 0), (0.1, 0.1, 0.8)])
    def test_the_parts_add_up_exactly(self, given: object, epsilon: float) -> None:
        split = Split.of(given, epsilon)  # type: ignore[arg-type]
        assert split.release + split.partition + split.local == Fraction(epsilon)
        assert Fraction(split.release_epsilon) <= split.release
        assert Split.of(split, epsilon) == split

    def test_shares_and_epsilons_are_the_same(self) -> None:
        assert Split.of((0.45, 0.1, 0.45), 3.0) == Split.of("paper", 3.0)
        assert Split.of((1.35, 0.3, 1.35), 3.0) == Split.of("paper", 3.0)

    @pytest.mark.parametrize(
        ("given", "why"),
        [
            ((0.5, 0.5, 0.5), "adds up to it, or to 1; this one to 1.5"),
            ((0, 0.5, 0.5), "release needs a part"),
            ((1.2, -0.1, -0.1), "no part is negative"),
            ((0.5, 0, 0.5), "to both the partition and the local answers"),
            ((0.5, 0.5, 0), "to both the partition and the local answers"),
            ((0.5, 0.5), "three numbers"),
            ("equal", "three numbers"),
            (None, "three numbers"),
            ((1, math.nan, 0), "three numbers"),
            ((1, math.inf, 0), "three numbers"),
        ],
    )
    def test_what_is_no_split(self, given: object, why: str) -> None:
        with pytest.raises(ArgumentError, match=why):
            Split.of(given, 3.0)  # type: ignore[arg-type]


class TestPartition:
    @pytest.mark.parametrize("epsilon", EPSILONS)
    @pytest.mark.parametrize("m", [2, 3, 4, 7])
    def test_an_edge_with_k_holders_costs_k_shares(self, m: int, epsilon: float) -> None:
        """The law of a degree is P(z) ∝ exp(−|z|/scale): a shift by one costs 1/scale. An edge
        shifts two degrees in each of its holders."""
        found = noise(epsilon, m)
        share = Fraction(epsilon) / 10 / m
        for holders in range(1, m + 1):
            loss = found.partition_loss(holders)
            assert loss == 2 * holders / found.partition_scale
            assert share * holders * Fraction(999_999, 10**6) < loss <= share * holders

    def test_the_printed_scale_costs_twice_its_epsilon(self) -> None:
        printed = noise(printed=True)
        assert float(printed.partition_loss(4)) == pytest.approx(2 * 0.3, rel=1e-6)
        assert float(noise().partition_loss(4)) == pytest.approx(0.3, rel=1e-6)
        # So that a whole run would cost more than epsilon.
        union = settle_union("masked", noise().split.release_epsilon, 4, 0).losses
        assert printed.losses(union)[0] > 3.0 >= noise().losses(union)[0]


class TestLosses:
    @pytest.mark.parametrize("epsilon", EPSILONS)
    @pytest.mark.parametrize(("m", "t"), [(2, 1), (3, 1), (4, 1), (4, 2), (7, 3)])
    @pytest.mark.parametrize("local", ["gradient", "paper"])
    def test_epsilon_holds_up_to_t_colluding_silos(
        self, local: str, m: int, t: int, epsilon: float
    ) -> None:
        for given in ("paper", (0.8, 0.1, 0.1), (1, 0, 0)):
            split = Split.of(given, epsilon)  # type: ignore[arg-type]
            found = FeatPlusNoise(split, m, t, local)  # type: ignore[arg-type]
            union = settle_union("masked", split.release_epsilon, m, t).losses
            losses = found.losses(union)
            assert sorted(losses) == list(range(m))
            for level, loss in losses.items():
                assert loss >= union[level]
                # A float that is not below the exact sum.
                parts = Fraction(union[level]), found.partition_loss(m - level), found.local_loss
                assert Fraction(loss) >= sum(parts)
                if level <= t:
                    assert loss <= epsilon
            views = found.views(losses, drawn=False)
            assert next(view.name for view in views) == "coordinator"
            assert max(view.epsilon for view in views) == max(losses[0], losses[t])

    def test_a_union_without_a_bound_has_none_here(self) -> None:
        assert noise(m=2).losses({0: 1.0, 1: math.inf})[1] == math.inf

    def test_all_to_the_release_is_feat(self) -> None:
        found = FeatPlusNoise(Split.of((1, 0, 0), 2.0), 4, 1, "gradient")
        assert found.losses({0: 1.5, 1: 2.0}) == {0: 1.5, 1: 2.0}
        with pytest.raises(ArgumentError):
            _ = found.local_scale

    def test_views(self) -> None:
        found = noise(t=2)
        losses = {0: 1.0, 1: 2.0, 2: 3.0, 3: 9.0}
        shown = [str(view) for view in found.views(losses, drawn=False)]
        assert shown == [
            "coordinator: ε = 1",
            "coordinator + 2 silos: ε = 3",
            "2 silos + release: ε = 3",
        ]
        assert [v.name for v in found.views(losses, drawn=True)] == ["published"]
        with pytest.raises(ArgumentError, match="it must be gradient or paper"):
            noise(local="guess")


class TestSensitivity:
    CHANNELS = (Channel("3/4", "1/4"), Channel("20/21", "1/15"), Channel("2/3", "1/4"))

    def test_rounding_is_paid_for(self) -> None:
        """Two numbers at most Δ apart are, in rounded units, at most 2^30 + 1 apart: one more for
        each silo. Terms of ``gradient`` are rounded one by one and cannot pass 2^30."""
        assert noise(local="gradient").local_steps == STEPS
        assert noise(local="paper").local_steps == STEPS + 4
        for local in ("gradient", "paper"):
            found = noise(local=local)
            assert found.local_loss == found.local_steps / found.local_scale
            assert Fraction(135, 100) - found.local_loss < Fraction(1, 10**6)

    @pytest.mark.parametrize("channel", CHANNELS, ids=str)
    def test_formulas_of_the_design(self, channel: Channel) -> None:
        d = max(abs(1 - channel.alpha), abs(1 - channel.beta))
        omega = max(1, abs(channel.alpha), abs(channel.beta))
        assert largest_change(channel) == d
        assert gradient_sensitivity(channel, 2.5) == d * Fraction(5, 2)
        for n, k in itertools.product((4, 10, 100), (1, 2, 3)):
            assert paper_sensitivity("triangles", None, channel, n) == d * omega**2 * (n - 2)
            stars = 2 * d * math.comb(n - 2, k - 1) * omega ** (k - 1)
            assert paper_sensitivity("kstars", k, channel, n) == stars
