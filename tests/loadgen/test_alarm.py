"""Waking at exact moments, with the kernel's timer and without."""

import asyncio
import sys

import pytest
from machine import undisturbed
from playhead.engine.clock import monotonic
from playhead.loadgen.alarm import Alarm


async def woken(*delays: float) -> list[float]:
    """How late each was woken, in the order of waking."""
    late: list[float] = []

    async def wait(alarm: Alarm, at: float) -> None:
        await alarm.wait_until(at)
        late.append(monotonic() - at)

    async with Alarm().running() as alarm:
        now = monotonic()
        async with asyncio.TaskGroup() as group:
            for delay in delays:
                group.create_task(wait(alarm, now + delay))
    return late


@pytest.mark.parametrize("platform", ["linux", "elsewhere"])
def test_nobody_is_woken_early_whatever_the_order(
    monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)

    def quickest() -> float:
        late = asyncio.run(woken(0.05, 0.01, 0.0102, -1.0, 0.03))
        assert len(late) == 5
        assert min(late) >= 0.0
        return min(late)

    undisturbed(quickest, below=0.02)


def test_who_gave_up_is_passed_over() -> None:
    async def run() -> None:
        async with Alarm().running() as alarm:
            gone = asyncio.create_task(alarm.wait_until(monotonic() + 0.01))
            await asyncio.sleep(0)
            gone.cancel()
            await alarm.wait_until(monotonic() + 0.02)
            assert gone.cancelled()

    asyncio.run(run())
