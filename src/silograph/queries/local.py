"""A silo's local answer, form ``paper``: its own edges as they are, all others from the release.

Model
    The owner of u counts the k-stars at u, or the triangles whose smallest node is u, with weight
    1 on its own edges and a(y) on every other pair; each motif is the product of its weights. (The
    paper's Algorithms 5 and 6, with one rule in place of their four propositions.)
Bias
    None, exactly, for every owner map that does not look at the release: a pair that the owner
    holds is an edge, and a(y) has the mean x everywhere.
Variance
    Not more than that of the release's own answer: what the owner knows varies no longer, and all
    other terms are as they were.
Cost
    Triangles: popcounts at the noisy edges (Rust). k-stars: big-integer arithmetic per distinct
    pair of degrees.
"""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.errors import ArgumentError
from silograph.graph.bitrows import BitRows
from silograph.privacy.channel import Channel, Weights
from silograph.queries.stars import symmetric_polynomials

__all__ = ["local_kstars", "local_triangles", "local_triples", "local_value"]


def local_value(
    query: str,
    held: BitRows,
    noisy: BitRows,
    channel: Channel,
    owned: NDArray[np.uint32],
    k: int | None = None,
) -> Fraction:
    """The exact local answer of a silo that holds ``held`` and owns these nodes."""
    if query == "triangles":
        return local_triangles(held, noisy, channel, owned)
    if query == "kstars" and k is not None:
        return local_kstars(held, noisy, channel, owned, k)
    raise ArgumentError(f"there is no local answer 'paper' to {query}")


def local_triples(held: BitRows, noisy: BitRows, owned: NDArray[np.uint32]) -> list[list[int]]:
    """``[h][y]``: triples with an owned smallest node, h held pairs and y noisy ones elsewhere."""
    picked = np.ascontiguousarray(owned, dtype=np.uint32)
    return _core.local_triples(held.words, noisy.words, picked)


def local_triangles(
    held: BitRows, noisy: BitRows, channel: Channel, owned: NDArray[np.uint32]
) -> Fraction:
    """Σ over the triples whose smallest node is owned of 1^h·α^y·β^(3−h−y)."""
    a, b = channel.alpha, channel.beta
    triples = local_triples(held, noisy, owned)
    terms = (
        triples[h][y] * a**y * b ** (3 - h - y) for h in range(4) for y in range(4 - h)
    )  # fmt: skip
    return sum(terms, Fraction(0))


def local_kstars(
    held: BitRows, noisy: BitRows, channel: Channel, owned: NDArray[np.uint32], k: int
) -> Fraction:
    """Σ over the owned nodes of e_k(1 for each own edge, a(y) for each other pair)."""
    own, seen = row_kinds(held, noisy)
    rows = Counter(zip(own[owned].tolist(), seen[owned].tolist(), strict=True))
    total = Fraction(0)
    for (h, y), count in rows.items():
        total += count * _row_stars(channel.weights, h, y, held.n - 1 - h - y, k)
    return total


def row_kinds(held: BitRows, noisy: BitRows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each node the number of its own edges, and of noisy ones elsewhere."""
    pairs = held.pairs()
    both = pairs[noisy.at(pairs) == 1]
    shared = np.bincount(both.ravel().astype(np.int64), minlength=held.n)
    return held.degrees, noisy.degrees - shared


def _row_stars(weights: Weights, held: int, ones: int, zeros: int, k: int) -> Fraction:
    others = symmetric_polynomials(weights, ones, zeros, k)
    return sum((math.comb(held, j) * others[k - j] for j in range(k + 1)), Fraction(0))
