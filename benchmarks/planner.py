"""What the planner promises, and what comes of it.

For every graph, query, ε and method: the error over many redraws by the error that is predicted
from the graph itself; and whether the latter lies in the ranges that are predicted from a past
release at ε = 1 and from the numbers of nodes and edges alone, with the width of the ranges (high
end by low end). A second table has the regret of ``auto``: the error of what is chosen from a
release, or from two numbers, by that of the best method in reach, both on the graph itself.

Releases, reports and noise are drawn in the clear, from the laws of the real protocols. Not drawn
are ElGamal's unions, feat+ where it is feat, and the baseline on large graphs.

    make bench-planner
    python -m benchmarks.planner --graphs facebook power-law --epsilons 1 3 --runs 50
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import median

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.fold import Graph, Setting
from benchmarks.made import communities, public_graph
from reproduction.compared import VALUES, draw_value
from reproduction.draws import draw_reports, hidden_errors, total_noise, triangles, two_stars
from reproduction.federations import Federation
from silograph import NodeUniverse, Release, Silo, clustered_power_law, split
from silograph.estimators.reference import Reference, guess, reference_of, reference_of_release
from silograph.graph.samples import REGISTRY
from silograph.methods.baseline.counts import ReportWeights
from silograph.methods.baseline.noise import BaselineNoise
from silograph.methods.featplus.method import settle_featplus
from silograph.methods.fold.expected import FoldChoice
from silograph.methods.planner import Option, Plan, plan_options
from silograph.methods.prediction import Question, union_channel
from silograph.methods.sealed.method import choose_noise

SILOS, COLLUSION, PAST = 4, 1, 1.0
QUERIES: dict[str, tuple[str, int | None]] = {
    "edges": ("edges", None),
    "2-stars": ("kstars", 2),
    "triangles": ("triangles", None),
    "4-cycles": ("four_cycles", None),
}
#: More nodes than this, and all reports of the baseline are too many.
_REPORTS = 1500
#: Folded releases are drawn less often: their answers come with error bars, which take longer.
_FOLDS = 10


def hubs(nodes: int, many: int, seed: int) -> Silo:
    """A few nodes that know nearly all others, and little else."""
    rng = np.random.default_rng(seed)
    left = np.repeat(np.arange(many), nodes)
    right = np.tile(np.arange(nodes), many)
    kept = (left < right) & (rng.random(len(left)) < 0.7)
    return Silo.from_edges(NodeUniverse.range(nodes), np.stack([left, right], axis=1)[kept])


def random_graph(nodes: int, chance: float, seed: int) -> Silo:
    """Every pair is an edge with the same probability."""
    pairs = np.stack(np.triu_indices(nodes, 1), axis=1)
    kept = np.random.default_rng(seed).random(len(pairs)) < chance
    return Silo.from_edges(NodeUniverse.range(nodes), pairs[kept])


MADE: dict[str, Callable[[], Silo]] = {
    "power-law": lambda: clustered_power_law(1000, 8, seed=3),
    "communities": lambda: communities(1200),
    "hubs": lambda: hubs(800, 8, 1),
    "dense": lambda: random_graph(300, 0.3, 1),
    "sparse": lambda: random_graph(1000, 0.006, 1),
}


@dataclass(frozen=True, eq=False)
class Known:
    """A graph, and what a planner may know of it."""

    name: str
    whole: Silo

    @cached_property
    def itself(self) -> Reference:
        return reference_of(self.whole)

    @cached_property
    def release(self) -> Reference:
        channel = union_channel("committee", PAST, SILOS, COLLUSION)
        return reference_of_release(Release.draw(self.whole, channel, 1))

    @cached_property
    def numbers(self) -> Reference:
        return guess(len(self.whole.universe), float(len(self.whole)))

    @cached_property
    def dealt(self) -> Federation:
        return Federation(split(self.whole, SILOS, seed=1))


def load(names: Iterable[str]) -> Iterator[Known]:
    for name in names:
        yield Known(name, MADE[name]() if name in MADE else public_graph(name))


# --- Redraws --------------------------------------------------------------------------------------


def redrawn(known: Known, asked: Question, option: Option, runs: int) -> float:
    """The root of the mean squared error of an option in so many redraws; NaN if it has none."""
    truth = known.itself.count(asked.query, asked.k)
    found = np.array(list(_values(known, asked, option, runs, truth)))
    return float(np.sqrt(np.mean((found - truth) ** 2))) if len(found) else math.nan


def _values(
    known: Known, asked: Question, option: Option, runs: int, truth: float
) -> Iterator[float]:
    if option.method == "sealed":
        noise = choose_noise(known.itself, asked).noise
        if asked.query == "edges":
            yield from truth + total_noise(noise, "edges", None, 50 * runs, 1, alone=False)
        else:
            answer = "two_stars" if asked.query == "kstars" else "triangles"
            degrees = known.whole.degrees().astype(np.int64)
            yield from truth + hidden_errors(degrees, noise, answer, 10 * runs, 1)
    elif "fold" in option.arguments:
        yield from _folded(known, asked, option, min(runs, _FOLDS))
    elif option.method == "feat" and not option.protocol.startswith("elgamal"):
        channel = union_channel(option.protocol, asked.epsilon, SILOS, COLLUSION)
        for seed in range(runs):
            yield VALUES[asked.query](Release.draw(known.whole, channel, seed), asked.k)
    elif option.method == "feat+" and option.arguments["split"][0] != 1:
        given = option.arguments
        plan = settle_featplus(
            asked.query, asked.k, given["local"], given["split"], asked.epsilon, SILOS, COLLUSION,
            option.protocol, len(known.whole.universe), given.get("bound"),
            reference=known.itself,
        )  # fmt: skip
        made = known.dealt
        yield from (draw_value(plan, made.silos, made.whole, seed) for seed in range(runs))
    elif (
        option.method == "baseline"
        and asked.query in ("kstars", "triangles")
        and len(known.whole.universe) <= _REPORTS
    ):
        channel = BaselineNoise.choose(asked.epsilon, SILOS, COLLUSION).channel
        for seed in range(runs):
            counts = draw_reports(known.dealt, channel, seed)
            if asked.query == "triangles":
                yield triangles(counts, channel)
            else:
                yield float(two_stars(counts, ReportWeights(channel, SILOS)))


def _folded(known: Known, asked: Question, option: Option, runs: int) -> Iterator[float]:
    fold = option.arguments["fold"]
    many = fold.layout.hubs
    spent = fold.hub_share * asked.epsilon if many else 0.0
    chosen = FoldChoice(fold.groups, many, fold.sub, spent, 0.0, 0.0, 0, 0)
    graph = Graph(known.name, known.whole)
    setting = Setting(graph, asked.epsilon, option.protocol, False, chosen)
    for number in range(runs):
        release = setting.draw(number)
        answer = release.kstars(2) if asked.k else getattr(release, asked.query)()
        yield float(answer.value)


# --- Tables ---------------------------------------------------------------------------------------


def same(found: Plan, option: Option) -> Option | None:
    """The option of another plan that has the same name."""
    key = option.label, option.protocol
    return next((one for one in found.options if (one.label, one.protocol) == key), None)


def width(option: Option | None, error: float) -> tuple[str, float, bool | None]:
    """A range, its ends' ratio, and whether an error lies in it."""
    if option is None:
        return "–", math.nan, None
    low, high = option.span or (option.relative, option.relative)
    return option.percent, high / low, low / 1.1 <= error <= high * 1.1


