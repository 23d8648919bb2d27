"""libsodium, OpenSSL and MCL: threshold ElGamal on each, through ctypes. **For timing only.**

Each is driven as its users would drive it for constant-time work, one point at a time (none has
batches for this): libsodium on ristretto255, OpenSSL on P-256, its fastest curve for which it has
general points, MCL on G1 of BN254, the only curve of its Python wheel. Keys are drawn by the
library itself. Return codes are not looked at in the steps that are timed; whoever times them
compares what was opened with the truth instead.

A call from Python has a price. ``idle=True`` makes the same steps with a C function that does
nothing in place of every timed one, so that the price can be measured and stated.
"""

import ctypes
import ctypes.util
import importlib
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, Protocol

from silograph.errors import ArgumentError

__all__ = [
    "PEERS",
    "SILOS",
    "Group",
    "Mcl",
    "Openssl",
    "Sodium",
    "combine",
    "first_hop",
    "flags",
    "hop",
    "open_union",
    "share",
]


# --- The paper's private union cell by cell, on the group of any library: what a peer would do ----
#
# A *cell* is an encryption of one flag under the sum of all silos' keys. The first silo encrypts
# its flags; each later one encrypts a 1 where it holds the pair, and re-randomises the cell
# elsewhere; each silo gives one decryption share of every cell; the shares open it. (The paper's
# PSU, steps 3 to
# 5. It copies kept cells, but encrypts all of its own: the same multiplications.) Nothing is
# packed, proved or signed. Cells and shares travel as bytes, so every silo decodes what it gets.

#: Silos in every measurement of a library.
SILOS = 4


class Group(Protocol):
    """ElGamal under the joint key of :data:`SILOS` silos, on some library."""

    def fresh(self, bit: int) -> bytes:
        """A fresh encryption of a flag."""

    def renew(self, cell: bytes) -> bytes:
        """The same flag, encrypted anew."""

    def share(self, silo: int, cell: bytes) -> bytes:
        """A silo's decryption share of a cell."""

    def opens(self, cell: bytes, shares: Sequence[bytes]) -> bool:
        """Whether the flag of a cell is set, from the shares of all silos."""


def first_hop(group: Group, held: bytes) -> list[bytes]:
    """The first silo's step; ``held`` has a byte of 0 or 1 for every pair."""
    return [group.fresh(bit) for bit in held]


def hop(group: Group, cells: Sequence[bytes], held: bytes) -> list[bytes]:
    """A later silo's step."""
    return [
        group.fresh(1) if bit else group.renew(cell)
        for cell, bit in zip(cells, held, strict=True)
    ]  # fmt: skip


def share(group: Group, silo: int, cells: Sequence[bytes]) -> list[bytes]:
    """A silo's decryption shares of all cells."""
    return [group.share(silo, cell) for cell in cells]


def combine(group: Group, cells: Sequence[bytes], shares: Sequence[Sequence[bytes]]) -> list[bool]:
    """The flags, from every silo's shares."""
    each = zip(*shares, strict=True)
    return [group.opens(cell, parts) for cell, parts in zip(cells, each, strict=True)]


def open_union(group: Group, held: Sequence[bytes]) -> list[bool]:
    """All steps in order, for the flags that each silo holds."""
    cells = first_hop(group, held[0])
    for own in held[1:]:
        cells = hop(group, cells, own)
    shares = [share(group, silo, cells) for silo in range(len(held))]
    return combine(group, cells, shares)


def flags(held: Sequence[bytes]) -> list[bool]:
    """What the union must open to."""
    return [any(bits) for bits in zip(*held, strict=True)]


# --- Libraries ------------------------------------------------------------------------------------

_INT, _SIZE, _ADDRESS = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p


def _bind(
    library: ctypes.CDLL, signatures: Mapping[str, Sequence[Any]], idle: str = ""
) -> SimpleNamespace:
    """Functions with their types (the result's first), or one that does nothing for all of them.

    A C function without parameters ignores the arguments that it is called with.
    """
    made = {
        name: ctypes.CFUNCTYPE(result, *given)((idle or name, library))
        for name, (result, *given) in signatures.items()
    }
    return SimpleNamespace(**made)


def _of_wheel(wheel: str, module: str, name: str) -> ctypes.CDLL:
    """The library that a wheel carries."""
    try:
        library = getattr(importlib.import_module(module), name)
    except ImportError:
        raise ArgumentError(f"{wheel} is not installed: pip install {wheel}") from None
    except (AttributeError, OSError) as problem:
        raise ArgumentError(f"{wheel} is installed, but has no library: {problem}") from None
    if not isinstance(library, ctypes.CDLL):
        raise ArgumentError(f"{wheel} is installed, but {module}.{name} is no library")
    return library


