"""Carries one party's session over the broker.

What comes in is compared with what was taken before, handed to the session, and recorded together
with its answers; what goes out is frozen in the store first, and published once. So a party that
is ended at any moment goes on after a restart: its session is rebuilt from the run's secret and
from the same messages, and whatever it makes again is what it made before.
"""

import asyncio
import contextlib
import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from silograph.errors import BindingError, EnvelopeError, OrderError, SignatureError
from silograph.messages.envelope import EVERYONE, Binding, Envelope, Outgoing, open_envelope, peek
from silograph.messages.identity import Identity, Roster
from silograph.messages.machine import Session
from silograph.methods.study import Study
from silograph.nats import faultpoints
from silograph.nats.link import Link
from silograph.party import connection
from silograph.party.control import Code, Control
from silograph.party.log import Log
from silograph.party.store import Frozen, Name, Store, Taken

__all__ = ["UNPROVEN", "Carrier", "Seat", "Voice"]

#: What proves nothing about its alleged sender; anyone could have sent it.
UNPROVEN = (EnvelopeError, SignatureError, BindingError)
#: Messages that are under way to the broker at once.
_WINDOW = 4
#: How long streams live on after a study's deadline.
_AFTERLIFE = 3600.0


@dataclass(frozen=True)
class Seat:
    """A party's place in one run."""

    study: Study
    #: The part of the roster that takes part.
    roster: Roster
    place: int
    identity: Identity
    #: ``silo`` or ``coordinator``.
    role: str

    @property
    def binding(self) -> Binding:
        """What words about the run are bound to."""
        return Binding(self.study.id, self.study.digest, self.roster)

    @property
    def name(self) -> str:
        """This party's name."""
        return self.roster.member(self.place).name


class Voice:
    """What a party can say in a run: frozen first, and sent once."""

    def __init__(self, seat: Seat, store: Store, link: Link) -> None:
        self.seat = seat
        self.run = seat.study.run
        self._store = store
        self._link = link
        self._stream = ""
        self._acked: list[Name] = []

    async def open(self, now: float) -> None:
        """Make the stream, and send what was frozen before a restart and may not have arrived."""
        lifetime = self.seat.study.deadline - now + _AFTERLIFE
        self._stream = await self._link.own_stream(self.run, lifetime)
        await self.repeat()

    async def say(self, word: str, code: Code = Code.NONE) -> None:
        """Say something about the run."""
        await self._send(self._store.step(self.run, None, [self.word(word, code)]))

    def word(self, word: str, code: Code = Code.NONE) -> Frozen:
        """A word about the run, as it will be sent."""
        raw = Control(word, self.seat.place, code).seal(self.seat.binding, self.seat.identity)
        return Frozen(Name(EVERYONE, word, 0), raw)

    async def repeat(self) -> None:
        """Send all that is frozen and that the broker may not have."""
        await self._send(await asyncio.to_thread(self._store.pending, self.run))

    def settle(self) -> None:
        """Write down what the broker has."""
        acked, self._acked = self._acked, []
        self._store.acked(self.run, acked)

    async def clear(self) -> None:
        """Remove this party's messages from the broker: nobody needs them any more."""
        await self._link.drop_stream(self._stream)

    async def _send(self, frozen: list[Frozen]) -> None:
        for message in frozen:
            if message.raw is None:
                continue
            name = message.name
            everyone = name.party == EVERYONE
            to = connection.ALL if everyone else self.seat.roster.member(name.party).name
            run = self.seat.study.id
            subject = connection.message(run, self.seat.name, to, name.round, name.slot)
            await self._link.publish(self._stream, subject, message.raw)
            self._point("sent")
            self._acked.append(name)

    def _point(self, moment: str) -> None:
        faultpoints.point(f"{self.seat.role}.{moment}")


