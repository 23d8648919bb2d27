"""Empirical lower bounds: the real protocol is run on neighbouring inputs, many pairs at once.

Pairs are independent. So one run in which nobody holds any pair and one in which some silos hold
all of them are many trials of the same two neighbouring inputs. The bound is the best log-ratio of
an event's probability, with exact binomial (Clopper–Pearson) limits.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from silograph import _core
from silograph.dp.channel import limbs
from silograph.messages.entropy import Entropy
from silograph.methods.baseline.noise import BaselineNoise
from silograph.methods.committee.noise import CommitteeNoise
from silograph.methods.elgamal.cipher import Decoder, JointKey, Member, Place, SecretKey
from silograph.methods.elgamal.cipher import Run as ElgamalRun
from silograph.methods.elgamal.noise import ElgamalNoise
from silograph.methods.featplus.noise import FeatPlusNoise
from silograph.methods.masked.noise import MaskedNoise
from silograph.methods.sealed.noise import Coins, Parts
from silograph.methods.sealed.rounds import coins_of

__all__ = [
    "committee_bits",
    "committee_ones",
    "elgamal_ones",
    "featplus_hits",
    "lower_bound",
    "masked_zeros",
    "reports_agreed",
    "sealed_opened",
]


Numbers = npt.NDArray[np.int64]
#: The bytes of a number that members share, and how many of them are drawn at once.
_WIDTH = 8
_NUMBERS = 1 << 14


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
    return int(committee_bits(noise, holders, pairs, entropy).sum())


def committee_bits(
    noise: CommitteeNoise, holders: Sequence[bool], pairs: int, entropy: Entropy
) -> npt.NDArray[np.bool_]:
    """What is opened of pairs that all have these holders."""
    view, members = entropy.bytes(32), range(4)
    owners = [silo if silo in members else None for silo in range(noise.silos)]
    coin = [bool(noise.numerator >> place & 1) for place in range(noise.places)]
    circuit = _core.CommitteeCircuit(owners, coin)
    seeds = _seeds(view, entropy)
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
    _evaluate(chunks, seeds)
    opened = _core.committee_opened(view, 0, pairs, [chunk.open() for chunk in chunks])
    unpacked = np.unpackbits(np.frombuffer(opened, dtype=np.uint8), bitorder="little")
    found: npt.NDArray[np.bool_] = unpacked[:pairs] == 1
    return found


def _seeds(view: bytes, entropy: Entropy) -> list[_core.CommitteeSeeds]:
    """The seeds of four members: each has all components but its own."""
    common = [entropy.bytes(32) for _ in range(4)]
    return [
        _core.CommitteeSeeds([None if c == i else common[c] for c in range(4)], view)
        for i in range(4)
    ]


def _evaluate(chunks: list[_core.CommitteeChunk], seeds: list[_core.CommitteeSeeds]) -> None:
    """All layers of a chunk, by its four members."""
    for _ in range(chunks[0].layers):
        sent = [chunk.speak(own) for chunk, own in zip(chunks, seeds, strict=True)]
        for i, chunk in enumerate(chunks):
            chunk.hear([sent[j][i] for j in range(4)])


# --- Numbers that a committee opens with noise ----------------------------------------------------


def sealed_opened(
    drawn: Coins | Parts, truth: Numbers, colluding: int, entropy: Entropy
) -> Numbers:
    """The numbers that four members open, in this process: each is the truth with its own noise.

    A member that colludes subtracts what it knows: its own part of noise in shares. Of noise by
    digits it knows nothing, as tests enumerate.
    """
    view, count = entropy.bytes(32), len(truth)
    seeds = _seeds(view, entropy)
    nothing = np.zeros(count, dtype=np.int64)
    shared = _shared([truth, nothing, nothing, nothing], 0, view, seeds)
    known = nothing
    if isinstance(drawn, Parts):
        parts = [drawn.draw(count, entropy.bytes(32)) for _ in range(4)]
        noise = _shared(parts, 1, view, seeds)
        known = sum(parts[4 - colluding :], nothing)
    else:
        noise = []
        for first in range(0, count, _NUMBERS):
            size = min(_NUMBERS, count - first)
            circuit = _core.CommitteeCircuit.noise(coins_of(drawn), size, _WIDTH)
            chunks = [_core.CommitteeChunk(circuit, i, view, 1 + first, size) for i in range(4)]
            for chunk, own in zip(chunks, seeds, strict=True):
                chunk.begin(own, [])
            _evaluate(chunks, seeds)
            for numbers, chunk in zip(shared, chunks, strict=True):
                numbers.add(first, chunk.numbers())
    for numbers, own_noise in zip(shared, noise, strict=False):
        numbers.add(0, own_noise)
    opened = [numbers.open(view, 0) for numbers in shared]
    return _core.committee_opened_numbers(view, 0, count, _WIDTH, opened) - known


def _shared(
    given: Sequence[Numbers], number: int, view: bytes, seeds: list[_core.CommitteeSeeds]
) -> list[_core.CommitteeNumbers]:
    """The sum of numbers that four members share, as each of them holds it."""
    count = len(given[0])
    cores = [_core.CommitteeParts(i, view, number, count, _WIDTH) for i in range(4)]
    for owner, own in enumerate(given):
        vector = cores[owner].share(seeds[owner], own)
        travels = _core.committee_vector(owner, owner)
        for i in range(4):
            if i not in (owner, travels):
                cores[i].take(owner, vector)
    return [core.numbers(seeds[i]) for i, core in enumerate(cores)]


# --- The noisy vectors of feat+ -------------------------------------------------------------------


def featplus_hits(
    noise: FeatPlusNoise,
    release: CommitteeNoise,
    holders: Sequence[bool],
    colluding: int,
    pairs: int,
    entropy: Entropy,
) -> int:
    """How often all parts of a run look as if these silos held a pair.

    That is: the release has it; the report of its owner, which it changes by as much as an edge
    can, is beyond that; and of the honest silos' degrees at its two ends at least half are above 0.
    """
    honest = [holds and i < noise.silos - colluding for i, holds in enumerate(holders)]
    hit = committee_bits(release, honest, pairs, entropy)
    scale = noise.partition_scale
    degrees = np.zeros(pairs, dtype=np.int64)
    for holds in honest[: noise.silos - colluding]:
        drawn = _core.discrete_laplace(
            2 * pairs, scale.numerator, scale.denominator, entropy.bytes(32)
        )
        degrees += (drawn + int(holds) >= 1).reshape(2, pairs).sum(axis=0)
    scale, change = noise.local_scale, noise.local_steps
    report = _core.discrete_laplace(pairs, scale.numerator, scale.denominator, entropy.bytes(32))
    hit &= report + change * any(honest) >= change
    hit &= degrees >= noise.silos - colluding
    return int(hit.sum())


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
