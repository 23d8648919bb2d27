"""The baseline's messages (the paper's Algorithm 1) as two state machines.

There is one round, ``report``: each silo passes its own bits through randomized response, chunk by
chunk, and sends the noisy bits to the coordinator, which keeps all of them. The parties exchange no
keys and hide nothing else: the noise is the only protection, and every silo adds enough for itself.
"""

import hashlib
import hmac
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from silograph import _core
from silograph.dp.channel import limbs
from silograph.errors import ArgumentError, OrderError, PayloadError
from silograph.messages.entropy import Entropy
from silograph.messages.envelope import Outgoing
from silograph.messages.identity import COORDINATOR, Identity, Roster, pack
from silograph.messages.machine import CoordinatorSession, Machine
from silograph.messages.rounds import Bits, Chunked, UploadingSilo, Uploads

__all__ = [
    "COORDINATOR_STEPS",
    "SILO_STEPS",
    "ReportCoordinator",
    "ReportParameters",
    "ReportSilo",
    "State",
]


#: Pairs in a chunk: 128 KiB of bits.
CHUNK_PAIRS = 1 << 20


@dataclass(frozen=True)
class ReportParameters(Chunked):
    """What all parties of a run must agree on."""

    p11: Fraction
    p01: Fraction
    silos: int
    pairs: int
    #: The digest of the node universe that the pairs belong to.
    subject: bytes
    chunk_pairs: int = CHUNK_PAIRS

    def __post_init__(self) -> None:
        if not 0 <= self.p01 < self.p11 <= 1:
            raise ArgumentError("p01 must be less than p11, both from 0 to 1")
        self.check_chunks()

    @property
    def digest(self) -> bytes:
        """SHA-256 of every parameter."""
        values = (self.p11, self.p01, self.silos, self.pairs, self.chunk_pairs)
        fields = [str(value).encode() for value in values]
        return hashlib.sha256(pack(b"silograph/reports/v1", *fields, self.subject)).digest()


class State(StrEnum):
    """The states of a machine."""

    NEW = "not yet authorised"
    REPORTS = "reports"
    DONE = "done"


#: All steps that a silo can take; anything else is refused and changes nothing.
SILO_STEPS: dict[tuple[State, str], State] = {
    (State.NEW, "authorise"): State.REPORTS,
    (State.REPORTS, "report"): State.REPORTS,
}
#: All steps of the coordinator.
COORDINATOR_STEPS: dict[tuple[State, str], State] = {
    (State.REPORTS, "report"): State.REPORTS,
    (State.REPORTS, "all reports"): State.DONE,
}


class ReportSilo(UploadingSilo):
    """A silo that reports its own bits with noise."""

    STEPS = SILO_STEPS
    TAKES = ()
    ROUND = "report"
    _parameters: ReportParameters

    def __init__(
        self,
        parameters: ReportParameters,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
        bits: Bits,
    ) -> None:
        super().__init__(parameters, roster, run, place, identity, bits, State.NEW)
        self._secret = entropy.bytes(32)
        self._sent: dict[int, bytes] = {}

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Refuse every message: a silo that only reports receives none."""
        raise self._refuse(OrderError, "there is no such message", self._opened(raw))

    @property
    def ready(self) -> bool:
        """Always true: there is nothing to agree on."""
        return self.state is State.NEW

    def authorise(self) -> list[Outgoing]:
        """Record that the run's whole cost is in the ledger; reports are made only after this."""
        self.state = self._step("authorise")
        return []

    def chunk(self, number: int, bits: bytes) -> Outgoing:
        """The noisy bits of one chunk. A repeated call returns exactly the same bytes."""
        state = self._step("report")
        self._check_chunk(number, bits)
        size = self._parameters.chunk_size(number)
        label = pack(b"silograph/report/v1", str(number).encode())
        seed = hmac.digest(self._secret, label, "sha256")
        p11, p01 = limbs(self._parameters.p11), limbs(self._parameters.p01)
        try:
            noisy = _core.perturb(bits, size, p11, p01, seed)
        except ValueError as error:
            raise PayloadError(str(error), round="report") from None
        seen = hashlib.sha256(bits).digest()
        if self._sent.setdefault(number, seen) != seen:
            raise OrderError(f"chunk {number} was sent with other bits before", round="report")
        self.state = state
        return Outgoing(COORDINATOR, self._seal("report", COORDINATOR, noisy, number))


class _Keeper(Machine):
    """A coordinator that keeps every silo's bits, chunk by chunk."""

    STEPS = COORDINATOR_STEPS
    TAKES = ("report",)

    def __init__(
        self, parameters: ReportParameters, roster: Roster, run: bytes, identity: Identity
    ) -> None:
        super().__init__(parameters, roster, run, COORDINATOR, identity, State.REPORTS)
        self._parameters = parameters
        self._reports = [_core.OpenBits(parameters.pairs) for _ in range(parameters.silos)]
        self._came: set[tuple[int, int]] = set()
        self._uploads = Uploads(parameters)

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take one chunk of a silo."""
        envelope = self._opened(raw)
        number, sender = envelope.sequence, envelope.sender
        if number >= self._parameters.chunks:
            raise self._refuse(OrderError, f"there is no chunk {number}", envelope)
        if (sender, number) in self._came:
            raise self._refuse(OrderError, f"chunk {number} came twice", envelope)
        spare = -self._parameters.chunk_size(number) % 64
        last = int.from_bytes(envelope.payload[-8:], "little")
        if len(envelope.payload) != self._parameters.bit_bytes(number) or last >> (64 - spare):
            raise self._refuse(PayloadError, "there is not one bit per pair", envelope)
        start = number * self._parameters.chunk_pairs
        self._reports[sender].write(start, envelope.payload)
        self._came.add((sender, number))
        self._uploads.take(sender)
        if self._uploads.whole:
            self.state = self._step("all reports")
        return []

    @property
    def progress(self) -> tuple[int, int]:
        """The number of pairs that all silos have reported, and the number of all pairs."""
        return self._uploads.progress

    def _kept(self) -> list[_core.OpenBits]:
        self._require(State.DONE, "result")
        return self._reports


class ReportCoordinator(_Keeper, CoordinatorSession[list[_core.OpenBits]]):
    """The baseline's coordinator. Its result is every silo's noisy bits, one bit per pair."""

    def result(self) -> list[_core.OpenBits]:
        """Every silo's report; only available when all are complete."""
        return self._kept()
