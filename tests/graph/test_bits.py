"""Bit rows: both layouts, and every kernel on every instruction set against other libraries."""

import subprocess
import sys

import networkx
import numpy as np
import pytest

from silograph import _core, clustered_power_law
from silograph.graph.bits import BitRows, simd_levels, triangle_bytes

SILO = clustered_power_law(300, edges_per_node=6, closure=0.8, seed=2)
GRAPH = BitRows.from_pairs(300, SILO.pairs)


@pytest.fixture(scope="module")
def peer() -> "networkx.Graph[int]":
    graph: networkx.Graph[int] = networkx.empty_graph(300)
    graph.add_edges_from(SILO.pairs.tolist())
    return graph


def test_layouts_round_trip() -> None:
    triangle = GRAPH.to_triangle()
    assert len(triangle) == triangle_bytes(300)
    assert BitRows.from_triangle(300, triangle) == GRAPH
    assert (GRAPH.pairs() == SILO.pairs).all()
    bits = GRAPH.bits(slice(0, 300))
    assert (bits == bits.T).all()
    assert bits.sum() == 2 * len(SILO)


def test_bits_come_in_any_order_and_become_rows() -> None:
    triangle, opened = GRAPH.to_triangle(), _core.OpenBits(300 * 299 // 2)
    for start in (1024, 0, 2048):
        opened.write(8 * start, triangle[start : start + (1024 if start < 2048 else 10**6)])
    assert bytes(opened) == triangle
    assert BitRows(opened.rows(300)) == GRAPH
    with pytest.raises(ValueError, match="one bit per pair"):
        opened.rows(300)  # they are gone


def test_bits_without_a_place_are_refused() -> None:
    opened = _core.OpenBits(300)
    for start, bits in ((0, bytes(48)), (320, bytes(8)), (1, bytes(8)), (0, bytes(7))):
        with pytest.raises(ValueError, match="no place"):
            opened.write(start, bits)
    opened.write(256, b"\1" * 8)
    assert bytes(opened) == bytes(32) + b"\1" * 8


def test_rows_take_the_memory_of_the_bits_that_they_are_made_of() -> None:
    script = (
        "import resource, numpy as np; from silograph import _core; n = 24_000\n"
        "peak = lambda: 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before, opened = peak(), _core.OpenBits(n * (n - 1) // 2)\n"
        "opened.write(64, bytes(range(8)))\n"
        "rows = opened.rows(n)\n"
        "print((peak() - before) / rows.nbytes)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 1.2


def test_rows_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        GRAPH.words[0, 0] = 1


@pytest.mark.slow
def test_counts_agree_with_networkx(peer: "networkx.Graph[int]") -> None:
    assert GRAPH.degrees.tolist() == [d for _, d in peer.degree()]
    assert GRAPH.triangles == sum(networkx.triangles(peer).values()) // 3
    assert GRAPH.four_cliques == sum(len(c) == 4 for c in networkx.enumerate_all_cliques(peer))
    matrix = networkx.to_numpy_array(peer, nodelist=range(300))
    shared = (matrix @ matrix)[np.triu_indices(300, 1)]
    assert GRAPH.four_cycles == (shared * (shared - 1)).sum() / 4
    assert GRAPH.wedges == sum(d * (d - 1) // 2 for _, d in peer.degree())
    common = GRAPH.common_neighbours(np.array([0, 7], dtype=np.uint32))
    for v in range(1, 300):
        assert common[0, v] == len(list(networkx.common_neighbors(peer, 0, v)))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 63, 64, 65, 200])
def test_dense_graphs_are_counted_on_their_complement(n: int) -> None:
    draw = np.random.default_rng(n)
    for density in (0.3, 0.49, 0.51, 0.8, 1.0):
        chosen = np.argwhere(np.triu(draw.random((n, n)) < density, 1)).astype(np.uint32)
        graph = BitRows.from_pairs(n, chosen)
        assert graph.triangles == _core.count_triangles(graph.words)
        other = graph.complement
        assert other.edges == n * (n - 1) // 2 - graph.edges
        assert other.complement == graph


@pytest.mark.parametrize("level", simd_levels())
def test_levels_agree(level: str) -> None:
    everyone = np.arange(300, dtype=np.uint32)
    assert _core.count_triangles(GRAPH.words, level) == GRAPH.triangles
    assert _core.count_four_cliques(GRAPH.words, level) == GRAPH.four_cliques
    assert (_core.row_moments(GRAPH.words, everyone, level) == GRAPH.moments(everyone)).all()
    assert (_core.all_row_moments(GRAPH.words, level) == GRAPH.moments(everyone)).all()
    assert (
        _core.common_neighbours(GRAPH.words, everyone, level) == GRAPH.common_neighbours(everyone)
    ).all()


def test_the_core_refuses_what_would_break_it() -> None:
    with pytest.raises(ValueError, match='level "abacus"'):
        _core.count_triangles(GRAPH.words, "abacus")
    with pytest.raises(ValueError, match="not padded bit rows"):
        _core.count_triangles(np.zeros((10, 3), dtype=np.uint64))
    with pytest.raises(ValueError, match="not u < v < n"):
        BitRows.from_pairs(3, np.array([[1, 3]], dtype=np.uint32))
    with pytest.raises(ValueError, match="not u < v < n"):
        BitRows.from_pairs(3, np.array([[1, 1]], dtype=np.uint32))
    with pytest.raises(ValueError, match="not one bit per pair"):
        BitRows.from_triangle(300, b"\0" * 8)
    with pytest.raises(ValueError, match="not in the graph"):
        GRAPH.moments(np.array([300], dtype=np.uint32))
    with pytest.raises(ValueError, match="one value per node"):
        GRAPH.edge_products(np.zeros(3))
