"""Tables for the terminal; all fit into 80 columns."""

from collections.abc import Iterable, Sequence

from rich.table import Table

from silograph.experiments.demo import DemoRow
from silograph.graph.silo import Silo, union

__all__ = ["demo", "demo_silos"]


def demo_silos(silos: Sequence[Silo]) -> str:
    """What the silos hold, in one line each way."""
    held = ", ".join(f"{len(silo):,}" for silo in silos)
    whole = union(silos)
    return (
        f"{len(whole.universe):,} nodes. {len(silos)} silos hold {held} edges;\n"
        f"their union has {len(whole):,} edges.\n"
    )


def demo(rows: Iterable[DemoRow], epsilon: float) -> Table:
    """Truth, answer, interval and error of each query."""
    table = Table(title=f"feat, ε = {epsilon:g}", title_justify="left")
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
