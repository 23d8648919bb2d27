"""Silos: what goes in from every library comes out as the same pairs."""

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from silograph._core import IdTable
from silograph.errors import ArgumentError, EdgeError, UniverseError
from silograph.graph import NodeUniverse, Silo, clustered_power_law, split, union
from silograph.graph.bits import PairBits
from silograph.local.federation import Federation

IDS = ["10", "7", "ada", "bob", "eve"]
NAMED = NodeUniverse(IDS)
NUMBERED = NodeUniverse([30, 10, 20, 5])


def test_pairs_are_canonical() -> None:
    silo = Silo.from_edges(NAMED, [("eve", 7), (7, "eve"), ("ada", "ada"), (10, "bob")], name="A")
    assert silo.pairs.tolist() == [[0, 3], [1, 4]]
    assert silo.pairs.dtype == np.uint32
    assert silo.pairs.flags["C_CONTIGUOUS"]
    assert (silo.report.rows, silo.report.repeats, silo.report.self_loops) == (4, 1, 1)
    assert (len(silo), silo.name, silo.universe) == (2, "A", NAMED)
    assert silo.degrees().tolist() == [1, 1, 0, 1, 1]
    assert silo.degrees().dtype == np.int64
    assert repr(silo) == "<Silo 'A': 2 edges over 5 nodes>"


def test_immutable() -> None:
    silo = Silo.from_edges(NAMED, [("eve", "bob")])
    with pytest.raises(ValueError, match="read-only"):
        silo.pairs[0, 0] = 0
    with pytest.raises(ValueError, match="WRITEABLE"):
        silo.pairs.setflags(write=True)
    with pytest.raises(AttributeError):
        silo._name = "x"
    with pytest.raises(AttributeError):
        del silo._name
    with pytest.raises(ArgumentError):
        Silo()
    assert copy.deepcopy(silo) is silo
    again = pickle.loads(pickle.dumps(silo))  # noqa: S301
    assert again == silo
    assert not again.pairs.flags.writeable
    assert hash(again) == hash(silo)


def test_equality_is_of_universe_and_pairs() -> None:
    silo = Silo.from_edges(NAMED, [("eve", "bob")], name="x")
    assert silo == Silo.from_edges(NodeUniverse(IDS), [("bob", "eve")], name="y")
    assert silo != Silo.from_edges(NAMED, [("eve", "ada")])
    assert silo != Silo.from_edges(NodeUniverse(IDS, strip=True), [("eve", "bob")])
    assert silo != "silo"


@pytest.mark.parametrize(
    "source",
    [
        np.array([[30, 5], [5, 30], [20, 10]]),
        np.array([[30, 5], [20, 10]], dtype=np.uint8),
        np.array([[30, 5], [20, 10]], dtype=np.int16, order="F"),
        np.array([["30", "5"], ["20", "10"]]),
        np.array([[30, "5"], [20, 10]], dtype=object),
        [(30, 5), (20, 10)],
        [[30, "5"], ("20", 10)],
        [np.array([30, 5]), (np.int32(20), np.uint64(10))],
        {(30, 5), (20, 10)},
        ((u, v) for u, v in [(30, 5), (20, 10)]),
    ],
)
def test_from_edges_takes_any_pairs(source: Any) -> None:
    assert Silo.from_edges(NUMBERED, source).pairs.tolist() == [[0, 3], [1, 2]]


