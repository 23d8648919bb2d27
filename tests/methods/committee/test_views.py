"""Tier 0 for the committee: what one member sees, with or without the coordinator, says nothing.

The model of ``model.py`` has every random bit of one pair. First it is shown to be what the
machines do: every message, hash and opening, bit by bit, and who still speaks after a
falsification. Then every value of the bits that an adversary does not know is enumerated, for every
combination of the honest silos' bits.

Every deviation is enumerated by steps: in one step a cheat falsifies any subset of what it sends,
and before that nothing. This covers a cheat that decides as it goes. By induction over the steps,
what it has seen before its first falsification follows one law, whatever the honest silos hold; so
does, for every fixed falsification, all that follows, together with who stops and when. A cheat
that chooses its falsification by what it has seen picks, for each prefix, one of these laws. After
a falsification its receivers have stopped, and every other member waits for them in the next step:
it uses nothing more, so a second falsification has no effect. A cheat that first waits for what
others say in the next step is covered, too: they say it, falsification or not.
"""

import hashlib
from itertools import chain, combinations, permutations

import numpy as np
import pytest

from silograph.messages.identity import COORDINATOR, pack
from tests.methods.committee.model import (
    MEMBERS,
    ROUTES,
    Case,
    Enumeration,
    Item,
    Model,
    Rules,
    Setting,
    View,
    items,
)
from tests.methods.committee.oracle import Oracle, Words
from tests.methods.committee.run import (
    COMMITTEES,
    CommitteeRun,
    Message,
    flipped,
    parameters,
)

pytestmark = pytest.mark.slow

YES, NO = True, False
#: The owners of the silos' bits, and the digits of the coin from the lowest on.
SETTINGS = {
    "two silos, two helpers": Setting((0, 1), (YES, NO)),
    "two silos in other places": Setting((3, 1), (YES, YES, NO)),
    "three silos, a helper": Setting((0, 1, 2), (YES, NO, NO)),
    "four silos": Setting((0, 1, 2, 3), (YES, YES, NO)),
    "four silos in another order": Setting((1, 3, 0, 2), (YES, NO)),
    "a silo outside, two helpers": Setting((0, 2, None), (YES, NO)),
    "five silos, one outside": Setting((0, 1, 2, 3, None), (YES, NO)),
    "three silos outside": Setting((3, None, None, None), (YES, NO)),
}
#: Circuits for which all subsets of falsifications are enumerated in a short time.
CHEATED = {
    "two silos, two helpers": Setting((0, 1), (YES, NO)),
    "two silos in other places": Setting((3, 1), (YES, YES, NO)),
    "three silos, a helper": Setting((0, 1, 2), (YES, NO)),
    "four silos": Setting((0, 1, 2, 3), (YES, NO)),
    "a silo outside, two helpers": Setting((0, 2, None), (YES, NO)),
}
FIVE = Setting((0, 1, 2, 3, None), (YES,))


def setting_of(run: CommitteeRun) -> Setting:
    given = run.parameters
    owners = tuple(given.number(silo) for silo in range(given.silos))
    digits = tuple(bool(given.numerator >> place & 1) for place in range(given.places))
    return Setting(owners, digits)


def adversaries(setting: Setting) -> list[Case]:
    """Every member, alone or with silos outside, with or without the coordinator."""
    outside = [silo for silo, owner in enumerate(setting.owners) if owner is None]
    return [
        Case(setting, cheat, colluding, coordinator)
        for cheat in MEMBERS
        for colluding in dict.fromkeys([(), tuple(outside[:1]), tuple(outside)])
        for coordinator in (False, True)
        if len(colluding) < len(setting.owners) - (cheat in setting.owners)
    ]


