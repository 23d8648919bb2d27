"""The sealed protocol: all five parties in one process, on two cores.

1. The symmetric square mod 2^64 at every instruction set: beside what its own instructions reach
   on registers alone, and beside a plain NumPy uint64 product.
2. Whole runs on Facebook and Wiki-Vote with m = 4: degrees, triangles and 2-stars with noise,
   dealing, hashing, signing and encryption included. Every silo computes D² for itself. Time for
   each party, bytes for each silo and round, and peak memory, each run in a process of its own.

Exits with an error where a goal is missed.
"""

import os

# Before any library starts its threads: two cores, wherever this runs.
CORES = sorted(os.sched_getaffinity(0))[:2]
os.sched_setaffinity(0, CORES)
os.environ["RAYON_NUM_THREADS"] = str(len(CORES))

import argparse
import json
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from silograph import _core, dataset, split
from silograph.graph.bits import bits_in_chunks
from silograph.local.drive import Parties, Traffic, drive
from silograph.messages.entropy import OsEntropy
from silograph.methods.sealed.coordinator import SealedDealer
from silograph.methods.sealed.noise import BoundedNoise, Noise, Output
from silograph.methods.sealed.rounds import SealedParameters, sealed_cost
from silograph.methods.sealed.silo import SealedSilo

ROOT = Path(__file__).parents[1]
BESIDE = ROOT.parent / "shared" / "data"
SILOS = 4
#: Seconds for all five parties; three times that without AVX-512.
GOALS = {"facebook": 30.0, "wiki-vote": 150.0}
OUTPUTS = ("degrees", "triangles", "two_stars")
KERNEL_NODES, NUMPY_NODES = 4_039, 1_000
console = Console(width=100)


def parameters(nodes: int) -> SealedParameters:
    """ε = 1 for degrees, and as much for both counts; the margin is that of δ = 1e-9 or more."""
    bound = {"cap": nodes - 2, "margin": 40, "numerator": 1, "denominator": 1, "shares": SILOS}
    outputs = (
        Output("degrees", Noise("shared", 2, 1, SILOS)),
        Output("triangles", BoundedNoise("shared", 1, **bound)),
        Output("two_stars", BoundedNoise("shared", 2, **bound)),
    )
    return SealedParameters(SILOS, nodes, bytes(32), outputs)


def verdict(text: str, passed: bool) -> bool:
    console.print(f"{text}: {'yes' if passed else '[red]NO[/]'}")
    return passed


# --- 1. the kernel --------------------------------------------------------------------------------


