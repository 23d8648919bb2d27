"""Control messages: what parties say about a run outside its protocol, and notices.

A control message (accept, wait, refuse, abort, end) is a signed message that is bound to the study,
not only to its parameters. It carries one code from a short list, in one byte. So the message that
a silo sends when it refuses or fails does not depend on its edges, and the reason stays in its own
log.

A notice is a party's word about itself. It is signed, too, but bound to no roster: so parties whose
rosters differ can still tell each other so.
"""

import json
import math
from dataclasses import dataclass
from enum import IntEnum

from silograph.errors import (
    BudgetError,
    BusyError,
    CryptoError,
    DeadlineError,
    EnvelopeError,
    PayloadError,
    PolicyError,
    ProtocolError,
    SlowLineError,
    StudyError,
)
from silograph.messages.envelope import EVERYONE, Binding, Envelope, open_envelope, peek, seal
from silograph.messages.identity import Identity, pack, unpack, verify

__all__ = [
    "ABORT",
    "ACCEPT",
    "END",
    "NOTICE",
    "REFUSE",
    "ROUNDS",
    "WAIT",
    "Code",
    "Control",
    "Notice",
    "code_of",
]

#: ``wait`` says that the party's operator has to decide first.
ACCEPT, WAIT, REFUSE, ABORT, END = "accept", "wait", "refuse", "abort", "end"
ROUNDS = frozenset({ACCEPT, WAIT, REFUSE, ABORT, END})
#: The name under which a notice is sent.
NOTICE = "notice"


class Code(IntEnum):
    """The reason of a control message, in one byte."""

    NONE = 0
    POLICY = 1
    BUDGET = 2
    OPERATOR = 3
    DEADLINE = 4
    STUDY = 5
    PROTOCOL = 6
    REFUSED = 7
    INTERNAL = 8
    #: The study is over by the party's clock, and not by the broker's.
    CLOCK = 9
    #: The party has another roster than the study.
    ROSTER = 10
    #: The party has as many open or stored studies as it allows.
    BUSY = 11
    #: The line to the broker is too slow for the deadline.
    SLOW = 12

    @property
    def word(self) -> str:
        """The code's name in logs and on the screen."""
        return self.name.lower()


def code_of(error: BaseException) -> Code:
    """The code that other parties get for an error. It tells only the kind of refusal."""
    kinds: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], Code], ...] = (
        (PolicyError, Code.POLICY),
        (BusyError, Code.BUSY),
        (SlowLineError, Code.SLOW),
        (DeadlineError, Code.DEADLINE),
        (StudyError, Code.STUDY),
        (BudgetError, Code.BUDGET),
        ((ProtocolError, CryptoError), Code.PROTOCOL),
    )
    return next((code for kind, code in kinds if isinstance(error, kind)), Code.INTERNAL)


@dataclass(frozen=True)
class Control:
    """A control message. ``round`` is its kind, ``sender`` the sender's place in the roster."""

    round: str
    sender: int
    code: Code

    def seal(self, binding: Binding, identity: Identity) -> bytes:
        """The signed message, addressed to everyone."""
        message = Envelope(self.round, self.sender, EVERYONE, 0, bytes([self.code]))
        return seal(binding, identity, message)

    @classmethod
    def open(cls, binding: Binding, raw: bytes, *, receiver: int) -> "Control | None":
        """Verify and read a control message; None if ``raw`` is a message of the protocol."""
        if len(raw) > _LARGEST or peek(raw).round not in ROUNDS:
            return None
        message = open_envelope(binding, raw, receiver=receiver)
        if len(message.payload) != 1 or message.payload[0] not in list(Code):
            who = binding.roster.member(message.sender).name
            raise PayloadError("one code was due", silo=who, round=message.round)
        return cls(message.round, message.sender, Code(message.payload[0]))


#: How a notice begins: the length of its first field, and that field.
_NOTICE = b"silograph/notice/v1"
_BEGINNING = pack(_NOTICE)
_LARGEST = 4096
_MOST_CHECKS, _LONGEST = 32, 64


@dataclass(frozen=True)
class Notice:
    """What a party says about itself, about one run or one ping. Nothing in it depends on edges.

    ``time`` is the party's own clock and ``offset`` how far it is ahead of the broker's, in
    seconds, if it is known. ``failed`` names the checks that failed at the party.
    """

    about: bytes
    party: str
    code: Code
    time: float
    version: str
    roster: str
    universe: str = ""
    offset: float | None = None
    failed: tuple[str, ...] = ()

    def seal(self, identity: Identity) -> bytes:
        """The signed notice."""
        values = {
            "party": self.party, "code": int(self.code), "time": self.time,
            "version": self.version, "roster": self.roster, "universe": self.universe,
            "offset": self.offset, "failed": list(self.failed),
        }  # fmt: skip
        content = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
        return pack(_NOTICE, self.about, content, identity.sign(pack(_NOTICE, self.about, content)))

    @staticmethod
    def begins(raw: bytes) -> bool:
        """Whether the bytes may be a notice."""
        return raw.startswith(_BEGINNING)

    @classmethod
    def open(cls, raw: bytes, public: bytes, party: str) -> "Notice":
        """Verify and read a notice of ``party``, whose key is ``public``."""
        magic, about, content, signature = unpack(raw, 4, [len(_NOTICE), 16, _LARGEST, 64])
        if magic != _NOTICE or len(about) != 16:
            raise EnvelopeError("this is not a notice")
        verify(public, pack(_NOTICE, about, content), signature, who=party)
        try:
            values = json.loads(content)
            values |= {"code": Code(values["code"]), "failed": tuple(values["failed"])}
            found = cls(about, **values)
            good = found.party == party and found._plain
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
            good = False
        if not good:
            raise PayloadError("a notice was due", silo=party)
        return found

    @property
    def _plain(self) -> bool:
        """Whether all values are of the kinds that can be shown to a person."""
        texts = (self.version, self.roster, self.universe, *self.failed)
        numbers = (self.time, *(() if self.offset is None else (self.offset,)))
        return (
            len(self.failed) <= _MOST_CHECKS
            and all(isinstance(t, str) and len(t) <= _LONGEST and t.isprintable() for t in texts)
            and all(type(n) in (int, float) and math.isfinite(n) for n in numbers)
        )
