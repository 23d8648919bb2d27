"""Sealed studies in deployments: who may count, what travels, what is paid, and what is refused."""

import asyncio
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from silograph.errors import AbortedError, StudyError
from silograph.graph.samples import union
from silograph.ledger.book import Ledger
from silograph.methods.sealed import party as sealed_party
from silograph.methods.sealed import rounds as sealed_rounds
from silograph.methods.sealed.noise import NOISE_DELTA
from silograph.methods.sealed.party import SealedPart
from silograph.nats.coordinator import CoordinatorService, Question, StudyProgress
from tests.nats.test_committee import KINDS, NAMES, TERMS, deployment, lie, overheard, run
from tests.nats.world import serving, silos, trial
from tests.sampled import sampled
from tests.support.local_deployment import HUB, LocalDeployment

#: Degrees are opened first, and bound the noise of the triangles. Almost exact: a wrong answer
#: shows.
BOUNDED = Question(
    "triangles", 50.0, method="sealed", delta=1e-7,
    options={"answers": "degrees,triangles", "rule": "second", "degree_share": 0.4},
)  # fmt: skip
EDGES = Question("edges", 20.0, method="sealed")
SHARES = Question("triangles", 50.0, method="sealed", delta=0.0)


def truth(count: int, query: str) -> int:
    whole = union(silos(count))
    return len(whole) if query == "edges" else whole.triangles()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "asked", [BOUNDED, pytest.param(EDGES, marks=pytest.mark.whole)], ids=["bounded", "edges"]
)
def test_it_answers(kind: str, asked: Question, tmp_path: Path) -> None:
    given = KINDS[kind]
    made = deployment(tmp_path, **given)
    inside = HUB in given["members"]
    found = run(made, replace(asked, members=given["members"], collusion=int(not inside)))
    away = found["answer"]["value"] - truth(given["count"], asked.query)
    assert abs(away) < (3 if asked is EDGES else 12)
    assert (found["study"]["method"], found["protocol"]) == ("sealed", "committee")
    delta = NOISE_DELTA if asked is EDGES else 1e-7
    claimed = [view["name"] for view in found["views"] if view["claimed"]]
    assert claimed == ["coordinator", *["coordinator + 1 member"] * (not inside),
                       "1 member + answers"]  # fmt: skip
    assert all(view["delta"] == delta for view in found["views"] if view["claimed"])
    for name in made.names:
        with Ledger(made.silo(name).ledger.path) as ledger:
            (spend,) = ledger.rows()
        assert spend.delta == delta
        assert spend.losses[0] <= asked.epsilon
        beyond = {t for t, loss in spend.losses.items() if loss == float("inf")}
        assert beyond == set(range(1 if inside else 2, given["count"]))


def test_noise_in_shares_costs_no_delta(tmp_path: Path) -> None:
    """A policy and a ledger without delta allow it, and nothing else of this method."""
    terms = replace(TERMS, committee=NAMES[:4], delta=0.0)
    made = trial(tmp_path, terms, 4, tls=False)
    found = run(made, SHARES)
    assert abs(found["answer"]["value"] - truth(4, "triangles")) < 25
    with Ledger(made.silo("silo-1").ledger.path) as ledger:
        (spend,) = ledger.rows()
    assert (spend.delta, found["study"]["options"]["noise"]) == (0.0, "shares")
    with pytest.raises(AbortedError) as caught:
        run(made, EDGES)
    assert caught.value.code == "policy"


def test_a_ledger_without_delta_says_so(tmp_path: Path) -> None:
    made = deployment(tmp_path, 4, NAMES[:4])
    for name in made.names:
        path = made.silo_file(name)
        ledger, policy = path.read_text().split("[policy]")
        path.write_text(ledger.replace("delta = 1e-06", "delta = 0.0") + "[policy]" + policy)
    with pytest.raises(AbortedError) as caught:
        run(made, EDGES)
    assert caught.value.code == "budget"


