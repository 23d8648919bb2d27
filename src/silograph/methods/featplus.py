"""feat+: a release, owners of nodes, and a local answer of every silo (the paper's Algorithm 4).

The parts in order, each a function without I/O; ``runtime`` carries messages between them:

1. :func:`plan_featplus` decides everything that can be decided before anything is drawn or spent.
2. A union at ε1 gives the release; every silo's noisy degrees (:meth:`FeatPlusPlan.degrees`, at ε2)
   give owners and, where it is not given, the clipping bound: :func:`share`.
3. What the silos are shown is a :class:`Shared`, as bytes; they make sure that it is the same.
4. Each silo counts (:func:`local_report`) and sends a noisy number (:meth:`FeatPlusPlan.reports`).
5. :func:`combine` makes the answer.
"""

import hashlib
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph.errors import ArgumentError, PayloadError
from silograph.graph.bitrows import BitRows, triangle_bytes
from silograph.graph.silo import Silo
from silograph.methods.prediction import Question
from silograph.methods.split import choose_split
from silograph.methods.union import UnionPlan, plan_union
from silograph.privacy.channel import Channel
from silograph.privacy.featplus import (
    STEPS,
    FeatPlusNoise,
    Local,
    Split,
    gradient_sensitivity,
    paper_sensitivity,
)
from silograph.privacy.loss import check_epsilon, shown_loss
from silograph.privacy.views import View
from silograph.protocol.broadcast import BroadcastParameters
from silograph.protocol.numbers import NumberParameters
from silograph.protocol.wire import pack
from silograph.queries.estimate import Estimate
from silograph.queries.gradient import GRADIENTS, default_bound, gradient_report
from silograph.queries.local import local_value
from silograph.queries.outline import Outline
from silograph.queries.outline_sources import guess
from silograph.queries.partition import Owners, node_owners, owned_nodes, owned_pairs
from silograph.queries.release import Release

__all__ = [
    "LOCAL_QUERIES",
    "FeatPlusPlan",
    "Shared",
    "combine",
    "local_report",
    "plan_featplus",
    "share",
]

#: What each form of local answers can be asked.
LOCAL_QUERIES: dict[str, tuple[str, ...]] = {
    "gradient": tuple(GRADIENTS),
    "paper": ("kstars", "triangles"),
}
_BOUND = struct.Struct("<d")


@dataclass(frozen=True)
class FeatPlusPlan:
    """One run of feat+: its release, its noise, who learns how much, and what is reported."""

    query: str
    k: int | None
    n: int
    union: UnionPlan
    noise: FeatPlusNoise
    #: The clipping bound κ of ``gradient``, where it was given; else it follows from the degrees.
    bound: float | None
    views: tuple[View, ...]
    #: The certified epsilon against the coordinator with t silos, for t = 0 … m−1.
    losses: dict[int, float]
    #: What the caller should be told.
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
        """Δ, the joint sensitivity of all reports; ``paper`` has one without a bound."""
        if self.local == "gradient":
            return gradient_sensitivity(self.union.channel, bound)
        return paper_sensitivity(self.query, self.k, self.union.channel, self.n)

    def unit(self, bound: float) -> Fraction:
        """What one step of a report is worth: Δ/2^30."""
        return self.sensitivity(bound) / STEPS

    def degrees(self, subject: bytes) -> NumberParameters:
        """The message of every silo's noisy degrees."""
        scale = self.noise.partition_scale
        return NumberParameters(
            self.union.silos, self.n, scale, Fraction(1), self.subject(subject), "degrees"
        )

    def shown(self, subject: bytes) -> BroadcastParameters:
        """The message that shows a :class:`Shared` to all silos."""
        length = _BOUND.size + self.n + triangle_bytes(self.n)
        return BroadcastParameters(self.union.silos, length, self.subject(subject))

    def reports(self, shown: bytes, bound: float) -> NumberParameters:
        """The message of every silo's noisy report, bound to the digest of what was shown."""
        scale, unit = self.noise.local_scale, self.unit(bound)
        return NumberParameters(self.union.silos, 1, scale, unit, shown, "reports")

    def subject(self, universe: bytes) -> bytes:
        """What all messages of the run are about: the nodes, the question, and the plan."""
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
    """What all silos are shown before they answer: the release, the owners, the bound."""

    graph: BitRows
    owners: Owners
    #: κ of ``gradient``; 0 for ``paper``, which has none.
    bound: float

    @cached_property
    def content(self) -> bytes:
        """The bytes that are shown; of the same length whatever they hold."""
        return _BOUND.pack(self.bound) + self.owners.tobytes() + self.graph.to_triangle()

    @classmethod
    def read(cls, plan: FeatPlusPlan, content: bytes) -> "Shared":
        """From what was shown, if it makes sense; a silo believes nothing more of it."""
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