@pytest.mark.parametrize("source", [[], (), np.empty((0, 2)), np.empty(0), iter([])])
def test_an_empty_silo_is_allowed(source: Any) -> None:
    silo = Silo.from_edges(NAMED, source)
    assert len(silo) == 0
    assert silo
    assert silo.pairs.shape == (0, 2)
    assert silo.degrees().tolist() == [0] * 5
    assert silo.triangles() == 0


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ([(30, 5), (30, 6)], EdgeError, "edge 1: id '6' is not in the universe of 4 nodes"),
        (np.array([[30, 6]]), EdgeError, "edge 0: id '6' is not in the universe"),
        (np.array([[30, -5]]), EdgeError, "edge 0: id '-5' is not in the universe"),
        ([(30, 10**30)], EdgeError, "edge 0: id '1000000000000000000…' .*|is not in the universe"),
        ([(30, "05")], EdgeError, "edge 0: id '05' .*; '5' is, and ids are compared as text"),
        ([(30, 5.0)], EdgeError, "edge 0: 5.0 is a float"),
        (np.array([[30.0, 5.0]]), EdgeError, "edge 0: 30.0 is a float"),
        ([(30, None)], EdgeError, "edge 0: the id is missing"),
        ([(True, 5)], EdgeError, "edge 0: 'True' is of type bool"),
        ([(30, 5), (30, 5, 1)], EdgeError, "edge 1: is not a pair of two ids"),
        (["ab"], EdgeError, "edge 0: is not a pair of two ids"),
        (np.array([[1, 2, 3]]), EdgeError, r"shape \(1, 3\); \(k, 2\) is needed"),
        (np.array([1, 2]), EdgeError, r"shape \(2,\)"),
        ("30 5", ArgumentError, "source is of type str"),
        (5, ArgumentError, "source is of type int"),
    ],
)
def test_bad_edges(source: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Silo.from_edges(NUMBERED, source)


def test_from_pairs() -> None:
    assert Silo.from_pairs(NAMED, [[4, 0], [0, 4], [1, 1]]).pairs.tolist() == [[0, 4]]
    assert len(Silo.from_pairs(NAMED, [])) == 0
    for source, message in (
        ([[0, 5]], "pair 0: position 5 is not in the universe of 5 nodes"),
        ([[0, 1], [-1, 2]], "pair 1: position -1 is not"),
        ([[0.0, 1.0]], "positions are integers"),
        ([["a", "b"]], "positions are integers"),
        ([[1, 2, 3]], "is needed"),
    ):
        with pytest.raises(EdgeError, match=message):
            Silo.from_pairs(NAMED, source)
    with pytest.raises(EdgeError, match=str(2**32)):
        Silo.from_pairs(NAMED, np.array([[0, 2**32]]))
    with pytest.raises(ArgumentError, match="a NodeUniverse is needed"):
        Silo.from_pairs(["a"], [])  # type: ignore[arg-type]


edges = st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(IDS)), max_size=12)


@given(edges)
def test_every_library_gives_the_same_silo(rows: list[tuple[str, str]]) -> None:
    silo = Silo.from_edges(NAMED, rows)
    expected = {tuple(sorted((IDS.index(a), IDS.index(b)))) for a, b in rows if a != b}
    assert set(map(tuple, silo.pairs.tolist())) == expected

    columns = {"w": [1.5] * len(rows), "src": [a for a, _ in rows], "dst": [b for _, b in rows]}
    places = np.array([[IDS.index(a), IDS.index(b)] for a, b in rows], dtype=int).reshape(-1, 2)
    matrix = np.zeros((5, 5))
    matrix[places[:, 0], places[:, 1]] = 0.5
    named = igraph.Graph(places.tolist(), directed=True)
    named.add_vertices(5 - named.vcount())
    named.vs["name"] = IDS
    labelled = named.copy()
    del labelled.vs["name"]
    labelled.vs["label"] = IDS
    others = [
        Silo.from_pairs(NAMED, places),
        Silo.from_adjacency(NAMED, matrix),
        Silo.from_adjacency(NAMED, matrix > 0),
        Silo.from_scipy(NAMED, scipy.sparse.csr_matrix(matrix)),
        Silo.from_scipy(NAMED, scipy.sparse.coo_array(matrix)),
        Silo.from_networkx(NAMED, nx.MultiDiGraph(rows)),
        Silo.from_networkx(NAMED, nx.Graph(rows)),
        Silo.from_igraph(NAMED, named),
        Silo.from_igraph(NAMED, labelled, attribute="label"),
        Silo.from_pandas(NAMED, pd.DataFrame(columns)),
        Silo.from_pandas(NAMED, pd.DataFrame(columns), columns=("dst", "src")),
        Silo.from_polars(NAMED, pl.DataFrame(columns, schema_overrides={"src": pl.Categorical})),
        Silo.from_polars(NAMED, pl.DataFrame(columns), columns=(2, 1)),
        union([silo, Silo.from_edges(NAMED, [])]),
    ]
    assert all(other == silo for other in others)


