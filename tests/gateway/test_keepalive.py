"""One timer for the pings of all connections."""

import asyncio

import pytest
from machine import PATIENCE
from playhead.engine import clock
from playhead.gateway import keepalive as module
from playhead.gateway.keepalive import Keepalive


class Line:
    def __init__(self, pacemaker: Keepalive, beats: int, every: float) -> None:
        self.slot = 0
        self.times: list[float] = []
        self._left = beats
        self._every = every
        pacemaker.enter(self, clock.monotonic() + every)

    def beat(self, now: float) -> float | None:
        self.times.append(now)
        self._left -= 1
        return now + self._every if self._left else None


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK", 0.002)


def test_each_line_beats_when_it_asked_to() -> None:
    async def main() -> None:
        pacemaker = Keepalive(asyncio.get_running_loop())
        began = clock.monotonic()
        fast, slow = Line(pacemaker, 4, 0.01), Line(pacemaker, 1, 0.05)
        gone = Line(pacemaker, 1, 0.01)
        pacemaker.leave(gone)
        async with asyncio.timeout(PATIENCE):
            while not slow.times or len(fast.times) < 4:
                await asyncio.sleep(0.005)
        assert len(fast.times) == 4
        assert fast.times[0] - began >= 0.01
        assert all(b - a >= 0.01 for a, b in zip(fast.times, fast.times[1:], strict=False))
        assert slow.times[0] - began >= 0.05
        assert gone.times == []
        pacemaker.leave(slow)
        late = Line(pacemaker, 1, 0.0)  # the timer had stopped
        async with asyncio.timeout(PATIENCE):
            while not late.times:
                await asyncio.sleep(0.005)

    asyncio.run(main())


async def ticks(pacemaker: Keepalive, now: float) -> None:
    """Until it has looked at the clock again."""
    async with asyncio.timeout(PATIENCE):
        while pacemaker._ticked != now:
            await asyncio.sleep(0.002)


def test_after_a_long_suspension_each_line_beats_once_when_sockets_have_been_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "STOOD_STILL", 0.5)

    async def main() -> None:
        pacemaker = Keepalive(asyncio.get_running_loop())
        lines = [Line(pacemaker, 9, 30.0), Line(pacemaker, 9, 20.0)]
        now = clock.monotonic()
        monkeypatch.setattr(clock, "monotonic", lambda: now)
        slept = 14 * 24 * 3600.0  # a look at each slot in between would take longer than this test
        for beats, later in ((1, slept), (2, 31.0)):
            now += later
            await ticks(pacemaker, now)
            assert [len(line.times) for line in lines] == [beats - 1] * 2
            for _ in range(2):  # once the sockets have been read, in steps that are no standstill
                now += 0.3
                await ticks(pacemaker, now)
            assert [len(line.times) for line in lines] == [beats] * 2

    asyncio.run(main())


def test_a_line_may_leave_while_others_beat() -> None:
    async def main() -> None:
        pacemaker = Keepalive(asyncio.get_running_loop())
        lines = [Line(pacemaker, 1, 0.004) for _ in range(3)]
        pacemaker.leave(lines[1])
        async with asyncio.timeout(PATIENCE):
            while not (lines[0].times and lines[2].times):
                await asyncio.sleep(0.002)
        assert lines[1].times == []

    asyncio.run(main())
