"""Sessions of the unions and of the baseline's reports."""

from collections.abc import Container

from silograph.crypto.identity import Identity
from silograph.errors import BindingError
from silograph.graph.silo import Silo
from silograph.methods.sessions import CoordinatorSession, SiloSession
from silograph.methods.uploads import Bits, UploadingSilo, Uploads
from silograph.protocol import elgamal, masked
from silograph.protocol.elgamal import RECEIPT, WORK, ElgamalParameters
from silograph.protocol.elgamal_coordinator import ElgamalCoordinator
from silograph.protocol.elgamal_silo import ElgamalSilo
from silograph.protocol.entropy import Entropy
from silograph.protocol.envelope import Binding, Envelope, peek
from silograph.protocol.handshake import Outgoing
from silograph.protocol.masked import MaskedCoordinator, MaskedParameters, MaskedSilo
from silograph.protocol.reports import ReportCoordinator, ReportParameters, ReportSilo
from silograph.protocol.roster import Roster
from silograph.protocol.wire import unpack

__all__ = [
    "ElgamalCoordinatorSession",
    "ElgamalSiloSession",
    "MaskedCoordinatorSession",
    "MaskedSiloSession",
    "ReportCoordinatorSession",
    "ReportSiloSession",
]


class MaskedSiloSession(UploadingSilo):
    """A silo in the masked union."""

    _round = "chunk"
    _machine: MaskedSilo

    def __init__(
        self,
        parameters: MaskedParameters,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
        silo: Silo,
    ) -> None:
        super().__init__(silo, parameters)
        self._machine = MaskedSilo(parameters, roster, run, place, identity, entropy)
        self.bindings = (Binding(run, parameters.digest, roster),)

    def start(self) -> list[Outgoing]:
        """The run key."""
        return self._machine.start()

    def receive(self, raw: bytes) -> list[Outgoing]:
        """A bundle of keys or of confirmations."""
        return self._machine.receive(raw)

    @property
    def ready(self) -> bool:
        """Whether all silos confirmed the same keys."""
        return self._machine.state is masked.State.AGREED

    def authorise(self) -> list[Outgoing]:
        """Say that the run's whole cost is in the ledger."""
        self._machine.authorise()
        return []

    @property
    def room(self) -> bool:
        """Whether chunks are still to be made."""
        return self._machine.state is masked.State.CHUNKS and not self.done

    @property
    def phase(self) -> str:
        """The machine's state."""
        return masked.State.DONE if self.done else self._machine.state


class MaskedCoordinatorSession(CoordinatorSession[bytes]):
    """The coordinator of the masked union; the result is Y, one bit a pair."""

    def __init__(
        self, parameters: MaskedParameters, roster: Roster, run: bytes, identity: Identity
    ) -> None:
        self._machine = MaskedCoordinator(parameters, roster, run, identity)
        self.bindings = (Binding(run, parameters.digest, roster),)
        self._uploads = Uploads(parameters)

    def receive(self, raw: bytes) -> list[Outgoing]:
        """A silo's message."""
        outgoing = self._machine.receive(raw)
        message = peek(raw)
        if message.round == "chunk":
            self._uploads.take(message.sender)
        return outgoing

    def wants(self, place: int) -> bool:
        """Whether this silo is not too far ahead of the slowest."""
        return self._uploads.wants(place)

    @property
    def phase(self) -> str:
        """The machine's state."""
        return self._machine.state

    @property
    def done(self) -> bool:
        """Whether every chunk came from every silo."""
        return self._machine.state is masked.State.DONE

    @property
    def progress(self) -> tuple[int, int]:
        """Pairs that all silos have sent."""
        return self._uploads.progress

    def result(self) -> bytes:
        """Y, one bit a pair."""
        return self._machine.result()


class ElgamalSiloSession(SiloSession):
    """A silo in the ElGamal union."""

    def __init__(
        self,
        parameters: ElgamalParameters,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
        silo: Silo,
    ) -> None:
        self._machine = ElgamalSilo(parameters, roster, run, place, identity, entropy)
        self.bindings = (Binding(run, parameters.digest, roster),)
        self._parameters = parameters
        self._bits = Bits(silo, parameters)
        self._opened: set[int] = set()

    def start(self) -> list[Outgoing]:
        """The ElGamal key with its proof."""
        return self._machine.start()

    def receive(self, raw: bytes) -> list[Outgoing]:
        """A bundle, a chunk to rewrite, or a chunk to open."""
        outgoing = self._machine.receive(raw)
        message = peek(raw)
        if message.round == "open":
            self._opened.add(self.slot(message))
        return outgoing

    @property
    def ready(self) -> bool:
        """Whether all silos confirmed the same keys."""
        return self._machine.state is elgamal.State.AGREED

    def authorise(self) -> list[Outgoing]:
        """Say that the run's whole cost is in the ledger."""
        self._machine.authorise(self._bits)
        return []

    @property
    def phase(self) -> str:
        """The machine's state."""
        return elgamal.State.DONE if self.done else self._machine.state

    @property
    def done(self) -> bool:
        """Whether shares of every chunk were given."""
        return len(self._opened) == self._parameters.chunks

    def slot(self, message: Envelope) -> int:
        """Chunk and hop."""
        return _cell_slot(self._parameters, message)


