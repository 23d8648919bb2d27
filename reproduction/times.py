"""The paper's figure "Running time with various ρ": the wall time of one whole study.

All parties work in one process, one after the other but for the threads that each uses, so a time
is the work of all silos and of the coordinator together. Nothing waits for a network. ``seconds``
is the least of the repetitions, ``spread`` their standard deviation. ``work`` is processor time
over all threads, the least again: what to compare by where a machine had other things to do.

ElGamal takes minutes on the paper's graphs. Its work is the same for every pair, whatever the bits
are, so the union is timed on the pairs among the first nodes alone and scaled up to all pairs, but
for what a union of one pair takes: keys and tables, made once. What follows the union is timed on
the whole graph. Such rows are ``scaled``. The union is the same work in feat and in feat+, for
every query: it is measured once for all of them.

The sealed method's time does not depend on the edges either, so that one ρ is enough for it.
"""

import math
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from reproduction import printed
from reproduction.printed import printed_local_kstars, printed_local_triangles
from silograph import _core
from silograph.dp.channel import Channel
from silograph.errors import ArgumentError
from silograph.estimators.pair_sums import GraphSums
from silograph.estimators.release import Release
from silograph.estimators.triangles import triangles_value
from silograph.graph.bits import BitRows
from silograph.graph.samples import union
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.local.drive import Parties, drive
from silograph.local.federation import Federation
from silograph.messages.entropy import OsEntropy
from silograph.messages.envelope import Outgoing
from silograph.messages.machine import CoordinatorSession, SiloSession
from silograph.methods.featplus.answer import owned_nodes, share
from silograph.methods.featplus.machines import FeatPlusCoordinator, FeatPlusSilo
from silograph.methods.featplus.method import settle_featplus
from silograph.methods.featplus.noise import Split
from silograph.methods.featplus.rounds import FeatPlusTerms, Shared
from silograph.methods.union import settle_union

__all__ = [
    "QUERIES",
    "WAYS",
    "Way",
    "WholeStudy",
    "cases",
    "count_printed_feat",
    "count_printed_featplus",
    "draw_printed_release",
    "elgamal_union",
    "first_nodes",
    "measure",
    "mended",
    "nodes_for",
    "printed_baseline",
    "scale_up",
]


# --- One whole study by every method, all parties in one process, with the real protocols ---------
#
# As *mended* a study is what :class:`~silograph.local.federation.Federation` does. Otherwise the
# messages are those of the same machines, and what is counted is what the paper says: Algorithm 1
# as *printed* (raw counts on the union of all reports), and FEAT and FEAT+ as *meant*, over
# ``elgamal/replace``, the reading of Algorithm 3 that its own calibration fits, with Propositions 1
# to 6 as printed. Algorithm 3 to the letter does the same work on every pair, and is not timed.
# **What is printed protects less than it says, and most of it does not hold**; it is here to be
# timed.

#: The queries of the paper, and the arguments by which a federation knows them.
QUERIES = {"triangles": ("triangles", None), "2-stars": ("kstars", 2)}


@dataclass(frozen=True)
class WholeStudy:
    """What a study asks, whatever the method."""

    silos: tuple[Silo, ...]
    #: ``triangles`` or ``2-stars``
    query: str
    epsilon: float
    #: For ``sealed`` alone.
    delta: float = 0.0
    collusion: int = 1

    def __post_init__(self) -> None:
        if self.query not in QUERIES:
            raise ArgumentError(f"unknown query {self.query!r}; choose from {', '.join(QUERIES)}")

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.silos[0].universe)

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return self.n * (self.n - 1) // 2

    @property
    def subject(self) -> bytes:
        """The digest of the nodes."""
        return bytes.fromhex(self.silos[0].universe.digest)


