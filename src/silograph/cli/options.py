"""Options and arguments that several commands share, with the same name and meaning in each."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from silograph.dp.loss import check_delta, check_epsilon
from silograph.errors import ArgumentError
from silograph.methods.catalogue import ANSWERING, GROUPED, QUERIES
from silograph.methods.catalogue import TRUST as TRUSTS
from silograph.methods.study import PROTOCOLS

if TYPE_CHECKING:
    from silograph.graph.reading import Columns as ColumnPair
    from silograph.graph.window import Window

__all__ = [
    "BUDGET",
    "FILES",
    "OUTPUT",
    "Case",
    "Collusion",
    "Columns",
    "CsvFile",
    "Delta",
    "Epsilon",
    "Files",
    "FoldNodes",
    "Force",
    "Format",
    "GroupFile",
    "Header",
    "HtmlFile",
    "HubList",
    "Json",
    "K",
    "LedgerFile",
    "LikeGraph",
    "LikeRelease",
    "Lineage",
    "Method",
    "NewLineage",
    "NodeColumn",
    "Nodes",
    "Protocol",
    "Query",
    "Since",
    "Strip",
    "TimeColumn",
    "Trust",
    "Until",
    "Yes",
    "check_groups",
    "check_question",
    "column_pair",
    "node_place",
    "one_of",
    "time_window",
    "with_columns",
]


#: The groups of options on a help page.
FILES, BUDGET, OUTPUT = "Edge files", "Budget", "Output"


def one_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function that completes these names in a shell."""
    known = list(names)
    return lambda incomplete: [name for name in known if name.startswith(incomplete)]


