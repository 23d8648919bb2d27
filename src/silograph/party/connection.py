"""How a party connects to the broker: addresses and mutual TLS.

What: :class:`BrokerConfig` gives the options of ``nats.connect``. The TLS 1.3 handshake comes
before any other traffic. The client checks the broker's host name against the broker's certificate
and presents its own certificate. (By default NATS starts unencrypted, and the client stays
unencrypted if the server says that TLS is not required.)

Why TLS is used although every message is signed and private payloads are encrypted: TLS hides from
the network who communicates when, keeps strangers off the broker, and tells the broker which
party's permissions apply. The protocols do not rely on it, and the broker itself is not trusted.
"""

import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from silograph import whole_files
from silograph.errors import ArgumentError, BrokerError
from silograph.extras import library

__all__ = [
    "ALL",
    "PREFIX",
    "STUDIES",
    "BrokerConfig",
    "TlsFiles",
    "inbox",
    "message",
    "own_messages",
]


# --- Names on the broker: subjects, streams and inboxes -------------------------------------------
#
# A subject is the address of a NATS message. It only routes the message and proves nothing: anyone
# who can connect can have messages delivered under another party's name. A party believes only the
# signed envelope. Permissions on subjects contain honest mistakes and make misuse visible.
#
# The subject of a message is ``silograph.RUN.SENDER.RECEIVER.ROUND.SEQUENCE``. Each part is a
# single word: the run id in hexadecimal, the parties' names from the roster (or ``all``), and the
# envelope's round and sequence. The subject of proposals is ``silograph.studies``.

PREFIX = "silograph"
#: The receiver of messages that are meant for everyone.
ALL = "all"
#: The subject on which coordinators propose studies.
STUDIES = f"{PREFIX}.studies"

_WORD = re.compile(r"[a-z0-9_-]{1,64}")


def message(run: bytes, sender: str, receiver: str, round_name: str, sequence: int) -> str:
    """The subject of one message.

    >>> message(bytes(16), "north", ALL, "keys", 0)
    'silograph.00000000000000000000000000000000.north.all.keys.0'
    """
    words = (run.hex(), sender, receiver, round_name, str(sequence))
    for word in words:
        if not _WORD.fullmatch(word):
            raise ArgumentError(f"{word[:80]!r} cannot stand in a subject")
    return ".".join((PREFIX, *words))


def own_messages(sender: str) -> str:
    """The subject pattern of all messages of one sender, in all runs."""
    return f"{PREFIX}.*.{sender}.>"


def inbox(party: str) -> str:
    """The prefix of a party's inboxes, the subjects on which it receives the broker's answers.

    Each party has its own prefix, so that no party receives the answers to another.

    >>> inbox("north")
    '_INBOX_north'
    """
    return f"_INBOX_{party}"


# --- Settings -------------------------------------------------------------------------------------

_LARGEST_KEY = 64 * 1024
_PLAIN = {"nats": "tls", "ws": "wss"}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SECONDS = 5
_MOST_PINGS = 36


@dataclass(frozen=True)
class TlsFiles:
    """PEM files: the trusted authorities, the party's own certificate, and its key."""

    ca: Path
    cert: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """A client's context for mutual TLS 1.3, with the host name checked."""
        whole_files.read(self.key, _LARGEST_KEY, BrokerError, private=True)
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies certificates and host names
        made.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            made.load_verify_locations(cafile=self.ca)
        except (OSError, ssl.SSLError) as error:
            raise BrokerError(f"{self.ca}: not certificates to trust: {_reason(error)}") from None
        try:
            # Without this callback OpenSSL would ask for the passphrase at the terminal.
            made.load_cert_chain(self.cert, self.key, password=_no_passphrase)
        except (OSError, ssl.SSLError) as error:
            raise BrokerError(
                f"{self.cert} and {self.key}: not a certificate and its key: {_reason(error)}"
            ) from None
        return made


def _no_passphrase() -> str:
    raise BrokerError("the TLS key is encrypted; a service cannot be asked for its passphrase")


def _reason(error: OSError) -> str:
    return getattr(error, "reason", None) or error.strerror or type(error).__name__


@dataclass(frozen=True)
class BrokerConfig:
    """The addresses of the broker, and how to connect to it.

    ``urls`` are ``tls://host:port`` (or ``wss://host:port`` with ``websocket``); several addresses
    are the members of one cluster. Without ``tls`` only a broker on this machine is allowed, for
    trials.
    """

    urls: tuple[str, ...]
    tls: TlsFiles | None = None
    websocket: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "urls", tuple(self.urls))
        if not self.urls:
            raise BrokerError("a broker needs an address, such as tls://broker.example:4222")
        for url in self.urls:
            self._check(url)

    def _check(self, url: str) -> None:
        wanted = "ws" if self.websocket else "nats"
        scheme = _PLAIN[wanted] if self.tls else wanted
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise BrokerError(f"{_shown(url)} is not an address") from None
        if parts.username is not None or parts.password is not None:
            raise BrokerError(
                f"{_shown(url)}: no user or password in an address; a party shows a certificate"
            )
        if parts.scheme != scheme or not host:
            kind = "a broker over WebSocket" if self.websocket else "a broker"
            how = "with TLS" if self.tls else "without TLS"
            raise BrokerError(f"{_shown(url)}: {kind} {how} has an address {scheme}://host:port")
        if self.tls is None and host not in _LOOPBACK:
            raise BrokerError(
                f"{_shown(url)}: a broker on another machine is reached with TLS only"
            )

    def connect_options(self, party: str | None = None) -> dict[str, Any]:
        """Keyword arguments for ``nats.connect``; ``party`` gives the connection its own inboxes.

        The client never stops trying to reconnect; the deadline of a study limits the waiting.
        """
        options: dict[str, Any] = {
            "servers": list(self.urls),
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": 0.5,
            "connect_timeout": _SECONDS,
            # An answer to a ping comes behind all that is under way: minutes on a slow line.
            "ping_interval": _SECONDS,
            "max_outstanding_pings": _MOST_PINGS,
        }
        if self.websocket:  # without aiohttp the client would retry for ever
            library("aiohttp", "brokers over WebSocket")
        if party is not None:
            options |= {"name": party, "inbox_prefix": inbox(party)}
        if self.tls is not None:
            options["tls"] = self.tls.context()
            options["tls_handshake_first"] = not self.websocket  # wss:// starts with TLS
        return options


def _shown(url: str) -> str:
    """An address without the part that may hold a password."""
    return repr(url.rpartition("@")[2][:80])
