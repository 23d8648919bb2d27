"""The masked union's machines: what they compute, what they refuse, what they give away."""

import hashlib
import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from silograph import _core
from silograph.dp.channel import limbs
from silograph.errors import (
    ArgumentError,
    BindingError,
    EnvelopeError,
    OrderError,
    PayloadError,
    ProtocolError,
    SignatureError,
    ViewsDifferError,
)
from silograph.messages.envelope import EVERYONE, Binding, Envelope, open_envelope, peek, seal
from silograph.messages.identity import COORDINATOR, Identity, Member, Roster, pack, unpack
from silograph.methods.masked.machines import (
    COORDINATOR_STEPS,
    SILO_STEPS,
    MaskedCoordinator,
    MaskedParameters,
    MaskedSilo,
    State,
    packed_bytes,
)
from tests import limits
from tests.methods.masked.run import PAIRS, RUN, MaskedRun, digits_of_a_word, elements, parameters
from tests.support.parties import SeededEntropy, no_bits


def expand(secret: bytes, label: bytes, context: bytes) -> bytes:
    """HKDF-SHA256 for the use that a label and a context name."""
    label = b"silograph/" + label
    info = len(label).to_bytes(8, "little") + label + context
    return HKDF(hashes.SHA256(), 32, salt=None, info=info).derive(secret)


