"""Configuration files of a silo, a helper and a coordinator: TOML, read strictly.

Each key has one type. A key that is unknown, missing or of the wrong type raises an error that
names the file and the key. Paths are relative to the configuration file. An example::

    version = 1
    name = "north"                  # this party's name in the roster
    identity = "north.key"
    roster = "roster.toml"
    universe = "nodes.txt"          # the public node list, or "open" for none (see below)
    state = "state"                 # a folder that only this party uses
    replicas = 3                    # coordinators only: servers that keep a copy of each stream

    [broker]
    urls = ["tls://broker.example:4222"]
    ca = "ca.pem"
    cert = "north.pem"
    key = "north.tls.key"

    [metrics]                       # optional, as are both of its keys
    file = "state/metrics.prom"
    port = 9464                     # on the loopback interface; without it no port is opened

    [console]                       # optional, as are its keys; see `silograph console`
    listen = "127.0.0.1:8470"       # any other address needs cert and key (TLS)
    hosts = ["console.north.example"]   # names by which browsers reach it, if others

    [[approvers]]                   # optional: people who sign what they decide (any number)
    name = "anna"
    key = "ed25519:…"

    [waiting]                       # optional: what is called when a study waits for a person
    command = ["/usr/local/bin/tell-officer"]       # gets JSON on its input; no shell
    webhook = "https://chat.example/hooks/silograph"  # gets the same JSON by POST

    [data]                          # this section and those below: silos only
    edges = "edges.csv"
    lineage = "claims"
    time_column = "day"             # optional: read only rows from since on and before until
    since = "2026-01-01"
    until = "2026-04-01"

    [ledger]
    path = "north.ledger"
    epsilon = 10.0
    collusion = 1

    [policy]
    coordinators = ["hub"]
    methods = ["feat masked", "feat committee"]
    epsilon = 1.0
    committee = [                   # the only four that may be members of a committee
        { name = "north", key = "ed25519:…", organisation = "North Bank" },
        { name = "south", key = "ed25519:…", organisation = "South Bank" },
        { name = "west", key = "ed25519:…", organisation = "West Bank" },
        { name = "notary", key = "ed25519:…", organisation = "Notary & Sons" },
    ]
    helpers = true                  # whether parties without edges may be among them
    approvals = 2                   # different approvers who must agree (if any are enrolled)
    coordinator_in_committee = false

``universe = "open"`` means that there is no node list: any identifier is a node, character by
character. Identifiers are converted to one form (``strip``, ``case``) if ``universe`` names a file
that ``NodeUniverse.open(...).save`` wrote. A node list in a file named ``open`` is ``"./open"``.

The file of a helper has ``role = "helper"`` at the top, and no ``[data]`` and no ``[ledger]``. It
may leave out ``universe``; the helper then does not check which node list a study is about. Other
files may state their role, too (``silo`` or ``coordinator``).
"""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from silograph import whole_files
from silograph.errors import ConfigError, EdgeError, SilographError
from silograph.graph.reading import Columns
from silograph.graph.samples import read_graph
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.graph.window import Window
from silograph.messages.identity import Member
from silograph.party.approval import RESERVED
from silograph.party.connection import BrokerConfig, TlsFiles
from silograph.party.keys import read_key
from silograph.party.notice import Waiting
from silograph.party.policy import Policy
from silograph.party.roster import new_member

__all__ = [
    "ConsoleConfig",
    "CoordinatorConfig",
    "DataConfig",
    "HelperConfig",
    "LedgerConfig",
    "MetricsConfig",
    "PartyConfig",
    "SiloConfig",
    "SiloData",
    "load_silo",
    "read_config",
    "read_served",
]


# --- Files ----------------------------------------------------------------------------------------

_LARGEST = 1 << 18
_LONGEST_PASSPHRASE_FILE = 4096
#: The universe without a node list. A file of this name has a folder before it.
OPEN = Path("open")
#: Addresses that only programs of this machine can reach.
LOOPBACK = ("127.0.0.1", "::1")
T = TypeVar("T")


@dataclass(frozen=True)
class DataConfig:
    """The file of a silo's edges, and the lineage: the ledger's name for the dataset."""

    edges: Path
    lineage: str
    format: str | None = None
    columns: tuple[str, ...] | None = None
    header: bool | None = None
    window: Window | None = None


