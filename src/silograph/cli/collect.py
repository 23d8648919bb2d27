"""``silograph collect``: one release of several edge files."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from silograph.cli.json_output import echo_json
from silograph.cli.local_run import Reading, read_silos, spending
from silograph.cli.options import (
    OUTPUT,
    Case,
    Collusion,
    Columns,
    Epsilon,
    Files,
    Force,
    Format,
    Header,
    Json,
    LedgerFile,
    Lineage,
    NewLineage,
    NodeColumn,
    Nodes,
    Protocol,
    Strip,
)
from silograph.cli.outputs import check_output
from silograph.graph.bitrows import triangle_bytes

__all__ = ["collect"]

#: More than the header of any release.
_HEADER_BYTES = 1 << 16


def collect(
    files: Files,
    epsilon: Epsilon,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="The release to write.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ],
    nodes: Nodes = None,
    node_column: NodeColumn = None,
    protocol: Protocol = "masked",
    collusion: Collusion = 1,
    ledger: LedgerFile = None,
    lineage: Lineage = "simulation",
    new_lineage: NewLineage = False,
    columns: Columns = None,
    format: Format = None,  # noqa: A002 (the word that readers of tables know)
    header: Header = None,
    strip: Strip = False,
    case: Case = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Make one release of the union of several silos. It answers any number of queries.

    All parties run in this process, with the real protocol: for files that may be in one place.

    $ silograph collect a.csv b.csv --nodes nodes.txt --epsilon 3 -o g.release

    $ silograph query g.release triangles
    """
    inputs = [*files, *([nodes] if nodes else [])]
    check_output(output, inputs, force=force)
    silos = read_silos(files, Reading(nodes, node_column, columns, format, header, strip, case))
    room = triangle_bytes(len(silos[0].universe)) + _HEADER_BYTES
    check_output(output, inputs, force=force, size=room)
    with spending(ledger, lineage, new=new_lineage) as account:
        release = account.federation(silos).collect(epsilon, protocol, collusion)
        with account.keeping():
            release.save(output)
        if as_json:
            echo_json(
                {
                    "release": str(output),
                    "nodes": release.n,
                    "universe": release.universe_digest,
                    "epsilon": release.epsilon,
                    "delta": release.delta,
                    **asdict(release.provenance),
                    "views": [asdict(view) for view in release.views],
                    "ledger": account.to_dict(),
                }
            )
            return
        typer.echo(f"{output}: {release}")
        if str(account):
            typer.echo(str(account))
