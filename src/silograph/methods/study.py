"""The study: the signed statement by which a coordinator asks silos to compute something together.

What
    A study holds one query, the method and protocol that answer it, its privacy budget, the
    participants, the node list and a deadline. No code travels: a silo reads the study, checks it
    against its own policy, and runs its own copy of Silograph.
Guarantee
    A study has exactly one encoding as bytes, and its digest is part of every message of its run.
    Nothing in it can be changed after a silo has accepted it. The decoder refuses anything that is
    not in this encoding.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any

from silograph.dp.loss import check_delta, check_epsilon
from silograph.errors import (
    ArgumentError,
    BindingError,
    ProtocolError,
    StudyError,
    UniverseError,
)
from silograph.graph.fold import Fold, Layout
from silograph.graph.universe import NodeUniverse
from silograph.messages.envelope import EVERYONE, Binding, Envelope, open_envelope, peek, seal
from silograph.messages.identity import COORDINATOR, Identity, Member, Roster, pack

__all__ = [
    "COMMITTEE",
    "LABELS",
    "LOCAL_PROTOCOLS",
    "PROPOSE",
    "PROTOCOLS",
    "RELEASE",
    "VERSION",
    "Index",
    "Option",
    "Study",
    "StudyMember",
    "folded_index",
    "nameable",
    "open_proposal",
    "option_value",
    "places_of",
    "read_proposal",
]

#: The round in which a study is proposed.
PROPOSE = "propose"
#: Counts up with the form of studies and with the messages of any protocol, so that parties of
#: different versions say so at once and do not wait for each other. Older records can be read.
VERSION = 3
_READABLE = (2, VERSION)
#: The query of a study that asks for the release itself.
RELEASE = "release"
#: The protocols that make a union.
PROTOCOLS = (
    "masked",
    "committee",
    "elgamal",
    "elgamal/printed",
    "elgamal/replace",
    "elgamal/blinded",
    "clear",
)
#: The protocol whose union is shared among four members.
COMMITTEE = "committee"
#: Protocols for runs within one process. A proposal that asks for one of them is refused.
LOCAL_PROTOCOLS = ("clear", "elgamal/printed")
#: How the elements of unions are encoded.
PACKED = "packed"
#: The largest study, in bytes.
_LARGEST = 1 << 20
_LONGEST_NAME = 200
_LONGEST_TEXT = 4000
#: The option that gives every node of a public partition a letter, the longest of all.
LABELS = "groups"
_MOST_LABELS = 1 << 18
_MOST_HUBS = 20_000
_LARGEST_HUBS = _LARGEST // 2
#: The end of the year 9999, the last date that can be represented.
_LATEST = 253_402_300_799
#: Every number in a study is bounded, so everything computed from it is bounded too.
_MOST_LEAVES = 100
_MOST_OPTIONS = 32
#: What names of queries, methods and protocols look like.
_WORD = re.compile(r"[a-z0-9_+/]{0,64}")
_LARGEST_OPTION = 1e15

Option = str | int | float | bool


@dataclass(frozen=True)
class StudyMember:
    """One of the four members of a committee: its name in the roster, and its kind."""

    name: str
    #: ``silo``, ``helper`` or ``coordinator``.
    kind: str

    def __post_init__(self) -> None:
        _text("a member's name", self.name)
        if self.kind not in ("silo", "helper", "coordinator"):
            raise StudyError(f"a member is a silo, a helper or the coordinator, not {self.kind!r}")


@dataclass(frozen=True)
class Index:
    """What each bit of a union stands for: a pair of nodes, or a bucket of folded nodes.

    ``groups``, ``hubs`` (their identifiers), ``sub`` (the number of sub-buckets) and ``form`` (the
    normal form of identifiers) are used by kind ``fold`` only; see :mod:`silograph.graph.fold`.
    """

    kind: str = "pairs"
    groups: int = 0
    hubs: tuple[str, ...] = ()
    sub: int = 0
    form: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "hubs", tuple(self.hubs))
        if self.kind == "pairs":
            for name in ("groups", "sub"):
                _whole(name, getattr(self, name), 0, 0)
            if (self.hubs, self.form) != ((), ""):
                raise StudyError("an index of pairs has no groups, hubs, sub-buckets or form")
            return
        if self.kind != "fold":
            raise StudyError(f"an index must be pairs or fold, not {self.kind!r}")
        _whole("groups", self.groups, 3, 1 << 20)
        _whole("sub", self.sub, 1, 64)
        _text("form", self.form)
        if len(self.hubs) > _MOST_HUBS:
            raise StudyError(f"{len(self.hubs):,} hubs; at most {_MOST_HUBS:,} are possible")
        for hub in self.hubs:
            _text("a hub", hub)
        if len(set(self.hubs)) != len(self.hubs):
            raise StudyError("two hubs are the same")
        if len(json.dumps(self.hubs)) > _LARGEST_HUBS:
            raise StudyError(f"the hubs' identifiers have more than {_LARGEST_HUBS:,} bytes")
        try:
            _ = self.layout  # refuses too many buckets
        except ArgumentError as error:
            raise StudyError(str(error)) from None

    @property
    def folded(self) -> bool:
        """Whether nodes are folded."""
        return self.kind == "fold"

    def check_ids(self, universe: NodeUniverse) -> None:
        """Refuse a folded index that is not about the identifiers of this universe."""
        if not self.folded:
            return
        if self.form != universe.form:
            raise StudyError(f"the study's identifiers are {self.form!r}, not {universe.form!r}")
        for hub in self.hubs:
            if hub not in universe or universe.normal(hub) != hub:
                raise StudyError("a hub of the study is not an identifier of this universe")

    @property
    def layout(self) -> Layout:
        """The shape of a folded index."""
        return Layout(self.groups, len(self.hubs), self.sub)


def option_value(text: str) -> Option:
    """An option that a person typed: a boolean, a number, or otherwise text.

    >>> option_value("true"), option_value("0.5"), option_value("paper")
    (True, 0.5, 'paper')
    """
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def nameable(id_: str) -> bool:
    """Whether a study can name this identifier as a hub.

    >>> nameable("exchange"), nameable("a\\tb")
    (True, False)
    """
    return 0 < len(id_) <= _LONGEST_NAME and id_.isprintable()


def folded_index(fold: Fold, universe: NodeUniverse) -> Index:
    """The index of a study that folds its nodes; hubs are put into the universe's normal form."""
    if isinstance(fold.hubs, int):
        raise StudyError("the hubs of a study are a list; find them first")
    try:
        hubs = tuple(dict.fromkeys(universe.normal(hub) for hub in fold.hubs))
    except UniverseError as error:
        raise StudyError(f"a hub: {error}") from None
    return Index("fold", fold.groups, hubs, fold.sub, universe.form)


