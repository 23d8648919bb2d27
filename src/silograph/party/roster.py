"""Rosters as files that people read, compare and sign.

What: a TOML file with the coordinator, the other members in order (silos hold edges, helpers do
not), the revoked keys, and everyone's signatures::

    kind = "silograph roster"
    version = 2
    serial = 2
    previous = "sha256:…"            # the roster that this one replaces

    [coordinator]
    name = "hub"
    organisation = "Institute of Statistics"
    key = "ed25519:…"

    [[members]]
    role = "silo"                    # or "helper"
    name = "north"
    organisation = "North Bank"
    key = "ed25519:…"

    [[revoked]]
    name = "north"
    key = "ed25519:…"
    date = 2031-05-06
    reason = "laptop stolen"

    [signatures]
    north = "…"

Guarantee: a file is either refused with one :class:`RosterError`, or it has passed every check of
:mod:`~silograph.party.roster`.

Why the signatures are in the same file: a separate file can get lost. :meth:`RosterFile.merge`
combines the signatures of several copies.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from silograph import whole_files
from silograph.errors import ArgumentError, RosterError, SignatureError
from silograph.messages.identity import ROLES, Identity, Member, Role, Roster, pack, verify
from silograph.party.keys import key_text, read_key

__all__ = [
    "MOST",
    "WORDS",
    "Revocation",
    "RosterFile",
    "check_name",
    "check_role",
    "digest_text",
    "new_member",
    "new_roster",
    "parse_roster",
    "read_roster",
    "roster_of",
    "roster_text",
    "roster_words",
    "write_roster",
]


# --- What a roster says, who has signed it, and how it may change ---------------------------------
#
# Guarantee: in a :class:`RosterFile` no two parties share a name or a key, no party has a revoked
# key, and every signature is valid: it was made with the party's own key over the digest of this
# file. A change after the first signature makes a roster with the next serial. That roster contains
# the digest of the roster that it replaces, and it has no signatures yet.
#
# Why two digests: ``Roster.digest`` (used by the protocols) covers roles, names, keys and
# organisations in order, and is bound into every message. ``RosterFile.digest`` covers that digest,
# the serial, the previous roster and all revocations. People compare and sign the second one, so
# nobody can be shown another history with the same members. It does not cover the signatures,
# because otherwise each new signature would invalidate the earlier ones.

#: The largest number of parties, and of revoked keys.
MOST = 1000
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
#: Words that take the place of a name in a message's subject.
_RESERVED = frozenset({"all"})
_LONGEST_REASON = 200
_LONGEST_ORGANISATION = 200


def check_name(name: str) -> str:
    """Refuse a name that is not valid in a subject, in a certificate and in a file name."""
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise RosterError(
            f"{name[:80]!r} is not a party's name: 1 to 63 of a-z, 0-9 and - (not at an end, "
            "and not 'all')"
        )
    return name


def check_organisation(organisation: str) -> str:
    """Refuse an organisation that people could not read and compare by eye."""
    fits = 0 < len(organisation) <= _LONGEST_ORGANISATION and organisation.isprintable()
    if not fits or organisation != organisation.strip():
        raise RosterError(
            f"{organisation[:80]!r} is not an organisation: 1 to {_LONGEST_ORGANISATION} "
            "characters, all printable, with no space at an end"
        )
    return organisation


def check_role(role: str) -> Role:
    """Refuse an unknown role."""
    for known in ROLES:
        if role == known:
            return known
    raise RosterError(f"{role[:80]!r} is not a role: {' or '.join(ROLES)}")


def digest_text(digest: bytes) -> str:
    """A digest as text, in the form that people compare."""
    return f"sha256:{digest.hex()}"


#: How many words stand for a digest: 12 of a list of 2,048 are 132 bits.
WORDS = 12
_BITS_OF_A_WORD = 11


@cache
def _word_list() -> tuple[str, ...]:
    # The English list of BIP-39: no two words have the same first four letters.
    return tuple((files("silograph.party") / "words.txt").read_text("ascii").split())


@lru_cache(maxsize=16)
def roster_words(digest: bytes) -> tuple[str, ...]:
    """A roster's digest as twelve words, to be read out on the telephone.

    The words come from scrypt (32 MiB and about a tenth of a second). Whoever writes a roster could
    otherwise try keys until two rosters have the same words: 2^66 attempts, which are feasible with
    a bare SHA-256 and out of reach with this.

    >>> roster_words(bytes(32))[:3]
    ('odor', 'air', 'tissue')
    """
    bits = WORDS * _BITS_OF_A_WORD
    found = hashlib.scrypt(
        digest, salt=b"silograph/roster-words/v1", n=1 << 15, r=8, p=1, maxmem=1 << 26, dklen=17
    )
    number = int.from_bytes(found) >> (8 * len(found) - bits)
    words = _word_list()
    places = range(bits - _BITS_OF_A_WORD, -1, -_BITS_OF_A_WORD)
    return tuple(words[number >> place & (1 << _BITS_OF_A_WORD) - 1] for place in places)


@dataclass(frozen=True)
class Revocation:
    """A revoked key: whose it was, when it was revoked and why."""

    name: str
    key: bytes
    date: date
    reason: str

    def __post_init__(self) -> None:
        check_name(self.name)
        if not self.reason.isprintable() or not 0 < len(self.reason) <= _LONGEST_REASON:
            raise RosterError(
                f"a reason has 1 to {_LONGEST_REASON} characters, all printable, on one line"
            )


@dataclass(frozen=True)
class RosterFile:
    """A roster with its serial, the digest of its predecessor, revoked keys and signatures."""

    roster: Roster
    serial: int = 1
    previous: bytes | None = None
    revoked: tuple[Revocation, ...] = ()
    signatures: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        object.__setattr__(self, "signatures", MappingProxyType(dict(self.signatures)))
        if not 1 <= self.serial < 1 << 31 or (self.serial == 1) != (self.previous is None):
            raise RosterError(
                "serial 1 replaces no roster, and every later one names the one before"
            )
        if len(self.members) > MOST or len(self.revoked) > MOST:
            raise RosterError(f"a roster has at most {MOST} parties and {MOST} revoked keys")
        for member in self.members:
            check_name(member.name)
            check_organisation(member.organisation)
        gone = [entry.key for entry in self.revoked]
        if len(set(gone)) != len(gone):
            raise RosterError("a key is revoked twice")
        for member in self.members:
            if member.public in gone:
                raise RosterError(f"the key of {member.name} is revoked")
        self._check_signatures()

    def _check_signatures(self) -> None:
        keys = {member.name: member.public for member in self.members}
        for name, signature in self.signatures.items():
            if name not in keys:
                raise RosterError(f"signed by {name[:80]!r}, who is not in the roster")
            try:
                verify(keys[name], self._signed(), signature, who=name)
            except SignatureError:
                raise RosterError(
                    f"the signature of {name} is not on this roster: it was changed after signing, "
                    "or signed with another key"
                ) from None

    @property
    def members(self) -> tuple[Member, ...]:
        """The coordinator, the silos in order, and the helpers in order."""
        return self.roster.members

    @property
    def parties(self) -> tuple[tuple[Role, Member], ...]:
        """All members but the coordinator, each with its role, in the order of their places."""
        silos: list[tuple[Role, Member]] = [("silo", member) for member in self.roster.silos]
        return (*silos, *(("helper", member) for member in self.roster.helpers))

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of everything but the signatures; covers :attr:`Roster.digest`."""
        gone = [
            pack(entry.name.encode(), entry.key, entry.date.isoformat().encode(),
                 entry.reason.encode())
            for entry in self.revoked
        ]  # fmt: skip
        head = (b"silograph/roster-file/v1", str(self.serial).encode(), self.previous or b"")
        return hashlib.sha256(pack(*head, self.roster.digest, *gone)).digest()

    @property
    def signed_by(self) -> tuple[str, ...]:
        """The names of those who have signed, in the order of the roster."""
        return tuple(m.name for m in self.members if m.name in self.signatures)

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of those who have not signed yet, in the order of the roster."""
        return tuple(m.name for m in self.members if m.name not in self.signatures)

    def check_complete(self) -> None:
        """Refuse a roster that is not signed by all its members: it is not in force."""
        if self.missing:
            raise RosterError(
                f"the roster (serial {self.serial}) is not signed by {', '.join(self.missing)}"
            )

    def check_replaces(self, serial: int, digest: bytes) -> None:
        """Refuse a roster that does not replace the given one, which was in force here.

        Only the same roster and its direct successor pass. Later ones must be taken one by one, so
        that no revocation is skipped.
        """
        if (self.serial, self.digest) == (serial, digest):
            return
        if self.serial <= serial:
            raise RosterError(
                f"serial {self.serial}, and serial {serial} with another digest was in force here: "
                "an old roster, or a second one with the same serial"
            )
        if self.serial != serial + 1 or self.previous != digest:
            raise RosterError(
                f"serial {self.serial} does not name as previous the roster that was in force "
                f"here (serial {serial}, {digest_text(digest)})"
            )

    def check_follows(self, old: "RosterFile") -> None:
        """Refuse a roster that is not a proper successor of ``old``.

        In addition to :meth:`check_replaces`, no revocation may be dropped, and every key that is
        no longer used must be revoked.
        """
        self.check_replaces(old.serial, old.digest)
        if self.revoked[: len(old.revoked)] != old.revoked:
            raise RosterError("a key that was revoked is no longer")
        good = {(member.name, member.public) for member in self.members}
        gone = {entry.key for entry in self.revoked}
        for member in old.members:
            if (member.name, member.public) not in good and member.public not in gone:
                raise RosterError(f"the key of {member.name} is gone, and is not revoked")

    def place(self, public: bytes) -> str:
        """The name of the party that has this key; raises if the key is revoked or unknown."""
        for member in self.members:
            if member.public == public:
                return member.name
        for entry in self.revoked:
            if entry.key == public:
                raise RosterError(f"this key of {entry.name} was revoked on {entry.date}")
        raise RosterError(f"{key_text(public)[:24]}… is not in the roster")

    def sign(self, identity: Identity) -> "RosterFile":
        """A copy with the signature of the party that has this identity."""
        name = self.place(identity.public)
        signed = {**self.signatures, name: identity.sign(self._signed())}
        return replace(self, signatures=signed)

    def _signed(self) -> bytes:
        return pack(b"silograph/roster-signature/v1", self.digest)

    def merge(self, other: "RosterFile") -> "RosterFile":
        """A copy with the signatures of another copy of the same roster added."""
        if other.digest != self.digest:
            raise RosterError(
                f"these are different rosters: {digest_text(self.digest)} (serial {self.serial}) "
                f"and {digest_text(other.digest)} (serial {other.serial})"
            )
        return replace(self, signatures={**other.signatures, **self.signatures})

    def add(
        self, name: str, key: bytes, role: Role = "silo", organisation: str | None = None
    ) -> "RosterFile":
        """A copy with one more party, after all others of its role."""
        new = (role, new_member(name, key, organisation))
        return self._changed(self.roster.coordinator, (*self.parties, new))

    def change(
        self, name: str, role: Role | None = None, organisation: str | None = None
    ) -> "RosterFile":
        """A copy with another role or organisation for one party; its key stays valid."""
        old = self._member(name)
        if role is not None and old == self.roster.coordinator:
            raise RosterError("the coordinator has no other role")
        known = old.organisation if organisation is None else organisation
        changed = self._replaced(old, new_member(name, old.public, known), role)
        if changed.roster == self.roster:
            raise RosterError(f"{name} has this role and this organisation already")
        return changed

    def rotate(self, name: str, key: bytes, today: date, reason: str = "rotated") -> "RosterFile":
        """A copy with a new key for one party; the old key is revoked."""
        old = self._member(name)
        gone = Revocation(name, old.public, today, reason)
        return self._replaced(old, new_member(name, key, old.organisation), gone=gone)

    def revoke(self, name: str, today: date, reason: str) -> "RosterFile":
        """A copy without one party, whose key is revoked.

        The coordinator cannot be removed, because runs need one; rotate its key instead.
        """
        old = self._member(name)
        if old == self.roster.coordinator:
            raise RosterError("the coordinator cannot be left out; rotate its key")
        left = [(role, member) for role, member in self.parties if member != old]
        gone = Revocation(name, old.public, today, reason)
        return self._changed(self.roster.coordinator, left, gone)

    def _member(self, name: str) -> Member:
        for member in self.members:
            if member.name == name:
                return member
        raise RosterError(f"{name[:80]!r} is not in the roster")

    def _replaced(
        self, old: Member, new: Member, role: Role | None = None, gone: Revocation | None = None
    ) -> "RosterFile":
        """A copy in which ``new`` takes the place of ``old``, and its role unless one is given."""
        coordinator = self.roster.coordinator
        parties = [
            (role or known, new) if member == old else (known, member)
            for known, member in self.parties
        ]
        return self._changed(new if old == coordinator else coordinator, parties, gone)

    def _changed(
        self,
        coordinator: Member,
        parties: Iterable[tuple[Role, Member]],
        gone: Revocation | None = None,
    ) -> "RosterFile":
        """A changed copy. A draft keeps its serial; a signed roster gets the next one."""
        draft = not self.signatures
        return RosterFile(
            roster_of(coordinator, parties),
            self.serial if draft else self.serial + 1,
            self.previous if draft else self.digest,
            self.revoked if gone is None else (*self.revoked, gone),
        )


def new_member(name: str, key: bytes, organisation: str | None = None) -> Member:
    """A member of a roster. Without an organisation, the party's name is used for it."""
    check_name(name)
    try:
        return Member(name, key, name if organisation is None else check_organisation(organisation))
    except (ArgumentError, RosterError, SignatureError) as error:
        raise RosterError(f"{name}: {error}") from None


