"""The terms of a run of feat+, and the view that all its silos are shown."""

import hashlib
import math
import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from silograph.dp.loss import View
from silograph.errors import ArgumentError, PayloadError
from silograph.graph.bits import BitRows, triangle_bytes
from silograph.messages.identity import pack
from silograph.methods.featplus.noise import (
    STEPS,
    FeatPlusNoise,
    Local,
    gradient_sensitivity,
    paper_sensitivity,
)
from silograph.methods.featplus.noisy_vectors import VectorParameters
from silograph.methods.featplus.shared_view import SharedViewParameters
from silograph.methods.union import SettledUnion

__all__ = ["FeatPlusTerms", "Owners", "Shared"]


#: For each node, the place of the silo that owns it.
Owners = NDArray[np.uint8]

_BOUND = struct.Struct("<d")


@dataclass(frozen=True)
class FeatPlusTerms:
    """The terms of one run of feat+: its release, its noise, its views, and its reports."""

    query: str
    k: int | None
    n: int
    union: SettledUnion
    noise: FeatPlusNoise
    #: The clipping bound κ of ``gradient``, if it was given; otherwise it follows from the degrees.
    bound: float | None
    views: tuple[View, ...]
    #: The certified epsilon against the coordinator with t silos, for t = 0 … m−1.
    losses: dict[int, float]
    #: A note for the caller; empty if there is nothing to say.
    advice: str = ""

    @property
    def answers_locally(self) -> bool:
        """Whether there are a partition and local answers; otherwise this is feat."""
        return self.noise.split.answers_locally

    @property
    def local(self) -> Local:
        """The form of the local answers."""
        return self.noise.local

    @property
    def epsilon(self) -> float:
        """The certified epsilon against the worst of the claimed views."""
        return max(view.epsilon for view in self.views if view.claimed)

    def sensitivity(self, bound: float) -> Fraction:
        """Δ, the joint sensitivity of all reports; ``paper`` does not use the bound."""
        if self.local == "gradient":
            return gradient_sensitivity(self.union.channel, bound)
        return paper_sensitivity(self.query, self.k, self.union.channel, self.n)

    def unit(self, bound: float) -> Fraction:
        """The value of one step of a report: Δ/2^30."""
        return self.sensitivity(bound) / STEPS

    def degrees(self, subject: bytes) -> VectorParameters:
        """The parameters of the message with a silo's noisy degrees."""
        scale = self.noise.partition_scale
        return VectorParameters(
            self.union.silos, self.n, scale, Fraction(1), self.subject(subject), "degrees"
        )

    def shown(self, subject: bytes) -> SharedViewParameters:
        """The parameters of the message that shows a :class:`Shared` to all silos."""
        length = _BOUND.size + self.n + triangle_bytes(self.n)
        return SharedViewParameters(self.union.silos, length, self.subject(subject))

    def reports(self, shown: bytes, bound: float) -> VectorParameters:
        """The parameters of a silo's noisy report, bound to the digest of the shared view."""
        scale, unit = self.noise.local_scale, self.unit(bound)
        return VectorParameters(self.union.silos, 1, scale, unit, shown, "reports")

    def subject(self, universe: bytes) -> bytes:
        """The digest that binds all messages of the run to the nodes, the query and the plan."""
        split, channel = self.noise.split, self.union.channel
        values = (
            self.query,
            self.k,
            self.local,
            self.n,
            self.union.protocol,
            self.union.collusion,
            channel.p11,
            channel.p01,
            split.release,
            split.partition,
            split.local,
            self.noise.printed,
            self.bound,
        )
        fields = [str(value).encode() for value in values]
        return hashlib.sha256(pack(b"silograph/feat+/v1", universe, *fields)).digest()


@dataclass(frozen=True, eq=False)
class Shared:
    """What all silos are shown before they answer: the release, the owners and the bound."""

    graph: BitRows
    owners: Owners
    #: κ of ``gradient``; 0 for ``paper``, which has no bound.
    bound: float

    @cached_property
    def content(self) -> bytes:
        """The bytes that are shown; their length does not depend on the values."""
        return _BOUND.pack(self.bound) + self.owners.tobytes() + self.graph.to_triangle()

    @classmethod
    def read(cls, plan: FeatPlusTerms, content: bytes) -> "Shared":
        """Read what was shown, if it is well formed; a silo trusts it no further than that."""
        n, m = plan.n, plan.union.silos
        start = _BOUND.size + n
        if len(content) != start + triangle_bytes(n):
            raise PayloadError("a release and its owners were due", round="shown")
        (bound,) = _BOUND.unpack_from(content)
        owners = np.frombuffer(content[_BOUND.size : start], dtype=np.uint8)
        if int(owners.max()) >= m:
            raise PayloadError(f"an owner is not one of {m} silos", round="shown")
        if plan.local == "gradient":
            check_bound(bound, PayloadError)
            if plan.bound is not None and bound != plan.bound:
                raise PayloadError("the bound is not the one agreed on", round="shown")
        elif bound != 0:
            raise PayloadError("the form 'paper' has no bound", round="shown")
        return cls(BitRows.from_triangle(n, content[start:]), owners, bound)


def check_bound(bound: float, kind: type[ArgumentError] | type[PayloadError]) -> None:
    """Refuse a clipping bound that is not a positive, finite number."""
    if isinstance(bound, bool) or not (0 < bound < math.inf):
        raise kind(f"a bound must be a positive, finite number, not {bound!r}")
