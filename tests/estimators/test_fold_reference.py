"""Shapes against dense matrices, and hubs that noisy degrees find."""

import numpy as np
import pytest

from silograph.errors import ArgumentError
from silograph.estimators.estimate import FloatArray
from silograph.estimators.fold_reference import FoldShape, shape_of, stand_ins
from silograph.graph.samples import clustered_power_law
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse


def dense(graph: Silo) -> FloatArray:
    """The adjacency matrix, nodes by degree."""
    n = len(graph.universe)
    matrix = np.zeros((n, n))
    matrix[graph.pairs[:, 0], graph.pairs[:, 1]] = 1
    matrix += matrix.T
    order = np.argsort(-matrix.sum(axis=1), kind="stable")
    return matrix[np.ix_(order, order)]


def banded(shape: FoldShape, matrix: FloatArray) -> FloatArray:
    starts = shape.bounds[:-1]
    return np.add.reduceat(np.add.reduceat(matrix, starts, axis=0), starts, axis=1)


@pytest.mark.parametrize("nodes", [100, 900])
def test_sums_are_those_of_dense_matrices(nodes: int) -> None:
    """Of 100 nodes every row is read; of 900 those of low degree are sampled."""
    graph = clustered_power_law(nodes, 6, 0.6, seed=3)
    shape, a = shape_of(graph), dense(graph)
    degrees, two = a.sum(axis=1), a @ a
    paths = two @ a - a * (degrees[:, None] + degrees[None, :] - 1)
    for matrix in (two, paths):
        np.fill_diagonal(matrix, 0)
    assert shape.degrees.tolist() == degrees.tolist()
    assert np.array_equal(shape.joined, banded(shape, a))
    assert shape.triangles == (a * two).sum() / 6
    assert shape.two_stars == two.sum() / 2
    for found, exact in (
        (shape.edge_squares, two**2 * a),
        (shape.open_squares, two**2 * (1 - a)),
        (shape.path_squares, paths**2),
    ):
        assert np.array_equal(found, found.T)
        if nodes == 100:
            np.testing.assert_allclose(found, banded(shape, exact))
        for k in range(len(shape.sizes)):  # what is left without hubs, for more and more hubs
            left = slice(k, None)
            assert found[left, left].sum() == pytest.approx(
                banded(shape, exact)[left, left].sum(), rel=1e-9 if nodes == 100 else 0.12
            )


def test_pairs_of_common_neighbours_below_a_band() -> None:
    graph = clustered_power_law(100, 6, 0.6, seed=3)
    shape, a = shape_of(graph), dense(graph)
    for k, start in enumerate(shape.bounds[:-1]):
        c = a[:, start:] @ a[start:, :]
        firsts = np.add.reduceat((a * c * (c - 1) / 2).sum(axis=1), shape.bounds[:-1])
        np.testing.assert_allclose(shape.twos[:, k], firsts)
        firsts = np.add.reduceat((a * c * (c - 1) * (c - 2) / 6).sum(axis=1), shape.bounds[:-1])
        np.testing.assert_allclose(shape.threes[:, k], firsts)


def test_hubs_are_the_top_bands_or_what_noise_leaves_of_them() -> None:
    shape = shape_of(clustered_power_law(2000, 6, seed=1))
    assert shape.known_hubs(50) @ shape.sizes == 50
    assert shape.known_hubs(50)[:7].tolist() == [1.0] * 7
    rng = np.random.default_rng(5)
    for scale in (1.0, 20.0):
        share = shape.found_hubs(100, scale)
        assert share @ shape.sizes == pytest.approx(100, rel=1e-6)
        drawn = np.zeros(len(share))
        for _ in range(200):
            noisy = shape.degrees + rng.laplace(0, scale, shape.nodes)
            top = np.argsort(-noisy)[:100]
            drawn += np.bincount(
                np.searchsorted(shape.bounds, top, "right") - 1, minlength=len(drawn)
            )
        np.testing.assert_allclose(share * shape.sizes, drawn / 200, rtol=0.1, atol=1.0)
    assert not shape.found_hubs(0, 1.0).any()


