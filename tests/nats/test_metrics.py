"""Metrics: listed names, Prometheus's form, this machine alone."""

import http.client
import math
import re
import socket
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.errors import ArgumentError, DeploymentError
from silograph.nats.health import NAMES, Metrics, MetricsBoard, MetricsServer

LINE = re.compile(r'[a-z_]+(\{[a-z]+="([^"\\\n]|\\.)*"(,[a-z]+="([^"\\\n]|\\.)*")*\})? \S+')


def test_text() -> None:
    metrics = Metrics()
    metrics.set("silograph_runs_active", 2)
    metrics.count("silograph_studies_total", method="feat", outcome="done")
    metrics.count("silograph_studies_total", method="feat", outcome="done")
    metrics.count("silograph_studies_total", method="baseline", outcome="refused")
    metrics.set("silograph_epsilon_spent", math.inf, lineage="claims")
    metrics.set("silograph_epsilon_limit", 2.5, lineage="claims")
    assert metrics.text() == (
        "# HELP silograph_studies_total Studies that ended here, by how "
        "(done, refused, aborted, expired).\n"
        "# TYPE silograph_studies_total counter\n"
        'silograph_studies_total{method="baseline",outcome="refused"} 1\n'
        'silograph_studies_total{method="feat",outcome="done"} 2\n'
        "# HELP silograph_runs_active Runs that this party takes part in now.\n"
        "# TYPE silograph_runs_active gauge\n"
        "silograph_runs_active 2\n"
        "# HELP silograph_epsilon_spent Spent of a lineage's budget, at the limit's level.\n"
        "# TYPE silograph_epsilon_spent gauge\n"
        'silograph_epsilon_spent{lineage="claims"} +Inf\n'
        "# HELP silograph_epsilon_limit The limit of a lineage.\n"
        "# TYPE silograph_epsilon_limit gauge\n"
        'silograph_epsilon_limit{lineage="claims"} 2.5\n'
    )


def test_names_follow_the_conventions() -> None:
    for name, metric in NAMES.items():
        assert name.startswith("silograph_")
        assert name.endswith("_total") == (metric.kind == "counter")
        assert metric.help.endswith(".")


def test_only_what_is_listed() -> None:
    metrics = Metrics()
    for call in (
        lambda: metrics.count("silograph_edges_total"),
        lambda: metrics.count("silograph_runs_active"),
        lambda: metrics.set("silograph_messages_total", 1, direction="in"),
        lambda: metrics.count("silograph_messages_total"),
        lambda: metrics.count("silograph_messages_total", direction="in", node="alice"),
        lambda: metrics.count("silograph_messages_total", -1, direction="in"),
        lambda: metrics.count("silograph_messages_total", math.inf, direction="in"),
        lambda: metrics.set("silograph_runs_active", math.nan),
    ):
        with pytest.raises(ArgumentError):
            call()
    assert metrics.text() == ""


@given(st.text(max_size=300), st.floats(allow_nan=False))
def test_any_label_and_number(label: str, value: float) -> None:
    metrics = Metrics()
    metrics.set("silograph_epsilon_spent", value, lineage=label)
    _, _, line, end = metrics.text().split("\n", 3) if "\n" not in label else ["", "", "", ""]
    if line:
        assert LINE.fullmatch(line)
        assert float(line.rpartition(" ")[2]) == value
    assert metrics.text().count("\n") == 3
    assert end == ""


def test_nobody_makes_memory_grow() -> None:
    metrics = Metrics()
    for i in range(10_000):
        metrics.count("silograph_refused_messages_total", error=f"Error{i}")
    text = metrics.text()
    assert len(text.splitlines()) == 203
    assert 'error="other"} 9800' in text


def test_threads() -> None:
    metrics = Metrics()

    def work() -> None:
        for _ in range(2000):
            metrics.count("silograph_messages_total", direction="in")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 'direction="in"} 8000' in metrics.text()


def test_file(tmp_path: Path) -> None:
    metrics = Metrics()
    for runs in range(3):
        metrics.set("silograph_runs_active", runs)
        metrics.write(tmp_path / "silo.prom")
        assert (tmp_path / "silo.prom").read_text() == metrics.text()
    assert stat.S_IMODE((tmp_path / "silo.prom").stat().st_mode) == 0o640
    with pytest.raises(DeploymentError):
        metrics.write(tmp_path / "absent" / "silo.prom")


def get(port: int, path: str, method: str = "GET") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Content-Type", ""), answer.read().decode()
    finally:
        connection.close()


def test_server(capfd: pytest.CaptureFixture[str]) -> None:
    metrics, state = Metrics(), [(True, "ok")]
    metrics.set("silograph_runs_active", 1)
    with MetricsServer(metrics, lambda: state[0]) as server:
        status, kind, text = get(server.port, "/metrics")
        assert (status, text) == (200, metrics.text())
        assert kind == "text/plain; version=0.0.4; charset=utf-8"
        assert get(server.port, "/healthz")[::2] == (200, "ok\n")
        state[0] = (False, "the broker is not reached")
        assert get(server.port, "/healthz")[::2] == (503, "the broker is not reached\n")
        assert get(server.port, "/etc/passwd")[0] == 404
        assert get(server.port, "/metrics", "POST")[0] == 501
        with pytest.raises(DeploymentError, match="in use"):
            MetricsServer(metrics, lambda: state[0], server.port)
    with pytest.raises(OSError, match="refused"):
        get(server.port, "/metrics")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("host", ["0.0.0.0", "", "192.168.1.1", "example.org"])  # noqa: S104
def test_this_machine_alone(host: str) -> None:
    with pytest.raises(ArgumentError, match="on this machine alone"):
        MetricsServer(Metrics(), lambda: (True, "ok"), host=host)


class TestBoard:
    def test_a_file_and_a_port(self, tmp_path: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        now, file = [0.0], tmp_path / "silo.prom"
        with MetricsBoard(file, port, lambda: now[0]) as board:
            assert get(port, "/healthz")[::2] == (503, "starting\n")
            first, second = Metrics(), Metrics()
            first.set("silograph_epsilon_limit", 1, lineage="old")
            second.set("silograph_runs_active", 3)
            for metrics in (first, second):
                board.show(metrics, True, "ok")
                assert get(port, "/metrics")[2] == file.read_text() == metrics.text()
            assert get(port, "/healthz")[::2] == (200, "ok\n")
            now[0] = 61.0
            status, _, word = get(port, "/healthz")
            assert (status, word) == (503, "the service has not been heard of for 61 s\n")
            board.show(second, False, "the broker is not reached")
            assert get(port, "/healthz")[::2] == (503, "the broker is not reached\n")
        with pytest.raises(OSError, match="refused"):
            get(port, "/metrics")

    def test_no_port_unless_asked_for(self, tmp_path: Path) -> None:
        before = threading.active_count()
        with MetricsBoard(tmp_path / "silo.prom") as board:
            board.show(Metrics(), True, "ok")
            assert threading.active_count() == before
