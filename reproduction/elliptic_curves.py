"""The paper's Table 2, "Performance of ECC with Three Libraries", and this project's curve beside.

Operation
    One flag through the paper's private union of four silos (§III-C, steps 3 to 5): four times an
    encryption or a re-randomisation, which is a multiplication of the base point and one of the
    joint key; four decryption shares, a multiplication each; additions, and one comparison. The
    paper does not say what it timed; this takes libsodium some 600 µs, and 528 µs are printed.
    A peer does it cell by cell (:mod:`reproduction.peer_libraries`). This project does it in
    chunks: points are encoded in batches, 16 flags share a decryption, and every share is proved
    and checked, which the peers leave out.
Time
    Processor time over all threads, so that one thread of a peer and all threads of this project
    are the same measure, and other programs on the machine do not count. Keys and tables, made once
    a run, are not timed. ``overhead`` is how much of a peer's ``per_element`` is Python calling it:
    measured with C functions that do nothing, taken off nowhere.
Sizes
    As many flags are measured as fit into the budget, of wall time; what is larger is scaled up
    from them and says so. What fits is measured several times, and the best counts.
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np

from reproduction.peer_libraries import PEERS, SILOS, Group, flags, open_union
from silograph.errors import ArgumentError, CryptoError
from silograph.methods.elgamal.cipher import Decoder, JointKey, Member, Place, Run, SecretKey
from silograph.methods.elgamal.rounds import CHUNK_CELLS

__all__ = ["Own", "cases", "draw", "libraries", "measure"]

#: Flags of the first block; each block is twice the one before.
_FIRST = 64
#: Rounds of what can be measured more than once.
_ROUNDS = 5
_OPERATION = (
    f"one flag through the private union of {SILOS} silos: {SILOS} encryptions or "
    f"re-randomisations, {SILOS} decryption shares, one opening; processor time; "
)


class Library(Protocol):
    """What is timed: a union of flags on some curve."""

    version: str
    curve: str
    #: What sets this library's way of doing it apart.
    how: str

    def union(self, held: Sequence[bytes]) -> list[bool]:
        """The union of the flags that each silo holds, a byte of 0 or 1 for every pair."""

    def overhead(self) -> float:
        """Seconds an element that are not the library's own."""


class Own:
    """Threshold ElGamal of this project, on ristretto255, in Rust."""

    curve = "ristretto255"
    how = "in chunks, 16 flags a decryption, shares proved and checked, all threads together"

    def __init__(self) -> None:
        self.version = version("silograph")
        run = Run(os.urandom(16), os.urandom(32))
        self.secrets = [SecretKey(os.urandom(32)) for _ in range(SILOS)]
        members = [
            Member(bytes([i]), secret.public_key, secret.prove(run, bytes([i]), os.urandom(32)))
            for i, secret in enumerate(self.secrets)
        ]
        self.key = JointKey.agree(run, members)
        self.decoder = Decoder(SILOS)

    def union(self, held: Sequence[bytes]) -> list[bool]:
        """The union of the flags that each silo holds."""
        count = len(held[0])
        bits = [np.packbits(np.frombuffer(own, np.uint8), bitorder="little") for own in held]
        # Probability 0 of a flip: what is timed is the curve, and what is opened can be checked.
        key, exact, chunk = self.key, Fraction(0), 0
        cells = key.first_hop(bits[0].tobytes(), count, "replace", exact, chunk, os.urandom(32))
        for hops, own in enumerate(bits[1:], 1):
            place = Place(chunk, hops)
            cells = key.hop(cells, own.tobytes(), "replace", exact, place, os.urandom(32))
        last = Place(chunk, len(bits))
        shares = [
            key.share(secret, silo, cells, last, os.urandom(32))
            for silo, secret in enumerate(self.secrets)
        ]
        opened = np.frombuffer(key.combine(self.decoder, cells, shares, chunk), np.uint8)
        found: list[bool] = (
            np.unpackbits(opened, count=count, bitorder="little").astype(bool).tolist()
        )
        return found

    def overhead(self) -> float:
        """None to speak of: whole chunks cross from Python."""
        return 0.0


