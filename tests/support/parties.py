"""Parties with fixed keys and predictable randomness, for tests and benchmarks.

Not in the wheel; nothing in the product selects it.
"""

import hashlib
from collections.abc import Sequence

from silograph.messages.identity import Identity, Member, Roster

__all__ = ["SeededEntropy", "identities", "no_bits", "roster_of"]


class SeededEntropy:
    """Bytes that follow from a seed: equal seeds give equal transcripts."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn = 0

    def bytes(self, count: int) -> bytes:
        self._drawn += 1
        block = f"test entropy {self._seed} {self._drawn}".encode()
        return hashlib.shake_256(block).digest(count)


def no_bits(_view: bytes, chunk: int) -> bytes:
    """For machines whose bits a test hands over itself."""
    raise AssertionError(f"bits of chunk {chunk} were read")


def identities(silos: int) -> list[Identity]:
    """The keys of so many silos, and last that of a coordinator; always the same."""
    return [Identity(bytes([i + 1] * 32)) for i in range(silos + 1)]


def roster_of(
    keys: Sequence[Identity], coordinator: str = "coordinator", silo: str = "silo {}"
) -> Roster:
    """Silos with all keys but the last, which is the coordinator's."""
    members = (Member(silo.format(i + 1), key.public) for i, key in enumerate(keys[:-1]))
    return Roster(Member(coordinator, keys[-1].public), tuple(members))
