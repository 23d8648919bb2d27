"""The coordinator of the sealed protocol: it relays keys, and opens noisy answers.

Whatever it is sent, it has no component of an edge, unless it is one of the four members.
"""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from silograph import _core
from silograph.errors import MismatchError
from silograph.methods.committee.coordinator import Host
from silograph.methods.committee.rounds import MEMBERS, State
from silograph.methods.sealed.noise import FACTORS
from silograph.methods.sealed.party import SealedPart
from silograph.methods.sealed.rounds import (
    LINEAR,
    SEALED_COORDINATOR_STEPS,
    SEALED_VIEW,
    SealedParameters,
    SealedResult,
)

__all__ = ["SealedCoordinator"]


class SealedCoordinator(Host[SealedResult]):
    """The coordinator in one run. Its result are the noisy answers."""

    STEPS = SEALED_COORDINATOR_STEPS
    TAKES: ClassVar[tuple[str, ...]] = (*Host.TAKES, "tell", "sum", "done")
    OPENS: ClassVar[tuple[str, ...]] = ("open", "sum", "done")
    VIEW: ClassVar[bytes] = SEALED_VIEW
    PART = SealedPart

    def __init__(self, parameters: SealedParameters, *more: Any) -> None:
        super().__init__(parameters, *more)
        self._parameters = parameters
        self._values: dict[str, npt.NDArray[np.int64]] = {}
        self._steps = 0

    def _opening_bytes(self, name: str, member: int, number: int) -> int | None:
        given = self._parameters
        if name == "done":
            return 0 if number < given.chunks + given.bands else None
        if number >= len(given.outputs):
            return None
        if (name == "open") != (given.outputs[number].name in LINEAR):
            return None
        return given.opening_bytes(member, number) if name == "open" else given.width

    def _keep(self, name: str, number: int, member: int, content: bytes) -> None:
        self._steps += name == "done"
        super()._keep(name, number, member, content)

    def _take_opening(self, name: str, number: int, came: list[bytes]) -> None:
        if name == "done":
            return
        given, output = self._parameters, self._parameters.outputs[number]
        if name == "open":
            found = _core.committee_opened_numbers(
                self._view, number, given.length(output), given.width, came
            )
        else:
            found = self._summed(output.name, came)
        self._values[output.name] = found

    def _summed(self, name: str, came: list[bytes]) -> npt.NDArray[np.int64]:
        """The sum of all summands, which is a multiple of the factor of the count."""
        bits, factor = 8 * self._parameters.width, FACTORS[name]
        total = sum(int.from_bytes(word, "little") for word in came) % (1 << bits)
        centred = total - (total >> (bits - 1) << bits)
        if centred % factor:
            raise MismatchError(f"the members' summands of {name} do not add up", round="sum")
        return np.array([centred // factor], dtype=np.int64)

    def _complete(self) -> bool:
        return len(self._values) == len(self._parameters.outputs)

    @property
    def progress(self) -> tuple[int, int]:
        """The progress in pairs, by the members' steps, and the number of all pairs."""
        given = self._parameters
        if self.state is State.DONE:
            return given.pairs, given.pairs
        return given.pairs * self._steps // (MEMBERS * (given.chunks + given.bands)), given.pairs

    def result(self) -> SealedResult:
        """The answers; only available when all of them are open."""
        self._require(State.DONE, "result")
        return SealedResult({output.name: self._values[output.name] for output in
                             self._parameters.outputs})  # fmt: skip
