"""Reading SNAP files of a million and of ten million edges: this project, polars, networkx.

Polars' CSV reader only parses; this project also makes a universe of the ids and sorts the pairs.
Generates the files in a temporary folder, times the readers in turns in this one process, best of
several, and exits with an error where a ratio is missed: at most polars' time at ten million edges,
twice at a million, and at most 1/5 of networkx's, which is asked for a million only.
Processor seconds stand beside the time, and the machine's load above the table: with other work on
the machine, times say little.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from silograph.graph import read_graph

#: Edges, rounds, and how many times polars' time reading may take.
SIZES = ((1_000_000, 15, 2.0), (10_000_000, 7, 1.0))
#: Ids are below these: as many as a graph's nodes, or spread over all that a file may hold.
TOPS = {"dense": 100_000, "sparse": 1_000_000_000}
NETWORKX = 1 / 5

#: Seconds by the clock, and of all processors.
Times = tuple[float, float]


def write(path: Path, edges: int, top: int) -> None:
    """A SNAP file with ids below ``top``."""
    pairs = np.random.default_rng(top).integers(0, top, size=(edges, 2))
    with path.open("wb") as file:
        file.write(f"# Undirected graph\n# Edges: {edges}\n# FromNodeId\tToNodeId\n".encode())
        ends = pl.DataFrame({"from": pairs[:, 0], "to": pairs[:, 1]})
        ends.write_csv(file, separator="\t", include_header=False)


def best(rounds: int, *reads: Callable[[], object]) -> list[Times]:
    """Least times of each, taken in turns so that a noisy moment hits all alike."""
    times = [(float("inf"), float("inf"))] * len(reads)
    for _ in range(rounds):
        for place, read in enumerate(reads):
            start, work = time.perf_counter(), time.process_time()
            read()
            taken = time.perf_counter() - start, time.process_time() - work
            times[place] = min(times[place], taken)
    return times


def shown(times: Times) -> str:
    """The time, and the processor time."""
    return f"{1000 * times[0]:,.0f} ms ({1000 * times[1]:,.0f})"


def main() -> int:
    """Prints the table; 1 where a target is missed."""
    load, cores = os.getloadavg()[0], os.cpu_count()
    table = Table(title=f"time (processor time), best of several; load {load:.1f} on {cores} cores")
    for name in ("edges", "ids", "silograph", "polars", "networkx", "of polars", "of networkx"):
        table.add_column(name, justify="right")
    missed = []
    for edges, rounds, polars in SIZES:
        for kind, top in TOPS.items():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "edges.txt"
                write(path, edges, top)
                csv = partial(pl.read_csv, separator="\t", has_header=False, comment_prefix="#")
                ours, theirs = best(rounds, partial(read_graph, path), partial(csv, path))
                slow = best(2, partial(nx.read_edgelist, path)) if edges == SIZES[0][0] else []
            ratios = [ours[0] / other[0] for other in (theirs, *slow)]
            against = zip(("polars", "networkx"), ratios, (polars, NETWORKX), strict=False)
            missed += [
                f"{name}, {edges:,} edges, {kind} ids"
                for name, ratio, most in against
                if ratio > most
            ]
            table.add_row(
                f"{edges:,}",
                kind,
                shown(ours),
                shown(theirs),
                shown(slow[0]) if slow else "–",
                f"{ratios[0]:.2f} (≤ {polars:g})",
                f"1/{1 / ratios[1]:.0f} (≤ 1/5)" if slow else "–",
            )
    Console().print(table)
    for what in missed:
        print(f"missed: {what}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
