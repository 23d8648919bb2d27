"""feat+: a release, owners of nodes, and a local answer of every silo (the paper's Algorithm 4).

The parts in order, each a function without I/O; ``runtime`` carries messages between them:

1. :func:`settle_featplus` decides everything that can be decided before anything is drawn or spent.
2. A union at ε1 gives the release; every silo's noisy degrees (:meth:`FeatPlusTerms.degrees`,
   at ε2) give owners and, where it is not given, the clipping bound: :func:`share`.
3. What the silos are shown is a :class:`Shared`, as bytes; they make sure that it is the same.
4. Each silo counts (:func:`local_report`) and sends a noisy number (:meth:`FeatPlusTerms.reports`).
5. :func:`combine` makes the answer.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.dp.channel import Channel, Weights
from silograph.dp.loss import shown_loss
from silograph.errors import ArgumentError
from silograph.estimators.estimate import Estimate
from silograph.estimators.gradient import Pairs, gradient
from silograph.estimators.release import Release
from silograph.estimators.stars import symmetric_polynomials
from silograph.graph.bits import BitRows
from silograph.graph.silo import Silo
from silograph.methods.featplus.noise import STEPS, largest_change
from silograph.methods.featplus.rounds import FeatPlusTerms, Owners, Shared

__all__ = [
    "combine",
    "default_bound",
    "gradient_report",
    "gradient_terms",
    "local_kstars",
    "local_report",
    "local_triangles",
    "local_triples",
    "local_value",
    "node_owners",
    "owned_nodes",
    "owned_pairs",
    "share",
]


# --- The owners of nodes: each node belongs to the silo with the largest noisy degree there -------
#
# The paper's Algorithm 4, PartitionNode, after the noise. What is owned is decided by public
# numbers alone; a node that nobody has edges at is owned all the same, by whom the noise says.


def node_owners(degrees: Sequence[Sequence[int]] | NDArray[Any]) -> Owners:
    """For each node the place of the silo whose noisy degree is the largest; of equals the first.

    >>> node_owners([[3, -1, 5], [2, -1, 9]]).tolist()
    [0, 0, 1]
    """
    # As objects: a silo may send any number, and no number of one may spoil those of others.
    table: NDArray[Any] = (
        degrees if isinstance(degrees, np.ndarray) else np.array(degrees, dtype=object)
    )
    if table.ndim != 2 or not 1 <= len(table) <= 64:
        raise ArgumentError("there must be one noisy degree of every node for each silo")
    owners: Owners = table.argmax(axis=0).astype(np.uint8)
    return owners


def owned_nodes(owners: Owners, place: int) -> NDArray[np.uint32]:
    """The nodes of one silo."""
    return np.flatnonzero(owners == place).astype(np.uint32)


def owned_pairs(owners: Owners, place: int, pairs: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Those of the pairs u < v whose smaller node is the silo's."""
    return np.ascontiguousarray(pairs[owners[pairs[:, 0]] == place])


# --------------------------------------------------------------------------------------------------
# A silo's local answer, form ``paper``: its own edges as they are, all others from the release.
#
# Model
#     The owner of u counts the k-stars at u, or the triangles whose smallest node is u, with weight
#     1 on its own edges and a(y) on every other pair; each motif is the product of its weights.
#     (The paper's Algorithms 5 and 6, with one rule in place of their four propositions.)
# Bias
#     None, exactly, for every owner map that does not look at the release: a pair that the owner
#     holds is an edge, and a(y) has the mean x everywhere.
# Variance
#     Not more than that of the release's own answer: what the owner knows varies no longer, and all
#     other terms are as they were.
# Cost
#     Triangles: popcounts at the noisy edges (Rust). k-stars: big-integer arithmetic per distinct
#     pair of degrees.


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


# --- A silo's local answer, form ``gradient``: what its own edges take off the release's error ----


def gradient_report(
    query: str, noisy: BitRows, channel: Channel, pairs: Pairs, bound: float, k: int | None = None
) -> int:
    """The local answer of a silo that holds and owns these pairs, in units of Δ/2^30."""
    return int(gradient_terms(query, noisy, channel, pairs, bound, k).sum())


def gradient_terms(
    query: str, noisy: BitRows, channel: Channel, pairs: Pairs, bound: float, k: int | None = None
) -> NDArray[np.int64]:
    """(1 − a)·clip(∂f/∂a, ±bound) of each pair, in units of Δ/2^30, rounded."""
    slopes = np.clip(gradient(query, noisy, channel, pairs, k, scale=bound), -1.0, 1.0)
    largest = largest_change(channel)
    changes = np.array([float((1 - a) / largest) for a in (channel.beta, channel.alpha)])
    return np.rint(changes[noisy.at(pairs)] * slopes * STEPS).astype(np.int64)


def default_bound(
    query: str,
    degrees: Sequence[Sequence[int]] | NDArray[np.int64],
    scale: Fraction,
    channel: Channel,
    n: int,
    k: int | None = None,
) -> float:
    """A clipping bound κ from what is public before the local answers and looks at no y.

    ``degrees`` are all silos' noisy degrees, ``scale`` that of their noise. κ is the gradient at an
    edge between two nodes of the degree D that a neighbour has on average, Σd²/Σd, and some
    standard deviations of what the release's noise adds to it. Any κ is unbiased: a smaller one
    takes less off the release's error, a larger one needs more noise.
    """
    typical = _neighbour_degree(degrees, scale, n)
    v0 = float(channel.weights.v0)
    match query:
        case "edges":
            return 1.0
        case "triangles":
            # Half of the neighbours in common; pairs of noise, and noise beside an edge.
            return typical / 2 + 2 * math.sqrt(v0**2 * n + 2 * v0 * typical)
        case "four_cycles":
            noise = v0**3 * n**2 + 3 * v0**2 * n * typical + 3 * v0 * typical**3 / 2
            return typical**2 / 2 + 2 * math.sqrt(noise)
        case "kstars" if k is not None:
            # The stars at both ends, had they a standard deviation of noise more in their degree.
            d = max(typical + math.sqrt(v0 * n), k - 1.0)
            try:
                return 2 * math.exp(math.lgamma(d + 1) - math.lgamma(k) - math.lgamma(d - k + 2))
            except OverflowError:
                raise ArgumentError(f"k = {k}: the number of stars is beyond a float") from None
    raise ArgumentError(f"there is no local answer 'gradient' to {query}")


