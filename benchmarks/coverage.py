"""Whether 95 % intervals hold the truth: every query, method and channel, on graphs of many kinds.

A cell is a graph, a method, an ε and a number t of colluding silos. Its releases are drawn again
and again in the clear, by the samplers that the parties use, and all queries are asked of each. The
goal for every promised interval: the lower 99.9 % limit of its coverage is at least 92 %.

An interval that covers 95 % shows this after some hundred draws, or some thousand in a long table.
So cells that are not sure after the first draws get more, up to ``--most``. A query is then *ok* or
*missed*, or *open* after fewer draws: graphs of more than 1,000 nodes get few by default, and a
table of figures has all of their cells together. To look after every draw is kind to an interval:
one that covers 92.0 % is called ok in 1.2 % of such tries instead of 0.1 %, and one that covers
92.5 % in 7 %.

Of answers with many values one is judged in each draw, in turn: a node, two groups, or a bin that
the noise leaves in doubt. Questions about groups are asked of three groups, and ``subset`` is about
a third of the nodes. ``change`` compares a release with another, of the graph without every tenth
edge.

The table has a line for each graph, method and query: the lowest coverage over all ε and t, where
it is, and the worst verdict. Below it are all cells that were missed, and what has no interval. The
last columns say in which share of draws the answer said that it is of no use, and how wide
intervals are beside the truth. The exit code is 1 if an interval was missed.

    make bench-coverage
    python -m benchmarks.coverage --only hubs --sources masked --epsilons 1 --draws 100
    python -m benchmarks.coverage --json coverage.json --seconds 3600     # and again, to go on
    python -m benchmarks.coverage --show one.json two.json

With ``--json`` the draws of every cell are kept, and a later call goes on where the last one ended.
Calls with different graphs, methods or ε can run side by side, each with a file of its own;
``--show`` puts files together. Figures for pages, and all tallies, are in
``build/benchmarks/coverage.json``, from which draws can go on, too.
"""

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks import harness
from benchmarks.fold import SURE, four_cycles, share_limits
from benchmarks.made import communities, public_graph
from reproduction.compared import draw_featplus
from silograph import Channel, NodeUniverse, Silo, clustered_power_law, split
from silograph.errors import ArgumentError
from silograph.estimators.estimate import NO_ANSWER, Estimate
from silograph.estimators.groups import Groups
from silograph.estimators.questions import GROUP_QUERIES
from silograph.estimators.release import Release
from silograph.graph.fold import Layout
from silograph.graph.samples import seed_bytes
from silograph.methods.baseline.answer import Reports
from silograph.methods.baseline.noise import BaselineNoise
from silograph.methods.featplus.method import settle_featplus
from silograph.methods.sealed.answer import SealedRelease
from silograph.methods.sealed.folded import FOLDED_ANSWERS, SealedFoldedRelease
from silograph.methods.sealed.noise import SealedNoise
from silograph.methods.union import settle_union
from silograph.whole_files import written_whole

SILOS = 4
EPSILONS, COLLUSIONS = (0.1, 0.5, 1.0, 3.0, 8.0), (0, 1, 2)
#: The goal; how sure a verdict must be is as for folds.
COVERED = 0.92
#: Graphs up to this size get all draws, larger ones this share of them.
SMALL, FEW = 1000, 0.05
#: The draws that every cell gets.
FIRST = 400

Answers = dict[str, Estimate[Any]]
console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)


# --- Graphs ---------------------------------------------------------------------------------------


def of_edges(n: int, edges: Any) -> Silo:
    return Silo.from_edges(NodeUniverse.range(n), np.array(edges).reshape(-1, 2))


def dense(n: int, share: float) -> Silo:
    coins = np.random.default_rng(1).random((n, n)) < share
    return of_edges(n, np.argwhere(np.triu(coins, 1)))


