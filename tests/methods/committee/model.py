"""The committee's union for one pair over Z_2, with every random bit explicit.

A variable is an array of 64-bit words; each bit of it is one world. So one evaluation computes
64 worlds a word: the pairs of a chunk, or all values of the bits that somebody does not know. One
member may cheat in what it sends: ``wrong`` says in which worlds an item of it is false. What it
believes of its own state stays right, so that its other messages are those of the protocol.

Honest parties stop as the machines do: a party that finds two members disagree says nothing more,
and a party that lacks a message waits. Withholding a message stops its receiver as well, and shows
less, so it needs no case of its own.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from silograph import _core

Words = npt.NDArray[np.uint64]
#: A stream's bits: the component, then ``input`` silo, ``mask`` gate sender or ``coin`` place.
Stream = Callable[..., Words]
#: In which worlds an item of the cheat is false.
Wrong = Callable[..., Words]

#: A stream, or something that the cheat sends.
Item = tuple[object, ...]

MEMBERS = range(4)


class Route(NamedTuple):
    """Who sends, hashes, receives and takes no part in one joint message."""

    sender: int
    hasher: int
    receiver: int
    other: int
    parity: int


def _route(sender: int, receiver: int) -> Route:
    hasher, other, parity = _core.committee_route(sender, receiver)
    return Route(sender, hasher, receiver, other, parity)


ROUTES = tuple(_route(s, r) for s in MEMBERS for r in MEMBERS if s != r)


@dataclass(frozen=True)
class Setting:
    """The owners of the silos' bits, by number in the committee, and the digits of the coin."""

    owners: tuple[int | None, ...]
    coin: tuple[bool, ...]

    def vector(self, silo: int) -> int:
        """The component of a silo's bits that travels."""
        return _core.committee_vector(self.owners[silo], silo)

    def holders(self, silo: int) -> list[int]:
        """The members that hold it."""
        return [member for member in MEMBERS if member != self.vector(silo)]

    @property
    def numerator(self) -> int:
        return sum(digit << place for place, digit in enumerate(self.coin))

    def layers(self) -> Iterator[tuple[range, int, bool]]:
        """The numbers of each layer's gates, how many are of the tree, whether the coin has one."""
        width, first, layer = len(self.owners), 0, 0
        while width > 1 or layer + 1 < len(self.coin):
            flips = layer + 1 < len(self.coin)
            count = width // 2 + flips
            yield range(first, first + count), width // 2, flips
            first, width, layer = first + count, -(-width // 2), layer + 1


@dataclass(frozen=True)
class Rules:
    """What the protocol does right; each can be done wrong."""

    #: Messages are compared with their hashes before use, and not at the end.
    compared_in_time: bool = True
    #: Only the receiver reads a message.
    keys_of_two: bool = True
    #: Only the receiver reads a hash.
    hashes_hidden: bool = True
    #: A silo outside the committee draws all components; otherwise this one is 0.
    zero_component: int | None = None
    #: Every gate has masks of its own.
    fresh_masks: bool = True
    #: This member knows the coin.
    told_the_coin: int | None = None


@dataclass
class View:
    """What the members said, and what the cheat and the coordinator see of it."""

    #: Every vector, message and hash as its author made it, without falsifications.
    vectors: dict[int, Words] = field(default_factory=dict)
    messages: dict[tuple[int, int, int], Words] = field(default_factory=dict)
    hashed: dict[tuple[int, int, int], Words] = field(default_factory=dict)
    openings: dict[int, Words] = field(default_factory=dict)
    #: In which worlds a member has spoken in a step: its name, then the member.
    spoke: dict[Item, Words] = field(default_factory=dict)
    #: What the cheat sees: an array a bit.
    seen: list[Words] = field(default_factory=list)
    #: What the coordinator sees besides.
    opened: list[Words] = field(default_factory=list)
    #: The bits of each silo as the members hold them: a cheat may choose its own.
    bits: list[Words] = field(default_factory=list)
    #: The union with the coin, as it should be.
    right: Words | None = None


class Model:
    """Four members, of which one may cheat."""

    def __init__(
        self,
        setting: Setting,
        bits: list[Words],
        stream: Stream,
        cheat: int | None = None,
        wrong: Wrong | None = None,
        rules: Rules | None = None,
    ) -> None:
        self._setting, self._bits, self._drawn = setting, bits, stream
        self._cheat, self._rules = cheat, rules or Rules()
        self._none = np.zeros_like(bits[0])
        self._wrong = wrong or (lambda *_: self._none)
        self._honest = [member for member in MEMBERS if member != cheat]
        self.view = View()

    def _stream(self, component: int, *name: object) -> Words:
        rules = self._rules
        if name[0] == "input" and component == rules.zero_component:
            silo = name[1]
            assert isinstance(silo, int)
            if self._setting.owners[silo] is None:
                return self._none
        if name[0] == "mask" and not rules.fresh_masks:
            gate = name[1]
            assert isinstance(gate, int)
            name = ("mask", gate % 2, name[2])
        return self._drawn(component, *name)

    # --- the run ------------------------------------------------------------------------------

    def run(self) -> View:
        goes_on = self._seeds()
        copies, goes_on = self._inputs(goes_on)
        tree = {
            member: [self._negated(self._shares(member, silo, copies)) for silo in self._silos]
            for member in MEMBERS
        }
        coin = {member: self._negated(self._random(member, 0)) for member in MEMBERS}
        late = dict.fromkeys(MEMBERS, self._none)
        for number, (gates, ands, flips) in enumerate(self._setting.layers()):
            operands = {
                member: self._operands(tree[member], coin[member], member, number, ands, flips)
                for member in MEMBERS
            }
            outputs, goes_on = self._layer(number, gates, operands, goes_on, late)
            for member in MEMBERS:
                found = outputs[member]
                if flips:
                    less, digit = found.pop(), self._setting.coin[number + 1]
                    coin[member] = self._negated(less) if digit else less
                if ands:
                    odd = tree[member][2 * ands :]
                    tree[member] = found + odd
        if not self._rules.compared_in_time:
            for member in self._honest:
                self._see(goes_on[member] & late[member])
                goes_on[member] = goes_on[member] & ~late[member]
        self._open(tree, coin, goes_on)
        return self.view

    def _see(self, *bits: Words) -> None:
        self.view.seen += bits

    @property
    def _silos(self) -> range:
        return range(len(self._setting.owners))

    def _seeds(self) -> dict[int, Words]:
        """The cheat may give its two receivers different seeds; every two members compare.

        The third honest member does not have that seed. A silo outside the committee that belongs
        to the cheat may do the same with each of its components.
        """
        goes_on = dict.fromkeys(MEMBERS, ~self._none)
        if self._cheat is None:
            return goes_on
        given: dict[tuple[object, int], Words] = {}
        missing = (self._cheat - 1) % 4
        for member in self._honest:
            if member != missing:
                given["own", member] = self._wrong("seed", member)
            for silo in self._silos:
                for component in MEMBERS:
                    if component not in (member, self._setting.vector(silo)):
                        wrong = self._wrong("outside seed", silo, component, member)
                        given[(silo, component), member] = wrong
        for member in self._honest:
            differ = self._wrong("match", member)
            for (what, holder), value in given.items():
                if holder != member and (what, member) in given:
                    differ = differ | (value ^ given[what, member])
            self._see(differ)
            goes_on[member] = ~differ
        return goes_on

    def _inputs(
        self, goes_on: dict[int, Words]
    ) -> tuple[dict[tuple[int, int], Words], dict[int, Words]]:
        """Every holder's copy of every vector, and who goes on after the copies were compared."""
        setting, copies = self._setting, {}
        self.view.spoke |= {("input", member): goes_on[member] for member in self._honest}
        came = {member: goes_on[member] for member in MEMBERS}
        for silo, owner in enumerate(setting.owners):
            vector = self._bits[silo]
            for component in MEMBERS:
                if component not in (owner, setting.vector(silo)):
                    vector = vector ^ self._stream(component, "input", silo)
            self.view.vectors[silo] = vector
            there = ~self._none if owner is None else goes_on[owner]
            holders = [m for m in setting.holders(silo) if m not in (owner, self._cheat)]
            wrongs = {member: self._wrong("input", silo, member) for member in holders}
            # A vector that is changed for all of its holders is another bit of its owner.
            chosen = reduce(np.bitwise_and, wrongs.values())
            self.view.bits.append(self._bits[silo] ^ chosen)
            for member in setting.holders(silo):
                copies[silo, member] = vector ^ wrongs.get(member, chosen)
                if member != owner:
                    came[member] = came[member] & there
                if member == self._cheat != owner:
                    self._see(there, vector & there)
        goes_on = {}
        for member in MEMBERS:
            others = [other for other in self._honest if other != member]
            # Hashes come from everyone that has all its vectors, and are compared with our own.
            heard = reduce(np.bitwise_and, (came[other] for other in others), came[member])
            differ = self._none if member == self._cheat else self._wrong("check", member)
            for other in others:
                for silo in self._silos:
                    if (silo, member) in copies and (silo, other) in copies:
                        differ = differ | (copies[silo, member] ^ copies[silo, other])
            if member == self._cheat:
                goes_on[member] = heard
            else:
                self.view.spoke["check", member] = came[member]
                self._see(came[member], heard & differ)
                goes_on[member] = heard & ~differ
        return copies, goes_on

    def _shares(
        self, member: int, silo: int, copies: dict[tuple[int, int], Words]
    ) -> dict[int, Words]:
        owner, found = self._setting.owners[silo], {}
        for component in MEMBERS:
            if component == member:
                continue
            if component == self._setting.vector(silo):
                found[component] = copies[silo, member]
            elif component == owner:
                found[component] = self._none
            else:
                found[component] = self._stream(component, "input", silo)
        return found

    def _random(self, member: int, place: int) -> dict[int, Words]:
        return {c: self._stream(c, "coin", place) for c in MEMBERS if c != member}

    @staticmethod
    def _negated(shares: dict[int, Words]) -> dict[int, Words]:
        return {c: ~words if c == 0 else words for c, words in shares.items()}

    def _operands(
        self,
        tree: list[dict[int, Words]],
        coin: dict[int, Words],
        member: int,
        layer: int,
        ands: int,
        flips: bool,
    ) -> list[tuple[dict[int, Words], dict[int, Words]]]:
        found = [(tree[2 * i], tree[2 * i + 1]) for i in range(ands)]
        if flips:
            bit = self._random(member, layer + 1)
            if self._setting.coin[layer + 1]:
                found.append((bit, self._negated(coin)))
            else:
                found.append((self._negated(bit), coin))
        return found

    def _layer(
        self,
        number: int,
        gates: range,
        operands: dict[int, list[tuple[dict[int, Words], dict[int, Words]]]],
        goes_on: dict[int, Words],
        late: dict[int, Words],
    ) -> tuple[dict[int, list[dict[int, Words]]], dict[int, Words]]:
        outputs = {m: [{c: self._none for c in MEMBERS if c != m} for _ in gates] for m in MEMBERS}
        differ = dict.fromkeys(MEMBERS, self._none)
        for at, gate in enumerate(gates):
            for route in ROUTES:
                if route.parity != gate % 2:
                    continue
                sender, hasher, receiver, other, _ = route
                mask = self._stream(receiver, "mask", gate, sender)
                said = mask ^ self._product(*operands[sender][at], receiver, other)
                same = mask ^ self._product(*operands[hasher][at], receiver, other)
                self.view.messages[gate, sender, receiver] = said
                self.view.hashed[gate, sender, receiver] = same
                for member in (sender, hasher, other):
                    outputs[member][at][receiver] = outputs[member][at][receiver] ^ mask
                for member, value in ((sender, said), (hasher, same)):
                    outputs[member][at][other] = outputs[member][at][other] ^ value
                came = said
                if sender == self._cheat:
                    came = said ^ self._wrong("joint", gate, receiver)
                outputs[receiver][at][other] = outputs[receiver][at][other] ^ came
                differ[receiver] = differ[receiver] | (came ^ same)
                if self._cheat not in (None, sender):
                    self._overhear(route, said & goes_on[sender], same & goes_on[hasher])
        return outputs, self._compared(number, gates, differ, goes_on, late)

    def _compared(
        self,
        number: int,
        gates: range,
        differ: dict[int, Words],
        goes_on: dict[int, Words],
        late: dict[int, Words],
    ) -> dict[int, Words]:
        """Who goes on after a layer; ``differ`` says where a message is not what was hashed."""
        following = {}
        for member in MEMBERS:
            others = [other for other in self._honest if other != member]
            heard = reduce(np.bitwise_and, (goes_on[o] for o in others), goes_on[member])
            if member == self._cheat:
                following[member] = heard
                continue
            for route in ROUTES:
                active = any(gate % 2 == route.parity for gate in gates)
                if route.receiver == member and route.hasher == self._cheat and active:
                    differ[member] = differ[member] | self._wrong("hash", number, member)
            # Every honest member that goes on has spoken in this layer.
            self.view.spoke["joint", number, member] = goes_on[member]
            self._see(goes_on[member])
            if self._rules.compared_in_time:
                self._see(heard & differ[member])
                following[member] = heard & ~differ[member]
            else:
                late[member] = late[member] | (heard & differ[member])
                following[member] = heard
        return following

    def _overhear(self, route: Route, said: Words, same: Words) -> None:
        """What the cheat sees of a message of another member."""
        if route.receiver == self._cheat or not self._rules.keys_of_two:
            self._see(said)
        if route.receiver == self._cheat or not self._rules.hashes_hidden:
            self._see(same)

    @staticmethod
    def _product(x: dict[int, Words], y: dict[int, Words], a: int, b: int) -> Words:
        """The part of a product that the two members besides a and b know."""
        found = (x[a] & y[b]) ^ (x[b] & y[a])
        for c, following in ((a, b), (b, a)):
            if following == (c + 1) % 4:
                found = found ^ (x[c] & y[c])
        return found

    def _open(
        self,
        tree: dict[int, list[dict[int, Words]]],
        coin: dict[int, dict[int, Words]],
        goes_on: dict[int, Words],
    ) -> None:
        """Members 0 and 1 open components 2 and 3, the others the rest."""
        for member in MEMBERS:
            [union] = tree[member]
            union = self._negated(union)
            half = (2, 3) if member < 2 else (0, 1)
            value = reduce(np.bitwise_xor, (union[c] ^ coin[member][c] for c in half), self._none)
            self.view.openings[member] = value
            if member != self._cheat:
                self.view.spoke["open", member] = goes_on[member]
                self._see(goes_on[member])
                self.view.opened.append(value & goes_on[member])
        if self._cheat is not None:
            # An honest coordinator compares what two members say of the same two components.
            partner = self._cheat ^ 1
            differ = self.view.openings[self._cheat] ^ self.view.openings[partner]
            there = reduce(np.bitwise_and, (goes_on[member] for member in self._honest))
            self._see(there & (differ ^ self._wrong("open")))
        flip, digits = self._none, self._setting.coin
        for place, digit in enumerate(digits):
            bit = reduce(np.bitwise_xor, (self._stream(c, "coin", place) for c in MEMBERS))
            flip = (~bit | flip) if digit else (~bit & flip)
        if self._cheat is not None and self._rules.told_the_coin == self._cheat:
            self._see(flip)
        self.view.right = reduce(np.bitwise_or, self.view.bits) ^ flip


def items(setting: Setting, cheat: int, colluding: tuple[int, ...] = ()) -> dict[str, list[Item]]:
    """Everything that a cheat sends, by step: each can be false or not."""
    honest = [member for member in MEMBERS if member != cheat]
    found: dict[str, list[Item]] = {
        "seeds": [("seed", m) for m in honest if m != (cheat - 1) % 4],
        "matches": [("match", member) for member in honest],
        "inputs": [],
        "checks": [("check", member) for member in honest],
    }
    for silo, owner in enumerate(setting.owners):
        if owner == cheat or silo in colluding:
            found["inputs"] += [("input", silo, m) for m in setting.holders(silo) if m != cheat]
        if silo in colluding:
            found[f"seeds of silo {silo}"] = [
                ("outside seed", silo, component, member)
                for component in MEMBERS
                for member in honest
                if component not in (member, setting.vector(silo))
            ]
    for number, (gates, _, _) in enumerate(setting.layers()):
        layer: list[Item] = []
        for route in ROUTES:
            active = [gate for gate in gates if gate % 2 == route.parity]
            if route.sender == cheat:
                layer += [("joint", gate, route.receiver) for gate in active]
            if route.hasher == cheat and active:
                layer.append(("hash", number, route.receiver))
        found[f"layer {number}"] = layer
    found["opening"] = [("open",)]
    return {step: wrongs for step, wrongs in found.items() if wrongs}


# --- all worlds -------------------------------------------------------------------------------

_PATTERNS = (
    0xAAAAAAAAAAAAAAAA, 0xCCCCCCCCCCCCCCCC, 0xF0F0F0F0F0F0F0F0,
    0xFF00FF00FF00FF00, 0xFFFF0000FFFF0000, 0xFFFFFFFF00000000,
)  # fmt: skip


@lru_cache(maxsize=64)
def world_bit(position: int, total: int) -> Words:
    """The bit at a position of the number of every world, of 2^total worlds."""
    words = 1 << max(total - 6, 0)
    if position < 6:
        return np.full(words, _PATTERNS[position], np.uint64)
    there = np.arange(words, dtype=np.uint64) >> np.uint64(position - 6) & np.uint64(1)
    return np.uint64(0) - there


@dataclass(frozen=True)
class Case:
    """An adversary: a member, silos outside the committee that are with it, the coordinator."""

    setting: Setting
    cheat: int
    colluding: tuple[int, ...] = ()
    coordinator: bool = False

    @property
    def own(self) -> list[int]:
        """The silos whose bits it knows."""
        owners = enumerate(self.setting.owners)
        return [silo for silo, owner in owners if owner == self.cheat or silo in self.colluding]

    def names(self, rules: Rules) -> tuple[list[Item], list[Item]]:
        """The streams that it knows, and those that it does not."""
        asked: dict[Item, None] = {}

        def record(*name: object) -> Words:
            asked[name] = None
            return np.zeros(1, np.uint64)

        Model(self.setting, [np.zeros(1, np.uint64)] * len(self.setting.owners), record,
              self.cheat, None, rules).run()  # fmt: skip
        known, unknown = [], []
        for name in asked:
            theirs = name[1] == "input" and name[2] in self.colluding
            (unknown if name[0] == self.cheat and not theirs else known).append(name)
        return known, unknown


class Enumeration:
    """One adversary, all values of the bits that it does not know, all bits of honest silos.

    ``falsified`` items are false or not in every combination; ``always`` are false in all worlds.
    ``constants`` draws the known random bits; without it all their values are enumerated, too.
    """

    def __init__(
        self,
        case: Case,
        falsified: list[Item] | None = None,
        constants: np.random.Generator | None = None,
        rules: Rules | None = None,
        always: Iterable[Item] = (),
    ) -> None:
        self._case = case
        rules, setting = rules or Rules(), case.setting
        known, unknown = case.names(rules)
        honest = [silo for silo in range(len(setting.owners)) if silo not in case.own]
        above = [("bits", silo) for silo in case.own] + list(falsified or [])
        above += known if constants is None else []
        self._low, self._middle = len(unknown), len(honest)
        total = max(len(unknown) + len(honest) + len(above), 6)
        names = [*unknown, *(("bits", silo) for silo in honest), *above]
        place = {name: position for position, name in enumerate(names)}
        none = np.zeros(1 << total - 6, np.uint64)
        fixed: dict[Item, bool] = dict.fromkeys(always, True)
        if constants is not None:
            drawn = constants.integers(0, 2, len(known)) == 1
            fixed |= zip(known, drawn.tolist(), strict=True)

        def value(*name: object) -> Words:
            if name in place:
                return world_bit(place[name], total)
            return ~none if fixed.get(name) else none

        bits = [value("bits", silo) for silo in range(len(setting.owners))]
        self._view = Model(setting, bits, value, case.cheat, value, rules).run()
        self._own = reduce(np.bitwise_or, (self._view.bits[silo] for silo in case.own), none)
        self.worlds = 1 << total
        #: The number of ways to cheat, times what else is known.
        self.ways = self.worlds >> self._low + self._middle

    def _rows(
        self, bits: list[Words], first: Words | None = None
    ) -> npt.NDArray[np.unsignedinteger]:
        """What is seen in each world: by what is known, bits of honest silos, what is unknown.

        Each row is sorted, so two rows are equal where two laws are. ``first`` is sorted by first.
        """
        # A bit that is the same in all worlds says nothing; neither does one that comes again.
        every = np.uint64(0xFFFFFFFFFFFFFFFF)
        kept = {b.tobytes(): b for b in bits if b.any() and not (b == every).all()}
        assert len(kept) < 64
        kind, last = (np.uint32, 31) if len(kept) < 32 else (np.uint64, 63)
        keys = np.zeros(self.worlds, kind)
        for byte in range(-(-len(kept) // 8)):
            eight = np.stack([*kept.values()][8 * byte : 8 * byte + 8])
            unpacked = np.unpackbits(eight.view(np.uint8), axis=1, bitorder="little")
            packed = np.packbits(unpacked, axis=0, bitorder="little")[0].astype(kind)
            keys |= packed << kind(8 * byte)
        if first is not None:
            keys |= _each(first).astype(kind) << kind(last)
        return np.sort(keys.reshape(-1, 1 << self._middle, 1 << self._low), axis=2)

    def independent(self) -> bool:
        """Whether the view follows one law, whatever the honest silos hold.

        With the coordinator: one law for each released bit, and that bit follows its channel.
        """
        if not self._case.coordinator:
            rows = self._rows(self._view.seen)
            return bool((rows == rows[:, :1]).all())
        assert self._view.right is not None
        rows = self._rows([*self._view.seen, *self._view.opened], self._view.right)
        held = _each(self._own).reshape(-1, 1 << self._middle, 1 << self._low)[:, 0, 0]
        some, none = rows[:, 1:], rows[held == 0, 0]
        # All sets of holders look the same, and nobody like them where the adversary holds it.
        same = (some == some[:, :1]).all() and (rows[held == 1] == rows[held == 1, :1]).all()
        ways, coin = rows.shape[2], self._case.setting
        flip, whole = coin.numerator, 1 << len(coin.coin)
        keep = whole - flip
        some = some[held == 0, 0]
        for law, kept in ((none, keep), (some, flip)):
            zeros = (law >> law.dtype.type(8 * law.itemsize - 1) == 0).sum(axis=1)
            if (zeros * whole != ways * kept).any():
                return False
        # Given the released bit, nobody and somebody look the same: counts in the ratio of the
        # channel's probabilities.
        at, also = ways * keep // whole, ways * flip // whole
        zero = np.repeat(none[:, :at], flip, axis=1) == np.repeat(some[:, :also], keep, axis=1)
        one = np.repeat(none[:, at:], keep, axis=1) == np.repeat(some[:, also:], flip, axis=1)
        return bool(same and zero.all() and one.all())


def _each(words: Words) -> npt.NDArray[np.uint8]:
    """The value in every world."""
    return np.unpackbits(words.view(np.uint8), bitorder="little")
