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


def test_stars_that_nobody_has() -> None:
    """No node of a ring has three neighbours: the numbers are near 0, and intervals hold it."""
    ring = silo_of(30, [(u, (u + 1) % 30) for u in range(30)])
    for seed in range(20):
        release = Release.draw(ring, Channel.symmetric(8.48), seed)
        for k in (3, 4, 5):
            assert release.kstars(k).interval[0] == 0


def test_a_core_among_many_others() -> None:
    """Some 450 bits are wrong, .1 of them in the core, in the mean: an interval without jumps is
    less than half as wide."""
    core = silo_of(600, list(itertools.combinations(range(10), 2)))
    found = Release.draw(core, Channel.symmetric(6.0), seed=1).triangles()
    low, high = found.interval
    assert high - low > 1.2 * 2 * 1.96 * found.stderr


def test_triangles_between_groups() -> None:
    """A wrong bit of the core moves 22 triangles, and the interval has room for it."""
    core = silo_of(100, list(itertools.combinations(range(24), 2)))
    parts = {node: node % 2 for node in range(100)}
    found = Release.draw(core, Channel.symmetric(7.2), seed=1).triangles_by(parts)
    low, high = found.interval
    assert (high - low > 1.1 * 2 * 1.96 * found.stderr).all()
    wide = found.interval_at(0.99)
    assert (wide[0] <= low).all()
    assert (wide[1] >= high).all()


def test_nearly_surely_no_wrong_bit() -> None:
    """Where one wrong bit is rarer than 1 in 20, intervals are as short as normal ones."""
    whole = silo_of(20, list(itertools.combinations(range(20), 2)))
    release = Release.draw(whole, Channel.symmetric(12.0), seed=1)
    for found in (release.triangles(), release.kstars(2), release.four_cycles()):
        low, high = found.interval
        assert high - low <= 2 * 1.96 * found.stderr + 2
        # One that misses one in a million reaches a wrong bit.
        low, high = found.interval_at(1 - 1e-6)
        assert high - low > 2 * 1.5 * 4.89 * found.stderr


def test_a_ratio_of_the_same() -> None:
    release = Release.draw(DENSE, FEW, seed=1)
    low, high = (release.edges() / release.edges()).interval
    assert low == pytest.approx(1) == high


def test_nodes() -> None:
    """Each wrong bit at a node is one of few, and moves its triangles by many."""
    found = Release.draw(DENSE, FEW, seed=1)
    triangles, local = found.node_triangles(), found.local_clustering()
    low, high = triangles.interval
    assert (low == np.floor(low)).all()
    assert (high == np.ceil(high)).all()
    assert (local.interval[1] >= local.interval[0]).all()


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
