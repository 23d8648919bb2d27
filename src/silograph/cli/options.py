"""Options and arguments that several commands share, so that each has one name and one meaning."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from silograph.dp.loss import check_delta, check_epsilon
from silograph.errors import ArgumentError
from silograph.methods.catalogue import METHODS, QUERIES
from silograph.methods.catalogue import TRUST as TRUSTS
from silograph.methods.study import PROTOCOLS

if TYPE_CHECKING:
    from silograph.graph.convert import Columns as ColumnPair

__all__ = [
    "BUDGET",
    "FILES",
    "OUTPUT",
    "Case",
    "Collusion",
    "Columns",
    "Delta",
    "Epsilon",
    "Files",
    "Force",
    "Format",
    "Header",
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
    "Strip",
    "Trust",
    "check_question",
    "column_pair",
    "one_of",
]


#: Groups of options on a help page.
FILES, BUDGET, OUTPUT = "Edge files", "Budget", "Output"


def one_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Completes any of these names in a shell."""
    known = list(names)
    return lambda incomplete: [name for name in known if name.startswith(incomplete)]


Query = Annotated[
    str,
    typer.Argument(
        help=f"What to count: {', '.join(QUERIES)}.",
        show_default=False,
        autocompletion=one_of(QUERIES),
    ),
]
Files = Annotated[
    list[Path],
    typer.Argument(
        help="Edge files, one a silo: CSV, TSV, white space (each also .gz) or Parquet.",
        show_default=False,
    ),
]
Epsilon = Annotated[
    float,
    typer.Option(
        help="The privacy budget: the most that an edge may lose.",
        show_default=False,
        callback=check_epsilon,
    ),
]
Delta = Annotated[
    float,
    typer.Option(help="Allow this δ, where a method can use it.", callback=check_delta),
]
K = Annotated[
    int | None, typer.Option("--k", help="Leaves of a star, for kstars.", show_default=False)
]
Collusion = Annotated[
    int, typer.Option(help="Silos that may pool what they know with the coordinator.")
]
Method = Annotated[
    str,
    typer.Option(
        help=f"{', '.join(METHODS)}, or auto: the best that your trust allows.",
        autocompletion=one_of(("auto", *METHODS)),
    ),
]
Protocol = Annotated[
    str,
    typer.Option(
        help=f"How the union is made: {', '.join(PROTOCOLS)}.", autocompletion=one_of(PROTOCOLS)
    ),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        help=f"What you are ready to assume: {', '.join(TRUSTS)}; again for more.",
        show_default=False,
        autocompletion=one_of(TRUSTS),
    ),
]
LikeGraph = Annotated[
    Path | None,
    typer.Option(help="A public edge file of a similar graph, for numbers.", show_default=False),
]
LikeRelease = Annotated[
    Path | None,
    typer.Option(help="A past release of this graph, for numbers.", show_default=False),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        envvar="SILOGRAPH_LEDGER",
        help="The ledger that records the spend, and refuses what passes a limit in it.",
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
        help="The ledger, which has limits, does not know this dataset yet.",
        rich_help_panel=BUDGET,
    ),
]
Nodes = Annotated[
    Path | None,
    typer.Option(
        help="The public node list that all have agreed on.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
NodeColumn = Annotated[
    str | None,
    typer.Option(
        help="The column of the node list, where it has several: a name or a position from 0.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="The two columns of an edge: names or positions from 0, as in payer,payee.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        help="csv, tsv, whitespace or parquet, where names do not tell.",
        show_default=False,
        autocompletion=one_of(("csv", "tsv", "whitespace", "parquet")),
        rich_help_panel=FILES,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line is one.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
Strip = Annotated[
    bool,
    typer.Option("--strip", help="Remove white space around ids.", rich_help_panel=FILES),
]
Case = Annotated[
    Literal["lower", "upper"] | None,
    typer.Option(help="Write all ids in one case.", show_default=False, rich_help_panel=FILES),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace a file that is there.", rich_help_panel=OUTPUT),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)]


def check_question(query: str, k: int | None, method: str = "auto") -> None:
    """Refuse, before any file is read, what nobody answers."""
    if query not in QUERIES:
        raise ArgumentError(f"unknown query {query!r}; choose from {', '.join(QUERIES)}")
    if query == "kstars" and k is None:
        raise ArgumentError("kstars needs --k, the number of leaves")
    if query != "kstars" and k is not None:
        raise ArgumentError(f"--k is for kstars, not for {query}")
    if method not in ("auto", *METHODS):
        raise ArgumentError(f"unknown method {method!r}; choose from {', '.join(METHODS)}, auto")


def column_pair(text: str | None) -> "ColumnPair":
    """Two columns out of ``A,B``.

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
