"""Whoever lies in a committee, and whatever is done to its messages: the run ends before use.

A *falsified* message is signed and encrypted by its real author, and only its content lies. Where
two members do not say the same, the receiver ends for good. Every other message that is not due is
refused by its sender's name, and changes nothing.
"""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest

from silograph.errors import (
    ArgumentError,
    BindingError,
    MismatchError,
    OrderError,
    PayloadError,
    SignatureError,
    ViewsDifferError,
)
from silograph.messages.envelope import EVERYONE, Envelope, seal
from silograph.messages.identity import COORDINATOR, pack
from silograph.methods.committee.coordinator import CommitteeCoordinator
from silograph.methods.committee.party import CommitteeParty
from silograph.methods.committee.rounds import (
    COORDINATOR_STEPS,
    PARTY_STEPS,
    SECRET_ROUNDS,
    WINDOW,
    State,
)
from tests.methods.committee.oracle import Oracle
from tests.methods.committee.run import (
    COMMITTEES,
    FIVE,
    FOUR,
    RUN,
    Committee,
    CommitteeRun,
    Message,
    Name,
    Unchanged,
    at_random,
    flipped,
    parameters,
    refuse,
)
from tests.support.parties import no_bits

pytestmark = pytest.mark.slow

FALSIFIED = ("four silos", "the coordinator and a silo outside")
SLOWLY = [
    pytest.param(name, marks=pytest.mark.whole)
    for name in (
        "three silos and a helper",
        "two silos and two helpers",
        "five silos",
        "the coordinator inside",
    )
]
#: What comes after a round: none of it may be sent by a party that has found a mismatch.
LATER = {
    "seed": ("input", "check", "joint", "open"),
    "match": ("input", "check", "joint", "open"),
    "input": ("joint", "open"),
    "check": ("joint", "open"),
}


def changed(
    change: Callable[[CommitteeRun, Message], Message],
    committee: Committee = FOUR,
    held: Iterable[int] = (),
    pairs: int = 64,
) -> CommitteeRun:
    """A run in which some messages are replaced on their way."""
    run = CommitteeRun(committee, held, pairs, change=lambda message: [change(run, message).raw])
    return run.go()


def falsified(name: Name, byte: int, *of: Any) -> CommitteeRun:
    """A run in which its author has changed one bit of one message."""

    def change(run: CommitteeRun, message: Message) -> Message:
        if message.name != name:
            return message
        return run.say(message, flipped(run.content(message), byte))

    return changed(change, *of)


