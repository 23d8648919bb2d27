"""The envelope: the signed form of every message.

The signature binds a message to its run, round, sender, receiver, sequence and parameters. How a
message arrived proves nothing.
"""

import hashlib
import struct
from dataclasses import dataclass, replace
from functools import cached_property

from silograph import _core
from silograph.errors import (
    ArgumentError,
    BindingError,
    EnvelopeError,
    ProtocolError,
    SignatureError,
)
from silograph.messages.identity import Identity, Roster, pack, spans, verify

__all__ = ["EVERYONE", "Binding", "Envelope", "Outgoing", "open_envelope", "peek", "seal", "stamp"]

#: The receiver of messages that are addressed to all parties.
EVERYONE = 0xFFFE

_MAGIC = b"silograph/envelope/v2"
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
    """An opened message.

    The payload is the end of ``content``, from ``start`` on: chunks are large, and whoever only
    reads where a message belongs should not copy it.
    """

    round: str
    sender: int
    receiver: int
    sequence: int
    content: bytes
    start: int = 0

    @cached_property
    def payload(self) -> bytes:
        """What the message says."""
        return self.content[self.start :]

    def saying(self, payload: bytes) -> "Envelope":
        """The same message with another payload."""
        return replace(self, content=payload, start=0)

    @cached_property
    def digest(self) -> bytes:
        """BLAKE3 of the payload, which may be large."""
        return _core.payload_digest(self.content, self.start)


@dataclass(frozen=True)
class Outgoing:
    """A message to send: to one party, or to all silos."""

    to: int
    raw: bytes


def _signed(binding: Binding, envelope: Envelope) -> bytes:
    places = _PLACES.pack(envelope.sender, envelope.receiver, envelope.sequence)
    # The payload is hashed once, here: signing hashes its input twice.
    head = (_MAGIC, binding.run, binding.parameters, binding.roster.digest)
    return pack(*head, envelope.round.encode(), places, envelope.digest)


def seal(binding: Binding, identity: Identity, envelope: Envelope) -> bytes:
    """Sign and encode a message."""
    places = _PLACES.pack(envelope.sender, envelope.receiver, envelope.sequence)
    signature = identity.sign(_signed(binding, envelope))
    return pack(
        _MAGIC, binding.run, binding.parameters, envelope.round.encode(), places, signature,
        envelope.payload,
    )  # fmt: skip


def peek(raw: bytes) -> Envelope:
    """Decode a message without checking its signature or binding."""
    return _read(raw)[0]


def stamp(message: Envelope) -> bytes:
    """A digest of a message that was read: of all before its payload, the signature among it.

    If the signature is good, it stands for the payload, too. With strict verification and a key
    that is not of small order, no signature is good for two payloads (Chalkias, Garillot and
    Nikolaenko, "Taming the many EdDSAs", 2020). Until it was verified, a stamp proves nothing.
    """
    return hashlib.sha256(message.content[: message.start]).digest()


def _read(raw: bytes) -> tuple[Envelope, list[bytes]]:
    limits = [len(_MAGIC), 16, 32, 32, _PLACES.size, 64, _LARGEST_PAYLOAD]
    *fields, payload = spans(raw, 7, limits)
    magic, run, parameters, name, places, signature = (raw[field] for field in fields)
    if magic != _MAGIC:
        raise EnvelopeError("this is not a message of this version of Silograph")
    if len(places) != _PLACES.size or not name.isascii():
        raise EnvelopeError("the message is malformed")
    sender, receiver, sequence = _PLACES.unpack(places)
    envelope = Envelope(name.decode("ascii"), sender, receiver, sequence, raw, payload.start)
    return envelope, [run, parameters, signature]


def open_envelope(binding: Binding, raw: bytes, *, receiver: int) -> Envelope:
    """Decode a message and check its run, parameters, receiver and signature."""
    envelope, (run, parameters, signature) = _read(raw)
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
