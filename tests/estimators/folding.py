"""Graphs folded into dense matrices of cells, as tests need them."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import perm

import numpy as np
from numpy.typing import NDArray

from silograph.dp.channel import Channel

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class DenseCounts:
    """The readings of a folded release as two whole matrices."""

    hubs: int
    groups: int
    sub: int
    plus: Bytes
    minus: Bytes

    def rows(self, start: int, stop: int) -> tuple[Bytes, Bytes]:
        return self.plus[start:stop], self.minus[start:stop]

    def through(self, channel: Channel, rng: np.random.Generator) -> "DenseCounts":
        """What a channel makes of the buckets."""
        p11, p01 = float(channel.p11), float(channel.p01)

        def noisy(occupied: Bytes, buckets: Ints) -> Bytes:
            ones = rng.binomial(occupied, p11) + rng.binomial(buckets - occupied, p01)
            upper = np.triu(ones, 1).astype(np.uint8)
            return upper + upper.T

        plus = np.full(self.plus.shape, self.sub)
        minus = plus.copy()
        plus[: self.hubs, : self.hubs], minus[: self.hubs, : self.hubs] = 1, 0
        return DenseCounts(
            self.hubs, self.groups, self.sub, noisy(self.plus, plus), noisy(self.minus, minus)
        )


def fold(
    edges: Ints, group: Ints, sign: Ints, bucket: Ints, hubs: int, groups: int, sub: int
) -> tuple[DenseCounts, Ints, Ints]:
    """The occupied buckets of each cell; the signed and the plain number of edges in it.

    ``group`` is the row of each node (hubs have the first rows and sign 1), ``bucket`` the
    sub-bucket of each edge.
    """
    size = hubs + groups
    a, b = group[edges].T
    kept = a != b
    a, b = a[kept], b[kept]
    signs = sign[edges].prod(axis=1)[kept]
    alone = (a < hubs) & (b < hubs)
    at = np.where(alone, 0, bucket[kept])
    full = np.zeros((2, size, size, sub), dtype=np.uint8)
    full[(signs < 0).astype(int), a, b, at] = 1
    full[(signs < 0).astype(int), b, a, at] = 1
    plus, minus = full.sum(axis=3, dtype=np.uint8)
    linear, plain = np.zeros((2, size, size), dtype=np.int64)
    for matrix, values in ((linear, signs), (plain, np.ones_like(signs))):
        np.add.at(matrix, (a, b), values)
        np.add.at(matrix, (b, a), values)
    return DenseCounts(hubs, groups, sub, plus, minus), linear, plain


def random_fold(
    nodes: int, edges: Ints, top: Ints, groups: int, sub: int, rng: np.random.Generator
) -> DenseCounts:
    """A graph folded by a random hash; the nodes of ``top`` are hubs."""
    hubs = len(top)
    group, sign = rng.integers(hubs, hubs + groups, nodes), rng.choice([-1, 1], nodes)
    group[top], sign[top] = np.arange(hubs), 1
    return fold(edges, group, sign, rng.integers(0, sub, len(edges)), hubs, groups, sub)[0]


def communities(nodes: int, size: int, inside: float, rng: np.random.Generator) -> Ints:
    """A graph of overlapping circles, with some nodes of many edges."""
    found = set()
    for _ in range(2 * nodes // size):
        members = rng.choice(nodes, size, replace=False)
        found |= {
            (min(u, v), max(u, v))
            for u, v in itertools.combinations(members.tolist(), 2)
            if rng.random() < inside
        }
    for hub in range(nodes // 100):
        found |= {(hub, v) for v in rng.choice(nodes, nodes // 20).tolist() if v > hub}
    return np.array(sorted(found))


def truth(nodes: int, edges: Ints) -> dict[str, float]:
    """The counts of a graph, from its dense matrix."""
    matrix = np.zeros((nodes, nodes), dtype=np.float32)
    matrix[edges[:, 0], edges[:, 1]] = matrix[edges[:, 1], edges[:, 0]] = 1
    degree = matrix.sum(axis=1, dtype=np.float64)
    common = (matrix @ matrix).astype(np.float64)
    triangles = float((common * matrix).sum()) / 6
    np.fill_diagonal(common, 0)
    stars = float((degree * (degree - 1)).sum()) / 2
    return {
        "edges": len(edges),
        "squares": float((degree**2).sum()),
        "two_stars": stars,
        "triangles": triangles,
        "four_cycles": float((common * (common - 1)).sum()) / 8,
        "clustering": 3 * triangles / stars,
    }


def all_hashes(nodes: int, hubs: int, groups: int) -> Iterator[tuple[Ints, Ints, Fraction]]:
    """Every way to hash nodes, with its probability; the first ``hubs`` nodes are hubs.

    Names of groups do not matter, so one hash stands for all those that put the same nodes
    together. Neither does the sign of all nodes at once, where there is no hub.
    """
    ordinary = nodes - hubs
    free = ordinary - (1 if not hubs else 0)
    for places in _partitions(ordinary):
        used = max(places, default=-1) + 1
        if used > groups:
            continue
        chance = Fraction(perm(groups, used), groups**ordinary * 2**free)
        group = np.array([*range(hubs), *(hubs + place for place in places)])
        for signs in itertools.product((1, -1), repeat=free):
            yield group, np.array([1] * (nodes - free) + list(signs)), chance


def _partitions(count: int) -> Iterable[tuple[int, ...]]:
    """Every way to put things together, as numbers that rise where they first occur."""
    if count == 0:
        return [()]
    return (
        (*rest, place)
        for rest in _partitions(count - 1)
        for place in range(max(rest, default=-1) + 2)
    )
