"""The driver of a study whose parties are all in this process.

It uses the same sessions as a deployment. Every party has its own identity and draws from its own
secret, so equal seeds give exactly the bytes that a deployment would send.
"""

import sys
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from silograph.graph.partitioned import PartedSilo
from silograph.graph.silo import Silo
from silograph.messages.entropy import Entropy, RunEntropy
from silograph.messages.envelope import EVERYONE, Outgoing, peek
from silograph.messages.identity import COORDINATOR, Identity, Member, Roster
from silograph.messages.machine import CoordinatorSession, Session, SiloSession
from silograph.methods.method import SettledStudy

__all__ = ["Advance", "Parties", "Record", "Traffic", "drive", "drive_study", "progress"]


# --- A progress bar with rate and remaining time; silent without a terminal -----------------------


class Advance(Protocol):
    """Reports that some pairs are done."""

    def __call__(self, pairs: int, /) -> None:
        """Count ``pairs`` more pairs as done."""


@contextmanager
def progress(
    what: str, total: int, *, unit: str = "pairs", shown: bool | None = None
) -> Iterator[Advance]:
    """Show how many pairs, or other units, are done; by default only on a terminal."""
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda _pairs: None
        return
    from rich.console import Console  # noqa: PLC0415 - only needed if a bar is shown
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, rate="")

        def advance(done: int, /) -> None:
            speed = bar.tasks[0].speed
            size, prefix = (1e6, "M ") if speed and speed >= 1e5 else (1, "")
            rate = f"{speed / size:,.{int(size > 1)}f} {prefix}{unit}/s" if speed else ""
            bar.update(task, advance=done, rate=rate)

        yield advance


# --- Parties and their messages -------------------------------------------------------------------

T = TypeVar("T")

#: How many messages are made while another one is delivered.
_AHEAD = 2
#: The size of a wave of messages that is worth several threads, in bytes.
_WORTH_THREADS = 1 << 16
_LONGEST_NAME = 200
#: The coordinator's name in runs within one process.
COORDINATOR_NAME = "coordinator"

#: Called with every message: (sender, receiver, bytes). Tests record transcripts with it.
Record = Callable[[int, int, bytes], None]


@dataclass(frozen=True)
class Parties:
    """All parties: the roster, and the identity and entropy of each."""

    roster: Roster
    coordinator: tuple[Identity, Entropy]
    silos: tuple[tuple[Identity, Entropy], ...]
    helpers: tuple[tuple[Identity, Entropy], ...] = ()

    @classmethod
    def fresh(
        cls, silos: Sequence[Silo | PartedSilo], entropy: Entropy, helpers: int = 0
    ) -> "Parties":
        """Create a coordinator, silos and helpers with new identities, all from one source."""
        coordinator = Identity(entropy.bytes(32))
        identities = [Identity(entropy.bytes(32)) for _ in silos]
        members = tuple(
            Member(name, identity.public)
            for name, identity in zip(_names(silos), identities, strict=True)
        )
        added = [Identity(entropy.bytes(32)) for _ in range(helpers)]
        taken = {member.name for member in members}
        names = (_free(f"helper {number}", taken) for number in range(1, helpers + 1))
        without = tuple(Member(name, one.public) for name, one in zip(names, added, strict=True))
        roster = Roster(Member(COORDINATOR_NAME, coordinator.public), members, without)
        return cls(
            roster,
            (coordinator, entropy),
            tuple((one, entropy) for one in identities),
            tuple((one, entropy) for one in added),
        )


def _free(name: str, taken: Container[str]) -> str:
    """The name, with a mark for as long as it is taken."""
    while name in taken:
        name += "'"
    return name


def _names(silos: Sequence[Silo | PartedSilo]) -> list[str]:
    """The silos' own names if a roster accepts them; numbers otherwise."""
    given = [silo.name for silo in silos]
    names: list[str] = []
    for place, name in enumerate(given, 1):
        plain = name.isprintable() and name.strip() and len(name) <= _LONGEST_NAME
        plain = plain and name != COORDINATOR_NAME
        names.append(name if plain else _free(f"silo {place}", given))
    return names


class Traffic:
    """Counts the bytes of a run: pass it to the run as its record, and query it afterwards."""

    def __init__(self) -> None:
        self._bytes: Counter[tuple[int, str, str]] = Counter()

    def __call__(self, sender: int, receiver: int, raw: bytes) -> None:
        """Count one message, once per delivery."""
        name = peek(raw).round
        if sender != COORDINATOR:
            self._bytes[sender, "up", name] += len(raw)
        if receiver != COORDINATOR:
            self._bytes[receiver, "down", name] += len(raw)

    def of(self, place: int) -> dict[str, tuple[int, int]]:
        """The bytes that a silo or a helper sent and received, by round."""
        names = dict.fromkeys(name for who, _, name in self._bytes if who == place)
        counted = self._bytes
        return {name: (counted[place, "up", name], counted[place, "down", name]) for name in names}


