"""The sealed protocol's machines: what they compute, and when they say what.

Every answer is compared with the truth and with the noise of that very run, which the tests
compute again from the parties' secrets.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product

import pytest

from silograph.errors import ArgumentError, OrderError
from silograph.messages.envelope import Outgoing, peek
from silograph.messages.identity import COORDINATOR
from silograph.methods.committee.rounds import WINDOW, State
from silograph.methods.sealed import party, rounds
from silograph.methods.sealed.noise import Answer, Bounded, Coins, Output, Parts, SealedNoise
from silograph.methods.sealed.party import SealedPart
from silograph.methods.sealed.rounds import SealedParameters, member_cost
from tests.methods.committee.run import (
    COMMITTEES,
    FIVE,
    FOUR,
    Act,
    Committee,
    Message,
    Slowly,
    at_random,
    random_committee,
)
from tests.methods.sealed.run import (
    COINS,
    EVERYTHING,
    PARTS,
    SealedRun,
    bits_of,
    bound_of,
    bounded,
    parameters,
    plain,
    random_holdings,
    random_outputs,
    truth,
)
from tests.sampled import sampled
from tests.support.parties import no_bits

pytestmark = pytest.mark.slow

#: A thousand seeds; all but the first take minutes.
SEEDS = [
    range(50),
    pytest.param(range(50, 100), marks=pytest.mark.whole),
    *(pytest.param(range(at, at + 150), marks=pytest.mark.whole) for at in range(100, 1000, 150)),
]

#: The three kinds of noise, for eight nodes.
KINDS = {"coins": plain(EVERYTHING), "parts": plain(EVERYTHING, PARTS), "bounded": bounded(8)}


def in_pieces(monkeypatch: pytest.MonkeyPatch, numbers: int, rows: int) -> None:
    """Noise in chunks of so many numbers, and triangles in bands of so many rows."""
    monkeypatch.setattr(rounds, "CHUNK_NUMBERS", numbers)
    for module in (rounds, party):
        monkeypatch.setattr(module, "ROWS", rows)


def has_answered(run: SealedRun) -> bool:
    """That every party is done, without an error, and all answers are exact."""
    assert run.errors == []
    assert run.coordinator.state is State.DONE
    assert all(party.state is State.DONE for party in run.parties.values())
    assert run.answers == run.expected
    return True


def usual(kind: str, committee: Committee = FOUR, **more: object) -> SealedRun:
    """A run of eight nodes with one of the three kinds of noise."""
    held = [13 * (place + 1) ** 3 for place in range(committee.silos)]
    given = parameters(committee, 8, KINDS[kind])
    return SealedRun(committee, held, given=given, **more)  # type: ignore[arg-type]


def part_of(run: SealedRun, place: int) -> SealedPart:
    """A member's part."""
    found = run.machine(place)._part
    assert isinstance(found, SealedPart)
    return found


