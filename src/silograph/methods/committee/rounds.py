"""The rounds of the committee's union, its parameters, and the tables of its states.

Parties
    The silos, the helpers (members without edges) and the coordinator. Four of them are the
    committee. Members write to each other directly; every such message is encrypted under a key
    that its sender and its receiver alone have, for one direction.
Rounds
    ``key``      each party publishes a fresh X25519 run key, signed by its identity
    ``keys``     the coordinator relays all of them, and its own
    ``confirm``  each party signs a digest of roster, parameters (the committee among them) and keys
    ``confirms`` the coordinator relays all of them; a party continues only if all digests agree
    ``seed``     each member draws the seed of one component for the two other members that hold it;
                 a silo outside the committee draws seeds of its own, and sends each member those of
                 the components that the member holds
    ``match``    each two members compare the hashes of all seeds that both hold, before first use
    ``input``    a silo sends the component of its bits that does not come from a seed
    ``check``    each two members compare the hashes of all such vectors that both hold, before use
    ``joint``    one layer of gates: masked products, and hashes of those that another member sends
    ``open``     a member tells the coordinator the sum of two components, or its hash
What each party sees, and why that tells nothing
    A member lacks one component of every secret, and everything it receives is hidden by a mask
    that it does not know, or is the hash of something that it received. So its view can be made up
    without any other party's bits; with the coordinator, from the released bits. Whoever cheats in
    a message knows by itself whether its receiver will refuse it: the message is compared with the
    hash of another member, who computed it from the same values, before anything depends on it. So
    whether and when a run ends tells nothing either. ``tests/methods/committee`` enumerates this.
What a cheat can do
    End a run, choose its own bits as it likes, and, with the coordinator, publish a wrong answer.
Assumptions
    ChaCha20-Poly1305, X25519, HKDF, SHA-256, BLAKE3, AES-256-CTR and Ed25519 are what they should
    be; of the four members at most one is dishonest.
"""

import hashlib
from abc import abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from silograph import _core
from silograph.errors import ArgumentError
from silograph.messages.identity import COORDINATOR, Roster, pack
from silograph.messages.rounds import Chunked

__all__ = [
    "CHUNK_PAIRS",
    "COORDINATOR_STEPS",
    "MEMBERS",
    "PARTY_STEPS",
    "SECRET_ROUNDS",
    "VIEW",
    "WINDOW",
    "CommitteeParameters",
    "Seating",
    "State",
]

#: The number of members of a committee.
MEMBERS = 4
#: The number of pairs in a chunk.
CHUNK_PAIRS = 1 << 20
#: How many chunks a member works on at the same time.
WINDOW = 4
#: How random bits are drawn, and how the coin is made from them.
_STREAM = b"aes-256-ctr under hkdf-sha256 of seed, view, component, chunk and purpose"
_COIN = b"random bits, from the lowest place on, compared with a constant"
#: The label of the digest that all parties sign.
VIEW = b"silograph/committee/view/v1"
#: The rounds whose messages are encrypted for one receiver.
SECRET_ROUNDS = ("seed", "match", "input", "check", "joint", "open", "tell", "sum", "done")


class Seating(Chunked):
    """The common part of the parameters of all runs with a committee: who sits in it."""

    #: The places of the four members, in their order.
    members: tuple[int, ...]
    #: The circuit of a chunk of pairs.
    circuit: _core.CommitteeCircuit

    def check_members(self) -> None:
        """Refuse anything but four members."""
        if len(self.members) != MEMBERS or len(set(self.members)) != MEMBERS:
            raise ArgumentError("a committee has four different members")
        if self.items * self.stride > 1 << 32:
            raise ArgumentError("there are more pairs than messages can be numbered for")

    @property
    def items(self) -> int:
        """The number of chunks that members work on, of any kind."""
        return self.chunks

    @property
    def stride(self) -> int:
        """How many layers of a chunk are numbered."""
        return self.circuit.layers

    def number(self, place: int) -> int | None:
        """The number of a party in the committee, or None if it is no member."""
        return self.members.index(place) if place in self.members else None

    @property
    def owners(self) -> list[int | None]:
        """The number of each silo in the committee, or None if it is no member."""
        return [self.number(silo) for silo in range(self.silos)]

    def vector(self, silo: int) -> int:
        """The component of a silo's bits that travels; the others come from seeds."""
        return _core.committee_vector(self.number(silo), silo)

    def travels(self, item: int, place: int) -> int | None:
        """The component of a party's input of a chunk that travels; None if it has no input."""
        return self.vector(place) if place < self.silos else None

    def owner(self, item: int, place: int) -> int:
        """The number by which the input of a party is known in a chunk."""
        return place

    def input_bytes(self, item: int) -> int:
        """The size of an input of a chunk."""
        return self.bit_bytes(item)

    @abstractmethod
    def opened_bytes(self, number: int) -> int:
        """The size of a sum of two components that is opened to the coordinator."""

    def opening_bytes(self, member: int, number: int) -> int:
        """The size of what a member opens: a sum, or under every second number its hash."""
        return 32 if (member + number) % 2 else self.opened_bytes(number)

    @property
    def outside(self) -> tuple[int, ...]:
        """The silos that are not members."""
        return tuple(silo for silo in range(self.silos) if silo not in self.members)

    def check(self, roster: Roster) -> None:
        """Refuse a committee that is not among these parties, and helpers that are no members."""
        helpers = set(roster.places) - set(range(self.silos))
        if not set(self.members) <= {*roster.places, COORDINATOR} or helpers - set(self.members):
            raise ArgumentError("the committee is not among the parties of the run")


