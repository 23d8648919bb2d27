"""The audit of methods that open numbers with noise: sealed, and the three parts of feat+."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt

from silograph.audit import laws, trials
from silograph.dp.laplace import round_up
from silograph.dp.loss import View
from silograph.messages.entropy import Entropy
from silograph.methods.committee.noise import CommitteeNoise
from silograph.methods.featplus.noise import FeatPlusNoise, Split
from silograph.methods.sealed.noise import HONEST, PARTS, Answer, Bounded, Coins, SealedNoise
from silograph.methods.union import settle_union

__all__ = ["FeatPlusCase", "SealedCase"]

_NUMBERS = 1 << 15
_PAIRS = 1 << 18
_BOUNDED_RUNS = 1 << 10
#: The graph of a case with a bound: two nodes with so many common neighbours, which have no others,
#: and nodes without edges. The neighbouring graph has an edge between the two as well.
_NODES, _COMMON = 16, 3
_OTHERS = [2] * _COMMON + [0] * (_NODES - 2 - _COMMON)
_DELTA = 1e-4
#: Outcomes that are less likely than this are left out, and count as delta.
_RARE = 1e-12

Floats = npt.NDArray[np.float64]


# --- sealed ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SealedCase:
    """One answer of a sealed run, and the noise that it is opened with."""

    noise: SealedNoise
    answer: Answer

    @classmethod
    def choose(
        cls, epsilon: float, silos: int, collusion: int, words: Sequence[str]
    ) -> "SealedCase":
        """``edges`` or ``degrees``, maybe ``in shares``; or ``triangles by rule``."""
        answer = cast("Answer", words[0])
        given = (epsilon, _NODES, silos, collusion, [answer])
        if words[1:] == ["by", "rule"]:
            noise = SealedNoise.choose(*given, delta=_DELTA, degree_share=0.5, rule="second")
        else:
            kind = "shares" if words[1:] == ["in", "shares"] else "committee"
            noise = SealedNoise.choose(*given, kind=kind)  # type: ignore[arg-type]
        return cls(noise, answer)

    def examine(self, against: int, entropy: Entropy, effort: float) -> tuple[float, float]:
        """The enumerated and the observed loss against the coordinator with so many members."""
        if against > 1:
            return math.inf, 0.0  # they have every component of the union
        if self.noise.margins:
            runs = max(64, int(_BOUNDED_RUNS * effort))
            hits = [self._bounded_hits(edge, runs, entropy) for edge in (1, 0)]
            return _bounded_loss(self.noise), trials.lower_bound(hits, runs)
        count = max(256, int(_NUMBERS * effort)) * self._changed
        hits = [self._hits(truth, against, count, entropy) for truth in (1, 0)]
        return self._loss(against), trials.lower_bound(hits, count // self._changed)

    @property
    def _changed(self) -> int:
        """How many numbers an edge changes."""
        return 2 if self.answer == "degrees" else 1

    def _loss(self, against: int) -> float:
        drawn = self.noise.drawn(self.answer)
        if not isinstance(drawn, Coins):
            scale = self.noise.scale(self.answer)
            return laws.parts_loss(scale, PARTS - against, HONEST) * self._changed
        edge, none = (laws.digits(drawn.numerators, drawn.places, at) for at in (1, 0))
        delta = Fraction(self.noise.delta)
        if self._changed == 1:
            return laws.loss_at(edge, none, delta)
        return laws.loss_at(laws.together(edge, edge), laws.together(none, none), delta)

    def _hits(self, truth: int, against: int, count: int, entropy: Entropy) -> int:
        """How often all that an edge changes is opened above 0."""
        drawn = self.noise.drawn(self.answer)
        assert not isinstance(drawn, Bounded)  # noqa: S101 - that has hits of its own
        given = np.full(count, truth, dtype=np.int64)
        opened = trials.sealed_opened(drawn, given, against, entropy)
        return int((opened >= 1).reshape(self._changed, -1).all(axis=0).sum())

    def _bounded_hits(self, edge: int, runs: int, entropy: Entropy) -> int:
        """How often both degrees and the triangles look as if there were an edge."""
        degrees, count = self.noise.drawn("degrees"), self.noise.drawn("triangles")
        assert isinstance(count, Bounded)  # noqa: S101 - it is the case by rule
        assert not isinstance(degrees, Bounded)  # noqa: S101 - nothing bounds it
        truth = np.array([_COMMON + edge] * 2 + _OTHERS, dtype=np.int64)
        opened = trials.sealed_opened(degrees, np.tile(truth, runs), 0, entropy)
        noisy = opened.reshape(runs, _NODES)
        bounds = np.array([count.bound(one) for one in noisy])
        likely = np.minimum(noisy[:, 0], noisy[:, 1]) > _COMMON
        hits = 0
        for bound in np.unique(bounds):
            these = bounds == bound
            triangles = np.full(int(these.sum()), _COMMON * edge, dtype=np.int64)
            found = trials.sealed_opened(count.at(int(bound)), triangles, 0, entropy)
            hits += int((likely[these] & (found >= _COMMON)).sum())
        return hits


def _bounded_loss(noise: SealedNoise) -> float:
    """The least epsilon at the claimed delta of all that is opened of the graph, by enumeration.

    That is the degrees of both nodes, the triangles, and the bound, which is all that the other
    degrees have to do with it. Computed in floats, and lowered by more than those may be off.
    """
    edge, none = (np.concatenate(list(_outcomes(noise, edge))) for edge in (1, 0))
    left = max(1 - edge.sum(), 1 - none.sum(), 0.0) + 1e-12
    if left >= noise.delta:
        raise ArithmeticError("too much was left out")
    found = [_float_loss(a, b, noise.delta - left) for a, b in ((edge, none), (none, edge))]
    return max(found) * (1 - 1e-9)


def _outcomes(noise: SealedNoise, edge: int) -> Iterator[Floats]:
    """The probabilities of all outcomes, in an order that is the same with and without an edge."""
    one, count = _table(noise.drawn("degrees")), noise.drawn("triangles")
    assert isinstance(count, Bounded)  # noqa: S101 - it is the case by rule
    reach = len(one) // 2
    values = np.arange(-reach, _COMMON + reach + 2)
    ours, least = _at(one, values, _COMMON + edge), _at(one, values, _COMMON)
    either = np.maximum(least, _at(one, values, _COMMON + 1))
    # Of the other degrees: how likely none of them, or at most one, is above a value.
    below = np.array([np.cumsum(_at(one, values, at)) for at in _OTHERS]).clip(0, 1)
    nobody = below.prod(axis=0)
    single = nobody + sum(
        (1 - below[i]) * np.delete(below, i, axis=0).prod(axis=0) for i in range(len(_OTHERS))
    )
    bounds = np.array([count.bound(np.array([value, value])) for value in values])
    tables = {int(b): _table(count.at(int(b))) for b in np.unique(bounds)}
    for i in range(len(values)):
        for j in range(i, len(values)):  # both nodes are alike
            if either[i] * either[j] < _RARE:
                continue
            chance = np.concatenate([np.zeros(i), nobody[i:j], single[j:]])
            second = np.diff(chance, prepend=0.0)
            weight = ours[i] * ours[j] * (1 if i == j else 2)
            for bound, table in tables.items():
                # Some value must be the second largest; the last one takes what is beyond.
                whole = second[bounds == bound].sum()
                if whole < _RARE:
                    continue
                wide = np.zeros(len(table) + _COMMON)
                wide[_COMMON * edge : _COMMON * edge + len(table)] = table
                yield weight * whole * wide


def _table(drawn: object) -> Floats:
    """The law of noise by digits, from the least value to the largest, in floats."""
    assert isinstance(drawn, Coins)  # noqa: S101 - a bound needs committee noise
    one = np.ones(1)
    for j, numerator in enumerate(drawn.numerators):
        chance = float(Fraction(numerator, 2**drawn.places))
        tossed = np.zeros(len(one) + 2**j)
        tossed[: len(one)] += one * (1 - chance)
        tossed[2**j :] += one * chance
        one = tossed
    return np.convolve(one, one[::-1])


def _at(table: Floats, values: npt.NDArray[np.int64], at: int) -> Floats:
    """The probabilities of values of a number ``at`` with such noise."""
    reach = len(table) // 2
    places = values - at + reach
    inside = (places >= 0) & (places < len(table))
    return np.where(inside, table[places.clip(0, len(table) - 1)], 0.0)


def _float_loss(first: Floats, second: Floats, delta: float) -> float:
    """The largest ln (P(S) − delta)/P′(S), over sets of outcomes with the largest ratios."""
    kept = first > 0
    p, q = first[kept], second[kept]
    with np.errstate(divide="ignore"):
        order = np.argsort(-(p / q))
    gain, cost = np.cumsum(p[order]) - delta, np.cumsum(q[order])
    if (gain[cost == 0] > 0).any():
        return math.inf
    worth = gain > 0
    return float(np.log(gain[worth] / cost[worth]).max(initial=0.0))


# --- feat+ ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FeatPlusCase:
    """A run of feat+ with a committee's release, in the paper's split."""

    epsilon: float
    silos: int
    collusion: int

    @cached_property
    def noise(self) -> FeatPlusNoise:
        """The noise of the degrees and of the local answers."""
        split = Split.of("paper", self.epsilon)
        return FeatPlusNoise(split, self.silos, self.collusion, "gradient")

    @cached_property
    def release(self) -> CommitteeNoise:
        """The noise of the release."""
        epsilon = self.noise.split.release_epsilon
        noise = settle_union("committee", epsilon, self.silos, self.collusion).noise
        assert isinstance(noise, CommitteeNoise)  # noqa: S101 - it was asked for
        return noise

    @property
    def views(self) -> tuple[View, ...]:
        """What the product claims for the whole run."""
        epsilon = self.noise.split.release_epsilon
        union = settle_union("committee", epsilon, self.silos, self.collusion)
        return self.noise.views(self.noise.losses(union.losses), drawn=False)

    def examine(self, against: int, entropy: Entropy, effort: float) -> tuple[float, float]:
        """The losses of all parts together, and what was seen of them at once."""
        release, noise, honest = self.release, self.noise, self.silos - against
        parts = [
            Fraction(
                laws.worst_loss(
                    lambda holders: laws.committee(release.numerator, release.places, holders),
                    honest,
                )
            ),
            # Every honest holder has a degree at either end.
            2 * honest * laws.laplace_loss(noise.partition_scale, 1),
            laws.laplace_loss(noise.local_scale, noise.local_steps),
        ]
        pairs = max(64, int(_PAIRS * effort) // 64 * 64)
        hits = [
            trials.featplus_hits(noise, release, (held,) * self.silos, against, pairs, entropy)
            for held in (True, False)
        ]
        return round_up(sum(parts, Fraction(0))), trials.lower_bound(hits, pairs)
