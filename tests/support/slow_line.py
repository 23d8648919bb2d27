"""A line between parties and their broker that is slow, far, lossy, or cut.

It is a proxy on the loopback. Each connection has its own line with a rate and a latency in either
direction. A lost packet is what a party sees of it: nothing goes through until it is sent again.
"""

import asyncio
import contextlib
import random
import socket
import threading
import time

__all__ = ["SlowLine"]

#: Bytes of a packet, and for how many seconds a lost one holds up those behind it.
_PACKET, _STALL = 1400, 0.25


class SlowLine:
    """A proxy from ``port`` to ``to``; ``rate`` is in bits a second, ``loss`` a share of packets.

    ``up`` and ``down`` count the bytes towards the broker and from it.
    """

    def __init__(
        self,
        port: int,
        to: int,
        rate: float = 1e12,
        *,
        latency: float = 0.0,
        loss: float = 0.0,
        seed: int = 1,
    ) -> None:
        self._to, self.rate, self.latency, self.loss = to, rate / 8, latency, loss
        self.up = self.down = 0
        self._draw = random.Random(seed)  # noqa: S311
        self._open: set[asyncio.StreamWriter] = set()
        self._passing = True
        self._loop = asyncio.new_event_loop()
        listener = socket.create_server(("127.0.0.1", port))
        self._thread = threading.Thread(target=self._run, args=(listener,), daemon=True)
        self._thread.start()

    def _run(self, listener: socket.socket) -> None:
        asyncio.set_event_loop(self._loop)
        serving = asyncio.start_server(self._accept, sock=listener, limit=1 << 15)
        server = self._loop.run_until_complete(serving)
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        for end in self._open:
            end.transport.abort()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.01)  # transports close in a later turn

    async def _accept(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        try:
            if not self._passing:
                raise OSError
            far, forth = await asyncio.open_connection("127.0.0.1", self._to, limit=1 << 15)
        except OSError:
            back.close()
            return
        self._open |= {back, forth}
        pipes = [
            asyncio.create_task(self._pipe(near, forth, up=True)),
            asyncio.create_task(self._pipe(far, back, up=False)),
        ]
        try:
            with contextlib.suppress(asyncio.CancelledError):  # the end of the proxy
                await asyncio.wait(pipes, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in pipes:
                task.cancel()
            for end in (back, forth):
                self._open.discard(end)
                end.transport.abort()

    async def _pipe(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, up: bool
    ) -> None:
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due, data = await under_way.get()
                await asyncio.sleep(max(due - time.monotonic(), 0.0))
                sink.write(data)
                await sink.drain()

        delivering = asyncio.create_task(deliver())
        free = 0.0
        try:
            with contextlib.suppress(OSError):
                while data := await source.read(1 << 13 if self.rate < 1e7 else 1 << 16):
                    free = max(free, time.monotonic()) + len(data) / self.rate
                    for _ in range(-(-len(data) // _PACKET) if self.loss else 0):
                        free += _STALL * (self._draw.random() < self.loss)
                    await asyncio.sleep(max(free - time.monotonic(), 0.0))
                    if up:
                        self.up += len(data)
                    else:
                        self.down += len(data)
                    under_way.put_nowait((free + self.latency, data))
        finally:
            delivering.cancel()

    def cut(self, seconds: float) -> None:
        """Cut all lines, and let none through for a while."""
        self._passing = False

        def close() -> None:
            for end in self._open:
                end.transport.abort()

        self._loop.call_soon_threadsafe(close)
        time.sleep(seconds)
        self._passing = True

    def close(self) -> None:
        """End the proxy and all its lines."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
