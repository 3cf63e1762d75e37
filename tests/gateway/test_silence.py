"""Clients that never report, over real sockets: what the kernel tells becomes reports."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import uvloop
from harness import Gateway, eventually, gateway
from machine import PATIENCE
from playhead.engine.types import Source
from playhead.gateway import silence
from playhead.gateway.messages import Audio, Cancel, Cancelled, Done, End, Text
from playhead.gateway.silence import INTERVAL

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="SIOCOUTQ is Linux's")


@asynccontextmanager
async def observing(**options: Any) -> AsyncIterator[Gateway]:
    async with gateway(**options) as running:
        running.server.hub.facts = replace(running.server.hub.facts, observed=True)
        yield running


def sources(running: Gateway, name: str) -> float | None:
    return running.server.metrics.registry.get_sample_value(
        "playhead_listener_sources", {"source": name}
    )


def test_acknowledged_audio_is_reported_for_a_client_that_says_nothing() -> None:
    async def main() -> None:
        async with observing() as running:
            client = await running.greeted(reports=False, start_threshold=0)
            assert sources(running, "none") == 1
            await client.send(Text("one two three four five six "))
            await eventually(lambda: len(running.engine.reports) >= 2)
            last = running.engine.reports[-1]
            assert last.source is Source.SOCKET
            assert last.received == 6 * 1_920, "all of it is there"
            assert 0 < last.consumed <= last.received
            assert sources(running, "socket") == 1
            assert running.engine.requests[0].reports

    uvloop.run(main())


def test_a_client_that_does_not_read_has_not_received() -> None:
    async def main() -> None:
        async with observing(slow_hold=5.0, slow_close=10.0) as running:
            client = await running.greeted(reports=False, start_threshold=0)
            client.socket.transport.pause_reading()  # type: ignore[attr-defined]
            await client.send(Text("!endless "))

            def behind() -> bool:
                (host,) = running.server.hub.registry
                current = host.session._dialogue.speech._queue.current
                reports = running.engine.reports
                return bool(reports and current and reports[-1].received < current.playback.sent)

            await eventually(behind)
            await asyncio.sleep(2 * INTERVAL)
            assert behind(), "and it stays so"
            client.reset()

    uvloop.run(main())


def test_a_cancel_is_answered_with_where_the_socket_says_the_listener_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(silence, "INTERVAL", PATIENCE)  # only the cancel looks

    async def main() -> None:
        async with observing() as running:
            client = await running.greeted(reports=False, start_threshold=0)
            await client.send(Text("one " * 400), End())
            while not isinstance(await client.receive(), Audio):
                pass
            await asyncio.sleep(0.1)
            await client.send(Cancel())
            cancelled = await client.until(Cancelled)
            assert cancelled.estimated
            assert 0 < cancelled.heard < 400 * 1_920
            assert [r.source for r in running.engine.reports] == [Source.SOCKET]

    uvloop.run(main())


def test_the_end_of_what_a_silent_client_plays_stays_an_estimate() -> None:
    async def main() -> None:
        async with observing(limits={"done_grace": 0.05}) as running:
            client = await running.greeted(reports=False, start_threshold=0)
            await client.send(Text("one two three four five"), End())
            done = await client.until(Done)
            assert done.estimated
            assert done.heard == 5 * 1_920

    uvloop.run(main())


def test_clients_that_report_are_left_alone() -> None:
    async def main() -> None:
        async with observing() as running:
            client = await running.greeted()
            await client.send(Text("one two three"))
            await client.until(Audio)
            await asyncio.sleep(1.5 * INTERVAL)
            assert not running.engine.reports

    uvloop.run(main())
