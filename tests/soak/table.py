"""What is tried, how it ended, and the table of it all."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.nats.faults import NAMED

__all__ = ["Found", "Outcome", "Trial", "WrongError", "merged", "saved", "table"]


class WrongError(Exception):
    """Something is not as expected."""


@dataclass(frozen=True)
class Found:
    """What came of a trial. ``wrong`` is empty if all is well."""

    happened: str
    wrong: tuple[str, ...] = ()
    #: Within how many seconds the last of those who waited had named the cause, if anyone waited.
    named: float | None = None


@dataclass(frozen=True)
class Trial:
    """One case of a fault, what is expected of it, and how to bring it about in a folder."""

    fault: str
    case: str
    expected: str
    run: Callable[[Path], Found]

    def tried(self, folder: Path) -> "Outcome":
        """Try it. An error is a wrong outcome, not the end of the soak."""
        began = time.monotonic()
        try:
            found = self.run(folder)
        except Exception as error:
            found = Found("wrong", (f"{type(error).__name__}: {error}",))
        late = found.named is not None and found.named > NAMED
        wrong = (*found.wrong, *([f"the cause was named after {NAMED:.0f} s"] if late else []))
        return Outcome(
            self.fault, self.case, self.expected, "wrong" if wrong else found.happened, wrong,
            round(time.monotonic() - began, 1),
            None if found.named is None else round(found.named, 1),
        )  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """How one case ended."""

    fault: str
    case: str
    expected: str
    happened: str
    wrong: tuple[str, ...]
    seconds: float
    named: float | None = None

    def __str__(self) -> str:
        named = "" if self.named is None else f"  named in {self.named:.1f} s"
        wrong = f"  {'; '.join(self.wrong)}" if self.wrong else ""
        return f"{self.case:44} {self.happened:14} {self.seconds:5.1f} s{named}{wrong}"


_HEAD = ("fault", "cases", "expected", "happened", "slowest naming of the cause")


def table(outcomes: Iterable[Outcome]) -> str:
    """A line for each fault, as Markdown."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.fault, []).append(outcome)
    rows = [_row(fault, groups[fault]) for fault in sorted(groups)]
    widths = [max(len(row[i]) for row in (_HEAD, *rows)) for i in range(len(_HEAD))]
    lines = [_HEAD, tuple("-" * width for width in widths), *rows]
    return "".join(f"| {' | '.join(map(str.ljust, line, widths))} |\n" for line in lines)


def _row(fault: str, found: Sequence[Outcome]) -> tuple[str, ...]:
    expected = "; ".join(dict.fromkeys(outcome.expected for outcome in found))
    counts = Counter(outcome.happened for outcome in found)
    happened = ", ".join(f"{count} × {what}" for what, count in counts.most_common())
    named = max((o.named for o in found if o.named is not None), default=None)
    return fault, str(len(found)), expected, happened, "" if named is None else f"{named:.1f} s"


def saved(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write all outcomes as JSON."""
    path.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n")


def merged(paths: Iterable[Path]) -> list[Outcome]:
    """The outcomes of several parts; of a case that was tried again, the last one."""
    rows = [row for path in paths for row in json.loads(path.read_text())]
    found = [Outcome(**{**row, "wrong": tuple(row["wrong"])}) for row in rows]
    return list({outcome.case: outcome for outcome in found}.values())