def core(n: int, size: int, share: float) -> Silo:
    """A dense core in a sparse graph."""
    rng = np.random.default_rng(1)
    inside = np.array(np.triu_indices(size, 1)).T
    far = rng.integers(0, n, (4 * n, 2))
    edges = np.concatenate([inside[rng.random(len(inside)) < share], far[far[:, 0] != far[:, 1]]])
    return of_edges(n, np.unique(np.sort(edges, axis=1), axis=0))


MADE: dict[str, Callable[[], Silo]] = {
    "dense-10": lambda: dense(10, 0.8),
    "dense-100": lambda: dense(100, 0.5),
    "star-200": lambda: of_edges(200, [(0, leaf) for leaf in range(1, 200)]),
    "empty-200": lambda: of_edges(200, []),
    "ring-100": lambda: of_edges(100, [(u, (u + 1) % 100) for u in range(100)]),
    "hubs-500": lambda: clustered_power_law(500, 4, seed=2),
    "communities-300": lambda: communities(300),
    "core-5000": lambda: core(5000, 120, 0.8),
    "hubs-20000": lambda: clustered_power_law(20_000, 4, seed=2),
}
REAL = ("facebook", "wiki-vote", "ca-hepph")


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph whose statistics are known."""

    name: str
    whole: Silo

    @classmethod
    def load(cls, name: str) -> "Graph":
        if name in MADE:
            return cls(name, MADE[name]())
        return cls(name, public_graph(name))

    @property
    def n(self) -> int:
        return len(self.whole.universe)

    @cached_property
    def parts(self) -> tuple[Silo, ...]:
        return tuple(split(self.whole, SILOS))

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        return self.whole.degrees()

    @cached_property
    def groups(self) -> Groups:
        """A few nodes, and two halves of the others."""
        few = max(2, self.n // 10)
        labels = [0 if node < few else 1 + node % 2 for node in range(self.n)]
        return Groups(("few", "odd", "even"), np.array(labels, dtype=np.uint32))

    @cached_property
    def third(self) -> list[Any]:
        """The identifiers of a third of the nodes."""
        return [self.whole.universe.id(node) for node in range(0, self.n, 3)]

    @cached_property
    def part(self) -> Silo:
        """The edges among these nodes."""
        kept = (self.whole.pairs % 3 == 0).all(axis=1)
        return Silo.from_pairs(self.whole.universe, self.whole.pairs[kept])

    @cached_property
    def later(self) -> Silo:
        """The graph without every tenth edge."""
        return Silo.from_pairs(
            self.whole.universe, self.whole.pairs[np.arange(len(self.whole)) % 10 > 0]
        )

    @cached_property
    def exact(self) -> Release:
        """A release without noise, which knows the answers."""
        return Release.draw(self.whole, Channel(1, 0), seed=1)

    @cached_property
    def truths(self) -> dict[str, Any]:
        degrees, triangles = self.degrees.tolist(), self.whole.triangles()
        stars = {k: sum(math.comb(d, k) for d in degrees) for k in (2, 3, 4, 5)}
        return {
            "edges": len(self.whole),
            "degrees": self.degrees,
            **{f"{k}-stars": count for k, count in stars.items()},
            "triangles": triangles,
            "4-cycles": four_cycles(self.whole),
            # Without 2-stars there is no coefficient, and any answer is as good.
            "clustering": 3 * triangles / stars[2] if stars[2] else math.nan,
            **{query: getattr(self.exact, query)(self.groups).value for query in GROUP_QUERIES},
            "local_clustering": self.exact.local_clustering().value,
            "degree_correlation": self.exact.degree_correlation().value,
            "subset edges": len(self.part),
            "subset triangles": self.part.triangles(),
            "change of edges": len(self.later) - len(self.whole),
            "change of triangles": self.later.triangles() - triangles,
            "share of a subset": len(self.part) / len(self.whole) if len(self.whole) else math.nan,
        }

    def truth(self, query: str, answer: Estimate[Any]) -> Any:
        if query == "histogram":
            return np.histogram(self.degrees, answer.parameters["bins"])[0]
        return self.truths[query]


# --- What is drawn --------------------------------------------------------------------------------


def asked(source: Any, queries: Sequence[str]) -> Answers:
    """The answers of a release of any kind; not those that it cannot give."""
    found = {}
    for query in queries:
        name, options = named(query)
        ask = getattr(source, name, None)
        try:
            found[query] = ask(**options) if ask else None
        except ArgumentError:
            continue
    return {query: answer for query, answer in found.items() if answer is not None}


def named(query: str) -> tuple[str, dict[str, int]]:
    """The name and the options of a query as methods know it."""
    if query.endswith("-stars"):
        return "kstars", {"k": int(query[0])}
    return {"4-cycles": "four_cycles", "histogram": "degree_histogram"}.get(query, query), {}


QUERIES = (
    "edges", "degrees", "2-stars", "3-stars", "4-stars", "5-stars", "triangles", "4-cycles",
    "clustering", "histogram", *GROUP_QUERIES, "local_clustering", "degree_correlation",
    "subset edges", "subset triangles", "share of a subset", "change of edges",
    "change of triangles",
)  # fmt: skip
Draw = Callable[[Graph, float, int, int, Sequence[str]], Answers]


#: What only a release of pairs answers, with more than a name.
FURTHER = (
    *GROUP_QUERIES, "subset edges", "subset triangles", "share of a subset", "change of edges",
    "change of triangles",
)  # fmt: skip


def union_draw(protocol: str) -> Draw:
    def draw(graph: Graph, epsilon: float, t: int, seed: int, queries: Sequence[str]) -> Answers:
        channel = union_of(protocol, epsilon, t).channel
        release = Release.draw(graph.whole, channel, seed)
        found = asked(release, [q for q in queries if q not in FURTHER])
        further: dict[str, Callable[[], Estimate[Any]]] = {
            **{q: lambda q=q: getattr(release, q)(graph.groups) for q in GROUP_QUERIES},
            "subset edges": lambda: some().edges(),
            "subset triangles": lambda: some().triangles(),
            "share of a subset": lambda: some().edges() / release.edges(),
            "change of edges": lambda: later().edges() - release.edges(),
            "change of triangles": lambda: later().triangles() - release.triangles(),
        }  # fmt: skip

        @cache
        def some() -> Release:
            return release.subset(graph.third)

        @cache
        def later() -> Release:
            return Release.draw(graph.later, channel, seed + 1)

        return found | {query: further[query]() for query in queries if query in FURTHER}

    return draw


@cache
def union_of(protocol: str, epsilon: float, t: int) -> Any:
    return settle_union(protocol, epsilon, SILOS, t)


def sealed_draw(*answers: Any) -> Draw:
    @cache
    def noise_of(epsilon: float, n: int, t: int) -> SealedNoise:
        return SealedNoise.choose(epsilon, n, SILOS, t, answers)

    def draw(graph: Graph, epsilon: float, t: int, seed: int, queries: Sequence[str]) -> Answers:
        noise = noise_of(epsilon, graph.n, t)
        return asked(SealedRelease.draw(graph.whole, noise, seed), queries)

    return draw


def fold_draw(hubs: bool) -> Draw:
    """Sealed counts on folded nodes, with up to a quarter as many hubs as groups, or none."""

    @cache
    def noise_of(epsilon: float, layout: Layout, t: int) -> SealedNoise:
        opened = FOLDED_ANSWERS["triangles"]
        return SealedNoise.choose_folded(epsilon, layout.groups, layout.hubs, SILOS, t, opened)

    def draw(graph: Graph, epsilon: float, t: int, seed: int, queries: Sequence[str]) -> Answers:
        groups = max(20, round(2 * len(graph.whole) ** 0.5))
        layout = Layout(groups, min(groups // 4, graph.n // 20) if hubs else 0)
        top = np.argsort(-graph.degrees, kind="stable")[: layout.hubs]
        names = tuple(graph.whole.universe.id(int(node)) for node in top)
        noise = noise_of(epsilon, layout, t)
        return asked(SealedFoldedRelease.draw(graph.whole, layout, names, noise, seed), queries)

    return draw


def baseline_draw(
    graph: Graph, epsilon: float, t: int, seed: int, queries: Sequence[str]
) -> Answers:
    return asked(Reports.draw(graph.parts, reported(epsilon, t), seed), queries)


@cache
def reported(epsilon: float, t: int) -> Channel:
    return BaselineNoise.choose(epsilon, SILOS, t).channel


def featplus_draw(local: str) -> Draw:
    """Each query is a run of its own, with a split that always answers locally."""

    def draw(graph: Graph, epsilon: float, t: int, seed: int, queries: Sequence[str]) -> Answers:
        found = {}
        for query in queries:
            plan = plan_of(query, local, epsilon, t, graph.n)
            if plan is not None:
                found[query] = draw_featplus(plan, graph.parts, graph.whole, seed)
        return found

    return draw


@cache
def plan_of(query: str, local: str, epsilon: float, t: int, n: int) -> Any:
    """The plan of a run of feat+; None for what it does not answer."""
    name, options = named(query)
    try:
        return settle_featplus(
            name, options.get("k"), local, "paper", epsilon, SILOS, t, "masked", n
        )
    except ArgumentError:
        return None


#: How each kind of release is drawn, and with which numbers of colluding silos.
SOURCES: dict[str, tuple[Draw, Sequence[int]]] = {
    "masked": (union_draw("masked"), (0, 1, 2)),
    "committee": (union_draw("committee"), (0, 1)),
    "sealed degrees": (sealed_draw("degrees"), (0, 1)),
    "sealed counts": (sealed_draw("degrees", "two_stars", "triangles"), (0, 1)),
    "sealed fold": (fold_draw(hubs=False), (0, 1)),
    "sealed fold hubs": (fold_draw(hubs=True), (0, 1)),
    "baseline": (baseline_draw, (0,)),
    "feat+ gradient": (featplus_draw("gradient"), (1, 2)),
    "feat+ paper": (featplus_draw("paper"), (1, 2)),
}


# --- Cells, and what their draws say --------------------------------------------------------------


@dataclass
class Tally:
    """How often the intervals of one query held the truth."""

    draws: int = 0
    covered: int = 0
    #: Draws whose answer says that it is of no use, and draws without an interval.
    unusable: int = 0
    without: int = 0
    #: The sum of the intervals' widths beside the truth, where it is not zero.
    widths: float = 0.0

    def add(self, answer: Estimate[Any], truth: Any, number: int) -> None:
        low, high, due = (np.ravel(x) for x in (*answer.interval, truth))
        if answer.query == "degree_histogram":
            # Bins of which the noise leaves no doubt are left out, unless they are wrong.
            doubt = np.flatnonzero((low < high) | (low != due))
            places = doubt if doubt.size else np.array([0])
        else:
            # Nodes that have no coefficient are left out.
            places = np.arange(len(low)) if np.isnan(due).all() else np.flatnonzero(~np.isnan(due))
        at = places[number % len(places)]
        self.draws += 1
        nothing = answer.query == "local_clustering" and (low[at], high[at]) == (0, 1)
        self.unusable += nothing or answer.note.startswith(NO_ANSWER)
        if math.isnan(low[at]) or math.isnan(high[at]):
            self.without += 1
            return
        self.covered += bool(low[at] <= due[at] <= high[at]) or math.isnan(due[at])
        self.widths += float(high[at] - low[at]) / max(abs(float(due[at])), 1e-9)

    @property
    def judged(self) -> int:
        return self.draws - self.without

    @property
    def coverage(self) -> float:
        """The share of the intervals that held the truth."""
        return self.covered / self.judged

    @property
    def limits(self) -> tuple[float, float]:
        """Both Clopper–Pearson limits of the coverage."""
        return share_limits(self.covered, self.judged)

    def verdict(self, most: int) -> str:
        if not self.judged:
            return "no interval"
        low, high = self.limits
        if low >= COVERED:
            return "ok"
        return "missed" if high < COVERED or self.draws >= most else "open"


@dataclass
class Cell:
    """A graph, a method, an ε and a number of colluding silos, with its draws so far."""

    graph: Graph
    source: str
    epsilon: float
    collusion: int
    tallies: dict[str, Tally] = field(default_factory=dict)
    drawn: int = 0
    seconds: float = 0.0

    @property
    def key(self) -> str:
        return f"{self.graph.name} | {self.source} | {self.epsilon:g} | {self.collusion}"

    def measure(self, queries: Sequence[str], first: int, most: int, until: float) -> None:
        """Draw so many times, and up to ``most`` times while a query is open."""
        began = time.perf_counter()
        draw = SOURCES[self.source][0]
        while time.perf_counter() < until:
            unsure = [q for q in queries if q in self.tallies or not self.drawn]
            if self.drawn >= first:
                unsure = [q for q in unsure if self.tallies[q].verdict(most) == "open"]
            if not unsure or self.drawn >= most:
                break
            seed = int(np.frombuffer(seed_bytes(self.key, self.drawn)[:4], dtype=np.uint32)[0])
            found = draw(self.graph, self.epsilon, self.collusion, seed, unsure)
            for query, answer in found.items():
                truth = self.graph.truth(query, answer)
                self.tallies.setdefault(query, Tally()).add(answer, truth, self.drawn)
            self.drawn += 1
        self.seconds += time.perf_counter() - began

    def record(self) -> dict[str, Any]:
        tallies = {query: list(asdict(tally).values()) for query, tally in self.tallies.items()}
        return {
            "graph": self.graph.name,
            "nodes": self.graph.n,
            "method": self.source,
            "epsilon": self.epsilon,
            "t": self.collusion,
            "drawn": self.drawn,
            "seconds": round(self.seconds, 1),
            "tallies": tallies,
        }

    def restore(self, record: dict[str, Any]) -> None:
        self.drawn, self.seconds = record["drawn"], record["seconds"]
        self.tallies = {query: Tally(*tally) for query, tally in record["tallies"].items()}


def cells(given: argparse.Namespace) -> Iterator[Cell]:
    for name in given.graphs:
        if given.only and not any(part in name for part in given.only):
            continue
        graph = Graph.load(name)
        for source in given.sources:
            for epsilon in given.epsilons:
                for t in sorted(set(given.collusions) & set(SOURCES[source][1])):
                    yield Cell(graph, source, epsilon, t)


# --- The table ------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A query in a cell, and what its draws say."""

    cell: dict[str, Any]
    query: str
    tally: Tally
    verdict: str

    @property
    def place(self) -> tuple[str, str, str]:
        return self.cell["graph"], self.cell["method"], self.query

    @property
    def columns(self) -> tuple[str, ...]:
        tally = self.tally
        return (
            f"{self.cell['epsilon']:g}",
            str(self.cell["t"]),
            str(tally.draws),
            f"{tally.coverage:.3f}",
            f"{tally.limits[0]:.3f}",
            f"{tally.unusable / tally.draws:.2f}" if tally.unusable else "",
            f"{tally.widths / tally.judged:.2g}" if tally.widths < 1e8 else "",
        )


