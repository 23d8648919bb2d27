"""``python -m reproduction``: run the paper's experiments, and make their report."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from reproduction.definitions import ALIASES, Definition, named, read_definition
from reproduction.page import reproduction_page
from reproduction.results import EXPERIMENTS, FILE, Results, load_all
from reproduction.runner import reproduce as run_experiments
from reproduction.summary import markdown as summary
from reproduction.tasks import Task
from reproduction.verdicts import counted, judge
from silograph import whole_files
from silograph.cli import run as run_app
from silograph.cli.exits import HELP
from silograph.cli.options import Json
from silograph.cli.output import echo_json, noted
from silograph.dp.loss import shown_loss
from silograph.errors import AbortedError, ArgumentError, ReportError

__all__ = ["app", "main", "report", "reproduce"]

#: What the program calls itself.
NAME = "python -m reproduction"


# --- Running --------------------------------------------------------------------------------------

console = Console(highlight=False)


def reproduce(
    figure: Annotated[
        list[str] | None,
        typer.Option(help="An experiment, or a figure of the paper (see --list). May be repeated."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small generated graph: seconds, no data files.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("experiments"),
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Processes; one a core by default.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments, and end.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run again what is finished or was begun.")
    ] = False,
    parameters: Annotated[
        Path | None,
        typer.Option(help="A folder with parameter files of your own, one for each --figure."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments, as printed and as mended, and some that it does not have.

    Each experiment gets a folder below DIR with its parameters and its results. A run that was
    stopped or killed is continued by the same command; what is finished is kept.
    """
    names = list(dict.fromkeys(named(name) for name in figure)) if figure else list(EXPERIMENTS)
    definitions = [read_definition(name, quick=quick, folder=parameters) for name in names]
    if listed:
        _list(definitions, as_json=as_json)
        return
    with _Bar() as bar:
        try:
            found = run_experiments(definitions, out, bar, jobs=jobs or _cores(), fresh=fresh)
        except KeyboardInterrupt:
            raise AbortedError(
                "stopped; the same command continues where it was", code="interrupted"
            ) from None
    if as_json:
        echo_json({name: _summary(out, one) for name, one in found.items()})
        return
    console.print(_table(definitions, found))
    for glance in _glances(found):
        console.print(glance)
    # Not by the console: it would wrap a path, and read brackets in it as its own.
    typer.echo(f"Results: {out}/<experiment>/{FILE}")
    typer.echo(f"The report with all figures: python -m reproduction report {out}")


def _cores() -> int:
    return len(os.sched_getaffinity(0))


class _Bar:
    """A bar on the terminal, and a line for every finished experiment; silent elsewhere."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        if sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f} %"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )

    def __enter__(self) -> "_Bar":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begin(self, todo: Sequence[Task], kept: int) -> None:
        """So much is to do."""
        if self._bar is not None and todo:
            if kept:
                self._bar.console.print(f"continuing: {kept} of {kept + len(todo)} tasks are done")
            self._task = self._bar.add_task("experiments", total=sum(task.cost for task in todo))

    def done(self, task: Task) -> None:
        """A task less."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=task.cost, description=task.experiment)

    def finished(self, found: Results) -> None:
        """An experiment less."""
        if self._bar is not None:
            self._bar.console.print(f"{found.experiment}: {len(found.rows)} rows")


def _list(definitions: Sequence[Definition], *, as_json: bool) -> None:
    if as_json:
        every = {
            one.name: {
                "title": one.title,
                "paper": one.parameters["paper"],
                "kind": one.kind,
                "aliases": _aliases(one.name),
            }
            for one in definitions
        }
        echo_json(every)
        return
    for one in definitions:
        console.print(f"[bold]{one.name}[/]  {one.title}")
        about = [str(one.parameters["paper"])]
        if aliases := _aliases(one.name):
            about.append(f"also: {', '.join(aliases)}")
        for line in about:
            console.print(Padding(Text(line), (0, 0, 0, 2)), style="dim")


def _aliases(name: str) -> list[str]:
    return [alias for alias, meant in ALIASES.items() if meant == name]


