"""Removes the streams of runs that are over.

A party that restarts reads the streams of a run again from their beginning. So a run's streams stay
until every party has said that the run has ended for it, or until the deadline, when it has ended
for everyone. The coordinator makes all streams of its runs before it proposes them, and removes
them. If it is not there to do so, every silo and helper removes its own stream some seconds after
the deadline, and all streams of the run after an hour. (A party whose clock is wrong must not
remove what others still need.) A party also removes its own streams of notices that are gone: what
it made to answer a ping, and could not remove because it stopped.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping

from silograph.errors import ProtocolError, TransportError
from silograph.methods.study import Study, read_proposal
from silograph.nats.carrier import Seat
from silograph.nats.link import Link, stream_name
from silograph.party.control import ABORT, END, NOTICE, REFUSE, Code, Control, Notice
from silograph.party.opened import Party
from silograph.party.store import Run

__all__ = ["clear_run", "keep_swept", "past_use", "sweep"]

#: For how many seconds after its end a coordinator waits until all others have ended a run, too.
#: Whoever is late is left to a later sweep.
_CONFIRM_SECONDS = 3.0
_LOOK_SECONDS = 0.1
#: For how many seconds after a deadline a party's own stream stays, and those of others.
_OWN_GRACE, _LONG_GRACE = 20.0, 3600.0
#: How often a party sweeps, in seconds.
_SWEEP_SECONDS = 30.0

SeatOf = Callable[[Study], Seat]


async def clear_run(link: Link, seat: Seat, seconds: float = _CONFIRM_SECONDS) -> bool:
    """Remove all streams of a run when all parties have ended it; False if some have not yet.

    For the coordinator, when it has ended the run itself.
    """
    waiting, limit = set(seat.roster.places), time.monotonic() + seconds
    while True:
        for place in list(waiting):
            if await _has_ended(link, seat, place):
                waiting.remove(place)
        if not waiting or time.monotonic() > limit:
            break
        await asyncio.sleep(_LOOK_SECONDS)
    if waiting:
        return False
    await link.drop_streams(_streams_of(seat))
    return True


def _streams_of(seat: Seat) -> list[str]:
    """The streams of a run, the coordinator's last: without it the others' are known to be gone."""
    names = [seat.roster.member(place).name for place in seat.roster.places]
    return [stream_name(seat.study.run, name) for name in (*names, seat.study.coordinator)]


async def _has_ended(link: Link, seat: Seat, place: int) -> bool:
    """Whether a party says that a run has ended for it, or that it could not even store it."""
    name = seat.roster.member(place).name
    for kind in (END, REFUSE, ABORT):
        raw = await link.said(seat.study.id, name, kind)
        if raw is None:
            continue
        with contextlib.suppress(ProtocolError):  # what anyone could have sent proves nothing
            word = Control.open(seat.binding, raw, receiver=seat.place)
            if word is not None and word.sender == place and word.round == kind:
                return True
    raw = await link.said(seat.study.id, name, NOTICE)
    if raw is not None:
        with contextlib.suppress(ProtocolError):
            notice = Notice.open(raw, seat.roster.member(place).public, name)
            return notice.about == seat.study.id and notice.code != Code.NONE
    return False


def past_use(study: Study, now: float, *, own: bool) -> bool:
    """Whether a stream of a run is of no more use to anyone, its sender's own or another's."""
    return now > study.deadline + (_OWN_GRACE if own else _LONG_GRACE)


async def sweep(link: Link, party: Party, seat_of: SeatOf | None = None) -> list[str]:
    """Remove what is left of runs that are over; returns the names of the streams.

    ``seat_of`` gives the coordinator's seat in a run of its own; other parties have none.
    """
    found: dict[str, list[str]] = {}
    for name in await link.stream_names():
        _, _, rest = name.partition("-")
        of, _, sender = rest.partition("-")
        found.setdefault(of, []).append(sender)
    removed: list[str] = []
    for run in _known(party, found):
        study = read_proposal(run.proposal)
        if study is None:
            continue
        now, mine = party.clock(), seat_of is not None
        names = [
            stream_name(run.run, sender)
            for sender in found[run.run]
            if past_use(study, now, own=mine or sender == party.name)
        ]
        await link.drop_streams(names)
        if not names and seat_of is not None and not run.open:
            with contextlib.suppress(ProtocolError, LookupError):  # of a roster that has changed
                if await clear_run(link, seat_of(study), 0.0):
                    names = [stream_name(run.run, sender) for sender in found[run.run]]
        removed += names
    removed += await _drop_outlived(link, party, found)
    if removed:
        party.log.event("streams.removed", streams=len(removed))
    return removed


async def _drop_outlived(link: Link, party: Party, found: Mapping[str, list[str]]) -> list[str]:
    """Remove this party's streams of notices, whose runs it does not know, when they are empty."""
    names = [
        name
        for run, senders in found.items()
        if party.name in senders and party.store.run(run) is None
        and await link.outlived(name := stream_name(run, party.name))
    ]  # fmt: skip
    await link.drop_streams(names)
    return names


def _known(party: Party, runs: Iterable[str]) -> list[Run]:
    return [run for name in runs if (run := party.store.run(name)) is not None]


async def keep_swept(link: Link, party: Party, seat_of: SeatOf | None = None) -> None:
    """Sweep now, and again and again."""
    while True:
        with contextlib.suppress(TransportError):  # the next sweep will do
            await sweep(link, party, seat_of)
        await asyncio.sleep(_SWEEP_SECONDS)
