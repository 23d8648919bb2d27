"""All parties in one process, driving the same machines that a deployment drives."""

from collections.abc import Callable, Sequence

from silograph.crypto.identity import Identity
from silograph.graph.pairbits import PairBits
from silograph.graph.silo import Silo
from silograph.protocol.entropy import Entropy
from silograph.protocol.masked import MaskedCoordinator, MaskedParameters, MaskedSilo
from silograph.protocol.roster import Member, Roster
from silograph.runtime.progress import progress

__all__ = ["Record", "run_masked", "simulated_roster"]

#: Called with every message: (sender, receiver, bytes). Tests freeze transcripts with it.
Record = Callable[[str, str, bytes], None]


def simulated_roster(
    silos: Sequence[Silo], entropy: Entropy
) -> tuple[Roster, Identity, list[Identity]]:
    """A coordinator and silos with fresh identities."""
    coordinator = Identity(entropy.bytes(32))
    identities = [Identity(entropy.bytes(32)) for _ in silos]
    names = [silo.name or f"silo {i + 1}" for i, silo in enumerate(silos)]
    members = tuple(
        Member(name, identity.public) for name, identity in zip(names, identities, strict=True)
    )
    return Roster(Member("coordinator", coordinator.public), members), coordinator, identities


def run_masked(
    silos: Sequence[Silo],
    parameters: MaskedParameters,
    run: bytes,
    spend: Callable[[], None],
    entropy: Entropy,
    *,
    record: Record | None = None,
    shown: bool | None = None,
) -> bytes:
    """Run the masked union of all silos; ``spend`` is called before the first byte of a chunk."""
    roster, key, identities = simulated_roster(silos, entropy)
    note = record or (lambda _sender, _receiver, _raw: None)
    coordinator = MaskedCoordinator(parameters, roster, run, key)
    machines = [
        MaskedSilo(parameters, roster, run, place, identity, entropy)
        for place, identity in enumerate(identities)
    ]

    def upload(place: int, raw: bytes) -> list[bytes]:
        note(roster.silos[place].name, "coordinator", raw)
        return [message.raw for message in coordinator.receive(raw)]

    waiting = [
        (i, message.raw) for i, machine in enumerate(machines) for message in machine.start()
    ]
    while waiting:
        bundles = [bundle for place, raw in waiting for bundle in upload(place, raw)]
        waiting = []
        for bundle in bundles:
            for place, machine in enumerate(machines):
                note("coordinator", roster.silos[place].name, bundle)
                waiting += [(place, message.raw) for message in machine.receive(bundle)]
    spend()
    for machine in machines:
        machine.authorise()
    holdings = [PairBits(silo) for silo in silos]
    with progress("masked union", parameters.pairs, shown=shown) as advance:
        for number in range(parameters.chunks):
            start, size = number * parameters.chunk_pairs, parameters.chunk_size(number)
            for place, (machine, held) in enumerate(zip(machines, holdings, strict=True)):
                upload(place, machine.chunk(number, held.chunk(start, size)).raw)
            advance(size)
    return coordinator.result()
