"""What a party learns of its line, and how much it puts on it."""

import asyncio
import time

import pytest

from silograph.errors import SlowLineError
from silograph.methods.cost import LineLoad
from silograph.nats.pace import Pace, Rates, check_in_time
from silograph.party.control import Code, code_of

KB, MB = 1000, 1_000_000


def test_the_rate_is_that_of_what_was_confirmed() -> None:
    pace = Pace()
    assert pace.rate is None
    pace.saw(100, time.monotonic() - 5.0)  # of a small message only the latency is seen
    assert pace.rate is None
    pace._last = 0.0
    pace.saw(320 * KB, time.monotonic() - 10.0)
    assert pace.rate == pytest.approx(32 * KB, rel=0.05)


def test_messages_share_the_line() -> None:
    """Two that were sent together had it one after the other, not for the whole time each."""
    pace = Pace()
    pace._last = time.monotonic() - 10.0
    pace.saw(320 * KB, time.monotonic() - 20.0)
    assert pace.rate == pytest.approx(32 * KB, rel=0.05)


def test_patience_grows_with_size_and_falls_with_the_rate() -> None:
    pace = Pace()
    least = pace.patience
    pace.rate = 32.0 * KB
    pace._under_way = 320 * KB
    slow = pace.patience
    assert slow >= least + 10.0
    pace.rate = 10.0 * MB
    assert least < pace.patience < least + 1.0
    pace.rate = 1.0
    assert pace.patience <= 60.0  # asking costs little


@pytest.mark.parametrize(("rate", "together"), [(None, 1), (32.0 * KB, 1), (50.0 * MB, 4)])
def test_a_slow_line_carries_one_large_message_at_a_time(
    rate: float | None, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pace, "saw", lambda *_given: None)
    pace = Pace()
    pace.rate = rate
    most, order = 0, []

    async def send(number: int, size: int) -> None:
        nonlocal most
        async with pace.turn(size):
            most = max(most, pace._under_way // (2 * MB))
            order.append(number)
            await asyncio.sleep(0.01)

    async def run() -> None:
        sending = [asyncio.create_task(send(i, 2 * MB)) for i in range(4)]
        await asyncio.sleep(0)
        small = asyncio.create_task(send(9, 500))
        await asyncio.gather(*sending, small)

    asyncio.run(run())
    assert most == together
    assert [number for number in order if number < 9] == [0, 1, 2, 3]
    assert order.index(9) <= together  # what is small does not wait
    assert pace._under_way == 0


def test_whoever_gives_up_leaves_the_queue() -> None:
    pace = Pace()

    async def send() -> None:
        async with pace.turn(MB):
            await asyncio.sleep(0.02)

    async def run() -> None:
        first, second, third = (asyncio.create_task(send()) for _ in range(3))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(first, second, third, return_exceptions=True)
        assert third.exception() is None

    asyncio.run(run())


class Line:
    """A line of some rate, whose answers take some seconds by themselves."""

    def __init__(self, rate: float, latency: float = 0.0) -> None:
        self.rate, self.latency = rate, latency
        self.probes: list[int] = []

    async def measure(self, size: int) -> Rates:
        self.probes.append(size)
        rate = size / (size / self.rate + self.latency)
        return Rates(rate, 2 * rate)

    def check(self, up: int, down: int, left: float) -> None:
        asyncio.run(check_in_time(LineLoad(up, down), lambda: left, self.measure))


class TestInTime:
    def test_a_study_that_the_line_can_carry_and_one_that_it_cannot(self) -> None:
        """1 MB takes 31 s at 256 kbit/s, with what is added to it 38 s."""
        Line(32.0 * KB).check(MB, 0, 80.0)
        Line(32.0 * KB).check(0, 2 * MB, 80.0)
        for up, down in ((MB, 0), (0, 2 * MB), (MB // 2, MB)):
            with pytest.raises(
                SlowLineError, match=r"38 s at 256 kbit/s to .*; of 60 s until"
            ) as e:
                Line(32.0 * KB).check(up, down, 60.0)
            assert code_of(e.value) is Code.SLOW

    def test_probes_are_a_small_share(self) -> None:
        for load in (10 * KB, 90 * KB, MB, 100 * MB):
            line = Line(MB)
            line.check(load, 0, 1e6)
            assert sum(line.probes) <= 0.05 * load
        few = Line(1.0)
        few.check(10 * KB, 0, 1.0)  # not worth a probe
        assert few.probes == []

    def test_a_slow_answer_is_not_a_slow_line(self) -> None:
        """A disk that takes long to store anything; larger probes show the line."""
        line = Line(50.0 * MB, latency=0.1)
        line.check(200 * MB, 0, 60.0)
        assert line.probes == [1 << 16, 1 << 19, 1 << 21]
