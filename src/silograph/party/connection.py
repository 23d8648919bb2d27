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
import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from silograph import whole_files
from silograph.errors import ArgumentError, BrokerError, CertificateError
from silograph.extras import library
from silograph.party import certificates

__all__ = [
    "ALL",
    "PREFIX",
    "STUDIES",
    "BrokerConfig",
    "TlsFiles",
    "explain",
    "forbids_inbox",
    "inbox",
    "message",
    "own_messages",
    "probe",
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


# --- Why a connection fails: the cause, and what helps --------------------------------------------
#
# The client reports each failed attempt as an error of the operating system, of OpenSSL or of the
# server. A certificate of the broker that is not good is found here; one of ours is found by the
# broker, which answers the handshake with an alert. Over WebSocket the same errors come wrapped, so
# their texts are what all of them have in common.

_FORM = "%Y-%m-%d %H:%M UTC"
_NO_TLS = ("wrong_version_number", "wrong version number", "record layer", "unexpected_message")
_NOBODY = "authorization violation"
_OTHER_PARTY = "permissions violation"


def explain(error: BaseException, broker: BrokerConfig, party: str) -> str:
    """Why an attempt to connect failed, and what helps; empty if the error does not tell."""
    text = f"{error} {getattr(error, 'reason', '')}".lower()
    hosts = ", ".join(sorted({urlsplit(url).hostname or "" for url in broker.urls}))
    now = datetime.now(UTC).strftime(_FORM)
    return (
        _about_their_certificate(text, broker, hosts, now)
        or _about_our_certificate(text, broker, party, now)
        or _about_the_way(error, text, hosts)
    )


def _about_their_certificate(text: str, broker: BrokerConfig, hosts: str, now: str) -> str:
    if "certificate has expired" in text:
        return (
            "the broker's certificate has expired; its operator renews it. (If it has not, the "
            f"clock of this machine is wrong: it shows {now})"
        )
    if "certificate is not yet valid" in text:
        return (
            "the broker's certificate is not valid yet: the clock of this machine is behind; it "
            f"shows {now}"
        )
    if "mismatch" in text:
        return (
            f"the broker's certificate is not for {hosts}: use the host name in broker.urls that "
            "the certificate was made for, or have the broker's certificate made for this name"
        )
    if "local issuer" in text or "self-signed" in text or "self signed" in text:
        ca = broker.tls.ca if broker.tls else "broker.ca"
        return (
            f"the broker's certificate was not signed by the authority in {ca}: get the file from "
            "the broker's operator"
        )
    return ""


def _about_our_certificate(text: str, broker: BrokerConfig, party: str, now: str) -> str:
    """What the broker says about the certificate that this party showed to it."""
    if broker.tls is None:
        return "the broker wants a user, and broker.cert is not set" if _NOBODY in text else ""
    path, said = broker.tls.cert, text.replace("_", " ")
    try:
        found = certificates.show_certificate(path)
        begins = certificates.valid_from(path)
    except CertificateError as error:
        return str(error)
    if "alert certificate expired" in said:
        return _about_dates(path, begins, found.expires, now)
    answers = {
        "alert unknown ca": f"the broker does not know the authority that signed {path}; have it "
        "signed by the authority that the broker trusts",
        "bad certificate": f"the broker does not accept {path} as the certificate of a client",
        _NOBODY: f"the broker has no user {found.subject}, the subject of {path}: its operator "
        f"adds {party} to the roster, writes users.conf with 'silograph broker config' and "
        "reloads it; or broker.cert names a wrong file",
        _OTHER_PARTY: f"the broker lets {found.subject}, the subject of {path}, not use the "
        f"subjects of {party}: broker.cert must be the certificate of {party}, and users.conf "
        "that of the roster",
    }
    return next((answer for sign, answer in answers.items() if sign in said), "")


def _about_dates(path: Path, begins: datetime, ends: datetime, now: str) -> str:
    """Why the broker takes a certificate for expired; it says so of one that is too new, too."""
    if begins > datetime.now(UTC):
        return (
            f"{path} is valid from {begins.strftime(_FORM)} only: the clock of the machine that "
            f"made it was ahead, or that of this machine is behind; it shows {now}"
        )
    if ends < datetime.now(UTC):
        return f"{path} expired on {ends.strftime(_FORM)}; have it renewed"
    return (
        f"the broker takes {path} for expired, and by the clock of this machine ({now}) it is not: "
        "compare the clocks of both machines"
    )


def forbids_inbox(error: BaseException, party: str) -> bool:
    """Whether the broker forbids a party to hear answers: it takes it for another one."""
    text = str(error).lower()
    return f'{_OTHER_PARTY} for subscription to "{inbox(party).lower()}' in text


def _about_the_way(error: BaseException, text: str, hosts: str) -> str:
    inner = getattr(error, "os_error", error)  # aiohttp wraps errors of the system
    if isinstance(inner, socket.gaierror) or "name or service not known" in text:
        return f"no address is known for {hosts}: the name is misspelt, or DNS does not work here"
    if isinstance(inner, ConnectionRefusedError) or "connect call failed" in text:
        return (
            "nothing listens on this port: the broker is down, or the port in broker.urls is wrong"
        )
    if any(sign in text for sign in _NO_TLS) or "expecting info" in text:
        return "what answers there is not a broker that begins with TLS; look at broker.urls"
    if "unreachable" in text or "no route" in text:
        return "there is no route to the broker's machine: the network is down, or a firewall"
    return ""


def probe(broker: BrokerConfig, seconds: float = 1.0) -> OSError | None:
    """Connect to each address by hand and return the first error, for a client that hid it.

    A broker that does not like our certificate says so after the handshake. Over WebSocket the
    client may have written into the closed connection before it reads this.
    """
    for url in broker.urls:
        parts = urlsplit(url)
        try:
            with socket.create_connection((parts.hostname, parts.port or 4222), seconds) as line:
                if broker.tls is None:
                    continue
                context = broker.tls.context()
                with context.wrap_socket(line, server_hostname=parts.hostname) as secure:
                    secure.recv(1)
        except TimeoutError:  # nothing is wrong so far: over WebSocket the client speaks first
            continue
        except OSError as error:
            return error
    return None
