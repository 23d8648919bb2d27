"""The commands of an enrolment, as people type them, and a whole trial."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from silograph import clustered_power_law, split
from silograph.errors import ArgumentError, EnrolmentError, RosterError
from silograph.graph.samples import union
from silograph.party.roster import read_roster, roster_words
from tests.cli.test_operations import fails, ok, run
from tests.support.enrolment import EDGES, NODES, Enrolment, tree

SILOS = ("north", "south", "west")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("nodes.txt").write_text(NODES)
    Path("edges.csv").write_text(EDGES)
    return tmp_path


def joined() -> None:
    """Three silos that were admitted."""
    ok("invite", "payments", "--broker", "127.0.0.1:4222", "--nodes", "nodes.txt",
       "--folder", "hub")  # fmt: skip
    for name in SILOS:
        ok("join", "hub/payments.invitation", "--name", name, "--data", "edges.csv",
           "--nodes", "nodes.txt", "--folder", name)  # fmt: skip


def test_the_whole_way_with_questions(folder: Path) -> None:
    joined()
    said = ok("admit", *(f"{name}/{name}.answer" for name in SILOS), "--folder", "hub")
    words = roster_words(read_roster("hub/roster.next.toml").digest)
    assert all(f" {word}" in said for word in words)
    assert ok("roster", "words", "hub/roster.next.toml").split() == list(words)
    for name in SILOS:
        said = ok("join", "--welcome", f"hub/{name}.welcome", "--folder", name, typed="y\n")
        assert all(f" {word}" in said for word in words)
        assert f"{name}/{name}.signature: send it to hub" in said
    signatures = [f"{name}/{name}.signature" for name in SILOS]
    said = ok("admit", *signatures, "--folder", "hub", typed="y\n")
    assert "signed by all 4 parties" in said
    said = ok("join", "--welcome", "hub/payments.welcome", "--folder", "north")  # no question
    assert "silograph silo run --config north/silo.toml" in said
    assert read_roster("north/roster.toml").missing == ()


def test_nothing_is_signed_without_the_words(folder: Path) -> None:
    joined()
    answers = [f"{name}/{name}.answer" for name in SILOS]
    made = json.loads(ok("admit", *answers, "--folder", "hub", "--json"))
    right = " ".join(made["words"])
    wrong = " ".join([*made["words"][:-1], "zoo" if made["words"][-1] != "zoo" else "zone"])
    before = tree(folder)
    arrive = ("join", "--welcome", "hub/north.welcome", "--folder", "north")
    for words in (wrong, "", right.rpartition(" ")[0]):
        fails(RosterError, *arrive, "--words", words, match="somebody has another one")
    for typed in ("n\n", ""):
        assert run(*arrive, typed=typed).exit_code == 1
    assert tree(folder) == before
    ok(*arrive, "--words", right.upper())
    before = tree(folder)
    collect = ("admit", "north/north.signature", "--folder", "hub")
    fails(RosterError, *collect, "--words", wrong, match="somebody has another one")
    assert run(*collect, typed="n\n").exit_code == 1
    assert tree(folder) == before
    ok(*collect, "--words", right)


def test_a_consortium_is_founded_once(folder: Path) -> None:
    joined()
    again = ("invite", "payments", "--folder", "hub")
    fails(ArgumentError, *again, "--broker", "127.0.0.1:1", match="is there already")
    ok(*again, "--epsilon", "2")
    ok(*again, "--role", "helper")
    assert {path.name for path in Path("hub").glob("*.invitation")} == {
        "payments.invitation",
        "payments-helper.invitation",
    }


def test_answers_and_signatures_apart(folder: Path, tmp_path: Path) -> None:
    made = Enrolment(tmp_path)
    made.join("north")
    made.admit("north")
    made.arrive("north")
    both = (made.answer("north"), made.signature("north"))
    fails(EnrolmentError, "admit", *both, match="answer and signature")
    fails(EnrolmentError, "admit", made.invitation, match="not invitation")


# --- a trial --------------------------------------------------------------------------------------


@pytest.fixture
def files(folder: Path) -> tuple[list[str], int]:
    """Edge files of three silos, and how many edges there are."""
    silos = split(clustered_power_law(60, edges_per_node=4, seed=1), 3, rate=0.4)
    for name, silo in zip("abc", silos, strict=True):
        rows = "\n".join(f"{u},{v}" for u, v in silo.pairs.tolist())
        Path(f"{name}.csv").write_text(f"from,to\n{rows}\n")
    return ["a.csv", "b.csv", "c.csv"], len(union(silos))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "silograph", "up", *arguments]


@pytest.mark.deploy
@pytest.mark.whole  # the page of the manual runs it, too
@pytest.mark.parametrize("fold", [(), ("--fold", "40")])
def test_up_answers_and_leaves_nothing(
    fold: tuple[str, ...], files: tuple[list[str], int], tmp_path: Path
) -> None:
    names, truth = files
    before = set(tmp_path.iterdir())
    done = subprocess.run(
        command("--silos", *names, "--epsilon", "3", *fold, "--json"),
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    answer = found["answer"]
    assert abs(answer["value"] - truth) < 6 * answer["stderr"]
    assert found["spent"] == {"a": 3.0, "b": 3.0, "c": 3.0}
    assert not Path(found["folder"]).exists()
    assert not any(map(alive, found["pids"]))
    assert set(tmp_path.iterdir()) == before


@pytest.mark.deploy
@pytest.mark.whole
def test_up_can_stay_and_can_be_ended(files: tuple[list[str], int], tmp_path: Path) -> None:
    names, _ = files
    kept = subprocess.run(
        command(*names, "--keep", "--json"), capture_output=True, text=True, timeout=120, check=True
    )
    found = json.loads(kept.stdout)
    try:
        assert all(map(alive, found["pids"]))
        hub = tmp_path / "silograph-trial" / "hub" / "coordinator.toml"
        ok("study", "propose", "edges", "--config", hub, "--epsilon", "1")
    finally:
        for pid in found["pids"]:
            os.kill(pid, signal.SIGTERM)
    # Ended while it runs, it takes its processes along.
    with subprocess.Popen(
        command(*names, "--folder", "second"), stdout=subprocess.PIPE, text=True
    ) as process:
        log = tmp_path / "second" / "a" / "service.log"
        limit = time.monotonic() + 60
        while not log.exists() and time.monotonic() < limit:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 5
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(tmp_path / "second") not in listed.stdout
