"""Throughput over the wire: four silos upload a masked union of 20,000 nodes over mutual TLS.

Three contestants in one run, all on this machine, all through brokers with the same settings
(mutual TLS, JetStream, every write synced). They take turns, and the best of several turns counts:

1. the study: four silo processes and a coordinator; its upload is from the first chunk to the last;
2. the same messages in one process without a wire: masks, signatures, sums;
3. the bare broker: four processes that publish as many messages of the same size, four at a time,
   and one that reads them.

All parties share one machine's cores, so the CPU seconds of all processes together stand beside the
wall time, and whatever the machines of 2 do is time that a broker on the same cores has not. Where
every party has cores of its own, the slower of both decides. The goals: the upload takes at most
1.3 times 2 and 3 together, by the clock and in CPU seconds. How it stands to the bare broker alone
is shown, too.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import nats
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig
from rich.console import Console
from rich.table import Table

from silograph import Federation, Silo, clustered_power_law, split
from silograph.methods.masked.machines import CHUNK_PAIRS, packed_bytes
from silograph.methods.masked.noise import MaskedNoise
from silograph.nats.coordinator import CoordinatorService, Question, StudyProgress
from silograph.party.config import CoordinatorConfig, SiloConfig
from tests.support.local_deployment import HUB, LocalDeployment, Terms

NODES, SILOS, EPSILON, ROUNDS = 20_000, 4, 3.0, 3
#: The upload as a multiple of its machines and the bare broker, each by itself.
GOAL = 1.3
WINDOW = 4
console = Console(width=100)


# --- Wall time and CPU seconds --------------------------------------------------------------------

_TICK = os.sysconf("SC_CLK_TCK")


def used(pids: list[int]) -> float:
    """The CPU seconds of processes so far, of all their threads."""
    seconds = 0.0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        seconds += (int(fields[11]) + int(fields[12])) / _TICK
    return seconds


@dataclass
class Measured:
    """One turn of a contestant: wall seconds, CPU seconds of each kind of process, and the rest."""

    wall: float
    cpu: dict[str, float]
    more: dict[str, float] = field(default_factory=dict)

    @property
    def work(self) -> float:
        """CPU seconds of all processes together."""
        return sum(self.cpu.values())


class Meter:
    """Wall time and CPU seconds from one moment to another."""

    def __init__(self, pids: Mapping[str, list[int]]) -> None:
        self._pids = pids
        self._began = self._last = self._look()

    def _look(self) -> tuple[float, dict[str, float]]:
        return time.perf_counter(), {name: used(pids) for name, pids in self._pids.items()}

    def mark(self) -> None:
        """Note a moment; the last one counts."""
        self._last = self._look()

    def measured(self) -> Measured:
        """What there was from the beginning to the last moment."""
        (began, before), (ended, after) = self._began, self._last
        return Measured(ended - began, {name: after[name] - before[name] for name in after})


# --- The study ------------------------------------------------------------------------------------


def parts(nodes: int) -> list[Silo]:
    made = split(clustered_power_law(nodes, seed=1), SILOS, seed=1)
    return [
        Silo.from_pairs(part.universe, part.pairs, name=f"silo-{number}")
        for number, part in enumerate(made, 1)
    ]


def study(trial: LocalDeployment) -> Measured:
    """The upload of a study, with the time from proposal to answer and the peak memory."""
    silos = trial.processes()
    service = CoordinatorService(trial.coordinator())
    pids = {
        "silos": [process.pid for process in silos],
        "coordinator": [os.getpid()],
        "broker": [trial.broker.pid],
    }
    meters: list[Meter] = []
    try:
        wait_for(trial)
        plan = service.propose(Question("edges", EPSILON, protocol="masked"), 1500.0)

        def watch(progress: StudyProgress) -> None:
            if not meters and progress.phase == "chunks":
                meters.append(Meter(pids))
            if len(meters) == 1 and progress.done == progress.total:
                meters[0].mark()
                meters.append(meters[0])

        began = time.perf_counter()
        found = asyncio.run(service.carry(plan.study.run, watch))
        whole = time.perf_counter() - began
        peaks = [peak(process.pid) for process in silos]
    finally:
        service.close()
        for process in silos:
            process.terminate()
        for process in silos:
            process.wait()
    measured = meters[0].measured()
    measured.more = {
        "whole": whole,
        "bytes": float(found["bytes"]["received"]),
        "silo MiB": max(peaks),
        "coordinator MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    return measured


def wait_for(trial: LocalDeployment) -> None:
    """Until every silo serves: their edges are read."""
    for name in trial.names:
        path = trial.silo(name).state / "status.json"
        while not path.exists():
            time.sleep(0.1)


def peak(pid: int) -> float:
    """The largest resident memory of a process so far, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def alone(silos: list[Silo]) -> Measured:
    """All machines in one process, without a wire."""
    fed = Federation.simulate(silos)
    meter = Meter({"machines": [os.getpid()]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fed.collect(EPSILON, "masked", progress=False)
    meter.mark()
    return meter.measured()


# --- The bare broker ------------------------------------------------------------------------------


async def ignore(_error: Exception) -> None:
    """A line that ends is no news."""


async def publish(config: Path, name: str, messages: int, size: int) -> None:
    """Make a stream; on a line of input, publish messages, a few at a time, each acknowledged."""
    client = await nats.connect(
        **SiloConfig.read(config).broker.connect_options(name), error_cb=ignore
    )
    streams = client.jetstream(timeout=30)
    await streams.add_stream(StreamConfig(name=f"raw-{name}", subjects=[f"silograph.raw.{name}.>"]))
    payload, window = os.urandom(size), asyncio.Semaphore(WINDOW)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)

    async def send(number: int) -> None:
        try:
            await streams.publish(f"silograph.raw.{name}.{number}", payload, timeout=60)
        finally:
            window.release()

    async with asyncio.TaskGroup() as tasks:
        for number in range(messages):
            await window.acquire()
            tasks.create_task(send(number))
    await asyncio.to_thread(sys.stdin.readline)  # CPU seconds are read of living processes
    await client.close()


async def read(config: Path, names: list[str], messages: int, begin: Callable[[], Meter]) -> Meter:
    """Let the publishers begin, and read all their messages."""
    client = await nats.connect(
        **CoordinatorConfig.read(config).broker.connect_options(HUB), error_cb=ignore
    )
    streams = client.jetstream(timeout=30)
    readers = [
        await streams.pull_subscribe(
            "", stream=f"raw-{name}", config=ConsumerConfig(ack_policy=AckPolicy.NONE)
        )
        for name in names
    ]

    async def one(reader: nats.js.JetStreamContext.PullSubscription) -> None:
        for _ in range(messages):
            await reader.fetch(1, timeout=60)

    meter = begin()
    await asyncio.gather(*map(one, readers))
    meter.mark()
    await client.close()
    return meter


def bare(trial: LocalDeployment, messages: int, size: int) -> Measured:
    command = [sys.executable, "-m", "benchmarks.wire", "--publish"]
    with contextlib.ExitStack() as stack:
        publishers = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, str(trial.silo_file(name)), name, str(messages), str(size)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for name in trial.names
        ]

        def tell() -> None:
            for process in publishers:
                assert process.stdin is not None  # noqa: S101 - it is a pipe
                process.stdin.write("\n")
                process.stdin.flush()

        def begin() -> Meter:
            pids = {
                "publishers": [process.pid for process in publishers],
                "reader": [os.getpid()],
                "broker": [trial.broker.pid],
            }
            meter = Meter(pids)
            tell()
            return meter

        for process in publishers:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            process.stdout.readline()
        config = trial.folder / f"{HUB}.toml"
        meter = asyncio.run(read(config, trial.names, messages, begin))
        tell()
        return meter.measured()


