"""A party's line to the broker: slow, cut, and with a broker that is full or loses its answers."""

import asyncio
import os
import signal
import socket
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.transport import TcpTransport

from silograph.errors import TransportError
from silograph.nats import link as links
from silograph.nats.link import Link, stream_name
from silograph.nats.pace import Rates
from silograph.party import connection
from silograph.party.connection import BrokerConfig
from tests.support.local_deployment import Broker
from tests.support.ports import free_port
from tests.support.slow_line import SlowLine

RUN = bytes(range(16))
STREAM = stream_name(RUN.hex(), "north")
CHUNK = bytes(range(256)) * 800  # 205 kB


def subject(number: int = 0) -> str:
    return connection.message(RUN, "north", "hub", "chunk", number)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    port = free_port()
    (tmp_path / "nats.conf").write_text(
        f"listen: '127.0.0.1:{port}'\nmax_payload: 4194304\n"
        f"jetstream {{ store_dir: '{tmp_path / 'streams'}', max_file_store: 1000000 }}\n"
    )
    made = Broker(tmp_path, port)
    made.start()
    yield made
    made.kill()


async def connected(port: int, party: str = "north") -> Link:
    line = await Link.connect(BrokerConfig((f"nats://127.0.0.1:{port}",)), party, 5)
    await line.make_streams(RUN.hex(), ["north"], 60.0)
    return line


def patience_of(line: Link) -> int:
    """After how long the system gives up a line on which nothing is acknowledged."""
    writer = getattr(line._client._transport, "_io_writer")  # noqa: B009 - the client's own
    option = socket.TCP_USER_TIMEOUT
    return int(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, option))


async def read(line: Link) -> bytes:
    reader = line.reader_of(RUN.hex(), "north", "hub", everyone=False)
    found = await reader.next()
    await reader.close()
    return found


class TestSlow:
    """On the way there it takes longer than any answer may take, on the way back longer than a
    reader waits before it asks again: both happen once."""

    def test_a_message_goes_out_once_and_comes_in_once(self, broker: Broker) -> None:
        port = free_port()
        slow = SlowLine(port, broker.port, 330e3, latency=0.02)

        async def run() -> None:
            line = await connected(port)
            assert patience_of(line) == 20_000  # milliseconds; pings alone would take minutes
            line.pace.rate = 1e6  # it was fast until now
            await line.publish(STREAM, subject(), CHUNK)
            assert slow.up < 1.1 * len(CHUNK)
            assert line.pace.rate < 100e3
            before = slow.down
            assert await read(line) == CHUNK
            assert slow.down - before < 1.1 * len(CHUNK)
            await line.close()

        asyncio.run(asyncio.wait_for(run(), 60))
        slow.close()

    def test_a_line_that_is_cut_in_the_middle(self, broker: Broker) -> None:
        port = free_port()
        line_ = SlowLine(port, broker.port, 1.6e6)

        async def run() -> None:
            line = await connected(port)
            sending = asyncio.create_task(line.publish(STREAM, subject(), CHUNK))
            while line_.up < len(CHUNK) / 2:
                await asyncio.sleep(0.01)
            line_.cut(0.0)
            await sending
            assert line.reconnects == 1
            assert patience_of(line) == 20_000
            assert line_.up < 2.2 * len(CHUNK)
            assert await read(line) == CHUNK
            info = await line._streams.stream_info(STREAM, subjects_filter=subject())
            assert info.state.subjects == {subject(): 1}
            await line.close()

        asyncio.run(run())
        line_.close()

    def test_the_rate_by_a_probe(self, broker: Broker) -> None:
        port = free_port()
        slow = SlowLine(port, broker.port, 800e3, latency=0.05)

        async def run() -> Rates:
            line = await connected(port)
            found = await line.measure(RUN.hex(), 50_000)
            await line.close()
            return found

        found = asyncio.run(run())
        assert found.up == pytest.approx(100e3, rel=0.4)
        assert found.down == pytest.approx(100e3, rel=0.4)
        slow.close()