class _Room:
    """Bytes at a fixed address."""

    __slots__ = ("_array", "at")

    def __init__(self, size: int) -> None:
        self._array = ctypes.create_string_buffer(size)
        self.at = ctypes.addressof(self._array)

    def raw(self) -> bytes:
        """What is in it."""
        return self._array.raw

    def write(self, content: bytes) -> None:
        """Fill it from its beginning."""
        ctypes.memmove(self.at, content, len(content))


def _rooms(*sizes: int) -> list[_Room]:
    return [_Room(size) for size in sizes]


class Sodium:
    """libsodium on ristretto255, from the wheel ``rbcl``."""

    curve: ClassVar = "ristretto255"
    how: ClassVar = "every call decodes and encodes its points"
    _TIMED: ClassVar = {
        "crypto_core_ristretto255_scalar_random": (None, _ADDRESS),
        "crypto_scalarmult_ristretto255_base": (_INT, _ADDRESS, _ADDRESS),
        "crypto_scalarmult_ristretto255": (_INT, _ADDRESS, _ADDRESS, _ADDRESS),
        "crypto_core_ristretto255_add": (_INT, _ADDRESS, _ADDRESS, _ADDRESS),
        "crypto_core_ristretto255_sub": (_INT, _ADDRESS, _ADDRESS, _ADDRESS),
    }

    def __init__(self, *, idle: bool = False) -> None:
        library = _of_wheel("rbcl", "rbcl._sodium", "_sodium")
        known = _bind(library, {"sodium_version_string": (ctypes.c_char_p,)})
        self.version = known.sodium_version_string().decode()
        setup = _bind(library, self._TIMED)
        timed = _bind(library, self._TIMED, "sodium_library_version_major" if idle else "")
        self._draw = timed.crypto_core_ristretto255_scalar_random
        self._base = timed.crypto_scalarmult_ristretto255_base
        self._multiply = timed.crypto_scalarmult_ristretto255
        self._add = timed.crypto_core_ristretto255_add
        self._subtract = timed.crypto_core_ristretto255_sub
        # What is written to: the random scalar, a cell, a share; and what came from others.
        self._r, self._cell, self._part, self._given = _rooms(32, 64, 32, 64)
        one = (1).to_bytes(32, "little")
        self._one, self._joint, *self._secrets = _rooms(*[32] * (2 + SILOS))
        ctypes.memmove(self._r.at, one, 32)
        setup.crypto_scalarmult_ristretto255_base(self._one.at, self._r.at)
        for silo, secret in enumerate(self._secrets):
            setup.crypto_core_ristretto255_scalar_random(secret.at)
            public = self._part.at if silo else self._joint.at
            setup.crypto_scalarmult_ristretto255_base(public, secret.at)
            if silo:
                setup.crypto_core_ristretto255_add(self._joint.at, self._joint.at, public)

    def fresh(self, bit: int) -> bytes:
        """A fresh encryption of a flag."""
        r, cell = self._r.at, self._cell
        self._draw(r)
        self._base(cell.at, r)
        self._multiply(cell.at + 32, r, self._joint.at)
        if bit:
            self._add(cell.at + 32, cell.at + 32, self._one.at)
        return cell.raw()

    def renew(self, cell: bytes) -> bytes:
        """The same flag, encrypted anew."""
        zero, given = self._cell, self._given
        self.fresh(0)
        given.write(cell)
        self._add(zero.at, zero.at, given.at)
        self._add(zero.at + 32, zero.at + 32, given.at + 32)
        return zero.raw()

    def share(self, silo: int, cell: bytes) -> bytes:
        """A silo's decryption share of a cell."""
        self._given.write(cell)
        self._multiply(self._part.at, self._secrets[silo].at, self._given.at)
        return self._part.raw()

    def opens(self, cell: bytes, shares: Sequence[bytes]) -> bool:
        """Whether the flag of a cell is set, from the shares of all silos."""
        given, part = self._given, self._part
        given.write(cell)
        for share in shares:
            part.write(share)
            self._subtract(given.at + 32, given.at + 32, part.at)
        return given.raw()[32:] == self._one.raw()


