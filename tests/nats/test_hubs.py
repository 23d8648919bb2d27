"""A hub search in a deployment: what is found and kept, what is paid, and who may refuse it."""

import asyncio
import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from silograph.dp.loss import worst_losses
from silograph.errors import AbortedError, StudyError
from silograph.ledger.book import Ledger
from silograph.methods.hubs.noise import HubNoise
from silograph.nats.coordinator import CoordinatorService, Question
from tests.nats.world import ask, serving, silos, trial
from tests.support.local_deployment import LocalDeployment, Terms

#: Noise that is 0 in all but a few of ten thousand sums.
HUBS = Question("release", 50.0, method="hubs", purpose="hubs of the next study")
TERMS = Terms(study=50.0)


def run(made: LocalDeployment, question: Question = HUBS) -> dict[str, Any]:
    async def whole() -> dict[str, Any]:
        async with serving(made):
            return await ask(made, question)

    made.broker.start()
    try:
        return asyncio.run(whole())
    finally:
        made.broker.stop()


def test_it_finds_the_largest_sums(tmp_path: Path) -> None:
    made = trial(tmp_path, TERMS, tls=False)
    found = run(made)
    assert (found["answer"], found["protocol"]) == (None, "masked")
    parts = silos(3)
    truth = dict(zip(parts[0].universe.ids, sum(part.degrees() for part in parts), strict=True))
    with Path(found["release"]).open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["node", "noisy_degree_sum"]
    sums = {node: int(value) for node, value in rows}
    assert list(sums.values()) == sorted(sums.values(), reverse=True)
    assert sums.keys() == truth.keys()
    assert sum(sums[node] != value for node, value in truth.items()) < 8
    noise = HubNoise.choose(50.0, 3, 1)
    assert [view["epsilon"] for view in found["views"]] == [v.epsilon for v in noise.views]
    for name in made.names:
        with Ledger(made.silo(name).ledger.path) as ledger:
            (spend,) = ledger.rows()
        assert spend.losses == worst_losses(noise.losses)
        assert (spend.method, spend.delta) == ("hubs masked", 0.0)


def test_a_policy_that_does_not_name_it_refuses(tmp_path: Path) -> None:
    made = trial(tmp_path, replace(TERMS, methods=("feat masked", "hubs")), tls=False)
    with pytest.raises(AbortedError) as caught:
        run(made)
    assert caught.value.code == "policy"
    for name in made.names:
        with Ledger(made.silo(name).ledger.path) as ledger:
            assert list(ledger.rows()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": "edges"}, "does not answer edges"),
        ({"protocol": "elgamal/blinded"}, "'masked' alone"),
        ({"delta": 1e-6}, "no use for delta"),
        ({"collusion": 3}, "collusion"),
    ],
)
def test_what_is_not_proposed(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    hub = CoordinatorService(trial(tmp_path, TERMS, tls=False).coordinator())
    try:
        with pytest.raises(StudyError, match=message):
            hub.propose(replace(HUBS, **change), 30.0)
    finally:
        hub.close()
