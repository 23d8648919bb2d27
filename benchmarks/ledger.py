"""One spend beside one bare fsync of 4 KB on the same disk, taken in turns.

A run of either is the median of sixty, since a disk has slow moments; the best run counts. Ledgers
have few and many earlier spends. Fails where a spend takes more than three times a bare fsync. Give
a folder to measure another disk than that of ``build/``.
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

from benchmarks.harness import ROOT, Benchmark, Contest
from silograph.ledger.book import Ledger, Spend
from silograph.ledger.chain import add_spend

ROUNDS, EACH = 7, 60
EARLIER = (0, 1_000, 10_000)
LOSSES = {0: 1e-6, 1: 1.25e-6, 2: 1.5e-6, 3: 2e-6}
ALLOWED = 3.0


def median(contest: Contest, name: str, task: Callable[[int], object], numbers: range) -> None:
    """Note the median of some wall times, and the mean work."""
    times, work = [], time.process_time()
    for number in numbers:
        start = time.perf_counter()
        task(number)
        times.append(time.perf_counter() - start)
    contest.note(name, statistics.median(times), (time.process_time() - work) / len(numbers))


def fill(path: Path, count: int) -> None:
    """Earlier spends, all in one transaction."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for i in range(1, count + 1):
            earlier = Spend(
                0, "claims", f"earlier-{i}", "release", LOSSES, 0.0, "coordinator", "feat", ""
            )
            add_spend(connection, path, earlier)


def measure(contest: Contest, folder: Path, earlier: int) -> None:
    path = folder / f"{earlier}.ledger"
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
            median(contest, "bare", sync, numbers)
            median(contest, "spend", spend, numbers)


def main() -> int:
    bench = Benchmark("ledger", __doc__)
    bench.parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build")
    place = bench.start().folder
    place.mkdir(parents=True, exist_ok=True)
    contests = {earlier: bench.contest(f"{earlier:,} earlier spends") for earlier in EARLIER}
    with tempfile.TemporaryDirectory(dir=place) as folder:
        for earlier, contest in contests.items():
            measure(contest, Path(folder), earlier)
    ratios = {n: contest["spend"].wall / contest["bare"].wall for n, contest in contests.items()}
    rows = [
        (f"{earlier:,}", *(f"{1e3 * contest[name].wall:.3f}" for name in ("bare", "spend")),
         f"{1e3 * contest['spend'].work:.3f}", f"{ratios[earlier]:.2f}")
        for earlier, contest in contests.items()
    ]  # fmt: skip
    title = f"milliseconds, best of {ROUNDS} medians of {EACH}"
    columns = ("earlier spends", "bare 4 KB fsync", "spend", "its CPU", "ratio")
    bench.table("spends", title, columns, rows)
    for earlier, ratio in ratios.items():
        bench.goal(f"a spend after {earlier:,} in bare fsyncs", ratio, most=ALLOWED)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
