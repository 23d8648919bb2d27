"""The facts of an answer: everything that its page says, as data.

An answer is an :class:`Estimate`, or the release (sealed, or of all reports) that a run made. What
a page shows of it is decided here, and laid out in :mod:`silograph.report.result`.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from silograph.errors import ArgumentError
from silograph.graph.universe import NodeUniverse
from silograph.privacy.loss import shown_loss
from silograph.queries.display import number
from silograph.queries.estimate import Estimate, FloatArray
from silograph.queries.origin import Origin
from silograph.queries.release import Release
from silograph.queries.reports import Reports
from silograph.queries.sealed import SealedRelease
from silograph.report.budget import Budget, budget_of
from silograph.report.error_curve import LARGE, Curve, Outlined, curve_of, outlined
from silograph.report.explained import Told, assumptions, limits, meaning, method_told, query_name
from silograph.report.observers import Observer, observers
from silograph.runtime.ledger import Ledger

__all__ = ["Count", "Facts", "Page", "Range", "Vector", "facts_of"]

#: What a page can be made of.
Page = Estimate[Any] | Release | SealedRelease | Reports


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
    outline: str
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
    if not isinstance(answer, Estimate | Release | SealedRelease | Reports):
        raise ArgumentError(
            "a page is made of an Estimate, a Release, a SealedRelease or Reports, "
            f"not of {type(answer).__name__}"
        )
    whole = not isinstance(answer, Estimate)
    if isinstance(answer, Estimate):
        origin, asked = answer.origin, [answer]
        source = origin.release if origin is not None else None
        rest = [e for e in _standard(source) if (e.query, e.name) != (answer.query, _plain(answer))]
    else:
        source, asked, rest = answer, _standard(answer), []
        origin = replace(answer.origin, release=answer)
    cycles = any(each.query == "four_cycles" for each in asked)
    graph = outlined(origin, [*asked, *rest], cycles=cycles)
    vector = next((e for e in asked if isinstance(e.value, np.ndarray)), None)
    counts = [_count(e, curve_of(e, graph)) for e in asked if e is not vector]
    shown = None if vector is None else _vector(vector, curve_of(vector, graph), source)
    degrees, why_not = _degrees(vector, source)
    epsilon, delta = asked[0].epsilon, asked[0].delta
    run = "" if origin is None else origin.provenance.run
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
        tuple(method_told(asked[0].method, origin.provenance.protocol if origin else "")),
        _assumptions(origin),
        tuple(limits(asked[0].method, epsilon, delta)),
        _run(asked[0], origin, source),
    )


def _standard(source: Release | SealedRelease | Reports | None) -> list[Estimate[Any]]:
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


def _left_out(source: Release | SealedRelease | Reports | None) -> str:
    if source is None or isinstance(source, SealedRelease) or source.n <= LARGE:
        return ""
    return f"4-cycles are not shown: among {source.n:,} nodes they take long to count."


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
    )


def _vector(
    answer: Estimate[Any], curve: Curve | None, source: Release | SealedRelease | Reports | None
) -> Vector:
    low, high = answer.interval
    universe = source.universe if source is not None else None
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
    asked: Estimate[Any] | None, source: Release | SealedRelease | Reports | None
) -> tuple[tuple[Range, ...], str]:
    """The degree distribution, or why there is none."""
    found = asked if asked is not None and asked.query == "degree_histogram" else None
    if found is None:
        if source is None:
            return (), "The release behind the answer is not at hand."
        if isinstance(source, Reports):
            return (), "From separate reports the baseline gives no degree distribution."
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


def _outline(graph: Outlined, source: Release | SealedRelease | Reports | None) -> str:
    if isinstance(source, Release) and source.n <= LARGE:
        return "the graph as this release shows it"
    return f"what is known of the graph now ({graph.outline.source})"


def _title(answer: Page, origin: Origin | None) -> str:
    if isinstance(answer, Estimate):
        silos = f" across {origin.provenance.silos} silos" if origin is not None else ""
        return f"{query_name(answer)}{silos}"
    kind = {Release: "A release", SealedRelease: "Sealed answers"}.get(type(answer), "Reports")
    return f"{kind} of {answer.n:,} nodes"


def _lead(answer: Estimate[Any], origin: Origin | None, whole: bool) -> str:
    delta = f" and δ = {shown_loss(answer.delta)}" if answer.delta else ""
    cost = f"at a cost of ε = {shown_loss(answer.epsilon)}{delta} for every edge"
    if origin is None:
        return f"One statistic of a graph that no one holds, {cost}."
    m, n = origin.provenance.silos, origin.nodes
    what = "Statistics" if whole else "One statistic"
    return (
        f"{what} of the graph that {m} silos hold together over {n:,} nodes, found without any of "
        f"them showing its edges, {cost}."
        if origin.provenance.protocol != "clear"
        else f"{what} of a graph of {n:,} nodes, drawn with the noise of a run, {cost}. "
        "This is an experiment: all edges were in one place."
    )


def _assumptions(origin: Origin | None) -> tuple[str, ...]:
    if origin is None:
        return ()
    made = origin.provenance
    return tuple(assumptions(made.method, made.protocol, made.silos, made.collusion))


def _run(
    answer: Estimate[Any],
    origin: Origin | None,
    source: Release | SealedRelease | Reports | None,
) -> dict[str, str]:
    found = {"method": answer.method}
    if origin is not None:
        made = origin.provenance
        found |= {
            "protocol": made.protocol,
            "silos": str(made.silos),
            "silos that may collude": str(made.collusion),
            "nodes": f"{origin.nodes:,}",
            "digest of the node list": origin.universe_digest,
            "run": made.run or "none: a draw",
        }
    if isinstance(source, Release):
        channel = source.channel
        found["noise of a pair"] = (
            f"an edge shows with probability {float(channel.p11):.6g}, "
            f"any other pair with {float(channel.p01):.6g}"
        )
    if isinstance(source, SealedRelease):
        found["opened"] = ", ".join(source.noise.answers).replace("_", "-")
        found["noise"] = {
            "shared": "drawn in shares by all silos together",
            "each": "drawn whole by every silo",
        }[source.noise.kind]
        found["parts of ε"] = ", ".join(
            f"{name.replace('_', '-')} {number(float(part))}"
            for name, part in source.noise.budgets.items()
        )
    if "spent" in answer.parameters:
        found["parts of ε"] = ", ".join(
            f"{name} {number(part)}" for name, part in answer.parameters["spent"].items()
        )
    return found