def mended(asked: WholeStudy, method: str) -> float:
    """A study as the project does it, with masked unions. feat+ has the paper's split of epsilon:
    with its own choice it would be feat wherever local answers do not pay."""
    query, k = QUERIES[asked.query]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no ledger, and what some methods protect less
        estimate = Federation.simulate(asked.silos).count(
            query,
            method,
            epsilon=asked.epsilon,
            delta=asked.delta if method == "sealed" else 0.0,
            k=k,
            collusion=asked.collusion,
            protocol="masked" if method in ("feat", "feat+") else None,
            split="paper" if method == "feat+" else None,
            progress=False,
        )
    return float(estimate.value)


def printed_baseline(asked: WholeStudy) -> float:
    """Algorithm 1: a randomized response of every pair in every silo, their union, a raw count."""
    query, k = QUERIES[asked.query]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no ledger
        answer = Federation.simulate(asked.silos).count(
            query, "baseline", epsilon=asked.epsilon, k=k, collusion=0, raw=True, progress=False
        )
    return float(answer.value)


def elgamal_union(asked: WholeStudy) -> bytes:
    """Algorithm 3 by its prose, ``elgamal/replace``: the union's bits through one channel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no ledger, and what it protects less
        fed = Federation.simulate(asked.silos)
        release = fed.collect(asked.epsilon, "elgamal/replace", collusion=0, progress=False)
    return release.graph.to_triangle()


def draw_printed_release(asked: WholeStudy, method: str, seed: int) -> bytes:
    """What :func:`elgamal_union` would give on all pairs, drawn from its channel: where the union
    is timed on some pairs only, the counting is still timed on the whole graph."""
    channel = _channel(asked, method)
    return Release.draw(union(asked.silos), channel, seed).graph.to_triangle()


def count_printed_feat(asked: WholeStudy, triangle: bytes) -> float:
    """What follows the union in Algorithm 2: Proposition 2, or Σ C(d̃, 2) by Proposition 1."""
    graph, channel = BitRows.from_triangle(asked.n, triangle), _channel(asked, "feat")
    if asked.query == "triangles":
        return float(triangles_value(GraphSums(graph), channel))  # Proposition 2 holds
    return float(printed.kstars(graph.degrees.tolist(), asked.n, channel.p01, 2))


def count_printed_featplus(asked: WholeStudy, triangle: bytes) -> float:
    """What follows the union in Algorithm 4: degrees and owners, local answers, their sum."""
    query, k = QUERIES[asked.query]
    channel, m = _channel(asked, "feat+"), len(asked.silos)
    plan = settle_featplus(
        query, k, "paper", "paper", asked.epsilon, m, 0, "clear", asked.n, channel=channel
    )
    # Line 2 as printed: "d′ ← d + Lap(m/ε2)".
    plan = replace(plan, noise=replace(plan.noise, printed=True))
    entropy = OsEntropy()
    run, parties = entropy.bytes(16), Parties.fresh(asked.silos, entropy)
    coordinator = FeatPlusCoordinator(
        plan, asked.subject, _Given(triangle), parties.roster, run, parties.coordinator[0], share
    )
    silos = [
        FeatPlusSilo(
            plan, asked.subject, _Idle(), parties.roster, run, place, identity, entropy, silo,
            _printed_answer,
        )
        for place, ((identity, _), silo) in enumerate(
            zip(parties.silos, asked.silos, strict=True)
        )
    ]  # fmt: skip
    found = drive(coordinator, silos, lambda: None, "printed", shown=False)
    bound = 0.0 if found.shared is None else found.shared.bound
    return float(plan.unit(bound) * sum(found.reports))


class _Idle(SiloSession):
    """A silo in a union that was made before: it has nothing to say."""

    bindings = ()
    phase, done, ready = "done", True, True

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Nothing comes."""
        raise ArgumentError("the union is over")

    def authorise(self) -> list[Outgoing]:
        """Nothing follows."""
        return []


