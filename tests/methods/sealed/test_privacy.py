"""What the sealed protocol shows to whom.

Exact enumeration over small rings is in ``crates/core/src/shares/tests.rs``; here the machines
themselves are looked into: what they hold, send and open.
"""

import gc
from collections.abc import Iterator
from itertools import combinations
from types import FunctionType

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from silograph import _core
from silograph.errors import PayloadError
from silograph.messages.envelope import EVERYONE, Binding, Envelope, peek
from silograph.messages.identity import COORDINATOR, pack
from silograph.messages.secrecy import Lock
from silograph.methods.sealed.noise import FACTORS, BoundedNoise, Noise, Output
from silograph.methods.sealed.opening import Opening
from silograph.methods.sealed.rounds import OPENED_ROUNDS, State
from tests import limits
from tests.methods.sealed.run import RUN, Edges, SealedRun, parameters

Words = npt.NDArray[np.uint64]


def everything(nodes: int) -> Edges:
    return set(combinations(range(nodes), 2))


def openings(run: SealedRun) -> dict[tuple[str, int], list[Words]]:
    """What each silo opened, decrypted by another silo, by (round, sequence)."""
    found: dict[tuple[str, int], dict[int, Words]] = {}
    for _, to, raw in run.messages:
        message = peek(raw)
        if message.round in OPENED_ROUNDS and to not in (COORDINATOR, message.sender):
            share = run.silos[to]._locks[message.sender].open(message)
            at = message.round, message.sequence
            found.setdefault(at, {})[message.sender] = np.frombuffer(share, dtype="<u8")
    return {at: [shares[i] for i in sorted(shares)] for at, shares in found.items()}


def opened(run: SealedRun) -> dict[tuple[str, int], Words]:
    """What each step opened: the shares joined, by XOR or by addition."""
    joined = {}
    for (name, sequence), shares in openings(run).items():
        bits = name == "open" and sequence % run.parameters.steps <= run.parameters.levels
        joined[name, sequence] = (np.bitwise_xor if bits else np.add).reduce(shares)
    return joined


def uniform_bytes(words: Words) -> bool:
    """Chi-square of each of the eight bytes of a word, and of its lowest and highest bits."""
    columns = words.view(np.uint8).reshape(-1, 8)
    low, high = limits.chi_square(255)
    for column in columns.T:
        found = stats.chisquare(np.bincount(column, minlength=256)).statistic
        if not low <= found <= high:
            return False
    fewest, most = limits.binomial(len(words), 0.5, variables=2)
    ones = (int((words & np.uint64(1)).sum()), int((words >> np.uint64(63)).sum()))
    return all(fewest <= count <= most for count in ones)


