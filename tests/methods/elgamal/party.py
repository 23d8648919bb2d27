"""All silos of a run in one place, with seeds that a test fixes."""

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from silograph.methods.elgamal.cipher import (
    Decoder,
    JointKey,
    Member,
    Place,
    Run,
    SecretKey,
    Variant,
)

RUN = Run(b"run 1", b"roster of the tests")
decoder = cache(Decoder)


def seed(*what: object) -> bytes:
    """32 bytes that depend on what they are for."""
    return hashlib.sha256(repr(what).encode()).digest()


@dataclass(frozen=True)
class Party:
    """m silos that have agreed on a key."""

    key: JointKey
    secrets: tuple[SecretKey, ...]

    @property
    def m(self) -> int:
        return len(self.secrets)

    def collect(
        self,
        bits: list[bytes],
        count: int,
        variant: Variant,
        p: Fraction,
        b: Fraction = Fraction(0),
        *,
        chunk: int = 0,
        salt: object = 0,
    ) -> list[bytes]:
        """The cells after every hop, last the final ones."""
        seeds = [seed("hop", i, salt) for i in range(2 * self.m)]
        trace = [self.key.first_hop(bits[0], count, variant, p, chunk, seeds[0])]
        for i in range(1, self.m):
            place = Place(chunk, i)
            trace.append(self.key.hop(trace[-1], bits[i], variant, p, place, seeds[i]))
        if variant == "blinded":
            for i in range(self.m, 2 * self.m):
                trace.append(self.key.flip_hop(trace[-1], b, Place(chunk, i), seeds[i]))
        return trace

    def shares(self, cells: bytes, place: Place) -> list[bytes]:
        """Every silo's decryption shares."""
        return [
            self.key.share(secret, i, cells, place, seed("share", i))
            for i, secret in enumerate(self.secrets)
        ]

    def open(self, cells: bytes, place: Place) -> bytes:
        """The bits, through shares and proofs of all silos."""
        return self.key.combine(decoder(place.hops), cells, self.shares(cells, place), place.chunk)


def members(m: int, run: Run = RUN) -> tuple[list[SecretKey], list[Member]]:
    """Secret keys, and what their silos send."""
    secrets = [SecretKey(seed("key", i)) for i in range(m)]
    return secrets, [
        Member(b"silo %d" % i, s.public_key, s.prove(run, b"silo %d" % i, seed("proof", i)))
        for i, s in enumerate(secrets)
    ]


@cache
def party(m: int) -> Party:
    """The same m silos for every test that asks."""
    secrets, sent = members(m)
    return Party(JointKey.agree(RUN, sent), tuple(secrets))
