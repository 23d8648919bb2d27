"""Reading edge files: the format, the header, and then either all edges or one error."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import compress
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from silograph._core import EdgeText, IdError, IdTable, LineError, instant, settle_pairs
from silograph.errors import ArgumentError, EdgeError
from silograph.extras import library
from silograph.graph.identifiers import (
    Case,
    Lookup,
    NotAnIdError,
    Positions,
    find,
    line_fault,
    open_text,
    placed_texts,
    plain_integers,
    shown,
)
from silograph.graph.window import Window

if TYPE_CHECKING:
    from silograph._core import Shape, Tally

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
    time: int | None = None

    @property
    def columns(self) -> tuple[str, str] | tuple[int, int]:
        """The two columns by name, or by position if there are no names."""
        if self.header is None:
            return self.first, self.second
        return self.header[self.first], self.header[self.second]

    @property
    def needed(self) -> list[str]:
        """The names of the columns that are read: the two ends, and the time if there is one."""
        read = (self.first, self.second, self.time)
        return [(self.header or ())[place] for place in read if place is not None]

    @property
    def ignored(self) -> tuple[str, ...] | tuple[int, ...]:
        """The other columns."""
        read = (self.first, self.second, self.time)
        rest = [place for place in range(self.fields) if place not in read]
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


def choose_named(
    source: str, names: Sequence[str], columns: Columns, time: str | int | None = None
) -> Choice:
    """Choose two columns of a table that always has names, such as a data frame."""
    timed = None if time is None else _place(source, names, time)
    places = _places(source, names, columns, timed)
    if places is None:
        raise EdgeError(
            f"{source}: {len(names)} columns ({_some(names)}); pass columns= to say which two "
            "hold the ends of an edge"
        )
    return _timed(source, Choice(len(names), *places, tuple(names), timed))


def _timed(source: str, choice: Choice) -> Choice:
    if choice.time in (choice.first, choice.second):
        raise ArgumentError(f"{source}: the time column is an end of the edges, too")
    return choice


def choose(
    source: str,
    rows: Sequence[Sequence[str]],
    columns: Columns,
    header: bool | None,
    holds: Callable[[str], bool] | None,
    time: str | int | None = None,
) -> Choice:
    """How to read a table, from its first rows. ``holds`` looks ids up in the universe, if any;
    ``time`` is the column that holds the time.
    """
    first, body = rows[0], rows[1:]
    if len(first) < 2:
        raise EdgeError(
            f"{source}: the first row ({shown(first[0])}) has one field, and an edge needs two; "
            "if the fields are separated otherwise, or lines with # are comments, pass "
            "format='whitespace', 'csv' or 'tsv'"
        )
    if header is None:
        header = _is_header(first, body, columns, holds)
        if isinstance(time, str):
            header = True
        elif time is not None and time < len(first) and instant(first[time], False) is not None:
            header = False
    if header is None:
        raise EdgeError(
            f"{source}: the first row ({_some(first)}) may be a header or an edge: its ends do not "
            "occur again, and look like the ids below them; pass header=True or header=False"
        )
    if header:
        return choose_named(source, first, columns, time)
    if columns is not None and isinstance(columns[0], str):
        raise ArgumentError(
            f"{source}: columns {shown(columns)} are names, and no header has them; the first "
            f"row is {_some(first)}"
        )
    if isinstance(time, str):
        raise ArgumentError(f"{source}: the time column {shown(time)} is a name, without a header")
    timed = None if time is None else _place(source, first, time)
    one, other, *_ = (place for place in range(3) if place != timed)
    places = [_place(source, first, place) for place in columns or (one, other)]
    return _timed(source, Choice(len(first), places[0], places[1], None, timed))


def _is_header(
    first: Sequence[str],
    body: Sequence[Sequence[str]],
    columns: Columns,
    holds: Callable[[str], bool] | None,
) -> bool | None:
    """Whether the first row holds names; None if nobody could tell."""
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
    ids = [[row[place] for row in body if place < len(row)] for place in _both(chosen)]
    return _are_names(first, ends, ids, listed=holds is not None)


def _are_names(
    first: Sequence[str], ends: Sequence[str], ids: Sequence[Sequence[str]], *, listed: bool
) -> bool | None:
    """Whether unknown words are names of columns: they must differ from the ids below them."""
    if {field for column in ids for field in column}.intersection(ends):
        return False
    # With a list, an id that is mistyped, and so of another length, is an error and no header.
    pairs = list(zip(ends, ids, strict=True))
    if all(column and _differs(end, column, length=not listed) for end, column in pairs):
        return True
    words = {word for field in first for word in re.split(r"[\W_\d]+", field.lower())}
    if words & _WORDS and (listed or "_" in "".join(ends)):
        return True
    # Of a few rows a person sees at once what they are.
    long = min(map(len, ids)) >= _DOUBTFUL
    doubtful = long and not listed and not any(re.search(r"\d", end) for end in ends)
    return None if doubtful else False


def _both(chosen: Columns) -> tuple[int, int]:
    first, second = chosen or (0, 1)
    return (first, second) if isinstance(first, int) and isinstance(second, int) else (0, 1)


#: With so many rows below it, a first row that is of their kind but stands alone is in doubt.
_DOUBTFUL = 3
#: What all ids of a column may have, or all may lack: digits, and marks of addresses.
_KINDS = tuple(map(re.compile, (r"\d", r"[@:/]")))


def _differs(name: str, ids: Sequence[str], *, length: bool) -> bool:
    """Whether a name is of another kind than every id below it, or of another ``length``.

    >>> _differs("debtor_iban", ["DE89370400440532013000", "FR763000600001"], length=False)
    True
    >>> _differs("carol", ["alice", "bob"], length=True)
    False
    """
    for kind in _KINDS:
        has = bool(kind.search(name))
        if all(bool(kind.search(id_)) != has for id_ in ids):
            return True
    return length and len(ids) > 2 and {len(id_) for id_ in ids} == {len(ids[0])} != {len(name)}


def _places(
    source: str, names: Sequence[str], columns: Columns, timed: int | None = None
) -> tuple[int, int] | None:
    if columns is None:
        others = [place for place in range(len(names)) if place != timed]
        return (others[0], others[1]) if len(others) == 2 else known_pair(names)
    return _place(source, names, columns[0]), _place(source, names, columns[1])


def _place(source: str, names: Sequence[str], column: str | int) -> int:
    if isinstance(column, int):
        if column >= len(names):
            raise ArgumentError(
                f"{source}: no column {column}; the columns are 0 … {len(names) - 1}"
            )
        return column
    if list(names).count(column) == 1:
        return list(names).index(column)
    how = "no column" if column not in names else "more than one column"
    raise ArgumentError(f"{source}: {how} {shown(column)}; there are {_some(names)}")


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(shown, names[:8])) + (", …" if len(names) > 8 else "")


# --- Parquet files, read with pyarrow or polars, whichever is installed ---------------------------

PARQUET = b"PAR1"
_BUFFER = 1 << 20  # bytes of a column that are read at once


Ends = tuple[Iterable[object], Iterable[object]]
Place = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class ParquetTable:
    """The two columns that hold the ends, as far as they are in a window, and where they stand."""

    ends: Ends
    place: Place
    outside: int = 0

    @classmethod
    def of(cls, ends: Ends, times: Any, window: Window | None, place: Place) -> "ParquetTable":
        """The rows that are in the window."""
        if window is None:
            return cls(ends, place)
        inside = window.inside(times, place)
        kept = np.flatnonzero(inside)
        first, second = (
            end[kept] if isinstance(end, np.ndarray) else list(compress(end, inside))
            for end in ends
        )
        return cls((first, second), lambda row: place(int(kept[row])), len(times) - len(kept))


def read_parquet(
    path: str | PathLike[str], columns: Columns, window: Window | None = None
) -> tuple[ParquetTable, Choice]:
    """Read only the columns that are needed."""
    source = fspath(path)
    if not is_parquet(source, by_name=False):
        raise EdgeError(f"{source}: is not a Parquet file; for a text file pass format=")
    reader = _pyarrow if find_spec("pyarrow") is not None else _polars
    with _readable(source):
        ends, times, choice = reader(source, columns, None if window is None else window.column)
    return ParquetTable.of(ends, times, window, partial(_row, source, 0)), choice


def is_parquet(path: str | PathLike[str], *, by_name: bool = True) -> bool:
    """Whether a file is in Parquet: by its name, if that counts, and by its first bytes."""
    if by_name and _SUFFIXES.get(Path(path).suffix.lower()) == "parquet":
        return True
    try:
        with Path(path).open("rb") as file:
            return file.read(len(PARQUET)) == PARQUET
    except OSError as error:
        raise EdgeError(f"{fspath(path)}: cannot be read: {error.strerror}") from None


@contextmanager
def _readable(source: str) -> Iterator[None]:
    """Errors of the libraries become one line about the file."""
    try:
        yield
    except (OSError, ValueError) as error:  # pyarrow's errors derive from these
        if type(error).__module__.startswith("silograph"):
            raise
        raise _damaged(source, error) from None


def _pyarrow(source: str, columns: Columns, time: str | int | None) -> tuple[Ends, Any, Choice]:
    module = library("pyarrow.parquet", "Parquet files")
    with module.ParquetFile(source) as file:
        choice = choose_named(source, list(file.schema_arrow.names), columns, time)
        table = file.read(columns=choice.needed)
    return *_arrow_columns(table, choice), choice


def _arrow_columns(table: Any, choice: Choice) -> tuple[Ends, Any]:
    """The two ends (integers as an array; others, and those with missing values, as a list), and
    an array of the times.
    """
    ends = []
    for name in choice.columns:
        column = table.column(name)
        plain = column.null_count == 0 and str(column.type).startswith(("int", "uint"))
        ends.append(column.to_numpy() if plain else column.to_pylist())
    timed = choice.needed[2:]
    times = table.column(timed[0]).to_numpy(zero_copy_only=False) if timed else None
    return (ends[0], ends[1]), times


def parquet_runs(
    source: str, columns: Columns, rows: int, window: Window | None = None
) -> tuple[Choice, list[tuple[int, tuple[int, ...]]]]:
    """The columns, and the row groups in runs of about so many rows: the first row of each
    run, counted from 0, and the numbers of its groups. Groups without rows are left out.
    """
    module = library("pyarrow.parquet", "datasets of Parquet files")
    with _readable(source), module.ParquetFile(source) as file:
        names, time = list(file.schema_arrow.names), None if window is None else window.column
        choice = choose_named(source, names, columns, time)
        sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    runs: list[tuple[int, tuple[int, ...]]] = []
    first, held = 0, rows
    for group, size in enumerate(sizes):
        if size and held + size > rows:
            runs.append((first, ()))
            held = 0
        if size:
            runs[-1] = (runs[-1][0], (*runs[-1][1], group))
        first, held = first + size, held + size
    return choice, runs


def parquet_batches(
    source: str,
    choice: Choice,
    groups: Sequence[int],
    rows: int,
    first: int,
    window: Window | None = None,
) -> Iterator[ParquetTable]:
    """The two columns of some row groups, at most so many rows at a time. The row ``first`` of the
    file, from 0, is the first of the groups.
    """
    module = library("pyarrow.parquet", "datasets of Parquet files")
    # Without these two settings a whole row group, which may be the whole file, is read at once.
    with module.ParquetFile(source, pre_buffer=False, buffer_size=_BUFFER) as file:
        batches = file.iter_batches(batch_size=rows, row_groups=list(groups), columns=choice.needed)
        while True:
            with _readable(source):
                batch = next(batches, None)
            if batch is None:
                return
            place = partial(_row, source, first)
            yield ParquetTable.of(*_arrow_columns(batch, choice), window, place)
            first += len(batch)


def _row(source: str, first: int, number: int) -> str:
    return f"{source}: row {first + number + 1}"


def _polars(source: str, columns: Columns, time: str | int | None) -> tuple[Ends, Any, Choice]:
    module = library("polars", "Parquet files")
    try:
        names = list(module.read_parquet_schema(source))
        choice = choose_named(source, names, columns, time)
        frame = module.read_parquet(source, columns=choice.needed)
    except module.exceptions.PolarsError as error:
        raise _damaged(source, error) from None
    first, second, *timed = (frame.get_column(name) for name in choice.needed)
    times = timed[0].to_numpy() if timed else None
    return (polars_values(first), polars_values(second)), times, choice


def _damaged(source: str, error: Exception) -> EdgeError:
    reason = str(error).strip().splitlines() or [type(error).__name__]
    return EdgeError(f"{source}: damaged or not readable as Parquet: {reason[0][:200]}")


def polars_values(series: Any) -> Iterable[object]:
    """Integers as an array; other columns, and columns with missing values, as a list."""
    plain = series.dtype.is_integer() and series.null_count() == 0
    return series.to_numpy() if plain else series.to_list()  # type: ignore[no-any-return]


# --- The report of a load -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """What was found while a silo's edges were loaded. Rows = edges + repeats + self-loops.

    Rows outside a time window are not among the rows.

    The report is only for the silo that owns the edges, since every number depends on them.

    Examples
    --------
    >>> print(LoadReport(source="a.csv", format="csv", rows=3, edges=2, repeats=1))
    a.csv (csv): 2 edges from 3 rows
      1 repeat merged (both directions count as one edge)
    """

    source: str
    """The file, or the kind of object."""
    format: str
    """How it was read, such as ``csv`` or ``networkx``."""
    rows: int
    """Rows that name an edge."""
    edges: int
    """Distinct edges that were kept."""
    repeats: int = 0
    """Rows merged into an edge that was there already, in either direction."""
    self_loops: int = 0
    """Rows dropped because both ends are the same node."""
    outside: int = 0
    """Rows left out because their time is outside the window."""
    comments: int = 0
    """Comment lines."""
    header: tuple[str, ...] | None = None
    """The names in the first row, if it was taken for a header."""
    columns: tuple[str, str] | tuple[int, int] | None = None
    """The two columns that were read: names if there is a header, otherwise positions."""
    ignored: tuple[str, ...] | tuple[int, ...] = ()
    """The columns that were not read."""

    def __str__(self) -> str:
        kept = f"{_count(self.edges, 'edge')} from {_count(self.rows, 'row')}"
        lines = [f"{self.source} ({self.format}): {kept}"]
        if self.repeats:
            merged = _count(self.repeats, "repeat")
            lines.append(f"  {merged} merged (both directions count as one edge)")
        if self.self_loops:
            lines.append(f"  {_count(self.self_loops, 'self-loop')} dropped")
        if self.outside:
            lines.append(f"  {_count(self.outside, 'row')} outside the time window")
        if self.comments:
            lines.append(f"  {_count(self.comments, 'comment line')} skipped")
        if self.header is not None:
            lines.append(f"  header: {', '.join(self.header)}")
        if self.columns is not None and (self.header is not None or self.ignored):
            lines.append(f"  columns read: {self.columns[0]}, {self.columns[1]}")
        if self.ignored:
            lines.append(f"  columns ignored: {', '.join(map(str, self.ignored))}")
        return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


# --- Reading one edge file ------------------------------------------------------------------------

Words = npt.NDArray[np.uint64]
_T = TypeVar("_T")

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_FORMATS = ("whitespace", "snap", "csv", "tsv", "parquet")
_MOST_INT = 10**18  # ids from here on are kept as texts
_LOOK_AHEAD = 100  # the number of rows that are used to find the header


@dataclass(frozen=True, slots=True)
class Ask:
    """What the caller specified about a file."""

    path: str | PathLike[str]
    columns: Columns
    format: str | None
    header: bool | None
    window: Window | None = None

    def __post_init__(self) -> None:
        check_columns(self.columns)
        if self.format not in (None, *_FORMATS):
            known = ", ".join(map(repr, _FORMATS))
            raise ArgumentError(f"format is {self.format!r}; it must be one of {known} or None")
        if self.header not in (None, True, False):
            raise ArgumentError(f"header is {self.header!r}; it must be True, False or None")
        if not isinstance(self.window, Window | None):
            kind = type(self.window).__name__
            raise ArgumentError(f"window is of type {kind}; a Window is needed")
        if not isinstance(self.path, (str, PathLike)):
            kind = type(self.path).__name__
            raise ArgumentError(f"path is of type {kind}; a file name is needed")

    @property
    def source(self) -> str:
        """The file's name as messages show it."""
        return fspath(self.path)


