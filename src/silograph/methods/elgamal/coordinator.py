"""The coordinator of the ElGamal union; :mod:`silograph.methods.elgamal.rounds` has the rounds."""

import hashlib
from collections.abc import Container
from dataclasses import dataclass, field

from silograph import _core
from silograph.errors import CryptoError, OrderError, PayloadError
from silograph.messages.envelope import EVERYONE, Envelope, Outgoing, open_envelope
from silograph.messages.identity import COORDINATOR, Identity, Roster, pack, unpack
from silograph.messages.machine import CoordinatorSession, Machine
from silograph.messages.rounds import Collection
from silograph.methods.elgamal.cipher import CELL_BYTES, Decoder, JointKey, share_bytes
from silograph.methods.elgamal.rounds import (
    COORDINATOR_STEPS,
    KEY_BYTES,
    RECEIPT,
    WORK,
    ElgamalParameters,
    State,
    cell_slot,
    joint_key,
)

__all__ = ["ElgamalCoordinator"]


@dataclass
class _Chunk:
    """One chunk that travels from silo to silo."""

    cells: bytes = b""
    hops: int = 0
    receipts: list[bytes] = field(default_factory=list)
    shares: dict[int, bytes] = field(default_factory=dict)


class ElgamalCoordinator(Machine, CoordinatorSession[_core.OpenBits]):
    """The coordinator in one run: it passes chunks from silo to silo and opens the final cells.

    Its result is Y, one bit per pair.
    """

    STEPS = COORDINATOR_STEPS
    TAKES = ("key", "confirm", "hop", "share")

    def __init__(
        self, parameters: ElgamalParameters, roster: Roster, run: bytes, identity: Identity
    ) -> None:
        super().__init__(parameters, roster, run, COORDINATOR, identity, State.KEYS)
        self._parameters = parameters
        self._collection = Collection(self._binding)
        self._keys: dict[int, bytes] = {}
        self._joint: JointKey | None = None
        self._decoder = Decoder(parameters.hops)
        self._travelling: dict[int, _Chunk] = {}
        self._bits = _core.OpenBits(parameters.pairs)
        self._open_chunks: set[int] = set()
        self._begun = 0

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a silo's message."""
        envelope = self._opened(raw)
        name = self._binding.roster.silos[envelope.sender].name
        if envelope.round == "hop":
            return self._hopped(envelope, name)
        if envelope.round == "share":
            return self._shared(envelope, name)
        return self._collect(envelope, raw, name)

    def begin(self, chunk: int) -> list[Outgoing]:
        """Send a chunk to the first silo. Several chunks may travel at the same time."""
        self._require(State.CELLS, "work")
        known = chunk in self._travelling or chunk in self._open_chunks
        if known or not 0 <= chunk < self._parameters.chunks:
            raise OrderError(f"chunk {chunk} cannot begin", round="work")
        self._travelling[chunk] = _Chunk()
        return [self._work(chunk)]

    def _collect(self, envelope: Envelope, raw: bytes, name: str) -> list[Outgoing]:
        length = 32 if envelope.round == "confirm" else KEY_BYTES
        if len(envelope.payload) != length:
            raise PayloadError(f"{length} bytes were due", silo=name, round=envelope.round)
        keys = self._keys | {envelope.sender: envelope.payload}
        whole = envelope.round == "key" and len(keys) == self._parameters.silos
        joint = None
        if whole and envelope.sender not in self._keys:
            joint = joint_key(self._binding, [keys[place] for place in sorted(keys)])
        bundle = self._collection.take(envelope, raw, self._identity)
        if envelope.round == "key":
            self._keys = keys
        if bundle:
            self._joint = joint or self._joint
            self.state = self._step(f"all {envelope.round}s")
        return bundle

    def _work(self, chunk: int) -> Outgoing:
        travelling = self._travelling[chunk]
        to = travelling.hops % self._parameters.silos
        payload = pack(WORK.pack(chunk, travelling.hops), travelling.cells)
        return Outgoing(to, self._seal("work", to, payload))

    def _hopped(self, envelope: Envelope, name: str) -> list[Outgoing]:
        receipt, cells = unpack(envelope.payload, 2)
        inner = open_envelope(self._binding, receipt, receiver=COORDINATOR)
        if (inner.round, inner.sender) != ("receipt", envelope.sender) or len(
            inner.payload
        ) != RECEIPT.size:
            raise PayloadError("its receipt is malformed", silo=name, round="hop")
        chunk, hop, came, went = RECEIPT.unpack(inner.payload)
        travelling = self._travelling.get(chunk)
        if travelling is None or hop != travelling.hops or hop == self._parameters.hops:
            raise OrderError(f"hop {hop} of chunk {chunk} was not due", silo=name, round="hop")
        if hop % self._parameters.silos != envelope.sender or inner.sequence != hop:
            raise OrderError(f"hop {hop} belongs to another silo", silo=name, round="hop")
        if came != hashlib.sha256(travelling.cells).digest():
            raise OrderError(f"hop {hop} was done on other cells", silo=name, round="hop")
        size = self._parameters.chunk_size(chunk)
        if len(cells) != size * CELL_BYTES or went != hashlib.sha256(cells).digest():
            raise PayloadError("the cells are not those of the receipt", silo=name, round="hop")
        travelling.cells, travelling.hops = cells, hop + 1
        travelling.receipts.append(receipt)
        if travelling.hops < self._parameters.hops:
            return [self._work(chunk)]
        payload = pack(chunk.to_bytes(8, "little"), cells, *travelling.receipts)
        return [Outgoing(EVERYONE, self._seal("open", EVERYONE, payload))]

    def _shared(self, envelope: Envelope, name: str) -> list[Outgoing]:
        chunk = int.from_bytes(envelope.payload[:8], "little")
        travelling = self._travelling.get(chunk)
        if travelling is None or travelling.hops < self._parameters.hops:
            raise OrderError(f"shares of chunk {chunk} were not due", silo=name, round="share")
        if envelope.sender in travelling.shares:
            raise OrderError(f"shares of chunk {chunk} came twice", silo=name, round="share")
        if len(envelope.payload) != 8 + share_bytes(self._parameters.chunk_size(chunk)):
            raise PayloadError("there is not one share per group", silo=name, round="share")
        shares = travelling.shares | {envelope.sender: envelope.payload[8:]}
        if len(shares) == self._parameters.silos:
            bits = self._combine(chunk, travelling.cells, shares)
            self._bits.write(chunk * self._parameters.chunk_pairs, bits)
            self._open_chunks.add(chunk)
            del self._travelling[chunk]
            if len(self._open_chunks) == self._parameters.chunks:
                self.state = self._step("all chunks")
        else:
            travelling.shares = shares
        return []

    def _combine(self, chunk: int, cells: bytes, shares: dict[int, bytes]) -> bytes:
        assert self._joint is not None  # noqa: S101 - guaranteed by the table of steps
        ordered = [shares[place] for place in range(self._parameters.silos)]
        try:
            bits = self._joint.combine(self._decoder, cells, ordered, chunk)
        except CryptoError as error:
            name = None if error.silo is None else self._binding.roster.silos[error.silo].name
            raise PayloadError(f"chunk {chunk}: {error}", silo=name, round="share") from None
        return bits.ljust(-(-self._parameters.chunk_size(chunk) // 64) * 8, b"\0")

    def result(self) -> _core.OpenBits:
        """Y, one bit per pair; only available when all chunks are opened."""
        self._require(State.DONE, "result")
        return self._bits

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """Send the next chunk to the first silo."""
        begun = self.begin(self._begun)
        self._begun += 1
        return begun

    @property
    def room(self) -> bool:
        """Whether another chunk may start: at most as many travel as there are hops."""
        given = self._parameters
        more = self.state is State.CELLS and self._begun < given.chunks
        return more and len(self._travelling) < given.hops

    @property
    def progress(self) -> tuple[int, int]:
        """The number of opened pairs, and the number of all pairs."""
        given = self._parameters
        return min(len(self._open_chunks) * given.chunk_pairs, given.pairs), given.pairs

    def slot(self, message: Envelope) -> int:
        """The slot of a message, from its chunk and hop."""
        return cell_slot(self._parameters, message)
