"""Sealed answers without the protocol: hidden counts that are known, and only the noise drawn.

The protocol opens exactly the count plus the silos' noise (``tests/protocol/test_sealed.py``), so
that the count can be computed once and the noise drawn as often as one likes. The trusted curator
holds the whole graph and uses the same mechanism, budget and delta with one silo's worth of noise.
**For experiments only.**
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.graph.seeds import seed_bytes
from silograph.privacy.laplace import NoiseLaw
from silograph.privacy.sealed import Answer, SealedNoise
from silograph.queries.sealed_stars import kstars_value

__all__ = ["curator_of", "hidden_errors", "largest_degrees", "total_noise", "two_stars_error"]


def total_noise(
    noise: SealedNoise, answer: Answer, bound: int | None, count: int, seed: int, *, alone: bool
) -> NDArray[np.int64]:
    """The sum of all silos' noise, drawn as they draw it; or one whole discrete Laplace each."""
    scale = noise.scale(answer, bound)
    shares, parties = (1, 1) if alone else (noise.shares, noise.silos)
    parts = scale.numerator, scale.denominator, shares
    labels = [f"accuracy/{answer}/{bound}/{party}" for party in range(parties)]
    drawn = (_core.polya_difference(count, *parts, seed_bytes(label, seed)) for label in labels)
    return sum(drawn, np.zeros(count, dtype=np.int64))


def largest_degrees(
    degrees: NDArray[np.int64], law: NoiseLaw, runs: int, seed: int
) -> NDArray[np.int64]:
    """The largest noisy degree in every redraw, from its law: P(max ≤ x) = Π P(z ≤ x − d)."""
    reach = law.least_reach(1e-15)
    below = np.cumsum(law.probabilities(reach))
    values = np.arange(degrees.max() - reach, degrees.max() + reach + 1)
    distinct, counts = np.unique(degrees, return_counts=True)
    places = np.clip(values[:, None] - distinct[None, :] + reach, -1, 2 * reach)
    with np.errstate(divide="ignore"):
        logs = np.where(places < 0, -np.inf, np.log(np.minimum(below, 1.0))[places])
    chances = np.exp((logs * counts).sum(axis=1))
    drawn = np.random.default_rng(seed).random(runs)
    return values[np.minimum(np.searchsorted(chances, drawn), len(values) - 1)]


def hidden_errors(
    degrees: NDArray[np.int64],
    noise: SealedNoise,
    answer: Answer,
    runs: int,
    seed: int,
    *,
    alone: bool = False,
) -> NDArray[np.float64]:
    """The error of an answer in every one of so many redraws."""
    if answer not in noise.answers:
        return np.array(
            [two_stars_error(degrees, noise, seed + i, alone=alone) for i in range(runs)]
        )
    if answer not in noise.slacks:
        return total_noise(noise, answer, None, runs, seed, alone=alone).astype(np.float64)
    tops = largest_degrees(degrees, _law(noise, alone=alone), runs, seed)
    found = np.empty(runs)
    for top in np.unique(tops):
        chosen = np.flatnonzero(tops == top)
        bound = noise.bound(answer, np.full(len(degrees), top))
        found[chosen] = total_noise(noise, answer, bound, len(chosen), seed + int(top), alone=alone)
    return found


def two_stars_error(
    degrees: NDArray[np.int64], noise: SealedNoise, seed: int, *, alone: bool = False
) -> float:
    """The error of 2-stars that follow from noisy degrees, where nothing else is opened."""
    law = _law(noise, alone=alone)
    noisy = degrees + total_noise(noise, "degrees", None, len(degrees), seed, alone=alone)
    truth = sum(d * (d - 1) // 2 for d in degrees.tolist())
    return float(kstars_value(noisy.tolist(), law, 2) - truth)


def _law(noise: SealedNoise, *, alone: bool) -> NoiseLaw:
    return NoiseLaw(noise.scale("degrees"), 1, 1) if alone else noise.law("degrees")


def curator_of(noise: SealedNoise) -> SealedNoise:
    """The same mechanism and budgets for one who holds the whole graph and adds whole noise."""
    whole = sum(noise.budgets.values(), Fraction(0))
    share = noise.budgets.get("degrees", whole / 10) / whole
    if len(noise.budgets) == 1:
        share = Fraction(1, 10)  # one answer gets all of it
    return SealedNoise.choose(
        float(whole),
        noise.nodes,
        noise.silos,
        0,
        noise.answers,
        delta=noise.delta,
        degree_share=share,
    )
