"""``silograph query`` and ``silograph compare``: ask releases. They start fast."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

# NumPy reads this when it is loaded. Queries multiply no large matrices, so they need no threads,
# which take time to start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import typer

from silograph.cli.options import (
    CsvFile,
    Force,
    HtmlFile,
    Json,
    K,
    NodeColumn,
    Nodes,
    check_question,
    one_of,
)
from silograph.cli.output import check_output, echo, echo_json, write_text
from silograph.errors import ArgumentError
from silograph.estimators.estimate import Estimate
from silograph.estimators.questions import GROUP_QUERIES, RELEASE_QUERIES
from silograph.estimators.release import Release
from silograph.estimators.release_file import FOLDED, kind_of
from silograph.methods.catalogue import QUERIES

if TYPE_CHECKING:
    from silograph.estimators.folded_release import FoldedRelease
    from silograph.graph.universe import NodeUniverse

__all__ = ["compare", "query"]

_ALL = (*QUERIES, *RELEASE_QUERIES)
_ABOUT_GROUPS = "Groups and subsets"


def query(
    release: Annotated[Path, typer.Argument(help="A release file.", show_default=False)],
    name: Annotated[
        str,
        typer.Argument(
            help=f"What to ask: {', '.join(QUERIES)}; of groups of nodes "
            f"{', '.join(GROUP_QUERIES)}; {', '.join(RELEASE_QUERIES[len(GROUP_QUERIES) :])}.",
            show_default=False,
            autocompletion=one_of(_ALL),
        ),
    ],
    k: K = None,
    groups: Annotated[
        Path | None,
        typer.Option(
            help="A CSV file with the public group of every node: id and group.",
            show_default=False,
            rich_help_panel=_ABOUT_GROUPS,
        ),
    ] = None,
    rest: Annotated[
        str | None,
        typer.Option(
            help="A group for all nodes that are not in the file.",
            show_default=False,
            rich_help_panel=_ABOUT_GROUPS,
        ),
    ] = None,
    subset: Annotated[
        Path | None,
        typer.Option(
            help="A file with some of the nodes: ask about the edges among them alone.",
            show_default=False,
            rich_help_panel=_ABOUT_GROUPS,
        ),
    ] = None,
    nodes: Nodes = None,
    node_column: NodeColumn = None,
    csv: CsvFile = None,
    html: HtmlFile = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Ask a release a question. This costs no privacy: the release is already paid for.

    $ silograph query g.release kstars --k 3

    $ silograph query g.release mixing --groups countries.csv
    """
    _check(name, k, groups, rest)
    given = [path for path in (release, groups, subset, nodes) if path is not None]
    for output in (csv, html):
        if output is not None:
            check_output(output, given, force=force)
    loaded = _loaded(release)
    if isinstance(loaded, Release):
        listed = None if nodes is None else _node_list(nodes, node_column)
        answer = _ask(*_prepared(loaded, listed, groups, subset), name, k, rest)
    elif nodes is not None or subset is not None:
        raise ArgumentError("nodes were folded into groups in this release: it knows none of them")
    else:
        answer = loaded.ask(name, k)
    show(answer, answer.to_dict(), as_json=as_json)
    write(answer, csv, html)


def compare(
    before: Annotated[Path, typer.Argument(help="A release file.", show_default=False)],
    after: Annotated[Path, typer.Argument(help="A later release file.", show_default=False)],
    csv: CsvFile = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare two releases: which counts have changed, and which changes are only noise.

    This costs no privacy.

    $ silograph compare january.release february.release
    """
    if csv is not None:
        check_output(csv, [before, after], force=force)
    found = _loaded(before).compare(_loaded(after))
    if as_json:
        echo_json(found.to_dict())
    else:
        echo(str(found))
    if csv is not None:
        write_text(csv, found.table().to_csv())


def show(answer: Estimate[Any], plain: dict[str, Any], *, as_json: bool) -> None:
    """Print an answer."""
    if as_json:
        echo_json(plain)
    else:
        echo(str(answer))


def write(answer: Estimate[Any], csv: Path | None, html: Path | None) -> None:
    """Write the table and the page of an answer, if they are wanted."""
    if csv is not None:
        write_text(csv, answer.table().to_csv())
    if html is not None:
        from silograph.page import save_page  # noqa: PLC0415 (it loads a lot)

        save_page(answer, html)


def _loaded(path: Path) -> "Release | FoldedRelease":
    if kind_of(path) != FOLDED:
        return Release.load(path)
    from silograph.estimators.folded_release import FoldedRelease  # noqa: PLC0415

    return FoldedRelease.load(path)


def _node_list(path: Path, column: str | None) -> "NodeUniverse":
    from silograph.graph.universe import NodeUniverse  # noqa: PLC0415

    place = int(column) if column is not None and column.isdecimal() else column
    return NodeUniverse.from_file(path, column=place)


def _check(name: str, k: int | None, groups: Path | None, rest: str | None) -> None:
    """Refuse a question with too few or too many options, before any file is read."""
    if name not in RELEASE_QUERIES:
        check_question(name, k, known=_ALL)
    elif k is not None:
        raise ArgumentError(f"--k is for kstars, not for {name}")
    if groups is None and name in GROUP_QUERIES:
        raise ArgumentError(f"{name} needs --groups, the group of every node")
    if groups is not None and name not in GROUP_QUERIES:
        raise ArgumentError(f"--groups is for {', '.join(GROUP_QUERIES)}, not for {name}")
    if rest is not None and groups is None:
        raise ArgumentError("--rest names a group, and needs --groups")


def _prepared(
    release: Release, nodes: "NodeUniverse | None", groups: Path | None, subset: Path | None
) -> tuple[Release, dict[str, str] | None]:
    """The release with its node list, or a part of it, and the groups of its nodes."""
    table = None
    if nodes is not None:
        release = release.with_universe(nodes)
    if groups is not None:
        release, table = _with_groups(release, groups)
    if subset is None:
        return release, table
    if release.universe is None:
        raise ArgumentError("--subset needs --nodes, the node list of the release")
    chosen = _node_list(subset, None).ids
    if table is not None:
        table = {id_: table[id_] for id_ in chosen if id_ in table}
    return release.subset(chosen), table


def _with_groups(release: Release, path: Path) -> tuple[Release, dict[str, str]]:
    """The release with its node list, which may be the one of the groups, and the groups."""
    from silograph.graph.attributes import read_groups, universe_with  # noqa: PLC0415

    table = read_groups(path, release.universe)
    if release.universe is not None:
        return release, table
    universe = universe_with(table, release.universe_digest)
    if universe is None:
        raise ArgumentError(
            f"{path}: its ids are not the node list of this release; give the list with --nodes"
        )
    return release.with_universe(universe), table


def _ask(
    release: Release, groups: dict[str, str] | None, name: str, k: int | None, rest: str | None
) -> Estimate[Any]:
    if k is not None:
        return release.kstars(k)
    found: Estimate[Any] = (
        getattr(release, name)() if groups is None else getattr(release, name)(groups, rest=rest)
    )
    return found
