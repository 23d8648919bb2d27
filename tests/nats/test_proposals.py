"""No proposal stops a silo: not while it is judged, and not when a store that holds it is opened
again."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from silograph.errors import GraphError
from silograph.messages.envelope import EVERYONE, Envelope, seal
from silograph.messages.identity import COORDINATOR, Identity, Member
from silograph.methods.study import PROPOSE, Study, read_proposal
from silograph.nats.health import Health
from silograph.nats.link import Link
from silograph.nats.silo import SiloService
from silograph.party.approval import ACCEPTED, decide
from silograph.party.control import Code
from tests.nats.proposals import (
    LONGEST_JUDGING,
    attack,
    fair,
    roster_and_key,
    signed,
    strict_trial,
)
from tests.nats.world import serving, trial
from tests.support.local_deployment import LocalDeployment, Terms

#: What a version without bounds took into its store.
POISON: tuple[dict[str, Any], ...] = (
    {"epsilon": 1e8},
    {"epsilon": 1e20},
    {"epsilon": 1e300},
    {"epsilon": 5e-324},
    {"delta": 5.0},
    {"deadline": 1 << 40},
    {"method": "feat+", "protocol": "masked", "query": "kstars", "k": 1 << 30},
    {"options": {"degree_share": 10**400}},
    {"version": 7},
)


@pytest.fixture
def made(tmp_path: Path) -> LocalDeployment:
    return strict_trial(tmp_path)


def test_random_and_extreme_studies(made: LocalDeployment) -> None:
    service = SiloService(made.silo("silo-1"))
    found = attack(made, service, 400)
    service.close()
    assert sum(found.states.values()) == 400
    assert found.states["refused policy"] > 30
    assert sum(count for state, count in found.states.items() if "refused" in state) > 60
    assert found.slowest < LONGEST_JUDGING


def test_judging_is_cheap_at_the_edge_of_what_is_allowed(tmp_path: Path) -> None:
    committee = ("silo-1", "silo-2", "silo-3", "silo-4")
    terms = Terms(epsilon=100.0, study=50.0, delta=0.5, committee=committee)
    made = trial(tmp_path, terms, count=4, tls=False)
    service = SiloService(made.silo("silo-1"))
    roster, key = roster_and_key(made)
    found = attack(made, service, 0)
    for number, (epsilon, delta) in enumerate(((50.0, 1e-300), (0.01, 1e-9), (1e-6, 1e-9))):
        values = fair(made, service, number) | {"epsilon": epsilon, "delta": delta}
        for which, options in enumerate((
            {}, {"answers": "two_stars,triangles"}, {"noise": "shares"}, {"rule": "largest"},
            {"answers": "two_stars,triangles", "rule": "second"}, {"noise": "committee"},
        )):  # fmt: skip
            values |= {"run": f"{number:08x}{which:024x}", "options": options}
            service._consider(signed(values, roster, key))
    service.close()
    assert 0 < found.slowest < LONGEST_JUDGING


def test_a_poisoned_store_stops_no_start(made: LocalDeployment) -> None:
    service = SiloService(made.silo("silo-1"))
    roster, key = roster_and_key(made)
    for number, poison in enumerate(POISON):
        values = fair(made, service, number) | poison
        service._store.add(str(values["run"]), signed(values, roster, key))
    service.close()
    made.broker.start()
    try:
        for _ in range(3):
            asyncio.run(_started(made))
    finally:
        made.broker.stop()
    service = SiloService(made.silo("silo-1"))
    states = {run.state for run in service._store.runs()}
    assert states <= {"aborted", "refused"}
    service.health().metrics()
    service.close()


async def _started(made: LocalDeployment) -> None:
    async with serving(made, ["silo-1"]) as services:
        for _ in range(100):
            await asyncio.sleep(0.05)
            if services["silo-1"].health().connected:
                break
        await asyncio.sleep(0.7)
        assert services["silo-1"].health().connected


def test_an_operator_s_word_does_not_come_before_the_policy(made: LocalDeployment) -> None:
    """A row that was never judged, for its process ended, or that an older policy allowed."""
    service = SiloService(made.silo("silo-1"))
    service._link = cast(Link, object())  # nothing is sent before its turn
    roster, key = roster_and_key(made)
    values = fair(made, service, 1) | {"epsilon": 9.0}  # beyond the terms
    run = str(values["run"])
    service._store.add(run, signed(values, roster, key))
    service._store.decide(run, "accepted", "operator")
    row = service._store.run(run)
    assert row is not None
    service._resume(row)
    after = service._store.run(run)
    assert after is not None
    assert (after.state, after.code, after.secret) == ("refused", "policy", None)
    assert not service._tasks
    service.close()


def test_a_decision_without_its_signatures_is_none(made: LocalDeployment) -> None:
    """Whoever can write the store can write a decision, but not the approvers' signatures."""
    person = Identity(bytes([7]) * 32)
    config = made.silo("silo-1")
    policy = replace(config.policy, accept="ask")
    config = replace(config, policy=policy, approvers=(Member("anna", person.public),))
    service = SiloService(config)
    service._link = cast(Link, object())  # nothing is sent before its turn
    roster, key = roster_and_key(made)
    for number, signs in ((11, False), (12, True)):
        values = fair(made, service, number)
        run = str(values["run"])
        service._consider(signed(values, roster, key))
        assert "silograph_studies_waiting 1.0" in Health(service._party, None, 0).metrics().text()
        if signs:
            decide(service._store, "silo-1", config.policy, config.approvers, run, ACCEPTED,
                   reason="as agreed", key=person)  # fmt: skip
            study = read_proposal(service._store.run(run).proposal)  # type: ignore[union-attr]
            assert study is not None
            assert service._approved(study)
            continue
        service._store.decide(run, "accepted", "anna")
        row = service._store.run(run)
        assert row is not None
        service._resume(row)
        after = service._store.run(run)
        assert after is not None
        assert (after.state, after.code, after.secret) == ("refused", "policy", None)
    service.close()


