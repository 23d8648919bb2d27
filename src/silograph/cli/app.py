"""The commands, put together. Each has a module of its own."""

from typing import Annotated

import typer

from silograph.cli import broker, certs, journal, keys, ledger, roster, silo, study, universe
from silograph.cli.audit import audit
from silograph.cli.bench import bench
from silograph.cli.collect import collect
from silograph.cli.count import count
from silograph.cli.demo import demo
from silograph.cli.exits import HELP
from silograph.cli.notes import noted
from silograph.cli.plan import plan
from silograph.cli.query import query
from silograph.cli.report import report
from silograph.cli.reproduce import reproduce
from silograph.cli.split import split
from silograph.cli.version import show_version

EVERYDAY, DEPLOYMENT, RESEARCH = "Everyday", "Deployment", "Research"

app = typer.Typer(
    name="silograph",
    help="Statistics of a graph that no one holds, under edge differential privacy.",
    epilog=HELP,
    no_args_is_help=True,
    rich_markup_mode="markdown",  # paragraphs flow
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks of errors; may stand anywhere.")
    ] = False,
) -> None:
    """Options of every command."""
    context.with_resource(noted())


app.command(rich_help_panel=EVERYDAY)(demo)
app.command(rich_help_panel=EVERYDAY)(count)
app.command(rich_help_panel=EVERYDAY)(collect)
app.command(rich_help_panel=EVERYDAY)(query)
app.command(rich_help_panel=EVERYDAY)(plan)
app.command(rich_help_panel=EVERYDAY)(bench)
app.add_typer(ledger.app, name="ledger", rich_help_panel=EVERYDAY)
app.add_typer(universe.app, name="universe", rich_help_panel=EVERYDAY)

app.command(rich_help_panel=RESEARCH)(split)
app.command(rich_help_panel=RESEARCH)(audit)
app.command(rich_help_panel=RESEARCH)(reproduce)
app.command(rich_help_panel=RESEARCH)(report)

app.add_typer(keys.app, name="keys", rich_help_panel=DEPLOYMENT)
app.add_typer(roster.app, name="roster", rich_help_panel=DEPLOYMENT)
app.add_typer(certs.app, name="certs", rich_help_panel=DEPLOYMENT)
app.add_typer(broker.app, name="broker", rich_help_panel=DEPLOYMENT)
app.add_typer(silo.app, name="silo", rich_help_panel=DEPLOYMENT)
app.add_typer(study.app, name="study", rich_help_panel=DEPLOYMENT)
app.add_typer(journal.app, name="journal", rich_help_panel=DEPLOYMENT)
