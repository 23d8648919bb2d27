"""Throughput over the wire: four silos upload a masked union of 20,000 nodes over mutual TLS.

Four contestants in one run, all on this machine, all through brokers with the same settings
(mutual TLS, JetStream, every write synced):

1. the study: four silo processes and a coordinator; its upload is from the first chunk to the last;
2. the same messages in one process without a wire: masks, signatures, sums;
3. the bare broker: four processes that publish as many messages of the same sizes, four at a time,
   and one that reads them, with the client of the broker as it comes;
4. the same with the settings of our connections: large reads, and memory that is kept.

All parties share one machine's cores, so the CPU seconds of all processes together stand beside the
wall time, and whatever the machines of 2 do is time that a broker on the same cores has not. Where
every party has cores of its own, the slower of both decides. The goal: the upload takes at most 1.3
times as long as 3. CPU seconds, and how it stands to 4 and to 2 and 4 together, are shown beside
it: what our settings save, they save the bare broker, too. (The reader of 3 is this process, which
keeps memory since it was the coordinator of 1; that is to the advantage of 3.)
"""

from benchmarks.harness import Benchmark, Contest, Meter, use_threads

THREADS = use_threads(2)

import asyncio
import logging
import multiprocessing
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig

from silograph import Federation, Silo, clustered_power_law, split
from silograph.methods.masked.machines import chunk_pairs, packed_bytes
from silograph.methods.masked.noise import MaskedNoise
from silograph.nats.coordinator import CoordinatorService, Question, StudyProgress
from silograph.nats.heard import keep_memory, set_up
from silograph.party.config import CoordinatorConfig, SiloConfig
from tests.support.local_deployment import HUB, LocalDeployment, Terms

NODES, SILOS, EPSILON, ROUNDS = 20_000, 4, 3.0, 6
#: The upload as a multiple of the bare broker.
GOAL = 1.3
WINDOW = 4
WHOLE, UPLOAD = "study, proposal to answer", "its upload, first chunk to last"
MACHINES, BARE = "the same without a wire", "bare broker, the same bytes"
TUNED = "bare broker, set up as ours"


#: Who was measured, by name.
Meters = dict[str, Meter]


# --- The study ------------------------------------------------------------------------------------


def study(trial: LocalDeployment) -> Meters:
    """A study, and its upload."""
    service = CoordinatorService(trial.coordinator())
    found: Meters = {}
    uploaded = False

    def watch(progress: StudyProgress) -> None:
        nonlocal uploaded
        if UPLOAD not in found and progress.phase == "chunks":
            found[UPLOAD] = Meter(pids)
        if UPLOAD in found and not uploaded and progress.done == progress.total:
            found[UPLOAD].mark()
            uploaded = True

    try:
        with trial.serving() as silos:
            pids = {
                "silos": [process.pid for process in silos],
                "coordinator": [os.getpid()],
                "broker": [trial.broker.pid],
            }
            trial.wait_for_silos()
            found[WHOLE] = Meter(pids)
            plan = service.propose(Question("edges", EPSILON, protocol="masked"), 1500.0)
            asyncio.run(service.carry(plan.study.run, watch))
            found[WHOLE].mark()
    finally:
        service.close()
    return found


def alone(silos: list[Silo]) -> Meters:
    """All machines in one process, without a wire."""
    fed = Federation.simulate(silos)
    meter = Meter({"machines": [os.getpid()]})
    fed.collect(EPSILON, "masked", progress=False)
    meter.mark()
    return {MACHINES: meter}


# --- The bare broker ------------------------------------------------------------------------------


async def ignore(_error: Exception) -> None:
    """A line that ends is no news."""


def quiet() -> None:
    """Python's own TLS warns of every connection that its peer closes."""
    logging.getLogger("asyncio").setLevel(logging.ERROR)


async def connected(options: dict[str, Any], tuned: bool) -> Client:
    """A client of the broker as it comes, or set up as ours."""
    if tuned:
        keep_memory()
    client = await nats.connect(**options, error_cb=ignore)
    if tuned:
        set_up(client)
    return client


def publisher(*given: Any) -> None:
    """A process that publishes."""
    quiet()
    asyncio.run(publish(*given))


async def publish(
    config: Path, name: str, sizes: list[int], tuned: bool, together: Barrier
) -> None:
    """Publish messages of these sizes, a few at a time, each acknowledged."""
    client = await connected(SiloConfig.read(config).broker.connect_options(name), tuned)
    streams = client.jetstream(timeout=30)
    await streams.add_stream(StreamConfig(name=f"raw-{name}", subjects=[f"silograph.raw.{name}.>"]))
    payload, window = memoryview(os.urandom(max(sizes))), asyncio.Semaphore(WINDOW)

    async def send(number: int, size: int) -> None:
        try:
            subject = f"silograph.raw.{name}.{number}"
            await streams.publish(subject, payload[:size], timeout=60)
        finally:
            window.release()

    together.wait()  # all are connected
    together.wait()  # the clock runs
    async with asyncio.TaskGroup() as tasks:
        for number, size in enumerate(sizes):
            await window.acquire()
            tasks.create_task(send(number, size))
    together.wait()  # CPU seconds are read of living processes
    await client.close()


