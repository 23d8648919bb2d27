"""The runner: killed at random moments, stopped, damaged, changed, crowded; and still the same."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from reproduction import runner
from reproduction.definitions import Definition, read_definition
from reproduction.results import FILE, Results, load
from reproduction.runner import PARAMETERS, Journal, digest_of, held, reproduce
from reproduction.tasks import Task, _spread, rows_of, run_task, tasks_of
from silograph.errors import DatasetError, ExperimentError

#: Two small experiments, of 24 and 12 tasks.
SMALL = {
    "epsilon": """
title = "Small"
paper = "None"
kind = "utility"
varies = "epsilon"
graphs = ["generated"]
generated_nodes = 120
generated_edges_per_node = 4
queries = ["2-stars", "triangles"]
methods = [
    "baseline printed", "baseline mended", "feat printed", "feat mended", "sealed", "curator",
]
values = [1, 2, 4, 6]
epsilon = 3
rho = 0.3
sigma = 0.2
silos = 4
collusion = 1
delta = 1e-9
repetitions = 3
seed = 11
""",
    "collusion": """
title = "Smaller"
paper = "None"
kind = "utility"
varies = "collusion"
graphs = ["generated"]
generated_nodes = 60
queries = ["triangles"]
methods = ["feat mended", "feat+ mended", "curator"]
values = [0, 1, 2, 3]
epsilon = 3
rho = "whole"
sigma = 0
silos = 4
collusion = 1
delta = 0
repetitions = 2
seed = 12
""",
}
NAMES = list(SMALL)
TASKS = 24 + 11  # feat+ does without collusion 0


class Watch:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.todo = self.kept = self.did = 0
        self.order: list[str] = []

    def begin(self, todo: Sequence[Task], kept: int) -> None:
        self.todo, self.kept = len(todo), kept

    def done(self, task: Task) -> None:
        assert task.key
        self.did += 1

    def finished(self, found: Results) -> None:
        self.order.append(found.experiment)


@pytest.fixture(scope="module")
def parameters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parameters")
    for name, text in SMALL.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def definitions(parameters: Path) -> list[Definition]:
    return [read_definition(name, folder=parameters) for name in NAMES]


@pytest.fixture(scope="module")
def unbroken(
    definitions: list[Definition], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The results of a run that nothing happened to, in one process."""
    out, watch = tmp_path_factory.mktemp("unbroken"), Watch()
    found = reproduce(definitions, out, watch, jobs=1)
    assert (watch.todo, watch.kept, watch.did) == (TASKS, 0, TASKS)
    assert sorted(watch.order) == sorted(NAMES) == sorted(found)
    for name in NAMES:
        assert {path.name for path in (out / name).iterdir()} == {FILE, PARAMETERS}
        assert load(out / name) == Results(**{**vars(found[name]), **_tuples(found[name])})
    return {name: (out / name / FILE).read_bytes() for name in NAMES}


def _tuples(found: Results) -> dict[str, object]:
    return {"rows": tuple(found.rows), "left_out": tuple(found.left_out)}