class ElgamalCoordinatorSession(CoordinatorSession[bytes]):
    """The coordinator of the ElGamal union; the result is Y, one bit a pair."""

    def __init__(
        self, parameters: ElgamalParameters, roster: Roster, run: bytes, identity: Identity
    ) -> None:
        self._machine = ElgamalCoordinator(parameters, roster, run, identity)
        self.bindings = (Binding(run, parameters.digest, roster),)
        self._parameters = parameters
        self._begun = 0
        self._shares = 0

    def receive(self, raw: bytes) -> list[Outgoing]:
        """A silo's message."""
        outgoing = self._machine.receive(raw)
        self._shares += peek(raw).round == "share"
        return outgoing

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """The next chunk, handed to the first silo."""
        begun = self._machine.begin(self._begun)
        self._begun += 1
        return begun

    @property
    def room(self) -> bool:
        """Whether another chunk may set out: as many travel as there are hops, and no more."""
        travelling = self._begun - self._shares // self._parameters.silos
        return (
            self._machine.state is elgamal.State.CELLS
            and self._begun < self._parameters.chunks
            and travelling < self._parameters.hops
        )

    @property
    def phase(self) -> str:
        """The machine's state."""
        return self._machine.state

    @property
    def done(self) -> bool:
        """Whether every chunk was opened."""
        return self._machine.state is elgamal.State.DONE

    @property
    def progress(self) -> tuple[int, int]:
        """Pairs that were opened."""
        opened, pairs = self._shares // self._parameters.silos, self._parameters.pairs
        return min(opened * self._parameters.chunk_pairs, pairs), pairs

    def result(self) -> bytes:
        """Y, one bit a pair."""
        return self._machine.result()

    def slot(self, message: Envelope) -> int:
        """Chunk and hop."""
        return _cell_slot(self._parameters, message)


def _cell_slot(parameters: ElgamalParameters, message: Envelope) -> int:
    """Messages about cells carry chunk and hop within."""
    payload = message.payload
    if message.round in ("work", "hop"):
        (head, _) = unpack(payload, 2)
        if message.round == "hop":
            head = peek(head).payload
            if len(head) != RECEIPT.size:
                return 0
        elif len(head) != WORK.size:
            return 0
        chunk, hop = WORK.unpack(head[: WORK.size])
        return int(chunk * parameters.hops + hop)
    if message.round == "open":
        return int.from_bytes(unpack(payload, 2 + parameters.hops)[0][:8], "little")
    if message.round == "share":
        return int.from_bytes(payload[:8], "little")
    return message.sequence


class ReportSiloSession(UploadingSilo):
    """A silo that reports its own bits, noisily."""

    _round = "report"
    _machine: ReportSilo

    def __init__(
        self,
        parameters: ReportParameters,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
        silo: Silo,
    ) -> None:
        super().__init__(silo, parameters)
        self._machine = ReportSilo(parameters, roster, run, place, identity, entropy)
        self.bindings = (Binding(run, parameters.digest, roster),)
        self._authorised = False

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Refused, whatever it is."""
        raise BindingError("nothing is said to a silo that only reports", round=peek(raw).round)

    @property
    def ready(self) -> bool:
        """From the beginning: there is nothing to agree on."""
        return not self._authorised

    def authorise(self) -> list[Outgoing]:
        """Say that the run's whole cost is in the ledger."""
        self._machine.authorise()
        self._authorised = True
        return []

    @property
    def room(self) -> bool:
        """Whether chunks are still to be made."""
        return self._authorised and not self.done

    @property
    def phase(self) -> str:
        """One of three."""
        return "done" if self.done else "reports" if self._authorised else "not yet authorised"


class ReportCoordinatorSession(CoordinatorSession[list[bytes]]):
    """The baseline's coordinator; the result is every silo's noisy bits."""

    def __init__(
        self, parameters: ReportParameters, roster: Roster, run: bytes, identity: Identity
    ) -> None:
        self._machine = ReportCoordinator(parameters, roster, run, identity)
        self.bindings = (Binding(run, parameters.digest, roster),)
        self._uploads = Uploads(parameters)

    def receive(self, raw: bytes) -> list[Outgoing]:
        """A silo's chunk."""
        outgoing = self._machine.receive(raw)
        self._uploads.take(peek(raw).sender)
        return outgoing

    @property
    def phase(self) -> str:
        """One of two."""
        return "done" if self.done else "reports"

    @property
    def done(self) -> bool:
        """Whether every chunk came from every silo."""
        return self._uploads.whole

    @property
    def progress(self) -> tuple[int, int]:
        """Pairs that all silos have reported."""
        return self._uploads.progress

    def result(self) -> list[bytes]:
        """Every silo's report, one bit a pair."""
        return self._machine.result()
