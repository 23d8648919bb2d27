"""No silent wait: refusals of proposals that cannot be stored, what is waited for, limits."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from silograph.cli.app import app
from silograph.errors import AbortedError, TransportError
from silograph.ledger.book import Ledger
from silograph.methods.study import Study
from silograph.nats import coordinator, faultpoints, silo
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.health import ProgressFile, SiloProgress, StudyProgress
from silograph.nats.silo import SiloService
from silograph.party.config import SiloConfig
from silograph.party.keys import load_identity, new_identity
from silograph.party.opened import open_store
from silograph.party.roster import read_roster, write_roster
from tests.nats.world import ask, serving, trial, until
from tests.support.local_deployment import HUB, LocalDeployment, Terms

QUESTION = Question("edges", 3.0)
SECOND = "silo-2"


def begun(folder: Path, terms: Terms | None = None, **more: Any) -> LocalDeployment:
    made = trial(folder, terms, **more)
    made.broker.start()
    return made


@pytest.fixture
def made(tmp_path: Path) -> Iterator[LocalDeployment]:
    deployment = begun(tmp_path, tls=False)
    yield deployment
    deployment.broker.stop()


def log_of(made: LocalDeployment, name: str) -> list[dict[str, Any]]:
    path = made.silo(name).state / "log.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


async def refused(made: LocalDeployment, service: SiloService, names: list[str]) -> str:
    """What the coordinator says of a study that one service cannot take."""
    stop = asyncio.Event()
    async with serving(made, names):
        task = asyncio.create_task(service.serve(stop))
        try:
            with pytest.raises(AbortedError) as caught:
                await ask(made, QUESTION, 30.0)
        finally:
            stop.set()
            await task
            service.close()
    return str(caught.value)


class TestAnswered:
    """A proposal that is not stored is refused by a signed notice, and not dropped."""

    def test_a_wrong_clock(self, made: LocalDeployment) -> None:
        service = SiloService(made.silo(SECOND), clock=lambda: time.time() + 86_400)
        said = asyncio.run(refused(made, service, ["silo-1", "silo-3"]))
        assert "silo-2 refused the study: its clock is +86400 s off the broker's (clock)" in said
        assert "in phase" in said

    def test_a_wrong_clock_of_the_coordinator(self, made: LocalDeployment) -> None:
        async def run() -> None:
            hub = CoordinatorService(made.coordinator(), clock=lambda: time.time() - 86_400)
            try:
                async with serving(made):
                    await hub.carry(hub.propose(QUESTION, 30.0).study.run)
            finally:
                hub.close()

        with pytest.raises(AbortedError, match="its deadline had passed when it came"):
            asyncio.run(run())

    def test_another_roster(self, made: LocalDeployment) -> None:
        path = made.folder / "roster.toml"
        newer = read_roster(path).rotate(
            "silo-3", new_identity(made.folder / "new.key").public, date(2031, 1, 1)
        )
        for name in (HUB, "silo-1", SECOND, "new"):
            newer = newer.sign(load_identity(made.folder / f"{name}.key"))
        write_roster(made.folder / "newer.toml", newer)
        config = replace(made.silo(SECOND), roster=made.folder / "newer.toml")
        said = asyncio.run(refused(made, SiloService(config), ["silo-1", "silo-3"]))
        assert "silo-2 refused the study: it has another roster" in said
        assert "(roster)" in said

    def test_too_many_studies(self, made: LocalDeployment, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(silo, "_MOST_OPEN", 0)
        said = asyncio.run(refused(made, SiloService(made.silo(SECOND)), ["silo-1"]))
        assert "(busy)" in said
        for name in ("silo-1", SECOND):
            store = open_store(made.silo(name))
            assert store.runs() == []
            store.close()


def test_another_partys_certificate_ends_the_start(tmp_path: Path) -> None:
    made = begun(tmp_path)
    told: list[str] = []
    config = made.silo("silo-1")
    service = SiloService(
        replace(config, broker=replace(config.broker, tls=made.tls_files(SECOND)))
    )
    try:
        with pytest.raises(TransportError, match="must be the certificate of silo-1") as caught:
            asyncio.run(asyncio.wait_for(service.serve(asyncio.Event(), told.append), 20))
        assert (caught.value.lasting, told) == (True, [])
    finally:
        service.close()
        made.broker.stop()


def test_a_coordinator_that_can_no_longer_be_reached_says_so(tmp_path: Path) -> None:
    """The broker's operator takes its inbox away in the middle of a study, which stays open."""
    made = begun(tmp_path)
    users = made.folder / "broker" / "users.conf"

    async def run() -> None:
        hub = CoordinatorService(made.coordinator())
        name = hub.propose(QUESTION, 60.0).study.run
        carrying = asyncio.create_task(hub.carry(name))
        await until("it is carried", 15, lambda: hub.progress(name) is not None)
        users.write_text(users.read_text().replace(f"_INBOX_{HUB}", "_INBOX_gone"))
        os.kill(made.broker.pid, signal.SIGHUP)
        with pytest.raises(TransportError, match="not use the subjects of hub"):
            await asyncio.wait_for(carrying, 15)
        assert [row.state for _, row in hub.studies()] == ["open"]
        hub.close()

    try:
        asyncio.run(run())
    finally:
        made.broker.stop()


