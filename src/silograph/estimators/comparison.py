"""Two releases in time: which counts have changed, and which changes are only noise."""

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from silograph.errors import ArgumentError, SilographError
from silograph.estimators.compose import sources
from silograph.estimators.estimate import Estimate, number, table
from silograph.estimators.tables import Table

__all__ = ["Change", "Comparison", "compare"]

#: With more nodes than this 4-cycles, which take n³ steps, are not compared.
_LARGE = 10_000
#: The chance that any of the verdicts of one comparison is wrong.
_WRONG = 0.05


@dataclass(frozen=True, eq=False)
class Change:
    """One count before and after, and what can be said of the difference."""

    before: Estimate[float]
    after: Estimate[float]
    #: After less before.
    difference: Estimate[float]
    verdict: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """The changes of all counts between two releases.

    Examples
    --------
    >>> import silograph as sg
    >>> graph = sg.clustered_power_law(60, seed=1)
    >>> release = sg.Release.draw(graph, sg.Channel.symmetric(3.0), seed=1)
    >>> release.compare(release)[0].difference.value
    0.0
    """

    changes: tuple[Change, ...]
    note: str = ""

    def __len__(self) -> int:
        return len(self.changes)

    def __getitem__(self, place: int) -> Change:
        return self.changes[place]

    def table(self) -> Table:
        """The comparison as a table.

        Returns
        -------
        Table
            One row a count.
        """
        ends = [change.difference.interval for change in self.changes]
        columns: dict[str, list[Any]] = {
            "count": [change.before.name for change in self.changes],
            "before": [float(change.before) for change in self.changes],
            "after": [float(change.after) for change in self.changes],
            "change": [float(change.difference) for change in self.changes],
            "stderr": [change.difference.stderr for change in self.changes],
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
            "verdict": [change.verdict for change in self.changes],
        }
        return Table("comparison", "count", columns)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain numbers and texts, ready for JSON.

        Returns
        -------
        dict
            The changes and the note.
        """
        names = list(self.table().columns)
        rows = [dict(zip(names, row, strict=True)) for row in self.table().rows()]
        return {"changes": rows, "note": self.note}

    def to_pandas(self) -> Any:
        """The table as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row a count.
        """
        return self.table().to_pandas()

    def to_polars(self) -> Any:
        """The table as a polars data frame.

        Returns
        -------
        polars.DataFrame
            One row a count.
        """
        return self.table().to_polars()

    def __str__(self) -> str:
        width = max((len(change.before.name) for change in self.changes), default=0)
        lines = []
        for change in self.changes:
            low, high = change.difference.interval
            lines.append(f"{change.before.name:{width}}  {change.verdict}")
            lines.append(
                f"  {number(float(change.before))} → {number(float(change.after))}, "
                f"change {_signed(float(change.difference))} "
                f"(95 % interval {_signed(low)} … {_signed(high)})"
            )
        return "\n".join([*lines, *textwrap.wrap(f"note: {self.note}", 79, subsequent_indent="  ")])

    def _repr_html_(self) -> str:
        """Show the comparison in notebooks."""
        rows = []
        for change in self.changes:
            low, high = change.difference.interval
            parts = (number(float(e)) for e in (change.before, change.after))
            between = f"{_signed(low)} … {_signed(high)}"
            difference = _signed(float(change.difference))
            rows.append((change.before.name, *parts, difference, between, change.verdict))
        head = ("count", "before", "after", "change", "95 % interval", "verdict")
        return table("what has changed", head, rows, right=(1, 2, 3, 4))


def compare(before: Any, after: Any) -> Comparison:
    """The change of every count that two releases answer."""
    for each in (before, after):
        if not hasattr(each, "edges") or not hasattr(each, "universe_digest"):
            raise ArgumentError(f"two releases are compared, not {type(each).__name__}")
    kept = [
        (one, other)
        for ask in _questions(before, after)
        if (one := _asked(ask, before)) is not None and (other := _asked(ask, after)) is not None
    ]
    if not kept:
        raise ArgumentError("there is no count that both of them answer")
    level = 1 - _WRONG / len(kept)
    changes = []
    for one, other in kept:
        difference = replace(other - one, query=f"change of {one.name}", note="")
        changes.append(Change(one, other, difference, _verdict(one, difference, level)))
    return Comparison(tuple(changes), _note(before, after))


def _questions(before: Any, after: Any) -> list[Callable[[Any], Estimate[float]]]:
    found: list[Callable[[Any], Estimate[float]]] = [
        lambda release: release.edges(),
        lambda release: release.kstars(2),
        lambda release: release.kstars(3),
        lambda release: release.triangles(),
        lambda release: release.clustering(),
    ]
    if max(_size(before), _size(after)) <= _LARGE:
        found.insert(4, lambda release: release.four_cycles())
    return found


def _size(release: Any) -> int:
    layout = getattr(release, "layout", None)
    return int(release.n if layout is None else layout.rows)


def _asked(ask: Callable[[Any], Estimate[float]], release: Any) -> Estimate[float] | None:
    try:
        found = ask(release)
    except (SilographError, AttributeError):  # too few nodes for it, or not opened
        return None
    return found if math.isfinite(float(found)) else None


def _verdict(before: Estimate[float], difference: Estimate[float], level: float) -> str:
    """What can be said of a change, in words."""
    if not difference.stderr and not float(difference):
        return "the same"
    low, high = difference.interval
    try:
        sure = difference.interval_at(level)
    except ArgumentError:  # only the interval at 95 % is known
        sure = None
    for ends, word in ((sure, "has"), ((low, high), "has perhaps")):
        if ends is not None and (ends[0] > 0 or ends[1] < 0):
            return f"{word} {'risen' if ends[0] > 0 else 'fallen'}"
    base = abs(float(before))
    reach = max(abs(low), abs(high))
    if base and reach < base:
        return f"no change to be seen; it would be below {100 * reach / base:.2g} %"
    return "no change to be seen through the noise"


def _note(before: Any, after: Any) -> str:
    if before is after or sources(before.edges()) == sources(after.edges()):
        return "this is one and the same run"
    found = (
        "“has” is said so rarely by chance that all of these lines together are wrong with a "
        "probability of at most 5 %; “has perhaps” is one line by itself"
    )
    if before.universe_digest != after.universe_digest:
        found += "; the node lists differ, so a change can also come from them"
    return found


def _signed(x: float) -> str:
    return f"+{number(x)}" if x > 0 else number(x).replace("-", "−")
