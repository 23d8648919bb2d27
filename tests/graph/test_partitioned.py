"""Silos in parts: the same bits as in memory, in bounded memory, and nothing but bits."""

import copy
import io
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from silograph.errors import ArgumentError, EdgeError, GraphError, UniverseError
from silograph.graph import NodeUniverse, PartedSilo, Silo, union
from silograph.graph.bits import PairBits
from silograph.graph.fold import Fold, Folding, Layout
from silograph.graph.partitioned import _WHOLE_ONLY
from silograph.local.drive import progress
from silograph.local.federation import Federation

OPEN = NodeUniverse.open(strip=True, case="lower")
FOLDING = Folding.of(b"what all parties signed", Layout(groups=40, hubs=2, sub=2), ("id 3", "id 4"))
EDGES = [
    (f"Id {u}", f" id {v}")
    for u, v in np.random.default_rng(7).integers(0, 300, (1000, 2)).tolist()
]
WHOLE = Silo.from_edges(OPEN, EDGES)
BITS = WHOLE.fold(FOLDING)


def table(edges: list[tuple[Any, Any]]) -> pa.Table:
    first, second = zip(*edges, strict=True)
    return pa.table({"note": ["x"] * len(edges), "source": first, "target": second})


def edges_of(start: int, stop: int, universe: NodeUniverse = OPEN) -> Silo:
    return Silo.from_edges(universe, EDGES[start:stop])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset as programs write them: files of several formats, in folders, with marks."""
    (tmp_path / "set" / "day=1").mkdir(parents=True)
    pq.write_table(table(EDGES[:450]), tmp_path / "set" / "a.parquet", row_group_size=40)
    pq.write_table(table(EDGES[450:800]), tmp_path / "set" / "day=1" / "b.pq")
    pq.write_table(table(EDGES[:1]).slice(0, 0), tmp_path / "set" / "day=1" / "none.parquet")
    text = "".join(f"{u},{v}\n" for u, v in EDGES[800:])
    (tmp_path / "set" / "day=1" / "c.csv").write_text("source,target\n" + text)
    (tmp_path / "set" / "_SUCCESS").write_text("")
    (tmp_path / "set" / ".hidden").mkdir()
    (tmp_path / "set" / ".hidden" / "x.csv").write_text("not,an,edge\n")
    return tmp_path / "set"


def test_bits_of_one_silo() -> None:
    done: list[int] = []
    assert np.array_equal(WHOLE.fold(FOLDING, done.append), BITS)
    assert done == [1]
    assert 500 < int(np.bitwise_count(BITS).sum()) <= 1000


@pytest.mark.parametrize("size", [1, 7, 250, 1000])
def test_parts_have_the_bits_of_the_whole(size: int) -> None:
    parts = [partial(edges_of, start, start + size) for start in range(0, 1000, size)]
    silo = PartedSilo(OPEN, parts, name="north")
    done: list[int] = []
    assert np.array_equal(silo.fold(FOLDING, done.append), BITS)
    assert np.array_equal(silo.fold(FOLDING), BITS)  # again
    assert done == [1] * len(parts)
    assert not np.array_equal(PartedSilo(OPEN, parts[1:]).fold(FOLDING), BITS)


def test_a_part_of_several_silos_is_read_one_by_one() -> None:
    held: list[int] = []

    def several() -> Any:
        for start in range(0, 1000, 100):
            held.append(start)
            yield edges_of(start, start + 100)

    class Watching:
        """A folding that knows how many silos were made before each is folded."""

        seen: list[int] = []  # noqa: RUF012

        def fold(self, nodes: NodeUniverse, pairs: Any) -> Any:
            self.seen.append(len(held))
            return FOLDING.fold(nodes, pairs)

    assert np.array_equal(PartedSilo(OPEN, [several]).fold(Watching()), BITS)
    assert Watching.seen == [0, *range(1, 11)]


def test_no_parts() -> None:
    silo = PartedSilo(OPEN, [])
    assert not silo.fold(FOLDING).any()
    assert silo.fold(FOLDING).shape == BITS.shape
    assert silo


def test_what_a_silo_in_parts_is() -> None:
    silo = PartedSilo(OPEN, [partial(edges_of, 0, 1000)], name="north")
    assert (silo.universe, silo.name, len(silo.parts)) == (OPEN, "north", 1)
    assert repr(silo) == "<PartedSilo 'north': 1 part, universe: open>"
    assert copy.deepcopy(silo) is silo
    again = pickle.loads(pickle.dumps(silo))  # noqa: S301
    assert np.array_equal(again.fold(FOLDING), BITS)
    for change in (lambda: setattr(silo, "_name", "x"), lambda: delattr(silo, "_name")):
        with pytest.raises(AttributeError, match="cannot be changed"):
            change()
    with pytest.raises(AttributeError, match="has no attribute 'colour'"):
        _ = silo.colour
    for given in ((3, []), (OPEN, [WHOLE])):
        with pytest.raises(ArgumentError):
            PartedSilo(*given)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        PartedSilo(OPEN, [], name=3)  # type: ignore[arg-type]


def test_parts_over_another_universe() -> None:
    other = NodeUniverse.open()
    for part in (lambda: Silo.from_edges(other, [("a", "b")]), lambda: 7, lambda: [7]):
        with pytest.raises(GraphError, match="not a silo over the universe"):
            PartedSilo(OPEN, [part]).fold(FOLDING)  # type: ignore[list-item]


def test_all_but_folding_is_one_error() -> None:
    """Whatever a silo has is either here, too, or is refused by name."""
    public = {name for name in dir(Silo) if not name.startswith("_")}
    made_by = {name for name in public if name.startswith("from_")}
    assert public - made_by - {"universe", "name", "fold"} == _WHOLE_ONLY
    nodes = NodeUniverse(WHOLE.nodes, strip=True, case="lower")
    silo: Any = PartedSilo(nodes, [partial(edges_of, 0, 1000, nodes)])
    held = edges_of(0, 1000, nodes)
    needs: list[Any] = [lambda name=name: getattr(silo, name) for name in sorted(_WHOLE_ONLY)]
    needs += [lambda: len(silo), lambda: union([held, silo]), lambda: PairBits.of(silo)]
    federation = Federation.simulate([silo, held, held])
    needs += [
        lambda: federation.collect(1.0),
        lambda: federation.count("edges", epsilon=1.0, method="baseline"),
    ]
    for need in needs:
        with pytest.raises(GraphError, match="in parts, and can only be folded"):
            need()


@pytest.mark.filterwarnings("ignore::silograph.errors.LedgerWarning")
def test_a_folded_study_with_parts(folder: Path) -> None:
    parts = Silo.from_dataset(OPEN, folder, columns=("source", "target"), rows=100)
    found = Federation.simulate([parts, WHOLE, WHOLE]).collect(30.0, fold=Fold(groups=60))
    assert found.counts.ones == pytest.approx(800, rel=0.3)


# --- Datasets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 64, 100, 10**6])
def test_a_dataset_has_the_bits_of_the_whole(folder: Path, rows: int) -> None:
    columns = ("source", "target")
    silo = Silo.from_dataset(OPEN, folder, columns=columns, rows=rows, name="north")
    assert silo.name == "north"
    assert np.array_equal(silo.fold(FOLDING), BITS)
    again = pickle.loads(pickle.dumps(silo))  # noqa: S301
    assert np.array_equal(again.fold(FOLDING), BITS)


def test_lists_of_files_and_folders(folder: Path) -> None:
    files = [folder / "a.parquet", str(folder / "day=1")]
    assert np.array_equal(Silo.from_dataset(OPEN, files).fold(FOLDING), BITS)
    one = Silo.from_dataset(OPEN, folder / "a.parquet")
    assert np.array_equal(one.fold(FOLDING), edges_of(0, 450).fold(FOLDING))
    assert not np.array_equal(one.fold(FOLDING), BITS)


def test_row_groups_are_read_in_batches(folder: Path) -> None:
    """Small row groups together, large ones in slices; never more rows than were asked for."""
    seen = []
    for rows, parts in ((40, 12), (100, 6), (10**6, 1)):
        silo = Silo.from_dataset(OPEN, folder / "a.parquet", rows=rows)
        assert len(silo.parts) == parts
    for path in (folder / "a.parquet", folder / "day=1" / "b.pq"):
        for part in Silo.from_dataset(OPEN, path, rows=60).parts:
            made: Any = part()
            seen += [held.report.rows for held in made]
    assert sum(seen) == 800
    assert max(seen) <= 60


def test_a_closed_universe(folder: Path) -> None:
    nodes = NodeUniverse(WHOLE.nodes, strip=True, case="lower")
    assert np.array_equal(Silo.from_dataset(nodes, folder).fold(FOLDING), BITS)
    fewer = NodeUniverse(WHOLE.nodes.ids[:-1], strip=True, case="lower")
    with pytest.raises(
        EdgeError, match=r"\.(parquet: row|pq: row|csv:)\D*\d+.* is not in the univ"
    ):
        Silo.from_dataset(fewer, folder).fold(FOLDING)


def test_integers_and_faults_name_their_row(tmp_path: Path) -> None:
    path = tmp_path / "n.parquet"
    numbers = np.arange(200).reshape(100, 2)
    pq.write_table(pa.table({"u": numbers[:, 0], "v": numbers[:, 1]}), path, row_group_size=30)
    universe = NodeUniverse.open()
    expected = Silo.from_edges(universe, numbers).fold(FOLDING)
    assert np.array_equal(Silo.from_dataset(universe, path, rows=7).fold(FOLDING), expected)
    with pytest.raises(EdgeError, match=r"n\.parquet: row 76: id '150' is not in the universe"):
        Silo.from_dataset(NodeUniverse.range(150), path, rows=7).fold(FOLDING)
    pq.write_table(pa.table({"u": [1, 2, None], "v": [2, 3, 4]}), path)
    with pytest.raises(EdgeError, match=r"n\.parquet: row 3: the id is missing"):
        Silo.from_dataset(universe, path, rows=2).fold(FOLDING)


def test_datasets_that_cannot_be_read(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "empty").mkdir()
    for nothing in (tmp_path / "empty", folder / "day=1" / "none.parquet", []):
        with pytest.raises(EdgeError, match="there are no edges in it"):
            Silo.from_dataset(OPEN, nothing)
    with pytest.raises(EdgeError, match=r"absent\.csv: cannot be read"):
        Silo.from_dataset(OPEN, tmp_path / "absent.csv")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(EdgeError, match=r"bad\.parquet: damaged"):
        Silo.from_dataset(OPEN, tmp_path / "bad.parquet")
    pages = bytearray((folder / "a.parquet").read_bytes())
    pages[4 : len(pages) // 2] = bytes(len(pages) // 2 - 4)
    (tmp_path / "cut.parquet").write_bytes(pages)
    with pytest.raises(EdgeError, match=r"cut\.parquet: damaged"):
        Silo.from_dataset(OPEN, tmp_path / "cut.parquet").fold(FOLDING)
    for rows in (0, 2.5, True):
        with pytest.raises(ArgumentError, match="rows is"):
            Silo.from_dataset(OPEN, folder, rows=rows)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="no column 'x'"):
        Silo.from_dataset(OPEN, folder, columns=("x", "y"))
    with pytest.raises(ArgumentError, match="a NodeUniverse is needed first"):
        Silo.from_dataset([1], folder)  # type: ignore[arg-type]


MEASURE = """
import resource, sys
from silograph.graph import NodeUniverse, Silo
from silograph.graph.fold import Folding, Layout
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
silo = Silo.from_dataset(NodeUniverse.open(), sys.argv[1], rows=1 << 14)
silo.fold(Folding.of(b"x", Layout(groups=100)))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.whole
def test_memory_does_not_grow_with_rows(tmp_path: Path) -> None:
    """Not even if the whole file is one row group."""
    peaks = []
    for rows in (50_000, 1_000_000):
        ids = pa.array(np.random.default_rng(1).integers(0, 10**15, 2 * rows)).cast("string")
        path = tmp_path / f"{rows}.parquet"
        columns = {"u": ids[:rows], "v": ids[rows:]}
        pq.write_table(pa.table(columns), path, row_group_size=rows, use_dictionary=False)
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stdout))
    assert peaks[1] < peaks[0] + 30_000  # KiB; the ids of all rows as objects are 130,000


