"""Planted bugs: each a small change that would break privacy or the protocol, and must be caught.

The working tree is copied to ``target/planted``, once for each worker, and built there. Each bug
replaces one piece of text in one file; then the tests that are named beside it must fail. Golden
tests are left out, so that a frozen digest is never what catches a bug. The same tests must pass
on the unchanged tree.

    make planted
    .venv/bin/python -m tests.planted --list
    .venv/bin/python -m tests.planted --only mask
"""

import argparse
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.bugs import BUGS, Bug

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "target" / "planted"
WORKERS = 2
TIMEOUT = 900
#: Tests with these in their names hold frozen bytes.
GOLDEN = ("golden", "fixed_bytes")
#: Builds that come again within seconds.
BUILD = {
    "CARGO_INCREMENTAL": "1",
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_DEBUG": "0",
}
#: The core is built again for every bug, the crates that do the hard work only once.
QUICK = ("--config", "profile.release.package.silograph-core.opt-level=1")
CONSOLE = Console(width=None if sys.stdout.isatty() else 150)


class NoAnswerError(Exception):
    """A bug that says nothing about the tests: it does not apply, does not build, or hangs."""


@dataclass(frozen=True)
class Outcome:
    """What came of a test command."""

    #: The first test that failed; empty where all passed.
    failed: str
    seconds: float
    #: Why there is no answer, where there is none.
    fault: str = ""


