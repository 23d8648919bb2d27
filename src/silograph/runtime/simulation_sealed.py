"""The sealed protocol with all parties in one process, driving the machines of a deployment.

Every silo computes D² for itself here, as it would on its own machine.
"""

from collections import Counter
from collections.abc import Callable

from silograph.graph.pairbits import PairBits
from silograph.protocol.envelope import peek
from silograph.protocol.roster import COORDINATOR
from silograph.protocol.sealed import SealedParameters
from silograph.protocol.sealed_answers import SealedResult
from silograph.protocol.sealed_dealer import SealedDealer
from silograph.protocol.sealed_silo import SealedSilo
from silograph.runtime.progress import progress
from silograph.runtime.simulation import Post, Run, simulated_roster

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
    roster, key, identities = simulated_roster(run.silos, run.entropy)
    dealer = SealedDealer(parameters, roster, run.id, key, run.entropy)
    machines = [
        SealedSilo(parameters, roster, run.id, place, identity, run.entropy)
        for place, identity in enumerate(identities)
    ]
    post = Post(dealer, machines, run.record)
    post.deliver(enumerate(machine.start() for machine in machines))
    run.spend()
    with progress("opening", parameters.pairs * len(machines), shown=run.shown) as advance:

        def bits(held: PairBits) -> Callable[[int], bytes]:
            def chunk(number: int) -> bytes:
                size = parameters.chunk_size(number)
                advance(size)
                return held.chunk(number * parameters.chunk_pairs, size)

            return chunk

        holdings = [bits(PairBits(silo)) for silo in run.silos]
        ready = [machine.authorise(held) for machine, held in zip(machines, holdings, strict=True)]
        post.deliver(enumerate(ready))
    with progress("counting", parameters.nodes * len(machines), shown=run.shown) as advance:
        for place, machine in enumerate(machines):
            post.deliver([(place, machine.count(advance))])
    return dealer.result()
