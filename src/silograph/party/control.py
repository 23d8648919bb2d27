"""What parties say about a run, beside the run: accept, refuse, abort, end.

Each is a signed message, bound to the study and not only to its parameters. It carries one code
of a short list, in one byte: what leaves a silo when it refuses or fails does not depend on its
edges, and the reason stays in its own log.
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
    StudyError,
)
from silograph.messages.envelope import EVERYONE, Binding, Envelope, open_envelope, peek, seal
from silograph.messages.identity import Identity

__all__ = ["ABORT", "ACCEPT", "END", "REFUSE", "ROUNDS", "Code", "Control", "code_of"]

ACCEPT, REFUSE, ABORT, END = "accept", "refuse", "abort", "end"
ROUNDS = frozenset({ACCEPT, REFUSE, ABORT, END})


class Code(IntEnum):
    """Why, in one byte."""

    NONE = 0
    POLICY = 1
    BUDGET = 2
    OPERATOR = 3
    DEADLINE = 4
    STUDY = 5
    PROTOCOL = 6
    REFUSED = 7
    INTERNAL = 8

    @property
    def word(self) -> str:
        """As it stands in logs and on the screen."""
        return self.name.lower()


def code_of(error: BaseException) -> Code:
    """The code that stands for an error outside. It tells the kind of refusal and no more."""
    kinds: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], Code], ...] = (
        (PolicyError, Code.POLICY),
        (DeadlineError, Code.DEADLINE),
        (StudyError, Code.STUDY),
        (BudgetError, Code.BUDGET),
        ((ProtocolError, CryptoError), Code.PROTOCOL),
    )
    return next((code for kind, code in kinds if isinstance(error, kind)), Code.INTERNAL)


@dataclass(frozen=True)
class Control:
    """A word about a run, from the party at a place."""

    round: str
    sender: int
    code: Code

    def seal(self, binding: Binding, identity: Identity) -> bytes:
        """As a signed message to everyone."""
        message = Envelope(self.round, self.sender, EVERYONE, 0, bytes([self.code]))
        return seal(binding, identity, message)

    @classmethod
    def open(cls, binding: Binding, raw: bytes, *, receiver: int) -> "Control | None":
        """The word that a message is, checked; None where it is a message of the run itself."""
        if peek(raw).round not in ROUNDS:
            return None
        message = open_envelope(binding, raw, receiver=receiver)
        if len(message.payload) != 1 or message.payload[0] not in list(Code):
            who = binding.roster.member(message.sender).name
            raise PayloadError("one code was due", silo=who, round=message.round)
        return cls(message.round, message.sender, Code(message.payload[0]))
