"""``silograph study``: propose, watch, read and abort studies."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from silograph import whole_files
from silograph.cli.exits import FINE, NO
from silograph.cli.keys import ApproverKey, PassphraseFile, Reason, approver
from silograph.cli.local_run import read_fold
from silograph.cli.options import (
    Collusion,
    Delta,
    Epsilon,
    FoldNodes,
    Force,
    GroupFile,
    HubList,
    Json,
    K,
    Protocol,
    check_groups,
    one_of,
)
from silograph.cli.output import check_output, echo, echo_json, note
from silograph.dp.loss import shown_loss
from silograph.errors import AbortedError, ArgumentError, StoreError
from silograph.estimators.groups import Groups
from silograph.graph.attributes import read_groups
from silograph.methods.catalogue import GROUPED, METHODS, QUERIES
from silograph.methods.sealed.method import group_options
from silograph.methods.sealed.noise import NOISE_DELTA
from silograph.methods.study import RELEASE, Option, option_value
from silograph.party.config import CoordinatorConfig

if TYPE_CHECKING:
    from silograph.nats.coordinator import CoordinatorService, StudyProgress
    from silograph.nats.preflight import Answer

__all__ = ["answer_rows", "app"]

app = typer.Typer(help="Ask silos a question, and read the answer.", no_args_is_help=True)
console = Console(highlight=False)
#: A wait is named after so many seconds.
_SILENT_SECONDS = 5.0
#: How long the services have to answer a ping.
_PING_SECONDS = 15.0

Config = Annotated[Path, typer.Option("--config", "-c", help="The coordinator's configuration.")]
RunId = Annotated[str, typer.Argument(help="A run id, or the beginning of it.", show_default=False)]


@app.command()
def propose(
    query: Annotated[
        str,
        typer.Argument(
            help=f"What to count: {', '.join(QUERIES)}; with --groups and --method sealed "
            f"{', '.join(GROUPED)}; or release, which answers all of them, or finds hubs.",
            show_default=False,
            autocompletion=one_of((*QUERIES, *GROUPED, RELEASE)),
        ),
    ],
    config: Config,
    epsilon: Epsilon,
    method: Annotated[
        str, typer.Option(help=f"{', '.join(METHODS)}.", autocompletion=one_of(METHODS))
    ] = "feat",
    protocol: Protocol = None,
    k: K = None,
    delta: Delta = None,
    collusion: Collusion = 1,
    purpose: Annotated[
        str,
        typer.Option(
            help="What the study is for; the silos' operators read it.", show_default=False
        ),
    ] = "",
    silos: Annotated[
        list[str] | None,
        typer.Option("--silo", help="Only use this silo. May be repeated."),
    ] = None,
    fold: FoldNodes = None,
    hubs: HubList = None,
    groups: GroupFile = None,
    members: Annotated[
        str,
        typer.Option(
            help="The four members of the committee, as a,b,c,d: silos of the study, helpers or "
            "the coordinator. Without it, protocol committee and method sealed take the first that "
            "fit.",
            show_default=False,
        ),
    ] = "",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="An option of the method, as name=value. May be repeated."),
    ] = None,
    minutes: Annotated[float, typer.Option(help="Minutes until the deadline.", min=0.01)] = 60.0,
    ask_first: Annotated[
        bool,
        typer.Option("--ping", help="First ask all parties how they are; propose if all is well."),
    ] = False,
    detach: Annotated[
        bool,
        typer.Option("--detach", help="Only store the study; run it later with watch."),
    ] = False,
    key: ApproverKey = None,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Propose a study to the silos of the roster, and run it to its end."""
    from silograph.nats.coordinator import Question  # noqa: PLC0415

    check_groups(query, method, groups)
    only, options = tuple(silos or ()), _options(option or [])
    question = Question(
        query, epsilon, method, protocol, k, delta, collusion, only, options, purpose,
        tuple(name.strip() for name in members.split(",")) if members else (),
        read_fold(fold, hubs, listed=True),
    )  # fmt: skip
    service = _service(config)
    try:
        if groups is not None:
            universe = service.party.universe
            named = group_options(Groups.of(read_groups(groups, universe), universe))
            question = replace(question, options={**options, **named})
        if ask_first:
            answers = asyncio.run(service.ping(_PING_SECONDS))
            if not all(answer.ok for answer in answers):
                for answer in answers:
                    note(_line_of(answer))
                raise AbortedError("not proposed: not all parties are well", code="ping")
        plan = service.propose(question, 60 * minutes, approver(key, passphrase_file))
        run = plan.study.run
        for words in (plan.advice, plan.assumes, _delta_note(plan.delta)):
            if words:
                note(words)
        if detach:
            if as_json:
                echo_json({"run": run})
            else:
                echo(run)
            return
        _carry(service, run, as_json)
    finally:
        service.close()


