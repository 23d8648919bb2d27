"""A silo's service and its operator: decisions, restarts, files that were put back."""

import asyncio
import importlib
import json
import math
import re
import shutil
import signal
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from silograph.cli.app import app
from silograph.errors import (
    AbortedError,
    ArgumentError,
    ConfigError,
    EdgeError,
    FrozenError,
    RollbackError,
    RosterError,
    StoreError,
    StudyError,
    UniverseError,
)
from silograph.estimators.release import Release
from silograph.graph.samples import union
from silograph.ledger.book import Ledger
from silograph.methods.study import VERSION
from silograph.nats import faultpoints
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.silo import SiloService
from silograph.party.config import PartyConfig, load_silo
from silograph.party.keys import key_text, load_identity, new_identity
from silograph.party.opened import open_store
from silograph.party.roster import read_roster, write_roster
from silograph.party.trail import Trail
from tests.nats.world import ask, serving, silos, trial, until
from tests.support.local_deployment import HUB, LocalDeployment, Terms

QUESTION = Question("edges", 3.0)


def command(*words: object) -> str:
    """A command's output; what it raises is raised."""
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


class Deployment:
    """A trial with a broker that is stopped at the end."""

    def __init__(self, folder: Path, terms: Terms | None = None) -> None:
        self.made = trial(folder, terms, tls=False)

    def __enter__(self) -> LocalDeployment:
        self.made.broker.start()
        return self.made

    def __exit__(self, *_: object) -> None:
        self.made.broker.stop()


def runs(made: LocalDeployment, name: str) -> list[dict[str, object]]:
    config = made.silo_file(name)
    found: list[dict[str, object]] = json.loads(command("silo", "studies", "-c", config, "--json"))
    return found


