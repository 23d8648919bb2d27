"""The sealed protocol through the driver: answers, order of events, traffic."""

import numpy as np
import pytest

from silograph import NodeUniverse, Silo
from silograph.errors import BudgetError
from silograph.graph.bits import bits_in_chunks
from silograph.local.drive import Parties, Traffic, drive
from silograph.messages.envelope import peek
from silograph.messages.identity import COORDINATOR
from silograph.methods.sealed.coordinator import SealedCoordinator
from silograph.methods.sealed.noise import Answer, Bounded, Coins, Output
from silograph.methods.sealed.party import SealedParty
from silograph.methods.sealed.rounds import SealedParameters, SealedResult, member_cost
from tests.support.parties import SeededEntropy

NODES, RUN = 150, bytes(range(16))
#: Noise of one digit that is never one: 2^−200 is the smallest chance that can be asked for.
SILENCE = Coins((1,), 200)
EVERYTHING: tuple[Answer, ...] = ("edges", "degrees", "two_stars", "triangles")


def holdings(silos: int = 4) -> list[Silo]:
    chance, universe = np.random.default_rng(5), NodeUniverse.range(NODES)
    pairs = np.stack(np.triu_indices(NODES, 1), axis=1)
    return [
        Silo.from_pairs(universe, pairs[chance.random(len(pairs)) < density])
        for density in (0.1, 0.0, 0.3, 0.02)[:silos]
    ]


def union() -> Silo:
    pairs = np.unique(np.concatenate([silo.pairs for silo in holdings()]), axis=0)
    return Silo.from_pairs(NodeUniverse.range(NODES), pairs)


def simulate(parameters: SealedParameters, **changes: object) -> SealedResult:
    silos = holdings(parameters.silos)
    given = {"spend": lambda: None, "what": "sealed", "shown": False} | changes
    entropy = SeededEntropy(3)
    parties = Parties.fresh(silos, entropy)
    head = (parameters, parties.roster, RUN)
    coordinator = SealedCoordinator(*head, parties.coordinator[0], entropy)
    machines = [
        SealedParty(*head, place, identity, entropy, bits_in_chunks(silo, parameters.chunk_pairs))
        for place, ((identity, _), silo) in enumerate(zip(parties.silos, silos, strict=True))
    ]
    return drive(coordinator, machines, **given)  # type: ignore[arg-type]


def quiet(names: tuple[Answer, ...] = EVERYTHING, **changes: object) -> SealedParameters:
    given: dict[str, object] = {
        "silos": 4,
        "members": (2, 0, 1, 3),
        "nodes": NODES,
        "subject": b"nodes",
        "outputs": tuple(Output(name, SILENCE) for name in names),
    }
    return SealedParameters(**(given | changes))  # type: ignore[arg-type]


def test_answers_are_those_of_the_union() -> None:
    truth = union()
    degrees = truth.degrees()
    for chunk_pairs in (1 << 18, 1 << 10):
        found = simulate(quiet(chunk_pairs=chunk_pairs))
        assert found.number("edges") == len(truth)
        assert found.degrees.tolist() == degrees.tolist()
        assert found.number("two_stars") == int((degrees * (degrees - 1) // 2).sum())
        assert found.number("triangles") == truth.triangles()


def test_equal_seeds_give_equal_transcripts() -> None:
    transcripts = []
    for _ in range(2):
        seen: list[tuple[int, int, bytes]] = []
        simulate(quiet(), record=lambda *message, seen=seen: seen.append(message))
        transcripts.append(seen)
    assert transcripts[0] == transcripts[1]


def test_the_ledger_comes_before_the_first_bit() -> None:
    rounds: list[str] = []

    def refuse() -> None:
        raise BudgetError("nothing is left")

    with pytest.raises(BudgetError):
        simulate(quiet(), spend=refuse, record=lambda _, __, raw: rounds.append(peek(raw).round))
    assert set(rounds) == {"key", "keys", "confirm", "confirms", "seed", "match"}


@pytest.mark.parametrize("names", [("edges",), ("degrees",), ("degrees", "triangles")])
def test_traffic_is_what_the_cost_says(names: tuple[Answer, ...]) -> None:
    """Without envelopes and noise, on average over the four members."""
    traffic, messages = Traffic(), 0

    def record(sender: int, receiver: int, raw: bytes) -> None:
        nonlocal messages
        traffic(sender, receiver, raw)
        messages += receiver != COORDINATOR

    simulate(quiet(names, chunk_pairs=1 << 12), record=record)
    cost = member_cost(NODES, 4, names)
    for way, expected in ((0, cost.up), (1, cost.down)):
        sent = sum(
            both[way]
            for place in range(4)
            for name, both in traffic.of(place).items()
            if name in ("input", "joint")
        )
        # Envelopes have at most 400 bytes, and the noise at most 700 bytes for a number.
        most = 4 * expected + 400 * messages + 700 * 4 * 2 * NODES
        assert 0.8 * 4 * expected <= sent <= most


def test_noise_bounded_by_degrees() -> None:
    """Both counts have the noise that the bound gives, and nothing else."""
    bounds = {
        "triangles": Bounded("committee", "second", 30, NODES - 2, 40, 1),
        "two_stars": Bounded("committee", "sum", 30, 2 * (NODES - 2), 40, 1),
    }
    outputs = (
        Output("degrees", Coins((1 << 20, 1), 24)),
        *(Output(name, noise) for name, noise in bounds.items()),  # type: ignore[arg-type]
    )
    found, truth = simulate(quiet(outputs=outputs)), union()
    degrees = truth.degrees()
    assert 0 < np.abs(found.degrees - degrees).max() <= 3
    exact = {
        "triangles": truth.triangles(),
        "two_stars": int((degrees * (degrees - 1) // 2).sum()),
    }
    for name, noise in bounds.items():
        law = noise.at(noise.bound(found.degrees))
        assert abs(found.number(name) - exact[name]) <= law.reach
