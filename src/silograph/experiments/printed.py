"""The paper's estimators exactly as printed, for the reproduction. **Most of them do not hold.**

S. Liu, Y. Cao, T. Murakami, W. Liu, S. P. Liew, T. Takahashi, J. Liu, M. Yoshikawa, *Federated
Graph Analytics with Differential Privacy*. Each function quotes what it implements, and says what
is wrong with it; ``tests/experiments/test_printed.py`` shows each one failing beside ours.

All work in exact fractions: x stands for e^ε, p for the flipping probability 1/(1 + x).
"""

import math
from collections.abc import Iterable
from fractions import Fraction

__all__ = [
    "algorithm_5",
    "binomial",
    "kstars",
    "proposition_1",
    "proposition_2",
    "proposition_2_matrix",
    "proposition_5",
    "proposition_6",
]


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
