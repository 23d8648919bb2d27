"""feat+: a release, owners of nodes, and a local answer of every silo (the paper's Algorithm 4).

The parts in order, each a function without I/O; ``runtime`` carries messages between them:

1. :func:`plan_featplus` decides everything that can be decided before anything is drawn or spent.
2. A union at ε1 gives the release; every silo's noisy degrees (:meth:`FeatPlusPlan.degrees`, at ε2)
   give owners and, where it is not given, the clipping bound: :func:`share`.
3. What the silos are shown is a :class:`Shared`, as bytes; they make sure that it is the same.
4. Each silo counts (:func:`local_report`) and sends a noisy number (:meth:`FeatPlusPlan.reports`).
5. :func:`combine` makes the answer.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph.graph.bitrows import BitRows
from silograph.graph.silo import Silo
from silograph.methods.featplus_rounds import FeatPlusPlan, Shared
from silograph.privacy.loss import shown_loss
from silograph.queries.estimate import Estimate
from silograph.queries.gradient_reports import default_bound, gradient_report
from silograph.queries.local import local_value
from silograph.queries.partition import node_owners, owned_nodes, owned_pairs
from silograph.queries.release import Release

__all__ = ["combine", "local_report", "share"]


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
