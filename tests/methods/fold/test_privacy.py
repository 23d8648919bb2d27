"""Tier 0 for folded unions: every hash, every holder set and every view, in fractions.

The hash is public, and nothing is assumed of it. So all ways to put three nodes into rows are
tried, each with all signs and sub-buckets, and all sets of holders of all three pairs.
"""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import pytest

from silograph.dp.channel import Channel
from silograph.methods.committee.noise import CommitteeNoise
from silograph.methods.masked.noise import MaskedNoise
from tests.methods.masked.test_noise import sum_law

PAIRS = list(itertools.combinations(range(3), 2))
#: For each pair its bucket, or None where both ends are in one row.
Buckets = tuple[object, ...]
#: For each pair the silos that hold it.
Holders = tuple[frozenset[int], ...]


def hashes(groups: int, hubs: int, sub: int) -> Iterator[Buckets]:
    """All places of three nodes: the first ones are hubs; every edge has a sub-bucket."""
    places = [
        [(node, 0)] if node < hubs else [(hubs + g, s) for g in range(groups) for s in (0, 1)]
        for node in range(3)
    ]
    for chosen in itertools.product(*places):
        for subs in itertools.product(range(sub), repeat=len(PAIRS)):
            found = []
            for (u, v), which in zip(PAIRS, subs, strict=True):
                rows = frozenset((chosen[u][0], chosen[v][0]))
                if len(rows) == 1:
                    found.append(None)
                elif max(rows) < hubs:
                    found.append((rows, 0, 0))
                else:
                    found.append((rows, chosen[u][1] ^ chosen[v][1], which))
            yield tuple(found)


def in_buckets(buckets: Buckets, held: Holders) -> dict[object, frozenset[int]]:
    """The silos that set the bit of each bucket."""
    found: dict[object, frozenset[int]] = {}
    for bucket, holders in zip(buckets, held, strict=True):
        if bucket is not None:
            found[bucket] = found.get(bucket, frozenset()) | holders
    return found


def worlds(silos: int) -> Iterator[Holders]:
    sets = [
        frozenset(some)
        for size in range(silos + 1)
        for some in itertools.combinations(range(silos), size)
    ]
    return itertools.product(sets, repeat=len(PAIRS))


SHAPES = [(2, 0, 1), (2, 1, 1), (2, 2, 1), (2, 0, 2)]


@pytest.mark.parametrize(("groups", "hubs", "sub"), SHAPES)
def test_neighbours_differ_in_one_bucket(groups: int, hubs: int, sub: int) -> None:
    """An edge that leaves all its holders changes who holds one bucket at most."""
    for buckets in hashes(groups, hubs, sub):
        for held in worlds(2):
            before = in_buckets(buckets, held)
            for place in range(len(PAIRS)):
                less = tuple(
                    frozenset() if i == place else holders for i, holders in enumerate(held)
                )
                after = in_buckets(buckets, less)
                assert sum(before[b] != after[b] for b in before) <= 1


@pytest.mark.parametrize(
    ("groups", "hubs", "sub", "silos", "collusion"),
    [
        *((*shape, *parties) for shape in SHAPES for parties in ((2, 0), (2, 1))),
        (2, 0, 1, 3, 1),
        (2, 1, 1, 3, 1),
        pytest.param(2, 2, 1, 3, 1, marks=pytest.mark.whole),
        pytest.param(2, 0, 2, 3, 1, marks=pytest.mark.whole),
    ],
)
def test_masked_sums_of_all_buckets_stay_within_epsilon(
    groups: int, hubs: int, sub: int, silos: int, collusion: int
) -> None:
    """The joint law of what the coordinator and t silos see, over all buckets at once."""
    noise = MaskedNoise.choose(1.0, silos, collusion)
    honest = range(silos - collusion)
    laws = {
        frozenset(some): sum_law(noise.q, noise.b, tuple(i in some for i in honest))
        for size in range(len(honest) + 1)
        for some in itertools.combinations(honest, size)
    }
    bound = Fraction(math.exp(1.0)) * (1 + Fraction(1, 2**40))

    def joint(held: dict[object, frozenset[int]], order: list[object]) -> list[Fraction]:
        law = [Fraction(1)]
        for bucket in order:
            own = laws[held[bucket] & frozenset(honest)]
            law = [x * y for x in law for y in own]
        return law

    seen: dict[tuple[object, ...], None] = {}
    for buckets in hashes(groups, hubs, sub):
        for held in worlds(silos):
            before = in_buckets(buckets, held)
            order = sorted(before, key=repr)
            for place in range(len(PAIRS)):
                less = tuple(
                    held[i] - frozenset(honest) if i == place else held[i]
                    for i in range(len(PAIRS))
                )
                after = in_buckets(buckets, less)
                shown = tuple(
                    (before[b] & frozenset(honest), after[b] & frozenset(honest)) for b in order
                )
                if shown in seen:
                    continue
                seen[shown] = None
                for x, y in zip(joint(before, order), joint(after, order), strict=True):
                    assert x <= bound * y
                    assert y <= bound * x
    assert len(seen) > 3


@pytest.mark.parametrize(("groups", "hubs", "sub"), SHAPES)
def test_a_committee_flips_each_bucket_once(groups: int, hubs: int, sub: int) -> None:
    noise = CommitteeNoise.choose(1.0, 2, 1)
    channel: Channel = noise.channel
    one = {True: channel.p11, False: channel.p01}
    bound = Fraction(math.exp(1.0)) * (1 + Fraction(1, 2**40))
    for buckets in hashes(groups, hubs, sub):
        for held in worlds(1):
            before = in_buckets(buckets, held)
            for place in range(len(PAIRS)):
                less = tuple(frozenset() if i == place else held[i] for i in range(len(PAIRS)))
                after = in_buckets(buckets, less)
                for shown in itertools.product((0, 1), repeat=len(before)):
                    ratio = Fraction(1)
                    for y, bucket in zip(shown, before, strict=True):
                        a, b = one[bool(before[bucket])], one[bool(after[bucket])]
                        ratio *= (a / b) if y else (1 - a) / (1 - b)
                    assert 1 / bound <= ratio <= bound


def test_an_edge_in_two_buckets_would_be_caught() -> None:
    """The control: if a pair touched two buckets, the bound would not hold."""
    noise = MaskedNoise.choose(1.0, 2, 1)
    held, empty = sum_law(noise.q, noise.b, (True,)), sum_law(noise.q, noise.b, (False,))
    worst = max(x / y for x, y in zip(held, empty, strict=True)) ** 2
    assert worst > Fraction(math.exp(1.0))
