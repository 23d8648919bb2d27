"""The operating system's random numbers: the only source of noise and keys in the product."""

import os

__all__ = ["OsEntropy"]


class OsEntropy:
    """Fresh bytes from the kernel's CSPRNG."""

    def bytes(self, count: int) -> bytes:
        """That many bytes."""
        return os.urandom(count)
