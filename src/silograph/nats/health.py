"""The health of a party: its metrics, its status, and the progress of its studies."""

import asyncio
import contextlib
import json
import math
import os
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Self

from silograph.extras import library

library("prometheus_client", "deployments")  # a clear error before the import would fail

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from silograph import whole_files
from silograph.errors import (
    ArgumentError,
    CertificateError,
    DeploymentError,
    SilographError,
    StoreError,
    TransportError,
)
from silograph.ledger.book import Ledger
from silograph.methods.study import read_proposal
from silograph.nats.link import Link
from silograph.party import certificates
from silograph.party.log import Log
from silograph.party.opened import Clock, Party, locked
from silograph.party.store import Run

__all__ = [
    "NAMES",
    "Health",
    "Metrics",
    "MetricsBoard",
    "ProgressFile",
    "SiloProgress",
    "StudyHealth",
    "StudyProgress",
    "note_trouble",
]


# --- Counters and gauges of a party, in Prometheus's text format, and whether it is well ----------
#
# No number here depends on edges. The numbers of messages and bytes follow from the node list and
# the parameters. Budgets stay on the silo's machine. Each metric has a limited number of series, so
# that nobody outside can make a party's memory grow.

#: Every metric: its help text, and its labels. The names of counters end in ``_total``.
NAMES: dict[str, tuple[str, ...]] = {
    "silograph_build_info": ("1, with the version that runs.", "version"),
    "silograph_start_time_seconds": ("When the party started (Unix time).",),
    "silograph_broker_connected": ("1 while the broker is reached, 0 otherwise.",),
    "silograph_broker_reconnects_total": ("Times that the broker was lost.",),
    "silograph_studies_total": (
        "Studies that ended here, by how (done, refused, aborted, expired).", "method", "outcome",
    ),
    "silograph_runs_active": ("Runs that this party takes part in now.",),
    "silograph_studies_waiting": ("Studies that wait for a person's decision here.",),
    "silograph_run_progress_ratio": (
        "How much of the study that is carried is done, 0 to 1.", "phase",
    ),
    "silograph_messages_total": ("Messages, by direction.", "direction"),
    "silograph_bytes_total": ("Bytes of messages, by direction.", "direction"),
    "silograph_refused_messages_total": (
        "Messages that were refused, by the error's name.", "error",
    ),
    "silograph_epsilon_spent": ("Spent of a lineage's budget, at the limit's level.", "lineage"),
    "silograph_epsilon_limit": ("The limit of a lineage.", "lineage"),
    "silograph_ledger_frozen": ("1 while the ledger is frozen and all studies are refused.",),
    "silograph_certificate_expiry_seconds": (
        "When the party's TLS certificate expires (Unix time).",
    ),
    "silograph_last_progress_seconds": ("When a message last came or went (Unix time).",),
    "silograph_study_state": (
        "1 for the state that a study is in (open, done, aborted).", "run", "state",
    ),
    "silograph_study_silo_phase": (
        "1 for the phase that a silo or a helper is in, as the coordinator sees it.",
        "run", "silo", "phase",
    ),
    "silograph_study_bytes_total": (
        "Bytes of a study's messages at the coordinator.", "run", "direction",
    ),
    "silograph_study_seconds": (
        "How long the coordinator has carried a study since it last started.", "run",
    ),
    "silograph_study_left_seconds": (
        "What is left until the deadline of a study that is open.", "run",
    ),
}  # fmt: skip

_MOST_SERIES = 200
_LONGEST_LABEL = 200
#: A service that has not reported for this many seconds counts as unhealthy.
_LONGEST_SILENCE = 60.0


