"""The planner: what every method would cost and give, before anything is drawn or spent.

It predicts the error of each method and protocol on a graph like the reference, states what each
of them assumes about the parties, and ranks those that the caller's trust allows. Where the
reference leaves the graph open, an error is a range: from its least to its largest on the graphs
that may be. The choice counts time as well: an option that takes more than ten times as long as
another, and has less than a fifth less error, loses to it.
"""

import contextlib
import math
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from silograph.dp.loss import check_delta, check_epsilon, check_parties, shown_loss
from silograph.errors import ArgumentError, ChannelError
from silograph.estimators.estimate import definitions, table
from silograph.estimators.gradient import GRADIENTS
from silograph.estimators.reference import Reference, guess, reference_like
from silograph.estimators.release import Release
from silograph.graph.fold import Fold
from silograph.graph.silo import Silo
from silograph.methods.catalogue import TRUST
from silograph.methods.committee.rounds import MEMBERS
from silograph.methods.cost import Cost, size_text, time_text, union_cost
from silograph.methods.featplus.method import ChosenSplit, choose_split
from silograph.methods.featplus.noise import Split
from silograph.methods.fold.expected import FOLDED, FoldChoice, choose_fold, error_of
from silograph.methods.prediction import (
    Question,
    baseline_error,
    feat_error,
    gradient_error,
    paper_error,
)
from silograph.methods.sealed.method import (
    SEALED_QUERIES,
    choose_noise,
    expected_error,
    sealed_limit,
)
from silograph.methods.study import COMMITTEE
from silograph.methods.union import default_protocol, settle_union

__all__ = [
    "PLANNED",
    "WAYS",
    "Option",
    "Plan",
    "fold_error",
    "make_option",
    "options_of",
    "plan",
    "plan_options",
    "shown_percent",
    "shown_span",
]

#: An option loses to another that takes less than a tenth of its time, unless its error is below
#: four fifths of the other's. Less than a second is as good as nothing.
_SLOWER, _BETTER, _QUICK = 10.0, 0.8, 1.0
#: A range whose ends differ by less than this factor is no range.
_NARROW = 1.1
#: By how much errors differ between graphs of the same edges, 2-stars, triangles and 4-cycles; and
#: those of 4-cycles, which depend on longer paths.
_FORM, _LONG_FORM = 1.2, 1.6
#: The queries whose errors are predicted.
PLANNED = ("edges", "degrees", "kstars", "triangles", "four_cycles", "clustering")


def shown_percent(relative: float) -> str:
    """A relative error as it is shown.

    >>> shown_percent(0.1234), shown_percent(12.0), shown_percent(270.0)
    ('12.3 %', '1,200 %', '270 ×')
    """
    if not math.isfinite(relative):
        return "∞"
    if relative >= 100:  # the answer is useless: the order of magnitude is enough
        return f"{float(f'{relative:.2g}'):,.0f} ×" if relative < 1e6 else "> 10⁶ ×"
    return f"{100 * relative:{',.0f' if relative >= 1 else '.3g'}} %"


def shown_span(span: tuple[float, float]) -> str:
    """A range of relative errors as it is shown.

    >>> shown_span((0.00123, 0.0456)), shown_span((0.5, 270.0)), shown_span((0.12, 0.12))
    ('0.12–4.6 %', '50 % – 270 ×', '12 %')
    """
    low, high = (shown_percent(float(f"{end:.2g}")) for end in span)
    if low == high:
        return low
    if low.endswith(" %") and high.endswith(" %"):
        return f"{low.removesuffix(' %')}–{high}"
    return f"{low} – {high}"


