"""A silo's edges as other libraries' objects and as files: the way back of :mod:`interop`."""

import csv
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from silograph.errors import ArgumentError
from silograph.extras import library
from silograph.graph.whole_file import written_whole

if TYPE_CHECKING:
    from silograph.graph.silo import Silo

__all__ = [
    "adjacency",
    "edges",
    "to_file",
    "to_igraph",
    "to_networkx",
    "to_pandas",
    "to_polars",
    "to_scipy",
]

_COLUMNS = ("source", "target")


def edges(silo: "Silo") -> np.ndarray[Any, Any]:
    """A (k, 2) array of ids, which are text."""
    if not len(silo):
        return np.empty((0, 2), dtype="<U1")
    return np.asarray(silo.universe.ids)[silo.pairs]


def to_pandas(silo: "Silo") -> Any:
    """Columns ``source`` and ``target``."""
    return library("pandas", "pandas frames").DataFrame(_columns(silo))


def to_polars(silo: "Silo") -> Any:
    """Columns ``source`` and ``target``."""
    polars = library("polars", "polars frames")
    return polars.DataFrame(_columns(silo), schema=dict.fromkeys(_COLUMNS, polars.String))


def to_networkx(silo: "Silo") -> Any:
    """Nodes are ids, all of them."""
    made = library("networkx", "networkx graphs").Graph()
    made.add_nodes_from(silo.universe.ids)
    made.add_edges_from(_rows(silo))
    return made


def to_igraph(silo: "Silo") -> Any:
    """Vertices are positions, and their names are ids."""
    igraph = library("igraph", "igraph graphs")
    made = igraph.Graph(n=len(silo.universe), edges=silo.pairs.astype(np.int64))
    made.vs["name"] = silo.universe.ids
    return made


def to_scipy(silo: "Silo") -> Any:
    """A symmetric n × n matrix of zeros and ones in the order of the universe."""
    return adjacency(silo.pairs, len(silo.universe))


def adjacency(pairs: np.ndarray[Any, Any], n: int) -> Any:
    """A symmetric n × n matrix with ones at the pairs, each given once."""
    sparse = library("scipy.sparse", "sparse matrices")
    u, v = pairs.T
    places = (np.concatenate([u, v]), np.concatenate([v, u]))
    ones = np.ones(2 * len(u), dtype=np.int8)
    return sparse.coo_array((ones, places), shape=(n, n)).tocsr()


def to_file(silo: "Silo", path: str | PathLike[str]) -> None:
    """CSV, TSV or Parquet, as the name says; written whole or not at all."""
    suffix = Path(fspath(path)).suffix.lower()
    if suffix in (".parquet", ".pq"):
        with written_whole(path) as partial:
            _write_parquet(silo, partial)
    elif suffix in (".csv", ".tsv"):
        with written_whole(path) as partial:
            _write_text(silo, partial, "," if suffix == ".csv" else "\t")
    else:
        raise ArgumentError(f"{fspath(path)}: a name ends in .csv, .tsv or .parquet, and so tells")


def _write_text(silo: "Silo", path: Path, delimiter: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        if not any(word in silo.universe for word in _COLUMNS):  # else it would be an edge
            rows.writerow(_COLUMNS)
        rows.writerows(_rows(silo))


def _write_parquet(silo: "Silo", path: Path) -> None:
    arrow, parquet = (library(name, "Parquet files") for name in ("pyarrow", "pyarrow.parquet"))
    table = {name: arrow.array(ids, arrow.string()) for name, ids in _columns(silo).items()}
    parquet.write_table(arrow.table(table), path)


def _rows(silo: "Silo") -> Iterator[tuple[str, str]]:
    ids = silo.universe.ids
    return ((ids[u], ids[v]) for u, v in silo.pairs.tolist())


def _columns(silo: "Silo") -> dict[str, list[str]]:
    ids = silo.universe.ids
    ends = zip(_COLUMNS, silo.pairs.T.tolist(), strict=True)
    return {name: [ids[place] for place in places] for name, places in ends}
