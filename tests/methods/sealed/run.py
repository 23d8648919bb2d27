"""Sealed runs of tiny parties, message by message, and what they should answer."""

from itertools import combinations
from random import Random
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from silograph.messages.identity import pack
from silograph.methods.committee.coordinator import Host
from silograph.methods.sealed.coordinator import SealedCoordinator
from silograph.methods.sealed.noise import (
    Answer,
    Bounded,
    Coins,
    Output,
    Parts,
    SealedNoise,
    Weighted,
)
from silograph.methods.sealed.party import SealedParty
from silograph.methods.sealed.rounds import SealedParameters, SealedResult
from tests.methods.committee.oracle import Oracle, expand, stream
from tests.methods.committee.run import Committee, CommitteeRun

EVERYTHING: tuple[Answer, ...] = ("edges", "degrees", "two_stars", "triangles")
Edges = set[tuple[int, int]]
Numbers = npt.NDArray[np.int64]

#: Three digits of three places, which are one in 3, 2 and 1 of 8 cases.
COINS = Coins((3, 2, 1), 3)
PARTS = Parts(3, 2)


def plain(names: tuple[Answer, ...], noise: Coins | Parts = COINS) -> tuple[Output, ...]:
    """Outputs that all have the same noise."""
    return tuple(Output(name, noise) for name in names)


def bounded(
    nodes: int, margin: int = 2, rule: str = "second", degrees: Coins = COINS
) -> tuple[Output, ...]:
    """Degrees, and two counts whose noise follows from them; large noise, of many digits."""
    stars = Bounded("committee", "sum", margin, 2 * (nodes - 2), 1, 1)
    cubes = Bounded("committee", rule, margin, nodes - 2, 3, 2)  # type: ignore[arg-type]
    return (
        Output("degrees", degrees),
        Output("two_stars", stars),
        Output("triangles", cubes),
    )


def parameters(
    committee: Committee, nodes: int = 8, outputs: tuple[Output, ...] = (), **changes: object
) -> SealedParameters:
    given: dict[str, object] = {
        "silos": committee.silos,
        "members": committee.members,
        "nodes": nodes,
        "subject": b"nodes",
        "outputs": outputs or plain(EVERYTHING),
        "chunk_pairs": 64,
    }
    return SealedParameters(**(given | changes))  # type: ignore[arg-type]


class SealedRun(CommitteeRun):
    """All parties of one run. ``held`` are the pairs of each silo, as the bits of one number."""

    PARTY = SealedParty
    HOST: ClassVar[type[Host[Any]]] = SealedCoordinator

    def usual(self, committee: Committee, size: int) -> SealedParameters:
        return parameters(committee, size)

    @property
    def answers(self) -> dict[str, list[int]]:
        """What the coordinator has got."""
        found: SealedResult = self.coordinator.result()
        return {name: values.tolist() for name, values in found.values.items()}

    def result(self) -> dict[str, list[int]]:
        return self.answers

    @property
    def expected(self) -> dict[str, list[int]]:
        """The truth and the noise, both computed again."""
        oracle = SealedOracle(self)
        found: dict[str, list[int]] = {}
        for number, output in enumerate(self.parameters.outputs):
            noise = oracle.noise(number, found.get("degrees")).tolist()
            true = self.true(output, found.get("degrees"))
            found[output.name] = [one + other for one, other in zip(true, noise, strict=True)]
        return found

    def true(self, output: Output, noisy_degrees: list[int] | None) -> list[int]:
        """An answer without its noise."""
        if output.name == "mixing":
            return mixing(self.parameters, self.union)
        return truth(self.parameters.nodes, self.union)[output.name]