def read_over(universe: Lookup, ask: Ask) -> tuple[Words, LoadReport]:
    """The pairs of a file over a given universe."""
    text = _open(ask)
    if text is None:
        return _parquet_over(universe, ask)
    kind, delimiter = _format(ask, text)

    def read() -> tuple[Words, LoadReport]:
        choice = _choice(ask, text, delimiter, universe.__contains__)
        words, counts = text.keys(universe._table, _shape(ask, delimiter, choice))
        return words, _report(ask, kind, choice, counts)

    return _explained(ask, text, read, universe)


def read_alone(
    ask: Ask, *, strip: bool = False, case: Case = None
) -> tuple[IdTable, Words, LoadReport]:
    """The pairs of a file over the sorted ids that it contains."""
    text = _open(ask)
    if text is None:
        return _parquet_alone(ask, strip, case)
    kind, delimiter = _format(ask, text)

    def read() -> tuple[IdTable, Words, LoadReport]:
        choice = _choice(ask, text, delimiter, None)
        table, words, counts = text.graph(strip, case, _shape(ask, delimiter, choice))
        return table, words, _report(ask, kind, choice, counts)

    return _explained(ask, text, read, None)


def find_alone(
    ends: tuple[Iterable[object], Iterable[object]],
    place: Callable[[int], str],
    strip: bool,
    case: Case,
) -> tuple[IdTable, Positions, Positions]:
    """The sorted ids that two columns of values contain, and the position of every value.

    ``place`` describes in words where the value with a given number stands.
    """
    first, second = (plain_integers(end) for end in ends)
    if first is not None and second is not None:
        numbers = np.sort(np.concatenate([first, second]))
        new = np.ones(len(numbers), dtype=bool)
        np.not_equal(numbers[1:], numbers[:-1], out=new[1:])  # numpy.unique takes ten times as long
        numbers = numbers[new]
        if len(numbers) and numbers[-1] >= _MOST_INT:
            table = IdTable.from_texts(numbers.astype(str).tolist(), strip, case)
        else:
            table = IdTable.from_ints(numbers, strip, case)
        return table, table.find_ints(first), table.find_ints(second)
    columns: list[list[str]] = []
    ids: set[str] = set()
    for end in ends:
        texts = placed_texts(end, place)
        for text in dict.fromkeys(texts):
            # Normalise before sorting, so that ids that become equal occur once.
            try:
                ids.add(normalised(text, strip, case))
            except NotAnIdError as error:
                raise EdgeError(f"{place(texts.index(text))}: {error.args[0]}") from None
        columns.append(texts)
    table = IdTable.from_texts(sorted_ids(ids), strip, case)
    return table, table.find_texts(columns[0]), table.find_texts(columns[1])


