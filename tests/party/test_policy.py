"""A silo's terms: what they allow, and what they refuse first."""

import dataclasses
from typing import Any

import pytest

from silograph.errors import ArgumentError, DeadlineError, PolicyError, StudyError
from silograph.messages.identity import Identity, Member, Roster
from silograph.methods.catalogue import plan_study
from silograph.methods.study import StudyMember
from silograph.party.policy import Policy
from tests.methods.test_study import study

NOW = 1_899_999_000.0
POLICY = Policy(coordinators=("hub",), methods=("feat masked", "feat elgamal/replace"), epsilon=3.0)


def check(policy: Policy = POLICY, now: float = NOW, **changes: Any) -> None:
    asked = study(**changes)
    policy.check_fields(asked, 3, now)
    policy.check(plan_study(asked))


def test_what_is_within_the_terms_passes() -> None:
    check()
    check(epsilon=1.0, collusion=2)


@pytest.mark.parametrize(
    ("terms", "changes", "message"),
    [
        ({"coordinators": ("other",)}, {}, "hub may not propose"),
        ({"methods": ("baseline",)}, {}, "'feat' is not among"),
        ({}, {"protocol": "elgamal/blinded"}, "'feat elgamal/blinded' is not among"),
        ({"queries": ("edges",)}, {}, "query 'triangles'"),
        ({"least_silos": 4}, {}, "3 silos; at least 4"),
        ({"least_silos": 2}, {"silos": ("silo-1", "silo-2")}, "leaves out silos"),
        ({}, {"collusion": 0}, "collusion 0; it must be at least 1"),
        ({"least_collusion": 0}, {"protocol": "elgamal/replace", "collusion": 0}, "must trust"),
        ({"epsilon": 2.9}, {}, "epsilon 3; at most 2.9"),
        ({}, {"epsilon": 3.1}, r"epsilon 3\.1; at most 3"),
        (
            {"methods": ("sealed",)},
            {"method": "sealed", "protocol": "committee", "delta": 1e-9},
            "delta 1e-9; at most 0$",
        ),
        (
            {"methods": ("sealed",)},
            {"method": "sealed", "protocol": "committee", "delta": 2**-60},
            "delta .*e-19; at most 0; ask with --delta 0 for noise that needs none",
        ),
        ({"longest": 10}, {}, "more than 10 seconds"),
    ],
)
def test_what_is_not_is_refused(
    terms: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(PolicyError, match=message):
        check(dataclasses.replace(POLICY, **terms), **changes)


def test_what_trust_and_parts_need() -> None:
    trusting = dataclasses.replace(POLICY, silos_trust_each_other=True, least_collusion=0)
    check(trusting, protocol="elgamal/replace", collusion=0)
    parts = dataclasses.replace(POLICY, part_of_roster=True, least_silos=2)
    check(parts, silos=("silo-1", "silo-2"))


def house(number: int, name: str) -> Member:
    return Member(name, Identity(bytes([number]) * 32).public, f"{name} & Co")


HUB, *SILOS = (house(i, name) for i, name in enumerate(("hub", "silo-1", "silo-2", "silo-3"), 1))
HELPERS = (house(8, "notary"), house(9, "campus"))
ROSTER = Roster(HUB, tuple(SILOS), HELPERS)
PINNED = dataclasses.replace(POLICY, committee=(*SILOS[:2], *HELPERS))
FOUR = (
    StudyMember("campus", "helper"), StudyMember("silo-1", "silo"),
    StudyMember("notary", "helper"), StudyMember("silo-2", "silo"),
)  # fmt: skip
WITH_HUB = (*FOUR[:3], StudyMember("hub", "coordinator"))


def committee(
    policy: Policy, members: tuple[StudyMember, ...] = FOUR, roster: Roster = ROSTER, **more: Any
) -> None:
    asked = study(protocol="committee", members=members, roster=roster.digest.hex(), **more)
    asked.parties(roster)
    policy.check_committee(asked, roster)


class TestCommittee:
    def test_the_four_that_are_pinned_in_any_order(self) -> None:
        committee(PINNED)
        committee(PINNED, FOUR[::-1])
        POLICY.check_committee(study(), ROSTER)  # a study without one asks nothing
        PINNED.check_committee(study(), ROSTER)

    @pytest.mark.parametrize(
        ("terms", "members", "message"),
        [
            ({"committee": ()}, FOUR, "the policy names no members of one"),
            ({}, (*FOUR[:3], StudyMember("silo-3", "silo")), "silo-3 may not be a member"),
            ({}, WITH_HUB, "hub may not be a member of a committee here"),
            ({"helpers": False}, FOUR, "campus is a helper, which may not be"),
            (
                {"committee": (SILOS[0], *HELPERS, HUB)},
                WITH_HUB,
                "hub is the coordinator, which may not",
            ),
            (
                {"committee": (SILOS[0], *HELPERS, HUB), "coordinator_in_committee": True},
                WITH_HUB,
                "does not hold against it and a silo, and collusion must be at least 1",
            ),
        ],
    )
    def test_others_are_refused(
        self, terms: dict[str, Any], members: tuple[StudyMember, ...], message: str
    ) -> None:
        with pytest.raises(PolicyError, match=message):
            committee(dataclasses.replace(PINNED, **terms), members)

    def test_the_coordinator_where_no_collusion_is_feared(self) -> None:
        terms = {"committee": (SILOS[0], *HELPERS, HUB), "coordinator_in_committee": True}
        committee(dataclasses.replace(PINNED, least_collusion=0, **terms), WITH_HUB)

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            (house(77, "notary"), "notary has another key in the roster"),
            (dataclasses.replace(HELPERS[0], organisation="campus & Co"), "another organisation"),
            (dataclasses.replace(HELPERS[0], organisation=""), "another organisation"),
        ],
    )
    def test_a_roster_that_says_otherwise(self, changed: Member, message: str) -> None:
        with pytest.raises(PolicyError, match=f"notary has another|{message}"):
            committee(PINNED, roster=Roster(HUB, tuple(SILOS), (changed, HELPERS[1])))

    def test_a_study_that_leaves_out_silos_has_the_same_committee(self) -> None:
        committee(PINNED, silos=("silo-1", "silo-2"))
        with pytest.raises(StudyError, match="'silo-2' is not a silo of this study"):
            committee(PINNED, silos=("silo-1", "silo-3"))
        smaller = (*FOUR[:3], StudyMember("silo-3", "silo"))
        with pytest.raises(PolicyError, match="silo-3 may not be a member"):
            committee(PINNED, smaller, silos=("silo-1", "silo-3"))


@pytest.mark.parametrize("now", [1_900_000_000.0, 1_900_000_001.0])
def test_an_expired_study(now: float) -> None:
    with pytest.raises(DeadlineError):
        check(now=now)


@pytest.mark.parametrize(
    "terms",
    [
        {"accept": "maybe"}, {"coordinators": ()}, {"methods": ()}, {"epsilon": 0.0},
        {"epsilon": float("inf")}, {"epsilon": float("nan")}, {"delta": 1.0},
        {"least_silos": 1}, {"least_collusion": -1}, {"longest": 0}, {"committee": HELPERS},
        {"committee": (*SILOS, SILOS[0])}, {"committee": (*SILOS, house(2, "notary"))},
        {"committee": (*SILOS, dataclasses.replace(HUB, organisation=""))},
        {"committee": (*SILOS, dataclasses.replace(HUB, organisation="silo-1 & Co"))},
    ],
)  # fmt: skip
def test_terms_that_make_no_sense(terms: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        dataclasses.replace(POLICY, **terms)
