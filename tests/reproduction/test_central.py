"""The central mechanisms of the benchmark, on all graphs of four nodes and many of five."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from reproduction.central import (
    MECHANISMS,
    Reach,
    best,
    front,
    ladder_rungs,
    noisy_bound,
    power_law,
    smooth_laplace,
    triangles_reach,
    two_stars_reach,
)

Edges = frozenset[tuple[int, int]]
REACHES = {"triangles": triangles_reach, "two_stars": two_stars_reach}


def slots(nodes: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(nodes), 2))


def graphs(nodes: int) -> list[Edges]:
    every = slots(nodes)
    return [
        frozenset(edges)
        for size in range(len(every) + 1)
        for edges in itertools.combinations(every, size)
    ]


def count(edges: Edges, nodes: int, what: str) -> int:
    if what == "triangles":
        triples = itertools.combinations(range(nodes), 3)
        return sum(all(pair in edges for pair in itertools.combinations(x, 2)) for x in triples)
    degrees = [sum(u in pair for pair in edges) for u in range(nodes)]
    return sum(math.comb(d, 2) for d in degrees)


@cache
def local(edges: Edges, nodes: int, what: str) -> int:
    """The largest change of a count by one edge, tried for every pair."""
    own = count(edges, nodes, what)
    return max(abs(count(edges ^ {pair}, nodes, what) - own) for pair in slots(nodes))


def reach(edges: Edges, nodes: int, what: str) -> Reach:
    return REACHES[what](nodes, np.array(sorted(edges), dtype=np.uint32).reshape(-1, 2))


def at(found: Reach, distance: int) -> int:
    return int(found.values[min(distance, len(found.values) - 1)])


@pytest.mark.parametrize("what", REACHES)
@pytest.mark.parametrize(("nodes", "step"), [(3, 1), (4, 1), (5, 37)])
def test_reach_is_the_largest_local_sensitivity_of_any_graph_so_far(
    nodes: int, step: int, what: str
) -> None:
    every = graphs(nodes)
    for edges in every[::step]:
        found = reach(edges, nodes, what)
        largest = [0] * (len(slots(nodes)) + 1)
        for other in every:
            far = len(edges ^ other)
            largest[far] = max(largest[far], local(other, nodes, what))
        for distance, most in enumerate(itertools.accumulate(largest, max)):
            assert at(found, distance) == most, (sorted(edges), distance)
        assert found.most == (nodes - 2) * (1 if what == "triangles" else 2)


@pytest.mark.parametrize("blocks", [1, 40, 10**6])
def test_the_front_is_that_of_all_pairs(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reproduction.central._BLOCK", blocks)
    rng = np.random.default_rng(5)
    for chance in (0.02, 0.1, 0.3, 0.8):
        nodes = int(rng.integers(2, 40))
        dense = np.triu(rng.random((nodes, nodes)) < chance, 1)
        full = (dense | dense.T).astype(int)
        common = full @ full
        found = set()
        for u, v in slots(nodes):
            rest = np.delete(full, [u, v], axis=1)
            found.add((int(common[u, v]), int((rest[u] ^ rest[v]).sum())))
        kept = {
            one
            for one in found
            if not any(
                other != one and other[0] >= one[0] and other[1] >= one[1] for other in found
            )
        }
        rows = front(nodes, np.argwhere(dense))
        assert [tuple(row) for row in rows.tolist()] == sorted(kept, reverse=True)


def neighbours(nodes: int, what: str) -> list[tuple[int, Reach, Reach]]:
    """How much the count changes, and both reaches, of all neighbours in both orders."""
    found = {edges: reach(edges, nodes, what) for edges in graphs(nodes)}
    return [
        (count(edges ^ {pair}, nodes, what) - count(edges, nodes, what), one, found[edges ^ {pair}])
        for edges, one in found.items()
        for pair in slots(nodes)
    ]


@pytest.mark.parametrize("what", REACHES)
def test_the_smooth_bound_is_smooth_and_bounds(what: str) -> None:
    for change, one, other in neighbours(4, what):
        for beta in (0.01, 0.1, 0.5, 2.0):
            assert one.smooth(beta) <= math.exp(beta) * other.smooth(beta) * (1 + 1e-12)
            assert abs(change) <= one.smooth(beta)


def ladder_law(found: Reach, epsilon: float, far: int) -> NDArray[np.float64]:
    """Probabilities of the errors −far … far."""
    widths, weights = ladder_rungs(found, epsilon)
    side = np.repeat(weights, widths)
    whole = 1 + 2 * side.sum()
    law: NDArray[np.float64] = np.concatenate((side[:far][::-1], [1.0], side[:far])) / whole
    return law


@pytest.mark.parametrize("what", REACHES)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_ladder_costs_epsilon(epsilon: float, what: str) -> None:
    worst = 0.0
    for change, one, other in neighbours(4, what):
        law, moved = ladder_law(one, epsilon, 40), ladder_law(other, epsilon, 44)
        # Of an answer y, the error from the one count is y, from the other y − change.
        beside = moved[44 - 40 - change : 44 + 41 - change]
        worst = max(worst, float(np.abs(np.log(law / beside)).max()))
    assert 0.5 * epsilon < worst <= epsilon * (1 + 1e-12)


def test_the_ladder_is_a_law_whose_error_is_as_computed() -> None:
    found = reach(frozenset({(0, 1), (1, 2), (0, 2)}), 5, "triangles")
    ladder = next(one for one in MECHANISMS if one.name == "ladder")
    law = ladder_law(found, 1.0, 590)
    assert law.sum() == pytest.approx(1, abs=1e-12)
    errors = np.arange(-590, 591)
    assert ladder.error(found, 1.0, 0.0) == pytest.approx(math.sqrt(law @ errors**2), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 0.9, 1.0, 2.5])
@pytest.mark.parametrize("beta", [0.003, 0.05, 0.14])
def test_a_power_law_times_a_smooth_bound_costs_epsilon(epsilon: float, beta: float) -> None:
    (a,), (kappa,) = power_law(np.array([beta]), epsilon)
    answers = np.concatenate((-np.geomspace(1e9, 1e-6, 4000), np.geomspace(1e-6, 1e9, 4000)))

    def density(scale: float, count: float) -> NDArray[np.float64]:
        return np.asarray(-math.log(scale) - a * np.log1p(np.abs(answers - count) / scale))

    worst = -math.inf
    for growth in np.linspace(-beta, beta, 21):
        for part in np.linspace(0, 1, 11):
            shift = part * min(1, math.exp(growth))  # at most either bound; the first one is 1
            loss = density(1 / kappa, 0) - density(math.exp(growth) / kappa, shift)
            worst = max(worst, float(loss.max()))
    assert worst <= epsilon * (1 + 1e-9)
    assert worst >= epsilon * (1 - 1e-3)  # nothing is given away


def test_student_noise_costs_what_is_said() -> None:
    values = np.linspace(-50, 50, 20001)
    for k in (2.5, 5.0, 9.0):
        log = -(k + 1) / 2 * np.log1p(values**2 / k)
        slope = np.abs(np.gradient(log, values)).max()
        assert slope == pytest.approx((k + 1) / (2 * math.sqrt(k)), rel=1e-3)
        for growth in (-0.2, 0.2):
            grown = -(k + 1) / 2 * np.log1p((values * math.exp(growth)) ** 2 / k) + growth
            assert np.abs(log - grown).max() <= k * 0.2


@pytest.mark.parametrize("beta", [0.001, 0.02])
def test_laplace_noise_times_a_smooth_bound_fails_with_delta_at_most(beta: float) -> None:
    delta, shifting = 1e-6, 1.0
    epsilon = shifting + math.expm1(beta) * math.log(1 / delta) - beta
    for growth in np.linspace(-beta, beta, 9):
        # The first bound is 1, so that its scale is 1/shifting; drawn from the first.
        first, second = 1 / shifting, math.exp(growth) / shifting
        shift = min(1, math.exp(growth))
        answers = np.linspace(-60, 60, 2_400_001) * first
        loss = math.log(second / first) + np.abs(answers - shift) / second
        loss -= np.abs(answers) / first
        chances = np.exp(-np.abs(answers) / first) / (2 * first) * (answers[1] - answers[0])
        assert chances[loss > epsilon].sum() <= delta * 1.001


@pytest.mark.parametrize("what", REACHES)
def test_a_noisy_bound_follows_a_number_that_one_edge_changes_by_one(what: str) -> None:
    for change, one, other in neighbours(4, what):
        assert abs(one.local - other.local) <= 1
        assert abs(change) <= min(one.local, other.local)


def test_errors_are_ordered_as_they_must_be() -> None:
    found = Reach(np.minimum(300 + np.arange(4000), 4000))
    for epsilon in (0.5, 1.0, 3.0):
        errors = {one.name: one.error(found, epsilon, 1e-9) for one in MECHANISMS}
        least = math.sqrt(2) * 300 / epsilon
        assert all(error >= 0.999 * least for error in errors.values()), errors
        assert errors["smooth, split"] <= errors["smooth"] * 1.001
        assert best(found, epsilon, 0.0)[1] >= best(found, epsilon, 1e-9)[1]
    # With a free division of ε, both mechanisms come near to the local sensitivity.
    wide = Reach(np.array([10**6]))
    for error in (noisy_bound, smooth_laplace):
        assert error(wide, 1.0, 1e-9) == pytest.approx(math.sqrt(2) * 10**6, rel=0.01)
