"""The sealed protocol through the driver: answers, order of events, traffic."""

import numpy as np
import pytest

from silograph import NodeUniverse, Silo
from silograph.errors import BudgetError
from silograph.graph.bits import bits_in_chunks
from silograph.local.drive import Parties, Traffic, drive
from silograph.messages.envelope import peek
from silograph.messages.identity import COORDINATOR
from silograph.methods.sealed.coordinator import SealedDealer
from silograph.methods.sealed.noise import BoundedNoise, Noise, Output
from silograph.methods.sealed.rounds import SealedParameters, SealedResult, sealed_cost
from silograph.methods.sealed.silo import SealedSilo
from tests.methods.sealed.run import EVERYTHING, RUN, SILENCE, Edges, exact
from tests.support.parties import SeededEntropy

NODES = 150


def holdings(silos: int = 4) -> list[Edges]:
    chance = np.random.default_rng(5)
    first, second = np.triu_indices(NODES, 1)
    found = []
    for density in (0.1, 0.0, 0.3, 0.02)[:silos]:
        chosen = chance.random(len(first)) < density
        found.append(set(zip(first[chosen].tolist(), second[chosen].tolist(), strict=True)))
    return found


def simulate(parameters: SealedParameters, **changes: object) -> SealedResult:
    universe = NodeUniverse.range(NODES)
    held = [np.array(sorted(edges)).reshape(-1, 2) for edges in holdings(parameters.silos)]
    silos = [Silo.from_edges(universe, edges) for edges in held]
    given = {"spend": lambda: None, "what": "sealed", "shown": False} | changes
    entropy = SeededEntropy(3)
    parties = Parties.fresh(silos, entropy)
    head = (parameters, parties.roster, RUN)
    dealer = SealedDealer(*head, parties.coordinator[0], entropy)
    machines = [
        SealedSilo(*head, place, identity, entropy, bits_in_chunks(silo, parameters.chunk_pairs))
        for place, ((identity, _), silo) in enumerate(zip(parties.silos, silos, strict=True))
    ]
    return drive(dealer, machines, **given)  # type: ignore[arg-type]


def quiet(**changes: object) -> SealedParameters:
    outputs = tuple(Output(name, SILENCE) for name in EVERYTHING)  # type: ignore[arg-type]
    given = {"silos": 4, "nodes": NODES, "subject": b"nodes", "outputs": outputs}
    return SealedParameters(**(given | changes))  # type: ignore[arg-type]


@pytest.mark.slow
def test_answers_are_those_of_the_union() -> None:
    for chunk_pairs in (1 << 18, 1 << 10):
        found = simulate(quiet(chunk_pairs=chunk_pairs))
        edges, degrees, stars, triangles = exact(NODES, holdings())
        assert found.number("edges") == edges
        assert found.degrees.tolist() == degrees
        assert found.number("two_stars") == stars
        assert found.number("triangles") == triangles


def test_equal_seeds_give_equal_transcripts() -> None:
    transcripts = []
    for _ in range(2):
        seen: list[tuple[int, int, bytes]] = []
        simulate(quiet(), record=lambda *message, seen=seen: seen.append(message))
        transcripts.append(seen)
    assert transcripts[0] == transcripts[1]


def test_the_ledger_comes_before_the_first_opening() -> None:
    rounds: list[str] = []

    def refuse() -> None:
        raise BudgetError("nothing is left")

    with pytest.raises(BudgetError):
        simulate(quiet(), spend=refuse, record=lambda _, __, raw: rounds.append(peek(raw).round))
    assert set(rounds) == {"key", "keys", "confirm", "confirms", "tell", "seed"}


@pytest.mark.parametrize("names", [("edges",), ("degrees",), ("degrees", "triangles"), EVERYTHING])
def test_traffic_is_what_the_cost_says(names: tuple[str, ...]) -> None:
    """Envelopes and the handshake apart, which are at most 2 kB and 400 bytes per message."""
    traffic, counted = Traffic(), {"up": 0, "down": 0}

    def record(sender: int, receiver: int, raw: bytes) -> None:
        traffic(sender, receiver, raw)
        counted["up"] += sender == 3
        counted["down"] += receiver == 3

    outputs = tuple(Output(name, SILENCE) for name in names)  # type: ignore[arg-type]
    simulate(quiet(outputs=outputs, chunk_pairs=1 << 12), record=record)
    cost, rounds = sealed_cost(NODES, 4, names), traffic.of(3)
    up, down = (sum(both[way] for both in rounds.values()) for way in (0, 1))
    assert cost.up <= up <= cost.up + 400 * counted["up"] + 2000
    assert cost.down <= down <= cost.down + 400 * counted["down"] + 4000
    assert sum(way for _, way in traffic.of(0).values()) < down
    assert COORDINATOR not in rounds


@pytest.mark.slow
def test_noise_bounded_by_degrees() -> None:
    """Within twenty standard deviations of the truth, with the scale that the degrees give."""
    noise = Noise("shared", 2, 1, 4)
    bound = {"cap": NODES - 2, "margin": 30, "numerator": 1, "denominator": 1, "shares": 4}
    outputs = (
        Output("degrees", noise),
        Output("triangles", BoundedNoise("shared", 1, **bound)),
        Output("two_stars", BoundedNoise("shared", 2, **bound)),
    )
    found = simulate(quiet(outputs=outputs))
    largest = int(found.degrees.max())
    assert found.noises["triangles"] == Noise("shared", largest + 30, 1, 4)
    assert found.noises["two_stars"] == Noise("shared", 2 * (largest + 30), 1, 4)
    _, degrees, stars, triangles = exact(NODES, holdings())
    assert 0 < np.abs(found.degrees - degrees).max() < 20 * 3
    assert abs(found.number("triangles") - triangles) < 20 * 1.5 * (largest + 30)
    assert abs(found.number("two_stars") - stars) < 20 * 3 * (largest + 30)
