"""Live pages: server-sent events that tell a browser when a page would show something else.

An event carries only a mark, the digest of what pages show. The browser then loads its page again
and exchanges the parts that differ. So there is one way to a page's content, with one set of
checks, and an event has nothing in it that could leak.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable

from silograph.console.desk import Desk
from silograph.errors import SilographError

__all__ = ["Live"]

_LOOK_SECONDS = 0.5
#: A line without meaning is sent this often, so that a connection that is dead is noticed.
_STILL_SECONDS = 15.0
_MOST_LISTENERS = 32


class Live:
    """Watches a desk, and tells all open pages."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._changed = asyncio.Condition()
        self._listeners = 0
        #: The mark of what pages show now.
        self.mark = self._look()

    def _look(self) -> str:
        try:
            return hashlib.sha256(self._desk.version().encode()).hexdigest()[:16]
        except SilographError:  # the store is busy, or is being replaced; look again later
            return ""

    async def watch(self) -> None:
        """Look for changes until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            found = await asyncio.to_thread(self._look)
            if found and found != self.mark:
                async with self._changed:
                    self.mark = found
                    self._changed.notify_all()

    @property
    def full(self) -> bool:
        """Whether as many pages listen as may."""
        return self._listeners >= _MOST_LISTENERS

    async def events(self, welcome: Callable[[], bool]) -> AsyncIterator[bytes]:
        """The stream of one page, for as long as its session is ``welcome``."""
        self._listeners += 1
        told = ""
        try:
            yield b"retry: 2000\n\n"
            while await asyncio.to_thread(welcome):
                if told != self.mark:
                    told = self.mark
                    yield f"data: {told}\n\n".encode()
                await self._news(told)
                yield b":\n\n"
        finally:
            self._listeners -= 1

    async def _news(self, told: str) -> None:
        """Wait until there is another mark, or for some seconds."""
        async with self._changed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STILL_SECONDS):
                    await self._changed.wait_for(lambda: self.mark != told)
