"""What a carrier freezes, sends and refuses, over a line that only listens."""

import asyncio
from collections.abc import Awaitable, Container
from pathlib import Path
from typing import Any, TypeVar

import pytest

from silograph.errors import OrderError, StoreError
from silograph.messages.entropy import RunEntropy
from silograph.messages.envelope import EVERYONE, Binding, Envelope, Outgoing, peek, seal, stamp
from silograph.messages.identity import COORDINATOR, pack, unpack
from silograph.messages.machine import SiloSession
from silograph.nats.carrier import Carrier, Seat
from silograph.party.log import Log
from silograph.party.store import Store
from tests.methods.test_sessions import SILOS, Recorded, roster_for, silo
from tests.methods.test_study import KEYS, ROSTER

T = TypeVar("T")


class Listening:
    """A link that has everything arrive, or nothing."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, bytes]] = []
        self.up = True

    def own_stream(self, run: str) -> str:
        return f"stream of {run}"

    async def publish(self, _stream: str, subject: str, raw: bytes) -> None:
        if not self.up:
            await asyncio.Event().wait()
        self.heard.append((subject, raw))


class Silo1:
    """Silo 1's carrier of one run; ``restart`` is a new process on the same store."""

    def __init__(self, folder: Path, run: Recorded, secret: int = 0) -> None:
        self.run = run
        self.link = Listening()
        self._folder = folder
        self.store = Store(folder / "store.db", "silo-1")
        self.store.add(run.plan.study.run, b"proposal")
        self.restart(secret)

    def restart(self, secret: int = 0) -> None:
        session = silo(self.run.plan, 0)
        if secret:
            entropy = RunEntropy(bytes([secret] * 32))
            session = self.run.plan.silo(ROSTER, 0, KEYS[0], entropy, SILOS[0])
        seat = Seat(self.run.plan.study, ROSTER, 0, KEYS[0], "silo")
        link: Any = self.link
        log = Log(self._folder / "log.jsonl", "north")
        self.carrier = Carrier(seat, session, self.store, link, log)

    def do(self, work: Awaitable[T]) -> T:
        async def within() -> T:
            return await asyncio.wait_for(work, 2)

        return asyncio.run(within())


@pytest.fixture(scope="module")
def run() -> Recorded:
    return Recorded("masked")


@pytest.fixture
def one(tmp_path: Path, run: Recorded) -> Silo1:
    return Silo1(tmp_path, run)


def rounds(one: Silo1) -> list[str]:
    return [peek(raw).round for _, raw in one.link.heard]


def other_keys(run: Recorded) -> bytes:
    """The bundle of keys once more, with a second key that silo 3 signed too."""
    binding = run.coordinator.bindings[0]
    first, second, _ = unpack(peek(run.told[0][0]).payload, 3)
    third = seal(binding, KEYS[2], Envelope("key", 2, EVERYONE, 0, bytes(range(32))))
    message = Envelope("keys", COORDINATOR, EVERYONE, 0, pack(first, second, third))
    return seal(binding, KEYS[3], message)


def test_a_whole_part(one: Silo1, run: Recorded) -> None:
    one.do(one.carrier.start())
    for raw in run.told[0]:
        assert one.do(one.carrier.take(raw)) is True
        assert one.do(one.carrier.take(raw)) is False  # again: taken once
    one.carrier.session.authorise()  # type: ignore[attr-defined]
    one.do(one.carrier.pump())
    assert [raw for _, raw in one.link.heard] == [out.raw for out in run.said[0]]
    assert one.link.heard[0][0].endswith(".silo-1.hub.key.0")
    one.carrier.settle()
    assert one.store.pending(one.carrier.run) == []  # the bytes of all that arrived are let go


