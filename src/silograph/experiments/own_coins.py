"""Unions in which every silo tosses its own coin, drawn in the clear from their exact law.

The paper's Algorithms 1 and 3, as printed: each silo passes its own bit of a pair through
randomized response, and the results are OR-ed. A pair that k of m silos hold then shows 0 with
probability p^k·(1−p)^(m−k). **For experiments only.**
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.crypto.limbs import limbs
from silograph.experiments.federations import Federation
from silograph.graph.bitrows import BitRows
from silograph.graph.seeds import seed_bytes

__all__ = ["draw_own_coins", "shows_one"]


def shows_one(p: Fraction, holders: int, silos: int) -> Fraction:
    """The probability that such a pair shows 1.

    >>> shows_one(Fraction(1, 4), 1, 2)
    Fraction(13, 16)
    """
    return 1 - p**holders * (1 - p) ** (silos - holders)


def draw_own_coins(federation: Federation, p: Fraction, seed: int) -> BitRows:
    """One such union, at flipping probability p, as predictable as its seed."""
    silos, pairs = len(federation.silos), federation.whole.pairs
    # Pairs that nobody holds come from one channel; held ones are left at zero by it.
    rows = _core.draw_rows(
        federation.n,
        pairs,
        limbs(Fraction(0)),
        limbs(shows_one(p, 0, silos)),
        seed_bytes("own coins", seed),
    )
    shown = np.zeros(len(pairs), dtype=bool)
    for holders in range(1, silos + 1):
        places = np.flatnonzero(federation.holders == holders)
        if len(places):
            shown[places] = _coins(shows_one(p, holders, silos), len(places), holders, seed)
    return BitRows(rows | _core.rows_from_pairs(federation.n, pairs[shown]))


def _coins(probability: Fraction, count: int, holders: int, seed: int) -> NDArray[np.bool_]:
    """So many coins that show 1 with the exact probability."""
    ones = np.zeros(-(-count // 64) * 64, dtype=np.uint8)
    ones[:count] = 1
    drawn = _core.perturb(
        np.packbits(ones, bitorder="little").tobytes(),
        count,
        limbs(probability),
        limbs(Fraction(0)),
        seed_bytes(f"own coins of {holders}", seed),
    )
    bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8), count=count, bitorder="little")
    return bits.astype(np.bool_)