class SealedOracle(Oracle):
    """The noise of a run, from the secrets of its parties."""

    VIEW = b"silograph/sealed/view/v2"

    def __init__(self, run: SealedRun) -> None:
        super().__init__(run)
        self._given: SealedParameters = run.parameters

    def noise(self, output: int, degrees: list[int] | None = None) -> Numbers:
        """The noise of an output; for a bounded one, given the noisy degrees."""
        given, law = self._given, self._given.outputs[output].noise
        if isinstance(law, Bounded):
            assert degrees is not None
            law = law.at(bound_of(law, degrees))
        drawn = []
        for index, chunk in enumerate(given.noise_chunks):
            if chunk.output == output:
                draw = self.coins if isinstance(law, Coins) else self.parts
                drawn.append(draw(given.chunks + index, cast("Any", law)))
        return np.concatenate(drawn)

    def coins(self, item: int, law: Coins) -> Numbers:
        """G − G′ of one chunk, from the random numbers that their digits compare."""
        chunk = self._given.noise_chunk(item)
        assert chunk is not None
        digits, block = len(law.numerators), -(-chunk.size // 64)
        value = np.zeros(2 * digits * block * 64, object)
        for place in range(law.places):
            words = [
                stream(self.seeds[c], self.view, 2 * digits * block, c, item, 2, place, 0)
                for c in range(4)
            ]
            bits = np.bitwise_xor.reduce(words).view(np.uint8)
            value += np.unpackbits(bits, bitorder="little").astype(object) << place
        table = value.reshape(2, digits, -1)[:, :, : chunk.size]
        limits = np.array(law.numerators, object)[None, :, None]
        ones = (table < limits).astype(np.int64) << np.arange(digits)[None, :, None]
        first, second = ones.sum(axis=1)
        return np.asarray(first - second)

    def parts(self, item: int, law: Parts) -> Numbers:
        """The sum of the four members' parts of one chunk."""
        parts = [self.part(item, member, law) for member in range(4)]
        return np.asarray(np.sum(parts, axis=0))

    def part(self, item: int, member: int, law: Parts) -> Numbers:
        """What one member draws."""
        chunk = self._given.noise_chunk(item)
        assert chunk is not None
        label = pack(str(chunk.output).encode(), str(chunk.first).encode())
        secret = self.secrets[self._given.members[member]]
        return law.draw(chunk.size, expand(secret, "sealed/noise/v2", label))


def bound_of(law: Bounded, degrees: list[int]) -> int:
    """The bound of a count, written again."""
    if isinstance(law, Weighted):
        return law.bound(np.array(degrees))
    *_, second, largest = sorted(degrees)
    found = {"largest": largest, "second": second, "sum": second + largest}[law.rule]
    return min(max(found + law.margin, 1), law.cap)


def edges_of(nodes: int, held: int) -> Edges:
    """The pairs that are the bits of a number."""
    return {pair for k, pair in enumerate(combinations(range(nodes), 2)) if held >> k & 1}


def bits_of(nodes: int, edges: Edges) -> int:
    """The number whose bits are these pairs."""
    return sum(1 << k for k, pair in enumerate(combinations(range(nodes), 2)) if pair in edges)


def truth(nodes: int, union: int) -> dict[str, list[int]]:
    """Every answer about a union, without noise."""
    edges, degrees, stars, triangles = exact(nodes, [edges_of(nodes, union)])
    return {"edges": [edges], "degrees": degrees, "two_stars": [stars], "triangles": [triangles]}


def mixing(given: SealedParameters, union: int) -> list[int]:
    """The number of edges of each type, by counting."""
    groups = range(given.groups)
    found = [tuple(sorted(given.labels[u] for u in e)) for e in edges_of(given.nodes, union)]
    return [found.count((g, h)) for g in groups for h in groups if g <= h]


def exact(nodes: int, holdings: list[Edges]) -> tuple[int, list[int], int, int]:
    """Edges, degrees, 2-stars and triangles of the union, by counting."""
    union = set().union(*holdings)
    degrees = [sum(u in pair for pair in union) for u in range(nodes)]
    stars = sum(d * (d - 1) // 2 for d in degrees)
    triples = combinations(range(nodes), 3)
    triangles = sum({(a, b), (a, c), (b, c)} <= union for a, b, c in triples)
    return len(union), degrees, stars, triangles


def random_holdings(rng: Random, silos: int, nodes: int) -> list[int]:
    """Overlapping silos: some hold nothing, some everything, and edges are shared by several."""
    pairs = nodes * (nodes - 1) // 2
    common = rng.getrandbits(pairs) & rng.getrandbits(pairs) & rng.getrandbits(pairs)
    held = []
    for _ in range(silos):
        bits = (1 << pairs) - 1
        for _ in range(rng.choice([0, 1, 2, 3, 4])):
            bits &= rng.getrandbits(pairs)
        held.append(rng.choice([0, bits, bits, bits | common]))
    return held


def random_outputs(rng: Random, nodes: int) -> tuple[Output, ...]:
    """Any answers with small noise, or those of a study, with noise as it is chosen."""
    counts = nodes >= 3
    names = [name for name in EVERYTHING if counts or name in ("edges", "degrees")]
    if rng.random() < 0.5:
        chosen = rng.sample(names, rng.randint(1, len(names)))
        return tuple(Output(name, random_law(rng)) for name in chosen)
    if counts and rng.random() < 0.6:
        some: tuple[Answer, ...] = rng.choice(
            [("two_stars",), ("triangles",), ("two_stars", "triangles")]
        )
        noise = SealedNoise.choose(
            rng.choice([0.5, 1.0, 4.0]), nodes, 4, 1, some,
            delta=rng.choice([1e-6, 1e-9, 0.01]), rule=rng.choice(["largest", "second"]),
            degree_share=rng.choice([0.1, 0.5]),
        )  # fmt: skip
    else:
        left_out = rng.choice(["edges", "degrees"])
        names.remove(left_out)  # type: ignore[arg-type]
        some = tuple(rng.sample(names, rng.randint(1, len(names))))
        kind, epsilon = rng.choice(["committee", "shares"]), rng.choice([0.5, 1.0, 4.0])
        noise = SealedNoise.choose(epsilon, nodes, 4, 1, some, kind=kind)  # type: ignore[arg-type]
    return tuple(Output(name, noise.drawn(name)) for name in noise.answers)


def random_law(rng: Random) -> Coins | Parts:
    """Small noise of either kind."""
    if rng.random() < 0.4:
        return Parts(rng.randint(1, 9), rng.randint(1, 3))
    places = rng.choice([1, 2, 3, 5, 8, 70])
    digits = rng.randint(1, 5)
    return Coins(tuple(rng.randrange(1, 1 << places) for _ in range(digits)), places)