class Openssl:
    """OpenSSL on P-256, from the system's libcrypto.

    What it allocates lives as long as the process.
    """

    curve: ClassVar = "P-256"
    how: ClassVar = "points are encoded compressed, with an inversion each"
    _POINT = 33  # bytes of a compressed point
    _SETUP: ClassVar = {
        "OpenSSL_version": (ctypes.c_char_p, _INT),
        "EC_GROUP_new_by_curve_name": (_ADDRESS, _INT),
        "EC_GROUP_get0_generator": (_ADDRESS, _ADDRESS),
        "EC_GROUP_get0_order": (_ADDRESS, _ADDRESS),
        "EC_POINT_new": (_ADDRESS, _ADDRESS),
        "BN_CTX_new": (_ADDRESS,),
        "BN_new": (_ADDRESS,),
    }
    _TIMED: ClassVar = {
        "BN_priv_rand_range": (_INT, _ADDRESS, _ADDRESS),
        "EC_POINT_mul": (_INT, *[_ADDRESS] * 6),
        "EC_POINT_add": (_INT, *[_ADDRESS] * 5),
        "EC_POINT_cmp": (_INT, *[_ADDRESS] * 4),
        "EC_POINT_point2oct": (_SIZE, _ADDRESS, _ADDRESS, _INT, _ADDRESS, _SIZE, _ADDRESS),
        "EC_POINT_oct2point": (_INT, _ADDRESS, _ADDRESS, _ADDRESS, _SIZE, _ADDRESS),
    }

    def __init__(self, *, idle: bool = False) -> None:
        name = ctypes.util.find_library("crypto")
        if name is None:
            raise ArgumentError("OpenSSL's libcrypto is not on this machine: install OpenSSL 3")
        try:
            library = ctypes.CDLL(name)
            lib = _bind(library, self._SETUP)
            setup = _bind(library, self._TIMED)
            timed = _bind(library, self._TIMED, "OPENSSL_version_major" if idle else "")
        except (OSError, AttributeError) as problem:
            raise ArgumentError(f"this libcrypto is not that of OpenSSL 3: {problem}") from None
        self.version = lib.OpenSSL_version(0).decode().split()[1]
        self._draw, self._multiply = timed.BN_priv_rand_range, timed.EC_POINT_mul
        self._add, self._compare = timed.EC_POINT_add, timed.EC_POINT_cmp
        self._encode, self._decode = timed.EC_POINT_point2oct, timed.EC_POINT_oct2point
        group = self._group = lib.EC_GROUP_new_by_curve_name(415)  # NID_X9_62_prime256v1
        context = self._context = lib.BN_CTX_new()
        self._order = lib.EC_GROUP_get0_order(group)
        self._one = lib.EC_GROUP_get0_generator(group)
        self._r, *self._secrets = (lib.BN_new() for _ in range(1 + SILOS))
        self._points = [lib.EC_POINT_new(group) for _ in range(5)]
        self._joint = self._points[-1]
        for silo, secret in enumerate(self._secrets):
            setup.BN_priv_rand_range(secret, self._order)
            public = self._points[0] if silo else self._joint
            setup.EC_POINT_mul(group, public, secret, None, None, context)
            if silo:
                setup.EC_POINT_add(group, self._joint, self._joint, public, context)
        self._cell, self._part, self._given = _rooms(66, 33, 66)

    def _encrypt(self, bit: int) -> None:
        """A fresh encryption in the first two points."""
        group, context, r = self._group, self._context, self._r
        first, second = self._points[:2]
        self._draw(r, self._order)
        self._multiply(group, first, r, None, None, context)
        self._multiply(group, second, None, self._joint, r, context)
        if bit:
            self._add(group, second, second, self._one, context)

    def _written(self) -> bytes:
        """The first two points as bytes."""
        size, at = self._POINT, self._cell.at
        for place, point in enumerate(self._points[:2]):
            self._encode(self._group, point, 2, at + place * size, size, self._context)
        return self._cell.raw()

    def fresh(self, bit: int) -> bytes:
        """A fresh encryption of a flag."""
        self._encrypt(bit)
        return self._written()

    def renew(self, cell: bytes) -> bytes:
        """The same flag, encrypted anew."""
        group, context, given = self._group, self._context, self._points[2]
        self._encrypt(0)
        self._given.write(cell)
        for place, point in enumerate(self._points[:2]):
            at = self._given.at + place * self._POINT
            self._decode(group, given, at, self._POINT, context)
            self._add(group, point, point, given, context)
        return self._written()

    def share(self, silo: int, cell: bytes) -> bytes:
        """A silo's decryption share of a cell."""
        group, context, point = self._group, self._context, self._points[0]
        self._given.write(cell)
        self._decode(group, point, self._given.at, self._POINT, context)
        self._multiply(group, point, None, point, self._secrets[silo], context)
        self._encode(group, point, 2, self._part.at, self._POINT, context)
        return self._part.raw()

    def opens(self, cell: bytes, shares: Sequence[bytes]) -> bool:
        """Whether the flag of a cell is set, from the shares of all silos."""
        group, context = self._group, self._context
        total, part, plain, size = *self._points[:3], self._POINT
        self._given.write(cell)
        self._decode(group, plain, self._given.at + size, size, context)
        for place, share in enumerate(shares):
            self._part.write(share)
            self._decode(group, part, self._part.at, size, context)
            self._add(group, total, total if place else self._one, part, context)
        return bool(self._compare(group, total, plain, context) == 0)


