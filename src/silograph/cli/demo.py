"""``silograph demo``: every query on a generated graph in four silos, next to the true answers."""

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from silograph.cli.options import Epsilon, Json
from silograph.cli.output import echo_json
from silograph.dp.channel import Channel
from silograph.dp.loss import shown_loss
from silograph.estimators.cycles import four_cycles_variance
from silograph.estimators.degrees import edges_variance
from silograph.estimators.estimate import Estimate
from silograph.estimators.pair_sums import GraphSums
from silograph.estimators.release import Release
from silograph.estimators.stars import kstars_variance
from silograph.estimators.triangles import triangles_variance
from silograph.graph.bits import BitRows
from silograph.graph.samples import clustered_power_law, split, union
from silograph.graph.silo import Silo
from silograph.ledger.book import Ledger
from silograph.local.federation import Federation

__all__ = [
    "QUERIES",
    "DemoRow",
    "Target",
    "demo",
    "demo_release",
    "demo_rows",
    "demo_silos",
    "demo_table",
    "silos_text",
]


# --- The silos and the queries --------------------------------------------------------------------

NODES, SILOS, SEED = 1000, 4, 1


@dataclass(frozen=True)
class DemoRow:
    """One query: the true value and the method's answer."""

    query: str
    truth: float
    answer: Estimate[float]

    @property
    def error(self) -> float:
        """The relative error of the answer."""
        return abs(self.answer.value - self.truth) / self.truth


def demo_silos() -> tuple[Silo, ...]:
    """Make four silos from a clustered power-law graph of 1,000 nodes.

    A fifth of the edges are in two silos.
    """
    graph = clustered_power_law(NODES, edges_per_node=8, closure=0.6, seed=SEED)
    return split(graph, SILOS, rate=0.3, overlap=0.2, seed=SEED)


def demo_release(silos: tuple[Silo, ...], epsilon: float) -> tuple[Release, str]:
    """Make a release with the real protocol, and a line about the ledger."""
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger") as ledger:
        ledger.set_limit("demo", epsilon)
        release = Federation.simulate(silos, ledger, lineage="demo").collect(epsilon)
        spent, left = ledger.spent("demo"), ledger.remaining("demo")
        assert left is not None  # noqa: S101 - there is a limit
        rest = shown_loss(left.epsilon, left=True)
        return release, f"ledger: spent ε = {shown_loss(spent.epsilon)}; left ε = {rest}"


def demo_rows(silos: tuple[Silo, ...], release: Release) -> Iterator[DemoRow]:
    """Ask the release every query."""
    graph = BitRows.from_pairs(NODES, union(silos).pairs)
    for query, target in QUERIES.items():
        yield DemoRow(query, target.truth(graph), target.ask(release))
    yield DemoRow("clustering", 3 * graph.triangles / graph.wedges, release.clustering())


@dataclass(frozen=True)
class Target:
    """A query: how to ask it, its true answer, and the variance that its answers should have."""

    ask: Callable[[Release], Estimate[float]]
    truth: Callable[[BitRows], int]
    variance: Callable[[GraphSums, Channel], float]


def _kstars(k: int) -> Target:
    return Target(
        lambda release: release.kstars(k),
        lambda graph: sum(math.comb(d, k) for d in graph.degrees.tolist()),
        lambda truth, channel: float(kstars_variance(truth.graph, channel, k)),
    )


QUERIES: dict[str, Target] = {
    "edges": Target(
        Release.edges,
        lambda graph: graph.edges,
        lambda truth, channel: float(edges_variance(truth.graph, channel)),
    ),
    "2-stars": _kstars(2),
    "3-stars": _kstars(3),
    "triangles": Target(
        Release.triangles,
        lambda graph: graph.triangles,
        lambda truth, channel: float(triangles_variance(truth, channel)),
    ),
    "4-cycles": Target(
        Release.four_cycles,
        lambda graph: graph.four_cycles,
        lambda truth, channel: float(four_cycles_variance(truth, channel)),
    ),
}


# --- Tables for the terminal, at most 80 columns wide ---------------------------------------------


def silos_text(silos: Sequence[Silo]) -> str:
    """Describe what the silos hold."""
    held = ", ".join(f"{len(silo):,}" for silo in silos)
    whole = union(silos)
    return (
        f"{len(whole.universe):,} nodes. {len(silos)} silos hold {held} edges;\n"
        f"their union has {len(whole):,} edges.\n"
    )


def demo_table(rows: Iterable[DemoRow], release: Release) -> Table:
    """Show the truth, answer, interval and error of each query."""
    made = release.provenance
    title = f"{made.method} on a {made.protocol} union, ε = {shown_loss(release.epsilon)}"
    table = Table(title=title, title_justify="left")
    for name in ("query", "truth", "answer", "95 % interval", "error"):
        table.add_column(name, justify="left" if name == "query" else "right", no_wrap=True)
    for row in rows:
        low, high = row.answer.interval
        table.add_row(
            row.query,
            _number(row.truth),
            _number(row.answer.value),
            f"{_number(low)} … {_number(high)}",
            f"{100 * row.error:.2f} %",
        )
    return table


def _number(x: float) -> str:
    return f"{x:,.0f}" if abs(x) >= 10 else f"{x:.4f}"


# --- ``silograph demo`` ---------------------------------------------------------------------------

console = Console(highlight=False)


def demo(epsilon: Epsilon = 3.0, as_json: Json = False) -> None:
    """Run every query on a generated graph in four silos, and compare with the truth."""
    silos = demo_silos()
    release, spent = demo_release(silos, epsilon)
    rows = list(demo_rows(silos, release))
    if as_json:
        echo_json([_plain(row) for row in rows])
        return
    typer.echo(silos_text(silos))
    console.print(demo_table(rows, release))
    for view in release.views:
        console.print(f"  {view}")
    console.print(f"{spent}\n")
    console.print(
        "The protocol is real and the parties are simulated. The coordinator learnt one noisy "
        "graph and no silo's edges. That graph answers every query, for one ε.",
        style="dim",
    )


def _plain(row: DemoRow) -> dict[str, Any]:
    return {**row.answer.to_dict(), "query": row.query, "truth": row.truth, "error": row.error}
