"""Runs experiments: tasks over all cores, journalled one by one, results written whole.

``DIR/<name>/`` gets ``experiment.toml`` (the parameters), ``journal.jsonl`` while the experiment is
not finished, and then ``results.json``. A run that was killed or stopped is continued by the same
call; what is finished is kept. Times are measured after all other work, one at a time.
"""

import contextlib
import fcntl
import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from reproduction import results
from reproduction.definitions import Definition
from reproduction.environment import machine, software
from reproduction.results import Results
from reproduction.tasks import Outcome, Task, rows_of, run_task, tasks_of
from silograph import whole_files
from silograph.errors import DatasetError, ExperimentError, SilographError

__all__ = ["FILE", "PARAMETERS", "Journal", "Watch", "digest_of", "held", "reproduce"]


# --------------------------------------------------------------------------------------------------
# The journal of an unfinished experiment: outcomes, line by line, each on disk before the next.
#
# The first line says what is being run, by the digest of parameters and software; each other line
# is the outcome of a task, with a checksum. A process that dies leaves at most one line that has no
# end; it is dropped, and its task is done again. Anything else that does not fit is refused: a line
# that was changed, or a journal of another run.

FILE = "journal.jsonl"
_FORMAT = "silograph-experiment-journal 1"
_MOST_BYTES = 256 << 20
_AGAIN = "begin again with --fresh, or write elsewhere with --out"


