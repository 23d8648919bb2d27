"""A study by the baseline (the paper's Algorithm 1)."""

from silograph import _core
from silograph.errors import StudyError
from silograph.graph.bits import BitRows, bits_in_chunks
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.messages.entropy import Entropy
from silograph.messages.identity import Identity, Roster
from silograph.messages.machine import CoordinatorSession, SiloSession
from silograph.methods.baseline.answer import Reports
from silograph.methods.baseline.counts import ReportCounts
from silograph.methods.baseline.machines import ReportCoordinator, ReportParameters, ReportSilo
from silograph.methods.baseline.noise import BaselineNoise
from silograph.methods.cost import Cost, reports_cost
from silograph.methods.method import Outcome, SettledStudy, answered
from silograph.methods.study import RELEASE, Study

__all__ = ["SettledBaseline"]


class SettledBaseline(SettledStudy):
    """The baseline: every silo sends its own report at ε/m."""

    protocol = "reports"
    what = "baseline"
    options = frozenset({"raw"})

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        if study.protocol not in ("", self.protocol):
            raise StudyError("method 'baseline' has no protocol to choose")
        if study.query != RELEASE and not hasattr(Reports, study.query):
            raise StudyError(f"baseline does not answer {study.query}")
        if not isinstance(study.options.get("raw", False), bool):
            raise StudyError("option raw must be true or false")
        self._noise = BaselineNoise.choose(study.epsilon, self.silos, study.collusion)
        self.losses = {t: self._noise.epsilon(self.silos - t) for t in range(self.silos)}
        self.views = self._noise.views
        channel = self._noise.channel
        self._parameters = ReportParameters(
            channel.p11, channel.p01, self.silos, study.pairs, study.subject
        )

    @property
    def cost(self) -> Cost:
        """Traffic, time and memory with all parties on this machine."""
        return reports_cost(self.study.nodes, self.silos)

    @property
    def upload(self) -> int:
        """One bit a pair."""
        return self.study.pairs // 8

    def silo(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy, silo: Silo
    ) -> SiloSession:
        """Make the session of a silo that reports."""
        given, run = self._parameters, self.study.id
        return ReportSilo(
            given, roster, run, place, identity, entropy, bits_in_chunks(silo, given.chunk_pairs)
        )

    def coordinator(
        self, roster: Roster, identity: Identity, entropy: Entropy
    ) -> CoordinatorSession[list[_core.OpenBits]]:
        """Make the session of the coordinator, which keeps all reports."""
        return ReportCoordinator(self._parameters, roster, self.study.id, identity)

    def outcome(self, result: list[_core.OpenBits], universe: NodeUniverse) -> Outcome:
        """The reports, and their answer to the query."""
        rows = [BitRows(report.rows(self.study.nodes)) for report in result]
        counts, noise = ReportCounts.of(rows), self._noise
        reports = Reports(counts, noise, universe.digest, self._provenance(), universe)
        raw = bool(self.study.options.get("raw", False))
        return answered(reports, self.study, raw=raw)
