"""The WebSocket client against the library's own server, and against bare bytes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from machine import PATIENCE, eventually
from playhead.loadgen.websocket import Message, WebSocket
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

Talk = Callable[[ServerConnection], Awaitable[None]]


@dataclass
class Ear:
    """Everything that a hearer is told."""

    heard_all: list[Message] = field(default_factory=list)
    settled_at: list[float] = field(default_factory=list)
    end: ConnectionClosed | None = None

    def heard(self, message: Message, at: float) -> None:
        self.heard_all.append(message)

    def settled(self, now: float) -> None:
        self.settled_at.append(now)

    def closed(self, error: ConnectionClosed) -> None:
        assert self.end is None, "told once"
        self.end = error


@contextlib.asynccontextmanager
async def talking(talk: Talk) -> AsyncIterator[WebSocket]:
    async with serve(talk, "127.0.0.1", 0, subprotocols=[Subprotocol("p")]) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        made = WebSocket(f"ws://127.0.0.1:{port}/", "p")
        await made.open({"X-Given": "1"})
        assert made.subprotocol == "p"
        yield made
        made.abort()


def test_messages_go_both_ways_and_pieces_are_joined() -> None:
    async def talk(socket: ServerConnection) -> None:
        assert socket.request is not None
        assert socket.request.headers["X-Given"] == "1"
        assert await socket.recv() == "text"
        assert await socket.recv() == b"bytes"
        await socket.ping()
        await socket.send(["a", "b", "c"])  # one message in three fragments
        await socket.send(b"d")

    async def run() -> None:
        async with talking(talk) as made:
            made.send("text")
            made.send(b"bytes")
            assert (await made.recv())[0] == "abc"
            assert (await made.recv())[0] == b"d"
            with pytest.raises(ConnectionClosed):
                await made.recv()
            made.send("too late")

    asyncio.run(run())


def test_a_hearer_gets_what_has_waited_what_comes_and_the_end() -> None:
    said = asyncio.Event()

    async def talk(socket: ServerConnection) -> None:
        await socket.send("early")
        await said.wait()
        await socket.send("late")
        await socket.close(1013, "full")

    async def run() -> None:
        async with talking(talk) as made:
            await eventually(lambda: bool(made._waiting))
            ear = Ear()
            made.listen(ear)
            assert ear.heard_all == ["early"]
            made.poll()
            assert ear.settled_at
            said.set()
            await eventually(lambda: ear.end is not None)
            assert ear.heard_all == ["early", "late"]
            assert ear.end is not None
            assert ear.end.rcvd is not None
            assert (ear.end.rcvd.code, ear.end.rcvd.reason) == (1013, "full")
            again = Ear()
            made.listen(again)
            assert again.end is not None, "who comes later is told as well"

    asyncio.run(run())


def test_goodbye_is_said_and_answered() -> None:
    async def talk(socket: ServerConnection) -> None:
        await socket.wait_closed()
        codes.append(socket.close_code)

    codes: list[int | None] = []

    async def run() -> None:
        async with talking(talk) as made:
            async with asyncio.timeout(PATIENCE):
                await made.close()
                await eventually(lambda: bool(codes))

    asyncio.run(run())
    assert codes == [1000]


@pytest.mark.parametrize("sent", [b"\xff\xff\xff", b"\x81\x01", b""])
def test_bytes_that_are_no_frames_and_a_cut_are_ends(sent: bytes) -> None:
    async def talk(socket: ServerConnection) -> None:
        transport = socket.transport
        assert isinstance(transport, asyncio.Transport)
        transport.write(sent)
        await asyncio.sleep(0.02)
        transport.abort()

    async def run() -> None:
        async with talking(talk) as made:
            ear = Ear()
            made.listen(ear)
            await eventually(lambda: ear.end is not None)
            assert ear.heard_all == []

    asyncio.run(run())
