"""The committee's union: what it sends, what it computes beside `masked`, and how exact it is.

1. Bytes that each member sends and receives for a pair, at 12 places of the coin and m = 4, through
   the whole simulated protocol, with envelopes, encryption and hashes.
2. Processor time for a pair and member beside that of `masked` for a pair and silo, in turns, and
   its growth from n to 2n nodes.
3. A deployment of four silos over a broker: what the broker takes in and gives out for a pair.
4. Facebook's triangles at ε = 1, many whole runs: the mean square error beside the variance of
   symmetric randomized response on the union, within the limits of chi-square.

Everything timed is the best of several rounds; exits with an error where a goal is missed.
"""

import os

# Before any library starts its threads: two cores, wherever this runs.
CORES = sorted(os.sched_getaffinity(0))[:2]
os.sched_setaffinity(0, CORES)
os.environ["RAYON_NUM_THREADS"] = str(len(CORES))

import argparse
import asyncio
import json
import math
import sys
import tempfile
import time
import urllib.request
import warnings
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy import stats

from benchmarks.made import public_graph
from silograph import Federation, Silo, clustered_power_law, split
from silograph.cli.demo import QUERIES
from silograph.dp.channel import Channel
from silograph.estimators.pair_sums import GraphSums
from silograph.graph.bits import BitRows
from silograph.local.drive import Traffic
from silograph.methods.committee.noise import CommitteeNoise
from silograph.nats.coordinator import CoordinatorService, Question
from tests.support.local_deployment import LocalDeployment, Terms, free_port

SILOS, EPSILON = 4, 3.0
SMALL, LARGE, ROUNDS, RUNS = 4_096, 8_192, 5, 100
GOAL_BYTES, GOAL_GROWTH = 3.0, 4.4
console = Console(width=80)


def federation(n: int) -> Federation:
    return Federation.simulate(split(clustered_power_law(n, seed=1), SILOS))


def verdict(text: str, passed: bool) -> bool:
    console.print(f"{text}: {'yes' if passed else '[red]NO[/]'}")
    return passed


def traffic() -> bool:
    """Bytes for a pair and member, by round."""
    fed, counted = federation(SMALL), Traffic()
    fed._record = counted
    fed.collect(EPSILON, "committee", progress=False)
    pairs, places = SMALL * (SMALL - 1) // 2, CommitteeNoise.choose(EPSILON, SILOS, 1).places
    table = Table(title=f"bytes for a pair, {places} places, m = {SILOS}", min_width=60)
    table.add_column("round")
    for place in range(SILOS):
        table.add_column(f"member {place}: up, down", justify="right")
    sent = [counted.of(place) for place in range(SILOS)]
    for name in dict.fromkeys(name for of in sent for name in of):
        cells = (of.get(name, (0, 0)) for of in sent)
        table.add_row(name, *(f"{up / pairs:.3f} {down / pairs:.3f}" for up, down in cells))
    ends = [tuple(sum(way) / pairs for way in zip(*of.values(), strict=True)) for of in sent]
    table.add_row("all", *(f"{up:.3f} {down:.3f}" for up, down in ends), style="bold")
    console.print(table)
    up, down = (sum(way) / SILOS for way in zip(*ends, strict=True))
    text = f"{up:.3f} up and {down:.3f} down a member in the mean (at most {GOAL_BYTES:g})"
    return verdict(text, max(up, down) <= GOAL_BYTES)


