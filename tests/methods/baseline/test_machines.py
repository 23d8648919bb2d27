"""The baseline's machines: noisy bits that follow the channel, and what they refuse."""

from fractions import Fraction

import numpy as np
import pytest

from silograph.errors import ArgumentError, BindingError, OrderError, PayloadError
from silograph.messages.envelope import Binding, Envelope, seal
from silograph.messages.identity import COORDINATOR
from silograph.methods.baseline.machines import ReportCoordinator, ReportParameters, ReportSilo
from tests import limits
from tests.support.parties import SeededEntropy, identities, no_bits, roster_of

RUN, PAIRS = bytes(16), 200


class ReportRun:
    def __init__(self, seed: int = 1, **changes: object) -> None:
        base = {"p11": Fraction(3, 4), "p01": Fraction(1, 4), "silos": 2, "pairs": PAIRS}
        base |= {"subject": b"n", "chunk_pairs": 128}
        self.parameters = ReportParameters(**(base | changes))  # type: ignore[arg-type]
        self.keys = identities(2)
        self.roster = roster_of(self.keys)
        self.coordinator = ReportCoordinator(self.parameters, self.roster, RUN, self.keys[2])
        self.silos = [
            ReportSilo(
                self.parameters,
                self.roster,
                RUN,
                i,
                self.keys[i],
                SeededEntropy(9 * seed + i),
                no_bits,
            )
            for i in range(2)
        ]

    def finish(self, bits: list[bytes]) -> list[bytes]:
        for place, silo in enumerate(self.silos):
            silo.authorise()
            for number, size in enumerate((16, 16)):
                raw = silo.chunk(number, bits[place][number * 16 :][:size]).raw
                assert self.coordinator.receive(raw) == []
        return [bytes(report) for report in self.coordinator.result()]


@pytest.mark.slow
def test_every_pair_of_every_silo_follows_the_channel() -> None:
    runs, ones = 1500, np.zeros((2, 256), dtype=np.int64)
    held = b"\xff" * 25 + bytes(7)
    for seed in range(runs):
        for place, report in enumerate(ReportRun(seed).finish([held, bytes(32)])):
            ones[place] += np.unpackbits(np.frombuffer(report, np.uint8), bitorder="little")
    assert (ones[:, PAIRS:] == 0).all()
    for place, p in enumerate((0.75, 0.25)):
        low, high = limits.binomial(runs, p)
        assert low <= ones[place, :PAIRS].min()
        assert ones[place, :PAIRS].max() <= high


def test_refusals_change_nothing() -> None:
    run = ReportRun()
    silo = run.silos[0]
    with pytest.raises(OrderError, match="not yet authorised"):
        silo.chunk(0, bytes(16))
    silo.authorise()
    with pytest.raises(OrderError, match="no chunk 2"):
        silo.chunk(2, bytes(16))
    with pytest.raises(PayloadError, match="16 bytes were due, not 15"):
        silo.chunk(0, bytes(15))
    first = silo.chunk(0, bytes(16)).raw
    assert silo.chunk(0, bytes(16)).raw == first
    with pytest.raises(OrderError, match="other bits"):
        silo.chunk(0, b"\1" + bytes(15))
    run.coordinator.receive(first)
    with pytest.raises(OrderError, match=r"round 'report' of silo 1: chunk 0 came twice"):
        run.coordinator.receive(first)
    with pytest.raises(OrderError, match="not while in state 'reports'"):
        run.coordinator.result()

    def forged(name: str, place: int, number: int, payload: bytes) -> bytes:
        binding = Binding(RUN, run.parameters.digest, run.roster)
        key = run.keys[2 if place == COORDINATOR else place]
        return seal(binding, key, Envelope(name, place, COORDINATOR, number, payload))

    with pytest.raises(OrderError, match="no chunk 5"):
        run.coordinator.receive(forged("report", 1, 5, bytes(16)))
    with pytest.raises(PayloadError, match="one bit per pair"):
        run.coordinator.receive(forged("report", 1, 1, bytes(8)))
    with pytest.raises(PayloadError, match="one bit per pair"):
        run.coordinator.receive(forged("report", 1, 1, bytes(15) + b"\x80"))
    with pytest.raises(BindingError, match="does not write to itself"):
        run.coordinator.receive(forged("report", COORDINATOR, 0, bytes(16)))
    with pytest.raises(OrderError, match="no such message"):
        run.coordinator.receive(forged("key", 1, 0, bytes(16)))
    other = ReportRun(p01=Fraction(1, 5))
    other.silos[0].authorise()
    raw = other.silos[0].chunk(0, bytes(16)).raw
    with pytest.raises(BindingError, match="other parameters"):
        run.coordinator.receive(raw)


def test_wrong_parameters() -> None:
    for change in ({"p01": Fraction(3, 4)}, {"silos": 1}, {"pairs": 0}, {"chunk_pairs": 100}):
        with pytest.raises(ArgumentError):
            ReportRun(**change)  # type: ignore[arg-type]


def test_the_roster_must_fit_the_run() -> None:
    """As in every union: one check serves all machines."""
    run = ReportRun()
    with pytest.raises(ArgumentError, match="the roster has 2 silos, the parameters 3"):
        ReportRun(silos=3)
    with pytest.raises(ArgumentError, match="not that of silo 1"):
        ReportSilo(run.parameters, run.roster, RUN, 0, run.keys[1], SeededEntropy(1), no_bits)
    with pytest.raises(ArgumentError, match="not that of coordinator"):
        ReportCoordinator(run.parameters, run.roster, RUN, run.keys[0])
