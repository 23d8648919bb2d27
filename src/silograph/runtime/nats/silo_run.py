"""A silo's part in one run, from its acceptance to its end.

Spend first: the run's whole cost is in the ledger before anything that depends on edges leaves.
"""

import asyncio
import math
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from silograph.errors import AbortedError, DeadlineError, TransportError
from silograph.graph.silo import Silo
from silograph.methods.plans import StudyPlan
from silograph.protocol.roster import COORDINATOR
from silograph.runtime import faultpoints, subjects
from silograph.runtime.control import ABORT, ACCEPT, END, Code, Control, code_of
from silograph.runtime.entropy import RunEntropy
from silograph.runtime.journal import Journal
from silograph.runtime.ledger import Ledger
from silograph.runtime.nats.carrier import UNPROVEN, Carrier, Seat
from silograph.runtime.nats.link import Link, stream_name
from silograph.runtime.party import Party
from silograph.runtime.store import Frozen

__all__ = ["Books", "SiloRun", "cause", "last_words"]

#: The least time for which a party tries to tell others that it ended a run.
_LAST_WORD_SECONDS = 5.0


@dataclass(frozen=True)
class Books:
    """Where a silo writes down what it does: its store and logs, and the ledger's lineage."""

    party: Party
    ledger: Ledger
    lineage: str
    #: The ledger's name for a spend of this silo's studies.
    phase: str


class SiloRun:
    """One run that the silo has accepted."""

    def __init__(self, seat: Seat, plan: StudyPlan, silo: Silo, books: Books, link: Link) -> None:
        self._study = seat.study
        self._books = books
        self._store, self._clock = books.party.store, books.party.clock
        self._link = link
        self._plan = plan
        run = self._store.run(seat.study.run)
        assert run is not None and run.secret is not None  # noqa: S101, PT018 - it was accepted
        entropy = RunEntropy(run.secret)
        self._session = self._plan.silo(seat.roster, seat.place, seat.identity, entropy, silo)
        self._carrier = Carrier(seat, self._session, self._store, link, books.party.journal)
        self._phase = run.phase
        self._given_up = False

    def give_up(self) -> None:
        """Say that the operator ends the run; whoever says so cancels its task."""
        self._given_up = True

    async def carry(self) -> None:
        """Take part until the end. Whatever ends the run is written down and told."""
        try:
            async with asyncio.timeout(max(self._study.deadline - self._clock(), 0.0)):
                await self._carrier.open(self._clock())
                await self._carrier.say(ACCEPT)
                await self._carrier.start()
                await self._rounds()
        except TimeoutError:
            await self._abort(DeadlineError("the study's deadline has passed"))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._given_up or task is None:
                raise  # the service stops; the run goes on another time
            task.uncancel()
            await self._abort(AbortedError("ended by the operator", code="operator"))
        except Exception as error:
            found = cause(error)
            if isinstance(found, AbortedError):  # by the coordinator: all know it
                await self._end("aborted", found.code, error=found)
            else:
                await self._abort(found)
        else:
            await self._end("done")
            await self._carrier.clear()

    async def _rounds(self) -> None:
        """Take messages, pay, and upload, until the coordinator says that it has all."""
        study, session = self._study, self._session
        theirs = f"{subjects.PREFIX}.{study.run}.{study.coordinator}"
        filters = [f"{theirs}.{self._carrier.seat.name}.>", f"{theirs}.{subjects.ALL}.>"]
        reader = self._link.reader(stream_name(study.run, study.coordinator), filters)
        async with asyncio.TaskGroup() as making:
            upload: asyncio.Task[None] | None = None
            while True:
                if session.ready:
                    await asyncio.to_thread(self._pay)
                    await self._carrier.authorise(session.authorise)
                    faultpoints.point("silo.authorised")
                if session.room and (upload is None or upload.done()):
                    upload = making.create_task(self._upload())
                    await asyncio.sleep(0)  # what is made comes before what is taken next
                self._note_phase()
                raw = await reader.next()
                word = self._word(raw)
                if word is None:
                    await self._carrier.take(raw)
                elif word.round == ABORT:
                    who = study.coordinator
                    raise AbortedError("ended by the coordinator", code=word.code.word, by=who)
                elif word.round == END:
                    if not session.done:
                        raise AbortedError("ended early", code="protocol", by=study.coordinator)
                    break

    def _pay(self) -> None:
        """The whole cost of the run, on the disk before anything of it leaves; once, ever."""
        plan, study, books = self._plan, self._study, self._books
        spend = books.ledger.spend(
            books.lineage, study.run, books.phase, plan.losses, plan.delta, view=plan.view,
            method=plan.what, unbounded=any(map(math.isinf, plan.losses.values())),
        )  # fmt: skip
        faultpoints.point("silo.spent")
        witness = books.ledger.witness()
        self._store.mark_spent(study.run, str(witness))
        books.party.trail.spent(
            study.id, books.lineage, spend.losses[study.collusion], plan.delta, study.collusion,
            witness.serial, bytes.fromhex(witness.digest),
        )  # fmt: skip

    async def _upload(self) -> None:
        await self._carrier.pump()
        self._note_phase()
        faultpoints.point("silo.uploaded")

    def _word(self, raw: bytes) -> Control | None:
        """A word of the coordinator about the run; anything else is left to the carrier."""
        try:
            seat = self._carrier.seat
            word = Control.open(seat.binding, raw, receiver=seat.place)
        except UNPROVEN:
            return None
        return word if word is not None and word.sender == COORDINATOR else None

    def _note_phase(self) -> None:
        if self._session.phase != self._phase:
            self._phase = self._session.phase
            self._store.mark_phase(self._study.run, self._phase)
            phase = self._phase.replace(" ", "-").replace(",", "")
            self._books.party.journal.event("run.phase", run=self._study.id, phase=phase)

    async def _abort(self, error: BaseException) -> None:
        """End the run for all: a code goes out, the reason stays here."""
        code = Code.OPERATOR if isinstance(error, AbortedError) else code_of(error)
        self._books.party.journal.event(
            "run.failed", level="error", run=self._study.id, code=code.word, error=error
        )
        await self._end("aborted", code.word, self._carrier.word(ABORT, code), error)

    async def _end(
        self,
        state: str,
        code: str = "",
        last: Frozen | None = None,
        error: BaseException | None = None,
    ) -> None:
        run, trail = self._study.run, self._books.party.trail
        self._carrier.settle()
        self._store.end(run, state, code, [last] if last else [])
        faultpoints.point("silo.ended")
        for kind, messages, size in self._store.left(run):
            trail.left(self._study.id, kind, messages, size)
        trail.ended(self._study.id, f"{state}/{code}" if code else state, error)
        if last is not None:
            await last_words(self._carrier.repeat(), 0.0, self._books.party.journal)
            self._carrier.settle()


async def last_words(saying: Coroutine[Any, Any, None], seconds: float, journal: Journal) -> None:
    """Tell others how a run ended, for a while; if that does not work, they see the deadline."""
    try:
        async with asyncio.timeout(max(seconds, _LAST_WORD_SECONDS)):
            await saying
    except TimeoutError:
        pass
    except TransportError as error:
        journal.event("word.unheard", level="warning", error=error)


def cause(error: BaseException) -> BaseException:
    """The first error of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
