"""The committee in deployments: who may be in it, members that cheat, and what travels."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from silograph.errors import AbortedError, StudyError
from silograph.graph.samples import union
from silograph.ledger.book import Ledger
from silograph.messages.envelope import peek
from silograph.methods.committee.member import Part
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.link import Link
from tests.nats.world import ask, serving, silos, trial
from tests.sampled import sampled
from tests.support.local_deployment import HUB, LocalDeployment, Terms

NAMES = tuple(f"silo-{number}" for number in range(1, 6))
TERMS = Terms(epsilon=1000.0, study=100.0)
#: Almost exact: a wrong answer shows.
#: So large an ε that a wrong bit comes once in 10^9 pairs.
ASKED = Question("edges", 20.0, protocol="committee")
KINDS: dict[str, dict[str, Any]] = {
    "four silos": {"count": 4, "members": NAMES[:4]},
    "three silos and a helper": {"count": 3, "members": (*NAMES[:3], "notary"), "helpers": 1},
    "two silos and two helpers": {
        "count": 2, "members": (*NAMES[:2], "notary", "academy"), "helpers": 2,
    },
    "five silos": {"count": 5, "members": NAMES[1:]},
    "five silos and a helper": {"count": 5, "members": (*NAMES[:3], "notary"), "helpers": 1},
    "the coordinator": {"count": 3, "members": (*NAMES[:3], HUB)},
}  # fmt: skip


def deployment(folder: Path, count: int, members: tuple[str, ...], helpers: int = 0) -> Any:
    inside = HUB in members
    terms = replace(
        TERMS, committee=members, coordinator_in_committee=inside, collusion=0 if inside else 1
    )
    return trial(folder, terms, count, helpers=("notary", "academy")[:helpers], tls=False)


def lie(monkeypatch: pytest.MonkeyPatch, cheat: str, false: Callable[[str, int], bool]) -> None:
    """One member falsifies some of its messages, by round and number.

    They are signed and encrypted as they should be; their content is not true.
    """
    begin = Part.__init__

    def lying(self: Part, *arguments: Any) -> None:
        begin(self, *arguments)
        honest, name = self._send, self._binding.roster.member(self._place).name
        if name != cheat:
            return

        def say(kind: str, receiver: int, sequence: int, content: bytes) -> None:
            if content and false(kind, sequence):
                content = content[:-1] + bytes([content[-1] ^ 1])
            honest(kind, receiver, sequence, content)

        self._send = say

    monkeypatch.setattr(Part, "__init__", lying)


def overheard(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str, str]]:
    """How often each party sends each other a message of a round, from now on."""
    sent: Counter[tuple[str, str, str]] = Counter()
    publish = Link.publish

    async def heard(self: Link, stream: str, subject: str, raw: bytes) -> None:
        *_, sender, receiver, name, _slot = subject.split(".")
        sent[sender, receiver, name] += 1
        assert peek(raw).round == name
        await publish(self, stream, subject, raw)

    monkeypatch.setattr(Link, "publish", heard)
    return sent


def run(made: LocalDeployment, question: Question, seconds: float = 30.0) -> dict[str, Any]:
    async def asked() -> dict[str, Any]:
        async with serving(made):
            return await ask(made, question, seconds)

    made.broker.start()
    try:
        return asyncio.run(asked())
    finally:
        made.broker.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_it_answers(kind: str, tmp_path: Path) -> None:
    given = KINDS[kind]
    made = deployment(tmp_path, **given)
    question = replace(ASKED, members=given["members"], collusion=int(HUB not in given["members"]))
    found = run(made, question)
    truth = len(union(silos(given["count"])).pairs)
    assert abs(found["answer"]["value"] - truth) < 1
    assert found["protocol"] == "committee"
    for name in made.names:
        with Ledger(made.silo(name).ledger.path) as ledger:
            (spend,) = ledger.rows()
        beyond = {t for t, loss in spend.losses.items() if loss == float("inf")}
        first = 1 if HUB in given["members"] else 2
        assert beyond == set(range(first, given["count"]))


def test_it_is_the_default_where_four_are_there(tmp_path: Path) -> None:
    made = deployment(tmp_path, 3, (*NAMES[:3], "notary"), 1)
    service = CoordinatorService(made.coordinator())
    try:
        study = service.propose(Question("edges", 3.0), 60.0).study
        assert study.protocol == "committee"
        assert [member.name for member in study.members] == [*NAMES[:3], "notary"]
        assert service.propose(Question("edges", 3.0, collusion=2), 60.0).study.protocol == "masked"
        with pytest.raises(StudyError, match="collusion is at most 1"):
            service.propose(Question("edges", 3.0, protocol="committee", collusion=2), 60.0)
    finally:
        service.close()
    made = trial(tmp_path / "three", TERMS, 3, tls=False)
    service = CoordinatorService(made.coordinator())
    try:
        assert service.propose(Question("edges", 3.0), 60.0).study.protocol == "masked"
    finally:
        service.close()


@pytest.mark.parametrize("cheat", sampled(["silo-2", "notary"], 0))
@pytest.mark.parametrize("round_name", ["match", "check", "joint"])
def test_a_member_that_lies_ends_the_run_for_all(
    cheat: str, round_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages are signed and encrypted as they should be; their content is not true."""
    made = deployment(tmp_path, 3, (*NAMES[:3], "notary"), 1)
    lie(monkeypatch, cheat, lambda kind, _sequence: kind == round_name)
    with pytest.raises(AbortedError) as caught:
        run(made, ASKED)
    assert caught.value.code == "protocol"


def test_what_travels_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members write to each other alone; the coordinator is sent keys and openings."""
    made = deployment(tmp_path, 5, NAMES[:4])
    sent = overheard(monkeypatch)
    run(made, ASKED)
    secret = {"seed", "match", "input", "check", "joint", "open"}
    for sender, receiver, name in sent:
        if name in secret - {"open"}:
            assert receiver in NAMES[:4]
            assert receiver != sender
        if name in ("match", "check", "joint"):
            assert sender in NAMES[:4]
        if name == "open":
            assert (sender in NAMES[:4], receiver) == (True, HUB)
    outside = {name for sender, _, name in sent if sender == NAMES[4]}
    assert outside & secret == {"seed", "input"}
