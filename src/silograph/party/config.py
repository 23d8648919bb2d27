"""Configuration files of a silo and of a coordinator: TOML, read strictly.

Every key is known and of one kind; an unknown, missing or wrong one is one error that names the
file and the key. Paths are relative to the file. What the files mean::

    version = 1
    name = "north"                  # this party's name in the roster
    identity = "north.key"
    roster = "roster.toml"
    universe = "nodes.txt"          # the public node list
    state = "state"                 # a folder of this party's own

    [broker]
    urls = ["tls://broker.example:4222"]
    ca = "ca.pem"
    cert = "north.pem"
    key = "north.tls.key"

    [metrics]                       # may be left out, as may each of its keys
    file = "state/metrics.prom"
    port = 9464                     # of this machine's own; without it nothing is served

    [data]                          # of a silo, as are all that follow
    edges = "edges.csv"
    lineage = "claims"

    [ledger]
    path = "north.ledger"
    epsilon = 10.0
    collusion = 1

    [policy]
    coordinators = ["hub"]
    methods = ["feat masked"]
    epsilon = 1.0
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from silograph import whole_files
from silograph.errors import ConfigError, EdgeError, SilographError
from silograph.graph.silo import Silo, read_graph
from silograph.graph.universe import NodeUniverse
from silograph.party.connection import BrokerConfig, TlsFiles
from silograph.party.policy import Policy

__all__ = [
    "CoordinatorConfig",
    "DataConfig",
    "LedgerConfig",
    "MetricsConfig",
    "PartyConfig",
    "SiloConfig",
    "SiloData",
    "load_silo",
    "read_config",
]


# --- Files ----------------------------------------------------------------------------------------

_LARGEST = 1 << 18
_LONGEST_PASSPHRASE_FILE = 4096
T = TypeVar("T")


@dataclass(frozen=True)
class DataConfig:
    """Where a silo's edges are, and the lineage that their budget belongs to."""

    edges: Path
    lineage: str
    format: str | None = None
    columns: tuple[str, ...] | None = None
    header: bool | None = None


@dataclass(frozen=True)
class LedgerConfig:
    """The ledger's file and the limit of the lineage."""

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
class PartyConfig:
    """What every party has."""

    file: Path
    name: str
    identity: Path
    passphrase_file: Path | None
    roster: Path
    universe: Path
    state: Path
    broker: BrokerConfig
    metrics: MetricsConfig

    @property
    def store(self) -> Path:
        """The file of the party's state store."""
        return self.state / "store.db"

    def passphrase(self) -> str | None:
        """The passphrase of a sealed identity, where a file holds it."""
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
    """What a silo needs to serve."""

    data: DataConfig
    ledger: LedgerConfig
    policy: Policy

    @classmethod
    def read(cls, path: Path) -> "SiloConfig":
        """Read a silo's file."""
        top = _Table.of(path)
        made = cls(
            **_party(top), data=_data(top), ledger=_ledger(top), policy=_policy(top.table("policy"))
        )
        top.finish()
        return made


@dataclass(frozen=True)
class CoordinatorConfig(PartyConfig):
    """What a coordinator needs."""

    @classmethod
    def read(cls, path: Path) -> "CoordinatorConfig":
        """Read a coordinator's file."""
        top = _Table.of(path)
        made = cls(**_party(top))
        top.finish()
        return made


def read_config(path: Path) -> PartyConfig:
    """Read the file of a silo or of a coordinator."""
    kind = SiloConfig if _Table.of(path).has("data") else CoordinatorConfig
    return kind.read(path)


