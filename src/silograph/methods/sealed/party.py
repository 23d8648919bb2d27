"""A member of the committee that counts, and the machine of any silo or helper.

The rounds are in :mod:`silograph.methods.sealed.rounds`.
"""

import hashlib
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from silograph import _core
from silograph.dp.cells import CellWeights
from silograph.messages.envelope import Envelope
from silograph.messages.identity import COORDINATOR, pack
from silograph.methods.committee.member import Part
from silograph.methods.committee.party import CommitteeParty
from silograph.methods.committee.rounds import MEMBERS
from silograph.methods.sealed.noise import FACTORS, Bounded, Coins, Parts, Weighted
from silograph.methods.sealed.rounds import (
    LINEAR,
    ROWS,
    SEALED_PARTY_STEPS,
    SEALED_VIEW,
    NoiseChunk,
    SealedParameters,
    coins_of,
)

__all__ = ["SealedPart", "SealedParty"]


class SealedPart(Part):
    """One member of a committee that counts: from seeds to noisy answers."""

    def __init__(
        self, parameters: SealedParameters, binding: Any, secret: _core.RunSecret, *more: Any
    ) -> None:
        super().__init__(parameters, binding, secret, *more)
        given = self._parameters = parameters
        self._secret = secret
        self._count = self._new_count()
        #: The noise of each output: its law, as soon as that is known, and the shared numbers.
        self._laws: list[Coins | Parts | None] = [
            None if isinstance(output.noise, Bounded) else output.noise for output in given.outputs
        ]
        self._noise = [
            _core.CommitteeNumbers(self._number, given.width, given.length(output))
            for output in given.outputs
        ]
        #: How many chunks of pairs and rows of the matrix have been counted.
        self._counted = 0
        self._rows = 0 if given.has("triangles") else given.nodes
        #: Whether cells have their weights, if they get any, and what the noise of triangles is
        #: labelled with.
        self._weighed = not given.weighted
        self._label = b""
        #: The chunks of noise that are done, and the outputs that were sent.
        self._noise_done: set[int] = set()
        self._published: set[int] = set()
        #: The noisy degrees, while the others have not told us what we lack of them.
        self._degrees: _core.CommitteeNumbers | None = None

    def _new_count(self) -> _core.CommitteeCount:
        given = self._parameters
        triangles, layout = given.has("triangles"), given.layout
        if layout is None:
            count = _core.CommitteeCount(self._number, given.nodes, given.width, triangles)
            if given.groups:
                labels = np.frombuffer(given.labels, dtype=np.uint8).astype(np.uint32)
                count.by_type(labels, given.groups)
            return count
        shape = (layout.groups, layout.hubs, layout.sub)
        return _core.CommitteeCount.folded(self._number, shape, given.width, triangles)

    # --- chunks -------------------------------------------------------------------------------

    def _new_core(self, number: int) -> _core.CommitteeChunk | _core.CommitteeParts:
        given, chunk = self._parameters, self._parameters.noise_chunk(number)
        if chunk is None:
            size, circuit = given.chunk_size(number), given.circuit
            return _core.CommitteeChunk(circuit, self._number, self._view, number, size)
        law = self._law(chunk)
        if isinstance(law, Parts):
            return _core.CommitteeParts(self._number, self._view, number, chunk.size, given.width)
        drawn = _core.CommitteeCircuit.noise(coins_of(law), chunk.size, given.width)
        weighted = isinstance(given.outputs[chunk.output].noise, Weighted)
        view = self._label if weighted else self._view
        return _core.CommitteeChunk(drawn, self._number, view, number, chunk.size)

    def _law(self, chunk: NoiseChunk) -> Coins | Parts:
        law = self._laws[chunk.output]
        assert law is not None  # noqa: S101 - the chunk is not begun before the law is known
        return law

    def _share(self, number: int, core: Any) -> bytes | None:
        chunk = self._parameters.noise_chunk(number)
        if chunk is None:
            if self._bits is None:
                return None
            return bytes(core.share(self._ready_seeds, self._place, self._bits(self._view, number)))
        law = self._law(chunk)
        if isinstance(law, Coins):
            return None
        label = pack(str(chunk.output).encode(), str(chunk.first).encode())
        seed = self._secret.derive(b"silograph/sealed/noise/v2", label)
        return bytes(core.share(self._ready_seeds, law.draw(chunk.size, seed)))

    def _begin(self, number: int, core: Any) -> None:
        if isinstance(core, _core.CommitteeChunk):
            pairs = self._parameters.noise_chunk(number) is None
            core.begin(self._ready_seeds, self._outside if pairs else [])

    def _finish(self, number: int, core: Any) -> None:
        given, chunk = self._parameters, self._parameters.noise_chunk(number)
        if chunk is None:
            self._count.add(number * given.chunk_pairs, given.chunk_size(number), core.numbers())
            self._counted += 1
            self._send("done", COORDINATOR, number, b"")
            return
        parts = isinstance(core, _core.CommitteeParts)
        numbers = core.numbers(self._ready_seeds) if parts else core.numbers()
        self._noise[chunk.output].add(chunk.first, numbers)
        self._noise_done.add(number)

    # --- what takes long ----------------------------------------------------------------------

    @property
    def _all_pairs(self) -> bool:
        return self._counted == self._parameters.chunks

    @property
    def room(self) -> bool:
        """Whether there are rows to count triangles in."""
        return self._all_pairs and self._weighed and self._rows < self._parameters.nodes

    def work(self) -> None:
        """Count the triangles of some rows."""
        given, first = self._parameters, self._rows
        self._rows = min(first + ROWS, given.nodes)
        self._count.contract(first, self._rows)
        self._send("done", COORDINATOR, given.chunks + first // ROWS, b"")
        if self._rows == given.nodes:
            self._count.forget()

    # --- answers ------------------------------------------------------------------------------

    def _allowed(self) -> int:
        """All chunks, or only those whose noise is known."""
        given = self._parameters
        return given.unbounded_items if None in self._laws else given.items

    def _next(self) -> bool:
        """Publish what can be published; return whether a bound has become known."""
        for number, output in enumerate(self._parameters.outputs):
            if number in self._published or not self._ready_to_publish(number):
                continue
            self._published.add(number)
            if output.name in LINEAR:
                self._open_output(number)
            else:
                content = self._count.published(
                    output.name, self._ready_seeds, number, FACTORS[output.name],
                    self._noise[number],
                )  # fmt: skip
                self._send("sum", COORDINATOR, number, content)
        return self._learn()

    def _ready_to_publish(self, number: int) -> bool:
        given = self._parameters
        chunks = (given.chunks + i for i, c in enumerate(given.noise_chunks) if c.output == number)
        counted = given.outputs[number].name != "triangles" or self._rows == given.nodes
        return self._all_pairs and counted and self._noise_done.issuperset(chunks)

    def _open_output(self, number: int) -> None:
        """Open sums of bits by components; to the other members too, if a bound follows."""
        given = self._parameters
        noisy = self._count.linear(given.outputs[number].name)
        noisy.add(0, self._noise[number])
        self._send("open", COORDINATOR, number, noisy.open(self._view, number))
        if not (given.bounded and number == given.degrees):
            return
        self._degrees = noisy
        for other, place in self._others:
            told = noisy.tell(self._view, number, other)
            if told is not None:
                self._send("tell", place, number, told)

    def _learn(self) -> bool:
        """Compute the bounds, once both messages about the degrees came and match."""
        given, noisy, number = self._parameters, self._degrees, self._parameters.degrees
        if noisy is None or number is None or len(self._came.get(("tell", number), {})) < 2:
            return False
        came = self._came.pop(("tell", number))
        sender, hasher = (given.members[(self._number + step) % MEMBERS] for step in (1, 2))
        with self._comparing("tell", "noisy degrees"):
            degrees = noisy.learn(self._view, number, came[sender], came[hasher])
        self._degrees = None
        self._bound(degrees)
        return True

    def _bound(self, degrees: npt.NDArray[np.int64]) -> None:
        """Fix the noise of the counts; their chunks may begin."""
        for number, output in enumerate(self._parameters.outputs):
            if isinstance(output.noise, Weighted):
                weights = output.noise.cells.weights(degrees)
                self._laws[number] = output.noise.at(weights.change)
                self._weigh(weights)
            elif isinstance(output.noise, Bounded):
                self._laws[number] = output.noise.at(output.noise.bound(degrees))

    def _weigh(self, weights: CellWeights) -> None:
        """Give all cells their weights. Members with other weights will not match our hashes."""
        for row in range(self._parameters.nodes - 1):
            self._count.weigh(row, weights.row(row))
        label = pack(b"silograph/sealed/weights/v1", self._view, weights.digest)
        self._label = hashlib.sha256(label).digest()
        self._weighed = True

    @property
    def complete(self) -> bool:
        """Whether every answer was published."""
        return len(self._published) == len(self._parameters.outputs)

    # --- what may come ------------------------------------------------------------------------

    def _due(self, message: Envelope) -> bool:
        if message.round != "tell":
            return super()._due(message)
        member, given = self._parameters.number(message.sender), self._parameters
        ours = given.bounded and message.sequence == given.degrees and member is not None
        return ours and self._step_from(member) in (1, 2)

    def _step_from(self, member: int | None) -> int:
        return ((member or 0) - self._number) % MEMBERS

    def _size(self, message: Envelope) -> int:
        if message.round == "tell":
            sends = self._step_from(self._parameters.number(message.sender)) == 1
            return self._parameters.nodes * self._parameters.width if sends else 32
        return super()._size(message)


class SealedParty(CommitteeParty):
    """A silo or a helper in one run: one bit per pair of a chunk, or None for a helper."""

    STEPS = SEALED_PARTY_STEPS
    TAKES: ClassVar[tuple[str, ...]] = (*CommitteeParty.TAKES, "tell")
    VIEW: ClassVar[bytes] = SEALED_VIEW
    PART = SealedPart