#: The keys of a time window among those of the data.
WINDOW_KEYS = ("time_column", "since", "until")


@dataclass(frozen=True)
class LedgerConfig:
    """The ledger file, and the budget limit of the lineage."""

    path: Path
    epsilon: float
    delta: float
    collusion: int


@dataclass(frozen=True)
class MetricsConfig:
    """The file that a party's metrics are written to, and the port that they are served on."""

    file: Path
    port: int | None = None


@dataclass(frozen=True)
class ConsoleConfig:
    """Where a party's web console listens, by which names it is reached, and its TLS files."""

    host: str = "127.0.0.1"
    port: int = 8470
    #: Further values of the header ``Host`` that are the console's own.
    hosts: tuple[str, ...] = ()
    cert: Path | None = None
    key: Path | None = None

    @property
    def tls(self) -> bool:
        """Whether the console is reached over TLS."""
        return self.cert is not None

    @property
    def names(self) -> tuple[str, ...]:
        """All values of the header ``Host`` that are the console's own."""
        address = f"[{self.host}]" if ":" in self.host else self.host
        own = (address, "localhost") if self.host in LOOPBACK else (address,)
        return (*(f"{name}:{self.port}" for name in own), *self.hosts)


@dataclass(frozen=True)
class PartyConfig:
    """The settings that all parties share."""

    #: ``silo``, ``helper`` or ``coordinator``, as in the roster.
    role: ClassVar[str]

    file: Path
    name: str
    identity: Path
    passphrase_file: Path | None
    roster: Path
    #: The node list, or :data:`OPEN`. Only a helper's configuration may leave it out.
    universe: Path | None
    state: Path
    broker: BrokerConfig
    metrics: MetricsConfig
    #: People who answer for decisions, by name and public key; see :mod:`.approval`.
    approvers: tuple[Member, ...]
    console: ConsoleConfig

    @property
    def store(self) -> Path:
        """The path of the party's state store."""
        return self.state / "store.db"

    def nodes(self) -> NodeUniverse | None:
        """The universe that the configuration names, if any."""
        if self.universe is None or self.universe == OPEN:
            return None if self.universe is None else NodeUniverse.open()
        return NodeUniverse.from_file(self.universe)

    def passphrase(self) -> str | None:
        """The passphrase of a sealed identity, or None if no passphrase file is configured."""
        if self.passphrase_file is None:
            return None
        limit = _LONGEST_PASSPHRASE_FILE
        content = whole_files.read(self.passphrase_file, limit, ConfigError, private=True)
        try:
            return content.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise ConfigError(f"{self.passphrase_file}: not a text in UTF-8") from None


@dataclass(frozen=True)
class SiloConfig(PartyConfig):
    """The configuration of a silo."""

    role = "silo"

    data: DataConfig
    ledger: LedgerConfig
    policy: Policy
    waiting: Waiting | None

    @classmethod
    def read(cls, path: Path) -> "SiloConfig":
        """Read the configuration file of a silo."""
        top = _Table.of(path)
        made = cls(
            **_party(top, cls.role), data=_data(top), ledger=_ledger(top),
            policy=_policy(top.table("policy")), waiting=_waiting(top),
        )  # fmt: skip
        top.finish()
        _check_approvals(made)
        return made


@dataclass(frozen=True)
class HelperConfig(PartyConfig):
    """The configuration of a helper, which has no edges and spends no budget."""

    role = "helper"

    policy: Policy
    waiting: Waiting | None

    @classmethod
    def read(cls, path: Path) -> "HelperConfig":
        """Read the configuration file of a helper."""
        top = _Table.of(path)
        for key in ("data", "ledger"):
            if top.has(key):
                raise ConfigError(f"{top.file}: {key}: a helper has no data and no ledger")
        policy = _policy(top.table("policy"))
        made = cls(**_party(top, cls.role), policy=policy, waiting=_waiting(top))
        top.finish()
        _check_approvals(made)
        return made