class TestProposing:
    def propose(self, made: LocalDeployment, question: Question) -> Any:
        hub = CoordinatorService(made.coordinator())
        try:
            return hub.propose(question, 30.0).study
        finally:
            hub.close()

    def test_a_committee_is_chosen_as_for_a_union(self, tmp_path: Path) -> None:
        made = deployment(tmp_path, 3, (*NAMES[:3], "notary"), 1)
        study = self.propose(made, Question("triangles", 1.0, method="sealed"))
        assert [member.name for member in study.members] == [*NAMES[:3], "notary"]
        assert (study.protocol, study.delta) == ("committee", NOISE_DELTA)
        assert study.options == {"answers": "triangles", "noise": "committee"}
        bounded = self.propose(made, Question("triangles", 1.0, method="sealed", delta=1e-6))
        rule, answers = bounded.options.get("rule"), bounded.options["answers"]
        assert (rule is None, answers == "triangles") == (bounded.delta == NOISE_DELTA,) * 2
        for asked, message in (
            ({"collusion": 2}, "collusion is at most 1"),
            ({"members": (*NAMES[:3], HUB)}, "collusion is 0"),
            ({"protocol": "masked"}, "there is no protocol 'masked'"),
            ({"options": {"noise": "each"}}, "noise must be committee or shares"),
            ({"options": {"rule": "largest", "answers": "triangles"}}, "a bound needs a delta"),
        ):
            with pytest.raises((StudyError, ValueError), match=message):
                self.propose(made, Question("triangles", 1.0, method="sealed", **asked))

    def test_there_are_not_four(self, tmp_path: Path) -> None:
        with pytest.raises(StudyError, match="there are 3 silos and helpers; name helpers"):
            self.propose(trial(tmp_path, tls=False), Question("edges", 1.0, method="sealed"))


@pytest.mark.parametrize("cheat", sampled(["silo-2", "notary"], 1))
@pytest.mark.parametrize(
    ("round_name", "least"), [("check", 0), ("joint", 0), ("tell", 0), ("joint", 32), ("open", 0)]
)
def test_a_member_that_lies_ends_the_run_for_all(
    cheat: str, round_name: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = deployment(tmp_path, 3, (*NAMES[:3], "notary"), 1)
    lie(monkeypatch, cheat, lambda kind, number: kind == round_name and number >= least)
    with pytest.raises(AbortedError) as caught:
        run(made, BOUNDED)
    assert caught.value.code == "protocol"


def test_what_travels_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members write to each other alone; the coordinator is sent keys, openings and steps."""
    made = deployment(tmp_path, 5, NAMES[:4])
    sent = overheard(monkeypatch)
    run(made, BOUNDED)
    between = {"seed", "match", "input", "check", "joint", "tell"}
    opened = {"open", "sum", "done"}
    for sender, receiver, name in sent:
        if name in between:
            assert receiver in NAMES[:4]
            assert receiver != sender
        if name in (between | opened) - {"seed", "input"}:
            assert sender in NAMES[:4]
        if name in opened:
            assert receiver == HUB
    assert {name for _, _, name in sent} >= between | opened
    outside = {name for sender, _, name in sent if sender == NAMES[4]}
    assert outside & (between | opened) == {"seed", "input"}
    told = [key for key in sent if key[2] == "tell"]
    assert Counter(sender for sender, _, _ in told) == dict.fromkeys(NAMES[:4], 2)


@pytest.mark.parametrize(
    "inside",
    [
        pytest.param(False, marks=pytest.mark.whole, id="silos"),
        pytest.param(True, id="the coordinator"),
    ],
)
def test_progress_and_aborts_while_members_count(
    inside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting takes long: it is seen how far it is, and an operator can end it between bands."""
    monkeypatch.setattr(sealed_rounds, "ROWS", 4)
    monkeypatch.setattr(sealed_party, "ROWS", 4)
    work, slow = SealedPart.work, {"seconds": 0.15}

    def slowly(self: SealedPart) -> None:
        time.sleep(slow["seconds"])
        work(self)

    monkeypatch.setattr(SealedPart, "work", slowly)
    given = KINDS["the coordinator" if inside else "four silos"]
    made = deployment(tmp_path, **given)
    asked = replace(BOUNDED, members=given["members"], collusion=int(not inside))
    seen: list[tuple[int, int]] = []

    def watch(progress: StudyProgress) -> None:
        if not seen or seen[-1] != (progress.done, progress.total):
            seen.append((progress.done, progress.total))

    async def whole() -> dict[str, Any]:
        async with serving(made):
            service = CoordinatorService(made.coordinator())
            try:
                return await service.carry(service.propose(asked, 30.0).study.run, watch)
            finally:
                service.close()

    async def ended_early() -> float:
        slow["seconds"] = 0.6  # ten bands: six seconds
        async with serving(made):
            service = CoordinatorService(made.coordinator())
            study = service.propose(asked, 30.0).study
            began = 0.0

            def abort(progress: StudyProgress) -> None:
                nonlocal began
                if not began and progress.done > 0.2 * progress.total:
                    began = asyncio.get_running_loop().time()
                    service.request_abort(study.run)

            try:
                with pytest.raises(AbortedError):
                    await service.carry(study.run, abort)
                return asyncio.get_running_loop().time() - began
            finally:
                service.close()

    made.broker.start()
    try:
        found = asyncio.run(whole())
        took = asyncio.run(ended_early())
    finally:
        made.broker.stop()
    assert abs(found["answer"]["value"] - truth(given["count"], "triangles")) < 12
    assert seen == sorted(seen)
    assert len({done for done, _ in seen}) > 15
    assert seen[-1][0] == seen[-1][1]
    assert took < 3.0
