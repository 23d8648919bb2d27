"""Weights of folded cells: what one bucket can change, by enumeration, and what all compute."""

from itertools import combinations, product

import numpy as np
import numpy.typing as npt
import pytest

from silograph.dp.cells import CellRule, CellWeights
from silograph.errors import ArgumentError
from tests.methods.committee.run import at_random

Matrix = npt.NDArray[np.int64]
SHAPES = [(3, 0), (2, 1), (2, 2), (4, 0), (3, 1)]


def matrix(weights: CellWeights) -> Matrix:
    rows = weights.rule.rows
    found = np.zeros((rows, rows), dtype=np.int64)
    for a in range(rows - 1):
        found[a, a + 1 :] = found[a + 1 :, a] = weights.row(a)
    return found


def count(cells: dict[tuple[int, int], int], w: Matrix) -> int:
    """The weighted triangles, one by one."""
    return sum(
        int(w[a, b] * w[b, c] * w[a, c]) * cells[a, b] * cells[b, c] * cells[a, c]
        for a, b, c in combinations(range(len(w)), 3)
    )


def some_weights(groups: int, hubs: int) -> list[CellWeights]:
    """Every pattern of loads for few rows, and noise that passes all limits."""
    rng, rows = at_random(f"{groups} {hubs}"), groups + hubs
    found = []
    for most, spread in ((2, 0), (5, 0), (16, 1), (100, 0), (256, 3)):
        rule = CellRule(groups, hubs, most, spread)
        few = [(0, 1, groups)[rng.randrange(3)] for _ in range(rows)]
        wide = [rng.randint(-10 * groups, 10 * groups) for _ in range(rows)]
        alone = [10**6 if row == rows - 1 else -(10**6) for row in range(rows)]
        found += [rule.weights(loads) for loads in (few, wide, alone, [groups] * rows)]
    return found


class TestChange:
    @pytest.mark.parametrize(("groups", "hubs"), SHAPES)
    def test_every_bucket_of_every_matrix(self, groups: int, hubs: int) -> None:
        """All cells of −1, 0 and 1 (two hubs: 0 and 1): any bucket, with any weights."""
        pairs = list(combinations(range(groups + hubs), 2))
        values = [(0, 1) if pair[1] < hubs else (-1, 0, 1) for pair in pairs]
        tables = [(matrix(w), w.change) for w in some_weights(groups, hubs)]
        every = list(product(*values))
        for table, change in tables:
            found = {held: count(dict(zip(pairs, held, strict=True)), table) for held in every}
            for held, here in found.items():
                for at, cell in enumerate(held):
                    other = (*held[:at], cell + 1, *held[at + 1 :])
                    if other in found:
                        assert abs(found[other] - here) <= change

    def test_larger_rows(self) -> None:
        """The sum over all third rows, which the enumeration attains, is never above the bound."""
        rng = at_random("cells")
        tight = 0.0
        for _ in range(60):
            groups, hubs = rng.randint(2, 40), rng.randint(0, 12)
            if groups + hubs < 3:
                continue
            rule = CellRule(groups, hubs, rng.choice([2, 3, 4, 60, 256]), rng.choice([0, 7]))
            loads = [rng.randint(-3, 2 * groups) for _ in range(rule.rows)]
            weights = rule.weights(loads)
            w = matrix(weights)
            worst = int((w * (w @ w)).max())
            assert worst <= weights.change <= rule.most_change
            tight = max(tight, worst / weights.change)
        assert tight > 0.8

    def test_weights_that_were_rounded_up(self) -> None:
        """Rows 0 and 55 round up at the same third rows: the exact weights would be too little."""
        loads = [100] * 400
        loads[0] = loads[55] = 217
        weights = CellRule(400, 0, 4, 0).weights(loads)
        w = matrix(weights)
        x = np.array(weights.numbers, dtype=float) / 2**16
        change = int(w[0, 55] * (w[0] @ w[55]))
        assert (x[0] * x[55]) ** 2 * float(x @ x) < change <= weights.change

    def test_an_edge_of_two_groups_and_all_hubs(self) -> None:
        """Two full groups and many hubs: most of what their edge can change is at hubs."""
        weights = CellRule(10, 60, 256, 0).weights([2] * 60 + [15, 15] + [2] * 8)
        w = matrix(weights)
        change = int((w * (w @ w)).max())
        assert change == int(w[60, 61] * (w[60] @ w[61]))
        assert 0.3 * weights.change < change <= weights.change

    def test_equal_rows_cost_little_more_than_they_must(self) -> None:
        weights = CellRule(400, 0, 256, 0).weights([100] * 400)
        w = matrix(weights)
        assert int((w * (w @ w)).max()) > 0.97 * weights.change


