"""One face for every method: a silo's and a coordinator's side of a run, whatever it computes.

What
    A *session* wraps the machines of one party in one run. Whoever carries messages (the
    simulation, or a deployment) starts it, hands it what comes in, sends what it returns in the
    order in which it came, and pulls what it makes by itself, piece by piece: what is not pulled is
    not made, so a slow line slows the maker and memory stays constant.
Guarantee
    Nothing that depends on edges leaves a silo's session before :meth:`SiloSession.authorise`. A
    message that is refused raises and changes nothing. A session with the same entropy that is
    handed the same messages returns the same bytes: a restarted party replays.
Names
    A message of a run is named by its round, its receiver and its *slot*, a number that the session
    reads from the message. A session sends at most one message under a name.

A new method is one small class a side.
"""

from abc import ABC, abstractmethod
from collections.abc import Container
from typing import Generic, TypeVar

from silograph.protocol.envelope import Binding, Envelope
from silograph.protocol.handshake import Outgoing

__all__ = ["CoordinatorSession", "Session", "SiloSession"]

T_co = TypeVar("T_co", covariant=True)


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