async def read(
    trial: LocalDeployment, messages: int, tuned: bool, begin: Callable[[], Meter]
) -> Meter:
    """Read all messages of all publishers, which are told to begin."""
    options = CoordinatorConfig.read(trial.folder / f"{HUB}.toml").broker.connect_options(HUB)
    client = await connected(options, tuned)
    streams = client.jetstream(timeout=30)
    config = ConsumerConfig(ack_policy=AckPolicy.NONE)

    async def all_of(name: str) -> None:
        reader = await streams.pull_subscribe("", stream=f"raw-{name}", config=config)
        for _ in range(messages):
            await reader.fetch(1, timeout=60)

    meter = begin()
    await asyncio.gather(*map(all_of, trial.names))
    meter.mark()
    await client.close()
    return meter


def bare(trial: LocalDeployment, sizes: list[int], tuned: bool) -> Meters:
    """Processes that publish messages of these sizes, and this one, which reads them."""
    spawn = multiprocessing.get_context("spawn")
    together = spawn.Barrier(len(trial.names) + 1, timeout=300)
    publishers = [
        spawn.Process(target=publisher, args=(trial.silo_file(name), name, sizes, tuned, together))
        for name in trial.names
    ]
    for process in publishers:
        process.start()
    pids = {
        "publishers": [process.pid or 0 for process in publishers],
        "reader": [os.getpid()],
        "broker": [trial.broker.pid],
    }

    def begin() -> Meter:
        together.wait()
        meter = Meter(pids)
        together.wait()
        return meter

    meter = asyncio.run(read(trial, len(sizes), tuned, begin))
    together.wait()
    for process in publishers:
        process.join()
    return {TUNED if tuned else BARE: meter}


def on_a_broker(silos: list[Silo], measure: Callable[[LocalDeployment], Meters]) -> Meters:
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
    bench = Benchmark("wire", __doc__, THREADS)
    bench.parser.add_argument("--nodes", type=int, default=NODES)
    bench.parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = bench.start()
    warnings.simplefilter("ignore")  # no ledger
    quiet()
    parts = split(clustered_power_law(given.nodes, seed=1), SILOS, seed=1)
    silos = [
        Silo.from_pairs(part.universe, part.pairs, name=f"silo-{number}")
        for number, part in enumerate(parts, 1)
    ]
    pairs, q = given.nodes * (given.nodes - 1) // 2, MaskedNoise.choose(EPSILON, SILOS, 1).q
    size = chunk_pairs(q)
    chunks = (min(size, pairs - start) for start in range(0, pairs, size))
    sizes = [packed_bytes(q, chunk) for chunk in chunks]
    contest = bench.contest(f"{SILOS} silos, n = {given.nodes:,}")
    turns: Meters = {}
    for _ in range(given.rounds):
        for measure in (
            lambda: on_a_broker(silos, study),
            lambda: alone(silos),
            lambda: on_a_broker(silos, lambda trial: bare(trial, sizes, tuned=False)),
            lambda: on_a_broker(silos, lambda trial: bare(trial, sizes, tuned=True)),
        ):
            for name, meter in measure().items():
                contest.note(name, meter.wall, meter.work)
                turns[name] = min(turns.get(name, meter), meter, key=lambda turn: turn.work)
    show(bench, contest, turns, SILOS * sum(sizes) / 1e6)
    return bench.end()


def show(bench: Benchmark, contest: Contest, turns: Meters, megabytes: float) -> None:
    """Everyone's times and shares, and the upload as a multiple of what it is made of."""
    rows = []
    for name in (WHOLE, UPLOAD, MACHINES, BARE, TUNED):
        found, turn = contest[name], turns[name]
        shares = (
            f"{who} {cpu:.2f}" + (f" ({turn.peaks[who]:.0f} MiB)" if who in turn.peaks else "")
            for who, cpu in turn.cpu.items()
        )
        rate = f"{megabytes / found.wall:,.0f}"
        rows.append((name, f"{found.wall:.2f}", rate, f"{found.work:.2f}", ", ".join(shares)))
    title = f"{SILOS} silos upload {megabytes:,.0f} MB over mutual TLS"
    columns = ("what", "wall s", "MB/s", "CPU s", "CPU s of each (at the peak)")
    bench.table("upload", title, columns, rows)
    upload, machines, raw, tuned = (contest[name] for name in (UPLOAD, MACHINES, BARE, TUNED))
    only = upload.wall / raw.wall, upload.work / raw.work
    same = upload.wall / tuned.wall, upload.work / tuned.work
    both = upload.wall / (tuned.wall + machines.wall), upload.work / (tuned.work + machines.work)
    bench.table(
        "multiples",
        "the upload as a multiple",
        ("of", "wall", "CPU", "at most"),
        [
            (of, *(f"{ratio:.2f}" for ratio in ratios), most)
            for of, ratios, most in (
                ("the bare broker", only, f"{GOAL:g}"),
                ("the bare broker, set up as ours", same, ""),
                ("the latter and the machines, each by itself", both, ""),
            )
        ],
    )
    bench.goal("upload / bare broker, by the clock", only[0], most=GOAL)


if __name__ == "__main__":
    sys.exit(main())
