"""The benchmark of the wire: a short run of all contestants, and what it says."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.harness import Report


@pytest.mark.deploy
def test_a_small_run(tmp_path: Path) -> None:
    out = tmp_path / "wire.json"
    command = [sys.executable, "-m", "benchmarks.wire", "--nodes", "2000", "--rounds", "2"]
    subprocess.run([*command, "--json", str(out)], check=False, capture_output=True)
    report = Report.from_json(out.read_text())
    (contest,) = report.contests.values()
    assert {found.runs for found in contest.values()} == {2}
    assert len(report.tables["upload"].rows) == len(contest) == 5
    # The goal is the first line; the others are shown, whatever they are.
    assert [row[3] for row in report.tables["multiples"].rows] == ["1.3", "", ""]
    assert [verdict.most for verdict in report.verdicts if not verdict.fairness] == [1.3]
