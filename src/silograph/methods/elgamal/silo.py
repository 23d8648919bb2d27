"""A silo in the ElGamal union; the rounds are in :mod:`silograph.methods.elgamal.rounds`."""

import hashlib
import hmac
from collections.abc import Callable
from fractions import Fraction

from silograph.errors import CryptoError, OrderError, PayloadError, ViewsDifferError
from silograph.messages.entropy import Entropy
from silograph.messages.envelope import EVERYONE, Envelope, Outgoing, open_envelope
from silograph.messages.identity import COORDINATOR, Identity, Roster, pack, unpack
from silograph.messages.machine import Machine, SiloSession
from silograph.messages.rounds import Bits, open_bundle
from silograph.messages.secrecy import own_key_changed
from silograph.methods.elgamal.cipher import CELL_BYTES, JointKey, Place, Run, SecretKey
from silograph.methods.elgamal.rounds import (
    KEY_BYTES,
    RECEIPT,
    SILO_STEPS,
    WORK,
    ElgamalParameters,
    State,
    cell_slot,
    joint_key,
)

__all__ = ["ElgamalSilo"]


class ElgamalSilo(Machine, SiloSession):
    """A silo in one run of the ElGamal union. ``bits(chunk)`` returns one bit per cell."""

    STEPS = SILO_STEPS
    TAKES = ("keys", "confirms", "work", "open")

    def __init__(
        self,
        parameters: ElgamalParameters,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
        bits: Bits,
    ) -> None:
        super().__init__(parameters, roster, run, place, identity, State.NEW)
        self._parameters = parameters
        self._bits = bits
        # There is one secret per run. The key and all coins are derived from it, so a hop or a
        # share that is made again has exactly the same bytes.
        self._secret = entropy.bytes(32)
        self._key = SecretKey(self._seed("key"))
        self._joint: JointKey | None = None
        #: The digest of the input of every hop and opening that was done.
        self._came: dict[tuple[str, int, int], bytes] = {}
        self._shared: set[int] = set()

    def start(self) -> list[Outgoing]:
        """Publish the ElGamal key with a proof of possession."""
        state = self._step("start")
        run = Run(self._binding.run, self._binding.roster.digest)
        proof = self._key.prove(run, self._identity.public, self._seed("proof"))
        raw = self._seal("key", EVERYONE, self._key.public_key + proof)
        self.state = state
        return [Outgoing(COORDINATOR, raw)]

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a message of the coordinator."""
        message = self._opened(raw)
        state = self._step(message.round)
        if message.round == "keys":
            return self._agree(message, state)
        if message.round == "confirms":
            return self._confirmed(message, state)
        return [self._hop(message) if message.round == "work" else self._open(message)]

    @property
    def ready(self) -> bool:
        """Whether all silos confirmed the same keys."""
        return self.state is State.AGREED

    def authorise(self) -> list[Outgoing]:
        """Record that the run's whole cost is in the ledger.

        Nothing that depends on the silo's bits leaves the silo before this.
        """
        self.state = self._step("authorise")
        return []

    def _agree(self, message: Envelope, state: State) -> list[Outgoing]:
        length = KEY_BYTES
        keys = open_bundle(self._binding, message, "key", receiver=self._place, length=length)
        if not keys[self._place].startswith(self._key.public_key):
            raise own_key_changed(self._binding.roster.silos[self._place].name)
        joint = joint_key(self._binding, keys)
        view = hashlib.sha256(
            pack(b"silograph/elgamal/view/v1", self._binding.parameters, joint.binding)
        ).digest()
        sent = self._seal("confirm", EVERYONE, view)
        self._joint, self._view, self.state = joint, view, state
        return [Outgoing(COORDINATOR, sent)]

    def _confirmed(self, message: Envelope, state: State) -> list[Outgoing]:
        views = open_bundle(self._binding, message, "confirm", receiver=self._place, length=32)
        for place, view in enumerate(views):
            if view != self._view:
                name = self._binding.roster.silos[place].name
                raise ViewsDifferError("saw other keys than we did", silo=name, round="confirm")
        self.state = state
        return []

    def _hop(self, message: Envelope) -> Outgoing:
        """Rewrite every cell of a chunk. Each hop is done once, on one input."""
        head, cells = unpack(message.payload, 2, [WORK.size, 1 << 26])
        if len(head) != WORK.size:
            raise PayloadError("the message is malformed", round="work")
        chunk, hop = WORK.unpack(head)
        self._check_chunk(chunk, "work")
        if not 0 <= hop < self._parameters.hops or hop % self._parameters.silos != self._place:
            raise OrderError(f"hop {hop} is not ours", round="work")
        if len(cells) != (0 if hop == 0 else self._parameters.chunk_size(chunk) * CELL_BYTES):
            raise PayloadError("there is not one cell per pair", round="work")
        came = hashlib.sha256(cells).digest()
        self._check_once("hop", chunk, hop, came)
        made = self._rewrite(chunk, hop, cells)
        self._came["hop", chunk, hop] = came
        receipt = RECEIPT.pack(chunk, hop, came, hashlib.sha256(made).digest())
        signed = self._seal("receipt", EVERYONE, receipt, sequence=hop)
        raw = self._seal("hop", COORDINATOR, pack(signed, made), sequence=hop)
        return Outgoing(COORDINATOR, raw)

    def _rewrite(self, chunk: int, hop: int, cells: bytes) -> bytes:
        given, joint = self._parameters, self._joint
        assert joint is not None  # noqa: S101 - guaranteed by the table of steps
        seed, place = self._seed("hop", chunk, hop), Place(chunk, hop)
        if hop >= given.silos:
            return self._guard("work", lambda: joint.flip_hop(cells, given.coin, place, seed))
        bits, size = self._bits(self._view, chunk), given.chunk_size(chunk)
        if len(bits) != -(-size // 64) * 8:
            raise PayloadError("there is not one bit per pair", round="work")
        bits = bits[: -(-size // 8)]
        coin = Fraction(0) if given.variant == "blinded" else given.coin
        if hop == 0:
            # Paper, Algorithm 3, lines 5–7: perturb Y with RR, encrypt, send to client C_2.
            return joint.first_hop(bits, size, given.variant, coin, chunk, seed)
        # Paper, Algorithm 3, lines 8–15.
        hopped = lambda: joint.hop(cells, bits, given.variant, coin, place, seed)  # noqa: E731
        return self._guard("work", hopped)

    def _open(self, message: Envelope) -> Outgoing:
        """Decryption shares of the final cells, made only if every hop is accounted for."""
        given, joint = self._parameters, self._joint
        assert joint is not None  # noqa: S101 - guaranteed by the table of steps
        head, cells, *receipts = unpack(message.payload, 2 + given.hops)
        if len(head) != 8:
            raise PayloadError("the message is malformed", round="open")
        chunk = int.from_bytes(head, "little")
        self._check_chunk(chunk, "open")
        final = hashlib.sha256(cells).digest()
        self._check_receipts(chunk, final, receipts)
        self._check_once("open", chunk, 0, final)
        place, seed = Place(chunk, given.hops), self._seed("share", chunk)
        shares = self._guard(
            "open", lambda: joint.share(self._key, self._place, cells, place, seed)
        )
        self._came["open", chunk, 0] = final
        payload = head + shares
        self._shared.add(chunk)
        return Outgoing(COORDINATOR, self._seal("share", COORDINATOR, payload))

    def _check_receipts(self, chunk: int, final: bytes, receipts: list[bytes]) -> None:
        previous = hashlib.sha256(b"").digest()
        for hop, raw in enumerate(receipts):
            inner = open_envelope(self._binding, raw, receiver=self._place)
            name = self._binding.roster.member(inner.sender).name
            due = hop % self._parameters.silos
            if (inner.round, inner.sender, inner.sequence) != ("receipt", due, hop):
                raise OrderError(f"hop {hop} is not signed by silo {due}", silo=name, round="open")
            if len(inner.payload) != RECEIPT.size:
                raise PayloadError("a receipt is malformed", silo=name, round="open")
            of_chunk, of_hop, came, went = RECEIPT.unpack(inner.payload)
            if (of_chunk, of_hop) != (chunk, hop) or came != previous:
                raise OrderError(f"hop {hop} was done on something else", silo=name, round="open")
            previous = went
        if previous != final:
            raise PayloadError("these are not the cells that the last hop put out", round="open")

    def _check_chunk(self, chunk: int, name: str) -> None:
        if chunk >= self._parameters.chunks:
            raise OrderError(f"there is no chunk {chunk}", round=name)

    def _check_once(self, what: str, chunk: int, hop: int, came: bytes) -> None:
        """Refuse to repeat a step on another input, since its coins would be the same."""
        if self._came.get((what, chunk, hop), came) != came:
            raise OrderError(f"{what} {hop} of chunk {chunk} was done on other cells", round=what)

    def _guard(self, name: str, act: Callable[[], bytes]) -> bytes:
        try:
            return act()
        except CryptoError as error:
            raise PayloadError(str(error), silo="coordinator", round=name) from None

    def _seed(self, purpose: str, chunk: int = 0, hop: int = 0) -> bytes:
        label = pack(b"silograph/elgamal/seed/v1", purpose.encode(), WORK.pack(chunk, hop))
        return hmac.digest(self._secret, label, "sha256")

    @property
    def phase(self) -> str:
        """The state; a silo is done when it has sent its shares of every chunk."""
        return State.DONE if self.done else str(self.state)

    @property
    def done(self) -> bool:
        """Whether shares of every chunk were sent."""
        return len(self._shared) == self._parameters.chunks

    def slot(self, message: Envelope) -> int:
        """The slot of a message, from its chunk and hop."""
        return cell_slot(self._parameters, message)
