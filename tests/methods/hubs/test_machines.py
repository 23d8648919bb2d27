"""The machines of a hub search: what they sum, what they refuse, what they give away."""

import hashlib
import hmac

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from silograph import _core
from silograph.dp.laplace import Share
from silograph.errors import (
    ArgumentError,
    BindingError,
    OrderError,
    PayloadError,
    SignatureError,
    ViewsDifferError,
)
from silograph.messages.envelope import EVERYONE, Binding, Envelope, peek, seal
from silograph.messages.identity import COORDINATOR, pack
from silograph.methods.masked.machines import State
from tests import limits
from tests.methods.hubs.run import NODES, QUIET, HubRun, parameters
from tests.methods.masked.run import RUN, MaskedRun
from tests.methods.masked.test_machines import expand
from tests.support.parties import SeededEntropy

NOISY = Share(32, 1, 2)


def numbers(silo: int) -> np.ndarray:
    return np.arange(NODES) * (silo + 1) - 7


def words(raw: bytes) -> np.ndarray:
    return np.frombuffer(peek(raw).payload, dtype="<u8")


class TestResult:
    @pytest.mark.parametrize("silos", [2, 3, 5])
    @pytest.mark.parametrize("nodes", [1, 128, NODES])
    def test_the_sums_of_all_silos(self, silos: int, nodes: int) -> None:
        run = HubRun(parameters(silos=silos, pairs=nodes)).agree()
        held = [numbers(silo)[:nodes] for silo in range(silos)]
        result = run.finish(held)
        assert result.tolist() == sum(held).tolist()
        assert result.dtype == np.int64
        assert run.coordinator.state is State.DONE

    def test_the_largest_numbers(self) -> None:
        """Whatever a sum of degrees can be, and what is below zero."""
        run = HubRun(parameters(pairs=2)).agree()
        assert run.finish([[2**61, -(2**61)]] * 3).tolist() == [3 * 2**61, -3 * 2**61]

    def test_noise_is_what_every_silo_draws(self) -> None:
        """The shares of all silos, drawn again from their secrets, chunk by chunk."""
        run = HubRun(parameters(share=NOISY)).agree()
        found = run.finish([numbers(silo) for silo in range(3)])
        expected = sum(numbers(silo) for silo in range(3)).astype(np.int64)
        for silo in range(3):
            entropy = SeededEntropy(100 + silo)
            entropy.bytes(32)
            secret = entropy.bytes(32)
            for chunk, place in enumerate((slice(0, 128), slice(128, NODES))):
                label = pack(b"silograph/hubs/noise/v1", str(chunk).encode())
                seed = hmac.digest(secret, label, "sha256")
                expected[place] += _core.polya_difference(len(expected[place]), 32, 1, 2, seed)
        assert found.tolist() == expected.tolist()
        assert len(set(found - sum(numbers(silo) for silo in range(3)))) > 20

    def test_golden_transcript(self) -> None:
        """Equal seeds give equal bytes: the wire format is frozen here."""
        run = HubRun(parameters(share=NOISY)).agree()
        raw = run.chunk(0, 0, numbers(0))
        assert hashlib.sha256(raw).hexdigest() == (
            "85e90aa06c2b2a60736c902ad13b3e09c79359d385bbf69abecae5cdbf2be651"
        )
        assert raw == run.chunk(0, 0, numbers(0))


