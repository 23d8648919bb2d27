"""A whole deployment on one machine, for demonstrations, benchmarks and tests.

Everything is as it would be on several machines: identities, a roster that all have signed, mutual
TLS, a broker with permissions, one configuration file per party, one ledger per silo. But there is
only one machine, and all secrets lie in one folder: no real data belongs here.
"""

import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from silograph.errors import ArgumentError
from silograph.graph.silo import Silo
from silograph.nats.broker import ServerSettings, write_broker_files
from silograph.nats.trial import Broker, serve, server_binary
from silograph.party import certificates
from silograph.party.config import CoordinatorConfig, HelperConfig, SiloConfig
from silograph.party.connection import TlsFiles
from silograph.party.keys import key_text, new_identity
from silograph.party.roster import RosterFile, new_roster, read_roster, write_roster
from tests.support.ports import free_port

__all__ = ["HUB", "Broker", "LocalDeployment", "Terms", "server_binary"]

#: The coordinator's name.
HUB = "hub"


@dataclass(frozen=True)
class Terms:
    """The terms of every silo in a trial."""

    epsilon: float = 100.0
    study: float = 10.0
    collusion: int = 1
    accept: str = "auto"
    methods: tuple[str, ...] = (
        "feat masked",
        "feat committee",
        "feat elgamal/blinded",
        "feat elgamal/replace",
        "baseline",
        "feat+ masked",
        "feat+ committee",
        "sealed",
        "hubs masked",
    )
    delta: float = 1e-6
    least_collusion: int = 0
    trust: bool = True
    part_of_roster: bool = False
    #: Names of the four that every policy pins as members of committees; empty for none.
    committee: tuple[str, ...] = ()
    helpers: bool = True
    coordinator_in_committee: bool = False
    #: The most pairs or buckets of a study; None for a policy's default.
    largest: int | None = None


