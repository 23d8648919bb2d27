"""``silograph silo``: serve one silo or helper, check it, and decide about studies."""

import asyncio
import json
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from silograph.cli.exits import FINE, NO
from silograph.cli.keys import ApproverKey, PassphraseFile, Reason, approver
from silograph.cli.options import Json
from silograph.cli.output import echo, echo_json
from silograph.dp.loss import shown_loss
from silograph.errors import ConfigError
from silograph.methods.study import Study, read_proposal
from silograph.party.approval import ACCEPTED, REFUSED, decide
from silograph.party.config import HelperConfig, SiloConfig, read_served
from silograph.party.opened import held, locked, open_store
from silograph.party.store import Run

__all__ = ["app"]

app = typer.Typer(
    help="Serve a silo or a helper to studies, under its own policy.", no_args_is_help=True
)
console = Console(highlight=False)

Config = Annotated[Path, typer.Option("--config", "-c", help="The party's configuration file.")]
#: Held by the service while it runs. ``status`` holds it for a moment.
_LOCK, _LOCK_SECONDS = "service.lock", 0.5
RunId = Annotated[str, typer.Argument(help="A run id, or the beginning of it.", show_default=False)]


@app.command()
def run(config: Config) -> None:
    """Serve until SIGTERM or Ctrl-C. Unfinished runs continue after the next start."""
    given = read_served(config)
    open_store(given).close()
    what = f"a service of this {given.role} is already running"
    with locked(given.state / _LOCK, what, _LOCK_SECONDS):
        asyncio.run(_serve(given))


async def _serve(config: SiloConfig | HelperConfig) -> None:
    from silograph.nats.silo import service_of  # noqa: PLC0415 - needs the extra

    stop = asyncio.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sign, stop.set)
    service = service_of(config)
    for note in service.notes:
        echo(f"{config.name}: {note}")
    echo(f"{config.name}: {service.what}; connecting")
    try:
        await service.serve(stop, lambda line: echo(f"{config.name}: {line}"))
    finally:
        service.close()


@app.command()
def check(config: Config, as_json: Json = False) -> None:
    """Check everything that serving needs: files, ledger, space, the broker and the clock.

    Nothing is created. The exit code is 1 if a check fails; each line says what helps.
    """
    from silograph.nats.preflight import Preflight  # noqa: PLC0415 - needs the extra

    made = Preflight(read_served(config))
    asyncio.run(made.run())
    if as_json:
        checks = [{"name": c.name, "state": c.state, "said": c.said} for c in made.checks]
        echo_json({**made.facts, "ok": made.ok, "checks": checks})
    else:
        for one in made.checks:
            echo(f"{one.state:8}{one.name:14}{' '.join(one.said.split())}")
    raise typer.Exit(FINE if made.ok else NO)


@app.command()
def status(config: Config, as_json: Json = False) -> None:
    """Say whether the service is alive and serves, and what its runs wait for.

    The exit code is 1 if the service is not alive.
    """
    given = read_served(config)
    path = given.state / "status.json"
    try:
        found = json.loads(path.read_bytes())
        age = time.time() - found["time"]
        running = held(given.state / _LOCK)
        line = "connected" if found["connected"] else f"not connected: {found.get('trouble', '')}"
        lines = [
            f"{found['silo']}: {line}, {age:.0f} s ago, pid {found['pid']}",
            *([f"the ledger is {found['ledger']}"] if found.get("ledger") else []),
            *(
                [f"waiting: {found['trouble']}"]
                if found["connected"] and found.get("trouble")
                else []
            ),
            *(
                f"  {run['run'][:16]}  {run['decision']}  {run['phase']}  {run.get('waiting', '')}"
                for run in found["runs"]
            ),
        ]
        if not running:
            lines[0] = f"{found['silo']}: not running: process {found['pid']} has ended"
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise ConfigError(f"{path}: no service has written its status here") from None
    alive = running and age < 60
    if as_json:
        echo_json({"alive": alive, "running": running, **found})
    else:
        console.print("\n".join(lines), markup=False)
    raise typer.Exit(FINE if alive else NO)


@app.command()
def studies(config: Config, as_json: Json = False) -> None:
    """List the studies that were proposed to this party, with decisions and states."""
    found = _studies(read_served(config))
    if as_json:
        echo_json([_plain(study, run) for study, run in found])
        return
    table = Table("run", "query", "method", "ε", "t", "deadline", "decision", "state")
    for study, row in found:
        table.add_row(
            study.run[:12], study.query, study.how,
            shown_loss(study.epsilon), str(study.collusion), _when(study.deadline),
            _decision(study, row), f"{row.state} {row.code}".strip(),
        )  # fmt: skip
    console.print(table)


@app.command()
def approve(
    run: RunId,
    config: Config,
    key: ApproverKey = None,
    reason: Reason = "",
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Accept a study that the policy allows but leaves to people to decide.

    If the configuration enrols approvers, one of them signs with --key and gives a --reason; both
    are kept in the trail. The policy may want several of them.
    """
    _decide(read_served(config), run, ACCEPTED, reason, key, passphrase_file, as_json)


@app.command()
def refuse(
    run: RunId,
    config: Config,
    key: ApproverKey = None,
    reason: Reason = "",
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Refuse a study, or end one that is running. Budget already spent stays spent.

    If the configuration enrols approvers, one of them signs with --key and gives a --reason.
    """
    _decide(read_served(config), run, REFUSED, reason, key, passphrase_file, as_json)


def _decide(
    config: SiloConfig | HelperConfig,
    run: str,
    decision: str,
    reason: str,
    key: Path | None,
    passphrase_file: Path | None,
    as_json: bool,
) -> None:
    person = approver(key, passphrase_file)
    store = open_store(config)
    try:
        done = decide(
            store, config.name, config.policy, config.approvers, run, decision, reason=reason,
            key=person,
        )  # fmt: skip
    finally:
        store.close()
    if as_json:
        echo_json({"run": done.study.run, "decision": done.decision, "missing": done.missing})
    else:
        console.print(f"{done.study.run[:12]}: {done.words}")


def _studies(config: SiloConfig | HelperConfig) -> list[tuple[Study, Run]]:
    store = open_store(config)
    try:
        rows = store.runs()
        return [(study, row) for row in rows if (study := read_proposal(row.proposal))]
    finally:
        store.close()


def _decision(study: Study, row: Run) -> str:
    """Who has decided what, or whether the operator still can."""
    if not row.decision and row.open:
        return "waits for you" if _waits(study, row) else "too late"
    return f"{row.decision} {row.decided_by}".strip()


def _waits(study: Study, row: Run) -> bool:
    """Whether a study waits for its operator; after its deadline nobody waits for it."""
    return row.open and not row.decision and study.deadline > time.time()


def _plain(study: Study, row: Run) -> dict[str, object]:
    return {
        "waits": _waits(study, row),
        "study": json.loads(study.encode()),
        "decision": row.decision,
        "decided_by": row.decided_by,
        "spent": row.spent,
        "phase": row.phase,
        "state": row.state,
        "code": row.code,
    }


def _when(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
