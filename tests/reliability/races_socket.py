"""A client of several sockets: what it says goes out on each that has its session."""

import asyncio
import contextlib
from typing import Any

from machine import PATIENCE
from playhead.gateway import messages as m
from playhead.gateway.protocol import Wire
from playhead.gateway.protocol_parse import ProtocolError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidStatus,
)
from websockets.typing import Subprotocol

GONE = -1
"""For a status: nobody listens any more."""


class Said:
    """What the client has said, in order. All its sockets send from it."""

    def __init__(self) -> None:
        self.messages: list[m.ClientMessage] = []
        self._waiting: list[asyncio.Event] = []

    def say(self, *messages: m.ClientMessage) -> None:
        """To whichever socket has the session, or will have it."""
        self.messages += messages
        for event in self._waiting:
            event.set()

    def more(self) -> asyncio.Event:
        """Is set when something is said."""
        self._waiting.append(event := asyncio.Event())
        return event


class Socket:
    """One connection: what came over it, and how it ended."""

    def __init__(self, url: str, said: Said, key: str | None) -> None:
        self._url, self._said, self._wire = url, said, Wire("msgpack")
        self._headers = None if key is None else {"Authorization": f"Bearer {key}"}
        self._link: ClientConnection | None = None
        self._frozen = False
        self.first = 0  # what it asks for begins after this message
        self.ready: m.Ready | None = None
        self.refused = 0  # HTTP status of a handshake that was turned down, or GONE
        self.code: int | None = None  # with which it was closed
        self.error: m.ErrorEvent | None = None
        self.frames: dict[int, bytes] = {}
        self.audio: dict[int, m.Audio] = {}
        self.ending: m.Done | m.Cancelled | m.Failed | None = None
        self.faults: list[str] = []
        self.heard = asyncio.Event()  # the first sound
        self.final = asyncio.Event()  # the last
        self.shaken = asyncio.Event()
        self.settled = asyncio.Event()  # greeted, refused or closed

    async def run(self, go: asyncio.Event, offset: float, origin: m.ResumeFrom | None) -> None:
        """From the handshake to the close; hello is said ``offset`` seconds after ``go``."""
        self.first = 0 if origin is None else origin.seq
        try:
            async with connect(
                self._url,
                subprotocols=[Subprotocol("playhead.v1.msgpack")],
                compression=None,
                max_size=None,
                ping_interval=None,
                open_timeout=PATIENCE,
                additional_headers=self._headers,
            ) as self._link:
                self.shaken.set()
                await go.wait()
                await asyncio.sleep(offset)
                await self._converse(self._link, origin)
        except InvalidStatus as refused:
            self.refused = refused.response.status_code
        except (OSError, EOFError, InvalidMessage):
            self.refused = GONE
        except (ProtocolError, InvalidHandshake) as fault:
            self.refused = GONE
            self.faults.append(f"{type(fault).__name__}: {fault}")
        finally:
            for event in (self.shaken, self.settled, self.heard, self.final):
                event.set()

    async def _converse(self, link: ClientConnection, origin: m.ResumeFrom | None) -> None:
        sender = asyncio.create_task(self._send(link))
        hello = m.Hello(codec="pcm_f32le", reports=False, playback_rate=2.0, resume=origin)
        try:
            with contextlib.suppress(ConnectionClosed):
                await link.send(self._wire.encode_client(hello))
                while not self._frozen:
                    self._take(await link.recv())
            await link.wait_closed()
            self.code = link.close_code
        finally:
            sender.cancel()

    async def _send(self, link: ClientConnection) -> None:
        more = self._said.more()
        await self.settled.wait()
        if self.ready is None:
            return
        at = self.ready.received
        with contextlib.suppress(ConnectionClosed):
            while True:
                more.clear()
                for message in self._said.messages[at:]:
                    at += 1
                    await link.send(self._wire.encode_client(message))
                await more.wait()

    async def say_alone(self, message: m.ClientMessage) -> None:
        """On this socket, and never again on another."""
        assert self._link is not None
        with contextlib.suppress(ConnectionClosed):
            await self._link.send(self._wire.encode_client(message))

    def _take(self, frame: Any) -> None:
        message = self._wire.decode_server(frame)
        if isinstance(message, m.Ready):
            self.ready = message
            self.settled.set()
        elif isinstance(message, m.ErrorEvent):
            self.error = message
        elif message is not None and not isinstance(message, m.Pong):
            self._keep(message, frame)

    def _keep(self, message: m.NumberedMessage, frame: bytes) -> None:
        if self.ready is None:
            self.faults.append(f"{message.type} came before ready")
        if message.seq != self.at + 1:
            self.faults.append(f"message {message.seq} came after {self.at}")
        self.frames[message.seq] = frame
        if isinstance(message, m.Started) and message.epoch != 1:
            self.faults.append("something of the text is spoken anew")
        if isinstance(message, m.Audio):
            self.audio[message.seq] = message
            self.heard.set()
            if message.final:
                self.final.set()
        if isinstance(message, m.Done | m.Cancelled | m.Failed):
            if self.ending is not None:
                self.faults.append(f"{message.type} came after {self.ending.type}")
            self.ending = message

    @property
    def at(self) -> int:
        """The latest message that it has."""
        return max(self.frames, default=self.first)

    @property
    def open(self) -> bool:
        """Whether nobody has hung up yet."""
        return self.code is None and not self.refused

    @property
    def told(self) -> str:
        """How it stands, for a line of a report."""
        how = f"HTTP {self.refused}" if self.refused else "open" if self.open else str(self.code)
        return f"{how}{'' if self.ready else ', never greeted'}"

    def cut(self) -> None:
        """As a cable is: the other side is told by a reset."""
        if self._link is not None:
            self._link.transport.abort()

    def freeze(self) -> None:
        """Read no more, and stay connected."""
        self._frozen = True
        if self._link is not None:
            self._link.transport.pause_reading()