class _Table:
    """A table of a file, which is asked for each of its keys once."""

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
        """A table within this one."""
        found = _Table(self.file, f"{self._where}{key}.", self.take(key, dict))
        self._tables.append(found)
        return found

    def take(self, key: str, kind: type[T]) -> T:
        """A value that must be there."""
        if key not in self._content:
            raise ConfigError(f"{self.file}: {self._where}{key} is missing")
        value = self._content.pop(key)
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            raise ConfigError(f"{self.file}: {self._where}{key} must be {_KINDS[kind]}")
        return value

    def maybe(self, key: str, kind: type[T]) -> T | None:
        """A value that may be left out."""
        return self.take(key, kind) if key in self._content else None

    def path(self, key: str) -> Path:
        """A path, relative to the file."""
        return self.file.parent / self.take(key, str)

    def maybe_path(self, key: str) -> Path | None:
        """A path that may be left out."""
        return self.path(key) if key in self._content else None

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        found: list[Any] = self.take(key, list)
        if not all(isinstance(item, str) for item in found):
            raise ConfigError(f"{self.file}: {self._where}{key} must be a list of texts")
        return tuple(found)

    def checked(self, make: Callable[[], T]) -> T:
        """What is made of this table; an error says where it comes from."""
        try:
            return make()
        except ConfigError:
            raise
        except SilographError as error:
            raise ConfigError(f"{self.file}: [{self._where.rstrip('.')}] {error}") from None

    def has(self, key: str) -> bool:
        """Whether a key is there and was not asked for yet."""
        return key in self._content

    def finish(self) -> None:
        """Refuse what nobody asked for: a misspelt key must not be a default."""
        for table in (self, *self._tables):
            if table._content:
                key = f"{table._where}{min(table._content)}"
                raise ConfigError(f"{self.file}: {key} is not a key that is known")


_KINDS: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


def _party(top: _Table) -> dict[str, Any]:
    state = top.path("state")
    return {
        "file": top.file,
        "name": top.take("name", str),
        "identity": top.path("identity"),
        "passphrase_file": top.maybe_path("passphrase_file"),
        "roster": top.path("roster"),
        "universe": top.path("universe"),
        "state": state,
        "broker": _broker(top.table("broker")),
        "metrics": _metrics(top, state / "metrics.prom"),
    }


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


def _data(top: _Table) -> DataConfig:
    table = top.table("data")
    return DataConfig(
        table.path("edges"),
        table.take("lineage", str),
        table.maybe("format", str),
        table.texts("columns") if table.has("columns") else None,
        table.maybe("header", bool),
    )


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
        "silos_trust_each_other": bool,
        "longest": int,
        "accept": str,
    }
    for part in fields(Policy):
        if part.name in ("methods", "queries") and table.has(part.name):
            given[part.name] = table.texts(part.name)
        elif part.name in kinds and table.has(part.name):
            given[part.name] = table.take(part.name, kinds[part.name])
    return table.checked(lambda: Policy(**given))


# --- A silo's edges over the agreed node list -----------------------------------------------------
#
# The list is fixed by the people and never taken from edges, so a silo's file may name nodes that
# are not in it. Edges to such nodes are left out and counted; the count depends on the edges, and
# goes to the silo's own log and screen only. A file in which no edge has both ends in the list is
# refused: its ids are written in another way.


@dataclass(frozen=True)
class SiloData:
    """The edges that a silo serves, and how many it leaves out."""

    silo: Silo
    outside: int


def load_silo(config: SiloConfig, universe: NodeUniverse) -> SiloData:
    """Read the file that the configuration names."""
    data = config.data
    if data.columns is not None and len(data.columns) != 2:
        raise ConfigError(f"{config.file}: data.columns must name two columns")
    columns = (data.columns[0], data.columns[1]) if data.columns else None
    try:
        silo = Silo.from_file(
            universe, data.edges, columns=columns, format=data.format, header=data.header,
            name=config.name,
        )  # fmt: skip
        return SiloData(silo, 0)
    except EdgeError:
        # Whatever else is wrong with the file is found here again.
        whole = read_graph(
            data.edges, columns=columns, format=data.format, header=data.header,
            strip=universe.strip, case=universe.case,
        )  # fmt: skip
    places = {name: place for place, name in enumerate(universe)}
    found = np.array([places.get(name, -1) for name in whole.universe], dtype=np.int64)
    ends = found[whole.pairs]
    inside = (ends >= 0).all(axis=1)
    if not inside.any():
        raise EdgeError(f"{data.edges}: no edge has both ends in the node list {config.universe}")
    silo = Silo.from_pairs(universe, ends[inside], name=config.name)
    return SiloData(silo, int((~inside).sum()))
