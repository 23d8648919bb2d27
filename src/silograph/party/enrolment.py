"""The four files by which a party is enrolled, each signed by the one who sends it.

::

    coordinator                                   silo or helper
    invite      ── payments.invitation ──►        join
    admit       ◄── north.answer ──
                ── north.welcome ──►              join --welcome
    admit       ◄── north.signature ──
                ── payments.welcome ──►           join --welcome

What: an *invitation* says who invites, where the broker is and which authority signs certificates.
An *answer* has the party's public key and a request for a certificate. A *welcome* has the
certificate and the roster. A *signature* is the party's signature on the roster, made after people
have compared its words. The second welcome has the roster with all signatures.

Guarantee: no file holds a secret. Each is TOML with a signature over all its fields, so a file that
was changed is refused. But whoever carries the files could replace all of them. That they did not
is what people find out when they compare the twelve words of the roster
(:func:`~silograph.party.roster.roster_words`), which cover every key.

Where a roster lies: ``roster.toml`` is in force, signed by all. One that is still being signed is
``roster.next.toml``, so that a service can be started again in the meantime.
"""

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from silograph import whole_files
from silograph.errors import (
    ArgumentError,
    EnrolmentError,
    RosterError,
    SignatureError,
    SilographError,
)
from silograph.messages.identity import Identity, Member, Role, pack, verify
from silograph.party.connection import BrokerConfig, TlsFiles
from silograph.party.keys import key_text, read_key
from silograph.party.roster import (
    RosterFile,
    check_name,
    check_role,
    digest_text,
    new_member,
    parse_roster,
    read_roster,
    roster_text,
    write_roster,
)

__all__ = [
    "NEXT",
    "ROSTER",
    "Answer",
    "Invitation",
    "RosterSignature",
    "Suggested",
    "Welcome",
    "keep_roster",
    "kind_of",
    "pending_roster",
]


# --- A signed file: TOML fields, the sender's key, and a signature over both ----------------------

_LARGEST = 1 << 22
_FORMATS = (
    whole_files.INVITATION,
    whole_files.ANSWER,
    whole_files.WELCOME,
    whole_files.SIGNATURE,
)
_HEX = re.compile(r"[0-9a-f]{128}")


def kind_of(path: Path) -> str:
    """Which of the four files it is: ``invitation``, ``answer``, ``welcome`` or ``signature``."""
    return _kind(path, _table(path, whole_files.read(path, _LARGEST, EnrolmentError)))


def _table(path: Path, content: bytes) -> dict[str, Any]:
    return whole_files.parse_toml(path, content, EnrolmentError)


def _kind(path: Path, table: dict[str, Any]) -> str:
    for known in _FORMATS:
        if table.get("kind") == f"silograph {known.name}":
            return known.name
    names = ", ".join(known.name for known in _FORMATS)
    raise EnrolmentError(f"{path}: not a file of an enrolment ({names})")


def _signed(form: whole_files.Format, fields: Mapping[str, Any]) -> bytes:
    """What is signed. Every field counts; JSON with sorted keys has one text for equal values."""
    text = json.dumps(dict(fields), sort_keys=True, ensure_ascii=False, allow_nan=False)
    return pack(
        b"silograph/enrolment", form.name.encode(), str(form.current).encode(), text.encode()
    )


def _write(
    form: whole_files.Format, comment: str, fields: dict[str, Any], identity: Identity
) -> bytes:
    fields = {**fields, "key": key_text(identity.public)}
    lines = [f"# {line}" for line in comment.splitlines()]
    lines += [f'kind = "silograph {form.name}"', f"version = {form.current}"]
    lines += [f"{name} = {_toml(value)}" for name, value in fields.items()]
    lines.append(f'signature = "{identity.sign(_signed(form, fields)).hex()}"')
    return ("\n".join(lines) + "\n").encode()


def _toml(value: str | float | list[str]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(whole_files.quoted, value))}]"
    return whole_files.quoted(value) if isinstance(value, str) else repr(value)


def _read(
    form: whole_files.Format, path: Path, content: bytes, kinds: Mapping[str, type]
) -> dict[str, Any]:
    """The fields of a file whose signature is that of the key in it."""
    table = _table(path, content)
    if (found := _kind(path, table)) != form.name:
        raise EnrolmentError(f"{path}: this is the file of kind {found}, not of kind {form.name}")
    form.check(table.get("version"), path, EnrolmentError)
    wanted = {**kinds, "key": str, "signature": str, "kind": str, "version": int}
    if table.keys() != wanted.keys() or any(
        type(table[name]) is not wanted[name] for name in wanted
    ):
        raise EnrolmentError(f"{path}: the {form.name} has other fields than it should")
    fields = {name: table[name] for name in (*kinds, "key")}
    if not all(map(_plain_value, fields.values())):
        raise EnrolmentError(f"{path}: the {form.name} has a field that people cannot read")
    signature = table["signature"]
    try:
        if not _HEX.fullmatch(signature):
            raise SignatureError("not 128 hexadecimal digits")
        verify(read_key(fields["key"]), _signed(form, fields), bytes.fromhex(signature), who="it")
    except (SilographError, ValueError):
        raise EnrolmentError(
            f"{path}: the signature is not valid: the {form.name} was damaged or changed after it "
            "was signed"
        ) from None
    return fields


