"""The harness of benchmarks: what it lets pass, and what it does not."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness import Benchmark, Report, Table, Verdict, apart, peak
from benchmarks.tables import pages, rewritten


@pytest.fixture
def bench(tmp_path: Path) -> Benchmark:
    made = Benchmark("sorting", "Sorting.")
    made.start(["--json", str(tmp_path / "deep" / "sorting.json")])
    return made


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_everyone_runs_in_turns_and_the_best_counts(bench: Benchmark) -> None:
    order: list[str] = []
    contest = bench.contest("turns")
    contest.race(3, {name: lambda name=name: order.append(name) for name in ("a", "b")})
    assert order == ["a", "b"] * 3
    contest.note("a", 5.0, 4.0)
    contest.note("c", 5.0, 2.0)
    contest.note("c", 3.0, 3.0)
    assert contest["a"].runs == 4
    assert contest["a"].wall < 1
    assert (contest["c"].wall, contest["c"].work) == (3.0, 2.0)
    assert bench.end() == 0


def test_work_is_processor_time(bench: Benchmark) -> None:
    contest = bench.contest("waiting")
    contest.race(2, {"spins": lambda: spin(0.02), "sleeps": lambda: time.sleep(0.02)}, per=2)
    assert contest["spins"].work >= 0.01
    assert contest["sleeps"].work < 0.01 <= contest["sleeps"].wall


def test_a_contestant_that_runs_once_fails(bench: Benchmark) -> None:
    with pytest.raises(ValueError, match="best of 1 is no best"):
        bench.contest("once").race(1, {"a": int})
    bench.contest("once").time("a", int)
    assert bench.end() == 1


def test_more_threads_than_the_others_fail(bench: Benchmark) -> None:
    for _ in range(2):
        bench.contest("threads").note("fair", 1.0, 1.0)
        bench.contest("threads").note("greedy", 1.0, 1.9)
    assert bench.end() == 1
    (missed,) = bench.report.missed
    assert "greedy" in missed.what
    assert missed.fairness


def test_a_share_above_the_limit_fails(bench: Benchmark) -> None:
    assert bench.share("of memory", 1.0, 4.0) == "25 %"
    assert bench.end() == 0
    bench.share("of memory", 4.1, 4.0)
    assert bench.end() == 1
    assert "measured wrongly" in bench.report.verdicts[-1].what


def test_contestants_that_disagree_end_it(bench: Benchmark) -> None:
    with pytest.raises(SystemExit, match="disagree"):
        bench.contest("counts").race(2, {"a": lambda: 1, "b": lambda: 2}, same=True)


@pytest.mark.parametrize(
    ("value", "most", "least", "passed"),
    [(2, 2, None, True), (2.1, 2, None, False), (2, None, 2, True), (1.9, None, 2, False)],
)
def test_goals(
    bench: Benchmark, value: float, most: float | None, least: float | None, passed: bool
) -> None:
    assert bench.goal("times as fast", value, most=most, least=least) is passed
    assert bench.end() == int(not passed)


def full(bench: Benchmark) -> Report:
    bench.contest("sorts").race(2, {"a": int, "b": int})
    bench.table("fast", "how fast", ("who", "ms"), [("a", "1"), ("b", "2")])
    bench.text("words", "30 seconds")
    bench.goal("ratio", np.float64(2.0), least=np.float64(1))
    bench.end()
    return bench.report


def test_json_there_and_back(bench: Benchmark, tmp_path: Path) -> None:
    report = full(bench)
    text = (tmp_path / "deep" / "sorting.json").read_text()
    assert Report.from_json(text) == report
    assert json.loads(text)["passed"] is True
    assert report.machine.cores >= 1
    assert report.machine.simd


def test_pages_quote_what_was_measured(bench: Benchmark, tmp_path: Path) -> None:
    report = full(bench)
    table = "<!-- bench: sorting.fast -->\n<!-- /bench -->"
    words = "It takes <!-- bench: sorting.words -->an hour<!-- /bench -->."
    empty = tmp_path / "none"
    assert "`make bench-sorting`" in rewritten(table, empty)
    assert rewritten(words, empty) == words
    (tmp_path / "sorting.json").write_text(report.to_json())
    made = rewritten(f"{words}\n{table}\n", tmp_path)
    assert "-->30 seconds<!--" in made
    assert "**how fast**\n\n| who | ms |\n| --- | ---: |\n| a | 1 |\n| b | 2 |\n" in made
    assert report.machine.cpu in made
    assert report.date in made
    assert rewritten(made, tmp_path) == made
    with pytest.raises(SystemExit, match="no other"):
        rewritten(words.replace(".words", ".other"), tmp_path)
    assert rewritten(made.replace("| a | 1 |", "| a | 0 |"), tmp_path) == made


def test_pages_are_as_the_stored_measurements() -> None:
    """`make bench-tables` would change nothing."""
    texts = [page.read_text() for page in pages()]
    assert [rewritten(text) for text in texts] == texts
    assert any("<!-- bench: " in text for text in texts)


def test_tables_have_a_title_and_a_row_for_everyone() -> None:
    table = Table("t", ("a", "b"), (("1", "2"),))
    assert table.printed().row_count == 1
    assert table.markdown() == "**t**\n\n| a | b |\n| --- | ---: |\n| 1 | 2 |"
    assert str(Verdict.of("x", 3, most=2)) == "x: 3 (at most 2): NO"


def test_another_process_has_memory_of_its_own() -> None:
    assert 0 < apart(peak) < 1000
