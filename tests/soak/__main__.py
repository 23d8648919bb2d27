"""Run the soak, or a part of it, and print the table.

One line for each case; at the end a table with a line for each fault. The exit code is 1 if
anything was not as expected. The order of cases is the seed's, so that parts by ``--first`` and
``--count`` take about as long as they are large; ``--merge`` makes one table of several parts.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from silograph.nats.silo import SiloService
from tests.ledger.kills import kill_while_spending
from tests.nats.cases import every_case
from tests.nats.faults import HELPER, Case, at_hub, run_case
from tests.nats.proposals import LONGEST_JUDGING, attack, strict_trial
from tests.soak.operators import MAY_MOUNT, can_mount, every_trial
from tests.soak.table import Found, Outcome, Trial, merged, saved, table
from tests.support.local_deployment import HUB

_ANSWER = "the answer, paid once"
_NAMED = "named by all who wait; the answer afterwards, paid once"
_ENDED = "ended at the deadline, or the answer"
#: What happens in the cases of ``tests/nats/cases``, and what is expected of them.
_FAULTS = {
    "kill": ("kill of {}", _ANSWER),
    "broker": ("kill of the broker", _ANSWER),
    "stall": ("stall of {}", _ENDED),
    "cut": ("lines cut for 1.5 s", _ANSWER),
    "slow": ("lines of 256 kbit/s that lose 5 %", _ANSWER),
    "full": ("broker at its limit of disk", _NAMED),
    "away": ("{} is away", _NAMED),
    "down": ("the broker is away", _NAMED),
    "hang": ("the broker hangs", _NAMED),
}


def _case(case: Case, folder: Path) -> Found:
    verdict = run_case(case, folder)
    wrong = verdict.faults if verdict.struck else ("was not struck",)
    happened = {"done": "answer", "aborted": "ended"}.get(verdict.state, verdict.state)
    return Found(happened, wrong, verdict.named)


def _trial(case: Case) -> Trial:
    fault, expected = _FAULTS[case.what]
    who = "the coordinator" if at_hub(case) or case.victim == HUB else "a silo"
    who = "a helper" if case.victim == HELPER and who == "a silo" else who
    return Trial(fault.format(who), str(case), expected, partial(_case, case))


def _kills(count: int, seed: int, folder: Path) -> Found:
    report = kill_while_spending(folder / "ledger", count, seed)
    return Found(f"{report.kills} killed", report.lost)


def _proposals(count: int, seed: int, folder: Path) -> Found:
    made = strict_trial(folder)
    service = SiloService(made.silo("silo-1"))
    found = attack(made, service, count, seed)
    service.close()
    slow = found.slowest > LONGEST_JUDGING
    wrong = (f"one took {found.slowest:.3f} s of CPU",) if slow else ()
    return Found(f"{count} judged", wrong)


def _every(seed: int, kills: int, proposals: int) -> list[Trial]:
    """All trials, in the seed's order."""
    found = [*map(_trial, every_case(seed)), *every_trial()]
    writer, sent = partial(_kills, kills, seed), partial(_proposals, proposals, seed)
    judged = "each is judged, in little time"
    found += [
        Trial("kill of a ledger's writer", "ledger-kills", "no spend is lost", writer),
        Trial("proposals that nobody should send", "proposals", judged, sent),
    ]
    random.Random(seed).shuffle(found)  # noqa: S311
    return found


def _with_mounts() -> None:
    """Start again in a space in which small disks can be mounted, which end with this process."""
    unshare = shutil.which("unshare")
    words = ["unshare", "--map-root-user", "--mount"]
    if can_mount() or unshare is None:
        return
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
        os.environ[MAY_MOUNT] = "1"
        os.execv(unshare, [*words, sys.executable, "-m", "tests.soak", *sys.argv[1:]])  # noqa: S606


def _run(trials: list[Trial], first: int) -> list[Outcome]:
    found = []
    for number, trial in enumerate(trials, first):
        if trial.fault.startswith("full disk") and not can_mount():
            outcome = Outcome(trial.fault, trial.case, trial.expected, "left out: no mounts", (), 0)
        else:
            with tempfile.TemporaryDirectory(prefix="silograph-soak-") as folder:
                outcome = trial.tried(Path(folder))
        found.append(outcome)
        print(f"{number:4} {outcome}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="cases with this in their names")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=1000, help="of a ledger's writer")
    parser.add_argument("--proposals", type=int, default=10_000)
    parser.add_argument("--list", action="store_true", help="print the names of the cases, only")
    parser.add_argument("--json", type=Path, help="write all outcomes to this file")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    parser.add_argument("--merge", type=Path, nargs="+", help="JSON of parts; nothing is run")
    given = parser.parse_args()
    began = time.monotonic()
    if given.merge:
        found = merged(given.merge)
    else:
        chosen = _every(given.seed, given.kills, given.proposals)
        chosen = [trial for trial in chosen if given.only in trial.case]
        chosen = chosen[given.first : given.first + given.count]
        if given.list:
            print("\n".join(trial.case for trial in chosen))
            return 0
        _with_mounts()
        found = _run(chosen, given.first)
    text = table(found)
    print(f"\n{text}")
    if given.json:
        saved(found, given.json)
    if given.markdown:
        given.markdown.write_text(text)
    wrong = [outcome for outcome in found if outcome.wrong]
    for outcome in wrong:
        print(outcome)
    took = sum(outcome.seconds for outcome in found)
    print(
        f"{len(found)} cases, {len(wrong)} wrong, {took / 60:.1f} minutes of cases in "
        f"{(time.monotonic() - began) / 60:.1f} minutes"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
