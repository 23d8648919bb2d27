"""The private unions: masked against the clock and the machine, ElGamal beside two peers.

1. `masked` end to end with all parties in one process: from four silos to the release of 200
   million and of 5 billion pairs, and its edges, 2-stars and triangles with error bars.
2. `masked` at m = 4, ε = 3, t = 1 through the whole simulated protocol, with envelopes and
   signatures: time for a pair and silo, its growth, its parts, what the keystream and the memory of
   this machine would allow, and the wire beside the one that it replaced.
3. `elgamal/replace` at m = 4 through its machines, beside the same pipeline on libsodium and on
   3072-bit finite-field ElGamal, which decrypt every cell by itself.
"""

from benchmarks.harness import Benchmark, apart, example, limits, peak, use_threads

THREADS = use_threads(2)

import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import TypeVar

from benchmarks.peers import finite_field, sodium, total
from silograph import Federation, Silo, clustered_power_law, split
from silograph import _core as core
from silograph.dp.channel import limbs
from silograph.graph.bits import BitRows, PairBits, triangle_bytes
from silograph.messages.envelope import Binding, Envelope, open_envelope, seal
from silograph.messages.identity import COORDINATOR, Identity, Member, Roster
from silograph.methods.masked.machines import chunk_pairs, packed_bytes
from silograph.methods.masked.noise import MaskedNoise
from silograph.methods.union import settle_union

SILOS, EPSILON, COLLUSION = 4, 3.0, 1
SMALL, LARGE = 8_192, 16_384
#: Nodes of whole runs, and the most MiB and seconds of each.
WHOLE = {20_000: (400.0, 10.0), 100_000: (1_600.0, 90.0)}
GOAL_NS, GOAL_GROWTH, GOAL_RATIO = 3.0, 4.4, 3.0
GOAL_BYTES = 0.58
ROUNDS = 9
#: Nodes of the ElGamal union, and cells and rounds of the peers.
ELGAMAL_NODES, SODIUM_CELLS, FIELD_CELLS, ELGAMAL_ROUNDS = 200, 256, 8, 4

T = TypeVar("T")


def federation(n: int) -> Federation:
    return Federation.simulate(split(clustered_power_law(n, seed=1), SILOS))


def pairs_of(n: int) -> int:
    return n * (n - 1) // 2


# --- 1. end to end --------------------------------------------------------------------------------

Steps = dict[str, tuple[float, float, float]]


def from_silos_to_answers(n: int) -> Steps:
    """The wall time and work of every step, and the MiB at the peak after it."""
    warnings.simplefilter("ignore")  # no ledger
    steps: Steps = {"import": (0.0, 0.0, peak())}

    def step(name: str, work: Callable[[], T]) -> T:
        wall, busy = time.perf_counter(), time.process_time()
        found = work()
        steps[name] = time.perf_counter() - wall, time.process_time() - busy, peak()
        return found

    fed = step("graph and silos", lambda: federation(n))
    release = step("union", lambda: fed.collect(EPSILON, "masked", COLLUSION, progress=False))
    step("edges", release.edges)
    step("2-stars", lambda: release.kstars(2))
    step("triangles", release.triangles)
    return steps


def end_to_end(bench: Benchmark) -> None:
    for n, (most, longest) in WHOLE.items():
        title = f"masked, end to end: {n:,} nodes, {pairs_of(n):,} pairs"
        contest, runs = bench.contest(title), []
        for _ in range(2):
            steps = apart(from_silos_to_answers, n)
            ours = [steps[name] for name in ("union", "edges", "2-stars", "triangles")]
            wall, work = (sum(found[i] for found in ours) for i in (0, 1))
            contest.note("from silos to answers", wall, work)
            runs.append((wall, work, steps))
        wall, work, steps = min(runs, key=lambda run: run[0])
        rows = [
            (name, f"{took:.1f} s", f"{busy:.1f} s", f"{size:,.0f}")
            for name, (took, busy, size) in steps.items()
        ]
        rows.append(("from silos to answers", f"{wall:.1f} s", f"{work:.1f} s", ""))
        bench.table(f"whole-{n}", title, ("step", "wall", "CPU", "MiB at the peak"), rows)
        bench.goal(f"{n:,} nodes: MiB at the peak", steps["triangles"][2], most=most)
        bench.goal(f"{n:,} nodes: seconds from silos to answers", wall, most=longest)


