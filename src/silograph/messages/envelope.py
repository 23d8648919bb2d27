"""The envelope: the signed form of every message.

The signature binds a message to its run, round, sender, receiver, sequence and parameters. How a
message arrived proves nothing.
"""

import hashlib
import struct
from dataclasses import dataclass

from silograph.errors import (
    ArgumentError,
    BindingError,
    EnvelopeError,
    ProtocolError,
    SignatureError,
)
from silograph.messages.identity import Identity, Roster, pack, unpack, verify

__all__ = ["EVERYONE", "Binding", "Envelope", "Outgoing", "open_envelope", "peek", "seal"]

#: The receiver of messages that are addressed to all parties.
EVERYONE = 0xFFFE

_MAGIC = b"silograph/envelope/v1"
_PLACES = struct.Struct("<HHI")
_LARGEST_PAYLOAD = 1 << 26


@dataclass(frozen=True)
class Binding:
    """The values that all messages of one run share."""

    run: bytes
    parameters: bytes
    roster: Roster

    def __post_init__(self) -> None:
        if len(self.run) != 16:
            raise ProtocolError("a run id has 16 bytes")


@dataclass(frozen=True)
class Envelope:
    """An opened message."""

    round: str
    sender: int
    receiver: int
    sequence: int
    payload: bytes


@dataclass(frozen=True)
class Outgoing:
    """A message to send: to one party, or to all silos."""

    to: int
    raw: bytes


def _signed(binding: Binding, envelope: Envelope, digest: bytes | None = None) -> bytes:
    places = _PLACES.pack(envelope.sender, envelope.receiver, envelope.sequence)
    # Hash the payload once here: signing hashes its input twice.
    digest = digest or hashlib.sha256(envelope.payload).digest()
    head = (_MAGIC, binding.run, binding.parameters, binding.roster.digest)
    return pack(*head, envelope.round.encode(), places, digest)


def seal(
    binding: Binding, identity: Identity, envelope: Envelope, digest: bytes | None = None
) -> bytes:
    """Sign and encode a message. A caller that has already hashed the payload passes the digest."""
    places = _PLACES.pack(envelope.sender, envelope.receiver, envelope.sequence)
    signature = identity.sign(_signed(binding, envelope, digest))
    return pack(
        _MAGIC, binding.run, binding.parameters, envelope.round.encode(), places, signature,
        envelope.payload,
    )  # fmt: skip


def peek(raw: bytes) -> Envelope:
    """Decode a message without checking its signature or binding."""
    return _read(raw)[0]


def _read(raw: bytes) -> tuple[Envelope, list[bytes]]:
    limits = [len(_MAGIC), 16, 32, 32, _PLACES.size, 64, _LARGEST_PAYLOAD]
    fields = unpack(raw, 7, limits)
    magic, _, _, name, places, _, payload = fields
    if magic != _MAGIC:
        raise EnvelopeError("this is not a message of this version of Silograph")
    if len(places) != _PLACES.size or not name.isascii():
        raise EnvelopeError("the message is malformed")
    sender, receiver, sequence = _PLACES.unpack(places)
    return Envelope(name.decode("ascii"), sender, receiver, sequence, payload), fields


def open_envelope(binding: Binding, raw: bytes, *, receiver: int) -> Envelope:
    """Decode a message and check its run, parameters, receiver and signature."""
    envelope, (_, run, parameters, _, _, signature, _) = _read(raw)
    try:
        sender = binding.roster.member(envelope.sender)
    except ArgumentError as error:
        raise BindingError(str(error), round=envelope.round) from None
    who = sender.name
    if run != binding.run:
        raise BindingError("the message is of another run", silo=who, round=envelope.round)
    if parameters != binding.parameters:
        raise BindingError("the message has other parameters", silo=who, round=envelope.round)
    if envelope.receiver not in (receiver, EVERYONE):
        raise BindingError("the message is for someone else", silo=who, round=envelope.round)
    try:
        verify(sender.public, _signed(binding, envelope), signature, who=who)
    except SignatureError as error:
        raise SignatureError(str(error), silo=who, round=envelope.round) from None
    return envelope
