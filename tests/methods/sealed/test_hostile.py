"""Whoever lies in a committee that counts: bounds, noise and edges stay as they are.

A *falsified* message is signed and encrypted by its real author, and only its content lies. Where
two members do not say the same, the receiver ends for good, before it has used anything. Every
other message that is not due is refused by its sender's name, and changes nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from silograph.errors import BindingError, MismatchError, OrderError, PayloadError, SignatureError
from silograph.messages.envelope import EVERYONE, Envelope, seal
from silograph.messages.identity import COORDINATOR
from silograph.methods.committee.rounds import MEMBERS, SECRET_ROUNDS, WINDOW, State
from silograph.methods.sealed.coordinator import SealedCoordinator
from silograph.methods.sealed.noise import FACTORS, Coins, Output, Parts
from silograph.methods.sealed.party import SealedPart, SealedParty
from silograph.methods.sealed.rounds import SEALED_COORDINATOR_STEPS, SEALED_PARTY_STEPS
from tests.methods.committee.run import (
    COMMITTEES,
    FIVE,
    FOUR,
    Committee,
    Message,
    Name,
    Unchanged,
    flipped,
    refuse,
)
from tests.methods.sealed.run import (
    EVERYTHING,
    PARTS,
    SealedOracle,
    SealedRun,
    bounded,
    parameters,
    plain,
    truth,
)
from tests.sampled import sampled

pytestmark = pytest.mark.slow

INSIDE = "the coordinator and a silo outside"


def also(name: str) -> Any:
    """A committee whose turn takes long."""
    return pytest.param(name, marks=pytest.mark.whole)


#: The committees in which messages are falsified, and every which one: all where there is time.
FALSIFIED = [
    ("four silos", 9),
    *(pytest.param(name, 1, marks=pytest.mark.whole) for name in COMMITTEES),
]
ONE = Coins((1, 1), 2)
#: Runs with few messages: of every kind of noise, and of every kind of answer.
SMALL = {
    "coins": (Output("degrees", ONE), Output("triangles", Coins((1,), 2))),
    "parts": (Output("edges", PARTS), Output("two_stars", PARTS)),
    "bounded": bounded(3, degrees=ONE)[::2],
}


def small(kind: str, committee: Committee = FOUR, **more: object) -> SealedRun:
    """A run of three nodes."""
    held = [(3 * place + 1) % 8 for place in range(committee.silos)]
    given = parameters(committee, 3, SMALL[kind])
    return SealedRun(committee, held, given=given, **more)  # type: ignore[arg-type]


def changed(
    change: Callable[[SealedRun, Message], Message], kind: str, committee: Committee = FOUR
) -> SealedRun:
    """A run in which some messages are replaced on their way."""

    def replaced(message: Message) -> list[bytes]:
        return [change(run, message).raw]

    run = small(kind, committee, change=replaced)
    return run.go()


def altered(change: Callable[[SealedRun, Message], Message], **given: Any) -> SealedRun:
    """The same with parameters of its own."""
    run = SealedRun(**given, change=lambda message: [change(run, message).raw])
    run.go()
    return run


def falsified(name: Name, byte: int, kind: str, committee: Committee = FOUR) -> SealedRun:
    """A run in which its author has changed one bit of one message."""

    def change(run: SealedRun, message: Message) -> Message:
        if message.name != name:
            return message
        return run.say(message, flipped(run.content(message), byte))

    return changed(change, kind, committee)


def part_of(run: SealedRun, place: int) -> SealedPart:
    found = run.machine(place)._part
    assert isinstance(found, SealedPart)
    return found


def has_ended(run: SealedRun, name: Name) -> bool:
    """That the receiver has refused what it got, by name, and has used and said nothing since."""
    kind, sequence, sender, receiver = name
    machine = run.machine(receiver)
    at, error = next((at, error) for who, at, error in run.errors if who == receiver)
    assert isinstance(error, MismatchError)
    assert machine.state is State.ENDED
    assert [message for message in run.sent[at:] if message.sender == receiver] == []
    assert run.coordinator.state is not State.DONE
    with pytest.raises(OrderError):
        run.coordinator.result()
    if kind in ("check", "joint", "open", "tell"):
        assert run.name(sender) in str(error)
    if kind == "joint":
        number, layer = divmod(sequence, run.parameters.stride)
        assert part_of(run, receiver)._chunks[number].layer == layer
        mine = [m.name[1] for m in run.sent if m.name[0] == "joint" and m.sender == receiver]
        assert not any(other // 16 == number and other > sequence for other in mine)
    theirs = [message.raw for message in run.sent if message.receiver == receiver]
    for raw in theirs[::9]:
        with pytest.raises(OrderError, match="ended"):
            machine.receive(raw)
    assert machine.state is State.ENDED
    assert machine.make() == []
    return True


class TestFalsified:
    @pytest.mark.parametrize(("name", "step"), FALSIFIED)
    @pytest.mark.parametrize("kind", SMALL)
    def test_every_message_and_every_hash(self, name: str, step: int, kind: str) -> None:
        """In every round and layer, by every author, to every receiver: each ends the run."""
        committee = COMMITTEES[name]
        honest, tried = small(kind, committee).go(), []
        chosen = [
            message
            for message in honest.sent
            if message.name[0] in ("input", "check", "joint", "open", "tell")
            and honest.content(message)
            and not (kind == "bounded" and self.seen_before(honest, message))
        ]
        assert len(chosen) > 50
        for message in chosen[::step]:
            size = len(honest.content(message))
            # The first byte is of a vector, where there is one, the last of a hash.
            for byte in {0, size - 1} if message.name[0] == "joint" else {0}:
                assert has_ended(falsified(message.name, byte, kind, committee), message.name)
                tried.append(message.name[0])
        rounds = {"check", "joint"} | ({"tell"} if kind == "bounded" else {"input", "open"})
        assert set(tried) <= rounds
        assert step > 1 or (set(tried) == rounds and len(tried) > 70)

    def seen_before(self, run: SealedRun, message: Message) -> bool:
        """Of a run with a bound, only what follows the opening; pairs are those of other runs."""
        kind, sequence, _, _ = message.name
        first = run.parameters.unbounded_items
        number = sequence // run.parameters.stride if kind == "joint" else sequence
        # Of the layers of the noise, the two of gates and the two of the conversion.
        layers = len({m.name[1] for m in run.sent if m.name[0] == "joint"
                      and m.name[1] // 16 == first})  # fmt: skip
        inner = kind == "joint" and 2 <= sequence % 16 < layers - 2
        return kind != "tell" and (number < first or inner)

    def test_the_second_chunk_of_pairs(self) -> None:
        """It uses the other directions between members."""
        given = parameters(FOUR, 13, plain(("edges",)))
        held = [5, 6, 7 << 60, 9 << 70]
        honest = SealedRun(FOUR, held, given=given).go()
        assert given.chunks == 2
        layers = given.circuit.layers
        routes = {
            number: {m.name[1:] for m in honest.sent
                     if m.name[0] == "joint" and m.name[1] == number * 16 + layers - 1
                     and len(honest.content(m)) >= 64}
            for number in (0, 1)
        }  # fmt: skip
        assert [len(routes[number]) for number in (0, 1)] == [4, 4]
        assert not {name[1:] for name in routes[0]} & {name[1:] for name in routes[1]}
        for sequence, sender, receiver in routes[1]:

            def change(
                run: SealedRun, message: Message, name: object = (sequence, sender, receiver)
            ) -> Message:
                if message.name[0] != "joint" or message.name[1:] != name:
                    return message
                return run.say(message, flipped(run.content(message), 57))

            run = altered(change, held=held, given=given)
            assert has_ended(run, ("joint", sequence, sender, receiver))

    def test_contents_of_other_messages(self) -> None:
        """Of another chunk, layer, output or receiver, under the right name."""
        outputs = (*plain(("degrees", "edges"), ONE), Output("triangles", ONE))
        given = parameters(FOUR, 3, outputs)
        held = [1, 2, 4, 5]
        honest = SealedRun(FOUR, held, given=given).go()
        contents = {message.name: honest.content(message) for message in honest.sent}
        tried = 0
        for name in [name for name in contents if name[0] in ("check", "joint", "open")][::2]:
            others = [
                other for other in contents
                if other != name and other[0] == name[0] and other[3] == name[3]
                and len(contents[other]) == len(contents[name]) > 0
            ]  # fmt: skip
            for other in others[3:4]:

                def change(
                    run: SealedRun, message: Message, name: Name = name, other: Name = other
                ) -> Message:
                    return message if message.name != name else run.say(message, contents[other])

                run = altered(change, held=held, given=given)
                assert has_ended(run, name), (name, other)
                tried += 1
        assert tried > 40


class TestBound:
    """No member can lower the bound, or make two members use different ones."""

    def degrees(self, run: SealedRun, message: Message, add: int) -> bytes:
        """A told component that makes every degree larger or smaller."""
        width, content = run.parameters.width, run.content(message)
        words = [content[at : at + width] for at in range(0, len(content), width)]
        modulus = 1 << 8 * width
        return b"".join(
            ((int.from_bytes(word, "little") + add) % modulus).to_bytes(width, "little")
            for word in words
        )

    @pytest.mark.parametrize("name", COMMITTEES)
    @pytest.mark.parametrize("add", sampled([-5, -1, 1], 0))
    def test_a_false_component(self, name: str, add: int) -> None:
        committee = COMMITTEES[name]
        for cheat in range(MEMBERS):
            sender = committee.members[cheat]
            receiver = committee.members[(cheat - 1) % MEMBERS]

            def change(
                run: SealedRun, message: Message, name: Name = ("tell", 0, sender, receiver)
            ) -> Message:
                if message.name != name:
                    return message
                return run.say(message, self.degrees(run, message, add))

            run = changed(change, "bounded", committee)
            assert has_ended(run, ("tell", 0, sender, receiver))
            assert part_of(run, receiver)._laws[1] is None
            later = [m for m in run.sent if m.sender == receiver and self.second(run, m)]
            assert later == []

    def second(self, run: SealedRun, message: Message) -> bool:
        kind, sequence, _, _ = message.name
        number = sequence // run.parameters.stride if kind == "joint" else sequence
        return kind == "sum" or (
            kind in ("check", "joint") and number >= run.parameters.unbounded_items
        )

    @pytest.mark.parametrize("name", COMMITTEES)
    def test_a_false_hash(self, name: str) -> None:
        committee = COMMITTEES[name]
        for cheat in range(MEMBERS):
            sender = committee.members[cheat]
            receiver = committee.members[(cheat - 2) % MEMBERS]
            run = falsified(("tell", 0, sender, receiver), 3, "bounded", committee)
            assert has_ended(run, ("tell", 0, sender, receiver))
            assert part_of(run, receiver)._laws[1] is None
            assert not any(m.sender == receiver and self.second(run, m) for m in run.sent)

    def test_everything_that_one_member_tells(self) -> None:
        """A component to one, a hash to another, an opening to the coordinator: all three end."""
        for cheat in range(MEMBERS):

            def change(run: SealedRun, message: Message, cheat: int = cheat) -> Message:
                if message.name[0] not in ("tell", "open") or message.sender != cheat:
                    return message
                return run.say(message, flipped(run.content(message), 0, 2))

            run = changed(change, "bounded")
            ended = {place for place in (0, 1, 2, 3) if run.machine(place).state is State.ENDED}
            assert ended == {(cheat - 1) % 4, (cheat - 2) % 4}
            assert run.coordinator.state is State.ENDED
            assert not any(m.name[0] == "sum" for m in run.sent)
            assert not any(m.sender in ended and self.second(run, m) for m in run.sent)

    def test_a_cheat_that_uses_another_bound_ends_the_run(self) -> None:
        """Its coins are other coins: the first layer of its noise has another size."""
        run = small("bounded")
        bound, part = SealedPart._bound, []

        def cheat(self: SealedPart, degrees: npt.NDArray[np.int64]) -> None:
            bound(self, degrees)
            if self._number == 2:
                law = self._parameters.outputs[1].noise
                self._laws[1] = Coins((1,), 3)
                part.append(law)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SealedPart, "_bound", cheat)
            run.go()
        assert len(part) == 1
        assert run.coordinator.state is State.CHUNKS
        assert not any(m.name[0] == "sum" for m in run.sent)
        refused = {error.silo for _, _, error in run.errors if isinstance(error, PayloadError)}
        assert "silo 3" in refused


@dataclass(frozen=True)
class Chosen(Parts):
    """A part of the noise that its member chooses."""

    value: int = 0

    def draw(self, count: int, seed: bytes) -> npt.NDArray[np.int64]:
        return np.full(count, self.value, np.int64)


class TestNoise:
    """What a cheat can do to a published number is to add something that it knows itself."""

    @pytest.mark.parametrize("kind", ["coins", "bounded", "parts"])
    @pytest.mark.parametrize(
        "name", ["four silos", also(INSIDE), also("two silos and two helpers")]
    )
    def test_another_summand_shifts_the_answer(self, name: str, kind: str) -> None:
        """By exactly what was added; the truth, and noise that nobody knows, are still in it."""
        committee = COMMITTEES[name]
        honest = small(kind, committee).go()
        [(number, count)] = [
            (number, output.name)
            for number, output in enumerate(honest.parameters.outputs)
            if output.name in ("two_stars", "triangles")
        ]
        factor, width = FACTORS[count], honest.parameters.width
        for cheat, shift in product(committee.members, (1, -7, 12)):
            if cheat == COORDINATOR:
                continue  # it sends its own to nobody, and can say what it likes

            def change(
                run: SealedRun, message: Message, cheat: int = cheat, shift: int = shift
            ) -> Message:
                if message.name != ("sum", number, cheat, COORDINATOR):
                    return message
                word = int.from_bytes(run.content(message), "little") + factor * shift
                return run.say(message, (word % (1 << 8 * width)).to_bytes(width, "little"))

            run = changed(change, kind, committee)
            assert run.errors == []
            answers = run.answers
            answers[count][0] -= shift
            assert answers == run.expected == honest.answers

    @pytest.mark.parametrize("kind", ["coins", "bounded"])
    def test_a_member_that_leaves_out_its_component_of_the_noise(self, kind: str) -> None:
        """It knows that component: the answer is off by a number that follows from its own view."""
        honest, seen, publish = small(kind).go(), set(), SealedPart._next
        [count] = [o.name for o in honest.parameters.outputs if o.name == "triangles"]
        for cheat in range(MEMBERS):
            run = small(kind)

            def without(self: SealedPart, cheat: int = cheat) -> bool:
                number = len(self._parameters.outputs) - 1
                if self._number == cheat and self._ready_to_publish(number):
                    self._noise[number] = type(self._noise[number])(
                        cheat, self._parameters.width, 1
                    )
                return publish(self)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(SealedPart, "_next", without)
                run.go()
            bits = 8 * run.parameters.width
            if run.coordinator.state is State.ENDED:
                [(_, _, error)] = run.errors
                assert "do not add up" in str(error)
                continue
            off = (run.answers[count][0] - honest.answers[count][0]) * FACTORS[count]
            seen.add(off % (1 << bits))
        # The component is uniform mod 2^w: it is never 0 in all, and a sum hides nothing of it.
        assert 0 not in seen

    @pytest.mark.parametrize("value", [0, -1000, 12345])
    @pytest.mark.parametrize("name", [also("four silos"), also("three silos and a helper"), INSIDE])
    def test_a_part_of_any_size_leaves_the_other_three(self, name: str, value: int) -> None:
        committee = COMMITTEES[name]
        outputs = (Output("degrees", Parts(300, 1)), Output("triangles", Parts(2000, 1)))
        for cheat, place in enumerate(committee.members):
            if place == COORDINATOR:
                continue
            given = parameters(committee, 6, outputs)

            def change(run: SealedRun, message: Message, place: int = place) -> Message:
                if message.sender == place and message.name[0] == "confirm":
                    part = part_of(run, place)
                    part._laws = [Chosen(1, 1, value=value) for _ in part._laws]
                return message

            held = [99] * committee.silos
            run = altered(change, committee=committee, held=held, given=given)
            assert run.errors == []
            oracle, graph = SealedOracle(run), truth(6, run.union)
            for number, output in enumerate(outputs):
                assert isinstance(output.noise, Parts)
                item = given.chunks + number
                rest = sum(
                    oracle.part(item, member, output.noise)
                    for member in range(4)
                    if member != cheat
                )
                expected = np.array(graph[output.name]) + value + rest
                assert run.answers[output.name] == expected.tolist()

    def test_a_part_that_two_holders_get_differently(self) -> None:
        """They compare before use."""
        for cheat in range(MEMBERS):

            def change(run: SealedRun, message: Message, cheat: int = cheat) -> Message:
                item = run.parameters.chunks
                if (
                    message.name[:3] != ("input", item, cheat)
                    or message.receiver != (cheat + 2) % 4
                ):
                    return message
                return run.say(message, flipped(run.content(message), 0))

            run = changed(change, "parts")
            assert has_ended(run, ("input", 1, cheat, (cheat + 2) % 4))
            assert run.parties[(cheat + 3) % 4].state is State.ENDED
            assert "open" not in run.rounds

    def test_no_coin_is_known_to_anyone_before_the_end(self) -> None:
        """Without the seed that a member lacks, a coin is as likely one as in the law."""
        outputs = plain(("degrees",), Coins((4,), 3))
        for member in range(MEMBERS):
            run = SealedRun(FOUR, [0] * 4, given=parameters(FOUR, 40, outputs)).go()
            base = SealedOracle(run)
            ones = []
            for guess in range(50):
                base.seeds[member] = bytes([guess] * 32)  # the component that the member lacks
                ones.append(base.noise(0))
            noise = np.concatenate(ones)
            # G − G′ of two fair bits: −1, 0, 1 in 1, 2, 1 of 4 cases; 2,000 draws.
            counts = [int((noise == value).sum()) for value in (-1, 0, 1)]
            assert sum(counts) == 2000
            assert all(abs(c - e) < 150 for c, e in zip(counts, (500, 1000, 500), strict=True))


class TestEdges:
    """A number that comes from a bit is 0 or 1, whatever one member does."""

    @pytest.mark.parametrize("weight", [1, 2, -1, 100])
    def test_a_number_that_is_no_bit(self, weight: int) -> None:
        """In both layers of the conversion, on every route: the other who knows the bit says no."""
        honest = small("coins").go()
        given = honest.parameters
        width, layers = given.width, given.circuit.layers
        tried = 0
        for message in honest.sent:
            kind, sequence, _, _ = message.name
            if kind != "joint" or sequence not in (layers - 2, layers - 1):
                continue
            if len(honest.content(message)) <= 32:
                continue

            def change(run: SealedRun, sent: Message, name: Name = message.name) -> Message:
                if sent.name != name:
                    return sent
                content = run.content(sent)
                first = (int.from_bytes(content[:width], "little") + weight) % (1 << 8 * width)
                return run.say(sent, first.to_bytes(width, "little") + content[width:])

            assert has_ended(changed(change, "coins"), message.name)
            tried += 1
        assert tried == 6

    def test_bits_beyond_the_last_pair_count_nothing(self) -> None:
        """A silo may share any bits; those that stand for no pair are in no answer."""

        def change(run: SealedRun, message: Message) -> Message:
            if message.name[:3] != ("input", 0, 4):
                return message
            word = int.from_bytes(run.content(message), "little") ^ (2**64 - 8)
            return run.say(message, word.to_bytes(8, "little"))

        run = altered(change, committee=FIVE, held=[1, 2, 0, 0, 0], size=3)
        assert run.errors == []
        assert run.answers == run.expected

    def test_an_edge_of_many_silos_counts_once(self) -> None:
        run = SealedRun(COMMITTEES["seven silos"], [1] * 7, 3).go()
        assert truth(3, run.union)["edges"] == [1]
        assert run.answers == run.expected


class TestSizes:
    @pytest.mark.parametrize("name", [also("four silos"), INSIDE])
    def test_every_message_has_the_size_of_w_bits(self, name: str) -> None:
        for nodes, digits in ((3, 1), (9, 12), (12, 20), (12, 30)):
            committee = COMMITTEES[name]
            noise = Coins((1,) * digits, 2)
            outputs = (*plain(EVERYTHING[:3], noise), Output("triangles", noise))
            given = parameters(committee, nodes, outputs)
            run = SealedRun(committee, [3] * committee.silos, given=given).go()
            assert run.errors == []
            w = given.width
            seen = set()
            for message in run.sent:
                kind, sequence, sender, _ = message.name
                size, member = len(run.content(message)), given.number(sender)
                if kind == "sum":
                    assert size == w
                elif kind == "done":
                    assert size == 0
                elif kind == "open":
                    length = nodes if given.outputs[sequence].name == "degrees" else 1
                    assert member is not None
                    assert size == (32 if (member + sequence) % 2 else length * w)
                elif kind == "joint":
                    number, layer = divmod(sequence, given.stride)
                    gates = given.circuit.layers - 2
                    words = 1 if number < given.chunks else 2 * digits
                    if number < given.chunks and layer >= gates:
                        assert size in {a + b for a in (0, 32) for b in (0, 64 * words * w)}
                        seen.add(size)
            assert 64 * w in seen
        assert w >= 5

    @pytest.mark.parametrize("kind", SMALL)
    def test_whole_words_are_refused(self, kind: str) -> None:
        """Numbers of eight bytes, whose upper bits would tell carries, and other sizes."""

        def wide(run: SealedRun, message: Message) -> list[bytes]:
            if message.name[0] not in ("input", "check", "joint", "open", "tell", "sum", "done"):
                return []
            content, width = run.content(message), run.parameters.width
            words = [content[at : at + width] for at in range(0, len(content), width)]
            wrong = [b"".join(word.ljust(8, b"\0") for word in words), content + b"\0", content * 2]
            wrong += [content[:-1], b""]
            return [run.say(message, other).raw for other in wrong if len(other) != len(content)]

        errors = Unchanged(lambda **more: small(kind, **more)).beside(wide)
        assert {type(error) for _, error in errors} == {PayloadError}
        assert all("wrong size" in str(error) for _, error in errors)

    def test_summands_are_uniform_but_for_their_sum(self) -> None:
        """Under shares of zero that are new for every output: no two runs or outputs have the same.

        Two runs that differ in their edges alone have summands that differ, at every member, by
        numbers that add up to the change.
        """
        outputs = plain(("two_stars", "triangles"), Coins((1,) * 30, 2))
        found = []
        for seed in range(2):
            run = SealedRun(FOUR, [7, 0, 0, 0], given=parameters(FOUR, 3, outputs), seed=seed).go()
            sums = {
                m.name[1:3]: int.from_bytes(run.content(m), "little")
                for m in run.sent if m.name[0] == "sum"
            }  # fmt: skip
            assert len(sums) == 8
            assert len(set(sums.values())) == 8
            found.append(sums)
        assert not set(found[0].values()) & set(found[1].values())

    def test_summands_fill_their_bytes(self) -> None:
        """Of an empty graph with hardly any noise, over many runs: all bytes of every member."""
        outputs = (*plain(("two_stars",), Coins((1,), 8)), Output("triangles", Coins((1,), 8)))
        given = parameters(FOUR, 3, outputs)
        values: dict[tuple[int, int], list[bytes]] = {}
        for seed in range(30):
            run = SealedRun(FOUR, [0] * 4, given=given, seed=seed).go()
            for message in run.sent:
                if message.name[0] == "sum":
                    values.setdefault(message.name[1:3], []).append(run.content(message))
        assert len(values) == 8
        assert all(len(set(seen)) > 20 for seen in values.values())


@pytest.mark.parametrize("name", [also("four silos"), INSIDE])
@pytest.mark.parametrize("kind", ["parts", "bounded"])
class TestRefusedBeside:
    """Refused by name; the good message that follows is taken, and the run goes on."""

    def unchanged(self, name: str, kind: str) -> Unchanged:
        return Unchanged(lambda **more: small(kind, COMMITTEES[name], **more))

    def test_every_message_twice(self, name: str, kind: str) -> None:
        errors = self.unchanged(name, kind).beside(lambda _, message: [message.raw], first=False)
        assert {type(error) for _, error in errors} == {OrderError}
        assert sum("came twice" in str(error) for _, error in errors) > 50

    def test_messages_to_everyone(self, name: str, kind: str) -> None:
        def everyone(run: SealedRun, message: Message) -> list[bytes]:
            if message.name[0] not in SECRET_ROUNDS:
                return []
            return [run.say(message, receiver=EVERYONE).raw]

        errors = self.unchanged(name, kind).beside(everyone)
        assert {type(error) for _, error in errors} == {PayloadError}
        assert all("not for us alone" in str(error) for _, error in errors)

    def test_ciphertexts_under_another_name(self, name: str, kind: str) -> None:
        """Moved by their author to another output, phase or receiver."""

        def moved(run: SealedRun, message: Message) -> list[bytes]:
            envelope = message.envelope
            if envelope.round not in ("check", "open", "tell", "sum"):
                return []
            others = [
                m for m in run.sent
                if m.sender == message.sender and m.name != message.name
                and m.name[0] in SECRET_ROUNDS
                and len(m.envelope.payload) == len(envelope.payload)
            ]  # fmt: skip
            return [
                seal(run.binding, run.keys[message.sender], envelope.saying(payload))
                for payload in {other.envelope.payload for other in others[:2]}
            ]

        errors = self.unchanged(name, kind).beside(moved)
        assert {type(error) for _, error in errors} == {PayloadError}
        assert all("cannot be decrypted" in str(error) for _, error in errors)

    def test_changed_by_whoever_carries_it(self, name: str, kind: str) -> None:
        def damage(run: SealedRun, message: Message) -> list[bytes]:
            if message.name[0] not in ("open", "tell", "sum", "done"):
                return []
            other = run.keys[COORDINATOR if message.sender != COORDINATOR else 0]
            return [flipped(message.raw, -1), seal(run.binding, other, message.envelope)]

        errors = self.unchanged(name, kind).beside(damage)
        assert {type(error) for _, error in errors} == {SignatureError}

    def test_another_run_and_other_parameters(self, name: str, kind: str) -> None:
        """The same message of another run, or of one with another law of noise."""
        same = self.unchanged(name, kind)
        committee = COMMITTEES[name]
        other = small(kind, committee, run=b"x" * 16).go()
        given = same.honest.parameters
        third = replace(given, outputs=(*given.outputs[:1], Output("triangles", Coins((1,), 9))))
        last = SealedRun(committee, same.honest.held, given=third).go()
        raws = [{message.name: message.raw for message in run.sent} for run in (other, last)]
        errors = same.beside(
            lambda _, message: [raw[message.name] for raw in raws if message.name in raw]
        )
        assert {type(error) for _, error in errors} == {BindingError}


class TestRefused:
    """Messages that nobody has a reason to send: refused by name, in the middle of a run."""

    def waiting(self, kind: str, *, nodes: int = 12) -> SealedRun:
        """A silo outside, two helpers. All members but the last are among their chunks."""
        committee = COMMITTEES["a silo outside, two helpers"]
        outputs = {
            "coins": plain(("degrees", "triangles"), ONE),
            "parts": plain(("degrees", "triangles"), PARTS),
            "bounded": bounded(nodes),
        }[kind]
        run = SealedRun(committee, [1, 2, 4], given=parameters(committee, nodes, outputs))
        run.unpaid = {4}
        run.go()
        assert run.errors == []
        assert run.parameters.members == (0, 3, 1, 4)
        assert {run.parties[p].state for p in (0, 1, 3)} == {State.CHUNKS}
        return run

    def finish(self, run: SealedRun) -> None:
        """The run goes on as if nothing had happened."""
        run.unpaid = set()
        while run._act():
            pass
        assert run.errors == []
        assert run.answers == run.expected

    def test_told_although_nothing_is_due(self) -> None:
        none = "no such message from it to us"
        for kind in ("coins", "parts"):
            run = self.waiting(kind)
            size = 12 * run.parameters.width
            for sender, receiver in ((3, 0), (1, 0), (4, 3), (0, 1)):
                for length in (32, size):
                    refuse(run, ("tell", 0, sender, receiver), length, match=none)
            self.finish(run)

    def test_told_by_others_or_about_something_else(self) -> None:
        """Member 0 hears a component of member 1 (at place 3), and a hash of member 2 (place 1)."""
        run = self.waiting("bounded")
        none, size = "no such message from it to us", 12 * run.parameters.width
        for sender in (4, 2, COORDINATOR, 0):  # the last member, a silo outside, nobody, ourselves
            for length in (32, size):
                refuse(run, ("tell", 0, sender, 0), length, match=none)
        for number in (1, 2, 3, 2**32 - 1):
            refuse(run, ("tell", number, 3, 0), size, match=none)
            refuse(run, ("tell", number, 1, 0), 32, match=none)
        refuse(run, ("tell", 0, 3, 0), 32, PayloadError, "wrong size")
        refuse(run, ("tell", 0, 1, 0), size, PayloadError, "wrong size")
        refuse(run, ("tell", 0, 3, 0), 8 * 12, PayloadError, "wrong size")
        refuse(run, ("tell", 0, 0, 2), size, match="not while in state 'done'")
        refuse(run, ("tell", 0, 0, COORDINATOR), size, match="not a member")
        # One who is not yet authorised is told nothing.
        refuse(run, ("tell", 0, 0, 4), size, match="not while in state")
        self.finish(run)

    @pytest.mark.parametrize("kind", ["coins", "parts", "bounded"])
    def test_layers_that_are_not_due(self, kind: str) -> None:
        """Before a chunk has begun, beyond its last layer, of noise before its law is known."""
        run = self.waiting(kind)
        given, layer = run.parameters, "has no such layer yet"
        layers = given.circuit.layers
        for over in range(layers, given.stride):
            refuse(run, ("joint", over, 3, 0), 64, match=layer)
        refuse(run, ("joint", 0, 0, 4), 64, match=layer)  # it has not begun
        begun = run.parties[0]._part._begun  # type: ignore[union-attr]
        for number in range(begun, given.items):
            refuse(run, ("joint", number * 16, 3, 0), 64, match=layer)
        for number in range(given.chunks, begun):
            first = 16 * number
            if kind == "parts":
                for inner in range(16):
                    refuse(run, ("joint", first + inner, 3, 0), 64, match=layer)
            refuse(run, ("joint", first + 15, 3, 0), 64, match=layer)
        if kind == "bounded":
            assert given.unbounded_items < given.items
            for number in range(given.unbounded_items, given.items):
                refuse(run, ("joint", 16 * number, 3, 0), 64, match=layer)
        refuse(run, ("joint", 16 * given.items, 3, 0), 64, match="there is no chunk")
        refuse(run, ("joint", 2**32 - 1, 3, 0), 64, match="there is no chunk")
        refuse(run, ("check", given.items, 3, 0), 32, match="there is no chunk")
        self.finish(run)

    def test_inputs_of_noise(self) -> None:
        """Coins have none; of parts every member has one, and nobody else."""
        none = "no such message from it to us"
        run = self.waiting("coins")
        for number, sender in product(range(run.parameters.chunks, 8), (1, 2, 3, 4)):
            refuse(run, ("input", number, sender, 0), run.parameters.width, match=none)
        self.finish(run)
        run = self.waiting("parts")
        item, width = run.parameters.chunks, run.parameters.width
        refuse(run, ("input", item, 2, 0), 12 * width, match=none)  # a silo, not a member
        refuse(run, ("input", item, COORDINATOR, 0), 12 * width, match=none)
        refuse(run, ("input", item, 4, 0), 12 * width, match=none)  # it is the one we lack
        refuse(run, ("input", item, 3, 0), 12 * width, match="came twice")
        refuse(run, ("input", item + 2, 3, 0), width, match=none)
        refuse(run, ("input", 0, 3, 0), 16, match=none)  # a helper has no edges
        self.finish(run)

    def test_members_hear_no_openings(self) -> None:
        run = self.waiting("bounded")
        for kind in ("open", "sum", "done", "all chunks", "make", "authorise", "bound"):
            for sender in (COORDINATOR, 1, 2):
                refuse(run, (kind, 0, sender, 0), 8, match="there is no such message")
        self.finish(run)

    @pytest.mark.parametrize("kind", ["joint", "check", "match"])
    def test_a_coordinator_outside_and_a_silo_outside_are_no_members(self, kind: str) -> None:
        run = self.waiting("coins")
        for sender in (2, COORDINATOR):
            refuse(run, (kind, 0, sender, 0), 32, match="no such message from it to us")
        refuse(run, (kind, 0, 0, 2), 32, match="not while in state 'done'")
        refuse(run, (kind, 0, 0, COORDINATOR), 32, match="not a member")

    def test_a_silo_outside_cannot_run_ahead(self) -> None:
        """Its first chunks are kept, and no more; whatever stream they come in."""
        run = self.waiting("coins", nodes=60)
        given, silo = run.parameters, 2
        assert given.chunks > 4 * WINDOW
        lacks = given.members[given.vector(silo)]
        for place in given.members:
            if place == lacks:
                continue
            part = part_of(run, place)
            assert part._inputs == {silo: part._done + 2 * WINDOW}
            assert not run.parties[place].wants(silo)
            refuse(run, ("input", 2 * WINDOW, silo, place), 8, match="too far ahead")
            refuse(run, ("input", given.chunks - 1, silo, place), 8, match="too far ahead")
        refuse(run, ("check", 2 * WINDOW, 3, 0), 32, match="too far ahead")
        refuse(run, ("input", 2 * WINDOW, 1, 0), 8, match="too far ahead")
        self.finish(run)


class TestCoordinator:
    """What the coordinator refuses of the openings, and when it ends."""

    def half(self, kind: str) -> SealedRun:
        """All that members open has come, but for that of the second silo's last output."""

        def change(message: Message) -> list[bytes]:
            late = message.sender == 1 and message.name[0] in ("open", "sum")
            return [] if late else [message.raw]

        run = small(kind, FIVE, change=change)
        run.go()
        assert run.errors == []
        assert run.coordinator.state is State.CHUNKS
        return run

    @pytest.mark.parametrize("kind", ["coins", "parts"])
    def test_what_is_not_due(self, kind: str) -> None:
        """Output 0 is degrees or edges, which are opened, and output 1 is a count, a sum."""
        run = self.half(kind)
        width, nobody = run.parameters.width, "not a member of the committee"
        length = 3 if kind == "coins" else 1
        for name, size in (("open", length * width), ("sum", width), ("done", 0)):
            refuse(run, (name, 0, 4, COORDINATOR), size, match=nobody)
        there_is_none = "there is no chunk"
        refuse(run, ("sum", 0, 1, COORDINATOR), width, match=there_is_none)
        refuse(run, ("open", 1, 1, COORDINATOR), width, match=there_is_none)
        for name, size in (("open", width), ("sum", width), ("done", 0)):
            refuse(run, (name, 2 + run.parameters.bands, 1, COORDINATOR), size, match=there_is_none)
            refuse(run, (name, 2**32 - 1, 1, COORDINATOR), size, match=there_is_none)
        twice = "came twice"
        refuse(run, ("sum", 1, 0, COORDINATOR), width, match=twice)
        refuse(run, ("open", 0, 2, COORDINATOR), length * width, match=twice)
        refuse(run, ("done", 0, 1, COORDINATOR), 0, match=twice)
        for size in (0, width - 1, width + 1, 8, 32):
            refuse(run, ("sum", 1, 1, COORDINATOR), size, PayloadError, "wrong size")
        refuse(run, ("open", 0, 1, COORDINATOR), length * width, PayloadError, "wrong size")
        refuse(run, ("done", 0, 1, COORDINATOR), 1, match=twice)
        for name in ("tell", "joint", "check", "input", "seed", "match"):
            refuse(run, (name, 0, 1, COORDINATOR), 32, match="the coordinator is not a member")
        for name in ("all chunks", "keys", "confirms", "make", "output"):
            refuse(run, (name, 0, 1, COORDINATOR), 32, match="no such message")
        # The right ones are taken, and the run is done.
        for message in [m for m in run.sent if m.sender == 1 and m.name[0] in ("open", "sum")]:
            run.coordinator.receive(message.raw)
        assert run.answers == run.expected

    @pytest.mark.parametrize("kind", SMALL)
    @pytest.mark.parametrize("name", [also("four silos"), INSIDE])
    def test_summands_that_do_not_add_up(self, name: str, kind: str) -> None:
        """What is not a multiple of six (or two) cannot be 6(T + z): the run is over."""
        committee, tried = COMMITTEES[name], 0
        for cheat, add in product(committee.members, (1, 3, 5, 255)):
            if cheat == COORDINATOR:
                continue

            def change(
                run: SealedRun, message: Message, cheat: int = cheat, add: int = add
            ) -> Message:
                if message.name[0] != "sum" or message.sender != cheat:
                    return message
                width = run.parameters.width
                word = int.from_bytes(run.content(message), "little") + add
                return run.say(message, (word % (1 << 8 * width)).to_bytes(width, "little"))

            run = changed(change, kind, committee)
            [(who, _, error)] = run.errors
            assert who == COORDINATOR
            assert isinstance(error, MismatchError)
            assert "summands" in str(error)
            assert "do not add up" in str(error)
            assert run.coordinator.state is State.ENDED
            with pytest.raises(OrderError):
                run.coordinator.result()
            theirs = [m.raw for m in run.sent if m.receiver == COORDINATOR]
            for raw in theirs[::5]:
                with pytest.raises(OrderError, match="ended"):
                    run.coordinator.receive(raw)
            tried += 1
        assert tried >= 12

    def test_an_opening_that_is_not_confirmed(self) -> None:
        """By every author, a sum or a hash."""
        for cheat in range(4):
            run = falsified(("open", 0, cheat, COORDINATOR), 1, "coins")
            assert has_ended(run, ("open", 0, cheat, COORDINATOR))
            _, _, error = run.errors[0]
            assert "does not confirm what it opened" in str(error)

    def test_halves_of_an_opening_are_uniform(self) -> None:
        """Whoever opens it: every byte of a half takes many values over runs of the same graph."""
        seen: dict[Name, set[bytes]] = {}
        for seed in range(25):
            run = small("coins", seed=seed).go()
            for message in run.sent:
                if message.name[0] == "open" and len(run.content(message)) != 32:
                    seen.setdefault(message.name, set()).add(run.content(message))
        assert len(seen) == 2
        assert all(len(values) == 25 for values in seen.values())

    def test_a_coordinator_inside_hears_members_alone(self) -> None:
        run = small("bounded", COMMITTEES[INSIDE])
        run.unpaid = {0}
        run.go()
        assert run.parameters.members == (COORDINATOR, 3, 4, 0)
        none = "no such message from it to us"
        size = 3 * run.parameters.width
        for sender in (1, 2):  # silos outside
            for kind in ("tell", "joint", "check"):
                refuse(run, (kind, 0, sender, COORDINATOR), 32, match=none)
        refuse(run, ("tell", 0, 0, COORDINATOR), size, match=none)  # it is the third after it
        refuse(run, ("tell", 0, 3, COORDINATOR), 32, PayloadError, "wrong size")
        refuse(run, ("tell", 1, 3, COORDINATOR), size, match=none)
        own = Envelope("sum", COORDINATOR, COORDINATOR, 1, bytes(18))
        with pytest.raises(BindingError, match="does not write to itself"):
            run.coordinator.receive(seal(run.binding, run.keys[COORDINATOR], own))
        run.unpaid = set()
        while run._act():
            pass
        assert run.answers == run.expected


