"""feat+ with all parties in one process: degrees, what is shown, local answers."""

from collections.abc import Sequence

from silograph.graph.bitrows import BitRows
from silograph.methods.featplus import FeatPlusPlan, Shared, local_report, share
from silograph.protocol.broadcast import BroadcastCoordinator, BroadcastSilo
from silograph.protocol.numbers import NumberCoordinator, NumberParameters, NumberSilo
from silograph.protocol.roster import COORDINATOR
from silograph.runtime.progress import progress
from silograph.runtime.simulation import Parties, Post, Run

__all__ = ["run_local", "run_numbers", "run_shown"]


def run_numbers(
    run: Run, parties: Parties, parameters: NumberParameters, values: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Every silo's numbers with their noise. What they cost is in the ledger already."""
    roster, key, identities = parties
    coordinator = NumberCoordinator(parameters, roster, run.id, key)
    post = Post(coordinator, (), run.record)
    for place, (identity, own) in enumerate(zip(identities, values, strict=True)):
        silo = NumberSilo(parameters, roster, run.id, place, identity, run.entropy)
        silo.authorise()
        post.deliver([(place, [silo.numbers(own)])])
    return coordinator.result()


def run_shown(
    run: Run, parties: Parties, plan: FeatPlusPlan, shared: Shared, subject: bytes
) -> tuple[list[Shared], bytes]:
    """What each silo was shown, and the digest that all of them signed."""
    roster, key, identities = parties
    parameters = plan.shown(subject)
    coordinator = BroadcastCoordinator(parameters, roster, run.id, key)
    silos = [
        BroadcastSilo(parameters, roster, run.id, place, identity)
        for place, identity in enumerate(identities)
    ]
    post = Post(coordinator, silos, run.record)
    post.deliver([(COORDINATOR, coordinator.show(shared.content))])
    return [Shared.read(plan, silo.content()) for silo in silos], coordinator.view()


def run_local(
    run: Run, parties: Parties, plan: FeatPlusPlan, graph: BitRows, subject: bytes
) -> tuple[Shared, list[int]]:
    """All that follows the release: owners and bound, and every silo's noisy report."""
    with progress("local answers", 2, shown=run.shown) as advance:
        degrees = [silo.degrees().tolist() for silo in run.silos]
        noisy = run_numbers(run, parties, plan.degrees(subject), degrees)
        shared = share(plan, graph, noisy)
        advance(1)
        seen, digest = run_shown(run, parties, plan, shared, subject)
        values = [
            [local_report(plan, view, silo, place)]
            for place, (view, silo) in enumerate(zip(seen, run.silos, strict=True))
        ]
        reports = run_numbers(run, parties, plan.reports(digest, shared.bound), values)
        advance(1)
    return shared, [report for (report,) in reports]
