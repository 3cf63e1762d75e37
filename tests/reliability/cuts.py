"""A client over a cable that is cut again and again, and what it must have at the end.

Three ways to cut: the connection is reset; a black hole, where both sides stay connected and
nothing passes; half-open, where the client is gone and the server is not told.
"""

import asyncio
import contextlib
import hashlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from kit import TIMEOUT
from live import sound
from playhead.gateway import messages as m
from playhead.gateway.protocol import Wire
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Subprotocol

PIECE = 12
"""Characters of text that are sent at a time."""


class Cut(StrEnum):
    RESET = "reset"
    BLACK_HOLE = "black hole"
    HALF_OPEN = "half-open"


class Cable:
    """A relay of one client to the server. While it is cut no new connection comes about."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._pairs: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []
        self._relays: set[asyncio.Task[None]] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._open = True
        self.port = 0

    @contextlib.asynccontextmanager
    async def laid(self) -> AsyncIterator["Cable"]:
        listener = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.port = listener.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            listener.close()
            for task in self._relays:
                task.cancel()
            for pair in self._pairs:
                for end in pair:
                    end.transport.abort()

    def cut(self, how: Cut) -> None:
        self._open = False
        if how is Cut.BLACK_HOLE:
            self._flows.clear()
        for near, far in self._pairs:
            if how is not Cut.BLACK_HOLE:
                near.transport.abort()
            if how is Cut.RESET:
                far.transport.abort()

    def mend(self) -> None:
        """New connections pass. Old ones stay as the cut left them: dead."""
        self._open = True
        self._flows = asyncio.Event()
        self._flows.set()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._open:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._relays.add(task)
        far_reader, far = await asyncio.open_connection(*self._target)
        self._pairs.append((writer, far))
        flows = self._flows
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await asyncio.gather(_pump(reader, far, flows), _pump(far_reader, writer, flows))


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flows: asyncio.Event
) -> None:
    while data := await reader.read(4096):
        if not flows.is_set():
            await asyncio.Event().wait()  # a black hole
        writer.write(data)
        await writer.drain()


@dataclass
class Tale:
    """What one client went through."""

    cuts: Counter[Cut] = field(default_factory=Counter)
    resumed: int = 0
    attempts: int = 0
    lost: int = 0  # messages that never came
    repeated: int = 0  # messages that came twice
    exact: bool = False
    fault: str = ""


class Caller:
    """Sends a text piece by piece and collects its sound, whatever happens to the cable."""

    def __init__(self, cable: Cable, text: str, rng: random.Random, *, cuts: int, longest: float):
        self._cable = cable
        self._text = text
        self._rng = rng
        self._cuts = cuts
        self._longest = longest
        self._wire = Wire("msgpack")
        self._said: list[m.ClientMessage] = []  # all that the session must get, in order
        self._unsent = 0  # how much of it was given to the socket
        self._more = asyncio.Event()
        self._back = asyncio.Event()  # the session is open, or open again
        self._seq = 0
        self._ready: m.Ready | None = None
        self._sound = hashlib.sha256()
        self._samples = 0
        self._over = False
        self.tale = Tale()

    async def run(self) -> Tale:
        """Play through to the end."""
        writer = asyncio.create_task(self._compose())
        breaker = asyncio.create_task(self._break())
        try:
            while not self._over:
                await self._connection()
        finally:
            for task in (writer, breaker):
                task.cancel()
        wanted = hashlib.sha256(sound(self._text).tobytes()).digest()
        self.tale.exact = self._sound.digest() == wanted
        return self.tale

    async def _compose(self) -> None:
        for start in range(0, len(self._text), PIECE):
            self._say(m.Text(self._text[start : start + PIECE]))
            await asyncio.sleep(self._rng.uniform(0.0, 0.3))
        self._say(m.End())

    def _say(self, message: m.ClientMessage) -> None:
        self._said.append(message)
        self._more.set()

    async def _break(self) -> None:
        hasty, left = False, self._longest
        for _ in range(self._cuts):
            # Now and then the way back is cut as well, whatever it has come to; together the two
            # last no longer than one.
            hasty = not hasty and self._rng.random() < 0.3
            if hasty:
                await asyncio.sleep(self._rng.uniform(0.0, 0.2))
            else:
                await self._back.wait()
                await asyncio.sleep(self._rng.uniform(0.0, 1.0))
            self._back.clear()
            how = self._rng.choice(list(Cut))
            self.tale.cuts[how] += 1
            self._cable.cut(how)
            away = self._rng.uniform(0.0, left if hasty else self._longest)
            left = self._longest - away
            await asyncio.sleep(away)
            self._cable.mend()
            if how is Cut.BLACK_HOLE and self._socket is not None:
                self._socket.transport.abort()  # the client notices, the server does not

    _socket: ClientConnection | None = None

    async def _connection(self) -> None:
        self.tale.attempts += 1
        try:
            async with connect(
                f"ws://127.0.0.1:{self._cable.port}/v1/session",
                subprotocols=[Subprotocol("playhead.v1.msgpack")],
                compression=None,
                max_size=None,
                ping_interval=None,
                open_timeout=1.0,
                close_timeout=0.1,
            ) as socket:
                self._socket = socket
                await self._talk(socket)
        except (OSError, TimeoutError, InvalidHandshake, ConnectionClosed, EOFError):
            await asyncio.sleep(0.05)

    async def _talk(self, socket: ClientConnection) -> None:
        origin = None
        if self._ready is not None:
            origin = m.ResumeFrom(self._ready.session, self._ready.token, self._seq)
        hello = m.Hello(codec="pcm_f32le", reports=False, resume=origin)
        await socket.send(self._wire.encode_client(hello))
        sender: asyncio.Task[None] | None = None
        try:
            while not self._over:
                message = self._wire.decode_server(await socket.recv())
                if isinstance(message, m.Ready):
                    self._greeted(message)
                    sender = asyncio.create_task(self._send(socket))
                elif isinstance(message, m.ErrorEvent):
                    self.tale.fault, self._over = f"{message.code}: {message.message}", True
                elif message is not None and not isinstance(message, m.Pong):
                    self._take(message)
        finally:
            if sender is not None:
                sender.cancel()

    def _greeted(self, ready: m.Ready) -> None:
        assert ready.resumed is (self._ready is not None)
        self.tale.resumed += ready.resumed
        self._ready = ready
        self._back.set()
        self._unsent = ready.received

    async def _send(self, socket: ClientConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                while self._unsent < len(self._said):
                    message = self._said[self._unsent]
                    self._unsent += 1
                    await socket.send(self._wire.encode_client(message))
                self._more.clear()
                await self._more.wait()

    def _take(self, message: m.NumberedMessage) -> None:
        self.tale.lost += max(0, message.seq - self._seq - 1)
        self.tale.repeated += message.seq <= self._seq
        self._seq = max(self._seq, message.seq)
        if isinstance(message, m.Audio):
            assert message.position == self._samples
            self._sound.update(message.data)
            self._samples += message.samples
            self._over = message.final
        elif isinstance(message, m.Failed | m.Cancelled):
            self.tale.fault, self._over = str(message), True


async def call(
    url: str, text: str, seed: int, *, cuts: int, longest: float, limit: float = TIMEOUT
) -> Tale:
    """One client of ``url`` through ``cuts`` cuts of up to ``longest`` seconds each."""
    parts = urlsplit(url)
    assert parts.port is not None
    async with Cable("127.0.0.1", parts.port).laid() as cable:
        caller = Caller(cable, text, random.Random(seed), cuts=cuts, longest=longest)
        async with asyncio.timeout(limit):
            return await caller.run()
