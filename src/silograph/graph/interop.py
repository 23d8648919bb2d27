"""The ends of edges out of other libraries' objects. Nothing here is imported until it is used."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from silograph.errors import ArgumentError, EdgeError
from silograph.extras import library
from silograph.graph.header import Choice, Columns, check_columns, choose_named
from silograph.graph.identifiers import plain_integers

Ends = tuple[Iterable[object], Iterable[object]]
Places = npt.NDArray[np.int64]


def _expect(source: object, kinds: tuple[type, ...], words: str) -> None:
    if not isinstance(source, kinds):
        raise ArgumentError(f"source is of type {type(source).__name__}; {words} is needed")


def array_ends(source: object) -> Ends:
    """Two columns of a (k, 2) array, or of any sequence of pairs."""
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
    # Only lists of nothing but integers may become arrays: numpy would change anything else.
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
    """Places of a sparse matrix that are not zero."""
    sparse = library("scipy.sparse", "sparse matrices")
    if not sparse.issparse(source):
        raise ArgumentError(f"source is of type {type(source).__name__}; from scipy.sparse needed")
    _square(source.shape, n)
    entries = source.tocoo()
    kept = entries.data != 0
    return np.stack([entries.row[kept], entries.col[kept]], axis=1).astype(np.int64)


def matrix_ends(source: object, n: int) -> Places:
    """Places of a dense matrix that are not zero."""
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


def polars_values(series: Any) -> Iterable[object]:
    """Integers as an array; anything else, and any column with gaps, as a list."""
    plain = series.dtype.is_integer() and series.null_count() == 0
    return series.to_numpy() if plain else series.to_list()  # type: ignore[no-any-return]


def networkx_ends(source: Any) -> Ends:
    """Ends of the edges of a networkx graph of any kind; nodes are ids."""
    _expect(source, (library("networkx", "networkx graphs").Graph,), "a networkx graph")
    edges = list(source.edges())
    return array_ends([(edge[0], edge[1]) for edge in edges])


def igraph_ends(source: Any, attribute: str | None) -> Ends:
    """Ends of the edges of an igraph graph; ids are a vertex attribute, or else the indices."""
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
