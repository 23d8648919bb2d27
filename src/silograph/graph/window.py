"""A time window: which rows of an edge table are read.

A table may have a column with times, such as the day of a payment. A window takes the rows whose
time is in [since, until): windows of consecutive days have no row in common, and leave none out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from silograph._core import instant
from silograph.errors import ArgumentError, EdgeError
from silograph.graph.identifiers import NO_TIME, shown

__all__ = ["Moment", "Window"]

#: A time as people write it: an ISO date or time, seconds since 1970, or an object.
Moment = str | int | float | date


@dataclass(frozen=True, slots=True)
class Window:
    """The rows of an edge table whose time is in [since, until).

    Times are ISO dates, with or without a time of day, or seconds since 1970; in Parquet files also
    dates and timestamps. A time without a zone is in UTC. A row whose time cannot be read is an
    error.

    Parameters
    ----------
    column
        The column that holds the time, by name or by position.
    since
        The first time that is taken; None for all from the beginning.
    until
        The first time that is no longer taken; None for all to the end.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from silograph import NodeUniverse, Silo
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "edges.csv"
    >>> _ = path.write_text("source,target,day\\n0,1,2026-01-31\\n1,2,2026-02-01\\n")
    >>> january = Window("day", "2026-01-01", "2026-02-01")
    >>> silo = Silo.from_file(NodeUniverse.range(3), path, window=january)
    >>> len(silo), silo.report.outside
    (1, 1)
    """

    column: str | int
    since: Moment | None = None
    until: Moment | None = None

    def __post_init__(self) -> None:
        column = self.column
        named = isinstance(column, str) and column
        placed = isinstance(column, int) and not isinstance(column, bool) and column >= 0
        if not (named or placed):
            raise ArgumentError(
                f"the time column is {shown(column)}; it must be a name, or a position from 0 up"
            )
        if self.since is None and self.until is None:
            raise ArgumentError("a time window needs since, until or both")
        first, last, _ = self.bounds
        if first >= last:
            raise ArgumentError(
                f"the time window ends at {self.until}, which is not after its start, {self.since}"
            )

    @property
    def bounds(self) -> tuple[int, int, bool]:
        """The two ends in microseconds since 1970, and whether one of them is a date."""
        ends = []
        for end, none in ((self.since, -(2**63)), (self.until, 2**63 - 1)):
            found = none if end is None else _microseconds(end, dates=False)
            if found is None:
                raise ArgumentError(f"the time window has {shown(end)}, which is {NO_TIME}")
            ends.append(found)
        dated = any("-" in str(end)[1:] for end in (self.since, self.until))
        return ends[0], ends[1], dated

    def inside(self, times: Any, place: Callable[[int], str]) -> npt.NDArray[np.bool_]:
        """Which of the values of a column are in the window.

        ``times`` is an array of any kind; ``place`` says in words where a value stands.
        """
        first, last, dates = self.bounds
        found: list[int | None]
        if times.dtype.kind == "M":
            late = np.isnat(times)
            micro = times.astype("datetime64[us]").astype(np.int64)
            if not late.any():
                return np.asarray((first <= micro) & (micro < last))
            found = [None if gone else 0 for gone in late.tolist()]
        else:
            found = [_microseconds(value, dates=dates) for value in times.tolist()]
        if None in found:
            number = found.index(None)
            what = f"the time {shown(times[number])} is {NO_TIME}"
            raise EdgeError(f"{place(number)}: {what}")
        return np.array([first <= time < last for time in found if time is not None], dtype=bool)


def _microseconds(value: object, *, dates: bool) -> int | None:
    """A time in microseconds since 1970; None if it is not one."""
    if isinstance(value, datetime | date):
        return instant(value.isoformat(), dates)
    if isinstance(value, float):
        return instant(f"{value:.6f}", dates)
    if isinstance(value, str | int) and not isinstance(value, bool):
        return instant(str(value), dates)
    return None
