"""Counters and gauges of a party, in Prometheus's text format, and whether it is well.

What: :class:`Metrics` holds the numbers that are listed in :data:`NAMES` and no others;
:meth:`Metrics.write` puts them into a file (for a node exporter), and :class:`MetricsServer` serves
them on this machine alone: ``/metrics``, and ``/healthz`` with 200 or 503. A service shows its
numbers on a :class:`MetricsBoard`, which does both.

Guarantee: no number here depends on edges. Messages and bytes follow from the node list and the
parameters; budgets are the silo's own business and stay on its machine. A label takes few values,
so that nobody outside can make a party's memory grow.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from silograph.errors import ArgumentError, DeploymentError
from silograph.runtime import whole_files

__all__ = ["NAMES", "Metric", "Metrics", "MetricsBoard", "MetricsServer"]


@dataclass(frozen=True)
class Metric:
    """What a number means."""

    kind: Literal["counter", "gauge"]
    help: str
    labels: tuple[str, ...] = ()


#: Every number that a party shows.
NAMES: Mapping[str, Metric] = {
    "silograph_build_info": Metric("gauge", "1, with the version that runs.", ("version",)),
    "silograph_start_time_seconds": Metric("gauge", "When the party started (Unix time)."),
    "silograph_broker_connected": Metric("gauge", "1 while the broker is reached, 0 otherwise."),
    "silograph_broker_reconnects_total": Metric("counter", "Times that the broker was lost."),
    "silograph_studies_total": Metric(
        "counter", "Studies that ended here, by how (done, refused, aborted, expired).",
        ("method", "outcome"),
    ),
    "silograph_runs_active": Metric("gauge", "Runs that this party takes part in now."),
    "silograph_run_progress_ratio": Metric(
        "gauge", "How much of the study that is carried is done, 0 to 1.", ("phase",)
    ),
    "silograph_messages_total": Metric("counter", "Messages, by direction.", ("direction",)),
    "silograph_bytes_total": Metric("counter", "Bytes of messages, by direction.", ("direction",)),
    "silograph_refused_messages_total": Metric(
        "counter", "Messages that were refused, by the error's name.", ("error",)
    ),
    "silograph_epsilon_spent": Metric(
        "gauge", "Spent of a lineage's budget, at the limit's level.", ("lineage",)
    ),
    "silograph_epsilon_limit": Metric("gauge", "The limit of a lineage.", ("lineage",)),
    "silograph_certificate_expiry_seconds": Metric(
        "gauge", "When the party's TLS certificate expires (Unix time)."
    ),
    "silograph_last_progress_seconds": Metric(
        "gauge", "When a message last came or went (Unix time)."
    ),
    "silograph_study_state": Metric(
        "gauge", "1 for the state that a study is in (open, done, aborted).", ("run", "state")
    ),
    "silograph_study_silo_phase": Metric(
        "gauge", "1 for the phase that a silo is in, as the coordinator sees it.",
        ("run", "silo", "phase"),
    ),
    "silograph_study_bytes_total": Metric(
        "counter", "Bytes of a study's messages at the coordinator.", ("run", "direction")
    ),
    "silograph_study_seconds": Metric(
        "gauge", "How long the coordinator has carried a study since it last started.", ("run",)
    ),
    "silograph_study_left_seconds": Metric(
        "gauge", "What is left until the deadline of a study that is open.", ("run",)
    ),
}  # fmt: skip

_MOST_SERIES = 200
_LONGEST_LABEL = 200
#: Seconds after which a service that says nothing is taken as not well.
_LONGEST_SILENCE = 60.0
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

Series = tuple[str, ...]


class Metrics:
    """Numbers by name and labels; safe to use from several threads.

    >>> metrics = Metrics()
    >>> metrics.count("silograph_messages_total", 2, direction="out")
    >>> print(metrics.text(), end="")
    # HELP silograph_messages_total Messages, by direction.
    # TYPE silograph_messages_total counter
    silograph_messages_total{direction="out"} 2
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, dict[Series, float]] = {}

    def count(self, name: str, by: float = 1, /, **labels: str) -> None:
        """Add to a counter."""
        if not (by >= 0 and math.isfinite(by)):
            raise ArgumentError("a counter only grows")
        with self._lock:
            series, key = self._series("counter", name, labels)
            series[key] = series.get(key, 0) + by

    def set(self, name: str, value: float, /, **labels: str) -> None:
        """Set a gauge."""
        if math.isnan(value):
            raise ArgumentError("a gauge shows a number")
        with self._lock:
            series, key = self._series("gauge", name, labels)
            series[key] = value

    def _series(
        self, kind: str, name: str, labels: Mapping[str, str]
    ) -> tuple[dict[Series, float], Series]:
        metric = NAMES.get(name)
        if metric is None or metric.kind != kind or set(labels) != set(metric.labels):
            raise ArgumentError(f"there is no {kind} {name!r} with labels {sorted(labels)}")
        key = tuple(labels[label][:_LONGEST_LABEL] for label in metric.labels)
        series = self._values.setdefault(name, {})
        if key not in series and len(series) >= _MOST_SERIES:
            key = ("other",) * len(key)
        return series, key

    def adopt(self, other: "Metrics") -> None:
        """Have the numbers of another and no others, in one step for whoever reads."""
        with other._lock:
            values = {name: dict(series) for name, series in other._values.items()}
        with self._lock:
            self._values = values

    def text(self) -> str:
        """All numbers that were given a value, in the order of :data:`NAMES`."""
        lines = []
        with self._lock:
            for name, metric in NAMES.items():
                if name not in self._values:
                    continue
                lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
                lines += [
                    f"{name}{_labels(metric, key)} {_number(value)}"
                    for key, value in sorted(self._values[name].items())
                ]
        return "".join(f"{line}\n" for line in lines)

    def write(self, path: Path, *, mode: int = 0o640) -> None:
        """Put all numbers into a file, in one step: a reader sees the old ones or the new."""
        whole_files.replace(path, self.text().encode(), DeploymentError, mode=mode)


