"""The sealed protocol: its rounds, its parameters, and what it costs.

The union is never opened. A committee of four members counts in it, and only noisy answers about it
are opened.

Rounds
    The handshake and the union are those of :mod:`silograph.methods.committee.rounds`: ``key``,
    ``keys``, ``confirm``, ``confirms``, ``seed``, ``match``, ``input``, ``check``, ``joint``.
    Instead of a coin for each pair, two more layers of ``joint`` messages make numbers from the
    bits of the union: numbers mod 2^w, of which every member lacks one component, as with bits.

    ``open``  a member tells the coordinator the sum of two components of noisy edges or degrees, or
              its hash
    ``tell``  a member tells another the component of the noisy degrees that it lacks, or its hash;
              only if the noise of counts depends on them
    ``sum``   a member's summand of a noisy count, under a share of zero, to the coordinator
    ``done``  a member tells the coordinator how far it is
Counting
    Edges and degrees are sums of numbers. Every product of two or three components is known to some
    member, so 2-stars and triangles are sums of four summands that the members compute by
    themselves (``crates/core/src/committee/count.rs``).
Noise
    Chunks of their own, after those of the pairs. Either its binary digits are coins that nobody
    knows, compared and converted as shared bits; or each member draws a part and shares it, as a
    silo shares its bits. If the noise of a count depends on the degrees, the noisy degrees are
    opened first, to every member, by components and compared with hashes: no member can make them
    smaller. Every member computes the bound from them, and only then begins with that noise.
Folded nodes
    The bits are buckets, and every number of nodes below is one of rows: hubs and groups. Degrees
    are the loads of rows. The weights of cells follow from the noisy loads, and triangles are
    counted only when they are known. The messages that make the noise of the triangles are labelled
    with the digest of the weights: they match only between members that have the same.
Groups
    A public partition of the nodes is among the parameters that all parties sign. The numbers of
    edges within each group and between each two are sums of numbers, and opened as degrees are.
What each party sees, and why that tells nothing
    As in the union, a member lacks one component of everything, and what it receives is hidden by a
    mask that it does not know, or is the hash of something that it received. What it learns of the
    degrees is the component that it lacks, which the noisy degrees determine. The coordinator gets
    sums of two components, uniform but for the sum of both, and summands, uniform but for their
    sum. Only the low w bits of anything are sent: carries above them would tell something.
What a cheat can do
    End a run, choose its own bits as it likes, add any number to a count that is opened, and, with
    the coordinator, publish a wrong answer. It cannot take noise away, lower a bound, or weigh an
    edge: a number that comes from a bit is 0 or 1 by construction, and every message is compared
    before it is used. Whether the coordinator can decode a count with a false summand depends on
    the noisy count alone.
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from silograph import _core
from silograph.errors import ArgumentError
from silograph.graph.fold import Layout
from silograph.messages.identity import pack
from silograph.methods.committee.rounds import (
    COORDINATOR_STEPS,
    MEMBERS,
    PARTY_STEPS,
    WINDOW,
    Seating,
    State,
)
from silograph.methods.sealed.noise import (
    FACTORS,
    Bounded,
    Coins,
    Output,
    Parts,
    Weighted,
)

__all__ = [
    "CHUNK_NUMBERS",
    "CHUNK_PAIRS",
    "LINEAR",
    "MOST_GROUPS",
    "MOST_MATRIX_NODES",
    "MOST_NODES",
    "ROWS",
    "SEALED_COORDINATOR_STEPS",
    "SEALED_PARTY_STEPS",
    "SEALED_VIEW",
    "NoiseChunk",
    "SealedCost",
    "SealedParameters",
    "SealedResult",
    "check_matrix",
    "coins_of",
    "member_cost",
]

#: The number of pairs in a chunk: at most 2 MiB of numbers.
CHUNK_PAIRS = 1 << 18
#: The number of numbers in a chunk of noise.
CHUNK_NUMBERS = 1 << 12
#: The largest number of nodes.
MOST_NODES = 1 << 18
#: The largest number of nodes for triangles: n²/2 words, three times, and n³ products at a member.
MOST_MATRIX_NODES = 20_000
#: Rows of the matrix that are counted at once.
ROWS = 512
#: Answers that are sums of bits. The others are counts.
LINEAR = ("edges", "degrees", "mixing")
#: The largest number of groups of a public partition.
MOST_GROUPS = 64
#: How many layers of a chunk are numbered; none has more.
_STRIDE = 16
#: The label of the digest that all parties sign.
SEALED_VIEW = b"silograph/sealed/view/v2"

#: All steps of a silo or a helper, and of the coordinator.
SEALED_PARTY_STEPS = {**PARTY_STEPS, (State.CHUNKS, "tell"): State.CHUNKS}
SEALED_COORDINATOR_STEPS = {
    **COORDINATOR_STEPS,
    **{(State.CHUNKS, name): State.CHUNKS for name in ("tell", "sum", "done")},
    # Messages may overtake each other: how far a member was may come after the answer.
    (State.DONE, "done"): State.DONE,
}


class NoiseChunk(NamedTuple):
    """Some of the numbers of an output's noise."""

    output: int
    first: int
    size: int


