"""The sealed protocol: the union is never opened, only noisy answers about it.

Rounds
    ``key``         every party, the coordinator too, publishes a fresh X25519 run key
    ``keys``        the coordinator relays all of them
    ``confirm``     each silo signs a digest of roster, parameters and all run keys
    ``confirms``    the coordinator relays all; a silo goes on only if all are on one digest
    ``tell``        each silo tells every other its sender key, encrypted for each
    ``seed``        the coordinator, as the dealer, sends each silo the seed of its shares, encrypted
    ``ready``       each silo says that its ledger has been charged
    ``readys``      the coordinator relays all; only now is anything opened
    ``deal``        the dealer's corrections of one chunk, to the last silo, encrypted
    ``open``        a silo's share of what one step of one chunk opens, encrypted to the other silos
    ``deal-matrix`` the dealer's corrections of R² for one chunk, to the last silo, encrypted
    ``deal-nodes``  its corrections of n squares, to the last silo, encrypted
    ``open-nodes``  a silo's share of what is opened to square degrees, encrypted to the other silos
    ``output``      a silo's noisy share of the answers, hidden by zero-shares, to all

What is opened, chunk by chunk: ⌈log2 m⌉ levels of an AND-tree over the silos' bits, then daBits,
then, for triangles, D = X − R; at the end, for 2-stars, degrees minus random numbers. All of it is
uniform for any m − 1 silos. The coordinator relays it without a key to read it: it dealt the
randomness, and together they would show every edge.

Answers: each silo adds its noise inside its share and a share of zero that the coordinator does not
know, and signs the result to everyone. All parties sum these shares themselves; they are what is
published. Where noise depends on the largest noisy degree, every silo computes it from the degrees
that it summed, and says in its next message which degrees those were.

Trust: silos are semi-honest. The coordinator deals honestly, and colludes with no silo.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

from silograph import _core
from silograph.errors import ArgumentError, PayloadError
from silograph.protocol.chunks import Chunked
from silograph.protocol.wire import pack

__all__ = [
    "CHUNK_PAIRS",
    "COORDINATOR_STEPS",
    "DEALT_ROUNDS",
    "MOST_MATRIX_NODES",
    "MOST_NODES",
    "OPENED_ROUNDS",
    "SILO_STEPS",
    "WINDOW",
    "BoundedNoise",
    "Noise",
    "Output",
    "SealedParameters",
    "SealedResult",
    "State",
]

#: Pairs in a chunk: 2 MiB of words.
CHUNK_PAIRS = 1 << 18
#: Chunks that are under way at once.
WINDOW = 4
#: The most nodes: degrees travel in one message.
MOST_NODES = 1 << 18
#: The most nodes for triangles, which take n²/2 words at every party and n³/2 products.
MOST_MATRIX_NODES = 20_000
#: Rounds that the dealer encrypts, and those that a silo encrypts to the others.
DEALT_ROUNDS = ("seed", "deal", "deal-matrix", "deal-nodes")
OPENED_ROUNDS = ("open", "open-nodes")

#: What an answer is multiplied by inside the shares; its noise is too.
FACTORS = {"edges": 1, "degrees": 1, "two_stars": 2, "triangles": 6}

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Noise:
    """What each silo adds to an answer: integers of a given law, drawn exactly.

    ``shared``: a Pólya difference, of which ``shares`` sum to one discrete Laplace of this scale;
    ``each``: a whole discrete Laplace.
    """

    kind: Literal["shared", "each"]
    numerator: int
    denominator: int
    shares: int = 1

    def __post_init__(self) -> None:
        _check_kind(self.kind, self.shares)
        if not (1 <= self.numerator <= 1 << 62 and 1 <= self.denominator <= 1 << 62):
            raise ArgumentError("a noise's scale is a ratio of integers from 1 to 2^62")
        if self.numerator > self.denominator << 50:
            raise ArgumentError("a noise's scale is at most 2^50")

    def draw(self, count: int, seed: bytes) -> npt.NDArray[np.int64]:
        """One silo's part."""
        scale = self.numerator, self.denominator
        if self.kind == "each":
            return _core.discrete_laplace(count, *scale, seed)
        return _core.polya_difference(count, *scale, self.shares, seed)

    def fields(self) -> tuple[object, ...]:
        """What the digest of the parameters covers."""
        return self.kind, self.numerator, self.denominator, self.shares


