"""Equal seeds: a run over the broker sends what the simulation sends, byte for byte."""

import asyncio
from pathlib import Path

import pytest

from silograph.experiments.trial import Terms
from silograph.methods.catalogue import plan_study
from silograph.protocol.envelope import EVERYONE, peek
from silograph.protocol.roster import COORDINATOR
from silograph.runtime.control import ROUNDS
from silograph.runtime.entropy import RunEntropy
from silograph.runtime.keys import load_identity
from silograph.runtime.nats.coordinator import CoordinatorService, Question
from silograph.runtime.nats.link import Link
from silograph.runtime.simulation import Run, drive

from .world import Fixed, serving, silos, trial

QUESTIONS = {
    "masked": Question("triangles", 3.0),
    "elgamal/blinded": Question("triangles", 3.0, protocol="elgamal/blinded"),
    "elgamal/replace": Question("edges", 3.0, protocol="elgamal/replace", collusion=0),
    "baseline": Question("edges", 8.0, method="baseline", protocol=""),
    "feat+": Question("triangles", 3.0, method="feat+", options={"split": "paper"}),
    "sealed": Question("triangles", 3.0, method="sealed", protocol="", delta=1e-9),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_transcript_is_that_of_the_simulation(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = trial(tmp_path, Terms(collusion=0))
    sent: list[tuple[str, str, bytes]] = []
    publish = Link.publish

    async def heard(self: Link, stream: str, subject: str, raw: bytes) -> None:
        *_, sender, receiver, _round, _slot = subject.split(".")
        sent.append((sender, receiver, raw))
        await publish(self, stream, subject, raw)

    monkeypatch.setattr(Link, "publish", heard)
    made.broker.start()
    try:
        result, study = asyncio.run(deployed(made, QUESTIONS[name]))
    finally:
        made.broker.stop()

    recorded: list[tuple[str, str, bytes]] = []
    plan = plan_study(study)
    keys = [load_identity(made.folder / f"{party}.key") for party in ("hub", *made.names)]
    roster = study.members(made_roster(made))
    entropies = [RunEntropy(Fixed(f"seed {party}").bytes(32)) for party in made.names]
    sessions = [
        plan.silo(roster, place, keys[place + 1], entropies[place], silo)
        for place, silo in enumerate(silos())
    ]

    def record(sender: int, receiver: int, raw: bytes) -> None:
        called = [roster.member(place).name for place in (sender, receiver)]
        own = peek(raw).sender == COORDINATOR  # what is relayed goes to one after the other
        everyone = sender == COORDINATOR and own and peek(raw).receiver == EVERYONE
        recorded.append((called[0], "all" if everyone else called[1], raw))

    run = Run(silos(), study.id, Fixed("unused"), lambda: None, record)
    hub = Fixed("hub")
    hub.bytes(16)  # the run id came first
    coordinator = plan.coordinator(roster, keys[0], RunEntropy(hub.bytes(32)))
    simulated = plan.outcome(drive(coordinator, sessions, run, name), silos()[0].universe)
    assert result["answer"] == simulated.answer.to_dict()
    of_run = [message for message in sent if peek(message[2]).round not in ROUNDS]
    assert sorted(of_run) == sorted(set(recorded))
    assert len(set(of_run)) == len(of_run) > 0


async def deployed(made, question):  # type: ignore[no-untyped-def]
    async with serving(made, seed="seed"):
        service = CoordinatorService(made.coordinator(), entropy=Fixed("hub"))
        plan = service.propose(question, 30.0)
        try:
            return await service.carry(plan.study.run), plan.study
        finally:
            service.close()


def made_roster(made):  # type: ignore[no-untyped-def]
    from silograph.runtime.roster_file import read_roster

    return read_roster(made.folder / "roster.toml").roster
