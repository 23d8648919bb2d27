"""A silo: the edges that one party holds, over a universe that all parties share."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from silograph._core import IdTable, settle_pairs, sparse_triangles
from silograph.errors import ArgumentError, UniverseError
from silograph.graph import convert, partitioned
from silograph.graph.identifiers import find
from silograph.graph.reading import (
    Ask,
    Choice,
    Columns,
    LoadReport,
    find_alone,
    read_alone,
    read_over,
)
from silograph.graph.universe import NodeUniverse
from silograph.graph.window import Window

if TYPE_CHECKING:
    import dask.dataframe
    import igraph
    import networkx
    import pandas
    import polars
    import scipy.sparse


Pairs = npt.NDArray[np.uint32]


class Silo:
    """The undirected edges of one party, over a universe. Immutable.

    Both directions and repeats of an edge count as one edge; self-loops are dropped. :attr:`report`
    says what was merged and dropped. A silo is made by one of the ``from_…`` methods. The exports
    (``to_…``) are meant for the silo's own tools only.

    Over an open universe, a silo's nodes are the ids that occur in its edges; see :attr:`nodes`.

    Examples
    --------
    >>> universe = NodeUniverse(["ada", "bob", "eve"])
    >>> silo = Silo.from_edges(universe, [("bob", "ada"), ("ada", "bob")])
    >>> len(silo), silo.pairs.tolist(), silo.report.repeats
    (1, [[0, 1]], 1)
    >>> Silo.from_edges(NodeUniverse.open(), [("bob", "ada")]).nodes.ids
    ('ada', 'bob')
    """

    __slots__ = ("_name", "_nodes", "_pairs", "_report", "_universe")

    _universe: NodeUniverse
    _nodes: NodeUniverse
    _pairs: Pairs
    _report: LoadReport
    _name: str

    def __init__(self) -> None:
        raise ArgumentError("a Silo is made by from_edges, from_file or another from_… method")

    @classmethod
    def _of(
        cls,
        universe: NodeUniverse,
        words: npt.NDArray[np.uint64],
        report: LoadReport,
        name: str,
        table: IdTable | None = None,
    ) -> Self:
        """Make a silo from the 64-bit words of the core; each word is a pair in memory.

        ``table`` has the ids of the pairs if the universe is open.
        """
        words.setflags(write=False)
        pairs, nodes = words.view(np.uint32).reshape(-1, 2), universe
        if table is not None:
            nodes, pairs = _occurring(universe, table, pairs)
        return cls._with(universe, pairs, report, name, nodes)

    @classmethod
    def _with(
        cls,
        universe: NodeUniverse,
        pairs: Pairs,
        report: LoadReport,
        name: str,
        nodes: NodeUniverse,
    ) -> Self:
        if not isinstance(name, str):
            raise ArgumentError(f"name is {name!r}; it must be text")
        pairs.setflags(write=False)
        pairs = pairs.view()  # a view of a locked array cannot be unlocked again
        silo = cls.__new__(cls)
        for slot, value in zip(cls.__slots__, (name, nodes, pairs, report, universe), strict=True):
            object.__setattr__(silo, slot, value)
        return silo

    @classmethod
    def _found(
        cls,
        universe: NodeUniverse,
        ends: convert.Ends,
        kind: str,
        name: str,
        *,
        choice: Choice | None = None,
        place: Callable[[int], str] = lambda number: f"edge {number}",
    ) -> Self:
        """Make a silo from ids: look them up, then merge repeats and drop self-loops."""
        table = None
        if universe.is_open:
            table, first, second = find_alone(ends, place, universe.strip, universe.case)
        else:
            first, second = (find(universe._table, end, place, universe) for end in ends)
        return cls._settled(
            universe, first, second, kind=kind, name=name, choice=choice, table=table
        )

    @classmethod
    def _settled(
        cls,
        universe: NodeUniverse,
        first: Pairs,
        second: Pairs,
        *,
        kind: str,
        name: str,
        choice: Choice | None = None,
        table: IdTable | None = None,
    ) -> Self:
        words, loops, repeats = settle_pairs(first, second)
        report = LoadReport(
            source=f"{kind} object",
            format=kind,
            rows=len(first),
            edges=len(words),
            repeats=repeats,
            self_loops=loops,
            header=choice.header if choice else None,
            columns=choice.columns if choice else None,
            ignored=choice.ignored if choice else (),
        )
        return cls._of(universe, words, report, name, table)

    @classmethod
    def from_edges(cls, universe: NodeUniverse, source: object, *, name: str = "") -> Self:
        """Make a silo from pairs of ids.

        Parameters
        ----------
        universe
            The nodes.
        source
            A (k, 2) array of ids, or any sequence of pairs of ids. It may be empty.
        name
            The silo's name.

        Returns
        -------
        Silo
            The silo.

        Raises
        ------
        EdgeError
            If an id is not in the universe, or an edge is not a pair.

        Examples
        --------
        >>> len(Silo.from_edges(NodeUniverse.range(3), [(0, 1), (1, 2)]))
        2
        """
        _check(universe)
        return cls._found(universe, convert.array_ends(source), "edges", name)

    @classmethod
    def from_pairs(cls, universe: NodeUniverse, source: object, *, name: str = "") -> Self:
        """Make a silo from pairs of positions.

        Parameters
        ----------
        universe
            The nodes.
        source
            A (k, 2) array of positions in the universe.
        name
            The silo's name.

        Returns
        -------
        Silo
            The silo.

        Raises
        ------
        EdgeError
            If a position is not in the universe.

        Examples
        --------
        >>> len(Silo.from_pairs(NodeUniverse(["a", "b", "c"]), [[0, 1], [1, 2]]))
        2
        """
        n = _listed(universe)
        first, second = convert.position_ends(source, n)
        return cls._settled(universe, first, second, kind="pairs", name=name)

    @classmethod
    def from_file(
        cls,
        universe: NodeUniverse,
        path: str | PathLike[str],
        *,
        columns: Columns = None,
        format: str | None = None,  # noqa: A002 (the usual word for it)
        header: bool | None = None,
        window: Window | None = None,
        name: str = "",
    ) -> Self:
        """Make a silo from an edge file: white space (SNAP), CSV or TSV, possibly gzipped; or
        Parquet.

        Lines that begin with # or % are comments in white-space files only. If an id is not in the
        universe, a line is malformed or the file is empty, nothing is loaded.

        Parameters
        ----------
        universe
            The nodes.
        path
            The file.
        columns
            The two columns that hold the ends, by name or by position.
        format
            ``"whitespace"`` (or ``"snap"``), ``"csv"``, ``"tsv"`` or ``"parquet"``. By default it
            follows from the file's name, and then from its first line.
        header
            Whether the first row is a header. By default a header is detected; the report shows it.
        window
            Read only the rows whose time is in this window; the report counts the others.
        name
            The silo's name.

        Returns
        -------
        Silo
            The silo.

        Raises
        ------
        EdgeError
            If the file cannot be loaded; the error names file, line and id.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "edges.csv"
        >>> _ = path.write_text("source,target\\n0,1\\n1,2\\n")
        >>> len(Silo.from_file(NodeUniverse.range(3), path))
        2
        """
        _check(universe)
        ask = Ask(path, columns, format, header, window)
        if universe.is_open:
            table, words, report = read_alone(ask, strip=universe.strip, case=universe.case)
            return cls._of(universe, words, report, name, table)
        words, report = read_over(universe, ask)
        return cls._of(universe, words, report, name)

    @classmethod
    def from_scipy(cls, universe: NodeUniverse, source: Any, *, name: str = "") -> Self:
        """Make a silo from an n × n scipy.sparse adjacency matrix.

        Parameters
        ----------
        universe
            The nodes.
        source
            The matrix; its rows are positions, and directions are merged.
        name
            The silo's name.

        Returns
        -------
        Silo
            The silo.
        """
        n = _listed(universe)
        first, second = convert.position_ends(convert.scipy_ends(source, n), n)
        return cls._settled(universe, first, second, kind="scipy", name=name)

    @classmethod
    def from_adjacency(cls, universe: NodeUniverse, source: object, *, name: str = "") -> Self:
        """Make a silo from a dense n × n adjacency matrix.

        Parameters
        ----------
        universe
            The nodes.
        source
            The matrix; its rows are positions, and directions are merged.
        name
            The silo's name.

        Returns
        -------
        Silo
            The silo.

        Examples
        --------
        >>> Silo.from_adjacency(NodeUniverse.range(2), [[0, 1], [0, 0]]).pairs.tolist()
        [[0, 1]]
        """
        n = _listed(universe)
        first, second = convert.position_ends(convert.matrix_ends(source, n), n)
        return cls._settled(universe, first, second, kind="adjacency", name=name)

    @classmethod
    def from_pandas(
        cls,
        universe: NodeUniverse,
        source: "pandas.DataFrame",
        *,
        columns: Columns = None,
        name: str = "",
    ) -> Self:
        """Make a silo from two columns of a pandas frame.

        Parameters
        ----------
        universe
            The nodes.
        source
            The frame.
        columns
            The two columns. By default those with well-known names, or the only two.
        name
            The silo's name.

        Returns
        -------
        Silo
            The silo.
        """
        _check(universe)
        ends, choice = convert.pandas_ends(source, columns)
        return cls._found(universe, ends, "pandas", name, choice=choice)

    @classmethod
    def from_polars(
        cls,
        universe: NodeUniverse,
        source: "polars.DataFrame",
        *,
        columns: Columns = None,
        name: str = "",
    ) -> Self:
        """Make a silo from two columns of a polars frame.

        Parameters
        ----------
        universe
            The nodes.
        source
            The frame.
        columns
            The two columns. By default those with well-known names, or the only two.
        name
            The silo's name.

        Returns
        -------
        Silo
            The silo.
        """
        _check(universe)
        ends, choice = convert.polars_ends(source, columns)
        return cls._found(universe, ends, "polars", name, choice=choice)

    @classmethod
    def from_networkx(
        cls, universe: NodeUniverse, source: "networkx.Graph[Any]", *, name: str = ""
    ) -> Self:
        """Make a silo from a networkx graph of any kind.

        Parameters
        ----------
        universe
            The nodes.
        source
            The graph; its nodes are ids.
        name
            The silo's name.

        Returns
        -------
        Silo
            The silo.
        """
        _check(universe)
        return cls._found(universe, convert.networkx_ends(source), "networkx", name)

    @classmethod
    def from_igraph(
        cls,
        universe: NodeUniverse,
        source: "igraph.Graph",
        *,
        attribute: str | None = None,
        name: str = "",
    ) -> Self:
        """Make a silo from an igraph graph.

        Parameters
        ----------
        universe
            The nodes.
        source
            The graph.
        attribute
            The vertex attribute that holds ids; by default ``name``, or else the vertex index.
        name
            The silo's name.

        Returns
        -------
        Silo
            The silo.
        """
        _check(universe)
        return cls._found(universe, convert.igraph_ends(source, attribute), "igraph", name)

    @classmethod
    def from_dataset(
        cls,
        universe: NodeUniverse,
        source: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        columns: Columns = None,
        rows: int = partitioned.ROWS,
        window: Window | None = None,
        name: str = "",
    ) -> partitioned.PartedSilo:
        """Make a silo that is larger than memory from Parquet files. It can only be folded.

        Files are read whenever the silo is folded, so they should not change during a study. Text
        files may be among them; each of those is read as a whole.

        Parameters
        ----------
        universe
            The nodes; may be open.
        source
            A file, a folder, or a list of both. All files in a folder are taken, those in folders
            inside it too, except names that begin with ``.`` or ``_``.
        columns
            The two columns that hold the ends, by name or by position.
        rows
            How many rows are in memory at a time.
        window
            Read only the rows whose time is in this window.
        name
            The silo's name.

        Returns
        -------
        PartedSilo
            The silo.

        Raises
        ------
        EdgeError
            If a file cannot be read. Ids are looked at when the silo is folded.
        """
        _check(universe)
        return partitioned.of_files(
            cls._found, cls.from_file, universe, source, columns, rows, name, window
        )

    @classmethod
    def from_dask(
        cls,
        universe: NodeUniverse,
        frame: "dask.dataframe.DataFrame",
        *,
        columns: Columns = None,
        name: str = "",
    ) -> partitioned.PartedSilo:
        """Make a silo of a dask frame, which stays on its cluster. It can only be folded.

        The workers need Silograph. Each folds its partitions, and joins the bits with those of
        others; no edge leaves the cluster.

        Parameters
        ----------
        universe
            The nodes; may be open.
        frame
            The frame.
        columns
            The two columns. By default those with well-known names, or the only two.
        name
            The silo's name.

        Returns
        -------
        PartedSilo
            The silo.
        """
        _check(universe)
        return partitioned.of_dask(cls.from_pandas, universe, frame, columns, name)

    def fold(
        self, folding: partitioned.Folds, advance: partitioned.Advance | None = None
    ) -> npt.NDArray[np.uint64]:
        """The bits of the buckets that the edges occupy in a folded study.

        Parameters
        ----------
        folding
            How nodes are folded.
        advance
            Called with 1 at the end, as after each part of a silo in parts.

        Returns
        -------
        numpy.ndarray
            The bits in 64-bit words.
        """
        words = folding.fold(self._nodes, self._pairs)
        if advance is not None:
            advance(1)
        return words

    def _only(self, pairs: Pairs, report: LoadReport, name: str) -> Self:
        """A silo with some of the edges of this one."""
        nodes = self._nodes
        if self._universe.is_open:
            nodes, pairs = _occurring(self._universe, nodes._table, pairs)
        return self._with(self._universe, pairs, report, name, nodes)

    def to_edges(self) -> npt.NDArray[np.str_]:
        """The edges as a (k, 2) array of ids.

        Examples
        --------
        >>> Silo.from_edges(NodeUniverse(["a", "b"]), [("b", "a")]).to_edges().tolist()
        [['a', 'b']]
        """
        return convert.edges(self.nodes.ids, self.pairs)

    def to_file(self, path: str | PathLike[str]) -> None:
        """Write an edge file, completely or not at all.

        Parameters
        ----------
        path
            The file; its name ends in .csv, .tsv or .parquet.
        """
        # If a column's name is also an id, the header could be read as an edge; omit it.
        header = not any(word in self.nodes for word in convert.COLUMNS)
        convert.to_file(self.nodes.ids, self.pairs, path, header=header)

    def to_scipy(self) -> "scipy.sparse.csr_array":
        """The symmetric n × n adjacency matrix; rows are positions."""
        return convert.to_scipy(self.nodes.ids, self.pairs)  # type: ignore[no-any-return]

    def to_pandas(self) -> "pandas.DataFrame":
        """A frame with the columns ``source`` and ``target``."""
        return convert.to_pandas(self.nodes.ids, self.pairs)  # type: ignore[no-any-return]

    def to_polars(self) -> "polars.DataFrame":
        """A frame with the columns ``source`` and ``target``."""
        return convert.to_polars(self.nodes.ids, self.pairs)  # type: ignore[no-any-return]

    def to_networkx(self) -> "networkx.Graph[Any]":
        """An undirected graph whose nodes are all ids of :attr:`nodes`."""
        return convert.to_networkx(self.nodes.ids, self.pairs)

    def to_igraph(self) -> "igraph.Graph":
        """An undirected graph whose vertices are named by all ids of :attr:`nodes`."""
        return convert.to_igraph(self.nodes.ids, self.pairs)

    @property
    def universe(self) -> NodeUniverse:
        """The nodes that the silos agree on."""
        return self._universe

    @property
    def nodes(self) -> NodeUniverse:
        """The list of nodes that positions refer to.

        It is the universe itself, unless that is open; then it is the sorted list of the ids that
        occur in this silo's edges. Such a list shows edges, and is for the silo alone.
        """
        return self._nodes

    @property
    def name(self) -> str:
        """The silo's name; may be empty."""
        return self._name

    @property
    def pairs(self) -> Pairs:
        """The edges as positions u < v, sorted, in a read-only (k, 2) array."""
        return self._pairs

    @property
    def report(self) -> LoadReport:
        """What was found while the edges were loaded."""
        return self._report

    def degrees(self) -> npt.NDArray[np.int64]:
        """The number of edges at every node, in the order of :attr:`nodes`.

        Examples
        --------
        >>> Silo.from_edges(NodeUniverse.range(3), [(0, 1), (1, 2)]).degrees().tolist()
        [1, 2, 1]
        """
        counts = np.bincount(self._pairs.ravel(), minlength=len(self._nodes))
        return counts.astype(np.int64, copy=False)

    def triangles(self) -> int:
        """The exact number of triangles.

        Returns
        -------
        int
            The number.

        Examples
        --------
        >>> Silo.from_edges(NodeUniverse.range(4), [(0, 1), (1, 2), (0, 2), (2, 3)]).triangles()
        1
        """
        return sparse_triangles(len(self._nodes), self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __bool__(self) -> bool:
        return True  # a silo without edges is still a silo

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Silo):
            return NotImplemented
        return (
            np.array_equal(self._pairs, other._pairs)
            and self._universe == other._universe
            and self._nodes == other._nodes
        )

    def __hash__(self) -> int:
        return hash((self._universe, self._nodes, self._pairs.tobytes()))

    def __repr__(self) -> str:
        called = f" {self._name!r}" * bool(self._name)
        of = " of an open universe" * self._universe.is_open
        return f"<Silo{called}: {len(self):,} edges over {len(self._nodes):,} nodes{of}>"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Silo cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a Silo cannot be changed")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self._universe, self._pairs, self._report, self._name, self._nodes)


