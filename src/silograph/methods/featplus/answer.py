"""The parts of feat+ (the paper's Algorithm 4), each a function without I/O.

1. :func:`silograph.methods.featplus.method.settle_featplus` decides everything that can be decided
   before anything is drawn or spent.
2. A union at ε1 makes the release. From every silo's noisy degrees
   (:meth:`FeatPlusTerms.degrees`, at ε2), :func:`share` computes the owner of each node and, unless
   it is given, the clipping bound.
3. All silos are shown the same :class:`Shared` as bytes, and check that it is the same.
4. Each silo counts (:func:`local_report`) and sends a noisy number (:meth:`FeatPlusTerms.reports`).
5. :func:`combine` computes the answer.

The sessions in :mod:`silograph.methods.featplus.machines` exchange the messages between the parts.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.dp.channel import Channel
from silograph.dp.laplace import NoiseLaw
from silograph.dp.loss import shown_loss
from silograph.errors import ArgumentError
from silograph.estimators.estimate import Estimate
from silograph.estimators.gradient import Pairs, gradient
from silograph.estimators.release import Release
from silograph.estimators.stars import RowStars, binomial_sums
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


def node_owners(degrees: Sequence[Sequence[int]] | NDArray[Any]) -> Owners:
    """For each node, the place of the silo with the largest noisy degree; the first one on ties.

    This is PartitionNode of the paper's Algorithm 4, after the noise. Owners are computed from
    public numbers only. A node without edges has an owner too, which the noise decides.

    >>> node_owners([[3, -1, 5], [2, -1, 9]]).tolist()
    [0, 0, 1]
    """
    # Use Python integers: a silo may send any number, which must not corrupt those of others.
    table: NDArray[Any] = (
        degrees if isinstance(degrees, np.ndarray) else np.array(degrees, dtype=object)
    )
    if table.ndim != 2 or not 1 <= len(table) <= 64:
        raise ArgumentError("there must be one noisy degree of every node for each silo")
    owners: Owners = table.argmax(axis=0).astype(np.uint8)
    return owners


def owned_nodes(owners: Owners, place: int) -> NDArray[np.uint32]:
    """The nodes that the silo at ``place`` owns."""
    return np.flatnonzero(owners == place).astype(np.uint32)


def owned_pairs(owners: Owners, place: int, pairs: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The pairs u < v whose smaller node the silo at ``place`` owns."""
    return np.ascontiguousarray(pairs[owners[pairs[:, 0]] == place])


# --- Local answers of form ``paper``: own edges exactly, all others from the release --------------


def local_value(
    query: str,
    held: BitRows,
    noisy: BitRows,
    channel: Channel,
    owned: NDArray[np.uint32],
    k: int | None = None,
) -> Fraction:
    """The exact local answer of a silo that holds ``held`` and owns the nodes ``owned``.

    Model
        The owner of u counts the k-stars at u, or the triangles whose smallest node is u, with
        weight 1 on its own edges and a(y) on every other pair. The weight of a motif is the product
        of its pairs' weights. (These are the paper's Algorithms 5 and 6, with one rule in place of
        their four propositions.)
    Bias
        None, exactly, for every owner map that does not depend on the release: a pair that the
        owner holds is an edge, and a(y) has the mean x everywhere.
    Variance
        At most that of the release's own answer: terms that the owner knows no longer vary, and all
        other terms are unchanged.
    Cost
        Triangles: popcounts at the noisy edges (in Rust). k-stars: big-integer arithmetic per
        distinct pair of degrees.
    """
    if query == "triangles":
        return local_triangles(held, noisy, channel, owned)
    if query == "kstars" and k is not None:
        return local_kstars(held, noisy, channel, owned, k)
    raise ArgumentError(f"local='paper' does not answer {query}")


def local_triples(held: BitRows, noisy: BitRows, owned: NDArray[np.uint32]) -> list[list[int]]:
    """``[h][y]``: triples with an owned smallest node, h held pairs and y noisy ones elsewhere."""
    picked = np.ascontiguousarray(owned, dtype=np.uint32)
    return _core.local_triples(held.words, noisy.words, picked)


def local_triangles(
    held: BitRows, noisy: BitRows, channel: Channel, owned: NDArray[np.uint32]
) -> Fraction:
    """Σ of 1^h·α^y·β^(3−h−y) over the triples whose smallest node is owned."""
    a, b = channel.alpha, channel.beta
    triples = local_triples(held, noisy, owned)
    terms = (
        triples[h][y] * a**y * b ** (3 - h - y) for h in range(4) for y in range(4 - h)
    )  # fmt: skip
    return sum(terms, Fraction(0))


def local_kstars(
    held: BitRows, noisy: BitRows, channel: Channel, owned: NDArray[np.uint32], k: int
) -> Fraction:
    """Σ of e_k over the owned nodes, with weight 1 for own edges and a(y) for other pairs."""
    own, seen = row_kinds(held, noisy)
    rows: dict[int, Counter[int]] = {}
    for h, y in zip(own[owned].tolist(), seen[owned].tolist(), strict=True):
        rows.setdefault(h, Counter())[y] += 1
    total = Fraction(0)
    for h, others in rows.items():
        sums = binomial_sums(others, k)
        for j in range(min(h, k) + 1):
            row = RowStars(channel.weights, held.n - 1 - h, k - j)
            total += math.comb(h, j) * row.total(sums)
    return total