def digest_of(*parts: Any) -> str:
    """What tells one run from another."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder; the system lets go of it when the process ends."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as problem:
        raise ExperimentError(f"{folder}: cannot be opened: {problem.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ExperimentError(
                f"{folder}: another run writes here; wait for it, or use another --out"
            ) from None
        yield
    finally:
        os.close(descriptor)


class Journal:
    """What is done of one experiment. It is a context manager; lines go to disk one by one."""

    def __init__(self, folder: Path, experiment: str, digest: str) -> None:
        """Open the journal of a run, or begin one."""
        self._path = folder / FILE
        self._head = {"format": _FORMAT, "experiment": experiment, "digest": digest}
        self.outcomes: dict[str, Outcome] = {}
        whole = self._read() if self._path.exists() else 0
        try:
            self._file = self._path.open("r+b" if whole else "wb")
            self._file.truncate(whole)
            self._file.seek(whole)
        except OSError as problem:
            raise self._error(f"cannot be written: {problem.strerror}") from None
        if not whole:
            self._append(self._head)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what is in it stays."""
        # A line that did not fit was an error when it was added; here it would hide that error.
        with suppress(OSError):
            self._file.close()

    def add(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome for good."""
        self._append({"key": key, "outcome": outcome, "check": _check(key, outcome)})
        self.outcomes[key] = outcome

    def _append(self, entry: Mapping[str, Any]) -> None:
        try:
            line = json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        except ValueError:
            raise self._error(f"{entry.get('key')}: an answer is no finite number") from None
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as problem:
            raise self._error(f"cannot be written: {problem.strerror}") from None

    def _read(self) -> int:
        """Take in what is there; how many bytes of it are whole lines."""
        content = whole_files.read(self._path, _MOST_BYTES, ExperimentError)
        whole = content.rfind(b"\n") + 1
        lines = content[:whole].splitlines()
        if not lines:
            # A process that died while it wrote the first line has left nothing of worth; other
            # bytes are somebody else's.
            first = json.dumps(self._head, ensure_ascii=False).encode()
            if first.startswith(content):
                return 0
            raise self._error("not a journal of this program")
        head = self._parsed(lines[0], 1)
        if head.get("format") != _FORMAT:
            raise self._error("not a journal of this program")
        if head != self._head:
            raise self._error(
                f"begun with other parameters, another version or on another machine; {_AGAIN}"
            )
        for number, line in enumerate(lines[1:], 2):
            entry = self._parsed(line, number)
            key, outcome = entry.get("key"), entry.get("outcome")
            if (
                not isinstance(key, str)
                or not isinstance(outcome, dict)
                or entry.get("check") != _check(key, outcome)
                or key in self.outcomes
            ):
                raise self._error(f"line {number} is damaged; {_AGAIN}")
            self.outcomes[key] = outcome
        return whole

    def _parsed(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self._error(f"line {number} is damaged; {_AGAIN}")
        return found

    def _error(self, what: str) -> ExperimentError:
        return ExperimentError(f"{self._path}: {what}")


def _check(key: str, outcome: Outcome) -> str:
    return digest_of(key, outcome)[:16]


# --- Running --------------------------------------------------------------------------------------

PARAMETERS = "experiment.toml"
_CONTINUE = "the same command continues"
#: Libraries that would otherwise each start one thread per core, in every process.
_THREADS = ("RAYON_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Watch(Protocol):
    """Who looks on."""

    def begin(self, todo: Sequence[Task], kept: int) -> None:
        """These tasks are left to do; so many were done before."""

    def done(self, task: Task) -> None:
        """One of them is done."""

    def finished(self, found: Results) -> None:
        """An experiment is finished, and its results are written."""


@dataclass
class _Open:
    """An experiment that is not finished."""

    definition: Definition
    folder: Path
    graphs: Mapping[str, Mapping[str, Any]]
    journal: Journal
    tasks: list[Task] = field(default_factory=list)

    @property
    def todo(self) -> list[Task]:
        """What is not in the journal."""
        return [task for task in self.tasks if task.key not in self.journal.outcomes]

    def finish(self) -> Results:
        """Write the results, and do away with the journal."""
        nodes = {name: int(graph["nodes"]) for name, graph in self.graphs.items()}
        rows, left_out = rows_of(self.definition, nodes, self.journal.outcomes)
        asked = self.definition
        found = Results(
            asked.name, asked.kind, asked.quick, asked.parameters, software(), machine(),
            self.graphs, rows, left_out,
        )  # fmt: skip
        results.save(found, self.folder)
        self.journal.close()
        (self.folder / FILE).unlink()
        return found


def reproduce(
    definitions: Sequence[Definition],
    out: Path,
    watch: Watch,
    *,
    jobs: int,
    fresh: bool = False,
) -> dict[str, Results]:
    """Run what is not finished of the experiments, and give the results of all of them."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ExperimentError(f"{out}: cannot be made a folder: {problem.strerror}") from None
    with held(out), contextlib.ExitStack() as stack:
        found, unfinished = {}, []
        for definition in definitions:
            kept = _kept(definition, out / definition.name, fresh=fresh)
            if kept is None:
                unfinished.append(definition)
            else:
                found[definition.name] = kept
        graphs = _graphs(unfinished)
        if fresh:  # nothing is thrown away for a run that cannot begin
            for definition in definitions:
                _discard(definition, out / definition.name)
        opened = [_open(one, out / one.name, graphs, stack) for one in unfinished]
        watch.begin(
            [task for one in opened for task in one.todo],
            sum(len(one.tasks) - len(one.todo) for one in opened),
        )
        for one in opened:
            if not one.todo:
                found[one.definition.name] = _finish(one, watch)
        rest = [one for one in opened if one.todo]
        utility = [one for one in rest if one.definition.kind == "utility"]
        # Closed here whatever happens: no process works on when the folder is free again.
        with contextlib.closing(_draw_all(utility, jobs, watch)) as drawn:
            for one in drawn:
                found[one.definition.name] = _finish(one, watch)
        for one in rest:
            if one.definition.kind == "timing":
                for task in one.todo:
                    one.journal.add(task.key, _run(task))
                    watch.done(task)
                found[one.definition.name] = _finish(one, watch)
    return {one.name: found[one.name] for one in definitions}


def _finish(one: _Open, watch: Watch) -> Results:
    found = one.finish()
    watch.finished(found)
    return found


# -- what is there already -----------------------------------------------------------------------


def _kept(definition: Definition, folder: Path, *, fresh: bool) -> Results | None:
    """The results of a finished experiment; None where there is something to do."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as problem:
        raise ExperimentError(f"{folder}: cannot be made a folder: {problem.strerror}") from None
    if fresh or not (folder / results.FILE).exists():
        return None
    found = results.load(folder)
    if found.quick != definition.quick or dict(found.parameters) != dict(definition.parameters):
        what = "a quick run" if found.quick and not definition.quick else "other parameters"
        raise ExperimentError(
            f"{folder / results.FILE}: these are results of {what}; run them again with --fresh, "
            "or write elsewhere with --out"
        )
    (folder / FILE).unlink(missing_ok=True)  # killed between results and this
    return found


def _discard(definition: Definition, folder: Path) -> None:
    """Remove what earlier runs left; refuse to touch anything else of the same name."""
    ours = {
        results.FILE: b'{\n"format": "silograph-experiment ',
        FILE: b'{"format": "silograph-experiment-journal ',
        PARAMETERS: f"# {definition.name}, as it was run".encode(),
    }
    paths = [(folder / name, begin) for name, begin in ours.items() if (folder / name).exists()]
    for path, begin in paths:
        content = whole_files.read(path, 256 << 20, ExperimentError)
        if not content.startswith(begin) and not begin.startswith(content):
            raise ExperimentError(f"{path}: this was not written by a run; move it away first")
    for path, _ in paths:
        path.unlink()


def _graphs(definitions: Sequence[Definition]) -> dict[str, dict[str, dict[str, Any]]]:
    """What there is to say of the graphs of every experiment, if all are at hand."""
    wanted = dict.fromkeys(graph for one in definitions for graph in one.graphs)
    known, missing = {}, []
    for graph in wanted:
        try:
            loaded = graph.load()
        except DatasetError as problem:
            missing.append(str(problem))
        else:
            size = {"nodes": len(loaded.universe), "edges": len(loaded)}
            known[graph] = {**size, "source": graph.source}
    if missing:
        lines = "\n  ".join(missing)
        raise ExperimentError(
            f"graphs are missing, and nothing was run:\n  {lines}\n"
            "--quick needs no files: it has a generated graph"
        )
    return {one.name: {graph.name: known[graph] for graph in one.graphs} for one in definitions}


def _open(
    definition: Definition,
    folder: Path,
    graphs: Mapping[str, Mapping[str, Mapping[str, Any]]],
    stack: contextlib.ExitStack,
) -> _Open:
    path, content = folder / PARAMETERS, definition.to_toml()
    parts = [definition.name, definition.quick, dict(definition.parameters), software()]
    if definition.kind == "timing":
        parts.append(machine())  # times of two machines do not belong in one table
    known = graphs[definition.name]
    if path.exists() and whole_files.read(path, 1 << 20, ExperimentError) != content:
        raise ExperimentError(
            f"{path}: begun with other parameters; begin again with --fresh, or write elsewhere "
            "with --out"
        )
    tasks = tasks_of(definition, {name: int(graph["nodes"]) for name, graph in known.items()})
    journal = stack.enter_context(Journal(folder, definition.name, digest_of(*parts, known)))
    strange = set(journal.outcomes) - {task.key for task in tasks}
    if strange:
        raise ExperimentError(f"{folder / FILE}: it has tasks of another experiment")
    whole_files.replace(path, content, ExperimentError, mode=0o644)
    return _Open(definition, folder, known, journal, tasks)


# -- work ------------------------------------------------------------------------------------------


def _draw_all(opened: Sequence[_Open], jobs: int, watch: Watch) -> Generator[_Open, None, None]:
    """Do all tasks over so many processes; each experiment comes out when it is done."""
    owners = {id(task): one for one in opened for task in one.todo}
    todo = sorted((task for one in opened for task in one.todo), key=lambda task: -task.cost)
    left = {one.definition.name: len(one.todo) for one in opened}
    if not todo:
        return
    with _processes(min(jobs, len(todo))) as pool:
        with _uninterrupted():
            futures: dict[Future[Outcome], Task] = {
                pool.submit(run_task, task): task for task in todo
            }
        for future in as_completed(futures):
            task = futures[future]
            one = owners[id(task)]
            try:
                outcome = future.result()
            except BrokenProcessPool:
                raise ExperimentError(
                    f"a process ended in the middle of its work; {_CONTINUE} (with a smaller "
                    "--jobs, if memory was short)"
                ) from None
            except SilographError as problem:
                raise ExperimentError(f"{task.experiment}, {task.key}: {problem}") from problem
            one.journal.add(task.key, outcome)
            watch.done(task)
            left[task.experiment] -= 1
            if not left[task.experiment]:
                yield one


def _run(task: Task) -> Outcome:
    try:
        return run_task(task)
    except SilographError as problem:
        raise ExperimentError(f"{task.experiment}, {task.key}: {problem}") from problem


@contextlib.contextmanager
def _processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that share the cores evenly, and end with this one whatever ends it."""
    before = {key: os.environ.get(key) for key in _THREADS}
    already = set(multiprocessing.active_children())
    threads = max(1, len(os.sched_getaffinity(0)) // jobs)
    os.environ.update(dict.fromkeys(_THREADS, str(threads)))
    # Not fork: threads of the Rust core do not survive it.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin)
    try:
        yield pool
    except BaseException:
        # An interrupt, or an error: nobody wants what the others are at.
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - already:
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Processes that begin within never see an interrupt, not even before they can ignore it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """In a worker: leave interrupts to the parent, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: Any) -> None:
    parent.join()
    os._exit(1)
