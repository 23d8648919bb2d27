"""Folding: every pair touches at most one bucket, the same one for whoever holds it."""

import itertools
import pickle

import numpy as np
import pytest

from silograph import Fold, NodeUniverse, Silo
from silograph.errors import ArgumentError
from silograph.graph.fold import MOST_BUCKETS, BucketCounts, Folding, Layout, folded_in_chunks

LAYOUTS = [Layout(3), Layout(4, 1), Layout(3, 2, 3), Layout(5, 0, 2)]
KEYS = [b"one", b"two", b"three", b"four"]
NODES = NodeUniverse(["ada", "bob", "eve", "ian"])
PAIRS = list(itertools.combinations(range(4), 2))


def folding(layout: Layout, key: bytes = b"one") -> Folding:
    return Folding.of(key, layout, ("bob", "nobody")[: layout.hubs])


def ones(words: np.ndarray) -> set[int]:
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


def folded(made: Folding, pairs: list[tuple[int, int]]) -> set[int]:
    return ones(made.fold(NODES, np.array(pairs, dtype=np.uint32).reshape(-1, 2)))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("key", KEYS)
def test_an_edge_changes_at_most_one_bit(layout: Layout, key: bytes) -> None:
    """Every set of edges on four nodes, and every edge that is added to it."""
    made = folding(layout, key)
    alone = {pair: folded(made, [pair]) for pair in PAIRS}
    assert all(len(bits) <= 1 for bits in alone.values())
    for size in range(len(PAIRS) + 1):
        for held in itertools.combinations(PAIRS, size):
            bits = folded(made, list(held))
            assert bits == set().union(*(alone[pair] for pair in held))
            assert all(len(bits ^ folded(made, [*held, pair])) <= 1 for pair in PAIRS)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_all_holders_of_an_edge_touch_the_same_bucket(layout: Layout) -> None:
    """Whatever else they hold, whatever their own positions are, in whichever direction."""
    made = folding(layout)
    universe = NodeUniverse.open()
    for u, v in itertools.permutations(NODES.ids, 2):
        expected = folded(made, [tuple(sorted((NODES.index(u), NODES.index(v))))])
        for more in ([], [("aaa", "zoe")], [("zoe", v), (u, "aaa")]):
            whole = Silo.from_edges(universe, [(u, v), *more])
            rest = Silo.from_edges(universe, more)
            both, others = (
                ones(made.fold(silo.nodes, silo.pairs)) if len(silo) else set()
                for silo in (whole, rest)
            )
            assert both == others | expected


def test_ids_are_folded_in_their_normal_form() -> None:
    made = Folding.of(b"k", Layout(50, 1), ("bob",))
    plain = Silo.from_edges(NodeUniverse.open(case="lower"), [("ada", "eve"), ("bob", "eve")])
    loud = Silo.from_edges(NodeUniverse.open(case="lower"), [("ADA", "Eve"), ("EVE", "BOB")])
    assert np.array_equal(made.fold(plain.nodes, plain.pairs), made.fold(loud.nodes, loud.pairs))


def test_hubs_have_the_first_rows_and_one_bucket_for_two() -> None:
    made = Folding.of(b"k", Layout(3, 2, 2), ("eve", "bob"))
    assert folded(made, [(1, 2)]) == {0}  # bob and eve
    plus, minus = BucketCounts(
        made.layout, made.fold(NODES, np.array([[1, 2]], np.uint32)).tobytes()
    ).rows(0, 5)
    assert plus[0, 1] == plus[1, 0] == plus.sum() / 2 == 1
    assert not minus.any()


