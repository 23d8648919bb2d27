"""The seeded generator: golden, simple, clustered and heavy-tailed."""

import hashlib
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph.errors import ArgumentError
from silograph.graph import NodeUniverse, clustered_power_law


def test_golden() -> None:
    graph = clustered_power_law()
    assert (
        hashlib.sha256(graph.pairs.tobytes()).hexdigest()
        == "2703dc8b7064f17eed253382787928e4bc613ec940e10ed0751a62cc8677e91b"
    )
    assert graph.universe == NodeUniverse.range(1000)
    assert len(graph) == 992 * 8
    assert graph == clustered_power_law(seed=0)
    assert graph != clustered_power_law(seed=1)


@settings(max_examples=60)
@given(st.integers(2, 80), st.data(), st.floats(0, 1), st.integers(0, 2**70))
def test_simple_connected_and_of_the_promised_size(
    n: int, data: st.DataObject, closure: float, seed: int
) -> None:
    each = data.draw(st.integers(1, n - 1))
    graph = clustered_power_law(n, each, closure, seed)
    assert len(graph) == (n - each) * each
    assert graph.report.repeats == graph.report.self_loops == 0
    assert nx.is_connected(nx.Graph(graph.pairs.tolist()))
    assert (graph.degrees()[each:] >= each).all()


def test_clustered_and_heavy_tailed() -> None:
    loose, tight = (clustered_power_law(5000, 6, closure) for closure in (0.0, 0.9))
    assert tight.triangles() > 4 * loose.triangles()
    degrees = loose.degrees()
    # Preferential attachment: the hubs are far above the mean, which a uniform choice never is.
    assert degrees.max() > 10 * degrees.mean()
    assert degrees[:50].mean() > 5 * degrees[-1000:].mean()


def test_large_is_quick() -> None:
    assert len(clustered_power_law(100_000, 8)) == 99_992 * 8


@pytest.mark.parametrize(
    "options",
    [
        {"n": 8},
        {"n": 0},
        {"n": 10.0},
        {"n": True},
        {"edges_per_node": 0},
        {"n": 10**9, "edges_per_node": 10**8},
        {"closure": 1.5},
        {"closure": float("nan")},
        {"closure": "0.5"},
        {"closure": None},
        {"seed": -1},
    ],
)
def test_bad_arguments(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        clustered_power_law(**options)
