"""Fault cases: real processes on a real broker, one of which something happens to.

A case names a method, and a fault: a party or the broker killed when a party passes a named moment
for the n-th time, a silo that stalls there for good, lines that are cut or slow and lossy, or a
broker whose disk is full for a while. A moment may also be that a party has taken or frozen a
message of a round, of at least some number. Whoever was killed is started again: at once, or when
all who wait for it have named it. Afterwards there is a right answer or none, in time, nobody has
published two messages with other bytes under one name, every ledger has the spend of the run once
if anything that depends on edges could have left, and every audit trail is whole and tells of each
step once.
"""

import asyncio
import csv
import hashlib
import multiprocessing
import os
import re
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from silograph.cli.study import _reminder
from silograph.errors import SilographError
from silograph.graph.fold import Fold, Layout
from silograph.graph.samples import union
from silograph.graph.silo import Silo
from silograph.ledger.book import Ledger
from silograph.methods import union as unions
from silograph.methods.baseline import method as baseline
from silograph.methods.baseline.machines import ReportParameters
from silograph.methods.committee.rounds import CommitteeParameters
from silograph.methods.elgamal.rounds import ElgamalParameters
from silograph.methods.masked.machines import MaskedParameters
from silograph.methods.sealed import method as sealed
from silograph.methods.sealed import party as sealed_party
from silograph.methods.sealed import rounds as sealed_rounds
from silograph.methods.sealed.noise import Output
from silograph.methods.sealed.rounds import SealedParameters
from silograph.methods.study import COMMITTEE
from silograph.nats import faultpoints
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.link import Link
from silograph.nats.silo import service_of
from silograph.party.config import CoordinatorConfig, read_served
from silograph.party.store import Frozen, Store, Taken
from silograph.party.trail import Trail
from tests.nats.world import silos
from tests.support.local_deployment import HUB, LocalDeployment, Terms
from tests.support.ports import free_port
from tests.support.slow_line import SlowLine

__all__ = [
    "COMMITTEES", "HELPER", "METHODS", "NAMED", "VICTIM", "Case", "Verdict", "at_hub", "is_right",
    "run_case", "setting",
]  # fmt: skip

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.nats.faults"])

VICTIM = "silo-2"
#: The fourth member of a committee.
HELPER = "notary"
_FOUR = ("silo-1", "silo-2", "silo-3", "silo-4")
#: Every phase of a sealed run: degrees are opened first, and bound the noise of the triangles.
_SEALED = Question(
    "triangles", 50.0, method="sealed", delta=1e-7,
    options={"answers": "degrees,triangles", "rule": "largest", "degree_share": 0.4},
)  # fmt: skip
#: Epsilons so large that an answer is all but exact: a wrong one shows.
METHODS = {
    "masked": Question("edges", 30.0),
    "blinded": Question("edges", 30.0, protocol="elgamal/blinded"),
    "replace": Question("edges", 30.0, protocol="elgamal/replace", collusion=0),
    "baseline": Question("edges", 50.0, method="baseline", protocol=""),
    "feat+": Question("edges", 50.0, method="feat+", options={"split": "paper"}),
    "sealed": _SEALED,
    "sealed shares": Question("triangles", 50.0, method="sealed", delta=0.0),
    "sealed four": replace(_SEALED, members=_FOUR),
    "sealed five": replace(_SEALED, members=_FOUR),
    "sealed inside": replace(_SEALED, collusion=0, members=(*_FOUR[:3], HUB)),
    "committee": Question("edges", 20.0, protocol=COMMITTEE),
    "hubs": Question("release", 50.0, method="hubs"),
    "folded": Question("edges", 30.0, fold=Fold(16, [str(node) for node in range(36)])),
}
#: How many silos there are, and who is in the committee besides them: three silos and a helper
#: where nothing else is said.
SETTINGS = {
    "sealed four": (4, _FOUR),
    "sealed five": (5, _FOUR),
    "sealed inside": (3, (*_FOUR[:3], HUB)),
}
#: How far an answer may be from the truth.
CLOSE = {"edges": 2.5, "triangles": 12.0, "release": 12.0}
#: Methods whose members write to each other.
COMMITTEES = ("sealed", "committee", "sealed shares", "sealed four", "sealed five", "sealed inside")
#: Rounds whose messages depend on edges.
EDGES = {"chunk", "hop", "share", "report", "input", "numbers", "open", "sum"}
#: Seconds that a run may take, and one that somebody stalls. A loaded machine is no fault, and a
#: case that ends costs no more for a long deadline.
DEADLINE, SHORT = 150.0, 4.0
#: A party that ends a run tells others for up to five seconds more.
GRACE = 30.0
#: Within how many seconds everybody who waits names the cause.
NAMED = 10.0
#: How long a party may wait for an event before it looks at it, in seconds: what the first one to
#: name a full disk has waited already.
_LOOK = 1.0
#: Events in a party's log that name what it waits for.
_WAITS = ("run.waiting", "broker.trouble", "broker.lost", "broker.unreachable")


