"""A small deployment for tests: real broker, real files, services as tasks of this process."""

import asyncio
import hashlib
import inspect
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from silograph import Silo, clustered_power_law, split
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.link import Link
from silograph.nats.silo import HelperService, Service, SiloService
from silograph.party.config import read_config
from tests.support.local_deployment import LocalDeployment, Terms


@cache
def graph() -> Silo:
    """Made when it is needed: threads that it starts must not be there before a fork."""
    return clustered_power_law(40, edges_per_node=3, seed=1)


class Fixed:
    """Bytes that follow from a name: a party's entropy in tests that compare transcripts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._drawn = 0

    def bytes(self, count: int) -> bytes:
        self._drawn += 1
        return hashlib.shake_256(f"{self._name} {self._drawn}".encode()).digest(count)


def silos(count: int = 3, of: Silo | None = None) -> list[Silo]:
    parts = split(of or graph(), count, seed=1, rate=0.4 if count < 5 else 0.3)
    return [
        Silo.from_pairs(part.universe, part.pairs, name=f"silo-{number}")
        for number, part in enumerate(parts, 1)
    ]


def trial(folder: Path, terms: Terms | None = None, count: int = 3, **more: Any) -> LocalDeployment:
    return LocalDeployment(folder / "trial", silos(count), terms, **more)


async def until(what: str, seconds: float, ready: Callable[[], Any]) -> None:
    """Wait for what a test expects, and fail if it does not come."""
    limit = time.monotonic() + seconds
    while not (await found if inspect.isawaitable(found := ready()) else found):
        assert time.monotonic() < limit, what
        await asyncio.sleep(0.05)


def service_at(made: LocalDeployment, name: str, seed: str | None = None) -> Service:
    """The service of a silo or a helper."""
    entropy = Fixed(seed) if seed else None
    if name in made.helpers:
        return HelperService(made.helper(name), entropy=entropy)
    return SiloService(made.silo(name), entropy=entropy)


@asynccontextmanager
async def serving(
    made: LocalDeployment, names: list[str] | None = None, seed: str | None = None
) -> AsyncIterator[dict[str, Service]]:
    """Services of silos and helpers as tasks of this process, until the block ends."""
    stop = asyncio.Event()
    everyone = [*made.names, *made.helpers]
    services = {
        name: service_at(made, name, f"{seed} {name}" if seed else None)
        for name in (everyone if names is None else names)
    }
    tasks = [asyncio.create_task(service.serve(stop)) for service in services.values()]
    try:
        yield services
    finally:
        stop.set()
        await asyncio.gather(*tasks)
        for service in services.values():
            service.close()


async def ask(
    made: LocalDeployment, question: Question, seconds: float = 30.0, seed: str | None = None
) -> dict[str, Any]:
    """One study from its proposal to its result."""
    service = CoordinatorService(made.coordinator(), entropy=Fixed(seed) if seed else None)
    try:
        plan = service.propose(question, seconds)
        return await service.carry(plan.study.run)
    finally:
        service.close()


async def link(made: LocalDeployment, name: str) -> Link:
    """A connection of a party, for tests that speak to the broker themselves."""
    config = read_config(made.folder / f"{name}.toml")
    return await Link.connect(config.broker, name, 5)
