"""Every method of the experiments as a function from a seed to answers, drawn in the clear.

*Printed* is what the paper's algorithms say, with the estimators that it prints; *mended* is what
Silograph does; the *limit* is a curator whom everybody trusts with everything. All have the
distribution of the real thing without its messages. **For experiments only.**

``LABELS`` names each method in its form, and says which series of answers it gives.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from silograph.experiments.all_reports import draw_reports, triangles, two_stars
from silograph.experiments.compared import draw_value
from silograph.experiments.federations import Dealt, Federation, federation
from silograph.experiments.hidden_counts import curator_of, hidden_errors
from silograph.experiments.own_coins import draw_own_coins
from silograph.experiments.printed import kstars, proposition_2
from silograph.experiments.printed_featplus import printed_featplus
from silograph.graph.bitrows import BitRows
from silograph.methods.featplus_plan import plan_featplus
from silograph.methods.featplus_rounds import FeatPlusPlan
from silograph.methods.prediction import Question, union_channel
from silograph.methods.sealed import plan_sealed, sealed_limit
from silograph.privacy.baseline import BaselineNoise
from silograph.privacy.channel import Channel
from silograph.privacy.sealed import Answer, SealedNoise
from silograph.queries.release import Release
from silograph.queries.report_counts import ReportWeights
from silograph.queries.stars import kstars_value
from silograph.queries.tally import Tally
from silograph.queries.triangles import triangles_value

__all__ = ["LABELS", "QUERIES", "Asked", "Series", "draw", "series_of", "unable"]

#: What each query is called by the methods: a name, and the leaves of a star.
QUERIES: dict[str, tuple[str, int | None]] = {
    "2-stars": ("kstars", 2),
    "triangles": ("triangles", None),
}


@dataclass(frozen=True)
class Asked:
    """One point of an experiment: which silos, at what cost."""

    dealt: Dealt
    epsilon: float
    delta: float
    collusion: int
    #: What planners are told of how much of a node its main silo holds.
    owned: float | None = None

    @property
    def federation(self) -> Federation:
        """The silos, kept by the process."""
        return federation(self.dealt)


@dataclass(frozen=True)
class Series:
    """A curve of a figure: a method, its form, and a variant of it."""

    method: str
    form: str
    variant: str = ""


#: One draw: the answer of every variant of a label to every query that was asked.
Answers = dict[tuple[str, str], float]
Draw = Callable[[Asked, Sequence[str], int], Answers]


def _baseline_printed(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """Algorithm 1: randomized response at ε/m in every silo, the union, raw counts of it."""
    p = BaselineNoise.choose(asked.epsilon, asked.dealt.silos).channel.p01
    union = draw_own_coins(asked.federation, p, seed)
    return {("", query): float(_raw(union, query)) for query in queries}


def _raw(graph: BitRows, query: str) -> int:
    return graph.triangles if query == "triangles" else graph.wedges


def _baseline_mended(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """All m reports, weighed without bias whatever the number of holders."""
    channel = BaselineNoise.choose(asked.epsilon, asked.dealt.silos).channel
    counts = draw_reports(asked.federation, channel, seed)
    weights = ReportWeights(channel, asked.dealt.silos)
    ask = {
        "2-stars": lambda: float(two_stars(counts, weights)),
        "triangles": lambda: triangles(counts, channel),
    }
    return {("", query): ask[query]() for query in queries}


def _feat_printed(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """Algorithm 3's release, each holder tossing its own coin at ε; Propositions 1 and 2."""
    p = Channel.symmetric(asked.epsilon).p01
    noisy = draw_own_coins(asked.federation, p, seed)
    ask = {
        "2-stars": lambda: float(kstars(noisy.degrees.tolist(), noisy.n, p, 2)),
        "triangles": lambda: float(proposition_2(*_triples(noisy), (1 - p) / p)),
    }
    return {("", query): ask[query]() for query in queries}


def _triples(graph: BitRows) -> tuple[int, int, int, int]:
    """How many triples of nodes have 0, 1, 2 and 3 edges."""
    t3 = graph.triangles
    t2 = graph.wedges - 3 * t3
    t1 = graph.edges * (graph.n - 2) - 2 * t2 - 3 * t3
    return math.comb(graph.n, 3) - t1 - t2 - t3, t1, t2, t3


