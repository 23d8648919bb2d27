"""The benchmark of growth: nothing is left out, and what it says of the largest n."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from benchmarks.harness import Report
from silograph.estimators.questions import RELEASE_QUERIES
from silograph.methods.catalogue import QUERIES
from silograph.methods.union import PROTOCOLS

#: In a process of its own, since a benchmark binds its process to two cores.
ASKED = """
import json
from benchmarks import growth
from benchmarks.harness import Contestant
first = growth.QUERIES[0]
far = [first.far(1000, Contestant(wall, wall)) for wall in (1e-9, 36.0, 36e6)]
print(json.dumps([[one.name for one in (*growth.QUERIES, *growth.protocols())], far]))
"""
run = partial(subprocess.run, check=True, capture_output=True, text=True)


def test_every_query_and_protocol_is_measured() -> None:
    names, far = json.loads(run([sys.executable, "-c", ASKED]).stdout)
    measured = {name.split("(")[0].split(",")[0] for name in names}
    # `elgamal` and its printed form do what the other two do.
    wanted = {*QUERIES, *RELEASE_QUERIES, *PROTOCOLS} - {"elgamal", "elgamal/printed"}
    assert measured == wanted | {"baseline", "feat+", "sealed"}
    # Memory of the rows twice over; a time that grows with n²; and less than was measured.
    assert far == [[262_144, "16 GiB"], [10_000, "an hour"], [10, "an hour"]]


@pytest.mark.slow
def test_a_small_run(tmp_path: Path) -> None:
    out = tmp_path / "growth.json"
    only = ["--only", "edges", "masked", "--sizes", "edges=500", "masked=200", "--rounds", "2"]
    module = [sys.executable, "-m", "benchmarks.growth"]
    run([*module, *only, "--json", str(out)], check=False)
    report = Report.from_json(out.read_text())
    assert {len(table.rows) for table in report.tables.values()} == {1}
    assert report.tables["protocol"].rows[0][-1] == "extrapolated"
    assert report.contests["masked"]["400 nodes"].runs == 2
