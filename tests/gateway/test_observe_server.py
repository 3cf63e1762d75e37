"""Viewers of a running server, over real sockets."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from harness import Gateway, eventually, gateway
from live import live_server
from machine import AT_ONCE, PATIENCE
from playhead.gateway.messages import Audio, Done, End, Text
from playhead.gateway.observe import SUBPROTOCOL
from playhead.gateway.observe_server import BAD_ORDERS, MOST_VIEWERS
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol


def view(url: str, **options: Any) -> connect:
    address = url.replace("/v1/session", "") + "/v1/observe"
    return connect(address, subprotocols=[Subprotocol(SUBPROTOCOL)], **options)


async def stats(viewer: ClientConnection) -> dict[str, Any]:
    while True:
        told = json.loads(await asyncio.wait_for(viewer.recv(), PATIENCE))
        if told["type"] == "stats":
            return dict(told)


async def rest(viewer: ClientConnection) -> list[dict[str, Any]]:
    """Everything until the server closes."""
    async with asyncio.timeout(PATIENCE):
        return [json.loads(frame) async for frame in closing(viewer)]


async def closing(viewer: ClientConnection) -> AsyncIterator[str | bytes]:
    with contextlib.suppress(ConnectionClosed):
        while True:
            yield await viewer.recv()


async def get(server: Gateway, path: str) -> tuple[int, dict[str, Any]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def test_a_viewer_sees_the_lanes_at_no_more_than_ten_a_second() -> None:
    async def scenario() -> None:
        async with gateway() as server, view(server.url) as viewer:
            first = await stats(viewer)
            assert set(first["lanes"]) == {"lm", "background", "urgent"}
            assert first["own"] is None
            began = time.monotonic()
            for _ in range(5):
                await stats(viewer)
            assert time.monotonic() - began > 0.4

    asyncio.run(scenario())


def test_it_is_told_what_is_believed_of_its_own_session_alone() -> None:
    async def scenario() -> None:
        async with gateway(interval=0.2) as server, view(server.url) as viewer:
            mine, other = await server.greeted(), await server.greeted()
            await mine.send(Text("one !endless"))
            await other.send(Text("two !endless"))
            await viewer.send(json.dumps({"type": "watch", "session": mine.ready.session}))
            told = await stats(viewer)
            while told["own"] is None:
                told = await stats(viewer)
            (request,) = [r for r in server.engine.requests if r.client == mine.ready.session]
            assert told["own"]["utterance"] == request.utterance
            assert told["sessions"] == 2

    asyncio.run(scenario())


def test_orders_that_make_no_sense_are_named_and_at_last_end_it() -> None:
    async def scenario() -> None:
        async with gateway() as server, view(server.url) as viewer:
            for _ in range(BAD_ORDERS):
                await viewer.send('{"type":"dance"}')
            told = await rest(viewer)
            assert "unknown_type" in {message.get("code") for message in told}
            assert viewer.close_code == 1008

    asyncio.run(scenario())


def test_a_server_that_is_not_for_viewers_says_so() -> None:
    async def scenario() -> None:
        async with gateway(demo="off") as server:
            status, body = await get(server, "/v1/observe")
            assert (status, body["observe"]) == (200, False)
            with pytest.raises(InvalidStatus) as refused:
                async with view(server.url):
                    pass
            assert refused.value.response.status_code == 403
        async with gateway() as server:
            status, body = await get(server, "/v1/observe")
            assert (status, body["observe"]) == (200, True)

    asyncio.run(scenario())


def test_strange_pages_and_other_subprotocols_are_refused() -> None:
    async def scenario() -> None:
        async with gateway() as server:
            with pytest.raises(InvalidStatus) as refused:
                async with view(server.url, origin="https://evil.example"):
                    pass
            assert refused.value.response.status_code == 403
            address = server.url.replace("session", "observe")
            with pytest.raises(InvalidStatus) as refused:
                async with connect(address, subprotocols=[Subprotocol("playhead.v1.json")]):
                    pass
            assert refused.value.response.status_code == 400

    asyncio.run(scenario())


def test_viewers_are_bounded() -> None:
    async def scenario() -> None:
        async with gateway() as server:
            viewers = [await view(server.url) for _ in range(MOST_VIEWERS)]
            for viewer in viewers:
                await stats(viewer)
            async with view(server.url) as late:
                assert await rest(late) == []
                assert late.close_code == 1013
            await viewers[0].close()
            await let_in(server.url)

    asyncio.run(scenario())


async def let_in(url: str) -> None:
    """Once the server knows that somebody has left."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(ConnectionClosed):
                async with view(url) as viewer:
                    await stats(viewer)
                    return


def test_a_drain_ends_viewers_and_crowds() -> None:
    async def scenario() -> None:
        async with gateway(drain_timeout=60.0) as server:
            viewer = await view(server.url)
            await viewer.send('{"type":"crowd","listeners":5}')
            await eventually(lambda: len(server.server.hub.registry) == 5)
            server.server.hurry()
            await asyncio.wait_for(server.server.drain(), AT_ONCE)
            assert len(server.server.hub.registry) == 0
            await rest(viewer)
            assert viewer.close_code == 1012

    asyncio.run(scenario())


def test_a_crowd_speaks_through_real_sessions_and_ends_with_its_viewer() -> None:
    async def scenario() -> None:
        async with live_server() as url:
            viewer = await view(url)
            await viewer.send('{"type":"crowd","listeners":4,"reports":true}')
            told = await stats(viewer)
            while told["crowd"]["states"].get("playing", 0) < 2:
                told = await stats(viewer)
            assert told["sessions"] == 4
            assert told["utterances"] >= 1
            assert len(told["crowd"]["members"]) == 4
            await viewer.send('{"type":"crowd","listeners":2,"reports":false}')
            while told["crowd"]["listeners"] != 2:
                told = await stats(viewer)
            assert told["sessions"] == 2
            assert set(told["crowd"]["tallies"]) == {"reported", "estimated"}
            await viewer.close()
            async with view(url) as other:
                told = await stats(other)
                while told["sessions"]:
                    told = await stats(other)
                assert told["crowd"]["listeners"] == 0

    asyncio.run(scenario())


def test_others_speak_while_viewers_do_not_read() -> None:
    async def scenario() -> None:
        async with gateway() as server, view(server.url, max_queue=1, close_timeout=0.2):
            client = await server.greeted()
            await client.send(Text("a b c"), End())
            assert isinstance(await client.until(Done), Done)
            assert any(isinstance(message, Audio) for message in client.received)

    asyncio.run(scenario())