Query = Annotated[
    str,
    typer.Argument(
        help=f"What to count: {', '.join(QUERIES)}; with --groups and --method sealed "
        f"{', '.join(GROUPED)}.",
        show_default=False,
        autocompletion=one_of((*QUERIES, *GROUPED)),
    ),
]
Files = Annotated[
    list[Path],
    typer.Argument(
        help="Edge files, one per silo: CSV, TSV, white space (each also .gz) or Parquet. "
        "a.csv:from,to names the columns of one file.",
        show_default=False,
    ),
]
Epsilon = Annotated[
    float,
    typer.Option(
        help="The privacy budget: the largest privacy loss of an edge.",
        show_default=False,
        callback=check_epsilon,
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        help="Allow this δ, if the method can use it; 0 for noise that needs none.",
        callback=lambda delta: None if delta is None else check_delta(delta),
        show_default="what the method needs: at most 2^-60",
    ),
]
K = Annotated[
    int | None,
    typer.Option("--k", help="The number of leaves of a star, for kstars.", show_default=False),
]
Collusion = Annotated[
    int, typer.Option(help="How many silos may share what they know with the coordinator.")
]
Method = Annotated[
    str,
    typer.Option(
        help=f"{', '.join(ANSWERING)}, or auto: the best method that --trust allows.",
        autocompletion=one_of(("auto", *ANSWERING)),
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(
        help=f"How feat and feat+ make the union: {', '.join(PROTOCOLS)}. The default is committee "
        "if there are four members for it and collusion is at most 1, otherwise masked.",
        show_default=False,
        autocompletion=one_of(PROTOCOLS),
    ),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        help=f"Whom you trust: {', '.join(TRUSTS)}. May be repeated.",
        show_default=False,
        autocompletion=one_of(TRUSTS),
    ),
]
LikeGraph = Annotated[
    Path | None,
    typer.Option(
        help="A public edge file of a similar graph, to predict errors.", show_default=False
    ),
]
LikeRelease = Annotated[
    Path | None,
    typer.Option(help="A past release of this graph, to predict errors.", show_default=False),
]
FoldNodes = Annotated[
    str | None,
    typer.Option(
        "--fold",
        help="Fold nodes into groups, for large graphs: GROUPS[,HUBS[,SUB]], as in 1000,300. "
        "Unless --hubs names them, so many hubs are found with a part of ε.",
        show_default=False,
    ),
]
HubList = Annotated[
    Path | None,
    typer.Option(
        "--hubs",
        help="A public list of nodes that get a group of their own when nodes are folded: a node "
        "list, or the table of a hub search.",
        show_default=False,
    ),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        envvar="SILOGRAPH_LEDGER",
        help="The ledger that records the spend and refuses one above its limit.",
        show_default=False,
        rich_help_panel=BUDGET,
    ),
]
Lineage = Annotated[
    str, typer.Option(help="The dataset's name in the ledger.", rich_help_panel=BUDGET)
]
NewLineage = Annotated[
    bool,
    typer.Option(
        "--new-lineage",
        help="Allow a dataset that is not yet in a ledger with limits.",
        rich_help_panel=BUDGET,
    ),
]
Nodes = Annotated[
    Path | None,
    typer.Option(
        help="The public node list on which all parties have agreed.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
NodeColumn = Annotated[
    str | None,
    typer.Option(
        help="The column of a node list with several columns: a name or a position from 0.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="The two columns with the ends of an edge: names or positions from 0, as in "
        "payer,payee.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
GroupFile = Annotated[
    Path | None,
    typer.Option(
        "--groups",
        help="For mixing: a public table with the id and the group of every node.",
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        help="csv, tsv, whitespace or parquet. By default, the file's name decides.",
        show_default=False,
        autocompletion=one_of(("csv", "tsv", "whitespace", "parquet")),
        rich_help_panel=FILES,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line is a header.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
TimeColumn = Annotated[
    str | None,
    typer.Option(
        help="The column with the time of a row, for --since and --until: a name or a position "
        "from 0.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        help="Read only rows from this time on: an ISO date, as in 2026-01-31 or "
        "2026-01-31T12:00:00Z, or seconds since 1970.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        help="Read only rows before this time.", show_default=False, rich_help_panel=FILES
    ),
]
Strip = Annotated[
    bool,
    typer.Option("--strip", help="Remove white space around ids.", rich_help_panel=FILES),
]
Case = Annotated[
    Literal["lower", "upper"] | None,
    typer.Option(help="Convert all ids to this case.", show_default=False, rich_help_panel=FILES),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace an existing file.", rich_help_panel=OUTPUT),
]
Yes = Annotated[
    bool,
    typer.Option(
        "--yes",
        help="Run it even if it takes long or no usable answer is expected.",
        rich_help_panel=OUTPUT,
    ),
]
CsvFile = Annotated[
    Path | None,
    typer.Option(
        "--csv",
        help="Write the answer as a table: with ids, standard errors and intervals.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
HtmlFile = Annotated[
    Path | None,
    typer.Option(
        "--html",
        help="Write an HTML page that explains the answer.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)]


def check_question(
    query: str, k: int | None, method: str = "auto", known: Sequence[str] = QUERIES
) -> None:
    """Refuse a question that no method answers, before any file is read."""
    if query not in known:
        raise ArgumentError(f"unknown query {query!r}; choose from {', '.join(known)}")
    if query == "kstars" and k is None:
        raise ArgumentError("kstars needs --k, the number of leaves")
    if query != "kstars" and k is not None:
        raise ArgumentError(f"--k is for kstars, not for {query}")
    if method not in ("auto", *ANSWERING):
        raise ArgumentError(f"unknown method {method!r}; choose from {', '.join(ANSWERING)}, auto")


def check_groups(query: str, method: str, groups: Path | None) -> None:
    """Refuse groups without a question about them, and the other way round."""
    if (groups is not None) != (query in GROUPED):
        raise ArgumentError(f"--groups is for {', '.join(GROUPED)}, which needs it")
    if query in GROUPED and method != "sealed":
        raise ArgumentError(
            f"{query} is counted by --method sealed; or make a release with collect, and ask it: "
            f"silograph query g.release {query} --groups FILE"
        )


def column_pair(text: str | None) -> "ColumnPair":
    """Read two columns from the text ``A,B``.

    >>> column_pair("payer,payee"), column_pair("0,2")
    (('payer', 'payee'), (0, 2))
    """
    if text is None:
        return None
    first, comma, second = (part.strip() for part in text.partition(","))
    if not (first and comma and second) or first == second:
        raise ArgumentError(
            f"--columns {text[:80]!r}: two different columns are needed, as in payer,payee or 0,1"
        )
    if first.isdecimal() and second.isdecimal():
        return int(first), int(second)
    return first, second


def node_place(text: str | None) -> int | str | None:
    """Read the column of a node list: a position or a name.

    >>> node_place("2"), node_place("iban"), node_place(None)
    (2, 'iban', None)
    """
    return int(text) if text is not None and text.isdecimal() else text


def time_window(column: str | None, since: str | None, until: str | None) -> "Window | None":
    """The time window of three options; None if there are none.

    >>> time_window("day", "2026-01-01", None)
    Window(column='day', since='2026-01-01', until=None)
    """
    from silograph.graph.window import Window  # noqa: PLC0415 (help pages do without numpy)

    place = node_place(column)
    if place is None and since is None and until is None:
        return None
    if place is None:
        raise ArgumentError("--since and --until need --time-column, the column with the time")
    if since is None and until is None:
        raise ArgumentError("--time-column is for a time window: give --since, --until or both")
    return Window(place, since, until)


def with_columns(file: Path, columns: "ColumnPair") -> tuple[Path, "ColumnPair"]:
    """A file and its own columns, where they are written behind its name, as in a.csv:from,to.

    >>> with_columns(Path("a.csv:payer,payee"), None), with_columns(Path("a.csv"), (0, 1))
    ((PosixPath('a.csv'), ('payer', 'payee')), (PosixPath('a.csv'), (0, 1)))
    """
    name, colon, own = file.name.rpartition(":")
    if not colon or "," not in own or file.exists():
        return file, columns
    return file.with_name(name), column_pair(own)
