"""A gateway in a process of its own that stands still: leads cover that from then on."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

from kit import Bare, client, served
from live import WaveRunner, live_gateway
from machine import PATIENCE
from playhead.engine import lead
from playhead.engine.lanes import cpu_limits
from playhead.engine.lead import LeadLimits
from playhead.engine.loop import Engine, EngineConfig
from playhead.engine.remote.server import EngineServer
from playhead.engine.stream import Stream
from playhead.gateway import messages as m

TEXT = "A text that is long enough for all of this. " * 20
STOPPED = 0.5
SEEN = STOPPED - 0.1
"""Seconds: the loop is late for what is due every 0.1 s, and was stopped somewhere in between."""


def stands_still(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(STOPPED)
    os.kill(pid, signal.SIGCONT)


@contextlib.asynccontextmanager
async def engine_of(path: Path) -> AsyncIterator[Engine]:
    """An engine with a process to itself: this one."""
    config = EngineConfig(cpu_limits(2))

    def start(deliver):  # type: ignore[no-untyped-def]
        engine = Engine(WaveRunner(200.0), config, deliver)
        engine.start()
        return engine

    server = EngineServer(start)
    await server.start(str(path))
    try:
        yield server.engine
    finally:
        server.stop()


async def speak(bare: Bare) -> None:
    await bare.send(m.Text(TEXT))
    await bare.until(m.Audio)


def known_to_be_steady(engine: Engine) -> dict[int, Stream]:
    """The streams of each gateway, all as if they had been listened to for long."""
    found = {stream.request.gateway: stream for stream in engine._scheduler.streams()}
    for stream in found.values():
        stream.learner._observed = lead.ENOUGH
        stream.learner.limit = stream.learner._limit()
    return found


async def until_lead(engine: Engine, stream: Stream, least: float) -> None:
    end = time.monotonic() + PATIENCE
    while engine._scheduler.survey.lead(stream) < least and time.monotonic() < end:
        await asyncio.sleep(0.05)
    assert engine._scheduler.survey.lead(stream) >= least


def test_a_gateway_that_stood_still_has_its_listeners_hold_more_and_no_others(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with engine_of(tmp_path / "engine") as engine, contextlib.AsyncExitStack() as open_:
            urls, pids = [], []
            for _ in range(2):
                gateway = served("--engine", str(tmp_path / "engine"), "--http-port", "off")
                process, url = await asyncio.to_thread(open_.enter_context, gateway)
                urls.append(url)
                pids.append(process.pid)
            for url in urls:
                await speak(await open_.enter_async_context(client(url, reports=True)))
            streams = known_to_be_steady(engine)
            assert set(streams) == {1, 2}
            survey = engine._scheduler.survey
            await asyncio.to_thread(stands_still, pids[0])
            await until_lead(engine, streams[1], 2 * SEEN)
            assert survey.lead(streams[1]) <= LeadLimits().unknown
            # What a busy machine does to the other gateway is forgotten; it was not stopped.
            async with asyncio.timeout(PATIENCE):
                while survey.lead(streams[2]) >= survey.lead(streams[1]) - SEEN / 2:
                    await asyncio.to_thread(stands_still, pids[0])

    asyncio.run(main())


def test_in_one_process_a_loop_that_stood_still_has_everybody_hold_more() -> None:
    """Though the engine's own thread went on."""

    async def main() -> None:
        async with live_gateway(WaveRunner(200.0)) as server:
            engine = server.hub.engine
            assert isinstance(engine, Engine)
            async with client(f"ws://127.0.0.1:{server.port}/v1/session", reports=True) as bare:
                await speak(bare)
                (stream,) = known_to_be_steady(engine).values()
                await asyncio.sleep(0.15)
                time.sleep(STOPPED)
                await until_lead(engine, stream, 2 * SEEN)

    asyncio.run(main())
