"""The sealed protocol: all parties in one process, on two cores.

1. Whole runs on Facebook and Wiki-Vote with m = 4, δ = 1e-9: union, noisy degrees, bound, triangles
   with noise; hashing, signing and encryption included. Wall time and CPU seconds, bytes of each
   member for a pair, and peak memory; each run in a process of its own.
2. Memory of a member at n = 20,000: four members up to the counting of triangles, in one process.
3. The symmetric square mod 2^64 at every instruction set, beside what the registers allow, and
   beside a plain NumPy uint64 product, whose time is halved: it computes both halves.
4. SecretFlow SPU, which counts the triangles of a secret matrix, if it is asked for (--spu PLACE).
"""

from benchmarks.harness import Benchmark, apart, example, limits, peak, use_threads

THREADS = use_threads(2)

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

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

SILOS = 4
#: Seconds for all parties; three times that without AVX-512.
GOALS = {"facebook": 25.0, "wiki-vote": 125.0}
#: Bytes of a member for a pair, each way, and GiB of memory at the largest number of nodes.
MOST_BYTES, MOST_GIB, LARGEST = 12.0, 6.0, 20_000
KERNEL_NODES, NUMPY_NODES = 4_039, 1_000


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


def whole_run(name: str) -> dict[str, Any]:
    """In a process of its own."""
    graph = public_graph(name)
    silos = split(graph, SILOS, rate=0.4)
    loaded, traffic = peak(), Traffic()
    wall, work = time.perf_counter(), time.process_time()
    run = Run(silos)
    found = drive(run.coordinator, run.members, lambda: None, "sealed", record=traffic, shown=False)
    return {
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


def whole(bench: Benchmark, name: str, goal: float, runs: int) -> None:
    contest = bench.contest("whole runs")
    for _ in range(runs):
        told = apart(whole_run, name)
        contest.note(name, told["wall"], told["work"])
    n, pairs = told["nodes"], told["pairs"]
    rows, most = [], 0.0
    for place, rounds in enumerate(told["rounds"]):
        input_, joint = rounds.pop("input"), rounds.pop("joint")
        parts = [input_, joint, [sum(both[way] for both in rounds.values()) for way in (0, 1)]]
        parts.append([sum(part[way] for part in parts) for way in (0, 1)])
        most = max(most, max(parts[-1]) / pairs)
        cells = [f"{up / pairs:.3f} / {down / pairs:.3f}" for up, down in parts]
        rows.append((f"{place + 1}", *cells))
    title = f"{name}, n = {n:,}, {8 * told['width']} bits: bytes for a pair, up / down"
    columns = ("member", "inputs", "joint messages", "all else", "all")
    bench.table(f"{name}-bytes", title, columns, rows)
    cost = member_cost(n, SILOS, ("degrees", "triangles"))
    bench.console.print(
        f"peak {told['peak']:,.0f} MiB for all parties ({told['loaded']:,.0f} before the run);"
        f" by the formula {cost.memory / 2**20:,.0f} MiB a member"
    )
    bench.console.print(f"noisy triangles {told['triangles']:,}; CPU {contest[name].work:.1f} s")
    bench.text(name, f"{contest[name].wall:.0f} s")
    bench.goal(f"{name}: seconds for all parties", contest[name].wall, most=goal)
    bench.goal(f"{name}: bytes a pair and member, each way", most, most=MOST_BYTES)


# --- 2. memory ------------------------------------------------------------------------------------


def members(nodes: int) -> dict[str, float]:
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
    return {"loaded": loaded, "peak": peak(), "seconds": seconds}


def memory(bench: Benchmark, nodes: int) -> None:
    told = apart(members, nodes)
    each = (told["peak"] - told["loaded"]) / SILOS / 1024
    formula = member_cost(nodes, SILOS, ("degrees", "triangles")).memory / 2**30
    bench.console.print(
        f"n = {nodes:,}: {told['seconds']:.0f} s for everything before triangles are counted; "
        f"by the formula {formula:.2f} GiB a member"
    )
    bench.text("memory", f"{each:.1f} GiB")
    bench.goal(f"n = {nodes:,}: GiB a member", each, most=MOST_GIB)


# --- 3. the kernel --------------------------------------------------------------------------------


def kernel(bench: Benchmark) -> None:
    contest, rates = bench.contest(f"one square, n = {KERNEL_NODES:,}"), limits()
    full = np.arange(NUMPY_NODES**2, dtype=np.uint64).reshape(NUMPY_NODES, -1)
    full *= full
    plain = f"NumPy uint64 @, half of n = {NUMPY_NODES:,}, scaled as n³"
    scaled = 2 * (NUMPY_NODES / KERNEL_NODES) ** 3
    for _ in range(2):
        for line in example("square", str(KERNEL_NODES)).splitlines():
            level, wall, work = line.split()
            contest.note(level, float(wall), float(work))
        contest.time(plain, lambda: full @ full, scaled)
    products = KERNEL_NODES**3 / 2
    best, rows = contest[_core.simd_levels()[-1]], []
    for name, found in contest.items():
        rate, reached = rates.get(f"products {name}"), ""
        if rate is not None:
            reached = bench.share(f"products, {name}", products / rate, found.work)
        made, times = f"{products / found.work / 1e9:.1f}", f"{found.work / best.work:.1f}"
        allowed = "" if rate is None else f"{rate / 1e9:.1f}"
        rows.append((name, f"{found.wall:.2f}", f"{found.work:.2f}", made, allowed, reached, times))
    columns = ("level", "wall", "CPU", "G products/s", "a core allows", "reached", "× ours")
    title = f"one square, n = {KERNEL_NODES:,}, n³/2 products, seconds"
    bench.table("kernel", title, columns, rows)


# --- 4. a peer ------------------------------------------------------------------------------------


def spu(bench: Benchmark, place: str | None) -> None:
    graph = public_graph("facebook")
    told = peer(graph.pairs, len(graph.universe), place)
    if "unable" in told:
        bench.console.print(f"SecretFlow SPU: {told['unable']}")
    else:
        bench.text("spu", f"{told['seconds']:.0f} s")
        bench.console.print(
            f"by SecretFlow SPU {told['versions']['spu']}, {told['protocol']}: the count alone, "
            "semi-honest, without union and noise"
        )


def main() -> int:
    bench = Benchmark("sealed", __doc__, THREADS)
    ask = bench.parser.add_argument
    ask("--runs", type=int, default=2, help="take the best of so many runs")
    ask("--only", nargs="*", help="of runs, memory, kernel and spu")
    ask("--spu", help="a Python that has SPU, or a folder to install it in")
    given = bench.start()
    slower = 1 if "avx512" in _core.simd_levels() else 3
    parts = given.only or ("runs", "memory", "kernel", "spu")
    if "runs" in parts:
        for name, goal in GOALS.items():
            whole(bench, name, slower * goal, given.runs)
    if "memory" in parts:
        memory(bench, LARGEST)
    if "kernel" in parts:
        kernel(bench)
    if "spu" in parts:
        spu(bench, given.spu)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
