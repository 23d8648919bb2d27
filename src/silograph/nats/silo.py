"""The service of a silo or a helper: decides on proposals and takes part in runs.

A helper is a member of committees. It has no edges, so it has no data and pays nothing; everything
else is as for a silo. The reason of a failure goes to the party's own log; other parties get only a
code.
"""

import asyncio
import contextlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from silograph.dp.loss import shown_loss
from silograph.errors import (
    BudgetError,
    BusyError,
    ClonedError,
    DeadlineError,
    PolicyError,
    SilographError,
    StoreError,
    StudyError,
    TrailError,
    TransportError,
)
from silograph.graph.bits import PairBits, in_memory
from silograph.ledger.book import Ledger
from silograph.ledger.entries import Amount, Spend, loss_at
from silograph.messages.entropy import Entropy, OsEntropy, RunEntropy
from silograph.messages.machine import SiloSession
from silograph.methods.catalogue import plan_study
from silograph.methods.method import SettledStudy
from silograph.methods.study import Study, open_proposal, read_proposal
from silograph.nats import faultpoints
from silograph.nats.carrier import Seat, Voice
from silograph.nats.health import Health, Metrics, MetricsBoard, note_trouble
from silograph.nats.link import STUDIES_STREAM, Link
from silograph.nats.notices import Notices
from silograph.nats.part import SiloRun, last_words
from silograph.nats.preflight import check_lineage
from silograph.nats.sweep import keep_swept, past_use
from silograph.party import accounts
from silograph.party.approval import check_approved
from silograph.party.config import HelperConfig, SiloConfig, load_silo
from silograph.party.control import ABORT, REFUSE, WAIT, Code, Notice, code_of
from silograph.party.notice import Notice as Call
from silograph.party.notice import Waiting
from silograph.party.opened import Clock, Party
from silograph.party.snapshots import Snapshots
from silograph.party.store import Frozen, Run

__all__ = ["Books", "HelperService", "Service", "SiloService", "service_of"]

_CONNECT_SECONDS = 5.0
_POLL_SECONDS = 0.3
#: The status file is written at least once in this many polls.
_REPORT_EVERY = 30
#: A wait is named in the log after so many seconds.
_SILENT_SECONDS = 5.0
#: The most studies that are open at the same time, and the most bytes of stored proposals.
_MOST_OPEN, _MOST_STORED = 32, 64 << 20

#: Gets lines for the operator while a service starts and serves.
Tell = Callable[[str], None]


# --- What silos and helpers have in common --------------------------------------------------------