_PLAIN = re.compile(r"[!-~]+")  # ASCII without white space and control characters


def normalised(text: str, strip: bool, case: Case) -> str:
    """An id of which no list is given, in its normal form; :class:`NotAnIdError` if it has none.

    >>> normalised(" Ada", True, "lower")
    'ada'
    """
    if _PLAIN.fullmatch(text):  # most ids, by the short way
        return text if case is None else text.lower() if case == "lower" else text.upper()
    try:
        id_ = IdTable.from_texts([text], strip, case).texts(0, 1)[0]
        spaced = not strip and id_ != IdTable.from_texts([id_], True, None).texts(0, 1)[0]
    except IdError as error:
        what = "an empty id" if error.args[0] == "empty" else "an id with a line break in it"
        raise NotAnIdError(what) from None
    if spaced:
        raise NotAnIdError(
            f"id {shown(text)} begins or ends with white space; pass strip=True to remove it"
        )
    return id_


def sorted_ids(texts: set[str]) -> list[str]:
    """Sort ids by value if all are integers in their usual spelling, otherwise by code point.

    >>> sorted_ids({"10", "9"}), sorted_ids({"10", "9", "x"})
    (['9', '10'], ['10', '9', 'x'])
    """
    try:
        usual = all(str(int(text)) == text for text in texts)
    except ValueError:
        usual = False
    return sorted(texts, key=int) if usual else sorted(texts)


