"""The end of listening."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import trustme
import uvloop
from api_kit import api
from harness import gateway
from machine import PATIENCE, eventually
from playhead.engine import clock
from playhead.gateway import last_call
from playhead.gateway.agent import Agent
from playhead.gateway.api import listener as api_listener
from playhead.gateway.http import Readiness
from playhead.gateway.last_call import Coming, attach, begun, queued
from playhead.gateway.listener import bind

CROWD = 40
REQUEST = b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"
SESSION = (
    b"GET /v1/session HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: playhead.v1.json\r\n\r\n"
)
SPEECH = b"POST /v1/audio/speech HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"
LIMITS = {"open_timeout": PATIENCE, "close_timeout": PATIENCE, "max_connections_per_address": 200}
RUNNERS = [asyncio.run, uvloop.run]
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_call, "QUEUE", PATIENCE)


def connected(stack: contextlib.ExitStack, port: int, said: bytes = b"") -> list[socket.socket]:
    """A crowd that the loop, which this keeps, has not accepted."""
    crowd = [
        stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
        for _ in range(CROWD)
    ]
    for client in crowd:
        client.sendall(said)
    return crowd


async def told(crowd: list[socket.socket]) -> set[bytes]:
    """What they are told, each to the end; then they go."""

    def read(client: socket.socket) -> bytes:
        with client, client.makefile("rb") as stream:
            return stream.read()

    return await asyncio.to_thread(lambda: {read(client) for client in crowd})


@pytest.mark.parametrize("run", RUNNERS)
def test_a_balancer_that_has_connected_is_told(run: Run) -> None:
    async def main(stack: contextlib.ExitStack) -> None:
        agent = Agent(lambda: Readiness(False, "draining", {}))
        listener = bind("127.0.0.1", 0)
        await agent.start(listener)
        crowd = connected(stack, listener.getsockname()[1])
        await agent.stop()
        assert listener.fileno() < 0
        assert await told(crowd) == {b"drain\n"}

    with contextlib.ExitStack() as stack:
        run(main(stack))


@pytest.mark.parametrize("run", RUNNERS)
def test_a_crowd_that_meets_the_end_of_the_drain_is_told_to_come_again(run: Run) -> None:
    async def main(stack: contextlib.ExitStack) -> None:
        async with gateway(**LIMITS) as running:
            crowd = connected(stack, running.server.port, SESSION)
            reading = asyncio.create_task(told(crowd))
        for answer in await reading:
            assert answer.startswith(b"HTTP/1.1 503")
            assert b"\r\nRetry-After: " in answer

    with contextlib.ExitStack() as stack:
        run(main(stack))


def test_who_shakes_hands_at_the_end_of_the_drain_is_told_as_well(tmp_path: Any) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def main(stack: contextlib.ExitStack) -> None:
        options = {"tls_cert": str(cert), "tls_key": str(key), **LIMITS}
        async with gateway(**options) as running:
            raw = stack.enter_context(socket.create_connection(("127.0.0.1", running.server.port)))
            while not running.server._arrivals.coming._since:
                await asyncio.sleep(0)
            draining = asyncio.create_task(running.server.drain())
            await asyncio.sleep(0.2)  # two times as long as it lets speech end
            assert not draining.done()
            reader, writer = await asyncio.open_connection(
                sock=raw, ssl=trusting, server_hostname="localhost"
            )
            writer.write(REQUEST)
            assert await reader.readexactly(12) == b"HTTP/1.1 503"
            writer.close()
            await draining

    with contextlib.ExitStack() as stack:
        uvloop.run(main(stack))


def test_a_request_on_its_way_to_the_http_api_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_listener, "HEARD_WITHIN", PATIENCE)

    async def main(stack: contextlib.ExitStack) -> None:
        async with api(**LIMITS) as served:
            crowd = connected(stack, served.listener.port)
            served.gateway.server.draining = True
            listening = served.listener._listener
            assert listening is not None
            stopping = asyncio.create_task(served.listener.stop())
            await eventually(lambda: listening.fileno() < 0)
            await asyncio.sleep(0.2)  # uvicorn looks ten times a second whether it shall end
            for client in crowd:
                client.sendall(SPEECH)
            await stopping
            assert {answer[:12] for answer in await told(crowd)} == {b"HTTP/1.1 503"}

    with contextlib.ExitStack() as stack:
        uvloop.run(main(stack))


def test_who_comes_after_it_meets_the_successor() -> None:
    async def main() -> None:
        listener = socket.create_server(("127.0.0.1", 0), reuse_port=True)
        address = listener.getsockname()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(asyncio.Protocol, sock=listener)
        await last_call.last_call(listener)
        with socket.socket() as late:
            late.setblocking(False)
            late.connect_ex(address)
            assert not queued(listener)
            with socket.create_server(address, reuse_port=True) as successor:
                server.close()
                await last_call.last_call(listener)  # it is closed: nothing is done
                await eventually(lambda: queued(successor))  # TCP asks again after a second

    asyncio.run(main())


def test_who_has_not_confirmed_a_handshake_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_call, "BRIEF", 0.05)
    nothing = struct.pack("=HBBI", 0x06, 0, 0, 0)
    with (
        bind("127.0.0.1", 0) as listener,
        bind("127.0.0.1", 0) as other,
        socket.socket() as client,
    ):
        client.setblocking(False)
        attach(client, nothing)  # it does not hear the answer
        client.connect_ex(listener.getsockname())
        assert begun(listener)
        assert not begun(other)
        before = clock.monotonic()
        asyncio.run(last_call.last_call(listener))
        assert clock.monotonic() - before >= 0.05


class Told(asyncio.Protocol):
    pass


def test_a_handshake_that_failed_is_not_waited_for() -> None:
    at_it = [True]
    coming = Coming(5.0, lambda: at_it[0])
    first, second = Told(), Told()
    assert not coming.any(0.0)
    coming.expect(first, 1.0)
    coming.expect(second, 2.0)
    assert coming.any(5.9)
    coming.came(first)
    coming.came(first)
    assert coming.any(6.9)
    at_it[0] = False
    assert not coming.any(6.9)
    at_it[0] = True
    assert not coming.any(7.0)
    del second
    assert not coming.any(3.0)
