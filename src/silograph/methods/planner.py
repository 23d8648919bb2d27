"""The planner: what every method would cost and give, before anything is drawn or spent.

It predicts the error of each method and protocol on a graph like the reference, says what each of
them assumes of whom, and ranks those that the caller's trust allows.
"""

import contextlib
import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from silograph.dp.loss import check_delta, check_epsilon, check_parties, shown_loss
from silograph.errors import ArgumentError, ChannelError
from silograph.estimators.estimate import definitions, table
from silograph.estimators.gradient import GRADIENTS
from silograph.estimators.reference import Reference, guess, reference_like
from silograph.estimators.release import Release
from silograph.graph.silo import Silo
from silograph.methods.catalogue import TRUST
from silograph.methods.featplus.method import choose_split
from silograph.methods.featplus.noise import Split
from silograph.methods.prediction import Question, baseline_error, feat_error, paper_error
from silograph.methods.sealed.method import SEALED_QUERIES, choose_noise, sealed_limit

__all__ = ["PLANNED", "Option", "Plan", "plan", "plan_options"]

#: The queries whose errors are predicted.
PLANNED = ("edges", "degrees", "kstars", "triangles", "four_cycles", "clustering")


@dataclass(frozen=True)
class Option:
    """One way to ask the question."""

    method: str
    protocol: str
    #: The standard deviation of the answer, and the same divided by the answer.
    error: float
    relative: float
    #: What must be trusted for it (see :data:`TRUST`); empty for nothing.
    needs: frozenset[str]
    #: What it assumes of whom, in one sentence.
    assumes: str
    delta: float = 0.0
    #: More arguments of :meth:`Federation.count` that ask for it.
    arguments: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def label(self) -> str:
        """The method, with the kind of its local answers."""
        local = self.arguments.get("local")
        return f"{self.method} {local}" if local else self.method

    @property
    def percent(self) -> str:
        """The relative error as it is shown."""
        if not math.isfinite(self.relative):
            return "∞"
        if self.relative >= 100:  # the answer is lost: an order is enough
            return f"{self.relative:.2g} ×"
        digits = ",.0f" if self.relative >= 1 else ".3g"
        return f"{100 * self.relative:{digits}} %"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "method": self.method,
            "protocol": self.protocol,
            "error": self.error,
            "relative": self.relative,
            "delta": self.delta,
            "needs": sorted(self.needs),
            "assumes": self.assumes,
            "arguments": {
                k: list(v) if isinstance(v, tuple) else v for k, v in self.arguments.items()
            },
            "note": self.note,
        }


@dataclass(frozen=True)
class Plan:
    """All options, best first, and which of them the caller's trust allows."""

    question: Question
    #: The answer that the reference would give, and where the reference comes from.
    count: float
    source: str
    options: tuple[Option, ...]
    trust: frozenset[str]

    @property
    def allowed(self) -> tuple[Option, ...]:
        """The options that need no more trust than there is."""
        return tuple(option for option in self.options if option.needs <= self.trust)

    @property
    def best(self) -> Option:
        """The allowed option with the least error."""
        return self.allowed[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
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
            "options": [
                {**option.to_dict(), "allowed": option.needs <= self.trust}
                for option in self.options
            ],
        }

    def _repr_html_(self) -> str:
        """For notebooks."""
        asked = self.question
        what = f"{asked.k}-stars" if asked.k else asked.query
        delta = f", δ = {shown_loss(asked.delta)}" if asked.delta else ""
        caption = (
            f"{what}, about {self.count:,.4g}: ε = {shown_loss(asked.epsilon)}{delta}, "
            f"{asked.silos} silos, collusion {asked.collusion}"
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
        return f"<div>{table(caption, head, rows, right=(3, 4))}{definitions('', below)}</div>"

    def __str__(self) -> str:
        asked = self.question
        name = f"{asked.query}({asked.k})" if asked.k else asked.query
        lines = [
            f"{name} of {asked.silos} silos at ε = {shown_loss(asked.epsilon)}"
            + (f", δ = {shown_loss(asked.delta)}" if asked.delta else "")
            + f", collusion {asked.collusion}; expected answer about {self.count:,.4g}",
            f"reference: {self.source}",
        ]
        for option in self.options:
            mark = " " if option.needs <= self.trust else "-"
            mark = "*" if option is self.best else mark
            lines.append(
                f"{mark} {option.label:16}{option.protocol:17}{option.percent:>10}  "
                f"{option.note}".rstrip()
            )
        lines.append("* best that your trust allows   - needs more trust")
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
    delta: float = 0.0,
    collusion: int = 1,
    trust: Collection[str] = (),
    owned: float | None = None,
) -> Plan:
    """Predict the error of every method, and rank them.

    Say how the graph looks: by a few numbers (``nodes`` at least; ``wedges`` are 2-stars,
    ``common_squares`` is the sum over pairs of squared common neighbours), or by something *like*
    it that is public: a reference graph, or a past release. Nothing here touches anyone's edges.

    ``trust`` names what you are ready to assume (see :data:`TRUST`); ``owned`` is the share of a
    node's edges that you expect its main silo to hold, 1/silos where edges are dealt at random.

    >>> found = plan("triangles", epsilon=3.0, silos=4, nodes=4039, edges=88234)
    >>> found.best.method, found.best.protocol
    ('feat', 'masked')
    """
    cycles = query == "four_cycles"
    if like is None:
        if nodes is None:
            raise ArgumentError("say how many nodes there are, or give something like the graph")
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
    """Every option for the question, best first."""
    check_epsilon(question.epsilon)
    check_parties(question.silos, question.collusion)
    unknown = set(trust) - set(TRUST)
    if unknown:
        raise ArgumentError(
            f"unknown trust {', '.join(sorted(unknown))}; choose from {', '.join(TRUST)}"
        )
    check_delta(question.delta)
    count = reference.count(question.query, question.k)
    found = [
        option
        for options in (_baseline, _feat, _featplus, _sealed)
        for option in _possible(options, reference, question)
    ]
    found.sort(key=lambda option: option.error)
    # Who trusts the coordinator to deal also trusts it to follow the protocol.
    trusted = frozenset(trust) | ({"coordinator"} if "dealer" in trust else set())
    return Plan(question, count, reference.source, tuple(found), trusted)