# --- 2. masked ------------------------------------------------------------------------------------


def parts(silos: list[Silo], noise: MaskedNoise) -> dict[str, Callable[[], object]]:
    """Each part of a run by itself, over one chunk of every silo."""
    size = min(chunk_pairs(noise.q), pairs_of(SMALL))
    maskers = [core.Masker(os.urandom(32), noise.q, limbs(noise.b)) for _ in silos]
    shared = [
        a.agree([(b.public(), b"benchmark", i < j) for j, b in enumerate(maskers) if i != j])
        for i, a in enumerate(maskers)
    ]
    holdings = [PairBits(silo) for silo in silos]
    bits = [held.chunk(0, size) for held in holdings]
    key, keys = Identity(os.urandom(32)), [Identity(os.urandom(32)) for _ in silos]
    members = tuple(Member(f"silo {i}", identity.public) for i, identity in enumerate(keys))
    binding = Binding(bytes(16), bytes(32), Roster(Member("coordinator", key.public), members))

    def contribute() -> list[bytes]:
        made = zip(maskers, shared, bits, strict=True)
        return [masker.contribute(masks, 0, held, size) for masker, masks, held in made]

    vectors = contribute()

    def envelopes() -> None:
        for place, (identity, vector) in enumerate(zip(keys, vectors, strict=True)):
            raw = seal(binding, identity, Envelope("chunk", place, COORDINATOR, 0, vector))
            open_envelope(binding, raw, receiver=COORDINATOR)

    def add_up() -> bytes:
        total = core.MaskedSum(noise.q, size)
        for vector in vectors:
            total.add(vector)
        return total.open()

    # Rows are made once a run; here of as many nodes as have about a chunk of pairs.
    n = int((2 * size) ** 0.5)
    triangle = add_up()[: triangle_bytes(n)]
    return {
        "contributions and masks": contribute,
        "bits of the silo": lambda: [held.chunk(0, size) for held in holdings],
        "hashing and signing": envelopes,
        "sum and opening": add_up,
        "rows of the release": lambda: BitRows.from_triangle(n, triangle),
    }


def bytes_a_pair(q: int) -> float:
    """Of a silo's message, in a whole chunk."""
    return packed_bytes(q, chunk_pairs(q)) / chunk_pairs(q)


def keystream_bytes(q: int, silos: int) -> float:
    """Keystream for one pair of one silo: its own element, its masks, and its coin."""
    fitting = [d for d in range(1, 17) if q**d <= 65_536 and 65_536 % q**d <= 4_096]
    digits = max(fitting, default=1)
    element = 2 / digits * 65_536 / (65_536 - 65_536 % q**digits)
    # Eight digits of all coins; then words of 64 until each coin is decided.
    words = 8 + sum(1 - (1 - 0.5**i) ** 64 for i in range(8, 64))
    return silos * element + words * 8 / 64


def masked(bench: Benchmark) -> None:
    noise = settle_union("masked", EPSILON, SILOS, COLLUSION).noise
    if not isinstance(noise, MaskedNoise):
        raise SystemExit("the plan is of another protocol")
    feds = {n: federation(n) for n in (SMALL, LARGE)}
    runs = {
        f"whole run, n = {n:,}": lambda fed=fed: fed.collect(EPSILON, "masked", COLLUSION)
        for n, fed in feds.items()
    }
    whole = bench.contest("masked")
    whole.race(ROUNDS, runs)
    small, large = (whole[name] for name in runs)
    pieces = bench.contest("parts of masked")
    pieces.race(ROUNDS, parts(list(feds[SMALL].silos), noise))
    all_work = sum(found.work for _, found in pieces.items())
    chunk = 1e9 / (SILOS * min(chunk_pairs(noise.q), pairs_of(SMALL)))
    rows = [
        (name, f"{chunk * found.wall:.2f}", f"{chunk * found.work:.2f}",
         f"{100 * found.work / all_work:.0f} %")
        for name, found in pieces.items()
    ]  # fmt: skip
    for n, name in zip((SMALL, LARGE), runs, strict=True):
        each = 1e9 / (SILOS * pairs_of(n))
        rows.append((name, *(f"{each * t:.2f}" for t in (whole[name].wall, whole[name].work)), ""))
    title = f"ns for a pair and silo, m = {SILOS}, ε = {EPSILON:g}, t = {COLLUSION}, q = {noise.q}"
    bench.table("masked", title, ("part", "wall", "CPU", "share of CPU"), rows)
    bench.console.print("parts are measured one by one; in a run they overlap")
    work = large.work / (SILOS * pairs_of(LARGE))
    allowed(bench, noise.q, work)
    former(bench)
    bench.goal("ns of work for a pair and silo", 1e9 * work, most=GOAL_NS)
    bench.goal("bytes a pair", bytes_a_pair(noise.q), most=GOAL_BYTES)
    more = pairs_of(LARGE) / pairs_of(SMALL)
    bench.goal(f"{more:.2f} × the pairs: times the work", large.work / small.work, most=GOAL_GROWTH)