@dataclass(frozen=True)
class Study:
    """One query to several silos; see the module's description.

    ``protocol`` is empty for methods that have only one. ``silos`` are the names of the
    participating silos, in the order of the roster. ``deadline`` is in seconds since 1970 (UTC);
    the run stops at that time. It is 0 for a run within one process. ``purpose`` is a text for
    people. ``members`` are the four members of a committee, or empty.
    """

    run: str
    query: str
    method: str
    protocol: str
    epsilon: float
    delta: float
    collusion: int
    universe: str
    nodes: int
    roster: str
    coordinator: str
    silos: tuple[str, ...]
    deadline: int
    k: int | None = None
    options: Mapping[str, Option] = field(default_factory=dict)
    purpose: str = ""
    members: tuple[StudyMember, ...] = ()
    index: Index = field(default_factory=Index)
    encoding: str = PACKED
    version: int = VERSION

    def __post_init__(self) -> None:
        object.__setattr__(self, "silos", tuple(self.silos))
        object.__setattr__(self, "members", tuple(self.members))
        object.__setattr__(self, "options", MappingProxyType(dict(sorted(self.options.items()))))
        _text("coordinator", self.coordinator)
        for name in ("query", "method", "protocol"):
            value = getattr(self, name)
            _text(name, value, empty=name == "protocol")
            if not _WORD.fullmatch(value):
                raise StudyError(f"{name} must be a word in lower-case letters, not {value!r}")
        for name, count in (("run", 16), ("universe", 32), ("roster", 32)):
            _hex(name, getattr(self, name), count)
        for name, check in (("epsilon", check_epsilon), ("delta", check_delta)):
            value = getattr(self, name)
            if not isinstance(value, float) or math.copysign(1, value) < 0:
                raise StudyError(f"{name} must be a float of at least 0, not {value!r}")
            try:
                check(value)
            except ArgumentError as error:
                raise StudyError(str(error)) from None
        _whole("collusion", self.collusion, 0, 63)
        _whole("deadline", self.deadline, 0, _LATEST)
        if self.k is not None:
            _whole("k", self.k, 1, _MOST_LEAVES)
        _check_readable(self.version)
        if not isinstance(self.purpose, str) or len(self.purpose) > _LONGEST_TEXT:
            raise StudyError(f"purpose must be a text of at most {_LONGEST_TEXT} characters")
        if not self.purpose.replace("\n", "").isprintable() and self.purpose:
            raise StudyError("purpose must be printable")
        if self.encoding != PACKED:
            raise StudyError(f"encoding must be {PACKED!r}, not {self.encoding!r}")
        self._check_nodes()
        self._check_silos()
        self._check_members()
        self._check_options()

    def _check_nodes(self) -> None:
        if not isinstance(self.index, Index):
            raise StudyError("index must be an Index")
        if self.nodes == 0 and not self.index.folded:
            raise StudyError("an open universe has no list of nodes: it is for folded studies only")
        _whole("nodes", self.nodes, 0 if self.index.folded else 2, 1 << 31)

    def _check_members(self) -> None:
        if not all(isinstance(member, StudyMember) for member in self.members):
            raise StudyError("members must be members of a committee")
        names = {member.name for member in self.members}
        if self.members and (len(self.members) != 4 or len(names) != 4):
            raise StudyError("a committee has four different members")

    def _check_silos(self) -> None:
        for silo in self.silos:
            _text("silos", silo)
        if not 2 <= len(self.silos) <= 64 or len(set(self.silos)) != len(self.silos):
            raise StudyError("a study is for 2 to 64 silos with different names")

    def _check_options(self) -> None:
        if len(self.options) > _MOST_OPTIONS:
            raise StudyError(f"a study has at most {_MOST_OPTIONS} options")
        for name, value in self.options.items():
            _text("an option's name", name)
            if isinstance(value, str):
                longest = _MOST_LABELS if name == LABELS else _LONGEST_TEXT
                _text(f"option {name}", value, empty=True, longest=longest)
            elif not isinstance(value, int | float):  # bool is a subclass of int
                raise StudyError(f"option {name} must be a text, a number or a truth value")
            elif not abs(value) <= _LARGEST_OPTION:  # also refuses NaN
                raise StudyError(f"option {name} must be from −10¹⁵ to 10¹⁵")

    def encode(self) -> bytes:
        """The only encoding of this study: JSON with sorted keys and every field present."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        values |= {
            "options": dict(self.options),
            "silos": list(self.silos),
            "members": [asdict(member) for member in self.members],
            "index": asdict(self.index),
        }
        return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, raw: bytes) -> "Study":
        """Read a study; raise :class:`StudyError` for anything that is not exactly one."""
        if len(raw) > _LARGEST:
            raise StudyError(f"a study has at most {_LARGEST} bytes")
        try:
            values = json.loads(raw)
            _check_readable(values.get("version"))
            members = [StudyMember(**member) for member in values.pop("members")]
            study = cls(**values | {"index": Index(**values["index"]), "members": members})
            whole = study.encode() == raw
        except StudyError:
            raise
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
            raise StudyError("this is not a study") from None
        if not whole:
            raise StudyError("the study is not in its canonical form")
        return study

    def check_proposed(self) -> None:
        """Raise :class:`StudyError` if this version must not propose it, or take part in it."""
        if self.version != VERSION:
            raise StudyError(
                f"study format {self.version}; this version of Silograph takes part in studies of "
                f"format {VERSION}"
            )
        if self.protocol in LOCAL_PROTOCOLS:
            raise StudyError(f"protocol {self.protocol!r} is only for runs within one process")
        if self.deadline == 0:
            raise StudyError("a proposed study must have a deadline")

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the study."""
        return hashlib.sha256(pack(b"silograph/study/v2", self.encode())).digest()

    @property
    def id(self) -> bytes:
        """The run id as bytes."""
        return bytes.fromhex(self.run)

    @property
    def how(self) -> str:
        """The method, its protocol, and whether nodes are folded, as people read it."""
        return f"{self.method} {self.protocol}".strip() + " folded" * self.index.folded

    @property
    def subject(self) -> bytes:
        """The digest that binds the machines' parameters to the node list and to this study."""
        parts = (b"silograph/subject/v2", bytes.fromhex(self.universe), self.digest)
        return hashlib.sha256(pack(*parts)).digest()

    @property
    def pairs(self) -> int:
        """The number of pairs of nodes."""
        return self.nodes * (self.nodes - 1) // 2

    @property
    def bits(self) -> int:
        """The number of bits of a union: one for each pair, or for each bucket."""
        return self.index.layout.buckets if self.index.folded else self.pairs

    def parties(self, roster: Roster) -> Roster:
        """The participants' part of a roster; refused if the study names anyone outside it."""
        if roster.digest.hex() != self.roster:
            raise StudyError("the study is for another roster")
        if roster.coordinator.name != self.coordinator:
            raise StudyError(f"the roster's coordinator is not {self.coordinator!r}")
        wanted = set(self.silos)
        found = tuple(member for member in roster.silos if member.name in wanted)
        if tuple(member.name for member in found) != self.silos:
            raise StudyError(
                "the study names silos that are not in the roster, or not in its order"
            )
        return Roster(roster.coordinator, found, self._helpers(roster))

    def _helpers(self, roster: Roster) -> tuple[Member, ...]:
        """The helpers of the committee; refused if a member is not what the study says it is."""
        helpers = {member.name: member for member in roster.helpers}
        known = {
            "silo": set(self.silos),
            "helper": set(helpers),
            "coordinator": {self.coordinator},
        }
        for member in self.members:
            if member.name not in known[member.kind]:
                raise StudyError(f"{member.name!r} is not a {member.kind} of this study")
        wanted = {member.name for member in self.members if member.kind == "helper"}
        return tuple(member for member in roster.helpers if member.name in wanted)

    def binding(self, roster: Roster) -> Binding:
        """The values that messages about the study itself are bound to."""
        return Binding(self.id, self.digest, self.parties(roster))

    def propose(self, roster: Roster, identity: Identity) -> bytes:
        """The study as a message to everyone, signed by the coordinator."""
        self.check_proposed()
        message = Envelope(PROPOSE, COORDINATOR, EVERYONE, 0, self.encode())
        return seal(self.binding(roster), identity, message)


