"""A coordinator's console: plans, proposals that a person signs, progress and answers."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from silograph.console.app import Console
from silograph.console.coordinator import CoordinatorDesk, Draft
from silograph.errors import ArgumentError
from silograph.graph.samples import union
from silograph.methods.study import read_proposal
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.health import ProgressFile, SiloProgress, StudyProgress
from silograph.party.approval import check_votes, votes_of
from silograph.party.keys import load_identity
from tests.cli.test_operations import ok
from tests.console.world import NASTY, Visitor, console_of, deployment, named
from tests.support.local_deployment import HUB, LocalDeployment

FORM = {"query": "triangles", "epsilon": "1.5", "method": "feat", "protocol": "masked",
        "collusion": "1", "minutes": "30", "purpose": "Rings of fraud in 2030"}  # fmt: skip


@pytest.fixture
def made(tmp_path: Path) -> LocalDeployment:
    return deployment(tmp_path)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> LocalDeployment:
    """One for all tests that leave nothing behind."""
    return deployment(tmp_path_factory.mktemp("untouched"))


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The processes that would carry studies; there is no broker here."""
    found: list[list[str]] = []

    class Process:
        def __init__(self, command: list[str], **_: Any) -> None:
            found.append(command)

        def poll(self) -> int:
            return 0

    monkeypatch.setattr(subprocess, "Popen", Process)
    return found


@pytest.fixture
def console(made: LocalDeployment, carried: list[list[str]]) -> Iterator[Console]:
    with console_of(made.coordinator()) as console:
        yield console


@pytest.fixture
def anna(console: Console, made: LocalDeployment) -> Visitor:
    return Visitor(console, "anna", made.folder / "anna.person.key")


class TestProposing:
    def test_with_the_persons_key(
        self, anna: Visitor, console: Console, made: LocalDeployment, carried: list[list[str]]
    ) -> None:
        answer = anna.act("/propose", **FORM, silos="silo-1,silo-3")
        assert answer.status_code == 303, answer.text
        (row,) = console.desk.store.runs()
        study = read_proposal(row.proposal)
        assert study is not None
        assert study.silos == ("silo-1", "silo-3")
        assert (study.purpose, study.epsilon) == ("Rings of fraud in 2030", 1.5)
        (vote,) = votes_of(console.desk.trail)
        assert (vote.by, vote.decision) == ("anna", "proposed")
        assert check_votes(console.desk.trail, made.coordinator().approvers) == []
        (command,) = carried
        assert command[1:6] == ["-m", "silograph", "study", "watch", study.run]

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"epsilon": "much"}, "epsilon is not a number"),
            ({"epsilon": ""}, "epsilon is missing"),
            ({"epsilon": "-1"}, "epsilon"),
            ({"epsilon": "nan"}, "epsilon"),
            ({"purpose": ""}, "must have a reason"),
            ({"query": "everything"}, "unknown query"),
            ({"method": "magic"}, "unknown method"),
            ({"k": "1.5"}, "not a whole number"),
            ({"minutes": "1e9"}, "at most a week"),
            ({"options": "split"}, "name=value"),
            ({"silos": "nobody"}, "not a silo"),
        ],
    )
    def test_what_cannot_be_asked(
        self,
        untouched: LocalDeployment,
        carried: list[list[str]],
        change: dict[str, str],
        said: str,
    ) -> None:
        with console_of(untouched.coordinator()) as console:
            anna = Visitor(console, "anna", untouched.folder / "anna.person.key")
            answer = anna.act("/propose", **FORM | change)
            assert answer.status_code == 400
            assert said in answer.text
            assert console.desk.store.runs() == []
            assert carried == []

    def test_who_has_no_key_proposes_nothing(self, console: Console) -> None:
        guest = Visitor(console, "guest")
        assert guest.act("/propose", **FORM).status_code == 400
        assert console.desk.store.runs() == []

    def test_the_plan_is_beside_the_form(self, anna: Visitor) -> None:
        page = anna.act("/plan", **FORM).text
        for part in ("best without more trust", "sealed committee", "Needs trust", "sent by a silo",
                     "Rings of fraud"):  # fmt: skip
            assert part in page, part
        taken = anna.act("/plan", **FORM, take="sealed committee").text
        assert '<option value="sealed" selected>' in taken
        assert '<option value="committee" selected>' in taken
        assert "no formula" in anna.act("/plan", **FORM | {"query": "release"}).text

    def test_a_draft_keeps_no_secret(self, anna: Visitor) -> None:
        page = anna.act("/plan", **FORM, passphrase="a long one").text  # noqa: S106
        assert "a long one" not in page

    def test_numbers(self) -> None:
        draft = Draft({"epsilon": " 1,5 ", "k": "3"})
        assert (draft.number("epsilon"), draft.whole("k"), draft.number("no")) == (1.5, 3, None)
        with pytest.raises(ArgumentError, match="epsilon is missing"):
            Draft({}).question()


