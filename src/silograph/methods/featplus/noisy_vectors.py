"""Noisy numbers as two state machines: every silo sends a vector of integers, each with exact
discrete Laplace noise of its own.

One round, ``numbers``: each silo adds the noise to its vector and sends it to the coordinator,
which keeps all of them. Every number takes 32 bytes, whatever its value.

A vector is sent once. Made again it is the same byte for byte, since its noise comes from a stored
secret; another vector under the same noise is refused, since the difference of the two would show
exactly where they differ. Two rules hold in both machines: a message that is refused changes
nothing, and nothing leaves a silo before :meth:`VectorSilo.authorise` (the ledger's entry).
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from silograph import _core
from silograph.errors import ArgumentError, OrderError, PayloadError
from silograph.messages.entropy import Entropy
from silograph.messages.envelope import Outgoing
from silograph.messages.identity import COORDINATOR, Identity, Roster, pack
from silograph.messages.machine import Machine

__all__ = ["NUMBER_BYTES", "State", "VectorCoordinator", "VectorParameters", "VectorSilo"]

#: A number on the wire: two's complement, little-endian.
NUMBER_BYTES = 32
#: Values are smaller than this, so that noise cannot carry them past 32 bytes.
_LIMIT = 1 << 240
_LARGEST_LENGTH = 1 << 20


@dataclass(frozen=True)
class VectorParameters:
    """What all parties of a run must agree on."""

    silos: int
    #: How many numbers a silo sends.
    length: int
    #: The noise: P(z) ∝ exp(−|z|/scale).
    scale: Fraction
    #: What one step of a number is worth.
    unit: Fraction
    #: What the numbers are about: a digest of all that was public before they were made.
    subject: bytes
    #: Which numbers of a run these are.
    phase: str

    def __post_init__(self) -> None:
        if self.silos < 2 or not 1 <= self.length <= _LARGEST_LENGTH:
            raise ArgumentError("there must be two silos, and from 1 to 2^20 numbers of each")
        if self.scale <= 0 or self.unit <= 0:
            raise ArgumentError("scale and unit must be positive")

    @property
    def digest(self) -> bytes:
        """SHA-256 of every parameter."""
        values = (self.silos, self.length, self.scale, self.unit)
        fields = [str(value).encode() for value in values]
        fields += [self.subject, self.phase.encode()]
        return hashlib.sha256(pack(b"silograph/numbers/v1", *fields)).digest()


class State(StrEnum):
    """Where a machine is."""

    NEW = "new, not yet authorised"
    READY = "ready"
    SENT = "sent"
    WAITING = "waiting for numbers"
    DONE = "done"


#: Every step that a silo can take; anything else is refused and changes nothing.
SILO_STEPS: dict[tuple[State, str], State] = {
    (State.NEW, "authorise"): State.READY,
    (State.READY, "numbers"): State.SENT,
    (State.SENT, "numbers"): State.SENT,
}
#: Every step of the coordinator.
COORDINATOR_STEPS: dict[tuple[State, str], State] = {
    (State.WAITING, "numbers"): State.WAITING,
    (State.WAITING, "all numbers"): State.DONE,
}


class VectorSilo(Machine):
    """A silo that sends its numbers, noisily."""

    STEPS = SILO_STEPS
    TAKES = ()

    def __init__(
        self,
        parameters: VectorParameters,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
    ) -> None:
        super().__init__(parameters, roster, run, place, identity, State.NEW)
        self._parameters = parameters
        self._secret = entropy.bytes(32)
        self._sent = b""

    def authorise(self) -> None:
        """Say that the run's whole cost is in the ledger; only then is anything sent."""
        self.state = self._step("authorise")

    def numbers(self, values: Sequence[int]) -> Outgoing:
        """The values with their noise; made again only byte for byte."""
        state = self._step("numbers")
        parameters = self._parameters
        if len(values) != parameters.length or any(abs(x) >= _LIMIT for x in values):
            raise PayloadError(f"{parameters.length} numbers were due", round="numbers")
        label = pack(b"silograph/numbers/noise/v1", parameters.phase.encode())
        seen = hmac.digest(self._secret, pack(b"values", _encode(values)), "sha256")
        if self._sent not in (b"", seen):
            raise OrderError("other numbers were sent before", round="numbers")
        noise = _core.discrete_laplace(
            parameters.length,
            parameters.scale.numerator,
            parameters.scale.denominator,
            hmac.digest(self._secret, label, "sha256"),
        )
        noisy = [int(x) + z for x, z in zip(values, noise.tolist(), strict=True)]
        raw = self._seal("numbers", COORDINATOR, _encode(noisy))
        self._sent, self.state = seen, state
        return Outgoing(COORDINATOR, raw)


class VectorCoordinator(Machine):
    """The coordinator: keeps every silo's noisy numbers."""

    STEPS = COORDINATOR_STEPS
    TAKES = ("numbers",)

    def __init__(
        self, parameters: VectorParameters, roster: Roster, run: bytes, identity: Identity
    ) -> None:
        super().__init__(parameters, roster, run, COORDINATOR, identity, State.WAITING)
        self._parameters = parameters
        self._vectors: dict[int, list[int]] = {}

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a silo's numbers."""
        envelope = self._opened(raw)
        if envelope.sequence != 0:
            raise self._refuse(PayloadError, "has a sequence of its own", envelope)
        if envelope.sender in self._vectors:
            raise self._refuse(OrderError, "came twice", envelope)
        if len(envelope.payload) != NUMBER_BYTES * self._parameters.length:
            what = f"{self._parameters.length} numbers were due"
            raise self._refuse(PayloadError, what, envelope)
        self._vectors[envelope.sender] = _decode(envelope.payload)
        self.state = COORDINATOR_STEPS[self.state, "numbers"]
        if len(self._vectors) == self._parameters.silos:
            self.state = COORDINATOR_STEPS[self.state, "all numbers"]
        return []

    def result(self) -> list[list[int]]:
        """Every silo's noisy numbers; only when all are there."""
        self._require(State.DONE, "result")
        return [self._vectors[place] for place in range(self._parameters.silos)]


def _encode(values: Sequence[int]) -> bytes:
    return b"".join(int(x).to_bytes(NUMBER_BYTES, "little", signed=True) for x in values)


def _decode(payload: bytes) -> list[int]:
    starts = range(0, len(payload), NUMBER_BYTES)
    return [int.from_bytes(payload[i : i + NUMBER_BYTES], "little", signed=True) for i in starts]
