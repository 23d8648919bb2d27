"""The paper's figure "Running time with various ρ": the wall time of one whole study.

All parties work in one process, one after the other but for the threads that each uses, so a time
is the work of all silos and of the coordinator together. Nothing waits for a network. ``seconds``
is the least of the repetitions, ``spread`` their standard deviation.

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
    Asked,
    count_printed_feat,
    count_printed_featplus,
    draw_printed_release,
    elgamal_union,
    mended,
    printed_baseline,
)
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse

__all__ = ["WAYS", "Way", "cases", "measure", "nodes_for", "scale_up"]


class Way(NamedTuple):
    """A method, in one of its forms, over one union."""

    method: str
    form: str
    union: str


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
_COUNTS: dict[str, Callable[[Asked, bytes], float]] = {
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
    asked = Asked(tuple(silos), query, epsilon, delta, collusion)
    measured, note = asked.pairs, ""
    if union == "elgamal/replace":
        measured, seconds = _elgamal(asked, method, elgamal_pairs, repetitions)
        note = _SCALED if measured < asked.pairs else ""
    elif form == "printed":
        seconds = _timed(lambda: printed_baseline(asked), repetitions)
    else:
        seconds = _timed(lambda: mended(asked, method), repetitions)
        note = _ONE_RHO if method == "sealed" else ""
    return {
        "experiment": "time",
        "graph": graph,
        "rho": rho,
        **way._asdict(),
        "query": query,
        "seconds": min(seconds),
        "measured_pairs": measured,
        "pairs": asked.pairs,
        "scaled": measured < asked.pairs,
        "repetitions": len(seconds),
        "spread": statistics.stdev(seconds) if len(seconds) > 1 else 0.0,
        "note": note,
    }


def _elgamal(
    asked: Asked, method: str, elgamal_pairs: int, repetitions: int
) -> tuple[int, list[float]]:
    """The pairs that the union was timed on, and the seconds of a study on all of them."""
    nodes = min(nodes_for(elgamal_pairs), asked.n)
    part = replace(asked, silos=first_nodes(asked.silos, nodes), query="triangles")
    unions = _union_seconds(part, repetitions)
    if nodes < asked.n:
        smallest = replace(part, silos=first_nodes(asked.silos, 2))
        fixed = min(_union_seconds(smallest, _ROUNDS))
        unions = [scale_up(union, fixed, part.pairs, asked.pairs) for union in unions]
    release = draw_printed_release(asked, method, seed=0)
    counts = _timed(lambda: _COUNTS[method](asked, release), repetitions)
    return part.pairs, [union + count for union, count in zip(unions, counts, strict=True)]


@lru_cache(maxsize=4)
def _union_seconds(part: Asked, repetitions: int) -> list[float]:
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


def _timed(study: Callable[[], object], repetitions: int) -> list[float]:
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        study()
        seconds.append(time.perf_counter() - start)
    return seconds
