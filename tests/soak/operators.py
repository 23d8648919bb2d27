"""What people and machines do to a deployment, on the real commands: certificates, clocks, copies
of machines, old files and full disks.

In each case silos and coordinator are processes of the command line. A cause has to be named by
all who wait for it, and after the mend there is a right answer that every silo has paid for once.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from silograph.errors import AbortedError, SilographError
from silograph.ledger.book import Ledger
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.silo import SiloService
from silograph.nats.trial import end
from silograph.party import certificates
from silograph.party.keys import load_identity, new_identity
from silograph.party.roster import read_roster, write_roster
from tests.nats.cluster import lose_the_leader
from tests.nats.faults import METHODS, NAMED, is_right, setting
from tests.nats.world import ask, serving, silos, trial
from tests.soak.table import Found, Trial, WrongError
from tests.support.local_deployment import HUB, LocalDeployment, Terms
from tests.support.ports import free_port

__all__ = ["MAY_MOUNT", "can_mount", "every_trial"]

FIRST, SECOND, THIRD = "silo-1", "silo-2", "silo-3"
QUESTION = Question("edges", 30.0)
#: How long a step that is no fault may take on a loaded machine, in seconds.
PATIENCE = 60.0
_COMMAND = (sys.executable, "-m", "silograph")


def until(what: str, seconds: float, look: Callable[[], object]) -> float:
    """Wait until something is so; returns after how many seconds it was."""
    began = time.monotonic()
    while not look():
        if time.monotonic() > began + seconds:
            raise WrongError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.05)
    return time.monotonic() - began


def text_of(path: Path) -> str:
    """What is in a file; nothing if there is none."""
    return path.read_text() if path.exists() else ""


class Site:
    """Three silos as processes, a broker, and a coordinator whose commands are typed."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.made = trial(folder, Terms(epsilon=1000.0, study=100.0, collusion=0), **more)
        self.folder = self.made.folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._asked = 0

    def __enter__(self) -> Self:
        self.made.broker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        end([one for one in self._running.values() if one.poll() is None], signal.SIGKILL)
        self.made.broker.kill()

    # -- silos

    def start(self, *names: str, wait: bool = True) -> None:
        """Start the services of silos, and wait until they serve."""
        for name in names:
            (self.folder / f"{name}.out").unlink(missing_ok=True)
            self._running[name] = self.made.process(name)
        for name in names if wait else ():
            until(f"{name} serves", PATIENCE, lambda name=name: "serving" in self.said(name))

    def stop(self, name: str, how: signal.Signals = signal.SIGTERM) -> int:
        """End a service, or see that it has ended; its exit code."""
        process = self._running[name]
        if process.poll() is None:
            end([process], how)
        return int(process.returncode)

    def ended(self, name: str) -> int | None:
        """The exit code of a service that has ended by itself."""
        return self._running[name].poll()

    def said(self, name: str) -> str:
        """What a service has printed."""
        return text_of(self.folder / f"{name}.out")

    def log(self, name: str) -> str:
        """A party's log, whichever folder its state is in."""
        return "".join(map(text_of, self.folder.glob(f"{name}.state/log.jsonl")))

    # -- the coordinator

    def command(self, *words: object) -> str:
        """Type a command; what it prints. It is wrong if it fails."""
        done = self.attempt(*words)
        if done.returncode:
            raise WrongError(f"{' '.join(map(str, words[:2]))}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def attempt(self, *words: object) -> "subprocess.CompletedProcess[str]":
        """Type a command that may fail."""
        return subprocess.run(
            [*_COMMAND, *map(str, words)], capture_output=True, text=True, timeout=180, check=False
        )

    def _hub(self, *words: str) -> None:
        self._asked += 1
        out, err = (self.folder / f"{HUB}.{self._asked}.{kind}" for kind in ("out", "err"))
        with out.open("wb") as printed, err.open("wb") as noted:
            line = [*_COMMAND, "study", *words, "-c", str(self.folder / f"{HUB}.toml"), "--json"]
            self._running[HUB] = subprocess.Popen(line, stdout=printed, stderr=noted)

    def propose(self, minutes: float = 3.0) -> None:
        """Propose a study, and go on while it runs."""
        self._hub("propose", "edges", "--epsilon", "30", "--minutes", str(minutes))

    def watch(self) -> None:
        """Go on with the last study."""
        self._hub("watch", self.studies()[-1]["run"])

    def studies(self) -> list[dict[str, str]]:
        """All studies, as the coordinator lists them."""
        listed: list[dict[str, str]] = json.loads(
            self.command("study", "list", "-c", self.folder / f"{HUB}.toml", "--json")
        )
        return listed

    def noted(self) -> str:
        """What the coordinator's operator has read during the last command."""
        return text_of(self.folder / f"{HUB}.{self._asked}.err")

    def carried(self) -> bool:
        """Whether the last command has begun to carry its study."""
        return bool(list(self.folder.glob(f"{HUB}.state/*.progress")))

    def hub_ends(self, *codes: int) -> int:
        """Wait until the coordinator's command ends, with one of these exit codes."""
        until("the coordinator ends", 200, lambda: self.ended(HUB) is not None)
        code = self.ended(HUB)
        if code not in codes:
            raise WrongError(f"the coordinator ended with {code}: {self.noted()[-300:]}")
        return int(code or 0)

    def answered(self, paid: int | None = 1) -> tuple[str, ...]:
        """Wait for the answer; what is wrong with it, or with what the silos have paid."""
        self.hub_ends(0)
        result = json.loads(text_of(self.folder / f"{HUB}.{self._asked}.out"))
        wrong = is_right(result, QUESTION.query, silos(len(self.made.names)))
        return (*wrong, *(self.unpaid(paid) if paid is not None else ()))

    def paid(self, name: str) -> list[str]:
        """The runs that a silo has paid for, each as often as it has."""
        with Ledger(self.made.silo(name).ledger.path) as ledger:
            return [row.run for row in ledger.rows() if row.phase.startswith("study ")]

    def unpaid(self, times: int) -> list[str]:
        """Silos that have not paid so many times, for as many runs."""
        found = {name: self.paid(name) for name in self.made.names}
        return [
            f"{name} has paid {len(runs)} times instead of {times}"
            for name, runs in found.items()
            if len(runs) != times or len(set(runs)) != times
        ]

    def edit(self, name: str, old: str, new: str) -> None:
        """Change a party's configuration."""
        path = self.folder / f"{name}.toml"
        text = path.read_text()
        if old not in text:
            raise WrongError(f"{path.name} has no {old!r}")
        path.write_text(text.replace(old, new))


# --- A silo that cannot connect -------------------------------------------------------------------


def _certificate(site: Site, name: str, authority: Path, start: timedelta) -> None:
    """Let the first silo show a certificate of some authority, name and time."""
    place = site.folder / "other"
    place.mkdir(exist_ok=True)
    for part in ("ca.pem", "ca.key"):
        if authority != place:
            shutil.copy(authority / part, place / part)
    certificates.issue(place, name, datetime.now(UTC) + start, 10)
    for part in ("pem", "key"):
        site.edit(FIRST, f'"tls/{FIRST}.{part}"', f'"other/{name}.{part}"')


def _expired(site: Site) -> None:
    _certificate(site, FIRST, site.folder / "tls", timedelta(days=-30))


def _unknown_user(site: Site) -> None:
    _certificate(site, "east", site.folder / "tls", timedelta())


def _other_authority(site: Site) -> None:
    place = site.folder / "other"
    place.mkdir()
    certificates.new_authority(place, datetime.now(UTC))
    _certificate(site, FIRST, place, timedelta())


def _wrong_ca(site: Site) -> None:
    place = site.folder / "other"
    place.mkdir()
    certificates.new_authority(place, datetime.now(UTC))
    site.edit(FIRST, '"tls/ca.pem"', '"other/ca.pem"')


def _other_silo(site: Site) -> None:
    for part in ("pem", "key"):
        site.edit(FIRST, f'"tls/{FIRST}.{part}"', f'"tls/{SECOND}.{part}"')


def _host(name: str) -> Callable[[Site], None]:
    return lambda site: site.edit(FIRST, "//localhost:", f"//{name}:")


def _closed_port(site: Site) -> None:
    site.edit(FIRST, f":{site.made.port}", f":{free_port()}")


#: What is done to the first silo, and what it has to say.
CONNECTIONS: dict[str, tuple[Callable[[Site], None], str]] = {
    "expired certificate": (_expired, "expired on"),
    "wrong CA: of the silo's certificate": (_other_authority, "does not know the authority"),
    "wrong CA: of the broker's certificate": (_wrong_ca, "not signed by the authority in"),
    "wrong host name": (_host("127.1"), "certificate is not for 127.1"),
    "host name that nobody knows": (_host("broker.invalid"), "no address is known for"),
    "closed port": (_closed_port, "nothing listens on this port"),
    "unknown user": (_unknown_user, "the broker has no user CN=east"),
    "another silo's certificate": (_other_silo, f"must be the certificate of {FIRST}"),
}


def cannot_connect(fault: Callable[[Site], None], words: str) -> Callable[[Path], Found]:
    """One silo of three cannot connect while a study is asked; then it is mended."""

    def run(folder: Path) -> Found:
        with Site(folder) as site:
            site.start(SECOND, THIRD)
            right = site.made.silo_file(FIRST).read_text()
            fault(site)
            site.start(FIRST, wait=False)
            named = until(f"{FIRST} says '{words}'", NAMED, lambda: words in site.said(FIRST))
            site.propose()
            until("the study begins", PATIENCE, site.carried)
            missed = until(f"{HUB} names {FIRST}", NAMED, lambda: FIRST in site.noted())
            if "serving" in site.said(FIRST).replace("not serving yet", ""):
                raise WrongError(f"{FIRST} says that it serves")
            site.stop(FIRST)
            site.made.silo_file(FIRST).write_text(right)
            site.start(FIRST)
            return Found("answer", site.answered(), max(named, missed))

    return run


# --- A silo or a coordinator that is wrong about the time or the roster ---------------------------


def _later() -> float:
    return time.time() + 86_400


def _newer_roster(made: LocalDeployment) -> Path:
    """A roster in which the third silo has another key."""
    place = made.folder / "newer.toml"
    newer = read_roster(made.folder / "roster.toml").rotate(
        THIRD, new_identity(made.folder / "new.key").public, date(2031, 1, 1)
    )
    for name in (HUB, FIRST, SECOND, "new"):
        newer = newer.sign(load_identity(made.folder / f"{name}.key"))
    write_roster(place, newer)
    return place


def wrong_about(what: str) -> Callable[[Path], Found]:
    """Somebody's clock or roster is wrong: the study is refused by name, and costs nothing."""
    words = {"clock": "its clock is +86400 s off", "roster": "it has another roster"}

    async def study(made: LocalDeployment) -> float:
        began, odd = time.monotonic(), what != "hub clock"
        config = made.silo(SECOND)
        if what == "roster":
            config = replace(config, roster=_newer_roster(made))
        service = SiloService(config, clock=_later if what == "clock" else time.time)
        hub = CoordinatorService(made.coordinator(), clock=time.time if odd else _earlier)
        stop = asyncio.Event()
        serves = asyncio.create_task(service.serve(stop))
        try:
            async with serving(made, [FIRST, THIRD]):
                await hub.carry(hub.propose(QUESTION, 60.0).study.run)
        except AbortedError as error:
            said = words.get(what, "its deadline had passed when it came")
            if said not in str(error):
                raise WrongError(f"it says: {error}") from None
            return time.monotonic() - began
        finally:
            stop.set()
            await serves
            service.close()
            hub.close()
        raise WrongError("there was an answer")

    async def answer(made: LocalDeployment) -> dict[str, Any]:
        async with serving(made):
            return await ask(made, QUESTION, 60.0)

    def run(folder: Path) -> Found:
        site = Site(folder, tls=False)
        with site:
            named = asyncio.run(study(site.made))
            wrong = site.unpaid(0)
            if what != "roster":  # the store of the one that had the newer roster keeps it
                wrong += is_right(asyncio.run(answer(site.made)), "edges", silos(3))
                wrong += site.unpaid(1)
        return Found("refused", tuple(wrong), named)

    return run


def _earlier() -> float:
    return time.time() - 86_400


# --- Two machines with one identity, and machines that are put back -------------------------------


def _copy(source: Path, target: Path) -> None:
    """Put a file or a folder in the place of another."""
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
        return
    for suffix in ("-wal", "-shm"):
        Path(f"{target}{suffix}").unlink(missing_ok=True)
    shutil.copy(source, target)


def _thawed(site: Site, name: str, ledger: Path) -> None:
    """Stop a service whose ledger is frozen, decide, and start it again."""
    site.stop(name)
    if "FROZEN" not in site.command("ledger", "show", ledger):
        raise WrongError(f"the ledger of {name} is not frozen")
    check = site.attempt("silo", "check", "-c", site.made.silo_file(name))
    if check.returncode != 1 or "ledger thaw" not in check.stdout:
        raise WrongError(f"silo check does not name the frozen ledger: {check.stdout}")
    site.command("ledger", "thaw", ledger, "--reason", "one machine is off", "--lost", "trial=1")
    site.start(name)


def clone(folder: Path) -> Found:
    """A copy of a machine runs beside it: the later of the two finds the other's messages.

    The study ends by it, or has its answer before it does; one machine alone has paid.
    """
    with Site(folder) as site:
        SiloService(site.made.silo(FIRST)).close()  # makes its files
        shutil.copytree(site.folder, folder / "copy", ignore=shutil.ignore_patterns("broker"))
        site.start(*site.made.names)
        twin = _elsewhere(site, folder / "copy")
        twin.start(FIRST)
        site.propose()
        until("the study begins", PATIENCE, site.carried)

        def frozen() -> list[Site]:
            return [one for one in (site, twin) if "ledger.frozen" in one.log(FIRST)]

        named = until("a ledger is frozen", NAMED, frozen)
        wrong = site.answered(None) if site.hub_ends(0, 5) == 0 else ()
        twin.stop(FIRST)
        if len(site.paid(FIRST)) + len(twin.paid(FIRST)) > 1:
            wrong += ("both machines have paid",)
        for one in frozen():
            _thawed(one, FIRST, one.folder / f"{FIRST}.ledger")
        twin.stop(FIRST)
        before = {name: len(site.paid(name)) for name in site.made.names}
        site.propose()
        wrong += site.answered(None)
        after = {name: len(site.paid(name)) - 1 for name in site.made.names}
        return Found("frozen", (*wrong, *(["not paid once"] if after != before else [])), named)


def _elsewhere(site: Site, folder: Path) -> Site:
    """The same deployment's files in another folder, as on another machine."""
    twin = object.__new__(Site)
    twin.__dict__.update(site.__dict__)
    twin.made = object.__new__(LocalDeployment)
    twin.made.__dict__.update(site.made.__dict__)
    twin.made.folder = twin.folder = folder
    twin._running = {}
    return twin


def machine_put_back(folder: Path) -> Found:
    """Store and ledger of a machine are those of an hour ago, and it is in a study."""
    with Site(folder) as site:
        SiloService(site.made.silo(FIRST)).close()
        files = (f"{FIRST}.ledger", f"{FIRST}.state")
        for name in files:
            _copy(site.folder / name, folder / name)
        site.start(FIRST)
        site.propose()
        until("it has sent its key", PATIENCE, lambda: _sent(site, FIRST) > 1)
        site.stop(FIRST, signal.SIGKILL)
        for name in files:
            _copy(folder / name, site.folder / name)
        site.start(FIRST)
        named = until("its ledger is frozen", NAMED, lambda: "ledger.frozen" in site.log(FIRST))
        site.hub_ends(5)
        _thawed(site, FIRST, site.folder / f"{FIRST}.ledger")
        site.start(SECOND, THIRD)
        site.propose()
        return Found("frozen", site.answered(), named)


def _sent(site: Site, name: str) -> int:
    """How many messages of a silo the broker has confirmed, as its metrics say."""
    text = text_of(site.folder / f"{name}.state" / "metrics.prom")
    lines = [x for x in text.splitlines() if x.startswith('silograph_messages_total{direction="ou')]
    return int(float(lines[0].split()[1])) if lines else 0


def one_file_put_back(what: str) -> Callable[[Path], Found]:
    """The ledger or the store alone is that of before a study: the service does not start."""
    words = {"ledger": "old copy", "state": "older than the ledger"}[what]

    def run(folder: Path) -> Found:
        with Site(folder) as site:
            SiloService(site.made.silo(FIRST)).close()
            name = f"{FIRST}.{what}"
            _copy(site.folder / name, folder / "old")
            site.start(*site.made.names)
            site.propose()
            wrong = site.answered()
            site.stop(FIRST)
            _copy(site.folder / name, folder / "right")
            _copy(folder / "old", site.folder / name)
            site.start(FIRST, wait=False)
            named = until(f"it says '{words}'", NAMED, lambda: words in site.said(FIRST))
            until("it ends", NAMED, lambda: site.ended(FIRST) == 2)
            _copy(folder / "right", site.folder / name)
            site.start(FIRST)
            site.propose()
            return Found("refused", (*wrong, *site.answered(2)), named)

    return run


def restore(folder: Path) -> Found:
    """A ledger is lost, and its backup is older than the last study."""
    with Site(folder) as site:
        ledger, config = site.folder / f"{FIRST}.ledger", site.made.silo_file(FIRST)
        site.start(*site.made.names)
        site.propose()
        wrong = site.answered()
        site.command("ledger", "backup", ledger, folder / "backup")
        site.propose()
        wrong += site.answered(2)
        site.stop(FIRST)
        for path in site.folder.glob(f"{FIRST}.ledger*"):
            path.unlink()
        site.start(FIRST, wait=False)
        named = until("it names the way", NAMED, lambda: "ledger restore" in site.said(FIRST))
        site.stop(FIRST)
        for path in site.folder.glob(f"{FIRST}.ledger*"):
            path.unlink()
        site.command(
            "ledger", "restore", folder / "backup", ledger, "--complete", "--config", config
        )
        wrong += tuple(site.unpaid(2))
        site.start(FIRST)
        site.propose()
        return Found("restored", (*wrong, *site.answered(3)), named)


# --- Full disks -----------------------------------------------------------------------------------


def can_mount() -> bool:
    """Whether this process may have small disks of its own."""
    return MAY_MOUNT in os.environ


#: Set in a process that has its own mounts, see ``__main__``.
MAY_MOUNT = "SILOGRAPH_SOAK_MOUNTS"


@contextmanager
def small_disk(folder: Path, size: str = "48m") -> Iterator[Path]:
    """A small disk; a file ``filler`` takes what is left of it."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "soak", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(disk: Path) -> None:
    """Leave no byte of a disk."""
    with (disk / "filler").open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def room(disk: Path) -> None:
    """Give a disk room again."""
    (disk / "filler").unlink()


def _names_disk(said: str) -> bool:
    """Whether a command's last line is about a full disk, and no trace of our own code is shown."""
    words = said.splitlines()[-1] if said else ""
    return "Traceback" not in said and ("full" in words or "No space left" in words)


def full_silo(folder: Path) -> Found:
    """The disk of a silo's store and ledger is full in the middle of a study."""
    with Site(folder) as site, small_disk(site.folder / "small") as disk:
        site.edit(FIRST, f'"{FIRST}.state"', '"small/state"')
        site.edit(FIRST, f'"{FIRST}.ledger"', '"small/ledger"')
        site.start(FIRST, THIRD)
        site.propose()
        until("it takes part", PATIENCE, lambda: "accept" in text_of(disk / "state" / "log.jsonl")
              or "run.phase" in text_of(disk / "state" / "log.jsonl"))  # fmt: skip
        fill(disk)
        site.start(SECOND)
        named = until("it ends by itself", NAMED, lambda: site.ended(FIRST) is not None)
        if site.ended(FIRST) != 75 or not _names_disk(site.said(FIRST)):
            raise WrongError(f"{FIRST} ended with {site.ended(FIRST)}: {site.said(FIRST)[-300:]}")
        missed = until(f"{HUB} names it", NAMED, lambda: FIRST in site.noted())
        room(disk)
        site.start(FIRST)
        return Found("answer", site.answered(), max(named, missed))


def full_hub(folder: Path) -> Found:
    """The disk of the coordinator's store is full in the middle of a study."""
    with Site(folder) as site, small_disk(site.folder / "small") as disk:
        site.edit(HUB, f'"{HUB}.state"', '"small/state"')
        site.start(FIRST, THIRD)
        site.propose()
        until("the study begins", PATIENCE, lambda: list((disk / "state").glob("*.progress")))
        fill(disk)
        site.start(SECOND)
        named = until("it ends by itself", NAMED, lambda: site.ended(HUB) is not None)
        if site.ended(HUB) != 75 or not _names_disk(site.noted()):
            raise WrongError(f"{HUB} ended with {site.ended(HUB)}: {site.noted()[-300:]}")
        missed = until("silos name it", NAMED, lambda: all(
            '"run.waiting"' in site.log(name) for name in site.made.names))  # fmt: skip
        room(disk)
        site.watch()
        return Found("answer", site.answered(), max(named, missed))


def full_broker(folder: Path) -> Found:
    """The disk of the broker's streams is full in the middle of a study."""
    site = Site(folder)
    with small_disk(site.folder / "broker" / "streams") as disk, site:
        site.start(FIRST, THIRD)
        site.propose()
        until("it takes part", PATIENCE, lambda: "run.phase" in site.log(FIRST))
        fill(disk)
        site.start(SECOND)
        named = until("all name it", NAMED, lambda: "the broker" in site.noted() and all(
            "broker.trouble" in site.log(name) for name in site.made.names))  # fmt: skip
        room(disk)
        site.made.broker.stop()  # the server does not write again before it was restarted
        site.made.broker.start()
        return Found("answer", site.answered(), named)


# --- A cluster ------------------------------------------------------------------------------------


def fail_over(method: str) -> Callable[[Path], Found]:
    """Kill the server that leads a stream while a study runs."""

    def run(folder: Path) -> Found:
        count, terms, helpers = setting(method)
        question, given = METHODS[method], {"count": count, "terms": terms, "helpers": helpers}
        try:
            found = lose_the_leader(folder / "cluster", question, **given)
        except SilographError as error:
            raise WrongError(f"no answer: {error}") from None
        if "killed" not in found:
            raise WrongError("was not struck")
        return Found("answer", tuple(is_right(found["result"], question.query, silos(count))))

    return run


# --- All of them ----------------------------------------------------------------------------------

_MENDED = "named; the answer after the mend, paid once"
_FROZEN = "the ledger freezes until an operator thaws it; then the answer"


def every_trial() -> list[Trial]:
    """All trials of this module."""
    found = [
        Trial(fault, f"connect-{fault.replace(' ', '-')}", _MENDED, cannot_connect(*how))
        for fault, how in CONNECTIONS.items()
    ]
    refused = "refused by name, nothing is paid; then the answer"
    found += [
        Trial("wrong clock", "wrong-clock-of-a-silo", refused, wrong_about("clock")),
        Trial("wrong clock", "wrong-clock-of-the-coordinator", refused, wrong_about("hub clock")),
        Trial("wrong roster", "wrong-roster", "refused by name, nothing is paid",
              wrong_about("roster")),
        Trial("clone of an identity", "clone", _FROZEN, clone),
        Trial("rollback of a machine", "rollback-machine", _FROZEN, machine_put_back),
    ]  # fmt: skip
    old = "the service does not start, and says why"
    found += [
        Trial(f"rollback of the {word} alone", f"rollback-{what}", old, one_file_put_back(what))
        for what, word in (("ledger", "ledger"), ("state", "store"))
    ]
    found.append(
        Trial("restore of a ledger", "restore", "every spend is back, and the next study", restore)
    )
    disks = {"a silo": full_silo, "the coordinator": full_hub, "the broker": full_broker}
    found += [
        Trial(f"full disk of {who}", f"disk-of-{who.replace(' ', '-')}",
              "named; the answer when there is room, paid once", run)
        for who, run in disks.items()
    ]  # fmt: skip
    found += [
        Trial("loss of the leading server", f"{method}-failover", "the answer", fail_over(method))
        for method in ("masked", "committee", "sealed")
    ]
    return found
