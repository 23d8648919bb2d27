"""A silo in the sealed protocol; the rounds are in :mod:`silograph.methods.sealed.rounds`."""

from collections.abc import Callable, Container
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from silograph import _core
from silograph.errors import OrderError, PayloadError, ViewsDifferError
from silograph.messages.entropy import Entropy
from silograph.messages.envelope import EVERYONE, Envelope, Outgoing
from silograph.messages.identity import COORDINATOR, Identity, Roster, pack, unpack
from silograph.messages.machine import Machine, SiloSession
from silograph.messages.rounds import Bits, open_bundle
from silograph.messages.secrecy import (
    TAG_BYTES,
    Lock,
    check_own_key,
    check_views,
    pairs_of,
    view_digest,
    weak_key,
)
from silograph.methods.sealed.noise import FACTORS
from silograph.methods.sealed.opening import Opening
from silograph.methods.sealed.rounds import (
    DEALT_ROUNDS,
    OPENED_ROUNDS,
    SILO_STEPS,
    WINDOW,
    Answers,
    SealedParameters,
    SealedResult,
    State,
    relayed_slot,
)

__all__ = ["SealedSilo"]

#: The rounds whose messages come from silos and are relayed unchanged.
_FROM_SILOS = ("tell", "open", "open-nodes", "output")


@dataclass(frozen=True)
class _Peer:
    """Another silo: the locks for both directions, and the secret of our common zero-shares."""

    place: int
    secret: _core.SharedSecret
    first: bool
    to: Lock
    of: Lock


