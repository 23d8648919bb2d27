"""Control messages: what parties say about a run outside its protocol (accept, refuse, abort, end).

Each is a signed message that is bound to the study, not only to its parameters. It carries one
code from a short list, in one byte. So the message that a silo sends when it refuses or fails does
not depend on its edges, and the reason stays in its own log.
"""

from dataclasses import dataclass
from enum import IntEnum

from silograph.errors import (
    BudgetError,
    CryptoError,
    DeadlineError,
    PayloadError,
    PolicyError,
    ProtocolError,
    SlowLineError,
    StudyError,
)
from silograph.messages.envelope import EVERYONE, Binding, Envelope, open_envelope, peek, seal
from silograph.messages.identity import Identity

__all__ = ["ABORT", "ACCEPT", "END", "REFUSE", "ROUNDS", "Code", "Control", "code_of"]

ACCEPT, REFUSE, ABORT, END = "accept", "refuse", "abort", "end"
ROUNDS = frozenset({ACCEPT, REFUSE, ABORT, END})


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
    #: The line to the broker is too slow for the deadline.
    SLOW = 9

    @property
    def word(self) -> str:
        """The code's name in logs and on the screen."""
        return self.name.lower()


def code_of(error: BaseException) -> Code:
    """The code that other parties get for an error. It tells only the kind of refusal."""
    kinds: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], Code], ...] = (
        (PolicyError, Code.POLICY),
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
        if peek(raw).round not in ROUNDS:
            return None
        message = open_envelope(binding, raw, receiver=receiver)
        if len(message.payload) != 1 or message.payload[0] not in list(Code):
            who = binding.roster.member(message.sender).name
            raise PayloadError("one code was due", silo=who, round=message.round)
        return cls(message.round, message.sender, Code(message.payload[0]))