def _open(ask: Ask) -> EdgeText | None:
    """The text of the file, or None if it is a Parquet file."""
    suffix = Path(ask.source.lower()).suffix
    if ask.format == "parquet" or (ask.format is None and _SUFFIXES.get(suffix) == "parquet"):
        return None
    text = open_text(ask.path)
    return None if ask.format is None and text.magic == PARQUET else text


def _format(ask: Ask, text: EdgeText) -> tuple[str, int | None]:
    """The name of a text format and the delimiter of its fields."""
    name = ask.format or _SUFFIXES.get(Path(ask.source.lower().removesuffix(".gz")).suffix)
    if name is None:
        rows = _explained(ask, text, lambda: text.head(None, 1), None)
        comma = bool(rows) and "," in rows[0][0] and (len(rows[0]) == 1 or rows[0][0][-1] == ",")
        name = "csv" if comma else "whitespace"
    if name == "tsv":
        return name, ord("\t")
    if name != "csv":
        return "whitespace", None
    # Spreadsheets write semicolons where the decimal comma is used.
    rows = _explained(ask, text, lambda: text.head(ord(","), 1), None)
    semicolons = bool(rows) and len(rows[0]) == 1 and ";" in rows[0][0]
    return name, ord(";" if semicolons else ",")


def _choice(
    ask: Ask, text: EdgeText, delimiter: int | None, holds: Callable[[str], bool] | None
) -> Choice:
    rows = text.head(delimiter, _LOOK_AHEAD)
    if not rows:
        raise _no_edges(ask)
    time = None if ask.window is None else ask.window.column
    return choose(ask.source, rows, ask.columns, ask.header, holds, time)