def _restore(
    universe: NodeUniverse, pairs: Pairs, report: LoadReport, name: str, nodes: NodeUniverse
) -> Silo:
    return Silo._with(universe, pairs, report, name, nodes)


def restored(universe: NodeUniverse, ids: Sequence[str], pairs: object, name: str) -> Silo:
    """A silo over an open universe from the ids and the pairs of an earlier one, checked again."""
    table = NodeUniverse(ids, strip=universe.strip, case=universe.case)._table
    first, second = convert.position_ends(pairs, len(table))
    return Silo._settled(universe, first, second, kind="pairs", name=name, table=table)


def _occurring(universe: NodeUniverse, table: IdTable, pairs: Pairs) -> tuple[NodeUniverse, Pairs]:
    """The ids that occur in edges, and the pairs of their positions.

    An id that occurs in self-loops alone is dropped with them: the same edges give the same nodes.
    """
    occurs = np.zeros(len(table), dtype=bool)
    occurs[pairs] = True
    if not occurs.all():
        texts = table.texts(0, len(table))
        kept = [text for text, here in zip(texts, occurs, strict=True) if here]
        table = IdTable.from_texts(kept, universe.strip, universe.case)
        pairs = (np.cumsum(occurs, dtype=np.uint32) - np.uint32(1))[pairs]
    return NodeUniverse._of(table, universe.strip, universe.case), pairs


def _listed(universe: NodeUniverse) -> int:
    """The number of nodes, for what is given by positions."""
    _check(universe)
    if universe.is_open:
        raise UniverseError("an open universe has no positions; edges over it are pairs of ids")
    return len(universe)


def _check(universe: object) -> None:
    if not isinstance(universe, NodeUniverse):
        kind = type(universe).__name__
        raise ArgumentError(f"universe is of type {kind}; a NodeUniverse is needed first")
