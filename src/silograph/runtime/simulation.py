"""All parties in one process, driving the same machines that a deployment drives."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from silograph.crypto.identity import Identity
from silograph.graph.pairbits import PairBits
from silograph.graph.silo import Silo
from silograph.protocol.elgamal import ElgamalParameters
from silograph.protocol.elgamal_coordinator import ElgamalCoordinator
from silograph.protocol.elgamal_silo import ElgamalSilo
from silograph.protocol.entropy import Entropy
from silograph.protocol.envelope import EVERYONE
from silograph.protocol.handshake import Outgoing
from silograph.protocol.masked import MaskedCoordinator, MaskedParameters, MaskedSilo
from silograph.protocol.reports import ReportCoordinator, ReportParameters, ReportSilo
from silograph.protocol.roster import COORDINATOR, Member, Roster
from silograph.runtime.progress import progress

__all__ = ["Post", "Record", "Run", "run_elgamal", "run_masked", "run_reports", "simulated_roster"]

#: Messages that are made while another one is delivered.
_AHEAD = 2

#: Called with every message: (sender, receiver, bytes). Tests freeze transcripts with it.
Record = Callable[[int, int, bytes], None]


class _Machine(Protocol):
    def receive(self, raw: bytes) -> list[Outgoing]: ...


@dataclass(frozen=True)
class Run:
    """What every simulated run needs besides its parameters."""

    silos: Sequence[Silo]
    id: bytes
    entropy: Entropy
    #: Called when all have agreed, before anything that depends on edges leaves a silo.
    spend: Callable[[], None]
    record: Record | None = None
    #: Whether to show a progress bar; None for where there is a terminal.
    shown: bool | None = None


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


def run_masked(run: Run, parameters: MaskedParameters) -> bytes:
    """The masked union of all silos: Y, one bit a pair."""
    roster, key, identities = simulated_roster(run.silos, run.entropy)
    coordinator = MaskedCoordinator(parameters, roster, run.id, key)
    machines = [
        MaskedSilo(parameters, roster, run.id, place, identity, run.entropy)
        for place, identity in enumerate(identities)
    ]
    post = Post(coordinator, machines, run.record)
    post.deliver(enumerate(machine.start() for machine in machines))
    run.spend()
    for machine in machines:
        machine.authorise()
    holdings = [PairBits(silo) for silo in run.silos]

    def made(number: int, place: int) -> Outgoing:
        start, size = number * parameters.chunk_pairs, parameters.chunk_size(number)
        return machines[place].chunk(number, holdings[place].chunk(start, size))

    # Messages are made ahead and delivered in order. The two that are under way are of different
    # silos, which share no state, so the transcript is that of one after the other.
    turns = [(n, place) for n in range(parameters.chunks) for place in range(len(machines))]
    with (
        progress("masked union", parameters.pairs, shown=run.shown) as advance,
        ThreadPoolExecutor(_AHEAD) as pool,
    ):
        ahead = deque(pool.submit(made, *turn) for turn in turns[:_AHEAD])
        for at, (number, place) in enumerate(turns):
            message = ahead.popleft().result()
            ahead.extend(pool.submit(made, *turn) for turn in turns[at + _AHEAD : at + _AHEAD + 1])
            post.deliver([(place, [message])])
            if place == len(machines) - 1:
                advance(parameters.chunk_size(number))
    return coordinator.result()


def run_reports(run: Run, parameters: ReportParameters) -> list[bytes]:
    """The baseline: every silo's noisy bits, one bit a pair."""
    roster, key, identities = simulated_roster(run.silos, run.entropy)
    coordinator = ReportCoordinator(parameters, roster, run.id, key)
    machines = [
        ReportSilo(parameters, roster, run.id, place, identity, run.entropy)
        for place, identity in enumerate(identities)
    ]
    post = Post(coordinator, (), run.record)
    run.spend()
    for machine in machines:
        machine.authorise()
    holdings = [PairBits(silo) for silo in run.silos]
    with progress("reports", parameters.pairs, shown=run.shown) as advance:
        for number in range(parameters.chunks):
            start, size = number * parameters.chunk_pairs, parameters.chunk_size(number)
            for place, (machine, held) in enumerate(zip(machines, holdings, strict=True)):
                post.deliver([(place, [machine.chunk(number, held.chunk(start, size))])])
            advance(size)
    return coordinator.result()


def run_elgamal(run: Run, parameters: ElgamalParameters) -> bytes:
    """The ElGamal union of all silos: Y, one bit a pair."""
    roster, key, identities = simulated_roster(run.silos, run.entropy)
    coordinator = ElgamalCoordinator(parameters, roster, run.id, key)
    machines = [
        ElgamalSilo(parameters, roster, run.id, place, identity, run.entropy)
        for place, identity in enumerate(identities)
    ]
    post = Post(coordinator, machines, run.record)
    post.deliver(enumerate(machine.start() for machine in machines))
    run.spend()
    for machine, silo in zip(machines, run.silos, strict=True):
        machine.authorise(_bits(PairBits(silo), parameters))
    with progress(f"elgamal/{parameters.variant}", parameters.pairs, shown=run.shown) as advance:
        for number in range(parameters.chunks):
            post.deliver([(COORDINATOR, coordinator.begin(number))])
            advance(parameters.chunk_size(number))
    return coordinator.result()


def _bits(held: PairBits, parameters: ElgamalParameters) -> Callable[[int], bytes]:
    size, start = parameters.chunk_size, parameters.chunk_pairs
    return lambda chunk: held.chunk(chunk * start, size(chunk))


class Post:
    """Carries messages between the machines until none is left."""

    def __init__(
        self, coordinator: _Machine, silos: Sequence[_Machine], record: Record | None
    ) -> None:
        self._coordinator = coordinator
        self._silos = silos
        self._record = record or (lambda _sender, _receiver, _raw: None)

    def deliver(self, outgoing: Iterable[tuple[int, list[Outgoing]]]) -> None:
        """Deliver these, and all that they give rise to, in order."""
        waiting = deque((sender, message) for sender, sent in outgoing for message in sent)
        while waiting:
            sender, message = waiting.popleft()
            everyone = range(len(self._silos))
            for place in everyone if message.to == EVERYONE else (message.to,):
                self._record(sender, place, message.raw)
                machine = self._coordinator if place == COORDINATOR else self._silos[place]
                waiting += [(place, answer) for answer in machine.receive(message.raw)]