@dataclass(frozen=True)
class BoundedNoise:
    """Noise of scale factor·bound/(numerator/denominator), known when the degrees are.

    bound = min(cap, largest noisy degree + margin), and at least 1.
    """

    kind: Literal["shared", "each"]
    factor: int
    cap: int
    margin: int
    numerator: int
    denominator: int
    shares: int = 1

    def __post_init__(self) -> None:
        _check_kind(self.kind, self.shares)
        if min(self.factor, self.cap, self.numerator, self.denominator) < 1 or self.margin < 0:
            raise ArgumentError("factor, cap and the ratio must be positive, the margin not less")
        self.at(self.cap)

    def at(self, largest: int) -> Noise:
        """The noise, from the largest noisy degree."""
        bound = max(1, min(self.cap, largest + self.margin))
        scale, unit = self.factor * bound * self.denominator, self.numerator
        common = math.gcd(scale, unit)
        return Noise(self.kind, scale // common, unit // common, self.shares)

    def fields(self) -> tuple[object, ...]:
        """What the digest of the parameters covers."""
        given = (self.factor, self.cap, self.margin, self.numerator, self.denominator, self.shares)
        return ("bounded", self.kind, *given)


def _check_kind(kind: str, shares: int) -> None:
    if kind not in ("shared", "each") or shares < 1 or (kind == "each" and shares != 1):
        raise ArgumentError("noise is 'shared' among one silo or more, or of 'each'")


@dataclass(frozen=True)
class Output:
    """One answer, and the noise that it is published with."""

    name: Literal["edges", "degrees", "two_stars", "triangles"]
    noise: Noise | BoundedNoise

    def __post_init__(self) -> None:
        if self.name not in FACTORS:
            raise ArgumentError(f"unknown output {self.name!r}; choose from {', '.join(FACTORS)}")


@dataclass(frozen=True)
class SealedParameters(Chunked):
    """What all parties of a run must agree on, and sign."""

    silos: int
    nodes: int
    #: What the pairs are about: the digest of the node universe.
    subject: bytes
    outputs: tuple[Output, ...]
    chunk_pairs: int = CHUNK_PAIRS
    pairs: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", self.nodes * (self.nodes - 1) // 2)
        self.check_chunks()
        if self.silos > 64 or self.chunk_pairs > CHUNK_PAIRS or self.nodes > MOST_NODES:
            raise ArgumentError(
                f"there may be 64 silos, {MOST_NODES:,} nodes and {CHUNK_PAIRS:,} pairs in a chunk"
            )
        names = [output.name for output in self.outputs]
        if not names or len(set(names)) != len(names):
            raise ArgumentError("there must be an output, and none twice")
        if self.phases[1:] and not any(output.name == "degrees" for output in self.phases[0]):
            raise ArgumentError("noise that degrees bound needs degrees with noise of their own")

    def has(self, name: str) -> bool:
        """Whether that is asked for."""
        return any(output.name == name for output in self.outputs)

    @property
    def phases(self) -> tuple[tuple[Output, ...], ...]:
        """The outputs that are published together: first those with noise that is known."""
        known = tuple(o for o in self.outputs if not isinstance(o.noise, BoundedNoise))
        bounded = tuple(o for o in self.outputs if isinstance(o.noise, BoundedNoise))
        return (known, bounded) if bounded else (known,)

    def length(self, output: Output) -> int:
        """The number of words of an output."""
        return self.nodes if output.name == "degrees" else 1

    @property
    def levels(self) -> int:
        """Levels of the AND-tree."""
        return (self.silos - 1).bit_length()

    @property
    def steps(self) -> int:
        """Openings of a chunk: the levels, daBits, and for triangles D."""
        return self.levels + 1 + self.has("triangles")

    def opening_bytes(self, chunk: int, step: int) -> int:
        """The bytes that each silo opens in a step of a chunk."""
        size = self.chunk_size(chunk)
        if step > self.levels:
            return 8 * size
        left = self.silos
        for _ in range(step):
            left -= left // 2
        vectors = 2 * (left // 2) if step < self.levels else 1
        return vectors * -(-size // 64) * 8

    def correction_bytes(self, chunk: int) -> int:
        """The bytes of a chunk's corrections: a product for each gate, then a word a pair."""
        size = self.chunk_size(chunk)
        return 8 * ((self.silos - 1) * -(-size // 64) + size)

    @property
    def digest(self) -> bytes:
        """SHA-256 of every parameter."""
        numbers = (self.silos, self.nodes, self.chunk_pairs)
        fields = [str(number).encode() for number in numbers]
        for output in self.outputs:
            noise = (str(value).encode() for value in output.noise.fields())
            fields.append(pack(output.name.encode(), *noise))
        return hashlib.sha256(pack(b"silograph/sealed/v1", self.subject, *fields)).digest()


@dataclass(frozen=True)
class SealedResult:
    """What a run publishes: integers, each with its noise, and the laws of that noise."""

    values: Mapping[str, npt.NDArray[np.int64]]
    noises: Mapping[str, Noise]

    def __getitem__(self, name: str) -> int:
        """One number."""
        return int(self.values[name][0])

    @property
    def degrees(self) -> npt.NDArray[np.int64]:
        """One number a node."""
        return self.values["degrees"]


class Answers:
    """The published shares, summed phase by phase; every party does this for itself."""

    def __init__(self, parameters: SealedParameters) -> None:
        self._parameters = parameters
        self._values: dict[str, npt.NDArray[np.int64]] = {}
        self._noises: dict[str, Noise] = {}
        self._seen = b""
        self._start()

    def _start(self) -> None:
        self.came: set[int] = set()
        self._sum = np.zeros(self.words, dtype=np.uint64)

    @property
    def phase(self) -> int:
        """How many phases are complete."""
        done = [phase for phase in self._parameters.phases if phase[0].name in self._values]
        return len(done)

    @property
    def complete(self) -> bool:
        """Whether all phases are."""
        return self.phase == len(self._parameters.phases)

    @property
    def words(self) -> int:
        """The words of a share in the present phase."""
        if self.complete:
            return 0
        return sum(map(self._parameters.length, self._parameters.phases[self.phase]))

    def noise(self, output: Output) -> Noise:
        """The noise of an output of the present phase."""
        if isinstance(output.noise, Noise):
            return output.noise
        return output.noise.at(int(self._values["degrees"].max()))

    @property
    def digest(self) -> bytes:
        """What has been published so far: a silo says it with its next share."""
        return hashlib.sha256(pack(b"silograph/sealed/answers/v1", self._seen)).digest()

    def add(self, sender: int, share: Words) -> None:
        """Add a silo's share; with the last one the phase is complete."""
        self._sum += share
        self.came.add(sender)
        if len(self.came) == self._parameters.silos:
            self._open()

    def _open(self) -> None:
        total, found = self._sum.view(np.int64), {}
        noises = {o.name: self.noise(o) for o in self._parameters.phases[self.phase]}
        for output in self._parameters.phases[self.phase]:
            length, factor = self._parameters.length(output), FACTORS[output.name]
            own, total = total[:length], total[length:]
            if (own % factor).any():
                raise PayloadError(f"the shares of {output.name} do not add up", round="output")
            found[output.name] = own // factor
        self._seen = pack(self._seen, self._sum.tobytes())
        self._values |= found
        self._noises |= noises
        self._start()

    def result(self) -> SealedResult:
        """All answers, when all phases are complete."""
        return SealedResult(dict(self._values), dict(self._noises))


class State(StrEnum):
    """Where a machine is."""

    NEW = "new"
    KEYS = "waiting for keys"
    CONFIRMS = "waiting for confirmations"
    TELLS = "waiting for sender keys and a seed"
    AGREED = "agreed, not yet authorised"
    READY = "waiting for all to be ready"
    OPENING = "opening"
    COUNTING = "all opened, not yet counted"
    OUTPUTS = "outputs"
    DONE = "done"


#: Every step that a silo can take; anything else is refused and changes nothing.
SILO_STEPS: dict[tuple[State, str], State] = {
    (State.NEW, "start"): State.KEYS,
    (State.KEYS, "keys"): State.CONFIRMS,
    (State.CONFIRMS, "confirms"): State.TELLS,
    (State.TELLS, "tell"): State.TELLS,
    (State.TELLS, "seed"): State.TELLS,
    (State.TELLS, "all told"): State.AGREED,
    (State.AGREED, "authorise"): State.READY,
    (State.READY, "readys"): State.OPENING,
    (State.OPENING, "deal"): State.OPENING,
    (State.OPENING, "open"): State.OPENING,
    (State.OPENING, "deal-matrix"): State.OPENING,
    (State.OPENING, "deal-nodes"): State.OPENING,
    (State.OPENING, "open-nodes"): State.OPENING,
    (State.OPENING, "all opened"): State.COUNTING,
    (State.COUNTING, "output"): State.COUNTING,
    (State.COUNTING, "count"): State.OUTPUTS,
    (State.OUTPUTS, "output"): State.OUTPUTS,
    (State.OUTPUTS, "all outputs"): State.DONE,
}
#: Every step of the coordinator.
COORDINATOR_STEPS: dict[tuple[State, str], State] = {
    (State.KEYS, "key"): State.KEYS,
    (State.KEYS, "all keys"): State.CONFIRMS,
    (State.CONFIRMS, "confirm"): State.CONFIRMS,
    (State.CONFIRMS, "all confirms"): State.TELLS,
    (State.TELLS, "tell"): State.TELLS,
    (State.TELLS, "all tells"): State.READY,
    (State.READY, "ready"): State.READY,
    (State.READY, "all readys"): State.OPENING,
    (State.OPENING, "open"): State.OPENING,
    (State.OPENING, "open-nodes"): State.OPENING,
    (State.OPENING, "output"): State.OPENING,
    (State.OPENING, "all outputs"): State.DONE,
}
