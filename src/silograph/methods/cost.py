"""What a union costs: traffic, time and memory, known before anything is drawn or spent.

All parties are taken to run on this machine, as in a simulation; in a deployment each of them does
a part. The figures are rough: they say whether a run takes seconds, hours or is out of reach. They
are those of cores with AVX-512, without which runs take up to three times as long. `make
bench-growth` holds them to what runs take.
"""

import math
import os
from dataclasses import dataclass

from silograph.graph.bits import memory_of, triangle_bytes
from silograph.graph.fold import Layout
from silograph.graph.identifiers import memory_here
from silograph.methods.committee.noise import CommitteeNoise
from silograph.methods.masked.machines import packed_bytes
from silograph.methods.masked.noise import MaskedNoise
from silograph.methods.union import SettledUnion

__all__ = [
    "Cost",
    "LineLoad",
    "memory_here",
    "reports_cost",
    "sealed_cost",
    "size_text",
    "time_text",
    "union_cost",
]

#: Nanoseconds of one core for each bit: of every silo; of a masked one for each other silo, with
#: which it shares a mask; and of the four members of a committee together for each gate.
_MASKED, _MASK, _CLEAR, _ELGAMAL, _GATE = 1.2, 0.1, 2.0, 80_000.0, 5.5
#: Bytes that a silo sends for each bit: ElGamal's ciphertexts; a member of a committee for each
#: gate, and for inputs, hashes and the opening.
_ELGAMAL_BYTES, _GATE_BYTES, _SHARE_BYTES = 130.0, 1.5 / 8, 0.325
#: A sealed count: nanoseconds of all members for each pair, bytes of a member for a matrix' cell.
_SEALED, _SEALED_CELL = 200.0, 12.5
#: Multiplications a second of the squares of secret matrices, of which all members do n³ · 7.
_SQUARES = 2.6e10
#: Nanoseconds of one core for each pair of a silo's own report.
_REPORT = 2.0
#: The memory of a process that does little, and of the buffers of a sealed count.
_PROCESS, _BUFFERS = 150_000_000, 150_000_000
#: Multiplications of matrices that the answers of a folded release take, and their speed.
_PRODUCTS, _FLOPS = 6, 1e11


@dataclass(frozen=True)
class Cost:
    """What one run costs."""

    #: The number of pairs or buckets.
    bits: int
    #: The bytes that a silo sends.
    sent: int
    #: Seconds with all parties on this machine.
    seconds: float
    #: Bytes of memory with all parties on this machine.
    memory: int

    @property
    def within_reach(self) -> bool:
        """Whether this machine has the memory."""
        return self.memory <= memory_here()

    def __str__(self) -> str:
        return (
            f"about {time_text(self.seconds)}, {size_text(self.sent)} sent by a silo, "
            f"{size_text(self.memory)} of memory"
        )


@dataclass(frozen=True)
class LineLoad:
    """The bytes that a study puts on the line of one party, roughly: sent and received."""

    up: int
    down: int


def union_cost(union: SettledUnion, nodes: int, layout: Layout | None = None) -> Cost:
    """The cost of a union of pairs of so many nodes, or of the buckets of a layout."""
    bits = layout.buckets if layout else math.comb(nodes, 2)
    cores = os.cpu_count() or 1
    if isinstance(union.noise, MaskedNoise):
        sent = packed_bytes(union.noise.q, bits)
        each = union.silos * (_MASKED + _MASK * (union.silos - 1))
    elif isinstance(union.noise, CommitteeNoise):
        # A gate for each silo but one, and for each place of the coin but one.
        gates = union.silos + union.noise.places - 2
        sent = math.ceil((_GATE_BYTES * gates + _SHARE_BYTES) * bits)
        each = _GATE * gates
    elif union.protocol == "clear":
        sent, each = bits // 8, _CLEAR * union.silos
    else:
        sent, each = math.ceil(_ELGAMAL_BYTES * bits), _ELGAMAL * union.silos
    seconds = each * 1e-9 * bits / cores
    if layout is None:
        # Rows of bits for counting, and the bits of every silo.
        memory = 2 * triangle_bytes(nodes) + union.silos * memory_of(nodes)
        if union.protocol == "clear":
            # What the silos report, and copies of their union with and without noise.
            memory += (union.silos + 4) * triangle_bytes(nodes)
    else:
        memory = (union.silos + 2) * bits // 8 + 12 * layout.rows**2
        seconds += _PRODUCTS * 2 * layout.rows**3 / _FLOPS / cores
    return Cost(bits, sent, seconds, memory + _PROCESS)


def sealed_cost(nodes: int, silos: int, sent: int, *, triangles: bool) -> Cost:
    """The cost of a sealed count of all four members, with or without triangles.

    ``sent`` is what a member sends, which its rounds know exactly.
    """
    pairs, cores = math.comb(nodes, 2), os.cpu_count() or 1
    seconds = _SEALED * 1e-9 * pairs
    memory = _BUFFERS + 2 * silos * memory_of(nodes)
    if triangles:
        seconds += 7 * nodes**3 / _SQUARES
        memory += math.ceil(4 * _SEALED_CELL * nodes**2)
    return Cost(pairs, sent, seconds / cores, memory + _PROCESS)


def reports_cost(nodes: int, silos: int) -> Cost:
    """The cost of a report of every silo on all pairs."""
    pairs, cores = math.comb(nodes, 2), os.cpu_count() or 1
    # A silo's bits, and twice its rows and those of its report.
    memory = silos * (memory_of(nodes) + 5 * triangle_bytes(nodes))
    sent = triangle_bytes(nodes)
    return Cost(pairs, sent, _REPORT * 1e-9 * pairs * silos / cores, memory + _PROCESS)


def size_text(size: float) -> str:
    """A number of bytes as people say it.

    >>> size_text(950), size_text(41_000_000), size_text(6.25e10)
    ('950 bytes', '41 MB', '62 GB')
    """
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:,.{int(size < 9.95 * unit)}f} {name}"
    return f"{size:,.0f} bytes"


def time_text(seconds: float) -> str:
    """A time as people say it.

    >>> time_text(0.2), time_text(95), time_text(4e5)
    ('a second', '2 minutes', '5 days')
    """
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        many = round(seconds / unit)
        if seconds >= 0.95 * unit and many >= 1:
            return f"{many:,} {name}{'s' * (many != 1)}"
    return "a second"
