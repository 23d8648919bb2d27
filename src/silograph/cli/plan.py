"""``silograph plan``: predict the error of every method, before anything is spent."""

from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from silograph.cli.local_run import read_like
from silograph.cli.options import (
    Collusion,
    Delta,
    Epsilon,
    Json,
    K,
    LikeGraph,
    LikeRelease,
    Trust,
    one_of,
)
from silograph.cli.output import echo_json
from silograph.dp.loss import shown_loss
from silograph.methods.catalogue import TRUST
from silograph.methods.planner import PLANNED, Plan
from silograph.methods.planner import plan as make_plan

__all__ = ["plan", "plan_table"]

console = Console(highlight=False)
#: How large numbers are said.
_UNITS = ((1e6, "million"), (1e9, "billion"))


def plan(
    query: Annotated[
        str,
        typer.Option(
            help=f"What to count: {', '.join(PLANNED)}.",
            show_default=False,
            autocompletion=one_of(PLANNED),
        ),
    ],
    epsilon: Epsilon,
    silos: Annotated[
        int, typer.Option(help="The number of silos that take part.", show_default=False)
    ],
    nodes: Annotated[
        int | None,
        typer.Option(help="The number of nodes in the public list.", show_default=False),
    ] = None,
    edges: Annotated[
        float | None, typer.Option(help="The rough number of edges.", show_default=False)
    ] = None,
    wedges: Annotated[
        float | None, typer.Option(help="The rough number of 2-stars.", show_default=False)
    ] = None,
    triangles: Annotated[
        float | None, typer.Option(help="The rough number of triangles.", show_default=False)
    ] = None,
    common_squares: Annotated[
        float | None,
        typer.Option(
            help="The rough sum, over all pairs, of the squared number of common neighbours.",
            show_default=False,
        ),
    ] = None,
    top_degree: Annotated[
        int | None, typer.Option(help="The largest degree, roughly.", show_default=False)
    ] = None,
    like_graph: LikeGraph = None,
    like_release: LikeRelease = None,
    k: K = None,
    delta: Delta = None,
    collusion: Collusion = 1,
    trust: Trust = None,
    owned: Annotated[
        float | None,
        typer.Option(
            help="The share of a node's edges that its main silo holds.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Predict the error of every method, rank the methods, and say whom each one trusts.

    $ silograph plan --query triangles --epsilon 3 --silos 4 --nodes 4000
    """
    like = read_like(like_graph, like_release)
    found = make_plan(
        query,
        epsilon=epsilon,
        silos=silos,
        nodes=nodes,
        edges=edges,
        wedges=wedges,
        triangles=triangles,
        common_squares=common_squares,
        top_degree=top_degree,
        like=like,
        k=k,
        delta=delta,
        collusion=collusion,
        trust=tuple(trust or ()),
        owned=owned,
    )
    if as_json:
        echo_json(found.to_dict())
        return
    if found.warning:
        console.print(f"[bold]{found.warning}.[/]")
    console.print(plan_table(found))
    for need in sorted({need for option in found.options for need in option.needs}):
        console.print(f"  {need}: {TRUST[need]}", style="dim")
    best = found.best
    console.print(f"[bold]{best.label}[/]: {best.assumes}.")
    if best.note:
        console.print(f"Note: {best.note}.")
    for remark in found.remarks:
        console.print(f"{remark}.")
    if best.cost is not None:
        console.print(f"It takes {best.cost}, with all parties here.")
    for option in found.options:
        if not option.within_reach:
            console.print(
                f"{option.label} {option.protocol} is out of reach of this machine: {option.cost}.",
                style="dim",
            )


def plan_table(found: Plan) -> Table:
    """Show every option with its error and the trust that it needs."""
    asked = found.question
    what = f"{asked.k}-stars" if asked.k else asked.query
    table = Table(
        title=f"{what}, about {_number(found.count)}: ε = {shown_loss(asked.epsilon)}"
        + (f", δ = {shown_loss(asked.delta)}" if asked.delta else "")
        + f", {asked.silos} silos, t = {asked.collusion}",
        title_justify="left",
        caption=f"Reference: {found.source}.",
        caption_justify="left",
    )
    for name in ("", "method", "protocol", "error", "relative", "trust needed"):
        side: Literal["right", "left"] = "right" if name in ("error", "relative") else "left"
        table.add_column(name, justify=side, no_wrap=name in ("protocol", "error"))
    for option in found.options:
        allowed = option.needs <= found.trust
        table.add_row(
            "→" if option is found.best else "",
            option.label,
            option.protocol,
            _number(option.error),
            option.percent,
            ", ".join(sorted(option.needs)) or "none",
            style=None if allowed else "dim",
        )
    return table


def _number(x: float) -> str:
    """Format with about four digits; large counts in words.

    >>> [_number(x) for x in (0.09312, 178234.4, 364187470.0, 4.406e9, 3.9e21)]
    ['0.09312', '178,234', '364 million', '4.41 billion', '3.9e+21']
    """
    for unit, name in _UNITS:
        if max(unit, 1e7) <= abs(x) < 1000 * unit:
            return f"{x / unit:.3g} {name}"
    return f"{x:,.0f}" if 1000 <= abs(x) < 1e12 else f"{x:.4g}"