def _shape(ask: Ask, delimiter: int | None, choice: Choice) -> "Shape":
    timed = None
    if ask.window is not None and choice.time is not None:
        timed = (choice.time, *ask.window.bounds)
    named = choice.header is not None
    return delimiter, choice.fields, choice.first, choice.second, named, timed


def _report(ask: Ask, kind: str, choice: Choice, counts: "Tally") -> LoadReport:
    rows, comments, loops, repeats, outside = counts
    if rows == 0 and outside:
        raise EdgeError(
            f"{ask.source}: all {outside:,} rows are outside the time window; look at the column "
            "with the times"
        )
    if rows == 0:
        raise _no_edges(ask, choice.header)
    return LoadReport(
        source=ask.source,
        format=kind,
        rows=rows,
        edges=rows - loops - repeats,
        repeats=repeats,
        self_loops=loops,
        outside=outside,
        comments=comments,
        header=choice.header,
        columns=choice.columns,
        ignored=choice.ignored,
    )


def _no_edges(ask: Ask, header: Sequence[str] | None = None) -> EdgeError:
    if header is not None:
        names = ", ".join(header)
        return EdgeError(
            f"{ask.source}: there is only a header ({names}); pass header=False if it is an edge"
        )
    return EdgeError(
        f"{ask.source}: there are no edges in it; a silo that is meant to be empty is "
        "Silo.from_edges(universe, [])"
    )


def _explained(ask: Ask, text: EdgeText, read: Callable[[], _T], universe: Lookup | None) -> _T:
    try:
        return read()
    except LineError as error:
        raise line_fault(ask.source, error, universe, text.magic) from None


def _parquet_over(universe: Lookup, ask: Ask) -> tuple[Words, LoadReport]:
    table, choice = read_parquet(ask.path, ask.columns, ask.window)
    ends = [find(universe._table, end, table.place, universe) for end in table.ends]
    return _settled(ends, ask, choice, table.outside)


def _settled(
    ends: Sequence[Positions], ask: Ask, choice: Choice, outside: int
) -> tuple[Words, LoadReport]:
    words, loops, repeats = settle_pairs(ends[0], ends[1])
    return words, _report(ask, "parquet", choice, (len(ends[0]), 0, loops, repeats, outside))


def _parquet_alone(ask: Ask, strip: bool, case: Case) -> tuple[IdTable, Words, LoadReport]:
    table, choice = read_parquet(ask.path, ask.columns, ask.window)
    own, *ends = find_alone(table.ends, table.place, strip, case)
    words, report = _settled(ends, ask, choice, table.outside)
    return own, words, report
