"""The paper's figure "Running time with various ρ": the wall time of one whole study.

All parties work in one process, one after the other but for the threads that each uses, so a time
is the work of all silos and of the coordinator together. Nothing waits for a network. ``seconds``
is the least of the repetitions, ``spread`` their standard deviation. ``work`` is processor time
over all threads, the least again: what to compare by where a machine had other things to do.

ElGamal takes minutes on the paper's graphs. Its work is the same for every pair, whatever the bits
are, so the union is timed on the pairs among the first nodes alone and scaled up to all pairs, but
for what a union of one pair takes: keys and tables, made once. What follows the union is timed on
the whole graph. Such rows are ``scaled``. The union is the same work in feat and in feat+, for
every query: it is measured once for all of them.

The sealed method's time does not depend on the edges either, so that one ρ is enough for it.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from silograph.errors import ArgumentError
from silograph.experiments.whole_studies import (
    WholeStudy,
    count_printed_feat,
    count_printed_featplus,
    draw_printed_release,
    elgamal_union,
    mended,
    printed_baseline,
)
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse

__all__ = ["WAYS", "Way", "cases", "first_nodes", "measure", "nodes_for", "scale_up"]


class Way(NamedTuple):
    """A method, in one of its forms, over one union."""

    method: str
    form: str
    union: str


class Spent(NamedTuple):
    """Seconds on the clock, and of processors."""

    wall: float
    work: float


#: Every way that is timed.
WAYS = (
    Way("baseline", "printed", "reports"),
    Way("baseline", "mended", "reports"),
    Way("feat", "printed", "elgamal/replace"),
    Way("feat+", "printed", "elgamal/replace"),
    Way("feat", "mended", "masked"),
    Way("feat+", "mended", "masked"),
    Way("sealed", "mended", "sealed"),
)
_COUNTS: dict[str, Callable[[WholeStudy, bytes], float]] = {
    "feat": count_printed_feat,
    "feat+": count_printed_featplus,
}
#: Unions of one pair, of which the quickest counts.
_ROUNDS = 3
_SCALED = (
    "the union was timed on measured_pairs and scaled up to pairs; the rest on the whole graph"
)
_ONE_RHO = "the time does not depend on the edges: one ρ stands for all"


def cases(parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The arguments of :func:`measure`, but for the silos, for every row of the figure.

    The sealed method is measured at ``sealed_values`` of ρ.
    """
    strange = set(parameters["sealed_values"]) - set(parameters["values"])
    if strange:
        raise ArgumentError(f"sealed_values has {min(strange)}, which is not one of values")
    common = {key: parameters[key] for key in ("epsilon", "delta", "collusion", "elgamal_pairs")}
    found = []
    for graph in parameters["graphs"]:
        for rho in parameters["values"]:
            for way in WAYS:
                left_out = way.method == "sealed" and rho not in parameters["sealed_values"]
                if left_out or way.method not in parameters["methods"]:
                    continue
                quick = way.method != "sealed" and way.union != "elgamal/replace"
                repetitions = parameters["repetitions"] if quick else 1
                for query in parameters["queries"]:
                    about = {"graph": graph, "rho": rho, "query": query}
                    found.append(
                        {**about, **way._asdict(), "repetitions": repetitions, **common}
                    )  # fmt: skip
    return found


