"""Metrics: listed names, Prometheus's form, this machine alone."""

import http.client
import math
import re
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.errors import ArgumentError, DeploymentError
from silograph.nats.health import NAMES, Metrics, MetricsBoard
from tests.support.ports import free_port

LINE = re.compile(r'[a-z_]+(\{[a-z]+="([^"\\\n]|\\.)*"(,[a-z]+="([^"\\\n]|\\.)*")*\})? \S+')


def test_text() -> None:
    metrics = Metrics()
    metrics.add("silograph_runs_active", 2)
    metrics.add("silograph_runs_active", 3)
    metrics.add("silograph_studies_total", 1, method="feat", outcome="done")
    metrics.add("silograph_studies_total", 1, method="feat", outcome="done")
    metrics.add("silograph_studies_total", 1, method="baseline", outcome="refused")
    metrics.add("silograph_epsilon_spent", math.inf, lineage="claims")
    metrics.add("silograph_epsilon_limit", 2.5, lineage="claims")
    assert metrics.text() == (
        "# HELP silograph_studies_total Studies that ended here, by how "
        "(done, refused, aborted, expired).\n"
        "# TYPE silograph_studies_total counter\n"
        'silograph_studies_total{method="baseline",outcome="refused"} 1.0\n'
        'silograph_studies_total{method="feat",outcome="done"} 2.0\n'
        "# HELP silograph_runs_active Runs that this party takes part in now.\n"
        "# TYPE silograph_runs_active gauge\n"
        "silograph_runs_active 3.0\n"
        "# HELP silograph_epsilon_spent Spent of a lineage's budget, at the limit's level.\n"
        "# TYPE silograph_epsilon_spent gauge\n"
        'silograph_epsilon_spent{lineage="claims"} +Inf\n'
        "# HELP silograph_epsilon_limit The limit of a lineage.\n"
        "# TYPE silograph_epsilon_limit gauge\n"
        'silograph_epsilon_limit{lineage="claims"} 2.5\n'
    )


def test_every_name_is_shown_as_it_is_listed() -> None:
    """Counters and no others end in _total, and nothing is added beside them."""
    metrics = Metrics()
    for name, (meaning, *labels) in NAMES.items():
        assert name.startswith("silograph_")
        assert meaning.endswith(".")
        metrics.add(name, 1, **dict.fromkeys(labels, "x"))
    found = re.findall(r"^# TYPE (\S+) (counter|gauge)$", metrics.text(), flags=re.M)
    assert [name for name, _ in found] == list(NAMES)
    assert all(name.endswith("_total") == (kind == "counter") for name, kind in found)
    assert re.findall(r"^(\w+)", metrics.text(), flags=re.M) == list(NAMES)


def test_only_what_is_listed() -> None:
    metrics = Metrics()
    for name, value, labels in (
        ("silograph_edges_total", 1.0, {}),
        ("silograph_messages_total", 1.0, {}),
        ("silograph_messages_total", 1.0, {"direction": "in", "node": "alice"}),
        ("silograph_messages_total", -1.0, {"direction": "in"}),
        ("silograph_messages_total", math.inf, {"direction": "in"}),
        ("silograph_messages_total", math.nan, {"direction": "in"}),
        ("silograph_runs_active", math.nan, {}),
    ):
        with pytest.raises(ArgumentError):
            metrics.add(name, value, **labels)
    assert metrics.text() == ""


@given(st.text(max_size=300), st.floats(allow_nan=False))
def test_any_label_and_number(label: str, value: float) -> None:
    metrics = Metrics()
    metrics.add("silograph_epsilon_spent", value, lineage=label)
    _, _, line, end = metrics.text().split("\n", 3) if "\n" not in label else ["", "", "", ""]
    if line:
        assert LINE.fullmatch(line)
        assert float(line.rpartition(" ")[2]) == value
        assert len(line) < 500
    assert metrics.text().count("\n") == 3
    assert end == ""


def test_nobody_makes_memory_grow() -> None:
    metrics = Metrics()
    for i in range(10_000):
        metrics.add("silograph_refused_messages_total", 1, error=f"Error{i}")
    text = metrics.text()
    assert len(text.splitlines()) == 203
    assert 'error="other"} 9800.0' in text


def test_file(tmp_path: Path) -> None:
    board = MetricsBoard(tmp_path / "silo.prom")
    for runs in range(3):
        metrics = Metrics()
        metrics.add("silograph_runs_active", runs)
        board.show(metrics, True, "ok")
        assert (tmp_path / "silo.prom").read_text() == metrics.text()
    assert stat.S_IMODE((tmp_path / "silo.prom").stat().st_mode) == 0o640
    with pytest.raises(DeploymentError):
        MetricsBoard(tmp_path / "absent" / "silo.prom").show(Metrics(), True, "ok")


def get(port: int, path: str, method: str = "GET", host: str = "127.0.0.1") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Content-Type", ""), answer.read().decode()
    finally:
        connection.close()


class TestPort:
    def test_what_is_served(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        port, now, file = free_port(), [0.0], tmp_path / "silo.prom"
        with MetricsBoard(file, port, lambda: now[0]) as board:
            assert get(port, "/healthz")[::2] == (503, "starting\n")
            first, second = Metrics(), Metrics()
            first.add("silograph_epsilon_limit", 1, lineage="old")
            second.add("silograph_runs_active", 3)
            for metrics in (first, second):
                board.show(metrics, True, "ok")
                status, kind, text = get(port, "/metrics")
                assert (status, text) == (200, metrics.text())
                assert kind == "text/plain; version=0.0.4; charset=utf-8"
                assert text == file.read_text()
            assert get(port, "/healthz")[::2] == (200, "ok\n")
            now[0] = 61.0
            status, _, word = get(port, "/healthz")
            assert (status, word) == (503, "the service has not been heard of for 61 s\n")
            board.show(second, False, "the broker is not reached")
            assert get(port, "/healthz")[::2] == (503, "the broker is not reached\n")
            assert get(port, "/etc/passwd")[0] == 404
            assert get(port, "/metrics", "POST")[0] == 501
            with pytest.raises(DeploymentError, match="in use"), MetricsBoard(file, port):
                pass
        with pytest.raises(OSError, match="refused"):
            get(port, "/metrics")
        assert capfd.readouterr() == ("", "")

    def test_this_machine_alone(self, tmp_path: Path) -> None:
        """A socket that listens to other hosts would answer on every loopback address too."""
        port = free_port()
        with MetricsBoard(tmp_path / "silo.prom", port):
            assert get(port, "/healthz")[0] == 503
            with pytest.raises(OSError, match="refused"):
                get(port, "/healthz", host="127.0.0.2")

    def test_no_port_unless_asked_for(self, tmp_path: Path) -> None:
        before = threading.active_count()
        with MetricsBoard(tmp_path / "silo.prom") as board:
            board.show(Metrics(), True, "ok")
            assert threading.active_count() == before
