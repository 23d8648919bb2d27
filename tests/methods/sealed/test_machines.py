"""The sealed protocol's machines: what they compute, in what order, and what they refuse."""

import hashlib
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph import _core
from silograph.errors import (
    ArgumentError,
    BindingError,
    OrderError,
    PayloadError,
    ProtocolError,
    SignatureError,
    ViewsDifferError,
)
from silograph.messages.envelope import EVERYONE, Binding, Envelope, peek, seal
from silograph.messages.identity import COORDINATOR, Identity, Member, pack
from silograph.methods.sealed.noise import BoundedNoise, Noise, Output, SealedNoise
from silograph.methods.sealed.rounds import (
    COORDINATOR_STEPS,
    SILO_STEPS,
    SealedParameters,
    State,
    sealed_cost,
)
from silograph.methods.sealed.silo import SealedSilo
from tests.methods.sealed.run import (
    EVERYTHING,
    RUN,
    SILENCE,
    Edges,
    SealedRun,
    Silence,
    authorise,
    exact,
    pair_bits,
    parameters,
)
from tests.support.parties import SeededEntropy, no_bits

TRIANGLE: Edges = {(0, 1), (0, 2), (1, 2)}
HOLDINGS: list[Edges] = [TRIANGLE, {(0, 1), (5, 9)}, set()]


