"""``silograph ledger``: show, limit, thaw, back up and restore a ledger."""

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from silograph import whole_files
from silograph.cli.options import Json
from silograph.cli.output import echo, echo_json
from silograph.errors import ArgumentError, LedgerError, RollbackError
from silograph.ledger.book import Ledger, Records, Witness

__all__ = ["app"]

app = typer.Typer(help="Show, limit, thaw, back up and restore a ledger.", no_args_is_help=True)

File = Annotated[
    Path, typer.Argument(help="A ledger.", envvar="SILOGRAPH_LEDGER", show_default=False)
]
Seen = Annotated[
    str | None,
    typer.Option(help="A witness of this ledger that was noted earlier.", show_default=False),
]
Lost = list[str] | None


@app.command("show")
def show(path: File, as_json: Json = False) -> None:
    """Show what was spent and what is left of each lineage, and the ledger's witness."""
    with Ledger(path, create=False) as ledger:
        found = ledger.export()
        summary = ledger.summary()
    if as_json:
        echo_json({key: found[key] for key in ("identity", "witness", "lineages", "freezes")})
    else:
        echo(f"{summary}\nwitness {found['witness']}")


@app.command("limit")
def limit(
    path: File,
    lineage: Annotated[str, typer.Argument(help="The dataset's name.", show_default=False)],
    epsilon: Annotated[float, typer.Argument(help="The largest total ε.", show_default=False)],
    delta: Annotated[float, typer.Option(help="The largest total δ.")] = 0.0,
    collusion: Annotated[
        int, typer.Option(help="Count losses against this many colluding silos.", min=0)
    ] = 1,
    new: Annotated[
        bool, typer.Option("--new", help="Create the ledger if it does not exist.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Set the most that may be spent on a lineage in total. Every change is recorded.

    A silo's service never raises a limit: of this one and the one in its configuration, the lower
    holds. To raise a limit, change both.
    """
    with Ledger(path, create=new) as ledger:
        made = ledger.set_limit(lineage, epsilon, delta, collusion)
        left = ledger.remaining(lineage)
    assert left is not None  # noqa: S101 - there is a limit now
    if as_json:
        echo_json({"limit": made.to_dict(), "remaining": left.to_dict()})
    else:
        rest = left.text(left=True)
        echo(f"{lineage}: at most {made.amount()} at t = {made.collusion}; {rest} is left")


@app.command("export")
def export(
    path: File,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write to this new file instead of the screen."),
    ] = None,
) -> None:
    """Export the whole ledger as JSON: every spend, limit and restoration."""
    with Ledger(path, create=False) as ledger:
        text = json.dumps(ledger.export(), indent=1, ensure_ascii=False)
    if output is None:
        typer.echo(text)  # JSON is for programs: folded lines would break it
    else:
        whole_files.create(output, f"{text}\n".encode(), LedgerError)
        echo(str(output))


@app.command("backup")
def backup(
    path: File,
    target: Annotated[Path, typer.Argument(help="The file to create.", show_default=False)],
    keep: Annotated[
        int | None,
        typer.Option(
            help="Then remove all but the newest so many backups in the same folder.",
            min=1,
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Copy the ledger, as it is now, to a new file. Other processes may keep spending."""
    with Ledger(path, create=False) as ledger:
        stood = ledger.backup(target, keep)
    if as_json:
        echo_json({"path": str(target), "entries": stood.serial, "witness": str(stood)})
    else:
        echo(f"{target}: entries 1 to {stood.serial}\nwitness {stood}")


@app.command("restore")
def restore(
    source: Annotated[Path, typer.Argument(help="A backup.", show_default=False)],
    path: Annotated[Path, typer.Argument(help="The ledger to create.", show_default=False)],
    complete: Annotated[
        bool,
        typer.Option(
            "--complete",
            help="State that nothing was spent after the backup but what the audit trail shows.",
        ),
    ] = False,
    lost: Annotated[
        Lost,
        typer.Option(
            help="LINEAGE=EPSILON or LINEAGE=EPSILON,DELTA: the most that may have been spent on "
            "a lineage after the backup, with what the audit trail shows. May be repeated.",
            show_default=False,
        ),
    ] = None,
    close: Annotated[
        bool,
        typer.Option("--close", help="State that this is unknown; nothing more can be spent."),
    ] = False,
    config: Annotated[
        list[Path] | None,
        typer.Option(
            "--config",
            "-c",
            help="The configuration file of the silo whose ledger it was: spends are taken from "
            "its audit trail, and the witness from its state store. Repeated for silos that share "
            "a ledger.",
            show_default=False,
        ),
    ] = None,
    seen: Seen = None,
    as_json: Json = False,
) -> None:
    """Make a ledger from a backup, without giving back what was spent after it.

    With --config, every spend that the silo's audit trail shows after the backup is recorded again.
    State with exactly one of --complete, --lost and --close what else was spent after the backup,
    by other programs that use the ledger. An amount of --lost below what the trail shows is
    refused. Nothing more can be spent on a lineage that --lost does not name.

    A ledger without a silo has no audit trail: give the last known witness with --seen.
    """
    if [complete, bool(lost), close].count(True) != 1:
        raise ArgumentError(
            "say what was spent after the backup, with exactly one of --complete, --lost, --close"
        )
    amounts = _losses(lost)
    witness = None if seen is None else Witness.parse(seen)
    records, last = _records(config or [], witness)
    with Ledger.restore(
        source, path, complete=complete, lost=amounts, seen=last, records=records
    ) as made:
        if as_json:
            found = made.export()
            echo_json({key: found[key] for key in ("identity", "witness", "lineages", "freezes")})
        else:
            echo(f"{made.summary()}\nwitness {made.witness()}")


def _records(configs: Sequence[Path], seen: Witness | None) -> tuple[Records, Witness | None]:
    """What the state stores of silos have recorded of their ledger, and its last known witness."""
    from silograph.party import accounts  # noqa: PLC0415 - loads much, for silos alone
    from silograph.party.config import read_config  # noqa: PLC0415
    from silograph.party.store import Store  # noqa: PLC0415

    found, witnesses = [], [] if seen is None else [seen]
    for config in configs:
        with closing(Store(read_config(config).store, None)) as store:
            found.append(accounts.records_of(store))
            known = accounts.witness_of(store)
        witnesses += [] if known is None else [known]
    if len({witness.identity for witness in witnesses}) > 1:
        raise RollbackError("the witnesses that are known are not of one ledger")
    spends = tuple(spend for records in found for spend in records.spends)
    frozen = max((records.frozen for records in found), default=0)
    last = max(witnesses, key=lambda witness: witness.serial, default=None)
    return Records(spends, frozen), last


@app.command("thaw")
def thaw(
    path: File,
    reason: Annotated[
        str, typer.Option(help="What was found out. It is recorded.", show_default=False)
    ],
    lost: Annotated[
        Lost,
        typer.Option(
            help="LINEAGE=EPSILON or LINEAGE=EPSILON,DELTA: what may have been spent on a lineage "
            "and is not in this ledger. May be repeated.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Allow spending again on a ledger that was frozen.

    A silo's service freezes its ledger when it meets a message that its own key signed and that it
    did not make: its identity is in use on a second machine, or this machine was put back to an
    earlier state. In both cases spends may be missing in this ledger. Find out which, and count
    them with --lost.
    """
    with Ledger(path, create=False) as ledger:
        made = ledger.thaw(reason, _losses(lost))
        if as_json:
            echo_json(made.to_dict())
        else:
            echo(f"{ledger.summary()}\nwitness {ledger.witness()}")


def _losses(texts: Lost) -> dict[str, tuple[float, float]]:
    """The amounts by lineage. Two for one lineage are refused: neither alone may be all of it."""
    found = [_loss(text) for text in texts or []]
    made = dict(found)
    if len(made) != len(found):
        raise ArgumentError("--lost names a lineage twice; give the sum")
    return made


def _loss(text: str) -> tuple[str, tuple[float, float]]:
    lineage, equals, amount = text.rpartition("=")
    epsilon, _, delta = amount.partition(",")
    try:
        if equals:
            return lineage, (float(epsilon), float(delta or 0))
    except ValueError:
        pass
    raise ArgumentError(f"{text[:80]!r} is not LINEAGE=EPSILON or LINEAGE=EPSILON,DELTA")


@app.command("verify")
def verify(path: File, seen: Seen = None, as_json: Json = False) -> None:
    """Check the whole ledger for changed or missing entries.

    With --seen, also check that the ledger still contains the entry of that witness.
    """
    with Ledger(path, create=False) as ledger:
        stood = ledger.verify()
        if seen is not None:
            ledger.check_not_older_than(Witness.parse(seen))
    if as_json:
        echo_json({"path": str(path), "entries": stood.serial, "witness": str(stood)})
    else:
        echo(f"{path}: whole, entries 1 to {stood.serial}\nwitness {stood}")
