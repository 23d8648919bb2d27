"""Throughput over the wire: four silos upload a masked union of 20,000 nodes over mutual TLS.

Three measurements in one run, all on this machine, all through brokers with the same settings
(mutual TLS, JetStream, every write synced):

1. the study: four silo processes and a coordinator, from the proposal to the answer;
2. the same messages in one process without a wire: masks, signatures, sums;
3. the bare broker: four processes that publish as many messages of the same size, four at a time,
   and one that reads them.

The wire part of the study is its time without that of 2. Goal: at most three times that of 3.
"""

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import nats
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig
from rich.console import Console
from rich.table import Table

from silograph import Federation, Silo, clustered_power_law, split
from silograph.methods.masked.machines import CHUNK_PAIRS, packed_bytes
from silograph.methods.masked.noise import MaskedNoise
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.party.config import CoordinatorConfig, SiloConfig
from tests.support.local_deployment import HUB, LocalDeployment, Terms

NODES, SILOS, EPSILON, GOAL = 20_000, 4, 3.0, 3.0
WINDOW = 4
T = TypeVar("T")
console = Console(width=90)


def parts(nodes: int) -> list[Silo]:
    made = split(clustered_power_law(nodes, seed=1), SILOS, seed=1)
    return [
        Silo.from_pairs(part.universe, part.pairs, name=f"silo-{number}")
        for number, part in enumerate(made, 1)
    ]


def study(trial: LocalDeployment) -> dict[str, float]:
    """From the proposal to the answer, and the peak memory of coordinator and silos."""
    silos = trial.processes()
    service = CoordinatorService(trial.coordinator())
    moments: list[float] = []
    try:
        wait_for(trial)
        plan = service.propose(Question("edges", EPSILON, protocol="masked"), 1500.0)

        def watch(progress: object) -> None:
            if getattr(progress, "done", 0) or getattr(progress, "phase", "") == "chunks":
                moments.append(time.perf_counter())

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
    return {
        "whole": whole,
        "upload": moments[-2] - moments[0],
        "bytes": float(found["bytes"]["received"]),
        "silo MiB": max(peaks),
        "coordinator MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


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


def alone(silos: list[Silo]) -> float:
    """All machines in one process, without a wire."""
    fed = Federation.simulate(silos)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        fed.collect(EPSILON, "masked", progress=False)
    return time.perf_counter() - began


# --- the bare broker ------------------------------------------------------------------------------


async def ignore(_error: Exception) -> None:
    """A line that ends is no news."""


async def publish(config: Path, name: str, messages: int, size: int) -> None:
    """Publish messages, a few at a time, each acknowledged."""
    client = await nats.connect(
        **SiloConfig.read(config).broker.connect_options(name), error_cb=ignore
    )
    streams = client.jetstream(timeout=30)
    await streams.add_stream(StreamConfig(name=f"raw-{name}", subjects=[f"silograph.raw.{name}.>"]))
    payload, window = os.urandom(size), asyncio.Semaphore(WINDOW)

    async def send(number: int) -> None:
        try:
            await streams.publish(f"silograph.raw.{name}.{number}", payload, timeout=60)
        finally:
            window.release()

    async with asyncio.TaskGroup() as tasks:
        for number in range(messages):
            await window.acquire()
            tasks.create_task(send(number))
    await client.close()


async def read(config: Path, names: list[str], messages: int) -> float:
    """Read all messages of all publishers; the seconds from the first to the last."""
    client = await nats.connect(
        **CoordinatorConfig.read(config).broker.connect_options(HUB), error_cb=ignore
    )
    streams = client.jetstream(timeout=30)
    began: list[float] = []

    async def one(name: str) -> None:
        while True:
            try:
                found = await streams.pull_subscribe(
                    "", stream=f"raw-{name}", config=ConsumerConfig(ack_policy=AckPolicy.NONE)
                )
                break
            except nats.errors.Error:
                await asyncio.sleep(0.05)
        for _ in range(messages):
            await found.fetch(1, timeout=60)
            began.append(time.perf_counter())

    await asyncio.gather(*(one(name) for name in names))
    await client.close()
    return max(began) - min(began)


def bare(trial: LocalDeployment, messages: int, size: int) -> float:
    command = [sys.executable, "-m", "benchmarks.wire", "--publish"]
    publishers = [
        subprocess.Popen([*command, str(trial.silo_file(name)), name, str(messages), str(size)])
        for name in trial.names
    ]
    try:
        return asyncio.run(read(trial.folder / f"{HUB}.toml", trial.names, messages))
    finally:
        for process in publishers:
            process.wait()


def on_a_broker(silos: list[Silo], measure: Callable[[LocalDeployment], T]) -> T:
    """Measure with a deployment of its own."""
    with tempfile.TemporaryDirectory(prefix="silograph-wire-") as folder:
        trial = LocalDeployment(Path(folder) / "trial", silos, Terms())
        trial.broker.start()
        try:
            return measure(trial)
        finally:
            trial.broker.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--publish", nargs=4)
    given = parser.parse_args()
    if given.publish:
        config, name, messages, size = given.publish
        asyncio.run(publish(Path(config), name, int(messages), int(size)))
        return 0
    silos = parts(given.nodes)
    pairs = given.nodes * (given.nodes - 1) // 2
    q = MaskedNoise.choose(EPSILON, SILOS, 1).q
    chunks, size = -(-pairs // CHUNK_PAIRS), packed_bytes(q, min(pairs, CHUNK_PAIRS))
    found, raw = on_a_broker(silos, study), on_a_broker(silos, lambda t: bare(t, chunks, size))
    machines = alone(silos)
    megabytes, wire = found["bytes"] / 1e6, max(found["upload"] - machines, 0.0)
    table = Table("what", "seconds", "MB/s", title=f"{SILOS} silos, n = {given.nodes:,}")
    table.columns[1].justify = table.columns[2].justify = "right"
    for name, seconds in (
        ("study, proposal to answer", found["whole"]),
        ("its upload, first chunk to last", found["upload"]),
        ("the same without a wire", machines),
        ("wire part: the difference", wire),
        ("bare broker, the same bytes", raw),
    ):
        table.add_row(name, f"{seconds:.2f}", f"{megabytes / seconds:,.0f}" if seconds else "")
    console.print(table)
    console.print(
        f"peak memory: silo {found['silo MiB']:.0f} MiB, "
        f"coordinator {found['coordinator MiB']:.0f} MiB"
    )
    console.print(f"wire / bare = {wire / raw:.2f}, upload / bare = {found['upload'] / raw:.2f}")
    passed = wire <= GOAL * raw
    console.print(f"wire part within {GOAL:g} × of the bare broker: {'yes' if passed else 'NO'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
