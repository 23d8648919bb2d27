"""The answers of the sealed protocol: published shares, summed by every party for itself."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from silograph.errors import PayloadError
from silograph.protocol.sealed import SealedParameters
from silograph.protocol.sealed_noise import FACTORS, Noise, Output
from silograph.protocol.wire import pack

__all__ = ["Answers", "SealedResult"]

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class SealedResult:
    """What a run publishes: integers, each with its noise, and the laws of that noise."""

    values: Mapping[str, npt.NDArray[np.int64]]
    noises: Mapping[str, Noise]

    def number(self, name: str) -> int:
        """An answer that is one number."""
        return int(self.values[name][0])

    @property
    def degrees(self) -> npt.NDArray[np.int64]:
        """One number a node."""
        return self.values["degrees"]


class Answers:
    """The published shares, summed phase by phase; every party does this for itself."""

    def __init__(self, parameters: SealedParameters) -> None:
        self._parameters = parameters
        self._values: dict[str, npt.NDArray[np.int64]] = {}
        self._noises: dict[str, Noise] = {}
        self._seen = b""
        self._start()

    def _start(self) -> None:
        self.came: set[int] = set()
        self._sum = np.zeros(self.words, dtype=np.uint64)

    @property
    def phase(self) -> int:
        """How many phases are complete."""
        done = [phase for phase in self._parameters.phases if phase[0].name in self._values]
        return len(done)

    @property
    def complete(self) -> bool:
        """Whether all phases are."""
        return self.phase == len(self._parameters.phases)

    @property
    def words(self) -> int:
        """The words of a share in the present phase."""
        if self.complete:
            return 0
        return sum(map(self._parameters.length, self._parameters.phases[self.phase]))

    def noise(self, output: Output) -> Noise:
        """The noise of an output of the present phase."""
        if isinstance(output.noise, Noise):
            return output.noise
        return output.noise.at(int(self._values["degrees"].max()))

    @property
    def digest(self) -> bytes:
        """What has been published so far: a silo says it with its next share."""
        return hashlib.sha256(pack(b"silograph/sealed/answers/v1", self._seen)).digest()

    def add(self, sender: int, share: Words) -> None:
        """Add a silo's share; with the last one the phase is complete."""
        total = self._sum + share
        if len(self.came) + 1 == self._parameters.silos:
            self._open(total)
        else:
            self._sum = total
            self.came.add(sender)

    def _open(self, total: Words) -> None:
        outputs, rest = self._parameters.phases[self.phase], total.view(np.int64)
        found: dict[str, npt.NDArray[np.int64]] = {}
        noises: dict[str, Noise] = {output.name: self.noise(output) for output in outputs}
        for output in outputs:
            length, factor = self._parameters.length(output), FACTORS[output.name]
            own, rest = rest[:length], rest[length:]
            if (own % factor).any():
                raise PayloadError(f"the shares of {output.name} do not add up", round="output")
            found[output.name] = own // factor
        self._seen = pack(self._seen, total.tobytes())
        self._values |= found
        self._noises |= noises
        self._start()

    def result(self) -> SealedResult:
        """All answers, when all phases are complete."""
        return SealedResult(dict(self._values), dict(self._noises))
