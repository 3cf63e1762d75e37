"""The end of listening."""

import asyncio
import contextlib
import errno
import socket
import ssl
import struct
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop
from api_kit import api
from harness import gateway
from machine import AT_ONCE, PATIENCE, eventually
from playhead.gateway import last_call
from playhead.gateway.access_tls_records import shaking
from playhead.gateway.agent import Agent
from playhead.gateway.http import Readiness
from playhead.gateway.last_call import _NO_SYN, attach, queued
from playhead.gateway.listener import bind
from playhead.gateway.server import GatewayServer
from test_access_tls import client_context, issue

pytestmark = pytest.mark.slow

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
    monkeypatch.setattr(last_call, "HEARD", PATIENCE)


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


@pytest.mark.parametrize("hurried", [False, True])
@pytest.mark.parametrize("run", RUNNERS)
def test_a_crowd_that_meets_the_end_of_the_drain_is_told_to_come_again(
    run: Run, *, hurried: bool
) -> None:
    async def main(stack: contextlib.ExitStack) -> None:
        async with gateway(**LIMITS) as running:
            crowd = connected(stack, running.server.port, SESSION)
            reading = asyncio.create_task(told(crowd))
            if hurried:
                running.server.hurry()
            await running.server.drain()
        for answer in await reading:
            assert answer.startswith(b"HTTP/1.1 503")
            assert b"\r\nRetry-After: " in answer

    with contextlib.ExitStack() as stack:
        run(main(stack))


@pytest.fixture
def secure(tmp_path: Path) -> dict[str, Any]:
    return {**issue(tmp_path), **LIMITS}


def secure_request(raw: socket.socket, tls: ssl.SSLObject, ends: list[ssl.MemoryBIO]) -> bytes:
    """What REQUEST is answered with, after the rest of a handshake."""
    incoming, outgoing = ends

    def speak(act: Callable[[], Any]) -> Any:
        while True:
            try:
                done = act()
            except ssl.SSLWantReadError:
                raw.sendall(outgoing.read())
                incoming.write(raw.recv(65_536))
            else:
                raw.sendall(outgoing.read())
                return done

    speak(tls.do_handshake)
    speak(lambda: tls.write(REQUEST))
    return bytes(speak(lambda: tls.read(12)))


def test_who_shakes_hands_at_the_end_of_the_drain_is_told_as_well(secure: dict[str, Any]) -> None:
    ends = [ssl.MemoryBIO(), ssl.MemoryBIO()]
    tls = client_context().wrap_bio(*ends, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()

    async def main(stack: contextlib.ExitStack) -> None:
        async with gateway(**secure) as running:
            raw = stack.enter_context(connect(running.port))
            raw.sendall(ends[1].read(1))
            await eventually(shaking)
            draining = asyncio.create_task(running.server.drain())
            await no_more(running.server)
            assert not draining.done()
            assert await asyncio.to_thread(secure_request, raw, tls, ends) == b"HTTP/1.1 503"
            raw.close()
            await draining

    with contextlib.ExitStack() as stack:
        uvloop.run(main(stack))


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


async def no_more(server: GatewayServer) -> None:
    """Wait until it accepts nobody any more."""
    listener = server._arrivals.listener
    assert listener is not None
    await eventually(lambda: listener.fileno() < 0)


def test_who_says_nothing_holds_up_no_end_of_tls(secure: dict[str, Any]) -> None:
    async def main() -> None:
        async with gateway(**secure) as running:
            listener = running.server._arrivals.listener
            assert listener is not None
            with connect(running.port):
                await eventually(lambda: not queued(listener))
                await asyncio.wait_for(running.server.drain(), AT_ONCE)

    uvloop.run(main())


def test_a_request_on_its_way_to_the_http_api_is_answered() -> None:
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


def test_who_has_not_confirmed_a_handshake_is_waited_for() -> None:
    confirmations = program(
        (0x30, 0, 0, 13),  # A = flags
        (0x15, 0, 1, 0x10),  # ACK alone?
        (0x06, 0, 0, 0),
        (0x06, 0, 0, 0xFFFF_FFFF),
    )

    async def main(listener: socket.socket) -> None:
        attach(listener, confirmations)
        agent = Agent(lambda: Readiness(False, "draining", {}))
        await agent.start(listener)
        with connect(listener.getsockname()[1]) as client:
            stopping = asyncio.create_task(agent.stop())
            for _ in range(20):
                await asyncio.sleep(0)
            client.shutdown(socket.SHUT_WR)  # which confirms as well
            await stopping
            assert await told([client]) == {b"drain\n"}

    asyncio.run(main(bind("127.0.0.1", 0)))


def program(*instructions: tuple[int, int, int, int]) -> bytes:
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("fast_open", [False, True])
def test_nothing_begins_a_connection_any_more(host: str, fast_open: bool) -> None:
    with contextlib.ExitStack() as stack:
        try:
            listener = stack.enter_context(bind(host, 0))
        except OSError as fault:
            pytest.skip(f"no {host}: {fault}")
        address = listener.getsockname()
        before, late = (stack.enter_context(socket.socket(listener.family)) for _ in range(2))
        before.connect(address)
        if fast_open:
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)
        asyncio.run(last_call.last_call(listener, lambda: True))
        late.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            if fast_open:
                late.sendto(b"hello", socket.MSG_FASTOPEN, address)
            else:
                late.connect(address)
        accepted = stack.enter_context(listener.accept()[0])
        accepted.settimeout(PATIENCE)  # it inherits the filter
        before.sendall(b"hello")
        assert accepted.recv(5) == b"hello"
        assert not queued(listener)


def test_what_was_accepted_gets_its_packets_whole() -> None:
    assert struct.unpack("=HBBI", _NO_SYN[-8:])[3] == 0xFFFF_FFFF


def test_where_nobody_can_be_turned_away_the_end_comes_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOPROTOOPT, "Protocol not available")

    monkeypatch.setattr(last_call, "attach", refuse)
    monkeypatch.setattr(last_call, "shaking", lambda: True)  # one after the other comes
    monkeypatch.setattr(last_call, "HEARD", 0.05)

    async def main() -> None:
        async with gateway() as running:
            port = running.port
            await asyncio.wait_for(running.server.drain(), AT_ONCE)
            (line,) = [
                record.getMessage()
                for record in caplog.records
                if record.name == "playhead.gateway.last_call"
            ]
            assert line == (
                f"who connects to port {port} just before it is closed may be cut off: "
                f"[Errno {errno.ENOPROTOOPT}] Protocol not available"
            )

    uvloop.run(main())


def test_who_asks_nothing_is_cut_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_call, "HEARD", 0.05)

    async def main() -> None:
        async with gateway(**LIMITS) as running:
            with connect(running.port) as idle:
                await eventually(lambda: len(running.server._arrivals.half_open))
                await asyncio.wait_for(running.server.drain(), AT_ONCE)
                with contextlib.suppress(ConnectionResetError):
                    assert not idle.recv(1)

    uvloop.run(main())


def test_all_ports_end_together_and_at_once_when_hurried() -> None:
    async def main() -> None:
        async with api(**LIMITS) as served:
            server = served.gateway.server
            with connect(server.port), connect(served.port):
                await eventually(lambda: len(server._arrivals.half_open))
                ending = asyncio.create_task(server.drain(1012, served.listener.stop))
                await no_more(server)
                listening = served.listener._listener
                assert listening is not None
                await eventually(lambda: listening.fileno() < 0)
                assert not ending.done()
                server.hurry()
                await asyncio.wait_for(ending, AT_ONCE)

    uvloop.run(main())
