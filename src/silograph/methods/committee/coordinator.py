"""The coordinator in the committee's union: it relays keys, and opens noisy bits.

It may be one of the four members, if the study says so. Then it does what a helper does, too.
"""

from silograph import _core
from silograph.errors import (
    BindingError,
    MismatchError,
    OrderError,
    PayloadError,
    ViewsDifferError,
)
from silograph.messages.entropy import Entropy
from silograph.messages.envelope import EVERYONE, Envelope, Outgoing
from silograph.messages.identity import COORDINATOR, Identity, Roster
from silograph.messages.machine import CoordinatorSession, Machine
from silograph.messages.rounds import Collection
from silograph.messages.secrecy import TAG_BYTES, view_digest
from silograph.methods.committee.member import Lines, Part
from silograph.methods.committee.rounds import (
    COORDINATOR_STEPS,
    MEMBERS,
    VIEW,
    CommitteeParameters,
    State,
)

__all__ = ["CommitteeCoordinator"]


class CommitteeCoordinator(Machine, CoordinatorSession[bytes]):
    """The coordinator in one run. Its result is Y, one bit per pair."""

    STEPS = COORDINATOR_STEPS
    TAKES = ("key", "confirm", "seed", "match", "input", "check", "joint", "open")

    def __init__(
        self,
        parameters: CommitteeParameters,
        roster: Roster,
        run: bytes,
        identity: Identity,
        entropy: Entropy,
    ) -> None:
        super().__init__(parameters, roster, run, COORDINATOR, identity, State.KEYS)
        parameters.check(roster)
        self._parameters = parameters
        self._secret = _core.RunSecret(entropy.bytes(32))
        self._collection = Collection(self._binding, roster.places[parameters.silos :])
        self._keys: dict[int, bytes] = {}
        self._view = b""
        self._lines: Lines | None = None
        self._part: Part | None = None
        self._opened_parts: dict[int, dict[int, bytes]] = {}
        self._results: dict[int, bytes] = {}
        self._sending: list[Outgoing] = []

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a party's message."""
        message = self._opened(raw)
        if message.round == "key":
            return self._key(message, raw)
        if message.round == "confirm":
            return self._confirm(message, raw)
        if message.round == "open":
            return self._open(message)
        if self._part is None:
            raise self._refuse(OrderError, "the coordinator is not a member", message)
        self._part.check(message)
        self._part.take(message, self._line.open(message, COORDINATOR))
        return self._advance()

    def _check_sender(self, message: Envelope) -> None:
        if message.sender == COORDINATOR:
            raise BindingError("the coordinator does not write to itself", round=message.round)

    # --- the handshake ------------------------------------------------------------------------

    def _key(self, message: Envelope, raw: bytes) -> list[Outgoing]:
        keys = self._keys | {message.sender: self._word(message)}
        view, lines = self._view, self._lines
        if len(keys) == len(self._binding.roster.places) and message.sender not in self._keys:
            everyone = keys | {COORDINATOR: self._secret.public()}
            lines = Lines(self._binding, self._secret, everyone, COORDINATOR)
            places = (*self._binding.roster.places, COORDINATOR)
            view = view_digest(VIEW, self._binding, [everyone[place] for place in places])
        own = self._seal("key", EVERYONE, self._secret.public())
        bundle = self._collection.take(message, raw, self._identity, own)
        self._keys, self._lines, self._view = keys, lines, view
        if bundle:
            self.state = self._step("all keys")
        return bundle

    def _confirm(self, message: Envelope, raw: bytes) -> list[Outgoing]:
        if self._word(message) != self._view:
            raise self._refuse(ViewsDifferError, "saw other keys than we did", message)
        bundle = self._collection.take(message, raw, self._identity)
        if not bundle:
            return []
        self.state = self._step("all confirms")
        if COORDINATOR not in self._parameters.members:
            return bundle
        self._part = Part(
            self._parameters, self._binding, self._secret, COORDINATOR, self._view, self._send, None
        )
        self._part.confirm()
        self._part.authorise()  # it has no bits, so it pays for nothing
        return [*bundle, *self._advance()]

    def _word(self, message: Envelope) -> bytes:
        if len(message.payload) != 32:
            raise self._refuse(PayloadError, "32 bytes were due", message)
        return message.payload

    # --- openings -----------------------------------------------------------------------------

    def _open(self, message: Envelope) -> list[Outgoing]:
        number, given = message.sequence, self._parameters
        member = given.number(message.sender)
        if member is None:
            raise self._refuse(OrderError, "it is not a member of the committee", message)
        if number >= given.chunks:
            raise self._refuse(OrderError, f"there is no chunk {number}", message)
        if number in self._results or message.sender in self._opened_parts.get(number, {}):
            raise self._refuse(OrderError, f"chunk {number} came twice", message)
        if len(message.payload) != given.opening_bytes(member, number) + TAG_BYTES:
            raise self._refuse(PayloadError, "it has the wrong size", message)
        self._keep(number, message.sender, self._line.open(message, COORDINATOR))
        return []

    def _keep(self, number: int, member: int, content: bytes) -> None:
        """Keep a part of a chunk; the last one opens it, once the parts match their hashes."""
        given, parts = self._parameters, self._opened_parts.setdefault(number, {})
        parts[member] = content
        if len(parts) < MEMBERS:
            return
        came = [parts[place] for place in given.members]
        name = self._binding.roster.member
        try:
            bits = _core.committee_opened(self._view, number, given.chunk_size(number), came)
        except _core.MismatchError as error:
            self.state = State.ENDED
            sender, hasher = (name(given.members[i]).name for i in error.args)
            what = f"{hasher} does not confirm what it opened"
            raise MismatchError(what, silo=sender, round="open") from None
        del self._opened_parts[number]
        self._results[number] = bits
        if len(self._results) == given.chunks:
            self.state = self._step("all chunks")

    # --- the coordinator as a member ----------------------------------------------------------

    def _advance(self) -> list[Outgoing]:
        assert self._part is not None  # noqa: S101 - called if it is a member
        try:
            self._part.advance()
        except MismatchError:
            self._sending = []
            self.state = State.ENDED
            raise
        sent, self._sending = self._sending, []
        return sent

    def _send(self, name: str, receiver: int, sequence: int, content: bytes) -> None:
        if receiver == COORDINATOR:  # its own part of an opening
            self._keep(sequence, COORDINATOR, content)
            return
        message = Envelope(name, COORDINATOR, receiver, sequence, content)
        raw = self._seal(name, receiver, self._line.close(message).payload, sequence)
        self._sending.append(Outgoing(receiver, raw))

    @property
    def _line(self) -> Lines:
        assert self._lines is not None  # noqa: S101 - guaranteed by the table of steps
        return self._lines

    def wants(self, place: int) -> bool:
        """Whether a party may go on; a silo outside the committee may not run far ahead of it."""
        return self._part is None or self._part.wants(place)

    @property
    def progress(self) -> tuple[int, int]:
        """The number of pairs that are open, and the number of all pairs."""
        pairs = self._parameters.pairs
        return min(len(self._results) * self._parameters.chunk_pairs, pairs), pairs

    def result(self) -> bytes:
        """Y, one bit per pair; only available when all chunks are open."""
        self._require(State.DONE, "result")
        return b"".join(self._results[number] for number in range(self._parameters.chunks))
