"""Checks before anything is spent: of one party by its operator, of all by the coordinator.

``silograph silo check`` does everything that a study will need, on the real files and the real
broker: it reads the data, compares the ledger with the state store, creates a stream under the
party's own name, publishes in it, reads it back and removes it. One check that fails stops only
those that need it. Nothing is created or changed on this machine.

``silograph study ping`` asks the services of all parties of the roster. What a party answers is a
signed notice: its version, its clock, the digests of its roster and node list, and the names of
checks that failed. A service answers without reading its data, so neither the notice nor the time
that it takes depends on edges. (That a disk is full is told. Copies of edges may lie on it, but so
does everything else.)
"""

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from silograph.dp.loss import shown_loss
from silograph.errors import (
    ConfigError,
    LedgerError,
    ProtocolError,
    SilographError,
    TransportError,
)
from silograph.graph.bits import memory_of
from silograph.graph.fold import MOST_BUCKETS
from silograph.graph.universe import NodeUniverse
from silograph.ledger.book import Ledger
from silograph.messages.entropy import Entropy, OsEntropy
from silograph.messages.identity import Identity, Member
from silograph.methods.cost import memory_here, size_text
from silograph.methods.sealed.rounds import MOST_MATRIX_NODES, member_cost
from silograph.nats.link import STUDIES_STREAM, Link, stream_name
from silograph.party import accounts, connection
from silograph.party.config import HelperConfig, SiloConfig, load_silo
from silograph.party.control import Code, Notice
from silograph.party.keys import load_identity
from silograph.party.opened import Clock, Party
from silograph.party.policy import Policy
from silograph.party.roster import RosterFile, read_roster
from silograph.party.store import Store

__all__ = [
    "Answer",
    "Check",
    "Preflight",
    "check_lineage",
    "failing",
    "notice_of",
    "ping",
]

#: How far a clock may be from the broker's, in seconds.
CLOCK_SECONDS = 10.0
#: Clocks that differ by less agree, as far as a request can tell.
_SAME_SECONDS = 0.5
#: The least free space of a state folder, in bytes.
_LEAST_DISK = 256 << 20
#: The memory of a service that does nothing yet, in bytes.
_PROCESS = 120_000_000
_CONNECT_SECONDS, _ANSWER_SECONDS = 5.0, 10.0
#: How often a ping is sent again to those who have not answered, in seconds.
_AGAIN_SECONDS = 2.0


# --- What a ledger and a state store must agree on ------------------------------------------------


def check_lineage(config: SiloConfig, ledger: Ledger) -> None:
    """In a ledger with limits, an unknown lineage is refused."""
    lineage, limit = config.data.lineage, config.ledger
    if ledger.is_new(lineage):
        raise ConfigError(
            f"{config.file}: the ledger has limits, and none for lineage {lineage!r}: a "
            "slip would start a budget of its own. If the dataset is new, say so first: "
            f"silograph ledger limit {ledger.path} {lineage} {limit.epsilon}"
        )


def check_books(ledger: Ledger, store: Store) -> None:
    """Refuse a ledger that does not account for what the store knows, or that is frozen."""
    accounts.check_ledger(ledger, store)
    freeze = ledger.frozen()
    if freeze is not None:
        raise LedgerError(
            f"{ledger.path}: the ledger is {freeze}. Every study is refused until 'silograph "
            "ledger thaw'"
        )


# --- Space ----------------------------------------------------------------------------------------


def check_disk(folder: Path) -> str:
    """Refuse a folder in which nothing can be written, or too little."""
    place = folder
    while not place.exists():  # it will be made in the first folder that is there
        place = place.parent
    if not os.access(place, os.W_OK | os.X_OK):
        raise ConfigError(f"{place}: cannot be written to; give the service's user the right to")
    free = shutil.disk_usage(place).free
    if free < _LEAST_DISK:
        raise ConfigError(
            f"{place}: {size_text(free)} free; make room for at least {size_text(_LEAST_DISK)}"
        )
    return f"{size_text(free)} free for {folder}"


