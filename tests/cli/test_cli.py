"""The command line as a person uses it: real processes, their output and exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from silograph import Channel, Release, __version__, clustered_power_law


def run(*arguments: object, columns: int = 80) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "silograph", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"},
    )


@pytest.fixture
def release(tmp_path: Path) -> Path:
    path = tmp_path / "g.release"
    silo = clustered_power_law(100, edges_per_node=4, seed=1)
    Release.draw(silo, Channel.symmetric(3.0), seed=1).save(path)
    return path


def test_demo_fits_the_screen_and_is_quick() -> None:
    start = os.times()
    done = run("demo")
    assert done.returncode == 0, done.stderr
    assert os.times().children_user - start.children_user < 10, "other programs do not count"
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    for query in ("edges", "2-stars", "3-stars", "triangles", "4-cycles", "clustering"):
        assert any(query in line for line in lines)
    assert "coordinator + 1 member: ε = 2.99062" in done.stdout
    assert "spent ε = 2.99062" in done.stdout


def test_version() -> None:
    assert run("--version").stdout.startswith(f"silograph {__version__} ")


@pytest.mark.slow
@pytest.mark.parametrize("query", ["edges", "triangles", "four_cycles", "clustering", "degrees"])
def test_query(release: Path, query: str) -> None:
    assert run("query", release, query).stdout.startswith(query)
    found = json.loads(run("query", release, query, "--json").stdout)
    assert found["query"] == query
    assert found["epsilon"] == pytest.approx(3)


def test_kstars(release: Path) -> None:
    expected = Release.load(release).kstars(3).value
    assert (
        json.loads(run("query", release, "kstars", "--k", 3, "--json").stdout)["value"] == expected
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("query", "absent", "edges"), "absent: cannot read the release: No such file"),
        (("query", "RELEASE", "squares"), "unknown query 'squares'"),
        (("query", "RELEASE", "kstars"), "kstars needs --k"),
        (("query", "RELEASE", "kstars", "--k", "0"), "k must be an integer of at least 1"),
        (("query", "RELEASE", "kstars", "--k", "100"), "needs more than 100 nodes"),
        (("query", "RELEASE", "edges", "--k", "2"), "--k is for kstars"),
        (("demo", "--epsilon", "0"), "epsilon must be a positive"),
        (("demo", "--epsilon", "nan"), "epsilon must be a positive"),
        (("universe", "show", "absent"), "absent"),
        (("universe", "make", "absent", "-o", "nodes"), "absent"),
    ],
)
def test_errors_are_one_line(release: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(*(release if a == "RELEASE" else a for a in arguments))
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_audit() -> None:
    done = run("audit", "--effort", "0.01")
    assert done.returncode == 0, done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "elgamal/printed" in done.stdout


@pytest.mark.whole
def test_audit_as_json() -> None:
    found = json.loads(run("audit", "--effort", "0.01", "--json").stdout)
    assert len(found) == 67
    assert all(line["holds"] for line in found)


def test_debug_shows_the_traceback() -> None:
    done = run("--debug", "demo", "--epsilon", "0")
    assert "Traceback" in done.stderr


def test_universe_commands(tmp_path: Path) -> None:
    edges, nodes, other = (tmp_path / name for name in ("edges.csv", "nodes", "other"))
    edges.write_text("source,target\nb,a\na,c\n")
    done = run("universe", "make", edges, "-o", nodes)
    assert done.returncode == 0, done.stderr
    assert "3 nodes" in done.stdout
    assert run("universe", "show", nodes).stdout.split()[-1] in done.stdout
    assert run("universe", "compare", nodes, nodes).returncode == 0
    other.write_text("a\nb\n")
    done = run("universe", "compare", nodes, other)
    assert done.returncode == 1
    assert "c" in done.stdout
