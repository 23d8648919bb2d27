"""The part of a silo or a helper in one run, from its acceptance to its end.

The party reads one stream per sender: that of the coordinator, and those of the parties that write
to it directly. A message is handed to the session when the session wants it; after a restart, in
the order in which the messages were processed before. Only the coordinator can end a run by a
control message. The run's whole cost is in the ledger before anything that depends on edges is
sent.

A party that restarts reads all streams again from their beginning. So streams stay until all
parties have ended the run: each says so with its last message (see :mod:`~silograph.nats.sweep`).
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from silograph.errors import (
    AbortedError,
    ClonedError,
    DeadlineError,
    ProtocolError,
    SlowLineError,
    TrailError,
    TransportError,
)
from silograph.messages.identity import COORDINATOR
from silograph.messages.machine import SiloSession
from silograph.methods.cost import LineLoad
from silograph.nats import faultpoints
from silograph.nats.carrier import UNPROVEN, Carrier, Seat
from silograph.nats.link import Link
from silograph.nats.pace import check_in_time
from silograph.party.control import ABORT, ACCEPT, END, REFUSE, Code, Control, Notice, code_of
from silograph.party.log import Log
from silograph.party.opened import Party
from silograph.party.store import Frozen

__all__ = ["SiloRun", "cause", "last_words"]

#: For how many seconds, at least, a party tries to tell the others that a run has ended.
_LAST_WORD_SECONDS = 5.0
_NO_LOAD = LineLoad(0, 0)


class SiloRun:
    """One run that the party has accepted, and its session."""

    def __init__(
        self,
        seat: Seat,
        session: SiloSession,
        party: Party,
        link: Link,
        pay: Callable[[], None],
        alarm: Callable[[ClonedError], None],
        load: LineLoad = _NO_LOAD,
    ) -> None:
        """Prepare the run.

        ``pay`` records its cost, and may be called again after a restart. ``alarm`` is told if
        somebody else has signed with this party's key, before anyone else is. ``load`` is what the
        study puts on the party's line.
        """
        self._study = seat.study
        self._seat = seat
        self._party = party
        self._store, self._clock = party.store, party.clock
        self._link = link
        self._pay = pay
        self._alarm = alarm
        self._load = load
        self._session = session
        self._carrier = Carrier(seat, session, self._store, link, party.log)
        run = self._store.run(seat.study.run)
        self._phase = "" if run is None else run.phase
        self._given_up = False
        self._parts = asyncio.TaskGroup()
        self._upload: asyncio.Task[None] | None = None
        self._moved = asyncio.Condition()
        self._step = asyncio.Lock()
        self._moved_at = time.monotonic()
        self._named = ""

    @property
    def waiting(self) -> str:
        """What the run waits for now, in words."""
        if self._link.trouble:
            return f"waits for the broker: {self._link.trouble}"
        if self._upload is not None and not self._upload.done():
            return "sends"
        return f"waits for {', '.join(self._awaited)}"

    @property
    def _awaited(self) -> list[str]:
        """The names of those whose next message is due."""
        places = [place for place in self._session.sources if self._session.wants(place)]
        return [self._seat.roster.member(place).name for place in places] or [
            self._study.coordinator
        ]

    def name_wait(self, seconds: float) -> None:
        """Write what the run waits for into the log, if nothing has moved for so long."""
        waiting = self.waiting
        if time.monotonic() - self._moved_at < seconds or waiting == self._named:
            return
        self._named = waiting
        who = None if self._link.trouble else self._awaited[0]
        kind = "broker" if who is None else "message"
        self._party.log.event(
            "run.waiting", run=self._study.id, phase=_word(self._phase), kind=kind, party=who
        )

    def give_up(self) -> None:
        """Note that the operator ends the run. The caller then cancels its task."""
        self._given_up = True

    async def carry(self) -> None:
        """Take part until the end of the run; record how it ended and tell the others."""
        try:
            async with asyncio.timeout(max(self._study.deadline - self._clock(), 0.0)):
                await self._carrier.repeat()
                await self._check_line()
                await self._carrier.say(ACCEPT)
                await self._carrier.start()
                await self._rounds()
        except TimeoutError:
            await self._abort(DeadlineError("the study's deadline has passed"))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._given_up or task is None:
                raise  # the service stops; the run continues after a restart
            task.uncancel()
            await self._abort(AbortedError("ended by the operator", code="operator"))
        except Exception as error:
            found = cause(error)
            if isinstance(found, ClonedError):
                await asyncio.to_thread(self._alarm, found)
            if isinstance(found, AbortedError):  # by the coordinator, who tells everyone
                await self._end("aborted", found.code, self._carrier.word(END), found)
            elif isinstance(found, SlowLineError):
                self._log_failure(found, code_of(found))
                word = self._carrier.word(REFUSE, code_of(found))
                await self._end("refused", code_of(found).word, word, found)
            else:
                await self._abort(found)
        else:
            await self._end("done", "", self._carrier.word(END))

    async def _check_line(self) -> None:
        """Raise, before anything is spent, if the line is too slow for the study's deadline."""
        run, link = self._store.run(self._study.run), self._link
        if run is not None and not run.spent:
            await check_in_time(
                self._load,
                lambda: self._study.deadline - self._clock(),
                lambda size: link.measure(self._study.run, size),
            )

    # -- messages ------------------------------------------------------------------------------

    async def _rounds(self) -> None:
        """Process messages, pay and upload, until the coordinator ends the run."""
        session = self._session
        async with self._parts as parts:
            await self._go_on()
            peers = [
                parts.create_task(self._listen(place))
                for place in session.sources
                if place != COORDINATOR
            ]
            await self._listen(COORDINATOR)
            if peers:  # the end may come before others' last messages
                await self._until(lambda: session.done)
            if not session.done:
                raise AbortedError("ended early", code="protocol", by=self._study.coordinator)
            for task in peers:
                task.cancel()

    async def _listen(self, place: int) -> None:
        """Process the messages of one sender; returns when the coordinator has ended the run.

        Messages that the session does not want yet stay with the broker. One message of the
        coordinator is always read, because it may be a control message.
        """
        sender, everyone = self._seat.roster.member(place).name, place == COORDINATOR
        reader = self._link.reader_of(self._study.run, sender, self._seat.name, everyone=everyone)
        while True:
            if place != COORDINATOR:
                await self._until(lambda: self._session.wants(place))
            raw = await reader.next()
            if place == COORDINATOR and Notice.begins(raw):
                self._note_blame(raw)
                continue
            word = self._word(raw, place) if place == COORDINATOR else None
            if word is None:
                await self._take(raw, place)
            elif word.round == ABORT:
                who = self._study.coordinator
                raise AbortedError("ended by the coordinator", code=word.code.word, by=who)
            elif word.round == END:
                return

    def _note_blame(self, raw: bytes) -> None:
        """Write into the log who ended the run, and in which phase, as the coordinator says."""
        hub = self._seat.roster.coordinator
        try:
            notice = Notice.open(raw, hub.public, hub.name)
            by, phase = notice.failed
            self._party.log.event(
                "run.blamed", level="warning", run=self._study.id, party=by, phase=_word(phase),
                code=notice.code.word,
            )  # fmt: skip
        except (ProtocolError, ValueError, TrailError):
            return  # it makes no sense; the run ends without a name

    async def _take(self, raw: bytes, place: int) -> None:
        """Process a message when it is wanted and due, and do what follows from it."""
        await self._until(lambda: self._session.wants(place) and self._carrier.due(raw))
        async with self._step:
            await self._carrier.take(raw)
            await self._go_on()
        await self._tell()

    async def _go_on(self) -> None:
        """Do what the session is ready for: pay, and send what it makes by itself."""
        session = self._session
        if session.ready:
            await asyncio.to_thread(self._pay)
            await self._carrier.authorise(session.authorise)
            faultpoints.point("silo.authorised")
        if session.room and (self._upload is None or self._upload.done()):
            self._upload = self._parts.create_task(self._send_made())
            await asyncio.sleep(0)  # let the upload start before the next message
        self._note_phase()

    async def _send_made(self) -> None:
        # A message that comes while the last ones are being sent may make room for more. Nothing is
        # awaited after the last look, so that the task is either running or has seen all room.
        while self._session.room:
            await self._carrier.pump(self._tell)
        self._note_phase()
        faultpoints.point("silo.uploaded")

    async def _until(self, ready: Callable[[], bool]) -> None:
        async with self._moved:
            await self._moved.wait_for(ready)

    async def _tell(self) -> None:
        """Let those who wait look again."""
        self._moved_at, self._named = time.monotonic(), ""
        async with self._moved:
            self._moved.notify_all()

    def _word(self, raw: bytes, place: int) -> Control | None:
        """A party's control message about the run, or None if it is another message."""
        try:
            word = Control.open(self._seat.binding, raw, receiver=self._seat.place)
        except UNPROVEN:
            return None
        return word if word is not None and word.sender == place else None

    # -- records -------------------------------------------------------------------------------

    def _note_phase(self) -> None:
        if self._session.phase != self._phase:
            self._phase = self._session.phase
            self._store.mark_phase(self._study.run, self._phase)
            self._party.log.event("run.phase", run=self._study.id, phase=_word(self._phase))

    async def _abort(self, error: BaseException) -> None:
        """End the run for everyone. The others get a code; the reason stays here."""
        code = Code.OPERATOR if isinstance(error, AbortedError) else code_of(error)
        self._log_failure(error, code)
        await self._end("aborted", code.word, self._carrier.word(ABORT, code), error)

    def _log_failure(self, error: BaseException, code: Code) -> None:
        self._party.log.event(
            "run.failed", level="error", run=self._study.id, code=code.word, error=error
        )

    async def _end(
        self, state: str, code: str, last: Frozen, error: BaseException | None = None
    ) -> None:
        self._carrier.settle()
        self._party.end(self._study.run, state, code, [last], error)
        faultpoints.point("silo.ended")
        await last_words(self._carrier.repeat(), 0.0, self._party.log)
        self._carrier.settle()


def _word(phase: str) -> str | None:
    """A phase as a word for the log."""
    return phase.replace(" ", "-").replace(",", "") or None


async def last_words(saying: Coroutine[Any, Any, None], seconds: float, log: Log) -> None:
    """Try for a while to tell the others how a run ended; otherwise the deadline tells them."""
    try:
        async with asyncio.timeout(max(seconds, _LAST_WORD_SECONDS)):
            await saying
    except TimeoutError:
        pass
    except TransportError as error:
        log.event("word.unheard", level="warning", error=error)


def cause(error: BaseException) -> BaseException:
    """The first error of a group; a clone's trace before all others."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    found = [cause(part) for part in error.exceptions]
    return next((part for part in found if isinstance(part, ClonedError)), found[0])
