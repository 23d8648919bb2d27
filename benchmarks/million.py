"""A million nodes: folded unions and sealed counts of four silos, from Parquet files to answers.

A made graph of 10^6 nodes and 10^7 edges in communities is split among four overlapping silos, and
each silo's edges are written to a Parquet file. Then every party is a process of its own: it reads
its file, folds its edges, and takes its part in the union; the coordinator counts. Messages go
through this process, which counts their bytes. Wall time, processor time and peak memory are of
each party. The first run is then made over a real broker, too: four silo services and a coordinator
with identities, ledgers and mutual TLS.

Goals: two minutes from files to answers, 2 GiB for a party, 100 MB from a silo (of a union),
triangles within 1 % at ε = 3 and 3 % at ε = 2, edges within 0.2 %, sealed triangles within 1.5 % at
ε = 1; and 4 × the edges in as many edges a bucket take at most 4.5 × the work to fold and unite,
and 9 × to count. Every run is made twice, in turns: the better time counts, and the worse error.

Last, a silo that is larger than its memory: 10^8 rows in Parquet files are folded, twice, by a
process that may take 1 GiB.

    make bench-million
    python -m benchmarks.million --nodes 100000 --runs masked:3 --rows 0
"""

import asyncio
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from benchmarks.harness import Benchmark, Contest, Meter, apart, peak
from benchmarks.made import communities
from silograph import NodeUniverse, Silo, split
from silograph.graph.fold import Fold, Folding, Layout
from silograph.local.drive import Traffic, drive
from silograph.messages.entropy import RunEntropy
from silograph.messages.envelope import Outgoing
from silograph.messages.identity import Identity, Member, Roster
from silograph.messages.machine import CoordinatorSession, SiloSession
from silograph.methods.catalogue import settle_study
from silograph.methods.sealed.method import sealed_delta
from silograph.methods.study import COMMITTEE, RELEASE, Study, StudyMember, folded_index
from silograph.nats.coordinator import CoordinatorService, Question
from tests.support.local_deployment import LocalDeployment, Terms

NODES, SILOS, COLLUSION = 1_000_000, 4, 1
#: Groups for a million nodes: about half an edge in a cell. A cell has one bucket for each sign.
#: A committee sends 2.6 bytes for a bucket, so that it has fewer; sealed counts need the third
#: power of their number in time, and have little noise.
GROUPS = {"masked": 6400, "committee": 6200, "sealed": 4096}
QUERIES: dict[str, tuple[Any, ...]] = {"edges": (), "kstars": (2,), "triangles": ()}
#: Sealed counts open what was asked for; half of these buckets are full, too many for edges.
SEALED_QUERIES = ("triangles",)
MOST_SECONDS, MOST_GIB, MOST_MB = 120.0, 2.0, 100.0
#: Errors in per cent: of edges, and of triangles by epsilon.
MOST_EDGES, MOST_TRIANGLES = 0.2, {3.0: 1.0, 2.0: 3.0, 1.0: 1.5}
GROWTH_UNION, GROWTH_COUNT = 4.5, 9.0
#: A silo larger than memory: its rows in all, in a file, and the GiB that it may take.
ROWS, FILE_ROWS, MOST_PARTED_GIB = 10**8, 10**7, 1.0


def groups_of(kind: str, nodes: int) -> int:
    """As many groups as leave the load of a cell the same."""
    return round(GROUPS[kind] * (nodes / NODES) ** 0.5)


# --- A party in a process of its own --------------------------------------------------------------


class Serves:
    """The party's side: it owns a session, and does what it is asked to over a pipe."""

    def __init__(self, secret: bytes, universe: NodeUniverse, path: Path | None) -> None:
        self._identity, self._universe = Identity(secret), universe
        self._silo = Silo.from_file(universe, path) if path else None
        self._session: Any = None
        self._source: Any = None

    def usage(self) -> tuple[float, float]:
        """Processor time in seconds and peak memory in GiB."""
        return time.process_time(), peak() / 1024

    def begin(self, study: bytes, roster: Roster, place: int) -> None:
        """Make the session."""
        self._plan = settle_study(Study.decode(study))
        head, entropy = (roster, place), RunEntropy(os.urandom(32))
        if self._silo is None:
            self._session = self._plan.coordinator(roster, self._identity, entropy)
        else:
            self._session = self._plan.silo(*head, self._identity, entropy, self._silo)

    def attribute(self, name: str) -> Any:
        return getattr(self._session, name)

    def call(self, name: str, *arguments: Any) -> Any:
        return getattr(self._session, name)(*arguments)

    def finish(self) -> None:
        """Keep the release here."""
        self._source = self._plan.outcome(self._session.result(), self._universe).source
        self._session = None

    def answer(self, query: str) -> tuple[float, float]:
        found = getattr(self._source, query)(*QUERIES[query])
        return found.value, found.stderr


