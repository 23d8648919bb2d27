"""Where an answer comes from: the run that paid for it, and who learns how much from that run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Union

from silograph.privacy.views import View

if TYPE_CHECKING:
    from silograph.queries.release import Release
    from silograph.queries.reports import Reports
    from silograph.queries.sealed import SealedRelease

__all__ = ["Origin", "Provenance"]


@dataclass(frozen=True)
class Provenance:
    """Where a release comes from."""

    method: str
    protocol: str
    #: Number of silos, and how many of them may collude with the coordinator.
    silos: int
    collusion: int = 0
    #: The run that made it; empty for a draw.
    run: str = ""


@dataclass(frozen=True, eq=False)
class Origin:
    """What stands behind an answer, as far as it is known."""

    provenance: Provenance
    #: Who learns how much from the whole run, not from this answer alone.
    views: tuple[View, ...]
    #: The certified epsilon against t silos and whoever is with them (the coordinator; in a sealed
    #: run nobody), for t = 0 … m−1.
    losses: Mapping[int, float]
    nodes: int
    universe_digest: str
    #: What was paid for, where it is at hand: it answers more questions for free.
    release: Union["Release", "SealedRelease", "Reports", None] = field(default=None, repr=False)
