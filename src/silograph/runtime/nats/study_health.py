"""Where a coordinator's studies are: for a screen while one is carried, and as metrics.

A coordinator is as many processes as it carries studies. One of them shows the metrics of all: the
studies as the store has them, and of its own where every silo is. When it ends, another takes over.
Whatever goes wrong here goes into the log: no study fails for its metrics.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from silograph.errors import SilographError
from silograph.methods.study import read_proposal
from silograph.runtime.metrics import Metrics, MetricsBoard
from silograph.runtime.nats.health import Health
from silograph.runtime.nats.link import Link
from silograph.runtime.party import Party, locked

__all__ = ["SiloProgress", "StudyHealth", "StudyProgress"]

_SHOW_SECONDS = 2.0


@dataclass
class SiloProgress:
    """What the coordinator has seen of a silo."""

    name: str
    phase: str = "asked"
    messages: int = 0
    bytes: int = 0


@dataclass
class StudyProgress:
    """Where a run is, for a screen."""

    run: str
    phase: str
    silos: list[SiloProgress]
    done: int = 0
    total: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def bytes(self) -> int:
        """What came in from all silos."""
        return sum(silo.bytes for silo in self.silos)

    @property
    def seconds(self) -> float:
        """Since this process carries it."""
        return time.monotonic() - self.began


class StudyHealth:
    """How a coordinator and its studies are, shown while it carries one."""

    def __init__(self, party: Party, progress: StudyProgress) -> None:
        self._party = party
        self._started = party.clock()
        self.progress = progress
        #: The connection, as soon as there is one.
        self.link: Link | None = None

    def metrics(self) -> Metrics:
        """The numbers of a party, and those of the studies that are open or carried here."""
        metrics = self._health.metrics()
        store, carried = self._party.store, self.progress
        for row in store.runs():
            if not row.open and row.run != carried.run:
                continue
            metrics.set("silograph_study_state", 1, run=row.run, state=row.state)
            sent = sum(size for _, _, size in store.left(row.run))
            metrics.count("silograph_study_bytes_total", sent, run=row.run, direction="out")
            if row.open:
                study = read_proposal(row.proposal)
                if study is None:
                    continue
                left = study.deadline - self._party.clock()
                metrics.set("silograph_study_left_seconds", round(max(left, 0.0), 3), run=row.run)
        run, share = carried.run, carried.done / carried.total if carried.total else 0.0
        metrics.set("silograph_run_progress_ratio", share, phase=carried.phase)
        metrics.set("silograph_study_seconds", round(carried.seconds, 3), run=run)
        metrics.count("silograph_study_bytes_total", carried.bytes, run=run, direction="in")
        for silo in carried.silos:
            metrics.set("silograph_study_silo_phase", 1, run=run, silo=silo.name, phase=silo.phase)
        return metrics

    @property
    def _health(self) -> Health:
        return Health(self._party, self.link, self._started)

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Show all of this while the block lasts, and once more at its end."""
        ended = asyncio.Event()
        showing = asyncio.create_task(self._show(ended))
        try:
            yield
        finally:
            ended.set()
            await showing

    async def _show(self, ended: asyncio.Event) -> None:
        config, told = self._party.config, False
        while True:
            last = ended.is_set()
            try:
                with (
                    locked(config.state / "metrics.lock", "another process shows the metrics"),
                    MetricsBoard(config.metrics.file, config.metrics.port) as board,
                ):
                    await self._show_on(board, ended)
                    return
            except SilographError as error:
                if not told:
                    self._party.journal.event("metrics.unshown", level="warning", error=error)
                told = True
            if last:
                return
            await _wait(ended)

    async def _show_on(self, board: MetricsBoard, ended: asyncio.Event) -> None:
        last = False
        while not last:
            last = ended.is_set()
            await asyncio.to_thread(lambda: board.show(self.metrics(), *self._health.verdict))
            if not last:
                await _wait(ended)


async def _wait(ended: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_SHOW_SECONDS):
            await ended.wait()
