"""How the error of an answer would move with epsilon, by the planner's formulas.

The graph behind the formulas is outlined from the release itself, which costs no privacy; without
a release from what the answer says and a guess at the rest. The predictions are rough; the error of
the answer itself is not predicted but its own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from silograph.methods.prediction import Question, baseline_error, feat_error, paper_error
from silograph.methods.sealed import expected_error, plan_sealed
from silograph.methods.split import choose_split
from silograph.privacy.channel import Channel
from silograph.privacy.featplus import Split
from silograph.privacy.sealed import SealedNoise
from silograph.queries.estimate import Estimate
from silograph.queries.origin import Origin
from silograph.queries.outline import Outline
from silograph.queries.outline_sources import guess, outline_of_release
from silograph.queries.release import Release
from silograph.queries.reports import Reports
from silograph.queries.sealed import SealedRelease

__all__ = ["LARGE", "Curve", "Outlined", "curve_of", "outlined"]

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
class Outlined:
    """The graph that predictions are about, and the run that they vary."""

    outline: Outline
    origin: Origin
    release: Release | SealedRelease | Reports | None


def outlined(
    origin: Origin | None, answers: Sequence[Estimate[Any]], *, cycles: bool
) -> Outlined | None:
    """What can be said of the graph from what is public now; None where that is too little."""
    if origin is None or origin.nodes < 3:
        return None
    release = origin.release
    try:
        if isinstance(release, Release) and origin.nodes <= LARGE:
            outline = outline_of_release(release, cycles=cycles)
        else:
            outline = guess(origin.nodes, **_numbers(answers, origin.nodes), cycles=cycles)
    except (ValueError, ArithmeticError):
        return None
    return Outlined(outline, origin, release)


def _numbers(answers: Sequence[Estimate[Any]], nodes: int) -> dict[str, Any]:
    """Counts that are above their own error, as numbers of an outline."""
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


def curve_of(answer: Estimate[Any], graph: Outlined | None) -> Curve | None:
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
            continue  # an epsilon that the method cannot have, or an outline of next to nothing
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


def _predicted(answer: Estimate[Any], graph: Outlined, epsilon: float) -> float:
    made, outline = graph.origin.provenance, graph.outline
    k = answer.parameters.get("k")
    asked = Question(answer.query, epsilon, made.silos, made.collusion, k, answer.delta)
    match answer.method:
        case "baseline":
            return baseline_error(outline, asked)
        case "sealed":
            return _sealed(graph, asked)
        case "feat+":
            return _featplus(answer, outline, asked, made.protocol)
    if made.protocol == "clear" and made.silos < 2:
        return outline.noise(answer.query, Channel.symmetric(epsilon).weights, k)
    # Algorithm 3 as printed costs m times the epsilon of its coins.
    asked_for = epsilon / made.silos if made.protocol == "elgamal/printed" else epsilon
    return feat_error(outline, asked, made.protocol, asked_for)


def _sealed(graph: Outlined, asked: Question) -> float:
    if not isinstance(graph.release, SealedRelease):
        return plan_sealed(graph.outline, asked).error
    own = graph.release.noise
    parts = [float(own.budgets[answer]) for answer in own.answers]
    share = parts[0] / sum(parts) if len(parts) > 1 else 0.1
    noise = SealedNoise.choose(
        asked.epsilon,
        own.nodes,
        own.silos,
        own.collusion,
        own.answers,
        delta=own.delta,
        degree_share=share,
        kind=own.kind,
    )
    return expected_error(graph.outline, asked, noise)


def _featplus(answer: Estimate[Any], outline: Outline, asked: Question, protocol: str) -> float:
    if answer.parameters.get("local") != "paper":
        return choose_split(outline, asked, protocol).error
    spent = answer.parameters["spent"]
    shares = spent["release"], spent["partition"], spent["local"]
    return paper_error(outline, asked, protocol, Split.of(_to_one(shares), asked.epsilon))


def _to_one(shares: tuple[float, float, float]) -> tuple[float, float, float]:
    total = sum(shares)
    release, partition, local = (share / total for share in shares)
    return release, partition, local
