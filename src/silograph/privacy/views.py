"""Views: who may be looking, and what a release costs against each of them.

An epsilon without a view means nothing. The same release can be epsilon-private against its
coordinator and wide open to a silo that knows part of the noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from silograph.errors import ArgumentError
from silograph.privacy.loss import shown_loss

__all__ = ["PUBLISHED", "View", "check_parties", "union_views"]


#: One who sees the published release and nothing else.
PUBLISHED = "published"


@dataclass(frozen=True)
class View:
    """An observer and the certified (epsilon, delta) against them.

    ``name`` is ``"published"``, ``"coordinator"``, ``"coordinator + 2 silos"``, ``"1 silo"`` …
    """

    name: str
    epsilon: float
    delta: float = 0.0
    #: False for an observer whom the protocol does not claim to hold to epsilon; it is shown so
    #: that nobody takes silence for a promise.
    claimed: bool = True

    def __post_init__(self) -> None:
        if not self.name:
            raise ArgumentError("a view needs a name")
        if math.isnan(self.epsilon) or self.epsilon < 0:
            raise ArgumentError(f"view {self.name!r}: epsilon must be at least 0")
        if not 0 <= self.delta <= 1:
            raise ArgumentError(f"view {self.name!r}: delta must be from 0 to 1")

    def __str__(self) -> str:
        delta = f", δ = {shown_loss(self.delta)}" if self.delta else ""
        beyond = "" if self.claimed else " (not claimed)"
        return f"{self.name}: ε = {shown_loss(self.epsilon)}{delta}{beyond}"


def check_parties(silos: int, collusion: int) -> None:
    """Refuse numbers of silos and colluders that make no sense."""
    for name, value in (("silos", silos), ("collusion", collusion)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise ArgumentError(f"{name} must be an integer, not {value!r}")
    if not 2 <= silos <= 64:
        raise ArgumentError(f"there must be 2 to 64 silos, not {silos}")
    if not 0 <= collusion < silos:
        raise ArgumentError(f"collusion must be from 0 to {silos - 1} for {silos} silos")


def union_views(silos: int, collusion: int, epsilon: Callable[[int], float]) -> tuple[View, ...]:
    """The views of a union protocol whose loss depends on the number of honest silos."""
    found = [View("coordinator", epsilon(silos))]
    if collusion:
        group = f"{collusion} silo{'s' if collusion > 1 else ''}"
        loss = epsilon(silos - collusion)
        found += [View(f"coordinator + {group}", loss), View(f"{group} + release", loss)]
    else:
        found.append(View("1 silo + release", epsilon(silos - 1), claimed=False))
    return tuple(found)
