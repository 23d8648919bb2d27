"""The coordinator of a committee: it relays keys, and gets what the members open to it.

It may be one of the four members, if the study says so. Then it does what a helper does, too.
"""

from abc import abstractmethod
from collections.abc import Container
from typing import Any, ClassVar, TypeVar

from silograph import _core
from silograph.errors import (
    BindingError,
    MismatchError,
    OrderError,
    PayloadError,
    ViewsDifferError,
)
from silograph.messages.entropy import Entropy
from silograph.messages.envelope import EVERYONE, Envelope, Outgoing
from silograph.messages.identity import COORDINATOR, Identity, Roster
from silograph.messages.machine import CoordinatorSession
from silograph.messages.rounds import Collection
from silograph.messages.secrecy import TAG_BYTES, view_digest
from silograph.methods.committee.member import Lines, Seat
from silograph.methods.committee.rounds import (
    COORDINATOR_STEPS,
    MEMBERS,
    CommitteeParameters,
    Seating,
    State,
)

__all__ = ["CommitteeCoordinator", "Host"]

T_co = TypeVar("T_co", covariant=True)


class Host(Seat, CoordinatorSession[T_co]):
    """The coordinator of any run with a committee.

    Each of the four members sends one message about everything that is opened. What these messages
    are and what follows from all four is up to a subclass.
    """

    STEPS = COORDINATOR_STEPS
    TAKES: ClassVar[tuple[str, ...]] = (
        "key",
        "confirm",
        "seed",
        "match",
        "input",
        "check",
        "joint",
        "open",
    )
    #: The rounds in which members open something.
    OPENS: ClassVar[tuple[str, ...]] = ("open",)

    def __init__(
        self,
        parameters: Seating,
        roster: Roster,
        run: bytes,
        identity: Identity,
        entropy: Entropy,
    ) -> None:
        super().__init__(parameters, roster, run, COORDINATOR, identity, entropy, State.KEYS)
        self._collection = Collection(self._binding, roster.places[parameters.silos :])
        self._finished: set[tuple[str, int]] = set()
        self._keys: dict[int, bytes] = {}
        self._opened_parts: dict[tuple[str, int], dict[int, bytes]] = {}

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a party's message."""
        message = self._opened(raw)
        if message.round == "key":
            return self._key(message, raw)
        if message.round == "confirm":
            return self._confirm(message, raw)
        if message.round in self.OPENS:
            return self._open(message)
        if self._part is None:
            raise self._refuse(OrderError, "the coordinator is not a member", message)
        return self._take(message)

    def _check_sender(self, message: Envelope) -> None:
        if message.sender == COORDINATOR:
            raise BindingError("the coordinator does not write to itself", round=message.round)

    # --- the handshake ------------------------------------------------------------------------

    def _key(self, message: Envelope, raw: bytes) -> list[Outgoing]:
        keys = self._keys | {message.sender: self._word(message)}
        view, lines = self._view, self._lines
        if len(keys) == len(self._binding.roster.places) and message.sender not in self._keys:
            everyone = keys | {COORDINATOR: self._secret.public()}
            lines = Lines(self._binding, self._secret, everyone, COORDINATOR)
            places = (*self._binding.roster.places, COORDINATOR)
            view = view_digest(self.VIEW, self._binding, [everyone[place] for place in places])
        own = self._seal("key", EVERYONE, self._secret.public())
        bundle = self._collection.take(message, raw, self._identity, own)
        self._keys, self._lines, self._view = keys, lines, view
        if bundle:
            self.state = self._step("all keys")
        return bundle

    def _confirm(self, message: Envelope, raw: bytes) -> list[Outgoing]:
        if self._word(message) != self._view:
            raise self._refuse(ViewsDifferError, "saw other keys than we did", message)
        bundle = self._collection.take(message, raw, self._identity)
        if not bundle:
            return []
        self.state = self._step("all confirms")
        if COORDINATOR not in self._seating.members:
            return bundle
        part = self._sit(None)
        part.confirm()
        part.authorise()  # it has no bits, so it pays for nothing
        return [*bundle, *self._advance()]

    def _word(self, message: Envelope) -> bytes:
        if len(message.payload) != 32:
            raise self._refuse(PayloadError, "32 bytes were due", message)
        return message.payload

    # --- openings -----------------------------------------------------------------------------

    @abstractmethod
    def _opening_bytes(self, name: str, member: int, number: int) -> int | None:
        """The size of what a member sends about something; None if there is no such thing."""

    @abstractmethod
    def _take_opening(self, name: str, number: int, came: list[bytes]) -> None:
        """All four members have opened something to us: compare what they say, and use it."""

    @abstractmethod
    def _complete(self) -> bool:
        """Whether everything is open."""

    def _open(self, message: Envelope) -> list[Outgoing]:
        name, number = message.round, message.sequence
        member = self._seating.number(message.sender)
        if member is None:
            raise self._refuse(OrderError, "it is not a member of the committee", message)
        size = self._opening_bytes(name, member, number)
        if size is None:
            raise self._refuse(OrderError, f"there is no chunk {number}", message)
        parts = self._opened_parts.get((name, number), {})
        if (name, number) in self._finished or message.sender in parts:
            raise self._refuse(OrderError, f"chunk {number} came twice", message)
        if len(message.payload) != size + TAG_BYTES:
            raise self._refuse(PayloadError, "it has the wrong size", message)
        self._keep(name, number, message.sender, self._content(message))
        return []

    def _keep(self, name: str, number: int, member: int, content: bytes) -> None:
        """Keep what a member opens; the last part is compared with the others, and used."""
        parts = self._opened_parts.setdefault((name, number), {})
        parts[member] = content
        if len(parts) < MEMBERS:
            return
        places = self._seating.members
        try:
            self._take_opening(name, number, [parts[place] for place in places])
        except _core.MismatchError as error:
            self.state = State.ENDED
            sender, hasher = (self._binding.roster.member(places[i]).name for i in error.args)
            what = f"{hasher} does not confirm what it opened"
            raise MismatchError(what, silo=sender, round=name) from None
        except MismatchError:
            self.state = State.ENDED
            raise
        del self._opened_parts[name, number]
        self._finished.add((name, number))
        if self._complete() and self.state is not State.DONE:
            self.state = self._step("all chunks")

    # --- the coordinator as a member ----------------------------------------------------------

    def _send(self, name: str, receiver: int, sequence: int, content: bytes) -> None:
        if receiver == COORDINATOR:  # its own part of an opening
            self._keep(name, sequence, COORDINATOR, content)
        else:
            super()._send(name, receiver, sequence, content)

    @property
    def room(self) -> bool:
        """Whether it is a member that has work to do."""
        return self.state is State.CHUNKS and self._part is not None and self._part.room

    @property
    def interruptible(self) -> bool:
        """A member's long work depends on no message that comes meanwhile, nor they on it."""
        return True

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """Do the next piece of a member's long work."""
        if not self.room:
            return []
        self._step("make")
        return self._work()