def roster_of(coordinator: Member, parties: Iterable[tuple[Role, Member]]) -> Roster:
    """A roster with the silos in their order, then the helpers in theirs."""
    found: dict[Role, list[Member]] = {"silo": [], "helper": []}
    for role, member in parties:
        found[role].append(member)
    try:
        return Roster(coordinator, tuple(found["silo"]), tuple(found["helper"]))
    except ArgumentError as error:
        raise RosterError(str(error)) from None


def new_roster(coordinator: str, key: bytes, organisation: str | None = None) -> RosterFile:
    """A draft of a roster, with a coordinator and no other members yet."""
    return RosterFile(roster_of(new_member(coordinator, key, organisation), ()))


# --- Files ----------------------------------------------------------------------------------------

_KIND = "silograph roster"
_LARGEST = 1 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HEADER = """\
# Who takes part. Compare the digest (silograph roster digest) over a channel that the coordinator
# does not carry, then sign it. Comments are not kept when a command writes the file.
"""


def roster_text(roster: RosterFile) -> str:
    """The content of the file. Equal rosters have equal texts."""
    text = whole_files.quoted
    lines = [
        f"{_HEADER}kind = {text(_KIND)}",
        f"version = {whole_files.ROSTER.current}",
        f"serial = {roster.serial}",
    ]
    if roster.previous is not None:
        lines.append(f"previous = {text(digest_text(roster.previous))}")
    lines += ["", "[coordinator]", *_member_lines(roster.roster.coordinator)]
    for role, member in roster.parties:
        lines += ["", "[[members]]", f"role = {text(role)}", *_member_lines(member)]
    for entry in roster.revoked:
        lines += ["", "[[revoked]]", f"name = {text(entry.name)}"]
        lines += [f"key = {text(key_text(entry.key))}", f"date = {entry.date.isoformat()}"]
        lines += [f"reason = {text(entry.reason)}"]
    lines += ["", "[signatures]"]
    lines += [f"{name} = {text(roster.signatures[name].hex())}" for name in roster.signed_by]
    return "\n".join(lines) + "\n"


