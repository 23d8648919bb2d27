"""How the errors of two answers of one release go together.

A release writes into an answer what it is a sum over (its *form*); other methods, which mend or
replace the answers of a release, do not. Both answers are sums of products of a(y) over the same
noisy bits. Where that can be worked out,
their covariance has an unbiased estimate; it is exact in the sense that the estimates of variances
are. The pairs of questions that are known:

- two sums over pairs (edges, of groups and subsets too, and degrees): Σ w·w′·v over shared pairs;
- edges and k-stars, for any k: Σ v(uv)·[C(d_u, k−1) + C(d_v, k−1)], without the pair itself;
- edges and triangles: Σ v·c, with the number c of common neighbours;
- 2-stars and triangles, as in the clustering coefficient;
- any two questions about subsets of nodes that have no pair in common: 0.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from silograph.errors import SilographError
from silograph.estimators.estimate import Estimate, FloatArray
from silograph.estimators.groups import GroupCounts, Groups
from silograph.estimators.stars import kstars_edges_covariance
from silograph.estimators.triangles import ratio_variance_estimate

__all__ = [
    "GroupTriangles",
    "PairWeights",
    "Stars",
    "Triangles",
    "linear_variance",
    "release_covariance",
]


class Stars(NamedTuple):
    """The k-stars of a release."""

    k: int


class Triangles(NamedTuple):
    """The triangles of a release."""


class GroupTriangles(NamedTuple):
    """The triangles inside a group of a partition, or, last, between all groups."""

    labels: bytes
    place: int


class PairWeights:
    """The weight of every pair in a sum over pairs, by the groups of its two ends."""

    def __init__(self, labels: NDArray[np.uint32], weights: FloatArray) -> None:
        self.labels, self.weights = labels, weights

    @classmethod
    def all_pairs(cls, n: int) -> "PairWeights":
        """Every pair counts once."""
        return cls(np.zeros(n, dtype=np.uint32), np.ones((1, 1)))

    @classmethod
    def of_node(cls, n: int, node: int) -> "PairWeights":
        """The pairs of one node count once."""
        labels = np.zeros(n, dtype=np.uint32)
        labels[node] = 1
        return cls(labels, np.array([[0.0, 1.0], [1.0, 0.0]]))

    @property
    def identity(self) -> tuple[bytes, bytes]:
        """What is equal for equal weights of the same nodes."""
        return self.labels.tobytes(), self.weights.tobytes()

    def times(self, factor: float) -> "PairWeights":
        """All weights multiplied by a number."""
        return PairWeights(self.labels, factor * self.weights)

    def lifted(self, n: int, nodes: NDArray[np.uint32]) -> "PairWeights":
        """The same weights in a graph of n nodes, of which these are the ones that count."""
        labels = np.full(n, len(self.weights), dtype=np.uint32)
        labels[nodes] = self.labels
        return PairWeights(labels, np.pad(self.weights, (0, 1)))


def release_covariance(one: Estimate[Any], other: Estimate[Any]) -> float:
    """The covariance of two answers of one release; an error where it is not known."""
    first, second = _release(one), _release(other)
    nodes, others = first.nodes, second.nodes
    if len(np.intersect1d(nodes, others, assume_unique=True)) < 2:
        return 0.0
    a, b = one.form, other.form
    if isinstance(a, PairWeights) and isinstance(b, PairWeights):
        root = first.whole
        return _linear(root, a.lifted(root.n, nodes), b.lifted(root.n, others))
    if np.array_equal(nodes, others):
        for mine, theirs in ((one, other), (other, one)):
            match mine.query, theirs.form:
                case "edges", Stars(k):
                    return float(kstars_edges_covariance(first.graph, first.channel, k))
                case "edges", Triangles():
                    return float(_edges_triangles(first))
            match mine.form, theirs.form:
                case Stars(2), Triangles():
                    return float(_stars_triangles(first))
    raise _unknown(one, other)


def _release(answer: Estimate[Any]) -> Any:
    """The release that has answered; only releases give a form to their answers."""
    return None if answer.origin is None else answer.origin.release


def _unknown(one: Estimate[Any], other: Estimate[Any]) -> SilographError:
    return SilographError(
        f"{one.name} and {other.name} are answers of one run, and how their errors go together is "
        "not known; take them from two runs"
    )


def _linear(release: Any, one: PairWeights, other: PairWeights) -> float:
    """Σ w·w′·v over pairs, by the groups that both have in common."""
    counts, (mine, theirs) = _together(release, (one, other))
    w = release.channel.weights
    return float((mine * theirs) @ counts.noise(w, counts.edges(w)))


def linear_variance(terms: Sequence[tuple[float, Estimate[Any]]]) -> float:
    """The variance of a sum of sums over pairs: Σ (Σ c·w)²·v, never less than nothing."""
    releases = [_release(each) for _, each in terms]
    root = releases[0].whole
    forms = [
        each.form.lifted(root.n, release.nodes)
        for (_, each), release in zip(terms, releases, strict=True)
    ]
    counts, found = _together(root, forms)
    weights = sum(
        (c * each for (c, _), each in zip(terms, found, strict=True)), np.zeros(len(counts.pairs))
    )
    w = root.channel.weights
    return float(weights**2 @ counts.noise(w, np.clip(counts.edges(w), 0, counts.pairs)))


def _together(release: Any, forms: Sequence[PairWeights]) -> tuple[GroupCounts, list[FloatArray]]:
    """The pairs by the groups that all forms have in common, and the weights of each form."""
    kinds, labels = np.unique(
        np.column_stack([form.labels for form in forms]), axis=0, return_inverse=True
    )
    groups = Groups(tuple(map(str, range(len(kinds)))), labels.ravel().astype(np.uint32))
    counts = GroupCounts(release.graph, groups)
    own = kinds.T
    return counts, [
        form.weights[own[i][counts.rows], own[i][counts.columns]] for i, form in enumerate(forms)
    ]


def _edges_triangles(release: Any) -> Fraction:
    """Σ v·c, with the unbiased number of common neighbours and the spread of each pair."""
    w, n = release.channel.weights, release.n
    pairs, joined = release.sums.linear_sums
    parts = w.gamma**2, w.beta * w.gamma, w.beta**2 * (n - 2)
    everywhere, edges = pairs.linear(*parts), joined.linear(*parts)
    total: Fraction = w.spread(0) * (everywhere - edges) + w.spread(1) * edges
    return total


def _stars_triangles(release: Any) -> Fraction:
    at = [ratio_variance_estimate(release.sums, release.channel, Fraction(r)) for r in (-1, 1)]
    return (at[0] - at[1]) / 12
