"""Predictable randomness for tests, and machines without bits.

Not in the wheel; nothing in the product selects it.
"""

import hashlib


class SeededEntropy:
    """Bytes that follow from a seed: equal seeds give equal transcripts."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn = 0

    def bytes(self, count: int) -> bytes:
        self._drawn += 1
        block = f"test entropy {self._seed} {self._drawn}".encode()
        return hashlib.shake_256(block).digest(count)


def no_bits(chunk: int) -> bytes:
    """For machines whose bits a test hands over itself."""
    raise AssertionError(f"bits of chunk {chunk} were read")
