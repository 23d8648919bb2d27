"""The streams of a run are removed, however it ended."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from silograph.errors import SilographError
from silograph.nats import faultpoints, sweep
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.link import stream_name
from silograph.nats.silo import SiloService
from tests.nats.world import ask, link, serving, trial
from tests.support.local_deployment import HUB, LocalDeployment, Terms

EDGES = Question("edges", 3.0, protocol="masked")


async def left(made: LocalDeployment) -> list[str]:
    """The streams of runs that the broker has."""
    line = await link(made, HUB)
    found = await line.stream_names()
    await line.close()
    return found


async def gone(made: LocalDeployment, seconds: float = 15.0) -> None:
    limit = time.monotonic() + seconds
    while found := await left(made):
        assert time.monotonic() < limit, found
        await asyncio.sleep(0.2)


def on_broker(made: LocalDeployment, work: Callable[[], Any]) -> Any:
    made.broker.start()
    try:
        return asyncio.run(work())
    finally:
        made.broker.stop()


class Stopped(BaseException):
    """The end of a process, as a test has it."""


async def stopped_at(made: LocalDeployment, point: str, seconds: float) -> str:
    """A coordinator that stops for good when it passes a point; the run's id."""
    service = CoordinatorService(made.coordinator())
    run = service.propose(EDGES, seconds).study.run

    def strike(name: str) -> None:
        if name == point:
            raise Stopped

    with faultpoints.hooked(strike):
        try:
            await service.carry(run)
        except (Stopped, BaseExceptionGroup):
            pass
        finally:
            service.close()
    return run


def test_a_refused_run_and_one_that_is_done(tmp_path: Path) -> None:
    """At once, since all parties have said that it is over."""
    made = trial(tmp_path, tls=False)

    async def run() -> None:
        async with serving(made):
            await ask(made, EDGES)
            assert await left(made) == []
            with pytest.raises(SilographError, match="policy"):
                await ask(made, Question("edges", 20.0, protocol="masked"))
            await gone(made)

    on_broker(made, run)


def test_streams_stay_while_somebody_may_need_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silo that is away reads them when it is back. The deadline ends its waiting, too."""
    monkeypatch.setattr(sweep, "_CONFIRM_SECONDS", 0.3)
    monkeypatch.setattr(sweep, "_SWEEP_SECONDS", 0.3)
    made = trial(tmp_path, tls=False)

    async def run() -> None:
        async with serving(made, ["silo-1", "silo-2"]):
            with pytest.raises(SilographError, match="deadline"):
                await ask(made, EDGES, 2.0)
            names = await left(made)
            assert any(name.endswith("-silo-3") for name in names)
            assert any(name.endswith(f"-{HUB}") for name in names)
        # The next process of the coordinator removes what is left, after the deadline.
        monkeypatch.setattr(sweep, "_OWN_GRACE", 0.5)
        line = await link(made, HUB)
        service = CoordinatorService(made.coordinator())
        await sweep.sweep(line, service.party, service.seat)
        service.close()
        await line.close()
        assert await left(made) == []

    on_broker(made, run)


def test_without_a_coordinator_a_silo_removes_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_OWN_GRACE", 0.5)
    monkeypatch.setattr(sweep, "_SWEEP_SECONDS", 0.3)
    made = trial(tmp_path, tls=False)

    async def run() -> None:
        async with serving(made, ["silo-1"]):
            name = await stopped_at(made, "coordinator.taken", 8.0)
            limit = time.monotonic() + 15.0
            own, other = stream_name(name, "silo-1"), stream_name(name, "silo-2")
            while own in (found := await left(made)):
                assert time.monotonic() < limit, found
                await asyncio.sleep(0.2)
            assert other in found  # not its own; an hour later it would
        monkeypatch.setattr(sweep, "_LONG_GRACE", 0.5)
        async with serving(made, ["silo-1"]):
            await gone(made)

    on_broker(made, run)


@pytest.mark.whole
def test_fifty_runs_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Done, refused, aborted by the operator, ended by a deadline, and left by a coordinator."""
    monkeypatch.setattr(sweep, "_OWN_GRACE", 1.0)
    monkeypatch.setattr(sweep, "_SWEEP_SECONDS", 1.0)
    made = trial(tmp_path, Terms(epsilon=1000.0, study=10.0), tls=False)

    async def aborted() -> None:
        service = CoordinatorService(made.coordinator())
        run = service.propose(EDGES, 30.0).study.run
        service.request_abort(run)
        try:
            await service.carry(run)
        finally:
            service.close()

    async def one(number: int) -> str:
        kind = ("done", "refused", "aborted", "expired", "left")[number % 5]
        try:
            if kind == "left":
                points = ("proposed", "received", "taken", "result", "saved", "ended")
                await stopped_at(made, f"coordinator.{points[number // 5 % len(points)]}", 3.0)
            elif kind == "aborted":
                await aborted()
            else:
                epsilon = 20.0 if kind == "refused" else 3.0
                question = Question("edges", epsilon, protocol="masked")
                await ask(made, question, 0.3 if kind == "expired" else 30.0)
        except SilographError:
            return kind
        return kind

    async def run() -> list[str]:
        async with serving(made):
            ends = [await one(number) for number in range(50)]
            assert await left(made)  # of those that nobody has removed yet
            await asyncio.sleep(4.5)  # the last one's deadline and the time after it
            await ask(made, EDGES)  # the coordinator's next process
            await gone(made)
            return ends

    ends = on_broker(made, run)
    assert len(ends) == 50


def test_notices_that_are_gone(tmp_path: Path) -> None:
    """A party removes the stream that it made for an answer; a run that it does not know stays."""
    made = trial(tmp_path, tls=False)

    async def run() -> None:
        line = await link(made, "silo-1")
        ping, young, unknown = (bytes([n] * 16).hex() for n in range(3))
        for name in (ping, young):
            await line.notify(name, b"a notice")
        await line.make_streams(unknown, ["silo-1"], 7200.0)
        await line._streams.purge_stream(stream_name(ping, "silo-1"))  # as time does
        service = SiloService(made.silo("silo-1"))
        removed = await sweep.sweep(line, service._party)
        service.close()
        await line.close()
        assert removed == [stream_name(ping, "silo-1")]
        assert sorted(await left(made)) == [stream_name(n, "silo-1") for n in (young, unknown)]

    on_broker(made, run)


def test_a_silo_that_could_not_store_a_run_has_ended_it(tmp_path: Path) -> None:
    """Its signed notice says so, and the streams go at once."""
    made = trial(tmp_path, tls=False)

    async def run() -> None:
        async with serving(made, ["silo-1", "silo-2"]):
            late = SiloService(made.silo("silo-3"), clock=lambda: time.time() + 1e5)
            stop = asyncio.Event()
            task = asyncio.create_task(late.serve(stop))
            with pytest.raises(SilographError, match="its clock is"):
                await ask(made, EDGES)
            await gone(made)
            stop.set()
            await task
            late.close()

    on_broker(made, run)
