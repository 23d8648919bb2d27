"""Whether the time in which a silo makes a message depends on its edges.

Three silos that hold 0, 10 and 100 % of all pairs make the same messages, by turns in an order that
is drawn anew every time, through the sessions that a deployment drives. Who watches the network
sees when a message leaves: a difference in time would show where a silo's edges are.

Each two silos are compared by Welch's t-test. |t| above 4.5 counts as a difference, as is usual in
tests for side channels; with equal times that happens once in 150,000 comparisons. Messages slower
than nine tenths of all, during which the machine did something else, are left out by one limit for
the three silos.

Exits with an error where a difference is found.
"""

from benchmarks.harness import Benchmark, use_threads

THREADS = use_threads(2)

import os
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from scipy import stats

from silograph import NodeUniverse, Silo
from silograph.graph.bits import PairBits, bits_in_chunks
from silograph.messages.entropy import OsEntropy
from silograph.messages.envelope import EVERYONE, peek
from silograph.messages.identity import COORDINATOR, Identity, Member, Roster
from silograph.messages.machine import CoordinatorSession, SiloSession
from silograph.methods.baseline.machines import ReportCoordinator, ReportParameters, ReportSilo
from silograph.methods.elgamal.coordinator import ElgamalCoordinator
from silograph.methods.elgamal.rounds import ElgamalParameters
from silograph.methods.elgamal.silo import ElgamalSilo
from silograph.methods.masked.machines import (
    MaskedCoordinator,
    MaskedParameters,
    MaskedSilo,
    chunk_pairs,
)
from silograph.methods.sealed.coordinator import SealedCoordinator
from silograph.methods.sealed.noise import Coins, Output
from silograph.methods.sealed.party import SealedParty
from silograph.methods.sealed.rounds import SealedParameters

DENSITIES = (0.0, 0.1, 1.0)
SILOS, MESSAGES, LIMIT, KEPT = 3, 1_000, 4.5, 0.9
#: Four whole chunks of masked pairs, eight of reported ones, four of the sealed protocol, and few
#: cells: those are slow.
NODES, SEALED_NODES, ELGAMAL_NODES, CELLS = 4_097, 1_450, 33, 64
#: The place of the silo whose time is taken: its cells are rewritten, not made.
PLACE = 1
KEYS = [Identity(os.urandom(32)) for _ in range(SILOS + 1)]
ROSTER = Roster(
    Member("coordinator", KEYS[SILOS].public),
    tuple(Member(f"silo {i + 1}", key.public) for i, key in enumerate(KEYS[:SILOS])),
)
Act = Callable[[], object]


def silo_of(n: int, density: float) -> Silo:
    """A silo that holds this share of all pairs, by chance."""
    pairs = np.stack(np.triu_indices(n, 1), axis=1).astype(np.uint32)
    held = np.random.default_rng(1).random(len(pairs)) < density
    return Silo.from_pairs(NodeUniverse.range(n), pairs[held])


class Parties:
    """The sessions of one run, and the messages between them."""

    def __init__(self, coordinator: CoordinatorSession, silos: Sequence[SiloSession]) -> None:
        self.coordinator, self.silos = coordinator, silos
        #: What is held back from the silo whose time is taken.
        self.held: list[bytes] = []
        self._stopped = ""
        for place, silo in enumerate(silos):
            self.carry(place, silo.start())

    def pay(self, stopped: str) -> None:
        """Authorise all silos; hold back this round from the one, and whatever follows it."""
        self._stopped = stopped
        for place, silo in enumerate(self.silos):
            self.carry(place, silo.authorise())

    def carry(self, sender: int, outgoing: Sequence) -> None:
        """Deliver these, and all that they give rise to."""
        waiting = deque((sender, message) for message in outgoing)
        while waiting:
            sender, message = waiting.popleft()
            to = range(SILOS) if message.to == EVERYONE else (message.to,)
            for place in to:
                stopped = self.held or peek(message.raw).round == self._stopped
                if place == PLACE and stopped:
                    self.held.append(message.raw)
                    continue
                party = self.coordinator if place == COORDINATOR else self.silos[place]
                waiting += [(place, answer) for answer in party.receive(message.raw)]


def sessions(silo: Silo, parameters: object, silo_kind: type, others: type) -> Parties:
    """A run in which the one silo is as given, and the others hold nothing."""
    empty = Silo.from_pairs(silo.universe, np.empty((0, 2), dtype=np.uint32))
    run, entropy = os.urandom(16), OsEntropy()
    drawing = (entropy,) if others is SealedCoordinator else ()
    coordinator = others(parameters, ROSTER, run, KEYS[SILOS], *drawing)
    silos = [
        silo_kind(
            parameters,
            ROSTER,
            run,
            i,
            KEYS[i],
            entropy,
            bits_in_chunks(held, parameters.chunk_pairs),
        )
        for i, held in enumerate(silo if i == PLACE else empty for i in range(SILOS))
    ]
    return Parties(coordinator, silos)


