"""A party's connection to the broker: publish once, read in order, survive lost connections.

What
    Each sender has one stream per run; a stream is a sequence of messages that the broker stores.
    Each message has its own subject. It is published on the condition that the subject is still
    empty, and again until the broker confirms it. So it is stored once, even if the connection is
    lost. A message that may be on its way is not sent again: the broker is asked for it first, and
    a late confirmation counts (see :mod:`~silograph.nats.pace`). A reader pulls one message after
    the other. After a lost connection it continues behind the last message that it saw, so nothing
    is skipped. Messages that are not pulled stay with the broker.
What it does not do
    It proves nothing. A broker can drop, repeat, reorder and invent messages; the session that
    processes them detects this.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import math
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import datetime
from types import MethodType
from typing import Any

from silograph.extras import library

library("nats", "deployments")  # a clear error before the import would fail

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import RetentionPolicy, StreamConfig
from nats.js.errors import APIError, NotFoundError

from silograph.errors import TransportError
from silograph.nats.broker import LARGEST_MESSAGE, LEAST_PAYLOAD
from silograph.nats.heard import SILENT, Heard, keep_memory, no_news, set_up, silent_for
from silograph.nats.pace import Pace, Rates
from silograph.nats.reader import PASSING, Reader, Traffic, heed
from silograph.party import connection
from silograph.party.connection import BrokerConfig
from silograph.party.control import NOTICE as _NOTICE

__all__ = ["STUDIES_STREAM", "Link", "at_once", "stream_name"]

#: The receiver of notes that nobody reads; no party has this name.
_NOBODY = "_"
#: The stream of all proposals.
STUDIES_STREAM = f"{connection.PREFIX}-studies"

#: How long the broker may take to answer a small request, in seconds.
_ANSWER_SECONDS = 4.0
#: More bytes than a block of a disk has, and the share of a line that notes of this size may take:
#: on a line of 256 kbit/s one in half a minute, on one of 2 Mbit/s as often as a party looks.
_BLOCK, _BLOCK_SHARE = 5000, 0.005
#: From this size on, in bytes, messages are sent without a copy, if what the client keeps of its
#: queue is of these kinds.
_LARGE = 1 << 16
_QUEUE: dict[str, type] = {
    "_pending": list,
    "_pending_data_size": int,
    "_max_pending_size": int,
    "_flush_pending": MethodType,
    "stats": dict,
}
#: More bytes than the headers of a message have, which the broker counts as a part of it.
_HEADERS = 1 << 10
#: How long a party that waits gives the broker to store a note, and then to answer at all.
_NOTE_SECONDS, _INFO_SECONDS = 2.0, 3.0
#: How long it may take to send a large message back; large ones take minutes on a slow line.
_READ_BACK_SECONDS = 300.0
_PROBE_SECONDS = 60.0
_FLUSH_SECONDS = 5
_NOTICE_SECONDS = 60.0
_PAUSE_SECONDS = 0.25
#: The longest pause between two attempts to send a message that the broker refuses.
_LONGEST_RETRY = 8.0
#: How often a party that waits for a confirmation looks whether the connection was lost.
_LOOK_SECONDS = 1.0
#: In which of so many looks a party that waits tries whether the broker stores messages. With the
#: time of an answer, a cause is named in less than ten seconds.
_LOOK_EVERY = 3
#: What keeps messages from being stored, for people.
_HANGS = "the broker does not answer: it hangs, or something between drops what is sent"
_STORES_NOTHING = (
    "the broker answers and stores nothing: its disk is full or broken, as its log will say; its "
    "operator gives it room and restarts it, and everything continues then"
)
_NO_STREAM = "the broker has no stream for this run: it was removed, or its server is down"
#: Codes of the broker's errors.
_TAKEN = (10071, 10164)  # something is stored under the subject, or is being stored
_STREAM_NAME_IN_USE = 10058
_NO_CLUSTER = 10074


def stream_name(run: str, sender: str) -> str:
    """The stream of one sender's messages in one run."""
    return f"{connection.PREFIX}-{run}-{sender}"


