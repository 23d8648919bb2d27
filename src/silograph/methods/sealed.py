"""``sealed``: exact counting on the hidden union, opened only with noise.

What is opened depends on the question. With delta, the noisy degrees come first and bound the noise
of triangles and 2-stars; how much of epsilon they get is chosen by the error that is expected on a
graph like the outline, before anything is drawn.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from silograph.errors import ArgumentError
from silograph.graph.universe import NodeUniverse
from silograph.methods.prediction import Question
from silograph.privacy.sealed import Answer, Kind, SealedNoise
from silograph.protocol.sealed import MOST_MATRIX_NODES, MOST_NODES, SealedParameters
from silograph.protocol.sealed_answers import SealedResult
from silograph.protocol.sealed_noise import BoundedNoise, Noise, Output
from silograph.queries.estimate import Estimate
from silograph.queries.outline import Outline
from silograph.queries.release import Provenance
from silograph.queries.sealed import SealedRelease
from silograph.queries.sealed_stars import kstars_variance
from silograph.queries.stars import square_root

__all__ = [
    "SEALED_QUERIES",
    "TRUST_NOTE",
    "SealedPlan",
    "expected_error",
    "plan_sealed",
    "sealed_limit",
    "sealed_parameters",
    "sealed_release",
    "with_trust_note",
]

#: What sealed answers.
SEALED_QUERIES = ("edges", "degrees", "degree_histogram", "kstars", "triangles", "clustering")
#: What every sealed answer says of itself.
TRUST_NOTE = (
    "assumes that the coordinator dealt honestly and colludes with no silo: "
    "with one of them it would see every edge"
)
#: The parts of epsilon for the degrees that are tried.
_SHARES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)


@dataclass(frozen=True)
class SealedPlan:
    """The noise of a run and the error to expect of it."""

    noise: SealedNoise
    error: float


def sealed_parameters(noise: SealedNoise, subject: bytes) -> SealedParameters:
    """What the machines of a run agree on."""
    outputs = tuple(Output(answer, _drawn(noise, answer)) for answer in noise.answers)
    return SealedParameters(noise.silos, noise.nodes, subject, outputs)


def sealed_release(
    noise: SealedNoise, result: SealedResult, universe: NodeUniverse, run: str
) -> SealedRelease:
    """What a run opened, with the law of its noise."""
    opened = result.values
    return SealedRelease(
        noise,
        universe.digest,
        Provenance("sealed", "sealed", noise.silos, noise.collusion, run),
        noisy_degrees=opened.get("degrees"),
        universe=universe,
        **{f"noisy_{name}": int(x[0]) for name, x in opened.items() if name != "degrees"},
    )


def with_trust_note(answer: Estimate[Any]) -> Estimate[Any]:
    """The answer, saying what it assumes of the coordinator."""
    note = f"{answer.note}; {TRUST_NOTE}" if answer.note else TRUST_NOTE
    return replace(answer, note=note)


def _drawn(noise: SealedNoise, answer: Answer) -> Noise | BoundedNoise:
    if answer in noise.slacks:
        budget = noise.budgets[answer]
        return BoundedNoise(
            noise.kind,
            factor=noise.sensitivity(answer, 1),
            cap=noise.nodes - 2,
            margin=noise.slacks[answer],
            numerator=budget.numerator,
            denominator=budget.denominator,
            shares=noise.shares,
        )
    scale = noise.scale(answer)
    return Noise(noise.kind, scale.numerator, scale.denominator, noise.shares)


def sealed_limit(query: str) -> int:
    """The most nodes for which a question can be sealed."""
    return MOST_MATRIX_NODES if query in ("triangles", "clustering") else MOST_NODES


@lru_cache(maxsize=64)
def plan_sealed(outline: Outline, question: Question, kind: Kind = "shared") -> SealedPlan:
    """The noise with the least expected error, or what is wrong with the request."""
    if question.query not in SEALED_QUERIES:
        raise ArgumentError(f"sealed answers {', '.join(SEALED_QUERIES)}, not {question.query}")
    if question.query == "kstars" and question.k is None:
        raise ArgumentError("kstars needs k, and nothing else takes it")
    plans = [
        SealedPlan(noise, expected_error(outline, question, noise))
        for noise in _candidates(outline.nodes, question, kind)
    ]
    return min(plans, key=lambda plan: plan.error)


def _candidates(nodes: int, question: Question, kind: Kind) -> Iterator[SealedNoise]:
    """Every set of answers that the question follows from, at every share of the degrees."""

    def choose(answers: tuple[Answer, ...], delta: float, share: float = 0.1) -> SealedNoise:
        asked = question.epsilon, nodes, question.silos, question.collusion
        return SealedNoise.choose(*asked, answers, delta=delta, degree_share=share, kind=kind)

    counts: tuple[Answer, ...] = ()
    match question.query:
        case "edges":
            yield choose(("edges",), 0.0)
            return
        case "triangles":
            yield choose(("triangles",), 0.0)
            counts = ("triangles",)
        case "clustering":
            yield choose(("two_stars", "triangles"), 0.0)
            for share in _SHARES:
                yield choose(("degrees", "triangles"), 0.0, share)
            counts = ("two_stars", "triangles")
        case "kstars" if question.k == 2:
            yield choose(("degrees",), 0.0)
            yield choose(("two_stars",), 0.0)
            counts = ("two_stars",)
        case _:
            yield choose(("degrees",), 0.0)
            return
    if question.delta:
        for share in _SHARES:
            yield choose(("degrees", *counts), question.delta, share)
            if question.query == "clustering":
                yield choose(("degrees", "triangles"), question.delta, share)


def expected_error(outline: Outline, question: Question, noise: SealedNoise) -> float:
    """The standard deviation of the answer to a question that a run with this noise answers."""
    query = question.query
    if query == "clustering":
        triangles, stars = _count_error(outline, noise, "triangles"), _stars(outline, noise, 2)
        if not outline.wedges:
            return math.inf
        ratio = 3 * float(outline.triangles / outline.wedges)
        return math.hypot(3 * triangles, ratio * stars) / float(outline.wedges)
    if query == "kstars":
        return _stars(outline, noise, question.k or 1)
    if query == "triangles":
        return _count_error(outline, noise, "triangles")
    if query == "edges" and "edges" not in noise.answers:
        return noise.law("degrees").summed(noise.nodes).stderr / 2
    return noise.law("edges" if query == "edges" else "degrees").stderr


def _stars(outline: Outline, noise: SealedNoise, k: int) -> float:
    if k == 2 and "two_stars" in noise.answers:
        return _count_error(outline, noise, "two_stars")
    return square_root(kstars_variance(outline.degrees.tolist(), noise.law("degrees"), k))


def _count_error(outline: Outline, noise: SealedNoise, answer: Answer) -> float:
    bound = None
    if answer in noise.slacks:
        likely = outline.top_degree + math.ceil(noise.law("degrees").stderr)
        bound = noise.bound(answer, np.full(outline.nodes, likely))
    return noise.law(answer, bound).stderr
