"""Sealed runs of tiny silos, step by step, for tests that stop in the middle or look inside."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from silograph.messages.envelope import EVERYONE, Outgoing, peek
from silograph.messages.identity import COORDINATOR
from silograph.methods.sealed.coordinator import SealedDealer
from silograph.methods.sealed.noise import Noise, Output
from silograph.methods.sealed.rounds import SealedParameters
from silograph.methods.sealed.silo import SealedSilo
from tests.support.parties import SeededEntropy, identities, no_bits, roster_of

RUN = bytes(range(16))
EVERYTHING = ("edges", "degrees", "two_stars", "triangles")
Edges = set[tuple[int, int]]


@dataclass(frozen=True)
class Silence(Noise):
    """No noise at all. The product has no such thing: its scales are positive."""

    def draw(self, count: int, seed: bytes) -> npt.NDArray[np.int64]:
        return np.zeros(count, dtype=np.int64)


SILENCE = Silence("each", 1, 1)


def parameters(
    silos: int = 3,
    nodes: int = 20,
    names: tuple[str, ...] = EVERYTHING,
    noise: Noise = SILENCE,
    **changes: object,
) -> SealedParameters:
    outputs = tuple(Output(name, noise) for name in names)  # type: ignore[arg-type]
    given: dict[str, object] = {
        "silos": silos,
        "nodes": nodes,
        "subject": b"nodes",
        "outputs": outputs,
        "chunk_pairs": 64,
    }
    return SealedParameters(**(given | changes))  # type: ignore[arg-type]


def pair_bits(given: SealedParameters, edges: Edges) -> Callable[[int], bytes]:
    """A silo's bits, chunk by chunk."""
    index = {pair: k for k, pair in enumerate(combinations(range(given.nodes), 2))}
    held = sum(1 << index[pair] for pair in edges)

    def chunk(number: int) -> bytes:
        size = given.chunk_size(number)
        bits = held >> number * given.chunk_pairs & (1 << size) - 1
        return bits.to_bytes(-(-size // 64) * 8, "little")

    return chunk


def authorise(silo: SealedSilo, bits: Callable[[int], bytes]) -> list[Outgoing]:
    """With these bits, which a silo outside tests is made with."""
    silo._bits = bits
    return silo.authorise()


Event = Callable[[SealedSilo], list[Outgoing]]


class SealedRun:
    """Silos and a dealer with fixed identities."""

    def __init__(
        self, given: SealedParameters | None = None, run: bytes = RUN, seed: int = 1
    ) -> None:
        self.parameters = given or parameters()
        m = self.parameters.silos
        self.keys = identities(m)
        self.roster = roster_of(self.keys)
        head = (self.parameters, self.roster, run)
        self.dealer = SealedDealer(*head, self.keys[m], SeededEntropy(100 * seed + 99))
        self.silos = [self.silo(i, run, seed) for i in range(m)]
        #: Every message, in the order of delivery: (sender, receiver, bytes).
        self.messages: list[tuple[int, int, bytes]] = []
        #: All that was done to each silo, to be done again to another one.
        self.events: dict[int, list[Event]] = {place: [] for place in range(m)}

    def silo(self, place: int, run: bytes = RUN, seed: int = 1) -> SealedSilo:
        entropy = SeededEntropy(100 * seed + place)
        head = (self.parameters, self.roster, run)
        return SealedSilo(*head, place, self.keys[place], entropy, no_bits)

    def act(self, place: int, event: Event) -> list[tuple[int, Outgoing]]:
        self.events[place].append(event)
        return [(place, message) for message in event(self.silos[place])]

    def machine(self, place: int) -> SealedDealer | SealedSilo:
        return self.dealer if place == COORDINATOR else self.silos[place]

    def deliver(
        self,
        sent: list[tuple[int, Outgoing]],
        until: Callable[[int, int, bytes], bool] | None = None,
    ) -> list[tuple[int, int, bytes]]:
        """Deliver, and all that it gives rise to; what is left where ``until`` says stop."""
        waiting = [
            (sender, to, message.raw) for sender, message in sent for to in self.receivers(message)
        ]
        while waiting:
            if until is not None and until(*waiting[0]):
                return waiting
            sender, to, raw = waiting.pop(0)
            self.messages.append((sender, to, raw))
            for place, answer in self._receive(to, raw):
                waiting += [(place, other, answer.raw) for other in self.receivers(answer)]
        return []

    def _receive(self, to: int, raw: bytes) -> list[tuple[int, Outgoing]]:
        if to == COORDINATOR:
            return [(to, message) for message in self.dealer.receive(raw)]
        return self.act(to, lambda silo: silo.receive(raw))

    def receivers(self, message: Outgoing) -> list[int]:
        return list(range(len(self.silos))) if message.to == EVERYONE else [message.to]

    def agree(self) -> "SealedRun":
        """Everything up to the ledger."""
        self.deliver([out for i in range(len(self.silos)) for out in self.act(i, SealedSilo.start)])
        return self

    def ready(self, holdings: list[Edges]) -> list[tuple[int, Outgoing]]:
        sent = []
        for place, edges in enumerate(holdings):
            bits = pair_bits(self.parameters, edges)
            sent += self.act(place, lambda silo, bits=bits: authorise(silo, bits))  # type: ignore[misc]
        return sent

    def open(self, holdings: list[Edges]) -> "SealedRun":
        """Everything up to counting."""
        self.deliver(self.ready(holdings))
        return self

    def finish(self) -> "SealedRun":
        for place in range(len(self.silos)):
            self.deliver(self.act(place, SealedSilo.count))
        return self

    def whole(self, holdings: list[Edges]) -> "SealedRun":
        return self.agree().open(holdings).finish()

    def rounds(self, name: str) -> list[tuple[int, int, bytes]]:
        return [entry for entry in self.messages if peek(entry[2]).round == name]


def exact(nodes: int, holdings: list[Edges]) -> tuple[int, list[int], int, int]:
    """Edges, degrees, 2-stars and triangles of the union, by counting."""
    union = set().union(*holdings)
    degrees = [sum(u in pair for pair in union) for u in range(nodes)]
    stars = sum(d * (d - 1) // 2 for d in degrees)
    triples = combinations(range(nodes), 3)
    triangles = sum({(a, b), (a, c), (b, c)} <= union for a, b, c in triples)
    return len(union), degrees, stars, triangles
