"""Method ``hubs``: noisy degree sums of all nodes, to name the hubs of a later study."""

import numpy as np
from numpy.typing import NDArray

from silograph.errors import StudyError
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.messages.entropy import Entropy
from silograph.messages.identity import Identity, Roster
from silograph.messages.machine import CoordinatorSession, SiloSession
from silograph.messages.rounds import Bits
from silograph.methods.hubs.answer import HubSearch
from silograph.methods.hubs.machines import HubCoordinator, HubParameters, HubSilo
from silograph.methods.hubs.noise import HubNoise
from silograph.methods.method import Outcome, SettledStudy, answered
from silograph.methods.study import RELEASE, Study
from silograph.methods.union import unclaimed

__all__ = ["SettledHubs"]


class SettledHubs(SettledStudy):
    """A hub search: degrees are summed under masks, with noise that the silos draw in shares."""

    protocol = "masked"

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        if study.protocol != self.protocol:
            raise StudyError(f"a hub search is by protocol {self.protocol!r} alone")
        if study.query != RELEASE:
            raise StudyError(f"a hub search does not answer {study.query}: ask it for a release")
        self._noise = HubNoise.choose(study.epsilon, self.silos, study.collusion)
        self.losses, self.views = self._noise.losses, self._noise.views
        self.advice = unclaimed(self.views)
        self._parameters = HubParameters(self._noise.share, self.silos, study.nodes, study.subject)

    @property
    def upload(self) -> int:
        """A number of 64 bits a node."""
        return 8 * self.study.nodes

    def silo(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy, silo: Silo
    ) -> SiloSession:
        """Make the session of a silo. All work per edge is done here, before its first message."""
        given, run = self._parameters, self.study.id
        degrees = degrees_in_chunks(silo, given.chunk_pairs)
        return HubSilo(given, roster, run, place, identity, entropy, degrees)

    def coordinator(
        self, roster: Roster, identity: Identity, entropy: Entropy
    ) -> CoordinatorSession[NDArray[np.int64]]:
        """Make the session of the coordinator, which sums."""
        return HubCoordinator(self._parameters, roster, self.study.id, identity)

    def outcome(self, result: NDArray[np.int64], universe: NodeUniverse) -> Outcome:
        """The noisy sums; there is no query to answer."""
        found = HubSearch(self._noise, universe, self._provenance(), result)
        return answered(found, self.study)


def degrees_in_chunks(silo: Silo, count: int) -> Bits:
    """The degrees of a silo as 64-bit numbers, from the number of a chunk of so many nodes."""
    degrees = silo.degrees().astype("<i8")
    return lambda _view, chunk: degrees[chunk * count : (chunk + 1) * count].tobytes()