@dataclass(frozen=True)
class Case:
    """One fault. ``what`` is kill, broker, stall, cut, slow, full, away, down or hang.

    ``at`` is a moment, or seconds for cut, kbit/s for slow, the bytes of a disk for full. In away
    and down a party or the broker is killed, and comes back when all others have named it. In hang
    the broker stops until then.
    """

    method: str
    what: str
    at: str
    count: int = 1
    #: Who it happens to, if it does not happen to the coordinator.
    victim: str = VICTIM

    def __str__(self) -> str:
        who = "" if self.victim == VICTIM else f"-{self.victim}"
        return f"{self.method}-{self.what}-{self.at}-{self.count}{who}"


@dataclass(frozen=True)
class Verdict:
    """How a case ended. ``faults`` is empty if all is well."""

    state: str
    struck: bool
    seconds: float
    faults: tuple[str, ...]
    #: Within how many seconds the last of those who waited had named the cause, if somebody did.
    named: float | None = None


#: Faults of the broker at a moment that a party passes.
_BROKER = ("broker", "down", "hang")


class _SmallMasked(MaskedParameters):
    def __init__(self, q: int, b: Fraction, m: int, pairs: int, subject: bytes, _: int) -> None:
        super().__init__(q, b, m, pairs, subject, chunk_pairs=128)


class _SmallCommittee(CommitteeParameters):
    def __init__(
        self, numerator: int, places: int, m: int, members: tuple[int, ...], pairs: int, s: bytes
    ) -> None:
        super().__init__(numerator, places, m, members, pairs, s, chunk_pairs=256)


class _SmallSealed(SealedParameters):
    def __init__(
        self,
        m: int,
        members: tuple[int, ...],
        nodes: int,
        s: bytes,
        outputs: tuple[Output, ...],
        layout: Layout | None = None,
        labels: bytes = b"",
        groups: int = 0,
    ) -> None:
        super().__init__(m, members, nodes, s, outputs, 256, layout, labels, groups)


class _SmallElgamal(ElgamalParameters):
    def __init__(self, variant: str, coin: Fraction, m: int, pairs: int, subject: bytes) -> None:
        super().__init__(variant, coin, m, pairs, subject, chunk_pairs=256)  # type: ignore[arg-type]


class _SmallReport(ReportParameters):
    def __init__(self, p11: Fraction, p01: Fraction, m: int, pairs: int, subject: bytes) -> None:
        super().__init__(p11, p01, m, pairs, subject, chunk_pairs=128)


def _small_chunks() -> None:
    """Several chunks even of a small graph, the same for all parties."""
    unions.MaskedParameters = _SmallMasked  # type: ignore[misc]
    unions.CommitteeParameters = _SmallCommittee  # type: ignore[misc]
    unions.ElgamalParameters = _SmallElgamal  # type: ignore[misc]
    baseline.ReportParameters = _SmallReport  # type: ignore[misc]
    sealed.SealedParameters = _SmallSealed  # type: ignore[misc]
    sealed_rounds.ROWS = sealed_party.ROWS = 16
    sealed_rounds.CHUNK_NUMBERS = 16


def _overheard(folder: Path, name: str) -> None:
    """Note what this process publishes under which name, in the order of publishing."""
    publish, path = Link.publish, folder / f"{name}.published"

    async def heard(self: Link, stream: str, subject: str, raw: bytes) -> None:
        with path.open("a") as notes:
            notes.write(f"{subject} {hashlib.sha256(raw).hexdigest()}\n")
        await publish(self, stream, subject, raw)

    Link.publish = heard  # type: ignore[method-assign]


