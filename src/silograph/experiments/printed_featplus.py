"""feat+ as printed (Algorithms 4–6), as a whole, for the reproduction. **It does not hold.**

S. Liu, Y. Cao, T. Murakami, W. Liu, S. P. Liew, T. Takahashi, J. Liu, M. Yoshikawa, *Federated
Graph Analytics with Differential Privacy*, §IV. What is wrong is said where it stands; the sums
run on the same kernels as ours, so that whole graphs take seconds.

Two things are not in the paper and are assumed here. The global graph is one randomized response on
the union at ε1 (the prose of §III-C, the only reading that its calibration fits). And the
sensitivity Δ of the local answers, "the global sensitivity", is never given: it is taken to be that
of the exact count when one edge changes, n − 2 for triangles and 2·C(n−2,k−1) for k-stars. (The
reports of all silos together can change by more; see ``privacy.featplus``.)
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from silograph.errors import ArgumentError
from silograph.experiments.printed import (
    algorithm_5,
    proposition_2,
    proposition_5,
    proposition_6,
)
from silograph.graph.bitrows import BitRows
from silograph.graph.silo import Silo, union
from silograph.privacy.channel import Channel
from silograph.privacy.featplus import PAPER_SHARES
from silograph.queries.local import local_triples, row_kinds
from silograph.queries.partition import node_owners, owned_nodes
from silograph.queries.release import Release

__all__ = ["printed_featplus", "printed_local_kstars", "printed_local_triangles"]


def printed_featplus(
    silos: Sequence[Silo],
    query: str,
    k: int | None,
    epsilon: float,
    seed: int,
    *,
    per_node: bool = False,
) -> float:
    """One run of Algorithm 4 with the paper's split .45/.1/.45 of epsilon.

    ``query`` is ``triangles`` or ``kstars``. ``per_node`` reads Algorithm 5 as it must have been
    meant, one binomial a node; as printed it takes one of all nodes of a part together.
    """
    if query not in ("triangles", "kstars") or (k is None) != (query == "triangles"):
        raise ArgumentError("the paper prints triangles, and kstars with a k")
    n, m = len(silos[0].universe), len(silos)
    first, second, third = (float(share) * epsilon for share in PAPER_SHARES)
    draw = np.random.default_rng(seed)
    # Algorithm 4, line 1: G′ ← FEAT(G, ε1).
    channel = Channel.symmetric(first)
    noisy = Release.draw(union(silos), channel, seed).graph
    # Line 2: PartitionNode, "d′ ← d + Lap(m/ε2)". An edge changes two degrees: it costs 2·ε2.
    degrees = np.array([silo.degrees() for silo in silos], dtype=np.float64)
    owners = node_owners(degrees + draw.laplace(0.0, m / second, degrees.shape))
    total = 0.0
    for place, silo in enumerate(silos):
        held, owned = BitRows.from_pairs(n, silo.pairs), owned_nodes(owners, place)
        # Line 4: Q_i ← Query(G′, G_i, U_i); line 5: Q_i + Lap(Δ/ε3).
        if k is None:
            answer = printed_local_triangles(held, noisy, owned, channel.p01)
            sensitivity = n - 2
        else:
            answer = printed_local_kstars(held, noisy, owned, channel.p01, k, per_node=per_node)
            sensitivity = 2 * math.comb(n - 2, k - 1)
        total += float(answer) + draw.laplace(0.0, sensitivity / third)
    return total


def printed_local_kstars(
    held: BitRows,
    noisy: BitRows,
    owned: NDArray[np.uint32],
    p: Fraction,
    k: int,
    *,
    per_node: bool = False,
) -> Fraction:
    """Algorithm 5: the true degree d1 in G_i and the noisy one d2 in the rest, "summed over each
    node v_j in U_i", and then one binomial."""
    own, seen = row_kinds(held, noisy)
    rows = list(zip(own[owned].tolist(), seen[owned].tolist(), strict=True))
    parts = [[row] for row in rows] if per_node else [rows]
    return sum((algorithm_5(part, held.n, p, k) for part in parts), Fraction(0))


def printed_local_triangles(
    held: BitRows,
    noisy: BitRows,
    owned: NDArray[np.uint32],
    p: Fraction,
) -> Fraction:
    """Algorithm 6: T0 … T3 triangles of Ḡ by how many of their edges are in G_i, de-biased by
    Propositions 4 (which is 2), 5 and 6."""
    x = (1 - p) / p  # e^ε1
    triples = local_triples(held, noisy, owned)
    none, one = triples[0], [Fraction(t) for t in triples[1]]
    t0 = proposition_2(none[0], none[1], none[2], none[3], x)
    t1 = proposition_5(one[0], one[1], one[2], x)
    # "S the number of 2-stars in G_i": all of them, closed ones and those of other owners too.
    t2 = proposition_6(triples[2][1], held.wedges, p)
    return t0 + t1 + t2 + triples[3][0]