class TestLooking:
    def test_progress_by_silo(self, anna: Visitor, console: Console, made: LocalDeployment) -> None:
        anna.act("/propose", **FORM | {"purpose": NASTY})
        (row,) = console.desk.store.runs()
        page = anna.get(f"/studies/{row.run}").text
        assert "Nobody has carried it yet" in page
        before = console.desk.version()
        file = ProgressFile(made.coordinator().state, row.run)
        parties = [SiloProgress("silo-1", "accepted", 1, 200), SiloProgress("silo-2"),
                   SiloProgress("silo-3", "refused", 1, 200)]  # fmt: skip
        file.note(StudyProgress(row.run, "keys", parties, 1, 4))
        assert console.desk.version() != before, "pages are told"
        page = anna.get(f"/studies/{row.run}").text
        assert "2 of 3; keys, 25.0 %" in page
        assert '<span class="badge bad">refused</span>' in page
        assert "<script>document" not in page
        assert "2 of 3 have answered" in anna.get("/").text

    def test_ending_one(self, anna: Visitor, console: Console, carried: list[list[str]]) -> None:
        anna.act("/propose", **FORM)
        (row,) = console.desk.store.runs()
        where = f"/studies/{row.run}"
        assert anna.act(f"{where}/abort", reason="").status_code == 400
        assert anna.act(f"{where}/abort", reason="a mistake").status_code == 303
        (row,) = console.desk.store.runs()
        assert row.decision == "abort"
        assert [v.decision for v in votes_of(console.desk.trail)] == ["proposed", "aborted"]
        assert len(carried) == 2
        assert anna.act(f"{where}/carry").status_code == 303

    def test_an_answer_and_its_page(
        self, anna: Visitor, made: LocalDeployment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The page itself is tested elsewhere, and in the browser here."""
        monkeypatch.setattr(
            "silograph.console.coordinator.result_page", lambda asked: f"a page of {asked.query}"
        )
        run = _answered(made)
        page = anna.get("/").text
        assert "done" in page
        page = anna.get(f"/studies/{run}").text
        assert "95 % interval" in page
        answer = anna.get(f"/studies/{run}/page")
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("sandbox allow-scripts allow-downloads; default-src 'none'")
        assert "allow-same-origin" not in policy
        assert answer.text == "a page of edges"

    def test_no_page_without_a_release(self, anna: Visitor, console: Console) -> None:
        anna.act("/propose", **FORM)
        (row,) = console.desk.store.runs()
        assert anna.get(f"/studies/{row.run}/page").status_code == 400


def _answered(made: LocalDeployment) -> str:
    """A study that is done, with its release, as the service keeps it."""
    from silograph.dp.channel import Channel
    from silograph.estimators.release import Release
    from silograph.methods.method import answered

    service = CoordinatorService(made.coordinator())
    key = load_identity(made.folder / "anna.person.key")
    try:
        plan = service.propose(Question("edges", 1.0, protocol="masked", purpose="x"), 60.0, key)
        drawn = Release.draw(union(named()), Channel.symmetric(1.0), seed=1)
        path = made.coordinator().state / "results" / f"{plan.study.run}.release"
        drawn.save(path)
        kept = {
            "study": json.loads(plan.study.encode()),
            "protocol": plan.protocol,
            "answer": answered(drawn, plan.study).answer.to_dict(),  # type: ignore[union-attr]
            "views": [],
            "release": str(path),
            "seconds": 1.0,
            "bytes": {"received": 10, "sent": 10},
        }
        path.with_name(f"{plan.study.run}.json").write_text(json.dumps(kept))
        service.party.end(plan.study.run, "done")
        return plan.study.run
    finally:
        service.close()


def test_the_desk_goes_on_where_the_console_ends(made: LocalDeployment) -> None:
    """What carries a study is no child that ends with its console: it has a session of its own."""
    desk = CoordinatorDesk(made.coordinator())
    try:
        with pytest.MonkeyPatch.context() as patch:
            seen: dict[str, Any] = {}
            patch.setattr(subprocess, "Popen", lambda command, **more: seen.update(more))
            service = CoordinatorService(made.coordinator())
            key = load_identity(made.folder / "anna.person.key")
            plan = service.propose(Question("edges", 1.0, purpose="x", protocol="masked"), 60, key)
            service.close()
            desk.carry(plan.study.run)
        assert seen["start_new_session"] is True
    finally:
        desk.close()


def test_the_command_line_writes_the_same_page(
    made: LocalDeployment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("silograph.page.result.lay_out", lambda facts: f"page: {facts.title}")
    run, hub = _answered(made), made.folder / f"{HUB}.toml"
    ok("study", "result", run, "-c", hub, "--html", tmp_path / "answer.html")
    with console_of(made.coordinator()) as console:
        anna = Visitor(console, "anna", made.folder / "anna.person.key")
        assert anna.get(f"/studies/{run}/page").text == (tmp_path / "answer.html").read_text()
    assert "Edges" in (tmp_path / "answer.html").read_text()
