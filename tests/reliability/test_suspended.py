"""A machine that was suspended: timers of its loop stood still, the clock of all else did not."""

import asyncio
import contextlib
import time

import numpy as np
import pytest
from kit import Bare, client
from live import WaveRunner, live_server, sound
from playhead.gateway import messages as m
from websockets.exceptions import ConnectionClosed

TEXT = "Nothing of this may be missing."
HOUR = 3_600.0


def suspended(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The machine wakes up: so much later it is by both clocks."""
    real, wall = time.clock_gettime_ns, time.time
    monkeypatch.setattr(time, "clock_gettime_ns", lambda one: real(one) + round(seconds * 1e9))
    monkeypatch.setattr(time, "time", lambda: wall() + seconds)


async def cut(bare: Bare) -> m.ResumeFrom:
    bare.socket.transport.abort()
    with contextlib.suppress(ConnectionClosed):
        while True:
            await bare.receive()
    return m.ResumeFrom(bare.ready.session, bare.ready.token, bare.seq)


@pytest.mark.parametrize("slept", [5.0, HOUR])
def test_whoever_is_still_there_hears_on_and_may_return(
    slept: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with live_server(WaveRunner(200.0)) as address:
            async with client(address + "/v1/session") as bare:
                await bare.send(m.Text(TEXT), m.End())
                await bare.until(m.Audio)
                suspended(monkeypatch, slept)
                np.testing.assert_array_equal(await bare.all_audio(), sound(TEXT))
                await asyncio.sleep(0.3)  # pings and their limits, if they were to hang up
                await bare.send(m.Text(TEXT), m.End())
                np.testing.assert_array_equal(await bare.all_audio(2), sound(TEXT))
                origin = await cut(bare)
            async with client(address + "/v1/session", resume=origin, greeted=False) as back:
                assert (await back.until(m.Ready)).resumed

    asyncio.run(main())


def test_who_was_away_has_the_rest_of_its_grace_to_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody could come while the machine slept: timers of sessions stood still, and do not look
    back."""

    async def main() -> None:
        async with live_server(WaveRunner(200.0), grace=3.0) as address:
            url = address + "/v1/session"
            async with client(url) as bare, client(url) as late:
                origin, other = await cut(bare), await cut(late)
            suspended(monkeypatch, HOUR)
            async with client(url, resume=origin, greeted=False) as back:
                assert (await back.until(m.Ready)).resumed
            await asyncio.sleep(3.3)
            async with client(url, resume=other, greeted=False) as back:
                refused = await back.until(m.ErrorEvent)
                assert (refused.code, refused.recovered) == ("resume_failed", False)

    asyncio.run(main())
