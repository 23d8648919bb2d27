"""All parties in one process, driving the same machines that a deployment drives."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from silograph.crypto.identity import Identity
from silograph.graph.silo import Silo
from silograph.methods.sessions import CoordinatorSession, SiloSession
from silograph.methods.unions import (
    ElgamalCoordinatorSession,
    ElgamalSiloSession,
    MaskedCoordinatorSession,
    MaskedSiloSession,
    ReportCoordinatorSession,
    ReportSiloSession,
)
from silograph.protocol.elgamal import ElgamalParameters
from silograph.protocol.entropy import Entropy
from silograph.protocol.envelope import EVERYONE
from silograph.protocol.handshake import Outgoing
from silograph.protocol.masked import MaskedParameters
from silograph.protocol.reports import ReportParameters
from silograph.protocol.roster import COORDINATOR, Member, Roster
from silograph.runtime.progress import progress

__all__ = [
    "Parties",
    "Post",
    "Record",
    "Run",
    "drive",
    "run_elgamal",
    "run_masked",
    "run_reports",
    "simulated_roster",
]

T = TypeVar("T")

#: Messages that are made while another one is delivered.
_AHEAD = 2

#: Called with every message: (sender, receiver, bytes). Tests freeze transcripts with it.
Record = Callable[[int, int, bytes], None]
#: The roster, the coordinator's identity, and those of the silos.
Parties = tuple[Roster, Identity, list[Identity]]


class Machine(Protocol):
    """Whatever takes messages: a session, or a machine by itself."""

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a message; what it gives rise to."""


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
    #: Who takes part, where a run has several steps; None for fresh identities.
    parties: Parties | None = None


def simulated_roster(silos: Sequence[Silo], entropy: Entropy) -> Parties:
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
    roster, key, identities = run.parties or simulated_roster(run.silos, run.entropy)
    coordinator = MaskedCoordinatorSession(parameters, roster, run.id, key)
    silos = [
        MaskedSiloSession(parameters, roster, run.id, place, identity, run.entropy, silo)
        for place, (identity, silo) in enumerate(zip(identities, run.silos, strict=True))
    ]
    return drive(coordinator, silos, run, "masked union")


def run_reports(run: Run, parameters: ReportParameters) -> list[bytes]:
    """The baseline: every silo's noisy bits, one bit a pair."""
    roster, key, identities = run.parties or simulated_roster(run.silos, run.entropy)
    coordinator = ReportCoordinatorSession(parameters, roster, run.id, key)
    silos = [
        ReportSiloSession(parameters, roster, run.id, place, identity, run.entropy, silo)
        for place, (identity, silo) in enumerate(zip(identities, run.silos, strict=True))
    ]
    return drive(coordinator, silos, run, "reports")


def run_elgamal(run: Run, parameters: ElgamalParameters) -> bytes:
    """The ElGamal union of all silos: Y, one bit a pair."""
    roster, key, identities = run.parties or simulated_roster(run.silos, run.entropy)
    coordinator = ElgamalCoordinatorSession(parameters, roster, run.id, key)
    silos = [
        ElgamalSiloSession(parameters, roster, run.id, place, identity, run.entropy, silo)
        for place, (identity, silo) in enumerate(zip(identities, run.silos, strict=True))
    ]
    return drive(coordinator, silos, run, f"elgamal/{parameters.variant}")


def drive(
    coordinator: CoordinatorSession[T], silos: Sequence[SiloSession], run: Run, what: str
) -> T:
    """Carry all messages between the sessions of one run, until there are none; its result."""
    post = Post(coordinator, silos, run.record)
    post.deliver(enumerate(silo.start() for silo in silos))
    run.spend()
    before, total = coordinator.progress
    with (
        progress(what, total, shown=run.shown) as advance,
        ThreadPoolExecutor(_AHEAD) as pool,
    ):

        def moved() -> None:
            nonlocal before
            (done, _), last = coordinator.progress, before
            if done > last:
                before = done
                advance(done - last)

        post.deliver(enumerate([silo.authorise() for silo in silos]), moved)
        for sender, made in _made(coordinator, silos, pool):
            post.deliver([(sender, made)], moved)
    return coordinator.result()


def _made(
    coordinator: CoordinatorSession[object], silos: Sequence[SiloSession], pool: ThreadPoolExecutor
) -> Iterator[tuple[int, list[Outgoing]]]:
    """What the sessions make by themselves: silos in turns, and the coordinator when they rest.

    Messages are made ahead, where a session allows it, and delivered in order. The two that are
    under way are of different silos, which share no state, so the transcript is that of one after
    the other.
    """
    turns = deque(range(len(silos)))
    ahead: deque[tuple[int, Future[list[Outgoing]]]] = deque()
    while True:
        under_way = {place for place, _ in ahead}
        for _ in range(len(turns)):
            place = turns[0]
            busy = len(ahead) == _AHEAD or place in under_way
            if busy or (ahead and not silos[place].ahead):
                break
            turns.rotate(-1)
            if silos[place].room:
                ahead.append((place, pool.submit(silos[place].make)))
                under_way.add(place)
        if ahead:
            place, future = ahead.popleft()
            yield place, future.result()
        elif coordinator.room:
            yield COORDINATOR, coordinator.make()
        else:
            return


class Post:
    """Carries messages between the machines until none is left."""

    def __init__(
        self,
        coordinator: Machine,
        silos: Sequence[Machine],
        record: Record | None,
    ) -> None:
        self._coordinator = coordinator
        self._silos = silos
        self._record = record or (lambda _sender, _receiver, _raw: None)

    def deliver(
        self,
        outgoing: Iterable[tuple[int, list[Outgoing]]],
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        """Deliver these, and all that they give rise to, in order; call ``moved`` after each."""
        waiting = deque((sender, message) for sender, sent in outgoing for message in sent)
        while waiting:
            sender, message = waiting.popleft()
            everyone = range(len(self._silos))
            for place in everyone if message.to == EVERYONE else (message.to,):
                self._record(sender, place, message.raw)
                session = self._coordinator if place == COORDINATOR else self._silos[place]
                waiting += [(place, answer) for answer in session.receive(message.raw)]
            moved()
