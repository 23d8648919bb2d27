"""The coordinator's service: proposes studies, runs them to their end, keeps their results.

The coordinator relays messages and adds up. It holds no edges and spends no budget, and it learns
what the method publishes. If it cannot finish a run, it ends the run for everyone with a signed
message.
"""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from silograph import whole_files
from silograph.errors import (
    AbortedError,
    DeadlineError,
    ProtocolError,
    SilographError,
    StoreError,
    StudyError,
    TransportError,
)
from silograph.estimators.estimate import Estimate
from silograph.estimators.folded_release import FoldedRelease
from silograph.estimators.release import Release
from silograph.estimators.release_file import FOLDED, kind_of
from silograph.graph.fold import Fold
from silograph.messages.entropy import Entropy, OsEntropy, RunEntropy
from silograph.messages.identity import COORDINATOR, Identity, Roster
from silograph.methods.catalogue import plan_study, settle_study
from silograph.methods.committee.rounds import MEMBERS
from silograph.methods.method import Outcome, SettledStudy
from silograph.methods.sealed.method import sealed_delta
from silograph.methods.study import (
    COMMITTEE,
    RELEASE,
    Index,
    Option,
    Study,
    StudyMember,
    folded_index,
    read_proposal,
)
from silograph.methods.union import default_protocol
from silograph.nats import faultpoints
from silograph.nats.carrier import UNPROVEN, Carrier, Seat, Voice
from silograph.nats.health import (
    ProgressFile,
    SiloProgress,
    StudyHealth,
    StudyProgress,
    note_trouble,
)
from silograph.nats.link import Link
from silograph.nats.pace import check_in_time
from silograph.nats.part import cause, last_words
from silograph.nats.preflight import Answer, notice_of, ping
from silograph.nats.sweep import clear_run, keep_swept
from silograph.party.approval import ABORTED, PROPOSED, check_reason, enrolled, record
from silograph.party.config import CoordinatorConfig
from silograph.party.control import (
    ABORT,
    ACCEPT,
    END,
    REFUSE,
    WAIT,
    Code,
    Control,
    Notice,
    code_of,
)
from silograph.party.log import LONGEST_WHY
from silograph.party.opened import Clock, Party, held, locked
from silograph.party.store import Frozen, Run

__all__ = ["CoordinatorService", "Question", "SiloProgress", "StudyProgress"]

#: The time limits of one attempt to reach the broker, and of all attempts together.
_ATTEMPT_SECONDS, _CONNECT_SECONDS = 5.0, 30.0
_POLL_SECONDS = 0.3
#: How often it is looked whom a study waits for, in seconds.
_LOOK_SECONDS = 2.0
#: For how many seconds after a study's deadline the broker keeps messages, if nobody removes them.
_AFTERLIFE = 3600.0
#: A year.
_LONGEST_SECONDS = 366 * 86_400


@dataclass(frozen=True)
class Question:
    """What a user asks for. The other fields of a study come from the coordinator's files."""

    query: str
    epsilon: float
    method: str = "feat"
    #: The union protocol of feat and feat+; None for committee if there are four members for it
    #: and collusion is at most 1, otherwise masked.
    protocol: str | None = None
    k: int | None = None
    #: None for what the method needs by itself.
    delta: float | None = None
    collusion: int = 1
    #: Names of the silos that take part; empty for all.
    silos: tuple[str, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)
    #: The purpose, for the people who decide whether to take part.
    purpose: str = ""
    #: Names of the four members of the committee, in their order. If they are empty and the
    #: protocol needs a committee, the service chooses.
    members: tuple[str, ...] = ()
    #: How nodes are folded; None for a union of pairs. Its hubs are a list.
    fold: Fold | None = None


Watch = Callable[[StudyProgress], None]