class _Peer:
    """Another library, cell by cell."""

    def __init__(self, name: str) -> None:
        kind = PEERS[name]
        self._group, self._idle = kind(), kind(idle=True)
        self.version, self.curve = self._group.version, kind.curve
        self.how = f"one by one, {kind.how}; overhead is Python's part, not taken off"

    def union(self, held: Sequence[bytes]) -> list[bool]:
        """The union of the flags that each silo holds."""
        return open_union(self._group, held)

    def overhead(self) -> float:
        """The same steps with functions that do nothing."""
        return min(_seconds(self._idle, draw(_FIRST)) for _ in range(_ROUNDS)) / _FIRST


def _seconds(group: Group, held: Sequence[bytes]) -> float:
    start = time.process_time()
    open_union(group, held)
    return time.process_time() - start


def libraries() -> tuple[str, ...]:
    """The libraries of the table, whether they are on this machine or not."""
    return (*PEERS, "silograph")


def draw(count: int) -> list[bytes]:
    """Random flags of every silo, half of them set."""
    bits = np.frombuffer(os.urandom(SILOS * count), np.uint8) & 1
    return [row.tobytes() for row in bits.reshape(SILOS, count)]


@cache
def _load(library: str) -> Library:
    return Own() if library == "silograph" else _Peer(library)


def cases(parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The arguments of :func:`measure` for every cell of the table."""
    chosen: Iterable[str] = parameters["libraries"]
    return [
        {
            "library": library,
            "elements": int(elements),
            "budget_seconds": float(parameters["budget_seconds"]),
        }
        for library in chosen
        for elements in parameters["values"]
    ]


def measure(library: str, elements: int, budget_seconds: float) -> dict[str, Any]:
    """One row: the time of so many elements on a library, scaled up where it would pass the budget.

    A library that is not on this machine gives an entry of what was left out: it has a ``reason``.
    At least one block is measured, however small the budget.
    """
    if elements < 1:
        raise ArgumentError(f"elements is {elements}; there must be at least 1")
    if not budget_seconds > 0:
        raise ArgumentError(f"budget_seconds is {budget_seconds}; it must be positive")
    names = {"experiment": "curves", "library": library, "elements": elements}
    if library not in libraries():
        raise ArgumentError(f"unknown library {library!r}; choose from {', '.join(libraries())}")
    try:
        loaded = _load(library)
    except ArgumentError as absent:
        return {**names, "reason": str(absent)}
    begun = time.perf_counter()
    measured, seconds = _measured(loaded, elements, begun + budget_seconds)
    rounds, lasted = 1, time.perf_counter() - begun
    while (
        measured == elements
        and rounds < _ROUNDS
        and time.perf_counter() + lasted <= begun + budget_seconds
    ):
        seconds = min(seconds, _measured(loaded, elements, float("inf"))[1])
        rounds += 1
    per_element = seconds / measured
    return {
        **names,
        "version": loaded.version,
        "seconds": per_element * elements,
        "per_element": per_element,
        "scaled": measured < elements,
        "operation": _OPERATION + loaded.how,
        "curve": loaded.curve,
        "measured": measured,
        "repetitions": rounds,
        "overhead": loaded.overhead(),
    }


def _measured(library: Library, elements: int, deadline: float) -> tuple[int, float]:
    """How many elements were done before the deadline, and their processor time."""
    done, seconds, block = 0, 0.0, _FIRST
    while done < elements:
        count = min(block, CHUNK_CELLS, elements - done)
        held = draw(count)
        wall, start = time.perf_counter(), time.process_time()
        opened = library.union(held)
        seconds += time.process_time() - start
        if opened != flags(held):
            raise CryptoError(f"{library.curve}: what was opened is not the union of the flags")
        done, block = done + count, 2 * block
        # There is no stopping within a block, so the next one is begun only if it will fit.
        now, following = time.perf_counter(), min(block, CHUNK_CELLS, elements - done)
        if now + (now - wall) * following / count > deadline:
            break
    return done, seconds
