"""Lag is what a timer is late by."""

import asyncio
import time

import pytest
from playhead.gateway.looplag import LoopLag


class FakeLoop:
    """Keeps timers until told to fire them."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, object]] = []
        self.cancelled = 0

    def call_later(self, delay: float, callback: object) -> "FakeLoop":
        self.timers.append((delay, callback))
        return self

    def cancel(self) -> None:
        self.cancelled += 1


def test_each_sample_is_the_lateness_of_one_timer() -> None:
    loop, seen, told, clock = FakeLoop(), [], [], [100.0]
    lag = LoopLag(
        loop,  # type: ignore[arg-type]
        seen.append,
        lambda seconds, now: told.append((seconds, now)),
        interval=0.5,
        now=lambda: clock[0],
    )
    lag.start()
    for late in (0.25, 0.0, -0.001):  # the last one fires a little early, as uvloop's do
        delay, fire = loop.timers.pop()
        assert delay == 0.5
        clock[0] += delay + late
        fire()  # type: ignore[operator]
    assert seen == [0.25, 0.0, 0.0]
    assert told == [(0.25, 100.75)], "what is worse than any of late"
    lag.stop()
    lag.stop()
    assert loop.cancelled == 1


def test_a_chore_is_done_after_each_sample_and_what_it_takes_is_told() -> None:
    loop, seen, told, clock = FakeLoop(), [], [], [100.0]
    takes = iter((0.0, 0.75, 0.0))

    def chore() -> float:
        took = next(takes)
        clock[0] += took
        return took

    lag = LoopLag(
        loop,  # type: ignore[arg-type]
        seen.append,
        lambda seconds, now: told.append((seconds, now)),
        chore,
        interval=0.5,
        now=lambda: clock[0],
    )
    lag.start()
    for _ in range(3):
        delay, fire = loop.timers.pop()
        clock[0] += delay
        fire()  # type: ignore[operator]
    assert seen == [0.0, 0.0, 0.75, 0.0], "and it is not counted a second time"
    assert told == [(0.75, 101.75)]


def test_a_chore_that_fails_is_tried_again() -> None:
    loop, seen, clock = FakeLoop(), [], [100.0]

    def chore() -> float:
        raise MemoryError

    lag = LoopLag(
        loop,  # type: ignore[arg-type]
        seen.append,
        lambda *_: None,
        chore,
        interval=0.5,
        now=lambda: clock[0],
    )
    lag.start()
    for _ in range(2):
        delay, fire = loop.timers.pop()
        clock[0] += delay
        with pytest.raises(MemoryError):  # which the loop logs
            fire()  # type: ignore[operator]
    assert seen == [0.0, 0.0]
    assert loop.timers, "and once more"


def test_a_blocked_loop_is_seen() -> None:
    seen: list[float] = []
    began = time.monotonic()

    async def main() -> None:
        lag = LoopLag(asyncio.get_running_loop(), seen.append, lambda *_: None, interval=0.01)
        lag.start()
        await asyncio.sleep(0.015)
        time.sleep(0.05)
        await asyncio.sleep(0.02)
        lag.stop()
        count = len(seen)
        await asyncio.sleep(0.03)
        assert len(seen) == count

    asyncio.run(main())
    assert 0.02 < max(seen) < time.monotonic() - began
