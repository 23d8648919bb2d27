"""Many processes and threads on one file, forks, and processes that are killed."""

import contextlib
import ctypes
import multiprocessing
import os
import random
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from silograph.errors import BudgetError
from silograph.ledger.book import Ledger
from tests.ledger.kills import CONTEXT, kill_while_spending
from tests.ledger.test_book import pay

PROCESSES, EACH = 32, 8


def spend_together(path: Path, own: int, start: Any, pipe: Connection) -> None:
    """Open (and, first of all, create) the ledger with all others at once; report every answer."""
    told = []
    try:
        start.wait()
        with Ledger(path) as ledger:
            ledger.set_limit("claims", 10.0)
            draw = random.Random(own)  # noqa: S311
            for i in range(EACH):
                loss = draw.choice([0.1, 0.05, 0.3])
                try:
                    spend = pay(ledger, f"p{own}-{i}", {0: 0.01, 1: loss})
                    told.append((spend.run, loss, True))
                except BudgetError as error:  # a refusal of what is left is told as a spend
                    told.append((f"p{own}-{i}", loss, error.asked[0] <= error.left[0]))
        pipe.send(told)
    except BaseException as error:
        pipe.send(f"{type(error).__name__}: {error}")


@pytest.mark.slow
def test_32_processes_never_overspend_and_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "silo.ledger"
    start = CONTEXT.Barrier(PROCESSES)
    pipes, children = [], []
    for own in range(PROCESSES):
        receive, send = CONTEXT.Pipe(duplex=False)
        children.append(CONTEXT.Process(target=spend_together, args=(path, own, start, send)))
        children[-1].start()
        send.close()
        pipes.append(receive)
    answers = [pipe.recv() for pipe in pipes]
    for child in children:
        child.join()
    assert [a for a in answers if isinstance(a, str)] == []
    told = {run: (loss, paid) for answer in answers for run, loss, paid in answer}
    assert len(told) == PROCESSES * EACH
    with Ledger(path) as ledger:
        rows = {row.run: row.losses[1] for row in ledger.rows("claims")}
        left = ledger.remaining("claims")
        assert len(ledger.limits("claims")) == 1
    assert rows == {run: loss for run, (loss, paid) in told.items() if paid}
    total = sum((Fraction(loss) for loss in rows.values()), Fraction(0))
    assert total <= 10
    refused = [loss for loss, paid in told.values() if not paid]
    assert refused, "the limit was never reached, so nothing was shown"
    assert left is not None
    assert left.epsilon < max(refused)


def hold_same_key(path: Path, own: int, start: Any, pipe: Connection) -> None:
    try:
        with Ledger(path) as ledger:
            start.wait()
            pipe.send([pay(ledger, f"r{i}", {1: 0.5}).repeated for i in range(6)])
    except BaseException as error:
        pipe.send(f"{type(error).__name__}: {error}")


@pytest.mark.slow
def test_a_party_started_twice_pays_once(tmp_path: Path) -> None:
    path = tmp_path / "silo.ledger"
    with Ledger(path) as ledger:
        ledger.set_limit("claims", 3.0)
    start = CONTEXT.Barrier(8)
    pipes, children = [], []
    for own in range(8):
        receive, send = CONTEXT.Pipe(duplex=False)
        children.append(CONTEXT.Process(target=hold_same_key, args=(path, own, start, send)))
        children[-1].start()
        send.close()
        pipes.append(receive)
    answers = [pipe.recv() for pipe in pipes]
    for child in children:
        child.join()
    assert [a for a in answers if isinstance(a, str)] == []
    for i in range(6):
        assert sum(not answer[i] for answer in answers) == 1
    with Ledger(path) as ledger:
        assert ledger.spent("claims").epsilon == 3.0


