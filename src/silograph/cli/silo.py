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
from rich.markup import escape
from rich.table import Table

from silograph.cli.exits import FINE, NO
from silograph.cli.options import Json
from silograph.cli.output import echo_json
from silograph.dp.loss import shown_loss
from silograph.errors import ConfigError, StudyError, TransportError
from silograph.ledger.book import Ledger
from silograph.methods.study import Study, read_proposal
from silograph.party.config import HelperConfig, SiloConfig, load_silo, read_served
from silograph.party.opened import Party, locked, open_store
from silograph.party.store import Run

__all__ = ["app"]

app = typer.Typer(
    help="Serve a silo or a helper to studies, under its own policy.", no_args_is_help=True
)
console = Console(highlight=False)

Config = Annotated[Path, typer.Option("--config", "-c", help="The party's configuration file.")]
RunId = Annotated[str, typer.Argument(help="A run id, or the beginning of it.", show_default=False)]


@app.command()
def run(config: Config) -> None:
    """Serve until SIGTERM or Ctrl-C. Unfinished runs continue after the next start."""
    given = read_served(config)
    open_store(given).close()
    what = f"a service of this {given.role} is already running"
    with locked(given.state / "service.lock", what):
        asyncio.run(_serve(given))


async def _serve(config: SiloConfig | HelperConfig) -> None:
    from silograph.nats.silo import service_of  # noqa: PLC0415 - needs the extra

    stop = asyncio.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sign, stop.set)
    service = service_of(config)
    console.print(f"{config.name}: {service.what}; serving")
    try:
        await service.serve(stop)
    finally:
        service.close()


@app.command()
def check(config: Config, as_json: Json = False) -> None:
    """Read everything that serving needs, show it, and try to reach the broker."""
    given = read_served(config)
    party = Party(given)
    try:
        found, rows = _checked(given, party)
        reached, said = asyncio.run(_try_broker(given))
    finally:
        party.close()
    if as_json:
        echo_json({**found, "broker": {"reached": reached, "said": said}})
        return
    table = Table(show_header=False, box=None)
    for name, value in (*rows, ("broker", escape(said) if reached else f"[red]{escape(said)}[/]")):
        table.add_row(name, value)
    console.print(table)


def _checked(
    given: SiloConfig | HelperConfig, party: Party
) -> tuple[dict[str, object], list[tuple[str, str]]]:
    """What serving needs, as JSON values and as rows for people."""
    policy, roster = given.policy, party.roster
    found: dict[str, object] = {
        given.role: given.name,
        "key": party.identity.public.hex(),
        "silos": len(roster.silos),
        "helpers": len(roster.helpers),
        "coordinator": roster.coordinator.name,
    }
    rows = [
        (given.role, f"{given.name}, key {party.identity.public.hex()[:16]}…"),
        ("roster", f"{len(roster.silos)} silos, coordinator {roster.coordinator.name}"),
    ]
    if party.has_universe:
        universe = party.universe
        found |= {"nodes": universe.size, "digest": universe.digest}
        rows += [("universe", f"{universe.size_text}, digest {universe.digest[:16]}…")]
    if isinstance(given, SiloConfig):
        ledger = given.ledger
        data = load_silo(given, party.universe)
        with Ledger(ledger.path) as book:
            spent = book.spent(given.data.lineage, ledger.collusion)
        found |= {
            "edges": len(data.silo),
            "left_out": data.outside,
            "lineage": given.data.lineage,
            "spent": spent.to_dict(),
            "limit": {"epsilon": ledger.epsilon, "collusion": ledger.collusion},
        }
        outside = f", {data.outside:,} left out: not in the node list" if data.outside else ""
        limit = shown_loss(ledger.epsilon, left=True)
        rows += [
            ("edges", f"{len(data.silo):,} (seen by nobody else){outside}"),
            ("budget", f"{spent} of ε = {limit} spent on {given.data.lineage!r}"),
        ]
    committee = [member.name for member in policy.committee]
    found |= {
        "methods": list(policy.methods),
        "epsilon": policy.epsilon,
        "accept": policy.accept,
        "committee": committee,
    }
    most = shown_loss(policy.epsilon, left=True)
    rows += [("policy", f"{', '.join(policy.methods)}; ε ≤ {most} per study; {policy.accept}")]
    if committee:
        rows += [("committee", ", ".join(committee))]
    return found, rows


async def _try_broker(config: SiloConfig | HelperConfig) -> tuple[bool, str]:
    from silograph.nats.link import Link  # noqa: PLC0415

    began = time.perf_counter()
    try:
        link = await Link.connect(config.broker, config.name, 5.0)
    except TransportError as error:
        return False, str(error)
    await link.close()
    taken = time.perf_counter() - began
    return True, f"{', '.join(config.broker.urls)}: reached in {taken:.2f} s"


@app.command()
def status(config: Config, as_json: Json = False) -> None:
    """Say whether the service is alive, and show the progress of its runs.

    The exit code is 1 if the service is not alive.
    """
    given = read_served(config)
    path = given.state / "status.json"
    try:
        found = json.loads(path.read_bytes())
        age = time.time() - found["time"]
        line = "connected" if found["connected"] else "not connected"
        lines = [
            f"{found['silo']}: {line}, {age:.0f} s ago, pid {found['pid']}",
            *([f"  waiting: {found['trouble']}"] if found.get("trouble") else []),
            *(f"  {run['run'][:16]}  {run['decision']}  {run['phase']}" for run in found["runs"]),
        ]
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise ConfigError(f"{path}: no service has written its status here") from None
    alive = age < 60
    if as_json:
        echo_json({"alive": alive, **found})
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
            f"{row.decision or 'waits for you'} {row.decided_by}".strip(),
            f"{row.state} {row.code}".strip(),
        )  # fmt: skip
    console.print(table)


@app.command()
def approve(run: RunId, config: Config, as_json: Json = False) -> None:
    """Accept a study that the policy allows but leaves to the operator to decide."""
    _decide(read_served(config), run, "accepted", as_json)


@app.command()
def refuse(run: RunId, config: Config, as_json: Json = False) -> None:
    """Refuse a study, or end one that is running. Budget already spent stays spent."""
    _decide(read_served(config), run, "refused", as_json)


def _decide(config: SiloConfig | HelperConfig, run: str, decision: str, as_json: bool) -> None:
    found = [(study, row) for study, row in _studies(config) if run and study.run.startswith(run)]
    if len(found) != 1:
        raise StudyError(f"{len(found)} studies begin with {run!r}")
    study, row = found[0]
    if not row.open:
        raise StudyError(f"study {study.run[:12]} is over: {row.state}")
    if row.decision and decision == "accepted":
        raise StudyError(f"study {study.run[:12]} is already {row.decision}")
    store = open_store(config)
    try:
        store.decide(study.run, "abort" if row.decision else decision, "operator")
    finally:
        store.close()
    if as_json:
        echo_json({"run": study.run, "decision": decision})
    else:
        console.print(f"{study.run[:12]}: {decision}; the service acts on it")


def _studies(config: SiloConfig | HelperConfig) -> list[tuple[Study, Run]]:
    store = open_store(config)
    try:
        rows = store.runs()
        return [(study, row) for row in rows if (study := read_proposal(row.proposal))]
    finally:
        store.close()


def _plain(study: Study, row: Run) -> dict[str, object]:
    return {
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
