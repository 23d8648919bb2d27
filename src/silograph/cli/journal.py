"""``silograph journal``: reading a party's log and audit trail."""

import json
import re
from collections import deque
from pathlib import Path
from typing import Annotated, Any

import typer

from silograph.cli.options import Json
from silograph.cli.terminal import echo_json
from silograph.errors import ArgumentError
from silograph.party.journal import LEVELS, Mark, entries
from silograph.party.journal import verify as verify_journal

__all__ = ["app"]

app = typer.Typer(help="Show and verify a log or an audit trail.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="A journal.", show_default=False)]
_MARK = re.compile(r"([0-9]{1,12}):([0-9a-f]{64})")


@app.command("show")
def show(
    path: File,
    run: Annotated[str | None, typer.Option(help="Of one run.", show_default=False)] = None,
    event: Annotated[
        str | None, typer.Option(help="Of one event, or of all that begin so.", show_default=False)
    ] = None,
    level: Annotated[str, typer.Option(help=f"At least: {', '.join(LEVELS)}.")] = LEVELS[0],
    last: Annotated[int, typer.Option("-n", help="The last so many; 0 is all.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Show lines, oldest first, checking that each follows the one before it."""
    if level not in LEVELS:
        raise ArgumentError(f"a level is one of {', '.join(LEVELS)}")
    wanted = LEVELS[LEVELS.index(level) :]
    found = (
        entry
        for entry in entries(path)
        if entry.get("level") in wanted
        and (run is None or entry.get("run") == run)
        and (event is None or f"{entry.get('event')}.".startswith(f"{event.rstrip('.')}."))
    )
    for entry in deque(found, last) if last else found:
        typer.echo(json.dumps(entry) if as_json else _line(entry))


def _line(entry: dict[str, Any]) -> str:
    head = ("number", "time", "level", "event", "chain")
    fields = " ".join(f"{key}={value}" for key, value in entry.items() if key not in head)
    time = str(entry.get("time"))[:19].replace("T", " ")
    text = f"{time} {entry.get('level')!s:<7} {entry.get('event')} {fields}".rstrip()
    # A journal that was tampered with may hold what a terminal would obey.
    return "".join(c if c.isprintable() else "�" for c in text)


@app.command("verify")
def verify(
    path: File,
    mark: Annotated[
        str | None,
        typer.Option(help="NUMBER:CHAIN of a line that was noted elsewhere.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Follow the chain through all files; with --mark, see that nothing was cut off before it."""
    known = None if mark is None else _mark(mark)
    found = verify_journal(path, known)
    end = f"{found.head.number}:{found.head.chain}"
    if as_json:
        last = found.head.number
        echo_json({"path": str(path), "first": found.first, "last": last, "mark": end})
        return
    before = "" if found.first == 1 else f" (earlier ones were removed, up to {found.first - 1})"
    typer.echo(f"{path}: whole, lines {found.first} to {found.head.number}{before}")
    typer.echo(f"mark {end}")


def _mark(text: str) -> Mark:
    found = _MARK.fullmatch(text)
    if found is None:
        raise ArgumentError(f"{text[:80]!r} is not a mark: NUMBER:CHAIN")
    return Mark(int(found[1]), found[2])