def memory_needed(policy: Policy, nodes: int | None, silos: int) -> int:
    """The memory of a party in the largest study that its policy allows, in bytes; rough."""
    needed = 0
    pairs = policy.largest if nodes is None else nodes * (nodes - 1) // 2
    if pairs <= policy.largest and nodes is not None:
        needed = memory_of(nodes)
    if policy.fold:
        needed = max(needed, min(policy.largest, MOST_BUCKETS) // 8)
    if "sealed" in policy.methods and policy.committee:
        rows = min(int((2 * policy.largest) ** 0.5), MOST_MATRIX_NODES)
        rows = rows if nodes is None or policy.fold else min(rows, nodes)
        needed = max(needed, member_cost(rows, silos, ["triangles"]).memory)
    return needed + needed // 4 + _PROCESS


def memory_left() -> int | None:
    """The memory that this machine or container can still give, in bytes; None if unknown."""
    found = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvail")]
    with contextlib.suppress(OSError, ValueError):
        most, used = (
            int(Path(f"/sys/fs/cgroup/memory.{name}").read_text()) for name in ("max", "current")
        )
        found.append(max(most - used, 0))
    return min(found, default=None)


def check_memory(policy: Policy, nodes: int | None, silos: int, left: int | None) -> str:
    """Refuse a policy whose largest study does not fit into ``left`` bytes of memory."""
    needed = memory_needed(policy, nodes, silos)
    if left is None:
        return f"the largest study needs about {size_text(needed)}"
    if needed > left:
        raise ConfigError(
            f"the largest study that the policy allows needs about {size_text(needed)}, and "
            f"{size_text(left)} are left: lower policy.largest, now {policy.largest:,}"
        )
    return f"the largest study needs about {size_text(needed)} of {size_text(left)}"


# --- One party, by its operator -------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """One check and how it ended. ``said`` is what was found, or what is wrong and what helps."""

    name: str
    state: Literal["ok", "failed", "skipped"]
    said: str


class Preflight:
    """The checks of a silo or a helper, in order."""

    def __init__(
        self,
        config: SiloConfig | HelperConfig,
        clock: Clock = time.time,
        *,
        data: bool = True,
    ) -> None:
        """Prepare the checks; without ``data`` the edges are not read."""
        self._config = config
        self._clock = clock
        self._with_data = data
        self._identity: Identity | None = None
        self._file: RosterFile | None = None
        self._universe: NodeUniverse | None = None
        self.checks: list[Check] = []
        #: What was found, for programs.
        self.facts: dict[str, object] = {config.role: config.name}

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return all(check.state == "ok" for check in self.checks)

    async def run(self) -> None:
        """Do all checks."""
        self._try("configuration", lambda: f"{self._config.file}, of a {self._config.role}")
        await asyncio.to_thread(self._files)
        await self._broker()

    def _try(self, name: str, work: Callable[[], str]) -> bool:
        try:
            self.checks.append(Check(name, "ok", work()))
        except (SilographError, OSError, MemoryError) as error:
            self.checks.append(Check(name, "failed", str(error) or type(error).__name__))
        return self.checks[-1].state == "ok"

    def _skip(self, name: str, why: str) -> None:
        self.checks.append(Check(name, "skipped", f"not checked, since {why} failed"))

    # -- files -------------------------------------------------------------------------------

    def _files(self) -> None:
        config = self._config
        self._try("identity", self._check_identity)
        if self._identity is None:
            self._skip("roster", "identity")
        else:
            self._try("roster", self._check_roster)
        known = self._try("nodes", self._check_nodes)
        self._try("policy", self._check_policy)
        if isinstance(config, SiloConfig):
            if not known:
                self._skip("data", "nodes")
            elif self._with_data:
                self._try("data", lambda: self._check_data(config))
            self._try("ledger", lambda: self._check_ledger(config))
        self._try("disk", self._check_disk)
        silos = (
            len(self._file.roster.silos) if self._file is not None else config.policy.least_silos
        )
        nodes = None if self._universe is None else self._universe.size
        self._try("memory", lambda: check_memory(config.policy, nodes, silos, memory_left()))

    def _check_identity(self) -> str:
        identity = load_identity(self._config.identity, self._config.passphrase())
        self._identity = identity
        self.facts["key"] = identity.public.hex()
        return f"{self._config.name}, key {identity.public.hex()[:16]}…"

    def _check_roster(self) -> str:
        config = self._config
        assert self._identity is not None  # noqa: S101 - checked by the caller
        file = read_roster(config.roster)
        Party.check_place(config, file, self._identity)
        if config.store.exists():
            with contextlib.closing(Store(config.store, config.name)) as store:
                known = store.roster()
            if known is not None:
                file.check_replaces(*known)
        self._file, roster = file, file.roster
        self.facts |= {
            "silos": len(roster.silos),
            "helpers": len(roster.helpers),
            "coordinator": roster.coordinator.name,
        }
        return f"{len(roster.silos)} silos, coordinator {roster.coordinator.name}"

    def _check_nodes(self) -> str:
        universe = self._config.nodes()
        if universe is None:
            return "none: this helper does not check which node list a study is about"
        self._universe = universe
        self.facts |= {"nodes": universe.size, "digest": universe.digest}
        return f"{universe.size_text}, digest {universe.digest[:16]}…"

    def _check_policy(self) -> str:
        policy = self._config.policy
        committee = [member.name for member in policy.committee]
        self.facts |= {
            "methods": list(policy.methods),
            "epsilon": policy.epsilon,
            "accept": policy.accept,
            "committee": committee,
        }
        if self._file is not None:
            self._check_names(policy, self._file)
        most = shown_loss(policy.epsilon, left=True)
        said = f"{', '.join(policy.methods)}; ε ≤ {most} per study; {policy.accept}"
        return said + (f"; committee {', '.join(committee)}" if committee else "")

    @staticmethod
    def _check_names(policy: Policy, file: RosterFile) -> None:
        """Refuse a policy about parties that are not in the roster: it would refuse everything."""
        if file.roster.coordinator.name not in policy.coordinators:
            raise ConfigError(
                f"policy.coordinators does not name {file.roster.coordinator.name}, the "
                "coordinator of the roster: every study would be refused"
            )
        if len(file.roster.silos) < policy.least_silos:
            raise ConfigError(
                f"policy.least_silos is {policy.least_silos}, and the roster has "
                f"{len(file.roster.silos)} silos: every study would be refused"
            )
        keys = {member.name: member.public for member in file.roster.members}
        for member in policy.committee:
            if keys.get(member.name) != member.public:
                raise ConfigError(
                    f"policy.committee: {member.name} is not in the roster with this key: every "
                    "study with a committee would be refused"
                )

    def _check_data(self, config: SiloConfig) -> str:
        assert self._universe is not None  # noqa: S101 - a silo has one
        data = load_silo(config, self._universe)
        self.facts |= {
            "edges": len(data.silo), "left_out": data.outside, "other_times": data.other_times,
        }  # fmt: skip
        return f"{len(data.silo):,} edges (seen by nobody else){data.left_out}"

    def _check_ledger(self, config: SiloConfig) -> str:
        """The whole chain of the ledger, and the state store's witness of it."""
        ledger, lineage = config.ledger, config.data.lineage
        limit = shown_loss(ledger.epsilon, left=True)
        served = config.store.exists()
        self.facts |= {
            "lineage": lineage,
            "limit": {"epsilon": ledger.epsilon, "collusion": ledger.collusion},
        }
        if not ledger.path.exists():
            if served:
                raise accounts.no_ledger(ledger.path)
            return f"none yet: the first start makes {ledger.path} with ε = {limit} for {lineage!r}"
        with Ledger(ledger.path, create=False) as book:
            book.verify()
            check_lineage(config, book)
            if served:
                with contextlib.closing(Store(config.store, config.name)) as store:
                    check_books(book, store)
            spent = book.spent(lineage, ledger.collusion)
        self.facts["spent"] = spent.to_dict()
        return f"{spent} of ε = {limit} spent on {lineage!r}"

    def _check_disk(self) -> str:
        config = self._config
        folders = [config.state]
        if isinstance(config, SiloConfig):
            folders.append(config.ledger.path.parent)
        return "; ".join(check_disk(folder) for folder in dict.fromkeys(folders))

    # -- the broker --------------------------------------------------------------------------

    async def _broker(self) -> None:
        config, began = self._config, time.perf_counter()
        where = ", ".join(config.broker.urls)
        try:
            link = await Link.connect(config.broker, config.name, _CONNECT_SECONDS)
        except SilographError as error:
            self.facts["broker"] = {"reached": False, "said": str(error)}
            self.checks.append(Check("broker", "failed", str(error)))
            for name in ("subjects", "clock"):
                self._skip(name, "broker")
            return
        how = "TLS 1.3" if config.broker.tls else "without TLS"
        said = f"{where}: reached in {time.perf_counter() - began:.2f} s, {how}"
        self.facts["broker"] = {"reached": True, "said": said}
        self.checks.append(Check("broker", "ok", said))
        try:
            await self._speak(link)
        finally:
            await link.close()

    async def _speak(self, link: Link) -> None:
        """Publish under the party's own name, and read it back: what every run begins with."""
        name, run = self._config.name, f"check{OsEntropy().bytes(8).hex()}"
        stream, ahead = stream_name(run, name), None
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await link.notify(run, b"check")
                reader = link.reader_of(run, name, name, everyone=True)
                try:
                    if await reader.next() != b"check":
                        raise TransportError("the broker has given back another message")
                finally:
                    await reader.close()
                studies = link.reader(STUDIES_STREAM)
                await studies.ready()
                await studies.close()
                ahead = await link.ahead(self._clock, stream)
        except (TimeoutError, SilographError) as error:
            why = str(error) or (
                f"no answer to JetStream's requests within {_ANSWER_SECONDS:.0f} s: the broker has "
                "no JetStream or no room, or users.conf is not that of the roster"
            )
            self.checks.append(Check("subjects", "failed", link.trouble or why))
            self._skip("clock", "subjects")
            return
        finally:
            await link.drop_streams([stream])
        said = f"published and read {connection.own_messages(name)}; {connection.STUDIES} is read"
        self.checks.append(Check("subjects", "ok", said))
        self._try("clock", lambda: _said_of_clock(ahead))
        self.facts["clock"] = ahead


def _said_of_clock(ahead: float | None) -> str:
    if ahead is None:
        raise TransportError("the broker does not tell its time")
    if abs(ahead) < _SAME_SECONDS:
        return "agrees with the broker's"
    side = "ahead of" if ahead > 0 else "behind"
    said = f"{abs(ahead):.1f} s {side} the broker's"
    if abs(ahead) > CLOCK_SECONDS:
        raise ConfigError(f"{said}: set the clock, for example by NTP, on both machines")
    return said


# --- All parties, by the coordinator --------------------------------------------------------------


def failing(
    config: SiloConfig | HelperConfig, party: Party, ledger: Ledger | None, ahead: float | None
) -> Iterator[str]:
    """The names of the checks that fail at a service that runs; none of them reads edges."""
    nodes = party.universe.size if party.has_universe else None
    silos, memory = len(party.roster.silos), memory_here()  # all of it: what is left shows edges

    def readable(path: Path) -> str:
        path.open("rb").close()
        return ""

    checks: dict[str, Callable[[], object]] = {
        "disk": lambda: check_disk(config.state),
        "memory": lambda: check_memory(config.policy, nodes, silos, memory),
        "clock": lambda: _said_of_clock(ahead),
    }
    if isinstance(config, SiloConfig) and ledger is not None:
        checks["data"] = lambda: readable(config.data.edges)
        checks["ledger"] = lambda: check_books(ledger, party.store)
    for name, work in checks.items():
        try:
            work()
        except (SilographError, OSError):
            yield name


def notice_of(
    party: Party, about: bytes, code: Code, ahead: float | None = None, failed: Sequence[str] = ()
) -> Notice:
    """What a party says about itself."""
    return Notice(
        about, party.name, code, round(party.clock(), 3), version("silograph"),
        party.roster.digest.hex(), party.universe.digest if party.has_universe else "",
        None if ahead is None else round(ahead, 3), tuple(failed),
    )  # fmt: skip


_NO_ANSWER = "no answer: its service does not run, or has another key of this coordinator"


@dataclass
class Answer:
    """What the coordinator knows of one party after a ping."""

    name: str
    role: str
    seconds: float | None = None
    notice: Notice | None = None
    #: What is wrong, in words; empty if nothing is.
    wrong: list[str] = field(default_factory=lambda: [_NO_ANSWER])

    @property
    def ok(self) -> bool:
        """Whether the party answered and nothing is wrong."""
        return not self.wrong


async def ping(
    party: Party, link: Link, entropy: Entropy, seconds: float, replicas: int = 1
) -> list[Answer]:
    """Ask all parties of the roster how they are, and wait for their answers.

    The first answer is about the coordinator itself: its clock. ``replicas`` is the number of
    servers that keep a copy of what is asked.
    """
    about, began = entropy.bytes(16), time.monotonic()
    ahead = await link.ahead(party.clock, await link.studies_stream(replicas))
    clock = [] if ahead is None or abs(ahead) <= CLOCK_SECONDS else ["its clock check failed"]
    own = notice_of(party, about, Code.NONE, ahead)
    raw = notice_of(party, about, Code.NONE).seal(party.identity)
    roles = {member.name: "silo" for member in party.roster.silos}
    roles |= {member.name: "helper" for member in party.roster.helpers}
    members = [*party.roster.silos, *party.roster.helpers]
    answers = [Answer(member.name, roles[member.name]) for member in members]

    async def hear(member: Member, answer: Answer) -> None:
        reader = link.reader_of(about.hex(), member.name, party.name, everyone=True)
        try:
            while answer.notice is None:
                with contextlib.suppress(ProtocolError):  # anyone could have sent it
                    said = Notice.open(await reader.next(), member.public, member.name)
                    if said.about == about:
                        answer.notice, answer.seconds = said, time.monotonic() - began
            answer.wrong = _wrong(party, answer.notice)
        finally:
            await reader.close()

    async def ask() -> None:
        while True:  # a service that is just starting reads only what comes after that
            await link.announce(raw, replicas)
            await asyncio.sleep(_AGAIN_SECONDS)

    asking = asyncio.ensure_future(ask())
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(*map(hear, members, answers))
    except TimeoutError:
        pass
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await link.drop_streams(stream_name(about.hex(), member.name) for member in members)
    return [Answer(party.name, "coordinator", 0.0, own, clock), *answers]


def _wrong(party: Party, said: Notice) -> list[str]:
    """What a party's answer shows to be wrong."""
    found = [f"its {name} check failed" for name in said.failed]
    if said.roster != party.roster.digest.hex():
        found.append("it has another roster")
    if said.universe and party.has_universe and said.universe != party.universe.digest:
        found.append("it has another node list")
    if said.version.split(".")[:2] != version("silograph").split(".")[:2]:
        found.append(f"it runs version {said.version}")
    return found
