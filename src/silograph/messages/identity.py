"""The parties of a run: identities that sign messages, and the roster that lists the parties."""

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from silograph import _core
from silograph.errors import ArgumentError, EnvelopeError, SignatureError

__all__ = [
    "COORDINATOR",
    "ROLES",
    "Identity",
    "Member",
    "Role",
    "Roster",
    "check_public_key",
    "pack",
    "spans",
    "unpack",
    "verify",
]


# --- Long-term identities: Ed25519 (RFC 8032). Verification raises; it never returns a bool -------


class Identity:
    """A signing key. Its representation shows only the public key."""

    __slots__ = ("_key", "public")

    def __init__(self, secret: bytes) -> None:
        if len(secret) != 32:
            raise SignatureError("an identity's secret has 32 bytes")
        self._key = _core.Identity(secret)
        self.public = self._key.public()

    def sign(self, message: bytes) -> bytes:
        """Return a signature of 64 bytes."""
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"Identity(public={self.public.hex()[:16]}…)"


def check_public_key(public: bytes) -> None:
    """Refuse bytes that are not a canonical Ed25519 key, and keys of small order."""
    if len(public) != 32 or not _core.is_public_key(public):
        raise SignatureError(f"{public.hex()[:16]}… is not an Ed25519 public key")


def verify(public: bytes, message: bytes, signature: bytes, *, who: str) -> None:
    """Raise :class:`SignatureError`, naming ``who``, unless the signature is valid."""
    if len(signature) != 64 or not _core.verify_signature(public, message, signature):
        raise SignatureError(f"the signature is not that of {who}")


# --- Encoding of fields: each field follows its length, so different lists never look alike -------
_LENGTH = struct.Struct("<Q")


def pack(*fields: bytes) -> bytes:
    """Encode the fields, each preceded by its length.

    >>> unpack(pack(b"ab", b""), 2)
    [b'ab', b'']
    """
    return b"".join(part for field in fields for part in (_LENGTH.pack(len(field)), field))


def unpack(content: bytes, count: int, limits: Sequence[int] | None = None) -> list[bytes]:
    """Decode exactly ``count`` fields; ``limits`` are their largest lengths."""
    return [content[field] for field in spans(content, count, limits)]


def spans(content: bytes, count: int, limits: Sequence[int] | None = None) -> list[slice]:
    """Where the fields stand, without a copy of them; see :func:`unpack`."""
    fields, position = [], 0
    for i in range(count):
        if position + _LENGTH.size > len(content):
            raise EnvelopeError("the message is truncated")
        (length,) = _LENGTH.unpack_from(content, position)
        position += _LENGTH.size
        if limits is not None and length > limits[i]:
            raise EnvelopeError(f"field {i} of the message is too long")
        if length > len(content) - position:
            raise EnvelopeError("the message is truncated")
        fields.append(slice(position, position + length))
        position += length
    if position != len(content):
        raise EnvelopeError("there are bytes after the end of the message")
    return fields


# --- The roster: the parties, and the keys by which they know each other --------------------------
#
# People exchange the roster themselves. The coordinator cannot change it unnoticed, since its
# digest is part of every message. Silos have edges; helpers have none, and only serve as members of
# committees.
#: The coordinator's place. Silos have the places 0, 1, …, and helpers the places after them.
COORDINATOR = 0xFFFF
_LONGEST = 200

#: The role of a party other than the coordinator.
Role = Literal["silo", "helper"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True)
class Member:
    """A party: its name, its Ed25519 public key, and the organisation that is responsible for it.

    Parties of one organisation count as one wherever different organisations are required. The
    organisation is empty for runs within one process.
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
    """The coordinator, the silos in order, and the helpers in order."""

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
        """All parties: the coordinator, the silos and the helpers."""
        return (self.coordinator, *self.silos, *self.helpers)

    def member(self, place: int) -> Member:
        """The party at ``place``."""
        if place == COORDINATOR:
            return self.coordinator
        if place not in self.places:
            raise ArgumentError(f"the roster has no party {place}")
        return (*self.silos, *self.helpers)[place]

    @property
    def places(self) -> range:
        """The places of all parties but the coordinator: the silos, then the helpers."""
        return range(len(self.silos) + len(self.helpers))

    def has_silo(self, place: int) -> bool:
        """Whether the party at ``place`` is a silo."""
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
