"""`make soak`: every fault case of a deployment, the loss of a server of a cluster, a thousand
kills of a spending process, and ten thousand proposals that nobody should send.

Prints one line per case, and exits with an error at the end if any went wrong. ``--first`` and
``--count`` choose a part of the cases, ``--only`` those with a word; the order is the seed's.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from silograph.errors import SilographError
from silograph.nats.silo import SiloService
from tests.ledger.kills import kill_while_spending
from tests.nats.cluster import lose_the_leader
from tests.nats.faults import METHODS, every_case, run_case, setting
from tests.nats.proposals import LONGEST_JUDGING, attack, strict_trial


def fail_over(only: str) -> int:
    """Kill the server that leads a stream, for some methods; how many went wrong."""
    wrong = 0
    for method in ("masked", "committee", "sealed"):
        name = f"{method}-failover"
        if only not in name:
            continue
        count, terms, helpers = setting(method)
        began, state = time.monotonic(), "done"
        with tempfile.TemporaryDirectory() as folder:
            given = {"count": count, "terms": terms, "helpers": helpers}
            try:
                found = lose_the_leader(Path(folder) / "cluster", METHODS[method], **given)
                state = "done" if "killed" in found else "was not struck"
            except SilographError as error:
                state = f"no answer: {error}"
        wrong += state != "done"
        print(f"     {name:44} {state:8} {time.monotonic() - began:5.1f} s", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="cases with this in their names")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--proposals", type=int, default=10_000)
    given = parser.parse_args()
    chosen = [case for case in every_case(given.seed) if given.only in str(case)]
    cases = chosen[given.first : given.first + given.count]
    began, wrong = time.monotonic(), 0
    for number, case in enumerate(cases, given.first):
        with tempfile.TemporaryDirectory() as folder:
            verdict = run_case(case, Path(folder))
        well = verdict.struck and not verdict.faults
        wrong += not well
        what = "" if well else f"  {'; '.join(verdict.faults) or 'was not struck'}"
        print(
            f"{number:4} {case!s:44} {verdict.state:8} {verdict.seconds:5.1f} s{what}", flush=True
        )
    wrong += fail_over(given.only)
    if given.kills:
        with tempfile.TemporaryDirectory() as folder:
            report = kill_while_spending(Path(folder) / "ledger", given.kills, given.seed)
        print(report)
        wrong += bool(report.lost)
    if given.proposals:
        with tempfile.TemporaryDirectory() as folder:
            made = strict_trial(Path(folder))
            service = SiloService(made.silo("silo-1"))
            found = attack(made, service, given.proposals, given.seed)
            service.close()
        slow = found.slowest > LONGEST_JUDGING
        print(f"{given.proposals} proposals, the slowest judged in {found.slowest:.3f} s of CPU")
        print("  " + ", ".join(f"{state}: {count}" for state, count in found.states.most_common()))
        wrong += slow
    print(f"{len(cases)} cases in {time.monotonic() - began:.0f} s, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
