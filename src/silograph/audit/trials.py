"""Empirical lower bounds: the real protocol is run on neighbouring inputs, many pairs at once.

Pairs are independent. So one run in which nobody holds any pair and one in which some silos hold
all of them are many trials of the same two neighbouring inputs. The bound is the best log-ratio of
an event's probability, with exact binomial (Clopper–Pearson) limits.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from silograph import _core
from silograph.dp.channel import limbs
from silograph.messages.entropy import Entropy
from silograph.methods.baseline.noise import BaselineNoise
from silograph.methods.committee.noise import CommitteeNoise
from silograph.methods.elgamal.cipher import Decoder, JointKey, Member, Place, SecretKey
from silograph.methods.elgamal.cipher import Run as ElgamalRun
from silograph.methods.elgamal.noise import ElgamalNoise
from silograph.methods.masked.noise import MaskedNoise

__all__ = ["committee_ones", "elgamal_ones", "lower_bound", "masked_zeros", "reports_agreed"]


def lower_bound(hits: Sequence[int], trials: int, false_alarm: float = 1e-9) -> float:
    """An epsilon that the mechanism exceeds, except with probability ``false_alarm``.

    ``hits`` counts one event on two neighbouring inputs, out of ``trials`` trials each.
    """
    each = false_alarm / 4
    best = 0.0
    for a, b in (tuple(hits), tuple(reversed(hits))):
        for p, q in ((a, b), (trials - a, trials - b)):
            low, high = _beta_lower(p, trials, each), _beta_upper(q, trials, each)
            if low > 0 and high > 0:
                best = max(best, math.log(low / high))
    return best


def _tail(hits: int, trials: int, p: float) -> float:
    """ln P(Bin ≥ hits), by Chernoff's bound: accurate enough to bisect, and never too small."""
    rate = hits / trials
    if rate <= p:
        return 0.0
    return -trials * _divergence(rate, p)


def _divergence(a: float, p: float) -> float:
    first = a * math.log(a / p) if a else 0.0
    second = (1 - a) * math.log((1 - a) / (1 - p)) if a < 1 else 0.0
    return first + second


def _beta_lower(hits: int, trials: int, false_alarm: float) -> float:
    """A p so small that this many hits would be a false alarm (Chernoff's bound)."""
    if hits == 0:
        return 0.0
    low, high = 0.0, hits / trials
    for _ in range(100):
        middle = (low + high) / 2
        if middle and _tail(hits, trials, middle) > math.log(false_alarm):
            high = middle
        else:
            low = middle
    return low


def _beta_upper(hits: int, trials: int, false_alarm: float) -> float:
    return 1 - _beta_lower(trials - hits, trials, false_alarm)