def measure(
    silos: Sequence[Silo],
    *,
    graph: str,
    rho: float,
    query: str,
    method: str,
    form: str,
    union: str,
    epsilon: float,
    delta: float,
    collusion: int,
    elgamal_pairs: int,
    repetitions: int,
) -> dict[str, Any]:
    """One row: the time of one study over the silos, which hold a share ``rho`` of a graph each."""
    way = Way(method, form, union)
    if way not in WAYS:
        known = "; ".join(", ".join(known) for known in WAYS)
        raise ArgumentError(f"no such way: {', '.join(way)}; there are {known}")
    if repetitions < 1:
        raise ArgumentError(f"repetitions is {repetitions}; there must be at least 1")
    asked = WholeStudy(tuple(silos), query, epsilon, delta, collusion)
    measured, note = asked.pairs, ""
    if union == "elgamal/replace":
        measured, spent = _elgamal(asked, method, elgamal_pairs, repetitions)
        note = _SCALED if measured < asked.pairs else ""
    elif form == "printed":
        spent = _timed(lambda: printed_baseline(asked), repetitions)
    else:
        spent = _timed(lambda: mended(asked, method), repetitions)
        note = _ONE_RHO if method == "sealed" else ""
    walls = [one.wall for one in spent]
    return {
        "experiment": "time",
        "graph": graph,
        "rho": rho,
        **way._asdict(),
        "query": query,
        "seconds": min(walls),
        "measured_pairs": measured,
        "pairs": asked.pairs,
        "scaled": measured < asked.pairs,
        "repetitions": len(spent),
        "spread": statistics.stdev(walls) if len(walls) > 1 else 0.0,
        "work": min(one.work for one in spent),
        "note": note,
    }


def _elgamal(
    asked: WholeStudy, method: str, elgamal_pairs: int, repetitions: int
) -> tuple[int, list[Spent]]:
    """The pairs that the union was timed on, and what a study on all of them takes."""
    nodes = min(nodes_for(elgamal_pairs), asked.n)
    part = replace(asked, silos=first_nodes(asked.silos, nodes), query="triangles")
    unions = _union_times(part, repetitions)
    if nodes < asked.n:
        smallest = replace(part, silos=first_nodes(asked.silos, 2))
        fixed = [min(times) for times in zip(*_union_times(smallest, _ROUNDS), strict=True)]
        sizes = part.pairs, asked.pairs
        unions = [
            Spent(*(scale_up(t, once, *sizes) for t, once in zip(one, fixed, strict=True)))
            for one in unions
        ]
    release = draw_printed_release(asked, method, seed=0)
    counts = _timed(lambda: _COUNTS[method](asked, release), repetitions)
    both = zip(unions, counts, strict=True)
    return part.pairs, [Spent(u.wall + c.wall, u.work + c.work) for u, c in both]


@lru_cache(maxsize=4)
def _union_times(part: WholeStudy, repetitions: int) -> list[Spent]:
    return _timed(lambda: elgamal_union(part), repetitions)


def scale_up(seconds: float, fixed: float, measured: int, pairs: int) -> float:
    """The seconds of all pairs from those of the measured ones, of which ``fixed`` are not work on
    pairs.

    >>> scale_up(3.0, fixed=1.0, measured=10, pairs=100)
    21.0
    """
    fixed = min(fixed, seconds)
    return fixed + (seconds - fixed) * pairs / measured


def nodes_for(pairs: int) -> int:
    """The least number of nodes that have so many pairs.

    >>> nodes_for(1), nodes_for(3), nodes_for(4), nodes_for(2**17)
    (2, 3, 4, 513)
    """
    if pairs < 1:
        raise ArgumentError(f"pairs is {pairs}; there must be at least 1")
    nodes = (1 + math.isqrt(8 * pairs + 1)) // 2
    return nodes if nodes * (nodes - 1) // 2 >= pairs else nodes + 1


def first_nodes(silos: Sequence[Silo], nodes: int) -> tuple[Silo, ...]:
    """The silos' edges among the first nodes of the universe."""
    universe = NodeUniverse.range(nodes)
    return tuple(
        Silo.from_pairs(universe, silo.pairs[silo.pairs[:, 1] < nodes], name=silo.name)
        for silo in silos
    )


def _timed(study: Callable[[], object], repetitions: int) -> list[Spent]:
    found = []
    for _ in range(repetitions):
        wall, work = time.perf_counter(), time.process_time()
        study()
        found.append(Spent(time.perf_counter() - wall, time.process_time() - work))
    return found
