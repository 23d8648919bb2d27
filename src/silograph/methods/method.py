"""The base class of all methods, and the helpers that they share.

Each method has one class derived from :class:`SettledStudy`. The class settles the noise of a
study, makes the sessions of the silos and of the coordinator, and turns the coordinator's result
into an answer. A run in one process and a deployment use the same classes; they differ only in how
messages are carried.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from silograph.dp.loss import View
from silograph.errors import StudyError
from silograph.estimators.estimate import Estimate, Origin, Provenance
from silograph.estimators.folded_release import FoldedRelease
from silograph.estimators.reference import Reference
from silograph.estimators.release import Release
from silograph.graph.bits import BitRows
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.messages.entropy import Entropy
from silograph.messages.identity import Identity, Roster
from silograph.messages.machine import CoordinatorSession, SiloSession
from silograph.methods.baseline.answer import Reports
from silograph.methods.cost import Cost, LineLoad
from silograph.methods.hubs.answer import HubSearch
from silograph.methods.sealed.answer import SealedRelease
from silograph.methods.sealed.folded import SealedFoldedRelease
from silograph.methods.study import COMMITTEE, RELEASE, Study
from silograph.methods.union import SettledUnion

__all__ = ["Outcome", "SettledStudy", "Source", "answered", "release_of"]


#: The result of a run, which answers queries, or names hubs.
Source = Release | FoldedRelease | Reports | SealedRelease | SealedFoldedRelease | HubSearch


@dataclass(frozen=True)
class Outcome:
    """The outcome of a study: the source that was paid for, and the answer to the study's query.

    There is no answer if the study asked for the release itself.
    """

    source: Source
    answer: Estimate[Any] | None

    def save(self, folder: Path, run: str) -> Path | None:
        """Write the release or the degree sums to ``folder``; return the path, or None."""
        if not isinstance(self.source, Release | FoldedRelease | HubSearch):
            return None
        kind = "hubs.csv" if isinstance(self.source, HubSearch) else "release"
        path = folder / f"{run}.{kind}"
        self.source.save(path)
        return path


class SettledStudy(ABC):
    """A study with everything that follows from it, the same for every party that reads it."""

    #: The names of the options that the method takes.
    options: ClassVar[frozenset[str]] = frozenset()
    #: Whether the method can use a delta.
    takes_delta: ClassVar[bool] = False
    #: What every answer of the method assumes of the coordinator; empty if it assumes nothing.
    assumes: ClassVar[str] = ""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.silos = len(study.silos)
        unknown = set(study.options) - self.options
        if unknown:
            takes = ", ".join(sorted(self.options)) or "none"
            raise StudyError(
                f"{study.method} has no use for option {min(unknown)!r}; it takes {takes}"
            )
        if study.index.folded and not self.folds:
            raise StudyError(
                f"{study.method} {study.protocol}".strip() + " counts on pairs, not on folded nodes"
            )
        if study.index.folded:
            FoldedRelease.check_query(study.query, study.k)
        else:
            Release.check_leaves(study.query, study.k, study.nodes)
        if study.delta and not self.takes_delta:
            raise StudyError(f"{study.method} has no use for delta; leave it 0")
        if study.members and study.protocol != COMMITTEE:
            raise StudyError(f"{study.method} {study.protocol}".strip() + " has no committee")
        if study.protocol == COMMITTEE and not study.members:
            raise StudyError("the study does not name the four members of its committee")

    @property
    def cost(self) -> Cost | None:
        """Traffic, time and memory with all parties on this machine; None if nothing is known."""
        return None

    @property
    def upload(self) -> int:
        """The bytes that a silo sends, roughly; 0 if they are few."""
        return 0 if self.cost is None else self.cost.sent

    def line(self, *, coordinator: bool = False) -> LineLoad:
        """What the study puts on the line of a silo, or of the coordinator."""
        if self.study.protocol == COMMITTEE:  # four members, who open bits to the coordinator
            received = self.study.bits // 2
            return LineLoad(0, received) if coordinator else LineLoad(self.upload, self.upload)
        relays = self.study.protocol.startswith("elgamal")
        if coordinator:
            everything = self.silos * self.upload
            return LineLoad(everything if relays else 0, everything)
        return LineLoad(self.upload, self.upload if relays else 0)

    @property
    def folds(self) -> bool:
        """Whether the study's method and protocol can work on folded nodes."""
        return False

    #: The certified epsilon against the coordinator with t silos, for t = 0 … m−1.
    losses: dict[int, float]
    delta: float = 0.0
    views: tuple[View, ...]
    #: The protocol with its variant, as it is written in a release.
    protocol: str
    #: The view whose loss is bounded by ``losses``.
    view: str = "coordinator + t silos"
    #: A note for the caller; empty if there is nothing to say.
    advice: str = ""

    @classmethod
    def settled(cls, study: Study, like: Reference | None, owned: float | None) -> Study:
        """The study with every choice written down that the method would otherwise make itself.

        Only the proposer calls this, for a graph ``like`` some reference. All other parties use
        only what is written in the study.
        """
        return study

    @property
    def what(self) -> str:
        """The method and, if there is a choice, its protocol, as named in ledgers and policies."""
        return f"{self.study.method} {self.protocol}"

    @abstractmethod
    def silo(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy, silo: Silo
    ) -> SiloSession:
        """Make the session of the silo at ``place``."""

    def helper(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy
    ) -> SiloSession:
        """Make the session of the helper at ``place``, a member of a committee without edges."""
        raise StudyError(f"{self.what} has no helpers")

    @abstractmethod
    def coordinator(
        self, roster: Roster, identity: Identity, entropy: Entropy
    ) -> CoordinatorSession[Any]:
        """Make the coordinator's session."""

    @abstractmethod
    def outcome(self, result: Any, universe: NodeUniverse) -> Outcome:
        """Turn the result of the coordinator's session into the study's outcome."""

    def _provenance(self) -> Provenance:
        study = self.study
        return Provenance(study.method, self.protocol, self.silos, study.collusion, study.run)

    def origin(self, release: object = None, universe: NodeUniverse | None = None) -> Origin:
        """What answers of the study say of their origin; with what was paid for, if it is there."""
        study, made = self.study, self._provenance()
        stated = (made, self.views, self.losses, study.nodes, study.universe)
        return Origin(*stated, release, universe)


def release_of(
    plan: SettledUnion,
    made: Provenance,
    graph: BitRows,
    universe: NodeUniverse,
    views: tuple[View, ...],
    losses: Mapping[int, float],
) -> Release:
    """The release that a union produced, with the views and losses of its run."""
    return Release(graph, plan.channel, universe.digest, made, views, losses, universe)


def answered(source: Source, study: Study, **options: Any) -> Outcome:
    """Ask ``source`` the study's query. Further queries to the same source cost nothing."""
    if study.query == RELEASE:
        return Outcome(source, None)
    if study.k is not None:
        options["k"] = study.k
    return Outcome(source, with_source(getattr(source, study.query)(**options), source))


def with_source(answer: Estimate[Any], source: Source) -> Estimate[Any]:
    """The answer, with a reference to the source that it was computed from."""
    origin = answer.origin
    return answer if origin is None else replace(answer, origin=replace(origin, release=source))
