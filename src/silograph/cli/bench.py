"""``silograph bench``: measure this machine and estimate the time of a run."""

import os
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from silograph import _core
from silograph.cli.options import Json
from silograph.cli.output import echo_json
from silograph.dp.channel import Channel
from silograph.dp.loss import check_parties
from silograph.errors import ArgumentError, LedgerWarning
from silograph.estimators.release import Release
from silograph.graph.bits import BitRows, simd_levels, triangle_bytes
from silograph.graph.samples import clustered_power_law, split
from silograph.local.federation import Federation
from silograph.methods.masked.machines import packed_bytes
from silograph.methods.masked.noise import MaskedNoise

__all__ = ["Bench", "Measured", "bench", "measure"]


# --- Measuring ------------------------------------------------------------------------------------
#
# Each kind of work is compared with a peer: a well-known program that does similar work. Our runs
# and the peer's alternate, and the best time of each counts. Work that would take too long at the
# requested size is measured at a smaller size and scaled up; the table shows the measured size.

_EPSILON = 3.0
_ROUNDS = 3
#: The largest sizes measured: nodes for triangles and ElGamal, pairs × silos for the union.
_TRIANGLE_NODES, _ELGAMAL_NODES, _UNION_WORK = 2_048, 64, 20_000_000
_LEAST_NODES, _MOST_NODES = 32, 1_000_000


@dataclass(frozen=True)
class Measured:
    """One kind of work: how long it takes here, and how long the peer takes."""

    what: str
    #: The number of nodes that was measured, and the seconds for all of the work.
    nodes: int
    seconds: float
    #: The number of pieces of work (pairs times silos), or 1 if the work is not divided.
    pieces: int = 1
    peer: str = ""
    #: The peer's seconds for the same number of pieces.
    peer_seconds: float | None = None

    @property
    def ratio(self) -> float | None:
        """The peer's time divided by ours."""
        return None if self.peer_seconds is None else self.peer_seconds / self.seconds

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "what": self.what,
            "nodes": self.nodes,
            "seconds": self.seconds,
            "pieces": self.pieces,
            "peer": self.peer,
            "peer_seconds": self.peer_seconds,
            "ratio": self.ratio,
        }


@dataclass(frozen=True)
class Bench:
    """What was measured, and estimates for a run with ``nodes`` and ``silos``."""

    nodes: int
    silos: int
    simd: str
    cores: int
    #: The load of the machine before anything was measured.
    load: float
    triangles: Measured
    union: Measured
    elgamal: Measured
    upload_bytes: int
    release_bytes: int

    @property
    def pairs(self) -> int:
        """The number of pairs of nodes."""
        return _pairs(self.nodes)

    @property
    def estimates(self) -> dict[str, float]:
        """Estimated seconds of each kind of work, with all parties on this machine."""
        return {
            "masked": self.union.seconds / self.union.pieces * self.pairs * self.silos,
            "elgamal/blinded": self.elgamal.seconds / self.elgamal.pieces * self.pairs * self.silos,
            "triangles": self.triangles.seconds * (self.nodes / self.triangles.nodes) ** 3,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "nodes": self.nodes,
            "silos": self.silos,
            "pairs": self.pairs,
            "simd": self.simd,
            "cores": self.cores,
            "load": self.load,
            "measured": [m.to_dict() for m in (self.triangles, self.union, self.elgamal)],
            "estimates": self.estimates,
            "upload_bytes": self.upload_bytes,
            "release_bytes": self.release_bytes,
        }


def measure(nodes: int, silos: int) -> Bench:
    """Measure this machine for a run with ``nodes`` and ``silos``. This takes some seconds."""
    if not _LEAST_NODES <= nodes <= _MOST_NODES:
        raise ArgumentError(f"nodes must be from {_LEAST_NODES} to {_MOST_NODES:,}, not {nodes}")
    check_parties(silos, 1)
    q = MaskedNoise.choose(_EPSILON, silos, 1).q
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LedgerWarning)  # a generated graph needs no ledger
        return Bench(
            nodes,
            silos,
            simd_levels()[-1],
            cores,
            load,
            _triangles(min(nodes, _TRIANGLE_NODES)),
            _union(nodes, silos, q),
            _elgamal(silos),
            packed_bytes(q, _pairs(nodes)),
            triangle_bytes(nodes),
        )


