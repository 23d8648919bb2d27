"""What hides a member's numbers: every mask, part and share of zero has a stream of its own.

Answers are right whatever hides them, so these tests make the masks again, from the names that
their streams should have, and look at what is left of a message without them.
"""

import numpy as np
import numpy.typing as npt
import pytest

from silograph import _core
from silograph.methods.sealed.noise import Coins, Parts
from tests.methods.committee.oracle import stream
from tests.methods.committee.run import COMMITTEES, FIVE, FOUR, at_random
from tests.methods.sealed.run import (
    EVERYTHING,
    SealedOracle,
    SealedRun,
    parameters,
    plain,
    random_holdings,
)

pytestmark = pytest.mark.slow

Words = npt.NDArray[np.uint64]
#: The kinds of streams, by the number in their names.
NUMBER, PART, ZERO = 3, 4, 5


def words_of(content: bytes, width: int) -> Words:
    """Numbers of so many bytes."""
    table = np.zeros((len(content) // width, 8), np.uint8)
    table[:, :width] = np.frombuffer(content, np.uint8).reshape(-1, width)
    return table.view("<u8").ravel()


def low(words: Words, width: int) -> Words:
    return words & np.uint64((1 << 8 * width) - 1)


class TestConversion:
    @pytest.mark.parametrize("name", ["four silos in another order", "the coordinator inside"])
    @pytest.mark.parametrize("digits", [1, 12, 40])
    def test_every_message_is_a_bit_or_a_product_under_its_mask(
        self, name: str, digits: int
    ) -> None:
        """Two bits, whose difference is the union's, and four products of their components."""
        committee = COMMITTEES[name]
        given = parameters(committee, 17, plain(("edges",), Coins((1,) * digits, 2)))
        held = random_holdings(at_random(digits), committee.silos, 17)
        run = SealedRun(committee, held, given=given).go()
        oracle, width, layers = SealedOracle(run), given.width, given.circuit.layers
        place = given.members
        sent = {message.name: message for message in run.sent}
        assert given.chunks == 3
        for chunk in range(given.chunks):
            count, found = 64, {0: 0, 1: 0}
            factors: dict[int, Words] = {}
            bits = np.zeros(count, np.uint64)
            for step in (0, 1):
                for sender, receiver in [(s, r) for s in range(4) for r in range(4) if s != r]:
                    _, other, _ = _core.committee_route(sender, receiver)
                    sequence = chunk * given.stride + layers - 2 + step
                    message = sent["joint", sequence, place[sender], place[receiver]]
                    content = run.content(message)[: count * width]
                    if len(content) < count * width:
                        continue
                    seed = oracle.seeds[receiver]
                    raw = stream(seed, oracle.view, count, receiver, chunk, NUMBER, sender, 0)
                    mask = words_of(raw.tobytes()[: count * width], width)
                    value = low(words_of(content, width) + mask, width)
                    found[step] += 1
                    if step == 0:
                        assert set(value.tolist()) <= {0, 1}
                        bits ^= value
                        factors[receiver], factors[other] = mask, words_of(content, width)
                    else:
                        product = factors[receiver] * factors[other]
                        assert (value == low(product, width)).all()
            assert found == {0: 2, 1: 4}
            size = given.chunk_size(chunk)
            union = run.union >> chunk * given.chunk_pairs & (1 << size) - 1
            assert [int(bit) for bit in bits[:size]] == [union >> k & 1 for k in range(size)]


class TestZero:
    @pytest.mark.parametrize("width", [1, 3, 8])
    def test_a_summand_of_nothing_is_a_share_of_zero(self, width: int) -> None:
        """With its own stream for every output: F, H − F and −H, at the holders of a component."""
        view, seeds = bytes(range(32)), [bytes([9 + c] * 32) for c in range(4)]
        shares = {}
        for output in range(3):
            for member in range(4):
                held = [None if c == member else seed for c, seed in enumerate(seeds)]
                count = _core.CommitteeCount(member, 3, width, True)
                count.contract(0, 3)
                noise = _core.CommitteeNumbers(member, width, 1)
                own = _core.CommitteeSeeds(held, view)
                expected = 0
                for c in range(4):
                    if c == member:
                        continue
                    first, second = (
                        int(word) for word in stream(seeds[c], view, 2, c, output, ZERO, 0, 0)
                    )
                    step = (member - c) % 4
                    expected += {1: first, 2: second - first, 3: -second}[step]
                for name, factor in (("two_stars", 2), ("triangles", 6)):
                    word = count.published(name, own, output, factor, noise)
                    assert len(word) == width
                    assert int.from_bytes(word, "little") == expected % (1 << 8 * width)
                shares[output, member] = expected % (1 << 64)
            assert sum(shares[output, member] for member in range(4)) % (1 << 64) == 0
        assert len(set(shares.values())) == 12


class TestParts:
    def test_a_part_is_hidden_by_two_streams_of_its_own(self) -> None:
        """What travels is the part minus two components, which the receiver cannot make both."""
        law = Parts(30, 1)
        for committee in (FOUR, FIVE, COMMITTEES["two silos and two helpers"]):
            given = parameters(committee, 8, plain(EVERYTHING, law))
            run = SealedRun(committee, [0] * committee.silos, given=given).go()
            oracle, width, tried = SealedOracle(run), given.width, 0
            for message in run.sent:
                kind, item, sender, _ = message.name
                chunk = given.noise_chunk(item) if kind == "input" else None
                if chunk is None:
                    continue
                member = given.number(sender)
                assert member is not None
                left = oracle.part(item, member, law).view(np.uint64)
                for c in range(4):
                    if c not in (member, (member + 1) % 4):
                        left = left - stream(
                            oracle.seeds[c], oracle.view, chunk.size, c, item, PART, member, 0
                        )
                found = words_of(run.content(message), width)
                assert (found == low(left, width)).all()
                tried += 1
            assert tried == 4 * 2 * len(given.noise_chunks)
