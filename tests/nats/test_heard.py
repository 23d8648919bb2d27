"""What is heard of a connection."""

import asyncio
from types import SimpleNamespace

from silograph.nats.heard import give_up_when_dead


def test_a_connection_that_is_lost_while_it_is_set_up() -> None:
    """asyncio's TLS transport forgets its protocol when it is closed; a service must not end."""

    class Lost(asyncio.Transport):
        def get_extra_info(self, name: str, default: object = None) -> object:
            raise AttributeError(name)

    give_up_when_dead(SimpleNamespace(_transport=SimpleNamespace(_io_writer=Lost())))  # type: ignore[arg-type]
    give_up_when_dead(SimpleNamespace(_transport=None))  # type: ignore[arg-type]
