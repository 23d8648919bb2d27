"""The audit's report: a line for every protocol, parameter set and view, with all its losses."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from silograph.audit import laws, trials
from silograph.audit.counts import FeatPlusCase, SealedCase
from silograph.dp.loss import View
from silograph.errors import ArgumentError
from silograph.messages.entropy import Entropy
from silograph.methods.baseline.noise import BaselineNoise
from silograph.methods.committee.noise import CommitteeNoise
from silograph.methods.elgamal.noise import ElgamalNoise
from silograph.methods.masked.noise import MaskedNoise
from silograph.methods.union import settle_union

__all__ = ["DEFAULT_CASES", "AuditLine", "audit"]

Noise = MaskedNoise | CommitteeNoise | ElgamalNoise | BaselineNoise

#: (protocol, epsilon, silos, collusion). After ``sealed``: what is opened, and how it is drawn.
DEFAULT_CASES = (
    ("masked", 1.0, 4, 0),
    ("masked", 1.0, 4, 1),
    ("masked", 3.0, 4, 1),
    ("masked", 2.0, 5, 2),
    ("masked", 1.0, 2, 1),
    ("committee", 1.0, 4, 1),
    ("committee", 3.0, 5, 1),
    ("committee", 2.0, 4, 0),
    ("elgamal/blinded", 1.0, 4, 1),
    ("elgamal/blinded", 3.0, 3, 2),
    ("elgamal/replace", 1.0, 4, 0),
    ("elgamal/printed", 1.0, 4, 0),
    ("baseline", 2.0, 4, 1),
    ("feat+", 3.0, 4, 1),
    ("feat+", 2.0, 5, 0),
    ("sealed edges", 1.0, 4, 1),
    ("sealed edges", 3.0, 5, 0),
    ("sealed degrees", 2.0, 4, 1),
    ("sealed edges in shares", 1.0, 4, 1),
    ("sealed degrees in shares", 2.0, 4, 0),
    ("sealed triangles by rule", 6.0, 4, 1),
)
_MASKED_PAIRS = 1 << 20
_ELGAMAL_PAIRS = 1 << 12


@dataclass(frozen=True)
class AuditLine:
    """The loss that is certified against one view, and the losses that were found."""

    protocol: str
    epsilon: float
    silos: int
    collusion: int
    view: View
    #: The worst loss over all holder sets, by enumeration, at the delta of the view.
    exact: float
    #: A loss that was observed in real runs; wrong with probability at most 1e-9.
    seen: float

    def to_dict(self) -> dict[str, Any]:
        """The line as plain values, ready for JSON; an infinite loss is null."""
        losses = {"certified": self.view.epsilon, "exact": self.exact, "seen": self.seen}
        return {
            "protocol": self.protocol,
            "asked": self.epsilon,
            "silos": self.silos,
            "collusion": self.collusion,
            "view": self.view.name,
            "claimed": self.view.claimed,
            "delta": self.view.delta,
            **{name: None if math.isinf(loss) else loss for name, loss in losses.items()},
            "holds": self.holds,
        }

    @property
    def holds(self) -> bool:
        """Whether no loss that was found exceeds the certified or the requested one."""
        asked = self.epsilon * (self.silos if self.protocol == "elgamal/printed" else 1)
        certified = self.view.epsilon
        within = self.exact <= certified and self.seen <= certified
        return within and (not self.view.claimed or certified <= asked * (1 + 1e-12))


def audit(
    entropy: Entropy,
    cases: tuple[tuple[str, float, int, int], ...] = DEFAULT_CASES,
    *,
    effort: float = 1.0,
) -> Iterator[AuditLine]:
    """Audit each case, view by view; ``effort`` scales the number of trials."""
    for protocol, epsilon, silos, collusion in cases:
        views, examine = _examiner(protocol, epsilon, silos, collusion)
        found: dict[int, tuple[float, float]] = {}
        for view in views:
            # A coalition learns as much from the published release as with the coordinator.
            against = 0 if view.name == "coordinator" else max(collusion, 1)
            against = 2 if view.name == "2 members" else against
            if against not in found:
                found[against] = examine(against, entropy, effort)
            exact, seen = found[against]
            yield AuditLine(protocol, epsilon, silos, collusion, view, exact, seen)


#: The enumerated and the observed loss against so many colluding parties.
Examine = Callable[[int, Entropy, float], tuple[float, float]]


def _examiner(
    protocol: str, epsilon: float, silos: int, collusion: int
) -> tuple[tuple[View, ...], Examine]:
    """The views of a case, and what finds the losses of one of them."""
    what, *more = protocol.split()
    if what == "sealed":
        sealed = SealedCase.choose(epsilon, silos, collusion, more)
        return sealed.noise.views, sealed.examine
    if what == "feat+":
        plus = FeatPlusCase(epsilon, silos, collusion)
        return plus.views, plus.examine
    noise = _noise(protocol, epsilon, silos, collusion)
    return noise.views, partial(_examine, noise)


def _noise(protocol: str, epsilon: float, silos: int, collusion: int) -> Noise:
    """The noise that the product itself would choose."""
    if protocol == "baseline":
        return BaselineNoise.choose(epsilon, silos, collusion)
    noise = settle_union(protocol, epsilon, silos, collusion).noise
    if noise is None:
        raise ArgumentError(f"protocol {protocol!r} makes no claim to audit")
    return noise


def _examine(noise: Noise, against: int, entropy: Entropy, effort: float) -> tuple[float, float]:
    """The enumerated and the observed loss against this many colluding silos."""
    silos, honest = noise.silos, noise.silos - against
    if isinstance(noise, MaskedNoise):
        exact = laws.worst_loss(lambda holders: laws.masked(noise.q, noise.b, holders), honest)
        pairs = max(64, int(_MASKED_PAIRS * effort))
        zeros = _counter(trials.masked_zeros, noise, against, pairs, entropy)
        return exact, _seen(zeros, silos, honest, pairs)
    if isinstance(noise, CommitteeNoise):
        pooled = against > 1
        exact = laws.worst_loss(
            lambda holders: laws.committee(noise.numerator, noise.places, holders, pooled=pooled),
            honest,
        )
        pairs = max(64, int(_MASKED_PAIRS * effort) // 64 * 64)
        ones = _counter(trials.committee_ones, noise, against, pairs, entropy)
        return exact, 0.0 if pooled else _seen(ones, silos, honest, pairs)
    if isinstance(noise, BaselineNoise):
        p = noise.channel.p01
        exact = laws.worst_loss(lambda holders: laws.reports(p, holders), honest)
        pairs = max(64, int(_MASKED_PAIRS * effort))
        agreed = _counter(trials.reports_agreed, noise, against, pairs, entropy)
        return exact, _seen(agreed, silos, honest, pairs)
    pairs = max(64, int(_ELGAMAL_PAIRS * effort))
    if noise.variant == "blinded":
        exact = laws.worst_loss(lambda holders: laws.blinded(noise.coin, holders), honest)
    elif against:
        # Silo 1 knows its own draw, which is enough for an unbounded loss.
        exact = laws.loss(
            laws.replaced(noise.coin, (False,) * silos, silo_one=True),
            laws.replaced(noise.coin, (False,) * (silos - 1) + (True,), silo_one=True),
        )
        return exact, 0.0
    else:
        law = laws.printed if noise.variant == "printed" else laws.replaced
        exact = laws.worst_loss(lambda holders: law(noise.coin, holders), silos)
    ones = _counter(trials.elgamal_ones, noise, against, pairs, entropy)
    return exact, _seen(ones, silos, honest, pairs)


def _counter(
    trial: Callable[..., int], noise: Noise, against: int, pairs: int, entropy: Entropy
) -> Callable[[tuple[bool, ...]], int]:
    """A function that counts an event in real runs, given the holders of the pairs."""
    return lambda holders: trial(noise, holders, against, pairs, entropy)


def _seen(count: Callable[[tuple[bool, ...]], int], silos: int, honest: int, pairs: int) -> float:
    """The best bound over a few holder sets: one holder, and all honest silos."""
    nobody = count((False,) * silos)
    sets = {(True,) + (False,) * (silos - 1), (True,) * honest + (False,) * (silos - honest)}
    return max(trials.lower_bound((count(holders), nobody), pairs) for holders in sets)
