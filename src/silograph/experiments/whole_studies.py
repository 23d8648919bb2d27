"""One whole study by every method, all parties in one process, with the real protocols.

As *mended* a study is what :class:`~silograph.runtime.federation.Federation` does. As *printed* the
messages are those of the same machines, and what is counted is what the paper says: Algorithm 1
(raw counts on the union of all reports), FEAT and FEAT+ over ``elgamal/replace``, the reading of
Algorithm 3 that its own calibration fits, with Propositions 1 to 6 as printed. **What is printed
protects less than it says, and most of it does not hold**; it is here to be timed.
"""

import warnings
from dataclasses import dataclass, replace

from silograph.errors import ArgumentError
from silograph.experiments import printed
from silograph.experiments.printed_featplus import printed_local_kstars, printed_local_triangles
from silograph.graph.bitrows import BitRows
from silograph.graph.silo import Silo, union
from silograph.methods.featplus import share
from silograph.methods.featplus_plan import plan_featplus
from silograph.methods.featplus_rounds import FeatPlusPlan, Shared
from silograph.methods.featplus_sessions import FeatPlusCoordinatorSession, FeatPlusSiloSession
from silograph.methods.union import plan_union
from silograph.privacy.channel import Channel
from silograph.privacy.featplus import Split
from silograph.protocol.envelope import Outgoing
from silograph.protocol.machine import CoordinatorSession, SiloSession
from silograph.queries.partition import owned_nodes
from silograph.queries.release import Release
from silograph.queries.tally import Tally
from silograph.queries.triangles import triangles_value
from silograph.runtime.drive import Parties, drive
from silograph.runtime.entropy import OsEntropy
from silograph.runtime.federation import Federation

__all__ = [
    "QUERIES",
    "WholeStudy",
    "count_printed_feat",
    "count_printed_featplus",
    "draw_printed_release",
    "elgamal_union",
    "mended",
    "printed_baseline",
]

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
    """A study as the project does it. feat+ has the paper's split of epsilon: with its own choice
    it would be feat wherever local answers do not pay."""
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
        return float(triangles_value(Tally(graph), channel))  # Proposition 2 holds
    return float(printed.kstars(graph.degrees.tolist(), asked.n, channel.p01, 2))


def count_printed_featplus(asked: WholeStudy, triangle: bytes) -> float:
    """What follows the union in Algorithm 4: degrees and owners, local answers, their sum."""
    query, k = QUERIES[asked.query]
    channel, m = _channel(asked, "feat+"), len(asked.silos)
    plan = plan_featplus(
        query, k, "paper", "paper", asked.epsilon, m, 0, "clear", asked.n, channel=channel
    )
    # Line 2 as printed: "d′ ← d + Lap(m/ε2)".
    plan = replace(plan, noise=replace(plan.noise, printed=True))
    entropy = OsEntropy()
    run, parties = entropy.bytes(16), Parties.fresh(asked.silos, entropy)
    coordinator = FeatPlusCoordinatorSession(
        plan, asked.subject, _Given(triangle), parties.roster, run, parties.coordinator[0], share
    )
    silos = [
        FeatPlusSiloSession(
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


class _Given(CoordinatorSession[bytes]):
    """The coordinator of a union that was made before."""

    bindings = ()
    phase, done, progress = "done", True, (1, 1)

    def __init__(self, triangle: bytes) -> None:
        self._triangle = triangle

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Nothing comes."""
        raise ArgumentError("the union is over")

    def result(self) -> bytes:
        """What was given."""
        return self._triangle


def _printed_answer(plan: FeatPlusPlan, shared: Shared, silo: Silo, place: int) -> int:
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
    return plan_union("elgamal/replace", epsilon, len(asked.silos), 0).channel