class TestOperator:
    def test_approves_and_refuses(self, tmp_path: Path) -> None:
        with Deployment(tmp_path, Terms(accept="ask")) as made:
            asyncio.run(self._decide(made))

    async def _decide(self, made: LocalDeployment) -> None:
        async with serving(made):
            for word, outcome in (("approve", "done"), ("refuse", "operator")):
                asked = asyncio.create_task(ask(made, QUESTION, 20.0))
                for name in made.names:
                    await until(
                        "the study is listed", 5,
                        lambda name=name: [r for r in runs(made, name) if r["decision"] == ""],
                    )  # fmt: skip
                    (waiting,) = (r for r in runs(made, name) if r["decision"] == "")
                    run = waiting["study"]["run"][:8]  # type: ignore[index]
                    said = command("silo", word, run, "-c", made.silo_file(name), "--json")
                    assert json.loads(said)["run"] == waiting["study"]["run"]  # type: ignore[index]
                if outcome == "done":
                    assert (await asked)["answer"]["query"] == "edges"
                else:
                    with pytest.raises(AbortedError, match=outcome):
                        await asked
        assert runs(made, "silo-1")[0]["state"] == "done"
        status = json.loads((made.silo("silo-1").state / "status.json").read_text())
        assert status["connected"] is True
        assert (
            'silograph_studies_total{method="feat",outcome="done"} 1'
            in (made.silo("silo-1").state / "metrics.prom").read_text()
        )

    def test_two_people_sign(self, tmp_path: Path) -> None:
        with Deployment(tmp_path, Terms(accept="ask")) as made:
            asyncio.run(self._sign(made))
        said = command("trail", "verify", "-c", made.silo_file("silo-1"))
        assert "2 signed decisions" in said
        shown = command("trail", "show", "-c", made.silo_file("silo-1"), "--event", "study")
        assert "by=anna code=accepted why=as agreed" in shown
        assert "by=anna,ben code=accepted" in shown

    async def _sign(self, made: LocalDeployment) -> None:
        """The first silo enrols two people, and tells them by a command that hangs at last."""
        folder, text = made.folder, made.silo_file("silo-1").read_text()
        for name in ("anna", "ben"):
            key = key_text(new_identity(folder / f"{name}.person").public)
            text += f'[[approvers]]\nname = "{name}"\nkey = "{key}"\n'
        told = folder / "told"
        text += f'[waiting]\ncommand = ["/bin/sh", "-c", "cat > {told}; sleep 60"]\n'
        text = text.replace('accept = "ask"', 'accept = "ask"\napprovals = 2')
        made.silo_file("silo-1").write_text(text)
        async with serving(made):
            asked = asyncio.create_task(ask(made, QUESTION, 20.0))
            await until("people are told", 10, lambda: told.exists() and told.read_text())
            run = json.loads(told.read_text())["run"]
            for name in ("silo-2", "silo-3"):
                await until("the study came", 5, lambda name=name: runs(made, name))
                command("silo", "approve", run, "-c", made.silo_file(name))
            for name, missing in (("anna", 1), ("ben", 0)):
                said = json.loads(
                    command("silo", "approve", run, "-c", made.silo_file("silo-1"), "--key",
                            folder / f"{name}.person", "--reason", "as agreed", "--json")
                )  # fmt: skip
                assert said["missing"] == missing
            assert (await asked)["answer"]["query"] == "edges"

    def test_ends_a_run_that_is_under_way(self, tmp_path: Path) -> None:
        with Deployment(tmp_path) as made:
            asyncio.run(self._end(made))
        store = open_store(made.silo("silo-1"))
        (run,) = store.runs()
        assert (run.state, run.code, run.secret) == ("aborted", "operator", None)
        store.close()

    async def _end(self, made: LocalDeployment) -> None:
        async with serving(made, ["silo-1", "silo-2"]):  # the third never comes
            asked = asyncio.create_task(ask(made, QUESTION, 20.0))
            await until("accepted", 15, lambda: [r for r in runs(made, "silo-1") if r["decision"]])
            await asyncio.sleep(0.5)
            command("silo", "refuse", runs(made, "silo-1")[0]["study"]["run"],  # type: ignore[index]
                    "-c", made.silo_file("silo-1"))  # fmt: skip
            with pytest.raises(AbortedError, match="operator"):
                await asked

    def test_aborts_a_study_from_the_coordinators_side(self, tmp_path: Path) -> None:
        hub = tmp_path / "trial" / f"{HUB}.toml"
        with Deployment(tmp_path) as made:
            said = command(
                "study", "propose", "edges", "--epsilon", 3, "--detach", "-c", hub, "--json"
            )
            run = json.loads(said)["run"]
            ended = json.loads(command("study", "abort", run[:10], "-c", hub, "--json"))
            assert ended == {"run": run, "end": "ended for all"}
            assert (
                json.loads(command("study", "list", "-c", hub, "--json"))[0]["code"] == "operator"
            )
            assert made.names

    def test_a_study_of_another_version_is_ended(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its messages are not those of this version, so that everyone would wait for nothing."""
        with Deployment(tmp_path) as made:
            service = CoordinatorService(made.coordinator())
            try:
                run = service.propose(QUESTION, 60.0).study.run
                monkeypatch.setattr("silograph.methods.study.VERSION", VERSION + 1)
                monkeypatch.setattr("silograph.methods.study._READABLE", (VERSION, VERSION + 1))
                with pytest.raises(AbortedError, match=f"study format {VERSION}; this version"):
                    asyncio.run(service.carry(run))
                ((study, row),) = service.studies()
                assert (study.run, row.state, row.code) == (run, "aborted", "study")
            finally:
                service.close()


class TestCommands:
    def test_a_study_from_the_command_line(self, tmp_path: Path) -> None:
        with Deployment(tmp_path) as made:
            shown = command("silo", "check", "-c", made.silo_file("silo-1"))
            assert "reached in" in shown
            assert "feat masked" in shown
            told = json.loads(command("silo", "check", "-c", made.silo_file("silo-1"), "--json"))
            assert (told["silo"], told["silos"], told["broker"]["reached"]) == ("silo-1", 3, True)
            assert told["limit"]["epsilon"] == made.silo("silo-1").ledger.epsilon
            processes = made.processes()
            hub = made.folder / f"{HUB}.toml"
            try:
                text = command("study", "propose", "triangles", "--epsilon", 3, "--minutes", 0.5,
                               "-c", hub)  # fmt: skip
                alive = json.loads(command("silo", "status", "-c", made.silo_file("silo-1"),
                                           "--json"))  # fmt: skip
                assert (alive["silo"], alive["running"], alive["serving"]) == ("silo-1", True, True)
                said = (made.folder / "silo-1.out").read_text().splitlines()
                assert said[-1] == "silo-1: serving"
                processes[0].kill()
                processes[0].wait(10)
            finally:
                for process in processes:
                    process.terminate()
                assert [process.wait(10) for process in processes] == [-signal.SIGKILL, 0, 0]
            killed = CliRunner().invoke(
                app, ["silo", "status", "-c", str(made.silo_file("silo-1"))]
            )
            assert (killed.exit_code, "not running: process" in killed.output) == (1, True)
            assert "feat masked, 3 silos" in text
            run = json.loads(command("study", "list", "-c", hub, "--json"))[0]["run"]
            copy = tmp_path / "copy.release"
            found = json.loads(
                command("study", "result", run[:6], "-c", hub, "--json", "--release", copy)
            )
            assert found["answer"]["epsilon"] <= 3.0
            release = Release.load(copy)
            assert release.triangles().value == found["answer"]["value"]
            assert release.provenance.run == run


class TestParts:
    def test_a_study_over_part_of_the_roster(self, tmp_path: Path) -> None:
        """Allowed by policy alone; the silo that is left out hears of it and spends nothing."""
        question = Question("edges", 3.0, silos=("silo-3", "silo-1"))
        with Deployment(tmp_path, Terms(part_of_roster=True)) as made:

            async def run() -> dict[str, dict[str, object]]:
                async with serving(made):
                    return await ask(made, question)

            found = asyncio.run(run())
        assert found["study"]["silos"] == ["silo-1", "silo-3"]
        spends = []
        for name in made.names:
            with Ledger(made.silo(name).ledger.path) as ledger:
                spends.append(len(ledger.rows()))
        assert spends == [1, 0, 1]
        assert runs(made, "silo-2") == []


@pytest.mark.parametrize("word", ["raw", "=", "raw=true"])
def test_options_of_a_study(word: str, tmp_path: Path) -> None:
    """Read as truth values, numbers or texts; refused by a method that does not have them."""
    made = trial(tmp_path, tls=False)
    hub, given = made.folder / f"{HUB}.toml", ["--epsilon", 3, "--detach", "-c"]
    baseline = ["study", "propose", "edges", "--method", "baseline", "--option", word]
    if word == "raw=true":
        assert len(command(*baseline, *given, hub).strip()) == 32
        with pytest.raises(StudyError, match="no use for option 'raw'"):
            command("study", "propose", "edges", "--option", word, *given, hub)
    else:
        with pytest.raises((ArgumentError, StudyError)):
            command(*baseline, *given, hub)


def test_groups_of_a_study(tmp_path: Path) -> None:
    """The file becomes part of the study; it must name every node."""
    made = trial(tmp_path, tls=False, count=4)
    hub, table = made.folder / f"{HUB}.toml", tmp_path / "groups.csv"
    asked = ["study", "propose", "mixing", "--method", "sealed", "--epsilon", 3, "--detach",
             "--groups", table, "-c", hub]  # fmt: skip
    ids = list(silos()[0].universe)
    table.write_text("".join(f"{id_},{'xy'[place % 2]}\n" for place, id_ in enumerate(ids[1:])))
    with pytest.raises(UniverseError, match="1 of 40 nodes have no group"):
        command(*asked)
    table.write_text("".join(f"{id_},{'xy'[place % 2]}\n" for place, id_ in enumerate(ids)))
    named = re.search(r"[0-9a-f]{12,}", command(*asked))
    assert named is not None
    service = CoordinatorService(made.coordinator())
    study = service.find(named[0])[0]
    service.close()
    assert study.options["groups"] == "01" * 20
    assert study.options["group_names"] == '["x","y"]'


class TestRestarts:
    def test_a_service_that_was_stopped_in_the_middle_goes_on(self, tmp_path: Path) -> None:
        with Deployment(tmp_path) as made:
            answer = asyncio.run(self._stop_and_go(made))
        assert answer["answer"]["query"] == "edges"
        for name in made.names:
            with Ledger(made.silo(name).ledger.path) as ledger:
                assert len(ledger.rows()) == 1

    async def _stop_and_go(self, made: LocalDeployment) -> dict[str, dict[str, object]]:
        asked = asyncio.create_task(ask(made, QUESTION, 20.0))
        moments: list[str] = []
        with faultpoints.hooked(moments.append):
            async with serving(made, ["silo-1", "silo-2"]):
                await until("accepted", 15, lambda: moments.count("silo.accepted") == 2)
        async with serving(made):
            return await asked

    def test_changed_edges_change_nothing_of_a_run(self, tmp_path: Path) -> None:
        """A run goes on with the edges that it began with; new runs have the new ones."""
        question = Question("edges", 30.0)
        with Deployment(tmp_path, Terms(epsilon=1000.0, study=100.0, collusion=0)) as made:
            first, second = asyncio.run(self._change(made, question))
        truth = len(union(silos()))
        assert abs(first["answer"]["value"] - truth) < 2.5
        assert abs(second["answer"]["value"] - truth) > 10
        kept = made.silo("silo-2").state / "snapshots"
        assert list(kept.iterdir()) == []

    async def _change(
        self, made: LocalDeployment, question: Question
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        asked = asyncio.create_task(ask(made, question, 20.0))
        moments: list[str] = []
        kept = made.silo("silo-2").state / "snapshots"
        with faultpoints.hooked(moments.append):
            async with serving(made, ["silo-1", "silo-2"]):
                await until("keys", 15, lambda: moments.count("silo.sent") >= 4)
        (snapshot,) = kept.iterdir()
        assert stat.S_IMODE(snapshot.stat().st_mode) == 0o600
        for name in ("silo-1", "silo-2"):
            path = made.folder / f"{name}.csv"
            path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
        async with serving(made):
            assert len(list(kept.iterdir())) == 2
            first = await asked
            await until("tidied", 10, lambda: len(list(kept.iterdir())) == 1)
            assert snapshot not in kept.iterdir()
            return first, await ask(made, question)

    @pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"x" * 200)])
    def test_without_its_edges_a_run_ends(
        self, tmp_path: Path, damage: Callable[[Path], object]
    ) -> None:
        with Deployment(tmp_path) as made:
            asyncio.run(self._lose(made, damage))
        log = (made.silo("silo-2").state / "log.jsonl").read_text()
        (line,) = [found for found in map(json.loads, log.splitlines()) if "error" in found]
        assert (line["event"], line["error"]) == ("run.failed", "StoreError")
        assert "the edges that the run began with" in line["reason"]
        store = open_store(made.silo("silo-2"))
        (run,) = store.runs()
        assert (run.state, run.code) == ("aborted", "internal")
        assert run.data not in log
        store.close()

    async def _lose(self, made: LocalDeployment, damage: Callable[[Path], object]) -> None:
        asked = asyncio.create_task(ask(made, QUESTION, 20.0))
        moments: list[str] = []
        with faultpoints.hooked(moments.append):
            async with serving(made, ["silo-2"]):
                await until("accepted", 15, lambda: "silo.accepted" in moments)
        (snapshot,) = (made.silo("silo-2").state / "snapshots").iterdir()
        damage(snapshot)
        path = made.folder / "silo-2.csv"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
        async with serving(made):
            with pytest.raises(AbortedError, match="internal"):
                await asked

    def test_with_a_damaged_message_a_run_ends(self, tmp_path: Path) -> None:
        """And nothing but that: the service goes on, and no other message is sent in its place."""
        with Deployment(tmp_path) as made:
            asyncio.run(self._damage(made))
        config = made.silo("silo-2")
        lines = map(json.loads, (config.state / "log.jsonl").read_text().splitlines())
        failed = [line for line in lines if line["event"] == "run.failed"]
        assert "the state store is damaged: a message of run" in failed[0]["reason"]
        store = open_store(config)
        (run,) = store.runs()
        assert (run.state, run.code, run.secret) == ("aborted", "internal", None)
        store.close()

    async def _damage(self, made: LocalDeployment) -> None:
        moments: list[str] = []
        asked = asyncio.create_task(ask(made, QUESTION, 30.0))
        with faultpoints.hooked(moments.append):
            async with serving(made, ["silo-2"]):
                await until("sent", 15, lambda: "silo.sent" in moments)
        with closing(sqlite3.connect(made.silo("silo-2").state / "store.db")) as store:
            store.execute("UPDATE outgoing SET digest = zeroblob(32)")
            store.commit()
        async with serving(made) as services:
            with pytest.raises(AbortedError, match="internal"):
                await asked
            assert services["silo-2"].health().connected

    def test_a_decision_that_was_cut_short_is_made_again(self, tmp_path: Path) -> None:
        with Deployment(tmp_path) as made:
            service = CoordinatorService(made.coordinator())
            study = service.propose(QUESTION, 20.0).study
            proposal = service.find(study.run)[1].proposal
            service.close()
            for name in made.names:  # it came, and then the process ended
                store = open_store(made.silo(name))
                store.add(study.run, proposal)
                store.close()
            asyncio.run(self._carry(made, study.run))

    async def _carry(self, made: LocalDeployment, run: str) -> None:
        service = CoordinatorService(made.coordinator())
        async with serving(made):
            assert (await service.carry(run))["answer"]
        service.close()


def trail_of(config: PartyConfig) -> list[dict[str, Any]]:
    store = open_store(config)
    try:
        return list(Trail(store).entries())
    finally:
        store.close()


class TestTrail:
    """What the audit trails say."""

    def test_of_a_whole_study(self, tmp_path: Path) -> None:
        with Deployment(tmp_path) as made:

            async def run() -> str:
                async with serving(made):
                    found = await ask(made, QUESTION)
                    await until("ended", 5, lambda: all(map(ended, made.names)))
                    return str(found["study"]["run"])

            def ended(name: str) -> bool:
                return runs(made, name)[0]["state"] == "done"

            name = asyncio.run(run())
        for config in (*map(made.silo, made.names), made.coordinator()):
            found = trail_of(config)
            assert {entry["run"] for entry in found} == {name}
            events = [entry["event"] for entry in found if entry["event"] != "house.left"]
            own = [] if config.name == HUB else ["study.decided", "budget.spent"]
            assert events == ["study.proposed", *own, "run.ended"]
            assert found[-1]["state"] == "done"
            left = [(e["kind"], e["messages"], e["bytes"]) for e in found if "kind" in e]
            store = open_store(config)
            assert left == store.left(name) != []
            store.close()
        with Ledger(made.silo("silo-1").ledger.path) as ledger:
            (spend,) = ledger.rows()
            witness = ledger.witness()
        (told,) = [e for e in trail_of(made.silo("silo-1")) if e["event"] == "budget.spent"]
        assert told["epsilon"] == spend.losses[1]
        assert (told["serial"], told["head"]) == (witness.serial, witness.digest)

    def test_a_refusal(self, tmp_path: Path) -> None:
        with Deployment(tmp_path) as made:

            async def run() -> None:
                async with serving(made, ["silo-1"]):
                    with pytest.raises(AbortedError):
                        await ask(made, Question("edges", 20.0))

            asyncio.run(run())
        found = trail_of(made.silo("silo-1"))
        assert [(e["event"], e.get("code") or e.get("state") or e.get("kind")) for e in found] == [
            ("study.proposed", None),
            ("study.decided", "refused/policy"),
            ("house.left", "refuse"),
            ("run.ended", "refused/policy"),
        ]
        assert found[1]["error"] == "PolicyError"

    def test_a_service_that_was_killed_after_a_spend(self, tmp_path: Path) -> None:
        """The ledger has it; the store and the trail are told by the next start, once."""
        made = trial(tmp_path, tls=False)
        hub = CoordinatorService(made.coordinator())
        study = hub.propose(QUESTION, 20.0).study
        proposal = hub.find(study.run)[1].proposal
        hub.close()
        service = SiloService(made.silo("silo-1"))
        service._store.add(study.run, proposal)
        service._ledger.spend(
            "trial", study.run, service._books.phase, {0: 1.0, 1: 2.5}, view="any", method="feat"
        )
        service.close()
        assert trail_of(made.silo("silo-1")) == []
        for _ in range(2):
            SiloService(made.silo("silo-1")).close()
            (told,) = trail_of(made.silo("silo-1"))
            assert (told["event"], told["run"]) == ("budget.spent", study.run)
            assert (told["lineage"], told["epsilon"], told["collusion"]) == ("trial", 2.5, 1)


class TestPutBack:
    """Files of an earlier day in the place of today's."""

    @pytest.fixture
    def served(self, tmp_path: Path) -> LocalDeployment:
        with Deployment(tmp_path) as made:
            for name in ("silo-1.ledger", "silo-1.state"):
                SiloService(made.silo("silo-1")).close()  # makes both
                keep = made.folder / name
                target = tmp_path / f"old-{name}"
                shutil.copytree(keep, target) if keep.is_dir() else shutil.copy(keep, target)

            async def run() -> None:
                async with serving(made):
                    await ask(made, QUESTION)
                    await asyncio.sleep(0.3)

            asyncio.run(run())
        return made

    def test_an_old_store(self, served: LocalDeployment, tmp_path: Path) -> None:
        shutil.rmtree(served.folder / "silo-1.state")
        shutil.copytree(tmp_path / "old-silo-1.state", served.folder / "silo-1.state")
        with pytest.raises(StoreError, match="older than the ledger"):
            SiloService(served.silo("silo-1"))

    def test_an_old_ledger(self, served: LocalDeployment, tmp_path: Path) -> None:
        for suffix in ("", "-wal", "-shm"):
            (served.folder / f"silo-1.ledger{suffix}").unlink(missing_ok=True)
        shutil.copy(tmp_path / "old-silo-1.ledger", served.folder / "silo-1.ledger")
        with pytest.raises(RollbackError):
            SiloService(served.silo("silo-1"))

    def test_no_ledger_at_all(self, served: LocalDeployment) -> None:
        """It is said so, and none is made: a new one would be taken for another ledger."""
        path = served.silo("silo-1").ledger.path
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        with pytest.raises(RollbackError, match=r"there is no ledger.*restore --config"):
            SiloService(served.silo("silo-1"))
        assert not path.exists()

    def test_no_store_at_all_and_the_same_run_again(self, served: LocalDeployment) -> None:
        """A new store knows nothing; the ledger does, and the run is refused."""
        shutil.rmtree(served.folder / "silo-1.state")
        service = SiloService(served.silo("silo-1"))
        hub = CoordinatorService(served.coordinator())
        ((study, _),) = hub.studies()
        hub.close()
        with pytest.raises(StoreError, match="the ledger has this run"):
            service._check(study)
        service.close()

    def test_an_old_roster(self, served: LocalDeployment) -> None:
        path = served.folder / "roster.toml"
        first = read_roster(path)
        newer = first.rotate("silo-3", new_identity(served.folder / "new.key").public,
                             date(2031, 1, 1))  # fmt: skip
        for name in (HUB, "silo-1", "silo-2", "new"):
            newer = newer.sign(load_identity(served.folder / f"{name}.key"))
        write_roster(path, newer)
        SiloService(served.silo("silo-1")).close()
        write_roster(path, first)
        with pytest.raises(RosterError, match="an old roster"):
            SiloService(served.silo("silo-1"))

    def test_nothing_of_a_secret_is_left(self, served: LocalDeployment) -> None:
        for name in served.names:
            with sqlite3.connect(served.silo(name).state / "store.db") as store:
                rows = store.execute("SELECT secret, state FROM runs").fetchall()
                kept = store.execute("SELECT count(*) FROM outgoing WHERE raw IS NOT NULL")
                assert kept.fetchone() == (0,)
            store.close()
            assert rows == [(None, "done")]


class TestCloned:
    """A machine that was put back, or a second one with the same identity, in a run under way."""

    def test_the_ledger_is_frozen_until_the_operator_decides(self, tmp_path: Path) -> None:
        with Deployment(tmp_path) as made:
            SiloService(made.silo("silo-1")).close()  # makes its files
            for name in ("silo-1.ledger", "silo-1.state"):
                _copy(made.folder / name, tmp_path / name)
            asyncio.run(self._put_back(made, tmp_path))
        file, path = made.silo_file("silo-1"), made.silo("silo-1").ledger.path
        assert "FROZEN: nothing can be spent" in command("ledger", "show", path)
        assert "we were cloned, or put back" in command("ledger", "show", path)
        service = SiloService(made.silo("silo-1"))
        assert "ledger thaw" in service.notes[0]
        study = CoordinatorService(made.coordinator()).propose(QUESTION, 20.0).study
        with pytest.raises(FrozenError, match="ledger thaw"):
            service._check(study)
        status = CliRunner().invoke(app, ["silo", "status", "-c", str(file)])
        assert "the ledger is frozen" in status.output
        events = [entry["event"] for entry in trail_of(made.silo("silo-1"))]
        assert "ledger.frozen" in events
        command("ledger", "thaw", path, "--reason", "a snapshot; nothing ran", "--lost", "trial=1")
        service._check(study)
        service.close()
        assert SiloService(made.silo("silo-1"))._ledger.spent("trial").epsilon == 1.0

    async def _put_back(self, made: LocalDeployment, kept: Path) -> None:
        moments: list[str] = []
        asked = asyncio.create_task(ask(made, QUESTION, 30.0))
        with faultpoints.hooked(moments.append):
            async with serving(made, ["silo-1"]):  # the others never come
                await until("its key is sent", 15, lambda: moments.count("silo.sent") > 1)
        for name in ("silo-1.ledger", "silo-1.state"):
            _copy(kept / name, made.folder / name)
        async with serving(made, ["silo-1"]) as services:
            with pytest.raises(AbortedError, match="protocol"):
                await asked
            await until("it says so", 5, lambda: services["silo-1"].health().frozen)
            state = made.silo("silo-1").state
            for file, said in (("status.json", "frozen"), ("metrics.prom", "ledger_frozen 1.0")):
                await until(
                    file, 15, lambda file=file, said=said: said in (state / file).read_text()
                )


def _copy(source: Path, target: Path) -> None:
    """Put a file or a folder in the place of another."""
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
    else:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{target}{suffix}").unlink(missing_ok=True)
        shutil.copy(source, target)


class TestLimits:
    """The lower one of the ledger's and the configuration's."""

    def test_by_hand_and_by_configuration(self, tmp_path: Path) -> None:
        made = trial(tmp_path, Terms(epsilon=10.0), tls=False)
        config = made.silo("silo-1")
        SiloService(config).close()
        command("ledger", "limit", config.ledger.path, "trial", 4, "--delta", 1e-6)
        service = SiloService(config)
        assert service._ledger.remaining("trial").epsilon == 4.0  # type: ignore[union-attr]
        (note,) = service.notes
        assert "holds, ε = 4, δ = 1e-6 at t = 1: it is lower than that of" in note
        assert '"event":"limit.kept"' in (config.state / "log.jsonl").read_text()
        service.close()
        file = Path(config.file)
        file.write_text(file.read_text().replace("epsilon = 10.0\ndelta", "epsilon = 3.0\ndelta"))
        service = SiloService(made.silo("silo-1"))
        assert service._ledger.remaining("trial").epsilon == 3.0  # type: ignore[union-attr]
        assert service.notes == []
        service.close()


def test_a_study_is_verified_and_settled_once_a_party(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()

    def counted(module: str, name: str) -> None:
        whole = getattr(importlib.import_module(module), name)

        def call(*given: object) -> object:
            calls[f"{module.rsplit('.', 1)[1]} {name}"] += 1
            return whole(*given)

        monkeypatch.setattr(f"{module}.{name}", call)

    for name in ("plan_study", "open_proposal"):
        counted("silograph.nats.silo", name)
    for name in ("plan_study", "settle_study"):
        counted("silograph.nats.coordinator", name)

    async def run(made: LocalDeployment) -> None:
        async with serving(made):
            assert (await ask(made, QUESTION))["answer"]

    with Deployment(tmp_path) as made:
        asyncio.run(run(made))
    assert calls == {
        "silo open_proposal": 3, "silo plan_study": 3, "coordinator settle_study": 1,
    }  # fmt: skip


def test_a_study_for_a_release(tmp_path: Path) -> None:
    """It has no answer, and answers every question."""

    async def run(made: LocalDeployment) -> dict[str, Any]:
        async with serving(made):
            return await ask(made, Question("release", 3.0, purpose="a look at all of it"))

    with Deployment(tmp_path) as made:
        found = asyncio.run(run(made))
        hub = CoordinatorService(made.coordinator())
        with pytest.raises(StudyError, match="by feat or hubs, not by baseline"):
            hub.propose(Question("release", 3.0, method="baseline", protocol=""), 30.0)
        for seconds in (0.0, math.nan, math.inf):
            with pytest.raises(StudyError, match="seconds"):
                hub.propose(QUESTION, seconds)
        hub.close()
    assert found["answer"] is None
    assert found["study"]["purpose"] == "a look at all of it"
    release = Release.load(found["release"])
    assert release.provenance.run == found["study"]["run"]
    assert math.isfinite(release.triangles().value)


class TestLineage:
    def test_a_slip_in_the_configuration_starts_no_budget_of_its_own(self, tmp_path: Path) -> None:
        made = trial(tmp_path, tls=False)
        SiloService(made.silo("silo-1")).close()
        file = Path(made.silo_file("silo-1"))
        lineage = made.silo("silo-1").data.lineage
        file.write_text(file.read_text().replace(f'"{lineage}"', '"slip"'))
        with pytest.raises(ConfigError, match="silograph ledger limit"):
            SiloService(made.silo("silo-1"))
        with Ledger(made.silo("silo-1").ledger.path) as ledger:
            assert ledger.lineages() == [lineage]
            ledger.set_limit("slip", 1.0)  # the operator means it
        SiloService(made.silo("silo-1")).close()


class TestData:
    def test_a_time_window_of_the_configuration(self, tmp_path: Path) -> None:
        made = trial(tmp_path, tls=False)
        path, file = made.folder / "silo-1.csv", made.silo_file("silo-1")
        rows = path.read_text().splitlines()
        days = ["day", *(f"2026-01-{1 + row % 3:02}" for row in range(len(rows) - 1))]
        path.write_text("\n".join(f"{row},{day}" for row, day in zip(rows, days, strict=True)))
        kept = days.count("2026-01-02")
        window = '[data]\ntime_column = "day"\nsince = "2026-01-02"\nuntil = "2026-01-03"\n'
        file.write_text(file.read_text().replace("[data]\n", window))
        service = SiloService(made.silo("silo-1"))
        assert len(service.silo) == kept > 0
        log = (made.silo("silo-1").state / "log.jsonl").read_text()
        assert f'"rows_outside":{len(days) - 1 - kept}' in log
        service.close()
        placed = 'columns = ["0", "1"]\ntime_column = "2"'
        file.write_text(file.read_text().replace('time_column = "day"', placed))
        again = load_silo(made.silo("silo-1"), service.silo.universe)
        assert (again.silo, again.other_times) == (service.silo, len(days) - 1 - kept)
        assert again.left_out == f", {again.other_times} rows outside the time window"
        file.write_text(file.read_text().replace('until = "2026-01-03"', 'until = "soon"'))
        with pytest.raises(ConfigError, match=r"\[data\] the time window has 'soon'"):
            made.silo("silo-1")

    def test_edges_outside_the_list_are_counted_and_left_out(self, tmp_path: Path) -> None:
        made = trial(tmp_path, tls=False)
        path = made.folder / "silo-1.csv"
        whole = load_silo(made.silo("silo-1"), SiloService(made.silo("silo-1"))._party.universe)
        assert whole.outside == 0
        path.write_text(path.read_text() + "stranger,0\n0,another\n")
        service = SiloService(made.silo("silo-1"))
        assert service.silo == whole.silo
        log = (made.silo("silo-1").state / "log.jsonl").read_text()
        assert '"edges_outside":2' in log
        assert "stranger" not in log
        service.close()
        path.write_text("from,to\nx,y\n")
        with pytest.raises(EdgeError, match="no edge has both ends"):
            SiloService(made.silo("silo-1"))
