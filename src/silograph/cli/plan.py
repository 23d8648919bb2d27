"""``silograph plan``: what every method would give, before anything is spent."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from silograph.cli.json_output import echo_json
from silograph.errors import ArgumentError
from silograph.graph.files import read_graph
from silograph.graph.silo import Silo
from silograph.methods.planner import TRUST, Plan
from silograph.methods.planner import plan as make_plan
from silograph.queries.release import Release

__all__ = ["plan", "plan_table"]

console = Console(highlight=False)


def plan(
    query: Annotated[
        str, typer.Option(help="edges, degrees, kstars, triangles, four_cycles or clustering.")
    ],
    epsilon: Annotated[float, typer.Option(help="The privacy budget.")],
    silos: Annotated[int, typer.Option(help="How many silos take part.")],
    nodes: Annotated[int | None, typer.Option(help="Nodes of the public list.")] = None,
    edges: Annotated[float | None, typer.Option(help="Edges, roughly.")] = None,
    wedges: Annotated[float | None, typer.Option(help="2-stars, roughly.")] = None,
    triangles: Annotated[float | None, typer.Option(help="Triangles, roughly.")] = None,
    common_squares: Annotated[
        float | None, typer.Option(help="Σ over pairs of squared common neighbours, roughly.")
    ] = None,
    top_degree: Annotated[int | None, typer.Option(help="The largest degree, roughly.")] = None,
    like_graph: Annotated[
        Path | None, typer.Option(help="A public edge file of a similar graph, for numbers.")
    ] = None,
    like_release: Annotated[
        Path | None, typer.Option(help="A past release of this graph, for numbers.")
    ] = None,
    k: Annotated[int | None, typer.Option("--k", help="Leaves of a star, for kstars.")] = None,
    delta: Annotated[
        float, typer.Option(help="Allow this delta, where a method can use it.")
    ] = 0.0,
    collusion: Annotated[
        int, typer.Option(help="Silos that may pool what they know with the coordinator.")
    ] = 1,
    trust: Annotated[
        list[str] | None,
        typer.Option(help=f"What you are ready to assume: {', '.join(TRUST)}. May be repeated."),
    ] = None,
    owned: Annotated[
        float | None, typer.Option(help="Share of a node's edges that its main silo holds.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Predict the error of every method, rank them, and say what each assumes of whom."""
    if like_graph is not None and like_release is not None:
        raise ArgumentError("give --like-graph or --like-release, not both")
    like: Silo | Release | None = None
    if like_graph is not None:
        like = read_graph(like_graph)
    if like_release is not None:
        like = Release.load(like_release)
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
    console.print(plan_table(found))
    for need in sorted({need for option in found.options for need in option.needs}):
        console.print(f"  {need}: {TRUST[need]}", style="dim")
    console.print(f"[bold]{found.best.method}[/]: {found.best.assumes}.")
    if found.best.note:
        console.print(f"{found.best.note}.")


def plan_table(found: Plan) -> Table:
    """Every option with its error and the trust that it needs."""
    asked = found.question
    what = f"{asked.k}-stars" if asked.k else asked.query
    table = Table(
        title=f"{what}, about {found.count:,.4g}: ε = {asked.epsilon:g}"
        + (f", δ = {asked.delta:g}" if asked.delta else "")
        + f", {asked.silos} silos, collusion {asked.collusion}",
        title_justify="left",
        caption=f"Outline: {found.source}.",
        caption_justify="left",
    )
    for name in ("", "method", "protocol", "error", "relative", "trust needed"):
        table.add_column(name, justify="right" if name in ("error", "relative") else "left")
    for option in found.options:
        allowed = option.needs <= found.trust
        table.add_row(
            "→" if option is found.best else "",
            option.label,
            option.protocol,
            f"{option.error:,.4g}",
            option.percent,
            ", ".join(sorted(option.needs)) or "none",
            style=None if allowed else "dim",
        )
    return table
