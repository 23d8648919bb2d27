"""``silograph demo``: everything at once, on a made-up graph."""

from typing import Any

import typer
from rich.console import Console

from silograph.cli import tables
from silograph.cli.json_output import echo_json
from silograph.cli.options import Epsilon, Json
from silograph.experiments import demo as demonstration
from silograph.experiments.demo import DemoRow

__all__ = ["demo"]

console = Console(highlight=False)


def demo(epsilon: Epsilon = 3.0, as_json: Json = False) -> None:
    """A seeded graph in four overlapping silos, and every query beside the truth."""
    silos = demonstration.demo_silos()
    release, spent = demonstration.demo_release(silos, epsilon)
    rows = list(demonstration.demo_rows(silos, release))
    if as_json:
        echo_json([_plain(row) for row in rows])
        return
    typer.echo(tables.demo_silos(silos))
    console.print(tables.demo(rows, release))
    for view in release.views:
        console.print(f"  {view}")
    console.print(f"{spent}\n")
    console.print(
        "Real protocol, simulated parties: the coordinator learnt one noisy graph and no "
        "silo's edges. That graph answers every query above, and any other, for one ε.",
        style="dim",
    )


def _plain(row: DemoRow) -> dict[str, Any]:
    return {**row.answer.to_dict(), "query": row.query, "truth": row.truth, "error": row.error}
