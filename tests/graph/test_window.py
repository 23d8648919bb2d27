"""Time windows: half-open, the same in every format, and strict about times."""

import gzip
import os
import threading
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph import NodeUniverse, Silo, Window, read_graph
from silograph._core import instant
from silograph.errors import ArgumentError, EdgeError
from silograph.graph import identifiers, reading
from silograph.graph.fold import Folding, Layout

NODES = NodeUniverse.range(6)
DAYS = ["2026-01-31", "2026-02-01", "2026-02-01", "2026-02-28", "2026-03-01"]
FEBRUARY = Window("day", "2026-02-01", "2026-03-01")


def written(path: Path, times: list[Any], header: str = "source,target,day\n") -> Path:
    path.write_text(header + "".join(f"{k},{k + 1},{time}\n" for k, time in enumerate(times)))
    return path


def parquet(path: Path, times: Any) -> Path:
    ends = range(len(times))
    pl.DataFrame({"source": ends, "target": [k + 1 for k in ends], "day": times}).write_parquet(
        path
    )
    return path


def test_a_window_is_half_open(tmp_path: Path) -> None:
    silo = Silo.from_file(NODES, written(tmp_path / "a.csv", DAYS), window=FEBRUARY)
    assert silo.pairs.tolist() == [[1, 2], [2, 3], [3, 4]]
    assert silo.report.outside == 2
    assert silo.report.rows == 3
    assert "2 rows outside the time window" in str(silo.report)
    assert silo.report.ignored == ()
    days = [Window("day", day, f"{day}T23:59:59.999999Z") for day in sorted(set(DAYS))]
    parts = [Silo.from_file(NODES, tmp_path / "a.csv", window=day) for day in days]
    assert sum(map(len, parts)) == 5


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), st.integers(-23 * 60, 23 * 60))
def test_times_are_read_as_python_reads_them(time: datetime, minutes: int) -> None:
    zoned = time.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    exact = (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert instant(zoned.isoformat(), True) == exact
    assert instant(zoned.isoformat(" "), True) == exact
    sign, size = "-" * (exact < 0), abs(exact)
    assert instant(f"{sign}{size // 10**6}.{size % 10**6:06}", False) == exact
    assert instant(time.date().isoformat(), True) == instant(f"{time.date()}T00:00Z", True)


SAME = {
    "dates": [date.fromisoformat(day) for day in DAYS],
    "texts": DAYS,
    "seconds": [int(datetime.fromisoformat(f"{day}T00:00+00:00").timestamp()) for day in DAYS],
    "floats": [datetime.fromisoformat(f"{day}T00:00+00:00").timestamp() + 0.5 for day in DAYS],
    "times": [datetime.fromisoformat(f"{day}T12:00") for day in DAYS],
    "zoned": [datetime.fromisoformat(f"{day}T00:00+00:00") for day in DAYS],
}


@pytest.mark.parametrize("kind", SAME)
@pytest.mark.parametrize("reader", ["pyarrow", "polars"])
def test_parquet_has_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, reader: str
) -> None:
    if reader == "polars":
        monkeypatch.setattr(reading, "find_spec", lambda name: None)
    path = parquet(tmp_path / "a.parquet", SAME[kind])
    silo = Silo.from_file(NODES, path, window=FEBRUARY)
    assert silo.pairs.tolist() == [[1, 2], [2, 3], [3, 4]]
    assert silo.report.outside == 2
    open_one = Silo.from_file(NodeUniverse.open(), path, window=FEBRUARY)
    assert open_one.nodes.ids == ("1", "2", "3", "4")


def test_seconds_and_positions(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [5, 10, 15, 20], header="")
    assert len(Silo.from_file(NODES, path, window=Window(2, 10, 20))) == 2
    assert len(Silo.from_file(NODES, path, window=Window(2, since="10"))) == 3
    assert len(Silo.from_file(NODES, path, window=Window(2, until=10.5))) == 2
    path.write_text("3 0 1\n4 1 2\n")
    assert len(read_graph(path, format="whitespace", window=Window(0, until=4))) == 1
    assert NodeUniverse.from_edge_files(path, format="whitespace", window=Window(0, 4)).ids == (
        "1",
        "2",
    )
    # What is outside is not looked up, but its row must be whole.
    path.write_text("a,b,t\n0,1,5\n0,nobody,50\n")
    assert len(Silo.from_file(NODES, path, format="csv", window=Window("t", until=9))) == 1


def test_a_column_of_dates_tells_a_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ada,bob,2026-01-01\nbob,eve,2026-01-02\neve,ada,2026-01-03\n")
    assert len(read_graph(path, window=Window(2, since="2026-01-01"))) == 3
    path.write_text("debtor,creditor,when\nada,bob,2026-01-01\nbob,eve,2026-01-02\n")
    graph = read_graph(path, window=Window("when", since="2026-01-01"))
    assert graph.report.columns == ("debtor", "creditor")
    assert len(graph) == 2


