"""Live pages: a change is told, nothing is told without a session, and nothing but a mark."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from silograph.console import live as module
from silograph.console.live import Live
from silograph.console.silo import SiloDesk
from tests.console.world import deployment, propose


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    made = deployment(tmp_path)
    desk = SiloDesk(made.silo("silo-1"))
    desk.made = made  # type: ignore[attr-defined]
    yield desk
    desk.close()


async def _said(stream: Any, count: int) -> list[str]:
    async with asyncio.timeout(10):
        return [(await anext(stream)).decode() for _ in range(count)]


def test_a_change_is_told(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.01)

    async def follow() -> None:
        live = Live(desk)
        watching = asyncio.create_task(live.watch())
        stream = live.events(lambda: True)
        first = await _said(stream, 2)
        assert first == ["retry: 2000\n\n", f"data: {live.mark}\n\n"]
        waiting = asyncio.create_task(_said(stream, 2))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        study = propose(desk.made)
        told = "".join(await waiting)
        assert f"data: {live.mark}\n\n" in told
        assert live.mark not in first[1]
        assert study.run not in told
        await stream.aclose()
        watching.cancel()

    asyncio.run(follow())


def test_the_stream_ends_with_the_session(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STILL_SECONDS", 0.01)

    async def follow() -> None:
        live, welcome = Live(desk), [True, True, False]
        said = [part async for part in live.events(lambda: welcome.pop(0))]
        assert len(said) == 4
        assert not live.full

    asyncio.run(follow())


def test_so_many_may_listen(desk: Any) -> None:
    async def listen() -> None:
        live = Live(desk)
        streams = [live.events(lambda: True) for _ in range(32)]
        for stream in streams:
            await anext(stream)
        assert live.full
        await streams[0].aclose()  # type: ignore[attr-defined]
        assert not live.full
        for stream in streams:
            await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(listen())
