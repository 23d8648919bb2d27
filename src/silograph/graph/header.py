"""Finding the header of an edge table, and the two columns that hold the ends.

A row that is wrongly taken for a header is an edge that is quietly lost, so the first row is a
header only for a reason that a reader of the file would accept too.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from silograph.errors import ArgumentError, EdgeError
from silograph.graph.faults import shown

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
    """How the rows of a table are to be read."""

    fields: int
    first: int
    second: int
    header: tuple[str, ...] | None

    @property
    def columns(self) -> tuple[str, str] | tuple[int, int]:
        """The two columns by name, or by position where there are no names."""
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
    """Places of two columns whose names are known to mean the ends of an edge.

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
    """Two different names, or two different positions from 0 up."""
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
    """Two columns of a table that always has names, such as a data frame."""
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
    """How to read a table, from its first rows. ``holds`` asks the universe, if there is one."""
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
        # "u v" may be an edge between two letters: then the letters come again.
        again = {field for row in body for field in row}
        return not again.intersection(ends)
    # Names that are not known: they must look like names, and not be nodes of the universe.
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