class TestOpenings:
    @pytest.mark.slow
    @pytest.mark.parametrize("full", [False, True], ids=["empty", "complete"])
    def test_every_opened_vector_is_uniform_and_so_is_every_share(self, full: bool) -> None:
        nodes = 600
        held = everything(nodes) if full else set()
        given = parameters(3, nodes, chunk_pairs=1 << 18, names=("triangles",))
        run = SealedRun(given).agree().open([held, set(), held])
        shares = openings(run)
        assert len(shares) == given.steps == 4
        for at, joined in opened(run).items():
            for words in (joined, *shares[at]):
                assert len(words) >= given.pairs // 64
                ones = int(np.unpackbits(words.view(np.uint8)).sum())
                low, high = limits.binomial(64 * len(words), 0.5)
                assert low <= ones <= high
        matrix = shares["open", 3]
        assert all(uniform_bytes(words) for words in (*matrix, np.add.reduce(matrix)))

    @pytest.mark.slow
    def test_each_bit_of_each_opening_over_many_runs(self) -> None:
        """Three nodes, two silos, 400 runs: exact binomial limits for every bit that is opened."""
        runs = 400
        for held in (set(), everything(3)):
            counts: dict[tuple[str, int], npt.NDArray[np.int64]] = {}
            for seed in range(runs):
                run = SealedRun(parameters(2, 3), seed=seed).agree().open([held, set()])
                for at, words in opened(run).items():
                    bits = np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.int64)
                    counts[at] = counts.get(at, 0) + bits
            # Three lanes of the AND and of the daBits, all 64 bits of D and of the degrees.
            lanes = [c[:3] for at, c in counts.items() if at[1] < 2 and at[0] == "open"]
            words = [c for at, c in counts.items() if at[1] == 2 or at[0] == "open-nodes"]
            every = np.concatenate([*lanes, *words])
            assert len(every) == 2 * 3 + 3 * 64 + 3 * 64
            low, high = limits.binomial(runs, 0.5, variables=2 * len(every))
            assert low <= every.min()
            assert every.max() <= high

    def test_no_mask_comes_twice(self) -> None:
        """On an empty graph D is −R and the degrees' opening −a: all words are different."""
        seen: list[Words] = []
        for seed in (1, 2):
            run = SealedRun(parameters(3, 40), seed=seed).agree().open([set()] * 3)
            for (name, sequence), shares in openings(run).items():
                if name == "open-nodes" or sequence % 4 == 3:
                    seen += [*shares, np.add.reduce(shares)]
                else:
                    seen += shares
        words = np.concatenate(seen)
        assert len(np.unique(words)) == len(words)

    def test_triples_of_different_gates_and_chunks_are_different(self) -> None:
        run = SealedRun(parameters(5, 40)).agree().open([set()] * 5)
        words = np.concatenate([w for (name, _), w in opened(run).items() if name == "open"])
        assert len(np.unique(words)) == len(words)


class TestOutputs:
    def given(self) -> SealedRun:
        noise = Noise("each", 3, 1)
        bounded = BoundedNoise("each", 1, 18, 2, 1, 1)
        outputs = (
            Output("edges", noise),
            Output("degrees", noise),
            Output("two_stars", bounded),
            Output("triangles", bounded),
        )
        return SealedRun(parameters(outputs=outputs))

    def test_shares_carry_noise_and_a_share_of_zero(self) -> None:
        """Exactly: what a silo sends, less its own share and noise, is its share of zero."""
        run = self.given().whole([everything(5), set(), {(0, 7)}])
        zeros: dict[int, list[Words]] = {0: [], 1: []}
        for phase, outputs in enumerate(run.parameters.phases):
            for place, silo in enumerate(run.silos):
                (sent,) = {
                    raw
                    for _, to, raw in run.rounds("output")
                    if to == COORDINATOR and peek(raw).sender == place
                    and peek(raw).sequence == phase
                }  # fmt: skip
                words = np.frombuffer(peek(sent).payload[32:], dtype="<u8").copy()
                parts = []
                for output in outputs:
                    label = pack(output.name.encode(), str(phase).encode())
                    seed = silo._secret.derive(b"silograph/sealed/noise/v1", label)
                    law = silo.result().noises[output.name]
                    drawn = law.draw(run.parameters.length(output), seed).view(np.uint64)
                    factor = np.uint64(FACTORS[output.name])
                    parts.append(silo._shares[output.name] + factor * drawn)
                zeros[phase].append(words - np.concatenate(parts))
        for shares in zeros.values():
            assert not np.add.reduce(shares).any()
        words = np.concatenate([*zeros[0], *zeros[1]])
        assert len(words) == 3 * 21 + 3 * 2
        assert words.all()
        assert len(np.unique(words)) == len(words)

    @pytest.mark.slow
    @pytest.mark.parametrize("silos", [2, 3])
    def test_each_output_share_is_uniform(self, silos: int) -> None:
        """Without noise and on an empty graph: every bit of every silo's share, over 300 runs."""
        runs, counts = 300, np.zeros((silos, 64), dtype=np.int64)
        for seed in range(runs):
            given = parameters(silos, 2, names=("edges",))
            run = SealedRun(given, seed=seed).whole([set()] * silos)
            for _, to, raw in run.rounds("output"):
                if to == COORDINATOR:
                    word = np.frombuffer(peek(raw).payload[32:], dtype=np.uint8)
                    counts[peek(raw).sender] += np.unpackbits(word, bitorder="little")
        low, high = limits.binomial(runs, 0.5, variables=counts.size)
        assert low <= counts.min()
        assert counts.max() <= high


