"""The facts of an answer: everything that its page says, as data.

An answer is an :class:`Estimate`, or the release (sealed, or of all reports) that a run made. What
a page shows of it is decided here, and laid out in :mod:`silograph.page.result`.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from silograph.dp.channel import Channel
from silograph.dp.loss import PUBLISHED, View, shown_loss
from silograph.errors import ArgumentError
from silograph.estimators.estimate import Estimate, FloatArray, Origin, number
from silograph.estimators.folded_release import FoldedRelease
from silograph.estimators.reference import Reference, guess, reference_of_release
from silograph.estimators.release import Release
from silograph.graph.universe import NodeUniverse
from silograph.ledger.book import Amount, Ledger, Spend
from silograph.ledger.entries import loss_at, round_up
from silograph.methods.baseline.answer import Reports
from silograph.methods.featplus.method import choose_split
from silograph.methods.featplus.noise import Split
from silograph.methods.prediction import Question, baseline_error, feat_error, paper_error
from silograph.methods.sealed.answer import SealedRelease
from silograph.methods.sealed.method import choose_noise, expected_error
from silograph.methods.sealed.noise import SealedNoise
from silograph.page.texts import (
    Told,
    assumptions,
    limits,
    meaning,
    method_told,
    observer,
    query_name,
    what_is_learnt,
)

__all__ = [
    "LARGE",
    "Budget",
    "Count",
    "Curve",
    "Facts",
    "Known",
    "Observer",
    "Page",
    "Range",
    "Vector",
    "budget_of",
    "curve_of",
    "facts_of",
    "known_graph",
    "observers",
]

#: What a run makes that answers queries; a page can be made of it.
Answering = Release | FoldedRelease | SealedRelease | Reports


# --- What a run took from a ledger, and what is left there ----------------------------------------


@dataclass(frozen=True)
class Budget:
    """One lineage of a ledger, at the level of collusion that its limit counts at."""

    lineage: str
    spends: int
    spent: Amount
    #: None where nobody set a limit.
    limit: Amount | None
    left: Amount | None
    #: What this run cost at that level, where the ledger records it.
    run: Amount | None
    #: How often the same run could be paid for from what is left; None where that is not known.
    again: int | None


def budget_of(ledger: Ledger, lineage: str | None, run: str) -> Budget:
    """The budget behind a run; the lineage can be left out where the ledger leaves no doubt."""
    rows = ledger.rows()
    name = _lineage(ledger, lineage, [row for row in rows if run and row.run == run])
    own = [row for row in rows if row.lineage == name]
    limit, left = ledger.limit(name), ledger.remaining(name)
    spent = ledger.spent(name)
    cost = _cost([row for row in own if run and row.run == run], spent.collusion)
    return Budget(
        name,
        len(own),
        spent,
        None if limit is None else limit.amount(),
        left,
        cost,
        None if left is None or cost is None else _again(left, cost),
    )


def _lineage(ledger: Ledger, given: str | None, found: list[Spend]) -> str:
    known = ledger.lineages()
    if given is not None:
        if given not in known:
            has = ", ".join(map(repr, known)) or "none"
            raise ArgumentError(f"this ledger has no lineage {given!r}; it has {has}")
        return given
    names = {row.lineage for row in found} or set(known)
    if len(names) != 1:
        has = ", ".join(map(repr, sorted(names))) or "none"
        raise ArgumentError(f"say which lineage of the ledger the answer is about; it has {has}")
    return names.pop()


def _cost(rows: list[Spend], level: int) -> Amount | None:
    if not rows:
        return None
    losses = [loss_at(row.losses, level)[1] for row in rows]
    finite = all(map(math.isfinite, losses))
    epsilon = round_up(sum(map(Fraction, losses), Fraction(0))) if finite else math.inf
    return Amount(epsilon, round_up(sum((Fraction(row.delta) for row in rows), Fraction(0))), level)


def _again(left: Amount, cost: Amount) -> int | None:
    """Whole repetitions; a loss without a bound can never be paid again under a limit."""
    if math.isinf(cost.epsilon):
        return 0
    times = [
        math.floor(Fraction(have) / Fraction(each))
        for have, each in ((left.epsilon, cost.epsilon), (left.delta, cost.delta))
        if each > 0
    ]
    return max(min(times), 0) if times else None


# --- Who could learn what from a run, observer by observer ----------------------------------------

#: With more silos than this, only the smallest and the largest coalition beyond the claim are told.
_FEW = 8


@dataclass(frozen=True)
class Observer:
    """Someone who looks, the most that they can learn of an edge, and whether that was promised."""

    who: str
    epsilon: float
    delta: float
    claimed: bool
    learns: str


def observers(origin: Origin) -> list[Observer]:
    """Everyone of whom something can be said, from those who see least to those who see most."""
    made, views = origin.provenance, origin.views
    found = []
    if not any(view.name == PUBLISHED for view in views):
        # What is published follows from what the coordinator has, and so tells no more.
        least = next((view for view in views if view.name == "coordinator"), None)
        if least is not None:
            found.append(_told("Anyone who reads the answers", least))
    found += [_told(observer(view.name), view) for view in views]
    if made.protocol == "committee":
        return found
    if made.protocol == "clear":
        everything = View("the process that drew it", math.inf, claimed=False)
        return [*found, _told("Whoever drew it, with all edges in one place", everything)]
    return found + _beyond(origin)


def _beyond(origin: Origin) -> list[Observer]:
    """Coalitions that are larger than what was claimed, where they learn more."""
    made, losses = origin.provenance, origin.losses
    promised = max((view.epsilon for view in origin.views if view.claimed), default=math.inf)
    told = {view.name for view in origin.views}
    delta = max((view.delta for view in origin.views), default=0.0)
    larger = [t for t, epsilon in losses.items() if t > made.collusion and epsilon > promised]
    if len(larger) > _FEW:
        larger = [larger[0], larger[-1]]
    found = []
    for t in larger:
        group = f"{t} silo{'s' if t > 1 else ''}"
        name = f"coordinator + {group}"
        if name not in told:
            beyond = View(name, losses[t], delta, claimed=False)
            everyone = " (all but one)" if t == made.silos - 1 and t > 1 else ""
            found.append(_told(observer(name) + everyone, beyond))
    return found


def _told(who: str, view: View) -> Observer:
    learns = what_is_learnt(view.epsilon, view.delta)
    return Observer(who, view.epsilon, view.delta, view.claimed, learns)


# --- How the error of an answer would move with epsilon, by the planner's formulas ----------------
#
# The graph behind the formulas is known from the release itself, which costs no privacy; without a
# release from what the answer says and a guess at the rest. The predictions are rough; the error
# of the answer itself is not predicted but its own.

#: Epsilons that people choose.
_USUAL = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0)
#: With more nodes than this, what takes n³ steps is left out of a page unless it was asked for.
LARGE = 10_000
_PREDICTED = ("edges", "degrees", "kstars", "triangles", "four_cycles", "clustering")


@dataclass(frozen=True)
class Curve:
    """Standard errors at several epsilons, and at the one that was spent."""

    #: (epsilon, predicted standard error), in ascending order.
    points: tuple[tuple[float, float], ...]
    #: (epsilon, standard error) of the answer itself.
    own: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Known:
    """The graph that predictions are about, and the run that they vary."""

    reference: Reference
    origin: Origin
    release: Answering | None


def _paid_for(origin: Origin | None) -> Answering | None:
    """What was paid for, where it is at hand."""
    found = origin.release if origin is not None else None
    return found if isinstance(found, Answering) else None


def known_graph(
    origin: Origin | None, answers: Sequence[Estimate[Any]], *, cycles: bool
) -> Known | None:
    """What can be said of the graph from what is public now; None where that is too little."""
    if origin is None or origin.nodes < 3:
        return None
    release = _paid_for(origin)
    if isinstance(release, FoldedRelease):  # the formulas are those of pairs
        return None
    try:
        if isinstance(release, Release) and origin.nodes <= LARGE:
            reference = reference_of_release(release, cycles=cycles)
        else:
            reference = guess(origin.nodes, **_numbers(answers, origin.nodes), cycles=cycles)
    except (ValueError, ArithmeticError):
        return None
    return Known(reference, origin, release)


def _numbers(answers: Sequence[Estimate[Any]], nodes: int) -> dict[str, Any]:
    """Counts that are above their own error, as numbers of a reference."""
    found = {}
    for answer in answers:
        stars = answer.query == "kstars" and answer.parameters.get("k") == 2
        name = "wedges" if stars else answer.query
        if name not in ("edges", "wedges", "triangles"):
            continue
        most = {"edges": math.comb(nodes, 2), "triangles": math.comb(nodes, 3)}
        limit = most.get(name, nodes * math.comb(nodes - 1, 2))
        if 2 * answer.stderr < answer.value <= limit:
            found[name] = float(answer.value)
    return found


def curve_of(answer: Estimate[Any], graph: Known | None) -> Curve | None:
    """The errors of one answer; None where there is no formula, or no error bar."""
    if graph is None or answer.query not in _PREDICTED or not math.isfinite(answer.epsilon):
        return None
    own = float(_typical(answer.stderr))
    if not (own > 0 and math.isfinite(own)) or answer.epsilon <= 0:
        return None
    points = []
    for epsilon in _epsilons(answer.epsilon):
        try:
            error = _predicted(answer, graph, epsilon)
        except (ValueError, ArithmeticError):
            continue  # an epsilon that the method cannot have, or a reference of next to nothing
        if error > 0 and math.isfinite(error):
            points.append((epsilon, error))
    return Curve(tuple(points), (answer.epsilon, own)) if len(points) > 2 else None


def _epsilons(own: float) -> list[float]:
    around = [e for e in _USUAL if own / 8 <= e <= 4 * own and abs(e / own - 1) > 0.05]
    return sorted([*around, own]) if around else [own * factor for factor in (0.25, 0.5, 1, 2, 4)]


def _typical(stderr: Any) -> float:
    """The error of one of many answers: the root of the mean square."""
    if isinstance(stderr, float | int):
        return stderr
    return float(math.sqrt((stderr**2).mean())) if stderr.size else math.nan


def _predicted(answer: Estimate[Any], graph: Known, epsilon: float) -> float:
    made, reference = graph.origin.provenance, graph.reference
    k = answer.parameters.get("k")
    asked = Question(answer.query, epsilon, made.silos, made.collusion, k, answer.delta)
    match answer.method:
        case "baseline":
            return baseline_error(reference, asked)
        case "sealed":
            return _sealed(graph, asked)
        case "feat+":
            return _featplus(answer, reference, asked, made.protocol)
    if made.protocol == "clear" and made.silos < 2:
        return reference.noise(answer.query, Channel.symmetric(epsilon).weights, k)
    # Algorithm 3 as printed costs m times the epsilon of its coins.
    asked_for = epsilon / made.silos if made.protocol == "elgamal/printed" else epsilon
    return feat_error(reference, asked, made.protocol, asked_for)


def _sealed(graph: Known, asked: Question) -> float:
    if not isinstance(graph.release, SealedRelease):
        return choose_noise(graph.reference, asked).error
    return expected_error(graph.reference, asked, graph.release.noise.at(asked.epsilon))


def _featplus(answer: Estimate[Any], reference: Reference, asked: Question, protocol: str) -> float:
    if answer.parameters.get("local") != "paper":
        return choose_split(reference, asked, protocol).error
    spent = answer.parameters["spent"]
    shares = spent["release"], spent["partition"], spent["local"]
    return paper_error(reference, asked, protocol, Split.of(_to_one(shares), asked.epsilon))


def _to_one(shares: tuple[float, float, float]) -> tuple[float, float, float]:
    total = sum(shares)
    release, partition, local = (share / total for share in shares)
    return release, partition, local


# --- The answer -----------------------------------------------------------------------------------

#: What a page can be made of.
Page = Estimate[Any] | Answering


@dataclass(frozen=True)
class Count:
    """One number with its interval; what is not known is nan."""

    query: str
    name: str
    meaning: str
    value: float
    stderr: float
    low: float
    high: float
    note: str
    #: How the error would move with epsilon; None where there is no formula.
    curve: Curve | None

    #: Whether the number stands out from its noise.
    usable: bool = True

    @property
    def relative(self) -> float:
        """The standard error over the answer; nan where there is none."""
        return self.stderr / abs(self.value) if self.value else math.nan


@dataclass(frozen=True, eq=False)
class Vector:
    """Many numbers with their intervals, one a place."""

    query: str
    name: str
    meaning: str
    places: tuple[str, ...]
    values: FloatArray
    stderrs: FloatArray
    lows: FloatArray
    highs: FloatArray
    note: str
    curve: Curve | None


@dataclass(frozen=True)
class Range:
    """How many nodes have a degree from ``first`` to ``last``."""

    first: int
    last: int
    value: float
    stderr: float
    low: float
    high: float

    @property
    def label(self) -> str:
        """The degrees, as they are shown."""
        return _span(self.first, self.last)


@dataclass(frozen=True, eq=False)
class Facts:
    """All that a page says."""

    title: str
    lead: str
    #: What was asked: counts, or one vector; for a release every standard count.
    answers: tuple[Count, ...]
    vector: Vector | None
    #: What the same run answers for free, beside what was asked.
    more: tuple[Count, ...]
    #: What it would answer as well, but after long counting.
    left_out: str
    epsilon: float
    delta: float
    observers: tuple[Observer, ...]
    budget: Budget | None
    degrees: tuple[Range, ...]
    #: Why there is no degree distribution, where there is none.
    no_degrees: str
    #: What predictions of errors rest on; empty where there are none.
    reference: str
    method: tuple[Told, ...]
    assumptions: tuple[str, ...]
    limits: tuple[str, ...]
    #: Names and values of what is known of the run.
    run: dict[str, str]

    @property
    def below_zero(self) -> bool:
        """Whether an answer, or its interval, is where no count can be."""
        lows = [count.low for count in (*self.answers, *self.more)]
        if self.vector is not None:
            lows.append(float(self.vector.lows.min(initial=0.0)))
        return any(low < 0 for low in lows)


def facts_of(
    answer: Page,
    *,
    ledger: Ledger | None = None,
    lineage: str | None = None,
    title: str | None = None,
) -> Facts:
    """Everything that there is to say of an answer."""
    if not isinstance(answer, Estimate | Answering):
        raise ArgumentError(
            "a page is made of an Estimate, a Release, a FoldedRelease, a SealedRelease or "
            f"Reports, not of {type(answer).__name__}"
        )
    whole = not isinstance(answer, Estimate)
    if isinstance(answer, Estimate):
        origin, asked = answer.origin, [answer]
        source = _paid_for(origin)
        rest = [e for e in _standard(source) if (e.query, e.name) != (answer.query, _plain(answer))]
    else:
        source, asked, rest = answer, _standard(answer), []
        origin = replace(answer.origin, release=answer)
    cycles = any(each.query == "four_cycles" for each in asked)
    graph = known_graph(origin, [*asked, *rest], cycles=cycles)
    vector = next((e for e in asked if isinstance(e.value, np.ndarray)), None)
    counts = [_count(e, curve_of(e, graph)) for e in asked if e is not vector]
    shown = None if vector is None else _vector(vector, curve_of(vector, graph), source)
    degrees, why_not = _degrees(vector, source)
    epsilon, delta = asked[0].epsilon, asked[0].delta
    run = "" if origin is None else origin.provenance.run
    protocol = "" if origin is None else origin.provenance.protocol
    curves = [each.curve for each in (*counts, shown) if each is not None]
    return Facts(
        title or _title(answer, origin),
        _lead(asked[0], origin, whole),
        tuple(counts),
        shown,
        tuple(_count(e, None) for e in rest),
        _left_out(source),
        epsilon,
        delta,
        tuple(observers(origin)) if origin is not None else (),
        None if ledger is None else budget_of(ledger, lineage, run),
        degrees,
        why_not,
        _outline(graph, source) if graph is not None and any(curves) else "",
        tuple(method_told(asked[0].method, protocol, folded=isinstance(source, FoldedRelease))),
        _assumptions(origin),
        tuple(limits(asked[0].method, epsilon, delta, protocol)),
        _run(asked[0], origin, source),
    )


def _standard(source: Answering | None) -> list[Estimate[Any]]:
    """Every count that a run answers, in order of what it takes to count."""
    if source is None:
        return []
    asked: list[Callable[[], Estimate[Any]]] = [
        source.edges,
        lambda: source.kstars(2),
        lambda: source.kstars(3),
        source.triangles,
        *(
            [source.four_cycles]
            if not isinstance(source, SealedRelease) and not _left_out(source)
            else []
        ),
        source.clustering,
    ]
    found = []
    for ask in asked:
        try:
            found.append(ask())
        except ArgumentError:  # too few nodes for such a star, or not opened
            continue
    return found


def _left_out(source: Answering | None) -> str:
    if source is None or isinstance(source, SealedRelease):
        return ""
    size, what = (
        (source.layout.rows, "groups") if isinstance(source, FoldedRelease) else (source.n, "nodes")
    )
    if size <= LARGE:
        return ""
    return f"4-cycles are not shown: among {size:,} {what} they take long to count."


def _plain(answer: Estimate[Any]) -> str:
    """The name without what only says how it was counted."""
    kept = {key: value for key, value in answer.parameters.items() if key == "k"}
    return replace(answer, parameters=kept).name


def _count(answer: Estimate[Any], curve: Curve | None) -> Count:
    low, high = (float(end) for end in answer.interval)
    return Count(
        answer.query,
        query_name(answer),
        meaning(answer),
        float(answer.value),
        float(answer.stderr),
        low,
        high,
        answer.note,
        curve,
        answer.usable,
    )


def _vector(answer: Estimate[Any], curve: Curve | None, source: Answering | None) -> Vector:
    low, high = answer.interval
    universe = getattr(source, "universe", None)
    return Vector(
        answer.query,
        query_name(answer),
        meaning(answer),
        _places(answer, universe),
        answer.value,
        answer.stderr,
        low,
        high,
        answer.note,
        curve,
    )


def _places(answer: Estimate[Any], universe: NodeUniverse | None) -> tuple[str, ...]:
    bins: Sequence[int] | None = answer.parameters.get("bins")
    if bins is not None:
        return tuple(_span(first, after - 1) for first, after in itertools.pairwise(bins))
    if universe is not None and len(universe) == answer.value.size:
        return universe.ids
    return tuple(f"node {place}" for place in range(answer.value.size))


def _span(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,}–{last:,}"


def _degrees(
    asked: Estimate[Any] | None, source: Answering | None
) -> tuple[tuple[Range, ...], str]:
    """The degree distribution, or why there is none."""
    found = asked if asked is not None and asked.query == "degree_histogram" else None
    if found is None:
        if source is None:
            return (), "The release behind the answer is not at hand."
        if isinstance(source, Reports):
            return (), "From separate reports the baseline gives no degree distribution."
        if isinstance(source, FoldedRelease):
            return (), "Nodes were folded into groups: the release has no degrees of single nodes."
        if isinstance(source, SealedRelease) and source.noisy_degrees is None:
            return (), "This run did not open degrees, and so nobody learns their distribution."
        if source.n < 2:
            return (), "One node has no degrees to speak of."
        found = source.degree_histogram()
    low, high = found.interval
    ranges = [
        Range(first, after - 1, *(float(x) for x in numbers))
        for (first, after), *numbers in zip(
            itertools.pairwise(found.parameters["bins"]),
            found.value,
            found.stderr,
            low,
            high,
            strict=True,
        )
    ]
    return _without_empty_end(ranges), ""


def _without_empty_end(ranges: list[Range]) -> tuple[Range, ...]:
    """Ranges up to the last that anything speaks for: large graphs have few large degrees."""
    while len(ranges) > 2 and ranges[-1].high < 0.5 and ranges[-2].high < 0.5:
        ranges = ranges[:-1]
    return tuple(ranges)


def _outline(graph: Known, source: Answering | None) -> str:
    if isinstance(source, Release) and source.n <= LARGE:
        return "the graph as this release shows it"
    return f"what is known of the graph now ({graph.reference.source})"


def _title(answer: Page, origin: Origin | None) -> str:
    if isinstance(answer, Estimate):
        silos = f" across {origin.provenance.silos} silos" if origin is not None else ""
        return f"{query_name(answer)}{silos}"
    kinds: dict[type, str] = {
        Release: "A release",
        FoldedRelease: "A folded release",
        SealedRelease: "Sealed answers",
    }
    return f"{kinds.get(type(answer), 'Reports')} of {_many(answer.origin.nodes)}"


def _many(nodes: int) -> str:
    """How many nodes there are; an open universe has no list of them."""
    return f"{nodes:,} nodes" if nodes else "any nodes"


def _lead(answer: Estimate[Any], origin: Origin | None, whole: bool) -> str:
    delta = f" and δ = {shown_loss(answer.delta)}" if answer.delta else ""
    cost = f"at a cost of ε = {shown_loss(answer.epsilon)}{delta} for every edge"
    if origin is None:
        return f"One statistic of a graph that no one holds, {cost}."
    m, n = origin.provenance.silos, origin.nodes
    what = "Statistics" if whole else "One statistic"
    return (
        f"{what} of the graph that {m} silos hold together over {_many(n)}, found without any of "
        f"them showing its edges, {cost}."
        if origin.provenance.protocol != "clear"
        else f"{what} of a graph of {_many(n)}, drawn with the noise of a run, {cost}. "
        "This is an experiment: all edges were in one place."
    )


def _assumptions(origin: Origin | None) -> tuple[str, ...]:
    if origin is None:
        return ()
    made = origin.provenance
    with_member = (view for view in origin.views if view.name == "coordinator + 1 member")
    inside = any(not view.claimed for view in with_member)
    return tuple(assumptions(made.method, made.protocol, made.silos, made.collusion, inside=inside))


def _sealed_run(noise: SealedNoise) -> dict[str, str]:
    """What was opened, and with what noise."""

    def listed(parts: Mapping[Any, str]) -> str:
        return ", ".join(f"{name.replace('_', '-')} {part}" for name, part in parts.items())

    found = {
        "opened": ", ".join(noise.answers).replace("_", "-"),
        "noise": {
            "committee": "drawn by the committee, with coins that nobody knows",
            "shares": "the sum of parts that the four members drew, each its own",
        }[noise.kind],
        "parts of ε": listed({name: number(float(part)) for name, part in noise.budgets.items()}),
    }
    if noise.rule is not None:
        two = {"triangles": f"{noise.rule} noisy degree", "two_stars": "sum of the two largest"}
        found["bounds"] = listed({name: f"{two[name]} + {s}" for name, s in noise.margins.items()})
        parts = {name: shown_loss(part) for name, part in noise.parts_of_delta.items() if part}
        found["parts of δ"] = listed(parts)
    return found


def _folded_run(source: FoldedRelease) -> dict[str, str]:
    """How nodes were folded, and with what noise."""
    shape, channel = source.layout, source.channel
    found = {
        "groups": f"{shape.groups:,}, and {shape.hubs:,} hubs with a group of their own",
        "buckets": f"{shape.buckets:,}",
        "noise of a bucket": f"an occupied one shows with probability {float(channel.p11):.6g}, "
        f"any other with {float(channel.p01):.6g}",
    }
    if source.hub_epsilon:
        found["ε of the search for hubs"] = shown_loss(source.hub_epsilon)
    return found


def _run(
    answer: Estimate[Any],
    origin: Origin | None,
    source: Answering | None,
) -> dict[str, str]:
    found = {"method": answer.method}
    if origin is not None:
        made = origin.provenance
        found |= {
            "protocol": made.protocol,
            "silos": str(made.silos),
            "silos that may collude": str(made.collusion),
            "nodes": f"{origin.nodes:,}" if origin.nodes else "any, in the agreed form",
            "digest of the node list": origin.universe_digest,
            "run": made.run or "none: a draw",
        }
    if isinstance(source, Release):
        channel = source.channel
        found["noise of a pair"] = (
            f"an edge shows with probability {float(channel.p11):.6g}, "
            f"any other pair with {float(channel.p01):.6g}"
        )
    if isinstance(source, FoldedRelease):
        found |= _folded_run(source)
    if isinstance(source, SealedRelease):
        found |= _sealed_run(source.noise)
    if "spent" in answer.parameters:
        found["parts of ε"] = ", ".join(
            f"{name} {number(part)}" for name, part in answer.parameters["spent"].items()
        )
    return found