@dataclass(frozen=True)
class CoordinatorConfig(PartyConfig):
    """The configuration of a coordinator."""

    role = "coordinator"

    #: How many servers of the broker keep a copy of every stream.
    replicas: int = 1

    @classmethod
    def read(cls, path: Path) -> "CoordinatorConfig":
        """Read the configuration file of a coordinator."""
        top = _Table.of(path)
        replicas = top.maybe("replicas", int)
        if replicas not in (None, 1, 3, 5):
            raise ConfigError(
                f"{top.file}: replicas must be 1, 3 or 5, as many as servers or fewer"
            )
        made = cls(**_party(top, cls.role), replicas=replicas or 1)
        top.finish()
        return made


def read_config(path: Path) -> PartyConfig:
    """Read the configuration file of any party."""
    top = _Table.of(path)
    role = top.maybe("role", str) or ("silo" if top.has("data") else "coordinator")
    kinds: tuple[type[SiloConfig | HelperConfig | CoordinatorConfig], ...]
    kinds = (SiloConfig, HelperConfig, CoordinatorConfig)
    for kind in kinds:
        if kind.role == role:
            return kind.read(path)
    raise ConfigError(f"{top.file}: role must be silo, helper or coordinator")


def read_served(path: Path) -> SiloConfig | HelperConfig:
    """Read the configuration file of a party that is served: a silo, unless it is a helper's."""
    helper = _Table.of(path).maybe("role", str) == HelperConfig.role
    return HelperConfig.read(path) if helper else SiloConfig.read(path)


class _Table:
    """A TOML table. Each key is taken out once; :meth:`finish` refuses those that remain."""

    def __init__(self, file: Path, where: str, content: dict[str, Any]) -> None:
        self.file = file
        self._where = where
        self._content = dict(content)
        self._tables: list[_Table] = []

    @classmethod
    def of(cls, path: Path) -> "_Table":
        path = path.absolute()
        content = whole_files.read(path, _LARGEST, ConfigError)
        top = cls(path, "", whole_files.parse_toml(path, content, ConfigError))
        whole_files.CONFIG.check(top.take("version", int), path, ConfigError)
        return top

    def table(self, key: str) -> "_Table":
        """Take a nested table."""
        found = _Table(self.file, f"{self._where}{key}.", self.take(key, dict))
        self._tables.append(found)
        return found

    def tables(self, key: str) -> "list[_Table]":
        """Take a list of nested tables."""
        found: list[Any] = self.take(key, list)
        if not all(isinstance(item, dict) for item in found):
            raise ConfigError(f"{self.file}: {self._where}{key} must be a list of tables")
        made = [
            _Table(self.file, f"{self._where}{key}[{number}].", item)
            for number, item in enumerate(found, 1)
        ]
        self._tables += made
        return made

    def take(self, key: str, kind: type[T]) -> T:
        """Take a required value."""
        if key not in self._content:
            raise ConfigError(f"{self.file}: {self._where}{key} is missing")
        value = self._content.pop(key)
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            raise ConfigError(f"{self.file}: {self._where}{key} must be {_KINDS[kind]}")
        return value

    def maybe(self, key: str, kind: type[T]) -> T | None:
        """Take an optional value."""
        return self.take(key, kind) if key in self._content else None

    def path(self, key: str) -> Path:
        """Take a path, which is relative to the configuration file."""
        return self.file.parent / self.take(key, str)

    def maybe_path(self, key: str) -> Path | None:
        """Take an optional path."""
        return self.path(key) if key in self._content else None

    def texts(self, key: str) -> tuple[str, ...]:
        """Take a list of texts."""
        found: list[Any] = self.take(key, list)
        if not all(isinstance(item, str) for item in found):
            raise ConfigError(f"{self.file}: {self._where}{key} must be a list of texts")
        return tuple(found)

    def checked(self, make: Callable[[], T]) -> T:
        """Call ``make``; an error that it raises is reported with the file and the table."""
        try:
            return make()
        except ConfigError:
            raise
        except SilographError as error:
            raise ConfigError(f"{self.file}: [{self._where.rstrip('.')}] {error}") from None

    def has(self, key: str) -> bool:
        """Whether a key is present and has not been taken yet."""
        return key in self._content

    def finish(self) -> None:
        """Refuse unknown keys: a misspelt key must not silently mean the default."""
        if self._content:
            key = f"{self._where}{min(self._content)}"
            raise ConfigError(f"{self.file}: {key} is not a key that is known")
        for table in self._tables:
            table.finish()


_KINDS: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


