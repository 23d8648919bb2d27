"""Edge tables: their header and columns, and edges from and to other libraries and files."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from silograph.errors import ArgumentError, EdgeError
from silograph.extras import library
from silograph.graph.identifiers import plain_integers, shown
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


# --- Finding the header of an edge table, and the two columns that hold the ends ------------------
#
# A row that is wrongly taken for a header is a silently lost edge. So the first row is taken for a
# header only if a person who reads the file would agree.
Columns = tuple[str, str] | tuple[int, int] | None

_PAIRS = (
    ("source", "target"),
    ("source", "destination"),
    ("source", "dest"),
    ("src", "dst"),
    ("src", "dest"),
    ("src", "tgt"),
    ("from", "to"),
    ("fromnode", "tonode"),
    ("tail", "head"),
    ("u", "v"),
    ("node1", "node2"),
    ("nodea", "nodeb"),
    ("user1", "user2"),
    ("id1", "id2"),
    ("person1", "person2"),
    ("account1", "account2"),
    ("sender", "receiver"),
    ("sender", "recipient"),
    ("payer", "payee"),
    ("follower", "followee"),
    ("follower", "followed"),
    ("caller", "callee"),
    ("start", "end"),
    ("vertex1", "vertex2"),
    ("left", "right"),
)
_WORDS = frozenset(word for pair in _PAIRS for word in pair if len(word) > 2) | {
    "account",
    "customer",
    "id",
    "node",
    "nodeid",
    "person",
    "user",
    "vertex",
    "weight",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """How to read the rows of a table."""

    fields: int
    first: int
    second: int
    header: tuple[str, ...] | None

    @property
    def columns(self) -> tuple[str, str] | tuple[int, int]:
        """The two columns by name, or by position if there are no names."""
        if self.header is None:
            return self.first, self.second
        return self.header[self.first], self.header[self.second]

    @property
    def ignored(self) -> tuple[str, ...] | tuple[int, ...]:
        """The other columns."""
        rest = [place for place in range(self.fields) if place not in (self.first, self.second)]
        return tuple(rest) if self.header is None else tuple(self.header[place] for place in rest)


def is_number(field: str) -> bool:
    """Whether a field reads as a number.

    >>> is_number("-3.5e2"), is_number("x1"), is_number("nan")
    (True, False, False)
    """
    return re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", field, re.A) is not None


def known_pair(names: Sequence[str]) -> tuple[int, int] | None:
    """The positions of two columns whose names are known to mean the ends of an edge.

    >>> known_pair(["id", "From_Node_ID", "To_Node_ID"])
    (1, 2)
    """
    plain = [re.sub(r"[\s_\-.]|id$", "", name.strip().lower()) for name in names]
    plain = [stem or name.strip().lower() for stem, name in zip(plain, names, strict=True)]
    for first, second in _PAIRS:
        if plain.count(first) == 1 and plain.count(second) == 1:
            return plain.index(first), plain.index(second)
    return None


def check_columns(columns: object) -> Columns:
    """Check that these are two different names, or two different positions of at least 0."""
    match columns:
        case None:
            return None
        case (str(first), str(second)) if first != second:
            return first, second
        case (int(a), int(b)) if a != b and min(a, b) >= 0 and bool not in (type(a), type(b)):
            return a, b
    raise ArgumentError(
        f"columns is {shown(columns)}; it must be two different names, or two different "
        "positions from 0 up"
    )


def choose_named(source: str, names: Sequence[str], columns: Columns) -> Choice:
    """Choose two columns of a table that always has names, such as a data frame."""
    places = _places(source, names, columns)
    if places is None:
        raise EdgeError(
            f"{source}: {len(names)} columns ({_some(names)}); pass columns= to say which two "
            "hold the ends of an edge"
        )
    return Choice(len(names), *places, tuple(names))


def choose(
    source: str,
    rows: Sequence[Sequence[str]],
    columns: Columns,
    header: bool | None,
    holds: Callable[[str], bool] | None,
) -> Choice:
    """How to read a table, from its first rows. ``holds`` looks ids up in the universe, if any."""
    first, body = rows[0], rows[1:]
    if len(first) < 2:
        raise EdgeError(
            f"{source}: the first row ({shown(first[0])}) has one field, and an edge needs two; "
            "if the fields are separated otherwise, or lines with # are comments, pass "
            "format='whitespace', 'csv' or 'tsv'"
        )
    if header is None:
        header = _is_header(first, body, columns, holds)
    if header:
        return choose_named(source, first, columns)
    if columns is not None and isinstance(columns[0], str):
        raise ArgumentError(
            f"{source}: columns {shown(columns)} are names, and no header has them; the first "
            f"row is {_some(first)}"
        )
    places = _places(source, first, columns) if columns else (0, 1)
    return Choice(len(first), *(places or (0, 1)), None)


def _is_header(
    first: Sequence[str],
    body: Sequence[Sequence[str]],
    columns: Columns,
    holds: Callable[[str], bool] | None,
) -> bool:
    if columns is not None and isinstance(columns[0], str):
        return columns[0] in first and columns[1] in first
    if any(is_number(field) for field in first):
        return False
    named = known_pair(first)
    chosen = columns if columns is not None else (named or (0, 1))
    ends = [first[place] for place in chosen if isinstance(place, int) and place < len(first)]
    if holds is not None and any(map(holds, ends)):
        return False
    below = [[row[place] for row in body if place < len(row)] for place in range(len(first))]
    if any(column and all(map(is_number, column)) for column in below):
        return True
    if named is not None:
        # "u v" may be an edge between two nodes named by letters; then the letters occur again.
        again = {field for row in body for field in row}
        return not again.intersection(ends)
    # Unknown names must look like names, and must not be nodes of the universe.
    words = {word for field in first for word in re.split(r"[\W_\d]+", field.lower())}
    return holds is not None and bool(words & _WORDS)


def _places(source: str, names: Sequence[str], columns: Columns) -> tuple[int, int] | None:
    if columns is None:
        return (0, 1) if len(names) == 2 else known_pair(names)
    places: list[int] = []
    for column in columns:
        if isinstance(column, int):
            if column >= len(names):
                raise ArgumentError(
                    f"{source}: no column {column}; the columns are 0 … {len(names) - 1}"
                )
            places.append(column)
        elif list(names).count(column) == 1:
            places.append(list(names).index(column))
        else:
            how = "no column" if column not in names else "more than one column"
            raise ArgumentError(f"{source}: {how} {shown(column)}; there are {_some(names)}")
    return places[0], places[1]


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(shown, names[:8])) + (", …" if len(names) > 8 else "")


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


def polars_values(series: Any) -> Iterable[object]:
    """Integers as an array; other columns, and columns with missing values, as a list."""
    plain = series.dtype.is_integer() and series.null_count() == 0
    return series.to_numpy() if plain else series.to_list()  # type: ignore[no-any-return]


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


# --- Parquet files, read with pyarrow or polars, whichever is installed ---------------------------

MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True)
class Table:
    """The two columns that hold the ends, and how they were chosen."""

    ends: tuple[Iterable[object], Iterable[object]]
    choice: Choice


def read(path: str | PathLike[str], columns: Columns) -> Table:
    """Read only the two columns."""
    source = fspath(path)
    try:
        with Path(path).open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise EdgeError(f"{source}: cannot be read: {error.strerror}") from None
    if start != MAGIC:
        raise EdgeError(f"{source}: is not a Parquet file; for a text file pass format=")
    reader = _pyarrow if find_spec("pyarrow") is not None else _polars
    try:
        return reader(source, columns)
    except (OSError, ValueError) as error:  # pyarrow's errors derive from these
        if type(error).__module__.startswith("silograph"):
            raise
        raise _damaged(source, error) from None


def _pyarrow(source: str, columns: Columns) -> Table:
    module = library("pyarrow.parquet", "Parquet files")
    with module.ParquetFile(source) as file:
        names = list(file.schema_arrow.names)
        choice = choose_named(source, names, columns)
        table = file.read(columns=[names[choice.first], names[choice.second]])
    ends = []
    for place in (choice.first, choice.second):
        column = table.column(names[place])
        plain = column.null_count == 0 and str(column.type).startswith(("int", "uint"))
        ends.append(column.to_numpy() if plain else column.to_pylist())
    return Table((ends[0], ends[1]), choice)


def _polars(source: str, columns: Columns) -> Table:
    module = library("polars", "Parquet files")
    try:
        names = list(module.read_parquet_schema(source))
        choice = choose_named(source, names, columns)
        frame = module.read_parquet(source, columns=[names[choice.first], names[choice.second]])
    except module.exceptions.PolarsError as error:
        raise _damaged(source, error) from None
    first, second = (frame.get_column(names[place]) for place in (choice.first, choice.second))
    return Table((polars_values(first), polars_values(second)), choice)


def _damaged(source: str, error: Exception) -> EdgeError:
    reason = str(error).strip().splitlines() or [type(error).__name__]
    return EdgeError(f"{source}: damaged or not readable as Parquet: {reason[0][:200]}")


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
