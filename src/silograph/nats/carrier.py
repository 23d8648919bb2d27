"""Carries the messages of one party's session over the broker.

An incoming message is compared with those that were processed ("taken") before, handed to the
session, and recorded in the store together with its answers. An outgoing message is first stored
("frozen") and then published once. So a party that is killed at any moment can continue after a
restart: its session is rebuilt from the run's secret and from the same messages, and it makes the
same messages as before.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property

from silograph.errors import (
    BindingError,
    ClonedError,
    EnvelopeError,
    OrderError,
    SignatureError,
    TransportError,
)
from silograph.messages.envelope import (
    EVERYONE,
    Binding,
    Envelope,
    Outgoing,
    open_envelope,
    peek,
    stamp,
)
from silograph.messages.identity import Identity, Roster
from silograph.messages.machine import Session
from silograph.methods.study import Study
from silograph.nats import faultpoints
from silograph.nats.link import Link, at_once
from silograph.party import connection
from silograph.party.control import Code, Control
from silograph.party.log import Log
from silograph.party.store import Frozen, Name, Store, Taken

__all__ = ["UNPROVEN", "Carrier", "Seat", "Voice"]

#: Errors of a message that anyone could have sent. It proves nothing about its alleged sender.
UNPROVEN = (EnvelopeError, SignatureError, BindingError)
#: How many messages may be on their way to the broker at the same time. On a slow line they are
#: fewer: see ``nats/pace.py``.
_WINDOW = 4
#: For how many seconds messages are made that the store records together, and how many at most: a
#: record waits for the disk, and what is quickly made should not wait for it each time.
_TOGETHER_SECONDS, _TOGETHER = 0.02, 2 * _WINDOW


@dataclass(frozen=True)
class Seat:
    """A party's place in one run."""

    study: Study
    #: The members of the roster that take part in the run.
    roster: Roster
    place: int
    identity: Identity
    #: ``silo`` (of a helper, too) or ``coordinator``.
    role: str

    @cached_property
    def binding(self) -> Binding:
        """The binding of control messages about the run."""
        return Binding(self.study.id, self.study.digest, self.roster)

    @property
    def name(self) -> str:
        """This party's name."""
        return self.roster.member(self.place).name


class Voice:
    """Sends a party's messages in a run. Each is frozen first, and published once."""

    def __init__(self, seat: Seat, store: Store, link: Link) -> None:
        self.seat = seat
        self.run = seat.study.run
        self._store = store
        self._link = link
        self._acked: list[Name] = []

    async def say(self, word: str, code: Code = Code.NONE) -> None:
        """Send a control message about the run."""
        await self._send(self._store.step(self.run, None, [self.word(word, code)]))

    def word(self, word: str, code: Code = Code.NONE) -> Frozen:
        """A control message about the run, ready to be sent."""
        raw = Control(word, self.seat.place, code).seal(self.seat.binding, self.seat.identity)
        return Frozen(Name(EVERYONE, word, 0), raw)

    async def repeat(self) -> None:
        """Send all frozen messages that the broker may not have yet."""
        await self._send(await asyncio.to_thread(self._store.pending, self.run))

    def settle(self) -> None:
        """Record which messages the broker has confirmed."""
        acked, self._acked = self._acked, []
        self._store.acked(self.run, acked)

    async def _send(self, frozen: list[Frozen]) -> None:
        """Send messages, in their order for each receiver, and to several receivers at once."""
        queues: dict[int, list[Frozen]] = {}
        for message in frozen:
            queues.setdefault(message.name.party, []).append(message)
        if len(queues) < 2 or EVERYONE in queues:
            await self._send_in_order(frozen)
            return
        await at_once(*map(self._send_in_order, queues.values()))

    async def _send_in_order(self, frozen: list[Frozen]) -> None:
        for message in frozen:
            if message.raw is None:
                continue
            name = message.name
            everyone = name.party == EVERYONE
            to = connection.ALL if everyone else self.seat.roster.member(name.party).name
            run = self.seat.study.id
            subject = connection.message(run, self.seat.name, to, name.round, name.slot)
            stream = self._link.own_stream(self.run)
            try:
                await self._link.publish(stream, subject, message.raw)
            except TransportError as error:
                if self._is_ours(error.standing, name.party):
                    raise ClonedError(
                        "our own key signed another message of this name: we were cloned, or put "
                        "back to an earlier state",
                        silo=self.seat.name,
                        round=name.round,
                    ) from None
                raise
            self._point("sent")
            self._acked.append(name)

    def _is_ours(self, raw: bytes, receiver: int) -> bool:
        """Whether our key signed a message of the run's protocol, which has one content only.

        A control message may be another one after a restart with an empty store.
        """
        return False

    def _point(self, moment: str) -> None:
        faultpoints.point(f"{self.seat.role}.{moment}")


