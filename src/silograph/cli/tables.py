"""Tables for the terminal; all fit into 80 columns."""

from collections.abc import Iterable, Sequence

from rich.table import Table

from silograph.audit.report import AuditLine
from silograph.experiments.demo import DemoRow
from silograph.graph.silo import Silo, union
from silograph.privacy.loss import shown_loss
from silograph.queries.release import Release

__all__ = ["audit", "demo", "demo_silos"]


def demo_silos(silos: Sequence[Silo]) -> str:
    """What the silos hold, in one line each way."""
    held = ", ".join(f"{len(silo):,}" for silo in silos)
    whole = union(silos)
    return (
        f"{len(whole.universe):,} nodes. {len(silos)} silos hold {held} edges;\n"
        f"their union has {len(whole):,} edges.\n"
    )


def demo(rows: Iterable[DemoRow], release: Release) -> Table:
    """Truth, answer, interval and error of each query."""
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


def audit(lines: Iterable[AuditLine]) -> Table:
    """Certified, enumerated and seen losses of every view."""
    table = Table(
        title="privacy loss ε by view",
        title_justify="left",
        caption="exact: worst over all holder sets, enumerated. seen: shown by real runs, false "
        "alarm 1e-9. * not claimed by the protocol.",
        caption_justify="left",
    )
    for name in ("protocol and view", "certified", "exact", "seen", ""):
        table.add_column(
            name, justify="right" if name in ("certified", "exact", "seen") else "left"
        )
    before = None
    for line in lines:
        asked = f"ε = {shown_loss(line.epsilon)}, {line.silos} silos, t = {line.collusion}"
        case = f"{line.protocol}, {asked}"
        if case != before:
            table.add_section()
            table.add_row(f"[bold]{case}[/]")
        table.add_row(
            f"  {line.view.name}" + ("" if line.view.claimed else " *"),
            shown_loss(line.view.epsilon),
            shown_loss(line.exact),
            shown_loss(line.seen, left=True),
            "ok" if line.holds else "[red]EXCESS[/]",
        )
        before = case
    return table


def _number(x: float) -> str:
    return f"{x:,.0f}" if abs(x) >= 10 else f"{x:.4f}"
