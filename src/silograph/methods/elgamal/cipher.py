"""Threshold (m-of-m) ElGamal on ristretto255: bits that silos rewrite in turn and open together.

What
    A *cell* is an encryption of one bit under the sum of all silos' keys; it has 64 bytes. A
    *chunk* is a sequence of cells. The first silo makes the cells, every later one rewrites all of
    them, and all silos together open them, 16 cells per decryption.
Guarantee
    Fewer than m silos learn nothing from cells (decisional Diffie–Hellman on ristretto255, random
    oracle for the proofs). Every cell that a step puts out is re-randomised: it does not show
    whether it was kept, overwritten or flipped. The duration of a step does not depend on bits,
    masks or coins. A wrong decryption share is refused, and the error names its silo.
Preconditions
    Seeds are 32 fresh bytes for every silo, run, chunk and hop, and are reused only for the same
    step on the same bytes. Silos are semi-honest between key agreement and decryption: a silo that
    encrypts anything but a bit spoils the answer. The caller makes sure that a silo opens only the
    final cells, and each of them once.
Hops
    The plaintext unit doubles publicly at every hop, which allows points to be encoded in batches.
    So each step is told how many hops its cells have made: 1 after the first hop.
Reference
    The paper's Algorithm 3; T. ElGamal, IEEE Trans. Inf. Theory 31 (1985); D. Chaum and
    T. P. Pedersen, CRYPTO 1992; RFC 9496.

Bits are packed eight per byte, least significant first, as in a triangle of pairs.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, NamedTuple, NoReturn

from silograph import _core
from silograph.dp.channel import limbs
from silograph.errors import (
    ArgumentError,
    CryptoError,
    DecryptionError,
    EncodingError,
    KeyRefusedError,
    ProofError,
)

__all__ = [
    "CELL_BYTES",
    "PACKED",
    "PROOF_BYTES",
    "Decoder",
    "JointKey",
    "Member",
    "Place",
    "Run",
    "SecretKey",
    "Variant",
    "share_bytes",
]

CELL_BYTES: Final = 64
PROOF_BYTES: Final = 64
PACKED: Final = 16
_POINT_BYTES = 32
_SEED_BYTES = 32
_LARGEST_DENOMINATOR = 2**16000

Variant = Literal["printed", "replace", "blinded"]

_KINDS: dict[str, type[CryptoError]] = {
    "encoding": EncodingError,
    "proof": ProofError,
    "key": KeyRefusedError,
    "plaintext": DecryptionError,
}


def share_bytes(count: int) -> int:
    """The length of one silo's decryption shares of ``count`` cells, including the proof.

    >>> share_bytes(16), share_bytes(17)
    (96, 128)
    """
    return -(-count // PACKED) * _POINT_BYTES + PROOF_BYTES


@dataclass(frozen=True)
class Run:
    """The values that proofs of possession are bound to: the run, and a digest of the roster."""

    id: bytes
    roster: bytes


class Member(NamedTuple):
    """What a silo sends before a run: its identity, its public key and its proof of possession."""

    identity: bytes
    key: bytes
    proof: bytes


class Place(NamedTuple):
    """The chunk that cells belong to, and the number of hops that they have made."""

    chunk: int
    hops: int


class SecretKey:
    """A silo's secret key of one run. It cannot be printed, copied or pickled.

    It is wiped from memory when it is garbage-collected. A silo that must restart keeps the seed.
    """

    __slots__ = ("_inner",)

    def __init__(self, seed: bytes) -> None:
        self._inner = _core.ElgamalSecretKey.from_seed(_seed(seed))

    @property
    def public_key(self) -> bytes:
        """sk·G, 32 bytes."""
        return self._inner.public_key()

    def prove(self, run: Run, identity: bytes, seed: bytes) -> bytes:
        """A proof of knowledge of this key, bound to run, roster, identity and key."""
        return self._inner.prove((run.id, run.roster), identity, _seed(seed))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret key cannot be written out; keep its seed")

    def __repr__(self) -> str:
        return "SecretKey(…)"


class Decoder:
    """The table of all sums of 16 bits, for cells that have made ``hops`` hops.

    It takes tens of milliseconds and about 3 MB. It is made once per run and used for all chunks.
    """

    __slots__ = ("_inner",)

    def __init__(self, hops: int) -> None:
        self._inner = _core.ElgamalDecoder(_count("hops", hops, 2**16))

    @property
    def hops(self) -> int:
        """The number of hops that the cells have made."""
        return self._inner.hops

    def __repr__(self) -> str:
        return f"Decoder(hops={self.hops})"


class JointKey:
    """The sum of all silos' public keys, and every step that is done under it.

    It is made by :meth:`agree`, once per run, and holds a table of the key's multiples.
    """

    __slots__ = ("_inner",)

    def __init__(self, inner: _core.ElgamalJointKey) -> None:
        self._inner = inner

    @classmethod
    def agree(cls, run: Run, members: Sequence[Member]) -> "JointKey":
        """Check all keys and proofs, in silo order, and sum the keys.

        Raises :class:`KeyRefusedError` if a key is the identity element or repeated, or if keys
        cancel; :class:`EncodingError` if bytes do not encode a key or proof; and
        :class:`ProofError` if a proof is not for this run, roster, identity and key. Errors name
        the silo.
        """
        with _refusals():
            return cls(_core.ElgamalJointKey.agree((run.id, run.roster), list(members)))

    @property
    def silos(self) -> int:
        """The number of silos."""
        return self._inner.silos

    @property
    def public_key(self) -> bytes:
        """The sum of all public keys, 32 bytes."""
        return self._inner.public_key()

    @property
    def binding(self) -> bytes:
        """A digest of run, roster, identities and keys; equal for all who agreed on the same."""
        return self._inner.binding()

    def encrypt(self, bits: bytes, count: int, chunk: int, seed: bytes) -> bytes:
        """Fresh encryptions of ``count`` bits; the cells have made one hop."""
        with _refusals():
            return self._inner.encrypt(bits, _count("count", count), _chunk(chunk), _seed(seed))

    def overwrite(
        self, cells: bytes, mask: bytes, values: bytes, place: Place, seed: bytes
    ) -> bytes:
        """A fresh encryption of the value if the mask is set, else the cell re-randomised."""
        with _refusals():
            return self._inner.overwrite(cells, mask, values, _place(place), _seed(seed))

    def flip(self, cells: bytes, coins: bytes, place: Place, seed: bytes) -> bytes:
        """Enc(1) − c if the coin is set, else c; re-randomised in both cases."""
        with _refusals():
            return self._inner.flip(cells, coins, _place(place), _seed(seed))

    def first_hop(
        self, bits: bytes, count: int, variant: Variant, p: Fraction, chunk: int, seed: bytes
    ) -> bytes:
        """The first silo's step: Enc(RR(bit)), where RR flips with probability exactly p.

        In ``blinded`` the noise is added in pass 2, so p must be 0.
        """
        name, odds = _noise(variant, p)
        with _refusals():
            return self._inner.first_hop(
                bits, _count("count", count), name, odds, _chunk(chunk), _seed(seed)
            )

    def hop(
        self, cells: bytes, bits: bytes, variant: Variant, p: Fraction, place: Place, seed: bytes
    ) -> bytes:
        """The step of a later silo.

        ``printed``: Enc(1) if RR(bit) = 1 (lines 10–15 of Algorithm 3). ``replace``: Enc(RR(1)) if
        the silo holds the pair. ``blinded``: Enc(1) if the silo holds the pair (p must be 0). All
        other cells are re-randomised. RR flips with probability exactly p.
        """
        name, odds = _noise(variant, p)
        with _refusals():
            return self._inner.hop(cells, bits, name, odds, _place(place), _seed(seed))

    def flip_hop(self, cells: bytes, b: Fraction, place: Place, seed: bytes) -> bytes:
        """A silo's step in pass 2 of ``blinded``: flip each cell with probability exactly b."""
        odds = _probability("b", b)
        with _refusals():
            return self._inner.flip_hop(cells, odds, _place(place), _seed(seed))

    def share(self, secret: SecretKey, silo: int, cells: bytes, place: Place, seed: bytes) -> bytes:
        """A silo's decryption shares of the final cells, with a proof that they are right.

        The silo forms the packed points itself. Raises :class:`KeyRefusedError` if the secret key
        does not belong to silo ``silo``.
        """
        with _refusals():
            return self._inner.share(
                secret._inner, _count("silo", silo), cells, _place(place), _seed(seed)
            )

    def combine(self, decoder: Decoder, cells: bytes, shares: Sequence[bytes], chunk: int) -> bytes:
        """Check all silos' shares, in silo order, and open the chunk to one bit per cell.

        Raises :class:`EncodingError` or :class:`ProofError` with the silo whose shares are wrong
        or belong to other cells, another chunk or another run. Raises :class:`DecryptionError`
        with the first cell of a group that does not hold bits.
        """
        with _refusals():
            return self._inner.combine(decoder._inner, cells, list(shares), _chunk(chunk))

    def __repr__(self) -> str:
        return f"JointKey(silos={self.silos})"


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn the errors of the Rust core into the errors of :mod:`silograph.errors`."""
    try:
        yield
    except _core.ElgamalError as error:
        code, message, silo, index = error.args
        if code not in _KINDS:
            raise ArgumentError(message) from None
        raise _KINDS[code](message, silo=silo, index=index) from None


def _seed(seed: bytes) -> bytes:
    if not isinstance(seed, bytes) or len(seed) != _SEED_BYTES:
        raise ArgumentError("a seed is 32 bytes")
    return seed


def _count(name: str, value: int, limit: int = 2**63) -> int:
    if not 0 <= value < limit:
        raise ArgumentError(f"{name} is {value}; it must be from 0 to {limit - 1}")
    return value


def _chunk(chunk: int) -> int:
    return _count("chunk", chunk, 2**64)


def _place(place: Place) -> tuple[int, int]:
    hops = _count("hops", place.hops, 2**16)
    if hops == 0:
        raise ArgumentError("hops is 0; cells have made at least one hop")
    return _chunk(place.chunk), hops


def _probability(name: str, value: Fraction) -> tuple[bytes, bytes]:
    if not 0 <= value <= 1 or value.denominator > _LARGEST_DENOMINATOR:
        raise ArgumentError(f"{name} must be a fraction from 0 to 1, of at most 16,000 bits")
    return limbs(value)


def _noise(variant: Variant, p: Fraction) -> tuple[str, tuple[bytes, bytes]]:
    if variant not in ("printed", "replace", "blinded"):
        raise ArgumentError(f"variant is {variant!r}; it must be 'printed', 'replace' or 'blinded'")
    if variant == "blinded" and p != 0:
        raise ArgumentError("p must be 0 in blinded: its noise is drawn by flip_hop")
    return variant, _probability("p", p)