VERDICTS = ("missed", "open", "ok")


def show(kept: dict[str, Any], most: Callable[[int], int]) -> bool:
    """Print what all cells say; whether an interval was missed."""
    lines: dict[tuple[str, str, str], list[Line]] = {}
    without: dict[tuple[str, str], set[str]] = {}
    for cell in kept.values():
        # A few draws of a large graph decide nothing: what is not sure then stays open.
        last = most(cell["nodes"]) if cell["nodes"] <= SMALL else sys.maxsize
        for query, found in cell["tallies"].items():
            tally = Tally(*found)
            line = Line(cell, query, tally, tally.verdict(last))
            if tally.judged:
                lines.setdefault(line.place, []).append(line)
            else:
                without.setdefault((cell["method"], query), set()).add(cell["graph"])
    title = f"95 % intervals, m = {SILOS}; goal: lower {SURE:.1%} limit ≥ {COVERED:g}"
    heads = ("graph", "method", "query", "cells", "ε", "t", "draws", "lowest", "limit", "no use")
    table = Table(title=title)
    for head in (*heads, "width", ""):
        table.add_column(head, no_wrap=True)
    missed = []
    for place, found in lines.items():
        lowest = min(found, key=lambda line: line.tally.coverage)
        worst = min((line.verdict for line in found), key=VERDICTS.index)
        coloured = f"[red]{worst}[/]" if worst == "missed" else worst
        table.add_row(*place, str(len(found)), *lowest.columns, coloured)
        missed += [line for line in found if line.verdict == "missed"]
    console.print(table)
    for line in missed:
        epsilon, t, draws, coverage, limit, *_ = line.columns
        said = f"coverage {coverage}, limit {limit} after {draws} draws"
        console.print(f"missed: {', '.join(line.place)}, ε {epsilon}, t {t}: {said}")
    for (method, query), graphs in without.items():
        console.print(f"no interval: {method}, {query} ({', '.join(sorted(graphs))})")
    every = [line for found in lines.values() for line in found]
    words = Counter(line.verdict for line in every)
    console.print(", ".join(f"{words[word]:,} {word}" for word in VERDICTS if words[word]))
    write_figures(every, kept)
    return bool(words["missed"])


