"""The commands. Each one parses, calls the library, and prints."""

import json
import platform
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

import silograph
from silograph.audit import report as audit_report
from silograph.cli import broker, certs, journal, keys, ledger, roster, silo, study, tables
from silograph.cli.plan import plan
from silograph.cli.report import report
from silograph.cli.reproduce import reproduce
from silograph.errors import ArgumentError
from silograph.experiments import demo as demonstration
from silograph.graph.bitrows import simd_levels
from silograph.graph.universe import NodeUniverse
from silograph.privacy.loss import check_epsilon
from silograph.queries.estimate import Estimate
from silograph.queries.release import Release
from silograph.runtime.entropy import OsEntropy

app = typer.Typer(
    name="silograph",
    help="Statistics of a graph that no one holds, under edge differential privacy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
universe_app = typer.Typer(help="Make, show and compare public node lists.", no_args_is_help=True)
app.add_typer(universe_app, name="universe")
app.add_typer(keys.app, name="keys")
app.add_typer(roster.app, name="roster")
app.add_typer(certs.app, name="certs")
app.add_typer(broker.app, name="broker")
app.add_typer(ledger.app, name="ledger")
app.add_typer(journal.app, name="journal")
app.add_typer(silo.app, name="silo")
app.add_typer(study.app, name="study")

app.command()(plan)
app.command()(report)
app.command()(reproduce)

console = Console(highlight=False)

QUERIES: dict[str, Callable[[Release], Estimate[Any]]] = {
    "edges": Release.edges,
    "degrees": Release.degrees,
    "degree_histogram": Release.degree_histogram,
    "triangles": Release.triangles,
    "node_triangles": Release.node_triangles,
    "four_cycles": Release.four_cycles,
    "clustering": Release.clustering,
}


def _version(wanted: bool) -> None:
    if wanted:
        python = platform.python_version()
        console.print(f"silograph {silograph.__version__} (Python {python}, {simd_levels()[-1]})")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """Options of every command."""


@app.command()
def demo(
    epsilon: Annotated[float, typer.Option(help="Privacy budget of the release.")] = 3.0,
) -> None:
    """A seeded graph in four overlapping silos, and every query beside the truth."""
    check_epsilon(epsilon)
    silos = demonstration.demo_silos()
    console.print(tables.demo_silos(silos))
    release, spent = demonstration.demo_release(silos, epsilon)
    console.print(tables.demo(demonstration.demo_rows(silos, release), release))
    for view in release.views:
        console.print(f"  {view}")
    console.print(f"{spent}\n")
    console.print(
        "Real protocol, simulated parties: the coordinator learnt one noisy graph and no "
        "silo's edges. That graph answers every query above, and any other, for one ε.",
        style="dim",
    )


@app.command()
def query(
    release: Annotated[Path, typer.Argument(help="A release file.", show_default=False)],
    name: Annotated[str, typer.Argument(help=f"{', '.join([*QUERIES, 'kstars'])}.")],
    k: Annotated[int | None, typer.Option("--k", help="Leaves of a star, for kstars.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask a release something. It was paid for when it was made: asking costs nothing."""
    answer = _ask(Release.load(release), name, k)
    typer.echo(json.dumps(answer.to_dict()) if as_json else str(answer))


def _ask(release: Release, name: str, k: int | None) -> Estimate[Any]:
    if name == "kstars":
        if k is None:
            raise ArgumentError("kstars needs --k, the number of leaves")
        return release.kstars(k)
    if k is not None:
        raise ArgumentError(f"--k is for kstars, not for {name}")
    if name not in QUERIES:
        raise ArgumentError(
            f"unknown query {name!r}; choose from {', '.join([*QUERIES, 'kstars'])}"
        )
    return QUERIES[name](release)


@app.command()
def audit(
    effort: Annotated[
        float, typer.Option(help="Scales the number of trials.", min=0.001, max=1000)
    ] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check every certified epsilon, by enumeration and by running the real protocols.

    For each protocol and view: what is certified, the worst loss over all holder sets by exact
    enumeration, and a loss that real runs on neighbouring federations show. Exit code 1 if
    anything found passes what is certified.
    """
    found = []
    with console.status("auditing") if console.is_terminal else nullcontext():
        for line in audit_report.audit(OsEntropy(), effort=effort):
            found.append(line)  # noqa: PERF402 - one by one, so that an interrupt shows nothing half
    if as_json:
        typer.echo(json.dumps([line.to_dict() for line in found]))
    else:
        console.print(tables.audit(found))
    raise typer.Exit(0 if all(line.holds for line in found) else 1)


Case = Annotated[Literal["lower", "upper"] | None, typer.Option(help="Write all ids in one case.")]
Strip = Annotated[bool, typer.Option("--strip", help="Remove white space around ids.")]


@universe_app.command("make")
def universe_make(
    edges: Annotated[list[Path], typer.Argument(help="Edge files.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The node list to write.")],
    strip: Strip = False,
    case: Case = None,
) -> None:
    """Make a node list from the ids in edge files, for local work.

    In a deployment the list is agreed in public: one made from edges shows who has any.
    """
    made = NodeUniverse.from_edge_files(*edges, strip=strip, case=case)
    made.save(output)
    console.print(f"{output}: {len(made):,} nodes\ndigest {made.digest}")


@universe_app.command("show")
def universe_show(
    path: Annotated[Path, typer.Argument(help="A node list.", show_default=False)],
    strip: Strip = False,
    case: Case = None,
) -> None:
    """Show the size and the digest of a node list."""
    found = NodeUniverse.from_file(path, strip=strip or None, case=case)
    console.print(f"{path}: {len(found):,} nodes\ndigest {found.digest}")


@universe_app.command("compare")
def universe_compare(
    first: Annotated[Path, typer.Argument(help="A node list.", show_default=False)],
    second: Annotated[Path, typer.Argument(help="Another one.", show_default=False)],
) -> None:
    """Say whether two node lists are the same, and how they differ (exit code 1)."""
    comparison = NodeUniverse.from_file(first).compare(NodeUniverse.from_file(second))
    console.print(str(comparison))
    raise typer.Exit(0 if comparison.same else 1)