def test_trouble_is_told_to_those_who_look_from_another_process(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path, "run")
    progress = StudyProgress("run", "keys", [SiloProgress("a", "keys", 3)])
    file.note(progress)
    progress.trouble = "its disk is full"
    file.note(progress)  # at once, although nothing else has changed
    found = file.read()
    assert found is not None
    assert found.awaited == "the broker: its disk is full"


def test_serving_is_said_when_it_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before that, the cause why not."""
    monkeypatch.setattr(silo, "_SILENT_SECONDS", 0.5)
    made = trial(tmp_path, tls=False)
    told: list[str] = []

    async def run() -> None:
        service, stop = SiloService(made.silo("silo-1")), asyncio.Event()
        task = asyncio.create_task(service.serve(stop, told.append))
        await until("a cause", 10, lambda: told)
        assert "nothing listens on this port" in told[0]
        await asyncio.to_thread(made.broker.start)
        await until("serving", 10, lambda: told[-1] == "serving")
        made.broker.stop()
        await until("its loss", 10, lambda: "nothing listens" in str(service.health().trouble))
        stop.set()
        await task
        service.close()

    asyncio.run(run())
    assert len(told) == 2
    (lost,) = (line for line in log_of(made, "silo-1") if line["event"] == "broker.lost")
    assert "nothing listens on this port" in lost["reason"]


class TestWaiting:
    def test_what_a_study_waits_for(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """One has to decide, one is not there: both are named, on both sides."""
        monkeypatch.setattr(coordinator, "_LOOK_SECONDS", 0.1)
        made = begun(tmp_path, Terms(accept="ask"), tls=False)
        try:
            said = asyncio.run(self._watch(made))
        finally:
            made.broker.stop()
        assert "silo-1: its operator has to decide" in said
        assert "silo-2: it has not answered: is its service running?" in said
        assert "the study's deadline has passed; waiting for " in said

    async def _watch(self, made: LocalDeployment) -> str:
        hub, seen = CoordinatorService(made.coordinator()), []
        run = hub.propose(QUESTION, 3.0).study.run

        def watch(progress: StudyProgress) -> None:
            seen.append({one.name: one.waiting for one in progress.silos})

        async with serving(made, ["silo-1"]) as services:
            carrying = asyncio.create_task(hub.carry(run, watch))
            await until("undecided", 10, lambda: seen and "decide" in seen[-1]["silo-1"])
            (told,) = services["silo-1"].health().status()["runs"]
            assert "waits for your decision" in told["waiting"]
            with pytest.raises(AbortedError) as caught:
                await carrying
        ((_, row),) = hub.studies()
        hub.close()
        assert (row.state, row.code) == ("aborted", "deadline")
        return str(caught.value)

    def test_those_who_are_behind_are_awaited(self) -> None:
        silos = [SiloProgress("a", "keys", 3), SiloProgress("b", "keys", 2)]
        progress = StudyProgress("r", "keys", silos)
        assert progress.awaited == "b: its next message is awaited, in phase 'keys'"
        assert silos[0].waiting == "waits for b"
        silos[1].messages = 3
        assert progress.awaited == "a: at work; b: at work"
        progress.trouble = "no broker"
        assert progress.awaited == "the broker: no broker"

    def test_a_silo_names_its_wait_in_the_log(
        self, made: LocalDeployment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(silo, "_SILENT_SECONDS", 0.1)

        async def run() -> None:
            async with serving(made, ["silo-1"]) as services:
                hub = CoordinatorService(made.coordinator())
                run = hub.propose(QUESTION, 20.0).study.run
                carrying = asyncio.create_task(hub.carry(run))
                await until("a wait", 10, lambda: "run.waiting" in str(log_of(made, "silo-1")))
                (told,) = services["silo-1"].health().status()["runs"]
                assert told["waiting"] == "waits for hub"
                hub.request_abort(run)
                with pytest.raises(AbortedError, match="ended by the operator"):
                    await carrying
                hub.close()

        asyncio.run(run())
        line = next(line for line in log_of(made, "silo-1") if line["event"] == "run.waiting")
        assert (line["kind"], line["party"]) == ("message", HUB)


def test_an_abort_names_the_silo_and_the_phase(tmp_path: Path) -> None:
    made = begun(tmp_path, Terms(study=1.0), tls=False)
    for name in ("silo-1", SECOND):
        other = made.silo_file(name)
        other.write_text(other.read_text().replace("epsilon = 1.0\n", "epsilon = 9.0\n"))

    async def run() -> None:
        async with serving(made):
            with pytest.raises(
                AbortedError, match=r"silo-3 refused the study \(policy\), in phase '"
            ):
                await ask(made, QUESTION)
            await until("its end", 10, lambda: "run.blamed" in str(log_of(made, "silo-1")))

    try:
        asyncio.run(run())
    finally:
        made.broker.stop()
    line = next(line for line in log_of(made, "silo-1") if line["event"] == "run.blamed")
    assert (line["party"], line["code"]) == ("silo-3", "refused")
    assert line["phase"]


class TestDead:
    """A study whose deadline has passed waits for nobody."""

    def test_at_the_coordinator(self, tmp_path: Path) -> None:
        made = trial(tmp_path, tls=False)
        hub = CoordinatorService(made.coordinator())
        hub.propose(QUESTION, 50.0)
        assert [row.state for _, row in hub.studies()] == ["open"]
        hub.close()
        later = CoordinatorService(made.coordinator(), clock=lambda: time.time() + 60)
        assert [(row.state, row.code) for _, row in later.studies()] == [("aborted", "deadline")]
        later.close()

    def test_at_a_silo(self, tmp_path: Path) -> None:
        made = trial(tmp_path, tls=False)
        proposals = stored(made, [QUESTION, QUESTION], seconds=[-60.0, 60.0])
        store = open_store(made.silo("silo-1"))
        for study, raw in proposals:
            store.add(study.run, raw)
        store.close()
        words = ["silo", "studies", "-c", str(made.silo_file("silo-1"))]
        found = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)
        assert [one["waits"] for one in found] == [False, True]
        shown = CliRunner().invoke(app, words, env={"COLUMNS": "160"}).output
        assert (shown.count("too"), shown.count("waits")) == (1, 1)  # words may be wrapped


def stored(
    made: LocalDeployment, questions: list[Question], seconds: list[float]
) -> list[tuple[Study, bytes]]:
    """Proposals whose deadlines are so many seconds from now."""
    found = []
    for question, left in zip(questions, seconds, strict=True):
        hub = CoordinatorService(made.coordinator(), clock=lambda left=left: time.time() + left - 5)
        study = hub.propose(question, 5.0).study
        found.append((study, hub._store.run(study.run).proposal))  # type: ignore[union-attr]
        hub.close()
    return found


def test_stored_proposals_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old ones that cost nothing are forgotten first; then new ones are refused."""
    made = trial(tmp_path, Terms(study=1.0), tls=False)
    dead, first, second = stored(made, [QUESTION] * 3, [-60.0, 60.0, 60.0])
    service = SiloService(made.silo("silo-1"))
    service._link = object()  # type: ignore[assignment]
    service._store.add(dead[0].run, dead[1])
    service._store.end(dead[0].run, "refused", "policy")
    size = len(first[1]) + len(dead[1]) // 2
    monkeypatch.setattr(silo, "_MOST_STORED", size)
    service._consider(first[1])
    assert [run.run for run in service._store.runs()] == [first[0].run]
    with pytest.raises(silo.BusyError, match="bytes are stored"):
        service._consider(second[1])
    service.close()


def test_a_changed_policy_holds_for_runs_that_have_not_spent(made: LocalDeployment) -> None:
    """It was accepted; then the service was stopped, and its policy became stricter."""
    moments: list[str] = []

    async def run() -> None:
        asked = asyncio.create_task(ask(made, QUESTION, 20.0))
        with faultpoints.hooked(moments.append):
            async with serving(made, ["silo-1"]):
                await until("accepted", 15, lambda: "silo.accepted" in moments)
        path = made.silo_file("silo-1")
        path.write_text(path.read_text().replace("epsilon = 10.0\n", "epsilon = 1.0\n"))
        async with serving(made):
            with pytest.raises(AbortedError, match=r"silo-1 aborted the study \(policy\)"):
                await asked

    asyncio.run(run())
    assert isinstance(made.silo("silo-1"), SiloConfig)
    with Ledger(made.silo("silo-1").ledger.path) as ledger:
        assert ledger.rows() == []