@pytest.mark.parametrize("shared", [True, False], ids=["one object", "one object each"])
def test_threads(tmp_path: Path, shared: bool) -> None:
    path = tmp_path / "silo.ledger"
    with Ledger(path) as common:
        common.set_limit("claims", 2.0)
        told: list[str] = []
        wrong: list[BaseException] = []

        def work(own: int) -> None:
            ledger = common if shared else Ledger(path)
            try:
                for i in range(8):
                    with contextlib.suppress(BudgetError):
                        told.append(pay(ledger, f"t{own}-{i}", {1: 0.0625}).run)
                    ledger.remaining("claims")
            except BaseException as error:
                wrong.append(error)
            if not shared:
                ledger.close()

        threads = [threading.Thread(target=work, args=(own,)) for own in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert len(told) == 32
        assert {row.run for row in common.rows()} == set(told)


def run_of(ledger: Ledger, run: str) -> str:
    return pay(ledger, run, {1: 0.5}).run


def in_a_fork(task: Callable[[], object]) -> tuple[Connection, Callable[[], int]]:
    """Run ``task`` in a plain fork; its answer comes through the pipe."""
    receive, send = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            send.send(task())
        except BaseException as error:
            send.send(f"{type(error).__name__}: {error}")
        os._exit(0)
    send.close()
    return receive, lambda: os.waitpid(child, 0)[1]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
class TestForks:
    def test_both_sides_go_on(self, tmp_path: Path) -> None:
        with Ledger(tmp_path / "x") as ledger:
            ledger.set_limit("claims", 8.0)
            pay(ledger, "before", {1: 1.0})

            def child() -> int:
                return sum(pay(ledger, f"c{i}", {1: 1.0}).losses[1] > 0 for i in range(3))

            pipe, wait = in_a_fork(child)
            mine = [pay(ledger, f"p{i}", {1: 1.0}).run for i in range(3)]
            assert pipe.recv() == 3
            assert wait() == 0
            assert len(mine) == 3
            left = ledger.remaining("claims")
            assert left is not None
            assert left.epsilon == 1.0

    def test_the_parent_may_close_first(self, tmp_path: Path) -> None:
        """A child that relied on inherited locks would write into a deleted log."""
        go_receive, go_send = multiprocessing.Pipe(duplex=False)
        ready_receive, ready_send = multiprocessing.Pipe(duplex=False)
        ledger = Ledger(tmp_path / "x")
        pay(ledger, "before", {1: 1.0})

        def child() -> list[str]:
            told = [pay(ledger, "c0", {1: 1.0}).run]
            ready_send.send(True)
            go_receive.recv()
            return [*told, *(pay(ledger, f"c{i}", {1: 1.0}).run for i in range(1, 4))]

        pipe, wait = in_a_fork(child)
        ready_receive.recv()
        ledger.close()
        with Ledger(tmp_path / "x") as other:
            pay(other, "between", {1: 1.0})
        go_send.send(True)
        told = pipe.recv()
        assert told == ["c0", "c1", "c2", "c3"]
        assert wait() == 0
        with Ledger(tmp_path / "x") as ledger:
            assert {row.run for row in ledger.rows()} == {"before", "between", *told}

    def test_in_the_middle_of_another_threads_spends(self, tmp_path: Path) -> None:
        with Ledger(tmp_path / "x") as ledger:
            stop = threading.Event()
            told: list[str] = []

            def work() -> None:
                while not stop.is_set():
                    told.append(pay(ledger, f"t{len(told)}", {1: 0.5}).run)

            thread = threading.Thread(target=work)
            thread.start()
            children = []
            for i in range(10):
                name = f"c{i}"
                children.append(in_a_fork(partial(run_of, ledger, name)))
            answers = [pipe.recv() for pipe, _ in children]
            assert [wait() for _, wait in children] == [0] * 10
            stop.set()
            thread.join()
            assert answers == [f"c{i}" for i in range(10)]
            assert {row.run for row in ledger.rows()} == {*told, *answers}

    def test_a_fork_that_python_was_not_told_of(self, tmp_path: Path) -> None:
        with Ledger(tmp_path / "x") as ledger:
            receive, send = os.pipe()
            child = ctypes.PyDLL(None).fork()
            if child == 0:
                try:
                    pay(ledger, "c", {1: 1.0})
                    said = "nothing"
                except BaseException as error:
                    said = str(error)
                os.write(send, said.encode())
                os._exit(0)
            os.close(send)
            with open(receive, "rb") as pipe:
                said = pipe.read().decode()
            os.waitpid(child, 0)
            assert "fork that Python was not told of" in said
            assert pay(ledger, "p", {1: 1.0}).number == 1


@pytest.mark.slow
def test_killed_60_times(tmp_path: Path) -> None:
    """What a spend has reported is in the file, whenever its process dies."""
    report = kill_while_spending(tmp_path / "silo.ledger", kills=60, seed=20310506)
    assert report.lost == ()
    assert report.unreported <= report.kills
    assert report.reported >= report.kills, "too few spends for the kills to meet any"
    assert report.killed_before_the_first_spend >= 1
