"""Rounds in which every silo says something to all, and bundles that the coordinator relays.

A round in which every silo says something to all is two messages: each silo sends its own to the
coordinator, which relays all of them, as they were signed, in one bundle.
"""

from silograph.crypto.identity import Identity
from silograph.errors import OrderError, PayloadError
from silograph.protocol.envelope import (
    EVERYONE,
    Binding,
    Envelope,
    Outgoing,
    open_envelope,
    seal,
)
from silograph.protocol.roster import COORDINATOR
from silograph.protocol.wire import pack, unpack

__all__ = ["Collection", "open_bundle"]


class Collection:
    """The coordinator's side of a round: one message of each silo, then a bundle."""

    def __init__(self, binding: Binding) -> None:
        self._binding = binding
        self._collected: dict[int, bytes] = {}

    def take(
        self, envelope: Envelope, raw: bytes, identity: Identity, *own: bytes
    ) -> list[Outgoing]:
        """Keep a checked message; when it is the last one, all go out, and ``own`` after them."""
        silos = self._binding.roster.silos
        name = silos[envelope.sender].name
        if envelope.sequence != 0:
            raise PayloadError("has a sequence of its own", silo=name, round=envelope.round)
        if envelope.sender in self._collected:
            raise OrderError("came twice", silo=name, round=envelope.round)
        self._collected[envelope.sender] = raw
        if len(self._collected) < len(silos):
            return []
        bundle = pack(*(self._collected[place] for place in range(len(silos))), *own)
        relayed = Envelope(f"{envelope.round}s", COORDINATOR, EVERYONE, 0, bundle)
        self._collected = {}
        return [Outgoing(EVERYONE, seal(self._binding, identity, relayed))]


def open_bundle(
    binding: Binding,
    bundle: Envelope,
    expected: str,
    *,
    receiver: int,
    length: int,
    after: tuple[int, ...] = (),
) -> list[bytes]:
    """A silo's side: the payloads of all silos, each checked as if it had come by itself.

    ``after`` are the parties whose messages follow those of the silos.
    """
    payloads, places = [], (*range(len(binding.roster.silos)), *after)
    for place, raw in zip(places, unpack(bundle.payload, len(places)), strict=True):
        inner = open_envelope(binding, raw, receiver=receiver)
        name = binding.roster.member(inner.sender).name
        if (inner.round, inner.sender, inner.sequence) != (expected, place, 0):
            what = f"{expected} of {_party(place)} was due"
            raise OrderError(what, silo=name, round=inner.round)
        if len(inner.payload) != length:
            raise PayloadError(f"{length} bytes were due", silo=name, round=inner.round)
        payloads.append(inner.payload)
    return payloads


def _party(place: int) -> str:
    return "the coordinator" if place == COORDINATOR else f"silo {place}"