def masked_zeros(
    noise: MaskedNoise, holders: Sequence[bool], colluding: int, pairs: int, entropy: Entropy
) -> int:
    """How often the sum of the honest silos is zero, over all pairs with these holders.

    The last ``colluding`` silos pool what they know with the coordinator: they subtract their own
    contributions from the sum, and know the masks that they share with the honest silos.
    """
    m = noise.silos
    silent = limbs(Fraction(0))
    maskers = [
        _core.Masker(entropy.bytes(32), noise.q, limbs(noise.b) if i < m - colluding else silent)
        for i in range(m)
    ]
    words = -(-pairs // 64) * 8
    total = _core.MaskedSum(noise.q, pairs)
    for i, masker in enumerate(maskers):
        others = [
            (maskers[j].public(), f"{min(i, j)} {max(i, j)}".encode(), i < j)
            for j in range(m)
            if j != i
        ]
        honest_holder = i < m - colluding and holders[i]
        bits = (b"\xff" if honest_holder else b"\0") * words
        total.add(masker.contribute(masker.agree(others), 0, bits, pairs))
    opened = np.frombuffer(total.open(), dtype=np.uint8)
    return pairs - int(np.bitwise_count(opened[:words]).sum())


def committee_ones(
    noise: CommitteeNoise, holders: Sequence[bool], colluding: int, pairs: int, entropy: Entropy
) -> int:
    """How often a pair with these holders is opened as one, by four members in this process.

    What the member that colludes sees besides is independent of all bits, as tests enumerate.
    """
    view, members = entropy.bytes(32), range(4)
    owners = [silo if silo in members else None for silo in range(noise.silos)]
    coin = [bool(noise.numerator >> place & 1) for place in range(noise.places)]
    circuit = _core.CommitteeCircuit(owners, coin)
    common = [entropy.bytes(32) for _ in members]
    seeds = [
        _core.CommitteeSeeds([None if c == i else common[c] for c in members], view)
        for i in members
    ]
    chunks = [_core.CommitteeChunk(circuit, i, view, 0, pairs) for i in members]
    outside: list[list[_core.CommitteeSeeds | None]] = [[None] * noise.silos for _ in members]
    words = -(-pairs // 64) * 8
    for silo, owner in enumerate(owners):
        bits, travels = (b"\xff" if holders[silo] else b"\0") * words, None
        if owner is None:
            travels = _core.committee_vector(None, silo)
            own = [None if c == travels else entropy.bytes(32) for c in members]
            vector = _core.CommitteeSeeds(own, view).hide(silo, 0, bits, pairs)
            for i in members:
                held = [None if c == i else own[c] for c in members]
                outside[i][silo] = _core.CommitteeSeeds(held, view)
        else:
            travels = _core.committee_vector(owner, silo)
            vector = chunks[owner].share(seeds[owner], silo, bits)
        for i in members:
            if i not in (travels, owner):
                chunks[i].take(silo, vector)
    for i in members:
        chunks[i].begin(seeds[i], outside[i])
    for _ in range(circuit.layers):
        sent = [chunks[i].speak(seeds[i]) for i in members]
        for i in members:
            chunks[i].hear([sent[j][i] for j in members])
    opened = _core.committee_opened(view, 0, pairs, [chunk.open() for chunk in chunks])
    return int(np.bitwise_count(np.frombuffer(opened, dtype=np.uint8)).sum())


def reports_agreed(
    noise: BaselineNoise, holders: Sequence[bool], colluding: int, pairs: int, entropy: Entropy
) -> int:
    """The number of pairs that all honest silos report as ones."""
    p11, p01 = limbs(noise.channel.p11), limbs(noise.channel.p01)
    words = -(-pairs // 64) * 8
    agreed = np.full(words, 0xFF, dtype=np.uint8)
    for holds in holders[: noise.silos - colluding]:
        bits = (b"\xff" if holds else b"\0") * words
        noisy = _core.perturb(bits, pairs, p11, p01, entropy.bytes(32))
        agreed &= np.frombuffer(noisy, dtype=np.uint8)
    return int(np.bitwise_count(agreed).sum())


def elgamal_ones(
    noise: ElgamalNoise, holders: Sequence[bool], colluding: int, pairs: int, entropy: Entropy
) -> int:
    """The number of cells that open to one; colluding silos undo their own flips (``blinded``)."""
    m, variant = noise.silos, noise.variant
    run = ElgamalRun(entropy.bytes(16), entropy.bytes(32))
    keys = [SecretKey(entropy.bytes(32)) for _ in range(m)]
    members = [
        Member(bytes([i]) * 32, key.public_key, key.prove(run, bytes([i]) * 32, entropy.bytes(32)))
        for i, key in enumerate(keys)
    ]
    joint = JointKey.agree(run, members)
    width = -(-pairs // 8)
    coin = Fraction(0) if variant == "blinded" else noise.coin
    honest = [holds and i < m - colluding for i, holds in enumerate(holders)]
    bits = [(b"\xff" if holds else b"\0") * width for holds in honest]
    cells = joint.first_hop(bits[0], pairs, variant, coin, 0, entropy.bytes(32))
    hops = 1
    for own in bits[1:]:
        cells = joint.hop(cells, own, variant, coin, Place(0, hops), entropy.bytes(32))
        hops += 1
    if variant == "blinded":
        for _ in range(m - colluding):
            cells = joint.flip_hop(cells, noise.coin, Place(0, hops), entropy.bytes(32))
            hops += 1
    at = Place(0, hops)
    shares = [joint.share(key, i, cells, at, entropy.bytes(32)) for i, key in enumerate(keys)]
    opened = np.frombuffer(joint.combine(Decoder(hops), cells, shares, 0), dtype=np.uint8)
    return int(np.unpackbits(opened, bitorder="little")[:pairs].sum())
