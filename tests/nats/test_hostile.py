"""A hostile coordinator, a hostile broker, strangers: what they try is refused, and shown.

Each is refused with a named error in the log of the party that it was tried on; what goes out is
one of a few codes; and nothing that depends on edges leaves where it could help the attacker.
"""

import asyncio
import dataclasses
import hashlib
import time
from pathlib import Path

import pytest

from silograph import NodeUniverse
from silograph.errors import AbortedError
from silograph.messages.envelope import EVERYONE, Binding, Envelope, peek, seal
from silograph.messages.identity import COORDINATOR, Identity, Member, Roster, pack, unpack
from silograph.methods.study import Study, read_proposal
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.link import Link
from silograph.party import connection
from tests.nats.hostile import Attack, attacked
from tests.nats.world import ask, link, serving, trial, until
from tests.support.local_deployment import HUB, Terms

Sent = list[tuple[str, bytes]] | None


class TestCoordinator:
    """The coordinator has its own key, and may collude with one silo."""

    def test_a_swapped_run_key(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It puts a key of its own in the place of silo 1's, and cannot sign for silo 1."""

        def attack(state: Attack) -> None:
            def tamper(party: str, receiver: str, raw: bytes) -> Sent:
                if party != HUB or peek(raw).round != "keys":
                    return None
                inner = unpack(peek(raw).payload, 3)
                forged = Envelope("key", 0, EVERYONE, 0, bytes(range(32)))
                inner[0] = state.sign(HUB, forged)
                return [(receiver, state.resign(raw, pack(*inner)))]

            state.tamper = tamper

        state = attacked(tmp_path, monkeypatch, attack)
        for name in state.made.names:
            assert "SignatureError" in state.errors(name)
            state.no_output(name)
        assert isinstance(state.error, AbortedError)
        assert state.error.code == "protocol"

    def test_different_keys_to_different_silos(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Silo 3 colludes and signs a second key, which silo 1 alone is shown."""

        def attack(state: Attack) -> None:
            def tamper(party: str, receiver: str, raw: bytes) -> Sent:
                if party != HUB or peek(raw).round != "keys":
                    return None
                inner = unpack(peek(raw).payload, 3)
                second = Envelope("key", 2, EVERYONE, 0, bytes(range(32)))
                other = pack(inner[0], inner[1], state.sign("silo-3", second))
                honest = [("silo-2", raw), ("silo-3", raw)]
                return [("silo-1", state.resign(raw, other)), *honest]

            state.tamper = tamper

        state = attacked(tmp_path, monkeypatch, attack)
        assert "ViewsDifferError" in state.errors("silo-1") | state.errors("silo-2")
        for name in ("silo-1", "silo-2"):
            state.no_output(name)

    @pytest.mark.parametrize("change", [{"epsilon": 9.0, "collusion": 0}])
    def test_terms_that_change_after_acceptance(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, float]
    ) -> None:
        """Bundles of a run with other q, b or t, under the same run id."""

        def attack(state: Attack) -> None:
            def tamper(party: str, receiver: str, raw: bytes) -> Sent:
                if party != HUB or peek(raw).round != "keys":
                    return None
                assert state.study is not None
                other = dataclasses.replace(state.study, **change)  # type: ignore[arg-type]
                kept, state.study = state.study, other
                try:
                    return [(receiver, state.resign(raw, peek(raw).payload))]
                finally:
                    state.study = kept

            state.tamper = tamper

        state = attacked(tmp_path, monkeypatch, attack)
        for name in state.made.names:
            assert "BindingError" in state.errors(name)
            state.no_output(name)

    def test_an_old_round_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """After the confirmations it sends the keys again, with another order of silos inside."""

        def attack(state: Attack) -> None:
            seen: list[bytes] = []

            def tamper(party: str, receiver: str, raw: bytes) -> Sent:
                if party == HUB and peek(raw).round == "keys":
                    seen.append(raw)
                if party != HUB or peek(raw).round != "confirms":
                    return None
                inner = unpack(peek(seen[0]).payload, 3)
                again = state.resign(seen[0], pack(*reversed(inner)))
                return [(receiver, again), (receiver, raw)]

            state.tamper = tamper

        state = attacked(tmp_path, monkeypatch, attack)
        for name in state.made.names:
            assert "OrderError" in state.errors(name)
            state.no_output(name)

    def test_rounds_in_the_wrong_order(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def attack(state: Attack) -> None:
            def tamper(party: str, receiver: str, raw: bytes) -> Sent:
                if party != HUB or peek(raw).round != "keys":
                    return None
                early = Envelope("confirms", COORDINATOR, EVERYONE, 0, peek(raw).payload)
                return [(receiver, state.sign(HUB, early)), (receiver, raw)]

            state.tamper = tamper

        state = attacked(tmp_path, monkeypatch, attack)
        for name in state.made.names:
            assert "OrderError" in state.errors(name)
            state.no_output(name)

    def test_cells_that_not_all_silos_have_rewritten(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It asks for the decryption of cells before pass 2: no silo gives a share."""

        def attack(state: Attack) -> None:
            state.question = Question("edges", 3.0, protocol="elgamal/blinded")

            def tamper(party: str, receiver: str, raw: bytes) -> Sent:
                if party != HUB or peek(raw).round != "open":
                    return None
                head, cells, *receipts = unpack(peek(raw).payload, 8)
                early = pack(head, cells, *receipts[:3], *receipts[:3])
                return [(receiver, state.resign(raw, early))]

            state.tamper = tamper

        state = attacked(tmp_path, monkeypatch, attack)
        for name in state.made.names:
            assert "OrderError" in state.errors(name)
            assert "share" not in state.left(name)
        assert state.answer is None

    def test_an_early_end(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def attack(state: Attack) -> None:
            def tamper(party: str, receiver: str, raw: bytes) -> Sent:
                if party != HUB or peek(raw).round != "keys":
                    return None
                assert state.study is not None
                end = Envelope("end", COORDINATOR, EVERYONE, 0, b"\0")
                return [(receiver, state.sign(HUB, end, state.study.binding(state.roster)))]

            state.tamper = tamper

        state = attacked(tmp_path, monkeypatch, attack)
        for name in state.made.names:
            assert "AbortedError" in state.errors(name)
            state.no_output(name)


class TestStudies:
    """Proposals that a silo refuses, or does not believe."""

    @pytest.mark.parametrize(
        ("question", "terms", "error", "code"),
        [
            (Question("edges", 20.0), Terms(), "PolicyError", "policy"),
            (Question("edges", 3.0), Terms(epsilon=2.0), "BudgetError", "budget"),
        ],
    )
    def test_beyond_the_policy_or_the_budget(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        question: Question,
        terms: Terms,
        error: str,
        code: str,
    ) -> None:
        def attack(state: Attack) -> None:
            state.question = question

        state = attacked(tmp_path, monkeypatch, attack, terms)
        assert error in state.errors("silo-1")
        state.no_output("silo-1")
        assert state.left("silo-1") == {"refuse": 1}
        assert isinstance(state.error, AbortedError)
        assert state.error.code == code

    def test_a_second_study_on_spent_budget(self, tmp_path: Path) -> None:
        made = trial(tmp_path, Terms(epsilon=4.0), tls=False)

        async def run() -> None:
            async with serving(made):
                await ask(made, Question("edges", 3.0))
                with pytest.raises(AbortedError, match="budget"):
                    await ask(made, Question("edges", 3.0))

        made.broker.start()
        try:
            asyncio.run(run())
        finally:
            made.broker.stop()
        state = Attack(made)
        for name in made.names:
            assert "BudgetError" in state.errors(name)
            assert state.spends(name) == 1

    def test_proposals_that_are_not_believed(self, tmp_path: Path) -> None:
        expected = {
            "garbage": "EnvelopeError",
            "foreign": "SignatureError",
            "stranger": "StudyError",
            "expired": "DeadlineError",
            "universe": "StudyError",
            "printed": "StudyError",
            "reused": "StoreError",
        }
        made = trial(tmp_path, tls=False)
        state = Attack(made)

        def errors() -> list[str]:
            return [line["error"] for line in state.log("silo-1") if "error" in line]

        async def run() -> None:
            async with serving(made, ["silo-1"]):
                line = await link(made, HUB)
                for what in expected:
                    for raw in proposals(state, what):
                        study = read_proposal(raw)
                        if study is not None:
                            await line.make_streams(study.run, ["silo-1"], 60.0)
                        await line.announce(raw)
                await until("refused", 15, lambda: len(errors()) >= len(expected))
                await asyncio.sleep(0.5)  # there would be more
                await line.close()

        made.broker.start()
        try:
            asyncio.run(run())
        finally:
            made.broker.stop()
        assert sorted(errors()) == sorted(expected.values())
        # Refusals are answered by a code; a second study under an old run id is not answered, and
        # the first one goes its way.
        assert set(state.left("silo-1")) == {"refuse", "accept", "key"}
        assert state.spends("silo-1") == 0


def proposals(state: Attack, what: str) -> list[bytes]:
    """Signed and unsigned proposals for silo 1, of which the last is wrong."""
    roster, nodes = state.roster, state.made.silo("silo-1").universe
    assert nodes is not None
    universe = NodeUniverse.from_file(nodes)
    given = {
        "run": "", "query": "edges", "method": "feat", "protocol": "masked",
        "epsilon": 3.0, "delta": 0.0, "collusion": 1, "universe": universe.digest,
        "nodes": len(universe), "roster": roster.digest.hex(), "coordinator": HUB,
        "silos": tuple(silo.name for silo in roster.silos), "deadline": 0,
    }  # fmt: skip
    given["deadline"] = int(time.time()) + 60
    given["run"] = hashlib.sha256(what.encode()).hexdigest()[:32]
    good = Study(**given)  # type: ignore[arg-type]
    if what == "garbage":
        return [b"\x00" * 100]
    if what == "foreign":
        stranger = Identity(bytes([9] * 32))
        message = Envelope("propose", COORDINATOR, EVERYONE, 0, good.encode())
        return [seal(good.binding(roster), stranger, message)]
    if what == "stranger":
        silos = (*roster.silos, Member("mallory", Identity(bytes([9] * 32)).public))
        wider = Roster(roster.coordinator, silos)
        names = tuple(silo.name for silo in silos)
        study = dataclasses.replace(good, roster=wider.digest.hex(), silos=names)
        return [study.propose(wider, state.key(HUB))]
    changes: dict[str, dict[str, object]] = {
        "expired": {"deadline": int(time.time()) - 1},
        "reused": {"epsilon": 4.0},
        "universe": {"universe": "00" * 32},
        "printed": {"protocol": "elgamal/printed", "collusion": 0},
    }
    wrong = dataclasses.replace(good, **changes[what])  # type: ignore[arg-type]
    message = Envelope("propose", COORDINATOR, EVERYONE, 0, wrong.encode())
    sent = [seal(wrong.binding(roster), state.key(HUB), message)]
    return [good.propose(roster, state.key(HUB)), *sent] if what == "reused" else sent


class TestBroker:
    """The broker, or whoever may write to it, has no party's key."""

    def test_a_dropped_chunk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def attack(state: Attack) -> None:
            def tamper(party: str, _receiver: str, raw: bytes) -> Sent:
                return [] if party == "silo-2" and peek(raw).round == "chunk" else None

            state.tamper = tamper

        state = attacked(tmp_path, monkeypatch, attack)
        assert state.answer is None
        assert isinstance(state.error, AbortedError)
        assert state.error.code == "deadline"
        assert all(state.spends(name) == 1 for name in state.made.names)

    def test_a_message_twice(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every message twice: the answer is that of once."""

        def attack(state: Attack) -> None:
            state.tamper = lambda _party, receiver, raw: [(receiver, raw), (receiver, raw)]
            state.seconds = 20.0
            state.question = Question("edges", 9.9)

        state = attacked(tmp_path, monkeypatch, attack)
        assert state.answer is not None
        assert all(state.spends(name) == 1 for name in state.made.names)

    def test_forged_messages(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Before every message a forged one: noted, dropped, and the run has its answer."""

        def attack(state: Attack) -> None:
            stranger = Identity(bytes([9] * 32))

            def tamper(party: str, receiver: str, raw: bytes) -> Sent:
                old = peek(raw)
                payload = bytes(len(old.payload))
                forged = Envelope(old.round, old.sender, old.receiver, old.sequence, payload)
                bad = seal(state.binding, stranger, forged)
                return [(receiver, bad), (receiver, raw)]

            state.tamper = tamper
            state.seconds = 20.0

        state = attacked(tmp_path, monkeypatch, attack)
        assert state.answer is not None
        for name in (HUB, *state.made.names):
            assert "SignatureError" in state.errors(name)

    def test_messages_of_another_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Bundles of an earlier run in the place of this one's."""

        def attack(state: Attack) -> None:
            def tamper(party: str, receiver: str, raw: bytes) -> Sent:
                if party != HUB or peek(raw).round != "keys":
                    return None
                old = Binding(bytes(16), state.binding.parameters, state.binding.roster)
                return [(receiver, state.resign(raw, peek(raw).payload, old))]

            state.tamper = tamper

        state = attacked(tmp_path, monkeypatch, attack)
        for name in state.made.names:
            assert "BindingError" in state.errors(name)
            state.no_output(name)

    def test_a_squatted_subject(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Something else stands where silo 2's key and its last word would go.

        It says so in its log, ends the run, and serves on.
        """

        def attack(state: Attack) -> None:
            async def squat(_state: Attack, line: Link, study: Study) -> None:
                await line.make_streams(study.run, ["silo-2"], 60.0)
                for to, word in ((HUB, "key"), (connection.ALL, "abort")):
                    where = connection.message(study.id, "silo-2", to, word, 0)
                    await line._client.jetstream().publish(where, b"mine")

            state.before = squat

        state = attacked(tmp_path, monkeypatch, attack)
        found = [line for line in state.log("silo-2") if line.get("error") == "TransportError"]
        assert {"run.failed", "word.unheard"} <= {line["event"] for line in found}
        state.no_output("silo-2")
        assert isinstance(state.error, AbortedError)

    def test_reply_subject_injection(self, tmp_path: Path) -> None:
        """A silo has the server itself write under the coordinator's name: nobody believes it."""
        made = trial(tmp_path)  # with TLS and permissions: silo 3 may not publish there itself
        state = Attack(made)

        async def run() -> dict[str, object]:
            async with serving(made):
                service = CoordinatorService(made.coordinator())
                study = service.propose(Question("edges", 3.0), 20.0).study
                hub, other = await link(made, HUB), await link(made, "silo-3")
                await hub.make_streams(study.run, [HUB], 60.0)
                where = connection.message(study.id, HUB, "silo-1", "keys", 0)
                await other._client.publish("$JS.API.INFO", b"", reply=where)
                await other._client.flush()
                for line in (hub, other):
                    await line.close()
                try:
                    return await service.carry(study.run)
                finally:
                    service.close()

        made.broker.start()
        try:
            answer = asyncio.run(run())
        finally:
            made.broker.stop()
        assert answer["answer"]
        assert "EnvelopeError" in state.errors("silo-1")
