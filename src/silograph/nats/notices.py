"""What a service says outside runs: answers to pings, and refusals of what it cannot even store.

A proposal for another roster, one that is over by this machine's clock, or one too many is not
stored. It is answered all the same, by a signed notice, so that nobody waits for this party without
knowing why. Old proposals, of which the broker keeps many, are left alone. Nothing here is needed
by a run; if too much of it is asked for at the same time, it is dropped.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from silograph.errors import ProtocolError
from silograph.ledger.book import Ledger
from silograph.methods.study import read_proposal
from silograph.nats.link import STUDIES_STREAM, Link
from silograph.nats.preflight import failing, notice_of
from silograph.party.config import HelperConfig, SiloConfig
from silograph.party.control import Code, Notice, code_of
from silograph.party.opened import Party

__all__ = ["Notices"]

#: A ping is answered if the broker got it at most so many seconds ago; notices stay there as long.
_SECONDS = 60.0
#: The most notices that are on their way at the same time.
_MOST = 32


class Notices:
    """The notices of one service. ``budget`` gives its ledger, or None if it has none."""

    def __init__(
        self,
        config: SiloConfig | HelperConfig,
        party: Party,
        budget: Callable[[], Ledger | None],
    ) -> None:
        self._config = config
        self._party = party
        self._budget = budget
        self._tasks: set[asyncio.Task[None]] = set()
        self._answered: deque[bytes] = deque(maxlen=_MOST)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """What is being said; to be cancelled when the service stops."""
        return list(self._tasks)

    def say(self, work: Coroutine[Any, Any, None]) -> None:
        """Say something that no run depends on."""
        if len(self._tasks) >= _MOST:
            work.close()
            return
        task = asyncio.create_task(self._said(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _said(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # the run, if there is one, does not depend on it
            self._party.log.event("notice.unsaid", level="warning", error=error)

    async def answer(self, link: Link, raw: bytes, when: float) -> None:
        """Tell the coordinator how this party is, if it has just asked."""
        party, hub = self._party, self._party.roster.coordinator
        asked = Notice.open(raw, hub.public, hub.name)
        now = await link.broker_time(STUDIES_STREAM)
        if now is None or now - when > _SECONDS or asked.about in self._answered:
            return
        self._answered.append(asked.about)
        ahead = await link.ahead(party.clock, STUDIES_STREAM)
        failed = await asyncio.to_thread(
            lambda: tuple(failing(self._config, party, self._budget(), ahead))
        )
        await self._send(link, notice_of(party, asked.about, Code.NONE, ahead, failed))

    async def refuse(self, link: Link, raw: bytes, when: float, error: Exception) -> None:
        """Refuse a proposal that could not be stored, if it is meant for this party.

        With another roster its signature cannot be checked: the answer shows nothing but the
        digest of our own roster. What came long ago and is over by the broker's clock, too, is left
        alone: nobody waits for it.
        """
        study, party = read_proposal(raw), self._party
        if study is None or study.coordinator != party.roster.coordinator.name:
            return
        if party.name not in (*study.silos, *(member.name for member in study.members)):
            return
        now = await link.broker_time(STUDIES_STREAM)
        if now is None or (study.deadline <= now and now - when > _SECONDS):
            return
        code = Code.ROSTER
        if study.roster == party.roster.digest.hex():
            if isinstance(error, ProtocolError):  # anybody could have sent it
                return
            code = code_of(error)
            if code == Code.DEADLINE and study.deadline > now:
                code = Code.CLOCK
        ahead = await link.ahead(party.clock, STUDIES_STREAM)
        await self._send(link, notice_of(party, study.id, code, ahead))

    async def _send(self, link: Link, notice: Notice) -> None:
        """Send a notice, and remove it from the broker when it has been read or is too old."""
        run = notice.about.hex()
        stream = await link.notify(run, notice.seal(self._party.identity))
        self._party.log.event("notice.sent", run=notice.about, code=notice.code.word)
        await asyncio.sleep(_SECONDS)
        if self._party.store.run(run) is None:  # it may have been proposed again, and accepted
            await link.drop_streams([stream])