@dataclass
class Strike:
    """What happens in a process that passes a moment: how, where, the how-manieth time."""

    what: str
    at: str
    count: int
    pid: int = 0
    _due: bool = False

    def __call__(self, name: str) -> None:
        if name == self.at:
            self._strike()

    def install(self) -> None:
        """Strike after a message of a round was frozen or taken, if ``at`` says which.

        ``frozen joint 40`` is the first such message with a number of at least 40.
        """
        what, *more = self.at.split()
        if not more:
            return
        name, least = more[0], int(more[1]) if len(more) > 1 else 0
        freeze, step = Store._freeze_one, Store.step

        def frozen(store: Store, connection: sqlite3.Connection, run: str, one: Frozen) -> Frozen:
            found = freeze(store, connection, run, one)
            self._due |= one.name.round == name and one.name.slot >= least
            return found

        def stepped(store: Store, run: str, taken: Taken | None, *rest: Any) -> list[Frozen]:
            if what == "taken" and taken is not None and taken.name.round == name:
                self._due |= taken.name.slot >= least
                if self._due:  # before anything of it is on the disk
                    self._strike()
            found = step(store, run, taken, *rest)
            if self._due:
                self._strike()
            return found

        if what == "frozen":
            Store._freeze_one = frozen  # type: ignore[method-assign]
        Store.step = stepped  # type: ignore[method-assign]

    def _strike(self) -> None:
        self.count -= 1
        if self.count == 0 and self.what == "stall":
            signal.pause()
        if self.count == 0:
            sign = signal.SIGSTOP if self.what == "hang" else signal.SIGKILL
            os.kill(self.pid or os.getpid(), sign)


def silo_process(folder: Path, name: str, strike: Strike | None) -> None:
    """A silo or a helper that serves until it is terminated."""
    _small_chunks()
    _overheard(folder, name)
    if strike is not None:
        strike.install()

    async def serve() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        service = service_of(read_served(folder / f"{name}.toml"))
        await service.serve(stop)
        service.close()

    with faultpoints.hooked(strike or (lambda _name: None)):
        asyncio.run(serve())


def coordinator_process(
    folder: Path, question: Question, seconds: float, strike: Strike | None
) -> None:
    """A coordinator that proposes, or goes on with what it has proposed, until the end."""
    _small_chunks()
    _overheard(folder, HUB)
    if strike is not None:
        strike.install()
    with faultpoints.hooked(strike or (lambda _name: None)):
        service = CoordinatorService(CoordinatorConfig.read(folder / f"{HUB}.toml"))
        known = service.studies()
        run = known[0][0].run if known else service.propose(question, seconds).study.run
        # What an operator reads who watches the study.
        sys.stderr = (folder / f"{HUB}.said").open("a", buffering=1)
        try:
            asyncio.run(service.carry(run, _reminder()))
        except SilographError:
            os._exit(3)
        finally:
            service.close()


def setting(method: str) -> tuple[int, Terms, tuple[str, ...]]:
    """The number of silos, the terms of all parties, and the helpers, for a method."""
    terms = Terms(epsilon=1000.0, study=100.0, collusion=0)
    if method not in COMMITTEES:
        return 3, terms, ()
    count, committee = SETTINGS.get(method, (3, (*_FOUR[:3], HELPER)))
    terms = replace(terms, committee=committee, coordinator_in_committee=HUB in committee)
    return count, terms, (HELPER,) if HELPER in committee else ()


