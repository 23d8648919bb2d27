"""Run keys: what a party makes of the keys that all parties have published.

Every party has a fresh X25519 key a run, signed by its identity. Each two of them share a secret
that is bound to the run, its parameters, the roster, both keys and both identities; and every silo
signs a digest of all that it was shown, so that a coordinator that shows different silos different
things is refused.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from silograph.errors import PayloadError, ProtocolError, ViewsDifferError
from silograph.protocol.envelope import Binding
from silograph.protocol.wire import pack

__all__ = ["Pair", "check_own_key", "check_views", "pairs_of", "view_digest", "weak_key"]


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
