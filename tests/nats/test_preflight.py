"""Checks before anything is spent: each finds its fault, and changes nothing."""

import asyncio
import json
import os
import re
import shutil
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from silograph.cli.app import app
from silograph.ledger.book import Ledger
from silograph.nats import preflight
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.link import STUDIES_STREAM
from silograph.nats.preflight import Answer, Check, Preflight
from silograph.nats.silo import SiloService
from silograph.party.keys import load_identity, new_identity
from silograph.party.roster import read_roster, write_roster
from tests.nats.world import ask, serving, trial
from tests.support.local_deployment import HUB, LocalDeployment, Terms

NORTH = "silo-1"
#: Studies for which any machine has memory.
TERMS = Terms(largest=1 << 28)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[LocalDeployment]:
    """With a broker that is stopped at the end."""
    deployment = trial(tmp_path, TERMS, tls=False)
    deployment.broker.start()
    yield deployment
    deployment.broker.stop()


def checked(made: LocalDeployment, **more: Any) -> dict[str, Check]:
    flight = Preflight(made.silo(NORTH), **more)
    asyncio.run(flight.run())
    return {check.name: check for check in flight.checks}


def failed(found: dict[str, Check]) -> list[str]:
    return [name for name, check in found.items() if check.state != "ok"]


def change(made: LocalDeployment, old: str, new: str) -> None:
    path = made.silo_file(NORTH)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def files(folder: Path) -> list[Path]:
    """All that is in a folder, without the broker's streams, which come and go by themselves."""
    found: list[Path] = []
    for where, inside, names in os.walk(folder):
        inside[:] = [name for name in inside if name != "streams"]
        found += [Path(where, name) for name in (*inside, *names)]
    return sorted(found)


def test_all_is_well_and_nothing_is_made(made: LocalDeployment) -> None:
    """Before the first start, and after it."""
    before = files(made.folder)
    found = checked(made)
    assert failed(found) == []
    assert list(found) == [
        "configuration", "identity", "roster", "nodes", "policy", "data", "ledger", "disk",
        "memory", "broker", "subjects", "clock",
    ]  # fmt: skip
    assert "the first start makes" in found["ledger"].said
    assert files(made.folder) == before
    SiloService(made.silo(NORTH)).close()
    assert "ε = 0 of ε = 100 spent on 'trial'" in checked(made)["ledger"].said


def swap_key(made: LocalDeployment) -> None:
    shutil.copy(made.folder / "silo-2.key", made.folder / f"{NORTH}.key")