class CoordinatorService:
    """A coordinator with its files open."""

    def __init__(
        self,
        config: CoordinatorConfig,
        *,
        clock: Clock = time.time,
        entropy: Entropy | None = None,
    ) -> None:
        self._config = config
        self._party = Party(config, clock)
        self._entropy = entropy or OsEntropy()
        self._store = self._party.store
        #: The plans of this process, by run.
        self._plans: dict[str, SettledStudy] = {}
        self._results = config.state / "results"
        self._results.mkdir(mode=0o700, exist_ok=True)

    def close(self) -> None:
        """Close the store and the log."""
        self._party.close()

    def propose(
        self, question: Question, seconds: float, key: Identity | None = None
    ) -> SettledStudy:
        """Draft a study with a deadline in ``seconds`` from now, sign it and store it.

        If the configuration enrols people, one of them signs with ``key`` that it is proposed.
        """
        party = self._party
        reason = " ".join(question.purpose.split())[:LONGEST_WHY]
        person = enrolled(self._config.approvers, key, reason)
        names = tuple(silo.name for silo in party.roster.silos)
        if not 0 < seconds <= _LONGEST_SECONDS:  # NaN is not
            raise StudyError(f"a study takes more than 0 and at most {_LONGEST_SECONDS:,} seconds")
        strangers = set(question.silos) - set(names)
        if strangers:
            raise StudyError(f"{min(strangers)!r} is not a silo of the roster")
        silos = tuple(n for n in names if not question.silos or n in question.silos)
        protocol = question.protocol
        if protocol is None:
            could = len(silos) + len(party.roster.helpers)
            protocol = default_protocol(could, question.collusion, question.method)
        delta = question.delta
        if question.method == "sealed":
            delta = sealed_delta(delta, question.options.get("noise"))
        index = Index() if question.fold is None else folded_index(question.fold, party.universe)
        study = Study(
            run=self._entropy.bytes(16).hex(),
            query=question.query,
            method=question.method,
            protocol=protocol,
            epsilon=float(question.epsilon),
            delta=float(delta or 0.0),
            collusion=question.collusion,
            universe=party.universe.digest,
            nodes=party.universe.size or 0,
            roster=party.roster.digest.hex(),
            coordinator=party.name,
            silos=silos,
            deadline=int(party.clock() + seconds),
            k=question.k,
            options=question.options,
            purpose=question.purpose,
            members=_committee(question.members, protocol, silos, party.roster),
            index=index,
        )
        plan = settle_study(study)
        study = plan.study
        if study.query == RELEASE and study.method not in ("feat", "hubs"):
            raise StudyError(f"a study for a release is by feat or hubs, not by {study.method}")
        self._plans[study.run] = plan
        proposal, secret = study.propose(party.roster, party.identity), self._entropy.bytes(32)
        with self._store.together():
            self._store.add(study.run, proposal)
            self._store.accept(study.run, party.name, secret)
            party.trail.proposed(
                study.id, party.name, study.digest, query=study.query, method=study.method,
                protocol=study.protocol or None, epsilon=study.epsilon, delta=study.delta,
                collusion=study.collusion, deadline=datetime.fromtimestamp(study.deadline, UTC),
            )  # fmt: skip
            if person is not None:
                record(party.trail, study, party.name, PROPOSED, reason, key, person, party.clock)
        faultpoints.point("coordinator.drafted")
        return plan

    def studies(self) -> list[tuple[Study, Run]]:
        """Every study that was proposed here, with its state, if this version can read it."""
        self._end_dead()
        rows = self._store.runs()
        return [(study, run) for run in rows if (study := read_proposal(run.proposal))]

    def _end_dead(self) -> None:
        """End the studies whose deadline has passed, if no process carries them."""
        for row in self._store.runs(ended=False):
            study = read_proposal(row.proposal)
            dead = study is not None and study.deadline <= self._party.clock()
            if dead and not self.carried(row.run):
                self._party.end(row.run, "aborted", Code.DEADLINE.word)

    async def ping(self, seconds: float) -> list[Answer]:
        """Ask the services of all parties of the roster how they are; spends nothing."""
        link = await self._connect()
        try:
            return await ping(self._party, link, self._entropy, seconds, self.replicas)
        finally:
            await link.close()

    def find(self, run: str) -> tuple[Study, Run]:
        """A study by its run id, or by the first characters of it."""
        found = [run_ for run_ in self._store.runs() if run and run_.run.startswith(run)]
        if len(found) != 1:
            raise StudyError(f"{len(found) or 'no'} studies begin with {run!r}")
        study = read_proposal(found[0].proposal)
        if study is None:
            raise StudyError(f"study {found[0].run} was made by another version of Silograph")
        return study, found[0]

    def carried(self, run: str) -> bool:
        """Whether a living process carries a study."""
        return held(self._lock(run))

    def _lock(self, run: str) -> Path:
        return self._config.state / f"{run}.lock"

    def progress(self, run: str) -> StudyProgress | None:
        """How far a study is, or was when it ended; None if nobody has carried it yet."""
        return ProgressFile(self._config.state, self.find(run)[0].run).read()

    def result(self, run: str) -> dict[str, Any]:
        """The stored result of a study that is done."""
        study, row = self.find(run)
        if row.open:
            raise StudyError(f"study {study.run} has not ended")
        if row.state != "done":
            why = self._why(study) or f" ({row.code})"
            raise AbortedError(f"study {study.run} was {row.state}{why}", code=row.code)
        content = whole_files.read(self._path(study), 1 << 26, StoreError)
        found: dict[str, Any] = json.loads(content)
        return found

    def answer(self, run: str) -> Estimate[Any] | Release | FoldedRelease:
        """The answer of a study, with the release behind it if there is one; to make a page of.

        It is the release itself if that was asked for. Raises :class:`StudyError` if there is
        neither: a hub search leaves a table of nodes.
        """
        study, kept = self.find(run)[0], self.result(run)
        path, release = Path(kept["release"] or ""), None
        if path.suffix == ".release":
            release = (FoldedRelease if kind_of(path) == FOLDED else Release).load(path)
        if kept["answer"] is not None:
            origin = self.plan(study).origin(release, self._party.universe)
            return Estimate.from_dict(kept["answer"], origin)
        if release is None:
            raise StudyError(f"study {study.run[:12]} has left no answer to make a page of")
        return release

    def _path(self, study: Study) -> Path:
        return self._results / f"{study.run}.json"

    def _end_path(self, study: Study) -> Path:
        return self._results / f"{study.run}.end.json"

    def _why(self, study: Study) -> str:
        """Who ended a study, in which phase, if this machine knows."""
        try:
            found = json.loads(self._end_path(study).read_bytes())
            return f": {found['said']} ({found['code']}), in phase '{found['phase']}'"
        except (OSError, ValueError, LookupError, TypeError):
            return ""

    def keep_end(self, study: Study, said: str, code: str, progress: StudyProgress) -> None:
        """Store why a study ended without a result. It is only for people."""
        kept = {
            "said": said, "code": code, "phase": progress.phase,
            "silos": {silo.name: {"phase": silo.phase, "waiting": silo.waiting}
                      for silo in progress.silos},
        }  # fmt: skip
        try:
            content = json.dumps(kept, indent=1).encode()
            whole_files.replace(self._end_path(study), content, StoreError)
        except StoreError as error:
            self._party.log.event("end.unkept", level="warning", error=error)

    def request_abort(self, run: str, key: Identity | None = None, reason: str = "") -> None:
        """Request the end of a run; the process that carries the run will end it."""
        party, reason = self._party, check_reason(reason)
        person = enrolled(self._config.approvers, key, reason)
        study, row = self.find(run)
        if not row.open:
            return
        with self._store.together():
            if person is not None or reason:
                record(party.trail, study, party.name, ABORTED, reason, key, person, party.clock)
            self._store.decide(study.run, "abort", party.name)

    # -- carrying --------------------------------------------------------------------------

    async def carry(self, run: str, watch: Watch = lambda _progress: None) -> dict[str, Any]:
        """Carry a study from its current state to its end, and return its result.

        Raises :class:`AbortedError` if it ends without a result. Only one process at a time can
        carry a run.
        """
        study, row = self.find(run)
        lock = self._lock(study.run)
        with locked(lock, "another process carries this study"):
            if row.open or self._store.pending(study.run):
                roster = self.seat(study).roster
                others = [SiloProgress(roster.member(place).name) for place in roster.places]
                progress = StudyProgress(study.run, "proposed", others, 0, study.bits)
                health = StudyHealth(self._party, progress)
                async with health.shown():
                    health.link = link = await self._connect(progress, watch)
                    progress.trouble = ""

                    def tell(trouble: str) -> None:
                        note_trouble(self._party.log, trouble)
                        progress.trouble = link.trouble
                        watch(progress)

                    beside = [
                        asyncio.create_task(keep_swept(link, self._party, self.seat)),
                        asyncio.create_task(link.watch(lambda: [study.run], tell)),
                    ]
                    try:
                        if row.open:
                            file = ProgressFile(self._config.state, study.run, self._party.clock)

                            def shown(progress: StudyProgress) -> None:
                                file.note(progress)
                                watch(progress)

                            shown(progress)
                            run_ = _CoordinatorRun(self, study, row, link, progress, shown)
                            await _while_usable(link, run_.carry())
                        else:
                            await self._repeat(study, link)
                        await clear_run(link, self.seat(study))
                    finally:
                        for task in beside:
                            task.cancel()
                        await link.close()
        lock.unlink(missing_ok=True)
        return self.result(study.run)

    async def _connect(
        self, progress: StudyProgress | None = None, watch: Watch = lambda _progress: None
    ) -> Link:
        """Connect to the broker, in several attempts, since an interruption may be short."""
        limit = time.monotonic() + _CONNECT_SECONDS
        while True:
            try:
                name = self._party.name
                return await Link.connect(self._config.broker, name, _ATTEMPT_SECONDS)
            except TransportError as error:
                if time.monotonic() > limit or error.lasting:
                    raise
                if progress is not None:
                    progress.phase, progress.trouble = "connecting", str(error)
                    watch(progress)
                await asyncio.sleep(_POLL_SECONDS)

    async def _repeat(self, study: Study, link: Link) -> None:
        """Send the last message of a run that has ended, in case the broker does not have it."""
        voice, now = Voice(self.seat(study), self._store, link), self._party.clock()
        await last_words(voice.repeat(), study.deadline - now, self._party.log)
        voice.settle()

    def plan(self, study: Study) -> SettledStudy:
        """The plan of a study, computed once."""
        if study.run not in self._plans:
            self._plans[study.run] = plan_study(study)
        return self._plans[study.run]

    def seat(self, study: Study) -> Seat:
        """The coordinator's place in a run."""
        members = study.parties(self._party.roster)
        return Seat(study, members, COORDINATOR, self._party.identity, "coordinator")

    @property
    def replicas(self) -> int:
        """How many servers of the broker keep a copy of every stream."""
        return self._config.replicas

    @property
    def party(self) -> Party:
        """The coordinator's open files."""
        return self._party

    def save(self, plan: SettledStudy, outcome: Outcome, seen: dict[str, Any]) -> None:
        """Store an answer and its release; on return they are on the disk."""
        study = plan.study
        release = outcome.save(self._results, study.run)
        kept = {
            "study": json.loads(study.encode()),
            "protocol": plan.protocol,
            "answer": None if outcome.answer is None else outcome.answer.to_dict(),
            "views": [{"name": v.name, "epsilon": v.epsilon, "delta": v.delta,
                       "claimed": v.claimed} for v in plan.views],
            "release": None if release is None else str(release),
            **seen,
        }  # fmt: skip
        content = json.dumps(kept, indent=1).encode()
        whole_files.replace(self._path(study), content, StoreError)