def write_figures(every: list[Line], kept: dict[str, Any]) -> None:
    """Keep tables for pages, and all tallies, where benchmarks keep their figures.

    Cells that have not had their first draws are not in the tables. The few draws of each cell of a
    large graph decide nothing, so those of all its cells are put together.
    """
    least = {True: FIRST, False: int(FEW * FIRST)}
    every = [line for line in every if line.cell["drawn"] >= least[line.cell["nodes"] <= SMALL]]
    load = os.getloadavg()[0]
    today = time.strftime("%Y-%m-%d", time.gmtime())
    made = harness.Report("coverage", today, harness.Machine.here(), 1, (load, load))
    methods = [source for source in SOURCES if any(line.cell["method"] == source for line in every)]
    made.tables["queries"] = harness.Table(
        f"the lowest coverage of 95 % intervals over all graphs, ε and t, m = {SILOS}; in brackets "
        f"its lower {100 * SURE:g} % limit",
        ("query", *methods),
        tuple(
            (query, *(lowest_of(every, query=query, method=method) for method in methods))
            for query in QUERIES
        ),
    )
    rows = []
    for graph in dict.fromkeys(line.cell["graph"] for line in every):
        own = [line for line in every if line.cell["graph"] == graph]
        verdicts = Counter(line.verdict for line in own)
        draws = [line.tally.draws for line in own]
        rows.append((
            graph, f"{own[0].cell['nodes']:,}", f"{len(own):,}", f"{min(draws):,}–{max(draws):,}",
            f"{together(own).coverage:.3f}", lowest_of(own),
            *(f"{verdicts[word]:,}" for word in reversed(VERDICTS)),
        ))  # fmt: skip
    heads = ("graph", "nodes", "intervals", "draws of each", "mean", "lowest")
    title = f"intervals by graph; ok: the limit is at least {COVERED:g}"
    made.tables["graphs"] = harness.Table(title, (*heads, *reversed(VERDICTS)), tuple(rows))
    large = [line for line in every if line.cell["nodes"] > SMALL]
    graphs = list(dict.fromkeys(line.cell["graph"] for line in large))
    made.tables["large"] = harness.Table(
        "coverage of 95 % intervals on large graphs, all methods, ε and t together; in brackets "
        f"its lower {100 * SURE:g} % limit and the draws",
        ("query", *graphs),
        tuple(
            (query, *(all_of(large, query, graph) for graph in graphs))
            for query in QUERIES
            if any(line.query == query for line in large)
        ),
    )
    made.more["cells"] = {
        key: cell | {"tallies": {query: packed(tally) for query, tally in cell["tallies"].items()}}
        for key, cell in kept.items()
    }
    harness.WRITTEN.mkdir(parents=True, exist_ok=True)
    (harness.WRITTEN / "coverage.json").write_text(made.to_json())