class _Given(CoordinatorSession[_core.OpenBits]):
    """The coordinator of a union that was made before."""

    bindings = ()
    phase, done, progress = "done", True, (1, 1)

    def __init__(self, triangle: bytes) -> None:
        self._triangle = triangle

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Nothing comes."""
        raise ArgumentError("the union is over")

    def result(self) -> _core.OpenBits:
        """What was given."""
        bits = _core.OpenBits(8 * len(self._triangle))
        bits.write(0, self._triangle)
        return bits


def _printed_answer(plan: FeatPlusTerms, shared: Shared, silo: Silo, place: int) -> int:
    """Algorithms 5 and 6, with one binomial a node, in the units of the report."""
    held, owned = BitRows.from_pairs(plan.n, silo.pairs), owned_nodes(shared.owners, place)
    p = plan.union.channel.p01
    if plan.k is None:
        value = printed_local_triangles(held, shared.graph, owned, p)
    else:
        value = printed_local_kstars(held, shared.graph, owned, p, plan.k, per_node=True)
    return round(value / plan.unit(shared.bound))


def _channel(asked: WholeStudy, method: str) -> Channel:
    """Of the union: at ε, or at the share of it that feat+ has for its release."""
    epsilon = asked.epsilon
    if method == "feat+":
        epsilon = Split.of("paper", epsilon).release_epsilon
    return settle_union("elgamal/replace", epsilon, len(asked.silos), 0).channel


# --- Times ----------------------------------------------------------------------------------------


class Way(NamedTuple):
    """A method, in one of its forms, over one union."""

    method: str
    form: str
    union: str


class Spent(NamedTuple):
    """Seconds on the clock, and of processors."""

    wall: float
    work: float


#: Every way that is timed.
WAYS = (
    Way("baseline", "printed", "reports"),
    Way("baseline", "mended", "reports"),
    Way("feat", "meant", "elgamal/replace"),
    Way("feat+", "meant", "elgamal/replace"),
    Way("feat", "mended", "masked"),
    Way("feat+", "mended", "masked"),
    Way("sealed", "mended", "sealed"),
)
_COUNTS: dict[str, Callable[[WholeStudy, bytes], float]] = {
    "feat": count_printed_feat,
    "feat+": count_printed_featplus,
}
#: Unions of one pair, of which the quickest counts.
_ROUNDS = 3
_SCALED = (
    "the union was timed on measured_pairs and scaled up to pairs; the rest on the whole graph"
)
_ONE_RHO = "the time does not depend on the edges: one ρ stands for all"


def cases(parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The arguments of :func:`measure`, but for the silos, for every row of the figure.

    The sealed method is measured at ``sealed_values`` of ρ.
    """
    strange = set(parameters["sealed_values"]) - set(parameters["values"])
    if strange:
        raise ArgumentError(f"sealed_values has {min(strange)}, which is not one of values")
    common = {key: parameters[key] for key in ("epsilon", "delta", "collusion", "elgamal_pairs")}
    found = []
    for graph in parameters["graphs"]:
        for rho in parameters["values"]:
            for way in WAYS:
                left_out = way.method == "sealed" and rho not in parameters["sealed_values"]
                if left_out or way.method not in parameters["methods"]:
                    continue
                quick = way.method != "sealed" and way.union != "elgamal/replace"
                repetitions = parameters["repetitions"] if quick else 1
                for query in parameters["queries"]:
                    about = {"graph": graph, "rho": rho, "query": query}
                    found.append(
                        {**about, **way._asdict(), "repetitions": repetitions, **common}
                    )  # fmt: skip
    return found