def _neighbour_degree(
    degrees: Sequence[Sequence[int]] | NDArray[np.int64], scale: Fraction, n: int
) -> float:
    """Σd²/Σd of the true degrees, as far as the noise lets it be seen; from 1 to n − 1.

    Silos that hold the same edge both count it, which makes the result a little too large.
    """
    # Any number may come from a silo; these are beyond all that a float's sums could bear.
    table = np.array(degrees, dtype=object).clip(-(2**50), 2**50).astype(np.float64)
    totals, noise = table.sum(axis=0), 2 * float(scale) ** 2 * len(table)
    squares, first = float(totals @ totals) - n * noise, float(totals.sum())
    found = squares / first if first > 0 else 1.0
    return min(max(found, 1.0), float(n - 1))


# --- Parts of a run -------------------------------------------------------------------------------


def share(
    plan: FeatPlusTerms, graph: BitRows, degrees: Sequence[Sequence[int]] | NDArray[np.int64]
) -> Shared:
    """Owners and bound from all silos' noisy degrees, beside the release."""
    if plan.local == "paper":
        bound = 0.0
    elif plan.bound is not None:
        bound = float(plan.bound)
    else:
        scale, channel = plan.noise.partition_scale, plan.union.channel
        bound = default_bound(plan.query, degrees, scale, channel, plan.n, plan.k)
    return Shared(graph, node_owners(degrees), bound)


def local_report(plan: FeatPlusTerms, shared: Shared, silo: Silo, place: int) -> int:
    """A silo's exact answer, in units; it leaves the silo with noise on it, and not otherwise."""
    channel, graph = plan.union.channel, shared.graph
    if plan.local == "gradient":
        pairs = owned_pairs(shared.owners, place, silo.pairs)
        return gradient_report(plan.query, graph, channel, pairs, shared.bound, plan.k)
    held = BitRows.from_pairs(plan.n, silo.pairs)
    owned = owned_nodes(shared.owners, place)
    value = local_value(plan.query, held, graph, channel, owned, plan.k)
    return round(value / plan.unit(shared.bound))


def combine(
    plan: FeatPlusTerms, release: Release, shared: Shared | None, reports: Sequence[int]
) -> Estimate[float]:
    """The answer from the release and all noisy reports (none where the plan has no local part).

    ``gradient`` adds the reports to the release's own answer; ``paper`` is their sum alone. The
    standard error is that of the release's own answer and the Laplace noise together. It is on the
    safe side: how much the silos took off the release's error is known to them alone. (For
    ``paper`` always; for ``gradient`` but on small, dense graphs at an ε1 below about 1, where
    products of three reported pairs weigh more than all that was taken off.)
    """
    options: dict[str, Any] = {} if plan.k is None else {"k": plan.k}
    own: Estimate[float] = getattr(release, plan.query)(**options)
    spent = {name: float(getattr(plan.noise.split, name)) for name in ("release", "partition")}
    spent["local"] = float(plan.noise.split.local)
    if shared is None or not plan.answers_locally:
        note = "all of epsilon went to the release, which is feat: local answers do not pay here"
        parameters = {**own.parameters, "local": plan.local, "spent": spent}
        return _answer(own, plan, own.value, own.stderr, note, parameters)
    unit = plan.unit(shared.bound)
    total = unit * sum(reports)
    value = own.value + float(total) if plan.local == "gradient" else float(total)
    # Each of m reports has discrete Laplace noise, whose variance is at most 2·scale².
    laplace = math.sqrt(2 * len(reports)) * float(plan.noise.local_scale * unit)
    degree = math.sqrt(2) * float(plan.noise.partition_scale)
    bought = {"release stderr": own.stderr, "degree noise": degree, "local noise": laplace}
    if plan.local == "gradient":
        bought["bound"] = shared.bound
    parameters = {**own.parameters, "local": plan.local, "spent": spent, "bought": bought}
    note = (
        f"ε1 = {shown_loss(spent['release'])} bought a release (± {own.stderr:,.4g}), "
        f"ε2 = {shown_loss(spent['partition'])} owners of nodes (degrees ± {degree:,.4g}), "
        f"ε3 = {shown_loss(spent['local'])} local answers (together ± {laplace:,.4g}); "
        "the error is at most about the first and the last together"
    )
    return _answer(own, plan, value, math.hypot(own.stderr, laplace), note, parameters)


def _answer(
    own: Estimate[float],
    plan: FeatPlusTerms,
    value: float,
    stderr: float,
    note: str,
    parameters: dict[str, Any],
) -> Estimate[float]:
    origin = own.origin
    if origin is not None:
        made = replace(origin.provenance, method="feat+")
        origin = replace(origin, provenance=made, views=plan.views, losses=plan.losses)
    return replace(
        own,
        value=value,
        stderr=stderr,
        epsilon=plan.epsilon,
        method="feat+",
        note=note,
        parameters=parameters,
        origin=origin,
    )