def _labels(metric: Metric, key: Series) -> str:
    if not key:
        return ""
    parts = (f'{name}="{_escaped(value)}"' for name, value in zip(metric.labels, key, strict=True))
    return f"{{{','.join(parts)}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return f"{int(value)}" if value == int(value) and abs(value) < 1 << 53 else repr(float(value))


class MetricsServer:
    """Serves the numbers to this machine, while the context lasts. Port 0 takes a free one.

    ``healthy`` says whether the party is well; a word beside it says why not, and both are shown
    to whoever asks on this machine.
    """

    def __init__(
        self,
        metrics: Metrics,
        healthy: Callable[[], tuple[bool, str]],
        port: int = 0,
        host: str = "127.0.0.1",
    ) -> None:
        if host not in _LOOPBACK:
            raise ArgumentError(f"metrics are served on this machine alone, not on {host!r}")
        self._handler = _handler(metrics, healthy)
        try:
            self._server = ThreadingHTTPServer((host, port), self._handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise DeploymentError(f"metrics on port {port}: {reason}") from None
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.server_port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class MetricsBoard:
    """Where a party shows its numbers, while the context lasts: a file, and a port if it has one.

    A service calls :meth:`show` every few seconds. One that no longer does is not well, whatever
    it said before: ``/healthz`` answers 503.
    """

    def __init__(
        self, file: Path, port: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._file = file
        self._port = port
        self._clock = clock
        self._metrics = Metrics()
        self._said = (False, "starting", clock())
        self._open = ExitStack()

    def show(self, metrics: Metrics, well: bool, word: str) -> None:
        """Show these numbers from now on, and whether the party is well."""
        self._metrics.adopt(metrics)
        self._said = (well, word, self._clock())
        metrics.write(self._file)

    def healthy(self) -> tuple[bool, str]:
        """What was said last, unless that is long ago."""
        well, word, when = self._said
        silent = self._clock() - when
        if silent > _LONGEST_SILENCE:
            return False, f"the service has not been heard of for {silent:.0f} s"
        return well, word

    def __enter__(self) -> Self:
        if self._port is not None:
            self._open.enter_context(MetricsServer(self._metrics, self.healthy, self._port))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()


def _handler(
    metrics: Metrics, healthy: Callable[[], tuple[bool, str]]
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 5
        server_version = "silograph"
        sys_version = ""

        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._answer(200, metrics.text(), "text/plain; version=0.0.4; charset=utf-8")
            elif self.path == "/healthz":
                well, word = healthy()
                self._answer(200 if well else 503, f"{word}\n", "text/plain; charset=utf-8")
            else:
                self._answer(404, "only /metrics and /healthz\n", "text/plain; charset=utf-8")

        def _answer(self, status: int, text: str, kind: str) -> None:
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """A party's log has its own lines; requests are not among them."""

    return Handler
