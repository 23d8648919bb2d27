"""The roster: who takes part, and the keys by which they know each other.

People exchange it themselves; the coordinator cannot change it unnoticed, since its digest is in
every message. Silos have edges; helpers have none, and are there to be members of committees.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from silograph.crypto.identity import check_public_key
from silograph.errors import ArgumentError
from silograph.protocol.wire import pack

__all__ = ["COORDINATOR", "ROLES", "Member", "Role", "Roster"]

#: The coordinator's place, where silos have 0, 1, …, and helpers the places after them.
COORDINATOR = 0xFFFF
_LONGEST = 200

#: What a party is, beside the coordinator.
Role = Literal["silo", "helper"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True)
class Member:
    """A party: its name, its Ed25519 public key, and the organisation that answers for it.

    Parties of one organisation count as one where different ones are asked for. It is empty where
    all parties are one process.
    """

    name: str
    public: bytes
    organisation: str = ""

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > _LONGEST or not self.name.isprintable():
            raise ArgumentError(f"{self.name[:40]!r} is not a party's name")
        if len(self.organisation) > _LONGEST or not self.organisation.isprintable():
            raise ArgumentError(
                f"{self.organisation[:40]!r} is not an organisation: at most {_LONGEST} "
                "characters, all printable"
            )
        check_public_key(self.public)


@dataclass(frozen=True)
class Roster:
    """The coordinator and, in order, the silos; and the helpers, in order as well."""

    coordinator: Member
    silos: tuple[Member, ...]
    helpers: tuple[Member, ...] = ()

    def __post_init__(self) -> None:
        for what, values in (
            ("name", [member.name for member in self.members]),
            ("key", [member.public for member in self.members]),
        ):
            if len(set(values)) != len(values):
                raise ArgumentError(f"two parties of the roster have the same {what}")

    @property
    def members(self) -> tuple[Member, ...]:
        """Everyone: the coordinator, the silos, the helpers."""
        return (self.coordinator, *self.silos, *self.helpers)

    def member(self, place: int) -> Member:
        """The party at a place."""
        if place == COORDINATOR:
            return self.coordinator
        if not 0 <= place < len(self.silos) + len(self.helpers):
            raise ArgumentError(f"the roster has no party {place}")
        return (*self.silos, *self.helpers)[place]

    def has_silo(self, place: int) -> bool:
        """Whether the party at a place is a silo."""
        return 0 <= place < len(self.silos)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all roles, names, keys and organisations in order."""
        return hashlib.sha256(pack(b"silograph/roster/v2", *self._fields())).digest()

    def _fields(self) -> Iterator[bytes]:
        groups = (
            (b"coordinator", (self.coordinator,)),
            (b"silo", self.silos),
            (b"helper", self.helpers),
        )
        for role, members in groups:
            for member in members:
                yield from (role, member.name.encode(), member.public, member.organisation.encode())
