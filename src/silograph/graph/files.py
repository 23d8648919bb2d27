"""Whole graphs out of edge files, where no universe is given."""

from os import PathLike

from silograph.graph.header import Columns
from silograph.graph.identifiers import Case
from silograph.graph.reader import Ask, read_alone
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse


def read_graph(
    path: str | PathLike[str],
    *,
    columns: Columns = None,
    format: str | None = None,  # noqa: A002 (the word that readers of tables know)
    header: bool | None = None,
    strip: bool = False,
    case: Case = None,
    name: str = "",
) -> Silo:
    """Reads an edge file over the universe of the ids in it.

    The options are those of :meth:`Silo.from_file`; ``strip`` and ``case`` become the
    normalisation of the universe. Ids are sorted: integers by value, otherwise by code point.

    For local work and experiments. Silos that answer together agree on a universe first, and
    use :meth:`Silo.from_file`.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "edges.csv"
    >>> _ = path.write_text("source,target\\n10,9\\n9,10\\n9,9\\n")
    >>> graph = read_graph(path)
    >>> graph.universe.ids, len(graph), graph.report.self_loops
    (('9', '10'), 1, 1)
    """
    NodeUniverse((), strip=strip, case=case)  # the options are checked before the file is read
    table, words, report = read_alone(Ask(path, columns, format, header), strip=strip, case=case)
    return Silo._of(NodeUniverse._of(table, strip, case), words, report, name)
