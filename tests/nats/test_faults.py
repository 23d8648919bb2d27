"""A sample of the fault cases of ``make soak``; and the moments that they aim at are all passed."""

import asyncio
from pathlib import Path

import pytest

from silograph.nats import faultpoints
from tests.nats.cases import ABSENT, every_case
from tests.nats.faults import METHODS, Case, run_case, setting
from tests.nats.world import ask, serving, trial

SAMPLE = [
    Case("masked", "broker", "silo.frozen"),
    Case("masked", "stall", "silo.authorised"),
    Case("masked", "cut", "0.30"),
    Case("folded", "kill", "silo.made", 2),
    Case("feat+", "kill", "coordinator.frozen", 4),
    Case("sealed", "kill", "frozen tell", 1, "silo-3"),
    Case("sealed inside", "kill", "taken done 4", 1, "hub"),
    Case("blinded", "kill", "silo.taken", 3),
    Case("committee", "kill", "silo.taken", 25),
    Case("committee", "stall", "silo.taken", 30, "silo-1"),
    *(
        pytest.param(case, marks=pytest.mark.whole)
        for case in (
            Case("masked", "kill", "silo.made", 2),
            Case("sealed", "kill", "silo.made", 2),
            Case("committee", "kill", "silo.sent", 60, "notary"),
            Case("sealed", "kill", "taken joint 80", 1, "notary"),
            Case("sealed", "stall", "silo.made", 1, "silo-1"),
            Case("sealed five", "kill", "frozen input 2", 1, "silo-5"),
            Case("sealed shares", "kill", "frozen sum", 1, "notary"),
        )
    ),
]


@pytest.mark.parametrize("case", SAMPLE, ids=str)
def test_a_right_answer_or_none_in_time_and_paid_once(case: Case, tmp_path: Path) -> None:
    verdict = run_case(case, tmp_path)
    assert verdict.struck
    assert verdict.faults == ()
    assert verdict.state == ("aborted" if case.what == "stall" else "done")


def test_the_soak_has_two_hundred_cases_and_more() -> None:
    cases = every_case()
    assert len(set(cases)) == len(cases) >= 200
    assert {case.method for case in cases} == set(METHODS)
    assert every_case() == cases


@pytest.mark.parametrize("method", ["feat+", "blinded", "baseline", "hubs", "folded", "sealed",
                                    "sealed inside", "sealed five", "committee"])  # fmt: skip
def test_every_moment_that_is_aimed_at_is_passed(method: str, tmp_path: Path) -> None:
    count, terms, helpers = setting(method)
    made = trial(tmp_path, terms, count, helpers=helpers)
    passed: set[str] = set()

    async def run() -> None:
        async with serving(made):
            await ask(made, METHODS[method])
            await asyncio.sleep(0.5)  # the silos hear of the end

    made.broker.start()
    try:
        with faultpoints.hooked(passed.add):
            asyncio.run(run())
    finally:
        made.broker.stop()
    assert passed == {*faultpoints.SILO, *faultpoints.COORDINATOR} - ABSENT[method]
