"""A broker of three servers goes on without the one that leads a run's stream."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from silograph.errors import TransportError
from silograph.nats import faultpoints
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.link import STUDIES_STREAM, Link, stream_name
from tests.nats.cluster import Cluster
from tests.nats.world import ask, link, serving, trial


async def leader(line: Link, name: str) -> str:
    """The server that leads a stream."""
    found = await line._streams.stream_info(name)
    assert found.cluster is not None
    return str(found.cluster.leader)


@pytest.mark.whole
def test_the_leader_of_a_stream_is_lost(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    killed: list[str] = []
    reached = asyncio.Event()

    async def kill_the_leader(run: str) -> None:
        await reached.wait()
        line = await link(cluster.made, "silo-1")
        studies = await line._streams.stream_info(STUDIES_STREAM)
        assert studies.config.num_replicas == 3
        killed.append(await leader(line, stream_name(run, "silo-2")))
        await line.close()
        cluster.servers[killed[0]].kill()

    async def run() -> dict[str, Any]:
        loop = asyncio.get_running_loop()

        def strike(name: str) -> None:
            if name == "silo.authorised":
                loop.call_soon_threadsafe(reached.set)

        with faultpoints.hooked(strike):
            async with serving(cluster.made):
                service = CoordinatorService(cluster.made.coordinator())
                name = service.propose(Question("edges", 3.0), 120.0).study.run
                killing = asyncio.create_task(kill_the_leader(name))
                try:
                    return await service.carry(name)
                finally:
                    await killing
                    service.close()

    cluster.start()
    try:
        assert asyncio.run(run())["answer"]
    finally:
        cluster.stop()
        shutil.rmtree(tmp_path)  # three copies of all streams
    assert len(killed) == 1


def test_replicas_need_a_cluster(tmp_path: Path) -> None:
    """A single server cannot keep three copies: it is said at once, and not waited for."""
    made = trial(tmp_path, tls=False)
    hub = made.folder / "hub.toml"
    hub.write_text(f"replicas = 3\n{hub.read_text()}")
    made.broker.start()
    try:
        with pytest.raises(Exception, match="aborted"):
            asyncio.run(ask(made, Question("edges", 3.0), 20.0))
    finally:
        made.broker.stop()
    log = (made.folder / "hub.state" / "log.jsonl").read_text()
    assert TransportError.__name__ in log
    assert "needs a cluster" in log
