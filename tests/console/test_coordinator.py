"""A coordinator's console: plans, proposals that a person signs, progress and answers."""

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from silograph.console.app import Console
from silograph.console.coordinator import CoordinatorDesk, Draft, _take
from silograph.errors import ArgumentError, SilographError
from silograph.graph.fold import Fold
from silograph.methods.planner import Option as Way
from silograph.methods.study import read_proposal
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.health import ProgressFile, SiloProgress, StudyProgress
from silograph.page.answer import Facts
from silograph.party.approval import check_votes, votes_of
from silograph.party.keys import load_identity
from tests.cli.test_operations import ok
from tests.console.world import NASTY, NODE, Visitor, answered, console_of, deployment
from tests.support.local_deployment import HUB, LocalDeployment

FORM = {"query": "triangles", "epsilon": "1.5", "method": "feat", "protocol": "masked",
        "collusion": "1", "minutes": "30", "purpose": "Rings of fraud in 2030"}  # fmt: skip

_COMMITTEE = ("silo-1", "silo-2", "silo-3", HUB)
#: A question for every kind of answer.
WAYS = {
    "feat": Question("edges", 1.0, protocol="masked", purpose="x"),
    "feat+": Question("triangles", 2.0, "feat+", "masked", purpose="x"),
    "sealed": Question("triangles", 2.0, "sealed", collusion=0, purpose="x", members=_COMMITTEE),
    "baseline": Question("edges", 1.0, "baseline", purpose="x"),
    "release": Question("release", 1.0, protocol="masked", purpose="x"),
    "folded": Question("edges", 2.0, protocol="masked", purpose="x", fold=Fold(8)),
    "sealed fold": Question("triangles", 2.0, "sealed", collusion=0, purpose="x",
                            members=_COMMITTEE, fold=Fold(8)),
    "degrees": Question("degrees", 2.0, protocol="masked", purpose="x"),
}  # fmt: skip


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
            ({"k": "inf"}, "k is not a number"),
            ({"collusion": "nan"}, "collusion is not a number"),
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
        taken = anna.act("/plan", **FORM, take="sealed|committee||").text
        assert '<option value="sealed" selected>' in taken
        assert '<option value="committee" selected>' in taken
        assert "no formula" in anna.act("/plan", **FORM | {"query": "release"}).text

    def test_every_way_of_the_plan_can_be_taken(self, anna: Visitor, console: Console) -> None:
        """Also folds and both forms of feat+; what is taken can be proposed as it stands."""
        page = anna.act("/plan", **FORM).text
        ways = re.findall(r'name="take" value="([^"]*)"', page)
        assert len(ways) == page.count("<h3>") >= 5
        for way in ways:
            taken = Draft.of(FORM | {"take": way}).question()
            assert [taken.method, taken.protocol or ""] == way.split("|")[:2]
        (paper,) = (way for way in ways if "paper" in way)
        assert 'value="local=paper split=paper"' in anna.act("/plan", **FORM, take=paper).text
        assert anna.act("/propose", **FORM, take=paper).status_code == 303
        # A graph of so few nodes has no fold worth taking, so one is laid out as a plan would be.
        fold = Fold(1000, 300, 2)
        option = Way("feat", "masked", 1.0, 0.1, frozenset(), "", arguments={"fold": fold})
        assert _take(option) == "feat|masked|1000,300,2|"

    def test_folds(self, anna: Visitor, console: Console, made: LocalDeployment) -> None:
        """With hubs from a public list or from a hub search; a number alone names nobody."""
        listed = f"{NODE}003\r\n {NODE}001 \n"
        form = FORM | {"fold": "8,2", "hubs": listed}
        assert anna.act("/propose", **form).status_code == 303
        row = console.desk.store.runs()[-1]
        study = read_proposal(row.proposal)
        assert study is not None
        assert (study.index.groups, study.index.hubs) == (8, (f"{NODE}003", f"{NODE}001"))
        assert "into 8 groups; 2 hubs" in anna.get(f"/studies/{study.run}").text
        run = answered(made, Question("release", 5.0, "hubs", purpose="x"))
        page = anna.get("/propose").text
        assert f'<option value="{run}">' in page
        assert anna.act("/propose", **FORM, fold="8,3", search=run).status_code == 303
        study = read_proposal(console.desk.store.runs()[-1].proposal)
        table = (made.coordinator().state / "results" / f"{run}.hubs.csv").read_text().split()
        assert study is not None
        assert study.index.hubs == tuple(line.split(",")[0] for line in table[1:4])
        (somebody,) = console.people.everyone()
        for change, said in (
            ({"fold": "8,2"}, "the hubs of a study are a list"),
            ({"fold": "much"}, "is not a fold"),
            ({"hubs": "a"}, "hubs are for folded nodes"),
            ({"fold": "8,2", "hubs": "a"}, "the list has 1"),
            ({"fold": "8", "search": study.run}, "has not ended"),
            ({"fold": "8", "search": "../../etc"}, "no studies"),
        ):
            with pytest.raises(SilographError, match=said):
                console.desk.propose(somebody, Draft(FORM | change), "")  # type: ignore[union-attr]

    def test_a_plan_that_would_take_too_long(self, console: Console) -> None:
        universe = SimpleNamespace(size=10**9)
        desk = console.desk
        assert isinstance(desk, CoordinatorDesk)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(desk._service.party), "universe", universe)
            assert "nodes are for silograph plan" in desk.form(Draft(FORM))["plan"]["refusal"]

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
        parties = [SiloProgress("silo-1", "accepted", 1, 200), SiloProgress("silo-2", "undecided"),
                   SiloProgress("silo-3", "refused", 1, 200)]  # fmt: skip
        file.note(StudyProgress(row.run, "keys", parties, 1, 4))
        assert console.desk.version() != before, "pages are told"
        page = anna.get(f"/studies/{row.run}").text
        assert "2 of 3; keys, 25.0 %" in page
        assert '<span class="badge bad">refused</span>' in page
        assert "<script>document" not in page
        assert "2 of 3 have answered" in anna.get("/").text
        assert console.desk.version() == console.desk.version(), "or pages would load for ever"

    def test_when_each_phase_began_and_ended(
        self, anna: Visitor, console: Console, made: LocalDeployment
    ) -> None:
        """Of every party, also if another process carries the study on; open ones say so."""
        anna.act("/propose", **FORM)
        (row,) = console.desk.store.runs()
        began = datetime(2030, 3, 1, 23, 59, 58, tzinfo=UTC).timestamp()
        silo = SiloProgress("silo-1")
        for later, phase, answered_ in ((0, "proposed", "asked"), (0.5, "proposed", "accepted"),
                                        (90.25, "keys", "keys")):  # fmt: skip
            file = ProgressFile(made.coordinator().state, row.run, lambda: began + later)  # noqa: B023
            silo.phase = answered_
            file.note(StudyProgress(row.run, phase, [silo], 1, 4))
        page = " ".join(re.sub("<[^>]+>", " ", anna.get(f"/studies/{row.run}").text).split())
        assert "proposed 2030-03-01 23:59:58 2030-03-02 00:01:28 1:30 keys" in page
        assert "keys 2030-03-02 00:01:28 now The phases of each party" in page
        assert "asked 2030-03-01 23:59:58 23:59:58 0:00.5 accepted" in page

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

    def test_a_study_is_carried_once(
        self, anna: Visitor, console: Console, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However often a button is pressed; and not by somebody who may only look."""
        anna.act("/propose", **FORM)
        (row,) = console.desk.store.runs()
        started: list[object] = []
        alive = SimpleNamespace(poll=lambda: None)
        monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: started.append(1) or alive)
        where, before = f"/studies/{row.run}", console.desk.version()
        guest = Visitor(console, "guest")
        assert guest.act(f"{where}/carry").status_code == 400
        assert "Carry it on" not in guest.get(where).text
        assert started == []
        assert "Carry it on" in anna.get(where).text
        for _ in range(3):
            assert anna.act(f"{where}/carry").status_code == 303
        assert len(started) == 1
        assert "Carry it on" not in anna.get(where).text
        assert console.desk.version() != before, "pages are told"

    @pytest.mark.parametrize("way", WAYS)
    def test_an_answer_and_its_page(
        self, untouched: LocalDeployment, monkeypatch: pytest.MonkeyPatch, way: str
    ) -> None:
        """Of every method. How a page is laid out is tested elsewhere, and in the browser here."""
        monkeypatch.setattr("silograph.page.result.lay_out", _outline)
        run = answered(untouched, WAYS[way])
        with console_of(untouched.coordinator()) as console:
            anna = Visitor(console, "anna", untouched.folder / "anna.person.key")
            page = anna.get(f"/studies/{run}").text
            assert ("95 % interval" in page) == (way not in ("release", "degrees"))
            answer = anna.get(f"/studies/{run}/page")
            assert answer.status_code == 200, answer.text
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("sandbox allow-scripts allow-downloads; default-src 'none'")
            assert "allow-same-origin" not in policy
            kept = CoordinatorService(untouched.coordinator()).result(run)
        facts = json.loads(answer.text)
        assert facts["observers"] > 1
        assert facts["run"] == run
        if kept["answer"] is not None:
            for name in ("value", "interval"):
                assert json.dumps(facts[name]) == json.dumps(kept["answer"][name])
        # What was paid for answers more than was asked, where it is kept.
        assert (facts["more"] > 0) == (way in ("feat", "feat+", "folded", "degrees"))

    def test_a_hub_search_has_no_page(self, made: LocalDeployment, anna: Visitor) -> None:
        run = answered(made, Question("release", 1.0, "hubs", purpose="x"))
        assert "The page of this answer" not in anna.get(f"/studies/{run}").text
        answer = anna.get(f"/studies/{run}/page")
        assert answer.status_code == 400
        assert "no answer to make a page of" in answer.text

    def test_no_page_without_a_release(self, anna: Visitor, console: Console) -> None:
        anna.act("/propose", **FORM)
        (row,) = console.desk.store.runs()
        assert anna.get(f"/studies/{row.run}/page").status_code == 400


def _outline(facts: Facts) -> str:
    """A page for programs: what its facts say of the answer that was asked for."""
    if facts.vector is not None:
        numbers = facts.vector.values, facts.vector.lows, facts.vector.highs
        value, low, high = (each.tolist() for each in numbers)
    else:
        value, low, high = (getattr(facts.answers[0], name) for name in ("value", "low", "high"))
    return json.dumps(
        {"title": facts.title, "value": value, "interval": [low, high], "run": facts.run["run"],
         "more": len(facts.more), "observers": len(facts.observers)}
    )  # fmt: skip


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
    monkeypatch.setattr("silograph.page.result.lay_out", _outline)
    run, hub = answered(made, WAYS["baseline"]), made.folder / f"{HUB}.toml"
    ok("study", "result", run, "-c", hub, "--html", tmp_path / "answer.html")
    with console_of(made.coordinator()) as console:
        anna = Visitor(console, "anna", made.folder / "anna.person.key")
        assert anna.get(f"/studies/{run}/page").text == (tmp_path / "answer.html").read_text()
    assert "Edges" in (tmp_path / "answer.html").read_text()
