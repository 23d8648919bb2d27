"""The roster: who takes part, and the keys by which they know each other.

People exchange it themselves; the coordinator cannot change it unnoticed, since its digest is in
every message.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property

from silograph.crypto.identity import check_public_key
from silograph.errors import ArgumentError
from silograph.protocol.wire import pack

__all__ = ["COORDINATOR", "Member", "Roster"]

#: The coordinator's place, where silos have 0, 1, …
COORDINATOR = 0xFFFF


@dataclass(frozen=True)
class Member:
    """A party: its name, and its Ed25519 public key."""

    name: str
    public: bytes

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > 200 or not self.name.isprintable():
            raise ArgumentError(f"{self.name[:40]!r} is not a party's name")
        check_public_key(self.public)


@dataclass(frozen=True)
class Roster:
    """The coordinator and, in order, the silos."""

    coordinator: Member
    silos: tuple[Member, ...]

    def __post_init__(self) -> None:
        everyone = (self.coordinator, *self.silos)
        for what, values in (
            ("name", [member.name for member in everyone]),
            ("key", [member.public for member in everyone]),
        ):
            if len(set(values)) != len(values):
                raise ArgumentError(f"two parties of the roster have the same {what}")

    def member(self, place: int) -> Member:
        """The party at a place."""
        if place == COORDINATOR:
            return self.coordinator
        if not 0 <= place < len(self.silos):
            raise ArgumentError(f"the roster has no party {place}")
        return self.silos[place]

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all names and keys in order."""
        everyone = (self.coordinator, *self.silos)
        fields = [part for m in everyone for part in (m.name.encode(), m.public)]
        return hashlib.sha256(pack(b"silograph/roster/v1", *fields)).digest()