class Metrics(Collector):
    """The values of all metrics at one moment, by name and labels.

    >>> metrics = Metrics()
    >>> metrics.add("silograph_messages_total", 2, direction="out")
    >>> print(metrics.text(), end="")
    # HELP silograph_messages_total Messages, by direction.
    # TYPE silograph_messages_total counter
    silograph_messages_total{direction="out"} 2.0
    """

    def __init__(self) -> None:
        self._values: dict[str, dict[tuple[str, ...], float]] = {}

    def add(self, name: str, value: float, /, **labels: str) -> None:
        """Add to a counter, or set a gauge. Series beyond the limit become ``other``."""
        _, *names = NAMES.get(name, ("",))
        if name not in NAMES or set(labels) != set(names):
            raise ArgumentError(f"there is no {name!r} with labels {sorted(labels)}")
        counter = name.endswith("_total")
        if math.isnan(value) or (counter and not 0 <= value < math.inf):
            raise ArgumentError("a gauge shows a number, and a counter only grows")
        key = tuple(labels[label][:_LONGEST_LABEL] for label in names)
        series = self._values.setdefault(name, {})
        if key not in series and len(series) >= _MOST_SERIES:
            key = ("other",) * len(key)
        series[key] = value + (series.get(key, 0) if counter else 0)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """All metrics that have a value, in the order of :data:`NAMES`."""
        for name, (meaning, *labels) in NAMES.items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            family = kind(name, meaning, labels=labels)
            for key, value in sorted(self._values.get(name, {}).items()):
                family.add_metric(key, value)
            if family.samples:
                yield family

    def text(self) -> str:
        """All values in the Prometheus text format, version 0.0.4."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry).decode()


class MetricsBoard:
    """Publishes a party's metrics in a file and, if configured, on a port of the loopback device.

    It is a context manager that opens and closes the port. A service calls :meth:`show` every few
    seconds. If it stops doing so, it counts as unhealthy and ``/healthz`` answers 503.
    """

    def __init__(
        self, file: Path, port: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._file = file
        self._port = port
        self._clock = clock
        self._said = (False, "starting", clock())
        self._server: ThreadingHTTPServer | None = None
        #: The text that ``/metrics`` serves.
        self.text = ""

    def show(self, metrics: Metrics, well: bool, word: str) -> None:
        """Replace the published metrics and the verdict on the party's health."""
        self.text = metrics.text()
        self._said = (well, word, self._clock())
        whole_files.replace(self._file, self.text.encode(), DeploymentError, mode=0o640)

    def healthy(self) -> tuple[bool, str]:
        """The last verdict, unless it is too old."""
        well, word, when = self._said
        silent = self._clock() - when
        if silent > _LONGEST_SILENCE:
            return False, f"the service has not been heard of for {silent:.0f} s"
        return well, word

    def __enter__(self) -> Self:
        if self._port is not None:
            try:
                server = ThreadingHTTPServer(("127.0.0.1", self._port), _handler(self))
            except OSError as error:
                raise DeploymentError(f"metrics on port {self._port}: {error.strerror}") from None
            self._server = server
            threading.Thread(target=server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


def _handler(board: MetricsBoard) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 5
        server_version = "silograph"
        sys_version = ""

        def do_GET(self) -> None:
            status, text, kind = 404, "only /metrics and /healthz\n", "text/plain"
            if self.path == "/metrics":
                status, text, kind = 200, board.text, "text/plain; version=0.0.4"
            elif self.path == "/healthz":
                well, word = board.healthy()
                status, text = 200 if well else 503, f"{word}\n"
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Do nothing: requests are not logged."""

    return Handler


# --- How a party is: a status file for people and commands, metrics for machines ------------------

#: Log events that report a refused message.
_REFUSED = ("message.dropped", "study.dropped")


@dataclass(frozen=True)
class Health:
    """The health of a party at one moment."""

    party: Party
    #: The connection to the broker, or None if there is none yet.
    link: Link | None
    started: float
    #: Why the party does not serve; empty while it does.
    trouble: str = ""
    #: What each run that is carried waits for, in words.
    waiting: Mapping[str, str] = field(default_factory=dict)
    #: Since when and why the ledger is frozen; empty if it is not, or if there is none.
    frozen: str = ""

    @property
    def connected(self) -> bool:
        """Whether the party is connected to the broker now."""
        return self.link is not None and self.link.connected

    @property
    def verdict(self) -> tuple[bool, str]:
        """Whether the party is healthy, and the reason if it is not."""
        if self.frozen:
            return False, f"the ledger is {self.frozen}"
        if not self.connected:
            return False, f"the broker is not reached: {self.hindrance}".rstrip(" :")
        return (False, self.hindrance) if self.hindrance else (True, "ok")

    @property
    def hindrance(self) -> str:
        """Why nothing moves: there is no connection, or the broker stores nothing; else empty."""
        own = "" if self.connected else self.trouble
        return own or ("" if self.link is None else self.link.trouble)

    def status(self) -> dict[str, object]:
        """The content of the status file: process, connection, and the phase of each open run."""
        runs = self.party.store.runs(ended=False)
        return {
            "silo": self.party.name,
            "role": self.party.config.role,
            "pid": os.getpid(),
            "connected": self.connected,
            "ledger": self.frozen,
            "serving": self.connected and not self.trouble,
            "trouble": self.hindrance,
            "runs": [{"run": run.run, "decision": run.decision or "asked", "phase": run.phase,
                      "waiting": self._waiting(run)} for run in runs],
        }  # fmt: skip

    def _waiting(self, run: Run) -> str:
        """What an open run waits for."""
        if not run.decision:
            return "waits for your decision: silograph silo approve or refuse"
        return self.waiting.get(run.run, "begins")

    def metrics(self) -> Metrics:
        """The metrics that every party has.

        Studies and outgoing messages are counted from the store, so a restart does not reset them.
        The other counters start with the process.
        """
        metrics, store = Metrics(), self.party.store
        runs = store.runs()
        metrics.add("silograph_build_info", 1, version=version("silograph"))
        metrics.add("silograph_start_time_seconds", self.started)
        metrics.add("silograph_broker_connected", int(self.connected))
        metrics.add("silograph_runs_active", sum(run.open and run.decision != "" for run in runs))
        waiting = sum(run.open and run.decision == "" for run in runs)
        metrics.add("silograph_studies_waiting", waiting)
        ended = Counter(
            (study.method if (study := read_proposal(run.proposal)) else "unreadable", run.state)
            for run in runs
            if not run.open
        )
        for (method, outcome), count in ended.items():
            metrics.add("silograph_studies_total", count, method=method, outcome=outcome)
        sizes = [row for run in runs for row in store.left(run.run)]
        metrics.add("silograph_messages_total", sum(row[1] for row in sizes), direction="out")
        metrics.add("silograph_bytes_total", sum(row[2] for row in sizes), direction="out")
        if self.link is not None:
            self._line(metrics, self.link)
        for (event, error), count in self.party.log.errors.copy().items():
            if event in _REFUSED:
                metrics.add("silograph_refused_messages_total", count, error=error)
        tls = self.party.config.broker.tls
        if tls is not None:
            with contextlib.suppress(CertificateError):  # it may be being replaced
                expires = certificates.show_certificate(tls.cert).expires.timestamp()
                metrics.add("silograph_certificate_expiry_seconds", expires)
        return metrics

    @staticmethod
    def _line(metrics: Metrics, link: Link) -> None:
        traffic = link.traffic
        metrics.add("silograph_broker_reconnects_total", link.reconnects)
        metrics.add("silograph_messages_total", traffic.messages, direction="in")
        metrics.add("silograph_bytes_total", traffic.bytes, direction="in")
        if traffic.last is not None:
            metrics.add("silograph_last_progress_seconds", traffic.last)

    def silo_metrics(self, ledger: Ledger, lineage: str) -> Metrics:
        """The metrics of a silo: those of every party, and its budget."""
        metrics, limit = self.metrics(), ledger.limit(lineage)
        metrics.add("silograph_epsilon_spent", ledger.spent(lineage).epsilon, lineage=lineage)
        if limit is not None:
            metrics.add("silograph_epsilon_limit", limit.epsilon, lineage=lineage)
        metrics.add("silograph_ledger_frozen", int(bool(self.frozen)))
        return metrics

    def write_status(self, path: Path) -> None:
        """Write the status file atomically."""
        content = {"time": int(self.party.clock()), **self.status()}
        whole_files.replace(path, json.dumps(content, indent=1).encode(), StoreError)


def note_trouble(log: Log, trouble: str) -> None:
    """Log that the broker stores nothing, or does so again."""
    if trouble:
        log.event("broker.trouble", level="warning", error=TransportError(trouble))
    else:
        log.event("broker.well")


# --- Where a coordinator's studies are: for a screen while one is carried, and as metrics ---------
#
# A coordinator has one process per study. One of these processes publishes the metrics of all open
# studies from the store, and the progress of every silo for its own study. When it ends, another
# process takes over. Errors here only go to the log: no study fails because of its metrics.

_SHOW_SECONDS = 2.0
#: So many beginnings of phases are kept: a run that is carried on again and again adds to them.
_MOST_PHASES = 1000
#: Phases before a silo takes part, and what is awaited of it then.
UNANSWERED = {
    "asked": "it has not answered: is its service running? (silograph study ping)",
    "undecided": "its operator has to decide",
}


@dataclass
class SiloProgress:
    """The progress of one silo or helper, as the coordinator sees it."""

    name: str
    phase: str = "asked"
    messages: int = 0
    bytes: int = 0
    #: What it waits for, or what is awaited of it, in words.
    waiting: str = ""


@dataclass
class StudyProgress:
    """The progress of a run, for display."""

    run: str
    phase: str
    silos: list[SiloProgress]
    done: int = 0
    total: int = 0
    began: float = field(default_factory=time.monotonic)
    #: When a message last came (monotonic time).
    moved: float = field(default_factory=time.monotonic)
    #: Why there is no connection to the broker, or why it stores nothing; empty if all is well.
    trouble: str = ""
    #: When a phase began (seconds since 1970), whose it is (empty: the whole study's), its name.
    history: list[tuple[float, str, str]] = field(default_factory=list)

    def name_waits(self) -> None:
        """Say of every silo and helper what it waits for, from what the coordinator has seen.

        All of them send the same number of messages in a round, so those who are behind are
        awaited by the others.
        """
        most = max((silo.messages for silo in self.silos), default=0)
        answered = all(silo.phase not in UNANSWERED for silo in self.silos)
        behind = [
            silo.name
            for silo in self.silos
            if (silo.messages < most if answered else silo.phase in UNANSWERED)
        ]
        for silo in self.silos:
            if silo.phase in UNANSWERED:
                silo.waiting = UNANSWERED[silo.phase]
            elif silo.name in behind:
                silo.waiting = f"its next message is awaited, in phase '{silo.phase}'"
            else:
                silo.waiting = f"waits for {', '.join(behind)}" if behind else "at work"

    @property
    def awaited(self) -> str:
        """Whom or what the study waits for, in words."""
        if self.trouble:
            return f"the broker: {self.trouble}"
        self.name_waits()
        found = [f"{s.name}: {s.waiting}" for s in self.silos if not s.waiting.startswith("waits")]
        return "; ".join(found)

    @property
    def bytes(self) -> int:
        """The bytes received from all silos and helpers."""
        return sum(silo.bytes for silo in self.silos)

    @property
    def seconds(self) -> float:
        """Seconds since this process started to carry the run."""
        return time.monotonic() - self.began


class ProgressFile:
    """The progress of a run in a file, for those who look from another process.

    It is written when a phase changes, and otherwise at most twice a second. When each phase began
    is kept in it, also by processes that carry the run on. A failure to write it is not an error of
    the run.
    """

    def __init__(self, state: Path, run: str, clock: Clock = time.time) -> None:
        self._path = state / f"{run}.progress"
        self._clock = clock
        self._shown: tuple[dict[str, str], str] | None = None
        self._next = 0.0

    def note(self, progress: StudyProgress) -> None:
        """Write how far the run is, if that is news."""
        phases = {"": progress.phase} | {silo.name: silo.phase for silo in progress.silos}
        news, now = (phases, progress.trouble), time.monotonic()
        if news == self._shown and now < self._next:
            return
        if self._shown is None:  # of a process that carried the run before
            before = self.read()
            progress.history[:0] = [] if before is None else before.history
        known, began = {who: phase for _, who, phase in progress.history}, round(self._clock(), 3)
        progress.history += [
            (began, who, phase) for who, phase in phases.items() if known.get(who) != phase
        ]
        del progress.history[:-_MOST_PHASES]
        self._shown, self._next = news, now + 0.5
        content = {
            "phase": progress.phase,
            "done": progress.done,
            "total": progress.total,
            "seconds": round(progress.seconds, 1),
            "trouble": progress.trouble,
            "silos": [asdict(silo) for silo in progress.silos],
            "history": progress.history,
        }
        beside = self._path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            beside.write_text(json.dumps(content))
            beside.replace(self._path)

    def read(self) -> StudyProgress | None:
        """The progress that was last written; None if there is none."""
        try:
            found = json.loads(self._path.read_bytes())
            silos = [SiloProgress(**silo) for silo in found["silos"]]
            began = time.monotonic() - found["seconds"]
            history = [
                (float(when), str(who), str(phase)) for when, who, phase in found.get("history", [])
            ]
            return StudyProgress(
                self._path.stem, found["phase"], silos, found["done"], found["total"], began,
                history=history, trouble=found.get("trouble", ""),
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError):
            return None


class StudyHealth:
    """The health of a coordinator and its studies, published while it carries one."""

    def __init__(self, party: Party, progress: StudyProgress) -> None:
        self._party = party
        self._started = party.clock()
        self.progress = progress
        #: The connection to the broker, or None if there is none yet.
        self.link: Link | None = None

    def metrics(self) -> Metrics:
        """The metrics of every party, and those of the studies that are open or carried here."""
        metrics = self._health.metrics()
        store, carried = self._party.store, self.progress
        for row in store.runs():
            if not row.open and row.run != carried.run:
                continue
            metrics.add("silograph_study_state", 1, run=row.run, state=row.state)
            sent = sum(size for _, _, size in store.left(row.run))
            metrics.add("silograph_study_bytes_total", sent, run=row.run, direction="out")
            if row.open:
                study = read_proposal(row.proposal)
                if study is None:
                    continue
                left = study.deadline - self._party.clock()
                metrics.add("silograph_study_left_seconds", round(max(left, 0.0), 3), run=row.run)
        run, share = carried.run, carried.done / carried.total if carried.total else 0.0
        metrics.add("silograph_run_progress_ratio", share, phase=carried.phase)
        metrics.add("silograph_study_seconds", round(carried.seconds, 3), run=run)
        metrics.add("silograph_study_bytes_total", carried.bytes, run=run, direction="in")
        for silo in carried.silos:
            metrics.add("silograph_study_silo_phase", 1, run=run, silo=silo.name, phase=silo.phase)
        return metrics

    @property
    def _health(self) -> Health:
        return Health(self._party, self.link, self._started)

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Publish the metrics inside the block, and once more at its end."""
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
                    self._party.log.event("metrics.unshown", level="warning", error=error)
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
