"""Every outcome of a channel on graphs of four and five nodes, in exact fractions."""

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

import numpy as np

from silograph import NodeUniverse, Provenance, Release, View
from silograph.dp.channel import Channel
from silograph.dp.loss import PUBLISHED
from silograph.estimators.pair_sums import GraphSums
from silograph.graph.bits import BitRows

#: Symmetric, both ways asymmetric, nearly useless, and one with awkward fractions.
CHANNELS = [
    Channel("3/4", "1/4"),
    Channel("20/21", "1/15"),
    Channel("2/3", "1/4"),
    Channel("11/20", "9/20"),
    Channel("97/101", "3/89"),
]


@cache
def pairs_of(n: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(n), 2))


@cache
def graph(n: int, bits: int) -> GraphSums:
    """The graph whose pair k is an edge where bit k is set."""
    chosen = [pair for k, pair in enumerate(pairs_of(n)) if bits >> k & 1]
    return GraphSums(BitRows.from_pairs(n, np.array(chosen, dtype=np.uint32).reshape(-1, 2)))


def all_graphs(n: int) -> range:
    return range(1 << len(pairs_of(n)))


def outcomes(n: int, truth: int, channel: Channel) -> Iterator[tuple[int, Fraction]]:
    """Every noisy graph with its exact probability."""
    count = len(pairs_of(n))
    given = {
        (1, 1): channel.p11,
        (1, 0): 1 - channel.p11,
        (0, 1): channel.p01,
        (0, 0): 1 - channel.p01,
    }
    for noisy in all_graphs(n):
        steps = (given[truth >> k & 1, noisy >> k & 1] for k in range(count))
        yield noisy, math.prod(steps, start=Fraction(1))


def mean_and_variance(
    n: int, truth: int, channel: Channel, value: Callable[[int], Fraction]
) -> tuple[Fraction, Fraction]:
    first = second = Fraction(0)
    for noisy, probability in outcomes(n, truth, channel):
        x = value(noisy)
        first += probability * x
        second += probability * x * x
    return first, second - first**2


def naive(query: str, sums: GraphSums, k: int = 0) -> int:
    """The truth, counted without any cleverness."""
    n, edges = sums.graph.n, {tuple(pair) for pair in sums.graph.pairs().tolist()}

    def has(u: int, v: int) -> bool:
        return (min(u, v), max(u, v)) in edges

    degrees = [sum(has(u, v) for v in range(n) if v != u) for u in range(n)]
    match query:
        case "edges":
            return len(edges)
        case "kstars":
            return sum(math.comb(d, k) for d in degrees)
        case "triangles":
            triples = itertools.combinations(range(n), 3)
            return sum(has(a, b) and has(a, c) and has(b, c) for a, b, c in triples)
        case "four_cycles":
            cycles = 0
            for four in itertools.combinations(range(n), 4):
                a, *rest = four
                for b, c, d in ((0, 1, 2), (0, 2, 1), (1, 0, 2)):
                    walk = [a, rest[b], rest[c], rest[d], a]
                    cycles += all(has(p, q) for p, q in itertools.pairwise(walk))
            return cycles
    raise AssertionError(query)


@cache
def law(n: int, channel: Channel) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """P(noisy graph | true graph) in floats: a row for each truth, a column for each outcome."""
    p11, p01 = float(channel.p11), float(channel.p01)
    one, found = np.array([[1 - p01, p01], [1 - p11, p11]]), np.ones((1, 1))
    for _ in pairs_of(n):
        found = np.kron(one, found)
    return found


def release(n: int, bits: int, channel: Channel) -> Release:
    """The release that shows this graph."""
    universe = NodeUniverse.range(n)
    view = View(PUBLISHED, channel.epsilon)
    made = Provenance(method="feat", protocol="clear", silos=1)
    rows = graph(n, bits).graph
    return Release(rows, channel, universe.digest, made, (view,), {0: 1.0}, universe)