def predictions(every: Iterable[Known], epsilons: list[float], runs: int, console: Console) -> None:
    """Print both tables."""
    table = Table(title=f"realised and predicted errors, m = {SILOS}, t = {COLLUSION}, {runs} runs")
    for column in ("graph", "query", "ε", "method", "realised", "/ predicted", "from a release",
                   "width", "in", "from n, edges", "width", "in"):  # fmt: skip
        left = column in ("graph", "query", "method", "in")
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    regrets = Table(title="regret of auto: error of its choice / least error, on the graph itself")
    for column in ("graph", "query", "ε", "best", "from a release", "", "from n, edges", ""):
        right = column in ("ε", "from a release", "from n, edges")
        regrets.add_column(column, justify="right" if right else "left", no_wrap=True)
    ratios, widths, inside, lost = [], {1: [], 2: []}, {1: [], 2: []}, {1: [], 2: []}  # type: ignore[var-annotated]
    for known in every:
        for shown, (query, k) in QUERIES.items():
            if not known.itself.count(query, k):
                continue
            for epsilon in epsilons:
                asked = Question(query, epsilon, SILOS, COLLUSION, k)
                plans = [
                    plan_options(reference, asked)
                    for reference in (known.itself, known.release, known.numbers)
                ]
                for option in plans[0].options:
                    seen = redrawn(known, asked, option, runs)
                    relative = seen / abs(known.itself.count(query, k))
                    cells = []
                    for place, other in enumerate(plans[1:], 1):
                        said, wide, held = width(same(other, option), option.relative)
                        cells += [said, f"{wide:.1f}", {True: "yes", False: "NO"}.get(held, "–")]  # type: ignore[arg-type]
                        if held is not None:
                            widths[place].append(wide)
                            inside[place].append((known.name, held))
                    ratio = seen / option.error
                    if math.isfinite(ratio):
                        ratios.append((ratio, f"{known.name} {shown} ε {epsilon:g} {option.label}"))
                    table.add_row(
                        known.name, shown, f"{epsilon:g}", f"{option.label} {option.protocol}",
                        f"{100 * relative:.3g} %" if math.isfinite(relative) else "–",
                        f"{ratio:.2f}" if math.isfinite(ratio) else "–", *cells,
                    )  # fmt: skip
                table.add_section()
                least, cells = plans[0].best, []
                for place, other in enumerate(plans[1:], 1):
                    choice = other.best
                    on = choice.error_on
                    regret = on(known.itself) / least.error if on else math.nan
                    lost[place].append(regret)
                    cells += [f"{regret:.2f}", f"{choice.label} {choice.protocol}"]
                best = f"{least.label} {least.protocol}"
                regrets.add_row(known.name, shown, f"{epsilon:g}", best, *cells)
    console.print(table)
    console.print(regrets)
    console.print(by_graph(inside))
    worst = sorted(ratios)
    console.print(
        f"realised / predicted: {worst[0][0]:.2f} ({worst[0][1]}) to {worst[-1][0]:.2f} "
        f"({worst[-1][1]}), {median(r for r, _ in ratios):.2f} in the middle of {len(ratios)}"
    )
    for place, source in ((1, "a release at ε = 1"), (2, "n and edges")):
        console.print(
            f"from {source}: the error is in the range in {sum(h for _, h in inside[place])} of "
            f"{len(inside[place])}; width × {median(widths[place]):.1f} in the middle, "
            f"× {max(widths[place]):.3g} at most; regret {median(lost[place]):.2f} in the middle, "
            f"{max(lost[place]):.2f} at most"
        )


def by_graph(inside: dict[int, list[tuple[str, bool]]]) -> Table:
    """How many errors of each graph are in their ranges."""
    table = Table("graph", title="errors in their ranges")
    for column in ("from a release", "from n, edges"):
        table.add_column(column, justify="right")
    for name in dict.fromkeys(name for name, _ in inside[1]):
        own = [[held for other, held in every if other == name] for every in inside.values()]
        table.add_row(name, *(f"{sum(held)} of {len(held)}" for held in own))
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", nargs="*", choices=[*REGISTRY, *MADE])
    parser.add_argument("--epsilons", nargs="*", type=float, default=[0.5, 1.0, 3.0])
    parser.add_argument("--runs", type=int, default=40)
    given = parser.parse_args()
    names = given.graphs or ["facebook", "wiki-vote", *MADE]
    console = Console(width=None if sys.stdout.isatty() else 190, highlight=False)
    every = track(list(load(names)), console=Console(stderr=True), description="graphs")
    predictions(every, given.epsilons, given.runs, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
