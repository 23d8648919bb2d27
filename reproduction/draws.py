"""Every method of the experiments as a function from a seed to answers, drawn in the clear.

There are three readings of the paper. *Printed* is Algorithm 3 to the letter, an OR of every
silo's coins, with the estimators that the paper prints; they are not calibrated for it. *Meant* is
its prose: one response on the union, with the printed estimators. *Mended* is what Silograph does.
Algorithm 1, the baseline, has one reading as printed and as meant. The *limit* is somebody whom
everybody trusts with everything: with sealed's own mechanism (``curator``), or with the best
mechanisms that are known for such a curator (``central``). All have the distribution of the real
thing without its messages. **For experiments only.**

``LABELS`` names each method in its form, and says which series of answers it gives.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from reproduction.central import Reach, mechanism, triangles_reach, two_stars_reach
from reproduction.compared import draw_value
from reproduction.federations import Dealt, Federation, federation
from reproduction.printed import (
    kstars,
    meant_release,
    printed_featplus,
    proposition_2,
    release_epsilon,
)
from silograph import _core
from silograph.dp.channel import Channel, limbs
from silograph.dp.laplace import NoiseLaw
from silograph.estimators.pair_sums import GraphSums
from silograph.estimators.release import Release
from silograph.estimators.stars import kstars_value
from silograph.estimators.triangles import triangles_value
from silograph.graph.bits import BitRows
from silograph.graph.samples import seed_bytes
from silograph.methods.baseline.counts import ReportCounts, ReportWeights
from silograph.methods.baseline.noise import BaselineNoise
from silograph.methods.baseline.walks import ReportWalks
from silograph.methods.featplus.method import settle_featplus
from silograph.methods.featplus.rounds import FeatPlusTerms
from silograph.methods.prediction import Question, union_channel
from silograph.methods.sealed.method import choose_noise, sealed_limit
from silograph.methods.sealed.noise import HONEST, PARTS, Answer, SealedNoise
from silograph.methods.sealed.stars import kstars_value as sealed_kstars

__all__ = [
    "CENTRAL",
    "LABELS",
    "QUERIES",
    "Asked",
    "RoundedWeights",
    "Series",
    "curator_of",
    "draw",
    "draw_own_coins",
    "draw_reports",
    "drawn_bounds",
    "hidden_errors",
    "series_of",
    "shows_one",
    "total_noise",
    "triangles",
    "two_stars",
    "two_stars_error",
    "unable",
]


# --- Unions in which every silo tosses its own coin, drawn in the clear from their exact law ------
#
# The paper's Algorithms 1 and 3, as printed: each silo passes its own bit of a pair through
# randomized response, and the results are OR-ed. A pair that k of m silos hold then shows 0 with
# probability p^k·(1−p)^(m−k). **For experiments only.**


def shows_one(p: Fraction, holders: int, silos: int) -> Fraction:
    """The probability that such a pair shows 1.

    >>> shows_one(Fraction(1, 4), 1, 2)
    Fraction(13, 16)
    """
    return 1 - p**holders * (1 - p) ** (silos - holders)


def draw_own_coins(federation: Federation, p: Fraction, seed: int) -> BitRows:
    """One such union, at flipping probability p, as predictable as its seed."""
    silos, pairs = len(federation.silos), federation.whole.pairs
    # Pairs that nobody holds come from one channel; held ones are left at zero by it.
    rows = _core.draw_rows(
        federation.n,
        pairs,
        limbs(Fraction(0)),
        limbs(shows_one(p, 0, silos)),
        seed_bytes("own coins", seed),
    )
    shown = np.zeros(len(pairs), dtype=bool)
    for holders in range(1, silos + 1):
        places = np.flatnonzero(federation.holders == holders)
        if len(places):
            shown[places] = _coins(shows_one(p, holders, silos), len(places), holders, seed)
    return BitRows(rows | _core.rows_from_pairs(federation.n, pairs[shown]))


def _coins(probability: Fraction, count: int, holders: int, seed: int) -> NDArray[np.bool_]:
    """So many coins that show 1 with the exact probability."""
    ones = np.zeros(-(-count // 64) * 64, dtype=np.uint8)
    ones[:count] = 1
    drawn = _core.perturb(
        np.packbits(ones, bitorder="little").tobytes(),
        count,
        limbs(probability),
        limbs(Fraction(0)),
        seed_bytes(f"own coins of {holders}", seed),
    )
    bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8), count=count, bitorder="little")
    return bits.astype(np.bool_)


# --------------------------------------------------------------------------------------------------
# The baseline as mended, drawn in the clear: 2-stars and triangles from the reports of all silos.
#
# Weights of triangles are rounded to so few binary digits that every sum of a matrix product is
# exact in float64: the result does not depend on the order in which a machine adds. What is rounded
# off is less than 2^−18 of the largest weight, far below the noise. 2-stars are exact fractions.
# **For experiments only.**


@dataclass(frozen=True)
class RoundedWeights(ReportWeights):
    """Weights of few binary digits, so that products of rows of n of them are exact.

    >>> rounded = RoundedWeights(Channel("3/4", "1/4"), 2, nodes=1000)
    >>> float(rounded.weights[0]), rounded.digits
    (-1.25, 21)
    """

    nodes: int = 0

    @property
    def digits(self) -> int:
        """n·2^(2·digits) is at most 2^53."""
        return (53 - (self.nodes - 1).bit_length()) // 2

    @cached_property
    def weights(self) -> tuple[Fraction, ...]:
        """w_0 … w_m, to the nearest multiple of a power of two."""
        exact = ReportWeights(self.channel, self.silos).weights
        largest = max(abs(w) for w in exact)
        # The least e with |w| ≤ 2^e; what remains of a weight has that many digits.
        exponent = math.frexp(float(largest))[1] - self.digits
        unit = Fraction(2) ** exponent
        return tuple(round(w / unit) * unit for w in exact)


def draw_reports(federation: Federation, channel: Channel, seed: int) -> ReportCounts:
    """The reports of all silos, each through the channel, as predictable as their seed."""
    p11, p01 = limbs(channel.p11), limbs(channel.p01)
    return ReportCounts.of(
        [
            BitRows(_core.draw_rows(federation.n, silo.pairs, p11, p01, seed_bytes(label, seed)))
            for label, silo in zip(_labels(federation.silos), federation.silos, strict=True)
        ]
    )


def _labels(silos: Sequence[object]) -> list[str]:
    return [f"report of silo {place}" for place in range(1, len(silos) + 1)]


def two_stars(counts: ReportCounts, weights: ReportWeights) -> Fraction:
    """Σ over nodes of ((Σw)² − Σw²)/2 over their pairs, exactly."""
    den = math.lcm(*(w.denominator for w in weights.weights))
    ones = [int(w * den) for w in weights.weights]
    squares = [w * w for w in ones]
    total = 0
    for row, many in Counter(map(tuple, counts.profiles.tolist())).items():
        degree = sum(c * w for c, w in zip(row, ones, strict=True))
        total += many * (degree**2 - sum(c * s for c, s in zip(row, squares, strict=True)))
    return Fraction(total, 2 * den**2)


def triangles(counts: ReportCounts, channel: Channel) -> float:
    """tr(W³)/6 of the rounded weights."""
    return ReportWalks(counts, RoundedWeights(channel, counts.silos, counts.n)).triangles


# --------------------------------------------------------------------------------------------------
# Sealed answers without the protocol: hidden counts that are known, and only the noise drawn.
#
# The protocol opens exactly the count plus noise (tests of ``methods.sealed``), so that the count
# can be computed once and the noise drawn as often as one likes. Committee noise is drawn from its
# ideal law, a whole discrete Laplace variable; noise in shares is the sum of the members' parts.
# Sealed's mechanism in one hand: somebody holds the whole graph and uses the same mechanism, budget
# and delta with whole noise. Against committee noise that is no difference. A curator can do better
# than that (``reproduction.central``). **For experiments only.**

#: How many noisy degrees are held at once.
_BLOCK = 1 << 22


def total_noise(
    noise: SealedNoise, answer: Answer, bound: int | None, count: int, seed: int, *, alone: bool
) -> NDArray[np.int64]:
    """The total noise; or one whole discrete Laplace each, for one who is ``alone``."""
    scale = noise.scale(answer, bound)
    whole = alone or noise.kind == "committee"
    parts = scale.numerator, scale.denominator, 1 if whole else HONEST
    labels = [f"accuracy/{answer}/{bound}/{party}" for party in range(1 if whole else PARTS)]
    drawn = (_core.polya_difference(count, *parts, seed_bytes(label, seed)) for label in labels)
    return sum(drawn, np.zeros(count, dtype=np.int64))


def drawn_bounds(
    degrees: NDArray[np.int64], noise: SealedNoise, answer: Answer, runs: int, seed: int
) -> NDArray[np.int64]:
    """The bound of a count in every redraw of all noisy degrees."""
    nodes = len(degrees)
    found: list[int | None] = []
    while len(found) < runs:
        block = min(max(_BLOCK // nodes, 1), runs - len(found))
        drawn = total_noise(noise, "degrees", None, block * nodes, seed + len(found), alone=False)
        noisy = degrees + drawn.reshape(block, nodes)
        found += [noise.bound(answer, row) for row in noisy]
    return np.array(found, dtype=np.int64)


def hidden_errors(
    degrees: NDArray[np.int64],
    noise: SealedNoise,
    answer: Answer,
    runs: int,
    seed: int,
    *,
    alone: bool = False,
) -> NDArray[np.float64]:
    """The error of an answer in every one of so many redraws."""
    if answer not in noise.answers:
        return np.array(
            [two_stars_error(degrees, noise, seed + i, alone=alone) for i in range(runs)]
        )
    if answer not in noise.margins:
        return total_noise(noise, answer, None, runs, seed, alone=alone).astype(np.float64)
    bounds, found = drawn_bounds(degrees, noise, answer, runs, seed), np.empty(runs)
    for bound in np.unique(bounds).tolist():
        chosen = np.flatnonzero(bounds == bound)
        found[chosen] = total_noise(noise, answer, bound, len(chosen), seed + bound, alone=alone)
    return found


def two_stars_error(
    degrees: NDArray[np.int64], noise: SealedNoise, seed: int, *, alone: bool = False
) -> float:
    """The error of 2-stars that follow from noisy degrees, where nothing else is opened."""
    law = NoiseLaw(noise.scale("degrees"), 1, 1) if alone else noise.law("degrees")
    noisy = degrees + total_noise(noise, "degrees", None, len(degrees), seed, alone=alone)
    truth = sum(d * (d - 1) // 2 for d in degrees.tolist())
    return float(sealed_kstars(noisy.tolist(), law, 2) - truth)


def curator_of(noise: SealedNoise) -> SealedNoise:
    """The same mechanism and budgets for one who holds the whole graph and adds whole noise.

    Scales and bounds are the same: committee noise is whole, and shares have no bound.
    """
    return replace(noise, collusion=0)


# --- Methods --------------------------------------------------------------------------------------

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
    #: Whether it spends the delta of a point.
    uses_delta: bool = False


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
    """Algorithm 3's release, each silo tossing its own coin at ε; Propositions 1 and 2."""
    p = Channel.symmetric(asked.epsilon).p01
    return _printed_counts(draw_own_coins(asked.federation, p, seed), p, queries)