class Carrier(Voice):
    """One session of one party in one run, between its store and the broker."""

    def __init__(self, seat: Seat, session: Session, store: Store, link: Link, log: Log) -> None:
        super().__init__(seat, store, link)
        self.session = session
        self._log = log
        self._known = store.taken(self.run)
        self._replay = deque(self._known)
        self._taken: dict[Name, bytes] = {}
        self._turn = asyncio.Lock()
        self._window = asyncio.Semaphore(_WINDOW)
        self._sent: set[tuple[str, int]] | None = None

    async def start(self) -> None:
        """Send what the session says first."""
        await self._say(self.session.start)

    async def authorise(self, authorise: Callable[[], list[Outgoing]]) -> None:
        """Let a silo's session know that its cost is paid, and send what that gives rise to."""
        await self._say(authorise)

    async def _say(self, act: Callable[[], list[Outgoing]]) -> None:
        async with self._turn:
            await self._send(await asyncio.to_thread(self._frozen, act))

    def due(self, raw: bytes) -> bool:
        """Whether a message can be taken now.

        After a restart what was taken before comes first, and in the same order: streams of
        several senders do not tell which of their messages answered to which.
        """
        while self._replay and self._replay[0] in self._taken:
            self._replay.popleft()
        if not self._replay:
            return True
        try:
            message = peek(raw)
            name = self._name(message)
        except UNPROVEN:
            return True  # it will be dropped
        if name == self._replay[0] or name in self._taken:
            return True
        return not (self._signed(raw) or self.session.early(message))

    async def take(self, raw: bytes) -> bool:
        """Hand a message to the session and send its answers.

        False where the message proves nothing, or was taken already: it was dropped. A message
        that its sender did sign and that is wrong raises, and the run is over.
        """
        self._point("received")
        async with self._turn:
            try:
                frozen = await asyncio.to_thread(self._step, raw)
            except UNPROVEN as error:
                if self._signed(raw):  # by its sender, who put something into it that is not
                    raise
                self._log.event("message.dropped", level="warning", run=self.run, error=error)
                return False
            # Answers leave in the order in which they were made, so before the next is taken.
            await self._send(frozen or [])
        return frozen is not None

    async def pump(self) -> None:
        """Pull what the session makes by itself, while it has room for more.

        A few messages are under way at once, and the next is made when one of them has arrived.
        """
        async with asyncio.TaskGroup() as sending:
            while self.session.room:
                await self._window.acquire()
                try:
                    async with self._turn:
                        frozen = await asyncio.to_thread(self._make)
                except BaseException:
                    self._window.release()
                    raise
                sending.create_task(self._upload(frozen))

    async def _upload(self, frozen: list[Frozen]) -> None:
        try:
            await self._send(frozen)
        finally:
            self._window.release()

    # -- in a thread, one at a time -----------------------------------------------------------

    def _step(self, raw: bytes) -> list[Frozen] | None:
        message = peek(raw)
        name = self._name(message)
        digest = hashlib.sha256(raw).digest()
        if self._taken.get(name) == digest:
            return None
        known = self._known.get(name)
        if known is not None and known != digest:
            if self._signed(raw):
                raise OrderError("came again with other content", round=message.round)
            raise BindingError("a forged message under a name that is known", round=message.round)
        outgoing = self.session.receive(raw)
        self._point("taken")
        self._taken[name] = self._known[name] = digest
        taken = None if known == digest else Taken(name, digest)
        return self._freeze(taken, outgoing)

    def _name(self, message: Envelope) -> Name:
        return Name(message.sender, message.round, self.session.slot(message))

    def _signed(self, raw: bytes) -> bool:
        for binding in self.session.bindings:
            with contextlib.suppress(*UNPROVEN):
                open_envelope(binding, raw, receiver=self.seat.place)
                return True
        return False

    def _frozen(self, act: Callable[[], list[Outgoing]]) -> list[Frozen]:
        return self._freeze(None, act())

    def _make(self) -> list[Frozen]:
        if self._sent is None:
            self._sent = self._store.sent(self.run)
        made = self.session.make(self._sent) if self.session.room else []
        if made:
            self._point("made")
        return self._freeze(None, made)

    def _freeze(self, taken: Taken | None, outgoing: list[Outgoing]) -> list[Frozen]:
        messages = []
        for out in outgoing:
            sent = peek(out.raw)
            name = Name(out.to, sent.round, self.session.slot(sent))
            messages.append(Frozen(name, out.raw))
        if not messages:
            return self._store.step(self.run, taken, []) if taken is not None else []
        acked, self._acked = self._acked, []
        frozen = self._store.step(self.run, taken, messages, acked)
        self._point("frozen")
        return frozen