def test_counts_are_symmetric_and_complete() -> None:
    rng = np.random.default_rng(1)
    pairs = np.unique(np.sort(rng.integers(0, 300, (900, 2)), axis=1), axis=0)
    pairs = np.ascontiguousarray(pairs[pairs[:, 0] != pairs[:, 1]], dtype=np.uint32)
    layout = Layout(20, 3, 2)
    words = Folding.of(b"k", layout, ("7", "9", "250")).fold(NodeUniverse.range(300), pairs)
    counts = BucketCounts(layout, words.tobytes())
    plus, minus = counts.rows(0, layout.rows)
    assert np.array_equal(plus, plus.T)
    assert np.array_equal(minus, minus.T)
    assert not plus.diagonal().any()
    assert plus.max() <= layout.sub
    assert (int(plus.sum()) + int(minus.sum())) // 2 == counts.ones == len(ones(words))
    assert not minus[:3, :3].any()
    some = counts.rows(5, 9)
    assert np.array_equal(some[0], plus[5:9])
    assert np.array_equal(some[1], minus[5:9])


def test_keys_differ_by_what_was_signed() -> None:
    rng = np.random.default_rng(2)
    pairs = np.unique(np.sort(rng.integers(0, 99, (200, 2)), axis=1), axis=0)
    pairs = np.ascontiguousarray(pairs[pairs[:, 0] != pairs[:, 1]], dtype=np.uint32)
    found = {
        ones(Folding.of(view, Layout(40)).fold(NodeUniverse.range(99), pairs)).__repr__()
        for view in KEYS
    }
    assert len(found) == len(KEYS)


def test_golden() -> None:
    """Parties with other versions, and other machines, must agree on every bucket."""
    made = Folding.of(b"what all parties signed", Layout(100, 1, 2), ("bob",))
    assert {pair: folded(made, [pair]) for pair in PAIRS} == GOLDEN


GOLDEN = {
    (0, 1): {92},
    (0, 2): {8750},
    (0, 3): {8622},
    (1, 2): {350},
    (1, 3): {223},
    (2, 3): {16364},
}


def test_chunks_follow_the_view() -> None:
    silo = Silo.from_edges(NODES, [("ada", "bob"), ("eve", "ian")])
    layout = Layout(30)
    chunk = folded_in_chunks(silo, layout, (), 128)
    for view in (b"x", b"y", b"x"):
        whole = b"".join(chunk(view, number) for number in range(-(-layout.buckets // 128)))
        assert whole == Folding.of(view, layout).fold(NODES, silo.pairs).tobytes()


def test_a_folding_can_travel() -> None:
    made = folding(LAYOUTS[2])
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    "given", [(2,), (3, -1), (3, 0, 0), (3, 0, 65), (3.5,), (True,), (1 << 21,), (1 << 20, 0, 1)]
)
def test_shapes_that_are_refused(given: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError):
        Layout(*given)


def test_the_largest_shape_is_allowed() -> None:
    most = int(MOST_BUCKETS**0.5)
    assert Layout(most).buckets <= MOST_BUCKETS
    with pytest.raises(ArgumentError, match="at most"):
        Layout(most + 2)


class TestFold:
    @pytest.mark.parametrize("text", ["", "x", "10,", "10,2,1,1", "10;2", "-5", "1e3"])
    def test_texts_that_are_refused(self, text: str) -> None:
        with pytest.raises(ArgumentError, match="GROUPS"):
            Fold.parse(text)

    def test_texts(self) -> None:
        assert Fold.parse("100") == Fold(100)
        assert Fold.parse("100, 20,2") == Fold(100, 20, 2)
        assert Fold.parse("100", ["a", "b"]) == Fold(100, ("a", "b"))
        assert Fold.parse("100,1,3", ["a", "b"]) == Fold(100, ("a",), 3)

    @pytest.mark.parametrize(
        "given",
        [{"hubs": "abc"}, {"hubs": None}, {"hubs": -1}, {"hub_share": 0.0}, {"hub_share": 1.0}],
    )
    def test_bad_arguments(self, given: dict[str, object]) -> None:
        with pytest.raises(ArgumentError):
            Fold(100, **given)  # type: ignore[arg-type]