class TestModel:
    """The model is what the machines do."""

    @pytest.mark.parametrize("name", COMMITTEES)
    def test_every_message_is_that_of_the_model(self, name: str) -> None:
        """All bytes of all encrypted messages, from streams that another library made."""
        committee = COMMITTEES[name]
        given = parameters(committee, 2 * 128 + 70, chunk_pairs=128, numerator=11, places=5)
        rng = np.random.default_rng(3)
        held = [int.from_bytes(rng.bytes(40), "little") for _ in range(committee.silos)]
        run = CommitteeRun(committee, held, given=given).go()
        assert run.errors == []
        oracle, compared = Oracle(run), 0
        expected = [self.expected(run, oracle, chunk) for chunk in range(given.chunks)]
        sent = chain(*expected, self.seeds(run, oracle))
        contents = {
            message.name: oracle.content(message)
            for message in run.sent
            if message.envelope.round not in ("key", "keys", "confirm", "confirms")
        }
        for message_name, content in sent:
            assert contents.pop(message_name) == content, message_name
            compared += 1
        assert contents == {}
        assert compared > 100

    def expected(
        self, run: CommitteeRun, oracle: Oracle, chunk: int
    ) -> list[tuple[tuple[str, int, int, int], bytes]]:
        """Names and contents of all messages of one chunk."""
        given, setting, place = run.parameters, setting_of(run), run.parameters.members
        bits = [np.frombuffer(run.bits(silo, chunk), "<u8") for silo in range(given.silos)]
        view = Model(setting, bits, lambda *name: oracle.words(chunk, *name)).run()
        found = []
        for silo, owner in enumerate(setting.owners):
            for member in setting.holders(silo):
                if member != owner:
                    vector = view.vectors[silo].tobytes()
                    found.append((("input", chunk, silo, place[member]), vector))
        for one, other in combinations(MEMBERS, 2):
            held = [v for s, v in view.vectors.items() if setting.vector(s) not in (one, other)]
            label = (b"silograph/committee/inputs/v1", chunk, one, other)
            digest = self.digest(oracle, *label, vectors=held)
            for sender, receiver in ((one, other), (other, one)):
                found.append((("check", chunk, place[sender], place[receiver]), digest))
        found += self.layers(run, oracle, chunk, view)
        for member in MEMBERS:
            if place[member] == COORDINATOR:
                continue
            content = view.openings[member].tobytes()
            if (member + chunk) % 2:
                half = (2, 3) if member < 2 else (0, 1)
                label = (b"silograph/committee/open/v1", chunk, *half)
                content = self.digest(oracle, *label, vectors=[view.openings[member]])
            found.append((("open", chunk, place[member], COORDINATOR), content))
        return found

    def layers(
        self, run: CommitteeRun, oracle: Oracle, chunk: int, view: View
    ) -> list[tuple[tuple[str, int, int, int], bytes]]:
        found, place, layers = [], run.parameters.members, list(setting_of(run).layers())
        for number, (gates, _, _) in enumerate(layers):
            for sender, receiver in permutations(MEMBERS, 2):
                content = b""
                for route in sorted(ROUTES, key=lambda route: route.hasher == sender):
                    active = [g for g in gates if g % 2 == route.parity]
                    named = [(gate, route.sender, receiver) for gate in active]
                    if route.receiver != receiver or not active:
                        continue
                    if route.sender == sender:
                        content += b"".join(view.messages[n].tobytes() for n in named)
                    elif route.hasher == sender:
                        label = (b"silograph/committee/joint/v1", chunk, number, *route[:3])
                        hashed = [view.hashed[n] for n in named]
                        content += self.digest(oracle, *label, vectors=hashed)
                sequence = chunk * len(layers) + number
                found.append((("joint", sequence, place[sender], place[receiver]), content))
        return found

    def seeds(
        self, run: CommitteeRun, oracle: Oracle
    ) -> list[tuple[tuple[str, int, int, int], bytes]]:
        given, setting, place = run.parameters, setting_of(run), run.parameters.members
        outside = [silo for silo, owner in enumerate(setting.owners) if owner is None]
        found = []
        for member in MEMBERS:
            component = (member - 1) % 4
            for other in MEMBERS:
                if other not in (member, component):
                    name = ("seed", 0, place[member], place[other])
                    found.append((name, oracle.seeds[component]))
            for silo in outside:
                drawn = [c for c in MEMBERS if c not in (member, setting.vector(silo))]
                content = b"".join(oracle.outside[silo, c] for c in drawn)
                found.append((("seed", 0, silo, place[member]), content))
            for other in MEMBERS:
                if other == member:
                    continue
                common = [c for c in MEMBERS if c not in (member, other)]
                seeds = [oracle.seeds[c] for c in common]
                for silo in outside:
                    held = [c for c in common if c != given.vector(silo)]
                    seeds += [oracle.outside[silo, c] for c in held]
                numbers = [str(n).encode() for n in sorted((member, other))]
                fields = (b"silograph/committee/seeds/v1", oracle.view, *numbers, *seeds)
                digest = hashlib.sha256(pack(*fields)).digest()
                found.append((("match", 0, place[member], place[other]), digest))
        return found

    @staticmethod
    def digest(oracle: Oracle, label: bytes, *numbers: int, vectors: list[Words]) -> bytes:
        content = len(label).to_bytes(8, "little") + label + oracle.view
        content += b"".join(number.to_bytes(8, "little") for number in numbers)
        content += b"".join(vector.tobytes() for vector in vectors)
        return hashlib.sha256(content).digest()

    @pytest.mark.parametrize(
        "name",
        [
            "four silos in another order",
            pytest.param("a silo outside, two helpers", marks=pytest.mark.whole),
        ],
    )
    def test_after_a_falsification_the_same_members_speak(self, name: str) -> None:
        """Every single falsification, and some pairs: who speaks in which step, at the machines."""
        committee, tried = COMMITTEES[name], 0
        honest = CommitteeRun(committee).go()
        setting = setting_of(honest)
        outside = [silo for silo, owner in enumerate(setting.owners) if owner is None]
        for cheat in MEMBERS:
            for wrongs in items(setting, cheat, tuple(outside)).values():
                chosen = [(wrong,) for wrong in wrongs] + list(combinations(wrongs, 2))[::9]
                for falsified in chosen:
                    run = self.falsify(honest, setting, cheat, falsified)
                    self.compare(run, setting, cheat, falsified)
                    tried += 1
        assert tried > 100

    def falsify(
        self, honest: CommitteeRun, setting: Setting, cheat: int, falsified: tuple[Item, ...]
    ) -> CommitteeRun:
        place, layers = honest.parameters.members, list(setting.layers())
        right = {message.name: message.raw for message in honest.sent}

        def change(message: Message) -> list[bytes]:
            if message.receiver == place[cheat]:  # its own machine is not to notice anything
                return [right[message.name]]
            content, length = run.content(message), 8
            for kind, *numbers in falsified:
                name, byte = None, 0
                match kind, numbers:
                    case "open", []:
                        name = ("open", 0, place[cheat], COORDINATOR)
                    case "outside seed", [silo, component, member]:
                        name = ("seed", 0, silo, place[member])
                        drawn = [c for c in MEMBERS if c not in (member, setting.vector(silo))]
                        byte = 32 * drawn.index(component)
                    case "input", [silo, member]:
                        name = ("input", 0, silo, place[member])
                    case "joint", [gate, member]:
                        layer = next(i for i, layer in enumerate(layers) if gate in layer[0])
                        name = ("joint", layer, place[cheat], place[member])
                        first = [g for g in layers[layer][0] if (g - gate) % 2 == 0]
                        byte = length * first.index(gate)
                    case "hash", [layer, member]:
                        name, byte = ("joint", layer, place[cheat], place[member]), -1
                    case _, [member]:
                        name = (kind, 0, place[cheat], place[member])
                if message.name == name:
                    content = flipped(content, byte)
            if content == run.content(message):
                return [message.raw]
            return [run.say(message, content).raw]

        run = CommitteeRun(honest.committee, change=change)
        return run.go()

    def compare(
        self, run: CommitteeRun, setting: Setting, cheat: int, falsified: tuple[Item, ...]
    ) -> None:
        none = np.zeros(1, np.uint64)
        # A cheat's digests follow its lies here; at the machines it tells its own seed to both.
        wrong = lambda *name: ~none if name in falsified else none  # noqa: E731
        bits = [none] * len(setting.owners)
        view = Model(setting, bits, lambda *_: none, cheat, self.digests(wrong, falsified)).run()
        spoke = {
            (m.name[0], m.name[1], m.name[2])
            for m in run.sent
            if m.name[0] in ("input", "check", "joint", "open")
        }
        for name, value in view.spoke.items():
            *step, member = name
            sequence = step[1] if len(step) > 1 else 0
            sender = run.parameters.members[member]
            if step[0] == "input" and sender >= run.parameters.silos:
                continue
            if (step[0], sender) == ("open", COORDINATOR):
                continue
            assert ((step[0], sequence, sender) in spoke) == bool(value.any()), (name, falsified)

    @staticmethod
    def digests(wrong: object, falsified: tuple[Item, ...]) -> object:
        """The cheat's own digests, which at the machines are those of what it has itself."""
        one = np.full(1, 0xFFFFFFFFFFFFFFFF, np.uint64)
        lies = {("match", n[-1]) for n in falsified if "seed" in str(n[0])}
        lies |= {("check", n[-1]) for n in falsified if n[0] == "input"}
        return lambda *name: one if name in lies else wrong(*name)  # type: ignore[operator]


