"""Noisy numbers: the law of the noise, and what the machines refuse."""

import hashlib
import itertools
import math
from fractions import Fraction

import pytest

from silograph.errors import ArgumentError, BindingError, OrderError, PayloadError
from silograph.messages.envelope import Binding, Envelope, seal
from silograph.messages.identity import COORDINATOR
from silograph.methods.featplus.noisy_vectors import (
    COORDINATOR_STEPS,
    SILO_STEPS,
    State,
    VectorCoordinator,
    VectorParameters,
    VectorSilo,
)
from tests import limits
from tests.support.parties import SeededEntropy, identities, roster_of

RUN = bytes(16)


class NumberRun:
    def __init__(self, seed: int = 1, run: bytes = RUN, **changes: object) -> None:
        base: dict[str, object] = {"silos": 2, "length": 3, "scale": Fraction(7, 2)}
        base |= {"unit": Fraction(1, 3), "subject": b"s", "phase": "degrees"}
        self.parameters = VectorParameters(**(base | changes))  # type: ignore[arg-type]
        self.keys = identities(2)
        self.roster = roster_of(self.keys)
        self.coordinator = VectorCoordinator(self.parameters, self.roster, run, self.keys[2])
        self.silos = [
            VectorSilo(
                self.parameters, self.roster, run, i, self.keys[i], SeededEntropy(9 * seed + i)
            )
            for i in range(2)
        ]

    def finish(self, values: list[list[int]]) -> list[list[int]]:
        for silo, own in zip(self.silos, values, strict=True):
            silo.authorise()
            assert self.coordinator.receive(silo.numbers(own).raw) == []
        return self.coordinator.result()

    def forged(self, name: str, place: int, payload: bytes, number: int = 0) -> bytes:
        binding = Binding(RUN, self.parameters.digest, self.roster)
        key = self.keys[2 if place == COORDINATOR else place]
        return seal(binding, key, Envelope(name, place, COORDINATOR, number, payload))


def test_every_number_of_every_silo_has_its_own_noise() -> None:
    """Zeros are as frequent as the law says, for each number of each silo; and so are signs."""
    runs, length = 600, 40
    scale, values = 3.5, [list(range(-20, 20)), [10**9] * 40]
    zeros = [[0] * length for _ in range(2)]
    above = [[0] * length for _ in range(2)]
    alike = 0
    for seed in range(runs):
        for i, vector in enumerate(NumberRun(seed, length=length).finish(values)):
            for j, x in enumerate(vector):
                zeros[i][j] += x == values[i][j]
                above[i][j] += x > values[i][j]
            drawn = [x - value for x, value in zip(vector, values[i], strict=True)]
            alike += sum(one == two for one, two in itertools.pairwise(drawn))
    stay = math.tanh(1 / (2 * scale))
    # Noises of neighbours are equal as often as chance has it: Σ P(z)².
    decay = math.exp(-1 / scale)
    equal = stay**2 * (1 + decay**2) / (1 - decay**2)
    low, high = limits.binomial(runs * 2 * (length - 1), equal)
    assert low <= alike <= high
    for counts, p in ((zeros, stay), (above, (1 - stay) / 2)):
        low, high = limits.binomial(runs, p, 2 * length)
        assert low <= min(map(min, counts))
        assert max(map(max, counts)) <= high


def test_wide_noise_has_its_scale() -> None:
    """|z| is below scale·ln 2 for half of the numbers."""
    scale, length = 2**30, 4000
    (vector, _) = NumberRun(length=length, scale=Fraction(scale)).finish([[0] * length] * 2)
    low, high = limits.binomial(length, 0.5)
    assert low <= sum(abs(z) < scale * math.log(2) for z in vector) <= high


def test_messages_have_one_length() -> None:
    run = NumberRun()
    run.silos[0].authorise()
    run.silos[1].authorise()
    one, other = run.silos[0].numbers([0, 0, 0]).raw, run.silos[1].numbers([10**70, -1, 2**239]).raw
    assert len(one) == len(other)
    for raw in (one, other):
        run.coordinator.receive(raw)
    assert abs(run.coordinator.result()[1][0] - 10**70) < 1000


def test_golden_transcript() -> None:
    run = NumberRun(5)
    for silo in run.silos:
        silo.authorise()
    raws = b"".join(silo.numbers([5, 6, 7]).raw for silo in run.silos)
    assert (
        hashlib.sha256(raws).hexdigest()
        == "1521989c3b16b4183a493286bc4f2c99348bae20199d8c27b72f9b8e6b4df799"
    )


