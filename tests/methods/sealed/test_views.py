"""Tier 0 for sealed counts: what one member sees, with or without the coordinator, says nothing.

The model of ``model.py`` has every random element of a tiny run. First it is shown to be what the
machines do, byte by byte, over rings of 8, 16 and 24 bits. Then, over Z_2 and Z_4, every value of
what an adversary does not know is enumerated, for every combination of honest bits: what it sees
follows one law, given the noisy answer that is opened, and that answer follows the law of its
noise.

A run is put together from parts, each of which is enumerated in full. A number that was converted
has components that are uniform but for their sum, whatever its bit (``TestConversion``), and what
a member sees on the way follows one law. So a run may begin at such components, and what follows is
enumerated from there. Over Z_2, and for one pair over Z_4, the parts are enumerated together, too.
What a member knows itself is enumerated for a conversion, and elsewhere drawn. Not enumerated
together, since there are too many worlds: three pairs over Z_4 from their bits to a count.

Deviations are enumerated by steps, as for the union (``committee/test_views.py`` says why this is
enough): in one step a cheat adds any number to any of what it sends.
"""

import hashlib
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from silograph import _core
from tests.methods.committee.model import MEMBERS, ROUTES
from tests.methods.committee.oracle import stream
from tests.methods.sealed.model import (
    Answer,
    Array,
    Case,
    Enumeration,
    Item,
    Model,
    Rules,
    Setting,
    Shares,
    View,
    all_worlds,
    items,
)

pytestmark = pytest.mark.slow

YES, NO = True, False
VIEW = bytes(range(100, 132))
SEEDS = [bytes([c + 1] * 32) for c in MEMBERS]
#: What streams are for, as the machines number it.
PURPOSES = {"input": 0, "mask": 1, "coin": 2, "element": 3, "part": 4, "zero": 5}


# --- the model is what the machines do ------------------------------------------------------------


def seeds_of(member: int) -> _core.CommitteeSeeds:
    return _core.CommitteeSeeds([None if c == member else SEEDS[c] for c in MEMBERS], VIEW)