def test_a_shape_needs_three_nodes_and_a_known_query() -> None:
    with pytest.raises(ArgumentError, match="needs 3"):
        shape_of(Silo.from_pairs(NodeUniverse.range(2), [[0, 1]]))
    with pytest.raises(ArgumentError, match="cannot be predicted for degrees"):
        shape_of(clustered_power_law(50, 3, seed=1)).count("degrees")


def test_stand_ins_have_about_as_many_nodes_and_edges() -> None:
    few = stand_ins(300, 1500)
    assert [shape.nodes for shape in few] == [300, 300]
    assert few[0].triangles > few[1].triangles
    for shape in stand_ins(50_000, 400_000):
        assert shape.nodes == pytest.approx(50_000, rel=0.05)
        assert shape.edges == pytest.approx(400_000, rel=0.05)


def test_a_shape_resembles_a_graph_in_all_that_is_known_of_it() -> None:
    """A graph of five communities, where the stand-in is a power law."""
    rng = np.random.default_rng(4)
    pairs = np.stack(np.triu_indices(250, 1), axis=1)
    near = pairs[:, 0] % 5 == pairs[:, 1] % 5
    kept = pairs[rng.random(len(pairs)) < np.where(near, 0.5, 0.01)]
    true = shape_of(Silo.from_pairs(NodeUniverse.range(250), kept))
    sums = [float(m.sum()) / 2 for m in (true.edge_squares, true.open_squares)]
    for like in stand_ins(250, true.edges):
        found = like.resembling(true.degrees, true.triangles, sums[0], sum(sums))
        assert np.array_equal(found.degrees, true.degrees)
        assert found.triangles == true.triangles
        assert found.edges == pytest.approx(true.edges, rel=0.01)
        assert found.joined.sum(axis=1) == pytest.approx(true.joined.sum(axis=1), rel=0.05)
        assert [found.edge_squares.sum() / 2, found.open_squares.sum() / 2] == pytest.approx(
            sums, rel=0.01
        )
        # Paths are not known; they follow from the rest, roughly.
        assert 1 / 2 < found.path_squares.sum() / true.path_squares.sum() < 2


def test_a_shape_resembles_itself() -> None:
    shape = shape_of(clustered_power_law(400, 5, seed=3))
    sums = [float(m.sum()) / 2 for m in (shape.edge_squares, shape.open_squares)]
    same = shape.resembling(shape.degrees[::-1], shape.triangles, sums[0], sum(sums))
    for name in ("joined", "edge_squares", "open_squares", "path_squares", "twos", "threes"):
        assert getattr(same, name) == pytest.approx(getattr(shape, name), rel=1e-6), name


def test_between_bands_there_are_no_more_edges_than_pairs() -> None:
    """Eight nodes that know nearly all others are more than a power law's top can be scaled to."""
    degrees = np.array([700] * 8 + [7] * 792)
    for like in stand_ins(800, degrees.sum() / 2):
        found = like.resembling(degrees, 6000.0, 9e4, 4e6)
        most = np.outer(found.sizes, found.sizes) - np.diag(found.sizes)
        assert (found.joined <= most).all()
        assert found.edges == pytest.approx(degrees.sum() / 2, rel=0.05)


def test_copies_are_graphs_side_by_side() -> None:
    """Every sum of three copies is that of one graph with three parts, but for the bands."""
    one = clustered_power_law(120, 3, seed=2)
    three = np.vstack([one.pairs + 120 * i for i in range(3)])
    whole = shape_of(Silo.from_pairs(NodeUniverse.range(360), three))
    copied = shape_of(one).copied(3)
    assert copied.triangles == whole.triangles
    assert np.array_equal(copied.degrees, whole.degrees)
    for name in ("joined", "edge_squares", "open_squares", "path_squares"):
        assert getattr(copied, name).sum() == pytest.approx(getattr(whole, name).sum(), rel=0.02)