class TestStates:
    @pytest.mark.parametrize("kind", ["party", "coordinator"])
    def test_every_pair_outside_the_table_is_refused(self, kind: str) -> None:
        run = small("bounded").go()
        machine = run.coordinator if kind == "coordinator" else run.parties[0]
        steps = SEALED_PARTY_STEPS if kind == "party" else SEALED_COORDINATOR_STEPS
        takes = SealedParty.TAKES if kind == "party" else SealedCoordinator.TAKES
        sender, receiver = (COORDINATOR, 0) if kind == "party" else (0, COORDINATOR)
        tried = 0
        for state, name in product(State, takes):
            machine.state = state
            raw = seal(
                run.binding, run.keys[sender], Envelope(name, sender, receiver, 0, bytes(48))
            )
            if (state, name) not in steps:
                with pytest.raises(OrderError, match=f"not while in state '{state.value}'"):
                    machine.receive(raw)
                assert machine.state is state
                tried += 1
        assert tried > 30

    def test_nothing_is_told_or_opened_before_the_chunks(self) -> None:
        for steps in (SEALED_PARTY_STEPS, SEALED_COORDINATOR_STEPS):
            late = {state for state, name in steps if name in ("tell", "open", "sum")}
            assert late == {State.CHUNKS}
            over = {name for state, name in steps if state in (State.DONE, State.ENDED)}
            assert over <= {"done"}

    def test_how_far_a_member_was_may_come_after_the_answer(self) -> None:
        """Messages of one sender may overtake each other; what comes twice is refused still."""
        held: list[Message] = []

        def change(message: Message) -> list[bytes]:
            if message.name == ("done", 0, 2, COORDINATOR):
                held.append(message)
                return []
            return [message.raw]

        run = SealedRun(FOUR, [1, 2, 4, 8], 12, change=change).go()
        answers = run.answers
        (late,) = held
        run.coordinator.receive(late.raw)
        assert run.coordinator.done
        assert run.answers == answers
        with pytest.raises(OrderError, match="came twice"):
            run.coordinator.receive(late.raw)

    def test_work_that_is_not_there(self) -> None:
        """No step is made before the ledger, after the end, or where there are no triangles."""
        run = small("parts")
        assert all(party.make() == [] for party in run.parties.values())
        run.go()
        assert all(party.make() == [] for party in run.parties.values())
        assert run.coordinator.make() == []
        waiting = small("coins")
        waiting.unpaid = {3}
        waiting.go()
        assert all(party.make() == [] for party in waiting.parties.values())


