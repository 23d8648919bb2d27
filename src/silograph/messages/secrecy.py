"""Secrets of a run: keys shared by two parties, confirmed views, and end-to-end encryption."""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from silograph import _core
from silograph.errors import ClonedError, PayloadError, ProtocolError, ViewsDifferError
from silograph.messages.envelope import Binding, Envelope
from silograph.messages.identity import pack

__all__ = [
    "TAG_BYTES",
    "Lock",
    "Pair",
    "check_own_key",
    "check_views",
    "own_key_changed",
    "pairs_of",
    "view_digest",
    "weak_key",
]


# --- Run keys: what a party derives from the keys that all parties have published -----------------
#
# Every party has a fresh X25519 key per run, signed by its identity. Any two parties share a secret
# that is bound to the run, its parameters, the roster, both keys and both identities. Every silo
# also signs a digest of everything that it was shown. So a coordinator that shows different keys to
# different silos is detected.


@dataclass(frozen=True)
class Pair:
    """Another party, and the context of the secret that we share with it."""

    place: int
    key: bytes
    context: bytes
    #: Whether we come before it in the roster. The first of two silos adds, the other subtracts.
    first: bool


def pairs_of(binding: Binding, keys: Mapping[int, bytes], own: int) -> list[Pair]:
    """All other parties, in the order of their places."""
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
    """SHA-256 of everything that a silo was shown before it sends anything of its own."""
    seen = pack(
        label,
        binding.run,
        binding.parameters,
        binding.roster.digest,
        *keys,
    )
    return hashlib.sha256(seen).digest()


def own_key_changed(name: str) -> ClonedError:
    """The error for a bundle with another run key of our own, which only our identity can sign."""
    what = "our own key came back changed: we were cloned, or put back to an earlier state"
    return ClonedError(what, silo=name, round="key")


def check_own_key(binding: Binding, came: bytes, key: bytes, own: int) -> None:
    """Refuse a bundle in which our own key was changed."""
    if came != key:
        raise own_key_changed(binding.roster.member(own).name)


def check_views(binding: Binding, views: Sequence[bytes], own: bytes) -> None:
    """Raise an error that names the party if any confirmed something else than we saw."""
    for place, view in enumerate(views):
        if view != own:
            name = binding.roster.member(place).name
            raise ViewsDifferError("saw other keys than we did", silo=name, round="confirm")


def weak_key(binding: Binding, place: int) -> ProtocolError:
    """The error for a key of small order, which would make the shared secret known."""
    return PayloadError("a weak run key", silo=binding.roster.member(place).name, round="key")


# --- Payloads encrypted end to end inside signed envelopes ----------------------------------------
#
# A key has one sender, one set of receivers and one purpose. Its nonce consists of the round and
# the sequence within the round; a machine uses it once, or again for the same bytes. The header of
# the envelope is authenticated with the payload, so a ciphertext cannot be moved to another
# envelope.
#: The number of bytes that encryption adds.
TAG_BYTES = 16
_NONCE = struct.Struct("<IQ")
_PLACES = struct.Struct("<HHI")


class Lock:
    """A key with the names of the rounds that it is for. Its representation does not show it."""

    __slots__ = ("_binding", "_key", "_rounds")

    def __init__(self, key: bytes, binding: Binding, rounds: Sequence[str]) -> None:
        self._key = _core.AeadKey(key)
        self._binding = binding
        self._rounds = {name: number for number, name in enumerate(rounds)}

    def close(self, envelope: Envelope) -> Envelope:
        """The same message with an encrypted payload."""
        sealed = self._key.seal(self._nonce(envelope), self._header(envelope), envelope.payload)
        return envelope.saying(sealed)

    def open(self, envelope: Envelope) -> bytes:
        """The decrypted payload; raises an error if decryption fails."""
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
