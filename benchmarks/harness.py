"""The one harness of all benchmarks of speed: who ran, on what machine, how long, and what was due.

A benchmark is a :class:`Benchmark`. Its contestants run in turns, so that a noisy moment hits all
alike, and the best of several runs counts for everyone: wall time, and *work*, the processor time
of all threads. Its goals, and its shares of what the machine allows, are judged as they come. The
end prints the load again, writes everything as JSON and gives the exit code, 1 where

- a goal was missed,
- a contestant ran only once, or on more threads than the others were allowed,
- a share of a limit is above 100 %: then the limit is measured wrongly.

    bench = Benchmark("sorting", __doc__, threads=1)
    given = bench.start()
    contest = bench.contest("a million numbers")
    contest.race(5, {"ours": ours, "theirs": theirs}, same=True)
    bench.goal("times as fast", contest["theirs"].work / contest["ours"].work, least=2)
    return bench.end()
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from rich.console import Console
from rich.table import Table as RichTable

__all__ = [
    "Benchmark",
    "Contest",
    "Contestant",
    "Machine",
    "Meter",
    "Report",
    "Table",
    "Verdict",
    "apart",
    "example",
    "limits",
    "peak",
    "use_threads",
]

ROOT = Path(__file__).parents[1]
#: Where a benchmark's JSON goes unless it is told otherwise.
WRITTEN = ROOT / "build" / "benchmarks"
#: A best of fewer runs is no best.
LEAST_RUNS = 2
#: Clocks of processor and wall are not read at the same moment.
SLACK, WORTH_CHECKING = 1.1, 0.05

T = TypeVar("T")


def use_threads(count: int) -> int:
    """Let every library use so many threads. Call it before they are imported.

    With several threads, the process is also bound to as many cores, for libraries that do not ask.
    """
    cores = sorted(os.sched_getaffinity(0))[:count]
    if count > 1:
        os.sched_setaffinity(0, cores)
    for library in ("RAYON", "OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = str(len(cores))
    return len(cores)


# --- What is told ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Machine:
    """What a benchmark ran on."""

    cpu: str
    cores: int
    memory_gib: float
    simd: tuple[str, ...]

    @classmethod
    def here(cls) -> Self:
        """This machine."""
        from silograph.graph.bits import simd_levels

        names = (line.split(":", 1) for line in _lines("/proc/cpuinfo") if ":" in line)
        cpu = next((value.strip() for key, value in names if key.strip() == "model name"), "")
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        return cls(cpu or "unknown", os.cpu_count() or 1, round(memory, 1), simd_levels())

    def __str__(self) -> str:
        sets = ", ".join(self.simd)
        return f"{self.cpu}, {self.cores} cores, {self.memory_gib:.0f} GiB, {sets}"


@dataclass(frozen=True)
class Contestant:
    """The best of several runs, in seconds: wall time, and processor time over all threads."""

    wall: float
    work: float
    runs: int = 1
    #: Processors that were busy at a time, over all runs.
    threads: float = 1.0


@dataclass(frozen=True)
class Verdict:
    """A goal, what came of it, and whether it was met."""

    what: str
    value: float
    passed: bool
    most: float | None = None
    least: float | None = None
    #: Whether this is about the measurement itself: where it is missed, no figure can be trusted.
    fairness: bool = False

    @classmethod
    def of(
        cls,
        what: str,
        value: float,
        most: float | None = None,
        least: float | None = None,
        *,
        fairness: bool = False,
    ) -> Self:
        """Judge a value."""
        value = float(value)  # NumPy's numbers are not JSON's
        most, least = (None if bound is None else float(bound) for bound in (most, least))
        passed = (most is None or value <= most) and (least is None or value >= least)
        return cls(what, value, passed, most, least, fairness)

    def __str__(self) -> str:
        bounds = (("at least", self.least), ("at most", self.most))
        due = ", ".join(f"{side} {bound:,.4g}" for side, bound in bounds if bound is not None)
        shown = f"{self.value:,.4g}{f' ({due})' if due else ''}"
        return f"{self.what}: {shown}: {'yes' if self.passed else 'NO'}"


@dataclass(frozen=True)
class Table:
    """A table as people read it; all cells are text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def printed(self) -> RichTable:
        """For a terminal, without the title: it may be wider than the table."""
        made = RichTable()
        for place, column in enumerate(self.columns):
            made.add_column(column, justify="right" if place else "left")
        for row in self.rows:
            made.add_row(*row)
        return made

    def markdown(self) -> str:
        """For a page: the title, and the table below it."""
        marks = ("---", *["---:"] * (len(self.columns) - 1))
        rows = "\n".join(f"| {' | '.join(row)} |" for row in (self.columns, marks, *self.rows))
        return f"**{self.title}**\n\n{rows}"


