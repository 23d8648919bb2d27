"""From a study to the sessions that carry it out: what it costs, who learns how much, what comes.

A method is one class here: it chooses the noise, makes the two sessions, and turns what the
coordinator is left with into an answer.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from silograph.crypto.identity import Identity
from silograph.errors import StudyError
from silograph.graph.bitrows import BitRows
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.methods.sessions import CoordinatorSession, SiloSession
from silograph.methods.study import Study
from silograph.methods.union import UnionPlan, plan_union
from silograph.methods.unions import (
    ElgamalCoordinatorSession,
    ElgamalSiloSession,
    MaskedCoordinatorSession,
    MaskedSiloSession,
    ReportCoordinatorSession,
    ReportSiloSession,
)
from silograph.privacy.baseline import BaselineNoise
from silograph.privacy.masked import MaskedNoise
from silograph.privacy.views import View
from silograph.protocol.elgamal import ElgamalParameters
from silograph.protocol.entropy import Entropy
from silograph.protocol.masked import MaskedParameters
from silograph.protocol.reports import ReportParameters
from silograph.protocol.roster import Roster
from silograph.queries.estimate import Estimate
from silograph.queries.release import Provenance, Release
from silograph.queries.report_counts import ReportCounts
from silograph.queries.reports import Reports

__all__ = [
    "BaselinePlan",
    "FeatPlan",
    "Outcome",
    "StudyPlan",
    "ask",
    "release_of",
    "union_coordinator",
    "union_parameters",
    "union_silo",
]


@dataclass(frozen=True)
class Outcome:
    """The answer to a study, and the release that it was read from, where there is one."""

    answer: Estimate[Any]
    release: Release | None = None

    def save(self, folder: Path, run: str) -> Path | None:
        """Write the release beside other results; its path, where there is one."""
        if self.release is None:
            return None
        path = folder / f"{run}.release"
        self.release.save(path)
        return path


class StudyPlan(ABC):
    """A study with all that follows from it, the same for every party that reads it."""

    #: The names of the options that the method takes.
    options: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, study: Study) -> None:
        self.study = study
        self.silos = len(study.silos)
        unknown = set(study.options) - self.options
        if unknown:
            raise StudyError(f"{study.method} has no option {min(unknown)!r}")

    #: The certified epsilon against the coordinator with t silos, for t = 0 … m−1.
    losses: dict[int, float]
    delta: float = 0.0
    views: tuple[View, ...]
    #: With its variant, as it stands in a release.
    protocol: str
    #: Whose loss it is that ``losses`` bounds.
    view: str = "coordinator + t silos"
    #: What the proposer should be told.
    advice: str = ""

    @classmethod
    def settled(cls, study: Study) -> Study:
        """The study with every choice written down that a method would otherwise make by itself.

        It is the proposer's; all others compute from what is written alone.
        """
        return study

    @property
    def what(self) -> str:
        """Method and protocol (where there is a choice), in ledgers and policies."""
        return f"{self.study.method} {self.protocol}"

    @abstractmethod
    def silo(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy, silo: Silo
    ) -> SiloSession:
        """The session of the silo at a place."""

    @abstractmethod
    def coordinator(
        self, roster: Roster, identity: Identity, entropy: Entropy
    ) -> CoordinatorSession[Any]:
        """The coordinator's session."""

    @abstractmethod
    def outcome(self, result: Any, universe: NodeUniverse) -> Outcome:
        """The answer, from what the coordinator's session is left with."""


class FeatPlan(StudyPlan):
    """A release of the union, by the masked or the ElGamal protocol."""

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.union = plan_union(
            _for_a_study(study.protocol), study.epsilon, self.silos, study.collusion
        )
        plan = self.union
        self.losses, self.views, self.advice = plan.losses, plan.views, plan.advice
        self.protocol = plan.protocol
        self.parameters = union_parameters(plan, study.pairs, study.subject)

    def silo(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy, silo: Silo
    ) -> SiloSession:
        """A silo in the union."""
        given, run = self.parameters, self.study.id
        return union_silo(given, roster, run, place, identity, entropy, silo)

    def coordinator(
        self, roster: Roster, identity: Identity, entropy: Entropy
    ) -> CoordinatorSession[bytes]:
        """The union's coordinator."""
        return union_coordinator(self.parameters, roster, self.study.id, identity)

    def outcome(self, result: bytes, universe: NodeUniverse) -> Outcome:
        """The release, and the question asked of it."""
        made = release_of(self.union, self.study, result, universe)
        return Outcome(ask(made, self.study), made)