class Workshop:
    """A copy of the tree with its own build."""

    def __init__(self, number: int) -> None:
        self.tree = PLACE / str(number) / "tree"
        self.target = PLACE / str(number) / "build"
        self._right = PLACE / str(number) / "right.so"
        self._environment = {
            **os.environ,
            **BUILD,
            "CARGO_TARGET_DIR": str(self.target),
            "PYTHONPATH": str(self.tree / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "RAYON_NUM_THREADS": "1",
        }

    def copy(self, files: Iterable[str]) -> None:
        """Bring the tree to the state of the working tree; unchanged files keep their times."""
        wanted = {self.tree / name for name in files if (ROOT / name).is_file()}
        for path in sorted(self.tree.rglob("*")) if self.tree.exists() else ():
            if path.is_file() and path not in wanted:
                path.unlink()
        for path in wanted:
            source = ROOT / path.relative_to(self.tree)
            if not path.exists() or path.read_bytes() != source.read_bytes():
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, path)

    def build(self) -> None:
        """The extension, into the tree."""
        self._cargo("build", "--release", "-p", "silograph-py")
        self._install(self.target / "release" / "lib_core.so")

    def finish(self) -> None:
        """Build the unchanged tree, and keep its extension."""
        self.build()
        shutil.copy(self.target / "release" / "lib_core.so", self._right)

    def _install(self, extension: Path) -> None:
        place = self.tree / "src" / "silograph" / "_core.abi3.so"
        place.unlink(missing_ok=True)
        shutil.copy(extension, place)

    def check_import(self) -> None:
        """Tests must not find the package of the repository itself."""
        code = "import silograph._core as c; print(c.__file__)"
        found = self._run([sys.executable, "-c", code]).stdout.strip()
        if Path(found).parents[2] != self.tree:
            raise NoAnswerError(f"tests would import {found}")

    def test(self, command: str) -> Outcome:
        """Run ``cargo FILTER`` or ``pytest PATH … [-k EXPRESSION]``."""
        start = time.monotonic()
        kind, _, rest = command.partition(" ")
        failed = self._cargo_tests(rest) if kind == "cargo" else self._pytest(*_split(rest))
        return Outcome(failed, time.monotonic() - start)

    @contextmanager
    def planted(self, bug: Bug) -> Iterator[None]:
        """The tree with the bug in it, built; afterwards as it was."""
        path = self.tree / bug.file
        text = path.read_text()
        try:
            path.write_text(text.replace(bug.old, bug.new))
            if bug.file.endswith(".rs") and bug.tests.startswith("pytest"):
                self.build()
            yield
        finally:
            path.write_text(text)
            self._install(self._right)

    def _cargo_tests(self, only: str) -> str:
        self._cargo("test", "--release", "--no-run", "-p", "silograph-core", "--lib")
        skips = [word for name in GOLDEN for word in ("--skip", name)]
        words = ("test", "--release", "-p", "silograph-core", "--lib", "--locked", "--quiet")
        done = self._run(["cargo", *QUICK, *words, "--", only, *skips])
        return _first(done, 101, r"^    (\S+::\S+)$", r"test result: ok\. [1-9]")

    def _pytest(self, paths: str, wish: str) -> str:
        leave_out = " and ".join(f"not {name}" for name in GOLDEN)
        wish = f"({wish}) and {leave_out}" if wish else leave_out
        quick = ("-x", "--whole", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist")
        done = self._run([sys.executable, "-m", "pytest", *quick, *paths.split(), "-k", wish])
        return _first(done, 1, r"^FAILED (.+?)(?: - |$)", r"^[1-9]\d* passed")

    def _cargo(self, *words: str) -> None:
        done = self._run(["cargo", *QUICK, words[0], "--locked", "--quiet", *words[1:]])
        if done.returncode:
            raise NoAnswerError(f"it does not build:\n{_tail(done)}")

    def _run(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        # A group of its own, so that a test that hangs ends with the cargo that runs it.
        with subprocess.Popen(
            command,
            cwd=self.tree,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        ) as process:
            try:
                out, errors = process.communicate(timeout=TIMEOUT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise NoAnswerError(f"{command[0]} hung for {TIMEOUT} seconds") from None
        return subprocess.CompletedProcess(command, process.returncode, out, errors)


def _first(done: "subprocess.CompletedProcess[str]", code: int, bad: str, good: str) -> str:
    """The first failed test, or nothing where some ran and all passed."""
    if done.returncode == 0 and re.search(good, done.stdout, re.MULTILINE):
        return ""
    failed = re.search(bad, done.stdout, re.MULTILINE)
    if done.returncode == code and failed:
        return failed[1]
    raise NoAnswerError(f"the tests did not run:\n{_tail(done)}")


def _tail(done: "subprocess.CompletedProcess[str]") -> str:
    return "\n".join((done.stdout + done.stderr).splitlines()[-12:])


def _split(arguments: str) -> tuple[str, str]:
    paths, _, wish = arguments.partition(" -k ")
    return paths, wish


Job = Callable[[Workshop], Outcome]


def examine(workshop: Workshop, bug: Bug) -> Outcome:
    """Plant one bug and run its tests; the time is that of building and testing."""
    start = time.monotonic()
    with workshop.planted(bug):
        outcome = workshop.test(bug.tests)
    return Outcome(outcome.failed, time.monotonic() - start)


def prepare() -> list[Workshop]:
    """Copies of the tree with a build each; the second begins with what the first has built."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    workshops = [Workshop(number) for number in range(WORKERS)]
    for workshop in workshops:
        workshop.copy(files.splitlines())
        if not workshop.target.exists() and workshop is not workshops[0]:
            shutil.copytree(workshops[0].target, workshop.target)
        workshop.finish()
        workshop.check_import()
    return workshops


def misfits(bugs: Iterable[Bug]) -> dict[str, str]:
    """Bugs that no longer apply to the working tree, with the reason."""
    found = {}
    for bug in bugs:
        path = ROOT / bug.file
        times = path.read_text().count(bug.old) if path.is_file() else 0
        if times != 1:
            found[bug.name] = f"does not apply: its text is {times} times in {bug.file}"
    return found


def in_parallel(workshops: list[Workshop], jobs: dict[str, Job], title: str) -> dict[str, Outcome]:
    """Run every job in whichever workshop is free; a job without an answer has it as its fault."""
    free: SimpleQueue[Workshop] = SimpleQueue()
    for workshop in workshops:
        free.put(workshop)

    def work(job: Job) -> Outcome:
        workshop = free.get()
        try:
            return job(workshop)
        except NoAnswerError as error:
            return Outcome("", 0.0, str(error))
        finally:
            free.put(workshop)

    outcomes = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        Progress(*columns, TimeElapsedColumn(), console=CONSOLE, transient=True) as progress,
        ThreadPoolExecutor(len(workshops)) as pool,
    ):
        task = progress.add_task(title, total=len(jobs))
        waiting = {pool.submit(work, job): name for name, job in jobs.items()}
        try:
            for done in as_completed(waiting):
                outcomes[waiting[done]] = done.result()
                progress.advance(task)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    return outcomes


def show(bugs: Iterable[Bug], outcomes: dict[str, Outcome]) -> None:
    """The table."""
    table = Table("bug", "caught by", "seconds")
    table.columns[1].overflow = "fold"
    table.columns[2].justify = "right"
    for bug in bugs:
        outcome = outcomes[bug.name]
        test = escape(outcome.failed.removeprefix("tests/"))
        verdict = test or f"[bold red]{escape(outcome.fault) or 'SURVIVES'}[/]"
        table.add_row(escape(bug.name), verdict, f"{outcome.seconds:.1f}")
    CONSOLE.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="bugs that mention it")
    parser.add_argument("--list", action="store_true", help="say what there is, and do nothing")
    options = parser.parse_args()
    wish = options.only.lower()
    bugs = [bug for bug in BUGS if wish in f"{bug.name} {bug.what} {bug.file}".lower()]
    if options.list:
        for bug in bugs:
            CONSOLE.print(f"{bug.name}: {bug.what} ({bug.file})", markup=False, highlight=False)
        return 0
    start = time.monotonic()
    outcomes = {name: Outcome("", 0.0, why) for name, why in misfits(bugs).items()}
    applying = [bug for bug in bugs if bug.name not in outcomes]
    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with CONSOLE.status("building two copies of the tree"):
                workshops = prepare()
        except NoAnswerError as error:
            CONSOLE.print(f"the unchanged tree: {error}", markup=False)
            return 2
        commands = dict.fromkeys(bug.tests for bug in applying)
        unchanged = {command: lambda shop, c=command: shop.test(c) for command in commands}
        for command, outcome in in_parallel(workshops, unchanged, "unchanged tree").items():
            if outcome.failed or outcome.fault:
                CONSOLE.print(f"the unchanged tree fails {command}:", style="bold red")
                CONSOLE.print(outcome.failed or outcome.fault, markup=False)
                return 2
        jobs = {bug.name: lambda shop, b=bug: examine(shop, b) for bug in applying}
        outcomes |= in_parallel(workshops, jobs, "planted bugs")
    show(bugs, outcomes)
    caught = sum(bool(outcome.failed) for outcome in outcomes.values())
    CONSOLE.print(f"{caught} of {len(bugs)} caught in {time.monotonic() - start:.0f} seconds")
    return 0 if bugs and caught == len(bugs) else 1


if __name__ == "__main__":
    sys.exit(main())
