"""A silo's terms: what they allow, and what they refuse first."""

import dataclasses
from typing import Any

import pytest

from silograph.errors import ArgumentError, DeadlineError, PolicyError
from silograph.methods.catalogue import plan_study
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
            {"method": "sealed", "protocol": "", "delta": 1e-9},
            "delta 1e-9; at most 0",
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


@pytest.mark.parametrize("now", [1_900_000_000.0, 1_900_000_001.0])
def test_an_expired_study(now: float) -> None:
    with pytest.raises(DeadlineError):
        check(now=now)


@pytest.mark.parametrize(
    "terms",
    [
        {"accept": "maybe"}, {"coordinators": ()}, {"methods": ()}, {"epsilon": 0.0},
        {"epsilon": float("inf")}, {"epsilon": float("nan")}, {"delta": 1.0},
        {"least_silos": 1}, {"least_collusion": -1}, {"longest": 0},
    ],
)  # fmt: skip
def test_terms_that_make_no_sense(terms: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        dataclasses.replace(POLICY, **terms)
