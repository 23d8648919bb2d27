"""Noisy vectors as two state machines: every silo sends integers with exact Laplace noise.

There is one round, ``numbers``: each silo adds independent discrete Laplace noise to every entry of
its vector and sends the result to the coordinator, which keeps all vectors. Every number takes 32
bytes, whatever its value.

A silo sends one vector. If it is made again it has the same bytes, since its noise comes from a
stored secret. Another vector under the same noise is refused, since the difference of the two would
show exactly where they differ. Two rules hold in both machines. A refused message changes nothing.
Nothing leaves a silo before :meth:`VectorSilo.authorise` is called, after the ledger was charged.
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

#: The size of a number in a message: two's complement, little-endian.
NUMBER_BYTES = 32
#: Values are smaller than this, so a number with noise fits in 32 bytes.
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
    #: The value of one step of a number.
    unit: Fraction
    #: A digest of everything that was public before the numbers were made.
    subject: bytes
    #: Which of the run's vectors this is.
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
    """The states of a machine."""

    NEW = "new, not yet authorised"
    READY = "ready"
    SENT = "sent"
    WAITING = "waiting for numbers"
    DONE = "done"


#: All steps that a silo can take; anything else is refused and changes nothing.
SILO_STEPS: dict[tuple[State, str], State] = {
    (State.NEW, "authorise"): State.READY,
    (State.READY, "numbers"): State.SENT,
    (State.SENT, "numbers"): State.SENT,
}
#: All steps of the coordinator.
COORDINATOR_STEPS: dict[tuple[State, str], State] = {
    (State.WAITING, "numbers"): State.WAITING,
    (State.WAITING, "all numbers"): State.DONE,
}


class VectorSilo(Machine):
    """A silo that sends its numbers with noise."""

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
        """Record that the run's whole cost is in the ledger; nothing is sent before this."""
        self.state = self._step("authorise")

    def numbers(self, values: Sequence[int]) -> Outgoing:
        """The values with their noise. A repeated call returns exactly the same bytes."""
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
    """The coordinator, which keeps every silo's noisy numbers."""

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
            raise self._refuse(PayloadError, "its sequence is not 0", envelope)
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
        """Every silo's noisy numbers; only available when all have arrived."""
        self._require(State.DONE, "result")
        return [self._vectors[place] for place in range(self._parameters.silos)]


def _encode(values: Sequence[int]) -> bytes:
    return b"".join(int(x).to_bytes(NUMBER_BYTES, "little", signed=True) for x in values)


def _decode(payload: bytes) -> list[int]:
    starts = range(0, len(payload), NUMBER_BYTES)
    return [int.from_bytes(payload[i : i + NUMBER_BYTES], "little", signed=True) for i in starts]
