"""Decisions of people: signed, bound to one study, counted by key, and found out when forged."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from silograph.errors import ArgumentError, ConfigError, PolicyError, StudyError, TrailError
from silograph.messages.identity import Identity, Member, Roster
from silograph.methods.study import Study
from silograph.party.approval import (
    ACCEPTED,
    REFUSED,
    Decided,
    check_approved,
    check_votes,
    decide,
    votes_of,
)
from silograph.party.policy import Policy
from silograph.party.store import Store
from silograph.party.trail import Trail

ANNA, BEN, EVE, HUB = (Identity(bytes([i]) * 32) for i in range(1, 5))
PEOPLE = (Member("anna", ANNA.public), Member("ben", BEN.public))
TWO = Policy(("hub",), approvals=2)
ONE = Policy(("hub",))
ROSTER = Roster(
    Member("hub", HUB.public),
    (Member("north", Identity(bytes([9]) * 32).public),
     Member("south", Identity(bytes([10]) * 32).public)),
)  # fmt: skip
MOMENT = 1_900_000_000.0


def study(number: int = 1, purpose: str = "fraud rings") -> Study:
    return Study(
        run=f"{number:032x}", query="edges", method="feat", protocol="masked", epsilon=1.0,
        delta=0.0, collusion=1, universe="ab" * 32, nodes=10, roster=ROSTER.digest.hex(),
        coordinator="hub", silos=("north", "south"), deadline=2_000_000_000, purpose=purpose,
    )  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.db", "north")
    for number in (1, 2):
        add(made, study(number))
    yield made
    made.close()


def add(store: Store, one: Study) -> None:
    store.add(one.run, one.propose(ROSTER, HUB))
    Trail(store).proposed(one.id, "hub", one.digest)


Vote = Callable[..., Decided]


@pytest.fixture
def vote(store: Store) -> Vote:
    def cast(
        key: Identity | None, decision: str = ACCEPTED, reason: str = "as agreed",
        policy: Policy = TWO, people: tuple[Member, ...] = PEOPLE, number: int = 1,
    ) -> Decided:  # fmt: skip
        return decide(
            store, "north", policy, people, f"{number:032x}", decision, reason=reason, key=key,
            clock=lambda: MOMENT,
        )  # fmt: skip

    return cast


def decision(store: Store, number: int = 1) -> tuple[str, str]:
    row = store.run(f"{number:032x}")
    assert row is not None
    return row.decision, row.decided_by


class TestTwoKeys:
    def test_the_second_key_decides(self, store: Store, vote: Vote) -> None:
        assert vote(ANNA) == Decided(study(), "", 1)
        assert decision(store) == ("", "")
        with pytest.raises(PolicyError, match="has 1 valid approvals"):
            check_approved(Trail(store), study(), "north", TWO, PEOPLE)
        assert vote(BEN).decision == ACCEPTED
        assert decision(store) == (ACCEPTED, "anna,ben")
        check_approved(Trail(store), study(), "north", TWO, PEOPLE)

    def test_one_person_is_not_two(self, store: Store, vote: Vote) -> None:
        vote(ANNA)
        with pytest.raises(StudyError, match="anna has approved"):
            vote(ANNA)
        assert decision(store) == ("", "")

    def test_two_names_of_one_key_are_one(self, store: Store, vote: Vote) -> None:
        vote(ANNA)
        alias = (*PEOPLE, Member("anna-too", ANNA.public))
        with pytest.raises(StudyError, match="has approved"):
            vote(ANNA, people=alias)

    def test_one_refusal_is_enough(self, store: Store, vote: Vote) -> None:
        vote(ANNA)
        assert vote(BEN, REFUSED, "not on our behalf").decision == REFUSED
        assert decision(store) == (REFUSED, "ben")

    def test_a_person_may_think_again(self, store: Store, vote: Vote) -> None:
        vote(ANNA)
        vote(ANNA, REFUSED)
        assert decision(store) == (REFUSED, "anna")
        with pytest.raises(PolicyError, match="has 0 valid"):
            check_approved(Trail(store), study(), "north", ONE, PEOPLE)

    def test_an_approval_counts_for_its_own_study(self, store: Store, vote: Vote) -> None:
        vote(ANNA)
        assert vote(BEN, number=2).missing == 1

    def test_a_person_who_left_counts_no_more(self, store: Store, vote: Vote) -> None:
        vote(ANNA)
        assert vote(BEN, people=(PEOPLE[1], Member("eve", EVE.public))).missing == 1


class TestWhoMay:
    def test_a_stranger(self, store: Store, vote: Vote) -> None:
        with pytest.raises(PolicyError, match="not that of an approver"):
            vote(EVE)
        assert votes_of(Trail(store)) == []

    @pytest.mark.parametrize("word", [ACCEPTED, REFUSED])
    def test_the_operator_no_more(self, vote: Vote, word: str) -> None:
        with pytest.raises(PolicyError, match="must be signed"):
            vote(None, word)

    def test_the_operator_where_nobody_is_enrolled(self, store: Store, vote: Vote) -> None:
        assert vote(None, people=(), policy=ONE).decision == ACCEPTED
        assert decision(store) == (ACCEPTED, "operator")
        (said,) = votes_of(Trail(store))
        assert (said.by, said.reason, said.signed) == ("operator", "as agreed", False)
        assert check_votes(Trail(store)) == []
        check_approved(Trail(store), study(), "north", ONE, ())

    def test_without_a_reason_nothing_is_added(self, store: Store, vote: Vote) -> None:
        vote(None, people=(), policy=ONE, reason="")
        assert votes_of(Trail(store)) == []

    def test_a_key_that_nobody_asked_for(self, vote: Vote) -> None:
        with pytest.raises(PolicyError, match="enrols no approvers"):
            vote(ANNA, people=())

    def test_a_reason_is_needed_and_fits(self, vote: Vote) -> None:
        with pytest.raises(PolicyError, match="must have a reason"):
            vote(ANNA, reason="  ")
        for bad in ("two\nlines", "\x1b[2J", "x" * 401):
            with pytest.raises(ArgumentError, match="one line"):
                vote(ANNA, reason=bad)

    def test_what_is_over(self, store: Store, vote: Vote) -> None:
        vote(ANNA, REFUSED)
        with pytest.raises(StudyError, match="already refused"):
            vote(BEN)
        store.end(study().run, "refused")
        with pytest.raises(StudyError, match="is over"):
            vote(BEN, REFUSED)


def forged(store: Store, **changes: object) -> None:
    """The last vote with other content, in a chain that fits: whoever has the file can do this."""
    from silograph.party.trail import Mark, _chained

    with closing(sqlite3.connect(store.path)) as raw:
        raw.execute("DROP TRIGGER trail_no_update")
        rows = raw.execute("SELECT number, time, event, content, chain FROM trail").fetchall()
        number, now, event, content, _ = rows[-1]
        other = json.dumps(json.loads(content) | changes, separators=(",", ":"))
        chain = _chained(
            Mark(number - 1, rows[-2][4]), now.encode(), event.encode(), other.encode()
        ).chain
        raw.execute(
            "UPDATE trail SET content = ?, chain = ? WHERE number = ?", (other, chain, number)
        )
        raw.commit()


class TestVerification:
    def test_whole(self, store: Store, vote: Vote) -> None:
        vote(ANNA)
        assert check_votes(Trail(store), PEOPLE) == []
        assert [v.by for v in check_votes(Trail(store), PEOPLE[1:])] == ["anna"]

    @pytest.mark.parametrize(
        "change",
        [
            {"code": REFUSED},
            {"why": "because"},
            {"by": "ben"},
            {"moment": "2031-01-01T00:00:00.000+00:00"},
            {"signer": BEN.public.hex()},
            {"signature": "00" * 64},
            {"run": f"{2:032x}", "study": study(2).digest.hex()},
        ],
    )
    def test_a_changed_vote(self, store: Store, vote: Vote, change: dict[str, object]) -> None:
        vote(ANNA)
        forged(store, **change)
        Trail(store).verify()  # the chain fits, so that only the signature tells
        with pytest.raises(TrailError, match=r"entry 3: the signature is not that of"):
            check_votes(Trail(store), PEOPLE)
        with pytest.raises(PolicyError, match="has 0 valid"):
            check_approved(Trail(store), study(), "north", ONE, PEOPLE)

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"study": "cd" * 32}, "another study"),
            ({"run": f"{7:032x}"}, "another study"),
            ({"party": "south"}, "a vote at south"),
            ({"signature": ""}, "is not signed"),
        ],
    )
    def test_a_misplaced_vote(
        self, store: Store, vote: Vote, change: dict[str, object], said: str
    ) -> None:
        vote(ANNA)
        forged(store, **change)
        with pytest.raises(TrailError, match=said):
            check_votes(Trail(store), PEOPLE)
        with pytest.raises(PolicyError, match="has 0 valid"):
            check_approved(Trail(store), study(), "north", ONE, PEOPLE)

    def test_a_study_with_the_same_run(self, store: Store, vote: Vote) -> None:
        """What was approved is the study, not its number."""
        vote(ANNA)
        other = replace(study(), purpose="something else")
        with pytest.raises(PolicyError, match="has 0 valid"):
            check_approved(Trail(store), other, "north", ONE, PEOPLE)


class TestPolicy:
    def test_bounds(self) -> None:
        for bad in (0, 17):
            with pytest.raises(ArgumentError, match="approvals must be"):
                Policy(("hub",), approvals=bad)
        with pytest.raises(ArgumentError, match="asks nobody"):
            Policy(("hub",), approvals=2, accept="auto")

    def test_the_configuration(self, tmp_path: Path) -> None:
        from silograph.party.config import SiloConfig
        from silograph.party.keys import key_text
        from tests.nats.world import silos
        from tests.support.local_deployment import LocalDeployment

        made = LocalDeployment(tmp_path, silos(), tls=False)
        plain = made.silo_file("silo-1").read_text()
        one = f'[[approvers]]\nname = "anna"\nkey = "{key_text(ANNA.public)}"\n'

        def read(text: str) -> SiloConfig:
            (tmp_path / "x.toml").write_text(text)
            return SiloConfig.read(tmp_path / "x.toml")

        assert read(plain).approvers == ()
        assert [p.public for p in read(plain + one).approvers] == [ANNA.public]
        wanted = plain.replace('accept = "auto"', 'accept = "ask"\napprovals = 2')
        for text, said in (
            (wanted + one, "2 are wanted, and .* enrols 1"),
            (wanted, "enrols 0"),
            (plain + one + one, "same name"),
            (plain + one + one.replace("anna", "ben"), "same key"),
            (plain + one.replace("anna", "operator"), "cannot be the name"),
            (plain + one.replace("anna", "An,na"), "not a party's name"),
        ):
            with pytest.raises(ConfigError, match=said):
                read(text)