class TestViews:
    @pytest.mark.parametrize("name", SETTINGS)
    def test_what_a_member_sees(self, name: str) -> None:
        """One law for all bits of honest silos; with the coordinator, given the released bit."""
        for case in adversaries(SETTINGS[name]):
            for draw in range(3):
                constants = np.random.default_rng([draw, case.cheat])
                assert Enumeration(case, constants=constants).independent(), case

    @pytest.mark.parametrize(
        "owners",
        [(0, 2), *(pytest.param(o, marks=pytest.mark.whole) for o in ((0, 1), (2, 0), (1, None)))],
    )
    def test_the_smallest_circuit_with_all_bits(self, owners: tuple[int | None, ...]) -> None:
        """Here the known bits are enumerated as well, with every falsification."""
        ways = 0
        for case in adversaries(Setting(owners, (YES,))):
            for falsified in ([], *items(case.setting, case.cheat).values()):
                enumeration = Enumeration(case, falsified)
                assert enumeration.independent(), (case, falsified)
                ways += enumeration.ways
        assert ways > 200_000

    @pytest.mark.parametrize("name", CHEATED)
    def test_whatever_a_member_falsifies(self, name: str) -> None:
        """Every subset of what it sends in a step, for both values of its own bit."""
        ways = 0
        for case in adversaries(CHEATED[name]):
            ways += self.falsify(case, draws=1)
        assert ways > 500

    @pytest.mark.whole
    def test_whatever_a_member_falsifies_beside_a_silo_outside(self) -> None:
        for case in adversaries(FIVE):
            self.falsify(case, draws=1)

    @pytest.mark.whole
    @pytest.mark.parametrize("cheat", MEMBERS)
    @pytest.mark.parametrize("coordinator", [False, True])
    @pytest.mark.parametrize("name", ["five silos, one outside", "four silos"])
    def test_whatever_a_member_falsifies_in_a_larger_circuit(
        self, name: str, cheat: int, coordinator: bool
    ) -> None:
        self.falsify(Case(SETTINGS[name], cheat, (), coordinator), draws=1)

    def falsify(self, case: Case, draws: int) -> int:
        ways = 0
        for falsified in items(case.setting, case.cheat, case.colluding).values():
            unknown = len(case.names(Rules())[1]) + len(case.setting.owners)
            for some, always in _parts(falsified, max(22 - unknown, 0)):
                for draw in range(draws):
                    constants = np.random.default_rng([draw, case.cheat])
                    found = Enumeration(case, some, constants, always=always)
                    assert found.independent(), (case, some, always)
                    ways += found.ways
        return ways