FAULTS: dict[str, tuple[Callable[[LocalDeployment], object], str]] = {
    "identity": (lambda made: (made.folder / f"{NORTH}.key").chmod(0o644), "others can read"),
    "roster": (swap_key, "the identity is that of silo-2"),
    "nodes": (lambda made: (made.folder / "nodes.txt").write_text("a\na\n"), "twice|again|same"),
    "policy": (lambda made: change(made, f'["{HUB}"]', '["other"]'), "does not name hub"),
    "data": (lambda made: (made.folder / f"{NORTH}.csv").unlink(), "there is no such file"),
    "broker": (lambda made: made.broker.stop(), "nothing listens on this port"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_a_file(made: LocalDeployment, name: str) -> None:
    fault, said = FAULTS[name]
    fault(made)
    found = checked(made)
    assert found[name].state == "failed"
    assert re.search(said, found[name].said), found[name].said
    others = {"identity": ["roster"], "nodes": ["data"], "broker": ["subjects", "clock"]}
    assert failed(found) == [name, *others.get(name, [])]
    result = CliRunner().invoke(app, ["silo", "check", "-c", str(made.silo_file(NORTH))])
    assert result.exit_code == 1
    assert f"failed  {name:14}" in result.output
    assert len(result.output.splitlines()) == len(found)


class TestLedger:
    @pytest.fixture
    def served(self, made: LocalDeployment) -> LocalDeployment:
        """After a study; ``old`` is the ledger as it was before."""
        SiloService(made.silo(NORTH)).close()
        shutil.copy(made.folder / f"{NORTH}.ledger", made.folder / "old")

        async def run() -> None:
            async with serving(made):
                await ask(made, Question("edges", 3.0))

        asyncio.run(run())
        assert failed(checked(made)) == []
        for path in made.folder.glob(f"{NORTH}.ledger*"):
            path.unlink()
        return made

    def test_missing_rolled_back_and_another(self, served: LocalDeployment) -> None:
        """The first is not made."""
        path = served.folder / f"{NORTH}.ledger"
        found = checked(served)["ledger"]
        assert (found.state, "ledger restore" in found.said) == ("failed", True)
        assert not path.exists()
        shutil.copy(served.folder / "old", path)
        found = checked(served)["ledger"]
        assert (found.state, "old copy" in found.said) == ("failed", True)
        path.unlink()
        with Ledger(path) as other:
            other.set_limit("trial", 100.0)
        assert checked(served)["ledger"].state == "failed"

    def test_frozen(self, made: LocalDeployment) -> None:
        SiloService(made.silo(NORTH)).close()
        with Ledger(made.folder / f"{NORTH}.ledger") as ledger:
            ledger.freeze("we were cloned")
        found = checked(made)["ledger"]
        assert (found.state, "silograph ledger thaw" in found.said) == ("failed", True)


class TestMachine:
    """Space, memory and clock, by values that stand in for the machine's."""

    def test_the_clock(self, made: LocalDeployment) -> None:
        for wrong, word in ((60, "60.0 s ahead"), (-60, "60.0 s behind")):
            found = checked(made, clock=lambda wrong=wrong: time.time() + wrong)
            assert failed(found) == ["clock"]
            assert word in found["clock"].said

    def test_the_disk(self, made: LocalDeployment, monkeypatch: pytest.MonkeyPatch) -> None:
        usage = namedtuple("usage", "free")
        monkeypatch.setattr(preflight.shutil, "disk_usage", lambda _: usage(10 << 20))
        found = checked(made)
        assert failed(found) == ["disk"]
        assert "make room" in found["disk"].said

    def test_the_memory(self, made: LocalDeployment, monkeypatch: pytest.MonkeyPatch) -> None:
        change(made, f"largest = {1 << 28}", f"largest = {1 << 33}")
        monkeypatch.setattr(preflight, "memory_left", lambda: 1 << 30)
        found = checked(made)
        assert failed(found) == ["memory"]
        assert "lower policy.largest" in found["memory"].said
        change(made, f"largest = {1 << 33}", "largest = 1000000\nfold = false")
        assert failed(checked(made)) == []


class TestPing:
    def answers(
        self, made: LocalDeployment, names: list[str], seconds: float = 5.0
    ) -> dict[str, Answer]:
        async def run() -> list[Answer]:
            hub = CoordinatorService(made.coordinator())
            try:
                async with serving(made, names):
                    return await hub.ping(seconds)
            finally:
                hub.close()

        return {answer.name: answer for answer in asyncio.run(run())}

    def test_all_are_well(self, tmp_path: Path) -> None:
        """Under the permissions that the broker gives to each party; nothing stays there."""
        made = trial(tmp_path, TERMS)
        made.broker.start()
        try:
            found = self.answers(made, made.names)
            assert failed(checked(made)) == []
            streams = made.folder / "broker" / "streams"
            limit = time.monotonic() + 10  # the server removes files after it has answered
            while [p.name for p in streams.glob("*/*/streams/*")] != [STUDIES_STREAM]:
                assert time.monotonic() < limit, "a ping and a check leave no stream"
                time.sleep(0.05)
        finally:
            made.broker.stop()
        assert [found[name].wrong for name in made.names] == [[], [], []]
        notice = found[NORTH].notice
        assert notice is not None
        assert notice.roster == read_roster(made.folder / "roster.toml").roster.digest.hex()
        assert notice.offset is not None
        assert abs(notice.offset) < 5

    def test_what_is_wrong_is_told_by_name(
        self, made: LocalDeployment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One is missing, one lost its data, one has another roster: no edge is read for it."""
        path = made.folder / "roster.toml"
        first = read_roster(path)
        newer = first.rotate(
            "silo-3", new_identity(made.folder / "new.key").public, date(2031, 1, 1)
        )
        for name in (HUB, NORTH, "silo-2", "new"):
            newer = newer.sign(load_identity(made.folder / f"{name}.key"))
        write_roster(made.folder / "newer.toml", newer)
        other = made.silo_file("silo-2")
        other.write_text(other.read_text().replace('"roster.toml"', '"newer.toml"'))

        async def run() -> list[Answer]:
            hub = CoordinatorService(made.coordinator())
            try:
                async with serving(made, [NORTH, "silo-2"]):
                    (made.folder / f"{NORTH}.csv").unlink()
                    monkeypatch.setattr("silograph.nats.silo.load_silo", None)
                    return await hub.ping(3.0)
            finally:
                hub.close()

        found = {answer.name: answer.wrong for answer in asyncio.run(run())}
        assert found == {
            NORTH: ["its data check failed"],
            "silo-2": ["it has another roster"],
            "silo-3": [preflight._NO_ANSWER],
            HUB: [],
        }

    def test_from_the_command_line(self, made: LocalDeployment) -> None:
        result = CliRunner().invoke(
            app, ["study", "ping", "-c", str(made.folder / f"{HUB}.toml"), "--seconds", "0.3"]
        )
        assert result.exit_code == 1
        assert [line.split()[:2] for line in result.output.splitlines()] == [
            ["ok", HUB], *(["failed", name] for name in made.names),
        ]  # fmt: skip
        result = CliRunner().invoke(
            app,
            ["study", "ping", "-c", str(made.folder / f"{HUB}.toml"), "--seconds", "0.3", "--json"],
        )
        assert [one["ok"] for one in json.loads(result.output)] == [True, False, False, False]
