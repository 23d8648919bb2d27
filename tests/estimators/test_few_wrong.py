"""Intervals where the noise leaves nearly all bits right: the exact coverage, from all graphs with
at most one wrong bit. What more wrong bits would do is left out of the covered share."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from silograph import Channel, Estimate, NodeUniverse, Release, Silo
from silograph.estimators.few_wrong import cycle_jumps, star_jumps, triangle_jumps
from silograph.graph.bits import BitRows
from tests.estimators.tiny import all_graphs, graph

Ask = Callable[[Release], Estimate[Any]]


def silo_of(n: int, edges: Any) -> Silo:
    return Silo.from_edges(NodeUniverse.range(n), np.array(edges).reshape(-1, 2))


def covered(whole: Silo, channel: Channel, ask: Ask) -> tuple[float, float]:
    """The probability of all graphs with at most one wrong bit, and of those whose interval holds
    the truth."""
    n = len(whole.universe)
    pairs = np.array(list(itertools.combinations(range(n), 2)), dtype=np.uint32)
    edges = {(int(u), int(v)) for u, v in whole.pairs}
    wrong = np.array(
        [1 - channel.p11 if (int(u), int(v)) in edges else channel.p01 for u, v in pairs],
        dtype=np.float64,
    )
    right = float(np.prod(1 - wrong))
    truth = ask(Release.draw(whole, Channel(1, 0), seed=1)).value
    drawn = Release.draw(whole, channel, seed=1)
    total = held = 0.0
    for at in range(-1, len(pairs)):
        shown = edges if at < 0 else edges ^ {(int(pairs[at, 0]), int(pairs[at, 1]))}
        bits = np.array(sorted(shown), dtype=np.uint32).reshape(-1, 2)
        release = Release(
            BitRows.from_pairs(n, bits), channel, drawn.universe_digest, drawn.provenance,
            drawn.views, drawn.losses, drawn.universe,
        )  # fmt: skip
        low, high = ask(release).interval
        probability = right if at < 0 else right * wrong[at] / (1 - wrong[at])
        total += probability
        held += probability * (low - 1e-9 <= truth <= high + 1e-9)
    return total, held


STAR = silo_of(40, [(0, leaf) for leaf in range(1, 40)])
DENSE = silo_of(24, np.argwhere(np.triu(np.random.default_rng(1).random((24, 24)) < 0.5, 1)))
#: .2 of all bits and .11 of the star's edges are wrong in the mean.
FEW, HUB = Channel(1 - 0.2 / 276, 0.2 / 276), Channel(1 - 0.11 / 39, 1e-5)
#: Intervals that are stretched as those of the number of edges are hold .90, .91 and .90.
CASES: dict[str, tuple[Silo, Channel, Ask]] = {
    "triangles of a dense graph": (DENSE, FEW, Release.triangles),
    "4-cycles of a dense graph": (DENSE, FEW, Release.four_cycles),
    "2-stars of a star": (STAR, HUB, lambda r: r.kstars(2)),
}


@pytest.mark.parametrize("name", CASES)
def test_exact_coverage(name: str) -> None:
    total, held = covered(*CASES[name])
    assert total > 0.97
    assert held >= 0.95


def test_a_count_between_two_whole_numbers() -> None:
    """A star in which two leaves are joined has no 4-cycle, and its release says so: the interval
    of a number that is near .04 reaches down to 0."""
    star = [(0, leaf) for leaf in range(1, 200)]
    for seed in range(20):
        release = Release.draw(silo_of(200, star), Channel("0.99966", "0.00034"), seed)
        low, high = release.four_cycles().interval
        assert (low, high) == (math.floor(low), math.ceil(high))
        assert low <= 0 <= high


def _rows(matrix: Any) -> BitRows:
    return BitRows.from_pairs(4, np.argwhere(np.triu(matrix)).astype(np.uint32))


def _cycles(rows: BitRows) -> int:
    matrix = rows.bits(slice(None)).astype(np.int64)
    square = matrix @ matrix
    return int(sum(math.comb(int(square[u, v]), 2) for u in range(4) for v in range(u))) // 2


@pytest.mark.parametrize(
    ("jumps", "count"),
    [
        (star_jumps(2), lambda g: sum(math.comb(int(d), 2) for d in g.degrees)),
        (star_jumps(3), lambda g: sum(math.comb(int(d), 3) for d in g.degrees)),
        (triangle_jumps, lambda g: g.triangles),
        (cycle_jumps, _cycles),
    ],
    ids=["2-stars", "3-stars", "triangles", "4-cycles"],
)
def test_jumps_are_what_a_pair_changes(jumps: Any, count: Callable[[BitRows], int]) -> None:
    """On all graphs of four nodes."""
    for bits in all_graphs(4):
        rows = graph(4, bits).graph
        matrix = rows.bits(slice(None)).astype(np.float64)
        found = jumps(matrix)
        for u, v in itertools.combinations(range(4), 2):
            without, beside = matrix.copy(), matrix.copy()
            without[u, v] = without[v, u] = 0
            beside[u, v] = beside[v, u] = 1
            change = count(_rows(beside)) - count(_rows(without))
            assert found[u, v] == change