def test_other_content_under_an_old_name_is_refused_after_a_restart_too(
    one: Silo1, run: Recorded
) -> None:
    """Shown other keys after its restart, a silo would put its bits under other masks."""
    one.do(one.carrier.start())
    one.do(one.carrier.take(run.told[0][0]))
    one.restart()
    one.do(one.carrier.start())
    with pytest.raises(OrderError, match="other content"):
        one.do(one.carrier.take(other_keys(run)))
    assert rounds(one) == ["key", "confirm"]


def test_what_a_stranger_makes_up_ends_nothing(one: Silo1, run: Recorded) -> None:
    one.do(one.carrier.start())
    binding, stranger = run.coordinator.bindings[0], KEYS[1]
    forged = seal(binding, stranger, Envelope("keys", COORDINATOR, EVERYONE, 0, b"x"))
    for raw in (b"", b"garbage", forged):
        assert one.do(one.carrier.take(raw)) is False
    one.do(one.carrier.take(run.told[0][0]))
    one.restart()
    one.do(one.carrier.start())
    assert one.do(one.carrier.take(forged)) is False  # under a name that is known
    assert one.do(one.carrier.take(run.told[0][0])) is True


def test_a_message_is_frozen_before_it_is_sent(one: Silo1) -> None:
    one.link.up = False
    with pytest.raises(TimeoutError):
        one.do(one.carrier.start())
    assert [message.name.round for message in one.store.pending(one.carrier.run)] == ["key"]
    one.link.up = True
    one.restart()
    one.do(one.carrier.repeat())
    assert rounds(one) == ["key"]


def agreed(one: Silo1, run: Recorded) -> None:
    """Up to the first chunk, as often as the party is started."""
    one.do(one.carrier.start())
    for raw in run.told[0]:
        one.do(one.carrier.take(raw))
    one.carrier.session.authorise()  # type: ignore[attr-defined]


def test_chunks_that_were_not_sent_are_made_again(one: Silo1, run: Recorded) -> None:
    agreed(one, run)
    assert one.carrier._make()  # and killed before anything was sent
    assert one.store.pending(one.carrier.run) == []  # of chunks only stamps are kept
    one.restart()
    one.do(one.carrier.repeat())
    agreed(one, run)
    one.do(one.carrier.pump())
    said = [out.raw for out in run.said[0]]
    assert {raw for _, raw in one.link.heard} == set(said)
    chunks = [raw for _, raw in one.link.heard if peek(raw).round == "chunk"]
    assert chunks == [raw for raw in said if peek(raw).round == "chunk"]


