"""The ElGamal union's machines: what they compute, what changes at every hop, what they refuse."""

import hashlib
import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph.errors import (
    ArgumentError,
    BindingError,
    OrderError,
    PayloadError,
    ProtocolError,
    SignatureError,
    ViewsDifferError,
)
from silograph.messages.envelope import EVERYONE, Binding, Envelope, Outgoing, peek, seal
from silograph.messages.identity import COORDINATOR, pack, unpack
from silograph.methods.elgamal.cipher import CELL_BYTES
from silograph.methods.elgamal.coordinator import ElgamalCoordinator
from silograph.methods.elgamal.rounds import RECEIPT, ElgamalParameters, State
from silograph.methods.elgamal.silo import ElgamalSilo
from tests import limits
from tests.support.parties import SeededEntropy, identities, no_bits, roster_of

RUN = bytes(range(16))
PAIRS = 150


def parameters(variant: str = "blinded", **changes: object) -> ElgamalParameters:
    base = {"coin": Fraction(0), "silos": 3, "pairs": PAIRS, "subject": b"n", "chunk_pairs": 128}
    return ElgamalParameters(variant, **(base | changes))  # type: ignore[arg-type]


class ElgamalRun:
    """Silos and a coordinator with fixed identities; messages are delivered by hand."""

    def __init__(self, given: ElgamalParameters, run: bytes = RUN, seed: int = 1) -> None:
        self.parameters = given
        m = given.silos
        self.keys = identities(m)
        self.roster = roster_of(self.keys)
        self.binding = Binding(run, given.digest, self.roster)
        self.coordinator = ElgamalCoordinator(given, self.roster, run, self.keys[m])
        self.silos = [
            ElgamalSilo(
                given, self.roster, run, i, self.keys[i], SeededEntropy(100 * seed + i), no_bits
            )
            for i in range(m)
        ]
        self.transcript: list[bytes] = []

    def deliver(self, outgoing: list[Outgoing]) -> None:
        waiting = list(outgoing)
        while waiting:
            message = waiting.pop(0)
            self.transcript.append(message.raw)
            if message.to == COORDINATOR:
                waiting += self.coordinator.receive(message.raw)
            for place in range(len(self.silos)) if message.to == EVERYONE else ():
                waiting += self.silos[place].receive(message.raw)
            if message.to < len(self.silos):
                waiting += self.silos[message.to].receive(message.raw)

    def agree(self, holdings: list[set[int]] | None = None) -> "ElgamalRun":
        self.deliver([out for silo in self.silos for out in silo.start()])
        for place, silo in enumerate(self.silos):
            silo._bits = self.bits(holdings[place] if holdings else set())
            silo.authorise()
        return self

    def bits(self, held: set[int]) -> Callable[[bytes, int], bytes]:
        def of(_view: bytes, chunk: int) -> bytes:
            start, size = chunk * self.parameters.chunk_pairs, self.parameters.chunk_size(chunk)
            value = sum(1 << (k - start) for k in held if start <= k < start + size)
            return value.to_bytes(-(-size // 64) * 8, "little")

        return of

    def finish(self) -> set[int]:
        for chunk in range(self.parameters.chunks):
            self.deliver(self.coordinator.begin(chunk))
        bits = np.unpackbits(
            np.frombuffer(bytes(self.coordinator.result()), np.uint8), bitorder="little"
        )
        return set(np.flatnonzero(bits).tolist())

    def sign(
        self,
        place: int,
        name: str,
        payload: bytes,
        receiver: int = EVERYONE,
        sequence: int = 0,
        key: int | None = None,
    ) -> bytes:
        by = self.keys[-1 if place == COORDINATOR else place] if key is None else self.keys[key]
        return seal(self.binding, by, Envelope(name, place, receiver, sequence, payload))


@pytest.mark.parametrize("variant", ["printed", "replace", "blinded"])
@pytest.mark.parametrize("silos", [2, 3, 5])
def test_without_noise_the_union_comes_out(variant: str, silos: int) -> None:
    holdings = [set(range(i, PAIRS, 11 + i)) for i in range(silos)]
    run = ElgamalRun(parameters(variant, silos=silos)).agree(holdings)
    assert run.finish() == set().union(*holdings)
    assert run.coordinator.state is State.DONE


@pytest.mark.parametrize("silos", [2, 3])
def test_every_silo_flips_once(silos: int) -> None:
    """At b = 1 all flips are sure: an odd number of them turns the union, an even one does not."""
    holdings = [set(range(i, PAIRS, 11 + i)) for i in range(silos)]
    union = set().union(*holdings)
    run = ElgamalRun(parameters(coin=Fraction(1), silos=silos)).agree(holdings)
    assert run.finish() == (union if silos == 2 else set(range(PAIRS)) - union)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["replace", "blinded"])
@pytest.mark.parametrize(
    "holders",
    [(), *(pytest.param(held, marks=pytest.mark.whole) for held in ((0,), (2,), (0, 1, 2)))],
)
def test_every_pair_follows_the_channel(variant: str, holders: tuple[int, ...]) -> None:
    """Exact binomial limits on all pairs of a chunk, and on the first and last by themselves."""
    coin, runs = Fraction(1, 5), 12
    everything = set(range(PAIRS))
    ones = np.zeros(PAIRS, dtype=np.int64)
    for seed in range(runs):
        given = parameters(variant, coin=coin, chunk_pairs=PAIRS + 42)
        run = ElgamalRun(given, seed=seed)
        run.agree([everything if i in holders else set() for i in range(3)])
        ones[sorted(run.finish())] += 1
    p = coin if variant == "replace" else (1 - (1 - 2 * coin) ** 3) / 2
    expected = float(1 - p if holders else p)
    low, high = limits.binomial(runs * PAIRS, expected)
    assert low <= ones.sum() <= high
    low, high = limits.binomial(runs, expected)
    assert low <= ones.min()
    assert ones.max() <= high


@pytest.mark.parametrize("variant", ["printed", "replace", "blinded"])
def test_every_cell_changes_at_every_hop(variant: str) -> None:
    """Erratum 3: comparing two hops shows nothing, whether a silo held a pair or not."""
    run = ElgamalRun(parameters(variant, pairs=64, chunk_pairs=64))
    run.agree([{1, 2}, {2, 3}, set()]).finish()
    hops = [unpack(peek(raw).payload, 2)[1] for raw in run.transcript if peek(raw).round == "hop"]
    assert len(hops) == run.parameters.hops
    halves = [
        {cells[i : i + CELL_BYTES // 2] for i in range(0, len(cells), CELL_BYTES // 2)}
        for cells in hops
    ]
    assert all(len(half) == 128 for half in halves)
    assert len(set().union(*halves)) == 128 * len(hops)


def test_golden_transcript() -> None:
    """Equal seeds give equal bytes: the wire format is frozen here."""
    given = parameters("blinded", coin=Fraction(1, 5), pairs=70, chunk_pairs=64)
    transcripts = []
    for _ in range(2):
        run = ElgamalRun(given).agree([{1}, {2, 69}, set()])
        run.finish()
        transcripts.append(hashlib.sha256(pack(*run.transcript)).hexdigest())
    assert (
        transcripts[0]
        == transcripts[1]
        == "e9270036401b6bdbb6bf1c5316d5d0b107a62f615298a03e5463de3170ea664f"
    )


def test_message_sizes_depend_on_the_parameters_alone() -> None:
    sizes = []
    for held in (set(), set(range(PAIRS))):
        run = ElgamalRun(parameters()).agree([held] * 3)
        run.finish()
        sizes.append([len(raw) for raw in run.transcript])
    assert sizes[0] == sizes[1]


class TestRefusals:
    def agreed(self, variant: str = "blinded") -> ElgamalRun:
        return ElgamalRun(parameters(variant, pairs=64, chunk_pairs=64)).agree()

    def hop_until_open(self, run: ElgamalRun) -> bytes:
        """Hand the chunk round; the message that asks for shares."""
        (message,) = run.coordinator.begin(0)
        while message.to != EVERYONE:
            (answer,) = run.silos[message.to].receive(message.raw)
            (message,) = run.coordinator.receive(answer.raw)
        return message.raw

    def test_nothing_leaves_before_the_ledger(self) -> None:
        run = ElgamalRun(parameters(pairs=64, chunk_pairs=64))
        run.deliver([out for silo in run.silos for out in silo.start()])
        (work,) = run.coordinator.begin(0)
        with pytest.raises(OrderError, match="not yet authorised"):
            run.silos[0].receive(work.raw)
        assert run.silos[0].state is State.AGREED

    def test_a_proof_of_another_key(self) -> None:
        run = ElgamalRun(parameters())
        messages = [silo.start()[0].raw for silo in run.silos]
        payloads = [peek(raw).payload for raw in messages]
        mixed = payloads[1][:32] + payloads[2][32:]
        messages[1] = run.sign(1, "key", mixed)
        bundle = run.sign(COORDINATOR, "keys", pack(*messages))
        with pytest.raises(PayloadError, match=r"round 'key' of silo 2"):
            run.silos[0].receive(bundle)
        assert run.silos[0].state is State.KEYS
        run.coordinator.receive(messages[0])
        run.coordinator.receive(messages[1])
        with pytest.raises(PayloadError, match=r"round 'key' of silo 2"):
            run.coordinator.receive(messages[2])

    def test_a_proof_of_another_run(self) -> None:
        run, other = ElgamalRun(parameters()), ElgamalRun(parameters(), run=b"y" * 16)
        messages = [silo.start()[0].raw for silo in run.silos]
        messages[2] = run.sign(2, "key", peek(other.silos[2].start()[0].raw).payload)
        with pytest.raises(PayloadError, match=r"round 'key' of silo 3"):
            run.silos[0].receive(run.sign(COORDINATOR, "keys", pack(*messages)))

    def test_keys_of_another_silo_or_a_changed_own_key(self) -> None:
        run = ElgamalRun(parameters())
        messages = [silo.start()[0].raw for silo in run.silos]
        forged = [*messages]
        forged[1] = run.sign(1, "key", peek(messages[1]).payload, key=3)
        with pytest.raises(SignatureError, match="silo 2"):
            run.silos[0].receive(run.sign(COORDINATOR, "keys", pack(*forged)))
        forged[1] = run.sign(1, "key", peek(messages[0]).payload)
        with pytest.raises(ViewsDifferError, match="came back changed"):
            run.silos[1].receive(run.sign(COORDINATOR, "keys", pack(*forged)))

    def test_confirmations_of_other_keys(self) -> None:
        run = ElgamalRun(parameters())
        bundle = run.sign(COORDINATOR, "keys", pack(*(silo.start()[0].raw for silo in run.silos)))
        confirms = [silo.receive(bundle)[0].raw for silo in run.silos]
        confirms[2] = run.sign(2, "confirm", bytes(32))
        with pytest.raises(ViewsDifferError, match="silo 3"):
            run.silos[0].receive(run.sign(COORDINATOR, "confirms", pack(*confirms)))
        assert run.silos[0].state is State.CONFIRMS

    def test_a_confirmation_covers_run_parameters_and_keys(self) -> None:
        """Equal secrets give equal keys, so each change below is the only one."""
        views = []
        for run in (
            ElgamalRun(parameters()),
            ElgamalRun(parameters(), run=b"y" * 16),
            ElgamalRun(parameters(coin=Fraction(1, 9))),
            ElgamalRun(parameters("replace")),
            ElgamalRun(parameters(), seed=2),
        ):
            messages = [silo.start()[0].raw for silo in run.silos]
            bundle = run.sign(COORDINATOR, "keys", pack(*messages))
            views.append({peek(silo.receive(bundle)[0].raw).payload for silo in run.silos})
        assert all(len(view) == 1 for view in views)
        assert len(set().union(*views)) == len(views)

    def test_other_runs_and_parameters(self) -> None:
        for other in (
            ElgamalRun(parameters(), run=b"y" * 16),
            ElgamalRun(parameters("replace")),
            ElgamalRun(parameters(coin=Fraction(1, 9))),
        ):
            with pytest.raises(BindingError, match=r"another run|other parameters"):
                ElgamalRun(parameters()).coordinator.receive(other.silos[0].start()[0].raw)

    def test_a_hop_out_of_turn_or_of_no_chunk(self) -> None:
        run = self.agreed()
        for chunk, hop, message in (
            (0, 1, "hop 1 is not ours"),
            (5, 0, "no chunk 5"),
            (0, 6, "not ours"),
        ):
            work = run.sign(
                COORDINATOR,
                "work",
                pack(chunk.to_bytes(8, "little") + hop.to_bytes(4, "little"), b""),
                0,
            )
            with pytest.raises(OrderError, match=message):
                run.silos[0].receive(work)

    def test_a_hop_on_other_cells_than_before(self) -> None:
        """The same coins on two inputs would show what changed between them."""
        run = self.agreed()
        (work,) = run.coordinator.begin(0)
        (first,) = run.silos[0].receive(work.raw)
        (work,) = run.coordinator.receive(first.raw)
        (second,) = run.silos[1].receive(work.raw)
        assert run.silos[1].receive(work.raw)[0].raw == second.raw
        cells = unpack(peek(second.raw).payload, 2)[1]
        other = pack((0).to_bytes(8, "little") + (1).to_bytes(4, "little"), cells)
        with pytest.raises(OrderError, match="other cells"):
            run.silos[1].receive(run.sign(COORDINATOR, "work", other, 1))

    @pytest.mark.parametrize("damage", ["cut", "no point", "identity"])
    def test_cells_that_are_none(self, damage: str) -> None:
        run = self.agreed()
        (work,) = run.coordinator.begin(0)
        (first,) = run.silos[0].receive(work.raw)
        cells = unpack(peek(first.raw).payload, 2)[1]
        wrong = {
            "cut": cells[:-1],
            "no point": b"\xff" * 32 + cells[32:],
            "identity": bytes(32) + cells[32:],
        }
        payload = pack((0).to_bytes(8, "little") + (1).to_bytes(4, "little"), wrong[damage])
        with pytest.raises(PayloadError, match="round 'work'"):
            run.silos[1].receive(run.sign(COORDINATOR, "work", payload, 1))
        # What was refused has changed nothing: the genuine cells are still taken.
        (genuine,) = run.coordinator.receive(first.raw)
        assert run.silos[1].receive(genuine.raw)

    def test_opening_something_that_was_not_flipped_by_all(self) -> None:
        """The coordinator holds the exact union after pass 1, and asks to have that opened."""
        run = self.agreed()
        (message,) = run.coordinator.begin(0)
        receipts = []
        for _ in range(3):
            (answer,) = run.silos[message.to].receive(message.raw)
            receipt, cells = unpack(peek(answer.raw).payload, 2)
            receipts.append(receipt)
            (message,) = run.coordinator.receive(answer.raw)
        asked = run.sign(COORDINATOR, "open", pack(bytes(8), cells, *receipts, *receipts))
        with pytest.raises(OrderError, match="hop 3 is not signed by silo 0"):
            run.silos[0].receive(asked)
        forged = [
            run.sign(i, "receipt", peek(receipts[i]).payload, EVERYONE, 3 + i, key=3)
            for i in range(3)
        ]
        asked = run.sign(COORDINATOR, "open", pack(bytes(8), cells, *receipts, *forged))
        with pytest.raises(SignatureError, match="silo 1"):
            run.silos[0].receive(asked)

    def test_opening_other_cells_than_the_last_hops(self) -> None:
        run = self.agreed()
        asked = peek(self.hop_until_open(run)).payload
        head, cells, *receipts = unpack(asked, 2 + 6)
        swapped = cells[CELL_BYTES:] + cells[:CELL_BYTES]
        with pytest.raises(PayloadError, match="last hop"):
            run.silos[0].receive(run.sign(COORDINATOR, "open", pack(head, swapped, *receipts)))
        shuffled = [receipts[1], receipts[0], *receipts[2:]]
        with pytest.raises(OrderError, match="hop 0"):
            run.silos[0].receive(run.sign(COORDINATOR, "open", pack(head, cells, *shuffled)))

    def receipts(self, run: ElgamalRun, digests: list[tuple[bytes, bytes]]) -> list[bytes]:
        """What the silos would sign who got and gave cells with these digests."""
        return [
            run.sign(hop % 3, "receipt", RECEIPT.pack(0, hop, came, went), EVERYONE, hop)
            for hop, (came, went) in enumerate(digests)
        ]

    def test_receipts_that_are_not_of_one_chain(self) -> None:
        """Each is signed by the right silo, but hop 4 was not done on what hop 3 put out."""
        run = self.agreed()
        head, cells, *_ = unpack(peek(self.hop_until_open(run)).payload, 2 + 6)
        outs = [hashlib.sha256(bytes([hop])).digest() for hop in range(5)]
        outs = [hashlib.sha256(b"").digest(), *outs, hashlib.sha256(cells).digest()]
        digests = list(itertools.pairwise(outs))
        digests[4] = (hashlib.sha256(b"other cells").digest(), digests[4][1])
        asked = pack(head, cells, *self.receipts(run, digests))
        with pytest.raises(OrderError, match="hop 4 was done on something else"):
            run.silos[0].receive(run.sign(COORDINATOR, "open", asked))

    def test_a_chunk_is_opened_once(self) -> None:
        """Even where all silos have signed for other cells of the same pairs."""
        run = self.agreed()
        opening = self.hop_until_open(run)
        run.silos[0].receive(opening)
        head, cells, *_ = unpack(peek(opening).payload, 2 + 6)
        swapped = cells[CELL_BYTES:] + cells[:CELL_BYTES]
        outs = [hashlib.sha256(bytes([hop])).digest() for hop in range(5)]
        outs = [hashlib.sha256(b"").digest(), *outs, hashlib.sha256(swapped).digest()]
        asked = pack(head, swapped, *self.receipts(run, list(itertools.pairwise(outs))))
        with pytest.raises(OrderError, match="done on other cells"):
            run.silos[0].receive(run.sign(COORDINATOR, "open", asked))
        assert run.silos[1].receive(run.sign(COORDINATOR, "open", asked))

    def test_receipts_of_another_chunk(self) -> None:
        run = ElgamalRun(parameters(pairs=128, chunk_pairs=64)).agree()
        asked = peek(self.hop_until_open(run)).payload
        _, cells, *receipts = unpack(asked, 2 + 6)
        other = pack((1).to_bytes(8, "little"), cells, *receipts)
        with pytest.raises(OrderError, match="something else"):
            run.silos[0].receive(run.sign(COORDINATOR, "open", other))

    def test_shares_are_checked_and_name_their_silo(self) -> None:
        run = self.agreed()
        opening = self.hop_until_open(run)
        shares = [silo.receive(opening)[0].raw for silo in run.silos]
        assert run.silos[0].receive(opening)[0].raw == shares[0]
        with pytest.raises(OrderError, match="chunk 3 were not due"):
            run.coordinator.receive(run.sign(0, "share", (3).to_bytes(8, "little"), COORDINATOR))
        run.coordinator.receive(shares[0])
        with pytest.raises(OrderError, match="twice"):
            run.coordinator.receive(shares[0])
        payload = peek(shares[2]).payload
        with pytest.raises(PayloadError, match="one share per group"):
            run.coordinator.receive(run.sign(2, "share", payload[:-1], COORDINATOR))
        run.coordinator.receive(shares[1])
        wrong = payload[:8] + payload[40:72] + payload[8:40] + payload[72:]
        with pytest.raises(PayloadError, match="round 'share' of silo 3"):
            run.coordinator.receive(run.sign(2, "share", wrong, COORDINATOR))
        run.coordinator.receive(shares[2])
        assert run.coordinator.state is State.DONE

    def test_a_hop_that_is_not_the_one_due(self) -> None:
        run = self.agreed()
        (work,) = run.coordinator.begin(0)
        (first,) = run.silos[0].receive(work.raw)
        run.coordinator.receive(first.raw)
        with pytest.raises(OrderError, match="not due"):
            run.coordinator.receive(first.raw)
        with pytest.raises(OrderError, match="cannot begin"):
            run.coordinator.begin(0)
        with pytest.raises(OrderError, match="'result'"):
            run.coordinator.result()

    @settings(max_examples=150, deadline=None)
    @given(
        st.binary(max_size=300),
        st.sampled_from(["work", "open", "keys", "confirms", "hop", "share"]),
    )
    def test_any_payload_at_all(self, payload: bytes, name: str) -> None:
        run = AGREED
        state = run.silos[0].state, run.coordinator.state
        with pytest.raises(ProtocolError):
            run.silos[0].receive(run.sign(COORDINATOR, name, payload))
        with pytest.raises(ProtocolError):
            run.coordinator.receive(run.sign(0, name, payload))
        assert state == (run.silos[0].state, run.coordinator.state)

    def test_wrong_parameters(self) -> None:
        for change in (
            {"variant": "other"},
            {"coin": Fraction(2)},
            {"silos": 1},
            {"chunk_pairs": 100},
        ):
            with pytest.raises(ArgumentError):
                parameters(**change)  # type: ignore[arg-type]


AGREED = ElgamalRun(parameters(pairs=64, chunk_pairs=64)).agree()
