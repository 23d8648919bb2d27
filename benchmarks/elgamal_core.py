"""Threshold ElGamal: work per cell of every step, and of a whole run beside libsodium.

Both run the same pipeline in this one process: `replace` at m = 4, first hop, three hops, a
decryption share from each silo, the sum and the bit. libsodium (from rbcl) opens every cell by
itself, as it has no batches; this project packs 16 cells, encodes in batches, and proves and
checks its shares as well, which libsodium's side leaves out.
"""

from benchmarks.harness import Benchmark, Contest, use_threads

THREADS = use_threads(2)

import os
import sys
from fractions import Fraction

from benchmarks.peers import SILOS, STEPS, sodium, total
from reproduction.elliptic_curves import Own
from silograph.methods.elgamal.cipher import Decoder, JointKey, Place, SecretKey

CELLS = 8192
SODIUM_CELLS = 256
ROUNDS = 7
P = Fraction(1, 21)


def silograph(contest: Contest, key: JointKey, secrets: list[SecretKey], decoder: Decoder) -> None:
    """One round of this project's pipeline, and of the steps that `replace` does not use."""
    held = [os.urandom(CELLS // 8) for _ in range(SILOS)]
    seeds = [os.urandom(32) for _ in range(2 * SILOS)]
    cells = contest.time(
        "first hop", lambda: key.first_hop(held[0], CELLS, "replace", P, 0, seeds[0]), CELLS
    )
    for i in range(1, SILOS):
        before, at = cells, Place(0, i)
        cells = contest.time(
            "hop",
            lambda i=i, before=before, at=at: key.hop(before, held[i], "replace", P, at, seeds[i]),
            CELLS,
        )
    last = Place(0, SILOS)
    contest.time("flip hop", lambda: key.flip_hop(cells, P, last, seeds[0]), CELLS)
    shares = [
        contest.time(
            "share", lambda i=i: key.share(secrets[i], i, cells, last, seeds[SILOS + i]), CELLS
        )
        for i in range(SILOS)
    ]
    contest.time("combine", lambda: key.combine(decoder, cells, shares, 0), CELLS)


def main() -> int:
    bench = Benchmark("elgamal", __doc__, THREADS)
    bench.start()
    ours, theirs = bench.contest("Silograph"), bench.contest("libsodium")
    own, tables = Own(), bench.contest("table of sums")
    decoder = Decoder(SILOS)
    tables.race(2, {"made": lambda: Decoder(SILOS)})
    for _ in range(ROUNDS):
        silograph(ours, own.key, own.secrets, decoder)
        sodium(theirs, SODIUM_CELLS)
    rows = [
        (name, str(STEPS.get(name, "–")), f"{1e6 * found.wall:.1f}", f"{1e6 * found.work:.1f}",
         f"{1e6 * theirs[name].work:.1f}" if name in theirs else "")
        for name, found in ours.items()
    ]  # fmt: skip
    all_ours, all_theirs = total(ours), total(theirs)
    whole = (all_ours.wall, all_ours.work, all_theirs.work)
    rows.append(("replace, all silos", "", *(f"{1e6 * each:.1f}" for each in whole)))
    title = f"µs a cell, m = {SILOS}, {CELLS:,} cells, best of {ROUNDS}"
    bench.table("steps", title, ("step", "times", "wall", "CPU", "libsodium's CPU"), rows)
    bench.console.print(f"table of sums: {1e3 * tables['made'].wall:.0f} ms")
    ratio = all_theirs.work / all_ours.work
    bench.goal("libsodium does so many times the work", ratio, least=3)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