def row_kinds(held: BitRows, noisy: BitRows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each node, the number of its own edges, and of noisy edges elsewhere."""
    pairs = held.pairs()
    both = pairs[noisy.at(pairs) == 1]
    shared = np.bincount(both.ravel().astype(np.int64), minlength=held.n)
    return held.degrees, noisy.degrees - shared


# --- Local answers of form ``gradient``: own edges reduce the release's error ---------------------


def gradient_report(
    query: str, noisy: BitRows, channel: Channel, pairs: Pairs, bound: float, k: int | None = None
) -> int:
    """The local answer of a silo that holds and owns these pairs, in units of Δ/2^30."""
    return int(gradient_terms(query, noisy, channel, pairs, bound, k).sum())


def gradient_terms(
    query: str, noisy: BitRows, channel: Channel, pairs: Pairs, bound: float, k: int | None = None
) -> NDArray[np.int64]:
    """(1 − a)·clip(∂f/∂a, ±bound) for each pair, rounded, in units of Δ/2^30."""
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
    """A clipping bound κ from public values only, which does not depend on the release's bits.

    ``degrees`` are all silos' noisy degrees, and ``scale`` is the scale of their noise. κ is the
    gradient at an edge between two nodes of degree D, plus some standard deviations of the noise
    that the release adds to it. D is the average degree of a neighbour, Σd²/Σd. The answer is
    unbiased for any κ: a smaller one reduces the release's error less, a larger one needs more
    noise.
    """
    typical = _neighbour_degree(degrees, scale, n)
    v0 = float(channel.weights.v0)
    match query:
        case "edges":
            return 1.0
        case "triangles":
            # Half of the neighbours in common, then noise from two noisy pairs or one.
            return typical / 2 + 2 * math.sqrt(v0**2 * n + 2 * v0 * typical)
        case "four_cycles":
            noise = v0**3 * n**2 + 3 * v0**2 * n * typical + 3 * v0 * typical**3 / 2
            return typical**2 / 2 + 2 * math.sqrt(noise)
        case "kstars" if k is not None:
            # The stars at both ends, with degrees larger by one standard deviation of noise.
            d = max(typical + math.sqrt(v0 * n), k - 1.0)
            try:
                return 2 * math.exp(math.lgamma(d + 1) - math.lgamma(k) - math.lgamma(d - k + 2))
            except OverflowError:
                raise ArgumentError(f"k = {k}: the number of stars exceeds a float") from None
    raise ArgumentError(f"local='gradient' does not answer {query}")


def _neighbour_degree(
    degrees: Sequence[Sequence[int]] | NDArray[np.int64], scale: Fraction, n: int
) -> float:
    """Σd²/Σd of the true degrees, estimated from the noisy ones; limited to 1 … n − 1.

    Silos that hold the same edge both count it, which makes the result a little too large.
    """
    # A silo may send any number; the limits keep sums of floats accurate enough.
    table = np.array(degrees, dtype=object).clip(-(2**50), 2**50).astype(np.float64)
    totals, noise = table.sum(axis=0), 2 * float(scale) ** 2 * len(table)
    squares, first = float(totals @ totals) - n * noise, float(totals.sum())
    found = squares / first if first > 0 else 1.0
    return min(max(found, 1.0), float(n - 1))


# --- Parts of a run -------------------------------------------------------------------------------


def share(
    plan: FeatPlusTerms, graph: BitRows, degrees: Sequence[Sequence[int]] | NDArray[np.int64]
) -> Shared:
    """The release with the owners and the bound that follow from all silos' noisy degrees."""
    if plan.local == "paper":
        bound = 0.0
    elif plan.bound is not None:
        bound = float(plan.bound)
    else:
        scale, channel = plan.noise.partition_scale, plan.union.channel
        bound = default_bound(plan.query, degrees, scale, channel, plan.n, plan.k)
    return Shared(graph, node_owners(degrees), bound)


def local_report(plan: FeatPlusTerms, shared: Shared, silo: Silo, place: int) -> int:
    """A silo's exact answer in units. It leaves the silo only after noise is added."""
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
    """The answer from the release and all noisy reports (empty if the plan has no local part).

    ``gradient`` adds the reports to the release's own answer; ``paper`` uses only their sum. The
    standard error combines that of the release's own answer and that of the Laplace noise. It is an
    upper bound, since only the silos know by how much they reduced the release's error. For
    ``paper`` this always holds. For ``gradient`` it fails only on small, dense graphs at an ε1
    below about 1, where products of three reported pairs outweigh the reduction.
    """
    options: dict[str, Any] = {} if plan.k is None else {"k": plan.k}
    own: Estimate[float] = getattr(release, plan.query)(**options)
    spent = {name: float(getattr(plan.noise.split, name)) for name in ("release", "partition")}
    spent["local"] = float(plan.noise.split.local)
    if shared is None or not plan.answers_locally:
        note = "all of epsilon went to the release, as in feat: local answers would not help here"
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
    found = _answer(own, plan, value, math.hypot(own.stderr, laplace), note, parameters)
    noise = NoiseLaw(plan.noise.local_scale, 1, len(reports))

    def limits(level: float) -> tuple[float, float]:
        """The release's errors downwards and upwards differ; the local noise, which has longer
        tails than a normal one, is the same both ways."""
        low, high = own.interval_at(level)
        # Ends are cut to what is possible, so a distance counts as at least the normal one.
        least = NormalDist().inv_cdf((1 + level) / 2) * own.stderr
        local = float(noise.margin(level) * unit)
        down, up = (
            math.hypot(max(reach, least), local) for reach in (own.value - low, high - own.value)
        )
        return max(value - down, 0.0), max(value + up, 0.0)

    return replace(found, ends=limits(0.95), limits=limits)


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
        # What holds for an answer of the release alone.
        limits=None,
        form=None,
    )
