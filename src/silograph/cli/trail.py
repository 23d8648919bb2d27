"""``silograph trail``: reading a party's audit trail."""

import json
import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from silograph.cli.options import Json
from silograph.cli.output import echo, echo_json, note
from silograph.errors import ArgumentError
from silograph.party.approval import check_votes, votes_of
from silograph.party.config import read_config
from silograph.party.store import Store
from silograph.party.trail import Mark, Trail

__all__ = ["app"]

app = typer.Typer(help="Show and verify a party's audit trail.", no_args_is_help=True)

File = Annotated[
    Path | None, typer.Argument(help="A state store, instead of --config.", show_default=False)
]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="The party's configuration file.", show_default=False),
]
_MARK = re.compile(r"([0-9]{1,12}):([0-9a-f]{64})")


@contextmanager
def _trail(file: Path | None, config: Path | None) -> Iterator[tuple[Path, Trail]]:
    if (file is None) == (config is None):
        raise ArgumentError("say whose trail: --config FILE, or the path of a state store")
    path = file or read_config(config or Path()).store
    store = Store(path, None)
    try:
        yield path, Trail(store)
    finally:
        store.close()


@app.command("show")
def show(
    file: File = None,
    config: Config = None,
    run: Annotated[str | None, typer.Option(help="Of one run.", show_default=False)] = None,
    event: Annotated[
        str | None, typer.Option(help="Of one event, or of all that begin so.", show_default=False)
    ] = None,
    last: Annotated[int, typer.Option("-n", help="The last so many; 0 is all.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Show entries, oldest first, checking that each follows the one before it."""
    with _trail(file, config) as (_, trail):
        found = (
            entry
            for entry in trail.entries()
            if (run is None or entry.get("run") == run)
            and (event is None or f"{entry['event']}.".startswith(f"{event.rstrip('.')}."))
        )
        for entry in deque(found, last) if last else found:
            if as_json:
                typer.echo(json.dumps(entry))  # one whole line each, also on a terminal
            else:
                echo(_line(entry))


def _line(entry: dict[str, Any]) -> str:
    head = ("number", "time", "event", "chain")
    fields = " ".join(f"{key}={value}" for key, value in entry.items() if key not in head)
    text = f"{entry['time'][:19].replace('T', ' ')} {entry['event']} {fields}"
    # A trail that was tampered with may hold what a terminal would obey.
    return "".join(c if c.isprintable() else "�" for c in text)


@app.command("verify")
def verify(
    file: File = None,
    config: Config = None,
    mark: Annotated[
        str | None,
        typer.Option(help="NUMBER:CHAIN of an entry that was noted elsewhere.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Follow the chain through all entries, and check the signatures of people's decisions.

    With --mark, see that nothing was cut off before it. With --config, decisions are named whose
    keys are not enrolled there now.
    """
    known = None if mark is None else _mark(mark)
    people = () if config is None else read_config(config).approvers
    with _trail(file, config) as (path, trail):
        head = trail.verify(known)
        strangers = check_votes(trail, people)
        signed = sum(vote.signed for vote in votes_of(trail))
    if as_json:
        others = sorted({vote.by for vote in strangers}) if config else []
        echo_json({"path": str(path), "entries": head.number, "mark": str(head),
                   "signed": signed, "not_enrolled": others})  # fmt: skip
        return
    decisions = f", {signed} signed decisions" if signed else ""
    echo(f"{path}: whole, {head.number} entries{decisions}\nmark {head}")
    for vote in strangers if config else ():
        note(f"run {vote.run[:12]}: the key of {vote.by} is not enrolled in {config} now")


def _mark(text: str) -> Mark:
    found = _MARK.fullmatch(text)
    if found is None:
        raise ArgumentError(f"{text[:80]!r} is not a mark: NUMBER:CHAIN")
    return Mark(int(found[1]), found[2])
