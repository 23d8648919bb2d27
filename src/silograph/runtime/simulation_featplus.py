"""feat+ with all parties in one process: degrees, what is shown, local answers."""

from collections.abc import Callable, Sequence

from silograph.graph.bitrows import BitRows
from silograph.graph.silo import Silo
from silograph.methods.featplus import FeatPlusPlan, Shared, local_report, share
from silograph.protocol.broadcast import BroadcastCoordinator, BroadcastSilo
from silograph.protocol.numbers import NumberCoordinator, NumberParameters, NumberSilo
from silograph.protocol.roster import COORDINATOR
from silograph.runtime.progress import progress
from silograph.runtime.simulation import Parties, Post, Run

__all__ = ["Answer", "run_local", "run_numbers", "run_shown"]

#: A silo's exact report in units, from the plan, what it was shown, its edges and its place.
Answer = Callable[[FeatPlusPlan, Shared, Silo, int], int]


def run_numbers(
    run: Run,
    parties: Parties,
    parameters: NumberParameters,
    silos: Sequence[tuple[NumberParameters, Sequence[int]]],
) -> list[list[int]]:
    """Every silo's numbers with their noise, under the parameters that it knows of by itself. What
    they cost is in the ledger already."""
    roster, key, identities = parties
    coordinator = NumberCoordinator(parameters, roster, run.id, key)
    post = Post(coordinator, (), run.record)
    for place, (identity, (own, values)) in enumerate(zip(identities, silos, strict=True)):
        silo = NumberSilo(own, roster, run.id, place, identity, run.entropy)
        silo.authorise()
        post.deliver([(place, [silo.numbers(values)])])
    return coordinator.result()


def run_shown(
    run: Run, parties: Parties, plan: FeatPlusPlan, shared: Shared, subject: bytes
) -> tuple[list[tuple[Shared, bytes]], bytes]:
    """What each silo was shown with the digest that it signed, and the coordinator's."""
    roster, key, identities = parties
    parameters = plan.shown(subject)
    coordinator = BroadcastCoordinator(parameters, roster, run.id, key)
    silos = [
        BroadcastSilo(parameters, roster, run.id, place, identity)
        for place, identity in enumerate(identities)
    ]
    post = Post(coordinator, silos, run.record)
    post.deliver([(COORDINATOR, coordinator.show(shared.content))])
    seen = [(Shared.read(plan, silo.content()), silo.view()) for silo in silos]
    return seen, coordinator.view()


def run_local(
    run: Run,
    parties: Parties,
    plan: FeatPlusPlan,
    graph: BitRows,
    subject: bytes,
    answer: Answer = local_report,
) -> tuple[Shared, list[int]]:
    """All that follows the release: owners and bound, and every silo's noisy report.

    ``answer`` makes a silo's exact report; experiments have the printed one in its place.
    """
    with progress("local answers", 2, shown=run.shown) as advance:
        parameters = plan.degrees(subject)
        degrees = [(parameters, silo.degrees().tolist()) for silo in run.silos]
        noisy = run_numbers(run, parties, parameters, degrees)
        shared = share(plan, graph, noisy)
        advance(1)
        seen, digest = run_shown(run, parties, plan, shared, subject)
        values = [
            (plan.reports(own, view.bound), [answer(plan, view, silo, place)])
            for place, ((view, own), silo) in enumerate(zip(seen, run.silos, strict=True))
        ]
        reports = run_numbers(run, parties, plan.reports(digest, shared.bound), values)
        advance(1)
    return shared, [report for (report,) in reports]
