"""The benchmark of coverage: what its verdicts rest on."""

import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import harness
from benchmarks.coverage import MADE, QUERIES, SOURCES, Cell, Graph, Tally, main
from silograph import Estimate


def answer(low: float, high: float, note: str = "") -> Estimate[float]:
    return Estimate("edges", (low + high) / 2, 1.0, epsilon=1.0, ends=(low, high), note=note)


def test_verdicts() -> None:
    covering, missing = Tally(400, 392), Tally(400, 340)
    assert covering.limits[0] == pytest.approx(0.948, abs=1e-3)
    assert covering.verdict(4000) == "ok"
    assert missing.verdict(4000) == "missed"
    unsure = Tally(400, 378)
    assert unsure.verdict(4000) == "open"
    assert unsure.verdict(400) == "missed"
    assert Tally(5, 0, without=5).verdict(400) == "no interval"


def test_what_is_counted() -> None:
    tally = Tally()
    tally.add(answer(1.0, 3.0), 2, 0)
    tally.add(answer(1.0, 3.0, "no usable answer: noise"), 4, 1)
    tally.add(answer(math.nan, math.nan), 2, 2)
    assert (tally.draws, tally.covered, tally.unusable, tally.without) == (3, 1, 1, 1)


def test_bins_without_doubt_are_left_out_unless_wrong() -> None:
    ends = np.array([5.0, 0.0, 3.0]), np.array([5.0, 2.0, 3.0])
    found = Estimate("degree_histogram", ends[0], ends[0], epsilon=1.0, ends=ends)
    for truth, covered in (([5, 1, 3], 2), ([5, 3, 3], 0), ([4, 1, 3], 1)):
        tally = Tally()
        for number in (0, 1):
            tally.add(found, np.array(truth), number)
        assert tally.covered == covered


def test_a_cell_goes_on_where_it_ended() -> None:
    graph = Graph("dense-10", MADE["dense-10"]())
    whole, first, second = (Cell(graph, "masked", 1.0, 1) for _ in range(3))
    whole.measure(["edges", "triangles"], 6, 6, math.inf)
    first.measure(["edges", "triangles"], 3, 3, math.inf)
    second.restore(first.record())
    second.measure(["edges", "triangles"], 6, 6, math.inf)
    assert second.tallies == whole.tallies
    assert second.drawn == 6


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_is_asked(source: str) -> None:
    graph = Graph("ring-100", MADE["ring-100"]())
    cell = Cell(graph, source, 1.0, 1 if source != "baseline" else 0)
    cell.measure([q for q in QUERIES if q != "histogram"], 1, 1, math.inf)
    assert {"edges", "2-stars"} & set(cell.tallies)
    assert all(tally.judged for tally in cell.tallies.values())


def test_files_are_shown_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line has the lowest coverage of all files, and one interval that was missed is told."""
    files = []
    for name, t, covered in (("one", 0, 392), ("two", 1, 340)):
        graph, tallies = Graph("path", MADE["dense-10"]()), {"edges": Tally(400, covered)}
        cell = Cell(graph, "masked", 1.0, t, tallies, drawn=400)
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps({cell.key: cell.record()}))
    monkeypatch.setattr(sys, "argv", ["coverage", "--show", *map(str, files)])
    monkeypatch.setattr(harness, "WRITTEN", tmp_path / "figures")
    assert main() == 1
    shown = capsys.readouterr().out
    assert re.search(r"path +│ masked +│ edges +│ 2 +│ 1 │ 1 │ 400 +│ 0.850 .* missed", shown)
    assert "missed: path, masked, edges, ε 1, t 1: coverage 0.850" in shown
    assert "1 missed, 1 ok" in shown

    figures = tmp_path / "figures" / "coverage.json"
    report = harness.Report.from_json(figures.read_text())
    assert report.tables["queries"].rows[0] == ("edges", "0.850 (0.788)")
    assert report.tables["graphs"].rows[0][-3:] == ("1", "0", "1")
    monkeypatch.setattr(sys, "argv", ["coverage", "--show", str(figures)])
    assert main() == 1
    assert capsys.readouterr().out == shown


def test_cells_of_a_large_graph_are_judged_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of 30 cells of 20 draws says anything; 570 of 600 intervals do."""
    file, kept = tmp_path / "large.json", {}
    monkeypatch.setattr("benchmarks.coverage.SMALL", 5)
    graph = Graph("path", MADE["dense-10"]())
    for number in range(30):
        cell = Cell(graph, "masked", 0.1 * number, 1, {"edges": Tally(20, 19)}, drawn=20)
        kept[cell.key] = cell.record()
    file.write_text(json.dumps(kept))
    monkeypatch.setattr(sys, "argv", ["coverage", "--show", str(file)])
    monkeypatch.setattr(harness, "WRITTEN", tmp_path)
    assert main() == 0
    report = harness.Report.from_json((tmp_path / "coverage.json").read_text())
    assert report.tables["large"].rows == (("edges", "0.950 (0.916; 600)"),)
    assert report.tables["queries"].rows[0] == ("edges", "")
