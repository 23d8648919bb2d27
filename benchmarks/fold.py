"""Folded releases: bias, spread, error bars and predictions of all queries, by drawing them again.

Every draw has a fresh key (which groups, signs and sub-buckets), fresh noise of the channel and,
where hubs are searched for, fresh noise of the search, by the samplers that the parties use. The
union protocols open exactly what is drawn here, as their tests show. Hubs, groups and sub-buckets
are the planner's choice for triangles, and all queries are asked of the same releases.

Goals, for each graph, ε, protocol and query:

- the observed standard deviation is within 20 % of the predicted one;
- the bias is below a third of the standard deviation;
- the 95 % interval covers the truth, with a lower 99.9 % limit of at least 90 %. Some 400 draws
  show this of an interval that covers 95 %.

A goal is *missed* or *ok* where the draws can tell, and *open* otherwise: queries with an open goal
are asked of further draws, up to ``--most``. The exit code is 1 if a goal was missed. Four-cycles
are not predicted. A last table has triangles by pairs (predicted) and by the fold (predicted and
seen), for both unions.

With ``--json`` draws are kept, and a later call goes on where the last one ended; after a change of
the estimators a new file is due. Several processes share the work if each has graphs and a file of
its own; ``--show`` makes one table of their files.

    make bench-fold
    python -m benchmarks.fold --graphs email-enron --epsilons 1 --draws 20 --json fold.json
    python -m benchmarks.fold --show one.json other.json
"""

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy import sparse, stats

from benchmarks.made import communities, public_graph
from silograph import Silo, _core, clustered_power_law, split
from silograph.dp.channel import limbs
from silograph.estimators.estimate import Estimate, FloatArray, Provenance
from silograph.estimators.fold_reference import FoldShape, shape_of
from silograph.estimators.folded_release import FoldedRelease
from silograph.estimators.reference import Reference, reference_of
from silograph.graph.fold import BucketCounts, Folding, Layout
from silograph.graph.samples import REGISTRY, seed_bytes
from silograph.methods.fold.expected import FOLDED, FoldChoice, choose_fold, predicted_error
from silograph.methods.hubs.answer import HubSearch
from silograph.methods.hubs.noise import ENDS, HubNoise
from silograph.methods.prediction import Question, feat_error
from silograph.methods.union import SettledUnion, settle_union
from silograph.whole_files import written_whole

SILOS, COLLUSION = 4, 1
EPSILONS, PROTOCOLS, HUBS = (0.5, 1.0, 2.0, 3.0), ("masked", "committee"), ("known", "found")
MADE: dict[str, Callable[[], Silo]] = {
    "communities": lambda: communities(120_000),
    "power-law": lambda: clustered_power_law(120_000, 8, seed=1),
}
#: What is asked of a release, and what the planner calls it.
QUERIES: dict[str, Callable[[FoldedRelease], Estimate[float]]] = {
    "triangles": lambda release: release.triangles(),
    "edges": lambda release: release.edges(),
    "2-stars": lambda release: release.kstars(2),
    "clustering": lambda release: release.clustering(),
    "4-cycles": lambda release: release.four_cycles(),
}
PLANNED = {"2-stars": "kstars", "4-cycles": "four_cycles"}
#: The goals, and how sure a verdict must be.
SPREAD, COVERED, BIAS, SURE = 0.2, 0.90, 1 / 3, 0.999
#: A query is judged where its error is below this share of the truth: others have no answer.
USABLE = 1.0
console = Console(width=None if sys.stdout.isatty() else 190, highlight=False)


