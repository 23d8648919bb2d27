"""The committee's union: exact for every holder set, whatever the order of messages."""

import hashlib
from collections import Counter
from itertools import permutations

import pytest

from silograph import _core
from silograph.messages.identity import COORDINATOR
from silograph.methods.committee.rounds import WINDOW, CommitteeParameters, State
from tests.methods.committee.oracle import Oracle
from tests.methods.committee.run import (
    COMMITTEES,
    FIVE,
    FOUR,
    Committee,
    CommitteeRun,
    Slowly,
    at_random,
    parameters,
    random_committee,
)
from tests.sampled import sampled

pytestmark = pytest.mark.slow

#: A thousand seeds, most of them in slow tests.
SEEDS = [
    range(40),
    *(
        pytest.param(range(first, first + 120), marks=pytest.mark.whole)
        for first in range(40, 1000, 120)
    ),
]


def random_federation(seed: int) -> CommitteeRun:
    rng = at_random(seed)
    committee = random_committee(rng)
    chunk_pairs = rng.choice([64, 64, 128])
    pairs = rng.choice([1, 2, 63, 64, 65, rng.randint(1, 300)])
    places = rng.randint(1, 5)
    given = parameters(
        committee,
        pairs,
        chunk_pairs=chunk_pairs,
        places=places,
        numerator=2 * rng.randrange(2 ** (places - 1)) + 1,
    )
    density = rng.choice([0, 1, 2, 3, 5])
    held = []
    for _ in range(committee.silos):
        bits = (1 << pairs) - 1
        for _ in range(density):
            bits &= rng.getrandbits(pairs)
        held.append(bits)
    order = rng if rng.random() < 0.5 else None
    return CommitteeRun(committee, held, given=given, seed=seed, order=order)