def start(parameters: Path, out: Path) -> "subprocess.Popen[bytes]":
    figures = [part for name in NAMES for part in ("--figure", name)]
    command = [sys.executable, "-m", "reproduction", "run", "--out", str(out), "--jobs", "2"]
    return subprocess.Popen(
        [*command, *figures, "--parameters", str(parameters), "--json"],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def lines(out: Path) -> int:
    """How much is done: lines of journals, and a lot for a finished experiment."""
    done = 0
    for name in NAMES:
        journal = out / name / runner.FILE
        try:
            done += journal.read_bytes().count(b"\n")
        except FileNotFoundError:
            done += 100 * (out / name / FILE).exists()
    return done


def gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def wait_for(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.005)


@pytest.mark.whole
def test_killed_at_random_moments(
    parameters: Path, unbroken: dict[str, bytes], tmp_path: Path
) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    draw, halves = random.Random(seed), 0  # noqa: S311
    for _ in range(4):
        process, before = start(parameters, tmp_path), lines(tmp_path)
        # Somewhere in the next third of the work, and then at no particular moment.
        target = before + draw.randrange(1, 14)
        wait_for(lambda p=process, t=target: p.poll() is not None or lines(tmp_path) >= t)
        time.sleep(draw.random() * 0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        halves += any((tmp_path / name / runner.FILE).exists() for name in NAMES)
        wait_for(lambda group=process.pid: gone(group))
    assert halves, f"no kill hit the work (seed {seed})"
    process = start(parameters, tmp_path)
    shown, problem = process.communicate(timeout=240)
    assert process.returncode == 0, (seed, problem)
    assert json.loads(shown)["epsilon"]["rows"] == 48
    for name in NAMES:
        assert (tmp_path / name / FILE).read_bytes() == unbroken[name], f"seed {seed}"
        assert not (tmp_path / name / runner.FILE).exists()


@pytest.mark.whole
def test_interrupted_and_orphaned(
    parameters: Path, unbroken: dict[str, bytes], tmp_path: Path
) -> None:
    """An interrupt leaves a state that continues; workers do not outlive a killed parent."""
    process = start(parameters, tmp_path)
    wait_for(lambda: lines(tmp_path) >= 5)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=240)
    if process.returncode != 0:  # else it was done before the signal came
        assert process.returncode == 5
        assert b"the same command continues" in said
        assert b"Traceback" not in said
    wait_for(lambda: gone(process.pid))
    process = start(parameters, tmp_path)
    wait_for(lambda: process.poll() is not None or lines(tmp_path) >= 12)
    process.kill()
    process.communicate()
    wait_for(lambda: gone(process.pid))
    process = start(parameters, tmp_path)
    process.communicate(timeout=240)
    for name in NAMES:
        assert (tmp_path / name / FILE).read_bytes() == unbroken[name]


def test_finished_experiments_are_kept_and_fresh_runs_them_again(
    definitions: list[Definition], unbroken: dict[str, bytes], tmp_path: Path
) -> None:
    one = definitions[1]
    (tmp_path / one.name).mkdir()
    (tmp_path / one.name / FILE).write_bytes(unbroken[one.name])
    (tmp_path / one.name / "notes.txt").write_text("mine")
    watch = Watch()
    reproduce([one], tmp_path, watch, jobs=1)
    assert (watch.todo, watch.did, watch.order) == (0, 0, [])
    reproduce([one], tmp_path, watch, jobs=1, fresh=True)
    assert (watch.todo, watch.did) == (11, 11)
    assert (tmp_path / one.name / FILE).read_bytes() == unbroken[one.name]
    assert (tmp_path / one.name / "notes.txt").read_text() == "mine"


def test_fresh_keeps_what_it_cannot_run_again(
    definitions: list[Definition],
    unbroken: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = definitions[1]
    (tmp_path / one.name).mkdir()
    (tmp_path / one.name / FILE).write_bytes(unbroken[one.name])

    def absent(_: object) -> None:
        raise DatasetError("no such file")

    monkeypatch.setattr(type(one.graphs[0]), "load", absent)
    with pytest.raises(ExperimentError, match="nothing was run"):
        reproduce([one], tmp_path, Watch(), jobs=1, fresh=True)
    assert (tmp_path / one.name / FILE).read_bytes() == unbroken[one.name]


class TestTasks:
    def test_every_draw_has_a_seed_of_its_own(self, definitions: list[Definition]) -> None:
        nodes = {"generated": 100}
        tasks = [task for one in definitions for task in tasks_of(one, nodes)]
        seeds = [seed for task in tasks for seed in task.seeds]
        assert len(tasks) == TASKS
        assert len(set(seeds)) == len(seeds) == 24 * 3 + 11 * 2
        assert max(seeds) < 2**48
        other = Definition("collusion", False, {**definitions[1].parameters, "seed": 13})
        assert not {seed for task in tasks_of(other, nodes) for seed in task.seeds} & set(seeds)

    def test_rows_are_made_of_outcomes(self, definitions: list[Definition]) -> None:
        one, nodes = definitions[1], {"generated": 100}
        outcomes = {
            task.key: {
                "truths": {"triangles": 10},
                "rho_reached": 0.25,
                "values": {"triangles": {key: [8.0, 14.0] for key in ("", "paper", "auto")}},
            }
            for task in tasks_of(one, nodes)
        }
        rows, left_out = rows_of(one, nodes, outcomes)
        assert len(rows) == 14
        for row in rows:
            assert (row["mse"], row["mre"]) == (10.0, pytest.approx(0.3))
            assert row["mse_spread"] == pytest.approx(72**0.5)
            assert row["mre_spread"] == pytest.approx(0.02**0.5)
            assert len(row["seeds"]) == 2
        assert [(row["variant"], row["collusion"]) for row in left_out] == [
            ("paper", 0),
            ("auto", 0),
        ]
        first = next(iter(outcomes.values()))
        first["truths"] = {"triangles": 0}
        rows, left_out = rows_of(one, nodes, outcomes)
        assert len(rows) == 13
        assert left_out[0]["reason"] == "the silos hold no triangles: there is no relative error"

    def test_spreads_do_not_overflow(self) -> None:
        assert _spread([1e200, 3e200]) == pytest.approx(2**0.5 * 1e200)
        assert _spread([5.0]) == _spread([0.0, 0.0]) == 0.0


class TestContinuing:
    """What a run finds, without one being killed."""

    def begun(self, one: Definition, out: Path) -> Path:
        """The journal of a run in which four tasks are done."""
        folder = out / one.name
        nodes = {graph.name: graph.nodes for graph in one.graphs}
        tasks = tasks_of(one, nodes)
        folder.mkdir(parents=True)
        graphs = runner._graphs([one])[one.name]
        parts = one.name, one.quick, dict(one.parameters), runner.software(), graphs
        with Journal(folder, one.name, digest_of(*parts)) as journal:
            for task in tasks[:4]:
                journal.add(task.key, run_task(task))
        return folder / runner.FILE

    def test_a_torn_line_is_dropped(
        self, definitions: list[Definition], unbroken: dict[str, bytes], tmp_path: Path
    ) -> None:
        path, watch = self.begun(definitions[1], tmp_path), Watch()
        digest = json.loads(path.read_bytes().splitlines()[0])["digest"]
        for task in tasks_of(definitions[1], {"generated": 60})[4:6]:
            with path.open("ab") as file:
                file.write(b'{"key": "half of it", "outc')
            with Journal(path.parent, "collusion", digest) as journal:
                journal.add(task.key, run_task(task))
        reproduce(definitions[1:], tmp_path, watch, jobs=1)
        assert (watch.todo, watch.kept, watch.did) == (5, 6, 5)
        assert (tmp_path / "collusion" / FILE).read_bytes() == unbroken["collusion"]

    def test_a_disk_that_fills_up_is_named(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path, "collusion", "")
        journal.close()
        journal._file = Path("/dev/full").open("wb")  # noqa: SIM115 (the journal closes it)
        with pytest.raises(ExperimentError, match=r"jsonl: cannot be written: No space"), journal:
            journal.add("a", {})

    def test_a_changed_line_is_refused(self, definitions: list[Definition], tmp_path: Path) -> None:
        path = self.begun(definitions[1], tmp_path)
        whole = path.read_bytes()
        rows = whole.splitlines(keepends=True)
        damaged = {
            "line 3 is damaged": [*rows[:2], rows[2].replace(b"rho_reached", b"rho_reachee")],
            "line 2 is damaged": [rows[0], b"nonsense\n", *rows[1:]],
            "line 4 is damaged": [*rows[:3], rows[2]],
            "not a journal": [b'{"format": "other"}\n'],
            "begun with other parameters": [rows[0].replace(b'"digest": "', b'"digest": "0')],
        }
        for message, content in damaged.items():
            path.write_bytes(b"".join(content))
            with pytest.raises(ExperimentError, match=message):
                reproduce(definitions[1:], tmp_path, Watch(), jobs=1)
            assert path.read_bytes() == b"".join(content)
        path.write_bytes(b"something else")
        with pytest.raises(ExperimentError, match="not a journal"):
            reproduce(definitions[1:], tmp_path, Watch(), jobs=1)
        path.write_bytes(whole.splitlines()[0][:30])  # killed while it wrote the first line
        Journal(path.parent, "collusion", "digest").close()

    def test_other_parameters_are_refused(
        self, definitions: list[Definition], tmp_path: Path
    ) -> None:
        one = definitions[1]
        changed = Definition(one.name, False, {**one.parameters, "seed": 13})
        self.begun(one, tmp_path)
        with pytest.raises(ExperimentError, match=r"--fresh, or write elsewhere"):
            reproduce([changed], tmp_path, Watch(), jobs=1)

    def test_results_of_other_parameters_are_refused(
        self, definitions: list[Definition], unbroken: dict[str, bytes], tmp_path: Path
    ) -> None:
        one = definitions[1]
        (tmp_path / one.name).mkdir()
        (tmp_path / one.name / FILE).write_bytes(unbroken[one.name])
        changed = Definition(one.name, False, {**one.parameters, "seed": 13})
        with pytest.raises(ExperimentError, match="results of other parameters"):
            reproduce([changed], tmp_path, Watch(), jobs=1)
        quick = unbroken[one.name].replace(b'"quick": false', b'"quick": true')
        (tmp_path / one.name / FILE).write_bytes(quick)
        with pytest.raises(ExperimentError, match="results of a quick run"):
            reproduce([one], tmp_path, Watch(), jobs=1)

    def test_foreign_files_are_left_alone(
        self, definitions: list[Definition], tmp_path: Path
    ) -> None:
        for name in (FILE, PARAMETERS, runner.FILE):
            folder = tmp_path / name / "collusion"
            folder.mkdir(parents=True)
            (folder / name).write_text("mine")
            for fresh in (False, True):
                with pytest.raises(ExperimentError, match=name):
                    reproduce(definitions[1:], folder.parent, Watch(), jobs=1, fresh=fresh)
                assert (folder / name).read_text() == "mine"
        (tmp_path / "file").write_text("mine")
        with pytest.raises(ExperimentError, match="cannot be made a folder"):
            reproduce(definitions, tmp_path / "file", Watch(), jobs=1)
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "collusion").write_text("mine")
        with pytest.raises(ExperimentError, match="cannot be made a folder"):
            reproduce(definitions, tmp_path / "out", Watch(), jobs=1)

    def test_two_runs_at_once_are_refused(
        self, definitions: list[Definition], tmp_path: Path
    ) -> None:
        with held(tmp_path), pytest.raises(ExperimentError, match="another run writes here"):
            reproduce(definitions, tmp_path, Watch(), jobs=1)
        assert list(tmp_path.iterdir()) == []

    def test_missing_graphs_are_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fetch(*_: object) -> None:
            raise DatasetError("it cannot be fetched")

        monkeypatch.setattr("silograph.graph.download.fetch", fetch)
        monkeypatch.setenv("SILOGRAPH_DATA", str(tmp_path / "data"))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        with pytest.raises(ExperimentError, match="--quick needs no files") as caught:
            reproduce([read_definition("epsilon")], tmp_path / "out", Watch(), jobs=1)
        for part in ("facebook", "wiki-vote", "set SILOGRAPH_DATA"):
            assert part in str(caught.value)

    def test_answers_without_end_are_refused(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path, "epsilon", "0")
        with journal, pytest.raises(ExperimentError, match="no finite number"):
            journal.add("a task", {"values": [float("inf")]})
        assert journal.outcomes == {}