class Mcl:
    """MCL on G1 of BN254, from the wheel ``mclbn256``."""

    curve: ClassVar = "BN254 G1 (about 100 bits of security)"
    how: ClassVar = "no table for the base point; points are encoded compressed"
    _POINT, _ROOM = 32, 96  # bytes of a point as it travels, and as it is computed with
    _SETUP: ClassVar = {
        "mclBn_getVersion": (_INT,),
        "mclBn_verifyOrderG1": (None, _INT),
        "mclBnG1_hashAndMapTo": (_INT, _ADDRESS, ctypes.c_char_p, _SIZE),
    }
    _TIMED: ClassVar = {
        "mclBnFr_setByCSPRNG": (_INT, _ADDRESS),
        "mclBnG1_mulCT": (None, _ADDRESS, _ADDRESS, _ADDRESS),
        "mclBnG1_add": (None, _ADDRESS, _ADDRESS, _ADDRESS),
        "mclBnG1_isEqual": (_INT, _ADDRESS, _ADDRESS),
        "mclBnG1_serialize": (_SIZE, _ADDRESS, _SIZE, _ADDRESS),
        "mclBnG1_deserialize": (_SIZE, _ADDRESS, _ADDRESS, _SIZE),
    }

    def __init__(self, *, idle: bool = False) -> None:
        library = _of_wheel("mclbn256", "mclbn256.mclbn256", "lib")
        lib = _bind(library, self._SETUP)
        setup = _bind(library, self._TIMED)
        timed = _bind(library, self._TIMED, "mclBn_getVersion" if idle else "")
        number = lib.mclBn_getVersion()
        self.version = f"{number >> 8:x}.{number & 0xFF:02x}"
        # All points of this curve are in the group: its cofactor is 1.
        lib.mclBn_verifyOrderG1(0)
        self._draw, self._multiply = timed.mclBnFr_setByCSPRNG, timed.mclBnG1_mulCT
        self._add, self._equal = timed.mclBnG1_add, timed.mclBnG1_isEqual
        self._encode, self._decode = timed.mclBnG1_serialize, timed.mclBnG1_deserialize
        self._cell, self._part, self._given, self._r = _rooms(64, 32, 64, 32)
        self._first, self._second, self._third, self._one, self._joint = _rooms(*[self._ROOM] * 5)
        self._secrets = _rooms(*[32] * SILOS)
        lib.mclBnG1_hashAndMapTo(self._one.at, b"base", 4)
        for silo, secret in enumerate(self._secrets):
            setup.mclBnFr_setByCSPRNG(secret.at)
            public = (self._first if silo else self._joint).at
            setup.mclBnG1_mulCT(public, self._one.at, secret.at)
            if silo:
                setup.mclBnG1_add(self._joint.at, self._joint.at, public)

    def _encrypt(self, bit: int) -> None:
        """A fresh encryption in the first two points."""
        r, second = self._r.at, self._second.at
        self._draw(r)
        self._multiply(self._first.at, self._one.at, r)
        self._multiply(second, self._joint.at, r)
        if bit:
            self._add(second, second, self._one.at)

    def _written(self) -> bytes:
        """The first two points as bytes."""
        self._encode(self._cell.at, self._POINT, self._first.at)
        self._encode(self._cell.at + self._POINT, self._POINT, self._second.at)
        return self._cell.raw()

    def fresh(self, bit: int) -> bytes:
        """A fresh encryption of a flag."""
        self._encrypt(bit)
        return self._written()

    def renew(self, cell: bytes) -> bytes:
        """The same flag, encrypted anew."""
        given = self._third.at
        self._encrypt(0)
        self._given.write(cell)
        for place, point in enumerate((self._first.at, self._second.at)):
            self._decode(given, self._given.at + place * self._POINT, self._POINT)
            self._add(point, point, given)
        return self._written()

    def share(self, silo: int, cell: bytes) -> bytes:
        """A silo's decryption share of a cell."""
        point = self._first.at
        self._given.write(cell)
        self._decode(point, self._given.at, self._POINT)
        self._multiply(point, point, self._secrets[silo].at)
        self._encode(self._part.at, self._POINT, point)
        return self._part.raw()

    def opens(self, cell: bytes, shares: Sequence[bytes]) -> bool:
        """Whether the flag of a cell is set, from the shares of all silos."""
        total, part, plain = self._first.at, self._second.at, self._third.at
        self._given.write(cell)
        self._decode(plain, self._given.at + self._POINT, self._POINT)
        for place, share in enumerate(shares):
            self._part.write(share)
            self._decode(part, self._part.at, self._POINT)
            self._add(total, total if place else self._one.at, part)
        return bool(self._equal(total, plain))


#: By the names that results use.
PEERS: dict[str, type[Sodium] | type[Openssl] | type[Mcl]] = {
    "libsodium": Sodium,
    "openssl": Openssl,
    "mcl": Mcl,
}
