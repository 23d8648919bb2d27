"""Triangles of noisy graphs (ε = 3) by this project and five others, all on one thread.

Fails unless Silograph is at least 5 × faster than the best of the others on every graph, and
going from 8,000 to 16,000 nodes costs at most 9 ×. Every tool counts the same graph, given in its
own form beforehand, and all counts must agree. Times are the best of several runs.
"""

import os

# Before any library starts its threads.
for variable in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import sys
import time
from collections.abc import Callable

import igraph
import networkit
import networkx
import numpy as np
import scipy.sparse
from rich.console import Console
from rich.table import Table

from benchmarks.made import public_graph
from silograph import Channel, Release, Silo, _core, clustered_power_law
from silograph.graph.bits import BitRows, simd_levels

LARGE, REPEATS = 20_000, 5
console = Console()


def timed(run: Callable[[], int], repeats: int) -> tuple[float, int]:
    """The best of several times, and the count."""
    times, count = [], 0
    for _ in range(repeats):
        start = time.perf_counter()
        count = run()
        times.append(time.perf_counter() - start)
    return min(times), count


def noisy(graph: Silo) -> BitRows:
    return Release.draw(graph, Channel.symmetric(3.0), seed=1).graph


def by_igraph(graph: BitRows) -> Callable[[], int]:
    made = igraph.Graph(n=graph.n, edges=graph.pairs().astype(np.int64))
    return lambda: round(made.transitivity_undirected() * graph.wedges / 3)


def by_networkit(graph: BitRows) -> Callable[[], int]:
    networkit.setNumberOfThreads(1)
    u, v = np.ascontiguousarray(graph.pairs().T, dtype=np.uint64)
    made = networkit.GraphFromCoo((u, v), n=graph.n)
    made.indexEdges()
    made.sortEdges()
    score = networkit.sparsification.TriangleEdgeScore
    return lambda: int(np.sum(score(made).run().scores())) // 3


def by_scipy(graph: BitRows) -> Callable[[], int]:
    u, v = graph.pairs().T
    ones = np.ones(len(u), np.int32)
    upper = scipy.sparse.coo_array((ones, (u, v)), shape=(graph.n, graph.n)).tocsr()
    return lambda: int((upper @ upper).multiply(upper).sum())


def by_blas(graph: BitRows) -> Callable[[], int]:
    dense = graph.bits(slice(0, graph.n)).astype(np.float32)

    def run() -> int:
        walks = np.einsum("ij,ij->i", dense @ dense, dense)
        return round(float(walks.sum(dtype=np.float64))) // 6

    return run


def by_networkx(graph: BitRows) -> Callable[[], int]:
    made = networkx.Graph(graph.pairs().tolist())
    return lambda: sum(networkx.triangles(made).values()) // 3


#: Each tool, and the largest graph on which it ends within a few minutes.
PEERS = {
    "igraph": (by_igraph, LARGE),
    "networkit": (by_networkit, LARGE),
    "scipy.sparse": (by_scipy, LARGE),
    "NumPy BLAS": (by_blas, LARGE),
    "networkx": (by_networkx, 5_000),
}


def compare(name: str, graph: BitRows) -> bool:
    """Print one table; whether Silograph is 5 × faster than the best."""
    ours, count = timed(lambda: _core.count_triangles(graph.words), 2 * REPEATS)
    table = Table(title=f"{name}: {graph.n:,} nodes, {graph.edges:,} edges, {count:,} triangles")
    for column in ("tool", "time", "× Silograph"):
        table.add_column(column, justify="right")
    table.add_row(f"Silograph ({simd_levels()[-1]})", f"{ours * 1e3:,.1f} ms", "1")
    for level in reversed(simd_levels()[:-1]):
        taken, again = timed(lambda level=level: _core.count_triangles(graph.words, level), REPEATS)
        check("Silograph", count, again)
        table.add_row(f"Silograph ({level})", f"{taken * 1e3:,.1f} ms", f"{taken / ours:,.1f}")
    best = float("inf")
    for tool, (prepare, largest) in PEERS.items():
        if graph.n > largest:
            table.add_row(tool, "left out", "takes many minutes")
            continue
        taken, again = timed(prepare(graph), REPEATS if graph.n < 10_000 else 1)
        check(tool, count, again)
        best = min(best, taken)
        table.add_row(tool, f"{taken * 1e3:,.1f} ms", f"{taken / ours:,.1f}")
    console.print(table)
    return verdict(f"{best / ours:,.1f} × faster than the best (at least 5)", best / ours >= 5)


def check(tool: str, expected: int, found: int) -> None:
    if found != expected:
        sys.exit(f"{tool} counts {found:,} triangles, not {expected:,}")


def verdict(text: str, passed: bool) -> bool:
    console.print(f"{text}: {'yes' if passed else '[red]NO[/]'}\n")
    return passed


def main() -> int:
    facebook = noisy(public_graph("facebook"))
    passed = compare("Facebook, ε = 3", facebook)
    passed &= compare("Clustered power law, ε = 3", noisy(clustered_power_law(LARGE, seed=1)))
    halves = noisy(clustered_power_law(8_000, seed=1)), noisy(clustered_power_law(16_000, seed=1))
    small, large = (timed(lambda g=g: _core.count_triangles(g.words), REPEATS)[0] for g in halves)
    growth = f"8,000 → 16,000 nodes: {small * 1e3:.1f} → {large * 1e3:.1f} ms"
    passed &= verdict(f"{growth}, {large / small:.1f} × (at most 9)", large / small <= 9)
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main())
