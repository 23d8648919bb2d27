"""Reading a stream of the broker in order, from its first message on.

A reader pulls one message after the other. After a lost connection it continues behind the last
message that it saw, so nothing is skipped. Messages that are not pulled stay with the broker. What
is read proves nothing: see :mod:`~silograph.nats.link`.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from silograph.extras import library

library("nats", "deployments")  # a clear error before the import would fail

from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

__all__ = ["PASSING", "Line", "Reader", "Traffic", "heed"]

#: Errors of a lost connection or of a slow or restarting broker; the call is repeated.
PASSING = (NatsError, OSError, asyncio.TimeoutError)
#: How long the broker waits for a message before it says that there is none, in seconds.
_IDLE_SECONDS = 3.0
#: A reader whose stream does not exist yet asks again, with growing pauses.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.03, 0.5


def heed() -> None:
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


class Line(Protocol):
    """What a reader needs of a connection."""

    traffic: Traffic

    @property
    def reconnects(self) -> int:
        """How often the connection was lost and restored."""

    async def settled(self, epoch: int) -> None:
        """Wait until all that the broker has sent to this party is here, or the line was lost."""


class Reader:
    """Reads the messages of one stream in order, from the first one on."""

    def __init__(
        self, link: Line, streams: JetStreamContext, stream: str, filters: Sequence[str]
    ) -> None:
        self._link = link
        self._streams = streams
        self._stream = stream
        self._filters = list(filters)
        self._subscription: JetStreamContext.PullSubscription | None = None
        self._epoch = 0  # of the connection that the consumer belongs to
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
            except PASSING:
                await asyncio.sleep(_LONGEST_PAUSE)

    async def next(self) -> bytes:
        """The next message; waits for it without a time limit."""
        while True:
            try:
                subscription = self._subscription or await self._begin()
                (message,) = await subscription.fetch(1, timeout=_IDLE_SECONDS)
                heed()
                place = message.metadata.sequence
                if place.consumer != self._count + 1:
                    raise ValueError  # a message was lost on the way
                self._count = place.consumer
                self._pause = _SHORTEST_PAUSE
                self.when = message.metadata.timestamp.timestamp()
                if place.stream > self._seen:
                    self._seen = place.stream
                    self._link.traffic.came(len(message.data))
                    return bytes(message.data)
            except (*PASSING, ValueError) as error:
                heed()
                if isinstance(error, asyncio.TimeoutError) and await self._under_way():
                    continue
                # A new consumer even if this one was only idle: a message to it may be lost.
                await self._stop()
                await asyncio.sleep(self._pause)
                self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    async def _under_way(self) -> bool:
        """Whether a message was on a slow line when the time was over. It has arrived then."""
        if self._subscription is None:
            return False
        await self._link.settled(self._epoch)
        return self._link.reconnects == self._epoch and self._subscription.pending_msgs > 0

    async def _begin(self) -> JetStreamContext.PullSubscription:
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self._seen + 1,
            ack_policy=AckPolicy.NONE,
            filter_subjects=self._filters or None,
            mem_storage=True,
            inactive_threshold=30.0,
        )
        self._count, self._epoch = 0, self._link.reconnects
        self._subscription = await self._streams.pull_subscribe(
            "", stream=self._stream, config=config
        )
        return self._subscription

    async def _stop(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with contextlib.suppress(*PASSING, ValueError):
                await subscription.unsubscribe()

    async def close(self) -> None:
        """Stop reading."""
        await self._stop()
