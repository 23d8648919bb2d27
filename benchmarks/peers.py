"""`replace` at m = 4 on other libraries, cell by cell, for comparison: what peers would do.

Each silo encrypts or re-randomises every cell and gives one decryption share of it; nothing is
packed, proved or signed. Every pipeline checks that it opens the union.
"""

import os
import secrets
import time
from collections.abc import Callable
from typing import TypeVar

import gmpy2
import rbcl

__all__ = ["SILOS", "Clock", "Times", "finite_field", "sodium", "total"]

SILOS = 4

T = TypeVar("T")
Times = dict[str, tuple[float, float]]


class Clock:
    """The least work and wall time of each named step, in µs a cell."""

    def __init__(self) -> None:
        self.times: Times = {}

    def __call__(self, name: str, cells: int, step: Callable[[], T]) -> T:
        wall, work = time.perf_counter(), time.process_time()
        made = step()
        took = (time.process_time() - work, time.perf_counter() - wall)
        before = self.times.get(name, (float("inf"), float("inf")))
        self.times[name] = tuple(min(b, 1e6 * t / cells) for b, t in zip(before, took, strict=True))  # type: ignore[assignment]
        return made


def sodium(clock: Clock, count: int) -> None:
    """One round on ristretto255 of libsodium, through rbcl."""
    base = rbcl.crypto_scalarmult_ristretto255_base
    multiply = rbcl.crypto_scalarmult_ristretto255
    add, subtract = rbcl.crypto_core_ristretto255_add, rbcl.crypto_core_ristretto255_sub
    draw = rbcl.crypto_core_ristretto255_scalar_random
    one = base((1).to_bytes(32, "little"))
    secrets = [draw() for _ in range(SILOS)]
    joint = base(secrets[0])
    for secret in secrets[1:]:
        joint = add(joint, base(secret))

    def fresh(bit: int) -> tuple[bytes, bytes]:
        r = draw()
        hidden = multiply(r, joint)
        return base(r), add(hidden, one) if bit else hidden

    def renew(cell: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        r = draw()
        return add(cell[0], base(r)), add(cell[1], multiply(r, joint))

    bits = [[b & 1 for b in os.urandom(count)] for _ in range(SILOS)]
    cells = clock("first hop", count, lambda: [fresh(b) for b in bits[0]])
    for held in bits[1:]:
        before = cells
        cells = clock(
            "hop",
            count,
            lambda held=held, before=before: [
                fresh(1) if b else renew(c) for b, c in zip(held, before, strict=True)
            ],
        )
    shares = [
        clock("share", count, lambda s=s: [multiply(s, c[0]) for c in cells]) for s in secrets
    ]

    def combine() -> list[bool]:
        opened = []
        for (_, plain), parts in zip(cells, zip(*shares, strict=True), strict=True):
            rest = plain
            for part in parts:
                rest = subtract(rest, part)
            opened.append(rest == one)
        return opened

    found = clock("combine", count, combine)
    if found != [any(held) for held in zip(*bits, strict=True)]:
        raise SystemExit("the libsodium pipeline does not open the union")


def group_15() -> tuple[gmpy2.mpz, gmpy2.mpz]:
    """RFC 3526, group 15: a safe prime p of 3072 bits, from its definition, and (p − 1)/2."""
    with gmpy2.context(gmpy2.get_context(), precision=3200):
        pi = gmpy2.mpz(gmpy2.floor(gmpy2.const_pi() * (gmpy2.mpz(1) << 2942)))
    p = (1 << 3072) - (1 << 3008) - 1 + (1 << 64) * (pi + 1690314)
    order = (p - 1) // 2
    if not (gmpy2.is_prime(p) and gmpy2.is_prime(order) and gmpy2.powmod(2, order, p) == 1):
        raise SystemExit("this is not the group of RFC 3526")
    return p, order


def finite_field(clock: Clock, count: int) -> None:
    """One round of exponential ElGamal in 3072-bit group 15, exponents of 256 bits, by gmpy2."""
    p, _ = GROUP_15
    power = gmpy2.powmod
    one = gmpy2.mpz(2)

    def draw() -> int:
        return secrets.randbits(256) | 1 << 255

    keys = [draw() for _ in range(SILOS)]
    joint = power(2, sum(keys), p)

    def fresh(bit: int) -> tuple[gmpy2.mpz, gmpy2.mpz]:
        r = draw()
        hidden = power(joint, r, p)
        return power(2, r, p), hidden * one % p if bit else hidden

    def renew(cell: tuple[gmpy2.mpz, gmpy2.mpz]) -> tuple[gmpy2.mpz, gmpy2.mpz]:
        r = draw()
        return cell[0] * power(2, r, p) % p, cell[1] * power(joint, r, p) % p

    bits = [[b & 1 for b in os.urandom(count)] for _ in range(SILOS)]
    cells = clock("first hop", count, lambda: [fresh(b) for b in bits[0]])
    for held in bits[1:]:
        before = cells
        cells = clock(
            "hop",
            count,
            lambda held=held, before=before: [
                fresh(1) if b else renew(c) for b, c in zip(held, before, strict=True)
            ],
        )
    shares = [clock("share", count, lambda k=k: [power(c[0], k, p) for c in cells]) for k in keys]

    def combine() -> list[bool]:
        opened = []
        for (_, plain), parts in zip(cells, zip(*shares, strict=True), strict=True):
            rest = gmpy2.mpz(1)
            for part in parts:
                rest = rest * part % p
            opened.append(plain == rest * one % p)
        return opened

    found = clock("combine", count, combine)
    if found != [any(held) for held in zip(*bits, strict=True)]:
        raise SystemExit("the finite-field pipeline does not open the union")


GROUP_15 = group_15()


def total(times: Times, which: int = 0) -> float:
    """µs a cell over all silos: one first hop, m − 1 hops, m shares, one combination."""
    counts = {"first hop": 1, "hop": SILOS - 1, "share": SILOS, "combine": 1}
    return sum(count * times[name][which] for name, count in counts.items())