def _parts(falsified: list[Item], most: int) -> list[tuple[list[Item], tuple[Item, ...]]]:
    """The items whose subsets are enumerated at once, with every subset of the others."""
    some, rest = falsified[:most], falsified[most:]
    subsets = chain(*(combinations(rest, size) for size in range(len(rest) + 1)))
    return [(some, subset) for subset in subsets]


class TestControls:
    """Each rule that is broken is found by the same enumeration."""

    def leaks(self, rules: Rules, setting: Setting, coordinator: bool = False) -> set[int]:
        """The members that learn something."""
        found = set()
        for cheat in MEMBERS:
            case = Case(setting, cheat, (), coordinator)
            for falsified in ([], *items(setting, cheat).values()):
                constants = np.random.default_rng(cheat)
                if not Enumeration(case, falsified, constants, rules).independent():
                    found.add(cheat)
                    break
        return found

    def test_checks_that_come_late(self) -> None:
        """The published attack: one flipped bit, and later hashes tell what two others hold."""
        assert self.leaks(Rules(compared_in_time=False), CHEATED["four silos"]) == set(MEMBERS)
        # A run without a cheat shows nothing.
        for cheat in MEMBERS:
            case, rules = Case(CHEATED["four silos"], cheat), Rules(compared_in_time=False)
            constants = np.random.default_rng(cheat)
            assert Enumeration(case, None, constants, rules).independent()

    def test_a_key_that_the_fourth_member_has(self) -> None:
        assert self.leaks(Rules(keys_of_two=False), CHEATED["four silos"]) == set(MEMBERS)

    def test_a_hash_that_others_can_read(self) -> None:
        assert self.leaks(Rules(hashes_hidden=False), CHEATED["four silos"]) == set(MEMBERS)

    @pytest.mark.parametrize("component", MEMBERS)
    def test_a_component_of_an_outside_silo_that_is_zero(self, component: int) -> None:
        """The member that lacks it lacks nothing."""
        setting = Setting((3, None, None, None), (YES,))
        assert component in self.leaks(Rules(zero_component=component), setting)

    def test_one_mask_for_two_gates(self) -> None:
        assert self.leaks(Rules(fresh_masks=False), SETTINGS["four silos"]) != set()

    @pytest.mark.parametrize("member", MEMBERS)
    def test_a_coin_that_a_member_knows(self, member: int) -> None:
        """It says nothing alone; with the coordinator it is the union."""
        rules, setting = Rules(told_the_coin=member), CHEATED["two silos, two helpers"]
        assert self.leaks(rules, setting) == set()
        assert self.leaks(rules, setting, coordinator=True) == {member}