def plan_featplus(
    query: str,
    k: int | None,
    local: str,
    split: Split | str | tuple[float, float, float],
    epsilon: float,
    silos: int,
    collusion: int,
    protocol: str,
    n: int,
    bound: float | None = None,
    channel: Channel | None = None,
    outline: Outline | None = None,
    owned: float | None = None,
) -> FeatPlusPlan:
    """Choose all parameters of a run, or say what is wrong with the request.

    ``split`` is ``"auto"`` (the least error on a graph like the ``outline``), ``"paper"`` (.45, .1,
    .45), or three numbers (ε1, ε2, ε3) that add up to epsilon or to 1. ``bound`` is κ of
    ``gradient``; a ``channel`` may be chosen for protocol ``clear``. The release is shown to all
    silos, so that collusion is at least 1.
    """
    if local not in LOCAL_QUERIES:
        raise ArgumentError(f"unknown local answers {local!r}; choose from gradient, paper")
    if query not in LOCAL_QUERIES[local]:
        known = ", ".join(LOCAL_QUERIES[local])
        raise ArgumentError(f"feat+ with local={local!r} answers {known}, not {query}")
    Release.check_leaves(query, k, n)
    if bound is not None:
        if local != "gradient":
            raise ArgumentError("a bound is for local='gradient' only")
        check_bound(bound, ArgumentError)
    if split == "auto":
        asked = Question(query, check_epsilon(epsilon), silos, collusion, k, owned=owned)
        chosen = choose_split(outline or guess(n), asked, protocol, local, bound)
        split, bound = chosen.split, chosen.bound if chosen.split.answers_locally else bound
    shares = Split.of(split, epsilon)
    form: Local = "gradient" if local == "gradient" else "paper"
    noise = FeatPlusNoise(shares, silos, collusion, form)
    if protocol != "clear" and (collusion == 0 or protocol in _OPEN_TO_SILOS):
        raise ArgumentError(
            "feat+ shows the release to all silos: it needs collusion of at least 1, and a union "
            "that holds against silos (masked or elgamal/blinded)"
        )
    union = plan_union(protocol, shares.release_epsilon, silos, collusion, channel)
    if form == "paper":
        paper_sensitivity(query, k, union.channel, n)
    losses = noise.losses(union.losses)
    views = noise.views(losses, drawn=union.noise is None)
    return FeatPlusPlan(query, k, n, union, noise, bound, views, losses, union.advice)


_OPEN_TO_SILOS = ("elgamal/printed", "elgamal/replace")


def check_bound(bound: float, kind: type[ArgumentError] | type[PayloadError]) -> None:
    """Refuse a clipping bound that is not a positive, finite number."""
    if isinstance(bound, bool) or not (0 < bound < math.inf):
        raise kind(f"a bound must be a positive, finite number, not {bound!r}")


