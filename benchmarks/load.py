"""Reading SNAP files of a million and of ten million edges: this project, polars, networkx.

Polars' CSV reader only parses; this project also makes a universe of the ids and sorts the pairs.
The goals: at most polars' time at ten million edges, twice at a million, and at most 1/5 of
networkx's, which is asked for a million only.
"""

from benchmarks.harness import Benchmark, use_threads

THREADS = use_threads(2)

import sys
import tempfile
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl

from silograph.graph import read_graph

#: Edges, rounds, and how many times polars' time reading may take.
SIZES = ((1_000_000, 15, 2.0), (10_000_000, 7, 1.0))
#: Ids are below these: as many as a graph's nodes, or spread over all that a file may hold.
TOPS = {"dense": 100_000, "sparse": 1_000_000_000}
NETWORKX = 1 / 5


def write(path: Path, edges: int, top: int) -> None:
    """A SNAP file with ids below ``top``."""
    pairs = np.random.default_rng(top).integers(0, top, size=(edges, 2))
    with path.open("wb") as file:
        file.write(f"# Undirected graph\n# Edges: {edges}\n# FromNodeId\tToNodeId\n".encode())
        ends = pl.DataFrame({"from": pairs[:, 0], "to": pairs[:, 1]})
        ends.write_csv(file, separator="\t", include_header=False)


def main() -> int:
    bench = Benchmark("load", __doc__, THREADS)
    bench.start()
    rows = []
    for edges, rounds, polars in SIZES:
        for kind, top in TOPS.items():
            contest = bench.contest(f"{edges:,} edges, {kind} ids")
            goals = {"polars": polars}
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "edges.txt"
                write(path, edges, top)
                csv = partial(pl.read_csv, separator="\t", has_header=False, comment_prefix="#")
                contest.race(
                    rounds, {"silograph": partial(read_graph, path), "polars": partial(csv, path)}
                )
                if edges == SIZES[0][0]:
                    goals["networkx"] = NETWORKX
                    contest.race(2, {"networkx": partial(nx.read_edgelist, path)})
            ours = contest["silograph"].wall
            rows += [
                (f"{edges:,}", kind, name, f"{1e3 * found.wall:,.0f}", f"{1e3 * found.work:,.0f}",
                 f"{found.wall / ours:.2f}")
                for name, found in contest.items()
            ]  # fmt: skip
            for name, most in goals.items():
                what = f"{edges:,} edges, {kind} ids: of the time of {name}"
                bench.goal(what, ours / contest[name].wall, most=most)
    columns = ("edges", "ids", "tool", "wall", "CPU", "wall × silograph")
    bench.table("reading", "reading a SNAP file, milliseconds", columns, rows)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