@dataclass(frozen=True)
class Option:
    """One way to answer the question."""

    method: str
    protocol: str
    #: The likely standard deviation of the answer, and the same divided by the answer.
    error: float
    relative: float
    #: What must be trusted for this option (see :data:`TRUST`); empty if nothing.
    needs: frozenset[str]
    #: What it assumes about the parties, in one sentence.
    assumes: str
    delta: float = 0.0
    #: Further arguments of :meth:`Federation.count` that select this option.
    arguments: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    #: Traffic, time and memory; None if nothing is known.
    cost: Cost | None = None
    #: The relative error at best and at worst, if the reference leaves it open.
    span: tuple[float, float] | None = None
    #: The error of this very option on another graph.
    error_on: Callable[[Reference], float] | None = field(default=None, repr=False, compare=False)

    @property
    def label(self) -> str:
        """The method; with what it counts on, and whether its local answers are the paper's."""
        if "fold" in self.arguments:
            return f"{self.method} folded"
        return f"{self.method} paper" if self.arguments.get("local") == "paper" else self.method

    @property
    def within_reach(self) -> bool:
        """Whether this machine could run it."""
        return self.cost is None or self.cost.within_reach

    @property
    def percent(self) -> str:
        """The relative error as it is shown: a number, or a range if the reference leaves it open.

        >>> Option("feat", "masked", 5.0, 0.05, frozenset(), "", span=(0.012, 0.2)).percent
        '1.2–20 %'
        """
        return shown_percent(self.relative) if self.span is None else shown_span(self.span)

    def loses_to(self, other: "Option") -> bool:
        """Whether this takes so much longer than the other that its smaller error is not worth it.

        >>> slow, quick = Cost(1, 1, 1e5, 1), Cost(1, 1, 1.0, 1)
        >>> one, two = (Option("feat", "x", e, e, frozenset(), "", cost=c)
        ...             for e, c in ((0.97, slow), (1.0, quick)))
        >>> one.loses_to(two), two.loses_to(one)
        (True, False)
        """
        if self.cost is None or other.cost is None:
            return False
        slower = self.cost.seconds > _SLOWER * max(other.cost.seconds, _QUICK)
        return slower and self.error > _BETTER * other.error

    def to_dict(self) -> dict[str, Any]:
        """The option as plain values, ready for JSON."""
        return {
            "method": self.method,
            "protocol": self.protocol,
            "error": self.error,
            "relative": self.relative,
            "delta": self.delta,
            "needs": sorted(self.needs),
            "assumes": self.assumes,
            "arguments": {k: _plain(v) for k, v in self.arguments.items()},
            "note": self.note,
            "cost": None if self.cost is None else asdict(self.cost),
            "span": None if self.span is None else list(self.span),
            "within_reach": self.within_reach,
        }


