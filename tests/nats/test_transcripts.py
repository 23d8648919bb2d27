"""Equal seeds: a run over the broker sends what a federation sends, byte for byte."""

import asyncio
import warnings
from pathlib import Path
from typing import Any

import pytest

from silograph.estimators.groups import Groups
from silograph.graph.fold import Fold
from silograph.graph.universe import NodeUniverse
from silograph.local.drive import Parties
from silograph.local.federation import Federation
from silograph.messages.envelope import EVERYONE, peek
from silograph.messages.identity import COORDINATOR
from silograph.methods.sealed.method import group_options
from silograph.methods.study import Study
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.link import Link
from silograph.party.control import ROUNDS
from silograph.party.keys import load_identity
from silograph.party.roster import read_roster
from tests.nats.world import Fixed, serving, silos, trial
from tests.support.local_deployment import LocalDeployment, Terms

#: The group of every node.
GROUPS = {node: f"group {node % 3}" for node in range(40)}
NAMED = group_options(Groups.of(GROUPS, NodeUniverse.range(40)))
#: A question to a deployment, and the same as arguments of a federation.
QUESTIONS: dict[str, tuple[Question, dict[str, Any]]] = {
    "masked": (Question("triangles", 3.0), {"method": "feat"}),
    "elgamal/blinded": (
        Question("triangles", 3.0, protocol="elgamal/blinded"),
        {"method": "feat", "protocol": "elgamal/blinded"},
    ),
    "elgamal/replace": (
        Question("edges", 3.0, protocol="elgamal/replace", collusion=0),
        {"method": "feat", "protocol": "elgamal/replace", "collusion": 0},
    ),
    "baseline": (Question("edges", 8.0, method="baseline", protocol=""), {"method": "baseline"}),
    "hubs": (Question("release", 8.0, method="hubs"), {}),
    "folded": (
        Question("triangles", 3.0, fold=Fold(30, ["3", "5"], sub=2)),
        {"method": "feat", "fold": Fold(30, ["3", "5"], sub=2)},
    ),
    "folded committee": (
        Question("kstars", 3.0, protocol="committee", k=2, fold=Fold(30)),
        {"method": "feat", "protocol": "committee", "k": 2, "fold": Fold(30)},
    ),
    "feat+": (
        Question("triangles", 3.0, method="feat+", options={"split": "paper"}),
        {"method": "feat+", "split": "paper"},
    ),
    "feat+ as the planner likes": (
        Question("triangles", 3.0, method="feat+"), {"method": "feat+"},
    ),
    "sealed": (
        Question("triangles", 3.0, method="sealed", delta=1e-9),
        {"method": "sealed", "delta": 1e-9},
    ),
    "sealed by rule": (
        Question("clustering", 3.0, method="sealed", delta=1e-7),
        {"method": "sealed", "delta": 1e-7},
    ),
    "sealed in shares": (
        Question("degrees", 3.0, method="sealed", delta=0.0),
        {"method": "sealed", "delta": 0.0},
    ),
    "sealed without delta": (
        Question("edges", 3.0, method="sealed"), {"method": "sealed"},
    ),
    "sealed by groups": (
        Question("mixing", 3.0, method="sealed", options=NAMED),
        {"method": "sealed", "groups": GROUPS},
    ),
    "committee": (
        Question("triangles", 3.0, protocol="committee"),
        {"method": "feat", "protocol": "committee"},
    ),
    "feat+ committee": (
        Question("triangles", 3.0, "feat+", "committee", options={"split": "paper"}),
        {"method": "feat+", "protocol": "committee", "split": "paper"},
    ),
}  # fmt: skip
#: Silos and helpers; three silos where nothing else is said.
PARTIES = {
    "committee": (5, ()), "feat+ committee": (3, ("notary",)), "sealed": (4, ()),
    "folded committee": (3, ("notary",)),
    "sealed by rule": (3, ("notary",)), "sealed in shares": (5, ()),
    "sealed without delta": (3, ("notary",)), "sealed by groups": (4, ()),
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_federation_and_a_deployment_send_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, arguments = QUESTIONS[name]
    count, helpers = PARTIES.get(name, (3, ()))
    members = [*(f"silo-{number}" for number in range(1, count + 1)), *helpers][:4]
    terms = Terms(collusion=0, committee=tuple(members) if name in PARTIES else ())
    made = trial(tmp_path, terms, count, helpers=helpers)
    sent: list[tuple[str, str, bytes]] = []
    publish = Link.publish

    async def heard(self: Link, stream: str, subject: str, raw: bytes) -> None:
        *_, sender, receiver, _round, _slot = subject.split(".")
        sent.append((sender, receiver, raw))
        await publish(self, stream, subject, raw)

    monkeypatch.setattr(Link, "publish", heard)
    made.broker.start()
    try:
        result, study = asyncio.run(deployed(made, question))
    finally:
        made.broker.stop()

    recorded: list[tuple[str, str, bytes]] = []
    roster = study.parties(read_roster(made.folder / "roster.toml").roster)

    def record(sender: int, receiver: int, raw: bytes) -> None:
        called = [roster.member(place).name for place in (sender, receiver)]
        own = peek(raw).sender == COORDINATOR  # what is relayed goes to one after the other
        everyone = sender == COORDINATOR and own and peek(raw).receiver == EVERYONE
        recorded.append((called[0], "all" if everyone else called[1], raw))

    keys = {
        party: load_identity(made.folder / f"{party}.key")
        for party in ("hub", *made.names, *helpers)
    }
    parties = Parties(
        roster,
        (keys["hub"], Fixed("hub")),
        tuple((keys[party], Fixed(f"seed {party}")) for party in made.names),
        tuple((keys[party], Fixed(f"seed {party}")) for party in helpers),
    )
    federation = Federation(
        silos(count), None, "same", Fixed("unused"), parties=parties, deadline=study.deadline,
        record=record,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no ledger, and what some protocols protect less
        if question.method == "hubs":
            federation.find_hubs(question.epsilon).save(tmp_path / "sums.csv")
            assert Path(result["release"]).read_bytes() == (tmp_path / "sums.csv").read_bytes()
        else:
            answer = federation.count(question.query, epsilon=question.epsilon, **arguments)
            assert result["answer"] == answer.to_dict()
    of_run = [message for message in sent if peek(message[2]).round not in ROUNDS]
    assert sorted(of_run) == sorted(set(recorded))
    assert len(set(of_run)) == len(of_run) > 0


async def deployed(made: LocalDeployment, question: Question) -> tuple[dict[str, Any], Study]:
    async with serving(made, seed="seed"):
        service = CoordinatorService(made.coordinator(), entropy=Fixed("hub"))
        plan = service.propose(question, 30.0)
        try:
            return await service.carry(plan.study.run), plan.study
        finally:
            service.close()
