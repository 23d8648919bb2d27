"""Threshold ElGamal through the real functions: round trips, refusals, frozen bytes."""

import copy
import hashlib
import itertools
import pickle
from fractions import Fraction

import pytest
import rbcl
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph.errors import (
    ArgumentError,
    CryptoError,
    DecryptionError,
    EncodingError,
    KeyRefusedError,
    ProofError,
)
from silograph.methods.elgamal.cipher import (
    CELL_BYTES,
    JointKey,
    Member,
    Place,
    Run,
    SecretKey,
    Variant,
    share_bytes,
)
from tests.methods.elgamal.party import RUN, decoder, members, party, seed
from tests.methods.elgamal.vectors import INVALID, MULTIPLES

NEVER, ALWAYS = Fraction(0), Fraction(1)
VARIANTS: list[Variant] = ["printed", "replace", "blinded"]


def final_hops(variant: Variant, m: int) -> int:
    return 2 * m if variant == "blinded" else m


def union(bits: list[bytes]) -> bytes:
    return (
        bytes(a | b for a, b in zip(bits[0], union(bits[1:]), strict=True)) if bits[1:] else bits[0]
    )


# --- round trips ---


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("variant", VARIANTS)
def test_without_noise_the_union_comes_out(variant: Variant, m: int) -> None:
    silos = party(m)
    bits = [hashlib.sha256(bytes([i])).digest()[:6] for i in range(m)]
    cells = silos.collect(bits, 48, variant, NEVER)[-1]
    assert silos.open(cells, Place(0, final_hops(variant, m))) == union(bits)


@pytest.mark.parametrize("variant", VARIANTS)
def test_all_bit_patterns_of_three_silos(variant: Variant) -> None:
    """Cell j has the holders that the bits of j say, each of the 8 sets twice."""
    silos = party(3)
    bits = [bytes([sum((j >> i & 1) << j for j in range(8))] * 2) for i in range(3)]
    cells = silos.collect(bits, 16, variant, NEVER)[-1]
    assert silos.open(cells, Place(0, final_hops(variant, 3))) == bytes([0b1111_1110] * 2)


def test_sure_noise_does_what_each_variant_says() -> None:
    """At p = 1 RR turns every bit, which tells the three variants apart."""
    silos = party(2)
    first, second = bytes([0b0011]), bytes([0b0101])
    opened = {
        variant: silos.open(
            silos.collect([first, second], 4, variant, p, ALWAYS)[-1],
            Place(0, final_hops(variant, 2)),
        )[0]
        for variant, p in (("printed", ALWAYS), ("replace", ALWAYS), ("blinded", NEVER))
    }
    # printed: silo 1 sends 1100, silo 2 writes a one where it does NOT hold: 1010.
    # replace: silo 1 sends 1100, silo 2 writes RR(1) = 0 where it holds. blinded: turned twice.
    assert opened == {"printed": 0b1110, "replace": 0b1000, "blinded": 0b0111}


