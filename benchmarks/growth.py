"""How the work of every query and every protocol grows, and how far each of them goes.

Each runs on n and on 2n nodes, in turns; the exponent is the base-2 logarithm of the ratio of their
processor times. It must not be above the order that is expected of it, 2 where all pairs are looked
at and 3 where all triples are, by more than 0.25.

From the time at 2n, growing with the expected order from there on (parts that grow less may still
weigh there, so that this is cautious), and from what methods/cost.py knows of traffic and memory,
follows the largest n within an hour, 16 GiB and 100 GB sent by a silo, with all parties on this
machine. It is marked as measured if a run in this very benchmark had as many nodes.

What a plan says of a protocol's time and memory stands beside what its run on 2n nodes took; the
memory is that of a run in a process of its own.

    make bench-growth
    python -m benchmarks.growth --only masked committee --sizes masked=20000
"""

from benchmarks.harness import Benchmark, Contestant, apart, peak, use_threads

THREADS = use_threads(2)

import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

from silograph import Channel, Federation, Release, clustered_power_law, split
from silograph.graph.bits import BitRows
from silograph.methods.cost import Cost, reports_cost, sealed_cost, union_cost
from silograph.methods.sealed.noise import Answer
from silograph.methods.sealed.rounds import MOST_MATRIX_NODES, member_cost
from silograph.methods.union import settle_union

SILOS, EPSILON, ROUNDS, SLACK = 4, 3.0, 6, 0.25
#: A plan is rough: its time may be off by so much both ways, and no run may take more memory than
#: a quarter above it.
ROUGH, MORE_MEMORY = 3.0, 1.25
SECONDS, MEMORY, SENT = 3600.0, 16 * 2**30, 100e9
#: Nodes of a query by its order: n, where 2n takes a fraction of a second.
NODES = {2: 8_000, 3: 4_000}
#: What no method goes beyond here.
MOST_NODES = 2**32


@dataclass(frozen=True)
class Measured:
    """A query or a protocol: how it is run on so many nodes, and what is expected of it."""

    name: str
    kind: str
    order: int
    nodes: int
    prepare: Callable[[int], Callable[[], object]]
    cost: Callable[[int], Cost]
    #: The most nodes that it accepts.
    most: int = MOST_NODES

    def far(self, measured: int, found: Contestant) -> tuple[int, str]:
        """The largest n within all limits, and which of them it reaches."""

        def reached(n: int) -> str:
            cost = self.cost(n)
            over = {
                "an hour": found.wall * (n / measured) ** self.order > SECONDS,
                "16 GiB": cost.memory > MEMORY,
                "100 GB": cost.sent > SENT,
                "its own limit": n > self.most,
            }
            return next((limit for limit, is_over in over.items() if is_over), "")

        within, beyond = 1, 2
        while not reached(beyond):
            within, beyond = beyond, 2 * beyond
        while beyond - within > 1:
            middle = (within + beyond) // 2
            within, beyond = (within, middle) if reached(middle) else (middle, beyond)
        return within, reached(beyond)


# --- Queries of a release -------------------------------------------------------------------------


@cache
def release(n: int) -> Release:
    return Release.draw(clustered_power_law(n, seed=1), Channel.symmetric(EPSILON), seed=1)


def query(
    name: str, order: int, *arguments: object, groups: bool = False, nodes: int | None = None
) -> Measured:
    """A query, asked of a release that was asked nothing before."""

    def prepare(n: int) -> Callable[[], object]:
        drawn = release(n)
        given = ({node: node % 10 for node in range(n)},) if groups else arguments

        def ask() -> object:
            fresh = replace(drawn, graph=BitRows(drawn.graph.words))
            return getattr(fresh, name)(*given)

        return ask

    shown = f"{name}({arguments[0]})" if arguments else name
    return Measured(shown, "query", order, nodes or NODES[order], prepare, rows_cost)


