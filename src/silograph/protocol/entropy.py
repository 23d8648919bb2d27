"""Where randomness comes from: it is injected, and only ``runtime`` makes the real one."""

from typing import Protocol

__all__ = ["Entropy"]


class Entropy(Protocol):
    """A source of fresh random bytes."""

    def bytes(self, count: int) -> bytes:
        """That many bytes that nobody else knows."""
