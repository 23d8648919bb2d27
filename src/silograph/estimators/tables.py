"""Tables of answers: for the terminal, notebooks, CSV files and data frames."""

import csv
import io
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from silograph.errors import ArgumentError
from silograph.estimators.display import Places, number, table
from silograph.extras import library

__all__ = ["Table", "entry_of", "places_of", "span", "table_of"]

#: Rows that are shown; a file or a data frame has all of them.
SHOWN = 20
#: The characters of a line, and of the shortest and the longest bar of a histogram.
_LINE, _BARS = 79, (8, 30)
#: The columns of numbers, as programs and as people call them.
NUMBERS = {"value": "value", "stderr": "±", "low": "from", "high": "to"}
_EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True, eq=False)
class Table:
    """Answers with what they stand for, their standard errors and their intervals.

    Examples
    --------
    >>> columns = {"node": ["a", "b"], "value": [1.0, 2.0], "stderr": [0.5, 0.5]}
    >>> print(Table("degrees", "node", columns).to_csv(), end="")
    node,value,stderr
    a,1.0,0.5
    b,2.0,0.5
    """

    name: str
    #: What one row stands for, as it is called.
    each: str
    #: Names and lists of equal length.
    columns: Mapping[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows, without the header."""
        return list(zip(*self.columns.values(), strict=True))

    def labels(self) -> list[str]:
        """What each row stands for, in one text."""
        first, second, *_ = self.columns.values()
        match self.each:
            case "bin":
                return [span(*each) for each in zip(first, second, strict=True)]
            case "pair of groups":
                return [f"{a} – {b}" for a, b in zip(first, second, strict=True)]
            case "node":
                return [f"node {id_}" if isinstance(id_, int) else id_ for id_ in first]
        return list(map(str, first))

    def to_csv(self) -> str:
        """The table as CSV, with a header.

        Returns
        -------
        str
            The text. What is not a number is empty.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_written(cell) for cell in row] for row in self.rows())
        return out.getvalue()

    def to_pandas(self) -> Any:
        """The table as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            The table.
        """
        return library("pandas", "data frames").DataFrame(dict(self.columns))

    def to_polars(self) -> Any:
        """The table as a polars data frame.

        Returns
        -------
        polars.DataFrame
            The table.
        """
        return library("polars", "data frames").DataFrame(dict(self.columns))

    def __str__(self) -> str:
        """The first rows, aligned; of a histogram all, with bars."""
        drawn = self.each == "bin"
        names, right, shown = self._shown(None if drawn else SHOWN)
        lines = _aligned(names, right, shown)
        if drawn:
            room = _LINE - 2 - 2 - max(map(len, lines))
            bars = _bars(self.columns["value"], min(max(room, _BARS[0]), _BARS[1]))
            lines = [
                f"{line}  {bar}".rstrip() for line, bar in zip(lines, ["", *bars], strict=True)
            ]
        left = len(self) - len(shown)
        more = [f"… and {left:,} more"] if left else []
        return "\n".join(f"  {line}" for line in (*lines, *more))

    def _repr_html_(self) -> str:
        """Show the first rows in notebooks."""
        names, right, shown = self._shown(SHOWN)
        left = len(self) - len(shown)
        numbers = [place for place, numeric in enumerate(right) if numeric]
        return table(f"the first {len(shown)}" if left else "", names, shown, right=numbers)

    def _shown(self, most: int | None) -> tuple[list[str], list[bool], list[tuple[str, ...]]]:
        """Names, which of them are of numbers, and rows as text, at most so many."""
        columns = dict(self.columns)
        if self.each == "bin":
            first, last, *_ = columns
            spans = zip(columns.pop(first), columns.pop(last), strict=True)
            columns = {"degree": [span(*each) for each in spans], **columns}
        right = [_is_number(column) for column in columns.values()]
        cells = [_texts(column[:most]) for column in columns.values()]
        names = [NUMBERS.get(name, name) for name in columns]
        return names, right, list(zip(*cells, strict=True))


def _aligned(names: list[str], right: list[bool], rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of equal columns, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if numeric else text.ljust(width)
            for text, width, numeric in zip(row, widths, right, strict=True)
        )
        for row in (names, *rows)
    ]


def span(first: int, last: int) -> str:
    """A range of whole numbers, as it is shown.

    >>> span(4, 7), span(1, 1)
    ('4–7', '1')
    """
    return f"{first:,}" if first == last else f"{first:,}–{last:,}"


