"""The redraws of the accuracy benchmark, and what its peer says when it cannot run."""

import itertools
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from benchmarks.sealed_accuracy import TopTwo, drawn, in_one_hand
from benchmarks.spu_peer import VARIABLE, peer
from silograph.dp.laplace import NoiseLaw
from silograph.methods.sealed.noise import Kind, SealedNoise

PAIRS = np.array([[0, 1], [1, 2], [0, 2]])


def test_the_two_largest_noisy_degrees_are_drawn_from_their_joint_law() -> None:
    degrees, law, runs = np.array([3, 2, 2, 0]), NoiseLaw(Fraction(1, 2), 3, 4), 100_000
    reach = 9
    chances = law.probabilities(reach)
    exact: Counter[tuple[int, int]] = Counter()
    for noise in itertools.product(range(-reach, reach + 1), repeat=4):
        first, second = sorted(degrees + noise)[-1:-3:-1]
        exact[first, second] += float(np.prod(chances[np.array(noise) + reach]))  # type: ignore[assignment]
    found: Counter[tuple[int, int]] = Counter()
    for first, second, often in TopTwo(degrees, law).draw(runs, 3):
        found[first, second] += often
    assert found.total() == runs
    # Rare outcomes together.
    common = [pair for pair in exact if exact[pair] * runs >= 50]
    expected = [exact[pair] * runs for pair in common]
    observed = [found[pair] for pair in common]
    rest = runs - sum(expected)
    result = stats.chisquare([*observed, runs - sum(observed)], [*expected, rest])
    assert result.pvalue > 1e-9


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("kind", ["committee", "shares"])
def test_draws_have_the_variance_of_their_law(kind: Kind, alone: bool) -> None:
    noise = SealedNoise.choose(1.0, 100, 4, 1, ["triangles"], kind=kind)
    found = drawn(noise, "triangles", None, 100_000, alone=alone).astype(float)
    law = noise.law("triangles")
    variance = in_one_hand(law).variance if alone else law.variance
    assert np.mean(found**2) == pytest.approx(float(variance), rel=0.05)


def test_the_peer_says_why_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert "not asked for" in peer(PAIRS, 3, None)["unable"]
    assert "has no SPU" in peer(PAIRS, 3, sys.executable)["unable"]
    monkeypatch.setattr("benchmarks.spu_peer.REQUIREMENT", "./no-such-file.whl")
    assert "cannot be installed" in peer(PAIRS, 3, "/dev/null/no-folder")["unable"]
