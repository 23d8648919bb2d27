"""Bugs in what silos and coordinators show of themselves."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_BOARD = "pytest tests/nats/test_metrics.py"
_HEALTH = "pytest tests/nats/test_health.py"

BUGS = [
    Bug(
        "metrics: a dead service is well",
        "a service that hangs is healthy for ever",
        "src/silograph/nats/health.py",
        "if silent > _LONGEST_SILENCE:",
        "if silent < -_LONGEST_SILENCE:",
        _BOARD,
    ),
    Bug(
        "metrics: numbers of yesterday",
        "what a party no longer has is served beside what it has",
        "src/silograph/nats/health.py",
        "self.text = metrics.text()",
        "self.text += metrics.text()",
        _BOARD,
    ),
    Bug(
        "metrics: served unasked",
        "a port is open that nobody configured",
        "src/silograph/nats/health.py",
        "if self._port is not None:\n            try:\n                server = ThreadingHTTPServer((\"127.0.0.1\", self._port),",
        "if self._file is not None:\n            try:\n                server = ThreadingHTTPServer((\"127.0.0.1\", self._port or 0),",
        _BOARD,
    ),
    Bug(
        "metrics: well without a broker",
        "a party that reaches nobody says that it is well",
        "src/silograph/nats/health.py",
        "if not self.connected:\n            return False",
        "if not self.started:\n            return False",
        _HEALTH,
    ),
    Bug(
        "metrics: refusals go uncounted",
        "an attack on a silo shows nowhere but in its log",
        "src/silograph/nats/health.py",
        '_REFUSED = ("message.dropped", "study.dropped")',
        '_REFUSED = ("message.dropped",)',
        _HEALTH,
    ),
    Bug(
        "metrics: a study fails for its metrics",
        "whoever takes a port of the coordinator's machine ends its studies",
        "src/silograph/nats/health.py",
        "except SilographError as error:",
        "except LookupError as error:",
        _HEALTH,
    ),
    Bug(
        "metrics: the end is not shown",
        "a study that has its answer is shown as open for ever",
        "src/silograph/nats/health.py",
        "            last = ended.is_set()\n            await asyncio.to_thread(",
        "            if last := ended.is_set():\n                break\n            await asyncio.to_thread(",
        _HEALTH,
    ),
]  # fmt: skip