def packed(tally: list[float]) -> str:
    """A tally as few characters: its numbers, of which the width needs few digits."""
    return " ".join([*map(str, tally[:-1]), f"{tally[-1]:.4g}"])


def lowest_of(lines: list[Line], query: str = "", method: str = "") -> str:
    """The lowest coverage of these lines, with its limit; what is open can be low by chance."""
    found = [
        line
        for line in lines
        if query in ("", line.query) and method in ("", line.cell["method"])
        if line.verdict != "open"
    ]
    if not found:
        return ""
    lowest = min(found, key=lambda line: line.tally.coverage)
    return f"{lowest.tally.coverage:.3f} ({lowest.tally.limits[0]:.3f})"


def all_of(lines: list[Line], query: str, graph: str) -> str:
    """The coverage of all intervals of a query on a graph, with its limit and their number."""
    found = [line for line in lines if (line.query, line.cell["graph"]) == (query, graph)]
    if not found:
        return ""
    tally = together(found)
    return f"{tally.coverage:.3f} ({tally.limits[0]:.3f}; {tally.judged:,})"


def together(lines: list[Line]) -> Tally:
    """The tallies of all these lines as one."""
    return Tally(*map(sum, zip(*(astuple(line.tally) for line in lines), strict=True)))


def kept_in(path: Path) -> dict[str, Any]:
    """The cells of a file of draws, or of figures."""
    told: dict[str, Any] = json.loads(path.read_text())
    if "more" not in told:
        return told
    cells: dict[str, Any] = told["more"]["cells"]
    for cell in cells.values():
        of_query = {query: tally.split() for query, tally in cell["tallies"].items()}
        cell["tallies"] = {q: [*map(int, t[:-1]), float(t[-1])] for q, t in of_query.items()}
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    names = (*MADE, *REAL)
    parser.add_argument("--graphs", nargs="+", default=names, choices=names)
    parser.add_argument("--only", nargs="+", help="graphs whose names contain one of these")
    parser.add_argument("--sources", nargs="+", default=tuple(SOURCES), choices=SOURCES)
    parser.add_argument("--queries", nargs="+", default=QUERIES, choices=QUERIES)
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--collusions", nargs="+", type=int, default=COLLUSIONS)
    parser.add_argument("--draws", type=int, default=FIRST, help="of a cell, up to 1,000 nodes")
    parser.add_argument("--most", type=int, default=4000, help="of a cell that is not sure")
    parser.add_argument("--seconds", type=float, default=math.inf, help="at most, for everything")
    parser.add_argument("--json", type=Path, help="keep draws there, and go on from there")
    parser.add_argument("--show", nargs="+", type=Path, help="show these files, and draw nothing")
    given = parser.parse_args()

    def share_of(many: int) -> Callable[[int], int]:
        return lambda n: many if n <= SMALL else max(1, int(FEW * many))

    first, most = share_of(given.draws), share_of(max(given.most, given.draws))
    if given.show:
        files = map(kept_in, given.show)
        return int(show({key: cell for kept in files for key, cell in kept.items()}, most))
    until = time.perf_counter() + given.seconds
    kept = kept_in(given.json) if given.json and given.json.exists() else {}
    done = {}
    console.print(f"load {os.getloadavg()[0]:.1f}, m = {SILOS}")
    for cell in cells(given):
        if cell.key in kept:
            cell.restore(kept[cell.key])
        cell.measure(given.queries, first(cell.graph.n), most(cell.graph.n), until)
        if not cell.drawn:
            continue
        done[cell.key] = kept[cell.key] = cell.record()
        print(cell.key, cell.drawn, f"{cell.seconds:.1f} s", file=sys.stderr, flush=True)
        if given.json:
            with written_whole(given.json) as path:
                path.write_text(json.dumps(kept))
    return int(show(done, most))


if __name__ == "__main__":
    sys.exit(main())
