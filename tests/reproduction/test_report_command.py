"""``python -m reproduction report``, as a person calls it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from reproduction.__main__ import app
from silograph.errors import SilographError
from tests.reproduction.synthetic import synthetic, write

ROOT = Path(__file__).parents[2]


def test_a_page_and_a_summary(tmp_path: Path) -> None:
    folder = write(tmp_path / "results", synthetic(names=["time", "curves"]))
    done = subprocess.run(
        [
            sys.executable, "-m", "reproduction", "report", folder,
            "--markdown", tmp_path / "summary.md",
        ],
        capture_output=True, text=True, timeout=60, check=False, cwd=ROOT,
        env=os.environ | {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "summary.md").read_text().startswith("# The paper, reproduced")
    lines = done.stdout.splitlines()
    assert "does not hold  FEAT takes about 10 × Baseline's time" in map(str.rstrip, lines)
    assert max(map(len, lines[:-2])) <= 80
    assert str(folder / "report.html") in lines


def test_json_for_programs(tmp_path: Path) -> None:
    folder = write(tmp_path / "results", synthetic(names=["curves"], quick=True))
    done = CliRunner().invoke(app, ["report", str(folder), "--out", f"{tmp_path}/p.html", "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.output)
    assert said["page"] == f"{tmp_path}/p.html"
    assert said["quick"] is True
    assert said["experiments"] == ["curves"]
    libsodium = next(one for one in said["verdicts"] if one["claim"] == "libsodium")
    assert libsodium["verdict"] == "does not hold"
    assert libsodium["outcomes"]["measured"]["holds"] is False
    assert not (folder / "report.html").exists()


def test_nothing_is_written_where_something_is_wrong(tmp_path: Path) -> None:
    def refused(*arguments: object) -> str:
        done = CliRunner().invoke(app, ["report", *map(str, arguments)])
        assert isinstance(done.exception, SilographError)  # which main() shows in one line
        assert done.output == ""
        return str(done.exception)

    assert "no such folder" in refused(tmp_path / "absent")
    folder = write(tmp_path / "results", synthetic(names=["curves"]))
    assert "cannot be written" in refused(folder, "--out", tmp_path / "no" / "page.html")
    same = tmp_path / "page.html"
    assert "choose two names" in refused(folder, "--out", same, "--markdown", same)
    (folder / "curves" / "results.json").write_text("{")
    assert "not JSON" in refused(folder)
    assert not list(tmp_path.rglob("*.html"))
