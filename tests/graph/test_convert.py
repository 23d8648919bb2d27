"""Round trips: a silo out to every library and file, and back the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import pandas as pd
import polars as pl
import pyarrow.parquet
import pytest
import scipy.sparse

from silograph import Channel, NodeUniverse, Release, Silo, clustered_power_law, errors
from silograph.graph import reading

ODD = NodeUniverse(
    ["source", "a,b", 'say "hi"', "#1", "Zürich", "007", "7", "名前", "target", "alone", "x y"]
)
ODD_EDGES = [
    ("source", "a,b"), ("a,b", 'say "hi"'), ("#1", "Zürich"), ("007", "7"), ("名前", "source"),
    ("target", "source"), ("x y", "#1"),
]  # fmt: skip

SILOS = {
    "numbers": clustered_power_law(50, edges_per_node=3, seed=1),
    "odd names": Silo.from_edges(ODD, ODD_EDGES),
    "one edge": Silo.from_edges(NodeUniverse(["a", "b", "c"]), [("c", "a")]),
    "no edges": Silo.from_edges(NodeUniverse(["a", "b", "c"]), []),
}

TRIPS: dict[str, tuple[type, Callable[[Silo], Any], Callable[[NodeUniverse, Any], Silo]]] = {
    "networkx": (nx.Graph, Silo.to_networkx, Silo.from_networkx),
    "igraph": (igraph.Graph, Silo.to_igraph, Silo.from_igraph),
    "pandas": (pd.DataFrame, Silo.to_pandas, Silo.from_pandas),
    "polars": (pl.DataFrame, Silo.to_polars, Silo.from_polars),
    "scipy": (scipy.sparse.csr_array, Silo.to_scipy, Silo.from_scipy),
    "edges": (object, Silo.to_edges, Silo.from_edges),
}


@pytest.fixture(params=SILOS.values(), ids=list(SILOS))
def silo(request: pytest.FixtureRequest) -> Silo:
    found: Silo = request.param
    return found


@pytest.mark.parametrize("name", TRIPS)
def test_out_and_back(name: str, silo: Silo) -> None:
    kind, out, back = TRIPS[name]
    made = out(silo)
    assert isinstance(made, kind)
    assert back(silo.universe, made) == silo


def test_other_libraries_agree(silo: Silo) -> None:
    """What they count is what the silo counts; nodes without edges are there."""
    degrees = silo.degrees().tolist()
    graph, other = silo.to_networkx(), silo.to_igraph()
    assert [graph.degree(id_) for id_ in silo.universe] == degrees
    assert other.degree() == degrees
    assert other.vs["name"] == list(silo.universe)
    assert silo.to_scipy().sum(axis=0).tolist() == degrees
    assert sum(nx.triangles(graph).values()) // 3 == silo.triangles()
    assert len(silo.to_pandas()) == len(silo.to_polars()) == len(silo)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".CSV"])
def test_files(suffix: str, silo: Silo, tmp_path: Path) -> None:
    path = tmp_path / f"edges{suffix}"
    silo.to_file(path)
    assert list(tmp_path.iterdir()) == [path]
    if len(silo):
        assert Silo.from_file(silo.universe, path) == silo
    else:
        with pytest.raises(errors.EdgeError, match=r"no edges|only a header"):
            Silo.from_file(silo.universe, path)


def test_parquet_of_every_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silo = SILOS["odd names"]
    silo.to_pandas().to_parquet(tmp_path / "pandas.parquet")
    silo.to_polars().write_parquet(tmp_path / "polars.parquet")
    silo.to_file(tmp_path / "own.parquet")
    for name in ("pandas", "polars", "own"):
        assert Silo.from_file(silo.universe, tmp_path / f"{name}.parquet") == silo
    assert pl.read_parquet(tmp_path / "own.parquet").equals(silo.to_polars())
    assert pyarrow.parquet.read_table(tmp_path / "own.parquet").num_rows == len(silo)
    monkeypatch.setattr(reading, "find_spec", lambda _: None)  # without pyarrow
    assert Silo.from_file(silo.universe, tmp_path / "own.parquet") == silo


def test_a_release_out_and_back() -> None:
    """The raw noisy graph of a release, as Silo reads it again."""
    silo = SILOS["numbers"]
    release = Release.draw(silo, Channel.symmetric(1.0), seed=3)
    noisy = Silo.from_pairs(silo.universe, release.graph.pairs())
    with pytest.warns(errors.CalibrationWarning):
        assert Silo.from_networkx(silo.universe, release.to_networkx()) == noisy
        assert Silo.from_scipy(silo.universe, release.to_scipy()) == noisy
        assert Silo.from_edges(silo.universe, release.to_edges()) == noisy


def test_an_unknown_ending_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(errors.ArgumentError, match=r"end in \.csv"):
        SILOS["numbers"].to_file(tmp_path / "edges.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_fails_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("1,2\n")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("silograph.whole_files.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        SILOS["numbers"].to_file(path)
    assert path.read_text() == "1,2\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_node_list_is_its_own_whatever_its_name(tmp_path: Path) -> None:
    for name in ("nodes.csv", "nodes.tsv", "nodes", "nodes.txt"):
        ODD.save(tmp_path / name)
        assert NodeUniverse.from_file(tmp_path / name) == ODD
    text = (tmp_path / "nodes.csv").read_text().replace("alone", "Alone")
    (tmp_path / "nodes.csv").write_text(text)
    with pytest.raises(errors.UniverseError, match="damaged"):
        NodeUniverse.from_file(tmp_path / "nodes.csv")
