"""A party's connection to the broker: publish once, read in order, survive lost connections.

What
    Each sender has one stream per run; a stream is a sequence of messages that the broker stores.
    Each message has its own subject. It is published on the condition that the subject is still
    empty, and again until the broker confirms it. So it is stored once, even if the connection is
    lost. A reader pulls one message after the other. After a lost connection it continues behind
    the last message that it saw, so nothing is skipped. Messages that are not pulled stay with the
    broker.
What it does not do
    It proves nothing. A broker can drop, repeat, reorder and invent messages; the session that
    processes them detects this.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from silograph.extras import library

library("nats", "deployments")  # a clear error before the import would fail

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, RetentionPolicy, StreamConfig
from nats.js.errors import APIError, NotFoundError

from silograph.errors import TransportError
from silograph.party import connection
from silograph.party.connection import BrokerConfig
from silograph.party.control import NOTICE as _NOTICE

__all__ = ["STUDIES_STREAM", "Link", "Reader", "Traffic", "stream_name"]

#: The stream of all proposals.
STUDIES_STREAM = f"{connection.PREFIX}-studies"

_PUBLISH_SECONDS = 4.0
_IDLE_SECONDS = 3.0
_FLUSH_SECONDS = 5
_NOTICE_SECONDS = 60.0
_PAUSE_SECONDS = 0.25
#: A reader whose stream does not exist yet asks again, with growing pauses.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.03, 0.5
_WRONG_LAST_SEQUENCE = 10071
_STREAM_NAME_IN_USE = 10058
#: What is said of an attempt that left no better reason.
_CUT = "what answers there ends the connection: not a broker that begins with TLS, or a proxy"
_SILENT = "no answer: a firewall drops the connection, or the broker is overloaded"
#: Errors of a lost connection or of a slow or restarting broker; the call is repeated.
_PASSING = (NatsError, OSError, asyncio.TimeoutError)


def stream_name(run: str, sender: str) -> str:
    """The stream of one sender's messages in one run."""
    return f"{connection.PREFIX}-{run}-{sender}"