def test_integer_columns_and_indices() -> None:
    frame = {"u": [30, 5], "v": [5, 20]}
    expected = [[0, 3], [2, 3]]
    assert Silo.from_pandas(NUMBERED, pd.DataFrame(frame)).pairs.tolist() == expected
    assert Silo.from_polars(NUMBERED, pl.DataFrame(frame)).pairs.tolist() == expected
    nullable = pd.DataFrame(frame).astype("Int64")
    assert Silo.from_pandas(NUMBERED, nullable).pairs.tolist() == expected
    graph = igraph.Graph([(0, 1), (1, 2)])
    assert Silo.from_igraph(NodeUniverse.range(3), graph).pairs.tolist() == [[0, 1], [1, 2]]
    assert Silo.from_pandas(NUMBERED, pd.DataFrame(frame)).report.columns == ("u", "v")


def test_explicit_zeros_are_no_edges() -> None:
    matrix = scipy.sparse.coo_array(([0, 1], ([0, 1], [1, 2])), shape=(3, 3))
    assert Silo.from_scipy(NodeUniverse.range(3), matrix).pairs.tolist() == [[1, 2]]


def test_bad_objects() -> None:
    nodes = NodeUniverse.range(3)
    faults: list[tuple[Any, Any, dict[str, Any], str]] = [
        (Silo.from_scipy, scipy.sparse.eye(2), {}, r"shape \(2, 2\); the universe needs \(3, 3\)"),
        (Silo.from_adjacency, np.zeros((3, 2)), {}, r"shape \(3, 2\)"),
        (Silo.from_adjacency, np.full((3, 3), np.nan), {}, "NaN"),
        (Silo.from_adjacency, np.full((3, 3), "x"), {}, "numbers are needed"),
        (Silo.from_networkx, nx.Graph([((0, 0), (0, 1))]), {}, "edge 0: .* is of type tuple"),
        (Silo.from_networkx, nx.Graph([(0, 3)]), {}, "edge 0: id '3' is not in"),
        (Silo.from_pandas, pd.DataFrame({"u": [0, None], "v": [1, 2]}), {}, "is a float|missing"),
        (Silo.from_pandas, pd.DataFrame({"u": ["0", None], "v": ["1", "2"]}), {}, "edge 1: the id"),
        (Silo.from_pandas, pd.DataFrame({"a": [0], "b": [1], "c": [2]}), {}, "pass columns="),
        (Silo.from_polars, pl.DataFrame({"u": [0, None], "v": [1, 2]}), {}, "edge 1: the id is"),
        (Silo.from_polars, pl.DataFrame({"a": [0], "b": [1], "c": [2]}), {}, "pass columns="),
    ]
    for make, source, options, message in faults:
        with pytest.raises(EdgeError, match=message):
            make(nodes, source, **options)
    wrong: list[tuple[Any, Any, dict[str, Any]]] = [
        (Silo.from_scipy, np.zeros((3, 3)), {}),
        (Silo.from_networkx, [(0, 1)], {}),
        (Silo.from_igraph, nx.Graph(), {}),
        (Silo.from_igraph, igraph.Graph([(0, 1)]), {"attribute": "label"}),
        (Silo.from_pandas, pl.DataFrame({"u": [0], "v": [1]}), {}),
        (Silo.from_polars, pd.DataFrame({"u": [0], "v": [1]}), {}),
        (Silo.from_pandas, pd.DataFrame({"u": [0], "v": [1]}), {"columns": ("u", "w")}),
    ]
    for make, source, options in wrong:
        with pytest.raises(ArgumentError):
            make(nodes, source, **options)


