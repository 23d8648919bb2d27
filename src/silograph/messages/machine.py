"""The base of every machine: one party's side of one run, without I/O.

What
    A *session* is one party in one run, whatever it computes. Whoever carries messages (all parties
    in one process, or a deployment) starts it, hands it what comes in, sends what it returns in the
    order in which it came, and pulls what it makes by itself, piece by piece: what is not pulled is
    not made, so a slow line slows the maker and memory stays constant. A *machine* is a session
    with a table of states; a method that has several parts is a session made of machines.
Guarantee
    Nothing that depends on edges leaves a silo before :meth:`SiloSession.authorise`. A step that is
    not in the table is refused, and a message that is refused raises and changes nothing. A session
    with the same entropy that is handed the same messages returns the same bytes: a restarted party
    replays.
Names
    A message of a run is named by its round, its receiver and its *slot*, a number that the session
    reads from the message. A session sends at most one message under a name.
"""

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from silograph.errors import ArgumentError, BindingError, OrderError, ProtocolError
from silograph.messages.envelope import Binding, Envelope, Outgoing, open_envelope, seal
from silograph.messages.identity import COORDINATOR, Identity, Roster

__all__ = [
    "CoordinatorSession",
    "Machine",
    "Parameters",
    "Session",
    "SiloSession",
]

T_co = TypeVar("T_co", covariant=True)


class Parameters(Protocol):
    """What all parties of a run must agree on."""

    @property
    def silos(self) -> int: ...
    @property
    def digest(self) -> bytes: ...


class Session(ABC):
    """What both sides have in common."""

    #: What the run's messages may be bound to, as far as it is known yet.
    bindings: tuple[Binding, ...]

    def start(self) -> list[Outgoing]:
        """What is said first, unasked."""
        return []

    @abstractmethod
    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a message; what it gives rise to."""

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """The next messages that the session makes by itself; called while there is :attr:`room`.

        ``sent`` holds (round, slot) of messages that a party sent before it was restarted; a
        session may leave them out where they are not needed to rebuild its state.
        """
        return []

    @property
    def room(self) -> bool:
        """Whether :meth:`make` may be called now."""
        return False

    @property
    def ahead(self) -> bool:
        """Whether nothing comes in that :meth:`make` could be disturbed by."""
        return False

    def early(self, message: Envelope) -> bool:
        """Whether it cannot be told yet if a message is genuine: what it is bound to is to come."""
        return False

    @property
    @abstractmethod
    def phase(self) -> str:
        """Where the party is, in a word or a few."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether this side has done all that is its part."""

    def slot(self, message: Envelope) -> int:
        """The number that, with round and receiver, names a message of this run."""
        return message.sequence


class SiloSession(Session):
    """A silo's side."""

    @property
    @abstractmethod
    def ready(self) -> bool:
        """Whether all is agreed, and the silo waits for :meth:`authorise`."""

    @abstractmethod
    def authorise(self) -> list[Outgoing]:
        """Say that the run's whole cost is in the ledger; what that gives rise to."""


class CoordinatorSession(Session, Generic[T_co]):
    """The coordinator's side."""

    def wants(self, place: int) -> bool:
        """Whether to take the next message of the silo at a place now, or let it wait."""
        return True

    @property
    @abstractmethod
    def progress(self) -> tuple[int, int]:
        """How many pairs are done, and of how many."""

    @abstractmethod
    def result(self) -> T_co:
        """What the run was for; only when it is done."""


class Machine:
    """One party that follows a table of states: a whole session, or a part of one."""

    #: Every step that the machine can take; anything else is refused and changes nothing.
    STEPS: ClassVar[Mapping[tuple[Any, str], Any]]
    #: The rounds of messages that it can be sent. The table also names what a party does by itself,
    #: such as to authorise; nobody else may do that in its stead.
    TAKES: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        parameters: Parameters,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        state: StrEnum,
    ) -> None:
        if roster.member(place).public != identity.public:
            raise ArgumentError(f"the identity is not that of {roster.member(place).name}")
        if len(roster.silos) != parameters.silos:
            raise ArgumentError(
                f"the roster has {len(roster.silos)} silos, the parameters {parameters.silos}"
            )
        self._binding = Binding(run, parameters.digest, roster)
        self.bindings: tuple[Binding, ...] = (self._binding,)
        self._place = place
        self._identity = identity
        self.state: Any = state

    def _opened(self, raw: bytes) -> Envelope:
        """A message to us, checked, that the table has a step for now."""
        message = open_envelope(self._binding, raw, receiver=self._place)
        self._check_sender(message)
        if message.round not in self.TAKES:
            raise self._refuse(OrderError, "there is no such message", message)
        if (self.state, message.round) not in self.STEPS:
            what = f"not while in state {self.state.value!r}"
            raise self._refuse(OrderError, what, message)
        return message

    def _check_sender(self, message: Envelope) -> None:
        """Refuse what is not its sender's to say: the coordinator hears silos, a silo hears the
        coordinator."""
        ours = self._place == COORDINATOR
        if ours and message.sender == COORDINATOR:
            raise BindingError("the coordinator does not write to itself", round=message.round)
        if ours and not self._binding.roster.has_silo(message.sender):
            raise self._refuse(OrderError, "a helper has no part in this", message)
        if not ours and message.sender != COORDINATOR:
            raise self._refuse(OrderError, "silos speak through the coordinator", message)

    def _step(self, event: str) -> Any:
        """Where a step leads, if the table has it. The caller takes it when all else is done."""
        try:
            return self.STEPS[self.state, event]
        except KeyError:
            raise OrderError(f"not while in state {self.state.value!r}", round=event) from None

    def _require(self, state: StrEnum, what: str) -> None:
        """Refuse to tell what is only there in one state."""
        if self.state is not state:
            raise OrderError(f"not while in state {self.state.value!r}", round=what)

    def _seal(
        self,
        name: str,
        receiver: int,
        payload: bytes,
        sequence: int = 0,
        digest: bytes | None = None,
    ) -> bytes:
        """A signed message of ours."""
        envelope = Envelope(name, self._place, receiver, sequence, payload)
        return seal(self._binding, self._identity, envelope, digest)

    def _refuse(self, kind: type[ProtocolError], what: str, message: Envelope) -> ProtocolError:
        """An error that names who sent what."""
        name = self._binding.roster.member(message.sender).name
        return kind(what, silo=name, round=message.round)

    @property
    def phase(self) -> str:
        """The state."""
        return str(self.state.value)

    @property
    def done(self) -> bool:
        """Whether the table ends here."""
        return bool(self.state.name == "DONE")

    def __repr__(self) -> str:
        who = "" if self._place == COORDINATOR else f"place={self._place}, "
        return f"{type(self).__name__}({who}state={self.state.value!r})"