def kernel() -> None:
    flags = ["--release", "--quiet", "--locked", "-p", "silograph-core", "--example", "square"]
    command = ["cargo", "run", *flags, "--", str(KERNEL_NODES)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    found: dict[str, dict[str, float]] = {}
    for level, what, value in map(str.split, done.stdout.splitlines()):
        found.setdefault(level, {})[what] = float(value)
    products = KERNEL_NODES**3 / 2
    full = np.arange(NUMPY_NODES**2, dtype=np.uint64).reshape(NUMPY_NODES, -1)
    full *= full
    start = time.perf_counter()
    full @ full
    plain = (time.perf_counter() - start) * (KERNEL_NODES / NUMPY_NODES) ** 3
    table = Table(title=f"D² against R, n = {KERNEL_NODES:,}, n³/2 products, {len(CORES)} cores")
    for column in ("level", "seconds", "G products/s", "registers allow", "reached", "× faster"):
        table.add_column(column, justify="right")
    for level, times in found.items():
        rate, seconds = times["limit"], times[str(KERNEL_NODES)]
        reached = f"{100 * products / seconds / rate:.0f} %"
        row = f"{seconds:.2f}", f"{products / seconds / 1e9:.1f}", f"{rate / 1e9:.1f}", reached
        table.add_row(level, *row, f"{plain / seconds:.0f}")
    text = f"NumPy uint64 @ (n = {NUMPY_NODES:,}, scaled as n³)"
    table.add_row(text, f"{plain:.1f}", "", "", "", "1", style="dim")
    console.print(table)


# --- 2. whole runs --------------------------------------------------------------------------------


def timed(kind: type, name: str, spent: Counter[str]) -> None:
    """Sum up the wall time of one method over all parties of a kind, by party."""
    whole: Callable[..., object] = getattr(kind, name)

    def call(self: object, *given: object) -> object:
        start = time.perf_counter()
        made = whole(self, *given)
        place = getattr(self, "_place", "dealer")
        spent[f"{place} {name}"] += time.perf_counter() - start  # type: ignore[assignment]
        return made

    setattr(kind, name, call)


def run_in_child(name: str) -> None:
    folder = os.environ.get("SILOGRAPH_DATA") or (BESIDE if BESIDE.is_dir() else None)
    graph = dataset(name, folder=folder)
    silos = split(graph, SILOS)
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    spent: Counter[str] = Counter()
    for kind, method in ((SealedDealer, "receive"), (SealedSilo, "receive"), (SealedSilo, "count")):
        timed(kind, method, spent)
    entropy, traffic = OsEntropy(), Traffic()
    parties, given = Parties.fresh(silos, entropy), parameters(len(graph.universe))
    head = (given, parties.roster, entropy.bytes(16))
    wall, work = time.perf_counter(), time.process_time()
    dealer = SealedDealer(*head, parties.coordinator[0], entropy)
    machines = [
        SealedSilo(*head, place, identity, entropy, bits_in_chunks(silo, given.chunk_pairs))
        for place, ((identity, _), silo) in enumerate(zip(parties.silos, silos, strict=True))
    ]
    found = drive(dealer, machines, lambda: None, "sealed", record=traffic, shown=False)
    seconds = time.perf_counter() - wall
    told = {
        "nodes": len(graph.universe),
        "wall": seconds,
        "work": time.process_time() - work,
        "triangles": found.number("triangles"),
        "spent": dict(spent),
        "rounds": [traffic.of(place) for place in range(SILOS)],
        "loaded": loaded,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(told))


def whole(name: str, goal: float) -> bool:
    command = [sys.executable, "-m", "benchmarks.sealed", "--run", name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told = json.loads(done.stdout)
    n = told["nodes"]
    table = Table(title=f"{name}, n = {n:,}, m = {SILOS}: seconds of each party, one after another")
    for column in ("party", "messages", "D², answers"):
        table.add_column(column, justify="right")
    spent = told["spent"]
    table.add_row("dealer (R² included)", f"{spent['dealer receive']:.2f}", "")
    for place in range(SILOS):
        row = f"{spent[f'{place} receive']:.2f}", f"{spent[f'{place} count']:.2f}"
        table.add_row(f"silo {place + 1}", *row)
    console.print(table)
    table = Table(title="MB of a silo (the last one also gets corrections)")
    for column in ("round", "up", "down", "last silo: down"):
        table.add_column(column, justify="right")
    first, last = told["rounds"][0], told["rounds"][-1]
    for which, (up, down) in last.items():
        if up + down > 1e4:
            own = first.get(which, (0, 0))
            table.add_row(which, f"{up / 1e6:.2f}", f"{own[1] / 1e6:.2f}", f"{down / 1e6:.2f}")
    sums = [sum(both[way] for both in rounds.values()) for rounds, way in
            ((last, 0), (first, 1), (last, 1))]  # fmt: skip
    table.add_row("all", *(f"{size / 1e6:.2f}" for size in sums), style="bold")
    console.print(table)
    cost = sealed_cost(n, SILOS, OUTPUTS)
    console.print(
        f"peak {told['peak']:,.0f} MiB for all parties ({told['loaded']:,.0f} before the run);"
        f" by the formula {cost.memory / 2**20:,.0f} MiB a party"
    )
    console.print(f"noisy triangles {told['triangles']:,}; work {told['work']:.1f} s")
    text = f"{name}: {told['wall']:.1f} s for all {SILOS + 1} parties (at most {goal:g})"
    return verdict(text, told["wall"] <= goal)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--run", help=argparse.SUPPRESS)
    name = asked.parse_args().run
    if name:
        run_in_child(name)
        return 0
    levels = _core.simd_levels()
    console.print(f"{len(CORES)} cores, load {os.getloadavg()[0]:.1f}, {levels[-1]}")
    slower = 1 if "avx512" in levels else 3
    # Runs first: a child's peak starts at its parent's, which is small now.
    passed = [whole(name, slower * goal) for name, goal in GOALS.items()]
    kernel()
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