def _heed() -> None:
    """Raise ``CancelledError`` if the current task was cancelled.

    The client uses ``asyncio.wait_for``, which before Python 3.12 loses a cancellation that comes
    at the same time as the awaited result. Without this check a deadline could be missed.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


@dataclass
class Traffic:
    """Messages that were read, and when a message was last read or published (Unix time)."""

    messages: int = 0
    bytes: int = 0
    last: float | None = None

    def came(self, size: int) -> None:
        """Count a message that was read."""
        self.messages += 1
        self.bytes += size
        self.last = time.time()

    def went(self) -> None:
        """Note the time of a published message. (The store counts these messages.)"""
        self.last = time.time()


class Link:
    """One connection of one party to the broker."""

    def __init__(self, client: Client, party: str, heard: "_Heard") -> None:
        self._client = client
        self._party = party
        self._heard = heard
        self.traffic = Traffic()
        self._streams: JetStreamContext = client.jetstream(timeout=_PUBLISH_SECONDS)
        self._made: dict[str, StreamConfig] = {}

    @classmethod
    async def connect(cls, broker: BrokerConfig, party: str, seconds: float) -> "Link":
        """Connect, with a limit of ``seconds``; on return the party can publish and be reached.

        Raises :class:`TransportError` with the cause and what helps. It is lasting if the broker
        takes the party for another one: it would answer nothing that the party asks.
        """
        heard = _Heard(broker, party)
        options = broker.connect_options(party) | heard.callbacks
        logging.getLogger("asyncio").addFilter(_no_news)
        connecting = asyncio.ensure_future(nats.connect(**options))
        tried = asyncio.ensure_future(heard.tried.wait())
        try:
            await asyncio.wait(
                {connecting, tried}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not connecting.done():
                raise TimeoutError
            link = cls(connecting.result(), party, heard)
            await link._try_subjects()
        except _PASSING as error:
            why = await heard.reason() or str(error) or _SILENT
            raise TransportError(f"{heard.where}: cannot connect: {why}") from None
        finally:
            for task in (connecting, tried):
                task.cancel()
            await asyncio.gather(connecting, tried, return_exceptions=True)
        return link

    async def _try_subjects(self) -> None:
        """Listen and publish once under the party's own name.

        The server reports what it forbids before it answers a later ping.
        """
        self._heard.cause = ""  # attempts that failed are no news any more
        try:
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

    async def watch(self) -> None:
        """Wait until the connection can no longer be used, and raise the reason."""
        await self._heard.over.wait()
        self._heard.check()

    @property
    def trouble(self) -> str:
        """Why there is no connection now; empty while there is one."""
        if self.connected:
            return ""
        return f"{self._heard.where}: {self._heard.cause or 'the connection was lost'}"

    @property
    def connected(self) -> bool:
        """Whether the connection is up now."""
        return bool(self._client.is_connected)

    @property
    def reconnects(self) -> int:
        """How often the connection was lost and restored."""
        return int(self._client.stats["reconnects"])

    async def own_stream(self, run: str, lifetime: float) -> str:
        """Create this party's stream of a run if it does not exist; returns its name."""
        name = stream_name(run, self._party)
        subject = f"{connection.PREFIX}.{run}.{self._party}.>"
        await self._make(
            StreamConfig(
                name=name,
                subjects=[subject],
                retention=RetentionPolicy.LIMITS,
                max_age=max(lifetime, 60.0),
                allow_direct=True,
            )
        )
        return name

    async def studies_stream(self) -> str:
        """Create the stream of proposals if it does not exist; returns its name."""
        await self._make(
            StreamConfig(
                name=STUDIES_STREAM,
                subjects=[connection.STUDIES],
                retention=RetentionPolicy.LIMITS,
                max_age=30 * 24 * 3600.0,
            )
        )
        return STUDIES_STREAM

    async def _make(self, config: StreamConfig) -> None:
        assert config.name is not None  # noqa: S101 - both callers give one
        while True:
            try:
                await self._streams.add_stream(config)
                break
            except APIError as error:
                if error.err_code == _STREAM_NAME_IN_USE:  # made before a restart
                    break
                await self._pause()
            except _PASSING:
                await self._pause()
        self._made[config.name] = config

    async def drop_stream(self, name: str) -> None:
        """Remove one of this party's streams. If that fails, the broker lets it expire."""
        self._made.pop(name, None)
        with contextlib.suppress(*_PASSING):
            await self._streams.delete_stream(name)

    async def publish(self, stream: str, subject: str, raw: bytes) -> None:
        """Publish a message once; waits until the broker has it, without a time limit."""
        headers = {"Nats-Expected-Last-Subject-Sequence": "0"}
        while True:
            try:
                await self._streams.publish(
                    subject, raw, timeout=_PUBLISH_SECONDS, stream=stream, headers=dict(headers)
                )
                _heed()
                self.traffic.went()
                return
            except APIError as error:
                if error.err_code == _WRONG_LAST_SEQUENCE:
                    standing = await self._last(stream, subject)
                    if standing == raw:  # it is our own, sent before
                        return
                    raise TransportError(
                        f"{subject}: another message stands under this name; somebody squats on it",
                        standing=standing,
                    ) from None
                await self._pause()
            except _PASSING as error:
                if stream in self._made and "NoStreamResponse" in type(error).__name__:
                    await self._make(self._made[stream])
                await self._pause()

    async def announce(self, raw: bytes) -> None:
        """Publish a proposal, possibly more than once, which does no harm."""
        stream = await self.studies_stream()
        while True:
            try:
                await self._streams.publish(
                    connection.STUDIES, raw, timeout=_PUBLISH_SECONDS, stream=stream
                )
                return
            except _PASSING:
                await self._pause()

    async def _last(self, stream: str, subject: str) -> bytes:
        """The last message of a subject; empty if there is none."""
        while True:
            try:
                found = await self._streams.get_last_msg(stream, subject)
                return found.data or b""
            except NotFoundError:
                return b""
            except _PASSING:
                await self._pause()

    async def stored_bytes(self, run: str, senders: Iterable[str]) -> dict[str, int]:
        """The bytes that the broker stores of each sender's messages in a run, 0 if none.

        The broker counts subjects and headers, too. A party removes its stream at the run's end.
        """
        found = {}
        for sender in senders:
            try:
                info = await self._streams.stream_info(stream_name(run, sender))
                found[sender] = int(info.state.bytes)
            except NotFoundError:
                found[sender] = 0
            except _PASSING as error:
                raise TransportError(f"the broker does not say what it stores: {error}") from None
        return found

    async def notify(self, run: str, raw: bytes) -> str:
        """Publish a notice about a run or a ping in this party's stream of it; returns its name."""
        stream = await self.own_stream(run, _NOTICE_SECONDS)
        subject = f"{connection.PREFIX}.{run}.{self._party}.{connection.ALL}.{_NOTICE}.0"
        try:
            await self._streams.publish(subject, raw, timeout=_PUBLISH_SECONDS, stream=stream)
        except _PASSING as error:
            raise TransportError(f"{subject}: the broker did not take it: {error}") from None
        return stream

    async def broker_time(self, stream: str) -> float | None:
        """The broker's clock (Unix time), if it has the stream; accurate to a request's time."""
        try:
            answer = await self._client.request(
                f"$JS.API.STREAM.INFO.{stream}", timeout=_PUBLISH_SECONDS
            )
            return datetime.fromisoformat(json.loads(answer.data)["ts"][:23] + "Z").timestamp()
        except (*_PASSING, ValueError, LookupError, TypeError):
            _heed()
            return None

    async def ahead(self, clock: Callable[[], float], stream: str) -> float | None:
        """By how many seconds a clock is ahead of the broker's; None if the broker is not asked."""
        before = clock()
        found = await self.broker_time(stream)
        return None if found is None else (before + clock()) / 2 - found

    def reader(self, stream: str, filters: Sequence[str] = ()) -> "Reader":
        """Read the messages of a stream from its beginning."""
        return Reader(self._streams, stream, filters, self.traffic)

    def reader_of(self, run: str, sender: str, receiver: str, *, everyone: bool) -> "Reader":
        """Read what a party sends to another one in a run, and, if asked, what it sends to all."""
        to = (receiver, connection.ALL) if everyone else (receiver,)
        filters = [f"{connection.PREFIX}.{run}.{sender}.{name}.>" for name in to]
        return self.reader(stream_name(run, sender), filters)

    async def has_stream(self, run: str, sender: str) -> bool:
        """Whether a sender's stream of a run exists; a broker that does not answer has it."""
        try:
            await self._streams.stream_info(stream_name(run, sender))
        except NotFoundError:
            return False
        except _PASSING:
            _heed()
        return True

    async def said(self, run: bytes, sender: str, word: str) -> bytes | None:
        """A party's message of one kind to everyone, or None if there is none yet."""
        subject = connection.message(run, sender, connection.ALL, word, 0)
        try:
            found = await self._streams.get_last_msg(stream_name(run.hex(), sender), subject)
            return None if found.data is None else bytes(found.data)
        except _PASSING:  # also if there is no such message
            _heed()
            return None

    @staticmethod
    async def _pause() -> None:
        _heed()
        await asyncio.sleep(_PAUSE_SECONDS)

    async def close(self) -> None:
        """Close the connection; a broker that does not answer is not waited for."""
        with contextlib.suppress(*_PASSING):
            async with asyncio.timeout(2):
                await self._client.close()