def _delta_note(delta: float) -> str:
    """What the silos' operators must have allowed; they refuse with a code and no reason."""
    if not delta:
        return ""
    advice = "; --delta 0 asks for noise that needs none" if delta <= NOISE_DELTA else ""
    return f"δ = {shown_loss(delta)}: every silo's policy and ledger must allow it{advice}"


@app.command()
def watch(run: RunId, config: Config, as_json: Json = False) -> None:
    """Continue a study that is not finished, and show the progress of every silo."""
    service = _service(config)
    try:
        _carry(service, service.find(run)[0].run, as_json)
    finally:
        service.close()


@app.command()
def result(
    run: RunId,
    config: Config,
    as_json: Json = False,
    release: Annotated[
        Path | None, typer.Option(help="Copy the release to this file.", show_default=False)
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page about the answer to this file.", show_default=False),
    ] = None,
    force: Force = False,
) -> None:
    """Show the answer of a finished study."""
    service = _service(config)
    try:
        found = service.result(run)
        if html is not None:
            from silograph.page import save_page  # noqa: PLC0415 - needs the extra

            check_output(html, [], force=force)
            save_page(service.answer(run), html)
    finally:
        service.close()
    if release is not None:
        if found["release"] is None:
            raise StoreError("this method leaves no release")
        check_output(release, [Path(found["release"])], force=force)
        content = Path(found["release"]).read_bytes()
        whole_files.replace(release, content, StoreError, mode=0o644)
    _show(found, as_json)