def _party(top: _Table, role: str) -> dict[str, Any]:
    helper = role == HelperConfig.role
    given = top.take("role", str) if helper else top.maybe("role", str) or role
    if given != role:
        raise ConfigError(f"{top.file}: role is {given!r}, and this must be the file of a {role}")
    state = top.path("state")
    return {
        "file": top.file,
        "name": top.take("name", str),
        "identity": top.path("identity"),
        "passphrase_file": top.maybe_path("passphrase_file"),
        "roster": top.path("roster"),
        "universe": _universe(top) if top.has("universe") or not helper else None,
        "state": state,
        "broker": _broker(top.table("broker")),
        "metrics": _metrics(top, state / "metrics.prom"),
        "approvers": _approvers(top),
        "console": _console(top),
    }


def _console(top: _Table) -> ConsoleConfig:
    if not top.has("console"):
        return ConsoleConfig()
    table = top.table("console")
    host, _, port = (table.maybe("listen", str) or "127.0.0.1:8470").rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(host)
        found = int(port)
    except ValueError:
        host, found = "", 0
    if not host or not 0 < found < 1 << 16:
        raise ConfigError(
            f"{top.file}: console.listen must be an address and a port: 127.0.0.1:8470"
        )
    hosts = table.texts("hosts") if table.has("hosts") else ()
    cert, key = table.maybe_path("cert"), table.maybe_path("key")
    if (cert is None) != (key is None):
        raise ConfigError(f"{top.file}: console: cert and key come together")
    if cert is None and host not in LOOPBACK:
        raise ConfigError(
            f"{top.file}: console: at another address than 127.0.0.1 it needs TLS: cert and key"
        )
    return ConsoleConfig(host, found, hosts, cert, key)


def _approvers(top: _Table) -> tuple[Member, ...]:
    if not top.has("approvers"):
        return ()
    found = tuple(_approver(entry) for entry in top.tables("approvers"))
    for what, values in (
        ("name", {person.name for person in found}),
        ("key", {person.public for person in found}),
    ):
        if len(values) != len(found):
            raise ConfigError(f"{top.file}: approvers: two of them have the same {what}")
    return found


def _approver(entry: _Table) -> Member:
    name, key = entry.take("name", str), entry.take("key", str)
    if name in RESERVED:
        raise ConfigError(f"{entry.file}: approvers: {name!r} cannot be the name of a person")
    return entry.checked(lambda: new_member(name, read_key(key)))


def _universe(top: _Table) -> Path:
    given = top.take("universe", str)
    return OPEN if given == str(OPEN) else top.file.parent / given


def _broker(table: _Table) -> BrokerConfig:
    urls = table.texts("urls")
    tls = None
    if table.has("ca") or table.has("cert") or table.has("key"):
        tls = TlsFiles(table.path("ca"), table.path("cert"), table.path("key"))
    websocket = table.maybe("websocket", bool) or False
    return table.checked(lambda: BrokerConfig(urls, tls, websocket))


def _metrics(top: _Table, file: Path) -> MetricsConfig:
    if not top.has("metrics"):
        return MetricsConfig(file)
    table = top.table("metrics")
    file = table.maybe_path("file") or file
    port = table.maybe("port", int)
    if port is not None and not 0 < port < 1 << 16:
        raise ConfigError(f"{top.file}: metrics.port must be a number from 1 to 65535")
    return MetricsConfig(file, port)


def _waiting(top: _Table) -> Waiting | None:
    if not top.has("waiting"):
        return None
    table = top.table("waiting")
    command = table.texts("command") if table.has("command") else ()
    webhook, seconds = table.maybe("webhook", str) or "", table.maybe("seconds", float)
    return table.checked(lambda: Waiting(command, webhook, 10.0 if seconds is None else seconds))


def _check_approvals(config: SiloConfig | HelperConfig) -> None:
    wanted, people = config.policy.approvals, len(config.approvers)
    if wanted > 1 and wanted > people:
        raise ConfigError(
            f"{config.file}: policy.approvals: {wanted} are wanted, and [[approvers]] enrols "
            f"{people}"
        )


def _data(top: _Table) -> DataConfig:
    table = top.table("data")
    return DataConfig(
        table.path("edges"),
        table.take("lineage", str),
        table.maybe("format", str),
        table.texts("columns") if table.has("columns") else None,
        table.maybe("header", bool),
        _window(table),
    )