def rows_cost(n: int) -> Cost:
    """The rows of a release and a copy of them."""
    return Cost(math.comb(n, 2), 0, 0.0, 2 * n * n // 8)


QUERIES = (
    query("edges", 2),
    query("degrees", 2),
    query("degree_histogram", 2, nodes=2_000),
    query("kstars", 2, 2),
    query("kstars", 2, 3),
    query("mixing", 2, groups=True),
    query("degrees_by", 2, groups=True),
    query("assortativity", 2, groups=True),
    query("modularity", 2, groups=True),
    query("degree_correlation", 2),
    query("triangles", 3),
    query("node_triangles", 3),
    query("clustering", 3),
    query("local_clustering", 3),
    query("triangles_by", 3, groups=True),
    query("four_cycles", 3),
)


# --- Protocols ------------------------------------------------------------------------------------


@cache
def federation(n: int) -> Federation:
    return Federation.simulate(split(clustered_power_law(n, seed=1), SILOS))


def union(protocol: str, nodes: int, collusion: int = 1) -> Measured:
    """A release by a union protocol."""
    settled = settle_union(protocol, EPSILON, SILOS, collusion)

    def prepare(n: int) -> Callable[[], object]:
        return lambda: federation(n).collect(EPSILON, protocol, collusion, progress=False)

    return Measured(protocol, "protocol", 2, nodes, prepare, partial(union_cost, settled))


def sealed(name: str, answers: tuple[Answer, ...], order: int, nodes: int, most: int) -> Measured:
    """A sealed count."""

    def prepare(n: int) -> Callable[[], object]:
        return lambda: federation(n).seal(EPSILON, answers, progress=False)

    def cost(n: int) -> Cost:
        sent = member_cost(n, SILOS, answers).up
        return sealed_cost(n, SILOS, sent, triangles="triangles" in answers)

    return Measured(name, "protocol", order, nodes, prepare, cost, most)


def protocols() -> tuple[Measured, ...]:
    def reports(n: int) -> Callable[[], object]:
        return lambda: federation(n).reports(EPSILON, progress=False)

    def local_answers(n: int) -> Callable[[], object]:
        return lambda: federation(n).count("triangles", "feat+", epsilon=EPSILON, progress=False)

    committee = partial(union_cost, settle_union("committee", EPSILON, SILOS, 1))
    return (
        union("clear", 4_000),
        union("masked", 4_000),
        union("committee", 2_000),
        union("elgamal/replace", 60, 0),
        union("elgamal/blinded", 60),
        Measured("baseline", "protocol", 2, 8_000, reports, lambda n: reports_cost(n, SILOS)),
        # A release, and triangles of it at every silo.
        Measured("feat+, triangles", "protocol", 3, 2_000, local_answers, committee),
        sealed("sealed, edges", ("edges",), 2, 1_000, 2**18),
        sealed("sealed, triangles", ("degrees", "triangles"), 3, 1_500, MOST_MATRIX_NODES),
    )


# --- The benchmark --------------------------------------------------------------------------------


def measure(bench: Benchmark, what: Measured, nodes: int, rounds: int) -> tuple[str, ...]:
    """Run on n and 2n; the row of the table."""
    sizes = (nodes, 2 * nodes)
    contest = bench.contest(what.name)
    contest.race(rounds, {f"{n:,} nodes": what.prepare(n) for n in sizes})
    small, large = (contest[f"{n:,} nodes"] for n in sizes)
    exponent = math.log2(large.work / small.work)
    bench.goal(f"{what.name}: exponent", exponent, most=what.order + SLACK)
    far, limit = what.far(sizes[1], large)
    known = "measured" if far <= sizes[1] else "extrapolated"
    bench.report.more.setdefault("largest", {})[what.name] = far
    times = (f"{small.work:.3g}", f"{large.work:.3g}", f"{large.wall:.3g}")
    return (what.name, f"{nodes:,}", *times, f"{exponent:.2f}", rounded(far), limit, known)


def taken(name: str, nodes: int) -> float:
    """The memory in MiB that a protocol takes at its peak."""
    warnings.simplefilter("ignore")  # no ledger
    (what,) = (each for each in protocols() if each.name == name)
    what.prepare(nodes)()
    return peak()


def compare(bench: Benchmark, what: Measured, nodes: int) -> tuple[str, ...]:
    """What a plan says of a run, beside the run; the row of the table."""
    cost, contest = what.cost(nodes), bench.contest(what.name)
    seconds, memory = contest[f"{nodes:,} nodes"].wall, apart(taken, what.name, nodes)
    planned = cost.memory / 2**20
    off = max(cost.seconds / seconds, seconds / cost.seconds)
    bench.goal(f"{what.name}: plan of seconds is off by", off, most=ROUGH)
    bench.goal(f"{what.name}: memory / plan", memory / planned, most=MORE_MEMORY)
    figures = (f"{seconds:.3g}", f"{cost.seconds:.3g}", f"{memory:,.0f}", f"{planned:,.0f}")
    return (what.name, f"{nodes:,}", *figures)


def rounded(n: int) -> str:
    """Two digits, downwards: more would claim what nobody knows."""
    unit = 10 ** max(len(str(n)) - 2, 0)
    return f"{n // unit * unit:,}"


def main() -> int:
    bench = Benchmark("growth", __doc__, THREADS)
    ask, everything = bench.parser.add_argument, (*QUERIES, *protocols())
    names = [what.name for what in everything]
    ask("--only", nargs="+", choices=names, metavar="NAME", help=f"of {', '.join(names)}")
    ask("--sizes", nargs="*", default=[], metavar="NAME=N", help="another n for some of them")
    ask("--rounds", type=int, default=ROUNDS, help="take the best of so many")
    given = bench.start()
    warnings.simplefilter("ignore")  # no ledger
    sizes = {name: int(n) for name, _, n in (each.rpartition("=") for each in given.sizes)}
    rows: dict[str, list[tuple[str, ...]]] = {"query": [], "protocol": []}
    plans = []
    for what in everything:
        if given.only is None or what.name in given.only:
            nodes = sizes.get(what.name, what.nodes)
            rows[what.kind].append(measure(bench, what, nodes, given.rounds))
            if what.kind == "protocol":
                plans.append(compare(bench, what, 2 * nodes))
    seconds = ("CPU s at n", "CPU s at 2n", "wall s at 2n")
    columns = ("n", *seconds, "exponent", "largest n", "limit", "known")
    titles = {
        "query": "queries of a release at ε = 3",
        "protocol": f"all parties in one process, {SILOS} silos, ε = {EPSILON:g}",
    }
    for kind, title in titles.items():
        bench.table(kind, title, (kind, *columns), rows[kind])
    columns = ("protocol", "n", "wall s", "planned s", "peak MiB", "planned MiB")
    bench.table("plan", "what runs take, and what plans say of them", columns, plans)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
