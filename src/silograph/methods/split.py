"""How ``feat+`` shares epsilon between the release, the partition and the local answers.

A local answer takes the noise of owned edges off the release and adds Laplace noise of its own; the
partition and the Laplace noise must be paid out of the release's epsilon. On a graph whose edges
are dealt to the silos at random that never pays: most of the noise comes from pairs that no silo
holds. So the best split is often "all of it to the release", which is ``feat``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from silograph.methods.prediction import (
    Question,
    feat_error,
    gradient_error,
    paper_error,
    union_channel,
    wobble,
)
from silograph.privacy.featplus import Split
from silograph.queries.outline import Outline

__all__ = ["ChosenSplit", "choose_split"]

_RELEASE = (0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975)
#: The partition's part of what the release leaves.
_PARTITION = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
_QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
#: Local answers must promise at least this much before they are worth their trouble.
_WORTH = 0.98


@dataclass(frozen=True)
class ChosenSplit:
    """A split, the bound of the gradients (None without local answers), and the error to expect."""

    split: Split
    bound: float | None
    error: float


@lru_cache(maxsize=64)
def choose_split(
    outline: Outline,
    question: Question,
    protocol: str,
    local: str = "gradient",
    bound: float | None = None,
    worth: float = _WORTH,
) -> ChosenSplit:
    """The split with the least predicted error and, for ``gradient``, the bound that goes with it
    unless one is given. Both are fixed here, before the release, so that they cannot look at it.

    Local answers must promise an error below ``worth`` times that of the release alone; infinity
    has them in any case.
    """
    alone = feat_error(outline, question, protocol)
    found = (
        _paper(outline, question, protocol)
        if local == "paper"
        else _gradient(outline, question, protocol, bound)
    )
    best = min(found, key=lambda chosen: chosen.error)
    if best.error < alone * worth:
        return best
    return ChosenSplit(Split.of((1, 0, 0), question.epsilon), None, alone)


def _shares() -> Iterator[tuple[float, float, float]]:
    for release in _RELEASE:
        for part in _PARTITION:
            yield release, (1 - release) * part, (1 - release) * (1 - part)


def _paper(outline: Outline, question: Question, protocol: str) -> Iterator[ChosenSplit]:
    for shares in _shares():
        split = Split.of(shares, question.epsilon)
        yield ChosenSplit(split, None, paper_error(outline, question, protocol, split))


def _gradient(
    outline: Outline, question: Question, protocol: str, bound: float | None
) -> Iterator[ChosenSplit]:
    steps = outline.gradients(question.query, question.k)
    heights = np.quantile(steps, _QUANTILES).tolist() if len(steps) else [0.0]
    for shares in _shares():
        split = Split.of(shares, question.epsilon)
        channel = union_channel(protocol, split.release_epsilon, question.silos, question.collusion)
        margin = 2 * wobble(outline, question, channel.weights)
        for tried in (
            {max(height + margin, 1.0) for height in heights} if bound is None else {bound}
        ):
            error = gradient_error(outline, question, protocol, split, tried)
            yield ChosenSplit(split, tried, error)