def _member_lines(member: Member) -> list[str]:
    values = {
        "name": member.name,
        "organisation": member.organisation,
        "key": key_text(member.public),
    }
    return [f"{name} = {whole_files.quoted(value)}" for name, value in values.items()]


def read_roster(path: str | os.PathLike[str]) -> RosterFile:
    """Read a roster and check everything in it, including the signatures.

    A roster that is not signed by all members can be read, too: ``missing`` lists who has not
    signed, and :meth:`RosterFile.check_complete` refuses it.
    """
    place = Path(path)
    return parse_roster(place, whole_files.read(place, _LARGEST, RosterError))


def parse_roster(place: Path, content: bytes) -> RosterFile:
    """The roster in the content of a file; ``place`` is named in errors."""
    table = whole_files.parse_toml(place, content, RosterError)
    if table.get("kind") != _KIND:
        raise RosterError(f"{place}: not a roster")
    whole_files.ROSTER.check(table.get("version"), place, RosterError)
    try:
        return _parse(table)
    except RosterError as error:
        raise RosterError(f"{place}: {error}") from None


def write_roster(path: str | os.PathLike[str], roster: RosterFile, *, new: bool = False) -> None:
    """Write a roster, readable by everyone: it holds no secrets.

    With ``new``, an existing file is not replaced but refused.
    """
    write = whole_files.create if new else whole_files.replace
    write(Path(path), roster_text(roster).encode(), RosterError, mode=0o644)