class TestWhatLeaks:
    @pytest.mark.parametrize("value", [0, 1, 2**40])
    def test_a_single_vector_is_uniform(self, value: int) -> None:
        """Every byte of what one silo uploads, whatever it has: chi-square."""
        count = 1 << 15
        run = HubRun(parameters(pairs=count, chunk_pairs=count, silos=2)).agree()
        payload = peek(run.chunk(0, 0, np.full(count, value))).payload
        every = np.frombuffer(payload, np.uint8).reshape(count, 8)
        low, high = limits.chi_square(255)
        for place in range(8):
            counts = np.bincount(every[:, place], minlength=256)
            assert low <= stats.chisquare(counts).statistic <= high

    def test_masks_differ_between_chunks_runs_and_silos(self) -> None:
        vectors = []
        for seed in (1, 2):
            run = HubRun(parameters(pairs=256), seed=seed).agree()
            vectors += [words(run.chunk(i, n)) for i in range(3) for n in range(2)]
        assert len(np.unique(np.concatenate(vectors))) == 12 * 128

    def test_noise_differs_between_chunks_and_silos(self) -> None:
        """The sums of chunks of zeros are all noise, and no two are alike."""
        run = HubRun(parameters(share=Share(1 << 40, 1, 2), pairs=384)).agree()
        found = run.finish([None] * 3)
        assert len(np.unique(found)) == 384
        again = HubRun(parameters(share=Share(1 << 40, 1, 2), pairs=384), seed=2).agree()
        assert not np.isin(found, again.finish([None] * 3)).any()

    def test_masks_are_what_is_written_down(self) -> None:
        """The whole way from two secrets to a vector, again with another library."""
        count, chunk, secrets = 1024 + 9, 5, (bytes([1] * 32), bytes([2] * 32))
        first, second = (_core.WordMasker(secret) for secret in secrets)
        values = np.arange(count) - 500
        keys = [X25519PrivateKey.from_private_bytes(expand(s, b"run-key/v1", b"")) for s in secrets]
        secret = expand(keys[0].exchange(keys[1].public_key()), b"pair/v1", b"both ends")
        seed = expand(secret, b"mask/v2", chunk.to_bytes(8, "little"))
        masks = b""
        for number, size in enumerate((1024, 9)):
            mode = modes.CTR(number.to_bytes(8, "big") + bytes(8))
            masks += Cipher(algorithms.AES256(seed), mode).encryptor().update(bytes(8 * size))
        for masker, other, add in ((first, second, True), (second, first, False)):
            shared = masker.agree([(other.public(), b"both ends", add)])
            wire = np.frombuffer(masker.contribute_words(shared, chunk, values), "<u8")
            mask = np.frombuffer(masks, "<u8")
            plain = wire - mask if add else wire + mask
            assert plain.view(np.int64).tolist() == values.tolist()

    def test_message_sizes_depend_on_the_parameters_alone(self) -> None:
        sizes = set()
        for held in (None, np.ones(NODES), np.full(NODES, 2**50)):
            for share in (QUIET, NOISY):
                run = HubRun(parameters(share=share)).agree()
                raw = [run.chunk(0, n, held) for n in range(2)]
                assert [len(peek(one).payload) for one in raw] == [8 * 128, 8 * 72]
                sizes.add(tuple(map(len, raw)))
        assert len(sizes) == 1

    def test_secrets_are_not_shown(self) -> None:
        run = HubRun()
        for thing in (*run.silos, run.silos[0]._masker):
            assert len(repr(thing) + str(thing)) < 200


class TestOrder:
    def test_no_chunk_before_the_ledger(self) -> None:
        run = HubRun()
        bundle = run.relay(run.key_messages())
        bundle = run.relay([silo.receive(bundle)[0].raw for silo in run.silos])
        run.silos[0].receive(bundle)
        with pytest.raises(OrderError, match="agreed, not yet authorised"):
            run.chunk(0, 0)
        run.silos[0].authorise()
        assert run.chunk(0, 0)

    def test_chunks_are_taken_once_and_in_range(self) -> None:
        run = HubRun().agree()
        raw = run.chunk(0, 0)
        run.coordinator.receive(raw)
        with pytest.raises(OrderError, match="of silo 1: chunk 0 came twice"):
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
        assert run.coordinator.progress == (128, NODES)

    def test_chunks_may_come_in_any_order(self) -> None:
        run = HubRun().agree()
        for place, number in ((2, 1), (0, 0), (1, 1), (2, 0), (0, 1), (1, 0)):
            run.coordinator.receive(run.chunk(place, number, numbers(place)))
        expected = sum(numbers(place) for place in range(3))
        assert run.coordinator.result().tolist() == expected.tolist()

    def test_a_chunk_cannot_be_made_again_from_other_numbers(self) -> None:
        run = HubRun().agree()
        first = run.chunk(0, 0, numbers(0))
        other = numbers(0)
        other[5] += 1
        with pytest.raises(OrderError, match="other bits"):
            run.chunk(0, 0, other)
        assert run.chunk(0, 0, numbers(0)) == first

    def test_a_silo_needs_a_number_for_every_node(self) -> None:
        run = HubRun().agree()
        for size in (0, 8 * 127, 8 * 128 - 1, 8 * 129):
            with pytest.raises(PayloadError, match="1024 bytes were due"):
                run.silos[0].chunk(0, bytes(size))


