"""A hub search of tiny silos, step by step, for tests that stop in the middle."""

from typing import Any

import numpy as np

from silograph.dp.laplace import Share
from silograph.methods.hubs.machines import HubCoordinator, HubParameters, HubSilo
from tests.methods.masked.run import RUN, MaskedRun
from tests.support.parties import SeededEntropy, identities, no_bits, roster_of

NODES = 200
#: Noise that is 0 but for one draw in e^1000: what is wrong shows.
QUIET = Share(1, 1000, 2)


def parameters(**changes: Any) -> HubParameters:
    given = {"share": QUIET, "silos": 3, "pairs": NODES, "subject": b"nodes", "chunk_pairs": 128}
    return HubParameters(**(given | changes))


class HubRun(MaskedRun):
    """Three silos and a coordinator with fixed identities; the handshake is that of the union."""

    def __init__(self, given: HubParameters | None = None, seed: int = 1) -> None:
        self.parameters = given or parameters()
        m = self.parameters.silos
        self.keys = identities(m)
        self.roster = roster_of(self.keys)
        self.coordinator = HubCoordinator(self.parameters, self.roster, RUN, self.keys[m])
        self.silos = [
            HubSilo(self.parameters, self.roster, RUN, i, self.keys[i],
                    SeededEntropy(100 * seed + i), no_bits)
            for i in range(m)
        ]  # fmt: skip

    def bits(self, number: int, held: Any = None) -> bytes:
        """One chunk's numbers of a silo; zeros where nothing is given."""
        values = np.zeros(self.parameters.pairs, "<i8") if held is None else np.array(held, "<i8")
        start = number * self.parameters.chunk_pairs
        return values[start : start + self.parameters.chunk_size(number)].tobytes()

    def chunk(self, place: int, number: int, held: Any = None) -> bytes:
        return self.silos[place].chunk(number, self.bits(number, held)).raw

    def result(self) -> Any:
        return self.coordinator.result()
