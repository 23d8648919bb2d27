"""`replace` at m = 4 on other libraries, cell by cell, for comparison: what peers would do.

Each silo encrypts or re-randomises every cell and gives one decryption share of it; nothing is
packed, proved or signed. Every pipeline checks that it opens the union.
"""

import secrets
from collections.abc import Sequence
from functools import cache

import gmpy2

from benchmarks.harness import Contest, Contestant
from reproduction.elliptic_curves import draw
from reproduction.peer_libraries import SILOS, Group, Sodium, combine, first_hop, flags, hop, share

__all__ = ["SILOS", "STEPS", "finite_field", "sodium", "total"]

#: How often each step is done for a cell, over all silos.
STEPS = {"first hop": 1, "hop": SILOS - 1, "share": SILOS, "combine": 1}


def sodium(contest: Contest, count: int) -> None:
    """One round on ristretto255 of libsodium."""
    _round(contest, _sodium(), count, "libsodium")


def finite_field(contest: Contest, count: int) -> None:
    """One round of exponential ElGamal in 3072-bit group 15, by gmpy2."""
    _round(contest, _field(), count, "finite-field")


def _round(contest: Contest, group: Group, count: int, name: str) -> None:
    held = draw(count)
    cells = contest.time("first hop", lambda: first_hop(group, held[0]), count)
    for own in held[1:]:
        before = cells
        cells = contest.time("hop", lambda own=own, before=before: hop(group, before, own), count)
    shares = [
        contest.time("share", lambda i=i: share(group, i, cells), count) for i in range(SILOS)
    ]
    if contest.time("combine", lambda: combine(group, cells, shares), count) != flags(held):
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


def total(contest: Contest) -> Contestant:
    """Seconds for a cell over all silos: the best of every step, as often as it is done."""
    steps = {name: contest[name] for name in STEPS}
    return Contestant(
        sum(STEPS[name] * found.wall for name, found in steps.items()),
        sum(STEPS[name] * found.work for name, found in steps.items()),
        min(found.runs for found in steps.values()),
    )