class SealedSilo(Machine, SiloSession):
    """A silo in one run of the sealed protocol. ``bits(chunk)`` returns one bit per pair.

    A silo that is rebuilt after a crash must be given the same bits. Other bits under the same
    masks would show where they differ.
    """

    STEPS = SILO_STEPS
    TAKES = ("keys", "confirms", "readys", *DEALT_ROUNDS, *_FROM_SILOS)

    def __init__(
        self,
        parameters: SealedParameters,
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
        # There is one secret per run. The run key, the sender key and all noise are derived from
        # it, so a message that is made again has exactly the same bytes.
        self._secret = _core.RunSecret(entropy.bytes(32))
        self._view = b""
        self._peers: dict[int, _Peer] = {}
        self._dealer: Lock | None = None
        sender = self._secret.derive(b"silograph/sealed/sender-key/v1", b"")
        self._sender_key = sender
        self._own_lock = Lock(sender, self._binding, OPENED_ROUNDS)
        self._locks: dict[int, Lock] = {}
        self._opening: Opening | None = None
        self._shares: dict[str, npt.NDArray[np.uint64]] = {}
        self._answers = Answers(parameters)

    # --- the handshake ------------------------------------------------------------------------

    def start(self) -> list[Outgoing]:
        """Publish the run key."""
        state = self._step("start")
        raw = self._seal("key", EVERYONE, self._secret.public())
        self.state = state
        return [Outgoing(COORDINATOR, raw)]

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a message that the coordinator sends or relays."""
        message = self._opened(raw)
        state = self._step(message.round)
        handle = {
            "keys": self._agree,
            "confirms": self._confirmed,
            "tell": self._told,
            "seed": self._seeded,
            "readys": self._begin,
            "open": self._opened_chunk,
            "open-nodes": self._opened_nodes,
            "output": self._output,
        }.get(message.round, self._corrected)
        sent = handle(message)
        self.state = self._settled(state)
        return sent

    def _check_sender(self, message: Envelope) -> None:
        """Refuse a message whose round does not come from its sender."""
        if message.sender == self._place:
            raise self._refuse(OrderError, "our own message came back", message)
        silo = self._binding.roster.has_silo(message.sender)
        if not (silo if message.round in _FROM_SILOS else message.sender == COORDINATOR):
            raise self._refuse(OrderError, "there is no such message", message)

    def _settled(self, state: State) -> State:
        """The next state: a step that is the last of its kind leads further than ``state``."""
        told = self._opening is not None and len(self._locks) == len(self._peers)
        if state is State.TELLS and told:
            return SILO_STEPS[state, "all told"]
        if state is State.OPENING and self._material.complete:
            return SILO_STEPS[state, "all opened"]
        if state is State.OUTPUTS and self._answers.complete:
            return SILO_STEPS[state, "all outputs"]
        return state

    def _agree(self, message: Envelope) -> list[Outgoing]:
        after = (COORDINATOR,)
        place, binding = self._place, self._binding
        keys = open_bundle(binding, message, "key", receiver=place, length=32, after=after)
        check_own_key(binding, keys[place], self._secret.public(), place)
        places = (*range(self._parameters.silos), COORDINATOR)
        peers: dict[int, _Peer] = {}
        for pair in pairs_of(binding, dict(zip(places, keys, strict=True)), place):
            try:
                secret = self._secret.agree(pair.key, pair.context)
            except ValueError:
                raise weak_key(binding, pair.place) from None
            rounds = DEALT_ROUNDS if pair.place == COORDINATOR else ("tell",)
            to, of = (
                Lock(
                    secret.derive(b"silograph/sealed/pair-key/v1", str(p).encode()), binding, rounds
                )
                for p in (place, pair.place)
            )
            peers[pair.place] = _Peer(pair.place, secret, pair.first, to, of)
        view = view_digest(b"silograph/sealed/view/v1", binding, keys)
        sent = self._seal("confirm", EVERYONE, view)
        self._dealer = peers.pop(COORDINATOR).of
        self._peers, self._view = peers, view
        return [Outgoing(COORDINATOR, sent)]

    def _confirmed(self, message: Envelope) -> list[Outgoing]:
        views = open_bundle(self._binding, message, "confirm", receiver=self._place, length=32)
        check_views(self._binding, views, self._view)
        told = Envelope("tell", self._place, EVERYONE, 0, self._sender_key)
        closed = [self._peers[place].to.close(told).payload for place in sorted(self._peers)]
        sent = self._seal("tell", EVERYONE, pack(*closed))
        return [Outgoing(COORDINATOR, sent)]

    def _told(self, message: Envelope) -> list[Outgoing]:
        sender = message.sender
        if sender in self._locks or message.sequence:
            raise self._refuse(OrderError, "its sender key came twice", message)
        closed = unpack(message.payload, self._parameters.silos - 1)
        ours = closed[self._place - (self._place > sender)]
        if len(ours) != 32 + TAG_BYTES:
            raise self._refuse(PayloadError, "a sender key has 32 bytes", message)
        told = Envelope("tell", sender, EVERYONE, 0, ours)
        key = self._peers[sender].of.open(told)
        self._locks[sender] = Lock(key, self._binding, OPENED_ROUNDS)
        return []

    def _seeded(self, message: Envelope) -> list[Outgoing]:
        if self._opening is not None or message.sequence:
            raise self._refuse(OrderError, "a seed came twice", message)
        seed = self._dealt(message)
        if len(seed) != 32:
            raise self._refuse(PayloadError, "a seed has 32 bytes", message)
        self._opening = Opening(self._parameters, self._binding.roster, self._place, seed)
        return []

    @property
    def ready(self) -> bool:
        """Whether all keys and the seed have arrived."""
        return self.state is State.AGREED

    def authorise(self) -> list[Outgoing]:
        """Record that the run's whole cost is in the ledger, and tell the other silos.

        Nothing is opened before all silos have said so.
        """
        state = self._step("authorise")
        sent = self._seal("ready", EVERYONE, self._view)
        self.state = state
        return [Outgoing(COORDINATOR, sent)]

    # --- openings -----------------------------------------------------------------------------

    def _begin(self, message: Envelope) -> list[Outgoing]:
        views = open_bundle(self._binding, message, "ready", receiver=self._place, length=32)
        check_views(self._binding, views, self._view)
        return [self._begin_chunk(n) for n in range(min(WINDOW, self._parameters.chunks))]

    def _begin_chunk(self, number: int) -> Outgoing:
        begun = self._material.begin(number, self._bits(number))
        return self._open("open", number * self._parameters.steps, begun)

    def _opened_chunk(self, message: Envelope) -> list[Outgoing]:
        opening, given = self._material, self._parameters
        number, step = divmod(message.sequence, given.steps)
        share = self._locks[message.sender].open(message)
        if not opening.take(number, step, message.sender, share):
            return []
        after = opening.close(number)
        if after is not None:
            return [self._open("open", message.sequence + 1, after)]
        sent = []
        if number + WINDOW < given.chunks:
            sent.append(self._begin_chunk(number + WINDOW))
        elif opening.chunks_done and given.has("two_stars"):
            sent.append(self._open("open-nodes", 0, opening.begin_nodes()))
        return sent

    def _opened_nodes(self, message: Envelope) -> list[Outgoing]:
        if message.sequence:
            raise self._refuse(OrderError, "squares are opened once", message)
        share = self._locks[message.sender].open(message)
        self._material.take_nodes(message.sender, share)
        return []

    def _corrected(self, message: Envelope) -> list[Outgoing]:
        correction, number = self._dealt(message), message.sequence
        if message.round == "deal":
            self._material.correct_chunk(number, correction)
        elif message.round == "deal-matrix":
            self._material.correct_matrix(number, correction)
        elif number:
            raise self._refuse(OrderError, "squares are corrected once", message)
        else:
            self._material.correct_nodes(correction)
        return []

    # --- answers ------------------------------------------------------------------------------

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """Count on the shares, and publish the first noisy shares."""
        return self.count()

    @property
    def room(self) -> bool:
        """Whether everything is opened, but not yet counted."""
        return self.state is State.COUNTING

    def count(self, progress: Callable[[int], None] | None = None) -> list[Outgoing]:
        """Count on the shares, and publish the first noisy shares. This takes most of the time.

        ``progress`` is called with the number of rows done since the last call.
        """
        state = self._step("count")
        self._shares = self._material.count(progress or (lambda _rows: None))
        sent = self._publish()
        self.state = self._settled(state)
        return sent

    def _publish(self) -> list[Outgoing]:
        """Our share of the present phase, with our noise and a share of zero added to it."""
        answers, given = self._answers, self._parameters
        phase, parts = answers.phase, []
        for output in given.phases[phase]:
            label = pack(output.name.encode(), str(phase).encode())
            seed = self._secret.derive(b"silograph/sealed/noise/v1", label)
            drawn = answers.noise(output).draw(given.length(output), seed).view(np.uint64)
            parts.append(self._shares[output.name] + np.uint64(FACTORS[output.name]) * drawn)
        words = np.concatenate(parts)
        label = str(phase).encode()
        seeds = [
            (peer.secret.derive(b"silograph/sealed/zero/v1", label), peer.first)
            for peer in self._peers.values()
        ]
        _core.add_zero_share(seeds, words)
        payload = answers.digest + words.astype("<u8").tobytes()
        raw = self._seal("output", EVERYONE, payload, phase)
        return [Outgoing(COORDINATOR, raw), *self._sum(self._place, words)]

    def _output(self, message: Envelope) -> list[Outgoing]:
        answers, sender = self._answers, message.sender
        if message.sequence != answers.phase or sender in answers.came:
            raise self._refuse(OrderError, f"output {message.sequence} was not due", message)
        if len(message.payload) != 32 + 8 * answers.words:
            raise self._refuse(PayloadError, "there is not one word per number", message)
        if message.payload[:32] != answers.digest:
            raise self._refuse(ViewsDifferError, "summed other answers than we did", message)
        return self._sum(sender, np.frombuffer(message.payload[32:], dtype="<u8"))

    def _sum(self, sender: int, words: npt.NDArray[np.uint64]) -> list[Outgoing]:
        answers, phase = self._answers, self._answers.phase
        answers.add(sender, words)
        more = answers.phase > phase and not answers.complete
        return self._publish() if more else []

    def result(self) -> SealedResult:
        """The answers, as this silo summed them; only available when all shares have arrived."""
        self._require(State.DONE, "result")
        return self._answers.result()

    # --- helpers ------------------------------------------------------------------------------

    @property
    def _material(self) -> Opening:
        assert self._opening is not None  # noqa: S101 - guaranteed by the table of steps
        return self._opening

    def _dealt(self, message: Envelope) -> bytes:
        assert self._dealer is not None  # noqa: S101 - guaranteed by the table of steps
        return self._dealer.open(message)

    def _open(self, name: str, sequence: int, share: bytes) -> Outgoing:
        envelope = Envelope(name, self._place, EVERYONE, sequence, share)
        closed = self._own_lock.close(envelope)
        return Outgoing(COORDINATOR, self._seal(name, EVERYONE, closed.payload, sequence))

    def slot(self, message: Envelope) -> int:
        """The slot of a message, from its sequence and sender."""
        return relayed_slot(self._parameters, message)
