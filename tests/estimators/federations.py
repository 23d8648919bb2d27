"""Every local answer on federations of four nodes, without cleverness and in exact fractions.

A silo's answer in the form ``paper`` is a sum over the nodes that it owns, and depends on its own
edges and the release alone. So a table over all own graphs, all releases and all nodes holds every
answer of every silo of every federation, whatever the owners and the holders.
"""

import itertools
import math
from fractions import Fraction
from functools import cache

from silograph.dp.channel import Channel
from tests.estimators.tiny import pairs_of

#: All queries of the two forms on four nodes.
PAPER = [("triangles", None), ("kstars", 2), ("kstars", 3)]
GRADIENT = [*PAPER, ("kstars", 1), ("edges", None), ("four_cycles", None)]


def weight(channel: Channel, held: int, noisy: int, n: int, u: int, v: int) -> Fraction:
    """1 on an own edge, a(y) elsewhere."""
    bit = pairs_of(n).index((min(u, v), max(u, v)))
    if held >> bit & 1:
        return Fraction(1)
    return channel.alpha if noisy >> bit & 1 else channel.beta


def motifs(query: str, k: int | None, n: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """Every copy of the motif in the complete graph: the node whose owner counts it (-1 for none),
    and its pairs."""
    nodes = range(n)
    match query:
        case "edges":
            return [(u, [(u, v)]) for u, v in pairs_of(n)]
        case "triangles":
            triples = itertools.combinations(nodes, 3)
            return [(u, [(u, v), (u, w), (v, w)]) for u, v, w in triples]
        case "four_cycles":
            found = []
            for a, b, c, d in itertools.combinations(nodes, 4):
                for walk in ((a, b, c, d), (a, b, d, c), (a, c, b, d)):
                    ends = [*walk, walk[0]]
                    found.append((-1, [tuple(sorted(p)) for p in itertools.pairwise(ends)]))
            return found  # type: ignore[return-value]
    assert k is not None
    return [
        (u, [(min(u, v), max(u, v)) for v in leaves])
        for u in nodes
        for leaves in itertools.combinations([v for v in nodes if v != u], k)
    ]


def naive_local(
    query: str, k: int | None, channel: Channel, n: int, held: int, noisy: int, node: int
) -> Fraction:
    """A silo's answer for one node that it owns."""
    total = Fraction(0)
    for owner, pairs in motifs(query, k, n):
        if owner == node:
            total += math.prod(weight(channel, held, noisy, n, *p) for p in pairs)
    return total


@cache
def naive_gradient(
    query: str, k: int | None, channel: Channel, n: int, noisy: int, pair: tuple[int, int]
) -> Fraction:
    """What the estimate gains when a pair's weight grows by 1."""
    total = Fraction(0)
    for _, pairs in motifs(query, k, n):
        if pair in pairs:
            others = (weight(channel, 0, noisy, n, *p) for p in pairs if p != pair)
            total += math.prod(others, start=Fraction(1))
    return total
