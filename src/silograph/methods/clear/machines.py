"""Protocol ``clear``: a union without protection, for runs within one process."""

from fractions import Fraction

import numpy as np

from silograph import _core
from silograph.dp.channel import limbs
from silograph.messages.entropy import Entropy
from silograph.messages.identity import Identity, Roster
from silograph.messages.machine import CoordinatorSession
from silograph.methods.baseline.machines import ReportParameters, _Keeper

__all__ = ["ClearCoordinator"]


class ClearCoordinator(_Keeper, CoordinatorSession[_core.OpenBits]):
    """The coordinator of protocol ``clear``: it draws the noise itself, once per pair.

    Silos report their bits without noise. The result has the same distribution as a private union
    with this channel, but nothing protects the edges while it is made. It is for runs within one
    process; a proposal that asks for it is refused.
    """

    def __init__(
        self,
        parameters: ReportParameters,
        roster: Roster,
        run: bytes,
        identity: Identity,
        entropy: Entropy,
        channel: tuple[Fraction, Fraction],
    ) -> None:
        super().__init__(parameters, roster, run, identity)
        self._channel = channel
        self._seed = entropy.bytes(32)

    def result(self) -> _core.OpenBits:
        """Y, one bit per pair."""
        first, *others = self._kept()
        union = np.frombuffer(bytes(first), dtype=np.uint64).copy()
        for other in others:
            union |= np.frombuffer(bytes(other), dtype=np.uint64)
        p11, p01 = map(limbs, self._channel)
        noisy = _core.perturb(union.tobytes(), self._parameters.pairs, p11, p01, self._seed)
        opened = _core.OpenBits(self._parameters.pairs)
        opened.write(0, noisy)
        return opened
