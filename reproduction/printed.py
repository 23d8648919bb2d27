"""The paper's estimators exactly as printed, for the reproduction. **Most of them do not hold.**

S. Liu, Y. Cao, T. Murakami, W. Liu, S. P. Liew, T. Takahashi, J. Liu, M. Yoshikawa, *Federated
Graph Analytics with Differential Privacy*. Each function quotes what it implements, and says what
is wrong with it; ``tests/reproduction/test_printed.py`` shows each one failing beside ours.

All work in exact fractions: x stands for e^ε, p for the flipping probability 1/(1 + x).
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from silograph.dp.channel import Channel
from silograph.errors import ArgumentError
from silograph.estimators.release import Release
from silograph.graph.bits import BitRows
from silograph.graph.silo import Silo
from silograph.methods.featplus.answer import local_triples, node_owners, owned_nodes, row_kinds
from silograph.methods.featplus.noise import PAPER_SHARES

__all__ = [
    "algorithm_5",
    "binomial",
    "kstars",
    "meant_release",
    "printed_featplus",
    "printed_local_kstars",
    "printed_local_triangles",
    "proposition_1",
    "proposition_2",
    "proposition_2_matrix",
    "proposition_5",
    "proposition_6",
    "release_epsilon",
]


# --- Estimators -----------------------------------------------------------------------------------


def binomial(d: Fraction, k: int) -> Fraction:
    """C(d, k) for a d that need not be an integer."""
    return math.prod((d - i for i in range(k)), start=Fraction(1)) / math.factorial(k)


def proposition_1(noisy_degree: int, n: int, p: Fraction) -> Fraction:
    """ "d̃ = (d′ − np)/(1 − 2p)". There are n − 1 pairs at a node, not n: too small by p/(1−2p)."""
    return (noisy_degree - n * p) / (1 - 2 * p)


def kstars(noisy_degrees: Iterable[int], n: int, p: Fraction, k: int) -> Fraction:
    """§III-D: "we can obtain an unbiased estimation of k-stars, i.e., S = Σ C(d̃_i, k)".

    The binomial is convex, so that the noise of d̃ does not cancel: for k = 2 the result is too
    large by half the variance of every degree.
    """
    return sum((binomial(proposition_1(d, n, p), k) for d in noisy_degrees), Fraction(0))


def algorithm_5(degrees: Iterable[tuple[int, int]], n: int, p: Fraction, k: int) -> Fraction:
    """Lines 3–9 for one part U_i of (true degree in G_i, noisy degree outside G_i) pairs.

    As printed d1 and d2 are summed over **all** nodes of U_i before one binomial is taken: that
    counts the k-stars of a single node with everybody's edges.
    """
    pairs = list(degrees)
    d1 = sum(d for d, _ in pairs)
    d2 = sum(d for _, d in pairs)
    return binomial(d1 + proposition_1(d2, n, p), k)


def proposition_2(t0: int, t1: int, t2: int, t3: int, x: Fraction) -> Fraction:
    """ "T̃ = (−t0 + t1·e^ε − t2·e^2ε + t3·e^3ε)/(e^ε − 1)³". This one is right."""
    return (-t0 + t1 * x - t2 * x**2 + t3 * x**3) / (x - 1) ** 3


def proposition_2_matrix(x: Fraction) -> list[list[Fraction]]:
    """The proof's transition matrix, "1/(x+1)²". Its rows sum to x + 1: it should be 1/(x+1)³."""
    rows = [
        [x**3, 3 * x**2, 3 * x, Fraction(1)],
        [x**2, x**3 + 2 * x, 2 * x**2 + 1, x],
        [x, 2 * x**2 + 1, x**3 + 2 * x, x**2],
        [Fraction(1), 3 * x, 3 * x**2, x**3],
    ]
    return [[entry / (x + 1) ** 2 for entry in row] for row in rows]


