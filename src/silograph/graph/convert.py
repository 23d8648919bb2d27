"""Edges from and to the objects and files of other libraries."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from silograph.errors import ArgumentError, EdgeError
from silograph.extras import library
from silograph.graph.identifiers import plain_integers
from silograph.graph.reading import Choice, Columns, check_columns, choose_named, polars_values
from silograph.whole_files import written_whole

__all__ = [
    "COLUMNS",
    "adjacency",
    "edges",
    "to_file",
    "to_igraph",
    "to_networkx",
    "to_pandas",
    "to_polars",
    "to_scipy",
]


# --- Edges from objects of other libraries, which are imported only when they are used ------------
Ends = tuple[Iterable[object], Iterable[object]]
Places = npt.NDArray[np.int64]


def _expect(source: object, kinds: tuple[type, ...], words: str) -> None:
    if not isinstance(source, kinds):
        raise ArgumentError(f"source is of type {type(source).__name__}; {words} is needed")


def array_ends(source: object) -> Ends:
    """The two columns of a (k, 2) array, or of any sequence of pairs."""
    if isinstance(source, np.ndarray):
        if source.size == 0 and source.ndim <= 2:
            return (), ()
        if source.ndim != 2 or source.shape[1] != 2:
            raise EdgeError(f"edges have the shape {source.shape}; (k, 2) is needed")
        return source[:, 0], source[:, 1]
    if isinstance(source, (str, bytes)) or not isinstance(source, Iterable):
        kind = type(source).__name__
        raise ArgumentError(f"source is of type {kind}; a list of (u, v) is needed")
    first: list[object] = []
    second: list[object] = []
    for number, pair in enumerate(source):
        if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
            raise EdgeError(f"edge {number}: is not a pair of two ids")
        first.append(pair[0])
        second.append(pair[1])
    # Only lists of integers become arrays: numpy would change anything else.
    if {type(id_) for id_ in first} | {type(id_) for id_ in second} <= {int}:
        try:
            return np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)
        except OverflowError:
            return first, second
    return first, second


def position_ends(source: object, n: int) -> tuple[npt.NDArray[np.uint32], ...]:
    """Two columns of positions, each below n."""
    array = np.asarray(source)
    if array.size == 0:
        array = np.empty((0, 2), dtype=np.uint32)
    if array.ndim != 2 or array.shape[1] != 2:
        raise EdgeError(f"pairs have the shape {array.shape}; (k, 2) is needed")
    if array.dtype.kind not in "iu":
        raise EdgeError(f"pairs are of type {array.dtype}; positions are integers")
    outside = (array >= n) if plain_integers(array) is not None else (array < 0) | (array >= n)
    if outside.any():
        number = int(outside.any(axis=1).argmax())
        position = int(array[number][outside[number]][0])
        raise EdgeError(f"pair {number}: position {position} is not in the universe of {n:,} nodes")
    return tuple(np.ascontiguousarray(array[:, end], dtype=np.uint32) for end in (0, 1))


def scipy_ends(source: Any, n: int) -> Places:
    """The positions of the nonzero entries of a sparse matrix."""
    sparse = library("scipy.sparse", "sparse matrices")
    if not sparse.issparse(source):
        raise ArgumentError(f"source is of type {type(source).__name__}; a sparse matrix is needed")
    _square(source.shape, n)
    entries = source.tocoo()
    kept = entries.data != 0
    return np.stack([entries.row[kept], entries.col[kept]], axis=1).astype(np.int64)


def matrix_ends(source: object, n: int) -> Places:
    """The positions of the nonzero entries of a dense matrix."""
    matrix = np.asarray(source)
    if matrix.dtype.kind not in "biuf":
        raise EdgeError(f"the adjacency matrix is of type {matrix.dtype}; numbers are needed")
    if matrix.dtype.kind == "f" and np.isnan(matrix).any():
        raise EdgeError("the adjacency matrix has NaN in it")
    _square(matrix.shape, n)
    return np.argwhere(matrix != 0).astype(np.int64)


def _square(shape: tuple[int, ...], n: int) -> None:
    if tuple(shape) != (n, n):
        raise EdgeError(f"the matrix has the shape {tuple(shape)}; the universe needs ({n}, {n})")


def pandas_ends(source: Any, columns: Columns) -> tuple[Ends, Choice]:
    """Two columns of a pandas frame."""
    _expect(source, (library("pandas", "pandas frames").DataFrame,), "a pandas.DataFrame")
    choice = choose_named("frame", [str(name) for name in source.columns], check_columns(columns))
    values = []
    for place in (choice.first, choice.second):
        series = source.iloc[:, place]
        plain = isinstance(series.dtype, np.dtype) and series.dtype.kind in "iu"
        values.append(series.to_numpy() if plain else series.tolist())
    return (values[0], values[1]), choice


def polars_ends(source: Any, columns: Columns) -> tuple[Ends, Choice]:
    """Two columns of a polars frame."""
    _expect(source, (library("polars", "polars frames").DataFrame,), "a polars.DataFrame")
    choice = choose_named("frame", source.columns, check_columns(columns))
    first, second = (source.to_series(place) for place in (choice.first, choice.second))
    return (polars_values(first), polars_values(second)), choice


def networkx_ends(source: Any) -> Ends:
    """The ends of the edges of a networkx graph of any kind; its nodes are ids."""
    _expect(source, (library("networkx", "networkx graphs").Graph,), "a networkx graph")
    edges = list(source.edges())
    return array_ends([(edge[0], edge[1]) for edge in edges])


def igraph_ends(source: Any, attribute: str | None) -> Ends:
    """The ends of the edges of an igraph graph; ids are a vertex attribute, or else the indices."""
    _expect(source, (library("igraph", "igraph graphs").Graph,), "an igraph.Graph")
    known = source.vs.attributes()
    if attribute is not None and attribute not in known:
        raise ArgumentError(f"no vertex attribute {attribute!r}; there are {known}")
    edges = source.get_edgelist()
    name = attribute or ("name" if "name" in known else None)
    if name is None:
        return array_ends(edges)
    ids = source.vs[name]
    return [ids[u] for u, _ in edges], [ids[v] for _, v in edges]


# --- Exports: ids and pairs as other libraries' objects and as files ------------------------------

Ids = Sequence[str]
Pairs = npt.NDArray[np.uint32]
#: The names of the two columns that are written.
COLUMNS = ("source", "target")


def edges(ids: Ids, pairs: Pairs) -> np.ndarray[Any, Any]:
    """A (k, 2) array of ids as text."""
    if not len(pairs):
        return np.empty((0, 2), dtype="<U1")
    return np.asarray(ids)[pairs]


def to_pandas(ids: Ids, pairs: Pairs) -> Any:
    """A frame with the columns ``source`` and ``target``."""
    return library("pandas", "pandas frames").DataFrame(_columns(ids, pairs))


def to_polars(ids: Ids, pairs: Pairs) -> Any:
    """A frame with the columns ``source`` and ``target``."""
    polars = library("polars", "polars frames")
    return polars.DataFrame(_columns(ids, pairs), schema=dict.fromkeys(COLUMNS, polars.String))


def to_networkx(ids: Ids, pairs: Pairs) -> Any:
    """A graph whose nodes are all ids of the universe."""
    made = library("networkx", "networkx graphs").Graph()
    made.add_nodes_from(ids)
    made.add_edges_from(_rows(ids, pairs))
    return made


def to_igraph(ids: Ids, pairs: Pairs) -> Any:
    """A graph whose vertices are positions, named by their ids."""
    igraph = library("igraph", "igraph graphs")
    made = igraph.Graph(n=len(ids), edges=pairs.astype(np.int64))
    made.vs["name"] = ids
    return made


def to_scipy(ids: Ids, pairs: Pairs) -> Any:
    """A symmetric n × n matrix of zeros and ones in the order of the universe."""
    return adjacency(pairs, len(ids))


def adjacency(pairs: np.ndarray[Any, Any], n: int) -> Any:
    """A symmetric n × n matrix with ones at the pairs, each given once."""
    sparse = library("scipy.sparse", "sparse matrices")
    u, v = pairs.T
    places = (np.concatenate([u, v]), np.concatenate([v, u]))
    ones = np.ones(2 * len(u), dtype=np.int8)
    return sparse.coo_array((ones, places), shape=(n, n)).tocsr()


def to_file(ids: Ids, pairs: Pairs, path: str | PathLike[str], *, header: bool) -> None:
    """Write CSV, TSV or Parquet, chosen by the file's name, completely or not at all.

    ``header`` says whether a text file starts with a line of column names.
    """
    suffix = Path(fspath(path)).suffix.lower()
    if suffix in (".parquet", ".pq"):
        with written_whole(path) as partial:
            _write_parquet(ids, pairs, partial)
    elif suffix in (".csv", ".tsv"):
        with written_whole(path) as partial:
            _write_text(ids, pairs, partial, "," if suffix == ".csv" else "\t", header)
    else:
        raise ArgumentError(f"{fspath(path)}: the name must end in .csv, .tsv or .parquet")


def _write_text(ids: Ids, pairs: Pairs, path: Path, delimiter: str, header: bool) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        if header:
            rows.writerow(COLUMNS)
        rows.writerows(_rows(ids, pairs))


def _write_parquet(ids: Ids, pairs: Pairs, path: Path) -> None:
    arrow, parquet = (library(name, "Parquet files") for name in ("pyarrow", "pyarrow.parquet"))
    table = {name: arrow.array(ids, arrow.string()) for name, ids in _columns(ids, pairs).items()}
    parquet.write_table(arrow.table(table), path)


def _rows(ids: Ids, pairs: Pairs) -> Iterator[tuple[str, str]]:
    return ((ids[u], ids[v]) for u, v in pairs.tolist())


def _columns(ids: Ids, pairs: Pairs) -> dict[str, list[str]]:
    ends = zip(COLUMNS, pairs.T.tolist(), strict=True)
    return {name: [ids[place] for place in places] for name, places in ends}
