"""Tier 0 for the ElGamal unions: every holder set and every view, in fractions (errata 1, 2, 4)."""

import itertools
import math
from fractions import Fraction

import pytest

from silograph.dp.channel import Channel
from silograph.dp.loss import log_upper
from silograph.errors import ArgumentError
from silograph.methods.elgamal.noise import ElgamalNoise

EPSILONS = [0.5, 1.0, 2.0, 3.0]
Law = dict[object, Fraction]


def holder_sets(m: int) -> list[tuple[bool, ...]]:
    return [h for h in itertools.product((False, True), repeat=m) if any(h)]


def loss(first: Law, second: Law) -> float:
    """The worst log-ratio over all outcomes, both ways; infinite where only one can happen."""
    worst = Fraction(1)
    for outcome in first.keys() | second.keys():
        p, q = first.get(outcome, Fraction(0)), second.get(outcome, Fraction(0))
        if p == q == 0:
            continue
        if p == 0 or q == 0:
            return math.inf
        worst = max(worst, p / q, q / p)
    return log_upper(worst)


def response(bit: int, p: Fraction) -> Law:
    return {bit: 1 - p, 1 - bit: p}


def printed_law(holders: tuple[bool, ...], p: Fraction) -> Law:
    """Algorithm 3, lines 5–15: silo 1 shows RR of its bit; each later one sets 1 if its RR is 1."""
    law = response(int(holders[0]), p)
    for holds in holders[1:]:
        coin = response(int(holds), p)
        law = {1: law[1] + law[0] * coin[1], 0: law[0] * coin[0]}
    return law


def prose_or_law(holders: tuple[bool, ...], p: Fraction) -> Law:
    """The first prose read as an OR: only silo 1 flips zeros, every holder flips its ones."""
    law = response(int(holders[0]), p)
    for holds in holders[1:]:
        if holds:
            law = {1: law[1] + law[0] * (1 - p), 0: law[0] * p}
    return law


def replace_joint(holders: tuple[bool, ...], p: Fraction) -> Law:
    """(what silo 1 drew, Y): a later holder overwrites with its own RR(1)."""
    joint: Law = {(y, y): q for y, q in response(int(holders[0]), p).items()}
    for holds in holders[1:]:
        if holds:
            fresh: Law = {}
            for (drawn, _), q in joint.items():  # type: ignore[misc]
                for y, r in response(1, p).items():
                    fresh[drawn, y] = fresh.get((drawn, y), Fraction(0)) + q * r
            joint = fresh
    return joint


def shown(joint: Law) -> Law:
    law: Law = {0: Fraction(0), 1: Fraction(0)}
    for (_, y), q in joint.items():  # type: ignore[misc]
        law[y] += q
    return law


def blinded_law(bit: int, b: Fraction, honest: int) -> Law:
    """The union bit after so many independent flips."""
    law: Law = {bit: Fraction(1), 1 - bit: Fraction(0)}
    for _ in range(honest):
        law = {y: law[y] * (1 - b) + law[1 - y] * b for y in (0, 1)}
    return law


class TestBlinded:
    @pytest.mark.parametrize("epsilon", EPSILONS)
    @pytest.mark.parametrize(("m", "t"), [(m, t) for m in (2, 3, 4, 5) for t in range(m)])
    def test_every_coalition(self, epsilon: float, m: int, t: int) -> None:
        """A coalition undoes its own flips; what is left is the honest silos'."""
        noise = ElgamalNoise.choose("blinded", epsilon, m, t)
        for colluding in range(t + 1):
            h = m - colluding
            found = loss(blinded_law(1, noise.coin, h), blinded_law(0, noise.coin, h))
            assert found == noise.epsilon(h) <= epsilon
        assert found >= 0.98 * epsilon

    def test_one_step_less_noise_would_cost_too_much(self) -> None:
        noise = ElgamalNoise.choose("blinded", 1.0, 4, 1)
        b = noise.coin - Fraction(1, 2**64)
        assert loss(blinded_law(1, b, 3), blinded_law(0, b, 3)) > 1.0

    def test_channel(self) -> None:
        noise = ElgamalNoise.choose("blinded", 2.0, 4, 1)
        law = blinded_law(1, noise.coin, 4)
        assert noise.channel == Channel(law[1], law[0])

    def test_without_colluders_a_silo_knows_more(self) -> None:
        noise = ElgamalNoise.choose("blinded", 1.0, 4, 0)
        assert noise.views[-1].epsilon > 1.0
        assert not noise.views[-1].claimed


