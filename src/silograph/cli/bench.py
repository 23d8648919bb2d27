"""``silograph bench``: how fast this machine is, and what that means for a run."""

from contextlib import nullcontext
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from silograph.cli.json_output import echo_json
from silograph.cli.options import Json
from silograph.experiments import quick_bench
from silograph.experiments.quick_bench import Bench

__all__ = ["bench"]

console = Console(highlight=False)


def bench(
    nodes: Annotated[int, typer.Option(help="Nodes of the run that you think of.")] = 4_000,
    silos: Annotated[int, typer.Option(help="Its silos.")] = 4,
    as_json: Json = False,
) -> None:
    """Measure this machine for some seconds, beside a peer, and estimate a run's time.

    $ silograph bench --nodes 20000 --silos 5
    """
    beside = Console(stderr=True)
    with beside.status("measuring") if beside.is_terminal else nullcontext():
        found = quick_bench.bench(nodes, silos)
    if as_json:
        echo_json(found.to_dict())
        return
    console.print(_measured(found))
    console.print(_estimated(found))


def _measured(found: Bench) -> Table:
    table = Table(
        title=f"measured on {found.cores} cores, {found.simd}, load {found.load:.1f} before",
        title_justify="left",
        caption="Best of several, in turns with the peer; ratio: its time to ours. * for a pair "
        "and silo; os.urandom draws the bytes of all masks and does nothing else.",
        caption_justify="left",
        box=SIMPLE_HEAD,
    )
    for name in ("work", "nodes", "ours", "peer", "its time", "ratio"):
        left = name in ("work", "peer")
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for row in (found.triangles, found.union, found.elgamal):
        each = "" if row.pieces == 1 else " *"
        table.add_row(
            f"{row.what}{each}",
            f"{row.nodes:,}",
            _time(row.seconds / row.pieces),
            row.peer,
            "" if row.peer_seconds is None else _time(row.peer_seconds / row.pieces),
            "" if row.ratio is None else _digits(row.ratio),
        )
    return table


def _estimated(found: Bench) -> Table:
    table = Table(
        title=f"estimated for {found.nodes:,} nodes, {found.silos} silos: {found.pairs:,} pairs",
        title_justify="left",
        caption="All parties on this machine; on their own, silos work at the same time.",
        caption_justify="left",
        box=SIMPLE_HEAD,
        show_header=False,
        min_width=72,
    )
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    named = {
        "masked": "masked union",
        "elgamal/blinded": "elgamal/blinded union",
        "triangles": "triangles of the release",
    }
    for name, seconds in found.estimates.items():
        table.add_row(named[name], _time(seconds))
    table.add_row("upload of each silo, masked", _size(found.upload_bytes))
    table.add_row("release file", _size(found.release_bytes))
    return table


def _time(seconds: float) -> str:
    """A time in its own unit.

    >>> [_time(t) for t in (4.2e-9, 3e-4, 0.5, 90, 7200, 2e5)]
    ['4.2 ns', '300 µs', '500 ms', '1.5 min', '2 h', '2.3 days']
    """
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3)):
        if seconds >= size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{_digits(seconds * 1e6)} µs" if seconds >= 1e-6 else f"{_digits(seconds * 1e9)} ns"


def _size(count: int) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= 0.9995 * size:
            return f"{_digits(count / size)} {unit}"
    return f"{count} bytes"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
