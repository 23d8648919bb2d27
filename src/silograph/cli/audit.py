"""``silograph audit``: check certified losses by enumeration and by real runs."""

import math
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from silograph.audit.report import AuditLine
from silograph.audit.report import audit as run_audit
from silograph.cli.exits import FINE, NO
from silograph.cli.options import Json
from silograph.cli.output import echo_json
from silograph.dp.loss import shown_loss
from silograph.messages.entropy import OsEntropy

__all__ = ["audit"]

console = Console(highlight=False)


def audit(
    effort: Annotated[
        float, typer.Option(help="Multiplies the number of trials.", min=0.001, max=1000)
    ] = 1.0,
    as_json: Json = False,
) -> None:
    """Check every certified ε by enumeration and by running the real protocols.

    For each protocol and view, three losses are shown: the certified one, the worst one over all
    sets of holders by exact enumeration, and one that real runs on neighbouring federations
    demonstrate. Where a δ is certified, the exact ε is the least one at that δ. The exit code is 1
    if any loss exceeds the certified one.
    """
    beside = Console(stderr=True)
    with beside.status("auditing") if beside.is_terminal else nullcontext():
        found = list(run_audit(OsEntropy(), effort=effort))
    if as_json:
        echo_json([line.to_dict() for line in found])
    else:
        console.print(_table(found))
    raise typer.Exit(FINE if all(line.holds for line in found) else NO)


def _table(lines: Iterable[AuditLine]) -> Table:
    """Show the certified, enumerated and seen losses of every view."""
    table = Table(
        title="privacy loss ε by view",
        title_justify="left",
        caption="exact: the worst over all sets of holders, by enumeration. seen: demonstrated by "
        "real runs, with a false-alarm rate of 1e-9. *: not claimed by the protocol. With a δ, the "
        "exact ε is the least one at that δ; triangles by rule are those of one small graph.",
        caption_justify="left",
    )
    table.add_column("protocol and view", min_width=36)
    for name, width in (("certified", 9), ("exact", 9), ("seen", 7)):
        table.add_column(name, justify="right", min_width=width)
    table.add_column("")
    before = None
    for line in lines:
        asked = f"ε = {shown_loss(line.epsilon)}, {line.silos} silos, t = {line.collusion}"
        case = f"{line.protocol}, {asked}"
        if case != before:
            table.add_section()
            table.add_row(f"[bold]{case}[/]")
            if line.view.delta:
                table.add_row(f"  at δ = {shown_loss(line.view.delta)}")
        table.add_row(
            f"  {line.view.name}" + ("" if line.view.claimed else " *"),
            shown_loss(line.view.epsilon),
            shown_loss(line.exact),
            shown_loss(math.floor(1e4 * line.seen) / 1e4, left=True),
            "ok" if line.holds else "[red]EXCESS[/]",
        )
        before = case
    return table