@pytest.mark.parametrize("count", [1, 2, 7, 15, 16, 17, 63, 64, 65, 130])
def test_chunks_of_any_length(count: int) -> None:
    silos = party(2)
    bits = (int.from_bytes(hashlib.shake_128(b"bits").digest(17), "little") % 2**count).to_bytes(
        -(-count // 8), "little"
    )
    cells = silos.key.encrypt(bits, count, 7, seed("any"))
    assert len(cells) == count * CELL_BYTES
    shares = silos.shares(cells, Place(7, 1))
    assert {len(s) for s in shares} == {share_bytes(count)}
    assert silos.key.combine(decoder(1), cells, shares, 7) == bits


def test_an_empty_chunk_is_a_chunk() -> None:
    silos = party(2)
    assert silos.open(silos.key.encrypt(b"", 0, 0, seed("none")), Place(0, 1)) == b""


def test_overwrite_and_flip_in_every_combination() -> None:
    """Old bit, mask, value and coin: all 16 cases in one group of cells."""
    key, cases = party(2).key, list(itertools.product((0, 1), repeat=4))
    old, mask, value, coin = (
        sum(case[k] << j for j, case in enumerate(cases)).to_bytes(2, "little") for k in range(4)
    )
    cells = key.encrypt(old, 16, 0, seed("a"))
    cells = key.overwrite(cells, mask, value, Place(0, 1), seed("b"))
    cells = key.flip(cells, coin, Place(0, 2), seed("c"))
    expected = sum(((v if k else o) ^ c) << j for j, (o, k, v, c) in enumerate(cases))
    assert party(2).open(cells, Place(0, 3)) == expected.to_bytes(2, "little")


# --- what others see ---


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_point_is_new_at_every_hop(variant: Variant) -> None:
    """Also the points of cells that a silo keeps, to the last cell of the chunk."""
    silos, count = party(4), 203
    bits = [bytes(26) for _ in range(4)]
    trace = silos.collect(bits, count, variant, NEVER)
    points = [hop[i : i + 32] for hop in trace for i in range(0, len(hop), 32)]
    assert len(points) == final_hops(variant, 4) * count * 2
    assert len(set(points)) == len(points)


def halves(cells: bytes) -> list[bytes]:
    """The first half of every cell."""
    return [cells[i : i + 32] for i in range(0, len(cells), CELL_BYTES)]


@pytest.mark.parametrize("hold", [0x00, 0xFF, 0xA5])
def test_kept_cells_are_not_merely_doubled(hold: int) -> None:
    """A hop emits 2·(c + Enc(0; r)); anyone can double c and look at what is left, 2rG.

    Computed with libsodium: over cells, hops and steps no two of these are equal, and none is 0.
    """
    add, subtract = rbcl.crypto_core_ristretto255_add, rbcl.crypto_core_ristretto255_sub
    silos, count, seen = party(3), 139, []
    bits = [bytes([hold] * 18)] * 3
    for variant in VARIANTS:
        trace = silos.collect(bits, count, variant, NEVER, Fraction(1, 2), salt=variant)
        for old, new in itertools.pairwise(trace):
            for before, after in zip(halves(old), halves(new), strict=True):
                twice = add(before, before)
                seen += [subtract(after, twice), add(after, twice)]  # kept; flipped
    assert len(set(seen)) == len(seen) == (2 + 2 + 5) * count * 2
    assert bytes(32) not in seen


def test_secrets_do_not_show_and_are_not_written_out() -> None:
    secret = SecretKey(seed("key", 0))
    assert repr(secret) == str(secret) == "SecretKey(…)"
    assert repr(secret._inner).startswith("<silograph._core.ElgamalSecretKey object at")
    for write in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            write(secret)
    with pytest.raises(TypeError):
        pickle.dumps(secret._inner)


def test_fixed_seeds_give_fixed_bytes() -> None:
    """The wire format is frozen: keys, proofs, cells and shares of a whole blinded run."""
    silos, digest = party(3), hashlib.sha256()
    bits = [hashlib.sha256(bytes([i])).digest() for i in range(3)]
    for sent in members(3)[1]:
        digest.update(b"".join(sent))
    trace = silos.collect(bits, 250, "blinded", NEVER, Fraction(1, 7), chunk=5)
    digest.update(b"".join(trace) + b"".join(silos.shares(trace[-1], Place(5, 6))))
    digest.update(silos.open(trace[-1], Place(5, 6)))
    assert digest.hexdigest() == "444432e2e763971d9120aa3a38ebe239085a20c2431bff1312eb789072415560"


# --- refusals: encodings ---


def put(cells: bytes, point: bytes, index: int, half: int) -> bytes:
    at = index * CELL_BYTES + 32 * half
    return cells[:at] + point + cells[at + 32 :]


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("text", [*INVALID, MULTIPLES[0]])
def test_bad_points_are_refused_at_every_decode(text: str, half: int) -> None:
    """RFC 9496, appendix A.2, and the identity."""
    silos, bad = party(2), bytes.fromhex(text)
    good = silos.key.encrypt(bytes(3), 20, 0, seed("good"))
    cells, place = put(good, bad, 17, half), Place(0, 1)
    steps = [
        lambda: silos.key.hop(cells, bytes(3), "blinded", NEVER, place, seed()),
        lambda: silos.key.flip_hop(cells, NEVER, place, seed()),
        lambda: silos.key.combine(decoder(1), cells, silos.shares(good, place), 0),
    ]
    if half == 0:  # shares are made of first halves alone
        steps.append(lambda: silos.key.share(silos.secrets[0], 0, cells, place, seed()))
    for step in steps:
        with pytest.raises(EncodingError, match="cell 17") as refused:
            step()
        assert refused.value.index == 17
    sent = members(2)[1]
    with pytest.raises((EncodingError, KeyRefusedError), match="of silo 1") as refused_key:
        JointKey.agree(RUN, [sent[0], sent[1]._replace(key=bad)])
    assert refused_key.value.silo == 1
    shares = silos.shares(good, place)
    with pytest.raises(EncodingError, match="share 1 of silo 1"):
        silos.key.combine(decoder(1), good, [shares[0], shares[1][:32] + bad + shares[1][64:]], 0)


def test_the_multiples_of_the_generator_decode() -> None:
    """RFC 9496, appendix A.1: nothing that is valid is refused, except the identity."""
    key = party(2).key
    cells = bytes.fromhex("".join(MULTIPLES[1:15]))
    assert len(key.flip(cells, b"\0", Place(0, 1), seed())) == len(cells)


@pytest.mark.parametrize("cut", [1, 32, 63])
def test_truncated_chunks_are_refused(cut: int) -> None:
    silos = party(2)
    cells, place = silos.key.encrypt(bytes(3), 20, 0, seed("good")), Place(0, 1)
    shares = silos.shares(cells, place)
    for step in (
        lambda: silos.key.hop(cells[:-cut], bytes(3), "blinded", NEVER, place, seed()),
        lambda: silos.key.flip_hop(cells[:-cut], NEVER, place, seed()),
        lambda: silos.key.share(silos.secrets[0], 0, cells[:-cut], place, seed()),
        lambda: silos.key.combine(decoder(1), cells[:-cut], shares, 0),
        lambda: silos.key.combine(decoder(1), cells, [shares[0], shares[1][:-cut]], 0),
        lambda: silos.key.hop(cells, bytes(2), "blinded", NEVER, place, seed()),
        lambda: silos.key.encrypt(bytes(2), 20, 0, seed()),
    ):
        with pytest.raises(EncodingError, match="bytes where"):
            step()


def test_a_whole_cell_less_is_noticed_by_the_proofs() -> None:
    silos = party(2)
    cells = silos.key.encrypt(bytes(3), 20, 0, seed("good"))
    shares = silos.shares(cells, Place(0, 1))
    with pytest.raises(ProofError):
        silos.key.combine(decoder(1), cells[:-CELL_BYTES], shares, 0)


# --- refusals: keys ---


def test_proofs_hold_for_one_run_roster_identity_and_key() -> None:
    secrets, sent = members(3)
    proof = secrets[1].prove
    for wrong in (
        sent[1]._replace(proof=proof(Run(b"run 2", RUN.roster), b"silo 1", seed())),
        sent[1]._replace(proof=proof(Run(RUN.id, b"another"), b"silo 1", seed())),
        sent[1]._replace(proof=proof(RUN, b"silo 2", seed())),
        sent[1]._replace(identity=b"silo 7"),
        sent[1]._replace(proof=sent[2].proof),
        sent[1]._replace(key=SecretKey(seed("stranger")).public_key),
        sent[1]._replace(proof=sent[1].proof[:32] + (1).to_bytes(32, "little")),
    ):
        with pytest.raises(ProofError, match="possession of silo 1") as refused:
            JointKey.agree(RUN, [sent[0], wrong, sent[2]])
        assert refused.value.silo == 1
    # Field borders: moving a byte from the run's name to the roster is another run.
    moved = Run(RUN.id + RUN.roster[:1], RUN.roster[1:])
    with pytest.raises(ProofError):
        JointKey.agree(moved, sent)


def test_proof_bytes_must_be_canonical() -> None:
    sent = members(2)[1]
    order = 2**252 + 27742317777372353535851937790883648493
    z = int.from_bytes(sent[1].proof[32:], "little")
    for proof in (
        sent[1].proof[:32] + (z + order).to_bytes(32, "little"),
        bytes.fromhex(INVALID[3]) + sent[1].proof[32:],
        bytes(32) + sent[1].proof[32:],
        sent[1].proof[:-1],
        b"",
    ):
        with pytest.raises(EncodingError, match="of silo 1"):
            JointKey.agree(RUN, [sent[0], sent[1]._replace(proof=proof)])


def test_repeated_keys_and_nobody_are_refused() -> None:
    secrets, sent = members(2)
    again = Member(b"silo 2", sent[0].key, secrets[0].prove(RUN, b"silo 2", seed()))
    with pytest.raises(KeyRefusedError, match="silo 2 has the public key of silo 0") as refused:
        JointKey.agree(RUN, [*sent, again])
    assert refused.value.silo == 2
    with pytest.raises(KeyRefusedError):
        JointKey.agree(RUN, [])


def test_all_who_agree_on_the_same_have_the_same_binding() -> None:
    sent = members(3)[1]
    one, same = JointKey.agree(RUN, sent), JointKey.agree(RUN, sent)
    assert (one.binding, one.public_key) == (same.binding, same.public_key)
    other = JointKey.agree(RUN, [sent[1], sent[0], sent[2]])
    assert other.binding != one.binding
    assert other.public_key == one.public_key


# --- refusals: shares ---


def test_shares_hold_for_one_silo_chunk_hop_and_chunk_of_cells() -> None:
    silos, place = party(3), Place(4, 1)
    cells = silos.key.encrypt(bytes(5), 40, 4, seed("c"))
    other = silos.key.encrypt(bytes(5), 40, 4, seed("d"))
    good = silos.shares(cells, place)
    share = silos.key.share
    assert silos.key.combine(decoder(1), cells, good, 4) == bytes(5)
    for name, wrong in {
        "another chunk": share(silos.secrets[1], 1, cells, Place(5, 1), seed()),
        "another hop": share(silos.secrets[1], 1, cells, Place(4, 2), seed()),
        "other cells": share(silos.secrets[1], 1, other, place, seed()),
        "another silo": good[2],
        "swapped shares": good[1][32:64] + good[1][:32] + good[1][64:],
        "another proof": good[1][:-64] + good[2][-64:],
        "a replaced share": good[2][:32] + good[1][32:],
        "the last share": good[1][:64] + good[2][64:96] + good[1][96:],
        "a zero proof": good[1][:-64] + bytes(64),
    }.items():
        with pytest.raises(ProofError, match="shares of silo 1") as refused:
            silos.key.combine(decoder(1), cells, [good[0], wrong, good[2]], 4)
        assert refused.value.silo == 1, name
    with pytest.raises(ProofError, match="silo 0"):
        silos.key.combine(decoder(1), cells, good, 5)
    with pytest.raises(EncodingError, match="2 silos sent shares where all 3 must"):
        silos.key.combine(decoder(1), cells, good[:2], 4)


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("index", [0, 17, 39])
def test_cells_that_change_between_share_and_combine_are_refused(index: int, half: int) -> None:
    silos = party(2)
    cells = silos.key.encrypt(bytes(5), 40, 4, seed("c"))
    changed = put(cells, bytes.fromhex(MULTIPLES[3]), index, half)
    with pytest.raises(ProofError, match="silo 0"):
        silos.key.combine(decoder(1), changed, silos.shares(cells, Place(4, 1)), 4)


def test_shares_of_another_run_are_refused() -> None:
    """Same secret keys, another run: the proofs do not carry over."""
    secrets, sent = members(2, Run(b"run 2", RUN.roster))
    later = JointKey.agree(Run(b"run 2", RUN.roster), sent)
    cells, place = party(2).key.encrypt(bytes(2), 16, 0, seed("c")), Place(0, 1)
    shares = [later.share(s, i, cells, place, seed()) for i, s in enumerate(secrets)]
    assert later.combine(decoder(1), cells, shares, 0) == bytes(2)
    with pytest.raises(ProofError):
        party(2).key.combine(decoder(1), cells, shares, 0)


def test_a_secret_key_makes_shares_for_its_own_silo_only() -> None:
    silos = party(2)
    cells = silos.key.encrypt(bytes(1), 8, 0, seed("c"))
    for silo in (1, 2, 2**40):
        with pytest.raises(KeyRefusedError) as refused:
            silos.key.share(silos.secrets[0], silo, cells, Place(0, 1), seed())
        assert refused.value.silo == silo


def test_what_is_no_bit_does_not_decode() -> None:
    """Cells of two hops opened as cells of one hold 0 or 2: no sums of bits below 2^16."""
    silos = party(2)
    cells = silos.key.encrypt(b"\xff\xff\xff", 24, 0, seed("c"))
    cells = silos.key.flip(cells, bytes(3), Place(0, 1), seed("d"))
    with pytest.raises(DecryptionError, match="16 cells from cell 0 ") as refused:
        silos.open(cells, Place(0, 1))
    assert refused.value.index == 0


def test_wrong_arguments_are_refused_before_anything_is_drawn() -> None:
    key, cells = party(2).key, party(2).key.encrypt(b"\0", 1, 0, seed())
    for wrong in (
        lambda: SecretKey(b"short"),
        lambda: key.encrypt(b"\0", -1, 0, seed()),
        lambda: key.encrypt(b"\0", 1, 2**64, seed()),
        lambda: key.encrypt(b"\0", 1, 0, bytes(31)),
        lambda: key.flip(cells, b"\0", Place(0, 0), seed()),
        lambda: key.flip(cells, b"\0", Place(0, 2**16), seed()),
        lambda: key.flip(cells, b"\0", Place(0, 2**16 - 1), seed()),
        lambda: key.flip_hop(cells, Fraction(3, 2), Place(0, 1), seed()),
        lambda: key.flip_hop(cells, Fraction(1, 2**16001), Place(0, 1), seed()),
        lambda: key.hop(cells, b"\0", "blinded", Fraction(1, 2), Place(0, 1), seed()),
        lambda: key.hop(cells, b"\0", "masked", NEVER, Place(0, 1), seed()),  # type: ignore[arg-type]
    ):
        with pytest.raises(ArgumentError):
            wrong()


# --- decoders on anything ---

anything = st.binary(max_size=400) | st.lists(
    st.sampled_from([bytes.fromhex(t) for t in MULTIPLES + INVALID]), max_size=8
).map(b"".join)


@settings(max_examples=150, deadline=None)
@given(cells=anything, bits=st.binary(max_size=3), hops=st.integers(1, 40))
def test_steps_take_any_bytes(cells: bytes, bits: bytes, hops: int) -> None:
    key, place = party(2).key, Place(0, hops)
    for step in (
        lambda: key.hop(cells, bits, "blinded", NEVER, place, seed()),
        lambda: key.overwrite(cells, bits, bits, place, seed()),
        lambda: key.flip_hop(cells, NEVER, place, seed()),
        lambda: key.share(party(2).secrets[0], 0, cells, place, seed()),
    ):
        try:
            out = step()
        except CryptoError:
            continue
        assert isinstance(out, bytes)


@settings(max_examples=150, deadline=None)
@given(identity=st.binary(max_size=40), key=anything, proof=anything, message=anything)
def test_keys_proofs_and_shares_take_any_bytes(
    identity: bytes, key: bytes, proof: bytes, message: bytes
) -> None:
    with pytest.raises(CryptoError):
        JointKey.agree(RUN, [Member(identity, key, proof)])
    cells = party(1).key.encrypt(b"\1", 1, 0, seed())
    with pytest.raises(CryptoError):
        party(1).key.combine(decoder(1), cells, [message], 0)