def speed() -> bool:
    """Work and time beside masked, in turns."""
    best: dict[tuple[str, int], list[float]] = {}
    for n in (SMALL, LARGE):
        fed = federation(n)
        for _ in range(ROUNDS):
            for protocol in ("masked", "committee"):
                wall, work = time.perf_counter(), time.process_time()
                fed.collect(EPSILON, protocol, progress=False)
                found = [time.process_time() - work, time.perf_counter() - wall]
                known = best.setdefault((protocol, n), found)
                best[protocol, n] = [min(pair) for pair in zip(known, found, strict=True)]
    table = Table(title="for a pair and party, m = 4, ε = 3, t = 1", min_width=60)
    for column in ("protocol", "nodes", "work (ns)", "wall (ns)"):
        table.add_column(column, justify="right")
    for (protocol, n), (work, wall) in best.items():
        scale = 1e9 / (SILOS * n * (n - 1) / 2)
        table.add_row(protocol, f"{n:,}", f"{work * scale:.2f}", f"{wall * scale:.2f}")
    console.print(table)
    ratio = best["committee", LARGE][0] / best["masked", LARGE][0]
    growth = best["committee", LARGE][0] / best["committee", SMALL][0]
    console.print(f"work beside masked at {LARGE:,} nodes: {ratio:.2f} ×")
    return verdict(f"n → 2n: {growth:.2f} × (at most {GOAL_GROWTH:g})", growth <= GOAL_GROWTH)


def deployed() -> bool:
    """Four silos as processes, and what their broker counts."""
    silos = [
        Silo.from_pairs(part.universe, part.pairs, name=f"silo-{number}")
        for number, part in enumerate(split(clustered_power_law(SMALL, seed=1), SILOS), 1)
    ]
    terms = Terms(committee=tuple(silo.name for silo in silos))
    with tempfile.TemporaryDirectory(prefix="silograph-committee-") as folder:
        trial = LocalDeployment(Path(folder) / "trial", silos, terms)
        port = free_port()
        with trial.broker._config.open("a") as config:
            config.write(f"http: 127.0.0.1:{port}\n")
        trial.broker.start()
        processes = trial.processes()
        service = CoordinatorService(trial.coordinator())
        try:
            for name in trial.names:
                while not (trial.silo(name).state / "status.json").exists():
                    time.sleep(0.1)
            before, began = counted(port), time.perf_counter()
            plan = service.propose(Question("edges", EPSILON, protocol="committee"), 600.0)
            asyncio.run(service.carry(plan.study.run))
            seconds, after = time.perf_counter() - began, counted(port)
        finally:
            service.close()
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()
            trial.broker.stop()
    pairs = SMALL * (SMALL - 1) // 2
    taken, given = ((now - then) / pairs / SILOS for now, then in zip(after, before, strict=True))
    text = (
        f"deployed, {SMALL:,} nodes, {seconds:.1f} s: the broker took in {taken:.2f} and gave out "
        f"{given:.2f} bytes for a pair and member (at most {1.05 * GOAL_BYTES:g} each)"
    )
    return verdict(text, max(taken, given) <= 1.05 * GOAL_BYTES)


def counted(port: int) -> tuple[int, int]:
    """Bytes that a broker has taken in and given out."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/varz") as answer:
        found = json.load(answer)
    return found["in_bytes"], found["out_bytes"]


def accuracy(runs: int) -> bool:
    """Whole runs on Facebook at ε = 1."""
    graph = public_graph("facebook")
    fed = Federation.simulate(split(graph, SILOS))
    bits = BitRows.from_pairs(len(graph.universe), graph.pairs)
    target = QUERIES["triangles"]
    truth, noise = target.truth(bits), CommitteeNoise.choose(1.0, SILOS, 1)
    floor = target.variance(GraphSums(bits), Channel.symmetric(1.0))
    drawn = target.variance(GraphSums(bits), noise.channel)
    errors = [
        fed.collect(1.0, "committee", progress=False).triangles().value - truth
        for _ in track(range(runs), "running", console=console, transient=True)
    ]
    found = sum(error**2 for error in errors) / runs
    low, high = (stats.chi2.ppf(q, runs) / runs for q in (0.0005, 0.9995))
    console.print(
        f"Facebook, ε = 1, {runs} runs: RMSE {math.sqrt(found) / truth:.2%}, symmetric response "
        f"{math.sqrt(floor) / truth:.2%} (the drawn coin: {math.sqrt(drawn) / truth:.2%})"
    )
    text = f"mean square error over the variance: {found / drawn:.3f} ({low:.2f} to {high:.2f})"
    return verdict(text, low <= found / drawn <= high and found / floor <= 1.06 * high)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of part 4")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # no ledger
    passed = [traffic(), speed(), deployed(), accuracy(given.runs)]
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