def on_a_broker(silos: list[Silo], measure: Callable[[LocalDeployment], Measured]) -> Measured:
    """Measure with a deployment of its own."""
    with tempfile.TemporaryDirectory(prefix="silograph-wire-") as folder:
        trial = LocalDeployment(Path(folder) / "trial", silos, Terms())
        trial.broker.start()
        try:
            return measure(trial)
        finally:
            trial.broker.stop()


# --- The verdict ----------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--publish", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    # Python's own TLS warns of every connection that its peer closes.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    if given.publish:
        config, name, messages, size = given.publish
        asyncio.run(publish(Path(config), name, int(messages), int(size)))
        return 0
    silos = parts(given.nodes)
    pairs = given.nodes * (given.nodes - 1) // 2
    q = MaskedNoise.choose(EPSILON, SILOS, 1).q
    chunks, size = -(-pairs // CHUNK_PAIRS), packed_bytes(q, min(pairs, CHUNK_PAIRS))
    contestants: dict[str, Callable[[], Measured]] = {
        "study's upload": lambda: on_a_broker(silos, study),
        "the same without a wire": lambda: alone(silos),
        "bare broker, the same bytes": lambda: on_a_broker(silos, lambda t: bare(t, chunks, size)),
    }
    turns: dict[str, list[Measured]] = {name: [] for name in contestants}
    for number in range(given.rounds):
        for name, measure in contestants.items():
            load = os.getloadavg()[0]
            turns[name].append(found := measure())
            console.print(
                f"turn {number + 1}, load {load:.1f}: {name} {found.wall:.2f} s, "
                f"{found.work:.2f} CPU s"
            )
    best = [
        Measured(
            min(turn.wall for turn in found),
            min(found, key=lambda turn: turn.work).cpu,
            found[-1].more,
        )
        for found in turns.values()
    ]
    return verdict(given.nodes, *best)


def verdict(nodes: int, upload: Measured, machines: Measured, raw: Measured) -> int:
    """Show the least wall time and work of each contestant; 0 if both goals are met."""
    megabytes = upload.more["bytes"] / 1e6
    title = f"{SILOS} silos, n = {nodes:,}; the best of all turns"
    table = Table("what", "seconds", "MB/s", "CPU s", "of", title=title)
    for column in table.columns[1:4]:
        column.justify = "right"
    for name, found in (
        ("study's upload, first chunk to last", upload),
        ("the same without a wire", machines),
        ("bare broker, the same bytes", raw),
    ):
        shares = ", ".join(f"{who} {seconds:.2f}" for who, seconds in found.cpu.items())
        rate = f"{megabytes / found.wall:,.0f}"
        table.add_row(name, f"{found.wall:.2f}", rate, f"{found.work:.2f}", shares)
    console.print(table)
    console.print(
        f"last study, proposal to answer: {upload.more['whole']:.2f} s; peak memory: silo "
        f"{upload.more['silo MiB']:.0f} MiB, coordinator {upload.more['coordinator MiB']:.0f} MiB"
    )
    console.print(
        f"upload / bare = {upload.wall / raw.wall:.2f}, CPU {upload.work / raw.work:.2f}, of which "
        f"the machines themselves take {machines.work / raw.work:.2f}"
    )
    passed = True
    for what, ratio in (
        ("wall", upload.wall / (raw.wall + machines.wall)),
        ("CPU", upload.work / (raw.work + machines.work)),
    ):
        good = ratio <= GOAL
        passed &= good
        said = f"{what}: upload / (bare + machines) = {ratio:.2f}, goal at most {GOAL:g}"
        console.print(f"{said}: {'yes' if good else 'NO'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
