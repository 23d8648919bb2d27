"""``silograph up``: a whole deployment on this machine, for a trial, and its first answer."""

import asyncio
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from silograph.cli.local_run import Reading, read_fold, read_universe
from silograph.cli.options import (
    Columns,
    FoldNodes,
    Format,
    Header,
    HubList,
    Json,
    K,
    Nodes,
    Since,
    TimeColumn,
    Until,
    check_question,
    column_pair,
    one_of,
    time_window,
)
from silograph.cli.output import echo, echo_json
from silograph.cli.study import answer_rows
from silograph.dp.loss import check_epsilon, shown_loss
from silograph.errors import ArgumentError
from silograph.ledger.book import Ledger
from silograph.methods.catalogue import QUERIES
from silograph.party.config import SiloConfig
from silograph.party.enrolment import Suggested
from silograph.party.joining import Choices, check_free
from silograph.party.roster import roster_words

__all__ = ["up"]

console = Console(highlight=False)
_FEWEST, _MOST = 3, 32
_SECONDS = 600.0
_WARNING = (
    "TRIAL ONLY: all keys and all edges are on this machine, so nothing is hidden from the person "
    "who runs it. In a deployment every party does its own steps on its own machine."
)


def up(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Edge files, one per silo.", show_default=False),
    ] = None,
    silos: Annotated[
        list[Path] | None,
        typer.Option(
            "--silos",
            help="The edge files, three or more: --silos a.csv b.csv c.csv.",
            show_default=False,
        ),
    ] = None,
    nodes: Nodes = None,
    query: Annotated[
        str,
        typer.Option(help=f"What to count: {', '.join(QUERIES)}.", autocompletion=one_of(QUERIES)),
    ] = "edges",
    k: K = None,
    epsilon: Annotated[
        float, typer.Option(help="The privacy loss of the study.", callback=check_epsilon)
    ] = 1.0,
    fold: FoldNodes = None,
    hubs: HubList = None,
    columns: Columns = None,
    format: Format = None,  # noqa: A002
    header: Header = None,
    time_column: TimeColumn = None,
    since: Since = None,
    until: Until = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="The folder to make. It stays; without it, and without --keep, nothing stays.",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Leave everything running, in --folder or else ./silograph-trial."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """From nothing to a first answer, on this machine: a trial of a deployment.

    Makes keys, certificates and configurations of a coordinator and of one silo per file, starts a
    broker (nats-server) and the silos as processes, proposes one study, shows its answer, and stops
    everything. The steps are those of silograph invite, join and admit.
    """
    from silograph.nats.coordinator import Question  # noqa: PLC0415 - needs the extra
    from silograph.nats.trial import Trial  # noqa: PLC0415

    every = [*(silos or ()), *(files or ())]
    if not _FEWEST <= len(every) <= _MOST:
        raise ArgumentError(
            f"up: {len(every)} edge files; a trial takes {_FEWEST} to {_MOST} silos, one per file"
        )
    check_question(query, k, "feat")
    folded = read_fold(fold, hubs, listed=True)
    question = Question(query, epsilon, "feat", "masked", k, fold=folded)
    began = time.perf_counter()
    pair = column_pair(columns)
    window = time_window(time_column, since, until)
    reading = Reading(nodes, columns=columns, format=format, header=header, window=window)
    universe = read_universe(every, reading)
    say = _Teller(quiet=as_json)
    with _place(folder, keep) as place:
        say.line(_WARNING)
        trial = Trial(place)
        listed = place / "nodes.txt"
        universe.save(listed)
        budget = max(Suggested.budget, epsilon)
        invitation = trial.found(listed, Suggested(epsilon, budget))
        say.step("invited", f"{trial.hub}: identity, authority, broker's configuration, invitation")
        for name, file in _named(every, {trial.hub, trial.consortium}).items():
            made = trial.join(invitation, Choices(
                name, edges=file, columns=None if pair is None else (str(pair[0]), str(pair[1])),
                format=format, header=header, window=window, nodes=listed, epsilon=epsilon,
                budget=budget, accept="auto",
            ))  # fmt: skip
            edges = 0 if made.data is None else len(made.data.silo)
            say.step("joined", f"{name}: identity, TLS key, configuration; {edges:,} edges")
        roster = trial.admit()
        words = roster_words(roster.digest)
        say.step(
            "admitted", f"{', '.join(trial.silos)}: certificates, and a roster that all signed"
        )
        say.line(f"           words of the roster: {' '.join(words)}")
        left = False
        # Ended from outside, it ends what it has started, too.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            trial.start()
            say.step("started", f"broker on localhost:{trial.port}, {len(trial.silos)} silos; "
                     f"processes {' '.join(map(str, trial.pids))}")  # fmt: skip
            found = _ask(trial, question)
            say.step("asked", f"{query} at ε = {shown_loss(epsilon)}, by {trial.hub}")
            took = time.perf_counter() - began
            _show(found, trial, as_json, took)
            left = keep
        finally:
            if not left:
                trial.stop()
            signal.signal(signal.SIGTERM, before)
        if keep:
            _say_kept(say, trial)
        else:
            say.line("all processes are stopped" + ("" if folder else "; nothing is left"))


class _Teller:
    """Prints what was done, one line a step, unless a program reads the output."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._last = time.perf_counter()

    def line(self, text: str) -> None:
        if not self._quiet:
            echo(text)

    def step(self, what: str, text: str) -> None:
        now = time.perf_counter()
        self.line(f"{now - self._last:4.1f} s  {what:<9} {text}")
        self._last = now


