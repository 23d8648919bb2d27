"""``silograph report``: the page of the reproduction, from results."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from silograph.cli.json_output import echo_json
from silograph.cli.options import Json
from silograph.errors import ArgumentError, ReportError
from silograph.experiments.results import load_all
from silograph.report.reproduction import reproduction_page
from silograph.report.summary import markdown as summary
from silograph.report.verdicts import counted, judge
from silograph.runtime import whole_files

__all__ = ["report"]

console = Console(highlight=False)


def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="What silograph reproduce wrote.", show_default=False),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write.", show_default="DIR/report.html")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write a summary in Markdown.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the page of the reproduction: verdicts, figures, errata; one file, opens offline."""
    page = out or folder / "report.html"
    if markdown == page:
        raise ArgumentError(f"{page}: cannot be both the page and the summary; choose two names")
    found = load_all(folder)
    verdicts = judge(found)
    # Both are made before either is written.
    texts = {page: reproduction_page(found)} | ({markdown: summary(found)} if markdown else {})
    for path, text in texts.items():
        whole_files.replace(path, text.encode(), ReportError, mode=0o644)
    quick = any(results.quick for results in found.values())
    if as_json:
        echo_json(
            {
                "page": str(page),
                "quick": quick,
                "experiments": list(found),
                "verdicts": [verdict.to_dict() for verdict in verdicts],
            }
        )
        return
    shown = Table.grid(padding=(0, 2))
    for verdict in verdicts:
        shown.add_row(verdict.text, verdict.claim.title)
    console.print(shown)
    console.print(f"\n{counted(verdicts)}")
    if quick:
        console.print("[bold]A quick run: this says nothing about the paper.[/]")
    for path in texts:
        console.print(f"{path}", soft_wrap=True, markup=False)
