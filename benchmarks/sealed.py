"""The sealed protocol: all parties in one process, on two cores.

1. Whole runs on Facebook and Wiki-Vote with m = 4, δ = 1e-9: union, noisy degrees, bound, triangles
   with noise; hashing, signing and encryption included. Wall time and CPU seconds, bytes of each
   member for a pair, and peak memory; each run in a process of its own.
2. Memory of a member at n = 20,000: four members up to the counting of triangles, in one process.
3. The symmetric square mod 2^64 at every instruction set, beside what the registers allow on
   operands that stay in the first cache, and beside a plain NumPy uint64 product.
4. SecretFlow SPU, which counts the triangles of a secret matrix, if it is asked for (--spu PLACE).

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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.made import public_graph
from benchmarks.spu_peer import peer
from silograph import NodeUniverse, Silo, _core, split
from silograph.graph.bits import bits_in_chunks
from silograph.local.drive import Parties, Traffic, _Post, drive
from silograph.messages.entropy import OsEntropy
from silograph.methods.sealed.coordinator import SealedCoordinator
from silograph.methods.sealed.method import sealed_parameters
from silograph.methods.sealed.noise import SealedNoise
from silograph.methods.sealed.party import SealedParty
from silograph.methods.sealed.rounds import member_cost

ROOT = Path(__file__).parents[1]
SILOS = 4
#: Seconds for all parties; three times that without AVX-512.
GOALS = {"facebook": 25.0, "wiki-vote": 125.0}
#: Bytes of a member for a pair, each way, and GiB of memory at the largest number of nodes.
MOST_BYTES, MOST_GIB, LARGEST = 12.0, 6.0, 20_000
KERNEL_NODES, NUMPY_NODES = 4_039, 1_000
console = Console(width=100)


def verdict(text: str, passed: bool) -> bool:
    console.print(f"{text}: {'yes' if passed else '[red]NO[/]'}")
    return passed


# --- 1. whole runs --------------------------------------------------------------------------------


class Run:
    """The machines of one run, at ε = 1 and δ = 1e-9."""

    def __init__(self, silos: tuple[Silo, ...]) -> None:
        nodes = len(silos[0].universe)
        noise = SealedNoise.choose(
            1.0, nodes, SILOS, 1, ["triangles"], delta=1e-9, degree_share=0.05, rule="largest"
        )
        entropy = OsEntropy()
        parties = Parties.fresh(silos, entropy)
        self.given = sealed_parameters(noise, tuple(range(SILOS)), bytes(32))
        head = (self.given, parties.roster, entropy.bytes(16))
        self.coordinator = SealedCoordinator(*head, parties.coordinator[0], entropy)
        self.members = [
            SealedParty(
                *head, place, identity, entropy, bits_in_chunks(silo, self.given.chunk_pairs)
            )
            for place, ((identity, _), silo) in enumerate(zip(parties.silos, silos, strict=True))
        ]


def peak() -> float:
    """MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_in_child(name: str) -> None:
    graph = public_graph(name)
    silos = split(graph, SILOS, rate=0.5)
    loaded, traffic = peak(), Traffic()
    wall, work = time.perf_counter(), time.process_time()
    run = Run(silos)
    found = drive(run.coordinator, run.members, lambda: None, "sealed", record=traffic, shown=False)
    told = {
        "nodes": len(graph.universe),
        "pairs": run.given.pairs,
        "width": run.given.width,
        "wall": time.perf_counter() - wall,
        "work": time.process_time() - work,
        "triangles": found.number("triangles"),
        "rounds": [traffic.of(place) for place in range(SILOS)],
        "loaded": loaded,
        "peak": peak(),
    }
    print(json.dumps(told))


