"""Predictions of each method's error on a graph like the reference.

What
    Standard deviations, computed before any noise is drawn or any budget is spent. For ``baseline``
    and ``feat`` they come from the exact variance formulas, applied to the sums of the reference.
    For ``feat+`` the noise of owned edges is subtracted and the noise of the local answers is
    added. This neglects terms of second order in owned edges.
Reference
    The formulas are explained with their estimators (:mod:`silograph.estimators`).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from silograph.dp.channel import Channel, Weights
from silograph.estimators.reference import Reference
from silograph.methods.baseline.counts import ReportWeights
from silograph.methods.baseline.noise import BaselineNoise
from silograph.methods.featplus.noise import Split, gradient_sensitivity, paper_sensitivity
from silograph.methods.union import settle_union

__all__ = [
    "Question",
    "baseline_error",
    "feat_error",
    "gradient_error",
    "owned_share",
    "paper_error",
    "union_channel",
    "wobble",
]


@dataclass(frozen=True)
class Question:
    """The query, the number of silos, and the privacy budget."""

    query: str
    epsilon: float
    silos: int
    collusion: int
    k: int | None = None
    #: The delta that the sealed method may use: None is as little as committee noise needs.
    delta: float | None = None
    #: The share of a node's edges that is held by the silo with most of them. It is 1/m if edges
    #: are assigned to silos at random.
    owned: float | None = None


@lru_cache(maxsize=1024)
def union_channel(protocol: str, epsilon: float, silos: int, collusion: int) -> Channel:
    """The channel of a union at ``epsilon``."""
    return settle_union(protocol, epsilon, silos, collusion).channel


def baseline_error(reference: Reference, question: Question) -> float:
    """The error of the calibrated answer from all reports, if each edge is held by one silo."""
    weights = _report_weights(question.epsilon, question.silos, question.collusion)
    return reference.noise(question.query, weights, question.k)


@lru_cache(maxsize=1024)
def _report_weights(epsilon: float, silos: int, collusion: int) -> Weights:
    """The noise of a pair in all reports together."""
    spread = ReportWeights(BaselineNoise.choose(epsilon, silos, collusion).channel, silos)
    return Weights(Fraction(1), Fraction(0), spread.variance(0), spread.variance(1))


def feat_error(
    reference: Reference, question: Question, protocol: str, epsilon: float | None = None
) -> float:
    """The error of the answer from a release of the union, by default at the question's epsilon."""
    spent = question.epsilon if epsilon is None else epsilon
    return _release_noise(reference, question, protocol, spent)


@lru_cache(maxsize=1024)
def _release_noise(
    reference: Reference, question: Question, protocol: str, epsilon: float
) -> float:
    weights = union_channel(protocol, epsilon, question.silos, question.collusion).weights
    return reference.noise(question.query, weights, question.k)


def owned_share(reference: Reference, question: Question, epsilon: float) -> float:
    """The share of edges held by the owner of an endpoint, after a partition at ``epsilon``.

    The right owner of a node of degree d leads each other silo by about d·(owned − share of the
    other silo). Another silo overtakes it through noise with the probability that the difference of
    two Laplace variables of scale 2m/ε exceeds this lead.
    """
    m = question.silos
    best = 1 / m if question.owned is None else question.owned
    other = (1 - best) / (m - 1) if best >= 1 / m else best
    if epsilon <= 0:
        return (best + (m - 1) * other) / m
    ends = np.concatenate([reference.sample.first, reference.sample.second])
    weights = np.concatenate([reference.sample.weights, reference.sample.weights])
    lead = ends * (best - other) * epsilon / (2 * m)
    right = (1 - np.exp(-lead) * (0.5 + lead / 4)) ** (m - 1)
    right = np.maximum(right, 1 / m)
    share = float(weights @ right) / max(float(weights.sum()), 1e-300)
    return share * best + (1 - share) * other


def wobble(reference: Reference, question: Question, weights: Weights) -> float:
    """Approximately how much noise the gradient at an edge has when computed on a release."""
    n, v = reference.nodes, float(weights.v0)
    edges = max(float(reference.edges), 1.0)
    sums = float(reference.joined.s) / edges
    match question.query:
        case "triangles":
            return math.sqrt(v * v * n + v * sums)
        case "kstars" if question.k and question.k > 1:
            steps = math.prod((sums / 2 - i) / (i + 1) for i in range(question.k - 2))
            return math.sqrt(2 * v * n) * max(steps, 1.0)
        case "four_cycles":
            near = 4 * float(reference.pairs.cc) / n
            return math.sqrt(v * (sums * sums / 4 + near) + 1.5 * v * v * n * sums + v**3 * n * n)
    return 0.0


def gradient_error(
    reference: Reference,
    question: Question,
    protocol: str,
    split: Split,
    bound: float,
) -> float:
    """The error of ``feat+`` with gradients that are clipped at ``bound``."""
    release = split.release_epsilon
    base = feat_error(reference, question, protocol, release)
    if not split.answers_locally:
        return base
    channel = union_channel(protocol, release, question.silos, question.collusion)
    reach = max(bound - wobble(reference, question, channel.weights), 0.0)
    steps = reference.gradients(question.query, question.k)
    taken = steps**2 - np.maximum(steps - reach, 0) ** 2
    share = owned_share(reference, question, float(split.partition))
    saved = float(channel.weights.v1) * share * float(reference.sample.weights @ taken)
    width = float(gradient_sensitivity(channel, bound))
    noise = 2 * question.silos * (width / float(split.local)) ** 2
    return math.sqrt(max(base * base - saved, 0.0) + noise)


def paper_error(reference: Reference, question: Question, protocol: str, split: Split) -> float:
    """The error of ``feat+`` with local answers as in the paper.

    Owned edges carry no noise, and all reports carry noise for the joint sensitivity.
    """
    channel = union_channel(protocol, split.release_epsilon, question.silos, question.collusion)
    w, share = channel.weights, owned_share(reference, question, float(split.partition))
    known = Weights(w.alpha, w.beta, w.v0, w.v1 * Fraction(1 - share))
    base = reference.noise(question.query, known, question.k)
    width = float(paper_sensitivity(question.query, question.k, channel, reference.nodes))
    return math.hypot(base, math.sqrt(2 * question.silos) * width / float(split.local))