def _check_readable(version: Any) -> None:
    if version not in _READABLE or type(version) is not int:
        raise StudyError(
            f"study format {version!r}; this version of Silograph reads format {VERSION}"
        )


def open_proposal(raw: bytes, roster: Roster) -> Study:
    """Read a study from a proposal that is signed by the coordinator of our roster.

    Raises :class:`StudyError` if the study does not belong to this roster, and
    :class:`ProtocolError` if the message is not a valid proposal.
    """
    message = peek(raw)
    if message.round != PROPOSE or message.sender != COORDINATOR:
        raise BindingError("this is not a proposal", round=message.round)
    study = Study.decode(message.payload)
    try:
        binding = study.binding(roster)
    except ArgumentError as error:
        raise StudyError(str(error)) from None
    study.check_proposed()
    opened = open_envelope(binding, raw, receiver=EVERYONE)
    if opened.sequence != 0:
        raise ProtocolError("a proposal has no sequence", round=PROPOSE)
    return study


def read_proposal(raw: bytes) -> Study | None:
    """Read a study from a stored proposal, whichever roster is in force now.

    Returns None if this version cannot read it. Another version may have stored it, and an old
    record must not stop a service or a command.
    """
    try:
        return Study.decode(peek(raw).payload)
    except (StudyError, ProtocolError):
        return None


def places_of(members: Sequence[StudyMember], roster: Roster) -> tuple[int, ...]:
    """The places of a committee's members, in their order, among the parties of a study."""
    places = {roster.member(place).name: place for place in (*roster.places, COORDINATOR)}
    if not all(member.name in places for member in members):
        raise StudyError("a member of the committee is not a party of the study")
    return tuple(places[member.name] for member in members)


def _text(name: str, value: Any, *, empty: bool = False, longest: int = _LONGEST_NAME) -> None:
    if not isinstance(value, str) or len(value) > longest or not value.isprintable():
        raise StudyError(f"{name} must be a printable text of at most {longest} characters")
    if not value and not empty:
        raise StudyError(f"{name} must not be empty")


def _hex(name: str, value: Any, count: int) -> None:
    if (
        not isinstance(value, str)
        or len(value) != 2 * count
        or set(value) - set("0123456789abcdef")
    ):
        raise StudyError(f"{name} must be {2 * count} hexadecimal digits")


def _whole(name: str, value: Any, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise StudyError(f"{name} must be a whole number from {least} to {most}, not {value!r}")