class TestAnswers:
    @pytest.mark.parametrize("seeds", SEEDS, ids=str)
    def test_random_federations(self, seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
        """A thousand of them: every answer is the truth and this run's noise, to the last unit."""
        seen = Counter[object]()
        for seed in seeds:
            rng = at_random(f"sealed {seed}")
            in_pieces(monkeypatch, rng.choice([3, 7, 64, 4096]), rng.choice([2, 5, 512]))
            committee = random_committee(rng)
            nodes = rng.choice([2, 3, 5, 8, 12, 17])
            given = parameters(committee, nodes, random_outputs(rng, nodes))
            held = random_holdings(rng, committee.silos, nodes)
            order = rng if rng.random() < 0.5 else None
            run = SealedRun(committee, held, given=given, seed=seed, order=order).go()
            assert has_answered(run), seed
            shared = sum(value.bit_count() for value in held) > run.union.bit_count()
            laws = {type(output.noise) for output in given.outputs}
            seen.update([committee.silos, *laws, *(output.name for output in given.outputs)])
            seen["inside"] += COORDINATOR in committee.members
            seen["outside"] += bool(given.outside)
            seen["helpers"] += bool(committee.helpers)
            seen["chunks"] += given.chunks > 1
            seen["noise in chunks"] += len(given.noise_chunks) > len(given.outputs)
            seen["bands"] += given.bands > 1
            seen["shared edges"] += shared
            seen["any order"] += order is not None
        wanted = {*range(2, 8), Coins, Parts, Bounded, *EVERYTHING, "inside", "outside", "helpers",
                  "chunks", "noise in chunks", "bands", "shared edges", "any order"}  # fmt: skip
        assert all(seen[what] > 2 for what in wanted), seen

    @pytest.mark.parametrize("name", COMMITTEES)
    @pytest.mark.parametrize("kind", KINDS)
    def test_every_committee(self, name: str, kind: str) -> None:
        assert has_answered(usual(kind, COMMITTEES[name]).go())

    @pytest.mark.parametrize("name", EVERYTHING)
    def test_each_answer_alone(self, name: Answer) -> None:
        given = parameters(FIVE, 9, plain((name,)))
        rng = at_random(name)
        run = SealedRun(FIVE, random_holdings(rng, 5, 9), given=given).go()
        assert has_answered(run)
        told = run.rounds & {"open", "sum", "tell"}
        assert told == {"open" if name in ("edges", "degrees") else "sum"}
        rows = {m.name[1] for m in run.sent if m.name[0] == "done"}
        assert rows == {*range(given.chunks + (name == "triangles"))}

    @pytest.mark.parametrize("silos", [2, 3, 4, 5])
    def test_every_holder_set_counts_once(self, silos: int) -> None:
        """Pair k is held by the silos whose bits are set in k: one edge, whoever holds it."""
        helpers, pairs = max(4 - silos, 0), 2**silos
        held = [sum((k >> silo & 1) << k for k in range(pairs)) for silo in range(silos)]
        committee = Committee(silos, helpers, (3, 1, 0, 2))
        given = parameters(committee, 9, plain(("degrees", "edges")))
        run = SealedRun(committee, held, given=given).go()
        assert has_answered(run)
        assert truth(9, run.union)["edges"] == [pairs - 1]

    @pytest.mark.parametrize("width", range(1, 9))
    def test_every_width(self, width: int) -> None:
        """Noise of both signs that fills the numbers, for sums and for counts."""
        digits = {1: 5, 8: 60}.get(width, 8 * width - 5)
        wide = Coins((1,) * (digits - 2) + (2, 3), 2)
        outputs = plain(("edges", "triangles") if width > 1 else ("edges",), wide)
        signs: set[bool] = set()
        for seed in range(6):
            run = SealedRun(FOUR, [7, 8, 9, 10], given=parameters(FOUR, 5, outputs), seed=seed)
            assert run.parameters.width == width
            assert has_answered(run.go())
            signs.update(value > 0 for values in run.answers.values() for value in values)
        assert signs == {True, False}

    def test_noise_as_it_is_chosen(self) -> None:
        """Of an ordinary study: dozens of digits of dozens of places."""
        for kind, rule in (("committee", "largest"), ("committee", "second"), ("shares", None)):
            noise = SealedNoise.choose(
                1.0, 12, 4, 1, ("two_stars", "triangles"), kind=kind, rule=rule,  # type: ignore[arg-type]
                delta=1e-9 if rule else 2**-60,
            )  # fmt: skip
            outputs = tuple(Output(name, noise.drawn(name)) for name in noise.answers)
            held = random_holdings(at_random(rule), 4, 12)
            assert has_answered(SealedRun(FOUR, held, given=parameters(FOUR, 12, outputs)).go())

    def test_the_law_follows_the_noisy_degrees(self) -> None:
        """A star, a path, nothing: every member has the bound that the opened degrees give."""
        found = set()
        star = bits_of(8, {(0, u) for u in range(1, 8)})
        path = bits_of(8, {(u, u + 1) for u in range(7)})
        for held, rule, seed in product((star, path, 0), ("largest", "second"), range(3)):
            given = parameters(FOUR, 8, bounded(8, 0, rule))
            run = SealedRun(FOUR, [held, held, 0, 0], given=given, seed=seed).go()
            assert has_answered(run)
            degrees = run.answers["degrees"]
            for number in (1, 2):
                law = given.outputs[number].noise
                assert isinstance(law, Bounded)
                bound = bound_of(law, degrees)
                found.add((law.rule, bound))
                for place in range(4):
                    assert part_of(run, place)._laws[number] == law.at(bound)
        assert len(found) > 8

    @pytest.mark.parametrize("name", ["four silos", "the coordinator and a silo outside"])
    def test_triangles_wait_for_all_pairs(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Several chunks and bands, and members that count whenever they can."""
        in_pieces(monkeypatch, 4096, 5)
        committee = COMMITTEES[name]
        for seed in range(3):
            held = random_holdings(at_random(seed), committee.silos, 17)
            given = parameters(committee, 17, plain(("triangles",)))
            run = SealedRun(committee, held, given=given, order=Eager(seed))
            assert has_answered(run.go())
            steps = [m.name[1] for m in run.sent if m.name[0] == "done" and m.sender == 0]
            assert sorted(steps[:3]) == [0, 1, 2]
            assert steps[3:] == [3, 4, 5, 6]

    def test_progress_in_pairs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        in_pieces(monkeypatch, 4096, 5)
        run = SealedRun(FOUR, [1] * 4, 17)
        assert (run.parameters.chunks, run.parameters.bands) == (3, 4)
        seen = []
        deliver = run.deliver

        def look(message: Message) -> None:
            deliver(message)
            seen.append(run.coordinator.progress)

        run.deliver = look  # type: ignore[method-assign]
        assert has_answered(run.go())
        assert seen == sorted(seen)
        assert seen[0] == (0, 136)
        assert seen[-1] == (136, 136)
        assert len(set(seen)) > 20

    def test_golden_transcripts(self) -> None:
        """Equal seeds give equal bytes: the wire format is frozen here."""
        found = {}
        for kind in KINDS:
            run = usual(kind, COMMITTEES["the coordinator and a silo outside"]).go()
            digest = hashlib.sha256()
            for message in run.sent:
                digest.update(message.raw)
            found[kind] = digest.hexdigest()[:32]
        assert found == {
            "coins": "6aa7795aa54f632f75029fd751fab828",
            "parts": "94b4bed5d054e47b91901a1309888984",
            "bounded": "8e370fab1a4bc60baad16f57ba7ae063",
        }


class Restless:
    """Everything that one machine was given or did, to be done again to another."""

    def __init__(self, run: SealedRun) -> None:
        self.run = run
        #: By place: what was received, or None for a step of its own.
        self.given: dict[int, list[bytes | None]] = {}
        self.sent: dict[int, list[bytes]] = {}
        deliver, send, attempt = run.deliver, run._send, run._try

        def received(message: Message) -> None:
            self.given.setdefault(message.receiver, []).append(message.raw)
            deliver(message)

        def tried(place: int, act: Callable[[], list[Outgoing]]) -> None:
            if getattr(act, "__name__", "") in ("authorise", "make"):
                self.given.setdefault(place, []).append(None)
            attempt(place, act)

        def noted(place: int, answers: Iterable[Outgoing]) -> None:
            answers = [*answers]
            self.sent.setdefault(place, []).extend(answer.raw for answer in answers)
            send(place, answers)

        run.deliver, run._try, run._send = received, tried, noted  # type: ignore[method-assign,assignment]

    def again(self, place: int, steps: int | None = None) -> tuple[object, list[bytes]]:
        """A new machine, after so many of the same steps, and what it has sent."""
        inside = place == COORDINATOR
        machine = self.run.new_coordinator() if inside else self.run.party(place)
        sent = [] if inside else [answer.raw for answer in machine.start()]
        for step in self.given[place][:steps]:
            if step is not None:
                answers = machine.receive(step)
            elif machine.state is State.AGREED:
                answers = machine.authorise()  # type: ignore[union-attr]
            else:
                answers = machine.make()
            sent += [answer.raw for answer in answers]
        return machine, sent


class TestOrder:
    @pytest.mark.parametrize("name", sampled(COMMITTEES, 0, 3, -1))
    @pytest.mark.parametrize("kind", KINDS)
    def test_any_order_of_arrival_gives_the_same_messages(
        self, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        in_pieces(monkeypatch, 3, 3)
        orders = (None, at_random(1), at_random(2))
        runs = [usual(kind, COMMITTEES[name], order=order).go() for order in orders]
        for run in runs:
            assert has_answered(run)
            assert set(run.sent) == set(runs[0].sent)
            assert len(run.sent) == len(runs[0].sent)
        assert len({tuple(message.raw for message in run.sent) for run in runs}) == len(runs)

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_party_that_is_rebuilt_sends_the_same_bytes(
        self, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        in_pieces(monkeypatch, 3, 3)
        for committee in (FOUR, FIVE, COMMITTEES["the coordinator inside"]):
            known = Restless(usual(kind, committee, order=at_random(5)))
            assert has_answered(known.run.go())
            for place in (*known.run.roster.places, COORDINATOR):
                machine, sent = known.again(place)
                assert sent == known.sent[place]
                assert machine.state is State.DONE  # type: ignore[attr-defined]

    def test_messages_and_sizes_do_not_depend_on_edges(self) -> None:
        for kind in ("coins", "parts"):
            shapes = set()
            for held in (0, 2**28 - 1):
                run = SealedRun(FIVE, [held] * 5, given=parameters(FIVE, 8, KINDS[kind])).go()
                shapes.add(tuple((message.name, len(message.raw)) for message in run.sent))
            assert len(shapes) == 1

    def test_with_a_bound_they_depend_on_the_noisy_degrees_alone(self) -> None:
        """Two graphs with the same degrees: a hexagon, and two triangles."""
        hexagon = {(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)}
        triangles = {(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)}
        shapes, answers = set(), []
        for edges in (hexagon, triangles):
            given = parameters(FOUR, 8, KINDS["bounded"])
            run = SealedRun(FOUR, [bits_of(8, edges), 0, 0, 0], given=given).go()
            shapes.add(tuple((message.name, len(message.raw)) for message in run.sent))
            answers.append(run.answers)
        assert len(shapes) == 1
        assert answers[0]["degrees"] == answers[1]["degrees"]
        assert answers[1]["triangles"][0] - answers[0]["triangles"][0] == 2


class TestPhases:
    """The bound is known, and compared, before the first byte of the noise that needs it."""

    def second(self, run: SealedRun, message: Message) -> bool:
        """Whether a message is of the second phase."""
        given, (kind, sequence, _, _) = run.parameters, message.name
        if kind in ("input", "check"):
            return bool(sequence >= given.unbounded_items)
        if kind == "joint":
            return bool(sequence // given.stride >= given.unbounded_items)
        return kind == "sum"

    @pytest.mark.parametrize("name", COMMITTEES)
    def test_nothing_leaves_before_the_degrees_are_learnt(self, name: str) -> None:
        committee = COMMITTEES[name]
        for seed in range(3):
            run = usual("bounded", committee, order=at_random(seed))
            told: Counter[int] = Counter()
            later: Counter[int] = Counter()
            deliver, send = run.deliver, run._send

            def hear(message: Message, told=told, deliver=deliver) -> None:  # type: ignore[no-untyped-def]
                told[message.receiver] += message.name[0] == "tell"
                deliver(message)

            def say(place: int, answers, run=run, told=told, later=later, send=send) -> None:  # type: ignore[no-untyped-def]
                for answer in answers:
                    if self.second(run, Message(place, answer.to, answer.raw)):
                        assert told[place] == 2
                        assert None not in part_of(run, place)._laws
                        later[place] += 1
                send(place, answers)

            run.deliver, run._send = hear, say  # type: ignore[method-assign,assignment]
            assert has_answered(run.go())
            assert set(+told) == set(committee.members) == set(later)
            # Three checks, and for each layer three messages; the sums, but for its own.
            assert min(later.values()) >= 2 * 3

    @pytest.mark.parametrize("missing", ["component", "hash"])
    def test_a_member_that_is_not_told_says_nothing_more(self, missing: str) -> None:
        """And the others say nothing but that their new chunks have no inputs."""
        for place in range(4):
            step = 1 if missing == "component" else 2
            silent = ("tell", 0, (place + step) % 4, place)

            def change(message: Message, silent: object = silent) -> list[bytes]:
                return [] if message.name == silent else [message.raw]

            run = usual("bounded", change=change).go()
            assert run.errors == []
            assert run.coordinator.state is State.CHUNKS
            later = [message for message in run.sent if self.second(run, message)]
            assert {message.sender for message in later} == {0, 1, 2, 3} - {place}
            assert {message.name[0] for message in later} == {"check"}
            assert part_of(run, place)._laws[1:] == [None, None]

    def test_a_member_that_restarts_computes_the_same_bound(self) -> None:
        """From the messages that it had: the same law, before it sends anything that needs it."""
        known = Restless(usual("bounded", order=at_random(3)))
        run = known.run
        assert has_answered(run.go())
        for place in range(4):
            steps = known.given[place]
            tells = [i for i, raw in enumerate(steps) if raw and peek(raw).round == "tell"]
            assert len(tells) == 2
            last = tells[1]
            # Its own last layers may come after what the others tell.
            while None in known.again(place, last + 1)[0]._part._laws:  # type: ignore[attr-defined]
                last += 1
            before, sent = known.again(place, last)
            assert before._part._laws[1:] == [None, None]  # type: ignore[attr-defined]
            names = [Message(place, peek(raw).receiver, raw) for raw in sent]
            assert not any(self.second(run, message) for message in names)
            after, more = known.again(place, last + 1)
            laws = part_of(run, place)._laws
            assert after._part._laws == laws  # type: ignore[attr-defined]
            assert more[: len(sent)] == sent == known.sent[place][: len(sent)]
            assert more == known.sent[place][: len(more)]

    def test_degrees_are_opened_once_they_are_counted_and_noisy(self) -> None:
        """No member opens or tells anything before every chunk of it is done."""
        run = usual("bounded").go()
        for place in range(4):
            mine = [message.name for message in run.sent if message.sender == place]
            opened = mine.index(("open", 0, place, COORDINATOR))
            given = run.parameters
            kinds = [(kind, sequence) for kind, sequence, _, _ in mine]
            last = max(
                index for index, (kind, sequence) in enumerate(kinds)
                if kind == "joint" and sequence < given.unbounded_items * given.stride
            )  # fmt: skip
            assert opened > last
            assert all(index > opened for index, (kind, _) in enumerate(kinds) if kind == "tell")


class TestBits:
    """Nothing that depends on edges is sent before the ledger has been charged."""

    @pytest.mark.parametrize("name", COMMITTEES)
    @pytest.mark.parametrize("kind", KINDS)
    def test_the_same_messages_before_authorise(self, name: str, kind: str) -> None:
        committee, runs = COMMITTEES[name], []
        for bits in (0, 2**28 - 1):
            given = parameters(committee, 8, KINDS[kind])
            run = SealedRun(committee, [bits] * committee.silos, given=given)
            run.unpaid = set(run.parties)
            runs.append(run.go())
        assert set(runs[0].sent) == set(runs[1].sent)
        sent = {message.name[0] for message in runs[0].sent if message.sender != COORDINATOR}
        assert sent == {"key", "confirm", "seed", "match"}
        # A coordinator in the committee has no edges, and no ledger: it begins with noise.
        assert runs[0].rounds - sent <= {"keys", "confirms", "input", "check"}
        assert all(party.ready for party in runs[0].parties.values())

    @pytest.mark.parametrize("name", COMMITTEES)
    def test_one_silo_that_has_not_paid(self, name: str) -> None:
        """Its bits are not even read; what all others send does not depend on them."""
        committee = COMMITTEES[name]
        for late in range(committee.silos):
            runs = []
            for bits in (0, 2**28 - 1):
                held = [bits if place == late else 77 for place in range(committee.silos)]
                run = SealedRun(committee, held)
                run.parties[late]._bits = no_bits
                run.unpaid = {late}
                runs.append(run.go())
            assert set(runs[0].sent) == set(runs[1].sent)
            assert runs[0].coordinator.state is State.CHUNKS
            sent = {m.name[0] for m in runs[0].sent if m.sender == late}
            assert sent <= {"key", "confirm", "seed", "match"}
            assert not runs[0].rounds & {"joint", "open", "sum", "tell", "done"}

    def test_no_answer_before_the_end(self) -> None:
        run = usual("coins")
        run.unpaid = {2}
        run.go()
        with pytest.raises(OrderError):
            run.coordinator.result()
        assert run.coordinator.progress == (0, 28)


class Eager:
    """Long work is done as soon as there is any; messages come in any order."""

    def __init__(self, seed: int) -> None:
        self._rng = at_random(seed)

    def choice(self, acts: list[Act], /) -> Act:
        work = [act for act in acts if act[0] == "make"]
        return self._rng.choice(work or acts)


class TestMemory:
    @pytest.mark.parametrize("slow", [6, 2, 0])
    def test_few_chunks_are_held(self, slow: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Even where one party is much slower, and silos outside are much faster."""
        in_pieces(monkeypatch, 4, 512)
        committee = COMMITTEES["seven silos"]
        held: list[int] = []
        early: list[int] = []

        def look() -> None:
            for place in committee.members:
                part = run.parties[place]._part
                if part is not None:
                    held.append(len(part._chunks))
                    early.append(len({n for name, n in part._came if name == "input"}))

        given = parameters(committee, 46, plain(("degrees", "edges")))
        run = SealedRun(committee, [0] * 7, given=given, order=Slowly(slow, look))
        assert (given.chunks, len(given.noise_chunks)) == (17, 13)
        assert has_answered(run.go())
        assert 1 < max(held) <= WINDOW
        assert 1 < max(early) <= 3 * WINDOW

    @pytest.mark.parametrize("kind", KINDS)
    def test_everything_is_forgotten_in_the_end(self, kind: str) -> None:
        run = usual(kind, FIVE, order=at_random(2)).go()
        for place in FIVE.members:
            part = part_of(run, place)
            assert (part._chunks, part._came, part._degrees) == ({}, {}, None)
            assert set(part._seen) <= {-1}

    @pytest.mark.parametrize("name", ["four silos", "seven silos"])
    def test_traffic_is_what_was_estimated(self, name: str) -> None:
        """Payloads of what a member sends and receives, without those of noise and envelopes."""
        committee = COMMITTEES[name]
        given = parameters(committee, 60, plain(("triangles",)))
        run = SealedRun(committee, [1] * committee.silos, given=given).go()
        chunks, up, down = given.chunks, 0, 0
        for message in run.sent:
            kind, sequence, sender, receiver = message.name
            number = sequence // given.stride if kind == "joint" else sequence
            if kind in ("input", "joint") and number < chunks:
                size = len(run.content(message))
                up += size * (sender in committee.members)
                down += size * (receiver in committee.members)
        cost = member_cost(60, committee.silos, ["triangles"])
        # Hashes, of 32 bytes, and bits of the last chunk that stand for no pair are beside it.
        layers = given.circuit.layers
        slack = 32 * 3 * layers * chunks
        assert 4 * cost.up <= up <= 1.1 * 4 * cost.up + slack * 4
        assert 4 * cost.down <= down <= 1.1 * 4 * cost.down + slack * 4


class TestParameters:
    def test_the_digest_covers_everything(self, monkeypatch: pytest.MonkeyPatch) -> None:
        base = parameters(FOUR, 8, bounded(8))
        outputs = base.outputs
        cubes = outputs[2].noise
        assert isinstance(cubes, Bounded)
        laws = [
            replace(cubes, rule="largest"),
            replace(cubes, margin=3),
            replace(cubes, cap=7),
            replace(cubes, numerator=2),
            replace(cubes, denominator=3),
        ]
        changed: list[SealedParameters] = [
            parameters(FOUR, 7, bounded(8)),
            parameters(FOUR, 8, bounded(8), subject=b"n"),
            parameters(FOUR, 8, bounded(8), chunk_pairs=128),
            parameters(FOUR, 8, bounded(8), members=(0, 1, 3, 2)),
            parameters(FOUR, 8, bounded(8), silos=5),
            parameters(FOUR, 8, outputs[:2]),
            parameters(FOUR, 8, (outputs[0], outputs[2], outputs[1])),
            parameters(FOUR, 8, bounded(8, degrees=Coins((3, 2, 1), 4))),
            parameters(FOUR, 8, bounded(8, degrees=Coins((3, 2, 2), 3))),
            *(parameters(FOUR, 8, (*outputs[:2], Output("triangles", law))) for law in laws),
            parameters(FOUR, 8, plain(EVERYTHING, Parts(3, 2))),
            parameters(FOUR, 8, plain(EVERYTHING, Parts(3, 4))),
            parameters(FOUR, 8, plain(EVERYTHING, Parts(1, 2))),
            parameters(FOUR, 8, plain(EVERYTHING)),
        ]
        digests = {given.digest for given in (base, *changed)}
        assert len(digests) == len(changed) + 1
        monkeypatch.setattr(rounds, "CHUNK_NUMBERS", 2048)
        assert parameters(FOUR, 8, bounded(8)).digest not in digests

    @pytest.mark.parametrize("nodes", [3, 4, 8, 100, 1000])
    def test_the_width_is_enough_and_not_more(self, nodes: int) -> None:
        """For every count with the largest noise of either sign, in whole bytes."""
        for reach in (1, 7, 12, 30, 50):
            noise = Coins((1,) * reach, 1)
            for name in EVERYTHING:
                given = parameters(FOUR, nodes, plain((name,), noise))
                most = {"edges": nodes * (nodes - 1) // 2, "degrees": nodes - 1}.get(
                    name, nodes * (nodes - 1) * (nodes - 2)
                )
                factor = {"two_stars": 2, "triangles": 6}.get(name, 1)
                largest = most + factor * (2**reach - 1)
                assert largest < 1 << 8 * given.width - 1
                assert given.width == 1 or 2 * (largest + nodes**3) >= 1 << 8 * (given.width - 1)

    def test_what_is_refused(self) -> None:
        degrees, stars, cubes = bounded(8)
        for outputs, why in (
            ((stars,), "needs degrees"),
            ((stars, degrees), "come last"),
            ((degrees, cubes, Output("edges", COINS)), "come last"),
            ((degrees, degrees), "each at most once"),
            (plain(("edges",), Coins((1,) * 62, 1)) + plain(("triangles",), Coins((1,) * 62, 1)),
             "too large"),
        ):  # fmt: skip
            with pytest.raises(ArgumentError, match=why):
                parameters(FOUR, 8, outputs)
        with pytest.raises(ArgumentError, match="four different members"):
            parameters(Committee(5, 0, (0, 1, 2, 2)))
        with pytest.raises(ArgumentError, match="at most 20,000 nodes"):
            parameters(FOUR, 20_001)
        with pytest.raises(ArgumentError, match="at least one output"):
            SealedParameters(4, (0, 1, 2, 3), 8, b"", ())
        for changes in ({"silos": 65}, {"chunk_pairs": 1 << 19}, {"nodes": (1 << 18) + 1}):
            with pytest.raises(ArgumentError, match="at most 64 silos"):
                parameters(FOUR, outputs=plain(("degrees",)), **changes)