def federation(seed: int, silos: int, nodes: int) -> list[Edges]:
    """Overlapping silos; some hold nothing, and some nodes have no edges."""
    chance = np.random.default_rng(seed)
    alone = set(chance.choice(nodes, nodes // 4, replace=False).tolist())
    pairs = [pair for pair in combinations(range(nodes), 2) if not alone & set(pair)]
    common = {pair for pair in pairs if chance.random() < 0.2}
    holdings: list[Edges] = []
    for density in chance.choice((0.0, 0.1, 0.5, 1.0), silos):
        own = {pair for pair in pairs if chance.random() < density}
        holdings.append(own | common if density else set())
    return holdings


def answers(run: SealedRun) -> tuple[int, list[int], int, int]:
    found = run.dealer.result()
    for silo in run.silos:
        own = silo.result()
        assert all((own.values[name] == found.values[name]).all() for name in found.values)
        assert own.noises == found.noises
    number = found.number
    return number("edges"), found.degrees.tolist(), number("two_stars"), number("triangles")


class TestCounts:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "silos", [2, 3, 4, 5, *(pytest.param(m, marks=pytest.mark.whole) for m in (6, 7))]
    )
    def test_ten_random_federations_of_every_size(self, silos: int) -> None:
        """Without noise the shares open to exactly the union's counts, at every party."""
        for number, nodes in product(range(10), (2, 3, 4, 5, 6, 8, 9, 13)):
            case = 1000 * nodes + 10 * silos + number
            holdings = federation(case, silos, nodes)
            run = SealedRun(parameters(silos, nodes), seed=case).whole(holdings)
            assert answers(run) == exact(nodes, holdings)

    @pytest.mark.parametrize("chunk_pairs", [64, 192, 1 << 18])
    def test_chunks_do_not_change_the_answer(self, chunk_pairs: int) -> None:
        holdings = federation(7, 3, 40)
        given = parameters(3, 40, chunk_pairs=chunk_pairs)
        assert answers(SealedRun(given).whole(holdings)) == exact(40, holdings)

    @pytest.mark.parametrize("name", EVERYTHING)
    def test_each_answer_alone(self, name: str) -> None:
        holdings = federation(8, 4, 25)
        run = SealedRun(parameters(4, 25, (name,))).whole(holdings)
        expected = dict(zip(EVERYTHING, exact(25, holdings), strict=True))[name]
        found = run.dealer.result().values[name].tolist()
        assert found == (expected if name == "degrees" else [expected])
        assert {peek(raw).round for _, _, raw in run.messages} >= {"deal", "open", "output"}
        matrices = bool(run.rounds("deal-matrix"))
        assert matrices == (name == "triangles")
        assert bool(run.rounds("open-nodes")) == (name == "two_stars")

    def test_golden_transcript(self) -> None:
        """Equal seeds give equal bytes: the wire format is frozen here."""
        run = SealedRun().whole(HOLDINGS)
        whole = hashlib.sha256()
        for sender, receiver, raw in run.messages:
            whole.update(pack(str((sender, receiver)).encode(), raw))
        assert (
            whole.hexdigest() == "4746b7a9490af13f934b0be39dec9c81a8b5ec94351eea065b90fe0abcdd225e"
        )

    @pytest.mark.parametrize("kind", ["shared", "each"])
    def test_noise_is_what_every_silo_draws(self, kind: str) -> None:
        """Exactly: the sum of all silos' draws, once for each answer, whatever its factor."""
        noise = Noise(kind, 40, 3, 3 if kind == "shared" else 1)  # type: ignore[arg-type]
        run = SealedRun(parameters(noise=noise)).whole(HOLDINGS)
        found, expected = run.dealer.result(), exact(20, HOLDINGS)
        seeds = set()
        for name, truth in zip(EVERYTHING, expected, strict=True):
            drawn = np.zeros(20 if name == "degrees" else 1, dtype=np.int64)
            for silo in run.silos:
                label = pack(name.encode(), b"0")
                seed = silo._secret.derive(b"silograph/sealed/noise/v1", label)
                seeds.add(seed)
                drawn += noise.draw(len(drawn), seed)
            assert (found.values[name] == drawn + np.array(truth)).all()
            assert name != "degrees" or drawn.any()
        assert len(seeds) == 12


class TestBoundedNoise:
    def given(self, margin: int = 3, cap: int = 18, noise: Noise = SILENCE) -> SealedParameters:
        bounded = BoundedNoise("each", 2, cap, margin, 1, 5)
        outputs = (
            Output("degrees", noise),
            Output("two_stars", bounded),
            Output("triangles", BoundedNoise("shared", 1, cap, margin, 3, 1, 2)),
        )
        return SealedParameters(3, 20, b"nodes", outputs, 64)

    def test_the_scale_follows_the_largest_noisy_degree(self) -> None:
        star = {(0, u) for u in range(1, 8)}
        run = SealedRun(self.given()).whole([star, TRIANGLE, set()])
        noises = run.dealer.result().noises
        assert noises["two_stars"] == Noise("each", 2 * 10 * 5, 1)
        assert noises["triangles"] == Noise("shared", 10, 3, 2)
        assert all(silo.result().noises == noises for silo in run.silos)
        assert [peek(raw).sequence for _, to, raw in run.rounds("output") if to == COORDINATOR] == [
            0, 0, 0, 1, 1, 1
        ]  # fmt: skip

    def test_it_is_bounded_on_both_sides(self) -> None:
        noise = BoundedNoise("each", 1, 18, 3, 1, 1)
        assert noise.at(1000) == Noise("each", 18, 1)
        assert noise.at(-50) == Noise("each", 1, 1)
        assert noise.at(4) == Noise("each", 7, 1)

    @pytest.mark.parametrize("epsilon", [1.0, 0.1, 3.0, 0.7071067811865476])
    def test_it_is_the_noise_that_is_certified(self, epsilon: float) -> None:
        noise = SealedNoise.choose(
            epsilon, 4039, 4, 1, ["degrees", "two_stars", "triangles"], delta=1e-9
        )
        for answer, factor in (("two_stars", 2), ("triangles", 1)):
            part, margin = noise.budgets[answer], noise.slacks[answer]
            bounded = BoundedNoise(
                "shared", factor, 4037, margin, part.numerator, part.denominator, noise.shares
            )
            for largest in (-1000, 7, 1045, 10_000):
                degrees = np.full(4039, largest)
                wanted = noise.scale(answer, noise.bound(answer, degrees))
                found = bounded.at(largest)
                assert (found.numerator, found.denominator) == wanted.as_integer_ratio()

    def test_silos_must_have_summed_the_same_degrees(self) -> None:
        run = SealedRun(self.given(noise=Noise("each", 5, 1))).agree().open(HOLDINGS)
        last = len(run.silos) - 1
        left = []
        for place, silo in enumerate(run.silos):
            sent = [(place, message) for message in silo.count()]
            # Stop where a second output would reach the first silo.
            left = run.deliver(sent, until=lambda _, to, raw: to == 0 and peek(raw).sequence == 1)
        raw = next(raw for _, to, raw in left if to == 0)
        message = peek(raw)
        binding = Binding(RUN, run.parameters.digest, run.roster)
        other = Envelope("output", message.sender, EVERYONE, 1, bytes(32) + message.payload[32:])
        forged = seal(binding, run.keys[message.sender], other)
        with pytest.raises(ViewsDifferError, match="summed other answers"):
            run.silos[0].receive(forged)
        assert last == 2
        run.silos[0].receive(raw)


class TestOrder:
    def test_nothing_is_opened_before_every_ledger(self) -> None:
        run = SealedRun().agree()
        assert all(silo.state is State.AGREED for silo in run.silos)
        ready = run.ready(HOLDINGS)
        run.deliver(ready[:2])
        assert {silo.state for silo in run.silos} == {State.READY}
        assert not {"open", "deal"} & {peek(raw).round for _, _, raw in run.messages}
        run.deliver(ready[2:])
        assert {silo.state for silo in run.silos} == {State.COUNTING}

    def test_bits_are_asked_for_after_the_ledger_and_once(self) -> None:
        run, asked = SealedRun().agree(), []

        def bits(chunk: int) -> bytes:
            asked.append(chunk)
            return pair_bits(run.parameters, TRIANGLE)(chunk)

        sent = [(i, out) for i, silo in enumerate(run.silos) for out in authorise(silo, bits)]
        assert asked == []
        run.deliver(sent)
        assert sorted(asked) == sorted(list(range(run.parameters.chunks)) * 3)

    def test_every_step_outside_the_table_is_refused_and_changes_nothing(self) -> None:
        for state in State:
            for event, act in (
                ("start", lambda s: s.start()),
                ("authorise", lambda s: s.authorise()),
                ("count", lambda s: s.count()),
            ):
                if (state, event) in SILO_STEPS:
                    continue
                silo = SealedRun().silos[0]
                silo.state = state
                with pytest.raises(OrderError):
                    act(silo)
                assert silo.state is state

    def test_the_tables_lead_from_start_to_end(self) -> None:
        for table, start in ((SILO_STEPS, State.NEW), (COORDINATOR_STEPS, State.KEYS)):
            reached = {start}
            for _ in table:
                reached |= {after for (before, _), after in table.items() if before in reached}
            assert State.DONE in reached
            assert reached == {before for before, _ in table} | {State.DONE}

    def test_results_only_at_the_end(self) -> None:
        run = SealedRun().agree().open(HOLDINGS)
        for machine in (run.dealer, run.silos[0]):
            with pytest.raises(OrderError):
                machine.result()

    def test_every_message_twice(self) -> None:
        """Each message of a whole run, delivered again at once, is refused and changes nothing."""
        run = SealedRun(parameters(nodes=13)).agree()
        refused = 0

        def again(_: int, to: int, raw: bytes) -> bool:
            nonlocal refused
            if run.messages:
                _, to, raw = run.messages[-1]
                with pytest.raises(ProtocolError):
                    run.machine(to).receive(raw)
                refused += 1
            return False

        run.deliver(run.ready(HOLDINGS), until=again)
        for place, silo in enumerate(run.silos):
            run.deliver([(place, message) for message in silo.count()], until=again)
        assert refused > 60
        assert answers(run) == exact(13, HOLDINGS)

    def test_dealt_material_is_used_once(self) -> None:
        run = SealedRun().agree().open(HOLDINGS)
        opening = run.silos[0]._opening
        assert opening is not None
        assert opening._used == set(range(run.parameters.chunks))
        with pytest.raises(OrderError, match="opened before"):
            opening.begin(0, bytes(8))
        with pytest.raises(OrderError):
            run.silos[0].authorise()
        last = run.silos[2]._opening
        assert last is not None
        with pytest.raises(OrderError, match="not due"):
            last.correct_chunk(0, bytes(run.parameters.correction_bytes(0)))
        with pytest.raises(OrderError, match="not due"):
            last.correct_matrix(0, bytes(512))

    def test_material_is_marked_as_used_before_the_first_opening(self) -> None:
        run = SealedRun().agree()
        opening = run.silos[0]._opening
        assert opening is not None

        def broken(_chunk: int) -> bytes:
            return b"short"

        authorise(run.silos[0], broken)
        with pytest.raises(PayloadError, match="one bit per pair"):
            opening.begin(0, broken(0))
        assert opening._used == set()
        assert opening.begin(0, bytes(8))
        assert opening._used == {0}

    def test_a_killed_silo_makes_the_same_bytes_again(self) -> None:
        """From its run secret and what it was sent, at whatever point it was killed."""
        run = SealedRun(parameters(noise=Noise("shared", 3, 1, 3))).whole(HOLDINGS)
        for place in range(3):
            born, made = run.silo(place), []
            for act in run.events[place]:
                made += [out.raw for out in act(born)]
            assert made == [raw for sender, _, raw in run.messages if sender == place]

    def test_a_killed_dealer_deals_the_same_bytes_again(self) -> None:
        run = SealedRun().whole(HOLDINGS)
        born, made = SealedRun().dealer, []
        for sender, to, raw in run.messages:
            if to == COORDINATOR:
                assert sender != COORDINATOR
                made += [
                    (place, out.raw) for out in born.receive(raw) for place in run.receivers(out)
                ]
        assert made == [(to, raw) for sender, to, raw in run.messages if sender == COORDINATOR]


class TestHostile:
    @pytest.mark.parametrize(
        "name", ["keys", "readys", "seed", "tell", "open", "open-nodes", "output"]
    )
    def test_a_helper_is_no_silo(self, name: str) -> None:
        """It speaks neither as a silo nor as the coordinator."""
        run, helper = SealedRun(), Identity(bytes([77] * 32))
        roster = replace(run.roster, helpers=(Member("notary", helper.public),))
        silo = SealedSilo(run.parameters, roster, RUN, 0, run.keys[0], SeededEntropy(1), no_bits)
        silo.start()
        binding = Binding(RUN, run.parameters.digest, roster)
        raw = seal(binding, helper, Envelope(name, 3, EVERYONE, 0, bytes(32)))
        with pytest.raises(OrderError, match=r"of notary: .*no such message"):
            silo.receive(raw)

    def binding(self, run: SealedRun) -> Binding:
        return Binding(RUN, run.parameters.digest, run.roster)

    def sealed(self, run: SealedRun, envelope: Envelope) -> bytes:
        key = run.keys[3 if envelope.sender == COORDINATOR else envelope.sender]
        return seal(self.binding(run), key, envelope)

    def until(self, name: str, to: int) -> tuple[SealedRun, bytes, list]:
        """A run that stands before the first such message to one party."""
        run = SealedRun()
        stop = lambda _, at, raw: at == to and peek(raw).round == name  # noqa: E731
        sent = [(i, out) for i, silo in enumerate(run.silos) for out in silo.start()]
        left = run.deliver(sent, until=stop) or run.deliver(run.ready(HOLDINGS), until=stop)
        return run, left[0][2], left

    def finish(self, run: SealedRun, left: list) -> None:
        """What was refused has changed nothing: the run ends as it should."""
        while left:
            sender, to, raw = left.pop(0)
            for answer in run.machine(to).receive(raw):
                left += [(to, place, answer.raw) for place in run.receivers(answer)]
            assert sender != to
        if run.silos[0].state is State.AGREED:
            run.open(HOLDINGS)
        run.finish()
        assert answers(run) == exact(20, HOLDINGS)

    @pytest.mark.parametrize(
        ("name", "to"),
        [
            ("tell", 0), ("seed", 1), ("deal", 2), ("open", 0), ("open", 2), ("deal-matrix", 2),
            ("deal-nodes", 2), ("open-nodes", 1),
        ],
    )  # fmt: skip
    def test_tampered_moved_and_swapped_ciphertexts(self, name: str, to: int) -> None:
        """Signed by whoever sent it, and still refused: the payload is bound to its envelope."""
        run, raw, left = self.until(name, to)
        message, silo = peek(raw), run.silos[to]
        payload = message.payload
        flipped = payload[:20] + bytes([payload[20] ^ 1]) + payload[21:]
        last = payload[:-1] + bytes([payload[-1] ^ 0x80])
        # The last bytes of what a silo tells are for another one.
        last = flipped if name == "tell" else last
        for changed in (flipped, last, payload[:-1], payload + b"\0", b""):
            forged = Envelope(name, message.sender, message.receiver, message.sequence, changed)
            with pytest.raises(ProtocolError):
                silo.receive(self.sealed(run, forged))
        moved = Envelope(name, message.sender, message.receiver, message.sequence + 1, payload)
        with pytest.raises(ProtocolError, match=r"decrypted|due|twice|once"):
            silo.receive(self.sealed(run, moved))
        if message.sender != COORDINATOR:
            other = next(i for i in range(3) if i not in (to, message.sender))
            stolen = Envelope(name, other, EVERYONE, message.sequence, payload)
            with pytest.raises(ProtocolError, match="decrypted"):
                silo.receive(self.sealed(run, stolen))
        self.finish(run, left)

    def test_a_seed_for_another_silo(self) -> None:
        run, _, left = self.until("seed", 0)
        others = [raw for _, to, raw in left if to == 1 and peek(raw).round == "seed"]
        with pytest.raises(BindingError, match="someone else"):
            run.silos[0].receive(others[0])
        payload = peek(others[0]).payload
        swapped = Envelope("seed", COORDINATOR, 0, 0, payload)
        with pytest.raises(PayloadError, match="decrypted"):
            run.silos[0].receive(self.sealed(run, swapped))
        self.finish(run, left)

    def test_a_second_seed(self) -> None:
        run, raw, left = self.until("seed", 0)
        run.silos[0].receive(raw)
        with pytest.raises(OrderError):
            run.silos[0].receive(raw)
        self.finish(run, left[1:])

    def test_corrections_of_another_chunk(self) -> None:
        run, raw, left = self.until("deal", 2)
        second = next(r for _, to, r in left[1:] if peek(r).round == "deal" and to == 2)
        swapped = Envelope("deal", COORDINATOR, 2, 0, peek(second).payload)
        with pytest.raises(PayloadError, match="decrypted"):
            run.silos[2].receive(self.sealed(run, swapped))
        run.silos[2].receive(raw)
        with pytest.raises(OrderError, match="not due"):
            run.silos[2].receive(raw)
        self.finish(run, left[1:])

    @pytest.mark.parametrize("name", ["deal", "deal-nodes"])
    def test_corrections_are_for_the_last_silo(self, name: str) -> None:
        run, _, left = self.until("open", 0)
        lock = run.dealer._locks[0]
        size = run.parameters.correction_bytes(0) if name == "deal" else 160
        given = lock.close(Envelope(name, COORDINATOR, 0, 0, bytes(size)))
        with pytest.raises(OrderError, match="not due"):
            run.silos[0].receive(self.sealed(run, given))
        self.finish(run, left)

    def test_an_opening_before_its_corrections(self) -> None:
        run, _, left = self.until("deal", 2)
        opening = SealedRun().whole(HOLDINGS).rounds("open")
        first = next(raw for _, to, raw in opening if (peek(raw).sender, to) == (0, 2))
        with pytest.raises(OrderError):
            run.silos[2].receive(first)
        self.finish(run, left)

    @pytest.mark.parametrize("size", [0, 8, 23 * 8])
    def test_openings_of_the_wrong_size(self, size: int) -> None:
        run, raw, left = self.until("open", 0)
        sender = peek(raw).sender
        lock = run.silos[sender]._own_lock
        short = lock.close(Envelope("open", sender, EVERYONE, 0, bytes(size)))
        with pytest.raises(PayloadError, match=rf"silo {sender + 1}: chunk 0"):
            run.silos[0].receive(self.sealed(run, short))
        self.finish(run, left)
        run, raw, left = self.until("open", COORDINATOR)
        sender = peek(raw).sender
        short = Envelope("open", sender, EVERYONE, 0, bytes(size))
        with pytest.raises(PayloadError, match="one share per pair"):
            run.dealer.receive(self.sealed(run, short))
        self.finish(run, left)

    @pytest.mark.parametrize("sequence", [1, 2, 7, 12, 10_000])
    def test_steps_that_are_not_due(self, sequence: int) -> None:
        for to in (0, COORDINATOR):
            run, raw, left = self.until("open", to)
            sender = peek(raw).sender
            lock = run.silos[sender]._own_lock
            later = lock.close(Envelope("open", sender, EVERYONE, sequence, bytes(16)))
            with pytest.raises(ProtocolError, match=r"not due|decrypted|one share"):
                run.machine(to).receive(self.sealed(run, later))
            self.finish(run, left)

    def test_outputs_that_do_not_add_up(self) -> None:
        """Six times the number of triangles is divisible by six, noise and all."""
        run = SealedRun(parameters(names=("triangles",))).agree().open(HOLDINGS)
        outputs = [silo.count()[0].raw for silo in run.silos]
        message = peek(outputs[2])
        word = (int.from_bytes(message.payload[32:], "little") + 1) % 2**64
        payload = message.payload[:32] + word.to_bytes(8, "little")
        for machine, others in ((run.dealer, outputs[:2]), (run.silos[0], outputs[1:2])):
            for raw in others:
                machine.receive(raw)
            state = machine.state
            with pytest.raises(PayloadError, match="do not add up"):
                machine.receive(self.sealed(run, Envelope("output", 2, EVERYONE, 0, payload)))
            assert machine.state is state
            machine.receive(outputs[2])
            assert machine.state is State.DONE
            assert machine.result().number("triangles") == 1

    def test_parties_speak_for_themselves(self) -> None:
        run, _, left = self.until("open", 0)
        for sender, name in ((1, "deal"), (COORDINATOR, "open"), (COORDINATOR, "output")):
            forged = Envelope(name, sender, EVERYONE, 0, bytes(32))
            with pytest.raises(OrderError):
                run.silos[0].receive(self.sealed(run, forged))
        with pytest.raises(BindingError, match="to itself"):
            run.dealer.receive(self.sealed(run, Envelope("open", COORDINATOR, EVERYONE, 0, b"")))
        own = Envelope("open", 0, EVERYONE, 0, bytes(32))
        with pytest.raises(OrderError, match="came back"):
            run.silos[0].receive(self.sealed(run, own))
        self.finish(run, left)

    def test_views_that_differ(self) -> None:
        run = SealedRun()
        keys = [silo.start()[0].raw for silo in run.silos]
        bundle = next(out for raw in keys for out in run.dealer.receive(raw)).raw
        confirms = [silo.receive(bundle)[0].raw for silo in run.silos]
        other = self.sealed(run, Envelope("confirm", 1, EVERYONE, 0, bytes(32)))
        forged = pack(confirms[0], other, confirms[2])
        shown = self.sealed(run, Envelope("confirms", COORDINATOR, EVERYONE, 0, forged))
        with pytest.raises(ViewsDifferError, match="silo 2: saw other keys"):
            run.silos[0].receive(shown)

    def test_the_coordinators_key_is_signed_and_confirmed(self) -> None:
        """A broker that swaps the dealer's key is found out, and so is a dealer with two keys."""
        views = []
        for seed in (1, 2):
            run = SealedRun()
            other = SealedRun(seed=seed)
            keys = [silo.start()[0].raw for silo in run.silos]
            own = Envelope("key", COORDINATOR, EVERYONE, 0, other.dealer._secret.public())
            bundle = pack(*keys, self.sealed(run, own))
            shown = self.sealed(run, Envelope("keys", COORDINATOR, EVERYONE, 0, bundle))
            views.append(peek(run.silos[0].receive(shown)[0].raw).payload)
        assert views[0] != views[1]
        forged = seal(self.binding(run), run.keys[0], own)
        shown = self.sealed(run, Envelope("keys", COORDINATOR, EVERYONE, 0, pack(*keys, forged)))
        with pytest.raises(SignatureError):
            run.silos[1].receive(shown)

    @pytest.mark.parametrize("weak", [bytes(32), b"\1" + bytes(31)])
    def test_weak_run_keys(self, weak: bytes) -> None:
        run = SealedRun()
        keys = [silo.start()[0].raw for silo in run.silos]
        keys[2] = self.sealed(run, Envelope("key", 2, EVERYONE, 0, weak))
        run.dealer.receive(keys[0])
        run.dealer.receive(keys[1])
        with pytest.raises(PayloadError, match="silo 3: a weak run key"):
            run.dealer.receive(keys[2])
        own = self.sealed(
            run, Envelope("key", COORDINATOR, EVERYONE, 0, run.dealer._secret.public())
        )
        shown = Envelope("keys", COORDINATOR, EVERYONE, 0, pack(*keys, own))
        with pytest.raises(PayloadError, match="silo 3: a weak run key"):
            run.silos[0].receive(self.sealed(run, shown))

    @settings(max_examples=100)
    @given(st.binary(max_size=300))
    def test_any_bytes_at_all(self, content: bytes) -> None:
        run = SealedRun()
        for machine in (run.dealer, run.silos[0]):
            with pytest.raises(ProtocolError):
                machine.receive(content)

    def test_other_runs_and_parameters(self) -> None:
        other = SealedRun(run=b"x" * 16)
        with pytest.raises(BindingError, match="another run"):
            SealedRun().dealer.receive(other.silos[0].start()[0].raw)
        other = SealedRun(parameters(nodes=21))
        with pytest.raises(BindingError, match="other parameters"):
            SealedRun().dealer.receive(other.silos[0].start()[0].raw)


class TestParameters:
    def test_the_digest_covers_everything(self) -> None:
        each, bounded = Noise("each", 2, 1), BoundedNoise("each", 1, 18, 3, 1, 1)
        degrees = Output("degrees", each)

        def with_bound(**changes: int) -> SealedParameters:
            given = {"factor": 1, "cap": 18, "margin": 3, "numerator": 1, "denominator": 1}
            noise = BoundedNoise("each", **(given | changes))
            return SealedParameters(3, 20, b"nodes", (degrees, Output("triangles", noise)), 64)

        varied = [
            parameters(noise=each),
            parameters(silos=4, noise=each),
            parameters(nodes=21, noise=each),
            parameters(noise=each, subject=b"n"),
            parameters(noise=each, chunk_pairs=128),
            parameters(names=EVERYTHING[:3], noise=each),
            parameters(names=EVERYTHING[::-1], noise=each),
            parameters(noise=Noise("each", 3, 1)),
            parameters(noise=Noise("each", 2, 3)),
            parameters(noise=Noise("shared", 2, 1)),
            parameters(noise=Noise("shared", 2, 1, 2)),
            with_bound(),
            *(with_bound(**{name: 7}) for name in bounded.__dataclass_fields__
              if name not in ("kind", "shares")),
        ]  # fmt: skip
        assert len({given.digest for given in varied}) == len(varied) == 17

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"silos": 1}, "two silos"),
            ({"silos": 65}, "64 silos"),
            ({"nodes": 1}, "a pair"),
            ({"nodes": 300_000, "names": ("edges",)}, "262,144 nodes"),
            ({"nodes": 20_001}, r"20,001 would take 1\.\d GB .* 1\.\d GB and receive"),
            ({"chunk_pairs": 100}, "whole 64-bit words"),
            ({"chunk_pairs": 1 << 19}, "262,144 pairs"),
            ({"names": ()}, "at least one output"),
            ({"names": ("edges", "edges")}, "each at most once"),
            ({"names": ("wedges",)}, "unknown output"),
            ({"noise": BoundedNoise("each", 1, 5, 1, 1, 1)}, "degrees with their own noise"),
        ],
    )
    def test_nonsense_is_refused(self, changes: dict, message: str) -> None:
        with pytest.raises(ArgumentError, match=message):
            parameters(**changes)

    def test_noise_that_makes_no_sense(self) -> None:
        for wrong in (
            ("none", 1, 1, 1), ("each", 0, 1, 1), ("each", 1, 0, 1), ("shared", 1, 1, 0),
            ("each", 1, 1, 2), ("each", 2**51, 1, 1), ("each", 2**63, 2**63, 1),
        ):  # fmt: skip
            with pytest.raises(ArgumentError):
                Noise(*wrong)  # type: ignore[arg-type]
        for wrong in (("each", 0, 1, 1, 1, 1), ("each", 1, 0, 1, 1, 1), ("each", 1, 1, -1, 1, 1)):
            with pytest.raises(ArgumentError):
                BoundedNoise(*wrong)  # type: ignore[arg-type]
        assert isinstance(SILENCE, Silence)

    def test_degrees_alone_have_no_matrix(self) -> None:
        given = parameters(nodes=100_000, names=("degrees",), noise=Noise("each", 2, 1))
        assert given.steps == 3
        assert sealed_cost(100_000, 3, ["degrees"]).memory < 50e6

    def test_wrong_parties_cannot_be_built(self) -> None:
        run = SealedRun()
        with pytest.raises(ArgumentError, match="not that of silo 1"):
            SealedSilo(run.parameters, run.roster, RUN, 0, run.keys[1], SeededEntropy(1), no_bits)
        with pytest.raises(ArgumentError, match="roster has 3 silos"):
            SealedSilo(parameters(4), run.roster, RUN, 0, run.keys[0], SeededEntropy(1), no_bits)


class TestKernel:
    @pytest.mark.parametrize("n", [*range(2, 71), 127, 263, 521])
    def test_squares_are_those_of_numpy(self, n: int) -> None:
        words = np.frombuffer(np.random.default_rng(n).bytes(4 * n * (n - 1)), dtype="<u8")
        upper = np.triu_indices(n, 1)
        full = np.zeros((n, n), dtype=np.uint64)
        full[upper] = words
        full += full.T
        expected = (full @ full)[upper]
        for level in _core.simd_levels():
            assert (_core.symmetric_square(n, words, level) == expected).all()