def measure(
    silos: Sequence[Silo],
    *,
    graph: str,
    rho: float,
    query: str,
    method: str,
    form: str,
    union: str,
    epsilon: float,
    delta: float,
    collusion: int,
    elgamal_pairs: int,
    repetitions: int,
) -> dict[str, Any]:
    """One row: the time of one study over the silos, which hold a share ``rho`` of a graph each."""
    way = Way(method, form, union)
    if way not in WAYS:
        known = "; ".join(", ".join(known) for known in WAYS)
        raise ArgumentError(f"no such way: {', '.join(way)}; there are {known}")
    if repetitions < 1:
        raise ArgumentError(f"repetitions is {repetitions}; there must be at least 1")
    asked = WholeStudy(tuple(silos), query, epsilon, delta, collusion)
    measured, note = asked.pairs, ""
    if union == "elgamal/replace":
        measured, spent = _elgamal(asked, method, elgamal_pairs, repetitions)
        note = _SCALED if measured < asked.pairs else ""
    elif form == "printed":
        spent = _timed(lambda: printed_baseline(asked), repetitions)
    else:
        spent = _timed(lambda: mended(asked, method), repetitions)
        note = _ONE_RHO if method == "sealed" else ""
    walls = [one.wall for one in spent]
    return {
        "experiment": "time",
        "graph": graph,
        "rho": rho,
        **way._asdict(),
        "query": query,
        "seconds": min(walls),
        "measured_pairs": measured,
        "pairs": asked.pairs,
        "scaled": measured < asked.pairs,
        "repetitions": len(spent),
        "spread": statistics.stdev(walls) if len(walls) > 1 else 0.0,
        "work": min(one.work for one in spent),
        "note": note,
    }


def _elgamal(
    asked: WholeStudy, method: str, elgamal_pairs: int, repetitions: int
) -> tuple[int, list[Spent]]:
    """The pairs that the union was timed on, and what a study on all of them takes."""
    nodes = min(nodes_for(elgamal_pairs), asked.n)
    part = replace(asked, silos=first_nodes(asked.silos, nodes), query="triangles")
    unions = _union_times(part, repetitions)
    if nodes < asked.n:
        smallest = replace(part, silos=first_nodes(asked.silos, 2))
        fixed = [min(times) for times in zip(*_union_times(smallest, _ROUNDS), strict=True)]
        sizes = part.pairs, asked.pairs
        unions = [
            Spent(*(scale_up(t, once, *sizes) for t, once in zip(one, fixed, strict=True)))
            for one in unions
        ]
    release = draw_printed_release(asked, method, seed=0)
    counts = _timed(lambda: _COUNTS[method](asked, release), repetitions)
    both = zip(unions, counts, strict=True)
    return part.pairs, [Spent(u.wall + c.wall, u.work + c.work) for u, c in both]


@lru_cache(maxsize=4)
def _union_times(part: WholeStudy, repetitions: int) -> list[Spent]:
    return _timed(lambda: elgamal_union(part), repetitions)


def scale_up(seconds: float, fixed: float, measured: int, pairs: int) -> float:
    """The seconds of all pairs from those of the measured ones, of which ``fixed`` are not work on
    pairs.

    >>> scale_up(3.0, fixed=1.0, measured=10, pairs=100)
    21.0
    """
    fixed = min(fixed, seconds)
    return fixed + (seconds - fixed) * pairs / measured


def nodes_for(pairs: int) -> int:
    """The least number of nodes that have so many pairs.

    >>> nodes_for(1), nodes_for(3), nodes_for(4), nodes_for(2**17)
    (2, 3, 4, 513)
    """
    if pairs < 1:
        raise ArgumentError(f"pairs is {pairs}; there must be at least 1")
    nodes = (1 + math.isqrt(8 * pairs + 1)) // 2
    return nodes if nodes * (nodes - 1) // 2 >= pairs else nodes + 1


def first_nodes(silos: Sequence[Silo], nodes: int) -> tuple[Silo, ...]:
    """The silos' edges among the first nodes of the universe."""
    universe = NodeUniverse.range(nodes)
    return tuple(
        Silo.from_pairs(universe, silo.pairs[silo.pairs[:, 1] < nodes], name=silo.name)
        for silo in silos
    )


def _timed(study: Callable[[], object], repetitions: int) -> list[Spent]:
    found = []
    for _ in range(repetitions):
        wall, work = time.perf_counter(), time.process_time()
        study()
        found.append(Spent(time.perf_counter() - wall, time.process_time() - work))
    return found