# --- Clusters -------------------------------------------------------------------------------------


def dask_frame(partitions: int) -> Any:
    frames = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(EDGES, columns=["source", "target"]).assign(note=1)
    return frames.from_pandas(frame, npartitions=partitions)


@pytest.mark.parametrize("partitions", [1, 3, 20])
def test_a_dask_frame_has_the_bits_of_the_whole(partitions: int) -> None:
    silo = Silo.from_dask(OPEN, dask_frame(partitions), name="north")
    done: list[int] = []
    assert np.array_equal(silo.fold(FOLDING, done.append), BITS)
    assert sum(done) == len(silo.parts) == partitions
    one_by_one = PartedSilo(OPEN, silo.parts)  # here, without a cluster
    assert np.array_equal(one_by_one.fold(FOLDING), BITS)


def test_faults_name_their_partition() -> None:
    frame = dask_frame(4)
    with pytest.raises(EdgeError, match=r"partition \d: edge \d+: .* is not in the universe"):
        Silo.from_dask(NodeUniverse(["id 1"]), frame).fold(FOLDING)
    with pytest.raises(ArgumentError, match="a dask frame is needed"):
        Silo.from_dask(OPEN, frame.compute())
    with pytest.raises(ArgumentError, match="no column 'x'"):
        Silo.from_dask(OPEN, frame, columns=("x", "y"))
    with pytest.raises(GraphError, match="can only be folded"):
        len(Silo.from_dask(OPEN, frame))


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore")  # of the cluster's own making
def test_two_workers_have_the_bits_of_one_process(folder: Path) -> None:
    distributed = pytest.importorskip("distributed")
    frames = pytest.importorskip("dask.dataframe")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            host="127.0.0.1",
            memory_limit=0,
        ) as cluster,  # fmt: skip
        distributed.Client(cluster) as client,
    ):
        silo = Silo.from_dask(OPEN, dask_frame(16))
        assert np.array_equal(silo.fold(FOLDING), BITS)
        stored = Silo.from_dask(OPEN, frames.read_parquet(folder / "a.parquet"))
        assert np.array_equal(stored.fold(FOLDING), edges_of(0, 450).fold(FOLDING))
        ran = client.run(lambda dask_worker: dask_worker.state.executed_count)
        assert len(ran) == 2
        assert all(count > 2 for count in ran.values()), "one worker did it all"


def test_progress_of_folding(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, as far as the bar knows
    monkeypatch.setenv("TERM", "xterm")
    silo = PartedSilo(OPEN, [partial(edges_of, start, start + 100) for start in range(0, 900, 100)])
    with progress("folding", len(silo.parts), unit="parts", shown=True) as advance:
        silo.fold(FOLDING, advance)
    assert "folding" in shown.getvalue()
    assert "100 %" in shown.getvalue()
    assert "parts/s" in shown.getvalue()


def test_positions_in_a_part_are_its_own() -> None:
    """An open universe has no positions, in parts as in one piece."""
    with pytest.raises(UniverseError):
        PartedSilo(OPEN, [lambda: Silo.from_pairs(OPEN, [[0, 1]])]).fold(FOLDING)