def test_union() -> None:
    a = Silo.from_edges(NAMED, [("eve", "bob"), ("ada", "bob")])
    b = Silo.from_edges(NAMED, [("bob", "eve"), (7, 10)])
    both = union([a, b], "both")
    assert both.name == "both"
    assert both.pairs.tolist() == [[0, 1], [2, 3], [3, 4]]
    with pytest.raises(UniverseError, match="silo 1 has another universe"):
        union([a, Silo.from_edges(NUMBERED, [])])
    for nothing in ([], [1]):
        with pytest.raises(ArgumentError):
            union(nothing)  # type: ignore[arg-type]


@given(st.integers(3, 60), st.integers(1, 8), st.integers(0, 5))
def test_triangles_like_networkx(n: int, each: int, seed: int) -> None:
    graph = clustered_power_law(n, min(each, n - 1), 0.7, seed)
    other = nx.Graph(graph.pairs.tolist())
    assert graph.triangles() == sum(nx.triangles(other).values()) // 3


# --- Open universes -------------------------------------------------------------------------------

OPEN = NodeUniverse.open(strip=True, case="lower")
ROWS = [("Eve", "7"), ("7", " eve"), ("ADA", "ada"), ("10", "Bob "), ("eve", "bob")]


def open_silos(folder: Path) -> dict[str, Silo]:
    """The same edges by every road that carries ids."""
    frame = pd.DataFrame(ROWS, columns=["source", "target"])
    plain = nx.Graph([(u.strip().lower(), v.strip().lower()) for u, v in ROWS])
    numbered = igraph.Graph.TupleList(ROWS)
    (folder / "a.csv").write_text("source,target\n" + "".join(f"{u},{v}\n" for u, v in ROWS))
    frame.to_parquet(folder / "a.parquet")
    return {
        "edges": Silo.from_edges(OPEN, ROWS),
        "array": Silo.from_edges(OPEN, np.array(ROWS)),
        "csv": Silo.from_file(OPEN, folder / "a.csv"),
        "parquet": Silo.from_file(OPEN, folder / "a.parquet"),
        "pandas": Silo.from_pandas(OPEN, frame),
        "polars": Silo.from_polars(OPEN, pl.DataFrame(ROWS, schema=["a", "b"], orient="row")),
        "networkx": Silo.from_networkx(OPEN, plain),
        "igraph": Silo.from_igraph(OPEN, numbered),
    }


def test_an_open_universe_by_every_road(tmp_path: Path) -> None:
    silos = open_silos(tmp_path)
    for road, silo in silos.items():
        assert silo == silos["edges"], road
        assert hash(silo) == hash(silos["edges"])
        assert silo.universe is OPEN
        # "ada" occurs in a self-loop alone, which is no edge.
        assert silo.nodes == NodeUniverse(["10", "7", "bob", "eve"], strip=True, case="lower")
        assert silo.pairs.tolist() == [[0, 2], [1, 3], [2, 3]]
        assert silo.degrees().tolist() == [1, 1, 2, 2]
        assert silo.triangles() == 0
        assert len(silo) == 3
    assert silos["csv"].report.self_loops == 1
    assert repr(silos["csv"]) == "<Silo: 3 edges over 4 nodes of an open universe>"


def test_exports_over_an_open_universe(tmp_path: Path) -> None:
    silo = open_silos(tmp_path)["edges"]
    assert silo.to_edges().tolist() == [["10", "bob"], ["7", "eve"], ["bob", "eve"]]
    assert Silo.from_pandas(OPEN, silo.to_pandas()) == silo
    assert Silo.from_polars(OPEN, silo.to_polars()) == silo
    assert Silo.from_networkx(OPEN, silo.to_networkx()) == silo
    assert Silo.from_igraph(OPEN, silo.to_igraph()) == silo
    assert silo.to_scipy().shape == (4, 4)
    for name in ("out.csv", "out.tsv", "out.parquet"):
        silo.to_file(tmp_path / name)
        assert Silo.from_file(OPEN, tmp_path / name) == silo
    again = pickle.loads(pickle.dumps(silo))  # noqa: S301
    assert again == silo
    assert again.universe.is_open
    assert copy.deepcopy(silo) is silo


