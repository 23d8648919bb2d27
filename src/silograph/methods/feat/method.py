"""Method ``feat``: a release of the union, by any union protocol."""

from silograph import _core
from silograph.estimators.folded_release import FoldedRelease
from silograph.estimators.release import Release
from silograph.graph.bits import BitRows
from silograph.graph.fold import BucketCounts
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.messages.entropy import Entropy
from silograph.messages.identity import Identity, Roster
from silograph.messages.machine import CoordinatorSession, SiloSession
from silograph.methods.cost import Cost, union_cost
from silograph.methods.method import Outcome, SettledStudy, answered, release_of
from silograph.methods.study import COMMITTEE, Study
from silograph.methods.union import given_channel, settle_union

__all__ = ["SettledFeat"]


class SettledFeat(SettledStudy):
    """A release of the union, by any union protocol. Option ``channel`` is for ``clear`` only."""

    options = frozenset({"channel"})

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.union = settle_union(
            study.protocol, study.epsilon, self.silos, study.collusion, given_channel(study),
            study.members,
        )  # fmt: skip
        plan = self.union
        self.losses, self.views, self.advice = plan.losses, plan.views, plan.advice
        self.protocol = plan.protocol

    def silo(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy, silo: Silo
    ) -> SiloSession:
        """Make a silo's session of the union."""
        of = self.study
        union = (of.bits, of.subject, roster, of.id, place, identity, entropy, silo)
        return self.union.silo(*union, of.index)

    def helper(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy
    ) -> SiloSession:
        """Make a helper's session of the union."""
        of = self.study
        return self.union.helper(of.bits, of.subject, roster, of.id, place, identity, entropy)

    def coordinator(
        self, roster: Roster, identity: Identity, entropy: Entropy
    ) -> CoordinatorSession[_core.OpenBits]:
        """Make the coordinator's session of the union."""
        of = self.study
        return self.union.coordinator(of.bits, of.subject, roster, of.id, identity, entropy)

    @property
    def cost(self) -> Cost:
        """Traffic, time and memory of the union."""
        index = self.study.index
        return union_cost(self.union, self.study.nodes, index.layout if index.folded else None)

    @property
    def folds(self) -> bool:
        """ElGamal's unions take milliseconds a bit, and are for pairs only."""
        return self.study.protocol in ("masked", COMMITTEE, "clear")

    def _release(self, bits: _core.OpenBits, universe: NodeUniverse) -> Release | FoldedRelease:
        made, index = self._provenance(), self.study.index
        if not index.folded:
            graph = BitRows(bits.rows(self.study.nodes))
            return release_of(self.union, made, graph, universe, self.views, self.losses)
        return FoldedRelease(
            BucketCounts(index.layout, bytes(bits)), index.hubs, index.form, self.study.nodes,
            self.union.channel, universe.digest, made, self.views, self.losses,
        )  # fmt: skip

    def outcome(self, result: _core.OpenBits, universe: NodeUniverse) -> Outcome:
        """The release, and its answer to the query."""
        return answered(self._release(result, universe), self.study)