# --- Graphs and settings --------------------------------------------------------------------------


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

    @cached_property
    def truths(self) -> dict[str, float]:
        edges, triangles = len(self.whole), self.whole.triangles()
        stars = int((self.whole.degrees() * (self.whole.degrees() - 1) // 2).sum())
        return {
            "triangles": triangles,
            "edges": edges,
            "2-stars": stars,
            "clustering": 3 * triangles / stars,
            "4-cycles": four_cycles(self.whole),
        }

    @cached_property
    def shape(self) -> FoldShape:
        return shape_of(self.whole)

    @cached_property
    def degree_sums(self) -> NDArray[np.int64]:
        """Degrees in all silos together, which a search for hubs opens with noise."""
        sums: NDArray[np.int64] = sum(part.degrees() for part in split(self.whole, SILOS))
        return sums


def four_cycles(graph: Silo) -> int:
    """Half the pairs of common neighbours of all pairs of nodes."""
    n, ends = len(graph.universe), graph.pairs.astype(np.int64)
    both = np.concatenate([ends, ends[:, ::-1]])
    near = sparse.csr_array((np.ones(len(both), dtype=np.int64), (*both.T,)), shape=(n, n))
    found = 0
    for start in range(0, n, 512):
        common = near[start : start + 512] @ near
        found += int((common.data * (common.data - 1) // 2).sum())
    # Each pair of nodes came twice, and each node with itself.
    degrees = graph.degrees()
    return (found - int((degrees * (degrees - 1) // 2).sum())) // 4


@dataclass(frozen=True, eq=False)
class Setting:
    """A fold of a graph at one ε and protocol: how to draw its releases, and what to expect."""

    graph: Graph
    epsilon: float
    protocol: str
    #: Whether hubs are known; otherwise the fold may pay for a search.
    known: bool
    fold: FoldChoice

    @cached_property
    def union(self) -> SettledUnion:
        left = self.epsilon - self.fold.hub_epsilon
        return settle_union(self.protocol, left, SILOS, COLLUSION)

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.fold.groups, self.fold.hubs, self.fold.sub)

    def predicted(self, query: str) -> tuple[float, float]:
        """The planner's standard deviation and bound of the bias; NaN where it has none."""
        asked = PLANNED.get(query, query)
        if asked not in FOLDED:
            return math.nan, math.nan
        shape, fold = self.graph.shape, self.fold
        if fold.hub_epsilon:
            hubs = shape.found_hubs(fold.hubs, ENDS * SILOS / fold.hub_epsilon)
        else:
            hubs = shape.known_hubs(fold.hubs)
        groups, weights = np.array([fold.groups]), self.union.channel.weights
        found = predicted_error(asked, shape, hubs, groups, fold.sub, weights)
        return float(found.sd[0]), float(found.bias[0])

    def draw(self, number: int) -> FoldedRelease:
        """A release. Its number is the seed of its key and its noise."""
        graph, union = self.graph.whole, self.union
        label = f"{self.graph.name}/{self.epsilon}/{self.protocol}/{self.known}"
        hubs = self._hubs(f"{label}/hubs", number)
        folding = Folding.of(seed_bytes(f"{label}/key", number), self.layout, hubs)
        occupied = folding.fold(graph.nodes, graph.pairs).tobytes()
        channel = (limbs(union.channel.p11), limbs(union.channel.p01))
        noise = seed_bytes(f"{label}/noise", number)
        bits = _core.perturb(occupied, self.layout.buckets, *channel, noise)
        return FoldedRelease(
            BucketCounts(self.layout, bits),
            hubs,
            graph.universe.form,
            len(graph.universe),
            union.channel,
            graph.universe.digest,
            Provenance("feat", self.protocol, SILOS, COLLUSION),
            union.views,
            union.losses,
            self.fold.hub_epsilon,
        )

    def _hubs(self, label: str, number: int) -> tuple[str, ...]:
        graph, fold = self.graph.whole, self.fold
        if not fold.hubs:
            return ()
        if not fold.hub_epsilon:
            top = np.argsort(-graph.degrees(), kind="stable")[: fold.hubs]
            return tuple(graph.universe.id(int(node)) for node in top)
        noise = HubNoise.choose(fold.hub_epsilon, SILOS, COLLUSION)
        share, sums = noise.share, self.graph.degree_sums.copy()
        for silo in range(SILOS):
            seed = seed_bytes(f"{label}/{silo}", number)
            sums += _core.polya_difference(
                len(sums), share.numerator, share.denominator, share.shares, seed
            )
        made = Provenance("hubs", "masked", SILOS, COLLUSION)
        return HubSearch(noise, graph.universe, made, sums).top(fold.hubs)


# --- What the draws say ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Draws:
    """The answers to one query in all draws of a setting."""

    truth: float
    predicted: float
    bound: float
    values: FloatArray
    stderrs: FloatArray
    covered: int

    @property
    def many(self) -> int:
        return len(self.values)

    @cached_property
    def bias(self) -> float:
        return float(self.values.mean()) - self.truth

    @cached_property
    def sd(self) -> float:
        return float(self.values.std(ddof=1))

    @property
    def rmse(self) -> float:
        return float(np.sqrt(np.mean((self.values - self.truth) ** 2)))

    @property
    def own(self) -> float:
        """The root mean square of the releases' own standard errors."""
        return float(np.sqrt(np.mean(self.stderrs**2)))

    @property
    def usable(self) -> bool:
        return self.sd < USABLE * abs(self.truth)

    @property
    def coverage(self) -> tuple[float, float, float]:
        """The share of intervals that cover, with both Clopper–Pearson limits."""
        return self.covered / self.many, *share_limits(self.covered, self.many)

    @cached_property
    def verdicts(self) -> dict[str, str]:
        """Of each goal: ok, missed or open."""
        n, found = self.many, {}
        if not math.isnan(self.predicted):
            # The law of a sample's variance, if values are about normal.
            tail = (1 - SURE) / 2
            low, high = (
                self.sd / self.predicted * math.sqrt((n - 1) / stats.chi2.ppf(q, n - 1))
                for q in (1 - tail, tail)
            )
            least, most = 1 - SPREAD, 1 + SPREAD
            found["sd"] = judged(least <= low and high <= most, high < least or low > most)
        doubt = stats.t.ppf((1 + SURE) / 2, n - 1) * self.sd / math.sqrt(n)
        most = BIAS * self.sd
        found["bias"] = judged(abs(self.bias) + doubt < most, abs(self.bias) - doubt > most)
        _, least, highest = self.coverage
        found["cover"] = judged(least >= COVERED, highest < COVERED)
        return found

    @property
    def open(self) -> bool:
        """Whether more draws may tell more."""
        return self.usable and "open" in self.verdicts.values()

    def row(self) -> list[str]:
        """The row of the table, in per cent of the truth."""
        shown = [self.bias, self.sd / math.sqrt(self.many), self.sd, self.own, self.predicted]
        bias, doubt, *spreads = (f"{100 * x / self.truth:.3g}" for x in shown)
        share, low, _ = self.coverage
        says = " ".join(f"{name} {word}" for name, word in self.verdicts.items() if word != "ok")
        return [
            f"{bias} ± {doubt}",
            *spreads,
            f"{self.sd / self.predicted:.2f}",
            f"{self.bias / self.sd:+.2f}",
            f"{share:.3f} ≥ {low:.2f}",
            (says or "ok") if self.usable else f"no usable answer, cover {self.verdicts['cover']}",
        ]


def share_limits(k: int, n: int) -> tuple[float, float]:
    """Both Clopper–Pearson limits of a share, of which k of n draws are."""
    low = float(stats.beta.ppf(1 - SURE, k, n - k + 1)) if k else 0.0
    high = float(stats.beta.ppf(SURE, k + 1, n - k)) if k < n else 1.0
    return low, high


def judged(shown: bool, refuted: bool) -> str:
    return "ok" if shown else "[red]missed[/]" if refuted else "open"


@dataclass
class Cell:
    """A setting with its draws: of each query the values, the standard errors, and how many
    intervals hold the truth."""

    setting: Setting
    drawn: int = 0
    seconds: float = 0.0
    found: dict[str, tuple[list[float], list[float], int]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        setting = self.setting
        return f"{setting.graph.name} | {setting.epsilon:g} | {setting.protocol} | {setting.known}"

    def many(self, query: str) -> int:
        """How many draws were asked this query."""
        return len(self.found[query][0]) if query in self.found else 0

    def draws(self, query: str) -> Draws:
        values, stderrs, covered = self.found[query]
        truth = self.setting.graph.truths[query]
        predicted = self.setting.predicted(query)
        return Draws(truth, *predicted, np.array(values), np.array(stderrs), covered)

    def measure(self, queries: Sequence[str], least: int, most: int, seconds: float) -> None:
        """Draw so many releases, and up to ``most`` while a goal is open and there is time."""
        began = time.process_time()
        while self.drawn < most and (self.drawn < 10 or time.process_time() - began < seconds):
            asked = [q for q in queries if self.many(q) < least or self.draws(q).open]
            if not asked:
                break
            release = self.setting.draw(self.drawn)
            for query in asked:
                answer, truth = QUERIES[query](release), self.setting.graph.truths[query]
                values, stderrs, covered = self.found.get(query, ([], [], 0))
                values.append(answer.value)
                stderrs.append(answer.stderr)
                within = answer.interval[0] <= truth <= answer.interval[1]
                self.found[query] = values, stderrs, covered + within
            self.drawn += 1
        self.seconds += time.process_time() - began

    def head(self) -> list[str]:
        setting, fold = self.setting, self.setting.fold
        search = f" ({fold.hub_epsilon:.2f})" if fold.hub_epsilon else ""
        shape = f"{fold.hubs}{search}/{fold.groups}/{fold.sub}"
        hubs = "known" if setting.known else "found"
        return [setting.graph.name, f"{setting.epsilon:g}", setting.protocol, hubs, shape]

    def record(self) -> dict[str, Any]:
        fold = asdict(self.setting.fold)
        return {"drawn": self.drawn, "seconds": self.seconds, "fold": fold, "found": self.found}

    def restore(self, record: dict[str, Any]) -> None:
        """Go on from these draws, if they are of the same fold."""
        own = asdict(self.setting.fold)
        drawn = ("groups", "hubs", "sub", "hub_epsilon")
        if all(record["fold"][what] == own[what] for what in drawn):
            self.drawn, self.seconds = record["drawn"], record["seconds"]
            self.found = {query: tuple(kept) for query, kept in record["found"].items()}


def settings(given: argparse.Namespace) -> Iterator[Setting]:
    for name in given.graphs:
        graph = Graph.load(name)
        for epsilon in given.epsilons:
            for protocol in given.protocols:
                for hubs in given.hubs:
                    known = hubs == "known"
                    fold = choose_fold(
                        "triangles", graph.shape, epsilon, SILOS, COLLUSION, protocol,
                        hubs_known=known, buckets_at_most=given.buckets,
                    )  # fmt: skip
                    if fold is None:
                        console.print(f"{name}, ε = {epsilon:g}, {protocol}: no fold fits")
                        continue
                    yield Setting(graph, epsilon, protocol, known, fold)


# --- The tables -----------------------------------------------------------------------------------


def show(done: Sequence[Cell], queries: Sequence[str]) -> bool:
    """Print a table for each query, and that of triangles; whether a goal was missed."""
    columns = ("graph", "ε", "union", "hubs", "hubs/groups/sub", "MB", "draws", "bias % ± se",
               "sd %", "own %", "predicted %", "sd/pred", "bias/sd", "covered", "")  # fmt: skip
    words: dict[str, int] = {}
    for query in queries:
        table = Table(title=query)
        for column in columns:
            table.add_column(column, no_wrap=True)
        for cell in done:
            if not cell.many(query):
                continue
            draws = cell.draws(query)
            sent = f"{cell.setting.fold.bytes_per_silo / 1e6:.2f}"
            table.add_row(*cell.head(), sent, str(draws.many), *draws.row())
            # Intervals hold the truth even where an answer is of no use.
            every = draws.verdicts.values() if draws.usable else [draws.verdicts["cover"]]
            for word in every:
                words[word] = words.get(word, 0) + 1
        console.print(table)
    console.print(by_pairs(done))
    console.print(", ".join(f"{count} {word}" for word, count in sorted(words.items())))
    return "[red]missed[/]" in words


def by_pairs(done: Sequence[Cell]) -> Table:
    """Triangles in per cent: by pairs as predicted, by the fold as predicted, and as seen."""
    table = Table(
        title="triangles, % of the truth: pairs → fold predicted, seen (root mean square)"
    )
    epsilons = sorted({cell.setting.epsilon for cell in done})
    for column in ("graph", "union", "hubs", *(f"ε = {epsilon:g}" for epsilon in epsilons)):
        table.add_column(column, no_wrap=True)
    rows: dict[tuple[str, str, str], dict[float, str]] = {}
    for cell in done:
        if not cell.many("triangles"):
            continue
        setting, draws = cell.setting, cell.draws("triangles")
        asked = Question("triangles", setting.epsilon, SILOS, COLLUSION)
        pairs = feat_error(reference(setting.graph), asked, setting.protocol)
        shown = (f"{100 * x / draws.truth:.2g}" for x in (pairs, draws.predicted, draws.rmse))
        row = rows.setdefault((setting.graph.name, setting.protocol, cell.head()[3]), {})
        row[setting.epsilon] = "{} → {}, {}".format(*shown)
    for head, row in rows.items():
        table.add_row(*head, *(row.get(epsilon, "") for epsilon in epsilons))
    return table


@cache
def reference(graph: Graph) -> Reference:
    return reference_of(graph.whole)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    names = (*REGISTRY, *MADE)
    parser.add_argument("--graphs", nargs="+", default=names, choices=names)
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--protocols", nargs="+", default=PROTOCOLS, choices=PROTOCOLS)
    parser.add_argument("--hubs", nargs="+", default=HUBS, choices=HUBS)
    parser.add_argument("--queries", nargs="+", default=tuple(QUERIES), choices=QUERIES)
    parser.add_argument("--draws", type=int, default=200, help="of every setting")
    parser.add_argument("--most", type=int, default=800, help="while a goal is open")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of CPU, for a setting")
    parser.add_argument("--buckets", type=int, default=30_000_000, help="the most of a fold")
    parser.add_argument("--json", type=Path, help="keep draws there, and go on from there")
    parser.add_argument("--show", nargs="+", type=Path, help="draw nothing; show these files")
    given = parser.parse_args()
    console.print(f"load {os.getloadavg()[0]:.1f}, m = {SILOS}, t = {COLLUSION}")
    files = given.show or ([given.json] if given.json and given.json.exists() else [])
    kept: dict[str, Any] = {}
    for file in files:
        stored = json.loads(file.read_text())
        if again := kept.keys() & stored.keys():
            parser.error(f"{file} has draws of {min(again)}, and so has another file")
        kept |= stored
    done = []
    for setting in settings(given):
        cell = Cell(setting)
        if cell.key in kept:
            cell.restore(kept[cell.key])
        if not given.show:
            cell.measure(given.queries, given.draws, given.most, given.seconds)
            kept[cell.key] = cell.record()
            print(cell.key, cell.drawn, f"{cell.seconds:.0f} s", file=sys.stderr, flush=True)
        if cell.drawn:
            done.append(cell)
        elif cell.key in kept:
            parser.error(f"{cell.key}: its draws are of another fold than is chosen now")
        if given.json:
            with written_whole(given.json) as path:
                path.write_text(json.dumps(kept))
    return int(show(done, given.queries))


if __name__ == "__main__":
    sys.exit(main())