def reachable(root: object) -> Iterator[object]:
    """Everything that an object holds, however deep; not the modules and classes it is made of."""
    seen, waiting = set(), [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, (type, type(gc))):
            continue
        seen.add(id(thing))
        yield thing
        if isinstance(thing, FunctionType):
            # Of a function what it closes over, not the module that it was written in.
            waiting += [cell.cell_contents for cell in thing.__closure__ or ()]
        else:
            waiting += gc.get_referents(thing)


class TestWhoHoldsWhat:
    def test_the_walk_sees_what_is_held(self) -> None:
        run = SealedRun().agree().open([set()] * 3)
        held = {type(thing) for thing in reachable(run.silos[0])}
        assert {Opening, Lock, _core.AeadKey, _core.Dealt, _core.OpenedMatrix} <= held

    @pytest.mark.parametrize("stop", ["opening", "done"])
    def test_the_coordinator_holds_no_opening_and_no_key_to_one(self, stop: str) -> None:
        run = SealedRun().agree().open([everything(20), set(), set()])
        if stop == "done":
            run.finish()
        silos_only = (Opening, _core.Dealt, _core.SharedChunk, _core.OpenedMatrix)
        plain = {w.tobytes() for shares in openings(run).values() for w in shares}
        plain |= {w.tobytes() for w in opened(run).values()}
        plain |= {silo._sender_key for silo in run.silos}
        keys, candidates = [], []
        for thing in reachable(run.dealer):
            assert not isinstance(thing, silos_only)
            if isinstance(thing, (bytes, bytearray)):
                assert not any(secret in thing for secret in plain if len(secret) >= 8)
                candidates += [bytes(thing)] if len(thing) == 32 else []
            if isinstance(thing, np.ndarray):
                assert thing.tobytes() not in plain
            if isinstance(thing, _core.AeadKey):
                keys.append(thing)
        assert len(keys) == 3
        assert len(candidates) >= 3
        binding = Binding(RUN, run.parameters.digest, run.roster)
        messages = [peek(raw) for name in OPENED_ROUNDS for _, _, raw in run.rounds(name)]
        messages = list({(m.sender, m.round, m.sequence): m for m in messages}.values())
        for key in [*keys, *map(_core.AeadKey, candidates)]:
            lock = Lock(bytes(32), binding, OPENED_ROUNDS)
            lock._key = key
            for message in messages:
                with pytest.raises(PayloadError, match="decrypted"):
                    lock.open(message)

    def test_silos_hold_nothing_of_the_dealer(self) -> None:
        run = SealedRun().agree().open([set()] * 3)
        for place, silo in enumerate(run.silos):
            others = {seed for i, seed in enumerate(run.dealer._seeds) if i != place}
            for thing in reachable(silo):
                assert not isinstance(thing, (_core.Dealing, _core.DealtMatrix))
                assert not isinstance(thing, bytes) or thing not in others

    def test_secrets_are_not_shown(self) -> None:
        run = SealedRun().agree().open([set()] * 3)
        for machine in (run.dealer, *run.silos):
            for thing in reachable(machine):
                if type(thing).__module__.startswith("silograph") and not isinstance(
                    thing, (Envelope, Binding)
                ):
                    text = repr(thing)
                    assert run.silos[0]._sender_key.hex() not in text
                    assert repr(run.dealer._seeds[0]) not in text
        assert len(repr(run.dealer) + repr(run.silos[0])) < 150


