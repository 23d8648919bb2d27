"""``silograph audit``: certified losses against enumeration and real runs."""

from contextlib import nullcontext
from typing import Annotated

import typer
from rich.console import Console

from silograph.audit import report
from silograph.cli import tables
from silograph.cli.exits import FINE, NO
from silograph.cli.json_output import echo_json
from silograph.cli.options import Json
from silograph.runtime.entropy import OsEntropy

__all__ = ["audit"]

console = Console(highlight=False)


def audit(
    effort: Annotated[
        float, typer.Option(help="Scales the number of trials.", min=0.001, max=1000)
    ] = 1.0,
    as_json: Json = False,
) -> None:
    """Check every certified ε, by enumeration and by running the real protocols.

    For each protocol and view: what is certified, the worst loss over all holder sets by exact
    enumeration, and a loss that real runs on neighbouring federations show. Exit code 1 if
    anything found passes what is certified.
    """
    beside = Console(stderr=True)
    with beside.status("auditing") if beside.is_terminal else nullcontext():
        found = list(report.audit(OsEntropy(), effort=effort))
    if as_json:
        echo_json([line.to_dict() for line in found])
    else:
        console.print(tables.audit(found))
    raise typer.Exit(FINE if all(line.holds for line in found) else NO)