class _World:
    """All processes of one case."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case = case
        self.line: SlowLine | None = None
        through = free_port() if case.what in ("cut", "slow") else None
        self.question = METHODS[case.method]
        count, terms, helpers = setting(case.method)
        self.trial = LocalDeployment(
            folder / "trial", silos(count), terms, through=through, helpers=helpers
        )
        if case.what == "full":
            self.set_store(int(case.at))
        self.trial.broker.start()
        if through is not None:
            rate, loss = (float(case.at) * 1000, 0.05) if case.what == "slow" else (1e12, 0.0)
            self.line = SlowLine(through, self.trial.port, rate, latency=0.01, loss=loss)
        self.seconds = SHORT if case.what == "stall" else DEADLINE
        self.processes: dict[str, BaseProcess] = {}
        strike = Strike(case.what, case.at, case.count)
        if case.what in _BROKER:
            strike.pid = self.trial.broker.pid
        for name in self.everyone:
            happens = case.what in ("kill", "away", "stall", *_BROKER)
            struck = happens and name == (HUB if at_hub(case) else case.victim)
            self.start(name, strike if struck else None)

    def start(self, name: str, strike: Strike | None) -> None:
        target: Callable[..., None] = silo_process
        arguments: tuple[object, ...] = (self.trial.folder, name, strike)
        if name == HUB:
            target = coordinator_process
            arguments = (self.trial.folder, self.question, self.seconds, strike)
        process = CONTEXT.Process(target=target, args=arguments)
        process.start()
        self.processes[name] = process

    def set_store(self, size: int) -> None:
        """Set what the broker's streams may take of its disk, in bytes, from its next start on."""
        path = self.trial.folder / "broker" / "nats.conf"
        text = re.sub(r"max_file_store: \d+", f"max_file_store: {size}", path.read_text())
        path.write_text(text)

    @property
    def everyone(self) -> list[str]:
        """All parties."""
        return [*self.trial.names, *self.trial.helpers, HUB]

    @property
    def struck(self) -> bool:
        """Whether somebody was killed, or stopped."""
        if self.case.what == "hang":
            return Path(f"/proc/{self.trial.broker.pid}/stat").read_text().split()[2] == "T"
        dead = any(process.exitcode == -signal.SIGKILL for process in self.processes.values())
        return dead or not self.trial.broker.alive

    def said(self) -> dict[str, str]:
        """What each party has said so far: its log, or what the coordinator's operator reads."""
        files = {name: self.trial.folder / f"{name}.state" / "log.jsonl" for name in self.everyone}
        if self.case.what != "full":
            files[HUB] = self.trial.folder / f"{HUB}.said"
        return {name: p.read_text() if p.exists() else "" for name, p in files.items()}

    def mend(self) -> bool:
        """Start again what was killed; whether anything was."""
        struck = False
        if not self.trial.broker.alive:
            time.sleep(0.2)
            self.trial.broker.start()
            struck = True
        for name, process in list(self.processes.items()):
            if process.exitcode == -signal.SIGKILL:
                self.start(name, None)
                struck = True
        return struck

    def close(self) -> None:
        for process in self.processes.values():
            if process.is_alive():
                os.kill(process.pid or 0, signal.SIGKILL)
            process.join()
        self.trial.broker.kill()
        if self.line is not None:
            self.line.close()


def run_case(case: Case, folder: Path) -> Verdict:
    """Let it happen, and look at what is left."""
    world = _World(case, folder)
    began = time.monotonic()
    struck, faults, named = case.what in ("stall", "slow"), [], None
    try:
        if world.line is not None and case.what == "cut":
            time.sleep(float(case.at))
            world.line.cut(1.5)
            struck = True
        if case.what == "full":
            struck = True
            named, silent = _fill(world)
            faults += silent
        elif case.what in ("away", "down", "hang"):
            named, silent = _be_missed(world)
            faults += silent
            struck |= case.what == "hang"
        limit = began + world.seconds + GRACE
        while time.monotonic() < limit:
            struck |= world.mend()
            stalled = "" if case.what != "stall" else HUB if at_hub(case) else case.victim
            hub = stalled == HUB or world.processes[HUB].exitcode in (0, 3)
            if hub and all(_ended(world.trial, stalled)):
                break
            time.sleep(0.05)
        else:
            faults.append("hangs past the deadline")
        seconds = time.monotonic() - began
        if not struck:  # at the very end: what strikes comes just after the last record
            time.sleep(0.3)
            struck = world.mend()
    finally:
        world.close()
    state, more = _inspect(world)
    return Verdict(state, struck, seconds, (*faults, *more), named)


def _fill(world: _World) -> tuple[float, list[str]]:
    """Wait until all parties have named the full disk, then give it room again."""

    def named() -> set[str]:
        return {name for name, text in world.said().items() if "disk is full" in text}

    while not named() and world.processes[HUB].is_alive():
        time.sleep(0.05)
    seconds, silent = _until_named(set(world.everyone), named)
    world.set_store(1 << 30)
    world.trial.broker.stop()
    world.trial.broker.start()
    return seconds + _LOOK, silent


def _be_missed(world: _World) -> tuple[float, list[str]]:
    """Wait until all who wait for what was struck have named what they wait for."""
    limit = time.monotonic() + DEADLINE
    while not world.struck and time.monotonic() < limit:
        time.sleep(0.05)
    before = {name: len(text) for name, text in world.said().items()}
    case = world.case
    missed = (HUB if at_hub(case) else case.victim) if case.what == "away" else "the broker"
    # A silo knows only who writes to it next; the coordinator has to know who is missing.
    words = dict.fromkeys(world.everyone, _WAITS) | {HUB: (missed,)}

    def named() -> set[str]:
        said = {name: text[before[name] :] for name, text in world.said().items()}
        return {name for name, text in said.items() if any(word in text for word in words[name])}

    found = _until_named(set(world.everyone) - {missed}, named)
    if case.what == "hang":
        os.kill(world.trial.broker.pid, signal.SIGCONT)
    return found


