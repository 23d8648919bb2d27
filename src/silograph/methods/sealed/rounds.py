"""The sealed protocol: its rounds, its parameters, and the sums of its published shares.

The union is never opened; only noisy answers about it are.

Rounds
    ``key``         every party, including the coordinator, publishes a fresh X25519 run key
    ``keys``        the coordinator relays all of them
    ``confirm``     each silo signs a digest of roster, parameters and all run keys
    ``confirms``    the coordinator relays all; a silo continues only if all digests agree
    ``tell``        each silo tells every other its sender key, encrypted for each
    ``seed``        the dealer (the coordinator) sends each silo the seed of its shares, encrypted
    ``ready``       each silo says that its ledger has been charged
    ``readys``      the coordinator relays all; nothing is opened before this
    ``deal``        the dealer's corrections of one chunk, to the last silo, encrypted
    ``open``        a silo's share of one step of one chunk, encrypted for the other silos
    ``deal-matrix`` the dealer's corrections of R² for one chunk, to the last silo, encrypted
    ``deal-nodes``  the dealer's corrections of n squares, to the last silo, encrypted
    ``open-nodes``  a silo's share of the opening that squares degrees, encrypted for other silos
    ``output``      a silo's noisy share of the answers, hidden by zero-shares, to all

Openings
    Chunk by chunk, the silos open ⌈log2 m⌉ levels of an AND-tree over their bits, then daBits,
    then, for triangles, D = X − R. At the end, for 2-stars, they open degrees minus random numbers.
    All opened values are uniform for any m − 1 silos. The coordinator relays them but has no key to
    read them. It dealt the randomness, so with the opened values it could compute every edge.
Answers
    Each silo adds its noise to its share, adds a share of zero that the coordinator does not know,
    and signs the result for everyone. Every party sums these published shares itself. If noise
    depends on the largest noisy degree, every silo computes it from the degrees that it summed, and
    its next message says which degrees these were.
Trust
    Silos are semi-honest. The coordinator deals honestly, and colludes with no silo.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from silograph.errors import ArgumentError, PayloadError
from silograph.messages.envelope import Envelope
from silograph.messages.identity import COORDINATOR, pack
from silograph.messages.rounds import Chunked
from silograph.methods.sealed.noise import FACTORS, BoundedNoise, Noise, Output

__all__ = [
    "CHUNK_PAIRS",
    "COORDINATOR_STEPS",
    "DEALT_ROUNDS",
    "MOST_MATRIX_NODES",
    "MOST_NODES",
    "OPENED_ROUNDS",
    "SILO_STEPS",
    "WINDOW",
    "Answers",
    "SealedCost",
    "SealedParameters",
    "SealedResult",
    "State",
    "check_matrix",
    "relayed_slot",
    "sealed_cost",
]


# --- Parameters, states and steps -----------------------------------------------------------------

#: The number of pairs in a chunk: 2 MiB of words.
CHUNK_PAIRS = 1 << 18
#: The number of chunks in progress at the same time.
WINDOW = 4
#: The largest number of nodes, since degrees are sent in one message.
MOST_NODES = 1 << 18
#: The largest number of nodes for triangles: n²/2 words at every party and n³/2 products.
MOST_MATRIX_NODES = 20_000
#: The rounds that the dealer encrypts, and those that a silo encrypts for the others.
DEALT_ROUNDS = ("seed", "deal", "deal-matrix", "deal-nodes")
OPENED_ROUNDS = ("open", "open-nodes")


@dataclass(frozen=True)
class SealedParameters(Chunked):
    """What all parties of a run must agree on, and sign."""

    silos: int
    nodes: int
    #: The digest of the node universe that the pairs belong to.
    subject: bytes
    outputs: tuple[Output, ...]
    chunk_pairs: int = CHUNK_PAIRS
    pairs: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", self.nodes * (self.nodes - 1) // 2)
        self.check_chunks()
        if self.silos > 64 or self.chunk_pairs > CHUNK_PAIRS or self.nodes > MOST_NODES:
            raise ArgumentError(
                f"at most 64 silos, {MOST_NODES:,} nodes and {CHUNK_PAIRS:,} pairs in a chunk"
            )
        names = [output.name for output in self.outputs]
        check_matrix(self.nodes, self.silos, names)
        if not names or len(set(names)) != len(names):
            raise ArgumentError("there must be at least one output, and each at most once")
        if self.phases[1:] and not any(output.name == "degrees" for output in self.phases[0]):
            raise ArgumentError("noise bounded by degrees needs degrees with their own noise")

    def has(self, name: str) -> bool:
        """Whether this output is asked for."""
        return any(output.name == name for output in self.outputs)

    @property
    def phases(self) -> tuple[tuple[Output, ...], ...]:
        """The outputs in groups that are published together, first those with known noise."""
        known = tuple(o for o in self.outputs if not isinstance(o.noise, BoundedNoise))
        bounded = tuple(o for o in self.outputs if isinstance(o.noise, BoundedNoise))
        return (known, bounded) if bounded else (known,)

    def length(self, output: Output) -> int:
        """The number of words in an output."""
        return self.nodes if output.name == "degrees" else 1

    @property
    def levels(self) -> int:
        """The number of levels in the AND-tree."""
        return (self.silos - 1).bit_length()

    @property
    def steps(self) -> int:
        """The number of openings of a chunk: the levels, daBits, and D for triangles."""
        return self.levels + 1 + self.has("triangles")

    def opening_bytes(self, chunk: int, step: int) -> int:
        """The number of bytes that each silo opens in a step of a chunk."""
        size = self.chunk_size(chunk)
        if step > self.levels:
            return 8 * size
        left = self.silos
        for _ in range(step):
            left -= left // 2
        vectors = 2 * (left // 2) if step < self.levels else 1
        return vectors * -(-size // 64) * 8

    def correction_bytes(self, chunk: int) -> int:
        """The size of a chunk's corrections: a product for each gate, then a word per pair."""
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
class SealedCost:
    """The traffic and memory of the silo that needs most, in bytes, without envelopes."""

    up: int
    down: int
    memory: int


