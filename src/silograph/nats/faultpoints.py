"""Named moments at which a test may end a process, stall it, or look.

The product passes through them and nothing happens: no setting, variable or flag reaches the hook,
only a test that puts another function in its place.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["COORDINATOR", "SILO", "hooked", "point"]

#: Every moment of a silo in a run, in the order in which a whole run passes them.
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
#: Every moment of the coordinator.
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
    """Pass a moment."""
    assert name in _KNOWN, name  # noqa: S101 - a name that no test could aim at
    _hook(name)


@contextmanager
def hooked(hook: Callable[[str], None]) -> Iterator[None]:
    """For tests: call ``hook`` at every moment while this lasts."""
    global _hook  # noqa: PLW0603
    before, _hook = _hook, hook
    try:
        yield
    finally:
        _hook = before