def proposition_5(t0: Fraction, t1: Fraction, t2: Fraction, x: Fraction) -> Fraction:
    """T̃1 = (x+1)[x²t0 − x(x+1)t1 + (2x+1)T1] / ((x−1)(x²−2x−1)), with T1 = t2.

    The matrix it inverts has a wrong middle entry (1 + x for 1 + x²) and the first column of the
    inverse was taken for the last. It has a pole at x = 1 + √2.
    """
    bracket = x**2 * t0 - x * (x + 1) * t1 + (2 * x + 1) * t2
    return (x + 1) * bracket / ((x - 1) * (x**2 - 2 * x - 1))


def proposition_6(t2: int, wedges: int, p: Fraction) -> Fraction:
    """ "T̃2 = (T2 − S·p)/(1 − 2p)", S the number of 2-stars in G_i.

    Only the open 2-stars (third edge not in G_i) can be closed by a noisy edge.
    """
    return (t2 - wedges * p) / (1 - 2 * p)


# --------------------------------------------------------------------------------------------------
# feat+ as printed (Algorithms 4–6), as a whole, for the reproduction. **It does not hold.**
#
# S. Liu, Y. Cao, T. Murakami, W. Liu, S. P. Liew, T. Takahashi, J. Liu, M. Yoshikawa, *Federated
# Graph Analytics with Differential Privacy*, §IV. What is wrong is said where it stands; the sums
# run on the same kernels as ours, so that whole graphs take seconds.
#
# The global graph is given: Algorithm 3's, to the letter (``draws.draw_own_coins``) or as meant.
# One thing is not in the paper and is assumed here. The sensitivity Δ of the local answers, "the
# global sensitivity", is never given: it is taken to be that of the exact count when one edge
# changes, n − 2 for triangles and 2·C(n−2,k−1) for k-stars. (The reports of all silos together can
# change by more; see ``methods.featplus.noise``.)


def printed_featplus(
    silos: Sequence[Silo],
    noisy: BitRows,
    query: str,
    k: int | None,
    epsilon: float,
    seed: int,
    *,
    per_node: bool = False,
) -> float:
    """One run of Algorithm 4 with the paper's split .45/.1/.45 of epsilon.

    ``noisy`` is G′, line 1: FEAT(G, ε1), with ε1 from :func:`release_epsilon`. ``query`` is
    ``triangles`` or ``kstars``. ``per_node`` reads Algorithm 5 as it must have been meant, one
    binomial a node; as printed it takes one of all nodes of a part together.
    """
    if query not in ("triangles", "kstars") or (k is None) != (query == "triangles"):
        raise ArgumentError("the paper prints triangles, and kstars with a k")
    n, m = noisy.n, len(silos)
    second, third = (float(share) * epsilon for share in PAPER_SHARES[1:])
    p = Channel.symmetric(release_epsilon(epsilon)).p01
    draw = np.random.default_rng(seed)
    # Line 2: PartitionNode, "d′ ← d + Lap(m/ε2)". An edge changes two degrees: it costs 2·ε2.
    degrees = np.array([silo.degrees() for silo in silos], dtype=np.float64)
    owners = node_owners(degrees + draw.laplace(0.0, m / second, degrees.shape))
    total = 0.0
    for place, silo in enumerate(silos):
        held, owned = BitRows.from_pairs(n, silo.pairs), owned_nodes(owners, place)
        # Line 4: Q_i ← Query(G′, G_i, U_i); line 5: Q_i + Lap(Δ/ε3).
        if k is None:
            answer = printed_local_triangles(held, noisy, owned, p)
            sensitivity = n - 2
        else:
            answer = printed_local_kstars(held, noisy, owned, p, k, per_node=per_node)
            sensitivity = 2 * math.comb(n - 2, k - 1)
        total += float(answer) + draw.laplace(0.0, sensitivity / third)
    return total


def release_epsilon(epsilon: float) -> float:
    """ε1, the paper's part of epsilon for the release."""
    return float(PAPER_SHARES[0]) * epsilon


def meant_release(whole: Silo, epsilon: float, seed: int) -> BitRows:
    """Algorithm 3 as it is meant: one randomized response at ``epsilon`` on the union ``whole``."""
    return Release.draw(whole, Channel.symmetric(epsilon), seed).graph


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
