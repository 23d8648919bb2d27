"""Public attributes of nodes: files that say which group each node is in."""

import csv
import gzip
from collections.abc import Iterable
from os import PathLike, fspath
from typing import TextIO

from silograph.errors import UniverseError
from silograph.graph.identifiers import shown
from silograph.graph.reading import sorted_ids
from silograph.graph.universe import NodeUniverse

__all__ = ["read_groups", "universe_with"]

#: Names of the first column of a header.
_NAMES = frozenset({"id", "ids", "node", "nodes", "node_id", "nodeid", "vertex", "user_id"})


def read_groups(path: str | PathLike[str], universe: NodeUniverse | None = None) -> dict[str, str]:
    """The group of each node, from a table whose first two columns are the id and the group.

    Parameters
    ----------
    path
        A CSV or TSV file, which may be gzipped.
    universe
        The node list, if it is known: then a first line whose id is not in it is a header.
        Otherwise it is one if its first column has a usual name, such as ``id`` or ``node``.

    Returns
    -------
    dict
        From id to group.

    Raises
    ------
    UniverseError
        If the file cannot be read, or gives a node two groups.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "groups.csv"
    >>> _ = path.write_text("id,country\\nada,uk\\nbob,fr\\n")
    >>> read_groups(path)
    {'ada': 'uk', 'bob': 'fr'}
    """
    source = fspath(path)
    stem = source.lower().removesuffix(".gz")
    found: dict[str, str] = {}
    started = False
    try:
        with _opened(source) as file:
            rows = csv.reader(file, delimiter="\t" if stem.endswith((".tsv", ".tab")) else ",")
            for row in rows:
                if not any(cell.strip() for cell in row):
                    continue
                if len(row) < 2:
                    raise UniverseError(
                        f"{source}:{rows.line_num}: one column; an id and a group are needed"
                    )
                id_, group = row[0], row[1].strip()
                first, started = not started, True
                if first and _is_header(id_, universe):
                    continue
                if found.setdefault(id_, group) != group:
                    raise UniverseError(
                        f"{source}:{rows.line_num}: id {shown(id_)} is in group "
                        f"{shown(found[id_])} and in {shown(group)}"
                    )
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UniverseError(f"{source}: cannot be read: {error}") from None
    if not found:
        raise UniverseError(f"{source}: there are no groups in it")
    return found


def universe_with(ids: Iterable[str], digest: str) -> NodeUniverse | None:
    """The node list of these ids that has the given digest: in their order, or sorted."""
    given = list(ids)
    for order in (given, sorted_ids(set(given))):
        universe = NodeUniverse(order)
        if universe.digest == digest:
            return universe
    return None


def _is_header(id_: str, universe: NodeUniverse | None) -> bool:
    return id_ not in universe if universe is not None else id_.strip().lower() in _NAMES


def _opened(source: str) -> TextIO:
    if source.lower().endswith(".gz"):
        return gzip.open(source, "rt", encoding="utf-8-sig", newline="")
    return open(source, encoding="utf-8-sig", newline="")