def _summary(out: Path, found: Results) -> dict[str, object]:
    return {
        "results": str(out / found.experiment / FILE),
        "kind": found.kind,
        "quick": found.quick,
        "rows": len(found.rows),
        "left_out": len(found.left_out),
        "seed": found.parameters.get("seed"),
    }


def _table(definitions: Sequence[Definition], found: dict[str, Results]) -> Table:
    table = Table(title="experiments", title_justify="left")
    for name in ("experiment", "graphs", "seed", "rows", "left out"):
        table.add_column(name, justify="left" if name in ("experiment", "graphs") else "right")
    for one in definitions:
        gave = found[one.name]
        table.add_row(
            one.name + (" (quick)" if gave.quick else ""),
            ", ".join(gave.graphs) or "-",
            str(one.seed) if "seed" in one.parameters else "-",
            str(len(gave.rows)),
            str(len(gave.left_out)) if gave.left_out else "-",
        )
    return table


def _glances(found: dict[str, Results]) -> list[Table]:
    """Mean relative errors of every method at one ε, a table for each graph of ``epsilon``."""
    if "epsilon" not in found:
        return []
    rows = found["epsilon"].rows
    tables = []
    for graph in found["epsilon"].graphs:
        here = [row for row in rows if row["graph"] == graph]
        epsilons = sorted({row["epsilon"] for row in here}, key=lambda epsilon: abs(epsilon - 3))
        errors = {
            (row["method"], row["form"], row["variant"], row["query"]): row["mre"]
            for row in here
            if row["epsilon"] == epsilons[0]
        }
        queries = list(dict.fromkeys(key[3] for key in errors))
        title = f"mean relative error on {graph}, ε = {shown_loss(epsilons[0])}"
        table = Table(title=title, title_justify="left")
        for name in ("method", "form", *queries):
            table.add_column(name, justify="right" if name in queries else "left")
        for method, form, variant in dict.fromkeys(key[:3] for key in errors):
            cells = [errors.get((method, form, variant, query)) for query in queries]
            shown = ("-" if error is None else _percent(error) for error in cells)
            table.add_row(method, f"{form} {variant}".strip(), *shown)
        tables.append(table)
    return tables


def _percent(error: float) -> str:
    return (
        f"{100 * error:.3g} %"
        if error < 10
        else f"{error:,.3g} ×"
        if error < 1e3
        else f"{error:.1e} ×"
    )


# --- The report -----------------------------------------------------------------------------------


def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="What run wrote.", show_default=False),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write.", show_default="DIR/report.html")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write a summary in Markdown.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the page of the reproduction: verdicts, figures, errata; one file, opens offline."""
    page = out or folder / "report.html"
    if markdown == page:
        raise ArgumentError(f"{page}: cannot be both the page and the summary; choose two names")
    found = load_all(folder)
    verdicts = judge(found)
    # Both are made before either is written.
    texts = {page: reproduction_page(found)} | ({markdown: summary(found)} if markdown else {})
    for path, text in texts.items():
        whole_files.replace(path, text.encode(), ReportError, mode=0o644)
    quick = any(results.quick for results in found.values())
    if as_json:
        echo_json(
            {
                "page": str(page),
                "quick": quick,
                "experiments": list(found),
                "verdicts": [verdict.to_dict() for verdict in verdicts],
            }
        )
        return
    shown = Table.grid(padding=(0, 2))
    for verdict in verdicts:
        shown.add_row(verdict.text, verdict.claim.title)
    console.print(shown)
    console.print(f"\n{counted(verdicts)}")
    if quick:
        console.print("[bold]A quick run: this says nothing about the paper.[/]")
    for path in texts:
        console.print(f"{path}", soft_wrap=True, markup=False)


# --- The command line -----------------------------------------------------------------------------

app = typer.Typer(
    name=NAME,
    help="The experiments of the paper, run again.",
    epilog=HELP,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(reproduce)
app.command("report")(report)


@app.callback()
def options(context: typer.Context) -> None:
    """What holds for both commands: warnings are notes of one line."""
    context.with_resource(noted())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program on ``arguments``; the exit code."""
    return run_app(app, NAME, arguments)


if __name__ == "__main__":
    sys.exit(main())