class TestResult:
    @pytest.mark.parametrize("seeds", SEEDS, ids=str)
    def test_random_federations(self, seeds: range) -> None:
        """A thousand of them: the result without the coin is the union, bit by bit."""
        seen = Counter()
        for seed in seeds:
            run = random_federation(seed).go()
            assert run.errors == []
            assert run.coordinator.state is State.DONE
            assert all(party.state is State.DONE for party in run.parties.values())
            assert run.result() ^ Oracle(run).coin() == run.union
            seen[run.committee.silos] += 1
            seen["inside"] += COORDINATOR in run.committee.members
            seen["outside"] += bool(run.parameters.outside)
            seen["helpers"] += bool(run.committee.helpers)
            seen["chunks"] += run.parameters.chunks > 1
        assert all(seen[silos] > 1 for silos in range(2, 8))
        assert all(seen[what] > 4 for what in ("inside", "outside", "helpers", "chunks"))

    @pytest.mark.parametrize("silos", [2, 3, 4, 5])
    def test_every_holder_set(self, silos: int) -> None:
        """Pair k of a chunk is held by the silos whose bits are set in k; every committee order."""
        helpers = max(4 - silos, 0)
        pairs = 2**silos
        held = [sum((k >> silo & 1) << k for k in range(pairs)) for silo in range(silos)]
        orders = list(permutations(range(silos + helpers), 4))
        for members in orders[:: max(len(orders) // 12, 1)]:
            run = CommitteeRun(Committee(silos, helpers, members), held, pairs).go()
            assert run.union == (1 << pairs) - 2
            assert run.result() ^ Oracle(run).coin() == run.union

    @pytest.mark.parametrize("name", COMMITTEES)
    def test_many_chunks(self, name: str) -> None:
        """More than two windows, and a last chunk that is not whole."""
        committee, pairs, rng = COMMITTEES[name], 64 * 10 + 7, at_random(name)
        held = [rng.getrandbits(pairs) & rng.getrandbits(pairs) for _ in range(committee.silos)]
        run = CommitteeRun(committee, held, pairs, order=rng).go()
        assert run.errors == []
        assert run.result() ^ Oracle(run).coin() == run.union
        assert run.coordinator.progress == (pairs, pairs)
        # Bits beyond the last pair are not told.
        assert run.result() >> pairs == 0

    def test_a_golden_transcript(self) -> None:
        """Equal seeds give equal bytes: the wire format is frozen here."""
        found = {}
        for name in ("four silos", "the coordinator and a silo outside"):
            committee = COMMITTEES[name]
            run = CommitteeRun(committee, [5, 6, 9, 1 << 69], 70).go()
            digest = hashlib.sha256()
            for message in run.sent:
                digest.update(message.raw)
            found[name] = digest.hexdigest()[:32]
        assert found == {
            "four silos": "ea5a0acb3a1f86610557cd1de7ba071d",
            "the coordinator and a silo outside": "0ca319f4bb46d731a4eb2272565ddae4",
        }


class TestOrder:
    @pytest.mark.parametrize("name", sampled(COMMITTEES, 0, 3, -1))
    def test_any_order_of_arrival_gives_the_same_messages(self, name: str) -> None:
        """Whatever the interleaving of senders: the same set of bytes, and the same result."""
        committee, rng = COMMITTEES[name], at_random(name)
        pairs = 64 * 6 + 3
        held = [rng.getrandbits(pairs) for _ in range(committee.silos)]
        runs = [
            CommitteeRun(committee, held, pairs, order=order).go()
            for order in (None, *(at_random(seed) for seed in range(4)))
        ]
        for run in runs:
            assert run.errors == []
            assert run.result() == runs[0].result()
            assert set(run.sent) == set(runs[0].sent)
            assert len(run.sent) == len(runs[0].sent)
        orders = {tuple(message.raw for message in run.sent) for run in runs}
        assert len(orders) == len(runs)

    def test_a_party_that_is_rebuilt_sends_the_same_bytes(self) -> None:
        """Everything that a party was given, once more and to a new machine."""
        for committee in (FOUR, FIVE, COMMITTEES["the coordinator inside"]):
            run = CommitteeRun(committee, [3] * committee.silos, 200, order=at_random(1))
            given: dict[int, list[bytes]] = {}
            sent: dict[int, list[bytes]] = {}
            receive, send = run.deliver, run._send

            def deliver(message, receive=receive, given=given):  # type: ignore[no-untyped-def]
                given.setdefault(message.receiver, []).append(message.raw)
                receive(message)

            def note(place, answers, send=send, sent=sent):  # type: ignore[no-untyped-def]
                sent.setdefault(place, []).extend(answer.raw for answer in answers)
                send(place, answers)

            run.deliver, run._send = deliver, note  # type: ignore[method-assign]
            run.go()
            for place in run.roster.places:
                party = run.party(place)
                again = [answer.raw for answer in party.start()]
                for raw in given.get(place, []):
                    again += [answer.raw for answer in party.receive(raw)]
                    if party.ready:
                        again += [answer.raw for answer in party.authorise()]
                while party.room:
                    again += [answer.raw for answer in party.make()]
                assert sorted(again) == sorted(sent[place])
            coordinator = run.new_coordinator()
            again = [a.raw for raw in given[COORDINATOR] for a in coordinator.receive(raw)]
            assert sorted(again) == sorted(sent[COORDINATOR])
            assert bytes(coordinator.result()) == bytes(run.coordinator.result())

    def test_an_outside_silo_omits_what_was_sent(self) -> None:
        run = CommitteeRun(FIVE, [1, 2, 3, 4, 5], 200).go()
        mine = [message.raw for message in run.sent if message.name[::2] == ("input", 4)]
        other = run.party(4)
        other.start()
        for name in ("keys", "confirms"):
            other.receive(next(m.raw for m in run.sent if m.name[0] == name))
        other.authorise()
        made = []
        while other.room:
            made += other.make({("input", 0), ("input", 2)})
        assert [m.raw for m in made] == mine[3:6] + mine[9:]
        assert other.state is State.DONE


class TestMemory:
    @pytest.mark.parametrize("slow", [6, 2, 0])
    def test_few_chunks_are_held(self, slow: int) -> None:
        """Even where one party is much slower, and silos outside are much faster."""
        committee, held, early = COMMITTEES["seven silos"], [], []

        def look() -> None:
            for place in committee.members:
                part = run.parties[place]._part
                if part is not None:
                    held.append(len(part._chunks))
                    early.append(len({n for name, n in part._came if name == "input"}))

        run = CommitteeRun(committee, [0] * 7, 64 * 40, order=Slowly(slow, look))
        run.go()
        assert run.errors == []
        assert run.result() ^ Oracle(run).coin() == 0
        assert 1 < max(held) <= WINDOW
        assert 1 < max(early) <= 3 * WINDOW

    def test_a_silo_outside_waits(self) -> None:
        """A member takes no more of its chunks than it will soon use."""
        run = CommitteeRun(FIVE, [0] * 5, 64 * 40)
        run.unpaid = {0, 1, 2, 3}
        run.go()
        for place in (1, 2, 3):  # member 0 lacks the component that travels
            part = run.parties[place]._part
            assert part is not None
            assert sum(name == "input" for name, _ in part._came) == 2 * WINDOW
            assert not run.parties[place].wants(4)
            assert run.parties[place].wants(COORDINATOR)
        assert run.parties[4].state is State.DONE

    def test_everything_is_forgotten_in_the_end(self) -> None:
        run = CommitteeRun(FIVE, [7] * 5, 64 * 10, order=at_random(2)).go()
        for place in FIVE.members:
            part = run.parties[place]._part
            assert part is not None
            assert (part._chunks, part._came) == ({}, {})
            assert set(part._seen) <= {-1}


class TestCircuit:
    @pytest.mark.parametrize("silos", range(2, 9))
    @pytest.mark.parametrize("places", [1, 2, 5, 9])
    def test_layers_and_gates(self, silos: int, places: int) -> None:
        """One gate a silo but one, one a place but the first; a layer has at most one place."""
        coin = [True] * places
        circuit = _core.CommitteeCircuit([None] * silos, coin)
        assert circuit.gates == silos - 1 + places - 1
        assert circuit.layers == max((silos - 1).bit_length(), places - 1)

    def test_parameters_digest_covers_everything(self) -> None:
        base = parameters(FOUR)
        changed: list[CommitteeParameters] = [
            parameters(FOUR, numerator=5),
            parameters(FOUR, places=4),
            parameters(FOUR, pairs=65),
            parameters(FOUR, subject=b"n"),
            parameters(FOUR, chunk_pairs=128),
            parameters(FOUR, members=(0, 1, 3, 2)),
            parameters(FOUR, silos=5),
        ]
        assert len({given.digest for given in (base, *changed)}) == 8