def sealed_cost(nodes: int, silos: int, outputs: Collection[str]) -> SealedCost:
    """The traffic and memory of the last silo, which also receives the dealer's corrections.

    Memory is the opened matrix, with one word per pair, the chunks in progress, and temporarily a
    band of 512 rows. The dealer needs as much.

    >>> sealed_cost(4039, 4, ["triangles"]).up // 2**20
    69
    """
    pairs, words = nodes * (nodes - 1) // 2, 8 * nodes
    cubes, squares = "triangles" in outputs, "two_stars" in outputs
    # Two bits for each AND, one for the daBit, a word for D; a correction for each AND and word.
    opened = pairs * (2 * (silos - 1) + 1) // 8 + 8 * pairs * cubes + words * squares
    corrected = pairs * (silos - 1) // 8 + 8 * pairs * (1 + cubes) + words * squares
    answers = words * ("degrees" in outputs)
    chunk = 8 * min(CHUNK_PAIRS, pairs) * (3 + silos // 16)
    held = 8 * pairs * cubes + WINDOW * chunk + (2 * 512 * words) * cubes
    return SealedCost(
        up=opened + answers, down=(silos - 1) * (opened + answers) + corrected, memory=held
    )


class State(StrEnum):
    """The states of a machine."""

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


#: All steps that a silo can take; anything else is refused and changes nothing.
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
#: All steps of the coordinator.
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


def check_matrix(nodes: int, silos: int, names: Collection[str]) -> None:
    """Refuse triangles if there are too many nodes, and say what they would cost."""
    if "triangles" in names and nodes > MOST_MATRIX_NODES:
        cost = sealed_cost(nodes, silos, names)
        raise ArgumentError(
            f"triangles are for at most {MOST_MATRIX_NODES:,} nodes; {nodes:,} would take"
            f" {cost.memory / 1e9:,.1f} GB of memory at every party, and each silo would send"
            f" {cost.up / 1e9:,.1f} GB and receive {cost.down / 1e9:,.1f} GB"
        )


def relayed_slot(parameters: SealedParameters, message: Envelope) -> int:
    """The slot of a message, from sequence and sender: the coordinator relays for all silos."""
    sender = 0 if message.sender == COORDINATOR else message.sender + 1
    return message.sequence * (parameters.silos + 1) + sender


# --- The answers: published shares, which every party sums for itself -----------------------------

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class SealedResult:
    """What a run publishes: noisy integers, and the laws of their noise."""

    values: Mapping[str, npt.NDArray[np.int64]]
    noises: Mapping[str, Noise]

    def number(self, name: str) -> int:
        """An answer that is one number."""
        return int(self.values[name][0])

    @property
    def degrees(self) -> npt.NDArray[np.int64]:
        """The noisy degrees, one number per node."""
        return self.values["degrees"]


class Answers:
    """The published shares, summed phase by phase by every party for itself."""

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
        """The number of complete phases."""
        done = [phase for phase in self._parameters.phases if phase[0].name in self._values]
        return len(done)

    @property
    def complete(self) -> bool:
        """Whether all phases are complete."""
        return self.phase == len(self._parameters.phases)

    @property
    def words(self) -> int:
        """The number of words of a share in the present phase."""
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
        """The digest of everything published so far; a silo sends it with its next share."""
        return hashlib.sha256(pack(b"silograph/sealed/answers/v1", self._seen)).digest()

    def add(self, sender: int, share: Words) -> None:
        """Add a silo's share; the last one completes the phase."""
        total = self._sum + share
        if len(self.came) + 1 == self._parameters.silos:
            self._open(total)
        else:
            self._sum = total
            self.came.add(sender)

    def _open(self, total: Words) -> None:
        outputs, rest = self._parameters.phases[self.phase], total.view(np.int64)
        found: dict[str, npt.NDArray[np.int64]] = {}
        noises: dict[str, Noise] = {output.name: self.noise(output) for output in outputs}
        for output in outputs:
            length, factor = self._parameters.length(output), FACTORS[output.name]
            own, rest = rest[:length], rest[length:]
            if (own % factor).any():
                raise PayloadError(f"the shares of {output.name} do not add up", round="output")
            found[output.name] = own // factor
        self._seen = pack(self._seen, total.tobytes())
        self._values |= found
        self._noises |= noises
        self._start()

    def result(self) -> SealedResult:
        """All answers; only available when all phases are complete."""
        return SealedResult(dict(self._values), dict(self._noises))
