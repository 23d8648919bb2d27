"""Three servers as one broker, any of which can be killed."""

from pathlib import Path

from tests.nats.world import silos
from tests.support.local_deployment import HUB, Broker, LocalDeployment, Terms, free_port

__all__ = ["Cluster"]

_NAMES = ("n1", "n2", "n3")


class Cluster:
    """A deployment without TLS on three servers; streams have so many replicas."""

    def __init__(
        self,
        folder: Path,
        replicas: int = 3,
        *,
        count: int = 3,
        terms: Terms | None = None,
        helpers: tuple[str, ...] = (),
    ) -> None:
        self.made = LocalDeployment(
            folder / "trial", silos(count), terms, tls=False, helpers=helpers
        )
        ports = {name: free_port() for name in _NAMES}
        routes = {name: free_port() for name in _NAMES}
        self.servers: dict[str, Broker] = {}
        for name in _NAMES:
            place = folder / name
            place.mkdir()
            others = ", ".join(f"'nats://127.0.0.1:{routes[n]}'" for n in _NAMES if n != name)
            (place / "nats.conf").write_text(
                f"server_name: {name}\nlisten: '127.0.0.1:{ports[name]}'\nmax_payload: 4194304\n"
                f"jetstream {{ store_dir: '{place / 'streams'}', sync_interval: always }}\n"
                f"cluster {{ name: trial, listen: '127.0.0.1:{routes[name]}', "
                f"routes: [{others}] }}\n"
            )
            self.servers[name] = Broker(place, ports[name])
        urls = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports.values())
        for file in self.made.folder.glob("*.toml"):
            if file.name != "roster.toml":
                lines = file.read_text().splitlines(keepends=True)
                lines = [f"urls = [{urls}]\n" if x.startswith("urls") else x for x in lines]
                file.write_text("".join(lines))
        hub = self.made.folder / f"{HUB}.toml"
        hub.write_text(f"replicas = {replicas}\n{hub.read_text()}")

    def start(self) -> None:
        """Start all servers. They need some seconds to elect a leader; parties wait for it."""
        for server in self.servers.values():
            server.start()

    def stop(self) -> None:
        """End all servers that are left."""
        for server in self.servers.values():
            server.kill()
