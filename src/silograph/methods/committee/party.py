"""A silo or a helper in the committee's union.

The rounds are in :mod:`silograph.methods.committee.rounds`. A party is one of three: a silo in the
committee, a silo outside it, or a helper, which is in it and has no bits.
"""

from collections.abc import Container
from typing import ClassVar

from silograph import _core
from silograph.errors import ArgumentError, OrderError
from silograph.messages.entropy import Entropy
from silograph.messages.envelope import EVERYONE, Envelope, Outgoing
from silograph.messages.identity import COORDINATOR, Identity, Roster
from silograph.messages.machine import SiloSession
from silograph.messages.rounds import Bits, open_bundle
from silograph.messages.secrecy import check_own_key, check_views, view_digest
from silograph.methods.committee.member import Lines, Seat, outside_seeds, outside_sent
from silograph.methods.committee.rounds import PARTY_STEPS, Seating, State

__all__ = ["CommitteeParty"]


class CommitteeParty(Seat, SiloSession):
    """One party in one run. ``bits(view, chunk)`` is one bit per pair; a helper has None.

    What members compute together and open is up to their :class:`Part`. A party that is rebuilt
    after a crash must be given the same bits. Other bits under the same masks would show where
    they differ.
    """

    STEPS = PARTY_STEPS
    TAKES: ClassVar[tuple[str, ...]] = (
        "keys",
        "confirms",
        "seed",
        "match",
        "input",
        "check",
        "joint",
    )

    def __init__(
        self,
        parameters: Seating,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
        bits: Bits | None,
    ) -> None:
        super().__init__(parameters, roster, run, place, identity, entropy, State.NEW)
        if (bits is None) != (place >= parameters.silos):
            raise ArgumentError("silos have bits, and helpers have none")
        self._bits = bits
        self._seeds: _core.CommitteeSeeds | None = None
        self._made = 0

    @property
    def sources(self) -> tuple[int, ...]:
        """The coordinator; for a member also the other members and all silos."""
        if self._outside:
            return (COORDINATOR,)
        given = self._seating
        peers = {*given.members, *range(given.silos)} - {self._place, COORDINATOR}
        return (COORDINATOR, *sorted(peers))

    # --- the handshake ------------------------------------------------------------------------

    def start(self) -> list[Outgoing]:
        """Publish the run key."""
        state = self._step("start")
        raw = self._seal("key", EVERYONE, self._secret.public())
        self.state = state
        return [Outgoing(COORDINATOR, raw)]

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a bundle of the coordinator, or a message to a member."""
        message = self._opened(raw)
        if message.round == "keys":
            sent = self._agree(message)
        elif message.round == "confirms":
            sent = self._confirm(message)
        else:
            sent = self._take(message)
        return sent

    def _check_sender(self, message: Envelope) -> None:
        """Bundles come from the coordinator; what a member may hear is checked by its part."""
        if message.round in ("keys", "confirms") and message.sender != COORDINATOR:
            raise self._refuse(OrderError, "only the coordinator relays", message)

    def _agree(self, message: Envelope) -> list[Outgoing]:
        binding, place = self._binding, self._place
        helpers = binding.roster.places[self._seating.silos :]
        after = (*helpers, COORDINATOR)
        keys = open_bundle(binding, message, "key", receiver=place, length=32, after=after)
        check_own_key(binding, keys[place], self._secret.public(), place)
        everyone = (*binding.roster.places, COORDINATOR)
        lines = Lines(binding, self._secret, dict(zip(everyone, keys, strict=True)), place)
        view = view_digest(self.VIEW, binding, keys)
        sent = self._seal("confirm", EVERYONE, view)
        self._lines, self._view = lines, view
        if self._outside:
            vector = self._seating.vector(place)
            self._seeds = _core.CommitteeSeeds(outside_seeds(self._secret, vector), view)
        else:
            self._sit(self._bits)
        self.state = self._step("keys")
        return [Outgoing(COORDINATOR, sent)]

    def _confirm(self, message: Envelope) -> list[Outgoing]:
        helpers = self._binding.roster.places[self._seating.silos :]
        views = open_bundle(
            self._binding, message, "confirm", receiver=self._place, length=32, after=helpers
        )
        check_views(self._binding, views, self._view)
        self.state = self._step("confirms")
        if self._part is not None:
            self._part.confirm()
            return self._advance()
        seeds = outside_seeds(self._secret, self._seating.vector(self._place))
        for number, place in enumerate(self._seating.members):
            self._send("seed", place, 0, outside_sent(seeds, number))
        self.state = self._step("all seeds")
        return self._sent()

    @property
    def ready(self) -> bool:
        """Whether all keys and seeds are agreed on."""
        return self.state is State.AGREED

    def authorise(self) -> list[Outgoing]:
        """Record that the run's whole cost is in the ledger; bits are shared only after this."""
        self.state = self._step("authorise")
        if self._part is None:
            return []
        self._part.authorise()
        return self._advance()

    # --- a member -----------------------------------------------------------------------------

    def _advance(self) -> list[Outgoing]:
        sent = super()._advance()
        assert self._part is not None  # noqa: S101 - called for members alone
        if self.state is State.SEEDS and self._part.matched:
            self.state = self._step("all seeds")
        if self.state is State.CHUNKS and self._part.complete:
            self.state = self._step("all chunks")
        return sent

    # --- what is done unprompted --------------------------------------------------------------

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """The next piece of long work of a member, or of the upload of a silo outside."""
        if not self.room:
            return []
        self._step("make")
        return self._upload(sent) if self._part is None else self._work()

    def _upload(self, sent: Container[tuple[str, int]]) -> list[Outgoing]:
        """The next chunk of a silo outside the committee, for the three members that hold it."""
        number, given = self._made, self._seating
        assert self._seeds is not None and self._bits is not None  # noqa: S101, PT018
        if ("input", number) not in sent:
            bits, size = self._bits(self._view, number), given.chunk_size(number)
            vector = self._seeds.hide(self._place, number, bits, size)
            for member, place in enumerate(given.members):
                if member != given.vector(self._place):
                    self._send("input", place, number, vector)
        self._made += 1
        if self._made == given.chunks:
            self.state = self._step("all chunks")
        return self._sent()

    @property
    def room(self) -> bool:
        """Whether a silo outside the committee has chunks to make, or a member has work to do."""
        if self.state is not State.CHUNKS:
            return False
        return self._outside if self._part is None else self._part.room

    @property
    def ahead(self) -> bool:
        """Always true for a silo outside the committee: it receives no more messages."""
        return self._outside

    # --- helpers ------------------------------------------------------------------------------

    @property
    def _outside(self) -> bool:
        return self._place not in self._seating.members