def test_other_chunks_are_not_sent_in_the_place_of_those_that_were_frozen(
    one: Silo1, run: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    agreed(one, run)
    assert one.carrier._make()
    one.restart()
    agreed(one, run)
    session: Any = one.carrier.session
    bits = session._bits
    monkeypatch.setattr(session, "_bits", lambda *at: bytes(255 - byte for byte in bits(*at)))
    with pytest.raises(StoreError, match="never made anew"):
        one.do(one.carrier.pump())
    assert "chunk" not in rounds(one)


class Many(SiloSession):
    """A session that makes nine small messages by itself."""

    ahead, phase, done, ready = True, "", False, False  # type: ignore[assignment]

    def __init__(self, binding: Binding) -> None:
        self.bindings = (binding,)
        self.made = 0

    def receive(self, raw: bytes) -> list[Outgoing]:
        return []

    def authorise(self) -> list[Outgoing]:
        return []

    @property
    def room(self) -> bool:
        return self.made < 9

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        message = Envelope("chunk", 0, COORDINATOR, self.made, b"x")
        self.made += 1
        return [Outgoing(COORDINATOR, seal(self.bindings[0], KEYS[0], message))]


def test_messages_that_are_quickly_made_are_recorded_together_and_sent_in_order(
    one: Silo1, run: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.carrier.session = Many(run.coordinator.bindings[0])
    recorded: list[int] = []
    step = Store.step

    def counted(store: Store, name: str, taken: Any, outgoing: Any, *rest: Any) -> Any:
        recorded.append(len(outgoing))
        return step(store, name, taken, outgoing, *rest)

    monkeypatch.setattr(Store, "step", counted)
    monkeypatch.setattr("silograph.nats.carrier._TOGETHER_SECONDS", 60.0)
    one.do(one.carrier.pump())
    assert recorded == [8, 1]
    assert [peek(raw).sequence for _, raw in one.link.heard] == list(range(9))


def test_a_good_signature_above_another_payload_is_dropped(one: Silo1, run: Recorded) -> None:
    """What is compared with earlier messages is the signed head: the session looks at the rest."""
    raw = run.told[0][0]
    forged = raw[:-1] + bytes([raw[-1] ^ 1])
    assert stamp(peek(forged)) == stamp(peek(raw)) != stamp(peek(other_keys(run)))
    one.do(one.carrier.start())
    assert one.do(one.carrier.take(forged)) is False
    assert one.do(one.carrier.take(raw)) is True
    one.restart()
    one.do(one.carrier.start())
    assert one.do(one.carrier.take(forged)) is False
    assert one.do(one.carrier.take(raw)) is True


def test_with_another_secret_nothing_goes_out(one: Silo1) -> None:
    one.do(one.carrier.start())
    one.restart(secret=77)
    with pytest.raises(StoreError, match="never made anew"):
        one.do(one.carrier.start())
    assert rounds(one) == ["key"]


class TestReplay:
    """A restarted coordinator, which finds whole streams of all silos at once."""

    def hub(self, folder: Path, run: Recorded) -> tuple[Carrier, Listening]:
        store = Store(folder / "hub.db", "hub")
        if store.run(run.plan.study.run) is None:
            store.add(run.plan.study.run, b"proposal")
        roster = roster_for(run.plan)
        seat = Seat(run.plan.study, roster, COORDINATOR, KEYS[3], "coordinator")
        session = run.plan.coordinator(roster, KEYS[3], RunEntropy(b"hub"))
        link, log = Listening(), Log(folder / "hub.jsonl", "hub")
        given: Any = link
        return Carrier(seat, session, store, given, log), link

    @pytest.mark.parametrize(
        "method",
        ["masked", "elgamal/blinded", "feat+", "sealed", "sealed with a bound", "committee"],
    )
    def test_what_was_taken_comes_first_and_in_the_same_order(
        self, method: str, tmp_path: Path
    ) -> None:
        run = Recorded(method)
        first, link = self.hub(tmp_path, run)
        streams = [
            [out.raw for out in said if out.to in (COORDINATOR, EVERYONE)] for said in run.said
        ]
        asyncio.run(self.carry(first, streams, fair=True))
        assert first.session.done
        again, repeated = self.hub(tmp_path, run)
        asyncio.run(self.carry(again, streams, fair=False))
        assert again.session.done
        assert set(repeated.heard) <= set(link.heard)  # only what was not known to have arrived

    async def carry(self, hub: Carrier, streams: list[list[bytes]], *, fair: bool) -> None:
        """Take from the streams: in turns, or each as far as it can be."""
        waiting = [list(stream) for stream in streams]
        while any(waiting):
            before = sum(map(len, waiting))
            for stream in waiting:
                while stream and (self.live(hub, stream[0]) if fair else hub.due(stream[0])):
                    await hub.take(stream.pop(0))
                    await hub.pump()
                    if fair:
                        break
            assert sum(map(len, waiting)) < before, "nothing is due"

    @staticmethod
    def live(hub: Carrier, raw: bytes) -> bool:
        """Whether a silo would have sent it by now: all that it answers to has been sent."""
        needs = {
            "confirm": "keys", "chunk": "confirms", "hop": "work", "share": "open",
            "seen": "shown", "open": "confirms", "sum": "confirms", "done": "confirms",
        }  # fmt: skip
        sent = {name for name, _ in hub._store.sent(hub.run)}
        message = peek(raw)
        if message.round == "numbers" and len(message.payload) == 32:
            return "seens" in sent
        return needs.get(message.round, "") in {"", *sent}
