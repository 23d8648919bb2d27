"""A deployment in which the coordinator, the broker or a stranger does not do as it should."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from silograph.errors import SilographError
from silograph.ledger.book import Ledger
from silograph.messages.envelope import Binding, Envelope, peek, seal
from silograph.messages.identity import COORDINATOR, Identity, Roster
from silograph.methods.catalogue import plan_study
from silograph.methods.study import Study
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.link import Link
from silograph.party.keys import load_identity
from silograph.party.roster import read_roster
from silograph.party.store import Store
from silograph.party.trail import Trail
from tests.nats.world import serving, trial
from tests.support.local_deployment import HUB, LocalDeployment, Terms

#: Rounds whose messages depend on edges.
EDGES = {"chunk", "input", "report", "hop", "share"}


@dataclass
class Attack:
    """A deployment, and a way to change what a party sends on its way to the broker."""

    made: LocalDeployment
    #: (party, receiver, message) to the messages that arrive instead, with receivers.
    tamper: Callable[[str, str, bytes], list[tuple[str, bytes]] | None] = lambda *_: None
    #: Done when the study is known and silos serve, before it is carried.
    before: Callable[["Attack", Link, Study], Awaitable[None]] | None = None
    question: Question = field(default_factory=lambda: Question("edges", 3.0))
    seconds: float = 4.0
    study: Study | None = None
    answer: dict[str, Any] | None = None
    error: SilographError | None = None

    @property
    def roster(self) -> Roster:
        return read_roster(self.made.folder / "roster.toml").roster

    def key(self, name: str) -> Identity:
        return load_identity(self.made.folder / f"{name}.key")

    @property
    def binding(self) -> Binding:
        """What the run's own messages are bound to."""
        assert self.study is not None
        plan: Any = plan_study(self.study)
        digest = plan.union.parameters(
            self.study.pairs, self.study.subject, self.study.parties(self.roster)
        ).digest
        return Binding(self.study.id, digest, self.study.parties(self.roster))

    def sign(self, by: str, message: Envelope, binding: Binding | None = None) -> bytes:
        return seal(binding or self.binding, self.key(by), message)

    def resign(self, raw: bytes, payload: bytes, binding: Binding | None = None) -> bytes:
        """A coordinator's message with other content, properly signed."""
        old = peek(raw)
        new = Envelope(old.round, COORDINATOR, old.receiver, old.sequence, payload)
        return self.sign(HUB, new, binding)

    # -- what is left --------------------------------------------------------------------------

    def log(self, name: str) -> list[dict[str, Any]]:
        """What a party has written down: its log, and its audit trail."""
        lines = (self.made.folder / f"{name}.state" / "log.jsonl").read_text().splitlines()
        with closing(Store(self.made.folder / f"{name}.state" / "store.db", name)) as store:
            return [*(json.loads(line) for line in lines), *Trail(store).entries()]

    def errors(self, name: str) -> set[str]:
        """The names of all errors in a party's own log."""
        return {line["error"] for line in self.log(name) if "error" in line}

    def spends(self, name: str) -> int:
        with Ledger(self.made.silo(name).ledger.path) as ledger:
            return len(ledger.rows())

    def left(self, name: str) -> dict[str, int]:
        """What has left a party, by round, over all runs."""
        store = Store(self.made.folder / f"{name}.state" / "store.db", name)
        try:
            found = [row for run in store.runs() for row in store.left(run.run)]
        finally:
            store.close()
        return {kind: messages for kind, messages, _ in found}

    def no_output(self, name: str) -> None:
        """Nothing that depends on edges left the silo, and the coordinator has no answer."""
        assert not EDGES & set(self.left(name))
        assert self.spends(name) == 0
        assert self.answer is None


def attacked(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    attack: Callable[[Attack], None],
    terms: Terms | None = None,
) -> Attack:
    """Set up a deployment, let ``attack`` say what goes wrong in it, and run one study."""
    made = trial(folder, terms or Terms(), tls=False)
    state = Attack(made)
    attack(state)
    publish = Link.publish

    async def tampered(self: Link, stream: str, subject: str, raw: bytes) -> None:
        head, receiver, round_name, slot = subject.rsplit(".", 3)
        changed = state.tamper(self._party, receiver, raw)
        if changed is None:
            await publish(self, stream, subject, raw)
            return
        for number, (to, message) in enumerate(changed):
            place = slot if not number else f"{slot}-{number}"
            await publish(self, stream, f"{head}.{to}.{round_name}.{place}", message)

    monkeypatch.setattr(Link, "publish", tampered)
    made.broker.start()
    try:
        asyncio.run(_run(state))
    finally:
        made.broker.stop()
    return state


async def _run(state: Attack) -> None:
    async with serving(state.made):
        service = CoordinatorService(state.made.coordinator())
        try:
            state.study = service.propose(state.question, state.seconds).study
            if state.before is not None:
                link = await Link.connect(state.made.coordinator().broker, HUB, 5)
                await state.before(state, link, state.study)
                await link.close()
            state.answer = await service.carry(state.study.run)
        except SilographError as error:
            state.error = error
        finally:
            service.close()
        await asyncio.sleep(0.4)  # the silos hear of it