def test_an_answer_that_was_lost(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker is asked what it has; the message is not sent again."""
    monkeypatch.setattr("silograph.nats.pace._LEAST_PATIENCE", 0.5)
    came, lost = links._Answers._came, []

    async def deaf(self: links._Answers, message: Any) -> None:
        if lost:
            await came(self, message)
        lost.append(message)

    monkeypatch.setattr(links._Answers, "_came", deaf)

    async def run() -> int:
        line = await connected(broker.port)
        line.pace.rate = 1e7
        await asyncio.wait_for(line.publish(STREAM, subject(), CHUNK), 10)
        sent = int(line._client.stats["out_bytes"])
        await line.close()
        return sent

    assert asyncio.run(run()) < 1.1 * len(CHUNK)
    assert len(lost) == 1


def test_another_message_under_the_same_name(broker: Broker) -> None:
    """It is handed on: whoever sent it may have signed it with our key."""

    async def run() -> None:
        line = await connected(broker.port)
        await line.publish(STREAM, subject(), b"one")
        await line.publish(STREAM, subject(), b"one")
        with pytest.raises(TransportError, match="squats") as caught:
            await line.publish(STREAM, subject(), b"two")
        assert caught.value.standing == b"one"
        await line.close()

    asyncio.run(run())


def test_what_is_given_up_is_no_trouble_any_more(broker: Broker) -> None:
    """A message into a stream that was removed, until nobody waits for it."""

    async def run() -> None:
        line = await connected(broker.port)
        await line.drop_streams([STREAM])
        sending = asyncio.create_task(line.publish(STREAM, subject(), b"late"))
        async with asyncio.timeout(10):
            while "no stream for this run" not in line.trouble:
                await asyncio.sleep(0.05)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        assert line.trouble == ""
        await line.close()

    asyncio.run(run())


def test_a_full_disk_is_named_while_the_line_is_measured(broker: Broker) -> None:
    """Before a study begins, nothing but a probe is stored."""

    async def run() -> None:
        line = await connected(broker.port)
        await line.measure(RUN.hex(), 2_000_000)  # the server sees afterwards that it was too much
        measuring = asyncio.create_task(line.measure(RUN.hex(), 100_000))
        async with asyncio.timeout(10):
            while "the broker's disk is full" not in line.trouble:
                await asyncio.sleep(0.05)
        measuring.cancel()
        await asyncio.gather(measuring, return_exceptions=True)
        await line.close()

    asyncio.run(run())


def test_a_broker_that_answers_and_stores_nothing_is_named(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a real server does whose disk has no byte left: it does not confirm, nor refuse."""

    async def deaf(_self: links._Answers, _message: Any) -> None:
        pass

    monkeypatch.setattr(links._Answers, "_came", deaf)
    monkeypatch.setattr(links, "_NOTE_SECONDS", 0.2)
    monkeypatch.setattr(links, "_LOOK_SECONDS", 0.2)

    async def run() -> None:
        line = await connected(broker.port)
        assert not await line._accepts(STREAM)
        assert "answers and stores nothing: its disk is full" in line.trouble
        await line.close()

    asyncio.run(run())


@pytest.mark.parametrize("begun", [True, False], ids=["with a stream", "before there is one"])
def test_a_broker_that_hangs_is_named(
    broker: Broker, begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection stays, and nothing comes on it: the system says so long before it ends."""
    monkeypatch.setattr(links, "_NOTE_SECONDS", 1.0)
    monkeypatch.setattr(links, "_INFO_SECONDS", 1.0)
    monkeypatch.setattr(links, "_LOOK_SECONDS", 0.2)
    told: list[str] = []

    async def run() -> None:
        line = await connected(broker.port)
        if not begun:
            line._used.clear()
        watching = asyncio.create_task(line.watch(lambda: [RUN.hex()], told.append))
        await asyncio.sleep(1.5)
        assert told == []
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(5):
                while not told:
                    await asyncio.sleep(0.05)
            assert line.connected
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        async with asyncio.timeout(10):
            while told[-1]:
                await asyncio.sleep(0.05)
        watching.cancel()
        await line.close()

    asyncio.run(run())
    assert "the broker does not answer" in told[0]


def test_a_full_disk_is_named_and_waited_for(broker: Broker) -> None:
    """By the party that sends and by one that only waits; nothing large is sent in vain."""

    async def run() -> None:
        line, waiting = await connected(broker.port), await connected(broker.port)
        other = bytes(15) + b"o"
        await line.make_streams(other.hex(), ["north"], 60.0)
        await line.make_streams(RUN.hex(), ["south"], 60.0)
        for number in range(5):
            place = connection.message(other, "north", "hub", "chunk", number)
            await line.publish(stream_name(other.hex(), "north"), place, CHUNK)
        told: dict[str, list[str]] = {"sender": [], "waiter": []}
        watching = [
            asyncio.create_task(one.watch(lambda: [RUN.hex()], told[name].append))
            for name, one in (("sender", line), ("waiter", waiting))
        ]
        waiting._used.add(STREAM)
        sending = asyncio.create_task(line.publish(STREAM, subject(), CHUNK))
        async with asyncio.timeout(15):
            while not all(told.values()):
                await asyncio.sleep(0.05)
        sent = int(line._client.stats["out_bytes"])
        await asyncio.sleep(2.5)
        assert int(line._client.stats["out_bytes"]) < sent + len(CHUNK)
        assert not sending.done()
        for texts in told.values():
            assert "the broker's disk is full" in texts[0]
        assert line.trouble == waiting.trouble == told["waiter"][0]
        await line.drop_streams([stream_name(other.hex(), "north")])
        await asyncio.wait_for(sending, 15)
        async with asyncio.timeout(15):
            while any(texts[-1] for texts in told.values()):
                await asyncio.sleep(0.05)
        for task in watching:
            task.cancel()
        for one in (line, waiting):
            await one.close()

    asyncio.run(run())


@pytest.mark.parametrize("size", [1, 1 << 16, len(CHUNK), 1 << 20])
def test_a_large_message_is_sent_as_the_client_would(size: int) -> None:
    """Byte for byte, at once, and counted; what is small is left to the client."""
    raw = bytes(size)
    headers = {"Nats-Expected-Last-Subject-Sequence": "0", "Nats-Expected-Stream": "north"}

    async def queued(uncopied: bool) -> tuple[list[bytes], dict[str, int]]:
        client: Any = Client()
        client._status, client._max_payload = Client.CONNECTED, 2 << 20
        client._transport, client._flush_queue = TcpTransport(), asyncio.Queue()
        client._flusher_task = asyncio.get_running_loop().create_future()
        if not uncopied:
            await client.publish("to", raw, reply="re", headers=headers)
        elif not await links._Answers(client)._sent_uncopied("to", raw, "re", headers):
            assert not client._pending_data_size
            return [], client.stats
        assert client._flush_queue.qsize() == 1
        assert client._pending_data_size == sum(map(len, client._pending))
        return client._pending, client.stats

    pieces, counted = asyncio.run(queued(uncopied=True))
    assert bool(pieces) == (size >= 1 << 16)
    if pieces:
        copied, stats = asyncio.run(queued(uncopied=False))
        assert pieces[1] is raw
        assert (b"".join(pieces), counted) == (b"".join(copied), stats)


def test_a_client_of_another_kind_sends_itself() -> None:
    """It keeps its queue in another way."""
    client: Any = Client()
    client._pending = deque()
    client._status, client._transport = Client.CONNECTED, TcpTransport()
    answers = links._Answers(client)
    assert not asyncio.run(answers._sent_uncopied("to", CHUNK, "re", {}))
    assert not client.stats["out_msgs"]


def test_a_broker_that_takes_no_chunks_is_found_at_once(tmp_path: Path) -> None:
    """Not by the first chunk, after the run was paid for."""
    port = free_port()
    (tmp_path / "nats.conf").write_text(
        f"listen: '127.0.0.1:{port}'\njetstream {{ store_dir: '{tmp_path / 'streams'}' }}\n"
    )
    broker = Broker(tmp_path, port)
    broker.start()
    try:
        with pytest.raises(TransportError, match=r"at most 1,048,576 bytes.*max_payload: 4194304"):
            asyncio.run(connected(port))
    finally:
        broker.kill()


def test_a_message_that_is_too_large_is_not_sent_again(broker: Broker) -> None:
    async def run() -> None:
        line = await connected(broker.port)
        line._client._max_payload = len(CHUNK)  # what stands before it does not fit
        with pytest.raises(TransportError, match="max_payload: 4194304") as caught:
            await asyncio.wait_for(line.publish(STREAM, subject(), CHUNK), 5)
        assert caught.value.lasting
        await line.close()

    asyncio.run(run())