class TestRefusals:
    def test_nothing_leaves_before_the_ledger_knows(self) -> None:
        silo = NumberRun().silos[0]
        with pytest.raises(OrderError, match="not yet authorised"):
            silo.numbers([1, 2, 3])
        silo.authorise()
        with pytest.raises(OrderError, match="not while in state 'ready'"):
            silo.authorise()
        assert silo.state is State.READY

    def test_a_second_vector_is_refused(self) -> None:
        """Two vectors under one noise would show where they differ."""
        run = NumberRun()
        silo = run.silos[0]
        silo.authorise()
        for wrong in ([1, 2], [1, 2, 3, 4], [1, 2, 2**240], [1, 2, -(2**240)]):
            with pytest.raises(PayloadError, match="3 numbers were due"):
                silo.numbers(wrong)
        first = silo.numbers([1, 2, 3]).raw
        assert silo.numbers([1, 2, 3]).raw == first
        with pytest.raises(OrderError, match="other numbers were sent before"):
            silo.numbers([1, 2, 4])
        assert silo.numbers([1, 2, 3]).raw == first

    def test_noise_depends_on_the_secret(self) -> None:
        sent = []
        for seed in (1, 2):
            silo = NumberRun(seed).silos[0]
            silo.authorise()
            sent.append(silo.numbers([1, 2, 3]).raw)
        assert sent[0] != sent[1]

    def test_hostile_messages_change_nothing(self) -> None:
        run = NumberRun()
        for silo in run.silos:
            silo.authorise()
        good = [silo.numbers([1, 2, 3]).raw for silo in run.silos]
        with pytest.raises(OrderError, match="waiting for numbers"):
            run.coordinator.result()
        for payload in (bytes(95), bytes(97), bytes(128), b""):
            with pytest.raises(PayloadError, match=r"silo 2: 3 numbers were due"):
                run.coordinator.receive(run.forged("numbers", 1, payload))
        with pytest.raises(PayloadError, match="sequence is not 0"):
            run.coordinator.receive(run.forged("numbers", 1, bytes(96), number=1))
        with pytest.raises(BindingError, match="does not write to itself"):
            run.coordinator.receive(run.forged("numbers", COORDINATOR, bytes(96)))
        for name in ("all numbers", "key"):
            with pytest.raises(OrderError, match="no such message"):
                run.coordinator.receive(run.forged(name, 1, bytes(96)))
        run.coordinator.receive(good[0])
        with pytest.raises(OrderError, match="came twice"):
            run.coordinator.receive(good[0])
        with pytest.raises(OrderError, match="waiting for numbers"):
            run.coordinator.result()
        run.coordinator.receive(good[1])
        assert len(run.coordinator.result()) == 2
        with pytest.raises(OrderError, match="not while in state 'done'"):
            run.coordinator.receive(good[1])

    @pytest.mark.parametrize(
        "change",
        [
            {"length": 4},
            {"scale": Fraction(4)},
            {"unit": Fraction(1)},
            {"subject": b"t"},
            {"phase": "reports"},
        ],
        ids=str,
    )
    def test_every_parameter_is_in_the_digest(self, change: dict[str, object]) -> None:
        run, other = NumberRun(), NumberRun(**change)  # type: ignore[arg-type]
        silo = other.silos[0]
        silo.authorise()
        raw = silo.numbers([1] * other.parameters.length).raw
        with pytest.raises(BindingError, match="other parameters"):
            run.coordinator.receive(raw)

    def test_another_run(self) -> None:
        other = NumberRun(run=bytes([1] * 16)).silos[0]
        other.authorise()
        with pytest.raises(BindingError, match="another run"):
            NumberRun().coordinator.receive(other.numbers([1, 2, 3]).raw)

    def test_wrong_parameters(self) -> None:
        for change in (
            {"silos": 1},
            {"length": 0},
            {"length": 2**20 + 1},
            {"scale": Fraction(0)},
            {"unit": Fraction(0)},
        ):
            with pytest.raises(ArgumentError):
                NumberRun(**change)  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="the roster has 2 silos, the parameters 3"):
            NumberRun(silos=3)

    def test_secrets_are_not_shown(self) -> None:
        run = NumberRun()
        assert repr(run.silos[0]) == "VectorSilo(place=0, state='new, not yet authorised')"
        assert repr(run.coordinator) == "VectorCoordinator(state='waiting for numbers')"

    def test_tables_reach_every_state(self) -> None:
        reached = {State.NEW, *SILO_STEPS.values()} | {State.WAITING, *COORDINATOR_STEPS.values()}
        assert reached == set(State)