class LocalDeployment:
    """A folder with all files of a coordinator, of silos, of helpers and of their broker."""

    def __init__(
        self,
        folder: Path,
        silos: Sequence[Silo],
        terms: Terms | None = None,
        *,
        helpers: Sequence[str] = (),
        organisations: Mapping[str, str] = MappingProxyType({}),
        tls: bool = True,
        through: int | None = None,
        websocket: bool = False,
    ) -> None:
        """Make the files.

        ``helpers`` are names. A party's organisation is its name, unless ``organisations`` says
        otherwise. ``through`` is a port that parties use instead of the broker's own; with
        ``websocket`` they reach it over WebSocket, which has TLS always.
        """
        self.folder = folder
        self.names = [silo.name or f"silo-{number}" for number, silo in enumerate(silos, 1)]
        self.helpers = list(helpers)
        self._organisations = organisations
        self._terms = terms or Terms()
        if websocket and not tls:
            raise ArgumentError("a trial over WebSocket is one with TLS")
        self._tls = tls
        self._websocket = websocket
        self.port = free_port()
        self.websocket_port = free_port() if websocket else None
        self._through = through or self.websocket_port or self.port
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        roster = self._roster()
        silos[0].universe.save(folder / "nodes.txt")
        if tls:
            self._certificates()
        self._broker_files(roster)
        for name, silo in zip(self.names, silos, strict=True):
            silo.to_file(folder / f"{name}.csv")
            self._write(f"{name}.toml", self._silo_text(name))
        for name in self.helpers:
            self._write(f"{name}.toml", self._helper_text(name))
        self._write(f"{HUB}.toml", self._party_text(HUB))
        self.broker = Broker(folder / "broker", self.port)

    def _roster(self) -> RosterFile:
        everyone = (HUB, *self.names, *self.helpers)
        keys = {name: new_identity(self.folder / f"{name}.key") for name in everyone}
        self._keys = {name: key_text(identity.public) for name, identity in keys.items()}
        house = self._organisations
        roster = new_roster(HUB, keys[HUB].public, house.get(HUB))
        for name in self.names:
            roster = roster.add(name, keys[name].public, organisation=house.get(name))
        for name in self.helpers:
            roster = roster.add(name, keys[name].public, "helper", house.get(name))
        for identity in keys.values():
            roster = roster.sign(identity)
        write_roster(self.folder / "roster.toml", roster)
        return read_roster(self.folder / "roster.toml")

    def _certificates(self) -> None:
        folder, now = self.folder / "tls", datetime.now(UTC)
        certificates.new_authority(folder, now)
        certificates.issue(folder, certificates.BROKER, now, hosts=("localhost", "127.0.0.1"))
        for name in (HUB, *self.names, *self.helpers):
            certificates.issue(folder, name, now)

    def tls_files(self, name: str) -> TlsFiles:
        """The certificate and key of a party."""
        folder = self.folder / "tls"
        return TlsFiles(folder / "ca.pem", folder / f"{name}.pem", folder / f"{name}.key")

    def _broker_files(self, roster: RosterFile) -> None:
        folder, listen = self.folder / "broker", f"127.0.0.1:{self.port}"
        if self._tls:
            second = f"127.0.0.1:{self.websocket_port}" if self._websocket else None
            settings = ServerSettings(
                self.tls_files(certificates.BROKER), folder / "streams", listen, second
            )
            write_broker_files(folder, roster, settings)
        else:
            folder.mkdir(exist_ok=True)
            self._write(
                "broker/nats.conf",
                f"listen: '{listen}'\nmax_payload: 4194304\n"
                f"jetstream {{ store_dir: '{folder / 'streams'}', sync_interval: always }}\n",
            )

    def _helper_text(self, name: str) -> str:
        return f'role = "helper"\n{self._party_text(name)}{self._policy_text()}'

    def _party_text(self, name: str) -> str:
        known = "" if name in self.helpers else 'universe = "nodes.txt"\n'
        scheme, host = ("tls", "localhost") if self._tls else ("nats", "127.0.0.1")
        websocket = "websocket = true\n" if self._websocket else ""
        scheme = "wss" if self._websocket else scheme
        tls = (
            f'ca = "tls/ca.pem"\ncert = "tls/{name}.pem"\nkey = "tls/{name}.key"\n'
            if self._tls
            else ""
        )
        return (
            f'version = 1\nname = "{name}"\nidentity = "{name}.key"\nroster = "roster.toml"\n'
            f'{known}state = "{name}.state"\n\n[broker]\n'
            f'urls = ["{scheme}://{host}:{self._through}"]\n{websocket}{tls}'
        )

    def _silo_text(self, name: str) -> str:
        terms = self._terms
        return self._party_text(name) + (
            f'\n[data]\nedges = "{name}.csv"\nlineage = "trial"\n'
            f'\n[ledger]\npath = "{name}.ledger"\nepsilon = {terms.epsilon}\n'
            f"delta = {terms.delta}\ncollusion = {terms.collusion}\n{self._policy_text()}"
        )

    def _policy_text(self) -> str:
        terms = self._terms
        methods = ", ".join(f'"{method}"' for method in terms.methods)
        trust = str(terms.trust).lower()
        pinned = "".join(
            f'    {{ name = "{name}", key = "{self._keys[name]}", '
            f'organisation = "{self._organisations.get(name, name)}" }},\n'
            for name in terms.committee
        )
        committee = f"committee = [\n{pinned}]\n" if pinned else ""
        largest = "" if terms.largest is None else f"largest = {terms.largest}\n"
        return (
            f'\n[policy]\ncoordinators = ["{HUB}"]\nmethods = [{methods}]\n'
            f"epsilon = {terms.study}\ndelta = {terms.delta}\n"
            f"least_collusion = {terms.least_collusion}\n"
            f'least_silos = 2\nsilos_trust_each_other = {trust}\naccept = "{terms.accept}"\n'
            f"part_of_roster = {str(terms.part_of_roster).lower()}\n"
            f"helpers = {str(terms.helpers).lower()}\n"
            f"coordinator_in_committee = {str(terms.coordinator_in_committee).lower()}\n"
            f"{largest}{committee}"
        )

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def silo_file(self, name: str) -> Path:
        """The configuration file of a silo or a helper."""
        return self.folder / f"{name}.toml"

    def silo(self, name: str) -> SiloConfig:
        """The configuration of a silo."""
        return SiloConfig.read(self.silo_file(name))

    def helper(self, name: str) -> HelperConfig:
        """The configuration of a helper."""
        return HelperConfig.read(self.silo_file(name))

    def coordinator(self) -> CoordinatorConfig:
        """The configuration of the coordinator."""
        return CoordinatorConfig.read(self.folder / f"{HUB}.toml")

    def processes(self, names: Iterable[str] | None = None) -> "list[subprocess.Popen[bytes]]":
        """Silos and helpers as processes of their own; whoever starts them ends them."""
        everyone = (*self.names, *self.helpers)
        return [self.process(name) for name in (everyone if names is None else names)]

    @contextmanager
    def serving(self) -> "Iterator[list[subprocess.Popen[bytes]]]":
        """All silos and helpers as processes, which are ended at the end."""
        processes = self.processes()
        try:
            yield processes
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()

    def wait_for_silos(self) -> None:
        """Until every silo serves: it has read its edges then."""
        for name in self.names:
            while not (self.silo(name).state / "status.json").exists():
                time.sleep(0.05)

    def process(self, name: str) -> "subprocess.Popen[bytes]":
        """One silo or helper as a process."""
        return serve(self.silo_file(name), self.folder / f"{name}.out")
