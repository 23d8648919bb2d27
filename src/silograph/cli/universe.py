"""``silograph universe``: public node lists."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from silograph.cli.exits import FINE, NO
from silograph.cli.json_output import echo_json
from silograph.cli.options import (
    OUTPUT,
    Case,
    Columns,
    Force,
    Format,
    Header,
    Json,
    Strip,
    column_pair,
)
from silograph.cli.outputs import check_output
from silograph.graph.universe import NodeUniverse

__all__ = ["app"]

app = typer.Typer(help="Make, show and compare public node lists.", no_args_is_help=True)

NodeList = Annotated[Path, typer.Argument(help="A node list.", show_default=False)]


@app.command("make")
def make(
    edges: Annotated[list[Path], typer.Argument(help="Edge files.", show_default=False)],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="The node list to write.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ],
    columns: Columns = None,
    format: Format = None,  # noqa: A002 (the word that readers of tables know)
    header: Header = None,
    strip: Strip = False,
    case: Case = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Make a node list from the ids in edge files, for local work.

    In a deployment the list is agreed in public: one made from edges shows who has any.
    """
    check_output(output, edges, force=force)
    made = NodeUniverse.from_edge_files(
        *edges, columns=column_pair(columns), format=format, header=header, strip=strip, case=case
    )
    made.save(output)
    _say(output, made, as_json)


@app.command("show")
def show(path: NodeList, strip: Strip = False, case: Case = None, as_json: Json = False) -> None:
    """Show the size and the digest of a node list."""
    _say(path, NodeUniverse.from_file(path, strip=strip or None, case=case), as_json)


@app.command("compare")
def compare(
    first: NodeList,
    second: Annotated[Path, typer.Argument(help="Another one.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Say whether two node lists are the same, and how they differ (exit code 1)."""
    found = NodeUniverse.from_file(first).compare(NodeUniverse.from_file(second))
    if as_json:
        echo_json(asdict(found))
    else:
        typer.echo(str(found))
    raise typer.Exit(FINE if found.same else NO)


def _say(path: Path, universe: NodeUniverse, as_json: bool) -> None:
    if as_json:
        echo_json({"path": str(path), "nodes": len(universe), "digest": universe.digest})
    else:
        typer.echo(f"{path}: {len(universe):,} nodes\ndigest {universe.digest}")