async def _while_usable(link: Link, carrying: Coroutine[Any, Any, None]) -> None:
    """Carry a run until its end, or until the connection cannot be used any more.

    Then the run stays open, and another start goes on with it.
    """
    work, ended = asyncio.ensure_future(carrying), asyncio.ensure_future(link.ended())
    try:
        await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
        (work if work.done() else ended).result()
    finally:
        for task in (work, ended):
            task.cancel()
        await asyncio.gather(work, ended, return_exceptions=True)


def _committee(
    asked: tuple[str, ...], protocol: str, silos: tuple[str, ...], roster: Roster
) -> tuple[StudyMember, ...]:
    """The members of a study's committee: those that were asked for, or the first that fit.

    These are silos of the study, then helpers; of different organisations, if there are enough.
    """
    found = [StudyMember(member.name, "silo") for member in roster.silos if member.name in silos]
    found += [StudyMember(member.name, "helper") for member in roster.helpers]
    known = {member.name: member for member in found}
    if asked:
        hub = roster.coordinator.name
        known[hub] = StudyMember(hub, "coordinator")
        for name in asked:
            if name not in known:
                raise StudyError(
                    f"{name!r} cannot be a member of the committee: it is not a silo of the study, "
                    "a helper or the coordinator"
                )
        return tuple(known[name] for name in asked)
    if protocol != COMMITTEE:
        return ()
    if len(found) < MEMBERS:
        raise StudyError(
            f"a committee has four members, and there are {len(found)} silos and helpers; name "
            "helpers in the roster, or choose another protocol or method"
        )
    houses = {member.name: member.organisation for member in roster.members}
    first = [
        member
        for i, member in enumerate(found)
        if houses[member.name] not in {houses[other.name] for other in found[:i]}
    ]
    return tuple([*first, *(member for member in found if member not in first)][:MEMBERS])


