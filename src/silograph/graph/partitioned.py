"""Silos that are larger than memory: their edges stay on disk or on a cluster, and are only folded.

What
    A folding makes bits of buckets from edges, and the bits of parts of the edges can be OR-ed. So
    a silo need not hold all of its edges at once: it reads one part after another, or lets the
    workers of a cluster do so, and keeps the bits alone. Their size depends on the layout, not on
    the edges.
Where it can be used
    In folded studies only. Everything else needs the edges themselves, and gets one clear error.
Repeats
    An edge that occurs in several parts, in either direction, sets the same bit again. Parts need
    no particular order.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from silograph.errors import ArgumentError, EdgeError, GraphError
from silograph.extras import library
from silograph.graph.reading import (
    Choice,
    Columns,
    check_columns,
    choose_named,
    is_parquet,
    parquet_batches,
    parquet_runs,
)
from silograph.graph.universe import NodeUniverse
from silograph.graph.window import Window

__all__ = [
    "ROWS",
    "Advance",
    "ClusterSilo",
    "Folds",
    "Held",
    "PartedSilo",
    "of_dask",
    "of_files",
    "whole",
]

Words = npt.NDArray[np.uint64]
#: Called with the number of parts that have been folded since the last call.
Advance = Callable[[int], None]
#: How many rows of a dataset are in memory at once, if the caller does not say.
ROWS = 1 << 19
_FAN_IN = 8  # how many results one task of the reduction joins
#: What a silo has and one in parts has not; a test compares the list with the class.
_WHOLE_ONLY = frozenset({
    "degrees", "nodes", "pairs", "report", "to_edges", "to_file", "to_igraph", "to_networkx",
    "to_pandas", "to_polars", "to_scipy", "triangles",
})  # fmt: skip
_T = TypeVar("_T")


class Held(Protocol):
    """Edges in memory: what folding needs of a silo."""

    @property
    def nodes(self) -> NodeUniverse:
        """The nodes that positions refer to."""

    @property
    def pairs(self) -> npt.NDArray[np.uint32]:
        """The edges as positions."""


class Folds(Protocol):
    """Makes bits of buckets from edges, as :class:`silograph.graph.fold.Folding` does."""

    def fold(self, nodes: NodeUniverse, pairs: npt.NDArray[np.uint32], /) -> Words:
        """The bits in 64-bit words; the edges are positions in ``nodes``."""


#: A part: called, it gives a silo, or several one after another.
Part = Callable[[], Held | Iterable[Held]]


class PartedSilo:
    """The edges of one party in parts that are read one at a time. Immutable.

    It takes part in folded studies like a :class:`~silograph.Silo`; nothing else can be done with
    it. :meth:`Silo.from_dataset <silograph.Silo.from_dataset>` and
    :meth:`Silo.from_dask <silograph.Silo.from_dask>` make it from tables.

    Parameters
    ----------
    universe
        The nodes; may be open.
    parts
        Functions without arguments. Each returns a silo over the universe, or several silos one
        after another. They are called in every folding, and should give the same edges each time.
    name
        The silo's name.

    Examples
    --------
    >>> from silograph import Silo
    >>> from silograph.graph.fold import Folding, Layout
    >>> nodes = NodeUniverse.open()
    >>> first, second = [("ada", "bob")], [("bob", "eve")]
    >>> parted = PartedSilo(
    ...     nodes,
    ...     [lambda: Silo.from_edges(nodes, first), lambda: Silo.from_edges(nodes, second)],
    ... )
    >>> folding = Folding.of(b"what all parties signed", Layout(groups=4))
    >>> both = Silo.from_edges(nodes, first + second)
    >>> bool((parted.fold(folding) == both.fold(folding)).all())
    True
    """

    __slots__ = ("_name", "_parts", "_universe")

    _universe: NodeUniverse
    _parts: tuple[Part, ...]
    _name: str

    def __init__(self, universe: NodeUniverse, parts: Iterable[Part], *, name: str = "") -> None:
        if not isinstance(universe, NodeUniverse):
            kind = type(universe).__name__
            raise ArgumentError(f"universe is of type {kind}; a NodeUniverse is needed first")
        if not isinstance(name, str):
            raise ArgumentError(f"name is {name!r}; it must be text")
        given = tuple(parts)
        if not all(map(callable, given)):
            raise ArgumentError("a part must be a function that returns a silo")
        for slot, value in zip(PartedSilo.__slots__, (name, given, universe), strict=True):
            object.__setattr__(self, slot, value)

    @property
    def universe(self) -> NodeUniverse:
        """The nodes that the silos agree on."""
        return self._universe

    @property
    def name(self) -> str:
        """The silo's name; may be empty."""
        return self._name

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts."""
        return self._parts

    def fold(self, folding: Folds, advance: Advance | None = None) -> Words:
        """The bits of the buckets that the edges occupy; one part is in memory at a time.

        Parameters
        ----------
        folding
            How nodes are folded.
        advance
            Called with 1 after every part.

        Returns
        -------
        numpy.ndarray
            The bits in 64-bit words.

        Raises
        ------
        EdgeError
            If a part cannot be read.
        """
        words = _no_edges(folding)
        for part in self._parts:
            for held in self._silos(part):
                words |= folding.fold(held.nodes, held.pairs)
            if advance is not None:
                advance(1)
        return words

    def _silos(self, part: Part) -> Iterator[Held]:
        made = part()
        for held in made if isinstance(made, Iterable) else (made,):
            if getattr(held, "universe", None) != self._universe:
                raise GraphError("a part is not a silo over the universe of the whole")
            yield held

    def __getattr__(self, name: str) -> NoReturn:
        if name in _WHOLE_ONLY:
            raise _fold_only()
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __len__(self) -> int:
        raise _fold_only()

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        called = f" {self._name!r}" * bool(self._name)
        count = f"{len(self._parts):,} part{'s' * (len(self._parts) != 1)}"
        return f"<{type(self).__name__}{called}: {count}, universe: {self._universe.size_text}>"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self._universe, self._parts, self._name)


def _restore(
    kind: type[PartedSilo], universe: NodeUniverse, parts: tuple[Part, ...], name: str
) -> PartedSilo:
    return kind(universe, parts, name=name)


def _fold_only() -> GraphError:
    return GraphError(
        "the edges of this silo are in parts, and can only be folded; this needs them in memory "
        "(Silo.from_file and the like)"
    )


def whole(silos: Iterable[_T | PartedSilo]) -> tuple[_T, ...]:
    """The silos, all of which must have their edges in memory."""
    found: list[_T] = []
    for silo in silos:
        if isinstance(silo, PartedSilo):
            raise _fold_only()
        found.append(silo)
    return tuple(found)


def _no_edges(folding: Folds) -> Words:
    return np.array(folding.fold(NodeUniverse([]), np.empty((0, 2), dtype=np.uint32)))


# --- Parts of files -------------------------------------------------------------------------------


class MakeHeld(Protocol):
    """Makes a silo from two columns of ids; ``place`` says in words where a value stands."""

    def __call__(
        self,
        universe: NodeUniverse,
        ends: tuple[Iterable[object], Iterable[object]],
        kind: str,
        name: str,
        *,
        place: Callable[[int], str],
    ) -> Held:
        """The silo."""


@dataclass(frozen=True)
class RowGroups:
    """A part: some row groups of a Parquet file, read in batches."""

    make: MakeHeld
    universe: NodeUniverse
    path: str
    choice: Choice
    groups: tuple[int, ...]
    #: The number of the first row.
    first: int
    #: The most rows in memory.
    rows: int
    window: Window | None = None

    def __call__(self) -> Iterator[Held]:
        """A silo for every batch of rows."""
        for table in parquet_batches(
            self.path, self.choice, self.groups, self.rows, self.first, self.window
        ):
            yield self.make(self.universe, table.ends, "parquet", "", place=table.place)


def of_files(
    make: MakeHeld,
    read: Callable[..., Held],
    universe: NodeUniverse,
    source: str | PathLike[str] | Sequence[str | PathLike[str]],
    columns: Columns,
    rows: int,
    name: str,
    window: Window | None = None,
) -> PartedSilo:
    """A silo of files and folders. ``read`` reads a text file, which is one part, as a whole."""
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise ArgumentError(f"rows is {rows!r}; it must be an integer from 1 up")
    check_columns(columns)
    parts: list[Part] = []
    for path in _files([source] if isinstance(source, str | PathLike) else source):
        if is_parquet(path):
            choice, runs = parquet_runs(path, columns, rows, window)
            parts += [
                RowGroups(make, universe, path, choice, groups, first, rows, window)
                for first, groups in runs
            ]
        else:
            parts.append(partial(read, universe, path, columns=columns, window=window))
    if not parts:
        raise EdgeError(f"{_shown(source)}: there are no edges in it")
    return PartedSilo(universe, parts, name=name)


def _files(paths: Iterable[str | PathLike[str]]) -> Iterator[str]:
    """The files, and those in folders; marks of other programs (``_SUCCESS``) are passed over."""
    for given in paths:
        path = Path(given)
        if not path.is_dir():
            yield fspath(given)
            continue
        for inner in sorted(path.rglob("*")):
            hidden = any(part.startswith((".", "_")) for part in inner.relative_to(path).parts)
            if inner.is_file() and not hidden:
                yield fspath(inner)


def _shown(source: object) -> str:
    return fspath(source) if isinstance(source, str | PathLike) else "the list of files"


# --- Partitions of a cluster ----------------------------------------------------------------------


@dataclass(frozen=True)
class Partition:
    """A part: one partition of a dask frame, as a pandas frame on whoever calls."""

    read: Callable[..., Held]
    universe: NodeUniverse
    #: A delayed pandas frame.
    frame: Any
    columns: tuple[str, str]
    number: int

    def __call__(self) -> Held:
        """Compute the partition, and make a silo of it."""
        return _of_frame(self.read, self.universe, self.frame.compute(), self.columns, self.number)


class ClusterSilo(PartedSilo):
    """A silo whose parts are partitions of a dask frame, folded where they are.

    Every partition is one task, which makes bits from its edges. The bits are joined by a tree of
    tasks on the workers; the last result alone comes back.
    """

    __slots__ = ()

    def fold(self, folding: Folds, advance: Advance | None = None) -> Words:
        """The bits of the buckets that the edges occupy, made by the workers."""
        delayed = library("dask", "dask frames").delayed
        # Delayed once each, so that a worker gets them once and not with every task.
        how, nodes = delayed(folding, traverse=False), delayed(self._universe, traverse=False)
        task, join = delayed(_folded), delayed(_joined)
        level = [
            task(part.read, nodes, part.frame, part.columns, part.number, how)
            for part in self._parts
            if isinstance(part, Partition)
        ]
        while len(level) > 1:
            level = [
                join(level[start : start + _FAN_IN]) for start in range(0, len(level), _FAN_IN)
            ]
        words = np.array(level[0].compute(), dtype=np.uint64) if level else _no_edges(folding)
        if advance is not None:
            advance(len(self._parts))
        return words


def of_dask(
    read: Callable[..., Held], universe: NodeUniverse, frame: Any, columns: Columns, name: str
) -> ClusterSilo:
    """A silo of a dask frame. ``read`` makes a silo from a pandas frame."""
    expected = library("dask.dataframe", "dask frames").DataFrame
    if not isinstance(frame, expected):
        raise ArgumentError(f"frame is of type {type(frame).__name__}; a dask frame is needed")
    names = [str(column) for column in frame.columns]
    choice = choose_named("frame", names, check_columns(columns))
    places = (choice.first, choice.second)
    chosen = (names[places[0]], names[places[1]])
    partitions = frame[[frame.columns[place] for place in places]].to_delayed()
    parts = [
        Partition(read, universe, part, chosen, number) for number, part in enumerate(partitions)
    ]
    return ClusterSilo(universe, parts, name=name)


def _of_frame(
    read: Callable[..., Held],
    universe: NodeUniverse,
    frame: Any,
    columns: tuple[str, str],
    number: int,
) -> Held:
    try:
        return read(universe, frame, columns=columns)
    except EdgeError as error:
        raise EdgeError(f"partition {number}: {error}") from None


def _folded(
    read: Callable[..., Held],
    universe: NodeUniverse,
    frame: Any,
    columns: tuple[str, str],
    number: int,
    folding: Folds,
) -> Words:
    held = _of_frame(read, universe, frame, columns, number)
    return folding.fold(held.nodes, held.pairs)


def _joined(results: Sequence[Words]) -> Words:
    words = results[0].copy()  # a worker's own results must stay as they are
    for more in results[1:]:
        words |= more
    return words
