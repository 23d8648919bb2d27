"""One spend beside one bare fsync of 4 KB on the same disk, taken in turns.

Prints the least median over several rounds, for ledgers with few and with many earlier spends, and
exits with an error where a spend takes more than three times a bare fsync. Give a folder to measure
another disk than that of ``build/``.
"""

import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from rich.console import Console
from rich.table import Table

from silograph.ledger.book import Ledger, Spend
from silograph.ledger.chain import add_spend

ROUNDS, EACH = 7, 60
EARLIER = (0, 1_000, 10_000)
LOSSES = {0: 1e-6, 1: 1.25e-6, 2: 1.5e-6, 3: 2e-6}
ALLOWED = 3.0


def median(task: Callable[[int], object], numbers: range) -> float:
    times = []
    for number in numbers:
        start = time.perf_counter()
        task(number)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def fill(path: Path, count: int) -> None:
    """Earlier spends, all in one transaction."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for i in range(1, count + 1):
            earlier = Spend(
                0, "claims", f"earlier-{i}", "release", LOSSES, 0.0, "coordinator", "feat", ""
            )
            add_spend(connection, path, earlier)


def measure(folder: Path, earlier: int) -> tuple[float, float]:
    """Least medians of a bare fsync and of a spend, in seconds."""
    path = folder / f"{earlier}.ledger"
    bare, spends = [], []
    block = os.urandom(4096)
    with Ledger(path) as ledger, (folder / f"{earlier}.bare").open("wb", buffering=0) as file:
        ledger.set_limit("claims", 100.0, 1e-6)
        fill(path, earlier)

        def sync(number: int) -> None:
            os.pwrite(file.fileno(), block, 4096 * number)
            os.fsync(file.fileno())

        def spend(number: int) -> None:
            ledger.spend(
                "claims", f"run-{number}", "release", LOSSES, view="coordinator", method="feat"
            )

        for turn in range(ROUNDS):
            numbers = range(EACH * turn, EACH * (turn + 1))
            bare.append(median(sync, numbers))
            spends.append(median(spend, numbers))
    return min(bare), min(spends)


def main() -> int:
    """Prints the table; 1 where the target is missed."""
    place = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "build")
    place.mkdir(parents=True, exist_ok=True)
    table = Table(title=f"least of {ROUNDS} medians of {EACH}, milliseconds")
    for name in ("earlier spends", "bare 4 KB fsync", "spend", "ratio"):
        table.add_column(name, justify="right")
    missed = []
    with tempfile.TemporaryDirectory(dir=place) as folder:
        for earlier in EARLIER:
            bare, spend = measure(Path(folder), earlier)
            table.add_row(
                f"{earlier:,}", f"{1e3 * bare:.3f}", f"{1e3 * spend:.3f}", f"{spend / bare:.2f}"
            )
            if spend > ALLOWED * bare:
                missed.append(earlier)
    console = Console()
    console.print(table)
    if missed:
        console.print(f"[red]a spend takes more than {ALLOWED:g} bare fsyncs[/]")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
