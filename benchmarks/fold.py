"""Folded releases: bias, spread, error bars and predictions of all queries, by drawing them again.

Every draw has a fresh key (which groups, signs and sub-buckets), fresh noise of the channel and,
where hubs are searched for, fresh noise of the search, by the samplers that the parties use. The
union protocols open exactly what is drawn here, as their tests show. Hubs, groups and sub-buckets
are the planner's choice for triangles, and all queries are asked of the same releases.

Goals, for each graph, ε, protocol and query:

- the observed standard deviation is within 20 % of the predicted one;
- the bias is below a third of the standard deviation;
- the 95 % interval covers the truth, with a lower 99.9 % limit of at least 90 %. About 600 draws
  are needed to show this of an interval that covers 95 %.

A goal is *missed* or *ok* where the draws can tell, and *open* otherwise. The exit code is 1 if one
was missed. Four-cycles are not predicted.

    make bench-fold
    python -m benchmarks.fold --graphs email-enron --epsilons 1 --draws 20 --json fold.json
"""

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
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
from silograph.graph.fold import BucketCounts, Folding, Layout
from silograph.graph.samples import REGISTRY, seed_bytes
from silograph.methods.fold.expected import FOLDED, FoldChoice, choose_fold, predicted_error
from silograph.methods.hubs.answer import HubSearch
from silograph.methods.hubs.noise import ENDS, HubNoise
from silograph.methods.union import SettledUnion, settle_union

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
        k, n, tail = self.covered, self.many, 1 - SURE
        low = float(stats.beta.ppf(tail, k, n - k + 1)) if k else 0.0
        high = float(stats.beta.ppf(SURE, k + 1, n - k)) if k < n else 1.0
        return k / n, low, high

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
            (says or "ok") if self.usable else "no usable answer",
        ]


def judged(shown: bool, refuted: bool) -> str:
    return "ok" if shown else "[red]missed[/]" if refuted else "open"


@dataclass
class Cell:
    """A setting with its draws."""

    setting: Setting
    draws: dict[str, Draws] = field(default_factory=dict)
    seconds: float = 0.0

    def measure(self, queries: Sequence[str], first: int, many: int, seconds: float) -> None:
        """Draw so many releases, or as many as fit the time, but ten."""
        answers: dict[str, list[Estimate[float]]] = {query: [] for query in queries}
        began = time.perf_counter()
        for number in range(first, first + many):
            release = self.setting.draw(number)
            for query in queries:
                answers[query].append(QUERIES[query](release))
            if number - first >= 9 and time.perf_counter() - began > seconds:
                break
        self.seconds = time.perf_counter() - began
        for query, found in answers.items():
            truth = self.setting.graph.truths[query]
            within = [one.interval[0] <= truth <= one.interval[1] for one in found]
            self.draws[query] = Draws(
                truth,
                *self.setting.predicted(query),
                np.array([one.value for one in found]),
                np.array([one.stderr for one in found]),
                sum(within),
            )

    def head(self) -> list[str]:
        setting, fold = self.setting, self.setting.fold
        search = f" ({fold.hub_epsilon:.2f})" if fold.hub_epsilon else ""
        shape = f"{fold.hubs}{search}/{fold.groups}/{fold.sub}"
        hubs = "known" if setting.known else "found"
        return [setting.graph.name, f"{setting.epsilon:g}", setting.protocol, hubs, shape]

    def record(self) -> dict[str, Any]:
        setting, fold = self.setting, self.setting.fold
        return {
            "graph": setting.graph.name,
            "epsilon": setting.epsilon,
            "protocol": setting.protocol,
            "hubs": fold.hubs,
            "known": setting.known,
            "hub_epsilon": fold.hub_epsilon,
            "groups": fold.groups,
            "sub": fold.sub,
            "bytes_per_silo": fold.bytes_per_silo,
            "seconds": self.seconds,
            "queries": {
                query: {
                    "truth": draws.truth,
                    "predicted": draws.predicted,
                    "bias_bound": draws.bound,
                    "rmse": draws.rmse,
                    "covered": draws.covered,
                    "verdicts": {k: "missed" if "missed" in v else v
                                 for k, v in draws.verdicts.items()},
                    "values": draws.values.tolist(),
                    "stderrs": draws.stderrs.tolist(),
                }
                for query, draws in self.draws.items()
            },
        }  # fmt: skip


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    names = (*REGISTRY, *MADE)
    parser.add_argument("--graphs", nargs="+", default=names, choices=names)
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--protocols", nargs="+", default=PROTOCOLS, choices=PROTOCOLS)
    parser.add_argument("--hubs", nargs="+", default=HUBS, choices=HUBS)
    parser.add_argument("--queries", nargs="+", default=tuple(QUERIES), choices=QUERIES)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the number of the first draw")
    parser.add_argument("--seconds", type=float, default=math.inf, help="at most, for a setting")
    parser.add_argument("--buckets", type=int, default=30_000_000, help="the most of a fold")
    parser.add_argument("--json", type=Path, help="write all values there")
    given = parser.parse_args()
    console.print(f"load {os.getloadavg()[0]:.1f}, m = {SILOS}, t = {COLLUSION}")
    columns = ("graph", "ε", "union", "hubs", "hubs/groups/sub", "draws", "bias % ± se", "sd %",
               "own %", "predicted %", "sd/pred", "bias/sd", "covered", "")  # fmt: skip
    tables = {query: Table(title=query) for query in given.queries}
    for table in tables.values():
        for column in columns:
            table.add_column(column, no_wrap=True)
    records, missed = [], False
    for setting in settings(given):
        cell = Cell(setting)
        cell.measure(given.queries, given.first, given.draws, given.seconds)
        records.append(cell.record())
        for query, draws in cell.draws.items():
            row = [*cell.head(), str(draws.many), *draws.row()]
            tables[query].add_row(*row)
            print(query, *row, f"{cell.seconds / draws.many:.1f} s", file=sys.stderr, flush=True)
            missed |= draws.usable and any("missed" in word for word in draws.verdicts.values())
        if given.json:
            given.json.write_text(json.dumps(records))
    for table in tables.values():
        console.print(table)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