class Service(ABC):
    """One party with its files open, which serves until it is told to stop."""

    def __init__(
        self,
        config: SiloConfig | HelperConfig,
        *,
        clock: Clock = time.time,
        entropy: Entropy | None = None,
    ) -> None:
        self._config = config
        self._party = Party(config, clock)
        self._store = self._party.store
        self._log, self._trail = self._party.log, self._party.trail
        self._entropy = entropy or OsEntropy()
        self._started = clock()
        self._link: Link | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._runs: dict[str, SiloRun] = {}
        self._unsaid: set[str] = set()  # runs that ended here before anyone was told
        self._judged: set[str] = set()  # runs that were decided, or wait for the operator
        self._studies: dict[str, Study] = {}  # verified
        self._plans: dict[str, SettledStudy] = {}  # settled
        self._uncalled: list[Study] = []  # studies that wait, and nobody was called
        self._calls: set[asyncio.Future[None]] = set()
        self._failed: asyncio.Future[None] | None = None
        self._tell: Tell = lambda _line: None
        self._trouble = "not connected yet"  # why there is no connection
        self._lost_since: float | None = None
        self._writing = asyncio.Lock()  # the status file
        self._asking: set[str] = set()  # runs that wait for the operator, before anyone was told
        self._notices = Notices(config, self._party, lambda: self._budget)
        #: What the operator should know when the service starts.
        self.notes: list[str] = []
        try:
            self._trail.verify()
        except TrailError as error:  # no message depends on it, so runs go on
            self._log.event("trail.damaged", level="error", error=error)
            self.notes.append(f"the audit trail is damaged: {error}")

    # -- what only one kind of party has -------------------------------------------------------

    @property
    @abstractmethod
    def what(self) -> str:
        """What the party serves with, for its operator."""

    @abstractmethod
    def _check_own(self, plan: SettledStudy) -> None:
        """Raise if the party's own state is a reason not to take part in a study."""

    @abstractmethod
    def _session(self, plan: SettledStudy, seat: Seat, run: Run, entropy: Entropy) -> SiloSession:
        """Make the party's session in a run."""

    @abstractmethod
    def _pay(self, plan: SettledStudy) -> None:
        """Record the whole cost of a run. Repeating it spends nothing more."""

    @abstractmethod
    def _cloned(self, study: Study, error: ClonedError) -> None:
        """Somebody else has signed with this party's key in a run: stop what that endangers."""

    @abstractmethod
    def _metrics(self, health: Health) -> Metrics:
        """The party's metrics."""

    @property
    @abstractmethod
    def _data(self) -> str:
        """The digest of the edges that a new run is accepted with; empty without edges."""

    @abstractmethod
    def _tidy(self) -> None:
        """Remove what no open run needs any more."""

    @property
    def _budget(self) -> Ledger | None:
        """The ledger, where the party has one."""
        return None

    # -- serving -----------------------------------------------------------------------------

    async def serve(self, stop: asyncio.Event, tell: Tell | None = None) -> None:
        """Serve until ``stop`` is set. Open runs continue when the service starts again.

        ``tell`` gets a line when the service begins to serve, and why it does not.
        """
        self._tell = tell or self._tell
        self._log.event("service.started", party=self._party.name)
        metrics = self._config.metrics
        try:
            with MetricsBoard(metrics.file, metrics.port) as board:
                reporting = asyncio.ensure_future(self._report(board))
                try:
                    await self._serve(stop, reporting)
                finally:
                    await _cancel([reporting])
        finally:
            if self._link is not None:
                await self._link.close()
            self._log.event("service.stopped", party=self._party.name)

    async def _serve(self, stop: asyncio.Event, reporting: asyncio.Future[None]) -> None:
        self._link = await self._connected(stop)
        if self._link is None:
            return
        self._failed = asyncio.get_running_loop().create_future()
        for run in self._store.runs():
            self._resume(run)
        swept = keep_swept(self._link, self._party)
        watching = self._link.watch(lambda: list(self._runs), self._note_trouble)
        ended, hearing = self._link.ended(), self._hear(self._link)
        work = (stop.wait(), ended, hearing, self._poll(), swept, watching)
        serving: list[asyncio.Future[Any]] = [asyncio.ensure_future(part) for part in work]
        done, _ = await asyncio.wait(
            {*serving, reporting, self._failed}, return_when=asyncio.FIRST_COMPLETED
        )
        await _cancel([*serving, *self._tasks.values(), *self._notices.tasks, *self._calls])
        for task in done:
            task.result()

    def _note_trouble(self, trouble: str) -> None:
        note_trouble(self._log, trouble)

    def close(self) -> None:
        """Close the store and the log."""
        self._party.close()

    async def _connected(self, stop: asyncio.Event) -> Link | None:
        while not stop.is_set():
            try:
                return await Link.connect(self._config.broker, self._party.name, _CONNECT_SECONDS)
            except TransportError as error:
                if str(error) != self._trouble:  # once for each cause
                    self._log.event("broker.unreachable", level="warning", error=error)
                    self._trouble = str(error)
                    if not error.lasting:
                        self._tell(f"not serving yet: {error}")
                if error.lasting:
                    raise
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 1.0)
        return None

    async def _hear(self, link: Link) -> None:
        """Read proposals and pings, beginning with the first that the broker still has."""
        reader = link.reader(STUDIES_STREAM)
        await reader.ready()  # the broker has answered under this party's name
        self._trouble = ""
        await self._write_status()  # who is told finds it written
        self._tell("serving")
        self._log.event("service.serving", party=self._party.name)
        while True:
            raw = await reader.next()
            if Notice.begins(raw):
                self._notices.say(self._notices.answer(link, raw, reader.when))
                continue
            try:
                await asyncio.to_thread(self._consider, raw)
            except Exception as error:  # no message from outside may stop the service
                self._log.event("study.dropped", level="warning", error=error)
                self._notices.say(self._notices.refuse(link, raw, reader.when, error))
            self._act()

    async def _poll(self) -> None:
        """Act regularly on the operator's decisions and on deadlines."""
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            self._act()
            self._name_waits()

    def _name_waits(self) -> None:
        """Write into the log what the service waits for, once for each cause."""
        link, now = self._line, time.monotonic()
        if link.connected:
            if self._lost_since is not None and self._trouble:
                self._log.event("broker.restored")
            self._lost_since, self._trouble = None, ""
        else:
            self._lost_since = now if self._lost_since is None else self._lost_since
            if now - self._lost_since > _SILENT_SECONDS and link.trouble != self._trouble:
                self._trouble = link.trouble
                self._log.event("broker.lost", level="warning", error=TransportError(self._trouble))
        for run in self._runs.values():
            run.name_wait(_SILENT_SECONDS)

    def _act(self) -> None:
        asking, self._asking = self._asking, set()
        for name in asking:
            if name in self._studies:
                self._notices.say(self._say_waiting(self._studies[name]))
        waiting = self._config.waiting
        while self._uncalled and waiting is not None:
            calling = asyncio.ensure_future(self._call(self._uncalled.pop(), waiting))
            self._calls.add(calling)
            calling.add_done_callback(self._calls.discard)
        unsaid, self._unsaid = self._unsaid, set()
        refused = [run for name in unsaid if (run := self._store.run(name)) is not None]
        for run in (*self._store.runs(ended=False), *refused):
            if run.run not in self._tasks:
                self._resume(run)
            elif run.open and run.decision == "abort" and run.run in self._runs:
                self._runs.pop(run.run).give_up()
                self._tasks[run.run].cancel()

    def _resume(self, run: Run) -> None:
        """Continue a run from its stored state."""
        if not run.open:
            if self._store.pending(run.run):
                self._spawn(run.run, self._repeat(run))
            return
        study = self._reopen(run)
        if study is None:
            return
        if run.decision == "accepted":
            if run.secret is None:  # accepted by people: check the policy too
                if not self._allowed(study) or not self._approved(study):
                    return
                self._accept(study, run.decided_by)
            self._spawn(run.run, self._take_part(study))
        elif run.decision:
            self._refuse(study, Code.OPERATOR, run.decided_by)
        elif study.deadline <= self._party.clock():
            self._refuse(study, Code.DEADLINE, "deadline")
        elif run.run not in self._judged:  # the service stopped before it decided
            self._judge(study)

    def _reopen(self, run: Run) -> Study | None:
        """The study of a stored proposal; None, and the run ends, if it can no longer be opened.

        The roster or the version may have changed since. A stored proposal must never stop the
        service.
        """
        known = self._studies.get(run.run)
        if known is not None:
            return known
        try:
            study = open_proposal(run.proposal, self._party.roster)
        except Exception as error:
            if run.open:
                self._give_up(run.run, error)
            return None
        if run.open:
            self._studies[run.run] = study
        return study

    def _give_up(self, run: str, error: Exception, *words: Frozen) -> None:
        """End a run that cannot continue; ``words`` are yet to be sent."""
        self._log.event("run.failed", level="error", run=run, error=error)
        self._party.end(run, "aborted", code_of(error).word, words, error)

    def _cannot_begin(self, study: Study, error: Exception) -> None:
        """End an accepted run for everyone, so that nobody waits or pays for it."""
        word = Voice(self._seat(study), self._store, self._line).word(ABORT, code_of(error))
        self._give_up(study.run, error, word)
        self._tasks.pop(study.run, None)  # so that the next _act sends the message
        self._unsaid.add(study.run)
        self._forget(study.run)
        self._tidy()

    def _spawn(self, run: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks[run] = asyncio.create_task(work)
        task.add_done_callback(self._watch)

    def _watch(self, task: asyncio.Task[None]) -> None:
        """A run handles its own errors, so one that still raises stops the service."""
        if not task.cancelled() and task.exception() is not None:
            error = task.exception()
            assert self._failed is not None and error is not None  # noqa: S101, PT018
            if not self._failed.done():
                self._failed.set_exception(error)

    # -- deciding ----------------------------------------------------------------------------

    def _consider(self, raw: bytes) -> None:
        """Store a new proposal and decide on it."""
        study = open_proposal(raw, self._party.roster)
        helpers = [member.name for member in study.members if member.kind == "helper"]
        if self._party.name not in (*study.silos, *helpers):
            return
        known = self._store.run(study.run) is not None
        if not known and study.deadline <= self._party.clock():
            raise DeadlineError("the study's deadline had passed before it came")
        if not known:
            self._make_room(len(raw))
        self._judged.add(study.run)  # so that _resume does not judge it at the same time
        unwritten: Exception | None = None
        with self._store.together():
            if not self._store.add(study.run, raw):
                return
            self._studies[study.run] = study
            try:
                self._trail.proposed(
                    study.id, study.coordinator, study.digest, query=study.query,
                    method=study.method, protocol=study.protocol or None, epsilon=study.epsilon,
                    delta=study.delta, collusion=study.collusion,
                    deadline=datetime.fromtimestamp(study.deadline, UTC),
                )  # fmt: skip
            except Exception as error:
                unwritten = error
        if unwritten is not None:  # no trail entry, no taking part
            self._refuse(study, code_of(unwritten), "policy", unwritten)
            return
        faultpoints.point("silo.proposed")
        self._judge(study)

    def _make_room(self, size: int) -> None:
        """Refuse a proposal for which there is no room.

        Proposals of old studies that cost nothing are forgotten first. If one of them came again,
        it would be dropped, since its deadline has passed.
        """
        if len(self._store.runs(ended=False)) >= _MOST_OPEN:
            raise BusyError(f"{_MOST_OPEN} studies are open here, which is the most at one time")
        if self._store.proposed() + size <= _MOST_STORED:
            return
        now = self._party.clock()
        old = [
            run.run for run in self._store.runs()
            if not run.open and not run.spent and run.state != "done"
            and ((study := read_proposal(run.proposal)) is None or study.deadline <= now)
        ]  # fmt: skip
        self._store.forget(old)
        if self._store.proposed() + size > _MOST_STORED:
            raise BusyError(f"proposals of {_MOST_STORED:,} bytes are stored here, the most")

    def _judge(self, study: Study) -> None:
        """Refuse or accept a study, or leave the decision to the operator."""
        self._judged.add(study.run)
        if not self._allowed(study):
            return
        if self._config.policy.accept == "auto":
            self._accept(study, "policy")
        else:
            self._asking.add(study.run)
            if self._config.waiting is not None:
                self._uncalled.append(study)

    def _approved(self, study: Study) -> bool:
        """Whether enough enrolled people have signed; if not, the study is refused here."""
        config = self._config
        try:
            check_approved(self._trail, study, config.name, config.policy, config.approvers)
        except SilographError as error:
            self._refuse(study, code_of(error), "policy", error)
            return False
        return True

    async def _call(self, study: Study, waiting: Waiting) -> None:
        """Tell people that a study waits for them. Whatever happens, nothing depends on it."""
        try:
            await Call(self._party.name, study).give(waiting)
        except Exception as error:
            self._log.event("notice.failed", level="warning", run=study.run, error=error)

    def _allowed(self, study: Study) -> bool:
        """Whether the party may take part in a study; if not, the study is refused here."""
        try:
            self._check(study)
        except Exception as error:  # what cannot be judged is refused
            self._refuse(study, code_of(error), "policy", error)
            return False
        return True

    def _check(self, study: Study) -> None:
        """Raise if there is a reason not to take part in a study."""
        if self._party.has_universe:
            universe = self._party.universe
            if study.universe != universe.digest or study.nodes != (universe.size or 0):
                raise StudyError("the study is about another node list")
            study.index.check_ids(universe)
        self._check_terms(study)
        self._check_own(self._plan(study))

    def _check_terms(self, study: Study) -> None:
        """Raise if the policy does not allow a study."""
        policy, roster = self._config.policy, self._party.roster
        policy.check_fields(study, len(roster.silos), self._party.clock())
        policy.check_committee(study, roster)
        policy.check(self._plan(study))

    def _plan(self, study: Study) -> SettledStudy:
        if study.run not in self._plans:
            self._plans[study.run] = plan_study(study)
        return self._plans[study.run]

    def _forget(self, run: str) -> None:
        """Drop what is kept in memory about a run that is over."""
        self._plans.pop(run, None)
        self._studies.pop(run, None)
        self._runs.pop(run, None)

    def _accept(self, study: Study, by: str) -> None:
        secret = self._entropy.bytes(32)
        with self._store.together():
            row = self._store.run(study.run)
            if row is None or not row.open:  # it was refused meanwhile
                return
            self._trail.decided(study.id, by, "accepted")
            self._store.accept(study.run, by, secret, self._data)
        faultpoints.point("silo.accepted")

    def _refuse(self, study: Study, code: Code, by: str, error: Exception | None = None) -> None:
        word = Voice(self._seat(study), self._store, self._line).word(REFUSE, code)
        with self._store.together():
            row = self._store.run(study.run)
            if row is None or not row.open:  # another thread has refused it
                return
            self._trail.decided(study.id, by, f"refused/{code.word}", error)
            self._party.end(study.run, "refused", code.word, [word])
        self._forget(study.run)
        self._unsaid.add(study.run)

    async def _say_waiting(self, study: Study) -> None:
        """Tell the others that this party's operator has to decide."""
        voice = Voice(self._seat(study), self._store, self._line)
        left = study.deadline - self._party.clock()
        await last_words(voice.say(WAIT), left, self._log)
        voice.settle()

    # -- runs --------------------------------------------------------------------------------

    def _seat(self, study: Study) -> Seat:
        members = study.parties(self._party.roster)
        names = [members.member(place).name for place in members.places]
        place = names.index(self._party.name)
        return Seat(study, members, place, self._party.identity, "silo")

    @property
    def _line(self) -> Link:
        assert self._link is not None  # noqa: S101 - no decision comes before the connection
        return self._link

    async def _repeat(self, run: Run) -> None:
        """Send the last message of a run that has ended, until its deadline."""
        study = self._reopen(run)
        if study is None:  # it cannot be sent
            return
        voice = Voice(self._seat(study), self._store, self._line)
        left = study.deadline - self._party.clock()
        if past_use(study, self._party.clock(), own=True):
            return  # nobody waits any more
        await last_words(voice.repeat(), left, self._log)
        voice.settle()

    async def _take_part(self, study: Study) -> None:
        try:
            # In a thread, because setting up a run on a large graph takes seconds.
            run = await asyncio.to_thread(self._begin, study)
        except Exception as error:
            self._cannot_begin(study, error)
            return
        self._runs[study.run] = run
        await run.carry()
        self._forget(study.run)
        self._tidy()

    def _begin(self, study: Study) -> SiloRun:
        run = self._store.run(study.run)
        assert run is not None and run.secret is not None  # noqa: S101, PT018 - it was accepted
        plan, seat = self._plan(study), self._seat(study)
        if self._party.has_universe and study.universe != self._party.universe.digest:
            raise StudyError("the node list has changed since the study was accepted")
        session = self._session(plan, seat, run, RunEntropy(run.secret))
        alarm = partial(self._cloned, study)
        pay = partial(self._agree, plan)
        return SiloRun(seat, session, self._party, self._line, pay, alarm, plan.line())

    def _agree(self, plan: SettledStudy) -> None:
        """Pay for a run, if policy and people still allow it: they may have changed their minds."""
        run = self._store.run(plan.study.run)
        if run is not None and not run.spent:
            if run.decision == "abort":  # the next look at the store ends the run, but may be late
                raise PolicyError("the study was refused after it had been accepted")
            self._check_terms(plan.study)
        self._pay(plan)

    async def _report(self, board: MetricsBoard) -> None:
        """Keep the status file and the metrics current."""
        before, wait = "", 0
        while True:
            health = self.health()
            now = repr(health.status())
            if now != before or wait == 0:
                await self._write_status()
                await asyncio.to_thread(self._show, board, health)
                before, wait = now, _REPORT_EVERY
            wait -= 1
            await asyncio.sleep(_POLL_SECONDS)

    async def _write_status(self) -> None:
        async with self._writing:  # the last that is written is the newest
            status = self._config.state / "status.json"
            await asyncio.to_thread(self.health().write_status, status)

    def _show(self, board: MetricsBoard, health: Health) -> None:
        board.show(self._metrics(health), *health.verdict)

    def health(self) -> Health:
        """The current health of the service."""
        waiting = {name: run.waiting for name, run in self._runs.copy().items()}
        return Health(self._party, self._link, self._started, self._trouble, waiting)


# --- A silo: its edges, and its budget ------------------------------------------------------------


@dataclass(frozen=True)
class Books:
    """Where a silo records what it does: its own files, and its lineage in the ledger."""

    party: Party
    ledger: Ledger
    lineage: str
    #: The phase under which the ledger records the spends of this silo's studies.
    phase: str

    def note(self, study: Study, spend: Spend) -> None:
        """Record a spend of the ledger in the store and the trail, unless they have it."""
        witness, party = self.ledger.witness(), self.party
        with party.store.together():
            if party.store.mark_spent(study.run, str(witness)):
                _, epsilon = loss_at(spend.losses, study.collusion)
                party.trail.spent(
                    study.id, spend.lineage, epsilon, spend.delta, study.collusion,
                    witness.serial, bytes.fromhex(witness.digest),
                )  # fmt: skip

    def pay(self, plan: SettledStudy) -> None:
        """Record the whole cost of a run in the ledger. Repeating it spends nothing more."""
        books, study = self, plan.study
        spend = books.ledger.spend(
            books.lineage, study.run, books.phase, plan.losses, plan.delta, view=plan.view,
            method=plan.what, unbounded=any(map(math.isinf, plan.losses.values())),
        )  # fmt: skip
        faultpoints.point("silo.spent")
        books.note(study, spend)


class SiloService(Service):
    """The service of a silo."""

    def __init__(
        self, config: SiloConfig, *, clock: Clock = time.time, entropy: Entropy | None = None
    ) -> None:
        super().__init__(config, clock=clock, entropy=entropy)
        self._own = config
        data = load_silo(config, self._party.universe)
        self.silo = data.silo
        # Computed once for all runs, so that no run's time shows the number of edges. Where pairs
        # are too many for memory, they are prepared when a study needs them, if ever.
        universe = self._party.universe
        small = not universe.is_open and in_memory(len(universe))
        self._bits = PairBits.of(self.silo) if small else None
        if data.outside:
            self._log.event("data.outside", level="warning", edges_outside=data.outside)
        if data.other_times:
            self._log.event("data.other_times", rows_outside=data.other_times)
        if accounts.witness_of(self._store) is not None and not config.ledger.path.exists():
            raise accounts.no_ledger(config.ledger.path)  # a new one would have spent nothing
        self._ledger = Ledger(config.ledger.path)
        self._set_limit()
        self._note_freeze()
        phase = accounts.phase_of(self._store)
        self._books = Books(self._party, self._ledger, config.data.lineage, phase)
        self._check_ledger()
        self._snapshots = Snapshots(config.state / "snapshots", self.silo)
        self._tidy()

    @property
    def what(self) -> str:
        """The edges."""
        return repr(self.silo)

    def _set_limit(self) -> None:
        """Set the configured limit. In a ledger with limits, an unknown lineage is refused."""
        lineage, limit = self._own.data.lineage, self._own.ledger
        check_lineage(self._own, self._ledger)
        asked = Amount(limit.epsilon, limit.delta, limit.collusion)
        made = self._ledger.set_limit(
            lineage, asked.epsilon, asked.delta, asked.collusion, only_lower=True
        )
        if made.amount() != asked:
            self._log.event(
                "limit.kept", level="warning", lineage=lineage, epsilon=made.epsilon,
                delta=made.delta, collusion=made.collusion,
            )  # fmt: skip
            self.notes.append(
                f"the ledger's limit holds, {made.amount()} at t = {made.collusion}: it is lower "
                f"than that of {self._config.file}, {asked} at t = {asked.collusion}. 'silograph "
                "ledger limit' can raise it"
            )

    def _note_freeze(self) -> None:
        freeze = self._ledger.frozen()
        if freeze is not None:
            self._log.event("ledger.frozen", level="error", lineage=self._own.data.lineage)
            self.notes.append(
                f"the ledger is {freeze}. Every study is refused until 'silograph ledger thaw'"
            )

    def _check_ledger(self) -> None:
        """Refuse a store or a ledger that was restored to an earlier state.

        A spend that is missing in the store, because the service was killed after it, is added.
        The witness moves on: an old copy must not undo a lower limit or a freeze either.
        """
        accounts.check_ledger(self._ledger, self._store)
        for study, spend in accounts.unnoted(self._ledger, self._store):
            self._books.note(study, spend)
        if self._store.witness():  # before the first spend any ledger will do
            self._store.set_witness(str(self._ledger.witness()))

    def close(self) -> None:
        """Close the ledger, the store and the log; remove a snapshot that no open run needs."""
        with contextlib.suppress(SilographError):
            self._snapshots.drop_except(self._open_data())
        self._ledger.close()
        super().close()

    def _check_own(self, plan: SettledStudy) -> None:
        study = plan.study
        self._ledger.check_thawed()
        if any(row.run == study.run for row in self._ledger.rows()):
            raise StoreError("the ledger has this run, and the store did not: one was put back")
        self._check_budget(plan)

    def _check_budget(self, plan: SettledStudy) -> None:
        lineage = self._own.data.lineage
        limit, left = self._ledger.limit(lineage), self._ledger.remaining(lineage)
        if limit is None or left is None:
            return
        _, epsilon = loss_at(plan.losses, limit.collusion)
        if epsilon > left.epsilon or plan.delta > left.delta:
            raise BudgetError(
                f"the study costs {_cost(epsilon, plan.delta)} at t = {limit.collusion}; {left} is "
                "left",
                lineage, limit.collusion, (epsilon, plan.delta), (left.epsilon, left.delta),
            )  # fmt: skip

    def _session(self, plan: SettledStudy, seat: Seat, run: Run, entropy: Entropy) -> SiloSession:
        silo = self._snapshots.silo(run.data)
        return plan.silo(seat.roster, seat.place, seat.identity, entropy, silo)

    def _pay(self, plan: SettledStudy) -> None:
        self._books.pay(plan)

    def _cloned(self, study: Study, error: ClonedError) -> None:
        """Freeze the ledger: a clone, or this machine before now, may have spent from another."""
        self._ledger.freeze(f"run {study.run[:12]}: {error}"[:200].strip())
        self._log.event("ledger.frozen", level="error", run=study.id, error=error)
        witness = self._ledger.witness()
        with self._store.together():
            self._store.set_witness(str(witness))
            self._trail.frozen(study.id, witness.serial, bytes.fromhex(witness.digest), error)

    def health(self) -> Health:
        """The current health of the service, with its ledger's."""
        freeze = self._ledger.frozen()
        return replace(super().health(), frozen="" if freeze is None else str(freeze))

    def _metrics(self, health: Health) -> Metrics:
        return health.silo_metrics(self._ledger, self._own.data.lineage)

    @property
    def _data(self) -> str:
        return self._snapshots.digest

    @property
    def _budget(self) -> Ledger | None:
        return self._ledger

    def _tidy(self) -> None:
        try:
            self._snapshots.drop_except({self._snapshots.digest, *self._open_data()})
        except StoreError as error:  # they are in nobody's way; the next start tries again
            self._log.event("snapshots.kept", level="warning", error=error)

    def _open_data(self) -> set[str]:
        return {run.data for run in self._store.runs(ended=False)}


def _cost(epsilon: float, delta: float) -> str:
    return f"ε = {shown_loss(epsilon)}" + (f", δ = {shown_loss(delta)}" if delta else "")


# --- A helper -------------------------------------------------------------------------------------


class HelperService(Service):
    """The service of a helper."""

    @property
    def what(self) -> str:
        """A helper has nothing of its own."""
        return "a helper, without edges"

    def _session(self, plan: SettledStudy, seat: Seat, run: Run, entropy: Entropy) -> SiloSession:
        return plan.helper(seat.roster, seat.place, seat.identity, entropy)

    def _check_own(self, plan: SettledStudy) -> None:
        """Every study that the policy allows is as good as any other."""

    def _pay(self, plan: SettledStudy) -> None:
        """Pay nothing: there are no edges that a run could tell of."""

    def _cloned(self, study: Study, error: ClonedError) -> None:
        """Do nothing more: a helper has no budget that a clone could spend."""

    def _metrics(self, health: Health) -> Metrics:
        return health.metrics()

    @property
    def _data(self) -> str:
        return ""

    def _tidy(self) -> None:
        """Keep nothing for runs but what is in the store."""


def service_of(config: SiloConfig | HelperConfig) -> Service:
    """The service of the party that a configuration is for."""
    return HelperService(config) if isinstance(config, HelperConfig) else SiloService(config)


async def _cancel(tasks: list[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
