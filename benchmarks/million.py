"""A million nodes: a folded union of four silos, from Parquet files to answers.

A made graph of 10^6 nodes and 10^7 edges in communities is split among four overlapping silos, and
each silo's edges are written to a Parquet file. Then every party is a process of its own: it reads
its file, folds its edges, and takes its part in the union; the coordinator counts. Messages go
through this process, which counts their bytes. Wall time, processor time and peak memory are of
each party; no broker is involved.

Goals: two minutes from files to answers, 2 GiB for a party, 100 MB from a silo (masked), triangles
within 1 % at ε = 3 and 3 % at ε = 2, edges within 0.2 %; and 4 × the edges in as many edges a
bucket take at most 4.5 × the work to fold and unite, and 9 × to count.

    make bench-million
    python -m benchmarks.million --nodes 100000 --runs masked:3
"""

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.table import Table

from benchmarks.made import communities
from silograph import NodeUniverse, Silo, split
from silograph.graph.fold import Fold
from silograph.local.drive import Traffic, drive
from silograph.messages.entropy import RunEntropy
from silograph.messages.envelope import Outgoing
from silograph.messages.identity import Identity, Member, Roster
from silograph.messages.machine import CoordinatorSession, SiloSession
from silograph.methods.catalogue import settle_study
from silograph.methods.study import COMMITTEE, RELEASE, Study, StudyMember, folded_index

NODES, SILOS, COLLUSION = 1_000_000, 4, 1
#: Groups for a million nodes: half an edge in a cell. A cell has one bucket for each sign.
GROUPS = 6400
QUERIES: dict[str, tuple[Any, ...]] = {"edges": (), "kstars": (2,), "triangles": ()}
MOST_SECONDS, MOST_GIB, MOST_MB = 120.0, 2.0, 100.0
#: Errors in per cent: of edges, and of triangles by epsilon.
MOST_EDGES, MOST_TRIANGLES = 0.2, {3.0: 1.0, 2.0: 3.0}
GROWTH_UNION, GROWTH_COUNT = 4.5, 9.0
console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)


def verdict(text: str, passed: bool) -> bool:
    console.print(f"{text}: {'yes' if passed else '[red]NO[/]'}")
    return passed


# --- A party in a process of its own --------------------------------------------------------------


def usage() -> tuple[float, float]:
    """This process' processor time in seconds and peak memory in GiB."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024**2


class Serves:
    """The party's side: it owns a session, and does what it is asked to over a pipe."""

    def __init__(self, secret: bytes, universe: NodeUniverse, path: Path | None) -> None:
        self._identity, self._universe = Identity(secret), universe
        self._silo = Silo.from_file(universe, path) if path else None
        self._session: Any = None
        self._source: Any = None

    def usage(self) -> tuple[float, float]:
        return usage()

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


def apart(work: Callable[..., Any], *given: Any) -> Any:
    """What a function returns, run in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, given)


class Clock:
    """Wall time since the last look, and the parties' processor time."""

    def __init__(self, parties: Sequence[Party]) -> None:
        self._parties, self._wall = parties, time.perf_counter()
        self._work: float = 0.0

    def look(self) -> tuple[float, float]:
        work = sum(party.ask("usage")[0] for party in self._parties)
        now = time.perf_counter()
        taken = now - self._wall, work - self._work
        self._wall, self._work = now, work
        return taken


def run(
    paths: Sequence[Path], nodes: int, protocol: str, epsilon: float, groups: int, *, opened: bool
) -> dict[str, Any]:
    """From files to answers."""
    universe = NodeUniverse.open() if opened else NodeUniverse.range(nodes)
    began = time.perf_counter()
    parties = [Party(os.urandom(32), universe, path) for path in (None, *paths)]
    hub, *silos = parties
    clock = Clock(parties)
    for party in parties:
        party.wait()
    taken = {"reading": clock.look()}
    members = tuple(Member(f"silo {n}", one.public) for n, one in enumerate(silos, 1))
    roster = Roster(Member("coordinator", hub.public), members)
    study = Study(
        run=os.urandom(16).hex(),
        query=RELEASE,
        method="feat",
        protocol=protocol,
        epsilon=epsilon,
        delta=0.0,
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
    drive(hub, silos, lambda: None, protocol, record=traffic, shown=False)
    taken["fold and union"] = clock.look()
    answers = {}
    for query in QUERIES:
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
        "protocol": protocol,
        "epsilon": epsilon,
        "groups": groups,
        "open": opened,
        "whole": whole,
        "taken": taken,
        "answers": answers,
        "memory": memory,
        "traffic": sent,
        "load": os.getloadavg()[0],
    }