@pytest.mark.parametrize("bad", ["", "yesterday", "31.01.2026", "2026-02-30", "1769817600000"])
def test_a_time_that_cannot_be_read(tmp_path: Path, bad: str) -> None:
    times = [*DAYS[:2], bad, *DAYS[2:]]
    with pytest.raises(EdgeError, match=r"a\.csv:4: the time .* is neither an ISO date"):
        Silo.from_file(NODES, written(tmp_path / "a.csv", times), window=FEBRUARY)
    with pytest.raises(EdgeError, match=r"a\.parquet: row 3: the time .* is neither an ISO date"):
        Silo.from_file(NODES, parquet(tmp_path / "a.parquet", times), window=FEBRUARY)


def test_missing_times_and_dates_in_disguise(tmp_path: Path) -> None:
    for times in ([None, date(2026, 2, 1)], [None, 1769904000], [20260201, 20260202]):
        with pytest.raises(EdgeError, match="row 1: the time"):
            Silo.from_file(NODES, parquet(tmp_path / "a.parquet", times), window=FEBRUARY)
    # A number such as 20260201 would be a day of 1970: beside dates it is an error.
    path = written(tmp_path / "a.csv", [20260201, 20260301])
    with pytest.raises(EdgeError, match=r"a\.csv:2: the time '20260201'"):
        Silo.from_file(NODES, path, window=Window("day", until="2026-03-01"))
    assert len(Silo.from_file(NODES, path, window=Window("day", until=20260301))) == 1


def test_a_fault_in_a_window_names_its_own_row(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame = {"source": [0, 9, 0, 9], "target": [1] * 4, "t": [500, 501, 600, 601]}
    pl.DataFrame(frame).write_parquet(path)
    with pytest.raises(EdgeError, match=r"row 4: id '9'"):
        Silo.from_file(NODES, path, window=Window("t", 550))


def test_datasets_in_parts(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", SAME["dates"])
    written(tmp_path / "b.csv", DAYS)
    nodes = NodeUniverse.open()
    folding = Folding.of(b"seed", Layout(groups=4))
    parted = Silo.from_dataset(nodes, tmp_path, rows=2, window=FEBRUARY)
    whole = Silo.from_file(nodes, tmp_path / "b.csv", window=FEBRUARY)
    assert np.array_equal(parted.fold(folding), whole.fold(folding))


def test_windows_that_are_none(tmp_path: Path) -> None:
    for arguments, words in (
        (("day",), "needs since, until or both"),
        (("day", "2026-02-01", "2026-02-01"), "not after its start"),
        (("day", "soon"), "'soon', which is neither"),
        (("", 1), "the time column is ''"),
        ((-1, 1), "the time column is '-1'"),
        (("day", True), "'True', which is neither"),
    ):
        with pytest.raises(ArgumentError, match=words):
            Window(*arguments)
    path = written(tmp_path / "a.csv", DAYS)
    for window, words in (
        (Window("week", 1), "no column 'week'"),
        (Window(7, 1), "no column 7"),
        (Window("target", 1), "an end of the edges"),
        (Window(0, 1), "an end of the edges"),
        ("day", "a Window is needed"),
    ):
        with pytest.raises(ArgumentError, match=words):
            Silo.from_file(NODES, path, window=window, columns=("source", "target"))  # type: ignore[arg-type]
    with pytest.raises(EdgeError, match="all 5 rows are outside the time window"):
        Silo.from_file(NODES, path, window=Window("day", "2027-01-01"))


# --- The most text that is read -------------------------------------------------------------------


def test_a_bomb_and_a_pipe_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identifiers, "memory_here", lambda: 1 << 20)
    bomb = tmp_path / "bomb.csv.gz"
    bomb.write_bytes(gzip.compress(b"0,1\n" * (1 << 18)))
    with pytest.raises(EdgeError, match=r"bomb\.csv\.gz: has more than 0\.0 GB of text, half"):
        read_graph(bomb)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def flood() -> None:
        try:
            with pipe.open("wb", buffering=0) as file:
                while True:
                    file.write(b"0 1\n" * 4096)
        except BrokenPipeError:
            pass  # nobody reads any more

    writer = threading.Thread(target=flood, daemon=True)
    writer.start()
    with pytest.raises(EdgeError, match="or does not end"):
        read_graph(pipe)
    writer.join(10)
    assert not writer.is_alive()


def test_the_memory_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = identifiers.memory_here()
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(identifiers, "_CONTAINER", limit)
    assert identifiers.memory_here() >= there
    limit.write_text("4096\n")
    assert identifiers.memory_here() == 4096
    limit.write_text("max\n")
    assert identifiers.memory_here() >= there