def _plain(value: Any) -> Any:
    if isinstance(value, Fold):
        return asdict(value)
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Plan:
    """All options, best first, and which of them the caller's trust allows.

    ``print(plan)`` shows a table of the options; ``*`` marks the best allowed one.

    Examples
    --------
    >>> found = plan("edges", epsilon=2.0, silos=3, nodes=1000, edges=5000)
    >>> found.best.method, found.best.needs
    ('feat', frozenset())
    >>> sorted({option.method for option in found.options})
    ['baseline', 'feat', 'feat+', 'sealed']
    """

    question: Question
    #: The answer on the reference, and where the reference comes from.
    count: float
    source: str
    options: tuple[Option, ...]
    trust: frozenset[str]

    @property
    def allowed(self) -> tuple[Option, ...]:
        """The options that need no more trust than the caller gives, those in reach first."""
        found = [option for option in self.options if option.needs <= self.trust]
        return tuple(sorted(found, key=lambda option: not option.within_reach))

    @property
    def best(self) -> Option:
        """The allowed option with the smallest error that loses to no other by its time."""
        allowed = self.allowed
        reached = [option for option in allowed if option.within_reach] or list(allowed)
        return next(
            (one for one in reached if not any(one.loses_to(other) for other in reached)),
            allowed[0],
        )

    @property
    def passed_over(self) -> tuple[Option, ...]:
        """The allowed options with a smaller error than the best, that take too long for it."""
        best = self.best
        return tuple(
            option
            for option in self.allowed
            if option.within_reach and option.error < best.error and option is not best
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be said of the choice: what the range rests on, and what was passed over."""
        best, said = self.best, []
        if best.span is not None:
            said.append(
                f"The error is a range, {shown_span(best.span)}, likely "
                f"{shown_percent(best.relative)}: it rests on {self.source}"
            )
        for option in self.passed_over:
            less = 1 - option.error / best.error
            if option.cost is not None and best.cost is not None:
                said.append(
                    f"{option.label} {option.protocol} has {100 * less:.2g} % less error, but "
                    f"takes {time_text(option.cost.seconds)} and not "
                    f"{time_text(best.cost.seconds)}"
                )
        return tuple(said)

    @property
    def warning(self) -> str:
        """That no usable answer is likely, and what would help; empty if one is."""
        if self.best.relative < 1:
            return ""
        asked, found = self.question, ["more ε"]
        if asked.query in SEALED_QUERIES and asked.collusion <= 1:
            if not asked.delta:
                found.append("a δ for the sealed method")
            if asked.silos < MEMBERS and "helpers" not in self.trust:
                found.append("helpers that complete a committee of four")
        return (
            "No usable answer is likely: the error is as large as the answer. What would help: "
            + ", ".join(found)
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values, ready for JSON."""
        asked = self.question
        return {
            "query": asked.query,
            "k": asked.k,
            "epsilon": asked.epsilon,
            "delta": asked.delta,
            "silos": asked.silos,
            "collusion": asked.collusion,
            "count": self.count,
            "source": self.source,
            "trust": sorted(self.trust),
            "warning": self.warning,
            "remarks": list(self.remarks),
            "options": [
                {**option.to_dict(), "allowed": option.needs <= self.trust}
                for option in self.options
            ],
        }

    def _repr_html_(self) -> str:
        """Show the plan in notebooks."""
        asked = self.question
        what = f"{asked.k}-stars" if asked.k else asked.query
        delta = f", δ = {shown_loss(asked.delta)}" if asked.delta else ""
        caption = (
            f"{what}, about {self.count:,.4g}: ε = {shown_loss(asked.epsilon)}{delta}, "
            f"{asked.silos} silos, t = {asked.collusion}"
        )
        rows = [
            (
                "→" if option is self.best else "",
                option.label,
                option.protocol,
                f"± {option.error:,.4g}",
                option.percent,
                ("needs " if not option.needs <= self.trust else "")
                + (", ".join(sorted(option.needs)) or "none"),
                option.note,
            )
            for option in self.options
        ]
        head = ("", "method", "protocol", "error", "relative", "trust", "note")
        below = {"reference": self.source, "→": f"best that your trust allows: {self.best.assumes}"}
        if self.warning:
            caption = f"{self.warning}. {caption}"
        below |= {f"note {place}": text for place, text in enumerate(self.remarks, 1)}
        return f"<div>{table(caption, head, rows, right=(3, 4))}{definitions('', below)}</div>"

    def __str__(self) -> str:
        asked = self.question
        name = f"{asked.query}({asked.k})" if asked.k else asked.query
        lines = [
            *textwrap.wrap(f"{self.warning}." if self.warning else "", 78),
            f"{name} of {asked.silos} silos at ε = {shown_loss(asked.epsilon)}"
            + (f", δ = {shown_loss(asked.delta)}" if asked.delta else "")
            + f", t = {asked.collusion}; expected answer about {self.count:,.4g}",
            *textwrap.wrap(f"reference: {self.source}", 78),
        ]
        for option in self.options:
            mark = " " if option.needs <= self.trust else "-"
            mark = "*" if option is self.best else mark
            row = f"{mark} {option.label:16}{option.protocol:17}{option.percent:>14}"
            fits = len(row) + len(option.note) < 79
            lines += [f"{row}  {option.note}".rstrip()] if fits else [row, f"    {option.note}"]
        lines.append("* best that your trust allows   - needs more trust")
        lines += [line for text in self.remarks for line in textwrap.wrap(f"{text}.", 78)]
        return "\n".join(lines)


def plan(
    query: str,
    *,
    epsilon: float,
    silos: int,
    nodes: int | None = None,
    edges: float | None = None,
    wedges: float | None = None,
    triangles: float | None = None,
    common_squares: float | None = None,
    top_degree: int | None = None,
    like: Reference | Release | Silo | None = None,
    k: int | None = None,
    delta: float | None = None,
    collusion: int = 1,
    trust: Collection[str] = (),
    owned: float | None = None,
) -> Plan:
    """Predict the error of every method, and rank the methods.

    Describe the graph either by a few numbers (at least ``nodes``) or by something public that it
    is like. This function never reads a silo's edges unless you pass a silo as ``like``.

    Parameters
    ----------
    query
        The query to answer, such as ``"triangles"``.
    epsilon
        The privacy budget.
    silos
        The number of silos.
    nodes
        The number of nodes.
    edges
        The expected number of edges; guessed if omitted.
    wedges
        The expected number of 2-stars; guessed if omitted.
    triangles
        The expected number of triangles; guessed if omitted.
    common_squares
        The expected sum, over all pairs of nodes, of the squared number of common neighbours.
    top_degree
        The expected largest degree.
    like
        A reference, a past release or a public graph to use instead of the numbers above.
    k
        The number of leaves, for ``"kstars"`` only.
    delta
        The delta that the sealed method may use. By default it is the little that committee noise
        needs, 2^−60; 0 is for noise in shares, which needs none. From about 10^−12 up, noisy
        degrees can bound the noise of counts.
    collusion
        The number of silos that may pool what they see with the coordinator.
    trust
        What you are ready to assume; names from :data:`TRUST`.
    owned
        The share of a node's edges that its main silo is expected to hold. It is 1/silos if edges
        are assigned to silos at random.

    Returns
    -------
    Plan
        All options, best first.

    Raises
    ------
    ArgumentError
        If an argument is missing, unknown or out of range.

    Examples
    --------
    >>> found = plan("triangles", epsilon=3.0, silos=4, nodes=4039, edges=88234)
    >>> found.best.method, found.best.protocol
    ('sealed', 'committee')
    """
    cycles = query == "four_cycles"
    if like is None:
        if nodes is None:
            raise ArgumentError("give the number of nodes, or something that is like the graph")
        reference = guess(
            nodes,
            edges,
            wedges=wedges,
            triangles=triangles,
            common_squares=common_squares,
            top_degree=top_degree,
            cycles=cycles,
        )
    elif any(x is not None for x in (nodes, edges, wedges, triangles, common_squares, top_degree)):
        raise ArgumentError("give numbers, or something like the graph, not both")
    else:
        reference = reference_like(like, cycles=cycles)
    Release.check_leaves(query, k, reference.nodes)
    if owned is not None and not 0 <= owned <= 1:
        raise ArgumentError(f"owned must be from 0 to 1, not {owned!r}")
    asked = Question(query, check_epsilon(epsilon), silos, collusion, k, delta, owned)
    return plan_options(reference, asked, trust)


def plan_options(reference: Reference, question: Question, trust: Collection[str] = ()) -> Plan:
    """All options for the question, best first."""
    check_epsilon(question.epsilon)
    check_parties(question.silos, question.collusion)
    unknown = set(trust) - set(TRUST)
    if unknown:
        raise ArgumentError(
            f"unknown trust {', '.join(sorted(unknown))}; choose from {', '.join(TRUST)}"
        )
    if question.delta is not None:
        check_delta(question.delta)
    count = reference.count(question.query, question.k)
    found = [option for way in WAYS for option in options_of(way, reference, question)]
    found.sort(key=lambda option: option.relative)
    return Plan(question, count, reference.source, tuple(found), frozenset(trust))


def options_of(way: str, reference: Reference, question: Question) -> list[Option]:
    """The options of one method, or of folded nodes (:data:`WAYS`).

    There are none if so many colluders leave nothing but noise.
    """
    found: list[Option] = []
    with contextlib.suppress(ChannelError):
        found.extend(WAYS[way](reference, question))
    return found


_FOLLOW = "silos follow the protocol"
_ONE_MEMBER = (
    "of the committee's four members at most one is dishonest; it and the coordinator may cheat "
    "together"
)


def make_option(
    reference: Reference,
    question: Question,
    method: str,
    protocol: str,
    error_on: Callable[[Reference], float],
    **more: Any,
) -> Option:
    """An option whose error is a function of the graph; a range if the graph is not known."""

    def relative_on(one: Reference) -> float:
        count = abs(one.count(question.query, question.k))
        return error_on(one) / count if count else math.inf

    relative = relative_on(reference)
    every = [relative, *(relative_on(other) for other in reference.others)]
    # Of a graph that is not known a few numbers do not say all, except of pairs one by one, and of
    # sealed's noise.
    one_by_one = question.query in ("edges", "degrees") and "fold" not in more.get("arguments", {})
    exact = not reference.others or one_by_one or method == "sealed"
    return Option(
        method,
        protocol,
        error_on(reference),
        relative,
        span=_span(every, 1.0 if exact else _form(question)),
        error_on=error_on,
        **more,
    )


def _form(question: Question) -> float:
    return _LONG_FORM if question.query == "four_cycles" else _FORM


def _span(relative: Sequence[float], form: float) -> tuple[float, float] | None:
    """From the least to the largest, and a factor beyond; None if they hardly differ: then the
    likely one says it."""
    low, high = min(relative) / form, max(relative) * form
    return (low, high) if high > _NARROW * low else None


def _baseline(reference: Reference, question: Question) -> Iterator[Option]:
    yield make_option(
        reference,
        question,
        "baseline",
        "reports",
        lambda one: baseline_error(one, question),
        needs=frozenset(),
        assumes="silos add their noise; the reports show, as far as ε allows, who holds an edge",
    )


def _feat(reference: Reference, question: Question) -> Iterator[Option]:
    t = question.collusion
    pool = (
        f"; {t} of them may pool with the coordinator" if t else "; none of them sees the release"
    )
    kinds: dict[str, tuple[frozenset[str], str]] = {
        COMMITTEE: (_committee(question.silos), _ONE_MEMBER),
        "masked": (frozenset(), f"{_FOLLOW}{pool}; the coordinator may be malicious"),
        "elgamal/blinded": (
            frozenset({"coordinator"}),
            f"{_FOLLOW}{pool}; so does the coordinator",
        ),
        "elgamal/replace": (
            frozenset({"coordinator", "silos"}),
            "silos trust each other; the coordinator follows the protocol",
        ),
    }
    for protocol, (needs, assumes) in kinds.items():
        if (protocol == "elgamal/replace" and t) or (protocol == COMMITTEE and t > 1):
            continue
        note = "slow: keys for every pair" if protocol.startswith("elgamal") else ""
        if "helpers" in needs:
            note = _with_helpers(question.silos)
        union = settle_union(protocol, question.epsilon, question.silos, t)
        cost = union_cost(union, reference.nodes)
        if not cost.within_reach:
            note = "out of reach of this machine"
        yield make_option(
            reference, question, "feat", protocol,
            partial(feat_error, question=question, protocol=protocol),
            needs=needs, assumes=assumes, note=note, cost=cost,
        )  # fmt: skip


def _folded(reference: Reference, question: Question) -> Iterator[Option]:
    """Releases of folded nodes, by the protocols that need no trust or helpers alone."""
    if question.query not in FOLDED or question.k not in (None, 2):
        return
    t, shape = question.collusion, reference.shapes[0]
    kinds = {"masked": (frozenset[str](), f"{_FOLLOW}; the coordinator may be malicious")}
    if t <= 1:
        kinds[COMMITTEE] = (_committee(question.silos), _ONE_MEMBER)
    for protocol, (needs, assumes) in kinds.items():
        chosen = choose_fold(question.query, shape, question.epsilon, question.silos, t, protocol)
        if chosen is None:
            continue
        fold = Fold(chosen.groups, chosen.hubs, chosen.sub, **_hub_share(chosen, question))
        hubs = f", {chosen.hubs:,} hubs" if chosen.hubs else ""
        union = settle_union(protocol, question.epsilon, question.silos, t)
        yield make_option(
            reference,
            question,
            "feat",
            protocol,
            partial(fold_error, question=question, protocol=protocol, chosen=chosen),
            needs=needs,
            assumes=assumes,
            arguments={"fold": fold},
            note=f"{chosen.groups:,} groups{hubs}; {size_text(chosen.bytes_per_silo)} a silo",
            cost=union_cost(union, reference.nodes, fold.layout),
        )


def fold_error(
    reference: Reference, question: Question, protocol: str, chosen: FoldChoice
) -> float:
    """The error of a fold that was chosen, on some graph; of its shapes the worst counts."""
    relative = max(
        error_of(question, shape, chosen, protocol) / max(abs(shape.count(question.query)), 1e-300)
        for shape in reference.shapes
    )
    return relative * abs(reference.count(question.query, question.k))


def _hub_share(chosen: FoldChoice, question: Question) -> dict[str, float]:
    return {"hub_share": chosen.hub_epsilon / question.epsilon} if chosen.hub_epsilon else {}


def _committee(silos: int) -> frozenset[str]:
    """What a committee of four needs besides so many silos."""
    return frozenset() if silos >= MEMBERS else frozenset({"helpers"})


def _with_helpers(silos: int) -> str:
    missing = MEMBERS - silos
    helpers = "a helper" if missing == 1 else f"{missing} helpers"
    return f"with {helpers} in the committee"


def _featplus(reference: Reference, question: Question) -> Iterator[Option]:
    t = question.collusion
    if t == 0:  # every silo sees the release, which collusion=0 does not allow
        return
    assumes = f"{_FOLLOW}; {t} of them may pool with the coordinator; all see the release"
    protocol = default_protocol(question.silos, t)
    # Local work is little beside the union's.
    union = settle_union(protocol, question.epsilon, question.silos, t)
    cost = union_cost(union, reference.nodes)
    common: dict[str, Any] = {"needs": frozenset(), "assumes": assumes, "cost": cost}
    if question.query in GRADIENTS:
        chosen = choose_split(reference, question, protocol)
        shares = chosen.split.release, chosen.split.partition, chosen.split.local
        local = chosen.split.answers_locally
        yield make_option(
            reference,
            question,
            "feat+",
            protocol,
            lambda one: _gradients(one, question, protocol, chosen),
            arguments={
                "protocol": protocol,
                "local": "gradient",
                "split": tuple(float(share) for share in shares),
                **({"bound": chosen.bound} if local else {}),
            },
            note="local gradients" if local else "all of ε to the release: as feat",
            **common,
        )
    if question.query == "triangles" or (question.query == "kstars" and question.k):
        split = Split.of("paper", question.epsilon)
        yield make_option(
            reference,
            question,
            "feat+",
            protocol,
            lambda one: paper_error(one, question, protocol, split),
            arguments={"protocol": protocol, "local": "paper", "split": "paper"},
            note="the paper's form and split",
            **common,
        )


def _gradients(
    reference: Reference, question: Question, protocol: str, chosen: ChosenSplit
) -> float:
    """The error of a split that was chosen, on some graph."""
    if chosen.bound is None:
        return feat_error(reference, question, protocol)
    return gradient_error(reference, question, protocol, chosen.split, chosen.bound)


def _sealed(reference: Reference, question: Question) -> Iterator[Option]:
    if question.query not in SEALED_QUERIES or reference.nodes > sealed_limit(question.query):
        return
    if question.collusion > 1:  # two members see every edge
        return
    chosen, needs = choose_noise(reference, question), _committee(question.silos)
    noise = chosen.noise
    note = f"opens {', '.join(noise.answers).replace('_', '-')}"
    if noise.rule:
        note += f", δ = {shown_loss(noise.delta)}"
    yield make_option(
        reference,
        question,
        "sealed",
        COMMITTEE,
        lambda one: expected_error(one, question, noise),
        needs=needs,
        assumes=_ONE_MEMBER,
        delta=noise.delta,
        note=_with_helpers(question.silos) if needs else note,
    )


#: What makes the options of each method, and of feat on folded nodes.
WAYS: dict[str, Callable[[Reference, Question], Iterator[Option]]] = {
    "baseline": _baseline,
    "feat": _feat,
    "feat folded": _folded,
    "feat+": _featplus,
    "sealed": _sealed,
}