@dataclass(frozen=True)
class CommitteeParameters(Seating):
    """What all parties of a run must agree on, and sign."""

    #: The coin is one with probability numerator/2^places.
    numerator: int
    places: int
    silos: int
    #: The places of the four members, in their order.
    members: tuple[int, ...]
    pairs: int
    #: The digest of the node universe that the pairs belong to.
    subject: bytes
    chunk_pairs: int = CHUNK_PAIRS

    def __post_init__(self) -> None:
        if not 1 <= self.places <= 128 or not 0 < self.numerator < 2**self.places:
            raise ArgumentError("the coin must have 1 to 128 places and a probability below 1")
        if self.numerator % 2 == 0:
            raise ArgumentError("the numerator of the coin must be odd")
        self.check_chunks()
        self.check_members()

    @property
    def digest(self) -> bytes:
        """SHA-256 of every parameter."""
        numbers = (self.numerator, self.places, self.silos, self.pairs, self.chunk_pairs)
        fields = [str(number).encode() for number in (*numbers, *self.members)]
        fields += [self.subject, _STREAM, _COIN]
        return hashlib.sha256(pack(b"silograph/committee/v1", *fields)).digest()

    def opened_bytes(self, number: int) -> int:
        """The size of a sum of two components of a chunk."""
        return self.bit_bytes(number)

    @cached_property
    def circuit(self) -> _core.CommitteeCircuit:  # type: ignore[override]
        """The gates."""
        coin = [bool(self.numerator >> place & 1) for place in range(self.places)]
        return _core.CommitteeCircuit(self.owners, coin)


class State(StrEnum):
    """The states of a machine."""

    NEW = "new"
    KEYS = "waiting for keys"
    CONFIRMS = "waiting for confirmations"
    SEEDS = "waiting for seeds"
    AGREED = "agreed, not yet authorised"
    CHUNKS = "chunks"
    DONE = "done"
    #: Two parties did not say the same: nothing is taken any more.
    ENDED = "ended"


_MEMBER_ROUNDS = ("seed", "match", "input", "check", "joint")
#: All steps of a silo or a helper; anything else is refused and changes nothing. Members run at
#: different speeds, so a message to a member may come before the member can use it.
PARTY_STEPS: dict[tuple[State, str], State] = {
    (State.NEW, "start"): State.KEYS,
    (State.KEYS, "keys"): State.CONFIRMS,
    (State.CONFIRMS, "confirms"): State.SEEDS,
    (State.SEEDS, "all seeds"): State.AGREED,
    (State.AGREED, "authorise"): State.CHUNKS,
    (State.CHUNKS, "make"): State.CHUNKS,
    (State.CHUNKS, "all chunks"): State.DONE,
    **{
        (state, name): state
        for state in (State.CONFIRMS, State.SEEDS, State.AGREED, State.CHUNKS)
        for name in _MEMBER_ROUNDS
    },
}
#: All steps of the coordinator; those of a member only if it is one.
COORDINATOR_STEPS: dict[tuple[State, str], State] = {
    (State.KEYS, "key"): State.KEYS,
    (State.KEYS, "all keys"): State.CONFIRMS,
    (State.CONFIRMS, "confirm"): State.CONFIRMS,
    (State.CONFIRMS, "all confirms"): State.CHUNKS,
    **{(State.CHUNKS, name): State.CHUNKS for name in (*_MEMBER_ROUNDS, "open")},
    (State.CHUNKS, "make"): State.CHUNKS,
    (State.CHUNKS, "all chunks"): State.DONE,
}