def drawn_bytes(size: int, component: int, chunk: int, *name: int) -> bytes:
    """Bytes of the stream with a name, made with another library."""
    words = stream(SEEDS[component], VIEW, -(-size // 8), component, chunk, *name)
    return words.tobytes()[:size]


def bits_of(words: bytes) -> Array:
    """Every bit of some words."""
    return np.unpackbits(np.frombuffer(words, np.uint8), bitorder="little").astype(np.uint64)


def elements_of(content: bytes, width: int) -> Array:
    padded = np.zeros((len(content) // width, 8), np.uint8)
    padded[:, :width] = np.frombuffer(content, np.uint8).reshape(-1, width)
    return padded.view("<u8")[:, 0].copy()


def packed(values: Array, width: int) -> bytes:
    return values.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width].tobytes()


def packed_bits(bits: Array) -> bytes:
    return np.packbits(bits.astype(np.uint8), bitorder="little").tobytes()


def digest(label: str, number: int, names: tuple[int, ...], *contents: bytes) -> bytes:
    name = f"silograph/committee/{label}/v1".encode()
    content = len(name).to_bytes(8, "little") + name + VIEW + number.to_bytes(8, "little")
    content += b"".join(n.to_bytes(8, "little") for n in names)
    return hashlib.sha256(content + b"".join(contents)).digest()


class Machines:
    """Four members' chunks of the core, and everything that they say in each layer."""

    def __init__(self, circuit: _core.CommitteeCircuit, number: int, count: int) -> None:
        self.chunks = [_core.CommitteeChunk(circuit, m, VIEW, number, count) for m in MEMBERS]
        self.said: list[list[list[bytes]]] = []
        self._silos = 0

    def share(self, owners: tuple[int, ...], bits: list[bytes]) -> list[bytes]:
        vectors, self._silos = [], len(owners)
        for silo, owner in enumerate(owners):
            vectors.append(bytes(self.chunks[owner].share(seeds_of(owner), silo, bits[silo])))
            for member in MEMBERS:
                if member not in (owner, _core.committee_vector(owner, silo)):
                    self.chunks[member].take(silo, vectors[-1])
        return vectors

    def begin(self) -> None:
        for member, chunk in enumerate(self.chunks):
            chunk.begin(seeds_of(member), [None] * self._silos)

    def speak(self) -> list[list[bytes]]:
        said = [c.speak(seeds_of(member)) for member, c in enumerate(self.chunks)]
        self.said.append([[bytes(content) for content in layer] for layer in said])
        return self.said[-1]

    def hear(self, said: list[list[bytes]]) -> list[bool]:
        """Deliver a layer; return who stops."""
        stops = []
        for member, chunk in enumerate(self.chunks):
            try:
                chunk.hear([said[sender][member] for sender in MEMBERS])
            except _core.MismatchError:
                stops.append(True)
            else:
                stops.append(False)
        return stops

    def go(self) -> list[_core.CommitteeNumbers]:
        self.begin()
        for _ in range(self.chunks[0].layers):
            assert self.hear(self.speak()) == [False] * 4
        return [chunk.numbers() for chunk in self.chunks]


def layer_bytes(
    view: View, number: int, layer: int, sender: int, receiver: int, width: int
) -> bytes:
    """What a member sends to another in a layer, as the model has it."""

    def said(values: dict[tuple[int, ...], Array], origin: int) -> bytes:
        # The machines have all lanes of one gate, and then those of the next.
        names = [k for k in values if k[:2] == (number, layer) and k[4:] == (origin, receiver)]
        of_numbers = not any(k[3] != 0 or k in gates for k in names)
        names.sort(key=lambda k: (k[3], k[2]))
        if of_numbers:
            return packed(np.concatenate([values[k] for k in names]), width) if names else b""
        return b"".join(packed_bits(values[k]) for k in names)

    last = max(name[1] for name in view.messages if name[0] == number)
    gates = {name for name in view.messages if name[0] == number and name[1] < last - 1}
    content = said(view.messages, sender)
    for route in ROUTES:
        if (route.hasher, route.receiver) == (sender, receiver):
            hashed = said(view.hashed, route.sender)
            if hashed:
                names = (layer, route.sender, route.hasher, receiver)
                content += digest("joint", number, names, hashed)
    return content


class TestModel:
    """Every byte that members send, from streams that another library made."""

    @pytest.mark.parametrize("width", [1, 2, 3])
    @pytest.mark.parametrize("number", [0, 1])
    @pytest.mark.parametrize("owners", [(0, 1), (2, 0, 3), (3, 1, 0, 2)])
    def test_a_chunk_of_pairs(self, owners: tuple[int, ...], number: int, width: int) -> None:
        view, machines, _ = self.pairs(owners, number, width)
        compared = 0
        for layer, said in enumerate(machines.said):
            for sender, receiver in product(MEMBERS, repeat=2):
                expected = layer_bytes(view, number, layer, sender, receiver, width)
                assert said[sender][receiver] == expected, (layer, sender, receiver)
                compared += len(expected)
        # Two gates or more for 128 pairs in 16 bytes, and six numbers a pair.
        assert compared > 6 * 128 * width

    def pairs(
        self, owners: tuple[int, ...], number: int, width: int, count: int = 70
    ) -> tuple[View, Machines, list[_core.CommitteeNumbers]]:
        """A chunk of pairs at the machines and in the model: its worlds are the pairs."""
        words = -(-count // 64)
        rng = np.random.default_rng([number, width, *owners])
        held = [rng.integers(0, 2, 64 * words).astype(np.uint64) for _ in owners]
        for bits in held:
            bits[count:] = 0
        machines = Machines(_core.CommitteeCircuit.counting(list(owners), width), number, count)
        vectors = machines.share(owners, [packed_bits(bits) for bits in held])

        def drawn(kind: str, component: int, *name: int) -> Array:
            if kind == "input":
                silo, _ = name
                return bits_of(drawn_bytes(8 * words, component, number, 0, silo, 0))
            if kind == "mask":
                _, _, gate, sender = name
                return bits_of(drawn_bytes(8 * words, component, number, 1, gate, sender))
            _, _, sender = name
            content = drawn_bytes(64 * words * width, component, number, 3, sender, 0)
            return elements_of(content, width)

        setting = Setting(8 * width, begin="inputs", owners=owners, number=number, answer=None)
        inputs: dict[tuple[int, int], Array] = {(s, 0): value for s, value in enumerate(held)}
        view = Model(setting, inputs, drawn).run()
        for silo, vector in enumerate(vectors):
            assert packed_bits(view.inputs[silo, 0]) == vector
        numbers = machines.go()
        assert (view.numbers[0] == view.union[0]).all()
        return view, machines, numbers

    @pytest.mark.parametrize("width", [1, 2, 3])
    @pytest.mark.parametrize("number", [3, 4])
    @pytest.mark.parametrize(
        "coins", [((YES,),), ((YES, NO),), ((NO, YES, YES), (YES, NO, NO)), ((YES, NO) * 3,)]
    )
    def test_a_chunk_of_noise(
        self, coins: tuple[tuple[bool, ...], ...], number: int, width: int
    ) -> None:
        view, machines, _ = self.noise(coins, number, width)
        for layer, said in enumerate(machines.said):
            for sender, receiver in product(MEMBERS, repeat=2):
                expected = layer_bytes(view, number, layer, sender, receiver, width)
                assert said[sender][receiver] == expected, (layer, sender, receiver)

    def noise(
        self, coins: tuple[tuple[bool, ...], ...], number: int, width: int, count: int = 5
    ) -> tuple[View, Machines, list[_core.CommitteeNumbers]]:
        """A chunk of noise: the model's lanes are digits, and its worlds are numbers."""
        lanes = 2 * len(coins)
        circuit = _core.CommitteeCircuit.noise([list(coin) for coin in coins], count, width)
        machines = Machines(circuit, number, count)

        def drawn(kind: str, component: int, *name: int) -> Array:
            if kind == "number":
                return np.zeros(64, np.uint64)
            _, lane, *names = name
            if kind == "element":
                content = drawn_bytes(64 * lanes * width, component, number, 3, names[0], 0)
                return elements_of(content, width)[64 * lane : 64 * (lane + 1)]
            names = [*names, 0][:2]
            content = drawn_bytes(8 * lanes, component, number, PURPOSES[kind], *names)
            return bits_of(content)[64 * lane : 64 * (lane + 1)]

        setting = Setting(8 * width, begin="numbers", number=number - 1, coins=coins)
        view = Model(setting, {(0, 0): np.zeros(64, np.uint64)}, drawn).run()
        return view, machines, machines.go()

    @pytest.mark.parametrize("width", [1, 2, 3])
    @pytest.mark.parametrize("kind", ["coins", "parts"])
    def test_answers(self, kind: str, width: int) -> None:
        """Halves, components and summands, with the noise of coins or of parts."""
        nodes, owners = 6, (2, 0, 1)
        pairs, _, numbers = self.pairs(owners, 0, width, count=15)
        counts = [_core.CommitteeCount(m, nodes, width, True) for m in MEMBERS]
        for member, count in enumerate(counts):
            count.add(0, 15, numbers[member])
            count.contract(0, nodes)
        answers: tuple[Answer, ...] = ("edges", "degrees", "two_stars", "triangles")
        for output, answer in enumerate(answers):
            length = nodes if answer == "degrees" else 1
            setting = Setting(
                8 * width, nodes, "numbers", answer=answer, noise="numbers", told=True
            )
            if kind == "coins":
                found, _, noise = self.noise(
                    ((YES, NO, YES), (NO, YES, NO)), 7 + output, width, length
                )
                shares = found.noise_components[0]
            else:
                shares, noise = self.parts(7 + output, width, length)
            view = self.answered(setting, pairs.components[0], shares, output)
            for member in MEMBERS:
                if setting.linear:
                    noisy = counts[member].linear(answer)
                    noisy.add(0, noise[member])
                    self.compare_opening(view, member, noisy, output, width)
                else:
                    factor = setting.factor
                    said = counts[member].published(
                        answer, seeds_of(member), output, factor, noise[member]
                    )
                    assert bytes(said) == packed(view.summands[member], width)

    @staticmethod
    def answered(setting: Setting, pairs: Shares, noise: Shares, output: int) -> View:
        """The model from components of numbers on; a value for each, in one world."""

        def drawn(kind: str, component: Any, *name: Any) -> Array:
            if kind == "draw":
                i, which = name
                z = sum(value[i] for value in noise.values())
                # The noise itself, and not a small law of it.
                return np.array([(z, ~np.uint64(0), 0)[which]], np.uint64)
            if kind == "zero":
                content = drawn_bytes(16, component, output, 5, 0, 0)
                return np.frombuffer(content, "<u8")[name[0] :][:1]
            of, at = pairs if name[0] == "pair" else noise, name[1]
            return of[component][at : at + 1]

        low, bits = np.uint64((1 << setting.bits) - 1), {}
        for pair in range(len(setting.pairs)):
            total = sum(int(value[pair]) for value in pairs.values())
            bits[0, pair] = np.array([total], np.uint64) & low
        return Model(setting, bits, drawn).run()

    @staticmethod
    def compare_opening(
        view: View, member: int, noisy: _core.CommitteeNumbers, output: int, width: int
    ) -> None:
        """What one member opens to the coordinator, and tells each other member."""
        expected = packed(np.concatenate(view.openings[member]), width)
        if (member + output) % 2:
            expected = digest("open-numbers", output, (2, 3) if member < 2 else (0, 1), expected)
        assert bytes(noisy.open(VIEW, output)) == expected
        for receiver in MEMBERS:
            step, said = (member - receiver) % 4, noisy.tell(VIEW, output, receiver)
            if step in (0, 3):
                assert said is None
                continue
            expected = packed(np.concatenate(view.told[member, receiver]), width)
            if step == 2:
                expected = digest("tell-numbers", output, (receiver,), expected)
            assert bytes(said or b"") == expected

    @staticmethod
    def parts(number: int, width: int, count: int) -> tuple[Shares, list[_core.CommitteeNumbers]]:
        """Parts at the machines and in the model, with all vectors and hashes compared."""
        rng = np.random.default_rng([number, width])
        drawn_parts = rng.integers(-50, 50, (4, count))
        machines = [_core.CommitteeParts(m, VIEW, number, count, width) for m in MEMBERS]
        vectors = []
        for owner in MEMBERS:
            vectors.append(bytes(machines[owner].share(seeds_of(owner), drawn_parts[owner])))
            for member in MEMBERS:
                if member not in (owner, (owner + 1) % 4):
                    machines[member].take(owner, vectors[-1])

        def drawn(kind: str, component: int, *name: int) -> Array:
            if kind == "number":
                return np.zeros(count, np.uint64)
            if kind == "draw":
                values = (drawn_parts[component].astype(np.uint64), ~np.uint64(0), 0)
                return np.full(count, values[name[1]], np.uint64)
            content = drawn_bytes(8 * count, component, number, 4, name[0], 0)
            return np.frombuffer(content, "<u8")

        # The worlds of the model are the numbers.
        setting = Setting(8 * width, begin="numbers", noise="parts", number=number - 1)
        view = Model(setting, {(0, 0): np.zeros(count, np.uint64)}, drawn).run()
        for owner in MEMBERS:
            assert packed(view.vectors[owner][0], width) == vectors[owner]
        for one, other in product(MEMBERS, repeat=2):
            if one != other:
                held = [vectors[m] for m in MEMBERS if (m + 1) % 4 not in (one, other)]
                two = (min(one, other), max(one, other))
                assert machines[one].inputs_digest(other) == digest("parts", number, two, *held)
        low = np.uint64((1 << 8 * width) - 1)
        assert (view.noise[0] == drawn_parts.sum(axis=0).astype(np.uint64) & low).all()
        return view.noise_components[0], [
            machine.numbers(seeds_of(member)) for member, machine in enumerate(machines)
        ]

    @pytest.mark.parametrize("number", [0, 1])
    def test_after_a_falsification_the_same_members_stop(self, number: int) -> None:
        """In each layer every message and every hash: its receiver stops, and nobody else."""
        setting = Setting(8, begin="inputs", owners=(0, 1, 2), number=number, answer=None)
        circuit, tried = _core.CommitteeCircuit.counting([0, 1, 2], 1), 0
        for layer in range(circuit.layers):
            for cheat in MEMBERS:
                step = items(setting, cheat).get(f"chunk {number}, layer {layer}", [])
                for item in {(kind, receiver) for kind, _, _, receiver, *_ in step}:
                    machines = Machines(circuit, number, 60)
                    machines.share((0, 1, 2), [bytes(8)] * 3)
                    machines.begin()
                    for _ in range(layer):
                        machines.hear(machines.speak())
                    said = machines.speak()
                    kind, receiver = item
                    assert isinstance(receiver, int)
                    changed = bytearray(said[cheat][receiver])
                    changed[0 if kind == "joint" else -1] ^= 1
                    said[cheat][receiver] = bytes(changed)
                    assert machines.hear(said) == [m == receiver for m in MEMBERS]
                    tried += 1
        # Twelve messages in two gate layers of three, six in those of the conversion; each a hash.
        assert tried >= 24


class TestNames:
    """No two masks and no two hashes of a chunk have the same name."""

    @pytest.mark.parametrize("number", [0, 1])
    def test_the_two_layers_use_different_routes(self, number: int) -> None:
        routes = [route for route in ROUTES if route.parity == number]
        first = {r[:3] for r in routes if r.receiver // 2 == r.other // 2}
        second = {r[:3] for r in routes if r.receiver // 2 != r.other // 2}
        assert len(first) == 2
        assert len(second) == 4
        # A mask is named by chunk, receiver and sender. No layer is in its name, or needed.
        assert len({(sender, receiver) for sender, _, receiver in first | second}) == 6
        # A receiver has at most one hash from each hasher in a layer.
        for layer in (first, second):
            assert len({(hasher, receiver) for _, hasher, receiver in layer}) == len(layer)

    def test_purposes_differ(self) -> None:
        """The same numbers under another purpose are another stream."""
        names = [(0, 0, purpose, 0, 0) for purpose in PURPOSES.values()]
        assert len({stream(SEEDS[0], VIEW, 4, *name).tobytes() for name in names}) == len(names)


# --- all worlds -----------------------------------------------------------------------------------

#: Whole runs over Z_2, and over Z_4 for one pair: conversion, noise, opening.
WHOLE = {
    "one pair over Z_2": Setting(1),
    "one pair over Z_4": Setting(2),
    "an odd chunk over Z_2": Setting(1, number=1),
    "an odd chunk over Z_4": Setting(2, number=1),
    "from the inputs on over Z_2": Setting(1, begin="inputs"),
    "three silos over Z_2": Setting(1, begin="inputs", owners=(2, 0, 3), number=1),
    "a coin of two places, told": Setting(1, coins=((YES, NO),), told=True),
    "three pairs over Z_2": Setting(1, nodes=3, answer="edges"),
}
#: From components of numbers on.
ANSWERS = {
    "edges": Setting(2, 3, "numbers", noise="numbers"),
    "edges, told": Setting(2, 3, "numbers", noise="numbers", told=True),
    "edges with parts": Setting(2, 2, "numbers", noise="parts"),
    "edges with parts over Z_2": Setting(1, 3, "numbers", noise="parts", told=True),
    "degrees, told": Setting(2, 3, "numbers", answer="degrees", noise="numbers", told=True),
    "degrees of two nodes": Setting(2, 2, "numbers", answer="degrees", noise="numbers"),
    "2-stars over Z_4": Setting(2, 3, "numbers", answer="two_stars", noise="numbers"),
    "2-stars over Z_8": Setting(3, 3, "numbers", answer="two_stars", noise="numbers"),
    "triangles over Z_4": Setting(2, 3, "numbers", answer="triangles", noise="numbers"),
    "triangles over Z_8": Setting(3, 3, "numbers", answer="triangles", noise="numbers"),
}
ONE, ODD = Setting(2), Setting(2, number=1)
TOLD = Setting(2, begin="numbers", noise="numbers", told=True)
PARTS = Setting(2, begin="numbers", noise="parts")
COUNTS = [ANSWERS["2-stars over Z_4"], ANSWERS["triangles over Z_4"]]


def steps(setting: Setting, cheat: int, rules: Rules | None = None) -> Iterator[list[Item]]:
    """No falsification, and then everything that can be falsified in each step."""
    yield []
    yield from items(setting, cheat, rules).values()


class TestConversion:
    """One pair, with everything enumerated: what is known, what is unknown, what is falsified."""

    @pytest.mark.parametrize("number", [0, 1])
    @pytest.mark.parametrize("w", [1, 2])
    def test_what_a_member_sees(self, w: int, number: int) -> None:
        setting, ways = Setting(w, number=number, answer=None), 0
        for cheat in MEMBERS:
            for falsified in steps(setting, cheat):
                found = Enumeration(Case(setting, cheat), falsified)
                assert found.independent(), (cheat, falsified)
                ways += found.ways
                if not falsified:
                    assert (found.view.numbers[0] == found.view.union[0]).all()
        assert ways == {1: 6_720, 2: 496_128}[w]

    @pytest.mark.whole
    @pytest.mark.parametrize("number", [0, 1])
    def test_what_a_member_sees_over_z_8(self, number: int) -> None:
        setting = Setting(3, number=number, answer=None)
        for cheat in MEMBERS:
            assert Enumeration(Case(setting, cheat)).independent()

    @pytest.mark.parametrize("number", [0, 1])
    @pytest.mark.parametrize("w", [1, 2])
    def test_components_are_uniform_but_for_their_sum(self, w: int, number: int) -> None:
        """So a run may begin at numbers, and halves or single components tell nothing."""
        setting = Setting(w, number=number, answer=None)
        for bit in (0, 1):
            parts = all_worlds(setting, bit).components[0]
            keys = np.sum([parts[c].astype(np.int64) << w * c for c in MEMBERS], axis=0)
            found, counts = np.unique(keys, return_counts=True)
            sums = np.sum([found >> w * c for c in MEMBERS], axis=0) % (1 << w)
            assert len(found) == 1 << 3 * w
            assert len(set(counts.tolist())) == 1
            assert (sums == bit).all()


class TestViews:
    @pytest.mark.parametrize("name", WHOLE)
    @pytest.mark.parametrize("coordinator", [False, True])
    def test_a_whole_run(self, name: str, coordinator: bool) -> None:
        """Without a falsification, and with one in each step."""
        self.enumerate(WHOLE[name], coordinator, most=20)

    @pytest.mark.whole
    @pytest.mark.parametrize(
        "setting",
        [
            Setting(1, 3, answer="triangles"),
            Setting(1, answer="degrees", told=True),
            Setting(1, begin="numbers", coins=((YES,), (YES,))),
            Setting(1, coins=((YES, NO),), number=1, told=True),
            Setting(2, begin="inputs", owners=(0, 1)),
            Setting(1, begin="inputs", owners=(0, 1, 2, 3), number=1),
            Setting(1, 2, "numbers", coins=((NO, YES, NO),)),
            Setting(2, 2, "numbers", coins=((YES, NO),)),
        ],
    )
    @pytest.mark.parametrize("coordinator", [False, True])
    def test_a_larger_run(self, setting: Setting, coordinator: bool) -> None:
        """Where there are too many worlds, what is falsified in a step is split into groups."""
        self.enumerate(setting, coordinator, most=22)

    @pytest.mark.parametrize("name", ANSWERS)
    @pytest.mark.parametrize("coordinator", [False, True])
    def test_answers(self, name: str, coordinator: bool) -> None:
        """What is known is drawn 8 times, or 4 times where something is falsified."""
        self.enumerate(ANSWERS[name], coordinator, most=20, draws=3)

    @staticmethod
    def enumerate(setting: Setting, coordinator: bool, most: int, draws: int = 0) -> None:
        left = 0
        for cheat in MEMBERS:
            for falsified in steps(setting, cheat):
                constants = np.random.default_rng(cheat)
                many = min(draws, 2) if falsified else draws
                case = Case(setting, cheat, coordinator)
                for some in Enumeration.within(case, falsified, most, many):
                    found = Enumeration(case, some, constants, draws=many)
                    assert found.independent(), (cheat, some)
                    if not some:
                        assert found.lawful(), cheat
                left += 1
        assert left > 3


class TestCoordinator:
    """Alone, without a member: everything that is drawn is unknown."""

    @pytest.mark.parametrize("w", [1, 2])
    def test_shares_of_zero_are_uniform_but_for_their_sum(self, w: int) -> None:
        names = [(c, i) for c in MEMBERS for i in (0, 1)]
        worlds = np.arange(1 << 8 * w)
        drawn = {n: worlds >> w * k & (1 << w) - 1 for k, n in enumerate(names)}
        shares = np.zeros((4, len(worlds)), np.int64)
        for c in MEMBERS:
            f, h = drawn[c, 0], drawn[c, 1]
            for step, part in ((1, f), (2, h - f), (3, -h)):
                shares[(c + step) % 4] += part
        shares %= 1 << w
        assert (shares.sum(axis=0) % (1 << w) == 0).all()
        keys = sum(shares[m] << w * m for m in MEMBERS)
        _, counts = np.unique(keys, return_counts=True)
        assert len(counts) == 1 << 3 * w
        assert len(set(counts.tolist())) == 1

    @pytest.mark.parametrize("kind", ["coins", "parts"])
    def test_noise_is_uniform_but_for_its_sum(self, kind: str) -> None:
        """So is what it is added to. Digits are converted numbers; parts over Z_2 in full."""
        if kind == "coins":
            law = np.zeros((2, 4, 4), np.int64)
            for bit in (0, 1):
                parts = all_worlds(Setting(2, answer=None), bit).components[0]
                one, other = ((parts[a] + parts[a + 1]) & 3 for a in (0, 2))
                np.add.at(law[bit], (one, other), 1)
            for x, g, minus in product((0, 1), repeat=3):
                found = np.zeros((4, 4), np.int64)
                for a, b, c, d, e, f in product(range(4), repeat=6):
                    weight = law[x, a, b] * law[g, c, d] * law[minus, e, f]
                    found[(a + c - e) % 4, (b + d - f) % 4] += weight
                self.uniform(found, (x + g - minus) % 4)
            return
        setting = Setting(1, begin="numbers", noise="parts")
        view = all_worlds(setting, 0, fixed=("draw", "number"))
        held = view.noise_components[0]
        first, second = (held[a] ^ held[a + 1] for a in (0, 2))
        counts = np.zeros((2, 2), np.int64)
        np.add.at(counts, (first, second), 1)
        self.uniform(counts, 0)

    @staticmethod
    def uniform(counts: npt.NDArray[np.int64], total: int) -> None:
        size = len(counts)
        for a, b in np.ndindex(size, size):
            assert (counts[a, b] > 0) == ((a + b) % size == total)
        assert len(set(counts[counts > 0].tolist())) == 1


class TestControls:
    """Each rule that is broken is found by the same enumeration."""

    def leaks(
        self, rules: Rules, setting: Setting, coordinator: bool = False, *, falsify: bool = False
    ) -> set[int]:
        """The members that learn something."""
        found = set()
        for cheat in MEMBERS:
            for falsified in steps(setting, cheat, rules) if falsify else [[]]:
                constants = np.random.default_rng(cheat)
                case = Case(setting, cheat, coordinator)
                if not Enumeration(
                    case, falsified, constants, rules, draws=0 if falsified else 3
                ).independent():
                    found.add(cheat)
                    break
        return found

    @pytest.mark.parametrize(("setting", "senders"), [(ONE, {0, 2}), (ODD, {1, 3})])
    def test_checks_that_come_late(self, setting: Setting, senders: set[int]) -> None:
        """Who sends in the first layer learns from the hashes of the second whether a pair is held.

        With the coordinator the other two do, from the noise, whose chunk has the other parity.
        """
        late = Rules(compared_in_time=False)
        assert self.leaks(late, setting, falsify=True) == senders
        assert self.leaks(late, setting, coordinator=True, falsify=True) == set(MEMBERS)
        # A run without a cheat shows nothing.
        assert self.leaks(late, setting, coordinator=True) == set()

    @pytest.mark.parametrize(
        ("setting", "layers", "routes"), [(ONE, {0}, {0, 1}), (ODD, {3}, {2, 3})]
    )
    def test_one_mask_for_two_messages(
        self, setting: Setting, layers: set[int], routes: set[int]
    ) -> None:
        """In two layers, on two routes to one receiver, or for two pairs."""
        assert self.leaks(Rules(fresh="not layers"), setting) == layers
        assert self.leaks(Rules(fresh="not routes"), setting) == routes
        three = Setting(1, 3, number=setting.number, answer=None)
        receivers = {0, 1, 2} if setting is ONE else {1, 2, 3}
        assert self.leaks(Rules(fresh="not lanes"), three) == receivers
        assert self.leaks(Rules(), three) == set()

    def test_one_mask_for_two_digits_of_noise(self) -> None:
        rules = Rules(fresh="not lanes")
        assert self.leaks(rules, ONE) == set()
        assert self.leaks(rules, ONE, coordinator=True) == {1, 2, 3}

    @pytest.mark.parametrize(("setting", "receivers"), [(ONE, {0, 1, 2}), (ODD, {1, 2, 3})])
    def test_a_bit_above_those_that_travel(self, setting: Setting, receivers: set[int]) -> None:
        """Carries: every receiver of a number reads from them, and every opening shows them."""
        whole = Rules(reduced=False)
        assert self.leaks(whole, setting) == receivers
        assert self.leaks(whole, setting, coordinator=True) == set(MEMBERS)
        assert self.leaks(whole, TOLD) == set(MEMBERS)
        for count in COUNTS:
            assert self.leaks(whole, count) == set()
            assert self.leaks(whole, count, coordinator=True) == set(MEMBERS)

    @pytest.mark.parametrize("setting", COUNTS)
    @pytest.mark.parametrize("zeros", ["none", "two"])
    def test_summands_without_a_share_of_zero_among_three(
        self, setting: Setting, zeros: str
    ) -> None:
        """Of F and −F between two holders the third adds nothing: its summand is bare."""
        rules = Rules(zeros=zeros)  # type: ignore[arg-type]
        assert self.leaks(rules, setting) == set()
        assert self.leaks(rules, setting, coordinator=True) == set(MEMBERS)

    @pytest.mark.parametrize("setting", [ONE, ODD])
    def test_single_components_would_do_no_harm(self, setting: Setting) -> None:
        """Halves are opened because they are shorter, not because components would tell more."""
        rules = Rules(opens="components")
        assert self.leaks(rules, setting, coordinator=True, falsify=True) == set()

    def test_telling_something_else(self) -> None:
        """A component that the receiver has tells nothing; one without noise tells it the bit."""
        for coordinator in (False, True):
            assert self.leaks(Rules(tells="another"), TOLD, coordinator) == set()
            assert self.leaks(Rules(tells="bare"), TOLD, coordinator) == set(MEMBERS)

    @pytest.mark.parametrize("member", MEMBERS)
    def test_noise_that_a_member_knows(self, member: int) -> None:
        """It says nothing alone; with the coordinator it is the answer without noise."""
        rules = Rules(told_the_noise=member)
        assert self.leaks(rules, ONE) == set()
        assert self.leaks(rules, ONE, coordinator=True) == {member}

    @pytest.mark.parametrize("component", MEMBERS)
    def test_parts_with_another_component_that_is_zero(self, component: int) -> None:
        """Who lacks it lacks nothing: it knows all parts."""
        rules = Rules(zero_component=component)
        assert self.leaks(rules, PARTS) == set()
        assert self.leaks(rules, PARTS, coordinator=True) == {component}

    def test_parts_whose_own_component_is_not_zero(self) -> None:
        """Nobody learns more, but the noise is no longer the one that is claimed."""
        rules = Rules(own_is_zero=False)
        for cheat in MEMBERS:
            constants = np.random.default_rng(cheat)
            found = Enumeration(Case(PARTS, cheat, True), (), constants, rules)
            assert found.independent()
            assert not found.lawful()
