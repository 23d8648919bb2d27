"""`replace` at m = 4 on other libraries, cell by cell, for comparison: what peers would do.

Each silo encrypts or re-randomises every cell and gives one decryption share of it; nothing is
packed, proved or signed. Every pipeline checks that it opens the union.
"""

import secrets
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import gmpy2

from reproduction.elliptic_curves import draw
from reproduction.peer_libraries import SILOS, Group, Sodium, combine, first_hop, flags, hop, share

__all__ = ["SILOS", "Clock", "Times", "finite_field", "sodium", "total"]

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
    """One round on ristretto255 of libsodium."""
    _round(clock, _sodium(), count, "libsodium")


def finite_field(clock: Clock, count: int) -> None:
    """One round of exponential ElGamal in 3072-bit group 15, by gmpy2."""
    _round(clock, _field(), count, "finite-field")


def _round(clock: Clock, group: Group, count: int, name: str) -> None:
    held = draw(count)
    cells = clock("first hop", count, lambda: first_hop(group, held[0]))
    for own in held[1:]:
        before = cells
        cells = clock("hop", count, lambda own=own, before=before: hop(group, before, own))
    shares = [clock("share", count, lambda i=i: share(group, i, cells)) for i in range(SILOS)]
    if clock("combine", count, lambda: combine(group, cells, shares)) != flags(held):
        raise SystemExit(f"the {name} pipeline does not open the union")


@cache
def _sodium() -> Sodium:
    return Sodium()


@cache
def _field() -> "FiniteField":
    return FiniteField()


class FiniteField:
    """Exponential ElGamal in 3072-bit group 15, exponents of 256 bits, by gmpy2."""

    def __init__(self) -> None:
        self._p, _ = group_15()
        self._one = gmpy2.mpz(2)
        self._keys = [self._draw() for _ in range(SILOS)]
        self._joint = gmpy2.powmod(2, sum(self._keys), self._p)

    @staticmethod
    def _draw() -> int:
        return secrets.randbits(256) | 1 << 255

    def _zero(self) -> tuple[gmpy2.mpz, gmpy2.mpz]:
        r, p = self._draw(), self._p
        return gmpy2.powmod(2, r, p), gmpy2.powmod(self._joint, r, p)

    def fresh(self, bit: int) -> bytes:
        """A fresh encryption of a flag."""
        first, second = self._zero()
        return _encode(first, second * self._one % self._p if bit else second)

    def renew(self, cell: bytes) -> bytes:
        """The same flag, encrypted anew."""
        made = zip(self._zero(), _decode(cell), strict=True)
        return _encode(*(zero * given % self._p for zero, given in made))

    def share(self, silo: int, cell: bytes) -> bytes:
        """A silo's decryption share of a cell."""
        return _encode(gmpy2.powmod(_decode(cell)[0], self._keys[silo], self._p))

    def opens(self, cell: bytes, shares: Sequence[bytes]) -> bool:
        """Whether the flag of a cell is set, from the shares of all silos."""
        rest = self._one
        for part in shares:
            rest = rest * _decode(part)[0] % self._p
        return bool(_decode(cell)[1] == rest)


_NUMBER = 384  # bytes of 3072 bits


def _encode(*numbers: gmpy2.mpz) -> bytes:
    return b"".join(int(number).to_bytes(_NUMBER, "little") for number in numbers)


def _decode(raw: bytes) -> list[gmpy2.mpz]:
    places = range(0, len(raw), _NUMBER)
    return [gmpy2.mpz(int.from_bytes(raw[at : at + _NUMBER], "little")) for at in places]


def group_15() -> tuple[gmpy2.mpz, gmpy2.mpz]:
    """RFC 3526, group 15: a safe prime p of 3072 bits, from its definition, and (p − 1)/2."""
    with gmpy2.context(gmpy2.get_context(), precision=3200):
        pi = gmpy2.mpz(gmpy2.floor(gmpy2.const_pi() * (gmpy2.mpz(1) << 2942)))
    p = (1 << 3072) - (1 << 3008) - 1 + (1 << 64) * (pi + 1690314)
    order = (p - 1) // 2
    if not (gmpy2.is_prime(p) and gmpy2.is_prime(order) and gmpy2.powmod(2, order, p) == 1):
        raise SystemExit("this is not the group of RFC 3526")
    return p, order


def total(times: Times, which: int = 0) -> float:
    """µs a cell over all silos: one first hop, m − 1 hops, m shares, one combination."""
    counts = {"first hop": 1, "hop": SILOS - 1, "share": SILOS, "combine": 1}
    return sum(count * times[name][which] for name, count in counts.items())
