"""Files of node lists: Silograph's own format with a digest, and plain lists or tables of ids.

The own format is text: one line ``# silograph-universe v1 n=… strip=… case=… sha256=…``, then one
id per line. The file of an open universe consists of that line alone, with ``open`` for ``n=…``.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike, fspath

from silograph._core import EdgeText, LineError
from silograph.errors import ArgumentError, EdgeError, UniverseError
from silograph.graph.identifiers import Case, line_fault, open_text, shown
from silograph.graph.reading import is_number
from silograph.whole_files import written_whole

__all__ = ["Kept", "read", "write"]

_MARK = "# silograph-universe "
_FIRST = re.compile(
    r"# silograph-universe v1 (?:n=(\d{1,10})|open) strip=(true|false) case=(none|lower|upper)"
    r" sha256=([0-9a-f]{64})"
)
_NAMES = frozenset({"id", "ids", "node", "nodes", "node_id", "nodeid", "vertex", "user_id"})


@dataclass(frozen=True, slots=True)
class Kept:
    """The content of the first line of the own format."""

    #: The number of nodes; None for an open universe.
    n: int | None
    strip: bool
    case: Case
    digest: str


def write(path: str | PathLike[str], kept: Kept, ids: Iterable[str]) -> None:
    """Write the own format, completely or not at all."""
    nodes = "open" if kept.n is None else f"n={kept.n}"
    first = (
        f"{_MARK}v1 {nodes} strip={str(kept.strip).lower()} "
        f"case={kept.case or 'none'} sha256={kept.digest}\n"
    )
    with written_whole(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.write(first)
        file.writelines(f"{id_}\n" for id_ in ids)


def read(
    path: str | PathLike[str], *, column: str | int | None, header: bool | None
) -> tuple[list[str], Kept | None]:
    """The ids of a file, and the content of its first line if it is in the own format."""
    source = fspath(path)
    delimiter = _delimiter(source)
    try:
        text = open_text(path)
        if _is_own(text):  # whatever its name ends in
            lines = text.lines()
            return lines[1:], _kept(source, lines[0])
        if delimiter is None and column is None:
            ids = [line for line in text.lines() if line.strip()][bool(header) :]
        else:
            ids = _column(source, text, delimiter, column, header)
    except LineError as error:
        raise UniverseError(str(line_fault(source, error))) from None
    except EdgeError as error:
        raise UniverseError(str(error)) from None
    if not ids:
        raise UniverseError(f"{source}: there are no ids in it")
    return ids, None


def _is_own(text: EdgeText) -> bool:
    try:
        rows = text.head(ord(","), 1)
    except LineError:  # a list may contain lines that a table may not
        return False
    return bool(rows) and rows[0][0].startswith(_MARK)


def _delimiter(source: str) -> int | None:
    stem = source.lower().removesuffix(".gz")
    if stem.endswith(".csv"):
        return ord(",")
    return ord("\t") if stem.endswith((".tsv", ".tab")) else None


def _kept(source: str, line: str) -> Kept:
    match = _FIRST.fullmatch(line)
    if match is None:
        raise UniverseError(
            f"{source}:1: a universe file of another version, or a damaged first line"
        )
    n, strip, case, digest = match.groups()
    known: dict[str, Case] = {"lower": "lower", "upper": "upper"}
    return Kept(int(n) if n else None, strip == "true", known.get(case), digest)


def _column(
    source: str,
    text: EdgeText,
    delimiter: int | None,
    column: str | int | None,
    header: bool | None,
) -> list[str]:
    rows = text.head(delimiter, 100)
    if not rows:
        return []
    first, body = rows[0], rows[1:]
    if column is None:
        known = [place for place, field in enumerate(first) if field.strip().lower() in _NAMES]
        if len(first) > 1 and len(known) != 1:
            some = ", ".join(map(shown, first[:8]))
            raise UniverseError(
                f"{source}:1: {len(first)} columns ({some}); pass column= to choose one"
            )
        place = known[0] if len(known) == 1 else 0
    elif isinstance(column, str):
        if column not in first or header is False:
            some = ", ".join(map(shown, first[:8]))
            raise ArgumentError(f"{source}: no column {shown(column)}; the first row is {some}")
        place, header = first.index(column), True
    else:
        place = column
        if isinstance(column, bool) or not 0 <= column < len(first):
            raise ArgumentError(
                f"{source}: column is {column!r}; the columns are 0 … {len(first) - 1}"
            )
    if header is None:
        numbers = bool(body) and all(is_number(row[place]) for row in body if place < len(row))
        named = first[place].strip().lower() in _NAMES
        header = named or (numbers and not is_number(first[place]))
    # The second column of a layout is not used here; any position past the last one will do.
    return text.column((delimiter, len(first), place, len(first), header, None))
