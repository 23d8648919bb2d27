"""Run keys: secrets of two silos, one view for all, and payloads encrypted end to end."""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from silograph import _core
from silograph.errors import PayloadError, ProtocolError, ViewsDifferError
from silograph.messages.envelope import Binding, Envelope
from silograph.messages.identity import pack

__all__ = [
    "TAG_BYTES",
    "Lock",
    "Pair",
    "check_own_key",
    "check_views",
    "pairs_of",
    "view_digest",
    "weak_key",
]


# --- Run keys: what a party makes of the keys that all parties have published ---------------------
#
# Every party has a fresh X25519 key a run, signed by its identity. Each two of them share a secret
# that is bound to the run, its parameters, the roster, both keys and both identities; and every
# silo signs a digest of all that it was shown, so that a coordinator that shows different silos
# different things is refused.


@dataclass(frozen=True)
class Pair:
    """Another party, and what binds the two of us."""

    place: int
    key: bytes
    context: bytes
    #: Whether we come before it in the roster: of two silos the first adds, the other subtracts.
    first: bool


def pairs_of(binding: Binding, keys: Mapping[int, bytes], own: int) -> list[Pair]:
    """Every other party in the order of places."""
    found = []
    for place, key in sorted(keys.items()):
        if place == own:
            continue
        first, second = sorted((place, own))
        ends = [
            part for p in (first, second) for part in (keys[p], binding.roster.member(p).public)
        ]
        context = pack(binding.run, binding.parameters, binding.roster.digest, *ends)
        found.append(Pair(place, key, context, own == first))
    return found


def view_digest(label: bytes, binding: Binding, keys: Sequence[bytes]) -> bytes:
    """SHA-256 of all that a silo was shown before it sends anything that is its own."""
    seen = pack(
        label,
        binding.run,
        binding.parameters,
        binding.roster.digest,
        *keys,
    )
    return hashlib.sha256(seen).digest()


def check_own_key(binding: Binding, came: bytes, key: bytes, own: int) -> None:
    """Refuse a bundle in which our own key is another one."""
    if came != key:
        name = binding.roster.silos[own].name
        raise ViewsDifferError("our own key came back changed", silo=name, round="key")


def check_views(binding: Binding, views: Sequence[bytes], own: bytes) -> None:
    """Refuse, naming the silo, unless all have confirmed what we saw."""
    for place, view in enumerate(views):
        if view != own:
            name = binding.roster.silos[place].name
            raise ViewsDifferError("saw other keys than we did", silo=name, round="confirm")


def weak_key(binding: Binding, place: int) -> ProtocolError:
    """The refusal of a key of small order, with which nothing is secret."""
    return PayloadError("a weak run key", silo=binding.roster.member(place).name, round="key")


# --- Payloads that no carrier can read: encrypted end to end inside signed envelopes --------------
#
# A key has one sender, one set of receivers and one purpose. Its nonce counts messages: the round
# and the sequence within it, which a machine uses once, or again for the same bytes. The header of
# the envelope is authenticated with the payload, so that a ciphertext cannot be moved to another
# one.

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
