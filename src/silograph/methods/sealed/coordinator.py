"""The coordinator of the sealed protocol: it deals, relays, and sums what is published.

It has every silo's seed, but no key for the values that the silos open to each other. Whatever it
is sent, its state never holds such a key or an opened word.
"""

import numpy as np

from silograph import _core
from silograph.errors import OrderError, PayloadError
from silograph.messages.entropy import Entropy
from silograph.messages.envelope import EVERYONE, Envelope, Outgoing
from silograph.messages.identity import COORDINATOR, Identity, Roster
from silograph.messages.machine import CoordinatorSession, Machine
from silograph.messages.rounds import Collection
from silograph.messages.secrecy import TAG_BYTES, Lock, pairs_of, weak_key
from silograph.methods.sealed.rounds import (
    COORDINATOR_STEPS,
    DEALT_ROUNDS,
    WINDOW,
    Answers,
    SealedParameters,
    SealedResult,
    State,
    relayed_slot,
)

__all__ = ["SealedDealer"]


class SealedDealer(Machine, CoordinatorSession[SealedResult]):
    """The coordinator in one run of the sealed protocol. Its result is what was published."""

    STEPS = COORDINATOR_STEPS
    TAKES = ("key", "confirm", "ready", "tell", "open", "open-nodes", "output")

    def __init__(
        self,
        parameters: SealedParameters,
        roster: Roster,
        run: bytes,
        identity: Identity,
        entropy: Entropy,
    ) -> None:
        super().__init__(parameters, roster, run, COORDINATOR, identity, State.KEYS)
        self._parameters = parameters
        # There is one secret per run, so anything that is dealt again has exactly the same bytes.
        self._secret = _core.RunSecret(entropy.bytes(32))
        self._collection = Collection(self._binding)
        self._keys: dict[int, bytes] = {}
        self._locks: dict[int, Lock] = {}
        self._told: set[int] = set()
        self._seeds = [
            self._secret.derive(b"silograph/sealed/seed/v1", str(place).encode())
            for place in range(parameters.silos)
        ]
        self._dealing = _core.Dealing(self._seeds)
        self._matrix: _core.DealtMatrix | None = None
        #: For each chunk in progress, the step that is due from each silo.
        self._steps: dict[int, list[int]] = {}
        self._finished: set[int] = set()
        self._corrected = 0
        self._nodes: set[int] = set()
        self._answers = Answers(parameters)
        self._openings = 0

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a silo's message."""
        envelope = self._opened(raw)
        handle = {
            "tell": self._tell,
            "open": self._open,
            "open-nodes": self._open_nodes,
            "output": self._output,
        }.get(envelope.round, self._collect)
        return handle(envelope, raw)

    # --- the handshake ------------------------------------------------------------------------

    def _collect(self, envelope: Envelope, raw: bytes) -> list[Outgoing]:
        """Take a message of a round in which every silo sends 32 bytes to all parties."""
        if len(envelope.payload) != 32:
            raise self._refuse(PayloadError, "32 bytes were due", envelope)
        if envelope.round != "key":
            bundle = self._collection.take(envelope, raw, self._identity)
            return self._collected(envelope, bundle)
        keys = self._keys | {envelope.sender: envelope.payload}
        if len(keys) == self._parameters.silos and envelope.sender not in self._keys:
            locks = self._agree(keys)
        else:
            locks = self._locks
        own = self._seal("key", EVERYONE, self._secret.public())
        bundle = self._collection.take(envelope, raw, self._identity, own)
        self._keys, self._locks = keys, locks
        return self._collected(envelope, bundle)

    def _collected(self, envelope: Envelope, bundle: list[Outgoing]) -> list[Outgoing]:
        if not bundle:
            return []
        self.state = self._step(f"all {envelope.round}s")
        return bundle if self.state is not State.OPENING else [*bundle, *self._begin()]

    def _agree(self, keys: dict[int, bytes]) -> dict[int, Lock]:
        """The locks that encrypt dealt material, one for each silo."""
        everyone, locks = keys | {COORDINATOR: self._secret.public()}, {}
        for pair in pairs_of(self._binding, everyone, COORDINATOR):
            try:
                secret = self._secret.agree(pair.key, pair.context)
            except ValueError:
                raise weak_key(self._binding, pair.place) from None
            label = b"silograph/sealed/pair-key/v1"
            key = secret.derive(label, str(COORDINATOR).encode())
            locks[pair.place] = Lock(key, self._binding, DEALT_ROUNDS)
        return locks

    def _tell(self, envelope: Envelope, raw: bytes) -> list[Outgoing]:
        others = self._parameters.silos - 1
        if envelope.sender in self._told or envelope.sequence:
            raise self._refuse(OrderError, "came twice", envelope)
        if len(envelope.payload) != others * (8 + 32 + TAG_BYTES):
            raise self._refuse(
                PayloadError, "there is not one sender key for each other silo", envelope
            )
        self._told.add(envelope.sender)
        sent = self._relay(envelope, raw)
        if len(self._told) == self._parameters.silos:
            self.state = self._step("all tells")
            sent += [self._deal("seed", 0, seed, place) for place, seed in enumerate(self._seeds)]
        return sent

    # --- dealing ------------------------------------------------------------------------------

    def _begin(self) -> list[Outgoing]:
        sent = [self._deal_chunk(n) for n in range(min(WINDOW, self._parameters.chunks))]
        if self._parameters.has("two_stars"):
            correction = self._dealing.squares(self._parameters.nodes)
            sent.append(self._deal("deal-nodes", 0, correction))
        return sent

    def _deal_chunk(self, number: int) -> Outgoing:
        given = self._parameters
        self._steps[number] = [0] * given.silos
        start, size = number * given.chunk_pairs, given.chunk_size(number)
        return self._deal("deal", number, self._dealing.chunk(start, size))

    def _deal_matrix(self, number: int) -> Outgoing:
        given = self._parameters
        if self._matrix is None:
            self._matrix = self._dealing.matrix(given.nodes)
        start, size = number * given.chunk_pairs, given.chunk_size(number)
        correction = self._dealing.matrix_squares(self._matrix, start, size)
        if number == given.chunks - 1:
            correction += self._dealing.trace(self._matrix)
            self._matrix = None
        return self._deal("deal-matrix", number, correction)

    def _deal(
        self, name: str, sequence: int, material: bytes, place: int | None = None
    ) -> Outgoing:
        """Encrypt dealt material for one silo; corrections go to the last silo."""
        to = self._parameters.silos - 1 if place is None else place
        envelope = Envelope(name, COORDINATOR, to, sequence, material)
        closed = self._locks[to].close(envelope)
        return Outgoing(to, self._seal(name, to, closed.payload, sequence))

    # --- relaying -----------------------------------------------------------------------------

    def _open(self, envelope: Envelope, raw: bytes) -> list[Outgoing]:
        given = self._parameters
        number, step = divmod(envelope.sequence, given.steps)
        due = self._steps.get(number)
        if due is None or due[envelope.sender] != step or min(due) < step:
            raise self._refuse(OrderError, f"step {step} of chunk {number} was not due", envelope)
        if len(envelope.payload) != given.opening_bytes(number, step) + TAG_BYTES:
            raise self._refuse(PayloadError, "there is not one share per pair", envelope)
        due[envelope.sender] += 1
        self._openings += 1
        sent = self._relay(envelope, raw)
        if min(due) == given.steps:
            del self._steps[number]
            self._finished.add(number)
            if given.has("triangles"):
                sent += self._deal_matrices()
            if number + WINDOW < given.chunks:
                sent.append(self._deal_chunk(number + WINDOW))
        return sent

    def _deal_matrices(self) -> list[Outgoing]:
        """Corrections of R² for the finished chunks, in order."""
        sent = []
        while self._corrected in self._finished:
            sent.append(self._deal_matrix(self._corrected))
            self._corrected += 1
        return sent

    def _open_nodes(self, envelope: Envelope, raw: bytes) -> list[Outgoing]:
        given = self._parameters
        due = given.has("two_stars") and len(self._finished) == given.chunks
        if not due or envelope.sender in self._nodes or envelope.sequence:
            raise self._refuse(OrderError, "squares were not due", envelope)
        if len(envelope.payload) != 8 * given.nodes + TAG_BYTES:
            raise self._refuse(PayloadError, "there is not one word per node", envelope)
        self._nodes.add(envelope.sender)
        return self._relay(envelope, raw)

    def _relay(self, envelope: Envelope, raw: bytes) -> list[Outgoing]:
        others = (place for place in range(self._parameters.silos) if place != envelope.sender)
        return [Outgoing(place, raw) for place in others]

    # --- answers ------------------------------------------------------------------------------

    def _output(self, envelope: Envelope, raw: bytes) -> list[Outgoing]:
        answers, given = self._answers, self._parameters
        opened = len(self._finished) == given.chunks
        early = given.has("two_stars") and len(self._nodes) < given.silos
        came = envelope.sequence != answers.phase or envelope.sender in answers.came
        if not opened or early or came:
            raise self._refuse(OrderError, f"output {envelope.sequence} was not due", envelope)
        if len(envelope.payload) != 32 + 8 * answers.words:
            raise self._refuse(PayloadError, "there is not one word per number", envelope)
        if envelope.payload[:32] != answers.digest:
            raise self._refuse(PayloadError, "it summed other answers than we did", envelope)
        answers.add(envelope.sender, np.frombuffer(envelope.payload[32:], dtype="<u8"))
        if answers.complete:
            self.state = self._step("all outputs")
        return self._relay(envelope, raw)

    def result(self) -> SealedResult:
        """The answers; only available when all shares have arrived."""
        self._require(State.DONE, "result")
        return self._answers.result()

    @property
    def progress(self) -> tuple[int, int]:
        """The progress in pairs, by the share of openings received, and the number of all pairs."""
        given = self._parameters
        openings = given.chunks * given.steps * given.silos
        return given.pairs * self._openings // openings, given.pairs

    def slot(self, message: Envelope) -> int:
        """The slot of a message, from its sequence and sender."""
        return relayed_slot(self._parameters, message)