class CommitteeCoordinator(Host[_core.OpenBits]):
    """The coordinator in one union. Its result is Y, one bit per pair."""

    def __init__(self, parameters: CommitteeParameters, *more: Any) -> None:
        super().__init__(parameters, *more)
        self._parameters = parameters
        self._bits = _core.OpenBits(parameters.pairs)
        self._open_chunks: set[int] = set()

    def _opening_bytes(self, name: str, member: int, number: int) -> int | None:
        given = self._parameters
        return given.opening_bytes(member, number) if number < given.chunks else None

    def _take_opening(self, name: str, number: int, came: list[bytes]) -> None:
        start, size = number * self._parameters.chunk_pairs, self._parameters.chunk_size(number)
        self._bits.write(start, _core.committee_opened(self._view, number, size, came))
        self._open_chunks.add(number)

    def _complete(self) -> bool:
        return len(self._open_chunks) == self._parameters.chunks

    @property
    def progress(self) -> tuple[int, int]:
        """The number of pairs that are open, and the number of all pairs."""
        pairs = self._parameters.pairs
        return min(len(self._open_chunks) * self._parameters.chunk_pairs, pairs), pairs

    def result(self) -> _core.OpenBits:
        """Y, one bit per pair; only available when all chunks are open."""
        self._require(State.DONE, "result")
        return self._bits
