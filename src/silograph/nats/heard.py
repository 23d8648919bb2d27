"""A connection to the broker beside its messages: settings, causes of trouble, and signs of life.

The client tries again for ever and says little. So its reports are kept, with what helps against
each cause, and looked for by hand if they do not tell enough. The operating system is told when a
connection without a sign of life is dead, which a slow one is not. The client is made for small
messages: connections are set to read large pieces, and the process keeps the memory of a message
for the next one.
"""

import asyncio
import contextlib
import ctypes
import logging
import math
import socket
import sys
from typing import TYPE_CHECKING, Any

from silograph.errors import TransportError
from silograph.party import connection
from silograph.party.connection import BrokerConfig

if TYPE_CHECKING:
    from nats.aio.client import Client

__all__ = ["SILENT", "Heard", "keep_memory", "no_news", "set_up", "silent_for"]

#: What is said of an attempt that left no better reason.
_CUT = "what answers there ends the connection: not a broker that begins with TLS, or a proxy"
SILENT = "no answer: a firewall drops the connection, or the broker is overloaded"
#: After so many seconds without a sign of life on a connection with data under way, the system
#: gives the connection up. It counts acknowledged packets: a slow line is alive.
_DEAD_SECONDS = 20
#: Where ``tcpi_last_data_recv`` (milliseconds) stands in Linux's ``struct tcp_info``.
_RECEIVED = 52
#: How much is read from a connection at once, in bytes, about as much as a chunk has; by itself the
#: client reads 32 KiB, and stops the line whenever twice that has come.
_PIECE = 1 << 20
#: Options of glibc's ``mallopt``, and their values in bytes: how much free memory a process keeps,
#: and from which size on a block is asked of the system and given back to it.
_M_TRIM_THRESHOLD, _KEPT = -1, 1 << 26
_M_MMAP_THRESHOLD, _LARGE = -3, 1 << 25


class Heard:
    """What the client reports in the background: failed attempts, and what the broker forbids.

    The client repeats an attempt for ever, and goes on after an error of the broker; so what it
    reports is all that is known of a cause.
    """

    def __init__(self, broker: BrokerConfig, party: str, client: "Client") -> None:
        self._broker, self._party, self._client = broker, party, client
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
        """The options of ``Client.connect`` by which the client reports."""
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
        set_up(self._client)

    async def _end(self) -> None:
        self._closed = self._closed or self.cause or "the broker has ended the connection"
        self.over.set()

    def check(self) -> None:
        """Raise if the connection cannot be used any more."""
        if self.over.is_set():
            raise TransportError(f"{self.where}: {self._closed}", lasting=True)


def set_up(client: "Client") -> None:
    """Set up a connection that was made or made again."""
    _give_up_when_dead(client)
    _read_large(client)


def _give_up_when_dead(client: "Client") -> None:
    """Let the system notice a dead connection soon, and leave a slow one alone.

    Answers to the client's own pings come behind everything that is under way, so they are late on
    a slow line.
    """
    with contextlib.suppress(OSError, AttributeError):
        line = _socket(client)
        if line is not None and hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _DEAD_SECONDS)


def _read_large(client: "Client") -> None:
    """Let the client read as much as there is. A WebSocket has whole messages anyway."""
    way: Any = client._transport
    with contextlib.suppress(AttributeError):
        way._io_reader._limit = _PIECE
        # A connection that is made again has another reader before anyone is told.
        way.read = lambda _size: way._io_reader.read(_PIECE)


def keep_memory() -> None:
    """Let the process keep the memory of large messages that come and go.

    Otherwise the system takes it back after each message, and clears it for the next one, which
    takes longer than to encrypt a message. Does nothing where the C library is not glibc.
    """
    with contextlib.suppress(AttributeError, OSError):
        options = ctypes.CDLL(None).mallopt
        options(_M_TRIM_THRESHOLD, _KEPT)
        options(_M_MMAP_THRESHOLD, _LARGE)


def silent_for(client: "Client") -> float:
    """For how many seconds nothing has come on a connection, as the system counts bytes.

    An answer that is late because it comes behind a large message on a slow line is no silence.
    Infinite where the system does not tell.
    """
    with contextlib.suppress(OSError, AttributeError):
        line = _socket(client)
        if line is not None and hasattr(socket, "TCP_INFO"):  # Linux
            found = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED + 4)
            return int.from_bytes(found[_RECEIVED:], sys.byteorder) / 1000
    return math.inf


def _socket(client: "Client") -> socket.socket | None:
    """The socket of a connection.

    A TLS connection that is lost at this moment has no socket to ask for any more, and asyncio
    stumbles over that with an AttributeError.
    """
    way = client._transport
    writer = getattr(way, "_io_writer", None) or getattr(way, "_ws", None)  # the latter: WebSocket
    found: socket.socket | None = None if writer is None else writer.get_extra_info("socket")
    return found


def no_news(record: logging.LogRecord) -> bool:
    """A log filter that drops asyncio's message about the end of a TLS connection."""
    return "eof_received" not in record.getMessage()
