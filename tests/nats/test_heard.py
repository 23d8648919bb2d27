"""What is heard of a connection."""

import asyncio
from types import SimpleNamespace

from nats.aio.transport import TcpTransport

from silograph.nats.heard import Heard, set_up
from silograph.party.connection import BrokerConfig


def test_a_connection_that_is_lost_while_it_is_set_up() -> None:
    """asyncio's TLS transport forgets its protocol when it is closed; a service must not end."""

    class Lost(asyncio.Transport):
        def get_extra_info(self, name: str, default: object = None) -> object:
            raise AttributeError(name)

    set_up(SimpleNamespace(_transport=SimpleNamespace(_io_writer=Lost())))  # type: ignore[arg-type]
    set_up(SimpleNamespace(_transport=None))  # type: ignore[arg-type]


def test_large_pieces_are_read_at_once() -> None:
    """The client asks for 32 KiB at a time, on every connection that is made or made again."""

    async def read_all() -> None:
        client = SimpleNamespace(_transport=TcpTransport())
        heard = Heard(BrokerConfig(("nats://localhost:4222",)), "silo", client)  # type: ignore[arg-type]
        for made in (lambda: set_up(client), heard.callbacks["reconnected_cb"]):  # type: ignore[arg-type]
            client._transport = TcpTransport()
            client._transport._io_reader = reader = asyncio.StreamReader(limit=1 << 16)
            if (waits := made()) is not None:
                await waits
            reader.feed_data(bytes(300_000))
            assert len(await client._transport.read(1 << 15)) == 300_000

    asyncio.run(read_all())