class TestSecrets:
    def things(self, run: SealedRun) -> Iterator[object]:
        for place in (0, 2, COORDINATOR):
            machine = run.machine(place)
            yield from (machine, machine._secret, machine._lines)
            part = machine._part
            if part is None:
                continue
            assert isinstance(part, SealedPart)
            yield from (part, part._seeds, part._count, *part._noise, *part._outside)
            yield from (*part._chunks.values(), part._degrees)
            yield from (chunk.core for chunk in part._chunks.values())

    @pytest.mark.parametrize("kind", SMALL)
    @pytest.mark.parametrize("name", ["five silos", "the coordinator inside"])
    def test_they_are_not_shown(self, name: str, kind: str) -> None:
        committee = COMMITTEES[name]
        run = small(kind, committee, seed=3)
        run.unpaid = {1}
        run.go()
        whole = small(kind, committee, seed=3).go()
        oracle = SealedOracle(run)
        secrets = [*oracle.secrets.values(), *oracle.seeds, *oracle.outside.values()]
        for thing in (*self.things(run), *self.things(whole)):
            text = repr(thing) + str(thing)
            assert len(text) < 200
            for secret in secrets:
                assert secret.hex() not in text
                assert repr(secret)[2:-1] not in text

    def test_errors_show_no_content(self) -> None:
        run = falsified(("tell", 0, 1, 0), 0, "bounded")
        told = next(run.content(m) for m in run.sent if m.name == ("tell", 0, 1, 0))
        for _, _, error in run.errors:
            assert len(str(error)) < 120
            assert told.hex() not in str(error)

    def test_every_secret_message_is_encrypted(self) -> None:
        """No content of these rounds is in a message as it is."""
        for kind in SMALL:
            run = small(kind, FIVE).go()
            for message in run.sent:
                if message.name[0] in SECRET_ROUNDS:
                    content = run.content(message)
                    assert len(content) < 4 or content not in message.raw