def report(told: dict[str, Any], truth: Truth) -> bool:
    """Print one run; whether its goals are reached."""
    kind = "open universe" if told["open"] else f"{truth.nodes:,} nodes"
    epsilon, protocol = told["epsilon"], told["protocol"]
    table = Table(
        title=f"{protocol}, ε = {epsilon:g}, {kind}, {truth.edges:,} edges, {told['groups']:,} "
        f"groups; load {told['load']:.1f}"
    )
    for column in ("step", "wall s", "work s"):
        table.add_column(column, justify="right")
    for step, (wall, work) in told["taken"].items():
        table.add_row(step, f"{wall:.1f}", f"{work:.1f}")
    console.print(table)
    errors = {}
    for query, (value, stderr) in told["answers"].items():
        true = getattr(truth, query)
        errors[query] = 100 * (value - true) / true
        console.print(
            f"{query} {value:,.0f} ± {stderr:,.0f}, true {true:,}: {errors[query]:+.3f} % "
            f"(own error {100 * stderr / true:.3f} %)"
        )
    up = max(up for up, _ in told["traffic"])
    down = max(down for _, down in told["traffic"])
    hub, *silos = told["memory"]
    console.print(
        f"a silo sends {up:.1f} MB and receives {down:.1f} MB; peak memory {max(silos):.2f} GiB of "
        f"a silo, {hub:.2f} GiB of the coordinator"
    )
    work = sum(work for _, work in told["taken"].values())
    passed = [
        verdict(
            f"{told['whole']:.0f} s from files to answers, {work:.0f} s of work (at most "
            f"{MOST_SECONDS:g} s)", told["whole"] <= MOST_SECONDS,
        ),
        verdict(f"at most {MOST_GIB:g} GiB a party", max(told["memory"]) <= MOST_GIB),
        verdict(f"edges within {MOST_EDGES:g} %", abs(errors["edges"]) <= MOST_EDGES),
    ]  # fmt: skip
    if protocol != COMMITTEE:
        passed.append(verdict(f"a silo sends at most {MOST_MB:g} MB", up <= MOST_MB))
    if (most := MOST_TRIANGLES.get(epsilon)) is not None:
        passed.append(
            verdict(f"triangles within {most:g} %", abs(errors["triangles"]) <= most)
        )  # fmt: skip
    return all(passed)


def growth(small: Sequence[dict[str, Any]], large: Sequence[dict[str, Any]]) -> bool:
    """The least work of some runs beside that of as many with a quarter of the edges."""

    def ratio(*steps: str) -> float:
        most, least = (
            min(sum(told["taken"][step][1] for step in steps) for told in runs)
            for runs in (large, small)
        )
        return float(most / least)

    union, count = ratio("fold and union"), ratio(*QUERIES)
    text = "4 × the edges take {:.1f} × the work to {} (at most {:g})"
    return all([
        verdict(text.format(union, "fold and unite", GROWTH_UNION), union <= GROWTH_UNION),
        verdict(text.format(count, "count", GROWTH_COUNT), count <= GROWTH_COUNT),
    ])  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=NODES)
    runs = ("masked:3", "masked:2", "committee:3", "committee:2", "masked:3:open")
    parser.add_argument("--runs", nargs="*", default=runs, help="protocol:epsilon, or …:open")
    parser.add_argument("--no-growth", action="store_true")
    parser.add_argument("--json", type=Path, help="write all figures there")
    given = parser.parse_args()
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    groups = round(GROUPS * (given.nodes / NODES) ** 0.5)
    told, passed = [], []
    with tempfile.TemporaryDirectory() as name:
        truth, paths = apart(write, given.nodes, Path(name))
        console.print(f"{truth}, files of {sum(p.stat().st_size for p in paths) / 1e6:,.0f} MB")
        for asked in given.runs:
            protocol, epsilon, *rest = asked.split(":")
            opened = rest == ["open"]
            found = run(paths, given.nodes, protocol, float(epsilon), groups, opened=opened)
            told.append(found)
            passed.append(report(found, truth))
        if told and not given.no_growth:
            quarter = given.nodes // 4
            _, paths = apart(write, quarter, Path(name))
            same = [one for one in told if one["protocol"] == told[0]["protocol"]]
            small = [
                run(
                    paths, quarter, one["protocol"], one["epsilon"], groups // 2,
                    opened=one["open"],
                )
                for one in same
            ]  # fmt: skip
            told += small
            passed.append(growth(small, same))
    if given.json:
        given.json.write_text(json.dumps(told))
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