def table_of(answer: Any) -> Table:
    """The table of an answer: one row, or one for each entry of an array."""
    low, high = answer.interval
    numbers = (answer.value, answer.stderr, low, high)
    if not isinstance(answer.value, np.ndarray):
        found = {name: [float(x)] for name, x in zip(NUMBERS, numbers, strict=True)}
        return Table(answer.name, "answer", {"answer": [answer.name], **found})
    places = places_of(answer)
    entries = slice(None) if places.entries is None else places.entries
    found = {
        name: np.asarray(x)[entries].tolist() for name, x in zip(NUMBERS, numbers, strict=True)
    }
    names = {name: list(column) for name, column in places.columns.items()}
    return Table(answer.name, places.each, {**names, **found})


def places_of(answer: Any) -> Places:
    """What the entries of an array stand for."""
    given: Places | None = answer.places
    if given is not None:
        return given
    bins: Sequence[int] | None = answer.parameters.get("bins")
    if bins is not None:
        pairs = list(itertools.pairwise(bins))
        columns = {"degree from": [a for a, _ in pairs], "degree to": [b - 1 for _, b in pairs]}
        return Places("bin", columns)
    universe = None if answer.origin is None else answer.origin.universe
    known = universe is not None and universe.size == answer.value.size
    return Places(
        "node", {"node": universe.ids if known and universe else range(answer.value.size)}
    )


def entry_of(answer: Any, place: tuple[object, ...]) -> Any:
    """One entry of an array-valued answer, by what it stands for."""
    if not isinstance(answer.value, np.ndarray):
        raise ArgumentError(f"{answer.name} is one answer; there is nothing to choose")
    places = places_of(answer)
    keys = list(places.columns)[: max(len(place), 1)]
    if len(place) != (2 if places.entries is not None else 1):
        raise ArgumentError(f"{answer.name} is by {' and '.join(places.columns)}")
    rows = list(zip(*(map(str, places.columns[key]) for key in keys), strict=True))
    wanted = tuple(map(str, place))
    # A pair of groups has no order.
    found = next((i for i, row in enumerate(rows) if row in (wanted, wanted[::-1])), None)
    if found is None:
        raise ArgumentError(f"{answer.name}: there is no {places.each} {' and '.join(wanted)}")
    index = found if places.entries is None else tuple(int(axis[found]) for axis in places.entries)

    def one(array: Any) -> float:
        return float(array[index])

    def limits(level: float) -> tuple[float, float]:
        low, high = answer.interval_at(level)
        return one(low), one(high)

    return replace(
        answer,
        value=one(answer.value),
        stderr=one(answer.stderr),
        parameters={**answer.parameters, **dict(zip(keys, rows[found], strict=True))},
        margin=None if answer.margin is None else one(answer.margin),
        ends=None if answer.ends is None else (one(answer.ends[0]), one(answer.ends[1])),
        limits=None if answer.limits is None else limits,
        places=None,
        form=None if answer.form is None else answer.form(found),
    )


def _is_number(cells: list[Any]) -> bool:
    return all(isinstance(cell, int | float) for cell in cells)


def _texts(cells: list[Any]) -> list[str]:
    """The cells of a column; numbers with as many digits as the largest one needs."""
    finite = [abs(cell) for cell in cells if isinstance(cell, float) and math.isfinite(cell)]
    whole = len(str(int(max(finite, default=0.0))))
    digits = max(4 - whole, 0)

    def text(cell: Any) -> str:
        if isinstance(cell, float) and not math.isfinite(cell):
            return "–" if math.isnan(cell) else "∞" if cell > 0 else "−∞"
        if isinstance(cell, float) and whole > 15:
            return number(cell).replace("-", "−")
        if isinstance(cell, float):
            # Noise below the last digit has no sign.
            return f"{round(cell, digits) + 0.0:,.{digits}f}".replace("-", "−")
        return f"{cell:,}" if isinstance(cell, int) else str(cell)

    return list(map(text, cells))


def _written(cell: Any) -> Any:
    return "" if isinstance(cell, float) and math.isnan(cell) else cell


def _bars(values: Sequence[float], longest: int) -> list[str]:
    """Bars in eighths of a character; nothing for what is below zero."""
    most = max((v for v in values if math.isfinite(v)), default=0.0)
    found = []
    for value in values:
        known = most > 0 and math.isfinite(value)
        eighths = round(8 * longest * max(value, 0.0) / most) if known else 0
        found.append("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip())
    return found