class Carrier(Voice):
    """Connects the session of one party in one run with its store and the broker."""

    def __init__(self, seat: Seat, session: Session, store: Store, link: Link, log: Log) -> None:
        super().__init__(seat, store, link)
        self.session = session
        self._log = log
        self._known = store.taken(self.run)
        self._replay = deque(self._known)
        self._taken: dict[Name, bytes] = {}
        self._turn = asyncio.Lock()
        self._sent: set[tuple[str, int]] | None = None

    async def start(self) -> None:
        """Send the session's first messages."""
        await self._say(self.session.start)

    async def authorise(self, authorise: Callable[[], list[Outgoing]]) -> None:
        """Tell a silo's session that its cost is paid, and send the messages that follow."""
        await self._say(authorise)

    async def _say(self, act: Callable[[], list[Outgoing]]) -> None:
        async with self._turn:
            await self._send(await asyncio.to_thread(self._frozen, act))

    def due(self, raw: bytes) -> bool:
        """Whether a message can be processed now.

        After a restart, the messages that were processed before must come first and in the same
        order. The streams of several senders do not show that order.
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

        Returns False if the message was dropped: anyone could have sent it, or it was processed
        before. A wrong message that its sender did sign raises, and the run is over.
        """
        self._point("received")
        async with self._turn:
            try:
                quick = self.session.quick
                frozen = self._step(raw) if quick else await asyncio.to_thread(self._step, raw)
            except UNPROVEN as error:
                if self._signed(raw):  # by its sender: the fault is in the content
                    raise
                self._log.event("message.dropped", level="warning", run=self.run, error=error)
                return False
            # Send the answers before the next message is processed, to keep their order.
            await self._send(frozen or [])
        return frozen is not None

    async def pump(self, told: Callable[[], Awaitable[None]] | None = None) -> None:
        """Send the messages that the session makes unprompted, while it has room for more.

        A few messages are sent at the same time. The next is sent when the oldest of them has
        arrived, so that none is overtaken by many: a reader takes a bounded number ahead.
        ``told`` is called each time that the session has made something.
        """
        under_way: deque[asyncio.Task[None]] = deque()
        made: deque[list[Frozen]] = deque()
        try:
            while made or self.session.room:
                if not made:
                    async with self._turn:
                        made.extend(await asyncio.to_thread(self._make))
                    if told is not None:
                        await told()
                    continue
                if len(under_way) == _WINDOW:
                    await under_way[0]
                    under_way.popleft()
                under_way.append(asyncio.create_task(self._send(made.popleft())))
            await asyncio.gather(*under_way)
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    # -- in a thread, one at a time -----------------------------------------------------------

    def _step(self, raw: bytes) -> list[Frozen] | None:
        message = peek(raw)
        name = self._name(message)
        digest = stamp(message)  # the session verifies the signature
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
        return self._opened(raw, self.seat.place) is not None

    def _is_ours(self, raw: bytes, receiver: int) -> bool:
        found = self._opened(raw, receiver)
        return found is not None and found.sender == self.seat.place

    def _opened(self, raw: bytes, receiver: int) -> Envelope | None:
        """A message of the protocol that its sender did sign, or None."""
        for binding in self.session.bindings:
            with contextlib.suppress(*UNPROVEN):
                return open_envelope(binding, raw, receiver=receiver)
        return None

    def _frozen(self, act: Callable[[], list[Outgoing]]) -> list[Frozen]:
        return self._freeze(None, act())

    def _make(self) -> list[list[Frozen]]:
        """The next messages that the session makes by itself, frozen: groups to be sent at once.

        If no message can change what is made, a restarted session makes the same again. Then stamps
        are kept in the place of bytes, and a few messages are frozen together.
        """
        if self._sent is None:
            self._sent = self._store.sent(self.run)
        made: list[Outgoing] = []
        again, until = self.session.ahead, time.monotonic() + _TOGETHER_SECONDS
        while self.session.room:
            made += (more := self.session.make(self._sent))
            if more:
                self._point("made")
            if not again or len(made) >= _TOGETHER or time.monotonic() > until:
                break
        frozen = self._freeze(None, made, again=again)
        return [[message] for message in frozen] if again else [frozen]

    def _freeze(
        self, taken: Taken | None, outgoing: list[Outgoing], *, again: bool = False
    ) -> list[Frozen]:
        messages = []
        for out in outgoing:
            sent = peek(out.raw)
            name = Name(out.to, sent.round, self.session.slot(sent))
            messages.append(Frozen(name, out.raw, stamp(sent) if again else b""))
        if not messages:
            return self._store.step(self.run, taken, []) if taken is not None else []
        acked, self._acked = self._acked, []
        frozen = self._store.step(self.run, taken, messages, acked)
        for _ in range(len(frozen) if again else 1):
            self._point("frozen")
        return frozen
