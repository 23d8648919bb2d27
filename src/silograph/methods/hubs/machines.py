"""A hub search as two state machines: degrees are summed under masks, noise included.

The rounds are those of all sums under masks (:mod:`silograph.methods.masked.machines`): run keys,
confirmations, chunks. A chunk holds one 64-bit number per node: a silo's own number plus its share
of the noise, modulo 2^64, plus and minus the masks that it shares with the others. The coordinator
learns the sum over all silos, one number per node, and nothing else.

A silo's shares of the noise are drawn from a secret of the run, chunk by chunk, so a chunk that is
made again has the same bytes.
"""

import hashlib
import hmac
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.dp.laplace import NoiseLaw, Share
from silograph.errors import ArgumentError
from silograph.messages.entropy import Entropy
from silograph.messages.identity import Identity, Roster, pack
from silograph.messages.rounds import Bits, Chunked
from silograph.methods.masked.machines import MaskingSilo, State, SummingCoordinator

__all__ = ["CHUNK_NUMBERS", "HubCoordinator", "HubParameters", "HubSilo"]

#: The numbers in a chunk: 1 MiB.
CHUNK_NUMBERS = 1 << 17
#: How masks and noise are drawn and how numbers are encoded.
_STREAM = b"aes-256-ctr, 64-bit words, blocks of 1024 words"
_NOISE = b"polya differences, chacha20, one seed a chunk"
_PACKING = b"64-bit words, lowest byte first, modulo 2^64"
#: The chance that the noise of one sum is larger than what is allowed for it.
_BEYOND = 2.0**-128


@dataclass(frozen=True)
class HubParameters(Chunked):
    """What all parties of a run must agree on, and sign."""

    share: Share
    silos: int
    #: The numbers that are summed and cut into chunks: one per node.
    pairs: int
    #: The digest of the node list and of the study.
    subject: bytes
    chunk_pairs: int = CHUNK_NUMBERS

    def __post_init__(self) -> None:
        self.check_chunks()
        scale = Fraction(self.share.numerator, self.share.denominator)
        reach = NoiseLaw(scale, self.share.shares, self.silos).far_reach(_BEYOND)
        # A degree is less than the number of nodes.
        if self.silos * self.pairs + reach >= 1 << 63:
            raise ArgumentError("sums and their noise must fit 64-bit numbers")

    @property
    def digest(self) -> bytes:
        """SHA-256 of every parameter."""
        share = self.share
        numbers = (
            share.numerator, share.denominator, share.shares,
            self.silos, self.pairs, self.chunk_pairs,
        )  # fmt: skip
        fields = [str(number).encode() for number in numbers]
        fields += [self.subject, _STREAM, _NOISE, _PACKING]
        return hashlib.sha256(pack(b"silograph/hubs/v1", *fields)).digest()

    def bit_bytes(self, chunk: int) -> int:
        """The size of one 64-bit number per node of a chunk, in bytes."""
        return 8 * self.chunk_size(chunk)


class HubSilo(MaskingSilo):
    """A silo in a hub search. ``bits(view, chunk)`` is one 64-bit number per node."""

    VIEW = b"silograph/hubs/view/v1"
    _parameters: HubParameters

    def __init__(
        self,
        parameters: HubParameters,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
        bits: Bits,
    ) -> None:
        masker = _core.WordMasker(entropy.bytes(32))
        super().__init__(parameters, roster, run, place, identity, masker, bits)
        self._noise_secret = entropy.bytes(32)

    def _contribution(self, masks: _core.SharedMasks, number: int, bits: bytes) -> bytes:
        label = pack(b"silograph/hubs/noise/v1", str(number).encode())
        seed = hmac.digest(self._noise_secret, label, "sha256")
        noise = self._parameters.share.draw(self._parameters.chunk_size(number), seed)
        values = np.frombuffer(bits, dtype="<i8") + noise
        return self._masker.contribute_words(masks, number, values)


class HubCoordinator(SummingCoordinator[_core.WordSum, NDArray[np.int64]]):
    """The coordinator in a hub search. Its result is one noisy sum per node."""

    def __init__(self, parameters: HubParameters, *more: Any) -> None:
        super().__init__(parameters, *more)
        self._found: dict[int, NDArray[np.int64]] = {}

    def _nothing(self, size: int) -> _core.WordSum:
        return _core.WordSum(size)

    def _keep(self, number: int, total: _core.WordSum) -> None:
        self._found[number] = total.sums()

    def result(self) -> NDArray[np.int64]:
        """The noisy sums in the order of the nodes; only available when all are complete."""
        self._require(State.DONE, "result")
        return np.concatenate([self._found[number] for number in range(self._parameters.chunks)])