def _parse(table: dict[str, Any]) -> RosterFile:
    fields = _fields(
        table,
        "the roster",
        {"kind": str, "version": int, "serial": int, "coordinator": dict},
        {"previous": str, "members": list, "revoked": list, "signatures": dict},
    )
    members = fields.get("members", [])
    gone = fields.get("revoked", [])
    if len(members) > MOST or len(gone) > MOST:
        raise RosterError(f"a roster has at most {MOST} parties and {MOST} revoked keys")
    return RosterFile(
        roster_of(
            _member(fields["coordinator"], "[coordinator]"),
            [_party(entry, f"member {i}") for i, entry in enumerate(members, 1)],
        ),
        fields["serial"],
        _digest(fields["previous"]) if "previous" in fields else None,
        tuple(_revocation(entry, f"revoked key {i}") for i, entry in enumerate(gone, 1)),
        {name: _signature(name, value) for name, value in fields.get("signatures", {}).items()},
    )


def _fields(
    table: object,
    what: str,
    required: Mapping[str, type],
    optional: Mapping[str, type] = MappingProxyType({}),
) -> dict[str, Any]:
    """Check that a table has the required and optional fields, each of its type, and no others."""
    if not isinstance(table, dict):
        raise RosterError(f"{what} is not a table")
    for name, value in table.items():
        kind = required.get(name) or optional.get(name)
        if kind is None:
            raise RosterError(f"{what} has a field {name[:80]!r}, which is unknown")
        if type(value) is not kind:
            raise RosterError(f"{what}: {name} is not of its kind ({kind.__name__})")
    for name in required:
        if name not in table:
            raise RosterError(f"{what} has no {name}")
    return table


