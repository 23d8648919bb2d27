"""``silograph split`` and ``silograph universe``: make trial silos and node lists."""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from silograph.cli.exits import FINE, NO
from silograph.cli.local_run import mention
from silograph.cli.options import (
    OUTPUT,
    Case,
    Columns,
    Force,
    Format,
    Header,
    Json,
    NodeColumn,
    Since,
    Strip,
    TimeColumn,
    Until,
    column_pair,
    node_place,
    time_window,
)
from silograph.cli.output import check_output, echo, echo_json
from silograph.errors import ArgumentError
from silograph.graph.samples import clustered_power_law, read_graph, union
from silograph.graph.samples import split as deal
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse

__all__ = ["app", "split"]


# --- ``silograph split``: distribute one graph over silos, for trials -----------------------------

NODES = "nodes.txt"


def split(
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="The folder to create.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ],
    graph: Annotated[
        Path | None, typer.Argument(help="An edge file of the whole graph.", show_default=False)
    ] = None,
    generate: Annotated[
        int | None,
        typer.Option(
            help="Generate a graph with this many nodes instead of reading a file.",
            show_default=False,
        ),
    ] = None,
    silos: Annotated[int, typer.Option(help="The number of silos.")] = 4,
    rate: Annotated[float, typer.Option(help="The share of all edges that each silo holds.")] = 0.3,
    overlap: Annotated[
        float,
        typer.Option(help="The share of the union's edges that more than one silo holds."),
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="The same seed gives the same silos.")] = 0,
    columns: Columns = None,
    format: Format = None,  # noqa: A002 (the word that readers of tables know)
    header: Header = None,
    time_column: TimeColumn = None,
    since: Since = None,
    until: Until = None,
    strip: Strip = False,
    case: Case = None,
    as_json: Json = False,
) -> None:
    """Distribute one graph over silos that overlap, for trials.

    Writes one edge file per silo, and a node list.

    $ silograph split edges.csv -o trial --silos 3

    $ silograph split --generate 500 -o trial
    """
    if (graph is None) == (generate is None):
        raise ArgumentError("give an edge file, or --generate with a number of nodes, but not both")
    _check_folder(output)
    if graph is not None:
        whole = read_graph(
            graph, columns=column_pair(columns), format=format, header=header, strip=strip,
            case=case, window=time_window(time_column, since, until),
        )  # fmt: skip
        mention(whole.report)
    else:
        whole = clustered_power_law(generate or 0, seed=seed)
    parts = deal(whole, silos, rate, overlap, seed)
    empty = [number for number, part in enumerate(parts, 1) if not len(part)]
    if empty:
        raise ArgumentError(
            f"silo {empty[0]} would hold no edge: {len(whole):,} edges at a rate of {rate:g} are "
            "too few; raise --rate"
        )
    names = [f"silo-{number}.csv" for number in range(1, silos + 1)]
    _write(output, dict(zip(names, parts, strict=True)))
    held = [len(part) for part in parts]
    joint = len(union(parts))
    if as_json:
        echo_json(
            {
                "nodes": {"path": str(output / NODES), "count": len(whole.universe)},
                "digest": whole.universe.digest,
                "edges": len(whole),
                "union": joint,
                "silos": [
                    {"path": str(output / name), "edges": edges}
                    for name, edges in zip(names, held, strict=True)
                ],
            }
        )
        return
    echo(f"{output / NODES}: {len(whole.universe):,} nodes")
    for name, edges in zip(names, held, strict=True):
        echo(f"{output / name}: {edges:,} edges")
    echo(f"together {joint:,} of the {len(whole):,} edges")


def _check_folder(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise ArgumentError(f"{path}: is a file; a folder is needed")
    if path.is_dir() and any(path.iterdir()):
        raise ArgumentError(f"{path}: the folder is not empty; choose a new one")
    if not path.absolute().parent.is_dir():
        raise ArgumentError(f"{path}: there is no folder {path.parent}; make it first")


def _write(folder: Path, silos: dict[str, Silo]) -> None:
    """Write all files into a temporary folder, and rename it when they are complete."""
    place = folder.absolute()
    # A temporary folder is always private. The inner folder has the usual permissions.
    with tempfile.TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as beside:
        partial = Path(beside) / place.name
        partial.mkdir()
        universe = next(iter(silos.values())).universe
        universe.save(partial / NODES)
        for name, silo in silos.items():
            silo.to_file(partial / name)
            if Silo.from_file(universe, partial / name, format="csv") != silo:
                raise ArgumentError(f"{name}: the ids of this graph cannot be written as CSV")
        partial.rename(place)


# --- ``silograph universe``: public node lists ----------------------------------------------------

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
    time_column: TimeColumn = None,
    since: Since = None,
    until: Until = None,
    strip: Strip = False,
    case: Case = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Make a node list from the ids in edge files, for local work.

    Do not use this in a deployment. A list that is made from edges shows which nodes have edges;
    there, the parties agree on a public list.
    """
    check_output(output, edges, force=force)
    made = NodeUniverse.from_edge_files(
        *edges, columns=column_pair(columns), format=format, header=header, strip=strip, case=case,
        window=time_window(time_column, since, until),
    )  # fmt: skip
    made.save(output)
    _say(output, made, as_json)


@app.command("show")
def show(
    path: NodeList,
    node_column: NodeColumn = None,
    strip: Strip = False,
    case: Case = None,
    as_json: Json = False,
) -> None:
    """Show the size and the digest of a node list."""
    column = node_place(node_column)
    found = NodeUniverse.from_file(path, column=column, strip=strip or None, case=case)
    _say(path, found, as_json)


@app.command("compare")
def compare(
    first: NodeList,
    second: Annotated[Path, typer.Argument(help="Another node list.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Say whether two node lists are the same, and how they differ.

    The exit code is 1 if they differ.
    """
    found = NodeUniverse.from_file(first).compare(NodeUniverse.from_file(second))
    if as_json:
        echo_json(asdict(found))
    else:
        echo(str(found))
    raise typer.Exit(FINE if found.same else NO)


def _say(path: Path, universe: NodeUniverse, as_json: bool) -> None:
    if as_json:
        echo_json({"path": str(path), "nodes": universe.size, "digest": universe.digest})
    else:
        echo(f"{path}: {universe.size_text}\ndigest {universe.digest}")