def former(bench: Benchmark) -> None:
    """The packed wire beside the one before it, and the keystreams to choose from."""
    rows = [line.rsplit(": ", 1) for line in example("wire").splitlines()]
    bench.table("wire", "before and after", ("one thread, q = 21", ""), rows)


def allowed(bench: Benchmark, q: int, work: float) -> None:
    """What the machine would allow, were there nothing else to do; ``work`` for a pair and silo."""
    rates, drawn = limits(), keystream_bytes(q, SILOS)
    # Masked elements are written and hashed by the silo, read and hashed by the coordinator.
    moved = 2 * bytes_a_pair(q)
    sizes = {
        "AES-256-CTR (OpenSSL)": drawn,
        "ChaCha20 (OpenSSL)": drawn,
        "keystream": drawn,
        "SHA-256 (OpenSSL)": moved,
        "BLAKE3": moved,
        "memory": moved,
    }
    fastest = max(sizes, key=lambda name: sizes[name] == drawn and rates[name])
    rows = []
    for name, size in sizes.items():
        least = size / rates[name]
        # Only the fastest keystream is a limit, and the hash that is used.
        limit = name in (fastest, "BLAKE3", "memory")
        reached = bench.share(name, least, work) if limit else ""
        rows.append(
            (name, f"{rates[name] / 1e9:.2f}", f"{size:.2f}", f"{1e9 * least:.2f}", reached)
        )
    title = "what a core of this machine allows, for a pair and silo"
    bench.table("limits", title, ("resource", "GB/s", "bytes", "ns", "reached"), rows)


# --- 3. ElGamal -----------------------------------------------------------------------------------


def elgamal(bench: Benchmark) -> None:
    fed, cells = federation(ELGAMAL_NODES), pairs_of(ELGAMAL_NODES)
    whole, theirs = bench.contest("elgamal/replace"), bench.contest("libsodium")
    field = bench.contest("3072-bit finite field")
    for _ in range(ELGAMAL_ROUNDS):
        whole.time("whole", lambda: fed.collect(EPSILON, "elgamal/replace", 0), cells)
        sodium(theirs, SODIUM_CELLS)
        finite_field(field, FIELD_CELLS)
    ours = whole["whole"]
    rows = [
        (name, f"{count:,}", f"{1e6 * found.wall:,.1f}", f"{1e6 * found.work:,.1f}",
         f"{found.work / ours.work:,.1f}")
        for name, count, found in (
            ("Silograph, whole protocol", cells, ours),
            ("libsodium (rbcl)", SODIUM_CELLS, total(theirs)),
            ("3072-bit finite field (gmpy2)", FIELD_CELLS, total(field)),
        )
    ]  # fmt: skip
    title = f"elgamal/replace, m = {SILOS}: µs for a cell, over all silos"
    bench.table("elgamal", title, ("implementation", "cells", "wall", "CPU", "× Silograph"), rows)
    ratio = total(theirs).work / ours.work
    bench.goal("libsodium does so many times the work", ratio, least=GOAL_RATIO)


def main() -> int:
    bench = Benchmark("union", __doc__, THREADS)
    bench.start()
    warnings.simplefilter("ignore")  # no ledger, and what replace does not protect
    end_to_end(bench)
    masked(bench)
    elgamal(bench)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