def uniform(seed: bytes, number: int, q: int, digits: int, count: int) -> np.ndarray:
    """Elements of a stream: digits of 16-bit fractions, unless their low half is too small."""
    cipher = Cipher(algorithms.AES256(seed), modes.CTR(number.to_bytes(8, "big") + bytes(8)))
    words = np.frombuffer(cipher.encryptor().update(bytes(8 * count + 1024)), dtype="<u2")
    product = words.astype(np.int64) * q**digits
    product = product[product % 65536 >= 65536 % q**digits] // 65536
    needed = -(-count // digits)
    powers = q ** np.arange(digits - 1, -1, -1)
    return (product[:needed] // powers[:, None] % q).ravel()[:count]


def bit(result: bytes, k: int) -> int:
    return result[k // 8] >> k % 8 & 1


class TestResult:
    @pytest.mark.parametrize("silos", [2, 3, 5])
    def test_without_coins_only_held_pairs_can_show(self, silos: int) -> None:
        run = MaskedRun(parameters(b=Fraction(0), silos=silos)).agree()
        holdings = [set(range(i, PAIRS, 7 + i)) for i in range(silos)]
        result = run.finish(holdings)
        held = set().union(*holdings)
        shown = {k for k in range(PAIRS) if bit(result, k)}
        assert shown <= held
        assert len(shown) > 0.8 * len(held)
        assert run.coordinator.state is State.DONE

    def test_golden_transcript(self) -> None:
        """Equal seeds give equal bytes: the wire format is frozen here."""
        run = MaskedRun().agree()
        raw = run.chunk(0, 0, {1, 2, 3})
        assert (
            hashlib.sha256(raw).hexdigest()
            == "cfe206c48443e2e4ca9037f3670613b66e99a31f87b5a8b0977da7a8f6176976"
        )
        assert raw == run.chunk(0, 0, {1, 2, 3})

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "holders",
        [(), (0,), *(pytest.param(h, marks=pytest.mark.whole) for h in ((2,), (0, 1, 2)))],
    )
    def test_every_pair_follows_the_channel(self, holders: tuple[int, ...]) -> None:
        """Exact binomial limits for each place in a chunk and in the last, shorter one.

        Over 300 runs, each with five whole chunks: 1,500 draws for each place of a whole chunk.
        """
        runs, whole, rest = 300, 5, 72
        pairs = 128 * whole + rest
        given = parameters(q=3, b=Fraction(1, 8), pairs=pairs)
        everything, counts, last = set(range(pairs)), np.zeros(128, np.int64), np.zeros(rest, int)
        for seed in range(runs):
            run = MaskedRun(given, seed=seed).agree()
            result = run.finish([everything if i in holders else set() for i in range(3)])
            bits = np.unpackbits(np.frombuffer(result, dtype=np.uint8), bitorder="little")
            counts += bits[: 128 * whole].reshape(whole, 128).sum(axis=0, dtype=np.int64)
            last += bits[128 * whole : pairs]
        shown = float(Fraction(2, 3) * (1 if holders else 1 - (1 - Fraction(1, 8)) ** 3))
        for found, draws in ((counts, runs * whole), (last, runs)):
            low, high = limits.binomial(draws, shown)
            assert low <= found.min()
            assert found.max() <= high
            low, high = limits.binomial(draws * len(found), shown)
            assert low <= found.sum() <= high


class TestWhatLeaks:
    @pytest.mark.slow
    @pytest.mark.parametrize("held", [set(), set(range(PAIRS))], ids=["nothing", "everything"])
    def test_a_single_vector_is_uniform(self, held: set[int]) -> None:
        """What one silo uploads looks the same whatever it holds: chi-square on every element."""
        run = MaskedRun(parameters(pairs=1 << 18, chunk_pairs=1 << 18, silos=2)).agree()
        every = set(range(1 << 18)) if held else set()
        vector = peek(run.chunk(0, 0, every)).payload
        counts = np.bincount(elements(vector, 21, 1 << 18), minlength=21)
        assert len(counts) == 21
        statistic = stats.chisquare(counts).statistic
        low, high = limits.chi_square(20)
        assert low <= statistic <= high

    def test_the_sum_is_what_the_contributions_say_and_nothing_else(self) -> None:
        """Where nobody contributes, the masks leave exactly zero."""
        run = MaskedRun(parameters(b=Fraction(0))).agree()
        total = _core.MaskedSum(21, 128)
        for place in range(3):
            total.add(peek(run.chunk(place, 0)).payload)
        assert total.sums() == bytes(4 * 19)

    def test_masks_differ_between_chunks_runs_and_pairs_of_silos(self) -> None:
        vectors = []
        for seed in (1, 2):
            run = MaskedRun(parameters(b=Fraction(0), pairs=256), seed=seed).agree()
            vectors += [peek(run.chunk(i, n)).payload for i in range(3) for n in range(2)]
        assert len(set(vectors)) == 12
        for i, a in enumerate(vectors):
            for b in vectors[:i]:
                same = elements(a, 21, 128) == elements(b, 21, 128)
                assert same.sum() <= limits.binomial(128, 1 / 21)[1]

    @pytest.mark.parametrize("q", [2, 21, 171, 40_000])
    @pytest.mark.parametrize("holders", [(), (0,), (1, 2)])
    def test_the_sum_follows_its_law(self, q: int, holders: tuple[int, ...]) -> None:
        """Chi-square of what the coordinator learns, every element or groups of elements."""
        pairs, b = 1 << 18, Fraction(1, 8)
        run = MaskedRun(parameters(q=q, b=b, pairs=pairs, chunk_pairs=pairs)).agree()
        total = _core.MaskedSum(q, pairs)
        for place, silo in enumerate(run.silos):
            bits = (b"\xff" if place in holders else b"\0") * (pairs // 8)
            total.add(peek(silo.chunk(0, bits).raw).payload)
        sums = elements(total.sums(), q, pairs)
        # Zero by itself, the others in groups that are large enough for chi-square.
        group = 1 + np.arange(q) * min(q, 200) // q
        group[0] = 0
        chosen = 1.0 if holders else float(1 - (1 - b) ** 3)
        expected = pairs * chosen / q * np.bincount(group)
        expected[0] += pairs * (1 - chosen)
        counts, law = np.bincount(group[sums], minlength=len(expected)), expected > 0
        low, high = limits.chi_square(int(law.sum()) - 1)
        assert low <= stats.chisquare(counts[law], expected[law]).statistic <= high

    def test_coins_elements_and_masks_never_come_again(self) -> None:
        """Every word of coins, and every eight elements, over blocks, chunks, silos and runs."""
        pairs = (1 << 16) + 6400
        half, never = limbs(Fraction(1, 2)), limbs(Fraction(0))
        nothing, everything = bytes(pairs // 8), b"\xff" * (pairs // 8)
        coins, drawn, masks = [], [], []
        for secret in (bytes([1] * 32), bytes([2] * 32)):
            other = _core.Masker(bytes([3] * 32), 65_536, never)
            noisy, quiet = (_core.Masker(secret, 65_536, b) for b in (half, never))
            alone, shared = noisy.agree([]), quiet.agree([(other.public(), b"pair", True)])
            for chunk in (0, 1, 2**40):
                chosen = elements(noisy.contribute(alone, chunk, nothing, pairs), 65_536, pairs)
                coins.append(np.packbits(chosen != 0).view("V8"))
                drawn.append(noisy.contribute(alone, chunk, everything, pairs))
                masks.append(quiet.contribute(shared, chunk, nothing, pairs))
        assert len(np.unique(np.concatenate(coins))) == 6 * pairs // 64
        windows = np.frombuffer(b"".join(drawn + masks), dtype="V16")
        assert len(np.unique(windows)) == 12 * pairs // 8

    def test_coins_say_nothing_of_elements(self) -> None:
        """Each bit of each element is even where a coin has chosen it: exact binomial limits."""
        chunks, pairs = 4000, 64
        masker = _core.Masker(bytes([1] * 32), 256, limbs(Fraction(1, 2)))
        alone = masker.agree([])
        wire = [masker.contribute(alone, n, bytes(8), pairs) for n in range(chunks)]
        drawn = np.stack([elements(vector, 256, pairs) for vector in wire]).astype(np.uint8)
        ones = np.unpackbits(drawn[..., None], axis=2).sum(axis=0, dtype=np.int64)
        assert ones.shape == (pairs, 8)
        # A bit is one where the element is chosen and the bit of 256 equal elements is.
        low, high = limits.binomial(chunks, 1 / 4, variables=ones.size)
        assert low <= ones.min()
        assert ones.max() <= high

    @pytest.mark.parametrize(
        ("q", "digits", "block"), [(21, 3, 7168), (3, 7, 20480), (300, 1, 3072)]
    )
    def test_masks_are_what_is_written_down(self, q: int, digits: int, block: int) -> None:
        """The whole way from two secrets to a vector, again with another library."""
        pairs, chunk = block + 100, 5
        secrets, context = (bytes([1] * 32), bytes([2] * 32)), b"both ends"
        first, second = (_core.Masker(secret, q, limbs(Fraction(0))) for secret in secrets)
        shared = first.agree([(second.public(), context, True)])
        wire = first.contribute(shared, chunk, bytes(-(-pairs // 64) * 8), pairs)

        keys = [X25519PrivateKey.from_private_bytes(expand(s, b"run-key/v1", b"")) for s in secrets]
        secret = expand(keys[0].exchange(keys[1].public_key()), b"pair/v1", context)
        seed = expand(secret, b"mask/v2", chunk.to_bytes(8, "little"))
        found = elements(wire, q, pairs)
        in_word = digits_of_a_word(q)
        for number, start in enumerate(range(0, pairs, block)):
            # Whole words of the block, digit by digit; places past the last pair are dropped.
            count = -(-min(block, pairs - start) // in_word)
            places = uniform(seed, number, q, digits, count * in_word)
            expected = places.reshape(in_word, count).T.ravel()[: pairs - start]
            assert (found[start : start + block] == expected).all()

    @pytest.mark.parametrize("silos", [2, 3, 4])
    def test_every_two_silos_share_a_mask_of_their_own(self, silos: int) -> None:
        """Exactly: all others together can take off their own masks, never that of two honest ones.

        The context of every mask is written out here: run, parameters, roster, both ends.
        """
        run = MaskedRun(parameters(b=Fraction(0), silos=silos)).agree()
        secrets = [SeededEntropy(100 + i).bytes(32) for i in range(silos)]
        maskers = [_core.Masker(secret, 21, limbs(Fraction(0))) for secret in secrets]
        ends = [[m.public(), s.public] for m, s in zip(maskers, run.roster.silos, strict=True)]
        masks = {}
        for i, j in itertools.permutations(range(silos), 2):
            first, second = sorted((i, j))
            bound = (RUN, run.parameters.digest, run.roster.digest)
            context = pack(*bound, *ends[first], *ends[second])
            shared = maskers[i].agree([(maskers[j].public(), context, i < j)])
            wire = maskers[i].contribute(shared, 0, bytes(16), 128)
            masks[i, j] = elements(wire, 21, 128)
        assert len({m.tobytes() for m in masks.values()}) == silos * (silos - 1)
        for i in range(silos):
            vector = elements(peek(run.chunk(i, 0)).payload, 21, 128)
            assert (vector == sum(masks[i, j] for j in range(silos) if j != i) % 21).all()
            for j in range(i):
                assert not ((masks[i, j] + masks[j, i]) % 21).any()

    def test_message_sizes_depend_on_the_parameters_alone(self) -> None:
        sizes = set()
        for held in (set(), {1}, set(range(PAIRS))):
            run = MaskedRun().agree()
            sizes.add(tuple(len(run.chunk(0, n, held)) for n in range(2)))
            for n, pairs in enumerate((128, 72)):
                assert len(peek(run.chunk(0, n, held)).payload) == packed_bytes(21, pairs)
        assert len(sizes) == 1

    def test_secrets_are_not_shown(self) -> None:
        run = MaskedRun()
        for thing in (*run.silos, *run.keys, run.silos[0]._masker):
            text = repr(thing) + str(thing)
            assert bytes([1] * 32).hex() not in text
            assert len(text) < 200


class TestOrder:
    def test_no_chunk_before_the_ledger(self) -> None:
        run = MaskedRun()
        bundle = run.relay(run.key_messages())
        confirms = [silo.receive(bundle)[0].raw for silo in run.silos]
        bundle = run.relay(confirms)
        run.silos[0].receive(bundle)
        with pytest.raises(OrderError, match="agreed, not yet authorised"):
            run.chunk(0, 0)
        run.silos[0].authorise()
        assert run.chunk(0, 0)

    def test_every_step_outside_the_table_is_refused_and_changes_nothing(self) -> None:
        def at(state: State) -> MaskedSilo:
            silo = MaskedRun().silos[0]
            silo.state = state
            return silo

        for state in State:
            for event, act in (
                ("start", lambda s: s.start()),
                ("authorise", lambda s: s.authorise()),
                ("chunk", lambda s: s.chunk(0, bytes(16))),
            ):
                if (state, event) in SILO_STEPS:
                    continue
                silo = at(state)
                with pytest.raises(OrderError):
                    act(silo)
                assert silo.state is state

    def test_the_tables_lead_from_start_to_end(self) -> None:
        for table, start, end in (
            (SILO_STEPS, State.NEW, State.CHUNKS),
            (COORDINATOR_STEPS, State.KEYS, State.DONE),
        ):
            reached = {start}
            for _ in table:
                reached |= {after for (before, _), after in table.items() if before in reached}
            assert end in reached

    def test_a_bundle_cannot_come_twice_or_early(self) -> None:
        run = MaskedRun()
        bundle = run.relay(run.key_messages())
        confirm = run.silos[0].receive(bundle)[0].raw
        with pytest.raises(OrderError, match="'keys'"):
            run.silos[0].receive(bundle)
        assert run.silos[0].state is State.CONFIRMS
        run.coordinator.receive(confirm)
        with pytest.raises(OrderError, match="twice"):
            run.coordinator.receive(confirm)

    def test_chunks_are_taken_once_and_in_range(self) -> None:
        run = MaskedRun().agree()
        raw = run.chunk(0, 0)
        run.coordinator.receive(raw)
        with pytest.raises(OrderError, match=r"round 'chunk' of silo 1: chunk 0 came twice"):
            run.coordinator.receive(raw)
        assert run.coordinator.missing() == {0: [1, 2]}
        for place in (1, 2):
            run.coordinator.receive(run.chunk(place, 0))
        with pytest.raises(OrderError, match="came twice"):
            run.coordinator.receive(raw)
        with pytest.raises(OrderError, match="no chunk 2"):
            run.silos[0].chunk(2, bytes(16))
        with pytest.raises(OrderError, match="'result'"):
            run.coordinator.result()

    def test_chunks_do_not_come_long_before_their_turn(self) -> None:
        """Every chunk that is begun takes memory at the coordinator."""
        run = MaskedRun(parameters(pairs=64 * 40, chunk_pairs=64)).agree()
        for number in reversed(range(16)):
            run.coordinator.receive(run.chunk(0, number))
        with pytest.raises(OrderError, match="silo 1: chunk 32 came long before its turn"):
            run.coordinator.receive(run.chunk(0, 32))
        with pytest.raises(OrderError, match="silo 2: chunk 16 came long before its turn"):
            run.coordinator.receive(run.chunk(1, 16))
        run.coordinator.receive(run.chunk(0, 31))

    def test_a_chunk_cannot_be_made_again_from_other_bits(self) -> None:
        run = MaskedRun().agree()
        first = run.chunk(0, 0, {5})
        with pytest.raises(OrderError, match="other bits"):
            run.chunk(0, 0, {5, 6})
        assert run.chunk(0, 0, {5}) == first


class TestHostile:
    """Whoever carries messages can drop, change, swap, replay and invent them."""

    def forge(self, run: MaskedRun, place: int, name: str, payload: bytes, key: Identity) -> bytes:
        binding = Binding(RUN, run.parameters.digest, run.roster)
        return seal(binding, key, Envelope(name, place, EVERYONE, 0, payload))

    def bundle(self, run: MaskedRun, name: str, messages: list[bytes]) -> bytes:
        binding = Binding(RUN, run.parameters.digest, run.roster)
        return seal(
            binding, run.keys[-1], Envelope(name, COORDINATOR, EVERYONE, 0, pack(*messages))
        )

    def test_a_swapped_run_key(self) -> None:
        """The coordinator puts its own key for a silo's, and cannot sign it as that silo."""
        run = MaskedRun()
        messages = run.key_messages()
        messages[1] = self.forge(run, 1, "key", bytes([9] * 32), run.keys[-1])
        with pytest.raises(SignatureError, match=r"round 'key' of silo 2: .* not that of silo 2"):
            run.silos[0].receive(self.bundle(run, "keys", messages))
        assert run.silos[0].state is State.KEYS

    def test_a_helper_is_no_silo(self) -> None:
        """It is in the roster, and what it signs is its own; nobody hears it in a union."""
        run, helper = MaskedRun(), Identity(bytes([77] * 32))
        roster = replace(run.roster, helpers=(Member("notary", helper.public),))
        binding = Binding(RUN, run.parameters.digest, roster)
        coordinator = MaskedCoordinator(run.parameters, roster, RUN, run.keys[-1])
        silo = MaskedSilo(run.parameters, roster, RUN, 0, run.keys[0], SeededEntropy(1), no_bits)
        silo.start()
        for name in ("key", "confirm", "chunk"):
            raw = seal(binding, helper, Envelope(name, 3, COORDINATOR, 0, bytes(32)))
            with pytest.raises(OrderError, match="of notary: a helper has no part in this"):
                coordinator.receive(raw)
        for name in ("keys", "confirms"):
            raw = seal(binding, helper, Envelope(name, 3, EVERYONE, 0, bytes(32)))
            with pytest.raises(OrderError, match="silos speak through the coordinator"):
                silo.receive(raw)
        key = seal(binding, helper, Envelope("key", 3, EVERYONE, 0, bytes(32)))
        keys = [seal(binding, k, Envelope("key", i, EVERYONE, 0, bytes(32))) for i, k in
                enumerate(run.keys[:2])]  # fmt: skip
        bundle = Envelope("keys", COORDINATOR, EVERYONE, 0, pack(*keys, key))
        with pytest.raises(OrderError, match="key of silo 2 was due"):
            silo.receive(seal(binding, run.keys[-1], bundle))
        assert (silo.state, coordinator.state) == (State.KEYS, State.KEYS)

    def test_nobody_else_authorises_a_silo(self) -> None:
        """The coordinator sends the confirmations again, as a message with the name of a step."""
        run = MaskedRun()
        keys = run.relay(run.key_messages())
        confirms = [silo.receive(keys)[0].raw for silo in run.silos]
        silo = run.silos[0]
        silo.receive(self.bundle(run, "confirms", confirms))
        assert silo.state is State.AGREED
        for name in ("authorise", "start", "chunk"):
            with pytest.raises(OrderError, match="no such message"):
                silo.receive(self.bundle(run, name, confirms))
        assert silo.state is State.AGREED

    def test_steps_of_the_coordinator_are_no_messages(self) -> None:
        run = MaskedRun()
        for name in ("all keys", "all confirms", "all chunks"):
            with pytest.raises(OrderError, match="no such message"):
                run.coordinator.receive(self.forge(run, 0, name, bytes(32), run.keys[0]))
        run.relay(run.key_messages())

    def test_different_keys_to_different_silos(self) -> None:
        """Silo 2 signs two keys (or its identity was stolen); silos 1 and 3 see different ones."""
        run = MaskedRun()
        messages = run.key_messages()
        other = list(messages)
        other[1] = self.forge(
            run, 1, "key", MaskedRun(seed=5).silos[1]._masker.public(), run.keys[1]
        )
        confirms = [
            run.silos[0].receive(self.bundle(run, "keys", messages))[0].raw,
            run.silos[1].receive(self.bundle(run, "keys", messages))[0].raw,
            run.silos[2].receive(self.bundle(run, "keys", other))[0].raw,
        ]
        with pytest.raises(ViewsDifferError, match="silo 3"):
            run.silos[0].receive(self.bundle(run, "confirms", confirms))
        with pytest.raises(ViewsDifferError, match="silo 1"):
            run.silos[2].receive(self.bundle(run, "confirms", confirms))
        assert run.silos[0].state is State.CONFIRMS

    def test_a_confirmation_covers_run_parameters_roster_and_keys(self) -> None:
        """Equal secrets give equal run keys, so each change below is the only one."""
        views = []
        for run in (
            MaskedRun(),
            MaskedRun(run=b"x" * 16),
            MaskedRun(parameters(b=Fraction(1, 51))),
            MaskedRun(coordinator="another"),
            MaskedRun(seed=2),
        ):
            bundle = run.relay(run.key_messages())
            views.append({peek(silo.receive(bundle)[0].raw).payload for silo in run.silos})
        assert all(len(view) == 1 for view in views)
        assert len(set().union(*views)) == len(views)

    def test_our_own_key_comes_back_changed(self) -> None:
        run = MaskedRun()
        messages = run.key_messages()
        messages[0] = self.forge(run, 0, "key", bytes([9] * 32), run.keys[0])
        with pytest.raises(ViewsDifferError, match="came back changed"):
            run.silos[0].receive(self.bundle(run, "keys", messages))

    @pytest.mark.parametrize("weak", [bytes(32), b"\1" + bytes(31)])
    def test_a_weak_run_key(self, weak: bytes) -> None:
        run = MaskedRun()
        messages = run.key_messages()
        messages[2] = self.forge(run, 2, "key", weak, run.keys[2])
        with pytest.raises(PayloadError, match="silo 3: a weak run key"):
            run.silos[0].receive(self.bundle(run, "keys", messages))

    def test_messages_of_another_run_or_with_other_parameters(self) -> None:
        other = MaskedRun(run=b"x" * 16)
        with pytest.raises(BindingError, match="another run"):
            MaskedRun().coordinator.receive(other.key_messages()[0])
        for change in ({"q": 22}, {"b": Fraction(1, 49)}, {"pairs": 199}, {"subject": b"others"}):
            other = MaskedRun(parameters(**change))
            with pytest.raises(BindingError, match="other parameters"):
                MaskedRun().coordinator.receive(other.key_messages()[0])

    def test_a_message_for_someone_else_and_from_nobody(self) -> None:
        run = MaskedRun().agree()
        with pytest.raises(BindingError, match="someone else"):
            run.silos[1].receive(run.chunk(0, 0))
        with pytest.raises(BindingError, match="no party 7"):
            run.coordinator.receive(self.forge(run, 7, "key", bytes(32), run.keys[0]))

    def test_reordered_and_missing_messages_in_a_bundle(self) -> None:
        run = MaskedRun()
        first, second, third = run.key_messages()
        with pytest.raises(OrderError, match="key of silo 0 was due"):
            run.silos[0].receive(self.bundle(run, "keys", [second, first, third]))
        with pytest.raises(EnvelopeError, match="truncated"):
            run.silos[0].receive(self.bundle(run, "keys", [first, second]))
        with pytest.raises(OrderError, match="through the coordinator"):
            run.silos[0].receive(second)
        assert run.silos[0].state is State.KEYS

    @pytest.mark.parametrize(
        "damage", ["cut", "a word less", "longer", "a word more", "too large", "past the end"]
    )
    def test_a_chunk_that_cannot_be_right(self, damage: str) -> None:
        """128 pairs are 18 words of seven digits, and one of two."""
        run = MaskedRun().agree()
        vector = peek(run.chunk(1, 0)).payload
        assert len(vector) == 4 * 19
        changed = {
            "cut": vector[:-1],
            "a word less": vector[:-4],
            "longer": vector + b"\0",
            "a word more": vector + bytes(4),
            "too large": (21**7).to_bytes(4, "little") + vector[4:],
            "past the end": vector[:-4] + (21**2).to_bytes(4, "little"),
        }
        binding = Binding(RUN, run.parameters.digest, run.roster)
        raw = seal(binding, run.keys[1], Envelope("chunk", 1, COORDINATOR, 0, changed[damage]))
        with pytest.raises(PayloadError, match=r"round 'chunk' of silo 2: chunk 0"):
            run.coordinator.receive(raw)
        assert run.coordinator.missing() == {}
        run.coordinator.receive(run.chunk(1, 0))

    def test_every_flipped_byte_of_a_message_is_found(self) -> None:
        run = MaskedRun()
        raw = run.key_messages()[0]
        for position in range(len(raw)):
            damaged = bytearray(raw)
            damaged[position] ^= 1
            with pytest.raises(ProtocolError):
                run.coordinator.receive(bytes(damaged))
        assert run.coordinator.receive(raw) == []

    @settings(max_examples=300)
    @given(st.binary(max_size=400))
    def test_any_bytes_at_all(self, content: bytes) -> None:
        run = MaskedRun()
        for machine in (run.coordinator, run.silos[0]):
            with pytest.raises(ProtocolError):
                machine.receive(content)
        with pytest.raises(ProtocolError):
            unpack(content + b"\0", 3)

    def test_wrong_parties_cannot_be_built(self) -> None:
        run = MaskedRun()
        entropy = SeededEntropy(1)
        with pytest.raises(ArgumentError, match="not that of silo 1"):
            MaskedSilo(run.parameters, run.roster, RUN, 0, run.keys[1], entropy, no_bits)
        with pytest.raises(ArgumentError, match="roster has 3 silos"):
            MaskedSilo(
                parameters(silos=4), run.roster, RUN, 0, run.keys[0], SeededEntropy(1), no_bits
            )
        with pytest.raises(ProtocolError, match="16 bytes"):
            MaskedSilo(
                run.parameters, run.roster, b"short", 0, run.keys[0], SeededEntropy(1), no_bits
            )
        twice = run.roster.silos[0]
        with pytest.raises(ArgumentError, match="the same name"):
            Roster(run.roster.coordinator, (twice, twice))
        with pytest.raises(ArgumentError, match="the same key"):
            Roster(run.roster.coordinator, (twice, Member("other", twice.public)))
        with pytest.raises(SignatureError, match="not an Ed25519 public key"):
            Member("weak", b"\1" + bytes(31))
        for change in (
            {"q": 1},
            {"q": 65537},
            {"b": Fraction(2)},
            {"pairs": 0},
            {"chunk_pairs": 100},
        ):
            with pytest.raises(ArgumentError):
                parameters(**change)


def test_parameters_digest_covers_everything() -> None:
    base = parameters()
    changed = [
        parameters(q=22),
        parameters(b=Fraction(1, 51)),
        parameters(silos=4),
        parameters(pairs=201),
        parameters(subject=b"n"),
        parameters(chunk_pairs=64),
    ]
    assert len({p.digest for p in (base, *changed)}) == 7
    assert isinstance(base, MaskedParameters)


def test_an_envelope_opens_for_everyone_it_is_for() -> None:
    run = MaskedRun()
    binding = Binding(RUN, run.parameters.digest, run.roster)
    raw = run.key_messages()[0]
    for place in (0, 1, 2, COORDINATOR):
        assert open_envelope(binding, raw, receiver=place).round == "key"
