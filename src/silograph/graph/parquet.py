"""Parquet files, through pyarrow or else polars, whichever is installed."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path

from silograph.errors import EdgeError
from silograph.extras import library
from silograph.graph.header import Choice, Columns, choose_named
from silograph.graph.interop import polars_values

MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True)
class Table:
    """The two columns that hold the ends, and how they were chosen."""

    ends: tuple[Iterable[object], Iterable[object]]
    choice: Choice


def read(path: str | PathLike[str], columns: Columns) -> Table:
    """Reads two columns and no more."""
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
    except (OSError, ValueError) as error:  # pyarrow's errors are of these kinds
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
