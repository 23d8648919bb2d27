"""A silo's console: what people see of a study, what they decide, and what they never see."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from markupsafe import escape

from silograph.console.app import Console
from silograph.estimators.reference import guess
from silograph.ledger.book import Ledger
from silograph.methods.catalogue import plan_study
from silograph.methods.fold.expected import FoldChoice
from silograph.methods.planner import fold_error
from silograph.methods.prediction import Question as PlannedQuestion
from silograph.methods.prediction import baseline_error, feat_error
from silograph.methods.sealed.method import SettledSealed, expected_error
from silograph.methods.study import Index, StudyMember
from silograph.party import keys
from silograph.party.approval import check_approved, check_votes, votes_of
from silograph.party.opened import open_store
from silograph.party.trail import Trail
from tests.console.world import NASTY, NODE, Visitor, console_of, deployment, propose
from tests.support.local_deployment import LocalDeployment

PASSPHRASE = "a long one"  # noqa: S105


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("silograph.console.desk._REACH_SECONDS", 0.1)


@pytest.fixture
def made(tmp_path: Path) -> LocalDeployment:
    return deployment(tmp_path)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> LocalDeployment:
    """One for all tests that leave nothing behind; a study waits there."""
    made = deployment(tmp_path_factory.mktemp("untouched"))
    propose(made)
    return made


@pytest.fixture
def console(made: LocalDeployment) -> Iterator[Console]:
    with console_of(made.silo("silo-1")) as console:
        yield console


def person(console: Console, made: LocalDeployment, name: str) -> Visitor:
    return Visitor(console, name, made.folder / f"{name}.person.key")


class TestDeciding:
    def test_two_people_approve(self, made: LocalDeployment, console: Console) -> None:
        study = propose(made)
        anna, ben = person(console, made, "anna"), person(console, made, "ben")
        where = f"/studies/{study.run}"
        assert "Rings of fraud in 2030" in anna.get("/").text
        answer = anna.act(f"{where}/decide", decision="accepted", reason="as agreed")
        assert answer.headers["location"] == f"{where}?said=waits"
        page = anna.get(where).text
        assert "You have approved it" in page
        assert 'value="accepted"' not in page
        answer = anna.act(f"{where}/decide", decision="accepted", reason="again")
        assert answer.status_code == 400
        assert "anna has approved" in answer.text
        answer = ben.act(f"{where}/decide", decision="accepted", reason="and by me")
        assert answer.headers["location"] == f"{where}?said=approved"
        row = console.desk.store.run(study.run)
        assert row is not None
        assert (row.decision, row.decided_by) == ("accepted", "anna,ben")
        config = made.silo("silo-1")
        check_approved(console.desk.trail, study, "silo-1", config.policy, config.approvers)
        assert check_votes(console.desk.trail, config.approvers) == []

    def test_at_the_same_time(self, made: LocalDeployment, console: Console) -> None:
        """Nobody counts twice, and two who press at once are two."""
        study = propose(made)
        people = [person(console, made, name) for name in ("anna", "anna", "ben")]
        # A new token ended the first session: both of anna's windows have the second one.
        people[0].client.cookies = people[1].client.cookies
        checks = [visitor.check for visitor in people]
        together = Barrier(3)

        def approve(visitor: Visitor, check: str) -> int:
            together.wait()
            said = {"decision": "accepted", "reason": "as agreed", "check": check}
            return int(visitor.post(f"/studies/{study.run}/decide", **said).status_code)

        with ThreadPoolExecutor(3) as pool:
            found = sorted(pool.map(approve, people, checks))
        assert found == [303, 303, 400]
        assert sorted(vote.by for vote in votes_of(console.desk.trail)) == ["anna", "ben"]
        row = console.desk.store.run(study.run)
        assert row is not None
        assert row.decision == "accepted"
        assert sorted(row.decided_by.split(",")) == ["anna", "ben"]

    def test_one_refuses(self, made: LocalDeployment, console: Console) -> None:
        study = propose(made)
        ben = person(console, made, "ben")
        answer = ben.act(f"/studies/{study.run}/decide", decision="refused", reason="not for us")
        assert answer.headers["location"].endswith("said=refused")
        (vote,) = votes_of(console.desk.trail)
        assert (vote.by, vote.decision, vote.reason) == ("ben", "refused", "not for us")
        vote.check()

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"decision": "accepted", "reason": "  "}, "must have a reason"),
            ({"decision": "accepted", "reason": "x" * 281}, "at most 280"),
            ({"decision": "accepted", "reason": "two\nlines"}, "one line"),
            ({"decision": "aborted", "reason": "x"}, ""),
            ({"reason": "x"}, ""),
        ],
    )
    def test_what_cannot_be_said(
        self, untouched: LocalDeployment, fields: dict[str, str], said: str
    ) -> None:
        with console_of(untouched.silo("silo-1")) as console:
            anna = person(console, untouched, "anna")
            answer = anna.act(f"/studies/{1:032x}/decide", **fields)
            assert answer.status_code == 400
            assert said in answer.text
            assert votes_of(console.desk.trail) == []

    def test_who_has_no_key_looks(self, made: LocalDeployment, console: Console) -> None:
        study = propose(made)
        guest = Visitor(console, "guest")
        assert "you can look and not decide" in guest.get(f"/studies/{study.run}").text
        answer = guest.act(f"/studies/{study.run}/decide", decision="accepted", reason="let me")
        assert answer.status_code == 400
        assert votes_of(console.desk.trail) == []

    def test_a_key_that_is_not_enrolled(self, made: LocalDeployment, console: Console) -> None:
        study = propose(made)
        eve = Visitor(console, "eve", made.folder / "hub.key")
        answer = eve.act(f"/studies/{study.run}/decide", decision="accepted", reason="let me")
        assert "not that of an approver" in answer.text
        assert votes_of(console.desk.trail) == []

    def test_a_sealed_key_asks_each_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(keys, "_LOG_N", 10)  # a cheap passphrase
        made = deployment(tmp_path, ("anna",), wanted=1, passphrase=PASSPHRASE)
        study = propose(made)
        with console_of(made.silo("silo-1")) as console:
            anna = person(console, made, "anna")
            where = f"/studies/{study.run}"
            assert 'name="passphrase"' in anna.get(where).text
            said = {"decision": "accepted", "reason": "as agreed"}
            for wrong in ("", "a wrong one"):
                answer = anna.act(f"{where}/decide", passphrase=wrong, **said)
                assert answer.status_code == 400
                assert wrong == "" or wrong not in answer.text
            answer = anna.act(f"{where}/decide", passphrase=PASSPHRASE, **said)
            assert answer.status_code == 303
            everything = b"".join(p.read_bytes() for p in made.silo("silo-1").state.rglob("*")
                                  if p.is_file())  # fmt: skip
            assert PASSPHRASE.encode() not in everything

    def test_where_nobody_is_enrolled(self, tmp_path: Path) -> None:
        made = deployment(tmp_path, (), wanted=1)
        study = propose(made)
        with console_of(made.silo("silo-1")) as console:
            anna = Visitor(console, "anna", made.folder / "hub.key")
            answer = anna.act(f"/studies/{study.run}/decide", decision="accepted", reason="me")
            assert "enrols no approvers" in answer.text
            assert answer.status_code == 400


class TestPages:
    def test_texts_of_others_are_text(self, made: LocalDeployment, console: Console) -> None:
        study = propose(made, purpose=NASTY)
        anna = person(console, made, "anna")
        anna.act(f"/studies/{study.run}/decide", decision="accepted", reason=NASTY[:200])
        for path in ("/", f"/studies/{study.run}", "/trail"):
            page = anna.get(path).text
            assert "<script>document" not in page
            assert "<img" not in page
            assert "{{ 7" in page or path == "/trail"
            assert str(escape(NASTY[:26])) in page
        answer = anna.act(f"/studies/{study.run}/decide", decision="refused", reason="<b>\x07")
        assert "<b>" not in answer.text

    def test_a_study_in_full(self, made: LocalDeployment, console: Console) -> None:
        study = propose(made)
        page = person(console, made, "anna").get(f"/studies/{study.run}").text
        for part in ("Rings of fraud", "hub", "feat masked", "silo-1, silo-2, silo-3",
                     "The coordinator together with any silo", "wants 2 approvals", "promised",
                     study.digest.hex(), "What the answer will be worth"):  # fmt: skip
            assert part in page, part

    @pytest.mark.parametrize(
        "way",
        [
            {},
            {"method": "baseline", "protocol": ""},
            {"index": Index("fold", 40, (), 1, "strip=0;case=none")},
            {"method": "feat+", "options": {"local": "paper", "split": "paper"}},
            {"method": "feat+", "options": {"split": "0.9,0.05,0.05", "bound": 5.0}},
            {"method": "sealed", "protocol": "committee", "options": {"answers": "triangles"},
             "collusion": 0, "delta": 2.0**-60,
             "members": (*(StudyMember(f"silo-{i}", "silo") for i in (1, 2, 3)),
                         StudyMember("hub", "coordinator"))},
        ],
    )  # fmt: skip
    def test_its_error(self, made: LocalDeployment, console: Console, way: dict[str, Any]) -> None:
        """Of the study as it is, not of the best that its method could do."""
        study = propose(made, **way)
        page = person(console, made, "anna").get(f"/studies/{study.run}").text
        found = re.search(r"about ± ([\d.,e+]+) on about ([\d.,]+)", page)
        assert found, page
        error = float(found[1].replace(",", ""))
        settled, asked = plan_study(study), PlannedQuestion("triangles", 1.5, 3, study.collusion)
        if "index" in way:
            fold = FoldChoice(40, 0, 1, 0.0, 0.0, 0.0, 0, 0)
            law = fold_error(guess(study.nodes), asked, "masked", fold)
            assert error == pytest.approx(law, rel=1e-3)
        elif study.method in ("feat", "baseline"):
            formula = baseline_error if study.method == "baseline" else feat_error
            more = () if study.method == "baseline" else ("masked",)
            assert error == pytest.approx(formula(guess(study.nodes), asked, *more), rel=1e-3)
        elif study.method == "sealed":
            assert isinstance(settled, SettledSealed)
            law = expected_error(guess(study.nodes), asked, settled.noise)
            assert error == pytest.approx(law, rel=1e-3)
        assert ("No usable answer is likely" in page) == (study.method != "sealed")

    def test_no_formula(self, made: LocalDeployment, console: Console) -> None:
        study = propose(made, query="degree_histogram")
        page = person(console, made, "anna").get(f"/studies/{study.run}").text
        assert "There is no formula" in page

    def test_its_phases(self, made: LocalDeployment, console: Console) -> None:
        """From the trail: how long people took, and how long the machines."""
        began = datetime(2030, 3, 1, 12, tzinfo=UTC).timestamp()
        study, where = propose(made), f"/studies/{1:032x}"
        anna = person(console, made, "anna")
        assert "waits for a decision" in anna.get(where).text.split('id="phases"')[1]
        trail = Trail(console.desk.store, lambda: began)
        trail.decided(study.id, "anna", "accepted")
        began += 3
        trail.spent(study.id, "trial", 1.5, 0.0, 1, 1, bytes(32))
        assert '<span class="badge half">now</span>' in anna.get(where).text
        began += 3723
        trail.ended(study.id, "done")
        page = " ".join(re.sub("<[^>]+>", " ", anna.get(where).text).split())
        assert "prepares; nothing is spent yet 2030-03-01 12:00:00 12:00:03 0:03" in page
        assert "counts 12:00:03 13:02:06 1:02:03" in page

    def test_a_study_that_makes_no_sense(self, made: LocalDeployment, console: Console) -> None:
        members = tuple(StudyMember(name, "silo") for name in ("silo-1", "silo-2", "silo-3"))
        study = propose(made, method="sealed", protocol="committee",
                        members=(*members, StudyMember("hub", "coordinator")), nodes=5,
                        query="kstars", k=9)  # fmt: skip
        answer = person(console, made, "anna").get(f"/studies/{study.run}")
        assert answer.status_code == 200
        assert "cannot be carried out" in answer.text

    @pytest.mark.parametrize("run", ["0" * 31, "x" * 32, "..%2f..", f"{9:032x}"])
    def test_no_such_study(self, untouched: LocalDeployment, run: str) -> None:
        with console_of(untouched.silo("silo-1")) as console:
            answer = person(console, untouched, "anna").get(f"/studies/{run}")
            assert answer.status_code in (400, 404)

    def test_the_budget(self, made: LocalDeployment, console: Console) -> None:
        anna = person(console, made, "anna")
        assert "no ledger" in anna.get("/budget").text
        with Ledger(made.silo("silo-1").ledger.path) as ledger:
            ledger.set_limit("trial", 10.0, collusion=1)
            for number in range(3):
                ledger.spend(
                    "trial",
                    f"{number:032x}",
                    "study x",
                    {0: 1.5, 1: 2.0},
                    method="feat",
                    view="coordinator + t silos",
                )
        study = propose(made, 7)
        page = anna.get("/budget").text
        assert "3 studies took ε\xa0=\xa06 of 10; 4 is left." in page
        assert "pays for 2 more studies" in page
        assert page.count("<circle") == 3
        assert "under a limit of 10" in page
        assert "spent <strong>6</strong>" in page
        page = anna.get(f"/studies/{study.run}").text
        assert "this study <strong>1.5</strong>" in page
        assert "left after it <strong>2.5</strong>" in page
        propose(made, 8, epsilon=9.0)
        assert "more than is left" in anna.get(f"/studies/{8:032x}").text

    def test_verification(self, made: LocalDeployment, console: Console) -> None:
        study = propose(made)
        anna = person(console, made, "anna")
        anna.act(f"/studies/{study.run}/decide", decision="accepted", reason="as agreed")
        page = anna.get("/trail?verify=1").text
        assert "The trail is whole." in page
        assert "all 1 signatures hold" in page
        store = open_store(made.silo("silo-1"))
        with store.together() as connection:
            connection.execute("DROP TRIGGER trail_no_update")
            connection.execute(
                "UPDATE trail SET content = replace(content, 'as agreed', 'never seen')"
            )
        store.close()
        for path in ("/trail", "/trail?verify=1"):
            page = anna.get(path).text
            assert "The trail is not whole." in page
            assert "never seen" not in page

    def test_preflight(self, made: LocalDeployment, console: Console) -> None:
        page = person(console, made, "anna").act("/health").text
        assert "The service has not been started here" in page
        assert page.count("not fine") >= 3, "no service, no broker, no ledger"
        assert "3 silos, coordinator hub" in page
        assert "seen by nobody else" not in page, "edges are not even counted"


def test_no_edge_is_in_any_response(made: LocalDeployment, console: Console) -> None:
    """Every page, with everything in it that can be, is searched for the name of any node."""
    study = propose(made)
    with Ledger(made.silo("silo-1").ledger.path) as ledger:
        ledger.set_limit("trial", 10.0, collusion=1)
        ledger.spend(
            "trial",
            f"{3:032x}",
            "study x",
            {0: 1.5, 1: 2.0},
            method="feat",
            view="coordinator + t silos",
        )
    anna = person(console, made, "anna")
    where = f"/studies/{study.run}"
    seen = [anna.get(path) for path in ("/", "/budget", "/trail?verify=1", "/roster", "/health",
                                        where, "/nothing")]  # fmt: skip
    seen += [anna.act("/health"), anna.act(f"{where}/decide", decision="accepted", reason="yes"),
             anna.get(where), anna.act(f"{where}/decide", decision="x")]  # fmt: skip
    text = "\n".join(answer.text + str(answer.headers) for answer in seen)
    assert "Rings of fraud" in text
    assert (made.folder / "silo-1.csv").read_text().count(NODE) == 90
    assert NODE not in text


def test_the_desk_reads_no_edges(made: LocalDeployment) -> None:
    """The console of a silo works where the file of its edges cannot be read at all."""
    (made.folder / "silo-1.csv").unlink()
    study = propose(made)
    with console_of(made.silo("silo-1")) as console:
        anna = person(console, made, "anna")
        for path in ("/", f"/studies/{study.run}", "/budget", "/trail", "/health"):
            assert anna.get(path).status_code == 200
        assert anna.act("/health").status_code == 200