def _plain_value(value: object) -> bool:
    """Whether a value can be shown: no text in it can move a cursor or hide another."""
    texts = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return all(isinstance(text, str) and text.isprintable() for text in texts)


def _named(path: Path, *names: str) -> None:
    """Refuse names that could be none of a consortium or a party: they become parts of paths."""
    try:
        for name in names:
            check_name(name)
    except RosterError as error:
        raise EnrolmentError(f"{path}: {error}") from None


def _armoured(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _plain(path: Path, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise EnrolmentError(f"{path}: a field is damaged") from None


# --- The invitation -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Suggested:
    """The terms that a coordinator suggests. Each silo decides on its own."""

    #: The most that one study may cost, and the most that may ever be spent.
    epsilon: float = 1.0
    budget: float = 10.0
    methods: tuple[str, ...] = ("feat masked",)
    least_silos: int = 3

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < math.inf and 0 < self.budget < math.inf):
            raise ArgumentError("epsilon and budget must be positive and finite")
        if self.least_silos < 2 or not self.methods:
            raise ArgumentError("at least two silos and one method")


@dataclass(frozen=True)
class Invitation:
    """An invitation to a consortium; good for any number of parties of its role."""

    consortium: str
    coordinator: Member
    #: The broker's addresses, as ``host:port``.
    brokers: tuple[str, ...]
    #: The certificate of the authority, in PEM.
    authority: bytes
    #: The digest of the node universe.
    universe: str
    role: Role
    #: The last day on which it may be answered.
    expires: date
    terms: Suggested = field(default_factory=Suggested)

    _KINDS = MappingProxyType({
        "consortium": str, "coordinator": str, "organisation": str, "brokers": list,
        "authority": str, "universe": str, "role": str, "expires": str, "epsilon": float,
        "budget": float, "methods": list, "least_silos": int,
    })  # fmt: skip

    def __post_init__(self) -> None:
        check_name(self.consortium)
        check_role(self.role)
        nowhere = Path("none")
        BrokerConfig(self.urls, TlsFiles(nowhere, nowhere, nowhere))

    @property
    def urls(self) -> tuple[str, ...]:
        """The broker's addresses, as a configuration has them."""
        return tuple(f"tls://{address}" for address in self.brokers)

    def encode(self, identity: Identity) -> bytes:
        """The file."""
        terms = self.terms
        comment = (
            f"An invitation to {self.consortium}. It holds no secret. Before {self.expires}, run\n"
            f"  silograph join THIS-FILE --name NAME{' --data EDGES' * (self.role == 'silo')}"
        )
        return _write(whole_files.INVITATION, comment, {
            "consortium": self.consortium, "coordinator": self.coordinator.name,
            "organisation": self.coordinator.organisation, "brokers": list(self.brokers),
            "authority": _armoured(self.authority), "universe": self.universe,
            "role": self.role, "expires": self.expires.isoformat(),
            "epsilon": float(terms.epsilon), "budget": float(terms.budget),
            "methods": list(terms.methods), "least_silos": terms.least_silos,
        }, identity)  # fmt: skip

    @classmethod
    def decode(cls, path: Path, content: bytes) -> Self:
        """Read the content of a file."""
        found = _read(whole_files.INVITATION, path, content, cls._KINDS)
        try:
            return cls(
                found["consortium"],
                new_member(found["coordinator"], read_key(found["key"]), found["organisation"]),
                tuple(found["brokers"]),
                _plain(path, found["authority"]),
                found["universe"],
                check_role(found["role"]),
                date.fromisoformat(found["expires"]),
                Suggested(
                    found["epsilon"], found["budget"], tuple(found["methods"]),
                    found["least_silos"],
                ),
            )  # fmt: skip
        except EnrolmentError:
            raise
        except (SilographError, ValueError) as error:
            raise EnrolmentError(f"{path}: {error}") from None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file."""
        return cls.decode(path, whole_files.read(path, _LARGEST, EnrolmentError))

    def check_date(self, path: Path, today: date) -> None:
        """Refuse an invitation that has expired."""
        if today > self.expires:
            raise EnrolmentError(
                f"{path}: the invitation to {self.consortium} expired on {self.expires}; ask the "
                "coordinator for a new one"
            )


# --- The answer -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """A party's answer: who it is, its key, and a request for a certificate."""

    member: Member
    #: The request for a certificate, in PEM.
    request: bytes
    #: The invitation that is answered, as it was received.
    invitation: bytes

    _KINDS = MappingProxyType(
        {"name": str, "organisation": str, "request": str, "invitation": str}
    )  # fmt: skip

    def encode(self, identity: Identity) -> bytes:
        """The file."""
        comment = (
            f"The answer of {self.member.name} to an invitation: its public key and a request for\n"
            "a certificate. It holds no secret. The coordinator runs\n"
            "  silograph admit THIS-FILE"
        )
        return _write(whole_files.ANSWER, comment, {
            "name": self.member.name, "organisation": self.member.organisation,
            "request": _armoured(self.request), "invitation": _armoured(self.invitation),
        }, identity)  # fmt: skip

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file."""
        content = whole_files.read(path, _LARGEST, EnrolmentError)
        found = _read(whole_files.ANSWER, path, content, cls._KINDS)
        try:
            member = new_member(found["name"], read_key(found["key"]), found["organisation"])
        except SilographError as error:
            raise EnrolmentError(f"{path}: {error}") from None
        request, invitation = (_plain(path, found[name]) for name in ("request", "invitation"))
        return cls(member, request, invitation)

    def check_invitation(self, path: Path, identity: Identity, consortium: str) -> Invitation:
        """The invitation that was answered; refused unless we signed it for this consortium."""
        found = Invitation.decode(path, self.invitation)
        if found.coordinator.public != identity.public or found.consortium != consortium:
            raise EnrolmentError(
                f"{path}: the answer is to the invitation of another consortium or coordinator "
                f"({found.consortium}, {found.coordinator.name})"
            )
        return found


# --- The welcome ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Welcome:
    """The roster, and for a party that is new its certificate."""

    consortium: str
    #: The coordinator's key.
    key: bytes
    roster: RosterFile
    #: Whom it is for, and that party's certificate in PEM; both empty if it is for all.
    name: str = ""
    certificate: bytes = b""

    _KINDS = MappingProxyType(
        {"consortium": str, "name": str, "certificate": str, "roster": str}
    )  # fmt: skip

    def encode(self, identity: Identity) -> bytes:
        """The file."""
        comment = (
            f"A welcome to {self.consortium}, for {self.name or 'all parties'}: the roster"
            f"{' and a certificate' * bool(self.name)}. It holds no secret. Run\n"
            "  silograph join --welcome THIS-FILE"
        )
        return _write(whole_files.WELCOME, comment, {
            "consortium": self.consortium, "name": self.name,
            "certificate": _armoured(self.certificate),
            "roster": _armoured(roster_text(self.roster).encode()),
        }, identity)  # fmt: skip

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file."""
        content = whole_files.read(path, _LARGEST, EnrolmentError)
        found = _read(whole_files.WELCOME, path, content, cls._KINDS)
        _named(path, found["consortium"], *filter(None, [found["name"]]))
        try:
            roster = parse_roster(path, _plain(path, found["roster"]))
        except RosterError as error:
            raise EnrolmentError(str(error)) from None
        return cls(
            found["consortium"], read_key(found["key"]), roster, found["name"],
            _plain(path, found["certificate"]),
        )  # fmt: skip


# --- The signature --------------------------------------------------------------------------------


@dataclass(frozen=True)
class RosterSignature:
    """A party's signature on a roster."""

    consortium: str
    name: str
    #: The digest of the roster that was signed.
    digest: bytes
    signature: bytes

    _KINDS = MappingProxyType(
        {"consortium": str, "name": str, "digest": str, "roster_signature": str}
    )  # fmt: skip

    def encode(self, identity: Identity) -> bytes:
        """The file."""
        comment = (
            f"The signature of {self.name} on the roster of {self.consortium}. The coordinator\n"
            "runs\n"
            "  silograph admit THIS-FILE"
        )
        return _write(whole_files.SIGNATURE, comment, {
            "consortium": self.consortium, "name": self.name, "digest": digest_text(self.digest),
            "roster_signature": self.signature.hex(),
        }, identity)  # fmt: skip

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file."""
        content = whole_files.read(path, _LARGEST, EnrolmentError)
        found = _read(whole_files.SIGNATURE, path, content, cls._KINDS)
        _named(path, found["consortium"], found["name"])
        try:
            digest = bytes.fromhex(found["digest"].removeprefix("sha256:"))
            signature = bytes.fromhex(found["roster_signature"])
        except ValueError:
            raise EnrolmentError(f"{path}: a field is damaged") from None
        return cls(found["consortium"], found["name"], digest, signature)


# --- The roster in a party's folder ---------------------------------------------------------------

ROSTER, NEXT = "roster.toml", "roster.next.toml"


def pending_roster(folder: Path) -> RosterFile | None:
    """The roster that is being signed, or else the one in force, or None."""
    for name in (NEXT, ROSTER):
        if (folder / name).exists():
            return read_roster(folder / name)
    return None


def keep_roster(folder: Path, roster: RosterFile) -> Path:
    """Write a roster to its place: in force if all have signed it, otherwise beside that one.

    A roster that is replaced is kept, named by its serial.
    """
    if roster.missing:
        write_roster(folder / NEXT, roster)
        return folder / NEXT
    path = folder / ROSTER
    if path.exists():
        before = read_roster(path)
        kept = path.with_name(f"{path.stem}.{before.serial}{path.suffix}")
        if before.serial != roster.serial and not kept.exists():
            write_roster(kept, before, new=True)
    write_roster(path, roster)
    (folder / NEXT).unlink(missing_ok=True)
    return path