def drive_study(
    plan: SettledStudy,
    parties: Parties,
    silos: Sequence[Silo],
    spend: Callable[[], None],
    *,
    record: Record | None = None,
    shown: bool | None = None,
) -> Any:
    """Drive the sessions of a study; return the coordinator's result."""
    identity, entropy = parties.coordinator
    coordinator = plan.coordinator(parties.roster, identity, RunEntropy(entropy.bytes(32)))
    roster = parties.roster
    sessions = [
        plan.silo(roster, place, identity, RunEntropy(entropy.bytes(32)), silo)
        for place, ((identity, entropy), silo) in enumerate(zip(parties.silos, silos, strict=True))
    ]
    sessions += [
        plan.helper(roster, place, identity, RunEntropy(entropy.bytes(32)))
        for place, (identity, entropy) in enumerate(parties.helpers, len(sessions))
    ]
    return drive(coordinator, sessions, spend, plan.what, record=record, shown=shown)


def drive(
    coordinator: CoordinatorSession[T],
    silos: Sequence[SiloSession],
    spend: Callable[[], None],
    what: str,
    *,
    record: Record | None = None,
    shown: bool | None = None,
) -> T:
    """Carry all messages between the sessions of one run until none are left; return the result.

    ``silos`` are the sessions of all silos, then of all helpers.

    ``spend`` is called when all parties have agreed, before anything that depends on edges leaves a
    silo. ``shown`` says whether to show a progress bar; None means only on a terminal.
    """
    before, total = coordinator.progress
    with ThreadPoolExecutor(_AHEAD) as pool:
        post = _Post(coordinator, silos, record, pool)
        post.deliver(enumerate(silo.start() for silo in silos))
        spend()
        with progress(what, total, shown=shown) as advance:

            def moved() -> None:
                nonlocal before
                (done, _), last = coordinator.progress, before
                if done > last:
                    before = done
                    advance(done - last)

            post.deliver(enumerate([silo.authorise() for silo in silos]), moved)
            for sender, made in _made(coordinator, silos, pool):
                post.deliver([(sender, made)], moved)
    return coordinator.result()


def _made(
    coordinator: CoordinatorSession[object], silos: Sequence[SiloSession], pool: ThreadPoolExecutor
) -> Iterator[tuple[int, list[Outgoing]]]:
    """The messages that sessions make by themselves: silos take turns, then the coordinator.

    If a session allows it, messages are made ahead, and delivered in order. Two messages that are
    made at the same time belong to different silos, which share no state. So the transcript is the
    same as if they were made one after the other.
    """
    turns = deque(range(len(silos)))
    ahead: deque[tuple[int, Future[list[Outgoing]]]] = deque()
    while True:
        under_way = {place for place, _ in ahead}
        for _ in range(len(turns)):
            place = turns[0]
            busy = len(ahead) == _AHEAD or place in under_way
            if busy or (ahead and not silos[place].ahead):
                break
            turns.rotate(-1)
            if silos[place].room:
                ahead.append((place, pool.submit(silos[place].make)))
                under_way.add(place)
        if ahead:
            place, future = ahead.popleft()
            yield place, future.result()
        elif coordinator.room:
            yield COORDINATOR, coordinator.make()
        else:
            return


class _Post:
    """Carries messages between the sessions until none is left."""

    def __init__(
        self,
        coordinator: Session,
        silos: Sequence[Session],
        record: Record | None,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._coordinator = coordinator
        self._silos = silos
        self._record = record or (lambda _sender, _receiver, _raw: None)
        self._pool = pool

    def deliver(
        self,
        outgoing: Iterable[tuple[int, list[Outgoing]]],
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        """Deliver messages, then all that follow from them, in order; call ``moved`` in between."""
        waiting = [(sender, message) for sender, sent in outgoing for message in sent]
        everyone = range(len(self._silos))
        while waiting:
            wave = []
            for sender, message in waiting:
                for place in everyone if message.to == EVERYONE else (message.to,):
                    self._record(sender, place, message.raw)
                    wave.append((place, message.raw))
            waiting = [(place, answer) for place, sent in self._received(wave) for answer in sent]
            moved()

    def _received(self, wave: list[tuple[int, bytes]]) -> list[tuple[int, list[Outgoing]]]:
        """What every message of a wave is answered with, in the order of the wave.

        Each party takes its messages in order. Parties share no state, so several may work at
        once, and everything is as if they had worked one after the other.
        """
        answers: list[list[Outgoing]] = [[] for _ in wave]

        def take(place: int) -> None:
            session = self._coordinator if place == COORDINATOR else self._silos[place]
            for number, (receiver, raw) in enumerate(wave):
                if receiver == place:
                    answers[number] = session.receive(raw)

        places = list(dict.fromkeys(place for place, _ in wave))
        if len(places) > 1 and sum(len(raw) for _, raw in wave) >= _WORTH_THREADS:
            list(self._pool.map(take, places))
        else:
            for place in places:
                take(place)
        return [(place, sent) for (place, _), sent in zip(wave, answers, strict=True)]