class TestHostile:
    def message(
        self, run: HubRun, place: int, name: str, payload: bytes, sequence: int = 0
    ) -> bytes:
        binding = Binding(RUN, run.parameters.digest, run.roster)
        return seal(binding, run.keys[place], Envelope(name, place, COORDINATOR, sequence, payload))

    @pytest.mark.parametrize("size", [0, 1, 8 * 127, 8 * 128 + 1, 8 * 129])
    def test_a_vector_of_the_wrong_size_changes_nothing(self, size: int) -> None:
        run = HubRun().agree()
        bad = self.message(run, 1, "chunk", bytes(size))
        with pytest.raises(PayloadError, match=f"of silo 2: chunk 0: 1024 bytes .* not {size}"):
            run.coordinator.receive(bad)
        assert run.coordinator.missing() == {}
        held = [numbers(silo) for silo in range(3)]
        assert run.finish(held).tolist() == sum(held).tolist()

    def test_a_chunk_that_is_not_there(self) -> None:
        run = HubRun().agree()
        with pytest.raises(OrderError, match="there is no chunk 2"):
            run.coordinator.receive(self.message(run, 1, "chunk", bytes(8 * 72), 2))

    def test_a_chunk_before_the_keys(self) -> None:
        run = HubRun()
        with pytest.raises(OrderError, match="not while in state"):
            run.coordinator.receive(self.message(run, 1, "chunk", bytes(8 * 128)))

    def test_a_swapped_run_key(self) -> None:
        run = HubRun()
        messages = run.key_messages()
        binding = Binding(RUN, run.parameters.digest, run.roster)
        forged = Envelope("key", 1, EVERYONE, 0, bytes([9] * 32))
        messages[1] = seal(binding, run.keys[-1], forged)
        bundle = Envelope("keys", COORDINATOR, EVERYONE, 0, pack(*messages))
        with pytest.raises(SignatureError):
            run.silos[0].receive(seal(binding, run.keys[-1], bundle))
        assert run.silos[0].state is State.KEYS

    def test_silos_that_were_shown_different_keys(self) -> None:
        """Silo 2 has two keys, and the coordinator shows one to each of the others."""
        run, other = HubRun(), HubRun(seed=2)
        keys, second = run.key_messages(), other.key_messages()
        binding = Binding(RUN, run.parameters.digest, run.roster)

        def bundle(name: str, messages: list[bytes]) -> bytes:
            made = Envelope(name, COORDINATOR, EVERYONE, 0, pack(*messages))
            return seal(binding, run.keys[-1], made)

        shown = [bundle("keys", keys), bundle("keys", [keys[0], keys[1], second[2]])]
        confirms = [run.silos[i].receive(shown[i])[0].raw for i in range(2)]
        confirms.append(run.silos[2].receive(shown[0])[0].raw)
        with pytest.raises(ViewsDifferError, match="saw other keys"):
            run.silos[0].receive(bundle("confirms", confirms))

    def test_messages_of_a_union_are_not_those_of_a_search(self) -> None:
        """The same parties and the same run: parameters bind every message."""
        run, union = HubRun().agree(), MaskedRun().agree()
        with pytest.raises(BindingError):
            run.coordinator.receive(union.chunk(0, 0))


class TestParameters:
    def test_every_parameter_is_in_the_digest(self) -> None:
        changes = [
            {}, {"share": NOISY}, {"share": Share(1, 1000, 3)}, {"share": Share(1, 1001, 2)},
            {"silos": 4}, {"pairs": NODES + 1}, {"subject": b"other"}, {"chunk_pairs": 64},
        ]  # fmt: skip
        assert len({parameters(**change).digest for change in changes}) == len(changes)

    @pytest.mark.parametrize(
        "change", [{"silos": 1}, {"pairs": 0}, {"chunk_pairs": 32}, {"chunk_pairs": 100}]
    )
    def test_nonsense(self, change: dict[str, int]) -> None:
        with pytest.raises(ArgumentError):
            parameters(**change)

    def test_sums_fit(self) -> None:
        """The largest study and the widest noise do; more is refused."""
        widest = Share(1 << 50, 1, 64)
        assert parameters(share=widest, silos=64, pairs=1 << 31)
        with pytest.raises(ArgumentError, match="64-bit"):
            parameters(share=widest, silos=64, pairs=1 << 57)
