"""A tiny sealed run over Z_{2^w}, with every random element explicit.

A variable is an array with one small integer per *world*: per value of everything that somebody
does not know, or per pair of a chunk. One member may cheat in what it sends: ``wrong`` is what it
adds. What it believes of its own state stays right, so that its other messages are those of the
protocol.

A run is one chunk of pairs, one of noise, and one answer. It may begin at three points: at the
silos' bits (``inputs``), at components of the union's bits as the last gate leaves them (``bits``),
or at components of numbers as a conversion leaves them (``numbers``). Where it begins later, all
components but one are free, and the last one follows from the secret: that is what a member knows
after what was left out, which the runs that begin earlier show.

Honest parties stop as the machines do: a member that finds two others disagree says nothing more,
and a member that lacks a message waits. Two chunks do not wait for each other: a cheat that chooses
the order of messages sees no more than that.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from silograph import _core
from tests.methods.committee.model import MEMBERS, ROUTES, Route

#: An integer in every world. Words have more bits than travel, as those of the machines do.
Array = npt.NDArray[Any]
#: Something that is drawn, or that the cheat sends.
Item = tuple[object, ...]
#: What is drawn: its kind, its component or the member that draws it, and more of its name.
Stream = Callable[..., Array]
#: What the cheat adds to an item.
Wrong = Callable[..., Array]

Answer = Literal["edges", "degrees", "two_stars", "triangles"]
FACTORS = {"edges": 1, "degrees": 1, "two_stars": 2, "triangles": 6}
#: Components of a secret that one member has.
Shares = dict[int, Array]
#: The components of all members.
Held = dict[int, Shares]


@dataclass(frozen=True)
class Setting:
    """What is computed."""

    #: w: how many bits of a number travel.
    bits: int
    nodes: int = 2
    begin: Literal["inputs", "bits", "numbers"] = "bits"
    #: The owners of the silos' bits, by number in the committee.
    owners: tuple[int, ...] = (0, 1)
    #: The number of the chunk of pairs; that of the noise follows.
    number: int = 0
    answer: Answer | None = "edges"
    noise: Literal["coins", "parts", "numbers"] = "coins"
    #: The digits of each coin's k, lowest place first, from the lowest digit of G on.
    coins: tuple[tuple[bool, ...], ...] = ((True,),)
    #: Whether the members learn the noisy answer.
    told: bool = False

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(self.nodes), 2))

    @property
    def length(self) -> int:
        """The number of numbers in the answer."""
        return self.nodes if self.answer == "degrees" else 1

    @property
    def linear(self) -> bool:
        return self.answer in ("edges", "degrees")

    @property
    def factor(self) -> int:
        return FACTORS[self.answer or "edges"]

    def count(self, edges: Sequence[Any]) -> list[Any]:
        """The answer of a graph, times its factor."""
        nodes, pairs = range(self.nodes), self.pairs
        if self.answer == "edges":
            return [sum(edges)]
        degrees = [
            sum(x for x, pair in zip(edges, pairs, strict=True) if node in pair) for node in nodes
        ]
        if self.answer == "degrees":
            return degrees
        if self.answer == "two_stars":
            return [sum(d * d - d for d in degrees)]
        held = dict(zip(pairs, edges, strict=True))
        return [6 * sum(held[a, b] * held[a, c] * held[b, c] for a, b, c in combinations(nodes, 3))]

    def law(self) -> dict[int, int]:
        """In how many of how many equally likely cases the noise of a number has each value."""
        law = {0: 1}
        if self.noise == "coins":
            for place, coin in enumerate(self.coins):
                k, whole = sum(bit << i for i, bit in enumerate(coin)), 1 << len(coin)
                for sign in (1, -1):
                    law = _plus(law, {0: whole - k, sign << place: k})
        elif self.noise == "numbers":
            law = _plus({0: 3, 1: 1}, {0: 1, -1: 1})
        return law


def _plus(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    law: dict[int, int] = {}
    for (a, p), (b, q) in ((x, y) for x in one.items() for y in other.items()):
        law[a + b] = law.get(a + b, 0) + p * q
    return law


@dataclass(frozen=True)
class Rules:
    """What the protocol does right; each can be done wrong."""

    #: Messages are compared with their hashes before use, and not at the end.
    compared_in_time: bool = True
    #: What has masks of its own: everything, or all but the two layers of a conversion, the routes
    #: to one receiver, or the pairs and digits of a chunk.
    fresh: Literal["all", "not layers", "not routes", "not lanes"] = "all"
    #: Only w bits travel. Otherwise one more does.
    reduced: bool = True
    #: The members that add to a share of zero, or take from it.
    zeros: Literal["three", "two", "none"] = "three"
    #: What the coordinator gets of a linear answer.
    opens: Literal["halves", "components"] = "halves"
    #: What a member is told: the component that it lacks, another, or that without noise.
    tells: Literal["lacking", "another", "bare"] = "lacking"
    #: This member knows the noise.
    told_the_noise: int | None = None
    #: A component of every part that is 0, besides its owner's.
    zero_component: int | None = None
    #: A member's own component of its part is 0. Otherwise it is drawn, too.
    own_is_zero: bool = True


class Joint(NamedTuple):
    """One joint message: its name, and what its sender and its hasher know."""

    route: Route
    lane: int
    gate: int
    known: dict[int, Array]
    mask: Array


class Product(NamedTuple):
    """What a joint message leaves: the mask, and the other component of those that know it."""

    route: Route
    mask: Array
    value: dict[int, Array]


@dataclass
class View:
    """What the members said, and what the cheat and the coordinator see of it."""

    #: Everything as its author made it, without falsifications.
    inputs: dict[tuple[int, int], Array] = field(default_factory=dict)
    vectors: dict[int, list[Array]] = field(default_factory=dict)
    messages: dict[tuple[int, ...], Array] = field(default_factory=dict)
    hashed: dict[tuple[int, ...], Array] = field(default_factory=dict)
    openings: dict[int, list[Array]] = field(default_factory=dict)
    told: dict[tuple[int, int], list[Array]] = field(default_factory=dict)
    summands: dict[int, Array] = field(default_factory=dict)
    #: What the cheat sees, and what the coordinator sees besides: how many bits each takes.
    seen: list[tuple[Array, int]] = field(default_factory=list)
    opened: list[tuple[Array, int]] = field(default_factory=list)
    #: The noisy answer where the coordinator and the cheat have it, and where the members are told.
    answers: list[Array] = field(default_factory=list)
    learned: list[Array] = field(default_factory=list)
    #: All components of the number of each pair and of the noise, and their sums.
    components: list[Shares] = field(default_factory=list)
    noise_components: list[Shares] = field(default_factory=list)
    numbers: list[Array] = field(default_factory=list)
    noise: list[Array] = field(default_factory=list)
    #: The bits of the union as they should be.
    union: list[Array] = field(default_factory=list)


class Model:
    """Four members, of which one may cheat."""

    def __init__(
        self,
        setting: Setting,
        bits: dict[tuple[int, int], Array],
        stream: Stream,
        cheat: int | None = None,
        wrong: Wrong | None = None,
        rules: Rules | None = None,
    ) -> None:
        """``bits`` by silo and pair; a run that does not begin at inputs has one silo."""
        self._setting, self._bits, self._drawn = setting, bits, stream
        self._cheat, self._rules = cheat, rules or Rules()
        self._none = np.zeros_like(next(iter(bits.values())))
        self._never = np.zeros(self._none.shape, bool)
        self._wrong = wrong or (lambda *_: self._none)
        self._honest = [member for member in MEMBERS if member != cheat]
        self._low = self._none.dtype.type((1 << setting.bits) - 1)
        self._travels = setting.bits + (not self._rules.reduced)
        self._late = dict.fromkeys(MEMBERS, self._never)
        self.view = View()

    # --- the run ------------------------------------------------------------------------------

    def run(self) -> View:
        setting = self._setting
        numbers, goes_on = self._pairs()
        self.view.components = [self._whole(number) for number in numbers]
        self.view.numbers = [self._value(number) for number in numbers]
        if setting.answer is None:
            return self.view
        noise, and_on = self._noise()
        self.view.noise_components = [self._whole(number) for number in noise]
        self.view.noise = [self._value(number) for number in noise]
        goes_on = {member: goes_on[member] & and_on[member] for member in MEMBERS}
        if not self._rules.compared_in_time:
            for member in self._honest:
                self._see(goes_on[member] & self._late[member])
                goes_on[member] = goes_on[member] & ~self._late[member]
        if self._cheat is not None and self._rules.told_the_noise == self._cheat:
            for value in self.view.noise:
                self._see(value, setting.bits)
        if setting.linear:
            self._open(numbers, noise, goes_on)
        else:
            self._sum(numbers, noise[0], goes_on)
        return self.view

    def _see(self, value: Array, bits: int = 1) -> None:
        self.view.seen.append((value, bits))

    def _whole(self, held: Held) -> Shares:
        """All components, as honest members have them."""
        return {c: value & self._low for m in self._honest for c, value in held[m].items()}

    def _value(self, held: Held) -> Array:
        """The number itself."""
        value: Array = self._sum_of(self._whole(held).values()) & self._low
        return value

    def _sum_of(self, values: Iterable[Array]) -> Array:
        return reduce(np.add, values, self._none)

    def _dealt(self, kind: str, secret: Array, *name: object) -> Held:
        """Components of a secret: all free but one, the cheat's own."""
        last, parts, rest = self._cheat or 0, {}, secret
        for component in MEMBERS:
            if component != last:
                parts[component] = self._drawn(kind, component, *name)
                rest = rest ^ parts[component] if kind == "bit" else rest - parts[component]
        parts[last] = rest & self._low
        return {m: {c: parts[c] for c in MEMBERS if c != m} for m in MEMBERS}

    # --- pairs --------------------------------------------------------------------------------

    def _pairs(self) -> tuple[list[Held], dict[int, Array]]:
        setting, goes_on = self._setting, dict.fromkeys(MEMBERS, ~self._never)
        lanes = range(len(setting.pairs))
        if setting.begin != "inputs":
            self.view.union = [self._bits[0, pair] for pair in lanes]
            kind = "bit" if setting.begin == "bits" else "number"
            held = [self._dealt(kind, self._bits[0, pair], "pair", pair) for pair in lanes]
            if setting.begin == "numbers":
                return held, goes_on
            return self._convert(setting.number, 0, held, goes_on)
        silos = range(len(setting.owners))
        self.view.union = [
            reduce(np.bitwise_or, (self._bits[silo, pair] for silo in silos)) for pair in lanes
        ]
        trees = [[self._negated(self._input(silo, pair)) for silo in silos] for pair in lanes]
        layer, gate = 0, 0
        while len(trees[0]) > 1:
            ands = len(trees[0]) // 2
            operands = [[(tree[2 * i], tree[2 * i + 1]) for i in range(ands)] for tree in trees]
            found, goes_on = self._gates(setting.number, layer, gate, operands, goes_on)
            trees = [new + tree[2 * ands :] for new, tree in zip(found, trees, strict=True)]
            layer, gate = layer + 1, gate + ands
        union = [self._negated(tree[0]) for tree in trees]
        return self._convert(setting.number, layer, union, goes_on)

    def _input(self, silo: int, pair: int) -> Held:
        """A silo's bit, shared as it should be: that holders compare it is shown elsewhere."""
        owner = self._setting.owners[silo]
        travels = _core.committee_vector(owner, silo)
        parts = {owner: self._none, travels: self._bits[silo, pair]}
        for component in MEMBERS:
            if component not in parts:
                parts[component] = self._drawn("input", component, silo, pair)
                parts[travels] = parts[travels] ^ parts[component]
        self.view.inputs[silo, pair] = parts[travels]
        if self._cheat not in (None, owner, travels):
            self._see(parts[travels])
        return {m: {c: parts[c] for c in MEMBERS if c != m} for m in MEMBERS}

    @staticmethod
    def _negated(held: Held) -> Held:
        return {
            member: {c: value ^ value.dtype.type(c == 0) for c, value in shares.items()}
            for member, shares in held.items()
        }

    # --- joint messages -----------------------------------------------------------------------

    def _layer(
        self,
        number: int,
        layer: int,
        joints: list[Joint],
        goes_on: dict[int, Array],
        *,
        numbers: bool,
    ) -> tuple[list[Product], dict[int, Array]]:
        """All messages of one layer, and who goes on after they were compared."""
        differ, found = dict.fromkeys(MEMBERS, self._never), []
        width = self._travels if numbers else 1
        for route, lane, gate, known, mask in joints:
            sender, hasher, receiver, _, _ = route
            low = self._low if numbers else self._none.dtype.type(1)
            hidden = {m: v - mask if numbers else v ^ mask for m, v in known.items()}
            said, same = (hidden[member] & low for member in (sender, hasher))
            came, name = said, (number, layer, lane, gate, sender, receiver)
            self.view.messages[name], self.view.hashed[name] = said, same
            if sender == self._cheat:
                came = (said + self._wrong("joint", number, layer, receiver, lane, gate)) & low
            differ[receiver] = differ[receiver] | (came != same)
            if receiver == self._cheat:
                for member in (sender, hasher):
                    whole = hidden[member] & self._none.dtype.type((1 << width) - 1)
                    self._see(whole * goes_on[member], width)
            found.append(Product(route, mask, {sender: said, hasher: same, receiver: came}))
        following = {}
        for member in MEMBERS:
            others = [other for other in self._honest if other != member]
            heard = reduce(np.bitwise_and, (goes_on[o] for o in others), goes_on[member])
            if member == self._cheat:
                following[member] = heard
                continue
            for receiver in {j.route.receiver for j in joints if j.route.hasher == self._cheat}:
                if receiver == member:
                    false = self._wrong("hash", number, layer, receiver) != 0
                    differ[member] = differ[member] | false
            self._see(goes_on[member])
            if self._rules.compared_in_time:
                self._see(heard & differ[member])
                following[member] = heard & ~differ[member]
            else:
                self._late[member] = self._late[member] | (heard & differ[member])
                following[member] = heard
        return found, following

    def _gates(
        self,
        number: int,
        layer: int,
        first: int,
        operands: list[list[tuple[Held, Held]]],
        goes_on: dict[int, Array],
    ) -> tuple[list[list[Held]], dict[int, Array]]:
        """One layer of products of bits, in every lane."""
        joints = [
            Joint(
                route, lane, gate,
                {m: self._products(x[m], y[m], route) for m in (route.sender, route.hasher)},
                self._drawn("mask", route.receiver, number, lane, gate, route.sender),
            )
            for lane, gates in enumerate(operands)
            for gate, (x, y) in enumerate(gates, first)
            for route in ROUTES
            if route.parity == gate % 2
        ]  # fmt: skip
        found, goes_on = self._layer(number, layer, joints, goes_on, numbers=False)
        outputs = [[self._zeros() for _ in gates] for gates in operands]
        for joint, product in zip(joints, found, strict=True):
            self._add(outputs[joint.lane][joint.gate - first], product, np.bitwise_xor)
        return outputs, goes_on

    def _zeros(self) -> Held:
        return {m: {c: self._none for c in MEMBERS if c != m} for m in MEMBERS}

    def _add(self, sums: Held, product: Product, add: Callable[[Array, Array], Array]) -> None:
        receiver, other = product.route.receiver, product.route.other
        for member in MEMBERS:
            if member != receiver:
                sums[member][receiver] = add(sums[member][receiver], product.mask)
            if member != other:
                sums[member][other] = add(sums[member][other], product.value[member])

    @staticmethod
    def _products(x: Shares, y: Shares, route: Route) -> Array:
        """The part of a product of bits that the sender and the hasher know."""
        a, b = route.receiver, route.other
        found = (x[a] & y[b]) ^ (x[b] & y[a])
        for c, following in ((a, b), (b, a)):
            if following == (c + 1) % 4:
                found = found ^ (x[c] & y[c])
        return found

    def _convert(
        self, number: int, layer: int, bits: list[Held], goes_on: dict[int, Array]
    ) -> tuple[list[Held], dict[int, Array]]:
        """Bits become numbers, in two layers."""
        routes = [route for route in ROUTES if route.parity == number % 2]
        factors = [self._zeros() for _ in bits]
        for step in range(2):
            joints = []
            for lane, held in enumerate(bits):
                for route in routes:
                    a, b = route.receiver, route.other
                    if (a // 2 == b // 2) != (step == 0):
                        continue
                    known = {
                        m: held[m][a] ^ held[m][b]
                        if step == 0
                        else factors[lane][m][a] * factors[lane][m][b]
                        for m in (route.sender, route.hasher)
                    }
                    mask = self._number_mask(route, number, lane, step)
                    joints.append(Joint(route, lane, 0, known, mask))
            found, goes_on = self._layer(number, layer + step, joints, goes_on, numbers=True)
            sums = [self._zeros() for _ in bits]
            for joint, product in zip(joints, found, strict=True):
                self._add(sums[joint.lane], product, np.add)
            if step == 0:
                factors = sums
        two = self._none.dtype.type(2)
        return [
            {m: {c: (f[m][c] - two * p[m][c]) & self._low for c in f[m]} for m in MEMBERS}
            for f, p in zip(factors, sums, strict=True)
        ], goes_on

    def _number_mask(self, route: Route, number: int, lane: int, step: int) -> Array:
        sender: object = route.sender
        match self._rules.fresh:
            case "not layers":
                sender = (
                    "first" if step == 0 or route.sender == min(self._senders(route)) else sender
                )
            case "not routes":
                sender = step
            case "not lanes":
                lane = 0
        return self._drawn("element", route.receiver, number, lane, sender)

    @staticmethod
    def _senders(route: Route) -> list[int]:
        """Those that send to the same receiver in the second layer."""
        return [
            r.sender for r in ROUTES
            if (r.receiver, r.parity) == (route.receiver, route.parity)
            and r.receiver // 2 != r.other // 2
        ]  # fmt: skip

    # --- noise --------------------------------------------------------------------------------

    def _noise(self) -> tuple[list[Held], dict[int, Array]]:
        setting, goes_on = self._setting, dict.fromkeys(MEMBERS, ~self._never)
        if setting.noise == "coins":
            return self._digits(goes_on)
        if setting.noise == "parts":
            return self._parts(goes_on)
        found = []
        for i in range(setting.length):
            one = self._drawn("draw", None, i, 0) & self._drawn("draw", None, i, 1)
            z: Array = one - self._drawn("draw", None, i, 2)
            found.append(self._dealt("number", z & self._low, "noise", i))
        return found, goes_on

    def _digits(self, goes_on: dict[int, Array]) -> tuple[list[Held], dict[int, Array]]:
        """G − G′: random bits are compared with k by a tree, and converted. A lane is a digit."""
        setting = self._setting
        both = (*setting.coins, *setting.coins)
        less, equal = [], []
        for digit, coin in enumerate(both):
            for i in range(setting.length):
                lane = digit * setting.length + i
                bits = [self._coin(lane, place) for place in range(len(coin))]
                less.append([self._negated(b) if k else b for b, k in zip(bits, coin, strict=True)])
                # Less is digit & ~bit, equal is 1 ^ bit ^ digit.
                for place, k in enumerate(coin):
                    if not k:
                        less[-1][place] = self._zeros()
                equal.append(
                    [b if k else self._negated(b) for b, k in zip(bits, coin, strict=True)]
                )
        layer, gate, number = 0, 0, setting.number + 1
        while len(less[0]) > 1:
            groups = len(less[0]) // 2
            operands = []
            for low, same in zip(less, equal, strict=True):
                lane_gates = []
                for i in range(groups):
                    lane_gates.append((same[2 * i + 1], low[2 * i]))
                    if i:
                        lane_gates.append((same[2 * i + 1], same[2 * i]))
                operands.append(lane_gates)
            found, goes_on = self._gates(number, layer, gate, operands, goes_on)
            for lane, outputs in enumerate(found):
                less[lane], equal[lane] = self._merged(less[lane], equal[lane], outputs)
            layer, gate = layer + 1, gate + 2 * groups - 1
        held, goes_on = self._convert(number, layer, [lane[0] for lane in less], goes_on)
        numbers = [self._zeros() for _ in range(setting.length)]
        for lane, number_held in enumerate(held):
            digit, i = divmod(lane, setting.length)
            minus, place = divmod(digit, len(setting.coins))
            for m, shares in number_held.items():
                for c, value in shares.items():
                    weighed = value << self._none.dtype.type(place)
                    old = numbers[i][m][c]
                    numbers[i][m][c] = (old - weighed if minus else old + weighed) & self._low
        return numbers, goes_on

    def _coin(self, lane: int, place: int) -> Held:
        number = self._setting.number + 1
        parts = [self._drawn("coin", c, number, lane, place) for c in MEMBERS]
        return {m: {c: parts[c] for c in MEMBERS if c != m} for m in MEMBERS}

    @staticmethod
    def _merged(
        less: list[Held], equal: list[Held], outputs: list[Held]
    ) -> tuple[list[Held], list[Held]]:
        """Every two neighbouring groups of places become one."""
        left, new_less, new_equal = iter(outputs), [], []
        for i in range(len(less) // 2):
            high, lower = less[2 * i + 1], next(left)
            new_less.append({m: {c: high[m][c] ^ lower[m][c] for c in high[m]} for m in MEMBERS})
            new_equal.append(next(left) if i else equal[0])
        odd = len(less) // 2 * 2
        return new_less + less[odd:], new_equal + equal[odd:]

    def _parts(self, goes_on: dict[int, Array]) -> tuple[list[Held], dict[int, Array]]:
        """Every member draws a part and shares it; holders of a vector compare it."""
        rules, length = self._rules, range(self._setting.length)
        sums = [self._zeros() for _ in length]
        copies: dict[tuple[int, int], list[Array]] = {}
        for owner in MEMBERS:
            travels = _core.committee_vector(owner, owner)
            holders = [m for m in MEMBERS if m not in (owner, travels)]
            shared = [self._part(owner, travels, i) for i in length]
            self.view.vectors[owner] = [parts[travels] for parts in shared]
            wrongs = {
                m: [self._wrong("vector", m, i) for i in length] if owner == self._cheat
                else [self._none] * len(length)
                for m in holders
            }  # fmt: skip
            for m in MEMBERS:
                if m == travels:
                    continue
                # A vector that is changed for both of its holders is another part of its owner.
                false = wrongs.get(m, wrongs[holders[0]])
                copies[owner, m] = [
                    (parts[travels] + f) & self._low for parts, f in zip(shared, false, strict=True)
                ]
                if m == self._cheat != owner:
                    for vector in copies[owner, m]:
                        self._see(vector, self._setting.bits)
            for i in length:
                for m in MEMBERS:
                    for c in sums[i][m]:
                        value = copies[owner, m][i] if c == travels else shared[i][c]
                        if c == owner and rules.own_is_zero:
                            value = self._none
                        sums[i][m][c] = (sums[i][m][c] + value) & self._low
        return sums, self._agreed(copies, goes_on)

    def _agreed(
        self, copies: dict[tuple[int, int], list[Array]], goes_on: dict[int, Array]
    ) -> dict[int, Array]:
        """Who goes on after every two members compared the vectors that both hold."""
        following = {}
        for member in MEMBERS:
            if member == self._cheat:
                following[member] = goes_on[member]
                continue
            differ = self._wrong("check", member) != 0
            for other in self._honest:
                for owner in MEMBERS:
                    two = [(owner, member), (owner, other)]
                    if other != member and all(key in copies for key in two):
                        pairs = zip(*(copies[key] for key in two), strict=True)
                        for one, another in pairs:
                            differ = differ | (one != another)
            self._see(differ)
            following[member] = goes_on[member] & ~differ
        return following

    def _part(self, owner: int, travels: int, i: int) -> Shares:
        """The components of a part: its value is 1 in a quarter of all cases, −1 in another."""
        one, other, sign = (self._drawn("draw", owner, i, j) for j in range(3))
        value = (one & other) * (self._none.dtype.type(1) - (sign << self._none.dtype.type(1)))
        parts: Shares = {}
        for component in MEMBERS:
            if component == travels:
                continue
            zero = component == (owner if self._rules.own_is_zero else None)
            if zero or component == self._rules.zero_component:
                parts[component] = self._none
            else:
                parts[component] = self._drawn("part", component, owner, i)
            if component != owner:
                value = value - parts[component]
        parts[travels] = value & self._low
        return parts

    # --- answers ------------------------------------------------------------------------------

    def _open(self, numbers: list[Held], noise: list[Held], goes_on: dict[int, Array]) -> None:
        """By halves to the coordinator; if that is asked for, by components to the members."""
        setting, width = self._setting, self._travels
        bare, noisy = self._linear(numbers), []
        for plain, z in zip(bare, noise, strict=True):
            noisy.append({m: {c: plain[m][c] + z[m][c] for c in plain[m]} for m in MEMBERS})
        low = self._none.dtype.type((1 << width) - 1)
        for member in MEMBERS:
            two = (2, 3) if member < 2 else (0, 1)
            said = [self._sum_of(held[member][c] for c in two) & low for held in noisy]
            self.view.openings[member] = said
            if member == self._cheat:
                continue
            self._see(goes_on[member])
            if self._rules.opens == "components":
                said = [held[member][c] & low for held in noisy for c in held[member]]
            self.view.opened += [(value * goes_on[member], width) for value in said]
        for receiver in MEMBERS:
            for step in (1, 2):
                member = (receiver + step) % 4
                component = receiver if self._rules.tells != "another" else (receiver + 3) % 4
                held = bare if self._rules.tells == "bare" else noisy
                told = [one[member][component] & low for one in held]
                self.view.told[member, receiver] = told
                if setting.told and receiver == self._cheat:
                    self.view.seen += [(value * goes_on[member], width) for value in told]
        if self._cheat is None:
            return
        self._compared(noisy, goes_on)

    def _compared(self, noisy: list[Held], goes_on: dict[int, Array]) -> None:
        """Where the answer is known, and whom the cheat makes stop."""
        setting, cheat = self._setting, self._cheat
        assert cheat is not None
        values = [self._value(held) for held in noisy]
        # Somebody that holds what the cheat lacks has opened it.
        holders = [m for m in self._honest if cheat in ((2, 3) if m < 2 else (0, 1))]
        if self._rules.opens == "components":
            holders = self._honest
        opened = reduce(np.bitwise_or, (goes_on[m] for m in holders))
        self.view.answers = [value * opened for value in values]
        partner = cheat ^ 1
        differ = self._wrong("open") != 0
        for one, other in zip(self.view.openings[cheat], self.view.openings[partner], strict=True):
            differ = differ | (one != other)
        there = reduce(np.bitwise_and, (goes_on[m] for m in self._honest))
        self._see(there & differ)
        if not setting.told:
            return
        tellers = [(cheat + step) % 4 for step in (1, 2)]
        told = reduce(np.bitwise_or, (goes_on[m] for m in tellers))
        self.view.learned = [value * told for value in values]
        self.view.answers = [value * (opened | told) for value in values]
        for receiver in self._honest:
            both = [(receiver + step) % 4 for step in (1, 2)]
            came = reduce(np.bitwise_and, (goes_on[m] for m in both if m != cheat))
            differ = self._wrong("tell", receiver) != 0 if cheat in both else self._never
            told_by = [self.view.told[m, receiver] for m in both]
            for x, y in zip(*told_by, strict=True):
                differ = differ | (x != y)
            self._see(came & goes_on[receiver] & differ)

    def _linear(self, numbers: list[Held]) -> list[Held]:
        """Components of the number of edges, or of the degrees."""
        found = []
        for i in range(self._setting.length):
            sums = self._zeros()
            for pair, held in zip(self._setting.pairs, numbers, strict=True):
                if self._setting.answer == "degrees" and i not in pair:
                    continue
                for m in MEMBERS:
                    for c in held[m]:
                        sums[m][c] = sums[m][c] + held[m][c]
            found.append(sums)
        return found

    def _sum(self, numbers: list[Held], noise: Held, goes_on: dict[int, Array]) -> None:
        """Each member's summand of a count, under a share of zero."""
        setting, word = self._setting, self._none.dtype.type
        low = word((1 << self._travels) - 1)
        for member in MEMBERS:
            held = [number[member] for number in numbers]
            count = self._two_stars if setting.answer == "two_stars" else self._triangles
            summand = count(member, held) + word(setting.factor) * noise[member][(member + 1) % 4]
            self.view.summands[member] = (summand + self._zero(member)) & low
            if member != self._cheat:
                self._see(goes_on[member])
                said = self.view.summands[member] * goes_on[member]
                self.view.opened.append((said, self._travels))
        if self._cheat is not None:
            there = reduce(np.bitwise_and, (goes_on[m] for m in self._honest))
            total = self._sum_of(self.view.summands.values()) & self._low
            self.view.answers = [total * there]

    def _two_stars(self, member: int, held: list[Shares]) -> Array:
        """Its part of Σd² − Σd."""
        c, u, v = ((member + step) % 4 for step in (1, 2, 3))
        word, total = self._none.dtype.type, self._none
        for node in range(self._setting.nodes):
            d = {
                k: self._sum_of(
                    s[k] for s, pair in zip(held, self._setting.pairs, strict=True) if node in pair
                )
                for k in (c, u, v)
            }
            total = total + d[u] * d[u] + word(2) * d[u] * d[v] - d[c]
            if member < 2:
                total = total + word(2) * d[c] * d[v]
        return total

    def _triangles(self, member: int, held: list[Shares]) -> Array:
        """Its part of tr(X³): 3⟨(u+v)², c⟩ + ⟨u², u + 3v⟩."""
        word, pairs = self._none.dtype.type, self._setting.pairs
        c, u, v = (
            dict(zip(pairs, (s[(member + step) % 4] for s in held), strict=True))
            for step in (1, 2, 3)
        )
        both = {pair: u[pair] + v[pair] for pair in pairs}
        last = {pair: u[pair] + word(3) * v[pair] for pair in pairs}
        total: Array = word(3) * self._contracted(both, c) + self._contracted(u, last)
        return total

    def _contracted(
        self, matrix: dict[tuple[int, int], Array], other: dict[tuple[int, int], Array]
    ) -> Array:
        """The sum of all entries of matrix² times those of another."""
        total, word = self._none, self._none.dtype.type
        both = matrix | {(j, i): value for (i, j), value in matrix.items()}
        for (i, j), value in other.items():
            for k in range(self._setting.nodes):
                if k not in (i, j):
                    total = total + word(2) * both[i, k] * both[k, j] * value
        return total

    def _zero(self, member: int) -> Array:
        total = self._none
        for component in MEMBERS:
            if component == member or self._rules.zeros == "none":
                continue
            first, last = (self._drawn("zero", component, i) for i in range(2))
            if self._rules.zeros == "two":
                last = self._none
            step = (member - component) % 4
            total = total + (first, last - first, self._none - last)[step - 1]
        return total


def items(setting: Setting, cheat: int, rules: Rules | None = None) -> dict[str, list[Item]]:
    """Everything that a cheat sends, by step: each can be false or not."""
    asked: dict[Item, None] = {}

    def record(*name: object) -> Array:
        asked[name] = None
        return np.zeros(1, np.uint8)

    _run(setting, record, cheat, rules, wrong=record)
    found: dict[str, list[Item]] = {}
    for name in asked:
        if name[0] in ("joint", "hash"):
            found.setdefault(f"chunk {name[1]}, layer {name[2]}", []).append(name)
        elif name[0] in ("vector", "check", "open", "tell"):
            found.setdefault(str(name[0]), []).append(name)
    return found


def _run(
    setting: Setting, stream: Stream, cheat: int, rules: Rules | None, wrong: Wrong | None = None
) -> View:
    zero = np.zeros(1, np.uint8)
    silos = len(setting.owners) if setting.begin == "inputs" else 1
    bits = {(s, p): zero for s in range(silos) for p in range(len(setting.pairs))}
    return Model(setting, bits, stream, cheat, wrong, rules).run()


# --- all worlds -------------------------------------------------------------------------------


def all_worlds(setting: Setting, bit: int, fixed: tuple[str, ...] = ()) -> View:
    """An honest run of one pair with all values of what is drawn; what is ``fixed`` is 0."""
    asked: dict[Item, None] = {}

    def record(*name: object) -> Array:
        asked[name] = None
        return np.zeros(1, np.uint8)

    Model(setting, {(0, 0): np.zeros(1, np.uint8)}, record).run()
    place, total = {}, 0
    for name in asked:
        if name[0] not in fixed:
            place[name] = (total, setting.bits if name[0] in ("element", "part", "number") else 1)
            total += place[name][1]
    none = np.zeros(1 << total, np.uint8)

    def value(*name: object) -> Array:
        return _world(*place[name], total) if name in place else none

    return Model(setting, {(0, 0): none + np.uint8(bit)}, value).run()


@lru_cache(maxsize=64)
def _world(position: int, bits: int, total: int) -> Array:
    """Some bits of the number of every world, of 2^total worlds."""
    numbers = np.arange(1 << total, dtype=np.uint32) >> np.uint32(position)
    return (numbers & np.uint32((1 << bits) - 1)).astype(np.uint8)


@dataclass(frozen=True)
class Case:
    """An adversary: a member, with or without the coordinator."""

    setting: Setting
    cheat: int
    coordinator: bool = False


class Enumeration:
    """One adversary, all values of what it does not know, all bits of honest silos.

    ``falsified`` items are changed by every number, in every combination. ``draws`` says how many
    times, as a power of two, what the adversary knows is drawn; without ``constants`` all values of
    it are enumerated, too.
    """

    def __init__(
        self,
        case: Case,
        falsified: Sequence[Item] = (),
        constants: np.random.Generator | None = None,
        rules: Rules | None = None,
        draws: int = 0,
    ) -> None:
        self._case, rules, setting = case, rules or Rules(), case.setting
        known, unknown = self._names(rules)
        silos = range(len(setting.owners) if setting.begin == "inputs" else 1)
        pairs = range(len(setting.pairs))
        own = [s for s in silos if setting.begin == "inputs" and setting.owners[s] == case.cheat]
        secrets: list[Item] = [("bits", s, p) for s in silos if s not in own for p in pairs]
        above: list[Item] = [("bits", s, p) for s in own for p in pairs] + list(falsified)
        above += known if constants is None else []
        place, total = {}, 0
        for name in (*unknown, *secrets, *above):
            place[name] = (total, self._size(name, rules))
            total += place[name][1]
        self._low = sum(self._size(name, rules) for name in unknown)
        self._middle = len(secrets)
        draws = draws if constants is not None else 0
        which = _world(total, draws, total + draws) if draws else 0
        total += draws
        none, tables = np.zeros(1 << total, np.uint8), {}
        if constants is not None:
            for name in known:
                size = 1 << self._size(name, rules)
                tables[name] = constants.integers(0, size, 1 << draws, dtype=np.uint8)

        def value(*name: object) -> Array:
            if name in place:
                return _world(*place[name], total)
            if name in tables:
                return none + tables[name][which]
            return none

        bits = {(s, p): value("bits", s, p) for s in silos for p in pairs}
        self.view = Model(setting, bits, value, case.cheat, value, rules).run()
        self.worlds = 1 << total
        #: The number of ways to cheat, times what else is known.
        self.ways = self.worlds >> self._low + self._middle

    @classmethod
    def within(
        cls, case: Case, falsified: Sequence[Item], most: int, draws: int
    ) -> list[Sequence[Item]]:
        """The falsified items, in as few groups as have at most 2^most worlds each."""
        none = cls.__new__(cls)
        none._case, rules = case, Rules()
        unknown = sum(none._size(name, rules) for name in none._names(rules)[1])
        silos = len(case.setting.owners) if case.setting.begin == "inputs" else 1
        left = most - unknown - silos * len(case.setting.pairs) - draws
        groups: list[list[Item]] = [[]]
        room = left
        for name in falsified:
            size = none._size(name, rules)
            if size > room and groups[-1]:
                groups.append([])
                room = left
            groups[-1].append(name)
            room -= size
        return list(groups)

    def _size(self, name: Item, rules: Rules) -> int:
        """The bits of something that is drawn or falsified."""
        w, setting = self._case.setting.bits, self._case.setting
        match name[0]:
            case "element" | "part" | "number" | "vector":
                return w
            case "zero":
                return w + (not rules.reduced)
            case "joint":
                _, number, layer, *_ = name
                assert isinstance(number, int)
                assert isinstance(layer, int)
                gates = self._gate_layers(number - setting.number)
                return 1 if layer < gates else w
        return 1

    def _gate_layers(self, chunk: int) -> int:
        setting = self._case.setting
        leaves = len(setting.coins[0]) if chunk else len(setting.owners)
        if not chunk and setting.begin != "inputs":
            return 0
        return (leaves - 1).bit_length()

    def _names(self, rules: Rules) -> tuple[list[Item], list[Item]]:
        """What the adversary knows of all that is drawn, and what it does not."""
        asked: dict[Item, None] = {}

        def record(*name: object) -> Array:
            asked[name] = None
            return np.zeros(1, np.uint8)

        _run(self._case.setting, record, self._case.cheat, rules)
        cheat = self._case.cheat
        known: list[Item] = []
        unknown: list[Item] = []
        for name in asked:
            hidden = name[1] != cheat if name[0] == "draw" else name[1] == cheat
            (unknown if hidden else known).append(name)
        return known, unknown

    # --- laws ---------------------------------------------------------------------------------

    def _rows(
        self, values: list[tuple[Array, int]], above: list[tuple[Array, int]]
    ) -> tuple[npt.NDArray[np.uint64], int]:
        """All values as one number: by what is known, secrets, and what is unknown.

        Also the number of its bits that are not of the values that come ``above``.
        """
        keys, shift = np.zeros(self.worlds, np.uint64), 0
        for some in (values, above):
            start, kept = shift, set()
            for value, bits in some:
                # What is the same in all worlds says nothing; neither does what comes again.
                if not (value != value[0]).any() or value.tobytes() in kept:
                    continue
                kept.add(value.tobytes())
                keys |= value.astype(np.uint64) << np.uint64(shift)
                shift += bits
        assert shift <= 63
        if shift < 32:
            keys = keys.astype(np.uint32)
        return np.sort(keys.reshape(-1, 1 << self._middle, 1 << self._low), axis=2), start

    def independent(self) -> bool:
        """Whether the view follows one law, whatever honest silos hold, given what is opened."""
        view = self.view
        seen, given = list(view.seen), list(view.learned)
        if self._case.coordinator:
            seen, given = seen + view.opened, view.answers
        answers = [(value, self._case.setting.bits) for value in given]
        rows, above = self._rows(seen, answers)
        if (rows == rows[:, :1]).all():
            return True
        return any(a.any() for a in given) and all(self._alike(way, above) for way in rows)

    @staticmethod
    def _alike(rows: npt.NDArray[np.uint64], above: int) -> bool:
        """Whether sorted rows follow one law for each value of the bits above."""
        laws: dict[int, tuple[Any, Any, int]] = {}
        for row in rows:
            first = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
            seen, counts = row[first], np.diff(np.r_[first, len(row)])
            answers = seen >> row.dtype.type(above)
            starts = np.flatnonzero(np.r_[True, answers[1:] != answers[:-1]])
            for start, end in zip(starts, [*starts[1:], len(answers)], strict=True):
                part, law = seen[start:end], counts[start:end]
                total = int(law.sum())
                before = laws.setdefault(int(answers[start]), (part, law, total))
                if len(before[0]) != len(part) or (before[0] != part).any():
                    return False
                if (before[1] * total != law * before[2]).any():
                    return False
        return True

    def lawful(self) -> bool:
        """Whether the opened answer follows the law that is claimed, whatever the silos hold."""
        setting, view = self._case.setting, self.view
        whole = 1 << setting.bits
        truth = [v & (whole - 1) for v in setting.count([u.astype(np.int64) for u in view.union])]
        law = setting.law()
        cases = sum(law.values())
        shape = (-1, 1 << self._low)
        if setting.noise == "parts":
            return self._parts_lawful(truth)
        wanted = np.zeros(whole**setting.length)
        for values in np.ndindex(*[len(law)] * setting.length):
            at, weight = 0, 1
            for i in values:
                z = list(law)[i]
                at, weight = at * whole + setting.factor * z % whole, weight * law[z]
            wanted[at] += weight
        found = np.zeros(self.worlds, np.int64)
        for value, right in zip(view.answers, truth, strict=True):
            found = found * whole + (value.astype(np.int64) - right) % whole
        worlds, total = 1 << self._low, cases**setting.length
        return all(
            (np.bincount(row, minlength=len(wanted)) * total == wanted * worlds).all()
            for row in found.reshape(shape)
        )

    def _parts_lawful(self, truth: list[Array]) -> bool:
        """Parts: the answer less the truth and the cheat's part is the sum of three others."""
        whole = 1 << self._case.setting.bits
        law = {0: 1}
        for _ in range(3):
            law = _plus(law, {0: 6, 1: 1, -1: 1})
        wanted = np.zeros(whole, np.int64)
        for z, weight in law.items():
            wanted[z % whole] += weight
        for value, right in zip(self.view.answers, truth, strict=True):
            rest = (value.astype(np.int64) - right) % whole
            for row in rest.reshape(-1, 1 << self._low):
                counts = np.bincount(row, minlength=whole) * 512
                shifts = [np.roll(wanted, shift) << self._low for shift in range(whole)]
                if not any((counts == shifted).all() for shifted in shifts):
                    return False
        return True
