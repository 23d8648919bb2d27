"""Rosters as files that people read, compare and sign.

What: a TOML file with the coordinator, the other members in order (silos with edges, helpers
without), the keys that are no longer good, and everyone's signatures::

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

Guarantee: a file is taken whole or refused with one :class:`RosterError`; what is taken has passed
every check of :mod:`~silograph.runtime.rosters`.

Why signatures are in the same file: a side file is what gets lost. :meth:`RosterFile.merge` brings
together what was signed on several copies.
"""

import os
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

from silograph.errors import ArgumentError, RosterError
from silograph.protocol.roster import Member, Role
from silograph.runtime import versions, whole_files
from silograph.runtime.keys import key_text, read_key
from silograph.runtime.rosters import (
    MOST,
    Revocation,
    RosterFile,
    check_name,
    check_role,
    digest_text,
    new_member,
    new_roster,
    roster_of,
)

__all__ = [
    "Revocation",
    "RosterFile",
    "check_name",
    "check_role",
    "digest_text",
    "new_roster",
    "read_roster",
    "roster_text",
    "write_roster",
]

_KIND = "silograph roster"
_LARGEST = 1 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HEADER = """\
# Who takes part. Compare the digest (silograph roster digest) over a channel that the coordinator
# does not carry, then sign it. Comments are not kept when a command writes the file.
"""


def roster_text(roster: RosterFile) -> str:
    """The file. Equal rosters have equal texts."""
    text = whole_files.quoted
    lines = [
        f"{_HEADER}kind = {text(_KIND)}",
        f"version = {versions.ROSTER.current}",
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
    """Read a roster; everything in it is checked, the signatures included.

    A roster that somebody has not signed is read too: ``missing`` says who, and
    :meth:`RosterFile.check_complete` refuses it.
    """
    place = Path(path)
    content = whole_files.read(place, _LARGEST, RosterError)
    table = whole_files.parse_toml(place, content, RosterError)
    if table.get("kind") != _KIND:
        raise RosterError(f"{place}: not a roster")
    versions.ROSTER.check(table.get("version"), place, RosterError)
    try:
        return _parse(table)
    except RosterError as error:
        raise RosterError(f"{place}: {error}") from None


def write_roster(path: str | os.PathLike[str], roster: RosterFile, *, new: bool = False) -> None:
    """Write a roster; ``new`` refuses to replace a file. Anyone may read it: it has no secrets."""
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
    """Exactly the fields that belong there, each of its kind."""
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
