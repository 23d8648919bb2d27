"""Who could learn what from a run, observer by observer."""

import math
from dataclasses import dataclass

from silograph.privacy.views import PUBLISHED, View
from silograph.queries.origin import Origin
from silograph.report.explained import observer, what_is_learnt

__all__ = ["Observer", "observers"]

#: With more silos than this, only the smallest and the largest coalition beyond the claim are told.
_FEW = 8


@dataclass(frozen=True)
class Observer:
    """Someone who looks, the most that they can learn of an edge, and whether that was promised."""

    who: str
    epsilon: float
    delta: float
    claimed: bool
    learns: str


def observers(origin: Origin) -> list[Observer]:
    """Everyone of whom something can be said, from those who see least to those who see most."""
    made, views = origin.provenance, origin.views
    found = []
    if not any(view.name == PUBLISHED for view in views):
        # What is published follows from what the coordinator has, and so tells no more.
        least = next((view for view in views if view.name == "coordinator"), None)
        if least is not None:
            found.append(_told("Anyone who reads the answers", least))
    found += [_told(observer(view.name), view) for view in views]
    if made.protocol == "clear":
        everything = View("the process that drew it", math.inf, claimed=False)
        return [*found, _told("Whoever drew it, with all edges in one place", everything)]
    return found + _beyond(origin)


def _beyond(origin: Origin) -> list[Observer]:
    """Coalitions that are larger than what was claimed, where they learn more."""
    made, losses = origin.provenance, origin.losses
    sealed = made.method == "sealed"
    promised = max((view.epsilon for view in origin.views if view.claimed), default=math.inf)
    told = {view.name for view in origin.views}
    delta = max((view.delta for view in origin.views), default=0.0)
    larger = [t for t, epsilon in losses.items() if t > made.collusion and epsilon > promised]
    if len(larger) > _FEW:
        larger = [larger[0], larger[-1]]
    found = []
    for t in larger:
        group = f"{t} silo{'s' if t > 1 else ''}"
        name = f"{group} + answers" if sealed else f"coordinator + {group}"
        if name not in told:
            beyond = View(name, losses[t], delta, claimed=False)
            everyone = " (all but one)" if t == made.silos - 1 and t > 1 else ""
            found.append(_told(observer(name) + everyone, beyond))
    return found


def _told(who: str, view: View) -> Observer:
    learns = what_is_learnt(view.epsilon, view.delta)
    return Observer(who, view.epsilon, view.delta, view.claimed, learns)