_MEMBER = MappingProxyType({"name": str, "key": str, "organisation": str})


def _party(entry: object, what: str) -> tuple[Role, Member]:
    fields = dict(_fields(entry, what, {"role": str, **_MEMBER}))
    try:
        role = check_role(fields.pop("role"))
    except RosterError as error:
        raise RosterError(f"{what}: {error}") from None
    return role, _member(fields, what)


def _member(entry: object, what: str) -> Member:
    fields = _fields(entry, what, _MEMBER)
    return new_member(fields["name"], _key(fields["key"], what), fields["organisation"])


def _key(text: str, what: str) -> bytes:
    try:
        return read_key(text)
    except ArgumentError as error:
        raise RosterError(f"{what}: {error}") from None


def _revocation(entry: object, what: str) -> Revocation:
    fields = _fields(entry, what, {"name": str, "key": str, "date": date, "reason": str})
    key = _key(fields["key"], what)
    return Revocation(fields["name"], key, fields["date"], fields["reason"])


def _digest(text: str) -> bytes:
    if not _DIGEST.fullmatch(text):
        raise RosterError(f"previous is not a digest: {text[:80]!r}")
    return bytes.fromhex(text.removeprefix("sha256:"))


def _signature(name: str, value: object) -> bytes:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9a-f]{128}", value):
        raise RosterError(f"the signature of {name[:80]!r} is not 128 hexadecimal digits")
    return bytes.fromhex(value)
