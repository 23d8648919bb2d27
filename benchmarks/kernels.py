"""Triangles of noisy graphs (ε = 3) by this project and five others, all on one thread.

Fails unless Silograph is at least 5 × faster than the best of the others on every graph, and
going from 8,000 to 16,000 nodes costs at most 9 ×. Every tool counts the same graph, given in its
own form beforehand, and all counts must agree. The limit counts the ones of every word that has to
be looked at, in the first cache: for an edge u < v, those of the nodes behind v.
"""

from benchmarks.harness import Benchmark, limits, use_threads

use_threads(1)

import sys
from collections.abc import Callable

import igraph
import networkit
import networkx
import numpy as np
import scipy.linalg.blas
import scipy.sparse

from benchmarks.made import public_graph
from silograph import Channel, Release, Silo, _core, clustered_power_law
from silograph.graph.bits import BitRows, simd_levels

LARGE, REPEATS, LARGE_REPEATS = 10_000, 3, 2


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
    dense = np.asfortranarray(graph.bits(slice(0, graph.n)), dtype=np.float32)

    def run() -> int:
        # The square is symmetric: half of it is computed, as by all others.
        walks = np.einsum("ij,ij->j", scipy.linalg.blas.ssyrk(1.0, dense), dense)
        return round(float(walks.sum(dtype=np.float64))) // 3

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


def needed_words(graph: BitRows) -> float:
    """Words that any count of common neighbours has to look at, each triangle once."""
    _, v = graph.pairs().T.astype(np.int64)
    return float((graph.n - 1 - v).sum()) / 64


def compare(bench: Benchmark, key: str, name: str, graph: BitRows, counted: float) -> None:
    """One race; ``counted`` is the words that this machine counts in a second."""
    best = f"Silograph ({simd_levels()[-1]})"
    runs: dict[str, Callable[[], int]] = {
        f"Silograph ({level})": lambda level=level: _core.count_triangles(graph.words, level)
        for level in reversed(simd_levels())
    }
    peers = {tool: make for tool, (make, largest) in PEERS.items() if graph.n <= largest}
    runs |= {tool: make(graph) for tool, make in peers.items()}
    title = f"{name}: {graph.n:,} nodes, {graph.edges:,} edges"
    contest = bench.contest(title)
    contest.race(REPEATS if graph.n < 10_000 else LARGE_REPEATS, runs, same=True)
    ours = contest[best]
    reached = bench.share(f"{name}, ones counted", needed_words(graph) / counted, ours.work)
    rows = [
        (tool, f"{1e3 * found.wall:,.1f} ms", f"{1e3 * found.work:,.1f} ms",
         f"{found.work / ours.work:,.1f}", reached if tool == best else "")
        for tool, found in contest.items()
    ]  # fmt: skip
    rows += [(tool, "left out: takes many minutes", "", "", "") for tool in PEERS.keys() - peers]
    columns = ("tool", "wall", "CPU", "× Silograph", "of the limit")
    bench.table(key, title, columns, rows)
    faster = min(contest[tool].work for tool in peers) / ours.work
    bench.goal(f"{name}: times as fast as the best peer", faster, least=5)


def main() -> int:
    bench = Benchmark("kernels", __doc__)
    bench.parser.add_argument("--nodes", type=int, default=LARGE, help="of the made graph")
    given = bench.start()
    counted = limits()[f"popcount {simd_levels()[-1]}"]
    compare(bench, "facebook", "Facebook, ε = 3", noisy(public_graph("facebook")), counted)
    made = noisy(clustered_power_law(given.nodes, seed=1))
    compare(bench, "power-law", "Power law, ε = 3", made, counted)
    contest = bench.contest("growth")
    graphs = {n: noisy(clustered_power_law(n, seed=1)) for n in (8_000, 16_000)}
    counts = {f"{n:,} nodes": lambda g=g: _core.count_triangles(g.words) for n, g in graphs.items()}
    contest.race(REPEATS, counts)
    small, large = (contest[name].work for name in counts)
    bench.goal("8,000 → 16,000 nodes: times the work", large / small, most=9)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