class Reader:
    """Reads the messages of one stream in order, from the first one on."""

    def __init__(
        self, streams: JetStreamContext, stream: str, filters: Sequence[str], traffic: Traffic
    ) -> None:
        self._streams = streams
        self._traffic = traffic
        self._stream = stream
        self._filters = list(filters)
        self._subscription: JetStreamContext.PullSubscription | None = None
        self._seen = 0  # the position of the last message in the stream
        self._count = 0  # messages that this consumer has delivered
        self._pause = _SHORTEST_PAUSE
        #: When the broker got the last message, by its clock (Unix time).
        self.when = 0.0

    async def ready(self) -> bool:
        """Begin to read; False if there is no such stream yet. The broker has then said so."""
        while True:
            try:
                if self._subscription is None:
                    await self._begin()
                return True
            except NotFoundError:
                return False
            except _PASSING:
                await asyncio.sleep(_LONGEST_PAUSE)

    async def next(self) -> bytes:
        """The next message; waits for it without a time limit."""
        while True:
            try:
                subscription = self._subscription or await self._begin()
                (message,) = await subscription.fetch(1, timeout=_IDLE_SECONDS)
                _heed()
                place = message.metadata.sequence
                if place.consumer != self._count + 1:
                    raise TimeoutError  # a message was lost on the way
                self._count = place.consumer
                self._pause = _SHORTEST_PAUSE
                self.when = message.metadata.timestamp.timestamp()
                if place.stream > self._seen:
                    self._seen = place.stream
                    self._traffic.came(len(message.data))
                    return bytes(message.data)
            except (*_PASSING, ValueError):
                _heed()
                # A new consumer even if this one was only idle: a message to it may be lost.
                await self._stop()
                await asyncio.sleep(self._pause)
                self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    async def _begin(self) -> JetStreamContext.PullSubscription:
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self._seen + 1,
            ack_policy=AckPolicy.NONE,
            filter_subjects=self._filters or None,
            mem_storage=True,
            inactive_threshold=30.0,
        )
        self._count = 0
        self._subscription = await self._streams.pull_subscribe(
            "", stream=self._stream, config=config
        )
        return self._subscription

    async def _stop(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with contextlib.suppress(*_PASSING, ValueError):
                await subscription.unsubscribe()

    async def close(self) -> None:
        """Stop reading."""
        await self._stop()


class _Heard:
    """What the client reports in the background: failed attempts, and what the broker forbids.

    The client repeats an attempt for ever, and goes on after an error of the broker; so what it
    reports is all that is known of a cause.
    """

    def __init__(self, broker: BrokerConfig, party: str) -> None:
        self._broker, self._party = broker, party
        self._attempts = 0
        self._cut = False
        self._closed = ""
        self.where = ", ".join(broker.urls)
        #: The last cause that an error told, and what helps; empty if there was none.
        self.cause = ""
        #: Set when every address has been tried in vain; whoever connects may try again.
        self.tried = asyncio.Event()
        #: Set when the connection cannot be used any more, however often it is restored.
        self.over = asyncio.Event()

    @property
    def callbacks(self) -> dict[str, Any]:
        """The options of ``nats.connect`` by which the client reports."""
        return {
            "error_cb": self._note,
            "reconnected_cb": self._restored,
            "closed_cb": self._end,
        }

    async def _note(self, error: Exception) -> None:
        text = connection.explain(error, self._broker, self._party)
        self.cause = text or self.cause
        self._cut = self._cut or isinstance(error, ConnectionError)
        self._attempts += 1
        if self._attempts >= len(self._broker.urls):
            self.tried.set()
        # Only what this party needs in order to be reached at all; a failed call is repeated.
        if connection.forbids_inbox(error, self._party):
            self._closed = text
            self.over.set()

    async def reason(self) -> str:
        """The cause of failed attempts, looked for by hand if the client's errors did not tell."""
        if not self.cause:
            error = await asyncio.to_thread(connection.probe, self._broker)
            if error is not None:
                await self._note(error)
        return self.cause or (_CUT if self._cut else "")

    async def _restored(self) -> None:
        self.cause = ""

    async def _end(self) -> None:
        self._closed = self._closed or self.cause or "the broker has ended the connection"
        self.over.set()

    def check(self) -> None:
        """Raise if the connection cannot be used any more."""
        if self.over.is_set():
            raise TransportError(f"{self.where}: {self._closed}", lasting=True)


def _no_news(record: logging.LogRecord) -> bool:
    """A log filter that drops asyncio's message about the end of a TLS connection."""
    return "eof_received" not in record.getMessage()