def _triangles(n: int) -> Measured:
    graph = Release.draw(clustered_power_law(n, seed=1), Channel.symmetric(_EPSILON), seed=1).graph

    def ours() -> int:
        return _core.count_triangles(graph.words)

    name, peer = _igraph(graph) if find_spec("igraph") is not None else _numpy(graph)
    if ours() != peer():
        raise AssertionError(f"{name} counts a different number of triangles")
    mine, other = _in_turns(ours, peer)
    return Measured("triangles", n, mine, 1, name, other)


def _igraph(graph: BitRows) -> tuple[str, Callable[[], int]]:
    made = import_module("igraph").Graph(n=graph.n, edges=graph.pairs().astype(np.int64))
    return "igraph", lambda: round(made.transitivity_undirected() * graph.wedges / 3)


def _numpy(graph: BitRows) -> tuple[str, Callable[[], int]]:
    dense = graph.bits(slice(0, graph.n)).astype(np.float32)

    def count() -> int:
        walks = np.einsum("ij,ij->i", dense @ dense, dense)
        return round(float(walks.sum(dtype=np.float64))) // 6

    return "NumPy's product", count


def _union(nodes: int, silos: int, q: int) -> Measured:
    n = min(nodes, int((2 * _UNION_WORK / silos) ** 0.5))
    federation, pieces = _federation(n, silos), _pairs(n) * silos
    size, step = packed_bytes(q, pieces * silos), 1 << 20

    def ours() -> object:
        return federation.collect(_EPSILON, "masked", progress=False)

    def drawn() -> None:
        # Per pair, a silo draws one element for itself and one that it shares with each other silo.
        for _ in range(size // step):
            os.urandom(step)
        os.urandom(size % step)

    mine, other = _in_turns(ours, drawn)
    return Measured("masked", n, mine, pieces, "os.urandom", other)


def _elgamal(silos: int) -> Measured:
    n = _ELGAMAL_NODES if silos <= 8 else _LEAST_NODES
    federation = _federation(n, silos)
    start = time.perf_counter()
    federation.collect(_EPSILON, "elgamal/blinded", progress=False)
    return Measured("elgamal/blinded", n, time.perf_counter() - start, _pairs(n) * silos)


def _federation(n: int, silos: int) -> Federation:
    return Federation.simulate(split(clustered_power_law(n, seed=1), silos))


def _in_turns(ours: Callable[[], object], peer: Callable[[], object]) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        for run, taken in zip((ours, peer), times, strict=True):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


def _pairs(n: int) -> int:
    return n * (n - 1) // 2


# --- ``silograph bench`` --------------------------------------------------------------------------

console = Console(highlight=False)


def bench(
    nodes: Annotated[int, typer.Option(help="The number of nodes of the planned run.")] = 4_000,
    silos: Annotated[int, typer.Option(help="The number of silos of the planned run.")] = 4,
    as_json: Json = False,
) -> None:
    """Measure this machine for some seconds and estimate the time of a run.

    Each kind of work is also compared with a peer, a well-known program that does similar work.

    $ silograph bench --nodes 20000 --silos 5
    """
    beside = Console(stderr=True)
    with beside.status("measuring") if beside.is_terminal else nullcontext():
        found = measure(nodes, silos)
    if as_json:
        echo_json(found.to_dict())
        return
    console.print(_measured(found))
    console.print(_estimated(found))


def _measured(found: Bench) -> Table:
    table = Table(
        title=f"measured on {found.cores} cores, {found.simd}, load {found.load:.1f} before",
        title_justify="left",
        caption="The best of several alternating runs. ratio: the peer's time divided by ours. "
        "*: per pair and silo. os.urandom only draws the random bytes of all masks.",
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
        caption="All parties on this machine. On their own machines, silos work in parallel.",
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
    """Show a time in a suitable unit.

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
