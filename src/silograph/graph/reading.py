"""Reading edge files: the format, the header, and then either all edges or one error."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from silograph._core import EdgeText, IdError, IdTable, LineError, settle_pairs
from silograph.errors import ArgumentError, EdgeError
from silograph.graph import convert
from silograph.graph.convert import Choice, Columns, check_columns, choose
from silograph.graph.identifiers import (
    Case,
    Lookup,
    NotAnIdError,
    check_normalisation,
    find,
    id_texts,
    line_fault,
    open_text,
    plain_integers,
    shown,
)

# --- The report of a load -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """What was found while a silo's edges were loaded. Rows = edges + repeats + self-loops.

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
_LOOK_AHEAD = 100  # the number of rows that are used to find the header


@dataclass(frozen=True, slots=True)
class Ask:
    """What the caller specified about a file."""

    path: str | PathLike[str]
    columns: Columns
    format: str | None
    header: bool | None

    def __post_init__(self) -> None:
        check_columns(self.columns)
        if self.format not in (None, *_FORMATS):
            known = ", ".join(map(repr, _FORMATS))
            raise ArgumentError(f"format is {self.format!r}; it must be one of {known} or None")
        if self.header not in (None, True, False):
            raise ArgumentError(f"header is {self.header!r}; it must be True, False or None")
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
        shape = (delimiter, choice.fields, choice.first, choice.second, choice.header is not None)
        words, counts = text.keys(universe._table, shape)
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
        shape = (delimiter, choice.fields, choice.first, choice.second, choice.header is not None)
        table, words, counts = text.graph(strip, case, shape)
        return table, words, _report(ask, kind, choice, counts)

    return _explained(ask, text, read, None)


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
    return None if ask.format is None and text.magic == convert.MAGIC else text


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
    return choose(ask.source, rows, ask.columns, ask.header, holds)


def _report(ask: Ask, kind: str, choice: Choice, counts: tuple[int, int, int, int]) -> LoadReport:
    rows, comments, loops, repeats = counts
    if rows == 0:
        raise _no_edges(ask, choice.header)
    return LoadReport(
        source=ask.source,
        format=kind,
        rows=rows,
        edges=rows - loops - repeats,
        repeats=repeats,
        self_loops=loops,
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
    return _settled(universe._table, ask, convert.read(ask.path, ask.columns), universe)


def _settled(
    ids: IdTable, ask: Ask, table: convert.Table, universe: Lookup | None = None
) -> tuple[Words, LoadReport]:
    ends = [find(ids, end, _row(ask), universe) for end in table.ends]
    words, loops, repeats = settle_pairs(ends[0], ends[1])
    return words, _report(ask, "parquet", table.choice, (len(ends[0]), 0, loops, repeats))


def _parquet_alone(ask: Ask, strip: bool, case: Case) -> tuple[IdTable, Words, LoadReport]:

    table = convert.read(ask.path, ask.columns)
    integers = [plain_integers(end) for end in table.ends]
    if integers[0] is not None and integers[1] is not None:
        ids = np.unique(np.concatenate([integers[0], integers[1]])).astype(str).tolist()
    else:
        # Normalise before sorting, so that ids that become equal occur once.
        ids = sorted_ids(
            {
                _file_id(_row(ask)(number), value, strip, case)
                for end in table.ends
                for number, value in enumerate(end)
            }
        )
    own = IdTable.from_texts(ids, strip, case)
    words, report = _settled(own, ask, table)
    return own, words, report


def _file_id(place: str, value: object, strip: bool, case: Case) -> str:
    """An id of a file, normalised as in the universe."""
    try:
        text = id_texts([value])[0]
        if not strip and text != text.strip():
            raise NotAnIdError(f"id {shown(text)} begins or ends with white space; pass strip=True")
        return IdTable.from_texts([text], strip, case).texts(0, 1)[0]
    except NotAnIdError as error:
        raise EdgeError(f"{place}: {error.args[0]}") from None
    except IdError as error:
        what = "an empty id" if error.args[0] == "empty" else "an id with a line break in it"
        raise EdgeError(f"{place}: {what}") from None


def _row(ask: Ask) -> Callable[[int], str]:
    return lambda position: f"{ask.source}: row {position + 1}"


def universe_of_files(
    paths: Iterable[str | PathLike[str]],
    columns: Columns,
    format: str | None,  # noqa: A002
    header: bool | None,
    *,
    strip: bool,
    case: Case,
) -> IdTable:
    """The ids of all files together, sorted like those of one."""
    check_normalisation(strip, case)
    tables = [
        read_alone(Ask(path, columns, format, header), strip=strip, case=case)[0] for path in paths
    ]
    if len(tables) == 1:
        return tables[0]
    texts = {text for table in tables for text in table.texts(0, len(table))}
    return IdTable.from_texts(sorted_ids(texts), strip, case)