def serve(pipe: Connection, *given: Any) -> None:
    party = Serves(*given)
    pipe.send(None)
    while (asked := pipe.recv()) is not None:
        name, *arguments = asked
        pipe.send(getattr(party, name)(*arguments))


class Party(SiloSession, CoordinatorSession[None]):
    """This side: a session whose work is done in the process of the party."""

    def __init__(self, secret: bytes, universe: NodeUniverse, path: Path | None) -> None:
        # A fresh process: a copy of this one would begin with this one's memory.
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self.public = Identity(secret).public
        self._process = context.Process(target=serve, args=(other, secret, universe, path))
        self._process.start()

    def wait(self) -> None:
        """Until the file is read."""
        self._pipe.recv()

    def ask(self, *asked: Any) -> Any:
        self._pipe.send(asked)
        return self._pipe.recv()

    def close(self) -> None:
        self._pipe.send(None)
        self._process.join()

    def start(self) -> list[Outgoing]:
        return cast("list[Outgoing]", self.ask("call", "start"))

    def receive(self, raw: bytes) -> list[Outgoing]:
        return cast("list[Outgoing]", self.ask("call", "receive", raw))

    def make(self, sent: object = ()) -> list[Outgoing]:
        return cast("list[Outgoing]", self.ask("call", "make"))

    def authorise(self) -> list[Outgoing]:
        return cast("list[Outgoing]", self.ask("call", "authorise"))

    def result(self) -> None:
        self.ask("finish")

    @property
    def room(self) -> bool:
        return bool(self.ask("attribute", "room"))

    @property
    def ahead(self) -> bool:
        return False

    @property
    def ready(self) -> bool:
        return bool(self.ask("attribute", "ready"))

    @property
    def done(self) -> bool:
        return bool(self.ask("attribute", "done"))

    @property
    def phase(self) -> str:
        return str(self.ask("attribute", "phase"))

    @property
    def progress(self) -> tuple[int, int]:
        return cast("tuple[int, int]", self.ask("attribute", "progress"))


# --- One run --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    nodes: int
    edges: int
    kstars: int
    triangles: int


