"""How fast a line is, and how much may be under way on it.

A large message takes minutes on a slow line. So nothing here is a fixed time: a party measures the
rate from the messages that the broker has confirmed, or by a probe, asks after a message only when
it could have arrived, and puts on the line about as much as goes through in two seconds. What is
small passes at once, so that it never waits behind many large messages.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from silograph.errors import SlowLineError
from silograph.methods.cost import size_text, time_text

__all__ = ["Pace", "check_in_time", "probe_bytes"]

#: The size of a probe: a small share of what a study sends, within these limits in bytes. The
#: largest takes two seconds at 256 kbit/s.
_PROBE_SHARE, _LEAST_PROBE, _MOST_PROBE = 0.04, 1 << 12, 1 << 16
#: Messages up to this size are not counted and never wait, in bytes.
_SMALL = 1 << 13
#: How many seconds' worth of messages may be under way, and the limits of that in bytes. Before
#: the rate is known, one message of any size.
_AHEAD_SECONDS, _LEAST_AHEAD, _MOST_AHEAD = 2.0, 1 << 16, 1 << 25
#: The rate of a line of which nothing is known, in bytes a second.
_UNKNOWN_RATE = 32_000.0
#: How long to wait for a confirmation before the broker is asked, in seconds: at least, for each
#: second that the line takes by its rate, and at most. Asking costs little, repeating much.
_LEAST_PATIENCE, _PATIENCE, _MOST_PATIENCE = 2.0, 1.5, 30.0
#: What envelopes, subjects, TLS and repeats add to a study's traffic.
_OVERHEAD = 1.2


class Pace:
    """The rate of one line, and the messages that are under way on it."""

    def __init__(self) -> None:
        #: Bytes a second, or None before anything was measured.
        self.rate: float | None = None
        self._under_way = 0
        self._queue: deque[object] = deque()
        self._moved = asyncio.Event()
        self._last = -math.inf

    @property
    def ahead(self) -> int:
        """How many bytes may be under way at the same time."""
        rate = 0.0 if self.rate is None else self.rate
        return int(min(max(_AHEAD_SECONDS * rate, _LEAST_AHEAD), _MOST_AHEAD))

    @property
    def patience(self) -> float:
        """After how many seconds without a confirmation it is time to ask for one."""
        seconds = _PATIENCE * self._under_way / (self.rate or _UNKNOWN_RATE)
        return min(_LEAST_PATIENCE + seconds, _MOST_PATIENCE)

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncIterator[None]:
        """Wait until a message of this size may be sent; it is under way until the block ends."""
        if size <= _SMALL:
            yield
            return
        ticket = object()
        self._queue.append(ticket)
        try:
            while self._queue[0] is not ticket or not self._fits(size):
                self._moved.clear()
                await self._moved.wait()
        finally:
            self._queue.remove(ticket)
            self._moved.set()
        self._under_way += size
        began = time.monotonic()
        try:
            yield
            self.saw(size, began)
        finally:
            self._under_way -= size
            self._moved.set()

    def _fits(self, size: int) -> bool:
        return not self._under_way or self._under_way + size <= self.ahead

    def saw(self, size: int, began: float) -> None:
        """Learn from a message that was sent at ``began`` and is confirmed now.

        Messages go one after the other, so it had the line since the confirmation before it.
        """
        now = time.monotonic()
        seconds = max(now - max(began, self._last), 1e-6)
        self._last = now
        if size > _SMALL:
            before = seconds / size if self.rate is None else 1 / self.rate
            self.rate = 2 / (before + seconds / size)


def probe_bytes(upload: int) -> int:
    """The size of a probe for a study that sends so many bytes; 0 if none is worth it."""
    size = int(_PROBE_SHARE * upload)
    return 0 if 2 * size < _LEAST_PROBE else min(max(size, _LEAST_PROBE), _MOST_PROBE)


def check_in_time(upload: int, rate: float, left: float) -> None:
    """Raise if a line is too slow for what a study sends over it before its deadline."""
    needed = _OVERHEAD * upload / rate
    if needed > left:
        raise SlowLineError(
            f"the study sends {size_text(upload)} from here, which takes {time_text(needed)} at "
            f"{8 * rate / 1000:,.0f} kbit/s; {time_text(max(left, 0.0))} are left until its "
            "deadline: nothing was spent"
        )
