"""A masked union of tiny silos, step by step, for tests that stop in the middle."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph.methods.masked.machines import MaskedCoordinator, MaskedParameters, MaskedSilo
from tests.support.parties import SeededEntropy, identities, no_bits, roster_of

RUN = bytes(range(16))
PAIRS = 200


def parameters(**changes: object) -> MaskedParameters:
    given = {
        "q": 21,
        "b": Fraction(1, 50),
        "silos": 3,
        "pairs": PAIRS,
        "subject": b"nodes",
        "chunk_pairs": 128,
    }
    return MaskedParameters(**(given | changes))  # type: ignore[arg-type]


def digits_of_a_word(q: int) -> int:
    """As many base-q digits as fit 32 bits."""
    return max(digits for digits in range(1, 33) if q**digits <= 1 << 32)


def elements(packed: bytes, q: int, pairs: int) -> NDArray[np.int64]:
    """The elements of a packed vector, by division."""
    digits = digits_of_a_word(q)
    words = np.frombuffer(packed, dtype="<u4").astype(np.int64)
    assert len(words) == -(-pairs // digits)
    powers = q ** np.arange(digits, dtype=np.int64)
    found = words[:, None] // powers % q
    assert (found @ powers == words).all()
    assert not found.ravel()[pairs:].any()
    return found.ravel()[:pairs]


class MaskedRun:
    """Three silos and a coordinator with fixed identities."""

    def __init__(
        self,
        given: MaskedParameters | None = None,
        run: bytes = RUN,
        seed: int = 1,
        coordinator: str = "coordinator",
    ) -> None:
        self.parameters = given or parameters()
        m = self.parameters.silos
        self.keys = identities(m)
        self.roster = roster_of(self.keys, coordinator)
        self.coordinator = MaskedCoordinator(self.parameters, self.roster, run, self.keys[m])
        self.silos = [
            MaskedSilo(
                self.parameters,
                self.roster,
                run,
                i,
                self.keys[i],
                SeededEntropy(100 * seed + i),
                no_bits,
            )
            for i in range(m)
        ]

    def key_messages(self) -> list[bytes]:
        return [silo.start()[0].raw for silo in self.silos]

    def relay(self, messages: list[bytes]) -> bytes:
        """Hand one message of each silo to the coordinator; its bundle."""
        outgoing = [out for raw in messages for out in self.coordinator.receive(raw)]
        assert len(outgoing) == 1
        return outgoing[0].raw

    def agree(self) -> "MaskedRun":
        """Everything up to the first chunk."""
        bundle = self.relay(self.key_messages())
        confirms = [silo.receive(bundle)[0].raw for silo in self.silos]
        bundle = self.relay(confirms)
        for silo in self.silos:
            assert silo.receive(bundle) == []
            silo.authorise()
        return self

    def bits(self, number: int, held: set[int] = frozenset()) -> bytes:  # type: ignore[assignment]
        """One chunk's bits of a silo that holds these pairs."""
        start, size = number * self.parameters.chunk_pairs, self.parameters.chunk_size(number)
        value = sum(1 << (k - start) for k in held if start <= k < start + size)
        return value.to_bytes(-(-size // 64) * 8, "little")

    def chunk(self, place: int, number: int, held: set[int] = frozenset()) -> bytes:  # type: ignore[assignment]
        return self.silos[place].chunk(number, self.bits(number, held)).raw

    def finish(self, holdings: list[set[int]]) -> Any:
        for number in range(self.parameters.chunks):
            for place, held in enumerate(holdings):
                assert self.coordinator.receive(self.chunk(place, number, held)) == []
        return self.result()

    def result(self) -> Any:
        return bytes(self.coordinator.result())
