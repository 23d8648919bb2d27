"""Where randomness comes from: it is injected, and only drivers make the real one."""

import hashlib
import os
from typing import Protocol

__all__ = ["Entropy", "OsEntropy", "RunEntropy"]


# --- Where randomness comes from: it is injected, and only ``runtime`` makes the real one ---------


class Entropy(Protocol):
    """A source of fresh random bytes."""

    def bytes(self, count: int) -> bytes:
        """That many bytes that nobody else knows."""


# --- The operating system's random numbers: the only source of noise and keys in the product ------


class OsEntropy:
    """Fresh bytes from the kernel's CSPRNG."""

    def bytes(self, count: int) -> bytes:
        """That many bytes."""
        return os.urandom(count)


class RunEntropy:
    """Bytes that follow from one run's secret, so that a restarted party draws what it drew before.

    The secret comes from :class:`OsEntropy` and is in the state store before its first use.
    SHAKE256 with the secret and a counter in front is a pseudo-random function of the counter.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._drawn = 0

    def bytes(self, count: int) -> bytes:
        """The next bytes of this run."""
        self._drawn += 1
        block = b"silograph/run-entropy/v1" + self._secret + self._drawn.to_bytes(8, "little")
        return hashlib.shake_256(block).digest(count)

    def __repr__(self) -> str:
        return "RunEntropy(…)"