@contextmanager
def _place(folder: Path | None, keep: bool) -> Iterator[Path]:
    """The folder of the trial; a temporary one unless it is to stay."""
    if folder is None and not keep:
        with tempfile.TemporaryDirectory(prefix="silograph-trial-") as made:
            yield Path(made)
        return
    place = (folder or Path("silograph-trial")).absolute()
    check_free(place)
    place.mkdir(mode=0o700, exist_ok=True)
    yield place


def _named(files: list[Path], taken: set[str]) -> dict[str, Path]:
    """A silo's name for each file: the file's own, or a number where it does not fit."""
    found: dict[str, Path] = {}
    for number, file in enumerate(files, 1):
        name = re.sub(r"[^a-z0-9]+", "-", file.name.partition(".")[0].lower()).strip("-")[:63]
        fits = name and name not in taken | found.keys() | {"all", "ca", "broker"}
        found[name if fits else f"silo-{number}"] = file
    return found


def _ask(trial: Any, question: Any) -> dict[str, Any]:
    from silograph.nats.coordinator import CoordinatorService  # noqa: PLC0415

    service = CoordinatorService(trial.coordinator)
    try:
        plan = service.propose(question, _SECONDS)
        found: dict[str, Any] = asyncio.run(service.carry(plan.study.run))
    finally:
        service.close()
    return found


def _show(found: dict[str, Any], trial: Any, as_json: bool, seconds: float) -> None:
    spent = {}
    for name, made in trial.silos.items():
        if isinstance(made.config, SiloConfig):
            with Ledger(made.config.ledger.path) as ledger:
                spent[name] = ledger.spent(made.config.data.lineage).epsilon
    if as_json:
        echo_json({**found, "spent": spent, "seconds_in_all": round(seconds, 2),
                   "folder": str(trial.folder), "pids": trial.pids})  # fmt: skip
        return
    table = Table(show_header=False, box=None)
    for name, text in (
        *answer_rows(found["answer"]),
        ("method", f"{found['study']['method']} {found['protocol']}, {len(spent)} silos"),
        ("spent", f"ε = {shown_loss(max(spent.values()))} in each silo's ledger"),
        ("took", f"{seconds:.1f} s from nothing"),
    ):
        table.add_row(name, text)
    console.print(table)


def _say_kept(say: _Teller, trial: Any) -> None:
    hub = trial.coordinator.file
    silo = next(iter(trial.silos.values())).config.file
    say.line(f"running, in {trial.folder}. To go on:")
    for command in (
        f"silograph study propose edges --config {hub} --epsilon 1 --protocol masked",
        f"silograph silo status --config {silo}",
        f"silograph ledger show {silo.parent / f'{silo.parent.name}.ledger'}",
        f"kill {' '.join(map(str, trial.pids))}      # stops it; then remove the folder",
    ):
        say.line(f"  {command}")
    sys.stdout.flush()
