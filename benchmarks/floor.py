"""1,000 releases of Facebook at ε = 3: mean square error and coverage beside the formulas.

Fails unless every mean square error is within 10 % of its formula.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from reproduction.redraw import Redraws, redraw
from silograph import Channel, dataset
from silograph.cli.demo import QUERIES

DRAWS, BATCH, EPSILON = 1000, 25, 3.0
BESIDE = Path(__file__).parents[2] / "shared" / "data"


def batch(start: int) -> dict[str, Redraws]:
    graph = dataset("facebook", folder=BESIDE if BESIDE.is_dir() else None)
    return redraw(graph, Channel.symmetric(EPSILON), range(start, start + BATCH))


def main() -> int:
    console = Console()
    starts = range(0, DRAWS, BATCH)
    with ProcessPoolExecutor(2) as pool:
        done = pool.map(batch, starts)
        batches = list(track(done, "drawing", total=len(starts), console=console, transient=True))
    table = Table(title=f"Facebook, ε = {EPSILON:g}, {DRAWS} draws (seeds 0 to {DRAWS - 1})")
    for column in ("query", "truth", "formula's sd", "measured RMSE", "MSE / variance", "covered"):
        table.add_column(column, justify="right")
    missed = False
    for name in QUERIES:
        found = replace(
            batches[0][name],
            values=np.concatenate([b[name].values for b in batches]),
            stderrs=np.concatenate([b[name].stderrs for b in batches]),
        )
        missed |= not 0.9 <= found.ratio <= 1.1
        rmse = found.mean_square_error**0.5
        table.add_row(
            name,
            f"{found.truth:,}",
            f"{found.variance**0.5:,.0f}",
            f"{rmse:,.0f}",
            f"{found.ratio:.3f}",
            f"{100 * found.covered / DRAWS:.1f} %",
        )
    console.print(table)
    console.print("[red]a ratio is off by more than 10 %[/]" if missed else "all within 10 %")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