async def at_once(*work: Coroutine[Any, Any, Any]) -> None:
    """Do several things at the same time. The first error ends them all.

    A task group would leave its own task marked as cancelled (before Python 3.13), see ``heed``.
    """
    tasks = [asyncio.ensure_future(part) for part in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Link:
    """One connection of one party to the broker."""

    def __init__(self, client: Client, party: str, heard: Heard) -> None:
        self._client = client
        self._party = party
        self._heard = heard
        self.traffic = Traffic()
        self.pace = Pace()
        self._unstored = ""  # what keeps the broker from storing messages, for people
        self._rate = math.inf  # to the broker, bytes a second, if it was measured
        self._large_again = 0.0  # when a large note may be sent
        self._streams: JetStreamContext = client.jetstream(timeout=_ANSWER_SECONDS)
        self._patient: JetStreamContext = client.jetstream(timeout=_READ_BACK_SECONDS)
        self._answers = _Answers(client)
        self._used: set[str] = set()

    @classmethod
    async def connect(cls, broker: BrokerConfig, party: str, seconds: float) -> "Link":
        """Connect, with a limit of ``seconds``; on return the party can publish and be reached.

        Raises :class:`TransportError` with the cause and what helps. It is lasting if the broker
        takes the party for another one: it would answer nothing that the party asks.
        """
        keep_memory()
        client = Client()
        heard = Heard(broker, party, client)
        options = broker.connect_options(party) | heard.callbacks
        logging.getLogger("asyncio").addFilter(no_news)
        connecting = asyncio.ensure_future(client.connect(**options))
        tried = asyncio.ensure_future(heard.tried.wait())
        try:
            await asyncio.wait(
                {connecting, tried}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not connecting.done():
                raise TimeoutError
            connecting.result()
            set_up(client)
            link = cls(client, party, heard)
            await link._try_subjects()
        except PASSING as error:
            why = await heard.reason() or str(error) or SILENT
            raise TransportError(f"{heard.where}: cannot connect: {why}") from None
        finally:
            for task in (connecting, tried):
                task.cancel()
            await asyncio.gather(connecting, tried, return_exceptions=True)
        return link

    async def _try_subjects(self) -> None:
        """Listen and publish once under the party's own name.

        The server reports what it forbids before it answers a later ping. One that takes no chunks
        would be found out after the run was paid for.
        """
        self._heard.cause = ""  # attempts that failed are no news any more
        try:
            if self._client.max_payload < LEAST_PAYLOAD:
                raise TransportError(f"{self._heard.where}: {_too_large(self._client)}")
            trial = await self._client.subscribe(f"{connection.inbox(self._party)}.trial")
            await self._client.publish(f"{connection.PREFIX}.trial.{self._party}.trial")
            for _ in range(2):  # the client's ping may overtake what it was asked to send before
                await self._client.flush(timeout=_FLUSH_SECONDS)
            await trial.unsubscribe()
            if self._heard.cause:
                raise TransportError(f"{self._heard.where}: {self._heard.cause}", lasting=True)
        except BaseException:
            await self.close()
            raise

    async def ended(self) -> None:
        """Wait until the connection can no longer be used, and raise the reason."""
        await self._heard.over.wait()
        self._heard.check()

    @property
    def trouble(self) -> str:
        """Why nothing moves: there is no connection, or the broker stores nothing; else empty."""
        if self.connected:
            return self._unstored
        return f"{self._heard.where}: {self._heard.cause or 'the connection was lost'}"

    @property
    def connected(self) -> bool:
        """Whether the connection is up now."""
        return bool(self._client.is_connected)

    @property
    def reconnects(self) -> int:
        """How often the connection was lost and restored."""
        return int(self._client.stats["reconnects"])

    # -- streams -----------------------------------------------------------------------------

    async def make_streams(
        self, run: str, senders: Iterable[str], lifetime: float, replicas: int = 1
    ) -> None:
        """Create the streams of a run that do not exist, one for each sender.

        The coordinator does this before it proposes the run. ``replicas`` is the number of servers
        that keep a copy.
        """
        configs = [
            StreamConfig(
                name=stream_name(run, sender),
                subjects=[f"{connection.PREFIX}.{run}.{sender}.>"],
                retention=RetentionPolicy.LIMITS,
                max_age=max(lifetime, 60.0),
                num_replicas=replicas,
                allow_direct=True,
                allow_rollup_hdrs=True,  # see _accepts
            )
            for sender in senders
        ]
        await at_once(*(self._make(config) for config in configs))
        self._used.add(self.own_stream(run))

    def own_stream(self, run: str) -> str:
        """The name of this party's stream of a run."""
        return stream_name(run, self._party)

    async def studies_stream(self, replicas: int = 1) -> str:
        """Create the stream of proposals if it does not exist; returns its name."""
        config = StreamConfig(
            name=STUDIES_STREAM,
            subjects=[connection.STUDIES],
            retention=RetentionPolicy.LIMITS,
            max_age=30 * 24 * 3600.0,
            num_replicas=replicas,
        )
        if not await self._make(config):  # the number of replicas may have changed
            with contextlib.suppress(*PASSING):
                await self._streams.update_stream(config)
        return STUDIES_STREAM

    async def _make(self, config: StreamConfig) -> bool:
        """Create a stream; False if there is one of this name with other settings."""
        while True:
            try:
                await self._streams.add_stream(config)
                heed()
                self._unstored = ""
                return True
            except APIError as error:
                if error.err_code == _STREAM_NAME_IN_USE:  # made before a restart
                    return False
                if error.err_code == _NO_CLUSTER:
                    raise TransportError(
                        f"replicas = {config.num_replicas} needs a cluster of as many servers, and "
                        "the broker is a single one"
                    ) from None
                self._name_trouble(error.description)
            except PASSING:
                pass
            await self._pause()

    async def drop_streams(self, names: Iterable[str]) -> None:
        """Remove streams. Those that cannot be removed now are left for the next sweep."""
        for name in names:
            with contextlib.suppress(*PASSING):
                await self._streams.delete_stream(name)
            heed()

    async def stream_names(self) -> list[str]:
        """The names of all streams of runs that the broker has."""
        found: list[str] = []
        while True:
            asked = {"subject": f"{connection.PREFIX}.*.>", "offset": len(found)}
            try:
                answer = await self._client.request(
                    "$JS.API.STREAM.NAMES", json.dumps(asked).encode(), timeout=_ANSWER_SECONDS
                )
                heed()
                page = json.loads(answer.data)
                names = page.get("streams") or []
            except (*PASSING, ValueError) as error:
                raise TransportError(f"the broker does not say what it stores: {error}") from None
            found += names
            if not names or len(found) >= page.get("total", 0):
                return [name for name in found if name != STUDIES_STREAM]

    async def outlived(self, stream: str) -> bool:
        """Whether a stream was made for a notice that is no longer in it."""
        try:
            found = await self._streams.stream_info(stream)
            heed()
        except PASSING:
            heed()
            return False
        short = (found.config.max_age or math.inf) <= _NOTICE_SECONDS
        return short and found.state.last_seq > 0 and not found.state.messages

    # -- publishing --------------------------------------------------------------------------

    async def publish(self, stream: str, subject: str, raw: bytes) -> None:
        """Publish a message once; waits until the broker has it, without a time limit."""
        pause = _PAUSE_SECONDS
        try:
            async with self.pace.turn(len(raw)):
                while not await self._attempt(stream, subject, raw):
                    # Nothing large goes out again before the broker takes what is small.
                    while not await self._accepts(stream):
                        await asyncio.sleep(_LOOK_SECONDS)
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_RETRY)
        finally:  # it is stored, or nobody waits for it any more
            self._unstored = ""
        self._used.add(stream)
        self.traffic.went()

    async def _attempt(self, stream: str, subject: str, raw: bytes) -> bool:
        """Send a message and wait until the broker has it, or surely does not: then False."""
        while not self.connected:  # what is sent now would wait in the client
            await self._pause()
        headers = {"Nats-Expected-Last-Subject-Sequence": "0"}
        epoch, began, absent = self.reconnects, time.monotonic(), 0
        headers |= {"Nats-Expected-Stream": stream}
        try:
            answer = await self._answers.to(subject, raw, headers)
        except PASSING:
            await self._pause()
            return False
        try:
            while absent < 2:
                await asyncio.wait({answer}, timeout=_LOOK_SECONDS)
                heed()
                if answer.done():
                    return await self._judged(answer.result(), stream, subject, raw)
                lost = self.reconnects != epoch
                if not lost and time.monotonic() < began + self.pace.patience:
                    continue
                # The question goes the same way, behind the message: if the answer is that there
                # is none, it did not arrive. It may still be being stored, so ask twice.
                stored = await self._stored(stream, subject)
                if stored and not answer.done():
                    return await self._holds(stream, subject, raw)
                absent += (2 if lost else 1) if stored is False else 0
            return False
        finally:
            answer.cancel()

    async def _judged(self, answer: Msg, stream: str, subject: str, raw: bytes) -> bool:
        """Whether the broker's answer to a message means that it has the message."""
        if answer.headers and answer.headers.get("Status"):  # nobody listens: no stream, no leader
            return False
        try:
            error = json.loads(answer.data).get("error")
        except (ValueError, AttributeError):
            return False
        if error is None:
            return True
        if error.get("err_code") in _TAKEN:
            return await self._holds(stream, subject, raw)
        self._name_trouble(str(error.get("description")))
        return False

    async def _stored(self, stream: str, subject: str) -> bool | None:
        """Whether something is stored under a subject; None if the broker does not say."""
        try:
            found = await self._streams.stream_info(stream, subjects_filter=subject)
            heed()
            return bool(found.state.subjects)
        except NotFoundError:  # the stream itself
            return False
        except PASSING:
            heed()
            return None

    async def _accepts(self, stream: str) -> bool:
        """Whether the broker stores a note now. It replaces the one before it.

        While nothing moves, the note is larger than what a full disk has left in a file's last
        block. What is under way itself shows whether the broker stores it, and wants the line.
        """
        headers = {"Nats-Rollup": "sub", "Nats-Expected-Stream": stream}
        still = self.pace.idle and time.time() - (self.traffic.last or 0.0) > _LOOK_SECONDS
        large = still and time.monotonic() >= self._large_again
        if large:
            self._large_again = time.monotonic() + _BLOCK / (_BLOCK_SHARE * self._rate)
        try:
            answer = await self._answers.to(self._note(stream), bytes(_BLOCK * large), headers)
        except PASSING:
            return False
        try:
            await asyncio.wait({answer}, timeout=_NOTE_SECONDS)
            if not answer.done() and await self._answers_at_all():
                await asyncio.wait({answer}, timeout=_LOOK_SECONDS)  # it may just be being stored
                if not answer.done():
                    self._unstored = _STORES_NOTHING
            heed()
            return answer.done() and self._took_note(answer.result())
        finally:
            answer.cancel()

    def _took_note(self, answer: Msg) -> bool:
        """Whether the broker's answer to a note means that it stores messages."""
        if answer.headers and answer.headers.get("Status"):
            self._unstored = _NO_STREAM
            return False
        with contextlib.suppress(ValueError, AttributeError):
            error = json.loads(answer.data).get("error")
            if error is not None:
                return not self._name_trouble(str(error.get("description")))
        self._unstored = ""
        return True

    async def _answers_at_all(self) -> bool:
        """Whether the broker answers; if not, that is named, unless the line is just slow.

        The answer comes behind all that was sent to this party before.
        """
        try:
            await self._client.request("$JS.API.INFO", timeout=_INFO_SECONDS)
            heed()
        except PASSING:
            heed()
            if self.connected and silent_for(self._client) >= _INFO_SECONDS:
                self._unstored = _HANGS
            return False
        if self._unstored == _HANGS:
            self._unstored = ""
        return True

    def _note(self, stream: str) -> str:
        return f"{connection.PREFIX}.{stream.split('-')[1]}.{self._party}.{_NOBODY}.note"

    async def _store_note(self, stream: str, raw: bytes, seconds: float) -> None:
        """Store what nobody reads, in the place of the note before it."""
        await self._streams.publish(
            self._note(stream), raw, timeout=seconds, stream=stream, headers={"Nats-Rollup": "sub"}
        )
        heed()

    async def watch(self, runs: Callable[[], Iterable[str]], tell: Callable[[str], None]) -> None:
        """Call ``tell`` whenever something else, or nothing, keeps the broker from storing.

        A party that waits for others sends nothing, so while a run is open, it tries every few
        seconds whether the broker answers and stores messages.
        """
        told, turn, before = "", 0, False
        while True:
            open_now = list(runs())
            if before and not open_now:  # whatever it was, nobody waits any more
                self._unstored = ""
            before = bool(open_now)
            streams = [stream for run in open_now if (stream := self.own_stream(run)) in self._used]
            if turn % _LOOK_EVERY == 0 and self.connected and open_now:
                await (self._accepts(streams[0]) if streams else self._answers_at_all())
            if self._unstored != told:
                told = self._unstored
                tell(told)
            turn += 1
            await asyncio.sleep(_LOOK_SECONDS)

    def _name_trouble(self, said: str | None) -> bool:
        """Note that the broker's disk is full, if that is what it says."""
        if said and ("resources" in said or "space" in said):
            self._unstored = (
                f"the broker's disk is full ({said}): give it room, or raise max_file_store; "
                "everything continues then"
            )
            return True
        return False

    async def announce(self, raw: bytes, replicas: int = 1) -> None:
        """Publish a proposal, possibly more than once, which does no harm."""
        stream = await self.studies_stream(replicas)
        while True:
            try:
                await self._streams.publish(
                    connection.STUDIES, raw, timeout=_ANSWER_SECONDS, stream=stream
                )
                heed()
                self._unstored = ""
                return
            except APIError as error:
                self._name_trouble(error.description)
            except PASSING:
                pass
            await self._pause()

    async def notify(self, run: str, raw: bytes) -> str:
        """Publish a notice about a run or a ping in this party's stream of it; returns its name.

        A run's stream was made by the coordinator. That of a ping is made here, for a short time.
        """
        await self.make_streams(run, [self._party], _NOTICE_SECONDS)
        stream = self.own_stream(run)
        subject = f"{connection.PREFIX}.{run}.{self._party}.{connection.ALL}.{_NOTICE}.0"
        try:
            await self._streams.publish(subject, raw, timeout=_ANSWER_SECONDS, stream=stream)
        except PASSING as error:
            raise TransportError(f"{subject}: the broker did not take it: {error}") from None
        return stream

    async def _holds(self, stream: str, subject: str, raw: bytes) -> bool:
        """Whether what is stored under a subject is this message, sent before.

        False if nothing is stored; raises if it is another message.
        """
        while True:
            try:
                found = await self._patient.get_last_msg(stream, subject)
            except NotFoundError:
                return False
            except PASSING:
                await self._pause()
                continue
            if found.data != raw:
                raise TransportError(
                    f"{subject}: another message stands under this name; somebody squats on it",
                    standing=found.data or b"",
                )
            return True

    async def measure(self, run: str, size: int) -> Rates:
        """The rates of the line in both directions, by a probe of so many bytes.

        It is stored in this party's stream of the run, and read back.
        """
        stream = self.own_stream(run)
        subject = self._note(stream)
        while True:
            epoch, times = self.reconnects, [time.monotonic()]
            try:
                await self._ask()
                times.append(time.monotonic())
                await self._store_note(stream, bytes(size), _PROBE_SECONDS)
                times.append(time.monotonic())
                await self._client.request(
                    f"$JS.API.DIRECT.GET.{stream}.{subject}", timeout=_PROBE_SECONDS
                )
                times.append(time.monotonic())
            except PASSING as error:
                self._name_trouble(getattr(error, "description", ""))
                await self._pause()
                continue
            heed()
            if epoch == self.reconnects:
                alone, up, down = (after - before for before, after in itertools.pairwise(times))
                self._rate = size / max(up - alone, 1e-4)
                self._large_again = times[-1] + _BLOCK / (_BLOCK_SHARE * self._rate)
                return Rates(self._rate, size / max(down - alone, 1e-4))

    # -- reading -----------------------------------------------------------------------------

    async def broker_time(self, stream: str) -> float | None:
        """The broker's clock (Unix time), if it has the stream; accurate to a request's time."""
        try:
            answer = await self._client.request(
                f"$JS.API.STREAM.INFO.{stream}", timeout=_ANSWER_SECONDS
            )
            return datetime.fromisoformat(json.loads(answer.data)["ts"][:23] + "Z").timestamp()
        except (*PASSING, ValueError, LookupError, TypeError):
            heed()
            return None

    async def ahead(self, clock: Callable[[], float], stream: str) -> float | None:
        """By how many seconds a clock is ahead of the broker's; None if the broker is not asked."""
        before = clock()
        found = await self.broker_time(stream)
        return None if found is None else (before + clock()) / 2 - found

    def reader(self, stream: str, filters: Sequence[str] = ()) -> Reader:
        """Read the messages of a stream from its beginning."""
        return Reader(self, self._streams, stream, filters)

    def reader_of(self, run: str, sender: str, receiver: str, *, everyone: bool) -> Reader:
        """Read what a party sends to another one in a run, and, if asked, what it sends to all."""
        to = (receiver, connection.ALL) if everyone else (receiver,)
        filters = [f"{connection.PREFIX}.{run}.{sender}.{name}.>" for name in to]
        return self.reader(stream_name(run, sender), filters)

    async def said(self, run: bytes, sender: str, word: str) -> bytes | None:
        """A party's message of one kind to everyone, or None if there is none yet."""
        subject = connection.message(run, sender, connection.ALL, word, 0)
        try:
            found = await self._streams.get_last_msg(stream_name(run.hex(), sender), subject)
            heed()
            return None if found.data is None else bytes(found.data)
        except PASSING:  # also if there is no such message
            heed()
            return None

    async def _ask(self) -> None:
        """Ask the broker something small, whose answer comes behind all that is under way.

        A ping of the client would not do: it overtakes messages that are not written yet, and a
        ping that is cancelled makes the client deaf.
        """
        await self._client.request("$JS.API.INFO", timeout=_PROBE_SECONDS)
        heed()

    async def settled(self, epoch: int) -> None:
        """Wait until all that the broker has sent to this party is here, or the line was lost."""
        while self.connected and self.reconnects == epoch:
            with contextlib.suppress(*PASSING):
                await self._ask()
                return
            await self._pause()

    @staticmethod
    async def _pause() -> None:
        heed()
        await asyncio.sleep(_PAUSE_SECONDS)

    async def close(self) -> None:
        """Close the connection; a broker that does not answer is not waited for."""
        with contextlib.suppress(*PASSING):
            async with asyncio.timeout(2):
                await self._client.close()


def _too_large(client: Client) -> str:
    """That messages are larger than what the broker takes, and what helps."""
    return (
        f"the broker takes messages of at most {client.max_payload:,} bytes, which are too few: "
        f"set max_payload: {LARGEST_MESSAGE} in its configuration"
    )


class _Answers:
    """The broker's answers to messages, however late they come."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # Another version of the client may keep its queue in another way.
        self._is_known = all(
            isinstance(getattr(client, name, None), kind) for name, kind in _QUEUE.items()
        )
        self._inbox = ""
        self._number = 0
        self._waiting: dict[str, asyncio.Future[Msg]] = {}

    async def to(self, subject: str, raw: bytes, headers: dict[str, str]) -> "asyncio.Future[Msg]":
        """Send a message; returns the answer that will come to it. Whoever waits may cancel it."""
        if len(raw) + _HEADERS > self._client.max_payload:
            raise TransportError(f"{len(raw):,} bytes: {_too_large(self._client)}", lasting=True)
        if not self._inbox:
            self._inbox = self._client.new_inbox()
            await self._client.subscribe(f"{self._inbox}.*", cb=self._came)
        self._number += 1
        name = f"{self._inbox}.{self._number}"
        answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        self._waiting[name] = answer
        answer.add_done_callback(lambda _answer: self._waiting.pop(name, None))
        try:
            if not await self._sent_uncopied(subject, raw, name, headers):
                await self._client.publish(subject, raw, reply=name, headers=headers)
        except BaseException:
            answer.cancel()
            raise
        return answer

    async def _sent_uncopied(
        self, subject: str, raw: bytes, reply: str, headers: dict[str, str]
    ) -> bool:
        """Hand a large message to the client's queue as it is; false, with nothing done, if not so.

        ``publish`` copies it twice, to put what stands before and behind it in the same piece. All
        pieces are queued at once, so that nothing comes between them. A lost connection, a client
        of another kind and a WebSocket, which frames every piece, are left to ``publish``.
        """
        client: Any = self._client
        tcp = hasattr(client._transport, "_io_writer")
        if len(raw) < _LARGE or not self._is_known or not tcp or not client.is_connected:
            return False
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        header = f"NATS/1.0\r\n{fields}\r\n".encode()
        size = len(header) + len(raw)
        head = f"HPUB {subject} {reply} {len(header)} {size}\r\n".encode() + header
        client.stats["out_msgs"] += 1
        client.stats["out_bytes"] += len(raw)
        client._pending += (head, raw, b"\r\n")
        client._pending_data_size += len(head) + len(raw) + 2
        full = client._pending_data_size > client._max_pending_size
        await client._flush_pending(force_flush=full)
        return True

    async def _came(self, message: Msg) -> None:
        answer = self._waiting.get(message.subject)
        if answer is not None and not answer.done():
            answer.set_result(message)