def _for_a_study(protocol: str) -> str:
    if protocol in ("clear", "elgamal/printed"):
        raise StudyError(f"protocol {protocol!r} is for experiments, not for a study")
    return protocol


def union_parameters(
    plan: UnionPlan, pairs: int, subject: bytes
) -> MaskedParameters | ElgamalParameters:
    """What the machines of a planned union agree on."""
    if isinstance(plan.noise, MaskedNoise):
        return MaskedParameters(plan.noise.q, plan.noise.b, plan.silos, pairs, subject)
    if plan.noise is None:
        raise StudyError(f"protocol {plan.protocol!r} has no messages")
    variant, coin = plan.noise.variant, plan.noise.coin
    return ElgamalParameters(variant, coin, plan.silos, pairs, subject)


def union_silo(
    given: MaskedParameters | ElgamalParameters,
    roster: Roster,
    run: bytes,
    place: int,
    identity: Identity,
    entropy: Entropy,
    silo: Silo,
) -> SiloSession:
    """A silo's session in a union."""
    if isinstance(given, MaskedParameters):
        return MaskedSiloSession(given, roster, run, place, identity, entropy, silo)
    return ElgamalSiloSession(given, roster, run, place, identity, entropy, silo)


def union_coordinator(
    given: MaskedParameters | ElgamalParameters, roster: Roster, run: bytes, identity: Identity
) -> CoordinatorSession[bytes]:
    """The coordinator's session in a union."""
    if isinstance(given, MaskedParameters):
        return MaskedCoordinatorSession(given, roster, run, identity)
    return ElgamalCoordinatorSession(given, roster, run, identity)


def release_of(plan: UnionPlan, study: Study, triangle: bytes, universe: NodeUniverse) -> Release:
    """What a union made."""
    graph = BitRows.from_triangle(study.nodes, triangle)
    made = Provenance(study.method, plan.protocol, plan.silos, study.collusion, study.run)
    return Release(graph, plan.channel, universe.digest, made, plan.views, universe)


class BaselinePlan(StudyPlan):
    """Every silo's own report at ε/m."""

    protocol = "reports"
    what = "baseline"
    options = frozenset({"raw"})

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        if study.protocol not in ("", self.protocol):
            raise StudyError("method 'baseline' has no protocol to choose")
        if not hasattr(Reports, study.query):
            raise StudyError(f"baseline does not answer {study.query}")
        if not isinstance(study.options.get("raw", False), bool):
            raise StudyError("option raw must be true or false")
        self._noise = BaselineNoise.choose(study.epsilon, self.silos, study.collusion)
        self.losses = {t: self._noise.epsilon(self.silos - t) for t in range(self.silos)}
        self.views = self._noise.views
        channel = self._noise.channel
        self.parameters = ReportParameters(
            channel.p11, channel.p01, self.silos, study.pairs, study.subject
        )

    def silo(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy, silo: Silo
    ) -> SiloSession:
        """A silo that reports."""
        run = self.study.id
        return ReportSiloSession(self.parameters, roster, run, place, identity, entropy, silo)

    def coordinator(
        self, roster: Roster, identity: Identity, entropy: Entropy
    ) -> CoordinatorSession[list[bytes]]:
        """The coordinator that keeps all reports."""
        return ReportCoordinatorSession(self.parameters, roster, self.study.id, identity)

    def outcome(self, result: list[bytes], universe: NodeUniverse) -> Outcome:
        """The question, asked of all reports."""
        rows = [BitRows.from_triangle(self.study.nodes, report) for report in result]
        counts, study = ReportCounts.of(rows), self.study
        provenance = Provenance(study.method, self.protocol, self.silos, study.collusion, study.run)
        reports = Reports(counts, self._noise, universe.digest, provenance, universe)
        return Outcome(ask(reports, self.study, raw=bool(self.study.options.get("raw", False))))


def ask(source: object, study: Study, **options: bool) -> Estimate[Any]:
    """Ask a release, or whatever has the query's name, what the study asks."""
    given: dict[str, Any] = dict(options) if study.k is None else {**options, "k": study.k}
    return cast("Estimate[Any]", getattr(source, study.query)(**given))
