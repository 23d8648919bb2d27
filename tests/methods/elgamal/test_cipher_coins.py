"""The coins of every step, counted through encryption and decryption.

Limits are exact binomial quantiles, so that a right sampler fails a whole test at most once in
10^9 runs; seeds are fixed, so it does not fail at all. Every cell is counted over all chunks, every
chunk over all cells, and everything together.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from silograph.methods.elgamal.cipher import Place, Variant
from tests.methods.elgamal.party import party

FALSE_ALARM = 1e-9
COUNT = 67  # a block of 64 and three more: the last cells of a chunk count like the first
CHUNKS = 120
P = Fraction(3, 10)


def fits(ones: NDArray[np.bool_], p: Fraction) -> bool:
    """Whether the counts of every cell, of every chunk and of all are within exact limits."""
    chunks, cells = ones.shape
    counts = [(int(k), chunks) for k in ones.sum(axis=0)]
    counts += [(int(k), cells) for k in ones.sum(axis=1)]
    counts += [(int(ones.sum()), chunks * cells)]
    each = FALSE_ALARM / (2 * len(counts))
    return all(binom.ppf(each, n, float(p)) <= k <= binom.isf(each, n, float(p)) for k, n in counts)


def unpack(chunks: Iterable[bytes]) -> NDArray[np.bool_]:
    rows = np.array([np.frombuffer(chunk, np.uint8) for chunk in chunks])
    return np.unpackbits(rows, axis=1, count=COUNT, bitorder="little").astype(np.bool_)


def opened(bits: list[int], variant: Variant, p: Fraction, b: Fraction) -> NDArray[np.bool_]:
    """What every cell of every chunk opens to; silo i holds all pairs or none."""
    silos = party(len(bits))
    held = [(b"\xff" if x else b"\0") * 9 for x in bits]
    hops = 2 * len(bits) if variant == "blinded" else len(bits)
    return unpack(
        silos.open(silos.collect(held, COUNT, variant, p, b, chunk=c, salt=c)[-1], Place(c, hops))
        for c in range(CHUNKS)
    )


def printed(bits: list[int], p: Fraction) -> Fraction:
    """A zero comes out only where every silo's RR gives zero."""
    zero = Fraction(1)
    for x in bits:
        zero *= p if x else 1 - p
    return 1 - zero


def replaced(bits: list[int], p: Fraction) -> Fraction:
    """One RR, of the union."""
    return 1 - p if any(bits) else p


@pytest.mark.slow
@pytest.mark.parametrize(
    "bits", [[0, 0], [0, 1], *(pytest.param(b, marks=pytest.mark.whole) for b in ([1, 0], [1, 1]))]
)
def test_printed_and_replace_follow_their_channels(bits: list[int]) -> None:
    assert fits(opened(bits, "printed", P, Fraction(0)), printed(bits, P))
    assert fits(opened(bits, "replace", P, Fraction(0)), replaced(bits, P))


@pytest.mark.slow
@pytest.mark.parametrize("bits", [[0, 0], [0, 1], [1, 1]])
def test_blinded_flips_once_per_silo(bits: list[int]) -> None:
    b = Fraction(1, 5)
    p = (1 - (1 - 2 * b) ** 2) / 2
    assert fits(opened(bits, "blinded", Fraction(0), b), 1 - p if any(bits) else p)


def test_coins_of_different_chunks_hops_and_silos_are_not_the_same() -> None:
    """One seed for everything would still give fresh coins for every chunk and hop."""
    key, half, one = party(1).key, Fraction(1, 2), b"s" * 32

    def noise(chunk: int) -> tuple[bytes, bytes, bytes]:
        first = key.first_hop(bytes(16), 128, "replace", half, chunk, one)
        start = key.encrypt(bytes(16), 128, chunk, one)
        flipped = key.flip_hop(start, half, Place(chunk, 1), one)
        twice = key.flip_hop(flipped, half, Place(chunk, 2), one)
        return (
            party(1).open(first, Place(chunk, 1)),
            party(1).open(flipped, Place(chunk, 2)),
            party(1).open(twice, Place(chunk, 3)),
        )

    drawn = {bits for chunk in range(4) for bits in noise(chunk)}
    assert len(drawn | {bytes(16)}) == 13  # the same coins twice would cancel


def test_coins_do_not_repeat_within_a_chunk() -> None:
    """Coins are drawn 64 at a time; no two words of a chunk are the same."""
    key, half = party(1).key, Fraction(1, 2)
    noise = party(1).open(key.first_hop(bytes(64), 512, "replace", half, 0, b"s" * 32), Place(0, 1))
    assert len({noise[i : i + 8] for i in range(0, 64, 8)}) == 8


def test_a_step_that_is_done_again_on_other_cells_tosses_the_same_coins() -> None:
    """Noise cannot be averaged away by asking a silo again."""
    key, half = party(1).key, Fraction(1, 2)
    starts = [key.encrypt(bytes(16), 128, 0, bytes([k] * 32)) for k in range(3)]
    again = {
        party(1).open(key.flip_hop(start, half, Place(0, 1), b"s" * 32), Place(0, 2))
        for start in starts
    }
    assert len(again) == 1


@pytest.mark.parametrize(
    "bad",
    [
        lambda rng: rng.random((CHUNKS, COUNT)) < 0.345,
        lambda rng: rng.random((CHUNKS, COUNT)) < 0.255,
        lambda rng: (rng.random((CHUNKS, COUNT)) < 0.3) & (np.arange(COUNT) < COUNT - 1),
        lambda rng: np.repeat(rng.random((CHUNKS, 1)) < 0.3, COUNT, axis=1),
        lambda rng: np.repeat(rng.random((1, COUNT)) < 0.3, CHUNKS, axis=0),
    ],
    ids=["too many", "too few", "last cell left", "one coin per chunk", "one coin per cell"],
)
def test_the_limits_reject_a_bad_sampler(
    bad: Callable[[np.random.Generator], NDArray[np.bool_]],
) -> None:
    rng = np.random.default_rng(1)
    assert not fits(bad(rng), P)


@pytest.mark.slow
def test_the_limits_accept_a_good_sampler() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        assert fits(rng.random((CHUNKS, COUNT)) < 0.3, P)