class TestMessages:
    def test_sizes_depend_on_the_parameters_alone(self) -> None:
        def sizes(holdings: list[Edges]) -> list[tuple[int, int, str, int]]:
            run = SealedRun().whole(holdings)
            return [(a, b, peek(raw).round, len(raw)) for a, b, raw in run.messages]

        first = sizes([set(), set(), set()])
        for holdings in ([everything(20)] * 3, [set(), {(0, 1)}, everything(9)]):
            assert sizes(holdings) == first

    def test_no_message_is_larger_than_four_mebibytes(self) -> None:
        given = parameters(64, 1000, chunk_pairs=1 << 18)
        largest = max(given.opening_bytes(0, step) for step in range(given.steps))
        assert max(largest, given.correction_bytes(0)) + 500 < 4 << 20

    def test_nothing_before_the_ledger_depends_on_edges(self) -> None:
        runs = []
        for held in (set(), everything(20)):
            run = SealedRun().agree()
            assert run.silos[0].state is State.AGREED
            before = list(run.messages)
            run.deliver(run.ready([held] * 3), until=lambda _, __, raw: peek(raw).round == "readys")
            runs.append((before, run.messages[: len(before) + 3]))
        assert runs[0] == runs[1]

    def test_every_opening_is_sent_up_once(self) -> None:
        run = SealedRun().whole([set()] * 3)
        sent = [peek(raw) for _, to, raw in run.messages if to == COORDINATOR]
        places = [(m.sender, m.round, m.sequence) for m in sent]
        assert len(set(places)) == len(places)

    def test_corrections_go_to_one_silo(self) -> None:
        run = SealedRun().whole([set()] * 3)
        for name in ("deal", "deal-matrix", "deal-nodes"):
            assert {to for _, to, _ in run.rounds(name)} == {2}


class TestLock:
    def lock(self, key: bytes = bytes(32)) -> tuple[Lock, Binding]:
        run = SealedRun()
        binding = Binding(RUN, run.parameters.digest, run.roster)
        return Lock(key, binding, OPENED_ROUNDS), binding

    def test_every_round_and_sequence_has_a_keystream_of_its_own(self) -> None:
        lock, _ = self.lock()
        streams = [
            lock.close(Envelope(name, 0, EVERYONE, sequence, bytes(64))).payload[:64]
            for name in OPENED_ROUNDS
            for sequence in (*range(300), 1 << 16, (1 << 32) - 1)
        ]
        assert len(set(streams)) == len(streams)

    def test_the_whole_header_is_authenticated(self) -> None:
        lock, binding = self.lock()
        closed = lock.close(Envelope("open", 0, EVERYONE, 5, b"words"))
        assert lock.open(closed) == b"words"
        payload = closed.payload
        for other in (
            Envelope("open-nodes", 0, EVERYONE, 5, payload),
            Envelope("open", 1, EVERYONE, 5, payload),
            Envelope("open", 0, 1, 5, payload),
            Envelope("open", 0, EVERYONE, 6, payload),
        ):
            with pytest.raises(PayloadError, match="decrypted"):
                lock.open(other)
        for bound in (
            Binding(b"x" * 16, binding.parameters, binding.roster),
            Binding(RUN, bytes(32), binding.roster),
            Binding(RUN, binding.parameters, SealedRun(parameters(2)).roster),
        ):
            with pytest.raises(PayloadError, match="decrypted"):
                Lock(bytes(32), bound, OPENED_ROUNDS).open(closed)
        with pytest.raises(PayloadError, match="decrypted"):
            self.lock(bytes([1] * 32))[0].open(closed)

    def test_keys_are_of_one_sender_and_one_run(self) -> None:
        found = [silo._sender_key for seed in (1, 2) for silo in SealedRun(seed=seed).silos]
        assert len(set(found)) == 6
