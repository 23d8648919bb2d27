"""`make bench-many`: one study over many silos, and the memory of each party.

Broker, coordinator and silos are processes of their own on the loopback, with mutual TLS. The
memory of a process is the most that it has taken (VmHWM). At the end the broker must have no
stream of the run.
"""

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import peak
from silograph.graph.samples import clustered_power_law, split, union
from silograph.graph.silo import Silo
from silograph.nats.link import Link
from tests.support.local_deployment import HUB, LocalDeployment, Terms

_START_SECONDS = 600.0


async def streams_left(made: LocalDeployment) -> int:
    """How many streams of runs the broker has."""
    line = await Link.connect(made.coordinator().broker, HUB, 5)
    try:
        return len(await line.stream_names())
    finally:
        await line.close()


def wait_until_connected(made: LocalDeployment) -> float:
    """Wait for the status files of all silos; seconds."""
    began = time.monotonic()
    waiting = set(made.names)
    while waiting and time.monotonic() < began + _START_SECONDS:
        for name in list(waiting):
            with contextlib.suppress(OSError, ValueError):
                content = (made.folder / f"{name}.state" / "status.json").read_bytes()
                if json.loads(content)["connected"]:
                    waiting.remove(name)
        time.sleep(0.2)
    return time.monotonic() - began


def measure(count: int, nodes: int, protocol: str, folder: Path) -> list[str]:
    """Carry one study; the lines of the table."""
    whole = clustered_power_law(nodes, edges_per_node=3, seed=1)
    parts = [
        Silo.from_pairs(part.universe, part.pairs, name=f"silo-{number}")
        for number, part in enumerate(split(whole, count, seed=1, rate=0.1), 1)
    ]
    first = tuple(part.name or "" for part in parts[:4])
    terms = Terms(committee=first if protocol == "committee" else ())
    made = LocalDeployment(folder / "trial", parts, terms)
    made.broker.start()
    silos = made.processes()
    try:
        started = wait_until_connected(made)
        command = [sys.executable, "-m", "silograph", "study", "propose", "edges", "--json",
                   "--epsilon", "3", "--protocol", protocol, "--minutes", "15",
                   "--config", str(made.folder / f"{HUB}.toml")]  # fmt: skip
        began, most = time.monotonic(), 0.0
        out = folder / "answer.json"
        with out.open("wb") as answer:
            hub = subprocess.Popen(command, stdout=answer)
            while hub.poll() is None:
                most = max(most, peak(hub.pid))
                time.sleep(0.1)
        seconds = time.monotonic() - began
        found = json.loads(out.read_text())
        taken = sorted(peak(silo.pid) for silo in silos)
        broker = peak(made.broker.pid)
        left = asyncio.run(streams_left(made))
    finally:
        for silo in silos:
            silo.terminate()
        for silo in silos:
            silo.wait()
        made.broker.stop()
    value, error = found["answer"]["value"], found["answer"]["stderr"]
    return [
        f"{count} silos, {nodes:,} nodes, feat {protocol}",
        f"  edges        {value:,.0f} ± {error:,.0f} (true: {len(union(parts)):,})",
        f"  all connected {started:,.0f} s, study {seconds:,.0f} s, of which run "
        f"{found['seconds']:,.0f} s",
        f"  coordinator  {most:,.0f} MiB",
        f"  silo         {taken[0]:,.0f} to {taken[-1]:,.0f} MiB",
        f"  broker       {broker:,.0f} MiB",
        f"  streams left {left}",
    ]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--silos", type=int, default=32)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--protocol", default="masked")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for line in measure(given.silos, given.nodes, given.protocol, Path(folder)):
            print(line)


if __name__ == "__main__":
    main()
