"""``python -m reproduction run``: a quick run of everything, and what people are shown."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reproduction.definitions import ALIASES, read_definition
from reproduction.draws import series_of
from reproduction.results import EXPERIMENTS, UTILITY_KEYS, Results, load_all, rows_key

ROOT = Path(__file__).parents[2]
FORMS = {"baseline", "feat", "feat+", "sealed", "curator", "central"}


def run(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": "", "COLUMNS": "80", "SILOGRAPH_DATA": str(folder / "nothing")}
    environment["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    return subprocess.run(
        [sys.executable, "-m", "reproduction", "run", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def ran(
    tmp_path_factory: pytest.TempPathFactory,
) -> "tuple[Path, subprocess.CompletedProcess[str]]":
    folder = tmp_path_factory.mktemp("reproduced")
    return folder, run("--quick", "--out", "here", folder=folder)


@pytest.fixture(scope="module")
def found(ran: "tuple[Path, subprocess.CompletedProcess[str]]") -> dict[str, Results]:
    return load_all(ran[0] / "here")


@pytest.mark.whole
def test_everything_runs_without_any_file(
    ran: "tuple[Path, subprocess.CompletedProcess[str]]", found: dict[str, Results]
) -> None:
    folder, process = ran
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    assert list(found) == list(EXPERIMENTS)
    assert all(len(line) <= 80 for line in process.stdout.splitlines())
    for text in (
        *EXPERIMENTS,
        "python -m reproduction report here",
        "mean relative error on generated",
    ):
        assert text in process.stdout
    for name in EXPERIMENTS:
        written = tomllib.loads((folder / "here" / name / "experiment.toml").read_text())
        assert written == read_definition(name, quick=True).parameters == found[name].parameters
        assert found[name].quick
        assert {path.name for path in (folder / "here" / name).iterdir()} == {
            "experiment.toml", "results.json",
        }  # fmt: skip


def combinations(name: str) -> Iterator[dict[str, Any]]:
    """Every combination that the parameters of a utility experiment ask for."""
    one = read_definition(name, quick=True)
    for graph in one.parameters["graphs"]:
        for point in one.points():
            for query in one.parameters["queries"]:
                for label in one.parameters["methods"]:
                    for series in series_of(label, query):
                        delta = 1e-9 if series.uses_delta else 0.0
                        names = {"experiment": name, "graph": graph, "query": query}
                        yield {**names, **vars(series), **point, "delta": delta}


@pytest.mark.whole
def test_every_combination_has_a_row_or_a_reason(found: dict[str, Results]) -> None:
    for name, one in found.items():
        if one.kind != "utility":
            continue
        asked = [tuple(row[key] for key in UTILITY_KEYS) for row in combinations(name)]
        assert sorted(asked) == sorted(rows_key(row) for row in (*one.rows, *one.left_out))
        reasons = {row["reason"] for row in one.left_out}
        least, most = "it needs collusion of at least 1", "sealed needs collusion of at most 1"
        fine = all(least in text or most in text for text in reasons)
        assert not reasons or (name == "collusion" and fine)


@pytest.mark.whole
def test_rows(found: dict[str, Results]) -> None:
    seeds = [
        seed
        for one in found.values()
        if one.kind == "utility"
        for row in one.rows
        if row["method"] in ("feat", "curator") and row["query"] == "2-stars"
        for seed in row["seeds"]
    ]
    assert len(set(seeds)) == len(seeds)  # no draw is used twice
    for one in found.values():
        assert one.software.keys() == {"silograph", "python", "numpy"}
        assert one.machine.keys() == {"processor", "cores", "simd"}
        for row in one.rows:
            if one.kind == "utility":
                values, truth = row["values"], row["truth"]
                assert len(values) == one.parameters["repetitions"]
                assert row["mse"] == pytest.approx(
                    sum((value - truth) ** 2 for value in values) / len(values)
                )
                assert row["mre"] == pytest.approx(
                    sum(abs(value - truth) / truth for value in values) / len(values)
                )
                assert row["method"] in FORMS
            else:
                assert row["seconds"] > 0
                assert isinstance(row["scaled"], bool)
    (graph,) = found["epsilon"].graphs.values()
    assert graph["nodes"] == 400


@pytest.mark.whole
def test_the_figures_say_what_is_known(found: dict[str, Results]) -> None:
    """Orders of magnitude that no seed can turn round."""
    error = {
        (row["method"], row["form"], row["variant"]): row["mre"]
        for row in found["epsilon"].rows
        if row["query"] == "triangles" and row["epsilon"] == 3
    }
    assert error["baseline", "printed", ""] > 100
    assert error["feat", "printed", ""] > 5
    assert error["feat", "mended", ""] < 1
    assert error["sealed", "mended", ""] < 0.2
    unions = {row["rho"]: row["truth"] for row in found["rho"].rows if row["query"] == "2-stars"}
    assert unions[0.1] < unions[0.3] == unions[0.5]


@pytest.mark.whole
def test_again_nothing_is_run_and_nothing_changes(
    ran: "tuple[Path, subprocess.CompletedProcess[str]]",
) -> None:
    folder, _ = ran
    before = {path: path.read_bytes() for path in (folder / "here").rglob("*.json")}
    process = run("--quick", "--out", "here", "--json", folder=folder)
    shown = json.loads(process.stdout)
    assert list(shown) == list(EXPERIMENTS)
    assert shown["epsilon"]["results"] == "here/epsilon/results.json"
    assert shown["epsilon"]["seed"] == 1
    assert {path: path.read_bytes() for path in (folder / "here").rglob("*.json")} == before
    process = run("--figure", "curves", "--out", "here", folder=folder)
    assert process.returncode == 2
    assert "results of a quick run" in process.stderr


def test_list_and_names(tmp_path: Path) -> None:
    process = run("--list", folder=tmp_path)
    assert process.returncode == 0
    for text in (*EXPERIMENTS, *ALIASES):
        assert text in process.stdout
    process = run("--list", "--json", "--figure", "ECC", "--figure", "curves", folder=tmp_path)
    assert list(json.loads(process.stdout)) == ["curves"]
    process = run("--figure", "nonsense", folder=tmp_path)
    assert (process.returncode, process.stdout) == (2, "")
    assert "no experiment or figure 'nonsense'" in process.stderr
    assert list(tmp_path.iterdir()) == []
