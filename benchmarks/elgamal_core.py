"""Threshold ElGamal: work per cell of every step, and of a whole run beside libsodium.

Both run the same pipeline in this one process: `replace` at m = 4, first hop, three hops, a
decryption share from each silo, the sum and the bit. libsodium (from rbcl) opens every cell by
itself, as it has no batches; this project packs 16 cells, encodes in batches, and proves and
checks its shares as well, which libsodium's side leaves out. Work is processor time over all
threads, best of several rounds taken in turns; exits with an error where the ratio is missed.
"""

import os
import sys
import time
from fractions import Fraction

from rich.console import Console
from rich.table import Table

from benchmarks.peers import SILOS, Clock, sodium, total
from reproduction.elliptic_curves import Own
from silograph.methods.elgamal.cipher import Decoder, JointKey, Place, SecretKey

CELLS = 8192
SODIUM_CELLS = 256
ROUNDS = 7
RATIO = 3.0
P = Fraction(1, 21)


def silograph(clock: Clock, key: JointKey, secrets: list[SecretKey], decoder: Decoder) -> None:
    """One round of this project's pipeline, and of the steps that `replace` does not use."""
    held = [os.urandom(CELLS // 8) for _ in range(SILOS)]
    seeds = [os.urandom(32) for _ in range(2 * SILOS)]
    cells = clock(
        "first hop", CELLS, lambda: key.first_hop(held[0], CELLS, "replace", P, 0, seeds[0])
    )
    for i in range(1, SILOS):
        before, at = cells, Place(0, i)
        cells = clock(
            "hop",
            CELLS,
            lambda i=i, before=before, at=at: key.hop(before, held[i], "replace", P, at, seeds[i]),
        )
    last = Place(0, SILOS)
    clock("flip hop", CELLS, lambda: key.flip_hop(cells, P, last, seeds[0]))
    shares = [
        clock("share", CELLS, lambda i=i: key.share(secrets[i], i, cells, last, seeds[SILOS + i]))
        for i in range(SILOS)
    ]
    clock("combine", CELLS, lambda: key.combine(decoder, cells, shares, 0))


def main() -> int:
    """Prints the tables; 1 where the ratio is missed."""
    ours, theirs = Clock(), Clock()
    own, start = Own(), time.perf_counter()
    decoder = Decoder(SILOS)
    table_ms = 1e3 * (time.perf_counter() - start)
    for _ in range(ROUNDS):
        silograph(ours, own.key, own.secrets, decoder)
        sodium(theirs, SODIUM_CELLS)
    table = Table(title=f"µs a cell, m = {SILOS}, {CELLS:,} cells, best of {ROUNDS}")
    for name in ("step", "times", "work", "wall", "libsodium work"):
        table.add_column(name, justify="right")
    times = {"first hop": "1", "hop": f"{SILOS - 1}", "share": f"{SILOS}", "combine": "1"}
    for name, (work, wall) in ours.times.items():
        other = f"{theirs.times[name][0]:.1f}" if name in theirs.times else ""
        table.add_row(name, times.get(name, "–"), f"{work:.1f}", f"{wall:.1f}", other)
    sums = total(ours.times), total(ours.times, 1), total(theirs.times)
    table.add_row("replace, all silos", "", *(f"{value:.1f}" for value in sums), style="bold")
    Console().print(table)
    ratio = sums[2] / sums[0]
    print(
        f"libsodium does {ratio:.2f} times the work (≥ {RATIO:g}); table of sums {table_ms:.0f} ms"
    )
    return 0 if ratio >= RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
