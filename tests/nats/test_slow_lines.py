"""Whole studies over slow lines: an answer with little more traffic than needed, or no spend."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from silograph import clustered_power_law, union
from silograph.errors import AbortedError
from silograph.ledger.book import Ledger
from silograph.nats.coordinator import Question
from silograph.party.store import Store
from tests.nats.world import ask, serving, silos
from tests.support.local_deployment import HUB, LocalDeployment, Terms
from tests.support.ports import free_port
from tests.support.slow_line import SlowLine

FOUR = tuple(f"silo-{number}" for number in range(1, 5))


class Slow:
    """A deployment in which every party has a line of its own, of the same kind."""

    def __init__(
        self, folder: Path, nodes: int, rate: float, count: int, *, tls: bool = True, **line: Any
    ) -> None:
        self.port = port = free_port()
        self.parts = silos(count, clustered_power_law(nodes, edges_per_node=3, seed=1))
        committee = FOUR if count == len(FOUR) else ()
        terms = Terms(epsilon=100.0, study=20.0, collusion=0, committee=committee)
        self.made = LocalDeployment(folder / "trial", self.parts, terms, through=port, tls=tls)
        self.made.broker.start()
        self.line = SlowLine(port, self.made.port, rate, **line)

    def ask(self, question: Question, seconds: float) -> dict[str, Any]:
        async def run() -> dict[str, Any]:
            async with serving(self.made):
                return await ask(self.made, question, seconds)

        try:
            return asyncio.run(run())
        finally:
            self.made.broker.stop()
            self.line.close()

    def needed(self) -> int:
        """The bytes of all messages of all parties."""
        found = 0
        for path in self.made.folder.glob("*.state/store.db"):
            store = Store(path, None)
            found += sum(size for run in store.runs() for _, _, size in store.left(run.run))
            store.close()
        return found


@pytest.mark.parametrize("who", ["silo", "hub"])
def test_a_line_that_is_too_slow_is_refused_before_anything_is_spent(
    who: str, tmp_path: Path
) -> None:
    slow = Slow(tmp_path, 1000, 256e3, 2, tls=False)
    if who == "silo":  # then the coordinator's own line is a fast one
        hub = slow.made.folder / "hub.toml"
        text = hub.read_text().replace(str(slow.port), str(slow.made.port))
        hub.write_text(text)
    with pytest.raises(AbortedError, match=r"\(slow\)"):
        slow.ask(Question("edges", 3.0, protocol="masked"), 12.0)
    said = 0
    names = slow.made.names if who == "silo" else [HUB]
    for name in slow.made.names:
        with Ledger(slow.made.silo(name).ledger.path) as ledger:
            assert not ledger.rows()
    for name in names:
        log = slow.made.folder / f"{name}.state" / "log.jsonl"
        lines = [json.loads(x) for x in log.read_text().splitlines()]
        reasons = [line.get("reason", "") for line in lines if line.get("code") == "slow"]
        said += any("kbit/s" in reason and "nothing was spent" in reason for reason in reasons)
    assert said


@pytest.mark.whole
@pytest.mark.parametrize(
    ("nodes", "rate", "protocol", "loss"),
    [
        (1000, 1.5e6, "masked", 0.0),  # this sent 22 MB for 1 MB a silo, and had no answer
        (1000, 1.5e6, "committee", 0.0),
        (600, 256e3, "masked", 0.0),
        (400, 256e3, "committee", 0.0),
        (400, 256e3, "masked", 0.05),
    ],
)
def test_an_answer_with_little_more_traffic_than_needed(
    nodes: int, rate: float, protocol: str, loss: float, tmp_path: Path
) -> None:
    slow = Slow(tmp_path, nodes, rate, 4, latency=0.02, loss=loss)
    found = slow.ask(Question("edges", 10.0, protocol=protocol), 400.0)
    answer, needed = found["answer"], slow.needed()
    print(  # noqa: T201 - figures for people, with -rP
        f"feat {protocol}, n = {nodes}, {rate / 1e3:.0f} kbit/s, loss {loss:.0%}: "
        f"{found['seconds']:.0f} s, {slow.line.up / needed:.2f} × {needed / 1e6:.2f} MB"
    )
    assert answer["value"] == pytest.approx(len(union(slow.parts)), abs=8 * answer["stderr"])
    # Besides the messages, each party asks and notes a little every second while it waits.
    waiting = 1000 * (len(slow.made.names) + 1) * found["seconds"]
    assert slow.line.up <= 1.2 * needed + waiting