def child(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.sealed", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def whole(name: str, goal: float, runs: int) -> bool:
    told = min((child("--run", name) for _ in range(runs)), key=lambda one: one["wall"])
    n, pairs = told["nodes"], told["pairs"]
    table = Table(title=f"{name}, n = {n:,}, {8 * told['width']} bits: bytes for a pair, up / down")
    for column in ("member", "inputs", "joint messages", "all else", "all"):
        table.add_column(column, justify="right")
    most = 0.0
    for place, rounds in enumerate(told["rounds"]):
        input_, joint = rounds.pop("input"), rounds.pop("joint")
        parts = [input_, joint, [sum(both[way] for both in rounds.values()) for way in (0, 1)]]
        parts.append([sum(part[way] for part in parts) for way in (0, 1)])
        most = max(most, max(parts[-1]) / pairs)
        cells = [f"{up / pairs:.3f} / {down / pairs:.3f}" for up, down in parts]
        table.add_row(f"{place + 1}", *cells)
    console.print(table)
    cost = member_cost(n, SILOS, ("degrees", "triangles"))
    console.print(
        f"peak {told['peak']:,.0f} MiB for all parties ({told['loaded']:,.0f} before the run);"
        f" by the formula {cost.memory / 2**20:,.0f} MiB a member"
    )
    console.print(f"noisy triangles {told['triangles']:,}; CPU {told['work']:.1f} s")
    text = f"{name}: {told['wall']:.1f} s for all parties, best of {runs} (at most {goal:g})"
    passed = verdict(text, told["wall"] <= goal)
    text = f"{name}: at most {most:.2f} bytes a pair and member, each way (at most {MOST_BYTES:g})"
    return verdict(text, most <= MOST_BYTES) and passed


# --- 2. memory ------------------------------------------------------------------------------------


def memory_in_child(nodes: int) -> None:
    """Four members up to where they count triangles; one of them counts the first rows."""
    universe = NodeUniverse.range(nodes)
    near = np.stack([np.arange(nodes - 1), np.arange(1, nodes)], axis=1)
    silos = tuple(Silo.from_edges(universe, near) for _ in range(SILOS))
    loaded, run = peak(), Run(silos)
    start = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        post = _Post(run.coordinator, run.members, None, pool)
        post.deliver(enumerate(member.start() for member in run.members))
        post.deliver(enumerate([member.authorise() for member in run.members]))
    seconds = time.perf_counter() - start
    if not all(member.room for member in run.members):
        raise SystemExit("not all members have come to the counting of triangles")
    run.members[0].make()
    print(json.dumps({"loaded": loaded, "peak": peak(), "seconds": seconds}))


def memory(nodes: int) -> bool:
    told = child("--memory", str(nodes))
    each = (told["peak"] - told["loaded"]) / SILOS / 1024
    formula = member_cost(nodes, SILOS, ("degrees", "triangles")).memory / 2**30
    console.print(
        f"n = {nodes:,}: {told['seconds']:.0f} s for everything before triangles are counted; "
        f"by the formula {formula:.2f} GiB a member"
    )
    text = f"n = {nodes:,}: {each:.2f} GiB a member (at most {MOST_GIB:g})"
    return verdict(text, each <= MOST_GIB)


# --- 3. the kernel --------------------------------------------------------------------------------


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
    table = Table(title=f"one square, n = {KERNEL_NODES:,}, n³/2 products, {len(CORES)} cores")
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


# --- 4. a peer ------------------------------------------------------------------------------------


def spu(place: str | None) -> None:
    graph = public_graph("facebook")
    told = peer(graph.pairs, len(graph.universe), place)
    if "unable" in told:
        console.print(f"SecretFlow SPU: {told['unable']}")
    else:
        versions = told["versions"]["spu"]
        console.print(
            f"SecretFlow SPU {versions}, {told['protocol']}: {told['seconds']:.1f} s for the count "
            "alone, semi-honest, without union and noise"
        )


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--run", help=argparse.SUPPRESS)
    asked.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    asked.add_argument("--runs", type=int, default=2, help="take the best of so many runs")
    asked.add_argument("--only", nargs="*", help="of runs, memory, kernel and spu")
    asked.add_argument("--spu", help="a Python that has SPU, or a folder to install it in")
    given = asked.parse_args()
    if given.run or given.memory:
        _ = run_in_child(given.run) if given.run else memory_in_child(given.memory)
        return 0
    levels, passed = _core.simd_levels(), []
    console.print(f"{len(CORES)} cores, load {os.getloadavg()[0]:.1f}, {levels[-1]}")
    slower = 1 if "avx512" in levels else 3
    parts = given.only or ("runs", "memory", "kernel", "spu")
    # Runs first: a child's peak starts at its parent's, which is small now.
    if "runs" in parts:
        passed += [whole(name, slower * goal, given.runs) for name, goal in GOALS.items()]
    if "memory" in parts:
        passed.append(memory(LARGEST))
    if "kernel" in parts:
        kernel()
    if "spu" in parts:
        spu(given.spu)
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
