"""Three servers as one broker, any of which can be killed."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

from silograph.nats import faultpoints
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.link import STUDIES_STREAM, stream_name
from tests.nats.world import link, serving, silos
from tests.support.local_deployment import HUB, Broker, LocalDeployment, Terms
from tests.support.ports import free_port

__all__ = ["Cluster", "lose_the_leader"]

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
            place.mkdir(parents=True)
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


def lose_the_leader(folder: Path, question: Question, **more: Any) -> dict[str, Any]:
    """Carry a study, and kill the server that leads a silo's stream when a silo has paid.

    Returns the study's result, the server, and the replicas of the stream of proposals.
    """
    cluster, reached = Cluster(folder, **more), asyncio.Event()
    found: dict[str, Any] = {}

    async def kill_the_leader(run: str) -> None:
        await reached.wait()
        line = await link(cluster.made, "silo-1")
        studies = await line._streams.stream_info(STUDIES_STREAM)
        stream = await line._streams.stream_info(stream_name(run, "silo-2"))
        await line.close()
        assert stream.cluster is not None
        found["replicas"], found["killed"] = studies.config.num_replicas, stream.cluster.leader
        cluster.servers[str(stream.cluster.leader)].kill()

    async def run() -> dict[str, Any]:
        loop = asyncio.get_running_loop()

        def strike(name: str) -> None:
            if name == "silo.authorised":
                loop.call_soon_threadsafe(reached.set)

        with faultpoints.hooked(strike):
            async with serving(cluster.made):
                service = CoordinatorService(cluster.made.coordinator())
                name = service.propose(question, 150.0).study.run
                killing = asyncio.create_task(kill_the_leader(name))
                try:
                    return await service.carry(name)
                finally:
                    killing.cancel()
                    service.close()

    cluster.start()
    try:
        return {"result": asyncio.run(run()), **found}
    finally:
        cluster.stop()
        shutil.rmtree(folder)  # three copies of all streams