def share(
    plan: FeatPlusPlan, graph: BitRows, degrees: Sequence[Sequence[int]] | NDArray[np.int64]
) -> Shared:
    """Owners and bound from all silos' noisy degrees, beside the release."""
    if plan.local == "paper":
        bound = 0.0
    elif plan.bound is not None:
        bound = float(plan.bound)
    else:
        scale, channel = plan.noise.partition_scale, plan.union.channel
        bound = default_bound(plan.query, degrees, scale, channel, plan.n, plan.k)
    return Shared(graph, node_owners(degrees), bound)


def local_report(plan: FeatPlusPlan, shared: Shared, silo: Silo, place: int) -> int:
    """A silo's exact answer, in units; it leaves the silo with noise on it, and not otherwise."""
    channel, graph = plan.union.channel, shared.graph
    if plan.local == "gradient":
        pairs = owned_pairs(shared.owners, place, silo.pairs)
        return gradient_report(plan.query, graph, channel, pairs, shared.bound, plan.k)
    held = BitRows.from_pairs(plan.n, silo.pairs)
    owned = owned_nodes(shared.owners, place)
    value = local_value(plan.query, held, graph, channel, owned, plan.k)
    return round(value / plan.unit(shared.bound))


def combine(
    plan: FeatPlusPlan, release: Release, shared: Shared | None, reports: Sequence[int]
) -> Estimate[float]:
    """The answer from the release and all noisy reports (none where the plan has no local part).

    ``gradient`` adds the reports to the release's own answer; ``paper`` is their sum alone. The
    standard error is that of the release's own answer and the Laplace noise together. It is on the
    safe side: how much the silos took off the release's error is known to them alone. (For
    ``paper`` always; for ``gradient`` but on small, dense graphs at an ε1 below about 1, where
    products of three reported pairs weigh more than all that was taken off.)
    """
    options: dict[str, Any] = {} if plan.k is None else {"k": plan.k}
    own: Estimate[float] = getattr(release, plan.query)(**options)
    spent = {name: float(getattr(plan.noise.split, name)) for name in ("release", "partition")}
    spent["local"] = float(plan.noise.split.local)
    if shared is None or not plan.answers_locally:
        note = "all of epsilon went to the release, which is feat: local answers do not pay here"
        parameters = {**own.parameters, "local": plan.local, "spent": spent}
        return _answer(own, plan, own.value, own.stderr, note, parameters)
    unit = plan.unit(shared.bound)
    total = unit * sum(reports)
    value = own.value + float(total) if plan.local == "gradient" else float(total)
    # Each of m reports has discrete Laplace noise, whose variance is at most 2·scale².
    laplace = math.sqrt(2 * len(reports)) * float(plan.noise.local_scale * unit)
    degree = math.sqrt(2) * float(plan.noise.partition_scale)
    bought = {"release stderr": own.stderr, "degree noise": degree, "local noise": laplace}
    if plan.local == "gradient":
        bought["bound"] = shared.bound
    parameters = {**own.parameters, "local": plan.local, "spent": spent, "bought": bought}
    note = (
        f"ε1 = {shown_loss(spent['release'])} bought a release (± {own.stderr:,.4g}), "
        f"ε2 = {shown_loss(spent['partition'])} owners of nodes (degrees ± {degree:,.4g}), "
        f"ε3 = {shown_loss(spent['local'])} local answers (together ± {laplace:,.4g}); "
        "the error is at most about the first and the last together"
    )
    return _answer(own, plan, value, math.hypot(own.stderr, laplace), note, parameters)


def _answer(
    own: Estimate[float],
    plan: FeatPlusPlan,
    value: float,
    stderr: float,
    note: str,
    parameters: dict[str, Any],
) -> Estimate[float]:
    origin = own.origin
    if origin is not None:
        made = replace(origin.provenance, method="feat+")
        origin = replace(origin, provenance=made, views=plan.views, losses=plan.losses)
    return replace(
        own,
        value=value,
        stderr=stderr,
        epsilon=plan.epsilon,
        method="feat+",
        note=note,
        parameters=parameters,
        origin=origin,
    )
