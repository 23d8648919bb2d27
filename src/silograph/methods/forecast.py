"""What a run is expected to give and to cost, and what would help, before anything is spent.

The planner ranks all methods. Here it is asked about one run that somebody is about to pay for:
would its answer be of any use? The expectations are those of a graph that resembles a reference;
nothing is read from edges.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from silograph.dp.loss import shown_loss
from silograph.estimators.estimate import NO_ANSWER
from silograph.estimators.reference import Reference, guess
from silograph.methods.baseline.method import SettledBaseline
from silograph.methods.cost import Cost
from silograph.methods.feat.method import SettledFeat
from silograph.methods.featplus.method import SettledFeatPlus
from silograph.methods.featplus.rounds import FeatPlusTerms
from silograph.methods.fold.expected import FOLDED, FoldChoice
from silograph.methods.method import SettledStudy
from silograph.methods.planner import (
    PLANNED,
    WAYS,
    Option,
    fold_error,
    make_option,
    options_of,
    shown_percent,
    shown_span,
)
from silograph.methods.prediction import (
    Question,
    baseline_error,
    feat_error,
    gradient_error,
    paper_error,
)
from silograph.methods.sealed.method import SettledSealed, expected_error
from silograph.methods.study import COMMITTEE, Study

__all__ = ["USELESS", "Forecast", "forecast", "outlook"]

#: An answer whose error is expected to be above this share of it is of no use.
USELESS = 0.5
#: What an advice should reach, and the largest epsilon that one would advise.
_GOOD, _MOST_EPSILON = 0.25, 16.0
_DELTA = 1e-9
#: Fewer nodes have no graph to speak of.
_LEAST_NODES = 3
#: How many kinds of help are named, and how.
_FEW, _NAMED = 3, {"feat folded": "folded nodes"}


@dataclass(frozen=True)
class Forecast:
    """What is expected of one run."""

    question: Question
    #: The error divided by the answer; None where nothing can be said.
    relative: float | None
    #: Time, traffic and memory; None where nothing is known.
    cost: Cost | None
    #: What the expectation rests on.
    source: str = ""
    #: The relative error at best and at worst, where the reference leaves it open.
    span: tuple[float, float] | None = None
    #: What would make the error smaller, each with its figure.
    helps: tuple[str, ...] = ()

    @property
    def useless(self) -> bool:
        """Whether the answer is expected to be mostly noise."""
        return self.relative is not None and self.relative > USELESS

    @property
    def warning(self) -> str:
        """What to say before such a run; empty if it promises to be useful."""
        if not self.useless or self.relative is None:
            return ""
        asked = self.question
        name = f"{asked.k}-stars" if asked.k else asked.query.replace("_", " ")
        share = shown_percent(self.relative).replace(" %", " % of")
        found = f"{NO_ANSWER} is expected: the error of {name} is about {share} the answer"
        found += "" if self.span is None else f", in a range of {shown_span(self.span)}"
        found += f" ({self.source})" if self.source else ""
        return f"{found}. What would help: {'; '.join(self.helps)}" if self.helps else found


def forecast(
    reference: Reference,
    question: Question,
    way: str,
    protocol: str | None = None,
    *,
    cost: Cost | None = None,
) -> Forecast:
    """What one run is expected to give.

    Parameters
    ----------
    reference
        A graph that the federation's is expected to resemble.
    question
        The query, the parties and the budget.
    way, protocol
        What would run: a method, or ``feat folded``, and a protocol; any one if it is left out.
    cost
        What the run costs, where that is known better than the planner knows it.
    """
    if question.query not in PLANNED:
        return Forecast(question, None, cost)
    own = _own(reference, question, way, protocol)
    if own is None:
        return Forecast(question, None, cost)
    source = f"reference: {reference.source}"
    found = Forecast(question, own.relative, cost or own.cost, source, own.span)
    return replace(found, helps=_helps(reference, question, way, own)) if found.useless else found


def _own(reference: Reference, question: Question, way: str, protocol: str | None) -> Option | None:
    found = options_of(way, reference, question)
    fits = [option for option in found if protocol in (None, option.protocol)]
    return min(fits, key=lambda option: option.error, default=None)


def _helps(reference: Reference, question: Question, way: str, own: Option) -> tuple[str, ...]:
    """Each kind of help with the error that is expected with it, if that is far less."""
    limit, found = min(own.relative / 2, USELESS), {}
    epsilon = _enough(reference, question, way, own)
    if epsilon is not None:
        found[f"ε = {shown_loss(epsilon)}"] = _GOOD
    for other in WAYS:
        best = _own(reference, question, other, None)
        if other != way and best is not None and not best.needs:
            found[_NAMED.get(other, f"method {other}")] = best.relative
    committee = _own(reference, question, way, COMMITTEE)
    if committee is not None and own.protocol != COMMITTEE:
        found[f"protocol {COMMITTEE}"] = committee.relative
    if not question.delta:
        bounded = _own(reference, replace(question, delta=_DELTA), "sealed", None)
        if bounded is not None:
            found[f"sealed with δ = {shown_loss(_DELTA)}"] = bounded.relative
    few = sorted((error, what) for what, error in found.items() if error <= limit)
    return tuple(f"{what} ({shown_percent(error)})" for error, what in few[:_FEW])


def _enough(reference: Reference, question: Question, way: str, own: Option) -> float | None:
    """The smallest usual epsilon at which the same way is good; None if none is."""
    for epsilon in _usual(question.epsilon):
        more = replace(question, epsilon=epsilon)
        found = _own(reference, more, way, own.protocol)
        if found is not None and found.relative <= _GOOD:
            return epsilon
    return None


def _usual(above: float) -> Iterator[float]:
    """Epsilons in steps of a half, or finer below 1."""
    steps = (0.1, 0.2, 0.3, 0.5, 0.75, *(i / 2 for i in range(2, int(2 * _MOST_EPSILON) + 1)))
    yield from (epsilon for epsilon in steps if epsilon > above)


# --- A study as it is settled ---------------------------------------------------------------------


def outlook(settled: SettledStudy) -> tuple[Option, Reference] | None:
    """What a study's answer will be worth, with the choices that are written in it.

    The graph is guessed from the number of nodes alone. None if there is no formula.
    """
    study = settled.study
    if study.query not in PLANNED or study.nodes < _LEAST_NODES:
        return None
    given = study.delta if study.method == "sealed" else None
    asked = Question(
        study.query, study.epsilon, settled.silos, study.collusion, study.k, given
    )  # fmt: skip
    error_on = _error_on(settled, asked)
    if error_on is None:
        return None
    reference = guess(study.nodes, cycles=study.query == "four_cycles")
    option = make_option(
        reference, asked, study.method, study.protocol, error_on, needs=frozenset(), assumes=""
    )
    return option, reference


def _error_on(settled: SettledStudy, asked: Question) -> Callable[[Reference], float] | None:
    """The error of the study's answer as a function of the graph; None if there is no formula."""
    protocol = settled.study.protocol
    if settled.study.index.folded:
        return _fold_error_on(settled.study, asked)
    match settled:
        case SettledBaseline() if not settled.study.options.get("raw"):
            return lambda one: baseline_error(one, asked)
        case SettledFeat():
            return lambda one: feat_error(one, asked, protocol)
        case SettledSealed():
            return lambda one: expected_error(one, asked, settled.noise)
        case SettledFeatPlus():
            return _split_error_on(settled.plan, asked, protocol)
    return None


def _fold_error_on(study: Study, asked: Question) -> Callable[[Reference], float] | None:
    if study.method != "feat" or asked.query not in FOLDED or asked.k not in (None, 2):
        return None
    shape = study.index.layout
    chosen = FoldChoice(shape.groups, shape.hubs, shape.sub, 0.0, 0.0, 0.0, shape.buckets, 0)
    return lambda one: fold_error(one, asked, study.protocol, chosen)


def _split_error_on(
    terms: FeatPlusTerms, asked: Question, protocol: str
) -> Callable[[Reference], float] | None:
    split, bound = terms.noise.split, terms.bound
    if split.answers_locally and terms.local == "paper":
        return lambda one: paper_error(one, asked, protocol, split)
    if bound is None and split.answers_locally:  # it will follow from degrees that nobody knows yet
        return None
    return lambda one: gradient_error(one, asked, protocol, split, bound or 0.0)