def _feat_mended(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """One release with the channel of the masked union at collusion t, unbiased weights."""
    channel = union_channel("clear", asked.epsilon, asked.dealt.silos, asked.collusion)
    noisy = Release.draw(asked.federation.whole, channel, seed).graph
    ask: dict[str, Callable[[], Fraction]] = {
        "2-stars": lambda: kstars_value(noisy, channel, 2),
        "triangles": lambda: triangles_value(Tally(noisy), channel),
    }
    return {("", query): float(ask[query]()) for query in queries}


def _featplus_printed(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """Algorithms 4–6; k-stars also as they must have been meant, one binomial a node."""
    silos, found = asked.federation.silos, {}
    for query in queries:
        name, k = QUERIES[query]
        found["", query] = printed_featplus(silos, name, k, asked.epsilon, seed)
        if k is not None:
            found["per-node", query] = printed_featplus(
                silos, name, k, asked.epsilon, seed, per_node=True
            )
    return found


def _featplus_mended(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """The paper's form with its split of epsilon, and gradients with the planner's."""
    made = asked.federation
    return {
        (variant, query): draw_value(_featplus(asked, query, variant), made.silos, made.whole, seed)
        for query in queries
        for variant in ("paper", "auto")
    }


@lru_cache(maxsize=256)
def _featplus(asked: Asked, query: str, variant: str) -> FeatPlusPlan:
    name, k = QUERIES[query]
    local, split = ("paper", "paper") if variant == "paper" else ("gradient", "auto")
    made = asked.federation
    return plan_featplus(
        name, k, local, split, asked.epsilon, asked.dealt.silos, asked.collusion, "clear", made.n,
        outline=made.outline, owned=asked.owned,
    )  # fmt: skip


def _sealed(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """The hidden count, and all silos' noise."""
    return {("", query): _opened(asked, query, seed, alone=False) for query in queries}


def _curator(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """The same mechanism in one trusted hand."""
    return {("", query): _opened(asked, query, seed, alone=True) for query in queries}


def _opened(asked: Asked, query: str, seed: int, *, alone: bool) -> float:
    made, answer = asked.federation, _ANSWERS[query]
    noise = _sealed_noise(asked, query)
    if alone:
        noise = curator_of(noise)
    (error,) = hidden_errors(made.degrees, noise, answer, 1, seed, alone=alone)
    return made.truth(query) + float(error)


_ANSWERS: dict[str, Answer] = {"2-stars": "two_stars", "triangles": "triangles"}


@lru_cache(maxsize=256)
def _sealed_noise(asked: Asked, query: str) -> SealedNoise:
    name, k = QUERIES[query]
    silos, t = asked.dealt.silos, asked.collusion
    question = Question(name, asked.epsilon, silos, t, k, asked.delta)
    return plan_sealed(asked.federation.outline, question).noise


@dataclass(frozen=True)
class Label:
    """A method in one form: how it is drawn, and the series that come out."""

    draw: Draw
    series: tuple[Series, ...]
    #: Whether it spends the delta of a point.
    uses_delta: bool = False


LABELS: dict[str, Label] = {
    "baseline printed": Label(_baseline_printed, (Series("baseline", "printed"),)),
    "baseline mended": Label(_baseline_mended, (Series("baseline", "mended"),)),
    "feat printed": Label(_feat_printed, (Series("feat", "printed"),)),
    "feat mended": Label(_feat_mended, (Series("feat", "mended"),)),
    "feat+ printed": Label(
        _featplus_printed, (Series("feat+", "printed"), Series("feat+", "printed", "per-node"))
    ),
    "feat+ mended": Label(
        _featplus_mended, (Series("feat+", "mended", "paper"), Series("feat+", "mended", "auto"))
    ),
    "sealed": Label(_sealed, (Series("sealed", "mended"),), uses_delta=True),
    "curator": Label(_curator, (Series("curator", "limit"),), uses_delta=True),
}


def series_of(label: str, query: str) -> tuple[Series, ...]:
    """The series that a label gives for a query."""
    stars = query != "triangles"
    return tuple(one for one in LABELS[label].series if stars or one.variant != "per-node")


def draw(
    label: str, asked: Asked, queries: Sequence[str], seed: int
) -> dict[tuple[Series, str], float]:
    """One draw of a method: the answers of all its series."""
    found = LABELS[label].draw(asked, queries, seed)
    return {
        (series, query): found[series.variant, query]
        for query in queries
        for series in series_of(label, query)
    }


def unable(label: str, query: str, nodes: int, silos: int, collusion: int) -> str:
    """Why a method does not answer here; empty where it does."""
    if collusion >= silos:
        return f"at most {silos - 1} of {silos} silos can collude"
    if label == "feat+ mended" and collusion == 0:
        return "feat+ shows the release to all silos: it needs collusion of at least 1"
    limit = sealed_limit(QUERIES[query][0])
    if label == "sealed" and nodes > limit:
        return f"sealed answers {query} on at most {limit:,} nodes; this graph has {nodes:,}"
    return ""
