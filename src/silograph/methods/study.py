"""The study: what a coordinator asks silos to compute together, in one signed statement.

What
    One question, the method and the protocol that answer it, what it may cost, who takes part, over
    which node list, and until when. No code travels: a silo reads a study, checks it against its
    own policy, and runs its own Silograph.
Guarantee
    A study has exactly one form as bytes, and its digest is part of every message of its run:
    nothing in it can be changed after a silo has accepted it. Reading refuses whatever is not in
    that form.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any

from silograph.crypto.identity import Identity
from silograph.errors import ArgumentError, BindingError, ProtocolError, StudyError
from silograph.privacy.loss import check_delta, check_epsilon
from silograph.protocol.envelope import EVERYONE, Binding, Envelope, open_envelope, peek, seal
from silograph.protocol.roster import COORDINATOR, Roster
from silograph.protocol.wire import pack

__all__ = ["PROPOSE", "VERSION", "Option", "Study", "open_proposal", "read_proposal"]

#: The round in which a study is proposed.
PROPOSE = "propose"
VERSION = 1
#: The longest study, as bytes.
_LARGEST = 1 << 15
_LONGEST_NAME = 200
#: The end of the year 9999, after which there are no dates.
_LATEST = 253_402_300_799
#: Every number of a study has a bound, so that what is computed from it has one too.
_MOST_LEAVES = 100
_MOST_OPTIONS = 32
_LARGEST_OPTION = 1e15

Option = str | int | float | bool


@dataclass(frozen=True)
class Study:
    """One question to several silos; see the module.

    ``protocol`` is empty for methods that have only one. ``silos`` are the names of those who take
    part, in the order of the roster. ``deadline`` is in seconds since 1970, UTC: nothing of the
    run goes on after it.
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
    version: int = VERSION

    def __post_init__(self) -> None:
        object.__setattr__(self, "silos", tuple(self.silos))
        object.__setattr__(self, "options", MappingProxyType(dict(sorted(self.options.items()))))
        for name in ("query", "method", "protocol", "coordinator"):
            _text(name, getattr(self, name), empty=name == "protocol")
        for name, count in (("run", 16), ("universe", 32), ("roster", 32)):
            _hex(name, getattr(self, name), count)
        for name, check in (("epsilon", check_epsilon), ("delta", check_delta)):
            value = getattr(self, name)
            if not isinstance(value, float):
                raise StudyError(f"{name} must be a float, not {value!r}")
            try:
                check(value)
            except ArgumentError as error:
                raise StudyError(str(error)) from None
        _whole("collusion", self.collusion, 0, 63)
        _whole("nodes", self.nodes, 2, 1 << 31)
        _whole("deadline", self.deadline, 0, _LATEST)
        if self.k is not None:
            _whole("k", self.k, 1, _MOST_LEAVES)
        if self.version != VERSION:
            raise StudyError(
                f"study format {self.version!r}; this version of Silograph reads format {VERSION}"
            )
        self._check_silos()
        self._check_options()

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
                _text(f"option {name}", value, empty=True)
            elif not isinstance(value, int | float):  # a bool is an int
                raise StudyError(f"option {name} must be a text, a number or a truth value")
            elif not abs(value) <= _LARGEST_OPTION:  # NaN is not
                raise StudyError(f"option {name} must be from −10¹⁵ to 10¹⁵")

    def encode(self) -> bytes:
        """The one form of this study as bytes: JSON, its keys in order, nothing left out."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        values |= {"options": dict(self.options), "silos": list(self.silos)}
        return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, raw: bytes) -> "Study":
        """Read a study; whatever is not exactly one raises :class:`StudyError`."""
        if len(raw) > _LARGEST:
            raise StudyError(f"a study has at most {_LARGEST} bytes")
        try:
            values = json.loads(raw)
            if values.get("version") != VERSION:
                raise StudyError(
                    f"study format {values.get('version')!r}; this version of Silograph reads "
                    f"format {VERSION}"
                )
            study = cls(**values)
            whole = study.encode() == raw
        except StudyError:
            raise
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise StudyError("this is not a study") from None
        if not whole:
            raise StudyError("the study is not in its one form")
        return study

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the study."""
        return hashlib.sha256(pack(b"silograph/study/v1", self.encode())).digest()

    @property
    def id(self) -> bytes:
        """The run id as bytes."""
        return bytes.fromhex(self.run)

    @property
    def subject(self) -> bytes:
        """What the machines' parameters are about: the node list, and this very study."""
        parts = (b"silograph/subject/v1", bytes.fromhex(self.universe), self.digest)
        return hashlib.sha256(pack(*parts)).digest()

    @property
    def pairs(self) -> int:
        """The number of pairs of nodes."""
        return self.nodes * (self.nodes - 1) // 2

    def members(self, roster: Roster) -> Roster:
        """The part of a roster that takes part; a study with a stranger in it is refused."""
        if roster.digest.hex() != self.roster:
            raise StudyError("the study is for another roster")
        if roster.coordinator.name != self.coordinator:
            raise StudyError(f"the roster's coordinator is not {self.coordinator!r}")
        wanted = set(self.silos)
        found = tuple(member for member in roster.silos if member.name in wanted)
        if tuple(member.name for member in found) != self.silos:
            raise StudyError("the study names silos that are not in the roster, in its order")
        return Roster(roster.coordinator, found)

    def binding(self, roster: Roster) -> Binding:
        """What messages about the study itself are bound to."""
        return Binding(self.id, self.digest, self.members(roster))

    def propose(self, roster: Roster, identity: Identity) -> bytes:
        """The study as the coordinator's signed message to everyone."""
        message = Envelope(PROPOSE, COORDINATOR, EVERYONE, 0, self.encode())
        return seal(self.binding(roster), identity, message)


def open_proposal(raw: bytes, roster: Roster) -> Study:
    """A study from its coordinator's message, if it is signed by the coordinator of our roster.

    Raises :class:`StudyError` where it is no study of ours, and :class:`ProtocolError` where the
    message is not what it claims.
    """
    message = peek(raw)
    if message.round != PROPOSE or message.sender != COORDINATOR:
        raise BindingError("this is no proposal", round=message.round)
    study = Study.decode(message.payload)
    try:
        binding = study.binding(roster)
    except ArgumentError as error:
        raise StudyError(str(error)) from None
    opened = open_envelope(binding, raw, receiver=EVERYONE)
    if opened.sequence != 0:
        raise ProtocolError("a proposal has no sequence", round=PROPOSE)
    return study


def read_proposal(raw: bytes) -> Study | None:
    """A study from a message that was stored before, whatever roster is in force now.

    None where this version cannot read it: another version may have stored it, and a row of the
    past must not stand in the way of a service or a command.
    """
    try:
        return Study.decode(peek(raw).payload)
    except (StudyError, ProtocolError):
        return None


def _text(name: str, value: Any, *, empty: bool = False) -> None:
    if not isinstance(value, str) or len(value) > _LONGEST_NAME or not value.isprintable():
        raise StudyError(f"{name} must be a printable text of at most {_LONGEST_NAME} characters")
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