@app.command()
def abort(
    run: RunId,
    config: Config,
    key: ApproverKey = None,
    reason: Reason = "",
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """End a study for all parties. Budget that silos have spent stays spent."""
    service = _service(config)
    try:
        service.request_abort(run, approver(key, passphrase_file), reason)
        study = service.find(run)[0]
        try:
            asyncio.run(service.carry(study.run))
        except StoreError:
            end = "the process that runs it will end it"
        except AbortedError:
            end = "ended for all"
        else:
            end = "it already had its answer"
    finally:
        service.close()
    if as_json:
        echo_json({"run": study.run, "end": end})
    else:
        echo(f"{study.run[:12]}: {end}")


@app.command("ping")
def ping_(
    config: Config,
    seconds: Annotated[
        float, typer.Option(help="How long to wait for answers.", min=0.1, max=600.0)
    ] = _PING_SECONDS,
    as_json: Json = False,
) -> None:
    """Ask the services of all parties how they are. This costs no budget.

    The exit code is 1 if a party does not answer or if something is wrong with it.
    """
    service = _service(config)
    try:
        answers = asyncio.run(service.ping(seconds))
    finally:
        service.close()
    if as_json:
        echo_json([_plain_answer(answer) for answer in answers])
    else:
        for answer in answers:
            echo(_line_of(answer))
    raise typer.Exit(FINE if all(answer.ok for answer in answers) else NO)


def _line_of(answer: "Answer") -> str:
    """What a party has answered, in one line."""
    said, facts = answer.notice, ""
    if said is not None:
        clock = "unknown" if said.offset is None else f"{said.offset:+.1f} s"
        facts = f"version {said.version}, clock {clock}, "
    state = "ok" if answer.ok else "failed"
    line = "; ".join(answer.wrong) or f"answered in {answer.seconds:.2f} s"
    return f"{state:8}{answer.name:16}{facts}{line}"


def _plain_answer(answer: "Answer") -> dict[str, Any]:
    said = answer.notice
    return {
        "name": answer.name, "role": answer.role, "ok": answer.ok, "wrong": answer.wrong,
        "seconds": answer.seconds,
        "version": said and said.version, "clock": said and said.offset,
        "failed": list(said.failed) if said else [],
    }  # fmt: skip


@app.command("list")
def list_(config: Config, as_json: Json = False) -> None:
    """List all studies that were proposed here."""
    service = _service(config)
    try:
        found = service.studies()
    finally:
        service.close()
    if as_json:
        rows = [{"run": s.run, "query": s.query, "state": r.state, "code": r.code}
                for s, r in found]  # fmt: skip
        echo_json(rows)
        return
    table = Table("run", "query", "method", "ε", "state")
    for study, row in found:
        state = f"{row.state} {row.code}".strip()
        table.add_row(study.run[:12], study.query, study.how, shown_loss(study.epsilon), state)
    console.print(table)


def _options(given: list[str]) -> dict[str, Option]:
    """Read options as ``name=value``; a value is a boolean, a number or otherwise text."""
    made: dict[str, Option] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name in made:
            raise ArgumentError(f"{text!r}: an option must be name=value, with each name once")
        made[name] = option_value(value)
    return made


def _service(config: Path) -> "CoordinatorService":
    from silograph.nats.coordinator import CoordinatorService  # noqa: PLC0415

    return CoordinatorService(CoordinatorConfig.read(config))


def _carry(service: "CoordinatorService", run: str, as_json: bool) -> None:
    if as_json or not console.is_terminal:
        _show(asyncio.run(service.carry(run, _reminder())), as_json)
        return
    with Live(console=console, refresh_per_second=8, transient=True) as live:
        found = asyncio.run(service.carry(run, _painter(live, run)))
    _show(found, as_json)


def _reminder() -> "Callable[[StudyProgress], None]":
    """Where nothing can be painted: a note when nothing moves, once for each reason."""
    said, stuck = "", False

    def remind(progress: "StudyProgress") -> None:
        nonlocal said, stuck
        if stuck and not progress.trouble:  # the same again is news
            said = ""
        stuck = bool(progress.trouble)
        still = time.monotonic() - progress.moved
        if (stuck or still > _SILENT_SECONDS) and progress.awaited != said:
            said = progress.awaited
            note(f"waiting for {said}")

    return remind


def _painter(live: Live, run: str) -> "Callable[[StudyProgress], None]":
    def paint(progress: "StudyProgress") -> None:
        share = progress.done / progress.total if progress.total else 0.0
        table = Table(title=f"study {run[:12]}: {progress.phase}, {share:.0%}")
        for name in ("silo", "phase", "messages", "MB", "waiting"):
            table.add_column(name, justify="right" if name in ("messages", "MB") else "left")
        for silo in progress.silos:
            size = f"{silo.bytes / 1e6:,.1f}"
            waiting = progress.trouble or silo.waiting
            table.add_row(silo.name, silo.phase, f"{silo.messages:,}", size, waiting)
        live.update(table)

    return paint


def _show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        echo_json(found)
        return
    study, sizes = found["study"], found["bytes"]
    table = Table(show_header=False, box=None)
    for name, content in (
        *answer_rows(found["answer"]),
        ("method", f"{study['method']} {found['protocol']}, {len(study['silos'])} silos"),
        *((f"ε, {view['name']}", _loss(view)) for view in found["views"]),
        ("took", f"{found['seconds']:.1f} s, {(sizes['received'] + sizes['sent']) / 1e6:,.1f} MB"),
        ("release", found["release"] or "none: this method leaves no release"),
        ("run", study["run"]),
    ):
        table.add_row(name, content)
    console.print(table)


def answer_rows(answer: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return a row for the answer, or no row if the study asked for a release."""
    if answer is None:
        return []
    value = answer["value"]
    if isinstance(value, list):
        return [(answer["query"], f"{len(value)} values; --json shows them")]
    low, high = answer["interval"]
    text = f"{value:,.1f} ± {answer['stderr']:,.1f}  (95 %: {low:,.1f} to {high:,.1f})"
    return [(answer["query"], text)]


def _loss(view: dict[str, Any]) -> str:
    return shown_loss(view["epsilon"]) + ("" if view["claimed"] else " (not claimed)")