@dataclass(frozen=True)
class SealedParameters(Seating):
    """What all parties of a run must agree on, and sign."""

    silos: int
    #: The places of the four members, in their order.
    members: tuple[int, ...]
    nodes: int
    #: The digest of the node universe that the pairs belong to.
    subject: bytes
    outputs: tuple[Output, ...]
    chunk_pairs: int = CHUNK_PAIRS
    #: The shape of folded nodes, whose rows are the ``nodes``, and whose buckets are the ``pairs``.
    layout: Layout | None = None
    #: The group of each node in one byte, and the number of groups, if edges are counted by groups.
    labels: bytes = b""
    groups: int = 0
    pairs: int = field(init=False)

    def __post_init__(self) -> None:
        pairs = self.nodes * (self.nodes - 1) // 2
        if self.layout is not None:
            self._check_layout(self.layout)
            pairs = self.layout.buckets
        object.__setattr__(self, "pairs", pairs)
        self.check_chunks()
        if self.silos > 64 or self.chunk_pairs > CHUNK_PAIRS or self.nodes > MOST_NODES:
            raise ArgumentError(
                f"at most 64 silos, {MOST_NODES:,} nodes and {CHUNK_PAIRS:,} pairs in a chunk"
            )
        names = [output.name for output in self.outputs]
        check_matrix(self.nodes, self.silos, names)
        if not names or len(set(names)) != len(names):
            raise ArgumentError("there must be at least one output, and each at most once")
        bounded = [output for output in self.outputs if isinstance(output.noise, Bounded)]
        if bounded and (self.degrees is None or any(o.name in LINEAR for o in bounded)):
            raise ArgumentError("noise bounded by degrees needs degrees with their own noise")
        if self.outputs[len(self.outputs) - len(bounded) :] != tuple(bounded):
            raise ArgumentError("outputs with bounded noise come last")
        for output in bounded:
            self._check_bounded(output)
        if self.layout is not None and self.has("triangles") and not self.weighted:
            raise ArgumentError("the triangles of folded nodes are weighted")
        self._check_groups()
        self.check_members()
        self.width  # noqa: B018 - refused here if the numbers are too large

    def _check_layout(self, layout: Layout) -> None:
        """Refuse what makes no counts of folded cells."""
        if layout.rows != self.nodes or layout.sub != 1:
            raise ArgumentError("folded nodes are counted by rows, with one sub-bucket for a sign")
        if self.has("two_stars"):
            raise ArgumentError("the 2-stars of folded nodes are not counted")

    def _check_groups(self) -> None:
        """Refuse groups that are not one for each node, and groups that nobody asks for."""
        if self.has("mixing") != bool(self.groups or self.labels):
            raise ArgumentError("edges by groups need groups, and nothing else takes them")
        if not self.has("mixing"):
            return
        if self.layout is not None:
            raise ArgumentError("edges by groups are counted on pairs, not on folded nodes")
        if not 1 <= self.groups <= MOST_GROUPS:
            raise ArgumentError(f"there are 1 to {MOST_GROUPS} groups, not {self.groups}")
        if len(self.labels) != self.nodes or max(self.labels) >= self.groups:
            raise ArgumentError("there is not one group for each node")

    def _check_bounded(self, output: Output) -> None:
        """Refuse a bound that a member could lower, and one below what an edge can change."""
        if self.degrees is None or not isinstance(self.outputs[self.degrees].noise, Coins):
            raise ArgumentError("degrees that bound other noise have noise that nobody knows")
        if isinstance(output.noise, Weighted):
            cells, layout = output.noise.cells, self.layout
            if layout is None or (cells.groups, cells.hubs) != (layout.groups, layout.hubs):
                raise ArgumentError("weights are for the cells of folded nodes, one for each")
            return
        most = (self.nodes - 2) * (2 if output.name == "two_stars" else 1)
        if isinstance(output.noise, Bounded) and output.noise.cap < most:
            raise ArgumentError(f"the bound of {output.name} must not end below {most}")

    def has(self, name: str) -> bool:
        """Whether this output is asked for."""
        return any(output.name == name for output in self.outputs)

    @property
    def bounded(self) -> bool:
        """Whether the noise of some output depends on the noisy degrees."""
        return any(isinstance(output.noise, Bounded) for output in self.outputs)

    @property
    def weighted(self) -> bool:
        """Whether triangles are counted with weights that depend on the noisy degrees."""
        return any(isinstance(output.noise, Weighted) for output in self.outputs)

    @property
    def degrees(self) -> int | None:
        """The number of the output that is the degrees."""
        for number, output in enumerate(self.outputs):
            if output.name == "degrees" and not isinstance(output.noise, Bounded):
                return number
        return None

    def length(self, output: Output) -> int:
        """The number of numbers in an output."""
        if output.name == "mixing":
            return self.groups * (self.groups + 1) // 2
        return self.nodes if output.name == "degrees" else 1

    @cached_property
    def width(self) -> int:
        """The bytes of a number that travel: enough for every answer with its noise and sign."""
        n = self.nodes
        most = {"edges": self.pairs, "mixing": self.pairs, "degrees": n}
        most |= {"two_stars": n**3, "triangles": n**3}
        if self.layout is not None:
            most["degrees"] = 2 * n
        for output in self.outputs:
            if isinstance(output.noise, Weighted):
                most[output.name] = output.noise.largest
            most[output.name] += FACTORS[output.name] * output.noise.reach
        largest = max(most[output.name] for output in self.outputs)
        width = (largest.bit_length() + 8) // 8
        if width > 8:
            raise ArgumentError("the noise is too large to be counted with 64 bits")
        return width

    @cached_property
    def circuit(self) -> _core.CommitteeCircuit:  # type: ignore[override]
        """The gates of a chunk of pairs."""
        return _core.CommitteeCircuit.counting(self.owners, self.width)

    # --- chunks: those of the pairs, then those of the noise ----------------------------------

    @cached_property
    def noise_chunks(self) -> tuple[NoiseChunk, ...]:
        """The chunks of noise, in the order of outputs."""
        return tuple(
            NoiseChunk(number, first, min(CHUNK_NUMBERS, self.length(output) - first))
            for number, output in enumerate(self.outputs)
            for first in range(0, self.length(output), CHUNK_NUMBERS)
        )

    @property
    def items(self) -> int:
        """The number of all chunks."""
        return self.chunks + len(self.noise_chunks)

    @property
    def unbounded_items(self) -> int:
        """The number of chunks that need no bound."""
        known = [not isinstance(self.outputs[c.output].noise, Bounded) for c in self.noise_chunks]
        return self.chunks + sum(known)

    @property
    def stride(self) -> int:
        """How many layers of a chunk are numbered."""
        return _STRIDE

    def noise_chunk(self, item: int) -> NoiseChunk | None:
        """The chunk of noise with this number; None if it is one of pairs."""
        return self.noise_chunks[item - self.chunks] if item >= self.chunks else None

    def travels(self, item: int, place: int) -> int | None:
        """The component of a party's input that travels: of its bits, or of its part of noise."""
        if item >= self.items:
            return None
        chunk = self.noise_chunk(item)
        if chunk is None:
            return super().travels(item, place)
        member = self.number(place)
        if member is None or not isinstance(self.outputs[chunk.output].noise, Parts):
            return None
        return _core.committee_vector(member, place)

    def owner(self, item: int, place: int) -> int:
        """The number of a silo, or for noise that of a member."""
        if self.noise_chunk(item) is None:
            return place
        member = self.number(place)
        assert member is not None  # noqa: S101 - nobody else has an input
        return member

    def input_bytes(self, item: int) -> int:
        """The size of an input."""
        chunk = self.noise_chunk(item)
        return self.bit_bytes(item) if chunk is None else chunk.size * self.width

    def opened_bytes(self, number: int) -> int:
        """The size of a sum of two components of an output."""
        return self.length(self.outputs[number]) * self.width

    @property
    def bands(self) -> int:
        """The number of steps in which a member counts triangles."""
        return -(-self.nodes // ROWS) if self.has("triangles") else 0

    @property
    def digest(self) -> bytes:
        """SHA-256 of every parameter."""
        numbers = (self.silos, self.nodes, self.chunk_pairs, CHUNK_NUMBERS, self.width)
        fields = [str(number).encode() for number in (*numbers, *self.members)]
        if self.layout is not None:
            shape = (self.layout.groups, self.layout.hubs, self.layout.sub)
            fields.append(pack(b"fold", *(str(number).encode() for number in shape)))
        if self.groups:
            fields.append(pack(b"groups", str(self.groups).encode(), self.labels))
        for output in self.outputs:
            noise = (str(value).encode() for value in output.noise.fields())
            fields.append(pack(output.name.encode(), *noise))
        return hashlib.sha256(pack(b"silograph/sealed/v2", self.subject, *fields)).digest()


def coins_of(noise: Coins) -> list[list[bool]]:
    """The digits of each coin's numerator, lowest first."""
    return [[bool(k >> place & 1) for place in range(noise.places)] for k in noise.numerators]


@dataclass(frozen=True)
class SealedCost:
    """The traffic and memory of a member, in bytes, without envelopes."""

    up: int
    down: int
    memory: int


def member_cost(
    nodes: int, silos: int, outputs: Collection[str], layout: Layout | None = None
) -> SealedCost:
    """The traffic and memory of a member, on average over the four; with a layout, of its rows.

    A pair takes two bits for the member's own input, six bits a gate and six numbers, of all four
    together. Memory is three matrices with one word per pair, if triangles are counted, and the
    chunks in progress.

    >>> cost = member_cost(4039, 4, ["triangles"])
    >>> cost.up // 2**20, cost.memory // 2**20
    (64, 290)
    >>> cost = member_cost(4096, 4, ["triangles"], Layout(4096))
    >>> cost.up // 2**20, cost.memory // 2**20
    (204, 295)
    """
    cells, cubes = nodes * (nodes - 1) // 2, "triangles" in outputs
    pairs = cells if layout is None else layout.buckets
    counts = cubes or "two_stars" in outputs
    width = ((nodes**3 if counts else pairs).bit_length() + 10) // 8
    if layout is not None and cubes:
        width = 8  # for weights
    bits = pairs * (2 + 6 * (silos - 1) / 4) / 8
    numbers = 1.5 * width * pairs
    outside = pairs / 8 * max(silos - MEMBERS, 0) * 3 / 4
    chunk = 8 * min(CHUNK_PAIRS, pairs) * 9
    return SealedCost(
        up=round(bits + numbers),
        down=round(bits + numbers + outside),
        memory=3 * 8 * cells * cubes + WINDOW * chunk + 2 * ROWS * 8 * nodes * cubes,
    )


def check_matrix(nodes: int, silos: int, names: Iterable[str]) -> None:
    """Refuse triangles if there are too many nodes, and say what they would cost."""
    names = list(names)
    if "triangles" in names and nodes > MOST_MATRIX_NODES:
        cost = member_cost(nodes, silos, names)
        raise ArgumentError(
            f"triangles are for at most {MOST_MATRIX_NODES:,} nodes; {nodes:,} would take"
            f" {cost.memory / 1e9:,.1f} GB of memory at every member, which would send"
            f" {cost.up / 1e9:,.1f} GB and receive {cost.down / 1e9:,.1f} GB"
        )


@dataclass(frozen=True)
class SealedResult:
    """What a run publishes: noisy integers by name."""

    values: dict[str, npt.NDArray[np.int64]]

    def number(self, name: str) -> int:
        """An answer that is one number."""
        return int(self.values[name][0])

    @property
    def degrees(self) -> npt.NDArray[np.int64]:
        """The noisy degrees, one number per node."""
        return self.values["degrees"]
