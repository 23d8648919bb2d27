"""Folding: a public hash puts nodes into groups, and a union of buckets replaces one of pairs.

What
    Each ordinary node has a group and a sign by a hash of its identifier; each *hub* of a public
    list has a row of its own. An edge between two rows occupies one bucket: the cell of its rows,
    the product of its ends' signs, and one of ``sub`` sub-buckets. Edges within a group are
    dropped. So the number of buckets depends on the number of groups, not of nodes.
Guarantee
    A pair of identifiers touches at most one bucket, by a function that is public. So neighbouring
    federations differ in at most one bucket, and every proof about unions of pairs holds for unions
    of buckets, whatever the hash and the hubs are.
Where the key comes from
    Parties derive it from what all of them have signed when a run begins. Whoever speaks last could
    try many keys until one suits them. That can make an answer wrong, but shows no edge.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.errors import ArgumentError
from silograph.graph.bits import chunk_of
from silograph.graph.partitioned import PartedSilo
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse

__all__ = ["MOST_BUCKETS", "BucketCounts", "Fold", "Folding", "Layout", "folded_in_chunks"]

#: The most buckets of a study: 4 GiB of bits.
MOST_BUCKETS = 1 << 35
_MOST_GROUPS = 1 << 20
_MOST_SUB = 64
_LABEL = b"silograph/fold/v1"
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Layout:
    """The shape of a folded index.

    >>> layout = Layout(groups=3, hubs=2, sub=1)
    >>> layout.rows, layout.buckets
    (5, 19)
    """

    #: How many groups the ordinary nodes are put into.
    groups: int
    #: How many hubs have a row of their own.
    hubs: int = 0
    #: How many sub-buckets there are for each sign of a cell.
    sub: int = 1

    def __post_init__(self) -> None:
        for name, least, most in (
            ("groups", 3, _MOST_GROUPS),
            ("hubs", 0, _MOST_GROUPS),
            ("sub", 1, _MOST_SUB),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise ArgumentError(f"{name} must be from {least} to {most:,}, not {value!r}")
        if self.buckets > MOST_BUCKETS:
            raise ArgumentError(
                f"{self.groups:,} groups, {self.hubs:,} hubs and {self.sub} sub-buckets make "
                f"{self.buckets:,} buckets; at most {MOST_BUCKETS:,} are possible"
            )

    @property
    def rows(self) -> int:
        """Hubs and groups together."""
        return self.hubs + self.groups

    @property
    def buckets(self) -> int:
        """The number of buckets: one for two hubs, 2·sub for any other cell."""
        ordinary, hubs = self.groups, self.hubs
        cells = ordinary * (ordinary - 1) // 2 + hubs * ordinary
        return 2 * self.sub * cells + hubs * (hubs - 1) // 2


@dataclass(frozen=True)
class Fold:
    """How a study folds its nodes.

    Parameters
    ----------
    groups
        How many groups the ordinary nodes are put into. More groups mean fewer collisions and more
        noise: cost and noise grow with the square.
    hubs
        The identifiers of nodes that get a row of their own, from a public list; or how many such
        nodes to find with a part of epsilon.
    sub
        How many sub-buckets a cell has for each sign.
    hub_share
        The part of epsilon that the search for hubs takes, if ``hubs`` is a number.

    Examples
    --------
    >>> Fold(groups=1000, hubs=["exchange"]).layout.buckets
    1001000
    """

    groups: int
    hubs: tuple[str, ...] | int = ()
    sub: int = 1
    hub_share: float = 0.2

    def __post_init__(self) -> None:
        if isinstance(self.hubs, str) or not isinstance(self.hubs, int | Sequence):
            raise ArgumentError(f"hubs must be a list of ids or a number, not {self.hubs!r}")
        if not isinstance(self.hubs, int):
            object.__setattr__(self, "hubs", tuple(map(str, self.hubs)))
        elif self.hubs == 0 and not isinstance(self.hubs, bool):
            object.__setattr__(self, "hubs", ())
        if not isinstance(self.hub_share, float) or not 0 < self.hub_share < 1:
            raise ArgumentError(f"hub_share must be between 0 and 1, not {self.hub_share!r}")
        _ = self.layout  # refuses what makes no shape

    @classmethod
    def parse(cls, text: str, hubs: Sequence[str] | None = None) -> "Fold":
        """Read ``GROUPS[,HUBS[,SUB]]``. Of a list of hubs, the first HUBS are taken, or all.

        >>> Fold.parse("1000,2", ["a", "b", "c"])
        Fold(groups=1000, hubs=('a', 'b'), sub=1, hub_share=0.2)
        """
        parts = text.split(",")
        if len(parts) > 3 or not all(_NUMBER.fullmatch(part.strip()) for part in parts):
            raise ArgumentError(
                f"{text[:80]!r} is not a fold; it is GROUPS[,HUBS[,SUB]], as in 1000,300"
            )
        groups, *more = map(int, parts)
        many = more[0] if more else None
        sub = more[1] if len(more) > 1 else 1
        if hubs is None:
            return cls(groups, many or 0, sub)
        if many is not None and many > len(hubs):
            raise ArgumentError(f"{many:,} hubs, and the list has {len(hubs):,}")
        return cls(groups, tuple(hubs)[:many], sub)

    @property
    def layout(self) -> Layout:
        """The shape of the index."""
        hubs = self.hubs if isinstance(self.hubs, int) else len(self.hubs)
        return Layout(self.groups, hubs, self.sub)


@dataclass(frozen=True)
class Folding:
    """A shape with its key and its hubs: where every edge falls.

    >>> folding = Folding.of(b"what all parties signed", Layout(groups=3))
    >>> silo = Silo.from_edges(NodeUniverse.range(3), [(0, 1), (1, 2)])
    >>> folding.fold(silo.universe, silo.pairs).dtype
    dtype('uint64')
    """

    layout: Layout
    key: bytes
    #: The identifiers of the hubs in the order of their rows, in the normal form of the universe.
    hubs: tuple[str, ...] = ()

    @classmethod
    def of(cls, view: bytes, layout: Layout, hubs: tuple[str, ...] = ()) -> "Folding":
        """The folding of a run, keyed by what its parties signed."""
        return cls(layout, hashlib.sha256(_LABEL + view).digest(), hubs)

    def fold(self, nodes: NodeUniverse, pairs: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """One bit for each bucket that an edge occupies; the edges are positions in ``nodes``.

        The bits of parts of the edges can be OR-ed.
        """
        shape = self.layout
        return _core.fold_bits(
            nodes._table, pairs, list(self.hubs), shape.groups, shape.sub, self.key
        )


def folded_in_chunks(
    silo: Silo | PartedSilo, layout: Layout, hubs: tuple[str, ...], chunk_buckets: int
) -> Callable[[bytes, int], bytes]:
    """One bit per bucket, in chunks: from what a run's parties signed and the number of a chunk.

    Nothing can be folded before the key is known. So, unlike with pairs, all edges are worked on
    between two messages, and whoever watches the network can tell how many there are, roughly.
    """

    @lru_cache(maxsize=1)
    def words(view: bytes) -> NDArray[np.uint64]:
        return silo.fold(Folding.of(view, layout, hubs))

    def chunk(view: bytes, number: int) -> bytes:
        start = number * chunk_buckets
        size = min(chunk_buckets, layout.buckets - start)
        return chunk_of(words(view), layout.buckets, start, size)

    return chunk


@dataclass(frozen=True, eq=False)
class BucketCounts:
    """The bits of a union of buckets, as counts of the cells of each row."""

    layout: Layout
    bits: bytes

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self.layout.groups

    @property
    def hubs(self) -> int:
        """The number of hubs."""
        return self.layout.hubs

    @property
    def sub(self) -> int:
        """The number of sub-buckets for each sign."""
        return self.layout.sub

    def rows(self, start: int, stop: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """For each cell of these rows, how many buckets of sign + and how many of sign − are set.

        Hubs are the first rows. A cell of two hubs has one bucket, which counts as +.
        """
        shape = self.layout
        return _core.fold_counts(self.bits, (shape.groups, shape.hubs, shape.sub), start, stop)

    @cached_property
    def ones(self) -> int:
        """How many buckets are set."""
        words = np.frombuffer(self.bits, dtype=np.uint64)
        return int(np.bitwise_count(words).sum()) if len(words) else 0
