"""``silograph collect`` and ``silograph count``: local runs, with all silos' files in one place."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from silograph.cli.local_run import (
    Reading,
    Spending,
    asking,
    read_fold,
    read_like,
    read_silos,
    spending,
)
from silograph.cli.options import (
    OUTPUT,
    Case,
    Collusion,
    Columns,
    CsvFile,
    Delta,
    Epsilon,
    Files,
    FoldNodes,
    Force,
    Format,
    GroupFile,
    Header,
    HtmlFile,
    HubList,
    Json,
    K,
    LedgerFile,
    LikeGraph,
    LikeRelease,
    Lineage,
    Method,
    NewLineage,
    NodeColumn,
    Nodes,
    Protocol,
    Query,
    Since,
    Strip,
    TimeColumn,
    Trust,
    Until,
    Yes,
    check_groups,
    check_question,
    time_window,
)
from silograph.cli.output import check_output, echo, echo_json, write_text
from silograph.estimators.estimate import Estimate
from silograph.estimators.folded_release import FoldedRelease
from silograph.graph.attributes import read_groups
from silograph.graph.bits import triangle_bytes
from silograph.graph.fold import Fold
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.methods.catalogue import GROUPED, QUERIES
from silograph.methods.fold.expected import MOST_CHOSEN
from silograph.page import ready, save_page

__all__ = [
    "collect",
    "count",
]


# --- ``silograph collect``: one release of several edge files -------------------------------------

#: An upper bound on the size of a release's header.
_HEADER_BYTES = 1 << 16


def _room(universe: NodeUniverse, folded: Fold | Literal["auto"] | None) -> int:
    """The size of the bits of a release, in bytes; at most so many with a fold that is chosen."""
    if folded is None:
        return triangle_bytes(len(universe))
    return (MOST_CHOSEN if folded == "auto" else folded.layout.buckets) // 8


def collect(
    files: Files,
    epsilon: Epsilon,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="The release file to write.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ],
    nodes: Nodes = None,
    node_column: NodeColumn = None,
    protocol: Protocol = None,
    collusion: Collusion = 1,
    fold: FoldNodes = None,
    hubs: HubList = None,
    ledger: LedgerFile = None,
    lineage: Lineage = "simulation",
    new_lineage: NewLineage = False,
    columns: Columns = None,
    format: Format = None,  # noqa: A002 (the word that readers of tables know)
    header: Header = None,
    time_column: TimeColumn = None,
    since: Since = None,
    until: Until = None,
    strip: Strip = False,
    case: Case = None,
    force: Force = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Make one release of the union of several silos. It answers any number of queries.

    All parties run in this process, with the real protocol. Use this only for files that may be in
    one place.

    $ silograph collect a.csv b.csv --nodes nodes.txt --epsilon 3 -o g.release

    $ silograph query g.release triangles
    """
    inputs = [path for path in (*files, nodes, hubs) if path is not None]
    folded = read_fold(fold, hubs)
    check_output(output, inputs, force=force)
    window = time_window(time_column, since, until)
    reading = Reading(nodes, node_column, columns, format, header, strip, case, window)
    silos = read_silos(files, reading, folded=folded is not None)
    room = _room(silos[0].universe, folded)
    check_output(output, inputs, force=force, size=room + _HEADER_BYTES)
    with spending(ledger, lineage, new=new_lineage) as account:
        federation = account.federation(silos)
        release = federation.collect(
            epsilon, protocol, collusion, fold=folded, confirm=asking(yes=yes, quiet=as_json)
        )
        with account.keeping():
            release.save(output)
        if as_json:
            echo_json(
                {
                    "release": str(output),
                    "nodes": silos[0].universe.size,
                    "fold": asdict(release.layout) if isinstance(release, FoldedRelease) else None,
                    "universe": release.universe_digest,
                    "epsilon": release.epsilon,
                    "delta": release.delta,
                    **asdict(release.provenance),
                    "views": [asdict(view) for view in release.views],
                    "ledger": account.to_dict(),
                }
            )
            return
        echo(f"{output}: {release}")
        if str(account):
            echo(str(account))


# --- ``silograph count``: one question to several edge files --------------------------------------


def count(
    query: Query,
    files: Files,
    epsilon: Epsilon,
    method: Method = "auto",
    nodes: Nodes = None,
    node_column: NodeColumn = None,
    k: K = None,
    delta: Delta = None,
    collusion: Collusion = 1,
    protocol: Protocol = None,
    trust: Trust = None,
    fold: FoldNodes = None,
    hubs: HubList = None,
    groups: GroupFile = None,
    like_graph: LikeGraph = None,
    like_release: LikeRelease = None,
    ledger: LedgerFile = None,
    lineage: Lineage = "simulation",
    new_lineage: NewLineage = False,
    csv: CsvFile = None,
    html: HtmlFile = None,
    columns: Columns = None,
    format: Format = None,  # noqa: A002 (the word that readers of tables know)
    header: Header = None,
    time_column: TimeColumn = None,
    since: Since = None,
    until: Until = None,
    strip: Strip = False,
    case: Case = None,
    force: Force = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Ask one question about the union of several silos. For more questions, use collect.

    All parties run in this process, with the real protocol. Use this only for files that may be in
    one place.

    $ silograph count triangles a.csv b.csv --epsilon 3

    $ silograph count kstars --k 3 a.csv b.csv --epsilon 1 --ledger own.ledger
    """
    check_question(query, k, method, known=(*QUERIES, *GROUPED))
    check_groups(query, method, groups)
    given = (*files, nodes, like_graph, like_release, hubs, groups)
    inputs = [path for path in given if path is not None]
    folded = read_fold(fold, hubs)
    for wanted in (csv, html):
        if wanted is not None:
            check_output(wanted, inputs, force=force)
    if html is not None:
        ready()  # before anything is spent
    window = time_window(time_column, since, until)
    reading = Reading(nodes, node_column, columns, format, header, strip, case, window)
    silos = read_silos(files, reading, folded=folded is not None)
    like = read_like(like_graph, like_release)
    table = None if groups is None else read_groups(groups, silos[0].universe)
    with spending(ledger, lineage, new=new_lineage) as account:
        answer = account.federation(silos).count(
            query, method, epsilon=epsilon, delta=delta, k=k, protocol=protocol,
            collusion=collusion, like=like, trust=trust or None, fold=folded,
            groups=table,
            confirm=asking(yes=yes, quiet=as_json),
        )  # fmt: skip
        # Print the answer first, so that it is not lost if the page cannot be written.
        if as_json:
            echo_json(_plain(answer, silos, collusion, account))
        else:
            echo(str(answer))
            over = "any node" if silos[0].universe.is_open else silos[0].universe.size_text
            echo(f"  {len(silos)} silos, {over}, t = {collusion}")
            if str(account):
                echo(str(account))
        if csv is not None:
            with account.keeping():
                write_text(csv, answer.table().to_csv())
        if html is not None:
            with account.keeping():
                save_page(answer, html, ledger=account.ledger, lineage=account.lineage)


def _plain(
    answer: Estimate[Any], silos: tuple[Silo, ...], collusion: int, account: Spending
) -> dict[str, Any]:
    universe = silos[0].universe
    return {
        **answer.to_dict(),
        "silos": len(silos),
        "nodes": universe.size,
        "universe": universe.digest,
        "collusion": collusion,
        "ledger": account.to_dict(),
    }
