"""The committee's union: what it sends, what it computes beside `masked`, and how exact it is.

1. Bytes that each member sends and receives for a pair, at 10 places of the coin and m = 4, through
   the whole simulated protocol, with envelopes, encryption and hashes.
2. Processor time for a pair and member beside that of `masked` for a pair and silo, in turns, and
   its growth from n to 2n nodes.
3. A deployment of four silos over a broker: what the broker takes in and gives out for a pair.
4. Facebook's triangles at ε = 1, many whole runs: the mean square error beside the variance of
   symmetric randomized response on the union, within the limits of chi-square.

Fails where a goal is missed.
"""

from benchmarks.harness import Benchmark, use_threads

THREADS = use_threads(2)

import asyncio
import json
import math
import sys
import tempfile
import time
import urllib.request
import warnings
from pathlib import Path

from rich.progress import track
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


def federation(n: int) -> Federation:
    return Federation.simulate(split(clustered_power_law(n, seed=1), SILOS))


def traffic(bench: Benchmark) -> None:
    """Bytes for a pair and member, by round."""
    fed, counted = federation(SMALL), Traffic()
    fed._record = counted
    fed.collect(EPSILON, "committee", progress=False)
    pairs, places = SMALL * (SMALL - 1) // 2, CommitteeNoise.choose(EPSILON, SILOS, 1).places
    sent = [counted.of(place) for place in range(SILOS)]
    rows = []
    for name in dict.fromkeys(name for of in sent for name in of):
        cells = (of.get(name, (0, 0)) for of in sent)
        rows.append((name, *(f"{up / pairs:.3f} {down / pairs:.3f}" for up, down in cells)))
    ends = [tuple(sum(way) / pairs for way in zip(*of.values(), strict=True)) for of in sent]
    rows.append(("all", *(f"{up:.3f} {down:.3f}" for up, down in ends)))
    title = f"bytes for a pair, {places} places, m = {SILOS}"
    columns = ("round", *(f"member {place}: up, down" for place in range(SILOS)))
    bench.table("traffic", title, columns, rows)
    for way, each in zip(("up", "down"), zip(*ends, strict=True), strict=True):
        bench.goal(f"bytes {way} a member in the mean", sum(each) / SILOS, most=GOAL_BYTES)


def speed(bench: Benchmark) -> None:
    """Work and time beside masked, in turns."""
    contests, rows = {}, []
    for n in (SMALL, LARGE):
        fed, contests[n] = federation(n), bench.contest(f"{n:,} nodes")
        runs = {
            protocol: lambda fed=fed, protocol=protocol: fed.collect(
                EPSILON, protocol, progress=False
            )
            for protocol in ("masked", "committee")
        }
        contests[n].race(ROUNDS, runs)
        scale = 1e9 / (SILOS * n * (n - 1) / 2)
        rows += [
            (protocol, f"{n:,}", f"{scale * found.wall:.2f}", f"{scale * found.work:.2f}")
            for protocol, found in contests[n].items()
        ]
    title = f"ns for a pair and party, m = {SILOS}, ε = {EPSILON:g}, t = 1"
    bench.table("speed", title, ("protocol", "nodes", "wall", "CPU"), rows)
    works = {n: contest["committee"].work for n, contest in contests.items()}
    ratio = works[LARGE] / contests[LARGE]["masked"].work
    bench.text("ratio", f"{ratio:.1f} times the processor time of `masked`")
    bench.goal("n → 2n: times the work", works[LARGE] / works[SMALL], most=GOAL_GROWTH)


def deployed(bench: Benchmark) -> None:
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
        service = CoordinatorService(trial.coordinator())
        try:
            with trial.serving():
                trial.wait_for_silos()
                before, began = counted(port), time.perf_counter()
                plan = service.propose(Question("edges", EPSILON, protocol="committee"), 600.0)
                asyncio.run(service.carry(plan.study.run))
                seconds, after = time.perf_counter() - began, counted(port)
        finally:
            service.close()
            trial.broker.stop()
    pairs = SMALL * (SMALL - 1) // 2
    taken, given = ((now - then) / pairs / SILOS for now, then in zip(after, before, strict=True))
    bench.console.print(f"deployed, {SMALL:,} nodes: {seconds:.1f} s")
    for way, each in (("took in", taken), ("gave out", given)):
        what = f"bytes for a pair and member that the broker {way}"
        bench.goal(what, each, most=1.05 * GOAL_BYTES)


def counted(port: int) -> tuple[int, int]:
    """Bytes that a broker has taken in and given out."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/varz") as answer:
        found = json.load(answer)
    return found["in_bytes"], found["out_bytes"]


def accuracy(bench: Benchmark, runs: int) -> None:
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
        for _ in track(range(runs), "running", console=bench.console, transient=True)
    ]
    found = sum(error**2 for error in errors) / runs
    low, high = (stats.chi2.ppf(q, runs) / runs for q in (0.0005, 0.9995))
    bench.console.print(
        f"Facebook, ε = 1, {runs} runs: RMSE {math.sqrt(found) / truth:.2%}, symmetric response "
        f"{math.sqrt(floor) / truth:.2%} (the drawn coin: {math.sqrt(drawn) / truth:.2%})"
    )
    bench.goal("mean square error over the variance", found / drawn, least=low, most=high)
    bench.goal("and over that of symmetric response", found / floor, most=1.06 * high)


def main() -> int:
    bench = Benchmark("committee", __doc__, THREADS)
    bench.parser.add_argument("--runs", type=int, default=RUNS, help="runs of part 4")
    given = bench.start()
    warnings.simplefilter("ignore")  # no ledger
    traffic(bench)
    speed(bench)
    deployed(bench)
    accuracy(bench, given.runs)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
