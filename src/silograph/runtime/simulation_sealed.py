"""The sealed protocol with all parties in one process, driving the machines of a deployment.

Every silo computes D² for itself here, as it would on its own machine.
"""

from collections import Counter

from silograph.methods.sealed_sessions import SealedDealerSession, SealedSiloSession
from silograph.protocol.envelope import peek
from silograph.protocol.roster import COORDINATOR
from silograph.protocol.sealed import SealedParameters
from silograph.protocol.sealed_answers import SealedResult
from silograph.runtime.simulation import Run, drive, simulated_roster

__all__ = ["Traffic", "run_sealed"]


class Traffic:
    """A record of bytes: give it to a run, and ask it afterwards."""

    def __init__(self) -> None:
        self._bytes: Counter[tuple[int, str, str]] = Counter()

    def __call__(self, sender: int, receiver: int, raw: bytes) -> None:
        """One message, as often as it is delivered."""
        name = peek(raw).round
        if receiver == COORDINATOR:
            self._bytes[sender, "up", name] += len(raw)
        else:
            self._bytes[receiver, "down", name] += len(raw)

    def of(self, place: int) -> dict[str, tuple[int, int]]:
        """For each round, the bytes that a silo sent and received."""
        names = dict.fromkeys(name for who, _, name in self._bytes if who == place)
        counted = self._bytes
        return {name: (counted[place, "up", name], counted[place, "down", name]) for name in names}


def run_sealed(run: Run, parameters: SealedParameters) -> SealedResult:
    """The noisy answers about the union of all silos."""
    roster, key, identities = run.parties or simulated_roster(run.silos, run.entropy)
    dealer = SealedDealerSession(parameters, roster, run.id, key, run.entropy)
    silos = [
        SealedSiloSession(parameters, roster, run.id, place, identity, run.entropy, silo)
        for place, (identity, silo) in enumerate(zip(identities, run.silos, strict=True))
    ]
    return drive(dealer, silos, run, "sealed")