class TestFalsified:
    @pytest.mark.parametrize("name", [*FALSIFIED, *SLOWLY])
    def test_every_message_and_every_hash(self, name: str) -> None:
        """In every round and layer, by every author, to every receiver: each ends the run."""
        committee = COMMITTEES[name]
        held = [3 * (place + 1) for place in range(committee.silos)]
        honest = CommitteeRun(committee, held).go()
        tried = ended = 0
        for message in honest.sent:
            kind = message.envelope.round
            if kind in ("keys", "confirms") or not honest.content(message):
                continue  # the coordinator's, or one of a layer in which there is nothing to say
            # The first byte is of a vector, where there is one, the last of a hash.
            places = {0, len(honest.content(message)) - 1} if kind in ("joint", "seed") else {0}
            for byte in places:
                run = falsified(message.name, byte, committee, held)
                tried += 1
                ended += self.has_ended(run, message)
        assert tried == ended
        assert tried > 80

    def has_ended(self, run: CommitteeRun, message: Message) -> bool:
        """That the receiver has refused what it got, by name, and has not used it."""
        kind, sequence, sender, receiver = message.name
        assert run.coordinator.state is not State.DONE
        with pytest.raises(OrderError):
            run.coordinator.result()
        if kind in ("key", "confirm"):
            return self.stays_in_the_handshake(run, kind, sender)
        at, error = next((at, error) for who, at, error in run.errors if who == receiver)
        machine = run.machine(receiver)
        assert isinstance(error, MismatchError)
        assert machine.state is State.ENDED
        # It says nothing more.
        after = [m for m in run.sent[at:] if m.sender == receiver]
        assert after == []
        assert not {m.name[0] for m in run.sent if m.sender == receiver} & {*LATER.get(kind, ())}
        if kind in ("match", "check", "joint", "open"):
            assert run.name(sender) in str(error)
        if kind == "joint":
            part = machine._part
            assert part is not None
            assert part._chunks[0].layer == sequence
            mine = [m.name[:2] for m in run.sent if m.sender == receiver]
            assert not any(n == "open" or (n == kind and s > sequence) for n, s in mine)
        # Everything is refused from now on, whoever sends it.
        theirs = [m.raw for m in run.sent if m.receiver == receiver]
        for raw in theirs[::5]:
            with pytest.raises(OrderError, match="ended"):
                machine.receive(raw)
        if isinstance(machine, CommitteeParty):
            with pytest.raises(OrderError, match="ended"):
                machine.authorise()
        assert machine.state is State.ENDED
        return True

    def stays_in_the_handshake(self, run: CommitteeRun, kind: str, sender: int) -> bool:
        """Another key is found by its owner, another view by everyone; nothing secret is sent."""
        assert run.rounds <= {"key", "keys", "confirm", "confirms"}
        [(who, _, error)] = run.errors
        assert isinstance(error, ViewsDifferError)
        assert error.silo == run.name(sender)
        assert who == (sender if kind == "key" else COORDINATOR)
        return all(party.state in (State.KEYS, State.CONFIRMS) for party in run.parties.values())

    @pytest.mark.parametrize("chunk", [0, 1])
    def test_both_chunks_of_a_longer_run(self, chunk: int) -> None:
        """Sums and hashes of openings change places from chunk to chunk."""
        honest = CommitteeRun(FOUR, [9, 8, 7, 6], 100).go()
        layers = honest.parameters.circuit.layers
        tried = 0
        for message in honest.sent:
            kind, sequence, _, receiver = message.name
            number = sequence // layers if kind == "joint" else sequence
            if kind not in ("input", "check", "joint", "open") or number != chunk:
                continue
            run = falsified(message.name, 0, FOUR, [9, 8, 7, 6], 100)
            error = next(error for who, _, error in run.errors if who == receiver)
            assert isinstance(error, MismatchError)
            assert run.machine(receiver).state is State.ENDED
            assert run.coordinator.state is not State.DONE
            tried += 1
        assert tried == 8 + 12 + 24 + 4

    @pytest.mark.parametrize("byte", [0, 9, 17, -32, -1])
    def test_any_byte_of_a_joint_message(self, byte: int) -> None:
        """Message 0 → 1 of layer 0 has two vectors or one, and a hash."""
        for receiver in (1, 2, 3):
            place = COMMITTEES["seven silos"].members
            name = ("joint", 0, place[0], place[receiver])
            run = falsified(name, byte, COMMITTEES["seven silos"])
            assert run.machine(place[receiver]).state is State.ENDED

    @pytest.mark.parametrize("kind", ["seed", "input"])
    def test_every_holder_gets_something_else(self, kind: str) -> None:
        """From a silo outside, and from a member: all who hold it end, before any gate."""
        for author in (4, 2):

            def change(run: CommitteeRun, message: Message, author: int = author) -> Message:
                if (message.name[0], message.sender) != (kind, author):
                    return message
                return run.say(message, flipped(run.content(message), 0, message.receiver))

            run = changed(change, FIVE)
            holders = {m.receiver for m in run.sent if m.name[0] == kind and m.sender == author}
            assert len(holders) == {"seed": {4: 4, 2: 2}, "input": {4: 3, 2: 2}}[kind][author]
            for place in holders:
                error = next(error for who, _, error in run.errors if who == place)
                assert isinstance(error, MismatchError)
                assert run.parties[place].state is State.ENDED
            assert not any(m.name[0] == "joint" and m.sender in holders for m in run.sent)

    def test_a_mismatch_that_is_found_by_authorise(self) -> None:
        """What a member has made in the same step is not sent, either."""

        def change(message: Message) -> list[bytes]:
            if message.name == ("check", 0, 0, 3):
                message = run.say(message, bytes(32))
            return [message.raw]

        run = CommitteeRun(COMMITTEES["three silos and a helper"], change=change)
        run.unpaid = {3}
        run.go()
        assert run.errors == []
        before = len(run.sent)
        with pytest.raises(MismatchError, match="silo 1: holds other inputs"):
            run.parties[3].authorise()
        assert run.parties[3].state is State.ENDED
        assert run.parties[3]._sent() == []
        assert len(run.sent) == before

    def test_a_sender_that_vouches_for_itself(self) -> None:
        """Only the hash of the member that the plan names counts."""
        honest = CommitteeRun(FOUR).go()
        contents = {m.name: honest.content(m) for m in honest.sent}

        def change(run: CommitteeRun, message: Message) -> Message:
            if message.name != ("joint", 0, 0, 1):
                return message
            # A vector and a hash that another member sends.
            return run.say(message, contents["joint", 0, 2, 1][: len(contents[message.name])])

        assert len(contents["joint", 0, 2, 1]) >= len(contents["joint", 0, 0, 1])
        run = changed(change)
        assert run.parties[1].state is State.ENDED

    def test_swapped_and_repeated_contents(self) -> None:
        """The content of another chunk, layer or receiver, under the right name."""
        honest = CommitteeRun(FOUR, [1, 2, 3, 4], 128).go()
        contents = {m.name: honest.content(m) for m in honest.sent}
        layers = honest.parameters.circuit.layers
        swaps = [
            (("input", 0, 0, 2), ("input", 1, 0, 2)),
            (("check", 0, 0, 2), ("check", 1, 0, 2)),
            (("check", 0, 0, 2), ("check", 0, 0, 1)),
            (("joint", 0, 0, 2), ("joint", layers, 0, 2)),
            (("joint", 1, 0, 2), ("joint", layers + 1, 0, 2)),
            (("match", 0, 0, 2), ("match", 0, 0, 1)),
            (("seed", 0, 0, 2), ("seed", 0, 1, 2)),
            (("open", 0, 0, COORDINATOR), ("open", 1, 1, COORDINATOR)),
        ]
        for name, other in swaps:

            def change(
                run: CommitteeRun, message: Message, name: Name = name, other: Name = other
            ) -> Message:
                return message if message.name != name else run.say(message, contents[other])

            run = changed(change, FOUR, [1, 2, 3, 4], 128)
            errors = [error for who, _, error in run.errors if who == name[3]]
            assert isinstance(errors[0], MismatchError), name
            assert run.machine(name[3]).state is State.ENDED

    def test_the_coordinator_relays_different_keys(self) -> None:
        """Its own key, signed twice; each party sees one of the two, and none goes on."""
        other = CommitteeRun(FOUR, seed=7).coordinator._secret.public()

        def change(run: CommitteeRun, message: Message) -> Message:
            if message.name[0] != "keys" or message.receiver not in (1, 3):
                return message
            *keys, _ = run.bundle(message)
            own = Envelope("key", COORDINATOR, EVERYONE, 0, other)
            return run.say(message, pack(*keys, seal(run.binding, run.keys[COORDINATOR], own)))

        run = changed(change)
        assert run.rounds <= {"key", "keys", "confirm"}
        assert {type(error) for _, _, error in run.errors} == {ViewsDifferError}
        # Even if it relays their confirmations.
        confirms = [m.raw for m in run.sent if m.name[0] == "confirm"]
        bundle = Envelope("confirms", COORDINATOR, EVERYONE, 0, pack(*confirms))
        for party in run.parties.values():
            with pytest.raises(ViewsDifferError, match="silo"):
                party.receive(seal(run.binding, run.keys[COORDINATOR], bundle))
            assert party.state is State.CONFIRMS

    @pytest.mark.parametrize("name", ["keys", "confirms"])
    def test_the_coordinator_changes_a_bundle(self, name: str) -> None:
        """Another key or view for one silo, which the coordinator cannot sign as that silo."""

        def change(run: CommitteeRun, message: Message) -> Message:
            if message.name[0] != name or message.receiver != 2:
                return message
            inner = run.bundle(message)
            forged = Envelope(name[:-1], 1, EVERYONE, 0, bytes([9] * 32))
            inner[1] = seal(run.binding, run.keys[COORDINATOR], forged)
            return run.say(message, pack(*inner))

        run = changed(change)
        [(who, _, error)] = [e for e in run.errors if e[0] == 2][:1]
        assert isinstance(error, SignatureError)
        assert error.silo == "silo 2"
        assert run.parties[who].state is (State.KEYS if name == "keys" else State.CONFIRMS)
        assert run.coordinator.state is not State.DONE

    def test_a_weak_key(self) -> None:
        for weak in (bytes(32), b"\1" + bytes(31)):

            def change(run: CommitteeRun, message: Message, weak: bytes = weak) -> Message:
                is_key = message.name[0] == "key" and message.sender == 1
                return run.say(message, weak) if is_key else message

            run = changed(change)
            [(who, _, error)] = run.errors
            assert who == COORDINATOR
            assert isinstance(error, PayloadError)
            assert str(error) == "round 'key' of silo 2: a weak run key"


