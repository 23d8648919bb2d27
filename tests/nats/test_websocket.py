"""A whole study over WebSocket with mutual TLS, as parties behind a proxy would have it."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from silograph.errors import ArgumentError
from silograph.ledger.book import Ledger
from silograph.nats.coordinator import Question
from tests.nats.world import ask, serving, trial
from tests.support.local_deployment import LocalDeployment

pytest.importorskip("aiohttp", reason="WebSocket needs the extra 'websocket' (aiohttp)")


# The client's WebSocket passes an argument in a form that aiohttp would rather not see, and
# leaves the sockets of attempts that failed open.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_masked_study(tmp_path: Path) -> None:
    made = trial(tmp_path, websocket=True)
    for config in (made.coordinator(), *map(made.silo, made.names)):
        assert config.broker.urls == (f"wss://localhost:{made.websocket_port}",)
        assert config.broker.websocket
        assert config.broker.tls is not None
    made.broker.start()
    try:
        found = asyncio.run(_study(made))
        gc.collect()
    finally:
        made.broker.stop()
    assert found["answer"]["query"] == "edges"
    assert found["protocol"] == "masked"
    for name in made.names:
        with Ledger(made.silo(name).ledger.path) as ledger:
            assert len(ledger.rows()) == 1


async def _study(made: LocalDeployment) -> dict[str, Any]:
    async with serving(made):
        return await ask(made, Question("edges", 3.0), 20.0)


def test_only_with_tls(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="with TLS"):
        trial(tmp_path, websocket=True, tls=False)