def _window(table: _Table) -> Window | None:
    column, since, until = (table.maybe(key, str) for key in WINDOW_KEYS)
    if column is None and since is None and until is None:
        return None
    place = int(column) if column is not None and column.isdecimal() else column or ""
    return table.checked(lambda: Window(place, since, until))


def _ledger(top: _Table) -> LedgerConfig:
    table = top.table("ledger")
    collusion = table.maybe("collusion", int)
    return LedgerConfig(
        table.path("path"),
        table.take("epsilon", float),
        table.maybe("delta", float) or 0.0,
        1 if collusion is None else collusion,
    )


def _policy(table: _Table) -> Policy:
    given: dict[str, Any] = {"coordinators": table.texts("coordinators")}
    kinds: dict[str, type] = {
        "epsilon": float,
        "delta": float,
        "least_collusion": int,
        "least_silos": int,
        "part_of_roster": bool,
        "helpers": bool,
        "coordinator_in_committee": bool,
        "silos_trust_each_other": bool,
        "fold": bool,
        "largest": int,
        "longest": int,
        "accept": str,
        "approvals": int,
    }
    for part in fields(Policy):
        if part.name in ("methods", "queries") and table.has(part.name):
            given[part.name] = table.texts(part.name)
        elif part.name in kinds and table.has(part.name):
            given[part.name] = table.take(part.name, kinds[part.name])
    if table.has("committee"):
        given["committee"] = tuple(_pinned(entry) for entry in table.tables("committee"))
    return table.checked(lambda: Policy(**given))


def _pinned(entry: _Table) -> Member:
    """A member of the committee, in the words of the roster file."""
    name, key = entry.take("name", str), entry.take("key", str)
    organisation = entry.take("organisation", str)
    return entry.checked(lambda: new_member(name, read_key(key), organisation))


# --- A silo's edges over the agreed node list -----------------------------------------------------
#
# The parties agree on the node list and never derive it from edges, so a silo's file may name nodes
# that are not in the list. Edges to such nodes are left out and counted. The count depends on the
# edges, so it goes only to the silo's own log and screen. A file in which no edge has both ends in
# the list is refused, because its ids are probably written in another form.


@dataclass(frozen=True)
class SiloData:
    """The edges of a silo, and what was left out of its file."""

    silo: Silo
    #: Edges of which an end is not in the node list.
    outside: int
    #: Rows outside the time window.
    other_times: int

    @property
    def left_out(self) -> str:
        """What was left out, in words that follow the number of edges."""
        listed = f", {self.outside:,} left out: not in the node list" * bool(self.outside)
        return listed + f", {self.other_times:,} rows outside the time window" * bool(
            self.other_times
        )


def load_silo(config: SiloConfig, universe: NodeUniverse) -> SiloData:
    """Read the edge file that the configuration names."""
    data = config.data
    if data.columns is not None and len(data.columns) != 2:
        raise ConfigError(f"{config.file}: data.columns must name two columns")
    columns: Columns = (data.columns[0], data.columns[1]) if data.columns else None
    if columns is not None and all(map(str.isdecimal, data.columns or ())):
        columns = int(columns[0]), int(columns[1])
    try:
        silo = Silo.from_file(
            universe, data.edges, columns=columns, format=data.format, header=data.header,
            window=data.window, name=config.name,
        )  # fmt: skip
        return SiloData(silo, 0, silo.report.outside)
    except EdgeError:
        if universe.is_open:
            raise  # no id is outside
        # If the error had another cause than unknown nodes, this call raises it again.
        whole = read_graph(
            data.edges, columns=columns, format=data.format, header=data.header,
            strip=universe.strip, case=universe.case, window=data.window,
        )  # fmt: skip
    places = {name: place for place, name in enumerate(universe)}
    found = np.array([places.get(name, -1) for name in whole.universe], dtype=np.int64)
    ends = found[whole.pairs]
    inside = (ends >= 0).all(axis=1)
    if not inside.any():
        raise EdgeError(f"{data.edges}: no edge has both ends in the node list {config.universe}")
    silo = Silo.from_pairs(universe, ends[inside], name=config.name)
    return SiloData(silo, int((~inside).sum()), whole.report.outside)