def unchanged(name: str, pairs: int = 130) -> Unchanged:
    """Runs of one committee."""
    committee = COMMITTEES[name]
    held = [5 * (place + 1) for place in range(committee.silos)]
    return Unchanged(lambda **more: CommitteeRun(committee, held, pairs, **more))


@pytest.mark.parametrize("name", ["four silos", "the coordinator and a silo outside"])
class TestRefusedBeside:
    """Refused by name; the good message that follows is taken, and the run goes on."""

    def test_every_message_twice(self, name: str) -> None:
        errors = unchanged(name).beside(lambda _, message: [message.raw], first=False)
        assert {type(error) for _, error in errors} == {OrderError}
        assert sum("came twice" in str(error) for _, error in errors) > 50

    def test_wrong_sizes(self, name: str) -> None:
        def sizes(run: CommitteeRun, message: Message) -> list[bytes]:
            if message.name[0] in ("keys", "confirms"):
                return []
            content = run.content(message)
            wrong = (content[:-1], content + b"\0", b"", content[: len(content) // 2], 2 * content)
            return [run.say(message, changed).raw for changed in wrong]

        errors = unchanged(name).beside(sizes)
        assert {type(error) for _, error in errors} == {PayloadError}
        assert all("size" in str(error) or "32 bytes" in str(error) for _, error in errors)

    def test_an_opening_of_the_other_kind(self, name: str) -> None:
        """A sum where a hash is due, and the other way round."""

        def other(run: CommitteeRun, message: Message) -> list[bytes]:
            if message.name[0] != "open":
                return []
            size = 40 - len(run.content(message))
            return [run.say(message, bytes(size)).raw]

        errors = unchanged(name).beside(other)
        assert {type(error) for _, error in errors} == {PayloadError}

    def test_messages_to_everyone(self, name: str) -> None:
        """Even if they are encrypted for us."""

        def everyone(run: CommitteeRun, message: Message) -> list[bytes]:
            if message.name[0] not in SECRET_ROUNDS:
                return []
            return [run.say(message, receiver=EVERYONE).raw]

        errors = unchanged(name).beside(everyone)
        assert {type(error) for _, error in errors} == {PayloadError}
        assert all("not for us alone" in str(error) for _, error in errors)

    def test_the_key_of_the_other_direction_or_another_line(self, name: str) -> None:
        """A key is for one sender and one receiver; a message under another one is not read."""

        def key(run: CommitteeRun, message: Message) -> list[bytes]:
            if message.name[0] not in SECRET_ROUNDS:
                return []
            locks = run.machine(message.receiver)._lines._locks  # type: ignore[union-attr]
            own = (message.sender, message.receiver)
            found = []
            for line in locks:
                if line != own:
                    plain = message.envelope.saying(run.content(message))
                    closed = locks[line].close(plain)
                    found.append(seal(run.binding, run.keys[message.sender], closed))
            return found

        errors = unchanged(name, 20).beside(key)
        assert {type(error) for _, error in errors} == {PayloadError}
        assert all("cannot be decrypted" in str(error) for _, error in errors)

    def test_ciphertexts_under_another_name(self, name: str) -> None:
        """Moved by their own author to another round or place: authenticated with their names."""

        def moved(run: CommitteeRun, message: Message) -> list[bytes]:
            envelope = message.envelope
            if envelope.round not in ("match", "check"):
                return []
            other = next(
                m for m in run.sent
                if m.name[0] == envelope.round and m.sender == message.sender
            )  # fmt: skip
            if other.receiver == message.receiver and other.name == message.name:
                return []
            payload = other.envelope.payload
            return [seal(run.binding, run.keys[message.sender], envelope.saying(payload))]

        errors = unchanged(name).beside(moved)
        assert {type(error) for _, error in errors} == {PayloadError}

    def test_changed_by_whoever_carries_it(self, name: str) -> None:
        def damage(run: CommitteeRun, message: Message) -> list[bytes]:
            envelope = message.envelope
            damaged = envelope.saying(flipped(envelope.payload, 0))
            other = run.keys[COORDINATOR if message.sender != COORDINATOR else 0]
            return [flipped(message.raw, -1), seal(run.binding, other, damaged)]

        errors = unchanged(name).beside(damage)
        assert {type(error) for _, error in errors} == {SignatureError}

    def test_another_run_and_other_parameters(self, name: str) -> None:
        same = unchanged(name)
        committee, held = same.honest.committee, same.honest.held
        other = CommitteeRun(committee, held, 130, run=b"x" * 16).go()
        given = parameters(committee, 130, numerator=5)
        third = CommitteeRun(committee, held, given=given).go()
        raws = [{message.name: message.raw for message in run.sent} for run in (other, third)]
        errors = same.beside(lambda _, message: [raw[message.name] for raw in raws])
        assert {type(error) for _, error in errors} == {BindingError}


class TestRefused:
    """Messages that nobody has a reason to send: refused by name, in the middle of a run."""

    @pytest.fixture
    def run(self) -> CommitteeRun:
        """Two helpers and two silos are members, a third silo is not; no member is authorised."""
        run = CommitteeRun(COMMITTEES["a silo outside, two helpers"], [1, 2, 4], 64 * 20)
        run.unpaid = {0, 1, 2, 3, 4}
        run.go()
        assert run.errors == []
        assert {party.state for party in run.parties.values()} == {State.AGREED}
        return run

    def test_from_a_party_that_has_none_for_us(self, run: CommitteeRun) -> None:
        """Members 0, 1 are silos at places 0, 1; helpers at 3, 4; silo 2 is outside."""
        place = run.parameters.members
        assert place == (0, 3, 1, 4)
        none = "no such message from it to us"
        for kind, size in (("match", 32), ("check", 32), ("joint", 40)):
            for sender in (2, COORDINATOR):  # no members
                refuse(run, (kind, 0, sender, 0), size, match=none)
        for sender in (3, 4, COORDINATOR):  # no silos
            refuse(run, ("input", 0, sender, 0), 8, match=none)
        for member, sender in enumerate(place):
            component = (member - 1) % 4  # the member that lacks what this one draws
            refuse(run, ("seed", 0, sender, place[component]), 32, match=none)
        refuse(run, ("seed", 0, COORDINATOR, 0), 32, match=none)
        for silo in range(3):
            without = place[run.parameters.vector(silo)]
            if silo != without:
                refuse(run, ("input", 0, silo, without), 8, match=none)
        for kind, size in (("seed", 32), ("match", 32)):
            refuse(run, (kind, 1, 0, 1), size, match=none)

    def test_our_own_message(self, run: CommitteeRun) -> None:
        for kind, size in (("seed", 32), ("match", 32), ("input", 8), ("check", 32), ("joint", 40)):
            refuse(run, (kind, 0, 0, 0), size, match="no such message from it to us")
        mine = next(message for message in run.sent if message.name[::2] == ("match", 0))
        with pytest.raises(BindingError, match="silo 1: the message is for someone else"):
            run.parties[0].receive(mine.raw)
        own = Envelope("open", COORDINATOR, COORDINATOR, 0, bytes(24))
        with pytest.raises(BindingError, match="does not write to itself"):
            run.coordinator.receive(seal(run.binding, run.keys[COORDINATOR], own))

    def test_a_silo_outside_hears_no_member(self, run: CommitteeRun) -> None:
        for kind, size in (("seed", 32), ("match", 32), ("input", 8), ("check", 32), ("joint", 40)):
            refuse(run, (kind, 0, 0, 2), size, match="not a member")

    def test_a_coordinator_outside_hears_openings_alone(self, run: CommitteeRun) -> None:
        for kind, size in (("seed", 32), ("match", 32), ("input", 8), ("check", 32), ("joint", 40)):
            refuse(run, (kind, 0, 0, COORDINATOR), size, match="not a member")
        refuse(run, ("open", 0, 2, COORDINATOR), 8, match="not a member")
        refuse(run, ("open", 20, 0, COORDINATOR), 8, match="no chunk 20")

    def test_chunks_that_do_not_exist_or_are_too_far_ahead(self, run: CommitteeRun) -> None:
        layers = run.parameters.circuit.layers
        for kind, size, each in (("check", 32, 1), ("joint", 40, layers)):
            refuse(run, (kind, 20 * each, 0, 1), size, match="no chunk 20")
            refuse(run, (kind, 2**32 - 1, 0, 1), size, match="no chunk")
            refuse(run, (kind, 2 * WINDOW * each, 0, 1), size, match="too far ahead")
        refuse(run, ("input", 20, 0, 1), 8, match="no chunk 20")
        refuse(run, ("input", 2 * WINDOW, 0, 1), 8, match="chunk 8 is too far ahead")
        # The last that is not too far.
        for name, size in ((("check", 2 * WINDOW - 1, 0, 1), 32), (("input", 7, 0, 1), 8)):
            kind, sequence, sender, receiver = name
            content = Envelope(kind, sender, receiver, sequence, bytes(size))
            lines = run.parties[0]._lines
            assert lines is not None
            run.parties[1].receive(seal(run.binding, run.keys[0], lines.close(content)))
            refuse(run, name, size, match="came twice")

    def test_messages_of_a_chunk_that_is_done(self) -> None:
        """What was read of it is forgotten, so its number must tell."""
        run = CommitteeRun(FOUR, [1, 2, 4, 8], 64 * 20)
        member = run.parties[1]
        for place, party in run.parties.items():
            run._send(place, party.start())
        while member._part is None or member._part._done < 2:
            assert run._act()
        kinds = set()
        for message in run.sent:
            kind, sequence, _, receiver = message.name
            each = run.parameters.circuit.layers if kind == "joint" else 1
            if kind in ("input", "check", "joint") and (receiver, sequence // each) == (1, 0):
                with pytest.raises(OrderError, match="came twice"):
                    member.receive(message.raw)
                kinds.add(kind)
        assert kinds >= {"check", "joint"}
        while run._act():
            pass
        assert run.errors == []

    def test_a_silo_outside_cannot_fill_a_member_s_memory(self, run: CommitteeRun) -> None:
        """Whatever stream its messages come in: the member counts what the silo has signed."""
        (silo, *_), lines = run.parameters.outside, run.parties[2]._lines
        holders = [p for n, p in enumerate(run.parameters.members) if n != run.parameters.vector(2)]
        assert silo == 2
        assert lines is not None
        for chunk in range(1, 2 * WINDOW + 1):  # the first one never comes
            content = Envelope("input", silo, holders[0], chunk, bytes(8))
            raw = seal(run.binding, run.keys[silo], lines.close(content))
            run.machine(holders[0]).receive(raw)
        name = ("input", 2 * WINDOW + 1, silo, holders[0])
        refuse(run, name, 8, match="too far ahead")

    def test_steps_are_no_messages(self, run: CommitteeRun) -> None:
        steps = {name for _, name in (*PARTY_STEPS, *COORDINATOR_STEPS)}
        local = steps - {*CommitteeParty.TAKES, *CommitteeCoordinator.TAKES}
        assert local == {
            "start", "all seeds", "authorise", "make", "all chunks", "all keys", "all confirms",
        }  # fmt: skip
        for kind in (*local, "open", "key", "confirm", "sum"):
            refuse(run, (kind, 0, COORDINATOR, 1), 32, match="there is no such message")
        for kind in (*local, "keys", "confirms", "sum"):
            refuse(run, (kind, 0, 1, COORDINATOR), 32, match="there is no such message")

    def test_only_the_coordinator_relays(self, run: CommitteeRun) -> None:
        for kind in ("keys", "confirms"):
            refuse(run, (kind, 0, 1, 0), 32, match="only the coordinator relays")

    def test_the_run_goes_on_afterwards(self, run: CommitteeRun) -> None:
        self.test_from_a_party_that_has_none_for_us(run)
        self.test_our_own_message(run)
        self.test_steps_are_no_messages(run)
        run.unpaid = set()
        while run._act():
            pass
        assert run.errors == []
        assert run.result() ^ Oracle(run).coin() == 7

    def test_wrong_parties_cannot_be_built(self) -> None:
        run = CommitteeRun(COMMITTEES["three silos and a helper"])
        for place, bits in ((0, None), (3, no_bits)):
            head = (run.parameters, run.roster, RUN, place, run.keys[place])
            with pytest.raises(ArgumentError, match="helpers have none"):
                CommitteeParty(*head, run._entropy(place), bits)
        for members in ((0, 1, 2, 5), (0, 1, 2, COORDINATOR)):
            with pytest.raises(ArgumentError, match="not among the parties"):
                CommitteeRun(Committee(3, 1, members))
        for members in ((0, 1, 2), (0, 1, 2, 2), (0, 1, 2, 3, 4)):
            with pytest.raises(ArgumentError, match="four different members"):
                CommitteeRun(Committee(5, 0, members))


class TestStates:
    def reached(self, kind: str) -> list[tuple[State, CommitteeParty | CommitteeCoordinator]]:
        """A machine of this kind in every state."""
        found = []
        for state in State:
            run = CommitteeRun(FOUR, [0] * 4).go()
            machine = run.coordinator if kind == "coordinator" else run.parties[0]
            machine.state = state
            found.append((state, machine))
        return found

    @pytest.mark.parametrize("kind", ["party", "coordinator"])
    def test_every_pair_outside_the_table_is_refused(self, kind: str) -> None:
        run = CommitteeRun(FOUR, [0] * 4).go()
        steps = PARTY_STEPS if kind == "party" else COORDINATOR_STEPS
        takes = CommitteeParty.TAKES if kind == "party" else CommitteeCoordinator.TAKES
        sender, receiver = (COORDINATOR, 0) if kind == "party" else (0, COORDINATOR)
        tried = 0
        for (state, machine), name in product(self.reached(kind), takes):
            envelope = Envelope(name, sender, receiver, 0, bytes(32))
            raw = seal(run.binding, run.keys[sender], envelope)
            if (state, name) not in steps:
                with pytest.raises(OrderError, match=f"not while in state '{state.value}'"):
                    machine.receive(raw)
                assert machine.state is state
                tried += 1
        assert tried > 25
        if kind == "party":
            for state, machine in self.reached(kind):
                assert isinstance(machine, CommitteeParty)
                for step in (machine.start, machine.authorise):
                    if (state, step.__name__) not in steps:
                        with pytest.raises(OrderError, match=state.value):
                            step()
                        assert machine.state is state

    def test_nothing_follows_the_end(self) -> None:
        for steps in (PARTY_STEPS, COORDINATOR_STEPS):
            assert not any(state in (State.DONE, State.ENDED) for state, _ in steps)
            assert State.ENDED not in steps.values()
            reached = {State.NEW, State.KEYS}
            for _ in steps:
                reached |= {after for (before, _), after in steps.items() if before in reached}
            assert State.DONE in reached

    def test_seeds_that_come_before_the_confirmations(self) -> None:
        """They are kept; nothing is said about them before all parties have confirmed the keys."""
        run = CommitteeRun(FOUR).go()
        for place, party in ((place, run.party(place)) for place in range(4)):
            theirs = [m for m in run.sent if m.receiver == place]
            party.start()
            party.receive(next(m.raw for m in theirs if m.name[0] == "keys"))
            for message in theirs:
                if message.name[0] in ("seed", "match", "input", "check"):
                    assert party.receive(message.raw) == []
            assert party.state is State.CONFIRMS
            sent = party.receive(next(m.raw for m in theirs if m.name[0] == "confirms"))
            expected = [m.raw for m in run.sent if m.sender == place and m.name[0] in LATER]
            assert {out.raw for out in sent} < set(expected)
            assert party.state is State.AGREED
            everything = {m.raw for m in run.sent if m.sender == place}
            assert {out.raw for out in party.authorise()} <= everything
            for message in theirs:  # nobody sends these before it has heard our check
                if message.name[0] == "joint":
                    assert {out.raw for out in party.receive(message.raw)} <= everything
            assert party.state is State.DONE

    def test_nothing_is_taken_before_the_keys(self) -> None:
        # Seeds, and what follows them, only after the keys were shown.
        rounds = {name for state, name in PARTY_STEPS if state in (State.NEW, State.KEYS)}
        assert rounds == {"start", "keys"}


class TestBits:
    """Nothing that depends on edges is sent before the ledger has been charged."""

    @pytest.mark.parametrize("name", COMMITTEES)
    def test_the_same_messages_before_authorise(self, name: str) -> None:
        committee = COMMITTEES[name]
        runs = []
        for bits in (0, 2**200 - 1):
            run = CommitteeRun(committee, [bits] * committee.silos, 200)
            run.unpaid = set(run.parties)
            runs.append(run.go())
        assert set(runs[0].sent) == set(runs[1].sent)
        assert runs[0].rounds == {"key", "keys", "confirm", "confirms", "seed", "match"}
        assert all(party.ready for party in runs[0].parties.values())

    @pytest.mark.parametrize("name", COMMITTEES)
    def test_one_silo_that_has_not_paid(self, name: str) -> None:
        """Its bits are not even read; what all others send does not depend on them."""
        committee = COMMITTEES[name]
        for late in range(committee.silos):
            runs = []
            for bits in (0, 2**200 - 1):
                held = [bits if place == late else 77 for place in range(committee.silos)]
                run = CommitteeRun(committee, held, 200)
                run.parties[late]._bits = no_bits
                run.unpaid = {late}
                runs.append(run.go())
            assert set(runs[0].sent) == set(runs[1].sent)
            assert runs[0].coordinator.state is not State.DONE
            sent = {m.name[0] for m in runs[0].sent if m.sender == late}
            assert sent <= {"key", "confirm", "seed", "match"}

    @pytest.mark.parametrize("name", ["four silos", "seven silos"])
    def test_names_and_sizes_do_not_depend_on_bits(self, name: str) -> None:
        committee, shapes = COMMITTEES[name], set()
        for seed in range(3):
            rng = at_random(seed)
            held = [rng.getrandbits(200) for _ in range(committee.silos)]
            run = CommitteeRun(committee, held if seed else [0] * committee.silos, 200).go()
            shapes.add(tuple((message.name, len(message.raw)) for message in run.sent))
        assert len(shapes) == 1

    def test_secrets_are_not_shown(self) -> None:
        run = CommitteeRun(FIVE, [1] * 5, 640)
        run.unpaid = {3}
        run.go()
        oracle, party = Oracle(run), run.parties[0]
        part, lines = party._part, party._lines
        assert part is not None
        assert lines is not None
        secrets = [run.secret(place) for place in range(5)] + oracle.seeds
        secrets += oracle.outside.values()
        things = [
            *run.parties.values(), run.coordinator, part, lines, *lines._locks.values(),
            part._seeds, *part._chunks.values(), *part._outside, party._secret,
        ]  # fmt: skip
        for thing in things:
            text = repr(thing) + str(thing)
            assert len(text) < 200
            for secret in secrets:
                assert secret.hex() not in text
                assert repr(secret)[2:-1] not in text
