"""Configuration of a NATS server for the parties of a roster.

What: two files. ``users.conf`` has one user per party of the roster, who is identified by a
certificate, with the subjects that this user may use. ``nats.conf`` configures a server with mutual
TLS and with JetStream, which syncs every write to the disk; it includes ``users.conf``. The members
of a cluster share ``users.conf``, and each has its own server configuration.

What the permissions are for: they keep honest parties from disturbing each other, and keep
strangers out. They prove nothing: any party can read any stream whose name it knows, the server
replies to any subject that a request names, and the operator of the server can do anything. A
party believes only signed envelopes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from silograph import whole_files
from silograph.errors import BrokerError
from silograph.party import connection
from silograph.party.connection import TlsFiles
from silograph.party.roster import RosterFile, digest_text

__all__ = [
    "LARGEST_MESSAGE",
    "LEAST_PAYLOAD",
    "ServerSettings",
    "server_text",
    "users_text",
    "write_broker_files",
]

#: The bytes of a message that our brokers take, and that any broker must take: the largest chunk,
#: of 2^18 sealed pairs, has 2 MiB, and a little stands around it.
LARGEST_MESSAGE, LEAST_PAYLOAD = 4 << 20, (2 << 20) + (1 << 16)

_LEAST_STORE = 1 << 20

#: The JetStream requests of a party: for its own streams, and to read those of others.
_API = (
    "$JS.API.INFO",
    "$JS.API.STREAM.CREATE.*",
    "$JS.API.STREAM.UPDATE.*",
    "$JS.API.STREAM.INFO.*",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.DELETE.*",
    "$JS.API.STREAM.MSG.GET.*",
    "$JS.API.DIRECT.GET.>",
    "$JS.API.CONSUMER.CREATE.>",
    "$JS.API.CONSUMER.INFO.>",
    "$JS.API.CONSUMER.DELETE.>",
    "$JS.API.CONSUMER.MSG.NEXT.>",
    "$JS.ACK.>",
    "$JS.FC.>",
)


@dataclass(frozen=True)
class ServerSettings:
    """One server: its certificate, the folder of its streams, the addresses it listens on.

    ``websocket`` is a second address, for parties behind proxies. ``names`` gives the subject of
    a party's certificate (in the form of RFC 2253) if it is not ``CN=name``. ``most_bytes`` is what
    all streams together may take of the disk.
    """

    tls: TlsFiles
    store: Path
    listen: str = "127.0.0.1:4222"
    websocket: str | None = None
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    most_bytes: int = 20 << 30

    def __post_init__(self) -> None:
        for address in (self.listen, self.websocket):
            host, _, port = (address or ":1").rpartition(":")
            number = int(port) if port.isascii() and port.isdigit() and len(port) < 6 else 0
            if (address and not host) or not 0 < number < 1 << 16:
                raise BrokerError(f"{address!r} is not an address, such as 127.0.0.1:4222")
        if self.most_bytes < _LEAST_STORE:
            raise BrokerError(f"streams need at least {_LEAST_STORE >> 20} MiB of disk")


def users_text(roster: RosterFile, names: Mapping[str, str] = MappingProxyType({})) -> str:
    """The content of ``users.conf``: the users and their permissions."""
    strangers = sorted(names.keys() - {member.name for member in roster.members})
    if strangers:
        raise BrokerError(f"{strangers[0]!r} is not in the roster")
    parts = [
        "# Made by 'silograph broker config'; make it anew when the roster changes.\n"
        f"# Roster: serial {roster.serial}, {digest_text(roster.digest)}\n"
        "#\n"
        "# These permissions are routing hints and never proof. A party reads any stream that it\n"
        "# can name, may make and drop streams, and can have the server answer to subjects that\n"
        "# it could not publish on. Parties believe signatures alone.\n"
        "authorization {\n"
        "  users: [\n"
    ]
    for member in roster.members:
        publish = [connection.own_messages(member.name)]
        if member == roster.roster.coordinator:
            publish.append(connection.STUDIES)
        name = names.get(member.name, f"CN={member.name}")
        parts.append(
            "    {\n"
            f"      user: {whole_files.quoted(name)}\n"
            "      permissions: {\n"
            f"        publish: {{ allow: [{_list([*publish, *_API])}] }}\n"
            f"        subscribe: {{ allow: [{_list([f'{connection.inbox(member.name)}.>'])}] }}\n"
            "      }\n"
            "    }\n"
        )
    parts.append("  ]\n}\n")
    return "".join(parts)


def _list(items: list[str]) -> str:
    return "".join(f"\n          {whole_files.quoted(item)}" for item in items) + "\n        "


def server_text(settings: ServerSettings, users: str = "users.conf") -> str:
    """The content of ``nats.conf``. It includes the file of users from the same folder."""
    tls = settings.tls
    store = whole_files.quoted(str(settings.store.absolute()))
    text = (
        "# Made by 'silograph broker config'. Check: nats-server -t -c nats.conf\n"
        f"listen: {whole_files.quoted(settings.listen)}\n"
        "\n"
        "# A message is a chunk of at most 2 MiB and its envelope.\n"
        f"max_payload: {LARGEST_MESSAGE}\n"
        "\n"
        "# What the server has acknowledged is on its disk: a party does not send it again.\n"
        "# Streams take at most max_file_store. When it is full, runs wait and say so.\n"
        "jetstream {\n"
        f"  store_dir: {store}\n"
        "  sync_interval: always\n"
        f"  max_file_store: {settings.most_bytes}\n"
        "}\n"
        "\n"
        "# A chunk takes minutes on a slow line; nobody is cut off in the middle of it.\n"
        'write_deadline: "5m"\n'
        "\n"
        "# TLS comes before anything else, and a certificate's subject is the user.\n"
        f"{_tls('tls', tls, '', first=True)}"
        "\n"
        f"include {whole_files.quoted(users)}\n"
    )
    if settings.websocket is not None:
        text += (
            "\n"
            "# For parties whose only way out is HTTPS.\n"
            "websocket {\n"
            f"  listen: {whole_files.quoted(settings.websocket)}\n"
            f"{_tls('tls', tls, '  ', first=False)}"
            "}\n"
        )
    return text


def _tls(name: str, files: TlsFiles, indent: str, *, first: bool) -> str:
    lines = [
        f"{name} {{",
        f"  cert_file: {whole_files.quoted(str(files.cert.absolute()))}",
        f"  key_file: {whole_files.quoted(str(files.key.absolute()))}",
        f"  ca_file: {whole_files.quoted(str(files.ca.absolute()))}",
        "  verify_and_map: true",
        '  min_version: "1.3"',
        *(["  handshake_first: true"] if first else []),
        "}",
    ]
    return "".join(f"{indent}{line}\n" for line in lines)


def write_broker_files(folder: Path, roster: RosterFile, settings: ServerSettings) -> list[Path]:
    """Write both files to a folder and replace those of an earlier call."""
    content = {
        "users.conf": users_text(roster, settings.names),
        "nats.conf": server_text(settings),
    }
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BrokerError(f"{folder}: cannot be made: {error.strerror}") from None
    for name, text in content.items():
        whole_files.replace(folder / name, text.encode(), BrokerError)
    return [folder / name for name in content]
