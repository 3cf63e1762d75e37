"""The listener: who gets in, and how it goes down."""

import asyncio
import contextlib
import json
import time
from typing import Any

import pytest
import uvloop
from harness import Gateway, eventually, gateway
from machine import AT_ONCE
from playhead.engine import clock
from playhead.gateway.messages import Done, Draining, End, ErrorEvent, Failed, Hello, Text
from playhead.gateway.serve import _until_stopped
from playhead.gateway.server import bind
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin, Subprotocol

BOTH = [Subprotocol("playhead.v1.json"), Subprotocol("playhead.v1.msgpack")]


def refused_metric(running: Gateway, reason: str) -> float:
    found = running.server.metrics.registry.get_sample_value(
        "playhead_refusals_total", {"reason": reason}
    )
    assert found is not None
    return found


async def refusal(url: str, **options: Any) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Status, headers and JSON body of a handshake that must be refused."""
    options.setdefault("subprotocols", BOTH)
    with pytest.raises(InvalidStatus) as caught:
        await connect(url, **options)
    answer = caught.value.response
    return answer.status_code, dict(answer.headers.raw_items()), json.loads(answer.body)


@pytest.mark.parametrize("encoding", ["msgpack", "json"])
def test_subprotocol_is_chosen(encoding: str) -> None:
    async def main() -> None:
        async with gateway() as running:
            client = await running.client(encoding)
            assert client.socket.subprotocol == "playhead.v1." + encoding
            assert client.socket.response is not None
            assert "Sec-WebSocket-Extensions" not in client.socket.response.headers

    uvloop.run(main())


@pytest.mark.parametrize("offered", [None, [Subprotocol("playhead.v2.json")]])
def test_without_a_known_subprotocol(offered: list[Subprotocol] | None) -> None:
    async def main() -> None:
        async with gateway() as running:
            status, _, body = await refusal(running.url, subprotocols=offered)
            assert status == 400
            assert "playhead.v1.msgpack or playhead.v1.json" in body["expected"]
            assert refused_metric(running, "subprotocol") == 1

    uvloop.run(main())


@pytest.mark.parametrize(
    ("origin", "welcome"),
    [
        ("http://127.0.0.1:{port}", True),
        ("http://localhost:3000", True),
        ("https://app.example", True),
        ("https://other.example", False),
        ("null", False),
    ],
)
def test_origins(origin: str, welcome: bool) -> None:
    async def main() -> None:
        async with gateway(origins=("https://app.example",)) as running:
            page = Origin(origin.format(port=running.port))
            if welcome:
                async with connect(running.url, subprotocols=BOTH, origin=page):
                    return
            status, _, body = await refusal(running.url, origin=page)
            assert (status, body["code"]) == (403, "origin")
            assert refused_metric(running, "origin") == 1

    uvloop.run(main())


def test_plain_request_for_the_session_path() -> None:
    async def main() -> None:
        async with gateway() as running:
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(b"GET /v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert (await reader.readline()).split()[1] == b"426"
            writer.close()

    uvloop.run(main())


def test_two_origins_are_none() -> None:
    async def main() -> None:
        async with gateway() as running:
            status, _, _ = await refusal(
                running.url,
                origin=Origin("http://localhost"),
                additional_headers={"Origin": "http://localhost:1"},
            )
            assert status == 403

    uvloop.run(main())


def test_cap_of_one_address() -> None:
    async def main() -> None:
        async with gateway(max_connections_per_address=3) as running:
            clients = [await running.client() for _ in range(3)]
            status, headers, body = await refusal(running.url)
            assert (status, body["code"]) == (429, "connections_per_address")
            assert float(headers["Retry-After"]) > 0
            await clients.pop().socket.close()
            await eventually(lambda: running.server.readiness().load["connections"] == 2)
            await running.client()
            assert (await clients[0].hello()).type == "ready"

    uvloop.run(main())


def test_cap_in_all() -> None:
    async def main() -> None:
        async with gateway(max_connections=2) as running:
            clients = [await running.client() for _ in range(2)]
            status, headers, body = await refusal(running.url)
            assert (status, body["code"]) == (503, "connections")
            assert "Retry-After" in headers
            assert refused_metric(running, "connections") == 1
            told = {(await refusal(running.url))[1]["Retry-After"] for _ in range(8)}
            assert len(told) >= 4, "they do not all come back at the same moment"
            assert len(clients) == 2

    uvloop.run(main())


def test_a_dead_engine_takes_no_sessions() -> None:
    async def main() -> None:
        async with gateway() as running:
            running.engine.dead = RuntimeError("gone")
            status, _, body = await refusal(running.url)
            assert (status, body["code"]) == (503, "not_ready")

    uvloop.run(main())


def test_dripping_handshakes_are_cut() -> None:
    async def main() -> None:
        async with gateway(open_timeout=0.1) as running:
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(b"GET / HTTP/1.1\r\n")
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), AT_ONCE) == b""
            writer.close()

    uvloop.run(main())


def test_drain_finishes_what_is_spoken() -> None:
    async def main() -> None:
        async with gateway(drain_timeout=60.0, interval=0.005) as running:
            client = await running.greeted()
            await client.send(Text("one two three four five "))
            await eventually(lambda: bool(running.engine.live))
            stopping = asyncio.create_task(running.server.drain(1012))
            assert (await client.until(Draining)).deadline > 0
            assert running.server.readiness().reason == "draining"
            status, _, body = await refusal(running.url)
            assert (status, body["code"]) == (503, "draining")
            await client.send(End())
            # Silent about its playback, it is known to have ended only by estimate.
            assert isinstance(await client.ending(), Done)
            assert len(client.audio()) == 5 * 1920 * 2
            assert await client.closed() == 1012
            await asyncio.wait_for(stopping, AT_ONCE)

    uvloop.run(main())


def test_drain_refuses_new_utterances() -> None:
    async def main() -> None:
        async with gateway(drain_timeout=60.0) as running:
            client = await running.greeted()
            await client.send(Text("on and on "))
            await eventually(lambda: bool(running.engine.live))
            stopping = asyncio.create_task(running.server.drain())
            await client.until(Draining)
            await client.send(End(), Text("and another thing"))
            error = await client.until(ErrorEvent)
            assert error.code == "draining"
            running.server.hurry()
            await asyncio.wait_for(stopping, AT_ONCE)

    uvloop.run(main())


def test_a_stuck_utterance_does_not_hold_up_the_end() -> None:
    async def main() -> None:
        async with gateway(drain_timeout=0.2) as running:
            client = await running.greeted(sample_rate=8000)
            await client.send(Text("waiting for more "))
            await eventually(lambda: bool(running.engine.live))
            started = time.perf_counter()
            await asyncio.wait_for(running.server.drain(1001), AT_ONCE)
            assert time.perf_counter() - started > 0.15
            failed = await client.until(Failed)
            assert failed.code == "draining"
            assert await client.closed() == 1001

    uvloop.run(main())


def test_hurry_ends_a_drain_at_once() -> None:
    async def main() -> None:
        async with gateway(drain_timeout=60.0) as running:
            client = await running.greeted()
            await client.send(Text("waiting for more "))
            await eventually(lambda: bool(running.engine.live))
            stopping = asyncio.create_task(running.server.drain())
            await client.until(Draining)
            running.server.hurry()
            await asyncio.wait_for(stopping, AT_ONCE)

    uvloop.run(main())


def test_idle_sessions_close_at_once() -> None:
    async def main() -> None:
        async with gateway(drain_timeout=60.0) as running:
            clients = [await running.greeted() for _ in range(5)]
            await asyncio.wait_for(running.server.drain(1012), AT_ONCE)
            assert [await client.closed() for client in clients] == [1012] * 5

    uvloop.run(main())


def test_a_taken_port_cannot_be_bound_again() -> None:
    first = bind("127.0.0.1", 0)
    with first, pytest.raises(OSError, match="in use"):
        bind("127.0.0.1", first.getsockname()[1])


def test_a_handshake_that_overlaps_a_drain() -> None:
    async def main() -> None:
        async with gateway() as running:
            now = clock.monotonic()
            running.server.hub.drain(now + 5.0, now)
            client = await running.client()
            with contextlib.suppress(ConnectionClosed):
                await client.send(Hello(), Text("too late"))
            assert await client.closed() in (1001, 1012)
            assert running.engine.requests == []

    uvloop.run(main())


def test_a_dead_engine_ends_the_server() -> None:
    async def main() -> None:
        async with gateway() as running:
            stop = asyncio.get_running_loop().create_future()
            running.engine.dead = RuntimeError("gone")
            assert await asyncio.wait_for(_until_stopped(running.server, stop), AT_ONCE) is True
            running.engine.dead = None
            stop.set_result(1012)
            assert await asyncio.wait_for(_until_stopped(running.server, stop), AT_ONCE) is False

    uvloop.run(main())
