"""Metrics and health of a silo and of a coordinator, while a real study runs."""

import asyncio
import http.client
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from silograph.errors import DeploymentError
from silograph.nats import health
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.health import Health, MetricsBoard
from silograph.nats.silo import SiloService
from silograph.party.opened import locked
from tests.nats.world import ask, serving, trial, until
from tests.support.local_deployment import HUB, LocalDeployment
from tests.support.ports import free_port

QUESTION = Question("edges", 3.0)


@pytest.fixture
def made(tmp_path: Path) -> LocalDeployment:
    return trial(tmp_path)


def give_port(made: LocalDeployment, name: str) -> int:
    """Have a party serve its metrics."""
    path, port = made.folder / f"{name}.toml", free_port()
    path.write_text(path.read_text() + f"\n[metrics]\nport = {port}\n")
    return port


def get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def numbers(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def file_of(made: LocalDeployment, name: str) -> dict[str, float]:
    config = made.coordinator() if name == HUB else made.silo(name)
    return numbers(config.metrics.file.read_text())


def test_a_study_as_both_sides_show_it(
    made: LocalDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_SHOW_SECONDS", 0.1)
    silo, hub = give_port(made, "silo-1"), give_port(made, HUB)
    run = asyncio.run(_study(made, silo, hub))
    for port in (silo, hub):
        with pytest.raises(OSError, match="refused"):
            get(port, "/healthz")
    found = file_of(made, HUB)
    assert found[f'silograph_study_state{{run="{run}",state="done"}}'] == 1
    assert found['silograph_studies_total{method="feat",outcome="done"}'] == 1
    assert found["silograph_runs_active"] == 0
    assert found[f'silograph_study_bytes_total{{direction="in",run="{run}"}}'] > 1000
    assert found[f'silograph_study_bytes_total{{direction="out",run="{run}"}}'] > 500
    assert found[f'silograph_study_seconds{{run="{run}"}}'] > 0
    assert not [name for name in found if "left_seconds" in name or "epsilon" in name]


async def _study(made: LocalDeployment, silo: int, hub: int) -> str:
    """The silos come one after the other: before the broker, without the last, all."""
    service = CoordinatorService(made.coordinator())
    run = service.propose(QUESTION, 20.0).study.run
    async with serving(made, ["silo-1", "silo-2"]):
        await until("the silo's page", 5, lambda: _answers(silo))
        await until("a cause", 5, lambda: _says(silo, "nothing listens", "/healthz"))
        status, said = await asyncio.to_thread(get, silo, "/healthz")
        assert (status, said.startswith("the broker is not reached: tls://")) == (503, True)
        made.broker.start()
        try:
            asked = asyncio.create_task(service.carry(run))
            third = f'silograph_study_silo_phase{{phase="asked",run="{run}",silo="silo-3"}} 1.0'
            await until("two of three", 9, lambda: _moved(hub, "silo-1", "silo-2"))
            _, text = await asyncio.to_thread(get, hub, "/metrics")
            assert third in text
            shown = numbers(text)
            assert 0 < shown[f'silograph_study_left_seconds{{run="{run}"}}'] < 20
            assert shown[f'silograph_study_state{{run="{run}",state="open"}}'] == 1
            assert shown["silograph_runs_active"] == 1
            assert (await asyncio.to_thread(get, hub, "/healthz")) == (200, "ok\n")
            await until("well", 5, lambda: _says(silo, "ok", "/healthz"))
            shown = numbers((await asyncio.to_thread(get, silo, "/metrics"))[1])
            assert shown['silograph_epsilon_limit{lineage="trial"}'] == 100
            expiry = datetime.fromtimestamp(shown["silograph_certificate_expiry_seconds"], UTC)
            assert expiry > datetime.now(UTC) + timedelta(days=7)
            async with serving(made, ["silo-3"]):
                await asked
                await until("the spend", 5, lambda: _says(silo, 'outcome="done"} 1'))
        finally:
            made.broker.stop()
    service.close()
    found = file_of(made, "silo-1")
    assert 0 < found['silograph_epsilon_spent{lineage="trial"}'] <= 3
    assert found['silograph_messages_total{direction="in"}'] > 1
    return run


def _answers(port: int) -> bool:
    try:
        return bool(get(port, "/healthz"))
    except OSError:
        return False


def _says(port: int, what: str, path: str = "/metrics") -> bool:
    return _answers(port) and what in get(port, path)[1]


def _moved(port: int, *silos: str) -> bool:
    """Whether these silos have done something, as the coordinator shows it."""
    text = get(port, "/metrics")[1] if _answers(port) else ""
    series = re.findall(r'phase="([^"]+)",run="[^"]+",silo="([^"]+)"', text)
    phases = {silo: phase for phase, silo in series}
    return all(phases.get(silo, "asked") != "asked" for silo in silos)


def test_nothing_of_the_data_is_shown(tmp_path: Path) -> None:
    """Every label is a name from the configuration, the study or the code."""
    made = trial(tmp_path, tls=False)
    made.broker.start()
    try:

        async def run() -> str:
            async with serving(made):
                study = (await ask(made, QUESTION))["study"]
                await asyncio.sleep(0.7)
                return str(study["run"])

        study = asyncio.run(run())
    finally:
        made.broker.stop()
    known = {study, "trial", "feat", "done", "in", "out", *made.names}
    for name in (HUB, *made.names):
        for series in file_of(made, name):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', series))
            assert set(labels) <= {
                "version", "method", "outcome", "direction", "lineage", "phase", "run", "silo",
                "state",
            }  # fmt: skip
            labels.pop("phase", None)
            labels.pop("version", None)
            assert set(labels.values()) <= known


class TestTaken:
    """A port or a file that cannot be had."""

    def test_a_silo_says_so_and_does_not_serve(self, tmp_path: Path) -> None:
        made = trial(tmp_path, tls=False)
        port = give_port(made, "silo-1")
        service = SiloService(made.silo("silo-1"))
        try:
            with (
                MetricsBoard(tmp_path / "other.prom", port),
                pytest.raises(DeploymentError, match=f"metrics on port {port}"),
            ):
                asyncio.run(service.serve(asyncio.Event()))
        finally:
            service.close()

    @pytest.mark.parametrize("why", ["port", "another process"])
    def test_a_study_goes_on(self, tmp_path: Path, why: str) -> None:
        made = trial(tmp_path, tls=False)
        port = give_port(made, HUB)
        state = made.coordinator().state
        state.mkdir(mode=0o700)
        made.broker.start()

        async def run() -> None:
            async with serving(made):
                assert (await ask(made, QUESTION))["answer"]

        holding = (
            MetricsBoard(tmp_path / "other.prom", port)
            if why == "port"
            else locked(state / "metrics.lock", "")
        )
        try:
            with holding:
                asyncio.run(run())
        finally:
            made.broker.stop()
        assert "metrics.unshown" in (state / "log.jsonl").read_text()

    def test_the_next_process_takes_over(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(health, "_SHOW_SECONDS", 0.05)
        made = trial(tmp_path, tls=False)
        file, state = made.coordinator().metrics.file, made.coordinator().state
        state.mkdir(mode=0o700)
        made.broker.start()

        async def run() -> None:
            with locked(state / "metrics.lock", ""):
                asked = asyncio.create_task(ask(made, QUESTION, 10.0))
                await asyncio.sleep(0.3)
                assert not file.exists()
            await until("taken over", 5, file.exists)
            async with serving(made):
                await asked

        try:
            asyncio.run(run())
        finally:
            made.broker.stop()
        assert file_of(made, HUB)['silograph_studies_total{method="feat",outcome="done"}'] == 1


def test_refused_messages_are_counted(tmp_path: Path) -> None:
    made = trial(tmp_path, tls=False)
    service = SiloService(made.silo("silo-1"))
    try:
        error = DeploymentError("x")
        for event in ("message.dropped", "study.dropped", "broker.unreachable"):
            service._log.event(event, level="warning", error=error)
        found = numbers(service.health().metrics().text())
    finally:
        service.close()
    assert found['silograph_refused_messages_total{error="DeploymentError"}'] == 2
    assert "silograph_certificate_expiry_seconds" not in found
    assert found["silograph_broker_connected"] == 0


@pytest.mark.parametrize(
    ("connected", "trouble", "frozen", "said"),
    [
        (True, "", "", "ok"),
        (True, "the disk is full", "", "the disk is full"),
        (False, "it is gone", "", "the broker is not reached: it is gone"),
        (True, "the disk is full", "frozen", "the ledger is frozen"),
    ],
)
def test_the_first_reason_counts(
    made: LocalDeployment, connected: bool, trouble: str, frozen: str, said: str
) -> None:
    """The ledger, then the connection, then what the broker does not store."""
    service = SiloService(made.silo("silo-1"))
    line: Any = SimpleNamespace(connected=connected, trouble=trouble)
    found = Health(service._party, line, 0.0, frozen=frozen)
    assert found.verdict == (said == "ok", said)
    assert found.status()["trouble"] == trouble
    service.close()
