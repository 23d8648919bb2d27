"""Members that write to each other, helpers among them: carried, killed, and cleaned up after."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from silograph.errors import AbortedError, StudyError
from silograph.messages.envelope import Binding, Outgoing
from silograph.methods.study import StudyMember
from silograph.nats import coordinator as coordinators
from silograph.nats import silo as services
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.party.control import ABORT, END, Code, Control
from silograph.party.opened import open_store
from silograph.party.store import Store
from silograph.party.trail import Trail
from tests.nats import direct
from tests.nats.faults import CONTEXT, Strike, coordinator_process, silo_process
from tests.nats.world import ask, link, serving, silos, trial, until
from tests.sampled import sampled
from tests.support.local_deployment import HUB, LocalDeployment, Terms

FOUR = ("silo-1", "silo-2", "notary", "campus")
TERMS = Terms(committee=FOUR)
QUESTION = Question("edges", 3.0, protocol="committee", members=FOUR)
#: Every slot adds the edges of all silos.
TRUTH = sum(map(len, silos()))


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "plan_study", direct.SettledDirect)
    for name in ("plan_study", "settle_study"):
        monkeypatch.setattr(coordinators, name, direct.SettledDirect)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[LocalDeployment]:
    found = trial(tmp_path, TERMS, helpers=("notary", "campus", "spare"))
    found.broker.start()
    yield found
    found.broker.stop()


def states(made: LocalDeployment, names: tuple[str, ...]) -> list[str]:
    found = []
    for name in names:
        path = made.folder / f"{name}.state" / "store.db"
        if not path.exists():
            return ["absent"]
        store = Store(path, name)
        found += [run.state for run in store.runs()] or ["unasked"]
        store.close()
    return found


EVERYONE = ("silo-1", "silo-2", "silo-3", "notary", "campus")


@pytest.mark.usefixtures("toy")
class TestWhole:
    def test_members_and_helpers(self, made: LocalDeployment) -> None:
        """Read what is theirs, answer, end, and take all streams away; a spare helper sleeps."""

        async def run() -> dict[str, Any]:
            line = await link(made, "spare")
            async with serving(made) as served:
                found = await ask(made, QUESTION)
                name = found["study"]["run"]
                await until("ended", 15, lambda: set(states(made, EVERYONE)) == {"done"})

                async def gone() -> bool:
                    return not [n for n in await line.stream_names() if name in n]

                await until("gone", 15, gone)
                tasks = [t for s in served.values() for t in s._tasks.values()]
                await until("no task is left", 15, lambda: all(task.done() for task in tasks))
                health = served["notary"].health()
                assert health.verdict == (True, "ok")
                assert health.status()["role"] == "helper"
                board = made.helper("notary").state / "metrics.prom"
                counted = 'silograph_studies_total{method="feat",outcome="done"} 1'
                await until("it is counted", 15, lambda: counted in board.read_text())
                assert "silograph_epsilon" not in board.read_text()
            await line.close()
            return found

        found = asyncio.run(run())
        assert found["answer"]["value"] == TRUTH
        store = open_store(made.helper("notary"))
        (row,) = store.runs()
        assert (row.state, row.spent, row.data, row.secret) == ("done", False, "", None)
        events = [e["event"] for e in Trail(store).entries() if e["event"] != "house.left"]
        assert events == ["study.proposed", "study.decided", "run.ended"]
        store.close()
        sent: Counter[str] = Counter()
        for name in (*EVERYONE, "spare"):
            store = Store(made.folder / f"{name}.state" / "store.db", name)
            sent.update(
                {kind: size for run in store.runs() for kind, _, size in store.left(run.run)}
            )
            store.close()
        assert set(sent) == {"accept", "hi", "part", "sum", "end"}
        # The coordinator reads what is for it, and not what members write to each other.
        assert found["bytes"]["received"] == sent["accept"] + sent["sum"]

    def test_only_what_is_meant_for_a_party_is_read(self, made: LocalDeployment) -> None:
        async def run() -> tuple[int, int]:
            async with serving(made) as served:
                await ask(made, QUESTION)
                line = served["silo-3"]._link
                assert line is not None
                return line.traffic.messages, line.traffic.bytes

        messages, _ = asyncio.run(run())
        assert messages <= 2  # the proposal, and the end

    def test_only_the_coordinator_ends_a_run(
        self, made: LocalDeployment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A member that tells another one of an end or an abort tells it nothing."""
        start = direct.DirectParty.start

        def hostile(self: direct.DirectParty) -> list[Outgoing]:
            binding = Binding(self.study.id, self.study.digest, self._binding.roster)
            words = [Control(word, self.place, Code.OPERATOR) for word in (END, ABORT)]
            sealed = [word.seal(binding, self._identity) for word in words]
            told = [Outgoing(1, raw) for raw in sealed if self.place == 0]
            return [*told, *start(self)]

        monkeypatch.setattr(direct.DirectParty, "start", hostile)

        async def run() -> dict[str, Any]:
            async with serving(made):
                return await ask(made, QUESTION)

        assert asyncio.run(run())["answer"]["value"] == TRUTH
        log = (made.silo("silo-2").state / "log.jsonl").read_text()
        assert log.count('"message.dropped"') == 2

    def test_a_helpers_refusal_ends_the_run(self, made: LocalDeployment) -> None:
        path = made.silo_file("campus")
        path.write_text(path.read_text().replace("helpers = true", "helpers = false"))

        async def run() -> None:
            async with serving(made):
                with pytest.raises(AbortedError, match=r"campus refused the study \(policy\)"):
                    await ask(made, QUESTION)

        asyncio.run(run())
        log = (made.helper("campus").state / "log.jsonl").read_text()
        assert "run.ended" not in log
        store = open_store(made.helper("campus"))
        (told,) = [e for e in Trail(store).entries() if e["event"] == "study.decided"]
        store.close()
        assert (told["code"], told["error"]) == ("refused/policy", "PolicyError")


