"""The base classes of sessions and machines: one party's side of one run, without I/O.

What
    A *session* is one party in one run, whatever it computes. A driver carries its messages, either
    within one process or in a deployment. The driver starts the session, hands it every incoming
    message, and sends the returned messages in order. It also pulls the messages that the session
    makes by itself, piece by piece. Messages that are not pulled are not made, so a slow connection
    slows the session down and memory use stays constant. A *machine* is a session with a table of
    states; a method with several parts is a session made of machines.
Guarantee
    Nothing that depends on edges leaves a silo before :meth:`SiloSession.authorise`. A step that is
    not in the table is refused; refusing a message raises an error and changes nothing. A session
    with the same entropy that receives the same messages returns the same bytes, so a restarted
    party can replay its messages.
Names
    A message of a run is identified by its round, its receiver and its *slot*, a number that the
    session reads from the message. A session sends at most one message per name.
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
    """The parameters that all parties of a run must agree on."""

    @property
    def silos(self) -> int: ...
    @property
    def digest(self) -> bytes: ...


class Session(ABC):
    """The common part of both sides."""

    #: The bindings that the run's messages may have, as far as they are known yet.
    bindings: tuple[Binding, ...]

    def start(self) -> list[Outgoing]:
        """The first messages, sent without being asked."""
        return []

    @abstractmethod
    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a message; return the messages that follow from it."""

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """The next messages that the session makes by itself; called while there is :attr:`room`.

        ``sent`` holds (round, slot) of the messages that were sent before a restart. A session may
        omit them if they are not needed to rebuild its state.
        """
        return []

    @property
    def room(self) -> bool:
        """Whether :meth:`make` may be called now."""
        return False

    @property
    def ahead(self) -> bool:
        """Whether :meth:`make` may run ahead, since no incoming message can affect it."""
        return False

    @property
    def interruptible(self) -> bool:
        """Whether messages may come between two calls of :meth:`make`, as always for silos."""
        return False

    @property
    def quick(self) -> bool:
        """Whether :meth:`receive` takes about a millisecond now, too short to be worth a thread."""
        return False

    def early(self, message: Envelope) -> bool:
        """Whether a message cannot be checked yet, since its binding is not known yet."""
        return False

    @property
    @abstractmethod
    def phase(self) -> str:
        """The current phase of the party, in a few words."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether this side has done its whole part."""

    def slot(self, message: Envelope) -> int:
        """The number that, with round and receiver, identifies a message of this run."""
        return message.sequence


class SiloSession(Session):
    """The side of a silo, or of a helper, which has no edges."""

    @property
    def sources(self) -> tuple[int, ...]:
        """The places of the parties whose messages reach this session."""
        return (COORDINATOR,)

    def wants(self, place: int) -> bool:
        """Whether to take the next message of the party at ``place`` now, or let it wait."""
        return True

    @property
    @abstractmethod
    def ready(self) -> bool:
        """Whether everything is agreed, and the silo waits for :meth:`authorise`."""

    @abstractmethod
    def authorise(self) -> list[Outgoing]:
        """Record that the run's whole cost is in the ledger; return the messages that follow."""


class CoordinatorSession(Session, Generic[T_co]):
    """The coordinator's side."""

    def wants(self, place: int) -> bool:
        """Whether to take the next message of the silo at ``place`` now, or let it wait."""
        return True

    @property
    @abstractmethod
    def progress(self) -> tuple[int, int]:
        """The number of pairs done, and the number of all pairs."""

    @abstractmethod
    def result(self) -> T_co:
        """The result of the run; only available when it is done."""


class Machine:
    """One party that follows a table of states, as a whole session or as a part of one."""

    #: All steps that the machine can take; anything else is refused and changes nothing.
    STEPS: ClassVar[Mapping[tuple[Any, str], Any]]
    #: The rounds of messages that it accepts. The table also contains steps that a party takes by
    #: itself, such as ``authorise``; no message can trigger those.
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
        """Check a message to us; the table must have a step for it now."""
        message = open_envelope(self._binding, raw, receiver=self._place)
        self._check_sender(message)
        if message.round not in self.TAKES:
            raise self._refuse(OrderError, "there is no such message", message)
        if (self.state, message.round) not in self.STEPS:
            what = f"not while in state {self.state.value!r}"
            raise self._refuse(OrderError, what, message)
        return message

    def _check_sender(self, message: Envelope) -> None:
        """Refuse a message from the wrong party: silos and the coordinator only hear each other."""
        ours = self._place == COORDINATOR
        if ours and message.sender == COORDINATOR:
            raise BindingError("the coordinator does not write to itself", round=message.round)
        if ours and not self._binding.roster.has_silo(message.sender):
            raise self._refuse(OrderError, "a helper has no part in this", message)
        if not ours and message.sender != COORDINATOR:
            raise self._refuse(OrderError, "silos speak through the coordinator", message)

    def _step(self, event: str) -> Any:
        """The state that a step leads to. The caller enters it after everything else succeeded."""
        try:
            return self.STEPS[self.state, event]
        except KeyError:
            raise OrderError(f"not while in state {self.state.value!r}", round=event) from None

    def _require(self, state: StrEnum, what: str) -> None:
        """Refuse unless the machine is in this state."""
        if self.state is not state:
            raise OrderError(f"not while in state {self.state.value!r}", round=what)

    def _seal(self, name: str, receiver: int, payload: bytes, sequence: int = 0) -> bytes:
        """Sign a message of ours."""
        envelope = Envelope(name, self._place, receiver, sequence, payload)
        return seal(self._binding, self._identity, envelope)

    def _refuse(self, kind: type[ProtocolError], what: str, message: Envelope) -> ProtocolError:
        """An error that names the sender and the round of a message."""
        name = self._binding.roster.member(message.sender).name
        return kind(what, silo=name, round=message.round)

    @property
    def phase(self) -> str:
        """The state."""
        return str(self.state.value)

    @property
    def done(self) -> bool:
        """Whether the table has no further steps."""
        return bool(self.state.name == "DONE")

    def __repr__(self) -> str:
        who = "" if self._place == COORDINATOR else f"place={self._place}, "
        return f"{type(self).__name__}({who}state={self.state.value!r})"