class _CoordinatorRun:
    """One study that is being carried."""

    def __init__(
        self,
        service: CoordinatorService,
        study: Study,
        row: Run,
        link: Link,
        progress: StudyProgress,
        watch: Watch,
    ) -> None:
        self._service = service
        self._study = study
        self._link = link
        self._watch = watch
        party = service.party
        self._store, self._clock, self._log = party.store, party.clock, party.log
        self._plan = service.plan(study)
        seat = service.seat(study)
        assert row.secret is not None  # noqa: S101 - it was accepted, and is open
        entropy = RunEntropy(row.secret)
        self._session = self._plan.coordinator(seat.roster, seat.identity, entropy)
        self._proposal = row.proposal
        self._carrier = Carrier(seat, self._session, self._store, link, party.log)
        self._progress = progress
        self._moved = asyncio.Condition()
        self._step = asyncio.Lock()
        self._parts = asyncio.TaskGroup()
        self._making: asyncio.Task[None] | None = None

    async def carry(self) -> None:
        """Carry the run until its result is stored and announced, or until it is aborted."""
        left = max(self._study.deadline - self._clock(), 0.0)
        looking = asyncio.create_task(self._look())
        try:
            async with asyncio.timeout(left):
                await self._make_streams(left)
                self._study.check_proposed()  # another version may have begun it
                await self._check_line()
                await self._carrier.repeat()
                await self._link.announce(self._proposal, self._service.replicas)
                faultpoints.point("coordinator.proposed")
                await self._rounds()
            # All messages are here, so the deadline no longer applies.
            await asyncio.to_thread(self._keep)
        except TimeoutError:
            await self._abort(DeadlineError("the study's deadline has passed"), Code.DEADLINE)
        except Exception as error:
            found = cause(error)
            refused = isinstance(found, AbortedError)
            await self._abort(found, Code.REFUSED if refused else code_of(found))
        else:
            await self._end("done", "", self._carrier.word(END))
        finally:
            looking.cancel()

    async def _make_streams(self, left: float) -> None:
        """Create the streams of all parties, before any of them hears of the run."""
        if left > 0:
            roster, hub = self._carrier.seat.roster, self._study.coordinator
            names = [hub, *(roster.member(place).name for place in roster.places)]
            replicas, lifetime = self._service.replicas, left + _AFTERLIFE
            await self._link.make_streams(self._study.run, names, lifetime, replicas)

    async def _check_line(self) -> None:
        """Raise, before anyone is asked, if the line is too slow for the study's deadline."""
        if not self._store.left(self._study.run):  # nothing has begun
            await check_in_time(
                self._plan.line(coordinator=True),
                lambda: self._study.deadline - self._clock(),
                lambda size: self._link.measure(self._study.run, size),
            )

    async def _rounds(self) -> None:
        async with self._parts as parts:
            watching = parts.create_task(self._listen_to_operator())
            await self._carrier.start()
            places = self._carrier.seat.roster.places
            listening = [parts.create_task(self._listen(place)) for place in places]
            async with self._moved:
                await self._moved.wait_for(lambda: self._session.done)
            for task in (watching, *listening, *filter(None, [self._making])):
                task.cancel()

    async def _listen(self, place: int) -> None:
        """Process the messages of a silo or a helper, without getting too far ahead of the others.

        What they write to each other is not read.
        """
        silo, hub = self._progress.silos[place], self._study.coordinator
        reader = self._link.reader_of(self._study.run, silo.name, hub, everyone=True)
        while True:
            async with self._moved:
                await self._moved.wait_for(lambda: self._session.wants(place))
            raw = await reader.next()
            self._check_notice(raw, silo)
            silo.bytes += len(raw)
            word = self._word(raw, place)
            if word is None or word.round != WAIT:
                silo.messages += 1
                self._progress.moved = time.monotonic()
            if word is None:
                await self._take(raw, silo)
            elif word.round == WAIT and silo.phase == "asked":
                silo.phase = "undecided"
            elif word.round == ACCEPT:
                silo.phase = "accepted"
            elif word.round in (REFUSE, ABORT):
                silo.phase = "refused" if word.round == REFUSE else "aborted"
                what = f"{silo.name} {silo.phase} the study"
                raise AbortedError(what, code=word.code.word, by=silo.name)
            await self._tell()

    def _check_notice(self, raw: bytes, silo: SiloProgress) -> None:
        """End the study if a silo says that it could not even store it."""
        if not Notice.begins(raw):
            return
        roster = self._service.party.roster
        (member,) = (found for found in roster.members if found.name == silo.name)
        try:
            notice = Notice.open(raw, member.public, member.name)
        except ProtocolError:
            return  # anyone could have sent it
        if notice.about != self._study.id or notice.code == Code.NONE:
            return
        silo.phase = "refused"
        reasons = {
            Code.ROSTER: f"it has another roster, {notice.roster[:16]}…",
            Code.CLOCK: f"its clock is {notice.offset or 0:+.0f} s off the broker's",
            Code.DEADLINE: "its deadline had passed when it came: set this machine's clock",
            Code.BUSY: "it has as many studies as it allows",
        }
        why = reasons.get(notice.code, "it could not be stored")
        word = notice.code.word
        raise AbortedError(f"{silo.name} refused the study: {why}", code=word, by=silo.name)

    async def _look(self) -> None:
        """Show whom the run waits for, also while nothing comes."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self._progress.trouble = self._link.trouble
            self._show()

    async def _tell(self) -> None:
        """Show how far the run is, and let those who wait look again."""
        self._show()
        async with self._moved:
            self._moved.notify_all()

    async def _take(self, raw: bytes, silo: SiloProgress) -> None:
        """Process a message when it is due, and send everything that follows from it."""
        async with self._moved:
            await self._moved.wait_for(lambda: self._carrier.due(raw))
        async with self._step:
            if await self._carrier.take(raw):
                silo.phase = self._session.phase
                await self._make()

    async def _make(self) -> None:
        """Let the session do what it does by itself: now, or while other messages come."""
        if not self._session.room:
            return
        if not self._session.interruptible:
            await self._carrier.pump()
        elif self._making is None or self._making.done():
            self._making = self._parts.create_task(self._keep_making())

    async def _keep_making(self) -> None:
        # Nothing is awaited after the last look, so that the task is running or has seen all room.
        while self._session.room:
            await self._carrier.pump(self._tell)

    def _word(self, raw: bytes, place: int) -> Control | None:
        """A silo's control message about the run, or None if the message is for the carrier."""
        try:
            word = Control.open(self._carrier.seat.binding, raw, receiver=COORDINATOR)
        except UNPROVEN:
            return None
        return word if word is not None and word.sender == place else None

    async def _listen_to_operator(self) -> None:
        while True:
            run = self._store.run(self._study.run)
            if run is not None and run.decision == "abort":
                raise AbortedError("ended by the operator", code="operator")
            await asyncio.sleep(_POLL_SECONDS)

    def _show(self) -> None:
        self._progress.phase = self._session.phase
        self._progress.done, self._progress.total = self._session.progress
        self._progress.name_waits()
        self._watch(self._progress)

    def _keep(self) -> None:
        outcome = self._plan.outcome(self._session.result(), self._service.party.universe)
        faultpoints.point("coordinator.result")
        sent = sum(size for _, _, size in self._store.left(self._study.run))
        seen = {
            "seconds": round(self._progress.seconds, 3),
            "bytes": {"received": self._progress.bytes, "sent": sent},
        }
        self._service.save(self._plan, outcome, seen)
        faultpoints.point("coordinator.saved")

    async def _abort(self, error: BaseException, code: Code) -> None:
        self._log.event(
            "run.failed", level="error", run=self._study.id, code=code.word, error=error
        )
        word = getattr(error, "code", code.word)
        self._progress.phase = self._session.phase
        said = str(error) if isinstance(error, SilographError) else type(error).__name__
        if code == Code.DEADLINE:
            said = f"{said}; waiting for {self._progress.awaited}"
        self._service.keep_end(self._study, said, word, self._progress)
        by = getattr(error, "by", "") or getattr(error, "silo", None)
        if isinstance(by, str) and by:
            await last_words(self._blame(by, code), 0.0, self._log)
        await self._end("aborted", word, self._carrier.word(ABORT, code), error)

    async def _blame(self, by: str, code: Code) -> None:
        """Tell the others who ended the run, and in which phase. They need not believe it."""
        party, phase = self._service.party, self._progress.phase
        notice = notice_of(party, self._study.id, code, failed=(by, phase))
        await self._link.notify(self._study.run, notice.seal(party.identity))

    async def _end(
        self, state: str, code: str, last: Frozen, error: BaseException | None = None
    ) -> None:
        self._carrier.settle()
        self._service.party.end(self._study.run, state, code, [last], error)
        faultpoints.point("coordinator.ended")
        await last_words(self._carrier.repeat(), 0.0, self._log)
        self._carrier.settle()
        self._progress.phase = state
        self._watch(self._progress)