def _possible(
    options: Callable[[Reference, Question], Iterator[Option]],
    reference: Reference,
    question: Question,
) -> Iterator[Option]:
    """Those of one method; none where so many colluders leave nothing but noise."""
    with contextlib.suppress(ChannelError):
        yield from options(reference, question)


_FOLLOW = "silos follow the protocol"


def _option(
    reference: Reference, question: Question, method: str, protocol: str, error: float, **more: Any
) -> Option:
    count = abs(reference.count(question.query, question.k))
    relative = error / count if count else math.inf
    return Option(method, protocol, error, relative, **more)


def _baseline(reference: Reference, question: Question) -> Iterator[Option]:
    yield _option(
        reference,
        question,
        "baseline",
        "reports",
        baseline_error(reference, question),
        needs=frozenset(),
        assumes="silos add their noise; who holds an edge shows, as far as ε allows",
    )


def _feat(reference: Reference, question: Question) -> Iterator[Option]:
    t = question.collusion
    pool = (
        f"; {t} of them may pool with the coordinator" if t else "; none of them sees the release"
    )
    kinds = {
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
        if protocol == "elgamal/replace" and t:
            continue
        error = feat_error(reference, question, protocol)
        note = "" if protocol == "masked" else "slow: keys for every pair"
        yield _option(
            reference, question, "feat", protocol, error, needs=needs, assumes=assumes, note=note
        )


def _featplus(reference: Reference, question: Question) -> Iterator[Option]:
    t = question.collusion
    if t == 0:  # every silo is shown the release, and must not be one too many
        return
    assumes = f"{_FOLLOW}; {t} of them may pool with the coordinator; all see the release"
    common: dict[str, Any] = {"needs": frozenset(), "assumes": assumes}
    if question.query in GRADIENTS:
        chosen = choose_split(reference, question, "masked")
        shares = chosen.split.release, chosen.split.partition, chosen.split.local
        local = chosen.split.answers_locally
        yield _option(
            reference,
            question,
            "feat+",
            "masked",
            chosen.error,
            arguments={
                "local": "gradient",
                "split": tuple(float(share) for share in shares),
                **({"bound": chosen.bound} if local else {}),
            },
            note="local gradients" if local else "all of ε to the release: as feat",
            **common,
        )
    if question.query == "triangles" or (question.query == "kstars" and question.k):
        split = Split.of("paper", question.epsilon)
        yield _option(
            reference,
            question,
            "feat+",
            "masked",
            paper_error(reference, question, "masked", split),
            arguments={"local": "paper", "split": "paper"},
            note="the paper's form and split",
            **common,
        )


def _sealed(reference: Reference, question: Question) -> Iterator[Option]:
    if question.query not in SEALED_QUERIES or reference.nodes > sealed_limit(question.query):
        return
    chosen, t = choose_noise(reference, question), question.collusion
    pool = f"; {t} of them may pool what they see" if t else ""
    opened, delta = ", ".join(chosen.noise.answers).replace("_", "-"), chosen.noise.delta
    yield _option(
        reference,
        question,
        "sealed",
        "sealed",
        chosen.error,
        needs=frozenset({"dealer"}),
        assumes=f"{_FOLLOW}{pool}; the coordinator deals honestly and colludes with none",
        delta=delta,
        note=f"opens {opened}" + (f", δ = {shown_loss(delta)}" if delta else ""),
    )
