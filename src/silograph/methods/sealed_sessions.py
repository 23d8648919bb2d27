"""Sessions of the sealed protocol."""

from collections.abc import Container

from silograph.crypto.identity import Identity
from silograph.graph.pairbits import PairBits
from silograph.graph.silo import Silo
from silograph.methods.sessions import CoordinatorSession, SiloSession
from silograph.protocol.entropy import Entropy
from silograph.protocol.envelope import Binding, Envelope, peek
from silograph.protocol.handshake import Outgoing
from silograph.protocol.roster import COORDINATOR, Roster
from silograph.protocol.sealed import SealedParameters, State
from silograph.protocol.sealed_answers import SealedResult
from silograph.protocol.sealed_dealer import SealedDealer
from silograph.protocol.sealed_silo import SealedSilo

__all__ = ["SealedDealerSession", "SealedSiloSession"]


def _slot(parameters: SealedParameters, message: Envelope) -> int:
    """Sequence and sender: the coordinator relays messages of all silos under its own name."""
    sender = 0 if message.sender == COORDINATOR else message.sender + 1
    return message.sequence * (parameters.silos + 1) + sender


class SealedSiloSession(SiloSession):
    """A silo in the sealed protocol."""

    def __init__(
        self,
        parameters: SealedParameters,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
        silo: Silo,
    ) -> None:
        self._machine = SealedSilo(parameters, roster, run, place, identity, entropy)
        self.bindings = (Binding(run, parameters.digest, roster),)
        self._parameters = parameters
        self._held = PairBits(silo)

    def start(self) -> list[Outgoing]:
        """The run key."""
        return self._machine.start()

    def receive(self, raw: bytes) -> list[Outgoing]:
        """A bundle, dealt material, another silo's opening or output."""
        return self._machine.receive(raw)

    @property
    def ready(self) -> bool:
        """Whether all keys and the seed are there."""
        return self._machine.state is State.AGREED

    def authorise(self) -> list[Outgoing]:
        """Say that the run's whole cost is in the ledger: to the other silos too."""
        return self._machine.authorise(self._bits)

    def _bits(self, chunk: int) -> bytes:
        given = self._parameters
        return self._held.chunk(chunk * given.chunk_pairs, given.chunk_size(chunk))

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """Count on the shares, and publish the first noisy ones."""
        return self._machine.count()

    @property
    def room(self) -> bool:
        """Whether all is opened, and nothing counted yet."""
        return self._machine.state is State.COUNTING

    @property
    def phase(self) -> str:
        """The machine's state."""
        return self._machine.state

    @property
    def done(self) -> bool:
        """Whether the silo has all outputs, its own included."""
        return self._machine.state is State.DONE

    def slot(self, message: Envelope) -> int:
        """Sequence and sender."""
        return _slot(self._parameters, message)


class SealedDealerSession(CoordinatorSession[SealedResult]):
    """The coordinator, who deals; the result is what was published."""

    def __init__(
        self,
        parameters: SealedParameters,
        roster: Roster,
        run: bytes,
        identity: Identity,
        entropy: Entropy,
    ) -> None:
        self._machine = SealedDealer(parameters, roster, run, identity, entropy)
        self.bindings = (Binding(run, parameters.digest, roster),)
        self._parameters = parameters
        self._opened = 0

    def receive(self, raw: bytes) -> list[Outgoing]:
        """A silo's message: kept, relayed, answered with material."""
        outgoing = self._machine.receive(raw)
        self._opened += peek(raw).round == "open"
        return outgoing

    @property
    def phase(self) -> str:
        """The machine's state."""
        return self._machine.state

    @property
    def done(self) -> bool:
        """Whether every output was summed."""
        return self._machine.state is State.DONE

    @property
    def progress(self) -> tuple[int, int]:
        """Pairs whose openings have come, as a share of all openings."""
        given = self._parameters
        openings = given.chunks * given.steps * given.silos
        return given.pairs * self._opened // openings, given.pairs

    def result(self) -> SealedResult:
        """The answers with their noise."""
        return self._machine.result()

    def slot(self, message: Envelope) -> int:
        """Sequence and sender."""
        return _slot(self._parameters, message)