def pairs_of(n: int) -> int:
    return n * (n - 1) // 2


def masked(silo: Silo) -> Iterator[Act]:
    """Every whole chunk that a silo uploads."""
    q, pairs = 21, pairs_of(NODES)
    given = MaskedParameters(q, Fraction(1, 50), SILOS, pairs, b"nodes", chunk_pairs(q))
    parties = sessions(silo, given, MaskedSilo, MaskedCoordinator)
    parties.silos[PLACE].authorise()
    for _ in range(given.pairs // given.chunk_pairs):
        yield parties.silos[PLACE].make


def reports(silo: Silo) -> Iterator[Act]:
    """Every whole chunk of a silo's own noisy bits."""
    p = Fraction(1, 5)
    given = ReportParameters(1 - p, p, SILOS, pairs_of(NODES), b"nodes")
    parties = sessions(silo, given, ReportSilo, ReportCoordinator)
    parties.silos[PLACE].authorise()
    for _ in range(given.pairs // given.chunk_pairs):
        yield parties.silos[PLACE].make


def elgamal(silo: Silo) -> Iterator[Act]:
    """Every chunk of cells that a silo rewrites with its bits."""
    chance, pairs = Fraction(1, 5), pairs_of(ELGAMAL_NODES)
    given = ElgamalParameters("blinded", chance, SILOS, pairs, b"nodes", chunk_pairs=CELLS)
    parties = sessions(silo, given, ElgamalSilo, ElgamalCoordinator)
    parties.pay("work")
    for _ in range(given.pairs // given.chunk_pairs):
        parties.carry(COORDINATOR, parties.coordinator.make())
    for raw in parties.held:
        yield lambda raw=raw: parties.silos[PLACE].receive(raw)


def sealed(silo: Silo) -> Iterator[Act]:
    """The inputs of four chunks, which leave together."""
    outputs = (Output("edges", Coins((1,), 2)),)
    members = (*range(SILOS), COORDINATOR)
    given = SealedParameters(SILOS, members, SEALED_NODES, b"nodes", outputs)
    parties = sessions(silo, given, SealedParty, SealedCoordinator)
    yield parties.silos[PLACE].authorise


CASES = {
    "masked": (masked, NODES, 1),
    "baseline": (reports, NODES, 1),
    "elgamal": (elgamal, ELGAMAL_NODES, 1),
    "sealed": (sealed, SEALED_NODES, 4),
}


def times(case: Callable[[Silo], Iterator[Act]], silos: Sequence[Silo], messages: int) -> list:
    """Seconds of every message, for each silo, in turns."""
    taken: list[list[float]] = [[] for _ in silos]
    order = list(range(len(silos)))
    while len(taken[0]) < messages:
        for acts in zip(*(list(case(silo)) for silo in silos), strict=True):
            random.shuffle(order)
            for i in order:
                start = time.perf_counter()
                acts[i]()
                taken[i].append(time.perf_counter() - start)
    return [np.array(each[:messages]) for each in taken]


def compare(bench: Benchmark, name: str, chunks: int) -> None:
    case, nodes, together = CASES[name]
    silos = [silo_of(nodes, density) for density in DENSITIES]
    times(case, silos, 16)  # caches, and pages of memory that are used again
    taken = times(case, silos, -(-chunks // together))
    limit = np.quantile(np.concatenate(taken), KEPT)
    kept = [each[each <= limit] for each in taken]
    rows = []
    for density, silo, each in zip(DENSITIES, silos, kept, strict=True):
        start = time.perf_counter()
        PairBits(silo)
        before = time.perf_counter() - start
        row = [f"{1e3 * x:.4f}" for x in (each.mean(), np.median(each))]
        rows.append((f"{density:.0%}", *row, f"{1e3 * before:.2f}"))
    title = f"{name}: {chunks:,} chunks a silo, {together} a message"
    bench.table(name, title, ("pairs held", "mean ms", "median ms", "prepared in ms"), rows)
    for (a, first), (b, second) in combinations(zip(DENSITIES, kept, strict=True), 2):
        found = stats.ttest_ind(first, second, equal_var=False)
        bench.goal(f"{name}, {a:.0%} and {b:.0%}: |t|", abs(found.statistic), most=LIMIT)


def main() -> int:
    bench = Benchmark("timing", __doc__, THREADS)
    bench.parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; all by default")
    bench.parser.add_argument("--chunks", type=int, default=MESSAGES, help="how many of each silo")
    given = bench.start()
    if unknown := set(given.cases) - set(CASES):
        bench.parser.error(f"there is no case {', '.join(sorted(unknown))}")
    for name in given.cases or CASES:
        compare(bench, name, given.chunks)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