def _feat_meant(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """One response on the union at ε, by the prose of §III-C; Propositions 1 and 2."""
    noisy = meant_release(asked.federation.whole, asked.epsilon, seed)
    return _printed_counts(noisy, Channel.symmetric(asked.epsilon).p01, queries)


def _printed_counts(noisy: BitRows, p: Fraction, queries: Sequence[str]) -> Answers:
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
        "triangles": lambda: triangles_value(GraphSums(noisy), channel),
    }
    return {("", query): float(ask[query]()) for query in queries}


def _featplus_printed(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """Algorithms 4–6 to the letter, on Algorithm 3's release, each silo tossing its own coin."""
    p = Channel.symmetric(release_epsilon(asked.epsilon)).p01
    noisy = draw_own_coins(asked.federation, p, seed)
    return {("", query): _printed_plus(asked, noisy, query, seed) for query in queries}


def _featplus_meant(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """Algorithms 4–6 on one response; k-stars also with one binomial a node, as must be meant."""
    noisy = meant_release(asked.federation.whole, release_epsilon(asked.epsilon), seed)
    found = {("", query): _printed_plus(asked, noisy, query, seed) for query in queries}
    for query in queries:
        if QUERIES[query][1] is not None:
            found["per-node", query] = _printed_plus(asked, noisy, query, seed, per_node=True)
    return found


def _printed_plus(
    asked: Asked, noisy: BitRows, query: str, seed: int, *, per_node: bool = False
) -> float:
    silos = asked.federation.silos
    return printed_featplus(silos, noisy, *QUERIES[query], asked.epsilon, seed, per_node=per_node)


def _featplus_mended(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """The paper's form with its split of epsilon, and gradients with the planner's."""
    made = asked.federation
    return {
        (variant, query): draw_value(_featplus(asked, query, variant), made.silos, made.whole, seed)
        for query in queries
        for variant in ("paper", "auto")
    }


@lru_cache(maxsize=256)
def _featplus(asked: Asked, query: str, variant: str) -> FeatPlusTerms:
    name, k = QUERIES[query]
    local, split = ("paper", "paper") if variant == "paper" else ("gradient", "auto")
    made = asked.federation
    return settle_featplus(
        name, k, local, split, asked.epsilon, asked.dealt.silos, asked.collusion, "clear", made.n,
        reference=made.reference, owned=asked.owned,
    )  # fmt: skip


def _sealed(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """The hidden count, and the noise of the committee."""
    return {("", query): _opened(asked, query, seed, alone=False) for query in queries}


def _curator(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """The same mechanism in one trusted hand."""
    return {("", query): _opened(asked, query, seed, alone=True) for query in queries}


def _central(asked: Asked, queries: Sequence[str], seed: int) -> Answers:
    """The best mechanisms of a curator who holds the whole graph; the ladder spends no delta."""
    found, made = {}, asked.federation
    for query in queries:
        reach = _reach(asked.dealt, query)
        for variant, one in CENTRAL.items():
            rng = np.random.default_rng(list(seed_bytes(f"central/{variant}/{query}", seed)))
            (error,) = one.drawn(reach, asked.epsilon, asked.delta, 1, rng)
            found[variant, query] = made.truth(query) + float(error)
    return found


#: The central mechanisms that are drawn, by what they are called here.
CENTRAL = {
    "noisy bound": mechanism("noisy bound"),
    "smooth sensitivity": mechanism("smooth, split"),
    "ladder": mechanism("ladder"),
}
_REACHES = {"2-stars": two_stars_reach, "triangles": triangles_reach}


@lru_cache(maxsize=32)
def _reach(dealt: Dealt, query: str) -> Reach:
    made = federation(dealt)
    return _REACHES[query](made.n, made.whole.pairs)


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
    # The curator colludes with nobody, and is drawn at every level.
    silos, t = asked.dealt.silos, min(asked.collusion, 1)
    question = Question(name, asked.epsilon, silos, t, k, asked.delta)
    return choose_noise(asked.federation.reference, question).noise


@dataclass(frozen=True)
class Label:
    """A method in one form: how it is drawn, and the series that come out."""

    draw: Draw
    series: tuple[Series, ...]
    #: The label that its seeds follow from, if not its own: readings of one method may share them.
    seeds: str = ""


LABELS: dict[str, Label] = {
    "baseline printed": Label(_baseline_printed, (Series("baseline", "printed"),)),
    "baseline mended": Label(_baseline_mended, (Series("baseline", "mended"),)),
    "feat printed": Label(_feat_printed, (Series("feat", "printed"),)),
    "feat meant": Label(_feat_meant, (Series("feat", "meant"),)),
    "feat mended": Label(_feat_mended, (Series("feat", "mended"),)),
    "feat+ printed": Label(_featplus_printed, (Series("feat+", "printed"),)),
    "feat+ meant": Label(
        _featplus_meant,
        (Series("feat+", "meant"), Series("feat+", "meant", "per-node")),
        seeds="feat+ printed",
    ),
    "feat+ mended": Label(
        _featplus_mended, (Series("feat+", "mended", "paper"), Series("feat+", "mended", "auto"))
    ),
    "sealed": Label(_sealed, (Series("sealed", "mended", uses_delta=True),)),
    "curator": Label(_curator, (Series("curator", "limit", uses_delta=True),)),
    "central": Label(
        _central,
        tuple(
            Series("central", "limit", variant, one.needs_delta) for variant, one in CENTRAL.items()
        ),
    ),
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
    if label == "sealed" and collusion > 1:
        return "two members of a committee see every edge: sealed needs collusion of at most 1"
    if label == "sealed" and nodes > limit:
        return f"sealed answers {query} on at most {limit:,} nodes; this graph has {nodes:,}"
    return ""