def test_equality_over_open_universes() -> None:
    one, other = (Silo.from_edges(NodeUniverse.open(), [pair]) for pair in [("a", "b"), ("a", "c")])
    assert np.array_equal(one.pairs, other.pairs)
    assert one != other  # the same positions of other nodes
    assert one != Silo.from_edges(NodeUniverse.open(strip=True), [("a", "b")])
    assert one != Silo.from_edges(one.nodes, [("a", "b")])
    assert len(Silo.from_edges(NodeUniverse.open(), []).nodes) == 0


@pytest.mark.parametrize("last", [11, 10**18 - 1, 10**18, 10**19])
def test_numbers_over_an_open_universe(last: int) -> None:
    silo = Silo.from_edges(NodeUniverse.open(), np.array([[10, 9], [9, last]], dtype=np.uint64))
    assert silo.nodes.ids == ("9", "10", str(last))
    assert silo == Silo.from_edges(NodeUniverse.open(), [("9", str(last)), (10, 9)])
    assert Silo.from_edges(NodeUniverse.open(), [(-3, 9)]).nodes.ids == ("-3", "9")


@pytest.mark.parametrize("numbers", [[2, 1], [1, 1], [1, 10**18]])
def test_a_table_of_numbers_ascends(numbers: list[int]) -> None:
    with pytest.raises(ValueError, match="ascend"):
        IdTable.from_ints(np.array(numbers, dtype=np.uint64), False, None)


def test_union_and_split_over_an_open_universe() -> None:
    universe = NodeUniverse.open()
    silos = [
        Silo.from_edges(universe, pairs)
        for pairs in ([("c", "b")], [("a", "c"), ("b", "c")], [("d", "a")])
    ]
    assert union(silos) == Silo.from_edges(universe, [("a", "c"), ("a", "d"), ("b", "c")])
    whole = Silo.from_edges(universe, clustered_power_law(60, seed=1).to_edges())
    parts = split(whole, 3, rate=0.2)
    assert all(len(part.nodes) < len(whole.nodes) for part in parts)
    held = {tuple(edge) for edge in whole.to_edges().tolist()}
    for part in parts:
        assert {tuple(edge) for edge in part.to_edges().tolist()} <= held
        assert part == Silo.from_edges(universe, part.to_edges())


def test_positions_need_a_list() -> None:
    universe = NodeUniverse.open()
    for make, source in [
        (Silo.from_pairs, [[0, 1]]),
        (Silo.from_adjacency, [[0, 1], [1, 0]]),
        (Silo.from_scipy, scipy.sparse.eye_array(2)),
    ]:
        with pytest.raises(UniverseError, match="an open universe has no positions"):
            make(universe, source)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "b"), (" a", "c")], "edge 1: id ' a' begins or ends with white space"),
        ([("a", "")], "edge 0: an empty id"),
        ([("a", "b\n")], "edge 0: an id with a line break"),
        ([("a", None)], "edge 0: the id is missing"),
        ([("a", 1.5)], "edge 0: 1.5 is a float"),
    ],
)
def test_what_no_open_universe_takes(edges: list[tuple[Any, Any]], message: str) -> None:
    with pytest.raises(EdgeError, match=re.escape(message)):
        Silo.from_edges(NodeUniverse.open(), edges)


def test_methods_on_pairs_need_a_list() -> None:
    silos = [Silo.from_edges(NodeUniverse.open(), [(0, number)]) for number in (1, 2, 3, 4)]
    with pytest.raises(UniverseError, match="no list of nodes"):
        PairBits.of(silos[0])
    federation = Federation.simulate(silos)
    assert repr(federation) == "Federation(4 silos, open)"
    for method in ("auto", "feat", "baseline"):
        with pytest.raises(UniverseError, match="no list of nodes"):
            federation.count("triangles", epsilon=1.0, method=method)
