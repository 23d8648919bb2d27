"""The paper's private union cell by cell, on the group of any library: what a peer would do.

A *cell* is an encryption of one flag under the sum of all silos' keys. The first silo encrypts its
flags; each later one encrypts a 1 where it holds the pair, and re-randomises the cell elsewhere;
each silo gives one decryption share of every cell; the shares open it. (The paper's PSU, steps 3 to
5. It copies kept cells, but encrypts all of its own: the same multiplications.) Nothing is packed,
proved or signed. Cells and shares travel as bytes, so every silo decodes what it gets.
"""

from collections.abc import Sequence
from typing import Protocol

__all__ = ["SILOS", "Group", "combine", "first_hop", "flags", "hop", "open_union", "share"]

#: Silos in every measurement of a library.
SILOS = 4


class Group(Protocol):
    """ElGamal under the joint key of :data:`SILOS` silos, on some library."""

    def fresh(self, bit: int) -> bytes:
        """A fresh encryption of a flag."""

    def renew(self, cell: bytes) -> bytes:
        """The same flag, encrypted anew."""

    def share(self, silo: int, cell: bytes) -> bytes:
        """A silo's decryption share of a cell."""

    def opens(self, cell: bytes, shares: Sequence[bytes]) -> bool:
        """Whether the flag of a cell is set, from the shares of all silos."""


def first_hop(group: Group, held: bytes) -> list[bytes]:
    """The first silo's step; ``held`` has a byte of 0 or 1 for every pair."""
    return [group.fresh(bit) for bit in held]


def hop(group: Group, cells: Sequence[bytes], held: bytes) -> list[bytes]:
    """A later silo's step."""
    return [
        group.fresh(1) if bit else group.renew(cell)
        for cell, bit in zip(cells, held, strict=True)
    ]  # fmt: skip


def share(group: Group, silo: int, cells: Sequence[bytes]) -> list[bytes]:
    """A silo's decryption shares of all cells."""
    return [group.share(silo, cell) for cell in cells]


def combine(group: Group, cells: Sequence[bytes], shares: Sequence[Sequence[bytes]]) -> list[bool]:
    """The flags, from every silo's shares."""
    each = zip(*shares, strict=True)
    return [group.opens(cell, parts) for cell, parts in zip(cells, each, strict=True)]


def open_union(group: Group, held: Sequence[bytes]) -> list[bool]:
    """All steps in order, for the flags that each silo holds."""
    cells = first_hop(group, held[0])
    for own in held[1:]:
        cells = hop(group, cells, own)
    shares = [share(group, silo, cells) for silo in range(len(held))]
    return combine(group, cells, shares)


def flags(held: Sequence[bytes]) -> list[bool]:
    """What the union must open to."""
    return [any(bits) for bits in zip(*held, strict=True)]