def test_a_run_that_cannot_begin_is_ended_for_all(
    made: LocalDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = SiloService(made.silo("silo-1"))
    service._link = cast(Link, object())
    roster, key = roster_and_key(made)
    values = fair(made, service, 2)
    service._consider(signed(values, roster, key))
    study = service._studies[str(values["run"])]

    def full(*_: object) -> None:
        raise GraphError("the disk is full")

    monkeypatch.setattr("silograph.nats.silo.SiloRun", full)
    asyncio.run(service._take_part(study))
    row = service._store.run(study.run)
    assert row is not None
    assert (row.state, row.code) == ("aborted", "internal")
    assert [frozen.name.round for frozen in service._store.pending(study.run)] == ["abort"]
    assert not service._runs
    assert not service._plans
    service.close()


def test_a_run_that_another_thread_has_refused_stays_refused(made: LocalDeployment) -> None:
    """The row that a poll has read may be old: a second refusal must not stop the service."""
    service = SiloService(made.silo("silo-1"))
    service._link = cast(Link, object())
    roster, key = roster_and_key(made)
    values = fair(made, service, 4) | {"epsilon": 9.0}
    raw = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
    study = Study.decode(raw)
    message = Envelope(PROPOSE, COORDINATOR, EVERYONE, 0, study.encode())
    service._consider(seal(study.binding(roster), key, message))
    service._refuse(study, Code.DEADLINE, "deadline")
    service._accept(study, "policy")
    row = service._store.run(study.run)
    assert row is not None
    assert (row.state, row.code, row.secret) == ("refused", "policy", None)
    told = [entry["event"] for entry in service._trail.entries()]
    assert told.count("study.decided") == 1
    service.close()


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 9.0},
        {"delta": 0.1},
        {"method": "baseline"},
        {"silos": ["silo-1", "silo-2"], "members": []},
    ],
)
def test_bare_fields_are_judged_before_anything_is_computed(
    made: LocalDeployment, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a study that is refused was planned")

    monkeypatch.setattr("silograph.nats.silo.plan_study", never)
    service = SiloService(made.silo("silo-1"))
    service._link = cast(Link, object())
    roster, key = roster_and_key(made)
    values = fair(made, service, 3) | change
    study = Study.decode(json.dumps(values, sort_keys=True, separators=(",", ":")).encode())
    message = Envelope(PROPOSE, COORDINATOR, EVERYONE, 0, study.encode())
    service._consider(seal(study.binding(roster), key, message))
    row = service._store.run(study.run)
    assert row is not None
    assert (row.state, row.code) == ("refused", "policy")
    service.close()
