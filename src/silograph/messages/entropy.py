"""Sources of random bytes. Machines are given a source; only drivers create the real one."""

import hashlib
import os
from typing import Protocol

__all__ = ["Entropy", "OsEntropy", "RunEntropy"]


# --- The interface --------------------------------------------------------------------------------


class Entropy(Protocol):
    """A source of fresh random bytes."""

    def bytes(self, count: int) -> bytes:
        """Return ``count`` bytes that nobody else knows."""


# --- The operating system's random numbers: the only origin of noise and keys in deployments ------


class OsEntropy:
    """Fresh bytes from the kernel's cryptographic random number generator."""

    def bytes(self, count: int) -> bytes:
        """Return ``count`` fresh bytes."""
        return os.urandom(count)


class RunEntropy:
    """Bytes derived from one run's secret, so that a restarted party draws the same bytes again.

    The secret comes from :class:`OsEntropy` and is stored before its first use. SHAKE256 of the
    secret followed by a counter is a pseudo-random function of the counter.
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
