"""Kill a spending process at random moments, and compare what it was told with its ledger.

A kill ends a process; the kernel keeps what it has written. So this finds a spend that is reported
before it is committed and a file that a crash leaves unusable. What a power cut would take is the
business of ``synchronous=FULL``, which a test of the settings pins.
"""

import multiprocessing
import os
import random
import signal
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from silograph.errors import BudgetError
from silograph.ledger.book import Ledger

__all__ = ["CONTEXT", "KillReport", "kill_while_spending"]

#: Children start from a clean, small server process: fast, and nothing is inherited.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["silograph.ledger.book"])

LOSS = 0.1


@dataclass(frozen=True)
class KillReport:
    """What happened. ``lost`` are spends that were reported as made and are not in the file."""

    kills: int
    killed_before_the_first_spend: int
    reported: int
    unreported: int
    lost: tuple[str, ...]


def spend_until_killed(path: Path, first: int, pipe: Connection) -> None:
    """Spend again and again, reporting each when it returned; open anew every seven spends."""
    pipe.send_bytes(b"ready")
    number = first
    while True:
        with Ledger(path) as ledger:
            for _ in range(7):
                run = f"r{number}"
                try:
                    ledger.spend("claims", run, "release", {0: LOSS, 1: LOSS}, view="v", method="m")
                except BudgetError:
                    pipe.send_bytes(b"refused")
                    time.sleep(60)
                pipe.send_bytes(run.encode())
                number += 1


def kill_while_spending(path: Path, kills: int, seed: int, longest: float = 0.06) -> KillReport:
    """Start, kill after a random time, check; ``kills`` times on one ledger (absent at first).

    Every spend that was reported must be in the file; at most one spend a kill may be there
    without a report (a crash may waste budget); the file must open and pass its checks each time.
    """
    draw = random.Random(seed)  # noqa: S311
    reported: set[str] = set()
    early = first = 0
    for _ in range(kills):
        receive, send = CONTEXT.Pipe(duplex=False)
        child = CONTEXT.Process(target=spend_until_killed, args=(path, first, send))
        child.start()
        send.close()
        assert receive.recv_bytes() == b"ready"
        # After so many reports, however slow the machine is, and then at any moment.
        heard = draw.randrange(4)
        told = {receive.recv_bytes().decode() for _ in range(heard)}
        time.sleep(draw.uniform(0, longest if heard else longest / 10))
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        told |= _drain(receive)
        early += not told
        reported |= told
        # Opened by the next child alone half of the time: recovery is the child's work then.
        if draw.random() < 0.5:
            _check(path, reported)
        first += 100_000
    rows = _check(path, reported)
    return KillReport(
        kills, early, len(reported), len(rows - reported), tuple(sorted(reported - rows))
    )


def _drain(receive: Connection) -> set[str]:
    told = set()
    try:
        while True:
            told.add(receive.recv_bytes().decode())
    except EOFError:
        receive.close()
    return told


def _check(path: Path, reported: set[str]) -> set[str]:
    if not path.exists():
        assert not reported
        return set()
    with Ledger(path, create=False) as ledger:
        rows = {row.run for row in ledger.rows("claims")}
        assert ledger.spent("claims").epsilon >= LOSS * len(rows) * (1 - 1e-12)
    assert reported <= rows, sorted(reported - rows)
    return rows