@dataclass
class Report:
    """All that a benchmark found: what its JSON holds."""

    name: str
    date: str
    machine: Machine
    threads: int
    #: The load of the machine before and after.
    load: tuple[float, float]
    contests: dict[str, dict[str, Contestant]] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    #: What pages may show, by a short name: tables, or words.
    tables: dict[str, Table] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    #: Anything else.
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def missed(self) -> list[Verdict]:
        """The goals that were missed."""
        return [verdict for verdict in self.verdicts if not verdict.passed]

    @property
    def origin(self) -> str:
        """Where and when, and which goals were missed: what stands below every table."""
        before, after = self.load
        runs = [found.runs for contest in self.contests.values() for found in contest.values()]
        best = f"best of {min(runs)} or more; " if runs else ""
        goals = "".join(f"; {verdict}" for verdict in self.missed)
        threads = f"{self.threads} thread{'s' * (self.threads != 1)}"
        return (
            f"`make bench-{self.name}` on {self.date}: {self.machine}; {threads}; {best}"
            f"load {before:.1f} before, {after:.1f} after{goals}"
        )

    def to_json(self) -> str:
        """As text, with what it amounts to."""
        told = asdict(self) | {"passed": not self.missed}
        return json.dumps(told, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The report of such a text."""
        told = json.loads(text)
        del told["passed"]
        machine = told["machine"]
        told["machine"] = Machine(**machine | {"simd": tuple(machine["simd"])})
        told["load"] = tuple(told["load"])
        told["contests"] = {
            title: {name: Contestant(**each) for name, each in contest.items()}
            for title, contest in told["contests"].items()
        }
        told["verdicts"] = [Verdict(**each) for each in told["verdicts"]]
        told["tables"] = {
            name: Table(each["title"], tuple(each["columns"]), tuple(map(tuple, each["rows"])))
            for name, each in told["tables"].items()
        }
        return cls(**told)


# --- Measuring ------------------------------------------------------------------------------------


class Contest:
    """Contestants that are measured side by side; ``contest[name]`` is how one of them did."""

    def __init__(self, found: dict[str, Contestant]) -> None:
        self._found = found

    def __getitem__(self, name: str) -> Contestant:
        return self._found[name]

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def items(self) -> Iterable[tuple[str, Contestant]]:
        """All contestants, in the order in which they first ran."""
        return self._found.items()

    def note(self, name: str, wall: float, work: float) -> None:
        """Add a run that was measured elsewhere, as in another process."""
        threads = work / wall if wall else 0.0
        if (known := self._found.get(name)) is not None:
            threads = (known.threads * known.runs + threads) / (known.runs + 1)
            wall, work = min(known.wall, wall), min(known.work, work)
        self._found[name] = Contestant(wall, work, known.runs + 1 if known else 1, threads)

    def time(self, name: str, step: Callable[[], T], per: float = 1.0) -> T:
        """Run a step once and note it, divided by its pieces of work; returns what it returns."""
        wall, work = time.perf_counter(), _processor_seconds()
        made = step()
        work, wall = _processor_seconds() - work, time.perf_counter() - wall
        self.note(name, wall / per, work / per)
        return made

    def race(
        self,
        rounds: int,
        contestants: Mapping[str, Callable[[], object]],
        *,
        per: float = 1.0,
        same: bool = False,
    ) -> None:
        """Let all contestants run, in turns, so many times.

        Parameters
        ----------
        rounds
            How often each of them runs.
        contestants
            What each of them does, by name.
        per
            Pieces of work in a run: times are for one.
        same
            Whether all of them must return the same.
        """
        if rounds < LEAST_RUNS:
            raise ValueError(f"a best of {rounds} is no best: let everyone run {LEAST_RUNS} times")
        for _ in range(rounds):
            found = {name: self.time(name, run, per) for name, run in contestants.items()}
            if same and len(set(found.values())) > 1:
                raise SystemExit(f"contestants disagree: {found}")


class Benchmark:
    """One benchmark from its command line to its exit code.

    Parameters
    ----------
    name
        What ``make`` calls it, without ``bench-``.
    about
        The docstring of its module.
    threads
        How many threads everyone may use; see :func:`use_threads`.
    """

    def __init__(self, name: str, about: str | None, threads: int = 1) -> None:
        self.parser = argparse.ArgumentParser(
            description=about, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        self.parser.add_argument(
            "--json", type=Path, default=WRITTEN / f"{name}.json", help="all figures go there"
        )
        self.console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
        today = time.strftime("%Y-%m-%d", time.gmtime())
        load = (os.getloadavg()[0], 0.0)
        machine = Machine.here()
        self.report = Report(name, today, machine, threads, load)
        self.report.texts["where"] = f"{machine.cpu}, {machine.cores} cores, {today}"

    def start(self, arguments: Sequence[str] | None = None) -> argparse.Namespace:
        """Read the command line, and say what runs where."""
        given = self.parser.parse_args(arguments)
        self._written = given.json
        self.console.print(f"{self.report.machine}; load {self.report.load[0]:.1f}\n")
        return given

    def contest(self, title: str) -> Contest:
        """A contest, new or known by its title."""
        return Contest(self.report.contests.setdefault(title, {}))

    def table(
        self, key: str, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]
    ) -> None:
        """Print a table, and keep it for pages under a short name."""
        made = Table(title, tuple(columns), tuple(map(tuple, rows)))
        self.report.tables[key] = made
        self.console.print(title)
        self.console.print(made.printed())

    def text(self, key: str, text: str) -> None:
        """Print a line, and keep it for pages under a short name."""
        self.report.texts[key] = text
        self.console.print(text)

    def goal(
        self, what: str, value: float, *, most: float | None = None, least: float | None = None
    ) -> bool:
        """Judge a value; whether it is as it should be."""
        return self._judge(Verdict.of(what, value, most, least))

    def share(self, what: str, least: float, taken: float) -> str:
        """How much of a limit is reached, for a cell of a table.

        Parameters
        ----------
        what
            Of which limit, and who reaches it.
        least
            What the limit allows at best, as a time.
        taken
            The time that was taken.
        """
        reached = least / taken
        if reached > 1:
            wrong = f"{what}: the limit is measured wrongly, share"
            self._judge(Verdict.of(wrong, reached, most=1, fairness=True))
        return f"{100 * reached:.0f} %"

    def end(self) -> int:
        """Print the load, write the JSON, and return the exit code."""
        for title, contest in self.report.contests.items():
            for name, found in contest.items():
                self._check_fair(f"{title}, {name}", found)
        self.report.load = (self.report.load[0], os.getloadavg()[0])
        self._written.parent.mkdir(parents=True, exist_ok=True)
        self._written.write_text(self.report.to_json())
        missed = self.report.missed
        self.console.print(f"\nload {self.report.load[1]:.1f} after; figures in {self._written}")
        for verdict in missed:
            self.console.print(f"[red]missed[/]: {verdict}")
        return int(bool(missed))

    def _check_fair(self, who: str, found: Contestant) -> None:
        if found.runs < LEAST_RUNS:
            runs = Verdict.of(f"{who}: runs", found.runs, least=LEAST_RUNS, fairness=True)
            self._judge(runs)
        most = SLACK * self.report.threads
        if found.wall > WORTH_CHECKING and found.threads > most:
            what = f"{who}: processors at a time"
            self._judge(Verdict.of(what, found.threads, most=most, fairness=True))

    def _judge(self, verdict: Verdict) -> bool:
        self.report.verdicts.append(verdict)
        self.console.print(str(verdict), style=None if verdict.passed else "red")
        return verdict.passed


def _processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def peak(process: int | str = "self") -> float:
    """The most memory that a process has taken so far, in MiB."""
    sizes = (line.split() for line in _lines(f"/proc/{process}/status"))
    return next((int(words[1]) / 1024 for words in sizes if words[0] == "VmHWM:"), 0.0)


class Meter:
    """Wall time, CPU seconds of each kind of process, and its peak memory, up to the last mark."""

    def __init__(self, pids: Mapping[str, list[int]]) -> None:
        self._pids = pids
        self._began, self._before = time.perf_counter(), self._used()
        self.mark()

    def _used(self) -> dict[str, float]:
        return {name: sum(map(cpu_seconds, pids)) for name, pids in self._pids.items()}

    def mark(self) -> None:
        """Note this moment; the last one counts."""
        self.wall = time.perf_counter() - self._began
        self.cpu = {name: used - self._before[name] for name, used in self._used().items()}
        self.work = sum(self.cpu.values())
        # This process takes part in all turns, so its peak would belong to none of them.
        self.peaks = {
            name: max(map(peak, pids))
            for name, pids in self._pids.items()
            if os.getpid() not in pids
        }


def cpu_seconds(pid: int) -> float:
    """Of a process so far, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def apart(work: Callable[..., T], *given: Any) -> T:
    """What a function returns in a fresh process, whose memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, given)


# --- What the machine allows ----------------------------------------------------------------------


def example(name: str, *arguments: str) -> str:
    """What an example of the Rust core prints, on as many threads as this process may use."""
    flags = ["--release", "--quiet", "--locked", "-p", "silograph-core", "--example", name]
    command = ["cargo", "run", *flags, "--", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


#: Bytes of a block of keystream, which stays in the second cache, and blocks in a round.
_BLOCK, _BLOCKS, _ROUNDS = 1 << 16, 64, 50


def limits() -> dict[str, float]:
    """What one core of this machine does in a second, at best, measured now.

    Bytes of keystream (OpenSSL's AES-256-CTR and ChaCha20, and this project's AES), bytes that are
    hashed, bytes read and written by copying memory, words whose ones are counted, and products of
    64 bits. Each is the best of many short rounds; a share of them compares with processor time.
    """
    lines = (line.rsplit(" ", 1) for line in example("limits").splitlines())
    found = {name: float(rate) for name, rate in lines}
    return found | {f"{name} (OpenSSL)": rate for name, rate in _openssl().items()}


def _openssl() -> dict[str, float]:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    ciphers = {
        "AES-256-CTR": Cipher(algorithms.AES(bytes(32)), modes.CTR(bytes(16))),
        "ChaCha20": Cipher(algorithms.ChaCha20(bytes(32), bytes(16)), None),
    }
    zeros, room = bytes(_BLOCK), bytearray(_BLOCK + 15)
    steps: dict[str, Callable[[], object]] = {"SHA-256": partial(hashlib.sha256, zeros)}
    for name, cipher in ciphers.items():
        steps[name] = partial(cipher.encryptor().update_into, zeros, room)
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(_ROUNDS):
        for name, step in steps.items():
            start = time.perf_counter()
            for _ in range(_BLOCKS):
                step()
            best[name] = min(best[name], time.perf_counter() - start)
    return {name: _BLOCK * _BLOCKS / seconds for name, seconds in best.items()}
