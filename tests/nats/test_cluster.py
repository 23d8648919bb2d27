"""A broker of three servers goes on without the one that leads a run's stream."""

import asyncio
from pathlib import Path

import pytest

from silograph.errors import TransportError
from silograph.nats.coordinator import Question
from tests.nats.cluster import lose_the_leader
from tests.nats.world import ask, trial


@pytest.mark.whole
def test_the_leader_of_a_stream_is_lost(tmp_path: Path) -> None:
    found = lose_the_leader(tmp_path, Question("edges", 3.0, protocol="masked"))
    assert found["result"]["answer"]
    assert found["killed"] in ("n1", "n2", "n3")
    assert found["replicas"] == 3


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
