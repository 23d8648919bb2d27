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
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from silograph.errors import SlowLineError
from silograph.methods.cost import LineLoad, size_text

__all__ = ["Pace", "Rates", "check_in_time"]

#: The size of a probe: at most a share of what a study puts on the line, and these in bytes. The
#: first takes two seconds at 256 kbit/s. A probe that takes longer than so many seconds is enough.
_PROBE_SHARE, _LEAST_PROBE, _FIRST_PROBE, _MOST_PROBE = 0.04, 1 << 12, 1 << 16, 1 << 21
_LONG_PROBE = 1.0
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
#: The share of the time until the deadline that one party's line may take.
_TIME_SHARE = 0.5


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
    def idle(self) -> bool:
        """Whether no message but small ones is under way."""
        return not self._under_way

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


@dataclass(frozen=True)
class Rates:
    """The rates of a line in bytes a second: to the broker, and from it."""

    up: float
    down: float


async def check_in_time(
    load: LineLoad, left: Callable[[], float], measure: Callable[[int], Awaitable[Rates]]
) -> None:
    """Raise if a line is too slow for what a study puts on it before its deadline.

    ``left`` gives the seconds until the deadline, ``measure`` a probe of so many bytes. A probe
    that takes no time says little of a large study, so larger ones follow before it is refused.
    """
    most = int(min(_PROBE_SHARE * (load.up + load.down), _MOST_PROBE))
    size = min(most, _FIRST_PROBE)
    if size < _LEAST_PROBE:
        return
    while True:
        rates = await measure(size)
        needed = _OVERHEAD * (load.up / rates.up + load.down / rates.down)
        if needed <= _TIME_SHARE * left():
            return
        seconds = size / rates.up + size / rates.down
        if size >= most or seconds > _LONG_PROBE:
            break
        size = min(8 * size, most)
    raise SlowLineError(
        f"the study puts {size_text(load.up + load.down)} on the line of this party, which takes "
        f"{needed:,.0f} s at {8 * rates.up / 1000:,.0f} kbit/s to the broker and "
        f"{8 * rates.down / 1000:,.0f} kbit/s from it; of {max(left(), 0.0):,.0f} s until the "
        "deadline one party may take half: nothing was spent"
    )
