"""What local runs share: reading silos from files, and spending from a ledger."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, overload

import typer

from silograph.cli.exits import explain
from silograph.cli.options import column_pair, node_place, with_columns
from silograph.cli.output import note
from silograph.errors import AbortedError, ArgumentError, SilographError
from silograph.estimators.estimate import NO_ANSWER
from silograph.estimators.release import Release
from silograph.graph.bits import memory_of
from silograph.graph.fold import Fold
from silograph.graph.identifiers import Case
from silograph.graph.reading import Columns, LoadReport, known_pair
from silograph.graph.samples import read_graph
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.graph.window import Window
from silograph.ledger.book import Ledger
from silograph.local.federation import Federation
from silograph.methods.cost import memory_here, time_text
from silograph.methods.forecast import Forecast
from silograph.methods.planner import shown_percent

__all__ = [
    "Reading",
    "Spending",
    "asking",
    "mention",
    "read_like",
    "read_silos",
    "read_universe",
    "spending",
]


@dataclass(frozen=True)
class Reading:
    """The options that say how to read the files."""

    nodes: Path | None = None
    node_column: str | None = None
    columns: str | None = None
    format: str | None = None
    header: bool | None = None
    strip: bool = False
    case: Case = None
    window: Window | None = None


def read_silos(
    files: Sequence[Path], reading: Reading, *, folded: bool = False
) -> tuple[Silo, ...]:
    """Read one silo per file. Without a node list, the ids in the files are the nodes."""
    if not 2 <= len(files) <= 64:
        raise ArgumentError(
            f"{len(files)} edge file{'s' * (len(files) != 1)}: a run takes 2 to 64 silos, one per "
            "file (silograph split distributes one graph over several silos)"
        )
    files, own = own_columns(files, reading)
    universe = read_universe(files, reading, own)
    names = Counter(file.name for file in files)
    silos = tuple(
        Silo.from_file(
            universe,
            file,
            columns=columns,
            format=reading.format,
            header=reading.header,
            window=reading.window,
            name=file.name if names[file.name] == 1 else "",
        )
        for file, columns in zip(files, own, strict=True)
    )
    _mention(files, silos)
    if not folded and universe.is_open:
        raise ArgumentError("an open universe has no list of nodes: fold them into groups (--fold)")
    if not folded:
        _check_memory(len(universe), len(silos))
    return silos


@overload
def read_fold(text: str | None, hubs: Path | None, *, listed: Literal[True]) -> Fold | None: ...


@overload
def read_fold(
    text: str | None, hubs: Path | None, *, listed: Literal[False] = False
) -> Fold | Literal["auto"] | None: ...


def read_fold(
    text: str | None, hubs: Path | None, *, listed: bool = False
) -> Fold | Literal["auto"] | None:
    """How nodes are folded, from ``--fold`` and ``--hubs``; ``listed`` if hubs must be a list."""
    if text is None:
        if hubs is not None:
            raise ArgumentError("--hubs is for folded nodes; say how with --fold")
        return None
    if text == "auto" and not listed:
        if hubs is not None:
            raise ArgumentError("--fold auto finds hubs by itself; with --hubs, name the groups")
        return "auto"
    found = Fold.parse(text, None if hubs is None else _ids(hubs))
    if listed and isinstance(found.hubs, int) and found.hubs:
        raise ArgumentError(
            "a study names its hubs: find them with a study of method hubs, and give its table as "
            "--hubs"
        )
    return found


def _ids(path: Path) -> tuple[str, ...]:
    table = path.suffix in (".csv", ".tsv")
    return NodeUniverse.from_file(path, column=0 if table else None).ids


def _check_memory(nodes: int, silos: int) -> None:
    """Refuse a run that would exhaust the memory, because it would still spend its budget."""
    needed, there = nodes * nodes // 8 + silos * memory_of(nodes), memory_here()
    if needed > there:
        raise ArgumentError(
            f"{nodes:,} nodes: one bit for every pair of them, for {silos} silos and the release,"
            f" takes {needed / 1e9:,.1f} GB, and this machine has {there / 1e9:,.1f}; fold the"
            " nodes into groups (--fold), or use a larger machine or a smaller node list"
        )


def own_columns(files: Sequence[Path], reading: Reading) -> tuple[list[Path], list[Columns]]:
    """The files, and the columns of each: its own, or those of all."""
    given = column_pair(reading.columns)
    found = [with_columns(file, given) for file in files]
    return [file for file, _ in found], [columns for _, columns in found]


def read_universe(
    files: Sequence[Path], reading: Reading, own: Sequence[Columns] | None = None
) -> NodeUniverse:
    """The node list; without one, the ids in the files, with a note that this shows something."""
    if own is None:
        files, own = own_columns(files, reading)
    if reading.nodes is not None:
        place = node_place(reading.node_column)
        return NodeUniverse.from_file(
            reading.nodes, column=place, strip=reading.strip or None, case=reading.case
        )
    made = NodeUniverse.from_edge_files(
        *files,
        columns=list(own),
        format=reading.format,
        header=reading.header,
        strip=reading.strip,
        case=reading.case,
        window=reading.window,
    )
    note(
        f"the node list is the {len(made):,} ids in the files, which shows who has an edge; "
        "a deployment needs a public list on which all parties agree (--nodes)"
    )
    return made


def _mention(files: Sequence[Path], silos: Sequence[Silo]) -> None:
    """Print notes about likely mistakes in the files."""
    for place, file in enumerate(files):
        if any(file.samefile(other) for other in files[:place]):
            note(f"{file} is given more than once; each time counts as a silo")
    mention(*(silo.report for silo in silos))


def mention(*reports: LoadReport) -> None:
    """Print what was decided about files, and what was not taken from them."""
    for what, count in (
        ("self-loops dropped", attrgetter("self_loops")),
        ("repeated rows merged", attrgetter("repeats")),
        ("rows outside the time window left out", attrgetter("outside")),
    ):
        found = [f"{report.source} {count(report):,}" for report in reports if count(report)]
        if found:
            note(f"{what}: {', '.join(found)}")
    for report in reports:
        if report.header is not None and known_pair(report.header) is None:
            names = ", ".join(report.header)
            note(
                f"{report.source}: the first row is taken for a header ({names}); if not: "
                "--no-header"
            )


#: Runs that take longer are asked about first, in seconds. What shorter ones cost is said on a
#: terminal, or from a sixth of this time.
_LONG = 60.0


def asking(*, yes: bool, quiet: bool = False) -> Callable[[Forecast], None]:
    """Say what a run is expected to cost and to give, and ask before one that few would want."""

    def confirm(expected: Forecast) -> None:
        cost, reasons = expected.cost, []
        if cost is not None:
            known = expected.relative is not None and not expected.useless
            error = f"; an error of {shown_percent(expected.relative or 0.0)}" if known else ""
            if not quiet and (sys.stderr.isatty() or cost.seconds > _LONG / 6):
                note(f"expected: {cost}{error}")
            if cost.seconds > _LONG:
                reasons.append(f"it takes about {time_text(cost.seconds)}")
        if expected.useless:
            note(expected.warning)
            reasons.append(f"{NO_ANSWER} is expected")
        if not reasons or yes:
            return
        if not sys.stdin.isatty():
            raise ArgumentError(
                f"{' and '.join(reasons)}: nothing was spent; to run it anyway, give --yes"
            )
        typer.confirm("Run it anyway?", abort=True, err=True)

    return confirm


class Spending:
    """A run's access to a ledger, if there is one."""

    def __init__(self, ledger: Ledger | None, lineage: str, *, new: bool = False) -> None:
        self.ledger = ledger
        self.lineage = lineage
        self._new = new
        self._before = self._count()

    def federation(self, silos: Sequence[Silo]) -> Federation:
        """Make a federation of the silos that spends from this ledger."""
        return Federation.simulate(silos, self.ledger, lineage=self.lineage, new_lineage=self._new)

    def _count(self) -> int:
        return 0 if self.ledger is None else len(self.ledger.rows(self.lineage))

    def new(self) -> str:
        """Describe what this run has spent."""
        if self.ledger is None:
            return "no ledger was given, so no spend is recorded"
        made = self.ledger.rows(self.lineage)[self._before :]
        if not made:
            return "nothing was spent"
        spent = "; ".join(f"entry {row.number}, {row.method}" for row in made)
        total = self.ledger.spent(self.lineage)
        return (
            f"the spend stays recorded in {self.ledger.path.name} ({spent}): "
            f"{self.lineage} has now spent {total}"
        )

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Write a result inside this context. If writing fails, the error says what was spent."""
        try:
            yield
        except (SilographError, OSError) as error:
            raise SilographError(f"{explain(error)[1]}; {self.new()}") from error
        except KeyboardInterrupt as stop:
            raise AbortedError(
                f"interrupted while the file was written; {self.new()}", code="interrupted"
            ) from stop

    def to_dict(self) -> dict[str, Any] | None:
        """Return the lineage's current totals, or None without a ledger."""
        if self.ledger is None:
            return None
        left = self.ledger.remaining(self.lineage)
        return {
            "path": str(self.ledger.path),
            "lineage": self.lineage,
            "spent": self.ledger.spent(self.lineage).to_dict(),
            "remaining": None if left is None else left.to_dict(),
        }

    def __str__(self) -> str:
        if self.ledger is None:
            return ""
        left = self.ledger.remaining(self.lineage)
        rest = "no limit is set" if left is None else f"{left.text(left=True)} is left"
        spent = self.ledger.spent(self.lineage)
        return f"  ledger {self.ledger.path.name}: {self.lineage} has spent {spent}; {rest}"


@contextmanager
def spending(path: Path | None, lineage: str, *, new: bool = False) -> Iterator[Spending]:
    """Open the ledger for one run. After an interrupt, the error says what was spent."""
    ledger = None if path is None else Ledger(path)
    try:
        account = Spending(ledger, lineage, new=new)
        try:
            yield account
        except KeyboardInterrupt:
            raise AbortedError(
                f"interrupted: no answer was given and nothing was written; {account.new()}",
                code="interrupted",
            ) from None
    finally:
        if ledger is not None:
            ledger.close()


def read_like(graph: Path | None, release: Path | None) -> Silo | Release | None:
    """Read the public file of a similar graph, or a past release."""
    if graph is not None and release is not None:
        raise ArgumentError("give --like-graph or --like-release, not both")
    if graph is not None:
        return read_graph(graph)
    return None if release is None else Release.load(release)
