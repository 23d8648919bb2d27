"""Named points in the code at which a test may kill a process, delay it or inspect it.

In production these points do nothing. No setting, environment variable or flag can change that;
only a test can install another hook.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["COORDINATOR", "SILO", "hooked", "point"]

#: Every point of a silo, in the order in which a complete run passes them.
SILO = (
    "silo.proposed",
    "silo.accepted",
    "silo.frozen",
    "silo.sent",
    "silo.received",
    "silo.taken",
    "silo.spent",
    "silo.authorised",
    "silo.made",
    "silo.uploaded",
    "silo.ended",
)
#: Every point of the coordinator.
COORDINATOR = (
    "coordinator.drafted",
    "coordinator.proposed",
    "coordinator.received",
    "coordinator.taken",
    "coordinator.made",
    "coordinator.frozen",
    "coordinator.sent",
    "coordinator.result",
    "coordinator.saved",
    "coordinator.ended",
)

_KNOWN = frozenset((*SILO, *COORDINATOR))
_hook: Callable[[str], None] = lambda _name: None  # noqa: E731


def point(name: str) -> None:
    """Call the hook with the name of a point."""
    assert name in _KNOWN, name  # noqa: S101 - tests rely on these lists
    _hook(name)


@contextmanager
def hooked(hook: Callable[[str], None]) -> Iterator[None]:
    """For tests: call ``hook`` at every point inside the block."""
    global _hook  # noqa: PLW0603
    before, _hook = _hook, hook
    try:
        yield
    finally:
        _hook = before