class TestWeights:
    def test_none_is_above_the_largest(self) -> None:
        for groups, hubs in [*SHAPES, (40, 0), (30, 20)]:
            for weights in some_weights(groups, hubs):
                w = matrix(weights)
                assert w.max() <= weights.rule.most
                assert w.max() >= weights.rule.most // 2

    def test_rounding_is_right_on_average(self) -> None:
        """In each kind of cells, however coarse: also where all have the same exact weight."""
        hubs = 60
        weights = CellRule(200, hubs, 16, 0).weights([30] * hubs + [40] * 200)
        kinds: dict[str, list[float]] = {"hubs": [], "beside": [], "groups": []}
        for a in range(weights.rule.rows - 1):
            off = weights.row(a) - weights.exact(a) / 2**32
            cut = max(hubs - 1 - a, 0)
            kinds["hubs"] += off[:cut].tolist()
            kinds["beside" if a < hubs else "groups"] += off[cut:].tolist()
        for name, off in kinds.items():
            assert abs(float(np.mean(off))) < 0.02, name
            assert max(map(abs, off)) < 1, name

    def test_the_model(self) -> None:
        """g_a·g_b/ḡ with g = 1/(1 − U/2r); a hub's g; one."""
        groups, hubs = 50, 3
        loads = [10, 40, 25, *(20 + row % 5 for row in range(groups))]
        weights = CellRule(groups, hubs, 4000, 0).weights(loads)
        w = matrix(weights) / weights.scale
        g = 1 / (1 - np.array(loads) / (2 * groups))
        mean = 1 / (1 - np.mean(loads[hubs:]) / (2 * groups))
        assert w[0, 1] == pytest.approx(1, abs=0.001)
        assert w[1, 7] == pytest.approx(g[1], rel=0.001)
        assert w[5, 9] == pytest.approx(g[5] * g[9] / mean, rel=0.001)

    def test_noise_is_drawn_to_the_mean(self) -> None:
        loads = [40 + (-1) ** row * 5 for row in range(100)]
        calm = CellRule(100, 0, 256, 25).weights(loads)
        assert len(set(calm.numbers)) == 1
        assert len(set(CellRule(100, 0, 256, 12).weights(loads).numbers)) == 2

    def test_all_parties_compute_the_same(self) -> None:
        """Integers that no platform and no version may change."""
        weights = CellRule(6, 2, 256, 10).weights([5, 9, 3, 4, 1, 7, 2, 5])
        assert weights.change == CHANGE
        assert weights.digest.hex() == DIGEST
        other = CellRule(6, 2, 256, 10).weights([5, 9, 3, 4, 1, 7, 2, 6])
        assert other.digest != weights.digest

    def test_refused(self) -> None:
        for wrong in ((1, 5, 9, 0), (2, 0, 9, 0), (3, -1, 9, 0), (3, 0, 1, 0), (3, 0, 9, -1)):
            with pytest.raises(ArgumentError):
                CellRule(*wrong)
        with pytest.raises(ArgumentError, match="3 rows"):
            CellRule(3, 0, 9, 0).weights([1, 2])


CHANGE = 57_491_388
DIGEST = "7a335b1630bbe878c76bf23fdfd0af85bd27853daa9ff0fdee3aa05503c4b652"
