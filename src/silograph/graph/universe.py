"""The node universe: the public, ordered list of nodes that all silos agree on; or an open one,
which has no list, and in which any identifier in the agreed form is a node.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from os import PathLike, fspath
from typing import NoReturn, Self

import numpy as np

from silograph._core import IdError, IdTable
from silograph.errors import ArgumentError, UniverseError
from silograph.graph.identifiers import (
    Case,
    NotAnIdError,
    check_normalisation,
    id_text,
    id_texts,
    plain_integers,
    shown,
)
from silograph.graph.node_list import Kept, read, write
from silograph.graph.reading import Ask, Columns, normalised, read_alone, sorted_ids
from silograph.graph.window import Window

# --- How two node universes differ ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class UniverseComparison:
    """The result of :meth:`NodeUniverse.compare`; true if the two universes are the same.

    Examples
    --------
    >>> found = NodeUniverse(["a", "b"]).compare(NodeUniverse(["b", "c"]))
    >>> bool(found), found.only_here, found.examples_there
    (False, 1, ('c',))
    """

    same: bool
    """Whether the digests are equal: ids, order and normalisation."""
    sizes: tuple[int | None, int | None]
    """The number of nodes here and there; None for an open universe."""
    only_here: int
    """How many ids only this universe has; 0 if one of the two is open."""
    only_there: int
    """How many ids only the other universe has; 0 if one of the two is open."""
    examples_here: tuple[str, ...]
    """A few of the ids that are only here."""
    examples_there: tuple[str, ...]
    """A few of the ids that are only there."""
    order_differs: bool
    """Whether the common ids are in another order."""
    normalisation_differs: bool
    """Whether ``strip`` or ``case`` differ."""

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        here, there = map(_size_text, self.sizes)
        if self.same:
            return f"the same universe of {here}" if self.sizes[0] is not None else "both are open"
        lines = [f"different universes: {here} here, {there.removesuffix(' nodes')} there"]
        sides = (
            ("here", self.only_here, self.examples_here),
            ("there", self.only_there, self.examples_there),
        )
        for side, count, examples in sides:
            if count:
                some = ", ".join(map(shown, examples)) + (", …" if count > len(examples) else "")
                lines.append(f"  only {side}: {count:,} ({some})")
        if self.order_differs:
            lines.append("  the common ids are in another order")
        if self.normalisation_differs:
            lines.append("  the normalisation (strip, case) is different")
        return "\n".join(lines)


def _size_text(size: int | None) -> str:
    return "open" if size is None else f"{size:,} nodes"


# --- The node universe ----------------------------------------------------------------------------

MOST_NODES = 2**32 - 1
_DOMAIN = b"silograph/node-universe/v1\0"
_OPEN_DOMAIN = b"silograph/open-universe/v1\0"
_FORM = re.compile(r"strip=([01]);case=(none|lower|upper)")
_STEP = 1 << 16


class NodeUniverse:
    """Ordered, distinct, public node ids. Immutable; equal if the digests are equal.

    Every id is text, and integers are written in decimal: 7 and ``"7"`` are the same id,
    ``"007"`` is another.

    Parameters
    ----------
    ids
        The ids, in order.
    strip
        Whether white space at both ends of an id is removed.
    case
        ``"lower"`` or ``"upper"``, to convert ids to this case.

    Notes
    -----
    ``strip`` and ``case`` are applied to these ids and to every id that is looked up later, from
    any source. Nothing else is changed; letters that look alike stay different.

    Examples
    --------
    >>> universe = NodeUniverse(["Ada", "Bob ", 7], strip=True, case="lower")
    >>> universe.ids
    ('ada', 'bob', '7')
    >>> universe.index(" BOB"), "7" in universe, "007" in universe
    (1, True, False)
    """

    __slots__ = ("_case", "_digest", "_list", "_strip")

    _list: IdTable | None  # None: open
    _strip: bool
    _case: Case
    _digest: str | None

    def __init__(self, ids: Iterable[object], *, strip: bool = False, case: Case = None) -> None:
        if isinstance(ids, int):
            raise ArgumentError(f"ids is a number; for the nodes 0, 1, … use range({ids})")
        if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
            raise ArgumentError(f"ids is of type {type(ids).__name__}; a list of ids is needed")
        check_normalisation(strip, case)
        originals = _originals(ids)
        if len(originals) > MOST_NODES:
            raise UniverseError(f"{len(originals):,} nodes; at most 2^32 − 1 are possible")
        try:
            table = IdTable.from_texts(originals, strip, case)
        except IdError as error:
            raise UniverseError(_id_fault(error, originals, strip, case)) from None
        self._fill(table, strip, case)

    def _fill(self, table: IdTable | None, strip: bool, case: Case) -> None:
        for name, value in (("_list", table), ("_strip", strip), ("_case", case)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_digest", None)

    @classmethod
    def _of(cls, table: IdTable | None, strip: bool = False, case: Case = None) -> Self:
        universe = cls.__new__(cls)
        universe._fill(table, strip, case)
        return universe

    @classmethod
    def open(cls, *, strip: bool = False, case: Case = None) -> Self:
        """A universe without a list: any identifier is a node.

        Parties that use it agree on the form of identifiers alone. It serves studies in which
        nodes are folded into groups. Whatever needs a list of nodes, such as :func:`len`, raises
        :class:`~silograph.errors.UniverseError`.

        Parameters
        ----------
        strip
            Whether white space at both ends of an id is removed. Otherwise an id must have none.
        case
            ``"lower"`` or ``"upper"``, to convert ids to this case.

        Returns
        -------
        NodeUniverse
            The universe.

        Examples
        --------
        >>> universe = NodeUniverse.open(strip=True, case="lower")
        >>> universe.is_open, "any id" in universe, universe.form
        (True, True, 'strip=1;case=lower')
        """
        check_normalisation(strip, case)
        return cls._of(None, strip, case)

    @classmethod
    def _open_with(cls, form: str) -> Self:
        """The open universe with this :attr:`form`, in its one spelling."""
        match = _FORM.fullmatch(form) if isinstance(form, str) else None
        if match is None:
            raise UniverseError(f"{shown(form)} is not a form of identifiers")
        known: dict[str, Case] = {"lower": "lower", "upper": "upper"}
        return cls._of(None, match[1] == "1", known.get(match[2]))

    @classmethod
    def range(cls, n: int) -> Self:
        """The nodes 0, 1, … n−1, without using memory for each.

        Parameters
        ----------
        n
            The number of nodes.

        Returns
        -------
        NodeUniverse
            The universe.

        Examples
        --------
        >>> NodeUniverse.range(3) == NodeUniverse(["0", "1", "2"])
        True
        """
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
            raise ArgumentError(f"n is {n!r}; it must be an integer from 0 up")
        if n > MOST_NODES:
            raise UniverseError(f"{n:,} nodes; at most 2^32 − 1 are possible")
        return cls._of(IdTable.range(int(n), False, None))

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        column: str | int | None = None,
        header: bool | None = None,
        strip: bool | None = None,
        case: Case = None,
    ) -> Self:
        """Read a universe from a file, which may be gzipped.

        A file that :meth:`save` wrote is checked against its digest, and carries its own
        normalisation. Any other file is a table if its name ends in .csv or .tsv or if ``column``
        is given, and otherwise a list with one id per line.

        Parameters
        ----------
        path
            The file.
        column
            The column that holds the ids, by name or by position.
        strip
            Whether white space at the ends of an id is removed.
        case
            ``"lower"`` or ``"upper"``, to convert ids to this case.

        Returns
        -------
        NodeUniverse
            The universe.

        Raises
        ------
        UniverseError
            If the file cannot be read or is damaged.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "nodes.txt"
        >>> _ = path.write_text("ada\\nbob\\n")
        >>> NodeUniverse.from_file(path).ids
        ('ada', 'bob')
        """
        check_normalisation(bool(strip), case)
        ids, kept = read(path, column=column, header=header)
        if kept is None:
            try:
                return cls(ids, strip=bool(strip), case=case)
            except UniverseError as error:
                raise UniverseError(f"{fspath(path)}: {error}") from None
        if (strip is not None and strip != kept.strip) or (case is not None and case != kept.case):
            raise UniverseError(
                f"{fspath(path)}: it was saved with strip={kept.strip}, "
                f"case={kept.case!r}; leave both out to read it"
            )
        if kept.n is None:
            universe = cls.open(strip=kept.strip, case=kept.case)
            if ids or universe.digest != kept.digest:
                raise UniverseError(f"{fspath(path)}: damaged: not the file of an open universe")
            return universe
        try:
            universe = cls(ids, strip=kept.strip, case=kept.case)
        except UniverseError as error:
            raise UniverseError(f"{fspath(path)}: damaged: {error}") from None
        if len(universe) != kept.n or universe.digest != kept.digest:
            raise UniverseError(
                f"{fspath(path)}: damaged: the {len(universe):,} ids in it do not "
                f"have the digest in its first line (made from {kept.n:,})"
            )
        return universe

    @classmethod
    def from_edge_files(
        cls,
        *paths: str | PathLike[str],
        columns: Columns | list[Columns] = None,
        format: str | None = None,  # noqa: A002 (the usual word for it)
        header: bool | None = None,
        strip: bool = False,
        case: Case = None,
        window: Window | None = None,
    ) -> Self:
        """The ids that occur in edge files, sorted by value if all are integers, otherwise by code
        point.

        This is for local work. A universe that silos agree on must not be made from edges, since it
        would show which nodes have any.

        Parameters
        ----------
        *paths
            The files.
        columns
            The two columns that hold the ends; a list has one entry for each file.
        format
            The format; see :meth:`Silo.from_file`.
        header
            Whether the first row is a header; see :meth:`Silo.from_file`.
        strip
            Whether white space at the ends of an id is removed.
        case
            ``"lower"`` or ``"upper"``, to convert ids to this case.
        window
            Read only the rows whose time is in this window.

        Returns
        -------
        NodeUniverse
            The universe.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "edges.txt"
        >>> _ = path.write_text("10 9\\n9 7\\n")
        >>> NodeUniverse.from_edge_files(path).ids
        ('7', '9', '10')
        """
        if not paths:
            raise ArgumentError("at least one edge file is needed")
        return cls._of(
            universe_of_files(paths, columns, format, header, window, strip=strip, case=case),
            strip,
            case,
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write a readable file, completely or not at all: a line with the digest, then the ids.

        The file of an open universe has the first line alone.

        Parameters
        ----------
        path
            The file.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "nodes.txt"
        >>> NodeUniverse(["a", "b"]).save(path)
        >>> NodeUniverse.from_file(path).ids
        ('a', 'b')
        """
        kept = Kept(self.size, self._strip, self._case, self.digest)
        write(path, kept, () if self.is_open else self)

    @property
    def is_open(self) -> bool:
        """Whether there is no list of nodes; see :meth:`open`."""
        return self._list is None

    @property
    def form(self) -> str:
        """The normalisation as a short text, the same for all parties.

        Examples
        --------
        >>> NodeUniverse(["ada"], case="upper").form
        'strip=0;case=upper'
        """
        return f"strip={int(self._strip)};case={self._case or 'none'}"

    @property
    def _table(self) -> IdTable:
        """The list of nodes, for all that needs it."""
        if self._list is None:
            raise UniverseError("an open universe has no list of nodes, and this needs one")
        return self._list

    @property
    def size(self) -> int | None:
        """The number of nodes; None if the universe is open."""
        return None if self._list is None else len(self._list)

    @property
    def size_text(self) -> str:
        """The number of nodes in words, such as ``1,000 nodes``, or ``open``."""
        return _size_text(self.size)

    @property
    def strip(self) -> bool:
        """Whether white space at the ends of an id is removed."""
        return self._strip

    @property
    def case(self) -> Case:
        """The letter case that ids are converted to."""
        return self._case

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the ids in order, their number and the normalisation; of an open
        universe, the normalisation alone.
        """
        if self._digest is None:
            normal, n = self.form.encode(), self.size
            total = hashlib.sha256(_OPEN_DOMAIN if n is None else _DOMAIN)
            total.update(b"" if n is None else n.to_bytes(8, "little"))
            total.update(len(normal).to_bytes(4, "little") + normal)
            for start in range(0, n or 0, _STEP):
                total.update(self._table.encode(start, start + _STEP))
            object.__setattr__(self, "_digest", total.hexdigest())
        assert self._digest is not None  # noqa: S101
        return self._digest

    @property
    def ids(self) -> tuple[str, ...]:
        """All ids, in order."""
        return tuple(self._table.texts(0, len(self)))

    def index(self, id_: object) -> int:
        """The position of an id.

        Parameters
        ----------
        id_
            The id.

        Returns
        -------
        int
            The position.

        Raises
        ------
        UniverseError
            If the id is not in the universe.

        Examples
        --------
        >>> NodeUniverse(["a", "b"]).index("b")
        1
        """
        position = self._find(id_)
        if position is None:
            raise UniverseError(f"id {shown(id_)} is not in the universe of {len(self):,} nodes")
        return position

    def id(self, position: int) -> str:
        """The id at a position.

        Parameters
        ----------
        position
            The position, from 0.

        Returns
        -------
        str
            The id.

        Raises
        ------
        ArgumentError
            If there is no such position.

        Examples
        --------
        >>> NodeUniverse(["a", "b"]).id(1)
        'b'
        """
        if not 0 <= position < len(self):
            raise ArgumentError(f"position {position} is not in 0 … {len(self) - 1}")
        return self._table.texts(position, position + 1)[0]

    def normal(self, id_: object) -> str:
        """An id in the normal form of this universe.

        Parameters
        ----------
        id_
            The id.

        Returns
        -------
        str
            The id as the universe has it.

        Raises
        ------
        UniverseError
            If the id is not in the universe.

        Examples
        --------
        >>> NodeUniverse(["ada"], case="lower").normal("ADA")
        'ada'
        """
        if not self.is_open:
            return self.id(self.index(id_))
        try:
            return normalised(id_text(id_), self._strip, self._case)
        except NotAnIdError as error:
            raise UniverseError(f"{shown(id_)}: {error.args[0]}") from None

    def compare(self, other: "NodeUniverse", *, examples: int = 3) -> UniverseComparison:
        """How this universe and another differ.

        Parameters
        ----------
        other
            The other universe.
        examples
            How many ids to show as examples.

        Returns
        -------
        UniverseComparison
            The differences.

        Examples
        --------
        >>> print(NodeUniverse(list("abc")).compare(NodeUniverse(list("cad"))))
        different universes: 3 nodes here, 3 there
          only here: 1 ('b')
          only there: 1 ('d')
          the common ids are in another order
        """
        both = not (self.is_open or other.is_open)  # ids are compared if both have a list
        here, there = (self.ids, other.ids) if both else ((), ())
        mine, theirs = set(here), set(there)
        common_here = (id_ for id_ in here if id_ in theirs)
        common_there = (id_ for id_ in there if id_ in mine)
        return UniverseComparison(
            same=self == other,
            sizes=(self.size, other.size),
            only_here=len(mine - theirs),
            only_there=len(theirs - mine),
            examples_here=tuple(islice((id_ for id_ in here if id_ not in theirs), examples)),
            examples_there=tuple(islice((id_ for id_ in there if id_ not in mine), examples)),
            order_differs=any(a != b for a, b in zip(common_here, common_there, strict=True)),
            normalisation_differs=(self._strip, self._case) != (other._strip, other._case),
        )

    def _find(self, id_: object) -> int | None:
        try:
            text = id_text(id_)
            text.encode()
        except (NotAnIdError, UnicodeEncodeError):
            return None
        return self._table.get(text)

    def __contains__(self, id_: object) -> bool:
        if not self.is_open:
            return self._find(id_) is not None
        try:
            normalised(id_texts([id_])[0], self._strip, self._case)
        except NotAnIdError:
            return False
        return True

    def __len__(self) -> int:
        return len(self._table)

    def __bool__(self) -> bool:
        return self.size != 0

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _STEP):
            yield from self._table.texts(start, start + _STEP)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NodeUniverse):
            return NotImplemented
        return self is other or (self.size == other.size and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        normal = ", strip=True" * self._strip + (f", case={self._case!r}" if self._case else "")
        if self.is_open:
            return f"<open NodeUniverse{normal.replace(',', ':', 1)}>"
        if len(self) <= 4:
            some = ", ".join(map(shown, self))
        else:
            some = f"{shown(self.id(0))}, {shown(self.id(1))}, …, {shown(self.id(len(self) - 1))}"
        return f"<NodeUniverse of {len(self):,} nodes: {some}{normal}>"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a NodeUniverse cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a NodeUniverse cannot be changed")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (None if self.is_open else list(self), self._strip, self._case)


def _restore(ids: list[str] | None, strip: bool, case: Case) -> NodeUniverse:
    if ids is None:
        return NodeUniverse.open(strip=strip, case=case)
    return NodeUniverse(ids, strip=strip, case=case)


def _originals(ids: Iterable[object]) -> list[str]:
    if isinstance(ids, np.ndarray) and ids.ndim != 1:
        raise UniverseError(f"ids is an array of {ids.ndim} dimensions; a list of ids has one")
    integers = plain_integers(ids)
    if integers is not None:
        return list(map(str, integers.tolist()))
    try:
        return id_texts(ids)
    except NotAnIdError as error:
        what, position = error.args
        raise UniverseError(f"position {position}: {what}") from None


def _id_fault(error: IdError, originals: list[str], strip: bool, case: Case) -> str:
    code, position, first = error.args
    id_ = shown(originals[position])
    if code == "empty":
        return f"position {position}: id {id_} is empty" + " after strip" * strip
    if code == "control":
        return f"position {position}: id {id_} has a line break or a NUL in it"
    if originals[position] == originals[first]:
        return f"id {id_} is at position {first} and again at position {position}"
    normal = " and ".join(["strip=True"] * strip + [f"case={case!r}"] * (case is not None))
    return (
        f"ids {shown(originals[first])} (position {first}) and {id_} (position {position}) "
        f"become the same by {normal}"
    )


def universe_of_files(
    paths: Iterable[str | PathLike[str]],
    columns: Columns | list[Columns],
    format: str | None,  # noqa: A002
    header: bool | None,
    window: Window | None,
    *,
    strip: bool,
    case: Case,
) -> IdTable:
    """The ids of all files together, sorted like those of one."""
    check_normalisation(strip, case)
    paths = list(paths)
    own = columns if isinstance(columns, list) else [columns] * len(paths)
    if len(own) != len(paths):
        raise ArgumentError(f"columns has {len(own)} entries for {len(paths)} files")
    tables = [
        read_alone(Ask(path, each, format, header, window), strip=strip, case=case)[0]
        for path, each in zip(paths, own, strict=True)
    ]
    if len(tables) == 1:
        return tables[0]
    texts = {text for table in tables for text in table.texts(0, len(table))}
    return IdTable.from_texts(sorted_ids(texts), strip, case)
