"""The baseline's messages (the paper's Algorithm 1) as two state machines.

One round, ``report``: each silo passes its own bits through randomized response, chunk by chunk,
and sends the noisy bits to the coordinator, which keeps all of them. There is nothing to agree on
and nothing to hide: the noise is all the protection, and every silo pays for itself.
"""

import hashlib
import hmac
from dataclasses import dataclass
from fractions import Fraction

from silograph import _core
from silograph.crypto.identity import Identity
from silograph.crypto.limbs import limbs
from silograph.errors import ArgumentError, BindingError, OrderError, PayloadError
from silograph.protocol.chunks import Chunked
from silograph.protocol.entropy import Entropy
from silograph.protocol.envelope import Envelope, open_envelope, seal
from silograph.protocol.handshake import Outgoing, bind
from silograph.protocol.roster import COORDINATOR, Roster
from silograph.protocol.wire import pack

__all__ = ["ReportCoordinator", "ReportParameters", "ReportSilo"]

#: Pairs in a chunk: 128 KiB of bits.
CHUNK_PAIRS = 1 << 20


@dataclass(frozen=True)
class ReportParameters(Chunked):
    """What all parties of a run must agree on."""

    p11: Fraction
    p01: Fraction
    silos: int
    pairs: int
    #: What the pairs are about: the digest of the node universe.
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


class ReportSilo:
    """A silo that reports its own bits, noisily."""

    def __init__(
        self,
        parameters: ReportParameters,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
    ) -> None:
        self._binding = bind(parameters, roster, run, place, identity)
        self._parameters = parameters
        self._place = place
        self._identity = identity
        self._secret = entropy.bytes(32)
        self._sent: dict[int, bytes] = {}
        self._authorised = False

    def authorise(self) -> None:
        """Say that the run's whole cost is in the ledger; only then are reports made."""
        self._authorised = True

    def chunk(self, number: int, bits: bytes) -> Outgoing:
        """The noisy bits of one chunk; made again only byte for byte."""
        if not self._authorised:
            raise OrderError("not yet authorised", round="report")
        if not 0 <= number < self._parameters.chunks:
            raise OrderError(f"there is no chunk {number}", round="report")
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
        envelope = Envelope("report", self._place, COORDINATOR, number, noisy)
        return Outgoing(COORDINATOR, seal(self._binding, self._identity, envelope))

    def __repr__(self) -> str:
        return f"ReportSilo(place={self._place})"


class ReportCoordinator:
    """The coordinator: keeps every silo's noisy bits."""

    def __init__(
        self, parameters: ReportParameters, roster: Roster, run: bytes, identity: Identity
    ) -> None:
        self._binding = bind(parameters, roster, run, COORDINATOR, identity)
        self._parameters = parameters
        self._reports: list[dict[int, bytes]] = [{} for _ in range(parameters.silos)]

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a silo's chunk."""
        envelope = open_envelope(self._binding, raw, receiver=COORDINATOR)
        if envelope.sender == COORDINATOR or envelope.round != "report":
            raise BindingError("this is no silo's report", round=envelope.round)
        name = self._binding.roster.silos[envelope.sender].name
        number, report = envelope.sequence, self._reports[envelope.sender]
        if number >= self._parameters.chunks:
            raise OrderError(f"there is no chunk {number}", silo=name, round="report")
        if number in report:
            raise OrderError(f"chunk {number} came twice", silo=name, round="report")
        size = self._parameters.chunk_size(number)
        spare = -size % 64
        last = int.from_bytes(envelope.payload[-8:], "little")
        if len(envelope.payload) != -(-size // 64) * 8 or last >> (64 - spare):
            raise PayloadError("there is not one bit a pair", silo=name, round="report")
        report[number] = envelope.payload
        return []

    def result(self) -> list[bytes]:
        """Every silo's report, one bit a pair; only when all are whole."""
        chunks = range(self._parameters.chunks)
        if any(len(report) < len(chunks) for report in self._reports):
            raise OrderError("chunks are missing", round="result")
        return [b"".join(report[number] for number in chunks) for report in self._reports]

    def __repr__(self) -> str:
        return f"ReportCoordinator({self._parameters.silos} silos)"