def write(nodes: int, folder: Path) -> tuple[Truth, list[Path]]:
    """Make the graph and the files of the silos; in a process of its own, for its memory."""
    graph = communities(nodes)
    degrees = graph.degrees()
    truth = Truth(nodes, len(graph), int((degrees * (degrees - 1) // 2).sum()), graph.triangles())
    paths = [folder / f"{nodes}-{number}.parquet" for number in range(1, SILOS + 1)]
    for path, part in zip(paths, split(graph, SILOS), strict=True):
        part.to_file(path)
    return truth, paths


class Clock:
    """Wall time since the last look, and the parties' processor time."""

    def __init__(self, parties: Sequence[Party], began: float) -> None:
        self._parties, self._wall = parties, began
        self._work: float = 0.0

    def look(self) -> tuple[float, float]:
        work = sum(party.ask("usage")[0] for party in self._parties)
        now = time.perf_counter()
        taken = now - self._wall, work - self._work
        self._wall, self._work = now, work
        return taken


def run(
    paths: Sequence[Path], nodes: int, kind: str, epsilon: float, groups: int, *, opened: bool
) -> dict[str, Any]:
    """From files to answers. A kind is the protocol of a union, or sealed."""
    sealed = kind == "sealed"
    protocol = COMMITTEE if sealed else kind
    universe = NodeUniverse.open() if opened else NodeUniverse.range(nodes)
    began = time.perf_counter()
    parties = [Party(os.urandom(32), universe, path) for path in (None, *paths)]
    hub, *silos = parties
    clock = Clock(parties, began)
    for party in parties:
        party.wait()
    taken = {"starting and reading": clock.look()}
    members = tuple(Member(f"silo {n}", one.public) for n, one in enumerate(silos, 1))
    roster = Roster(Member("coordinator", hub.public), members)
    study = Study(
        run=os.urandom(16).hex(),
        query="triangles" if sealed else RELEASE,
        method="sealed" if sealed else "feat",
        protocol=protocol,
        epsilon=epsilon,
        delta=sealed_delta(None) if sealed else 0.0,
        collusion=COLLUSION,
        universe=universe.digest,
        nodes=0 if opened else nodes,
        roster=roster.digest.hex(),
        coordinator="coordinator",
        silos=tuple(member.name for member in members),
        deadline=0,
        members=tuple(StudyMember(member.name, "silo") for member in members)
        if protocol == COMMITTEE
        else (),
        index=folded_index(Fold(groups), universe),
    )
    for place, party in enumerate(parties, -1):
        party.ask("begin", study.encode(), roster, place)
    traffic = Traffic()
    drive(hub, silos, lambda: None, kind, record=traffic, shown=False)
    taken["fold and count" if sealed else "fold and union"] = clock.look()
    answers = {}
    for query in SEALED_QUERIES if sealed else QUERIES:
        answers[query] = hub.ask("answer", query)
        taken[query] = clock.look()
    whole = time.perf_counter() - began
    memory = [party.ask("usage")[1] for party in parties]
    for party in parties:
        party.close()
    sent = [
        [sum(both[way] for both in traffic.of(place).values()) / 1e6 for way in (0, 1)]
        for place in range(SILOS)
    ]
    return {
        "nodes": nodes,
        "kind": kind,
        "epsilon": epsilon,
        "groups": groups,
        "open": opened,
        "whole": whole,
        "taken": taken,
        "answers": answers,
        "memory": memory,
        "traffic": sent,
    }


def report(bench: Benchmark, told: dict[str, Any], truth: Truth, contest: Contest) -> None:
    """Show one run and its goals, with the best times of all runs like it."""
    epsilon, name = told["epsilon"], named(told)
    rows = [
        (step, f"{found.wall:.1f}", f"{found.work:.1f}", str(found.runs))
        for step, found in contest.items()
    ]
    title = (
        f"{name}: {truth.nodes:,} nodes, {truth.edges:,} edges, {told['groups']:,} groups, seconds"
    )
    bench.table(name.replace(" ", "-"), title, ("step", "wall", "CPU", "best of"), rows)
    errors = {}
    for query, (value, stderr) in told["answers"].items():
        true = getattr(truth, query)
        errors[query] = 100 * (value - true) / true
        bench.console.print(
            f"{query} {value:,.0f} ± {stderr:,.0f}, true {true:,}: {errors[query]:+.3f} % "
            f"(own error {100 * stderr / true:.3f} %)"
        )
    up = max(up for up, _ in told["traffic"])
    down = max(down for _, down in told["traffic"])
    hub, *silos = told["memory"]
    bench.console.print(
        f"a silo sends {up:.1f} MB and receives {down:.1f} MB; peak memory {max(silos):.2f} GiB of "
        f"a silo, {hub:.2f} GiB of the coordinator"
    )
    whole = contest["files to answers"].wall
    bench.text(f"{name.replace(' ', '-')}-seconds", f"{whole:.0f} seconds")
    bench.text(f"{name.replace(' ', '-')}-sent", f"{up:.0f} MB")
    bench.goal(f"{name}: seconds from files to answers", whole, most=MOST_SECONDS)
    bench.goal(f"{name}: GiB of the largest party", max(told["memory"]), most=MOST_GIB)
    if told["kind"] != "sealed":
        bench.goal(f"{name}: error of edges, %", abs(errors["edges"]), most=MOST_EDGES)
        bench.goal(f"{name}: MB that a silo sends", up, most=MOST_MB)
    if (most := MOST_TRIANGLES.get(epsilon)) is not None:
        bench.goal(f"{name}: error of triangles, %", abs(errors["triangles"]), most=most)


def worst(one: dict[str, Any] | None, other: dict[str, Any], truth: Truth) -> dict[str, Any]:
    """Of two runs, the answers that are further from the truth, and the larger memory of each
    party: only times are those of the better run."""
    if one is None:
        return other
    answers = {
        query: max(
            (told["answers"][query] for told in (one, other)),
            key=lambda found: abs(found[0] - getattr(truth, query)),
        )
        for query in one["answers"]
    }
    memory = list(map(max, one["memory"], other["memory"]))
    return other | {"answers": answers, "memory": memory}


def named(told: dict[str, Any]) -> str:
    return f"{told['kind']} {told['epsilon']:g}{' open' * told['open']}"


# --- Over a broker --------------------------------------------------------------------------------


def over_broker(
    paths: Sequence[Path], nodes: int, protocol: str, epsilon: float, groups: int
) -> dict[str, Any]:
    """A deployment's study, from files to answers: the meters of both steps, and the answers."""
    universe = NodeUniverse.range(nodes)
    silos = [
        Silo.from_file(universe, path, name=f"silo-{number}")
        for number, path in enumerate(paths, 1)
    ]
    taken: dict[str, Meter] = {}
    with tempfile.TemporaryDirectory(prefix="silograph-million-") as folder:
        trial = LocalDeployment(Path(folder) / "trial", silos, Terms())
        del silos  # services read their own
        trial.broker.start()
        service = CoordinatorService(trial.coordinator())
        try:
            with trial.serving() as processes:
                pids = {
                    "silos": [process.pid for process in processes],
                    "coordinator": [os.getpid()],
                    "broker": [trial.broker.pid],
                }
                taken["starting and reading"] = reading = Meter(pids)
                trial.wait_for_silos()
                reading.mark()
                taken["fold, union and answers"] = study = Meter(pids)
                question = Question(RELEASE, epsilon, protocol=protocol, fold=Fold(groups))
                plan = service.propose(question, MOST_SECONDS)
                asyncio.run(service.carry(plan.study.run))
                release = service.answer(plan.study.run)
                found = {query: getattr(release, query)(*QUERIES[query]) for query in QUERIES}
                study.mark()
        finally:
            service.close()
            trial.broker.stop()
    return {
        "taken": {step: (meter.wall, meter.cpu, meter.peaks) for step, meter in taken.items()},
        "answers": {query: (answer.value, answer.stderr) for query, answer in found.items()},
        # The coordinator is this process, which has nothing else in it.
        "memory": peak() / 1024,
    }


def deployed(
    bench: Benchmark, truth: Truth, paths: Sequence[Path], kind: str, epsilon: float, rounds: int
) -> None:
    """Show the study of a deployment and its goals."""
    contest = bench.contest(f"{truth.nodes:,} nodes, over a broker")
    groups = groups_of(kind, truth.nodes)
    runs = [apart(over_broker, paths, truth.nodes, kind, epsilon, groups) for _ in range(rounds)]
    for told in runs:
        steps = told["taken"].items()
        for step, (wall, cpu, _) in steps:
            contest.note(step, wall, sum(cpu.values()))
        contest.note(
            "files to answers",
            sum(wall for _, (wall, *_) in steps),
            sum(sum(cpu.values()) for _, (_, cpu, _) in steps),
        )
    rows = [
        (step, f"{found.wall:.1f}", f"{found.work:.1f}", str(found.runs))
        for step, found in contest.items()
    ]
    title = (
        f"{kind} {epsilon:g} over a broker with mutual TLS: {truth.nodes:,} nodes, "
        f"{truth.edges:,} edges, {groups:,} groups, seconds"
    )
    bench.table("broker", title, ("step", "wall", "CPU of all", "best of"), rows)
    for step, (_, cpu, _) in runs[-1]["taken"].items():
        bench.console.print(step, *(f"{who} {used:.1f} CPU s" for who, used in cpu.items()))
    peaks = {
        who: max(told["taken"][step][2][who] for told in runs for step in told["taken"]) / 1024
        for who in ("silos", "broker")
    } | {"coordinator": max(told["memory"] for told in runs)}
    bench.text("broker-memory", ", ".join(f"{who} {gib:.2f} GiB" for who, gib in peaks.items()))
    whole = contest["files to answers"].wall
    bench.text("broker-seconds", f"{whole:.0f} seconds")
    bench.goal("over a broker: seconds from files to answers", whole, most=MOST_SECONDS)
    bench.goal("over a broker: GiB of the largest party", max(peaks.values()), most=MOST_GIB)
    for query, most in (("edges", MOST_EDGES), ("triangles", MOST_TRIANGLES[epsilon])):
        true = getattr(truth, query)
        error = max(abs(told["answers"][query][0] / true - 1) for told in runs)
        bench.goal(f"over a broker: error of {query}, %", 100 * error, most=most)


# --- A silo larger than its memory ----------------------------------------------------------------


def write_rows(rows: int, folder: Path) -> float:
    """Parquet files with so many rows among a million nodes, some of them again; their GB."""
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        some = min(FILE_ROWS, rows - start)
        ends = np.random.default_rng(number).integers(0, NODES, size=(2, some))
        path = folder / f"part-{number}.parquet"
        pl.DataFrame({"from": ends[0], "to": ends[1]}).write_parquet(path)
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e9


def fold_rows(folder: Path, groups: int) -> tuple[float, float, float]:
    """Fold all rows: wall time, processor time and peak memory in GiB."""
    silo = Silo.from_dataset(NodeUniverse.open(), folder)
    began, work = time.perf_counter(), time.process_time()
    silo.fold(Folding.of(b"rows", Layout(groups)))
    return time.perf_counter() - began, time.process_time() - work, peak() / 1024


def parted(bench: Benchmark, rows: int, rounds: int) -> None:
    """A folder of Parquet files, folded in bounded memory."""
    contest, groups, memory = bench.contest(f"{rows:,} rows"), GROUPS["masked"], 0.0
    with tempfile.TemporaryDirectory() as folder:
        size = apart(write_rows, rows, Path(folder))
        for _ in range(rounds):
            *times, taken = apart(fold_rows, Path(folder), groups)
            memory = max(memory, taken)
            contest.note("fold", *times)
    found = contest["fold"]
    bench.console.print(
        f"{rows:,} rows in {size:.1f} GB of Parquet, {groups:,} groups: {found.wall:.1f} s, "
        f"{found.work:.1f} CPU s, {rows / found.wall / 1e6:.1f} million rows a second, "
        f"{memory:.2f} GiB at the peak"
    )
    bench.goal(f"{rows:,} rows: GiB", memory, most=MOST_PARTED_GIB)


def main() -> int:
    bench = Benchmark("million", __doc__, os.cpu_count() or 1)
    ask = bench.parser.add_argument
    runs = ("masked:3", "masked:2", "committee:3", "committee:2", "masked:3:open", "sealed:1")
    ask("--nodes", type=int, default=NODES)
    ask("--runs", nargs="+", default=runs, help="protocol:epsilon, …:open, sealed:epsilon")
    ask("--rounds", type=int, default=2, help="take the best of so many")
    ask("--no-growth", action="store_true")
    ask("--no-broker", action="store_true")
    ask("--rows", type=int, default=ROWS, help="of a silo larger than its memory")
    given = bench.start()
    asked = [(*one.split(":"), "")[:3] for one in given.runs]
    # Growth is measured on the first run and its like with a quarter of the edges.
    sizes = [(given.nodes, asked)]
    if not given.no_growth:
        sizes.append((given.nodes // 4, asked[:1]))
    contests: dict[tuple[int, str], Contest] = {}
    with tempfile.TemporaryDirectory() as folder:
        made = {nodes: apart(write, nodes, Path(folder)) for nodes, *_ in sizes}
        last: dict[tuple[int, str], dict[str, Any]] = {}
        for _ in range(given.rounds):
            for nodes, runs_of in sizes:
                for kind, epsilon, list_of in runs_of:
                    groups, opened = groups_of(kind, nodes), list_of == "open"
                    told = run(made[nodes][1], nodes, kind, float(epsilon), groups, opened=opened)
                    key = nodes, named(told)
                    last[key] = worst(last.get(key), told, made[nodes][0])
                    contests[key] = bench.contest(f"{nodes:,} nodes, {named(told)}")
                    for step, times in told["taken"].items():
                        contests[key].note(step, *times)
                    work = sum(work for _, work in told["taken"].values())
                    contests[key].note("files to answers", told["whole"], work)
        if not given.no_broker:
            kind, epsilon, _ = asked[0]
            found = made[given.nodes]
            deployed(bench, *found, kind, float(epsilon), given.rounds)
    bench.report.more["runs"] = list(last.values())
    for key, told in last.items():
        if key[0] == given.nodes:
            report(bench, told, made[given.nodes][0], contests[key])
    if not given.no_growth:
        first = named(next(iter(last.values())))
        large, small = (contests[nodes, first] for nodes, *_ in sizes)
        for what, steps, most in (
            ("fold and unite", ["fold and union"], GROWTH_UNION),
            ("count", list(QUERIES), GROWTH_COUNT),
        ):
            works = [sum(contest[step].work for step in steps) for contest in (small, large)]
            bench.goal(f"4 × the edges: times the work to {what}", works[1] / works[0], most=most)
    if given.rows:
        parted(bench, given.rows, given.rounds)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
