"""A real server on a free port of this machine, a fake engine, and a bare client."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

from fake_engine import INFO, FakeEngine
from machine import PATIENCE
from machine import eventually as eventually
from playhead.codecs import registry as codecs
from playhead.gateway.limits import Limits
from playhead.gateway.messages import (
    Audio,
    Cancelled,
    ClientMessage,
    Done,
    End,
    Failed,
    Hello,
    Ready,
    ServerMessage,
    Text,
)
from playhead.gateway.protocol import Wire
from playhead.gateway.server import GatewayServer, bind
from playhead.gateway.session import ServerFacts
from playhead.gateway.settings import Settings
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

Message = TypeVar("Message", bound=ServerMessage)
TIMEOUT = PATIENCE


def facts(**limits: Any) -> ServerFacts:
    return ServerFacts(
        model=INFO.name,
        server="playhead test",
        voices=INFO.voices,
        default_voice=INFO.voices[0],
        model_rate=INFO.sample_rate,
        formats=tuple(dict(found) for found in codecs.formats()),
        open_format=codecs.open_format,
        new_utterance=count(1).__next__,
        limits=Limits(**limits),
    )


class Gateway:
    """A running server and its engine."""

    def __init__(self, server: GatewayServer, engine: FakeEngine) -> None:
        self.server = server
        self.engine = engine
        self.port = server.port

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/v1/session"

    async def client(self, encoding: str = "msgpack", **options: Any) -> "Client":
        """A connected client that has not said hello."""
        socket_ = await connect(
            options.pop("uri", self.url),
            subprotocols=[Subprotocol("playhead.v1." + encoding)],
            compression=None,
            ping_interval=None,
            max_size=None,
            **options,
        )
        return Client(socket_, encoding)

    async def greeted(self, encoding: str = "msgpack", **hello: Any) -> "Client":
        """A connected client whose session is open."""
        client = await self.client(encoding)
        await client.hello(**hello)
        return client


class Client:
    """Sends and receives messages, and remembers all that came."""

    def __init__(self, socket_: ClientConnection, encoding: str) -> None:
        self.socket = socket_
        self.wire = Wire(encoding)  # type: ignore[arg-type]
        self.received: list[ServerMessage] = []
        self.frames: list[bytes | str] = []
        self.ready: Ready

    async def send(self, *messages: ClientMessage) -> None:
        for message in messages:
            await self.socket.send(self.wire.encode_client(message))

    async def hello(self, **fields: Any) -> ServerMessage:
        await self.send(Hello(**fields))
        message = await self.receive()
        if isinstance(message, Ready):
            self.ready = message
        return message

    async def say(self, text: str) -> None:
        await self.send(Text(text), End())

    async def receive(self) -> ServerMessage:
        while True:
            frame = await asyncio.wait_for(self.socket.recv(), TIMEOUT)
            self.frames.append(frame)
            message = self.wire.decode_server(frame)
            if message is not None:
                self.received.append(message)
                return message

    async def until(self, *kinds: type[Message]) -> Message:
        """The next message of one of these kinds; others stay in ``received``."""
        while True:
            message = await self.receive()
            if isinstance(message, kinds):
                return message

    async def ending(self) -> Done | Cancelled | Failed:
        return await self.until(Done, Cancelled, Failed)  # type: ignore[type-var]

    async def closed(self) -> int | None:
        """Read to the end; the close code."""
        with contextlib.suppress(Exception):
            while True:
                await self.receive()
        await asyncio.wait_for(self.socket.wait_closed(), TIMEOUT)
        return self.socket.close_code

    def audio(self, epoch: int | None = None) -> bytes:
        return b"".join(
            message.data
            for message in self.received
            if isinstance(message, Audio) and epoch in (None, message.epoch)
        )

    def reset(self) -> None:
        """Vanish as a killed process does: RST instead of a closing handshake."""
        raw = self.socket.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.socket.transport.abort()


@contextlib.asynccontextmanager
async def gateway(
    *, interval: float = 0.001, limits: dict[str, Any] | None = None, **settings: Any
) -> AsyncIterator[Gateway]:
    """A server with ``settings`` on a free port; everything is torn down at the end.

    Much may be unsent: while a busy machine keeps the loop waiting, this engine makes a hundred
    times as much as anybody listens to."""
    usual = {"close_timeout": 1.0, "drain_timeout": 0.1, "max_unsent": 1 << 26}
    chosen = Settings(port=0, **{**usual, **settings})
    engines: list[FakeEngine] = []

    def open_engine(deliver: Callable[..., None]) -> FakeEngine:
        engines.append(FakeEngine(deliver, interval=interval))
        return engines[0]

    known = facts(**{"grace": chosen.grace, "hello_within": chosen.hello_timeout, **(limits or {})})
    server = GatewayServer(chosen, replace(known, node=chosen.node), open_engine)
    await server.start(bind(chosen.host, chosen.port))
    engines[0].start()
    try:
        yield Gateway(server, engines[0])
    finally:
        server.hurry()
        await server.drain()