class TestReplace:
    @pytest.mark.parametrize("epsilon", EPSILONS)
    @pytest.mark.parametrize("m", [2, 3, 4, 5])
    def test_the_coordinator_sees_one_response(self, epsilon: float, m: int) -> None:
        noise = ElgamalNoise.choose("replace", epsilon, m, 0)
        nobody = shown(replace_joint((False,) * m, noise.coin))
        laws = [shown(replace_joint(holders, noise.coin)) for holders in holder_sets(m)]
        assert all(law == laws[0] for law in laws)
        assert laws[0] == response(1, noise.coin)
        assert loss(laws[0], nobody) == noise.epsilon(m) <= epsilon
        assert noise.epsilon(m) >= 0.98 * epsilon

    @pytest.mark.parametrize("m", [2, 3, 4, 5])
    def test_silo_one_sees_the_others_edges(self, m: int) -> None:
        """Erratum 4: it knows what it drew; where Y differs, someone overwrote it."""
        noise = ElgamalNoise.choose("replace", 1.0, m, 0)
        nobody = replace_joint((False,) * m, noise.coin)
        other = replace_joint((False,) * (m - 1) + (True,), noise.coin)
        assert loss(nobody, other) == math.inf == noise.epsilon(m - 1)
        assert noise.views[-1].epsilon == math.inf

    def test_it_claims_nothing_against_silos(self) -> None:
        with pytest.raises(ArgumentError, match="needs collusion=0"):
            ElgamalNoise.choose("replace", 1.0, 4, 1)


class TestPrinted:
    @pytest.mark.parametrize("epsilon", EPSILONS)
    @pytest.mark.parametrize("m", [2, 3, 4, 5])
    def test_its_true_loss_is_m_times_epsilon(self, epsilon: float, m: int) -> None:
        noise = ElgamalNoise.choose("printed", epsilon, m, 0)
        nobody = printed_law((False,) * m, noise.coin)
        worst = max(loss(printed_law(holders, noise.coin), nobody) for holders in holder_sets(m))
        assert worst == noise.epsilon(m)
        assert worst == pytest.approx(m * epsilon, rel=1e-9)

    def test_erratum_1(self) -> None:
        """At ε = 1 and five silos: 5.00 as printed, 6.25 for the prose read as an OR."""
        p = Channel.symmetric(1.0).p01
        nobody = (False,) * 5
        lines = max(loss(printed_law(h, p), printed_law(nobody, p)) for h in holder_sets(5))
        prose = max(loss(prose_or_law(h, p), prose_or_law(nobody, p)) for h in holder_sets(5))
        assert round(lines, 2) == 5.00
        assert round(prose, 2) == 6.25
        assert prose == pytest.approx(1 + 4 * math.log(1 + math.e))
        without_first = [h for h in holder_sets(5) if not h[0]]
        worst = max(loss(prose_or_law(h, p), prose_or_law(nobody, p)) for h in without_first)
        assert worst == pytest.approx(4 * math.log(1 + math.e))

    def test_erratum_1_the_holder_set_leaks(self) -> None:
        p = Channel.symmetric(1.0).p01
        laws = {printed_law(h, p)[0] for h in holder_sets(4)}
        assert len(laws) == 4

    def test_erratum_2_three_protocols_and_one_calibration(self) -> None:
        """Only ``replace`` has the channel that the paper's calibration assumes."""
        p = Channel.symmetric(1.0).p01
        one = (False, True, False)
        assert shown(replace_joint(one, p)) == response(1, p)
        assert shown(replace_joint((False,) * 3, p)) == response(0, p)
        assert printed_law((False,) * 3, p) != response(0, p)
        assert prose_or_law(one, p) != response(1, p)


@pytest.mark.parametrize("variant", ["printed", "replace", "blinded"])
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_bad_epsilons(variant: str, epsilon: float) -> None:
    with pytest.raises(ArgumentError):
        ElgamalNoise.choose(variant, epsilon, 4, 0)  # type: ignore[arg-type]


def test_bad_variants_and_tiny_epsilons() -> None:
    with pytest.raises(ArgumentError, match="variant"):
        ElgamalNoise.choose("other", 1.0, 4, 0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="all noise"):
        ElgamalNoise.choose("blinded", 1e-20, 2, 1)
