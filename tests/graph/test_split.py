"""The splitter keeps its definition for every number of silos, rate and overlap."""

import hashlib
import math
import warnings
from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from silograph.errors import ArgumentError, SplitWarning
from silograph.graph import NodeUniverse, Silo, clustered_power_law, split, union

GRAPH = clustered_power_law(300, 7, 0.5, seed=3)
shares = st.integers(0, 100).map(lambda percent: percent / 100)


def holders(silos: tuple[Silo, ...]) -> Counter[tuple[int, int]]:
    return Counter(tuple(pair) for silo in silos for pair in silo.pairs.tolist())


@example(5, 0.1, 0.0, 0, 1)  # a half, exactly: 0.1 is taken as it is written
@example(3, 0.76, 0.63, 0, 1)
@given(st.integers(2, 64), shares, shares, st.integers(0, 2**70), st.integers(0, 60))
def test_definition(m: int, rate: float, overlap: float, seed: int, edges: int) -> None:
    nodes = NodeUniverse.range(edges + 1)
    graph = Silo.from_pairs(nodes, [[0, node] for node in range(1, edges + 1)])
    rho, sigma = Fraction(str(rate)), Fraction(str(overlap))
    joint = round(min(Fraction(1), m * rho / (1 + sigma)) * edges)
    shared = round(sigma * joint)
    # What is asked of the shared edges, and whether all silos together can give it.
    asked = round(m * rho * edges) - (joint - shared)
    short = m * rho > 1 + sigma * (m - 1) and asked > m * shared
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        silos = split(graph, m, rate, overlap, seed)
    assert [warning.category for warning in caught] == [SplitWarning] * short
    assert len(silos) == m
    assert all(silo.universe is nodes for silo in silos)
    assert [silo.name for silo in silos] == [f"silo {number + 1}" for number in range(m)]

    held = holders(silos)
    assert len(held) == joint
    assert set(held) <= set(map(tuple, graph.pairs.tolist()))
    several = [count for count in held.values() if count > 1]
    assert len(several) == shared
    if several:
        assert max(several) - min(several) <= 1
    if m * rho <= 1 + sigma:
        assert set(several) <= {2}
    elif short:
        assert set(several) <= {m}
    elif 2 * shared <= asked <= m * shared:
        assert sum(several) == asked
    else:
        # Only rounding can ask for fewer or more than the shared edges can give.
        assert min(abs(asked - 2 * shared), abs(asked - m * shared)) <= m
    # Single edges even out the sizes, as far as there are enough of them.
    sizes = [len(silo) for silo in silos]
    common = [sum(held[u, v] > 1 for u, v in silo.pairs.tolist()) for silo in silos]
    if joint - shared >= sum(max(common) - count for count in common):
        assert max(sizes) - min(sizes) <= 1
    else:
        topped = [size for size, count in zip(sizes, common, strict=True) if size > count]
        assert not topped or max(topped) - min(sizes) <= 1


@pytest.mark.parametrize(("m", "rate", "overlap"), [(4, 0.3, 0.2), (2, 0.5, 0.1), (8, 0.3, 0.5)])
def test_sizes_and_rates_on_a_graph(m: int, rate: float, overlap: float) -> None:
    silos = split(GRAPH, m, rate, overlap)
    sizes = [len(silo) for silo in silos]
    assert max(sizes) - min(sizes) <= 1
    assert math.isclose(sum(sizes) / m, rate * len(GRAPH), abs_tol=1.5)
    if m == 4:
        assert union(silos) == GRAPH


def test_deterministic_in_the_seed() -> None:
    assert split(GRAPH, 4, seed=5) == split(GRAPH, 4, seed=5)
    assert split(GRAPH, 4, seed=5) != split(GRAPH, 4, seed=6)
    digest = hashlib.sha256(b"".join(silo.pairs.tobytes() for silo in split(GRAPH, 4, seed=5)))
    assert digest.hexdigest() == "0afd1e0269b0be67b9ccba33a5232a758e7c921d4f4ecafa72ce83bafb16624d"


def test_holders_of_shared_edges_are_uniform() -> None:
    """Every pair of silos is as likely: chi-square with 9 degrees, false alarm below 1e-9."""
    nodes = NodeUniverse.range(20_001)
    star = Silo.from_pairs(nodes, np.stack([np.zeros(20_000, int), np.arange(1, 20_001)], axis=1))
    silos = split(star, 5, 0.4, 1.0, seed=11)
    masks = np.zeros(20_001, dtype=int)
    for number, silo in enumerate(silos):
        masks[silo.pairs[:, 1]] |= 1 << number
    counts = [int((masks == (1 << a | 1 << b)).sum()) for a, b in combinations(range(5), 2)]
    assert sum(counts) == 20_000
    statistic = sum((count - 2000) ** 2 / 2000 for count in counts)
    assert statistic < 64.4
    # Which edges are left out must not depend on their place in the list.
    some = split(star, 2, 0.25, 0.0, seed=11)
    lower = sum(int((silo.pairs[:, 1] <= 10_000).sum()) for silo in some)
    assert abs(lower - 5000) < 6.2 * math.sqrt(10_000 / 4 * 0.5)


def test_the_reached_rate_is_told() -> None:
    with pytest.warns(SplitWarning, match=r"a rate of 0.9 .* 4 silos .* 0.1: .* 0.325 of the"):
        silos = split(GRAPH, 4, 0.9, 0.1)
    assert union(silos) == GRAPH
    assert sum(map(len, silos)) / (4 * len(GRAPH)) == pytest.approx(0.325, abs=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"silos": 1},
        {"silos": 65},
        {"silos": 2.0},
        {"silos": True},
        {"silos": 4, "rate": float("nan")},
        {"silos": 4, "rate": -0.1},
        {"silos": 4, "rate": 1.1},
        {"silos": 4, "rate": "0.3"},
        {"silos": 4, "overlap": float("inf")},
        {"silos": 4, "overlap": None},
        {"silos": 4, "seed": -1},
        {"silos": 4, "seed": 1.0},
        {"silos": 4, "seed": True},
    ],
)
def test_bad_arguments(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        split(GRAPH, **options)
    with pytest.raises(ArgumentError):
        split([(0, 1)], 4)  # type: ignore[arg-type]
