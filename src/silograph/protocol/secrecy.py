"""Payloads that no carrier can read: encrypted end to end inside signed envelopes.

A key has one sender, one set of receivers and one purpose. Its nonce counts messages: the round and
the sequence within it, which a machine uses once, or again for the same bytes. The header of the
envelope is authenticated with the payload, so that a ciphertext cannot be moved to another one.
"""

import struct
from collections.abc import Sequence
from dataclasses import replace

from silograph import _core
from silograph.errors import PayloadError
from silograph.protocol.envelope import Binding, Envelope
from silograph.protocol.wire import pack

__all__ = ["TAG_BYTES", "Lock"]

#: Bytes that encryption adds.
TAG_BYTES = 16
_NONCE = struct.Struct("<IQ")
_PLACES = struct.Struct("<HHI")


class Lock:
    """A key with the names of the rounds that it is for. It shows nothing of itself."""

    __slots__ = ("_binding", "_key", "_rounds")

    def __init__(self, key: bytes, binding: Binding, rounds: Sequence[str]) -> None:
        self._key = _core.AeadKey(key)
        self._binding = binding
        self._rounds = {name: number for number, name in enumerate(rounds)}

    def close(self, envelope: Envelope) -> Envelope:
        """The same message, encrypted."""
        sealed = self._key.seal(self._nonce(envelope), self._header(envelope), envelope.payload)
        return replace(envelope, payload=sealed)

    def open(self, envelope: Envelope) -> bytes:
        """What its sender encrypted, or one error: nothing of it is used."""
        opened = self._key.open(self._nonce(envelope), self._header(envelope), envelope.payload)
        if opened is None:
            name = self._binding.roster.member(envelope.sender).name
            raise PayloadError("it cannot be decrypted", silo=name, round=envelope.round)
        return opened

    def _nonce(self, envelope: Envelope) -> bytes:
        return _NONCE.pack(self._rounds[envelope.round], envelope.sequence)

    def _header(self, envelope: Envelope) -> bytes:
        places = _PLACES.pack(envelope.sender, envelope.receiver, envelope.sequence)
        bound = (self._binding.run, self._binding.parameters, self._binding.roster.digest)
        return pack(b"silograph/secrecy/v1", *bound, envelope.round.encode(), places)

    def __repr__(self) -> str:
        return "Lock(…)"