def _until_named(who: set[str], named: Callable[[], set[str]]) -> tuple[float, list[str]]:
    """How long it takes until all have said the cause, and who has not."""
    began = time.monotonic()
    while (silent := who - named()) and time.monotonic() < began + NAMED:
        time.sleep(0.05)
    words = [f"{', '.join(sorted(silent))} waited without a word"] if silent else []
    return time.monotonic() - began, words


def at_hub(case: Case) -> bool:
    """Whether it happens to the coordinator."""
    return case.victim == HUB or case.at.startswith("coordinator")


def _ended(trial: LocalDeployment, stalled: str) -> list[bool]:
    """Whether the run has ended at each silo and helper that does not stall, as its store says."""
    found = []
    for name in (*trial.names, *trial.helpers):
        if name == stalled:
            continue
        path = trial.folder / f"{name}.state" / "store.db"
        try:
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
                rows = connection.execute("SELECT state FROM runs").fetchall()
        except sqlite3.Error:
            rows = []
        found.append(bool(rows) and all(row[0] != "open" for row in rows))
    return found


def _spends(trial: LocalDeployment, name: str, store: Store) -> list[str]:
    """The runs that a silo has paid for; a helper has nothing to pay for."""
    if name in trial.helpers:
        return [run.run for run in store.runs()]
    with Ledger(trial.silo(name).ledger.path) as ledger:
        return [spend.run for spend in ledger.rows()]


def _found(result: dict[str, Any]) -> float:
    """The value of an answer, or the sum of the degree sums of a hub search."""
    if result["answer"] is not None:
        return float(result["answer"]["value"])
    with Path(result["release"]).open(newline="") as file:
        return sum(int(row["noisy_degree_sum"]) for row in csv.DictReader(file))


def _truth(query: str, parts: list[Silo]) -> int:
    if query == "release":
        return 2 * sum(len(part) for part in parts)
    whole = union(parts)
    return len(whole) if query == "edges" else whole.triangles()


def is_right(result: dict[str, Any], query: str, parts: list[Silo]) -> list[str]:
    """What is wrong with a result, in words."""
    value, truth = _found(result), _truth(query, parts)
    return [f"answers {value} instead of {truth}"] if abs(value - truth) > CLOSE[query] else []


def _inspect(world: _World) -> tuple[str, list[str]]:
    trial, case, faults = world.trial, world.case, []
    service = CoordinatorService(trial.coordinator())
    ((_, row),) = service.studies() or [(None, None)]
    query = METHODS[case.method].query
    if row is not None and row.state == "done":
        faults += is_right(service.result(row.run), query, silos(len(trial.names)))
    elif case.what != "stall":
        faults.append(f"no answer: {'nothing' if row is None else (row.state, row.code)}")
    service.close()
    faults += _published_twice(trial)
    for name in (*trial.names, *trial.helpers):
        store = Store(trial.folder / f"{name}.state" / "store.db", name)
        spends = _spends(trial, name, store)
        runs = store.runs()
        if len(spends) > 1 or set(spends) - {run.run for run in runs}:
            faults.append(f"{name} spent {len(spends)} times")
        for run in runs:
            left = {kind for kind, _, _ in store.left(run.run)} & EDGES
            if left and run.run not in spends:
                faults.append(f"{name} let {left} out without a spend")
            if run.spent and run.run not in spends:
                faults.append(f"{name} lost a spend")
            if not run.open and run.secret is not None:
                faults.append(f"{name} kept the secret of a run that is over")
            if row is not None and row.state == "done" and run.run not in spends:
                faults.append(f"{name} has no spend for an answer")
        told = Counter((entry["event"], entry["run"]) for entry in Trail(store).entries())
        for run in runs:
            expected = {
                "study.proposed": 1,
                "study.decided": int(run.decision != "" or run.state == "refused"),
                "budget.spent": int(run.spent),
                "run.ended": int(not run.open),
            }
            faults += [
                f"{name} tells of {event} {told[event, run.run]} times"
                for event, times in expected.items()
                if told[event, run.run] != times
            ]
        store.close()
    return ("nothing" if row is None else row.state), faults


def _published_twice(trial: LocalDeployment) -> list[str]:
    """What any party has published with different bytes under one name."""
    faults = []
    for path in sorted(trial.folder.glob("*.published")):
        lines = set(path.read_text().splitlines())
        names = Counter(line.split()[0] for line in lines)
        faults += [f"{path.stem} sent other bytes: {name}" for name in names if names[name] > 1]
    return faults