def member_process(folder: Path, name: str, strike: Strike | None) -> None:
    direct.install()
    silo_process(folder, name, strike)


def hub_process(folder: Path, question: Question, seconds: float, strike: Strike | None) -> None:
    direct.install()
    coordinator_process(folder, question, seconds, strike)


@pytest.mark.parametrize(
    ("victim", "at", "count"),
    sampled(
        [
            ("silo-2", "silo.taken", 7),
            ("silo-2", "silo.sent", 12),
            ("notary", "silo.frozen", 4),
            ("notary", "silo.authorised", 1),
            ("campus", "silo.taken", 30),
            ("silo-2", "silo.received", 33),  # the others have ended, and their streams must stay
            ("silo-3", "silo.made", 3),
            (HUB, "coordinator.taken", 9),
            (HUB, "coordinator.ended", 1),
        ],
        2,
        4,
        5,
        7,
    ),
)
def test_whoever_is_killed_goes_on(made: LocalDeployment, victim: str, at: str, count: int) -> None:
    strikes = {victim: Strike("kill", at, count)}

    def start(name: str, strike: Strike | None) -> Any:
        target, given = member_process, (made.folder, name, strike)
        if name == HUB:
            target, given = hub_process, (made.folder, QUESTION, 25.0, strike)  # type: ignore[assignment]
        process = CONTEXT.Process(target=target, args=given)
        process.start()
        return process

    running = {name: start(name, strikes.get(name)) for name in (*EVERYONE, HUB)}
    struck, limit = False, time.monotonic() + 35
    try:
        while running[HUB].exitcode != 0 or set(states(made, EVERYONE)) != {"done"}:
            assert time.monotonic() < limit, (states(made, EVERYONE), running[HUB].exitcode)
            assert running[HUB].exitcode != 3
            for name, process in list(running.items()):
                if process.exitcode == -signal.SIGKILL:
                    assert name == victim
                    struck = True
                    time.sleep(0.5)  # the others go on as far as they can
                    running[name] = start(name, None)
            time.sleep(0.05)
    finally:
        for process in running.values():
            process.kill()
            process.join()
    assert struck
    hub = CoordinatorService(made.coordinator())
    ((study, _),) = hub.studies()
    assert hub.result(study.run)["answer"]["value"] == TRUTH
    hub.close()


@pytest.mark.usefixtures("toy")
class TestProposing:
    def propose(self, made: LocalDeployment, **asked: Any) -> tuple[StudyMember, ...]:
        hub = CoordinatorService(made.coordinator())
        try:
            question = Question("edges", 3.0, protocol="committee", **asked)
            return hub.propose(question, 30.0).study.members
        finally:
            hub.close()

    def test_the_first_that_fit(self, tmp_path: Path) -> None:
        houses = {"silo-1": "North", "silo-2": "North"}
        made = trial(tmp_path, TERMS, tls=False, helpers=FOUR[2:], organisations=houses)
        assert [m.name for m in self.propose(made)] == ["silo-1", "silo-3", "notary", "campus"]
        few = trial(tmp_path / "few", tls=False, helpers=("notary",), organisations=houses)
        assert [m.name for m in self.propose(few)] == ["silo-1", "silo-3", "notary", "silo-2"]

    def test_those_that_were_named(self, tmp_path: Path) -> None:
        made = trial(tmp_path, TERMS, tls=False, helpers=FOUR[2:])
        asked = ("campus", HUB, "silo-3", "silo-1")
        kinds = ("helper", "coordinator", "silo", "silo")
        assert self.propose(made, members=asked) == tuple(map(StudyMember, asked, kinds))
        for members, silo, message in (
            (("campus", "silo-1", "silo-2", "stranger"), (), "'stranger' cannot be a member"),
            (("campus", "silo-1", "silo-2", "silo-3"), ("silo-1", "silo-2"), "'silo-3' cannot be"),
            (("campus", "silo-1", "silo-2"), (), "four different members"),
            (("campus", "silo-1", "silo-2", "silo-1"), (), "four different members"),
        ):
            with pytest.raises(StudyError, match=message):
                self.propose(made, members=members, silos=silo)

    def test_there_are_not_four(self, tmp_path: Path) -> None:
        with pytest.raises(StudyError, match="there are 3 silos and helpers; name helpers"):
            self.propose(trial(tmp_path, tls=False))
